//! Published forms that keep values as they are and break the links between them: rows are partitioned into buckets, and
//! inside each bucket every *slice* (a group of columns that stay together) is permuted on its own.
//!
//! | form | slices |
//! |---|---|
//! | [`bucket_slices`] | all quasi-identifiers stay as they are, the sensitive columns are permuted as one |
//! | [`one_by_one`] | every column for itself |
//! | [`correlation`], [`medoids`] | columns that depend on each other stay together (slicing, Li et al.) |
//!
//! [`tuples`] partitions rows for slicing, with its own check of l-diversity. All of these keep how often each value
//! occurs in a bucket, and an adversary with a public table exploits that: see [`attack`](crate::attack).

pub mod correlation;
pub mod medoids;
pub mod tuples;

/// Columns by number, grouped into slices: what stays together in a permutation. The first slice may be left in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slices {
    /// Columns of every slice.
    pub columns: Vec<Vec<usize>>,
    /// Whether the first slice stays in place; it makes no difference to what can be inferred, but rows keep their order.
    pub first_stays: bool,
}

/// Quasi-identifiers together and in place, sensitive columns together.
pub fn bucket_slices(quasi: usize, sensitive: usize) -> Slices {
    Slices { columns: vec![(0..quasi).collect(), (quasi..quasi + sensitive).collect()], first_stays: true }
}

/// Every column for itself.
pub fn one_by_one(columns: usize) -> Slices {
    Slices { columns: (0..columns).map(|column| vec![column]).collect(), first_stays: false }
}

impl Slices {
    /// For every column the row of the bucket whose value stands in each published row. `content` is a hash of every row
    /// of the bucket: what is published does not depend on the order that rows come in. `shuffle` brings rows into an order
    /// of which every one is equally likely, by a secret.
    pub fn permute_rows(&self, content: &[u64], mut shuffle: impl FnMut(&mut [u32])) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..content.len() as u32).collect();
        order.sort_by_key(|&row| (content[row as usize], row));
        let width = self.columns.iter().flatten().max().map_or(0, |last| last + 1);
        let mut places = vec![order.clone(); width];
        for slice in self.columns.iter().skip(usize::from(self.first_stays)) {
            let mut shuffled = order.clone();
            shuffle(&mut shuffled);
            slice.iter().for_each(|&column| places[column].copy_from_slice(&shuffled));
        }
        places
    }
}

/// Spreads every bit of a number over all of them.
pub fn mix_bits(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shuffle(seed: u64) -> impl FnMut(&mut [u32]) {
        let mut rng = fastrand::Rng::with_seed(seed);
        move |rows| rng.shuffle(rows)
    }

    proptest! {
        /// A10 of the spec: what a bucket holds of each slice is what it held before.
        #[test]
        fn toth_a10_marginals_are_unchanged(content in prop::collection::vec(any::<u64>(), 0..40), seed in any::<u64>()) {
            let slices = Slices { columns: vec![vec![0, 2], vec![1]], first_stays: false };
            let places = slices.permute_rows(&content, shuffle(seed));
            prop_assert_eq!(&places[0], &places[2], "columns of a slice stay together");
            for column in &places {
                let mut rows = column.clone();
                rows.sort_unstable();
                prop_assert_eq!(rows, (0..content.len() as u32).collect::<Vec<_>>());
            }
            prop_assert_eq!(&places, &slices.permute_rows(&content, shuffle(seed)));
        }

        #[test]
        fn the_order_of_arrival_makes_no_difference(content in prop::collection::hash_set(any::<u64>(), 1..40), seed in any::<u64>()) {
            let forth: Vec<u64> = content.into_iter().collect();
            let back: Vec<u64> = forth.iter().rev().copied().collect();
            let read = |content: &[u64]| -> Vec<Vec<u64>> {
                let places = one_by_one(3).permute_rows(content, shuffle(seed));
                places.iter().map(|column| column.iter().map(|&row| content[row as usize]).collect()).collect()
            };
            prop_assert_eq!(read(&forth), read(&back));
        }
    }

    #[test]
    fn bucketisation_leaves_quasi_identifiers_in_their_rows() {
        let places = bucket_slices(2, 1).permute_rows(&[30, 10, 20, 50, 40, 60, 80, 70], shuffle(1));
        assert_eq!(places[0], [1, 2, 0, 4, 3, 5, 7, 6], "by content, not by arrival");
        assert_eq!(places[0], places[1]);
        assert_ne!(places[0], places[2]);
    }
}
