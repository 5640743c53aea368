//! `slicing`: halve buckets as long as nobody's sensitive value becomes more likely than one in l, given the slices that are
//! published (Li et al.; Toth, algorithms 3 and 4).
//!
//! The check looks at all rows and all buckets for every cut, so the cell is cut into subspaces of `s` rows first, each
//! looked at as if it were all.

use std::sync::Arc;

use super::kl_redinfo::check_setting;
use crate::grouping::cutting::S;
use crate::grouping::entry::{Entry, Form};
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::model::{Grouping, Table};
use crate::permutation::tuples::TuplePartition;
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("slicing", "Halves as long as sliced groups leave sensitive values unlikely enough.", |setting| {
        let column = setting.bucket_column();
        Arc::new(Slicing {
            l: setting.max_distinct(column.as_deref()) as u32,
            column,
            slices: setting.slices.clone(),
            s: setting.options.count(&S).unwrap_or(DEFAULT_S),
        })
    })
    .options(&[S])
    .form(Form::Slice)
    .check(check_setting);

/// Rows of a subspace when the job does not say.
const DEFAULT_S: usize = 128;

/// Slicing's partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slicing {
    /// The sensitive column; the first of the table when there is no name.
    pub column: Option<String>,
    /// No value of it may be more likely than one in this many.
    pub l: u32,
    /// Quasi-identifiers of every slice; those of the last are with the sensitive column. Each alone when there are none.
    pub slices: Vec<Vec<usize>>,
    /// Rows of a subspace.
    pub s: usize,
}

impl Method for Slicing {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let slices = match self.slices.as_slice() {
            [] => (0..cell.axes.len()).map(|axis| vec![axis]).chain([Vec::new()]).collect(),
            slices => slices.to_vec(),
        };
        let named = |name: &String| cell.sensitive.iter().position(|sensitive| sensitive.name == *name);
        let sensitive = self.column.as_ref().and_then(named).unwrap_or(0);
        let l = if cell.sensitive.is_empty() { 1 } else { self.l };
        let split = Widest::default();
        let partition = TuplePartition { slices, l, split, least: rules.k, sensitive };
        let mut grouping = Grouping::with_capacity(cell.rows());
        in_subspaces(cell, &Widest::default(), self.s.max(rules.k), |rows| {
            partition.partition_rows(cell, rows.to_vec()).iter().for_each(|bucket| grouping.push(bucket));
        });
        grouping
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn toth_algorithm_3_keeps_every_tuple_diverse() {
        let table = fixtures::table_3_1();
        let slicing = |l| Slicing { column: None, l, slices: Vec::new(), s: 64 };
        let found = slicing(2).group(&table, &Rules::k(2), 0);
        assert!(found.left_over.is_empty() && found.iter().all(|bucket| bucket.len() >= 2));
        assert!(found.len() <= slicing(1).group(&table, &Rules::k(2), 0).len());
        let buckets: Vec<&[u32]> = found.iter().collect();
        let slices = (0..table.axes.len()).map(|axis| vec![axis]).chain([Vec::new()]).collect();
        let check = TuplePartition { slices, l: 2, split: Widest::default(), least: 2, sensitive: 0 };
        assert!(check.is_diverse(&table, &buckets) || found.len() == 1);
    }
}
