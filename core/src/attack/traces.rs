//! Membership measures that assume no public table (Li et al., He et al.); the thesis of Toth shows with
//! [`worlds`](super::worlds) that they say little about an adversary who has one.
//!
//! A bucket *matches* a tuple when it holds the tuple's values column by column. A *fake* tuple is one that was not
//! there and matches all the same.

use std::collections::{BTreeMap, BTreeSet};

/// How many buckets match the tuples that were there, and those that were not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// Original tuples by the number of buckets that match them.
    pub originals: BTreeMap<usize, u64>,
    /// Other tuples with a matching bucket, by their number.
    pub fakes: BTreeMap<usize, u64>,
}

impl Traces {
    /// Looks at every tuple of a public table, in which `inside` were there. Each bucket is its published rows; columns
    /// are groups of attributes that were permuted together.
    pub fn new(public: &[Vec<u32>], inside: &[bool], buckets: &[Vec<Vec<u32>>], columns: &[Vec<usize>]) -> Self {
        let pick = |row: &[u32], column: &[usize]| column.iter().map(|&at| row[at]).collect::<Vec<_>>();
        let held: Vec<Vec<BTreeSet<Vec<u32>>>> = buckets
            .iter()
            .map(|rows| columns.iter().map(|column| rows.iter().map(|row| pick(row, column)).collect()).collect())
            .collect();
        let mut traces = Self::default();
        for (row, inside) in public.iter().zip(inside) {
            let matches = |bucket: &&Vec<BTreeSet<Vec<u32>>>| {
                bucket.iter().zip(columns).all(|(held, column)| held.contains(&pick(row, column)))
            };
            let matching = held.iter().filter(matches).count();
            if *inside {
                *traces.originals.entry(matching).or_default() += 1;
            } else if matching > 0 {
                *traces.fakes.entry(matching).or_default() += 1;
            }
        }
        traces
    }

    /// Number of fake tuples; 0 means that membership is certain.
    pub fn fake_tuples(&self) -> u64 {
        self.fakes.values().sum()
    }
}

/// The bound of He et al. on the chance of a tuple in an anatomised and permuted group: the product over the attributes
/// of the share of the group's rows that hold its value.
pub fn gamma_bound(tuple: &[u32], group: &[Vec<u32>]) -> f64 {
    let share = |(column, value): (usize, &u32)| {
        group.iter().filter(|row| row[column] == *value).count() as f64 / group.len().max(1) as f64
    };
    tuple.iter().enumerate().map(share).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::fixtures;

    #[test]
    fn toth_3_1_2_2_gamma_of_sara_is_a_quarter() {
        let (_, private) = fixtures::p2_t2();
        let group: Vec<Vec<u32>> = private[..2].iter().map(|row| row.to_vec()).collect();
        assert_eq!(gamma_bound(&[5371, 27], &group), 0.25);
    }

    #[test]
    fn ada_is_a_fake_tuple_of_t2() {
        let rows = |rows: &[[u32; 2]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let (public, private) = fixtures::p2_t2();
        let buckets = [rows(&private[..2]), rows(&private[2..])];
        let inside = [true, false, true, true, false, true];
        let apart = Traces::new(&rows(&public), &inside, &buckets, &[vec![0], vec![1]]);
        assert_eq!((apart.originals, apart.fakes), (BTreeMap::from([(1, 4)]), BTreeMap::from([(1, 1)])));
        let together = Traces::new(&rows(&public), &inside, &buckets, &[vec![0, 1]]);
        assert_eq!(together.fake_tuples(), 0, "bucketisation hides nobody");
    }
}
