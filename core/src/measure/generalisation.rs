//! How far published values have moved up: in levels of their hierarchies, and in the share of the domain they cover.
//!
//! With level the steps from the value to what is published of it, and height the most steps there are:
//!
//! - MD, minimal distortion (Gorla, 2.1), and AG (Toth, 3): sum of levels over all published values;
//! - GENC (Loukides, def. 2.1.4): sum over rows of level / height, over the columns with a hierarchy;
//! - Precision (Gorla, 2.1): 1 minus the mean of level / height over all values. The height is the largest level, not the
//!   number of levels that the thesis prints: only then is a table of tops of precision 0;
//! - ILoss (Gorla, 2.1) and NCP by size (Tinabo, 3.2): sum over rows of the weighted mean over columns of |base(v)| /
//!   |base(*)|, 0 for a value that is published as it was; for numbers the width of the range over that of the domain;
//! - priority-weighted distortion (Sun, Wang and Li, definition 6, with uniform weights): the sum over rows and columns of
//!   priority times level / height, where the priority of a column is its weight over the largest weight, and levels that
//!   leave no trace here count;
//! - suppressed values (Gorla, 2.1): how many are published as the top.
//!
//! Nodes above the same values are one level. A column without a hierarchy has the levels value, range or set, and top.

use serde::{Deserialize, Serialize};

use super::Sum;
use crate::model::{Axis, Cover, Shape};

/// Level and height of what a group publishes on one axis.
pub fn published_level(axis: &Axis, cover: &Cover, a: usize) -> (u16, u16) {
    let (lo, hi) = (cover.lo[a], cover.hi[a]);
    match &axis.shape {
        Shape::Tree(tree) => {
            let height = tree.levels();
            let top = axis.null == Some(hi) && lo != hi;
            match tree.common_ancestor(lo, hi) {
                _ if top => (height, height),
                Some(node) => (tree.node_level(node), height),
                None if tree.loss(lo, lo) > 0.0 => (height, height),
                None => (0, height),
            }
        }
        _ if lo == hi => (0, 2),
        _ if axis.loss(lo, hi, cover.count_distinct(a)) >= 1.0 => (2, 2),
        _ => (1, 2),
    }
}

/// The share of the domain that a group covers on one axis; 0 for a single value.
pub fn axis_iloss(axis: &Axis, cover: &Cover, a: usize) -> f64 {
    let (lo, hi) = (cover.lo[a], cover.hi[a]);
    let loss = axis.loss(lo, hi, cover.count_distinct(a));
    if loss == 0.0 || loss >= 1.0 {
        return loss;
    }
    match &axis.shape {
        Shape::Line { .. } => loss,
        Shape::Set { values } => f64::from(cover.count_distinct(a)) / f64::from((*values).max(1)),
        Shape::Tree(tree) => tree.common_ancestor(lo, hi).map_or(0.0, |node| {
            let node = &tree.nodes()[node as usize];
            f64::from(node.hi - node.lo + 1) / tree.codes() as f64
        }),
    }
}

/// Sums over published values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generalisation {
    rows: u64,
    values: u64,
    levels: u64,
    genc: Sum,
    steps: Sum,
    iloss: Sum,
    #[serde(default)]
    weighted: Sum,
    #[serde(default)]
    tops: u64,
}

impl Generalisation {
    /// Adds a group with this cover.
    pub fn add_group(&mut self, axes: &[Axis], cover: &Cover, rows: u64) {
        self.add_rows(axes, rows);
        (0..axes.len()).for_each(|a| self.add_values(axes, a, cover, rows));
    }

    /// Adds rows whose values are published as they are, unless [`add_values`](Self::add_values) says otherwise.
    pub fn add_rows(&mut self, axes: &[Axis], rows: u64) {
        self.rows += rows;
        self.values += rows * axes.len() as u64;
    }

    /// Says what is published of some of the added rows on one axis.
    pub fn add_values(&mut self, axes: &[Axis], a: usize, cover: &Cover, rows: u64) {
        let weights: f64 = axes.iter().map(|axis| axis.weight).sum();
        let axis = &axes[a];
        let (level, height) = published_level(axis, cover, a);
        let share = f64::from(level) / f64::from(height);
        self.levels += u64::from(level) * rows;
        self.steps.add_fraction(share, rows);
        let largest = axes.iter().map(|axis| axis.weight).fold(f64::MIN_POSITIVE, f64::max);
        let way = match &axis.shape {
            Shape::Tree(tree) if level < height => {
                f64::from(tree.steps(cover.lo[a], cover.hi[a])) / f64::from(tree.height())
            }
            _ => share,
        };
        self.weighted.add_fraction(way * axis.weight / largest, rows);
        self.tops += if level == height { rows } else { 0 };
        if matches!(axis.shape, Shape::Tree(_)) {
            self.genc.add_fraction(share, rows);
        }
        self.iloss.add_fraction(axis.weight / weights * axis_iloss(axis, cover, a), rows);
    }

    /// Adds the groups of another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.levels += other.levels;
        self.genc.merge(other.genc);
        self.steps.merge(other.steps);
        self.iloss.merge(other.iloss);
        self.weighted.merge(other.weighted);
        self.tops += other.tops;
    }

    /// MD and AG: the sum of all levels.
    pub fn distortion(&self) -> u64 {
        self.levels
    }

    /// Priority-weighted distortion: levels over heights, each times the priority of its column.
    pub fn weighted_distortion(&self) -> f64 {
        self.weighted.value()
    }

    /// GENC: the sum of levels over heights, over the columns with a hierarchy.
    pub fn genc(&self) -> f64 {
        self.genc.value()
    }

    /// Precision: 1 for unchanged values, 0 for tops; `None` without values.
    pub fn precision(&self) -> Option<f64> {
        (self.values > 0).then(|| 1.0 - self.steps.value() / self.values as f64)
    }

    /// Values that are published as the top.
    pub fn suppressed_values(&self) -> u64 {
        self.tops
    }

    /// ILoss: the sum over rows, each in `[0, 1]`.
    pub fn iloss(&self) -> f64 {
        self.iloss.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Classes;
    use crate::model::{Code, Table, Tree};

    fn sums(table: &Table, groups: &[&[u32]]) -> Generalisation {
        let mut sums = Generalisation::default();
        groups.iter().for_each(|rows| sums.add_group(&table.axes, &table.cover(rows), rows.len() as u64));
        sums
    }

    /// Provinces under regions: five times Quebec to Central Canada are 5 steps, on to the top 5 more; Central Canada
    /// covers 2 of 7 provinces.
    #[test]
    fn gorla_minimal_distortion_and_iloss_of_central_canada() {
        let tree = Tree::new(7, [(0, 1, 1.0 / 6.0), (2, 4, 2.0 / 6.0)]);
        let table = |codes: Vec<Code>| Table::new([Axis::new("PRV", Shape::Tree(tree.clone()))], codes);
        let region = table(vec![0, 0, 0, 0, 1]);
        let one = sums(&region, &[&[0, 1, 2, 3, 4]]);
        assert_eq!((one.distortion(), one.genc(), one.precision()), (5, 2.5, Some(0.5)));
        assert!((one.iloss() - 5.0 * 2.0 / 7.0).abs() < 1e-12);
        let top = sums(&table(vec![0, 0, 0, 0, 6]), &[&[0, 1, 2, 3, 4]]);
        assert_eq!((top.distortion(), top.precision(), top.iloss()), (10, Some(0.0), 5.0));
        let same = sums(&region, &[&[0, 1, 2, 3]]);
        assert_eq!((same.distortion(), same.precision(), same.iloss()), (0, Some(1.0), 0.0));
    }

    /// R' has eight values one step up, R'' four at the top of a tree of height 3; both have four classes of two.
    #[test]
    fn gorla_minimal_distortion_of_table_3() {
        let table = crate::grouping::fixtures::gorla_table_3();
        let one = sums(&table, &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]);
        let two = sums(&table, &[&[0, 1], &[2, 5], &[3, 4], &[6, 7]]);
        assert_eq!((one.distortion(), two.distortion()), (8, 12));
        assert_eq!((one.suppressed_values(), two.suppressed_values()), (0, 4));
        assert_eq!(one.precision(), Some(1.0 - 8.0 * 0.5 / 24.0));
        assert_eq!(two.precision(), Some(1.0 - 4.0 / 24.0), "divided by the largest level, not the number of levels");
        let mut classes = Classes::default();
        classes.add_classes(2, 4);
        assert_eq!(classes.dm(0), 16.0);
    }

    /// Fixture 11.2 of Tinabo: gender, marital status, date of birth in intervals, address.
    fn patients() -> Table {
        let gender = Tree::new(2, []);
        // Divorced, Married, Widowed below Been Married; Single.
        let status = Tree::new(4, [(0, 2, 0.5)]);
        // Ten dates below 1961-1970, 1971-1990 and 1991-2000.
        let birth = Tree::new(10, [(0, 1, 0.1), (2, 6, 0.4), (7, 9, 0.2)]);
        let address = Tree::new(6, []);
        let axes = [gender, status, birth, address].map(|tree| Axis::new("", Shape::Tree(tree)));
        // 1034, 1007, 1029, 1023, 1036, 1035, 1013, 1008, 1039, 1010.
        let rows: [[Code; 4]; 10] = [
            [0, 1, 1, 0],
            [1, 0, 0, 1],
            [0, 2, 2, 2],
            [1, 0, 4, 0],
            [0, 2, 7, 3],
            [1, 0, 9, 1],
            [0, 1, 8, 4],
            [0, 3, 3, 1],
            [1, 3, 6, 5],
            [1, 3, 5, 3],
        ];
        Table::new(axes, rows.concat())
    }

    #[test]
    fn tinabo_fixture_11_2_ncp_and_dp() {
        let table = patients();
        let groups: [&[u32]; 4] = [&[0, 1], &[2, 3], &[4, 5, 6], &[7, 8, 9]];
        for (group, expected) in groups.iter().zip([1.475, 1.625, 2.2875, 1.875]) {
            assert!((sums(&table, &[group]).iloss() - expected).abs() < 1e-12);
        }
        assert!((sums(&table, &groups).iloss() - 7.2625).abs() < 1e-12);
        // l-mondrian: any status in every class.
        let mut any = table.clone();
        any.axes = [
            Tree::new(2, []),
            Tree::new(4, []),
            Tree::new(10, [(0, 1, 0.1), (2, 6, 0.4), (7, 9, 0.2)]),
            Tree::new(6, []),
        ]
        .map(|tree| Axis::new("", Shape::Tree(tree)))
        .into();
        let classes: [&[u32]; 3] = [&[0, 1], &[2, 3, 7, 8, 9], &[4, 5, 6]];
        assert!((sums(&any, &classes).iloss() - 8.45).abs() < 1e-12);
        let dp = |sizes: &[u64]| {
            let mut classes = Classes::default();
            sizes.iter().for_each(|&size| classes.add_classes(size, 1));
            classes.dm(0)
        };
        assert_eq!((dp(&[2, 2, 3, 3]), dp(&[2, 5, 3])), (26.0, 38.0));
    }

    /// The thesis prints 7.8598 for g-anatomy, whose E4 is Never Married, an inner node of one leaf: 1/4 instead of 0.
    #[test]
    fn tinabo_fixture_11_2_g_anatomy_erratum() {
        let table = patients();
        let kl_redinfo = sums(&table, &[&[0, 1], &[2, 3], &[4, 5, 6], &[7, 8, 9]]).iloss();
        assert!((kl_redinfo + 3.0 / 4.0 * (1.0 / 4.0) - 7.45).abs() < 1e-12);
    }

    /// Table 1 of the paper, raised to table 1b: gender, postcode and age have the priorities 0, 1/2 and 1, and only two
    /// postcodes move up one of four steps.
    #[test]
    fn sun_distortion_of_table_1b_by_definition_6() {
        let mut table = crate::grouping::distortion::tests::table_1();
        let mut axes = table.axes.to_vec();
        for axis in &mut axes {
            axis.weight = match axis.name.as_str() {
                "gender" => 0.0,
                "postcode" => 0.5,
                _ => 1.0,
            };
        }
        table.axes = axes.into();
        let rows = table.rows() as u32;
        let singles: Vec<Vec<u32>> = (0..rows).map(|row| vec![row]).collect();
        let apart: Vec<&[u32]> = singles.iter().map(Vec::as_slice).collect();
        assert_eq!(sums(&table, &apart).weighted_distortion(), 0.0);
        let pair: &[u32] = &[2, 3];
        assert!((sums(&table, &[pair]).weighted_distortion() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn lines_and_sets_have_two_levels() {
        let mut line = Axis::new("line", Shape::Line { span: 10 });
        line.null = Some(crate::model::NULL_ON_LINE);
        let axes = [line, Axis::new("set", Shape::Set { values: 4 })];
        let table = Table::new(axes, vec![3, 0, 8, 1, crate::model::NULL_ON_LINE, 1]);
        let of = |rows: &[u32]| {
            let cover = table.cover(rows);
            (published_level(&table.axes[0], &cover, 0), published_level(&table.axes[1], &cover, 1))
        };
        assert_eq!(of(&[0]), ((0, 2), (0, 2)));
        assert_eq!(of(&[0, 1]), ((1, 2), (1, 2)));
        assert_eq!(of(&[1, 2]), ((2, 2), (0, 2)));
        assert_eq!(axis_iloss(&table.axes[1], &table.cover(&[0, 1]), 1), 0.5);
    }
}
