//! Whether a published value covers an original one: read from the published value alone, as a reader would.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;

use crate::encode::{positions, text};
use crate::error::{Error, Result};
use crate::hierarchy::{Bucket, Hierarchy, Period, TOP};
use crate::policy::Publish;
use crate::treatment::QuasiColumn;

/// The published values of one quasi-identifier in one batch.
#[derive(Debug)]
pub(crate) enum Published {
    /// Intervals: ends by row (NaN where there is none), and which rows are null.
    Intervals { low: Vec<f64>, high: Vec<f64>, null: Vec<bool> },
    /// Labels of text, and the hierarchy they come from.
    Labels(StringViewArray, Option<Arc<Hierarchy>>),
    /// Labels of numbers and points in time, the hierarchy they come from, and the positions of those labels that are
    /// single values.
    Steps(StringViewArray, Option<Arc<Hierarchy>>, Vec<f64>),
    /// A representative value covers nothing but itself: there is nothing to check.
    Representative,
}

/// The original values of one quasi-identifier in one batch; what is no number is missing.
#[derive(Debug)]
pub(crate) enum Original {
    Positions(Vec<f64>, Vec<bool>),
    Text(StringViewArray),
}

impl Published {
    /// Reads the published columns of a quasi-identifier.
    pub(crate) fn read(quasi: &QuasiColumn, columns: &[ArrayRef]) -> Result<Self> {
        Ok(match quasi.publish {
            Publish::Centroid => Self::Representative,
            Publish::Bounds => Self::Intervals {
                low: positions(&columns[0])?,
                high: positions(&columns[1])?,
                null: vec![false; columns[0].len()],
            },
            Publish::Range => {
                let ends = columns[0].as_struct_opt().filter(|ends| ends.num_columns() == 2);
                let no_range = || Error::Privacy(format!("column `{}` is not published as ranges", quasi.name));
                let ends = ends.ok_or_else(no_range)?;
                let null = (0..ends.len()).map(|row| ends.is_null(row)).collect();
                Self::Intervals { low: positions(ends.column(0))?, high: positions(ends.column(1))?, null }
            }
            Publish::Label if quasi.hierarchy.is_none() && quasi.quantiles.is_none() && quasi.on_a_line() => {
                line_labels(&text(&columns[0])?, &quasi.data_type)?
            }
            Publish::Label if quasi.on_a_line() => {
                // What is no value of the type is null after the cast: an interval or a unit of the calendar.
                let singles = cast(&cast(&columns[0], &DataType::Utf8)?, &quasi.data_type)?;
                Self::Steps(text(&columns[0])?, quasi.hierarchy.clone(), positions(&singles)?)
            }
            Publish::Label => Self::Labels(text(&columns[0])?, quasi.hierarchy.clone()),
        })
    }

    /// Whether the published value of a row covers the original value of another.
    pub(crate) fn covers(&self, row: usize, original: &Original, other: usize) -> bool {
        match (self, original) {
            (Self::Representative, _) => true,
            (Self::Intervals { low, high, null }, Original::Positions(at, missing)) => {
                let anything = low[row].is_nan() && high[row].is_nan() && !null[row];
                match (null[row], missing[other]) {
                    (true, missing) => missing,
                    (false, true) => anything,
                    (false, false) => anything || (low[row] <= at[other] && at[other] <= high[row]),
                }
            }
            (Self::Steps(labels, hierarchy, singles), Original::Positions(at, missing)) => {
                if labels.is_null(row) || missing[other] {
                    return labels.is_null(row) == missing[other] || labels.value(row) == TOP;
                }
                singles[row] == at[other] || step_covers(labels.value(row), hierarchy.as_deref(), at[other])
            }
            (Self::Labels(labels, hierarchy), Original::Text(values)) => {
                if labels.is_null(row) || values.is_null(other) {
                    let root = matches!(hierarchy.as_deref(), Some(Hierarchy::Levels(levels)) if !labels.is_null(row) && labels.value(row) == levels.root());
                    return (labels.is_null(row) == values.is_null(other))
                        || root
                        || (!labels.is_null(row) && labels.value(row) == TOP);
                }
                let (label, value) = (labels.value(row), values.value(other));
                match hierarchy.as_deref() {
                    Some(Hierarchy::Levels(levels)) => levels.covers(label, value),
                    Some(Hierarchy::Mask(mask)) => mask.covers(label, value),
                    _ => set_covers(label, value),
                }
            }
            (Self::Intervals { .. } | Self::Steps(..), Original::Text(_))
            | (Self::Labels(..), Original::Positions(..)) => false,
        }
    }
}

impl Original {
    /// Reads the original column of a quasi-identifier.
    pub(crate) fn read(quasi: &QuasiColumn, column: &ArrayRef) -> Result<Self> {
        if quasi.on_a_line() {
            let at = positions(column)?;
            let missing = at.iter().map(|at| at.is_nan()).collect();
            return Ok(Self::Positions(at, missing));
        }
        Ok(Self::Text(text(column)?))
    }
}

/// An interval of a ladder, or a unit of the calendar.
fn step_covers(label: &str, hierarchy: Option<&Hierarchy>, at: f64) -> bool {
    label == TOP || step(label, hierarchy).is_some_and(|(lower, upper)| lower <= at && at < upper)
}

/// The ends of an interval of a ladder, or of a unit of the calendar; the upper one lies outside.
pub(crate) fn step(label: &str, hierarchy: Option<&Hierarchy>) -> Option<(f64, f64)> {
    if matches!(hierarchy, Some(Hierarchy::Calendar(_))) {
        return Period::parse(label).map(|period| (period.start as f64, period.end as f64));
    }
    Bucket::parse(label).map(|bucket| (bucket.lower, bucket.upper))
}

/// `{a, b}` holds a and b; any other label is the value itself.
pub(crate) fn set_covers(label: &str, value: &str) -> bool {
    if label == TOP || label == value {
        return true;
    }
    let Some(inside) = label.strip_prefix('{').and_then(|label| label.strip_suffix('}')) else { return false };
    inside.match_indices(value).any(|(at, _)| {
        let (before, after) = (&inside[..at], &inside[at + value.len()..]);
        (before.is_empty() || before.ends_with(", ")) && (after.is_empty() || after.starts_with(", "))
    })
}

/// `[30, 40]`, `30` or `*` back to ends.
fn line_labels(labels: &StringViewArray, data_type: &DataType) -> Result<Published> {
    let ends = |row: usize| -> (Option<String>, Option<String>) {
        if labels.is_null(row) || labels.value(row) == TOP {
            return (None, None);
        }
        let label = labels.value(row);
        match label.strip_prefix('[').and_then(|label| label.strip_suffix(']')).and_then(|label| label.split_once(", "))
        {
            Some((low, high)) => (Some(low.to_owned()), Some(high.to_owned())),
            None => (Some(label.to_owned()), Some(label.to_owned())),
        }
    };
    let (low, high): (Vec<_>, Vec<_>) = (0..labels.len()).map(ends).unzip();
    let low: ArrayRef = cast(&StringArray::from(low), data_type)?;
    let high: ArrayRef = cast(&StringArray::from(high), data_type)?;
    let null = (0..labels.len()).map(|row| labels.is_null(row)).collect();
    Ok(Published::Intervals { low: positions(&low)?, high: positions(&high)?, null })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_their_members_only() {
        assert!(set_covers("{a, b c, d}", "b c"));
        assert!(!set_covers("{a, b c, d}", "b"));
        assert!(!set_covers("{ab, cd}", "b"));
        assert!(set_covers("*", "anything"));
        assert!(set_covers("plain", "plain") && !set_covers("plain", "other"));
    }

    #[test]
    fn steps_hold_what_lies_inside() {
        assert!(step_covers("[20, 25)", None, 20.0) && !step_covers("[20, 25)", None, 25.0));
        assert!(step_covers("*", None, 24.0) && !step_covers("23", None, 24.0));
    }
}
