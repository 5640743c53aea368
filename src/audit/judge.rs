//! Measures of the published rows that need no groups: the classification metric.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::measure::classification::Minority;
use crate::published::content_key;

/// How often each label occurs in each published class: the classification metric, given the number of suppressed rows.
pub(crate) async fn classification_metric(
    rows: &DataFrame,
    bound_policy: &BoundPolicy,
    label: &str,
    suppressed: u64,
) -> Result<Option<f64>> {
    let keys = vec![content_key(&bound_policy.class_columns()).alias("class"), ident(label).alias("label")];
    let commonest = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("class")], vec![sum(ident("size")), max(ident("size"))])?;
    let mut minority = Minority::default();
    let mut stream = commonest.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let (all, most) = (batch.column(1).as_primitive::<Int64Type>(), batch.column(2).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            minority.add_majority(all.value(row) as u64, most.value(row) as u64);
        }
    }
    Ok(minority.cm(suppressed))
}
