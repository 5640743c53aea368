//! The encoder of one quasi-identifier: made from its policy and the survey's statistics, it turns values into codes.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::buffer::NullBuffer;

use super::dictionary::{Dictionary, map_text, to_text};
use super::{ColumnStats, to_ordinals};
use crate::binding::QuasiColumn;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::hierarchy::{Hierarchy, Ladder, LevelTree, Mask};
use crate::model::{Axis, Code, LINE_STEPS, NULL_ON_LINE, Shape};
use crate::policy::{Nulls, Publish, Unknown};

/// Turns the values of one quasi-identifier into codes on its [`Axis`].
#[derive(Debug, Clone)]
pub(crate) struct ColumnEncoder {
    column: QuasiColumn,
    hierarchy: Option<Arc<Hierarchy>>,
    axis: Axis,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// `code = (position - min) * steps`.
    Line {
        min: f64,
        max: f64,
        steps: f64,
        span: Code,
    },
    Leaves {
        unknown: Option<Code>,
    },
    Dictionary(Arc<Dictionary>),
}

/// Most leaves or words an axis can hold beside the codes of null and unknown.
pub(crate) const MAX_CODES: usize = 60_000;

impl ColumnEncoder {
    /// The encoder of a column whose statistics the survey has found.
    pub(crate) fn new(column: &QuasiColumn, stats: &ColumnStats) -> Result<Self> {
        let mut axis = Axis::new(&column.name, Shape::Line { span: 0 });
        (axis.weight, axis.withheld) = (column.weight, column.withheld);
        axis.ordered = matches!(stats, ColumnStats::Line { .. });
        let mut resolved = None;
        let kind = match (stats, column.hierarchy.as_deref()) {
            (ColumnStats::Line { min, max, whole, nulls, varied, quantiles }, hierarchy) => {
                // A declared domain may be wider than the data, not narrower: every value has a code of its own.
                let [low, high] = column.domain.unwrap_or([*min, *max]);
                let (min, max) = (min.min(low), max.max(high));
                let min = if Fault::StaleDomain.is_planted() { min - 3.0 * (max - min) } else { min };
                let width = (max - min).max(0.0);
                // Beyond 2^53 neighbouring whole numbers have one position.
                let apart = min.abs().max(max.abs()) < (1_u64 << f64::MANTISSA_DIGITS) as f64;
                let exact = *whole && apart && min.fract() == 0.0 && width <= f64::from(LINE_STEPS);
                let span = if exact { width as Code } else { LINE_STEPS };
                let steps = if width > 0.0 { f64::from(span) / width } else { 0.0 };
                axis.exact = exact || !varied;
                // Bounds have no third column to say whether two nulls are null or everything.
                axis.shared_null = column.data_type.is_floating() || column.publish == Publish::Bounds;
                let kind = Kind::Line { min, max, steps, span };
                let quantiles = quantile_ladder(column, quantiles)?;
                match quantiles.as_deref().or(hierarchy) {
                    None => {
                        axis.shape = Shape::Line { span };
                        axis.null = (*nulls > 0).then_some(NULL_ON_LINE);
                    }
                    Some(hierarchy) => {
                        let code_of = |bound: f64| (((bound - min) * steps).ceil() as Code).min(span);
                        let codes = span as usize + 1;
                        let tree = match hierarchy {
                            Hierarchy::Ladder(ladder) => ladder.to_tree(min, max, code_of, codes, *nulls > 0),
                            Hierarchy::Calendar(calendar) => calendar.to_tree(min, max, code_of, codes, *nulls > 0),
                            _ => return Err(misfit_error(column)),
                        };
                        axis.null = (*nulls > 0).then_some(span + 1);
                        axis.shape = Shape::Tree(tree);
                    }
                }
                resolved = quantiles;
                kind
            }
            (ColumnStats::Leaves { unknown, nulls, .. }, Some(Hierarchy::Levels(levels))) => {
                let has_unknown = *unknown > 0 && column.unknown == Unknown::Top;
                axis.shape = Shape::Tree(levels.to_tree(*nulls > 0, has_unknown));
                let leaves = levels.leaves().len();
                axis.null = (*nulls > 0).then_some((leaves + usize::from(has_unknown)) as Code);
                Kind::Leaves { unknown: has_unknown.then_some(leaves as Code) }
            }
            (ColumnStats::Words { words, distinct, nulls }, hierarchy) => {
                let exact = words.len() as u64 == *distinct;
                axis.exact = exact;
                axis.null = (*nulls > 0).then_some(words.len() as Code);
                let (list, shape) = match hierarchy {
                    None => set_of_words(words, exact, *nulls > 0),
                    Some(Hierarchy::Mask(mask)) => masked_words(words, exact, mask, *nulls > 0),
                    Some(_) => return Err(misfit_error(column)),
                };
                axis.shape = shape;
                Kind::Dictionary(Arc::new(list))
            }
            _ => return Err(misfit_error(column)),
        };
        let hierarchy = resolved.or_else(|| column.hierarchy.clone());
        Ok(Self { column: column.clone(), hierarchy, axis, kind })
    }

    /// The column that is coded.
    pub(crate) fn column(&self) -> &QuasiColumn {
        &self.column
    }

    /// How values generalise: the column's hierarchy, or the ladder that the survey's quantiles have given it.
    pub(crate) fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.as_deref()
    }

    /// The axis that codes live on.
    pub(crate) fn axis(&self) -> &Axis {
        &self.axis
    }

    /// The word list of a text column without levels.
    pub(crate) fn dictionary(&self) -> Option<&Dictionary> {
        match &self.kind {
            Kind::Dictionary(words) => Some(words),
            _ => None,
        }
    }

    /// The hierarchy of levels, when the column has one.
    pub(crate) fn levels(&self) -> Option<&LevelTree> {
        match self.column.hierarchy.as_deref() {
            Some(Hierarchy::Levels(levels)) => Some(levels),
            _ => None,
        }
    }

    /// Ends of the domain of a line.
    pub(crate) fn ordinal_ends(&self) -> Option<(f64, f64)> {
        match &self.kind {
            Kind::Line { min, max, .. } => Some((*min, *max)),
            _ => None,
        }
    }

    /// The code of a position on a line.
    pub(crate) fn code_at(&self, position: f64) -> Option<Code> {
        match &self.kind {
            Kind::Line { min, steps, span, .. } => Some(line_code(position, *min, *steps, *span)),
            _ => None,
        }
    }

    /// First and last code of the positions on a line from `lower` to below `upper`, as its hierarchy has them.
    pub(crate) fn codes_between(&self, lower: f64, upper: f64) -> Option<(Code, Code)> {
        let Kind::Line { min, max, steps, span } = &self.kind else { return None };
        let code_of = |bound: f64| (((bound - min) * steps).ceil() as Code).min(*span);
        let first = if lower <= *min { 0 } else { code_of(lower) };
        let last = if upper > *max { Some(*span) } else { code_of(upper).checked_sub(1) };
        last.filter(|last| first <= *last).map(|last| (first, last))
    }

    /// Codes every value of an array; `put` receives row and code.
    pub(crate) fn encode_values(&self, array: &ArrayRef, put: impl FnMut(usize, Code)) -> Result<()> {
        self.encode_present(array, None, put)
    }

    /// Codes every value of an array, of which only the present rows stay: the others get any code, and may hold what the
    /// survey, which has not looked at them, knows nothing of.
    pub(crate) fn encode_present(
        &self,
        array: &ArrayRef,
        present: Option<&NullBuffer>,
        mut put: impl FnMut(usize, Code),
    ) -> Result<()> {
        let stays = |row: usize| present.is_none_or(|present| present.is_valid(row));
        // Rows whose nulls are dropped need a code on their way, and it does not matter which.
        let null = self.axis.null.or((self.column.nulls == Nulls::Drop).then_some(0));
        // Codes of nulls and of unknown values exist when the survey has met some; that it has not, and one turns up
        // now, means that the input has changed under the run.
        let mut unmatched = 0_u64;
        match &self.kind {
            Kind::Line { min, steps, span, .. } => {
                for (row, &position) in to_ordinals(array)?.iter().enumerate() {
                    if position.is_nan() {
                        unmatched += u64::from(null.is_none() && stays(row));
                        put(row, null.unwrap_or_default());
                    } else {
                        put(row, line_code(position, *min, *steps, *span));
                    }
                }
            }
            Kind::Leaves { unknown } => {
                let levels = self.levels().ok_or_else(|| misfit_error(&self.column))?;
                let code = |value: &str| match (levels.find_leaf(value), unknown) {
                    (Some(leaf), _) => leaf as Code,
                    (None, Some(code)) => *code,
                    (None, None) => UNMATCHED,
                };
                map_text(&to_text(array)?, null.unwrap_or(UNMATCHED), code, |row, code| {
                    unmatched += u64::from(code == UNMATCHED && stays(row));
                    put(row, code);
                });
            }
            Kind::Dictionary(words) => {
                let key = match self.column.hierarchy.as_deref() {
                    Some(Hierarchy::Mask(mask)) => Some(|value: &str| mask.order_key(value).into_owned()),
                    _ => None,
                };
                let key = key.as_ref().map(|key| key as &dyn Fn(&str) -> String);
                map_text(
                    &to_text(array)?,
                    null.unwrap_or(UNMATCHED),
                    |value| words.code_of(value, key),
                    |row, code| {
                        unmatched += u64::from(code == UNMATCHED && stays(row));
                        put(row, code);
                    },
                );
            }
        }
        if unmatched > 0 {
            return Err(Error::input(format!(
                "column `{}`: {unmatched} values were not there when the table was surveyed; the input has changed \
                 during the run",
                self.column.name
            )));
        }
        Ok(())
    }
}

/// Marks a value that has no code; above every code that an axis of words or leaves can have.
const UNMATCHED: Code = Code::MAX;

fn line_code(position: f64, min: f64, steps: f64, span: Code) -> Code {
    // A float that is out of the domain (a declared one may be narrower than the data) is clamped by the cast.
    (((position - min) * steps) as Code).min(span)
}

/// The ladder of a column whose intervals are to hold about equally many rows.
fn quantile_ladder(column: &QuasiColumn, quantiles: &[f64]) -> Result<Option<Arc<Hierarchy>>> {
    let Some(counts) = &column.quantiles else { return Ok(None) };
    let ladder = Ladder::from_quantiles(counts, quantiles)
        .map_err(|error| Error::job(format!("columns.{}.hierarchy: {error}", column.name)))?;
    Ok(Some(Arc::new(Hierarchy::Ladder(ladder))))
}

/// The words of a text column without a hierarchy, whose groups are sets.
fn set_of_words(words: &[String], exact: bool, nulls: bool) -> (Dictionary, Shape) {
    let values = words.len() as u32 + u32::from(nulls);
    (Dictionary::new(words.to_vec(), exact, None), Shape::Set { values })
}

/// The words of a text column in the order in which a mask hides their characters.
fn masked_words(words: &[String], exact: bool, mask: &Mask, nulls: bool) -> (Dictionary, Shape) {
    let list = Dictionary::new(words.to_vec(), exact, Some(&|value| mask.order_key(value).into_owned()));
    let tree = mask.to_tree(&list.words, nulls);
    (list, Shape::Tree(tree))
}

fn misfit_error(column: &QuasiColumn) -> Error {
    Error::internal(format!("column `{}`: what the survey found does not fit its hierarchy", column.name))
}
