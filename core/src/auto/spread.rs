//! Cuts that share out what is common: where everybody on one side of every boundary would be alike, each sensitive value is
//! cut at its own median instead, so that both sides are as mixed as the whole.
//!
//! Where few can be mixed with many, no boundary leaves both sides able to meet the rules, and rows that stay together for
//! want of a cut would have to be chopped without asking. The sides of such a cut overlap on the axis, but both are
//! narrower than the whole.

use std::collections::BTreeMap;

use crate::grouping::split::gain::pair_loss;
use crate::model::{Code, Table};

/// Rows on which axes are compared.
const SAMPLE: usize = 4096;

/// Cuts rows in two on the axis that brings most, each stratum at its median; `None` if no axis improves anything or a side
/// would not be allowed.
pub(super) fn cut_strata(
    table: &Table,
    rows: &mut [u32],
    least: usize,
    stratum: impl Fn(u32) -> u64,
    mut allows: impl FnMut(&[u32]) -> bool,
) -> Option<usize> {
    if rows.len() < 2 * least.max(1) {
        return None;
    }
    let some: Vec<u32> = rows.iter().copied().step_by(rows.len().div_ceil(SAMPLE)).collect();
    let gain = |axis: usize| {
        let goes_left = lower_halves(table, &some, axis, &stratum);
        let code = |at: usize| table.row(some[at])[axis];
        let side =
            |left: bool| -> Vec<Code> { (0..some.len()).filter(|&at| goes_left[at] == left).map(code).collect() };
        let loss = |mut codes: Vec<Code>| pair_loss(&table.axes[axis], &mut codes);
        let gain = loss((0..some.len()).map(code).collect()) - loss(side(true)) - loss(side(false));
        gain * table.axes[axis].weight.max(0.0)
    };
    let best = (0..table.axes.len()).map(|axis| (gain(axis), axis)).max_by(|x, y| x.0.total_cmp(&y.0));
    let (_, axis) = best.filter(|(gain, _)| *gain > 0.0)?;
    let goes_left = lower_halves(table, rows, axis, &stratum);
    let side = |left: bool| -> Vec<u32> {
        rows.iter().zip(&goes_left).filter(|(_, goes_left)| **goes_left == left).map(|(row, _)| *row).collect()
    };
    let (left, right) = (side(true), side(false));
    let middle = left.len();
    if middle < least || right.len() < least || !allows(&left) || !allows(&right) {
        return None;
    }
    rows[..middle].copy_from_slice(&left);
    rows[middle..].copy_from_slice(&right);
    Some(middle)
}

/// Which rows lie in the lower half of their stratum on an axis. Strata of odd size take turns in who has one more.
fn lower_halves(table: &Table, rows: &[u32], axis: usize, stratum: &impl Fn(u32) -> u64) -> Vec<bool> {
    let mut strata: BTreeMap<u64, Vec<(Code, u32)>> = BTreeMap::new();
    for (at, &row) in rows.iter().enumerate() {
        strata.entry(stratum(row)).or_default().push((table.row(row)[axis], at as u32));
    }
    let mut goes_left = vec![false; rows.len()];
    let mut more = 0;
    for mut rows in strata.into_values() {
        let half = (rows.len() + more) / 2;
        more = (rows.len() + more) % 2;
        if half > 0 && half < rows.len() {
            rows.select_nth_unstable(half);
        }
        rows[..half].iter().for_each(|&(_, at)| goes_left[at as usize] = true);
    }
    goes_left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Shape};

    #[test]
    fn both_sides_are_as_mixed_as_the_whole() {
        let axis = |name: &str| Axis::new(name, Shape::Line { span: 99 });
        // The first forty are of one kind, so a boundary on the first axis would part the kinds.
        let codes = (0..100).flat_map(|row: u16| [row, 50]).collect();
        let table = Table::new([axis("age"), axis("same")], codes);
        let kind = |row: u32| u64::from(row < 40);
        let mut rows: Vec<u32> = (0..100).collect();
        let left = cut_strata(&table, &mut rows, 10, kind, |_| true).unwrap();
        assert_eq!(left, 50);
        let count = |rows: &[u32]| rows.iter().filter(|&&row| kind(row) == 1).count();
        assert_eq!((count(&rows[..left]), count(&rows[left..])), (20, 20));
        assert!(rows[..left].iter().all(|&row| row < 20 || (40..70).contains(&row)));
        assert_eq!(cut_strata(&table, &mut rows, 51, kind, |_| true), None);
        assert_eq!(cut_strata(&table, &mut rows, 10, kind, |side| side.len() > 50), None);
    }
}
