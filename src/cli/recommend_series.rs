//! `throng recommend --nights`: recommends the keys of `[series]` by simulating nights.

use std::path::Path;

use clap::Args;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::arguments::JobArguments;
use crate::engine::session::SessionOptions;
use crate::error::{Error, Result};
use crate::explore::{SeriesSetting, SeriesTrial, SeriesTrials, Simulation, Trials};
use crate::policy::{Job, SeriesMode};
use crate::terminal::{eprint_line, print_result};

/// What is simulated.
#[derive(Debug, Args)]
pub(super) struct NightsArguments {
    /// Number of nights to simulate: recommends the keys of [series]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub(super) nights: Option<u64>,
    /// Share of the subjects that leaves every simulated night, while as many come
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, conflicts_with_all = ["max_loss", "min_k"])]
    churn: f64,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    recommended: &'a SeriesTrial,
    tried: &'a [SeriesTrial],
    simulated: Simulation,
    rows_of_source: u64,
    rows_drawn: u64,
    subjects: u64,
    newcomers: u64,
}

/// How the answer is asked for and printed.
pub(super) struct Wish<'a> {
    pub(super) sample: u64,
    pub(super) session: SessionOptions,
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) job: &'a JobArguments,
}

/// Finds the keys of `[series]` by which readers miss least.
pub(super) async fn recommend(arguments: &NightsArguments, job: &Job, base: &Path, wish: Wish<'_>) -> Result<()> {
    let nights = arguments.nights.unwrap_or_default();
    if !(0.0..=1.0).contains(&arguments.churn) {
        return Err(Error::job(format!("--churn must be from 0 to 1, got {}", arguments.churn)));
    }
    let Some(series) = &job.series else {
        return Err(Error::job("series: is missing, and --nights recommends its keys; see the guide \"again\""));
    };
    let trials = Trials::open_source(job, base, &wish.session).await?;
    let seed = job.method.seed.unwrap_or_default();
    let simulated = Simulation { nights, churn: arguments.churn, sample: wish.sample, seed };
    let nights = SeriesTrials::open(&trials, base, &wish.session, simulated).await?;
    let tried = vary_settings(&nights, SeriesSetting::of(series), series.mode, wish.quiet).await?;
    let best = tried.iter().min_by(|a, b| a.missed.total_cmp(&b.missed));
    let best = best.ok_or_else(|| Error::internal("no setting was tried"))?;
    if wish.json {
        let answer = Answer {
            recommended: best,
            tried: &tried,
            simulated,
            rows_of_source: trials.rows(),
            rows_drawn: nights.rows,
            subjects: nights.churn.subjects(),
            newcomers: nights.churn.newcomers(),
        };
        return print_result(
            &serde_json::to_string_pretty(&answer).map_err(|error| Error::internal(error.to_string()))?,
        );
    }
    print_result(&format!(
        "{}\n\n{}\n{}",
        trial_table(&tried),
        explain_simulation(&nights, simulated, trials.rows(), series.mode),
        render_verdict(best, &tried[0], series.mode, wish.job)
    ))
}

/// Varies one key after another, and goes on from the best setting so far. The first one tried is the start.
async fn vary_settings(
    nights: &SeriesTrials,
    start: SeriesSetting,
    mode: SeriesMode,
    quiet: bool,
) -> Result<Vec<SeriesTrial>> {
    let mut tried = vec![try_setting(nights, start, quiet).await?];
    let mut best = (tried[0].missed, start);
    for vary in SeriesSetting::variations(mode) {
        for setting in vary(best.1) {
            if tried.iter().any(|trial| trial.setting == setting) {
                continue;
            }
            tried.push(try_setting(nights, setting, quiet).await?);
        }
        let least = tried.iter().min_by(|a, b| a.missed.total_cmp(&b.missed));
        if let Some(least) = least.filter(|least| least.missed < best.0) {
            best = (least.missed, least.setting);
        }
    }
    Ok(tried)
}

async fn try_setting(nights: &SeriesTrials, setting: SeriesSetting, quiet: bool) -> Result<SeriesTrial> {
    if !quiet {
        eprint_line(&format!("tries {}", setting_lines(setting).join(", ")));
    }
    nights.run(setting).await
}

/// The keys of a setting as lines of a job file.
fn setting_lines(setting: SeriesSetting) -> Vec<String> {
    vec![
        format!("reserve = {:?}", setting.reserve),
        format!("max-loss = {:?}", setting.max_loss),
        format!("max-wait = {}", setting.max_wait),
        format!("retire-at = {:?}", setting.retire_at),
        format!("dissolve = {}", setting.dissolve),
    ]
}

fn trial_table(tried: &[SeriesTrial]) -> Table {
    let header = [
        "reserve",
        "max-loss",
        "max-wait",
        "retire-at",
        "dissolve",
        "loss",
        "waiting",
        "stale",
        "withheld",
        "suppressed",
        "missed",
        "s a night",
    ];
    let mut table = crate::terminal::new_table(&header);
    for at in (0..header.len()).filter(|at| *at != 4) {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let share = |share: f64| format!("{:.2} %", share * 100.0);
    for SeriesTrial { setting, loss, waiting, stale, withheld, suppressed, missed, seconds } in tried {
        table.add_row([
            format!("{:.1}", setting.reserve),
            setting.max_loss.to_string(),
            setting.max_wait.to_string(),
            setting.retire_at.to_string(),
            setting.dissolve.to_string(),
            format!("{loss:.4}"),
            share(*waiting),
            share(*stale),
            share(*withheld),
            share(*suppressed),
            format!("{missed:.4}"),
            format!("{seconds:.1}"),
        ]);
    }
    table
}

fn explain_simulation(nights: &SeriesTrials, simulated: Simulation, rows: u64, mode: SeriesMode) -> String {
    let Simulation { nights: number, churn, .. } = simulated;
    let (first, come, drawn) = (nights.churn.subjects(), nights.churn.newcomers(), nights.rows);
    let what = match mode {
        SeriesMode::Snapshot => "come and about as many leave, everybody as likely as everybody else",
        SeriesMode::Append => "are added",
    };
    let scale = if drawn < rows {
        " Fewer rows than the source has come in a night, and wait longer and lose more for it: figures of the source are better."
    } else {
        ""
    };
    format!(
        "Simulated: {number} nights at a churn of {churn}, on {drawn} of {rows} rows of the source: {first} on the first night, \
         then {come} {what}. Nobody changes, nobody comes back.{scale}\nFigures are means of the later half of the nights. \
         Waiting, stale, withheld and suppressed are shares of all rows; missed counts them as lost, beside what published \
         values lose."
    )
}

fn render_verdict(best: &SeriesTrial, start: &SeriesTrial, mode: SeriesMode, job: &JobArguments) -> String {
    let mut lines = setting_lines(best.setting);
    if mode == SeriesMode::Append {
        lines.truncate(3);
    }
    let set = |text: &String| {
        format!(" --set {}", super::recommend::quote_for_shell(&format!("series.{}", text.replace(" = ", "="))))
    };
    let before = job
        .settings
        .iter()
        .map(|(key, value)| format!(" --set {}", super::recommend::quote_for_shell(&format!("{key}={value}"))));
    let command: String = before.chain(lines.iter().map(set)).collect();
    let gain = if best.setting == start.setting {
        "Keep the settings of the job: none that was tried misses less".to_owned()
    } else {
        format!("Readers miss {:.4} instead of {:.4} with the settings of the job", best.missed, start.missed)
    };
    format!(
        "{gain}\n\n[series]\n{}\n\n  throng run {}{command}",
        lines.join("\n"),
        super::recommend::quote_for_shell(&job.job.display().to_string())
    )
}
