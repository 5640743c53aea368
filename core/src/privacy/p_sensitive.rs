//! p-sensitive k-anonymity: at least p different sensitive values in every group (Truta and Vinay). The same as distinct
//! l-diversity; it has its own name because people know it by that.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, RuleRecord, SensitiveRule, Setting};
use crate::model::Sensitive;

/// p-sensitive k-anonymity: every group holds at least p different values of a sensitive column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PSensitive {
    /// The sensitive column.
    pub column: String,
    /// Fewest different values.
    #[schemars(range(min = 2))]
    pub p: u32,
}

impl SensitiveRule for PSensitive {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        RuleRecord::on_column("p-sensitive", &self.column).with_parameter("p", f64::from(self.p))
    }

    fn breach(&self) -> String {
        format!("hold fewer than p = {} different values of `{}`", self.p, self.column)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        histogram.len() >= self.p as usize
    }

    fn excess(&self, histogram: Histogram<'_>, _column: &Sensitive) -> Option<f64> {
        Some((f64::from(self.p) - histogram.len() as f64) / f64::from(self.p))
    }

    fn flaws(&self, _levels: Option<&crate::hierarchy::LevelTree>) -> Vec<Flaw> {
        Flaw::not_above("p", f64::from(self.p), 1.0).into_iter().collect()
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

    /// Table 3.3 of Tinabo: of the four classes only that of rows 5 and 7, both HIV, fails.
    #[test]
    fn tinabo_table_3_3_is_2_anonymous_but_not_2_diverse() {
        let column = fixtures::income(&[1.0], &[]);
        let rule = PSensitive { column: "disease".into(), p: 2 };
        let (obesity, cancer, malaria, hiv) = (0, 1, 2, 3);
        let classes: [&[(u32, u32)]; 4] = [
            &[(obesity, 1), (cancer, 1)],
            &[(obesity, 1), (malaria, 1)],
            &[(hiv, 2)],
            &[(obesity, 1), (cancer, 1), (malaria, 1)],
        ];
        assert_eq!(classes.map(|class| rule.allows_histogram(class, &column)), [true, true, false, true]);
        // Table 3.4: together with rows 2 and 4 they are diverse.
        assert!(rule.allows_histogram(&[(obesity, 1), (malaria, 1), (hiv, 2)], &column));
    }
}
