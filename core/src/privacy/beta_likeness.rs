//! beta-likeness (Cao and Karras): the share q of a sensitive value in a group may exceed its share p in the table by at
//! most beta times p. A value that becomes rarer reveals little and is not bounded.
//!
//! Basic: (q - p) / p <= beta. Enhanced: (q - p) / p <= min(beta, -ln p), which keeps common values from becoming
//! certain however large beta is. The rule asks this of every value, as ARX does: no beta meets it where some value
//! exceeds its -ln p, and otherwise the basic beta does. (pycanon reports the smaller of the
//! basic beta and the largest -ln p, with which the rule need not hold.)

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, Needs, RESERVE, RuleRecord, SensitiveRule, Setting, is_within_bound};
use crate::hierarchy::LevelTree;
use crate::model::{Sensitive, Shares};

/// beta-likeness: no sensitive value is much more common in a group than in the whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BetaLikeness {
    /// The sensitive column.
    pub column: String,
    /// How much more common, relative to the share in the table.
    #[schemars(range(min = 0.0))]
    pub beta: f64,
    /// Whether common values are bounded further.
    #[serde(default)]
    pub kind: Likeness,
}

/// The forms of beta-likeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// (q - p) / p is at most beta.
    #[default]
    Basic,
    /// (q - p) / p is at most beta, and at most -ln p.
    Enhanced,
}

/// (q - p) / p and p of every value of a group.
fn likeness_gains<'a>(histogram: Histogram<'a>, table: &'a Shares) -> impl Iterator<Item = (f64, f64)> + 'a {
    let rows: f64 = histogram.iter().map(|&(_, count)| f64::from(count)).sum();
    histogram.iter().map(move |&(code, count)| {
        let share = table.share_of(code);
        ((f64::from(count) / rows - share) / share, share)
    })
}

impl SensitiveRule for BetaLikeness {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        let kind = match self.kind {
            Likeness::Basic => "basic",
            Likeness::Enhanced => "enhanced",
        };
        RuleRecord::on_column("beta-likeness", &self.column).with_kind(kind).with_parameter("beta", self.beta)
    }

    fn breach(&self) -> String {
        format!("hold a value of `{}` more often than beta = {} allows", self.column, self.beta)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool {
        let Some(table) = &column.shares else { return false };
        likeness_gains(histogram, table).all(|(gain, share)| {
            let bound = match self.kind {
                Likeness::Basic => self.beta,
                Likeness::Enhanced => self.beta.min(-share.ln()),
            };
            is_within_bound(gain, bound)
        })
    }

    fn excess(&self, histogram: Histogram<'_>, column: &Sensitive) -> Option<f64> {
        let table = column.shares.as_ref()?;
        let excess = likeness_gains(histogram, table).map(|(gain, share)| match self.kind {
            Likeness::Basic => gain - self.beta,
            Likeness::Enhanced => gain - self.beta.min(-share.ln()),
        });
        Some(excess.map(|excess| excess.max(0.0)).sum())
    }

    fn needs(&self) -> Needs {
        Needs { table: true, ..Needs::default() }
    }

    fn flaws(&self, _levels: Option<&LevelTree>) -> Vec<Flaw> {
        Flaw::not_above("beta", self.beta, 0.0).into_iter().collect()
    }

    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        let kept = if setting.reserve { 1.0 - RESERVE } else { 1.0 };
        Arc::new(Self { beta: self.beta * kept, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn rare_values_may_grow_by_beta_and_common_ones_by_less() {
        let column = fixtures::income(&[1.0, 1.0, 1.0, 2.0], &[]);
        let halves = [(0, 1), (1, 1)];
        let rule = |beta, kind| BetaLikeness { column: "income".into(), beta, kind };
        // 1/2 instead of 1/4 is more by a factor of 1.
        assert!(rule(1.0, Likeness::Basic).allows_histogram(&halves, &column));
        assert!(!rule(0.99, Likeness::Basic).allows_histogram(&halves, &column));
        // The common value alone: (1 - 3/4) / (3/4) = 1/3 is more than -ln(3/4) = 0.288.
        assert!(rule(1.0, Likeness::Basic).allows_histogram(&[(0, 4)], &column));
        assert!(!rule(1.0, Likeness::Enhanced).allows_histogram(&[(0, 4)], &column));
        assert!(rule(1.0, Likeness::Enhanced).allows_histogram(&halves, &column), "-ln(1/4) = 1.386");
        // No beta allows what -ln p does not.
        assert!(!rule(f64::MAX, Likeness::Enhanced).allows_histogram(&[(0, 4)], &column));
    }
}
