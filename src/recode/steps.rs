//! Numbers and points in time on a ladder of intervals: the smallest interval that holds the whole group.

use datafusion::arrow::array::{Array, ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;

use super::{Groups, TOP, ValueText, labels};
use crate::encode::{Coder, positions};
use crate::error::Result;

/// Labels of the intervals that `bucket` finds for the ends of each group, and their losses: the interval's share of
/// the domain. A group of one single value keeps that value.
pub(super) fn labels_of(
    coder: &Coder,
    original: &ArrayRef,
    groups: &Groups<'_>,
    bucket: impl Fn(f64, f64) -> Option<(String, f64, f64)>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let positions = positions(original)?;
    let single = ValueText::new(original)?;
    // Positions of very large integers, long decimals and nanoseconds may coincide: the comparator decides ties.
    let exact = make_comparator(original.as_ref(), original.as_ref(), SortOptions::default())?;
    let (domain_min, domain_max) = coder.line().unwrap_or_default();
    let mut losses = Vec::with_capacity(groups.grouping.len());
    let mut text: Vec<Option<String>> = Vec::with_capacity(groups.grouping.len());
    for mut rows in groups.batch_rows() {
        let (mut min, mut max, mut first, mut missing, mut nulls, mut count) =
            (f64::INFINITY, f64::NEG_INFINITY, 0, 0, 0, 0);
        for row in rows.clone() {
            first = row;
            count += 1;
            if positions[row].is_nan() {
                missing += 1;
                nulls += usize::from(original.is_null(row));
            } else {
                min = min.min(positions[row]);
                max = max.max(positions[row]);
            }
        }
        let (label, loss) = if nulls == count {
            (None, 0.0)
        } else if missing > 0 {
            (Some(TOP.to_owned()), 1.0)
        } else if min == max && rows.all(|row| exact(row, first).is_eq()) {
            (Some(single.of(first)?), 0.0)
        } else {
            match bucket(min, max) {
                Some((label, lower, upper)) => {
                    let width = upper.min(domain_max) - lower.max(domain_min);
                    let domain = domain_max - domain_min;
                    (Some(label), if domain > 0.0 { (width / domain).clamp(0.0, 1.0) } else { 0.0 })
                }
                None => (Some(TOP.to_owned()), 1.0),
            }
        };
        losses.push(loss);
        text.push(label);
    }
    Ok((vec![labels(text.into_iter())], losses))
}
