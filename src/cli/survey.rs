//! `throng survey`: what a table looks like, kept for streams and for runs over tables like it.

use std::path::{Path, PathBuf, absolute};

use clap::Args;

use crate::arguments::{JobArguments, Limits};
use crate::error::{Error, Result};
use crate::policy::Job;
use crate::release::{Run, RunOptions};
use crate::storage::local_path;
use crate::survey::file::write_survey;
use crate::terminal::eprint_line;
use crate::terminal::summary::number;

/// Survey the source of a job into a file, for streams (window.survey) and for runs that skip the first pass (--survey)
///
/// The file holds the ends of numeric columns, the words of text columns, how often sensitive values occur where a rule asks
/// for it, and no rows. It is as private as the source: only its owner may read it. It fits the policy that it was taken
/// under, and columns of the same names and types.
///
/// Example: throng survey people.toml -o people.survey
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// The survey file; one that is there is replaced
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

/// Takes the survey.
pub(crate) async fn run_survey(arguments: Arguments, quiet: bool) -> Result<()> {
    let (mut job, base) = arguments.job.read_job()?;
    // It may name the very file that is to be written.
    job.window = None;
    refuse_public_place(&arguments.output, &job, &base)?;
    let options = RunOptions { session: arguments.limits.session_options(), ..RunOptions::default() };
    let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
    let (bytes, rows) = run.take_survey().await.map_err(|error| arguments.job.blame_job_file(error))?;
    write_survey(&arguments.output, &bytes)?;
    if !quiet {
        eprint_line(&format!(
            "surveyed {} rows into {}; the file holds values of the source: keep it as you keep the source",
            number(rows),
            arguments.output.display()
        ));
    }
    Ok(())
}

/// A survey must not lie where readers of releases look.
fn refuse_public_place(output: &Path, job: &Job, base: &Path) -> Result<()> {
    let Some(sink) = local_path(base, &job.sink.url) else { return Ok(()) };
    if absolute(output)?.starts_with(absolute(&sink)?) {
        return Err(Error::job(
            "the survey would lie inside the sink, where readers of releases see it; write it elsewhere",
        ));
    }
    Ok(())
}
