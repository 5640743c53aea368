//! `throng attack --series`: what do several releases reveal together?

use clap::Args;

use crate::audit::{ColumnExposure, SeriesAttack};
use crate::release::SeriesKnowledge;
use crate::terminal::summary::{number, summary_table};

/// What is known about several releases.
#[derive(Debug, Args)]
pub(super) struct SeriesArguments {
    /// Compare all releases of the sink and report what they reveal together
    #[arg(long, requires_all = ["public", "subject"], conflicts_with_all = ["run_id", "population"])]
    pub(super) series: bool,
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
    pub(super) fn knowledge(self, public: Vec<String>) -> SeriesKnowledge {
        SeriesKnowledge { releases: self.release, public, subject: self.subject, present: self.present_column }
    }
}

/// The figures for people.
pub(super) fn format_series(found: &SeriesAttack) -> String {
    let mut text =
        format!("{} releases, oldest first, to a reader who knows who was there for each:\n", found.releases.len());
    for (name, column) in &found.sensitive {
        text += &format!("\nwhat is left of `{name}`, release by release:\n{}\n", exposure_table(found, column));
        text += &values_left(column);
    }
    text
}

fn exposure_table(found: &SeriesAttack, column: &ColumnExposure) -> comfy_table::Table {
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
