//! Sensitive columns to codes: which rows share a value, how far values lie apart, what range each would reveal.
//!
//! Codes are local to a cell. Which rows share a value, and in what order numbers come, is decided on the exact value
//! (see [`Distinct`]); positions say only how far values lie apart.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::HashMap;

use super::dictionary::{map_text, to_text};
use super::exact::{Distinct, array_keys};
use super::reference::Reference;
use super::{is_whole, to_ordinals};
use crate::binding::{SensitiveColumn, is_number, is_time};
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::hierarchy::{Hierarchy, LevelTree};
use crate::model::{Sensitive, SensitiveShape, Shares};
use crate::policy::{ListedRange, RangeOf, Ranges, Values};

/// What is known of a sensitive column's whole domain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SensitiveDomain {
    /// Smallest position of a number or point in time.
    pub min: f64,
    /// Largest position.
    pub max: f64,
    /// Number of distinct values.
    pub distinct: u64,
    /// How often every value occurs, when a rule compares groups with it.
    pub reference: Option<Reference>,
}

/// Codes one sensitive column of a cell.
pub(crate) fn encode_sensitive(
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    array: &ArrayRef,
) -> Result<Sensitive> {
    let mut sensitive = match column.hierarchy.as_deref() {
        Some(Hierarchy::Levels(levels)) => encode_leaves(column, domain, levels, array)?,
        _ if is_number(&column.data_type) || is_time(&column.data_type) => encode_numbers(column, domain, array)?,
        _ => encode_values(column, domain, array)?,
    };
    sensitive.ranges = sensitive_ranges(column, &sensitive);
    Ok(sensitive)
}

fn encode_numbers(column: &SensitiveColumn, domain: &SensitiveDomain, array: &ArrayRef) -> Result<Sensitive> {
    let mut distinct = Distinct::from_array(array)?;
    let mut codes = std::mem::take(&mut distinct.codes);
    let nulls = array.null_count() > 0;
    let (at, null, shares) = match &domain.reference {
        Some(reference) => {
            let known: Vec<&[u8]> = reference.counts().map(|(key, _)| key).collect();
            // Public rows beside those of the source hold null, which the source need not know: it has the last code.
            let place = |(at, key): (usize, Vec<u8>)| match known.binary_search(&key.as_slice()) {
                Ok(code) => Ok(code),
                Err(_) if nulls && at + 1 == distinct.rows.len() => Ok(known.len()),
                Err(_) => Err(unheard_of(column)),
            };
            let places = distinct.batch_keys(array)?.into_iter().enumerate().map(place).collect::<Result<Vec<_>>>()?;
            codes.iter_mut().for_each(|code| *code = places[*code as usize] as u32);
            let at = reference.to_ordinals(array.data_type())?;
            let mut counts: Vec<u64> = reference.counts().map(|(_, count)| count).collect();
            if Fault::SensitiveAsFloat.is_planted() {
                merge_positions(&at, &mut codes, &mut counts);
            }
            let null = (nulls || counts.len() > at.len()).then_some(at.len() as u32);
            (at, null, Some(Arc::new(Shares::new(&counts))))
        }
        None => {
            let numbers = distinct.rows.len() - usize::from(nulls);
            let positions = to_ordinals(array)?;
            let at = distinct.rows[..numbers].iter().map(|&row| positions[row as usize]).collect();
            (at, nulls.then_some(numbers as u32), None)
        }
    };
    let [min, max] = column.domain.unwrap_or([domain.min, domain.max]);
    let mut coded = build_sensitive(column, codes, SensitiveShape::Number { at, min, max }, null);
    coded.shares = shares;
    Ok(coded)
}

/// What floating point makes of numbers: those at one position are the first of them.
fn merge_positions(at: &[f64], codes: &mut [u32], counts: &mut [u64]) {
    let first = |code: usize| at.get(code).map_or(code, |here| at.partition_point(|before| before < here));
    codes.iter_mut().for_each(|code| *code = first(*code as usize) as u32);
    for code in (0..at.len()).filter(|&code| first(code) < code) {
        counts[first(code)] += std::mem::take(&mut counts[code]);
    }
}

/// Leaf of every value. Null and values that the hierarchy does not know are pseudo leaves below the root.
pub(crate) fn leaf_codes(levels: &LevelTree, array: &ArrayRef) -> Result<Vec<u32>> {
    let unknown = levels.leaves().len() as u16;
    let mut codes = vec![0; array.len()];
    let code = |value: &str| levels.find_leaf(value).map_or(unknown, |leaf| leaf as u16);
    map_text(&to_text(array)?, unknown + 1, code, |row, code| codes[row] = u32::from(code));
    Ok(codes)
}

fn encode_leaves(
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    levels: &LevelTree,
    array: &ArrayRef,
) -> Result<Sensitive> {
    let null = levels.leaves().len() as u32 + 1;
    let shape = SensitiveShape::Tree(levels.to_tree(true, true));
    let mut coded = build_sensitive(column, leaf_codes(levels, array)?, shape, Some(null));
    coded.shares = domain.reference.as_ref().map(|reference| {
        let mut counts = vec![0; null as usize + 1];
        reference.leaf_counts().for_each(|(leaf, count)| counts[leaf as usize] = count);
        Arc::new(Shares::new(&counts))
    });
    Ok(coded)
}

/// A column in the type in which the policy lists its values.
pub(crate) fn as_listed(column: &SensitiveColumn, array: &ArrayRef) -> Result<ArrayRef> {
    match &column.ranges {
        // Listed values are text, unless they are numbers.
        Ranges::Listed(_) if !is_number(&column.data_type) && !is_time(&column.data_type) => {
            Ok(Arc::new(to_text(array)?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn encode_values(column: &SensitiveColumn, domain: &SensitiveDomain, array: &ArrayRef) -> Result<Sensitive> {
    let array = as_listed(column, array)?;
    let Distinct { mut codes, rows } = Distinct::from_array(&array)?;
    let listed: Vec<&str> = match &column.ranges {
        Ranges::Listed(listed) => listed.iter().flat_map(range_words).collect(),
        _ => Vec::new(),
    };
    let mut shares = None;
    if !listed.is_empty() || domain.reference.is_some() {
        let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut code_of = |key: Vec<u8>| {
            let next = seen.len() as u32;
            *seen.entry(key).or_insert(next)
        };
        // Values of one range get adjacent codes, so that the range is an interval of codes.
        let words: ArrayRef = Arc::new(StringViewArray::from(listed));
        array_keys(&words)?.into_iter().for_each(|key| _ = code_of(key));
        let mut counts = Vec::new();
        for (key, count) in domain.reference.iter().flat_map(Reference::counts) {
            let code = code_of(key.to_vec()) as usize;
            counts.resize(counts.len().max(code + 1), 0);
            counts[code] = count;
        }
        let places: Vec<u32> =
            Distinct { codes: Vec::new(), rows }.batch_keys(&array)?.into_iter().map(code_of).collect();
        codes.iter_mut().for_each(|code| *code = places[*code as usize]);
        if domain.reference.is_some() {
            // Public rows beside those of the source hold null, which the source need not know.
            let nulls = array.logical_nulls();
            let is_value = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            if (0..array.len()).any(|row| codes[row] as usize >= counts.len() && is_value(row)) {
                return Err(unheard_of(column));
            }
            shares = Some(Arc::new(Shares::new(&counts)));
        }
    }
    let values = domain.distinct.min(u64::from(u32::MAX)) as u32;
    let mut coded = build_sensitive(column, codes, SensitiveShape::Set { values }, None);
    coded.shares = shares;
    Ok(coded)
}

/// A value that the table did not hold when its values were counted.
fn unheard_of(column: &SensitiveColumn) -> Error {
    let name = &column.name;
    Error::input(format!("column `{name}`: the source has changed while it was read; run again once it is stable"))
}

/// The values that a listed range of text names.
fn range_words(entry: &ListedRange) -> impl Iterator<Item = &str> {
    match &entry.range {
        RangeOf::Listed(words) => words.as_slice(),
        _ => &[],
    }
    .iter()
    .map(String::as_str)
}

fn build_sensitive(column: &SensitiveColumn, codes: Vec<u32>, shape: SensitiveShape, null: Option<u32>) -> Sensitive {
    Sensitive { name: column.name.clone(), codes, shape, null, ranges: Vec::new(), shares: None }
}

/// The sensitive range of every code, as the policy lays it down; empty when every value is its own range.
fn sensitive_ranges(column: &SensitiveColumn, sensitive: &Sensitive) -> Vec<(u32, u32)> {
    match (&column.ranges, &sensitive.shape, column.hierarchy.as_deref()) {
        (Ranges::Identity, ..) => Vec::new(),
        (Ranges::Interval(length), SensitiveShape::Number { at, .. }, _) => {
            let around = |(code, &value): (u32, &f64)| match value_interval(&column.data_type, value, length / 2.0) {
                Some((lo, hi)) => codes_between(at, lo, hi),
                None => (code, code),
            };
            (0..).zip(at).map(around).collect()
        }
        (Ranges::Listed(listed), SensitiveShape::Number { at, .. }, _) => at
            .iter()
            .enumerate()
            .map(|(code, value)| {
                let found = listed.iter().find_map(|entry| match (&entry.values, &entry.range) {
                    (Values::Between([lo, hi]), RangeOf::Between([from, to])) if (*lo..=*hi).contains(value) => {
                        Some(codes_between(at, *from, *to))
                    }
                    _ => None,
                });
                found.unwrap_or((code as u32, code as u32))
            })
            .collect(),
        (Ranges::Level(level), SensitiveShape::Tree(_), Some(Hierarchy::Levels(levels))) => {
            (0..levels.leaves().len() as u32).map(|leaf| levels.span_at_level(leaf, *level as usize)).collect()
        }
        (Ranges::Listed(listed), SensitiveShape::Tree(_), Some(Hierarchy::Levels(levels))) => levels
            .leaves()
            .enumerate()
            .map(|(leaf, name)| {
                let found = listed.iter().find_map(|entry| match (&entry.values, &entry.range) {
                    (Values::Listed(values), RangeOf::Node(node)) if values.iter().any(|value| value == name) => {
                        levels.span_of(node)
                    }
                    _ => None,
                });
                found.unwrap_or((leaf as u32, leaf as u32))
            })
            .collect(),
        (Ranges::Listed(listed), SensitiveShape::Set { .. }, _) => {
            // Codes are the places of the words when each is counted once: see `encode_values`.
            let mut words: Vec<&str> = Vec::new();
            for word in listed.iter().flat_map(range_words) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            let code = |word: &str| words.iter().position(|known| *known == word).map(|code| code as u32);
            let mut ranges: Vec<(u32, u32)> = (0..words.len() as u32).map(|code| (code, code)).collect();
            for entry in listed {
                let codes: Vec<u32> = range_words(entry).filter_map(code).collect();
                let (Some(first), Some(last)) = (codes.iter().min(), codes.iter().max()) else { continue };
                let Values::Listed(values) = &entry.values else { continue };
                for value in values.iter().filter_map(|value| code(value)) {
                    ranges[value as usize] = (*first, *last);
                }
            }
            ranges
        }
        _ => Vec::new(),
    }
}

/// The positions within `half` of a value; none around NaN. Where positions are not the exact values, a little more: a value
/// that lies in the range must not be missed.
fn value_interval(data_type: &DataType, value: f64, half: f64) -> Option<(f64, f64)> {
    const WHOLE: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let reach = value.abs() + half;
    let exact = data_type.is_floating() || is_whole(data_type) && reach < WHOLE;
    let slack = if exact { 0.0 } else { 4.0 * f64::EPSILON * reach };
    (!value.is_nan()).then_some((value - half - slack, value + half + slack))
}

/// The codes of all values from `lo` to `hi`.
fn codes_between(at: &[f64], lo: f64, hi: f64) -> (u32, u32) {
    let first = at.partition_point(|value| *value < lo);
    let last = at.partition_point(|value| *value <= hi);
    (first as u32, last.saturating_sub(1).max(first) as u32)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, Int64Array};
    use datafusion::arrow::datatypes::DataType;

    use super::*;

    fn column(data_type: DataType, ranges: Ranges) -> SensitiveColumn {
        SensitiveColumn {
            index: 0,
            name: "s".into(),
            data_type,
            hierarchy: None,
            domain: None,
            ranges,
            compared: false,
        }
    }

    const DOMAIN: SensitiveDomain = SensitiveDomain { min: -1.0, max: 1.0, distinct: 4, reference: None };

    #[test]
    fn listed_texts_share_their_range_however_often_they_are_listed() {
        let range = |values: &[&str]| ListedRange {
            values: Values::Listed(values.iter().map(ToString::to_string).collect()),
            range: RangeOf::Listed(vec!["flu".into(), "cold".into()]),
        };
        let array: ArrayRef = Arc::new(StringViewArray::from(vec!["gout", "cold", "flu", "mumps"]));
        for listed in [vec![range(&["flu", "cold"])], vec![range(&["flu"]), range(&["cold"])]] {
            let coded = encode_sensitive(&column(DataType::Utf8View, Ranges::Listed(listed)), &DOMAIN, &array).unwrap();
            let [gout, cold, flu, mumps] = coded.codes[..] else { panic!("four rows") };
            assert!(coded.in_range(flu, cold) && coded.in_range(cold, flu));
            assert!(!coded.in_range(gout, mumps) && !coded.in_range(gout, flu) && !coded.in_range(mumps, cold));
        }
    }

    #[test]
    fn codes_follow_the_whole_table_when_groups_are_compared_with_it() {
        let numbers = column(DataType::Float64, Ranges::Identity);
        let all: ArrayRef = Arc::new(Float64Array::from(vec![Some(5.0), Some(-1.0), None, Some(5.0)]));
        let some: ArrayRef = Arc::new(Float64Array::from(vec![Some(5.0)]));
        let mut reference = Reference::default();
        reference.add_values(&numbers, &all).unwrap();
        let domain = SensitiveDomain { reference: Some(reference), ..DOMAIN };
        let coded = encode_sensitive(&numbers, &domain, &some).unwrap();
        let shares = coded.shares.unwrap();
        assert_eq!((coded.codes[0], coded.null), (1, Some(2)));
        assert_eq!((shares.len(), shares.share_of(0), shares.share_of(1), shares.share_of(2)), (3, 0.25, 0.5, 0.25));
        let other: ArrayRef = Arc::new(Float64Array::from(vec![6.0]));
        let error = encode_sensitive(&numbers, &domain, &other).unwrap_err().to_string();
        assert!(error.contains("changed while it was read") && !error.contains('6'), "{error}");
    }

    #[test]
    fn listed_ranges_and_shares_go_together() {
        let range = ListedRange {
            values: Values::Listed(vec!["flu".into()]),
            range: RangeOf::Listed(vec!["flu".into(), "cold".into(), "cough".into()]),
        };
        let words = column(DataType::Utf8, Ranges::Listed(vec![range]));
        let all: ArrayRef = Arc::new(datafusion::arrow::array::StringArray::from(vec!["gout", "cold", "flu", "gout"]));
        let mut reference = Reference::default();
        reference.add_values(&words, &all).unwrap();
        let domain = SensitiveDomain { reference: Some(reference), ..DOMAIN };
        let coded = encode_sensitive(&words, &domain, &all).unwrap();
        let shares = coded.shares.as_ref().unwrap();
        let share: Vec<f64> = coded.codes.iter().map(|&code| shares.share_of(code)).collect();
        assert_eq!(share, [0.5, 0.25, 0.25, 0.5]);
        assert!(coded.in_range(coded.codes[2], coded.codes[1]));
    }

    #[test]
    fn both_zeros_are_one_value_and_nan_is_not_null() {
        let array: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(-0.0), Some(0.0), None, Some(1.0), Some(f64::NAN), Some(-f64::NAN)]));
        for compared in [false, true] {
            let floats = column(DataType::Float64, Ranges::Interval(1.0));
            let mut reference = Reference::default();
            reference.add_values(&floats, &array).unwrap();
            let domain = SensitiveDomain { reference: compared.then_some(reference), ..DOMAIN };
            let coded = encode_sensitive(&floats, &domain, &array).unwrap();
            assert_eq!(coded.codes, [0, 0, 3, 1, 2, 2]);
            assert_eq!(coded.null, Some(3));
            assert_eq!(coded.spread(0, 2, 2), 1.0, "NaN is as far from a number as null");
            assert_eq!(coded.spread(2, 2, 1), 0.0);
            assert_eq!(coded.ranges[2], (2, 2));
        }
    }

    #[test]
    fn long_numbers_are_told_apart_in_a_cell_and_in_the_table() {
        let base = 100_000_000_000_000_000_i64;
        let array: ArrayRef = Arc::new(Int64Array::from(vec![base + 3, base, base + 1, base + 2]));
        let codes = column(DataType::Int64, Ranges::Identity);
        let mut reference = Reference::default();
        reference.add_values(&codes, &array).unwrap();
        reference.add_values(&codes, &array.slice(1, 1)).unwrap();
        for reference in [None, Some(reference)] {
            let compared = reference.is_some();
            let domain = SensitiveDomain { reference, ..DOMAIN };
            let coded = encode_sensitive(&codes, &domain, &array).unwrap();
            assert_eq!(coded.codes, [3, 0, 1, 2]);
            let shares = coded.shares.map(|shares| (0..4).map(|code| shares.share_of(code)).collect::<Vec<_>>());
            assert_eq!(shares, compared.then(|| vec![0.4, 0.2, 0.2, 0.2]));
            let unmatched: ArrayRef = Arc::new(Int64Array::from(vec![base + 4]));
            assert_eq!(encode_sensitive(&codes, &domain, &unmatched).is_err(), compared);
        }
    }

    #[test]
    fn intervals_around_long_numbers_miss_nothing() {
        // The true distance is 5; that of the positions is 16.
        let base = 100_000_000_000_000_000_i64;
        let array: ArrayRef = Arc::new(Int64Array::from(vec![base + 7, base + 12]));
        let coded = encode_sensitive(&column(DataType::Int64, Ranges::Interval(10.0)), &DOMAIN, &array).unwrap();
        assert!(coded.in_range(0, 1) && coded.in_range(1, 0));
        let array: ArrayRef = Arc::new(Int64Array::from(vec![7, 12, 18]));
        let coded = encode_sensitive(&column(DataType::Int64, Ranges::Interval(10.0)), &DOMAIN, &array).unwrap();
        assert_eq!(coded.ranges, [(0, 1), (0, 1), (2, 2)]);
    }
}
