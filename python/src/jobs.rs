//! Jobs: what the subcommands of the same name do. Results are JSON.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::physical_plan::ExecutionPlan;
use pyo3::prelude::*;
use serde_json::{Value, json};
use throng::internals::OpenedJob;
use throng::releases::Phase;
use throng::{Error, ErrorKind, Outcome, RunOptions};

use crate::errors::to_exception;
use crate::input::{Rows, open_stream};
use crate::policy::table_of_json;
use crate::process::{check_signals, runtime, wait_for, watch};
use crate::session::Limits;

/// A job.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct Job {
    pub(crate) opened: OpenedJob,
}

#[pymethods]
impl Job {
    /// Reads a job file with some of its keys overridden.
    #[staticmethod]
    fn read(path: PathBuf, settings: BTreeMap<String, String>) -> PyResult<Self> {
        let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Ok(Self { opened: OpenedJob::read_file(&path, &settings).map_err(to_exception)? })
    }

    /// Parses a job from JSON.
    #[staticmethod]
    fn parse_json(text: &str, base: PathBuf) -> PyResult<Self> {
        let parsed = table_of_json(text).and_then(|table| {
            let text = toml::to_string(&table).map_err(|error| Error::new(ErrorKind::Job, error.to_string()))?;
            OpenedJob::parse_text(&text, &base)
        });
        Ok(Self { opened: parsed.map_err(to_exception)? })
    }

    fn to_toml(&self) -> PyResult<String> {
        self.opened.to_text().map_err(to_exception)
    }

    #[getter]
    fn sink(&self) -> &str {
        self.opened.sink()
    }

    #[getter]
    fn seed_warning(&self) -> Option<String> {
        self.opened.seed_warning()
    }

    fn check(&self, py: Python<'_>) -> PyResult<String> {
        let found = wait_for(py, || async { Ok::<_, Error>(self.opened.check_job().await) })?;
        Ok(found.to_string())
    }

    #[pyo3(signature = (limits, run_id=None, cell_rows=None, on_progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        limits: Limits,
        run_id: Option<String>,
        cell_rows: Option<usize>,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let mut options = RunOptions::default().with_session(limits.session_options()?);
        options.run_id = run_id;
        options.cell_rows = cell_rows;
        let outcome = run_job(py, &self.opened, options, on_progress.as_ref())?;
        let (manifest, done_before) = match &outcome {
            Outcome::Released(manifest, _) => (manifest, false),
            Outcome::AlreadyDone(manifest) => (manifest, true),
        };
        Ok(json!({ "manifest": manifest, "done_before": done_before }).to_string())
    }

    #[pyo3(signature = (limits, run_id=None))]
    fn verify(&self, py: Python<'_>, limits: Limits, run_id: Option<String>) -> PyResult<String> {
        let session = limits.session_options()?;
        to_text(wait_for(py, || self.opened.verify_release(session, run_id.as_deref())))
    }

    #[pyo3(signature = (limits, run_id=None, public=None, population=None))]
    fn attack(
        &self,
        py: Python<'_>,
        limits: Limits,
        run_id: Option<String>,
        public: Option<String>,
        population: Option<u64>,
    ) -> PyResult<String> {
        let session = limits.session_options()?;
        to_text(wait_for(py, || self.opened.attack_release(session, run_id.as_deref(), public.as_deref(), population)))
    }

    #[pyo3(signature = (limits, ks, methods, sample=None))]
    fn sweep(
        &self,
        py: Python<'_>,
        limits: Limits,
        ks: Vec<u32>,
        methods: Vec<String>,
        sample: Option<u64>,
    ) -> PyResult<String> {
        let session = limits.session_options()?;
        to_text(wait_for(py, || self.opened.sweep_settings(session, &ks, &methods, sample, &|_| {})))
    }

    #[pyo3(signature = (limits, ks, rounds=None, sample=None))]
    fn bound(
        &self,
        py: Python<'_>,
        limits: Limits,
        ks: Vec<u32>,
        rounds: Option<usize>,
        sample: Option<u64>,
    ) -> PyResult<String> {
        let session = limits.session_options()?;
        to_text(wait_for(py, || self.opened.prove_bounds(session, ks, rounds, sample)))
    }

    #[pyo3(signature = (limits, run_id=None, sweep=None, bounds=None))]
    fn report(
        &self,
        py: Python<'_>,
        limits: Limits,
        run_id: Option<String>,
        sweep: Option<String>,
        bounds: Option<String>,
    ) -> PyResult<String> {
        let session = limits.session_options()?;
        let (sweep, bounds) = (parse_figures(sweep)?, parse_figures(bounds)?);
        to_text(wait_for(py, || self.opened.report_release(session, run_id.as_deref(), sweep, bounds)))
    }
}

/// Verifies a release of a sink without its job.
#[pyfunction]
#[pyo3(signature = (sink, limits, run_id=None))]
pub(crate) fn verify_sink(py: Python<'_>, sink: &str, limits: Limits, run_id: Option<String>) -> PyResult<String> {
    let session = limits.session_options()?;
    to_text(wait_for(py, || OpenedJob::verify_sink(session, sink, run_id.as_deref())))
}

/// Makes the page about a release of a sink without its job.
#[pyfunction]
#[pyo3(signature = (sink, limits, run_id=None, sweep=None, bounds=None))]
pub(crate) fn report_sink(
    py: Python<'_>,
    sink: &str,
    limits: Limits,
    run_id: Option<String>,
    sweep: Option<String>,
    bounds: Option<String>,
) -> PyResult<String> {
    let session = limits.session_options()?;
    let (sweep, bounds) = (parse_figures(sweep)?, parse_figures(bounds)?);
    to_text(wait_for(py, || OpenedJob::report_sink(session, sink, run_id.as_deref(), sweep, bounds)))
}

/// Lists the releases of a sink.
#[pyfunction]
pub(crate) fn list_releases(py: Python<'_>, sink: &str) -> PyResult<String> {
    to_text(wait_for(py, || OpenedJob::list_releases(sink)))
}

/// Profiles Parquet files, and drafts a job if a file for it is named.
#[pyfunction]
#[pyo3(signature = (url, limits, draft=None, force=false))]
pub(crate) fn profile_files(
    py: Python<'_>,
    url: &str,
    limits: Limits,
    draft: Option<PathBuf>,
    force: bool,
) -> PyResult<String> {
    let session = limits.session_options()?;
    let draft: Option<(&Path, bool)> = draft.as_deref().map(|path| (path, force));
    to_text(wait_for(py, || OpenedJob::profile_files(session, url, draft)))
}

/// Profiles the rows of a Python object.
#[pyfunction]
pub(crate) fn profile_rows(py: Python<'_>, data: &Bound<'_, PyAny>, limits: Limits) -> PyResult<String> {
    let options = limits.session_options()?;
    let (reader, in_memory) = open_stream(data)?;
    let (context, spill) = options.open().map_err(to_exception)?;
    let rows = py.detach(|| Rows::read_stream(reader, in_memory, spill.path(), options.spill_limit))?;
    let table = rows.to_table(context.state().config().target_partitions()).map_err(to_exception)?;
    to_text(wait_for(py, || async {
        let input = context.read_table(table)?.into_unoptimized_plan();
        OpenedJob::profile_plan(&context, input).await
    }))
}

fn to_text(found: PyResult<Value>) -> PyResult<String> {
    found.map(|found| found.to_string())
}

fn parse_figures(text: Option<String>) -> PyResult<Option<Value>> {
    let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
    parsed.map_err(|error| to_exception(Error::new(ErrorKind::Input, format!("these are no figures: {error}"))))
}

/// What a run is doing.
type Doing = (Phase, Option<Arc<dyn ExecutionPlan>>, u64);

/// Reports phases and rows to a Python function.
struct ProgressReporter<'a> {
    call: Option<&'a Py<PyAny>>,
    /// Phases that have begun and were not reported yet.
    begun: Mutex<VecDeque<Doing>>,
    current: Mutex<Option<Doing>>,
}

impl ProgressReporter<'_> {
    fn begin_phase(&self, phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push_back((phase, plan.cloned(), rows));
    }

    /// Calls the function for every phase that has begun since the last call, or for the current one.
    fn report_progress(&self) -> PyResult<()> {
        let Some(call) = self.call else { return Ok(()) };
        let begun: Vec<Doing> = self.begun.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let reported = if begun.is_empty() { current.iter().cloned().collect() } else { begun };
        for (phase, plan, rows) in reported {
            let done = plan.as_ref().map_or(0, |plan| phase.rows_done(plan));
            let done = if rows > 0 { done.min(rows) } else { done };
            Python::attach(|py| call.call1(py, (phase.name(), done, (rows > 0).then_some(rows))))?;
            *current = Some((phase, plan, rows));
        }
        Ok(())
    }
}

/// Runs a job to its end, unless a signal or the function that is told of its progress raises: then nothing is published, but for
/// a commit that has begun.
fn run_job(py: Python<'_>, opened: &OpenedJob, options: RunOptions, call: Option<&Py<PyAny>>) -> PyResult<Outcome> {
    let run = opened.prepare_run(options).map_err(to_exception)?;
    let runtime = runtime().map_err(to_exception)?;
    let progress = ProgressReporter { call, begun: Mutex::default(), current: Mutex::default() };
    let committing = AtomicBool::new(false);
    let observer = |phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64| {
        committing.store(phase == Phase::Commit, Ordering::Relaxed);
        progress.begin_phase(phase, plan, rows);
    };
    let tick = || check_signals().and_then(|()| progress.report_progress());
    py.detach(|| {
        runtime.block_on(async {
            let mut execution = Box::pin(run.execute(&observer));
            match watch(&mut execution, tick).await {
                Ok(outcome) => {
                    let outcome = outcome.map_err(|error| to_exception(opened.blame_file(error)))?;
                    progress.report_progress()?;
                    Ok(outcome)
                }
                Err(raised) => {
                    // A commit takes moments and must not be interrupted halfway.
                    if committing.load(Ordering::Relaxed) {
                        let _ = execution.await;
                    } else {
                        drop(execution);
                        run.abandon().await;
                    }
                    Err(raised)
                }
            }
        })
    })
}
