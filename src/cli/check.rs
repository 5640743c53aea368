//! `throng check`: all problems of a job, without reading data; with `--data` also what the sensitive
//! columns allow.

use clap::Args;
use serde_json::{Value, json};

use crate::arguments::JobArguments;
use crate::engine::SessionOptions;
use crate::error::{Error, Problem, Result};
use crate::policy::{check, check_schema};
use crate::release::{Run, RunOptions};
use crate::source::Source;
use crate::storage::Stores;
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
    let file = arguments.job.job.display();
    if arguments.json {
        let listed = problems.iter().map(|problem| {
            let severity = if problem.is_error() { "error" } else { "remark" };
            json!({ "severity": severity, "key": problem.key, "message": problem.message, "help": problem.help })
        });
        let unusable =
            input.iter().map(|error| json!({ "severity": "error", "key": "source", "message": error.to_string() }));
        let fine = input.is_none() && problems.iter().all(|problem| !problem.is_error());
        let listed: Vec<Value> = listed.chain(unusable).collect();
        print_json(&json!({ "job": file.to_string(), "fine": fine, "problems": listed }))?;
    }
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
