//! Numbers and points in time as positions on one real line.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit};
use datafusion::error::Result;

/// The position of every value: numbers as they are, points in time in days. Null (and not-a-number) is NaN.
pub(crate) fn to_ordinals(array: &ArrayRef) -> Result<Vec<f64>> {
    const DAY: f64 = 86_400.0;
    if matches!(array.data_type(), DataType::Int32 | DataType::Date32) {
        let data = array.to_data();
        let numbers = &data.buffer::<i32>(0)[..array.len()];
        return Ok(without_nulls(numbers.iter().map(|number| f64::from(*number)).collect(), array.nulls()));
    }
    let (as_number, scale) = match array.data_type() {
        DataType::Date64 => (cast(&cast(array, &DataType::Int64)?, &DataType::Float64)?, DAY * 1e3),
        DataType::Timestamp(unit, _) => {
            (cast(&cast(array, &DataType::Int64)?, &DataType::Float64)?, DAY * per_second(unit))
        }
        DataType::Time32(unit) => (cast(&cast(array, &DataType::Int32)?, &DataType::Float64)?, DAY * per_second(unit)),
        DataType::Time64(unit) => (cast(&cast(array, &DataType::Int64)?, &DataType::Float64)?, DAY * per_second(unit)),
        _ => (cast(array, &DataType::Float64)?, 1.0),
    };
    let numbers = as_number.as_primitive::<Float64Type>();
    // Adding zero makes one zero of two: -0.0 and 0.0 are the same value.
    let mut positions: Vec<f64> = numbers.values().iter().map(|position| position + 0.0).collect();
    if scale != 1.0 {
        positions.iter_mut().for_each(|position| *position /= scale);
    }
    Ok(without_nulls(positions, numbers.nulls()))
}

/// Nulls have no position.
fn without_nulls(mut positions: Vec<f64>, nulls: Option<&NullBuffer>) -> Vec<f64> {
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        (!nulls.inner()).set_indices().for_each(|row| positions[row] = f64::NAN);
    }
    positions
}

/// Whether every position of the type is a whole number.
pub(crate) fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Date32
}

fn per_second(unit: &TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Date32Array, Decimal128Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn decimals_dates_and_timestamps_have_positions() -> Result<()> {
        let decimal: ArrayRef =
            Arc::new(Decimal128Array::from(vec![Some(1250), None]).with_precision_and_scale(10, 2)?);
        let found = to_ordinals(&decimal)?;
        assert_eq!(found[0], 12.5);
        assert!(found[1].is_nan());
        let date: ArrayRef = Arc::new(Date32Array::from(vec![Some(7), Some(-1), None, Some(365)]));
        let found = to_ordinals(&date.slice(1, 3))?;
        assert_eq!((found[0], found[2]), (-1.0, 365.0));
        assert!(found[1].is_nan());
        let noon: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![43_200_000_000]));
        assert_eq!(to_ordinals(&noon)?, [0.5]);
        Ok(())
    }
}
