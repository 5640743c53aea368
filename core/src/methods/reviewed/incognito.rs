//! `incognito`: the best full-domain generalisation (LeFevre, DeWitt and Ramakrishnan, 2005), with k, l and t.
//!
//! Incognito finds every generalisation of whole columns that meets the rules, and leaves it to its user which to take; the
//! works take the one that loses least. Its search goes by subsets of the columns, so as not to look at most of the lattice.
//! [`full-domain`](crate::methods::full_domain) prunes the same lattice in another way and finds the same optimum (a test
//! tries every node), so this is that search under the name by which it is known; only its running time says nothing about
//! Incognito's. As in the works' experiments, a rule on sensitive values is asked of every class.

use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::entry::Entry;
use crate::methods::full_domain::{COST, FullDomain};
use crate::model::{Axis, Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "incognito",
    "The best generalisation of whole columns, as Incognito finds it: `full-domain` by another name.",
    |setting| Arc::new(Incognito(FullDomain::new(setting))),
)
.options(&[COST])
.of_whole_tables();

/// Full-domain generalisation without suppression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incognito(
    /// The search.
    pub FullDomain,
);

impl Method for Incognito {
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
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::grouping::fixtures;
    use crate::model::{Levels, lattice_nodes};
    use crate::privacy::GroupView;

    /// What Incognito searches by subsets of columns: no generalisation of a subset that fails k can be part of one of all
    /// columns that passes.
    fn by_subsets(table: &Table, rules: &Rules) -> BTreeSet<Vec<u8>> {
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let top: Vec<u8> = levels.iter().map(Levels::height).collect();
        let passes = |node: &[u8]| {
            let classes = crate::methods::full_domain::node_classes(table, &levels, node);
            classes.iter().all(|rows| rules.are_met_by(&GroupView::new(table, rows)))
        };
        let mut candidates: BTreeSet<Vec<u8>> = lattice_nodes(&top).into_iter().collect();
        for subset in 1_u32..1 << top.len() {
            let within = |node: &[u8]| -> Vec<u8> {
                (0..top.len()).map(|a| if subset >> a & 1 == 1 { node[a] } else { top[a] }).collect()
            };
            candidates.retain(|node| passes(&within(node)));
        }
        candidates
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn incognito_by_subsets_has_the_same_optimum(table in fixtures::tables(), k in 2..6_usize) {
            let rules = Rules::k(k);
            prop_assume!(table.axes.len() <= 3);
            let found = Incognito::default().0.best_node(&table, &rules);
            let candidates = by_subsets(&table, &rules);
            match found {
                None => prop_assert!(candidates.is_empty()),
                Some((node, _)) => prop_assert!(candidates.contains(&node), "{node:?} of {candidates:?}"),
            }
        }
    }
}
