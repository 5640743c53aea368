//! Quasi-identifiers: how a job has them published, what a published value covers, and what it loses.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use datafusion::arrow::array::ArrayRef;
use fastrand::Rng;

use crate::adversary::values::{self, Value};

/// How a quasi-identifier is published, as far as the checker knows what covers what.
#[derive(Debug, Clone)]
pub enum Published {
    /// `struct<min, max>`.
    Range,
    /// Two columns.
    Bounds,
    /// One number that stands for all.
    Centroid,
    /// Labels `[a, b]` of whole numbers.
    Interval,
    /// Labels of half-open intervals, `[a, b)`, `< a` and `>= a`, of whole numbers.
    Steps,
    /// Days, months, quarters, years and decades; so many units of the column make a day.
    Calendar(i128),
    /// Sets of texts `{a, b}`.
    Set,
    /// Labels of a hierarchy file or tree: for every value those that cover it.
    Tree(HashMap<String, Vec<String>>),
    /// Text of which one end is hidden: whether it is the left one, and by what.
    Mask(bool, char),
    /// Anything: what it covers is not looked at.
    Unknown,
}

/// How nulls in a quasi-identifier are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    Category,
    Drop,
    Reject,
}

/// One quasi-identifier.
#[derive(Debug, Clone)]
pub struct Quasi {
    pub name: String,
    pub published: Published,
    pub nulls: Nulls,
    pub withheld: bool,
}

/// How a column of a kind is published: what it means, the options of the column in the job, and a hierarchy file.
pub struct Choice {
    pub published: Published,
    pub options: String,
    pub file: Option<String>,
}

impl Choice {
    fn plain(published: Published, options: impl Into<String>) -> Self {
        Self { published, options: options.into(), file: None }
    }

    /// Some way of publishing a column. Forms that publish values as they are have no `publish`, and presence no centroid.
    pub fn random(
        rng: &mut Rng,
        kind: &str,
        style: u8,
        array: &ArrayRef,
        name: &str,
        exact: bool,
        presence: bool,
    ) -> Self {
        let plain_text = style != 1;
        match kind {
            "text" | "view" | "dictionary" => match rng.u8(0..4) {
                0 => Self::tree(rng, array, name),
                1 if plain_text => {
                    let (left, fill) = (rng.bool(), if rng.bool() { '*' } else { '#' });
                    let side = if left { "left" } else { "right" };
                    let keep = if rng.bool() { ", keep = [3, 1]" } else { "" };
                    let options = format!(", hierarchy = {{ mask = \"{side}\", char = \"{fill}\"{keep} }}");
                    Self::plain(Published::Mask(left, fill), options)
                }
                _ => Self::plain(if plain_text { Published::Set } else { Published::Unknown }, ""),
            },
            "bool" => Self::plain(Published::Unknown, ""),
            _ => {
                let whole = kind.contains("int");
                let day = match kind {
                    "date32" => Some(1),
                    "seconds" => Some(86_400),
                    "date64" | "millis" => Some(86_400_000),
                    "micros" | "zoned" => Some(86_400_000_000),
                    "nanos" => Some(86_400_000_000_000),
                    _ => None,
                };
                match rng.u8(0..8) {
                    0 if !exact => Self::plain(Published::Bounds, ", publish = \"bounds\""),
                    1 if !exact && !presence => Self::plain(Published::Centroid, ", publish = \"centroid\""),
                    2 if !exact && whole => Self::plain(Published::Interval, ", publish = \"label\""),
                    3 if whole => {
                        let steps = ["widths = [5, 10, 20]", "bounds = [[2, 5, 9], [5]]", "quantiles = [4, 2]"];
                        Self::plain(Published::Steps, format!(", hierarchy = {{ {} }}", rng.choice(&steps).unwrap()))
                    }
                    4 | 5 if day.is_some() => {
                        let units = ["\"month\", \"year\"", "\"day\", \"quarter\", \"decade\"", "\"year\""];
                        let options = format!(", hierarchy = {{ calendar = [{}] }}", rng.choice(&units).unwrap());
                        Self::plain(Published::Calendar(day.unwrap_or(1)), options)
                    }
                    _ => Self::plain(Published::Range, ""),
                }
            }
        }
    }

    /// A hierarchy of the values of a column, in two levels below the top, in a file or in the job. Only values that a CSV
    /// file can hold plainly.
    fn tree(rng: &mut Rng, array: &ArrayRef, name: &str) -> Self {
        let mut found: Vec<String> =
            values::column(array.as_ref()).iter().filter_map(|value| value.as_text().map(str::to_owned)).collect();
        found.sort();
        found.dedup();
        let plain = |text: &String| !text.is_empty() && text.chars().all(char::is_alphanumeric);
        if found.is_empty() || !found.iter().all(plain) {
            return Self::plain(Published::Unknown, "");
        }
        let groups: Vec<(String, String)> =
            found.into_iter().map(|value| (value, format!("group {}", rng.u8(0..3)))).collect();
        let line = |(value, group): &(String, String)| vec![value.clone(), group.clone(), "*".to_owned()];
        let of: HashMap<String, Vec<String>> = groups.iter().map(|pair| (pair.0.clone(), line(pair))).collect();
        if rng.bool() {
            let mut text = String::new();
            groups.iter().for_each(|pair| writeln!(text, "{}", line(pair).join(";")).unwrap());
            let options = format!(", hierarchy = \"{name}.csv\"");
            return Self { published: Published::Tree(of), options, file: Some(text) };
        }
        let names: BTreeSet<&String> = groups.iter().map(|(_, group)| group).collect();
        let nodes = names.into_iter().map(|name| {
            let leaves = groups.iter().filter(|(_, group)| group == name).map(|(value, _)| format!("\"{value}\""));
            format!("\"{name}\" = [{}]", leaves.collect::<Vec<_>>().join(", "))
        });
        let options = format!(", hierarchy = {{ tree = {{ {} }} }}", nodes.collect::<Vec<_>>().join(", "));
        Self::plain(Published::Tree(of), options)
    }
}

/// The columns of a table, by name.
pub type Columns = HashMap<String, Vec<Value>>;

impl Quasi {
    /// The columns that it is published as.
    pub fn columns(&self) -> Vec<String> {
        match self.published {
            Published::Bounds => vec![format!("{}_min", self.name), format!("{}_max", self.name)],
            _ => vec![self.name.clone()],
        }
    }

    /// Whether a value counts as null: not a number has no place among numbers.
    pub fn is_missing(value: &Value) -> bool {
        *value == Value::Null || value.as_f64().is_some_and(f64::is_nan)
    }

    /// Whether what a row publishes covers a value.
    pub fn covers(&self, table: &Columns, row: usize, value: &Value) -> bool {
        let published = |name: &str| table.get(name).map(|column| column[row].clone());
        let between = |least: &Value, most: &Value| match value {
            // A null is covered by nothing but a null or the whole domain.
            Value::Null => *least == Value::Null && *most == Value::Null,
            value => {
                let (value, least, most) = (plain_zero(value), plain_zero(least), plain_zero(most));
                (least == Value::Null || least <= value) && (most == Value::Null || value <= most)
            }
        };
        match &self.published {
            Published::Bounds => {
                let ends = published(&format!("{}_min", self.name)).zip(published(&format!("{}_max", self.name)));
                ends.is_some_and(|(least, most)| between(&least, &most))
            }
            of => match (of, published(&self.name)) {
                (_, None) => false,
                (Published::Unknown | Published::Centroid, _) => true,
                (Published::Range, Some(Value::Struct(ends))) => between(&ends[0], &ends[1]),
                (_, Some(Value::Null)) => *value == Value::Null,
                (_, Some(label)) => label.as_text().is_some_and(|label| label == "*" || covers_label(of, label, value)),
            },
        }
    }

    /// What a published row loses at least, between 0 and 1, when the column has these values.
    pub fn loss(&self, table: &Columns, row: usize, domain: &[Value]) -> f64 {
        let published = |name: &str| table.get(name).map(|column| column[row].clone()).unwrap_or(Value::Null);
        let share =
            |part: f64, whole: f64| if whole > 0.0 && whole.is_finite() { (part / whole).min(1.0) } else { 0.0 };
        let width = |least: &Value, most: &Value| match (number(least), number(most)) {
            (Some(least), Some(most)) => {
                let all: Vec<f64> = domain.iter().filter_map(number).collect();
                let first = all.iter().copied().fold(f64::INFINITY, f64::min);
                let last = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                share(most - least, last - first)
            }
            _ => 0.0,
        };
        let leaves = |of: &HashMap<String, Vec<String>>, label: &str| {
            let below = of.values().filter(|labels| labels.iter().any(|one| one == label)).count();
            share(below.max(1) as f64 - 1.0, of.len() as f64 - 1.0)
        };
        match &self.published {
            Published::Bounds => {
                width(&published(&format!("{}_min", self.name)), &published(&format!("{}_max", self.name)))
            }
            of => match (of, published(&self.name)) {
                (Published::Range, Value::Struct(ends)) => width(&ends[0], &ends[1]),
                (of, label) => match (of, label.as_text()) {
                    (_, Some("*")) => 1.0,
                    (Published::Tree(of), Some(label)) => leaves(of, label),
                    (Published::Set, Some(label)) => {
                        let inside = label.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                        let listed = inside.map_or(1, |set| set.split(", ").count());
                        let all: BTreeSet<&Value> = domain.iter().collect();
                        share(listed as f64 - 1.0, all.len() as f64 - 1.0)
                    }
                    _ => 0.0,
                },
            },
        }
    }

    /// What a group of rows with these values loses at the most when it is generalised as little as can be.
    pub fn loss_of_group(&self, group: &[&Value], domain: &[Value]) -> f64 {
        let different: BTreeSet<&Value> =
            group.iter().map(|value| if Self::is_missing(value) { &Value::Null } else { *value }).collect();
        // NaN is published as the top, where nulls alone are published as null.
        let nan = group.iter().any(|value| **value != Value::Null && Self::is_missing(value));
        if different.len() < 2 && !self.withheld && !nan {
            return 0.0;
        }
        if self.withheld || different.contains(&Value::Null) {
            return 1.0;
        }
        let known: BTreeSet<&Value> = domain.iter().filter(|value| !Self::is_missing(value)).collect();
        let ends = |values: &BTreeSet<&Value>| {
            let ends =
                values.first().and_then(|value| number(value)).zip(values.last().and_then(|value| number(value)));
            ends.map(|(first, last)| last - first)
        };
        match &self.published {
            Published::Range | Published::Bounds | Published::Interval => match (ends(&different), ends(&known)) {
                (Some(part), Some(whole)) if whole > 0.0 && whole.is_finite() => (part / whole).min(1.0),
                _ => 1.0,
            },
            Published::Set => (different.len() as f64 - 1.0) / (known.len() as f64 - 1.0),
            Published::Tree(of) => {
                let groups: BTreeSet<Option<&String>> = different
                    .iter()
                    .map(|value| value.as_text().and_then(|value| of.get(value)).map(|line| &line[1]))
                    .collect();
                let below = of.values().filter(|line| Some(&line[1]) == groups.first().copied().flatten()).count();
                if groups.len() == 1 { (below as f64 - 1.0) / (of.len() as f64 - 1.0) } else { 1.0 }
            }
            _ => 1.0,
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        other => other.as_f64(),
    }
}

/// Zero without its sign: a range from 0.0 holds -0.0.
pub fn plain_zero(value: &Value) -> Value {
    if value.as_f64() == Some(0.0) { Value::float(0.0) } else { value.clone() }
}

fn covers_label(of: &Published, label: &str, value: &Value) -> bool {
    match (of, value) {
        (Published::Interval, Value::Int(value)) => {
            let inside = label.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let (least, most) = inside.and_then(|ends| ends.split_once(", ")).unwrap_or((label, label));
            let ends = least.parse::<i128>().ok().zip(most.parse::<i128>().ok());
            ends.is_some_and(|(least, most)| least <= *value && *value <= most)
        }
        (Published::Steps, Value::Int(value)) => covers_step(label, *value),
        (Published::Calendar(day), Value::Int(value)) => covers_date(label, value.div_euclid(*day)),
        (Published::Set, value) => value.as_text().is_some_and(|value| {
            let inside = label.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            inside.map_or(label == value, |set| set.split(", ").any(|one| one == value))
        }),
        (Published::Tree(of), value) => {
            value.as_text().and_then(|value| of.get(value)).is_some_and(|labels| labels.iter().any(|one| one == label))
        }
        (Published::Mask(left, fill), value) => value.as_text().is_some_and(|value| {
            let long_enough = label.chars().count() >= value.chars().count();
            let fits = match left {
                true => value.ends_with(label.trim_start_matches(*fill)),
                false => value.starts_with(label.trim_end_matches(*fill)),
            };
            long_enough && fits
        }),
        _ => false,
    }
}

/// Whether the label of a half-open interval, or of a single number, holds a whole number.
fn covers_step(label: &str, value: i128) -> bool {
    // A bound may be written as a fraction; whole ones are compared exactly.
    let at_least = |bound: &str| match bound.parse::<i128>() {
        Ok(bound) => Some(bound <= value),
        Err(_) => bound.parse::<f64>().ok().map(|bound| bound <= value as f64),
    };
    if let Some(upper) = label.strip_prefix("< ") {
        return at_least(upper) == Some(false);
    }
    if let Some(lower) = label.strip_prefix(">= ") {
        return at_least(lower) == Some(true);
    }
    match label.strip_prefix('[').and_then(|rest| rest.strip_suffix(')')).and_then(|ends| ends.split_once(", ")) {
        Some((lower, upper)) => at_least(lower) == Some(true) && at_least(upper) == Some(false),
        None => label.parse() == Ok(value),
    }
}

/// Whether the label of a calendar unit holds a day, counted from 1970-01-01.
fn covers_date(label: &str, day: i128) -> bool {
    let leap = |year: i128| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut rest) = (1970, day);
    while rest < 0 {
        year -= 1;
        rest += if leap(year) { 366 } else { 365 };
    }
    while rest >= if leap(year) { 366 } else { 365 } {
        rest -= if leap(year) { 366 } else { 365 };
        year += 1;
    }
    let months = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    let date = format!("{year:04}-{month:02}-{:02}", rest + 1);
    let units = [
        format!("{year:04}-{month:02}"),
        format!("{year:04}-Q{}", (month + 2) / 3),
        format!("{year:04}"),
        format!("{}s", year / 10 * 10),
    ];
    // A value that is published as it is begins with its day.
    units.iter().any(|unit| unit == label) || label.starts_with(&date)
}
