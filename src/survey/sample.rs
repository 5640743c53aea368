//! A sample of the table that is the same for any number of partitions and any order of rows.
//!
//! Rows are chosen by their content: those with the smallest hashes stay. Equal rows have equal hashes, so they are
//! kept once, with their number as weight; a table with few distinct rows is therefore sampled whole and exactly.

use datafusion::arrow::array::{BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{filter_record_batch, interleave_record_batch, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;

use crate::encode::{batch_size, compact_batch, row_hashes};
use crate::error::Result;

/// Most distinct rows kept.
pub(crate) const SAMPLE_ROWS: usize = 1 << 17;

/// Rows gathered before they are folded: folding seldom costs little time, folding early little memory.
const MAX_PENDING: usize = 2 * SAMPLE_ROWS;

/// How many times as many rows as are needed a first ceiling lets through, were no two rows alike. What is spared by a lower
/// one is little; with this one, a table in which every row occurs three times is still sampled at the first try.
#[cfg(feature = "cluster")]
const SPARE: f64 = 4.0;

/// The hash below which enough rows lie if a table of `rows` rows (0 if unknown) has few that are equal.
#[cfg(feature = "cluster")]
pub(crate) fn first_ceiling(rows: u64) -> u64 {
    raise_ceiling(u64::MAX, rows)
}

/// The hash below which enough rows lie when `found` lie below `ceiling`.
#[cfg(feature = "cluster")]
pub(crate) fn raise_ceiling(ceiling: u64, found: u64) -> u64 {
    let wanted = SPARE * SAMPLE_ROWS as f64;
    match found as f64 > wanted * (ceiling as f64 / u64::MAX as f64) {
        true => (ceiling as f64 * (wanted / found as f64)) as u64,
        false => u64::MAX,
    }
}

/// Rows, their hashes, and how often each occurs.
type Part = (RecordBatch, Vec<u64>, Vec<u64>);

/// Collects the sample of one partition.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    schema: SchemaRef,
    seed: u64,
    /// Rows at or above this hash are passed over.
    ceiling: u64,
    parts: Vec<Part>,
    pending: usize,
    size: usize,
}

/// Distinct rows and how often each occurs, in the order of their hashes.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// The distinct rows.
    pub rows: RecordBatch,
    /// How often each occurs in the whole table.
    pub counts: Vec<u64>,
}

impl Sampler {
    pub(crate) fn new(schema: SchemaRef, seed: u64) -> Self {
        Self { schema, seed, ceiling: u64::MAX, parts: Vec::new(), pending: 0, size: 0 }
    }

    /// The same, of rows below a hash.
    #[cfg(feature = "cluster")]
    pub(crate) fn below_ceiling(self, ceiling: u64) -> Self {
        Self { ceiling, ..self }
    }

    /// The ceiling and the rows below it, when a higher one would have let more through.
    #[cfg(feature = "cluster")]
    pub(crate) fn find_shortfall(&mut self) -> Result<Option<(u64, u64)>> {
        self.fold_equal_rows()?;
        let short = self.ceiling < u64::MAX && self.pending < SAMPLE_ROWS;
        Ok(short.then_some((self.ceiling, self.pending as u64)))
    }

    pub(crate) fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let hashes = row_hashes(batch.columns(), batch.num_rows(), self.seed)?;
        let keep = BooleanBuffer::collect_bool(hashes.len(), |row| hashes[row] < self.ceiling);
        if keep.has_true() {
            let rows = compact_batch(&filter_record_batch(batch, &BooleanArray::new(keep, None))?)?;
            let hashes: Vec<u64> = hashes.into_iter().filter(|hash| *hash < self.ceiling).collect();
            self.push_rows(rows, hashes, None)?;
        }
        Ok(())
    }

    /// Bytes held by the rows gathered so far, and by those that folding takes from them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.size + self.size / 2
    }

    pub(crate) fn merge(&mut self, other: Self) -> Result<()> {
        self.ceiling = self.ceiling.min(other.ceiling);
        for (rows, hashes, counts) in other.parts {
            self.push_rows(rows, hashes, Some(counts))?;
        }
        Ok(())
    }

    /// The rows chosen so far with their hashes and counts, and the bound below which they lie.
    #[cfg(feature = "cluster")]
    pub(crate) fn into_parts(mut self) -> Result<(u64, Vec<Part>)> {
        self.fold_equal_rows()?;
        Ok((self.ceiling, self.parts))
    }

    /// The seed of the hashes by which rows are chosen.
    #[cfg(feature = "cluster")]
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A sampler that has chosen these rows.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_part(schema: SchemaRef, seed: u64, ceiling: u64, part: Option<Part>) -> Result<Self> {
        let mut sampler = Self { ceiling, ..Self::new(schema, seed) };
        if let Some((rows, hashes, counts)) = part {
            // Names and metadata may have changed on the way, types not.
            let rows = RecordBatch::try_new(std::sync::Arc::clone(&sampler.schema), rows.columns().to_vec())?;
            sampler.push_rows(rows, hashes, Some(counts))?;
        }
        Ok(sampler)
    }

    pub(crate) fn finish(mut self) -> Result<Sample> {
        self.fold_equal_rows()?;
        Ok(match self.parts.pop() {
            Some((rows, _, counts)) => Sample { rows, counts },
            None => Sample { rows: RecordBatch::new_empty(self.schema), counts: Vec::new() },
        })
    }

    fn push_rows(&mut self, rows: RecordBatch, hashes: Vec<u64>, counts: Option<Vec<u64>>) -> Result<()> {
        self.pending += rows.num_rows();
        self.size += part_size(&rows);
        let counts = counts.unwrap_or_else(|| vec![1; rows.num_rows()]);
        self.parts.push((rows, hashes, counts));
        if self.pending > MAX_PENDING { self.fold_equal_rows() } else { Ok(()) }
    }

    /// Folds equal rows into one and keeps those with the smallest hashes.
    fn fold_equal_rows(&mut self) -> Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let places = self.parts.iter().enumerate().flat_map(|(part, (_, hashes, counts))| {
            let rows = hashes.iter().zip(counts).enumerate();
            rows.map(move |(row, (hash, count))| (*hash, (part, row), *count))
        });
        let mut order: Vec<(u64, (usize, usize), u64)> = places.collect();
        order.sort_unstable();
        order.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.2 += if same { later.2 } else { 0 };
            same
        });
        order.retain(|(hash, ..)| *hash < self.ceiling);
        if let Some((hash, ..)) = order.get(SAMPLE_ROWS) {
            self.ceiling = *hash;
            order.truncate(SAMPLE_ROWS);
        }
        let chosen: Vec<(usize, usize)> = order.iter().map(|(_, place, _)| *place).collect();
        let parts: Vec<&RecordBatch> = self.parts.iter().map(|(rows, ..)| rows).collect();
        let rows = compact_batch(&interleave_record_batch(&parts, &chosen)?)?;
        self.pending = order.len();
        self.size = part_size(&rows);
        let (hashes, counts) = order.into_iter().map(|(hash, _, count)| (hash, count)).unzip();
        self.parts = vec![(rows, hashes, counts)];
        Ok(())
    }
}

/// Bytes of some rows, their hashes and their counts.
fn part_size(rows: &RecordBatch) -> usize {
    batch_size(rows) + 16 * rows.num_rows()
}

impl Sample {
    /// The first `most` rows, each repeated as often as it occurs (up to `most` rows in all): for tuning.
    pub(crate) fn expand_rows(&self, most: usize) -> Result<RecordBatch> {
        let indices = (0_u64..).zip(&self.counts).flat_map(|(row, &count)| std::iter::repeat_n(row, count as usize));
        Ok(take_record_batch(&self.rows, &indices.take(most).collect::<UInt64Array>())?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};

    use super::*;

    fn batch(values: impl Iterator<Item = i32>) -> RecordBatch {
        let column: ArrayRef = Arc::new(values.collect::<Int32Array>());
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    #[test]
    fn same_sample_for_any_split_and_order() {
        let all = batch(0..400_000);
        let mut one = Sampler::new(all.schema(), 7);
        one.add_batch(&all).unwrap();
        let mut left = Sampler::new(all.schema(), 7);
        let mut right = Sampler::new(all.schema(), 7);
        right.add_batch(&batch((100_000..400_000).rev())).unwrap();
        left.add_batch(&batch(0..100_000)).unwrap();
        right.merge(left).unwrap();
        let (one, two) = (one.finish().unwrap(), right.finish().unwrap());
        assert_eq!(one.rows.num_rows(), SAMPLE_ROWS);
        assert_eq!(one.rows, two.rows);
        assert_eq!(one.counts, two.counts);
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn a_ceiling_that_lets_enough_through_changes_nothing() {
        let all = batch(0..2_000_000);
        let mut whole = Sampler::new(all.schema(), 7);
        whole.add_batch(&all).unwrap();
        let mut parts = Sampler::new(all.schema(), 7);
        for part in 0..8 {
            let ceiling = first_ceiling(2_000_000);
            let mut some = Sampler::new(all.schema(), 7).below_ceiling(ceiling);
            some.add_batch(&all.slice(part * 250_000, 250_000)).unwrap();
            let (ceiling, rows) = some.into_parts().unwrap();
            let sent = rows.iter().map(|(rows, ..)| rows.num_rows()).sum::<usize>();
            assert!(sent < 2 * SAMPLE_ROWS / 3, "every part sends a share of the sample, not all of its rows: {sent}");
            for part in rows {
                parts.merge(Sampler::of_part(all.schema(), 7, ceiling, Some(part)).unwrap()).unwrap();
            }
        }
        assert_eq!(parts.find_shortfall().unwrap(), None);
        let (whole, parts) = (whole.finish().unwrap(), parts.finish().unwrap());
        assert_eq!((whole.rows, whole.counts), (parts.rows, parts.counts));
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn a_ceiling_that_is_too_low_is_noticed_and_raised() {
        // Every row occurs ten times: a tenth of what was hoped for lies below the first ceiling.
        let all = batch((0..2_000_000).map(|n| n % 200_000));
        let mut ceiling = first_ceiling(2_000_000);
        let mut tries = 0;
        let sample = loop {
            tries += 1;
            let mut sampler = Sampler::new(all.schema(), 7).below_ceiling(ceiling);
            sampler.add_batch(&all).unwrap();
            match sampler.find_shortfall().unwrap() {
                Some((below, found)) => {
                    assert!(found < SAMPLE_ROWS as u64);
                    ceiling = raise_ceiling(below, found);
                }
                None => break sampler.finish().unwrap(),
            }
        };
        let mut whole = Sampler::new(all.schema(), 7);
        whole.add_batch(&all).unwrap();
        let whole = whole.finish().unwrap();
        assert_eq!((tries, sample.rows.num_rows()), (2, SAMPLE_ROWS));
        assert_eq!((sample.rows, sample.counts), (whole.rows, whole.counts));
        assert_eq!(first_ceiling(0), u64::MAX, "nothing is known");
    }

    #[test]
    fn equal_rows_are_counted() {
        let mut sampler = Sampler::new(batch(0..1).schema(), 7);
        for _ in 0..3 {
            sampler.add_batch(&batch((0..1000).map(|n| n % 10))).unwrap();
        }
        let sample = sampler.finish().unwrap();
        assert_eq!(sample.counts, vec![300; 10]);
        assert_eq!(sample.expand_rows(500).unwrap().num_rows(), 500);
    }
}
