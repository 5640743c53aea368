//! `upc`: utility and protection constrained clustering (Loukides, chapter 5, algorithm 6).
//!
//! 1. The cell is cut into subspaces of at least `least` rows ([`Cut`]).
//! 2. In each subspace, while rows remain: the next row is the seed. The row that gives the *cluster* the least group
//!    diversity gd joins, as long as the loss stays within U and, from k rows on, range diversity stays within P on
//!    every protected column. The first failure ends the cluster.
//! 3. Rows of clusters smaller than k are left over. In the order they were left they join, of all clusters of all
//!    subspaces that stay within U and P, the one with the least gd (or where gd grows least).
//! 4. What fits nowhere stays left over, to be suppressed.
//!
//! So every group has k rows, U and P by construction. With P < 1/k no group can form
//! ([`RangeDiversity::fewest_rows`]). With several protected columns P holds for each and gd averages them.

use std::sync::Arc;

use super::toc::LeftOvers;
use super::tune;
use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{
    LEFT_OVER, S, SPLIT, TUNING, WIDTH, check_options, split_from_options, tuned_least, tuning_from_options,
};
use crate::grouping::entry::{Entry, Remark, Setting, Tuned};
use crate::grouping::placing::{Placing, cheapest_group};
use crate::grouping::reach::Reach;
use crate::grouping::split::Cut;
use crate::grouping::{Method, in_subspaces};
use crate::measure::protection::group_diversity;
use crate::model::{Cover, Grouping, Sensitive, Table};
use crate::privacy::max_loss::MaxLoss;
use crate::privacy::range_diversity::{Forecast, GroupDiversity, RangeDiversity};
use crate::privacy::{Rules, is_within_bound};

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("upc", "Clustering under hard bounds on loss (U) and range diversity (P).", |setting| {
        Arc::new(Upc::from_setting(setting, tuned_least(setting)))
    })
    .options(&[S, SPLIT, WIDTH, LEFT_OVER, TUNING[0], TUNING[1], TUNING[2]])
    .check(|setting| {
        let mut remarks = check_options(setting);
        if setting.range_diversity.is_empty() {
            let message = "is missing: method `upc` groups under its bound P";
            let help = "add range-diversity = { column = \"...\", p = 0.5 }";
            remarks.push(Remark::error("privacy.range-diversity", message, help));
        }
        if setting.max_loss.is_none() {
            let message = "is missing: method `upc` groups under its bound U";
            remarks.push(Remark::error("privacy.max-loss", message, "add max-loss = 0.5"));
        }
        remarks
    })
    .tune(
        |setting| !setting.options.has(&S),
        |setting, rules, sample| {
            let tuning = tuning_from_options(setting.options);
            let sample = tune::draw_sample(sample, tuning.rows);
            let s = tune::upc_least(&sample, rules, &Upc::from_setting(setting, rules.k), &tuning);
            Tuned { delta: None, s: Some(s) }
        },
    );

/// Utility and protection constrained clustering.
#[derive(Debug, Clone, PartialEq)]
pub struct Upc {
    /// U: the upper bound on the loss of any group.
    pub max_loss: MaxLoss,
    /// P on each protected column. A column that the table does not have allows no group.
    pub protect: Vec<RangeDiversity>,
    /// Fewest rows of a subspace (the thesis' s); `usize::MAX` clusters the cell as a whole.
    pub least: usize,
    /// How the cell is cut.
    pub split: Cut,
    /// What happens to left-over rows.
    pub left_overs: LeftOvers,
}

impl Upc {
    /// The papers' split, left-overs where the resulting group diversity is least.
    pub fn new(max_loss: f64, protect: Vec<RangeDiversity>, least: usize) -> Self {
        let max_loss = MaxLoss { bound: max_loss };
        Self { max_loss, protect, least, split: Cut::default(), left_overs: LeftOvers::Resulting }
    }

    fn from_setting(setting: &Setting<'_>, least: usize) -> Self {
        let upc = Self::new(setting.max_loss.unwrap_or(1.0), setting.range_diversity.clone(), least);
        let left_overs = LeftOvers::from_setting(setting, LeftOvers::Resulting);
        Self { split: split_from_options(setting.options), left_overs, ..upc }
    }
}

impl Method for Upc {
    fn name(&self) -> &'static str {
        "upc"
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = Grouping::with_capacity(cell.rows());
        let Some(bounds) = Bounds::new(cell, self) else {
            grouping.left_over = (0..cell.rows() as u32).collect();
            return grouping;
        };
        let mut clusters = Vec::new();
        let mut left_over = Vec::new();
        in_subspaces(cell, &self.split, self.least, |rows| {
            grow_clusters(&bounds, rows, rules.k, |members: Vec<u32>| {
                if members.len() >= rules.k {
                    clusters.push(bounds.new_cluster(members));
                } else {
                    left_over.extend(members);
                }
            });
        });
        if self.left_overs == LeftOvers::Suppress {
            grouping.refused = std::mem::take(&mut left_over);
        } else {
            let covers = clusters.iter().map(|cluster| &cluster.cover);
            let mut placing = Placing::new(&cell.axes, covers, left_over.len());
            left_over.retain(|&row| {
                checkpoint();
                let before = |c: usize| if self.left_overs == LeftOvers::Increment { clusters[c].gd } else { 0.0 };
                let best = cheapest_group(
                    placing.row_costs(cell.row(row)),
                    |c, loss| {
                        group_diversity(
                            loss,
                            bounds.mean_disclosure(clusters[c].diversities.iter().map(GroupDiversity::least_with_any)),
                        ) - before(c)
                    },
                    |c, loss| bounds.gd_within(&clusters[c], row, loss).map(|gd| gd - before(c)),
                );
                if let Some(best) = best {
                    grouping.assigned.push(row);
                    bounds.add_row(&mut clusters[best], row);
                    placing.update_group(best, &clusters[best].cover);
                }
                best.is_none()
            });
        }
        clusters.iter().for_each(|cluster| grouping.push(&cluster.rows));
        grouping.left_over = left_over;
        grouping
    }
}

/// A finished cluster and what its scores need.
#[derive(Debug)]
struct Cluster {
    rows: Vec<u32>,
    cover: Cover,
    diversities: Vec<GroupDiversity>,
    gd: f64,
}

/// U and P in a given cell.
#[derive(Debug)]
struct Bounds<'a> {
    cell: &'a Table,
    max_loss: MaxLoss,
    /// Protected columns with their P.
    columns: Vec<(&'a Sensitive, f64)>,
}

impl<'a> Bounds<'a> {
    fn new(cell: &'a Table, upc: &Upc) -> Option<Self> {
        let named = |rule: &RangeDiversity| {
            let column = cell.sensitive.iter().find(|column| column.name == rule.column)?;
            Some((column, rule.bound))
        };
        let columns = upc.protect.iter().map(named).collect::<Option<Vec<_>>>()?;
        Some(Self { cell, max_loss: upc.max_loss, columns })
    }

    fn new_cluster(&self, rows: Vec<u32>) -> Cluster {
        let codes = |column: &'a Sensitive| rows.iter().map(|&row| column.codes[row as usize]);
        let diversities: Vec<GroupDiversity> =
            self.columns.iter().map(|(column, _)| GroupDiversity::from_codes(codes(column), column)).collect();
        let cover = self.cell.cover(&rows);
        let gd = group_diversity(
            cover.cost(&self.cell.axes),
            self.mean_disclosure(diversities.iter().map(GroupDiversity::score)),
        );
        Cluster { rows, cover, diversities, gd }
    }

    /// Group diversity if the row joined, given the (weighted) loss; `None` if U or P would be violated.
    fn gd_within(&self, cluster: &Cluster, row: u32, loss: f64) -> Option<f64> {
        let disclosures = self.disclosures_with(cluster, row);
        let protects = disclosures.clone().zip(&self.columns).all(|(rd, (_, bound))| is_within_bound(rd, *bound));
        let lost = || cluster.cover.greatest_loss_with(&self.cell.axes, self.cell.row(row));
        (protects && self.max_loss.allows_loss(lost()))
            .then(|| group_diversity(loss, self.mean_disclosure(disclosures)))
    }

    fn disclosures_with(&self, cluster: &Cluster, row: u32) -> impl Iterator<Item = f64> + Clone {
        let columns = cluster.diversities.iter().zip(&self.columns);
        columns.map(move |(diversity, (column, _))| diversity.score_with(column.codes[row as usize], column))
    }

    fn add_row(&self, cluster: &mut Cluster, row: u32) {
        cluster.rows.push(row);
        cluster.cover.add_row(&self.cell.axes, self.cell.row(row));
        for (diversity, (column, _)) in cluster.diversities.iter_mut().zip(&self.columns) {
            diversity.add_code(column.codes[row as usize], column);
        }
        cluster.gd = group_diversity(
            cluster.cover.cost(&self.cell.axes),
            self.mean_disclosure(cluster.diversities.iter().map(GroupDiversity::score)),
        );
    }

    fn mean_disclosure(&self, disclosures: impl Iterator<Item = f64>) -> f64 {
        disclosures.sum::<f64>() / self.columns.len().max(1) as f64
    }
}

/// Step 2 on one subspace; the members of every cluster are handed out when it stops growing, however few.
fn grow_clusters(bounds: &Bounds<'_>, rows: &[u32], k: usize, mut done: impl FnMut(Vec<u32>)) {
    let axes = &bounds.cell.axes;
    let mut reach = Reach::new(bounds.cell, rows);
    let mut forecasts: Vec<Forecast<'_>> =
        bounds.columns.iter().map(|(column, _)| Forecast::new(column, rows)).collect();
    let mut remaining: Vec<usize> = (0..rows.len()).collect();
    while !remaining.is_empty() {
        checkpoint();
        let seed = remaining.remove(0);
        let mut members = vec![rows[seed]];
        reach.start_group(seed);
        for forecast in &mut forecasts {
            forecast.clear();
            forecast.add_candidate(seed);
        }
        loop {
            let mut best: Option<(f64, usize)> = None;
            for (at, &place) in remaining.iter().enumerate() {
                let disclosure = bounds.mean_disclosure(forecasts.iter().map(|forecast| forecast.score_with(place)));
                let score = group_diversity(reach.cost_with(place), disclosure);
                if best.is_none_or(|(least, _)| score < least) {
                    best = Some((score, at));
                }
            }
            let Some((_, at)) = best else { break };
            let place = remaining[at];
            let useful = bounds.max_loss.allows_loss(reach.cover().greatest_loss_with(axes, reach.codes(place)));
            let protects = || {
                forecasts
                    .iter()
                    .zip(&bounds.columns)
                    .all(|(forecast, (_, p))| is_within_bound(forecast.score_with(place), *p))
            };
            if !useful || (members.len() + 1 >= k && !protects()) {
                break;
            }
            members.push(rows[place]);
            remaining.remove(at);
            reach.add_row(place);
            forecasts.iter_mut().for_each(|forecast| forecast.add_candidate(place));
        }
        done(members);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::GroupView;
    use crate::privacy::range_diversity::range_diversity;

    /// Groups, their loss and range diversity to three digits, left-over rows.
    type Outcome = (Vec<Vec<u32>>, Vec<(f64, f64)>, Vec<u32>);

    fn run(k: usize, u: f64, p: f64) -> Outcome {
        let table = fixtures::table_5_1();
        let income = &table.sensitive[0];
        let upc = Upc::new(u, vec![RangeDiversity { column: "income".into(), bound: p }], usize::MAX);
        let grouping = upc.group(&table, &Rules::k(k), 0);
        let round = |score: f64| (score * 1000.0).round() / 1000.0;
        let scores = grouping.iter().map(|group| {
            let rd = range_diversity(&GroupView::new(&table, group).histogram(income), income);
            (round(table.cover(group).loss(&table.axes)), round(rd))
        });
        let scores = scores.collect();
        (grouping.iter().map(<[u32]>::to_vec).collect(), scores, grouping.left_over)
    }

    #[test]
    fn loukides_g9_upc_k2() {
        let (groups, scores, left_over) = run(2, 0.7, 0.5);
        assert_eq!(groups, [vec![0, 2], vec![1, 3], vec![4, 5], vec![6, 8, 10, 7, 9, 11]]);
        assert_eq!(scores, [(0.043, 0.5), (0.304, 0.5), (0.174, 0.5), (0.348, 0.328)]);
        assert!(left_over.is_empty());
    }

    #[test]
    fn loukides_g9_upc_k3() {
        let (groups, scores, left_over) = run(3, 0.7, 0.5);
        assert_eq!(groups, [[6, 8, 10, 7, 9, 11, 0, 2, 3, 4, 5]]);
        assert_eq!(scores, [(0.696, 0.363)]);
        assert_eq!(left_over, [1]);
    }

    #[test]
    fn loukides_g9_upc_k3_without_a_bound_on_loss() {
        let (groups, scores, left_over) = run(3, 1.0, 0.5);
        assert_eq!((groups.len(), groups[0].len()), (1, 12));
        assert_eq!(scores, [(1.0, 0.365)]);
        assert!(left_over.is_empty());
    }

    #[test]
    fn loukides_g9_upc_p_below_one_in_k() {
        assert_eq!(run(2, 1.0, 0.4), (vec![], vec![], (0..12).collect()));
    }

    #[test]
    fn a_missing_column_allows_no_group() {
        let protect = vec![RangeDiversity { column: "wage".into(), bound: 1.0 }];
        let grouping = Upc::new(1.0, protect, 2).group(&fixtures::table_5_1(), &Rules::k(2), 0);
        assert_eq!((grouping.len(), grouping.left_over.len()), (0, 12));
    }
}
