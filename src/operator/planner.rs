//! From the logical node to the plan that runs: hosts that own their planner add [`AnonymizePlanner`] to it, others
//! take [`AnonymizeQueryPlanner`] as a whole.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::{Anonymize, AnonymizeExec};

/// Plans [`Anonymize`] nodes and leaves all others alone.
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
        let input = Arc::clone(&physical_inputs[0]);
        let survey = physical_inputs.get(1).cloned();
        let treatment = Arc::clone(node.treatment());
        let plan = AnonymizeExec::plan(input, survey, treatment, node.blueprint().cloned(), session)?;
        Ok(Some(Arc::new(plan)))
    }
}

/// DataFusion's planner with [`AnonymizePlanner`] added.
#[derive(Debug, Default)]
pub struct AnonymizeQueryPlanner;

#[async_trait]
impl QueryPlanner for AnonymizeQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AnonymizePlanner)]);
        planner.create_physical_plan(logical_plan, session).await
    }
}
