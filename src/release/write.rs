//! Writes every partition into Parquet files of its own and emits one row per file. The rows are small, so the plan
//! is the same on one machine and on many: executors write, the driver commits.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::{cast, partition as arrow_partition};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::AsyncArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use super::anatomy;
use super::source::partitions::folder;
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
    /// Bytes after which a new file is begun.
    pub(super) file_size: u64,
    /// Columns whose values name folders, and are left out of the files.
    pub(super) partition_by: Vec<String>,
    /// Whether the rows are two tables side by side.
    pub(super) tables: bool,
}

/// Brings rows of the same folder together: into one partition, one after the other, so that a folder is written by
/// one writer and not in many small files.
pub(super) fn by_folder(rows: Arc<dyn ExecutionPlan>, columns: &[String]) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    let keys =
        columns.iter().map(|name| Ok(Arc::new(Column::new_with_schema(name, &schema)?) as Arc<dyn PhysicalExpr>));
    let keys = keys.collect::<DataFusionResult<Vec<_>>>()?;
    let Some(order) = LexOrdering::new(keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)))) else {
        return Ok(rows);
    };
    let partitions = rows.output_partitioning().partition_count();
    let exchanged: Arc<dyn ExecutionPlan> = match partitions {
        0 | 1 => rows,
        _ => Arc::new(RepartitionExec::try_new(rows, Partitioning::Hash(keys, partitions))?),
    };
    Ok(Arc::new(SortExec::new(order, exchanged).with_preserve_partitioning(true)))
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
        write!(f, "WriteExec: folder={}", self.target.folder)?;
        match self.target.partition_by.as_slice() {
            [] => Ok(()),
            columns => write!(f, ", partition_by=[{}]", columns.join(", ")),
        }
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
    let folders = Folders::new(&schema, &target.partition_by)?;
    let mut written = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = to_stored(&batch?, &schema)?;
        for (folder, rows) in folders.split(&batch)? {
            if let Some(file) = open.take_if(|file| file.folder != folder) {
                written.push(close(file).await?);
            }
            let file = match &mut open {
                Some(file) => file,
                none => {
                    let name = format!("part-{partition:05}-{:03}.parquet", written.len());
                    none.insert(File::create(target, folder, name, folders.schema())?)
                }
            };
            let timer = metrics.elapsed_compute().timer();
            file.writer.write(&rows).await?;
            // A row group is built in memory; when there is none left, it ends early.
            if reservation.try_resize(file.writer.memory_size()).is_err() {
                file.writer.flush().await?;
                reservation.resize(file.writer.memory_size());
            }
            timer.done();
            file.rows += rows.num_rows();
            metrics.record_output(rows.num_rows());
            if let Some(full) = open.take_if(|file| file.is_full(target)) {
                written.push(close(full).await?);
            }
        }
    }
    if let Some(file) = open.take() {
        written.push(close(file).await?);
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
    fn create(target: &Target, folder: Vec<String>, name: String, schema: &SchemaRef) -> Result<Self> {
        let path = folder.iter().chain([&name]).fold(target.folder.clone(), |path, part| path.join(part.as_str()));
        let object = target.uploads.begin(&target.store, &path);
        let writer = AsyncArrowWriter::try_new(object, Arc::clone(schema), Some(target.properties.clone()))?;
        Ok(Self { folder, path, writer, rows: 0 })
    }

    fn is_full(&self, target: &Target) -> bool {
        let size = self.writer.bytes_written() + self.writer.in_progress_size();
        self.rows >= target.file_rows || size as u64 >= target.file_size
    }
}

async fn close(mut file: File) -> Result<Written> {
    file.writer.finish().await?;
    let size = file.writer.bytes_written() as u64;
    Ok(Written { path: file.path.to_string(), rows: file.rows as u64, size })
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
    fn split(&self, batch: &RecordBatch) -> Result<Vec<(Vec<String>, RecordBatch)>> {
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
                if value == Some("") {
                    return Err(Error::Input(format!(
                        "output.partition-by: column `{column}` holds an empty text, which cannot name a folder; make it \
                         null in source.sql, or choose another column"
                    )));
                }
                names.push(folder(column, value));
            }
            parts.push((names, rows.slice(range.start, range.len())));
        }
        Ok(parts)
    }
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
