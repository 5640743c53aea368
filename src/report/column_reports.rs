//! Reads what a report shows: the published files, and nothing else. What a page showed of the source beyond them, it would
//! reveal to everybody who reads the page.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{cast, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::bins::{Categories, Histogram, Kind, OrdinalBins};
use super::{ColumnReport, Variety};
use crate::binding::{BoundPolicy, QuasiColumn, is_number, is_time, published_fields};
use crate::encode::{to_ordinals, to_text};
use crate::error::{Error, Result};
use crate::ledger::Manifest;
use crate::published::content_key;
use crate::published::cover::{Bound, Published, Span};

/// Distinct values of a text column beyond which it has no histogram.
const MAX_VALUES: usize = 50_000;

/// How every quasi-identifier was published, determined from the published files.
pub(super) async fn report_quasi(
    published: &DataFrame,
    bound_policy: &BoundPolicy,
    manifest: &Manifest,
) -> Result<Vec<ColumnReport>> {
    let k = f64::from(manifest.k);
    let mut treated = Vec::new();
    for column in &bound_policy.quasi {
        let names: Vec<String> = published_fields(column).iter().map(|field| field.name().clone()).collect();
        let classes = published
            .clone()
            .aggregate(names.iter().map(ident).collect(), vec![count(lit(1)).alias("__rows")])?
            .collect()
            .await?;
        let histogram = if column.is_ordinal() {
            ordinal_histogram(column, &classes, k)?
        } else {
            category_histogram(&classes, k)?
        };
        let loss = manifest.scores.by_column.get(&column.name).copied();
        treated.push(ColumnReport { name: column.name.clone(), role: "quasi".into(), loss, histogram });
    }
    Ok(treated)
}

fn rows_of(batch: &RecordBatch) -> impl Fn(usize) -> f64 + '_ {
    let rows = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
    move |row| rows.value(row) as f64
}

/// How far a value reaches: whole numbers and dates up to the next one, so that what lies from 4 to 5 is half 5.
fn value_reach(data_type: &DataType) -> f64 {
    let whole = data_type.is_integer() || matches!(data_type, DataType::Date32 | DataType::Date64);
    if whole { 1.0 } else { 0.0 }
}

/// Published intervals of every class: its beginning and what it lies below (NaN where open), whether it is null, and
/// rows.
fn read_intervals(column: &QuasiColumn, batch: &RecordBatch) -> Result<Vec<(f64, f64, bool, f64)>> {
    let rows = rows_of(batch);
    let columns = &batch.columns()[..batch.num_columns() - 1];
    let reach = value_reach(&column.data_type);
    Ok(match Published::read_columns(column, columns)? {
        Published::Line(spans, unit) => {
            let interval = |(row, span): (usize, &Span)| {
                let (low, high) = match span {
                    Span::Missing | Span::Anything | Span::Nothing => (f64::NAN, f64::NAN),
                    Span::Between(low, high) => (unit.position(*low), unit.position(*high) + reach),
                    Span::Wide(low, high) => (unit.position_wide(*low), unit.position_wide(*high) + reach),
                    Span::HalfOpen(low, high) => (bound_end(low.as_ref()), bound_end(high.as_ref())),
                };
                (low, high, *span == Span::Missing, rows(row))
            };
            spans.iter().enumerate().map(interval).collect()
        }
        Published::Representative => {
            let at = to_ordinals(&columns[0])?;
            (0..batch.num_rows()).map(|row| (at[row], at[row], columns[0].is_null(row), rows(row))).collect()
        }
        Published::Text(..) => Vec::new(),
    })
}

fn bound_end(bound: Option<&Bound>) -> f64 {
    bound.map_or(f64::NAN, |bound| bound.number)
}

fn ordinal_histogram(column: &QuasiColumn, classes: &[RecordBatch], k: f64) -> Result<Histogram> {
    let mut published = Vec::new();
    for batch in classes {
        published.extend(read_intervals(column, batch)?);
    }
    Ok(spread_intervals(published, &column.data_type, k))
}

/// A histogram of intervals: beginning, end (NaN where open), whether it is null, and rows.
fn spread_intervals(intervals: Vec<(f64, f64, bool, f64)>, data_type: &DataType, k: f64) -> Histogram {
    let finite = intervals.iter().flat_map(|(low, high, ..)| [*low, *high]).filter(|end| end.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), end| (a.min(end), b.max(end)));
    // Where everything is open, nothing is known of what lies inside.
    let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
    let mut line = OrdinalBins::new(least, most, Kind::of_type(data_type));
    for (low, high, null, rows) in intervals {
        if null { line.add_missing(rows) } else { line.add_rows(low, high, rows) }
    }
    line.finish(k)
}

/// Rows by text, and rows without one; `None` if there are too many different texts.
async fn count_texts(rows: &DataFrame, name: &str) -> Result<Option<(BTreeMap<String, f64>, f64)>> {
    let counted = rows.clone().aggregate(vec![ident(name)], vec![count(lit(1)).alias("__rows")])?;
    let mut stream = counted.execute_stream().await?;
    let (mut values, mut missing) = (BTreeMap::new(), 0.0);
    while let Some(batch) = stream.try_next().await? {
        add_texts(&mut values, &mut missing, &batch)?;
        if values.len() > MAX_VALUES {
            return Ok(None);
        }
    }
    Ok(Some((values, missing)))
}

fn add_texts(values: &mut BTreeMap<String, f64>, missing: &mut f64, batch: &RecordBatch) -> Result<()> {
    let (words, rows) = (to_text(batch.column(0))?, rows_of(batch));
    for row in 0..batch.num_rows() {
        match words.is_null(row) {
            true => *missing += rows(row),
            false => *values.entry(words.value(row).to_owned()).or_default() += rows(row),
        }
    }
    Ok(())
}

fn category_histogram(classes: &[RecordBatch], k: f64) -> Result<Histogram> {
    let mut found = Categories::default();
    for batch in classes {
        add_texts(&mut found.rows, &mut found.missing, batch)?;
    }
    Ok(found.finish(k))
}

/// A published column that is not generalised, or whose policy is not known: as it stands.
pub(super) async fn published_histogram(
    rows: &DataFrame,
    name: &str,
    data_type: &DataType,
    k: f64,
) -> Result<Histogram> {
    if let DataType::Struct(fields) = data_type {
        // A range: two ends of one type.
        let ends: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        return if ends == ["min", "max"] {
            range_histogram(rows, name, fields[0].data_type(), k).await
        } else {
            Ok(Histogram::default())
        };
    }
    if is_number(data_type) || is_time(data_type) {
        let Some((least, most)) = column_ends(rows, name).await? else { return Ok(Histogram::default()) };
        let mut line = OrdinalBins::new(least, most, Kind::of_type(data_type));
        let mut stream = rows.clone().select(vec![ident(name)])?.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            for position in to_ordinals(batch.column(0))? {
                if position.is_nan() { line.add_missing(1.0) } else { line.add_rows(position, position, 1.0) }
            }
        }
        return Ok(line.finish(k));
    }
    let listed = matches!(
        data_type,
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Boolean | DataType::Dictionary(..)
    );
    if !listed {
        return Ok(Histogram::default());
    }
    let Some((rows, missing)) = count_texts(rows, name).await? else { return Ok(Histogram::default()) };
    Ok(Categories { rows, missing }.finish(k))
}

async fn range_histogram(rows: &DataFrame, name: &str, data_type: &DataType, k: f64) -> Result<Histogram> {
    let batches = rows.clone().aggregate(vec![ident(name)], vec![count(lit(1)).alias("__rows")])?.collect().await?;
    let mut found = Vec::new();
    for batch in &batches {
        let ends = batch.column(0).as_struct();
        let (low, high) = (to_ordinals(ends.column(0))?, to_ordinals(ends.column(1))?);
        let (rows, reach) = (rows_of(batch), value_reach(data_type));
        found.extend((0..batch.num_rows()).map(|row| (low[row], high[row] + reach, ends.is_null(row), rows(row))));
    }
    Ok(spread_intervals(found, data_type, k))
}

async fn column_ends(rows: &DataFrame, name: &str) -> Result<Option<(f64, f64)>> {
    let found = rows.clone().aggregate(vec![], vec![min(ident(name)), max(ident(name))])?.collect().await?;
    let batch = found.first().ok_or_else(|| Error::internal("an aggregate without a row"))?;
    let end = |column: &ArrayRef| -> Result<f64> { Ok(to_ordinals(column)?.first().copied().unwrap_or(f64::NAN)) };
    let (least, most) = (end(batch.column(0))?, end(batch.column(1))?);
    Ok((least.is_finite() && most.is_finite()).then_some((least, most)))
}

/// How varied a sensitive column is in the classes: the fewest values of any, and the largest share of one value.
pub(super) async fn class_variety(rows: &DataFrame, class_columns: &[String], name: &str) -> Result<Variety> {
    let keys = vec![content_key(class_columns).alias("__class"), ident(name).alias("__value")];
    let by_class = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("__rows")])?
        .aggregate(
            vec![ident("__class")],
            vec![
                count(lit(1)).alias("__values"),
                sum(ident("__rows")).alias("__size"),
                max(ident("__rows")).alias("__most"),
            ],
        )?
        .select(vec![
            ident("__values"),
            ident("__size"),
            (cast(ident("__most"), DataType::Float64) / cast(ident("__size"), DataType::Float64)).alias("__share"),
        ])?;
    let first = |sorted: DataFrame| async move {
        let batches = sorted.limit(0, Some(1))?.collect().await?;
        let batch = batches.into_iter().find(|batch| batch.num_rows() > 0);
        Ok::<_, Error>(batch.map(|batch| {
            let whole = |column: usize| batch.column(column).as_primitive::<Int64Type>().value(0) as u64;
            let share = batch.column(2).as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(0);
            (whole(0), whole(1), share)
        }))
    };
    let fewest = by_class.clone().sort(vec![ident("__values").sort(true, false), ident("__size").sort(true, false)])?;
    let largest = by_class.sort(vec![ident("__share").sort(false, false), ident("__size").sort(true, false)])?;
    let (fewest, largest) = (first(fewest).await?.unwrap_or_default(), first(largest).await?.unwrap_or_default());
    Ok(Variety {
        column: name.to_owned(),
        fewest: fewest.0,
        fewest_size: fewest.1,
        largest_share: largest.2,
        largest_size: largest.1,
    })
}
