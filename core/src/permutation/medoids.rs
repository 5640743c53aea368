//! Columns that depend on each other into slices: partitioning around medoids (PAM) by the distance 1 - dependence.
//!
//! Medoids are chosen one by one, each lowering the sum of distances to the nearest most, and then swapped with other
//! columns as long as that lowers it further. There are few columns, so every swap is tried.

use super::correlation::{Column, dependence};

/// Slices of at most `count` groups of columns that depend on each other, ordered by their first column.
pub fn slice_columns(columns: &[Column], count: usize) -> Vec<Vec<usize>> {
    let distance: Vec<Vec<f64>> = columns
        .iter()
        .enumerate()
        .map(|(at, a)| {
            columns.iter().enumerate().map(|(to, b)| if at == to { 0.0 } else { 1.0 - dependence(a, b) }).collect()
        })
        .collect();
    cluster_around_medoids(&distance, count)
}

/// Groups around `count` medoids of a matrix of distances.
pub fn cluster_around_medoids(distance: &[Vec<f64>], count: usize) -> Vec<Vec<usize>> {
    let all = 0..distance.len();
    let cost = |medoids: &[usize]| -> f64 {
        all.clone().map(|at| medoids.iter().map(|&to| distance[at][to]).fold(f64::INFINITY, f64::min)).sum()
    };
    let mut medoids: Vec<usize> = Vec::new();
    while medoids.len() < count.min(distance.len()) {
        let with = |at: usize| cost(&[medoids.as_slice(), &[at]].concat());
        let free = all.clone().filter(|at| !medoids.contains(at));
        let Some(best) = free.min_by(|&a, &b| with(a).total_cmp(&with(b))) else { break };
        medoids.push(best);
    }
    let mut least = cost(&medoids);
    loop {
        let mut best: Option<(f64, usize, usize)> = None;
        for place in 0..medoids.len() {
            for at in all.clone().filter(|at| !medoids.contains(at)) {
                let mut swapped = medoids.clone();
                swapped[place] = at;
                let cost = cost(&swapped);
                if cost < least - 1e-12 && best.is_none_or(|(lower, ..)| cost < lower) {
                    best = Some((cost, place, at));
                }
            }
        }
        let Some((lower, place, at)) = best else { break };
        (least, medoids[place]) = (lower, at);
    }
    medoids.sort_unstable();
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); medoids.len()];
    for at in all {
        let nearest = (0..medoids.len()).min_by(|&a, &b| distance[at][medoids[a]].total_cmp(&distance[at][medoids[b]]));
        if let Some(nearest) = nearest {
            groups[nearest].push(at);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups.sort();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_columns_end_in_one_slice() {
        let mut rng = fastrand::Rng::with_seed(1);
        let base: Vec<u32> = (0..500).map(|_| rng.u32(0..5)).collect();
        let like = |noise: u8, rng: &mut fastrand::Rng| {
            Column::Codes(base.iter().map(|&v| if rng.u8(0..100) < noise { rng.u32(0..5) } else { v }).collect())
        };
        let other: Vec<f64> = (0..500).map(|_| rng.f64()).collect();
        let columns = [
            like(0, &mut rng),
            Column::Numbers(other.clone()),
            like(20, &mut rng),
            Column::Numbers(other.iter().map(|x| x * 3.0 + 1.0).collect()),
            Column::Codes((0..500).map(|_| rng.u32(0..3)).collect()),
        ];
        assert_eq!(slice_columns(&columns, 3), [vec![0, 2], vec![1, 3], vec![4]]);
        assert_eq!(slice_columns(&columns, 9).len(), 5);
        assert!(slice_columns(&[], 2).is_empty());
    }
}
