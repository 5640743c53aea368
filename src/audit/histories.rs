//! The ledger of a series held against the newest release, as `throng verify` does it.
//!
//! 1. Every history of the ledger holds k subjects.
//! 2. The rows of every cohort that the ledger says are published are published, and nothing else is.
//! 3. On the values that the release shows of them, subjects with one history meet every rule.
//!
//! What a night changes is checked before it is committed, by [`changes`](super::changes).

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::verify::{Finding, PlanExecutor, broken_rules, class_sizes, small_classes};

/// Name of the column that histories are told apart by.
pub(super) const HISTORY: &str = "__throng_history";

/// States of the ledger in which a row is published.
const PUBLISHED: &str = "(1, 2)";

/// Checks a ledger against rows of the newest release: `__throng_cohort`, `__throng_content`, then columns that rules guard. The
/// tables of the session are nobody else's.
pub(crate) async fn check_histories(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    ledger: DataFrame,
    shown: DataFrame,
    bound_policy: &Arc<BoundPolicy>,
) -> Result<Vec<Finding>> {
    context.register_table("audit_ledger", ledger.into_view())?;
    context.register_table("audit_shown", shown.into_view())?;
    let mut findings = Vec::new();
    let known = format!("SELECT history AS \"{HISTORY}\" FROM audit_ledger WHERE history IS NOT NULL");
    let sizes = class_sizes(plans, &context.sql(&known).await?, &[HISTORY.to_owned()]).await?;
    findings.extend(small_classes(&sizes, bound_policy.policy.privacy.k, "subjects with one history").map(of_series));
    let sides = format!(
        "SELECT cohort, content, 1 AS side FROM audit_ledger WHERE state IN {PUBLISHED} UNION ALL \
         SELECT \"__throng_cohort\" AS cohort, \"__throng_content\" AS content, -1 AS side FROM audit_shown"
    );
    findings.extend(check_sides(context, &sides).await?);
    // Rows of one cohort and content hold the same values, so one of them stands for all.
    let values = format!(
        "SELECT m.history AS \"{HISTORY}\", s.* FROM (SELECT history, cohort, content FROM audit_ledger WHERE state IN \
         {PUBLISHED}) m JOIN (SELECT DISTINCT * FROM audit_shown) s ON s.\"__throng_cohort\" = m.cohort AND \
         s.\"__throng_content\" = m.content"
    );
    findings.extend(check_rules(plans, context.sql(&values).await?, bound_policy).await?);
    Ok(findings)
}

/// Checks that rows of one side are those of the other, cohort by cohort: a query of `cohort`, `content` and `side`, which is
/// 1 or -1.
pub(super) async fn check_sides(context: &SessionContext, sides: &str) -> Result<Option<Finding>> {
    let off = format!(
        "SELECT SUM(ABS(surplus)) FROM (SELECT cohort, content, SUM(side) AS surplus FROM ({sides}) GROUP BY cohort, content)"
    );
    let off = query_number(context, &off).await?;
    Ok(Finding::if_any("series", off, |count| {
        format!("{count} rows are in the ledger or in the release, and not in the same class of the other")
    }))
}

/// Checks the rules of subjects with one history, on published values beside their history.
pub(super) async fn check_rules(
    plans: &dyn PlanExecutor,
    values: DataFrame,
    bound_policy: &Arc<BoundPolicy>,
) -> Result<Vec<Finding>> {
    let broken = broken_rules(plans, &values, &values, bound_policy, &[HISTORY.to_owned()]).await?;
    let finding = |(rule, count): (String, u64)| {
        let message = format!("{count} groups of subjects with one history do not meet it");
        of_series(Finding { rule, count, message })
    };
    Ok(broken.into_iter().map(finding).collect())
}

/// What is broken here is broken for whoever compares releases.
pub(super) fn of_series(finding: Finding) -> Finding {
    Finding { message: format!("{}, to a reader who compares releases", finding.message), ..finding }
}

/// A query of one whole number; null counts as 0.
pub(super) async fn query_number(context: &SessionContext, query: &str) -> Result<u64> {
    let rows = context.sql(query).await?.collect().await?;
    let row = rows.iter().find(|batch| batch.num_rows() > 0);
    let row = row.ok_or_else(|| Error::internal("a count without a row"))?;
    let number = row.column(0).as_primitive_opt::<Int64Type>().and_then(|column| column.iter().next().flatten());
    Ok(number.unwrap_or(0) as u64)
}
