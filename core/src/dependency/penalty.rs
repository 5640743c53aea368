//! The entropy penalty of a generalised value (formula 3.1) and the distance of two values (definition 6).
//!
//! With P the frequency of values in the original table, publishing v instead of a value below it gives away
//! E(v) = P(v) * H(A | v): nothing at a leaf, all of H(A) at the top, and nothing at a node below which only one value
//! occurs. E(v) = P(v) ln P(v) - sum of P(b) ln P(b) over the values b below v, so with running sums the penalty of any
//! interval of codes takes one step.

use crate::model::{Axis, Code, Cover, MAX_SET_VALUES, Shape};

/// Penalties of one axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Penalty {
    /// Sum of P(b) of all codes below each code.
    shares: Vec<f64>,
    /// Sum of P(b) ln P(b) of all codes below each code.
    terms: Vec<f64>,
}

/// A published value: the codes below it, and its penalty as a share of the top's.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    lo: Code,
    hi: Code,
    /// The codes of a set; none: all from `lo` to `hi`.
    set: Option<Box<[Code]>>,
    /// E(v) / H(A), in `[0, 1]`.
    pub cost: f64,
}

impl Penalty {
    /// Penalties of an axis whose codes occur this often.
    pub fn new(counts: &[u64]) -> Self {
        let total = counts.iter().sum::<u64>() as f64;
        let (mut shares, mut terms) = (vec![0.0], vec![0.0]);
        let (mut share, mut term) = (0.0, 0.0);
        for &count in counts {
            let p = if total > 0.0 { count as f64 / total } else { 0.0 };
            share += p;
            term += p_log_p(p);
            shares.push(share);
            terms.push(term);
        }
        Self { shares, terms }
    }

    /// H(A), in nats: the penalty of the top.
    pub fn entropy(&self) -> f64 {
        -self.terms.last().copied().unwrap_or(0.0)
    }

    /// E of the value over all codes from `lo` to `hi`, in nats.
    pub fn of_interval(&self, lo: Code, hi: Code) -> f64 {
        let last = self.shares.len().saturating_sub(1);
        let (from, until) = (usize::from(lo).min(last), (usize::from(hi) + 1).min(last));
        if last == 0 || lo == hi {
            return 0.0;
        }
        let share = self.shares[until] - self.shares[from];
        (p_log_p(share) - (self.terms[until] - self.terms[from])).max(0.0)
    }

    /// E of a set of codes, in nats.
    fn of_set(&self, codes: &[Code]) -> f64 {
        let at = |code: Code| usize::from(code).min(self.shares.len().saturating_sub(2));
        if codes.len() < 2 || self.shares.len() < 2 {
            return 0.0;
        }
        let sum = |of: &[f64]| codes.iter().map(|&code| of[at(code) + 1] - of[at(code)]).sum::<f64>();
        (p_log_p(sum(&self.shares)) - sum(&self.terms)).max(0.0)
    }

    /// What a cover publishes on an axis.
    pub fn published_value(&self, axis: &Axis, cover: &Cover, a: usize) -> Value {
        let (lo, hi) = (cover.lo[a], cover.hi[a]);
        let top = (0, Code::MAX);
        let ((lo, hi), set): (_, Option<Box<[Code]>>) = match &axis.shape {
            // A value that the hierarchy does not know is published as the top.
            Shape::Tree(tree) if lo == hi && tree.loss(lo, hi) > 0.0 => (top, None),
            _ if lo >= hi => ((lo, hi), None),
            _ if axis.null == Some(hi) => (top, None),
            Shape::Line { .. } => ((lo, hi), None),
            Shape::Tree(tree) => match tree.common_ancestor(lo, hi) {
                Some(0) | None => (top, None),
                Some(node) => {
                    let node = &tree.nodes()[node as usize];
                    ((node.lo, node.hi), None)
                }
            },
            Shape::Set { .. } if cover.count_distinct(a) > MAX_SET_VALUES => (top, None),
            Shape::Set { .. } => ((lo, hi), Some(cover.codes(a).into())),
        };
        let penalty = match &set {
            Some(codes) => self.of_set(codes),
            None => self.of_interval(lo, hi),
        };
        let entropy = self.entropy();
        Value { lo, hi, set, cost: if entropy > 0.0 { (penalty / entropy).min(1.0) } else { 0.0 } }
    }
}

fn p_log_p(p: f64) -> f64 {
    if p > 0.0 { p * p.ln() } else { 0.0 }
}

impl Value {
    /// An original value.
    pub fn from_code(code: Code) -> Self {
        Self { lo: code, hi: code, set: None, cost: 0.0 }
    }

    /// The top, which covers everything.
    pub fn top() -> Self {
        Self { lo: 0, hi: Code::MAX, set: None, cost: 1.0 }
    }

    /// Whether the value covers a code.
    pub fn covers(&self, code: Code) -> bool {
        self.lo <= code && code <= self.hi && self.set.as_ref().is_none_or(|set| set.binary_search(&code).is_ok())
    }

    /// The distance of an original value: what generalising it to this value gives away, or 1 when this value does not
    /// cover it.
    pub fn distance(&self, code: Code) -> f64 {
        if self.covers(code) { self.cost } else { 1.0 }
    }

    /// The distance of two values: the difference of their penalties when one lies within the other, else 1.
    pub fn distance_to(&self, other: &Self) -> f64 {
        if self.is_within(other) || other.is_within(self) { (self.cost - other.cost).abs() } else { 1.0 }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (&self.set, &other.set) {
            (_, None) => other.lo <= self.lo && self.hi <= other.hi,
            (Some(codes), Some(_)) => codes.iter().all(|&code| other.covers(code)),
            (None, Some(_)) => self.lo == self.hi && other.covers(self.lo),
        }
    }
}
