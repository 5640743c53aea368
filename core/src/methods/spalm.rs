//! `spalm`: the best full-domain generalisation with delta-presence (Nergiz et al.).
//!
//! It is the search of [`full-domain`](super::full_domain) over public rows. Merging classes keeps delta-presence as it keeps
//! k: the share of a union lies between those of its parts. So below a node whose shares are out of bounds none needs to be
//! tried.
//!
//! Rows are looked at cell by cell, so a table must fit one cell.

use std::sync::Arc;

use super::full_domain::{COST, FullDomain};
use crate::grouping::Method;
use crate::grouping::entry::{Entry, needs_presence};
use crate::model::{Axis, Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "spalm",
    "The best generalisation of whole columns that keeps everybody's chance to be in the source within `presence`.",
    |setting| Arc::new(Spalm(FullDomain::new(setting))),
)
.options(&[COST])
.of_whole_tables()
.check(needs_presence);

/// Optimal full-domain delta-presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spalm(
    /// The search.
    pub FullDomain,
);

impl Method for Spalm {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        self.0.group(cell, rules, seed)
    }

    fn too_much(&self, axes: &[Axis]) -> Option<String> {
        self.0.too_much(axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::presence::Presence;

    #[test]
    fn toth_p1_is_raised_by_zip_alone() {
        let table = fixtures::p1_t1();
        let best = |max| {
            let rules = Rules { k: 1, others: vec![Arc::new(Presence::new(0.1, max))] };
            Spalm::default().0.best_node(&table, &rules).map(|(node, classes)| (node, classes.len()))
        };
        assert_eq!(best(0.9), Some((vec![1, 0], 2)));
        assert_eq!(best(0.79), None, "not even the top is within");
    }
}
