//! (alpha, k)-anonymity: no sensitive value may make up more than a share alpha of a group (Wong et al.; in the general
//! form, for every value). With alpha = 1/l it is the frequency form of l-diversity that Anatomy asks for.
//!
//! The survey of Loukides describes it by a number of distinct values (erratum E10); it is a bound on the share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, SensitiveRule, Setting, within};
use crate::domain::Sensitive;

/// (alpha, k)-anonymity: no value of a sensitive column is common in any group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AlphaK {
    /// The sensitive column.
    pub column: String,
    /// The largest share of a group that may hold the same value.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
}

/// The share of the commonest value of a group; 0 of no rows.
pub fn largest_share(histogram: Histogram<'_>) -> f64 {
    let rows: f64 = histogram.iter().map(|&(_, count)| f64::from(count)).sum();
    histogram.iter().map(|&(_, count)| f64::from(count) / rows).fold(0.0, f64::max)
}

impl SensitiveRule for AlphaK {
    fn column(&self) -> &str {
        &self.column
    }

    fn describe(&self) -> String {
        format!("alpha-k of {}, alpha = {}", self.column, self.alpha)
    }

    fn breach(&self) -> String {
        format!("hold the same value of `{}` in a share of more than alpha = {}", self.column, self.alpha)
    }

    fn allows(&self, histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        within(largest_share(histogram), self.alpha)
    }

    fn flaws(&self, _levels: Option<&crate::hierarchy::LevelTree>) -> Vec<Flaw> {
        Flaw::no_share("alpha", self.alpha).into_iter().collect()
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
    use crate::method::fixtures;

    #[test]
    fn loukides_erratum_e10_alpha_bounds_a_share() {
        let column = fixtures::income(&[1.0, 2.0], &[]);
        let rule = |alpha| AlphaK { column: "income".into(), alpha };
        assert!(rule(0.5).allows(&[(0, 2), (1, 2)], &column));
        assert!(!rule(0.5).allows(&[(0, 3), (1, 2)], &column));
        assert!(rule(0.6).allows(&[(0, 3), (1, 2)], &column));
        assert_eq!(largest_share(&[]), 0.0);
        assert_eq!(rule(0.0).flaws(None).len() + rule(1.5).flaws(None).len() + rule(1.0).flaws(None).len(), 2);
    }
}
