//! Tables that a night works with: private files in the spill folder of the run, which go when it ends.
//!
//! They are joined by sorting and merging, which spills, and never by a table of all subjects in memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::datasource::MemTable;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::schema::types::ColumnPath;
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionContext};
use futures::TryStreamExt;

use crate::error::{Error, Result, io_reason};
use crate::plan::join_parts;

/// Rows of a row group: few, because a group is built in memory that nobody has set aside.
const ROW_GROUP_ROWS: usize = 1 << 15;

/// Most rows of a side of a join that are held in memory.
const MAX_HELD: u64 = 250_000;

/// A session with tables of its own.
pub(crate) struct Scratch {
    folder: PathBuf,
    context: SessionContext,
}

impl Scratch {
    /// An empty one in a folder of raw data.
    pub(crate) fn create(session: &SessionContext, spill: &Path) -> Result<Self> {
        let folder = spill.join("series");
        std::fs::create_dir_all(&folder).map_err(|error| unwritable_file(&folder, &error))?;
        let mut builder = SessionStateBuilder::new_from_existing(session.state())
            .with_catalog_list(Arc::new(MemoryCatalogProviderList::new()));
        let config = builder.config().get_or_insert_default();
        config.options_mut().optimizer.prefer_hash_join = false;
        config.options_mut().catalog.create_default_catalog_and_schema = true;
        Ok(Self { folder, context: SessionContext::new_with_state(builder.build()) })
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The session.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// A query over the tables.
    pub(crate) async fn sql(&self, query: &str) -> Result<DataFrame> {
        Ok(self.context.sql(query).await?)
    }

    /// A table.
    pub(crate) async fn table(&self, name: &str) -> Result<DataFrame> {
        Ok(self.context.table(name).await?)
    }

    /// Names a query, which runs whenever it is asked.
    pub(crate) fn define_view(&self, name: &str, rows: DataFrame) -> Result<()> {
        self.context.register_table(name, rows.into_view())?;
        Ok(())
    }

    /// Names some rows in memory, which are few.
    pub(crate) fn hold_rows(&self, name: &str, rows: RecordBatch) -> Result<()> {
        self.context.register_table(name, Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?))?;
        Ok(())
    }

    /// Runs a query once and names its rows.
    pub(crate) async fn keep_rows(&self, name: &str, rows: DataFrame) -> Result<()> {
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let streams = rows.execute_stream_partitioned().await?;
        self.keep_streams(name, schema, streams).await
    }

    /// Runs a plan once and names its rows.
    pub(crate) async fn keep_plan(
        &self,
        name: &str,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<()> {
        let schema = plan.schema();
        self.keep_streams(name, schema, execute_stream_partitioned(plan, context)?).await
    }

    async fn keep_streams(&self, name: &str, schema: SchemaRef, streams: Vec<SendableRecordBatchStream>) -> Result<()> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable_file(&folder, &error))?;
        let parts = streams.into_iter().enumerate().map(|(number, mut stream)| {
            let file = ScratchFile::create(&folder, number, &schema);
            async move {
                let mut file = file?;
                while let Some(batch) = stream.try_next().await? {
                    file.write_rows(&batch)?;
                }
                file.close()
            }
        });
        join_parts("writing a private table", parts.collect::<Vec<_>>(), |()| Ok(())).await?;
        self.name_folder(name, &schema).await
    }

    /// A file for a table that is written row by row; [`name_folder`](Self::name_folder) names it.
    pub(crate) fn create_file(&self, name: &str, schema: &SchemaRef) -> Result<ScratchFile> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable_file(&folder, &error))?;
        ScratchFile::create(&folder, 0, schema)
    }

    /// Names the files that were written for a table.
    pub(crate) async fn name_folder(&self, name: &str, schema: &SchemaRef) -> Result<()> {
        let folder = self.folder.join(name);
        let options = ParquetReadOptions::default().schema(schema);
        self.context.register_parquet(name, folder.to_string_lossy(), options).await?;
        Ok(())
    }

    /// The rows of a query in the order in which they lie in its file.
    pub(crate) async fn stream_in_order(rows: DataFrame) -> Result<SendableRecordBatchStream> {
        let (mut state, plan) = rows.into_parts();
        state.config_mut().options_mut().execution.target_partitions = 1;
        Ok(DataFrame::new(state, plan).execute_stream().await?)
    }

    /// A session that joins by a table of the left side in memory where it has no more rows than that, and by sorting both
    /// sides otherwise.
    pub(crate) fn joining(&self, rows: u64) -> SessionContext {
        let mut state = self.context.state();
        let is_small = rows <= MAX_HELD;
        let optimizer = &mut state.config_mut().options_mut().optimizer;
        optimizer.prefer_hash_join = is_small;
        if is_small {
            optimizer.hash_join_single_partition_threshold = usize::MAX;
            optimizer.hash_join_single_partition_threshold_rows = usize::MAX;
        }
        SessionContext::new_with_state(state)
    }

    /// The only row of a query of whole numbers; null counts as 0.
    pub(crate) async fn query_numbers(&self, query: &str) -> Result<Vec<u64>> {
        let rows = self.sql(query).await?.collect().await?;
        let row = rows.iter().find(|batch| batch.num_rows() > 0);
        let row = row.ok_or_else(|| Error::internal("a count without a row"))?;
        let number = |column: &_| {
            let column: &dyn datafusion::arrow::array::Array = std::convert::AsRef::as_ref(column);
            column.as_primitive_opt::<Int64Type>().and_then(|column| column.iter().next().flatten()).unwrap_or(0) as u64
        };
        Ok(row.columns().iter().map(number).collect())
    }
}

/// A private file that is being written.
pub(crate) struct ScratchFile {
    path: PathBuf,
    schema: SchemaRef,
    writer: ArrowWriter<File>,
}

impl ScratchFile {
    fn create(folder: &Path, number: usize, schema: &SchemaRef) -> Result<Self> {
        let path = folder.join(format!("part-{number:05}.parquet"));
        let file = File::create(&path).map_err(|error| unwritable_file(&path, &error))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(file_properties(schema)))?;
        Ok(Self { path, schema: Arc::clone(schema), writer })
    }

    /// Adds rows.
    pub(crate) fn write_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?;
        self.writer.write(&rows).map_err(|error| {
            Error::resources(format!(
                "{} cannot be written: {error}; choose another place with --spill-dir",
                self.path.display()
            ))
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the file.
    pub(crate) fn close(self) -> Result<()> {
        self.writer.close()?;
        Ok(())
    }
}

/// How private files are written.
fn file_properties(schema: &SchemaRef) -> WriterProperties {
    // Statistics of a file with one value stand for every row of it, also where that value is not a number.
    let mut properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    // No two digests are alike.
    for field in schema.fields().iter().filter(|field| matches!(field.data_type(), DataType::FixedSizeBinary(_))) {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), false);
    }
    properties.build()
}

pub(crate) fn unwritable_file(path: &Path, error: &std::io::Error) -> Error {
    Error::resources(format!(
        "{} cannot be written: {}; choose another place with --spill-dir",
        path.display(),
        io_reason(error)
    ))
}
