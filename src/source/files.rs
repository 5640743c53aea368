//! The files of one table: which there are, as they are now, what their columns are, and a table over them.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::csv::Csv;
use crate::error::{Error, Result};
use crate::policy;
use crate::storage::partitions::{Partitions, mask_path};
use crate::storage::{FilesTable, Location, Stores, ensure_footer};

/// Files that are looked into at the same time.
pub(super) const FILES_AT_ONCE: usize = 16;

/// Whether the values of a folder column may be shown.
pub(super) type Shown = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The files of a table.
pub(super) struct Files {
    pub(super) location: Location,
    pattern: Option<glob::Pattern>,
    pub(super) found: Vec<ObjectMeta>,
    partitions: Partitions,
    /// How CSV files are read; `None` for Parquet.
    pub(super) csv: Option<Csv>,
    pub(super) shown: Shown,
}

/// Parquet as the session reads it: text as views, unless it asks for plain text.
fn parquet_format(context: &SessionContext) -> ParquetFormat {
    let views = context.state().config_options().execution.parquet.schema_force_view_types;
    ParquetFormat::default().with_force_view_types(views)
}

/// Splits a location at its first wildcard: a folder, and a pattern of what lies below it.
pub(super) fn split_wildcard(url: &str) -> (&str, Option<&str>) {
    match url.find(['*', '?', '[']) {
        None => (url, None),
        Some(at) => {
            let folder = url[..at].rfind('/').map_or("", |slash| &url[..=slash]);
            (if folder.is_empty() { "." } else { folder }, Some(&url[folder.len()..]))
        }
    }
}

impl Files {
    /// Finds the files of a table: a file, a folder or prefix, or a pattern with `*`, `?` and `[...]`.
    pub(super) async fn find_files(
        stores: &Stores,
        base: &LocalPath,
        key: &str,
        spec: &policy::Source,
        shown: Shown,
    ) -> Result<Self> {
        let url = spec.location();
        let (folder, pattern) = split_wildcard(url);
        let location = stores.open(base, folder, &spec.options)?;
        let pattern = match pattern {
            None => None,
            Some(pattern) => Some(
                glob::Pattern::new(pattern)
                    .map_err(|error| Error::job(format!("{key}.url: `{url}` is not a usable pattern: {error}")))?,
            ),
        };
        let csv = Csv::of_source(spec);
        let mut files = Self { location, pattern, found: Vec::new(), partitions: Partitions::default(), csv, shown };
        files.found = files.list_files().await.map_err(|error| error.context(format!("source `{url}`")))?;
        if files.found.is_empty() {
            return Err(files.nothing_found().await.context(format!("source `{url}`")));
        }
        let folders: Vec<Vec<String>> = files.found.iter().map(|file| files.folder_names(file)).collect();
        files.partitions = Partitions::from_folders(
            &folders,
            |file| files.file_name(file),
            |column| policy::data_type(spec.schema.get(column)?),
        )?;
        files.ensure_schema_matches(key, spec)?;
        Ok(files)
    }

    /// A file as people may see it.
    pub(super) fn file_name(&self, file: usize) -> String {
        mask_path(&self.found[file].location, &*self.shown)
    }

    /// A file as it is now: its size, and its version tag or the time when it was last changed. Tags of the local file system
    /// say on which disk a file lies, and would change when it is restored from a backup.
    pub(super) fn version_tag(&self, file: usize) -> String {
        let ObjectMeta { size, e_tag, version, last_modified, .. } = &self.found[file];
        let tag = e_tag.as_ref().or(version.as_ref()).filter(|_| self.location.root.scheme() != "file");
        format!("{size} {}", tag.cloned().unwrap_or_else(|| last_modified.to_rfc3339()))
    }

    /// The columns that are folder names.
    pub(super) fn folder_columns(&self) -> &[FieldRef] {
        &self.partitions.fields
    }

    /// Folder values that are not to be shown, with their columns.
    pub(super) fn hidden_values(&self) -> Vec<String> {
        let folders = self.found.iter().flat_map(|file| self.folder_names(file));
        let mut hidden: Vec<String> =
            folders.filter(|folder| folder.split_once('=').is_some_and(|(column, _)| !(self.shown)(column))).collect();
        hidden.sort_unstable();
        hidden.dedup();
        hidden
    }

    /// Names of the folders between the location and a file.
    fn folder_names(&self, file: &ObjectMeta) -> Vec<String> {
        let parts = file.location.prefix_match(&self.location.prefix).into_iter().flatten();
        let mut names: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        names.pop();
        names
    }

    /// A Parquet file says itself what its columns are: only folder columns can be declared.
    fn ensure_schema_matches(&self, key: &str, spec: &policy::Source) -> Result<()> {
        let folder = |column: &str| self.partitions.fields.iter().any(|field| field.name() == column);
        match spec.schema.keys().find(|column| self.csv.is_none() && !folder(column)) {
            None => Ok(()),
            Some(column) => Err(Error::job(format!(
                "{key}.schema.{column}: is not a folder name, and Parquet files have types of their own; remove it, or \
                 cast it in source.sql"
            ))),
        }
    }

    /// A table over some of the files, with the columns of all.
    pub(super) async fn table(&self, context: &SessionContext, files: &[ObjectMeta]) -> Result<Arc<dyn TableProvider>> {
        context.register_object_store(&self.location.root, Arc::clone(&self.location.store));
        let Some(csv) = &self.csv else {
            let schema = self.parquet_schema(context).await?;
            return self.table_of(Arc::new(parquet_format(context)), schema, files);
        };
        let schema = csv.infer_schema(self, &self.partitions.fields).await?;
        let table = self.table_of(Arc::new(csv.format()), csv.read_schema(&schema), files)?;
        csv.with_types(context, table, &schema)
    }

    fn table_of(
        &self,
        format: Arc<dyn FileFormat>,
        schema: SchemaRef,
        files: &[ObjectMeta],
    ) -> Result<Arc<dyn TableProvider>> {
        for field in &self.partitions.fields {
            if schema.field_with_name(field.name()).is_ok() {
                return Err(Error::input(format!(
                    "column `{}` is a folder name, but the files of `{}` contain it as well; keep only one",
                    field.name(),
                    self.location.name
                )));
            }
        }
        if self.partitions.fields.is_empty() {
            let urls = files.iter().map(|file| ListingTableUrl::parse(self.location.url(&file.location)));
            let config = ListingTableConfig::new_with_multi_paths(urls.collect::<Result<_, _>>()?)
                .with_listing_options(ListingOptions::new(format).with_file_extension(""))
                .with_schema(schema);
            return Ok(Arc::new(ListingTable::try_new(config)?));
        }
        let store = ObjectStoreUrl::parse(&self.location.root)?;
        Ok(Arc::new(FilesTable::new(store, format, schema, files.to_vec(), self.partitions.clone())))
    }

    /// The columns of all files together. A column that some files lack is null there; one that two files hold with
    /// different types is an error.
    async fn parquet_schema(&self, context: &SessionContext) -> Result<SchemaRef> {
        let state = context.state();
        let format = parquet_format(context);
        let read = |at: usize| {
            let (state, format) = (&state, &format);
            async move {
                let failed = |error| Error::from(error).context(format!("source file `{}`", self.file_name(at)));
                let file = std::slice::from_ref(&self.found[at]);
                ensure_footer(self.location.store.as_ref(), &self.found[at])
                    .await
                    .map_err(|error| error.context(format!("source file `{}`", self.file_name(at))))?;
                format.infer_schema(state, &self.location.store, file).await.map_err(failed)
            }
        };
        let schemas: Vec<SchemaRef> =
            stream::iter(0..self.found.len()).map(read).buffered(FILES_AT_ONCE).try_collect().await?;
        let mut fields: Vec<(Field, usize)> = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            for field in schema.fields() {
                match fields.iter().find(|(known, _)| known.name() == field.name()) {
                    None => fields.push((field.as_ref().clone(), at)),
                    Some((known, first)) if known.data_type() != field.data_type() => {
                        return Err(Error::input(format!(
                            "column `{}` is {} in `{}` and {} in `{}`; all files of a source need the same type",
                            field.name(),
                            known.data_type(),
                            self.file_name(*first),
                            field.data_type(),
                            self.file_name(at),
                        )));
                    }
                    Some(_) => {}
                }
            }
        }
        let fields = fields.into_iter().map(|(field, _)| {
            let filled =
                |schema: &SchemaRef| schema.field_with_name(field.name()).is_ok_and(|field| !field.is_nullable());
            let nullable = !schemas.iter().all(filled);
            field.with_nullable(nullable)
        });
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    /// The files as they are now, by name.
    pub(super) async fn list_files(&self) -> Result<Vec<ObjectMeta>> {
        let mut found = self.list_all().await?;
        found.retain(|meta| meta.size > 0 || self.csv.is_none() || self.pattern.is_some());
        // A CSV file may hold nothing; a Parquet file that does was not written to its end, and its rows would be missed.
        match found.iter().find(|meta| meta.size == 0 && self.csv.is_none()) {
            None => Ok(found),
            Some(empty) => Err(Error::input(format!(
                "file `{}` is empty: rewrite it, or remove it if nothing is missing",
                mask_path(&empty.location, &*self.shown)
            ))),
        }
    }

    /// The files as they are now, by name, with those that hold nothing.
    async fn list_all(&self) -> Result<Vec<ObjectMeta>> {
        let Location { store, prefix, .. } = &self.location;
        let mut found: Vec<ObjectMeta> = match store.head(prefix).await {
            Ok(file) if self.pattern.is_none() => vec![file],
            _ => store.list(Some(prefix)).try_collect().await?,
        };
        if found.len() != 1 || found[0].location != *prefix {
            found.retain(|meta| self.is_data(meta));
        }
        found.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(found)
    }

    /// The reason why there is no file: there is none, it may not be read, or it is empty.
    async fn nothing_found(&self) -> Error {
        match self.location.store.head(&self.location.prefix).await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            // A file that may not be looked at is not listed either.
            Err(error) => return error.into(),
        }
        let kind = if self.csv.is_some() { "CSV" } else { "Parquet" };
        match self.list_all().await {
            Err(error) => error,
            Ok(empty) if empty.is_empty() => Error::input(format!("there are no {kind} files")),
            Ok(empty) => Error::input(match empty.len() {
                1 => format!("the {kind} file is empty: it holds no header and no rows"),
                files => format!("all {files} {kind} files are empty: they hold no header and no rows"),
            }),
        }
    }

    /// Whether a listed file belongs to the table: of the right kind, not hidden, and matching the pattern if there is
    /// one.
    fn is_data(&self, meta: &ObjectMeta) -> bool {
        let Some(parts) = meta.location.prefix_match(&self.location.prefix) else { return false };
        let names: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        // A folder column may begin with an underscore; a folder of another program does not hold a value.
        let visible = names.iter().all(|name| !name.starts_with(['.', '_']) || name.contains('='));
        let ending = if self.csv.is_some() { ".csv" } else { ".parquet" };
        visible
            && match &self.pattern {
                Some(pattern) => pattern.matches(&names.join("/")),
                None => names.last().is_some_and(|name| name.ends_with(ending)),
            }
    }
}
