//! Boxes, covers and box splits against plain versions of themselves.

use proptest::prelude::*;

use super::branch::Scratch;
use super::chain::{Chains, Side};
use super::cover::{Coverer, Scene, Seeds};
use super::halve::{Cut, Halver};
use super::lattice::Finder;
use super::pool::Pool;
use super::space::{Ruler, Space};
use super::tests::{measured, table};
use super::*;

const ALL_SEEDS: Seeds = Seeds { share: 0.0, least: usize::MAX, boxes: usize::MAX, noise: 0.0 };

/// All boxes around a seed: sides, cost and free rows, worked out one by one.
fn all_boxes(
    ruler: &Ruler,
    pool: &Pool,
    range: &[(u16, u16)],
    seed: u32,
    free: &[u32],
) -> Vec<(Vec<Side>, u32, usize)> {
    let mut chains = Chains::default();
    chains.build_chains(ruler, pool.tuple_positions(seed), range, u32::MAX);
    let mut boxes: Vec<(Vec<Side>, u32)> = vec![(Vec::new(), 0)];
    for lane in 0..chains.lanes() {
        let widened = boxes.iter().flat_map(|(sides, cost)| {
            let wider =
                move |level: &super::chain::Level| ([&sides[..], &[level.side]].concat(), cost + u32::from(level.cost));
            chains.lane_levels(lane).iter().map(wider)
        });
        boxes = widened.collect();
    }
    let inside = |sides: &[Side], tuple: u32| {
        pool.tuple_positions(tuple).iter().zip(sides).all(|(&at, side)| side.contains_position(at))
    };
    let rows =
        |sides: &[Side]| free.iter().filter(|&&tuple| inside(sides, tuple)).map(|&t| pool.rows_of(t).len()).sum();
    boxes
        .into_iter()
        .map(|(sides, cost)| (rows(&sides), sides, cost))
        .map(|(rows, sides, cost)| (sides, cost, rows))
        .collect()
}

/// Axes of few kinds, so that boxes can be listed: trees with and without null, lines, sets.
fn kinds() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 2usize..4, 1 => 0usize..2, 1 => 4usize..6], 1..=3)
}

fn loaded(table: &Table) -> (Ruler, Space, Pool) {
    let (ruler, space) = measured(table);
    let mut pool = Pool::default();
    pool.load_rows(&ruler, &space, &(0..table.rows() as u32).collect::<Vec<_>>());
    (ruler, space, pool)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_best_box_is_the_cheapest_of_all(
        kinds in kinds(), rows in 1usize..120, seed in any::<u64>(), need in 1usize..40, beta in 1u32..20_000,
    ) {
        let table = table(&kinds, rows, 16, seed);
        let (ruler, _, mut pool) = loaded(&table);
        // Some tuples are taken already.
        let mut rng = fastrand::Rng::with_seed(seed);
        let taken: Vec<u32> = (0..pool.len() as u32).filter(|_| rng.u8(0..5) == 0).collect();
        taken.iter().for_each(|&tuple| pool.take_tuple(tuple));
        pool.drop_taken();
        let free: Vec<u32> = (0..pool.len() as u32).filter(|&tuple| pool.is_free(tuple)).collect();
        let mut finder = Finder::default();
        finder.largest = usize::MAX;
        let range = pool.range.clone();
        for &seed in free.iter().take(8) {
            let boxes = all_boxes(&ruler, &pool, &range, seed, &free);
            let cheapest = boxes.iter().filter(|(_, _, rows)| *rows >= need).map(|(_, cost, _)| *cost).min();
            prop_assert_eq!(finder.find_best_box(&ruler, &mut pool, seed, need, beta), cheapest);
            if let Some(cheapest) = cheapest {
                let mut sides = Vec::new();
                finder.box_sides(&mut sides);
                let found = boxes.iter().find(|known| known.0 == sides).unwrap();
                prop_assert!(found.1 == cheapest && found.2 >= need, "the box is what it is said to be");
                // And by branch and bound.
                let Finder { branch, chains, ops, found, levels, .. } = &mut finder;
                chains.build_chains(&ruler, pool.tuple_positions(seed), &range, u32::MAX);
                let (cost, _) = branch.find_box(&mut pool, chains, Scratch { ops, found }, need as u16, u32::MAX, levels);
                prop_assert_eq!(cost, Some(cheapest));
            }
        }
    }

    #[test]
    fn a_cover_takes_the_cheapest_box_first(
        kinds in prop::collection::vec(prop::sample::select(vec![2usize, 3]), 1..=3), rows in 1usize..60,
        seed in any::<u64>(), k in 1usize..8,
    ) {
        let table = table(&kinds, rows, 12, seed);
        let (ruler, space, mut pool) = loaded(&table);
        let all: Vec<u32> = (0..rows as u32).collect();
        let rules = Rules::k(k);
        let judge = Judge::new(&table, &rules);
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut rng = fastrand::Rng::with_seed(1);
        let left = Coverer::default()
            .cover_rows(Scene { ruler: &ruler, space: &space, judge: &judge }, &all, ALL_SEEDS, &mut rng, |group| groups.push(group.to_vec()));
        let mut seen: Vec<u32> = groups.iter().flatten().chain(&left).copied().collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, all, "every row is in one place");
        prop_assert!(left.len() < k && groups.iter().all(|group| group.len() >= k));
        // Each group is all of a box that was the cheapest around any free seed at that time. Trees alone are drawn:
        // windows of lines and sets become cheaper when values are gone, and the queue does not look at them again.
        for group in groups.iter_mut() {
            group.sort_unstable();
            // Tuples that are large enough come first.
            let heavy = (0..pool.len() as u32).find(|&tuple| pool.is_free(tuple) && {
                let mut rows = pool.rows_of(tuple).to_vec();
                rows.sort_unstable();
                rows == *group
            });
            if let Some(tuple) = heavy {
                pool.take_tuple(tuple);
                pool.drop_taken();
                continue;
            }
            let free: Vec<u32> = (0..pool.len() as u32).filter(|&tuple| pool.is_free(tuple)).collect();
            let range = pool.range.clone();
            let boxes: Vec<_> = free
                .iter()
                .flat_map(|&seed| all_boxes(&ruler, &pool, &range, seed, &free))
                .filter(|(_, _, rows)| *rows >= k)
                .collect();
            let least = boxes.iter().map(|(_, cost, _)| *cost).min().unwrap();
            let tuples_in = |sides: &[Side]| -> Vec<u32> {
                let holds = |tuple: &&u32| pool.tuple_positions(**tuple).iter().zip(sides).all(|(&at, side)| side.contains_position(at));
                free.iter().filter(holds).copied().collect()
            };
            let chosen = boxes.iter().filter(|(_, cost, _)| *cost == least).map(|(sides, _, _)| tuples_in(sides)).find(|tuples| {
                let mut rows: Vec<u32> = tuples.iter().flat_map(|&tuple| pool.rows_of(tuple)).copied().collect();
                rows.sort_unstable();
                rows == *group
            });
            prop_assert!(chosen.is_some(), "a group of {} rows is not a cheapest box", group.len());
            chosen.unwrap().into_iter().for_each(|tuple| pool.take_tuple(tuple));
            pool.drop_taken();
        }
    }

    #[test]
    fn box_splits_keep_the_least(
        kinds in prop::collection::vec(0usize..7, 1..=9), rows in 1usize..900, seed in any::<u64>(), least in 1usize..80,
        sample in 20usize..200,
    ) {
        let table = table(&kinds, rows, 40, seed);
        let (ruler, space) = measured(&table);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (order, ends) = Halver::default().cut_parts(&ruler, &space, least, Cut { seeds: 2, sample }, &mut rng);
        let mut seen = order.clone();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..rows as u32).collect::<Vec<_>>());
        let starts = [0].into_iter().chain(ends.iter().copied());
        for (start, &end) in starts.zip(&ends) {
            prop_assert!(end - start >= least.min(rows));
        }
        prop_assert_eq!(ends.last(), Some(&rows));
    }
}

#[test]
fn a_box_split_finds_the_cluster() {
    // A hundred rows below one node, on two axes, among three hundred others.
    let axes = vec![super::tests::axis(2), super::tests::axis(2)];
    let codes = (0..400u16).flat_map(|row| if row % 4 == 0 { [row / 4 % 3, row / 4 % 2] } else { [7 + row % 7, 14] });
    let table = Table::new(axes, codes.collect());
    let (ruler, space) = measured(&table);
    let mut rng = fastrand::Rng::with_seed(1);
    let (order, ends) = Halver::default().cut_parts(&ruler, &space, 100, Cut { seeds: 4, sample: 400 }, &mut rng);
    assert!(ends.len() >= 2);
    let mut start = 0;
    for end in ends {
        let inside = order[start..end].iter().filter(|&&row| row % 4 == 0).count();
        assert!(inside == 0 || inside == end - start, "parts are within the cluster or without");
        start = end;
    }
}
