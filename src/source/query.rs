//! A source that is a query. It is read twice, and its release must differ from the next, so a query that would
//! return different rows each time is rejected.

use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::prelude::SessionContext;

use crate::error::{Error, Result};

/// Functions that give the time of the query.
const CLOCKS: [&str; 5] = ["now", "current_timestamp", "current_date", "current_time", "today"];

/// Makes a table known to queries, in the place of one of the same name.
pub(super) fn register_table(
    context: &SessionContext,
    name: &str,
    table: std::sync::Arc<dyn datafusion::catalog::TableProvider>,
) -> Result<()> {
    context.deregister_table(TableReference::bare(name))?;
    context.register_table(TableReference::bare(name), table)?;
    Ok(())
}

/// The plan of a query over registered tables.
pub(super) async fn plan_query(context: &SessionContext, sql: &str) -> Result<LogicalPlan> {
    let wrong = |message: String| Error::job(format!("source.sql: {message}"));
    let plan = context.state().create_logical_plan(sql).await;
    let plan = plan.map_err(|error| wrong(error.strip_backtrace()))?;
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    options.verify_plan(&plan).map_err(|_| wrong("must be a SELECT, which only reads".into()))?;
    match find_unsteady(&plan)? {
        None => Ok(plan),
        Some(what) => Err(wrong(format!("{what}, but a repeated run must give the same release"))),
    }
}

/// Why a query would return different rows the next time, if it would.
fn find_unsteady(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node
            && !is_sorted(&limit.input)
        {
            found = Some("LIMIT without ORDER BY returns arbitrary rows".to_owned());
            return Ok(TreeNodeRecursion::Stop);
        }
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && (part.is_volatile_node() || CLOCKS.contains(&call.name()))
                {
                    found = Some(format!("`{}` returns another value each time", call.name()));
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Whether rows come in an order that the query asks for.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => is_sorted(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_sorted(&alias.input),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_steady_queries_are_sources() {
        let context = SessionContext::new();
        for sql in ["SELECT 1 AS a", "SELECT value FROM generate_series(1, 9) ORDER BY value LIMIT 3"] {
            assert!(plan_query(&context, sql).await.is_ok(), "{sql}");
        }
        for (sql, expected) in [
            ("SELECT random() AS a", "`random` returns another value"),
            ("SELECT now() AS a", "`now` returns another value"),
            ("SELECT value FROM generate_series(1, 9) LIMIT 3", "LIMIT without ORDER BY"),
            ("SELECT 1 AS a WHERE 1 IN (SELECT value FROM generate_series(1, 9) LIMIT 3)", "LIMIT without ORDER BY"),
            ("CREATE TABLE t AS SELECT 1", "must be a SELECT"),
            ("SELECT * FROM nowhere", "nowhere"),
            ("SELEKT", "source.sql"),
        ] {
            let error = plan_query(&context, sql).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{sql}: {error}");
        }
    }
}
