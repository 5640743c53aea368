//! Rows that are left out because a quasi-identifier is null or NaN there.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

use crate::error::Result;
use crate::faults::Fault;

/// Which rows have a value in all of some columns; `None` if all have.
pub(crate) fn rows_present<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> Option<NullBuffer> {
    let both = |seen: Option<NullBuffer>, column: &ArrayRef| {
        let seen = NullBuffer::union(seen.as_ref(), column.logical_nulls().as_ref());
        NullBuffer::union(seen.as_ref(), rows_with_numbers(column).as_ref())
    };
    columns.into_iter().fold(None, both).filter(|present| present.null_count() > 0)
}

/// Which rows of a column of fractions hold a number: NaN has no place among the others, just like null.
fn rows_with_numbers(column: &ArrayRef) -> Option<NullBuffer> {
    match column.data_type() {
        DataType::Float16 => Some(column.as_primitive::<Float16Type>().values().iter().map(|n| !n.is_nan()).collect()),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().values().iter().map(|n| !n.is_nan()).collect()),
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().values().iter().map(|n| !n.is_nan()).collect()),
        _ => None,
    }
}

/// The rows that have a value in all of some columns, and how many others there are: of the source alone, when a column
/// says which rows are.
pub(crate) fn without_nulls<'a>(
    rows: &RecordBatch,
    columns: impl IntoIterator<Item = &'a ArrayRef>,
    of_source: Option<&ArrayRef>,
) -> Result<(RecordBatch, u64)> {
    let Some(present) = rows_present(columns).filter(|_| !Fault::NullsKept.is_planted()) else {
        return Ok((rows.clone(), 0));
    };
    let absent = |row: &usize| present.is_null(*row);
    let counted = |row: &usize| of_source.is_none_or(|member| member.as_boolean().value(*row));
    let dropped = (0..rows.num_rows()).filter(absent).filter(counted).count();
    Ok((filter_record_batch(rows, &BooleanArray::new(present.into_inner(), None))?, dropped as u64))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{DictionaryArray, Float64Array, Int32Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Int8Type, Schema};

    use super::*;

    #[test]
    fn rows_with_a_null_in_any_of_the_columns_go() {
        let keys = Int32Array::from(vec![Some(1), None, Some(3), Some(4)]);
        // The second value of the dictionary is null.
        let values = Arc::new(StringArray::from(vec![Some("a"), None]));
        let words = DictionaryArray::<Int8Type>::new(vec![0, 0, 1, 0].into(), values);
        let columns: Vec<ArrayRef> =
            vec![Arc::new(keys), Arc::new(words), Arc::new(BooleanArray::from(vec![true, false, true, true]))];
        let named = columns.iter().enumerate();
        let fields: Vec<Field> =
            named.map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true)).collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.clone()).unwrap();
        let kept = |wanted: &[usize], of_source| {
            let (kept, dropped) = without_nulls(&rows, wanted.iter().map(|&at| &columns[at]), of_source).unwrap();
            (kept.num_rows(), dropped)
        };
        assert_eq!(kept(&[], None), (4, 0));
        assert_eq!(kept(&[0], None), (3, 1));
        assert_eq!(kept(&[0, 1], None), (2, 2));
        assert_eq!(kept(&[0, 1], Some(&columns[2])), (2, 1), "of those of the source");
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), None, Some(f64::INFINITY)]));
        let present = rows_present([&column]).unwrap();
        assert_eq!((0..4).map(|row| present.is_valid(row)).collect::<Vec<_>>(), [true, false, false, true]);
    }
}
