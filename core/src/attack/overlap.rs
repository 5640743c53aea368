//! A whole release of permuted buckets against a public table: what a reader believes of everybody.
//!
//! Buckets that share nobody are attacked one by one ([`count`](super::count)). Those that some people fit several of are
//! attacked together ([`joint`](super::joint)); the union of Toth, 4.1.2, forgets which counts belong to which bucket and
//! can only know less. Where that is too much work, people get bounds: of those who have a value in a bucket, no more can
//! be members than it was published there, and no fewer than it was published beyond what all others could have filled.

use std::collections::BTreeMap;

use super::joint::{Crowd, joint_crowds};
use super::{Belief, Bucket, Fraction, compute_posterior};

/// How much work an attack may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// States that the count of one bucket may hold.
    pub bucket: usize,
    /// States that all counts may hold together.
    pub whole: usize,
    /// Choices that may be tried for buckets that overlap.
    pub joint: usize,
}

impl Default for Budget {
    /// Minutes for a million buckets at the most.
    fn default() -> Self {
        Self { bucket: 1 << 14, whole: 1 << 25, joint: 1 << 16 }
    }
}

/// What a reader believes about all crowds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beliefs {
    /// Belief per crowd.
    pub crowds: Vec<Belief>,
    /// Published rows that fit nobody, or that no choice of people explains.
    pub unmatched: u64,
    /// People in buckets that overlap and could be attacked together.
    pub joint: u64,
}

/// Attacks buckets of which the published rows are known, and column by column how often each value was published.
pub fn attack_overlaps(
    sizes: &[u64],
    published: impl Fn(usize) -> Vec<BTreeMap<u32, u64>>,
    crowds: &[Crowd],
    effort: Budget,
) -> Beliefs {
    let mut found = Beliefs { crowds: vec![Belief::Exact(Fraction::zero()); crowds.len()], ..Beliefs::default() };
    let mut left = effort.whole;
    for component in connected_components(sizes.len(), crowds) {
        let shown: BTreeMap<usize, Vec<BTreeMap<u32, u64>>> =
            component.buckets.iter().map(|&bucket| (bucket, published(bucket))).collect();
        let of = |&crowd: &usize| &crowds[crowd];
        let bounds = |found: &mut Beliefs| {
            let bound = bound_crowds(&shown, component.crowds.iter().map(of));
            component.crowds.iter().zip(bound).for_each(|(&crowd, belief)| found.crowds[crowd] = belief);
        };
        let missing = count_unmatched(&shown, component.crowds.iter().map(of));
        if missing > 0 {
            found.unmatched += missing;
            bounds(&mut found);
            continue;
        }
        if let [bucket] = component.buckets[..] {
            let values = |&crowd: &usize| (crowds[crowd].fits[0].1.clone(), crowds[crowd].people);
            let mut order = component.crowds.clone();
            order.sort_by_key(|&crowd| values(&crowd));
            let classes = order.iter().map(values).collect();
            let columns = shown.into_values().next().unwrap_or_default();
            let allowed = effort.bucket.min(left);
            match compute_posterior(&Bucket::of_classes(sizes[bucket] as usize, columns, classes), allowed) {
                Some(believed) => {
                    let bounded = believed.classes.iter().any(|belief| matches!(belief, Belief::Between(..)));
                    left -= if bounded { allowed } else { order.len().min(left) };
                    order.iter().zip(believed.classes).for_each(|(&crowd, belief)| found.crowds[crowd] = belief);
                }
                None => found.unmatched += sizes[bucket],
            }
            continue;
        }
        let place: BTreeMap<usize, usize> = component.buckets.iter().copied().zip(0..).collect();
        let renumbered = |&crowd: &usize| Crowd {
            people: crowds[crowd].people,
            fits: crowds[crowd].fits.iter().map(|(bucket, values)| (place[bucket], values.clone())).collect(),
        };
        let together: Vec<Crowd> = component.crowds.iter().map(renumbered).collect();
        let allowed = effort.joint.min(left);
        match joint_crowds(&together, shown.values().cloned().collect(), allowed) {
            Some((_, shares)) => {
                for (&crowd, share) in component.crowds.iter().zip(shares) {
                    found.crowds[crowd] = Belief::Exact(share);
                    found.joint += crowds[crowd].people;
                }
            }
            None => {
                left -= allowed;
                bounds(&mut found);
            }
        }
    }
    found
}

/// Buckets that hang together by people who fit several, and everybody who fits one of them.
struct Component {
    buckets: Vec<usize>,
    crowds: Vec<usize>,
}

fn connected_components(buckets: usize, crowds: &[Crowd]) -> Vec<Component> {
    fn find_root(root: &mut [usize], mut at: usize) -> usize {
        while root[at] != at {
            root[at] = root[root[at]];
            at = root[at];
        }
        at
    }
    let mut root: Vec<usize> = (0..buckets).collect();
    for pair in crowds.iter().flat_map(|crowd| crowd.fits.windows(2)) {
        let (a, b) = (find_root(&mut root, pair[0].0), find_root(&mut root, pair[1].0));
        root[a.max(b)] = a.min(b);
    }
    let mut found: BTreeMap<usize, Component> = BTreeMap::new();
    for bucket in 0..buckets {
        let home = find_root(&mut root, bucket);
        let component = || Component { buckets: Vec::new(), crowds: Vec::new() };
        found.entry(home).or_insert_with(component).buckets.push(bucket);
    }
    for (number, crowd) in crowds.iter().enumerate() {
        if let Some((bucket, _)) = crowd.fits.first() {
            found.entry(find_root(&mut root, *bucket)).and_modify(|component| component.crowds.push(number));
        }
    }
    found.into_values().collect()
}

/// People by bucket, column and value.
fn count_supply<'a>(crowds: impl Iterator<Item = &'a Crowd>) -> BTreeMap<(usize, usize, u32), u64> {
    let mut supply = BTreeMap::new();
    for crowd in crowds {
        for (bucket, values) in &crowd.fits {
            for (column, &value) in values.iter().enumerate() {
                *supply.entry((*bucket, column, value)).or_default() += crowd.people;
            }
        }
    }
    supply
}

type Shown = BTreeMap<usize, Vec<BTreeMap<u32, u64>>>;

/// Published rows beyond the people who could have filled them: per bucket by the column that lacks most.
fn count_unmatched<'a>(shown: &Shown, crowds: impl Iterator<Item = &'a Crowd>) -> u64 {
    let supply = count_supply(crowds);
    let of_column = |bucket: usize, column: usize, counts: &BTreeMap<u32, u64>| -> u64 {
        let lacking = |(value, need): (&u32, &u64)| {
            need.saturating_sub(supply.get(&(bucket, column, *value)).copied().unwrap_or(0))
        };
        counts.iter().map(lacking).sum()
    };
    let of_bucket = |(bucket, columns): (&usize, &Vec<BTreeMap<u32, u64>>)| {
        columns.iter().enumerate().map(|(column, counts)| of_column(*bucket, column, counts)).max().unwrap_or(0)
    };
    shown.iter().map(of_bucket).sum()
}

/// Bounds on every crowd.
fn bound_crowds<'a>(shown: &Shown, crowds: impl Iterator<Item = &'a Crowd> + Clone) -> Vec<Belief> {
    let supply = count_supply(crowds.clone());
    let bound = |crowd: &Crowd| {
        let (mut least, mut most) = (0, 0);
        for (bucket, values) in &crowd.fits {
            let need = |(column, value): (usize, &u32)| shown[bucket][column].get(value).copied().unwrap_or(0);
            most += values.iter().enumerate().map(need).min().unwrap_or(crowd.people);
            let must = |(column, value): (usize, &u32)| {
                let others = supply[&(*bucket, column, *value)] - crowd.people;
                need((column, value)).saturating_sub(others)
            };
            least += values.iter().enumerate().map(must).max().unwrap_or(0);
        }
        let (least, most) = (least.min(crowd.people), most.min(crowd.people));
        let share = |part: u64| Fraction::from((part, crowd.people));
        if least == most { Belief::Exact(share(least)) } else { Belief::Between(share(least), share(most)) }
    };
    crowds.map(bound).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attack::fixtures;
    use crate::attack::worlds::enumerate_worlds;

    fn counts(rows: &[Vec<u32>]) -> Vec<BTreeMap<u32, u64>> {
        Bucket::new(&[], rows).published
    }

    fn rows(rows: &[[u32; 2]]) -> Vec<Vec<u32>> {
        rows.iter().map(|row| row.to_vec()).collect()
    }

    /// Everybody of a public table as a crowd of one, in the buckets whose zips hold theirs.
    fn by_zip(public: &[Vec<u32>], zips: &[std::ops::RangeInclusive<u32>]) -> Vec<Crowd> {
        let fits = |row: &Vec<u32>| {
            let held = zips.iter().enumerate().filter(|(_, zips)| zips.contains(&row[0]));
            Crowd { people: 1, fits: held.map(|(bucket, _)| (bucket, row.clone())).collect() }
        };
        public.iter().map(fits).collect()
    }

    #[test]
    fn toth_fig_3_9_by_the_joint_attack() {
        let (public, private) = fixtures::p1_t1();
        let (public, private) = (rows(&public), rows(&private));
        let parts = [&private[..4], &private[4..]];
        let crowds = by_zip(&public, &[5370..=5371, 5371..=5373]);
        let found = attack_overlaps(&[4, 4], |bucket| counts(parts[bucket]), &crowds, Budget::default());
        let shares: Vec<f64> = found.crowds.iter().map(|belief| belief.low().to_f64()).collect();
        // Elizabeth, Clara, Julie; Ada, Sara, Bob, Taylor, Ashley, Amanda; Jesper.
        assert_eq!(shares[3..], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        assert!(shares[..3].iter().all(|share| (share - 2.0 / 3.0).abs() < 1e-12));
        assert_eq!((found.unmatched, found.joint), (0, 10));
        let poor = Budget { joint: 3, ..Budget::default() };
        let bounded = attack_overlaps(&[4, 4], |bucket| counts(parts[bucket]), &crowds, poor);
        for (bounds, exact) in bounded.crowds.iter().zip(&found.crowds) {
            assert!(bounds.low() <= exact.low() && exact.high() <= bounds.high());
        }
    }

    #[test]
    fn rows_of_strangers_are_counted() {
        let crowds = [Crowd { people: 3, fits: vec![(0, vec![1, 1])] }];
        let found = attack_overlaps(&[2], |_| counts(&[vec![1, 1], vec![2, 1]]), &crowds, Budget::default());
        assert_eq!(found.unmatched, 1);
    }

    proptest! {
        /// A7 of the spec: whole tuples reveal the same whatever the buckets are, even if these separate equal tuples.
        #[test]
        fn toth_a7_bucketisation_tells_the_same_in_any_buckets(people in prop::collection::vec((0..6_u32, prop::option::of(0..4_usize)), 1..30)) {
            let mut shown = vec![BTreeMap::<u32, u64>::new(); 4];
            let mut share: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for &(tuple, bucket) in &people {
                let of_tuple = share.entry(tuple).or_default();
                of_tuple.1 += 1;
                if let Some(bucket) = bucket {
                    *shown[bucket].entry(tuple).or_default() += 1;
                    of_tuple.0 += 1;
                }
            }
            let fits = |tuple: u32| (0..4).filter(|&bucket| shown[bucket].contains_key(&tuple)).map(|bucket| (bucket, vec![tuple])).collect();
            let crowds: Vec<Crowd> = share.iter().map(|(&tuple, &(_, people))| Crowd { people, fits: fits(tuple) }).collect();
            let sizes: Vec<u64> = shown.iter().map(|counts| counts.values().sum()).collect();
            for joint in [0, 1 << 16] {
                let effort = Budget { joint, ..Budget::default() };
                let found = attack_overlaps(&sizes, |bucket| vec![shown[bucket].clone()], &crowds, effort);
                for (belief, &counts) in found.crowds.iter().zip(share.values()) {
                    prop_assert_eq!(belief, &Belief::Exact(Fraction::from(counts)));
                }
            }
        }

        /// Buckets apart: as trying every subset says, and as counting each alone says.
        #[test]
        fn buckets_apart_are_attacked_exactly(codes in prop::collection::vec((0..3_u32, 0..3_u32), 1..10), inside in any::<u16>(), whole in any::<bool>()) {
            let public: Vec<Vec<u32>> = codes.iter().map(|&(a, b)| vec![a, b]).collect();
            let split = |row: &Vec<u32>| usize::from(!whole && row[0] > 0);
            let mut expected = vec![Fraction::zero(); public.len()];
            let mut shown = Vec::new();
            for bucket in 0..2 {
                let of: Vec<usize> = (0..public.len()).filter(|&row| split(&public[row]) == bucket).collect();
                let all: Vec<Vec<u32>> = of.iter().map(|&row| public[row].clone()).collect();
                let released: Vec<Vec<u32>> = of.iter().filter(|&&row| inside >> row & 1 == 1).map(|&row| public[row].clone()).collect();
                if let Some((_, shares)) = enumerate_worlds(&Bucket::new(&all, &released)) {
                    of.iter().zip(shares).for_each(|(&row, share)| expected[row] = share);
                }
                shown.push(released);
            }
            let crowds: Vec<Crowd> = public.iter().map(|row| Crowd { people: 1, fits: vec![(split(row), row.clone())] }).collect();
            let sizes: Vec<u64> = shown.iter().map(|rows| rows.len() as u64).collect();
            // A bucket without rows is not published.
            let columns = |bucket: usize| if shown[bucket].is_empty() { vec![BTreeMap::new(); 2] } else { counts(&shown[bucket]) };
            let found = attack_overlaps(&sizes, columns, &crowds, Budget::default());
            prop_assert_eq!(found.unmatched, 0);
            for (belief, share) in found.crowds.iter().zip(&expected) {
                prop_assert_eq!(belief, &Belief::Exact(share.clone()));
            }
        }
    }
}
