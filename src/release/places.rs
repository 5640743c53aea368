//! Where published and original values of a quasi-identifier lie on a line, so that a tree of boxes can tell which classes
//! or buckets may hold a person.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;

use super::cover::{Original, Published};
use crate::encode::text;
use crate::error::Result;
use crate::hierarchy::Hierarchy;
use crate::job::QuasiColumn;

/// Values of one quasi-identifier, as published, and where they lie.
pub(super) struct Column<'a> {
    pub(super) quasi: &'a QuasiColumn,
    pub(super) published: Published<'a>,
    /// Places of the public table's values, when they are texts.
    places: Option<HashMap<Option<String>, f64>>,
    /// What every published value covers.
    pub(super) extents: Vec<(f64, f64)>,
}

/// Where null lies.
const NULL: f64 = f64::NEG_INFINITY;

impl<'a> Column<'a> {
    /// Reads published values that generalise.
    pub(super) async fn read(quasi: &'a QuasiColumn, columns: &[ArrayRef], public: &DataFrame) -> Result<Self> {
        let published = Published::read(quasi, columns)?;
        let classes = columns.first().map_or(0, |column| column.len());
        if let Published::Intervals { low, high, null } = &published {
            let extent = |row: usize| match (null[row], low[row].is_nan() && high[row].is_nan()) {
                (true, _) => (NULL, NULL),
                (false, true) => (NULL, f64::INFINITY),
                (false, false) => (low[row], high[row]),
            };
            let extents = (0..classes).map(extent).collect();
            return Ok(Self { quasi, published, places: None, extents });
        }
        if matches!(published, Published::Representative) || quasi.on_a_line() {
            // Few labels of many values: the boxes of other columns will do.
            return Ok(Self { quasi, published, places: None, extents: vec![(NULL, f64::INFINITY); classes] });
        }
        let values = distinct(quasi, public).await?;
        let original = Original::read(quasi, &values)?;
        let words = text(&values)?;
        let places = (0..words.len()).map(|row| (word(&words, row), row as f64)).collect();
        let labels = text(&columns[0])?;
        let mut known: HashMap<Option<&str>, (f64, f64)> = HashMap::new();
        let mut extents = Vec::with_capacity(classes);
        for row in 0..classes {
            let label = (!labels.is_null(row)).then(|| labels.value(row));
            let extent = *known.entry(label).or_insert_with(|| {
                let covered = |place: &usize| published.covers(row, &original, *place);
                let first = (0..words.len()).find(covered);
                let last = (0..words.len()).rev().find(covered);
                // A label that covers nobody lies nowhere.
                first.zip(last).map_or((f64::INFINITY, NULL), |(first, last)| (first as f64, last as f64))
            });
            extents.push(extent);
        }
        Ok(Self { quasi, published, places: Some(places), extents })
    }

    /// Reads values that are published as they were: each lies where it is.
    pub(super) async fn exact(quasi: &'a QuasiColumn, column: &ArrayRef, public: &DataFrame) -> Result<Self> {
        let published = Published::Representative;
        let mut column_of = Self { quasi, published, places: None, extents: Vec::new() };
        if !quasi.on_a_line() {
            let values = distinct(quasi, public).await?;
            let words = text(&values)?;
            let order = order(quasi, &words);
            column_of.places = Some((0..words.len()).map(|row| (word(&words, row), order(row))).collect());
        }
        let places = column_of.places(column, &Original::read(quasi, column)?)?;
        // A value that nobody has lies nowhere.
        let extent = |at: f64| if at.is_nan() { (f64::INFINITY, NULL) } else { (at, at) };
        column_of.extents = places.into_iter().map(extent).collect();
        Ok(column_of)
    }

    /// Where the values of a batch lie.
    pub(super) fn places(&self, column: &ArrayRef, original: &Original) -> Result<Vec<f64>> {
        let Some(places) = &self.places else {
            return Ok(match original {
                Original::Positions(at, missing) => {
                    at.iter().zip(missing).map(|(&at, missing)| if *missing { NULL } else { at }).collect()
                }
                Original::Text(values) => vec![NULL; values.len()],
            });
        };
        let words = text(column)?;
        let place = |row: usize| places.get(&word(&words, row)).copied().unwrap_or(f64::NAN);
        Ok((0..words.len()).map(place).collect())
    }
}

/// The distinct values of a quasi-identifier of a public table, ascending.
async fn distinct(quasi: &QuasiColumn, public: &DataFrame) -> Result<ArrayRef> {
    let distinct = public.clone().aggregate(vec![ident(&quasi.name)], vec![])?;
    let schema = std::sync::Arc::new(distinct.schema().as_arrow().clone());
    let sorted = distinct.sort(vec![ident(&quasi.name).sort(true, true)])?;
    Ok(ArrayRef::clone(concat_batches(&schema, &sorted.collect().await?)?.column(0)))
}

fn word(words: &StringViewArray, row: usize) -> Option<String> {
    (!words.is_null(row)).then(|| words.value(row).to_owned())
}

/// Where sorted texts lie: values that a hierarchy has near each other are near, because groups are cut in its order.
fn order<'a>(quasi: &'a QuasiColumn, words: &'a StringViewArray) -> impl Fn(usize) -> f64 + 'a {
    move |row| match quasi.hierarchy.as_deref() {
        Some(Hierarchy::Levels(levels)) if !words.is_null(row) => {
            levels.leaf(words.value(row)).map_or(f64::from(u32::MAX), f64::from)
        }
        _ => row as f64,
    }
}
