//! Scan 1: what there is to know of every column. Mergeable, bounded, and the same for any order of rows.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::HashMap;

use super::guess::{is_nested, is_text};
use super::hashes::{Hashed, Hashes};
use crate::encode::{is_number, is_time, positions};
use crate::error::Result;
use crate::survey::HashSketch;

/// What scan 1 has found of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Facts {
    pub rows: u64,
    pub nulls: u64,
    /// Distinct values but null.
    pub distinct: u64,
    /// Whether there are too many distinct values to tell more than an estimate.
    pub estimated: bool,
    /// Smallest and largest position of numbers and points in time.
    pub ends: Option<(f64, f64)>,
    /// Whether all positions are whole numbers.
    pub whole: bool,
    /// How often each value occurs, commonest first, with its text if the column is text; empty when there are too many.
    pub counts: Vec<(u64, Option<String>)>,
    /// Some values of a text column, evenly chosen.
    pub sample: Vec<String>,
    /// Length of the shortest and the longest text.
    pub lengths: Option<(usize, usize)>,
}

/// Distinct values that are counted one by one.
pub(super) const MOST_COUNTED: usize = 4096;

/// Values of a text column whose shape is looked at.
const SAMPLED: usize = 512;

/// Slots for values seen lately.
const LATELY: usize = 1 << 12;

/// No entry: the value is not counted.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Tally {
    kind: Kind,
    rows: u64,
    nulls: u64,
    hashes: Hashes,
    distinct: HashSketch,
    /// Hashes seen lately and their entries: most columns repeat a few values over and over.
    lately: Vec<(u64, u32)>,
    counts: Option<Counts>,
    sample: BTreeMap<u64, String>,
    lengths: Option<(usize, usize)>,
    ends: Option<(f64, f64)>,
    whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Line,
    Other,
    Nested,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    index: HashMap<u64, u32>,
    entries: Vec<(u64, u64, Option<String>)>,
}

impl Counts {
    /// The entry of a value, made when it is new; none when there are too many.
    fn entry(&mut self, hash: u64, value: impl FnOnce() -> Option<String>) -> Option<u32> {
        if let Some(entry) = self.index.get(&hash) {
            return Some(*entry);
        }
        if self.entries.len() == MOST_COUNTED {
            return None;
        }
        let entry = self.entries.len() as u32;
        self.index.insert(hash, entry);
        self.entries.push((hash, 0, value()));
        Some(entry)
    }
}

impl Tally {
    fn new(data_type: &DataType) -> Self {
        let kind = match data_type {
            _ if is_text(data_type) => Kind::Text,
            _ if is_number(data_type) || is_time(data_type) => Kind::Line,
            _ if is_nested(data_type) => Kind::Nested,
            _ => Kind::Other,
        };
        Self {
            kind,
            rows: 0,
            nulls: 0,
            hashes: Hashes::default(),
            distinct: HashSketch::default(),
            lately: vec![(0, NONE); LATELY],
            counts: Some(Counts::default()),
            sample: BTreeMap::new(),
            lengths: None,
            ends: None,
            whole: true,
        }
    }

    fn add(&mut self, array: &ArrayRef) -> Result<()> {
        self.rows += array.len() as u64;
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        self.nulls += nulls.as_ref().map_or(0, |nulls| nulls.null_count()) as u64;
        if self.kind == Kind::Nested {
            return Ok(());
        }
        if self.kind == Kind::Line {
            self.measure(&positions(array)?, array.data_type().is_integer());
        }
        let Hashed { hashes, words } = self.hashes.of(array)?;
        for (row, hash) in hashes.into_iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let slot = (hash >> (u64::BITS - LATELY.ilog2())) as usize;
            let (seen, entry) = self.lately[slot];
            if seen == hash {
                if let Some(counts) = self.counts.as_mut().filter(|_| entry != NONE) {
                    counts.entries[entry as usize].1 += 1;
                }
                continue;
            }
            let entry = self.fresh(hash, words.as_ref(), row);
            self.lately[slot] = (hash, entry);
        }
        Ok(())
    }

    /// Where the values lie.
    fn measure(&mut self, positions: &[f64], whole: bool) {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for &position in positions.iter().filter(|position| position.is_finite()) {
            least = least.min(position);
            most = most.max(position);
        }
        if least <= most {
            self.ends = wider(self.ends, Some((least, most)), f64::min, f64::max);
        }
        let fraction = |position: &f64| position.is_finite() && position.fract() != 0.0;
        self.whole = self.whole && (whole || !positions.iter().any(fraction));
    }

    /// A value that was not seen lately.
    fn fresh(&mut self, hash: u64, words: Option<&StringViewArray>, row: usize) -> u32 {
        self.distinct.add(hash);
        if let Some(words) = words {
            let word = words.value(row);
            self.lengths = wider(self.lengths, Some((word.len(), word.len())), usize::min, usize::max);
            if self.sample.len() < SAMPLED || self.sample.last_key_value().is_some_and(|(last, _)| hash < *last) {
                self.sample.entry(hash).or_insert_with(|| word.to_owned());
                if self.sample.len() > SAMPLED {
                    self.sample.pop_last();
                }
            }
        }
        let Some(counts) = &mut self.counts else { return NONE };
        match counts.entry(hash, || words.map(|words| words.value(row).to_owned())) {
            Some(entry) => {
                counts.entries[entry as usize].1 += 1;
                entry
            }
            None => {
                self.counts = None;
                NONE
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.distinct.merge(other.distinct);
        self.whole &= other.whole;
        self.ends = wider(self.ends, other.ends, f64::min, f64::max);
        self.lengths = wider(self.lengths, other.lengths, usize::min, usize::max);
        self.sample.extend(other.sample);
        while self.sample.len() > SAMPLED {
            self.sample.pop_last();
        }
        let counts = self.counts.take().zip(other.counts);
        self.counts = counts.and_then(|(mut counts, others)| {
            for (hash, count, value) in others.entries {
                let entry = counts.entry(hash, || value)?;
                counts.entries[entry as usize].1 += count;
            }
            Some(counts)
        });
    }

    fn finish(self) -> Facts {
        let mut counts: Vec<(u64, u64, Option<String>)> = self.counts.map(|counts| counts.entries).unwrap_or_default();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.2.cmp(&b.2)).then(a.0.cmp(&b.0)));
        Facts {
            rows: self.rows,
            nulls: self.nulls,
            estimated: !self.distinct.is_whole(),
            distinct: self.distinct.distinct(),
            ends: self.ends,
            whole: self.whole,
            counts: counts.into_iter().map(|(_, count, value)| (count, value)).collect(),
            sample: self.sample.into_values().collect(),
            lengths: self.lengths,
        }
    }
}

/// The wider of two ranges, of which either may be missing.
fn wider<T: Copy>(a: Option<(T, T)>, b: Option<(T, T)>, min: fn(T, T) -> T, max: fn(T, T) -> T) -> Option<(T, T)> {
    match (a, b) {
        (Some((a, b)), Some((c, d))) => Some((min(a, c), max(b, d))),
        (a, b) => a.or(b),
    }
}

/// All columns of one partition, or of several.
#[derive(Debug, Clone)]
pub(super) struct Tallies(Vec<Tally>);

impl Tallies {
    pub(super) fn new(schema: &SchemaRef) -> Self {
        Self(schema.fields().iter().map(|field| Tally::new(field.data_type())).collect())
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.iter_mut().zip(batch.columns()).try_for_each(|(tally, array)| tally.add(array))
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    pub(super) fn finish(self) -> Vec<Facts> {
        self.0.into_iter().map(Tally::finish).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    fn batch(rows: std::ops::Range<i32>) -> RecordBatch {
        let number: ArrayRef = Arc::new(rows.clone().map(|n| (n % 7 != 0).then_some(n)).collect::<Int32Array>());
        let word: ArrayRef = Arc::new(rows.map(|n| Some(format!("word {}", n % 10))).collect::<StringArray>());
        RecordBatch::try_from_iter_with_nullable([("n", number, true), ("w", word, true)]).unwrap()
    }

    #[test]
    fn facts_do_not_depend_on_the_order_of_rows() {
        let schema = batch(0..1).schema();
        let mut one = Tallies::new(&schema);
        one.add(&batch(0..9000)).unwrap();
        let (mut left, mut right) = (Tallies::new(&schema), Tallies::new(&schema));
        right.add(&batch(4000..9000)).unwrap();
        left.add(&batch(1000..4000)).unwrap();
        left.add(&batch(0..1000)).unwrap();
        right.merge(left);
        let (one, two) = (one.finish(), right.finish());
        assert_eq!(one, two);
        let numbers = &one[0];
        assert_eq!((numbers.rows, numbers.nulls, numbers.distinct), (9000, 1286, 7714));
        assert_eq!((numbers.ends, numbers.whole), (Some((1.0, 8999.0)), true));
        assert!(numbers.counts.is_empty(), "too many to count");
        let words = &one[1];
        assert_eq!((words.distinct, words.counts.len(), words.lengths), (10, 10, Some((6, 6))));
        assert!(words.counts.iter().all(|(count, word)| *count == 900 && word.is_some()));
    }
}
