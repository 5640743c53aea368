//! Rounds across the borders: the search again, on other neighbourhoods than the subspaces in which the groups grew.
//!
//! Every group is represented by one of its rows. The representatives are cut by gain splits that prefer axes at
//! random, so that no two rounds draw the same borders, and each part is searched as one
//! space.

use super::refine::Pass;
use super::{Judge, Worker};
use crate::grouping::split::{Gain, cut_subspaces};
use crate::model::{Grouping, Table};

/// Fewest groups of a neighbourhood.
const FEWEST: usize = 24;

/// Makes one round over all groups: the passes, in neighbourhoods of about `rows` rows.
pub(super) fn run_round(
    worker: &mut Worker<'_>,
    judge: &Judge<'_>,
    grouping: &Grouping,
    rows: usize,
    passes: &[Pass],
    seed: u64,
) -> Grouping {
    let table = judge.table;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut codes = Vec::with_capacity(grouping.len() * table.axes.len());
    for group in grouping.iter() {
        codes.extend_from_slice(table.row(group[rng.usize(..group.len())]));
    }
    let representatives = Table::new(table.axes.clone(), codes);
    let groups = (rows * grouping.len()).div_ceil(table.rows().max(1)).max(FEWEST);
    let (order, ends) = cut_subspaces(&representatives, &Gain::with_jitter(seed), groups);
    let mut improved = Grouping::with_capacity(table.rows());
    improved.left_over.extend_from_slice(&grouping.left_over);
    let mut start = 0;
    for end in ends {
        worker.improve_groups(
            judge,
            order[start..end].iter().map(|&group| grouping.group(group as usize)),
            passes,
            &mut improved,
        );
        start = end;
    }
    improved
}
