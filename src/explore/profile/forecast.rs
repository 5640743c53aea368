//! Forecasts from the first rows: which columns will be guessed to be quasi-identifiers, and which sets of
//! them may single people out. A scan of all columns can count these along the way; a wrong forecast costs a
//! second scan and changes no figure.

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;

use super::column_profiler::{ColumnProfilers, ColumnStats};
use super::singling::{Singling, choose_sets};
use super::{Column, fold_partitions, guess_columns, guessed_quasi, scan_plan};
use crate::error::Result;

/// Rows that a forecast rests on.
const FIRST: usize = 1 << 16;

/// Quasi-identifiers that are counted while all columns are scanned.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    /// The numbers of their columns.
    columns: Vec<usize>,
    rows: u64,
    pub singling: Singling,
}

impl Forecast {
    /// Looks at the first rows of `rows`; no forecast when these are not known, or without quasi-identifiers.
    pub(super) async fn new(context: &SessionContext, input: &LogicalPlan, rows: u64) -> Result<Option<Self>> {
        if rows == 0 {
            return Ok(None);
        }
        let schema = input.schema().as_arrow();
        let first = LogicalPlanBuilder::from(input.clone()).limit(0, Some(FIRST))?.build()?;
        let first = scan_plan(context, first).await?;
        let first = fold_partitions(
            context,
            first,
            ColumnProfilers::new(schema),
            ColumnProfilers::add_batch,
            ColumnProfilers::merge,
        )
        .await?;
        let found: Vec<Column> = guess_columns(schema, first.finish());
        let quasi = guessed_quasi(&found);
        if quasi.is_empty() {
            return Ok(None);
        }
        let distinct: Vec<u64> = quasi.iter().map(|column| expected_distinct(&found[*column].stats, rows)).collect();
        // Fewer rows need fewer combinations: some room for what was not expected.
        let singling = Singling::new(choose_sets(&distinct, rows * 4 / 5), rows);
        Ok(Some(Self { columns: quasi, rows, singling }))
    }

    /// Whether everything necessary is counted: these sets of these columns, for this number of rows.
    pub(super) fn covers_sets(&self, columns: &[usize], sets: &[Vec<usize>], rows: u64) -> bool {
        self.columns == columns && self.rows == rows && self.singling.counts_sets(sets)
    }

    /// Has the columns watched that this is about.
    pub(super) fn watch_columns(&self, profilers: &mut ColumnProfilers) {
        self.columns.iter().for_each(|column| profilers.watch_column(*column));
    }

    /// Adds rows that were tallied last.
    pub(super) fn add_tallied(&mut self, profilers: &ColumnProfilers) {
        let hashes: Vec<&[u64]> = self.columns.iter().map(|column| profilers.column_hashes(*column)).collect();
        self.singling.add_rows(&hashes);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.singling.merge(other.singling);
    }
}

/// Distinct values to expect in all rows: more than in the first ones if there were many that occurred once.
fn expected_distinct(first: &ColumnStats, rows: u64) -> u64 {
    let seen = first.distinct + u64::from(first.nulls > 0);
    if first.counts.is_empty() {
        return (seen as f64 * rows as f64 / first.rows.max(1) as f64) as u64;
    }
    let once = first.counts.iter().filter(|(count, _)| *count == 1).count() as u64;
    if first.rows < rows { seen + 8 * once } else { seen }
}
