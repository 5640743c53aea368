//! The end of a stage on an executor. It logs what its tasks have done, and sees to it that failures are told well: they
//! cross the cluster as text, so this node says them in our words, with their kind in front; then the driver knows what
//! it was, and no raw value gets into the logs of others.
//!
//! Two kinds of failures are Ballista's to mend. Shuffle files that went with an executor are passed on as they are, and
//! their stage runs again; a passing fault, such as a store that is out of reach, goes as one of input and output, and
//! its task runs again.

use std::fmt;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ballista_core::error::BallistaError;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use crate::error::{Error, Result};

/// Passes rows on, and failures in our words.
#[derive(Debug)]
pub struct GuardExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

/// What stands before the kind of a failure.
const MARK: &str = "throng failure ";

/// Kinds that a failure on an executor can have; all others are a matter of the cluster.
const KINDS: [(&str, fn(String) -> Error); 7] = [
    ("job", Error::Job),
    ("input", Error::Input),
    ("privacy", Error::Privacy),
    ("resources", Error::Resources),
    ("conflict", Error::Conflict),
    ("retry", Error::Retry),
    ("internal", Error::Internal),
];

/// A failure as text, with its kind in front.
fn told(error: DataFusionError) -> DataFusionError {
    let error = match of_ballista(&error) {
        Some(BallistaError::FetchFailed(..) | BallistaError::Cancelled) => return error,
        Some(_) => Error::Retry("executors could not reach each other".into()),
        None => Error::from(error),
    };
    let text = match &error {
        Error::Internal(text) => text.clone(),
        other => other.to_string(),
    };
    let told = format!("{MARK}{}: {text}{END}", error.kind());
    match error {
        Error::Retry(_) => DataFusionError::IoError(io::Error::other(told)),
        _ => DataFusionError::Execution(told),
    }
}

/// What stands behind a failure.
const END: &str = " (end of failure)";

/// The failure of Ballista's that this is, if it is one.
fn of_ballista(error: &DataFusionError) -> Option<&BallistaError> {
    match error.find_root() {
        DataFusionError::External(inner) => inner.downcast_ref(),
        _ => None,
    }
}

/// The failure that a text from the cluster tells of. It comes quoted.
pub(super) fn heard(text: &str) -> Option<Error> {
    let (_, told) = text.split_once(MARK)?;
    let (kind, told) = told.split_once(": ")?;
    let told = told.split(END).next().unwrap_or(told);
    let told = told.replace("\\n", "\n").replace("\\\"", "\"");
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, error)| error(told))
}

impl GuardExec {
    /// A guard above a plan.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = Arc::clone(input.properties());
        Self { input, properties }
    }
}

/// The plan with a guard at the end of every stage: below each exchange, and at the top.
pub(super) fn guarded(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(Arc::new(GuardExec::new(below_exchanges(plan)?)))
}

fn below_exchanges(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let exchange = plan.downcast_ref::<RepartitionExec>().is_some();
    let mut children = Vec::new();
    for child in plan.children() {
        let child = below_exchanges(Arc::clone(child))?;
        children.push(if exchange { Arc::new(GuardExec::new(child)) as _ } else { child });
    }
    if children.is_empty() {
        return Ok(plan);
    }
    Ok(plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))?)
}

impl DisplayAs for GuardExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuardExec")
    }
}

impl ExecutionPlan for GuardExec {
    fn name(&self) -> &str {
        "GuardExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("GuardExec needs an input") };
        Ok(Arc::new(Self::new(input)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let task = context.task_id().unwrap_or_default();
        let rows = self.input.execute(partition, context).map_err(told)?;
        let schema = rows.schema();
        let emitted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&emitted);
        let (failing, ending) = (task.clone(), task);
        let rows = rows
            .inspect_ok(move |batch| {
                counted.fetch_add(batch.num_rows(), Ordering::Relaxed);
            })
            .map_err(move |error| {
                let error = told(error);
                tracing::warn!(task = failing, partition, error = %error.strip_backtrace(), "a task fails");
                error
            });
        let end = stream::once(async move {
            tracing::info!(task = ending, partition, rows = emitted.load(Ordering::Relaxed), "a task has ended");
            None
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.chain(end.filter_map(ready)))))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::FailedTask;
    use ballista_core::serde::protobuf::failed_task::FailedReason;
    use datafusion::arrow::error::ArrowError;

    use super::*;

    #[test]
    fn failures_keep_their_kind_and_leave_values_behind() {
        let text = |error: DataFusionError| format!("Job 7 failed: Task 3: {:?} at stage 2", told(error));
        let privacy = Error::Privacy("k = 5 cannot be met; lower it".into());
        assert!(
            matches!(heard(&text(privacy.into_datafusion())), Some(Error::Privacy(told)) if told.ends_with("lower it"))
        );
        let cast = ArrowError::CastError("Cannot cast string 'Jane Doe' to value of Int32 type".into());
        let told = text(DataFusionError::ArrowError(Box::new(cast), None));
        assert!(!told.contains("Jane"), "{told}");
        assert!(matches!(heard(&told), Some(Error::Input(_))));
        let small = DataFusionError::ResourcesExhausted("Failed to allocate".into());
        assert!(matches!(heard(&text(small)), Some(Error::Resources(_))));
        let quoted = Error::Job("`a` is \"b\"\nand more".into());
        assert!(matches!(heard(&text(quoted.into_datafusion())), Some(Error::Job(told)) if told == "`a` is \"b\"\nand more"));
        assert!(heard("Job 7 failed: executor lost").is_none());
    }

    #[test]
    fn what_ballista_can_mend_is_left_to_it() {
        let lost = || BallistaError::FetchFailed("executor-1".into(), 1, 2, "gone".into());
        let failed = |error: DataFusionError| FailedTask::from(BallistaError::from(told(error))).failed_reason;
        assert!(matches!(failed(lost().into_datafusion()), Some(FailedReason::FetchPartitionError(_))));
        let shared = DataFusionError::Shared(Arc::new(lost().into_datafusion()));
        assert!(matches!(failed(shared), Some(FailedReason::FetchPartitionError(_))));
        let busy = Error::Retry("the store is busy".into());
        assert!(matches!(failed(busy.into_datafusion()), Some(FailedReason::IoError(_))));
        let rule = Error::Privacy("k cannot be met".into());
        assert!(matches!(failed(rule.into_datafusion()), Some(FailedReason::ExecutionError(_))));
    }
}
