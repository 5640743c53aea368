//! The private state of a series: versions of its ledger, and a pointer to the one in force.
//!
//! ```text
//! <state>/version/<number>.<unique>/part-00000.parquet   a version of the ledger: immutable, of one run, sorted by subject
//! <state>/version/<number>.<unique>/consumed.parquet     of rows without an identity: the files that were read
//! <state>/version/<number>.<unique>/waiting.parquet      and the rows that wait
//! <state>/version/<number>.<unique>/version.json         what it is, with the checksum of its files; written last
//! <state>/pointer/<number>.json                          created only once: this version is in force
//! <state>/forgotten/<unique>.parquet                     subjects that must not be published again
//! ```
//!
//! The release with the number n and the version of the ledger with the number n belong together: the manifest names the
//! digest of `version.json`. A commit goes: files, version, manifest, pointer. So there are four states, and each run begins
//! by telling which one it finds:
//!
//! | manifests end at | pointers end at | what it is |
//! |---|---|---|
//! | n | n | at rest |
//! | n + 1 | n | a run died after its manifest: its version is looked for, and the pointer is moved |
//! | anything else | n | the ledger does not belong to the sink: exit 7 |
//! | nothing | nothing | a new series |
//!
//! The pointer is an object for each number that can be created once, which every store can promise, also the local file
//! system. Of two runs that race, one creates it; the other withdraws its manifest.

use std::io::Read;
use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::lit;
use datafusion::parquet::arrow::AsyncArrowWriter;
use datafusion::parquet::arrow::async_writer::AsyncFileWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::arrivals::{CONSUMED, WAITING};
use super::key::{DIGEST_BYTES, LedgerKey, SUBJECT_BYTES};
use crate::error::{Error, Result, io_reason};
use crate::policy::{Job, Series};
use crate::published::read::{PublishedFile, PublishedFiles, file_checksum, open_published};
use crate::storage::upload::Uploads;
use crate::storage::{Location, Stores};
use crate::write::unique_name;

/// Version of the format of the state.
const FORMAT: u32 = 1;

/// Bytes that are copied at once.
const COPIED: u64 = 1 << 20;

/// The column of a ledger that says in which release a cohort last changed.
const MOVED: &str = "moved";

/// What a ledger holds of every subject.
pub(crate) fn ledger_schema() -> SchemaRef {
    let digest = |name: &str, nullable| Field::new(name, DataType::FixedSizeBinary(DIGEST_BYTES), nullable);
    Arc::new(Schema::new(vec![
        Field::new("subject", DataType::FixedSizeBinary(SUBJECT_BYTES), true),
        digest("cohort", true),
        digest("history", true),
        digest("quasi", true),
        digest("content", true),
        Field::new("state", DataType::Int64, true),
        Field::new("since", DataType::Int64, true),
        Field::new("revised", DataType::Boolean, true),
        Field::new(MOVED, DataType::Int64, true),
    ]))
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedgerFile {
    /// Name in the folder of the version.
    pub(crate) name: String,
    /// Rows in it.
    pub(crate) rows: u64,
    /// BLAKE3 of its content.
    pub(crate) blake3: String,
}

/// A version of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// Version of this format.
    pub(crate) format: u32,
    /// Number of the release that it belongs to.
    pub(crate) number: u64,
    /// The run that made both.
    pub(crate) run: String,
    /// What tells the key of the ledger from others.
    pub(crate) key: String,
    /// The columns that tell subjects apart.
    pub(crate) subject: Vec<String>,
    /// What must be the same in every release of the series: columns, hierarchies, published form.
    pub(crate) shape: String,
    /// The rules that every cohort meets: those of the first release. A job file without source, sink and columns.
    pub(crate) floor: serde_json::Value,
    /// The rules of this release, which those of the next ones must not fall short of.
    pub(crate) rules: serde_json::Value,
    /// Its files.
    pub(crate) files: Vec<LedgerFile>,
    /// The files of the source that were read, where rows have no identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) consumed: Vec<LedgerFile>,
    /// The rows that wait, where rows have no identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<LedgerFile>,
    /// Rows without an identity that were suppressed in this release and all before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) suppressed: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The rows of the next version of a ledger: a file of this machine, in the order of subjects.
#[derive(Debug)]
pub(crate) struct LedgerRows {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
}

/// The tables of the next version of a ledger.
pub(crate) struct Tables {
    /// What it knows of every subject.
    pub(crate) ledger: LedgerRows,
    /// Of rows without an identity: the files that were read, and the rows that wait.
    pub(crate) arrivals: Option<(DataFrame, DataFrame)>,
}

/// What a pointer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pointer {
    /// Folder of the version below the state.
    folder: String,
    /// Digest of its `version.json`.
    digest: String,
}

/// A version that lies in the state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) version: Version,
    /// Folder below the state.
    pub(crate) folder: String,
    /// Digest of its `version.json`.
    pub(crate) digest: String,
}

/// What the manifests of the sink say of the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    /// Number of the newest release.
    pub(crate) number: u64,
    /// Digest of the version of the ledger that belongs to it; of two runs that raced and died, there are two.
    pub(crate) ledgers: Vec<String>,
}

/// The private state of a series.
#[derive(Debug, Clone)]
pub(crate) struct State {
    location: Location,
    key: LedgerKey,
}

impl State {
    /// Opens the state of a job.
    pub(crate) fn open(job: &Job, series: &Series, base: &LocalPath, stores: &Stores) -> Result<Self> {
        let location = stores.open(base, &series.state, &series.options)?;
        let sink = stores.open(base, &job.sink.url, &job.sink.options)?;
        let inside = |a: &Location, b: &Location| a.root == b.root && a.prefix.prefix_matches(&b.prefix);
        if inside(&location, &sink) || inside(&sink, &location) {
            return Err(Error::job(
                "series.state: it and the sink lie inside one another, and readers of the sink must not see the ledger",
            ));
        }
        let key = LedgerKey::new(&series.read_secret(base)?);
        Ok(Self { location, key })
    }

    /// The key of the ledger.
    pub(crate) fn key(&self) -> &LedgerKey {
        &self.key
    }

    /// The version in force, brought up to date with the manifests of the sink; none of a new series.
    pub(crate) async fn recover_version(&self, published: Option<&Published>) -> Result<Option<Stored>> {
        let current = self.current_version().await?;
        let Some(published) = published else {
            return match current {
                None => Ok(None),
                Some(stored) => Err(self.foreign_error(&format!(
                    "the ledger knows {} releases, and the sink holds none of them; they may have been removed, or the \
                     ledger belongs to another sink",
                    stored.version.number
                ))),
            };
        };
        let number = current.as_ref().map_or(0, |stored| stored.version.number);
        let found = match current {
            Some(stored) if number == published.number && published.ledgers.contains(&stored.digest) => stored,
            Some(_) if number == published.number => {
                return Err(self.foreign_error("the newest release of the sink was made with another ledger"));
            }
            _ if number + 1 == published.number => {
                let Some(staged) = self.staged_version(published).await? else {
                    return Err(self.foreign_error(&format!(
                        "it lacks the version that belongs to release {number} of the series, the newest one",
                        number = published.number
                    )));
                };
                tracing::info!(number = published.number, "the pointer of the ledger is moved for a run that has died");
                if !self.advance_pointer(&staged).await? {
                    return Err(Error::retry("another run is at work on the same series; run again"));
                }
                staged
            }
            _ => {
                return Err(self.foreign_error(&format!(
                    "it ends at release {number} of the series, and the sink at release {}",
                    published.number
                )));
            }
        };
        self.ensure_key(&found.version)?;
        Ok(Some(found))
    }

    /// Refuses a key that is not the one of the ledger.
    fn ensure_key(&self, version: &Version) -> Result<()> {
        if version.format != FORMAT {
            return Err(self.foreign_error("it was written by another version of Throng"));
        }
        if version.key == self.key.fingerprint() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the key of the series is not the one that the ledger in `{}` was made with; nobody would be known again: set \
             series.key-env or series.key-file to the key of before",
            self.location.name
        )))
    }

    /// What to say of a ledger that does not belong to the sink.
    fn foreign_error(&self, why: &str) -> Error {
        Error::conflict(format!(
            "the ledger in `{}` does not fit the sink: {why}; restore series.state from its backup, or begin a new series \
             in an empty sink and an empty state",
            self.location.name
        ))
    }

    /// The version in force.
    async fn current_version(&self) -> Result<Option<Stored>> {
        let listed: Vec<ObjectMeta> =
            self.location.store.list(Some(&self.location.at("pointer"))).try_collect().await?;
        let Some(newest) =
            listed.iter().filter_map(|meta| Some((number_of(&meta.location)?, meta))).max_by_key(|it| it.0)
        else {
            return Ok(None);
        };
        let bytes = self.location.store.get(&newest.1.location).await?.bytes().await?;
        let pointer: Pointer = self.parse_json(&bytes, "a pointer")?;
        match self.read_version(&pointer.folder).await? {
            Some(stored) if stored.digest == pointer.digest && stored.version.number == newest.0 => Ok(Some(stored)),
            Some(_) => Err(self.foreign_error("a version of it has been changed")),
            None => Err(self.foreign_error("the version that its pointer names is gone")),
        }
    }

    async fn read_version(&self, folder: &str) -> Result<Option<Stored>> {
        let bytes = match self.location.store.get(&self.location.at(&format!("{folder}/version.json"))).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let version = self.parse_json(&bytes, "a version")?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        Ok(Some(Stored { version, folder: folder.to_owned(), digest }))
    }

    fn parse_json<T: DeserializeOwned>(&self, bytes: &[u8], what: &str) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|_| self.foreign_error(&format!("{what} of it cannot be read")))
    }

    /// The version that a run has staged which died before it could move the pointer.
    async fn staged_version(&self, published: &Published) -> Result<Option<Stored>> {
        for folder in self.version_folders().await?.into_iter().filter(|(number, _)| *number == published.number) {
            if let Some(stored) = self.read_version(&folder.1).await?
                && published.ledgers.contains(&stored.digest)
            {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// The folders of all versions, with their numbers.
    async fn version_folders(&self) -> Result<Vec<(u64, String)>> {
        let listed = self.location.store.list_with_delimiter(Some(&self.location.at("version"))).await?;
        let name = |path: &Path| Some((number_of(path)?, format!("version/{}", path.filename()?)));
        Ok(listed.common_prefixes.iter().filter_map(name).collect())
    }

    /// The rows of a version.
    pub(crate) async fn read_rows(&self, context: &SessionContext, stored: &Stored) -> Result<DataFrame> {
        let Some(rows) = self.read_part(context, stored, &stored.version.files).await? else {
            return Ok(context.read_batch(RecordBatch::new_empty(ledger_schema()))?);
        };
        if rows.schema().field_with_unqualified_name(MOVED).is_ok() {
            return Ok(rows);
        }
        // Ledgers were kept without it at first. What has no such release is never forgotten.
        Ok(rows.with_column(MOVED, lit(ScalarValue::Int64(None)))?)
    }

    /// The rows of some files of a version, if there are any.
    pub(crate) async fn read_part(
        &self,
        context: &SessionContext,
        stored: &Stored,
        files: &[LedgerFile],
    ) -> Result<Option<DataFrame>> {
        if files.is_empty() {
            return Ok(None);
        }
        for file in files {
            let path = self.location.at(&format!("{}/{}", stored.folder, file.name));
            if file_checksum(self.location.store.as_ref(), &path).await?.as_deref() != Some(&file.blake3) {
                return Err(self.foreign_error(&format!("`{}` of it is missing or has been changed", file.name)));
            }
        }
        let file = |file: &LedgerFile| {
            let name = format!("{}/{}", stored.folder, file.name);
            PublishedFile { path: self.location.at(&name), name: file.name.clone() }
        };
        let files = PublishedFiles {
            store: Arc::clone(&self.location.store),
            root: self.location.root.clone(),
            files: files.iter().map(file).collect(),
        };
        Ok(Some(open_published(context, &files, None).await?))
    }

    /// Writes the next version, which nobody uses before [`advance_pointer`](Self::advance_pointer).
    pub(crate) async fn stage_version(
        &self,
        mut version: Version,
        tables: Tables,
        uploads: &Uploads,
    ) -> Result<Stored> {
        let folder = format!("version/{:08}.{}", version.number, unique_name());
        version.files = vec![self.copy_ledger(&folder, &tables, uploads).await?];
        if let Some((consumed, waiting)) = tables.arrivals {
            version.consumed = vec![self.write_part(&folder, CONSUMED, consumed, uploads).await?];
            version.waiting = vec![self.write_part(&folder, WAITING, waiting, uploads).await?];
        }
        version.format = FORMAT;
        version.key = self.key.fingerprint();
        let bytes = serde_json::to_vec_pretty(&version).map_err(|error| Error::internal(error.to_string()))?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        self.location.store.put(&self.location.at(&format!("{folder}/version.json")), bytes.into()).await?;
        Ok(Stored { version, folder, digest })
    }

    /// Copies the rows of a version.
    async fn copy_ledger(&self, folder: &str, tables: &Tables, uploads: &Uploads) -> Result<LedgerFile> {
        let name = "part-00000.parquet".to_owned();
        let path = self.location.at(&format!("{folder}/{name}"));
        let unreadable = |error: std::io::Error| {
            Error::resources(format!("{} cannot be read: {}", tables.ledger.path.display(), io_reason(&error)))
        };
        let mut file = std::fs::File::open(&tables.ledger.path).map_err(unreadable)?;
        let mut object = uploads.begin_upload(&self.location.store, &path);
        loop {
            let mut bytes = Vec::with_capacity(COPIED as usize);
            if (&mut file).take(COPIED).read_to_end(&mut bytes).map_err(unreadable)? == 0 {
                break;
            }
            object.write(bytes.into()).await?;
        }
        object.complete().await?;
        self.read_back(name, &path, tables.ledger.rows).await
    }

    /// A file of a version as it lies in the store.
    async fn read_back(&self, name: String, path: &Path, rows: u64) -> Result<LedgerFile> {
        let blake3 = file_checksum(self.location.store.as_ref(), path).await?;
        let blake3 = blake3.ok_or_else(|| Error::retry("a file of the ledger was written but is not there"))?;
        Ok(LedgerFile { name, rows, blake3 })
    }

    /// Writes a table of a version.
    async fn write_part(&self, folder: &str, table: &str, rows: DataFrame, uploads: &Uploads) -> Result<LedgerFile> {
        let name = format!("{table}.parquet");
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let path = self.location.at(&format!("{folder}/{name}"));
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(1 << 17))
            .build();
        let object = uploads.begin_upload(&self.location.store, &path);
        let mut writer = AsyncArrowWriter::try_new(object, Arc::clone(&schema), Some(properties))?;
        let mut stream = rows.execute_stream().await?;
        let mut count = 0;
        while let Some(batch) = stream.try_next().await? {
            let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?;
            count += batch.num_rows() as u64;
            writer.write(&batch).await?;
        }
        writer.finish().await?;
        self.read_back(name, &path, count).await
    }

    /// Moves the pointer to a version; false when another version of the same number is in force already.
    pub(crate) async fn advance_pointer(&self, stored: &Stored) -> Result<bool> {
        let path = self.location.at(&format!("pointer/{:08}.json", stored.version.number));
        let pointer = Pointer { folder: stored.folder.clone(), digest: stored.digest.clone() };
        let bytes = serde_json::to_vec_pretty(&pointer).map_err(|error| Error::internal(error.to_string()))?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let Err(error) = self.location.store.put_opts(&path, PutPayload::from(bytes), options).await else {
            return Ok(true);
        };
        // A put that failed may have been done all the same. What stands there now tells.
        match self.location.store.get(&path).await {
            Ok(found) => Ok(self.parse_json::<Pointer>(&found.bytes().await?, "a pointer")? == pointer),
            Err(object_store::Error::NotFound { .. }) => Err(error.into()),
            Err(other) => Err(other.into()),
        }
    }

    /// Whether another version of the same number, or a later one, is in force.
    pub(crate) async fn is_past(&self, stored: &Stored) -> bool {
        let current = self.current_version().await.ok().flatten();
        current.is_some_and(|current| current.version.number >= stored.version.number && current != *stored)
    }

    /// Removes a version that will not come into force. Best effort: what stays is removed by a later run.
    pub(crate) async fn discard_version(&self, folder: &str) {
        let listed: Vec<ObjectMeta> =
            self.location.store.list(Some(&self.location.at(folder))).try_collect().await.unwrap_or_default();
        // What says that it is a version goes first.
        let (head, rest): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|meta| meta.location.filename() == Some("version.json"));
        for meta in head.into_iter().chain(rest) {
            if let Err(error) = self.location.store.delete(&meta.location).await {
                tracing::warn!(%error, "a file of an old version of the ledger could not be removed");
            }
        }
        if self.location.root.scheme() == "file" {
            // Object stores have no folders; the local file system keeps empty ones.
            let _ = std::fs::remove_dir(format!("/{}", self.location.at(folder)));
        }
    }

    /// Removes versions that are no longer needed: those before the last one, and those of runs that lost or died.
    pub(crate) async fn remove_old_versions(&self, current: &Stored) -> Result<()> {
        for (number, folder) in self.version_folders().await? {
            let is_old = number + 1 < current.version.number;
            let has_lost = number == current.version.number && folder != current.folder;
            if is_old || has_lost {
                self.discard_version(&folder).await;
            }
        }
        Ok(())
    }

    /// Removes the versions that nobody needs any more, but those that a run may be staging: all but the one in force. With
    /// `dry_run`, only finds them. Returns how many there are of them, and their sizes.
    pub(crate) async fn collect_versions(&self, age: Duration, dry_run: bool) -> Result<Vec<(String, u64)>> {
        let Some(current) = self.current_version().await? else { return Ok(Vec::new()) };
        let now = jiff::Timestamp::now().as_second();
        let oldest = now.saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        let mut removed = Vec::new();
        for (_, folder) in self.version_folders().await?.into_iter().filter(|(_, folder)| *folder != current.folder) {
            let files: Vec<ObjectMeta> =
                self.location.store.list(Some(&self.location.at(&folder))).try_collect().await?;
            if files.iter().any(|meta| meta.last_modified.timestamp() > oldest) {
                continue;
            }
            if !dry_run {
                self.discard_version(&folder).await;
            }
            let name = |meta: &ObjectMeta| format!("{folder}/{}", meta.location.filename().unwrap_or_default());
            removed.extend(files.iter().map(|meta| (name(meta), meta.size)));
        }
        Ok(removed)
    }

    /// Adds subjects that must not be published again.
    pub(crate) async fn forget_subjects(&self, subjects: DataFrame, uploads: &Uploads) -> Result<()> {
        let path = self.location.at(&format!("forgotten/{}.parquet", unique_name()));
        let schema = Arc::new(subjects.schema().as_arrow().clone());
        let object = uploads.begin_upload(&self.location.store, &path);
        let mut writer = AsyncArrowWriter::try_new(object, schema, None)?;
        let mut stream = subjects.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            writer.write(&batch).await?;
        }
        writer.finish().await?;
        Ok(())
    }

    /// The subjects that must not be published again; none when nobody was ever forgotten.
    pub(crate) async fn forgotten_subjects(&self, context: &SessionContext) -> Result<Option<DataFrame>> {
        let listed: Vec<ObjectMeta> =
            self.location.store.list(Some(&self.location.at("forgotten"))).try_collect().await?;
        if listed.is_empty() {
            return Ok(None);
        }
        let files =
            listed.into_iter().map(|meta| PublishedFile { name: meta.location.to_string(), path: meta.location });
        let files = PublishedFiles {
            store: Arc::clone(&self.location.store),
            root: self.location.root.clone(),
            files: files.collect(),
        };
        Ok(Some(open_published(context, &files, None).await?))
    }
}

/// What to say of a ledger whose rows are not in the order in which they were written.
pub(super) fn unsorted_error() -> Error {
    Error::conflict(
        "the ledger of the series is not in the order of its subjects; restore series.state from its backup",
    )
}

/// The number that a name of the state begins with.
fn number_of(path: &Path) -> Option<u64> {
    path.filename()?.split('.').next()?.parse().ok()
}
