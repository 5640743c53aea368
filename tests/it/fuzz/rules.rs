//! Rules about sensitive columns: how a job asks for them, and what they mean, by their definitions.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::quasi::plain_zero;
use crate::adversary::values::Value;

/// What two ways of rounding may differ by.
const ROUNDING: f64 = 1e-9;

/// A rule on a sensitive column.
#[derive(Debug, Clone)]
pub enum Rule {
    /// At least so many different values, as l-diversity or as p-sensitivity.
    Distinct(usize, &'static str),
    Entropy(f64),
    Recursive(f64, usize),
    Alpha(f64),
    /// t-closeness by equal or by ordered distance.
    Closeness(f64, bool),
    /// Range diversity where every value is its own range.
    Identity(f64),
    /// Range diversity of whole numbers: bound and length of the interval.
    Interval(f64, f64),
    /// (k, e)-anonymity.
    Spread(usize, f64),
    Disclosure(f64),
    /// beta-likeness, basic or enhanced.
    Likeness(f64, bool),
}

/// How often every value occurs, in ascending order.
fn histogram(values: &[Value]) -> BTreeMap<&Value, f64> {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(value).or_default() += 1.0);
    counts
}

/// The number of a value that is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        other => other.as_f64().filter(|value| !value.is_nan()),
    }
}

impl Rule {
    /// Some rule. `numbers`: the column holds small whole numbers or fractions; `ordered`: numbers, dates or times.
    pub fn random(rng: &mut Rng, k: usize, numbers: bool, ordered: bool) -> Self {
        let l = rng.usize(2..=k.min(4));
        match rng.u8(0..if numbers { 12 } else { 10 }) {
            0 => Self::Distinct(l, "l-diversity"),
            1 => Self::Distinct(l, "p-sensitive"),
            2 => Self::Entropy(*rng.choice(&[1.2, 1.5, 2.0]).unwrap()),
            3 => Self::Recursive(*rng.choice(&[1.0, 2.0, 3.5]).unwrap(), 2),
            4 => Self::Alpha(*rng.choice(&[0.4, 0.5, 0.8]).unwrap()),
            5 | 6 => Self::Closeness(*rng.choice(&[0.2, 0.5, 0.8]).unwrap(), ordered && rng.bool()),
            7 => Self::Identity(*rng.choice(&[0.5, 0.7, 0.9]).unwrap()),
            8 => Self::Disclosure(*rng.choice(&[0.5, 1.0, 2.0]).unwrap()),
            9 => Self::Likeness(*rng.choice(&[0.5, 1.0, 3.0]).unwrap(), rng.bool()),
            10 => Self::Interval(*rng.choice(&[0.5, 0.7, 0.9]).unwrap(), *rng.choice(&[0.0, 2.0, 5.0]).unwrap() + 1.0),
            _ => Self::Spread(l, *rng.choice(&[0.5, 1.0, 4.0]).unwrap()),
        }
    }

    /// Key and value of the rule in `[privacy]`.
    pub fn job(&self, column: &str) -> (&'static str, String) {
        let (key, rest) = match self {
            Self::Distinct(l, key @ "l-diversity") => (*key, format!("l = {l}")),
            Self::Distinct(p, key) => (*key, format!("p = {p}")),
            Self::Entropy(l) => ("l-diversity", format!("kind = \"entropy\", l = {l:?}")),
            Self::Recursive(c, l) => ("l-diversity", format!("kind = \"recursive\", c = {c:?}, l = {l}")),
            Self::Alpha(alpha) => ("alpha-k", format!("alpha = {alpha:?}")),
            Self::Closeness(t, ordered) => {
                let distance = if *ordered { "ordered" } else { "equal" };
                ("t-closeness", format!("t = {t:?}, distance = \"{distance}\""))
            }
            Self::Identity(p) => ("range-diversity", format!("p = {p:?}")),
            Self::Interval(p, length) => {
                ("range-diversity", format!("p = {p:?}, ranges = {{ interval = {length:?} }}"))
            }
            Self::Spread(k, e) => ("k-e", format!("k = {k}, e = {e:?}")),
            Self::Disclosure(delta) => ("delta-disclosure", format!("delta = {delta:?}")),
            Self::Likeness(beta, enhanced) => {
                let kind = if *enhanced { "enhanced" } else { "basic" };
                ("beta-likeness", format!("beta = {beta:?}, kind = \"{kind}\""))
            }
        };
        (key, format!("{{ column = \"{column}\", {rest} }}"))
    }

    /// The rule as groups are built for it: with a fiftieth of its bound in reserve where it compares with the table.
    pub fn reserved(&self) -> Self {
        const KEPT: f64 = 0.98;
        match self {
            Self::Closeness(t, ordered) => Self::Closeness(t * KEPT, *ordered),
            Self::Disclosure(delta) => Self::Disclosure(delta * KEPT),
            Self::Likeness(beta, enhanced) => Self::Likeness(beta * KEPT, *enhanced),
            other => other.clone(),
        }
    }

    /// Whether the values of a class keep the rule, by its definition, against the values of the whole table. `slack` is
    /// taken from every bound that is a fraction: above 0 the rule holds for sure, below 0 it is broken for sure if not.
    fn judge(&self, class: &[Value], table: &[Value], slack: f64) -> bool {
        // The two zeros are one number.
        let zeros = |values: &[Value]| values.iter().map(plain_zero).collect::<Vec<_>>();
        let (class, table) = (&zeros(class)[..], &zeros(table)[..]);
        let counts = histogram(class);
        let rows = class.len() as f64;
        let all = histogram(table);
        let share_of_table = |value: &Value| all.get(value).map_or(0.0, |count| count / table.len() as f64);
        let share = |value: &Value| counts.get(value).map_or(0.0, |count| count / rows);
        match self {
            Self::Distinct(l, _) => counts.len() >= *l,
            Self::Entropy(l) => {
                let entropy: f64 = counts.values().map(|count| -count / rows * (count / rows).ln()).sum();
                entropy >= l.ln() + slack
            }
            Self::Recursive(c, l) => {
                let mut sorted: Vec<f64> = counts.into_values().collect();
                sorted.sort_by(|a, b| b.total_cmp(a));
                sorted[0] < c * sorted.iter().skip(l - 1).sum::<f64>() - slack
            }
            Self::Alpha(alpha) => counts.values().all(|count| count / rows <= alpha - slack),
            Self::Closeness(t, false) => {
                let values = all.keys().chain(counts.keys().filter(|value| !all.contains_key(**value)));
                values.map(|value| (share_of_table(value) - share(value)).abs()).sum::<f64>() / 2.0 <= t - slack
            }
            Self::Closeness(t, true) => {
                // Null is beyond the largest value.
                let (nulls, values): (Vec<&&Value>, Vec<_>) = all.keys().partition(|value| ***value == Value::Null);
                let (mut sum, mut work) = (0.0, 0.0);
                for value in values.into_iter().chain(nulls) {
                    sum += share(value) - share_of_table(value);
                    work += f64::abs(sum);
                }
                work / (all.len().max(2) - 1) as f64 <= t - slack
            }
            Self::Identity(p) => counts.values().map(|count| count * count).sum::<f64>() / (rows * rows) <= p - slack,
            Self::Interval(p, length) => {
                let numbers: Vec<f64> = all.keys().filter_map(|value| number(value)).collect();
                let width = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
                let close = |a: &Value, b: &Value| match (number(a), number(b)) {
                    (Some(a), Some(b)) if (a - b).abs() <= length / 2.0 + ROUNDING && width > 0.0 => {
                        1.0 - (a - b).abs() / width
                    }
                    _ => f64::from(a == b),
                };
                let pairs = class.iter().flat_map(|a| class.iter().map(move |b| close(a, b)));
                pairs.sum::<f64>() / (rows * rows) <= p - slack
            }
            Self::Spread(k, e) => {
                let numbers: Vec<f64> = counts.keys().filter_map(|value| number(value)).collect();
                let span = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
                numbers.len() >= *k && span >= *e
            }
            Self::Disclosure(delta) => {
                counts.keys().all(|value| (share(value) / share_of_table(value)).ln().abs() < delta - slack)
            }
            Self::Likeness(beta, enhanced) => counts.keys().all(|value| {
                let p = share_of_table(value);
                let bound = if *enhanced { beta.min(-p.ln()) } else { *beta };
                (share(value) - p) / p <= bound - slack
            }),
        }
    }

    /// Whether a class keeps the rule but for rounding.
    pub fn holds(&self, class: &[Value], table: &[Value]) -> bool {
        self.judge(class, table, -ROUNDING)
    }

    /// Whether a class keeps the rule however its numbers are rounded.
    pub fn holds_surely(&self, class: &[Value], table: &[Value]) -> bool {
        self.judge(class, table, ROUNDING)
            || matches!(self, Self::Alpha(_) | Self::Identity(_)) && self.holds(class, table)
    }
}

/// Null, 3, 4, 6 and 9 in 9, 1, 4, 1 and 5 rows of a table. A class of 5 nulls, 3, 4 and 6 is 13/160 away from it, and would be
/// 17/80 if null came before 3.
#[test]
fn null_is_beyond_the_largest_value() {
    let values = |counts: [usize; 5]| -> Vec<Value> {
        let all = [Value::Null, Value::Int(3), Value::Int(4), Value::Int(6), Value::Int(9)];
        all.into_iter().zip(counts).flat_map(|(value, count)| vec![value; count]).collect()
    };
    let holds = |t| Rule::Closeness(t, true).holds(&values([5, 1, 1, 1, 0]), &values([9, 1, 4, 1, 5]));
    assert!(holds(0.0813) && !holds(0.0812));
}
