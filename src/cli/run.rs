//! `throng run`: the main job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use datafusion::physical_plan::ExecutionPlan;

use super::progress::Progress;
use super::{JobArguments, Limits, print, say, summary};
use crate::error::{Error, Result};
use crate::job::local_path;
use crate::release::{Outcome, Phase, Run, RunOptions};

/// Anonymise a dataset and publish the verified result
///
/// Example: throng run pipelines/census.toml --memory-limit 4GB --run-id 2026-11-16
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Identity of the run, for example its date. A run that has been released is not done again. Made of policy,
    /// input and version when absent
    #[arg(long, env = "THRONG_RUN_ID", value_name = "ID", value_parser = run_id)]
    run_id: Option<String>,
    /// Print the manifest of the release as JSON
    #[arg(long)]
    json: bool,
    /// Rows per cell; smaller cells need less memory and cost some quality
    #[arg(long, env = "THRONG_CELL_ROWS", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cell_rows: Option<u64>,
    #[command(flatten)]
    limits: Limits,
}

fn run_id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(allowed) {
        return Err("use letters, digits, '-', '_' and '.'".into());
    }
    Ok(text.to_owned())
}

/// Waits until somebody asks the run to stop: Ctrl-C, or what schedulers send.
async fn stopped() {
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

/// Runs the job.
pub async fn run(arguments: Arguments, quiet: bool) -> Result<()> {
    let (job, base) = arguments.job.read()?;
    let options = RunOptions {
        session: arguments.limits.options(),
        run_id: arguments.run_id,
        cell_rows: arguments.cell_rows.map(|rows| rows as usize),
        ..RunOptions::default()
    };
    let run = Run::new(job.clone(), &base, options).map_err(|error| arguments.job.blame(error))?;
    let progress = Progress::new(quiet);
    let committing = AtomicBool::new(false);
    let observer = |phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64| {
        committing.store(phase == Phase::Commit, Ordering::Relaxed);
        progress.begin(phase, plan, rows);
    };
    let mut execution = Box::pin(run.execute(&observer));
    let outcome = tokio::select! {
        outcome = &mut execution => outcome,
        () = stopped() => {
            // A commit is a matter of moments, and half of it is none: it is waited for.
            if committing.load(Ordering::Relaxed) {
                execution.await
            } else {
                drop(execution);
                run.abandon().await;
                Err(Error::Interrupted("nothing was published".into()))
            }
        }
    };
    progress.end();
    let (manifest, times, done_before) = match outcome.map_err(|error| arguments.job.blame(error))? {
        Outcome::Released(manifest, times) => (manifest, times, false),
        Outcome::AlreadyDone(manifest) => (manifest, Vec::new(), true),
    };
    if done_before && !quiet {
        say(&format!("run `{}` has been released before ({}); nothing to do", manifest.run, manifest.committed));
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&manifest).map_err(|error| Error::Internal(error.to_string()))?;
        return print(&text);
    }
    if quiet {
        return Ok(());
    }
    // Where the reader stands, not where the job file does.
    let sink = local_path(&base, &job.sink.url).map_or(job.sink.url, |path| path.display().to_string());
    print(&summary::of(&manifest, &sink, &times))
}
