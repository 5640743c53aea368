//! Calendar ladders: dates and timestamps by day, month, quarter, year and decade.
//!
//! A moment is a number of days since 1970-01-01 (UTC, proleptic Gregorian); a timestamp has a fraction.

use std::fmt;

use super::HierarchyError;
use super::buckets::{self, Domain};
use super::civil::{date_of, day_of};
use crate::model::{Code, Tree};

/// A calendar unit, ascending; each divides the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// A day.
    Day,
    /// A month.
    Month,
    /// Three months from January, April, July or October.
    Quarter,
    /// A year.
    Year,
    /// Ten years from one that ends in 0.
    Decade,
}

/// Days beyond which dates are not distinguished: some 5 million years either way.
const FURTHEST_DAY: f64 = 2e9;

/// One unit of the calendar: a certain day, month, quarter, year or decade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// What it is.
    pub unit: Unit,
    /// Its first day, counted from 1970-01-01.
    pub start: i64,
    /// The first day after it.
    pub end: i64,
}

impl Period {
    /// The period of a unit that holds a moment.
    pub fn period_at(unit: Unit, moment: f64) -> Self {
        let day = moment.clamp(-FURTHEST_DAY, FURTHEST_DAY).floor() as i64;
        let (year, month, _) = date_of(day);
        match unit {
            Unit::Day => Self { unit, start: day, end: day + 1 },
            Unit::Month => Self::from_months(unit, year, month, 1),
            Unit::Quarter => Self::from_months(unit, year, (month - 1) / 3 * 3 + 1, 3),
            Unit::Year => Self::from_months(unit, year, 1, 12),
            Unit::Decade => Self::from_months(unit, year.div_euclid(10) * 10, 1, 120),
        }
    }

    fn from_months(unit: Unit, year: i64, month: i64, count: i64) -> Self {
        let after = month - 1 + count;
        Self { unit, start: day_of(year, month, 1), end: day_of(year + after / 12, after % 12 + 1, 1) }
    }

    /// Whether a moment lies inside.
    pub fn contains(&self, moment: f64) -> bool {
        self.start as f64 <= moment && moment < self.end as f64
    }

    /// Reads a label back.
    pub fn parse(label: &str) -> Option<Self> {
        let (sign, digits) = label.strip_prefix('-').map_or((1, label), |digits| (-1, digits));
        let number = |text: &str| -> Option<i64> {
            let plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse().ok()).flatten()
        };
        let year = |text: &str| number(text).map(|year| sign * year);
        let mut parts = digits.split('-');
        let period = match (parts.next()?, parts.next(), parts.next()) {
            (first, None, None) => match first.strip_suffix('s') {
                Some(decade) => Self::period_at(Unit::Decade, day_of(year(decade)?, 1, 1) as f64),
                None => Self::from_months(Unit::Year, year(first)?, 1, 12),
            },
            (first, Some(second), None) => match second.strip_prefix('Q') {
                Some(quarter) => {
                    Self::from_months(Unit::Quarter, year(first)?, number(quarter)?.checked_sub(1)? * 3 + 1, 3)
                }
                None => Self::from_months(Unit::Month, year(first)?, number(second)?, 1),
            },
            (first, Some(second), Some(third)) => {
                let start = day_of(year(first)?, number(second)?, number(third)?);
                Self { unit: Unit::Day, start, end: start + 1 }
            }
            _ => return None,
        };
        // A month 13 or a decade that begins in 2021 has another label than the one that was read.
        (parts.next().is_none() && period.to_string() == label).then_some(period)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.start);
        let (sign, digits) = (if year < 0 { "-" } else { "" }, year.abs());
        match self.unit {
            Unit::Day => write!(f, "{sign}{digits:04}-{month:02}-{day:02}"),
            Unit::Month => write!(f, "{sign}{digits:04}-{month:02}"),
            Unit::Quarter => write!(f, "{sign}{digits:04}-Q{}", (month - 1) / 3 + 1),
            Unit::Year => write!(f, "{sign}{digits:04}"),
            Unit::Decade => write!(f, "{sign}{digits:04}s"),
        }
    }
}

/// Nested calendar units, finest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    units: Vec<Unit>,
}

impl Calendar {
    /// Creates a ladder of the given units, which must ascend.
    pub fn new(units: &[Unit]) -> Result<Self, HierarchyError> {
        if units.is_empty() {
            return Err(HierarchyError::Levels("calendar: at least one unit is needed".to_owned()));
        }
        if units.windows(2).any(|pair| pair[0] >= pair[1]) {
            let message = "calendar: units must ascend: day, month, quarter, year, decade";
            return Err(HierarchyError::Levels(message.to_owned()));
        }
        Ok(Self { units: units.to_vec() })
    }

    /// Returns the units, finest first.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The shortest period of the ladder that holds both moments and so all between them; none: only the top does.
    pub fn cover_moments(&self, min: f64, max: f64) -> Option<Period> {
        let fits = |period: &Period| period.contains(min) && period.contains(max);
        self.units.iter().map(|&unit| Period::period_at(unit, min)).find(fits)
    }

    /// The tree over codes for moments `min..=max` with `codes` codes, and one more for null when asked for.
    ///
    /// `code_of` answers the code of the first moment that is not before the given one. Loss is the share of the
    /// domain that a period holds.
    pub fn to_tree(&self, min: f64, max: f64, code_of: impl Fn(f64) -> Code, codes: usize, null: bool) -> Tree {
        let domain = Domain { min, max, codes, null, code_of };
        let levels = self.units.iter().map(|&unit| {
            let days = match unit {
                Unit::Day => 1.0,
                Unit::Month => 28.0,
                Unit::Quarter => 90.0,
                Unit::Year => 365.0,
                Unit::Decade => 3652.0,
            };
            let bucket = move |moment| {
                let period = Period::period_at(unit, moment);
                (period.start as f64, period.end as f64)
            };
            (days, bucket)
        });
        buckets::build_tree(&domain, levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(year: i64, month: i64, day: i64) -> f64 {
        day_of(year, month, day) as f64
    }

    fn all() -> Calendar {
        Calendar::new(&[Unit::Day, Unit::Month, Unit::Quarter, Unit::Year, Unit::Decade]).unwrap()
    }

    fn label(min: f64, max: f64) -> String {
        all().cover_moments(min, max).map_or("*".to_owned(), |period| period.to_string())
    }

    #[test]
    fn the_shortest_period_that_holds_both_ends() {
        assert_eq!(label(day(2024, 3, 7), day(2024, 3, 7) + 0.999), "2024-03-07");
        assert_eq!(label(day(2024, 3, 7), day(2024, 3, 31)), "2024-03");
        assert_eq!(label(day(2024, 1, 1), day(2024, 3, 31) + 0.5), "2024-Q1");
        assert_eq!(label(day(2024, 3, 31), day(2024, 4, 1)), "2024");
        assert_eq!(label(day(2020, 1, 1), day(2029, 12, 31)), "2020s");
        assert_eq!(label(day(2019, 12, 31), day(2020, 1, 1)), "*");
    }

    #[test]
    fn leap_years_and_years_before_1970() {
        assert_eq!(label(day(2024, 2, 29), day(2024, 2, 1)), "2024-02");
        assert_eq!(Period::period_at(Unit::Month, day(2023, 2, 28)).end - day_of(2023, 2, 1), 28);
        assert_eq!(Period::period_at(Unit::Month, day(2000, 2, 28)).end - day_of(2000, 2, 1), 29);
        assert_eq!(Period::period_at(Unit::Month, day(1900, 2, 28)).end - day_of(1900, 2, 1), 28);
        assert_eq!(Period::period_at(Unit::Year, day(1968, 6, 1)).end - day_of(1968, 1, 1), 366);
        assert_eq!(label(-0.25, -0.5), "1969-12-31");
        assert_eq!(label(day(1961, 1, 1), day(1969, 12, 31)), "1960s");
    }

    #[test]
    fn years_before_zero() {
        assert_eq!(label(day(-44, 3, 15), day(-44, 3, 15)), "-0044-03-15");
        assert_eq!(label(day(-44, 3, 15), day(-41, 3, 15)), "-0050s");
        assert_eq!(label(day(5, 1, 1), day(6, 1, 1)), "0000s");
    }

    #[test]
    fn labels_are_read_back() {
        for text in ["2024-03-07", "2024-03", "2024-Q4", "2024", "2020s", "-0044-03", "-0050s", "0000s", "12024-12-31"]
        {
            assert_eq!(Period::parse(text).unwrap().to_string(), text);
        }
        for text in
            ["2024-13", "2023-02-29", "2024-Q5", "2024-Q0", "2021s", "24", "2024-3", "", "*", "2024-03-07-1", "-"]
        {
            assert_eq!(Period::parse(text), None, "{text}");
        }
    }

    #[test]
    fn tree_over_days() {
        let (min, max) = (day(2023, 1, 1), day(2024, 12, 31));
        let codes = (max - min) as usize + 1;
        let calendar = Calendar::new(&[Unit::Month, Unit::Year]).unwrap();
        let tree = calendar.to_tree(min, max, |moment| (moment - min) as Code, codes, false);
        assert_eq!(tree.nodes().len(), 1 + 2 + 24);
        assert_eq!(tree.loss(0, 30), 31.0 / 730.0);
        assert_eq!(tree.loss(30, 31), 365.0 / 730.0);
        assert_eq!(tree.loss(364, 365), 1.0);
    }

    #[test]
    fn units_must_ascend() {
        let message = Calendar::new(&[Unit::Year, Unit::Month]).unwrap_err().to_string();
        assert_eq!(message, "calendar: units must ascend: day, month, quarter, year, decade");
        assert!(Calendar::new(&[Unit::Year, Unit::Year]).is_err());
        assert!(Calendar::new(&[]).is_err());
    }
}
