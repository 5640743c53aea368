//! Pass 1 as a node: every partition surveys its rows and emits its state, in pieces that can be merged in any order.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::plan::{unary_plan, unary_properties};
use crate::survey::survey_partition;

/// Surveys its input.
#[derive(Debug)]
pub(crate) struct SurveyExec {
    /// The quasi-identifiers, then the sensitive columns.
    input: Arc<dyn ExecutionPlan>,
    bound_policy: Arc<BoundPolicy>,
    /// The hash below which rows are sampled.
    ceiling: u64,
    properties: Arc<PlanProperties>,
}

impl SurveyExec {
    /// A survey of a plan whose columns are the quasi-identifiers, then the sensitive ones. Rows below a hash are sampled.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, bound_policy: Arc<BoundPolicy>, ceiling: u64) -> Self {
        let properties = unary_properties(&input, schema(), EmissionType::Final);
        Self { input, bound_policy, ceiling, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Ok(Self::new(input, Arc::clone(&self.bound_policy), self.ceiling))
    }

    /// What happens to every column.
    pub(super) fn bound_policy(&self) -> &BoundPolicy {
        &self.bound_policy
    }

    /// The hash below which rows are sampled.
    pub(super) fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

/// The schema of the rows that are emitted: a piece each.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("piece", DataType::Binary, false)]))
}

impl DisplayAs for SurveyExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (quasi, sensitive) = (self.bound_policy.quasi.len(), self.bound_policy.sensitive.len());
        write!(f, "SurveyExec: quasi={quasi}, sensitive={sensitive}")
    }
}

impl ExecutionPlan for SurveyExec {
    unary_plan!("SurveyExec");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("SurveyExec[{partition}]")).register(context.memory_pool());
        let rows = self.input.execute(partition, context)?;
        let (bound_policy, ceiling) = (Arc::clone(&self.bound_policy), self.ceiling);
        let pieces = async move {
            let pieces = survey_partition(rows, &bound_policy, ceiling, &reservation).await;
            stream::iter(match pieces {
                Ok(pieces) => pieces.into_iter().map(|piece| piece_batch(&piece)).collect(),
                Err(error) => vec![Err(error)],
            })
        };
        let batches = stream::once(pieces).flatten().map(|batch| batch.map_err(Error::into_datafusion));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), batches)))
    }
}

fn piece_batch(piece: &[u8]) -> Result<RecordBatch> {
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![piece]));
    Ok(RecordBatch::try_new(schema(), vec![column])?)
}
