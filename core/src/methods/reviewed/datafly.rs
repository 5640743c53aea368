//! `datafly`: whole columns raised one by one, the one with most values first (Sweeney, 1998; section 2.3.1 of Gorla).
//!
//! 1. While more than `suppress` rows (k of them, as Sweeney has it) stand in classes that fail a rule, the column with the most
//!    distinct values is raised by a level; the first of several.
//! 2. The rows of the classes that still fail are suppressed.

use std::collections::HashSet;
use std::sync::Arc;

use super::{SUPPRESS, failing_rows, without_failing};
use crate::grouping::Method;
use crate::grouping::cancel::checkpoint;
use crate::grouping::entry::Entry;
use crate::methods::full_domain::node_classes;
use crate::model::{Grouping, Levels, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("datafly", "Whole columns raised one by one, the one with most values first.", |setting| {
        Arc::new(Datafly { suppress: setting.options.number(&SUPPRESS) })
    })
    .options(&[SUPPRESS])
    .of_whole_tables();

/// Greedy full-domain generalisation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Datafly {
    /// The largest share of the rows that may be suppressed; none: k rows.
    pub suppress: Option<f64>,
}

impl Datafly {
    /// The levels that columns are raised to, and the classes.
    pub fn raised_node(&self, cell: &Table, rules: &Rules) -> (Vec<u8>, Grouping) {
        let levels: Vec<Levels> = cell.axes.iter().map(Levels::from_axis).collect();
        let allowed = self.suppress.map_or(rules.k, |share| (share * cell.rows() as f64) as usize);
        let mut node = vec![0_u8; levels.len()];
        loop {
            checkpoint();
            let classes = node_classes(cell, &levels, &node);
            let distinct = |axis: usize| {
                let raised =
                    (0..cell.rows() as u32).map(|row| levels[axis].raise_code(cell.row(row)[axis], node[axis]));
                raised.collect::<HashSet<u32>>().len()
            };
            let open = (0..levels.len()).filter(|&axis| node[axis] < levels[axis].height());
            let widest = open.max_by_key(|&axis| (distinct(axis), std::cmp::Reverse(axis)));
            match widest {
                Some(axis) if failing_rows(cell, rules, &classes) > allowed => node[axis] += 1,
                _ => return (node, without_failing(cell, rules, &classes)),
            }
        }
    }
}

impl Method for Datafly {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = self.raised_node(cell, rules).1;
        if grouping.is_empty() {
            // Not even the top passes: the method has nothing to say.
            std::mem::swap(&mut grouping.left_over, &mut grouping.refused);
        }
        grouping
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Shape, Tree};

    /// Sweeney's example (figures 5 and 6 of "Achieving k-anonymity privacy protection using generalization and suppression"):
    /// race, birth date with 12 values, gender, five-digit postcodes. Birth dates have most values, so they go up to the
    /// year; then two rows are outliers, no more than k = 2, and are suppressed.
    #[test]
    fn sweeney_datafly_raises_birth_dates_first() {
        // Twelve dates of five years: 1963 (one), 1964 (five), 1965 (four), 1967 (two).
        let birth = Tree::new(12, [(0, 0, 0.0), (1, 5, 0.4), (6, 9, 0.3), (10, 11, 0.1)]);
        let axes = [
            Axis::new("race", Shape::Tree(Tree::new(2, []))),
            Axis::new("birth", Shape::Tree(birth)),
            Axis::new("gender", Shape::Tree(Tree::new(2, []))),
            Axis::new("zip", Shape::Tree(Tree::new(3, [(0, 1, 0.5)]))),
        ];
        let (black, white, male, female) = (0, 1, 0, 1);
        let rows = [
            [black, 8, male, 2],
            [black, 9, male, 2],
            [black, 6, female, 0],
            [black, 7, female, 0],
            [black, 1, female, 0],
            [black, 2, female, 0],
            [white, 3, male, 0],
            [white, 4, male, 1],
            [white, 0, female, 2],
            [white, 5, male, 0],
            [white, 10, male, 0],
            [white, 11, male, 0],
        ];
        let table = Table::new(axes, rows.concat());
        let (node, classes) = Datafly::default().raised_node(&table, &Rules::k(2));
        assert_eq!(node, [0, 1, 0, 0], "dates alone, by one level");
        assert_eq!(classes.refused, [7, 8], "the man in the other postcode and the woman of 1963");
        assert!(classes.iter().all(|class| class.len() >= 2));
        // Without suppression, postcodes and more have to go up.
        let (node, classes) = Datafly { suppress: Some(0.0) }.raised_node(&table, &Rules::k(2));
        assert!(node.iter().sum::<u8>() > 1 && classes.refused.is_empty(), "{node:?}");
    }
}
