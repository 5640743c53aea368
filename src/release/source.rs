//! The input of a run: which files it has, as they are now, and a table over them.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::location::Location;
use super::manifest::InputFile;
use super::stores::Stores;
use crate::error::{Error, Result};
use crate::job;

/// Footers that are read at the same time.
const FOOTERS_AT_ONCE: usize = 16;

/// A table over Parquet files.
#[derive(Debug)]
pub struct Source {
    location: Location,
    pattern: Option<glob::Pattern>,
    files: Vec<InputFile>,
    urls: Vec<ListingTableUrl>,
}

impl Source {
    /// Finds the files of a source: a file, a folder or prefix, or a pattern with `*`, `?` and `[...]`.
    pub async fn find(stores: &Stores, base: &LocalPath, source: &job::Source) -> Result<Self> {
        let url = source.url.as_str();
        let wild = url.find(['*', '?', '[']);
        let (fixed, pattern) = match wild {
            None => (url, None),
            Some(at) => {
                let folder = url[..at].rfind('/').map_or("", |slash| &url[..=slash]);
                (folder, Some(&url[folder.len()..]))
            }
        };
        let location = stores.open(base, if fixed.is_empty() { "." } else { fixed }, &source.options)?;
        let pattern = match pattern {
            None => None,
            Some(pattern) => Some(
                glob::Pattern::new(pattern)
                    .map_err(|error| Error::Job(format!("source.url: `{url}` is not a usable pattern: {error}")))?,
            ),
        };
        let mut source = Self { location, pattern, files: Vec::new(), urls: Vec::new() };
        let found = source.list().await.map_err(|error| error.context(format!("source `{url}`")))?;
        if found.is_empty() {
            return Err(Error::Input(format!("source `{url}`: there are no Parquet files")));
        }
        for meta in &found {
            source.urls.push(ListingTableUrl::parse(source.location.url(&meta.location))?);
        }
        source.files = found.iter().map(input_file).collect();
        Ok(source)
    }

    /// Where the files are.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The files as they were found.
    pub fn files(&self) -> &[InputFile] {
        &self.files
    }

    /// Refuses when a file has changed, gone or come since it was found.
    pub async fn confirm(&self) -> Result<()> {
        let now: Vec<InputFile> = self.list().await?.iter().map(input_file).collect();
        if now == self.files {
            return Ok(());
        }
        let changed = self.files.iter().find(|file| !now.contains(file)).or_else(|| now.first());
        let name = changed.map_or("", |file| file.path.as_str());
        Err(Error::Retry(format!(
            "the input has changed while it was read (`{name}`); nothing was published, run again"
        )))
    }

    /// A scan of all files.
    pub async fn scan(&self, context: &SessionContext) -> Result<(LogicalPlan, SchemaRef)> {
        context.register_object_store(&self.location.root, Arc::clone(&self.location.store));
        let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
        let schema = self.schema(context, &options).await?;
        let config = ListingTableConfig::new_with_multi_paths(self.urls.clone())
            .with_listing_options(options)
            .with_schema(schema);
        let table = ListingTable::try_new(config)?;
        let frame = context.read_table(Arc::new(table))?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        Ok((frame.into_unoptimized_plan(), schema))
    }

    /// The columns of all files together. A column that some files lack is null there; one that two files hold with
    /// different types is an error.
    async fn schema(&self, context: &SessionContext, options: &ListingOptions) -> Result<SchemaRef> {
        let state = context.state();
        let read = |at: usize| {
            let (state, url) = (&state, &self.urls[at]);
            async move {
                let failed = |error| Error::from(error).context(format!("source file `{}`", self.files[at].path));
                options.infer_schema(state, url).await.map_err(failed)
            }
        };
        let schemas: Vec<SchemaRef> =
            stream::iter(0..self.urls.len()).map(read).buffered(FOOTERS_AT_ONCE).try_collect().await?;
        let mut fields: Vec<(Field, usize)> = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            for field in schema.fields() {
                match fields.iter().find(|(known, _)| known.name() == field.name()) {
                    None => fields.push((field.as_ref().clone(), at)),
                    Some((known, first)) if known.data_type() != field.data_type() => {
                        return Err(Error::Input(format!(
                            "column `{}` is {} in `{}` and {} in `{}`; all files of a source need the same type",
                            field.name(),
                            known.data_type(),
                            self.files[*first].path,
                            field.data_type(),
                            self.files[at].path,
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

    async fn list(&self) -> Result<Vec<ObjectMeta>> {
        let Location { store, prefix, .. } = &self.location;
        let mut found: Vec<ObjectMeta> = match store.head(prefix).await {
            Ok(file) if self.pattern.is_none() => vec![file],
            _ => store.list(Some(prefix)).try_collect().await?,
        };
        if found.len() != 1 || found[0].location != *prefix {
            found.retain(|meta| self.is_data(meta));
        }
        found.retain(|meta| meta.size > 0 || self.pattern.is_some());
        found.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(found)
    }

    /// Whether a listed file belongs to the table: Parquet, not hidden, and matching the pattern if there is one.
    fn is_data(&self, meta: &ObjectMeta) -> bool {
        let Some(parts) = meta.location.prefix_match(&self.location.prefix) else { return false };
        let names: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        let visible = names.iter().all(|name| !name.starts_with(['.', '_']));
        visible
            && match &self.pattern {
                Some(pattern) => pattern.matches(&names.join("/")),
                None => names.last().is_some_and(|name| name.ends_with(".parquet")),
            }
    }
}

fn input_file(meta: &ObjectMeta) -> InputFile {
    InputFile {
        path: meta.location.to_string(),
        size: meta.size,
        etag: meta.e_tag.clone(),
        modified: meta.last_modified.to_rfc3339(),
    }
}
