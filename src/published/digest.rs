//! The digest of the classes of some rows: the sum of two hashes of their published values. The hashes are written out once
//! more here, so that a fault in either of them shows.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};
use datafusion::error::Result as DataFusionResult;

use crate::measure::people::Digest;

/// Seeds of the two hashes.
const SEEDS: [u64; 2] = [0x7472_7565, 0x6661_6c73];

/// What stands for null.
const NULL: u64 = 0x6E75_6C6C_6E75_6C6C;

/// Adds the classes of some rows.
pub(crate) fn add_to_digest(classes: &RecordBatch, digest: &mut Digest) -> DataFusionResult<()> {
    let [a, b] = [SEEDS[0], SEEDS[1]].map(|seed| row_hashes(classes.columns(), classes.num_rows(), seed));
    a?.into_iter().zip(b?).for_each(|class| digest.add_row(class));
    Ok(())
}

/// The hash of every row: column by column, the fields of a struct before the struct itself.
fn row_hashes(columns: &[ArrayRef], rows: usize, seed: u64) -> DataFusionResult<Vec<u64>> {
    let mut whole = vec![seed; rows];
    for column in columns {
        mix_column(column, &QualityRandomState::with_seed(seed), &mut whole)?;
    }
    Ok(whole)
}

fn mix_column(column: &ArrayRef, state: &QualityRandomState, whole: &mut [u64]) -> DataFusionResult<()> {
    let mut own = vec![0; whole.len()];
    if let DataType::Struct(_) = column.data_type() {
        column.as_struct().columns().iter().try_for_each(|field| mix_column(field, state, whole))?;
    } else {
        create_hashes([&plain_array(column)?], state, &mut own)?;
    }
    if let Some(nulls) = column.logical_nulls() {
        own.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, hash)| *hash = NULL);
    }
    for (hash, value) in whole.iter_mut().zip(own) {
        let mixed = (*hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        *hash = mixed ^ (mixed >> 29);
    }
    Ok(())
}

/// Text as files are read, and fractions by their bits: a hash of their values takes both zeros for one.
fn plain_array(column: &ArrayRef) -> DataFusionResult<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => cast(column, &DataType::Utf8View)?,
        DataType::Binary | DataType::LargeBinary => cast(column, &DataType::BinaryView)?,
        DataType::Float16 => Arc::new(column.as_primitive::<Float16Type>().unary::<_, UInt16Type>(|it| it.to_bits())),
        DataType::Float32 => Arc::new(column.as_primitive::<Float32Type>().unary::<_, UInt32Type>(f32::to_bits)),
        DataType::Float64 => Arc::new(column.as_primitive::<Float64Type>().unary::<_, UInt64Type>(f64::to_bits)),
        _ => Arc::clone(column),
    })
}
