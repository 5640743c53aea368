//! Measures of the published rows that need no groups: the ends of a sensitive column, and the classification metric.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::fingerprint::fingerprint;
use crate::encode::{Reference, SensitiveDomain, positions};
use crate::error::{Error, Result};
use crate::measure::classification::Minority;
use crate::treatment::{SensitiveColumn, Treatment, is_number, is_time};

/// Smallest and largest value of a sensitive column, as published.
pub(crate) async fn domain_of(rows: &DataFrame, column: &SensitiveColumn) -> Result<SensitiveDomain> {
    let value = ident(&column.name);
    if !(is_number(&column.data_type) || is_time(&column.data_type)) {
        let distinct = rows.clone().aggregate(vec![value], vec![])?.count().await?;
        return Ok(SensitiveDomain { min: 0.0, max: 0.0, distinct: distinct as u64, reference: None });
    }
    let ends = rows.clone().aggregate(vec![], vec![min(value.clone()), max(value)])?.collect().await?;
    let end = |index: usize| -> Result<f64> {
        let batch = ends.first().ok_or_else(|| Error::Internal("an aggregate without a row".into()))?;
        Ok(positions(batch.column(index))?.first().copied().unwrap_or_default())
    };
    Ok(SensitiveDomain { min: end(0)?, max: end(1)?, distinct: 0, reference: None })
}

/// How often every value of a sensitive column is published; none when there are too many different ones and no rule
/// needs to know.
pub(crate) async fn reference_of(rows: &DataFrame, column: &SensitiveColumn) -> Result<Option<Reference>> {
    let counted =
        rows.clone().aggregate(vec![ident(&column.name).alias("value")], vec![count(lit(1)).alias("size")])?;
    let mut reference = Reference::default();
    let mut stream = counted.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let sizes = batch.column(1).as_primitive::<Int64Type>();
        reference.add_weighted(column, batch.column(0), |row| sizes.value(row) as u64)?;
        if column.compared {
            reference.refuse_too_many(column)?;
        } else if reference.is_too_large() {
            return Ok(None);
        }
    }
    Ok(Some(reference))
}

/// How often each label occurs in each published class: the classification metric, with so many rows suppressed.
pub(crate) async fn classification(
    rows: &DataFrame,
    treatment: &Treatment,
    label: &str,
    suppressed: u64,
) -> Result<Option<f64>> {
    let mut keys = fingerprint(&treatment.class_columns());
    keys.push(ident(label).alias("label"));
    let commonest = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("size")])?
        .aggregate(vec![ident("class_a"), ident("class_b")], vec![sum(ident("size")), max(ident("size"))])?;
    let mut minority = Minority::default();
    let mut stream = commonest.execute_stream().await?;
    while let Some(batch) = stream.try_next().await? {
        let (all, most) = (batch.column(2).as_primitive::<Int64Type>(), batch.column(3).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            minority.add(all.value(row) as u64, most.value(row) as u64);
        }
    }
    Ok(minority.cm(suppressed))
}
