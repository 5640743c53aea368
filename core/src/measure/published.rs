//! Losses against the domain that a release itself shows.
//!
//! A loss is a share of a domain. The domain that groups are made with is the source's, with the rows that are suppressed
//! later, so a figure divided by it reveals where those rows lie: from the mean width of published ranges and their printed
//! loss anybody can solve for the width of the source. Figures that leave are therefore shares of the *published* domain:
//!
//! - numbers, dates, times: from the smallest to the largest value of the rows that are published, or the declared
//!   domain where that is wider;
//! - categories without a hierarchy: the different values of those rows;
//! - masks: the same values, of which each mask covers some;
//! - ladders and calendars: the range of numbers, and each interval clipped to it;
//! - hierarchies of levels: their leaves, which are public; the top is always 1.
//!
//! That domain is known when the last row is, so until then covers are added up as they are ([`Extent`]): widths in an
//! exact sum ([`Total`]), the others by how often each occurs. Everything can be merged in any order.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Sum;
use crate::model::wire;

/// Different values of a column beyond which its published domain is not kept.
const MAX_VALUES: usize = 1 << 16;

/// What a group covers on a column, before it is compared with a domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// A share of a domain that is public.
    Share(f64),
    /// A stretch of a line.
    Width(f64),
    /// An interval of a ladder or calendar, which may reach beyond the values.
    Interval(f64, f64),
    /// A number of distinct values.
    Values(u32),
    /// The values from one key to another.
    Keys(u64, u64),
}

/// The domain of a column, as far as published rows show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedDomain {
    /// Smallest and largest position, when there is one.
    ends: Option<Ends>,
    /// Keys of the different values.
    values: BTreeSet<u64>,
    /// Whether there were too many of them.
    overflow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Ends {
    #[serde(with = "wire::bits")]
    min: f64,
    #[serde(with = "wire::bits")]
    max: f64,
}

impl PublishedDomain {
    /// Adds a position on a line; NaN is not a position.
    pub fn add_position(&mut self, position: f64) {
        if !position.is_nan() {
            let ends = self.ends.get_or_insert(Ends { min: position, max: position });
            (ends.min, ends.max) = (ends.min.min(position), ends.max.max(position));
        }
    }

    /// Adds a value that is known by a key.
    pub fn add_value(&mut self, key: u64) {
        if !self.overflow {
            self.values.insert(key);
            self.overflow = self.values.len() > MAX_VALUES;
            if self.overflow {
                self.values.clear();
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        for end in other.ends.iter().flat_map(|ends| [ends.min, ends.max]) {
            self.add_position(end);
        }
        if other.overflow {
            self.overflow = true;
            self.values.clear();
        }
        other.values.iter().for_each(|&key| self.add_value(key));
    }

    fn width(&self) -> f64 {
        self.ends.map_or(0.0, |ends| ends.max - ends.min)
    }

    /// The share of this domain that is `part` of `whole`; nothing is lost in a domain of one value.
    fn domain_share(part: f64, whole: f64) -> f64 {
        if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share that a piece covers; `None` if the domain was not kept.
    fn share_of(&self, piece: Piece) -> Option<f64> {
        let values = (!self.overflow).then_some(self.values.len() as f64 - 1.0);
        match piece {
            Piece::Interval(lower, upper) => {
                let (lower, upper) = (f64::from_bits(lower), f64::from_bits(upper));
                let ends = self.ends?;
                Some(Self::domain_share(upper.min(ends.max) - lower.max(ends.min), ends.max - ends.min))
            }
            Piece::Values(listed) => Some(Self::domain_share(f64::from(listed) - 1.0, values?)),
            Piece::Keys(first, last) => {
                Some(Self::domain_share(self.values.range(first..=last).count() as f64 - 1.0, values?))
            }
        }
    }
}

/// What is counted by how often it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Piece {
    /// Bits of both ends.
    Interval(u64, u64),
    Values(u32),
    Keys(u64, u64),
}

/// Losses of one column, by group and by row, that wait for their domain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnLoss {
    /// What the published rows show of the domain.
    pub domain: PublishedDomain,
    shares: (Sum, Sum),
    widths: (Total, Total),
    #[serde(with = "wire::pairs")]
    pieces: BTreeMap<Piece, (Sum, u64)>,
}

impl ColumnLoss {
    /// Adds what some rows of a group cover; they are `part` of the group.
    pub fn add_extent(&mut self, extent: Extent, part: f64, rows: u64) {
        let piece = match extent {
            Extent::Share(share) => {
                self.shares.0.add_fraction(share * part, 1);
                self.shares.1.add_fraction(share, rows);
                return;
            }
            Extent::Width(width) => {
                self.widths.0.add_number(width * part, 1);
                self.widths.1.add_number(width, rows);
                return;
            }
            Extent::Interval(lower, upper) => Piece::Interval(lower.to_bits(), upper.to_bits()),
            Extent::Values(values) => Piece::Values(values),
            Extent::Keys(first, last) => Piece::Keys(first, last),
        };
        let (groups, of_rows) = self.pieces.entry(piece).or_default();
        groups.add_fraction(part, 1);
        *of_rows += rows;
    }

    /// Adds the groups of another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.domain.merge(&other.domain);
        self.shares.0.merge(other.shares.0);
        self.shares.1.merge(other.shares.1);
        self.widths.0.merge(&other.widths.0);
        self.widths.1.merge(&other.widths.1);
        for (&piece, &(groups, rows)) in &other.pieces {
            let mine = self.pieces.entry(piece).or_default();
            mine.0.merge(groups);
            mine.1 += rows;
        }
    }

    /// The share of the domain that a unit of width, or one more value, is; `None` if the domain was not kept.
    pub fn share_per_unit(&self) -> Option<f64> {
        let whole = match self.domain.ends {
            Some(ends) => ends.max - ends.min,
            None if self.domain.overflow => return None,
            None => self.domain.values.len() as f64 - 1.0,
        };
        Some(if whole > 0.0 { whole.recip() } else { 0.0 })
    }

    /// The loss summed over groups, and over rows; `None` if the domain was not kept.
    pub fn sums(&self) -> Option<(f64, f64)> {
        let width = self.domain.width();
        let of_width = |total: &Total| if width > 0.0 { total.value() / width } else { 0.0 };
        let mut by_group = self.shares.0.value() + of_width(&self.widths.0);
        let mut by_row = self.shares.1.value() + of_width(&self.widths.1);
        for (&piece, &(groups, rows)) in &self.pieces {
            let share = self.domain.share_of(piece)?;
            by_group += share * groups.value();
            by_row += share * rows as f64;
        }
        Some((by_group, by_row))
    }
}

/// A sum of numbers of any size that does not depend on the order of its terms and rounds once, at the end: whole
/// multiples of powers of two, kept apart by power.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    #[serde(with = "wire::pairs")]
    by_power: BTreeMap<i16, Whole>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Whole(#[serde(with = "wire::halves")] u128);

/// Powers of two that are kept together.
const POWERS: i32 = 32;

impl Total {
    /// Adds a finite number `times` over.
    pub fn add_number(&mut self, number: f64, times: u64) {
        if number == 0.0 || !number.is_finite() || times == 0 {
            return;
        }
        let bits = number.to_bits();
        let (power, digits) = match (bits >> 52 & 0x7FF) as i32 {
            0 => (-1074, bits & ((1 << 52) - 1)),
            power => (power - 1075, bits & ((1 << 52) - 1) | 1 << 52),
        };
        let digits = i128::from(digits) << power.rem_euclid(POWERS);
        let signed = if number < 0.0 { -digits } else { digits };
        self.add_power(power.div_euclid(POWERS) as i16, signed.wrapping_mul(i128::from(times)));
    }

    fn add_power(&mut self, power: i16, number: i128) {
        let held = self.by_power.entry(power).or_default();
        held.0 = held.0.wrapping_add(number as u128);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        other.by_power.iter().for_each(|(&power, number)| self.add_power(power, number.0 as i128));
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        let term = |(&power, number): (&i16, &Whole)| (number.0 as i128) as f64 * 2_f64.powi(i32::from(power) * POWERS);
        self.by_power.iter().map(term).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(positions: &[f64]) -> ColumnLoss {
        let mut column = ColumnLoss::default();
        positions.iter().for_each(|&position| column.domain.add_position(position));
        column
    }

    #[test]
    fn widths_are_shares_of_what_is_published() {
        let mut column = line(&[20.0, 60.0, f64::NAN]);
        column.add_extent(Extent::Width(10.0), 1.0, 3);
        column.add_extent(Extent::Width(20.0), 1.0, 2);
        column.add_extent(Extent::Share(1.0), 1.0, 4);
        assert_eq!(column.sums(), Some((0.25 + 0.5 + 1.0, 0.75 + 1.0 + 4.0)));
        assert_eq!(line(&[7.0]).sums(), Some((0.0, 0.0)));
    }

    #[test]
    fn intervals_are_clipped_and_values_counted() {
        let mut ladder = line(&[22.0, 62.0]);
        ladder.add_extent(Extent::Interval(20.0, 30.0), 1.0, 5);
        ladder.add_extent(Extent::Interval(60.0, 80.0), 1.0, 5);
        assert_eq!(ladder.sums(), Some((0.2 + 0.05, 1.0 + 0.25)));
        let mut set = ColumnLoss::default();
        [1, 4, 5, 9, 11].into_iter().for_each(|key| set.domain.add_value(key));
        set.add_extent(Extent::Values(3), 1.0, 6);
        set.add_extent(Extent::Keys(4, 10), 0.5, 2);
        assert_eq!(set.sums(), Some((0.5 + 0.25, 3.0 + 1.0)));
    }

    #[test]
    fn too_many_values_give_no_figure() {
        let mut set = ColumnLoss::default();
        (0..=MAX_VALUES as u64).for_each(|key| set.domain.add_value(key));
        set.add_extent(Extent::Share(0.5), 1.0, 1);
        assert!(set.sums().is_some(), "a public domain needs no values");
        let mut other = ColumnLoss::default();
        other.add_extent(Extent::Values(2), 1.0, 1);
        other.merge(&set);
        assert_eq!(other.sums(), None);
    }

    proptest! {
        #[test]
        fn totals_are_exact_in_any_order(numbers in prop::collection::vec((any::<i32>(), -40..40_i32, 1..9_u64), 0..50), cut in 0..50_usize) {
            let sum = |numbers: &[(i32, i32, u64)]| {
                let mut total = Total::default();
                numbers.iter().for_each(|&(digits, power, times)| total.add_number(f64::from(digits) * 2_f64.powi(power), times));
                total
            };
            // Every term is a whole multiple of 2^-40.
            let exact: i128 = numbers
                .iter()
                .map(|&(digits, power, times)| (i128::from(digits) << (power + 40)) * i128::from(times))
                .sum();
            let (head, tail) = numbers.split_at(cut.min(numbers.len()));
            let mut merged = sum(tail);
            merged.merge(&sum(head));
            prop_assert_eq!(merged.value().to_bits(), sum(&numbers).value().to_bits());
            let terms = numbers.iter().map(|&(digits, power, times)| f64::from(digits).abs() * 2_f64.powi(power) * times as f64);
            let (expected, size) = (exact as f64 / 2_f64.powi(40), terms.sum::<f64>());
            prop_assert!((merged.value() - expected).abs() <= size * 1e-15, "{} {expected}", merged.value());
            let sent: Total = serde_json::from_str(&serde_json::to_string(&merged).unwrap()).unwrap();
            prop_assert_eq!(sent, merged);
        }
    }
}
