//! What the sensitive values of a source allow, determined before any row is grouped.
//!
//! The counts of the values limit the number of groups with l different values. One aggregation per
//! sensitive column yields the largest l, how many groups there can be, how many rows they leave over and below which
//! discernibility no grouping can go.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::grouping::buckets::Feasibility;
use crate::policy::Diversity;

/// What a sensitive column allows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    /// The sensitive column.
    pub column: String,
    /// Different values that the policy asks of every group; 1 when it asks for none.
    pub l: u64,
    /// What is possible with as many different values as the method puts into a group.
    pub feasible: Feasibility,
}

impl Report {
    /// Looks at a column of the source.
    pub(crate) async fn of_column(source: DataFrame, bound_policy: &BoundPolicy, column: &str) -> Result<Self> {
        let counted = source.aggregate(vec![ident(column)], vec![count(lit(1)).alias("size")])?;
        let mut counts = Vec::new();
        for batch in counted.collect().await? {
            counts.extend(batch.column(1).as_primitive::<Int64Type>().values().iter().map(|&count| count as u64));
        }
        let privacy = &bound_policy.policy.privacy;
        let rules = privacy.l_diversity.iter().filter(|rule| rule.column == column);
        let asked = rules.map(|rule| match rule.kind {
            Diversity::Distinct | Diversity::Recursive => rule.l as u64,
            Diversity::Entropy => rule.l.ceil() as u64,
        });
        let l = asked.max().unwrap_or(1);
        let buckets = bound_policy.policy.method.name.entry().buckets;
        let wide = if buckets { l.max(u64::from(privacy.k)).min(counts.len() as u64) } else { l };
        Ok(Self { column: column.to_owned(), l, feasible: Feasibility::new(&counts, wide.max(l)) })
    }

    /// Fails if no group can hold as many different values as the policy asks for.
    pub(crate) fn ensure_feasible(&self) -> Result<()> {
        let Feasibility { rows, values, groups, .. } = self.feasible;
        // An empty table is reported elsewhere.
        if rows == 0 || values >= self.l && groups > 0 {
            return Ok(());
        }
        Err(Error::privacy(format!(
            "column `{}` holds {values} different values, so no group can hold the {} that the policy asks for; lower l \
             to at most {values}, or release without this rule",
            self.column, self.l
        )))
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Feasibility { rows, values, eligible, width, groups, left_over, least_dm } = self.feasible;
        writeln!(f, "`{}`: {values} different values in {rows} rows", self.column)?;
        write!(f, "  largest l: {values}; {eligible} if no value may exceed 1/l of its group")?;
        if width < 2 {
            return Ok(());
        }
        writeln!(f)?;
        writeln!(f, "  with {width} different values in a group: at most {groups} groups, {left_over} rows left over")?;
        write!(f, "  discernibility at least {least_dm}")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::error::ErrorKind;
    use crate::policy::Policy;

    /// What a column of these illnesses allows, under some rules and a method.
    async fn report(ills: &[&str], rules: &str, method: &str) -> Report {
        let text = format!(
            "[privacy]\nk = 2\n{rules}\n[columns]\nage.role = \"quasi\"\nill.role = \"sensitive\"\n[method]\nname = \"{method}\""
        );
        let policy = Policy::from_table(toml::from_str(&text).unwrap(), Path::new(".")).unwrap();
        let ages: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ills.len() as i32));
        let columns = [("age", ages), ("ill", Arc::new(StringArray::from(ills.to_vec())) as ArrayRef)];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let bound_policy = BoundPolicy::new(Arc::new(policy), rows.schema()).unwrap();
        let source = SessionContext::new().read_batch(rows).unwrap();
        Report::of_column(source, &bound_policy, "ill").await.unwrap()
    }

    const ILLS: [&str; 7] = ["flu", "flu", "flu", "cold", "cold", "gout", "rash"];

    #[tokio::test]
    async fn the_largest_l_is_the_number_of_values() {
        let found = report(&ILLS, "l-diversity = { column = \"ill\", l = 3 }", "auto").await;
        assert_eq!((found.l, found.feasible.rows, found.feasible.values), (3, 7, 4));
        assert!(found.ensure_feasible().is_ok());
        let shown = found.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "`ill`: 4 different values in 7 rows");
        assert!(
            lines[1].starts_with("  largest l: 4; ") && lines[2].starts_with("  with 3 different values"),
            "{shown}"
        );
    }

    /// Rules of every kind ask for different values; those about other columns do not.
    #[tokio::test]
    async fn the_strictest_rule_of_the_column_counts() {
        let list = "l-diversity = [{ column = \"ill\", l = 2 }, { column = \"ill\", kind = \"entropy\", l = 2.5 }]";
        assert_eq!(report(&ILLS, list, "auto").await.l, 3, "an entropy of 2.5 takes three values");
        let plain = report(&ILLS, "", "auto").await;
        assert_eq!(
            (plain.l, plain.to_string().lines().count()),
            (1, 2),
            "nothing is asked, so nothing is said of groups"
        );
    }

    /// Methods that fill groups with different values take as many as a group has rows, where there are so many.
    #[tokio::test]
    async fn buckets_are_as_wide_as_groups_where_values_suffice() {
        assert_eq!(report(&ILLS, "", "anatomy").await.feasible.width, 2);
        assert_eq!(report(&["flu"; 4], "", "anatomy").await.feasible.width, 1);
    }

    #[tokio::test]
    async fn rules_that_no_group_can_meet_are_refused_and_empty_tables_are_not() {
        let rule = "l-diversity = { column = \"ill\", l = 5 }";
        let error = report(&ILLS, rule, "anatomy").await.ensure_feasible().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Privacy);
        let said = "column `ill` holds 4 different values, so no group can hold the 5 that the policy asks for";
        assert!(error.message().starts_with(said) && error.message().contains("lower l to at most 4"), "{error}");
        assert!(report(&[], rule, "anatomy").await.ensure_feasible().is_ok());
    }
}
