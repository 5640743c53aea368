//! Batches that are kept for a while: what they hold, and how to make them hold no more.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// The batch with its own text buffers: rows of a sorted batch point into the buffers of all batches they came from,
/// which would keep those alive.
pub(crate) fn compact_batch(batch: &RecordBatch) -> crate::error::Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()) as ArrayRef,
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()) as ArrayRef,
            _ => Arc::clone(column),
        })
        .collect();
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// Bytes that a batch holds for itself.
pub(crate) fn batch_size(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View | DataType::BinaryView => column.get_buffer_memory_size(),
            _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
        })
        .sum()
}
