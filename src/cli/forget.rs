//! `throng forget`: subjects that must not be published again.

use clap::Args;

use crate::arguments::{JobArguments, Limits};
use crate::error::Result;
use crate::release::{Run, RunOptions};
use crate::terminal::summary::number;
use crate::terminal::{new_table, print_json, print_result};

/// Keep subjects from being published again by a series: requests of erasure
///
/// They count as gone from the next run on: their rows stay published until their class is retired. The command tells how
/// many of them were published, and in which releases they may be, so that these can be withdrawn.
///
/// Example: throng forget nightly.toml --subjects erased.parquet
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Table of the subjects: Parquet with the columns that series.subject names
    #[arg(long, value_name = "URL")]
    subjects: String,
    /// Print the counts as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Notes the subjects.
pub(crate) async fn run_forget(arguments: Arguments, quiet: bool) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let options = RunOptions { session: arguments.limits.session_options(), ..RunOptions::default() };
    let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
    let found = run.forget(&arguments.subjects).await.map_err(|error| arguments.job.blame_job_file(error))?;
    if arguments.json {
        return print_json(&found);
    }
    if quiet {
        return Ok(());
    }
    let mut releases = new_table(&["release", "subjects that may be in it"]);
    for (name, subjects) in &found.releases {
        releases.add_row([name.clone(), number(*subjects)]);
    }
    print_result(&format!(
        "{} subjects will not be published again: {} of them have been published, {} wait\n{releases}",
        number(found.subjects),
        number(found.published),
        number(found.waiting)
    ))
}
