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

use std::time::Duration;

use futures::TryStreamExt;
use object_store::ObjectStore;

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
            "`{}` is a Delta table: use VACUUM to remove what its log does not refer to",
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
