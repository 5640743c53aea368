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
use std::sync::Arc;

use crate::grouping::split::{Split, cut_subspaces};
use crate::measure::placement::BuiltGroups;
use crate::model::{Axis, Grouping, Table};
use crate::privacy::{Rule, Rules};

pub use enforce::enforce_rules;

/// A way to group the rows of a cell.
pub trait Method: fmt::Debug + Send + Sync {
    /// Name in the job file.
    fn name(&self) -> &'static str;

    /// Groups the rows of one cell. `seed` is derived from the job's seed and the cell, so the result depends on the
    /// content of the cell alone. Rows come in canonical (random) order.
    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping;

    /// Rules of the method's own, which repair keeps beside those of the policy.
    fn own_rules(&self, _cell: &Table) -> Vec<Arc<dyn Rule>> {
        Vec::new()
    }

    /// Explains why a table with these quasi-identifiers would be too much work and what to do, if the method can tell.
    fn too_much(&self, _axes: &[Axis]) -> Option<String> {
        None
    }
}

/// Groups the rows of one cell and makes the groups meet the rules, those of the policy and the method's own. Also returns
/// the groups as the method had built them.
pub fn group_rows(method: &dyn Method, cell: &Table, rules: &Rules, seed: u64) -> (Grouping, BuiltGroups) {
    let grouping = method.group(cell, rules, seed);
    let built = BuiltGroups::new(&grouping, cell.rows());
    let own = method.own_rules(cell);
    if own.is_empty() {
        return (enforce_rules(cell, grouping, rules), built);
    }
    let others = rules.others.iter().cloned().chain(own).collect();
    (enforce_rules(cell, grouping, &Rules { others, ..rules.clone() }), built)
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
