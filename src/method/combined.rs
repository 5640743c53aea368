//! `combined`: partition, then per bucket raise as little as it takes that the *permuted* bucket has delta-presence (Toth,
//! algorithm 6).
//!
//! 1. A method partitions the public rows into buckets.
//! 2. For every bucket the nodes of its lattice are tried, ascending by the sum of levels, then from the first attribute
//!    on: raise the original values to the node, and ask [`posterior`] what a reader of the permuted columns would
//!    believe of everybody in the bucket.
//! 3. The first node at which everybody is within the bounds is published, each column permuted on its own.
//!
//! No node is skipped because another passed or failed: raising a column of a permuted bucket can break the bounds that
//! held before. The quick test by single values comes first; where counting is too much work the node is taken to fail.
//! Levels at which a bucket has one value per attribute are its top: there the chance of all is members / rows. A bucket
//! that fails at its top fails for good, and [`Failure`] says what then.

use super::Method;
use crate::attack::{Bounds, Bucket, posterior};
use crate::domain::{Levels, Table, lattice};
use crate::privacy::Rules;

/// What happens to a bucket that no node mends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failure {
    /// It stays with its neighbour in the order of the partition, and both are tried as one.
    #[default]
    Merge,
    /// It is left out.
    Suppress,
}

/// A bucket with the node that it is published at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its public rows.
    pub rows: Vec<u32>,
    /// Level per axis.
    pub node: Vec<u8>,
}

/// What comes of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Combination {
    /// Buckets within the bounds.
    pub buckets: Vec<Published>,
    /// Public rows of buckets that no node mends.
    pub failed: Vec<u32>,
}

/// Partition, raise, permute.
#[derive(Debug)]
pub struct Combined<'a> {
    /// What everybody's chance must lie between.
    pub bounds: Bounds,
    /// How rows are partitioned.
    pub partition: &'a dyn Method,
    /// What happens to buckets that no node mends.
    pub failure: Failure,
    /// States that the count of one bucket may hold.
    pub budget: usize,
}

impl Combined<'_> {
    /// Buckets and nodes for a table; `rules` are those of the partition.
    pub fn publish(&self, table: &Table, rules: &Rules) -> Combination {
        let levels: Vec<Levels> = table.axes.iter().map(Levels::of).collect();
        let partition = self.partition.group(table, rules, 0);
        let mut found = Combination { failed: partition.left_over.clone(), ..Combination::default() };
        let mut carried: Vec<u32> = Vec::new();
        for rows in partition.iter() {
            let mut rows = [std::mem::take(&mut carried).as_slice(), rows].concat();
            rows.sort_unstable();
            match (self.node(table, &levels, &rows), self.failure) {
                (Some(node), _) => found.buckets.push(Published { rows, node }),
                (None, Failure::Merge) => carried = rows,
                (None, Failure::Suppress) => found.failed.extend(rows),
            }
        }
        // What is carried beyond the last bucket goes back into those before, from the last on.
        while !carried.is_empty() {
            let Some(last) = found.buckets.pop() else {
                found.failed.append(&mut carried);
                break;
            };
            carried.extend(last.rows);
            carried.sort_unstable();
            if let Some(node) = self.node(table, &levels, &carried) {
                found.buckets.push(Published { rows: std::mem::take(&mut carried), node });
            }
        }
        found
    }

    /// The first node at which a bucket is within the bounds.
    pub fn node(&self, table: &Table, levels: &[Levels], rows: &[u32]) -> Option<Vec<u8>> {
        lattice(&top(table, levels, rows)).into_iter().find(|node| self.is_present(table, levels, rows, node))
    }

    fn is_present(&self, table: &Table, levels: &[Levels], rows: &[u32], node: &[u8]) -> bool {
        let bucket = permuted(table, levels, rows, node);
        !bucket.surely_breaks(&self.bounds)
            && posterior(&bucket, self.budget).is_some_and(|found| found.within(&self.bounds))
    }

    /// The smallest k, up to `most`, at which every bucket has a node; none when there is none.
    pub fn least_k(&self, table: &Table, most: usize) -> Option<(usize, Combination)> {
        let strict = Combined { bounds: self.bounds.clone(), failure: Failure::Suppress, ..*self };
        (1..=most).find_map(|k| {
            let found = strict.publish(table, &Rules::k(k));
            found.failed.is_empty().then_some((k, found))
        })
    }
}

/// The lowest levels at which a bucket has one value per attribute.
fn top(table: &Table, levels: &[Levels], rows: &[u32]) -> Vec<u8> {
    let single = |axis: usize, level: u8| {
        let mut raised = rows.iter().map(|&row| levels[axis].raise(table.row(row)[axis], level));
        let first = raised.next();
        raised.all(|value| Some(value) == first)
    };
    (0..levels.len())
        .map(|axis| (0..levels[axis].height()).find(|&level| single(axis, level)).unwrap_or(levels[axis].height()))
        .collect()
}

/// A bucket as it is read when its rows are raised to a node and every column is permuted on its own.
pub fn permuted(table: &Table, levels: &[Levels], rows: &[u32], node: &[u8]) -> Bucket {
    let raised = |row: &u32| -> Vec<u32> {
        table
            .row(*row)
            .iter()
            .zip(levels)
            .zip(node)
            .map(|((&code, levels), &level)| levels.raise(code, level))
            .collect()
    };
    let public: Vec<Vec<u32>> = rows.iter().map(raised).collect();
    let released: Vec<Vec<u32>> = rows.iter().filter(|&&row| table.is_member(row)).map(raised).collect();
    Bucket::new(&public, &released)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attack::worlds::enumerate;
    use crate::attack::{BUDGET, Share};
    use crate::domain::{Axis, Shape, Tree};
    use crate::method::fixtures;
    use crate::method::mondrian::Mondrian;
    use crate::method::mpalm::{Mpalm, Reading};

    const MONDRIAN: Mondrian = Mondrian { strict: true };

    fn combined(min: f64, max: f64) -> Combined<'static> {
        Combined { bounds: Bounds::new(min, max), partition: &MONDRIAN, failure: Failure::Suppress, budget: BUDGET }
    }

    #[test]
    fn toth_figs_5_2_to_5_4_publish_z1_a0() {
        let table = fixtures::p1_t1();
        let found = combined(0.1, 0.9).publish(&table, &Rules::k(4));
        assert_eq!(found.buckets, [Published { rows: (0..10).collect(), node: vec![1, 0] }]);
        assert!(found.failed.is_empty());
    }

    #[test]
    fn toth_figs_5_5_to_5_8_xor_publishes_both_columns() {
        let mut table = fixtures::xor();
        let found = combined(0.5, 0.5).publish(&table, &Rules::k(4));
        // Two members are fewer than k, so nothing is cut, and nothing is published by the partition itself.
        assert_eq!(found.buckets, [Published { rows: vec![0, 1, 2, 3], node: vec![0, 0] }]);
        // MPALM can publish one of them only: its buckets are smaller, 2² + 2² on public rows against 4².
        let mpalm = Mpalm { bounds: Bounds::new(0.5, 0.5), reading: Reading::Multiway };
        let rules =
            Rules { k: 1, others: vec![std::sync::Arc::new(crate::privacy::presence::Presence::new(0.5, 0.5))] };
        assert_eq!(mpalm.group(&table, &rules, 0).iter().map(|group| group.len().pow(2)).sum::<usize>(), 8);
        table.members = None;
        assert_eq!(combined(0.5, 0.5).publish(&table, &Rules::k(4)).failed.len(), 4, "nobody to hide among");
    }

    /// The bounds hold at the fine node and break at the coarser one.
    #[test]
    fn toth_presence_is_not_monotone_under_permutation() {
        let axes =
            [Axis::new("a", Shape::Tree(Tree::new(3, [(0, 1, 0.5)]))), Axis::new("b", Shape::Tree(Tree::new(2, [])))];
        let mut table = Table::new(axes, vec![2, 0, 0, 1, 2, 1, 1, 1, 0, 0]);
        table.members = Some(vec![false, false, true, false, true]);
        let levels: Vec<Levels> = table.axes.iter().map(Levels::of).collect();
        let at = |node: &[u8]| enumerate(&permuted(&table, &levels, &[0, 1, 2, 3, 4], node)).unwrap().1;
        let half = Share::from((1, 2));
        assert_eq!(at(&[0, 0]), [half.clone(), half.clone(), half.clone(), Share::none(), half]);
        let third = Share::from((1, 3));
        assert_eq!(at(&[1, 0]), [Share::from((2, 3)), third.clone(), third.clone(), third.clone(), third]);
        let both = combined(0.0, 0.5);
        assert!(both.is_present(&table, &levels, &[0, 1, 2, 3, 4], &[0, 0]));
        assert!(!both.is_present(&table, &levels, &[0, 1, 2, 3, 4], &[1, 0]));
    }

    proptest! {
        #[test]
        fn published_buckets_are_present_by_trying_every_subset(codes in prop::collection::vec(0..4_u16, 2..28), flags in any::<u16>(), merge in any::<bool>()) {
            let rows = codes.len() / 2;
            let axes = ["a", "b"].map(|name| Axis::new(name, Shape::Tree(Tree::new(4, [(0, 1, 0.5), (2, 3, 0.5)]))));
            let mut table = Table::new(axes, codes[..rows * 2].to_vec());
            table.members = Some((0..rows).map(|row| flags >> row & 1 == 1).collect());
            let failure = if merge { Failure::Merge } else { Failure::Suppress };
            let method = Combined { failure, ..combined(0.1, 0.8) };
            let found = method.publish(&table, &Rules::k(2));
            let levels: Vec<Levels> = table.axes.iter().map(Levels::of).collect();
            let mut all: Vec<u32> = found.failed.clone();
            for bucket in &found.buckets {
                let (_, shares) = enumerate(&permuted(&table, &levels, &bucket.rows, &bucket.node)).unwrap();
                prop_assert!(shares.iter().all(|share| method.bounds.allow(share)));
                all.extend(&bucket.rows);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows as u32).collect::<Vec<_>>());
            let whole = found.failed.len() == rows || found.failed.is_empty();
            prop_assert!(!merge || whole, "merging ends with all or nothing");
        }
    }

    #[test]
    fn the_least_k_is_found() {
        let table = fixtures::p1_t1();
        let (k, found) = combined(0.1, 0.9).least_k(&table, 10).unwrap();
        assert!(found.failed.is_empty() && !combined(0.1, 0.9).publish(&table, &Rules::k(k - 1)).failed.is_empty());
        assert_eq!(combined(0.1, 0.79).least_k(&table, 10), None);
    }
}
