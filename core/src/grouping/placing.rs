//! Which of many groups should take a left-over row.
//!
//! What a row would cost every group is found in one sweep per axis over the ends of all groups, which stand side by
//! side: a few instructions per group, whatever the shapes. When even that is too much for all rows, groups at even
//! distances are probed and only those around the best probes are asked: groups stand in the order of the tree that cut
//! the cell, so neighbours in the list are mostly neighbours in space.

use std::ops::Range;

use crate::model::{Axis, Code, Cover, Shape, Tree};

/// Most costs per cell that are computed by asking every group.
const EVALUATIONS: usize = 300_000_000;

/// Probes whose surroundings are searched.
const BEST_PROBES: usize = 8;

/// Groups whose losses on a tree are found together.
const PART: usize = 256;

/// Costs of one more row for every group of a cell.
#[derive(Debug)]
pub(crate) struct Placing<'a> {
    axes: &'a [Axis],
    columns: Vec<Column>,
    weight: f64,
    groups: usize,
    ask_all: bool,
    costs: Vec<f64>,
}

/// What the groups cover on one axis, group by group.
#[derive(Debug, Default)]
struct Column {
    lo: Vec<Code>,
    hi: Vec<Code>,
    /// Codes of a set of fewer than 64 values, as bits: null may stand one beyond them.
    bits: Vec<u64>,
    /// Codes of a larger set.
    codes: Vec<Vec<Code>>,
}

impl<'a> Placing<'a> {
    /// Creates the costs for some groups and a number of rows to place.
    pub(crate) fn new<'c>(axes: &'a [Axis], groups: impl IntoIterator<Item = &'c Cover>, rows: usize) -> Self {
        let columns = axes.iter().map(|_| Column::default()).collect();
        let weight = axes.iter().map(|axis| axis.weight).sum();
        let mut placing = Self { axes, columns, weight, groups: 0, ask_all: true, costs: Vec::new() };
        for cover in groups {
            for (column, axis) in placing.columns.iter_mut().zip(axes) {
                column.lo.push(0);
                column.hi.push(0);
                match axis.shape {
                    Shape::Set { values: ..64 } => column.bits.push(0),
                    Shape::Set { .. } => column.codes.push(Vec::new()),
                    Shape::Line { .. } | Shape::Tree(_) => {}
                }
            }
            placing.groups += 1;
            placing.update_group(placing.groups - 1, cover);
        }
        placing.ask_all = rows.saturating_mul(placing.groups) <= EVALUATIONS;
        placing
    }

    /// A group has changed.
    pub(crate) fn update_group(&mut self, group: usize, cover: &Cover) {
        for (a, column) in self.columns.iter_mut().enumerate() {
            column.lo[group] = cover.lo[a];
            column.hi[group] = cover.hi[a];
            if let Some(bits) = column.bits.get_mut(group) {
                *bits = cover.codes(a).iter().fold(0, |bits, code| bits | 1 << code);
            }
            if let Some(codes) = column.codes.get_mut(group) {
                codes.clear();
                codes.extend_from_slice(cover.codes(a));
            }
        }
    }

    /// The cost of each group with this row ([`Cover::cost_with`]); infinite for groups not worth asking.
    pub(crate) fn row_costs(&mut self, row: &[Code]) -> &[f64] {
        let mut costs = std::mem::take(&mut self.costs);
        costs.clear();
        // Probing costs groups / step, the surroundings 2 * step for each of the best: least in sum at about this step.
        let step = (self.groups / (2 * BEST_PROBES)).isqrt().max(1);
        if self.ask_all || step < 2 {
            costs.resize(self.groups, 0.0);
            self.sweep_groups(row, 0..self.groups, &mut costs);
        } else {
            costs.resize(self.groups, f64::INFINITY);
            let mut probes: Vec<usize> = (0..self.groups).step_by(step).collect();
            for &probe in &probes {
                costs[probe] = 0.0;
                self.sweep_groups(row, probe..probe + 1, &mut costs[probe..=probe]);
            }
            probes.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]).then(a.cmp(&b)));
            for &probe in probes.iter().take(BEST_PROBES) {
                let around = probe.saturating_sub(step - 1)..(probe + step).min(self.groups);
                costs[around.clone()].fill(0.0);
                self.sweep_groups(row, around.clone(), &mut costs[around]);
            }
        }
        self.costs = costs;
        &self.costs
    }

    /// Fills in the costs of a range of groups, which must be zero.
    fn sweep_groups(&self, row: &[Code], groups: Range<usize>, costs: &mut [f64]) {
        for ((axis, column), &code) in self.axes.iter().zip(&self.columns).zip(row) {
            let ends = column.lo[groups.clone()].iter().zip(&column.hi[groups.clone()]);
            let ends = ends.map(|(&lo, &hi)| (lo.min(code), hi.max(code)));
            let weight = axis.weight;
            match (&axis.shape, axis.null) {
                (Shape::Line { span }, null) => {
                    let span = f64::from((*span).max(1));
                    let null = null.map_or(-1, i32::from);
                    for (cost, (lo, hi)) in costs.iter_mut().zip(ends) {
                        let width = f64::from(hi - lo) / span;
                        *cost += weight * if i32::from(hi) == null && lo != hi { 1.0 } else { width };
                    }
                }
                (Shape::Tree(tree), null) => {
                    let (los, his) = (&column.lo[groups.clone()], &column.hi[groups.clone()]);
                    let null = null.map_or(-1, i32::from);
                    let parts = los.chunks(PART).zip(his.chunks(PART)).zip(costs.chunks_mut(PART));
                    for ((lo, hi), costs) in parts {
                        let mut losses = [0.0; PART];
                        common_losses(tree, code, lo, hi, &mut losses);
                        for (((cost, loss), lo), hi) in costs.iter_mut().zip(losses).zip(lo).zip(hi) {
                            let top = i32::from(code.max(*hi)) == null && (*lo, *hi) != (code, code);
                            *cost += weight * if top { 1.0 } else { loss };
                        }
                    }
                }
                (Shape::Set { values: values @ ..64 }, null) => {
                    let others = f64::from(values.saturating_sub(1).max(1));
                    let null = null.map_or(-1, i32::from);
                    let bits = &column.bits[groups.clone()];
                    for ((cost, (lo, hi)), bits) in costs.iter_mut().zip(ends).zip(bits) {
                        let more = (bits | 1 << code).count_ones() - 1;
                        let top = i32::from(hi) == null && lo != hi;
                        *cost += weight * if top { 1.0 } else { f64::from(more) / others };
                    }
                }
                (Shape::Set { .. }, _) => {
                    let codes = &column.codes[groups.clone()];
                    for ((cost, (lo, hi)), codes) in costs.iter_mut().zip(ends).zip(codes) {
                        let distinct = codes.len() + usize::from(codes.binary_search(&code).is_err());
                        *cost += weight * axis.loss(lo, hi, distinct as u32);
                    }
                }
            }
        }
        costs.iter_mut().for_each(|cost| *cost /= self.weight);
    }
}

/// Losses of the closest node above both a code and each group, given by its ends: of the nodes above the code, the lowest
/// that holds both ends. One node after the other is held against all groups, which is plain comparing.
fn common_losses(tree: &Tree, code: Code, lo: &[Code], hi: &[Code], losses: &mut [f64; PART]) {
    const OPEN: f64 = -1.0;
    let alone = tree.loss(code, code);
    for (loss, (lo, hi)) in losses.iter_mut().zip(lo.iter().zip(hi)) {
        *loss = if *lo == code && *hi == code { alone } else { OPEN };
    }
    let mut at = tree.node_above(code);
    loop {
        let node = &tree.nodes()[at as usize];
        for (loss, (lo, hi)) in losses.iter_mut().zip(lo.iter().zip(hi)) {
            let found = (*loss == OPEN) & (node.lo <= *lo) & (*hi <= node.hi);
            *loss = if found { node.loss } else { *loss };
        }
        if node.parent == at {
            return;
        }
        at = node.parent;
    }
}

/// The group with the least score, the first among equals. `floor` bounds the score from below, given the group and its
/// cost; `score` is asked only where the floor is below the best score so far, and has none for groups that are not
/// allowed.
pub(crate) fn cheapest_group(
    costs: &[f64],
    floor: impl Fn(usize, f64) -> f64,
    score: impl Fn(usize, f64) -> Option<f64>,
) -> Option<usize> {
    let mut best = (f64::INFINITY, None);
    for (group, &cost) in costs.iter().enumerate() {
        if cost.is_finite()
            && floor(group, cost) < best.0
            && let Some(score) = score(group, cost)
            && score < best.0
        {
            best = (score, Some(group));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grouping::fixtures;
    use crate::model::Table;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn swept_costs_are_those_of_the_covers(table in fixtures::tables(), size in 1..9_usize) {
            let rows: Vec<u32> = (0..table.rows() as u32).collect();
            let mut covers: Vec<Cover> = rows.chunks(size).map(|group| table.cover(group)).collect();
            let mut placing = Placing::new(&table.axes, &covers, rows.len());
            for &row in &rows {
                let row = table.row(row);
                let expected: Vec<f64> = covers.iter().map(|cover| cover.cost_with(&table.axes, row)).collect();
                prop_assert_eq!(placing.row_costs(row), &expected[..]);
                covers[0].add_row(&table.axes, row);
                placing.update_group(0, &covers[0]);
            }
        }
    }

    #[test]
    fn large_sets_are_counted_too() {
        let axes = [Axis::new("set", Shape::Set { values: 1001 })];
        let table = Table::new(axes, vec![7, 900, 7, 13]);
        let covers = [table.cover(&[0, 1]), table.cover(&[2])];
        let mut placing = Placing::new(&table.axes, &covers, 1);
        assert_eq!(placing.row_costs(table.row(3)), [0.002, 0.001]);
        assert_eq!(placing.row_costs(table.row(0)), [0.001, 0.0]);
    }

    #[test]
    fn probing_finds_the_cheapest_of_an_ordered_list_with_few_questions() {
        let table = Table::new([Axis::new("x", Shape::Line { span: 10_000 })], (0..10_000).collect());
        let covers: Vec<Cover> = (0..10_000).map(|row| table.cover(&[row])).collect();
        let mut placing = Placing::new(&table.axes, &covers, usize::MAX);
        for target in [0, 1, 777, 4_321, 9_999] {
            let costs = placing.row_costs(table.row(target));
            assert!(costs.iter().filter(|cost| cost.is_finite()).count() < 1_000);
            assert_eq!(cheapest_group(costs, |_, cost| cost, |_, cost| Some(cost)), Some(target as usize));
        }
    }

    #[test]
    fn the_cheapest_is_the_first_allowed_one() {
        let costs = [3.0, 1.0, 1.0, 0.0, f64::INFINITY];
        let find = |allowed: fn(usize) -> bool| cheapest_group(&costs, |_, c| c, |g, c| allowed(g).then_some(c));
        assert_eq!(find(|_| true), Some(3));
        assert_eq!(find(|group| group != 3), Some(1));
        assert_eq!(find(|_| false), None);
        assert_eq!(cheapest_group(&costs, |_, _| 0.0, |g, c| Some(c - [0.0, 9.0, 0.0, 0.0, 0.0][g])), Some(1));
    }
}
