//! Costs in whole numbers: every axis becomes one lane of 16-bit positions, and the loss of a group is a sum over
//! lanes that fits 16 bits too, so that inner loops stay narrow enough to vectorise.
//!
//! - A line is rescaled to positions `0..=scale`; its cost is the width. Null stands a full scale beyond the end.
//! - A tree keeps its leaf numbers. The cost of the closest common ancestor is the sum of the steps up to it, and a
//!   step counts for everything outside of its interval: no table, no look-up, whatever the size of the tree.
//! - A set costs one step for every value beyond the first. A second lane, a tree of two leaves, marks null.
//!
//! Scales share out the 16 bits by the weights of the axes: some 8100 units each for eight equal ones, fewer when there
//! are more.

use crate::model::{Axis, Code, Shape, Table, Tree};

/// Inner loops run over multiples of this many elements, so that nothing is left for a slow last turn.
pub(super) const STRIDE: usize = 32;

/// Cost units that all lanes share.
const UNITS: f64 = 64_000.0;

/// Positions on the lane of a set. Values of a larger set share them: the search then takes some different values for
/// equal.
const SET_POSITIONS: u16 = 64;

/// One term of the cost.
#[derive(Debug)]
pub(super) struct Lane {
    axis: usize,
    null: Option<Code>,
    /// Whether the lane only distinguishes null from the values of a set.
    nulls_only: bool,
    pub shape: LaneShape,
}

/// How positions of a lane relate.
#[derive(Debug)]
pub(super) enum LaneShape {
    /// Cost of `lo..=hi` is `hi - lo`; `ratio` is positions per code, in 1/2^32.
    Line { scale: u16, ratio: u64 },
    /// Cost of `lo..=hi` is that of the closest common ancestor.
    Tree(Steps),
    /// Cost of a set of positions is `step` for every one beyond the first.
    Set { step: u16 },
}

/// One step up a tree: what it costs a group inside of the interval to take in something outside of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub lo: u16,
    pub hi: u16,
    pub cost: u16,
    /// Index of the next step; the root's is itself.
    pub up: u32,
}

/// The steps of a tree, and the cost of any interval of leaves.
#[derive(Debug)]
pub(super) struct Steps {
    /// Inner nodes, the root first, then the leaves.
    steps: Vec<Step>,
    inner: u32,
    /// `highest[j][i]`: cost of the ancestor of leaves `i..=i + 2^j`. Costs rise towards the root, so the ancestor of
    /// any interval is the dearer one of two such intervals that cover it.
    highest: Vec<Vec<u16>>,
}

impl Steps {
    fn new(tree: &Tree, scale: f64) -> Self {
        let nodes = tree.nodes();
        let mut cost: Vec<u16> = nodes.iter().map(|node| (node.loss.clamp(0.0, 1.0) * scale).round() as u16).collect();
        // A parent never costs less than its child.
        for node in (1..nodes.len()).rev() {
            let parent = nodes[node].parent as usize;
            cost[parent] = cost[parent].max(cost[node]);
        }
        let mut steps: Vec<Step> = (0..nodes.len())
            .map(|n| Step {
                lo: nodes[n].lo,
                hi: nodes[n].hi,
                cost: cost[nodes[n].parent as usize] - cost[n],
                up: nodes[n].parent,
            })
            .collect();
        let codes = tree.codes();
        steps.extend((0..codes).map(|code| {
            let up = tree.node_above(code as Code);
            Step { lo: code as u16, hi: code as u16, cost: cost[up as usize], up }
        }));
        let pair =
            |code: usize| tree.common_ancestor(code as Code, code as Code + 1).map_or(0, |node| cost[node as usize]);
        let mut highest: Vec<Vec<u16>> = vec![(0..codes - 1).map(pair).collect()];
        let mut reach = 1;
        while 2 * reach < codes {
            let narrow = &highest[highest.len() - 1];
            highest.push((0..codes - 2 * reach).map(|code| narrow[code].max(narrow[code + reach])).collect());
            reach *= 2;
        }
        Self { steps, inner: nodes.len() as u32, highest }
    }

    /// What the first step above a leaf costs, on average.
    fn mean_first_step(&self) -> u32 {
        let leaves = &self.steps[self.inner as usize..];
        leaves.iter().map(|step| u32::from(step.cost)).sum::<u32>() / leaves.len().max(1) as u32
    }

    /// Index of the first step of a leaf.
    pub fn first_step(&self, position: u16) -> u32 {
        self.inner + u32::from(position)
    }

    /// A step by index.
    pub fn step(&self, index: u32) -> Step {
        self.steps[index as usize]
    }

    /// Cost of the closest common ancestor of `lo..=hi`.
    #[inline]
    pub fn cost(&self, lo: u16, hi: u16) -> u32 {
        if lo >= hi {
            return 0;
        }
        let reach = (hi - lo).ilog2();
        let row = &self.highest[reach as usize];
        u32::from(row[lo as usize].max(row[(hi - (1 << reach)) as usize]))
    }
}

impl LaneShape {
    /// Cost of an interval; none for a set.
    #[inline]
    pub fn interval_cost(&self, lo: u16, hi: u16) -> u32 {
        match self {
            Self::Line { .. } => u32::from(hi.saturating_sub(lo)),
            Self::Tree(steps) => steps.cost(lo, hi),
            Self::Set { .. } => 0,
        }
    }
}

/// The bit of a position in the set of positions of a group.
#[inline]
pub(super) fn position_bit(position: u16) -> u64 {
    1 << (position % SET_POSITIONS)
}

/// How a table is measured: its lanes.
#[derive(Debug)]
pub(super) struct Ruler {
    pub lanes: Vec<Lane>,
    /// Lanes by the cost of no longer distinguishing two values, highest first.
    pub dearest: Vec<usize>,
}

impl Ruler {
    pub fn new(axes: &[Axis]) -> Self {
        // Mixing null with values may cost up to two scales on a line or a set.
        let doubled = |axis: &Axis| axis.null.is_some() && !matches!(axis.shape, Shape::Tree(_));
        let share = |axis: &Axis| axis.weight.max(0.0) * if doubled(axis) { 2.0 } else { 1.0 };
        let total: f64 = axes.iter().map(share).sum();
        let mut lanes = Vec::new();
        for (a, axis) in axes.iter().enumerate() {
            let scale = (UNITS * axis.weight.max(0.0) / total.max(f64::MIN_POSITIVE)).floor();
            if scale < 1.0 {
                continue;
            }
            let lane = |shape| Lane { axis: a, null: axis.null, nulls_only: axis.is_set(), shape };
            match &axis.shape {
                Shape::Line { span } => {
                    let ratio = ((scale as u64) << 32) / u64::from((*span).max(1));
                    lanes.push(lane(LaneShape::Line { scale: scale as u16, ratio }));
                }
                Shape::Tree(tree) => lanes.push(lane(LaneShape::Tree(Steps::new(tree, scale)))),
                Shape::Set { values } => {
                    let step = (scale / f64::from(values.saturating_sub(1).max(1))).round().max(1.0);
                    lanes.push(lane(LaneShape::Set { step: step as u16 }));
                    if axis.null.is_some() {
                        lanes.push(lane(LaneShape::Tree(Steps::new(&Tree::new(2, []), scale))));
                    }
                }
            }
        }
        let mut dearest: Vec<usize> = (0..lanes.len()).collect();
        dearest.sort_by_key(|&lane| std::cmp::Reverse(lanes[lane].first_step()));
        Self { lanes, dearest }
    }

    /// Whether every lane has a hierarchy, so that boxes of the lattice are all there is to publish.
    pub fn is_lattice(&self) -> bool {
        self.lanes.iter().all(|lane| matches!(lane.shape, LaneShape::Tree(_)))
    }

    /// What everything costs on a lane of mean weight.
    pub fn mean_unit(&self) -> u32 {
        UNITS as u32 / self.lanes.len().max(1) as u32
    }
}

impl Lane {
    /// Where null stands on a line that may hold it.
    #[inline]
    pub fn null_position(&self) -> Option<u16> {
        if let LaneShape::Line { scale, .. } = self.shape { self.null.map(|_| 2 * scale) } else { None }
    }

    /// Distance of two values that are next to each other on a line.
    #[inline]
    pub fn unit(&self) -> u16 {
        if let LaneShape::Line { ratio, .. } = self.shape { ((ratio + u64::from(u32::MAX)) >> 32) as u16 } else { 0 }
    }

    /// What the first step away from a value costs, on average.
    fn first_step(&self) -> u32 {
        match &self.shape {
            LaneShape::Line { .. } => u32::from(self.unit()),
            LaneShape::Tree(steps) => steps.mean_first_step(),
            LaneShape::Set { step } => u32::from(*step),
        }
    }

    /// Position of a code on the lane.
    #[inline]
    fn position(&self, code: Code) -> u16 {
        match &self.shape {
            LaneShape::Line { scale, .. } if self.null == Some(code) => 2 * *scale,
            LaneShape::Line { ratio, .. } => ((u64::from(code) * ratio + (1 << 31)) >> 32) as u16,
            LaneShape::Tree(_) if self.nulls_only => u16::from(self.null == Some(code)),
            LaneShape::Tree(_) => code,
            LaneShape::Set { .. } => code % SET_POSITIONS,
        }
    }
}

/// Some rows of a table, measured: what one run of the search sees.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Rows of the table.
    pub rows: Vec<u32>,
    /// Number of lanes.
    pub width: usize,
    /// Smallest and largest position on every lane. A box that holds all of it separates no rows and can be skipped.
    pub range: Vec<(u16, u16)>,
    positions: Vec<u16>,
    codes: Vec<Code>,
}

impl Space {
    /// Replaces the content by rows of a table, which may be a copy of some rows of another one: `names` says what each
    /// of its rows is called there.
    pub fn load_rows(&mut self, ruler: &Ruler, table: &Table, rows: &[u32], names: impl Fn(u32) -> u32) {
        self.rows.clear();
        self.rows.extend(rows.iter().map(|&row| names(row)));
        self.codes.clear();
        for &row in rows {
            self.codes.extend_from_slice(table.row(row));
        }
        let axes = table.axes.len();
        self.width = ruler.lanes.len();
        self.range.clear();
        self.positions.clear();
        self.positions.resize(rows.len() * self.width, 0);
        for (l, lane) in ruler.lanes.iter().enumerate() {
            let codes = self.codes.iter().skip(lane.axis).step_by(axes);
            let (mut low, mut high) = (u16::MAX, 0);
            for (position, &code) in self.positions.iter_mut().skip(l).step_by(self.width).zip(codes) {
                *position = lane.position(code);
                low = low.min(*position);
                high = high.max(*position);
            }
            self.range.push((low, high));
        }
    }

    /// Positions of one row, by its index in the space.
    #[inline]
    pub fn row_positions(&self, index: u32) -> &[u16] {
        &self.positions[index as usize * self.width..][..self.width]
    }

    /// Cost of two rows as a group.
    pub fn distance(&self, ruler: &Ruler, one: u32, other: u32) -> u32 {
        let terms = ruler.lanes.iter().zip(self.row_positions(one)).zip(self.row_positions(other));
        terms
            .map(|((lane, &x), &y)| match &lane.shape {
                LaneShape::Set { step } => u32::from(*step) * u32::from(x != y),
                interval => interval.interval_cost(x.min(y), x.max(y)),
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_costs_agree_with_losses() {
        let tree = Tree::new(21, [(0, 5, 0.25), (6, 9, 0.15), (10, 20, 0.5), (12, 15, 0.1)]);
        let steps = Steps::new(&tree, 8000.0);
        for lo in 0..21 {
            for hi in lo..21 {
                assert_eq!(f64::from(steps.cost(lo, hi)), tree.loss(lo, hi) * 8000.0, "{lo}..={hi}");
                // Climbing from the leaf until the other end is inside costs the same.
                let (mut step, mut sum) = (steps.step(steps.first_step(lo)), 0);
                while step.hi < hi {
                    sum += u32::from(step.cost);
                    step = steps.step(step.up);
                }
                assert_eq!(sum, steps.cost(lo, hi));
            }
        }
    }

    #[test]
    fn units_are_shared_by_weight_and_fit() {
        let mut axes: Vec<Axis> = (0..64).map(|a| Axis::new(a.to_string(), Shape::Line { span: 65_000 })).collect();
        axes[0].weight = 9.0;
        axes[1].null = Some(crate::model::NULL_ON_LINE);
        axes[2].weight = 0.0;
        let ruler = Ruler::new(&axes);
        assert_eq!(ruler.lanes.len(), 63);
        let table =
            Table::new(axes, [0; 64].into_iter().chain([65_000, 65_535].into_iter().chain([65_000; 62])).collect());
        let mut space = Space::default();
        space.load_rows(&ruler, &table, &[0, 1], |row| row);
        assert!(space.row_positions(0).iter().all(|&position| position == 0));
        assert_eq!(space.row_positions(1)[0] / space.row_positions(1)[2], 9);
        assert_eq!(space.row_positions(1)[1], 2 * space.row_positions(1)[2]);
        assert!(space.row_positions(1).iter().map(|&position| u32::from(position)).sum::<u32>() <= 65_535);
    }
}
