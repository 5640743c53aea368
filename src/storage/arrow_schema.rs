//! Whether the Arrow schema in a Parquet footer can be decoded.
//!
//! Writers keep the Arrow types of columns beside those of Parquet. The decoder takes for granted that a schema which is a
//! valid message describes types that exist, and panics where it does not. So it is looked through here first.

use datafusion::arrow::ipc::{DateUnit, Endianness, Field, IntervalUnit, Precision, TimeUnit, Type, root_as_message};

use crate::error::{Error, Result};

/// Rejects a schema that cannot be decoded, and names the first column at fault if it is known.
pub(super) fn ensure_arrow_schema(encoded: &str) -> Result<()> {
    let damaged = |place: &str| Error::input(format!("its footer is damaged: {place} cannot be decoded"));
    let bytes = decode_base64(encoded).ok_or_else(|| damaged("the Arrow schema"))?;
    // A mark and a length may stand before the message.
    let message = match bytes.get(..4) {
        Some([255, 255, 255, 255]) if bytes.len() > 8 => &bytes[8..],
        _ => bytes.as_slice(),
    };
    let message = root_as_message(message).map_err(|_| damaged("the Arrow schema"))?;
    let schema = message.header_as_schema().ok_or_else(|| damaged("the Arrow schema"))?;
    let fields = schema.fields().ok_or_else(|| damaged("the Arrow schema"))?;
    let is_foreign = |field: &Field<'_>| {
        schema.endianness() == Endianness::Big && field.type_type() == Type::Decimal || !is_decodable(*field)
    };
    match fields.iter().find(is_foreign) {
        None => Ok(()),
        Some(field) => Err(damaged(&format!("the Arrow type of column `{}`", field.name().unwrap_or_default()))),
    }
}

/// Whether the type of a field and of everything inside it exists. Unions do not: Parquet has none.
fn is_decodable(field: Field<'_>) -> bool {
    let is_whole = |bits: i32| matches!(bits, 8 | 16 | 32 | 64);
    let is_unit = |unit: TimeUnit| {
        matches!(unit, TimeUnit::SECOND | TimeUnit::MILLISECOND | TimeUnit::MICROSECOND | TimeUnit::NANOSECOND)
    };
    let children = field.children().map_or(0, |children| children.len());
    let own = match field.type_type() {
        Type::Null | Type::Bool | Type::Struct_ => true,
        Type::Binary | Type::LargeBinary | Type::BinaryView | Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => true,
        Type::Int => field.type_as_int().is_some_and(|int| is_whole(int.bitWidth())),
        Type::FixedSizeBinary => field.type_as_fixed_size_binary().is_some_and(|bytes| bytes.byteWidth() >= 0),
        Type::FloatingPoint => field
            .type_as_floating_point()
            .is_some_and(|float| matches!(float.precision(), Precision::HALF | Precision::SINGLE | Precision::DOUBLE)),
        Type::Date => {
            field.type_as_date().is_some_and(|date| matches!(date.unit(), DateUnit::DAY | DateUnit::MILLISECOND))
        }
        Type::Time => field.type_as_time().is_some_and(|time| match time.bitWidth() {
            32 => matches!(time.unit(), TimeUnit::SECOND | TimeUnit::MILLISECOND),
            64 => matches!(time.unit(), TimeUnit::MICROSECOND | TimeUnit::NANOSECOND),
            _ => false,
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|timestamp| is_unit(timestamp.unit())),
        Type::Duration => field.type_as_duration().is_some_and(|duration| is_unit(duration.unit())),
        Type::Interval => field.type_as_interval().is_some_and(|interval| {
            let unit = interval.unit();
            matches!(unit, IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO)
        }),
        Type::Decimal => field.type_as_decimal().is_some_and(|decimal| {
            let digits = match decimal.bitWidth() {
                32 => 9,
                64 => 18,
                128 => 38,
                256 => 76,
                _ => 0,
            };
            let (precision, scale) = (decimal.precision(), decimal.scale());
            (1..=digits).contains(&precision) && (-128..=precision).contains(&scale)
        }),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => children == 1,
        Type::FixedSizeList => {
            children == 1 && field.type_as_fixed_size_list().is_some_and(|list| list.listSize() >= 0)
        }
        Type::Map => children == 1 && field.type_as_map().is_some(),
        Type::RunEndEncoded => children == 2,
        _ => false,
    };
    let of_index = |int: Option<datafusion::arrow::ipc::Int<'_>>| int.is_some_and(|int| is_whole(int.bitWidth()));
    own && field.dictionary().is_none_or(|dictionary| of_index(dictionary.indexType()))
        && field.children().is_none_or(|children| children.iter().all(is_decodable))
}

/// Decodes padded base64 of the usual alphabet.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in digits.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for &digit in four {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - four.len());
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field as ArrowField, Fields, IntervalUnit, Schema, TimeUnit};
    use datafusion::parquet::arrow::encode_arrow_schema;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn every_type_that_files_hold_can_be_decoded() {
        let field = |data_type: &DataType| Arc::new(ArrowField::new("x", data_type.clone(), true));
        let pair = Fields::from(vec![
            field(&DataType::Int32).as_ref().clone().with_name("k"),
            field(&DataType::Utf8).as_ref().clone(),
        ]);
        let types = [
            DataType::Null,
            DataType::Boolean,
            DataType::Int8,
            DataType::UInt64,
            DataType::Float16,
            DataType::Float64,
            DataType::Utf8View,
            DataType::LargeBinary,
            DataType::FixedSizeBinary(16),
            DataType::Date32,
            DataType::Date64,
            DataType::Time32(TimeUnit::Second),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Duration(TimeUnit::Second),
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Decimal32(9, 2),
            DataType::Decimal64(18, -3),
            DataType::Decimal128(38, 38),
            DataType::Decimal256(76, 0),
            DataType::Struct(pair.clone()),
            DataType::List(field(&DataType::Int32)),
            DataType::FixedSizeList(field(&DataType::Int32), 3),
            DataType::Map(Arc::new(ArrowField::new("entries", DataType::Struct(pair), false)), false),
            DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)),
            DataType::RunEndEncoded(field(&DataType::Int32), field(&DataType::Utf8)),
        ];
        for data_type in types {
            let schema = Schema::new(vec![ArrowField::new("x", data_type.clone(), true)]);
            assert!(ensure_arrow_schema(&encode_arrow_schema(&schema)).is_ok(), "{data_type}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for text in ["", "a", "====", "not base64!", "AAAAAAAA"] {
            assert!(ensure_arrow_schema(text).is_err_and(|error| error.kind() == ErrorKind::Input), "{text}");
        }
    }

    /// Whatever a byte is changed to, the decoder is spared what it would panic at.
    #[test]
    fn any_changed_byte_is_refused_or_decoded() {
        let fields = vec![
            ArrowField::new("a", DataType::Decimal128(20, 3), true),
            ArrowField::new("b", DataType::Timestamp(TimeUnit::Second, None), true),
            ArrowField::new("c", DataType::List(Arc::new(ArrowField::new("item", DataType::Int16, true))), true),
            ArrowField::new("d", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
        ];
        let good = decode_base64(&encode_arrow_schema(&Schema::new(fields))).unwrap();
        let mut refused = 0;
        for at in 8..good.len() {
            for value in [0, 1, 2, 7, 21, 63, 255] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let text = encode_base64(&bytes);
                assert_eq!(decode_base64(&text).as_ref(), Some(&bytes));
                match ensure_arrow_schema(&text) {
                    Ok(()) => {
                        let message = root_as_message(&bytes[8..]).unwrap();
                        datafusion::arrow::ipc::convert::fb_to_schema(message.header_as_schema().unwrap());
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }

    fn encode_base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let bits =
                three.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
            let digit = |at: usize| DIGITS[(bits >> (18 - 6 * at) & 63) as usize] as char;
            text.extend((0..4).map(|at| if at <= three.len() { digit(at) } else { '=' }));
        }
        text
    }
}
