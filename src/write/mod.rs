//! Writes every partition into Parquet files of its own and emits one row per file. The rows are small, so the plan
//! is the same on one machine and on many: executors write, the driver commits.

pub(crate) mod order;
mod planted;

#[cfg(feature = "cluster")]
pub(crate) use order::CollapseExec;
pub(crate) use order::PublishedOrder;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::{cast, partition as arrow_partition};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt64Type};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{AsyncArrowWriter, add_encoded_arrow_schema_to_metadata};
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::faults::{self, Fault};
use crate::measure::Groups;
use crate::plan::{unary_plan, unary_properties};
use crate::policy::{Compression, Output, QIT, ST};
use crate::storage::partitions::folder_name;
use crate::storage::upload::{Upload, Uploads};
use crate::write::order::{Expander, Tables};

/// Where and how files are written: plain data, which can be sent to where the writing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Address of the store, by which the session knows it.
    pub(super) store: String,
    /// The folder in the store.
    pub(super) folder: String,
    pub(super) output: Output,
    /// The metadata of every file.
    pub(super) metadata: Vec<(String, String)>,
    /// The order of the rows, which come as its records.
    pub(super) order: PublishedOrder,
    /// Schema of the rows.
    #[serde(with = "schema_bytes")]
    pub(super) rows: SchemaRef,
    /// Whether other processes write into the same folder: then file names are unique, even if
    /// the same rows are written again.
    pub(super) shared: bool,
}

impl Target {
    fn open_sink(&self, context: &TaskContext, uploads: &Uploads) -> Result<Sink> {
        let store = context.runtime_env().object_store(ObjectStoreUrl::parse(&self.store)?)?;
        let metadata = self.metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(output_codec(&self.output)?)
            .set_max_row_group_row_count(Some(self.output.row_group_rows))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(format!("throng {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(metadata))
            .build();
        Ok(Sink {
            store,
            uploads: uploads.clone(),
            folder: Path::parse(&self.folder).map_err(object_store::Error::from)?,
            properties,
            file_rows: self.output.file_rows,
            file_size: self.output.file_size.0,
            partition_by: self.output.partition_by.clone(),
        })
    }

    /// How the names of a partition's files begin.
    fn file_stem(&self, partition: usize) -> String {
        if self.shared { format!("part-{}", unique_name()) } else { format!("part-{partition:05}") }
    }
}

/// Schemas as the bytes of a message.
mod schema_bytes {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{Schema, SchemaRef};
    use datafusion_proto::protobuf;
    use prost::Message;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(schema: &SchemaRef, to: S) -> Result<S::Ok, S::Error> {
        let message = protobuf::Schema::try_from(schema.as_ref()).map_err(ser::Error::custom)?;
        message.encode_to_vec().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SchemaRef, D::Error> {
        let message = protobuf::Schema::decode(Vec::<u8>::deserialize(from)?.as_slice()).map_err(de::Error::custom)?;
        Schema::try_from(&message).map(Arc::new).map_err(de::Error::custom)
    }
}

fn output_codec(output: &Output) -> Result<Codec> {
    let level = output.level;
    Ok(match output.compression {
        Compression::Zstd => {
            Codec::ZSTD(level.map_or(Ok(ZstdLevel::default()), |level| ZstdLevel::try_new(level as i32))?)
        }
        Compression::Gzip => Codec::GZIP(level.map_or(Ok(GzipLevel::default()), GzipLevel::try_new)?),
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::None => Codec::UNCOMPRESSED,
    })
}

/// A target, opened.
#[derive(Debug, Clone)]
struct Sink {
    store: Arc<dyn ObjectStore>,
    /// Where uploads are completed or aborted, whatever happens to their writers.
    uploads: Uploads,
    folder: Path,
    properties: WriterProperties,
    /// Rows after which a new file is begun.
    file_rows: usize,
    /// Bytes after which a new file is begun.
    file_size: u64,
    /// Columns whose values name folders, and are left out of the files.
    partition_by: Vec<String>,
}

/// One written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenFile {
    pub(super) path: String,
    pub(super) rows: u64,
    pub(super) size: u64,
}

/// Writes its input.
#[derive(Debug)]
pub(crate) struct WriteExec {
    input: Arc<dyn ExecutionPlan>,
    target: Target,
    uploads: Uploads,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl WriteExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, target: Target, uploads: Uploads) -> Self {
        let properties = unary_properties(&input, file_schema(), EmissionType::Final);
        Self { input, target, uploads, metrics: ExecutionPlanMetricsSet::new(), properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Ok(Self::new(input, self.target.clone(), self.uploads.clone()))
    }

    /// Where and how it writes.
    #[cfg(feature = "cluster")]
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
}

/// The schema of the rows that are emitted: one per file and, if they are sent along, one for the measures.
fn file_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8, true),
        Field::new("rows", DataType::UInt64, false),
        Field::new("size", DataType::UInt64, false),
        Field::new("measures", DataType::Utf8, true),
    ]))
}

/// The published schema as files carry it: view types are internal to this process.
pub(super) fn stored_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(stored_field).collect::<Vec<_>>()))
}

/// A field without what the source says about it: its metadata may hold anything, such as the bounds of its values.
fn stored_field(field: &FieldRef) -> FieldRef {
    let field = field.as_ref().clone();
    let data_type = stored_type(field.data_type());
    let mut metadata = HashMap::new();
    if Fault::SourceMetadata.is_planted() {
        metadata.insert("source".to_owned(), field.data_type().to_string());
    }
    Arc::new(field.with_data_type(data_type).with_metadata(metadata))
}

/// The type by which files carry a column.
pub(super) fn stored_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(stored_field(item)),
        DataType::LargeList(item) => DataType::LargeList(stored_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(stored_field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(stored_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(stored_field).collect()),
        other => other.clone(),
    }
}

impl DisplayAs for WriteExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteExec: folder={}", self.target.folder)?;
        match self.target.output.partition_by.as_slice() {
            [] => Ok(()),
            columns => write!(f, ", partition_by=[{}]", columns.join(", ")),
        }
    }
}

impl ExecutionPlan for WriteExec {
    unary_plan!("WriteExec");

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("WriteExec[{partition}]")).register(context.memory_pool());
        let sink = self.target.open_sink(&context, &self.uploads).map_err(Error::into_datafusion)?;
        let target = &self.target;
        // Files end where batches do.
        let batch_rows = context.session_config().batch_size();
        let batch_rows = batch_rows.min(target.output.row_group_rows).min(target.output.file_rows).max(1);
        let partitions = self.input.output_partitioning().partition_count();
        let records = self.input.execute(partition, target.order.record_context(&context, partitions))?;
        let expander = Expander::try_new(&target.rows, &target.order, reservation.new_empty(), batch_rows);
        let tables = expander.and_then(|expander| expander.read_tables(records)).map_err(Error::into_datafusion)?;
        let stem = target.file_stem(partition);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let stream = futures::stream::once(async move {
            let written = write_tables(tables, &sink, &stem, &metrics, &reservation).await;
            written.and_then(|(files, measures)| encode_write_result(&files, &measures)).map_err(Error::into_datafusion)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(file_schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// What a partition reports when it has written its files.
fn encode_write_result(written: &[WrittenFile], measures: &[String]) -> Result<RecordBatch> {
    let files = written.iter().map(|file| (Some(file.path.as_str()), file.rows, file.size, None));
    let rows: Vec<_> = files.chain(measures.iter().map(|text| (None, 0, 0, Some(text.as_str())))).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0).collect::<StringArray>()),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(rows.iter().map(|row| row.3).collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(file_schema(), columns)?)
}

/// The reports of all partitions: the files by path, and the sum of the measures that were sent along.
pub(super) fn decode_write_results(batches: &[RecordBatch]) -> Result<(Vec<WrittenFile>, Option<Groups>)> {
    let (mut files, mut measures) = (Vec::new(), None::<Groups>);
    for batch in batches {
        let (paths, texts) = (batch.column(0).as_string::<i32>(), batch.column(3).as_string::<i32>());
        let number = |column: usize, row: usize| batch.column(column).as_primitive::<UInt64Type>().value(row);
        for row in 0..batch.num_rows() {
            if paths.is_valid(row) {
                files.push(WrittenFile {
                    path: paths.value(row).to_owned(),
                    rows: number(1, row),
                    size: number(2, row),
                });
            }
            if texts.is_valid(row) {
                let bad = |error| Error::internal(format!("measures cannot be read: {error}"));
                let part: Groups = serde_json::from_str(texts.value(row)).map_err(bad)?;
                match &mut measures {
                    Some(sum) => sum.merge(&part),
                    none => *none = Some(part),
                }
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((files, measures))
}

/// Writes the tables of a partition: one into the folder of the release, two into a folder each. Also returns the measures
/// that came with their rows.
async fn write_tables(
    Tables { pump, streams, measures }: Tables<impl Future<Output = ()>>,
    target: &Sink,
    stem: &str,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<(Vec<WrittenFile>, Vec<String>)> {
    let below = |folder: &str| Sink { folder: target.folder.clone().join(folder), ..target.clone() };
    // Progress counts the rows of people.
    let uncounted = BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let other = reservation.new_empty();
    let mut streams = streams.into_iter();
    let written = match (streams.next(), streams.next()) {
        (Some(rows), None) => {
            let (_, written) = futures::join!(pump, write_rows(rows, target, stem, metrics, reservation));
            written?
        }
        (Some(qit), Some(st)) => {
            let (left, right) = (below(QIT), below(ST));
            let (_, qit, st) = futures::join!(
                pump,
                write_rows(qit, &left, stem, metrics, reservation),
                write_rows(st, &right, stem, &uncounted, &other),
            );
            [qit?, st?].concat()
        }
        (None, _) => return Err(Error::internal("a release without a table")),
    };
    let measures = measures.lock().map_err(|_| Error::internal("measures are poisoned"))?.clone();
    Ok((written, measures))
}

/// Rows that the Parquet writer gets at once.
const ROWS_AT_ONCE: usize = 8192;

async fn write_rows(
    mut input: SendableRecordBatchStream,
    target: &Sink,
    stem: &str,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<Vec<WrittenFile>> {
    let mut open: Option<File> = None;
    let schema = input.schema();
    let folders = Folders::new(&schema, &target.partition_by)?;
    let mut written = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = RecordBatch::try_new(Arc::clone(&schema), batch?.columns().to_vec())?;
        let batch = if faults::ENABLED { planted::distort_batch(&batch)? } else { batch };
        for (folder, rows) in folders.split_by_folder(&batch)? {
            if let Some(file) = open.take_if(|file| file.folder != folder) {
                written.push(close_file(file).await?);
            }
            let file = match &mut open {
                Some(file) => file,
                none => {
                    let name = format!("{stem}-{:03}.parquet", written.len());
                    none.insert(File::create(target, folder, name, folders.schema())?)
                }
            };
            let timer = metrics.elapsed_compute().timer();
            // The writer splits what it is given into row groups by calling itself, so it gets no more than a few.
            for from in (0..rows.num_rows()).step_by(ROWS_AT_ONCE) {
                file.writer.write(&rows.slice(from, ROWS_AT_ONCE.min(rows.num_rows() - from))).await?;
            }
            // A row group is built in memory; when there is none left, it ends early.
            if reservation.try_resize(file.writer.memory_size()).is_err() {
                file.writer.flush().await?;
                reservation.resize(file.writer.memory_size());
            }
            timer.done();
            file.rows += rows.num_rows();
            metrics.record_output(rows.num_rows());
            if let Some(full) = open.take_if(|file| file.is_full(target)) {
                written.push(close_file(full).await?);
            }
        }
    }
    if let Some(file) = open.take() {
        written.push(close_file(file).await?);
    }
    Ok(written)
}

/// A file that is being written.
struct File {
    /// The folder columns of its rows.
    folder: Vec<String>,
    path: Path,
    writer: AsyncArrowWriter<Upload>,
    rows: usize,
}

impl File {
    fn create(target: &Sink, folder: Vec<String>, name: String, schema: &SchemaRef) -> Result<Self> {
        let path = folder.iter().chain([&name]).fold(target.folder.clone(), |path, part| path.join(part.as_str()));
        let object = target.uploads.begin_upload(&target.store, &path);
        let mut properties = target.properties.clone();
        add_encoded_arrow_schema_to_metadata(&stored_schema(schema), &mut properties);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = AsyncArrowWriter::try_new_with_options(object, Arc::clone(schema), options)?;
        Ok(Self { folder, path, writer, rows: 0 })
    }

    fn is_full(&self, target: &Sink) -> bool {
        let size = self.writer.bytes_written() + self.writer.in_progress_size();
        self.rows >= target.file_rows || size as u64 >= target.file_size
    }
}

async fn close_file(mut file: File) -> Result<WrittenFile> {
    file.writer.finish().await?;
    let size = file.writer.bytes_written() as u64;
    let rows = file.rows + usize::from(Fault::FileCount.is_planted());
    Ok(WrittenFile { path: file.path.to_string(), rows: rows as u64, size })
}

/// How rows are spread over folders.
struct Folders {
    /// Places of the columns that name folders, outermost first, and their names.
    by: Vec<(usize, String)>,
    /// Places of the columns that stay in the files.
    rest: Vec<usize>,
    schema: SchemaRef,
}

impl Folders {
    fn new(schema: &SchemaRef, columns: &[String]) -> Result<Self> {
        let place = |name: &String| Ok((schema.index_of(name)?, name.clone()));
        let by = columns.iter().map(place).collect::<Result<Vec<_>>>()?;
        let rest: Vec<usize> =
            (0..schema.fields().len()).filter(|column| by.iter().all(|(other, _)| other != column)).collect();
        Ok(Self { by, schema: Arc::new(schema.project(&rest)?), rest })
    }

    /// The columns of the files.
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a batch by folder, which lie one after the other.
    fn split_by_folder(&self, batch: &RecordBatch) -> Result<Vec<(Vec<String>, RecordBatch)>> {
        if self.by.is_empty() {
            return Ok(vec![(Vec::new(), batch.clone())]);
        }
        let keys: Vec<ArrayRef> = self.by.iter().map(|(column, _)| Arc::clone(batch.column(*column))).collect();
        let texts = keys.iter().map(|key| cast(key, &DataType::Utf8)).collect::<Result<Vec<_>, _>>()?;
        let rows = batch.project(&self.rest)?;
        let mut parts = Vec::new();
        for range in arrow_partition(&keys)?.ranges() {
            let mut names = Vec::with_capacity(texts.len());
            for ((_, column), text) in self.by.iter().zip(&texts) {
                let text = text.as_string::<i32>();
                let value = text.is_valid(range.start).then(|| text.value(range.start));
                names.push(folder_name(column, value)?);
            }
            parts.push((names, rows.slice(range.start, range.len())));
        }
        Ok(parts)
    }
}

/// A name that no other run has, on this machine or on another that shares the folder.
pub(crate) fn unique_name() -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&jiff::Timestamp::now().as_nanosecond().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.update(&fastrand::u64(..).to_le_bytes());
    hasher.finalize().to_hex()[..12].to_owned()
}
