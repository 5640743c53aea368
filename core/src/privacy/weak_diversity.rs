//! Weak l-diversity: a sensitive value is published for at most one in l of the public people who fit a group,
//! whether or not they are in the private table (Atzori).
//!
//! Against a reader who knows that somebody is in the private table, only `l-diversity` helps: a group of one value is weakly
//! diverse as soon as enough public people fit it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GroupView, Rule, RuleRecord};

/// Weak l-diversity of a sensitive column: no value is published for more than one in l of the public people who fit a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WeakDiversity {
    /// The sensitive column.
    pub column: String,
    /// At least this many people for every row with the same value.
    #[schemars(range(min = 1))]
    pub l: u32,
}

impl WeakDiversity {
    /// Whether that many people are enough for the commonest value.
    pub fn allows_count(&self, commonest: u64, people: u64) -> bool {
        commonest.saturating_mul(u64::from(self.l)) <= people
    }
}

impl Rule for WeakDiversity {
    fn record(&self) -> RuleRecord {
        let record = RuleRecord::on_column("l-diversity", &self.column);
        record.with_kind("weak").with_parameter("l", f64::from(self.l))
    }

    /// Without public rows nobody is there to share a value with.
    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        let column = group.table.sensitive.iter().find(|sensitive| sensitive.name == self.column);
        let (Some(column), Some(_)) = (column, &group.table.members) else { return false };
        let commonest = group.histogram(column).iter().map(|(_, rows)| *rows).max().unwrap_or(0);
        self.allows_count(u64::from(commonest), group.rows.len() as u64)
    }

    fn survives_merging(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::grouping::fixtures;
    use crate::privacy::Rules;

    #[test]
    fn values_are_shared_with_everybody_who_fits() {
        let mut table = fixtures::p1_t1();
        let salaries = [0.0, 30.0, 15.0, 30.0, 40.0, 30.0, 25.0, 45.0, 9.0, 0.0];
        table.sensitive.push(fixtures::income(&salaries, &[]));
        let rule = |l| Rules { k: 1, others: vec![Arc::new(WeakDiversity { column: "income".into(), l })] };
        // Everybody of age 27: 30 twice and 40 once in T1, four in P1.
        let holds = |l, rows: &[u32]| rule(l).are_met_by(&GroupView::new(&table, rows));
        assert!(holds(2, &[3, 4, 5, 9]) && !holds(3, &[3, 4, 5, 9]));
        assert!(!holds(2, &[3, 4, 5]), "without Jesper, who is not in T1");
        assert!(holds(9, &[0, 9]), "nothing is published of them");
        let mut alone = table.clone();
        alone.members = None;
        assert!(!rule(1).are_met_by(&GroupView::new(&alone, &[3, 4])));
    }
}
