//! `throng verify`: does a release keep its promises?

use clap::Args;
use serde_json::{Value, json};

use crate::agreement::verify_series;
use crate::arguments::{JobArguments, Limits};
use crate::error::Result;
use crate::release::{ReleaseCheck, Run, RunOptions};
use crate::telemetry::progress::show_waiting;
use crate::terminal::{print_json, print_result};
use crate::verify::Finding;

/// Verify a release: class sizes and all rules from the published files, file by file against the manifest, and row by
/// row against the source
///
/// Given a job file, checks everything; given a sink, what can be checked in this process without policy and source.
///
/// Example: throng verify pipelines/census.toml
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Release to check. Defaults to the newest
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Check what differs between neighbours among all releases of a series: for every combination of quasi-identifiers, the
    /// rows that have come and those that have gone are none, or meet k (given a job file, all rules) by themselves
    #[arg(long, conflicts_with = "run_id")]
    series: bool,
    /// Print the result as JSON: violated rules, and the parameters with which every rule would hold
    #[arg(long)]
    json: bool,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: crate::arguments::ClusterArguments,
    #[command(flatten)]
    limits: Limits,
}

/// Verifies a release.
pub(crate) async fn run_verify(arguments: Arguments, quiet: bool) -> Result<()> {
    if arguments.series {
        return verify_all(arguments, quiet).await;
    }
    let run_id = arguments.run_id.as_deref();
    let is_job = arguments.job.job.extension().is_some_and(|extension| extension == "toml");
    let found = if is_job {
        let (job, base) = arguments.job.read_job()?;
        let options = RunOptions {
            session: arguments.limits.session_options(),
            #[cfg(feature = "cluster")]
            engine: arguments.cluster.engine(),
            ..RunOptions::default()
        };
        let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
        show_waiting("release and source", quiet, run.verify_latest(run_id))
            .await
            .map_err(|error| arguments.job.blame_job_file(error))?
    } else {
        let sink = arguments.job.stores.open_sink(&arguments.job.job)?;
        let session = arguments.limits.session_options();
        show_waiting("release", quiet, ReleaseCheck::of_sink(&session, &sink, run_id)).await?
    };
    if arguments.json {
        print_json(&found.to_json(is_job))?;
    }
    let ReleaseCheck { manifest, classes, findings, .. } = &found;
    Finding::ensure_none(findings)?;
    if quiet || arguments.json {
        return Ok(());
    }
    let checked = found.checked_rules(is_job).join(", ");
    print_result(&format!(
        "run `{}` holds: {} rows in classes of {} or more ({} in all); checked {checked}, every file by its checksum{}",
        manifest.run,
        classes.rows(),
        classes.smallest().unwrap_or(0),
        classes.classes(),
        if is_job { ", the rows against the source" } else { "" },
    ))
}

/// Verifies a series release by release.
async fn verify_all(arguments: Arguments, quiet: bool) -> Result<()> {
    let is_job = arguments.job.job.extension().is_some_and(|extension| extension == "toml");
    let (releases, findings) = if is_job {
        let (job, base) = arguments.job.read_job()?;
        let options = RunOptions { session: arguments.limits.session_options(), ..RunOptions::default() };
        let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
        show_waiting("releases", quiet, run.verify_neighbours())
            .await
            .map_err(|error| arguments.job.blame_job_file(error))?
    } else {
        let sink = arguments.job.stores.open_sink(&arguments.job.job)?;
        let (context, _spill) = arguments.limits.session_options().open()?;
        show_waiting("releases", quiet, verify_series(&context, &sink)).await?
    };
    if arguments.json {
        let broken: Vec<Value> = findings
            .iter()
            .map(|finding| json!({ "rule": finding.rule, "count": finding.count, "message": finding.message }))
            .collect();
        print_json(&json!({ "releases": releases, "holds": findings.is_empty(), "findings": broken }))?;
    }
    Finding::ensure_none(&findings)?;
    if quiet || arguments.json {
        return Ok(());
    }
    let checked = if is_job { "k and every rule" } else { "k" };
    print_result(&format!(
        "{releases} releases hold: whatever differs between two neighbours meets {checked} by itself"
    ))
}
