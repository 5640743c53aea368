//! The atomic step: a manifest that is written once, and a pointer to the newest release.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use serde::{Deserialize, Serialize};

use super::guard::race_error;
use super::lease::{EXPIRY, LEASE, is_leased, lease_of};
use super::manifest::Manifest;
use crate::error::{Error, Result};
use crate::policy::{QIT, ST};
use crate::storage::Location;
use crate::write::WrittenFile;

/// What `_latest` points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    /// Run that made the newest release.
    pub run: String,
    /// Its manifest, below the sink.
    pub manifest: String,
    /// Folder of its files, below the sink.
    pub data: String,
    /// Whether this release was chosen over a newer one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
}

/// Path of a run's manifest below the sink.
pub(crate) fn manifest_name(run: &str) -> String {
    format!("_manifest/{run}.json")
}

/// The manifest of a run, if it has been committed.
pub(crate) async fn committed_manifest(sink: &Location, run: &str) -> Result<Option<Manifest>> {
    read_json(sink, &sink.at(&manifest_name(run))).await
}

/// The newest release of a sink.
pub(crate) async fn latest_release(sink: &Location) -> Result<Option<Latest>> {
    read_json(sink, &sink.at("_latest")).await
}

/// All releases of a sink, oldest first.
pub(crate) async fn list_releases(sink: &Location) -> Result<Vec<Manifest>> {
    let listed: Vec<_> = sink.store.list(Some(&sink.at("_manifest"))).try_collect().await?;
    let mut found: Vec<Manifest> = Vec::new();
    for meta in listed {
        found.extend(read_json::<Manifest>(sink, &meta.location).await?);
    }
    found.sort_by(|a, b| a.committed.cmp(&b.committed).then(a.run.cmp(&b.run)));
    Ok(found)
}

/// Releases of other runs than `run`, counted by their manifests.
pub(crate) async fn count_others(sink: &Location, run: &str) -> Result<u64> {
    let own = sink.at(&manifest_name(run));
    let listed: Vec<_> = sink.store.list(Some(&sink.at("_manifest"))).try_collect().await?;
    Ok(listed.iter().filter(|meta| meta.location != own).count() as u64)
}

/// Returns the run id of the current release.
pub(crate) async fn latest_run(sink: &Location) -> Result<Option<String>> {
    Ok(latest_release(sink).await?.map(|latest| latest.run))
}

/// Makes an earlier release the current one.
pub(crate) async fn rollback(sink: &Location, run: &str) -> Result<()> {
    match committed_manifest(sink, run).await? {
        Some(manifest) => point_to(sink, &manifest, true).await,
        None => Err(no_such_run(sink, run)),
    }
}

/// Removes releases of a series that are older than its horizon, and data files that no release refers to, that are older
/// than `age` and that no active run holds a lease on; with `dry_run`, only finds them. Returns their paths below the sink, and their sizes.
pub(crate) async fn collect_garbage(sink: &Location, age: Duration, dry_run: bool) -> Result<Vec<(String, u64)>> {
    let now = jiff::Timestamp::now().as_second();
    let older = |meta: &ObjectMeta, age: Duration| {
        let age = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        now.saturating_sub(meta.last_modified.timestamp()) >= age
    };
    // Data first, manifests second: a run that commits in between is seen.
    let listed: Vec<_> = sink.store.list(Some(&sink.at("data"))).try_collect().await?;
    ensure_inside(sink, &listed)?;
    let leases = || listed.iter().filter(|meta| meta.location.filename() == Some(LEASE));
    let held: BTreeSet<Path> =
        leases().filter(|lease| !older(lease, EXPIRY)).filter_map(|lease| folder_of(&lease.location)).collect();
    let expired = expired_releases(sink, now).await?;
    let mut kept = referenced_files(sink, &expired).await?;
    if !dry_run {
        for manifest in &expired {
            withdraw_manifest(sink, manifest).await?;
        }
        // A run that wakes up now finds its lease gone, and does not commit.
        let expired = leases().filter(|lease| older(lease, EXPIRY) && older(lease, age));
        for lease in expired.filter(|lease| !kept.contains(&lease.location)) {
            sink.store.delete(&lease.location).await?;
        }
        kept = referenced_files(sink, &[]).await?;
    }
    let mut removed: Vec<(String, u64)> = Vec::new();
    for manifest in &expired {
        removed.push((manifest_name(&manifest.run), to_json(manifest)?.content_length() as u64));
    }
    for meta in &listed {
        let is_held = held.iter().any(|folder| meta.location.prefix_matches(folder));
        if kept.contains(&meta.location) || is_held || !older(meta, age) {
            continue;
        }
        // Leases that have expired are gone.
        if !dry_run && meta.location.filename() != Some(LEASE) {
            sink.store.delete(&meta.location).await?;
        }
        let below = meta.location.prefix_match(&sink.prefix);
        let name = below.map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
        removed.push((name.unwrap_or_else(|| meta.location.to_string()), meta.size));
    }
    Ok(removed)
}

/// The releases of a series that are older than its horizon; never the newest, nor the one that readers see.
async fn expired_releases(sink: &Location, now: i64) -> Result<Vec<Manifest>> {
    let releases = list_releases(sink).await?;
    let numbered = releases.iter().filter_map(|manifest| Some((manifest.series.as_ref()?, &manifest.run)));
    let Some((series, newest)) = numbered.max_by_key(|(series, _)| series.number) else { return Ok(Vec::new()) };
    let Some(horizon) = series.horizon else { return Ok(Vec::new()) };
    let kept = [Some(newest.clone()), latest_run(sink).await?];
    let age = |manifest: &Manifest| {
        let committed = manifest.committed.parse::<jiff::Timestamp>().ok()?;
        u64::try_from(now.saturating_sub(committed.as_second())).ok()
    };
    let is_old = |manifest: &Manifest| age(manifest).is_some_and(|age| age > horizon);
    Ok(releases
        .into_iter()
        .filter(|manifest| is_old(manifest) && !kept.contains(&Some(manifest.run.clone())))
        .collect())
}

/// Everything that releases refer to, but for some of them, and the leases of those whose run could not finish.
async fn referenced_files(sink: &Location, except: &[Manifest]) -> Result<BTreeSet<Path>> {
    let mut paths = BTreeSet::new();
    for release in list_releases(sink).await? {
        if except.iter().any(|other| other.run == release.run) {
            continue;
        }
        paths.extend(release.files.iter().map(|file| sink.at(&file.path)));
        paths.insert(lease_of(sink, &release.data));
    }
    Ok(paths)
}

/// The folder of a file.
fn folder_of(file: &Path) -> Option<Path> {
    file.as_ref().rsplit_once('/').and_then(|(folder, _)| Path::parse(folder).ok())
}

/// Refuses to collect garbage if a link leads out of the sink: what is behind it is not ours.
fn ensure_inside(sink: &Location, listed: &[ObjectMeta]) -> Result<()> {
    if sink.root.scheme() != "file" {
        return Ok(());
    }
    let outside = |name: &str| {
        Error::conflict(format!("`{name}` of the sink `{}` is a link; files behind links are not removed", sink.name))
    };
    let data = format!("/{}", sink.at("data"));
    if std::fs::symlink_metadata(&data).is_ok_and(|known| known.is_symlink()) {
        return Err(outside("data"));
    }
    let Ok(root) = std::fs::canonicalize(&data) else { return Ok(()) };
    let folders: BTreeSet<Path> = listed.iter().filter_map(|meta| folder_of(&meta.location)).collect();
    match folders
        .iter()
        .find(|folder| std::fs::canonicalize(format!("/{folder}")).is_ok_and(|real| !real.starts_with(&root)))
    {
        Some(folder) => Err(outside(&format!("data/.../{}", folder.filename().unwrap_or_default()))),
        None => Ok(()),
    }
}

/// The outcome of an attempt to commit.
#[derive(Debug)]
pub(crate) enum Commit {
    /// This attempt made the release.
    Won,
    /// Another attempt at the same run was first.
    Lost(Box<Manifest>),
    /// The release exists, or may exist, but something went wrong on the way: its files must stay.
    Unknown(Error),
}

/// Commits a release: the manifest first, and only when it is not there yet; then the pointer.
pub(crate) async fn commit_release(sink: &Location, manifest: &Manifest) -> Result<Commit> {
    if let Some(other) = put_manifest(sink, manifest).await? {
        return Ok(other);
    }
    match ensure_alone(sink, manifest, &sink.at(&manifest_name(&manifest.run))).await {
        Ok(None) => {}
        Ok(Some(raced)) => return Err(raced),
        Err(error) => return Ok(Commit::Unknown(error)),
    }
    if let Err(error) = show_release(sink, manifest).await {
        return Ok(Commit::Unknown(error));
    }
    Ok(Commit::Won)
}

/// Writes the manifest, if the run has none; returns what has become of the attempt if that is not all.
pub(crate) async fn put_manifest(sink: &Location, manifest: &Manifest) -> Result<Option<Commit>> {
    let path = sink.at(&manifest_name(&manifest.run));
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    if let Err(error) = sink.store.put_opts(&path, to_json(manifest)?, options).await {
        // A failed put may have succeeded all the same: a timeout, or a retry that met its own first attempt. What
        // is stored now decides.
        match committed_manifest(sink, &manifest.run).await {
            Ok(Some(there)) if there.data == manifest.data => {}
            Ok(Some(other)) => return Ok(Some(Commit::Lost(Box::new(other)))),
            // An abandoned request may still arrive; its files are left to `gc`, which runs a day later.
            Ok(None) if matches!(error, object_store::Error::Generic { .. }) => {
                return Ok(Some(Commit::Unknown(error.into())));
            }
            Ok(None) => return Err(error.into()),
            Err(_) => return Ok(Some(Commit::Unknown(error.into()))),
        }
    }
    // `gc` takes the lease before it removes what has no manifest.
    match is_leased(sink, &manifest.data).await {
        Ok(true) => Ok(None),
        Ok(false) => {
            sink.store.delete(&path).await?;
            Err(Error::retry("`throng gc` has removed the files of this run while it was suspended; run again"))
        }
        Err(error) => Ok(Some(Commit::Unknown(error))),
    }
}

/// Makes a release the one that readers see.
pub(crate) async fn show_release(sink: &Location, manifest: &Manifest) -> Result<()> {
    point_to(sink, manifest, false).await?;
    mark_success(sink).await;
    Ok(())
}

/// Takes back the manifest of a release that another one was faster than; its files are left to `gc`.
pub(crate) async fn withdraw_manifest(sink: &Location, manifest: &Manifest) -> Result<()> {
    Ok(sink.store.delete(&sink.at(&manifest_name(&manifest.run))).await?)
}

/// Withdraws a release that must be the only one of its sink but is not: two runs have found the sink empty. Both may
/// withdraw; better none than two.
async fn ensure_alone(sink: &Location, manifest: &Manifest, path: &Path) -> Result<Option<Error>> {
    if manifest.earlier_releases.is_some() || count_others(sink, &manifest.run).await? == 0 {
        return Ok(None);
    }
    sink.store.delete(path).await?;
    Ok(Some(race_error(sink)))
}

/// Rejects a release with missing files: somebody has removed them, and a manifest alone is not a release.
pub(crate) async fn ensure_files(sink: &Location, manifest: &Manifest) -> Result<()> {
    // A series lists files of earlier releases again.
    let folder = if manifest.series.is_some() { "data" } else { manifest.data.as_str() };
    let listed: Vec<_> = sink.store.list(Some(&sink.at(folder))).try_collect().await?;
    let there: BTreeSet<&Path> = listed.iter().map(|meta| &meta.location).collect();
    let missing = manifest.files.iter().filter(|file| !there.contains(&sink.at(&file.path))).count();
    if missing == 0 {
        return Ok(());
    }
    if manifest.series.is_some() {
        return Err(Error::conflict(format!(
            "run `{}`, the newest release of the series, lacks {missing} of its {} files; restore the sink and series.state \
             from their backups, or begin a new series in an empty sink and an empty state",
            manifest.run,
            manifest.files.len(),
        )));
    }
    Err(Error::conflict(format!(
        "run `{}` has been released, but {missing} of its {} files are missing; run again with another --run-id, and remove \
         `{}` from the sink",
        manifest.run,
        manifest.files.len(),
        manifest_name(&manifest.run)
    )))
}

/// Completes a run that died after its commit: repairs a pointer that is missing or older.
///
/// Clocks can be wrong, so the time of a commit alone does not make a release newer than the current one: its run
/// must have died before it could update the pointer, which its lease shows.
pub(crate) async fn repair_latest_pointer(sink: &Location, manifest: &Manifest) -> Result<()> {
    ensure_files(sink, manifest).await?;
    let died = is_leased(sink, &manifest.data).await?;
    let newest = match latest_release(sink).await? {
        Some(latest) if latest.rolled_back => return Ok(()),
        Some(latest) => committed_manifest(sink, &latest.run).await?,
        None => None,
    };
    if newest.is_none_or(|newest| died && newest.committed < manifest.committed) {
        point_to(sink, manifest, false).await?;
        mark_success(sink).await;
    }
    if died {
        sink.store.delete(&lease_of(sink, &manifest.data)).await?;
    }
    Ok(())
}

/// The marker is for readers that look for it; the release does not depend on it.
async fn mark_success(sink: &Location) {
    if let Err(error) = sink.store.put(&sink.at("_SUCCESS"), PutPayload::new()).await {
        tracing::warn!(%error, "_SUCCESS could not be written");
    }
}

/// Maximum attempts at updating the pointer: each failed one means that another release succeeded.
const FLIPS: usize = 10;

/// Makes a release the newest one.
async fn point_to(sink: &Location, manifest: &Manifest, rolled_back: bool) -> Result<()> {
    let path = sink.at("_latest");
    let pointer = Latest {
        run: manifest.run.clone(),
        manifest: manifest_name(&manifest.run),
        data: manifest.data.clone(),
        rolled_back,
    };
    for _ in 0..FLIPS {
        let mode = match sink.store.head(&path).await {
            Ok(meta) if meta.e_tag.is_some() && sink.root.scheme() != "file" => {
                PutMode::Update(UpdateVersion { e_tag: meta.e_tag, version: meta.version })
            }
            // The local file system replaces a file in one step, but knows no conditional update.
            Ok(_) => PutMode::Overwrite,
            Err(object_store::Error::NotFound { .. }) => PutMode::Create,
            Err(error) => return Err(error.into()),
        };
        match sink.store.put_opts(&path, to_json(&pointer)?, PutOptions { mode, ..PutOptions::default() }).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::retry(format!(
        "release `{}` is committed, but other runs keep changing `_latest`; run again",
        manifest.run
    )))
}

/// The error about a run that was never released.
pub(crate) fn no_such_run(sink: &Location, run: &str) -> Error {
    let name = &sink.name;
    Error::input(format!("`{name}` holds no release of run `{run}`; `throng releases {name}` lists those it holds"))
}

/// Removes the files of an attempt that will not be committed. Best effort: leftovers are invisible to readers.
pub(crate) async fn discard_folder(sink: &Location, folder: &Path) {
    let listed: Vec<_> = sink.store.list(Some(folder)).try_collect().await.unwrap_or_default();
    for meta in listed {
        if let Err(error) = sink.store.delete(&meta.location).await {
            tracing::warn!(path = %meta.location, %error, "a staged file could not be removed");
        }
    }
    if sink.root.scheme() == "file" {
        // Object stores have no folders; the local file system keeps empty ones.
        for table in [QIT, ST] {
            let _ = std::fs::remove_dir(format!("/{folder}/{table}"));
        }
        for below in std::fs::read_dir(format!("/{folder}")).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(below.path());
        }
        let _ = std::fs::remove_dir(format!("/{folder}"));
    }
}

/// Removes files of an attempt that no task has reported: those of repeated tasks.
pub(crate) async fn delete_unreported(sink: &Location, folder: &Path, reported: &[WrittenFile]) -> Result<()> {
    let reported: BTreeSet<&str> = reported.iter().map(|file| file.path.as_str()).collect();
    let listed: Vec<_> = sink.store.list(Some(folder)).try_collect().await?;
    let ours =
        |meta: &&ObjectMeta| meta.location.filename() == Some(LEASE) || reported.contains(meta.location.as_ref());
    for meta in listed.iter().filter(|meta| !ours(meta)) {
        tracing::info!(path = %meta.location, "removing a file of a repeated task");
        sink.store.delete(&meta.location).await?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> Result<PutPayload> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| Error::internal(error.to_string()))?;
    Ok(PutPayload::from(text))
}

async fn read_json<T: for<'a> Deserialize<'a>>(sink: &Location, path: &Path) -> Result<Option<T>> {
    let found = match sink.store.get(path).await {
        Ok(found) => found.bytes().await?,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let parsed = serde_json::from_slice(&found);
    parsed.map(Some).map_err(|error| Error::input(format!("`{path}` is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;

    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, PutMultipartOptions, PutResult,
    };
    use url::Url;

    use super::super::lease::Lease;
    use super::*;
    use crate::error::ErrorKind;

    /// A store whose puts of one file fail, after or before they are done.
    #[derive(Debug)]
    struct Faulty {
        inner: InMemory,
        file: &'static str,
        done_all_the_same: bool,
    }

    impl fmt::Display for Faulty {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("faulty")
        }
    }

    #[async_trait::async_trait]
    impl ObjectStore for Faulty {
        async fn put_opts(
            &self,
            location: &Path,
            payload: PutPayload,
            options: PutOptions,
        ) -> object_store::Result<PutResult> {
            if !location.as_ref().contains(self.file) {
                return self.inner.put_opts(location, payload, options).await;
            }
            if self.done_all_the_same {
                self.inner.put_opts(location, payload, options).await?;
            }
            Err(object_store::Error::Generic { store: "faulty", source: "connection cut".into() })
        }

        async fn put_multipart_opts(
            &self,
            location: &Path,
            options: PutMultipartOptions,
        ) -> object_store::Result<Box<dyn MultipartUpload>> {
            self.inner.put_multipart_opts(location, options).await
        }

        async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
            self.inner.get_opts(location, options).await
        }

        fn delete_stream(
            &self,
            locations: BoxStream<'static, object_store::Result<Path>>,
        ) -> BoxStream<'static, object_store::Result<Path>> {
            self.inner.delete_stream(locations)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
            self.inner.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
            self.inner.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
            self.inner.copy_opts(from, to, options).await
        }
    }

    fn sink(file: &'static str, done_all_the_same: bool) -> Location {
        Location {
            store: Arc::new(Faulty { inner: InMemory::new(), file, done_all_the_same }),
            root: Url::parse("memory:///").unwrap(),
            prefix: Path::from("sink"),
            name: "memory".into(),
            service: crate::storage::stores::Service::default(),
        }
    }

    fn manifest(data: &str, committed: &str) -> Manifest {
        let manifest = serde_json::json!({
            "format": 1, "version": "0", "run": "r", "committed": committed, "earlier_releases": 0, "policy": "p", "k": 2, "method": "auto",
            "seed": 1, "input": [], "data": data, "files": [], "schema": {}, "class_columns": [], "rows_read": 0,
            "rows": 0, "suppressed": 0, "cells": 1,
            "scores": { "gcp": null, "um": null, "wgu": null, "mpm": null, "wgp": null, "dm": 0.0, "c_avg": null,
                        "risk_max": null, "risk_mean": null, "by_column": {} },
            "verification": { "rules": [], "classes": { "count": 0, "smallest": 0, "by_size": {} } },
        });
        serde_json::from_value(manifest).unwrap()
    }

    #[tokio::test]
    async fn a_put_that_failed_after_it_was_done_is_a_commit() {
        let sink = sink("_manifest", true);
        let _lease = lease(&sink, "data/a").await;
        assert!(matches!(commit_release(&sink, &manifest("data/a", "1")).await, Ok(Commit::Won)));
        assert_eq!(latest_release(&sink).await.unwrap().unwrap().data, "data/a");
    }

    #[tokio::test]
    async fn a_put_that_was_not_done_is_no_commit() {
        let sink = sink("_manifest", false);
        assert!(matches!(commit_release(&sink, &manifest("data/a", "1")).await, Ok(Commit::Unknown(_))));
        assert!(committed_manifest(&sink, "r").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_release_without_its_pointer_is_settled_by_the_next_run() {
        let sink = sink("nothing", false);
        let done = manifest("data/a", "1");
        sink.store.put(&sink.at(&manifest_name("r")), to_json(&done).unwrap()).await.unwrap();
        assert!(latest_release(&sink).await.unwrap().is_none());
        repair_latest_pointer(&sink, &done).await.unwrap();
        assert_eq!(latest_release(&sink).await.unwrap().unwrap().run, "r");
    }

    #[tokio::test]
    async fn a_pointer_that_cannot_be_flipped_leaves_the_release_in_place() {
        let sink = sink("_latest", false);
        let _lease = lease(&sink, "data/a").await;
        assert!(matches!(commit_release(&sink, &manifest("data/a", "1")).await, Ok(Commit::Unknown(_))));
        assert!(committed_manifest(&sink, "r").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_second_attempt_at_a_run_loses() {
        let sink = sink("nothing", false);
        let _leases = (lease(&sink, "data/a").await, lease(&sink, "data/b").await);
        assert!(matches!(commit_release(&sink, &manifest("data/a", "1")).await, Ok(Commit::Won)));
        let second = commit_release(&sink, &manifest("data/b", "2")).await;
        assert!(matches!(second, Ok(Commit::Lost(first)) if first.data == "data/a"));
        assert_eq!(latest_release(&sink).await.unwrap().unwrap().data, "data/a");
    }

    /// Two runs that have both found the sink empty must not both publish.
    #[tokio::test]
    async fn releases_that_race_for_an_empty_sink_are_withdrawn() {
        let sink = sink("nothing", false);
        let (mut first, mut second) = (manifest("data/a", "1"), manifest("data/b", "2"));
        (first.run, second.run) = ("first".into(), "second".into());
        (first.earlier_releases, second.earlier_releases) = (None, None);
        let _leases = (lease(&sink, "data/a").await, lease(&sink, "data/b").await);
        assert!(matches!(commit_release(&sink, &first).await, Ok(Commit::Won)));
        let refused = commit_release(&sink, &second).await;
        assert!(
            refused
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::Retry && error.to_string().contains("same moment")),
            "{refused:?}"
        );
        assert!(committed_manifest(&sink, "second").await.unwrap().is_none(), "its manifest is gone");
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("first"));
        assert_eq!((count_others(&sink, "first").await.unwrap(), count_others(&sink, "other").await.unwrap()), (0, 1));
    }

    async fn lease(sink: &Location, data: &str) -> Lease {
        Lease::create_in(sink, &sink.at(data)).await.unwrap()
    }

    fn with_file(mut manifest: Manifest) -> Manifest {
        let path = format!("{}/part.parquet", manifest.data);
        manifest.files.push(super::super::manifest::OutputFile { path, rows: 1, size: 3, blake3: String::new() });
        manifest
    }

    /// Files must not be removed between the last file and the manifest.
    #[tokio::test]
    async fn garbage_is_nothing_that_a_run_at_work_holds() {
        let sink = sink("nothing", false);
        let release = with_file(manifest("data/a", "1"));
        let part = sink.at("data/a/part.parquet");
        let held = lease(&sink, "data/a").await;
        sink.store.put(&part, PutPayload::from_static(b"abc")).await.unwrap();
        assert_eq!(collect_garbage(&sink, Duration::ZERO, false).await.unwrap(), []);
        assert!(matches!(commit_release(&sink, &release).await, Ok(Commit::Won)));
        held.release_lease().await;
        assert_eq!(collect_garbage(&sink, Duration::ZERO, false).await.unwrap(), []);
        assert!(sink.store.head(&part).await.is_ok());
        repair_latest_pointer(&sink, &release).await.unwrap();
    }

    /// A run that has lost its lease takes its manifest back.
    #[tokio::test]
    async fn a_run_that_has_lost_its_lease_commits_nothing() {
        let sink = sink("nothing", false);
        let held = lease(&sink, "data/a").await;
        // What `gc` does to a lease that has not been renewed for long.
        sink.store.delete(&sink.at("data/a/_lease")).await.unwrap();
        let refused = commit_release(&sink, &manifest("data/a", "1")).await;
        assert!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::Retry), "{refused:?}");
        assert!(
            committed_manifest(&sink, "r").await.unwrap().is_none() && latest_release(&sink).await.unwrap().is_none()
        );
        drop(held);
    }

    /// "Released before" must not be said of files that are gone.
    #[tokio::test]
    async fn a_release_without_its_files_is_none() {
        let sink = sink("nothing", false);
        let release = with_file(manifest("data/a", "1"));
        sink.store.put(&sink.at(&manifest_name("r")), to_json(&release).unwrap()).await.unwrap();
        let refused = repair_latest_pointer(&sink, &release).await.unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Conflict && refused.to_string().contains("1 of its 1 files are missing"),
            "{refused}"
        );
    }

    /// A commit by a clock that was ahead must not let a rerun of it take the pointer back.
    #[tokio::test]
    async fn a_clock_that_was_ahead_does_not_take_the_pointer_back() {
        let sink = sink("nothing", false);
        let (mut ahead, mut new) = (manifest("data/a", "2030"), manifest("data/b", "2026"));
        (ahead.run, new.run) = ("ahead".into(), "new".into());
        for release in [&ahead, &new] {
            let held = lease(&sink, &release.data).await;
            commit_release(&sink, release).await.unwrap();
            held.release_lease().await;
        }
        repair_latest_pointer(&sink, &ahead).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("new"));
        // One that has died before it could point to its release is still finished.
        let mut died = manifest("data/c", "2027");
        died.run = "died".into();
        sink.store.put(&sink.at(&manifest_name("died")), to_json(&died).unwrap()).await.unwrap();
        drop(lease(&sink, "data/c").await);
        repair_latest_pointer(&sink, &died).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("died"));
        assert!(!is_leased(&sink, "data/c").await.unwrap(), "once");
    }

    /// Files behind a link stay.
    #[cfg(unix)]
    #[tokio::test]
    async fn garbage_behind_a_link_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let (elsewhere, sink) = (folder.path().join("elsewhere"), folder.path().join("sink"));
        std::fs::create_dir_all(elsewhere.join("run=x")).unwrap();
        std::fs::create_dir_all(&sink).unwrap();
        std::fs::write(elsewhere.join("run=x/precious.parquet"), "abc").unwrap();
        std::os::unix::fs::symlink(&elsewhere, sink.join("data")).unwrap();
        let opened = Location::open(folder.path(), "sink").unwrap();
        let refused = collect_garbage(&opened, Duration::ZERO, false).await.unwrap_err();
        assert!(refused.kind() == ErrorKind::Conflict && refused.to_string().contains("`data`"), "{refused}");
        std::fs::remove_file(sink.join("data")).unwrap();
        std::fs::create_dir(sink.join("data")).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("run=x"), sink.join("data/run=y")).unwrap();
        let refused = collect_garbage(&opened, Duration::ZERO, false).await;
        assert!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict), "{refused:?}");
        assert!(elsewhere.join("run=x/precious.parquet").exists());
    }

    #[tokio::test]
    async fn garbage_is_what_no_release_refers_to() {
        let sink = sink("nothing", false);
        let mut kept = manifest("data/a", "1");
        kept.files.push(super::super::manifest::OutputFile {
            path: "data/a/part.parquet".into(),
            rows: 1,
            size: 3,
            blake3: String::new(),
        });
        for path in ["data/a/part.parquet", "data/dead/part.parquet"] {
            sink.store.put(&sink.at(path), PutPayload::from_static(b"abc")).await.unwrap();
        }
        let lease = lease(&sink, "data/a").await;
        commit_release(&sink, &kept).await.unwrap();
        lease.release_lease().await;
        let dead = vec![("data/dead/part.parquet".to_owned(), 3)];
        assert_eq!(collect_garbage(&sink, Duration::from_secs(3600), false).await.unwrap(), []);
        assert_eq!(collect_garbage(&sink, Duration::ZERO, true).await.unwrap(), dead);
        assert_eq!(collect_garbage(&sink, Duration::ZERO, false).await.unwrap(), dead);
        assert_eq!(collect_garbage(&sink, Duration::ZERO, false).await.unwrap(), []);
        assert!(sink.store.head(&sink.at("data/a/part.parquet")).await.is_ok());
    }

    #[tokio::test]
    async fn a_rollback_moves_the_pointer_and_nothing_else() {
        let sink = sink("nothing", false);
        let (mut old, mut new) = (manifest("data/a", "1"), manifest("data/b", "2"));
        (old.run, new.run) = ("old".into(), "new".into());
        let _leases = (lease(&sink, "data/a").await, lease(&sink, "data/b").await);
        commit_release(&sink, &old).await.unwrap();
        commit_release(&sink, &new).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("new"));
        rollback(&sink, "old").await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("old"));
        // Running the newer one again does not undo what somebody has decided.
        repair_latest_pointer(&sink, &new).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("old"));
        assert_eq!(list_releases(&sink).await.unwrap().len(), 2);
        assert!(rollback(&sink, "none").await.is_err());
    }

    /// A release of a series by its number, so many days old, with a file of its own and that of the first.
    fn night(number: u64, days: i64, horizon: Option<u64>) -> Manifest {
        let committed = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
        let mut night = manifest(&format!("data/{number}"), &committed.to_string());
        night.run = format!("night-{number}");
        night.series = Some(crate::series::counts::SeriesRelease { number, horizon, ..Default::default() });
        for folder in [night.data.clone(), "data/1".to_owned()] {
            let path = format!("{folder}/part.parquet");
            night.files.push(super::super::manifest::OutputFile { path, rows: 1, size: 3, blake3: String::new() });
        }
        night
    }

    async fn nights(horizon: Option<u64>, newest_days: i64) -> Location {
        let sink = sink("nothing", false);
        for night in [night(1, 40, None), night(2, 30, None), night(3, newest_days, horizon)] {
            let held = lease(&sink, &night.data).await;
            let path = sink.at(&format!("{}/part.parquet", night.data));
            sink.store.put(&path, PutPayload::from_static(b"abc")).await.unwrap();
            assert!(put_manifest(&sink, &night).await.unwrap().is_none());
            show_release(&sink, &night).await.unwrap();
            held.release_lease().await;
        }
        sink
    }

    async fn removed(sink: &Location, dry_run: bool) -> Vec<String> {
        let found = collect_garbage(sink, Duration::ZERO, dry_run).await.unwrap();
        found.into_iter().map(|(path, _)| path).collect()
    }

    const DAYS: u64 = 24 * 3600;

    /// Files that the newest release lists again stay, whoever wrote them.
    #[tokio::test]
    async fn releases_beyond_the_horizon_go_and_take_what_nobody_else_lists() {
        let sink = nights(Some(35 * DAYS), 1).await;
        assert_eq!(removed(&sink, true).await, ["_manifest/night-1.json"]);
        assert_eq!(list_releases(&sink).await.unwrap().len(), 3, "a dry run removes nothing");
        let sink = nights(Some(20 * DAYS), 1).await;
        let gone = ["_manifest/night-1.json", "_manifest/night-2.json", "data/2/part.parquet"];
        assert_eq!(removed(&sink, true).await, gone);
        assert_eq!(removed(&sink, false).await, gone);
        let left: Vec<String> = list_releases(&sink).await.unwrap().into_iter().map(|manifest| manifest.run).collect();
        assert_eq!(left, ["night-3"]);
        assert!(sink.store.head(&sink.at("data/1/part.parquet")).await.is_ok());
        assert_eq!(removed(&sink, false).await, [""; 0]);
    }

    #[tokio::test]
    async fn without_a_horizon_every_release_stays_and_with_one_the_newest_and_the_shown() {
        assert_eq!(removed(&nights(None, 1).await, true).await, [""; 0]);
        // The newest is beyond the horizon itself: without it the series would be gone.
        let sink = nights(Some(DAYS), 20).await;
        assert_eq!(
            removed(&sink, true).await,
            ["_manifest/night-1.json", "_manifest/night-2.json", "data/2/part.parquet"]
        );
        rollback(&sink, "night-2").await.unwrap();
        assert_eq!(removed(&sink, false).await, ["_manifest/night-1.json"], "readers see the second");
    }

    #[tokio::test]
    async fn a_withdrawn_release_is_gone_for_its_readers_and_its_files_are_garbage() {
        let sink = sink("nothing", false);
        let release = with_file(manifest("data/a", "1"));
        let held = lease(&sink, "data/a").await;
        sink.store.put(&sink.at("data/a/part.parquet"), PutPayload::from_static(b"abc")).await.unwrap();
        assert!(put_manifest(&sink, &release).await.unwrap().is_none());
        withdraw_manifest(&sink, &release).await.unwrap();
        held.release_lease().await;
        assert!(committed_manifest(&sink, "r").await.unwrap().is_none());
        assert_eq!(removed(&sink, false).await, ["data/a/part.parquet"]);
    }

    /// A task that ran twice has left files of both attempts, and only one of them was reported.
    #[tokio::test]
    async fn files_that_no_task_has_reported_are_removed() {
        let sink = sink("nothing", false);
        let folder = sink.at("data/a");
        let held = lease(&sink, "data/a").await;
        for name in ["first.parquet", "second.parquet"] {
            sink.store.put(&folder.clone().join(name), PutPayload::from_static(b"abc")).await.unwrap();
        }
        let reported = WrittenFile { path: folder.clone().join("second.parquet").to_string(), rows: 1, size: 3 };
        delete_unreported(&sink, &folder, &[reported]).await.unwrap();
        let listed: Vec<_> = sink.store.list(Some(&folder)).try_collect().await.unwrap();
        let mut names: Vec<&str> = listed.iter().filter_map(|meta| meta.location.filename()).collect();
        names.sort_unstable();
        assert_eq!(names, ["_lease", "second.parquet"], "the lease is nobody's file");
        held.release_lease().await;
    }

    #[tokio::test]
    async fn a_damaged_manifest_is_named() {
        let sink = sink("nothing", false);
        sink.store.put(&sink.at(&manifest_name("r")), PutPayload::from_static(b"{ half")).await.unwrap();
        let error = committed_manifest(&sink, "r").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.message().starts_with("`sink/_manifest/r.json` is damaged: "), "{error}");
    }
}
