//! `throng check`: everything that is wrong with a job, without reading data; with `--data` also what the sensitive
//! columns allow.

use clap::Args;

use super::{JobArguments, print};
use crate::error::{Error, Result};
use crate::job::{Problem, check, check_schema};
use crate::release::{Run, RunOptions, SessionOptions, Source, Stores};

/// Check a job file, its hierarchies and the columns of its source; reads no data unless asked to
///
/// Example: throng check pipelines/census.toml
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Read the sensitive columns too and tell what they allow: the largest l, groups, rows left over, bounds
    #[arg(long)]
    data: bool,
}

/// Reports all problems at once.
pub async fn run(arguments: Arguments) -> Result<()> {
    let (job, base) = arguments.job.read()?;
    let mut problems = check(&job, &base);
    let source = match Source::find(&Stores::default(), &base, &job).await {
        Ok(source) => {
            let (context, _spill) = SessionOptions::default().open()?;
            source.scan(&context).await.map(|(_, schema)| schema)
        }
        Err(error) => Err(error),
    };
    let mut input = None;
    match source {
        Ok(schema) => problems.extend(check_schema(&job, &schema)),
        // A source that is missing altogether is in the list already.
        Err(error) if problems.iter().all(|problem| !problem.key.starts_with("source")) => input = Some(error),
        Err(_) => {}
    }
    let (errors, remarks): (Vec<&Problem>, Vec<&Problem>) = problems.iter().partition(|problem| problem.is_error());
    for remark in remarks {
        print(&remark.to_string())?;
    }
    let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match input {
        Some(error) if lines.is_empty() => return Err(error),
        Some(error) => lines.push(error.to_string()),
        None => {}
    }
    if lines.is_empty() {
        if arguments.data {
            let run = Run::new(job, &base, RunOptions::default()).map_err(|error| arguments.job.blame(error))?;
            for report in run.feasibility().await.map_err(|error| arguments.job.blame(error))? {
                print(&report.to_string())?;
                report.refuse()?;
            }
        }
        return print(&format!("{}: fine", arguments.job.job.display()));
    }
    let count = lines.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    Err(Error::Job(format!("{}: {count} {noun}\n{}", arguments.job.job.display(), lines.join("\n"))))
}
