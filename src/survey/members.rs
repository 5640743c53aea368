//! The survey of a source among public rows: how many rows are members, whether their share can be within the bounds at all,
//! and which cuts between cells keep it there.

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;

use crate::attack::Bounds;
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::model::{Code, MAX_SET_VALUES, Shape, Table};

/// Rows of the source in a batch whose last column says which are, when there are others.
pub(super) fn member_rows(bound_policy: &BoundPolicy, batch: &RecordBatch) -> Result<RecordBatch> {
    if bound_policy.member.is_none() {
        return Ok(batch.clone());
    }
    Ok(filter_record_batch(batch, &BooleanArray::from(member_flags(batch)))?)
}

/// Which rows of a sample are members.
pub(super) fn member_flags(rows: &RecordBatch) -> Vec<bool> {
    let last = rows.columns().last().and_then(|column| column.as_boolean_opt());
    last.map_or_else(Vec::new, |flags| (0..flags.len()).map(|row| flags.value(row)).collect())
}

/// Fails if the source is too small, or too large a part of the public table: no grouping can repair that. How many rows
/// the source holds is not said, for who is in it is the secret.
pub(super) fn ensure_feasible(rows: u64, members: Option<u64>, bound_policy: &BoundPolicy) -> Result<()> {
    let (Some(members), Some(rule)) = (members, &bound_policy.policy.privacy.presence) else { return Ok(()) };
    let public = rows - members;
    let k = bound_policy.policy.privacy.k;
    if members < u64::from(k) {
        return Err(Error::privacy(format!(
            "the input holds fewer rows than k = {k}; lower privacy.k or wait for more rows"
        )));
    }
    if members > public {
        return Err(Error::input(
            "the source holds more rows than the public table; privacy.presence.public must hold everybody who is in the \
             source",
        ));
    }
    if !Bounds::new(rule.min, rule.max).allow_counts(members, public) {
        return Err(Error::privacy(format!(
            "the share of the public people who are in the source, about {:.2}, leaves no way to keep chances between \
             privacy.presence.min = {} and max = {}; widen the bounds around that share",
            members as f64 / public.max(1) as f64,
            rule.min,
            rule.max
        )));
    }
    Ok(())
}

/// How many deviations a share seen in the sample must stay within the bounds.
const DEVIATIONS: f64 = 4.0;

/// Cuts between cells that keep groups apart and shares within the bounds.
///
/// Groups of two cells must not overlap in what they publish, and a node of a hierarchy, a null among values or a set too
/// large to list covers values of other cells. So cells are cut along lines and small sets without nulls only. The share
/// of members on both sides is known from the sample; were it wrong, the cell would be refused, not published.
pub(super) fn allowed_cuts<'a>(
    sample: &'a Table,
    weights: &'a [f64],
    flags: &'a [bool],
    bounds: &'a Bounds,
) -> impl Fn(usize, Code, &[u32]) -> bool + 'a {
    let (min, max) = (bounds.min().to_f64(), bounds.max().to_f64());
    move |axis, at, rows| {
        let apart = sample.axes[axis].null.is_none()
            && match sample.axes[axis].shape {
                Shape::Line { .. } => true,
                Shape::Set { values } => sample.axes[axis].exact && values <= MAX_SET_VALUES,
                Shape::Tree(_) => false,
            };
        apart
            && [true, false].iter().all(|left| {
                let side = || rows.iter().filter(|&&row| (sample.row(row)[axis] <= at) == *left);
                let weigh = |wanted: bool| -> f64 {
                    side().filter(|&&row| flags[row as usize] == wanted).map(|&row| weights[row as usize]).sum()
                };
                let (members, public, seen) = (weigh(true), weigh(false), side().count() as f64);
                if public <= 0.0 || seen <= 0.0 {
                    return false;
                }
                let share = members / public;
                let margin = DEVIATIONS * (share.max(1.0 / seen) / seen).sqrt();
                (min <= 0.0 || share - margin >= min) && (max >= 1.0 || share + margin <= max)
            })
    }
}
