//! Bounded summaries of distinct values: the values with the smallest hashes.
//!
//! Keeping the n smallest hashes is a uniform sample of the distinct values, the same for any order of rows and any
//! split into partitions, and it yields their number: exactly while all fit, by the density of hashes beyond.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::common::HashSet;

use crate::encode::{MAX_CODES, row_hashes};
use crate::error::Result;
use crate::model::keep_smallest;

/// Distinct hashes, bounded.
#[derive(Debug, Clone)]
pub(crate) struct HashSketch {
    kept: HashSet<u64>,
    /// Hashes at or above this are no longer kept.
    ceiling: u64,
}

impl Default for HashSketch {
    fn default() -> Self {
        Self { kept: HashSet::new(), ceiling: u64::MAX }
    }
}

impl HashSketch {
    /// Adds a hash.
    pub(crate) fn add_hash(&mut self, hash: u64) {
        if hash < self.ceiling && self.kept.insert(hash) && self.kept.len() > 2 * MAX_CODES {
            self.shrink_hashes();
        }
    }

    /// Adds another sketch.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ceiling = self.ceiling.min(other.ceiling);
        other.kept.into_iter().for_each(|hash| self.add_hash(hash));
        let ceiling = self.ceiling;
        self.kept.retain(|hash| *hash < ceiling);
    }

    /// Number of distinct hashes seen, estimated when they were too many to keep.
    pub(crate) fn count_distinct(mut self) -> u64 {
        // Beyond the bound the estimate always rests on the same number of smallest hashes, however they came.
        if self.kept.len() > MAX_CODES {
            self.shrink_hashes();
        }
        estimate_distinct(self.kept.len() as u64, self.ceiling)
    }

    /// The sketch as what it keeps, and the bound below which it does.
    #[cfg(feature = "cluster")]
    pub(super) fn into_parts(self) -> (u64, Vec<u64>) {
        let mut hashes: Vec<u64> = self.kept.into_iter().collect();
        hashes.sort_unstable();
        (self.ceiling, hashes)
    }

    /// The sketch of these parts.
    #[cfg(feature = "cluster")]
    pub(super) fn from_parts(ceiling: u64, hashes: Vec<u64>) -> Self {
        Self { kept: hashes.into_iter().collect(), ceiling }
    }

    fn shrink_hashes(&mut self) {
        let mut hashes: Vec<u64> = self.kept.iter().copied().collect();
        let (_, middle, _) = hashes.select_nth_unstable(MAX_CODES);
        self.ceiling = *middle;
        let ceiling = self.ceiling;
        self.kept.retain(|hash| *hash < ceiling);
    }
}

/// Distinct words, bounded: all of them while there are few enough, an even sample beyond.
#[derive(Debug, Clone)]
pub(crate) struct WordSketch {
    kept: BTreeMap<u64, String>,
    ceiling: u64,
    /// Views of short words seen lately, by a hash of the view.
    lately: Vec<u128>,
}

/// Slots for words seen lately.
const LATELY: usize = 1 << 14;

/// Bytes that a view holds itself.
const INLINE: u32 = 12;

impl Default for WordSketch {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), ceiling: u64::MAX, lately: vec![u128::MAX; LATELY] }
    }
}

impl WordSketch {
    /// Adds all values of a column.
    pub(crate) fn add_words(&mut self, array: &StringViewArray) -> Result<()> {
        let fresh = self.fresh_rows(array);
        if fresh.is_empty() {
            return Ok(());
        }
        let values: StringViewArray = fresh.iter().map(|&row| Some(array.value(row))).collect();
        let column: ArrayRef = Arc::new(values.clone());
        for (row, hash) in row_hashes(&[column], values.len(), 0)?.into_iter().enumerate() {
            if hash < self.ceiling {
                self.kept.entry(hash).or_insert_with(|| values.value(row).to_owned());
                self.lower_ceiling();
            }
        }
        Ok(())
    }

    /// Rows whose value is not among those seen lately: most columns repeat a few words over and over. A short text is
    /// whole in its view, so equal views are equal values, from whatever array.
    fn fresh_rows(&mut self, array: &StringViewArray) -> Vec<usize> {
        let mut fresh = Vec::new();
        for (row, &view) in array.views().iter().enumerate() {
            if array.is_null(row) {
                continue;
            }
            let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let slot = &mut self.lately[(mixed >> (u64::BITS - LATELY.ilog2())) as usize];
            if *slot != view {
                fresh.push(row);
                if view as u32 <= INLINE {
                    *slot = view;
                }
            }
        }
        fresh
    }

    /// Adds another sketch.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ceiling = self.ceiling.min(other.ceiling);
        self.kept.extend(other.kept);
        _ = self.kept.split_off(&self.ceiling);
        self.lower_ceiling();
    }

    /// The sorted words and the number of distinct ones seen.
    pub(crate) fn finish(self) -> (Vec<String>, u64) {
        let distinct = estimate_distinct(self.kept.len() as u64, self.ceiling);
        let mut words: Vec<String> = self.kept.into_values().collect();
        words.sort_unstable();
        (words, distinct)
    }

    /// The sketch as what it keeps, and the bound below which it does.
    #[cfg(feature = "cluster")]
    pub(super) fn into_parts(self) -> (u64, BTreeMap<u64, String>) {
        (self.ceiling, self.kept)
    }

    /// The sketch of these parts.
    #[cfg(feature = "cluster")]
    pub(super) fn from_parts(ceiling: u64, kept: BTreeMap<u64, String>) -> Self {
        Self { kept, ceiling, ..Self::default() }
    }

    fn lower_ceiling(&mut self) {
        if let Some(hash) = keep_smallest(&mut self.kept, MAX_CODES) {
            self.ceiling = self.ceiling.min(hash);
        }
    }
}

/// Number of distinct values when `kept` of them lie below the ceiling: more than are kept, once any was let go.
fn estimate_distinct(kept: u64, ceiling: u64) -> u64 {
    if ceiling == u64::MAX {
        return kept;
    }
    ((kept as f64 * (u64::MAX as f64 / ceiling as f64)) as u64).max(kept + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(range: std::ops::Range<u32>) -> StringViewArray {
        range.map(|number| Some(format!("word number {number}"))).collect()
    }

    #[test]
    fn few_words_are_kept_all() {
        let mut sketch = WordSketch::default();
        sketch.add_words(&words(0..100)).unwrap();
        sketch.add_words(&words(50..150)).unwrap();
        let (kept, distinct) = sketch.finish();
        assert_eq!((kept.len(), distinct), (150, 150));
    }

    #[test]
    fn many_words_are_sampled_the_same_way_in_any_order() {
        let (mut one, mut left, mut right) = (WordSketch::default(), WordSketch::default(), WordSketch::default());
        one.add_words(&words(0..200_000)).unwrap();
        right.add_words(&words(90_000..200_000)).unwrap();
        left.add_words(&words(0..90_000)).unwrap();
        right.merge(left);
        let (one, seen) = one.finish();
        let (two, _) = right.finish();
        assert_eq!(one, two);
        assert!((180_000..220_000).contains(&seen), "estimated {seen}");
    }

    #[test]
    fn one_word_too_many_is_never_called_complete() {
        for seed in 0..4 {
            let mut sketch = WordSketch::default();
            sketch.add_words(&words(seed * 100_000..seed * 100_000 + MAX_CODES as u32 + 1)).unwrap();
            let (kept, distinct) = sketch.finish();
            assert_eq!(kept.len(), MAX_CODES);
            assert!(distinct > MAX_CODES as u64);
        }
    }

    #[test]
    fn hashes_are_counted_exactly_while_they_fit() {
        let mut sketch = HashSketch::default();
        (0..1000_u64).for_each(|n| sketch.add_hash((n % 100).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        assert_eq!(sketch.count_distinct(), 100);
    }
}
