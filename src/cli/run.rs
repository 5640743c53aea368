//! `throng run`: the main job.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use datafusion::physical_plan::ExecutionPlan;
use serde::Serialize;
use tracing::field::Empty;
use tracing::{Instrument, info_span};

use super::exit_code;
use crate::arguments::{JobArguments, Limits};
use crate::engine::Phase;
use crate::error::{Error, Result};
use crate::explore::{LossBound, prove_job_bound};
use crate::release::{Manifest, Outcome, Run, RunOptions};
use crate::storage::local_path;
use crate::telemetry::metrics::Ended;
use crate::telemetry::progress::Progress;
use crate::telemetry::run_stats::{ResourceUsage, RunStats};
use crate::terminal::{eprint_line, print_json, print_result, summary};

/// Anonymise a dataset and publish the verified result
///
/// Example: throng run pipelines/census.toml --memory-limit 4GB --run-id 2026-11-16
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Identity of the run, for example its date. A run that has been released is not repeated. Defaults to a hash of
    /// policy, input and version
    #[arg(long, env = "THRONG_RUN_ID", value_name = "ID", value_parser = run_id)]
    run_id: Option<String>,
    /// Print the manifest of the release as JSON, with resource usage as `effort`; if the run fails, the failure
    #[arg(long)]
    json: bool,
    /// Write metrics of the run to this file in Prometheus text format, even if it fails
    #[arg(long, env = "THRONG_METRICS_FILE", value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    /// Rows per cell; smaller cells need less memory at some cost in quality
    #[arg(long, env = "THRONG_CELL_ROWS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cell_rows: Option<u64>,
    /// Prove how little any release of the source could lose, and print how near this one comes to it. That takes longer
    /// than the run. It is printed only: it depends on every row of the source, so it is for the owner of the data
    #[arg(long)]
    bound: bool,
    /// Skip the first pass: take domains and cells from this file of `throng survey`, for a table like the surveyed one
    #[arg(long, env = "THRONG_SURVEY", value_name = "FILE")]
    survey: Option<PathBuf>,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: crate::arguments::ClusterArguments,
    #[command(flatten)]
    limits: Limits,
}

fn run_id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(allowed) {
        return Err("must consist of letters, digits, '-', '_' and '.'".into());
    }
    Ok(text.to_owned())
}

/// Waits for a signal to stop: Ctrl-C or SIGTERM.
pub(super) async fn wait_for_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// The JSON output.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    /// Whether the release was there before this run.
    done_before: bool,
    effort: &'a ResourceUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<&'a LossBound>,
}

/// Runs the job and reports the outcome.
pub(crate) async fn run_job(arguments: Arguments, quiet: bool) -> Result<()> {
    let stats = RunStats::new();
    let job = arguments.job.job.clone();
    let span = info_span!("run", job = %job.display(), run = Empty, otel.status_code = Empty);
    let outcome = execute_job(&arguments, quiet, &stats).instrument(span.clone()).await;
    let effort = stats.resource_usage();
    let (manifest, done_before) = match &outcome {
        Ok((Outcome::Released(manifest, _), _)) => (Some(manifest.as_ref()), false),
        Ok((Outcome::AlreadyDone(manifest), _)) => (Some(manifest.as_ref()), true),
        Err(_) => (None, false),
    };
    match &outcome {
        Ok(_) => span.record("run", manifest.map_or("", |manifest| &manifest.run)),
        Err(_) => span.record("otel.status_code", "ERROR"),
    };
    if let Some(file) = &arguments.metrics_file {
        let pipeline = job.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let error = outcome.as_ref().err();
        let exit_code = error.map_or(0, exit_code);
        // Whether there is a release is what the exit code says.
        if let Err(error) =
            (Ended { pipeline, manifest, done_before, error, exit_code, effort: &effort }).write_file(file)
        {
            tracing::warn!("{error}");
        }
    }
    let (outcome, sink) = outcome?;
    let bound = if arguments.bound { prove_bound(&arguments).await } else { None };
    show_outcome(&arguments, quiet, &outcome, &sink, Figures { effort: &effort, bound: bound.as_ref() })
}

/// What is reported of a run beside its release.
struct Figures<'a> {
    effort: &'a ResourceUsage,
    bound: Option<&'a LossBound>,
}

/// The bound of the job. The release stands, so that there is none is a warning.
async fn prove_bound(arguments: &Arguments) -> Option<LossBound> {
    let (job, base) = arguments.job.read_job().ok()?;
    let session = arguments.limits.session_options();
    let proven = tokio::select! {
        proven = prove_job_bound(&job, &base, &session) => proven,
        () = wait_for_stop() => Err(Error::interrupted("the release was published before")),
    };
    proven.inspect_err(|error| tracing::warn!("no bound was proven: {error}")).ok()
}

/// Runs the job; the name of its sink comes with the outcome.
async fn execute_job(arguments: &Arguments, quiet: bool, stats: &RunStats) -> Result<(Outcome, String)> {
    let (job, base) = arguments.job.read_job()?;
    // Relative to the working directory, not to the job file.
    let sink = local_path(&base, &job.sink.url).map_or(job.sink.url.clone(), |path| path.display().to_string());
    let options = RunOptions {
        session: arguments.limits.session_options(),
        run_id: arguments.run_id.clone(),
        cell_rows: arguments.cell_rows.map(|rows| rows as usize),
        survey: arguments.survey.clone(),
        #[cfg(feature = "cluster")]
        engine: arguments.cluster.engine(),
        ..RunOptions::default()
    };
    let warning = job.method.seed_warning();
    let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
    let progress = Progress::new(quiet);
    let committing = AtomicBool::new(false);
    let observer = |phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64| {
        committing.store(phase == Phase::Commit, Ordering::Relaxed);
        stats.begin_phase(phase, plan, rows);
        progress.begin_phase(phase, plan, rows);
    };
    let mut execution = Box::pin(run.execute(&observer));
    let outcome = tokio::select! {
        outcome = &mut execution => outcome,
        () = wait_for_stop() => {
            // A commit takes moments and must not be interrupted halfway: wait for it.
            if committing.load(Ordering::Relaxed) {
                execution.await
            } else {
                drop(execution);
                run.abandon().await;
                Err(Error::interrupted("nothing was published"))
            }
        }
    };
    progress.end_bars();
    if let (Ok(Outcome::Released(..)), Some(warning)) = (&outcome, warning) {
        tracing::warn!("{}: {}; {}", warning.key, warning.message, warning.help.unwrap_or_default());
    }
    outcome.map(|outcome| (outcome, sink)).map_err(|error| arguments.job.blame_job_file(error))
}

/// Shows a release to whoever asked for it.
fn show_outcome(arguments: &Arguments, quiet: bool, outcome: &Outcome, sink: &str, figures: Figures<'_>) -> Result<()> {
    let (manifest, times, done_before) = match outcome {
        Outcome::Released(manifest, times) => (manifest.as_ref(), times.as_slice(), false),
        Outcome::AlreadyDone(manifest) => (manifest.as_ref(), [].as_slice(), true),
    };
    if done_before && !quiet {
        eprint_line(&format!(
            "run `{}` has been released before ({}); nothing to do",
            manifest.run, manifest.committed
        ));
    }
    if arguments.json {
        return print_json(&Report { manifest, done_before, effort: figures.effort, bound: figures.bound });
    }
    if quiet {
        return Ok(());
    }
    print_result(&(summary::format_release(manifest, sink, times) + &summary::format_bound(manifest, figures.bound)))
}
