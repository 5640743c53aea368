//! Grouping methods: one file each, behind one trait.
//!
//! A method sees one cell. It splits the cell into subspaces as it likes, clusters them, and returns groups and
//! left-overs; [`settle()`] then makes every group meet every rule, whatever the method did.

pub mod anatomy;
pub mod apart;
pub mod auto;
pub mod buckets;
#[cfg(test)]
mod by_column;
pub mod catalogue;
pub mod combined;
pub mod density;
pub mod distortion;
pub mod full_domain;
pub mod g_anatomy;
pub mod k_assemble;
pub mod k_members;
pub mod k_members_p;
pub mod kl_redinfo;
pub mod l_mondrian;
pub mod mondrian;
pub mod mpalm;
pub mod options;
pub mod pair_enum;
pub mod settle;
pub mod slicing;
pub mod spalm;
mod ties;
pub mod toc;
pub mod top_down;
pub mod tune;
pub mod upc;

mod cutting;

#[cfg(test)]
pub(crate) mod fixtures;
mod placing;
mod reach;

use std::fmt;

use crate::domain::{Axis, Grouping, Table};
use crate::partition::{Split, subspaces};
use crate::privacy::Rules;

pub use settle::settle;

/// A way to group the rows of a cell.
pub trait Method: fmt::Debug + Send + Sync {
    /// Name as it stands in the job file.
    fn name(&self) -> &'static str;

    /// Groups the rows of one cell. `seed` is derived from the job's seed and the cell, so the result depends on the
    /// content of the cell alone. Rows come in canonical (random) order.
    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping;

    /// Why a table with such quasi-identifiers would be too much work, and what to do, when the method can tell.
    fn too_much(&self, _axes: &[Axis]) -> Option<String> {
        None
    }
}

/// Cuts a cell into subspaces of at least `least` rows and hands out the rows of each, in the order of the tree.
fn in_subspaces(cell: &Table, split: &dyn Split, least: usize, mut each: impl FnMut(&[u32])) {
    let (rows, ends) = subspaces(cell, split, least);
    let mut start = 0;
    for end in ends {
        each(&rows[start..end]);
        start = end;
    }
}
