//! A tree of bounding boxes: which of many boxes hold a point?

/// Boxes in one leaf.
const LEAF: usize = 8;

/// Boxes over any number of axes, ends included.
#[derive(Debug)]
pub(super) struct Boxes {
    axes: usize,
    /// Ends of every box, axis by axis, box after box.
    ends: Vec<(f64, f64)>,
    /// Boxes by number, leaf after leaf.
    order: Vec<u32>,
    nodes: Vec<Node>,
}

/// A part of the order; a leaf when it has no children.
#[derive(Debug)]
struct Node {
    bound: Vec<(f64, f64)>,
    start: usize,
    end: usize,
    children: Option<[usize; 2]>,
}

impl Boxes {
    /// The tree of `count` boxes, given by axis.
    pub(super) fn new(extents: Vec<&[(f64, f64)]>, count: usize) -> Self {
        let axes = extents.len();
        let ends = (0..count).flat_map(|number| extents.iter().map(move |axis| axis[number])).collect();
        let mut boxes = Self { axes, ends, order: (0..count as u32).collect(), nodes: Vec::new() };
        if count > 0 {
            boxes.build(0, count);
        }
        boxes
    }

    fn of(&self, number: u32) -> &[(f64, f64)] {
        &self.ends[number as usize * self.axes..][..self.axes]
    }

    fn build(&mut self, start: usize, end: usize) -> usize {
        let mut bound = vec![(f64::INFINITY, f64::NEG_INFINITY); self.axes];
        for &number in &self.order[start..end] {
            for (bound, (low, high)) in bound.iter_mut().zip(self.of(number)) {
                *bound = (bound.0.min(*low), bound.1.max(*high));
            }
        }
        let at = self.nodes.len();
        self.nodes.push(Node { bound, start, end, children: None });
        if end - start > LEAF
            && let Some(middle) = self.halve(start, end)
        {
            let left = self.build(start, middle);
            let right = self.build(middle, end);
            self.nodes[at].children = Some([left, right]);
        }
        at
    }

    /// Halves a part at the median of the axis on which fewest boxes lie on both sides.
    fn halve(&mut self, start: usize, end: usize) -> Option<usize> {
        let middle = (start + end) / 2;
        let mut best: Option<(usize, usize)> = None;
        for axis in 0..self.axes {
            let low = |number: u32| self.of(number)[axis].0;
            let mut lows: Vec<f64> = self.order[start..end].iter().map(|&number| low(number)).collect();
            let cut = *lows.select_nth_unstable_by(middle - start, f64::total_cmp).1;
            let crossing =
                self.order[start..end].iter().filter(|&&number| low(number) < cut && self.of(number)[axis].1 >= cut);
            let right = self.order[start..end].iter().filter(|&&number| low(number) >= cut).count();
            // Boxes that begin at one place cannot be told apart there.
            let cost = crossing.count() + if right == end - start { end - start } else { 0 };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, axis));
            }
        }
        let (_, axis) = best?;
        let (axes, ends) = (self.axes, &self.ends);
        self.order[start..end].sort_by(|&a, &b| {
            ends[a as usize * axes + axis].0.total_cmp(&ends[b as usize * axes + axis].0).then(a.cmp(&b))
        });
        Some(middle)
    }

    /// Names every box that holds a point. A coordinate that is no number lies nowhere.
    pub(super) fn holding(&self, point: &[f64], mut each: impl FnMut(u32)) {
        let inside = |ends: &[(f64, f64)]| ends.iter().zip(point).all(|((low, high), at)| low <= at && at <= high);
        let mut open = if self.nodes.is_empty() { Vec::new() } else { vec![0] };
        while let Some(node) = open.pop() {
            let node = &self.nodes[node];
            if !inside(&node.bound) {
                continue;
            }
            match node.children {
                Some(children) => open.extend(children),
                None => self.order[node.start..node.end]
                    .iter()
                    .filter(|&&number| inside(self.of(number)))
                    .for_each(|&number| each(number)),
            }
        }
    }
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
            let tree = Boxes::new(axes.iter().map(Vec::as_slice).collect(), boxes.len());
            let point: Vec<f64> = point.into_iter().map(f64::from).collect();
            let mut found = Vec::new();
            tree.holding(&point, |number| found.push(number));
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
            Boxes::new(vec![ends], 1).holding(&[at], |_| found += 1);
            found
        };
        assert_eq!((found(&all, f64::NEG_INFINITY), found(&none, 3.0), found(&all, f64::NAN)), (1, 0, 0));
    }
}
