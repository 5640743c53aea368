//! Rows from Python, as a table that can be scanned twice: once for the survey and once for the groups.
//!
//! What lies in memory already is shared with its owner, not copied. What can be read only once is written to the spill
//! folder of the session on its way in.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, RecordBatchReader, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use throng::{Error, ErrorKind};

use crate::errors::to_exception;
use crate::process::check_signals;

/// Rows of a batch inside the engine.
const BATCH_ROWS: usize = 8192;

/// What objects whose rows are in memory say of their size: pyarrow, polars and pandas, in this order.
const SIZES: [&str; 3] = ["nbytes", "estimated_size", "memory_usage"];

/// Opens the Arrow stream of a Python object; also returns whether its rows are in memory.
pub(crate) fn open_stream(data: &Bound<'_, PyAny>) -> PyResult<(ArrowArrayStreamReader, bool)> {
    if !data.hasattr("__arrow_c_stream__")? {
        return Err(PyTypeError::new_err(format!(
            "{} has no __arrow_c_stream__: pass a table of pyarrow, pandas (2.2 or newer), polars, DuckDB or DataFusion, or a \
             RecordBatchReader",
            data.get_type().fully_qualified_name()?
        )));
    }
    let capsule = data.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    #[expect(
        unsafe_code,
        reason = "the name of the capsule says that it holds an Arrow stream, which is taken out of it"
    )]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(|error| to_exception(unreadable(&error)))?;
    let mut in_memory = false;
    for name in SIZES {
        in_memory |= data.hasattr(name)?;
    }
    Ok((reader, in_memory))
}

fn unreadable(error: &ArrowError) -> Error {
    Error::new(ErrorKind::Input, format!("the input cannot be read: {error}"))
}

/// Rows that can be scanned more than once.
#[derive(Debug)]
pub(crate) enum Rows {
    /// Shared with their owner.
    InMemory(SchemaRef, Arc<Vec<RecordBatch>>),
    /// In a file of the spill folder.
    Spooled(SchemaRef, PathBuf),
}

impl Rows {
    /// Reads a stream to its end. Called without the interpreter, which the stream may need.
    pub(crate) fn read_stream(
        reader: ArrowArrayStreamReader,
        in_memory: bool,
        folder: &Path,
        spill_limit: Option<u64>,
    ) -> PyResult<Self> {
        // What pandas notes of an index is no part of the rows.
        let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
        if in_memory {
            let mut batches = Vec::new();
            for batch in reader {
                check_signals()?;
                let batch = batch.map_err(|error| to_exception(unreadable(&error)))?;
                let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec());
                batches.push(batch.map_err(|error| to_exception(unreadable(&error)))?);
            }
            return Ok(Self::InMemory(schema, Arc::new(batches)));
        }
        let path = folder.join("input.arrow");
        let mut spool = Spool::create(&path, &schema, spill_limit).map_err(to_exception)?;
        for batch in reader {
            check_signals()?;
            let batch = batch.map_err(|error| to_exception(unreadable(&error)))?;
            spool.write_batch(&schema, &batch).map_err(to_exception)?;
        }
        spool.finish().map_err(to_exception)?;
        Ok(Self::Spooled(schema, path))
    }

    /// Returns the rows as a table of so many partitions, if they can be divided.
    pub(crate) fn to_table(&self, partitions: usize) -> throng::Result<Arc<dyn TableProvider>> {
        let (schema, streams) = match self {
            Self::InMemory(schema, batches) => {
                let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                let share = rows.div_ceil(partitions.max(1)).max(1);
                let parts = (0..rows.div_ceil(share).max(1)).map(|part| -> Arc<dyn PartitionStream> {
                    Arc::new(Slices {
                        schema: Arc::clone(schema),
                        batches: Arc::clone(batches),
                        from: part * share,
                        to: rows.min((part + 1) * share),
                    })
                });
                (schema, parts.collect())
            }
            Self::Spooled(schema, path) => {
                let part: Arc<dyn PartitionStream> =
                    Arc::new(SpooledRows { schema: Arc::clone(schema), path: path.clone() });
                (schema, vec![part])
            }
        };
        Ok(Arc::new(StreamingTable::try_new(Arc::clone(schema), streams)?))
    }
}

/// A file of rows that is being written.
struct Spool {
    writer: StreamWriter<BufWriter<File>>,
    limit: Option<u64>,
}

impl Spool {
    fn create(path: &Path, schema: &Schema, limit: Option<u64>) -> throng::Result<Self> {
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
        let file = BufWriter::new(File::create(path)?);
        let options = options.map_err(DataFusionError::from)?;
        let writer = StreamWriter::try_new_with_options(file, schema, options).map_err(DataFusionError::from)?;
        Ok(Self { writer, limit })
    }

    fn write_batch(&mut self, schema: &SchemaRef, batch: &RecordBatch) -> throng::Result<()> {
        let columns = RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec());
        let columns = columns.map_err(|error| unreadable(&error))?;
        self.writer.write(&columns).map_err(DataFusionError::from)?;
        let written = self.writer.get_ref().get_ref().metadata()?.len();
        match self.limit {
            Some(limit) if written > limit => Err(Error::new(
                ErrorKind::Resources,
                format!("the input stream needs more than spill_limit = {limit} bytes of disk; raise it"),
            )),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> throng::Result<()> {
        Ok(self.writer.finish().map_err(DataFusionError::from)?)
    }
}

/// A range of rows of batches in memory.
#[derive(Debug)]
struct Slices {
    schema: SchemaRef,
    batches: Arc<Vec<RecordBatch>>,
    from: usize,
    to: usize,
}

impl PartitionStream for Slices {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (batches, to) = (Arc::clone(&self.batches), self.to);
        let slices = stream::try_unfold(self.from, move |at| {
            let next = next_slice(&batches, at, to).map_err(DataFusionError::from);
            std::future::ready(next.map(|slice| slice.map(|batch| (batch.clone(), at + batch.num_rows()))))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), slices))
    }
}

/// The rows from `at`, as many as fit into one batch of the engine, with buffers of their own: a slice would count as all of
/// the batch it was cut from wherever memory is counted.
fn next_slice(batches: &[RecordBatch], at: usize, to: usize) -> Result<Option<RecordBatch>, ArrowError> {
    let mut before = 0;
    for batch in batches {
        let end = before + batch.num_rows();
        if at < end.min(to) {
            let rows = (end.min(to) - at).min(BATCH_ROWS);
            if (at, rows) == (before, batch.num_rows()) && rows > BATCH_ROWS / 2 {
                return Ok(Some(batch.clone()));
            }
            let from = (at - before) as u32;
            let copied = take_record_batch(batch, &UInt32Array::from_iter_values(from..from + rows as u32))?;
            return compact_views(&copied).map(Some);
        }
        before = end;
    }
    Ok(None)
}

/// The batch with buffers of its own for texts, too.
fn compact_views(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as Arc<dyn Array>,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => Arc::clone(column),
    });
    RecordBatch::try_new(batch.schema(), columns.collect())
}

/// The rows of a file in the spill folder.
#[derive(Debug)]
struct SpooledRows {
    schema: SchemaRef,
    path: PathBuf,
}

impl PartitionStream for SpooledRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let path = self.path.clone();
        let batches = stream::try_unfold(None, move |reader: Option<StreamReader<BufReader<File>>>| {
            let path = path.clone();
            async move {
                // A thread of its own for each batch, not for as long as somebody reads.
                let read = tokio::task::spawn_blocking(move || -> Result<_, DataFusionError> {
                    let mut reader = match reader {
                        Some(reader) => reader,
                        None => StreamReader::try_new(BufReader::new(File::open(&path)?), None)?,
                    };
                    let batch = reader.next().transpose()?;
                    Ok(batch.map(|batch| (batch, Some(reader))))
                });
                read.await.map_err(|error| DataFusionError::Execution(format!("a read was cut off: {error}")))?
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
