//! Text and other categories: nodes of a hierarchy, masks, sets, or the commonest value.

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::DataType;

use super::{Groups, TOP, label_array};
use crate::encode::{ColumnEncoder, Dictionary, to_text};
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::hierarchy::{LevelTree, Mask, SetLabel};
use crate::model::{Code, MAX_SET_VALUES, Shape};

/// The closest common ancestor of every group.
pub(super) fn publish_nodes(
    encoder: &ColumnEncoder,
    levels: &LevelTree,
    axis: usize,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let Shape::Tree(tree) = &encoder.axis().shape else {
        return Err(Error::internal(format!("column `{}` has no tree", encoder.column().name)));
    };
    let null = encoder.axis().null;
    let (mut names, mut losses) = (Vec::new(), Vec::new());
    for rows in groups.grouping.iter() {
        let (lo, hi) = code_ends(groups, rows, axis);
        let hi = if Fault::LowNode.is_planted() { lo } else { hi };
        losses.push(tree.loss(lo, hi));
        names.push((null != Some(lo)).then(|| levels.published_name(lo, hi)));
    }
    Ok((vec![label_array(names.into_iter())], losses))
}

/// The set of values of every group: `{a, b}`, or the value itself when there is one only (see [`SetLabel`]).
pub(super) fn publish_sets(
    encoder: &ColumnEncoder,
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let domain = match &encoder.axis().shape {
        Shape::Set { values } => f64::from(*values),
        _ => 1.0,
    };
    each_set(encoder, axis, original, groups, |values, mixed| {
        if mixed || values.len() > MAX_SET_VALUES as usize {
            return (SetLabel::Top.to_string(), 1.0);
        }
        let values = if Fault::ShortSet.is_planted() && values.len() > 1 { &values[1..] } else { values };
        let loss = if domain > 1.0 { ((values.len() - 1) as f64 / (domain - 1.0)).min(1.0) } else { 0.0 };
        (SetLabel::of_members(values.iter().copied()).to_string(), loss)
    })
}

/// The least masked form that covers every value of the group.
pub(super) fn publish_masks(
    encoder: &ColumnEncoder,
    mask: &Mask,
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let Shape::Tree(tree) = &encoder.axis().shape else {
        return Err(Error::internal(format!("column `{}` has no tree", encoder.column().name)));
    };
    let mut covers = groups.grouping.iter().map(|rows| code_ends(groups, rows, axis));
    each_set(encoder, axis, original, groups, |values, mixed| {
        let (lo, hi) = covers.next().unwrap_or_default();
        let values = if Fault::ThinMask.is_planted() { &values[..1] } else { values };
        match mask.cover_values(values.iter().copied()) {
            label if mixed || label == TOP => (TOP.to_owned(), 1.0),
            label => (label, if values.len() == 1 { 0.0 } else { tree.loss(lo, hi) }),
        }
    })
}

/// Calls `publish` with the distinct values of every group that has any, in their order, and whether nulls are among its
/// rows.
fn each_set(
    encoder: &ColumnEncoder,
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
    mut publish: impl FnMut(&[&str], bool) -> (String, f64),
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let values = to_text(original)?;
    // While the word list holds every value, codes name them; else the values themselves are looked at.
    let words: Option<&Dictionary> = encoder.dictionary().filter(|words| words.is_exact());
    let null = encoder.axis().null;
    let (mut names, mut losses) = (Vec::new(), Vec::new());
    let mut codes: Vec<Code> = Vec::new();
    let mut set: Vec<&str> = Vec::new();
    for rows in groups.grouping.iter() {
        set.clear();
        let nulls;
        if let Some(words) = words {
            codes.clear();
            codes.extend(rows.iter().map(|&row| groups.table.row(row)[axis]));
            codes.sort_unstable();
            codes.dedup();
            nulls = null.is_some() && codes.last().copied() == null;
            set.extend(codes.iter().filter_map(|&code| words.words.get(code as usize)).map(String::as_str));
        } else {
            let batch_rows = rows.iter().map(|&row| groups.order[row as usize] as usize);
            nulls = batch_rows.clone().any(|row| values.is_null(row));
            set.extend(batch_rows.filter(|row| values.is_valid(*row)).map(|row| values.value(row)));
        }
        set.sort_unstable();
        set.dedup();
        if set.is_empty() {
            names.push(None);
            losses.push(0.0);
        } else {
            let (name, loss) = publish(&set, nulls);
            names.push(Some(name));
            losses.push(loss);
        }
    }
    Ok((vec![label_array(names.into_iter())], losses))
}

/// The commonest value of every group, the smallest code among equals; its loss is that of the group's cover.
pub(super) fn publish_commonest(
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let mut losses = Vec::new();
    let mut chosen: Vec<u32> = Vec::new();
    for rows in groups.grouping.iter() {
        let mut coded: Vec<(Code, u32)> = rows.iter().map(|&row| (groups.table.row(row)[axis], row)).collect();
        coded.sort_unstable();
        let longest =
            coded.chunk_by(|a, b| a.0 == b.0).reduce(|best, run| if run.len() > best.len() { run } else { best });
        chosen.extend(longest.map(|run| groups.order[run[0].1 as usize]));
        losses.push(groups.table.cover(rows).axis_loss(&groups.table.axes, axis));
    }
    let values = take(original, &UInt32Array::from(chosen), None)?;
    let values = match values.data_type() {
        DataType::Dictionary(_, inner) => cast(&values, inner)?,
        _ => values,
    };
    Ok((vec![values], losses))
}

fn code_ends(groups: &Groups<'_>, rows: &[u32], axis: usize) -> (Code, Code) {
    rows.iter()
        .map(|&row| groups.table.row(row)[axis])
        .fold((Code::MAX, 0), |(lo, hi), code| (lo.min(code), hi.max(code)))
}
