//! Where published and original values of a quasi-identifier lie on a line, so that a tree of boxes can tell which classes
//! or buckets hold a person.
//!
//! Numbers and points in time lie where they are, values of a hierarchy at the number of their leaf, other texts in the
//! order of the public table's own. What a published value covers is then an interval, and mostly exactly that; where it
//! is not (a set with gaps), the published value is asked again.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat_batches;
use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;

use super::cover::{Original, Published, step};
use super::vocabulary::Vocabulary;
use crate::encode::{map_text, positions, text};
use crate::error::Result;
use crate::hierarchy::{Hierarchy, LevelTree, TOP};
use crate::treatment::QuasiColumn;

/// Published values of one quasi-identifier, and where they lie.
#[derive(Debug)]
pub(crate) struct Column {
    quasi: QuasiColumn,
    line: Line,
    /// What every published value covers.
    pub(crate) extents: Vec<Extent>,
    /// The published values, when some do not cover all that lies in their extents.
    published: Option<Published>,
}

/// First and last place, included.
pub(crate) type Extent = (f64, f64);

/// What a published value covers, and whether it covers everything between.
pub(crate) type Reach = (Extent, bool);

/// How original values are laid on a line.
#[derive(Debug)]
enum Line {
    /// All in one place: their published values tell nothing of them.
    Point,
    /// Numbers and points in time as they are.
    Positions,
    /// Leaves of a hierarchy by number; what it does not know lies behind them.
    Leaves(Arc<Hierarchy>),
    /// Other texts in the order of those of the public table.
    Words(Vocabulary),
}

/// Original values of a batch.
#[derive(Debug)]
pub(crate) struct Values {
    /// Where they lie.
    pub(crate) at: Vec<f64>,
    /// The values themselves, when places do not tell all.
    original: Option<Original>,
}

/// Where null lies.
const NULL: f64 = f64::NEG_INFINITY;

/// Null alone.
const MISSING: Reach = ((NULL, NULL), true);

/// Everything there is, null and unknown values with it.
const ALL: Reach = ((NULL, f64::INFINITY), true);

/// Nothing at all.
const NOTHING: Reach = ((f64::INFINITY, NULL), true);

impl Column {
    /// Reads published values that generalise.
    pub(crate) async fn read(quasi: &QuasiColumn, columns: &[ArrayRef], public: &DataFrame) -> Result<Self> {
        let published = Published::read(quasi, columns)?;
        let line = match &published {
            Published::Representative => Line::Point,
            _ => Line::of(quasi, public).await?,
        };
        // Labels repeat; each is read once.
        let mut known: HashMap<&str, Reach> = HashMap::new();
        let mut reach = |row: usize| match &published {
            Published::Representative => ALL,
            Published::Intervals { low, high, null } => interval(low[row], high[row], null[row]),
            Published::Steps(labels, ..) | Published::Labels(labels, _) if labels.is_null(row) => MISSING,
            Published::Steps(labels, hierarchy, singles) => {
                let label = labels.value(row);
                *known.entry(label).or_insert_with(|| steps(label, hierarchy.as_deref(), singles[row]))
            }
            Published::Labels(labels, hierarchy) => {
                let label = labels.value(row);
                *known.entry(label).or_insert_with(|| line.reach(label, hierarchy.as_deref()))
            }
        };
        let rows = columns.first().map_or(0, |column| column.len());
        let (extents, exact): (Vec<Extent>, Vec<bool>) = (0..rows).map(&mut reach).unzip();
        let exact = exact.into_iter().all(|exact| exact);
        Ok(Self { quasi: quasi.clone(), line, extents, published: (!exact).then_some(published) })
    }

    /// Reads values that are published as they were: each lies where it is.
    pub(crate) async fn plain(quasi: &QuasiColumn, column: &ArrayRef, public: &DataFrame) -> Result<Self> {
        let line = Line::of(quasi, public).await?;
        // A value that nobody has lies nowhere.
        let extent = |at: f64| if at.is_nan() { NOTHING.0 } else { (at, at) };
        let extents = line.places(column)?.into_iter().map(extent).collect();
        Ok(Self { quasi: quasi.clone(), line, extents, published: None })
    }

    /// Reads the original values of a batch.
    pub(crate) fn values(&self, column: &ArrayRef) -> Result<Values> {
        let original = self.published.as_ref().map(|_| Original::read(&self.quasi, column)).transpose()?;
        Ok(Values { at: self.line.places(column)?, original })
    }

    /// Whether a published value covers an original one that lies in its extent.
    pub(crate) fn covers(&self, published: usize, values: &Values, row: usize) -> bool {
        match (&self.published, &values.original) {
            (Some(all), Some(original)) => all.covers(published, original, row),
            _ => true,
        }
    }

    /// Whether a published value covers an original one.
    pub(crate) fn holds(&self, published: usize, values: &Values, row: usize) -> bool {
        let (first, last) = self.extents[published];
        first <= values.at[row] && values.at[row] <= last && self.covers(published, values, row)
    }
}

impl Line {
    async fn of(quasi: &QuasiColumn, public: &DataFrame) -> Result<Self> {
        Ok(match &quasi.hierarchy {
            _ if quasi.on_a_line() => Self::Positions,
            Some(hierarchy) if levels(hierarchy).is_some() => Self::Leaves(Arc::clone(hierarchy)),
            hierarchy => {
                let distinct = public.clone().aggregate(vec![ident(&quasi.name)], vec![])?;
                let schema = Arc::new(distinct.schema().as_arrow().clone());
                let words = text(concat_batches(&schema, &distinct.collect().await?)?.column(0))?;
                Self::Words(Vocabulary::new(words.iter().flatten(), hierarchy.as_deref()))
            }
        })
    }

    /// What a published label covers.
    fn reach(&self, label: &str, hierarchy: Option<&Hierarchy>) -> Reach {
        match (self, hierarchy.and_then(levels)) {
            (Self::Words(_), _) if label == TOP => ALL,
            (Self::Words(words), _) => {
                words.reach(label).map_or(NOTHING, |(first, last, exact)| ((first as f64, last as f64), exact))
            }
            (_, Some(levels)) if label == levels.root() => ALL,
            (_, Some(levels)) => {
                let span = levels.span_of(label).map(|(first, last)| (f64::from(first), f64::from(last)));
                match span {
                    // The top of every domain covers null, also where the hierarchy calls its own by another name.
                    Some((_, last)) if label == TOP => ((NULL, last), false),
                    None if label == TOP => MISSING,
                    span => span.map_or(NOTHING, |span| (span, true)),
                }
            }
            (_, None) => ALL,
        }
    }

    /// Where the values of a batch lie; a text that the public table does not have lies nowhere.
    fn places(&self, column: &ArrayRef) -> Result<Vec<f64>> {
        let mut places = vec![NULL; column.len()];
        match self {
            Self::Point => {}
            Self::Positions => {
                places = positions(column)?;
                places.iter_mut().for_each(|at| *at = if at.is_nan() { NULL } else { above_null(*at) });
            }
            Self::Leaves(hierarchy) => {
                let leaf = |word: &str| levels(hierarchy).and_then(|levels| levels.leaf(word));
                let place = |word: &str| leaf(word).map_or(f64::INFINITY, f64::from);
                map_text(&text(column)?, NULL, place, |row, place| places[row] = place);
            }
            Self::Words(words) => {
                let place = |word: &str| words.place(word).map_or(f64::NAN, f64::from);
                map_text(&text(column)?, NULL, place, |row, place| places[row] = place);
            }
        }
        Ok(places)
    }
}

fn levels(hierarchy: &Hierarchy) -> Option<&LevelTree> {
    match hierarchy {
        Hierarchy::Levels(levels) => Some(levels),
        _ => None,
    }
}

/// A number beside null: minus infinity is the least of all numbers.
fn above_null(at: f64) -> f64 {
    at.max(f64::MIN)
}

/// Between two published ends; neither is everything.
fn interval(low: f64, high: f64, null: bool) -> Reach {
    match (null, low.is_nan() && high.is_nan()) {
        (true, _) => MISSING,
        (false, true) => ALL,
        (false, false) if low.is_nan() || high.is_nan() => NOTHING,
        (false, false) => ((above_null(low), above_null(high)), true),
    }
}

/// A step of a ladder or a unit of the calendar, and a single value (or NaN), which the same label may stand for.
fn steps(label: &str, hierarchy: Option<&Hierarchy>, single: f64) -> Reach {
    if label == TOP {
        return ALL;
    }
    let step = step(label, hierarchy).map(|(lower, upper)| (above_null(lower), upper.next_down()));
    match (step, (!single.is_nan()).then(|| above_null(single))) {
        (None, None) => NOTHING,
        (Some(step), None) => (step, true),
        (None, Some(at)) => ((at, at), true),
        (Some((low, high)), Some(at)) => ((low.min(at), high.max(at)), low <= at && at <= high),
    }
}
