//! Anonymised rows as a table: what DataFrames and SQL get.
//!
//! A scan of an [`AnonymizedTable`] plans the rows below it with the planner of the session and puts the operator above
//! them. To everything else in the session it is a table like any other, so it needs no planner of its own and works
//! beside any extension that brings one, in whatever order they are registered. Filters and limits never reach below a
//! scan, and its projection is applied above the operator: each of them would change the groups.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use futures::FutureExt;

use super::planner::plan_node;
use crate::error::Error;
use crate::operator::{Anonymize, PolicyRegistry};
use crate::policy::Policy;
use crate::source::scan_statistics::drop_column_statistics;

/// Name under which plans show a table of anonymised rows.
const TABLE_NAME: &str = "anonymize";

/// The rows of a plan, anonymised by a policy whenever they are scanned.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::prelude::SessionContext;
/// use throng::{AnonymizedTable, Column, Policy};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = SessionContext::new();
/// let people = context.sql("SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?;
/// let policy =
///     Policy::builder(5).column("age", Column::quasi()).column("ward", Column::sensitive()).build()?;
/// let released = AnonymizedTable::try_new(people.into_unoptimized_plan(), Arc::new(policy))?;
/// context.register_table("released", Arc::new(released))?;
/// assert_eq!(context.sql("SELECT ward FROM released WHERE ward < 7").await?.count().await?, 60);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AnonymizedTable {
    node: Anonymize,
    schema: SchemaRef,
}

impl AnonymizedTable {
    /// Anonymises the rows of a plan. Nothing is read before the table is scanned.
    pub fn try_new(rows: LogicalPlan, policy: Arc<Policy>) -> Result<Self> {
        Ok(Self::from(Anonymize::for_query(rows, policy, None)?))
    }

    /// A scan of the table.
    pub(super) fn into_plan(self) -> Result<LogicalPlan> {
        LogicalPlanBuilder::scan(TABLE_NAME, provider_as_source(Arc::new(self)), None)?.build()
    }
}

impl From<Anonymize> for AnonymizedTable {
    fn from(node: Anonymize) -> Self {
        let schema = Arc::clone(&node.bound_policy().output);
        Self { node, schema }
    }
}

#[async_trait]
impl TableProvider for AnonymizedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Not by the optimiser of the session: its rules may mistake the node for something that others can execute.
        let node = self.node.without_unread_columns()?;
        let mut inputs = Vec::new();
        for input in node.inputs() {
            inputs.push(drop_column_statistics(session.create_physical_plan(input).await?)?);
        }
        let plan = plan_node(&node, inputs, session)?;
        let Some(projection) = projection else { return Ok(plan) };
        let columns = projection.iter().map(|&index| {
            let name = self.schema.field(index).name();
            ProjectionExpr::new(Arc::new(Column::new(name, index)), name.clone())
        });
        Ok(Arc::new(ProjectionExec::try_new(columns, Arc::clone(&plan))?))
    }
}

/// Implements the table function `anonymize('table', 'policy')`: a table of the session and a registered policy, each by
/// its name.
#[derive(Debug)]
pub(crate) struct AnonymizeFunction {
    policies: Arc<PolicyRegistry>,
}

impl AnonymizeFunction {
    /// Creates it with the registry of policies that calls can name.
    pub(crate) fn new(policies: Arc<PolicyRegistry>) -> Self {
        Self { policies }
    }
}

const USAGE: &str = "anonymize takes the name of a table and the name of a policy: anonymize('people', 'policy')";

impl TableFunctionImpl for AnonymizeFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let [Expr::Literal(table, _), Expr::Literal(policy, _)] = args.exprs() else { return plan_err!("{USAGE}") };
        let (Some(Some(table)), Some(Some(policy))) = (table.try_as_str(), policy.try_as_str()) else {
            return plan_err!("{USAGE}");
        };
        let policy = self.policies.resolve(policy).map_err(Error::into_datafusion)?;
        let name = TableReference::from(table);
        let provider = find_table(args.session(), name.clone())?;
        let rows = LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.build()?;
        Ok(Arc::new(AnonymizedTable::from(Anonymize::for_query(rows, policy, Some(&self.policies))?)))
    }
}

/// A table of the session. Functions are resolved without waiting, so a catalog that has to ask elsewhere cannot answer.
fn find_table(session: &dyn Session, name: TableReference) -> Result<Arc<dyn TableProvider>> {
    let catalogs = &session.config_options().catalog;
    let resolved = name.clone().resolve(&catalogs.default_catalog, &catalogs.default_schema);
    let catalog = session.catalog_list().catalog(&resolved.catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&resolved.schema));
    let schema = schema.ok_or_else(|| plan_datafusion_err!("anonymize: there is no table `{name}`"))?;
    match schema.table(&resolved.table).now_or_never() {
        Some(found) => found?.ok_or_else(|| plan_datafusion_err!("anonymize: there is no table `{name}`")),
        None => plan_err!(
            "anonymize: the catalog of `{name}` is asynchronous; write anonymize((SELECT * FROM {name}), ...)"
        ),
    }
}
