//! What published values mean, to a reader who knows the job file and nothing of Throng: does a published value cover
//! the original one?

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, make_comparator};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use jiff::ToSpan;

use crate::support::{NULL, texts};

/// How a published column is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// `struct<min, max>`.
    Range,
    /// Two columns.
    Bounds,
    /// The mean: inside what the class spans.
    Centroid,
    /// `[a, b]` or a value.
    LineLabel,
    /// `[a, b)`, `< a`, `>= a` or a value.
    Ladder,
    /// A unit of the calendar or a value.
    Calendar,
    /// A value with characters hidden at its right end.
    MaskRight,
    /// A value with characters hidden at its left end.
    MaskLeft,
    /// A node of [`NODES`] or of [`TINY_NODES`].
    Tree,
    /// `{a, b}` or a value.
    Set,
}

/// Values of the inline tree of texts and what is above them; other values are unknown to it.
pub const NODES: [(&str, &[&str]); 7] = [
    ("NW1", &["North"]),
    ("NW10", &["North"]),
    ("NW2", &["North"]),
    ("SE1", &["Far", "South"]),
    ("SE10", &["Far", "South"]),
    ("S", &["Near", "South"]),
    ("éa", &["Near", "South"]),
];

/// The tree of [`NODES`] in TOML.
pub const TREE: &str =
    "{ North = [\"NW1\", \"NW10\", \"NW2\"], South = { Far = [\"SE1\", \"SE10\"], Near = [\"S\", \"éa\"] } }";

/// The same for small numbers.
pub const TINY_NODES: [(&str, &[&str]); 4] = [("0", &["low"]), ("1", &["low"]), ("2", &["high"]), ("3", &["high"])];

/// The tree of [`TINY_NODES`] in TOML.
pub const TINY_TREE: &str = "{ low = [\"0\", \"1\"], high = [\"2\", \"3\"] }";

impl Reading {
    /// The published columns of a quasi-identifier.
    pub fn columns(self, name: &str) -> Vec<String> {
        match self {
            Self::Bounds => vec![format!("{name}_min"), format!("{name}_max")],
            _ => vec![name.to_owned()],
        }
    }

    /// Asserts that every row of `published` covers the row of `original` in the same place.
    pub fn assert_covers(self, name: &str, published: &RecordBatch, original: &RecordBatch) {
        let before = original.column_by_name(name).unwrap();
        let shown = texts(original, name);
        let column = |name: &str| Arc::clone(published.column_by_name(name).unwrap());
        let rows = 0..published.num_rows();
        match self {
            Self::Range => {
                let ends = column(name);
                let ends = ends.as_struct();
                let inside = between(before, ends.column(0), ends.column(1));
                for row in rows {
                    let good = if ends.is_null(row) { before.is_null(row) } else { inside(row) };
                    assert!(good, "{name}: a range does not hold {}", shown[row]);
                }
            }
            Self::Bounds => {
                let inside = between(before, &column(&format!("{name}_min")), &column(&format!("{name}_max")));
                rows.for_each(|row| assert!(inside(row), "{name}: bounds do not hold {}", shown[row]));
            }
            Self::LineLabel => {
                let (lows, highs): (Vec<Option<String>>, Vec<Option<String>>) =
                    texts(published, name).iter().map(|label| ends(label)).unzip();
                let typed = |ends: Vec<Option<String>>| cast(&StringArray::from(ends), before.data_type()).unwrap();
                let inside = between(before, &typed(lows), &typed(highs));
                for (row, label) in texts(published, name).iter().enumerate() {
                    let good = if label == NULL { before.is_null(row) } else { inside(row) };
                    assert!(good, "{name}: {label} does not hold {}", shown[row]);
                }
            }
            Self::Centroid => {
                let (now, then) = (column(name).data_type().clone(), before.data_type().clone());
                assert_eq!(now, then, "{name}: a mean is of the original type");
            }
            _ => {
                let labels = texts(published, name);
                let exact = Exact { at: floats(before), days: days(before) };
                for row in rows {
                    let (label, value) = (labels[row].as_str(), shown[row].as_str());
                    assert!(self.label_covers(label, value, row, &exact), "{name}: {label} does not hold {value}");
                }
            }
        }
    }

    fn label_covers(self, label: &str, value: &str, row: usize, exact: &Exact) -> bool {
        if label == NULL || value == NULL {
            return label == value || label == "*";
        }
        if label == "*" || label == value {
            return true;
        }
        match self {
            Self::Ladder => {
                // Whole numbers by all their digits, others as fractions.
                let below = |end: &str| match (value.parse::<i128>(), end.parse::<i128>()) {
                    (Ok(value), Ok(end)) => value < end,
                    _ => exact.at[row] < end.parse::<f64>().unwrap(),
                };
                if let Some(end) = label.strip_prefix("< ") {
                    return below(end);
                }
                if let Some(end) = label.strip_prefix(">= ") {
                    return !below(end);
                }
                let inside = label.strip_prefix('[').and_then(|label| label.strip_suffix(')'));
                inside.and_then(|inside| inside.split_once(", ")).is_some_and(|(low, high)| !below(low) && below(high))
            }
            Self::Calendar => units(exact.days[row]).iter().any(|unit| unit == label),
            Self::MaskRight => {
                let kept = label.trim_end_matches('*');
                kept.len() < label.len() && value.starts_with(kept) && length(value) <= length(label)
            }
            Self::MaskLeft => {
                let kept = label.trim_start_matches('*');
                kept.len() < label.len() && value.ends_with(kept) && length(value) <= length(label)
            }
            Self::Tree => {
                let mut known = NODES.iter().chain(&TINY_NODES).filter(|(leaf, _)| *leaf == value);
                known.any(|(_, above)| above.contains(&label))
            }
            Self::Set => label
                .strip_prefix('{')
                .and_then(|label| label.strip_suffix('}'))
                .is_some_and(|inside| inside.split(", ").any(|member| member == value)),
            _ => false,
        }
    }
}

/// Asserts that means lie within their class: `classes` holds the rows of each.
pub fn assert_central(name: &str, published: &RecordBatch, original: &RecordBatch, classes: &[Vec<usize>]) {
    let (means, values) =
        (floats(published.column_by_name(name).unwrap()), floats(original.column_by_name(name).unwrap()));
    for rows in classes {
        let inside = rows.iter().map(|row| values[*row]).filter(|value| !value.is_nan());
        let (low, high) = inside.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let mean = means[rows[0]];
        if low > high {
            assert!(mean.is_nan(), "{name}: the mean of nothing is null");
        } else {
            let slack = 1e-9 * (low.abs().max(high.abs()));
            assert!(low - slack <= mean && mean <= high + slack, "{name}: {mean} is not in [{low}, {high}]");
        }
    }
}

/// What labels are compared with beside the value's text.
struct Exact {
    at: Vec<f64>,
    days: Vec<i64>,
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Ends of `[a, b]`, of a single value, or none.
fn ends(label: &str) -> (Option<String>, Option<String>) {
    if label == NULL || label == "*" {
        return (None, None);
    }
    let inside = label.strip_prefix('[').and_then(|label| label.strip_suffix(']'));
    let (low, high) = inside.and_then(|inside| inside.split_once(", ")).unwrap_or((label, label));
    (Some(low.to_owned()), Some(high.to_owned()))
}

/// Whether a row's value lies between its ends, both included; two missing ends hold everything.
fn between(values: &ArrayRef, lows: &ArrayRef, highs: &ArrayRef) -> impl Fn(usize) -> bool + use<> {
    let compare = |ends: &ArrayRef| make_comparator(values.as_ref(), ends.as_ref(), SortOptions::default()).unwrap();
    let (low, high) = (compare(lows), compare(highs));
    let (values, lows, highs) = (Arc::clone(values), Arc::clone(lows), Arc::clone(highs));
    move |row| match (values.is_null(row), lows.is_null(row), highs.is_null(row)) {
        (_, true, true) => true,
        (false, false, false) => low(row, row) != Ordering::Less && high(row, row) != Ordering::Greater,
        _ => false,
    }
}

/// Numbers as they are, points in time as their own count; NaN where there is none.
fn floats(array: &ArrayRef) -> Vec<f64> {
    let whole = match array.data_type() {
        DataType::Date32 => cast(array, &DataType::Int32),
        DataType::Timestamp(..) | DataType::Time64(_) => cast(array, &DataType::Int64),
        data_type if data_type.is_numeric() => Ok(Arc::clone(array)),
        _ => return vec![f64::NAN; array.len()],
    };
    let numbers = cast(&whole.unwrap(), &DataType::Float64).unwrap();
    let numbers = numbers.as_primitive::<Float64Type>();
    (0..numbers.len()).map(|row| if numbers.is_null(row) { f64::NAN } else { numbers.value(row) }).collect()
}

/// Days since 1970-01-01; 0 where there is none.
fn days(array: &ArrayRef) -> Vec<i64> {
    let per_day = match array.data_type() {
        DataType::Date32 => return floats(array).into_iter().map(|day| day as i64).collect(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => 86_400_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 86_400_000_000_000,
        _ => return vec![0; array.len()],
    };
    let ticks = cast(array, &DataType::Int64).unwrap();
    ticks.as_primitive::<Int64Type>().values().iter().map(|ticks| ticks.div_euclid(per_day)).collect()
}

/// The day, month, quarter, year and decade of a day.
fn units(day: i64) -> [String; 5] {
    let date = jiff::civil::date(1970, 1, 1).checked_add(day.days()).unwrap();
    let (year, month) = (date.year(), date.month());
    [
        format!("{year:04}-{month:02}-{:02}", date.day()),
        format!("{year:04}-{month:02}"),
        format!("{year:04}-Q{}", (month + 2) / 3),
        format!("{year:04}"),
        format!("{:04}s", year / 10 * 10),
    ]
}
