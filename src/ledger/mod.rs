//! The ledger of a sink's releases: manifests and a pointer beside the files, or the log of a Delta table. Commands
//! look at the sink to know which.
//!
//! A release is committed by one atomic step (`commit`, or `delta` for a Delta table), once its [`Manifest`] says what it is.
//! While a run is at work a `lease` keeps its files from the collection of garbage, and `guard` refuses a second release of
//! the same people.

pub(crate) mod commit;
#[cfg(feature = "delta")]
mod delta;
pub(crate) mod guard;
pub(crate) mod lease;
pub(crate) mod manifest;
pub(crate) mod published;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

pub(crate) use commit::{Commit, delete_unreported, discard_folder, no_such_run};
pub use manifest::{
    CellRows, ClassCounts, Manifest, OutputFile, PeopleCounts, QueryScores, Scores, SeriesCounts, SeriesRelease,
    Verification,
};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::policy::Job;
use crate::storage::Location;
#[cfg(feature = "delta")]
use crate::write::stored_schema;

/// How the sink of a job keeps its releases.
pub(crate) enum Ledger {
    /// A manifest for every release, and a pointer to the newest.
    Files,
    /// The log of a Delta table, and what a release looks like in it.
    #[cfg(feature = "delta")]
    Delta(delta::Shape),
}

impl Ledger {
    /// The ledger of a job; rejects columns that it cannot hold.
    pub(crate) fn for_job(job: &Job, bound_policy: &BoundPolicy) -> Result<Self> {
        if !job.sink.is_delta() {
            return Ok(Self::Files);
        }
        #[cfg(feature = "delta")]
        {
            let schema = stored_schema(&bound_policy.output);
            let shape = delta::Shape { schema, partition_by: job.output.partition_by.clone() };
            shape.ensure_types_supported()?;
            Ok(Self::Delta(shape))
        }
        #[cfg(not(feature = "delta"))]
        {
            let _ = bound_policy;
            Err(Error::job(format!("sink.format: this build does not support Delta tables; {}", crate::policy::BUILD)))
        }
    }

    /// The manifest of a run, if it has been committed.
    pub(crate) async fn committed_manifest(&self, sink: &Location, run: &str) -> Result<Option<Manifest>> {
        match self {
            Self::Files => commit::committed_manifest(sink, run).await,
            #[cfg(feature = "delta")]
            Self::Delta(_) => delta::committed_manifest(sink, run).await,
        }
    }

    /// Completes a run that died after its commit.
    pub(crate) async fn repair_latest_pointer(&self, sink: &Location, manifest: &Manifest) -> Result<()> {
        match self {
            Self::Files => commit::repair_latest_pointer(sink, manifest).await,
            // The commit is all there is; files that a later version has replaced are VACUUM's.
            #[cfg(feature = "delta")]
            Self::Delta(_) => Ok(()),
        }
    }

    /// Rejects a sink that holds something other than releases.
    pub(crate) async fn ensure_own_sink(&self, sink: &Location) -> Result<()> {
        match self {
            Self::Files => ensure_no_other_releases(sink, &["_manifest", "_latest", "_SUCCESS", "data"]).await,
            #[cfg(feature = "delta")]
            Self::Delta(_) => {
                ensure_no_other_releases(sink, &["_delta_log", "data"]).await?;
                delta::ensure_own_sink(sink).await
            }
        }
    }

    /// Releases of the sink that another run than `run` has made.
    pub(crate) async fn count_others(&self, sink: &Location, run: &str) -> Result<u64> {
        match self {
            Self::Files => commit::count_others(sink, run).await,
            #[cfg(feature = "delta")]
            Self::Delta(_) => delta::count_others(sink, run).await,
        }
    }

    /// Makes a verified release visible.
    pub(crate) async fn commit_release(&self, sink: &Location, manifest: &Manifest) -> Result<Commit> {
        match self {
            Self::Files => commit::commit_release(sink, manifest).await,
            #[cfg(feature = "delta")]
            Self::Delta(shape) => delta::commit_release(sink, manifest, shape).await,
        }
    }

    /// Puts the manifest of the next release of a series into the sink, after that of the one before. Of files, readers do
    /// not follow it before [`show_next`](Self::show_next).
    pub(crate) async fn commit_next(
        &self,
        sink: &Location,
        manifest: &Manifest,
        before: Option<&Manifest>,
    ) -> Result<Commit> {
        match self {
            Self::Files => {
                // The pointer of the series' own ledger decides which one comes next.
                let _ = before;
                Ok(commit::put_manifest(sink, manifest).await?.unwrap_or(Commit::Won))
            }
            #[cfg(feature = "delta")]
            Self::Delta(shape) => delta::series::commit_release(sink, manifest, before, shape).await,
        }
    }

    /// Makes a release of a series the one that readers see, once the pointer of the series' own ledger has moved.
    pub(crate) async fn show_next(&self, sink: &Location, manifest: &Manifest) -> Result<()> {
        match self {
            Self::Files => commit::show_release(sink, manifest).await,
            // The version that holds the manifest shows its files.
            #[cfg(feature = "delta")]
            Self::Delta(_) => Ok(()),
        }
    }
}

/// All releases of a sink that a series goes on in, oldest first. Refuses a Delta table that something else was done to.
pub(crate) async fn series_releases(sink: &Location) -> Result<Vec<Manifest>> {
    if is_delta(sink).await? {
        #[cfg(feature = "delta")]
        return delta::series::list_releases(sink).await;
    }
    commit::list_releases(sink).await
}

/// Completes the newest release of a series after a run that died, and rejects it if files are missing.
pub(crate) async fn complete_series(sink: &Location, newest: &Manifest) -> Result<()> {
    if is_delta(sink).await? {
        commit::ensure_files(sink, newest).await
    } else {
        commit::repair_latest_pointer(sink, newest).await
    }
}

/// Takes back a release of a series that another one was faster than. A version of a Delta table cannot be taken back: there
/// are two ledgers then, and only people can tell which one is right.
pub(crate) async fn withdraw_release(sink: &Location, manifest: &Manifest) -> Result<()> {
    if !is_delta(sink).await? {
        return commit::withdraw_manifest(sink, manifest).await;
    }
    Err(Error::conflict(format!(
        "run `{}` stands in the Delta table `{}`, and series.state belongs to another release; does another sink share it? \
         Restore series.state from its backup, or begin a new series in an empty sink and an empty state",
        manifest.run, sink.name
    )))
}

/// All releases of a sink whose files are still there, oldest first: VACUUM takes those that only older versions of a Delta
/// table list.
pub(crate) async fn readable_releases(sink: &Location) -> Result<Vec<Manifest>> {
    let mut found = releases(sink).await?;
    if !is_delta(sink).await? {
        return Ok(found);
    }
    let listed: Vec<_> = sink.store.list(Some(&sink.at("data"))).try_collect().await?;
    let there: BTreeSet<Path> = listed.into_iter().map(|meta| meta.location).collect();
    let is_readable = |manifest: &Manifest| manifest.files.iter().all(|file| there.contains(&sink.at(&file.path)));
    let newest = found.pop();
    let before = found.len();
    found.retain(is_readable);
    if found.len() < before {
        let lost = before - found.len();
        tracing::warn!("{lost} earlier releases have lost files, as by VACUUM, and are not looked at");
    }
    found.extend(newest);
    Ok(found)
}

/// Whether a sink is a Delta table.
pub(crate) async fn is_delta(sink: &Location) -> Result<bool> {
    let found = sink.store.list(Some(&sink.at("_delta_log"))).try_next().await?.is_some();
    if found && !cfg!(feature = "delta") {
        let build = crate::policy::BUILD;
        return Err(Error::job(format!(
            "`{}` is a Delta table, which this build does not support; {build}",
            sink.name
        )));
    }
    Ok(found)
}

/// Returns all releases of a sink, oldest first; those of a Delta table as far back as its log goes.
pub async fn releases(sink: &Location) -> Result<Vec<Manifest>> {
    if is_delta(sink).await? {
        #[cfg(feature = "delta")]
        return Ok(delta::list_releases(sink).await?.into_iter().map(|(_, manifest)| manifest).collect());
    }
    commit::list_releases(sink).await
}

/// Returns the run id of the current release.
pub async fn latest_run(sink: &Location) -> Result<Option<String>> {
    if is_delta(sink).await? {
        return Ok(releases(sink).await?.pop().map(|manifest| manifest.run));
    }
    commit::latest_run(sink).await
}

/// The manifest of a run, if it has been committed.
pub(crate) async fn committed_manifest(sink: &Location, run: &str) -> Result<Option<Manifest>> {
    if is_delta(sink).await? {
        #[cfg(feature = "delta")]
        return delta::committed_manifest(sink, run).await;
    }
    commit::committed_manifest(sink, run).await
}

/// Makes an earlier release the current one.
pub async fn rollback(sink: &Location, run: &str) -> Result<()> {
    if is_delta(sink).await? {
        #[cfg(feature = "delta")]
        return Err(delta::no_roll_back(sink, run).await);
    }
    commit::rollback(sink, run).await
}

/// Removes data files that no release refers to and that are older than `age`; with `dry_run`, only finds them.
/// Returns their paths below the sink, and their sizes.
///
/// ```
/// use std::time::Duration;
///
/// use throng::releases::{Location, collect_garbage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), throng::Error> {
/// # let folder = tempfile::tempdir()?;
/// let sink = Location::open(folder.path(), "published")?;
/// let removable = collect_garbage(&sink, Duration::from_secs(24 * 3600), true).await?;
/// assert!(removable.is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn collect_garbage(sink: &Location, age: Duration, dry_run: bool) -> Result<Vec<(String, u64)>> {
    if is_delta(sink).await? {
        return Err(Error::conflict(format!(
            "`{}` is a Delta table: use VACUUM to remove what its newest version does not refer to",
            sink.name
        )));
    }
    commit::collect_garbage(sink, age, dry_run).await
}

/// Rejects a sink that holds something other than releases.
async fn ensure_no_other_releases(sink: &Location, ours: &[&str]) -> Result<()> {
    let listed = sink.store.list_with_delimiter(Some(&sink.prefix)).await?;
    let foreign = listed
        .objects
        .iter()
        .map(|meta| &meta.location)
        .chain(&listed.common_prefixes)
        .find(|path| path.filename().is_some_and(|name| !ours.contains(&name)));
    match foreign {
        None => Ok(()),
        Some(path) => Err(Error::conflict(format!(
            "the sink `{}` holds something that is not a release (`{}`); choose an empty folder",
            sink.name,
            path.filename().unwrap_or_default()
        ))),
    }
}
