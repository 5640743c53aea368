//! Hashes of whole rows: they order rows canonically, however they arrived, choose the survey's sample, and distinguish
//! published classes.
//!
//! A hash is of the bits of a value: `-0.0` and `0.0`, and any two NaN, differ, because columns are kept bit by bit. Null
//! counts on every level: `(null, 5)` and `(5, null)` differ, a null list from an empty one and from one that holds null, and a
//! null struct from a struct of nulls.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};
use datafusion::error::Result;

use crate::faults::Fault;

/// Seeds of the two hashes that together identify classes.
pub(crate) const CLASS_SEEDS: [u64; 2] = [0x7472_7565, 0x6661_6c73];

/// Stands for null.
const NULL: u64 = 0x6E75_6C6C_6E75_6C6C;

/// Two independent hashes of every row over all given columns: together they identify combinations of values.
pub(crate) fn class_hashes(columns: &[ArrayRef], rows: usize) -> Result<Vec<(u64, u64)>> {
    let [a, b] = CLASS_SEEDS;
    let columns = if Fault::ClassHashColumn.is_planted() { all_but_last(columns) } else { columns };
    Ok(row_hashes(columns, rows, a)?.into_iter().zip(row_hashes(columns, rows, b)?).collect())
}

/// A seeded hash of the content of every row, over all given columns.
pub(crate) fn row_hashes(columns: &[ArrayRef], rows: usize, seed: u64) -> Result<Vec<u64>> {
    let columns = if Fault::RowHashColumn.is_planted() { all_but_last(columns) } else { columns };
    let mut hasher = Hasher { state: QualityRandomState::with_seed(seed), spare: Vec::new() };
    let mut hashes = vec![seed; rows];
    columns.iter().try_for_each(|column| hasher.fold_column(column, &mut hashes))?;
    Ok(hashes)
}

/// What a planted hash sees of several columns.
fn all_but_last(columns: &[ArrayRef]) -> &[ArrayRef] {
    &columns[..columns.len().saturating_sub(1).max(1).min(columns.len())]
}

struct Hasher {
    state: QualityRandomState,
    /// Memory for the hashes of the next column.
    spare: Vec<u64>,
}

impl Hasher {
    /// Mixes the values of a column into the hashes of their rows.
    fn fold_column(&mut self, column: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
        let mut values = match column.data_type() {
            DataType::Struct(_) => {
                column.as_struct().columns().iter().try_for_each(|field| self.fold_column(field, hashes))?;
                self.spare_for(column.len())
            }
            _ => self.hash_values(column)?,
        };
        if let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            (!nulls.inner()).set_indices().for_each(|row| values[row] = NULL);
        }
        hashes.iter_mut().zip(&values).for_each(|(hash, value)| *hash = mix_hash(*hash, *value));
        self.spare = values;
        Ok(())
    }

    fn spare_for(&mut self, rows: usize) -> Vec<u64> {
        let mut spare = std::mem::take(&mut self.spare);
        spare.clear();
        spare.resize(rows, 0);
        spare
    }

    /// A hash of every value of a column that is not a struct; any for null.
    fn hash_values(&mut self, column: &ArrayRef) -> Result<Vec<u64>> {
        match column.data_type() {
            DataType::List(_) => self.hash_lists::<i32>(column),
            DataType::LargeList(_) => self.hash_lists::<i64>(column),
            DataType::Map(..) => {
                let entries: ArrayRef = Arc::new(column.as_map().entries().clone());
                self.hash_items(&entries, column.as_map().value_offsets().iter().map(|end| *end as usize))
            }
            DataType::FixedSizeList(_, size) => {
                let size = *size as usize;
                self.hash_items(column.as_fixed_size_list().values(), (0..=column.len()).map(|row| row * size))
            }
            DataType::Dictionary(_, values) if values.is_nested() => self.hash_values(&cast(column, values)?),
            _ => {
                let mut hashes = self.spare_for(column.len());
                create_hashes([&as_read(column)?], &self.state, &mut hashes)?;
                Ok(hashes)
            }
        }
    }

    fn hash_lists<O: OffsetSizeTrait>(&mut self, column: &ArrayRef) -> Result<Vec<u64>> {
        let lists = column.as_list::<O>();
        self.hash_items(lists.values(), lists.value_offsets().iter().map(|end| end.as_usize()))
    }

    /// A hash of every list: of its length and its items in their order. List i ends where list i + 1 begins.
    fn hash_items(&mut self, items: &ArrayRef, ends: impl Iterator<Item = usize>) -> Result<Vec<u64>> {
        let ends: Vec<usize> = ends.collect();
        let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
        let mut hashes = vec![0; last - first];
        self.fold_column(&items.slice(first, last - first), &mut hashes)?;
        let list = |ends: &[usize]| {
            let items = &hashes[ends[0] - first..ends[1] - first];
            items.iter().fold(items.len() as u64, |hash, item| mix_hash(hash, *item))
        };
        Ok(ends.windows(2).map(list).collect())
    }
}

fn mix_hash(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

/// Text in the type that Parquet files are read in, because the same text hashes differently in others; and fractions as
/// their bits, because DataFusion takes both zeros for one and all NaN.
fn as_read(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => cast(column, &DataType::Utf8View)?,
        DataType::Binary | DataType::LargeBinary => cast(column, &DataType::BinaryView)?,
        DataType::Float16 => {
            Arc::new(column.as_primitive::<Float16Type>().unary::<_, UInt16Type>(|number| number.to_bits()))
        }
        DataType::Float32 => Arc::new(column.as_primitive::<Float32Type>().unary::<_, UInt32Type>(f32::to_bits)),
        DataType::Float64 => Arc::new(column.as_primitive::<Float64Type>().unary::<_, UInt64Type>(f64::to_bits)),
        _ => Arc::clone(column),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use datafusion::arrow::array::{
        FixedSizeListArray, Float64Array, Int32Array, Int32Builder, ListArray, MapBuilder, StringBuilder, StructArray,
        new_null_array,
    };
    use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
    use datafusion::arrow::datatypes::{Field, Fields, Int32Type};

    use super::*;

    fn assert_all_differ(columns: &[ArrayRef]) {
        let rows = columns[0].len();
        let hashes = row_hashes(columns, rows, 1).unwrap();
        assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), rows, "{columns:?}");
    }

    #[test]
    fn nulls_make_a_difference() {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(5), None]));
        let b: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, None]));
        assert_all_differ(&[a, b]);
    }

    #[test]
    fn a_null_struct_is_not_a_struct_of_nulls() {
        let fields = Fields::from(vec![Field::new("min", DataType::Int32, true)]);
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
        let valid = NullBuffer::from(vec![true, false]);
        let column: ArrayRef = Arc::new(StructArray::new(fields, vec![inner], Some(valid)));
        assert_all_differ(&[column]);
    }

    #[test]
    fn an_empty_list_is_not_null_after_a_null_column() {
        let lists = vec![None, Some(vec![]), Some(vec![None]), Some(vec![None, None]), Some(vec![Some(0)])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        let missing = new_null_array(&DataType::Int32, lists.len());
        assert_all_differ(&[Arc::clone(&missing), Arc::clone(&lists)]);
        assert_all_differ(&[Arc::clone(&lists), missing]);
        let large = cast(&lists, &DataType::LargeList(Arc::new(Field::new("item", DataType::Int32, true)))).unwrap();
        assert_all_differ(&[large]);
        // Lists of these lists: null, empty, of null, of an empty one, ...
        let item = Arc::new(Field::new("item", lists.data_type().clone(), true));
        let offsets = OffsetBuffer::new(vec![0, 0, 0, 1, 2, 3, 5].into());
        let valid = NullBuffer::from(vec![false, true, true, true, true, true]);
        let nested: ArrayRef = Arc::new(ListArray::new(item, offsets, lists, Some(valid)));
        assert_all_differ(&[Arc::clone(&nested)]);
        assert_all_differ(&[nested.slice(2, 3)]);
    }

    #[test]
    fn fixed_lists_and_maps_differ_by_their_items() {
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let items: ArrayRef = Arc::new(Int32Array::from(vec![None, None, None, None, Some(1), None, None, Some(1)]));
        let valid = NullBuffer::from(vec![false, true, true, true]);
        let lists: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, items, Some(valid)));
        assert_all_differ(&[Arc::clone(&lists)]);
        assert_all_differ(&[lists.slice(1, 3)]);
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        for entries in [None, Some(vec![]), Some(vec![("a", None)]), Some(vec![("a", Some(0))]), Some(vec![("", None)])]
        {
            entries.iter().flatten().for_each(|(key, value)| {
                maps.keys().append_value(key);
                maps.values().append_option(*value);
            });
            maps.append(entries.is_some()).unwrap();
        }
        assert_all_differ(&[Arc::new(maps.finish())]);
    }

    #[test]
    fn every_bit_of_a_fraction_counts() {
        let nans = [f64::NAN, -f64::NAN, f64::from_bits(f64::NAN.to_bits() | 1)];
        let numbers = [0.0, -0.0].into_iter().chain(nans);
        let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(numbers));
        assert_all_differ(&[Arc::clone(&numbers)]);
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let offsets = OffsetBuffer::from_lengths([1; 5]);
        assert_all_differ(&[Arc::new(ListArray::new(item, offsets, numbers, None))]);
    }
}
