//! Numbers on a ladder of intervals, points in time on a calendar: the smallest step that holds the whole group.
//!
//! Which step holds a value is decided on the exact value: by its digits when it has more of them than a double holds, and by
//! its whole day for a point in time.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;

use super::{Groups, TOP, ValueText, label_array};
use crate::encode::{ColumnEncoder, day_numbers, decimal_digits, to_ordinals};
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::hierarchy::{Calendar, Decimal, Ladder};

/// What the values of a column generalise to.
pub(super) enum Steps<'a> {
    Ladder(&'a Ladder),
    Calendar(&'a Calendar),
}

/// A step by its label and its ends.
type Step = (String, f64, f64);

/// Labels of the smallest steps that hold each group, and their losses: the step's share of the domain. A group of one single
/// value keeps that value.
pub(super) fn labels_of(
    encoder: &ColumnEncoder,
    original: &ArrayRef,
    groups: &Groups<'_>,
    steps: &Steps<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = to_ordinals(original)?;
    let cover = cover_steps(encoder, original, &positions, steps)?;
    let single = ValueText::new(original)?;
    // Positions of very large integers, long decimals and nanoseconds may coincide: the comparator decides ties.
    let exact = make_comparator(original.as_ref(), original.as_ref(), SortOptions::default())?;
    let order = |a: usize, b: usize| match positions[a].partial_cmp(&positions[b]) {
        Some(Ordering::Equal) | None => exact(a, b),
        Some(order) => order,
    };
    let (domain_min, domain_max) = encoder.ordinal_ends().unwrap_or_default();
    let mut losses = Vec::with_capacity(groups.grouping.len());
    let mut text: Vec<Option<String>> = Vec::with_capacity(groups.grouping.len());
    for mut rows in groups.batch_rows() {
        let (mut missing, mut nulls, mut count) = (0, 0, 0);
        for row in rows.clone() {
            count += 1;
            if positions[row].is_nan() {
                missing += 1;
                nulls += usize::from(original.is_null(row));
            }
        }
        let (label, loss) = if nulls == count {
            (None, 0.0)
        } else if missing > 0 {
            (Some(TOP.to_owned()), 1.0)
        } else {
            let first = rows.next().unwrap_or_default();
            let (mut min, mut max) = (first, first);
            for row in rows {
                if order(row, min).is_lt() {
                    min = row;
                } else if order(row, max).is_gt() && !Fault::LowStep.is_planted() {
                    max = row;
                }
            }
            match order(min, max).is_eq() {
                true => (Some(single.text_of(min)?), 0.0),
                false => match cover(min, max)? {
                    Some((label, lower, upper)) => {
                        let width = upper.min(domain_max) - lower.max(domain_min);
                        let domain = domain_max - domain_min;
                        (Some(label), if domain > 0.0 { (width / domain).clamp(0.0, 1.0) } else { 0.0 })
                    }
                    None => (Some(TOP.to_owned()), 1.0),
                },
            }
        };
        losses.push(loss);
        text.push(label);
    }
    Ok((vec![label_array(text.into_iter())], losses))
}

/// The smallest step that holds the values of two rows.
type CoverOf<'a> = Box<dyn Fn(usize, usize) -> Result<Option<Step>> + 'a>;

/// Finds the smallest step that holds the values of two rows, the first of which is not the larger one.
fn cover_steps<'a>(
    encoder: &'a ColumnEncoder,
    original: &ArrayRef,
    positions: &'a [f64],
    steps: &'a Steps<'_>,
) -> Result<CoverOf<'a>> {
    let name = &encoder.column().name;
    Ok(match steps {
        Steps::Calendar(calendar) => {
            let days = day_numbers(original)?;
            Box::new(move |min, max| {
                let period = calendar.cover_moments(days[min], days[max]);
                Ok(period.map(|period| (period.to_string(), period.start as f64, period.end as f64)))
            })
        }
        Steps::Ladder(ladder) => match decimal_digits(original, positions)? {
            None => Box::new(move |min, max| {
                let bucket = ladder.cover_numbers(positions[min], positions[max]);
                Ok(bucket.map(|bucket| (bucket.to_string(), bucket.lower, bucket.upper)))
            }),
            Some((digits, scale)) => Box::new(move |min, max| {
                let decimal = |row: usize| Decimal { digits: digits[row], scale };
                let step = ladder.cover_digits(decimal(min), decimal(max));
                let step = step.map_err(|error| Error::job(format!("columns.{name}.hierarchy: {error}")))?;
                Ok(step.map(|(label, bucket)| (label, bucket.lower, bucket.upper)))
            }),
        },
    })
}
