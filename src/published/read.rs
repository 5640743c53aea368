//! Published files as a table, read as they are.
//!
//! The files are those of a list, never of a listing, and come without statistics: where the statistics of a file say
//! that its smallest and its largest value are the same, DataFusion reads that value for every row, and the statistics
//! of Parquet leave NaN out.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::{PARQUET_FIELD_ID_META_KEY, parquet_to_arrow_schema};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::error::{Error, ErrorKind, Result};
use crate::storage::{FilesTable, Partitions, read_footer};

/// Footers that are read at the same time.
const FOOTERS: usize = 16;

/// Published files: the store that holds them, and where each lies in it.
#[derive(Debug, Clone)]
pub(crate) struct PublishedFiles {
    /// The store.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Address of the store itself.
    pub(crate) root: Url,
    /// The files.
    pub(crate) files: Vec<PublishedFile>,
}

/// One published file.
#[derive(Debug, Clone)]
pub(crate) struct PublishedFile {
    /// Path below the sink.
    pub(crate) name: String,
    /// Path in the store.
    pub(crate) path: Path,
}

/// Names of the folders of column values that a published file lies in below the folder of its release.
pub(crate) fn folder_names(path: &str) -> Vec<String> {
    let mut names: Vec<String> = path.split('/').skip(2).map(str::to_owned).collect();
    names.pop();
    names.retain(|name| name.contains('='));
    names
}

/// Published files as rows. Columns that are folder names have the type of `published`, where it is known.
pub(crate) async fn open_published(
    context: &SessionContext,
    files: &PublishedFiles,
    published: Option<&Schema>,
) -> Result<DataFrame> {
    context.register_object_store(&files.root, Arc::clone(&files.store));
    let below: Vec<Vec<String>> = files.files.iter().map(|file| folder_names(&file.name)).collect();
    let declared = |column: &str| Some(published?.field_with_name(column).ok()?.data_type().clone());
    let partitions = Partitions::from_folders(&below, |file| files.files[file].name.clone(), declared)?;
    let found = find_files(files).await?;
    let format = Arc::new(ParquetFormat::default());
    let schema = format.infer_schema(&context.state(), &files.store, &found).await;
    let schema = schema.map_err(|error| unreadable_file(error.into()))?;
    let table = FilesTable::new(ObjectStoreUrl::parse(&files.root)?, format, schema, found, partitions);
    Ok(context.read_table(Arc::new(table))?)
}

/// The files as the store knows them.
pub(crate) async fn find_files(files: &PublishedFiles) -> Result<Vec<ObjectMeta>> {
    Ok(look_at(files).await?.into_iter().map(|(file, _)| file).collect())
}

/// What a published file says of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Footer {
    /// Its bytes, as the store counts them.
    pub(crate) size: u64,
    /// Its rows.
    pub(crate) rows: u64,
    /// Whether its columns carry anything but their names and types.
    pub(crate) annotated: bool,
    /// What its writer has noted.
    pub(crate) metadata: BTreeMap<String, String>,
}

/// The footers of all files.
pub(crate) async fn read_footers(files: &PublishedFiles) -> Result<Vec<Footer>> {
    let unknown = || Error::privacy("a published file cannot be read back: it is not a Parquet file");
    look_at(files).await?.into_iter().map(|(_, footer)| footer.ok_or_else(unknown)).collect()
}

/// All files, and the footers of those that have one.
async fn look_at(files: &PublishedFiles) -> Result<Vec<(ObjectMeta, Option<Footer>)>> {
    let store = Arc::clone(&files.store);
    let looks = files.files.clone().into_iter().map(move |PublishedFile { name, path }| {
        let store = Arc::clone(&store);
        async move {
            let found = read_meta_and_footer(store.as_ref(), &path).await;
            found.map_err(|error| unreadable_file(error.context(format!("`{name}`"))))
        }
    });
    stream::iter(looks).buffered(FOOTERS).try_collect().await
}

async fn read_meta_and_footer(store: &dyn ObjectStore, path: &Path) -> Result<(ObjectMeta, Option<Footer>)> {
    let file = store.head(path).await?;
    let footer = read_footer(store, &file).await?.map(|footer| {
        let noted = footer.file_metadata().key_value_metadata().into_iter().flatten();
        let metadata = noted.filter_map(|entry| Some((entry.key.clone(), entry.value.clone()?))).collect();
        let (stored, noted) = (footer.file_metadata().schema_descr(), footer.file_metadata().key_value_metadata());
        let schema = parquet_to_arrow_schema(stored, noted);
        let annotated = schema.is_ok_and(|schema| schema.fields().iter().any(|field| is_annotated(field)));
        let rows = footer.file_metadata().num_rows().max(0) as u64;
        Footer { size: file.size, rows, annotated, metadata }
    });
    Ok((file, footer))
}

/// Whether a column or a part of it carries notes, but for the number that Parquet gives it.
fn is_annotated(field: &Field) -> bool {
    let is_noted = field.metadata().keys().any(|key| key != PARQUET_FIELD_ID_META_KEY);
    is_noted
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| is_annotated(field)),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => is_annotated(item),
            _ => false,
        }
}

/// The schema of every file.
pub(crate) async fn read_schemas(
    context: &SessionContext,
    files: &PublishedFiles,
    found: &[ObjectMeta],
) -> Result<Vec<SchemaRef>> {
    let (state, store) = (Arc::new(context.state()), Arc::clone(&files.store));
    let read = found.iter().cloned().map(move |file| {
        let (state, store) = (Arc::clone(&state), Arc::clone(&store));
        async move { ParquetFormat::default().infer_schema(state.as_ref(), &store, &[file]).await }
    });
    stream::iter(read).buffered(FOOTERS).try_collect().await.map_err(|error| unreadable_file(Error::from(error)))
}

/// The schema of every file, as its footer has it.
pub(crate) async fn file_schemas(context: &SessionContext, files: &PublishedFiles) -> Result<Vec<SchemaRef>> {
    context.register_object_store(&files.root, Arc::clone(&files.store));
    read_schemas(context, files, &find_files(files).await?).await
}

/// A file that cannot be read breaks what the release promises.
fn unreadable_file(error: Error) -> Error {
    let error = error.context("a published file cannot be read back");
    if error.kind() == ErrorKind::Input { Error::privacy(error.to_string()) } else { error }
}

/// BLAKE3 of a file; `None` if there is no such file.
pub(crate) async fn file_checksum(store: &dyn ObjectStore, path: &Path) -> Result<Option<String>> {
    let found = match store.get(path).await {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut hasher = blake3::Hasher::new();
    let mut content = found.into_stream();
    while let Some(part) = content.next().await {
        hasher.update(&part?);
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}
