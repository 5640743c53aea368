//! Sensitive columns to codes: which rows share a value, how far values lie apart, what range each would reveal.
//!
//! Codes are local to a cell. Numbers keep their order; other values are told apart by a 64-bit hash.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};
use datafusion::common::HashMap;

use super::reference::{Reference, keys};
use super::words::{map_text, text};
use super::{is_number, is_time, positions, row_hashes};
use crate::domain::{Sensitive, SensitiveShape, Shares};
use crate::error::{Error, Result};
use crate::hierarchy::{Hierarchy, LevelTree};
use crate::job::{ListedRange, RangeOf, Ranges, SensitiveColumn, Values};

/// What is known of a sensitive column's whole domain.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SensitiveDomain {
    /// Smallest position of a number or point in time.
    pub min: f64,
    /// Largest position.
    pub max: f64,
    /// Number of distinct values.
    pub distinct: u64,
    /// How often every value occurs, when a rule compares groups with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// Codes one sensitive column of a cell.
pub fn encode_sensitive(column: &SensitiveColumn, domain: &SensitiveDomain, array: &ArrayRef) -> Result<Sensitive> {
    let mut sensitive = match column.hierarchy.as_deref() {
        Some(Hierarchy::Levels(levels)) => leaves(column, domain, levels, array)?,
        _ if is_number(&column.data_type) || is_time(&column.data_type) => numbers(column, domain, array)?,
        _ => values(column, domain, array)?,
    };
    sensitive.ranges = ranges(column, &sensitive);
    Ok(sensitive)
}

fn numbers(column: &SensitiveColumn, domain: &SensitiveDomain, array: &ArrayRef) -> Result<Sensitive> {
    let positions = positions(array)?;
    let (at, counts, nulls) = match &domain.reference {
        Some(reference) => reference.numbers(),
        None => {
            let mut at: Vec<f64> = positions.iter().copied().filter(|position| !position.is_nan()).collect();
            at.sort_unstable_by(f64::total_cmp);
            at.dedup();
            (at, Vec::new(), None)
        }
    };
    let null = at.len() as u32;
    let code = |position: &f64| match at.binary_search_by(|value| value.total_cmp(position)) {
        Ok(code) => Ok(code as u32),
        Err(_) if position.is_nan() => Ok(null),
        Err(_) => Err(unheard_of(column)),
    };
    let codes: Vec<u32> = positions.iter().map(code).collect::<Result<_>>()?;
    let [min, max] = column.domain.unwrap_or([domain.min, domain.max]);
    let null = (codes.contains(&null) || nulls.is_some()).then_some(null);
    let mut coded = sensitive(column, codes, SensitiveShape::Number { at, min, max }, null);
    if domain.reference.is_some() {
        coded.shares = Some(Arc::new(Shares::new(&counts.into_iter().chain(nulls).collect::<Vec<_>>())));
    }
    Ok(coded)
}

/// Leaf of every value. Null and values that the hierarchy does not know are pseudo leaves below the root.
pub(super) fn leaf_codes(levels: &LevelTree, array: &ArrayRef) -> Result<Vec<u32>> {
    let unknown = levels.leaves().len() as u16;
    let mut codes = vec![0; array.len()];
    let code = |value: &str| levels.leaf(value).map_or(unknown, |leaf| leaf as u16);
    map_text(&text(array)?, unknown + 1, code, |row, code| codes[row] = u32::from(code));
    Ok(codes)
}

fn leaves(
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    levels: &LevelTree,
    array: &ArrayRef,
) -> Result<Sensitive> {
    let null = levels.leaves().len() as u32 + 1;
    let shape = SensitiveShape::Tree(levels.to_tree(true, true));
    let mut coded = sensitive(column, leaf_codes(levels, array)?, shape, Some(null));
    coded.shares = domain.reference.as_ref().map(|reference| {
        let mut counts = vec![0; null as usize + 1];
        reference.entries().for_each(|(leaf, count)| counts[leaf as usize] = count);
        Arc::new(Shares::new(&counts))
    });
    Ok(coded)
}

/// A column of values that are told apart by their hash.
pub(super) fn hashable(column: &SensitiveColumn, array: &ArrayRef) -> Result<ArrayRef> {
    match &column.ranges {
        // Listed values are text.
        Ranges::Listed(_) => Ok(Arc::new(text(array)?)),
        _ => Ok(Arc::clone(array)),
    }
}

fn values(column: &SensitiveColumn, domain: &SensitiveDomain, array: &ArrayRef) -> Result<Sensitive> {
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut code_of = |hash: u64| {
        let next = seen.len() as u32;
        *seen.entry(hash).or_insert(next)
    };
    if let Ranges::Listed(listed) = &column.ranges {
        // Values of one range get adjacent codes, so that the range is an interval of codes.
        let words: Vec<&str> = listed.iter().flat_map(range_words).collect();
        let words: ArrayRef = Arc::new(StringViewArray::from(words));
        row_hashes(std::slice::from_ref(&words), words.len(), 0)?.into_iter().for_each(|hash| {
            code_of(hash);
        });
    }
    let mut counts = Vec::new();
    for (hash, count) in domain.reference.iter().flat_map(Reference::entries) {
        let code = code_of(hash) as usize;
        counts.resize(counts.len().max(code + 1), 0);
        counts[code] = count;
    }
    let codes: Vec<u32> = keys(column, array)?.into_iter().map(code_of).collect();
    if domain.reference.is_some() && codes.iter().any(|&code| code as usize >= counts.len()) {
        return Err(unheard_of(column));
    }
    let values = domain.distinct.min(u64::from(u32::MAX)) as u32;
    let mut coded = sensitive(column, codes, SensitiveShape::Set { values }, None);
    coded.shares = domain.reference.as_ref().map(|_| Arc::new(Shares::new(&counts)));
    Ok(coded)
}

/// A value that the table did not hold when its values were counted.
fn unheard_of(column: &SensitiveColumn) -> Error {
    let name = &column.name;
    Error::Input(format!("column `{name}`: the source has changed while it was read; run again when it is at rest"))
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

fn sensitive(column: &SensitiveColumn, codes: Vec<u32>, shape: SensitiveShape, null: Option<u32>) -> Sensitive {
    Sensitive { name: column.name.clone(), codes, shape, null, ranges: Vec::new(), shares: None }
}

/// The sensitive range of every code, as the policy lays it down; empty when every value is its own range.
fn ranges(column: &SensitiveColumn, sensitive: &Sensitive) -> Vec<(u32, u32)> {
    match (&column.ranges, &sensitive.shape, column.hierarchy.as_deref()) {
        (Ranges::Identity, ..) => Vec::new(),
        (Ranges::Interval(length), SensitiveShape::Number { at, .. }, _) => {
            at.iter().map(|value| between(at, value - length / 2.0, value + length / 2.0)).collect()
        }
        (Ranges::Listed(listed), SensitiveShape::Number { at, .. }, _) => at
            .iter()
            .enumerate()
            .map(|(code, value)| {
                let found = listed.iter().find_map(|entry| match (&entry.values, &entry.range) {
                    (Values::Between([lo, hi]), RangeOf::Between([from, to])) if (*lo..=*hi).contains(value) => {
                        Some(between(at, *from, *to))
                    }
                    _ => None,
                });
                found.unwrap_or((code as u32, code as u32))
            })
            .collect(),
        (Ranges::Level(level), SensitiveShape::Tree(_), Some(Hierarchy::Levels(levels))) => {
            (0..levels.leaves().len() as u32).map(|leaf| levels.ascendant(leaf, *level as usize)).collect()
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
            // Codes are the places of the words when each is counted once: see `values`.
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

/// The codes of all values from `lo` to `hi`.
fn between(at: &[f64], lo: f64, hi: f64) -> (u32, u32) {
    let first = at.partition_point(|value| *value < lo);
    let last = at.partition_point(|value| *value <= hi);
    (first as u32, last.saturating_sub(1).max(first) as u32)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;
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
        reference.add(&numbers, &all).unwrap();
        let domain = SensitiveDomain { reference: Some(reference), ..DOMAIN };
        let coded = encode_sensitive(&numbers, &domain, &some).unwrap();
        let shares = coded.shares.unwrap();
        assert_eq!((coded.codes[0], coded.null), (1, Some(2)));
        assert_eq!((shares.len(), shares.of(0), shares.of(1), shares.of(2)), (3, 0.25, 0.5, 0.25));
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
        reference.add(&words, &all).unwrap();
        let domain = SensitiveDomain { reference: Some(reference), ..DOMAIN };
        let coded = encode_sensitive(&words, &domain, &all).unwrap();
        let shares = coded.shares.as_ref().unwrap();
        let share: Vec<f64> = coded.codes.iter().map(|&code| shares.of(code)).collect();
        assert_eq!(share, [0.5, 0.25, 0.25, 0.5]);
        assert!(coded.in_range(coded.codes[2], coded.codes[1]));
    }

    #[test]
    fn both_zeros_are_one_value() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), Some(0.0), None, Some(1.0)]));
        let coded = encode_sensitive(&column(DataType::Float64, Ranges::Identity), &DOMAIN, &array).unwrap();
        assert_eq!(coded.codes[0], coded.codes[1]);
        assert_eq!(coded.null, Some(coded.codes[2]));
        assert_ne!(coded.codes[3], coded.codes[0]);
    }
}
