//! Which values are the same, and in what order they come: decided on the exact Arrow value, never on a position.
//!
//! Beyond 2^53 neighbouring whole numbers share a position, and so do long decimals and nanoseconds. Here they are
//! distinguished by keys of their own: integers for numbers and points in time, and for everything that leaves a batch the
//! bytes of Arrow's row format, which have the order of the values, null last.
//!
//! Two exceptions are made towards protection, so that a rule never counts as two what a reader takes for one: `-0.0` and
//! `0.0` are one value, and all NaN are one, behind every number. Null is another. This is about counting only: published
//! columns keep their bits.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, UInt32Array, make_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, cast, take};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int64Type, TimeUnit, UInt64Type,
};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::HashMap;

use super::dictionary::{map_text, to_text};
use super::to_ordinals;
use crate::binding::{is_number, is_time};
use crate::error::{Error, Result};

/// The distinct values of an array.
#[derive(Debug)]
pub(crate) struct Distinct {
    /// The value of every row, as a place in `rows`.
    pub codes: Vec<u32>,
    /// A row of every value. Numbers and points in time ascend, NaN and null last; others come as they occur first.
    pub rows: Vec<u32>,
}

impl Distinct {
    /// Distinguishes the values of an array.
    pub(crate) fn from_array(array: &ArrayRef) -> Result<Self> {
        let data_type = array.data_type();
        if is_number(data_type) || is_time(data_type) {
            Self::of_numbers(array)
        } else if is_text(data_type) {
            Ok(Self::of_text(array)?)
        } else {
            Self::of_rows(array)
        }
    }

    fn of_numbers(array: &ArrayRef) -> Result<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let wide = |keys: &mut dyn Iterator<Item = u64>| {
            let pairs = keys.zip(0_u32..).map(|(key, row)| u128::from(key) << 32 | u128::from(row));
            Self::from_sorted(pairs, nulls, |pair| *pair as u32, |a, b| a >> 32 == b >> 32)
        };
        Ok(match array.data_type() {
            DataType::Decimal128(..) => {
                let pairs = array.as_primitive::<Decimal128Type>().values().iter().zip(0_u32..);
                Self::from_sorted(pairs, nulls, |pair| pair.1, |a, b| a.0 == b.0)
            }
            DataType::Decimal256(..) => {
                let pairs = array.as_primitive::<Decimal256Type>().values().iter().zip(0_u32..);
                Self::from_sorted(pairs, nulls, |pair| pair.1, |a, b| a.0 == b.0)
            }
            DataType::UInt64 => wide(&mut array.as_primitive::<UInt64Type>().values().iter().copied()),
            DataType::Float16 => {
                let numbers = array.as_primitive::<Float16Type>().values().iter();
                wide(&mut numbers.map(|number| float_key(number.to_f64())))
            }
            DataType::Float32 => {
                let numbers = array.as_primitive::<Float32Type>().values().iter();
                wide(&mut numbers.map(|number| float_key(f64::from(*number))))
            }
            DataType::Float64 => {
                wide(&mut array.as_primitive::<Float64Type>().values().iter().map(|number| float_key(*number)))
            }
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => {
                let data = array.to_data();
                let numbers = data.buffer::<i32>(0)[..array.len()].iter().map(|number| *number as u32 ^ (1 << 31));
                let pairs = numbers.zip(0_u32..).map(|(key, row)| u64::from(key) << 32 | u64::from(row));
                Self::from_sorted(pairs, nulls, |pair| *pair as u32, |a, b| a >> 32 == b >> 32)
            }
            _ => wide(&mut whole_numbers(array)?.into_iter().map(|number| number as u64 ^ (1 << 63))),
        })
    }

    /// The values of pairs of a key and its row, which are given for all rows and compare by key first.
    fn from_sorted<T: Ord>(
        pairs: impl Iterator<Item = T>,
        nulls: Option<&NullBuffer>,
        row_of: impl Fn(&T) -> u32,
        same: impl Fn(&T, &T) -> bool,
    ) -> Self {
        let mut pairs: Vec<T> = pairs.collect();
        let (mut codes, mut rows) = (vec![0; pairs.len()], Vec::new());
        pairs.retain(|pair| nulls.is_none_or(|nulls| nulls.is_valid(row_of(pair) as usize)));
        pairs.sort_unstable();
        for run in pairs.chunk_by(same) {
            let code = rows.len() as u32;
            run.iter().for_each(|pair| codes[row_of(pair) as usize] = code);
            rows.extend(run.first().map(&row_of));
        }
        if let Some(nulls) = nulls {
            let missing = !nulls.inner();
            let code = rows.len() as u32;
            rows.extend(missing.set_indices().next().map(|row| row as u32));
            missing.set_indices().for_each(|row| codes[row] = code);
        }
        Self { codes, rows }
    }

    fn of_text(array: &ArrayRef) -> datafusion::error::Result<Self> {
        let words = to_text(array)?;
        let (mut codes, mut rows) = (vec![0; words.len()], Vec::new());
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let null = u32::MAX;
        let code = |word| {
            let next = seen.len() as u32;
            *seen.entry(word).or_insert(next)
        };
        map_text(&words, null, code, |row, code| {
            codes[row] = code;
            if code as usize == rows.len() {
                rows.push(row as u32);
            }
        });
        if let Some(first) = codes.iter().position(|&code| code == null) {
            let last = rows.len() as u32;
            rows.push(first as u32);
            codes.iter_mut().filter(|code| **code == null).for_each(|code| *code = last);
        }
        Ok(Self { codes, rows })
    }

    /// Values of any type, by their bytes.
    fn of_rows(array: &ArrayRef) -> Result<Self> {
        let array = canonicalise_fractions(array)?;
        let bytes = row_converter(array.data_type())?.convert_columns(&[array])?;
        let mut seen: HashMap<&[u8], u32> = HashMap::new();
        let (mut codes, mut rows) = (Vec::with_capacity(bytes.num_rows()), Vec::new());
        for row in 0..bytes.num_rows() {
            let code = *seen.entry(bytes.row(row).data()).or_insert_with(|| {
                rows.push(row as u32);
                rows.len() as u32 - 1
            });
            codes.push(code);
        }
        Ok(Self { codes, rows })
    }

    /// A key of every value that names it in any batch; keys of numbers have their order.
    pub(crate) fn batch_keys(&self, array: &ArrayRef) -> Result<Vec<Vec<u8>>> {
        array_keys(&take(array, &UInt32Array::from(self.rows.clone()), None)?)
    }
}

/// Most bytes of a key that is the value itself: enough for every number. Longer ones are named by their hash, which
/// nobody finds two values for.
const MAX_KEY: usize = 40;

/// A key of every value of an array.
pub(crate) fn array_keys(array: &ArrayRef) -> Result<Vec<Vec<u8>>> {
    // Text is the same value in whatever way it is held.
    let array = if is_text(array.data_type()) { Arc::new(to_text(array)?) } else { canonicalise_fractions(array)? };
    let rows = row_converter(array.data_type())?.convert_columns(&[array])?;
    let key =
        |bytes: &[u8]| if bytes.len() <= MAX_KEY { bytes.to_vec() } else { blake3::hash(bytes).as_bytes().to_vec() };
    Ok(rows.iter().map(|row| key(row.data())).collect())
}

/// The numbers or points in time that keys name, in the order of the keys.
pub(crate) fn values_of<'a>(
    keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let converter = row_converter(data_type)?;
    let width = data_type.primitive_width().map(|width| width + 1);
    if keys.clone().any(|key| Some(key.len()) != width) {
        return Err(Error::internal(format!("a key names no {data_type}")));
    }
    let parser = converter.parser();
    let mut columns = converter.convert_rows(keys.map(|key| parser.parse(key)))?;
    columns.pop().ok_or_else(|| Error::internal("keys without a column"))
}

fn row_converter(data_type: &DataType) -> Result<RowConverter> {
    let nulls_last = SortOptions { descending: false, nulls_first: false };
    Ok(RowConverter::new(vec![SortField::new_with_options(data_type.clone(), nulls_last)])?)
}

/// Whether values are text, or a dictionary of it.
fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The array with one zero and one NaN, wherever in it there are fractions.
fn canonicalise_fractions(array: &ArrayRef) -> Result<ArrayRef> {
    fn map_values<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, one: impl Fn(T::Native) -> T::Native) -> ArrayRef {
        Arc::new(array.unary::<_, T>(one))
    }
    Ok(match array.data_type() {
        DataType::Float16 => map_values(array.as_primitive::<Float16Type>(), |number| {
            let nan = <Float16Type as ArrowPrimitiveType>::Native::NAN;
            if number.is_nan() { nan } else { number + <Float16Type as ArrowPrimitiveType>::Native::ZERO }
        }),
        DataType::Float32 => {
            map_values(
                array.as_primitive::<Float32Type>(),
                |number| if number.is_nan() { f32::NAN } else { number + 0.0 },
            )
        }
        DataType::Float64 => {
            map_values(
                array.as_primitive::<Float64Type>(),
                |number| if number.is_nan() { f64::NAN } else { number + 0.0 },
            )
        }
        data_type if holds_floats(data_type) => {
            let data = array.to_data();
            let parts =
                data.child_data().iter().map(|part| Ok(canonicalise_fractions(&make_array(part.clone()))?.to_data()));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            make_array(data.into_builder().child_data(parts).build()?)
        }
        _ => Arc::clone(array),
    })
}

fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_floats(item.data_type())
        }
        DataType::ListView(item) | DataType::LargeListView(item) | DataType::Map(item, _) => {
            holds_floats(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| holds_floats(field.data_type())),
        DataType::Dictionary(_, values) => holds_floats(values),
        DataType::RunEndEncoded(_, values) => holds_floats(values.data_type()),
        other => other.is_floating(),
    }
}

/// A number as a key of the same order: the sign bit is turned, and below zero all bits.
fn float_key(number: f64) -> u64 {
    let bits = if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() };
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

/// The values of a column of whole numbers or points in time of up to 64 bits, signed, or the digits of a short decimal.
fn whole_numbers(array: &ArrayRef) -> Result<Vec<i64>> {
    Ok(match array.data_type() {
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Decimal64(..) => array.to_data().buffer::<i64>(0)[..array.len()].to_vec(),
        _ => cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().values().to_vec(),
    })
}

/// Positions below which every number of a column is placed as its digits say.
const SURE: f64 = 1e15;

/// The digits of every number of a column, and how many come after the point, when there are numbers of more digits than a
/// position surely has. Null has any.
pub(crate) fn decimal_digits(array: &ArrayRef, positions: &[f64]) -> Result<Option<(Vec<i128>, u32)>> {
    let scale = match array.data_type() {
        DataType::Int64 | DataType::UInt64 => 0,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => return Ok(None),
    };
    let power = 10_f64.powi(scale.into());
    if positions.iter().all(|position| position.is_nan() || (position * power).abs() < SURE) {
        return Ok(None);
    }
    let too_long = || Error::input("a decimal of more than 38 digits does not fit a ladder; cast it in source.sql");
    let digits = stored_digits(array)?.ok_or_else(too_long)?;
    // Zeros before the point that are not stored are written out.
    let zeros = 10_i128.checked_pow(scale.min(0).unsigned_abs().into());
    let digits = digits.into_iter().map(|number| number.checked_mul(zeros?)).collect::<Option<Vec<_>>>();
    let digits = digits.ok_or_else(too_long)?;
    Ok(Some((digits, scale.max(0).unsigned_abs().into())))
}

/// What is stored for every whole number, decimal or point in time, 0 for null; `None` for fractions, and if a decimal has
/// more than 38 digits.
pub(crate) fn stored_digits(array: &ArrayRef) -> Result<Option<Vec<i128>>> {
    let mut digits: Vec<Option<i128>> = match array.data_type() {
        data_type if data_type.is_floating() || !(is_number(data_type) || is_time(data_type)) => return Ok(None),
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().values().iter().map(|&number| Some(number.into())).collect()
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().values().iter().copied().map(Some).collect(),
        DataType::Decimal256(..) => {
            array.as_primitive::<Decimal256Type>().values().iter().map(|number| number.to_i128()).collect()
        }
        DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => {
            array.to_data().buffer::<i32>(0)[..array.len()].iter().map(|&number| Some(number.into())).collect()
        }
        _ => whole_numbers(array)?.into_iter().map(|number| Some(number.into())).collect(),
    };
    if let Some(nulls) = array.nulls() {
        (!nulls.inner()).set_indices().for_each(|row| digits[row] = Some(0));
    }
    Ok(digits.into_iter().collect())
}

/// The day of every point in time, counted from 1970-01-01: exact, where a position close to midnight may be rounded to the
/// next day. Null has any.
pub(crate) fn day_numbers(array: &ArrayRef) -> Result<Vec<f64>> {
    let second = 86_400;
    let per_day = match array.data_type() {
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => second * 1_000,
        DataType::Timestamp(TimeUnit::Second, _) => second,
        DataType::Timestamp(TimeUnit::Microsecond, _) => second * 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => second * 1_000_000_000,
        _ => return Ok(to_ordinals(array)?),
    };
    Ok(whole_numbers(array)?.into_iter().map(|moment| moment.div_euclid(per_day) as f64).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BinaryArray, BooleanArray, Decimal128Array, Decimal256Array, DictionaryArray, Float64Array, Int64Array,
        ListArray, StringArray, TimestampNanosecondArray, UInt64Array,
    };
    use datafusion::arrow::datatypes::{Int8Type, i256};
    use proptest::prelude::*;

    use super::*;

    fn codes(array: impl Array + 'static) -> Vec<u32> {
        Distinct::from_array(&(Arc::new(array) as ArrayRef)).unwrap().codes
    }

    #[test]
    fn numbers_beyond_positions_are_told_apart() {
        let base = 100_000_000_000_000_000;
        assert_eq!(codes(Int64Array::from(vec![base + 1, base, i64::MAX, i64::MIN, base + 1])), [2, 1, 3, 0, 2]);
        assert_eq!(codes(UInt64Array::from(vec![u64::MAX, u64::MAX - 1, 0])), [2, 1, 0]);
        assert_eq!(codes(TimestampNanosecondArray::from(vec![Some(i64::MAX), None, Some(i64::MAX - 1)])), [1, 2, 0]);
        let long = 10_i128.pow(37);
        let decimals = Decimal128Array::from(vec![Some(long + 1), Some(long), None, Some(-long)]);
        assert_eq!(codes(decimals.with_precision_and_scale(38, 0).unwrap()), [2, 1, 3, 0]);
        let longer = Decimal256Array::from(vec![i256::from_i128(long) + i256::ONE, i256::from_i128(long)]);
        assert_eq!(codes(longer.with_precision_and_scale(76, 3).unwrap()), [1, 0]);
    }

    #[test]
    fn there_is_one_zero_and_one_nan() {
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        let numbers =
            vec![Some(-0.0), Some(0.0), Some(f64::NAN), None, Some(other_nan), Some(-f64::NAN), Some(f64::INFINITY)];
        assert_eq!(codes(Float64Array::from(numbers.clone())), [0, 0, 2, 3, 2, 2, 1]);
        let item = |number| Some(vec![number]);
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(numbers.into_iter().map(item));
        assert_eq!(codes(lists), [0, 0, 1, 2, 1, 1, 3], "in lists too");
    }

    #[test]
    fn empty_and_null_differ_in_every_type() {
        assert_eq!(codes(StringArray::from(vec![Some(""), None, Some("a"), Some("")])), [0, 2, 1, 0]);
        assert_eq!(codes(BinaryArray::from_opt_vec(vec![Some(b""), None, Some(b"")])), [0, 1, 0]);
        assert_eq!(codes(BooleanArray::from(vec![None, Some(false), Some(true), None])), [0, 1, 2, 0]);
        let lists = vec![Some(vec![]), None, Some(vec![None]), Some(vec![])];
        assert_eq!(codes(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)), [0, 1, 2, 0]);
        let words: DictionaryArray<Int8Type> = vec![Some("x"), None, Some(""), Some("x")].into_iter().collect();
        assert_eq!(codes(words), [0, 2, 1, 0]);
    }

    #[test]
    fn digits_are_looked_at_where_positions_are_too_short() {
        let of = |array: ArrayRef| decimal_digits(&array, &to_ordinals(&array).unwrap()).unwrap();
        let long = 100_000_000_000_000_001;
        assert_eq!(
            of(Arc::new(Int64Array::from(vec![Some(long), None, Some(-3)]))),
            Some((vec![long.into(), 0, -3], 0))
        );
        assert_eq!(of(Arc::new(Int64Array::from(vec![1, 2]))), None);
        assert_eq!(of(Arc::new(UInt64Array::from(vec![u64::MAX]))), Some((vec![u64::MAX.into()], 0)));
        let decimal = |digits, scale| -> ArrayRef {
            Arc::new(Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).unwrap())
        };
        assert_eq!(of(decimal(long.into(), 3)), Some((vec![long.into()], 3)));
        assert_eq!(of(decimal(long.into(), -3)), Some((vec![i128::from(long) * 1000], 0)));
        assert_eq!(of(decimal(12, 3)), None);
        assert_eq!(of(Arc::new(Float64Array::from(vec![1e300]))), None);
        let huge = Decimal256Array::from(vec![i256::MAX]).with_precision_and_scale(76, 0).unwrap();
        let huge: ArrayRef = Arc::new(huge);
        assert!(decimal_digits(&huge, &[1e75]).is_err());
    }

    #[test]
    fn a_moment_before_midnight_is_of_its_day() {
        let last = 19_790_i64 * 86_400_000_000_000 - 1;
        let moments: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![last, last + 1, -1]));
        assert_eq!(day_numbers(&moments).unwrap(), [19_789.0, 19_790.0, -1.0]);
    }

    #[test]
    fn long_values_have_short_keys() {
        let (long, other) = ("x".repeat(5000), "x".repeat(5001));
        let words: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(), other.as_str(), "x"]));
        let keys = Distinct::from_array(&words).unwrap().batch_keys(&words).unwrap();
        assert!(keys.iter().all(|key| key.len() <= MAX_KEY));
        assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    }

    fn wide_numbers() -> impl Strategy<Value = Vec<Option<i64>>> {
        let near = |base: i64| (-3_i64..=3).prop_map(move |step| base.saturating_add(step));
        let number =
            prop_oneof![near(0), near(1 << 53), near(-(1 << 60)), near(i64::MAX), near(i64::MIN), any::<i64>()];
        prop::collection::vec(prop::option::weighted(0.9, number), 1..60)
    }

    proptest! {
        #[test]
        fn codes_follow_the_order_of_whole_numbers(numbers in wide_numbers()) {
            let arrays: [ArrayRef; 3] = [
                Arc::new(Int64Array::from(numbers.clone())),
                Arc::new(Decimal128Array::from_iter(numbers.iter().map(|n| n.map(i128::from)))
                    .with_precision_and_scale(38, 4).unwrap()),
                Arc::new(TimestampNanosecondArray::from(numbers.clone())),
            ];
            let order = |number: Option<i64>| (number.is_none(), number);
            for array in arrays {
                let found = Distinct::from_array(&array).unwrap();
                let keys = found.batch_keys(&array).unwrap();
                prop_assert!(keys.is_sorted());
                let back = values_of(keys.iter().map(Vec::as_slice), array.data_type()).unwrap();
                prop_assert_eq!(&back, &take(&array, &UInt32Array::from(found.rows.clone()), None).unwrap());
                for (a, &left) in numbers.iter().enumerate() {
                    for (b, &right) in numbers.iter().enumerate() {
                        prop_assert_eq!(found.codes[a].cmp(&found.codes[b]), order(left).cmp(&order(right)));
                    }
                }
            }
        }

        #[test]
        fn codes_follow_the_order_of_fractions(bits in prop::collection::vec(any::<u64>(), 1..60), zeros in 0..3_usize) {
            let mut numbers: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            numbers.extend([0.0, -0.0, f64::NAN].into_iter().take(zeros));
            let array: ArrayRef = Arc::new(Float64Array::from(numbers.clone()));
            let found = Distinct::from_array(&array).unwrap();
            prop_assert!(found.batch_keys(&array).unwrap().is_sorted());
            for (a, left) in numbers.iter().enumerate() {
                for (b, right) in numbers.iter().enumerate() {
                    let expected = left.partial_cmp(right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()));
                    prop_assert_eq!(found.codes[a].cmp(&found.codes[b]), expected);
                }
            }
        }
    }
}
