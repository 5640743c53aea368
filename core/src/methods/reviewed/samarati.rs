//! `samarati`: the lowest generalisation of whole columns with little suppression (Samarati, 2001).
//!
//! A generalisation is *k-minimal* if no lower one passes, where it passes when at most so many rows stand in classes that
//! fail; these are suppressed. The smallest height at which any passes is found by bisection, which is sound because a node
//! above one that passes passes too. Of the nodes at that height the one that loses least is taken: Samarati leaves the choice
//! to preferences. Other rules than k may fail higher up, and then the height found need not be the smallest.

use std::sync::Arc;

use super::{SUPPRESS, failing_rows, without_failing};
use crate::grouping::Method;
use crate::grouping::cancel::checkpoint;
use crate::grouping::entry::Entry;
use crate::methods::full_domain::{lattice_too_large, node_classes};
use crate::model::{Axis, Grouping, Levels, Table, lattice_nodes};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("samarati", "The lowest generalisation of whole columns with little suppression.", |setting| {
        Arc::new(Samarati { suppress: setting.options.number(&SUPPRESS).unwrap_or(0.0) })
    })
    .options(&[SUPPRESS])
    .of_whole_tables();

/// k-minimal generalisation with suppression.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Samarati {
    /// The largest share of the rows that may be suppressed.
    pub suppress: f64,
}

impl Samarati {
    /// The node at the smallest height that passes and loses least there, and its classes.
    pub fn minimal_node(&self, cell: &Table, rules: &Rules) -> Option<(Vec<u8>, Grouping)> {
        let levels: Vec<Levels> = cell.axes.iter().map(Levels::from_axis).collect();
        let heights: Vec<u8> = levels.iter().map(Levels::height).collect();
        let nodes = lattice_nodes(&heights);
        let height = |node: &[u8]| node.iter().map(|&level| u32::from(level)).sum::<u32>();
        let allowed = (self.suppress * cell.rows() as f64) as usize;
        let passing = |wanted: u32| {
            let at = nodes.iter().filter(|node| height(node) == wanted).map(|node| {
                checkpoint();
                (node, node_classes(cell, &levels, node))
            });
            at.filter(|(_, classes)| failing_rows(cell, rules, classes) <= allowed).collect::<Vec<_>>()
        };
        let (mut low, mut high) = (0, heights.iter().map(|&level| u32::from(level)).sum::<u32>());
        let mut found = passing(high);
        while low < high {
            let middle = low.midpoint(high);
            let lower = passing(middle);
            if lower.is_empty() {
                low = middle + 1;
            } else {
                (found, high) = (lower, middle);
            }
        }
        let loss = |classes: &Grouping| {
            classes.iter().map(|rows| rows.len() as f64 * cell.cover(rows).cost(&cell.axes)).sum::<f64>()
        };
        let published = found.into_iter().map(|(node, classes)| (node, without_failing(cell, rules, &classes)));
        let best = published.min_by(|(_, one), (_, other)| loss(one).total_cmp(&loss(other)))?;
        Some((best.0.clone(), best.1))
    }
}

impl Method for Samarati {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        if let Some((_, grouping)) = self.minimal_node(cell, rules) {
            return grouping;
        }
        let mut none = Grouping::default();
        none.left_over.extend(0..cell.rows() as u32);
        none
    }

    fn too_much(&self, axes: &[Axis]) -> Option<String> {
        lattice_too_large(axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Shape, Tree};

    /// Samarati's example, figures 1 to 3: race (asian, black, white below person) and the last two digits of a postcode.
    fn samarati_example() -> Table {
        let race = Tree::new(3, []);
        // 94138, 94139, 94141, 94142 below 9413* and 9414*.
        let zip = Tree::new(4, [(0, 1, 0.3), (2, 3, 0.3)]);
        let axes = [Axis::new("race", Shape::Tree(race)), Axis::new("zip", Shape::Tree(zip))];
        let rows = [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1], [1, 2], [1, 3], [2, 0], [2, 1], [2, 3]];
        Table::new(axes, rows.concat())
    }

    /// With k = 2 one row more or less decides: the whites of 9414* are one. Suppressing it saves a step on either way.
    #[test]
    fn samarati_minimal_generalisation_with_and_without_suppression() {
        let (table, rules) = (samarati_example(), Rules::k(2));
        let (node, classes) = Samarati::default().minimal_node(&table, &rules).unwrap();
        assert_eq!((node, classes.len(), classes.refused.len()), (vec![1, 0], 4, 0));
        // At the same height with one row suppressed, raising postcodes loses less than raising race.
        let (node, classes) = Samarati { suppress: 0.1 }.minimal_node(&table, &rules).unwrap();
        assert_eq!((node, classes.len(), classes.refused), (vec![0, 1], 5, vec![10]));
        // With all eleven allowed to go, nothing is raised and nothing is published.
        let (node, classes) = Samarati { suppress: 1.0 }.minimal_node(&table, &rules).unwrap();
        assert_eq!((node, classes.len(), classes.refused.len()), (vec![0, 0], 0, 11));
        assert!(Samarati::default().minimal_node(&table, &Rules::k(12)).is_none());
    }
}
