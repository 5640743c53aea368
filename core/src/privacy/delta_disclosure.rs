//! delta-disclosure privacy (Brickell and Shmatikov): a group's share of a sensitive value must not differ from the
//! table's by more than a factor: |ln(q / p)| < delta for every value that the group holds.
//!
//! As in pycanon and ARX, values that a group does not hold are passed over. The logarithm is the natural one, as in
//! pycanon; a delta of ARX, which takes the binary one, is this one divided by ln 2.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, Needs, RESERVE, RuleRecord, SensitiveRule, Setting};
use crate::hierarchy::LevelTree;
use crate::model::{Sensitive, Shares};

/// delta-disclosure: no group reveals much more or less about a sensitive value than the whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeltaDisclosure {
    /// The sensitive column.
    pub column: String,
    /// The bound on |ln(share in the group / share in the table)|, which must stay below it.
    #[schemars(range(min = 0.0))]
    pub delta: f64,
}

/// The largest |ln(q / p)| of any value of a group; 0 of no rows.
pub fn max_log_ratio(histogram: Histogram<'_>, table: &Shares) -> f64 {
    let rows: f64 = histogram.iter().map(|&(_, count)| f64::from(count)).sum();
    let of = |&(code, count): &(u32, u32)| (f64::from(count) / rows / table.share_of(code)).ln().abs();
    histogram.iter().map(of).fold(0.0, f64::max)
}

impl SensitiveRule for DeltaDisclosure {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        RuleRecord::on_column("delta-disclosure", &self.column).with_parameter("delta", self.delta)
    }

    fn breach(&self) -> String {
        format!("reveal more about `{}` than the whole table, by delta = {} or more", self.column, self.delta)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool {
        column.shares.as_ref().is_some_and(|table| max_log_ratio(histogram, table) < self.delta)
    }

    fn needs(&self) -> Needs {
        Needs { table: true, ..Needs::default() }
    }

    fn flaws(&self, _levels: Option<&LevelTree>) -> Vec<Flaw> {
        Flaw::not_above("delta", self.delta, 0.0).into_iter().collect()
    }

    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        let kept = if setting.reserve { 1.0 - RESERVE } else { 1.0 };
        Arc::new(Self { delta: self.delta * kept, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn factors_count_up_and_down() {
        let column = fixtures::income(&[1.0, 1.0, 1.0, 2.0], &[]);
        let table = column.shares.as_ref().unwrap();
        assert!((max_log_ratio(&[(0, 1), (1, 1)], table) - 2.0_f64.ln()).abs() < 1e-12, "1/2 is twice 1/4");
        assert!(
            (max_log_ratio(&[(0, 1)], table) - (4.0_f64 / 3.0).ln()).abs() < 1e-12,
            "what is not there is passed over"
        );
        assert_eq!(max_log_ratio(&[(0, 6), (1, 2)], table), 0.0);
        let rule = |delta| DeltaDisclosure { column: "income".into(), delta };
        assert!(
            rule(0.7).allows_histogram(&[(0, 1), (1, 1)], &column)
                && !rule(0.69).allows_histogram(&[(0, 1), (1, 1)], &column)
        );
        assert!(!rule(0.0).allows_histogram(&[(0, 6), (1, 2)], &column), "below, not at the bound");
    }

    #[test]
    fn without_the_table_nothing_holds() {
        let column = Sensitive { shares: None, ..fixtures::income(&[1.0], &[]) };
        assert!(!DeltaDisclosure { column: "income".into(), delta: 9.0 }.allows_histogram(&[(0, 1)], &column));
    }
}
