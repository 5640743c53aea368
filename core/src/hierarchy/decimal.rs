//! Decimal numbers whose every digit counts, for values that a double cannot hold.

use std::cmp::Ordering;
use std::fmt;

/// The number `digits / 10^scale`.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// All its digits.
    pub digits: i128,
    /// How many of them come after the point.
    pub scale: u32,
}

impl Decimal {
    /// The decimal that a double is written as; `None` if it has more than 38 digits or is not finite.
    pub fn from_f64(number: f64) -> Option<Self> {
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        Some(Self { digits: format!("{whole}{fraction}").parse().ok()?, scale: fraction.len() as u32 })
    }

    /// Its digits with so many after the point, which must not be fewer than it has; `None` if they are too many.
    pub fn digits_at(&self, scale: u32) -> Option<i128> {
        self.digits.checked_mul(10_i128.checked_pow(scale.checked_sub(self.scale)?)?)
    }

    /// The double next to it.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        match (self.digits_at(scale), other.digits_at(scale)) {
            (Some(a), Some(b)) => a.cmp(&b),
            // One of them is so much longer that it is the larger one, or the smaller one if it is negative.
            (None, _) => self.digits.cmp(&0),
            (_, None) => 0.cmp(&other.digits),
        }
    }
}

/// As people write it, without zeros at the end.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let width = self.scale as usize + 1;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs());
        let (whole, fraction) = digits.split_at(digits.len() - self.scale as usize);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            fraction => write!(f, "{sign}{whole}.{fraction}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_and_compared_by_all_digits() {
        let decimal = |digits, scale| Decimal { digits, scale };
        for (digits, scale, text) in [(0, 3, "0"), (-5, 1, "-0.5"), (1250, 2, "12.5"), (100, 0, "100"), (7, 3, "0.007")]
        {
            assert_eq!(decimal(digits, scale).to_string(), text);
        }
        assert_eq!(Decimal::from_f64(0.1), Some(decimal(1, 1)));
        assert_eq!(Decimal::from_f64(1e17), Some(decimal(10_i128.pow(17), 0)));
        assert_eq!((Decimal::from_f64(1e300), Decimal::from_f64(f64::NAN)), (None, None));
        let long = 10_i128.pow(37);
        assert!(decimal(long, 0) < decimal(long + 1, 0) && decimal(long, 37) == decimal(1, 0));
        assert!(decimal(long, 0) > decimal(1, 20) && decimal(-long, 0) < decimal(1, 20));
        assert!(decimal(1, 20) < decimal(long, 0) && decimal(-1, 20) > decimal(-long, 0));
    }
}
