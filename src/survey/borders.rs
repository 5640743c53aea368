//! Borders of ladders by quantiles.
//!
//! The labels of such a ladder show its borders to everybody, and quantiles are values of the source: a plain quantile is the
//! very value of one row, which may be suppressed, and the next row that comes or goes moves it. So a border is not a
//! quantile but a round number near one:
//!
//! 1. The rank of the border is moved by up to a slack to either side, drawn from the secret key. The slack is an eighth of
//!    an interval, and one value at least.
//! 2. Of all numbers within the same slack of that rank, the one with the fewest digits is taken.
//!
//! Thus an interval holds between half and one and a half times its share of the rows. A border reveals about how many
//! rows lie below it, to the precision that was asked for by the number of intervals. One row more or less moves ranks by one:
//! with r rows and c intervals, that a border differs for it has a chance of about 8 c / r at most.

use crate::secret::SecretRng;

/// Intervals by which the slack of a border is counted: an eighth of one to either side.
const SLACK_SHARE: usize = 8;

/// Borders between `count` intervals of about equally many of the ascending values, as a list of `count` numbers whose first
/// is not a border.
pub(super) fn round_borders(ascending: &[f64], count: u32, rng: &mut SecretRng) -> Vec<f64> {
    let Some(last) = ascending.len().checked_sub(1) else { return Vec::new() };
    let count = count.max(1) as usize;
    let slack = (ascending.len() / (SLACK_SHARE * count)).max(1);
    let border = |interval: usize| {
        let moved = ascending.len() * interval / count + rng.draw_below(2 * slack as u64 + 1) as usize;
        let rank = moved.saturating_sub(slack).min(last);
        shortest_between(ascending[rank.saturating_sub(slack)], ascending[(rank + slack).min(last)])
    };
    let mut borders: Vec<f64> = (1..count).map(border).collect();
    // Those of few values may have changed places.
    borders.sort_unstable_by(f64::total_cmp);
    borders.first().copied().into_iter().chain(borders.iter().copied()).collect()
}

/// The number between two others, or equal to one, that is written with the fewest digits.
fn shortest_between(low: f64, high: f64) -> f64 {
    if low <= 0.0 && high >= 0.0 {
        return 0.0;
    }
    if low >= high || !low.is_finite() || !high.is_finite() {
        return low;
    }
    if high < 0.0 {
        return -shortest_between(-high, -low);
    }
    let largest = high.log10().ceil() as i32;
    for exponent in (largest - DIGITS..=largest).rev() {
        // By its text, so that the number is the one that people would write.
        let multiple = (low / 10_f64.powi(exponent)).ceil();
        let number = format!("{multiple:.0}e{exponent}").parse().unwrap_or(low);
        if low <= number && number <= high {
            return number;
        }
    }
    low
}

/// Significant digits of a double.
const DIGITS: i32 = 17;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::{Purpose, RunKey};

    fn rng(seed: u64) -> SecretRng {
        RunKey::from_seed(seed).rng(Purpose::QuantileBorders, 0)
    }

    #[test]
    fn numbers_as_people_write_them() {
        for (low, high, shortest) in [
            (17.0, 23.0, 20.0),
            (987.0, 1_234.0, 1_000.0),
            (0.213, 0.241, 0.22),
            (-41.7, -38.2, -40.0),
            (-3.0, 9.0, 0.0),
            (31.0, 32.0, 31.0),
            (31.5, 31.5, 31.5),
            (123_456_789.0, 123_956_789.0, 123_500_000.0),
        ] {
            assert_eq!(shortest_between(low, high), shortest, "{low} to {high}");
        }
    }

    /// Incomes to the cent are nobody's business: no border is one of them.
    #[test]
    fn no_border_is_the_value_of_a_row() {
        let mut draws = fastrand::Rng::with_seed(4);
        let mut incomes: Vec<f64> = (0..400).map(|_| draws.u32(1_000_000..9_000_000) as f64 / 100.0).collect();
        incomes.sort_unstable_by(f64::total_cmp);
        for seed in 0..20 {
            let borders = round_borders(&incomes, 8, &mut rng(seed));
            assert_eq!(borders.len(), 8);
            assert!(borders.iter().all(|border| !incomes.contains(border)), "{borders:?}");
            assert!(borders.iter().all(|border| border % 100.0 == 0.0), "{borders:?}");
        }
    }

    /// Without the key nobody knows at which rank a border stands, so that one row does not show.
    #[test]
    fn a_row_more_moves_no_border_but_by_the_key() {
        let values: Vec<f64> = (0..4_000).map(f64::from).collect();
        let mut fewer = values.clone();
        fewer.pop();
        let same = (0..200)
            .filter(|&seed| round_borders(&values, 7, &mut rng(seed)) == round_borders(&fewer, 7, &mut rng(seed)));
        assert!(same.count() > 180);
        let of_keys: std::collections::BTreeSet<String> =
            (0..200).map(|seed| format!("{:?}", round_borders(&values, 7, &mut rng(seed)))).collect();
        assert!(of_keys.len() > 1, "keys move borders");
    }

    proptest! {
        #[test]
        fn intervals_hold_half_to_one_and_a_half_shares(
            mut values in prop::collection::btree_set(-1_000_000_i64..1_000_000, 256..600),
            count in 2_u32..9,
            seed in 0_u64..9,
        ) {
            let ascending: Vec<f64> = std::mem::take(&mut values).into_iter().map(|value| value as f64).collect();
            let borders = round_borders(&ascending, count, &mut rng(seed));
            prop_assert!(borders.is_sorted());
            let share = ascending.len() as f64 / f64::from(count);
            let below = |border: f64| ascending.partition_point(|value| *value < border) as f64;
            for (interval, border) in borders.iter().enumerate().skip(1) {
                // A rank of its own for rounding down.
                prop_assert!((below(*border) - interval as f64 * share).abs() <= share / 4.0 + 2.0);
            }
        }

        #[test]
        fn numbers_stay_between(low in -1e12_f64..1e12, width in 0_f64..1e6) {
            let high = low + width;
            let number = shortest_between(low, high);
            prop_assert!(low <= number && number <= high);
        }
    }
}
