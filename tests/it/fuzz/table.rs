//! Random columns of every Arrow type that Parquet holds, with the values that go wrong.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeStringArray, ListArray, MapBuilder, NullArray, StringArray, StringBuilder, StringViewArray,
    StructArray, Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt32Builder, UInt64Array,
};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, i256};
use fastrand::Rng;

use crate::adversary::values::{self, Value};

/// Types of values that a method can put on a line or into sets.
pub const QUASI: [&str; 22] = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal",
    "date32",
    "date64",
    "seconds",
    "millis",
    "micros",
    "nanos",
    "zoned",
    "bool",
    "text",
    "view",
    "dictionary",
];

/// Types that are only published as they are.
pub const KEPT: [&str; 16] = [
    "binary",
    "large-binary",
    "binary-view",
    "fixed-binary",
    "list",
    "list-of-text",
    "large-list",
    "fixed-list",
    "struct",
    "map",
    "list-of-structs",
    "time32",
    "time64",
    "float16",
    "null",
    "wide-decimal",
];

/// Text that looks like something else.
const ODD_TEXTS: [&str; 10] = ["", "*", " ", "{a}", "[1, 2]", "a, b", "ü", "∅", "null", "__HIVE_DEFAULT_PARTITION__"];

const WORDS: [&str; 9] = ["ash", "beech", "cedar", "elm", "fir", "hazel", "larch", "oak", "yew"];

/// Whole numbers: few small ones, those around the limits of f64, or any.
fn whole(rng: &mut Rng, style: u8, least: i128, most: i128) -> i128 {
    const EDGE: i128 = 1 << 53;
    let value = match style {
        0 => rng.i128(0..12),
        1 => {
            *rng.choice(&[EDGE - 1, EDGE, EDGE + 1, EDGE + 2, -EDGE - 1, least, least + 1, most, most - 1, 0]).unwrap()
        }
        2 => 123_456_789_012_345_670 + rng.i128(0..6),
        _ => rng.i128(least..=most),
    };
    value.clamp(least, most)
}

fn float(rng: &mut Rng, style: u8) -> f64 {
    match style {
        0 => f64::from(rng.i32(0..12)),
        1 => *rng
            .choice(&[
                0.0,
                -0.0,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                1.5,
                9_007_199_254_740_992.0,
                1e300,
                1e-300,
            ])
            .unwrap(),
        2 => *rng.choice(&[f64::NAN, 1.0, 2.0, -0.0, 0.0]).unwrap(),
        _ => rng.f64() * 1000.0,
    }
}

fn text(rng: &mut Rng, style: u8) -> String {
    match style {
        0 | 2 => WORDS[rng.usize(0..WORDS.len())].to_owned(),
        1 => ODD_TEXTS[rng.usize(0..ODD_TEXTS.len())].to_owned(),
        _ => format!("{:05}", rng.u32(0..100_000)),
    }
}

/// A few values of a type, without nulls.
fn pool(rng: &mut Rng, kind: &str, size: usize, style: u8) -> ArrayRef {
    macro_rules! whole {
        ($array:ty, $native:ty) => {{
            let values = (0..size).map(|_| whole(rng, style, <$native>::MIN.into(), <$native>::MAX.into()) as $native);
            Arc::new(<$array>::from_iter_values(values.collect::<Vec<_>>())) as ArrayRef
        }};
    }
    // Points in time within a few thousand years, so that they can be printed.
    let mut time = |scale: i64| -> Vec<i64> {
        let day = |rng: &mut Rng| if style == 0 { rng.i64(0..12) } else { rng.i64(-40_000..40_000) };
        (0..size).map(|_| day(rng) * 86_400 * scale + if style > 1 { rng.i64(0..86_400 * scale) } else { 0 }).collect()
    };
    match kind {
        "int8" => whole!(Int8Array, i8),
        "int16" => whole!(Int16Array, i16),
        "int32" => whole!(Int32Array, i32),
        "int64" => whole!(Int64Array, i64),
        "uint8" => whole!(UInt8Array, u8),
        "uint16" => whole!(UInt16Array, u16),
        "uint32" => whole!(UInt32Array, u32),
        "uint64" => whole!(UInt64Array, u64),
        "float16" => cast(&pool(rng, "float32", size, style), &DataType::Float16).unwrap(),
        "float32" => Arc::new(Float32Array::from_iter_values((0..size).map(|_| float(rng, style) as f32))),
        "float64" => Arc::new(Float64Array::from_iter_values((0..size).map(|_| float(rng, style)))),
        "decimal" => {
            let most = if style == 0 { 12 } else { 10_i128.pow(37) };
            let values: Vec<i128> = (0..size).map(|_| whole(rng, style, -most, most)).collect();
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap())
        }
        "wide-decimal" => {
            let values: Vec<i256> =
                (0..size).map(|_| i256::from_i128(rng.i128(..)) * i256::from_i128(1 << 40)).collect();
            Arc::new(Decimal256Array::from(values).with_precision_and_scale(76, 5).unwrap())
        }
        "date32" => Arc::new(Date32Array::from_iter_values(time(1).into_iter().map(|at| (at / 86_400) as i32))),
        "date64" => Arc::new(Date64Array::from_iter_values(time(1).into_iter().map(|at| at / 86_400 * 86_400_000))),
        "seconds" => Arc::new(TimestampSecondArray::from(time(1))),
        "millis" => Arc::new(TimestampMillisecondArray::from(time(1_000))),
        "micros" => Arc::new(TimestampMicrosecondArray::from(time(1_000_000))),
        "nanos" => Arc::new(TimestampNanosecondArray::from(time(1_000_000_000))),
        "zoned" => Arc::new(TimestampMicrosecondArray::from(time(1_000_000)).with_timezone("UTC")),
        "time32" => Arc::new(Time32MillisecondArray::from_iter_values((0..size).map(|_| rng.i32(0..86_400_000)))),
        "time64" => Arc::new(Time64MicrosecondArray::from_iter_values((0..size).map(|_| rng.i64(0..86_400_000_000)))),
        "bool" => Arc::new(BooleanArray::from((0..size).map(|_| rng.bool()).collect::<Vec<_>>())),
        "text" => Arc::new(StringArray::from_iter_values((0..size).map(|_| text(rng, style)))),
        "large-text" => Arc::new(LargeStringArray::from_iter_values((0..size).map(|_| text(rng, style)))),
        "view" => Arc::new(StringViewArray::from_iter_values((0..size).map(|_| text(rng, style)))),
        "dictionary" => {
            let plain = pool(rng, "text", size, style);
            cast(&plain, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))).unwrap()
        }
        "binary" => Arc::new(BinaryArray::from_iter_values((0..size).map(|_| text(rng, style).into_bytes()))),
        "large-binary" => {
            Arc::new(LargeBinaryArray::from_iter_values((0..size).map(|_| text(rng, style).into_bytes())))
        }
        "binary-view" => Arc::new(BinaryViewArray::from_iter_values((0..size).map(|_| vec![0xFF, rng.u8(..)]))),
        "fixed-binary" => {
            Arc::new(FixedSizeBinaryArray::try_from_iter((0..size).map(|_| [rng.u8(..), 0, rng.u8(..)])).unwrap())
        }
        "list" | "large-list" | "fixed-list" => {
            let fixed = kind == "fixed-list";
            let mut one = || {
                let length = if fixed { 2 } else { rng.usize(0..3) };
                if !fixed && rng.u8(0..5) == 0 {
                    None
                } else {
                    Some((0..length).map(|_| (rng.u8(0..4) > 0).then(|| rng.i32(0..5))).collect::<Vec<_>>())
                }
            };
            let lists: Vec<_> = (0..size).map(|_| one()).collect();
            let list = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
            let item = Arc::new(Field::new_list_field(DataType::Int32, true));
            match kind {
                "large-list" => cast(&list, &DataType::LargeList(item)).unwrap(),
                "fixed-list" => cast(&list, &DataType::FixedSizeList(item, 2)).unwrap(),
                _ => Arc::new(list),
            }
        }
        "list-of-text" | "list-of-structs" => {
            let lengths: Vec<usize> = (0..size).map(|_| rng.usize(0..3)).collect();
            let kind = if kind == "list-of-text" { "text" } else { "struct" };
            let items = pool(rng, kind, lengths.iter().sum::<usize>(), style);
            let offsets = datafusion::arrow::buffer::OffsetBuffer::from_lengths(lengths);
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            Arc::new(ListArray::new(field, offsets, items, None))
        }
        "struct" => {
            let (a, b) = (pool(rng, "float64", size, style), pool(rng, "text", size, style));
            let a = with_nulls(rng, &a, 0.2);
            let fields = vec![Field::new("a", DataType::Float64, true), Field::new("b", DataType::Utf8, true)];
            Arc::new(StructArray::new(fields.into(), vec![a, b], None))
        }
        "map" => {
            let mut map = MapBuilder::new(None, StringBuilder::new(), datafusion::arrow::array::Int32Builder::new());
            for _ in 0..size {
                for entry in 0..rng.usize(0..3) {
                    map.keys().append_value(format!("key {entry}"));
                    map.values().append_option((rng.u8(0..4) > 0).then(|| rng.i32(0..9)));
                }
                map.append(true).unwrap();
            }
            Arc::new(map.finish())
        }
        "null" => Arc::new(NullArray::new(size)),
        other => panic!("no type {other}"),
    }
}

/// The same array with some values null.
fn with_nulls(rng: &mut Rng, array: &ArrayRef, share: f64) -> ArrayRef {
    let mut places = UInt32Builder::new();
    (0..array.len() as u32).for_each(|at| places.append_option((rng.f64() >= share).then_some(at)));
    take(array, &places.finish(), None).unwrap()
}

/// A column of a type: rows that repeat a few values, or many, some of them null.
pub fn column(rng: &mut Rng, kind: &str, rows: usize, style: u8, nulls: f64) -> ArrayRef {
    let most = if rng.bool() { 6 } else { 1000 };
    let size = 1 + rng.usize(0..rows.clamp(1, most));
    let pool = pool(rng, kind, size, style);
    let mut places = UInt32Builder::new();
    (0..rows).for_each(|_| places.append_option((rng.f64() >= nulls).then(|| rng.u32(0..size as u32))));
    take(&pool, &places.finish(), None).unwrap()
}

/// A column that depends on another one: rows with the same value there have the same value here.
pub fn dependent(rng: &mut Rng, kind: &str, style: u8, on: &ArrayRef) -> ArrayRef {
    let values = values::column(on.as_ref());
    let size = 1 + rng.usize(0..6);
    let pool = pool(rng, kind, size, style);
    let mut places: HashMap<Value, u32> = HashMap::new();
    let place = |value: Value| {
        // The two zeros are one number.
        let value = if value.as_f64() == Some(0.0) { Value::float(0.0) } else { value };
        *places.entry(value).or_insert_with(|| rng.u32(0..size as u32))
    };
    take(&pool, &UInt32Array::from_iter_values(values.into_iter().map(place)), None).unwrap()
}
