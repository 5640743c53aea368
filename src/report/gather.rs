//! Reads what a report shows: the published files, and the source where a job is given.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{cast, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::bins::{Categories, Histogram, Kind, Line, Members};
use super::{Treated, Variety};
use crate::encode::{is_number, is_time, positions, text};
use crate::error::{Error, Result};
use crate::hierarchy::{Bucket, End, Hierarchy, Period, TOP};
use crate::job::{QuasiColumn, Treatment, published_fields};
use crate::release::{Manifest, Published, fingerprint};

/// Distinct values of a text column beyond which it has no histogram.
const MOST_VALUES: usize = 50_000;

/// Bins that masked codes are shown in, at most.
const MOST_BEGINNINGS: usize = 16;

/// What was done to every quasi-identifier, told from the published files and, where it is given, the source.
pub(super) async fn quasi(
    published: &DataFrame,
    source: Option<&DataFrame>,
    treatment: &Treatment,
    manifest: &Manifest,
) -> Result<Vec<Treated>> {
    let k = f64::from(manifest.k);
    let mut treated = Vec::new();
    for column in &treatment.quasi {
        let names: Vec<String> = published_fields(column).iter().map(|field| field.name().clone()).collect();
        let classes = published
            .clone()
            .aggregate(names.iter().map(ident).collect(), vec![count(lit(1)).alias("__rows")])?
            .collect()
            .await?;
        let histogram = if column.on_a_line() {
            line(column, &classes, source, k).await?
        } else {
            categories(column, &classes, source, k).await?
        };
        let loss = manifest.scores.by_column.get(&column.name).copied();
        treated.push(Treated { name: column.name.clone(), role: "quasi".into(), loss, histogram });
    }
    Ok(treated)
}

fn rows_of(batch: &RecordBatch) -> impl Fn(usize) -> f64 + '_ {
    let rows = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
    move |row| rows.value(row) as f64
}

/// How far a value reaches: whole numbers and dates up to the next one, so that what lies from 4 to 5 is half 5.
fn reach(data_type: &DataType) -> f64 {
    let whole = data_type.is_integer() || matches!(data_type, DataType::Date32 | DataType::Date64);
    if whole { 1.0 } else { 0.0 }
}

/// Published intervals of every class: its beginning and what it lies below (NaN where open), whether it is null, and
/// rows.
fn intervals(column: &QuasiColumn, batch: &RecordBatch) -> Result<Vec<(f64, f64, bool, f64)>> {
    let rows = rows_of(batch);
    let columns = &batch.columns()[..batch.num_columns() - 1];
    let reach = reach(&column.data_type);
    Ok(match Published::read(column, columns)? {
        Published::Intervals { low, high, null } => {
            (0..batch.num_rows()).map(|row| (low[row], high[row] + reach, null[row], rows(row))).collect()
        }
        Published::Steps(labels, hierarchy, singles) => (0..batch.num_rows())
            .map(|row| {
                let label = if labels.is_null(row) { TOP } else { labels.value(row) };
                let (low, high) = match hierarchy.as_deref() {
                    _ if !singles[row].is_nan() => (singles[row], singles[row] + reach),
                    Some(Hierarchy::Calendar(_)) => Period::parse(label)
                        .map_or((f64::NAN, f64::NAN), |period| (period.start as f64, period.end as f64)),
                    _ => Bucket::parse(label)
                        .map_or((f64::NAN, f64::NAN), |bucket| (finite(bucket.lower), finite(bucket.upper))),
                };
                (low, high, labels.is_null(row), rows(row))
            })
            .collect(),
        Published::Representative => {
            let at = positions(&columns[0])?;
            (0..batch.num_rows()).map(|row| (at[row], at[row], columns[0].is_null(row), rows(row))).collect()
        }
        Published::Labels(..) => Vec::new(),
    })
}

fn finite(end: f64) -> f64 {
    if end.is_finite() { end } else { f64::NAN }
}

async fn line(column: &QuasiColumn, classes: &[RecordBatch], source: Option<&DataFrame>, k: f64) -> Result<Histogram> {
    let mut published = Vec::new();
    for batch in classes {
        published.extend(intervals(column, batch)?);
    }
    let ends = published.iter().flat_map(|(low, high, ..)| [*low, *high]).filter(|end| end.is_finite());
    let (min, max) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), end| (min.min(end), max.max(end)));
    // Where everything is open, only the source tells what lies inside.
    let known = match source {
        _ if min <= max => Some((min, max)),
        Some(source) => self::ends(source, &column.name).await?,
        None => None,
    };
    let (min, max) = known.unwrap_or((0.0, 1.0));
    let mut line = Line::new(min, max, Kind::of(&column.data_type), source.is_some());
    for (low, high, null, rows) in published {
        if null { line.add_missing(rows) } else { line.add_after(low, high, rows) }
    }
    if let Some(source) = source {
        let mut stream = source.clone().select(vec![ident(&column.name)])?.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            positions(batch.column(0))?.into_iter().for_each(|position| line.add_before(position, 1.0));
        }
    }
    Ok(line.finish(k))
}

/// Rows by text, and rows without one; none when there are too many different texts.
async fn counted(rows: &DataFrame, name: &str) -> Result<Option<(BTreeMap<String, f64>, f64)>> {
    let counted = rows.clone().aggregate(vec![ident(name)], vec![count(lit(1)).alias("__rows")])?;
    let mut stream = counted.execute_stream().await?;
    let (mut values, mut missing) = (BTreeMap::new(), 0.0);
    while let Some(batch) = stream.try_next().await? {
        add_texts(&mut values, &mut missing, &batch)?;
        if values.len() > MOST_VALUES {
            return Ok(None);
        }
    }
    Ok(Some((values, missing)))
}

fn add_texts(values: &mut BTreeMap<String, f64>, missing: &mut f64, batch: &RecordBatch) -> Result<()> {
    let (words, rows) = (text(batch.column(0))?, rows_of(batch));
    for row in 0..batch.num_rows() {
        match words.is_null(row) {
            true => *missing += rows(row),
            false => *values.entry(words.value(row).to_owned()).or_default() += rows(row),
        }
    }
    Ok(())
}

async fn categories(
    column: &QuasiColumn,
    classes: &[RecordBatch],
    source: Option<&DataFrame>,
    k: f64,
) -> Result<Histogram> {
    let mut found = Categories::default();
    for batch in classes {
        add_texts(&mut found.after, &mut found.missing.1, batch)?;
    }
    if let Some(source) = source {
        match counted(source, &column.name).await? {
            Some((values, missing)) => (found.before, found.missing.0) = (Some(values), missing),
            None => return Ok(Histogram::default()),
        }
    }
    let known: Vec<String> = found.before.iter().flat_map(|values| values.keys().cloned()).collect();
    Ok(match column.hierarchy.as_deref() {
        Some(Hierarchy::Levels(levels)) => found.finish(k, |label| match levels.span_of(label) {
            _ if label == levels.root() => Members::All,
            Some((lo, hi)) => Members::Some((lo..=hi).map(|leaf| levels.leaf_label(leaf).to_owned()).collect()),
            None => Members::All,
        }),
        Some(Hierarchy::Mask(mask)) if found.before.is_some() => masked(found, &known, mask.hides(), mask.fill(), k),
        _ => found.finish(k, |label| set(label, &known)),
    })
}

/// Members of `{a, b}`, or the label itself.
fn set(label: &str, known: &[String]) -> Members {
    if label == TOP {
        return Members::All;
    }
    let inside = label.strip_prefix('{').and_then(|label| label.strip_suffix('}'));
    match inside.filter(|_| known.binary_search_by(|value| value.as_str().cmp(label)).is_err()) {
        Some(inside) => Members::Some(inside.split(", ").map(str::to_owned).collect()),
        None => Members::Some(vec![label.to_owned()]),
    }
}

/// Codes by as many of their kept characters as make a handful of bins.
fn masked(found: Categories, known: &[String], hides: End, fill: char, k: f64) -> Histogram {
    let kept = |value: &str, length: usize| -> String {
        let characters: Vec<char> = value.chars().collect();
        let length = length.min(characters.len());
        match hides {
            End::Right => characters[..length].iter().collect(),
            End::Left => characters[characters.len() - length..].iter().collect(),
        }
    };
    let distinct =
        |length: usize| known.iter().map(|value| kept(value, length)).collect::<std::collections::BTreeSet<_>>();
    let length = (1..12).take_while(|length| distinct(*length).len() <= MOST_BEGINNINGS).last().unwrap_or(1);
    let name = |part: &str| match hides {
        End::Right => format!("{part}…"),
        End::Left => format!("…{part}"),
    };
    let bins: Vec<String> = distinct(length).into_iter().collect();
    let regroup = |rows: &BTreeMap<String, f64>| {
        let mut regrouped: BTreeMap<String, f64> = BTreeMap::new();
        rows.iter().for_each(|(value, rows)| *regrouped.entry(name(&kept(value, length))).or_default() += rows);
        regrouped
    };
    let before = found.before.as_ref().map(regroup);
    let found = Categories { before, ..found };
    found.finish(k, |label| {
        let visible = match hides {
            End::Right => label.trim_end_matches(fill),
            End::Left => label.trim_start_matches(fill),
        };
        if visible.chars().count() >= length {
            return Members::Some(vec![name(&kept(visible, length))]);
        }
        let fits = |bin: &&String| match hides {
            End::Right => bin.starts_with(visible),
            End::Left => bin.ends_with(visible),
        };
        let members: Vec<String> = bins.iter().filter(fits).map(|bin| name(bin)).collect();
        if members.is_empty() { Members::All } else { Members::Some(members) }
    })
}

/// A published column that is not generalised, or whose policy is not known: as it stands.
pub(super) async fn published(rows: &DataFrame, name: &str, data_type: &DataType, k: f64) -> Result<Histogram> {
    if let DataType::Struct(fields) = data_type {
        // A range: two ends of one type.
        let ends: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        return if ends == ["min", "max"] {
            ranges(rows, name, fields[0].data_type(), k).await
        } else {
            Ok(Histogram::default())
        };
    }
    if is_number(data_type) || is_time(data_type) {
        let Some((least, most)) = ends(rows, name).await? else { return Ok(Histogram::default()) };
        let mut line = Line::new(least, most, Kind::of(data_type), false);
        let mut stream = rows.clone().select(vec![ident(name)])?.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            for position in positions(batch.column(0))? {
                if position.is_nan() { line.add_missing(1.0) } else { line.add_after(position, position, 1.0) }
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
    let Some((after, missing)) = counted(rows, name).await? else { return Ok(Histogram::default()) };
    Ok(Categories { before: None, after, missing: (0.0, missing) }.finish(k, |_| Members::All))
}

async fn ranges(rows: &DataFrame, name: &str, data_type: &DataType, k: f64) -> Result<Histogram> {
    let batches = rows.clone().aggregate(vec![ident(name)], vec![count(lit(1)).alias("__rows")])?.collect().await?;
    let mut found = Vec::new();
    for batch in &batches {
        let ends = batch.column(0).as_struct();
        let (low, high) = (positions(ends.column(0))?, positions(ends.column(1))?);
        let (rows, reach) = (rows_of(batch), reach(data_type));
        found.extend((0..batch.num_rows()).map(|row| (low[row], high[row] + reach, ends.is_null(row), rows(row))));
    }
    let finite = found.iter().flat_map(|(low, high, ..)| [*low, *high]).filter(|end| end.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), end| (a.min(end), b.max(end)));
    let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
    let mut line = Line::new(least, most, Kind::of(data_type), false);
    for (low, high, null, rows) in found {
        if null { line.add_missing(rows) } else { line.add_after(low, high, rows) }
    }
    Ok(line.finish(k))
}

async fn ends(rows: &DataFrame, name: &str) -> Result<Option<(f64, f64)>> {
    let found = rows.clone().aggregate(vec![], vec![min(ident(name)), max(ident(name))])?.collect().await?;
    let batch = found.first().ok_or_else(|| Error::Internal("an aggregate without a row".into()))?;
    let end = |column: &ArrayRef| -> Result<f64> { Ok(positions(column)?.first().copied().unwrap_or(f64::NAN)) };
    let (least, most) = (end(batch.column(0))?, end(batch.column(1))?);
    Ok((least.is_finite() && most.is_finite()).then_some((least, most)))
}

/// How varied a sensitive column is in the classes: the fewest values of any, and the largest share of one value.
pub(super) async fn variety(rows: &DataFrame, class_columns: &[String], name: &str) -> Result<Variety> {
    let mut keys = fingerprint(class_columns);
    keys.push(ident(name).alias("__value"));
    let by_class = rows
        .clone()
        .aggregate(keys, vec![count(lit(1)).alias("__rows")])?
        .aggregate(
            vec![ident("class_a"), ident("class_b")],
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
