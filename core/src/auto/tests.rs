//! The whole method on small tables of every kind, and its parts against plain versions of themselves.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::crowd::{Bounds, Crowd};
use super::grow::Grower;
use super::space::{LaneShape, Ruler, Space};
use super::*;
use crate::grouping::enforce_rules;
use crate::methods::k_members::KMembers;
use crate::methods::mondrian::Mondrian;
use crate::model::{Axis, Code, NULL_ON_LINE, Sensitive, SensitiveShape, Shape, Tree};
use crate::privacy::max_loss::MaxLoss;
use crate::privacy::range_diversity::RangeDiversity;
use crate::privacy::{Rule, RuleRecord};

/// At least two different values of the sensitive column.
#[derive(Debug)]
struct Diverse;

impl Rule for Diverse {
    fn record(&self) -> RuleRecord {
        RuleRecord::new("diverse")
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        group.histogram(&group.table.sensitive[0]).len() >= 2
    }
}

/// An axis of one of seven kinds.
pub(super) fn axis(kind: usize) -> Axis {
    let tree = || Tree::new(15, [(0, 6, 0.4), (0, 2, 0.1), (7, 14, 0.5), (9, 12, 0.2)]);
    let mut axis = Axis::new(
        format!("kind {kind}"),
        match kind {
            0 | 1 => Shape::Line { span: 60_000 },
            2 | 3 => Shape::Tree(tree()),
            4 | 5 => Shape::Set { values: 9 },
            _ => Shape::Line { span: 0 },
        },
    );
    axis.null = [None, Some(NULL_ON_LINE), None, Some(14), None, Some(8), None][kind];
    axis.weight = [1.0, 0.5, 1.0, 1.0, 2.0, 1.0, 1.0][kind];
    axis
}

/// Random codes: few different ones when `variety` is small.
pub(super) fn table(kinds: &[usize], rows: usize, variety: u16, seed: u64) -> Table {
    let mut rng = fastrand::Rng::with_seed(seed);
    let axes: Vec<Axis> = kinds.iter().map(|&kind| axis(kind)).collect();
    let mut codes = Vec::new();
    for _ in 0..rows {
        for axis in &axes {
            let value = rng.u16(0..variety).min(rng.u16(0..variety));
            codes.push(match (&axis.shape, axis.null) {
                (_, Some(null)) if rng.u8(0..10) == 0 => null,
                (Shape::Line { span: 0 }, _) => 0,
                (Shape::Line { .. }, _) => value.saturating_mul(600).min(60_000),
                (Shape::Tree(tree), _) => value % tree.codes() as Code,
                (Shape::Set { values }, _) => value % *values as Code,
            });
        }
    }
    Table::new(axes, codes)
}

fn kinds() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..7, 1..=12)
}

fn assert_covers_all(table: &Table, grouping: &Grouping, k: usize) {
    let mut seen: Vec<u32> = grouping.rows().iter().chain(&grouping.left_over).copied().collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..table.rows() as u32).collect::<Vec<_>>(), "every row is in one place");
    assert!(grouping.iter().all(|group| group.len() >= k), "every group is large enough");
}

fn loss(table: &Table, grouping: &Grouping) -> f64 {
    let sum: f64 = grouping.iter().map(|group| table.cover(group).loss(&table.axes) * group.len() as f64).sum();
    sum / table.rows() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_row_finds_a_group(
        kinds in kinds(), rows in 0usize..400, variety in 1u16..100, seed in any::<u64>(), k in 1usize..20,
        effort in 0usize..4,
    ) {
        let table = table(&kinds, rows, variety, seed);
        let method = Auto::new(Effort::ALL[effort]);
        let grouping = method.group(&table, &Rules::k(k), seed);
        assert_covers_all(&table, &grouping, k);
        prop_assert_eq!(grouping.left_over.is_empty(), rows == 0 || rows >= k);
        prop_assert_eq!(method.group(&table, &Rules::k(k), seed), grouping);
    }

    #[test]
    fn groups_meet_every_rule(
        kinds in kinds(), rows in 0usize..400, seed in any::<u64>(), k in 1usize..8, effort in 0usize..4,
        people in any::<bool>(),
    ) {
        let mut table = table(&kinds, rows, 20, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        table.sensitive.push(Sensitive {
            name: "disease".into(),
            codes: (0..rows).map(|_| rng.u32(0..12).min(rng.u32(0..12)).min(rng.u32(0..12))).collect(),
            shape: SensitiveShape::Set { values: 12 },
            null: None,
            ranges: Vec::new(),
            shares: None,
        });
        if people {
            table.persons = Some((0..rows).map(|_| rng.u32(0..1 + rows as u32 / 3)).collect());
        }
        let rules = Rules { k, others: vec![Arc::new(Diverse)] };
        let grouping = Auto::new(Effort::ALL[effort]).group(&table, &rules, seed);
        assert_covers_all(&table, &grouping, k);
        for group in grouping.iter() {
            prop_assert!(rules.are_met_by(&GroupView::new(&table, group)));
        }
        if rows > 40 * k && !people {
            prop_assert!(grouping.left_over.len() < rows / 10, "{} left over", grouping.left_over.len());
        }
    }

    #[test]
    fn growth_takes_the_cheapest_row(kinds in kinds(), rows in 1usize..150, seed in any::<u64>(), k in 1usize..12) {
        let table = table(&kinds, rows, 30, seed);
        let (ruler, space) = measured(&table);
        let rules = Rules::k(k);
        let mut groups = Vec::new();
        let everybody: Vec<u32> = (0..rows as u32).collect();
        Grower::default().grow_groups(&ruler, &space, &Judge::new(&table, &rules), &everybody, &[], |group| groups.push(group.to_vec()));
        let mut free: Vec<u32> = (0..rows as u32).collect();
        let mut expected = Vec::new();
        while free.len() >= k {
            let mut group = vec![free.swap_remove(0)];
            while group.len() < k {
                let with = |at: &usize| cost(&ruler, &space, group.iter().chain([&free[*at]]));
                let at = (0..free.len()).min_by_key(with).unwrap();
                group.push(free.swap_remove(at));
            }
            expected.push(group);
        }
        prop_assert_eq!(groups, expected);
    }

    #[test]
    fn scans_and_reliefs_tell_what_a_change_would_cost(kinds in kinds(), rows in 4usize..80, seed in any::<u64>()) {
        let table = table(&kinds, rows, 30, seed);
        let (ruler, space) = measured(&table);
        let mut crowd = Crowd::default();
        crowd.clear(&space, rows / 2);
        let all: Vec<u32> = (0..rows as u32).collect();
        let (pairs, last) = all.split_at(rows - 1);
        pairs.chunks(3).for_each(|group| crowd.push_group(&ruler, &space, group));
        crowd.scan_row(&ruler, &space, last[0]);
        for (g, group) in pairs.chunks(3).enumerate() {
            let before = cost(&ruler, &space, group.iter());
            prop_assert_eq!(crowd.cost[g], before);
            let with = cost(&ruler, &space, group.iter().chain(last));
            prop_assert_eq!(u32::from(crowd.extra[g]), with - before);
            crowd.compute_relief(&ruler, &space, g);
            for row in group {
                let without = cost(&ruler, &space, group.iter().filter(|other| *other != row));
                prop_assert_eq!(crowd.relief[*row as usize], before - without);
            }
        }
        let rise = |g: usize| u64::from(crowd.extra[g]) * (crowd.group_size(g) + 1) + u64::from(crowd.cost[g]);
        let cheapest = (0..crowd.len()).map(rise).min();
        prop_assert_eq!(crowd.cheapest_group(usize::MAX, 1, u64::MAX).map(|found| found.1), cheapest);
    }
}

pub(super) fn measured(table: &Table) -> (Ruler, Space) {
    let ruler = Ruler::new(&table.axes);
    let mut space = Space::default();
    space.load_rows(&ruler, table, &(0..table.rows() as u32).collect::<Vec<_>>(), |row| row);
    (ruler, space)
}

/// Cost of a group, worked out from nothing.
fn cost<'a>(ruler: &Ruler, space: &Space, rows: impl Iterator<Item = &'a u32> + Clone) -> u32 {
    let lanes = ruler.lanes.iter().enumerate();
    lanes
        .map(|(l, lane)| {
            let mut bounds = Bounds::EMPTY;
            rows.clone().for_each(|&row| match lane.shape {
                LaneShape::Set { .. } => bounds.add_bit(space.row_positions(row)[l]),
                _ => bounds.add_position(space.row_positions(row)[l]),
            });
            bounds.cost(&lane.shape)
        })
        .sum()
}

#[test]
fn more_effort_loses_less() {
    let table = table(&[0, 2, 0, 2, 2], 6000, 90, 5);
    let losses = Effort::ALL.map(|effort| loss(&table, &Auto::new(effort).group(&table, &Rules::k(5), 1)));
    assert!(
        losses[1] < losses[0] * 0.995 && losses[2] < losses[1] * 0.99 && losses[3] < losses[2] * 0.998,
        "{losses:?}"
    );
}

#[test]
fn identical_rows_are_grouped_in_linear_time() {
    let table = table(&[0, 2], 200_000, 1, 1);
    for effort in Effort::ALL {
        let grouping = Auto::new(effort).group(&table, &Rules::k(10), 1);
        assert_eq!((grouping.len(), loss(&table, &grouping)), (1, 0.0));
    }
}

#[test]
fn rows_that_no_boundary_divides_are_chopped() {
    // One value has all rows but a few hundred, and no tuple is heavy enough for the rules.
    let mut rng = fastrand::Rng::with_seed(3);
    let axes: Vec<Axis> = (0..20).map(|_| Axis::new("flag", Shape::Set { values: 2 })).collect();
    let table = Table::new(axes, (0..20 * 30_000).map(|_| u16::from(rng.u8(0..100) == 0)).collect());
    let ends = cut_parts(&table, &Gain::new(), 1024).1;
    assert!(ends.windows(2).all(|pair| (1024..=4096).contains(&(pair[1] - pair[0]))), "{ends:?}");
}

#[test]
fn heavy_tuples_stay_whole_and_take_in_strays() {
    // 900 rows in three tuples, and one row apart.
    let codes: Vec<Code> =
        (0..901u16).flat_map(|row| if row == 450 { [30_000, 9] } else { [row % 3, 2 * (row % 3)] }).collect();
    let table = Table::new(vec![axis(0), axis(2)], codes);
    let grouping = Auto::default().group(&table, &Rules::k(10), 1);
    assert_covers_all(&table, &grouping, 10);
    assert_eq!(grouping.iter().filter(|group| group.len() == 300).count(), 2);
    let lossy: usize =
        grouping.iter().filter(|group| table.cover(group).loss(&table.axes) > 0.0).map(<[u32]>::len).sum();
    assert!((10..20).contains(&lossy), "{lossy} rows pay for the stray");
}

#[test]
fn columns_of_nothing_but_null_cost_nothing() {
    let table = Table::new(vec![axis(1), axis(3), axis(5)], [NULL_ON_LINE, 14, 8].repeat(500));
    for effort in Effort::ALL {
        let grouping = Auto::new(effort).group(&table, &Rules::k(10), 1);
        assert_covers_all(&table, &grouping, 10);
        assert_eq!(loss(&table, &grouping), 0.0);
    }
}

#[test]
fn large_groups_are_not_grown_row_by_row() {
    // Trees only, k = 100: what growth cannot see.
    let table = table(&[2, 2, 3, 2], 6000, 15, 9);
    let rules = Rules::k(100);
    let judge = Judge::new(&table, &rules);
    let (ruler, space) = measured(&table);
    let total = |groups: &[Vec<u32>]| -> u64 {
        groups.iter().map(|group| u64::from(cost(&ruler, &space, group.iter())) * group.len() as u64).sum()
    };
    let mut grown = Vec::new();
    let everybody: Vec<u32> = (0..table.rows() as u32).collect();
    Grower::default().grow_groups(&ruler, &space, &judge, &everybody, &[], |group| grown.push(group.to_vec()));
    let covered = Auto::new(Effort::Fast).group(&table, &rules, 1);
    let covered: Vec<Vec<u32>> = covered.iter().map(<[u32]>::to_vec).collect();
    assert!(total(&covered) * 10 < total(&grown) * 9, "{} of {}", total(&covered), total(&grown));
}

#[test]
fn efforts_have_names() {
    for effort in Effort::ALL {
        assert_eq!(Effort::from_name(effort.name()), Some(effort));
    }
    assert_eq!(Effort::from_name("heroic"), None);
}

/// People of few ages and places, so that many groups are published alike. In one age of five, half of all earn nothing.
fn earners(rows: usize, seed: u64) -> Table {
    let mut rng = fastrand::Rng::with_seed(seed);
    let axes = [Axis::new("age", Shape::Line { span: 9 }), Axis::new("place", Shape::Set { values: 6 })];
    let (mut codes, mut pay) = (Vec::with_capacity(2 * rows), Vec::with_capacity(rows));
    for _ in 0..rows {
        let age = rng.u16(0..10);
        codes.extend([age, rng.u16(0..6)]);
        pay.push(if age < 2 && rng.bool() { 0 } else { rng.u32(0..80) });
    }
    let mut table = Table::new(axes, codes);
    table.sensitive.push(Sensitive {
        name: "pay".into(),
        codes: pay,
        shape: SensitiveShape::Number { at: (0..80).map(f64::from).collect(), min: 0.0, max: 79.0 },
        null: None,
        ranges: (0_u32..80).map(|pay| (pay.saturating_sub(3), (pay + 3).min(79))).collect(),
        shares: None,
    });
    table
}

/// Rows that a release leaves out: those that no group takes, and those of groups that break a rule as one class.
fn left_out(table: &Table, rules: &Rules, method: &dyn Method) -> usize {
    let settled = enforce_rules(table, method.group(table, rules, 3), rules);
    let mut classes: HashMap<Vec<Code>, Vec<u32>> = HashMap::new();
    for group in settled.iter() {
        let cover = table.cover(group);
        // Neither axis has values for which other codes are published.
        let mut seen = vec![cover.lo[0], cover.hi[0]];
        seen.extend_from_slice(cover.codes(1));
        classes.entry(seen).or_default().extend_from_slice(group);
    }
    let broken = classes.values().filter(|rows| !rules.are_met_by(&GroupView::new(table, rows)));
    settled.left_over.len() + broken.map(Vec::len).sum::<usize>()
}

#[test]
fn bounds_on_what_is_disclosed_and_lost_leave_out_no_more_than_other_methods() {
    let table = earners(6_000, 1);
    let ranges = RangeDiversity { column: "pay".into(), bound: 0.3 };
    let rules = Rules { k: 5, others: vec![Arc::new(MaxLoss { bound: 0.6 }), Arc::new(ranges)] };
    let others: [&dyn Method; 3] = [&Mondrian { strict: true }, &Mondrian { strict: false }, &KMembers::default()];
    let least = others.map(|other| left_out(&table, &rules, other)).into_iter().min().unwrap();
    for effort in [Effort::Fast, Effort::Balanced, Effort::Thorough] {
        let out = left_out(&table, &rules, &Auto::new(effort));
        assert!(out <= least, "{effort:?} leaves out {out} rows, another method {least}");
    }
}
