//! Numbers, dates and timestamps without a hierarchy: ranges from the smallest to the largest value of the group.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, StructArray, UInt32Array, UInt64Array, make_comparator,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};

use super::{Groups, TOP, ValueText, label_array};
use crate::binding::published_fields;
use crate::encode::{ColumnEncoder, stored_digits, to_ordinals};
use crate::error::Result;
use crate::faults::Fault;
use crate::hierarchy::IntervalLabel;
use crate::policy::Publish;

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
pub(super) fn publish_ranges(
    encoder: &ColumnEncoder,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = to_ordinals(original)?;
    let (spans, losses) = group_spans(encoder, original, &positions, groups)?;
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
    let columns = match encoder.column().publish {
        Publish::Bounds => vec![lows, highs],
        Publish::Label => vec![range_labels(&spans, &lows, &highs)?],
        _ => {
            let valid = spans.iter().map(|span| !matches!(span, Span::Missing)).collect::<NullBuffer>();
            let fields = match published_fields(encoder.column())[0].data_type() {
                DataType::Struct(fields) => fields.clone(),
                _ => Default::default(),
            };
            vec![Arc::new(StructArray::try_new(fields, vec![lows, highs], Some(valid))?) as ArrayRef]
        }
    };
    Ok((columns, losses))
}

/// What every group spans, and what publishing that loses.
fn group_spans(
    encoder: &ColumnEncoder,
    original: &ArrayRef,
    positions: &[f64],
    groups: &Groups<'_>,
) -> Result<(Vec<Span>, Vec<f64>)> {
    // Positions of very large integers, long decimals and nanoseconds may coincide: the comparator decides ties.
    let exact = make_comparator(original.as_ref(), original.as_ref(), SortOptions::default())?;
    let less = |a: usize, b: usize| match positions[a].partial_cmp(&positions[b]) {
        Some(Ordering::Equal) => exact(a, b) == Ordering::Less,
        order => order == Some(Ordering::Less),
    };
    let spans: Vec<Span> = groups.batch_rows().map(|rows| rows_span(rows, positions, original, &less)).collect();
    let (min, max) = encoder.ordinal_ends().unwrap_or_default();
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

fn rows_span(
    mut rows: impl Iterator<Item = usize> + Clone,
    positions: &[f64],
    original: &ArrayRef,
    less: &impl Fn(usize, usize) -> bool,
) -> Span {
    let missing = rows.clone().filter(|row| positions[*row].is_nan()).count();
    if missing > 0 && !Fault::NullInRange.is_planted() {
        let nulls = rows.clone().filter(|row| original.is_null(*row)).count();
        return if nulls == rows.count() { Span::Missing } else { Span::Anything };
    }
    let Some(first) = rows.next() else { return Span::Missing };
    let (mut lo, mut hi) = (first, first);
    for row in rows {
        if less(row, lo) {
            lo = row;
        } else if less(hi, row) && !Fault::ShortRange.is_planted() {
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
                let (low, high) = (low.text_of(group)?, high.text_of(group)?);
                Some(IntervalLabel::closed(&low, &high).to_string())
            }
        });
    }
    Ok(label_array(text.into_iter()))
}

/// The mean of every group in the column's own type. What the group spans is lost, and counted as for a range.
pub(super) fn publish_centroids(
    encoder: &ColumnEncoder,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = to_ordinals(original)?;
    let (_, losses) = group_spans(encoder, original, &positions, groups)?;
    let data_type = &encoder.column().data_type;
    let known = |row: &usize| !positions[*row].is_nan();
    let means = match stored_digits(original)? {
        Some(digits) => {
            let means = groups.batch_rows().map(|rows| rounded_mean(rows.filter(known).map(|row| digits[row])));
            from_digits(means.collect(), data_type)?
        }
        None => {
            let means = groups.batch_rows().map(|rows| {
                let add = |(sum, count): (f64, u32), row: usize| (sum + positions[row], count + 1);
                let (sum, count) = rows.filter(known).fold((0.0, 0), add);
                (count > 0).then(|| sum / f64::from(count))
            });
            cast(&means.collect::<Float64Array>(), data_type)?
        }
    };
    Ok((vec![means], losses))
}

/// The whole number next to the mean, the further from zero of two; `None` without values. Quotients and remainders are
/// summed, which do not overflow.
fn rounded_mean(numbers: impl Iterator<Item = i128> + Clone) -> Option<i128> {
    let count = numbers.clone().count() as i128;
    let add =
        |(whole, rest): (i128, i128), number: i128| (whole + number.div_euclid(count), rest + number.rem_euclid(count));
    let (whole, rest) = if count > 0 { numbers.fold((0, 0), add) } else { return None };
    let (whole, rest) = (whole + rest / count, rest % count);
    let up = 2 * rest > count || 2 * rest == count && whole >= 0;
    Some(whole + i128::from(up))
}

/// Stored numbers back to values of a type.
fn from_digits(digits: Vec<Option<i128>>, data_type: &DataType) -> Result<ArrayRef> {
    let narrow =
        || digits.iter().map(|number| number.and_then(|number| i64::try_from(number).ok())).collect::<Int64Array>();
    let decimals = |precision, scale| -> Result<ArrayRef> {
        Ok(Arc::new(Decimal128Array::from(digits.clone()).with_precision_and_scale(precision, scale)?))
    };
    Ok(match data_type {
        DataType::UInt64 => {
            let numbers = digits.iter().map(|number| number.and_then(|number| u64::try_from(number).ok()));
            Arc::new(numbers.collect::<UInt64Array>())
        }
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => cast(&decimals(*precision, *scale)?, data_type)?,
        DataType::Decimal256(_, scale) => cast(&decimals(DECIMAL128_MAX_PRECISION, *scale)?, data_type)?,
        DataType::Date32 | DataType::Time32(_) => cast(&cast(&narrow(), &DataType::Int32)?, data_type)?,
        _ => cast(&narrow(), data_type)?,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Date32Array, TimestampNanosecondArray};

    use super::*;

    #[test]
    fn means_are_exact() {
        let mean = |numbers: &[i128]| rounded_mean(numbers.iter().copied());
        assert_eq!(mean(&[]), None);
        assert_eq!(
            (mean(&[1, 2]), mean(&[-1, -2]), mean(&[-1, 0]), mean(&[1, 1, 2])),
            (Some(2), Some(-2), Some(-1), Some(1))
        );
        let long = (1 << 53) + 1;
        assert_eq!(mean(&[long; 7]), Some(long));
        assert_eq!(mean(&[i64::MAX.into(), i64::MAX.into()]), Some(i64::MAX.into()));
        assert_eq!(mean(&[i128::MAX, i128::MAX - 2, i128::MIN]), Some(i128::MAX / 3 - 1));
    }

    #[test]
    fn stored_numbers_become_values_again() {
        let last = i64::MAX;
        let arrays: [ArrayRef; 6] = [
            Arc::new(Int64Array::from(vec![Some(last), None, Some(-last)])),
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)])),
            Arc::new(Date32Array::from(vec![Some(i32::MAX), None, Some(-1)])),
            Arc::new(TimestampNanosecondArray::from(vec![Some(last), None, Some(-1)]).with_timezone("+01:00")),
            Arc::new(
                Decimal128Array::from(vec![Some(10_i128.pow(37) + 1), None]).with_precision_and_scale(38, 5).unwrap(),
            ),
            cast(&Int64Array::from(vec![Some(123), None]), &DataType::Decimal32(9, 2)).unwrap(),
        ];
        for array in arrays {
            let digits = stored_digits(&array).unwrap().unwrap();
            let digits = digits.into_iter().enumerate().map(|(row, number)| array.is_valid(row).then_some(number));
            assert_eq!(&from_digits(digits.collect(), array.data_type()).unwrap(), &array);
        }
    }
}
