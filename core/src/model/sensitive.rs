//! A sensitive column as rules and protection measures see it: codes, how far apart they are, and the range around
//! each value that its disclosure would reveal.

use std::sync::Arc;

use super::{Shares, Tree};

/// How sensitive values relate.
#[derive(Debug, Clone, PartialEq)]
pub enum SensitiveShape {
    /// Numbers: the position of every code, ascending, and the domain's ends (declared or surveyed).
    Number {
        /// Position by code, ascending; NaN, which is one value, last. Different values may share a position.
        at: Vec<f64>,
        /// Smallest value of the domain.
        min: f64,
        /// Largest value of the domain.
        max: f64,
    },
    /// Values with a hierarchy.
    Tree(Tree),
    /// Categories without one.
    Set {
        /// Size of the domain.
        values: u32,
    },
}

/// One sensitive column of a [`Table`](super::Table).
#[derive(Debug, Clone)]
pub struct Sensitive {
    /// Column name.
    pub name: String,
    /// Code of every row. Codes are equal where values are, exactly.
    pub codes: Vec<u32>,
    /// How codes relate.
    pub shape: SensitiveShape,
    /// The code of null, when the column holds any.
    pub null: Option<u32>,
    /// The sensitive range of every code as an interval of codes that holds it; empty: every value is its own range.
    pub ranges: Vec<(u32, u32)>,
    /// How often every code occurs in the whole table, when a rule compares groups with it.
    pub shares: Option<Arc<Shares>>,
}

impl Sensitive {
    /// Spread in `[0, 1]` of a set of codes, given its extremes and its number of distinct codes: 1 minus S-diversity.
    pub fn spread(&self, lo: u32, hi: u32, distinct: u32) -> f64 {
        if lo == hi {
            return 0.0;
        }
        if self.null == Some(lo) || self.null == Some(hi) {
            return 1.0;
        }
        match &self.shape {
            // NaN is as far from every number as null is.
            SensitiveShape::Number { at, .. } if at[hi as usize].is_nan() => 1.0,
            SensitiveShape::Number { at, min, max } if max > min => {
                let share = (at[hi as usize] - at[lo as usize]) / (max - min);
                if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) }
            }
            SensitiveShape::Number { .. } => 0.0,
            SensitiveShape::Tree(tree) => tree.loss(lo as u16, hi as u16),
            SensitiveShape::Set { values } => f64::from(distinct - 1) / f64::from(values.saturating_sub(1).max(1)),
        }
    }

    /// Pairwise contribution of two values: 1 for equal ones, near 1 for close ones (Loukides, def. 5.1.2).
    pub fn closeness(&self, u: u32, v: u32) -> f64 {
        1.0 - self.spread(u.min(v), u.max(v), 2)
    }

    /// Whether `v` lies in the sensitive range of `u`.
    pub fn in_range(&self, u: u32, v: u32) -> bool {
        match self.ranges.get(u as usize) {
            Some((lo, hi)) => (*lo..=*hi).contains(&v),
            None => u == v,
        }
    }
}
