//! `throng bound`: a lower bound on the loss of any release of a table, and how near a job comes to it.

use std::path::Path;

use clap::Args;
use comfy_table::CellAlignment;
use serde::Serialize;

use super::sweep::ensure_job_runs;
use crate::arguments::{JobArguments, Limits};
use crate::engine::SessionOptions;
use crate::error::{Error, Result};
use crate::explore::{LossBound, Setting, Trials};
use crate::policy::Job;
use crate::terminal::{eprint_line, print_result};

/// Maximum number of rows that a bound is proven for by default: with more, the search takes long.
const MAX_ROWS: u64 = 200_000;

/// Rounds of search by default.
const ROUNDS: usize = 12;

/// Prove a lower bound on the loss of any release, and report how near the job comes to it; publishes nothing
///
/// The bound is a certificate: whatever method, no grouping of these rows into classes of at least k loses less (GCP, as in
/// the manifest). More rounds of search raise it. Rules beyond k only make losses larger, so it holds under them too.
/// It depends on every row of the source, including those that would be suppressed: it is for the owner of the data, not
/// for readers of a release.
///
/// Example: throng bound pipelines/adult.toml --k 10
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Values of k to prove a bound for. Defaults to that of the job
    #[arg(long, value_delimiter = ',', value_name = "K,...", value_parser = clap::value_parser!(u32).range(2..))]
    k: Vec<u32>,
    /// Rounds of search
    #[arg(long, value_name = "ROUNDS", default_value_t = ROUNDS)]
    rounds: usize,
    /// Prove it for about this many rows, chosen at random, as if they were the table
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(2..))]
    sample: Option<u64>,
    /// Print the bounds as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// A bound beside what the job loses on the same rows.
#[derive(Debug, Serialize)]
struct Compared {
    #[serde(flatten)]
    bound: LossBound,
    /// The job's method.
    method: String,
    /// Its loss; `None` if its rules cannot be met.
    lost: Option<f64>,
    /// How many times the bound that is.
    times: Option<f64>,
}

/// Proves a bound for every k.
pub(crate) async fn run_bound(arguments: Arguments, quiet: bool) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let blame = |error| arguments.job.blame_job_file(error);
    ensure_job_runs(&job, &base).map_err(blame)?;
    let trials = Trials::open_source(&job, &base, &arguments.limits.session_options()).await.map_err(blame)?;
    if arguments.sample.is_none() {
        refuse_many_rows(trials.rows())?;
    }
    let rows = match arguments.sample {
        Some(sample) => trials.sample_rows(sample, job.method.seed.unwrap_or_default()).await,
        None => trials.sample_rows(trials.rows(), 0).await,
    };
    let rows = rows.map_err(blame)?;
    let ks = if arguments.k.is_empty() { vec![job.privacy.k] } else { arguments.k.clone() };
    let mut found = Vec::new();
    for k in ks {
        if !quiet {
            eprint_line(&format!("k = {k}"));
        }
        let setting = Setting::new(job.method.name, k);
        let bound = trials.compute_bound(&rows, k, arguments.rounds).await.map_err(blame)?;
        let trial = trials.run_trial(&rows, setting).await.map_err(blame)?;
        let lost = trial.scores.and_then(|scores| scores.gcp);
        let times = lost.and_then(|lost| bound.loss_ratio(lost));
        found.push(Compared { bound, method: trial.method, lost, times });
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| Error::internal(error.to_string()))?;
        return print_result(&text);
    }
    print_result(&bound_table(&found, arguments.sample.is_some_and(|sample| sample < trials.rows())))
}

/// Proves the bound of a job for all rows of its source.
pub(super) async fn prove_job_bound(job: &Job, base: &Path, session: &SessionOptions) -> Result<LossBound> {
    ensure_job_runs(job, base)?;
    let trials = Trials::open_source(job, base, session).await?;
    refuse_many_rows(trials.rows())?;
    let rows = trials.sample_rows(trials.rows(), 0).await?;
    trials.compute_bound(&rows, job.privacy.k, ROUNDS).await
}

fn refuse_many_rows(rows: u64) -> Result<()> {
    if rows <= MAX_ROWS {
        return Ok(());
    }
    Err(Error::job(format!(
        "the source has {rows} rows, and a bound for more than {MAX_ROWS} takes very long; use `throng bound --sample` to prove \
         one for some of them, or `--sample {rows}` if you can wait"
    )))
}

fn bound_table(found: &[Compared], is_sample: bool) -> String {
    let mut table =
        crate::terminal::new_table(&["rows", "k", "no release loses less than", "method", "loses", "within"]);
    for Compared { bound, method, lost, times } in found {
        let number = |number: &Option<f64>| number.map_or_else(|| "-".into(), |number| format!("{number:.4}"));
        table.add_row([
            bound.rows.to_string(),
            bound.k.to_string(),
            format!("{:.4}", bound.gcp),
            method.clone(),
            number(lost),
            times.map_or_else(|| "-".into(), |times| format!("{times:.3} x")),
        ]);
    }
    for column in [0, 1, 2, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.to_string();
    if is_sample {
        text.push_str(
            "\n\nProven for these rows alone. A larger table of the same people loses less at the same k, and its bound is lower \
             too.",
        );
    }
    text
}
