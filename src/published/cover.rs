//! Whether a published value covers an original one: read from the published value alone, as a reader would, and decided on
//! exact values.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, i256};

use super::exact::{Keys, NULL, is_wide, order_float, wide_digits};
use super::values::Unit;
use crate::binding::QuasiColumn;
use crate::error::{Error, Result};
use crate::hierarchy::{End, Hierarchy, IntervalLabel, Period, SetLabel, TOP};
use crate::policy::Publish;

/// The published values of one quasi-identifier.
#[derive(Debug)]
pub(crate) enum Published {
    /// What covers numbers and points in time, row by row.
    Line(Vec<Span>, Unit),
    /// Labels of text, and the hierarchy they come from.
    Text(StringViewArray, Option<Arc<Hierarchy>>),
    /// A representative value covers nothing but itself: there is nothing to check.
    Representative,
}

/// What a published value covers of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Span {
    /// Null alone.
    Missing,
    /// Everything, null with it.
    Anything,
    /// From the first key to the second, both included.
    Between(i128, i128),
    /// The same for decimals of more digits than a key.
    Wide(i256, i256),
    /// From a lower end, included, to an upper one, left out; without an end there is no bound.
    HalfOpen(Option<Bound>, Option<Bound>),
    /// Nothing that can be read.
    Nothing,
}

/// An end of an interval as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) number: f64,
    /// The number as whole ones and tenths to this power, when that fits.
    exact: Option<(i256, u32)>,
}

/// The original values of one quasi-identifier.
#[derive(Debug)]
pub(crate) enum Original {
    Line(Vec<i128>),
    /// Decimals of more digits than a key.
    Wide(Vec<Option<i256>>),
    Text(StringViewArray),
}

/// Units up to which floating point holds every whole number.
const EXACT_UNITS: f64 = 9_007_199_254_740_992.0;

/// The share of a number that rounding can take off or add.
const ROUNDED: f64 = 8.0 * f64::EPSILON;

/// A column as text.
fn to_text(column: &ArrayRef) -> Result<StringViewArray> {
    let plain = match column.data_type() {
        DataType::Utf8View => Arc::clone(column),
        DataType::Dictionary(_, values) => cast(&cast(column, values)?, &DataType::Utf8)?,
        _ => cast(column, &DataType::Utf8)?,
    };
    Ok(cast(&plain, &DataType::Utf8View)?.as_string_view().clone())
}

impl Published {
    /// Reads the published columns of a quasi-identifier.
    pub(crate) fn read_columns(quasi: &QuasiColumn, columns: &[ArrayRef]) -> Result<Self> {
        let unit = Unit::of_type(&quasi.data_type);
        match quasi.publish {
            Publish::Centroid => Ok(Self::Representative),
            Publish::Bounds => Ok(Self::Line(read_spans(&columns[0], &columns[1], |_| false)?, unit)),
            Publish::Range => {
                let both = columns[0].as_struct_opt().filter(|both| both.num_columns() == 2);
                let no_range = || Error::privacy(format!("column `{}` is not published as ranges", quasi.name));
                let both = both.ok_or_else(no_range)?;
                Ok(Self::Line(read_spans(both.column(0), both.column(1), |row| both.is_null(row))?, unit))
            }
            Publish::Label if quasi.is_ordinal() => {
                let labels = to_text(&columns[0])?;
                let label = |row: usize| labels.is_valid(row).then(|| labels.value(row));
                let plain = quasi.hierarchy.is_none() && quasi.quantiles.is_none();
                // A day is many moments; its label would also be read as the first of them.
                let calendar = matches!(quasi.hierarchy.as_deref(), Some(Hierarchy::Calendar(_)));
                let has_hours = calendar && *plain_type(&quasi.data_type) != DataType::Date32;
                let is_period = |label: &str| has_hours && Period::parse(label).is_some();
                let inside = |row| label(row).and_then(split_interval).filter(|_| plain);
                let end = |pick: fn((&'_ str, &'_ str)) -> String| -> Result<ArrayRef> {
                    // Anything but a value of the type is null after the cast: an interval or a unit of the calendar.
                    let ends = (0..labels.len()).map(|row| inside(row).map(pick).or(label(row).map(str::to_owned)));
                    let ends: ArrayRef = Arc::new(ends.collect::<StringArray>());
                    Ok(cast(&ends, plain_type(&quasi.data_type))?)
                };
                let (low, high) = (end(|ends| ends.0.to_owned())?, end(|ends| ends.1.to_owned())?);
                let values = read_spans(&low, &high, |_| false)?;
                let span = |row: usize| match label(row) {
                    None => Span::Missing,
                    Some(TOP) => Span::Anything,
                    Some(label) => match &values[row] {
                        value @ (Span::Between(..) | Span::Wide(..)) if !is_period(label) => value.clone(),
                        _ => parse_step(label, quasi.hierarchy.as_deref()),
                    },
                };
                Ok(Self::Line((0..labels.len()).map(span).collect(), unit))
            }
            Publish::Label => Ok(Self::Text(to_text(&columns[0])?, quasi.hierarchy.clone())),
        }
    }

    /// Whether the published value of a row covers the original value of another.
    pub(crate) fn covers(&self, row: usize, original: &Original, other: usize) -> bool {
        match (self, original) {
            (Self::Representative, _) => true,
            (Self::Line(spans, unit), Original::Line(keys)) => spans[row].holds_key(keys[other], unit),
            (Self::Line(spans, unit), Original::Wide(digits)) => spans[row].holds_wide(digits[other], unit),
            (Self::Text(labels, hierarchy), Original::Text(values)) => {
                let label = labels.is_valid(row).then(|| labels.value(row));
                let value = values.is_valid(other).then(|| values.value(other));
                label_holds(label, value, hierarchy.as_deref())
            }
            _ => false,
        }
    }

    /// An interval of places that holds the place of everything a published value covers.
    pub(crate) fn extent(&self, row: usize) -> (f64, f64) {
        const ALL: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
        match self {
            Self::Representative => ALL,
            Self::Line(spans, unit) => match &spans[row] {
                Span::Missing => (f64::NEG_INFINITY, f64::NEG_INFINITY),
                Span::Anything => ALL,
                Span::Between(low, high) => (line_place(*low, unit), line_place(*high, unit)),
                Span::Wide(low, high) => (unit.position_wide(*low), unit.position_wide(*high)),
                Span::HalfOpen(low, high) => {
                    // Ends are rounded once, and places of values up to three times.
                    let end = |bound: &Option<Bound>, open: f64| {
                        bound.as_ref().map_or(open, |bound| bound.widen_rounded(open.signum()))
                    };
                    (end(low, ALL.0), end(high, ALL.1))
                }
                Span::Nothing => (f64::INFINITY, f64::NEG_INFINITY),
            },
            Self::Text(labels, _) if labels.is_null(row) => (f64::NEG_INFINITY, f64::NEG_INFINITY),
            Self::Text(labels, hierarchy) => label_extent(labels.value(row), hierarchy.as_deref()).unwrap_or(ALL),
        }
    }
}

impl Original {
    /// Reads the original column of a quasi-identifier.
    pub(crate) fn read_column(quasi: &QuasiColumn, column: &ArrayRef) -> Result<Self> {
        if quasi.is_ordinal() && is_wide(&quasi.data_type) {
            return Ok(Self::Wide(wide_digits(column)?));
        }
        if quasi.is_ordinal() {
            return Ok(Self::Line(line_keys(column)?));
        }
        Ok(Self::Text(to_text(column)?))
    }

    /// Where a value lies.
    pub(crate) fn value_place(&self, row: usize, quasi: &QuasiColumn) -> f64 {
        match self {
            Self::Line(keys) => line_place(keys[row], &Unit::of_type(&quasi.data_type)),
            Self::Wide(digits) => {
                digits[row].map_or(f64::NEG_INFINITY, |digits| Unit::of_type(&quasi.data_type).position_wide(digits))
            }
            Self::Text(values) if values.is_null(row) => f64::NEG_INFINITY,
            Self::Text(values) => text_place(values.value(row), quasi.hierarchy.as_deref()),
        }
    }
}

/// What lies between the ends of every row; without ends that is everything, and nothing where one of them is missing.
fn read_spans(low: &ArrayRef, high: &ArrayRef, null: impl Fn(usize) -> bool) -> Result<Vec<Span>> {
    fn span_between<T>(ends: (Option<T>, Option<T>), between: impl Fn(T, T) -> Span) -> Span {
        match ends {
            (None, None) => Span::Anything,
            (Some(low), Some(high)) => between(low, high),
            _ => Span::Nothing,
        }
    }
    let mut spans: Vec<Span> = match is_wide(low.data_type()) {
        true => {
            let ends = wide_digits(low)?.into_iter().zip(wide_digits(high)?);
            ends.map(|ends| span_between(ends, Span::Wide)).collect()
        }
        false => {
            let known = |key: i128| (key != NULL).then_some(key);
            let ends = line_keys(low)?.into_iter().zip(line_keys(high)?);
            ends.map(|(low, high)| span_between((known(low), known(high)), Span::Between)).collect()
        }
    };
    spans.iter_mut().enumerate().filter(|(row, _)| null(*row)).for_each(|(_, span)| *span = Span::Missing);
    Ok(spans)
}

/// Where the values of a quasi-identifier lie on their line: both zeros in one place; NaN is missing.
fn line_keys(column: &ArrayRef) -> Result<Vec<i128>> {
    let mut keys = Keys::Line.read_keys(column)?;
    if plain_type(column.data_type()).is_floating() {
        let [nan, minus, zero] = [f64::NAN, -0.0, 0.0].map(|number| i128::from(order_float(number)));
        for key in &mut keys {
            *key = match *key {
                key if key == nan => NULL,
                key if key == minus => zero,
                key => key,
            };
        }
    }
    Ok(keys)
}

/// The type without a dictionary around it.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// The ends of `[30, 40]`.
fn split_interval(label: &str) -> Option<(&str, &str)> {
    match IntervalLabel::parse(label) {
        IntervalLabel::Closed(low, high) => Some((low, high)),
        _ => None,
    }
}

/// An interval of a ladder, or a unit of the calendar.
fn parse_step(label: &str, hierarchy: Option<&Hierarchy>) -> Span {
    if matches!(hierarchy, Some(Hierarchy::Calendar(_))) {
        let day = |day: i64| Some(Bound { number: day as f64, exact: Some((i256::from_i128(day.into()), 0)) });
        return Period::parse(label).map_or(Span::Nothing, |period| Span::HalfOpen(day(period.start), day(period.end)));
    }
    let span = match IntervalLabel::parse(label) {
        IntervalLabel::Below(upper) => Bound::parse_bound(upper).map(|upper| Span::HalfOpen(None, Some(upper))),
        IntervalLabel::AtLeast(lower) => Bound::parse_bound(lower).map(|lower| Span::HalfOpen(Some(lower), None)),
        IntervalLabel::HalfOpen(lower, upper) => {
            let ends = Bound::parse_bound(lower).zip(Bound::parse_bound(upper));
            ends.map(|(lower, upper)| Span::HalfOpen(Some(lower), Some(upper)))
        }
        _ => None,
    };
    span.unwrap_or(Span::Nothing)
}

impl Bound {
    fn parse_bound(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let exact = i256::from_string(&format!("{whole}{part}")).map(|digits| (digits, part.len() as u32));
        Some(Self { number, exact })
    }

    /// Whether a key of a line lies at the bound or behind it.
    fn at_or_below(&self, key: i128, unit: &Unit) -> bool {
        self.exactly_at_or_below(i256::from_i128(key), unit).unwrap_or_else(|| unit.position(key) >= self.number)
    }

    /// The same for a decimal of more digits than a key.
    fn at_or_below_wide(&self, value: i256, unit: &Unit) -> bool {
        self.exactly_at_or_below(value, unit).unwrap_or_else(|| unit.position_wide(value) >= self.number)
    }

    /// Compares whole numbers; `None` for floating-point numbers, and if 256 bits are too few.
    fn exactly_at_or_below(&self, value: i256, unit: &Unit) -> Option<bool> {
        let Unit::Whole(unit) = unit else { return None };
        let (digits, tenths) = self.exact?;
        let power = |exponent: u32| i256::from_i128(10).checked_pow(exponent);
        let value = value.checked_mul(power(tenths)?)?;
        // Powers of ten that floating point does not hold, it holds to their logarithm.
        let (value, bound) = match unit {
            _ if *unit < 1.0 => (value.checked_mul(power(-unit.log10().round() as u32)?)?, digits),
            _ if *unit < EXACT_UNITS => (value, digits.checked_mul(i256::from_i128(*unit as i128))?),
            _ => (value, digits.checked_mul(power(unit.log10().round() as u32)?)?),
        };
        Some(value >= bound)
    }

    /// The number with what may have been rounded away on either side.
    fn widen_rounded(&self, away: f64) -> f64 {
        self.number + away * self.number.abs() * ROUNDED
    }
}

impl Span {
    /// Whether a key of a line is covered.
    fn holds_key(&self, key: i128, unit: &Unit) -> bool {
        match self {
            Self::Anything => true,
            Self::Missing => key == NULL,
            Self::Nothing | Self::Wide(..) => false,
            _ if key == NULL => false,
            Self::Between(low, high) => (*low..=*high).contains(&key),
            // NaN lies in no interval.
            Self::HalfOpen(..) if *unit == Unit::Float && key == i128::from(order_float(f64::NAN)) => false,
            Self::HalfOpen(low, high) => {
                low.as_ref().is_none_or(|bound| bound.at_or_below(key, unit))
                    && high.as_ref().is_none_or(|bound| !bound.at_or_below(key, unit))
            }
        }
    }

    /// Whether a decimal of more digits than a key is covered; none is null.
    fn holds_wide(&self, value: Option<i256>, unit: &Unit) -> bool {
        let Some(value) = value else { return matches!(self, Self::Anything | Self::Missing) };
        match self {
            Self::Anything => true,
            Self::Missing | Self::Nothing | Self::Between(..) => false,
            Self::Wide(low, high) => (*low..=*high).contains(&value),
            Self::HalfOpen(low, high) => {
                low.as_ref().is_none_or(|bound| bound.at_or_below_wide(value, unit))
                    && high.as_ref().is_none_or(|bound| !bound.at_or_below_wide(value, unit))
            }
        }
    }
}

fn label_holds(label: Option<&str>, value: Option<&str>, hierarchy: Option<&Hierarchy>) -> bool {
    match (label, value, hierarchy) {
        (None, value, _) => value.is_none(),
        (Some(label), _, Some(Hierarchy::Levels(levels))) if label == levels.root() => true,
        (Some(TOP), ..) => true,
        (Some(_), None, _) => false,
        (Some(label), Some(value), Some(Hierarchy::Levels(levels))) => levels.covers(label, value),
        (Some(label), Some(value), Some(Hierarchy::Mask(mask))) => mask.covers(label, value),
        (Some(label), Some(value), _) => {
            SetLabel::parse(label).members().is_none_or(|members| members.iter().any(|member| member == value))
        }
    }
}

/// Where a key of a line lies: null first, NaN last.
fn line_place(key: i128, unit: &Unit) -> f64 {
    match unit.position(key) {
        _ if key == NULL => f64::NEG_INFINITY,
        place if place.is_nan() => f64::INFINITY,
        place => place,
    }
}

/// Where a text lies: at the number of its leaf, or where its first bytes put it. Places keep the order of texts.
fn text_place(value: &str, hierarchy: Option<&Hierarchy>) -> f64 {
    match hierarchy {
        Some(Hierarchy::Levels(levels)) => levels.find_leaf(value).map_or(f64::INFINITY, f64::from),
        Some(Hierarchy::Mask(mask)) => bytes_place(mask.order_key(value).as_bytes(), 0),
        _ => bytes_place(value.as_bytes(), 0),
    }
}

/// The first six bytes as a number, with `fill` behind the end.
fn bytes_place(bytes: &[u8], fill: u8) -> f64 {
    (0..6).fold(0.0, |place, at| place * 256.0 + f64::from(bytes.get(at).copied().unwrap_or(fill)))
}

/// The places of everything that a label covers; `None` if that can be anywhere.
fn label_extent(label: &str, hierarchy: Option<&Hierarchy>) -> Option<(f64, f64)> {
    if label == TOP {
        return None;
    }
    match hierarchy {
        Some(Hierarchy::Levels(levels)) if label == levels.root() => None,
        Some(Hierarchy::Levels(levels)) => levels.span_of(label).map(|(lo, hi)| (f64::from(lo), f64::from(hi))),
        Some(Hierarchy::Mask(mask)) => {
            let kept = match mask.hides() {
                End::Right => label.trim_end_matches(mask.fill()),
                End::Left => label.trim_start_matches(mask.fill()),
            };
            // The mask character may be part of a value that is published as it is.
            let (kept, label) = (mask.order_key(kept), mask.order_key(label));
            let places = [bytes_place(kept.as_bytes(), 0), bytes_place(label.as_bytes(), 0)];
            Some((places[0].min(places[1]), bytes_place(kept.as_bytes(), u8::MAX).max(places[1])))
        }
        _ => {
            let set = SetLabel::parse(label);
            let places = || Some(set.members()?.iter().map(|value| bytes_place(value.as_bytes(), 0)));
            Some((places()?.fold(f64::INFINITY, f64::min), places()?.fold(f64::NEG_INFINITY, f64::max)))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array, StructArray, TimestampNanosecondArray};
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;
    use crate::binding::BoundPolicy;
    use crate::error::ErrorKind;
    use crate::policy::Policy;

    fn quasi(data_type: DataType, options: &str) -> QuasiColumn {
        let policy = format!("privacy.k = 2\ncolumns.q = {{ role = \"quasi\"{options} }}");
        let policy = Policy::from_table(toml::from_str(&policy).unwrap(), std::path::Path::new(".")).unwrap();
        let schema = Schema::new(vec![Field::new("q", data_type, true)]);
        BoundPolicy::new(Arc::new(policy), Arc::new(schema)).unwrap().quasi.remove(0)
    }

    /// Whether each label covers each value; what is covered always lies in the label's extent.
    fn covered(quasi: &QuasiColumn, labels: Vec<Option<&str>>, values: ArrayRef) -> Vec<Vec<bool>> {
        let labels: ArrayRef = Arc::new(StringViewArray::from(labels));
        table(quasi, &[labels], &values)
    }

    fn table(quasi: &QuasiColumn, columns: &[ArrayRef], values: &ArrayRef) -> Vec<Vec<bool>> {
        let (published, original) =
            (Published::read_columns(quasi, columns).unwrap(), Original::read_column(quasi, values).unwrap());
        let one = |row: usize, other: usize| {
            let (low, high) = published.extent(row);
            let covers = published.covers(row, &original, other);
            assert!(!covers || (low..=high).contains(&original.value_place(other, quasi)), "{row} {other}");
            covers
        };
        (0..columns[0].len()).map(|row| (0..values.len()).map(|other| one(row, other)).collect()).collect()
    }

    const NEAR: i64 = 123_456_789_012_345_678;

    #[test]
    fn ranges_of_whole_numbers_are_exact() {
        let ends = |ends: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(ends)) };
        let low = ends(vec![Some(NEAR), Some(NEAR + 1), None]);
        let high = ends(vec![Some(NEAR), Some(NEAR + 3), None]);
        let names = ["min", "max"].map(|name| Arc::new(Field::new(name, DataType::Int64, true)));
        let both: ArrayRef = Arc::new(StructArray::from(names.into_iter().zip([low, high]).collect::<Vec<_>>()));
        let values = ends(vec![Some(NEAR), Some(NEAR + 1), None]);
        let found = table(&quasi(DataType::Int64, ""), &[both], &values);
        assert_eq!(found, [[true, false, false], [false, true, false], [true, true, true]]);
    }

    /// Decimals of 60 digits, of which floating point and 128 bits hold too few.
    #[test]
    fn decimals_of_any_length_are_exact() {
        let huge = i256::from_string("123456789012345678901234567890123456789012345678901234567890").unwrap();
        let decimals = |values: Vec<Option<i128>>| -> ArrayRef {
            let values = values.into_iter().map(|value| Some(huge.wrapping_add(i256::from_i128(value?))));
            let array = values.collect::<datafusion::arrow::array::Decimal256Array>();
            Arc::new(array.with_precision_and_scale(62, 2).unwrap())
        };
        let wide = DataType::Decimal256(62, 2);
        let ends = [decimals(vec![Some(0), Some(1), None]), decimals(vec![Some(0), Some(3), None])];
        let names = ["min", "max"].map(|name| Arc::new(Field::new(name, wide.clone(), true)));
        let both: ArrayRef = Arc::new(StructArray::from(names.into_iter().zip(ends).collect::<Vec<_>>()));
        let values = decimals(vec![Some(0), Some(1), None]);
        let found = table(&quasi(wide.clone(), ""), &[both], &values);
        assert_eq!(found, [[true, false, false], [false, true, false], [true, true, true]]);
        let whole = "1234567890123456789012345678901234567890123456789012345678";
        let (single, range) = (format!("{whole}.90"), format!("[{whole}.91, {whole}.93]"));
        let labels = vec![Some(single.as_str()), Some(&range), Some("*"), None];
        let found = covered(&quasi(wide.clone(), ", publish = \"label\""), labels, Arc::clone(&values));
        assert_eq!(found, [[true, false, false], [false, true, false], [true; 3], [false, false, true]]);
        let (step, above) = (format!("[{whole}.9, {whole}.91)"), format!(">= {whole}.91"));
        let ladder = quasi(wide, ", hierarchy = { widths = [0.1, 0.2] }");
        let found = covered(&ladder, vec![Some(&step), Some(&above)], values);
        assert_eq!(found, [[true, false, false], [false, true, false]]);
    }

    #[test]
    fn labels_of_numbers_are_exact() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(NEAR), Some(NEAR + 1), None]));
        let (single, range) = (NEAR.to_string(), format!("[{}, {}]", NEAR + 1, NEAR + 3));
        let labels = vec![Some(single.as_str()), Some(&range), Some("*"), None, Some("else")];
        let found = covered(&quasi(DataType::Int64, ", publish = \"label\""), labels, values);
        let expected = [[true, false, false], [false, true, false], [true; 3], [false, false, true], [false; 3]];
        assert_eq!(found, expected);
    }

    #[test]
    fn steps_of_a_ladder_are_read_as_they_are_written() {
        let steps = quasi(DataType::Int64, ", hierarchy = { widths = [10.0, 100.0] }");
        let values: ArrayRef = Arc::new(Int64Array::from(vec![NEAR - 8, NEAR + 1, NEAR + 2]));
        // The bound at ...680 lies two above the value: floating point cannot see that.
        let labels = vec![Some("[123456789012345670, 123456789012345680)"), Some(">= 123456789012345680"), Some("< 5")];
        let found = covered(&steps, labels, values);
        assert_eq!(found, [[true, true, false], [false, false, true], [false; 3]]);
        let decimals = Decimal128Array::from(vec![29, 30, 31]).with_precision_and_scale(10, 2).unwrap();
        let tenths = quasi(DataType::Decimal128(10, 2), ", hierarchy = { widths = [0.1, 0.2] }");
        let found = covered(&tenths, vec![Some("[0.2, 0.3)"), Some("[0.3, 0.4)")], Arc::new(decimals));
        assert_eq!(found, [[true, false, false], [false, true, true]]);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.3, f64::NAN, -0.0, f64::INFINITY]));
        let tenths = quasi(DataType::Float64, ", hierarchy = { widths = [0.1, 0.2] }");
        let found = covered(&tenths, vec![Some("[0.3, 0.4)"), Some("[0, 0.1)"), Some(">= 0")], floats);
        assert_eq!(found, [[true, false, false, false], [false, false, true, false], [true, false, true, true]]);
    }

    #[test]
    fn units_of_the_calendar_end_at_their_last_nanosecond() {
        let calendar = quasi(
            DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Nanosecond, None),
            ", hierarchy = { calendar = [\"month\", \"year\"] }",
        );
        let midnight = 19_783_i64 * 86_400 * 1_000_000_000;
        let values: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![midnight - 1, midnight]));
        let found = covered(&calendar, vec![Some("2024-02"), Some("2024-03"), Some("2024")], values);
        assert_eq!(found, [[true, false], [false, true], [true, true]]);
    }

    /// A class within one day has its label, and a class of one moment that moment's.
    #[test]
    fn a_day_holds_all_its_moments() {
        let zone = |unit| DataType::Timestamp(unit, None);
        let days = ", hierarchy = { calendar = [\"day\", \"month\"] }";
        let calendar = quasi(zone(datafusion::arrow::datatypes::TimeUnit::Nanosecond), days);
        let midnight = 19_783_i64 * 86_400 * 1_000_000_000;
        let noon = midnight + 43_200 * 1_000_000_000;
        let values: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![midnight - 1, midnight, noon]));
        let labels = vec![Some("2024-03-01"), Some("2024-03-01T00:00:00"), Some("2024-02-29")];
        let found = covered(&calendar, labels, values);
        assert_eq!(found, [[false, true, true], [false, true, false], [true, false, false]]);
        let dates: ArrayRef = Arc::new(datafusion::arrow::array::Date32Array::from(vec![19_782, 19_783]));
        let found = covered(&quasi(DataType::Date32, days), vec![Some("2024-03-01"), Some("2024-02")], dates);
        assert_eq!(found, [[false, true], [true, false]]);
    }

    /// A column that was replaced by another must not stop the verification.
    #[test]
    fn a_column_that_is_no_range_is_refused() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["[1, 2]"]));
        let error = Published::read_columns(&quasi(DataType::Int64, ""), &[texts]).unwrap_err();
        assert!(error.kind() == ErrorKind::Privacy && error.to_string().contains("`q`"), "{error}");
    }

    #[test]
    fn texts_lie_in_their_labels() {
        let values = |values: &[Option<&str>]| -> ArrayRef { Arc::new(StringViewArray::from(values.to_vec())) };
        let town = quasi(DataType::Utf8, "");
        let found = covered(
            &town,
            vec![Some("{a, b c, d}"), Some("b"), Some("*"), None, Some("{b, \"c, d\"}"), Some("{b, c, d}")],
            values(&[Some("b c"), Some("b"), None, Some("c, d")]),
        );
        let expected = [
            [true, false, false, false],
            [false, true, false, false],
            [true; 4],
            [false, false, true, false],
            [false, true, false, true],
            [false, true, false, false],
        ];
        assert_eq!(found, expected);
        let zip = quasi(DataType::Utf8, ", hierarchy = { mask = \"right\" }");
        let found = covered(&zip, vec![Some("NW1*"), Some("NW"), Some("*")], values(&[Some("NW12"), Some("NW"), None]));
        assert_eq!(found, [[true, false, false], [false, true, false], [true; 3]]);
        let left = quasi(DataType::Utf8, ", hierarchy = { mask = \"left\" }");
        assert_eq!(covered(&left, vec![Some("**9")], values(&[Some("129"), Some("91")])), [[true, false]]);
        let kind = quasi(DataType::Utf8, ", hierarchy = { tree = [{ x = [\"a\", \"b\"] }, { y = [\"c\"] }] }");
        let found =
            covered(&kind, vec![Some("x"), Some("c"), Some("*")], values(&[Some("b"), Some("c"), Some("?"), None]));
        assert_eq!(found, [[true, false, false, false], [false, true, false, false], [true; 4]]);
    }
}
