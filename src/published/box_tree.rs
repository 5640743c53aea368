//! Which of many boxes hold a point?
//!
//! A tree of cuts: boxes below a cut, boxes above it, and boxes across it are trees of their own. A point goes down one
//! side, and through those across. Boxes that lie apart because space was cut into them have a cut without any across at
//! every step, so that a point meets one leaf.

use std::num::NonZeroU32;

/// Boxes in one leaf.
const LEAF: usize = 4;

/// The share of boxes that a cut must take off each part of the tree: one in so many.
const PROGRESS: usize = 16;

/// Boxes over any number of axes, ends included.
#[derive(Debug)]
pub(crate) struct BoxTree {
    axes: usize,
    /// Boxes by number, leaf after leaf.
    order: Vec<u32>,
    /// Ends of every box in that order, axis by axis.
    ends: Vec<(f64, f64)>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    /// A part of the order.
    Leaf { start: u32, end: u32 },
    /// Where it is cut, and the trees of the boxes that end below, of those that begin there or above, and of the others.
    Cut { axis: u32, at: f64, below: u32, above: u32, across: Option<NonZeroU32> },
}

/// A part of the boxes: their numbers by lower and by upper ends, on every axis.
type Sorted = Vec<[Vec<u32>; 2]>;

/// On which side of a cut a box lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
    Across,
}

impl BoxTree {
    /// The tree of `count` boxes, given by axis. A box whose ends are NaN or in the wrong order holds nothing.
    pub(crate) fn new(extents: Vec<&[(f64, f64)]>, count: usize) -> Self {
        let axes = extents.len();
        let hold = |number: &u32| extents.iter().all(|axis| axis[*number as usize].0 <= axis[*number as usize].1);
        let boxes: Vec<u32> = (0..count as u32).filter(hold).collect();
        let sorted = |axis: &&[(f64, f64)]| {
            let [mut by_low, mut by_high] = [boxes.clone(), boxes.clone()];
            by_low.sort_by(|&a, &b| axis[a as usize].0.total_cmp(&axis[b as usize].0));
            by_high.sort_by(|&a, &b| axis[a as usize].1.total_cmp(&axis[b as usize].1));
            [by_low, by_high]
        };
        let mut tree = Self { axes, order: Vec::with_capacity(boxes.len()), ends: Vec::new(), nodes: Vec::new() };
        if axes > 0 {
            let sorted = extents.iter().map(sorted).collect();
            tree.build_node(&extents, sorted, &mut vec![Side::Below; count]);
        } else {
            tree.push_leaf(&boxes);
        }
        tree.ends =
            tree.order.iter().flat_map(|&number| extents.iter().map(move |axis| axis[number as usize])).collect();
        tree
    }

    fn push_leaf(&mut self, boxes: &[u32]) {
        let start = self.order.len() as u32;
        self.order.extend(boxes);
        self.nodes.push(Node::Leaf { start, end: self.order.len() as u32 });
    }

    /// Builds the tree of some boxes, and returns its place among the nodes. `sides` has room for every box.
    fn build_node(&mut self, extents: &[&[(f64, f64)]], mut boxes: Sorted, sides: &mut [Side]) -> u32 {
        let node = self.nodes.len() as u32;
        let count = boxes[0][0].len();
        let Some((axis, at)) = (count > LEAF).then(|| best_cut(extents, &boxes)).flatten() else {
            self.push_leaf(&boxes[0][0]);
            return node;
        };
        for &number in &boxes[axis][0] {
            let (low, high) = extents[axis][number as usize];
            sides[number as usize] = match (high < at, low >= at) {
                (true, _) => Side::Below,
                (_, true) => Side::Above,
                _ => Side::Across,
            };
        }
        let mut take = |side: Side, sides: &[Side]| -> Sorted {
            let of = |numbers: &mut Vec<u32>| {
                numbers.extract_if(.., |number| sides[*number as usize] == side).collect::<Vec<u32>>()
            };
            boxes.iter_mut().map(|orders| orders.each_mut().map(of)).collect()
        };
        let [below, above] = [Side::Below, Side::Above].map(|side| take(side, sides));
        let across = boxes;
        self.nodes.push(Node::Leaf { start: 0, end: 0 });
        let below = self.build_node(extents, below, sides);
        let above = self.build_node(extents, above, sides);
        let across = (!across[0][0].is_empty()).then(|| self.build_node(extents, across, sides));
        let across = across.and_then(NonZeroU32::new);
        self.nodes[node as usize] = Node::Cut { axis: axis as u32, at, below, above, across };
        node
    }

    /// Names every box that holds a point. NaN lies nowhere.
    pub(crate) fn query_point(&self, point: &[f64], mut each: impl FnMut(u32)) {
        self.visit_point(0, point, &mut each);
    }

    fn visit_point(&self, mut node: u32, point: &[f64], each: &mut impl FnMut(u32)) {
        loop {
            match self.nodes[node as usize] {
                Node::Cut { axis, at, below, above, across } => {
                    if let Some(across) = across {
                        self.visit_point(across.get(), point, each);
                    }
                    node = if point[axis as usize] < at { below } else { above };
                }
                Node::Leaf { start, end } => {
                    for place in start as usize..end as usize {
                        let ends = &self.ends[place * self.axes..][..self.axes];
                        if ends.iter().zip(point).all(|((low, high), at)| low <= at && at <= high) {
                            each(self.order[place]);
                        }
                    }
                    return;
                }
            }
        }
    }
}

/// The axis and place at which a point has least to look through: few boxes across, and sides of like size. `None` if no
/// cut gets on.
fn best_cut(extents: &[&[(f64, f64)]], boxes: &Sorted) -> Option<(usize, f64)> {
    let count = boxes[0][0].len();
    let most = count - (count / PROGRESS).max(1);
    // What a point looks through grows slower than the boxes, but across and a side add up.
    let cost = |boxes: usize| (boxes as f64).sqrt();
    let mut best: Option<(f64, usize, f64)> = None;
    for (axis, [by_low, by_high]) in boxes.iter().enumerate() {
        let low = |place: usize| extents[axis][by_low[place] as usize].0;
        let mut below = 0;
        for place in 1..count {
            let at = low(place);
            if low(place - 1) == at {
                continue;
            }
            while extents[axis][by_high[below] as usize].1 < at {
                below += 1;
            }
            let (across, above) = (place - below, count - place);
            let cost = cost(across) + cost(below.max(above));
            if below.max(above).max(across) <= most && best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, axis, at));
            }
        }
    }
    best.map(|(_, axis, at)| (axis, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_looking_at_every_box_finds(
            boxes in prop::collection::vec(prop::collection::vec((0..20_u8, 0..6_u8), 3), 0..80),
            point in prop::collection::vec(0..26_u8, 3),
        ) {
            let ends = |axis: usize| boxes.iter().map(|of| (f64::from(of[axis].0), f64::from(of[axis].0 + of[axis].1))).collect::<Vec<_>>();
            let axes: Vec<Vec<(f64, f64)>> = (0..3).map(ends).collect();
            let tree = BoxTree::new(axes.iter().map(Vec::as_slice).collect(), boxes.len());
            let point: Vec<f64> = point.into_iter().map(f64::from).collect();
            let mut found = Vec::new();
            tree.query_point(&point, |number| found.push(number));
            found.sort_unstable();
            let expected: Vec<u32> = (0..boxes.len() as u32)
                .filter(|&number| (0..3).all(|axis| axes[axis][number as usize].0 <= point[axis] && point[axis] <= axes[axis][number as usize].1))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn everything_and_nothing() {
        let all = [(f64::NEG_INFINITY, f64::INFINITY)];
        let none = [(f64::INFINITY, f64::NEG_INFINITY)];
        let found = |ends: &[(f64, f64)], at: f64| {
            let mut found = 0;
            BoxTree::new(vec![ends], 1).query_point(&[at], |_| found += 1);
            found
        };
        assert_eq!((found(&all, f64::NEG_INFINITY), found(&none, 3.0), found(&all, f64::NAN)), (1, 0, 0));
    }
}
