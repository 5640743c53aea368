//! All boxes of a table that may ask for lower prices.
//!
//! Axes are narrowed one after the other: points that agree on the extents so far are cut further by the next axis. A box
//! is left as soon as what it loses already covers the prices of its k dearest rows, or when it holds fewer than k.

use std::ops::Range;

use super::{Cuts, Points};
use crate::model::{Axis, Code, Shape, Table, Tree};

/// A range of more values than this is cut into this many blocks.
const MAX_BLOCKS: usize = 128;

/// Points that one walk looks at before ranges are cut into fewer blocks.
const BUDGET: u64 = 300_000_000;

/// A walk through the boxes of a table.
pub(super) struct Boxes<'a> {
    table: &'a Table,
    points: &'a Points,
    k: usize,
    /// The axes in the order that they are narrowed in: those that lose most at the first step come first, ranges last.
    order: Vec<usize>,
    /// Blocks of a range, at most.
    most_blocks: usize,
    blocks: Vec<Blocks>,
}

/// A box with at least k rows.
pub(super) struct Found<'a> {
    /// Points inside.
    pub(super) points: &'a [u32],
    /// Loss of the box, as a mean over the axes.
    pub(super) loss: f64,
    /// Prices of the k dearest rows together.
    pub(super) dearest: f64,
    /// The least price among these.
    pub(super) least: f64,
}

/// One walk.
struct Walk<'w> {
    prices: &'w [f64],
    /// Boxes that ask for no more than this share of what they allow are passed over.
    share: f64,
    /// Points that may still be looked at.
    budget: u64,
    visit: &'w mut dyn FnMut(&Found<'_>),
}

impl<'a> Boxes<'a> {
    pub(super) fn new(table: &'a Table, points: &'a Points, k: usize) -> Self {
        let mut order: Vec<usize> = (0..table.axes.len()).collect();
        let is_line = |axis: usize| matches!(table.axes[axis].shape, Shape::Line { .. });
        order.sort_by(|&x, &y| {
            let step = |axis: usize| first_step(&table.axes[axis]);
            is_line(x).cmp(&is_line(y)).then(step(y).total_cmp(&step(x)))
        });
        let mut boxes = Self { table, points, k, order, most_blocks: 2 * MAX_BLOCKS, blocks: Vec::new() };
        boxes.cut_at_fewer();
        boxes
    }

    /// Where ranges are cut.
    pub(super) fn cuts(&self) -> Cuts {
        self.blocks.iter().map(|blocks| blocks.ends.iter().map(|ends| ends.0).collect()).collect()
    }

    /// Cuts ranges into half as many blocks.
    fn cut_at_fewer(&mut self) {
        self.most_blocks /= 2;
        let axes = self.table.axes.iter().enumerate();
        self.blocks = axes
            .map(|(number, axis)| match axis.shape {
                Shape::Line { .. } => {
                    let points = 0..self.points.len() as u32;
                    let codes = points.map(|point| self.points.code(point, number));
                    Blocks::new(codes.filter(|code| axis.null != Some(*code)).collect(), self.most_blocks)
                }
                _ => Blocks::default(),
            })
            .collect();
    }

    /// Shows every box whose k dearest rows cost more than `share` of what they may. False when there are too many: then
    /// ranges are cut into fewer blocks from now on, and the walk must be taken again.
    pub(super) fn walk_boxes(&mut self, prices: &[f64], share: f64, visit: &mut dyn FnMut(&Found<'_>)) -> bool {
        let mut all: Vec<u32> = (0..self.points.len() as u32).collect();
        let budget = if self.most_blocks > 1 { BUDGET } else { u64::MAX };
        let mut walk = Walk { prices, share, budget, visit };
        self.narrow_axis(&mut walk, &mut all, 0, 0.0);
        let done = walk.budget > 0;
        if !done {
            self.cut_at_fewer();
        }
        done
    }

    fn narrow_axis(&self, walk: &mut Walk<'_>, inside: &mut [u32], depth: usize, loss: f64) {
        walk.budget = walk.budget.saturating_sub(inside.len() as u64);
        let mut dearest = Dearest::new(self.k);
        inside
            .iter()
            .for_each(|&point| dearest.add_price(walk.prices[point as usize], self.points.counts[point as usize]));
        let allowed = walk.share * self.k as f64;
        if walk.budget == 0 || !dearest.is_full() || dearest.sum <= allowed * loss {
            return;
        }
        let Some(&axis) = self.order.get(depth) else {
            (walk.visit)(&Found { points: inside, loss, dearest: dearest.sum, least: dearest.least_price() });
            return;
        };
        inside.sort_unstable_by_key(|&point| self.points.code(point, axis));
        let weight = 1.0 / self.table.axes.len() as f64;
        let most = (dearest.sum / allowed - loss) / weight;
        let codes: Vec<Code> = inside.iter().map(|&point| self.points.code(point, axis)).collect();
        let is_last = depth + 1 == self.order.len();
        for chain in chain_extents(&self.table.axes[axis], &self.blocks[axis], &codes, most) {
            if is_last {
                self.visit_chain(walk, inside, chain.iter().map(|(range, more)| (range.clone(), loss + weight * more)));
            } else {
                for (range, more) in chain {
                    self.narrow_axis(walk, &mut inside[range].to_vec(), depth + 1, loss + weight * more);
                }
            }
        }
    }

    /// Boxes of which each holds the one before it.
    fn visit_chain(&self, walk: &mut Walk<'_>, inside: &[u32], boxes: impl Iterator<Item = (Range<usize>, f64)>) {
        let mut dearest = Dearest::new(self.k);
        let mut end = None;
        for (range, loss) in boxes {
            let fresh = &inside[end.unwrap_or(range.start)..range.end];
            end = Some(range.end);
            walk.budget = walk.budget.saturating_sub(fresh.len() as u64);
            fresh
                .iter()
                .for_each(|&point| dearest.add_price(walk.prices[point as usize], self.points.counts[point as usize]));
            if dearest.is_full() && dearest.sum > walk.share * self.k as f64 * loss {
                (walk.visit)(&Found {
                    points: &inside[range],
                    loss,
                    dearest: dearest.sum,
                    least: dearest.least_price(),
                });
            }
        }
    }
}

/// The prices of the k dearest rows of some.
struct Dearest {
    k: u32,
    rows: u32,
    sum: f64,
    /// Prices from the dearest on, and rows of each.
    prices: Vec<(f64, u32)>,
}

impl Dearest {
    fn new(k: usize) -> Self {
        Self { k: k as u32, rows: 0, sum: 0.0, prices: Vec::with_capacity(k.min(64) + 1) }
    }

    fn is_full(&self) -> bool {
        self.rows >= self.k
    }

    fn least_price(&self) -> f64 {
        self.prices.last().map_or(0.0, |last| last.0)
    }

    fn add_price(&mut self, price: f64, count: u32) {
        if self.is_full() && price <= self.least_price() {
            return;
        }
        let count = count.min(self.k);
        let at = self.prices.partition_point(|known| known.0 >= price);
        self.prices.insert(at, (price, count));
        self.rows += count;
        self.sum += f64::from(count) * price;
        while self.rows > self.k {
            let Some(last) = self.prices.last_mut() else { return };
            let gone = last.1.min(self.rows - self.k);
            self.rows -= gone;
            self.sum -= f64::from(gone) * last.0;
            last.1 -= gone;
            if last.1 == 0 {
                self.prices.pop();
            }
        }
    }
}

/// Blocks of the values of a range.
#[derive(Debug, Default)]
struct Blocks {
    /// The smallest and the largest value of each.
    ends: Vec<(Code, Code)>,
}

impl Blocks {
    fn new(mut codes: Vec<Code>, most: usize) -> Self {
        codes.sort_unstable();
        codes.dedup();
        let size = codes.len().div_ceil(most.max(1)).max(1);
        Self { ends: codes.chunks(size).map(|block| (block[0], block[block.len() - 1])).collect() }
    }

    /// The blocks that hold some runs of sorted codes, and the places in each.
    fn blocks_of_runs(&self, codes: &[Code], runs: &[Range<usize>]) -> Vec<(usize, Range<usize>)> {
        let mut present: Vec<(usize, Range<usize>)> = Vec::new();
        for run in runs {
            let block = self.ends.partition_point(|ends| ends.1 < codes[run.start]);
            match present.last_mut() {
                Some((last, places)) if *last == block => places.end = run.end,
                _ => present.push((block, run.clone())),
            }
        }
        present
    }
}

/// What an axis loses at least when two of its values are published together.
fn first_step(axis: &Axis) -> f64 {
    match &axis.shape {
        Shape::Line { span } => 1.0 / f64::from((*span).max(1)),
        Shape::Tree(tree) => tree.nodes().iter().map(|node| node.loss).fold(1.0, f64::min),
        Shape::Set { values } => 1.0 / f64::from(values.saturating_sub(1).max(1)),
    }
}

/// A range of places and what it loses.
type Extent = (Range<usize>, f64);

/// The extents of an axis around sorted codes that lose less than `most`, in chains: of those with one beginning, each holds
/// the one before it.
fn chain_extents(axis: &Axis, blocks: &Blocks, codes: &[Code], most: f64) -> Vec<Vec<Extent>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in 0..codes.len() {
        match runs.last_mut() {
            Some(run) if codes[run.start] == codes[at] => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    let has_nulls = runs.last().is_some_and(|last| axis.null == Some(codes[last.start]));
    let (values, nulls) = runs.split_at(runs.len() - usize::from(has_nulls));
    let mut found: Vec<Extent> = nulls.iter().map(|run| (run.clone(), 0.0)).collect();
    let single = |run: &Range<usize>| (run.clone(), axis.loss(codes[run.start], codes[run.start], 1));
    match &axis.shape {
        Shape::Set { values: domain } => {
            // More than one value, whichever they are, lose no less than two.
            let two = 1.0 / f64::from(domain.saturating_sub(1).max(1));
            found.extend(values.iter().map(single));
            found.extend((runs.len() > 1).then_some((0..codes.len(), two)));
        }
        Shape::Tree(tree) => {
            found.extend(values.iter().map(single));
            found.extend((has_nulls && !values.is_empty()).then_some((0..codes.len(), 1.0)));
            let nodes = nodes_above(tree, values.iter().map(|run| (codes[run.start], run.clone())));
            found.extend(nodes.into_iter().map(|(node, range)| (range, tree.nodes()[node as usize].loss)));
        }
        Shape::Line { span } => {
            found.extend((has_nulls && !values.is_empty()).then_some((0..codes.len(), 1.0)));
            let mut chains: Vec<Vec<Extent>> = found.into_iter().map(|extent| vec![extent]).collect();
            let present: Vec<(usize, Range<usize>)> = blocks.blocks_of_runs(codes, values);
            for (number, (first, from)) in present.iter().enumerate() {
                let losses = present[number + 1..].iter().map(|(last, to)| {
                    let apart = f64::from(blocks.ends[*last].0 - blocks.ends[*first].1) / f64::from((*span).max(1));
                    (from.start..to.end, (apart - axis.slack()).max(0.0))
                });
                let chain = std::iter::once((from.clone(), 0.0)).chain(losses);
                chains.push(chain.take_while(|(_, loss)| *loss < most).collect());
            }
            return chains;
        }
    }
    found.into_iter().filter(|(_, loss)| *loss < most).map(|extent| vec![extent]).collect()
}

/// The inner nodes above sorted leaves, each with the places of its leaves. A node that holds no more of them than a node
/// below it is left out.
fn nodes_above(tree: &Tree, leaves: impl Iterator<Item = (Code, Range<usize>)>) -> Vec<(u32, Range<usize>)> {
    let mut closed: Vec<(u32, Range<usize>)> = Vec::new();
    let mut open: Vec<(u32, Range<usize>)> = Vec::new();
    for (code, run) in leaves {
        while open.last().is_some_and(|(node, _)| tree.nodes()[*node as usize].hi < code) {
            closed.extend(open.pop());
        }
        open.iter_mut().for_each(|(_, range)| range.end = run.end);
        let mut fresh = Vec::new();
        let mut node = tree.node_above(code);
        while open.last().is_none_or(|(known, _)| *known != node) {
            fresh.push(node);
            let parent = tree.nodes()[node as usize].parent;
            if parent == node {
                break;
            }
            node = parent;
        }
        open.extend(fresh.into_iter().rev().map(|node| (node, run.clone())));
    }
    closed.extend(open.into_iter().rev());
    let places: Vec<Range<usize>> = closed.iter().map(|(_, range)| range.clone()).collect();
    // Nodes below stand before those above.
    let is_tight = |at: usize| !places[..at].contains(&places[at]);
    closed.into_iter().enumerate().filter(|(at, _)| is_tight(*at)).map(|(_, found)| found).collect()
}
