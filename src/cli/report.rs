//! `throng report`: a release as one HTML page.

use std::path::PathBuf;

use clap::Args;

use super::progress::waiting;
use super::{Limits, say};
use crate::error::{Error, Result, reason};
use crate::job::Job;
use crate::release::{Finding, Trial};
use crate::report::{Options, Report};

/// Write a page about a release: verdict, what was done to every column, classes, risk, provenance
///
/// The page needs no network and holds no value of fewer than k rows. Given a job file instead of a sink, it also
/// compares the release with its source.
///
/// Example: throng report out/census
///          throng report pipelines/census.toml -o census.html
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// A sink that holds releases, or the job file that made one
    release: PathBuf,
    /// Release to report on; the newest one when absent
    #[arg(long = "run", value_name = "ID")]
    run_id: Option<String>,
    /// Job file of the release, to compare it with its source
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,
    /// Trials of `throng sweep --output sweep.json`, shown as a curve
    #[arg(long, value_name = "FILE")]
    sweep: Option<PathBuf>,
    /// File to write
    #[arg(short, long, default_value = "report.html", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

/// Writes the page; a release that does not hold is reported, and then is an error.
pub async fn run(arguments: Arguments, quiet: bool) -> Result<()> {
    let sweep = match &arguments.sweep {
        Some(path) => trials(path)?,
        None => Vec::new(),
    };
    let options = Options { run: arguments.run_id, session: arguments.limits.options(), sweep };
    let is_job = arguments.release.extension().is_some_and(|extension| extension == "toml");
    let job = arguments.job.or(is_job.then(|| arguments.release.clone()));
    let report = match job {
        Some(path) => {
            let (mut job, base) = super::read_job(&path, &[])?;
            if !is_job {
                job = with_sink(job, &arguments.release)?;
            }
            let reading = Report::of_job(&job, &base, options);
            waiting("release and source", quiet, reading).await.map_err(|error| super::blame(&path, error))?
        }
        None => waiting("release", quiet, Report::of_sink(&arguments.release.to_string_lossy(), options)).await?,
    };
    let failed = |error: std::io::Error| {
        Error::Resources(format!("{} cannot be written: {}", arguments.output.display(), reason(&error)))
    };
    std::fs::write(&arguments.output, report.html()).map_err(failed)?;
    if !quiet {
        say(&format!("{} is written", arguments.output.display()));
    }
    Finding::refuse(&report.findings)
}

/// The job with the sink that was named beside it: a release may have been moved.
fn with_sink(mut job: Job, sink: &std::path::Path) -> Result<Job> {
    let sink = sink.to_string_lossy().into_owned();
    job.sink.url = match crate::job::is_url(&sink) {
        true => sink,
        false => std::path::absolute(&sink)?.to_string_lossy().into_owned(),
    };
    Ok(job)
}

fn trials(path: &std::path::Path) -> Result<Vec<Trial>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::Input(format!("{} cannot be read: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Input(format!("{} is not a file of `throng sweep --output`: {error}", path.display())))
}
