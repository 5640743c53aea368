//! Published rows class by class: an ordinary `GROUP BY` over the published columns, which DataFusion spreads over all
//! cores or executors and spills where memory ends.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::fold::{Fold, FoldExec, read_states};
use super::plans::{PlanExecutor, collect_rows};
use super::questions::{Counted, Questions};
use crate::error::{Error, Result};
use crate::measure::Classes;
use crate::plan::join_parts;
use crate::published::exact::{Floats, alike_keys, key_name};
use crate::published::key_counts::{Histogram, count_keys, read_key_counts};

/// Sizes of the classes of equal values in some columns.
pub(crate) async fn class_sizes(plans: &dyn PlanExecutor, rows: &DataFrame, columns: &[String]) -> Result<Classes> {
    let sizes = rows
        .clone()
        .aggregate(alike_keys(rows, columns, Floats::Read)?, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("size")], vec![count(lit(1)).alias("classes")])?;
    let mut classes = Classes::default();
    for batch in collect_rows(plans, sizes).await? {
        let (size, number) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        (0..batch.num_rows()).for_each(|row| classes.add_classes(size.value(row) as u64, number.value(row) as u64));
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
    let (classes, width) = tally_classes(rows, columns, tallied, false)?;
    let (state, plan) = classes.into_parts();
    let plan = state.create_physical_plan(&plan).await?;
    let questions = Arc::new(questions(width)?);
    let mut whole = questions.counted();
    let folded = Arc::new(FoldExec::new(plan, Fold::Classes(Arc::clone(&questions))));
    read_states(&plans.execute_plan(folded, state).await?)?.into_iter().for_each(|part| whole.merge(part));
    Ok((questions, whole))
}

/// Every class by its keys, then how often each key of every tallied expression occurs in it, then its rows where they are
/// asked for; and how many keys there are.
fn tally_classes(
    rows: &DataFrame,
    columns: &[String],
    tallied: Vec<Expr>,
    counted: bool,
) -> Result<(DataFrame, usize)> {
    let keys = alike_keys(rows, columns, Floats::Read)?;
    let (width, named) = (keys.len(), (0..keys.len()).map(|at| ident(key_name(at))).collect());
    let value = |at: usize| format!("value_{at}");
    let values: Vec<Expr> = tallied.into_iter().enumerate().map(|(at, key)| key.alias(value(at))).collect();
    let tallies = (0..values.len()).map(|at| count_keys(ident(value(at))).alias(format!("tally_{at}")));
    let tallies = tallies.chain(counted.then(|| count(lit(1)).alias("rows"))).collect();
    let classes = rows.clone().select(keys.into_iter().chain(values).collect::<Vec<_>>())?.aggregate(named, tallies)?;
    Ok((classes, width))
}

/// Gives batches of classes to a function: the keys of every class, how many of these there are, the tallies, and last its
/// rows. Parts of the result are merged in no order.
pub(super) async fn fold_classes<T: Clone + Send + 'static>(
    rows: &DataFrame,
    columns: &[String],
    tallied: Vec<Expr>,
    first: T,
    add: impl Fn(&mut T, &RecordBatch, usize) -> Result<()> + Clone + Send + 'static,
    merge: impl Fn(&mut T, T),
) -> Result<T> {
    let (classes, width) = tally_classes(rows, columns, tallied, true)?;
    let parts = classes.execute_stream_partitioned().await?.into_iter().map(|mut stream| {
        let (mut part, add) = (first.clone(), add.clone());
        async move {
            while let Some(batch) = stream.try_next().await? {
                add(&mut part, &batch, width)?;
            }
            Ok::<T, Error>(part)
        }
    });
    let mut whole = first.clone();
    join_parts("reading classes", parts.collect::<Vec<_>>(), |part| {
        merge(&mut whole, part);
        Ok(())
    })
    .await?;
    Ok(whole)
}

/// Gives every class to a function by its histogram of a tallied expression. Classes come in no order, and parts of the
/// result are merged in none.
pub(super) async fn fold_tallies<T: Clone + Send + 'static>(
    rows: &DataFrame,
    columns: &[String],
    tallied: Expr,
    first: T,
    add: impl Fn(&mut T, &[(i128, u64)]) + Clone + Send + 'static,
    merge: impl Fn(&mut T, T),
) -> Result<T> {
    let add = move |part: &mut T, batch: &RecordBatch, width: usize| {
        let mut histogram = Histogram::new();
        for row in 0..batch.num_rows() {
            read_key_counts(batch.column(width), row, &mut histogram);
            add(part, &histogram);
        }
        Ok(())
    };
    fold_classes(rows, columns, vec![tallied], first, add, merge).await
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::super::fixtures::{bound_policy, frame, published};
    use super::super::plans::InProcess;
    use super::*;
    use crate::published::exact::Keys;

    #[tokio::test]
    async fn null_is_a_value_and_empty_text_another() {
        let words = |words: Vec<Option<&str>>| vec![("a", Arc::new(StringArray::from(words)) as ArrayRef)];
        let rows = frame(vec![words(vec![None, Some(""), Some("x")]), words(vec![None, Some("x"), Some("x")])]);
        let classes = class_sizes(&InProcess, &rows, &["a".to_owned()]).await.unwrap();
        assert_eq!((classes.classes(), classes.rows()), (3, 6));
        assert_eq!(classes.histogram().collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 1)]);
    }

    /// A reader cannot tell one NaN from another, but zeros by their sign.
    #[tokio::test]
    async fn numbers_that_read_alike_are_one_class() {
        let numbers = Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]);
        let rows = frame(vec![vec![("a", Arc::new(numbers) as ArrayRef)]]);
        let classes = class_sizes(&InProcess, &rows, &["a".to_owned()]).await.unwrap();
        assert_eq!(classes.histogram().collect::<Vec<_>>(), [(1, 3), (2, 1)]);
    }

    /// However rows are parted, the parts of what is folded add up to the whole.
    #[tokio::test]
    async fn tallies_are_folded_whatever_part_a_class_is_in() {
        let bound_policy = bound_policy("");
        let key = Keys::of_column(&bound_policy.sensitive[0], None).key_expr("ill");
        let rows = [(20, 30, "flu"), (20, 30, "flu"), (20, 30, "cold"), (40, 50, "flu")];
        for parts in [vec![&rows[..]], vec![&rows[..1], &rows[1..2], &rows[2..]]] {
            let (add, merge) = (
                |found: &mut (u64, u64), histogram: &[(i128, u64)]| {
                    found.0 = found.0.max(histogram.len() as u64);
                    found.1 += histogram.iter().map(|(_, rows)| rows).sum::<u64>();
                },
                |whole: &mut (u64, u64), part: (u64, u64)| *whole = (whole.0.max(part.0), whole.1 + part.1),
            );
            let rows = published(&parts);
            let found = fold_tallies(&rows, &["age".to_owned()], key.clone(), (0, 0), add, merge).await.unwrap();
            assert_eq!(found, (2, 4), "two values at most in a class, four rows in all");
        }
    }
}
