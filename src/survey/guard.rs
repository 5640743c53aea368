//! Cuts between cells that leave both sides able to meet the rules.
//!
//! Groups never reach beyond their cell, so a cell in which everybody is alike in what is sensitive would be suppressed,
//! however many others there are in the table. A cut is rejected if a side, as far as the sample shows, does not meet the
//! rules as a whole while both sides together do, and likewise when it would only just meet them while both sides together
//! leave room. This steers quality only: groups are asked again, row by row.

use std::cell::Cell;

use crate::model::{Code, Table};
use crate::privacy::{GroupView, Rules};

/// Rows of the sample that are looked at for one cut.
const MAX_ROWS: usize = 4096;
/// Cuts that are looked at for one tree; all others are allowed.
const MAX_CUTS: usize = 4096;
/// Most rows that one row of the sample stands for, in multiples of the mean.
const MAX_WEIGHT: f64 = 64.0;

/// Of the rows with the commonest value of a side, one in so many is counted twice.
const ROOM: usize = 2;

/// Whether a cut may be made: of rows of a sample with its sensitive columns, each of some weight.
pub(super) fn allowed_cuts<'a>(
    sample: &'a Table,
    weights: &'a [f64],
    rules: &'a Rules,
) -> impl Fn(usize, Code, &[u32]) -> bool + 'a {
    let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    let asked = Cell::new(0);
    move |axis, at, rows| {
        asked.set(asked.get() + 1);
        if asked.get() > MAX_CUTS {
            return true;
        }
        let hold = |side: &dyn Fn(u32) -> bool, room: bool| {
            let some = rows.iter().copied().step_by(rows.len().div_ceil(MAX_ROWS).max(1)).filter(|&row| side(row));
            let copies = |row: u32| (weights[row as usize] / mean).round().clamp(1.0, MAX_WEIGHT) as usize;
            let weighed: Vec<u32> = some.flat_map(|row| std::iter::repeat_n(row, copies(row))).collect();
            let view = GroupView::new(sample, &weighed);
            if room { rules.hold_with_room(&view, ROOM) } else { rules.hold_in_parts(&view) }
        };
        let is_left = |row: u32| sample.row(row)[axis] <= at;
        let both = |room: bool| hold(&is_left, room) && hold(&|row| !is_left(row), room);
        if hold(&|_| true, true) { both(true) } else { both(false) || !hold(&|_| true, false) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Axis, Sensitive, SensitiveShape, Shape};
    use crate::privacy::alpha_k::AlphaK;

    #[test]
    fn cells_of_people_who_are_alike_are_not_cut_off() {
        let axis = |name: &str| Axis::new(name, Shape::Line { span: 99 });
        let codes = (0..1000_u16).flat_map(|row| [row % 100, row / 10]).collect();
        let mut sample = Table::new([axis("age"), axis("place")], codes);
        let ill = |row: u32| if row % 100 < 20 { 0 } else { row % 7 };
        sample.sensitive.push(Sensitive {
            name: "ill".into(),
            codes: (0..1000).map(ill).collect(),
            shape: SensitiveShape::Set { values: 7 },
            null: None,
            ranges: Vec::new(),
            shares: None,
        });
        let rules = |alpha| Rules { k: 5, others: vec![Arc::new(AlphaK { column: "ill".into(), alpha })] };
        let (weights, rows) = (vec![1.0; 1000], (0..1000).collect::<Vec<u32>>());
        let (mild, strict) = (rules(0.5), rules(0.1));
        let allowed = allowed_cuts(&sample, &weights, &mild);
        assert!(!allowed(0, 19, &rows), "the young are alike");
        assert!(!allowed(0, 49, &rows), "nearly half of the younger half are alike, which leaves no room");
        assert!(allowed(0, 69, &rows) && allowed(1, 49, &rows));
        assert!(allowed_cuts(&sample, &weights, &strict)(0, 19, &rows), "nothing is lost that could be kept");
    }
}
