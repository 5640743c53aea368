//! Arrow values as plain Rust values, compared exactly: the total order that the published order is defined by, written
//! from its definition and not with Arrow's own kernels.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

/// One value. The derived order is the total order within one column: null first, false before true, numbers by value,
/// floats by IEEE total order, text and binary by bytes, structs by fields, lists by elements and a prefix first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i128),
    /// High and low half of 256 bits.
    Wide(i128, u128),
    /// Bits of an f64, turned so that they sort like the numbers; see [`Value::float`].
    Float(u64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(Vec<Value>),
}

impl Value {
    /// A float by IEEE 754 total order. Widening a narrower float keeps that order, sign of zero and NaN included.
    pub fn float(value: f64) -> Self {
        let bits = value.to_bits();
        Self::Float(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
    }

    /// The number of a float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(key) if key >> 63 == 1 => Some(f64::from_bits(key & !(1 << 63))),
            Self::Float(key) => Some(f64::from_bits(!key)),
            _ => None,
        }
    }

    /// Text as a value.
    pub fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }

    /// The text of a text value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

fn int<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Value
where
    T::Native: Into<i128>,
{
    Value::Int(array.as_primitive::<T>().value(row).into())
}

/// The value at a row of an array.
pub fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let list = |items: &dyn Array| Value::List((0..items.len()).map(|at| value(items, at)).collect());
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => int::<Int8Type>(array, row),
        DataType::Int16 => int::<Int16Type>(array, row),
        DataType::Int32 => int::<Int32Type>(array, row),
        DataType::Int64 => int::<Int64Type>(array, row),
        DataType::UInt8 => int::<UInt8Type>(array, row),
        DataType::UInt16 => int::<UInt16Type>(array, row),
        DataType::UInt32 => int::<UInt32Type>(array, row),
        DataType::UInt64 => int::<UInt64Type>(array, row),
        DataType::Decimal32(..) => int::<Decimal32Type>(array, row),
        DataType::Decimal64(..) => int::<Decimal64Type>(array, row),
        DataType::Decimal128(..) => int::<Decimal128Type>(array, row),
        DataType::Decimal256(..) => {
            let (low, high) = array.as_primitive::<Decimal256Type>().value(row).to_parts();
            Value::Wide(high, low)
        }
        DataType::Float16 => Value::float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => Value::float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Value::float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => int::<Date32Type>(array, row),
        DataType::Date64 => int::<Date64Type>(array, row),
        DataType::Time32(TimeUnit::Second) => int::<Time32SecondType>(array, row),
        DataType::Time32(_) => int::<Time32MillisecondType>(array, row),
        DataType::Time64(TimeUnit::Microsecond) => int::<Time64MicrosecondType>(array, row),
        DataType::Time64(_) => int::<Time64NanosecondType>(array, row),
        DataType::Timestamp(TimeUnit::Second, _) => int::<TimestampSecondType>(array, row),
        DataType::Timestamp(TimeUnit::Millisecond, _) => int::<TimestampMillisecondType>(array, row),
        DataType::Timestamp(TimeUnit::Microsecond, _) => int::<TimestampMicrosecondType>(array, row),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => int::<TimestampNanosecondType>(array, row),
        DataType::Duration(TimeUnit::Second) => int::<DurationSecondType>(array, row),
        DataType::Duration(TimeUnit::Millisecond) => int::<DurationMillisecondType>(array, row),
        DataType::Duration(TimeUnit::Microsecond) => int::<DurationMicrosecondType>(array, row),
        DataType::Duration(TimeUnit::Nanosecond) => int::<DurationNanosecondType>(array, row),
        DataType::Utf8 => Value::text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Value::text(array.as_string_view().value(row)),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Map(..) => list(&array.as_map().value(row)),
        DataType::Struct(_) => {
            Value::Struct(array.as_struct().columns().iter().map(|field| value(field.as_ref(), row)).collect())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let keys = dictionary.normalized_keys();
            value(dictionary.values().as_ref(), keys[row])
        }
        other => panic!("no value of type {other}"),
    }
}

/// All values of an array.
pub fn column(array: &dyn Array) -> Vec<Value> {
    // Keys of a dictionary are looked up for the whole array at once.
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = column(dictionary.values().as_ref());
        if values.is_empty() {
            return vec![Value::Null; array.len()];
        }
        let keys = dictionary.normalized_keys();
        let at = |row: usize| if array.is_null(row) { Value::Null } else { values[keys[row]].clone() };
        return (0..array.len()).map(at).collect();
    }
    (0..array.len()).map(|row| value(array, row)).collect()
}

/// All rows of some columns.
pub fn rows(batch: &RecordBatch, columns: &[usize]) -> Vec<Vec<Value>> {
    let columns: Vec<Vec<Value>> = columns.iter().map(|&at| column(batch.column(at).as_ref())).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

#[test]
fn values_stand_in_the_order_that_is_defined() {
    use datafusion::arrow::array::{DictionaryArray, Float64Array, Int32Array, ListArray, StructArray};
    use datafusion::arrow::datatypes::{Field, Int8Type as Key};
    use std::sync::Arc;
    let ascending = |array: &dyn Array| {
        let values = column(array);
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    };
    let floats = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-300, 9_007_199_254_740_993.0, f64::INFINITY, f64::NAN];
    ascending(&Float64Array::from_iter(std::iter::once(None).chain(floats.map(Some))));
    ascending(&ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        None,
        Some(vec![]),
        Some(vec![None]),
        Some(vec![Some(1)]),
        Some(vec![Some(1), None]),
        Some(vec![Some(2)]),
    ]));
    ascending(&DictionaryArray::<Key>::new(
        vec![None, Some(1), Some(0)].into(),
        Arc::new(datafusion::arrow::array::StringArray::from(vec!["b", ""])),
    ));
    let field = Arc::new(Field::new("a", DataType::Int32, true));
    let nulls = Some(vec![false, true, true].into());
    ascending(&StructArray::new(
        vec![field].into(),
        vec![Arc::new(Int32Array::from(vec![None, None, Some(-5)]))],
        nulls,
    ));
    assert!(Value::float(-2.5).as_f64() == Some(-2.5) && Value::float(2.5).as_f64() == Some(2.5));
}
