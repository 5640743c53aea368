//! `throng profile`: what an unknown dataset looks like, and a job for it.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::summary::{estimates, number};
use super::{Limits, print, say};
use crate::error::{Error, Result};
use crate::job::Role;
use crate::profile::{Draft, Profile, profile};
use crate::release::{Source, Stores};

/// Look at a dataset: every column with a guess of its role, and how exposed people are as it stands
///
/// With --write, a complete job file is drafted, with hierarchies as files that can be edited. Those files hold values
/// of the data, as a hierarchy must; everything else that is printed or written holds counts and guesses only.
///
/// Example: throng profile data/ --write job.toml
#[derive(Debug, Args)]
pub struct Arguments {
    /// Parquet: a file, a folder, a pattern or an object-store prefix
    data: String,
    /// Print the profile as JSON
    #[arg(long)]
    json: bool,
    /// Show smallest, largest and commonest values: raw data on your screen
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
pub async fn run(arguments: Arguments, quiet: bool) -> Result<()> {
    let (context, _spill) = arguments.limits.options().open()?;
    let source = Source::at(&Stores::default(), Path::new("."), &arguments.data).await?;
    let (input, _) = source.scan(&context).await?;
    let mut found = profile(&context, input.clone()).await?;
    if arguments.population.is_some() || arguments.public.is_some() {
        let public = match &arguments.public {
            Some(url) => Some(Source::at(&Stores::default(), Path::new("."), url).await?.scan(&context).await?.0),
            None => None,
        };
        found.look_at_population(&context, input, arguments.population, public).await?;
    }
    if arguments.show_values {
        found.show_values();
    }
    if arguments.json {
        print(&serde_json::to_string_pretty(&found).map_err(|error| Error::Internal(error.to_string()))?)?;
    } else if !quiet {
        print(&of(&found))?;
    }
    if let Some(path) = &arguments.write {
        let draft = Draft::new(&found, &arguments.data, path)?;
        draft.write(arguments.force)?;
        if !quiet {
            say(&format!("{} is written; read its roles, then: throng run {}", path.display(), path.display()));
            if !draft.hierarchies.is_empty() {
                say(&format!(
                    "its {} hierarchy files hold values of the data and can be read by you only; keep them as safe as the data",
                    draft.hierarchies.len()
                ));
            }
        }
    }
    Ok(())
}

fn of(profile: &Profile) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    let shown = profile.columns.iter().any(|column| column.values.is_some());
    let mut header = vec!["column", "type", "nulls", "distinct", "unique", "extent", "guess", "because"];
    if shown {
        header.push("values");
    }
    table.set_header(header);
    for at in 2..5 {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in &profile.columns {
        let mut row = vec![
            column.name.clone(),
            column.data_type.clone(),
            percent(column.nulls as f64 / profile.rows.max(1) as f64),
            column.distinct.map(|distinct| distinct.to_string()).unwrap_or_default(),
            column.uniqueness.map(percent).unwrap_or_default(),
            column.extent.clone().unwrap_or_default(),
            role(column.role).to_owned(),
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
        "As it stands, {} of {} rows are alone with their values of {}.\n",
        percent(exposure.unique),
        profile.rows,
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
            text += &estimates(people, source, None);
        }
    }
    if exposure.singling.is_empty() {
        text += "No three of these columns single out more than 5 % of the rows.";
    } else {
        text += "The smallest sets of columns that single out more than 5 % of the rows:\n";
        for set in exposure.singling.iter().take(10) {
            text += &format!("  {:>6}  {}\n", percent(set.share), set.columns.join(" + "));
        }
        if exposure.singling.len() > 10 {
            text += &format!("  and {} more (--json lists them)\n", exposure.singling.len() - 10);
        }
    }
    text
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Identifier => "identifier",
        Role::Quasi => "quasi",
        Role::Sensitive => "sensitive",
        Role::Kept => "kept",
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        small if small < 0.1 => "< 0.1 %".into(),
        percent => format!("{percent:.1} %"),
    }
}
