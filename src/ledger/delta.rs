//! A Delta table as sink: every release is one commit that adds its files, removes those of the release before it, and
//! carries the manifest. Readers see one release; older ones are older versions of the table.
//!
//! The identity of a run is an application transaction of that commit, so a run that has been released is found in the
//! log and not repeated. There is nothing beside the log: the commit of a release is the release. Releases of a series change
//! only the files that have changed (`series`).

pub(crate) mod series;

use std::collections::HashMap;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake_core::kernel::{Action, Add, MetadataExt, Protocol, StructType, Transaction, new_metadata};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError};
use futures::TryStreamExt;
use serde_json::json;

use super::commit::Commit;
use super::guard::second_release;
use super::manifest::{Manifest, OutputFile};
use crate::error::{Error, Result};
use crate::published::read::folder_names;
use crate::source::delta::{contention_error, delta_error, log_store, open_table};
use crate::storage::{Location, Partitions};

/// Where a commit carries the manifest, and what marks a table as one of releases.
const KEY: &str = "throng";

/// Maximum attempts at a commit: each failed one means that another commit succeeded.
const ATTEMPTS: usize = 10;

/// The error of an action that cannot be created.
fn action_error(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("a Delta action cannot be created: {error}"))
}

/// What the commit of a release needs beside its manifest.
pub(crate) struct Shape {
    /// The published columns as files hold them, folder columns among them.
    pub(crate) schema: SchemaRef,
    /// Columns that are folder names.
    pub(crate) partition_by: Vec<String>,
}

impl Shape {
    /// The columns as Delta knows them.
    fn delta_schema(&self) -> Result<StructType> {
        let converted: Result<StructType, _> = self.schema.as_ref().try_into_kernel();
        let Err(_) = &converted else { return converted.map_err(|error| Error::internal(error.to_string())) };
        let unfit = self.schema.fields().iter().find(|field| {
            let one: Result<StructType, _> = (&Schema::new(vec![field.as_ref().clone()])).try_into_kernel();
            one.is_err()
        });
        let (name, data_type) =
            unfit.map_or_else(Default::default, |field| (field.name().clone(), field.data_type().to_string()));
        Err(Error::job(format!(
            "sink.format: column `{name}` is of type {data_type}, which Delta tables do not have; cast it in source.sql"
        )))
    }

    /// Rejects columns that a Delta table cannot hold.
    pub(crate) fn ensure_types_supported(&self) -> Result<()> {
        self.delta_schema().map(drop)
    }
}

/// Rejects a table that holds something other than releases.
pub(crate) async fn ensure_own_sink(sink: &Location) -> Result<()> {
    match open_table(sink, None).await? {
        Some(table) if !is_ours(&table)? => Err(foreign_table(sink)),
        _ => Ok(()),
    }
}

/// The error of a table that is not one of releases.
fn foreign_table(sink: &Location) -> Error {
    Error::conflict(format!(
        "the Delta table `{}` holds data other than releases, which this run would replace; choose another sink",
        sink.name
    ))
}

fn is_ours(table: &DeltaTable) -> Result<bool> {
    Ok(table.snapshot().map_err(delta_error)?.metadata().configuration().contains_key(KEY))
}

/// All releases that the log still holds, with their versions, oldest first.
pub(crate) async fn list_releases(sink: &Location) -> Result<Vec<(u64, Manifest)>> {
    let Some(table) = open_table(sink, None).await? else { return Ok(Vec::new()) };
    let newest = table.version().unwrap_or(0);
    let history: Vec<_> = table.history(None).try_collect().await.map_err(delta_error)?;
    let mut found = Vec::new();
    for (age, mut commit) in history.into_iter().enumerate() {
        let Some(manifest) = commit.info.remove(KEY) else { continue };
        let version = newest.saturating_sub(age as u64);
        let damaged = |error| Error::input(format!("version {version} carries a damaged manifest: {error}"));
        found.push((version, serde_json::from_value(manifest).map_err(damaged)?));
    }
    found.reverse();
    Ok(found)
}

/// Releases of other runs than `run`. A table of releases holds one at least, also when its log no longer reaches back.
pub(crate) async fn count_others(sink: &Location, run: &str) -> Result<u64> {
    if open_table(sink, None).await?.is_none() {
        return Ok(0);
    }
    let listed = list_releases(sink).await?;
    let others = listed.iter().filter(|(_, manifest)| manifest.run != run).count() as u64;
    Ok(if listed.is_empty() { 1 } else { others })
}

/// The manifest of a run, if it has been committed.
pub(crate) async fn committed_manifest(sink: &Location, run: &str) -> Result<Option<Manifest>> {
    match open_table(sink, None).await? {
        Some(table) if is_done(&table, run).await? => manifest_of(sink, run).await.map(Some),
        _ => Ok(None),
    }
}

async fn is_done(table: &DeltaTable, run: &str) -> Result<bool> {
    let state = table.snapshot().map_err(delta_error)?;
    let version =
        state.transaction_version(table.log_store().as_ref(), transaction_id(run)).await.map_err(delta_error)?;
    Ok(version.is_some())
}

fn transaction_id(run: &str) -> String {
    format!("{KEY}/{run}")
}

async fn manifest_of(sink: &Location, run: &str) -> Result<Manifest> {
    let found = list_releases(sink).await?.into_iter().rev().find(|(_, manifest)| manifest.run == run);
    found.map(|(_, manifest)| manifest).ok_or_else(|| {
        Error::conflict(format!(
            "run `{run}` has been released, but the log of `{}` no longer holds its manifest; choose another --run-id",
            sink.name
        ))
    })
}

/// The error of a rollback: a Delta table keeps its own versions.
pub(crate) async fn no_roll_back(sink: &Location, run: &str) -> Error {
    match list_releases(sink).await.map(|found| found.into_iter().rev().find(|(_, manifest)| manifest.run == run)) {
        Err(error) => error,
        Ok(None) => Error::input(format!("`{}` holds no release of run `{run}`", sink.name)),
        Ok(Some((version, manifest))) => Error::conflict(format!(
            "`{}` is a Delta table, which keeps its own versions; run `{run}` is version {version}: read it at that \
             version, or RESTORE the table to it{}",
            sink.name,
            if manifest.series.is_some() { "; the next run of the series goes on from its newest release" } else { "" }
        )),
    }
}

/// Commits a release: its files come, those of the release before it go, and both in one version.
pub(crate) async fn commit_release(sink: &Location, manifest: &Manifest, shape: &Shape) -> Result<Commit> {
    let mut last: Option<Error> = None;
    for _ in 0..ATTEMPTS {
        let table = match find_standing(sink, manifest).await {
            Ok(Standing::Committed(commit)) => return Ok(commit),
            // Another release may have come first since the sink was found empty.
            Ok(Standing::Open(Some(_))) if manifest.earlier_releases.is_none() => return Err(second_release(sink, 1)),
            Ok(Standing::Open(table)) => table,
            // An attempt that failed may have been done all the same: its files must stay.
            Err(error) if last.is_some() => return Ok(Commit::Unknown(error)),
            Err(error) => return Err(error),
        };
        match attempt_commit(sink, table.as_ref(), manifest, shape).await {
            Ok(()) => return Ok(Commit::Won),
            Err(error) => last = Some(error),
        }
    }
    match find_standing(sink, manifest).await {
        Ok(Standing::Committed(commit)) => Ok(commit),
        Ok(Standing::Open(_)) => Err(last.unwrap_or_else(contention_error)),
        Err(error) => Ok(Commit::Unknown(error)),
    }
}

/// What the log says about a run.
enum Standing {
    /// It has been committed, by this attempt or by another.
    Committed(Commit),
    /// It has not; the table as it is now, if there is one.
    Open(Option<DeltaTable>),
}

async fn find_standing(sink: &Location, manifest: &Manifest) -> Result<Standing> {
    let table = open_table(sink, None).await?;
    let Some(table) = table else { return Ok(Standing::Open(None)) };
    if !is_done(&table, &manifest.run).await? {
        return Ok(Standing::Open(Some(table)));
    }
    standing_of_done(sink, manifest).await.map(Standing::Committed)
}

/// Whether a run that has been committed is this attempt at it.
async fn standing_of_done(sink: &Location, manifest: &Manifest) -> Result<Commit> {
    let there = manifest_of(sink, &manifest.run).await?;
    let ours = there.data == manifest.data;
    Ok(if ours { Commit::Won } else { Commit::Lost(Box::new(there)) })
}

/// One attempt at the next version. It fails when another commit comes first.
async fn attempt_commit(sink: &Location, table: Option<&DeltaTable>, manifest: &Manifest, shape: &Shape) -> Result<()> {
    let actions = release_actions(table, manifest, shape)?;
    write_version(sink, table, manifest, shape, actions, SaveMode::Overwrite).await.map_err(delta_error)
}

/// Writes the next version of a table with the manifest of a release, unless another commit comes first.
async fn write_version(
    sink: &Location,
    table: Option<&DeltaTable>,
    manifest: &Manifest,
    shape: &Shape,
    actions: Vec<Action>,
    mode: SaveMode,
) -> std::result::Result<(), DeltaTableError> {
    let properties = CommitProperties::default()
        .with_metadata([(KEY.to_owned(), json!(manifest))])
        .with_application_transaction(Transaction::new(transaction_id(&manifest.run), 1))
        // What follows from a commit that came first is decided here.
        .with_max_retries(0);
    let operation = DeltaOperation::Write {
        mode,
        partition_by: (!shape.partition_by.is_empty()).then(|| shape.partition_by.clone()),
        predicate: None,
    };
    let snapshot = table.map(DeltaTable::snapshot).transpose()?;
    let snapshot = snapshot.map(|state| state as &dyn TableReference);
    let log = log_store(sink).map_err(|error| DeltaTableError::Generic(error.to_string()))?;
    CommitBuilder::from(properties).with_actions(actions).build(snapshot, log, operation).await.map(drop)
}

/// What a release that replaces all others does to the table.
fn release_actions(table: Option<&DeltaTable>, manifest: &Manifest, shape: &Shape) -> Result<Vec<Action>> {
    let mut actions = table_actions(table, shape)?;
    if let Some(table) = table {
        let state = table.snapshot().map_err(delta_error)?;
        actions.extend(state.log_data().iter().map(|file| Action::Remove(file.remove_action(true))));
    }
    let below: Vec<Vec<String>> = manifest.files.iter().map(|file| folder_names(&file.path)).collect();
    let names = Partitions::folder_texts(&below);
    actions.extend(manifest.files.iter().zip(names).map(|(file, values)| add_file(file, values.into_iter().collect())));
    Ok(actions)
}

/// The action that shows a file to readers.
fn add_file(file: &OutputFile, partition_values: HashMap<String, Option<String>>) -> Action {
    Action::Add(Add {
        path: file.path.clone(),
        partition_values,
        size: file.size as i64,
        modification_time: jiff::Timestamp::now().as_millisecond(),
        data_change: true,
        stats: Some(json!({ "numRecords": file.rows }).to_string()),
        ..Add::default()
    })
}

/// What a release does to the table itself: nothing unless its columns are others.
fn table_actions(table: Option<&DeltaTable>, shape: &Shape) -> Result<Vec<Action>> {
    let schema = shape.delta_schema()?;
    let text = serde_json::to_string(&schema).map_err(action_error)?;
    let mut actions = Vec::new();
    let state = table.map(DeltaTable::snapshot).transpose().map_err(delta_error)?;
    if !state.is_some_and(|state| state.schema().as_ref() == &schema) {
        // Times without a zone are a feature of their own.
        let protocol = if text.contains("timestamp_ntz") {
            let features = json!(["timestampNtz"]);
            Some(
                json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features }),
            )
        } else {
            state.is_none().then(|| json!({ "minReaderVersion": 1, "minWriterVersion": 2 }))
        };
        if let Some(protocol) = protocol {
            let protocol: Protocol = serde_json::from_value(protocol).map_err(action_error)?;
            actions.push(Action::Protocol(protocol));
        }
    }
    let same = state.is_some_and(|state| {
        state.schema().as_ref() == &schema && state.metadata().partition_columns() == shape.partition_by.as_slice()
    });
    if !same {
        let mut metadata = new_metadata(&schema, &shape.partition_by, [(KEY, "releases")]).map_err(action_error)?;
        if let Some(state) = state {
            metadata = metadata.with_table_id(state.metadata().id().to_owned()).map_err(action_error)?;
        }
        actions.push(Action::Metadata(metadata));
    }
    Ok(actions)
}
