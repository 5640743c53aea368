//! `throng attack`: what could an adversary learn from a release?

use clap::Args;
use comfy_table::Table;

use crate::arguments::{JobArguments, Limits};
use crate::attack::confidence::STEPS;
use crate::attack::disclosure::LEVELS;
use crate::audit::{Attack, ColumnExposure, Population, SeriesAttack};
use crate::error::Result;
use crate::release::{Run, RunOptions, SeriesKnowledge};
use crate::terminal::summary::{format_estimates, number, summary_table};
use crate::terminal::{print_json, print_result};

/// Attack a release: who can be found in it, who can be ruled out, and what can be inferred about them
///
/// With a public table (the job's privacy.presence, or --public), everybody in it is matched with the published
/// classes. Prints how many people there are at each confidence level; never who.
///
/// With --series, all releases of the job's sink, or those that --release names, are compared: how many sensitive
/// values remain possible for a person if it is known which releases they are in.
///
/// Example: throng attack pipelines/census.toml --public voters.parquet
///          throng attack nightly.toml --series --public monday.parquet --public tuesday.parquet --subject person_id
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
    /// Public table of people: Parquet with the quasi-identifiers of the source. Defaults to that of the job. With --series,
    /// give it once for all releases, or once for each
    #[arg(long, value_name = "URL")]
    public: Vec<String>,
    #[command(flatten)]
    series: SeriesArguments,
    /// People in the whole population, to estimate how many are unique in it without a public table
    #[arg(long, value_name = "N")]
    population: Option<u64>,
    /// Release to attack. Defaults to the newest
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Attacks a release.
pub(crate) async fn run_attack(arguments: Arguments) -> Result<()> {
    let (job, base) = arguments.job.read_job()?;
    let options = RunOptions { session: arguments.limits.session_options(), ..RunOptions::default() };
    let run = Run::new(job, &base, options).map_err(|error| arguments.job.blame_job_file(error))?;
    if arguments.series.series {
        let found = run.attack_series(&arguments.series.knowledge(arguments.public)).await;
        let found = found.map_err(|error| arguments.job.blame_job_file(error))?;
        return if arguments.json { print_json(&found) } else { print_result(&format_series(&found)) };
    }
    let public = match arguments.public.as_slice() {
        [] => None,
        [public] => Some(public.as_str()),
        _ => super::usage_error("--public can be repeated only with --series"),
    };
    let found = run.attack(arguments.run_id.as_deref(), public, arguments.population).await;
    let found = found.map_err(|error| arguments.job.blame_job_file(error))?;
    if arguments.json {
        return print_json(&found);
    }
    print_result(&format_attack(&found))
}

fn format_attack(found: &Attack) -> String {
    let what = found.form.map_or("classes".to_owned(), |form| format!("groups of the form `{}`", form.as_str()));
    let mut text = format!("run {}: {} rows in {} {what}\n\n", found.run, number(found.rows), number(found.classes));
    if let Some(membership) = &found.membership {
        let tally = &membership.tally;
        let mut levels = summary_table(&["chance to be in the source", "public people", "share"]);
        let mut row = |level: String, people: u64| {
            let share = people as f64 * 100.0 / tally.people.max(1) as f64;
            levels.add_row([level, number(people), format!("{share:.2} %")]);
        };
        row("certainly not".into(), tally.absent);
        for (step, &people) in tally.steps.iter().enumerate().filter(|(_, people)| **people > 0) {
            row(format!("{} to {} %", step * 100 / STEPS, (step + 1) * 100 / STEPS), people);
        }
        row("certainly".into(), tally.present);
        text += &format!("{levels}\n");
        text += &format!(
            "{:.2} % of the members are known to be in, {:.2} % of the others known to be out\n",
            membership.reidentified * 100.0,
            membership.ruled_out * 100.0
        );
        if tally.bounded > 0 {
            text += &format!(
                "{} people fit several classes, or are of {} groups too large to be counted; they are listed at the upper \
                 bound of their chance\n",
                number(tally.bounded),
                number(tally.bounded_buckets)
            );
        }
        text.push('\n');
    }
    text += &format!("{}\n", risk_table(found));
    if let Some(inferred) = &found.inference {
        text += &format!(
            "\nto a reader who knows the dependencies: {} sets of rows fit somebody, the smallest of {} rows; {} rows fit \
             people with fewer than k\n",
            number(inferred.classes),
            number(inferred.smallest),
            number(inferred.exposed_rows)
        );
        if let Some(message) = inferred.undecided() {
            text += &format!("{message}\n");
        }
    }
    for (name, disclosure) in &found.sensitive {
        let mut levels = summary_table(&["sureness", "people by value", "people by range"]);
        for (at, level) in LEVELS.iter().enumerate() {
            let name = format!("{:.0} % or more", level * 100.0);
            levels.add_row([name, number(disclosure.value[at]), number(disclosure.range[at])]);
        }
        text += &format!("\nhow surely `{name}` is known from the class alone:\n{levels}\n");
    }
    if let Some(Population { people, source, release }) = &found.population {
        text += &format!("\n{}", format_estimates(*people, Some(source), Some(release)));
    }
    text
}

fn risk_table(found: &Attack) -> Table {
    let risks = &found.linkage;
    let mut rows = summary_table(&["linkage", "value", "meaning"]);
    let mut row = |name: &str, value: Option<String>, meaning: &str| {
        if let Some(value) = value {
            rows.add_row([name, &value, meaning]);
        }
    };
    let share = |share: f64| format!("{share:.4}");
    row("prosecutor", Some(share(risks.prosecutor)), "most exposed person, known to be in");
    row("prosecutor, mean", Some(share(risks.prosecutor_mean)), "the same over all people");
    row("journalist", risks.journalist.map(share), "most exposed person, found by the public table");
    row("marketer", risks.marketer.map(share), "share of correct links to the public table");
    row("k-map", risks.k_map.map(number), "fewest public people who fit a class");
    rows
}

/// What is known about several releases.
#[derive(Debug, Args)]
struct SeriesArguments {
    /// Compare all releases of the sink and report what they reveal together
    #[arg(long, requires_all = ["public", "subject"], conflicts_with_all = ["run_id", "population"])]
    series: bool,
    /// Folder of Parquet files that is a release of this or another program; repeat it for each, oldest first
    #[arg(long, value_name = "URL", requires = "series")]
    release: Vec<String>,
    /// Column of the public table that identifies subjects; repeat it for a composite key
    #[arg(long, value_name = "COLUMN", requires = "series")]
    subject: Vec<String>,
    /// Boolean column of the public table that marks who was there; repeat it for each release, oldest first
    #[arg(long, value_name = "COLUMN", requires = "series")]
    present_column: Vec<String>,
}

impl SeriesArguments {
    /// What the adversary knows.
    fn knowledge(self, public: Vec<String>) -> SeriesKnowledge {
        SeriesKnowledge { releases: self.release, public, subject: self.subject, present: self.present_column }
    }
}

/// The figures for people.
fn format_series(found: &SeriesAttack) -> String {
    let mut text =
        format!("{} releases, oldest first, to a reader who knows who was there for each:\n", found.releases.len());
    for (name, column) in &found.sensitive {
        text += &format!("\nwhat is left of `{name}`, release by release:\n{}\n", exposure_table(found, column));
        text += &values_left(column);
    }
    text
}

fn exposure_table(found: &SeriesAttack, column: &ColumnExposure) -> Table {
    let (below_least, below_k) =
        (format!("fewer than {}", column.least_values), format!("fewer than {} rows", found.k));
    let mut rows = summary_table(&[
        "release",
        "rows",
        "people so far",
        "one value",
        &below_least,
        &below_k,
        "found by subtraction",
    ]);
    for (release, known) in found.releases.iter().zip(&column.releases) {
        let share = |share: f64| format!("{:.2} %", share * 100.0);
        rows.add_row([
            release.name.clone(),
            number(release.rows),
            number(known.exposure.people),
            share(known.one_value),
            share(known.below_least),
            share(known.below_k),
            number(known.exposure.subtracted),
        ]);
    }
    rows
}

/// Values that are listed one by one.
const LISTED: u64 = 5;

/// How many people are left with how many values after the last release.
fn values_left(column: &ColumnExposure) -> String {
    let Some(last) = column.releases.last() else { return String::new() };
    let mut rows = summary_table(&["values left at the end", "people"]);
    for values in 1..=LISTED {
        rows.add_row([number(values), number(last.exposure.by_values.get(&values).copied().unwrap_or(0))]);
    }
    let more: u64 = last.exposure.by_values.range(LISTED + 1..).map(|(_, people)| people).sum();
    rows.add_row([format!("{} or more", LISTED + 1), number(more)]);
    rows.add_row(["never in a class".to_owned(), number(last.exposure.never_covered)]);
    format!("{rows}\n")
}
