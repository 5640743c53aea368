//! `mondrian`: halve the widest attribute until no part can be halved; the parts are the groups (LeFevre et al., 2006).
//!
//! 1. Attributes are tried from the widest to the narrowest.
//! 2. Strict: the cut lies between two values, the nearest to the median. Relaxed: at the median rank, so that rows
//!    with equal values may part.
//! 3. A cut is allowed when both sides have k rows and meet every other rule, but for rules that fewer rows may yet
//!    meet (a bound on loss): those are left to the cuts below.
//!
//! Cost grows as n log n.

use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::cancel::checkpoint;
use crate::grouping::entry::Entry;
use crate::grouping::options::{Key, Kind};
use crate::grouping::split::Split;
use crate::grouping::split::widest::{Ties, Widest, Width, cut_at_median};
use crate::model::{Grouping, Table};
use crate::privacy::{GroupView, Rules};

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new("mondrian", "Median splits down to groups of k.", |setting| {
    Arc::new(Mondrian { strict: setting.options.text(&VARIANT) != Some("relaxed") })
})
.options(&[VARIANT]);

const VARIANT: Key = Key::new(
    "variant",
    "Whether equal values stay together in a split. Defaults to `strict`.",
    Kind::Word(&[
        ("strict", "Equal values stay on one side of a cut."),
        ("relaxed", "Values equal to the median are divided between both sides."),
    ]),
);

/// Mondrian multidimensional partitioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mondrian {
    /// Whether equal values stay together.
    pub strict: bool,
}

impl Method for Mondrian {
    fn name(&self) -> &'static str {
        "mondrian"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut rows: Vec<u32> = (0..cell.rows() as u32).collect();
        let mut grouping = Grouping::with_capacity(rows.len());
        let mut open = vec![(0, rows.len())];
        while let Some((start, end)) = open.pop() {
            checkpoint();
            match self.cut_rows(cell, &mut rows[start..end], rules) {
                Some(left) => open.extend([(start + left, end), (start, start + left)]),
                None if end - start >= rules.k.max(1) => grouping.push(&rows[start..end]),
                None => grouping.left_over.extend_from_slice(&rows[start..end]),
            }
        }
        grouping
    }
}

impl Mondrian {
    fn cut_rows(&self, cell: &Table, rows: &mut [u32], rules: &Rules) -> Option<usize> {
        let ties = if self.strict { Ties::Boundary } else { Ties::Divide };
        let split = Widest { width: Width::Normalised, ties, next: true };
        if rules.only_rows(cell) {
            return split.cut_rows(cell, rows, rules.k);
        }
        if rows.len() / 2 < rules.k {
            return None;
        }
        for axis in split.axes_by_width(cell, rows) {
            let mut tried = rows.to_vec();
            if let Some(left) = cut_at_median(cell, &mut tried, axis, ties, rules.k)
                && is_allowed(cell, &tried[..left], rules)
                && is_allowed(cell, &tried[left..], rules)
            {
                rows.copy_from_slice(&tried);
                return Some(left);
            }
        }
        None
    }
}

/// Whether a part of a cut meets the rules, but for those that fewer rows may yet meet.
pub(crate) fn is_allowed(cell: &Table, side: &[u32], rules: &Rules) -> bool {
    rules.hold_in_parts(&GroupView::new(cell, side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::model::{Axis, Shape};
    use crate::privacy::l_diversity::{Diversity, LDiversity};

    fn groups(method: Mondrian, table: &Table, rules: &Rules) -> Vec<Vec<u32>> {
        let grouping = method.group(table, rules, 0);
        assert_eq!(grouping.rows().len() + grouping.left_over.len(), table.rows());
        grouping.iter().map(<[u32]>::to_vec).collect()
    }

    /// The thesis' remark: the same as median-based partitioning down to k.
    #[test]
    fn loukides_table_3_7_by_relaxed_mondrian() {
        let relaxed = Mondrian { strict: false };
        assert_eq!(groups(relaxed, &fixtures::table_3_5(), &Rules::k(2)), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    }

    #[test]
    fn strict_cuts_keep_values_together_and_try_the_next_attribute() {
        let axes = [Axis::new("x", Shape::Line { span: 9 }), Axis::new("y", Shape::Line { span: 100 })];
        // The widest attribute, x, has one value five times out of six; y allows a cut in the middle.
        let table = Table::new(axes, vec![5, 0, 5, 10, 5, 20, 5, 30, 5, 40, 9, 30]);
        let strict = groups(Mondrian { strict: true }, &table, &Rules::k(2));
        assert_eq!(strict, [vec![0, 1, 2], vec![3, 4, 5]]);
        let constant = Table::new([Axis::new("x", Shape::Line { span: 9 })], vec![4; 10]);
        assert_eq!(groups(Mondrian { strict: true }, &constant, &Rules::k(2)).len(), 1);
        assert_eq!(groups(Mondrian { strict: false }, &constant, &Rules::k(2)).len(), 4);
    }

    #[test]
    fn cuts_respect_the_other_rules() {
        let table = fixtures::table_3_1();
        let diverse = LDiversity { column: "salary".into(), kind: Diversity::Distinct { l: 2 } };
        let rules = Rules { k: 2, others: vec![Arc::new(diverse)] };
        for strict in [true, false] {
            let groups = groups(Mondrian { strict }, &table, &rules);
            assert!(groups.iter().all(|group| rules.are_met_by(&GroupView::new(&table, group))));
        }
        assert!(groups(Mondrian { strict: true }, &table, &Rules::k(9)).is_empty());
    }
}
