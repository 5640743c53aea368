//! `g-anatomy`: Anatomy's buckets, left-overs in turn, each bucket generalised (Tinabo's competitor, algorithm 4).
//!
//! It is [`kl-redinfo`](super::kl_redinfo) without its modifications but for cells: rows as they come, left-over row i in
//! bucket i modulo the number of buckets. The thesis' lines 16 to 18 publish only buckets that need no generalisation;
//! here all are. (The one printed result of it generalises a column that was equal already; the algorithm does not.)

use std::sync::Arc;

use super::kl_redinfo::{Incorporation, KlRedInfo, check_setting};
use crate::grouping::Method;
use crate::grouping::buckets::Ties;
use crate::grouping::entry::Entry;
use crate::model::{Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("g-anatomy", "Buckets of different sensitive values as they come, generalised.", |setting| {
        let column = setting.bucket_column();
        Arc::new(GAnatomy { l: setting.max_distinct(column.as_deref()), column })
    })
    .check(check_setting)
    .of_buckets();

/// Anatomy with generalised buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GAnatomy {
    /// The sensitive column; the first of the table when there is no name.
    pub column: Option<String>,
    /// Fewest different sensitive values of a group.
    pub l: usize,
}

impl Method for GAnatomy {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        let all = KlRedInfo::new(self.column.clone(), self.l);
        KlRedInfo { sort: false, incorporation: Incorporation::Sequential, ties: Ties::Place, ..all }
            .group(cell, rules, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures::tinabo_walkthrough;

    #[test]
    fn left_over_rows_go_to_the_buckets_in_turn() {
        let table = tinabo_walkthrough();
        let grouping = GAnatomy { column: None, l: 2 }.group(&table, &Rules::k(2), 0);
        let sizes: Vec<usize> = grouping.iter().map(<[u32]>::len).collect();
        assert_eq!((sizes, grouping.left_over.len()), (vec![3, 2, 2, 2], 0));
    }
}
