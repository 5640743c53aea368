//! A node that makes one row of every partition: what all its rows say together, in a form that can be merged.
//!
//! Rules are asked of a class where the class is counted, and the digest of people is added up where rows are read, so
//! that the rows of a release never come together in one place. Whoever verifies merges as many states as there are
//! partitions.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{TryStreamExt, stream};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::questions::Questions;
use crate::error::{Error, Result};
use crate::measure::people::Digest;
use crate::plan::{unary_plan, unary_properties};
use crate::published::digest::add_to_digest;

/// What is made of the rows of a partition.
#[derive(Debug, Clone)]
pub(crate) enum Fold {
    /// The classes of the rows of an aggregation, judged.
    Classes(Arc<Questions>),
    /// The digest of the classes of all rows.
    People,
}

/// Makes one row of every partition.
#[derive(Debug)]
pub(crate) struct FoldExec {
    input: Arc<dyn ExecutionPlan>,
    fold: Fold,
    properties: Arc<PlanProperties>,
}

impl FoldExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, fold: Fold) -> Self {
        let properties = unary_properties(&input, schema(), EmissionType::Final);
        Self { input, fold, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Ok(Self::new(input, self.fold.clone()))
    }

    pub(crate) fn fold(&self) -> &Fold {
        &self.fold
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("state", DataType::Binary, false)]))
}

/// A state as a row.
fn state_batch(state: &impl Serialize) -> Result<RecordBatch> {
    let bytes = serde_json::to_vec(state).map_err(|error| Error::internal(error.to_string()))?;
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![bytes.as_slice()]));
    Ok(RecordBatch::try_new(schema(), vec![column])?)
}

/// The states of all partitions.
pub(crate) fn read_states<T: DeserializeOwned>(rows: &[RecordBatch]) -> Result<Vec<T>> {
    let broken =
        |error: serde_json::Error| Error::internal(format!("a part of the verification cannot be read: {error}"));
    let all = rows.iter().flat_map(|batch| batch.column(0).as_binary::<i32>().iter().flatten());
    all.map(|bytes| serde_json::from_slice(bytes).map_err(broken)).collect()
}

impl DisplayAs for FoldExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fold {
            Fold::Classes(questions) => write!(f, "FoldExec: classes, rules={}", questions.rules()),
            Fold::People => write!(f, "FoldExec: people"),
        }
    }
}

impl ExecutionPlan for FoldExec {
    unary_plan!("FoldExec");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let mut rows = self.input.execute(partition, context)?;
        let fold = self.fold.clone();
        let folded = async move {
            let row = match fold {
                Fold::Classes(questions) => {
                    let mut counted = questions.counted();
                    while let Some(batch) = rows.try_next().await? {
                        questions.ask_classes(&batch, &mut counted);
                    }
                    state_batch(&counted)
                }
                Fold::People => {
                    let mut found = Digest::default();
                    while let Some(batch) = rows.try_next().await? {
                        add_to_digest(&batch, &mut found)?;
                    }
                    state_batch(&found)
                }
            };
            row.map_err(Error::into_datafusion)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), stream::once(folded))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::{ExecutionPlanProperties, displayable};

    use super::super::fixtures::published;
    use super::super::plans::{InProcess, PlanExecutor};
    use super::*;
    use crate::error::ErrorKind;

    const ROWS: [(i32, i32, &str); 3] = [(20, 30, "flu"), (20, 30, "cold"), (40, 50, "flu")];

    #[tokio::test]
    async fn every_partition_is_folded_to_one_row_also_an_empty_one() {
        for parts in [vec![&ROWS[..]], vec![&ROWS[..2], &ROWS[2..], &[][..]]] {
            let (state, plan) = published(&parts).into_parts();
            let plan = state.create_physical_plan(&plan).await.unwrap();
            let partitions = plan.output_partitioning().partition_count();
            let folded: Arc<dyn ExecutionPlan> = Arc::new(FoldExec::new(plan, Fold::People));
            assert_eq!(displayable(folded.as_ref()).one_line().to_string().trim(), "FoldExec: people");
            let rows = InProcess.execute_plan(folded, state).await.unwrap();
            assert_eq!(read_states::<Digest>(&rows).unwrap().len(), partitions);
        }
    }

    #[test]
    fn states_are_read_as_they_were_emitted() {
        let rows = [state_batch(&vec![1, 2]).unwrap(), state_batch(&Vec::<u64>::new()).unwrap()];
        assert_eq!(read_states::<Vec<u64>>(&rows).unwrap(), [vec![1, 2], vec![]]);
        let error = read_states::<String>(&rows).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.message().starts_with("a part of the verification cannot be read"), "{error}");
    }
}
