//! The promise of a series, recounted before a release is committed: all subjects that were ever published, grouped by their
//! history, meet k and every rule in each group, on the values that were published of them.
//!
//! What is read is what would stand after the commit: the staged version of the ledger, and the files of the release before and
//! of this one. How cohorts were made and retired is not asked.
//!
//! 1. Every history of the ledger holds k subjects.
//! 2. A history follows from the one before and the cohort it goes on in, and from nothing else: two subjects who differ in
//!    either have different ones, and who does not differ has the same.
//! 3. The rows of every cohort that the ledger says are published are published, and nothing else is.
//! 4. Histories that are new meet every rule: on the values that this release publishes of their members, and on those that
//!    the release before has published of them. All others have not changed since they were checked.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::verify::{Finding, PlanExecutor, broken_rules, class_sizes, small_classes};

/// What a series says of its subjects, before a release and after it.
pub(crate) struct Histories {
    /// The ledger of before.
    pub(crate) before: DataFrame,
    /// The ledger of after, as it was staged.
    pub(crate) after: DataFrame,
    /// Rows of the release before: `__throng_cohort`, `__throng_content`, then columns that rules guard.
    pub(crate) shown_before: DataFrame,
    /// The same of the release that is to be committed.
    pub(crate) shown_after: DataFrame,
}

/// Name of the column that histories are told apart by.
const HISTORY: &str = "__throng_history";

/// States of the ledger in which a row is published.
const PUBLISHED: &str = "(1, 2)";

/// Checks the promise of a series. The tables of the session are nobody else's.
pub(crate) async fn check_histories(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    histories: Histories,
    bound_policy: &Arc<BoundPolicy>,
) -> Result<Vec<Finding>> {
    let Histories { before, after, shown_before, shown_after } = histories;
    for (name, rows) in [
        ("audit_before", before),
        ("audit_after", after),
        ("audit_shown_before", shown_before),
        ("audit_shown_after", shown_after),
    ] {
        context.register_table(name, rows.into_view())?;
    }
    let mut findings = Vec::new();
    let known = format!("SELECT history AS \"{HISTORY}\" FROM audit_after WHERE history IS NOT NULL");
    let sizes = class_sizes(plans, &context.sql(&known).await?, &[HISTORY.to_owned()]).await?;
    let k = bound_policy.policy.privacy.k;
    findings.extend(small_classes(&sizes, k, "subjects with one history").map(of_series));
    findings.extend(check_moves(context).await?);
    findings.extend(check_rows(context).await?);
    let shown = context.table("audit_shown_after").await?;
    // Whoever is in a cohort that was not there before, and whoever is in none any more.
    let moved = "FROM audit_after a LEFT JOIN audit_before b ON a.subject = b.subject \
                 WHERE a.history IS NOT NULL AND (b.history IS NULL OR a.history <> b.history)";
    for (subjects, table, on) in [
        (
            format!("SELECT a.history, a.cohort, a.content {moved} AND a.cohort IS NOT NULL"),
            "audit_shown_after",
            "s.\"__throng_cohort\" = m.cohort AND s.\"__throng_content\" = m.content",
        ),
        (
            format!("SELECT a.history, b.cohort, b.content {moved} AND b.cohort IS NOT NULL"),
            "audit_shown_before",
            "s.\"__throng_cohort\" = m.cohort AND s.\"__throng_content\" = m.content",
        ),
    ] {
        // Rows of one cohort and content hold the same values, so one of them stands for all.
        let values = format!(
            "SELECT m.history AS \"{HISTORY}\", s.* FROM ({subjects}) m JOIN (SELECT DISTINCT * FROM {table}) s ON {on}"
        );
        let values = context.sql(&values).await?;
        let expected = query_number(context, &format!("SELECT COUNT(*) FROM ({subjects})")).await?;
        let found = values.clone().count().await? as u64;
        findings.extend(Finding::if_any("series", expected.abs_diff(found), |rows| {
            format!("{rows} rows that the ledger knows of are not published as it says")
        }));
        let broken = broken_rules(plans, &shown, &values, bound_policy, &[HISTORY.to_owned()]).await?;
        findings.extend(broken.into_iter().map(|(rule, count)| {
            let message = format!("{count} groups of subjects with one history do not meet it");
            of_series(Finding { rule, count, message })
        }));
    }
    Ok(findings)
}

/// Checks that histories say what has happened.
async fn check_moves(context: &SessionContext) -> Result<Option<Finding>> {
    let moves = "SELECT DISTINCT a.history AS became, b.history AS was, a.cohort AS placed FROM audit_after a LEFT JOIN \
                 audit_before b ON a.subject = b.subject WHERE a.history IS NOT NULL";
    let all = query_number(context, &format!("SELECT COUNT(*) FROM ({moves})")).await?;
    let by_name =
        query_number(context, &format!("SELECT COUNT(*) FROM (SELECT DISTINCT became FROM ({moves}))")).await?;
    let by_move =
        query_number(context, &format!("SELECT COUNT(*) FROM (SELECT DISTINCT was, placed FROM ({moves}))")).await?;
    let off = all.abs_diff(by_name) + all.abs_diff(by_move);
    Ok(Finding::if_any("series", off, |count| format!("{count} histories of the ledger do not say what has happened")))
}

/// Checks that the rows of every cohort are those that the ledger knows of.
async fn check_rows(context: &SessionContext) -> Result<Option<Finding>> {
    let off = format!(
        "SELECT SUM(ABS(surplus)) FROM (SELECT cohort, content, SUM(side) AS surplus FROM (\
         SELECT cohort, content, 1 AS side FROM audit_after WHERE state IN {PUBLISHED} UNION ALL \
         SELECT \"__throng_cohort\" AS cohort, \"__throng_content\" AS content, -1 AS side FROM audit_shown_after) \
         GROUP BY cohort, content)"
    );
    let off = query_number(context, &off).await?;
    Ok(Finding::if_any("series", off, |count| {
        format!("{count} rows are in the ledger or in the release, and not in the same class of the other")
    }))
}

/// What is broken here is broken for whoever compares releases.
fn of_series(finding: Finding) -> Finding {
    Finding { message: format!("{}, to a reader who compares releases", finding.message), ..finding }
}

/// A query of one whole number; null counts as 0.
async fn query_number(context: &SessionContext, query: &str) -> Result<u64> {
    let rows = context.sql(query).await?.collect().await?;
    let row = rows.iter().find(|batch| batch.num_rows() > 0);
    let row = row.ok_or_else(|| Error::internal("a count without a row"))?;
    let number = row.column(0).as_primitive_opt::<Int64Type>().and_then(|column| column.iter().next().flatten());
    Ok(number.unwrap_or(0) as u64)
}
