//! The cell tree: how a whole table is cut into regions that fit in memory.
//!
//! It is built once, from a weighted sample, and then asked of every row: which cell is yours? Cells are units of
//! work, so they should be alike in size, and their borders should part rows that would not be grouped anyway.
//!
//! 1. A node that is too large for a cell is cut.
//! 2. Of all value boundaries whose two sides can both be cut into cells of about the wanted size, the one with the
//!    largest gain is taken; it need not be near the median, so a good cut is not missed for the sake of balance. Sizes
//!    are those of a sample, which errs, so they must be the closer the smaller it is: then no cell of the table is
//!    more than twice as large as another.
//! 3. A boundary inside of a node of a hierarchy comes last: on both sides there are then groups that publish the node,
//!    and fewer rows to choose from for each. Rather than that, cells of the sample may differ as much as those of the table.
//!    The boundary between two values of a sample is put where the highest nodes part.
//! 4. When a value dominates every axis, so that there is no such boundary either, the one nearest to the median is
//!    taken, unless what it splits off is farther from a whole cell than the node is.
//! 5. A node without such a boundary is a cell, however heavy.

use super::gain::{partition_rows, rate_boundaries};
use crate::grouping::cancel::checkpoint;
use crate::model::{Axis, Code, Shape, Table};

/// How many times as large as another a cell may be, as far as values allow it.
const MAX_UNEVENNESS: f64 = 2.0;

/// How far the sizes that are aimed at may come together, however small the sample is.
const CLOSEST: f64 = 1.2;

/// Standard errors of a cell's size that are allowed for.
const DOUBT: f64 = 3.0;

/// Cells that a side must hold, at least.
const SMALLEST: f64 = 0.6;

/// Where a path through the tree goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// To another node.
    Node(u32),
    /// To the end: a cell.
    Cell(u32),
}

/// One cut: rows whose code on `axis` is at most `at` go left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellNode {
    /// Index of the axis.
    pub axis: u32,
    /// The largest code that goes left.
    pub at: Code,
    /// Where rows up to `at` go.
    pub left: Branch,
    /// Where the others go.
    pub right: Branch,
}

/// A binary tree of cuts whose leaves are cells, numbered from 0, left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTree {
    /// Where every row starts.
    pub root: Branch,
    /// All cuts; children come after their parents.
    pub nodes: Vec<CellNode>,
}

/// Whether a cut may be made: axis, largest code that goes left, rows.
pub type Allowed<'a> = dyn Fn(usize, Code, &[u32]) -> bool + 'a;

/// A part of the sample that still waits to be cut.
struct Part {
    start: usize,
    end: usize,
    /// The node that it hangs on, and whether on its right.
    hangs_on: Option<(usize, bool)>,
}

impl CellTree {
    /// The tree that puts all rows into one cell.
    pub fn single_cell() -> Self {
        Self { root: Branch::Cell(0), nodes: Vec::new() }
    }

    /// Builds a tree whose cells hold about `cell_share` of the total weight each, from sample rows and how many rows
    /// of the table each of them stands for.
    pub fn build(sample: &Table, weights: &[f64], cell_share: f64) -> Self {
        Self::build_where(sample, weights, cell_share, &|_, _, _| true)
    }

    /// Builds a tree as [`build`](Self::build) does, of cuts that are allowed only: asked with the axis, the largest code
    /// that goes left, and the rows that are cut.
    pub fn build_where(sample: &Table, weights: &[f64], cell_share: f64, allowed: &Allowed<'_>) -> Self {
        assert_eq!(sample.rows(), weights.len(), "every sample row has a weight");
        let sizes = Sizes::new(weights, cell_share);
        let mut rows: Vec<u32> = (0..sample.rows() as u32).collect();
        let mut tree = Self::single_cell();
        let mut cells = 0;
        let mut open = vec![Part { start: 0, end: rows.len(), hangs_on: None }];
        while let Some(part) = open.pop() {
            checkpoint();
            let branch = match best_cut(sample, weights, &rows[part.start..part.end], &sizes, allowed) {
                Some((axis, at)) => {
                    let middle =
                        part.start + partition_rows(&mut rows[part.start..part.end], |row| sample.row(row)[axis] <= at);
                    let node = tree.nodes.len();
                    let unset = Branch::Cell(0);
                    tree.nodes.push(CellNode { axis: axis as u32, at, left: unset, right: unset });
                    open.push(Part { start: middle, end: part.end, hangs_on: Some((node, true)) });
                    open.push(Part { start: part.start, end: middle, hangs_on: Some((node, false)) });
                    Branch::Node(node as u32)
                }
                None => {
                    cells += 1;
                    Branch::Cell(cells - 1)
                }
            };
            match part.hangs_on {
                None => tree.root = branch,
                Some((node, false)) => tree.nodes[node].left = branch,
                Some((node, true)) => tree.nodes[node].right = branch,
            }
        }
        tree
    }

    /// The cell of a row.
    pub fn assign_cell(&self, row: &[Code]) -> u32 {
        self.assign_by(|axis| row[axis])
    }

    /// The cell of a row whose codes are looked up axis by axis: only those of [`axes_used`](Self::axes_used) are.
    pub fn assign_by(&self, code: impl Fn(usize) -> Code) -> u32 {
        let mut branch = self.root;
        loop {
            match branch {
                Branch::Cell(cell) => return cell,
                Branch::Node(node) => {
                    let node = &self.nodes[node as usize];
                    branch = if code(node.axis as usize) <= node.at { node.left } else { node.right };
                }
            }
        }
    }

    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.nodes.len() + 1
    }

    /// The axes that some cut asks about, ascending.
    pub fn axes_used(&self) -> Vec<usize> {
        let mut axes: Vec<usize> = self.nodes.iter().map(|node| node.axis as usize).collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }
}

/// The axis and the largest code on the left of the best cut, if the rows should be cut.
fn best_cut(
    sample: &Table,
    weights: &[f64],
    rows: &[u32],
    sizes: &Sizes,
    allowed: &Allowed<'_>,
) -> Option<(usize, Code)> {
    let weight: f64 = rows.iter().map(|&row| weights[row as usize]).sum();
    if !sizes.fair.exceeds_max(weight) {
        return None;
    }
    // (evenness, gain or share of the lighter side, axis, code); the first of equals wins.
    let mut best: Option<(Evenness, f64, usize, Code)> = None;
    for (a, axis) in sample.axes.iter().enumerate() {
        let mut values: Vec<(Code, f64)> =
            rows.iter().map(|&row| (sample.row(row)[a], weights[row as usize])).collect();
        values.sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
        values.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0.0 };
            same
        });
        for (boundary, pair) in rate_boundaries(axis, &values).iter().zip(values.windows(2)) {
            let Some(evenness) = sizes.cut_evenness(boundary.left, boundary.right) else { continue };
            let lighter = boundary.left.min(boundary.right);
            let border = Border::between(axis, (values[0].0, values[values.len() - 1].0), (pair[0].0, pair[1].0));
            let evenness = if border.whole { evenness } else { evenness.min(Evenness::Divided) };
            let merit = if evenness == Evenness::Uneven { lighter } else { boundary.gain * axis.weight.max(0.0) };
            if best.is_none_or(|(was, top, ..)| (evenness, merit) > (was, top)) && allowed(a, border.at, rows) {
                best = Some((evenness, merit, a, border.at));
            }
        }
    }
    best.map(|(_, _, axis, at)| (axis, at))
}

/// Where one axis is cut.
struct Border {
    /// The largest code that goes left.
    at: Code,
    /// Whether it leaves the nodes whole that make up what is cut.
    whole: bool,
}

impl Border {
    /// The border between two codes that follow each other among those from the first to the last.
    fn between(axis: &Axis, (first, last): (Code, Code), (low, high): (Code, Code)) -> Self {
        let Shape::Tree(tree) = &axis.shape else { return Self { at: low, whole: true } };
        let above = tree.common_ancestor(low, high);
        let at = above.map_or(low, |node| tree.child_codes(node, low).1);
        Self { at, whole: above == tree.common_ancestor(first, last) }
    }
}

/// How alike the cells of the two sides of a cut can be, and whether it goes through a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evenness {
    /// One value weighs too much.
    Uneven,
    /// None as large as two others, but groups on both sides may publish the same node.
    Divided,
    /// None as large as two others.
    Fair,
    /// Nearly as large as wanted.
    Near,
}

/// How far the weights of cells may lie apart.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// The wanted weight.
    cell: f64,
    /// The largest cell against the wanted weight, and the wanted weight against the smallest.
    apart: f64,
}

impl Bounds {
    /// Round a wanted weight, the largest so many times the smallest.
    fn around_weight(cell: f64, times: f64) -> Self {
        Self { cell, apart: times.sqrt() }
    }

    /// Whether so much is too much for one cell.
    fn exceeds_max(self, weight: f64) -> bool {
        weight > self.cell * self.apart
    }

    /// Whether so much can be cut into cells within the bounds. What is several cells must be nearer to the wanted weight
    /// of so many, or else there would be hardly a place left to cut it at.
    fn can_divide(self, weight: f64) -> bool {
        let apart = if self.exceeds_max(weight) { self.apart.sqrt() } else { self.apart };
        let cells = (weight / self.cell * apart).floor();
        cells >= 1.0 && weight <= cells * self.cell * apart
    }
}

/// How large cells should be.
#[derive(Debug)]
struct Sizes {
    cell: f64,
    near: Bounds,
    fair: Bounds,
}

impl Sizes {
    fn new(weights: &[f64], cell_share: f64) -> Self {
        let total: f64 = weights.iter().sum();
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        // What a cell holds of the sample, were all its rows of equal weight, bounds the error of its size.
        let rows = cell_share * total * total / squares.max(f64::MIN_POSITIVE);
        let error = DOUBT / rows.max(1.0).sqrt();
        let times = (MAX_UNEVENNESS * (1.0 - error) / (1.0 + error)).max(CLOSEST);
        let cell = cell_share * total;
        Self { cell, near: Bounds::around_weight(cell, times), fair: Bounds::around_weight(cell, MAX_UNEVENNESS) }
    }

    /// How alike the cells of sides of these weights can be; `None` if the cut leaves them less even than the node is.
    fn cut_evenness(&self, left: f64, right: f64) -> Option<Evenness> {
        if self.near.can_divide(left) && self.near.can_divide(right) {
            Some(Evenness::Near)
        } else if self.fair.can_divide(left) && self.fair.can_divide(right) {
            Some(Evenness::Fair)
        } else {
            let enough = (self.cell / (left + right)).max(SMALLEST);
            (left.min(right) >= enough * self.cell).then_some(Evenness::Uneven)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tree;
    use proptest::prelude::*;

    fn axes() -> Vec<Axis> {
        let tree = Tree::new(40, [(0, 9, 0.2), (10, 39, 0.7), (10, 19, 0.2)]);
        vec![
            Axis::new("line", Shape::Line { span: 60_000 }),
            Axis::new("tree", Shape::Tree(tree)),
            Axis::new("set", Shape::Set { values: 9 }),
        ]
    }

    /// Skewed rows: squares of random numbers on the line, half of the tree one leaf, a set of two frequent values.
    fn skewed(rows: usize, seed: u64) -> Table {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut codes = Vec::new();
        for _ in 0..rows {
            let x = rng.f64();
            codes.push((x * x * x * 60_000.0) as Code);
            codes.push(if rng.bool() { 12 } else { rng.u16(0..40) });
            codes.push(rng.u16(0..9).min(rng.u16(0..9)));
        }
        Table::new(axes(), codes)
    }

    fn shares(tree: &CellTree, sample: &Table, weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; tree.cell_count()];
        for row in 0..sample.rows() as u32 {
            sums[tree.assign_cell(sample.row(row)) as usize] += weights[row as usize];
        }
        let total: f64 = weights.iter().sum();
        sums.iter().map(|sum| sum / total).collect()
    }

    #[test]
    fn cells_of_skewed_rows_are_alike() {
        let sample = skewed(20_000, 1);
        let weights: Vec<f64> = (0..20_000).map(|row| 1.0 + f64::from(row % 5)).collect();
        let tree = CellTree::build(&sample, &weights, 0.01);
        assert!((75..=160).contains(&tree.cell_count()), "{} cells", tree.cell_count());
        for share in shares(&tree, &sample, &weights) {
            assert!((0.0085..0.0118).contains(&share), "a cell holds {share}");
        }
        // Rows that the sample has not seen.
        let fresh = shares(&tree, &skewed(50_000, 2), &vec![1.0; 50_000]);
        let (least, most) = fresh.iter().fold((1.0_f64, 0.0_f64), |(a, b), &share| (a.min(share), b.max(share)));
        assert!(most <= MAX_UNEVENNESS * least, "cells hold {least} to {most}");
    }

    #[test]
    fn borders_stand_between_the_highest_nodes() {
        let axes = axes();
        let border = |low, high| {
            let border = Border::between(&axes[1], (2, 33), (low, high));
            (border.at, border.whole)
        };
        // The sample has nothing between 7 and 14, which are in different parts of the tree.
        assert_eq!(border(7, 14), (9, true));
        assert_eq!(border(14, 23), (19, false));
        assert_eq!(border(25, 26), (25, false));
        let line = Border::between(&axes[0], (0, 99), (7, 14));
        assert_eq!((line.at, line.whole), (7, true));
    }

    #[test]
    fn nodes_stay_whole_where_cells_allow_it() {
        // Three rows of five below 10. Cells more alike than that would have to divide the node.
        let mut rng = fastrand::Rng::with_seed(5);
        let codes = (0..300).flat_map(|row| [500, if row % 5 < 3 { rng.u16(0..10) } else { rng.u16(20..40) }, 1]);
        let sample = Table::new(axes(), codes.collect());
        let tree = CellTree::build(&sample, &[1.0; 300], 0.5);
        assert_eq!(tree.nodes, [CellNode { axis: 1, at: 9, left: Branch::Cell(0), right: Branch::Cell(1) }]);
    }

    #[test]
    fn a_dominating_value_is_split_off_and_left_whole() {
        let codes = (0..1000u16).flat_map(|row| if row % 10 == 0 { [row * 60, 3, 3] } else { [500, 12, 1] }).collect();
        let sample = Table::new(axes(), codes);
        let tree = CellTree::build(&sample, &[1.0; 1000], 0.05);
        let shares = shares(&tree, &sample, &[1.0; 1000]);
        assert_eq!(shares.iter().filter(|&&share| share > 0.075).count(), 1);
        assert!(shares.iter().all(|&share| share >= 0.0125), "{shares:?}");
        assert!(shares.len() > 2);
    }

    #[test]
    fn identical_rows_are_one_cell() {
        let sample = Table::new(axes(), [7, 7, 7].repeat(100));
        assert_eq!(CellTree::build(&sample, &[2.0; 100], 0.01), CellTree::single_cell());
        assert_eq!(CellTree::build(&Table::new(axes(), Vec::new()), &[], 0.01), CellTree::single_cell());
    }

    proptest! {
        #[test]
        fn assignment_agrees_with_the_cuts(rows in 1usize..400, seed in any::<u64>(), share in 0.02f64..1.0) {
            let sample = skewed(rows, seed);
            let weights: Vec<f64> = (0..rows).map(|row| (row % 3) as f64 + 0.5).collect();
            let tree = CellTree::build(&sample, &weights, share);
            let used = tree.axes_used();
            let held = shares(&tree, &sample, &weights);
            prop_assert!(held.iter().all(|&held| held >= SMALLEST * share * 0.999 || tree.cell_count() == 1));
            for row in 0..rows as u32 {
                let codes = sample.row(row);
                let masked: Vec<Code> = (0..3).map(|a| if used.contains(&a) { codes[a] } else { 0 }).collect();
                prop_assert_eq!(tree.assign_cell(&masked), tree.assign_cell(codes));
            }
            let mut cells: Vec<u32> = tree.nodes.iter().flat_map(|node| [node.left, node.right]).chain([tree.root])
                .filter_map(|branch| if let Branch::Cell(cell) = branch { Some(cell) } else { None }).collect();
            cells.sort_unstable();
            prop_assert_eq!(cells, (0..tree.cell_count() as u32).collect::<Vec<_>>());
        }
    }
}
