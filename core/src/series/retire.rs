//! What becomes of a cohort some of whose rows are stale.
//!
//! 1. A cohort whose share of stale rows is below `retire_at` stays.
//! 2. It is split if, of every history of its members, the part that is gone and the part that is live are each empty or meet
//!    the rules on the values that were published of them, and the live parts also on the values that they have now.
//! 3. Otherwise it is dissolved, if the owner allows that: it leaves as a whole, and nobody of it comes back.
//! 4. Otherwise it stays.
//!
//! A history that is not divided needs no look at what was published of it: its members met the rules together before, and
//! still are together.

use std::collections::BTreeMap;

/// What a member of a cohort is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// In the source as it was published.
    Live,
    /// In the source with other values.
    Changed,
    /// Not in the source.
    Gone,
}

/// A member of a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The number of its history: members of one history have one number.
    pub history: u32,
    /// What it is now.
    pub presence: Presence,
    /// Whether it was published with other values before it came into this cohort.
    pub revised: bool,
}

/// When cohorts are retired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retirement {
    /// Share of stale rows from which on a cohort is looked at.
    pub retire_at: f64,
    /// Whether a cohort that cannot be split leaves as a whole.
    pub dissolve: bool,
}

/// What becomes of a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it was published.
    Keep,
    /// It leaves, and those who are in the source come back as one class.
    Split,
    /// It leaves, and nobody of it comes back.
    Dissolve,
}

/// Whether some members of a cohort, by their places in it, meet k and every rule.
pub trait Judge {
    /// On the values that were published of them.
    fn accepts_published(&self, members: &[u32]) -> bool;

    /// On the values that they have now. Nobody is asked of members that are gone.
    fn accepts_current(&self, members: &[u32]) -> bool;
}

impl Retirement {
    /// Whether a cohort with so many stale rows is looked at.
    pub fn is_due(&self, stale: u64, rows: u64) -> bool {
        stale > 0 && stale as f64 >= self.retire_at * rows as f64
    }

    /// Decides what becomes of a cohort.
    pub fn decide_fate(&self, cohort: &[Member], judge: &impl Judge) -> Fate {
        let stale = cohort.iter().filter(|member| member.presence != Presence::Live).count();
        if !self.is_due(stale as u64, cohort.len() as u64) {
            Fate::Keep
        } else if may_split(cohort, judge) {
            Fate::Split
        } else if self.dissolve {
            Fate::Dissolve
        } else {
            Fate::Keep
        }
    }
}

/// The members of one history, those who are in the source apart from those who are gone.
#[derive(Debug, Default)]
struct Branch {
    live: Vec<u32>,
    gone: Vec<u32>,
    revised: bool,
}

fn may_split(cohort: &[Member], judge: &impl Judge) -> bool {
    let mut branches: BTreeMap<u32, Branch> = BTreeMap::new();
    for (place, member) in (0_u32..).zip(cohort) {
        let branch = branches.entry(member.history).or_default();
        let part = if member.presence == Presence::Gone { &mut branch.gone } else { &mut branch.live };
        part.push(place);
        branch.revised |= member.revised;
    }
    let live: Vec<u32> = branches.values().flat_map(|branch| branch.live.iter().copied()).collect();
    let comes_back_well = live.is_empty() || judge.accepts_current(&live);
    comes_back_well
        && branches.values().all(|branch| {
            let divided = !branch.live.is_empty() && !branch.gone.is_empty();
            let parts_hold = || judge.accepts_published(&branch.live) && judge.accepts_published(&branch.gone);
            let live_holds = branch.live.is_empty() || judge.accepts_current(&branch.live);
            live_holds && (!divided || !branch.revised && parts_hold())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members with a value that was published and one that they have now; k rows and two values meet the rules.
    struct Values {
        k: usize,
        published: Vec<u8>,
        current: Vec<u8>,
    }

    impl Values {
        fn holds(&self, members: &[u32], values: &[u8]) -> bool {
            let mut found: Vec<u8> = members.iter().map(|&member| values[member as usize]).collect();
            found.sort_unstable();
            found.dedup();
            members.len() >= self.k && found.len() >= 2
        }
    }

    impl Judge for Values {
        fn accepts_published(&self, members: &[u32]) -> bool {
            self.holds(members, &self.published)
        }

        fn accepts_current(&self, members: &[u32]) -> bool {
            self.holds(members, &self.current)
        }
    }

    /// A cohort of one history: `L`ive, `C`hanged, `G`one, with published and current values.
    fn cohort(presences: &str, published: &str, current: &str) -> (Vec<Member>, Values) {
        let presence = |letter| match letter {
            'L' => Presence::Live,
            'C' => Presence::Changed,
            _ => Presence::Gone,
        };
        let member = |letter| Member { history: 0, presence: presence(letter), revised: false };
        let members = presences.chars().map(member).collect();
        (members, Values { k: 2, published: published.into(), current: current.into() })
    }

    fn fate(presences: &str, published: &str, current: &str, dissolve: bool) -> Fate {
        let (members, judge) = cohort(presences, published, current);
        Retirement { retire_at: 0.5, dissolve }.decide_fate(&members, &judge)
    }

    #[test]
    fn fresh_cohorts_stay() {
        assert_eq!(fate("LLLL", "abab", "abab", true), Fate::Keep);
        assert_eq!(fate("LLLG", "abab", "aba-", true), Fate::Keep);
    }

    #[test]
    fn both_parts_must_hold_to_split() {
        assert_eq!(fate("LLGG", "abab", "ab--", false), Fate::Split);
        assert_eq!(fate("LLGG", "aaab", "aa--", false), Fate::Keep, "those who stay are alike");
        assert_eq!(fate("LLGG", "abaa", "ab--", false), Fate::Keep, "those who left are alike");
        assert_eq!(fate("LLGG", "abaa", "ab--", true), Fate::Dissolve);
        assert_eq!(fate("LGGG", "abab", "a---", false), Fate::Keep, "one alone would come back");
        assert_eq!(fate("CCGG", "abab", "aa--", false), Fate::Keep, "those who stay are alike by now");
        assert_eq!(fate("CCGG", "aaab", "ab--", false), Fate::Keep, "those who stay were alike before");
    }

    #[test]
    fn everybody_may_leave_or_change() {
        assert_eq!(fate("GGGG", "abab", "----", false), Fate::Split);
        assert_eq!(fate("CCCC", "abab", "cdcd", false), Fate::Split);
        assert_eq!(fate("CCCC", "abab", "cccc", false), Fate::Keep);
        assert_eq!(fate("CCCC", "abab", "cccc", true), Fate::Dissolve);
    }

    #[test]
    fn every_history_must_hold_by_itself() {
        let (mut members, judge) = cohort("LLGGLLGG", "abababab", "ab--ab--");
        members[4..].iter_mut().for_each(|member| member.history = 1);
        let retirement = Retirement { retire_at: 0.5, dissolve: false };
        assert_eq!(retirement.decide_fate(&members, &judge), Fate::Split);
        // One of the second history is in the first: alone among its own.
        let (mut mixed, judge) = cohort("LLLGGG", "ababab", "aba---");
        mixed[0].history = 1;
        assert_eq!(retirement.decide_fate(&mixed, &judge), Fate::Keep);
    }

    #[test]
    fn revised_histories_are_not_divided() {
        let (mut members, judge) = cohort("LLGG", "abab", "ab--");
        members[3].revised = true;
        let retirement = Retirement { retire_at: 0.5, dissolve: false };
        assert_eq!(retirement.decide_fate(&members, &judge), Fate::Keep);
        members.iter_mut().for_each(|member| member.presence = Presence::Gone);
        assert_eq!(retirement.decide_fate(&members, &judge), Fate::Split, "all leave together");
    }
}
