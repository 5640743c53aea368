//! A run from start to end: prepared, surveyed, staged, verified, committed. Each stage is a type that only the one before
//! it makes, so that nothing is committed that was not verified.

mod committed;
mod nightly;
mod passes;
mod prepared;
mod reckoning;
mod revisit;
mod shown;
mod staged;
#[cfg(test)]
mod tests;
mod together;
mod verified;

use std::path::{Path as LocalPath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use object_store::path::Path;

use committed::Committed;
use nightly::Continued;
pub(crate) use passes::explain_plan;
use prepared::{Opened, Work};
pub use revisit::ReleaseCheck;
pub(crate) use revisit::find_release;
use staged::Folder;
pub(crate) use together::SeriesKnowledge;

use crate::binding::BoundPolicy;
use crate::engine::phase::{Begun, Phase};
use crate::engine::session::{SessionOptions, SpillFolder};
use crate::engine::{Engine, Local, StoreLocation};
use crate::error::{Error, Result};
use crate::ledger::manifest::Manifest;
use crate::ledger::{self, Commit};
use crate::operator::cell_rows;
use crate::policy::{Job, Policy, check, check_layout};
use crate::recode::replace_identifiers;
use crate::source::Source;
use crate::source::public::Public;
use crate::storage::upload::Uploads;
use crate::storage::{Location, Stores};

/// Options of a run.
///
/// ```
/// use throng::{RunOptions, SessionOptions};
///
/// let session = SessionOptions::default().with_memory_limit(1 << 30).with_partitions(4);
/// let options = RunOptions::default().with_run_id("2026-11-16").with_session(session);
/// assert_eq!(options.run_id.as_deref(), Some("2026-11-16"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Memory, spill and partitions.
    pub session: SessionOptions,
    /// Identity of the run. Defaults to a hash of policy, input and version.
    pub run_id: Option<String>,
    /// Rows per cell. Defaults to as many as fit into the memory limit, at most
    /// `CELL_ROWS`.
    pub cell_rows: Option<usize>,
    /// A file of `throng survey` that is taken instead of the first pass. Values that it does not know are coded as their
    /// neighbours; what is published is decided, and verified, on the rows themselves.
    pub survey: Option<PathBuf>,
    /// Object stores that are open already; others are opened with the credentials of the environment.
    pub stores: Stores,
    /// Where the work is done. Defaults to this process.
    pub(crate) engine: Option<Arc<dyn Engine>>,
}

impl RunOptions {
    /// The same with other limits.
    #[must_use]
    pub fn with_session(self, session: SessionOptions) -> Self {
        Self { session, ..self }
    }

    /// The same with an identity for the run.
    #[must_use]
    pub fn with_run_id(self, run_id: impl Into<String>) -> Self {
        Self { run_id: Some(run_id.into()), ..self }
    }

    /// The same with so many rows in a cell.
    #[must_use]
    pub fn with_cell_rows(self, cell_rows: usize) -> Self {
        Self { cell_rows: Some(cell_rows), ..self }
    }

    /// The same with a survey that was taken before.
    #[must_use]
    pub fn with_survey(self, path: impl Into<PathBuf>) -> Self {
        Self { survey: Some(path.into()), ..self }
    }

    /// The same with object stores that are at hand.
    #[must_use]
    pub fn with_stores(self, stores: Stores) -> Self {
        Self { stores, ..self }
    }
}

/// Called when a phase begins, with the plan that runs, if any; its metrics report progress.
pub(crate) type Observer<'a> = dyn Fn(Phase, Option<&Arc<dyn ExecutionPlan>>, u64) + Send + Sync + 'a;

/// The outcome of a run.
#[derive(Debug, Clone)]
#[must_use = "a run that has been released before publishes nothing"]
pub enum Outcome {
    /// A new release.
    Released(Box<Manifest>, Vec<(Phase, Duration)>),
    /// The same release already existed.
    AlreadyDone(Box<Manifest>),
}

/// A job that is ready to run.
///
/// ```
/// use std::path::Path;
///
/// use throng::{Column, Outcome, Policy, Role, Run, RunOptions};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let census = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/census.parquet");
/// let sink = tempfile::tempdir()?;
/// let policy = Policy::builder(10)
///     .columns(["age", "sex", "region"], Column::quasi())
///     .column("diagnosis", Column::sensitive())
///     .other_columns(Role::Identifier)
///     .build()?;
/// let job = policy.to_job(census, sink.path().to_string_lossy());
/// let run = Run::new(job, Path::new("."), RunOptions::default())?;
/// let outcome = run.execute(&|_phase, _plan, _rows| ()).await?;
/// let Outcome::Released(manifest, _seconds) = outcome else { panic!("released before") };
/// assert!(manifest.verification.classes.smallest >= 10);
/// # Ok(())
/// # }
/// ```
pub struct Run {
    job: Job,
    base: PathBuf,
    policy: Arc<Policy>,
    context: SessionContext,
    /// The session for what is done in this process also where a cluster does the rest: the ledger of a series.
    local: SessionContext,
    engine: Arc<dyn Engine>,
    /// Held because dropping it removes the folder.
    spill: SpillFolder,
    options: RunOptions,
    /// Where files lie that are not committed yet, while there are any.
    staged: Mutex<Option<(Location, Path)>>,
    uploads: Uploads,
}

impl Run {
    /// Prepares a run and reports all problems of the job itself.
    pub fn new(job: Job, base: &LocalPath, options: RunOptions) -> Result<Self> {
        ensure_no_problems(check(&job, base).iter().filter(|problem| problem.is_error()))?;
        if options.survey.is_some() && job.series.is_some() {
            return Err(Error::job("series: every night is another table; run without --survey"));
        }
        let policy = Arc::new(Policy::of_checked(&job, base)?);
        let engine = options.engine.clone().unwrap_or_else(|| Arc::new(Local));
        let places = StoreLocation::of_job(&job);
        let (context, spill) = options.session.open_with(|config| engine.configure(config, &places))?;
        let local = if engine.is_remote() { options.session.open_beside(&context) } else { context.clone() };
        let (staged, uploads) = (Mutex::default(), Uploads::default());
        Ok(Self { job, base: base.to_owned(), policy, context, local, engine, spill, options, staged, uploads })
    }

    /// Runs the job.
    pub async fn execute(&self, observer: &Observer<'_>) -> Result<Outcome> {
        observer(Phase::Plan, None, 0);
        let phase = Phase::Plan.begin();
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        match self.release_source(&source, phase, observer).await {
            Err(error) => Err(source.explain_error(error).await),
            done => done,
        }
    }

    /// From stage to stage: each takes what the one before it has made.
    async fn release_source(&self, source: &Source, phase: Begun, observer: &Observer<'_>) -> Result<Outcome> {
        let work = Work::open(self, source, observer).await?;
        let continued = match &self.job.series {
            Some(series) => Some((series, Continued::open_series(self, series, &work.sink).await?)),
            None => None,
        };
        if let Some(outcome) = work.released_before().await? {
            phase.finish_phase();
            return Ok(outcome);
        }
        if let Some((series, continued)) = continued {
            return Box::pin(self.release_in_series(work, series, continued, phase)).await;
        }
        let surveyed = work.prepare(phase).await?.survey().await?;
        let public = surveyed.work.public_identity();
        let folder = Folder::open(&surveyed.work).await?;
        let committed = async { surveyed.stage(&folder).await?.verify().await?.commit_release().await }.await;
        match committed {
            Ok(Committed { commit: Commit::Won, manifest, times }) => {
                folder.keep().await;
                Ok(Outcome::Released(Box::new(manifest), times))
            }
            Ok(Committed { commit: Commit::Unknown(error), .. }) => {
                folder.leave_unsettled();
                Err(error)
            }
            Ok(Committed { commit: Commit::Lost(other), .. }) => {
                folder.discard().await;
                self.already_done(*other, source, public)
            }
            Err(error) => {
                self.engine.wait_for_cancellations().await;
                self.uploads.join_all().await;
                folder.discard().await;
                Err(error)
            }
        }
    }

    fn note_folder(&self, folder: Option<(Location, Path)>) {
        if let Ok(mut staged) = self.staged.lock() {
            *staged = folder;
        }
    }

    /// Returns the sink of the job.
    pub fn sink(&self) -> Result<Location> {
        self.options.stores.open(&self.base, &self.job.sink.url, &self.job.sink.options)
    }

    /// Removes the staged files of a run that was stopped.
    pub async fn abandon(&self) {
        self.engine.wait_for_cancellations().await;
        self.uploads.join_all().await;
        let staged = self.staged.lock().ok().and_then(|mut staged| staged.take());
        if let Some((sink, folder)) = staged {
            ledger::discard_folder(&sink, &folder).await;
        }
    }

    /// The source as a plan, with its identifiers replaced and beside the public table if there is one, and what will happen
    /// to its columns.
    async fn open_source(&self, source: &Source) -> Result<Opened> {
        let (scanned, _) = source.scan(&self.context).await?;
        ensure_no_problems(check_layout(&self.job, scanned.schema().as_arrow()).iter())?;
        let (rows, bound_policy) = replace_identifiers(scanned.clone(), Arc::clone(&self.policy))?;
        let Some(rule) = &self.policy.privacy.presence else {
            let (input, bound_policy) = (rows.clone(), Arc::new(bound_policy));
            return Ok(Opened { input, bound_policy, public: None, rows, scanned });
        };
        let public = self.open_public(&self.base, &rule.public).await?;
        public.ensure_nothing_shared(&rows, &bound_policy, rule)?;
        let input = public.union_with(&rows, &bound_policy)?;
        let schema = Arc::new(input.schema().as_arrow().clone());
        let bound_policy = Arc::new(BoundPolicy::bind_schema(Arc::clone(&self.policy), schema, bound_policy.key)?);
        Ok(Opened { input, bound_policy, public: Some(public), rows, scanned })
    }

    /// A public table, which is reached as the source is.
    async fn open_public(&self, base: &LocalPath, url: &str) -> Result<Public> {
        Public::open_public(&self.options.stores, base, &self.context, url, &self.job.source.options).await
    }

    /// Returns the source as it is now, and what the job does to its columns.
    pub(crate) async fn inspect(&self) -> Result<(DataFrame, Arc<BoundPolicy>)> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { rows, bound_policy, .. } = self.open_source(&source).await?;
        Ok((DataFrame::new(self.context.state(), rows), bound_policy))
    }

    /// Returns the session of the run.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Same policy, input, cells and version, same run: an identity that a scheduler need not invent.
    fn run_id(&self, source: &Source, public: Option<&Public>, bound_policy: &BoundPolicy) -> String {
        self.options.run_id.clone().unwrap_or_else(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.policy.hash.as_bytes());
            hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
            hasher.update(&self.cell_rows(bound_policy).to_le_bytes());
            hasher.update(self.source_identity(source).as_bytes());
            if let Some(public) = public {
                hasher.update(self.source_identity(&public.source).as_bytes());
            }
            hasher.finalize().to_hex()[..16].to_owned()
        })
    }

    /// Identity of a source as it is now.
    fn source_identity(&self, source: &Source) -> String {
        source.snapshot().identity(self.policy.lasting_key())
    }

    /// Whether a release was made from this source, as it is now.
    fn is_release_of(&self, release: &Manifest, source: &Source) -> bool {
        release.snapshot == self.source_identity(source)
    }

    /// Rows of a cell. It decides the groups, so it is part of what a run is.
    fn cell_rows(&self, bound_policy: &BoundPolicy) -> usize {
        let limit = self.options.session.memory_limit;
        self.options.cell_rows.unwrap_or_else(|| cell_rows(&bound_policy.input, limit))
    }

    /// A committed manifest of this run id: the same work, or another's.
    fn already_done(&self, done: Manifest, source: &Source, public: Option<String>) -> Result<Outcome> {
        if done.policy != self.policy.hash {
            return Err(Error::conflict(format!(
                "run `{}` has been released under another policy; choose another --run-id",
                done.run
            )));
        }
        if done.version != env!("CARGO_PKG_VERSION") {
            return Err(Error::conflict(format!(
                "run `{}` has been released by Throng {}, but this is {}; choose another --run-id",
                done.run,
                done.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        if !self.is_release_of(&done, source) || done.public_snapshot != public.unwrap_or_default() {
            return Err(Error::conflict(format!(
                "run `{}` has been released from another input; choose another --run-id",
                done.run
            )));
        }
        Ok(Outcome::AlreadyDone(Box::new(done)))
    }
}

fn ensure_no_problems<'a>(problems: impl Iterator<Item = &'a crate::error::Problem>) -> Result<()> {
    let lines: Vec<String> = problems.map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::job(lines.join("\n"))) }
}
