//! Where the plans of a verification run: in this process, or on the executors of a cluster.
//!
//! Every check that reads whole tables is a plan whose result is a few rows, so that whoever asks holds a verdict and never
//! a class. A plan must therefore not depend on anything that only this process knows: its functions and nodes can be
//! sent (see `wire`).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::lit;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::DataFrame;

use crate::error::Result;

/// Called with a plan before it runs; its metrics report progress.
pub(crate) type Watch<'a> = dyn Fn(&Arc<dyn ExecutionPlan>) + Send + Sync + 'a;

/// Executes the plans of a verification.
#[async_trait]
pub(crate) trait PlanExecutor: Send + Sync {
    /// Executes a plan that was made with the settings of a session, and returns its rows, which are few.
    async fn execute_plan(&self, plan: Arc<dyn ExecutionPlan>, state: SessionState) -> Result<Vec<RecordBatch>>;
}

/// Executes plans in this process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InProcess;

#[async_trait]
impl PlanExecutor for InProcess {
    async fn execute_plan(&self, plan: Arc<dyn ExecutionPlan>, state: SessionState) -> Result<Vec<RecordBatch>> {
        Ok(datafusion::physical_plan::collect(plan, state.task_ctx()).await?)
    }
}

/// Executes a query that yields a few rows.
pub(crate) async fn collect_rows(plans: &dyn PlanExecutor, query: DataFrame) -> Result<Vec<RecordBatch>> {
    let (state, plan) = query.into_parts();
    let plan = state.create_physical_plan(&plan).await?;
    plans.execute_plan(plan, state).await
}

/// Executes a query that yields one row of whole numbers; null counts as 0.
pub(crate) async fn collect_numbers(plans: &dyn PlanExecutor, query: DataFrame) -> Result<Vec<u64>> {
    let width = query.schema().fields().len();
    let found = collect_rows(plans, query).await?;
    let row = found.iter().find(|batch| batch.num_rows() > 0);
    let number = |column: usize| {
        let number = row.and_then(|row| row.column(column).as_primitive_opt::<Int64Type>()?.iter().next().flatten());
        number.unwrap_or(0) as u64
    };
    Ok((0..width).map(number).collect())
}

/// Counts the rows of a query.
pub(crate) async fn count_rows(plans: &dyn PlanExecutor, query: DataFrame) -> Result<u64> {
    let counted = query.aggregate(vec![], vec![count(lit(1_i64))])?;
    Ok(collect_numbers(plans, counted).await?.first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::functions_aggregate::expr_fn::{max, sum};
    use datafusion::logical_expr::ident;

    use super::super::fixtures::frame;
    use super::*;

    fn numbers(values: &[Option<i64>]) -> DataFrame {
        frame(vec![vec![("a", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)]])
    }

    #[tokio::test]
    async fn numbers_of_no_rows_are_null_and_count_as_0() {
        let asked = |rows: DataFrame| rows.aggregate(vec![], vec![sum(ident("a")), max(ident("a"))]).unwrap();
        let found = collect_numbers(&InProcess, asked(numbers(&[Some(3), None, Some(4)]))).await.unwrap();
        assert_eq!(found, [7, 4]);
        assert_eq!(collect_numbers(&InProcess, asked(numbers(&[]))).await.unwrap(), [0, 0]);
        // A query without any row is as wide as it would have been.
        assert_eq!(collect_numbers(&InProcess, numbers(&[])).await.unwrap(), [0]);
    }

    #[tokio::test]
    async fn rows_are_counted_with_their_nulls() {
        assert_eq!(count_rows(&InProcess, numbers(&[Some(3), None, Some(3)])).await.unwrap(), 3);
        assert_eq!(count_rows(&InProcess, numbers(&[])).await.unwrap(), 0);
    }
}
