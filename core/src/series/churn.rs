//! Who is there on which night: subjects who come and leave, to simulate a series before it is published.
//!
//! As many come every night as leave on average, and everybody is as likely to leave as everybody else, however long they have
//! been there. Who is there on which night follows from the seed and the number of the subject alone. Nobody comes back, and
//! nobody changes.

/// Subjects who come and leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Churn {
    seed: u64,
    subjects: u64,
    share: f64,
}

impl Churn {
    /// So many subjects, of whom a share leaves every night while as many come.
    pub fn new(seed: u64, subjects: u64, share: f64) -> Self {
        Self { seed, subjects, share: share.clamp(0.0, 1.0) }
    }

    /// As many of `rows` subjects at first that the others suffice for those who come later.
    pub fn within(seed: u64, rows: u64, share: f64, nights: u64) -> Self {
        let later = nights.saturating_sub(1) as f64 * share.clamp(0.0, 1.0);
        let mut subjects = (rows as f64 / (1.0 + later)) as u64;
        while subjects > 0 && Self::new(seed, subjects, share).subjects_until(nights.saturating_sub(1)) > rows {
            subjects -= 1;
        }
        Self::new(seed, subjects, share)
    }

    /// Subjects of the first night.
    pub fn subjects(&self) -> u64 {
        self.subjects
    }

    /// Subjects who come every night but the first.
    pub fn newcomers(&self) -> u64 {
        (self.subjects as f64 * self.share).round() as u64
    }

    /// Subjects who have come by a night; the first is 0.
    pub fn subjects_until(&self, night: u64) -> u64 {
        self.subjects + night * self.newcomers()
    }

    /// The night on which somebody comes.
    pub fn arrival(&self, subject: u64) -> u64 {
        match subject.checked_sub(self.subjects) {
            None => 0,
            Some(later) => 1 + later / self.newcomers().max(1),
        }
    }

    /// Whether somebody is there on a night.
    pub fn is_there(&self, subject: u64, night: u64) -> bool {
        let came = self.arrival(subject);
        let drawn = fastrand::Rng::with_seed(self.seed ^ subject.wrapping_mul(0x9e37_79b9_7f4a_7c15)).f64();
        // The number of nights until one comes on which a share of all leaves.
        let stay =
            if self.share > 0.0 { 1.0 + ((1.0 - drawn).ln() / (1.0 - self.share).ln()).floor() } else { f64::MAX };
        (came..).contains(&night) && ((night - came) as f64) < stay
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn as_many_come_as_leave() {
        let churn = Churn::new(1, 2000, 0.05);
        let there = |night| -> BTreeSet<u64> {
            (0..churn.subjects_until(night)).filter(|subject| churn.is_there(*subject, night)).collect()
        };
        let mut before = there(0);
        assert_eq!(before.len(), 2000);
        for night in 1..10 {
            let now = there(night);
            let (came, left) = (now.difference(&before).count(), before.difference(&now).count());
            assert!(came == 100 && (60..150).contains(&left), "night {night}: {came} came, {left} left");
            assert!(now.difference(&before).all(|subject| churn.arrival(*subject) == night));
            before = now;
        }
        assert!((1800..2200).contains(&before.len()), "{}", before.len());
        assert!((0..50).all(|subject| Churn::new(1, 50, 0.0).is_there(subject, 3)));
    }

    #[test]
    fn a_table_has_rows_for_all_who_come() {
        for (rows, share, nights) in [(1000, 0.01, 14), (1000, 0.5, 30), (10, 1.0, 3), (7, 0.0, 5), (0, 0.1, 2)] {
            let churn = Churn::within(3, rows, share, nights);
            assert!(churn.subjects_until(nights - 1) <= rows, "{churn:?}");
            assert!(rows < 10 || churn.subjects() > 0, "{churn:?}");
        }
    }
}
