//! Published rows class by class: an ordinary `GROUP BY` over the published columns, which DataFusion spreads over all
//! cores or executors and spills where memory ends.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;

use super::fold::{Fold, FoldExec, states};
use super::plans::{PlanExecutor, collect};
use super::questions::{Counted, Questions};
use super::tally::tally;
use crate::error::Result;
use crate::measure::Classes;
use crate::published::exact::{Floats, alike, key_name};

/// Sizes of the classes of equal values in some columns.
pub(crate) async fn class_sizes(plans: &dyn PlanExecutor, rows: &DataFrame, columns: &[String]) -> Result<Classes> {
    let sizes = rows
        .clone()
        .aggregate(alike(rows, columns, Floats::Read)?, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes")])?;
    let mut classes = Classes::default();
    for batch in collect(plans, sizes).await? {
        let (size, number) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        (0..batch.num_rows()).for_each(|row| classes.add(size.value(row) as u64, number.value(row) as u64));
    }
    Ok(classes)
}

/// Asks questions of every class: how often each key of every tallied expression occurs in it decides. Classes come in no
/// order, and parts of the result are merged in none.
pub(crate) async fn judge_classes(
    plans: &dyn PlanExecutor,
    rows: &DataFrame,
    columns: &[String],
    tallied: Vec<Expr>,
    questions: impl FnOnce(usize) -> Result<Questions>,
) -> Result<(Arc<Questions>, Counted)> {
    let keys = alike(rows, columns, Floats::Read)?;
    let (width, named) = (keys.len(), (0..keys.len()).map(|at| ident(key_name(at))).collect());
    let value = |at: usize| format!("value_{at}");
    let values: Vec<Expr> = tallied.into_iter().enumerate().map(|(at, key)| key.alias(value(at))).collect();
    let tallies = (0..values.len()).map(|at| tally(ident(value(at))).alias(format!("tally_{at}"))).collect();
    let classes = rows.clone().select(keys.into_iter().chain(values).collect::<Vec<_>>())?.aggregate(named, tallies)?;
    let (state, plan) = classes.into_parts();
    let plan = state.create_physical_plan(&plan).await?;
    let questions = Arc::new(questions(width)?);
    let mut whole = questions.counted();
    let folded = Arc::new(FoldExec::new(plan, Fold::Classes(Arc::clone(&questions))));
    states(&plans.execute(folded, state).await?)?.into_iter().for_each(|part| whole.merge(part));
    Ok((questions, whole))
}
