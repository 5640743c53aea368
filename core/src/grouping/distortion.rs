//! What generalising costs in steps of the hierarchies (Sun, Wang and Li, "Priority driven k-anonymisation").
//!
//! - WHD(p, q): the weighted hierarchical distance from level p up to level q of a hierarchy with levels 1 (`*`) to h
//!   (the raw value), as a share of the whole way up ([`whd`]). Weights are uniform, or greater near the root.
//! - Priorities: a factor in `[0, 1]` per attribute, by rank ([`rank_priorities`]) or by the columns' own `priority`, the
//!   largest of which counts as 1. An attribute of priority 0 is generalised for nothing.
//! - Distortion of a row: the sum over attributes of priority times WHD. Dist of two rows: the distortion of both up to
//!   their closest common generalisation; a metric where all leaves are equally deep.
//!
//! Two deviations where the paper is silent or coarse. Numbers without a hierarchy lose the share of their domain that
//! the group spans; the paper's rule, any interval is one of two levels up, is [`Numbers::Interval`]. A set of
//! categories without a hierarchy counts as the top, and so does null beside a value.

use crate::model::{Axis, Code, Cover, Grouping, Shape, Table};

/// Weights of the steps of a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Weights {
    /// All steps weigh the same.
    #[default]
    Uniform,
    /// The step from level j to level j-1 weighs `1 / (j-1)^beta`: steps near the root cost more.
    Height {
        /// Exponent, 1 or more.
        beta: f64,
    },
}

impl Weights {
    fn level_weight(self, level: u16) -> f64 {
        match self {
            Self::Uniform => 1.0,
            Self::Height { beta } => f64::from(level - 1).powf(-beta),
        }
    }
}

/// What a group of different numbers without a hierarchy costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// The share of the domain that it spans.
    #[default]
    Range,
    /// One step in a hierarchy of value, interval and `*`.
    Interval,
}

/// Weighted hierarchical distance of generalising from level `p` to level `q`, in a hierarchy of `h` levels of which
/// level 1 is the root.
pub fn whd(weights: Weights, p: u16, q: u16, h: u16) -> f64 {
    let sum = |levels: std::ops::RangeInclusive<u16>| levels.map(|level| weights.level_weight(level)).sum::<f64>();
    if p <= q { 0.0 } else { sum(q + 1..=p) / sum(2..=h) }
}

/// Priorities of so many attributes by rank, the most important first: from 1 down to 0 in equal steps.
pub fn rank_priorities(attributes: usize) -> Vec<f64> {
    (0..attributes).map(|rank| 1.0 - rank as f64 / (attributes.max(2) - 1) as f64).collect()
}

/// Distortion on the axes of a table.
#[derive(Debug, Clone)]
pub struct Distortion<'a> {
    axes: &'a [Axis],
    priorities: Vec<f64>,
    /// WHD by steps above the leaf, for every axis with a hierarchy.
    by_steps: Vec<Vec<f64>>,
    /// WHD of an interval of numbers, when it does not depend on its width.
    interval: Option<f64>,
}

impl<'a> Distortion<'a> {
    /// For some axes. `ranked` names them from the most important on, and those that it leaves out share the last place;
    /// when it is empty, the weights of the axes decide.
    pub fn new(axes: &'a [Axis], weights: Weights, numbers: Numbers, ranked: &[String]) -> Self {
        let largest = axes.iter().map(|axis| axis.weight).fold(f64::MIN_POSITIVE, f64::max);
        let by_rank = rank_priorities(axes.len());
        let priority = |axis: &Axis| match ranked.iter().position(|name| *name == axis.name) {
            _ if ranked.is_empty() => axis.weight / largest,
            Some(rank) => by_rank.get(rank).copied().unwrap_or(0.0),
            None => by_rank.last().copied().unwrap_or(1.0),
        };
        let steps = |axis: &Axis| match &axis.shape {
            Shape::Tree(tree) => {
                let h = tree.height() + 1;
                (0..h).map(|steps| whd(weights, h, h - steps, h)).collect()
            }
            Shape::Line { .. } | Shape::Set { .. } => Vec::new(),
        };
        Self {
            axes,
            priorities: axes.iter().map(priority).collect(),
            by_steps: axes.iter().map(steps).collect(),
            interval: (numbers == Numbers::Interval).then(|| whd(weights, 3, 2, 3)),
        }
    }

    /// Distortion of one row on one axis whose group spans `lo..=hi`: priority times WHD.
    pub fn on_axis(&self, a: usize, lo: Code, hi: Code) -> f64 {
        let axis = &self.axes[a];
        let whd = match &axis.shape {
            Shape::Tree(tree) if lo == hi => tree.loss(lo, hi),
            _ if lo == hi => 0.0,
            _ if axis.null == Some(hi) => 1.0,
            Shape::Tree(tree) => self.by_steps[a].get(usize::from(tree.steps(lo, hi))).copied().unwrap_or(1.0),
            Shape::Line { span } => self.interval.unwrap_or(f64::from(hi - lo) / f64::from((*span).max(1))),
            Shape::Set { .. } => 1.0,
        };
        self.priorities[a] * whd
    }

    /// Distortion of each row of a group.
    pub fn cover_distortion(&self, cover: &Cover) -> f64 {
        (0..self.axes.len()).map(|a| self.on_axis(a, cover.lo[a], cover.hi[a])).sum()
    }

    /// Distortion of each row of a group if one more joined.
    pub fn distortion_with_row(&self, cover: &Cover, row: &[Code]) -> f64 {
        let ends = |a: usize| (cover.lo[a].min(row[a]), cover.hi[a].max(row[a]));
        (0..self.axes.len()).map(|a| self.on_axis(a, ends(a).0, ends(a).1)).sum()
    }

    /// Distance of two rows: the distortion of both up to their closest common generalisation.
    pub fn row_distance(&self, one: &[Code], other: &[Code]) -> f64 {
        let codes = one.iter().zip(other).enumerate();
        codes.map(|(a, (&x, &y))| 2.0 * self.on_axis(a, x.min(y), x.max(y))).sum()
    }

    /// Distortion of a table: the sum over its grouped rows.
    pub fn total_distortion(&self, table: &Table, grouping: &Grouping) -> f64 {
        grouping.iter().map(|rows| rows.len() as f64 * self.cover_distortion(&table.cover(rows))).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Tree;

    #[test]
    fn sun_whd_of_birth_dates_and_gender() {
        let height = Weights::Height { beta: 1.0 };
        assert!((whd(Weights::Uniform, 6, 4, 6) - 0.4).abs() < 1e-12);
        // Printed 0.087.
        assert!((whd(height, 6, 5, 6) - 0.0876).abs() < 5e-5);
        for weights in [Weights::Uniform, height] {
            assert_eq!(whd(weights, 2, 1, 2), 1.0);
            assert_eq!((whd(weights, 6, 1, 6), whd(weights, 3, 3, 6)), (1.0, 0.0));
        }
    }

    #[test]
    fn sun_priorities_of_three_ranks() {
        assert_eq!(rank_priorities(3), [1.0, 0.5, 0.0]);
        assert_eq!(rank_priorities(1), [1.0]);
    }

    /// Table 1 of the paper: gender, age (child, young, middle, old), and post codes 4350 to 4353, which have three more
    /// levels above the one that they share.
    pub(crate) fn table_1() -> Table {
        let axes = [
            Axis::new("gender", Shape::Tree(Tree::new(2, []))),
            Axis::new("age", Shape::Tree(Tree::new(4, []))),
            Axis::new(
                "postcode",
                Shape::Tree(Tree::new(8, [(0, 3, 0.5)]).with_steps(|_, hi| if hi == 3 { 1 } else { 4 })),
            ),
        ];
        let rows = [(0, 2, 0), (0, 2, 0), (0, 1, 1), (1, 1, 2), (1, 3, 3), (1, 3, 3)];
        Table::new(axes, rows.iter().flat_map(|&(gender, age, postcode)| [gender, age, postcode]).collect())
    }

    fn ranked() -> Vec<String> {
        ["age", "postcode", "gender"].map(String::from).to_vec()
    }

    #[test]
    fn sun_distance_and_distortion_of_table_1() {
        let table = table_1();
        let distortion = Distortion::new(&table.axes, Weights::Uniform, Numbers::Range, &ranked());
        assert_eq!(distortion.row_distance(table.row(2), table.row(3)), 0.25);
        let mut grouping = Grouping::default();
        [[0, 1], [2, 3], [4, 5]].iter().for_each(|pair| grouping.push(pair));
        assert_eq!(distortion.total_distortion(&table, &grouping), 0.25);
        assert_eq!(distortion.cover_distortion(&table.cover(&[2, 3])), 0.125);
        assert_eq!(distortion.cover_distortion(&table.cover(&[0, 1])), 0.0);
    }

    #[test]
    fn numbers_cost_their_range_or_one_step() {
        let axes = [Axis::new("age", Shape::Line { span: 100 })];
        let of = |numbers| Distortion::new(&axes, Weights::Uniform, numbers, &[]).on_axis(0, 20, 30);
        assert_eq!((of(Numbers::Range), of(Numbers::Interval)), (0.1, 0.5));
        let height = Distortion::new(&axes, Weights::Height { beta: 1.0 }, Numbers::Interval, &[]);
        assert!((height.on_axis(0, 20, 30) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn weights_of_columns_are_priorities_by_value() {
        let mut axes = [Axis::new("a", Shape::Set { values: 9 }), Axis::new("b", Shape::Set { values: 9 })];
        axes[1].weight = 4.0;
        let distortion = Distortion::new(&axes, Weights::Uniform, Numbers::Range, &[]);
        assert_eq!((distortion.on_axis(0, 1, 2), distortion.on_axis(1, 1, 2)), (0.25, 1.0));
    }

    proptest! {
        /// Theorem 1 of the paper.
        #[test]
        fn sun_theorem_1_dist_is_a_metric(
            rows in prop::collection::vec((0..16_u16, 0..50_u16), 3), beta in 1.0..3.0_f64, height in any::<bool>()
        ) {
            let pairs = (0..8).map(|at| (2 * at, 2 * at + 1, 0.1));
            let fours = (0..4).map(|at| (4 * at, 4 * at + 3, 0.2));
            let tree = Tree::new(16, pairs.chain(fours).collect::<Vec<_>>());
            let axes = [Axis::new("tree", Shape::Tree(tree)), Axis::new("line", Shape::Line { span: 49 })];
            let weights = if height { Weights::Height { beta } } else { Weights::Uniform };
            let distortion = Distortion::new(&axes, weights, Numbers::Range, &[]);
            let row = |at: usize| [rows[at].0, rows[at].1];
            let dist = |a: usize, b: usize| distortion.row_distance(&row(a), &row(b));
            prop_assert_eq!(dist(0, 1), dist(1, 0));
            prop_assert_eq!(dist(0, 1) == 0.0, row(0) == row(1));
            prop_assert!(dist(0, 2) <= dist(0, 1) + dist(1, 2) + 1e-12);
        }
    }
}
