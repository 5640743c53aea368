//! Writes every partition into Parquet files of its own and emits one row per file. The rows are small, so the plan
//! is the same on one machine and on many: executors write, the driver commits.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::{cast, partition as arrow_partition};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{AsyncArrowWriter, add_encoded_arrow_schema_to_metadata};
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
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
use serde::{Deserialize, Serialize};

use super::anatomy;
use super::session::unique_name;
use super::source::partitions::folder;
use super::upload::{Upload, Uploads};
use crate::error::{Error, Result};
use crate::job::{Compression, Output};
use crate::measure::Groups;
use crate::operator::AnonymizeExec;

/// Where and how files are written: plain data, which can be sent to where the writing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Address of the store, by which the session knows it.
    pub(super) store: String,
    /// The folder in the store.
    pub(super) folder: String,
    pub(super) output: Output,
    /// What every file says of itself.
    pub(super) metadata: Vec<(String, String)>,
    /// Whether the rows are two tables side by side.
    pub(super) tables: bool,
    /// Whether other processes write into the same folder: then files have names that nobody else chooses, also not when
    /// the same rows are written again, and measures are sent along with them.
    pub(super) shared: bool,
}

impl Target {
    fn open(&self, context: &TaskContext, uploads: &Uploads) -> Result<Sink> {
        let store = context.runtime_env().object_store(ObjectStoreUrl::parse(&self.store)?)?;
        let metadata = self.metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(codec(&self.output)?)
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
    fn stem(&self, partition: usize) -> String {
        if self.shared { format!("part-{}", unique_name()) } else { format!("part-{partition:05}") }
    }
}

fn codec(output: &Output) -> Result<Codec> {
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
    /// Where uploads are seen to their end, whatever becomes of their writers.
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
pub(super) struct Written {
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
        let properties = PlanProperties::new(
            EquivalenceProperties::new(file_schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            input.boundedness(),
        );
        Self { input, target, uploads, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties) }
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
        match self.target.output.partition_by.as_slice() {
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
        Ok(Arc::new(Self::new(input, self.target.clone(), self.uploads.clone())))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("WriteExec[{partition}]")).register(context.memory_pool());
        let sink = self.target.open(&context, &self.uploads).map_err(Error::into_datafusion)?;
        let below = Arc::clone(&self.input);
        let input = self.input.execute(partition, context)?;
        let (tables, shared, stem) = (self.target.tables, self.target.shared, self.target.stem(partition));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let stream = futures::stream::once(async move {
            let written = if tables {
                write_tables(input, &sink, &stem, &metrics, &reservation).await
            } else {
                write(input, &sink, &stem, &metrics, &reservation).await
            };
            let measures = if shared { measures_of(&below, partition) } else { None };
            written.and_then(|written| told(&written, measures.as_ref())).map_err(Error::into_datafusion)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(file_schema(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// What a partition tells when it has written its files.
fn told(written: &[Written], measures: Option<&Groups>) -> Result<RecordBatch> {
    let text = |groups| serde_json::to_string(groups).map_err(|error| Error::Internal(error.to_string()));
    let measures = measures.map(text).transpose()?;
    let files = written.iter().map(|file| (Some(file.path.as_str()), file.rows, file.size, None));
    let rows: Vec<_> = files.chain(measures.as_deref().map(|text| (None, 0, 0, Some(text)))).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0).collect::<StringArray>()),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(rows.iter().map(|row| row.3).collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(file_schema(), columns)?)
}

/// What all partitions have told: the files by path, and the sum of the measures that were sent along.
pub(super) fn gather(batches: &[RecordBatch]) -> Result<(Vec<Written>, Option<Groups>)> {
    let (mut files, mut measures) = (Vec::new(), None::<Groups>);
    for batch in batches {
        let (paths, texts) = (batch.column(0).as_string::<i32>(), batch.column(3).as_string::<i32>());
        let number = |column: usize, row: usize| batch.column(column).as_primitive::<UInt64Type>().value(row);
        for row in 0..batch.num_rows() {
            if paths.is_valid(row) {
                files.push(Written { path: paths.value(row).to_owned(), rows: number(1, row), size: number(2, row) });
            }
            if texts.is_valid(row) {
                let bad = |error| Error::Internal(format!("measures cannot be read: {error}"));
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

/// Measures of one partition of the anonymising node below, which must not lie beyond an exchange.
fn measures_of(plan: &Arc<dyn ExecutionPlan>, partition: usize) -> Option<Groups> {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(node) => node.measures_of(partition),
        None => plan.children().into_iter().find_map(|child| measures_of(child, partition)),
    }
}

/// Writes rows that are two tables side by side into a folder for each.
async fn write_tables(
    input: SendableRecordBatchStream,
    target: &Sink,
    stem: &str,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<Vec<Written>> {
    let (pump, qit, st) = anatomy::part(input)?;
    let below = |folder: &str| Sink { folder: target.folder.clone().join(folder), ..target.clone() };
    let (left, right) = (below(anatomy::QIT), below(anatomy::ST));
    // Progress counts the rows of people.
    let uncounted = BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let other = reservation.new_empty();
    let (_, qit, st) = futures::join!(
        pump,
        write(qit, &left, stem, metrics, reservation),
        write(st, &right, stem, &uncounted, &other),
    );
    let mut written = qit?;
    written.extend(st?);
    Ok(written)
}

async fn write(
    mut input: SendableRecordBatchStream,
    target: &Sink,
    stem: &str,
    metrics: &BaselineMetrics,
    reservation: &MemoryReservation,
) -> Result<Vec<Written>> {
    let mut open: Option<File> = None;
    let schema = input.schema();
    let folders = Folders::new(&schema, &target.partition_by)?;
    let mut written = Vec::new();
    while let Some(batch) = input.next().await {
        let batch = RecordBatch::try_new(Arc::clone(&schema), batch?.columns().to_vec())?;
        for (folder, rows) in folders.split(&batch)? {
            if let Some(file) = open.take_if(|file| file.folder != folder) {
                written.push(close(file).await?);
            }
            let file = match &mut open {
                Some(file) => file,
                none => {
                    let name = format!("{stem}-{:03}.parquet", written.len());
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
    fn create(target: &Sink, folder: Vec<String>, name: String, schema: &SchemaRef) -> Result<Self> {
        let path = folder.iter().chain([&name]).fold(target.folder.clone(), |path, part| path.join(part.as_str()));
        let object = target.uploads.begin(&target.store, &path);
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
