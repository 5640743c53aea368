//! Planted faults in the published columns of a cell; see [`crate::faults`].

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::DataType;

use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::faults::Fault;
use crate::policy::Role;

/// The published rows with the fault that is planted, if it is one of columns.
pub(super) fn distort_published(published: RecordBatch, bound_policy: &BoundPolicy) -> Result<RecordBatch> {
    let schema = published.schema();
    let mut columns = published.columns().to_vec();
    let moved: &[Role] = match () {
        () if Fault::NeighbourRow.is_planted() => &[Role::Kept],
        () if Fault::NeighbourValues.is_planted() => &[Role::Kept, Role::Sensitive],
        () => &[],
    };
    let rows = published.num_rows() as u32;
    let beside = UInt32Array::from_iter_values((0..rows).map(|row| (row + 1) % rows.max(1)));
    for (field, role) in bound_policy.input.fields().iter().zip(&bound_policy.roles) {
        let Ok(index) = schema.index_of(field.name()) else { continue };
        if moved.contains(role) {
            columns[index] = take(&columns[index], &beside, None)?;
        }
        if Fault::KeptAsFloat.is_planted() && *role == Role::Kept && field.data_type() == &DataType::Int64 {
            columns[index] = cast(&cast(&columns[index], &DataType::Float64)?, &DataType::Int64)?;
        }
    }
    if Fault::SwappedColumns.is_planted() {
        swap_alike(
            &mut columns,
            &bound_policy.class_columns().iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?,
        );
    }
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
}

/// Swaps the first two of some columns that have one type.
fn swap_alike(columns: &mut [ArrayRef], candidates: &[usize]) {
    for (at, &one) in candidates.iter().enumerate() {
        let other = candidates[at + 1..].iter().find(|&&other| columns[other].data_type() == columns[one].data_type());
        if let Some(&other) = other {
            columns.swap(one, other);
            return;
        }
    }
}
