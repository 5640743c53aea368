//! A store with an input and a sink in it, and what readers see there.

use std::collections::BTreeSet;
use std::path::Path as LocalPath;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;
use throng::releases::{Location, Phase, StoreOptions, Stores, latest_run, releases, verify_release};
use throng::{Job, Outcome, Result, Run, RunOptions, SessionOptions};
use url::Url;

use crate::support::{batch, multiset, seeded};

/// What readers find in `_latest`.
#[derive(Debug, serde::Deserialize)]
pub struct Latest {
    pub data: String,
}

/// A store and the address that leads to it.
#[derive(Clone)]
pub struct Place {
    pub store: Arc<dyn ObjectStore>,
    /// Address of a folder in the store, without a slash at its end.
    pub url: String,
    /// Held for its end.
    _folder: Option<Arc<TempDir>>,
}

impl Place {
    /// A store under an address.
    pub fn new(store: Arc<dyn ObjectStore>, url: &str) -> Self {
        Self { store, url: url.to_owned(), _folder: None }
    }

    /// A folder of the local file system.
    pub fn local() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display());
        Self { _folder: Some(Arc::new(folder)), ..Self::new(Arc::new(LocalFileSystem::new()), &url) }
    }

    /// A store in memory.
    pub fn memory() -> Self {
        Self::new(Arc::new(InMemory::new()), "s3://lake/night")
    }

    /// The same place, reached through another store.
    pub fn through(&self, store: Arc<dyn ObjectStore>) -> Self {
        Self { store, ..self.clone() }
    }

    /// The store of this place and no other.
    fn stores(&self) -> Stores {
        Stores::default().with(&self.url, Arc::clone(&self.store)).unwrap()
    }

    fn open(&self, name: &str) -> Location {
        let url = format!("{}/{name}", self.url);
        self.stores().open(LocalPath::new("."), &url, &StoreOptions::default()).unwrap()
    }

    /// The sink.
    pub fn sink(&self) -> Location {
        self.open("out")
    }

    /// Writes a table as one Parquet file of the input.
    pub async fn input(&self, name: &str, columns: Vec<(&str, ArrayRef)>) {
        let rows = batch(columns);
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        self.store.put(&self.open("in").at(name), bytes.into()).await.unwrap();
    }

    /// A run on this place, in one partition.
    pub fn prepare(&self, id: &str, rest: &str) -> Run {
        let rest = seeded(rest);
        let text = format!(
            "version = 1\nsource.url = \"{0}/in/\"\nsink.url = \"{0}/out\"\nsink.releases = \"independent\"\n{rest}",
            self.url
        );
        let job = Job::parse(&text, LocalPath::new("job.toml")).unwrap();
        let options = RunOptions::default()
            .with_session(SessionOptions::default().with_partitions(1))
            .with_run_id(id)
            .with_stores(self.stores());
        Run::new(job, LocalPath::new("."), options).unwrap()
    }

    /// Runs a job.
    pub async fn run(&self, id: &str, rest: &str) -> Result<Outcome> {
        self.prepare(id, rest).execute(&|_, _, _| {}).await
    }

    /// Runs a job, and calls somebody at the start of a phase.
    pub async fn run_with(&self, id: &str, rest: &str, at: Phase, then: impl Fn() + Send + Sync) -> Result<Outcome> {
        let call = |phase: Phase| {
            if phase == at {
                tokio::task::block_in_place(&then)
            }
        };
        self.prepare(id, rest).execute(&|phase, _, _| call(phase)).await
    }

    /// What `_latest` says, read without Throng.
    pub async fn latest(&self) -> Option<Latest> {
        let found = self.store.get(&self.sink().at("_latest")).await.ok()?;
        Some(serde_json::from_slice(&found.bytes().await.unwrap()).unwrap())
    }

    /// Rows of the newest release as a reader sees them who follows `_latest`: sorted lines.
    pub async fn rows(&self) -> Vec<String> {
        let latest = self.latest().await.expect("a release");
        let context = SessionContext::new();
        context.register_object_store(&Url::parse(&self.url).unwrap(), Arc::clone(&self.store));
        let folder = format!("{}/out/{}/", self.url, latest.data);
        let frame = context.read_parquet(folder, ParquetReadOptions::default()).await.unwrap();
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let parts: Vec<RecordBatch> = frame.collect().await.unwrap();
        multiset(&concat_batches(&schema, &parts).unwrap())
    }

    /// Run ids of all releases.
    pub async fn releases(&self) -> Vec<String> {
        releases(&self.sink()).await.unwrap().into_iter().map(|release| release.run).collect()
    }

    /// Returns the run id of the current release.
    pub async fn latest_run(&self) -> Option<String> {
        latest_run(&self.sink()).await.unwrap()
    }

    /// Asserts that every release holds what its manifest says.
    pub async fn verify_all(&self) {
        let (context, _spill) = SessionOptions::default().open().unwrap();
        for release in releases(&self.sink()).await.unwrap() {
            let (_, findings) = verify_release(&context, &self.sink(), &release).await.unwrap();
            assert_eq!(findings, [], "{}", release.run);
        }
    }

    /// Everything in the sink, by its path below it.
    pub async fn files(&self) -> BTreeSet<String> {
        let sink = self.sink();
        let inside = sink.at("any").to_string();
        let prefix = inside.trim_end_matches("any");
        let listed: Vec<_> = self.store.list(Some(&Path::from(prefix))).try_collect().await.unwrap();
        let below = |path: &Path| path.as_ref()[prefix.len()..].to_owned();
        listed.iter().map(|meta| below(&meta.location)).collect()
    }

    /// Puts an object below the sink.
    pub async fn put(&self, name: &str, content: &'static [u8]) {
        self.store.put(&self.sink().at(name), Bytes::from_static(content).into()).await.unwrap();
    }
}

/// Run id of an outcome, and whether this run has made the release.
pub fn outcome(outcome: Result<Outcome>) -> (String, bool) {
    match outcome.unwrap() {
        Outcome::Released(manifest, _) => (manifest.run, true),
        Outcome::AlreadyDone(manifest) => (manifest.run, false),
    }
}
