//! Exact shares: how many of all possible worlds hold a person, as a fraction of whole numbers.

use std::cmp::Ordering;

use num_bigint::BigUint;

/// A fraction of whole numbers. Equal fractions are equal however they are written.
#[derive(Debug, Clone)]
pub struct Fraction {
    part: BigUint,
    whole: BigUint,
}

impl Fraction {
    /// `part` of `whole`; nothing of nothing is 0.
    pub fn new(part: impl Into<BigUint>, whole: impl Into<BigUint>) -> Self {
        let (part, whole) = (part.into(), whole.into());
        if whole == BigUint::ZERO {
            Self { part: BigUint::ZERO, whole: BigUint::from(1_u8) }
        } else {
            Self { part, whole }
        }
    }

    /// The fraction that a decimal number stands for: 0.1 is one tenth, although the nearest binary number is not.
    pub fn from_decimal(number: f64) -> Self {
        let text = format!("{number}");
        let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{whole}{places}").parse::<BigUint>().unwrap_or_default();
        Self::new(digits, BigUint::from(10_u8).pow(places.len() as u32))
    }

    /// 0.
    pub fn zero() -> Self {
        Self::new(0_u8, 1_u8)
    }

    /// 1.
    pub fn one() -> Self {
        Self::new(1_u8, 1_u8)
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.part == BigUint::ZERO
    }

    /// Whether it is 1.
    pub fn is_one(&self) -> bool {
        self.part == self.whole
    }

    /// The nearest number.
    pub fn to_f64(&self) -> f64 {
        let shift = self.whole.bits().saturating_sub(96);
        let number = |big: &BigUint| {
            (big >> shift).iter_u64_digits().rev().fold(0.0, |sum, digit| sum * 2_f64.powi(64) + digit as f64)
        };
        number(&self.part) / number(&self.whole)
    }
}

impl From<(u64, u64)> for Fraction {
    fn from((part, whole): (u64, u64)) -> Self {
        Self::new(part, whole)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.part * &other.whole).cmp(&(&other.part * &self.whole))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

/// What the chance to be in the private table must lie between, both ends allowed (delta-presence, Nergiz et al.).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    min: Fraction,
    max: Fraction,
    /// The ends as fractions of small numbers, when they are: tested for every cut, so it must be quick.
    small: Option<[u64; 4]>,
}

impl Bounds {
    /// Bounds written as decimal numbers between 0 and 1.
    pub fn new(min: f64, max: f64) -> Self {
        let (min, max) = (Fraction::from_decimal(min), Fraction::from_decimal(max));
        let small = [&min.part, &min.whole, &max.part, &max.whole].map(|big| u64::try_from(big).ok());
        let small = match small {
            [Some(a), Some(b), Some(c), Some(d)] => Some([a, b, c, d]),
            _ => None,
        };
        Self { min, max, small }
    }

    /// The lower end.
    pub fn min(&self) -> &Fraction {
        &self.min
    }

    /// The upper end.
    pub fn max(&self) -> &Fraction {
        &self.max
    }

    /// Whether a share lies within.
    pub fn contains_fraction(&self, share: &Fraction) -> bool {
        self.min <= *share && *share <= self.max
    }

    /// Whether `part` of `whole` lies within; nothing of nothing does, because nobody is concerned.
    pub fn allow_counts(&self, part: u64, whole: u64) -> bool {
        if whole == 0 {
            return true;
        }
        let Some([a, b, c, d]) = self.small else { return self.contains_fraction(&Fraction::new(part, whole)) };
        let times = |x: u64, y: u64| u128::from(x) * u128::from(y);
        times(a, whole) <= times(part, b) && times(part, d) <= times(c, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_bounds_are_met_exactly() {
        let bounds = Bounds::new(0.1, 0.9);
        assert!(bounds.allow_counts(1, 10) && bounds.allow_counts(9, 10));
        assert!(
            bounds.contains_fraction(&Fraction::new(3_u8, 30_u8))
                && bounds.contains_fraction(&Fraction::new(27_u8, 30_u8))
        );
        assert!(!bounds.allow_counts(99_999_999, 1_000_000_000) && !bounds.allow_counts(900_000_001, 1_000_000_000));
        assert!(bounds.allow_counts(0, 0), "nobody is concerned");
        assert!(Bounds::new(0.0, 1.0).allow_counts(0, 7) && Bounds::new(0.0, 1.0).allow_counts(7, 7));
    }

    #[test]
    fn decimals_are_what_they_are_written_as() {
        assert_eq!(Fraction::from_decimal(0.1), Fraction::new(1_u8, 10_u8));
        assert_eq!(Fraction::from_decimal(1.0), Fraction::one());
        assert_eq!(Fraction::from_decimal(1e-7), Fraction::new(1_u8, 10_000_000_u32));
        assert!(
            (Fraction::new(BigUint::from(3_u8).pow(400), BigUint::from(3_u8).pow(401)).to_f64() - 1.0 / 3.0).abs()
                < 1e-12
        );
    }
}
