//! `mpalm`: cut public rows as long as every part keeps its share of members within the bounds (Nergiz et al.; Toth,
//! algorithm 2).
//!
//! 1. Attributes are tried from the widest to the narrowest.
//! 2. *Binary* (the printed algorithm): of all value boundaries at which both halves meet the rules, the one nearest to
//!    the median of the public rows, the lower of two. *Multiway* (what the thesis' trace does): every value, or every
//!    child of the hierarchy's node, becomes a part of its own, and all of them must meet the rules.
//! 3. Parts without such a cut are the groups.
//!
//! Deviations. The thesis publishes the bounding box of the members of a part, although the bounds were tested on all its
//! public rows; a reader could leave out the rows outside the box and be surer of the others, so groups hold public rows
//! and what is published covers all of them. And values must not overlap, or the shares mean nothing: an attribute with
//! a hierarchy is always cut into the children of its node (half of them would be published as the node itself), nulls
//! part from values before anything else does, and no side of a cut through a set is larger than what is published as a
//! set. A column with a hierarchy or of text, whose values are too many for their codes, is not cut at all.
//!
//! A table whose own share of members is out of bounds cannot be repaired: see [`Mpalm::is_feasible`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::Method;
use super::cancel::checkpoint;
use super::entry::{Entry, needs_presence};
use super::options::{Key, Kind};
use crate::attack::Bounds;
use crate::grouping::split::widest::Widest;
use crate::model::{Axis, Code, Grouping, MAX_SET_VALUES, Shape, Table, Tree};
use crate::privacy::{GroupView, Rules};

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "mpalm",
    "Cuts that keep everybody's chance to be in the source within the bounds of `presence`.",
    |setting| {
        let multiway = setting.options.text(&CUTS) == Some("multiway");
        Arc::new(Mpalm {
            bounds: setting.presence.clone().unwrap_or_else(|| Bounds::new(0.0, 1.0)),
            reading: if multiway { Reading::Multiway } else { Reading::Binary },
        })
    },
)
.options(&[CUTS])
.check(needs_presence);

const CUTS: Key = Key::new(
    "cuts",
    "How an attribute without a hierarchy is cut; one with a hierarchy is cut into the children of a node. Defaults to \
     `binary`.",
    Kind::Word(&[
        ("binary", "In two, as near to the median as the bounds allow."),
        ("multiway", "Into all its values."),
    ]),
);

/// How a cut divides an attribute without a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// In two, near the median.
    #[default]
    Binary,
    /// Into all its values.
    Multiway,
}

/// Greedy multidimensional delta-presence.
#[derive(Debug, Clone, PartialEq)]
pub struct Mpalm {
    /// What the share of members must lie between; the rules say the same, but cuts are tried by counts alone first.
    pub bounds: Bounds,
    /// How attributes are cut.
    pub reading: Reading,
}

/// Boundaries of an attribute that are tried against rules that counts alone cannot decide.
const TRIES: usize = 8;

/// One value of an attribute among some rows: its code, its rows, and how many of them are members.
#[derive(Debug, Clone, Copy)]
struct Value {
    code: Code,
    rows: u64,
    members: u64,
}

impl Mpalm {
    /// Whether the share of members of the whole table lies within the bounds.
    pub fn is_feasible(&self, table: &Table) -> bool {
        let members = (0..table.rows() as u32).filter(|&row| table.is_member(row)).count();
        self.bounds.allow_counts(members as u64, table.rows() as u64)
    }

    /// Cuts rows as long as every part meets the rules, and hands out the parts. What is published of them lies apart.
    pub(crate) fn cut_apart(&self, cell: &Table, mut rows: Vec<u32>, rules: &Rules, mut each: impl FnMut(&[u32])) {
        let mut open = VecDeque::from([(0, rows.len())]);
        while let Some((start, end)) = open.pop_front() {
            checkpoint();
            match self.cut_rows(cell, &mut rows[start..end], rules) {
                Some(ends) => {
                    let mut from = start;
                    for to in ends {
                        open.push_back((from, start + to));
                        from = start + to;
                    }
                }
                None if start < end => each(&rows[start..end]),
                None => {}
            }
        }
    }

    /// Cuts rows into parts that all meet the rules: reorders them and returns where the parts end; `None` if there is
    /// no such cut.
    fn cut_rows(&self, cell: &Table, rows: &mut [u32], rules: &Rules) -> Option<Vec<usize>> {
        // The counts of a candidate say all that k and the bounds ask for.
        let counted = cell.persons.is_none() && rules.others.iter().all(|rule| rule.guards_the_absent());
        for axis in Widest::BOUNDARY.axes_by_width(cell, rows) {
            let values = axis_values(cell, rows, axis);
            if values.len() < 2 {
                continue;
            }
            for cuts in self.candidate_cuts(&cell.axes[axis], &values, rules) {
                let (tried, ends) = part_rows(cell, rows, axis, &cuts);
                let mut start = 0;
                let hold = counted
                    || ends.iter().all(|&end| {
                        let view = GroupView::new(cell, &tried[start..end]);
                        start = end;
                        rules.are_met_by(&view)
                    });
                if hold {
                    rows.copy_from_slice(&tried);
                    return Some(ends);
                }
            }
        }
        None
    }

    /// Cuts worth trying, best first: the largest code of every part but the last.
    fn candidate_cuts(&self, axis: &Axis, values: &[Value], rules: &Rules) -> Vec<Vec<Code>> {
        let part_ok = |part: &[Value]| {
            let (rows, members) = part.iter().fold((0, 0), |sum, value| (sum.0 + value.rows, sum.1 + value.members));
            self.bounds.allow_counts(members, rows) && (members == 0 || members >= rules.k as u64)
        };
        let fit = |cuts: &Vec<Code>| {
            let mut rest = values;
            let mut parts = cuts.iter().map(|last| {
                let (part, others) = rest.split_at(rest.partition_point(|value| value.code <= *last));
                rest = others;
                part
            });
            parts.all(part_ok) && part_ok(rest)
        };
        let mixed = axis.null.is_some() && axis.null == values.last().map(|value| value.code);
        // What is published as everything parts from nothing.
        if mixed && axis.shared_null {
            return Vec::new();
        }
        let all: Vec<Vec<Code>> = match (&axis.shape, self.reading) {
            (Shape::Tree(_) | Shape::Set { .. }, _) if !axis.exact => Vec::new(),
            (Shape::Tree(tree), _) => tree_cut(axis, tree, values).into_iter().collect(),
            (_, Reading::Multiway) => vec![values[..values.len() - 1].iter().map(|value| value.code).collect()],
            (_, Reading::Binary) if mixed => vec![vec![values[values.len() - 2].code]],
            (shape, Reading::Binary) => {
                let largest = if matches!(shape, Shape::Set { .. }) { MAX_SET_VALUES as usize } else { usize::MAX };
                return self.halving_cuts(values, rules, largest);
            }
        };
        all.into_iter().filter(fit).collect()
    }

    /// Boundaries at which both halves pass by their counts, from the nearest to the median on.
    fn halving_cuts(&self, values: &[Value], rules: &Rules, largest: usize) -> Vec<Vec<Code>> {
        let total = values.iter().fold((0, 0), |sum, value| (sum.0 + value.rows, sum.1 + value.members));
        let ok = |rows: u64, members: u64| {
            self.bounds.allow_counts(members, rows) && (members == 0 || members >= rules.k as u64)
        };
        let mut found: Vec<(u64, Code)> = Vec::new();
        let (mut rows, mut members) = (0, 0);
        for (at, value) in values[..values.len() - 1].iter().enumerate() {
            rows += value.rows;
            members += value.members;
            let small = at < largest && values.len() - 1 - at <= largest;
            if small && ok(rows, members) && ok(total.0 - rows, total.1 - members) {
                found.push(((2 * rows).abs_diff(total.0), value.code));
            }
        }
        found.sort_unstable();
        found.truncate(TRIES);
        found.into_iter().map(|(_, code)| vec![code]).collect()
    }
}

/// The cut into the children of the node that covers all values; `None` if a value is published as the root.
fn tree_cut(axis: &Axis, tree: &Tree, values: &[Value]) -> Option<Vec<Code>> {
    if values.iter().any(|value| tree.loss(value.code, value.code) > 0.0) {
        return None;
    }
    let (first, last) = (values.first()?.code, values.last()?.code);
    let top = tree.common_ancestor(first, last)?;
    // The largest leaf below the same child of `top`, or below the same child of a node that is published as the top.
    let stop = |node: u32| node == top || axis.is_top(tree, node);
    let end = |code: Code| {
        let mut node = tree.node_above(code);
        if stop(node) {
            return code;
        }
        while !stop(tree.nodes()[node as usize].parent) {
            node = tree.nodes()[node as usize].parent;
        }
        tree.nodes()[node as usize].hi
    };
    let mut cuts: Vec<Code> = values.iter().map(|value| end(value.code)).collect();
    cuts.dedup();
    cuts.pop();
    Some(cuts)
}

/// Rows in the order of the parts that cuts make of them, and where each part ends.
fn part_rows(cell: &Table, rows: &[u32], axis: usize, cuts: &[Code]) -> (Vec<u32>, Vec<usize>) {
    let part = |row: u32| cuts.partition_point(|&last| last < cell.row(row)[axis]);
    let mut ends = vec![0; cuts.len() + 1];
    rows.iter().for_each(|&row| ends[part(row)] += 1);
    let mut next = Vec::with_capacity(ends.len());
    let mut sum = 0;
    for end in &mut ends {
        next.push(sum);
        sum += *end;
        *end = sum;
    }
    let mut parted = vec![0; rows.len()];
    for &row in rows {
        let place = &mut next[part(row)];
        parted[*place] = row;
        *place += 1;
    }
    (parted, ends)
}

/// The values of some rows on an axis, ascending.
fn axis_values(cell: &Table, rows: &[u32], axis: usize) -> Vec<Value> {
    let code = |row: u32| cell.row(row)[axis];
    let (lo, hi) = rows.iter().fold((Code::MAX, 0), |(lo, hi), &row| (lo.min(code(row)), hi.max(code(row))));
    if lo >= hi {
        return Vec::new();
    }
    // Counted in place when codes are not much more than rows, else sorted.
    if usize::from(hi - lo) < 4 * rows.len() {
        let mut counts = vec![(0_u64, 0_u64); usize::from(hi - lo) + 1];
        for &row in rows {
            let (all, members) = &mut counts[usize::from(code(row) - lo)];
            *all += 1;
            *members += u64::from(cell.is_member(row));
        }
        let value = |(code, (rows, members))| Value { code, rows, members };
        return (lo..=hi).zip(counts).filter(|(_, (rows, _))| *rows > 0).map(value).collect();
    }
    let mut codes: Vec<(Code, bool)> = rows.iter().map(|&row| (code(row), cell.is_member(row))).collect();
    codes.sort_unstable();
    codes
        .chunk_by(|a, b| a.0 == b.0)
        .map(|run| Value {
            code: run[0].0,
            rows: run.len() as u64,
            members: run.iter().filter(|(_, member)| *member).count() as u64,
        })
        .collect()
}

impl Method for Mpalm {
    fn name(&self) -> &'static str {
        "mpalm"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = Grouping::with_capacity(cell.rows());
        self.cut_apart(cell, (0..cell.rows() as u32).collect(), rules, |part| grouping.push(part));
        grouping
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attack::Bucket;
    use crate::attack::worlds::enumerate_worlds;
    use crate::grouping::fixtures;
    use crate::model::{Levels, Region};
    use crate::privacy::presence::Presence;

    fn rules(k: usize, min: f64, max: f64) -> Rules {
        Rules { k, others: vec![Arc::new(Presence::new(min, max))] }
    }

    fn mpalm(min: f64, max: f64, reading: Reading) -> Mpalm {
        Mpalm { bounds: Bounds::new(min, max), reading }
    }

    fn groups(method: &Mpalm, table: &Table, rules: &Rules) -> Vec<Vec<u32>> {
        let mut groups: Vec<Vec<u32>> = method.group(table, rules, 0).iter().map(<[u32]>::to_vec).collect();
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups
    }

    /// Zip is tried first and would part 5371 (2/2) and 5373 (1/1); age parts 5/6 and 3/4.
    #[test]
    fn toth_figs_2_10_to_2_14_multiway() {
        let table = fixtures::p1_t1();
        let found = groups(&mpalm(0.1, 0.9, Reading::Multiway), &table, &rules(1, 0.1, 0.9));
        assert_eq!(found, [vec![0, 1, 2, 6, 7, 8], vec![3, 4, 5, 9]]);
        let share = |group: &[u32]| (GroupView::new(&table, group).members(), group.len());
        assert_eq!(found.iter().map(|group| share(group)).collect::<Vec<_>>(), [(5, 6), (3, 4)]);
    }

    /// The printed algorithm accepts a cut of zip, which the trace of the thesis rejects: 3/4 and 5/6, or 5/6 and 3/4.
    #[test]
    fn toth_algorithm_2_binary_cuts_zip() {
        let mut table = fixtures::p1_t1();
        let axes = [Axis::new("zip", Shape::Line { span: 3 }), Axis::new("age", Shape::Line { span: 1 })];
        table.axes = axes.into();
        let found = groups(&mpalm(0.1, 0.9, Reading::Binary), &table, &rules(1, 0.1, 0.9));
        assert_eq!(found[0], [0, 1, 2, 3], "below 5371, three of four");
        assert!(found.iter().all(|group| rules(1, 0.1, 0.9).are_met_by(&GroupView::new(&table, group))));
    }

    #[test]
    fn toth_fig_5_6_xor_reveals_one_column() {
        let table = fixtures::xor();
        for reading in [Reading::Binary, Reading::Multiway] {
            assert_eq!(groups(&mpalm(0.5, 0.5, reading), &table, &rules(1, 0.5, 0.5)), [[0, 1], [2, 3]]);
        }
    }

    /// Nulls part from values only when no group is left that is published as everything.
    #[test]
    fn nulls_part_together_with_the_children_of_the_top() {
        let mut axis = Axis::new("tree", Shape::Tree(Tree::new(5, [(0, 3, 1.0), (0, 1, 0.3), (2, 3, 0.3)])));
        axis.null = Some(4);
        let mut table = Table::new([axis], vec![0, 1, 0, 1, 2, 3, 2, 3, 4, 4, 4, 4]);
        table.members = Some([true, false].repeat(6));
        let found = groups(&mpalm(0.5, 0.5, Reading::Binary), &table, &rules(2, 0.5, 0.5));
        assert_eq!(found, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]]);
    }

    /// Seen failing: NaN is published as everything, so it overlaps every value.
    #[test]
    fn what_is_no_number_parts_from_nothing() {
        let mut axis = Axis::new("line", Shape::Line { span: 3 });
        axis.null = Some(crate::model::NULL_ON_LINE);
        let null = crate::model::NULL_ON_LINE;
        let parts = |shared: bool| {
            let mut axis = axis.clone();
            axis.shared_null = shared;
            let mut table = Table::new([axis], vec![0, 0, 0, 0, null, null, null, null]);
            table.members = Some([true, false].repeat(4));
            groups(&mpalm(0.5, 0.5, Reading::Binary), &table, &rules(2, 0.5, 0.5)).len()
        };
        assert_eq!((parts(false), parts(true)), (2, 1));
    }

    #[test]
    fn an_infeasible_table_is_reported() {
        let table = fixtures::p1_t1();
        assert!(mpalm(0.1, 0.8, Reading::Binary).is_feasible(&table));
        assert!(
            !mpalm(0.1, 0.79, Reading::Binary).is_feasible(&table)
                && !mpalm(0.81, 1.0, Reading::Binary).is_feasible(&table)
        );
    }

    proptest! {
        #[test]
        fn parts_meet_the_rules_and_lie_apart(
            table in fixtures::public_tables(),
            k in 1..6_usize,
            (min, max) in prop_oneof![Just((0.0, 0.9)), Just((0.05, 0.95)), Just((0.2, 0.8))],
            binary in any::<bool>(),
        ) {
            let method = mpalm(min, max, if binary { Reading::Binary } else { Reading::Multiway });
            let rules = rules(k, min, max);
            let grouping = method.group(&table, &rules, 1);
            prop_assert_eq!(&grouping, &method.group(&table, &rules, 2), "the seed makes no difference");
            prop_assert_eq!(grouping.rows().len(), table.rows());
            if grouping.len() > 1 {
                let regions: Vec<Region> = grouping.iter().map(|group| Region::from_cover(&table.axes, &table.cover(group))).collect();
                for (at, group) in grouping.iter().enumerate() {
                    let view = GroupView::new(&table, group);
                    prop_assert!(rules.are_met_by(&view));
                    // A reader sees one value for all of them, and may try every subset of so many.
                    if group.len() <= 12 {
                        let shown = |rows: usize| vec![[0_u32]; rows];
                        let (_, shares) = enumerate_worlds(&Bucket::new(&shown(group.len()), &shown(view.members()))).unwrap();
                        prop_assert!(shares.iter().all(|share| method.bounds.contains_fraction(share)));
                    }
                    prop_assert!(regions[..at].iter().all(|other| !other.meets(&regions[at])));
                }
            }
        }

        /// Lemma 1: to specialise a column of a finished group one level, and to permute, breaks the bounds.
        #[test]
        fn toth_lemma_1_permutation_adds_nothing(codes in prop::collection::vec(0..3_u16, 2..24), flags in any::<u16>()) {
            let rows = codes.len() / 2;
            let axes = ["a", "b"].map(|name| Axis::new(name, Shape::Tree(Tree::new(3, []))));
            let mut table = Table::new(axes, codes[..rows * 2].to_vec());
            table.members = Some((0..rows).map(|row| flags >> row & 1 == 1).collect());
            let bounds = Bounds::new(0.2, 0.8);
            let method = mpalm(0.2, 0.8, Reading::Multiway);
            prop_assume!(method.is_feasible(&table));
            for group in method.group(&table, &rules(1, 0.2, 0.8), 0).iter() {
                for axis in 0..2 {
                    let levels = Levels::from_axis(&table.axes[axis]);
                    let cover = table.cover(group);
                    if cover.lo[axis] == cover.hi[axis] {
                        continue;
                    }
                    let raised = |row: &u32| vec![levels.raise_code(table.row(*row)[axis], 0)];
                    let public: Vec<Vec<u32>> = group.iter().map(raised).collect();
                    let released: Vec<Vec<u32>> = group.iter().filter(|&&row| table.is_member(row)).map(raised).collect();
                    let (_, found) = enumerate_worlds(&Bucket::new(&public, &released)).unwrap();
                    prop_assert!(found.iter().any(|share| !bounds.contains_fraction(share)));
                }
            }
        }
    }
}
