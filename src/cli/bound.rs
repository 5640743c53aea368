//! `throng bound`: a lower bound on the loss of any release of a table, and how near a job comes to it.

use clap::Args;
use comfy_table::CellAlignment;

use crate::arguments::{JobArguments, Limits};
use crate::error::{Error, Result};
use crate::explore::{BoundRequest, ComparedBound, LossBound};
use crate::terminal::{eprint_line, print_result};

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
    #[arg(long, value_name = "ROUNDS", default_value_t = LossBound::ROUNDS)]
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

/// Proves a bound for every k.
pub(crate) async fn run_bound(arguments: Arguments, quiet: bool) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let blame = |error| arguments.job.blame_job_file(error);
    let request = BoundRequest { ks: arguments.k.clone(), rounds: Some(arguments.rounds), sample: arguments.sample };
    let begin = |k: u32| {
        if !quiet {
            eprint_line(&format!("k = {k}"));
        }
    };
    let proven = request.prove_bounds(&job, &base, &arguments.limits.session_options(), &begin).await;
    let (found, rows) = proven.map_err(blame)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| Error::internal(error.to_string()))?;
        return print_result(&text);
    }
    print_result(&bound_table(&found, arguments.sample.is_some_and(|sample| sample < rows)))
}

fn bound_table(found: &[ComparedBound], is_sample: bool) -> String {
    let mut table =
        crate::terminal::new_table(&["rows", "k", "no release loses less than", "method", "loses", "within"]);
    for ComparedBound { bound, method, lost, times } in found {
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
