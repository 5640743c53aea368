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
