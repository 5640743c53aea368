//! What a reader learns of the original value from a published one: the chase begins with it.
//!
//! Positions beyond the precision of a double count as one. A set whose members hold `, ` themselves reads as more
//! members than it has, as it does for any reader.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;

use super::cover::{Published, step};
use crate::attack::chase::Known;
use crate::encode::row_hashes;
use crate::error::Result;
use crate::hierarchy::{Hierarchy, LevelTree, Mask, Period, TOP};
use crate::job::QuasiColumn;

/// What the published columns of a quasi-identifier tell of every row.
pub(super) fn known(quasi: &QuasiColumn, columns: &[ArrayRef]) -> Result<Vec<Known>> {
    let rows = columns.first().map_or(0, |column| column.len());
    let missing = |null: bool, known: Known| if null { Known::Null } else { known };
    Ok(match Published::read(quasi, columns)? {
        Published::Representative => shown(columns, rows)?,
        Published::Intervals { low, high, null } => (0..rows)
            .map(|row| {
                let ends = if low[row].is_nan() || high[row].is_nan() {
                    Known::Anything
                } else {
                    Known::Between(ordered(low[row]), ordered(high[row]))
                };
                missing(null[row], ends)
            })
            .collect(),
        Published::Steps(labels, hierarchy, singles) => (0..rows)
            .map(|row| {
                if labels.is_null(row) {
                    return Known::Null;
                }
                let label = labels.value(row);
                // The day of a timestamp reads as its midnight, too.
                let day = matches!(quasi.data_type, DataType::Timestamp(..)) && Period::parse(label).is_some();
                if singles[row].is_nan() || day {
                    return interval(label, hierarchy.as_deref());
                }
                Known::Between(ordered(singles[row]), ordered(singles[row]))
            })
            .collect(),
        Published::Labels(labels, hierarchy) => (0..rows)
            .map(|row| {
                if labels.is_null(row) {
                    return Known::Null;
                }
                match hierarchy.as_deref() {
                    Some(Hierarchy::Levels(levels)) => node(labels.value(row), levels),
                    Some(Hierarchy::Mask(mask)) => masked(labels.value(row), mask),
                    _ => set(labels.value(row)),
                }
            })
            .collect(),
    })
}

/// Columns that no dependency names: they tell rows apart, and that is all.
pub(super) fn shown(columns: &[ArrayRef], rows: usize) -> Result<Vec<Known>> {
    Ok(row_hashes(columns, rows, 0)?.into_iter().map(Known::Shown).collect())
}

/// A number that grows with the position.
fn ordered(position: f64) -> u64 {
    let bits = (position + 0.0).to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

fn interval(label: &str, hierarchy: Option<&Hierarchy>) -> Known {
    // The upper end lies outside.
    step(label, hierarchy).map_or(Known::Anything, |(lower, upper)| Known::Between(ordered(lower), ordered(upper) - 1))
}

fn node(label: &str, levels: &LevelTree) -> Known {
    match levels.span_of(label) {
        // Unknown values and nulls among others are published as the root, too.
        Some((lo, hi)) if label != levels.root() => Known::Between(u64::from(lo), u64::from(hi)),
        _ => Known::Anything,
    }
}

fn masked(label: &str, mask: &Mask) -> Known {
    mask.kept_of(label).map_or(Known::Anything, |(text, whole)| Known::Begins { text: text.into(), whole })
}

fn set(label: &str) -> Known {
    if label == TOP {
        return Known::Anything;
    }
    match label.strip_prefix('{').and_then(|label| label.strip_suffix('}')) {
        Some(members) => Known::one_of(members.split(", ")),
        None => Known::one_of([label]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::End;

    #[test]
    fn numbers_keep_their_order() {
        let positions = [f64::NEG_INFINITY, -2.5, -0.0, 1e-9, 3.0, f64::INFINITY];
        assert!(positions.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }

    #[test]
    fn labels_are_read_as_a_reader_would() {
        assert_eq!(set("{a, b}").meet(&set("{b, c}")), set("b"));
        assert_eq!(set("*"), Known::Anything);
        let step = |label| interval(label, None);
        assert_eq!(step("[20, 30)").meet(&step("[20, 25)")), step("[20, 25)"));
        assert_eq!(step("[20, 30)").meet(&step("[30, 40)")), Known::Nothing);
        assert_eq!(step(">= 30").meet(&step("[30, 40)")), step("[30, 40)"));
    }

    #[test]
    fn masks_tell_how_a_text_begins() {
        let masked = |label| masked(label, &Mask::new(End::Right, '#', None).unwrap());
        assert_eq!(masked("12##").meet(&masked("123#")), masked("123#"));
        assert_eq!(masked("12##").meet(&masked("1234")), masked("1234"));
        assert_eq!(masked("12##").meet(&masked("13##")), Known::Nothing);
        assert_eq!(masked("*"), Known::Anything);
        let masked = |label| super::masked(label, &Mask::new(End::Left, '*', None).unwrap());
        assert_eq!(masked("**34").meet(&masked("1234")), masked("1234"));
    }
}
