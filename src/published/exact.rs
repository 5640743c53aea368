//! Values as keys that are equal exactly where the values are: no hash of a row, no position in floating point.
//!
//! - For `GROUP BY` and comparisons, [`alike_keys`] turns a column into one that DataFusion groups by its exact values.
//! - For rules about a sensitive column, [`Keys`] turns a value into a number of 128 bits: numbers and points in time by
//!   their own value, in their order; values of a hierarchy by the number of their leaf; all others by their bytes. Decimals
//!   of more digits than that holds go by their rank among all that are published.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, Decimal128Array, Int64Array, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float64Type,
    Int32Type, Int64Type, UInt64Type, i256,
};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::HashMap;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident, lit,
};
use datafusion::prelude::DataFrame;

use crate::binding::SensitiveColumn;
use crate::error::Result;
use crate::hierarchy::{Hierarchy, LevelTree};
use crate::plan::columns_of;

/// The key of null: behind every other.
pub(crate) const NULL: i128 = i128::MAX;

/// The type of keys.
pub(crate) const KEY: DataType = DataType::Decimal128(38, 0);

/// Which floating-point numbers are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Floats {
    /// Those a reader cannot distinguish: all NaN are one.
    Read,
    /// Those of the same bits.
    Bits,
}

/// A floating-point number as a whole one of the same order: -0.0 before 0.0, NaN behind infinity.
pub(crate) fn order_float(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The number that [`order_float`] has turned into a whole one.
pub(crate) fn float_of(ordered: i64) -> f64 {
    f64::from_bits((ordered ^ ((ordered >> 63) as u64 >> 1) as i64) as u64)
}

/// The type of a column's values once they can be grouped by.
fn alike_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Int64,
        DataType::Dictionary(_, values) => alike_type(values),
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        plain if !plain.is_nested() && !matches!(plain, DataType::RunEndEncoded(..)) => plain.clone(),
        _ => DataType::BinaryView,
    }
}

/// The values of a column as some that DataFusion groups by exactly.
fn alike_array(array: &ArrayRef, floats: Floats) -> DataFusionResult<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let wide = cast(array, &DataType::Float64)?;
            let one = |value: f64| match floats {
                Floats::Read if value.is_nan() => f64::NAN,
                _ => value,
            };
            Arc::new(wide.as_primitive::<Float64Type>().unary::<_, Int64Type>(|value| order_float(one(value))))
        }
        DataType::Dictionary(_, values) => alike_array(&cast(array, values)?, floats)?,
        DataType::Utf8 | DataType::LargeUtf8 => cast(array, &DataType::Utf8View)?,
        DataType::Binary | DataType::LargeBinary => cast(array, &DataType::BinaryView)?,
        plain if alike_type(plain) == *plain => Arc::clone(array),
        _ => {
            // The rows distinguish null from empty, and a null struct from one of nulls.
            let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
            let rows = converter.convert_columns(std::slice::from_ref(array))?;
            Arc::new(BinaryViewArray::from_iter_values(rows.iter()))
        }
    })
}

/// Expressions by which rows with the same values in some columns, and no others, fall into one group. Structs of plain
/// fields are taken apart, because DataFusion groups plain columns several times as fast.
pub(crate) fn alike_keys(rows: &DataFrame, columns: &[String], floats: Floats) -> Result<Vec<Expr>> {
    let mut keys = Vec::new();
    for name in columns {
        let field = rows.schema().field_with_unqualified_name(name)?;
        match field.data_type() {
            DataType::Struct(fields) if fields.iter().all(|field| !field.data_type().is_nested()) => {
                if field.is_nullable() || floats == Floats::Bits {
                    keys.push(ident(name).is_null());
                }
                let part = |field: &Arc<_>| {
                    let field: &datafusion::arrow::datatypes::Field = field;
                    one_alike(get_field(ident(name), field.name().as_str()), field.data_type(), floats)
                };
                keys.extend(fields.iter().map(part));
            }
            plain => keys.push(one_alike(ident(name), plain, floats)),
        }
    }
    Ok(keys.into_iter().enumerate().map(|(at, key)| key.alias(key_name(at))).collect())
}

/// The name of a key of [`alike_keys`].
pub(crate) fn key_name(at: usize) -> String {
    format!("key_{at}")
}

fn one_alike(value: Expr, data_type: &DataType, floats: Floats) -> Expr {
    if alike_type(data_type) == *data_type {
        return value;
    }
    ScalarUDF::from(Alike::new(floats)).call(vec![value])
}

/// The name of the function that makes values comparable.
pub(crate) const ALIKE: &str = "alike";

/// Values as some that DataFusion groups by exactly.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    signature: Signature,
    pub(crate) floats: Floats,
}

impl Alike {
    pub(crate) fn new(floats: Floats) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), floats }
    }
}

impl ScalarUDFImpl for Alike {
    fn name(&self) -> &str {
        ALIKE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DataFusionResult<DataType> {
        Ok(alike_type(&arguments[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(alike_array(&values, self.floats)?))
    }
}

/// One key for the values of some columns together, by their bits.
pub(crate) fn content_key(columns: &[String]) -> Expr {
    let columns = if columns.is_empty() { vec![lit(0)] } else { columns.iter().map(ident).collect() };
    ScalarUDF::from(Content::default()).call(columns)
}

/// The name of the function that makes keys of rows.
pub(crate) const CONTENT: &str = "content";

/// The key of every row by its values in some columns together, bit by bit. Without columns, all rows are alike.
pub(crate) fn content_keys(columns: &[ArrayRef], rows: usize) -> DataFusionResult<Vec<i128>> {
    if columns.is_empty() {
        return Ok(vec![byte_key(&[]); rows]);
    }
    let columns =
        columns.iter().map(|column| alike_array(column, Floats::Bits)).collect::<DataFusionResult<Vec<ArrayRef>>>()?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    Ok(rows.iter().map(|row| byte_key(row.as_ref())).collect())
}

/// One key for several values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    signature: Signature,
}

impl Default for Content {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Content {
    fn name(&self) -> &str {
        CONTENT
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(KEY)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let columns = columns_of(&args)?;
        let keys = content_keys(&columns, args.number_rows)?;
        Ok(ColumnarValue::Array(Arc::new(Decimal128Array::from(keys).with_data_type(KEY))))
    }
}

/// How the values of a sensitive column become keys.
#[derive(Debug, Clone)]
pub(crate) enum Keys {
    /// Numbers and points in time: the value itself, in its own unit.
    Line,
    /// Decimals of more than 38 digits: their rank.
    Ranks(Arc<Ranks>),
    /// Values of a hierarchy: the number of the leaf; then values it does not know, then null.
    Leaves(Arc<Leaves>),
    /// All others: up to 15 bytes as they are, longer ones by 120 bits of their BLAKE3.
    Bytes,
}

impl Keys {
    /// The keys of a sensitive column. `ranks` are those of its published values, where it needs them ([`is_wide`]).
    pub(crate) fn of_column(column: &SensitiveColumn, ranks: Option<&Arc<Ranks>>) -> Self {
        match (column.hierarchy.as_deref(), ranks) {
            (Some(Hierarchy::Levels(levels)), _) => Self::Leaves(Arc::new(Leaves::of_levels(levels))),
            (_, Some(ranks)) => Self::Ranks(Arc::clone(ranks)),
            _ if is_line(&column.data_type) => Self::Line,
            _ => Self::Bytes,
        }
    }

    /// Keys that identify values, and no more.
    pub(crate) fn of_type(data_type: &DataType) -> Self {
        if is_line(data_type) && !is_wide(data_type) { Self::Line } else { Self::Bytes }
    }

    /// The keys of some values.
    pub(crate) fn read_keys(&self, array: &ArrayRef) -> DataFusionResult<Vec<i128>> {
        if let DataType::Dictionary(_, values) = array.data_type() {
            return self.read_keys(&cast(array, values)?);
        }
        let mut keys = match self {
            Self::Line => ordinal_keys(array)?,
            Self::Ranks(ranks) => ranks.read_ranks(array)?,
            Self::Leaves(leaves) => return leaves.read_leaves(array),
            Self::Bytes => byte_keys(array)?,
        };
        if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            keys.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, key)| *key = NULL);
        }
        Ok(keys)
    }

    /// An expression for the keys of a column.
    pub(crate) fn key_expr(&self, column: &str) -> Expr {
        ScalarUDF::from(Key::new(self.clone(), column)).call(vec![ident(column)])
    }
}

/// Whether values of a type have an order and a distance.
pub(crate) fn is_line(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_line(values),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => {
            true
        }
        other => other.is_numeric(),
    }
}

/// Whether values of a type may have more digits than a key.
pub(crate) fn is_wide(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_wide(values),
        DataType::Decimal256(digits, _) => *digits > DECIMAL128_MAX_PRECISION,
        _ => false,
    }
}

/// A wide decimal as a floating-point number: the one that its digits mean.
pub(crate) fn wide_number(digits: i256) -> f64 {
    digits.to_string().parse().unwrap_or(f64::NAN)
}

/// The digits of wide decimals; `None` for null.
pub(crate) fn wide_digits(array: &ArrayRef) -> DataFusionResult<Vec<Option<i256>>> {
    if let DataType::Dictionary(_, values) = array.data_type() {
        return wide_digits(&cast(array, values)?);
    }
    let decimals = array.as_primitive_opt::<Decimal256Type>();
    let decimals = decimals.ok_or_else(|| DataFusionError::Internal("a column of decimals holds others".into()))?;
    Ok(decimals.iter().collect())
}

/// All published values of a column of wide decimals, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranks {
    values: Vec<i256>,
}

impl Ranks {
    /// The ranks of some values, each of which may be given several times.
    pub(crate) fn new(mut values: Vec<i256>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self { values }
    }

    /// The values by rank.
    pub(crate) fn values(&self) -> &[i256] {
        &self.values
    }

    /// The digits of a rank.
    pub(crate) fn rank_digits(&self, rank: i128) -> Option<i256> {
        self.values.get(usize::try_from(rank).ok()?).copied()
    }

    fn read_ranks(&self, array: &ArrayRef) -> DataFusionResult<Vec<i128>> {
        let unknown = |_| DataFusionError::Internal("a value has no rank among the published ones".into());
        let rank = |digits: Option<i256>| match digits {
            Some(digits) => self.values.binary_search(&digits).map(|rank| rank as i128).map_err(unknown),
            None => Ok(NULL),
        };
        wide_digits(array)?.into_iter().map(rank).collect()
    }
}

fn ordinal_keys(array: &ArrayRef) -> DataFusionResult<Vec<i128>> {
    let too_long = || DataFusionError::Internal("a decimal of more than 38 digits is not a key".into());
    Ok(match array.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let wide = alike_array(array, Floats::Read)?;
            wide.as_primitive::<Int64Type>().values().iter().map(|&bits| i128::from(bits)).collect()
        }
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
            let plain = datafusion::arrow::array::make_array(
                array.to_data().into_builder().data_type(DataType::Int32).build()?,
            );
            plain.as_primitive::<Int32Type>().values().iter().map(|&value| i128::from(value)).collect()
        }
        DataType::Decimal32(..) => {
            array.as_primitive::<Decimal32Type>().values().iter().map(|&value| i128::from(value)).collect()
        }
        DataType::Decimal64(..) => {
            array.as_primitive::<Decimal64Type>().values().iter().map(|&value| i128::from(value)).collect()
        }
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().values().to_vec(),
        DataType::Decimal256(..) => {
            let decimals = array.as_primitive::<Decimal256Type>();
            let key = |row: usize| match decimals.is_null(row) {
                true => Ok(NULL),
                false => decimals.value(row).to_i128().ok_or_else(too_long),
            };
            (0..decimals.len()).map(key).collect::<DataFusionResult<_>>()?
        }
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().values().iter().map(|&value| i128::from(value)).collect()
        }
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            let wide = cast(array, &DataType::Int64)?;
            wide.as_primitive::<Int64Type>().values().iter().map(|&value| i128::from(value)).collect()
        }
        // Whole numbers of 64 bits, whatever they count.
        _ => {
            let plain = array.to_data().into_builder().data_type(DataType::Int64).build()?;
            Int64Array::from(plain).values().iter().map(|&value| i128::from(value)).collect()
        }
    })
}

/// The values that a hierarchy knows, by number.
#[derive(Debug, Clone)]
pub(crate) struct Leaves {
    labels: Vec<String>,
    numbers: HashMap<String, i128>,
}

impl Leaves {
    fn of_levels(levels: &LevelTree) -> Self {
        Self::new(levels.leaves().map(str::to_owned).collect())
    }

    /// Leaves in the order of their numbers.
    pub(crate) fn new(labels: Vec<String>) -> Self {
        let numbers = labels.iter().enumerate().map(|(number, label)| (label.clone(), number as i128)).collect();
        Self { labels, numbers }
    }

    /// The leaves in the order of their numbers.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    fn read_leaves(&self, array: &ArrayRef) -> DataFusionResult<Vec<i128>> {
        let text = cast(array, &DataType::Utf8View)?;
        let unknown = self.labels.len() as i128;
        let key = |value: Option<&str>| match value {
            Some(value) => self.numbers.get(value).copied().unwrap_or(unknown),
            None => unknown + 1,
        };
        Ok(text.as_string_view().iter().map(key).collect())
    }
}

/// The key of some bytes.
pub(crate) fn byte_key(bytes: &[u8]) -> i128 {
    let mut key = [0; 16];
    if bytes.len() < 16 {
        key[0] = bytes.len() as u8;
        key[1..=bytes.len()].copy_from_slice(bytes);
    } else {
        key[0] = 16;
        key[1..].copy_from_slice(&blake3::hash(bytes).as_bytes()[..15]);
    }
    i128::from_be_bytes(key)
}

fn byte_keys(array: &ArrayRef) -> DataFusionResult<Vec<i128>> {
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().values().iter().map(i128::from).collect(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = cast(array, &DataType::Utf8View)?;
            let text: &StringViewArray = text.as_string_view();
            (0..text.len())
                .map(|row| if text.is_null(row) { NULL } else { byte_key(text.value(row).as_bytes()) })
                .collect()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let all = cast(array, &DataType::BinaryView)?;
            let all = all.as_binary_view();
            (0..all.len()).map(|row| if all.is_null(row) { NULL } else { byte_key(all.value(row)) }).collect()
        }
        _ => {
            let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
            let rows = converter.convert_columns(std::slice::from_ref(array))?;
            rows.iter().map(|row| byte_key(row.as_ref())).collect()
        }
    })
}

/// The name of the function that makes keys of a sensitive column.
pub(crate) const EXACT_KEY: &str = "exact_key";

/// The keys of a sensitive column.
#[derive(Debug)]
pub(crate) struct Key {
    signature: Signature,
    pub(crate) keys: Keys,
    /// The column: its policy decides the keys.
    pub(crate) column: String,
}

impl Key {
    pub(crate) fn new(keys: Keys, column: impl Into<String>) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), keys, column: column.into() }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
    }
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        EXACT_KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(KEY)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let keys = Decimal128Array::from(self.keys.read_keys(&values)?).with_data_type(KEY);
        Ok(ColumnarValue::Array(Arc::new(keys)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{DictionaryArray, Float64Array, ListArray};

    use super::*;

    #[test]
    fn floats_keep_their_order_and_nan_is_one_value() {
        let numbers = [f64::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-300, 7.0, f64::INFINITY, f64::NAN];
        assert!(numbers.windows(2).all(|pair| order_float(pair[0]) < order_float(pair[1])));
        assert!(numbers.iter().all(|value| float_of(order_float(*value)).to_bits() == value.to_bits()));
        let odd = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 5);
        let array: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, odd, -odd]));
        let read = |floats| alike_array(&array, floats).unwrap().as_primitive::<Int64Type>().values().to_vec();
        assert!(read(Floats::Read).windows(2).all(|pair| pair[0] == pair[1]));
        assert!(read(Floats::Bits)[0] != read(Floats::Bits)[1]);
    }

    #[test]
    fn whole_numbers_and_decimals_stay_apart_beyond_what_a_float_holds() {
        let near = 123_456_789_012_345_678_i64;
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(near), Some(near + 1), None]));
        assert_eq!(Keys::Line.read_keys(&array).unwrap(), [i128::from(near), i128::from(near) + 1, NULL]);
        let decimals = Decimal128Array::from(vec![i128::MAX / 4, i128::MAX / 4 + 1]).with_data_type(KEY);
        let array: ArrayRef = Arc::new(decimals);
        assert_eq!(Keys::Line.read_keys(&array).unwrap(), [i128::MAX / 4, i128::MAX / 4 + 1]);
    }

    #[test]
    fn decimals_of_any_length_keep_their_order() {
        let huge = i256::from_string("123456789012345678901234567890123456789012345678901234567890").unwrap();
        let values = vec![Some(huge), None, Some(huge.wrapping_add(i256::ONE)), Some(i256::MINUS_ONE), Some(huge)];
        let array =
            datafusion::arrow::array::Decimal256Array::from(values.clone()).with_precision_and_scale(70, 2).unwrap();
        assert!(is_wide(array.data_type()) && !is_wide(&DataType::Decimal256(38, 0)));
        let ranks = Arc::new(Ranks::new(values.into_iter().flatten().collect()));
        let keys = Keys::Ranks(Arc::clone(&ranks)).read_keys(&(Arc::new(array) as ArrayRef)).unwrap();
        assert_eq!(keys, [1, NULL, 2, 0, 1]);
        assert_eq!((ranks.rank_digits(1), ranks.rank_digits(3), ranks.rank_digits(NULL)), (Some(huge), None, None));
        assert_eq!([wide_number(huge), wide_number(i256::MINUS_ONE)], [1.234_567_890_123_456_8e59, -1.0]);
    }

    #[test]
    fn text_is_told_apart_by_its_bytes() {
        let long = "a value of more than fifteen bytes";
        let texts = vec![Some(""), None, Some("a"), Some("a\0"), Some(long), Some(&long[1..])];
        let plain: ArrayRef = Arc::new(StringViewArray::from(texts.clone()));
        let keys = Keys::Bytes.read_keys(&plain).unwrap();
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((distinct.len(), keys[1]), (6, NULL));
        let coded: DictionaryArray<Int32Type> = texts.into_iter().collect();
        assert_eq!(Keys::Bytes.read_keys(&(Arc::new(coded) as ArrayRef)).unwrap(), keys);
    }

    #[test]
    fn an_empty_list_is_no_null() {
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![]),
            None,
            Some(vec![None]),
            Some(vec![Some(0)]),
        ]));
        let rows = alike_array(&lists, Floats::Bits).unwrap();
        let rows = rows.as_binary_view();
        assert!((0..4).all(|a| (0..a).all(|b| rows.value(a) != rows.value(b))));
    }
}
