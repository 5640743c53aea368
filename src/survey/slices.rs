//! Which columns depend on each other in the sample: the slices of the form `slice`, when the job leaves them open.

use std::collections::HashMap;

use datafusion::arrow::array::ArrayRef;

use super::Sample;
use crate::binding::{BoundPolicy, is_number, is_time};
use crate::encode::{row_hashes, to_ordinals};
use crate::error::Result;
use crate::permutation::correlation::Column;
use crate::permutation::medoids;

/// Rows on which dependence is measured.
const COMPARED_ROWS: usize = 10_000;

/// Names of the quasi-identifiers and sensitive columns of every slice; none when the job does not ask for any.
pub(super) fn find_slices(bound_policy: &BoundPolicy, sample: &Sample) -> Result<Vec<Vec<String>>> {
    let Some(count) = bound_policy.open_slices() else { return Ok(Vec::new()) };
    let rows = sample.expand_rows(COMPARED_ROWS)?;
    let quasi = bound_policy.quasi.iter().map(|column| &column.name);
    let names: Vec<&String> = quasi.chain(bound_policy.sensitive.iter().map(|column| &column.name)).collect();
    let columns = rows.columns().iter().take(names.len()).map(to_column).collect::<Result<Vec<_>>>()?;
    let named = |slice: Vec<usize>| slice.into_iter().map(|column| names[column].clone()).collect();
    Ok(medoids::slice_columns(&columns, count).into_iter().map(named).collect())
}

/// Numbers as they are; everything else, and numbers with gaps, by which values are equal.
fn to_column(array: &ArrayRef) -> Result<Column> {
    if is_number(array.data_type()) || is_time(array.data_type()) {
        let numbers = to_ordinals(array)?;
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(Column::Numbers(numbers));
        }
    }
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut number = |hash: u64| {
        let next = numbers.len() as u32;
        *numbers.entry(hash).or_insert(next)
    };
    let hashes = row_hashes(std::slice::from_ref(array), array.len(), 0)?;
    Ok(Column::Codes(hashes.into_iter().map(&mut number).collect()))
}
