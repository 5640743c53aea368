//! How often every value of a sensitive column occurs in a whole table: what rules such as t-closeness compare a group
//! with. Exact, and so bounded: a column of more values has no distribution that a group could be close to.

use std::collections::BTreeMap;
use std::fmt;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;

use super::exact::{Distinct, values_of};
use super::sensitive::{as_listed, leaf_codes};
use super::to_ordinals;
use crate::binding::SensitiveColumn;
use crate::error::{Error, Result};
use crate::hierarchy::Hierarchy;

/// Maximum number of distinct values of a column that groups are compared with.
pub(crate) const MAX_VALUES: usize = 1 << 16;

/// Distinct values and how often each occurs. A value is named by its [key](Distinct::batch_keys), one of a hierarchy by the
/// number of its leaf.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    counts: BTreeMap<Vec<u8>, u64>,
}

/// Without the keys, which reveal values.
impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reference").field("values", &self.counts.len()).finish_non_exhaustive()
    }
}

impl FromIterator<(Vec<u8>, u64)> for Reference {
    fn from_iter<T: IntoIterator<Item = (Vec<u8>, u64)>>(counts: T) -> Self {
        Self { counts: counts.into_iter().collect() }
    }
}

impl Reference {
    /// Adds all values of an array.
    pub(crate) fn add_values(&mut self, column: &SensitiveColumn, array: &ArrayRef) -> Result<()> {
        self.add_weighted(column, array, |_| 1)
    }

    /// Adds all values of an array, each as often as `weight` says of its row.
    pub(crate) fn add_weighted(
        &mut self,
        column: &SensitiveColumn,
        array: &ArrayRef,
        weight: impl Fn(usize) -> u64,
    ) -> Result<()> {
        let (codes, keys) = match column.hierarchy.as_deref() {
            Some(Hierarchy::Levels(levels)) => {
                let codes = leaf_codes(levels, array)?;
                let largest = codes.iter().max().map_or(0, |&leaf| leaf + 1);
                (codes, (0..largest).map(leaf_key).collect())
            }
            _ => {
                let array = as_listed(column, array)?;
                let distinct = Distinct::from_array(&array)?;
                let keys = distinct.batch_keys(&array)?;
                (distinct.codes, keys)
            }
        };
        let mut counts = vec![0; keys.len()];
        codes.into_iter().enumerate().for_each(|(row, code)| counts[code as usize] += weight(row));
        for (key, count) in keys.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
            *self.counts.entry(key).or_default() += count;
        }
        Ok(())
    }

    /// Adds another table.
    pub(crate) fn merge(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(key, count)| *self.counts.entry(key).or_default() += count);
    }

    /// Whether there are more values than groups are compared with.
    pub(crate) fn is_too_large(&self) -> bool {
        self.counts.len() > MAX_VALUES
    }

    /// Rejects a column that holds too many different values.
    pub(crate) fn ensure_few_values(&self, column: &SensitiveColumn) -> Result<()> {
        if !self.is_too_large() {
            return Ok(());
        }
        let name = &column.name;
        Err(Error::input(format!(
            "column `{name}`: it holds more than {MAX_VALUES} different values, too many to compare groups with the \
             distribution of the whole table; guard it by l-diversity, k-e or range-diversity, or round its values in \
             the source"
        )))
    }

    /// Keys and counts, ascending by key.
    pub(crate) fn counts(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> + Clone {
        self.counts.iter().map(|(key, &count)| (key.as_slice(), count))
    }

    /// The count of every leaf of a hierarchy that occurs.
    pub(crate) fn leaf_counts(&self) -> impl Iterator<Item = (u32, u64)> {
        self.counts().filter_map(|(key, count)| Some((u32::from_be_bytes(key.try_into().ok()?), count)))
    }

    /// Positions of the numbers in ascending order, NaN last; null, which is the last key if there is any, has none.
    pub(crate) fn to_ordinals(&self, data_type: &DataType) -> Result<Vec<f64>> {
        let values = values_of(self.counts().map(|(key, _)| key), data_type)?;
        Ok(to_ordinals(&values.slice(0, values.len() - values.null_count()))?)
    }
}

fn leaf_key(leaf: u32) -> Vec<u8> {
    leaf.to_be_bytes().to_vec()
}
