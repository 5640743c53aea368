//! Interval ladders: numbers in nested intervals, finest level first.
//!
//! Intervals are half-open, `[lower, upper)`. Bounds are decimal-safe: a grid of width 0.1 has a bound at exactly the
//! number written 0.3, not at 3 * 0.1 = 0.30000000000000004, so labels look as people write them and a value that
//! equals a bound falls on the right side of it. Whole numbers and decimals of more digits than a double holds are placed
//! by their digits ([`Ladder::cover_digits`]). Outer intervals of listed bounds and quantiles are open-ended
//! (`< 18`, `>= 65`): every number has an interval on every level.

use std::fmt;

use super::buckets::{self, Domain};
use super::{Decimal, HierarchyError, IntervalLabel};
use crate::model::{Code, Tree};

/// Nested intervals of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    levels: Vec<Rung>,
}

/// One level of a ladder.
#[derive(Debug, Clone, PartialEq)]
enum Rung {
    /// Intervals of one width.
    Grid { width: f64, origin: f64, decimals: i32 },
    /// Intervals between ascending bounds, open-ended at both sides.
    Cuts(Vec<f64>),
}

/// A half-open interval of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Smallest number inside; may be minus infinity.
    pub lower: f64,
    /// Smallest number above that is outside; may be infinity.
    pub upper: f64,
}

impl Bucket {
    /// Whether a number lies inside.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value < self.upper
    }

    /// Reads a label back.
    pub fn parse(label: &str) -> Option<Self> {
        let (lower, upper) = match IntervalLabel::parse(label) {
            IntervalLabel::HalfOpen(lower, upper) => (lower.parse().ok()?, upper.parse().ok()?),
            IntervalLabel::AtLeast(lower) => (lower.parse().ok()?, f64::INFINITY),
            IntervalLabel::Below(upper) => (f64::NEG_INFINITY, upper.parse().ok()?),
            _ => return None,
        };
        Some(Self { lower, upper })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lower, upper) = (self.lower.to_string(), self.upper.to_string());
        match (self.lower.is_finite(), self.upper.is_finite()) {
            (true, true) => IntervalLabel::HalfOpen(&lower, &upper),
            (true, false) => IntervalLabel::AtLeast(&lower),
            (false, true) => IntervalLabel::Below(&upper),
            (false, false) => IntervalLabel::Top,
        }
        .fmt(f)
    }
}

impl Ladder {
    /// Intervals of the given widths, one level each, all with a bound at `origin`.
    pub fn from_widths(widths: &[f64], origin: f64) -> Result<Self, HierarchyError> {
        let wrong = |message: String| Err(HierarchyError::Levels(message));
        if widths.is_empty() {
            return wrong("widths: at least one is needed".to_owned());
        }
        if !origin.is_finite() {
            return wrong(format!("origin: must be a number, got {origin}"));
        }
        if let Some(width) = widths.iter().find(|width| !(width.is_finite() && **width > 0.0)) {
            return wrong(format!("widths: each must be above 0, got {width}"));
        }
        for pair in widths.windows(2) {
            let ratio = pair[1] / pair[0];
            if ratio.round() < 2.0 || (ratio - ratio.round()).abs() > 1e-9 * ratio {
                return wrong(format!(
                    "widths: each must be a multiple of the one before, so that intervals nest; {} is not a \
                     multiple of {}",
                    pair[1], pair[0]
                ));
            }
        }
        let decimals = widths.iter().chain([&origin]).map(|number| count_decimals(*number)).max().unwrap_or(0);
        Ok(Self { levels: widths.iter().map(|&width| Rung::Grid { width, origin, decimals }).collect() })
    }

    /// Intervals between the listed bounds, one list per level, finest first.
    pub fn from_bounds(levels: &[Vec<f64>]) -> Result<Self, HierarchyError> {
        let wrong = |message: String| Err(HierarchyError::Levels(message));
        if levels.is_empty() {
            return wrong("bounds: at least one level is needed".to_owned());
        }
        for (index, level) in levels.iter().enumerate() {
            let number = index + 1;
            if level.is_empty() {
                return wrong(format!("bounds: level {number} is empty"));
            }
            if level.iter().any(|bound| !bound.is_finite()) {
                return wrong(format!("bounds: level {number} has a bound that is not a number"));
            }
            if let Some(pair) = level.windows(2).find(|pair| pair[0] >= pair[1]) {
                return wrong(format!("bounds: must ascend, but level {number} has {} before {}", pair[0], pair[1]));
            }
            if index > 0
                && let Some(stray) = level.iter().find(|bound| !levels[index - 1].contains(bound))
            {
                return wrong(format!(
                    "bounds: each level's must be among those of the level before, so that intervals nest; \
                     {stray} of level {number} is not in level {index}"
                ));
            }
        }
        Ok(Self { levels: levels.iter().cloned().map(Rung::Cuts).collect() })
    }

    /// Checks a list of quantile counts without any values.
    pub fn check_quantiles(counts: &[u32]) -> Result<(), HierarchyError> {
        let wrong = |message: String| Err(HierarchyError::Levels(message));
        if counts.is_empty() {
            return wrong("quantiles: at least one number of intervals is needed".to_owned());
        }
        if let Some(count) = counts.iter().find(|count| **count < 2) {
            return wrong(format!("quantiles: each level needs at least 2 intervals, but one has {count}"));
        }
        if let Some(pair) = counts.windows(2).find(|pair| pair[0] <= pair[1] || pair[0] % pair[1] != 0) {
            return wrong(format!(
                "quantiles: each must be a divisor of the one before, so that intervals nest; {} does not divide {}",
                pair[1], pair[0]
            ));
        }
        Ok(())
    }

    /// Intervals that hold about equally many of the given values (ascending, as many times as they occur), so many
    /// per level as `counts` says.
    pub fn from_quantiles(counts: &[u32], ascending: &[f64]) -> Result<Self, HierarchyError> {
        Self::check_quantiles(counts)?;
        let cut = |count: u32, i: u32| ascending.get(ascending.len() * i as usize / count as usize).copied();
        let level = |count: u32| -> Vec<f64> {
            let mut cuts: Vec<f64> = (1..count).filter_map(|i| cut(count, i)).collect();
            cuts.dedup();
            cuts
        };
        Ok(Self { levels: counts.iter().map(|&count| Rung::Cuts(level(count))).collect() })
    }

    /// Number of levels.
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// The interval that holds a number on a level, the finest being 0.
    pub fn bucket_at_level(&self, level: usize, value: f64) -> Bucket {
        self.levels[level].bucket_holding(value)
    }

    /// The smallest interval of the ladder that holds both numbers and so all between them; none: only the top does.
    pub fn cover_numbers(&self, min: f64, max: f64) -> Option<Bucket> {
        let fits = |bucket: &Bucket| bucket.contains(min) && bucket.contains(max);
        self.levels
            .iter()
            .map(|level| level.bucket_holding(min))
            .find(fits)
            .filter(|bucket| bucket.to_string() != super::TOP)
    }

    /// The same for numbers of more digits than a double holds: an interval by its label and ends.
    ///
    /// An error says that an interval has more than 38 digits.
    pub fn cover_digits(&self, min: Decimal, max: Decimal) -> Result<Option<(String, Bucket)>, HierarchyError> {
        for level in &self.levels {
            let (lower, upper) = level.decimal_ends(min).ok_or_else(|| {
                HierarchyError::Levels("an interval that holds a value has more than 38 digits".to_owned())
            })?;
            let holds = |value| lower.is_none_or(|lower| lower <= value) && upper.is_none_or(|upper| value < upper);
            if !(holds(min) && holds(max)) {
                continue;
            }
            let text = |end: Option<Decimal>| end.map(|end| end.to_string());
            let label = match (text(lower).as_deref(), text(upper).as_deref()) {
                (Some(lower), Some(upper)) => IntervalLabel::HalfOpen(lower, upper),
                (Some(lower), None) => IntervalLabel::AtLeast(lower),
                (None, Some(upper)) => IntervalLabel::Below(upper),
                (None, None) => return Ok(None),
            }
            .to_string();
            let lower = lower.map_or(f64::NEG_INFINITY, Decimal::to_f64);
            let upper = upper.map_or(f64::INFINITY, Decimal::to_f64);
            return Ok(Some((label, Bucket { lower, upper })));
        }
        Ok(None)
    }

    /// The tree over codes for a domain `min..=max` of `codes` codes, and one more for null when asked for.
    ///
    /// `code_of` answers the code of the first value that is not below the given number. Loss is the share of the
    /// domain that an interval holds.
    pub fn to_tree(&self, min: f64, max: f64, code_of: impl Fn(f64) -> Code, codes: usize, null: bool) -> Tree {
        let domain = Domain { min, max, codes, null, code_of };
        let levels = self.levels.iter().map(|level| {
            let bucket = |value| {
                let Bucket { lower, upper } = level.bucket_holding(value);
                (lower, upper)
            };
            (level.least_width(), bucket)
        });
        buckets::build_tree(&domain, levels)
    }
}

impl Rung {
    fn bucket_holding(&self, value: f64) -> Bucket {
        match self {
            Self::Grid { width, origin, decimals } => {
                let bound = |index: f64| round_to_decimals(origin + index * width, *decimals);
                let mut index = ((value - origin) / width).floor();
                // The quotient may be off by one unit in its last place: the bounds decide.
                if value < bound(index) {
                    index -= 1.0;
                } else if value >= bound(index + 1.0) {
                    index += 1.0;
                }
                Bucket { lower: bound(index), upper: bound(index + 1.0) }
            }
            Self::Cuts(bounds) => {
                let after = bounds.partition_point(|bound| *bound <= value);
                let lower = if after == 0 { f64::NEG_INFINITY } else { bounds[after - 1] };
                Bucket { lower, upper: bounds.get(after).copied().unwrap_or(f64::INFINITY) }
            }
        }
    }

    /// The ends of the interval that holds a number, by its digits; none has no end there. None when they are too many.
    fn decimal_ends(&self, value: Decimal) -> Option<(Option<Decimal>, Option<Decimal>)> {
        match self {
            Self::Grid { width, origin, .. } => {
                let (width, origin) = (Decimal::from_f64(*width)?, Decimal::from_f64(*origin)?);
                let scale = value.scale.max(width.scale).max(origin.scale);
                let (value, width) = (value.digits_at(scale)?, width.digits_at(scale)?);
                let beyond = value.checked_sub(origin.digits_at(scale)?)?.rem_euclid(width);
                let lower = value.checked_sub(beyond)?;
                let end = |digits| Some(Decimal { digits, scale });
                Some((end(lower), end(lower.checked_add(width)?)))
            }
            Self::Cuts(bounds) => {
                let bounds = bounds.iter().map(|bound| Decimal::from_f64(*bound)).collect::<Option<Vec<_>>>()?;
                let after = bounds.partition_point(|bound| *bound <= value);
                Some((after.checked_sub(1).map(|before| bounds[before]), bounds.get(after).copied()))
            }
        }
    }

    /// A width that determines how many buckets a domain can have.
    fn least_width(&self) -> f64 {
        match self {
            Self::Grid { width, .. } => *width,
            Self::Cuts(_) => f64::INFINITY,
        }
    }
}

/// Decimals of a number as people write it.
fn count_decimals(number: f64) -> i32 {
    let written = number.to_string();
    written.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(15) as i32)
}

/// The double nearest to a number with so many decimals; never a negative zero, which would be shown as `-0`.
fn round_to_decimals(number: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    let scaled = (number * scale).round();
    // Beyond 2^53 a double has no decimals left to round.
    if scaled.abs() < 9_007_199_254_740_992.0 { scaled / scale + 0.0 } else { number }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(ladder: &Ladder, min: f64, max: f64) -> String {
        ladder.cover_numbers(min, max).map_or("*".to_owned(), |bucket| bucket.to_string())
    }

    #[test]
    fn the_lowest_level_that_holds_both_ends() {
        let ladder = Ladder::from_widths(&[5.0, 10.0, 20.0], 0.0).unwrap();
        assert_eq!(label(&ladder, 20.0, 24.0), "[20, 25)");
        assert_eq!(label(&ladder, 20.0, 25.0), "[20, 30)");
        assert_eq!(label(&ladder, 29.0, 30.0), "[20, 40)");
        assert_eq!(label(&ladder, 39.0, 40.0), "*");
        assert_eq!(label(&ladder, f64::NAN, 40.0), "*");
    }

    #[test]
    fn negative_numbers_and_an_origin() {
        let ladder = Ladder::from_widths(&[5.0, 10.0], 0.0).unwrap();
        assert_eq!(label(&ladder, -1.0, -5.0), "[-5, 0)");
        assert_eq!(label(&ladder, -6.0, -5.0), "[-10, 0)");
        assert_eq!(label(&ladder, -1.0, 0.0), "*");
        let shifted = Ladder::from_widths(&[10.0], 18.0).unwrap();
        assert_eq!(label(&shifted, 18.0, 27.0), "[18, 28)");
        assert_eq!(label(&shifted, 17.0, 8.0), "[8, 18)");
    }

    #[test]
    fn decimals_are_exact() {
        let ladder = Ladder::from_widths(&[0.1, 0.5], 0.0).unwrap();
        for i in -50..50 {
            let lower = format!("{}", f64::from(i) / 10.0).parse::<f64>().unwrap();
            let upper = f64::from(i + 1) / 10.0;
            assert_eq!(
                ladder.bucket_at_level(0, lower),
                Bucket { lower, upper },
                "a bound is inside the interval above it"
            );
            assert_eq!(ladder.bucket_at_level(0, upper.next_down()), Bucket { lower, upper });
        }
        assert_eq!(label(&ladder, 0.3, 0.35), "[0.3, 0.4)");
        assert_eq!(label(&ladder, 0.3, 0.4), "[0, 0.5)");
        let cents = Ladder::from_widths(&[0.25, 2.5], 0.05).unwrap();
        assert_eq!(label(&cents, 1.3, 1.54), "[1.3, 1.55)");
        let shifted = Ladder::from_widths(&[0.1], 0.3).unwrap();
        assert_eq!(label(&shifted, -0.05, -0.01), "[-0.1, 0)");
        assert_eq!(label(&shifted, 0.0, 0.05), "[0, 0.1)");
    }

    #[test]
    fn listed_bounds_are_open_ended() {
        let ladder = Ladder::from_bounds(&[vec![18.0, 30.0, 65.0], vec![18.0, 65.0]]).unwrap();
        assert_eq!(label(&ladder, 18.0, 29.0), "[18, 30)");
        assert_eq!(label(&ladder, 18.0, 30.0), "[18, 65)");
        assert_eq!(label(&ladder, 65.0, 99.0), ">= 65");
        assert_eq!(label(&ladder, 0.0, 17.0), "< 18");
        assert_eq!(label(&ladder, 17.0, 18.0), "*");
    }

    #[test]
    fn labels_are_read_back() {
        for text in ["[20, 25)", "[-0.5, 0)", "< 18", ">= 65.5"] {
            assert_eq!(Bucket::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Bucket::parse("20-25"), None);
        assert!(Bucket::parse("[20, 25)").unwrap().contains(20.0));
        assert!(!Bucket::parse("[20, 25)").unwrap().contains(25.0));
    }

    #[test]
    fn quantiles_nest() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let ladder = Ladder::from_quantiles(&[4, 2], &values).unwrap();
        assert_eq!(label(&ladder, 25.0, 49.0), "[25, 50)");
        assert_eq!(label(&ladder, 0.0, 49.0), "< 50");
        assert_eq!(label(&ladder, 49.0, 50.0), "*");
        // One value in most rows: fewer intervals, never an empty one.
        let skewed = Ladder::from_quantiles(&[4], &[1.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 9.0]).unwrap();
        assert_eq!(label(&skewed, 7.0, 9.0), ">= 7");
        assert_eq!(label(&Ladder::from_quantiles(&[4], &[]).unwrap(), 1.0, 2.0), "*");
    }

    #[test]
    fn long_numbers_lie_in_the_interval_that_names_them() {
        let whole = |digits: i128| Decimal { digits, scale: 0 };
        let label = |ladder: &Ladder, min, max| ladder.cover_digits(min, max).unwrap().map(|(label, _)| label);
        let ladder = Ladder::from_widths(&[10.0, 100.0], 0.0).unwrap();
        let base = 100_000_000_000_000_000;
        let expected = Some("[100000000000000010, 100000000000000020)".to_owned());
        assert_eq!(label(&ladder, whole(base + 13), whole(base + 17)), expected);
        let expected = Some("[100000000000000000, 100000000000000100)".to_owned());
        assert_eq!(label(&ladder, whole(base + 7), whole(base + 13)), expected);
        assert_eq!(label(&ladder, whole(base - 7), whole(base + 13)), None);
        assert_eq!(
            label(&ladder, whole(-base - 7), whole(-base - 3)).unwrap(),
            "[-100000000000000010, -100000000000000000)"
        );
        let cents = Ladder::from_widths(&[0.25], 0.05).unwrap();
        let value = Decimal { digits: 123_456_789_012_345_678_931, scale: 2 };
        assert_eq!(label(&cents, value, value).unwrap(), "[1234567890123456789.3, 1234567890123456789.55)");
        let cuts = Ladder::from_bounds(&[vec![18.0, 1e17]]).unwrap();
        assert_eq!(label(&cuts, whole(base - 1), whole(20)).unwrap(), "[18, 100000000000000000)");
        assert_eq!(label(&cuts, whole(base), whole(base + 1)).unwrap(), ">= 100000000000000000");
        let longest = Decimal { digits: i128::MAX, scale: 0 };
        assert!(cents.cover_digits(longest, longest).is_err());
    }

    proptest! {
        /// Both ways agree where both can be taken.
        #[test]
        fn short_numbers_lie_in_the_same_interval_either_way(
            a in -1_000_000_000_000_i64..1_000_000_000_000,
            step in 0_i64..2000,
            scale in 0_u32..3,
            widths in prop_oneof![Just(vec![1.0, 10.0]), Just(vec![0.25, 2.5, 25.0]), Just(vec![7.0, 700.0])],
            origin in prop_oneof![Just(0.0), Just(0.05), Just(-18.0)],
        ) {
            let ladder = Ladder::from_widths(&widths, origin).unwrap();
            let power = 10_f64.powi(scale as i32);
            let (min, max) = (a as f64 / power, (a + step) as f64 / power);
            let digits = |number: i64| Decimal { digits: i128::from(number), scale };
            let exact = ladder.cover_digits(digits(a), digits(a + step)).unwrap();
            prop_assert_eq!(exact.map(|(label, _)| label), ladder.cover_numbers(min, max).map(|bucket| bucket.to_string()));
        }

        /// Whatever its length, a number lies between the ends that its label states.
        #[test]
        fn labels_hold_their_numbers(digits in any::<i64>(), step in 0_i64..5000, scale in 0_u32..6, width in 1_u32..5000) {
            let ladder = Ladder::from_widths(&[f64::from(width), f64::from(width) * 10.0], 3.0).unwrap();
            let min = Decimal { digits: i128::from(digits), scale };
            let max = Decimal { digits: i128::from(digits) + i128::from(step), scale };
            let Some((label, _)) = ladder.cover_digits(min, max).unwrap() else { return Ok(()) };
            let (lower, upper) = label.trim_matches(['[', ')']).split_once(", ").unwrap();
            let digits_of = |text: &str| text.parse::<i128>().unwrap() * 10_i128.pow(scale);
            prop_assert!(digits_of(lower) <= min.digits && max.digits < digits_of(upper), "{} {:?} {:?}", label, min, max);
        }
    }

    #[test]
    fn tree_over_whole_numbers() {
        // Codes of a line from 17 to 90, one per whole number.
        let ladder = Ladder::from_widths(&[5.0, 10.0], 0.0).unwrap();
        let tree = ladder.to_tree(17.0, 90.0, |value| (value - 17.0).clamp(0.0, 73.0) as Code, 74, true);
        let code = |age: u16| age - 17;
        assert_eq!(tree.codes(), 75);
        assert_eq!(tree.loss(code(20), code(24)), 5.0 / 73.0);
        assert_eq!(tree.loss(code(20), code(25)), 10.0 / 73.0);
        assert_eq!(tree.loss(code(17), code(18)), 3.0 / 73.0, "clipped to the domain");
        assert_eq!(tree.loss(code(29), code(30)), 1.0);
        assert_eq!(tree.loss(code(40), code(40)), 0.0);
        assert_eq!(tree.loss(code(40), 74), 1.0, "null with a value");
    }

    #[test]
    fn tree_over_ranks_and_constant_domains() {
        let values = [-3.5, -0.2, 0.0, 0.3, 12.0];
        let rank = |value: f64| values.partition_point(|v| *v < value) as Code;
        let tree = Ladder::from_widths(&[1.0, 4.0], 0.0).unwrap().to_tree(-3.5, 12.0, rank, 5, false);
        assert_eq!(tree.loss(0, 1), 3.5 / 15.5);
        assert_eq!(tree.loss(2, 3), 1.0 / 15.5);
        assert_eq!(tree.loss(1, 2), 1.0);
        let one = Ladder::from_widths(&[1.0], 0.0).unwrap().to_tree(7.0, 7.0, |_| 0, 1, false);
        assert_eq!((one.codes(), one.loss(0, 0)), (1, 0.0));
        let cuts = Ladder::from_bounds(&[vec![0.0]]).unwrap().to_tree(-3.5, 12.0, rank, 5, false);
        assert_eq!(cuts.loss(2, 4), 12.0 / 15.5);
    }

    #[test]
    fn impossible_levels_are_refused() {
        let message = |result: Result<Ladder, HierarchyError>| result.unwrap_err().to_string();
        assert_eq!(
            message(Ladder::from_widths(&[5.0, 12.0], 0.0)),
            "widths: each must be a multiple of the one before, so that intervals nest; 12 is not a multiple of 5"
        );
        assert!(message(Ladder::from_widths(&[5.0, 5.0], 0.0)).contains("multiple"));
        assert_eq!(message(Ladder::from_widths(&[0.0], 0.0)), "widths: each must be above 0, got 0");
        assert_eq!(message(Ladder::from_widths(&[], 0.0)), "widths: at least one is needed");
        assert_eq!(message(Ladder::from_widths(&[1.0], f64::NAN)), "origin: must be a number, got NaN");
        assert_eq!(message(Ladder::from_bounds(&[vec![1.0, 1.0]])), "bounds: must ascend, but level 1 has 1 before 1");
        assert!(message(Ladder::from_bounds(&[vec![1.0, 3.0], vec![2.0]])).ends_with("2 of level 2 is not in level 1"));
        assert_eq!(message(Ladder::from_bounds(&[vec![]])), "bounds: level 1 is empty");
        assert!(message(Ladder::from_quantiles(&[16, 5], &[])).ends_with("5 does not divide 16"));
        assert_eq!(
            message(Ladder::from_quantiles(&[1], &[])),
            "quantiles: each level needs at least 2 intervals, but one has 1"
        );
    }
}
