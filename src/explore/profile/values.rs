//! The distinct values of a column, by their hashes: each with its count while there are few, and beyond that how many
//! there are, from those with the smallest hashes.

use datafusion::common::HashMap;

use super::hashes::NULL;

/// Distinct values that are counted one by one.
pub(super) const MAX_COUNTED: usize = 4096;

/// Hashes that are kept of values that are not counted.
pub(super) const MAX_KEPT: usize = 1 << 16;

/// The distinct values of a column.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Few(Few),
    Many(Many),
}

impl Default for Values {
    fn default() -> Self {
        Self::Few(Few::default())
    }
}

impl Values {
    /// Adds rows by their hashes. Of a row with a hash that may be new, `text` gives the value to keep with the counts.
    pub(super) fn add_rows(&mut self, hashes: &[u64], mut text: impl FnMut(usize, u64) -> Option<String>) {
        let mut done = 0;
        if let Self::Few(few) = self {
            done = few.add_rows(hashes, &mut text);
            if done < hashes.len() {
                *self = Self::Many(std::mem::take(few).into_many());
            }
        }
        if let Self::Many(many) = self {
            many.add_rows(&hashes[done..], |row, hash| {
                text(done + row, hash);
            });
        }
    }

    /// Adds rows of a value that is not null. If it may be new, `text` gives the value to keep with the counts.
    #[inline]
    pub(super) fn count_value(&mut self, hash: u64, rows: u64, mut text: impl FnMut() -> Option<String>) {
        if let Self::Few(few) = self {
            if few.count_value(hash, rows, &mut text) {
                return;
            }
            *self = Self::Many(std::mem::take(few).into_many());
        }
        if let Self::Many(many) = self {
            many.add_rows(&[hash], |_, _| {
                text();
            });
        }
    }

    /// Whether there are many values, and all of them are kept.
    pub(super) fn are_many_and_kept(&self) -> bool {
        matches!(self, Self::Many(Many { level: 0, .. }))
    }

    /// Adds the values of another part of the column.
    pub(super) fn merge(&mut self, other: Self) {
        if let (Self::Few(mine), Self::Few(theirs)) = (&mut *self, &other)
            && mine.merge(theirs)
        {
            return;
        }
        let (mine, theirs) = (std::mem::take(self).into_many(), other.into_many());
        let (mut whole, part) = if mine.level >= theirs.level { (mine, theirs) } else { (theirs, mine) };
        whole.add_rows(&part.kept_hashes(), |_, _| {});
        *self = Self::Many(whole);
    }

    fn into_many(self) -> Many {
        match self {
            Self::Few(few) => few.into_many(),
            Self::Many(many) => many,
        }
    }

    /// Distinct values, and whether their number is estimated.
    pub(super) fn count_distinct(&self) -> (u64, bool) {
        match self {
            Self::Few(few) => (few.texts.len() as u64, false),
            Self::Many(many) => ((many.kept as u64) << many.level, many.level > 0),
        }
    }

    /// Every value with its count, commonest first; empty if there are too many.
    pub(super) fn value_counts(self) -> Vec<(u64, Option<String>)> {
        let Self::Few(few) = self else { return Vec::new() };
        let mut texts: HashMap<u64, Option<String>> = few.texts.into_iter().collect();
        let places = few.places.into_iter().filter(|place| place.hash != NULL);
        let mut counts: Vec<(u64, Option<String>, u64)> =
            places.map(|Place { hash, count }| (count, texts.remove(&hash).flatten(), hash)).collect();
        counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        counts.into_iter().map(|(count, text, _)| (count, text)).collect()
    }
}

/// Values that are counted one by one.
#[derive(Debug, Clone)]
pub(super) struct Few {
    /// The counts, each in the first free slot at or after the one that the lowest bits of its hash select. In a free
    /// slot stands the hash of null; what is counted there means nothing.
    places: Vec<Place>,
    /// The hashes in the order in which they came, with their texts.
    texts: Vec<(u64, Option<String>)>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    hash: u64,
    count: u64,
}

/// A place that is free.
const FREE: Place = Place { hash: NULL, count: 0 };

impl Default for Few {
    fn default() -> Self {
        Self { places: vec![FREE; 64], texts: Vec::new() }
    }
}

impl Few {
    /// Adds rows, all of them or those before a value that is one too many, and returns how many.
    fn add_rows(&mut self, hashes: &[u64], text: &mut impl FnMut(usize, u64) -> Option<String>) -> usize {
        for (row, &hash) in hashes.iter().enumerate() {
            if !self.count_value(hash, 1, || text(row, hash)) {
                return row;
            }
        }
        hashes.len()
    }

    /// Counts rows of a value, or of null; false when it is one too many.
    #[inline]
    fn count_value(&mut self, hash: u64, rows: u64, text: impl FnOnce() -> Option<String>) -> bool {
        let last = self.places.len() - 1;
        let mut at = hash as usize & last;
        while self.places[at].hash != hash {
            if self.places[at].hash == NULL {
                return self.enter_value(at, Place { hash, count: rows }, text);
            }
            at = (at + 1) & last;
        }
        self.places[at].count += rows;
        true
    }

    /// Enters a value that is new.
    #[cold]
    fn enter_value(&mut self, at: usize, place: Place, text: impl FnOnce() -> Option<String>) -> bool {
        if self.texts.len() == MAX_COUNTED {
            return false;
        }
        self.places[at] = place;
        self.texts.push((place.hash, text()));
        // Three places of four are free: most values are where they are looked for first.
        if self.texts.len() * 4 > self.places.len() {
            let wider = vec![FREE; self.places.len() * 2];
            let last = wider.len() - 1;
            for place in std::mem::replace(&mut self.places, wider).into_iter().filter(|place| place.hash != NULL) {
                let mut at = place.hash as usize & last;
                while self.places[at].hash != NULL {
                    at = (at + 1) & last;
                }
                self.places[at] = place;
            }
        }
        true
    }

    /// Adds other values; false when there are too many.
    fn merge(&mut self, other: &Self) -> bool {
        let mut texts: HashMap<u64, &Option<String>> = other.texts.iter().map(|(hash, text)| (*hash, text)).collect();
        let mut places = other.places.iter().filter(|place| place.hash != NULL);
        places.all(|place| self.count_value(place.hash, place.count, || texts.remove(&place.hash).cloned().flatten()))
    }

    fn into_many(self) -> Many {
        let hashes: Vec<u64> = self.texts.iter().map(|(hash, _)| *hash).collect();
        let mut many = Many { places: vec![NULL; 4 * MAX_COUNTED], kept: 0, level: 0 };
        many.add_rows(&hashes, |_, _| {});
        many
    }
}

/// Values of which only the smallest hashes are kept: those below a bound that is halved whenever they become too many.
/// In the end that is the same bound for any order of rows, and as many hashes below it.
#[derive(Debug, Clone)]
pub(super) struct Many {
    /// The kept hashes, placed as counts are.
    places: Vec<u64>,
    kept: usize,
    /// How often the bound was halved.
    level: u32,
}

impl Many {
    /// Adds rows, and reports every hash that is new.
    fn add_rows(&mut self, hashes: &[u64], mut fresh: impl FnMut(usize, u64)) {
        let mut bound = u64::MAX >> self.level;
        for (row, &hash) in hashes.iter().enumerate() {
            if hash <= bound && self.insert_hash(hash) {
                fresh(row, hash);
                if self.kept > MAX_KEPT {
                    self.level += 1;
                    self.rebuild_places(self.places.len());
                } else if self.kept * 8 > self.places.len() * 3 {
                    self.rebuild_places(self.places.len() * 2);
                }
                bound = u64::MAX >> self.level;
            }
        }
    }

    /// Keeps a hash; false when it was kept already, and of null.
    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        let last = self.places.len() - 1;
        let mut at = hash as usize & last;
        while self.places[at] != hash {
            if self.places[at] == NULL {
                self.places[at] = hash;
                self.kept += 1;
                return true;
            }
            at = (at + 1) & last;
        }
        false
    }

    fn rebuild_places(&mut self, places: usize) {
        let (kept, bound) = (self.kept_hashes(), u64::MAX >> self.level);
        self.places = vec![NULL; places];
        self.kept = 0;
        for hash in kept.into_iter().filter(|hash| *hash <= bound) {
            self.insert_hash(hash);
        }
    }

    fn kept_hashes(&self) -> Vec<u64> {
        self.places.iter().copied().filter(|hash| *hash != NULL).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in an order of their own, each as often as asked for, as hashes.
    fn hashes(distinct: u64, rows: u64) -> Vec<u64> {
        let mut rng = fastrand::Rng::with_seed(distinct);
        let values: Vec<u64> = (0..distinct).map(|_| rng.u64(..)).collect();
        (0..rows).map(|row| values[(row % distinct) as usize]).collect()
    }

    fn whole(hashes: &[u64]) -> Values {
        let mut values = Values::default();
        hashes.chunks(5000).for_each(|part| values.add_rows(part, |_, hash| Some(hash.to_string())));
        values
    }

    #[test]
    fn few_values_are_counted_and_nulls_are_not() {
        let mut rows = hashes(MAX_COUNTED as u64, 20_000);
        rows.extend([NULL; 500]);
        fastrand::Rng::with_seed(1).shuffle(&mut rows);
        let values = whole(&rows);
        assert_eq!(values.count_distinct(), (MAX_COUNTED as u64, false));
        let counts = values.value_counts();
        assert_eq!(counts.iter().map(|(count, _)| count).sum::<u64>(), 20_000);
        assert_eq!((counts[0].0, counts[MAX_COUNTED - 1].0), (5, 4));
        assert!(counts.iter().all(|(_, text)| text.is_some()));
    }

    #[test]
    fn up_to_a_bound_the_number_is_exact_and_beyond_it_is_near() {
        for (distinct, estimated) in [(4097, false), (50_000, false), (65_536, false), (65_537, true), (900_000, true)]
        {
            let mut rows = hashes(distinct, distinct + distinct / 2);
            rows.extend([NULL; 10]);
            let values = whole(&rows);
            let (found, about) = values.count_distinct();
            assert_eq!(about, estimated, "{distinct}");
            let error = (found as f64 / distinct as f64 - 1.0).abs();
            assert!(error <= if estimated { 0.02 } else { 0.0 }, "{found} for {distinct}");
            assert!(values.value_counts().is_empty());
        }
    }

    #[test]
    fn parts_in_any_order_make_the_same_whole() {
        for distinct in [10, 4096, 4500, 60_000, 70_000, 400_000] {
            let rows = hashes(distinct, 500_000);
            let one = whole(&rows);
            for parts in [2, 3, 8] {
                let mut merged = Values::default();
                rows.chunks(rows.len() / parts + 1).rev().for_each(|part| merged.merge(whole(part)));
                assert_eq!(merged.count_distinct(), one.count_distinct(), "{distinct} in {parts} parts");
                assert_eq!(merged.value_counts(), one.clone().value_counts(), "{distinct} in {parts} parts");
            }
        }
    }
}
