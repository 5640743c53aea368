//! Numbers, dates and timestamps without a hierarchy: ranges from the smallest to the largest value of the group.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array, StructArray, UInt32Array, make_comparator};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit};

use super::{Groups, TOP, ValueText, labels};
use crate::encode::{Coder, positions};
use crate::error::Result;
use crate::job::{Publish, published_fields};

/// What the values of a group span.
enum Span {
    /// Batch rows of the smallest and the largest value.
    Range(u32, u32),
    /// Every value is missing.
    Missing,
    /// Values and nulls together: published as the top.
    Anything,
}

/// Ranges in the column's published form, one per group, and their losses.
pub(super) fn ranges(coder: &Coder, original: &ArrayRef, groups: &Groups<'_>) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = positions(original)?;
    let (spans, losses) = spans(coder, original, &positions, groups)?;
    let end = |pick: fn(u32, u32) -> u32| -> Result<ArrayRef> {
        let rows: UInt32Array = spans
            .iter()
            .map(|span| match span {
                Span::Range(lo, hi) => Some(pick(*lo, *hi)),
                _ => None,
            })
            .collect();
        let ends = take(original, &rows, None)?;
        Ok(match ends.data_type() {
            DataType::Dictionary(_, values) => cast(&ends, values)?,
            _ => ends,
        })
    };
    let (lows, highs) = (end(|lo, _| lo)?, end(|_, hi| hi)?);
    let columns = match coder.column().publish {
        Publish::Bounds => vec![lows, highs],
        Publish::Label => vec![range_labels(&spans, &lows, &highs)?],
        _ => {
            let valid = spans.iter().map(|span| !matches!(span, Span::Missing)).collect::<NullBuffer>();
            let fields = match published_fields(coder.column())[0].data_type() {
                DataType::Struct(fields) => fields.clone(),
                _ => Default::default(),
            };
            vec![Arc::new(StructArray::try_new(fields, vec![lows, highs], Some(valid))?) as ArrayRef]
        }
    };
    Ok((columns, losses))
}

/// What every group spans, and what publishing that loses.
fn spans(coder: &Coder, original: &ArrayRef, positions: &[f64], groups: &Groups<'_>) -> Result<(Vec<Span>, Vec<f64>)> {
    // Positions of very large integers, long decimals and nanoseconds may coincide: the comparator decides ties.
    let exact = make_comparator(original.as_ref(), original.as_ref(), SortOptions::default())?;
    let less = |a: usize, b: usize| match positions[a].partial_cmp(&positions[b]) {
        Some(Ordering::Equal) => exact(a, b) == Ordering::Less,
        order => order == Some(Ordering::Less),
    };
    let spans: Vec<Span> = groups.batch_rows().map(|rows| span(rows, positions, original, &less)).collect();
    let (min, max) = coder.line().unwrap_or_default();
    let width = max - min;
    let losses = spans
        .iter()
        .map(|span| match span {
            Span::Range(lo, hi) if width > 0.0 => {
                ((positions[*hi as usize] - positions[*lo as usize]) / width).clamp(0.0, 1.0)
            }
            Span::Anything => 1.0,
            _ => 0.0,
        })
        .collect();
    Ok((spans, losses))
}

fn span(
    mut rows: impl Iterator<Item = usize> + Clone,
    positions: &[f64],
    original: &ArrayRef,
    less: &impl Fn(usize, usize) -> bool,
) -> Span {
    let missing = rows.clone().filter(|row| positions[*row].is_nan()).count();
    if missing > 0 {
        let nulls = rows.clone().filter(|row| original.is_null(*row)).count();
        return if nulls == rows.count() { Span::Missing } else { Span::Anything };
    }
    let Some(first) = rows.next() else { return Span::Missing };
    let (mut lo, mut hi) = (first, first);
    for row in rows {
        if less(row, lo) {
            lo = row;
        } else if less(hi, row) {
            hi = row;
        }
    }
    Span::Range(lo as u32, hi as u32)
}

fn range_labels(spans: &[Span], lows: &ArrayRef, highs: &ArrayRef) -> Result<ArrayRef> {
    let (low, high) = (ValueText::new(lows)?, ValueText::new(highs)?);
    let mut text = Vec::with_capacity(spans.len());
    for (group, span) in spans.iter().enumerate() {
        text.push(match span {
            Span::Missing => None,
            Span::Anything => Some(TOP.to_owned()),
            Span::Range(..) => {
                let (low, high) = (low.of(group)?, high.of(group)?);
                Some(if low == high { low } else { format!("[{low}, {high}]") })
            }
        });
    }
    Ok(labels(text.into_iter()))
}

/// The mean of every group in the column's own type. What the group spans is lost, and counted as for a range.
pub(super) fn centroid(coder: &Coder, original: &ArrayRef, groups: &Groups<'_>) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = positions(original)?;
    let (_, losses) = spans(coder, original, &positions, groups)?;
    let means: Float64Array = groups
        .batch_rows()
        .map(|rows| {
            let (mut sum, mut count) = (0.0, 0_u32);
            for position in rows.map(|row| positions[row]).filter(|position| !position.is_nan()) {
                sum += position;
                count += 1;
            }
            (count > 0).then(|| sum / f64::from(count))
        })
        .collect();
    Ok((vec![from_positions(&means, &coder.column().data_type)?], losses))
}

/// Positions back to values of the original type, rounded where the type is coarser.
fn from_positions(means: &Float64Array, data_type: &DataType) -> Result<ArrayRef> {
    const DAY: f64 = 86_400.0;
    let scaled = |scale: f64| -> ArrayRef { Arc::new(means.unary::<_, Float64Type>(|mean| (mean * scale).round())) };
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    };
    let (numbers, through) = match data_type {
        DataType::Date32 => (scaled(1.0), Some(DataType::Int32)),
        DataType::Date64 => (scaled(DAY * 1e3), Some(DataType::Int64)),
        DataType::Timestamp(unit, _) => (scaled(DAY * per_second(unit)), Some(DataType::Int64)),
        DataType::Time32(unit) => (scaled(DAY * per_second(unit)), Some(DataType::Int32)),
        DataType::Time64(unit) => (scaled(DAY * per_second(unit)), Some(DataType::Int64)),
        integer if integer.is_integer() => (scaled(1.0), None),
        _ => (Arc::new(means.clone()) as ArrayRef, None),
    };
    let numbers = match through {
        Some(through) => cast(&numbers, &through)?,
        None => numbers,
    };
    Ok(cast(&numbers, data_type)?)
}
