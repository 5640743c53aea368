//! The input of a run: one table, or a query over several, as it is now.
//!
//! `files` finds the files of a table, `csv` reads what has no schema of its own, `delta` a version of a Delta
//! table, and `query` lays SQL over them. What was found is part of what a run is, and must still be there when it
//! commits.

mod csv;
#[cfg(feature = "delta")]
pub(crate) mod delta;
mod files;
pub(crate) mod public;
mod query;
pub(crate) mod ranges;
pub(crate) mod scan_statistics;
mod snapshot;

pub(crate) use scan_statistics::DropColumnStatistics;

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::policy::{self, Format, Job, Role};
use crate::source::snapshot::Snapshot;
use crate::storage::{Location, StoreOptions, Stores};
use files::{Files, Shown};

/// The rows of a job.
pub(crate) struct Source {
    spec: policy::Source,
    tables: Vec<(String, Table)>,
    input: Vec<InputTable>,
    /// Whether files may be added while it is read: they are not missed, because the next run reads them.
    may_grow: bool,
}

/// A file of a source whose files are read once.
#[derive(Debug, Clone)]
pub(crate) struct InputFile {
    /// Its name as people may see it.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) path: String,
    /// What changes when it is written again.
    pub(crate) tag: String,
}

/// One table of the input.
///
/// Not its files: their number and sizes follow the raw rows, and a version tag is a hash of them on many stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputTable {
    /// Where it is, as the job writes it; values of folder columns that are not published are left out.
    pub path: String,
    /// Version of a Delta table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// One table of a source.
enum Table {
    Files(Files),
    #[cfg(feature = "delta")]
    Delta(delta::DeltaInput),
}

impl Source {
    /// Finds the tables of a job's source.
    pub(crate) async fn find(stores: &Stores, base: &LocalPath, job: &Job) -> Result<Self> {
        let kept: Vec<String> =
            job.columns.iter().filter(|(_, column)| column.role == Role::Kept).map(|(name, _)| name.clone()).collect();
        let named: Vec<String> = job.columns.keys().cloned().collect();
        let kept_by_default = job.defaults.as_ref().is_some_and(|defaults| defaults.role == Some(Role::Kept));
        let shown: Shown = Arc::new(move |column| {
            kept.iter().any(|name| name == column) || kept_by_default && !named.iter().any(|name| name == column)
        });
        let may_grow = job.series.as_ref().is_some_and(policy::Series::is_by_file);
        Ok(Self { may_grow, ..Self::open_source(stores, base, &job.source, shown).await? })
    }

    /// Finds the files at a location without a job.
    pub(crate) async fn at_url(stores: &Stores, base: &LocalPath, url: &str) -> Result<Self> {
        Self::with_options(stores, base, url, &StoreOptions::default()).await
    }

    /// Finds the files at a location with store options.
    pub(super) async fn with_options(
        stores: &Stores,
        base: &LocalPath,
        url: &str,
        options: &StoreOptions,
    ) -> Result<Self> {
        let spec = policy::Source { options: options.clone(), ..policy::Source::at_url(url) };
        Self::open_source(stores, base, &spec, Arc::new(|_| false)).await
    }

    async fn open_source(stores: &Stores, base: &LocalPath, source: &policy::Source, shown: Shown) -> Result<Self> {
        let (mut tables, mut input) = (Vec::new(), Vec::new());
        for (key, spec) in source.located_sources() {
            let name = key.rsplit('.').next().unwrap_or_default().to_owned();
            let table = Table::find_table(stores, base, &key, spec, Arc::clone(&shown)).await?;
            input.push(InputTable {
                path: crate::storage::partitions::mask_text(spec.location(), &*shown),
                version: table.version(),
            });
            tables.push((name, table));
        }
        Ok(Self { spec: source.clone(), tables, input, may_grow: false })
    }

    /// Where the tables are.
    pub(super) fn locations(&self) -> impl Iterator<Item = &Location> {
        self.tables.iter().map(|(_, table)| table.location())
    }

    /// Returns the tables as they may be shown to everybody.
    pub(crate) fn input(&self) -> &[InputTable] {
        &self.input
    }

    /// Number of files.
    pub(super) fn file_count(&self) -> usize {
        self.tables.iter().map(|(_, table)| table.files().map_or(1, |files| files.found.len())).sum()
    }

    /// Identity of everything that decides which rows there are.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new(&self.spec.describe_reading());
        for (name, table) in &self.tables {
            snapshot.add_table(name);
            match table {
                Table::Files(files) => {
                    let files = files.found.iter().enumerate().map(|(at, file)| (files.file_name(at), file));
                    files.for_each(|(name, file)| snapshot.add_file(&name, file));
                }
                #[cfg(feature = "delta")]
                Table::Delta(table) => snapshot.add_version(&table.identity()),
            }
        }
        snapshot
    }

    /// Fails if a file has changed, or files were added or removed, since they were found.
    pub(crate) async fn ensure_unchanged(&self) -> Result<()> {
        for (_, table) in &self.tables {
            match table {
                Table::Files(files) => ensure_unchanged(files, self.may_grow).await?,
                // A version of a Delta table never changes.
                #[cfg(feature = "delta")]
                Table::Delta(_) => {}
            }
        }
        Ok(())
    }

    /// Returns a scan of all rows.
    pub(crate) async fn scan(&self, context: &SessionContext) -> Result<(LogicalPlan, SchemaRef)> {
        let plan = match &self.spec.sql {
            Some(sql) => {
                for (name, table) in &self.tables {
                    query::register_table(context, name, table.open_table(context).await?)?;
                }
                query::plan_query(context, sql).await?
            }
            None => {
                let Some((_, table)) = self.tables.first() else {
                    return Err(Error::internal("a source without a table"));
                };
                context.read_table(table.open_table(context).await?)?.into_unoptimized_plan()
            }
        };
        let plan = with_usual_columns(plan)?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        Ok((plan, schema))
    }

    /// The files of a source that is a table of files and nothing else.
    pub(crate) fn input_files(&self) -> Result<Vec<InputFile>> {
        let files = self.only_files()?;
        let file = |at: usize| InputFile {
            name: files.file_name(at),
            path: files.found[at].location.to_string(),
            tag: files.version_tag(at),
        };
        Ok((0..files.found.len()).map(file).collect())
    }

    /// Returns a scan of some of these files, with the columns of all.
    pub(crate) async fn scan_files(&self, context: &SessionContext, wanted: &[usize]) -> Result<LogicalPlan> {
        let files = self.only_files()?;
        if wanted.is_empty() {
            return Ok(LogicalPlanBuilder::from(self.scan(context).await?.0).limit(0, Some(0))?.build()?);
        }
        let wanted: Vec<ObjectMeta> = wanted.iter().map(|at| files.found[*at].clone()).collect();
        with_usual_columns(context.read_table(files.table(context, &wanted).await?)?.into_unoptimized_plan())
    }

    fn only_files(&self) -> Result<&Files> {
        match (self.tables.as_slice(), &self.spec.sql) {
            ([(_, Table::Files(files))], None) => Ok(files),
            _ => Err(Error::job(
                "series.subject: names no column, and only files of Parquet or CSV can be known instead; name the columns that \
                 tell subjects apart",
            )),
        }
    }

    /// Adds details to a read error: for a row of a CSV file that cannot be read, which one it is.
    pub(crate) async fn explain_error(&self, error: Error) -> Error {
        if !error.is_unreadable() {
            return self.mask_error(error);
        }
        for (_, table) in &self.tables {
            let Some(files) = table.files() else { continue };
            let Some(csv) = &files.csv else { continue };
            // Without a schema, the failure is about the header, and says so itself.
            let Ok(schema) = csv.infer_schema(files, files.folder_columns()).await else { continue };
            match csv.first_fault(files, &schema).await {
                Ok(Some(fault)) => return Error::input(fault),
                Ok(None) => {}
                Err(other) => tracing::debug!(%other, "the input cannot be searched for the fault"),
            }
        }
        self.mask_error(error)
    }

    /// Removes values of unpublished folder columns from a text that may name files.
    pub(crate) fn mask_text(&self, mut text: String) -> String {
        for (_, table) in &self.tables {
            let Some(files) = table.files() else { continue };
            for folder in files.hidden_values() {
                if let Some((column, _)) = folder.split_once('=') {
                    text = text.replace(&format!("{folder}/"), &format!("{column}=*/"));
                }
            }
        }
        text
    }

    fn mask_error(&self, error: Error) -> Error {
        error.map_message(|text| self.mask_text(text))
    }
}

impl Table {
    async fn find_table(
        stores: &Stores,
        base: &LocalPath,
        key: &str,
        spec: &policy::Source,
        shown: Shown,
    ) -> Result<Self> {
        let format = match spec.declared_format() {
            Some(format) => format,
            None if is_delta(stores, base, spec).await? => Format::Delta,
            None => Format::Parquet,
        };
        match format {
            Format::Parquet | Format::Csv => Files::find_files(stores, base, key, spec, shown).await.map(Self::Files),
            #[cfg(feature = "delta")]
            Format::Delta => delta::DeltaInput::find_table(stores, base, spec).await.map(Self::Delta),
            #[cfg(not(feature = "delta"))]
            Format::Delta => Err(Error::job(format!(
                "{key}: `{}` is a Delta table, which this build of Throng does not support; {}",
                spec.url,
                policy::BUILD
            ))),
        }
    }

    fn location(&self) -> &Location {
        match self {
            Self::Files(files) => &files.location,
            #[cfg(feature = "delta")]
            Self::Delta(table) => table.location(),
        }
    }

    /// The files of a table without a log.
    fn files(&self) -> Option<&Files> {
        match self {
            Self::Files(files) => Some(files),
            #[cfg(feature = "delta")]
            Self::Delta(_) => None,
        }
    }

    /// The version of a table that has versions.
    fn version(&self) -> Option<u64> {
        match self {
            Self::Files(_) => None,
            #[cfg(feature = "delta")]
            Self::Delta(table) => table.version(),
        }
    }

    async fn open_table(&self, context: &SessionContext) -> Result<Arc<dyn TableProvider>> {
        match self {
            Self::Files(files) => files.table(context, &files.found).await,
            #[cfg(feature = "delta")]
            Self::Delta(table) => table.table(context).await,
        }
    }
}

/// Whether a folder holds a Delta log. Reading its files without the log would read what was removed from the table.
async fn is_delta(stores: &Stores, base: &LocalPath, spec: &policy::Source) -> Result<bool> {
    let url = spec.location();
    if files::split_wildcard(url).1.is_some() {
        return Ok(false);
    }
    let location = stores.open(base, url, &spec.options)?;
    let mut log = location.store.list(Some(&location.at("_delta_log")));
    match log.try_next().await {
        Ok(found) => Ok(found.is_some()),
        // What cannot be listed is not a folder, or will be reported when its files are listed.
        Err(_) => Ok(false),
    }
}

/// The plan with columns that a job can name and Parquet can hold.
fn with_usual_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    ensure_distinct_names(&plan)?;
    with_timestamps_for_date64(plan)
}

/// Rejects two columns of one name: a job names columns, and would mean only the first.
fn ensure_distinct_names(plan: &LogicalPlan) -> Result<()> {
    let fields = plan.schema().fields();
    let twice = |at: &usize| fields[..*at].iter().any(|other| other.name() == fields[*at].name());
    match (0..fields.len()).find(twice) {
        None => Ok(()),
        Some(at) => Err(Error::input(format!(
            "the source holds two columns named `{}`; give one of them another name, in source.sql by AS",
            fields[at].name()
        ))),
    }
}

/// Reads dates in milliseconds as timestamps in milliseconds, which are the same numbers. Parquet has no type for them: they
/// would be published as plain integers.
fn with_timestamps_for_date64(plan: LogicalPlan) -> Result<LogicalPlan> {
    if plan.schema().fields().iter().all(|field| *field.data_type() != DataType::Date64) {
        return Ok(plan);
    }
    let columns: Vec<Expr> = plan
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match field.data_type() {
                DataType::Date64 => cast(column, DataType::Timestamp(TimeUnit::Millisecond, None)).alias(field.name()),
                _ => column,
            }
        })
        .collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

async fn ensure_unchanged(files: &Files, may_grow: bool) -> Result<()> {
    let now = files.list_files().await?;
    let same = |a: &ObjectMeta, b: &ObjectMeta| {
        a.location == b.location && a.size == b.size && a.e_tag == b.e_tag && a.last_modified == b.last_modified
    };
    if now.len() == files.found.len() && now.iter().zip(&files.found).all(|(a, b)| same(a, b)) {
        return Ok(());
    }
    let is_there = |file: &usize| {
        let found = &files.found[*file];
        now.binary_search_by(|other| other.location.cmp(&found.location)).is_ok_and(|at| same(&now[at], found))
    };
    let changed = (0..files.found.len()).find(|file| !is_there(file));
    if changed.is_none() && may_grow {
        return Ok(());
    }
    let name = changed.map_or_else(|| "a file was added".to_owned(), |file| format!("`{}`", files.file_name(file)));
    Err(Error::retry(format!("the input changed while it was read ({name}); nothing was published, run again")))
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("input", &self.input).finish_non_exhaustive()
    }
}
