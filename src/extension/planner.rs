//! From the logical node to the plan that runs: hosts that own their planner add [`AnonymizePlanner`] to it, others
//! take [`AnonymizeQueryPlanner`] as a whole.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Extension, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::extension::AnonymizedTable;
use crate::operator::{Anonymize, AnonymizeExec};
use crate::source::scan_statistics::drop_column_statistics;
use crate::windows::AnonymizeWindowsExec;

/// Plans `Anonymize` nodes and leaves all others alone.
#[derive(Debug, Default)]
pub struct AnonymizePlanner;

#[async_trait]
impl ExtensionPlanner for AnonymizePlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<Anonymize>() else { return Ok(None) };
        // Here too, because the session is the host's.
        let inputs = physical_inputs.iter().cloned().map(drop_column_statistics).collect::<Result<Vec<_>>>()?;
        plan_node(node, inputs, session).map(Some)
    }
}

/// The plan of a node over the physical plans of its inputs.
pub(super) fn plan_node(
    node: &Anonymize,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut inputs = inputs.into_iter();
    let Some(rows) = inputs.next() else { return internal_err!("there are no rows to anonymise") };
    if node.is_windowed() {
        return Ok(Arc::new(AnonymizeWindowsExec::plan(rows, node.bound_policy())?));
    }
    let (bound_policy, params) = (Arc::clone(node.bound_policy()), node.params().cloned());
    Ok(Arc::new(AnonymizeExec::plan(rows, inputs.next(), bound_policy, params, session)?))
}

/// Plans `Anonymize` nodes in front of another planner, which plans everything else.
///
/// Without another one it is DataFusion's planner with [`AnonymizePlanner`] added. In front of one that knows nothing of
/// the node, it plans the node first and hands it over as a table, which every planner can scan.
#[derive(Debug, Default)]
pub struct AnonymizeQueryPlanner {
    inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl AnonymizeQueryPlanner {
    /// Plans in front of the planner of a session, if it has one of its own.
    pub fn wrapping(inner: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl QueryPlanner for AnonymizeQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(inner) = &self.inner else {
            let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AnonymizePlanner)]);
            return planner.create_physical_plan(logical_plan, session).await;
        };
        let plan = logical_plan.clone().transform_up(|plan| match &plan {
            LogicalPlan::Extension(Extension { node }) => match node.as_any().downcast_ref::<Anonymize>() {
                Some(node) => Ok(Transformed::yes(AnonymizedTable::from(node.clone()).into_plan()?)),
                None => Ok(Transformed::no(plan)),
            },
            _ => Ok(Transformed::no(plan)),
        });
        inner.create_physical_plan(&plan.data()?, session).await
    }
}
