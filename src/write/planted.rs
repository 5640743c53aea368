//! Planted faults in batches that are written; see [`crate::faults`].

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;

use crate::error::Result;
use crate::faults::Fault;

/// The batch with the fault that is planted, if it is one of batches.
pub(super) fn distort_batch(batch: &RecordBatch) -> Result<RecordBatch> {
    let rows = 0..batch.num_rows() as u32;
    let rows: UInt32Array = match () {
        () if Fault::LostRow.is_planted() => rows.skip(1).collect(),
        () if Fault::RepeatedRow.is_planted() => rows.map(|row| if row == 1 { 0 } else { row }).collect(),
        () => return Ok(batch.clone()),
    };
    Ok(take_record_batch(batch, &rows)?)
}
