//! `throng recommend`: recommends k, or a method, from repeated samples; or the keys of a series from simulated nights.

use clap::{ArgGroup, Args};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::recommend_series::{self, NightsArguments, Wish};
use super::sweep::{methods_help, parse_method};
use crate::arguments::{JobArguments, Limits};
use crate::error::{Error, Result};
use crate::explore::{Setting, Trials, ensure_job_runs};
use crate::measure::interval::{Interval, mean_interval};
use crate::policy::{Job, MethodName};
use crate::terminal::{eprint_line, print_result};

/// Recommend settings: the largest k within a loss, the best method for a k, or the keys of [series]
///
/// Settings are tried on several samples. The 95 % confidence interval of the mean
/// is printed, and its upper end decides. A sample is sparser than the whole table and loses more, so the answer
/// is conservative; a larger --sample makes it less so.
///
/// With --nights, people come and leave in a sample of the source, night after night, and each setting publishes
/// these nights in memory as `throng run` would. The one by which readers miss least is printed.
///
/// Example: throng recommend job.toml --max-loss 0.1
///          throng recommend job.toml --min-k 20
///          throng recommend nightly.toml --nights 14 --churn 0.01
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, group = ArgGroup::new("wish").required(true).args(["max_loss", "min_k", "nights"]))]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Acceptable mean loss (GCP): finds the largest k within it
    #[arg(long, value_name = "LOSS")]
    max_loss: Option<f64>,
    /// Required k: finds the method that loses least at it
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    min_k: Option<u32>,
    #[command(flatten)]
    nights: NightsArguments,
    /// Methods to choose among
    #[arg(long, long_help = methods_help("Methods to choose among"), value_delimiter = ',', default_value = "auto,mondrian", value_name = "NAME,...", value_parser = parse_method)]
    method: Vec<MethodName>,
    /// Rows of a sample
    #[arg(long, default_value_t = 5000, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(10..))]
    sample: u64,
    /// Number of samples
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100))]
    repeats: u64,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Class sizes that are tried, ascending.
const SIZES: [u32; 12] = [2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200];

/// A setting and what it loses on the samples.
#[derive(Debug, Clone, Serialize)]
struct Tried {
    method: String,
    k: u32,
    loss: Option<Interval>,
    suppressed: f64,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// The recommended setting, if any fits.
    recommended: Option<Tried>,
    tried: Vec<Tried>,
    samples: u64,
    rows_per_sample: u64,
    rows: u64,
}

/// Finds the settings.
pub(crate) async fn run_recommend(arguments: Arguments, quiet: bool) -> Result<()> {
    if let Some(loss) = arguments.max_loss
        && !(0.0..=1.0).contains(&loss)
    {
        return Err(Error::job(format!("--max-loss must be from 0 to 1, got {loss}")));
    }
    let (job, base) = arguments.job.read_job()?;
    ensure_job_runs(&job, &base).map_err(|error| arguments.job.blame_job_file(error))?;
    if arguments.nights.nights.is_some() {
        let Arguments { sample, json, .. } = arguments;
        let wish = Wish { sample, session: arguments.limits.session_options(), json, quiet, job: &arguments.job };
        let found = recommend_series::recommend(&arguments.nights, &job, &base, wish).await;
        return found.map_err(|error| arguments.job.blame_job_file(error));
    }
    let trials = Trials::open_source(&job, &base, &arguments.limits.session_options()).await?;
    let tried = run_trials(&trials, &arguments, &job, quiet).await?;
    let best = best_trial(&tried, arguments.max_loss).cloned();
    let whole = arguments.sample >= trials.rows();
    if arguments.json {
        let answer = Answer {
            recommended: best,
            tried,
            samples: arguments.repeats,
            rows_per_sample: arguments.sample.min(trials.rows()),
            rows: trials.rows(),
        };
        return print_result(
            &serde_json::to_string_pretty(&answer).map_err(|error| Error::internal(error.to_string()))?,
        );
    }
    print_result(&format!(
        "{}\n\n{} samples of about {} of {} rows\n{}",
        trial_table(&tried),
        arguments.repeats,
        arguments.sample.min(trials.rows()),
        trials.rows(),
        describe_verdict(best.as_ref(), &arguments, &job, whole)?
    ))
}

/// Tries every method at growing k on the same samples, until it loses too much.
async fn run_trials(trials: &Trials, arguments: &Arguments, job: &Job, quiet: bool) -> Result<Vec<Tried>> {
    let mut samples = Vec::new();
    for sample in 0..arguments.repeats {
        samples.push(
            trials.sample_rows(arguments.sample, job.method.seed.unwrap_or_default().wrapping_add(sample)).await?,
        );
    }
    let allowed = job.privacy.max_suppression;
    let mut tried: Vec<Tried> = Vec::new();
    for &method in &arguments.method {
        let sizes: Vec<u32> = arguments.min_k.map_or_else(|| SIZES.to_vec(), |k| vec![k]);
        for k in sizes {
            let setting = Setting::new(method, k);
            if !quiet {
                eprint_line(&format!("k = {k}, {}", setting.name()));
            }
            let (mut losses, mut suppressed, mut refused) = (Vec::new(), 0.0, 0);
            for rows in &samples {
                let trial =
                    trials.run_trial(rows, setting).await.map_err(|error| arguments.job.blame_job_file(error))?;
                let share = trial.suppressed as f64 / trial.rows.max(1) as f64;
                suppressed += share / samples.len() as f64;
                match trial.scores.and_then(|scores| scores.gcp).filter(|_| share <= allowed) {
                    Some(loss) => losses.push(loss),
                    None => refused += 1,
                }
            }
            let loss = if refused == 0 { mean_interval(&losses) } else { None };
            let over = loss.as_ref().is_none_or(|loss| arguments.max_loss.is_some_and(|most| loss.upper > most));
            tried.push(Tried { method: setting.name(), k, loss, suppressed, refused });
            // More rows in a class never lose less.
            if over {
                break;
            }
        }
    }
    Ok(tried)
}

/// The largest k within the loss, or the least loss at one k; of equals, the one that loses less.
fn best_trial(tried: &[Tried], most: Option<f64>) -> Option<&Tried> {
    let upper = |tried: &Tried| tried.loss.as_ref().map_or(f64::INFINITY, |loss| loss.upper);
    let fitting = tried.iter().filter(|tried| tried.loss.is_some() && most.is_none_or(|most| upper(tried) <= most));
    fitting.max_by(|a, b| a.k.cmp(&b.k).then(upper(b).total_cmp(&upper(a))))
}

fn describe_verdict(best: Option<&Tried>, arguments: &Arguments, job: &Job, whole: bool) -> Result<String> {
    Ok(match (best, arguments.max_loss) {
        (Some(best), most) => {
            let loss = best
                .loss
                .as_ref()
                .map_or(String::new(), |loss| format!("{:.4} ± {:.4}", loss.mean, loss.upper - loss.mean));
            let why = match most {
                Some(most) => format!("the largest k that loses no more than {most}"),
                None => "the method that loses least".to_owned(),
            };
            let command = recommended_command(best, arguments, job)?;
            format!("Use k = {} with {}: {why} (GCP {loss})\n  {command}", best.k, best.method)
        }
        (None, Some(most)) if whole => {
            format!("No k loses {most} or less; allow more loss, or drop a quasi-identifier")
        }
        (None, Some(most)) => format!(
            "No k loses {most} or less on these samples; allow more loss, drop a quasi-identifier, or take a larger --sample"
        ),
        (None, None) if whole => "No method meets the rules; relax a rule, or drop a quasi-identifier".to_owned(),
        (None, None) => {
            "No method meets the rules on these samples; relax a rule, or take a larger --sample".to_owned()
        }
    })
}

/// The command that runs the job with the recommended settings on top of those of this call.
fn recommended_command(best: &Tried, arguments: &Arguments, job: &Job) -> Result<String> {
    let mut command = format!("throng run {}", quote_for_shell(&arguments.job.job.display().to_string()));
    let mut set = |setting: &str| command += &format!(" --set {}", quote_for_shell(setting));
    arguments.job.settings.iter().for_each(|(key, value)| set(&format!("{key}={value}")));
    set(&format!("privacy.k={}", best.k));
    let name = parse_method(&best.method).map_err(Error::internal)?;
    if name != job.method.name {
        let table = toml::Value::try_from(Setting::new(name, best.k).method_of(job));
        set(&format!("method={}", table.map_err(|error| Error::internal(error.to_string()))?));
    }
    Ok(command)
}

/// Quotes a word for a shell.
pub(super) fn quote_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn trial_table(tried: &[Tried]) -> Table {
    let mut table = crate::terminal::new_table(&["method", "k", "GCP", "95 % interval", "suppressed"]);
    for at in 1..5 {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in tried {
        let (mean, interval) = match &row.loss {
            Some(loss) => (format!("{:.4}", loss.mean), format!("{:.4} to {:.4}", loss.lower, loss.upper)),
            None => ("refused".into(), format!("{} samples cannot meet the rules", row.refused)),
        };
        table.add_row([
            row.method.clone(),
            row.k.to_string(),
            mean,
            interval,
            format!("{:.2} %", row.suppressed * 100.0),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;

    fn tried(method: &str, k: u32, losses: &[f64]) -> Tried {
        Tried { method: method.into(), k, loss: mean_interval(losses), suppressed: 0.0, refused: 0 }
    }

    #[test]
    fn the_upper_end_decides() {
        let rows = [
            tried("auto", 5, &[0.04, 0.041]),
            tried("auto", 10, &[0.08, 0.081]),
            tried("auto", 15, &[0.05, 0.14]),
            tried("mondrian", 5, &[0.08, 0.081]),
        ];
        assert_eq!(best_trial(&rows, Some(0.1)).map(|best| (best.k, best.method.as_str())), Some((10, "auto")));
        assert!(best_trial(&rows, Some(0.01)).is_none());
        let at_five = [rows[0].clone(), rows[3].clone()];
        assert_eq!(best_trial(&at_five, None).map(|best| best.method.as_str()), Some("auto"));
    }

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(more: &[&str]) -> Arguments {
        Cli::parse_from([&["recommend", "my job.toml", "--min-k", "5"], more].concat()).arguments
    }

    const JOB: &str = "version = 1\nsource.url = \"in\"\nsink.url = \"out\"\nprivacy.k = 2\n\
                       method = { seed = 7, auto.effort = \"fast\" }\n[columns]\nage.role = \"quasi\"\n";

    #[test]
    fn the_command_leaves_options_to_their_method() {
        let path = Path::new("job.toml");
        let job = Job::parse(JOB, path).unwrap();
        let recommended =
            |name: &str, more: &[&str]| recommended_command(&tried(name, 20, &[0.1]), &arguments(more), &job).unwrap();
        assert_eq!(recommended("auto", &[]), "throng run 'my job.toml' --set privacy.k=20");
        let other = recommended("mondrian", &["--set", "columns.age.priority=2"]);
        let before = "throng run 'my job.toml' --set columns.age.priority=2 --set privacy.k=20 --set 'method=";
        let table =
            other.strip_prefix(before).and_then(|rest| rest.strip_suffix('\'')).unwrap_or_else(|| panic!("{other}"));
        let set = Job::parse_with(JOB, path, &[("method", table)]).unwrap();
        assert_eq!(set.method, Setting::new(parse_method("mondrian").unwrap(), 20).method_of(&job));
        assert_eq!((set.method.seed, set.method.options().iter().count()), (Some(7), 0));
    }

    #[test]
    fn the_whole_table_cannot_be_a_larger_sample() {
        let job = Job::parse(JOB, Path::new("job.toml")).unwrap();
        let recommended = |whole| describe_verdict(None, &arguments(&[]), &job, whole).unwrap();
        assert!(recommended(false).contains("--sample") && !recommended(true).contains("sample"));
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quote_for_shell("privacy.k=20"), "privacy.k=20");
        assert_eq!(quote_for_shell("it's here"), "'it'\\''s here'");
        assert_eq!(quote_for_shell(""), "''");
    }
}
