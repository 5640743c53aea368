//! How many rows are alone with their values, on all quasi-identifiers and on small sets of them.
//!
//! Combinations of values are chosen by their hash: those below a ceiling are counted, all others passed over. A
//! combination that is counted is counted from its first row to its last, so whether it occurs once is exact; how many
//! there are is exact while all fit, and estimated by the share that the ceiling lets through beyond.
//!
//! Nearly all rows are passed over, for every set, so that is what has to be cheap: the hash of a combination is the
//! exclusive or of the hashes of its values, and eight bits of it show whether it can be below the ceiling.

use crate::simd::{Kernel, dispatch};

/// Combinations counted of all quasi-identifiers together.
const MAX_WHOLE: usize = 1 << 16;

/// Rows of which the combinations of a small set are counted: all those of a table that has no more, and about as many
/// of a larger one.
const MAX_SMALL: usize = 1 << 15;

/// Columns of a small set, at most.
const MAX_SET_VALUES: usize = 3;

/// Sets that are looked at, at most.
const MAX_SETS: usize = 200;

/// Share of the rows beyond which a set of columns singles people out.
pub(crate) const SINGLING_SHARE: f64 = 0.05;

/// Rows that are looked at one set after the other: few enough that the hashes of a dozen columns stay at hand.
const AT_HAND: usize = 2048;

/// Rows of which it is asked together whether any of them counts.
const TOGETHER: usize = 64;

/// Counts of the combinations with the smallest hashes.
#[derive(Debug, Clone)]
struct Counts {
    /// Hashes in their order, and how many rows each has.
    kept: Vec<(u64, u32)>,
    /// Hashes of rows that are not counted yet.
    fresh: Vec<u64>,
    /// Hashes at or above this are passed over.
    ceiling: u64,
    most: usize,
}

impl Counts {
    fn new(most: usize, ceiling: u64) -> Self {
        Self { kept: Vec::new(), fresh: Vec::new(), ceiling, most }
    }

    /// Adds rows by the uppermost bits of their hashes, which are those of `before` and `last` together, and asks for the
    /// hashes of those that may count.
    #[inline(always)]
    fn add_rows(&mut self, before: &[u8], last: &[u8], hash: impl Fn(usize) -> u64) {
        let ceiling = upper_bits(self.ceiling);
        let (before, before_rest) = before.as_chunks::<TOGETHER>();
        let (last, last_rest) = last.as_chunks::<TOGETHER>();
        for (block, (before, last)) in before.iter().zip(last).enumerate() {
            let upper: [u8; TOGETHER] = std::array::from_fn(|row| before[row] ^ last[row]);
            if upper.iter().fold(false, |any, upper| any | (*upper <= ceiling)) {
                for (eight, upper) in upper.as_chunks().0.iter().enumerate() {
                    let first = block * TOGETHER + eight * upper.len();
                    rows_below(*upper, ceiling, |row| self.take_hash(hash(first + row)));
                }
            }
        }
        for (row, (before, end)) in before_rest.iter().zip(last_rest).enumerate() {
            if before ^ end <= ceiling {
                self.take_hash(hash(last.len() * TOGETHER + row));
            }
        }
        if self.fresh.len() >= 2 * self.most {
            self.flush_fresh();
        }
    }

    fn take_hash(&mut self, hash: u64) {
        if hash < self.ceiling {
            self.fresh.push(hash);
        }
    }

    /// Counts the fresh rows.
    fn flush_fresh(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_unstable();
        self.join_counts(fresh.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)));
        fresh.clear();
        self.fresh = fresh;
    }

    /// Adds counts in the order of their hashes, and keeps the smallest ones.
    fn join_counts(&mut self, others: impl Iterator<Item = (u64, u32)>) {
        let mut kept = Vec::with_capacity(self.kept.len() + others.size_hint().0);
        let (mut mine, mut others) = (self.kept.drain(..).peekable(), others.peekable());
        let most = self.most;
        let next = std::iter::from_fn(|| match (mine.peek(), others.peek()) {
            (Some((a, _)), Some((b, _))) if a == b => {
                mine.next().zip(others.next()).map(|((hash, a), (_, b))| (hash, a.saturating_add(b)))
            }
            (Some((a, _)), Some((b, _))) if a < b => mine.next(),
            (Some(_), None) => mine.next(),
            (_, Some(_)) => others.next(),
            (None, None) => None,
        });
        let ceiling = self.ceiling;
        kept.extend(next.take_while(|(hash, _)| *hash < ceiling).take(most + 1));
        drop(mine);
        if kept.len() > most {
            self.ceiling = kept[most].0;
            kept.truncate(most);
        }
        self.kept = kept;
    }

    fn merge(&mut self, mut other: Self) {
        self.flush_fresh();
        other.flush_fresh();
        self.ceiling = self.ceiling.min(other.ceiling);
        self.join_counts(other.kept.into_iter());
    }

    /// Combinations that occur once, and how many combinations were counted when these are not all of them.
    fn count_singles(mut self) -> (f64, Option<u64>) {
        self.flush_fresh();
        let singles = self.kept.iter().filter(|(_, times)| *times == 1).count() as f64;
        match self.ceiling {
            u64::MAX => (singles, None),
            ceiling => (singles * (u64::MAX as f64 / ceiling as f64), Some(self.kept.len() as u64)),
        }
    }
}

/// The sets of columns that are looked at, by the numbers of their columns: those of up to three columns that have
/// values enough to single out many, and last all columns together.
pub(super) fn choose_sets(distinct: &[u64], rows: u64) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..distinct.len()).collect();
    let mut columns = all.clone();
    columns.sort_by_key(|column| (std::cmp::Reverse(distinct[*column]), *column));
    columns.truncate(12);
    columns.sort_unstable();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..MAX_SET_VALUES.min(distinct.len().saturating_sub(1)) {
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
    sets.truncate(MAX_SETS);
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
    rows: u64,
    /// The uppermost bits of the hashes of every column's values.
    uppers: Vec<Vec<u8>>,
    /// Those of the first column of a set, of the first two, and so on.
    mixed: Vec<Vec<u8>>,
}

/// How the hashes of a column are made its own: equal values of two columns must not cancel each other out.
#[derive(Debug, Clone, Copy)]
struct Way {
    factor: u64,
    turn: u32,
}

impl Way {
    /// The way of a column. Hashes are not turned so far that their uppermost bits would come from both ends.
    fn of_column(column: usize) -> Self {
        const TURNS: usize = 49;
        Self { factor: 2 * (column / TURNS) as u64 + 1, turn: (11 * column % TURNS) as u32 }
    }

    fn own_hash(self, hash: u64) -> u64 {
        hash.wrapping_mul(self.factor).rotate_left(self.turn)
    }
}

/// The uppermost bits of a hash.
fn upper_bits(hash: u64) -> u8 {
    (hash >> (u64::BITS - u8::BITS)) as u8
}

/// Finds which of eight rows may have uppermost bits at or below a ceiling: all that do, and a few false positives.
#[inline]
fn rows_below(upper: [u8; 8], ceiling: u8, mut visit: impl FnMut(usize)) {
    const LOWEST: u64 = u64::MAX / 0xFF;
    const HIGHEST: u64 = LOWEST << 7;
    let upper = u64::from_le_bytes(upper);
    // Taking away more than there is turns the highest bit of a byte on, and one from the byte above.
    let mut below = match ceiling {
        ..0x7F => upper.wrapping_sub(LOWEST * (u64::from(ceiling) + 1)) & !upper & HIGHEST,
        _ => HIGHEST,
    };
    while below != 0 {
        visit((below.trailing_zeros() / u8::BITS) as usize);
        below &= below - 1;
    }
}

/// Who is alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alone {
    /// Share of the rows that are alone on all columns.
    pub whole: f64,
    /// Combinations that this was estimated from; `None` if all were counted.
    pub counted: Option<u64>,
    /// The smallest sets that single out too many.
    pub smallest: Vec<Few>,
}

/// A few columns on which too many are alone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Few {
    /// The numbers of the columns.
    pub columns: Vec<usize>,
    /// Share of the rows that are alone on them.
    pub share: f64,
    /// Combinations that this was estimated from; `None` if all were counted.
    pub counted: Option<u64>,
}

/// Rows at hand that are added to all sets.
struct AtHand<'a> {
    singling: &'a mut Singling,
    columns: &'a [&'a [u64]],
}

impl Kernel for AtHand<'_> {
    type Output = ();

    #[inline(always)]
    fn run_loop(self) {
        self.singling.add_at_hand(self.columns);
    }
}

impl Singling {
    /// Counts the last set and smaller ones, of a table of `rows` rows.
    pub(super) fn new(sets: Vec<Vec<usize>>, rows: u64) -> Self {
        let whole = sets.len().saturating_sub(1);
        // Whether a share is large is seen as well among a share of the combinations that is fixed beforehand.
        let share = MAX_SMALL as f64 / rows as f64;
        let ceiling = if share < 1.0 { (share * u64::MAX as f64) as u64 } else { u64::MAX };
        let counts = |set| match set == whole {
            true => Counts::new(MAX_WHOLE, u64::MAX),
            false => Counts::new(2 * MAX_SMALL, ceiling),
        };
        let counts = (0..sets.len()).map(counts).collect();
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|set| &sets[*set]);
        Self { sets, counts, order, rows: 0, uppers: Vec::new(), mixed: Vec::new() }
    }

    /// Whether these sets are among those that are counted.
    pub(super) fn counts_sets(&self, sets: &[Vec<usize>]) -> bool {
        sets.last() == self.sets.last() && sets.iter().all(|set| self.sets.contains(set))
    }

    /// Adds rows by the hashes of their values in every column.
    pub(super) fn add_rows(&mut self, columns: &[&[u64]]) {
        let rows = columns.first().map_or(0, |column| column.len());
        self.rows += rows as u64;
        for start in (0..rows).step_by(AT_HAND) {
            let rows = start..rows.min(start + AT_HAND);
            let columns: Vec<&[u64]> = columns.iter().map(|column| &column[rows.clone()]).collect();
            dispatch(AtHand { singling: self, columns: &columns });
        }
    }

    #[inline(always)]
    fn add_at_hand(&mut self, columns: &[&[u64]]) {
        let ways: Vec<Way> = (0..columns.len()).map(Way::of_column).collect();
        self.uppers.resize(columns.len(), Vec::new());
        for ((upper, column), Way { factor, turn }) in self.uppers.iter_mut().zip(columns).zip(&ways) {
            upper.clear();
            let below = u64::BITS - u8::BITS - turn;
            match factor {
                1 => upper.extend(column.iter().map(|hash| (hash >> below) as u8)),
                _ => upper.extend(column.iter().map(|hash| (hash.wrapping_mul(*factor) >> below) as u8)),
            }
        }
        // What all columns of a set but the last give together is there already when the set before begins with them too.
        self.mixed.resize(columns.len(), Vec::new());
        let mut last: &[usize] = &[];
        for &number in &self.order {
            let set = &self.sets[number];
            let Some((end, first)) = set.split_last() else { continue };
            let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            for (at, column) in first.iter().enumerate().skip(common) {
                let upper = &self.uppers[*column];
                let (before, next) = self.mixed.split_at_mut(at);
                next[0].clear();
                match before.last() {
                    Some(before) => next[0].extend(before.iter().zip(upper).map(|(a, b)| a ^ b)),
                    None => next[0].extend_from_slice(upper),
                }
            }
            let last_upper = &self.uppers[*end];
            let before = first.len().checked_sub(1).map_or(&[0; AT_HAND][..last_upper.len()], |at| &self.mixed[at]);
            let hash =
                |row: usize| set.iter().fold(0, |hash, column| hash ^ ways[*column].own_hash(columns[*column][row]));
            self.counts[number].add_rows(before, last_upper, hash);
            last = first;
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.counts.iter_mut().zip(other.counts).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Who is alone on all columns, and on few: those of these sets.
    pub(super) fn finish(self, sets: &[Vec<usize>]) -> Alone {
        let rows = self.rows.max(1) as f64;
        let counted = self.sets.into_iter().zip(self.counts).filter(|(set, _)| sets.contains(set));
        let mut found: Vec<Few> = counted
            .map(|(columns, counts)| {
                let (singles, counted) = counts.count_singles();
                Few { columns, share: (singles / rows).min(1.0), counted }
            })
            .collect();
        let (whole, counted) = found.pop().map_or((0.0, None), |whole| (whole.share, whole.counted));
        let mut smallest: Vec<Few> = Vec::new();
        for set in found {
            let within = |small: &Few| small.columns.iter().all(|column| set.columns.contains(column));
            if set.share > SINGLING_SHARE && !smallest.iter().any(within) {
                smallest.push(set);
            }
        }
        smallest.sort_by(|a, b| a.columns.len().cmp(&b.columns.len()).then(b.share.total_cmp(&a.share)));
        Alone { whole, counted, smallest }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};
    use datafusion::common::HashMap;

    use super::super::hashes::Hashes;
    use super::*;

    fn add(singling: &mut Singling, columns: &[&[i32]]) {
        let hashes = columns.iter().map(|column| {
            let mut hashes = Hashes::default();
            hashes.add_batch(&(Arc::new(Int32Array::from(column.to_vec())) as ArrayRef), false).unwrap();
            hashes
        });
        let hashes: Vec<Hashes> = hashes.collect();
        singling.add_rows(&hashes.iter().map(Hashes::last_hashes).collect::<Vec<_>>());
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
        let sets = choose_sets(&[100, 100, 1], rows as u64);
        let mut singling = Singling::new(sets.clone(), rows as u64);
        add(&mut singling, &columns.each_ref().map(Vec::as_slice));
        let alone = singling.finish(&sets);
        assert_eq!(
            alone,
            Alone { whole: 1.0, counted: None, smallest: vec![Few { columns: vec![0, 1], share: 1.0, counted: None }] }
        );
    }

    #[test]
    fn counted_in_parts_is_counted_whole_and_estimates_are_near() {
        let mut rng = fastrand::Rng::with_seed(1);
        let column: Vec<i32> = (0..400_000).map(|_| rng.i32(0..400_000)).collect();
        let mut times = HashMap::<i32, u32>::new();
        column.iter().for_each(|value| *times.entry(*value).or_default() += 1);
        let exact = times.values().filter(|times| **times == 1).count() as f64 / 400_000.0;
        let mut one = Singling::new(vec![vec![0]], 400_000);
        add(&mut one, &[&column]);
        let (mut left, mut right) = (Singling::new(vec![vec![0]], 400_000), Singling::new(vec![vec![0]], 400_000));
        add(&mut right, &[&column[100_000..]]);
        add(&mut left, &[&column[..100_000]]);
        right.merge(left);
        let (one, two) = (one.finish(&[vec![0]]), right.finish(&[vec![0]]));
        assert_eq!(one, two);
        assert_eq!(one.counted, Some(MAX_WHOLE as u64));
        let one = one.whole;
        assert!((one - exact).abs() < 0.01, "{one} is not near {exact}");
    }

    #[test]
    fn sets_without_values_enough_are_not_looked_at() {
        assert_eq!(choose_sets(&[2, 3, 4], 1_000_000), [vec![0, 1, 2]]);
        let found = choose_sets(&[1000, 2, 3], 1000);
        assert_eq!(found.first(), Some(&vec![0]));
        assert_eq!(found.last(), Some(&vec![0, 1, 2]));
    }

    /// Four columns of a table that is large enough for estimates: the first two are alike, and the third and fourth
    /// distinguish most rows together.
    fn table(rows: usize) -> [Vec<i32>; 4] {
        let mut rng = fastrand::Rng::with_seed(2);
        let first: Vec<i32> = (0..rows).map(|_| rng.i32(0..50)).collect();
        let [third, fourth] = [700, 900].map(|most| (0..rows).map(|_| rng.i32(0..most)).collect());
        [first.clone(), first, third, fourth]
    }

    #[test]
    fn shares_of_small_sets_are_near_the_truth() {
        let rows = 300_000;
        let columns = table(rows);
        let sets = choose_sets(&[50, 50, 700, 900], rows as u64);
        let mut singling = Singling::new(sets.clone(), rows as u64);
        add(&mut singling, &columns.each_ref().map(Vec::as_slice));
        let found: Vec<(Vec<usize>, Counts)> = singling.sets.into_iter().zip(singling.counts).collect();
        assert!(found.len() > 3);
        for (set, counts) in found {
            let mut times = HashMap::<Vec<i32>, u32>::new();
            (0..rows).for_each(|row| *times.entry(set.iter().map(|c| columns[*c][row]).collect()).or_default() += 1);
            let exact = times.values().filter(|times| **times == 1).count() as f64 / rows as f64;
            let (singles, counted) = counts.count_singles();
            let share = singles / rows as f64;
            // Four deviations of the number of singles among the combinations that are counted.
            let allowed = match counted {
                Some(_) => 4.0 * (exact.max(1e-5) / MAX_SMALL as f64).sqrt(),
                None => 0.0,
            };
            assert!((share - exact).abs() <= allowed, "{set:?}: {share} is not within {allowed} of {exact}");
        }
    }

    #[test]
    fn any_number_of_parts_finds_the_same() {
        let rows = 200_000;
        let columns = table(rows);
        let sets = choose_sets(&[50, 50, 700, 900], rows as u64);
        let part = |rows: std::ops::Range<usize>| {
            let mut part = Singling::new(sets.clone(), 200_000);
            // Batches of any size, as readers make them.
            for start in rows.clone().step_by(7001) {
                add(&mut part, &columns.each_ref().map(|column| &column[start..rows.end.min(start + 7001)]));
            }
            part
        };
        let whole = part(0..rows).finish(&sets);
        assert!(whole.counted.is_some() && !whole.smallest.is_empty());
        for parts in [2, 3, 8] {
            let mut merged = Singling::new(sets.clone(), rows as u64);
            for number in (0..parts).rev() {
                merged.merge(part(rows * number / parts..rows * (number + 1) / parts));
            }
            assert_eq!(merged.finish(&sets), whole, "{parts} parts");
        }
    }

    #[test]
    fn equal_columns_do_not_cancel_each_other_out() {
        let mut rng = fastrand::Rng::with_seed(4);
        let values: Vec<u64> = (0..10_000).map(|_| rng.u64(..)).collect();
        for (a, b) in [(0, 1), (0, 49), (3, 52), (10, 108)] {
            let mut mixed: Vec<u64> = values
                .iter()
                .map(|value| Way::of_column(a).own_hash(*value) ^ Way::of_column(b).own_hash(*value))
                .collect();
            mixed.sort_unstable();
            mixed.dedup();
            assert_eq!(mixed.len(), values.len(), "{a} and {b}");
        }
        for column in 0..150 {
            let way = Way::of_column(column);
            let bits = (values[0].wrapping_mul(way.factor) >> (56 - way.turn)) as u8;
            assert_eq!(upper_bits(way.own_hash(values[0])), bits, "{column}");
        }
    }

    #[test]
    fn no_row_below_a_ceiling_is_missed() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut others = 0;
        for ceiling in 0..=u8::MAX {
            for _ in 0..1000 {
                let upper: [u8; 8] = std::array::from_fn(|_| if rng.bool() { rng.u8(..) } else { ceiling });
                let mut reported = Vec::new();
                rows_below(upper, ceiling, |row| reported.push(row));
                let below: Vec<usize> = (0..8).filter(|row| upper[*row] <= ceiling).collect();
                assert!(below.iter().all(|row| reported.contains(row)), "{upper:?} {ceiling}");
                others += if ceiling < 0x7F { reported.len() - below.len() } else { 0 };
            }
        }
        assert!(others < 10_000, "{others} of a million");
    }
}
