//! `k-members`: greedy clusters of exactly k rows, from seeds far apart (Byun et al., 2007).
//!
//! 1. The cell is cut into subspaces of at least `least` rows, because the clustering is quadratic.
//! 2. While k rows remain: the seed is the row furthest from the previous seed (the first row at the start); k - 1
//!    times the row joins that makes the cluster lose least.
//! 3. Each of the fewer than k remaining rows joins the cluster of its subspace whose loss, times its rows, grows
//!    least.

use std::sync::Arc;

use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{S, check_options};
use crate::grouping::entry::Entry;
use crate::grouping::placing::{Placing, cheapest_group};
use crate::grouping::reach::Reach;
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::model::{Cover, Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new("k-members", "Greedy clusters of exactly k.", |setting| {
    Arc::new(setting.options.count(&S).map_or_else(KMembers::default, |least| KMembers { least }))
})
.options(&[S])
.check(check_options);

/// Greedy k-member clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMembers {
    /// Fewest rows of a subspace; `usize::MAX` clusters the cell as a whole.
    pub least: usize,
}

impl Default for KMembers {
    /// Subspaces of some 2048 to 4096 rows.
    fn default() -> Self {
        Self { least: 2048 }
    }
}

impl Method for KMembers {
    fn name(&self) -> &'static str {
        "k-members"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = Grouping::with_capacity(cell.rows());
        let k = rules.k.max(1);
        in_subspaces(cell, &Widest::BOUNDARY, self.least.max(k), |rows| cluster_rows(cell, rows, k, &mut grouping));
        grouping
    }
}

fn cluster_rows(cell: &Table, rows: &[u32], k: usize, grouping: &mut Grouping) {
    let mut reach = Reach::new(cell, rows);
    let mut remaining: Vec<usize> = (0..rows.len()).collect();
    let mut clusters: Vec<(Vec<u32>, Cover)> = Vec::with_capacity(rows.len() / k);
    let mut previous = None;
    while remaining.len() >= k {
        checkpoint();
        let at = match previous {
            None => 0,
            Some(previous) => {
                reach.start_group(previous);
                cheapest_place(&remaining, |place| -reach.cost_with(place))
            }
        };
        let seed = remaining.swap_remove(at);
        previous = Some(seed);
        reach.start_group(seed);
        let mut members = vec![rows[seed]];
        while members.len() < k {
            let joined = remaining.swap_remove(cheapest_place(&remaining, |place| reach.cost_with(place)));
            reach.add_row(joined);
            members.push(rows[joined]);
        }
        clusters.push((members, reach.cover().clone()));
    }
    if clusters.is_empty() {
        grouping.left_over.extend_from_slice(rows);
        return;
    }
    remaining.sort_unstable();
    let mut placing = Placing::new(&cell.axes, clusters.iter().map(|(_, cover)| cover), remaining.len());
    for place in remaining {
        let codes = reach.codes(place);
        let growth = |c: usize, cost: f64| {
            let cover = &clusters[c].1;
            (cover.rows + 1) as f64 * cost - cover.rows as f64 * cover.cost(&cell.axes)
        };
        let best = cheapest_group(placing.row_costs(codes), |_, _| f64::NEG_INFINITY, |c, cost| Some(growth(c, cost)));
        if let Some(best) = best {
            clusters[best].0.push(rows[place]);
            clusters[best].1.add_row(&cell.axes, codes);
            placing.update_group(best, &clusters[best].1);
        }
    }
    clusters.iter().for_each(|(members, _)| grouping.push(members));
}

/// Where in `remaining` the row with the least cost stands, the first row of the subspace among equals.
pub(crate) fn cheapest_place(remaining: &[usize], cost: impl Fn(usize) -> f64) -> usize {
    let mut best = (f64::INFINITY, usize::MAX, 0);
    for (at, &place) in remaining.iter().enumerate() {
        let cost = cost(place);
        if cost < best.0 || (cost == best.0 && place < best.1) {
            best = (cost, place, at);
        }
    }
    best.2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Shape};

    fn line(values: &[u16]) -> Table {
        Table::new([Axis::new("x", Shape::Line { span: 100 })], values.to_vec())
    }

    #[test]
    fn seeds_are_far_apart_and_left_overs_join_the_nearest() {
        let table = line(&[0, 100, 50, 2, 98, 52, 95]);
        let grouping = KMembers::default().group(&table, &Rules::k(2), 0);
        let groups: Vec<&[u32]> = grouping.iter().collect();
        // Seed 0; then 100, the furthest from it; then 50, the furthest from 100 of the rest.
        assert_eq!(groups, [&[0, 3][..], &[1, 4, 6], &[2, 5]]);
    }

    #[test]
    fn every_group_has_k_rows_in_every_subspace() {
        let mut rng = fastrand::Rng::with_seed(3);
        let table = line(&(0..1000).map(|_| rng.u16(0..=100)).collect::<Vec<_>>());
        for least in [100, usize::MAX] {
            let grouping = KMembers { least }.group(&table, &Rules::k(7), 0);
            assert!(grouping.iter().all(|group| (7..14).contains(&group.len())));
            assert_eq!((grouping.rows().len(), grouping.left_over.len()), (1000, 0));
        }
        assert_eq!(KMembers::default().group(&line(&[1, 2]), &Rules::k(3), 0).left_over, [0, 1]);
    }
}
