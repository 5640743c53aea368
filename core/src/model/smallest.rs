//! An even sample of different things: those with the smallest hashes.
//!
//! It is the same for any order of rows and any split into parts, and whatever was let go says below which hash all are kept.

use std::collections::BTreeMap;

/// Lets go of everything but the `most` with the smallest hashes. Returns the smallest hash that was let go: all below it are
/// kept.
pub fn keep_smallest<V>(kept: &mut BTreeMap<u64, V>, most: usize) -> Option<u64> {
    let mut ceiling = None;
    while kept.len() > most {
        ceiling = kept.pop_last().map(|(hash, _)| hash);
    }
    ceiling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_stay_and_the_ceiling_is_returned() {
        let mut kept: BTreeMap<u64, char> = [(30, 'c'), (10, 'a'), (40, 'd'), (20, 'b')].into();
        assert_eq!(keep_smallest(&mut kept, 4), None, "nothing is let go that fits");
        assert_eq!(keep_smallest(&mut kept, 2), Some(30));
        assert_eq!(kept, [(10, 'a'), (20, 'b')].into());
        assert_eq!(keep_smallest(&mut kept, 0), Some(10));
        assert!(kept.is_empty());
    }

    /// Parts that were cut by themselves, joined and cut again, are the whole that was cut once.
    #[test]
    fn parts_in_any_order_make_the_same_sample() {
        let mut rng = fastrand::Rng::with_seed(5);
        let hashes: Vec<u64> = (0..500).map(|_| rng.u64(..)).collect();
        let mut whole: BTreeMap<u64, ()> = hashes.iter().map(|hash| (*hash, ())).collect();
        keep_smallest(&mut whole, 40);
        for size in [7, 130, 499] {
            let mut joined = BTreeMap::new();
            for part in hashes.chunks(size).rev() {
                let mut part: BTreeMap<u64, ()> = part.iter().map(|hash| (*hash, ())).collect();
                keep_smallest(&mut part, 40);
                joined.extend(part);
                keep_smallest(&mut joined, 40);
            }
            assert_eq!(joined, whole);
        }
    }
}
