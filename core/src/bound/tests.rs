//! The bound against all partitions of small tables, and the audit against all groups.

use proptest::prelude::*;

use super::*;
use crate::auto::Auto;
use crate::grouping::Method;
use crate::model::{Axis, NULL_ON_LINE, Shape, Tree};
use crate::privacy::Rules;

/// A range that may be null, a hierarchy of three levels, a set.
fn axes() -> Vec<Axis> {
    let tree = Tree::new(7, [(0, 1, 0.2), (2, 3, 0.2), (0, 3, 0.5), (4, 6, 0.4)]);
    let mut line = Axis::new("line", Shape::Line { span: 20 });
    line.null = Some(NULL_ON_LINE);
    vec![line, Axis::new("tree", Shape::Tree(tree)), Axis::new("set", Shape::Set { values: 4 })]
}

fn tables(rows: std::ops::Range<usize>) -> impl Strategy<Value = Table> {
    let age = prop_oneof![9 => 0_u16..=20, 1 => Just(NULL_ON_LINE)];
    prop::collection::vec((age, 0_u16..7, 0_u16..4), rows)
        .prop_map(|rows| Table::new(axes(), rows.into_iter().flat_map(|(age, job, ward)| [age, job, ward]).collect()))
}

/// The least mean loss of all partitions into groups of at least k, tried one by one.
fn optimum(table: &Table, k: usize) -> f64 {
    fn place(table: &Table, k: usize, row: u32, groups: &mut Vec<Vec<u32>>, best: &mut f64) {
        if row as usize == table.rows() {
            if groups.iter().all(|group| group.len() >= k) {
                let losses = groups.iter().map(|group| group.len() as f64 * table.cover(group).loss(&table.axes));
                *best = best.min(losses.sum::<f64>() / table.rows() as f64);
            }
            return;
        }
        for group in 0..=groups.len() {
            if group == groups.len() {
                groups.push(vec![row]);
            } else {
                groups[group].push(row);
            }
            place(table, k, row + 1, groups, best);
            groups[group].pop();
            if groups[group].is_empty() {
                groups.pop();
            }
        }
    }
    let mut best = f64::INFINITY;
    place(table, k, 0, &mut Vec::new(), &mut best);
    best
}

fn grouping(table: &Table, k: usize) -> Grouping {
    Auto::default().group(table, &Rules::k(k), 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_partition_loses_less_than_the_bound(table in tables(2..9), k in 2_usize..5) {
        prop_assume!(table.rows() >= k);
        let bound = lower_bound(&table, k, &grouping(&table, k), 30).unwrap();
        let optimum = optimum(&table, k);
        prop_assert!(bound.loss <= optimum + 1e-9, "{} > {optimum}", bound.loss);
    }

    /// Of prices at random the audit says what trying every group says: with ranges and hierarchies it is exact.
    #[test]
    fn the_audit_is_right(table in tables(3..8), k in 2_usize..4, prices in prop::collection::vec(0.0..0.5_f64, 8)) {
        let codes = (0..table.rows() as u32).flat_map(|row| table.row(row)[..2].to_vec()).collect();
        let table = Table::new(axes()[..2].to_vec(), codes);
        let prices = &prices[..table.rows()];
        let fair = (1_u32..1 << table.rows()).all(|chosen| {
            let rows: Vec<u32> = (0..table.rows() as u32).filter(|row| chosen >> row & 1 == 1).collect();
            let asked: f64 = rows.iter().map(|&row| prices[row as usize]).sum();
            rows.len() < k || asked <= rows.len() as f64 * table.cover(&rows).loss(&table.axes) + 1e-12
        });
        let cuts = vec![(0..=20).collect(), Vec::new()];
        prop_assert_eq!(audit::are_fair(&table, k, prices, &cuts), fair);
    }
}

/// With many values, ranges are cut into blocks: the bound is lower, and still below what a good method loses.
#[test]
fn wide_ranges_are_cut_into_blocks() {
    let mut rng = fastrand::Rng::with_seed(3);
    let codes = (0..2 * 600).map(|_| rng.u16(0..=50_000)).collect();
    let axes = ["x", "y"].map(|name| Axis::new(name, Shape::Line { span: 50_000 }));
    let table = Table::new(axes.to_vec(), codes);
    let grouping = grouping(&table, 5);
    let losses = grouping.iter().map(|group| group.len() as f64 * table.cover(group).loss(&table.axes));
    let lost = losses.sum::<f64>() / table.rows() as f64;
    let bound = lower_bound(&table, 5, &grouping, 5).unwrap();
    assert!(bound.loss > 0.4 * lost && bound.loss <= lost, "{} of {lost}", bound.loss);
}

#[test]
fn rows_that_are_alike_lose_nothing() {
    let table = Table::new(axes(), [3, 2, 1].repeat(12));
    assert_eq!(lower_bound(&table, 5, &grouping(&table, 5), 3).unwrap().loss, 0.0);
}
