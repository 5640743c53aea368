//! What a group of rows covers on every axis: the smallest interval or set that holds all its codes.

use super::{Axis, Code, MAX_SET_VALUES, Shape};

/// The cover of a group; grows as rows join, never shrinks. An empty cover has `lo > hi`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cover {
    /// Rows covered.
    pub rows: usize,
    /// Smallest code per axis.
    pub lo: Vec<Code>,
    /// Largest code per axis.
    pub hi: Vec<Code>,
    /// Distinct codes per axis, kept for set axes only (ascending); empty for the others.
    sets: Vec<Vec<Code>>,
}

impl Cover {
    /// Returns the cover of no rows.
    pub fn empty(axes: usize) -> Self {
        Self { rows: 0, lo: vec![Code::MAX; axes], hi: vec![0; axes], sets: vec![Vec::new(); axes] }
    }

    /// Resets this to the cover of no rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.lo.fill(Code::MAX);
        self.hi.fill(0);
        self.sets.iter_mut().for_each(Vec::clear);
    }

    /// The cover of the given rows of codes.
    pub fn from_rows<'a>(axes: &[Axis], rows: impl IntoIterator<Item = &'a [Code]>) -> Self {
        let mut cover = Self::empty(axes.len());
        for row in rows {
            cover.add_row(axes, row);
        }
        cover
    }

    /// Widens the cover by one row.
    pub fn add_row(&mut self, axes: &[Axis], row: &[Code]) {
        self.rows += 1;
        for (a, &code) in row.iter().enumerate() {
            self.lo[a] = self.lo[a].min(code);
            self.hi[a] = self.hi[a].max(code);
            if axes[a].is_set()
                && let Err(at) = self.sets[a].binary_search(&code)
            {
                self.sets[a].insert(at, code);
            }
        }
    }

    /// Widens the cover by another cover.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        for a in 0..self.lo.len() {
            self.lo[a] = self.lo[a].min(other.lo[a]);
            self.hi[a] = self.hi[a].max(other.hi[a]);
            for code in &other.sets[a] {
                if let Err(at) = self.sets[a].binary_search(code) {
                    self.sets[a].insert(at, *code);
                }
            }
        }
    }

    /// Widens the cover to everything on one axis.
    pub fn widen_axis(&mut self, axes: &[Axis], a: usize) {
        let last = match &axes[a].shape {
            Shape::Line { span } => axes[a].null.unwrap_or(*span),
            Shape::Tree(tree) => tree.codes().saturating_sub(1) as Code,
            Shape::Set { values } => values.saturating_sub(1) as Code,
        };
        (self.lo[a], self.hi[a]) = (0, last);
        if axes[a].is_set() {
            // More codes than a published set can list are everything.
            self.sets[a].clear();
            self.sets[a].extend(0..=last.min(MAX_SET_VALUES as Code));
        }
    }

    /// Loss on one axis.
    pub fn axis_loss(&self, axes: &[Axis], a: usize) -> f64 {
        axes[a].loss(self.lo[a], self.hi[a], self.sets[a].len() as u32)
    }

    /// Distinct codes on a set axis; 0 on the others.
    pub fn count_distinct(&self, a: usize) -> u32 {
        self.sets[a].len() as u32
    }

    /// Distinct codes on a set axis, ascending; none on the others.
    pub fn codes(&self, a: usize) -> &[Code] {
        &self.sets[a]
    }

    /// Loss on one axis if `code` joined.
    pub fn axis_loss_with(&self, axes: &[Axis], a: usize, code: Code) -> f64 {
        let new = axes[a].is_set() && self.sets[a].binary_search(&code).is_err();
        axes[a].loss(self.lo[a].min(code), self.hi[a].max(code), self.count_distinct(a) + u32::from(new))
    }

    /// Mean loss over the axes (Q-diversity averaged over the quasi-identifiers): what U bounds and UM averages.
    pub fn loss(&self, axes: &[Axis]) -> f64 {
        if self.rows == 0 || axes.is_empty() {
            return 0.0;
        }
        (0..axes.len()).map(|a| self.axis_loss(axes, a)).sum::<f64>() / axes.len() as f64
    }

    /// The most that publishing the group can lose, as a mean over the axes.
    pub fn greatest_loss(&self, axes: &[Axis]) -> f64 {
        if self.rows == 0 {
            return 0.0;
        }
        let losses = axes.iter().enumerate().map(|(a, axis)| axis.greatest_loss(self.axis_loss(axes, a)));
        losses.sum::<f64>() / axes.len().max(1) as f64
    }

    /// The same if `row` joined, without changing the cover.
    pub fn greatest_loss_with(&self, axes: &[Axis], row: &[Code]) -> f64 {
        let losses = axes.iter().enumerate().map(|(a, axis)| axis.greatest_loss(self.axis_loss_with(axes, a, row[a])));
        losses.sum::<f64>() / axes.len().max(1) as f64
    }

    /// Loss weighted by axis priority if `row` joined, without changing the cover: what the searches minimise.
    pub fn cost_with(&self, axes: &[Axis], row: &[Code]) -> f64 {
        let losses = axes.iter().enumerate().map(|(a, axis)| axis.weight * self.axis_loss_with(axes, a, row[a]));
        losses.sum::<f64>() / axes.iter().map(|axis| axis.weight).sum::<f64>()
    }

    /// Loss weighted by axis priority.
    pub fn cost(&self, axes: &[Axis]) -> f64 {
        if self.rows == 0 || axes.is_empty() {
            return 0.0;
        }
        let total: f64 = axes.iter().map(|axis| axis.weight).sum();
        (0..axes.len()).map(|a| axes[a].weight * self.axis_loss(axes, a)).sum::<f64>() / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_widened_cover_loses_everything_on_its_axis() {
        let tree = Shape::Tree(crate::model::Tree::new(6, [(0, 2, 0.4)]));
        let shapes = [Shape::Line { span: 30 }, tree, Shape::Set { values: 4 }, Shape::Set { values: 500 }];
        for shape in shapes {
            let axes = [Axis::new("other", Shape::Line { span: 30 }), Axis::new("widened", shape)];
            let mut cover = Cover::from_rows(&axes, [[3, 1].as_slice(), &[3, 1]]);
            cover.widen_axis(&axes, 1);
            assert_eq!((cover.axis_loss(&axes, 0), cover.axis_loss(&axes, 1)), (0.0, 1.0));
        }
    }

    #[test]
    fn cover_with_a_row_equals_cover_after_adding_it() {
        let axes = [Axis::new("line", Shape::Line { span: 30 }), Axis::new("set", Shape::Set { values: 4 })];
        let mut cover = Cover::from_rows(&axes, [[3, 0].as_slice(), &[9, 2]]);
        let expected = cover.cost_with(&axes, &[12, 3]);
        cover.add_row(&axes, &[12, 3]);
        assert_eq!(cover.loss(&axes), expected);
        assert_eq!(expected, (9.0 / 30.0 + 2.0 / 3.0) / 2.0);
    }

    #[test]
    fn null_with_a_value_is_the_top() {
        let mut axis = Axis::new("line", Shape::Line { span: 30 });
        axis.null = Some(crate::model::NULL_ON_LINE);
        let axes = [axis];
        let null = [crate::model::NULL_ON_LINE];
        assert_eq!(Cover::from_rows(&axes, [null.as_slice(), &null]).loss(&axes), 0.0);
        assert_eq!(Cover::from_rows(&axes, [null.as_slice(), &[4]]).loss(&axes), 1.0);
    }
}
