//! Grouping methods: one file each, behind one trait.
//!
//! A method sees one cell. It splits the cell into subspaces as it likes, clusters them, and returns groups and
//! left-overs; [`enforce_rules`] then makes every group meet every rule, whatever the method did.

pub mod apart;
pub mod buckets;
pub mod cancel;
pub mod distortion;
pub mod enforce;
pub mod entry;
pub mod mpalm;
pub mod options;
pub mod split;
pub(crate) mod ties;

pub(crate) mod cutting;

mod every_way;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod placing;
pub(crate) mod reach;
pub(crate) mod repair;

use std::fmt;

use crate::grouping::split::{Split, cut_subspaces};
use crate::model::{Axis, Grouping, Table};
use crate::privacy::Rules;

pub use enforce::enforce_rules;

/// A way to group the rows of a cell.
pub trait Method: fmt::Debug + Send + Sync {
    /// Name in the job file.
    fn name(&self) -> &'static str;

    /// Groups the rows of one cell. `seed` is derived from the job's seed and the cell, so the result depends on the
    /// content of the cell alone. Rows come in canonical (random) order.
    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping;

    /// Explains why a table with these quasi-identifiers would be too much work and what to do, if the method can tell.
    fn too_much(&self, _axes: &[Axis]) -> Option<String> {
        None
    }
}

/// Cuts a cell into subspaces of at least `least` rows and hands out the rows of each, in the order of the tree.
pub(crate) fn in_subspaces(cell: &Table, split: &dyn Split, least: usize, mut each: impl FnMut(&[u32])) {
    let (rows, ends) = cut_subspaces(cell, split, least);
    let mut start = 0;
    for end in ends {
        cancel::checkpoint();
        each(&rows[start..end]);
        start = end;
    }
}
