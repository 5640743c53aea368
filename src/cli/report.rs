//! `throng report`: a release as one HTML page.

use std::path::PathBuf;

use clap::Args;
use serde::de::DeserializeOwned;

use crate::arguments::Limits;
use crate::error::{Error, Result, io_reason, unwritable_file};
use crate::explore::{LossBound, Trial};
use crate::policy::Job;
use crate::report::{Options, Report};
use crate::storage::read_text;
use crate::telemetry::progress::show_waiting;
use crate::terminal::eprint_line;
use crate::verify::Finding;

/// Write a report page about a release: verdict, treatment of every column, classes, risk, provenance
///
/// The page needs no network, holds no value of fewer than k rows and reveals nothing beyond the release, but what
/// --sweep, --series and --bound add. Given a job file instead of a sink, the release is also compared with its source row by
/// row, and the page shows the result.
///
/// Example: throng report out/census
///          throng report pipelines/census.toml -o census.html
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// A sink that holds releases, or the job file that made one
    release: PathBuf,
    /// Release to report on. Defaults to the newest
    #[arg(long = "run", value_name = "ID")]
    run_id: Option<String>,
    /// Job file of the release, to verify it against its source
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,
    /// Trials of `throng sweep --output sweep.json`, shown as a curve
    #[arg(long, value_name = "FILE")]
    sweep: Option<PathBuf>,
    /// Figures of `throng attack --series --json`, shown as curves over releases
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Bounds of `throng bound --json`, shown beside the loss. They depend on every row of the source: such a page is for the
    /// owner of the data
    #[arg(long, value_name = "FILE")]
    bound: Option<PathBuf>,
    /// File to write
    #[arg(short, long, default_value = "report.html", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

/// Writes the page; a release that fails verification is reported and then returned as an error.
pub(crate) async fn run_report(arguments: Arguments, quiet: bool) -> Result<()> {
    let sweep: Option<Vec<Trial>> =
        arguments.sweep.as_deref().map(|path| read_figures(path, "throng sweep --output")).transpose()?;
    let series =
        arguments.series.as_deref().map(|path| read_figures(path, "throng attack --series --json")).transpose()?;
    let bounds: Option<Vec<LossBound>> =
        arguments.bound.as_deref().map(|path| read_figures(path, "throng bound --json")).transpose()?;
    let options = Options {
        run: arguments.run_id,
        session: arguments.limits.session_options(),
        sweep: sweep.unwrap_or_default(),
        series,
        bounds: bounds.unwrap_or_default(),
    };
    let is_job = arguments.release.extension().is_some_and(|extension| extension == "toml");
    let job = arguments.job.or(is_job.then(|| arguments.release.clone()));
    let report = match job {
        Some(path) => {
            let (mut job, base) = crate::arguments::read_job(&path, &[])?;
            if !is_job {
                job = with_sink(job, &arguments.release)?;
            }
            let reading = Report::of_job(&job, &base, options);
            show_waiting("release and source", quiet, reading)
                .await
                .map_err(|error| crate::arguments::blame_job_file(&path, error))?
        }
        None => show_waiting("release", quiet, Report::of_sink(&arguments.release.to_string_lossy(), options)).await?,
    };
    std::fs::write(&arguments.output, report.to_html()).map_err(|error| unwritable_file(&arguments.output, &error))?;
    if !quiet {
        eprint_line(&format!("wrote {}", arguments.output.display()));
    }
    Finding::ensure_none(&report.findings)
}

/// The job with the sink that was given as well: a release may have been moved.
fn with_sink(mut job: Job, sink: &std::path::Path) -> Result<Job> {
    let sink = sink.to_string_lossy().into_owned();
    job.sink.url = match crate::storage::is_url(&sink) {
        true => sink,
        false => std::path::absolute(&sink)?.to_string_lossy().into_owned(),
    };
    Ok(job)
}

/// Maximum size of a file of figures in bytes.
const MAX_FIGURES_BYTES: u64 = 64 << 20;

/// Reads figures written by another command.
fn read_figures<T: DeserializeOwned>(path: &std::path::Path, command: &str) -> Result<T> {
    let text = read_text(path, MAX_FIGURES_BYTES, &format!("file of `{command}`"))
        .map_err(|error| Error::input(format!("{} cannot be read: {}", path.display(), io_reason(&error))))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::input(format!("{} is not a file of `{command}`: {error}", path.display())))
}
