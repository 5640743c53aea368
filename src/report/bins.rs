//! Histograms that give nobody away: round edges, small bins merged, rare values together.
//!
//! What was before is counted; what is published is spread evenly over all that it covers, which is what a reader of
//! the release has to assume. No bin of the original holds fewer than k rows.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::DataType;

use crate::encode::is_time;
use crate::hierarchy::{Period, Unit};

/// One bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Bin {
    /// What falls into it.
    pub label: String,
    /// Rows of the source; none when the source was not looked at.
    pub before: Option<f64>,
    /// Rows of the release, spread over what they cover.
    pub after: f64,
}

/// Bins of one column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// The bins in their order.
    pub bins: Vec<Bin>,
    /// Whether neighbouring bins belong together: numbers and dates.
    pub ordered: bool,
}

/// Bins of a line, before small ones are merged.
const LINE_BINS: f64 = 24.0;

/// Categories that have a bin of their own.
const CATEGORIES: usize = 16;

/// What lies on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Whole,
    Time,
}

impl Kind {
    /// The kind of the values of a type.
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            time if is_time(time) => Self::Time,
            whole if whole.is_integer() => Self::Whole,
            _ => Self::Number,
        }
    }
}

/// Numbers or points in time in bins of one width.
#[derive(Debug, Clone)]
pub(super) struct Line {
    from: f64,
    step: f64,
    kind: Kind,
    before: Option<Vec<f64>>,
    after: Vec<f64>,
    missing: (f64, f64),
}

impl Line {
    /// Bins with round edges over a domain.
    pub(super) fn new(min: f64, max: f64, kind: Kind, compared: bool) -> Self {
        let range = if max > min { max - min } else { 1.0 };
        let step = match kind {
            Kind::Time => time_step(range),
            Kind::Whole => round_step(range).max(1.0),
            Kind::Number => round_step(range),
        };
        let from = (min / step).floor() * step;
        let bins = (((max - from) / step).floor() as usize + 1).min(4 * LINE_BINS as usize);
        Self {
            from,
            step,
            kind,
            before: compared.then(|| vec![0.0; bins]),
            after: vec![0.0; bins],
            missing: (0.0, 0.0),
        }
    }

    fn bin(&self, position: f64) -> usize {
        (((position - self.from) / self.step).floor().max(0.0) as usize).min(self.after.len() - 1)
    }

    /// A row of the source; NaN is null.
    pub(super) fn add_before(&mut self, position: f64, rows: f64) {
        let bin = self.bin(position);
        match &mut self.before {
            _ if position.is_nan() => self.missing.0 += rows,
            Some(before) => before[bin] += rows,
            None => {}
        }
    }

    /// Published rows that may be missing values.
    pub(super) fn add_missing(&mut self, rows: f64) {
        self.missing.1 += rows;
    }

    /// Published rows that lie between two positions; NaN is an open end.
    pub(super) fn add_after(&mut self, low: f64, high: f64, rows: f64) {
        let end = self.from + self.step * self.after.len() as f64;
        let low = if low.is_nan() { self.from } else { low.clamp(self.from, end) };
        let high = if high.is_nan() { end } else { high.clamp(low, end) };
        if high <= low {
            let bin = self.bin(low);
            self.after[bin] += rows;
            return;
        }
        for bin in self.bin(low)..=self.bin(high) {
            let (lower, upper) = (self.from + self.step * bin as f64, self.from + self.step * (bin + 1) as f64);
            let share = (upper.min(high) - lower.max(low)) / (high - low);
            self.after[bin] += rows * share.max(0.0);
        }
    }

    /// The bins, neighbours merged until each has k rows.
    pub(super) fn finish(self, k: f64) -> Histogram {
        let mut bins: Vec<(usize, usize, Option<f64>, f64)> = Vec::new();
        let size = |before: Option<f64>, after: f64| before.unwrap_or(after);
        for bin in 0..self.after.len() {
            let (before, after) = (self.before.as_ref().map(|before| before[bin]), self.after[bin]);
            match bins.last_mut() {
                Some(last) if size(last.2, last.3) < k => {
                    *last = (last.0, bin + 1, add(last.2, before), last.3 + after);
                }
                _ => bins.push((bin, bin + 1, before, after)),
            }
        }
        if bins.len() > 1
            && let Some(last) = bins.pop_if(|last| size(last.2, last.3) < k)
            && let Some(left) = bins.last_mut()
        {
            *left = (left.0, last.1, add(left.2, last.2), left.3 + last.3);
        }
        let edge = |bin: usize| self.from + self.step * bin as f64;
        let mut found: Vec<Bin> = bins
            .into_iter()
            .filter(|(_, _, before, after)| size(*before, *after) >= k)
            .map(|(from, to, before, after)| Bin { label: self.label(edge(from), edge(to)), before, after })
            .collect();
        let before = self.before.is_some().then_some(self.missing.0);
        if size(before, self.missing.1) >= k {
            found.push(Bin { label: "missing".into(), before, after: self.missing.1 });
        }
        Histogram { bins: found, ordered: true }
    }

    /// What lies from one edge up to another.
    fn label(&self, from: f64, to: f64) -> String {
        let number = |position: f64| {
            let text = format!("{position:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match self.kind {
            Kind::Whole if to - from <= 1.0 => number(from),
            Kind::Whole => format!("{} to {}", number(from), number(to - 1.0)),
            Kind::Number => format!("{} to {}", number(from), number(to)),
            Kind::Time => {
                let unit = match self.step {
                    step if step < 28.0 => Unit::Day,
                    step if step < 360.0 => Unit::Month,
                    _ => Unit::Year,
                };
                // The middle of the day: edges of months are rounded to the nearest.
                let name = |position: f64| Period::of(unit, position + 0.5).to_string();
                format!("{} to {}", name(from), name(to))
            }
        }
    }
}

fn add(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a + b)
}

fn round_step(range: f64) -> f64 {
    let rough = range / LINE_BINS;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999).unwrap_or(rough)
}

/// Days of a bin: days, weeks, months, quarters, years and their multiples.
fn time_step(days: f64) -> f64 {
    let year = 365.2425;
    let steps = [1.0, 7.0, year / 12.0, year / 4.0, year, 2.0 * year, 5.0 * year, 10.0 * year, 50.0 * year];
    steps.into_iter().find(|step| days / step <= LINE_BINS).unwrap_or(days / LINE_BINS)
}

/// Rows by value or label.
#[derive(Debug, Clone, Default)]
pub(super) struct Categories {
    /// Rows of the source by value; none when it was not looked at.
    pub before: Option<BTreeMap<String, f64>>,
    /// Rows of the release by label.
    pub after: BTreeMap<String, f64>,
    /// Rows without a value.
    pub missing: (f64, f64),
}

/// What a published label stands for.
pub(super) enum Members {
    /// Any value.
    All,
    /// These.
    Some(Vec<String>),
}

impl Categories {
    /// The commonest values, the others together; what is rarer than k is not named.
    pub(super) fn finish(self, k: f64, members: impl Fn(&str) -> Members) -> Histogram {
        let compared = self.before.is_some();
        let known: BTreeMap<String, f64> = self.before.unwrap_or_else(|| self.after.clone());
        let mut shown: Vec<(&String, f64)> =
            known.iter().map(|(value, rows)| (value, *rows)).filter(|(_, rows)| *rows >= k).collect();
        shown.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        shown.truncate(CATEGORIES);
        let place: BTreeMap<&str, usize> =
            shown.iter().enumerate().map(|(at, (value, _))| (value.as_str(), at)).collect();
        let mut after = vec![0.0; shown.len() + 1];
        if compared {
            for (label, rows) in &self.after {
                let mut give = |value: &str, rows: f64| after[place.get(value).copied().unwrap_or(shown.len())] += rows;
                match members(label) {
                    Members::Some(values) => {
                        values.iter().for_each(|value| give(value, rows / values.len().max(1) as f64));
                    }
                    Members::All => known.keys().for_each(|value| give(value, rows / known.len().max(1) as f64)),
                }
            }
        } else {
            for (label, rows) in &self.after {
                after[place.get(label.as_str()).copied().unwrap_or(shown.len())] += rows;
            }
        }
        let total: f64 = known.values().sum();
        let rest = total - shown.iter().map(|(_, rows)| rows).sum::<f64>();
        let mut bins: Vec<Bin> = shown
            .iter()
            .zip(&after)
            .map(|((value, rows), after)| Bin {
                label: (*value).clone(),
                before: compared.then_some(*rows),
                after: *after,
            })
            .collect();
        if rest >= k {
            let others = known.len() - bins.len();
            let label = if others == 1 { "one other value".into() } else { format!("{others} other values") };
            bins.push(Bin { label, before: compared.then_some(rest), after: after[shown.len()] });
        }
        let missing = if compared { self.missing.0 } else { self.missing.1 };
        if missing >= k {
            bins.push(Bin { label: "missing".into(), before: compared.then_some(missing), after: self.missing.1 });
        }
        Histogram { bins, ordered: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_spread_over_what_they_cover() {
        let mut line = Line::new(0.0, 23.0, Kind::Number, true);
        (0..24).for_each(|n| line.add_before(f64::from(n), 10.0));
        line.add_after(0.0, 24.0, 240.0);
        let found = line.finish(5.0);
        assert_eq!(found.bins.len(), 24);
        assert!(found.bins.iter().all(|bin| bin.before == Some(10.0) && (bin.after - 10.0).abs() < 1e-9), "{found:?}");
        assert_eq!(found.bins[3].label, "3 to 4");
    }

    #[test]
    fn whole_numbers_are_not_cut_in_two() {
        let mut line = Line::new(1.0, 9.0, Kind::Whole, true);
        (1..10).for_each(|n| line.add_before(f64::from(n), 10.0));
        let labels: Vec<String> = line.finish(15.0).bins.into_iter().map(|bin| bin.label).collect();
        assert_eq!(labels, ["1 to 2", "3 to 4", "5 to 6", "7 to 9"]);
        let mut line = Line::new(1.0, 3.0, Kind::Whole, true);
        (1..4).for_each(|n| line.add_before(f64::from(n), 10.0));
        assert_eq!(line.finish(5.0).bins[1].label, "2");
    }

    #[test]
    fn rare_values_are_not_named() {
        let before =
            BTreeMap::from([("common".to_owned(), 90.0), ("secret".to_owned(), 1.0), ("rare".to_owned(), 9.0)]);
        let after = BTreeMap::from([("any".to_owned(), 100.0)]);
        let categories = Categories { before: Some(before), after, missing: (0.0, 0.0) };
        let found = categories.finish(10.0, |_| Members::All);
        let labels: Vec<&str> = found.bins.iter().map(|bin| bin.label.as_str()).collect();
        assert_eq!(labels, ["common", "2 other values"]);
        assert!((found.bins[0].after - 100.0 / 3.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_bin_of_the_source_is_small(values in prop::collection::vec(-1e3..1e5_f64, 1..300), k in 2..20_u32) {
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
            let mut line = Line::new(min, max, Kind::Number, true);
            values.iter().for_each(|value| line.add_before(*value, 1.0));
            let found = line.finish(f64::from(k));
            prop_assert!(found.bins.iter().all(|bin| bin.before.unwrap_or(0.0) >= f64::from(k)));
            let kept: f64 = found.bins.iter().filter_map(|bin| bin.before).sum();
            prop_assert!(kept == values.len() as f64 || values.len() < k as usize);
        }
    }
}
