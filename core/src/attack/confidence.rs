//! How many people stand at which confidence level: what `throng attack` reports. Counts only, never who.

use serde::Serialize;

use super::Belief;

/// Number of equal steps between never and always.
pub const STEPS: usize = 10;

/// Public people by how surely they are known to be in the private table. Tallies of buckets add up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConfidenceHistogram {
    /// People of the public table.
    pub people: u64,
    /// Published rows.
    pub released: u64,
    /// Surely in: re-identified members.
    pub present: u64,
    /// Surely not in.
    pub absent: u64,
    /// The others by their chance, in tenths; who has bounds counts by the upper one.
    pub steps: [u64; STEPS],
    /// People whose chance is known by bounds only, because their bucket is too large to be counted.
    pub bounded: u64,
    /// Buckets with such people.
    pub bounded_buckets: u64,
    /// Buckets, or classes of equal published values.
    pub buckets: u64,
}

impl ConfidenceHistogram {
    /// Adds a bucket by its number of published rows and the number of public people who share each belief.
    pub fn add_bucket<'a>(&mut self, released: u64, beliefs: impl IntoIterator<Item = (&'a Belief, u64)>) {
        let before = self.bounded;
        self.buckets += 1;
        self.released += released;
        beliefs.into_iter().for_each(|(belief, people)| self.add_belief(belief, people));
        self.bounded_buckets += u64::from(self.bounded > before);
    }

    /// Adds people outside every bucket: they are surely not in, unless members were left out of the release
    /// ([`add_unpublished`](Self::add_unpublished)).
    pub fn add_outside(&mut self, people: u64) {
        self.people += people;
        self.absent += people;
    }

    /// Adds people of whom a reader believes the same.
    pub fn add_belief(&mut self, belief: &Belief, people: u64) {
        self.people += people;
        self.bounded += if matches!(belief, Belief::Between(..)) { people } else { 0 };
        if belief.low().is_one() {
            self.present += people;
        } else if belief.high().is_zero() {
            self.absent += people;
        } else {
            let step = (belief.high().to_f64() * STEPS as f64) as usize;
            self.steps[step.min(STEPS - 1)] += people;
        }
    }

    /// Accounts for members of whom nothing is published: anybody who seems not to be in may be one of them, with a chance
    /// of at most their share.
    pub fn add_unpublished(&mut self, members: u64) {
        if members == 0 || self.absent == 0 {
            return;
        }
        let step = (members.min(self.absent) as u128 * STEPS as u128 / u128::from(self.absent)) as usize;
        self.steps[step.min(STEPS - 1)] += self.absent;
        self.bounded += self.absent;
        self.absent = 0;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        self.people += other.people;
        self.released += other.released;
        self.present += other.present;
        self.absent += other.absent;
        self.steps.iter_mut().zip(&other.steps).for_each(|(mine, theirs)| *mine += theirs);
        self.bounded += other.bounded;
        self.bounded_buckets += other.bounded_buckets;
        self.buckets += other.buckets;
    }

    /// Share of the members who are known to be members.
    pub fn reidentified_share(&self) -> f64 {
        ratio(self.present, self.released)
    }

    /// Share of the other public people who are known not to be members.
    pub fn ruled_out(&self) -> f64 {
        ratio(self.absent, self.people.saturating_sub(self.released))
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::fixtures;
    use crate::attack::{BUDGET, Bucket, Fraction, compute_posterior};

    #[test]
    fn toth_t2_is_wholly_disclosed() {
        let (public, private) = fixtures::p2_t2();
        let mut tally = ConfidenceHistogram::default();
        for (public, private) in [(&public[..3], &private[..2]), (&public[3..], &private[2..])] {
            let bucket = Bucket::new(public, private);
            let found = compute_posterior(&bucket, BUDGET).unwrap();
            tally.add_bucket(private.len() as u64, found.row_beliefs(&bucket).map(|belief| (belief, 1)));
        }
        assert_eq!((tally.reidentified_share(), tally.ruled_out(), tally.people), (1.0, 1.0, 6));
    }

    #[test]
    fn people_are_counted_once_at_their_level() {
        let mut tally = ConfidenceHistogram::default();
        let half = Belief::Exact(Fraction::from((1, 2)));
        let bounds = Belief::Between(Fraction::zero(), Fraction::one());
        tally.add_bucket(5, [(&half, 4), (&bounds, 6)]);
        tally.add_outside(3);
        let mut twice = tally.clone();
        twice.merge(&tally);
        assert_eq!((tally.steps[5], tally.steps[9], tally.bounded, tally.absent, tally.present), (4, 6, 6, 3, 0));
        assert_eq!((twice.people, twice.bounded_buckets, twice.buckets), (26, 2, 2));
    }

    #[test]
    fn members_who_were_left_out_are_among_those_who_seem_to_be() {
        let mut tally = ConfidenceHistogram::default();
        tally.add_outside(40);
        let before = tally.clone();
        tally.add_unpublished(0);
        assert_eq!(tally, before);
        tally.add_unpublished(10);
        assert_eq!((tally.absent, tally.steps[2], tally.bounded, tally.people), (0, 40, 40, 40));
        tally.add_unpublished(10);
        assert_eq!(tally.steps[2], 40, "nobody is counted twice");
    }
}
