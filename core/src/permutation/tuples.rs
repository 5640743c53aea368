//! How slicing partitions rows (Li et al.; Toth, algorithms 3 and 4): halve buckets as long as every tuple of the whole
//! table stays l-diverse.
//!
//! A tuple fits a bucket with the product, over the slices, of the share of the bucket's rows that agree with it there (in
//! the slice that holds the sensitive column, on its other columns). Weighted so over all buckets, no sensitive value may
//! be more likely than 1/l.
//!
//! The printed check rejects a chance of exactly 1/l, which the definition allows; we follow the definition.

use std::collections::{HashMap, VecDeque};

use crate::grouping::split::Split;
use crate::grouping::split::widest::Widest;
use crate::model::Table;
use crate::privacy::is_within_bound;

/// Slicing's partition of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuplePartition {
    /// Quasi-identifiers of every slice; those of the last are with the sensitive column.
    pub slices: Vec<Vec<usize>>,
    /// No sensitive value may be more likely than one in this many.
    pub l: u32,
    /// How buckets are halved.
    pub split: Widest,
    /// Fewest rows of a bucket.
    pub least: usize,
    /// Place of the sensitive column to protect.
    pub sensitive: usize,
}

/// What one slice of a bucket holds: rows by their values, and of the last slice by their sensitive value too.
type Held = HashMap<Vec<u16>, (u64, HashMap<u32, u64>)>;

impl TuplePartition {
    /// Buckets of some rows of a table, looked at as if they were all.
    pub fn partition_rows(&self, table: &Table, rows: Vec<u32>) -> Vec<Vec<u32>> {
        let mut open: VecDeque<Vec<u32>> = VecDeque::from([rows]);
        let mut done: Vec<Vec<u32>> = Vec::new();
        while let Some(mut bucket) = open.pop_front() {
            if let Some(left) = self.split.cut_rows(table, &mut bucket, self.least.max(1)) {
                let halves = [bucket[..left].to_vec(), bucket[left..].to_vec()];
                let others = open.iter().chain(&done).map(Vec::as_slice);
                let all: Vec<&[u32]> = halves.iter().map(Vec::as_slice).chain(others).collect();
                if self.is_diverse(table, &all) {
                    open.extend(halves);
                    continue;
                }
            }
            done.push(bucket);
        }
        done.retain(|bucket| !bucket.is_empty());
        done
    }

    /// Whether no tuple's sensitive value is too likely, given all buckets.
    pub fn is_diverse(&self, table: &Table, buckets: &[&[u32]]) -> bool {
        if self.l <= 1 {
            return true;
        }
        let held: Vec<Vec<Held>> = buckets.iter().map(|rows| self.held_tuples(table, rows)).collect();
        let mut tuples: Vec<&[u16]> = buckets.iter().flat_map(|rows| rows.iter()).map(|&row| table.row(row)).collect();
        tuples.sort_unstable();
        tuples.dedup();
        tuples.into_iter().all(|tuple| {
            let mut fit = 0.0;
            let mut likely: HashMap<u32, f64> = HashMap::new();
            for (bucket, rows) in held.iter().zip(buckets) {
                let mut share = 1.0;
                let mut sensitive = None;
                for (slice, held) in self.slices.iter().zip(bucket) {
                    let Some((count, values)) = held.get(&pick_columns(tuple, slice)) else {
                        share = 0.0;
                        break;
                    };
                    share *= *count as f64 / rows.len() as f64;
                    sensitive = Some((*count, values));
                }
                let (true, Some((count, values))) = (share > 0.0, sensitive) else { continue };
                fit += share;
                for (&value, &with) in values {
                    *likely.entry(value).or_default() += share * with as f64 / count as f64;
                }
            }
            likely.values().all(|&chance| is_within_bound(chance / fit, 1.0 / f64::from(self.l)))
        })
    }

    fn held_tuples(&self, table: &Table, rows: &[u32]) -> Vec<Held> {
        let last = self.slices.len().saturating_sub(1);
        let slice = |(number, slice): (usize, &Vec<usize>)| {
            let mut held = Held::new();
            for &row in rows {
                let entry = held.entry(pick_columns(table.row(row), slice)).or_default();
                entry.0 += 1;
                if let (true, Some(sensitive)) = (number == last, table.sensitive.get(self.sensitive)) {
                    *entry.1.entry(sensitive.codes[row as usize]).or_default() += 1;
                }
            }
            held
        };
        self.slices.iter().enumerate().map(slice).collect()
    }
}

fn pick_columns(row: &[u16], slice: &[usize]) -> Vec<u16> {
    slice.iter().map(|&column| row[column]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Sensitive, SensitiveShape, Shape};

    fn table(rows: &[(u16, u16, u32)]) -> Table {
        let axes = [Axis::new("zip", Shape::Line { span: 9 }), Axis::new("age", Shape::Line { span: 9 })];
        let mut table = Table::new(axes, rows.iter().flat_map(|row| [row.0, row.1]).collect());
        table.sensitive = vec![Sensitive {
            name: "s".into(),
            codes: rows.iter().map(|row| row.2).collect(),
            shape: SensitiveShape::Set { values: 4 },
            null: None,
            ranges: Vec::new(),
            shares: None,
        }];
        table
    }

    fn partition(l: u32) -> TuplePartition {
        TuplePartition { slices: vec![vec![0], vec![1]], l, split: Widest::default(), least: 1, sensitive: 0 }
    }

    #[test]
    fn a_chance_of_exactly_one_in_l_is_allowed() {
        let even = table(&[(0, 0, 0), (1, 0, 1), (8, 9, 0), (9, 9, 1)]);
        let buckets = partition(2).partition_rows(&even, (0..4).collect());
        assert_eq!(buckets.len(), 2);
        assert!(buckets.iter().all(|bucket| bucket.len() == 2));
        assert_eq!(
            partition(3).partition_rows(&even, (0..4).collect()).len(),
            1,
            "not even the whole is 3-diverse, so nothing is cut"
        );
    }

    #[test]
    fn chances_by_hand() {
        // Tuple (0, 5) fits the first bucket by 1/2 * 1 and the second not: value 0 with 1/2, value 1 with 1/2.
        let rows = table(&[(0, 5, 0), (1, 5, 1), (2, 6, 2), (3, 6, 2)]);
        assert!(partition(1).is_diverse(&rows, &[&[0, 1], &[2, 3]]));
        assert!(!partition(2).is_diverse(&rows, &[&[0, 1], &[2, 3]]), "everybody of the second bucket has value 2");
        assert!(partition(2).is_diverse(&table(&[(0, 5, 0), (1, 5, 1)]), &[&[0, 1]]));
    }

    #[test]
    fn identical_rows_are_halved_by_rank_only() {
        let same = table(&[(4, 4, 0), (4, 4, 1), (4, 4, 0), (4, 4, 1)]);
        let buckets = partition(2).partition_rows(&same, (0..4).collect());
        assert!(partition(2).is_diverse(&same, &buckets.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    }
}
