//! A run from start to end: open, survey, group and write, verify, commit.

mod passes;
mod proof;
mod revisit;
mod together;

use std::path::{Path as LocalPath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use object_store::path::Path;

pub(crate) use passes::measures;
pub use passes::plan;
pub use revisit::Verified;
pub(crate) use revisit::find_release;
pub use together::SeriesKnowledge;

use super::anatomy::Tables;
use super::commit::{self, Commit};
use super::engine::{Engine, Local, Place};
use super::guard;
use super::lease::Lease;
use super::ledger::Ledger;
use super::manifest::{Manifest, QueryScores};
use super::phase::{Begun, Phase};
use super::queries;
use super::session::{SessionOptions, SpillFolder};
use super::verify;
use crate::audit::dependencies;
use crate::audit::inference::{self, Verdict};
use crate::error::{Error, Result};
use crate::operator::{Blueprint, cell_rows};
use crate::policy::{Job, Policy, check, check_layout};
use crate::recode::treat;
use crate::source::public::Public;
use crate::source::{InputTable, Source};
use crate::storage::upload::Uploads;
use crate::storage::{Location, Stores};
use crate::treatment::Treatment;
use crate::write::unique_name;

/// How to run a job.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Memory, spill and partitions.
    pub session: SessionOptions,
    /// Identity of the run; made of policy, input and version when absent.
    pub run_id: Option<String>,
    /// Rows of a cell; as many as the memory limit has room for when absent, at most
    /// [`CELL_ROWS`](crate::survey::CELL_ROWS).
    pub cell_rows: Option<usize>,
    /// Object stores that are at hand; others are opened with the credentials of the environment.
    pub stores: Stores,
    /// Where the work is done; in this process when absent.
    pub engine: Option<Arc<dyn Engine>>,
}

/// Where a run reports that a phase begins: the plan that runs, if any, tells by its metrics how far it is.
pub type Observer<'a> = dyn Fn(Phase, Option<&Arc<dyn ExecutionPlan>>, u64) + Send + Sync + 'a;

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A new release.
    Released(Box<Manifest>, Vec<(Phase, Duration)>),
    /// The same release was there already.
    AlreadyDone(Box<Manifest>),
}

/// A job that is ready to run.
pub struct Run {
    job: Job,
    base: PathBuf,
    policy: Arc<Policy>,
    context: SessionContext,
    engine: Arc<dyn Engine>,
    /// Held for its end, when the folder goes.
    _spill: SpillFolder,
    options: RunOptions,
    /// Where files lie that are not committed yet, while there are any.
    staged: Mutex<Option<(Location, Path)>>,
    uploads: Uploads,
}

impl Run {
    /// Prepares a run; everything that can be wrong with the job itself is found here.
    pub fn new(job: Job, base: &LocalPath, options: RunOptions) -> Result<Self> {
        refuse(check(&job, base).iter().filter(|problem| problem.is_error()))?;
        let policy = Arc::new(Policy::of_checked(&job, base)?);
        let engine = options.engine.clone().unwrap_or_else(|| Arc::new(Local));
        let places = Place::all(&job);
        let (context, spill) = options.session.open_with(|config| engine.configure(config, &places))?;
        let (staged, uploads) = (Mutex::default(), Uploads::default());
        Ok(Self { job, base: base.to_owned(), policy, context, engine, _spill: spill, options, staged, uploads })
    }

    /// Runs the job.
    pub async fn execute(&self, observer: &Observer<'_>) -> Result<Outcome> {
        observer(Phase::Plan, None, 0);
        let phase = Phase::Plan.begin();
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        match self.release(&source, phase, observer).await {
            Err(error) => Err(source.explain(error).await),
            done => done,
        }
    }

    async fn release(&self, source: &Source, phase: Begun, observer: &Observer<'_>) -> Result<Outcome> {
        let Opened { input, treatment, public, rows, scanned } = self.open(source).await?;
        let sink = self.sink()?;
        let run = self.run_id(source, public.as_ref(), &treatment);
        let ledger = Ledger::of(&self.job, &treatment)?;
        if let Some(done) = ledger.committed(&sink, &run).await? {
            let outcome = self.already(done, source, public.as_ref())?;
            if let Outcome::AlreadyDone(manifest) = &outcome {
                ledger.settle(&sink, manifest).await?;
            }
            phase.done();
            return Ok(outcome);
        }
        ledger.refuse_foreign(&sink).await?;
        guard::ensure_first_release(&ledger, &sink, &self.job.sink).await?;
        if let (Some(public), Some(rule)) = (&public, &self.policy.privacy.presence) {
            public.hold_everybody(&DataFrame::new(self.context.state(), scanned), rule, &treatment).await?;
        }
        self.foresee(&rows, &treatment).await?;
        let public_files = public.as_ref().map_or(0, |public| public.source.file_count());
        phase.count("files", (source.file_count() + public_files) as u64);
        let mut times = vec![phase.done()];

        let phase = Phase::Survey.begin();
        let source_rows = DataFrame::new(self.context.state(), input.clone());
        let held = dependencies::check(&source_rows, &treatment).await?;
        let blueprint = self.survey(&input, treatment, observer).await?;
        phase.count("rows", blueprint.rows_told());
        phase.count("cells", blueprint.survey.tree.cells() as u64);
        times.push(phase.done());
        let folder_name = format!("data/run={run}.{}", unique_name());
        let folder = sink.at(&folder_name);
        self.stage(Some((sink.clone(), folder.clone())));
        let lease = Lease::take(&sink, &folder).await?;
        let staged = async {
            let mut blueprint = blueprint;
            let phase = Phase::Group.begin();
            let (files, measures, cells, inferred) = loop {
                let target = self.target(&sink, &folder, &run, &blueprint.treatment);
                let (files, measures, cells) = self.group(input.clone(), &blueprint, target, observer, &phase).await?;
                if self.policy.dependencies.is_empty() {
                    break (files, measures, cells, None);
                }
                let written =
                    verify::open_written(&self.context, &sink, &folder_name, &files, &blueprint.treatment).await?;
                let original = DataFrame::new(self.context.state(), rows.clone());
                match inference::weigh(&written, &original, &blueprint.treatment).await? {
                    Verdict::Publish(inferred) => break (files, measures, cells, inferred),
                    Verdict::Withhold(treatment) => {
                        commit::discard_untold(&sink, &folder, &[]).await?;
                        blueprint = Arc::new(Blueprint::new(Arc::new(*treatment), blueprint.survey.clone())?);
                    }
                }
            };
            if self.engine.is_remote() {
                commit::discard_untold(&sink, &folder, &files).await?;
            }
            times.push(phase.done());
            let phase = Phase::Verify.begin();
            observer(Phase::Verify, None, blueprint.rows_told());
            let read = (source, public.as_ref());
            let mut manifest = self
                .verify(&sink, &run, folder_name, read, &input, &blueprint, files, &measures, cells, observer)
                .await?;
            manifest.dependencies = dependencies::score(held, &measures.dependencies);
            manifest.verification.inference = inferred;
            // Queries that the job asks for are answered from the files; the usual few have been, cell by cell.
            // They are drawn over the domain of the source, which not even a log may tell when rows of it were left out.
            if self.policy.measures.queries.is_some() && measures.is_whole() {
                // Of two tables, the one with the quasi-identifiers.
                let published = match Tables::of(&self.context, &sink, &manifest.files, manifest.form()).await? {
                    Some(tables) => tables.quasi().clone(),
                    None => {
                        let output = Some(blueprint.treatment.output.as_ref());
                        verify::open(&self.context, &sink, &manifest.files, output).await?
                    }
                };
                let source = DataFrame::new(self.context.state(), rows);
                let error = queries::answer(&source, &published, &blueprint).await?;
                manifest.scores.queries = error.map(QueryScores::from);
            }
            phase.count("rows", manifest.rows);
            phase.count("classes", manifest.verification.classes.count);
            phase.count("smallest_class", manifest.verification.classes.smallest);
            times.push(phase.done());
            let phase = Phase::Commit.begin();
            source.confirm().await?;
            if let Some(public) = &public {
                public.source.confirm().await?;
            }
            observer(Phase::Commit, None, 0);
            guard::record_earlier(&ledger, &sink, &self.job.sink, &mut manifest).await?;
            self.stage(None);
            let manifest = manifest.released()?;
            let commit = ledger.commit(&sink, &manifest).await?;
            times.push(phase.done());
            Ok((commit, manifest))
        };
        let staged = staged.await;
        // One that is unsettled keeps it: the next run sees from it that something is left to do.
        match staged {
            Ok((Commit::Unsettled(_), _)) => drop(lease),
            _ => lease.release().await,
        }
        match staged {
            Ok((Commit::Won, manifest)) => Ok(Outcome::Released(Box::new(manifest), times)),
            Ok((Commit::Unsettled(error), _)) => Err(error),
            Ok((Commit::Lost(other), _)) => {
                commit::discard(&sink, &folder).await;
                self.already(*other, source, public.as_ref())
            }
            Err(error) => {
                self.engine.settle().await;
                self.uploads.settle().await;
                commit::discard(&sink, &folder).await;
                Err(error)
            }
        }
    }

    fn stage(&self, folder: Option<(Location, Path)>) {
        if let Ok(mut staged) = self.staged.lock() {
            *staged = folder;
        }
    }

    /// The sink of the job.
    pub fn sink(&self) -> Result<Location> {
        self.options.stores.open(&self.base, &self.job.sink.url, &self.job.sink.options)
    }

    /// Removes what a run that was stopped has staged.
    pub async fn abandon(&self) {
        self.engine.settle().await;
        self.uploads.settle().await;
        let staged = self.staged.lock().ok().and_then(|mut staged| staged.take());
        if let Some((sink, folder)) = staged {
            commit::discard(&sink, &folder).await;
        }
    }

    /// The source as a plan, with its identifiers replaced and beside the public table if there is one, and what will happen
    /// to its columns.
    async fn open(&self, source: &Source) -> Result<Opened> {
        let (scanned, _) = source.scan(&self.context).await?;
        refuse(check_layout(&self.job, scanned.schema().as_arrow()).iter())?;
        let (rows, treatment) = treat(scanned.clone(), Arc::clone(&self.policy))?;
        let Some(rule) = &self.policy.privacy.presence else {
            let (input, treatment) = (rows.clone(), Arc::new(treatment));
            return Ok(Opened { input, treatment, public: None, rows, scanned });
        };
        let public = self.public(&self.base, &rule.public).await?;
        public.ensure_nothing_shared(&rows, &treatment, rule)?;
        let input = public.beside(&rows, &treatment)?;
        let schema = Arc::new(input.schema().as_arrow().clone());
        let treatment = Arc::new(Treatment::resolve(Arc::clone(&self.policy), schema, treatment.key)?);
        Ok(Opened { input, treatment, public: Some(public), rows, scanned })
    }

    /// A public table, which is reached as the source is.
    async fn public(&self, base: &LocalPath, url: &str) -> Result<Public> {
        Public::open(&self.options.stores, base, &self.context, url, &self.job.source.options).await
    }

    /// The source as it is now, and what the job does to its columns.
    pub async fn inspect(&self) -> Result<(DataFrame, Arc<Treatment>)> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { rows, treatment, .. } = self.open(&source).await?;
        Ok((DataFrame::new(self.context.state(), rows), treatment))
    }

    /// The session of the run.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Same policy, input, cells and version, same run: an identity that a scheduler need not invent.
    fn run_id(&self, source: &Source, public: Option<&Public>, treatment: &Treatment) -> String {
        self.options.run_id.clone().unwrap_or_else(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.policy.hash.as_bytes());
            hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
            hasher.update(&self.cell_rows(treatment).to_le_bytes());
            hasher.update(self.identity(source).as_bytes());
            if let Some(public) = public {
                hasher.update(self.identity(&public.source).as_bytes());
            }
            hasher.finalize().to_hex()[..16].to_owned()
        })
    }

    /// Identity of a source as it is now.
    fn identity(&self, source: &Source) -> String {
        source.snapshot().identity(self.policy.lasting_key())
    }

    /// Whether a release was made from this source, as it is now.
    fn reads(&self, release: &Manifest, source: &Source) -> bool {
        release.snapshot == self.identity(source)
    }

    /// Rows of a cell. It decides the groups, so it is part of what a run is.
    fn cell_rows(&self, treatment: &Treatment) -> usize {
        let limit = self.options.session.memory_limit;
        self.options.cell_rows.unwrap_or_else(|| cell_rows(&treatment.input, limit))
    }

    /// A committed manifest of this run id: the same work, or another's.
    fn already(&self, done: Manifest, source: &Source, public: Option<&Public>) -> Result<Outcome> {
        if done.policy != self.policy.hash {
            return Err(Error::Conflict(format!(
                "run `{}` has been released under another policy; choose another --run-id",
                done.run
            )));
        }
        if done.version != env!("CARGO_PKG_VERSION") {
            return Err(Error::Conflict(format!(
                "run `{}` has been released by Throng {}, this is {}; choose another --run-id",
                done.run,
                done.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let public = public.map(|public| self.identity(&public.source)).unwrap_or_default();
        if !self.reads(&done, source) || done.public_snapshot != public {
            return Err(Error::Conflict(format!(
                "run `{}` has been released from another input; choose another --run-id",
                done.run
            )));
        }
        Ok(Outcome::AlreadyDone(Box::new(done)))
    }
}

/// What a run reads.
struct Opened {
    /// Rows to anonymise: those of the source, beside those of the public table if there is one.
    input: LogicalPlan,
    treatment: Arc<Treatment>,
    public: Option<Public>,
    /// Rows of the source alone, with their identifiers replaced.
    rows: LogicalPlan,
    /// Rows of the source as they are.
    scanned: LogicalPlan,
}

fn public_input(public: Option<&Public>) -> &[InputTable] {
    public.map_or(&[], |public| public.source.input())
}

fn refuse<'a>(problems: impl Iterator<Item = &'a crate::error::Problem>) -> Result<()> {
    let lines: Vec<String> = problems.map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(Error::Job(lines.join("\n"))) }
}
