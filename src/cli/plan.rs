//! `throng plan`: what a run would do.

use clap::Args;

use crate::arguments::{JobArguments, Limits};
use crate::error::Result;
use crate::release::{self, Run, RunOptions};
use crate::terminal::print_result;

/// Show the plan of a job; reads the schema of the source, but no data
///
/// Example: throng plan pipelines/census.toml --partitions 8
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: crate::arguments::ClusterArguments,
    #[command(flatten)]
    limits: Limits,
}

/// Prints the plan.
pub(crate) async fn run_plan(arguments: Arguments) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let options = RunOptions {
        session: arguments.limits.session_options(),
        #[cfg(feature = "cluster")]
        engine: arguments.cluster.engine(),
        ..RunOptions::default()
    };
    let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
    print_result(&release::explain_plan(&run).await.map_err(|error| arguments.job.blame_job_file(error))?)
}
