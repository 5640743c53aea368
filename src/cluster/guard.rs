//! Guards at the borders of a stage on an executor. At its end, a guard logs what its tasks have done and makes failures
//! readable: they cross the cluster as text, so it writes Throng's own message with the kind in front; then the driver
//! knows what happened, and no raw value gets into the logs of others.
//!
//! Ballista recovers from two kinds of failures. If shuffle files are lost with an executor, the stage that made them runs
//! again. Nodes in between would turn this into one of our failures, so a guard where the stage reads them records it, and
//! the one at the end reports it. A transient failure, such as an unreachable store, is reported as one of input and
//! output, and its task runs again.

use std::fmt;
use std::future::ready;
use std::io;
use std::sync::{Arc, Mutex};

use ballista_core::error::BallistaError;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use crate::error::{Error, ErrorKind, Result};
use crate::plan::unary_plan;

/// Where in a stage a guard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Border {
    /// Where it reads what another stage has shuffled.
    Start,
    /// Where its rows leave it.
    End,
}

/// Passes rows on, and rewrites failures in Throng's own words.
#[derive(Debug)]
pub(crate) struct GuardExec {
    input: Arc<dyn ExecutionPlan>,
    border: Border,
    /// The shuffle files that were missing first: executor, stage, partition, and how.
    missed: Arc<Mutex<Option<Missed>>>,
    properties: Arc<PlanProperties>,
}

type Missed = (String, usize, usize, String);

/// The marker before the kind of a failure.
const MARK: &str = "throng failure ";

/// Stands for the kind of a value that cannot be read: the source is asked where.
const UNREADABLE: &str = "unreadable";

/// A failure as text, with its kind in front.
fn encode_error(error: DataFusionError, missed: Option<Missed>) -> DataFusionError {
    if let Some((executor, stage, partition, how)) = missed {
        return BallistaError::FetchFailed(executor, stage, partition, how).into_datafusion();
    }
    let error = match of_ballista(&error) {
        Some(BallistaError::FetchFailed(..) | BallistaError::Cancelled) => return error,
        Some(_) => Error::retry("executors could not reach each other"),
        None => Error::from(error),
    };
    let kind = if error.is_unreadable() { UNREADABLE } else { error.kind().name() };
    let message = format!("{MARK}{kind}: {}{END}", error.message());
    match error.is_retryable() {
        true => DataFusionError::IoError(io::Error::other(message)),
        false => DataFusionError::Execution(message),
    }
}

/// The marker after a failure.
const END: &str = " (end of failure)";

/// The failure of Ballista's that this is, if it is one.
fn of_ballista(error: &DataFusionError) -> Option<&BallistaError> {
    match error.find_root() {
        DataFusionError::External(inner) => inner.downcast_ref(),
        _ => None,
    }
}

/// Parses the failure from a text of the cluster, in which it is quoted.
pub(super) fn decode_error(text: &str) -> Option<Error> {
    let (_, message) = text.split_once(MARK)?;
    let (kind, message) = message.split_once(": ")?;
    let message = message.split(END).next().unwrap_or(message);
    let message = message.replace("\\n", "\n").replace("\\\"", "\"");
    if kind == UNREADABLE {
        return Some(Error::unreadable());
    }
    ErrorKind::ALL.into_iter().find(|known| known.name() == kind).map(|kind| Error::new(kind, message))
}

impl GuardExec {
    /// A guard above a plan.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, border: Border) -> Self {
        let properties = Arc::clone(input.properties());
        Self { input, border, missed: Arc::default(), properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Ok(Self::new(input, self.border))
    }

    /// Where it stands.
    pub(super) fn border(&self) -> Border {
        self.border
    }

    /// Records missing shuffle files.
    fn record_missing(&self) -> impl Fn(&DataFusionError) + Send + use<> {
        let missed = Arc::clone(&self.missed);
        move |error| {
            if let (Some(BallistaError::FetchFailed(executor, stage, partition, how)), Ok(mut missed)) =
                (of_ballista(error), missed.lock())
            {
                missed.get_or_insert_with(|| (executor.clone(), *stage, *partition, how.clone()));
            }
        }
    }
}

/// Shuffle files that the guards at the start of a stage found missing.
fn missed_below(plan: &Arc<dyn ExecutionPlan>) -> Option<Missed> {
    let own = plan.downcast_ref::<GuardExec>().and_then(|guard| guard.missed.lock().ok()?.clone());
    own.or_else(|| plan.children().into_iter().find_map(missed_below))
}

/// The plan with a guard at both borders of every stage: on both sides of each exchange and of each place where all
/// partitions come together, and at the top.
pub(super) fn guard_stages(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(Arc::new(GuardExec::new(at_exchanges(plan, false)?, Border::End)))
}

/// Partitions that come together for a join are left alone: the scheduler looks for them there.
fn at_exchanges(plan: Arc<dyn ExecutionPlan>, joined: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let exchange = plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() && !joined;
    let joined = plan.children().len() > 1;
    let mut children = Vec::new();
    for child in plan.children() {
        let child = at_exchanges(Arc::clone(child), joined)?;
        children.push(if exchange { Arc::new(GuardExec::new(child, Border::End)) as _ } else { child });
    }
    if children.is_empty() {
        return Ok(plan);
    }
    let plan = plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))?;
    Ok(if exchange { Arc::new(GuardExec::new(plan, Border::Start)) } else { plan })
}

impl DisplayAs for GuardExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.border {
            Border::Start => write!(f, "GuardExec: start of a stage"),
            Border::End => write!(f, "GuardExec: end of a stage"),
        }
    }
}

impl ExecutionPlan for GuardExec {
    unary_plan!("GuardExec");

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let task = context.task_id().unwrap_or_default();
        let note = self.record_missing();
        if self.border == Border::Start {
            let rows = self.input.execute(partition, context).inspect_err(&note)?;
            return Ok(Box::pin(RecordBatchStreamAdapter::new(rows.schema(), rows.inspect_err(note))));
        }
        let below = Arc::clone(&self.input);
        let failed = move |task: &str, error: DataFusionError| {
            let error = encode_error(error, missed_below(&below));
            tracing::warn!(task, partition, error = %error.strip_backtrace(), "task failed");
            error
        };
        let rows = self.input.execute(partition, context).map_err(|error| failed(&task, error))?;
        let schema = rows.schema();
        let ending = task.clone();
        let rows = rows.map_err(move |error| failed(&task, error));
        // Its number of output rows would reveal how many fall into its cells, including suppressed ones.
        let end = stream::once(async move {
            tracing::info!(task = ending, partition, "task finished");
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
        let text = |error: DataFusionError| format!("Job 7 failed: Task 3: {:?} at stage 2", encode_error(error, None));
        let privacy = Error::privacy("k = 5 cannot be met; lower it");
        assert!(
            decode_error(&text(privacy.into_datafusion()))
                .is_some_and(|error| error.kind() == ErrorKind::Privacy && error.message().ends_with("lower it"))
        );
        let cast = ArrowError::CastError("Cannot cast string 'Jane Doe' to value of Int32 type".into());
        let message = text(DataFusionError::ArrowError(Box::new(cast), None));
        assert!(!message.contains("Jane"), "{message}");
        assert!(decode_error(&message).is_some_and(|error| error.kind() == ErrorKind::Input));
        let small = DataFusionError::ResourcesExhausted("Failed to allocate".into());
        assert!(decode_error(&text(small)).is_some_and(|error| error.kind() == ErrorKind::Resources));
        let quoted = Error::job("`a` is \"b\"\nand more");
        assert!(
            decode_error(&text(quoted.into_datafusion()))
                .is_some_and(|error| error.kind() == ErrorKind::Job && error.message() == "`a` is \"b\"\nand more")
        );
        assert!(decode_error("Job 7 failed: executor lost").is_none());
    }

    #[test]
    fn what_ballista_can_mend_is_left_to_it() {
        let lost = || BallistaError::FetchFailed("executor-1".into(), 1, 2, "gone".into());
        let failed =
            |error: DataFusionError| FailedTask::from(BallistaError::from(encode_error(error, None))).failed_reason;
        assert!(matches!(failed(lost().into_datafusion()), Some(FailedReason::FetchPartitionError(_))));
        let shared = DataFusionError::Shared(Arc::new(lost().into_datafusion()));
        assert!(matches!(failed(shared), Some(FailedReason::FetchPartitionError(_))));
        let ours = Error::from(lost().into_datafusion()).into_datafusion();
        let noted = Some(("executor-1".to_owned(), 1, 2, "gone".to_owned()));
        let reason = FailedTask::from(BallistaError::from(encode_error(ours, noted))).failed_reason;
        assert!(matches!(reason, Some(FailedReason::FetchPartitionError(_))));
        let busy = Error::retry("the store is busy");
        assert!(matches!(failed(busy.into_datafusion()), Some(FailedReason::IoError(_))));
        let rule = Error::privacy("k cannot be met");
        assert!(matches!(failed(rule.into_datafusion()), Some(FailedReason::ExecutionError(_))));
    }
}
