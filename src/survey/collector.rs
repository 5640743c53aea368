//! What pass 1 learns about each column: ends, words, nulls. Mergeable, and the same for any order of rows.

use std::collections::BTreeSet;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::{filter, is_not_null};

use super::sketch::{HashSketch, WordSketch};
use crate::binding::{QuasiColumn, SensitiveColumn, is_number, is_time};
use crate::encode::{
    ColumnStats, Distinct, Reference, SensitiveDomain, is_whole, map_text, row_hashes, to_ordinals, to_text,
};
use crate::error::Result;
use crate::hierarchy::Hierarchy;

/// Collects the statistics of one quasi-identifier.
#[derive(Debug, Clone)]
pub(super) enum Collector {
    Line { min: f64, max: f64, whole: bool, nulls: u64, values: Values },
    Leaves { unknown: u64, nulls: u64, leaves: BTreeSet<u16> },
    Words { sketch: WordSketch, nulls: u64 },
}

/// The first values of a line, as their keys: one as long as there is no other.
pub(super) type Values = BTreeSet<Vec<u8>>;

impl Collector {
    pub(super) fn new(column: &QuasiColumn) -> Self {
        match column.hierarchy.as_deref() {
            _ if column.is_ordinal() => {
                let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
                Self::Line { min, max, whole: true, nulls: 0, values: Values::new() }
            }
            Some(Hierarchy::Levels(_)) => Self::Leaves { unknown: 0, nulls: 0, leaves: BTreeSet::new() },
            _ => Self::Words { sketch: WordSketch::default(), nulls: 0 },
        }
    }

    pub(super) fn add_values(&mut self, column: &QuasiColumn, array: &ArrayRef) -> Result<()> {
        match self {
            Self::Line { min, max, whole, nulls, values } => {
                let of_wholes = is_whole(array.data_type());
                for position in to_ordinals(array)? {
                    if position.is_nan() {
                        *nulls += 1;
                    } else if position.is_finite() {
                        *min = min.min(position);
                        *max = max.max(position);
                        *whole = *whole && (of_wholes || position.fract() == 0.0);
                    } else {
                        // An infinite domain would make every range in it look like nothing.
                        *whole = false;
                    }
                }
                // As long as all positions coincide, the values themselves say whether there are several.
                if min >= max && values.len() < 2 && array.null_count() < array.len() {
                    let present = is_not_null(array)?;
                    let array = filter(array, &present)?;
                    values.extend(Distinct::from_array(&array)?.batch_keys(&array)?.into_iter().take(2));
                }
            }
            Self::Leaves { unknown, nulls, leaves } => {
                let Some(Hierarchy::Levels(levels)) = column.hierarchy.as_deref() else { return Ok(()) };
                let (unmatched, null) = (u16::MAX, u16::MAX - 1);
                let code = |value: &str| levels.find_leaf(value).map_or(unmatched, |leaf| leaf as u16);
                map_text(&to_text(array)?, null, code, |_, code| match code {
                    _ if code == unmatched => *unknown += 1,
                    _ if code == null => *nulls += 1,
                    leaf if leaves.len() < 2 => _ = leaves.insert(leaf),
                    _ => {}
                });
            }
            Self::Words { sketch, nulls } => {
                *nulls += array.null_count() as u64;
                let array = to_text(array)?;
                sketch.add_words(&array)?;
            }
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            (
                Self::Line { min, max, whole, nulls, values },
                Self::Line {
                    min: other_min,
                    max: other_max,
                    whole: other_whole,
                    nulls: other_nulls,
                    values: other_values,
                },
            ) => {
                values.extend(other_values);
                *min = min.min(other_min);
                *max = max.max(other_max);
                *whole &= other_whole;
                *nulls += other_nulls;
            }
            (
                Self::Leaves { unknown, nulls, leaves },
                Self::Leaves { unknown: other_unknown, nulls: other_nulls, leaves: other_leaves },
            ) => {
                *unknown += other_unknown;
                *nulls += other_nulls;
                leaves.extend(other_leaves);
            }
            (Self::Words { sketch, nulls }, Self::Words { sketch: other, nulls: other_nulls }) => {
                sketch.merge(other);
                *nulls += other_nulls;
            }
            _ => debug_assert!(false, "statistics of one column are of one kind"),
        }
    }

    pub(super) fn finish(self) -> ColumnStats {
        match self {
            // A column without any value: the domain is one point.
            Self::Line { min, max, nulls, values, .. } if min > max => {
                let varied = values.len() > 1;
                ColumnStats::Line { min: 0.0, max: 0.0, whole: true, nulls, varied, quantiles: Vec::new() }
            }
            Self::Line { min, max, whole, nulls, values } => {
                let varied = min < max || values.len() > 1;
                ColumnStats::Line { min, max, whole, nulls, varied, quantiles: Vec::new() }
            }
            Self::Leaves { unknown, nulls, leaves } => ColumnStats::Leaves { unknown, nulls, varied: leaves.len() > 1 },
            Self::Words { sketch, nulls } => {
                let (words, distinct) = sketch.finish();
                ColumnStats::Words { words, distinct, nulls }
            }
        }
    }
}

/// Collects the domain of one sensitive column.
#[derive(Debug, Clone)]
pub(super) struct SensitiveCollector {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) hashes: HashSketch,
    /// How often every value occurs, when a rule compares groups with it.
    pub(super) reference: Option<Reference>,
}

impl SensitiveCollector {
    pub(super) fn new(column: &SensitiveColumn) -> Self {
        let reference = column.compared.then(Reference::default);
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY, hashes: Default::default(), reference }
    }

    pub(super) fn add_values(&mut self, column: &SensitiveColumn, array: &ArrayRef) -> Result<()> {
        if is_number(&column.data_type) || is_time(&column.data_type) {
            for position in to_ordinals(array)?.into_iter().filter(|position| !position.is_nan()) {
                self.min = self.min.min(position);
                self.max = self.max.max(position);
            }
        } else {
            for hash in row_hashes(std::slice::from_ref(array), array.len(), 0)? {
                self.hashes.add_hash(hash);
            }
        }
        if let Some(reference) = &mut self.reference {
            reference.add_values(column, array)?;
            reference.ensure_few_values(column)?;
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.hashes.merge(other.hashes);
        if let (Some(mine), Some(theirs)) = (&mut self.reference, other.reference) {
            mine.merge(theirs);
        }
    }

    pub(super) fn finish(self, column: &SensitiveColumn) -> Result<SensitiveDomain> {
        let (min, max) = if self.min > self.max { (0.0, 0.0) } else { (self.min, self.max) };
        if let Some(reference) = &self.reference {
            reference.ensure_few_values(column)?;
        }
        Ok(SensitiveDomain { min, max, distinct: self.hashes.count_distinct(), reference: self.reference })
    }
}
