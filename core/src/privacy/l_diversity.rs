//! l-diversity: a group's sensitive values must be well mixed (Machanavajjhala et al.), in its three usual forms.

use std::sync::Arc;

use super::{RuleRecord, SensitiveRule, Setting};
use crate::faults::Fault;
use crate::model::Sensitive;

/// What "l well represented values" means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Diversity {
    /// At least `l` different values.
    Distinct {
        /// Fewest values.
        l: usize,
    },
    /// An entropy of at least ln(l): as mixed as `l` equally frequent values.
    Entropy {
        /// Fewest equally frequent values.
        l: f64,
    },
    /// The most frequent value occurs less than `c` times as often as the l-th, (l+1)-th, ... together.
    Recursive {
        /// Factor.
        c: f64,
        /// Rank, from 1, of the first value of the tail.
        l: usize,
    },
}

/// Asks every group for diversity on one sensitive column.
#[derive(Debug, Clone, PartialEq)]
pub struct LDiversity {
    /// The sensitive column.
    pub column: String,
    /// The form.
    pub kind: Diversity,
}

impl Diversity {
    /// How many values are asked for.
    pub fn l(&self) -> f64 {
        match *self {
            Self::Distinct { l } | Self::Recursive { l, .. } => l as f64,
            Self::Entropy { l } => l,
        }
    }

    /// Whether a group with this histogram of `(code, count)` is diverse enough.
    pub fn is_met_by(&self, histogram: &[(u32, u32)]) -> bool {
        match *self {
            Self::Distinct { l } => histogram.len() + usize::from(Fault::OneValueLess.is_planted()) >= l,
            Self::Entropy { l } => histogram_entropy(histogram) >= l.ln() - 1e-9,
            Self::Recursive { c, l } => is_recursively_diverse(histogram, c, l),
        }
    }

    /// How far a group that is not diverse enough is from it.
    fn excess(&self, histogram: &[(u32, u32)]) -> f64 {
        match *self {
            Self::Distinct { l } => (l as f64 - histogram.len() as f64) / l.max(1) as f64,
            Self::Entropy { l } => l.ln() - histogram_entropy(histogram),
            Self::Recursive { c, l } => {
                let counts = ranked_counts(histogram);
                let tail: f64 = counts.iter().skip(l.max(1) - 1).map(|&count| f64::from(count)).sum();
                let rows: f64 = counts.iter().map(|&count| f64::from(count)).sum();
                (f64::from(counts.first().copied().unwrap_or(0)) - c * tail) / rows.max(1.0)
            }
        }
    }
}

/// Entropy, in nats, of a histogram of `(code, count)`.
pub fn histogram_entropy(histogram: &[(u32, u32)]) -> f64 {
    let rows: f64 = histogram.iter().map(|&(_, count)| f64::from(count)).sum();
    let share = |count: u32| f64::from(count) / rows;
    -histogram.iter().filter(|&&(_, count)| count > 0).map(|&(_, n)| share(n) * share(n).ln()).sum::<f64>()
}

/// The counts of a histogram, the largest first.
pub fn ranked_counts(histogram: &[(u32, u32)]) -> Vec<u32> {
    let mut counts: Vec<u32> = histogram.iter().map(|&(_, count)| count).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// Recursive (c, l)-diversity of a histogram: r1 < c * (r_l + r_(l+1) + ...), r_i the i-th largest count.
pub fn is_recursively_diverse(histogram: &[(u32, u32)], c: f64, l: usize) -> bool {
    let counts = ranked_counts(histogram);
    let tail: f64 = counts.iter().skip(l.max(1) - 1).map(|&count| f64::from(count)).sum();
    counts.first().is_some_and(|&most| f64::from(most) < c * tail)
}

impl SensitiveRule for LDiversity {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        let record = RuleRecord::on_column("l-diversity", &self.column);
        match self.kind {
            Diversity::Distinct { l } => record.with_kind("distinct").with_parameter("l", l as f64),
            Diversity::Entropy { l } => record.with_kind("entropy").with_parameter("l", l),
            Diversity::Recursive { c, l } => {
                record.with_kind("recursive").with_parameter("c", c).with_parameter("l", l as f64)
            }
        }
    }

    fn breach(&self) -> String {
        let (l, column) = (self.kind.l(), &self.column);
        format!("do not hold enough variety of `{column}` (l = {l})")
    }

    fn allows_histogram(&self, histogram: &[(u32, u32)], _column: &Sensitive) -> bool {
        self.kind.is_met_by(histogram)
    }

    fn excess(&self, histogram: &[(u32, u32)], _column: &Sensitive) -> Option<f64> {
        Some(self.kind.excess(histogram))
    }

    fn survives_merging(&self) -> bool {
        true
    }

    fn ready(&self, _setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        Arc::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::{GroupView, Rule};

    #[test]
    fn loukides_g3_recursive_2_2_diversity() {
        let table = fixtures::table_3_1();
        let rule = LDiversity { column: "salary".into(), kind: Diversity::Recursive { c: 2.0, l: 2 } };
        assert!(!rule.is_met_by(&GroupView::new(&table, &[0, 1, 2, 3])));
        assert!(rule.is_met_by(&GroupView::new(&table, &[4, 5, 6, 7])));
    }

    #[test]
    fn recursive_diversity_is_strict() {
        assert!(!is_recursively_diverse(&[(0, 2), (1, 1)], 2.0, 2));
        assert!(is_recursively_diverse(&[(0, 2), (1, 1)], 2.1, 2));
        assert!(!is_recursively_diverse(&[(0, 2), (1, 2)], 9.0, 3), "too few values for a tail");
        assert!(!is_recursively_diverse(&[], 2.0, 1));
    }

    #[test]
    fn entropy_counts_equally_frequent_values() {
        assert!(Diversity::Entropy { l: 3.0 }.is_met_by(&[(1, 4), (5, 4), (9, 4)]));
        assert!(!Diversity::Entropy { l: 3.0 }.is_met_by(&[(1, 4), (5, 4), (9, 5)]));
        assert!(!Diversity::Distinct { l: 3 }.is_met_by(&[(1, 4), (5, 4)]));
        assert!(Diversity::Distinct { l: 2 }.is_met_by(&[(1, 4), (5, 4)]));
    }
}
