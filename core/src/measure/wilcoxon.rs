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

/// Tests pairs of scores; `None` if no pair differs.
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
    let p = if doubled.len() <= EXACT {
        exact_p_value(&doubled, least)
    } else {
        normal_p_value(doubled.len(), least as f64 / 2.0, ties)
    };
    Some(SignedRank { pairs: doubled.len(), w_plus: plus as f64 / 2.0, w_minus: (total - plus) as f64 / 2.0, p })
}

/// Twice the share of the sign assignments whose sum is no larger than the least.
fn exact_p_value(doubled: &[usize], least: usize) -> f64 {
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

fn normal_p_value(pairs: usize, least: f64, ties: f64) -> f64 {
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

    /// Table 5.4 of the thesis of Tinabo: W- = 4 of one pair among thirteen. Erratum: printed as .007, it is 14/8192.
    #[test]
    fn tinabo_table_5_4_exact_p() {
        let differences: Vec<f64> =
            (1..=13).map(|rank| if rank == 4 { -f64::from(rank) } else { f64::from(rank) }).collect();
        let found = of(&differences);
        assert_eq!((found.w_minus, found.w_plus, found.p), (4.0, 87.0, 14.0 / 8192.0));
        let z = (4.0 - 13.0 * 14.0 / 4.0) / (13.0 * 14.0 * 27.0 / 24.0_f64).sqrt();
        assert!((z + 2.900).abs() < 1e-3);
        assert_eq!(of(&(1..=13).map(f64::from).collect::<Vec<_>>()).p, 2.0 / 8192.0, "all of one sign");
    }

    /// Erratum: table H.3 compares these discernibilities on Adult, and its text prints p = .021. All thirteen differences
    /// have one sign, and so have those of all 48 comparisons: the least p that there is.
    #[test]
    fn tinabo_printed_pairs_give_another_p() {
        let g_anatomy = [
            119_160, 136_086, 149_837, 158_537, 165_159, 180_635, 181_184, 202_261, 250_015, 300_478, 424_591, 523_767,
            558_150,
        ];
        let kl_redinfo = [
            68_092, 77_764, 100_621, 105_593, 116_376, 127_506, 129_534, 135_578, 142_866, 171_702, 242_623, 356_438,
            433_229,
        ];
        let pairs: Vec<(f64, f64)> =
            g_anatomy.into_iter().zip(kl_redinfo).map(|(one, two)| (f64::from(one), f64::from(two))).collect();
        let found = signed_rank(&pairs).unwrap();
        assert_eq!((found.pairs, found.w_minus, found.p), (13, 0.0, 2.0 / 8192.0));
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
            let approximate = normal_p_value(50, found.w_plus.min(found.w_minus), ties);
            prop_assert!((found.p - approximate).abs() < 0.01, "{} {}", found.p, approximate);
        }
    }
}
