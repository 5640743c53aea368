//! The papers' split: halve the widest attribute (median-based pre-partitioning, Loukides, algorithm 2).
//!
//! 1. The attribute on which the rows are widest is taken, the first one among equals.
//! 2. The rows are cut at the median of its codes: by rank, so that rows equal to the median are divided in the order
//!    they stand in ([`Ties::Divide`]: both halves equal, `least..2 * least` rows in the end), or at the nearer end of
//!    the run of medians, so that equal values stay together ([`Ties::Boundary`]).
//! 3. No cut when a side would fall below the least size; with [`Widest::next`] the next widest attribute is tried
//!    first, as Mondrian does.
//!
//! The cut is stable: on both sides rows keep the order they came in, so subspaces of a table stand in its row order.

use super::Split;
use crate::model::{Code, Shape, Table};

/// In what unit attributes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// The share of the domain, times the attribute's weight: fit for mixed kinds of attributes.
    #[default]
    Normalised,
    /// Code steps on a line, values beyond the first for trees (leaves below the common ancestor) and sets.
    Raw,
}

/// What happens to rows that are equal to the median.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// They are divided, so that both sides are equally large.
    #[default]
    Divide,
    /// They stay together, on the side that leaves the cut nearer to the middle.
    Boundary,
}

/// Cuts the widest attribute at its median.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Widest {
    /// Unit of comparison.
    pub width: Width,
    /// Rows equal to the median.
    pub ties: Ties,
    /// Whether the next widest attributes are tried when the widest one cannot be cut.
    pub next: bool,
}

impl Widest {
    /// Cuts that keep equal values together, on whatever attribute allows one.
    pub const BOUNDARY: Self = Self { width: Width::Normalised, ties: Ties::Boundary, next: true };

    /// The attributes to try, widest first.
    pub fn axes_by_width(&self, table: &Table, rows: &[u32]) -> Vec<usize> {
        let widths = axis_widths(table, rows, self.width);
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.sort_by(|&a, &b| widths[b].total_cmp(&widths[a]));
        order.truncate(if self.next { order.len() } else { 1 });
        order
    }
}

impl Split for Widest {
    fn cut_rows(&self, table: &Table, rows: &mut [u32], least: usize) -> Option<usize> {
        if rows.len() / 2 < least {
            return None;
        }
        self.axes_by_width(table, rows).into_iter().find_map(|a| cut_at_median(table, rows, a, self.ties, least))
    }
}

/// Width of some rows on every axis.
fn axis_widths(table: &Table, rows: &[u32], width: Width) -> Vec<f64> {
    let axes = &table.axes;
    let (mut lo, mut hi) = (vec![Code::MAX; axes.len()], vec![0; axes.len()]);
    for &row in rows {
        for ((lo, hi), &code) in lo.iter_mut().zip(&mut hi).zip(table.row(row)) {
            *lo = (*lo).min(code);
            *hi = (*hi).max(code);
        }
    }
    let distinct = |a: usize| {
        let mut seen = vec![0_u64; usize::from(hi[a]) / 64 + 1];
        for &row in rows {
            let code = usize::from(table.row(row)[a]);
            seen[code / 64] |= 1 << (code % 64);
        }
        seen.iter().map(|word| word.count_ones()).sum::<u32>()
    };
    (0..axes.len())
        .map(|a| {
            let axis = &axes[a];
            if rows.is_empty() || lo[a] == hi[a] {
                return 0.0;
            }
            match (width, &axis.shape) {
                (Width::Normalised, _) => {
                    axis.weight * axis.loss(lo[a], hi[a], if axis.is_set() { distinct(a) } else { 0 })
                }
                (Width::Raw, Shape::Line { span }) if axis.null == Some(hi[a]) => f64::from(*span),
                (Width::Raw, Shape::Line { .. }) => f64::from(hi[a] - lo[a]),
                (Width::Raw, Shape::Set { .. }) => f64::from(distinct(a) - 1),
                (Width::Raw, Shape::Tree(tree)) => tree.common_ancestor(lo[a], hi[a]).map_or(0.0, |node| {
                    let node = &tree.nodes()[node as usize];
                    f64::from(node.hi - node.lo)
                }),
            }
        })
        .collect()
}

/// Cuts rows at the median of one axis: reorders them so that the lower side comes first and returns its size; none,
/// and nothing moved, when a side would hold fewer than `least` rows.
pub fn cut_at_median(table: &Table, rows: &mut [u32], axis: usize, ties: Ties, least: usize) -> Option<usize> {
    let code = |row: u32| table.row(row)[axis];
    let half = rows.len().div_ceil(2);
    if rows.is_empty() {
        return None;
    }
    let mut codes: Vec<Code> = rows.iter().map(|&row| code(row)).collect();
    let median = *codes.select_nth_unstable(half - 1).1;
    let below = codes.iter().filter(|&&code| code < median).count();
    let left = match ties {
        Ties::Divide => half,
        Ties::Boundary => {
            let equal = codes.iter().filter(|&&code| code == median).count();
            let nearer_first =
                if half - below <= below + equal - half { [below, below + equal] } else { [below + equal, below] };
            nearer_first.into_iter().find(|&left| left.min(rows.len() - left) >= least.max(1))?
        }
    };
    if left.min(rows.len() - left) < least.max(1) {
        return None;
    }
    let mut medians_left = left - below;
    let mut right = Vec::with_capacity(rows.len() - left);
    let mut at = 0;
    for i in 0..rows.len() {
        let row = rows[i];
        let code = code(row);
        let tie = code == median;
        if code < median || (tie && medians_left > 0) {
            medians_left -= usize::from(tie);
            rows[at] = row;
            at += 1;
        } else {
            right.push(row);
        }
    }
    rows[at..].copy_from_slice(&right);
    Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::grouping::split::cut_subspaces;
    use crate::model::{Axis, Tree};

    fn parts(table: &Table, split: Widest, least: usize) -> Vec<Vec<u32>> {
        let (rows, ends) = cut_subspaces(table, &split, least);
        let mut start = 0;
        ends.into_iter().map(|end| rows[std::mem::replace(&mut start, end)..end].to_vec()).collect()
    }

    #[test]
    fn loukides_table_3_6_by_mbp() {
        let raw = Widest { width: Width::Raw, ..Widest::default() };
        assert_eq!(parts(&fixtures::table_3_5(), raw, 2), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    }

    #[test]
    fn loukides_table_3_7_by_mbp_with_normalised_widths() {
        assert_eq!(parts(&fixtures::table_3_5(), Widest::default(), 2), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    }

    /// Number of leaves and their sizes depend on the number of rows only.
    #[test]
    fn loukides_g10_leaf_counts() {
        let counts = |n: usize, least: usize| {
            let codes: Vec<Code> = (0..n).map(|row| (row * 7919 % 74) as Code).collect();
            let table = Table::new([Axis::new("age", Shape::Line { span: 73 })], codes);
            let parts = parts(&table, Widest::default(), least);
            assert!(parts.iter().all(|part| (least..2 * least).contains(&part.len())));
            assert!(parts.iter().all(|part| part.is_sorted()), "rows keep their order");
            (parts.len(), parts.iter().map(Vec::len).min().unwrap(), parts.iter().map(Vec::len).max().unwrap())
        };
        assert_eq!(counts(30_162, 50), (512, 58, 59));
        for (n, least, leaves) in [
            (30_162, 5, 4_096),
            (30_162, 10, 2_048),
            (30_162, 20, 1_024),
            (100_000, 5, 16_384),
            (100_000, 20, 4_096),
            (100_000, 50, 1_024),
            (500_000, 5, 65_536),
            (500_000, 20, 16_384),
            (500_000, 50, 8_192),
        ] {
            assert_eq!(counts(n, least).0, leaves, "n = {n}, s = {least}");
        }
    }

    #[test]
    fn equal_values_stay_together_at_a_boundary() {
        let axes = [Axis::new("x", Shape::Line { span: 9 }), Axis::new("y", Shape::Set { values: 10 })];
        let table = Table::new(axes, vec![0, 1, 5, 2, 5, 1, 5, 2, 9, 1]);
        let boundary = Widest { ties: Ties::Boundary, ..Widest::default() };
        let mut rows = [0, 1, 2, 3, 4];
        // Medians are rows 1..=3; the cut after them leaves one row above, the cut before them one row below.
        assert_eq!(boundary.cut_rows(&table, &mut rows, 1), Some(4));
        assert_eq!(rows, [0, 1, 2, 3, 4]);
        assert_eq!(boundary.cut_rows(&table, &mut rows, 2), None);
        assert_eq!(Widest::BOUNDARY.cut_rows(&table, &mut rows, 2), Some(3), "the second attribute allows a cut");
        assert_eq!(rows, [0, 2, 4, 1, 3]);
    }

    #[test]
    fn raw_width_of_trees_sets_and_nulls() {
        let mut with_null = Axis::new("n", Shape::Line { span: 8 });
        with_null.null = Some(crate::model::NULL_ON_LINE);
        let axes = [
            Axis::new("line", Shape::Line { span: 100 }),
            Axis::new("tree", Shape::Tree(Tree::new(8, [(0, 3, 0.4)]))),
            Axis::new("set", Shape::Set { values: 9 }),
            with_null,
        ];
        let table = Table::new(axes, vec![7, 1, 3, 2, 10, 2, 8, crate::model::NULL_ON_LINE]);
        assert_eq!(axis_widths(&table, &[0, 1], Width::Raw), [3.0, 3.0, 1.0, 8.0]);
        assert_eq!(axis_widths(&table, &[0, 1], Width::Normalised), [0.03, 0.4, 0.125, 1.0]);
    }
}
