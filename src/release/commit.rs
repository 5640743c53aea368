//! The atomic step: a manifest that is written once, and a pointer to the newest release.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use serde::{Deserialize, Serialize};

use super::anatomy;
use super::location::Location;
use super::manifest::Manifest;
use super::write::Written;
use crate::error::{Error, Result};

/// What `_latest` points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latest {
    /// Run that made the newest release.
    pub run: String,
    /// Its manifest, below the sink.
    pub manifest: String,
    /// Folder of its files, below the sink.
    pub data: String,
    /// Whether somebody chose this release over a newer one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
}

/// Path of a run's manifest below the sink.
pub(super) fn manifest_name(run: &str) -> String {
    format!("_manifest/{run}.json")
}

/// The manifest of a run, if it has been committed.
pub(super) async fn committed(sink: &Location, run: &str) -> Result<Option<Manifest>> {
    read_json(sink, &sink.at(&manifest_name(run))).await
}

/// The newest release of a sink.
pub(super) async fn latest(sink: &Location) -> Result<Option<Latest>> {
    read_json(sink, &sink.at("_latest")).await
}

/// All releases of a sink, oldest first.
pub(super) async fn releases(sink: &Location) -> Result<Vec<Manifest>> {
    let listed: Vec<_> = sink.store.list(Some(&sink.at("_manifest"))).try_collect().await?;
    let mut found: Vec<Manifest> = Vec::new();
    for meta in listed {
        found.extend(read_json::<Manifest>(sink, &meta.location).await?);
    }
    found.sort_by(|a, b| a.committed.cmp(&b.committed).then(a.run.cmp(&b.run)));
    Ok(found)
}

/// Run id of the release that readers see.
pub(super) async fn latest_run(sink: &Location) -> Result<Option<String>> {
    Ok(latest(sink).await?.map(|latest| latest.run))
}

/// Makes an earlier release the one that readers see.
pub(super) async fn roll_back(sink: &Location, run: &str) -> Result<()> {
    match committed(sink, run).await? {
        Some(manifest) => point_to(sink, &manifest, true).await,
        None => Err(no_such_run(sink, run)),
    }
}

/// Removes data files that no release refers to and that are older than `age`; with `dry_run`, only finds them.
/// Returns their paths below the sink, and their sizes.
pub(super) async fn collect_garbage(sink: &Location, age: Duration, dry_run: bool) -> Result<Vec<(String, u64)>> {
    let now = jiff::Timestamp::now().as_second();
    // Data first, manifests second: a run that commits in between is seen.
    let listed: Vec<_> = sink.store.list(Some(&sink.at("data"))).try_collect().await?;
    let kept: BTreeSet<Path> =
        releases(sink).await?.iter().flat_map(|release| &release.files).map(|file| sink.at(&file.path)).collect();
    let mut removed = Vec::new();
    for meta in listed {
        let old = now - meta.last_modified.timestamp() >= age.as_secs() as i64;
        if kept.contains(&meta.location) || !old {
            continue;
        }
        if !dry_run {
            sink.store.delete(&meta.location).await?;
        }
        let below = meta.location.prefix_match(&sink.prefix);
        let name = below.map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
        removed.push((name.unwrap_or_else(|| meta.location.to_string()), meta.size));
    }
    Ok(removed)
}

/// What became of an attempt to commit.
#[derive(Debug)]
pub(super) enum Commit {
    /// This attempt made the release.
    Won,
    /// Another attempt at the same run was first.
    Lost(Box<Manifest>),
    /// The release exists, or may exist, but something went wrong on the way: its files must stay.
    Unsettled(Error),
}

/// Commits a release: the manifest first, and only when it is not there yet; then the pointer.
pub(super) async fn commit(sink: &Location, manifest: &Manifest) -> Result<Commit> {
    let path = sink.at(&manifest_name(&manifest.run));
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    if let Err(error) = sink.store.put_opts(&path, json(manifest)?, options).await {
        // A put that failed may have been done all the same: a time-out, or a retry that met its own first try. What
        // stands there now tells.
        match committed(sink, &manifest.run).await {
            Ok(Some(there)) if there.data == manifest.data => {}
            Ok(Some(other)) => return Ok(Commit::Lost(Box::new(other))),
            // A request that was given up may still arrive; its files are left to `gc`, which comes a day later.
            Ok(None) if matches!(error, object_store::Error::Generic { .. }) => {
                return Ok(Commit::Unsettled(error.into()));
            }
            Ok(None) => return Err(error.into()),
            Err(_) => return Ok(Commit::Unsettled(error.into())),
        }
    }
    if let Err(error) = point_to(sink, manifest, false).await {
        return Ok(Commit::Unsettled(error));
    }
    mark_success(sink).await;
    Ok(Commit::Won)
}

/// Finishes what a run that died after its commit has left undone: a pointer that is missing or older.
pub(super) async fn settle(sink: &Location, manifest: &Manifest) -> Result<()> {
    let newest = match latest(sink).await? {
        Some(latest) if latest.rolled_back => return Ok(()),
        Some(latest) => committed(sink, &latest.run).await?,
        None => None,
    };
    if newest.is_none_or(|newest| newest.committed < manifest.committed) {
        point_to(sink, manifest, false).await?;
        mark_success(sink).await;
    }
    Ok(())
}

/// The marker is for readers that look for it; the release does not depend on it.
async fn mark_success(sink: &Location) {
    if let Err(error) = sink.store.put(&sink.at("_SUCCESS"), PutPayload::new()).await {
        tracing::warn!(%error, "_SUCCESS could not be written");
    }
}

/// Attempts at flipping the pointer before giving up: each one lost means that another release got through.
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
        match sink.store.put_opts(&path, json(&pointer)?, PutOptions { mode, ..PutOptions::default() }).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Retry(format!("release `{}` is committed, but `_latest` is contended; run again", manifest.run)))
}

/// The error about a run that was never released.
pub(super) fn no_such_run(sink: &Location, run: &str) -> Error {
    let name = &sink.name;
    Error::Input(format!("`{name}` holds no release of run `{run}`; `throng releases {name}` lists those it holds"))
}

/// Removes the files of an attempt that will not be committed. Best effort: what stays is seen by nobody.
pub(super) async fn discard(sink: &Location, folder: &Path) {
    let listed: Vec<_> = sink.store.list(Some(folder)).try_collect().await.unwrap_or_default();
    for meta in listed {
        if let Err(error) = sink.store.delete(&meta.location).await {
            tracing::warn!(path = %meta.location, %error, "a staged file could not be removed");
        }
    }
    if sink.root.scheme() == "file" {
        // Object stores have no folders; the local file system keeps empty ones.
        for table in [anatomy::QIT, anatomy::ST] {
            let _ = std::fs::remove_dir(format!("/{folder}/{table}"));
        }
        let _ = std::fs::remove_dir(format!("/{folder}"));
    }
}

/// Removes files of an attempt that nobody has told of: those of tasks that were done again.
pub(super) async fn discard_untold(sink: &Location, folder: &Path, told: &[Written]) -> Result<()> {
    let told: BTreeSet<&str> = told.iter().map(|file| file.path.as_str()).collect();
    let listed: Vec<_> = sink.store.list(Some(folder)).try_collect().await?;
    for meta in listed.iter().filter(|meta| !told.contains(meta.location.as_ref())) {
        tracing::info!(path = %meta.location, "a file of a task that was done again is removed");
        sink.store.delete(&meta.location).await?;
    }
    Ok(())
}

fn json(value: &impl Serialize) -> Result<PutPayload> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(PutPayload::from(text))
}

async fn read_json<T: for<'a> Deserialize<'a>>(sink: &Location, path: &Path) -> Result<Option<T>> {
    let found = match sink.store.get(path).await {
        Ok(found) => found.bytes().await?,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let parsed = serde_json::from_slice(&found);
    parsed.map(Some).map_err(|error| Error::Input(format!("`{path}` is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;

    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions, PutResult,
    };
    use url::Url;

    use super::*;

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
            service: super::super::stores::Service::default(),
        }
    }

    fn manifest(data: &str, committed: &str) -> Manifest {
        let manifest = serde_json::json!({
            "format": 1, "version": "0", "run": "r", "committed": committed, "policy": "p", "k": 2, "method": "auto",
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
        assert!(matches!(commit(&sink, &manifest("data/a", "1")).await, Ok(Commit::Won)));
        assert_eq!(latest(&sink).await.unwrap().unwrap().data, "data/a");
    }

    #[tokio::test]
    async fn a_put_that_was_not_done_is_no_commit() {
        let sink = sink("_manifest", false);
        assert!(matches!(commit(&sink, &manifest("data/a", "1")).await, Ok(Commit::Unsettled(_))));
        assert!(committed(&sink, "r").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_release_without_its_pointer_is_settled_by_the_next_run() {
        let sink = sink("nothing", false);
        let done = manifest("data/a", "1");
        sink.store.put(&sink.at(&manifest_name("r")), json(&done).unwrap()).await.unwrap();
        assert!(latest(&sink).await.unwrap().is_none());
        settle(&sink, &done).await.unwrap();
        assert_eq!(latest(&sink).await.unwrap().unwrap().run, "r");
    }

    #[tokio::test]
    async fn a_pointer_that_cannot_be_flipped_leaves_the_release_in_place() {
        let sink = sink("_latest", false);
        assert!(matches!(commit(&sink, &manifest("data/a", "1")).await, Ok(Commit::Unsettled(_))));
        assert!(committed(&sink, "r").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_second_attempt_at_a_run_loses() {
        let sink = sink("nothing", false);
        assert!(matches!(commit(&sink, &manifest("data/a", "1")).await, Ok(Commit::Won)));
        let second = commit(&sink, &manifest("data/b", "2")).await;
        assert!(matches!(second, Ok(Commit::Lost(first)) if first.data == "data/a"));
        assert_eq!(latest(&sink).await.unwrap().unwrap().data, "data/a");
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
        commit(&sink, &kept).await.unwrap();
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
        commit(&sink, &old).await.unwrap();
        commit(&sink, &new).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("new"));
        roll_back(&sink, "old").await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("old"));
        // Running the newer one again does not undo what somebody has decided.
        settle(&sink, &new).await.unwrap();
        assert_eq!(latest_run(&sink).await.unwrap().as_deref(), Some("old"));
        assert_eq!(releases(&sink).await.unwrap().len(), 2);
        assert!(roll_back(&sink, "none").await.is_err());
    }
}
