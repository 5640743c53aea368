//! What there is to know of every column. Mergeable, bounded, and the same for any order of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, PrimitiveArray, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{ArrowNumericType, DataType, Schema};
use datafusion::arrow::downcast_primitive_array;

use super::guess::{is_nested, is_text};
use super::hashes::Hashes;
use super::seen::{Numbers, Texts};
use super::values::Values;
use crate::binding::{is_number, is_time};
use crate::encode::{to_ordinals, to_text};
use crate::error::Result;
use crate::model::keep_smallest;

/// What was found of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ColumnStats {
    pub rows: u64,
    pub nulls: u64,
    /// Distinct values except null.
    pub distinct: u64,
    /// Whether there are too many distinct values for more than an estimate.
    pub estimated: bool,
    /// Smallest and largest position of numbers and points in time.
    pub ends: Option<(f64, f64)>,
    /// Whether all numbers are whole.
    pub whole: bool,
    /// How often each value occurs, commonest first, with its text if the column is text; empty when there are too many.
    pub counts: Vec<(u64, Option<String>)>,
    /// Some values of a text column, evenly chosen.
    pub sample: Vec<String>,
    /// Length of the shortest and the longest text.
    pub lengths: Option<(usize, usize)>,
}

/// Values of a text column whose shape is looked at.
const SAMPLED: usize = 512;

#[derive(Debug, Clone)]
struct ColumnProfiler {
    kind: Kind,
    rows: u64,
    nulls: u64,
    hashes: Hashes,
    /// Whether the hash of every row is asked for.
    watched: bool,
    values: Values,
    texts: Texts,
    numbers: Numbers,
    looks: Looks,
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

impl ColumnProfiler {
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
            watched: false,
            values: Values::default(),
            texts: Texts::default(),
            numbers: Numbers::default(),
            looks: Looks::default(),
            ends: None,
            whole: true,
        }
    }

    fn add_array(&mut self, array: &ArrayRef) -> Result<()> {
        let nulls = array.logical_null_count();
        self.rows += array.len() as u64;
        self.nulls += nulls as u64;
        if self.kind == Kind::Nested {
            return Ok(());
        }
        if self.kind == Kind::Text {
            self.add_text(&to_text(array)?);
            return Ok(());
        }
        let many = matches!(self.values, Values::Many(_));
        self.hashes.add_batch(array, !many)?;
        let hashes = match self.values.are_many_and_kept() {
            true => self.numbers.fresh_hashes(array, self.hashes.last_hashes()),
            false => self.hashes.last_hashes(),
        };
        let mut fresh = many && !hashes.is_empty();
        self.values.add_rows(hashes, |_, _| {
            fresh = true;
            None
        });
        // Values that were seen lie where they lay when they came first.
        if self.kind == Kind::Line && fresh && nulls < array.len() {
            self.measure_values(array)?;
        }
        Ok(())
    }

    fn add_text(&mut self, words: &StringViewArray) {
        let Self { hashes, values, texts, looks, .. } = self;
        if matches!(values, Values::Few(_)) {
            hashes.count_few(words, self.watched, |hash, rows, first| {
                values.count_value(hash, u64::from(rows), || looks.look_at_text(hash, words.value(first)));
            });
        } else if self.watched {
            hashes.add_words(words);
            values.add_rows(hashes.last_hashes(), |row, hash| looks.look_at_text(hash, words.value(row)));
        } else {
            let fresh = texts.fresh_rows(words);
            hashes.add_rows(words, &fresh);
            values.add_rows(hashes.last_hashes(), |at, hash| looks.look_at_text(hash, words.value(fresh[at])));
            looks.measure_lengths(fresh.iter().map(|row| &words.views()[*row]));
            return;
        }
        if matches!(values, Values::Many(_)) {
            match words.nulls().filter(|nulls| nulls.null_count() > 0) {
                None => looks.measure_lengths(words.views().iter()),
                Some(nulls) => looks.measure_lengths(nulls.valid_indices().map(|row| &words.views()[row])),
            }
        }
    }

    /// Where the values lie.
    fn measure_values(&mut self, array: &ArrayRef) -> Result<()> {
        let positions_of_ends = to_ordinals(&column_ends(array))?;
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for &position in positions_of_ends.iter().filter(|position| position.is_finite()) {
            least = least.min(position);
            most = most.max(position);
        }
        if least <= most {
            self.ends = wider_range(self.ends, Some((least, most)), f64::min, f64::max);
        }
        let data_type = array.data_type();
        if self.whole && is_number(data_type) && !data_type.is_integer() {
            let fraction = |position: &f64| position.is_finite() && position.fract() != 0.0;
            self.whole = !to_ordinals(array)?.iter().any(fraction);
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.values.merge(other.values);
        self.looks.merge(other.looks);
        self.ends = wider_range(self.ends, other.ends, f64::min, f64::max);
        self.whole &= other.whole;
    }

    fn finish(self) -> ColumnStats {
        let (distinct, estimated) = self.values.count_distinct();
        ColumnStats {
            rows: self.rows,
            nulls: self.nulls,
            distinct,
            estimated,
            ends: self.ends,
            whole: self.whole,
            counts: self.values.value_counts(),
            sample: self.looks.sample.into_values().collect(),
            lengths: self.looks.lengths,
        }
    }
}

/// The smallest and the largest value of a column, as a column, or all of them where that takes more than their order.
fn column_ends(array: &ArrayRef) -> ArrayRef {
    fn ends_of<T: ArrowNumericType>(array: &PrimitiveArray<T>) -> ArrayRef {
        let wider = |[least, most]: [T::Native; 2], value: T::Native| {
            [if value.is_lt(least) { value } else { least }, if value.is_gt(most) { value } else { most }]
        };
        let values = array.values();
        let ends = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => values.first().map(|first| values.iter().copied().fold([*first; 2], wider)),
            Some(nulls) => {
                let mut valid = nulls.valid_indices().map(|row| values[row]);
                valid.next().map(|first| valid.fold([first; 2], wider))
            }
        };
        let ends = ends.into_iter().flatten();
        Arc::new(PrimitiveArray::<T>::from_iter_values(ends).with_data_type(array.data_type().clone()))
    }
    let values = array.as_ref();
    match array.data_type() {
        // NaN and infinite values have no position.
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Arc::clone(array),
        _ => downcast_primitive_array!(values => ends_of(values), _ => Arc::clone(array)),
    }
}

/// What the texts of a column look like.
#[derive(Debug, Clone, Default)]
struct Looks {
    /// Those with the smallest hashes.
    sample: BTreeMap<u64, String>,
    lengths: Option<(usize, usize)>,
}

impl Looks {
    /// Looks at a text that may be new, and gives it to keep.
    fn look_at_text(&mut self, hash: u64, word: &str) -> Option<String> {
        self.lengths = wider_range(self.lengths, Some((word.len(), word.len())), usize::min, usize::max);
        if self.sample.len() < SAMPLED || self.sample.last_key_value().is_some_and(|(last, _)| hash < *last) {
            self.sample.entry(hash).or_insert_with(|| word.to_owned());
            keep_smallest(&mut self.sample, SAMPLED);
        }
        Some(word.to_owned())
    }

    /// The lengths of texts, which are in the lowest bits of their views.
    fn measure_lengths<'a>(&mut self, views: impl Iterator<Item = &'a u128>) {
        let (mut shortest, mut longest) = (u32::MAX, 0);
        for view in views {
            shortest = shortest.min(*view as u32);
            longest = longest.max(*view as u32);
        }
        if shortest <= longest {
            self.lengths =
                wider_range(self.lengths, Some((shortest as usize, longest as usize)), usize::min, usize::max);
        }
    }

    fn merge(&mut self, other: Self) {
        self.lengths = wider_range(self.lengths, other.lengths, usize::min, usize::max);
        self.sample.extend(other.sample);
        keep_smallest(&mut self.sample, SAMPLED);
    }
}

/// The wider of two ranges, of which either may be missing.
fn wider_range<T: Copy>(
    a: Option<(T, T)>,
    b: Option<(T, T)>,
    min: fn(T, T) -> T,
    max: fn(T, T) -> T,
) -> Option<(T, T)> {
    match (a, b) {
        (Some((a, b)), Some((c, d))) => Some((min(a, c), max(b, d))),
        (a, b) => a.or(b),
    }
}

/// All columns of one partition, or of several.
#[derive(Debug, Clone)]
pub(super) struct ColumnProfilers(Vec<ColumnProfiler>);

impl ColumnProfilers {
    pub(super) fn new(schema: &Schema) -> Self {
        Self(schema.fields().iter().map(|field| ColumnProfiler::new(field.data_type())).collect())
    }

    pub(super) fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.iter_mut().zip(batch.columns()).try_for_each(|(profiler, array)| profiler.add_array(array))
    }

    /// Makes the hashes of a column's values known.
    pub(super) fn watch_column(&mut self, column: usize) {
        self.0[column].watched = true;
    }

    /// The hashes of a watched column's values in the batch that was added last.
    pub(super) fn column_hashes(&self, column: usize) -> &[u64] {
        self.0[column].hashes.last_hashes()
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    pub(super) fn finish(self) -> Vec<ColumnStats> {
        self.0.into_iter().map(ColumnProfiler::finish).collect()
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
    fn statistics_do_not_depend_on_the_order_of_rows() {
        let schema = batch(0..1).schema();
        let mut one = ColumnProfilers::new(&schema);
        one.add_batch(&batch(0..9000)).unwrap();
        let (mut left, mut right) = (ColumnProfilers::new(&schema), ColumnProfilers::new(&schema));
        right.add_batch(&batch(4000..9000)).unwrap();
        left.add_batch(&batch(1000..4000)).unwrap();
        left.add_batch(&batch(0..1000)).unwrap();
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
