//! How often every value of a sensitive column occurs in a whole table: what rules such as t-closeness compare a group
//! with. Exact, and so bounded: a column of more values has no distribution that a group could be close to.

use std::collections::BTreeMap;
use std::fmt;

use datafusion::arrow::array::ArrayRef;
use serde::{Deserialize, Serialize};

use super::sensitive::{hashable, leaf_codes};
use super::{is_number, is_time, positions, row_hashes};
use crate::error::{Error, Result};
use crate::hierarchy::Hierarchy;
use crate::job::SensitiveColumn;

/// Most different values of a column that groups are compared with.
pub const MOST_VALUES: usize = 1 << 16;

/// The key of null in a column of numbers: behind every number.
const NULL: u64 = u64::MAX;

/// Distinct values and how often each occurs. Values are kept as keys: numbers by an order-preserving form of their
/// position, values of a hierarchy by their leaf, all others by a hash.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    counts: BTreeMap<u64, u64>,
}

/// Without the keys, which tell values.
impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reference").field("values", &self.counts.len()).finish_non_exhaustive()
    }
}

impl From<BTreeMap<u64, u64>> for Reference {
    fn from(counts: BTreeMap<u64, u64>) -> Self {
        Self { counts }
    }
}

impl Reference {
    /// Adds all values of an array.
    pub fn add(&mut self, column: &SensitiveColumn, array: &ArrayRef) -> Result<()> {
        self.add_weighted(column, array, |_| 1)
    }

    /// Adds all values of an array, each as often as `weight` says of its row.
    pub fn add_weighted(
        &mut self,
        column: &SensitiveColumn,
        array: &ArrayRef,
        weight: impl Fn(usize) -> u64,
    ) -> Result<()> {
        for (row, key) in keys(column, array)?.into_iter().enumerate() {
            *self.counts.entry(key).or_default() += weight(row);
        }
        Ok(())
    }

    /// Adds another table.
    pub fn merge(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(key, count)| *self.counts.entry(key).or_default() += count);
    }

    /// Whether there are more values than groups are compared with.
    pub fn is_too_large(&self) -> bool {
        self.counts.len() > MOST_VALUES
    }

    /// Refuses a column that holds too many different values.
    pub fn refuse_too_many(&self, column: &SensitiveColumn) -> Result<()> {
        if !self.is_too_large() {
            return Ok(());
        }
        let name = &column.name;
        Err(Error::Input(format!(
            "column `{name}`: it holds more than {MOST_VALUES} different values, too many to compare groups with the \
             distribution of the whole table; guard it by l-diversity, k-e or range-diversity, or round its values in \
             the source"
        )))
    }

    /// How often each key occurs.
    pub fn counts(&self) -> &BTreeMap<u64, u64> {
        &self.counts
    }

    /// Keys and counts, ascending by key.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(&key, &count)| (key, count))
    }

    /// Numbers in ascending order with their counts, and the count of nulls.
    pub(super) fn numbers(&self) -> (Vec<f64>, Vec<u64>, Option<u64>) {
        let (at, counts) =
            self.entries().filter(|(key, _)| *key != NULL).map(|(key, count)| (number(key), count)).unzip();
        (at, counts, self.counts.get(&NULL).copied())
    }
}

/// The key of every value of an array.
pub(super) fn keys(column: &SensitiveColumn, array: &ArrayRef) -> Result<Vec<u64>> {
    match column.hierarchy.as_deref() {
        Some(Hierarchy::Levels(levels)) => Ok(leaf_codes(levels, array)?.into_iter().map(u64::from).collect()),
        _ if is_number(&column.data_type) || is_time(&column.data_type) => Ok(positions(array)?
            .into_iter()
            .map(|position| if position.is_nan() { NULL } else { key(position) })
            .collect()),
        _ => {
            let array = hashable(column, array)?;
            Ok(row_hashes(std::slice::from_ref(&array), array.len(), 0)?)
        }
    }
}

/// A number as a key of the same order: the sign bit is turned, and below zero all bits.
fn key(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

fn number(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -2.5, -0.0, 1e-300, 2.0, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(numbers.iter().all(|&value| number(key(value)) == value && key(value) < NULL));
        assert_eq!(key(-0.0), key(0.0));
    }
}
