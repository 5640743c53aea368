//! Jobs as the commands take them, for bindings to other languages: the same calls, and as JSON what the commands print with
//! `--json`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::arguments::{blame_job_file, read_job};
use crate::engine::SessionOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::explore::profile::{Draft, Profile, profile_rows};
use crate::explore::{BoundRequest, JobProblems, Setting, Trials, ensure_job_runs};
use crate::ledger::manifest::round_figures;
use crate::measure::Classes;
use crate::operator::AnonymizeExec;
use crate::policy::{Job, MethodName};
use crate::release::{ReleaseCheck, Run, RunOptions, Scores};
use crate::report::{Options, Report};
use crate::source::Source;
use crate::storage::{Location, StoreOptions, Stores};
use crate::verify::Finding;

/// A job, the folder to which its paths are relative, and the file that it was read from, if there is one.
#[derive(Debug, Clone)]
pub struct OpenedJob {
    job: Job,
    base: PathBuf,
    path: Option<PathBuf>,
}

impl OpenedJob {
    /// Reads a job file with some of its keys overridden.
    pub fn read_file(path: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let (job, base) = read_job(path, settings)?;
        Ok(Self { job, base, path: Some(path.to_owned()) })
    }

    /// Parses the text of a job file.
    pub fn parse_text(text: &str, base: &Path) -> Result<Self> {
        let job = Job::parse(text, Path::new("job"));
        Ok(Self::new(job.map_err(|error| Error::new(ErrorKind::Job, error.to_string()))?, base))
    }

    /// Takes a job whose paths are relative to `base`.
    #[must_use]
    pub fn new(job: Job, base: &Path) -> Self {
        Self { job, base: base.to_owned(), path: None }
    }

    /// Returns the job as the text of a job file.
    pub fn to_text(&self) -> Result<String> {
        toml::to_string(&self.job).map_err(|error| Error::internal(error.to_string()))
    }

    /// Returns the sink as the job names it.
    #[must_use]
    pub fn sink(&self) -> &str {
        &self.job.sink.url
    }

    /// Names the job file in front of every problem with it, as the commands do.
    #[must_use]
    pub fn blame_file(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => blame_job_file(path, error),
            None => error,
        }
    }

    /// Prepares a run.
    pub fn prepare_run(&self, options: RunOptions) -> Result<Run> {
        Run::new(self.job.clone(), &self.base, options).map_err(|error| self.blame_file(error))
    }

    /// Returns what a warning says of the seed of the job, if it has one.
    #[must_use]
    pub fn seed_warning(&self) -> Option<String> {
        let warning = self.job.method.seed_warning()?;
        Some(format!("{}: {}; {}", warning.key, warning.message, warning.help.unwrap_or_default()))
    }

    /// Lists everything that is wrong with the job: `throng check`.
    pub async fn check_job(&self) -> Value {
        let found = JobProblems::find_problems(&self.job, &self.base).await;
        json!({ "fine": found.is_fine(), "problems": found.to_json() })
    }

    /// Verifies a release against policy and source: `throng verify`.
    pub async fn verify_release(&self, session: SessionOptions, run_id: Option<&str>) -> Result<Value> {
        let run = self.prepare_run(RunOptions { session, ..RunOptions::default() })?;
        let found = run.verify_latest(run_id).await.map_err(|error| self.blame_file(error))?;
        Ok(found.to_json(true))
    }

    /// Attacks a release: `throng attack`.
    pub async fn attack_release(
        &self,
        session: SessionOptions,
        run_id: Option<&str>,
        public: Option<&str>,
        population: Option<u64>,
    ) -> Result<Value> {
        let run = self.prepare_run(RunOptions { session, ..RunOptions::default() })?;
        let found = run.attack(run_id, public, population).await.map_err(|error| self.blame_file(error))?;
        to_json(&found)
    }

    /// Tries settings without publishing anything: `throng sweep`. `begin` is called with the name of each.
    pub async fn sweep_settings(
        &self,
        session: SessionOptions,
        ks: &[u32],
        methods: &[String],
        sample: Option<u64>,
        begin: &(dyn Fn(&str) + Sync),
    ) -> Result<Value> {
        ensure_job_runs(&self.job, &self.base).map_err(|error| self.blame_file(error))?;
        let mut names = Vec::new();
        for name in methods {
            names.push(MethodName::new(name).ok_or_else(|| Error::job(format!("there is no method `{name}`")))?);
        }
        if names.is_empty() {
            names.push(self.job.method.name);
        }
        let trials = Trials::open_source(&self.job, &self.base, &session).await?;
        let rows = match sample {
            Some(sample) => trials.sample_rows(sample, self.job.method.seed.unwrap_or_default()).await?,
            None => trials.all_rows(),
        };
        let mut found = Vec::new();
        for setting in Setting::list_settings(&names, ks, &[]) {
            begin(&format!("k = {}, {}", setting.k, setting.name()));
            found.push(trials.run_trial(&rows, setting).await.map_err(|error| self.blame_file(error))?);
        }
        to_json(&found)
    }

    /// Proves how little any release of the source can lose: `throng bound`.
    pub async fn prove_bounds(
        &self,
        session: SessionOptions,
        ks: Vec<u32>,
        rounds: Option<usize>,
        sample: Option<u64>,
    ) -> Result<Value> {
        let request = BoundRequest { ks, rounds, sample };
        let proven = request.prove_bounds(&self.job, &self.base, &session, &|_| {}).await;
        to_json(&proven.map_err(|error| self.blame_file(error))?.0)
    }

    /// Makes the page about a release: `throng report`. Trials and bounds are those of the other calls.
    pub async fn report_release(
        &self,
        session: SessionOptions,
        run_id: Option<&str>,
        sweep: Option<Value>,
        bounds: Option<Value>,
    ) -> Result<Value> {
        let options = report_options(session, run_id, sweep, bounds)?;
        let report = Report::of_job(&self.job, &self.base, options).await;
        report_json(&report.map_err(|error| self.blame_file(error))?)
    }
}

/// What needs no job.
impl OpenedJob {
    /// Verifies a release of a sink as far as that is possible without its job.
    pub async fn verify_sink(session: SessionOptions, sink: &str, run_id: Option<&str>) -> Result<Value> {
        let sink = Stores::default().open(Path::new("."), sink, &StoreOptions::default())?;
        Ok(ReleaseCheck::of_sink(&session, &sink, run_id).await?.to_json(false))
    }

    /// Makes the page about a release of a sink.
    pub async fn report_sink(
        session: SessionOptions,
        sink: &str,
        run_id: Option<&str>,
        sweep: Option<Value>,
        bounds: Option<Value>,
    ) -> Result<Value> {
        report_json(&Report::of_sink(sink, report_options(session, run_id, sweep, bounds)?).await?)
    }

    /// Lists the releases of a sink, oldest first.
    pub async fn list_releases(sink: &str) -> Result<Value> {
        to_json(&crate::release::releases(&Location::open(Path::new("."), sink)?).await?)
    }

    /// Profiles Parquet files: `throng profile`. With `draft`, a job file is written as well.
    pub async fn profile_files(session: SessionOptions, url: &str, draft: Option<(&Path, bool)>) -> Result<Value> {
        let (context, _spill) = session.open()?;
        if let Some((path, false)) = draft {
            // Fail before the long scan of the data.
            Draft::ensure_absent(path)?;
        }
        let source = Source::at_url(&Stores::default(), Path::new("."), url).await?;
        let (input, _) = source.scan(&context).await?;
        let found: Profile = profile_rows(&context, input).await?;
        if let Some((path, force)) = draft {
            Draft::new(&found, url, path)?.write_files(force)?;
        }
        to_json(&found)
    }

    /// Profiles the rows of a plan.
    pub async fn profile_plan(context: &SessionContext, input: LogicalPlan) -> Result<Value> {
        to_json(&profile_rows(context, input).await?)
    }

    /// Attacks the newest release of a run's sink with the public table of its job; returns how many rows and classes it read.
    pub async fn attack_newest(run: &Run) -> Result<(u64, u64)> {
        let found = run.attack(None, None, None).await?;
        Ok((found.rows, found.classes))
    }

    /// Returns the scores of an anonymised stream whose plan has run to its end, beside counts of rows and groups. `None`
    /// before its first group.
    pub fn stream_scores(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Value>> {
        let Some(node) = find_node(plan) else { return Ok(None) };
        let (Some(groups), Some(params)) = (node.measures(), node.params()) else { return Ok(None) };
        let bound_policy = &params.bound_policy;
        let columns: Vec<String> = bound_policy.quasi.iter().map(|column| column.name.clone()).collect();
        let k = bound_policy.policy.k();
        let mut scores = to_json(&round_figures(&Scores::new(&groups, &Classes::default(), k, &columns))?)?;
        if let Some(scores) = scores.as_object_mut() {
            // Classes of several cells may be alike, and nobody has counted them.
            scores.retain(|name, score| {
                !["dm", "c_avg", "risk_max", "risk_mean"].contains(&name.as_str()) && !score.is_null()
            });
        }
        let counted = |name: &str| {
            let metrics = node.metrics();
            metrics.and_then(|metrics| metrics.sum_by_name(name)).map(|number| number.as_usize() as u64)
        };
        Ok(Some(json!({
            "k": k,
            "rows": groups.loss.rows(),
            "suppressed": groups.shown_suppressed(),
            "groups": counted("groups"),
            "scores": scores,
        })))
    }
}

/// The anonymising node of a plan.
fn find_node(plan: &Arc<dyn ExecutionPlan>) -> Option<&AnonymizeExec> {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(node) => Some(node),
        None => plan.children().into_iter().find_map(find_node),
    }
}

fn report_options(
    session: SessionOptions,
    run_id: Option<&str>,
    sweep: Option<Value>,
    bounds: Option<Value>,
) -> Result<Options> {
    Ok(Options {
        run: run_id.map(str::to_owned),
        session,
        sweep: from_json(sweep, "sweep")?.unwrap_or_default(),
        series: None,
        bounds: from_json(bounds, "bound")?.unwrap_or_default(),
    })
}

fn report_json(report: &Report) -> Result<Value> {
    let findings =
        |finding: &Finding| json!({ "rule": finding.rule, "count": finding.count, "message": finding.message });
    Ok(json!({
        "run": report.manifest.run,
        "holds": report.findings.is_empty(),
        "compared": report.compared,
        "findings": report.findings.iter().map(findings).collect::<Vec<Value>>(),
        "html": report.to_html(),
    }))
}

fn to_json(found: &impl Serialize) -> Result<Value> {
    serde_json::to_value(found).map_err(|error| Error::internal(error.to_string()))
}

fn from_json<T: DeserializeOwned>(value: Option<Value>, call: &str) -> Result<Option<T>> {
    let parsed = value.map(serde_json::from_value).transpose();
    parsed.map_err(|error| Error::input(format!("this is not a result of `{call}`: {error}")))
}
