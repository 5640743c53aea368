//! Writes every partition into Parquet files of its own and emits one row per file. The rows are small, so the plan
//! is the same on one machine and on many: executors write, the driver commits.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::AsyncArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use super::anatomy;
use super::upload::{Upload, Uploads};
use crate::error::{Error, Result};

/// Where and how files are written.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Where uploads are seen to their end, whatever becomes of their writers.
    pub(super) uploads: Uploads,
    pub(super) folder: Path,
    pub(super) properties: WriterProperties,
    /// Rows after which a new file is begun.
    pub(super) file_rows: usize,
    /// Whether the rows are two tables side by side.
    pub(super) tables: bool,
}

/// One written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) rows: u64,
    pub(super) size: u64,
}

/// Writes its input.
#[derive(Debug)]
pub(super) struct WriteExec {
    input: Arc<dyn ExecutionPlan>,
    target: Target,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl WriteExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, target: Target) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(file_schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            input.boundedness(),
        );
        Self { input, target, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties) }
    }
}

/// The schema of the rows that are emitted.
fn file_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("rows", DataType::UInt64, false),
        Field::new("size", DataType::UInt64, false),
    ]))
}

/// The published schema as files carry it: view types are an affair of this process, not of readers.
pub(super) fn stored_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_data_type(stored(field.data_type())));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn stored(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(stored(item.data_type()))))
        }
        DataType::LargeList(item) => {
            DataType::LargeList(Arc::new(item.as_ref().clone().with_data_type(stored(item.data_type()))))
        }
        DataType::Struct(fields) => DataType::Struct(
            fields.iter().map(|field| field.as_ref().clone().with_data_type(stored(field.data_type()))).collect(),
        ),
        other => other.clone(),
    }
}

impl DisplayAs for WriteExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteExec: folder={}", self.target.folder)
    }
}

impl ExecutionPlan for WriteExec {
    fn name(&self) -> &str {
        "WriteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("WriteExec needs an input") };
        Ok(Arc::new(Self::new(input, self.target.clone())))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("WriteExec[{partition}]")).register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        let target = self.target.clone();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let stream = futures::stream::once(async move {
            let written = if target.tables {
                write_tables(input, &target, partition, &metrics, &reservation).await
            } else {
                write(input, &target, partition, &metrics, &reservation).await
            };
            let written = written.map_err(Error::into_datafusion)?;
            let paths: ArrayRef = Arc::new(StringArray::from_iter_values(written.iter().map(|file| &file.path)));
            let rows: ArrayRef = Arc::new(UInt64Array::from_iter_values(written.iter().map(|file| file.rows)));
            let sizes: ArrayRef = Arc::new(UInt64Array::from_iter_values(written.iter().map(|file| file.size)));
            Ok(RecordBatch::try_new(file_schema(), vec![paths, rows, sizes])?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(file_schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Writes rows that are two tables side by side into a folder for each.
async fn write_tables(
    input: SendableRecordBatchStream,
    target: &Target,
    partition: usize,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<Vec<Written>> {
    let (pump, qit, st) = anatomy::part(input)?;
    let below = |folder: &str| Target { folder: target.folder.clone().join(folder), ..target.clone() };
    let (left, right) = (below(anatomy::QIT), below(anatomy::ST));
    // Progress counts the rows of people.
    let uncounted = BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), partition);
    let other = reservation.new_empty();
    let (_, qit, st) = futures::join!(
        pump,
        write(qit, &left, partition, metrics, reservation),
        write(st, &right, partition, &uncounted, &other),
    );
    let mut written = qit?;
    written.extend(st?);
    Ok(written)
}

async fn write(
    mut input: SendableRecordBatchStream,
    target: &Target,
    partition: usize,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<Vec<Written>> {
    let mut open: Option<File> = None;
    let schema = stored_schema(&input.schema());
    let mut written = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = to_stored(&batch?, &schema)?;
        let (_, writer, rows) = match &mut open {
            Some(file) => file,
            none => {
                let path = target.folder.clone().join(format!("part-{partition:05}-{:03}.parquet", written.len()));
                let object = target.uploads.begin(&target.store, &path);
                let writer = AsyncArrowWriter::try_new(object, Arc::clone(&schema), Some(target.properties.clone()))?;
                none.insert((path, writer, 0))
            }
        };
        let timer = metrics.elapsed_compute().timer();
        writer.write(&batch).await?;
        // A row group is built in memory; when there is none left, it ends early.
        if reservation.try_resize(writer.memory_size()).is_err() {
            writer.flush().await?;
            reservation.resize(writer.memory_size());
        }
        timer.done();
        *rows += batch.num_rows();
        metrics.record_output(batch.num_rows());
        if *rows >= target.file_rows
            && let Some(file) = open.take()
        {
            written.push(close(file).await?);
        }
    }
    if let Some(file) = open.take() {
        written.push(close(file).await?);
    }
    Ok(written)
}

/// A file that is being written, and its rows so far.
type File = (Path, AsyncArrowWriter<Upload>, usize);

async fn close((path, mut writer, rows): File) -> Result<Written> {
    writer.finish().await?;
    Ok(Written { path: path.to_string(), rows: rows as u64, size: writer.bytes_written() as u64 })
}

fn to_stored(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        })
        .collect::<Result<_, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
