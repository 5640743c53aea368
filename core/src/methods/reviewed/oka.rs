//! `oka`: one pass of k-means, and clusters made equal (Lin and Wei, 2008; section 2.3.2 of Gorla).
//!
//! 1. The cell is cut into subspaces of at least `s` rows, because every row asks every cluster.
//! 2. Of n rows, n / k random ones found a cluster each. Every other row, in the order of the quasi-identifiers, joins the
//!    nearest, whose centroid moves.
//! 3. From every cluster of more than k rows the farthest from its centroid are taken until k are left. Each of these joins
//!    the nearest cluster of fewer than k rows, and any when there is none.
//!
//! The centroid is the mean on a line, and what covers the cluster on trees and sets; the distance is the share of the domain,
//! and what is lost when the row joins.

use std::sync::Arc;

use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{S, check_options};
use crate::grouping::entry::Entry;
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::model::{Code, Cover, Grouping, Shape, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new("oka", "One pass of k-means, and clusters made equal.", |setting| {
    Arc::new(Oka { least: setting.options.count(&S).unwrap_or(2048) })
})
.options(&[S])
.check(check_options);

/// One-pass k-means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oka {
    /// Fewest rows of a subspace; `usize::MAX` clusters the cell as a whole.
    pub least: usize,
}

impl Method for Oka {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        let (k, mut rng) = (rules.k.max(1), fastrand::Rng::with_seed(seed));
        let mut grouping = Grouping::with_capacity(cell.rows());
        in_subspaces(cell, &Widest::BOUNDARY, self.least.max(k), |rows| {
            if rows.len() < k {
                grouping.left_over.extend_from_slice(rows);
            } else {
                let mut order = rows.to_vec();
                rng.shuffle(&mut order);
                let seeds = order.len() / k;
                order[seeds..].sort_by(|&a, &b| cell.row(a).cmp(cell.row(b)).then(a.cmp(&b)));
                let clusters = cluster_rows(cell, &order, seeds, k);
                clusters.iter().for_each(|cluster| grouping.push(&cluster.rows));
            }
        });
        grouping
    }
}

/// A cluster and its centroid.
#[derive(Debug, Clone)]
struct Cluster {
    rows: Vec<u32>,
    cover: Cover,
    sums: Vec<f64>,
}

impl Cluster {
    fn new(cell: &Table, row: u32) -> Self {
        let mut cluster =
            Self { rows: Vec::new(), cover: Cover::empty(cell.axes.len()), sums: vec![0.0; cell.axes.len()] };
        cluster.add_row(cell, row);
        cluster
    }

    fn add_row(&mut self, cell: &Table, row: u32) {
        self.rows.push(row);
        self.cover.add_row(&cell.axes, cell.row(row));
        self.sums.iter_mut().zip(cell.row(row)).for_each(|(sum, &code)| *sum += f64::from(code));
    }

    /// The distance of a row from the centroid.
    fn distance(&self, cell: &Table, row: u32) -> f64 {
        let on_axis = |(a, &code): (usize, &Code)| {
            let axis = &cell.axes[a];
            axis.weight
                * match axis.shape {
                    Shape::Line { span } if axis.null.is_none() => {
                        (self.sums[a] / self.rows.len() as f64 - f64::from(code)).abs() / f64::from(span.max(1))
                    }
                    _ => self.cover.axis_loss_with(&cell.axes, a, code),
                }
        };
        cell.row(row).iter().enumerate().map(on_axis).sum()
    }
}

/// The first of the nearest of some clusters.
fn nearest_cluster(cell: &Table, clusters: &[Cluster], row: u32, open: impl Fn(&Cluster) -> bool) -> Option<usize> {
    let distances = clusters.iter().enumerate().filter(|(_, cluster)| open(cluster));
    let distances = distances.map(|(at, cluster)| (cluster.distance(cell, row), at));
    distances.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))).map(|(_, at)| at)
}

/// Clusters of rows of which the first `seeds` found one each.
fn cluster_rows(cell: &Table, rows: &[u32], seeds: usize, k: usize) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = rows[..seeds].iter().map(|&row| Cluster::new(cell, row)).collect();
    for &row in &rows[seeds..] {
        checkpoint();
        if let Some(at) = nearest_cluster(cell, &clusters, row, |_| true) {
            clusters[at].add_row(cell, row);
        }
    }
    let mut removed = Vec::new();
    for cluster in clusters.iter_mut().filter(|cluster| cluster.rows.len() > k) {
        let mut ranked: Vec<(f64, u32)> = cluster.rows.iter().map(|&row| (cluster.distance(cell, row), row)).collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        removed.extend(ranked[k..].iter().map(|&(_, row)| row));
        let mut kept = Cluster::new(cell, ranked[0].1);
        ranked[1..k].iter().for_each(|&(_, row)| kept.add_row(cell, row));
        *cluster = kept;
    }
    for row in removed {
        let small = nearest_cluster(cell, &clusters, row, |cluster| cluster.rows.len() < k);
        if let Some(at) = small.or_else(|| nearest_cluster(cell, &clusters, row, |_| true)) {
            clusters[at].add_row(cell, row);
        }
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Axis;

    fn line(values: &[u16]) -> Table {
        Table::new([Axis::new("x", Shape::Line { span: 100 })], values.to_vec())
    }

    /// Both stages by hand: 0 and 50 are the seeds; 1, 5 and 49 join the nearest. The first has one too many.
    #[test]
    fn lin_and_wei_clusters_of_more_than_k_give_their_farthest() {
        let table = line(&[0, 50, 1, 5, 49]);
        let clusters = cluster_rows(&table, &[0, 1, 2, 3, 4], 2, 2);
        let rows: Vec<&[u32]> = clusters.iter().map(|cluster| cluster.rows.as_slice()).collect();
        // Mean of 0, 1 and 5 is 2: 1 is nearest, then 0, and 5 goes. Every cluster has two, so it joins the nearest.
        assert_eq!(rows, [&[2, 0, 3][..], &[1, 4]]);
        let table = line(&[0, 90, 1, 5]);
        let clusters = cluster_rows(&table, &[0, 1, 2, 3], 2, 2);
        let rows: Vec<&[u32]> = clusters.iter().map(|cluster| cluster.rows.as_slice()).collect();
        assert_eq!(rows, [&[2, 0][..], &[1, 3]], "a cluster that lacks a row takes it from afar");
    }

    #[test]
    fn every_cluster_has_k_rows() {
        let mut rng = fastrand::Rng::with_seed(3);
        let table = line(&(0..997).map(|_| rng.u16(0..=100)).collect::<Vec<u16>>());
        for k in [2, 5, 10] {
            let grouping = Oka { least: 200 }.group(&table, &Rules::k(k), 1);
            assert!(grouping.left_over.is_empty() && grouping.iter().all(|group| group.len() >= k));
        }
    }
}
