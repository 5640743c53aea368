//! Attacks on buckets whose ranges overlap, so that a person may be in one of several.
//!
//! [`union_buckets`] throws the buckets together (Toth, 4.1.2). That is an attack, but not a proof of safety: it forgets which
//! counts belong to which bucket. [`joint_posterior`] keeps them apart: a world puts different people into every bucket, each
//! bucket showing its own counts; worlds with the same members are one.

use std::collections::{BTreeMap, HashSet};

use super::{Bucket, Fraction};

/// One of several overlapping buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The public rows within the bucket's ranges, by number.
    pub eligible: Vec<usize>,
    /// The published rows.
    pub released: Vec<Vec<u32>>,
}

/// The union of the buckets as one bucket, and the public rows that it holds, in the order of its rows.
pub fn union_buckets(public: &[Vec<u32>], parts: &[Part]) -> (Bucket, Vec<usize>) {
    let mut eligible: Vec<usize> = parts.iter().flat_map(|part| &part.eligible).copied().collect();
    eligible.sort_unstable();
    eligible.dedup();
    let released: Vec<Vec<u32>> = parts.iter().flat_map(|part| part.released.iter().cloned()).collect();
    let rows: Vec<Vec<u32>> = eligible.iter().map(|&row| public[row].clone()).collect();
    (Bucket::new(&rows, &released), eligible)
}

/// People who are alike to a reader: how many, and which buckets may hold them, each with their values there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    /// People.
    pub people: u64,
    /// Buckets by number, and the value of these people in every column of the bucket.
    pub fits: Vec<(usize, Vec<u32>)>,
}

/// Number of sets of members that fit all buckets at once, and the chance of every public row; `None` if no set fits or
/// there are more than `budget` choices to look at.
pub fn joint_posterior(public: &[Vec<u32>], parts: &[Part], budget: usize) -> Option<(u64, Vec<Fraction>)> {
    let mut classes: BTreeMap<(Vec<usize>, &[u32]), Vec<usize>> = BTreeMap::new();
    for (row, values) in public.iter().enumerate() {
        let within = (0..parts.len()).filter(|&part| parts[part].eligible.contains(&row)).collect();
        classes.entry((within, values)).or_default().push(row);
    }
    let crowd = |((within, values), rows): (&(Vec<usize>, &[u32]), &Vec<usize>)| Crowd {
        people: rows.len() as u64,
        fits: within.iter().map(|&part| (part, values.to_vec())).collect(),
    };
    let crowds: Vec<Crowd> = classes.iter().map(crowd).collect();
    let published = parts.iter().map(|part| Bucket::new(&[], &part.released).published).collect();
    let (worlds, of_crowds) = joint_crowds(&crowds, published, budget)?;
    let mut shares = vec![Fraction::zero(); public.len()];
    for (rows, share) in classes.values().zip(of_crowds) {
        rows.iter().for_each(|&row| shares[row] = share.clone());
    }
    Some((worlds, shares))
}

/// The same for crowds, given how often each value was published in every column of every bucket.
pub fn joint_crowds(
    crowds: &[Crowd],
    published: Vec<Vec<BTreeMap<u32, u64>>>,
    budget: usize,
) -> Option<(u64, Vec<Fraction>)> {
    let mut search = Search { crowds, missing: published, members: Vec::new(), found: HashSet::new(), budget };
    search.choose_members()?;
    let mut worlds = 0_u64;
    let mut holding = vec![0_u128; crowds.len()];
    for members in &search.found {
        let ways = |(&chosen, crowd): (&u64, &Crowd)| binomial_coefficient(crowd.people, chosen);
        let sets: u64 = members.iter().zip(crowds).map(ways).try_fold(1, |all: u64, ways| all.checked_mul(ways?))?;
        worlds = worlds.checked_add(sets)?;
        for ((chosen, holding), crowd) in members.iter().zip(&mut holding).zip(crowds) {
            // Of the sets, `chosen / people` hold a given one of these people; the division is exact.
            *holding += u128::from(sets) * u128::from(*chosen) / u128::from(crowd.people.max(1));
        }
    }
    (worlds > 0).then(|| (worlds, holding.into_iter().map(|part| Fraction::new(part, worlds)).collect()))
}

struct Search<'a> {
    crowds: &'a [Crowd],
    /// What is still missing, per bucket and column.
    missing: Vec<Vec<BTreeMap<u32, u64>>>,
    /// People chosen of each crowd so far.
    members: Vec<u64>,
    found: HashSet<Vec<u64>>,
    budget: usize,
}

impl<'a> Search<'a> {
    fn choose_members(&mut self) -> Option<()> {
        self.budget = self.budget.checked_sub(1)?;
        let crowds = self.crowds;
        let Some(crowd) = crowds.get(self.members.len()) else {
            if self.missing.iter().flatten().all(|counts| counts.values().all(|&count| count == 0)) {
                self.found.insert(self.members.clone());
            }
            return Some(());
        };
        self.divide_crowd(&crowd.fits, crowd.people, 0)
    }

    /// Divides up to `people` of a crowd among the buckets that may hold it.
    fn divide_crowd(&mut self, fits: &'a [(usize, Vec<u32>)], people: u64, chosen: u64) -> Option<()> {
        let Some(((part, values), others)) = fits.split_first() else {
            self.members.push(chosen);
            let done = self.choose_members();
            self.members.pop();
            return done;
        };
        let left = |counts: &BTreeMap<u32, u64>, value: &u32| counts.get(value).copied().unwrap_or(0);
        let counts = self.missing[*part].iter().zip(values).map(|(counts, value)| left(counts, value));
        let most = counts.min().unwrap_or(0);
        for take in 0..=most.min(people) {
            self.change_missing(*part, values, |count| count - take);
            let done = self.divide_crowd(others, people - take, chosen + take);
            self.change_missing(*part, values, |count| count + take);
            done?;
        }
        Some(())
    }

    fn change_missing(&mut self, part: usize, values: &[u32], change: impl Fn(u64) -> u64) {
        for (counts, value) in self.missing[part].iter_mut().zip(values) {
            counts.entry(*value).and_modify(|count| *count = change(*count));
        }
    }
}

/// Ways to choose `k` of `n`; `None` if they are too many to count.
fn binomial_coefficient(n: u64, k: u64) -> Option<u64> {
    let ways =
        (0..k.min(n - k)).try_fold(1_u128, |ways, at| Some(ways.checked_mul(u128::from(n - at))? / u128::from(at + 1)));
    ways.and_then(|ways| u64::try_from(ways).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::fixtures::{self, shares};
    use crate::attack::worlds::enumerate_worlds;

    /// Fig. 3.9: T1 by relaxed Mondrian on zip, Sara in the first bucket and Bob in the second.
    fn fig_3_9() -> (Vec<Vec<u32>>, [Part; 2]) {
        let (public, private) = fixtures::p1_t1();
        let rows = |rows: &[[u32; 2]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let (public, private) = (rows(&public), rows(&private));
        let eligible = |zips: std::ops::RangeInclusive<u32>| {
            (0..public.len()).filter(|&row| zips.contains(&public[row][0])).collect::<Vec<_>>()
        };
        let parts = [
            Part { eligible: eligible(5370..=5371), released: private[..4].to_vec() },
            Part { eligible: eligible(5371..=5373), released: private[4..].to_vec() },
        ];
        (public, parts)
    }

    #[test]
    fn toth_4_1_2_union_of_overlapping_buckets() {
        let (public, parts) = fig_3_9();
        assert_eq!((parts[0].eligible.len(), parts[1].eligible.len()), (6, 6));
        let (bucket, rows) = union_buckets(&public, &parts);
        assert_eq!(rows, (0..10).collect::<Vec<_>>());
        let (worlds, found) = enumerate_worlds(&bucket).unwrap();
        assert_eq!((worlds, &found[4]), (5, &Fraction::one()), "Sara is in for sure");
        assert_eq!((&found[3], &found[9]), (&(3, 5).into(), &(2, 5).into()));
    }

    #[test]
    fn toth_joint_attack_learns_more_than_the_union() {
        let (public, parts) = fig_3_9();
        let (sets, found) = joint_posterior(&public, &parts, 100_000).unwrap();
        assert_eq!(sets, 3);
        // Elizabeth, Clara, Julie; Ada, Sara, Bob, Taylor, Ashley, Amanda; Jesper.
        assert_eq!(found, shares(&[&[(2, 3); 3][..], &[(1, 1); 6], &[(0, 1)]].concat()));
        assert_eq!(joint_posterior(&public, &parts, 10), None, "the budget is kept");
    }

    #[test]
    fn buckets_apart_are_attacked_as_one_by_one() {
        let (public, private) = fixtures::p2_t2();
        let rows = |rows: &[[u32; 2]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let parts = [
            Part { eligible: vec![0, 1, 2], released: rows(&private[..2]) },
            Part { eligible: vec![3, 4, 5], released: rows(&private[2..]) },
        ];
        let (_, found) = joint_posterior(&rows(&public), &parts, 100_000).unwrap();
        assert_eq!(found, shares(&[(1, 1), (0, 1), (1, 1), (1, 1), (0, 1), (1, 1)]));
    }
}
