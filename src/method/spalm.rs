//! `spalm`: the best full-domain generalisation with delta-presence (Nergiz et al.).
//!
//! Every attribute is raised to one level for all rows; a *node* of the lattice says which. Nodes are tried bottom-up, by
//! the sum of their levels. Of the nodes whose classes all meet the rules, the one with the least cost is taken; of equal
//! ones, the first in that order.
//!
//! Merging classes keeps k and delta-presence (the share of a union lies between those of its parts), so nodes above one
//! that passes need not be tried: they pass too and cost no less. With any other rule every node is tried.
//!
//! Rows are looked at cell by cell, so a table must fit one cell to be generalised as a whole. What is published of a
//! class is the smallest value that covers it, which may say more than its level and covers the same people.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Method;
use super::catalogue::{Entry, needs_presence};
use super::options::{Key, Kind};
use crate::domain::{Grouping, Levels, Table, lattice};
use crate::privacy::{GroupView, Rules};

/// In the list of methods.
pub const ENTRY: Entry = Entry::new(
    "spalm",
    "The best generalisation of whole columns that keeps everybody's chance to be in the source within `presence`.",
    |setting| {
        let cost = match setting.options.text(&COST) {
            Some("discernibility") => Cost::Discernibility,
            Some("height") => Cost::Height,
            _ => Cost::Loss,
        };
        Arc::new(Spalm { cost })
    },
)
.options(&[COST])
.check(needs_presence);

const COST: Key = Key::new(
    "cost",
    "What the chosen generalisation has least of; `loss` when absent.",
    Kind::Word(&[
        ("loss", "Mean loss of the published values."),
        ("discernibility", "Sum of squared class sizes."),
        ("height", "Sum of the levels that columns are raised by."),
    ]),
);

/// What the best node has least of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cost {
    /// Mean loss of the published values.
    #[default]
    Loss,
    /// Sum over classes of the square of their published rows (DM).
    Discernibility,
    /// Sum of the levels of all published values (AG).
    Height,
}

/// Optimal full-domain delta-presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spalm {
    /// What is minimised.
    pub cost: Cost,
}

impl Spalm {
    /// The best node and its classes; none when even the top fails.
    pub fn best(&self, cell: &Table, rules: &Rules) -> Option<(Vec<u8>, Vec<Vec<u32>>)> {
        let levels: Vec<Levels> = cell.axes.iter().map(Levels::of).collect();
        let heights: Vec<u8> = levels.iter().map(Levels::height).collect();
        let monotone = rules.others.iter().all(|rule| rule.guards_the_absent());
        let mut passed: Vec<Vec<u8>> = Vec::new();
        let mut best: Option<(f64, Vec<u8>)> = None;
        for node in lattice(&heights) {
            let above = |lower: &Vec<u8>| lower.iter().zip(&node).all(|(low, high)| low <= high);
            if monotone && passed.iter().any(above) {
                continue;
            }
            let classes = classes(cell, &levels, &node);
            if !classes.iter().all(|rows| rules.hold(&GroupView::new(cell, rows))) {
                continue;
            }
            let cost = self.cost(cell, &node, &classes);
            passed.push(node.clone());
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, node));
            }
        }
        best.map(|(_, node)| {
            let classes = classes(cell, &levels, &node);
            (node, classes)
        })
    }

    fn cost(&self, cell: &Table, node: &[u8], classes: &[Vec<u32>]) -> f64 {
        let members = |rows: &Vec<u32>| GroupView::new(cell, rows).members() as f64;
        match self.cost {
            Cost::Loss => classes.iter().map(|rows| members(rows) * cell.cover(rows).cost(&cell.axes)).sum(),
            Cost::Discernibility => classes.iter().map(|rows| members(rows).powi(2)).sum(),
            Cost::Height => node.iter().map(|&level| f64::from(level)).sum(),
        }
    }
}

/// The rows that are equal at a node, class by class.
fn classes(cell: &Table, levels: &[Levels], node: &[u8]) -> Vec<Vec<u32>> {
    let mut classes: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for row in 0..cell.rows() as u32 {
        let raised =
            cell.row(row).iter().zip(levels).zip(node).map(|((&code, levels), &level)| levels.raise(code, level));
        classes.entry(raised.collect()).or_default().push(row);
    }
    classes.into_values().collect()
}

impl Method for Spalm {
    fn name(&self) -> &'static str {
        "spalm"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = Grouping::with_capacity(cell.rows());
        match self.best(cell, rules) {
            Some((_, classes)) => classes.iter().for_each(|rows| grouping.push(rows)),
            None => grouping.left_over = (0..cell.rows() as u32).collect(),
        }
        grouping
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Axis, Shape, Tree};
    use crate::method::fixtures;
    use crate::privacy::presence::Presence;

    fn rules(k: usize, min: f64, max: f64) -> Rules {
        Rules { k, others: vec![Arc::new(Presence::new(min, max))] }
    }

    #[test]
    fn toth_p1_is_raised_by_zip_alone() {
        let table = fixtures::p1_t1();
        let (node, classes) = Spalm::default().best(&table, &rules(1, 0.1, 0.9)).unwrap();
        assert_eq!((node, classes.len()), (vec![1, 0], 2));
        assert_eq!(Spalm::default().best(&table, &rules(1, 0.1, 0.79)), None, "not even the top is within");
    }

    proptest! {
        /// Skipping what lies above a node that passes changes nothing.
        #[test]
        fn pruning_finds_what_trying_all_nodes_finds(codes in prop::collection::vec(0..6_u16, 2..60), flags in any::<u32>(), k in 1..4_usize) {
            let rows = codes.len() / 2;
            let axes = ["a", "b"].map(|name| Axis::new(name, Shape::Tree(Tree::new(6, [(0, 2, 0.4), (3, 5, 0.4)]))));
            let mut table = Table::new(axes, codes[..rows * 2].to_vec());
            table.members = Some((0..rows).map(|row| flags >> (row % 32) & 1 == 1).collect());
            let rules = rules(k, 0.1, 0.8);
            let levels: Vec<Levels> = table.axes.iter().map(Levels::of).collect();
            for cost in [Cost::Loss, Cost::Discernibility, Cost::Height] {
                let spalm = Spalm { cost };
                let mut best: Option<(f64, Vec<u8>)> = None;
                for node in lattice(&[2, 2]) {
                    let classes = classes(&table, &levels, &node);
                    if classes.iter().all(|rows| rules.hold(&GroupView::new(&table, rows))) {
                        let cost = spalm.cost(&table, &node, &classes);
                        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                            best = Some((cost, node));
                        }
                    }
                }
                prop_assert_eq!(spalm.best(&table, &rules).map(|(node, _)| node), best.map(|(_, node)| node));
            }
        }
    }
}
