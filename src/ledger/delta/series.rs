//! A series in a Delta table: a night is one version, which adds files of new rows and removes files that rows have left.
//! Files of classes that stay as they are keep their place in the table.
//!
//! The log is where the manifest stands, and it decides races: of two runs that make the same release of the series, one
//! writes the next version, and the other finds a release there that its ledger does not know. So nothing is ever withdrawn.
//!
//! Between two nights the table must hold the files of the newest release, or of an earlier one that RESTORE has brought
//! back; versions that change no file, such as those of VACUUM, do not matter. Anything else (rows that were appended,
//! deleted or compacted) is nothing that the ledger knows, and the next night is refused.

use std::collections::BTreeSet;

use deltalake_core::DeltaTable;
use deltalake_core::kernel::Action;
use deltalake_core::protocol::SaveMode;

use super::{ATTEMPTS, Shape, add_file, is_done, is_ours, standing_of_done, table_actions, write_version};
use crate::error::{Error, Result};
use crate::ledger::commit::Commit;
use crate::ledger::guard::overtaken_error;
use crate::ledger::manifest::Manifest;
use crate::source::delta::{contention_error, delta_error, is_contention, open_table};
use crate::storage::Location;

/// All releases of the series that the log still holds, oldest first. Refuses a table that something else was done to.
pub(crate) async fn list_releases(sink: &Location) -> Result<Vec<Manifest>> {
    let Some(table) = open_table(sink, None).await? else { return Ok(Vec::new()) };
    let releases = table_releases(sink, &table).await?;
    ensure_untouched(sink, &table, &releases)?;
    Ok(releases.into_iter().map(|(_, manifest)| manifest).collect())
}

/// The releases that the log of a table holds, with their versions; at least the newest one.
async fn table_releases(sink: &Location, table: &DeltaTable) -> Result<Vec<(u64, Manifest)>> {
    if !is_ours(table)? {
        return Err(super::foreign_table(sink));
    }
    let releases = super::list_releases(sink).await?;
    if releases.is_empty() {
        return Err(Error::conflict(format!(
            "the log of the Delta table `{}` no longer holds the manifest of its newest release; restore the table from its \
             backup, or begin a new series in an empty sink and an empty state",
            sink.name
        )));
    }
    Ok(releases)
}

/// A file of the table by its path and its size.
type Known = BTreeSet<(String, i64)>;

/// The files that readers of a table see; none if rows of one are marked as deleted.
fn active_files(table: &DeltaTable) -> Result<Option<Known>> {
    let mut files = Known::new();
    for file in table.snapshot().map_err(delta_error)?.log_data().iter() {
        if file.deletion_vector_descriptor().is_some() {
            return Ok(None);
        }
        files.insert((file.path().into_owned(), file.size()));
    }
    Ok(Some(files))
}

fn listed_files(manifest: &Manifest) -> Known {
    manifest.files.iter().map(|file| (file.path.clone(), file.size as i64)).collect()
}

/// Refuses a table whose files are those of no release.
fn ensure_untouched(sink: &Location, table: &DeltaTable, releases: &[(u64, Manifest)]) -> Result<()> {
    let files = active_files(table)?;
    if files.is_some_and(|files| releases.iter().any(|(_, manifest)| listed_files(manifest) == files)) {
        return Ok(());
    }
    let newest = releases.last().map_or(0, |(version, _)| *version);
    Err(Error::conflict(format!(
        "the Delta table `{}` has been changed by something other than this series, and its ledger does not know these rows; \
         RESTORE the table to version {newest}, which is the newest release, and keep other writers away",
        sink.name
    )))
}

/// What the log says of a run that wants to make the next release.
enum Standing {
    /// It has been committed, by this attempt or by another.
    Committed(Commit),
    /// It has not; the table as it is now, if there is one.
    Open(Option<Box<DeltaTable>>),
    /// It cannot be: another run or another writer was first, and so no attempt of this run can have succeeded.
    Closed(Error),
}

async fn find_standing(sink: &Location, manifest: &Manifest, before: Option<&Manifest>) -> Result<Standing> {
    let Some(table) = open_table(sink, None).await? else {
        return Ok(match before {
            None => Standing::Open(None),
            Some(_) => Standing::Closed(Error::conflict(format!("the Delta table `{}` has been removed", sink.name))),
        });
    };
    if is_done(&table, &manifest.run).await? {
        return standing_of_done(sink, manifest).await.map(Standing::Committed);
    }
    let releases = table_releases(sink, &table).await?;
    let data = |manifest: Option<&Manifest>| manifest.map(|manifest| manifest.data.clone());
    if data(releases.last().map(|(_, manifest)| manifest)) != data(before) {
        return Ok(Standing::Closed(overtaken_error(sink)));
    }
    Ok(match ensure_untouched(sink, &table, &releases) {
        Ok(()) => Standing::Open(Some(Box::new(table))),
        Err(error) => Standing::Closed(error),
    })
}

/// Commits the release that comes after another one.
pub(crate) async fn commit_release(
    sink: &Location,
    manifest: &Manifest,
    before: Option<&Manifest>,
    shape: &Shape,
) -> Result<Commit> {
    let mut last: Option<Error> = None;
    let mut may_arrive = false;
    for _ in 0..ATTEMPTS {
        let table = match find_standing(sink, manifest, before).await {
            Ok(Standing::Committed(commit)) => return Ok(commit),
            Ok(Standing::Closed(error)) => return Err(error),
            Ok(Standing::Open(table)) => table,
            // An attempt that failed may have been done all the same: its files must stay.
            Err(error) if last.is_some() => return Ok(Commit::Unknown(error)),
            Err(error) => return Err(error),
        };
        let (actions, mode) = night_actions(table.as_deref(), manifest, shape)?;
        match write_version(sink, table.as_deref(), manifest, shape, actions, mode).await {
            Ok(()) => return Ok(Commit::Won),
            Err(error) => {
                may_arrive |= !is_contention(&error);
                last = Some(delta_error(error));
            }
        }
    }
    match find_standing(sink, manifest, before).await {
        Ok(Standing::Committed(commit)) => Ok(commit),
        Ok(Standing::Closed(error)) => Err(error),
        // A request that was given up may still arrive.
        Ok(Standing::Open(_)) if may_arrive => Ok(Commit::Unknown(last.unwrap_or_else(contention_error))),
        Ok(Standing::Open(_)) => Err(last.unwrap_or_else(contention_error)),
        Err(error) => Ok(Commit::Unknown(error)),
    }
}

/// What a night does to the table: files that the release does not list go, and those that are not there come.
fn night_actions(table: Option<&DeltaTable>, manifest: &Manifest, shape: &Shape) -> Result<(Vec<Action>, SaveMode)> {
    let mut actions = table_actions(table, shape)?;
    let wanted: BTreeSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    let mut there = BTreeSet::new();
    let mut mode = SaveMode::Append;
    if let Some(table) = table {
        for file in table.snapshot().map_err(delta_error)?.log_data().iter() {
            if wanted.contains(file.path().as_ref()) {
                there.insert(file.path().into_owned());
            } else {
                mode = SaveMode::Overwrite;
                actions.push(Action::Remove(file.remove_action(true)));
            }
        }
    }
    let new = manifest.files.iter().filter(|file| !there.contains(&file.path));
    actions.extend(new.map(|file| add_file(file, Default::default())));
    Ok((actions, mode))
}
