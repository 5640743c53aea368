//! The physical operator. It declares that it wants its rows distributed and sorted by cell, and DataFusion inserts
//! the exchange and the sort: a hand-placed exchange would be stripped by the optimiser and cells cut in pieces.

use std::fmt;
use std::sync::{Arc, Mutex};

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr, ScalarFunctionExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions, SchedulingType,
    reset_plan_states,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PlanProperties, coop,
};
use futures::TryStreamExt;
use tokio::sync::OnceCell;

use super::assign_cell::{ASSIGN_CELL, AssignCell};
use super::memory::{cell_memory, fits_ahead};
use super::stream::{CellStream, MeasureAccumulator, Metrics};
use super::{AnonymizeParams, CELL_COLUMN};
use crate::binding::BoundPolicy;
use crate::error::Error;
use crate::measure::Groups as Measures;

/// Anonymises its input cell by cell.
#[derive(Debug)]
pub(crate) struct AnonymizeExec {
    /// Rows with their cell in the last column.
    input: Arc<dyn ExecutionPlan>,
    /// The survey's columns, when the table is still to be surveyed.
    survey: Option<Arc<dyn ExecutionPlan>>,
    bound_policy: Arc<BoundPolicy>,
    /// Filled by the survey and read by `assign_cell`.
    params: Arc<OnceCell<Arc<AnonymizeParams>>>,
    accumulator: Arc<Mutex<MeasureAccumulator>>,
    /// Whether this node sees all cells, or another part of the plan does and judges the result.
    whole: bool,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AnonymizeExec {
    /// Creates the operator above a projection that adds the cell to every row of `rows`.
    pub(crate) fn plan(
        rows: Arc<dyn ExecutionPlan>,
        survey: Option<Arc<dyn ExecutionPlan>>,
        bound_policy: Arc<BoundPolicy>,
        params: Option<Arc<AnonymizeParams>>,
        session: &dyn Session,
    ) -> Result<Self> {
        if rows.boundedness().is_unbounded() {
            return plan_err!(
                "an unbounded table cannot be anonymised as a whole: groups need all their rows; set [window] rows = 100000 \
                 in the policy to anonymise it a window at a time"
            );
        }
        if survey.is_none() && params.is_none() {
            return internal_err!("AnonymizeExec needs a survey");
        }
        let params = Arc::new(OnceCell::new_with(params));
        let schema = rows.schema();
        let column =
            |index: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(schema.field(index).name(), index)) };
        let function = Arc::new(ScalarUDF::from(AssignCell::new(Arc::clone(&params))));
        let cell: Arc<dyn PhysicalExpr> = Arc::new(ScalarFunctionExpr::new(
            ASSIGN_CELL,
            function,
            bound_policy.quasi.iter().map(|quasi| column(quasi.index)).collect(),
            Arc::new(Field::new(CELL_COLUMN, DataType::UInt32, false)),
            Arc::new(session.config_options().clone()),
        ));
        let columns = (0..schema.fields().len())
            .map(|index| ProjectionExpr::new(column(index), schema.field(index).name().clone()))
            .chain([ProjectionExpr::new(cell, CELL_COLUMN.to_owned())]);
        let input = Arc::new(ProjectionExec::try_new(columns, Arc::clone(&rows))?);
        Ok(Self::new(input, survey, bound_policy, params, true))
    }

    /// The operator over rows that carry their cell, with parameters that were made elsewhere.
    pub(crate) fn surveyed(input: Arc<dyn ExecutionPlan>, params: Arc<AnonymizeParams>, whole: bool) -> Self {
        let bound_policy = Arc::clone(&params.bound_policy);
        Self::new(input, None, bound_policy, Arc::new(OnceCell::new_with(Some(params))), whole)
    }

    /// The same operator as one of several that share the cells of a table that somebody else surveys: each measures its
    /// own, and whoever gathers the measures must see to it that the policy allows them ([`AnonymizeParams::ensure_within_limits`]).
    pub(crate) fn to_partial(&self) -> Self {
        let (bound_policy, params) = (Arc::clone(&self.bound_policy), Arc::clone(&self.params));
        Self::new(Arc::clone(&self.input), None, bound_policy, params, false)
    }

    /// The plan with its anonymising node as one that sees [only a part](Self::to_partial) of the cells.
    pub(crate) fn mark_in_part(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up(|node| {
            Ok(match node.downcast_ref::<Self>() {
                Some(whole) => Transformed::yes(Arc::new(whole.to_partial()) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        })?;
        Ok(changed.data)
    }

    /// Measures of the anonymising node of a plan, once it has run.
    pub(crate) fn find_measures(plan: &Arc<dyn ExecutionPlan>) -> Option<Measures> {
        match plan.downcast_ref::<Self>() {
            Some(node) => node.measures(),
            None => plan.children().into_iter().find_map(Self::find_measures),
        }
    }

    /// Whether this operator sees all cells.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    fn new(
        input: Arc<dyn ExecutionPlan>,
        survey: Option<Arc<dyn ExecutionPlan>>,
        bound_policy: Arc<BoundPolicy>,
        params: Arc<OnceCell<Arc<AnonymizeParams>>>,
        whole: bool,
    ) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&bound_policy.output)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            input,
            survey,
            bound_policy,
            params,
            accumulator: Arc::new(Mutex::new(MeasureAccumulator::new(partitions, whole))),
            whole,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }
    }

    /// Loss and protection of the groups that this node has published so far; none before the first.
    pub(crate) fn measures(&self) -> Option<Measures> {
        self.accumulator.lock().ok().and_then(|accumulator| accumulator.sum_measures())
    }

    /// The same of one partition.
    pub(crate) fn measures_of(&self, partition: usize) -> Option<Measures> {
        self.accumulator.lock().ok().and_then(|accumulator| accumulator.of_partition(partition).cloned())
    }

    /// The parameters, once the survey has run.
    pub(crate) fn params(&self) -> Option<&Arc<AnonymizeParams>> {
        self.params.get()
    }

    fn cell_column(&self) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(CELL_COLUMN, self.input.schema().fields().len() - 1))
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match form {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "AnonymizeExec: {}", self.bound_policy.summary())?;
                let cells = self.params.get().map(|params| params.survey.tree.cell_count());
                cells.map_or(Ok(()), |cells| write!(f, ", cells={cells}"))
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "k={}", self.bound_policy.policy.privacy.k)?;
                writeln!(f, "method={}", self.bound_policy.policy.method.name.as_str())
            }
        }
    }
}

impl ExecutionPlan for AnonymizeExec {
    fn name(&self) -> &str {
        "AnonymizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let mut wanted = vec![Distribution::KeyPartitioned(vec![self.cell_column()])];
        wanted.extend(self.survey.as_ref().map(|_| Distribution::UnspecifiedDistribution));
        InputDistributionRequirements::new(wanted)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let by_cell = LexOrdering::new([PhysicalSortExpr::new_default(self.cell_column())]);
        let mut wanted = vec![by_cell.map(OrderingRequirements::from)];
        wanted.extend(self.survey.as_ref().map(|_| None));
        wanted
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        std::iter::once(&self.input).chain(&self.survey).collect()
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
        let mut children = children.into_iter();
        let Some(input) = children.next() else { return internal_err!("AnonymizeExec needs an input") };
        let survey = children.next();
        let (bound_policy, params) = (Arc::clone(&self.bound_policy), Arc::clone(&self.params));
        Ok(Arc::new(Self::new(input, survey, bound_policy, params, self.whole)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = Arc::clone(&self.input);
        let survey_plan = self.survey.clone();
        let bound_policy = Arc::clone(&self.bound_policy);
        let shared = Arc::clone(&self.params);
        let accumulator = Arc::clone(&self.accumulator);
        let metrics = Metrics::new(&self.metrics, partition);
        let rows_schema = self.input.schema();
        let partitions = self.properties.partitioning.partition_count();
        let start = async move {
            let params = shared
                .get_or_try_init(|| async {
                    let Some(plan) = survey_plan else {
                        return Err(Error::internal("AnonymizeExec has no survey"));
                    };
                    // Another partition may have begun a survey before, and failed or been dropped.
                    let plan = reset_plan_states(plan)?;
                    AnonymizeParams::survey_query(plan, Arc::clone(&context), bound_policy).await.map(Arc::new)
                })
                .await
                .map_err(Error::into_datafusion)?;
            metrics.splits.set(if partition == 0 { params.survey.tree.nodes.len() } else { 0 });
            // Set memory aside before the sort below can take all of it: a sort can spill, a cell cannot.
            let reservation =
                MemoryConsumer::new(format!("AnonymizeExec[{partition}]")).register(context.memory_pool());
            let mut ahead = true;
            if let MemoryLimit::Finite(limit) = context.memory_pool().memory_limit() {
                let rows = (params.survey.rows / params.survey.tree.cell_count().max(1) as u64) as usize;
                ahead = fits_ahead(&rows_schema, rows, partitions, limit);
                reservation.try_grow(cell_memory(&rows_schema, rows))?;
            }
            let rows = input.execute(partition, Arc::clone(&context))?;
            let batch_rows = context.session_config().batch_size();
            let stream = CellStream::new(
                rows,
                Arc::clone(params),
                (accumulator, partition),
                metrics,
                (reservation, ahead),
                batch_rows,
            );
            Ok::<_, datafusion::error::DataFusionError>(stream.into_stream())
        };
        let stream = futures::stream::once(start).try_flatten();
        let adapter = RecordBatchStreamAdapter::new(Arc::clone(&self.bound_policy.output), stream);
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
