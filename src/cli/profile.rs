//! `throng profile`: what an unknown dataset looks like, and a job for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use comfy_table::CellAlignment;
use datafusion::arrow::datatypes::DataType;
use datafusion::physical_plan::ExecutionPlan;

use crate::arguments::Limits;
use crate::error::{Error, Result};
use crate::explore::profile::{Draft, Profile, Scan, profile_watched};
use crate::policy::Role;
use crate::source::Source;
use crate::storage::Stores;
use crate::telemetry::progress::Progress;
use crate::terminal::new_table;
use crate::terminal::summary::{format_estimates, number};
use crate::terminal::{eprint_line, print_result};

/// Profile a dataset: a guess of the role of every column, and how exposed people are as it stands
///
/// With --write, a complete job file is drafted, with hierarchies as files that can be edited. Those files hold values
/// of the data, as a hierarchy must; all other output holds only counts and guesses.
///
/// Example: throng profile data/ --write job.toml
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Parquet: a file, a folder, a pattern or an object-store prefix
    data: String,
    /// Print the profile as JSON
    #[arg(long)]
    json: bool,
    /// Show smallest, largest and commonest values, which puts raw data on your screen
    #[arg(long)]
    show_values: bool,
    /// People in the whole population, to estimate how many are unique in it
    #[arg(long, value_name = "N")]
    population: Option<u64>,
    /// Public table with the quasi-identifiers under the same names, to count who fits
    #[arg(long, value_name = "URL")]
    public: Option<String>,
    /// Draft a job file, and hierarchies in a folder beside it
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Overwrite the job file and its hierarchies
    #[arg(long, requires = "write")]
    force: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Profiles a dataset.
pub(crate) async fn run_profile(arguments: Arguments, quiet: bool) -> Result<()> {
    if let Some(path) = arguments.write.as_deref().filter(|_| !arguments.force) {
        // Fail before the long scan of the data.
        Draft::ensure_absent(path)?;
    }
    let (context, _spill) = arguments.limits.session_options().open()?;
    let source = Source::at_url(&Stores::default(), Path::new("."), &arguments.data).await?;
    let (input, _) = source.scan(&context).await?;
    let progress = Progress::new(quiet);
    let watch = |scan: Scan, plan: &Arc<dyn ExecutionPlan>, rows: u64| match scan {
        Scan::Columns => progress.begin_scan("columns + exposure", plan, rows, 0.0..0.9),
        Scan::Exposure => progress.begin_scan("exposure", plan, rows, 0.9..1.0),
    };
    let found = profile_watched(&context, input.clone(), &watch).await;
    progress.end_bars();
    let mut found = found?;
    if arguments.population.is_some() || arguments.public.is_some() {
        let public = match &arguments.public {
            Some(url) => Some(Source::at_url(&Stores::default(), Path::new("."), url).await?.scan(&context).await?.0),
            None => None,
        };
        found.look_at_population(&context, input, arguments.population, public).await?;
    }
    if arguments.show_values {
        found.show_values();
    }
    if arguments.json {
        print_result(&serde_json::to_string_pretty(&found).map_err(|error| Error::internal(error.to_string()))?)?;
    } else if !quiet {
        print_result(&format_profile(&found))?;
    }
    if let Some(path) = &arguments.write {
        let draft = Draft::new(&found, &arguments.data, path)?;
        draft.write_files(arguments.force)?;
        if !quiet {
            eprint_line(&format!("wrote {}; check its roles, then run: throng run {}", path.display(), path.display()));
            if !draft.hierarchies.is_empty() {
                eprint_line(&format!(
                    "its {} hierarchy files hold values of the data and are readable only by you; protect them like the data",
                    draft.hierarchies.len()
                ));
            }
        }
    }
    Ok(())
}

fn format_profile(profile: &Profile) -> String {
    let shown = profile.columns.iter().any(|column| column.values.is_some());
    let mut header = vec!["column", "type", "nulls", "distinct", "uniqueness", "extent", "guess", "because"];
    if shown {
        header.push("values");
    }
    let mut table = new_table(&header);
    for at in 2..5 {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in &profile.columns {
        let mut row = vec![
            column.name.clone(),
            type_name(column.kind()),
            format_percent(column.nulls as f64 / profile.rows.max(1) as f64),
            column.distinct.map(|distinct| mark_estimate(column.estimated) + &number(distinct)).unwrap_or_default(),
            column.uniqueness.map(|share| mark_estimate(column.estimated) + &format_percent(share)).unwrap_or_default(),
            column.extent.clone().unwrap_or_default(),
            role_name(column.role).to_owned(),
            column.reason.clone(),
        ];
        if let Some(values) = &column.values {
            let ends = values.ends.iter().map(|(min, max)| format!("{min} to {max}"));
            let commonest = values.commonest.iter().map(|(value, count)| format!("{value} ({count})"));
            row.push(ends.chain(commonest).collect::<Vec<_>>().join(", "));
        }
        table.add_row(row);
    }
    let exposure = &profile.exposure;
    let mut text = format!("{table}\n\n");
    if exposure.quasi.is_empty() {
        return text + "No column looks like a quasi-identifier.";
    }
    text += &format!(
        "As it stands, {}{} of {} rows are unique in {}.\n",
        mark_estimate(exposure.estimated_from.is_some()),
        format_percent(exposure.unique),
        number(profile.rows),
        exposure.quasi.join(", ")
    );
    if let Some(risk) = &exposure.population {
        if let (Some(k_map), Some(journalist)) = (risk.k_map, risk.journalist) {
            text += &format!(
                "Every row fits {} people of the public table or more (k-map); journalist risk {journalist:.4}.\n",
                number(k_map)
            );
        }
        if let (Some(people), Some(source)) = (risk.people, &risk.source) {
            text += &format_estimates(people, Some(source), None);
        }
    }
    if exposure.singling.is_empty() {
        text += "No three of these columns single out more than 5 % of the rows.";
    } else {
        text += "The smallest sets of columns that single out more than 5 % of the rows:\n";
        for set in exposure.singling.iter().take(10) {
            let share = mark_estimate(set.estimated_from.is_some()) + &format_percent(set.share);
            text += &format!("  {share:>7}  {}\n", set.columns.join(" + "));
        }
        if exposure.singling.len() > 10 {
            text += &format!("  and {} more (--json lists them)\n", exposure.singling.len() - 10);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n\n" + &describe_precision(profile)
}

/// States what was counted and what was estimated.
fn describe_precision(profile: &Profile) -> String {
    let mut estimated = Vec::new();
    if profile.columns.iter().any(|column| column.estimated) {
        estimated.push("more than 65,536 distinct values".to_owned());
    }
    if let Some(counted) = profile.exposure.estimated_from {
        estimated.push(format!("unique rows, from {} combinations of values", number(counted)));
    }
    if let Some(counted) = profile.exposure.singling.iter().filter_map(|set| set.estimated_from).min() {
        estimated.push(format!("rows unique in a small set of columns, from {} of them", number(counted)));
    }
    let whole = format!("All {} rows were read", number(profile.rows));
    match estimated.len() {
        0 => format!("{whole}; every figure is exact."),
        _ => format!("{whole}. Estimated (~, within 2 % or so): {}. The rest is exact.", estimated.join("; ")),
    }
}

/// Marks an estimate.
fn mark_estimate(estimated: bool) -> String {
    if estimated { "~".into() } else { String::new() }
}

/// The everyday name of a type.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Boolean => "yes or no".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(..) => "date and time".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time of day".into(),
        DataType::Decimal32(_, places) | DataType::Decimal64(_, places) | DataType::Decimal128(_, places) => {
            format!("number, {places} decimals")
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_) | DataType::FixedSizeList(..) => {
            "list".into()
        }
        DataType::Struct(_) => "record".into(),
        DataType::Dictionary(_, values) => type_name(values),
        whole if whole.is_integer() => "whole number".into(),
        number if number.is_numeric() => "number".into(),
        other => other.to_string(),
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Identifier => "identifier",
        Role::Quasi => "quasi",
        Role::Sensitive => "sensitive",
        Role::Kept => "kept",
    }
}

fn format_percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        small if small < 0.1 => "< 0.1 %".into(),
        percent => format!("{percent:.1} %"),
    }
}
