//! The signed-rank test of Wilcoxon (1945): do two methods differ over the same settings?
//!
//! Pairs that are equal are left out; equal differences share their mean rank. Up to 50 pairs the distribution is
//! exact, given the ranks, ties included: every rank is as likely to be positive as negative. Beyond, it is the normal
//! one with the variance corrected for ties and half a step for continuity.

/// What the test says of pairs of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Pairs that differ.
    pub pairs: usize,
    /// Sum of the ranks of pairs in which the first is larger.
    pub w_plus: f64,
    /// Sum of the ranks of pairs in which the second is larger.
    pub w_minus: f64,
    /// Chance of sums as uneven as these, or more, if the two did not differ (two-sided).
    pub p: f64,
}

/// Pairs up to which every assignment of signs is counted.
const EXACT: usize = 50;

/// Tests pairs of scores; none when no pair differs.
pub fn signed_rank(pairs: &[(f64, f64)]) -> Option<SignedRank> {
    let mut differences: Vec<f64> =
        pairs.iter().map(|(a, b)| a - b).filter(|difference| *difference != 0.0 && difference.is_finite()).collect();
    if differences.is_empty() {
        return None;
    }
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the ranks, because a mean rank may be half of a whole one.
    let (mut doubled, mut ties) = (Vec::with_capacity(differences.len()), 0.0);
    for run in differences.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = doubled.len() + 1;
        doubled.extend(std::iter::repeat_n(2 * first + run.len() - 1, run.len()));
        let length = run.len() as f64;
        ties += length.powi(3) - length;
    }
    let plus: usize = differences.iter().zip(&doubled).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let total: usize = doubled.iter().sum();
    let least = plus.min(total - plus);
    let p =
        if doubled.len() <= EXACT { exact(&doubled, least) } else { normal(doubled.len(), least as f64 / 2.0, ties) };
    Some(SignedRank { pairs: doubled.len(), w_plus: plus as f64 / 2.0, w_minus: (total - plus) as f64 / 2.0, p })
}

/// Twice the share of the sign assignments whose sum is no larger than the least.
fn exact(doubled: &[usize], least: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in doubled {
        for sum in (*rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let below: f64 = ways[..=least].iter().sum();
    (2.0 * below / 2_f64.powi(doubled.len() as i32)).min(1.0)
}

fn normal(pairs: usize, least: f64, ties: f64) -> f64 {
    let n = pairs as f64;
    let mean = n * (n + 1.0) / 4.0;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let z = (least - mean + 0.5).min(0.0) / variance.sqrt();
    (2.0 * lower_tail(z)).min(1.0)
}

/// The share of the standard normal distribution below z <= 0, to seven digits (Abramowitz and Stegun, 26.2.17).
fn lower_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum: f64 = series.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(differences: &[f64]) -> SignedRank {
        signed_rank(&differences.iter().map(|difference| (*difference, 0.0)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn five_of_a_sign_are_as_uneven_as_five_can_be() {
        let found = of(&[0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!((found.pairs, found.w_plus, found.w_minus, found.p), (5, 15.0, 0.0, 2.0 / 32.0));
    }

    /// Darwin's fifteen pairs of maize (Fisher, The Design of Experiments, 1935): sums 96 and 24, exact chance 0.0413.
    #[test]
    fn darwins_maize() {
        let found = of(&[49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0]);
        assert_eq!((found.pairs, found.w_minus), (15, 24.0));
        assert!((found.p - 0.0413).abs() < 5e-4, "{}", found.p);
    }

    #[test]
    fn equal_pairs_are_left_out_and_ties_share_ranks() {
        assert_eq!(signed_rank(&[(1.0, 1.0), (2.0, 2.0)]), None);
        let found = of(&[1.0, -1.0, 2.0]);
        assert_eq!((found.w_plus, found.w_minus), (4.5, 1.5));
        // Of the eight assignments, sums of at most 1.5: {}, {1.5}, {1.5'}.
        assert_eq!(found.p, 2.0 * 3.0 / 8.0);
    }

    proptest! {
        #[test]
        fn both_ways_agree_where_they_meet(seed: u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let differences: Vec<f64> = (0..50).map(|_| f64::from(rng.i32(-20..30)) + 0.5).collect();
            let found = of(&differences);
            let mut sorted: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
            sorted.sort_by(f64::total_cmp);
            let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|run| (run.len() as f64).powi(3) - run.len() as f64).sum();
            let approximate = normal(50, found.w_plus.min(found.w_minus), ties);
            prop_assert!((found.p - approximate).abs() < 0.01, "{} {}", found.p, approximate);
        }
    }
}
