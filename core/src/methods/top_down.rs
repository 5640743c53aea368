//! `top-down`: halve by two rows far apart, each half again, down to k (Xu et al., "Utility-based anonymization", 2006).
//!
//! 1. The cell is cut into subspaces of at least `least` rows: the paper works on the whole table, where unlucky splits
//!    make it quadratic.
//! 2. A part of 2k rows or more is split: from a random row to the one furthest from it, to the one furthest from
//!    that, a few times over; the last two are the seeds. All other rows, in random order, join the seed's side that they
//!    make lose less, counted as rows times loss; the smaller side among equals.
//! 3. A side that ends below k rows takes what it lacks from the other where the other keeps k, the cheapest rows
//!    first. (The paper repairs such groups at the end, by the same move or a merger; done at once, none are left.)

use std::sync::Arc;

use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{self, S};
use crate::grouping::entry::Entry;
use crate::grouping::reach::Reach;
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::model::{Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new("top-down", "Splits by two rows far apart, down to groups of k.", |setting| {
    Arc::new(TopDown { least: cutting::min_subspace_rows(setting, USUAL_ROWS) })
})
.options(&[S])
.check(cutting::check_options);

/// Fewest rows of a subspace.
const USUAL_ROWS: usize = 4096;

/// Times that the furthest row is looked for; the paper's few.
const SEARCHES: usize = 6;

/// Top-down greedy partitioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopDown {
    /// Fewest rows of a subspace; `usize::MAX` works on the cell as a whole.
    pub least: usize,
}

impl Default for TopDown {
    fn default() -> Self {
        Self { least: USUAL_ROWS }
    }
}

impl Method for TopDown {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        let k = rules.k.max(1);
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut grouping = Grouping::with_capacity(cell.rows());
        in_subspaces(cell, &Widest::default(), self.least.max(k), |rows| {
            let mut open = vec![rows.to_vec()];
            while let Some(part) = open.pop() {
                checkpoint();
                if part.len() >= 2 * k {
                    let (one, other) = halve_rows(cell, part, k, &mut rng);
                    open.extend([other, one]);
                } else if part.len() >= k {
                    grouping.push(&part);
                } else {
                    grouping.left_over.extend(part);
                }
            }
        });
        grouping
    }
}

/// Splits rows into two sides of at least k.
fn halve_rows(cell: &Table, mut rows: Vec<u32>, k: usize, rng: &mut fastrand::Rng) -> (Vec<u32>, Vec<u32>) {
    rng.shuffle(&mut rows);
    let [mut left, mut right] = [Side::new(cell, &rows), Side::new(cell, &rows)];
    let (mut one, mut other) = (0, 0);
    for _ in 0..SEARCHES {
        left.reach.start_group(other);
        let furthest = (0..rows.len()).filter(|&place| place != other);
        let furthest = furthest.map(|place| (left.reach.cost_with(place), place));
        let found = furthest.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((_, place)) = found.filter(|&(_, place)| place != one || one == other) else { break };
        (one, other) = (other, place);
    }
    left.start_side(one);
    right.start_side(other);
    for place in (0..rows.len()).filter(|&place| place != one && place != other) {
        let (mine, theirs) = (left.growth(place), right.growth(place));
        if mine < theirs || (mine == theirs && left.members.len() <= right.members.len()) {
            left.add_row(place);
        } else {
            right.add_row(place);
        }
    }
    let (small, large) =
        if left.members.len() < right.members.len() { (&mut left, &mut right) } else { (&mut right, &mut left) };
    if let Some(lack) = k.checked_sub(small.members.len()).filter(|&lack| lack > 0) {
        let mut costs: Vec<(f64, usize)> =
            large.members.iter().map(|&place| (small.reach.cost_with(place), place)).collect();
        costs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        costs.truncate(lack);
        let mut moved: Vec<usize> = costs.into_iter().map(|(_, place)| place).collect();
        small.members.extend(&moved);
        moved.sort_unstable();
        large.members.retain(|place| moved.binary_search(place).is_err());
    }
    let named = |side: Side<'_>| side.members.iter().map(|&place| rows[place]).collect();
    (named(left), named(right))
}

/// One side of a split while it grows.
struct Side<'a> {
    reach: Reach<'a>,
    members: Vec<usize>,
    /// Rows times loss.
    burden: f64,
}

impl<'a> Side<'a> {
    fn new(cell: &'a Table, rows: &'a [u32]) -> Self {
        Self { reach: Reach::new(cell, rows), members: Vec::new(), burden: 0.0 }
    }

    fn start_side(&mut self, place: usize) {
        self.reach.start_group(place);
        self.members = vec![place];
        self.burden = 0.0;
    }

    fn growth(&self, place: usize) -> f64 {
        (self.members.len() + 1) as f64 * self.reach.cost_with(place) - self.burden
    }

    fn add_row(&mut self, place: usize) {
        self.burden += self.growth(place);
        self.reach.add_row(place);
        self.members.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Shape};

    fn groups(values: &[u16], k: usize) -> Vec<Vec<u32>> {
        let table = Table::new([Axis::new("x", Shape::Line { span: 100 })], values.to_vec());
        let grouping = TopDown::default().group(&table, &Rules::k(k), 7);
        let mut groups: Vec<Vec<u32>> = grouping.iter().map(<[u32]>::to_vec).collect();
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups.sort_unstable();
        assert_eq!(groups.concat().len() + grouping.left_over.len(), values.len());
        groups
    }

    #[test]
    fn rows_far_apart_part_first() {
        assert_eq!(groups(&[0, 100, 1, 99, 50, 51], 2), [[0, 2], [1, 3], [4, 5]]);
    }

    #[test]
    fn a_side_that_is_too_small_takes_the_nearest() {
        assert_eq!(groups(&[0, 1, 2, 3, 60, 100], 3), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(groups(&[7; 9], 2).len(), 4);
        assert!(groups(&[1, 2], 3).is_empty());
    }
}
