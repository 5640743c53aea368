//! Median splits: how a cell is cut into subspaces, and how the table is cut into cells.
//!
//! How a cut is chosen decides most of the quality, so it is a small trait: [`Split`]. [`cut_subspaces`] applies it until
//! no part can be cut without falling below the least size.

pub mod widest;

pub mod cells;
pub mod gain;

pub use cells::{Branch, CellNode, CellTree};
pub use gain::Gain;
pub use widest::Widest;

use crate::model::Table;

/// A way to cut some rows in two.
pub trait Split {
    /// Reorders `rows` so that one side comes first, and returns how many rows that side has; `None` if the rows
    /// should stay together. Both sides hold at least `least` rows.
    fn cut_rows(&self, table: &Table, rows: &mut [u32], least: usize) -> Option<usize>;
}

/// The ways to cut that a job can choose from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// The papers': the widest attribute at its median.
    Widest(Widest),
    /// The attribute and boundary that lower the mean pairwise loss most.
    Gain,
}

impl Default for Cut {
    fn default() -> Self {
        Self::Widest(Widest::default())
    }
}

impl Split for Cut {
    fn cut_rows(&self, table: &Table, rows: &mut [u32], least: usize) -> Option<usize> {
        match self {
            Self::Widest(widest) => widest.cut_rows(table, rows, least),
            Self::Gain => Gain::new().cut_rows(table, rows, least),
        }
    }
}

/// Cuts all rows of a table into subspaces of at least `least` rows. Returns the rows, subspace after subspace, and
/// where each subspace ends.
pub fn cut_subspaces(table: &Table, split: &dyn Split, least: usize) -> (Vec<u32>, Vec<usize>) {
    subspaces_of(table, (0..table.rows() as u32).collect(), split, least)
}

/// Cuts some rows of a table into subspaces, as [`cut_subspaces`] does with all of them.
pub fn subspaces_of(table: &Table, mut rows: Vec<u32>, split: &dyn Split, least: usize) -> (Vec<u32>, Vec<usize>) {
    let mut ends = Vec::new();
    // Depth first, left before right, so that subspaces stand in the order of the tree.
    let mut open = vec![(0, rows.len())];
    while let Some((start, end)) = open.pop() {
        match split.cut_rows(table, &mut rows[start..end], least.max(1)) {
            Some(left) => open.extend([(start + left, end), (start, start + left)]),
            None => ends.push(end),
        }
    }
    (rows, ends)
}
