//! `k-members-p`: k-members whose only aim is protection, the benchmark of Loukides (sections 4.1 and 6.4).
//!
//! As [`k-members`](super::k_members), but a row costs a cluster what it does to its protection: the mean S-diversity of
//! the sensitive columns (chapter 4) or their mean range diversity (chapter 6), lower being better. Seeds are the rows
//! that would be worst beside the previous seed. What is published of the quasi-identifiers plays no part, so this shows
//! how well protected groups of k can be, not a release that anybody would want. Without sensitive columns every row is
//! as good as any other.

use std::sync::Arc;

use super::k_members::cheapest_place;
use crate::grouping::cutting::{self, S};
use crate::grouping::entry::{Entry, Setting};
use crate::grouping::options::{Key, Kind};
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::measure::protection::Span;
use crate::model::{Grouping, Sensitive, Table};
use crate::privacy::Rules;
use crate::privacy::range_diversity::GroupDiversity;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "k-members-p",
    "Greedy clusters of exactly k, for protection alone: a benchmark.",
    |setting: &Setting<'_>| {
        let ranged = !setting.range_diversity.is_empty();
        let aim = match setting.options.text(&PROTECT) {
            Some("span") => Aim::Span,
            Some("range") => Aim::Range,
            _ => {
                if ranged {
                    Aim::Range
                } else {
                    Aim::Span
                }
            }
        };
        Arc::new(KMembersP { aim, least: cutting::min_subspace_rows(setting, 2048) })
    },
)
.options(&[PROTECT, S])
.check(cutting::check_options);

const PROTECT: Key = Key::new(
    "protect",
    "What counts as protection. Defaults to `range` if the policy bounds range diversity, else to `span`.",
    Kind::Word(&[
        ("span", "The share of the domain that the values of a group span."),
        ("range", "How surely the sensitive range of a value can be inferred."),
    ]),
);

/// What counts as protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aim {
    /// S-diversity.
    #[default]
    Span,
    /// Range diversity.
    Range,
}

/// Greedy k-member clustering for protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMembersP {
    /// What counts as protection.
    pub aim: Aim,
    /// Fewest rows of a subspace; `usize::MAX` clusters the cell as a whole.
    pub least: usize,
}

impl Method for KMembersP {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let mut grouping = Grouping::with_capacity(cell.rows());
        let k = rules.k.max(1);
        in_subspaces(cell, &Widest::default(), self.least.max(k), |rows| {
            self.cluster_rows(cell, rows, k, &mut grouping)
        });
        grouping
    }
}

/// How well the sensitive values of a growing cluster are protected.
enum Guard<'a> {
    Span(&'a Sensitive, Span),
    Range(&'a Sensitive, GroupDiversity),
}

impl<'a> Guard<'a> {
    fn new(aim: Aim, column: &'a Sensitive) -> Self {
        match aim {
            Aim::Span => Self::Span(column, Span::default()),
            Aim::Range => Self::Range(column, GroupDiversity::default()),
        }
    }

    fn score_with(&self, row: u32) -> f64 {
        match self {
            Self::Span(column, span) => span.s_diversity_with(column.codes[row as usize], column),
            Self::Range(column, diversity) => diversity.score_with(column.codes[row as usize], column),
        }
    }

    fn score(&self) -> f64 {
        match self {
            Self::Span(column, span) => span.s_diversity(column),
            Self::Range(_, diversity) => diversity.score(),
        }
    }

    fn add_row(&mut self, row: u32) {
        match self {
            Self::Span(column, span) => span.add_code(column.codes[row as usize], column),
            Self::Range(column, diversity) => diversity.add_code(column.codes[row as usize], column),
        }
    }
}

struct Cluster<'a> {
    rows: Vec<u32>,
    guards: Vec<Guard<'a>>,
}

impl Cluster<'_> {
    fn score_with(&self, row: u32) -> f64 {
        self.guards.iter().map(|guard| guard.score_with(row)).sum()
    }

    fn score(&self) -> f64 {
        self.guards.iter().map(Guard::score).sum()
    }

    fn add_row(&mut self, row: u32) {
        self.rows.push(row);
        self.guards.iter_mut().for_each(|guard| guard.add_row(row));
    }
}

impl KMembersP {
    fn cluster_rows(&self, cell: &Table, rows: &[u32], k: usize, grouping: &mut Grouping) {
        let begin = |row: u32| {
            let guards = cell.sensitive.iter().map(|column| Guard::new(self.aim, column)).collect();
            let mut cluster = Cluster { rows: Vec::with_capacity(k), guards };
            cluster.add_row(row);
            cluster
        };
        let mut remaining: Vec<usize> = (0..rows.len()).collect();
        let mut clusters: Vec<Cluster<'_>> = Vec::with_capacity(rows.len() / k);
        let mut previous: Option<u32> = None;
        while remaining.len() >= k {
            let at = previous.map_or(0, |previous| {
                let beside = begin(previous);
                cheapest_place(&remaining, |place| -beside.score_with(rows[place]))
            });
            let seed = rows[remaining.swap_remove(at)];
            previous = Some(seed);
            let mut cluster = begin(seed);
            while cluster.rows.len() < k {
                let joined = remaining.swap_remove(cheapest_place(&remaining, |place| cluster.score_with(rows[place])));
                cluster.add_row(rows[joined]);
            }
            clusters.push(cluster);
        }
        if clusters.is_empty() {
            grouping.left_over.extend_from_slice(rows);
            return;
        }
        remaining.sort_unstable();
        for place in remaining {
            let row = rows[place];
            let growth = |cluster: &Cluster<'_>| cluster.score_with(row) - cluster.score();
            let mut best = (f64::INFINITY, 0);
            for (at, cluster) in clusters.iter().enumerate() {
                let growth = growth(cluster);
                if growth < best.0 {
                    best = (growth, at);
                }
            }
            clusters[best.1].add_row(row);
        }
        clusters.iter().for_each(|cluster| grouping.push(&cluster.rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::methods::k_members::KMembers;
    use crate::methods::tune::measure_groups;

    #[test]
    fn groups_are_better_protected_and_lose_more_than_those_of_k_members() {
        let table = fixtures::table_5_1();
        let rules = Rules::k(3);
        let plain = measure_groups(&table, &KMembers::default().group(&table, &rules, 0));
        for aim in [Aim::Span, Aim::Range] {
            let grouping = KMembersP { aim, least: usize::MAX }.group(&table, &rules, 0);
            assert!(grouping.iter().all(|group| group.len() == 3));
            let found = measure_groups(&table, &grouping);
            assert!(found.protection.mpm() <= plain.protection.mpm());
            assert!(found.protection.mean_rd() <= plain.protection.mean_rd());
            assert!(found.loss.um() >= plain.loss.um());
        }
    }

    /// The pairs of table 3.5 that protect best hold one high and one low salary each.
    #[test]
    fn loukides_table_3_5_is_fully_protected() {
        let table = fixtures::table_3_5();
        let grouping = KMembersP { aim: Aim::Span, least: usize::MAX }.group(&table, &Rules::k(2), 0);
        assert_eq!(measure_groups(&table, &grouping).protection.mpm(), Some(0.0));
    }
}
