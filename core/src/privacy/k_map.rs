//! k-map, or weak k-anonymity: every published group covers enough people of a public table, whether they are in the
//! private one or not (Sweeney; Atzori).

use super::{GroupView, Rule, RuleRecord};

/// Fewest public rows in every group that is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMap {
    /// How many.
    pub people: usize,
}

impl Rule for KMap {
    fn record(&self) -> RuleRecord {
        RuleRecord::new("k-map").with_parameter("people", self.people as f64)
    }

    /// Without public rows nobody is there to be mistaken for.
    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        group.table.members.is_some() && group.rows.len() >= self.people
    }

    fn survives_merging(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::Rules;

    #[test]
    fn people_are_counted_whether_they_are_in_or_not() {
        let mut table = fixtures::p1_t1();
        let rules = Rules { k: 3, others: vec![Arc::new(KMap { people: 4 })] };
        // Everybody of age 27, three of four in T1; without Jesper, who is not.
        assert!(rules.are_met_by(&GroupView::new(&table, &[3, 4, 5, 9])));
        assert!(!rules.are_met_by(&GroupView::new(&table, &[3, 4, 5])));
        assert!(rules.are_met_by(&GroupView::new(&table, &[0, 9])), "nothing is published of them");
        table.members = None;
        assert!(!rules.are_met_by(&GroupView::new(&table, &[3, 4, 5, 9])));
    }
}
