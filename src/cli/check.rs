//! `throng check`: all problems of a job, without reading data; with `--data` also what the sensitive
//! columns allow.

use clap::Args;
use serde_json::json;

use crate::arguments::JobArguments;
use crate::error::{Error, Problem, Result};
use crate::explore::JobProblems;
use crate::release::{Run, RunOptions};
use crate::terminal::{print_json, print_result};

/// Check a job file, its hierarchies and the columns of its source; reads no data unless asked to
///
/// Example: throng check pipelines/census.toml
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Also read the sensitive columns and report what they allow: the largest l, groups, rows left over, bounds
    #[arg(long)]
    data: bool,
    /// Print all problems as JSON
    #[arg(long)]
    json: bool,
}

/// Reports all problems at once.
pub(crate) async fn run_check(arguments: Arguments) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let found = JobProblems::find_problems(&job, &base).await;
    let file = arguments.job.job.display();
    if arguments.json {
        print_json(&json!({ "job": file.to_string(), "fine": found.is_fine(), "problems": found.to_json() }))?;
    }
    let JobProblems { problems, input } = found;
    let (errors, remarks): (Vec<&Problem>, Vec<&Problem>) = problems.iter().partition(|problem| problem.is_error());
    if !arguments.json {
        remarks.iter().try_for_each(|remark| print_result(&remark.to_string()))?;
    }
    let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match input {
        Some(error) if lines.is_empty() => return Err(error),
        Some(error) => lines.push(error.to_string()),
        None => {}
    }
    if lines.is_empty() {
        if arguments.data {
            let run =
                Run::new(job, &base, RunOptions::default()).map_err(|error| arguments.job.blame_job_file(error))?;
            for report in run.feasibility().await.map_err(|error| arguments.job.blame_job_file(error))? {
                if !arguments.json {
                    print_result(&report.to_string())?;
                }
                report.ensure_feasible()?;
            }
        }
        return if arguments.json { Ok(()) } else { print_result(&format!("{file}: fine")) };
    }
    let count = lines.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    Err(Error::job(format!("{file}: {count} {noun}\n{}", lines.join("\n"))))
}
