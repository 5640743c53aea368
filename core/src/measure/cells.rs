//! The range of cell sizes of a run.
//!
//! Cells are cut by a sample, so their sizes are known only when every row has been seen. A run is as slow and needs as
//! much memory as its largest cell makes it, so the sizes are reported.

use serde::{Deserialize, Serialize};

/// Rows of the smallest and of the largest cell; cells that no row has fallen into do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cells {
    /// Number of cells.
    pub count: u64,
    /// Rows of the smallest.
    pub smallest: u64,
    /// Rows of the largest.
    pub largest: u64,
}

impl Cells {
    /// One cell of `rows` rows; none if there are none.
    pub fn one_cell(rows: u64) -> Self {
        Self { count: u64::from(rows > 0), smallest: rows, largest: rows }
    }

    /// Adds the cells of another accumulator.
    pub fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        self.smallest = if self.count == 0 { other.smallest } else { self.smallest.min(other.smallest) };
        self.largest = self.largest.max(other.largest);
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_does_not_matter_and_empty_cells_do_not_count(sizes in prop::collection::vec(0..9_u64, 0..20), cut in 0..20_usize) {
            let sum = |sizes: &[u64]| {
                let mut sum = Cells::default();
                sizes.iter().for_each(|&rows| sum.merge(Cells::one_cell(rows)));
                sum
            };
            let (head, tail) = sizes.split_at(cut.min(sizes.len()));
            let mut merged = sum(tail);
            merged.merge(sum(head));
            prop_assert_eq!(merged, sum(&sizes));
            let held: Vec<u64> = sizes.into_iter().filter(|&rows| rows > 0).collect();
            prop_assert_eq!(merged.count, held.len() as u64);
            prop_assert_eq!(merged.smallest, held.iter().copied().min().unwrap_or(0));
            prop_assert_eq!(merged.largest, held.iter().copied().max().unwrap_or(0));
        }
    }
}
