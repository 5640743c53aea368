//! delta-presence: as inferred from the release and a public table, everybody's chance to be in the private table must lie
//! between two bounds (Nergiz et al.; Toth, definition 6).
//!
//! A group holds public rows, some of them members of the private table. What is published covers all of them alike, so
//! the chance of each is the share of members. Merging groups brings the share between those of its parts: a group that
//! fails can be repaired by growing. This is exact as long as no published value of another group covers the same people;
//! [`apart`](crate::grouping::apart) sees to that.

use super::{GroupView, Rule, RuleRecord};
use crate::attack::Bounds;

/// Bounds the share of members in every group of public rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Presence {
    /// Least and largest chance, both allowed.
    pub bounds: Bounds,
}

impl Presence {
    /// The rule for bounds written as decimal numbers.
    pub fn new(min: f64, max: f64) -> Self {
        Self { bounds: Bounds::new(min, max) }
    }
}

impl Rule for Presence {
    fn record(&self) -> RuleRecord {
        let (min, max) = (self.bounds.min().to_f64(), self.bounds.max().to_f64());
        RuleRecord::new("presence").with_parameter("min", min).with_parameter("max", max)
    }

    /// Without public rows to hide among, everybody published is known to be there.
    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        self.bounds.allow_counts(group.members() as u64, group.rows.len() as u64)
    }

    fn guards_the_absent(&self) -> bool {
        true
    }

    fn survives_merging(&self) -> bool {
        true
    }

    fn presence_bounds(&self) -> Option<&Bounds> {
        Some(&self.bounds)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::Rules;

    #[test]
    fn toth_fig_2_3_sara_is_in_with_three_quarters() {
        let table = fixtures::p1_t1();
        // Everybody of age 27, three of four in T1.
        let old = [3, 4, 5, 9];
        assert!(Presence::new(0.75, 0.75).is_met_by(&GroupView::new(&table, &old)));
        assert!(!Presence::new(0.0, 0.74).is_met_by(&GroupView::new(&table, &old)));
        assert!(!Presence::new(0.76, 1.0).is_met_by(&GroupView::new(&table, &old)));
    }

    #[test]
    fn groups_that_publish_nothing_still_tell_of_absence() {
        let table = fixtures::p1_t1();
        let absent = GroupView::new(&table, &[0, 9]);
        let rules = |min| Rules { k: 2, others: vec![Arc::new(Presence::new(min, 0.9))] };
        assert!(rules(0.0).are_met_by(&absent), "there is nothing to be too small");
        assert!(!rules(0.1).are_met_by(&absent));
    }

    #[test]
    fn a_table_without_public_rows_hides_nobody() {
        let mut table = fixtures::p1_t1();
        table.members = None;
        assert!(!Presence::new(0.0, 0.9).is_met_by(&GroupView::new(&table, &[3, 4])));
    }
}
