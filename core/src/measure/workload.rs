//! COUNT queries asked of the original rows and of the release (Loukides, 4.5.2 and 6.3.1).
//!
//! A query asks how many rows lie in a range on some quasi-identifiers. Of a published group it is only known that its
//! rows lie somewhere in what the group covers, evenly: the estimate is the sum over groups of their rows times the
//! share of the covered values that the query asks for, column by column. The relative error of a query is |actual -
//! estimate| / actual; queries whose true answer is 0 have none and are left out; their number is reported.
//!
//! Queries are drawn from a seed in the space of codes. Here both answers are added up cell by cell, where the original
//! rows and what is published of them are together; a run, which has files, asks DataFusion for them in the end.

use serde::{Deserialize, Serialize};

use super::Sum;
use crate::model::{Axis, Code, Cover, Shape, Table};

/// A range of codes on some axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Axis, first and last code.
    ranges: Vec<(usize, Code, Code)>,
}

/// What queries to ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Number of queries.
    pub queries: usize,
    /// Columns that each query restricts; all of them when there are fewer.
    pub dimensions: usize,
    /// The share of all combinations of values that each query asks for.
    pub selectivity: f64,
    /// Seed of the choice.
    pub seed: u64,
}

/// Number of codes of an axis that stand for values.
pub fn count_values(axis: &Axis) -> u32 {
    let nulls = u32::from(axis.null.is_some());
    let all = match &axis.shape {
        Shape::Line { span } => return u32::from(*span) + 1,
        Shape::Tree(tree) => tree.codes() as u32,
        Shape::Set { values } => *values,
    };
    all.saturating_sub(nulls).max(1)
}

/// Draws queries: every one takes its columns at random, and on each of them an interval of the same share of the domain
/// at a random place.
pub fn draw_queries(axes: &[Axis], demand: &Demand) -> Vec<Query> {
    let mut rng = fastrand::Rng::with_seed(demand.seed);
    let dimensions = demand.dimensions.clamp(1, axes.len().max(1));
    let share = demand.selectivity.clamp(0.0, 1.0).powf(1.0 / dimensions as f64);
    (0..demand.queries)
        .map(|_| {
            let mut chosen = rng.choose_multiple(0..axes.len(), dimensions);
            chosen.sort_unstable();
            let range = |a: usize, rng: &mut fastrand::Rng| {
                let all = count_values(&axes[a]);
                let width = ((f64::from(all) * share).round() as u32).clamp(1, all);
                let lo = rng.u32(0..=all - width);
                (a, lo as Code, (lo + width - 1) as Code)
            };
            Query { ranges: chosen.into_iter().map(|a| range(a, &mut rng)).collect() }
        })
        .collect()
}

impl Query {
    /// Axis, first and last code of every restriction.
    pub fn ranges(&self) -> &[(usize, Code, Code)] {
        &self.ranges
    }

    /// Whether a row lies in all ranges: all are looked at, which is quicker than guessing when to stop.
    fn holds_row(&self, row: &[Code]) -> bool {
        self.ranges.iter().fold(true, |all, &(a, lo, hi)| all & (row[a].wrapping_sub(lo) <= hi - lo))
    }

    /// The share of what a group covers that the query asks for.
    fn covered_share(&self, axes: &[Axis], cover: &Cover) -> f64 {
        let mut share = 1.0;
        for &(a, lo, hi) in &self.ranges {
            share *= range_overlap(&axes[a], cover, a, (lo, hi));
            if share == 0.0 {
                break;
            }
        }
        share
    }
}

/// The share of the values covered on one axis that lie in a range.
fn range_overlap(axis: &Axis, cover: &Cover, a: usize, (lo, hi): (Code, Code)) -> f64 {
    let (from, to) = (cover.lo[a], cover.hi[a]);
    let inside = |from: Code, to: Code| {
        let common = (i32::from(to.min(hi)) - i32::from(from.max(lo)) + 1).max(0);
        f64::from(common) / (f64::from(to - from) + 1.0)
    };
    if from == to {
        return inside(from, to);
    }
    let top = axis.loss(from, to, cover.count_distinct(a)) >= 1.0;
    match &axis.shape {
        _ if top => inside(0, (count_values(axis) - 1) as Code),
        Shape::Line { .. } => inside(from, to),
        Shape::Tree(tree) => tree.common_ancestor(from, to).map_or(0.0, |node| {
            let node = &tree.nodes()[node as usize];
            inside(node.lo, node.hi)
        }),
        Shape::Set { .. } => {
            let listed = cover.codes(a);
            listed.iter().filter(|code| (lo..=hi).contains(code)).count() as f64 / listed.len().max(1) as f64
        }
    }
}

/// Actual answers and estimates of a list of queries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    actual: Vec<u64>,
    estimate: Vec<Sum>,
}

/// How far estimates are from the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryError {
    /// Queries with an answer above 0.
    pub queries: usize,
    /// Queries without: they have no relative error.
    pub empty: usize,
    /// Mean relative error (ARE).
    pub mean: f64,
    /// Median relative error.
    pub median: f64,
    /// Largest relative error.
    pub worst: f64,
}

impl Workload {
    /// No rows yet.
    pub fn new(queries: usize) -> Self {
        Self { actual: vec![0; queries], estimate: vec![Sum::default(); queries] }
    }

    /// Adds the rows of a table to the true answers, published or not.
    pub fn add_table(&mut self, queries: &[Query], table: &Table) {
        for (query, actual) in queries.iter().zip(&mut self.actual) {
            let rows = (0..table.rows() as u32).filter(|row| table.is_member(*row));
            *actual += rows.map(|row| u64::from(query.holds_row(table.row(row)))).sum::<u64>();
        }
    }

    /// Adds a group of `rows` published rows to the estimates, by its cover.
    pub fn add_group(&mut self, queries: &[Query], axes: &[Axis], cover: &Cover, published: u64) {
        for (query, estimate) in queries.iter().zip(&mut self.estimate) {
            let share = query.covered_share(axes, cover);
            if share > 0.0 {
                estimate.add_fraction(share, published);
            }
        }
    }

    /// Adds the rows of another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.actual.iter_mut().zip(&other.actual).for_each(|(mine, theirs)| *mine += theirs);
        self.estimate.iter_mut().zip(&other.estimate).for_each(|(mine, theirs)| mine.merge(*theirs));
    }

    /// The errors; `None` if every query is empty.
    pub fn error(&self) -> Option<QueryError> {
        query_error(self.actual.iter().copied().zip(self.estimate.iter().map(|estimate| estimate.value())))
    }
}

/// The errors of actual answers and estimates; `None` if every query is empty.
pub fn query_error(answers: impl IntoIterator<Item = (u64, f64)>) -> Option<QueryError> {
    let (mut errors, mut empty) = (Vec::new(), 0);
    for (actual, estimate) in answers {
        if actual > 0 {
            errors.push((actual as f64 - estimate).abs() / actual as f64);
        } else {
            empty += 1;
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    let worst = *errors.last()?;
    Some(QueryError {
        queries: errors.len(),
        empty,
        mean: errors.iter().sum::<f64>() / errors.len() as f64,
        median: errors[errors.len() / 2],
        worst,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use proptest::prelude::*;

    #[test]
    fn loukides_estimates_spread_groups_evenly() {
        let table = fixtures::table_3_1();
        // Ages 30 to 34: two rows. The group {t1..t4} covers 30 to 40, eleven ages, of which five are asked for.
        let query = Query { ranges: vec![(0, 0, 4)] };
        let mut workload = Workload::new(1);
        workload.add_table(std::slice::from_ref(&query), &table);
        for rows in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            workload.add_group(std::slice::from_ref(&query), &table.axes, &table.cover(&rows), 4);
        }
        let error = workload.error().unwrap();
        assert!((error.mean - (2.0 - 4.0 * 5.0 / 11.0) / 2.0).abs() < 1e-12);
        // Postcodes NW10 to NW12, of the node NW[10-15]: half of its leaves.
        let both = Query { ranges: vec![(0, 0, 4), (1, 0, 2)] };
        assert!((both.covered_share(&table.axes, &table.cover(&[0, 1, 2, 3])) - 5.0 / 11.0 * 0.5).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn estimates_are_exact_of_values_as_they_were(table in fixtures::tables(), seed in any::<u64>()) {
            let demand = Demand { queries: 20, dimensions: 2, selectivity: 0.3, seed };
            let queries = draw_queries(&table.axes, &demand);
            prop_assert_eq!(&queries, &draw_queries(&table.axes, &demand));
            let mut single = Workload::new(20);
            let mut whole = Workload::new(20);
            let all: Vec<u32> = (0..table.rows() as u32).collect();
            let add = |workload: &mut Workload, size: usize| {
                workload.add_table(&queries, &table);
                all.chunks(size).for_each(|rows| {
                    workload.add_group(&queries, &table.axes, &table.cover(rows), rows.len() as u64);
                });
            };
            add(&mut single, 1);
            add(&mut whole, 7);
            prop_assert!(single.error().is_none_or(|error| error.worst < 1e-9));
            prop_assert!(whole.estimate.iter().all(|estimate| estimate.value() <= all.len() as f64 + 1e-9));
        }
    }
}
