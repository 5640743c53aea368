//! `throng verify`: does a release hold what it promises?

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::{JobArguments, Limits, print, print_json};
use crate::error::Result;
use crate::release::{Finding, Location, Run, RunOptions, find_release, verify_release};

/// Check a release: class sizes and all rules from the published files, file by file against the manifest, and row by
/// row against the source
///
/// Given a job file, everything is checked; given a sink, what can be without policy and source.
///
/// Example: throng verify pipelines/census.toml
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Release to check; the newest one when absent
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Verifies a release.
pub async fn run(arguments: Arguments, quiet: bool) -> Result<()> {
    let run_id = arguments.run_id.as_deref();
    let is_job = arguments.job.job.extension().is_some_and(|extension| extension == "toml");
    let (manifest, classes, findings) = if is_job {
        let (job, base) = arguments.job.read()?;
        let options = RunOptions { session: arguments.limits.options(), ..RunOptions::default() };
        let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame(error))?;
        run.verify_latest(run_id).await.map_err(|error| arguments.job.blame(error))?
    } else {
        let sink = Location::open(Path::new("."), &arguments.job.job.to_string_lossy())?;
        let manifest = find_release(&sink, run_id).await?;
        let (context, _spill) = arguments.limits.options().open()?;
        let (classes, findings) = verify_release(&context, &sink, &manifest).await?;
        (manifest, classes, findings)
    };
    if arguments.json {
        let broken: Vec<Value> = findings
            .iter()
            .map(|found| json!({ "rule": found.rule, "count": found.count, "message": found.message }))
            .collect();
        print_json(&json!({
            "run": manifest.run,
            "holds": findings.is_empty(),
            "rows": classes.rows(),
            "classes": classes.classes(),
            "smallest_class": classes.smallest(),
            "against_source": is_job,
            "findings": broken,
        }))?;
    }
    Finding::refuse(&findings)?;
    if quiet || arguments.json {
        return Ok(());
    }
    let checked = if is_job { manifest.verification.rules.join(", ") } else { format!("k = {}", manifest.k) };
    print(&format!(
        "run `{}` holds: {} rows in classes of {} or more ({} in all); checked {checked}, every file by its checksum{}",
        manifest.run,
        classes.rows(),
        classes.smallest().unwrap_or(0),
        classes.classes(),
        if is_job { ", the rows against the source" } else { "" },
    ))
}
