//! Scan 2: how many rows are alone with their values, on all quasi-identifiers and on small sets of them.
//!
//! Combinations of values are chosen by their hash: those below a ceiling are counted, all others passed over. A
//! combination that is counted is counted from its first row to its last, so whether it occurs once is exact; how many
//! there are is exact while all fit, and estimated by the share that the ceiling lets through beyond.

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::common::HashMap;

use super::hashes::Hashes;
use crate::error::Result;

/// Combinations counted of all quasi-identifiers together.
const MOST_WHOLE: usize = 1 << 16;

/// Combinations counted of each small set.
const MOST_SMALL: usize = 1 << 12;

/// Columns of a small set, at most.
const LARGEST_SET: usize = 3;

/// Sets that are looked at, at most.
const MOST_SETS: usize = 200;

/// Share of the rows beyond which a set of columns singles people out.
pub const SINGLING_SHARE: f64 = 0.05;

const SEED: u64 = 0x7369_6e67_6c65;

/// Stands for the hash of null.
const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

/// Counts of the combinations with the smallest hashes.
#[derive(Debug, Clone)]
struct Counts {
    kept: HashMap<u64, u32>,
    ceiling: u64,
    most: usize,
}

impl Counts {
    fn new(most: usize) -> Self {
        Self { kept: HashMap::new(), ceiling: u64::MAX, most }
    }

    fn add_all(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.add(*hash, 1);
        }
    }

    #[inline]
    fn add(&mut self, hash: u64, times: u32) {
        if hash < self.ceiling {
            *self.kept.entry(hash).or_default() += times;
            if self.kept.len() > 2 * self.most {
                self.shrink();
            }
        }
    }

    fn shrink(&mut self) {
        let mut hashes: Vec<u64> = self.kept.keys().copied().collect();
        let (_, ceiling, _) = hashes.select_nth_unstable(self.most);
        self.ceiling = *ceiling;
        self.kept.retain(|hash, _| *hash < self.ceiling);
    }

    fn merge(&mut self, other: Self) {
        self.ceiling = self.ceiling.min(other.ceiling);
        let ceiling = self.ceiling;
        self.kept.retain(|hash, _| *hash < ceiling);
        other.kept.into_iter().for_each(|(hash, times)| self.add(hash, times));
    }

    /// Combinations that occur once, and how many combinations were counted when these are not all of them.
    fn singles(mut self) -> (f64, Option<u64>) {
        if self.kept.len() > self.most {
            self.shrink();
        }
        let singles = self.kept.values().filter(|times| **times == 1).count() as f64;
        match self.ceiling {
            u64::MAX => (singles, None),
            ceiling => (singles * (u64::MAX as f64 / ceiling as f64), Some(self.kept.len() as u64)),
        }
    }
}

/// The sets of columns that are looked at, by the numbers of their columns: those of up to three columns that have
/// values enough to single out many, and last all columns together.
pub(super) fn sets(distinct: &[u64], rows: u64) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..distinct.len()).collect();
    let mut columns = all.clone();
    columns.sort_by_key(|column| (std::cmp::Reverse(distinct[*column]), *column));
    columns.truncate(12);
    columns.sort_unstable();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..LARGEST_SET.min(distinct.len().saturating_sub(1)) {
        let longer = |set: &Vec<usize>| {
            let from = set.last().map_or(0, |last| last + 1);
            columns
                .iter()
                .filter(move |column| **column >= from)
                .map(|column| [set.as_slice(), &[*column]].concat())
                .collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        // As many combinations as the product of distinct values, and no more people than combinations.
        let most = |set: &Vec<usize>| set.iter().map(|column| distinct[*column].max(1) as f64).product::<f64>();
        sets.extend(last.iter().filter(|set| most(set) > SINGLING_SHARE * rows as f64).cloned());
    }
    sets.truncate(MOST_SETS);
    sets.push(all);
    sets
}

/// Counts of all sets in one partition, or in several.
#[derive(Debug, Clone)]
pub(super) struct Singling {
    sets: Vec<Vec<usize>>,
    counts: Vec<Counts>,
    /// The sets in the order of their columns: those that begin alike follow each other.
    order: Vec<usize>,
    hashes: Vec<Hashes>,
    rows: u64,
}

/// Who is alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alone {
    /// Share of the rows that are alone on all columns.
    pub whole: f64,
    /// Combinations that this was estimated from; none when all were counted.
    pub counted: Option<u64>,
    /// The smallest sets that single out too many, by the numbers of their columns, with their shares.
    pub smallest: Vec<(Vec<usize>, f64)>,
}

impl Singling {
    pub(super) fn new(sets: Vec<Vec<usize>>) -> Self {
        let whole = sets.len().saturating_sub(1);
        let counts =
            (0..sets.len()).map(|set| Counts::new(if set == whole { MOST_WHOLE } else { MOST_SMALL })).collect();
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|set| &sets[*set]);
        let hashes = vec![Hashes::default(); sets.last().map_or(0, Vec::len)];
        Self { sets, counts, order, hashes, rows: 0 }
    }

    /// Adds rows of the quasi-identifiers.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (hashes, column) in self.hashes.iter_mut().zip(batch.columns()) {
            let mut hashes = hashes.of(column)?.hashes;
            if let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
                let missing = hashes.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row));
                missing.for_each(|(_, hash)| *hash = NULL);
            }
            columns.push(hashes);
        }
        // What the first columns of a set give together is there already when the set before begins with them too.
        let mut mixed: Vec<Vec<u64>> = vec![vec![SEED; batch.num_rows()]];
        let mut last: &[usize] = &[];
        for &number in &self.order {
            let set = &self.sets[number];
            let common = set.iter().zip(last).take_while(|(a, b)| a == b).count();
            mixed.truncate(common + 1);
            for column in &set[common..] {
                let mix = |(hash, value): (&u64, &u64)| {
                    let next = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    next ^ (next >> 29)
                };
                let next = mixed[mixed.len() - 1].iter().zip(&columns[*column]).map(mix).collect();
                mixed.push(next);
            }
            self.counts[number].add_all(&mixed[set.len()]);
            last = set;
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.counts.iter_mut().zip(other.counts).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Who is alone on all columns, and on few.
    pub(super) fn finish(self) -> Alone {
        let rows = self.rows.max(1) as f64;
        let mut found: Vec<(Vec<usize>, f64, Option<u64>)> = self
            .sets
            .into_iter()
            .zip(self.counts)
            .map(|(set, counts)| {
                let (singles, counted) = counts.singles();
                (set, (singles / rows).min(1.0), counted)
            })
            .collect();
        let (whole, counted) = found.pop().map_or((0.0, None), |(_, share, counted)| (share, counted));
        let mut smallest: Vec<(Vec<usize>, f64)> = Vec::new();
        for (set, share, _) in found {
            let larger = smallest.iter().any(|(small, _)| small.iter().all(|column| set.contains(column)));
            if share > SINGLING_SHARE && !larger {
                smallest.push((set, share));
            }
        }
        smallest.sort_by(|a, b| a.0.len().cmp(&b.0.len()).then(b.1.total_cmp(&a.1)));
        Alone { whole, counted, smallest }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};

    use super::*;

    fn batch(columns: &[Vec<i32>]) -> RecordBatch {
        let named = columns
            .iter()
            .enumerate()
            .map(|(at, column)| (format!("c{at}"), Arc::new(Int32Array::from(column.clone())) as ArrayRef));
        RecordBatch::try_from_iter(named).unwrap()
    }

    #[test]
    fn the_smallest_sets_are_found() {
        // Columns 0 and 1 together number the rows; column 2 adds nothing.
        let rows = 10_000;
        let columns = [
            (0..rows).map(|n| n / 100).collect::<Vec<i32>>(),
            (0..rows).map(|n| n % 100).collect(),
            vec![1; rows as usize],
        ];
        let sets = sets(&[100, 100, 1], rows as u64);
        let mut singling = Singling::new(sets.clone());
        singling.add(&batch(&columns)).unwrap();
        let alone = singling.finish();
        assert_eq!(alone, Alone { whole: 1.0, counted: None, smallest: vec![(vec![0, 1], 1.0)] });
    }

    #[test]
    fn counted_in_parts_is_counted_whole_and_estimates_are_near() {
        let mut rng = fastrand::Rng::with_seed(1);
        let column: Vec<i32> = (0..400_000).map(|_| rng.i32(0..400_000)).collect();
        let mut times = HashMap::<i32, u32>::new();
        column.iter().for_each(|value| *times.entry(*value).or_default() += 1);
        let exact = times.values().filter(|times| **times == 1).count() as f64 / 400_000.0;
        let mut one = Singling::new(vec![vec![0]]);
        one.add(&batch(std::slice::from_ref(&column))).unwrap();
        let (mut left, mut right) = (Singling::new(vec![vec![0]]), Singling::new(vec![vec![0]]));
        right.add(&batch(&[column[100_000..].to_vec()])).unwrap();
        left.add(&batch(&[column[..100_000].to_vec()])).unwrap();
        right.merge(left);
        let (one, two) = (one.finish(), right.finish());
        assert_eq!(one, two);
        assert_eq!(one.counted, Some(MOST_WHOLE as u64));
        let one = one.whole;
        assert!((one - exact).abs() < 0.01, "{one} is not near {exact}");
    }

    #[test]
    fn sets_without_values_enough_are_not_looked_at() {
        assert_eq!(sets(&[2, 3, 4], 1_000_000), [vec![0, 1, 2]]);
        let found = sets(&[1000, 2, 3], 1000);
        assert_eq!(found.first(), Some(&vec![0]));
        assert_eq!(found.last(), Some(&vec![0, 1, 2]));
    }
}
