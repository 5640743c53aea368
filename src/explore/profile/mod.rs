//! What an unknown dataset looks like to somebody who has to publish it: every column with a guess of its role, and
//! how exposed people are as it stands.
//!
//! One scan of all columns, bounded in memory and the same for any order of rows, finds two things:
//!
//! 1. of every column its nulls, distinct values, ends and shapes (`profiler`, with `hashes`, `seen` and `values`), from which roles
//!    are guessed (`guess`, with `names` and `pattern`);
//! 2. of the guessed quasi-identifiers, how many rows are alone with their values (`singling`).
//!
//! Which columns are quasi-identifiers is known for sure after the scan only. The first rows let expect it (`forecast`);
//! should they mislead, a second scan counts the columns that it has come to, with the same figures.
//!
//! Every row is seen. Rows, nulls, ends, lengths and the counts of up to 4096 values are exact, and so are up to 65,536
//! distinct values; more of them are estimated from the 32,768 or more with the smallest hashes (one deviation is 0.6 %
//! of them), and said to be. Rows that are alone are counted among up to 65,536 combinations of all quasi-identifiers, and
//! among as many of a small set of them as 32,768 rows can have; of more these are the ones with the smallest hashes, and
//! the share is an estimate (one deviation is 0.6 percentage points at most) and marked as such. Shapes of texts are guessed
//! from the 512 with the smallest hashes.
//!
//! A profile holds counts and guesses. Values of the data are in it only on demand ([`Profile::show_values`]) and in
//! the hierarchy files that [`Draft`] proposes, which cannot do without.

mod column_profiler;
mod draft;
mod forecast;
mod guess;
mod hashes;
mod names;
mod pattern;
mod population;
mod propose;
mod seen;
mod singling;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, ident};
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::{DataFrame, SessionContext};
use serde::Serialize;

pub(crate) use draft::Draft;
pub(crate) use draft::level_csv;
pub(crate) use propose::Proposal;

use crate::audit::PopulationRisk;
use crate::binding::is_time;
use crate::engine::phase::known_rows;
use crate::error::{Error, Result};
use crate::hierarchy::{Period, Unit};
use crate::plan::{join_parts, read_rows};
use crate::policy::Role;
use column_profiler::{ColumnProfilers, ColumnStats};
use forecast::Forecast;
use guess::{Guess, guess_role};
use hashes::Hashes;
use singling::{Alone, Few, Singling, choose_sets};

/// A dataset as it stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Profile {
    /// Rows.
    pub rows: u64,
    /// Every column.
    pub columns: Vec<Column>,
    /// How exposed people are.
    pub exposure: Exposure,
}

/// One column of a dataset.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    /// Name.
    pub name: String,
    /// Type of the values.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Rows without a value.
    pub nulls: u64,
    /// Distinct values except null; not counted for nested types.
    pub distinct: Option<u64>,
    /// Whether there are so many distinct values that their number is estimated.
    pub estimated: bool,
    /// Distinct values per value: 1 when no two are equal.
    pub uniqueness: Option<f64>,
    /// Roughly where values lie: ends rounded outwards for numbers and dates, lengths for text.
    pub extent: Option<String>,
    /// The guess of what the column is to the anonymisation.
    pub role: Role,
    /// What the guess rests on.
    pub reason: String,
    /// Values of the data; only on demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
    #[serde(skip)]
    kind: DataType,
    #[serde(skip)]
    stats: ColumnStats,
    #[serde(skip)]
    guess: Guess,
}

/// Values of a column, for those who may see them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Values {
    /// Smallest and largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<(String, String)>,
    /// The commonest ones and how often they occur.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commonest: Vec<(String, u64)>,
}

/// How exposed people are when the table is seen as it stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Exposure {
    /// The guessed quasi-identifiers.
    pub quasi: Vec<String>,
    /// Share of the rows that are unique in all of them.
    pub unique: f64,
    /// Combinations of values that this was estimated from; `None` if all were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_from: Option<u64>,
    /// The smallest sets of up to three of them on which more than 5 % of the rows are alone.
    pub singling: Vec<SinglingSet>,
    /// Risks in the population, when its size or a public table is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationRisk>,
}

/// A few columns on which many rows are alone.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SinglingSet {
    /// The columns.
    pub columns: Vec<String>,
    /// Share of the rows that are alone on them.
    pub share: f64,
    /// Combinations of values that this was estimated from; `None` if all were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_from: Option<u64>,
}

/// A scan of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// All columns, and the exposure by those that are expected to be quasi-identifiers.
    Columns,
    /// The guessed quasi-identifiers, when they are others than expected.
    Exposure,
}

/// Called when a scan begins, with its plan, whose metrics report progress, and its rows (0 if unknown).
pub(crate) type Watch<'a> = &'a (dyn Fn(Scan, &Arc<dyn ExecutionPlan>, u64) + Sync);

/// Profiles the rows of a plan.
pub(crate) async fn profile_rows(context: &SessionContext, input: LogicalPlan) -> Result<Profile> {
    profile_watched(context, input, &|_, _, _| {}).await
}

/// Profiles the rows of a plan and reports progress.
pub(crate) async fn profile_watched(context: &SessionContext, input: LogicalPlan, watch: Watch<'_>) -> Result<Profile> {
    let plan = scan_plan(context, input.clone()).await?;
    let forecast = Forecast::new(context, &input, known_rows(&plan)).await?;
    profile_by(context, input, plan, forecast, watch).await
}

async fn profile_by(
    context: &SessionContext,
    input: LogicalPlan,
    plan: Arc<dyn ExecutionPlan>,
    forecast: Option<Forecast>,
    watch: Watch<'_>,
) -> Result<Profile> {
    watch(Scan::Columns, &plan, known_rows(&plan));
    let schema = input.schema().as_arrow();
    let mut profilers = ColumnProfilers::new(schema);
    forecast.iter().for_each(|forecast| forecast.watch_columns(&mut profilers));
    let first = Look { profilers, forecast };
    let Look { profilers, forecast } = fold_partitions(context, plan, first, Look::add_batch, Look::merge).await?;
    let columns = guess_columns(schema, profilers.finish());
    let rows = columns.first().map_or(0, |column| column.stats.rows);
    if rows == 0 {
        return Err(Error::input("the input holds no rows"));
    }
    let quasi = guessed_quasi(&columns);
    let names: Vec<String> = quasi.iter().map(|column| columns[*column].name.clone()).collect();
    if quasi.is_empty() {
        let exposure =
            Exposure { quasi: names, unique: 0.0, estimated_from: None, singling: Vec::new(), population: None };
        return Ok(Profile { rows, columns, exposure });
    }
    let distinct = |column: &usize| columns[*column].stats.distinct + u64::from(columns[*column].nulls > 0);
    let sets = choose_sets(&quasi.iter().map(distinct).collect::<Vec<u64>>(), rows);
    let singling = match forecast.filter(|forecast| forecast.covers_sets(&quasi, &sets, rows)) {
        Some(forecast) => forecast.singling,
        None => {
            let plan = LogicalPlanBuilder::from(input).project(names.iter().map(ident))?.build()?;
            let plan = scan_plan(context, plan).await?;
            watch(Scan::Exposure, &plan, rows);
            let first =
                Again { hashes: vec![Hashes::default(); quasi.len()], singling: Singling::new(sets.clone(), rows) };
            fold_partitions(context, plan, first, Again::add_batch, Again::merge).await?.singling
        }
    };
    let Alone { whole, counted, smallest } = singling.finish(&sets);
    let named = |Few { columns, share, counted }| SinglingSet {
        columns: columns.into_iter().map(|column: usize| names[column].clone()).collect(),
        share,
        estimated_from: counted,
    };
    let singling = smallest.into_iter().map(named).collect();
    let exposure = Exposure { quasi: names, unique: whole, estimated_from: counted, singling, population: None };
    Ok(Profile { rows, columns, exposure })
}

/// Columns with guesses of their roles.
fn guess_columns(schema: &Schema, stats: Vec<ColumnStats>) -> Vec<Column> {
    let of = |(field, stats): (&Arc<Field>, ColumnStats)| Column::new(field.name(), field.data_type(), stats);
    schema.fields().iter().zip(stats).map(of).collect()
}

/// The numbers of the guessed quasi-identifiers.
fn guessed_quasi(columns: &[Column]) -> Vec<usize> {
    (0..columns.len()).filter(|column| columns[*column].role == Role::Quasi).collect()
}

/// The scan of all columns.
#[derive(Debug, Clone)]
struct Look {
    profilers: ColumnProfilers,
    forecast: Option<Forecast>,
}

impl Look {
    fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.profilers.add_batch(batch)?;
        if let Some(forecast) = &mut self.forecast {
            forecast.add_tallied(&self.profilers);
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.profilers.merge(other.profilers);
        if let Some((mine, theirs)) = self.forecast.as_mut().zip(other.forecast) {
            mine.merge(theirs);
        }
    }
}

/// The scan of the quasi-identifiers.
#[derive(Debug, Clone)]
struct Again {
    hashes: Vec<Hashes>,
    singling: Singling,
}

impl Again {
    fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        for (hashes, column) in self.hashes.iter_mut().zip(batch.columns()) {
            hashes.add_batch(column, true)?;
        }
        self.singling.add_rows(&self.hashes.iter().map(Hashes::last_hashes).collect::<Vec<_>>());
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.singling.merge(other.singling);
    }
}

async fn scan_plan(context: &SessionContext, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(DataFrame::new(context.state(), plan).create_physical_plan().await?)
}

/// Folds every partition of a plan on a task of its own, and the results into one.
async fn fold_partitions<T: Clone + Send + 'static>(
    context: &SessionContext,
    plan: Arc<dyn ExecutionPlan>,
    first: T,
    add: fn(&mut T, &RecordBatch) -> Result<()>,
    merge: fn(&mut T, T),
) -> Result<T> {
    let parts = execute_stream_partitioned(plan, context.task_ctx())?.into_iter().map(|mut stream| {
        let mut part = first.clone();
        async move {
            while let Some(batch) = read_rows(&mut stream).await? {
                add(&mut part, &batch)?;
            }
            Ok::<T, Error>(part)
        }
    });
    let mut whole = first.clone();
    join_parts("a scan", parts.collect::<Vec<_>>(), |part| {
        merge(&mut whole, part);
        Ok(())
    })
    .await?;
    Ok(whole)
}

/// Commonest values that are shown on demand.
const SHOWN: usize = 5;

impl Column {
    fn new(name: &str, kind: &DataType, stats: ColumnStats) -> Self {
        let guess = guess_role(name, kind, &stats);
        let values = stats.rows - stats.nulls;
        let counted = !guess::is_nested(kind);
        Self {
            name: name.to_owned(),
            data_type: kind.to_string(),
            nulls: stats.nulls,
            distinct: counted.then_some(stats.distinct),
            estimated: stats.estimated,
            uniqueness: counted.then(|| (stats.distinct as f64 / values.max(1) as f64).min(1.0)),
            extent: describe_extent(kind, &stats),
            role: guess.role,
            reason: guess.reason.clone(),
            values: None,
            kind: kind.clone(),
            stats,
            guess,
        }
    }

    /// Type of the values.
    pub(crate) fn kind(&self) -> &DataType {
        &self.kind
    }

    /// Proposes a hierarchy for the column, if it were a quasi-identifier.
    pub(crate) fn propose_hierarchy(&self) -> Proposal {
        propose::propose_hierarchy(&self.kind, &self.stats, &self.guess)
    }

    /// Returns the proposed hierarchy as text: a level file, or a table of a job file.
    pub(crate) fn hierarchy_text(&self) -> Result<String> {
        match self.propose_hierarchy() {
            Proposal::Levels(lines, _) => Ok(String::from_utf8_lossy(&level_csv(&lines)?).into_owned()),
            other => match draft::inline_hierarchy(&other) {
                Some(table) => Ok(format!("hierarchy = {table}\n")),
                None => Err(Error::input(format!(
                    "column `{}` needs no hierarchy: it becomes ranges or short sets without one",
                    self.name
                ))),
            },
        }
    }
}

impl Profile {
    /// Adds ends and commonest values to every column, for those who may see them.
    pub(crate) fn show_values(&mut self) {
        for column in &mut self.columns {
            let end = |position: f64| match is_time(&column.kind) {
                true => Period::period_at(Unit::Day, position).to_string(),
                false => position.to_string(),
            };
            let commonest = column.stats.counts.iter().take(SHOWN);
            column.values = Some(Values {
                ends: column.stats.ends.map(|(min, max)| (end(min), end(max))),
                commonest: commonest.filter_map(|(count, value)| Some((value.clone()?, *count))).collect(),
            });
        }
    }
}

/// Roughly where the values of a column lie: nothing that only one row has.
fn describe_extent(data_type: &DataType, stats: &ColumnStats) -> Option<String> {
    if let Some((min, max)) = stats.ends {
        if matches!(data_type, DataType::Time32(_) | DataType::Time64(_)) {
            return None;
        }
        if is_time(data_type) {
            let decade = |day: f64| Period::period_at(Unit::Decade, day).to_string();
            let (from, to) = (decade(min), decade(max));
            return Some(if from == to { from } else { format!("{from} to {to}") });
        }
        let largest = min.abs().max(max.abs());
        if largest == 0.0 {
            return Some("0".into());
        }
        let unit = 10_f64.powf(largest.log10().floor());
        let (from, to) = ((min / unit).floor() * unit, ((max / unit).floor() + 1.0) * unit);
        return Some(format!("{} to {}", format_rounded(from), format_rounded(to)));
    }
    let (shortest, longest) = stats.lengths?;
    Some(if shortest == longest { format!("{longest} letters") } else { format!("{shortest} to {longest} letters") })
}

fn format_rounded(number: f64) -> String {
    format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
