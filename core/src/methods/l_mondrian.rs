//! `l-mondrian`: Mondrian that keeps sensitive values diverse (Tinabo's competitor, algorithm 3, after LeFevre et al.).
//!
//! 1. Attributes are tried from the widest to the narrowest. Categories with a hierarchy are split into the children of the
//!    node that covers the part, all at once; numbers and dates, with or without a hierarchy, and categories without one at
//!    the value boundary nearest to the median. By option, numbers and dates with a hierarchy are split at its nodes too.
//! 2. *Check on split*: a split is allowed when every part meets all rules, but for those that fewer rows may yet meet.
//!    *Merge failing classes*: a split is allowed when every part holds k rows; then every class that fails a rule goes
//!    into the next one, and the last into the one before.
//!
//! The thesis describes the first in its algorithm and the second in its text; both can be chosen. It differs from
//! [`mondrian`](crate::methods::mondrian) by splitting hierarchies at their nodes. Cost grows as n log n.

use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::entry::Entry;
use crate::grouping::options::{Key, Kind};
use crate::grouping::split::widest::{Ties, Widest, cut_at_median};
use crate::methods::mondrian::is_allowed;
use crate::model::{Code, Grouping, Shape, Table};
use crate::privacy::{GroupView, Rules};

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("l-mondrian", "Median splits, hierarchies at their nodes, sensitive values kept diverse.", |setting| {
        let merge = setting.options.text(&FAILING) == Some("merge");
        let failing = if merge { Failing::Merge } else { Failing::Check };
        Arc::new(LMondrian { failing, nodes: setting.options.switch(&NODES).unwrap_or(false) })
    })
    .options(&[FAILING, NODES]);

const NODES: Key = Key::new(
    "nodes",
    "Whether numbers and dates with a hierarchy are split at its nodes, as categories are, rather than at medians. Defaults \
     to false.",
    Kind::Switch,
);

const FAILING: Key = Key::new(
    "failing",
    "How classes that would fail a rule are avoided. Defaults to `check`.",
    Kind::Word(&[
        ("check", "No split makes one."),
        ("merge", "Splits look at k alone; a class that fails is merged into the next."),
    ]),
);

/// How classes that would fail a rule are avoided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failing {
    /// No split makes one.
    #[default]
    Check,
    /// They are merged into the next class.
    Merge,
}

/// Mondrian with hierarchies split at their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LMondrian {
    /// How classes that would fail a rule are avoided.
    pub failing: Failing,
    /// Whether numbers and dates with a hierarchy are split at its nodes rather than at medians.
    pub nodes: bool,
}

impl Method for LMondrian {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let asked = match self.failing {
            Failing::Check => rules.clone(),
            Failing::Merge => Rules::k(rules.k),
        };
        let mut rows: Vec<u32> = (0..cell.rows() as u32).collect();
        let mut classes: Vec<Vec<u32>> = Vec::new();
        let mut open = vec![(0, rows.len())];
        while let Some((start, end)) = open.pop() {
            match split_rows(cell, &mut rows[start..end], &asked, self.nodes) {
                Some(ends) => {
                    let ends: Vec<usize> = ends.into_iter().map(|at| start + at).collect();
                    let starts = std::iter::once(start).chain(ends.iter().copied());
                    let mut parts: Vec<(usize, usize)> = starts.zip(ends.iter().copied()).collect();
                    parts.reverse();
                    open.extend(parts);
                }
                None => classes.push(rows[start..end].to_vec()),
            }
        }
        if self.failing == Failing::Merge {
            merge_failing(cell, rules, &mut classes);
        }
        let mut grouping = Grouping::with_capacity(rows.len());
        for class in classes {
            if class.len() >= rules.k.max(1) {
                grouping.push(&class);
            } else {
                grouping.left_over.extend(class);
            }
        }
        grouping
    }
}

/// Splits rows along the widest attribute that allows it: reorders them and returns where each part ends.
fn split_rows(cell: &Table, rows: &mut [u32], rules: &Rules, nodes: bool) -> Option<Vec<usize>> {
    if rows.len() / 2 < rules.k.max(1) {
        return None;
    }
    let only_rows = rules.only_rows(cell);
    for axis in Widest::BOUNDARY.axes_by_width(cell, rows) {
        let mut tried = rows.to_vec();
        let ends = match &cell.axes[axis].shape {
            Shape::Tree(_) if nodes || !cell.axes[axis].ordered => split_at_node(cell, &mut tried, axis),
            Shape::Tree(_) | Shape::Line { .. } | Shape::Set { .. } => {
                cut_at_median(cell, &mut tried, axis, Ties::Boundary, rules.k).map(|left| vec![left, rows.len()])
            }
        };
        let Some(ends) = ends else { continue };
        let mut start = 0;
        let all = ends.iter().all(|&end| {
            let part = &tried[std::mem::replace(&mut start, end)..end];
            part.len() >= rules.k.max(1) && (only_rows || is_allowed(cell, part, rules))
        });
        if all {
            rows.copy_from_slice(&tried);
            return Some(ends);
        }
    }
    None
}

/// Sorts rows by the children of the closest common ancestor of their values; `None` if they have one value.
fn split_at_node(cell: &Table, rows: &mut [u32], axis: usize) -> Option<Vec<usize>> {
    let Shape::Tree(tree) = &cell.axes[axis].shape else { return None };
    let code = |row: u32| cell.row(row)[axis];
    let lo = rows.iter().map(|&row| code(row)).min()?;
    let hi = rows.iter().map(|&row| code(row)).max()?;
    let node = tree.common_ancestor(lo, hi)?;
    let child = |row: u32| -> Code { tree.child_codes(node, code(row)).0 };
    rows.sort_by_key(|&row| child(row));
    let parts = rows.chunk_by(|&a, &b| child(a) == child(b));
    Some(
        parts
            .scan(0, |end, part| {
                *end += part.len();
                Some(*end)
            })
            .collect(),
    )
}

/// Merges every class that fails a rule into the next, and the last into the one before.
fn merge_failing(cell: &Table, rules: &Rules, classes: &mut Vec<Vec<u32>>) {
    let mut merged: Vec<Vec<u32>> = Vec::with_capacity(classes.len());
    let mut waiting: Vec<u32> = Vec::new();
    for class in classes.drain(..) {
        waiting.extend(class);
        if rules.are_met_by(&GroupView::new(cell, &waiting)) {
            merged.push(std::mem::take(&mut waiting));
        }
    }
    match merged.last_mut() {
        Some(last) => last.extend(waiting),
        None if !waiting.is_empty() => merged.push(waiting),
        None => {}
    }
    *classes = merged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::model::{Axis, Tree};
    use crate::privacy::l_diversity::{Diversity, LDiversity};

    fn groups(failing: Failing, table: &Table, rules: &Rules) -> Vec<Vec<u32>> {
        let grouping = LMondrian { failing, nodes: false }.group(table, rules, 0);
        assert_eq!(grouping.rows().len() + grouping.left_over.len(), table.rows());
        grouping.iter().map(<[u32]>::to_vec).collect()
    }

    fn diverse(k: usize, l: usize) -> Rules {
        let rule = LDiversity { column: "disease".into(), kind: Diversity::Distinct { l } };
        Rules { k, others: vec![Arc::new(rule)] }
    }

    #[test]
    fn hierarchies_are_split_into_all_children_of_a_node() {
        let tree = Tree::new(6, [(0, 1, 0.2), (2, 3, 0.2), (4, 5, 0.2)]);
        let table = Table::new([Axis::new("tree", Shape::Tree(tree))], vec![0, 4, 2, 5, 3, 1]);
        assert_eq!(groups(Failing::Check, &table, &Rules::k(2)), [[0, 5], [2, 4], [1, 3]]);
        assert_eq!(groups(Failing::Check, &table, &Rules::k(3)).len(), 1, "one child is too small");
    }

    /// Algorithm 3 cuts numbers and dates at the median, whatever hierarchy they are published in.
    #[test]
    fn tinabo_algorithm_3_cuts_numbers_at_the_median() {
        let tree = Tree::new(8, [(0, 5, 0.7), (6, 7, 0.2)]);
        let mut axis = Axis::new("age", Shape::Tree(tree));
        axis.ordered = true;
        let table = Table::new([axis], vec![0, 1, 2, 3, 4, 5, 6, 7]);
        let split = |nodes: bool| {
            let grouping = LMondrian { failing: Failing::Check, nodes }.group(&table, &Rules::k(2), 0);
            grouping.iter().map(<[u32]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(split(false), [vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]]);
        assert_eq!(split(true), [vec![0, 1, 2, 3, 4, 5], vec![6, 7]]);
    }

    /// Erratum: the printed class of five rows with five diseases could be split.
    #[test]
    fn tinabo_ten_rows_printed_class_of_l_mondrian_can_be_split() {
        let table = fixtures::tinabo_ten_rows();
        let rules = diverse(2, 2);
        assert_eq!(split_rows(&table, &mut [5, 1, 4, 9, 2], &rules, true), Some(vec![3, 5]));
        for failing in [Failing::Check, Failing::Merge] {
            let found = groups(failing, &table, &rules);
            assert!(found.iter().all(|group| rules.are_met_by(&GroupView::new(&table, group))));
        }
    }

    #[test]
    fn failing_classes_go_into_the_next_and_the_last_into_the_one_before() {
        let mut table = Table::new([Axis::new("x", Shape::Line { span: 9 })], (0..8).collect());
        table.sensitive = fixtures::tinabo_walkthrough().sensitive;
        table.sensitive[0].codes = vec![0, 0, 0, 1, 0, 1, 1, 1];
        assert_eq!(groups(Failing::Merge, &table, &diverse(2, 2)), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(groups(Failing::Check, &table, &diverse(2, 2)), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        table.sensitive[0].codes = vec![0; 8];
        assert_eq!(groups(Failing::Merge, &table, &diverse(2, 2)).len(), 1);
    }
}
