//! Arrow columns to codes: the way from a batch of real values to the [`Table`](crate::domain::Table) that the
//! grouping methods see.
//!
//! A [`Coder`] belongs to one quasi-identifier. It is made from the column's policy and from what the survey found,
//! and turns values into order-preserving codes: positions on a line for numbers and points in time, leaf numbers for
//! values with a hierarchy, places in a sorted word list for text without one.

mod memory;
mod nulls;
mod position;
mod quasi;
mod reference;
mod sensitive;
mod words;

pub use memory::{batch_size, compact};
pub use nulls::{present, without_nulls};
pub use position::{is_number, is_time, is_whole, positions};
pub use quasi::{Coder, MOST_CODES};
pub use reference::{MOST_VALUES, Reference};
pub use sensitive::{SensitiveDomain, encode_sensitive};
pub use words::{Words, map_text, text};

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};
use datafusion::error::Result;

/// A seeded hash of the content of every row, over all given columns. It orders rows canonically, whatever way they
/// arrived, chooses the survey's sample, and tells published classes apart.
///
/// Nulls count: `(null, 5)` and `(5, null)` differ, and so do a null struct and a struct of nulls.
pub fn row_hashes(columns: &[ArrayRef], rows: usize, seed: u64) -> Result<Vec<u64>> {
    let state = QualityRandomState::with_seed(seed);
    let mut hashes = vec![seed; rows];
    let mut column_hashes = vec![0; rows];
    for column in columns {
        fold(column, &state, &mut hashes, &mut column_hashes)?;
    }
    Ok(hashes)
}

/// Seeds of the two hashes that together tell classes apart.
pub const CLASS_SEEDS: [u64; 2] = [0x7472_7565, 0x6661_6c73];

/// Two independent hashes of every row over all given columns: together they tell combinations of values apart.
pub fn class_hashes(columns: &[ArrayRef], rows: usize) -> Result<Vec<(u64, u64)>> {
    let [a, b] = CLASS_SEEDS;
    Ok(row_hashes(columns, rows, a)?.into_iter().zip(row_hashes(columns, rows, b)?).collect())
}

/// Text in the type that Parquet files are read in: the same text hashes differently in others.
fn as_read(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => cast(column, &DataType::Utf8View)?,
        DataType::Binary | DataType::LargeBinary => cast(column, &DataType::BinaryView)?,
        _ => Arc::clone(column),
    })
}

fn fold(column: &ArrayRef, state: &QualityRandomState, hashes: &mut [u64], scratch: &mut [u64]) -> Result<()> {
    /// Stands for null.
    const NULL: u64 = 0x6E75_6C6C_6E75_6C6C;
    if let DataType::Struct(_) = column.data_type() {
        for field in column.as_struct().columns() {
            fold(field, state, hashes, scratch)?;
        }
        scratch.fill(0);
    } else {
        create_hashes([&as_read(column)?], state, scratch)?;
    }
    if let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        scratch.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, hash)| *hash = NULL);
    }
    for (hash, value) in hashes.iter_mut().zip(scratch.iter()) {
        let mixed = (*hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        *hash = mixed ^ (mixed >> 29);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, StructArray};
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::{Field, Fields};

    use super::*;

    #[test]
    fn nulls_make_a_difference() {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(5), None]));
        let b: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, None]));
        let hashes = row_hashes(&[a, b], 3, 1).unwrap();
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2]);
    }

    #[test]
    fn a_null_struct_is_not_a_struct_of_nulls() {
        let fields = Fields::from(vec![Field::new("min", DataType::Int32, true)]);
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
        let valid = NullBuffer::from(vec![true, false]);
        let column: ArrayRef = Arc::new(StructArray::new(fields, vec![inner], Some(valid)));
        let hashes = row_hashes(&[column], 2, 1).unwrap();
        assert_ne!(hashes[0], hashes[1]);
    }
}
