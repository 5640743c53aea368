//! The physical node: one partition, unbounded where its input is, and incremental.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PlanProperties, coop,
};
use futures::TryStreamExt;

use super::Plan;
use super::stream::{Metrics, WindowStream};
use crate::binding::BoundPolicy;
use crate::error::Error;

/// Anonymises its input window by window.
#[derive(Debug)]
pub(crate) struct AnonymizeWindowsExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<Plan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AnonymizeWindowsExec {
    /// The node over the rows of a bound policy that has a window.
    pub(crate) fn plan(input: Arc<dyn ExecutionPlan>, bound_policy: &BoundPolicy) -> Result<Self> {
        let plan = Plan::new(bound_policy).map_err(Error::into_datafusion)?;
        Ok(Self::new(input, Arc::new(plan)))
    }

    fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<Plan>) -> Self {
        let boundedness = match input.boundedness().is_unbounded() {
            // Whatever comes, no more than two windows of rows are held.
            true => Boundedness::Unbounded { requires_infinite_memory: false },
            false => Boundedness::Bounded,
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&plan.plain.output)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            boundedness,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, plan, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties) }
    }
}

impl DisplayAs for AnonymizeWindowsExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match form {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "AnonymizeWindowsExec: {}, {}", self.plan.plain.summary(), self.plan.summary())
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "k={}", self.plan.plain.policy.privacy.k)?;
                writeln!(f, "{}", self.plan.summary())
            }
        }
    }
}

impl ExecutionPlan for AnonymizeWindowsExec {
    fn name(&self) -> &str {
        "AnonymizeWindowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return internal_err!("AnonymizeWindowsExec needs an input");
        };
        Ok(Arc::new(Self::new(input, Arc::clone(&self.plan))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.output_partitioning().partition_count();
        if partition != 0 || partitions != 1 {
            // A window that saw some partitions alone would lose the rows of the others.
            return internal_err!("AnonymizeWindowsExec wants its input in one partition, not {partitions}");
        }
        let (input, plan) = (Arc::clone(&self.input), Arc::clone(&self.plan));
        let metrics = Metrics::new(&self.metrics, partition);
        let start = async move {
            let reservation = MemoryConsumer::new("AnonymizeWindowsExec").register(context.memory_pool());
            let rows = input.execute(partition, Arc::clone(&context))?;
            let batch_rows = context.session_config().batch_size();
            Ok::<_, datafusion::error::DataFusionError>(
                WindowStream::new(rows, plan, metrics, reservation, batch_rows).into_stream(),
            )
        };
        let stream = futures::stream::once(start).try_flatten();
        let adapter = RecordBatchStreamAdapter::new(Arc::clone(&self.plan.plain.output), stream);
        Ok(coop::make_cooperative(Box::pin(adapter)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        // Statistics of the raw input say nothing about the published columns and must not be shown.
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
