//! `toc`: trade-off constrained clustering (Loukides, chapter 3).
//!
//! 1. The cell is cut into subspaces of at least `least` rows ([`Cut`], algorithm 2).
//! 2. In each subspace, while rows remain: the next row is the seed (rows stand in random order, so the next is as good
//!    as a random one). All other rows are ranked by mr_wtd of the pair they make with the *seed*, and join in that
//!    order as long as mr_wtd of the whole *cluster* stays within `delta`; the first failure ends the cluster
//!    (algorithm 1, sort accelerated: the ranking is made once per seed).
//! 3. Rows of clusters smaller than k are left over. In the order they were left they go to the cluster, of any
//!    subspace, that suits them best (algorithm 5), or are suppressed ([`LeftOvers::Suppress`]: algorithm 1 as printed).
//!
//! When delta is too small for any cluster to form, there is none to join: all rows are left over, and what is published is
//! the work of the repair, cuts at medians. A run says how many rows came into their groups by which of these ways
//! ([`Placement`](crate::measure::Placement)).
//!
//! mr_wtd weighs loss against S-diversity; without sensitive columns it is the loss.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::tune;
use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{
    LEFT_OVER, S, SPLIT, TUNING, WIDTH, check_options, split_from_options, tuned_least, tuning_from_options,
};
use crate::grouping::entry::{Entry, Remark, Setting, Tuned};
use crate::grouping::options::{Key, Kind};
use crate::grouping::placing::{Placing, cheapest_group};
use crate::grouping::reach::Reach;
use crate::grouping::split::Cut;
use crate::grouping::{Method, in_subspaces};
use crate::measure::protection::{Span, mr_wtd};
use crate::model::{Cover, Grouping, Table};
use crate::privacy::{Rules, is_within_bound};

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("toc", "Threshold-based clustering that trades utility against protection.", |setting| {
        Arc::new(Toc::from_setting(
            setting,
            setting.options.number(&DELTA).or(setting.tuned.delta),
            tuned_least(setting),
        ))
    })
    .options(&[DELTA, S, W_UTILITY, W_PROTECTION, SPLIT, WIDTH, LEFT_OVER, TUNING[0], TUNING[1], TUNING[2]])
    .check(|setting| {
        let mut remarks = Vec::new();
        let (utility, protection) = score_weights(setting);
        if (utility + protection - 1.0).abs() > 1e-9 {
            let sum = utility + protection;
            let message = format!("w-utility and w-protection must sum to 1, got {sum}");
            remarks.push(Remark::error("method.w-utility", message, ""));
        }
        remarks.extend(check_options(setting));
        if protection > 0.0 && setting.sensitive.as_ref().is_some_and(Vec::is_empty) {
            let message = "`toc` weighs protection, but no column is sensitive";
            let help = "set w-protection = 0, or give a column the role \"sensitive\"";
            remarks.push(Remark::warning("method.name", message, help));
        }
        remarks
    })
    .tune(
        |setting| !(setting.options.has(&DELTA) && setting.options.has(&S)),
        |setting, rules, sample| {
            let tuning = tuning_from_options(setting.options);
            let sample = &*tune::draw_sample(sample, tuning.rows);
            let found = || tune::tune_delta(sample, rules, &Toc::from_setting(setting, None, rules.k), &tuning);
            let delta = setting.options.number(&DELTA).or_else(found).unwrap_or(USUAL_DELTA);
            let found =
                || tune::tune_subspace_rows(sample, rules, &Toc::from_setting(setting, Some(delta), rules.k), &tuning);
            Tuned { delta: Some(delta), s: Some(setting.options.count(&S).unwrap_or_else(found)) }
        },
    );

const DELTA: Key = Key::new(
    "delta",
    "The largest score at which a row may join a cluster. Found from a sample by default.",
    Kind::Share,
);
/// Weight of utility.
pub const W_UTILITY: Key = Key::new(
    "w-utility",
    "Weight of utility in the score. Defaults to 1 minus the other weight, or 0.5 if neither is set.",
    Kind::Share,
);
/// Weight of protection.
pub const W_PROTECTION: Key = Key::new(
    "w-protection",
    "Weight of protection in the score. Defaults to 1 minus the other weight, or 0.5 if neither is set.",
    Kind::Share,
);

/// The threshold when neither the job nor a sample has given one.
const USUAL_DELTA: f64 = 0.25;

/// The weights of utility and of protection.
fn score_weights(setting: &Setting<'_>) -> (f64, f64) {
    match (setting.options.number(&W_UTILITY), setting.options.number(&W_PROTECTION)) {
        (Some(utility), Some(protection)) => (utility, protection),
        (Some(utility), None) => (utility, 1.0 - utility),
        (None, Some(protection)) => (1.0 - protection, protection),
        (None, None) => (0.5, 0.5),
    }
}

/// What happens to rows that no cluster took in its subspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftOvers {
    /// They go where the score grows least (the thesis' prose).
    #[default]
    Increment,
    /// They go where the resulting score is least (the thesis' pseudo-code).
    Resulting,
    /// They are suppressed (algorithm 1 as printed).
    Suppress,
}

impl LeftOvers {
    /// What a job asks for.
    pub(super) fn from_setting(setting: &Setting<'_>, usual: Self) -> Self {
        match setting.options.text(&LEFT_OVER) {
            Some("increment") => Self::Increment,
            Some("resulting") => Self::Resulting,
            Some("suppress") => Self::Suppress,
            _ => usual,
        }
    }
}

/// Trade-off constrained clustering.
#[derive(Debug, Clone, PartialEq)]
pub struct Toc {
    /// Largest mr_wtd of a cluster while it grows.
    pub delta: f64,
    /// Fewest rows of a subspace (the thesis' s); `usize::MAX` clusters the cell as a whole.
    pub least: usize,
    /// Weight of utility (w_u), in `[0, 1]`; protection has the rest.
    pub utility: f64,
    /// How the cell is cut.
    pub split: Cut,
    /// What happens to left-over rows.
    pub left_overs: LeftOvers,
}

impl Toc {
    /// Balanced weights, the papers' split, left-overs where the score grows least.
    pub fn new(delta: f64, least: usize) -> Self {
        Self { delta, least, utility: 0.5, split: Cut::default(), left_overs: LeftOvers::default() }
    }

    fn from_setting(setting: &Setting<'_>, delta: Option<f64>, least: usize) -> Self {
        let utility = score_weights(setting).0;
        Self {
            utility,
            split: split_from_options(setting.options),
            left_overs: LeftOvers::from_setting(setting, LeftOvers::Increment),
            ..Self::new(delta.unwrap_or(USUAL_DELTA), least)
        }
    }
}

impl Method for Toc {
    fn name(&self) -> &'static str {
        "toc"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let score = Score { cell, utility: if cell.sensitive.is_empty() { 1.0 } else { self.utility } };
        let mut clusters = Vec::new();
        let mut left_over = Vec::new();
        in_subspaces(cell, &self.split, self.least, |rows| {
            grow_clusters(&score, rows, self.delta, |cluster: Cluster| {
                if cluster.rows.len() >= rules.k {
                    clusters.push(cluster);
                } else {
                    left_over.extend(cluster.rows);
                }
            });
        });
        let mut grouping = Grouping::with_capacity(cell.rows());
        if self.left_overs == LeftOvers::Suppress {
            grouping.refused = std::mem::take(&mut left_over);
        } else if !clusters.is_empty() {
            grouping.assigned.clone_from(&left_over);
            let covers = clusters.iter().map(|cluster| &cluster.cover);
            let mut placing = Placing::new(&cell.axes, covers, left_over.len());
            for row in left_over.drain(..) {
                checkpoint();
                let costs = placing.row_costs(cell.row(row));
                if let Some(best) = score.best_cluster(costs, &clusters, row, self.left_overs) {
                    score.add_row(&mut clusters[best], row);
                    placing.update_group(best, &clusters[best].cover);
                }
            }
        }
        clusters.iter().for_each(|cluster| grouping.push(&cluster.rows));
        grouping.left_over = left_over;
        grouping
    }
}

/// A cluster and what its score needs.
#[derive(Debug)]
struct Cluster {
    rows: Vec<u32>,
    cover: Cover,
    spans: Vec<Span>,
    score: f64,
}

/// mr_wtd of clusters of one cell.
#[derive(Debug)]
struct Score<'a> {
    cell: &'a Table,
    utility: f64,
}

impl Score<'_> {
    fn empty_cluster(&self) -> Cluster {
        Cluster {
            rows: Vec::new(),
            cover: Cover::empty(self.cell.axes.len()),
            spans: vec![Span::default(); self.cell.sensitive.len()],
            score: 0.0,
        }
    }

    /// mr_wtd if the row joined.
    fn score_with_row(&self, cluster: &Cluster, row: u32) -> f64 {
        let loss = cluster.cover.cost_with(&self.cell.axes, self.cell.row(row));
        mr_wtd(self.utility, loss, self.s_diversity_with(&cluster.spans, row))
    }

    /// The cluster that suits a row best, given the loss of each with it.
    fn best_cluster(&self, losses: &[f64], clusters: &[Cluster], row: u32, left_overs: LeftOvers) -> Option<usize> {
        let before = |c: usize| if left_overs == LeftOvers::Increment { clusters[c].score } else { 0.0 };
        let score = |c: usize, loss: f64| {
            mr_wtd(self.utility, loss, self.s_diversity_with(&clusters[c].spans, row)) - before(c)
        };
        cheapest_group(losses, |c, loss| self.utility * loss - before(c), |c, loss| Some(score(c, loss)))
    }

    fn s_diversity_with(&self, spans: &[Span], row: u32) -> f64 {
        let columns = &self.cell.sensitive;
        let each =
            columns.iter().zip(spans).map(|(column, span)| span.s_diversity_with(column.codes[row as usize], column));
        each.sum::<f64>() / columns.len().max(1) as f64
    }

    fn add_row(&self, cluster: &mut Cluster, row: u32) {
        cluster.score = self.score_with_row(cluster, row);
        cluster.rows.push(row);
        cluster.cover.add_row(&self.cell.axes, self.cell.row(row));
        for (column, span) in self.cell.sensitive.iter().zip(&mut cluster.spans) {
            span.add_code(column.codes[row as usize], column);
        }
    }
}

/// Algorithm 1 on one subspace; every cluster is handed out when it stops growing, however small.
fn grow_clusters(score: &Score<'_>, rows: &[u32], delta: f64, mut done: impl FnMut(Cluster)) {
    let mut reach = Reach::new(score.cell, rows);
    let mut taken = vec![false; rows.len()];
    let mut remaining: Vec<usize> = (0..rows.len()).collect();
    while let Some(&seed) = remaining.first() {
        checkpoint();
        let mut cluster = score.empty_cluster();
        score.add_row(&mut cluster, rows[seed]);
        taken[seed] = true;
        reach.start_group(seed);
        // Scores are never negative, so their bits sort as they do. Ties go to the row that comes first.
        let ranked = remaining[1..].iter().map(|&place| {
            let s_diversity = score.s_diversity_with(&cluster.spans, rows[place]);
            Reverse((mr_wtd(score.utility, reach.cost_with(place), s_diversity).to_bits(), place))
        });
        let mut queue: BinaryHeap<_> = ranked.collect();
        while let Some(Reverse((_, place))) = queue.pop() {
            if !is_within_bound(score.score_with_row(&cluster, rows[place]), delta) {
                break;
            }
            score.add_row(&mut cluster, rows[place]);
            taken[place] = true;
        }
        remaining.retain(|&place| !taken[place]);
        done(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    fn run(delta: f64, left_overs: LeftOvers) -> (Vec<Vec<u32>>, Vec<u32>) {
        let toc = Toc { left_overs, ..Toc::new(delta, usize::MAX) };
        let grouping = toc.group(&fixtures::table_3_5(), &Rules::k(2), 0);
        let groups = grouping.iter().map(<[u32]>::to_vec).collect();
        (groups, if left_overs == LeftOvers::Suppress { grouping.refused } else { grouping.left_over })
    }

    #[test]
    fn loukides_g5_mr_wtd_of_a_pair() {
        let table = fixtures::table_3_5();
        let score = Score { cell: &table, utility: 0.5 };
        let mut cluster = score.empty_cluster();
        score.add_row(&mut cluster, 0);
        assert_eq!(cluster.score, 0.5, "a single row: no loss, no protection");
        assert!((score.score_with_row(&cluster, 2) - 0.041_667).abs() < 1e-6);
    }

    #[test]
    fn loukides_g5_table_3_10_by_a1() {
        let pairs = vec![vec![0, 2], vec![1, 3], vec![4, 6], vec![5, 7]];
        for delta in [0.041_667, 0.05, 0.124] {
            assert_eq!(run(delta, LeftOvers::Suppress), (pairs.clone(), vec![]), "delta = {delta}");
        }
    }

    #[test]
    fn loukides_g5_a1_at_other_deltas() {
        assert_eq!(run(0.03, LeftOvers::Suppress), (vec![], (0..8).collect()));
        assert_eq!(run(0.13, LeftOvers::Suppress), (vec![vec![0, 2, 6], vec![1, 3, 7, 5]], vec![4]));
        let (groups, left_over) = run(0.5, LeftOvers::Suppress);
        assert_eq!((groups.len(), groups[0].len(), left_over.len()), (1, 8, 0));
    }

    #[test]
    fn left_over_rows_join_the_cluster_that_suits_them() {
        // Row 4 (20, 170, 30) lies inside the first cluster and widens the second on two axes.
        for left_overs in [LeftOvers::Increment, LeftOvers::Resulting] {
            assert_eq!(run(0.13, left_overs), (vec![vec![0, 2, 6, 4], vec![1, 3, 7, 5]], vec![]));
        }
        assert_eq!(run(0.03, LeftOvers::Increment).1.len(), 8, "without clusters nothing can be placed");
    }

    /// Algorithm 1 as printed suppresses what no cluster takes, and the repair leaves it at that; algorithm 5 places it.
    #[test]
    fn loukides_algorithm_1_suppresses_what_algorithm_5_places() {
        use crate::grouping::enforce_rules;
        use crate::measure::placement::{BuiltGroups, Placement};
        let (table, rules) = (fixtures::table_3_5(), Rules::k(2));
        let settle = |delta: f64, left_overs: LeftOvers| {
            let built = Toc { left_overs, ..Toc::new(delta, usize::MAX) }.group(&table, &rules, 0);
            let before = BuiltGroups::new(&built, table.rows());
            let settled = enforce_rules(&table, built, &rules);
            let placement = Placement::of_groups(&before, &settled);
            ([placement.method, placement.left_over, placement.repair], settled.left_over)
        };
        assert_eq!(settle(0.13, LeftOvers::Suppress), ([7, 0, 0], vec![4]));
        assert_eq!(settle(0.13, LeftOvers::Increment), ([7, 1, 0], vec![]));
        // No cluster forms: the groups are cuts at medians, and are counted as such.
        assert_eq!(settle(0.03, LeftOvers::Increment), ([0, 0, 8], vec![]));
        assert_eq!(settle(0.03, LeftOvers::Suppress), ([0, 0, 0], (0..8).collect()));
    }

    /// Increment and resulting score differ: a wide cluster takes a row for free, a narrow one stays narrower.
    #[test]
    fn loukides_erratum_e13_increment_and_resulting_differ() {
        use crate::model::{Axis, Shape};
        let table = Table::new([Axis::new("x", Shape::Line { span: 100 })], vec![0, 40, 60, 62, 45]);
        let clusters = |left_overs: LeftOvers| {
            let score = Score { cell: &table, utility: 1.0 };
            let mut both = [score.empty_cluster(), score.empty_cluster()];
            [0, 1].iter().for_each(|&row| score.add_row(&mut both[0], row));
            [2, 3].iter().for_each(|&row| score.add_row(&mut both[1], row));
            let losses = both.each_ref().map(|cluster| cluster.cover.cost_with(&table.axes, table.row(4)));
            score.best_cluster(&losses, &both, 4, left_overs)
        };
        assert_eq!(clusters(LeftOvers::Increment), Some(0));
        assert_eq!(clusters(LeftOvers::Resulting), Some(1));
    }
}
