//! Histograms that give nobody away: round edges, small bins merged, rare values together.
//!
//! What was before is counted; what is published is spread evenly over all that it covers, which is what a reader of
//! the release has to assume. No bin of the original holds fewer than k rows.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::DataType;

use crate::encode::is_time;
use crate::hierarchy::{Period, Unit, date_of, day_of};

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
    /// Dates and timestamps.
    Time,
    /// Times of a day.
    Clock,
}

impl Kind {
    /// The kind of the values of a type.
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Time32(_) | DataType::Time64(_) => Self::Clock,
            time if is_time(time) => Self::Time,
            whole if whole.is_integer() => Self::Whole,
            _ => Self::Number,
        }
    }
}

/// The distance of two edges.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// Numbers.
    Of(f64),
    /// Hours of a day.
    Hour,
    /// Days.
    Days(i64),
    /// Months, counted from January of the year 0.
    Months(i64),
}

impl Step {
    /// A round one, with which a range has a handful of bins.
    fn over(kind: Kind, range: f64) -> Self {
        match kind {
            Kind::Number => Self::Of(round_step(range)),
            Kind::Whole => Self::Of(round_step(range).max(1.0)),
            Kind::Clock => Self::Hour,
            Kind::Time => time_step(range),
        }
    }

    /// How many steps a position is from the origin, rounded down.
    fn count(self, position: f64) -> f64 {
        match self {
            Self::Of(step) if step < 1.0 => (position * (1.0 / step).round()).floor(),
            Self::Of(step) => (position / step).floor(),
            Self::Hour => (position * 24.0).floor(),
            Self::Days(days) => (position / days as f64).floor(),
            Self::Months(months) => {
                let (year, month, _) = date_of(Period::of(Unit::Day, position).start);
                (year * 12 + month - 1).div_euclid(months) as f64
            }
        }
    }

    /// The edge that is so many steps from the origin.
    fn edge(self, count: f64) -> f64 {
        match self {
            // Division by a whole number gives the decimal itself: 3 * 0.1 is not 0.3, 3 / 10 is.
            Self::Of(step) if step < 1.0 => count / (1.0 / step).round() + 0.0,
            Self::Of(step) => count * step + 0.0,
            Self::Hour => count / 24.0,
            Self::Days(days) => count * days as f64,
            Self::Months(months) => {
                let month = count as i64 * months;
                day_of(month.div_euclid(12), month.rem_euclid(12) + 1, 1) as f64
            }
        }
    }

    /// An edge in words.
    fn name(self, edge: f64) -> String {
        match self {
            Self::Of(_) => edge.to_string(),
            Self::Hour => format!("{:02}:00", (edge * 24.0).round()),
            Self::Days(_) => Period::of(Unit::Day, edge).to_string(),
            Self::Months(months) if months % 12 == 0 => Period::of(Unit::Year, edge).to_string(),
            Self::Months(_) => Period::of(Unit::Month, edge).to_string(),
        }
    }
}

/// Numbers or points in time in bins of one width, and what lies below and above them.
#[derive(Debug, Clone)]
pub(super) struct Line {
    kind: Kind,
    step: Step,
    /// Edges, ascending: bin `n` lies from edge `n - 1` up to edge `n`, bin 0 below all and the last above all.
    edges: Vec<f64>,
    before: Option<Vec<f64>>,
    after: Vec<f64>,
    missing: (f64, f64),
    /// Whether something published has no lower, or no upper, end.
    open: (bool, bool),
}

impl Line {
    /// Bins with round edges over a domain.
    pub(super) fn new(min: f64, max: f64, kind: Kind, compared: bool) -> Self {
        let step = Step::over(kind, if max > min { max - min } else { 1.0 });
        let first = step.count(min);
        let bins = (step.count(max) - first + 1.0).clamp(1.0, 4.0 * LINE_BINS) as usize;
        let edges: Vec<f64> = (0..=bins).map(|bin| step.edge(first + bin as f64)).collect();
        Self {
            kind,
            step,
            edges,
            before: compared.then(|| vec![0.0; bins + 2]),
            after: vec![0.0; bins + 2],
            missing: (0.0, 0.0),
            open: (false, false),
        }
    }

    fn bin(&self, position: f64) -> usize {
        self.edges.partition_point(|edge| *edge <= position)
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

    /// Published rows that lie from one position up to another; NaN is an open end.
    pub(super) fn add_after(&mut self, low: f64, high: f64, rows: f64) {
        let (from, to) = (self.edges[0], self.edges[self.edges.len() - 1]);
        if low.is_nan() != high.is_nan() {
            self.open = (self.open.0 || low.is_nan(), self.open.1 || high.is_nan());
        }
        let low = if low.is_nan() { from } else { low.max(from).min(to) };
        let high = if high.is_nan() { to } else { high.max(low).min(to) };
        let (first, last) = (self.bin(low).max(1), self.bin(high).min(self.edges.len() - 1));
        if high <= low {
            self.after[first.min(last)] += rows;
            return;
        }
        for bin in first..=last {
            let share = (self.edges[bin].min(high) - self.edges[bin - 1].max(low)) / (high - low);
            self.after[bin] += rows * share.max(0.0);
        }
    }

    /// Leaves out the outermost bins that nothing is published in.
    fn narrow(&mut self) {
        let used = |after: &f64| *after > 0.0;
        let Some(first) = self.after.iter().position(used) else { return };
        let last = self.after.iter().rposition(used).unwrap_or(first);
        let bins = self.after.len();
        let (first, last) = (first.max(1), last.min(bins - 2));
        let narrowed = |rows: &[f64]| {
            let inside = rows[first..=last].iter().copied();
            let (below, above): (f64, f64) = (rows[..first].iter().sum(), rows[last + 1..].iter().sum());
            [below].into_iter().chain(inside).chain([above]).collect::<Vec<f64>>()
        };
        self.before = self.before.as_deref().map(narrowed);
        self.after = narrowed(&self.after);
        self.edges = self.edges[first - 1..=last].to_vec();
    }

    /// The bins, neighbours merged until each has k rows.
    ///
    /// An outermost bin is named by both ends only where at least k rows of the source lie at its outer one: else the end
    /// would tell how far the few reach.
    pub(super) fn finish(mut self, k: f64) -> Histogram {
        self.narrow();
        let mut bins: Vec<(usize, usize, Option<f64>, f64)> = Vec::new();
        let size = |before: Option<f64>, after: f64| before.unwrap_or(after);
        let outside = self.after.len() - 1;
        for bin in 0..=outside {
            let (before, after) = (self.before.as_ref().map(|before| before[bin]), self.after[bin]);
            if (bin == 0 || bin == outside) && before.unwrap_or(0.0) + after <= 0.0 {
                continue;
            }
            match bins.last_mut() {
                Some(last) if size(last.2, last.3) < k => {
                    *last = (last.0, bin, add(last.2, before), last.3 + after);
                }
                _ => bins.push((bin, bin, before, after)),
            }
        }
        if bins.len() > 1
            && let Some(last) = bins.pop_if(|last| size(last.2, last.3) < k)
            && let Some(left) = bins.last_mut()
        {
            *left = (left.0, last.1, add(left.2, last.2), left.3 + last.3);
        }
        let few = |bin: usize| self.before.as_ref().is_some_and(|before| before[bin] < k);
        let ends = (bins.first().map(|bin| bin.0), bins.last().map(|bin| bin.1));
        let mut found: Vec<Bin> = Vec::new();
        for (first, last, before, after) in bins {
            if size(before, after) < k {
                continue;
            }
            let open_low = first == 0 || Some(first) == ends.0 && (self.open.0 || few(first));
            let open_high = last == outside || Some(last) == ends.1 && (self.open.1 || few(last));
            let from = (!open_low).then(|| self.edges[first - 1]);
            let to = (!open_high).then(|| self.edges[last]);
            found.push(Bin { label: self.label(from, to), before, after });
        }
        let before = self.before.is_some().then_some(self.missing.0);
        if size(before, self.missing.1) >= k {
            found.push(Bin { label: "missing".into(), before, after: self.missing.1 });
        }
        Histogram { bins: found, ordered: true }
    }

    /// What lies from one edge up to another, or beyond. Of whole numbers the last one is named, of others the edge.
    fn label(&self, from: Option<f64>, to: Option<f64>) -> String {
        let to = to.map(|to| if self.kind == Kind::Whole { to - 1.0 } else { to });
        let name = |edge: f64| self.step.name(edge);
        match (from, to) {
            (Some(from), Some(to)) if from >= to => name(from),
            (Some(from), Some(to)) => format!("{} to {}", name(from), name(to)),
            (None, Some(to)) => format!("until {}", name(to)),
            (Some(from), None) => format!("from {}", name(from)),
            (None, None) => "any value".into(),
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

/// Days, weeks, months, quarters, years and their multiples.
fn time_step(days: f64) -> Step {
    if let Some(step) = [1, 7].into_iter().find(|step| days / *step as f64 <= LINE_BINS) {
        return Step::Days(step);
    }
    let fits = |months: &i64| days / (*months as f64 * 365.2425 / 12.0) <= LINE_BINS;
    let years = (0..7).flat_map(|power| [1, 2, 5].map(|step| 12 * step * 10_i64.pow(power)));
    Step::Months([1, 3].into_iter().chain(years).find(fits).unwrap_or(12 * 10_i64.pow(7)))
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

    fn labels(found: &Histogram) -> Vec<&str> {
        found.bins.iter().map(|bin| bin.label.as_str()).collect()
    }

    fn before(found: &Histogram) -> Vec<f64> {
        found.bins.iter().filter_map(|bin| bin.before).collect()
    }

    fn day(text: &str) -> f64 {
        Period::parse(text).unwrap().start as f64
    }

    #[test]
    fn whole_numbers_are_not_cut_in_two() {
        let mut line = Line::new(1.0, 9.0, Kind::Whole, true);
        (1..10).for_each(|n| line.add_before(f64::from(n), 10.0));
        assert_eq!(labels(&line.finish(15.0)), ["until 2", "3 to 4", "5 to 6", "from 7"]);
        let mut line = Line::new(1.0, 3.0, Kind::Whole, true);
        (1..4).for_each(|n| line.add_before(f64::from(n), 10.0));
        assert_eq!(labels(&line.finish(5.0)), ["1", "2", "3"]);
        let mut line = Line::new(20.0, 119.0, Kind::Whole, true);
        (20..120).for_each(|n| line.add_before(f64::from(n), 10.0));
        assert_eq!(labels(&line.finish(30.0))[..2], ["20 to 24", "25 to 29"]);
    }

    /// A representative value of 4.4 stands for 4 and 5.
    #[test]
    fn what_lies_beyond_the_published_values_is_not_called_by_them() {
        let line = |fives: f64| {
            let mut line = Line::new(1.0, 4.4, Kind::Whole, true);
            (1..5).for_each(|n| line.add_before(f64::from(n), 10.0));
            line.add_before(5.0, fives);
            [1.0, 2.0, 3.0, 4.4].into_iter().for_each(|at| line.add_after(at, at, 10.0));
            line.finish(5.0)
        };
        assert_eq!(labels(&line(10.0)), ["1", "2", "3", "4", "from 5"]);
        assert_eq!(before(&line(10.0)), [10.0; 5]);
        assert_eq!(labels(&line(3.0)), ["1", "2", "3", "from 4"]);
        assert_eq!(before(&line(3.0)), [10.0, 10.0, 10.0, 13.0]);
        assert_eq!(labels(&line(0.0)), ["1", "2", "3", "4"]);
    }

    /// Published as [0, 2) up to [6, 8): neither 0 nor 7 nor 8 is a value.
    #[test]
    fn values_that_do_not_exist_are_not_named() {
        let mut line = Line::new(0.0, 8.0, Kind::Whole, true);
        (1..7).for_each(|n| line.add_before(f64::from(n), 10.0));
        [(0.0, 2.0, 10.0), (2.0, 4.0, 20.0), (4.0, 6.0, 20.0), (6.0, 8.0, 10.0)]
            .into_iter()
            .for_each(|(low, high, rows)| line.add_after(low, high, rows));
        let found = line.finish(5.0);
        assert_eq!(labels(&found), ["until 1", "2", "3", "4", "5", "from 6"]);
        assert!(found.bins.iter().all(|bin| bin.after == 10.0 && bin.before == Some(10.0)), "{found:?}");
        let mut line = Line::new(0.0, 8.0, Kind::Whole, false);
        line.add_after(0.0, 4.0, 40.0);
        line.add_after(4.0, 8.0, 40.0);
        assert_eq!(labels(&line.finish(5.0)), ["0", "1", "2", "3", "4", "5", "6", "7"], "as published, 8 is not");
    }

    #[test]
    fn an_extreme_that_few_share_is_not_told() {
        let mut line = Line::new(0.0, 24.0, Kind::Number, true);
        (2..20).for_each(|n| line.add_before(f64::from(n), 10.0));
        line.add_before(0.5, 1.0);
        line.add_before(23.5, 1.0);
        line.add_before(1e9, 1.0);
        line.add_after(0.0, 24.0, 183.0);
        let found = line.finish(5.0);
        assert_eq!((labels(&found)[0], labels(&found)[17]), ("until 3", "from 19"));
        assert_eq!(before(&found).iter().sum::<f64>(), 183.0);
        let mut line = Line::new(0.0, 24.0, Kind::Number, true);
        line.add_before(3.0, 2.0);
        line.add_before(9.0, 4.0);
        assert_eq!(labels(&line.finish(5.0)), ["any value"]);
    }

    #[test]
    fn open_ends_stay_open() {
        let mut line = Line::new(10.0, 20.0, Kind::Whole, false);
        line.add_after(10.0, 20.0, 100.0);
        line.add_after(20.0, f64::NAN, 50.0);
        let found = line.finish(5.0);
        assert_eq!((labels(&found)[0], labels(&found)[10]), ("10", "from 20"));
    }

    #[test]
    fn edges_are_the_decimals_that_they_are_named() {
        let mut line = Line::new(0.0, 0.99, Kind::Number, true);
        (0..100).for_each(|n| line.add_before(f64::from(n) / 100.0, 1.0));
        let found = line.finish(4.0);
        assert_eq!(labels(&found)[..3], ["0 to 0.05", "0.05 to 0.1", "0.1 to 0.15"]);
        assert_eq!(before(&found), [5.0; 20]);
        let mut line = Line::new(-1e-7, 1e-7, Kind::Number, true);
        line.add_before(-1e-7, 9.0);
        line.add_before(1e-8, 9.0);
        assert_eq!(labels(&line.finish(5.0)), ["-0.0000001 to -0.00000009", "from -0.00000009"]);
    }

    #[test]
    fn dates_tile() {
        let mut line = Line::new(day("1975-06-01"), day("2035"), Kind::Time, true);
        line.add_before(day("1927-03-04"), 1.0);
        (1975..2026).for_each(|year| line.add_before(day(&format!("{year}-01-01")), 10.0));
        line.add_after(day("1975-06-01"), day("2035"), 511.0);
        let found = line.finish(5.0);
        let expected = ["until 1980", "1980 to 1985", "1985 to 1990", "1990 to 1995", "1995 to 2000", "2000 to 2005"];
        assert_eq!(labels(&found)[..6], expected);
        assert_eq!(labels(&found)[6..], ["2005 to 2010", "2010 to 2015", "2015 to 2020", "2020 to 2025", "from 2025"]);
        assert_eq!(before(&found)[..3], [51.0, 50.0, 50.0]);
    }

    #[test]
    fn months_days_and_hours() {
        let mut line = Line::new(day("2023-11-15"), day("2024-02-29"), Kind::Time, true);
        (0..107).for_each(|n| line.add_before(day("2023-11-15") + f64::from(n), 10.0));
        assert_eq!(labels(&line.finish(5.0))[..2], ["2023-11-09 to 2023-11-16", "2023-11-16 to 2023-11-23"]);
        let mut line = Line::new(day("2023-01-15"), day("2024-12-31"), Kind::Time, true);
        (0..717).for_each(|n| line.add_before(day("2023-01-15") + f64::from(n), 1.0));
        let found = line.finish(5.0);
        assert_eq!(labels(&found)[..2], ["2023-01 to 2023-02", "2023-02 to 2023-03"]);
        assert_eq!(before(&found)[..2], [17.0, 28.0]);
        let mut line = Line::new(8.25 / 24.0, 18.0 / 24.0, Kind::Clock, true);
        [8.25, 9.0, 9.5, 18.0].into_iter().for_each(|hour| line.add_before(hour / 24.0, 10.0));
        let found = line.finish(5.0);
        assert_eq!(labels(&found), ["08:00 to 09:00", "09:00 to 10:00", "10:00 to 19:00"]);
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
        fn no_bin_of_the_source_is_small(
            values in prop::collection::vec(-1e3..1e5_f64, 1..300),
            k in 2..20_u32,
            kind in prop::sample::select(vec![Kind::Number, Kind::Whole, Kind::Time]),
            narrow in 0.1..1.0_f64,
        ) {
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
            let mut line = Line::new(min * narrow, max * narrow, kind, true);
            values.iter().for_each(|value| line.add_before(*value, 1.0));
            line.add_after(min * narrow, max * narrow, values.len() as f64);
            let found = line.finish(f64::from(k));
            prop_assert!(found.bins.iter().all(|bin| bin.before.unwrap_or(0.0) >= f64::from(k)));
            let kept: f64 = found.bins.iter().filter_map(|bin| bin.before).sum();
            prop_assert!(kept == values.len() as f64 || values.len() < k as usize);
        }
    }
}
