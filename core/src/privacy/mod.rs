//! The rules that every published group must satisfy: one file per rule, behind one trait.
//!
//! `k` is always there and is checked first, because it is cheap and because every method builds for it. The other
//! rules are asked of a [`GroupView`], which hands out the group's rows, its cover and its sensitive codes.
//!
//! Most rules are about the values of one sensitive column. Such a [`SensitiveRule`] sees nothing but how often
//! each value occurs, so the same code judges a group while it is built and a class that is read back from the
//! published files. Its type is also its form in the job file.

pub mod alpha_k;
pub mod beside;
pub mod beta_likeness;
pub mod delta_disclosure;
#[cfg(test)]
pub(crate) mod evenness;
pub mod figures;
pub mod guarding;
pub mod inference;
pub mod k_e;
pub mod k_map;
pub mod l_diversity;
pub mod max_loss;
pub mod p_sensitive;
pub mod presence;
pub mod range_diversity;
mod record;
mod sensitive_rule;
pub mod t_closeness;
pub mod weak_diversity;

use std::fmt;
use std::sync::Arc;

pub use figures::Figures;
pub use record::RuleRecord;
pub use sensitive_rule::{Flaw, Histogram, Needs, OnColumn, RESERVE, SensitiveRule, Setting};

use crate::attack::Bounds;
use crate::faults::Fault;
use crate::model::{Cover, Sensitive, Table};

/// Whether a score is within its bound, give or take the rounding of its last digits: a group that meets a bound
/// exactly must not fail because its score was summed in another order.
pub fn is_within_bound(score: f64, bound: f64) -> bool {
    score <= bound + 1e-9
}

/// A group as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct GroupView<'a> {
    /// The cell that the group is part of.
    pub table: &'a Table,
    /// The rows of the group.
    pub rows: &'a [u32],
}

impl<'a> GroupView<'a> {
    /// A view on some rows of a table.
    pub fn new(table: &'a Table, rows: &'a [u32]) -> Self {
        Self { table, rows }
    }

    /// The cover of the group.
    pub fn cover(&self) -> Cover {
        self.table.cover(self.rows)
    }

    /// How many rows of the group are published.
    pub fn members(&self) -> usize {
        match &self.table.members {
            None => self.rows.len(),
            Some(members) => self.rows.iter().filter(|&&row| members[row as usize]).count(),
        }
    }

    /// People whose rows of the group are published: as many as there are rows, when the table does not say whose each
    /// row is.
    pub fn people(&self) -> usize {
        let Some(persons) = &self.table.persons else { return self.members() };
        let mut seen: Vec<u32> = self.table.members_of(self.rows).map(|row| persons[row as usize]).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len() + usize::from(Fault::OnePersonMore.is_planted())
    }

    /// How often each sensitive code is published, ascending by code.
    pub fn histogram(&self, sensitive: &Sensitive) -> Vec<(u32, u32)> {
        let mut histogram = Vec::new();
        self.histogram_into(sensitive, &mut histogram);
        histogram
    }

    /// The same into a buffer that is reused.
    pub fn histogram_into(&self, sensitive: &Sensitive, histogram: &mut Vec<(u32, u32)>) {
        histogram.clear();
        histogram.extend(self.table.members_of(self.rows).map(|row| (sensitive.codes[row as usize], 1)));
        histogram.sort_unstable();
        histogram.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 += if same { next.1 } else { 0 };
            same
        });
    }
}

/// The commonest code of a histogram; of several, the first.
pub fn commonest_code(histogram: Histogram<'_>) -> Option<u32> {
    histogram.iter().rev().max_by_key(|(_, count)| *count).map(|(code, _)| *code)
}

/// A rule that every published group meets.
pub trait Rule: fmt::Debug + Send + Sync {
    /// Name and parameters as in the job file, for plans, errors and the manifest.
    fn record(&self) -> RuleRecord;

    /// Whether the group meets the rule.
    fn is_met_by(&self, group: &GroupView<'_>) -> bool;

    /// Whether the group fails and would still fail if more rows joined, so that only fewer rows can help.
    fn beyond_growth(&self, _group: &GroupView<'_>) -> bool {
        false
    }

    /// How far a group that fails is from meeting the rule, when that can be measured: whoever repairs groups goes where
    /// it falls.
    fn excess(&self, _group: &GroupView<'_>) -> Option<f64> {
        None
    }

    /// Whether nothing but the sensitive values of a group counts for the rule.
    fn counts_values_only(&self) -> bool {
        false
    }

    /// Whether the rule is also about groups of public rows of which nothing is published.
    fn guards_the_absent(&self) -> bool {
        false
    }

    /// What the share of members among public rows must lie between, when the rule is about that.
    fn presence_bounds(&self) -> Option<&Bounds> {
        None
    }

    /// Whether two groups that meet the rule always meet it together, so that a grouping which fails it cannot be repaired
    /// by dividing groups.
    fn survives_merging(&self) -> bool {
        false
    }
}

/// The rules of a policy: the smallest group size and everything beyond it.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Fewest rows (or people, when the table says whose each row is) in a group.
    pub k: usize,
    /// All other rules.
    pub others: Vec<Arc<dyn Rule>>,
}

impl Rules {
    /// Creates rules that only demand the group size.
    pub fn k(k: usize) -> Self {
        Self { k, others: Vec::new() }
    }

    /// Whether the group size is all that is asked, so that a method can count rows and skip every other check.
    pub fn only_rows(&self, table: &Table) -> bool {
        self.others.is_empty() && table.persons.is_none() && table.members.is_none()
    }

    /// Whether the group is large enough.
    pub fn large_enough(&self, group: &GroupView<'_>) -> bool {
        if group.members() < self.k {
            return false;
        }
        group.people() >= self.k
    }

    /// Whether the group fails a rule that no further row can repair.
    pub fn beyond_growth(&self, group: &GroupView<'_>) -> bool {
        self.others.iter().any(|rule| rule.beyond_growth(group))
    }

    /// Whether the group meets every rule but those that fewer rows may yet meet, so that it may be cut into groups that meet
    /// all.
    pub fn hold_in_parts(&self, group: &GroupView<'_>) -> bool {
        self.large_enough(group) && self.others.iter().all(|rule| rule.is_met_by(group) || rule.beyond_growth(group))
    }

    /// Whether the group would still [`hold_in_parts`](Self::hold_in_parts) if of the rows with the commonest value of each
    /// sensitive column one in `every` were there twice. Rows that meet the rules only just cannot be grouped: every group
    /// would have to be as even as the whole.
    pub fn hold_with_room(&self, group: &GroupView<'_>, every: usize) -> bool {
        let mut rows = group.rows.to_vec();
        for column in &group.table.sensitive {
            if let Some(commonest) = commonest_code(&group.histogram(column)) {
                let same = group.rows.iter().filter(|&&row| column.codes[row as usize] == commonest);
                rows.extend(same.step_by(every.max(1)));
            }
        }
        self.hold_in_parts(&GroupView::new(group.table, &rows))
    }

    /// How far the group is from meeting every rule: 0 if it does, infinite if no further row can repair it. A rule that
    /// cannot measure how far counts 1.
    pub fn excess(&self, group: &GroupView<'_>) -> f64 {
        if self.are_met_by(group) {
            return 0.0;
        }
        if self.beyond_growth(group) {
            return f64::INFINITY;
        }
        let missing = self.k.saturating_sub(group.people()) as f64 / self.k.max(1) as f64;
        let failed = self.others.iter().filter(|rule| !rule.is_met_by(group));
        missing + failed.map(|rule| rule.excess(group).unwrap_or(1.0).max(f64::MIN_POSITIVE)).sum::<f64>()
    }

    /// Whether the group meets every rule; of a group that publishes nothing, those that guard the absent.
    pub fn are_met_by(&self, group: &GroupView<'_>) -> bool {
        if group.table.members.is_some() && group.members() == 0 {
            return self.others.iter().filter(|rule| rule.guards_the_absent()).all(|rule| rule.is_met_by(group));
        }
        self.large_enough(group) && self.others.iter().all(|rule| rule.is_met_by(group))
    }
}
