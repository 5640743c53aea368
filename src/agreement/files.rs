//! A release, read back and checked against its manifest by [`crate::verify`].

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::Schema;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;
use object_store::path::Path;

use super::manifest::{check_coherence, check_counts, check_files};
use super::tables::Tables;
use crate::binding::BoundPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::manifest::{Manifest, OutputFile};
pub(crate) use crate::ledger::published::{file_checksum, open_published, published_files};
use crate::measure::Classes;
use crate::policy::Form;
use crate::storage::Location;
use crate::verify::{
    ColumnCheck, Finding, InProcess, PlanExecutor, PromisedType, check_columns, check_dropped, check_order,
    check_replaced, class_sizes, file_schemas, read_footers, row_count, small_classes, verify_people,
};
use crate::write::WrittenFile;

/// The rows of a release by which the rules are judged, and whether the tables of one that has two fit together.
pub(crate) async fn open_readable(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    form: Form,
    published: Option<&Schema>,
) -> Result<(DataFrame, Vec<Finding>)> {
    match Tables::open_tables(context, sink, files, form).await? {
        Some(tables) => Ok((tables.rows()?, tables.check_links(plans).await?)),
        None => Ok((open_published(context, sink, files, published).await?, Vec::new())),
    }
}

/// A table over files that have just been written.
pub(crate) async fn open_written(
    context: &SessionContext,
    sink: &Location,
    data: &str,
    written: &[WrittenFile],
    bound_policy: &BoundPolicy,
) -> Result<DataFrame> {
    let file = |file: &WrittenFile| {
        let path = released_path(sink, data, file);
        OutputFile { path, rows: file.rows, size: file.size, blake3: String::new() }
    };
    let files: Vec<OutputFile> = written.iter().map(file).collect();
    open_published(context, sink, &files, Some(&bound_policy.output)).await
}

/// Path below the sink of a file that was written to the folder `data`.
pub(crate) fn released_path(sink: &Location, data: &str, file: &WrittenFile) -> String {
    let folder = sink.at(data);
    let below = file.path.strip_prefix(folder.as_ref()).unwrap_or(&file.path);
    format!("{data}{below}")
}

/// Checks a release against its manifest: every file is the one that was released, with as many rows, and every class
/// is large enough.
///
/// ```
/// use throng::SessionOptions;
/// use throng::releases::{Location, releases, verify_release};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), throng::Error> {
/// # let folder = tempfile::tempdir()?;
/// let sink = Location::open(folder.path(), "published")?;
/// let (session, _spill) = SessionOptions::default().open()?;
/// for manifest in releases(&sink).await? {
///     let (_classes, findings) = verify_release(&session, &sink, &manifest).await?;
///     assert!(findings.is_empty(), "{} does not hold", manifest.run);
/// }
/// # Ok(())
/// # }
/// ```
pub async fn verify_release(
    context: &SessionContext,
    sink: &Location,
    manifest: &Manifest,
) -> Result<(Classes, Vec<Finding>)> {
    verify_release_with(&InProcess, context, sink, manifest).await
}

/// The same with its plans executed somewhere.
pub(crate) async fn verify_release_with(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    sink: &Location,
    manifest: &Manifest,
) -> Result<(Classes, Vec<Finding>)> {
    let mut findings = Vec::new();
    let mut present = Vec::new();
    let mut changed = Vec::new();
    for file in &manifest.files {
        match file_checksum(sink, &file.path).await? {
            Some(found) => {
                changed.extend((found != file.blake3).then(|| file.path.clone()));
                present.push(file.clone());
            }
            None => findings.push(Finding::new("files", 1, format!("`{}` is missing", file.path))),
        }
    }
    if let Some(first) = changed.first() {
        let (number, of) = (changed.len(), manifest.files.len());
        let message = format!("{number} of {of} files are not the ones that were released, starting with `{first}`");
        findings.push(Finding::new("files", number as u64, message));
    }
    findings.extend(find_unlisted_files(sink, manifest).await?);
    if present.is_empty() {
        if findings.is_empty() {
            findings.extend(row_count(0, manifest.rows));
        }
        return Ok((Classes::default(), findings));
    }
    findings.extend(check_coherence(manifest));
    match count_release(plans, context, sink, manifest, &present).await {
        Ok((classes, found)) => {
            findings.extend(found);
            Ok((classes, findings))
        }
        // Changed files need not be readable any more.
        Err(error) if is_about_content(&error) && !changed.is_empty() => Ok((Classes::default(), findings)),
        Err(error) if error.kind() == ErrorKind::Privacy => {
            findings.push(Finding::new("files", 1, error.to_string()));
            Ok((Classes::default(), findings))
        }
        Err(error) => Err(error),
    }
}

/// Whether the content of the files is at fault, and not the access to them.
fn is_about_content(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Input | ErrorKind::Privacy)
}

/// Finds files in the folder of a release that its manifest does not list. Readers who follow the folder would read them.
async fn find_unlisted_files(sink: &Location, manifest: &Manifest) -> Result<Option<Finding>> {
    let listed: BTreeSet<Path> = manifest.files.iter().map(|file| sink.at(&file.path)).collect();
    let folder = sink.at(&manifest.data);
    let mut unlisted = 0;
    let mut found = sink.store.list(Some(&folder));
    while let Some(file) = found.try_next().await? {
        // Names that begin like this are nobody's data: leases of runs, markers of other programs.
        let is_marker = file.location.filename().is_some_and(|name| name.starts_with('_'));
        unlisted += u64::from(!is_marker && !listed.contains(&file.location));
    }
    Ok(Finding::if_any("files", unlisted, |count| {
        format!("{count} files in the folder of the release are not part of it")
    }))
}

/// The classes of a release, and what its rows break.
async fn count_release(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    sink: &Location,
    manifest: &Manifest,
    present: &[OutputFile],
) -> Result<(Classes, Vec<Finding>)> {
    let published = published_files(sink, present);
    let written = |(name, text): (&String, &String)| (name.clone(), PromisedType::Written(text.clone()));
    let promised: BTreeMap<String, PromisedType> = manifest.schema.iter().map(written).collect();
    let schemas = file_schemas(context, &published).await?;
    let ColumnCheck { mut findings, readable: is_readable } = check_columns(&published.files, &schemas, &promised);
    findings.extend(check_files(manifest, present, &read_footers(&published).await?));
    if !is_readable {
        return Ok((Classes::default(), findings));
    }
    let (rows, links) = open_readable(plans, context, sink, present, manifest.form(), None).await?;
    findings.extend(links);
    findings.extend(check_order(plans, context, &published, &manifest.class_columns).await?);
    let classes = class_sizes(plans, &rows, &manifest.class_columns).await?;
    findings.extend(row_count(classes.rows(), manifest.rows));
    findings.extend(small_classes(&classes, manifest.k, "rows"));
    findings.extend(check_counts(manifest, &classes));
    if let Some(people) = &manifest.verification.people {
        let (columns, counted) = (&manifest.class_columns, &people.classes.by_size);
        findings.extend(verify_people(plans, &rows, columns, counted, &people.digest, manifest.k).await?);
    }
    Ok((classes, findings))
}

/// Checks that what was to be replaced or left out is not published; of `read` rows, so many are not.
pub(crate) async fn check_raw(
    plans: &dyn PlanExecutor,
    published: &DataFrame,
    read: &DataFrame,
    bound_policy: &BoundPolicy,
    left_out: u64,
) -> Result<Vec<Finding>> {
    let raw = check_replaced(plans, published, bound_policy).await?;
    Ok(raw.into_iter().chain(check_dropped(plans, read, bound_policy, left_out).await?).collect())
}

/// Compares the columns of published files with those that a job would publish.
pub(crate) async fn check_types(
    context: &SessionContext,
    sink: &Location,
    files: &[OutputFile],
    bound_policy: &BoundPolicy,
) -> Result<ColumnCheck> {
    let published = published_files(sink, files);
    let fields = bound_policy.output.fields().iter();
    let promised = fields.map(|field| (field.name().clone(), PromisedType::Known(field.data_type().clone()))).collect();
    let schemas = file_schemas(context, &published).await?;
    Ok(check_columns(&published.files, &schemas, &promised))
}

/// Sizes of the classes of equal published quasi-identifiers.
pub(crate) async fn count_classes(rows: &DataFrame, columns: &[String]) -> Result<Classes> {
    class_sizes(&InProcess, rows, columns).await
}
