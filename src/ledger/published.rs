//! The files of a release, handed to its verification.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::prelude::{DataFrame, SessionContext};

use super::manifest::OutputFile;
use crate::error::Result;
use crate::storage::Location;
use crate::verify::{PublishedFile, PublishedFiles};

/// Files of a release where its verification finds them.
pub(crate) fn published_files(sink: &Location, files: &[OutputFile]) -> PublishedFiles {
    let file = |file: &OutputFile| PublishedFile { name: file.path.clone(), path: sink.at(&file.path) };
    PublishedFiles { store: Arc::clone(&sink.store), root: sink.root.clone(), files: files.iter().map(file).collect() }
}

/// Published files as rows. Columns that are folder names have the type of `published`, where it is known.
pub(crate) async fn open_published(
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    published: Option<&Schema>,
) -> Result<DataFrame> {
    crate::verify::open_published(context, &published_files(sink, files), published).await
}

/// BLAKE3 of a file; `None` if there is no such file.
pub(crate) async fn file_checksum(sink: &Location, path: &str) -> Result<Option<String>> {
    crate::verify::file_checksum(sink.store.as_ref(), &sink.at(path)).await
}
