//! `throng sweep`: compares settings without publishing anything.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table};

use crate::arguments::{JobArguments, Limits};
use crate::error::{Error, Result, unwritable_file};
use crate::explore::{Setting, Trial, Trials, ensure_job_runs};
use crate::grouping::entry::Entry;
use crate::measure::wilcoxon::signed_rank;
use crate::methods::METHODS;
use crate::policy::MethodName;
use crate::release::Scores;
use crate::terminal::{eprint_line, print_result};

/// Try a job under several k and methods, and compare what they lose; publishes nothing
///
/// For every two methods, a signed-rank test over all k shows whether they differ.
///
/// Example: throng sweep pipelines/adult.toml --k 5,10,25 --method auto,mondrian --sample 10000 --output sweep.json
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Smallest classes to try
    #[arg(long, value_delimiter = ',', default_value = "2,5,10,25,50", value_name = "K,...", value_parser = clap::value_parser!(u32).range(2..))]
    k: Vec<u32>,
    /// Methods to try; defaults to the job's
    #[arg(long, long_help = methods_help("Methods to try; defaults to the job's"), value_delimiter = ',', value_name = "NAME,...", value_parser = parse_method)]
    method: Vec<MethodName>,
    /// Weights of utility to try with `toc`
    #[arg(long, value_delimiter = ',', value_name = "W,...", value_parser = parse_weight)]
    w_utility: Vec<f64>,
    /// Set l of every l-diversity rule to k
    #[arg(long)]
    l_is_k: bool,
    /// Try on about this many rows. Defaults to all of them
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Print the trials as JSON
    #[arg(long)]
    json: bool,
    /// Write the trials to a file, .json or .csv; `throng report --sweep` shows the former
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
}

/// The name of a method in job files.
pub(super) fn parse_method(text: &str) -> Result<MethodName, String> {
    let name = serde_json::Value::String(text.to_owned());
    serde_json::from_value(name).map_err(|error| error.to_string())
}

/// What a flag that takes methods is for, and which there are.
pub(super) fn methods_help(about: &str) -> String {
    let line = |entry: &&Entry| format!("  {}: {}", entry.name, entry.about);
    let (research, usual): (Vec<&Entry>, Vec<&Entry>) = METHODS.iter().partition(|entry| entry.research);
    let usual: Vec<String> = usual.iter().map(line).collect();
    let research: Vec<&str> = research.iter().map(|entry| entry.name).collect();
    format!("{about}\n\n{}\n  for research: {}", usual.join("\n"), research.join(", "))
}

fn parse_weight(text: &str) -> Result<f64, String> {
    let weight: f64 = text.parse().map_err(|_| "must be a number from 0 to 1")?;
    if (0.0..=1.0).contains(&weight) { Ok(weight) } else { Err("must be a number from 0 to 1".into()) }
}

/// Tries every setting.
pub(crate) async fn run_sweep(arguments: Arguments, quiet: bool) -> Result<()> {
    let form = arguments.output.as_deref().map(output_form).transpose()?;
    let (job, base) = arguments.job.read_job()?;
    let blame = |error| arguments.job.blame_job_file(error);
    ensure_job_runs(&job, &base).map_err(blame)?;
    let methods = if arguments.method.is_empty() { vec![job.method.name] } else { arguments.method.clone() };
    let trials = Trials::open_source(&job, &base, &arguments.limits.session_options()).await?;
    let rows = match arguments.sample {
        Some(sample) => trials.sample_rows(sample, job.method.seed.unwrap_or_default()).await?,
        None => trials.all_rows(),
    };
    let mut found = Vec::new();
    for mut setting in Setting::list_settings(&methods, &arguments.k, &arguments.w_utility) {
        setting.l_is_k = arguments.l_is_k;
        if !quiet {
            eprint_line(&format!("k = {}, {}", setting.k, setting.name()));
        }
        found.push(trials.run_trial(&rows, setting).await.map_err(blame)?);
    }
    if let (Some(path), Some(form)) = (&arguments.output, form) {
        let content = form(&found)?;
        std::fs::write(path, content).map_err(|error| unwritable_file(path, &error))?;
    }
    if arguments.json {
        return print_result(&String::from_utf8_lossy(&to_json(&found)?));
    }
    if quiet {
        return Ok(());
    }
    print_result(&format!("{}\n\n{}", trial_table(&found), compare_methods(&found)))
}

type Form = fn(&[Trial]) -> Result<Vec<u8>>;

fn output_form(path: &Path) -> Result<Form> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Ok(to_json),
        Some("csv") => Ok(to_csv),
        _ => Err(Error::job(format!("--output {}: must end in .json or .csv", path.display()))),
    }
}

fn to_json(trials: &[Trial]) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(trials).map_err(|error| Error::internal(error.to_string()))
}

fn to_csv(trials: &[Trial]) -> Result<Vec<u8>> {
    let failed = |error: csv::Error| Error::internal(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["k", "method", "rows", "suppressed", "classes"];
    header.extend(COLUMNS.iter().map(|(name, _)| *name));
    header.extend(["seconds", "memory", "refused"]);
    writer.write_record(header).map_err(failed)?;
    for trial in trials {
        let counts = [trial.rows, trial.suppressed, trial.classes];
        let mut record = vec![trial.k.to_string(), trial.method.clone()];
        record.extend(counts.map(|count| count.to_string()));
        for (_, score) in COLUMNS {
            let score = trial.scores.as_ref().and_then(score);
            record.push(score.map(|score| score.to_string()).unwrap_or_default());
        }
        record.extend([trial.seconds.to_string(), trial.memory.map(|bytes| bytes.to_string()).unwrap_or_default()]);
        record.push(trial.refused.clone().unwrap_or_default());
        writer.write_record(record).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| Error::internal(error.to_string()))
}

/// A column of scores: its name, and the score where there is one.
type Column = (&'static str, fn(&Scores) -> Option<f64>);

/// The scores of a CSV file.
const COLUMNS: [Column; 29] = [
    ("gcp", |scores| scores.gcp),
    ("um", |scores| scores.um),
    ("wgu", |scores| scores.wgu),
    ("mpm", |scores| scores.mpm),
    ("wgp", |scores| scores.wgp),
    ("dm", |scores| Some(scores.dm)),
    ("c_avg", |scores| scores.c_avg),
    ("risk_max", |scores| scores.risk_max),
    ("risk_mean", |scores| scores.risk_mean),
    ("ncp", |scores| scores.ncp),
    ("iloss", |scores| scores.iloss),
    ("distortion", |scores| scores.distortion.map(|levels| levels as f64)),
    ("genc", |scores| scores.genc),
    ("precision", |scores| scores.precision),
    ("rd_of_a_row", |scores| scores.rd_of_a_row),
    ("unprotected", |scores| scores.unprotected),
    ("cm", |scores| scores.cm),
    ("kl", |scores| scores.kl),
    ("kl_by_range", |scores| scores.kl_by_range),
    ("joint_kl", |scores| scores.joint_kl),
    ("reconstruction_mean", |scores| scores.reconstruction_mean),
    ("reconstruction_max", |scores| scores.reconstruction_max),
    ("query_error", |scores| scores.queries.as_ref().map(|queries| queries.mean)),
    ("dependency_loss", |scores| scores.dependency_loss),
    ("dependency_loss_bound", |scores| scores.dependency_loss_bound),
    ("weighted_distortion", |scores| scores.weighted_distortion),
    ("placed_by_method", |scores| scores.placed_by_method.map(|rows| rows as f64)),
    ("placed_as_left_over", |scores| scores.placed_as_left_over.map(|rows| rows as f64)),
    ("placed_by_repair", |scores| scores.placed_by_repair.map(|rows| rows as f64)),
];

/// The scores of the printed table.
const SHOWN: [Column; 9] = [
    ("GCP", |scores| scores.gcp),
    ("UM", |scores| scores.um),
    ("WGU", |scores| scores.wgu),
    ("MPM", |scores| scores.mpm),
    ("WGP", |scores| scores.wgp),
    ("DM", |scores| Some(scores.dm)),
    ("CM", |scores| scores.cm),
    ("query error", |scores| scores.queries.as_ref().map(|queries| queries.mean)),
    ("dependency loss", |scores| scores.dependency_loss),
];

fn trial_table(trials: &[Trial]) -> Table {
    // A score that no trial has measured gets no column.
    let measured = |(_, score): &&Column| trials.iter().any(|trial| trial.scores.as_ref().and_then(score).is_some());
    let shown: Vec<&Column> = SHOWN.iter().filter(measured).collect();
    let names = shown.iter().map(|(name, _)| *name);
    let header: Vec<&str> = ["method", "k"].into_iter().chain(names).chain(["suppressed", "time", "memory"]).collect();
    let mut table = crate::terminal::new_table(&header);
    for at in 1..header.len() {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for trial in trials {
        let mut cells = vec![trial.method.clone(), trial.k.to_string()];
        let Some(scores) = &trial.scores else {
            cells.extend(["refused".into(), trial.refused.clone().unwrap_or_default()]);
            table.add_row(cells);
            continue;
        };
        cells.extend(shown.iter().map(|(_, score)| score(scores).map(format_score).unwrap_or_default()));
        cells.extend([
            format!("{:.2} %", trial.suppressed as f64 * 100.0 / trial.rows.max(1) as f64),
            format!("{:.2} s", trial.seconds),
            trial.memory.map(|bytes| bytesize::ByteSize(bytes).to_string()).unwrap_or_default(),
        ]);
        table.add_row(cells);
    }
    table
}

/// Shares with four digits, sums without.
fn format_score(score: f64) -> String {
    if score.abs() < 100.0 { format!("{score:.4}") } else { format!("{score:.0}") }
}

/// Every two methods over the k that both were tried at.
fn compare_methods(trials: &[Trial]) -> String {
    let mut methods: Vec<&str> = trials.iter().map(|trial| trial.method.as_str()).collect();
    methods.dedup();
    let loss = |method: &str, k: u32| {
        let of = |trial: &&Trial| trial.method == method && trial.k == k;
        trials.iter().find(of).and_then(|trial| trial.scores.as_ref()?.gcp)
    };
    let mut ks: Vec<u32> = trials.iter().map(|trial| trial.k).collect();
    ks.sort_unstable();
    ks.dedup();
    let mut lines = Vec::new();
    for (at, first) in methods.iter().enumerate() {
        for second in &methods[at + 1..] {
            let pairs: Vec<(f64, f64)> = ks.iter().filter_map(|&k| Some((loss(first, k)?, loss(second, k)?))).collect();
            lines.push(match signed_rank(&pairs) {
                None => format!("{first} and {second} lose the same"),
                Some(test) => {
                    let (less, more) = if test.w_plus < test.w_minus { (first, second) } else { (second, first) };
                    let wins = pairs.iter().filter(|(a, b)| if less == first { a < b } else { b < a }).count();
                    format!(
                        "{less} loses less than {more} at {wins} of {} k; Wilcoxon signed-rank p = {:.4}",
                        pairs.len(),
                        test.p
                    )
                }
            });
        }
    }
    lines.join("\n")
}
