//! A table over a fixed list of files, some of whose columns are folder names.
//!
//! DataFusion's listing table would list the folder again; this one reads the files that were found, so that what is
//! read is what the manifest says. Filters on folder columns leave out whole files.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::{expr_applicable_for_cols, filter_partitioned_file};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use object_store::ObjectMeta;

use super::partitions::Partitions;

/// The files and how to read them.
#[derive(Debug)]
pub(crate) struct FilesTable {
    store: ObjectStoreUrl,
    format: Arc<dyn FileFormat>,
    schema: TableSchema,
    files: Vec<PartitionedFile>,
}

impl FilesTable {
    pub(crate) fn new(
        store: ObjectStoreUrl,
        format: Arc<dyn FileFormat>,
        file_schema: SchemaRef,
        files: Vec<ObjectMeta>,
        partitions: Partitions,
    ) -> Self {
        let files = files
            .into_iter()
            .zip(partitions.values)
            .map(|(file, values)| PartitionedFile::new_from_meta(file).with_partition_values(values))
            .collect();
        let schema = TableSchema::builder(file_schema).with_table_partition_cols(partitions.fields).build();
        Self { store, format, schema, files }
    }

    fn by_folder(&self, filter: &Expr) -> bool {
        let columns: Vec<&str> = self.schema.table_partition_cols().iter().map(|field| field.name().as_str()).collect();
        expr_applicable_for_cols(&columns, filter)
    }

    /// The files that a filter on folder columns leaves.
    fn choose_files(&self, filters: &[Expr]) -> Result<Vec<PartitionedFile>> {
        let filters: Vec<Expr> = filters.iter().filter(|filter| self.by_folder(filter)).cloned().collect();
        let schema = DFSchema::try_from(Schema::new(self.schema.table_partition_cols().clone()))?;
        let mut chosen = Vec::new();
        for file in &self.files {
            chosen.extend(filter_partitioned_file(file.clone(), &filters, &schema)?);
        }
        Ok(chosen)
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.by_folder(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.choose_files(filters)?;
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema(), projection)?)));
        }
        let groups = FileGroup::new(files).split_files(state.config().target_partitions());
        let source = self.format.file_source(self.schema.clone());
        let config = FileScanConfigBuilder::new(self.store.clone(), source)
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        self.format.create_physical_plan(state, config).await
    }
}
