//! (alpha, k)-anonymity: no sensitive value may make up more than a share alpha of a group (Wong et al.; in the general
//! form, for every value). With alpha = 1/l it is the frequency form of l-diversity that Anatomy asks for.
//!
//! The survey of Loukides describes it by a number of distinct values (erratum E10); it is a bound on the share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, RuleRecord, SensitiveRule, Setting, is_within_bound};
use crate::model::Sensitive;

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

    fn record(&self) -> RuleRecord {
        RuleRecord::on_column("alpha-k", &self.column).with_parameter("alpha", self.alpha)
    }

    fn breach(&self) -> String {
        format!("hold the same value of `{}` in a share of more than alpha = {}", self.column, self.alpha)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        is_within_bound(largest_share(histogram), self.alpha)
    }

    fn excess(&self, histogram: Histogram<'_>, _column: &Sensitive) -> Option<f64> {
        Some(largest_share(histogram) - self.alpha)
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
    use crate::grouping::fixtures;

    /// Three of ten meet 0.3 only just; with two of ten there is room for one more.
    #[test]
    fn rows_that_meet_a_bound_only_just_have_no_room() {
        use std::sync::Arc;

        use crate::model::{Axis, Shape, Table};
        use crate::privacy::{GroupView, Rules};
        let table = |common: usize| {
            let mut table = Table::new([Axis::new("x", Shape::Line { span: 9 })], (0..10).collect());
            let mut column = fixtures::income(&[1.0, 2.0, 3.0, 4.0, 5.0], &[]);
            column.codes = (0..10).map(|row| if row < common { 0 } else { 1 + (row % 4) as u32 }).collect();
            table.sensitive.push(column);
            table
        };
        let rules = Rules { k: 5, others: vec![Arc::new(AlphaK { column: "income".into(), alpha: 0.3 })] };
        let rows: Vec<u32> = (0..10).collect();
        let asked = |common: usize| {
            let table = table(common);
            let view = GroupView::new(&table, &rows);
            (rules.hold_in_parts(&view), rules.hold_with_room(&view, 4), rules.hold_with_room(&view, 1))
        };
        assert_eq!(asked(3), (true, false, false));
        assert_eq!(asked(4), (false, false, false));
        let (holds, room, _) = asked(2);
        assert!(holds && room);
    }

    #[test]
    fn loukides_erratum_e10_alpha_bounds_a_share() {
        let column = fixtures::income(&[1.0, 2.0], &[]);
        let rule = |alpha| AlphaK { column: "income".into(), alpha };
        assert!(rule(0.5).allows_histogram(&[(0, 2), (1, 2)], &column));
        assert!(!rule(0.5).allows_histogram(&[(0, 3), (1, 2)], &column));
        assert!(rule(0.6).allows_histogram(&[(0, 3), (1, 2)], &column));
        assert_eq!(largest_share(&[]), 0.0);
        assert_eq!(rule(0.0).flaws(None).len() + rule(1.5).flaws(None).len() + rule(1.0).flaws(None).len(), 2);
    }
}
