//! Anonymised rows, as a stream that Python can read more than once.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ffi::FFI_ArrowSchema;
use datafusion::arrow::ffi_stream::FFI_ArrowArrayStream;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use throng::internals::OpenedJob;
use throng::releases::SpillFolder;
use throng::{AnonymizeExt, Error, ErrorKind};
use tokio::runtime::Runtime;

use crate::errors::to_exception;
use crate::input::{Rows, open_stream};
use crate::policy::Policy;
use crate::process::{Owned, runtime, wait_for, watch_signals};
use crate::session::Limits;

/// Surveys the rows of a Python object and returns them anonymised, to be grouped when they are read.
#[pyfunction]
pub(crate) fn anonymize(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    policy: &Policy,
    limits: Limits,
) -> PyResult<AnonymizedRows> {
    let options = limits.session_options()?;
    let (reader, in_memory) = open_stream(data)?;
    let (context, spill) = options.open().map_err(to_exception)?;
    let rows = py.detach(|| Rows::read_stream(reader, in_memory, spill.path(), options.spill_limit))?;
    let partitions = context.state().config().target_partitions();
    let table = rows.to_table(partitions).map_err(to_exception)?;
    let policy = Arc::clone(&policy.policy);
    let session = context.clone();
    let plan = wait_for(py, || async move {
        let surveyed = session.read_table(table)?.anonymize_surveyed(&policy).await?;
        surveyed.create_physical_plan().await
    })?;
    let schema = plan.schema();
    let parts = Parts { context, plan, schema, finished: Mutex::default(), _rows: rows, _spill: spill };
    Ok(AnonymizedRows { parts: Arc::new(Owned::new(parts)) })
}

/// What a stream needs as long as it is read.
struct Parts {
    context: SessionContext,
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    /// A plan that has run to its end.
    finished: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    /// Before the folder that may hold them.
    _rows: Rows,
    _spill: SpillFolder,
}

impl Parts {
    /// Starts the second pass.
    fn open_stream(&self) -> throng::Result<(Arc<dyn ExecutionPlan>, SendableRecordBatchStream)> {
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        let stream = execute_stream(Arc::clone(&plan), self.context.task_ctx())?;
        Ok((plan, stream))
    }

    fn note_finished(&self, plan: Arc<dyn ExecutionPlan>) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    }
}

/// Anonymised rows.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct AnonymizedRows {
    parts: Arc<Owned<Parts>>,
}

#[pymethods]
impl AnonymizedRows {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol asks for the nearest schema that can be given: the rows' own.
        drop(requested_schema);
        export_stream(py, Box::new(self.open_reader(py)?))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.parts.schema.as_ref());
        let schema = schema.map_err(|error| to_exception(datafusion::error::DataFusionError::from(error)))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Reads all rows.
    fn collect(&self, py: Python<'_>) -> PyResult<Batches> {
        let parts = Arc::clone(&self.parts);
        let batches = wait_for(py, || async move {
            let (plan, stream) = parts.open_stream()?;
            let batches: Vec<RecordBatch> = stream.try_collect().await?;
            parts.note_finished(plan);
            Ok::<_, Error>(batches)
        })?;
        Ok(Batches { schema: Arc::clone(&self.parts.schema), batches })
    }

    /// Returns scores and counts as JSON; reads the rows if nobody has read them to their end yet.
    fn measure(&self, py: Python<'_>) -> PyResult<String> {
        let finished = || self.parts.finished.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if finished().is_none() {
            let parts = Arc::clone(&self.parts);
            wait_for(py, || async move {
                let (plan, mut stream) = parts.open_stream()?;
                while stream.next().await.transpose()?.is_some() {}
                parts.note_finished(plan);
                Ok::<_, Error>(())
            })?;
        }
        let scores = finished().as_ref().map_or(Ok(None), OpenedJob::stream_scores).map_err(to_exception)?;
        Ok(scores.unwrap_or_default().to_string())
    }

    /// Returns whether the rows have been read to their end.
    #[getter]
    fn is_finished(&self) -> bool {
        self.parts.finished.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the plan as text.
    fn explain(&self) -> String {
        displayable(self.parts.plan.as_ref()).indent(false).to_string()
    }
}

impl AnonymizedRows {
    fn open_reader(&self, py: Python<'_>) -> PyResult<Reader> {
        let runtime = runtime().map_err(to_exception)?;
        let opened = py.detach(|| {
            let _inside = runtime.enter();
            self.parts.open_stream()
        });
        let (plan, stream) = opened.map_err(to_exception)?;
        let open = Owned::new(Open { stream: Mutex::new(Some(stream)), plan, runtime });
        Ok(Reader { open, parts: Arc::clone(&self.parts) })
    }
}

/// A stream, and the threads that fill it.
struct Open {
    stream: Mutex<Option<SendableRecordBatchStream>>,
    plan: Arc<dyn ExecutionPlan>,
    runtime: Arc<Runtime>,
}

/// Anonymised rows on their way to whoever imported the stream.
struct Reader {
    open: Owned<Open>,
    parts: Arc<Owned<Parts>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open.is_own() {
            let forked = "the stream was opened before this process was forked; open it again";
            return Some(Err(ArrowError::from_external_error(Box::new(Error::new(ErrorKind::Input, forked)))));
        }
        let mut held = self.open.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = held.as_mut()?;
        let next = match self.open.runtime.block_on(watch_signals(stream.next())) {
            Ok(Some(Ok(batch))) => return Some(Ok(batch)),
            Ok(Some(Err(error))) => Some(Err(ArrowError::from_external_error(Box::new(Error::from(error))))),
            Ok(None) => {
                self.parts.note_finished(Arc::clone(&self.open.plan));
                None
            }
            Err(raised) => Some(Err(ArrowError::from_external_error(Box::new(raised)))),
        };
        // Whatever ended it, there is no more.
        *held = None;
        next
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.parts.schema)
    }
}

/// Rows in memory.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Batches {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        export_stream(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn export_stream<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}
