//! Dependency loss (definition 8) and utility (formulas 4.1 to 4.3), by looking at every instance and every group: the
//! yardstick for quicker ways.

use super::{Dependencies, Instances, Kind, Value};
use crate::model::Table;

/// Whether an instance has a distance to rows that contradict it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A row that does not cover the instance on every column is 1 away (definition 7).
    Comparable,
    /// Columns are looked at one by one (formula 4.3): a row may be near by agreeing on one of them.
    ColumnByColumn,
}

impl Guard {
    fn distance(self, kind: &Kind, instance: usize, values: &[Value], plain_values: &[u64]) -> f64 {
        match self {
            Self::Comparable if !kind.is_comparable(instance, values, plain_values) => 1.0,
            _ => kind.distance(instance, values, plain_values),
        }
    }
}

/// What every instance has lost, added up: its distance to the closest published row. An instance that no row is left
/// for loses 1. `groups` are the published groups; rows in none of them are suppressed.
pub fn instance_loss(dependencies: &Dependencies, table: &Table, groups: &[&[u32]], guard: Guard) -> f64 {
    best_scores(dependencies, table, groups, |kind, instance, _, values, plain_values| {
        1.0 - guard.distance(kind, instance, values, plain_values)
    })
    .iter()
    .map(|best| 1.0 - best)
    .sum()
}

/// How well a clustering preserves the instances, added up (formula 4.1). `clusters` hold every row.
pub fn instance_utility(dependencies: &Dependencies, table: &Table, clusters: &[&[u32]], k: usize) -> f64 {
    best_scores(dependencies, table, clusters, |kind, instance, rows, values, plain_values| {
        preserved_share(kind.distance(instance, values, plain_values), rows, k)
    })
    .iter()
    .sum()
}

/// How well a cluster of so many rows preserves an instance at a distance (formula 4.2).
#[inline]
pub fn preserved_share(distance: f64, rows: usize, k: usize) -> f64 {
    (1.0 - distance) * (rows as f64 / k as f64).min(1.0)
}

/// The best score of every instance over all groups; 0 without groups.
fn best_scores(
    dependencies: &Dependencies,
    table: &Table,
    groups: &[&[u32]],
    score: impl Fn(&Kind, usize, usize, &[Value], &[u64]) -> f64,
) -> Vec<f64> {
    let instances = Instances::new(&dependencies.list, table);
    let mut best = vec![0.0_f64; instances.len()];
    for rows in groups.iter().filter(|rows| !rows.is_empty()) {
        let values = dependencies.published_values(table, &table.cover(rows));
        for kind in &instances.kinds {
            let plain_values = kind.distinct_plain_values(table, rows);
            for (instance, best) in best[kind.first..][..kind.count].iter_mut().enumerate() {
                *best = best.max(score(kind, instance, rows.len(), &values, &plain_values));
            }
        }
    }
    best
}
