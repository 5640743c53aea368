//! From nested buckets of numbers to a tree over codes: shared by ladders and calendars.

use std::collections::HashMap;

use crate::model::{Code, Tree};

/// Buckets of one level that the search sees; a finer level does not steer it.
const MAX_BUCKETS: f64 = 262_144.0;

/// The values an axis holds, and how they are coded.
pub(super) struct Domain<F> {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of codes of values.
    pub codes: usize,
    /// Whether one more code, the largest, stands for null.
    pub null: bool,
    /// The code of the first value that is not below the given one; ascending.
    pub code_of: F,
}

/// Builds the tree. `levels` gives for every level the width of its buckets (or a lower bound of it) and the bucket
/// `[lower, upper)` that holds a value.
pub(super) fn build_tree<F, B>(domain: &Domain<F>, levels: impl IntoIterator<Item = (f64, B)>) -> Tree
where
    F: Fn(f64) -> Code,
    B: Fn(f64) -> (f64, f64),
{
    let Domain { min, max, codes, null, ref code_of } = *domain;
    let mut spans = Vec::new();
    if codes > 1 {
        spans.push((0, (codes - 1) as Code, 1.0));
    }
    // The finest level that each bucket belongs to.
    let mut level_of = HashMap::new();
    let mut top = 1;
    for (width, bucket) in levels {
        let level = top;
        top += 1;
        let domain = max - min;
        if !domain.is_finite() || domain <= 0.0 || domain / width > MAX_BUCKETS {
            continue;
        }
        let mut at = min;
        while at <= max {
            let (lower, upper) = bucket(at);
            let first = if lower <= min { 0 } else { code_of(lower) };
            let end = if upper > max { codes as u32 } else { u32::from(code_of(upper)) };
            if end > u32::from(first) {
                let loss = (upper.min(max) - lower.max(min)) / domain;
                spans.push((first, (end - 1) as Code, loss.clamp(0.0, 1.0)));
                level_of.entry((first, (end - 1) as Code)).or_insert(level);
            }
            if upper <= at {
                break;
            }
            at = upper;
        }
    }
    let tree = Tree::new(codes.max(1) + usize::from(null), spans);
    tree.with_steps(|lo, hi| level_of.get(&(lo, hi)).copied().unwrap_or(top))
}
