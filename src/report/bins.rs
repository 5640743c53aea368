//! Histograms that give nobody away: round edges, small bins merged, rare values together.
//!
//! What is published is spread evenly over all that it covers, which is what a reader of the release has to assume. No bin
//! holds fewer than k rows.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::DataType;

use crate::binding::is_time;
use crate::hierarchy::{Period, Unit, date_of, day_of};

/// One bin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bin {
    /// What falls into it.
    pub label: String,
    /// Rows of the release, spread over what they cover.
    pub rows: f64,
}

/// Bins of one column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Histogram {
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
    pub(super) fn of_type(data_type: &DataType) -> Self {
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
    fn over_range(kind: Kind, range: f64) -> Self {
        match kind {
            Kind::Number => Self::Of(round_step(range)),
            Kind::Whole => Self::Of(round_step(range).max(1.0)),
            Kind::Clock => Self::Hour,
            Kind::Time => time_step(range),
        }
    }

    /// How many steps a position is from the origin, rounded down.
    fn steps_to(self, position: f64) -> f64 {
        match self {
            Self::Of(step) if step < 1.0 => (position * (1.0 / step).round()).floor(),
            Self::Of(step) => (position / step).floor(),
            Self::Hour => (position * 24.0).floor(),
            Self::Days(days) => (position / days as f64).floor(),
            Self::Months(months) => {
                let (year, month, _) = date_of(Period::period_at(Unit::Day, position).start);
                (year * 12 + month - 1).div_euclid(months) as f64
            }
        }
    }

    /// The edge a number of steps from the origin.
    fn edge_at(self, count: f64) -> f64 {
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
    fn edge_name(self, edge: f64) -> String {
        match self {
            Self::Of(_) => edge.to_string(),
            Self::Hour => format!("{:02}:00", (edge * 24.0).round()),
            Self::Days(_) => Period::period_at(Unit::Day, edge).to_string(),
            Self::Months(months) if months % 12 == 0 => Period::period_at(Unit::Year, edge).to_string(),
            Self::Months(_) => Period::period_at(Unit::Month, edge).to_string(),
        }
    }
}

/// Numbers or points in time in bins of one width, and what lies below and above them.
#[derive(Debug, Clone)]
pub(super) struct OrdinalBins {
    kind: Kind,
    step: Step,
    /// Edges, ascending: bin `n` lies from edge `n - 1` up to edge `n`, bin 0 below all and the last above all.
    edges: Vec<f64>,
    rows: Vec<f64>,
    missing: f64,
    /// Whether something published has no lower, or no upper, end.
    open: (bool, bool),
}

impl OrdinalBins {
    /// Bins with round edges over a domain.
    pub(super) fn new(min: f64, max: f64, kind: Kind) -> Self {
        let step = Step::over_range(kind, if max > min { max - min } else { 1.0 });
        let first = step.steps_to(min);
        let bins = (step.steps_to(max) - first + 1.0).clamp(1.0, 4.0 * LINE_BINS) as usize;
        let edges: Vec<f64> = (0..=bins).map(|bin| step.edge_at(first + bin as f64)).collect();
        Self { kind, step, edges, rows: vec![0.0; bins + 2], missing: 0.0, open: (false, false) }
    }

    fn bin_of(&self, position: f64) -> usize {
        self.edges.partition_point(|edge| *edge <= position)
    }

    /// Published rows that may be missing values.
    pub(super) fn add_missing(&mut self, rows: f64) {
        self.missing += rows;
    }

    /// Published rows that lie from one position up to another; NaN is an open end.
    pub(super) fn add_rows(&mut self, low: f64, high: f64, rows: f64) {
        let (from, to) = (self.edges[0], self.edges[self.edges.len() - 1]);
        if low.is_nan() != high.is_nan() {
            self.open = (self.open.0 || low.is_nan(), self.open.1 || high.is_nan());
        }
        let low = if low.is_nan() { from } else { low.max(from).min(to) };
        let high = if high.is_nan() { to } else { high.max(low).min(to) };
        let (first, last) = (self.bin_of(low).max(1), self.bin_of(high).min(self.edges.len() - 1));
        if high <= low {
            self.rows[first.min(last)] += rows;
            return;
        }
        for bin in first..=last {
            let share = (self.edges[bin].min(high) - self.edges[bin - 1].max(low)) / (high - low);
            self.rows[bin] += rows * share.max(0.0);
        }
    }

    /// Leaves out the outermost bins that nothing is published in.
    fn trim_empty_bins(&mut self) {
        let used = |rows: &f64| *rows > 0.0;
        let Some(first) = self.rows.iter().position(used) else { return };
        let last = self.rows.iter().rposition(used).unwrap_or(first);
        let bins = self.rows.len();
        let (first, last) = (first.max(1), last.min(bins - 2));
        let inside = self.rows[first..=last].iter().copied();
        let (below, above): (f64, f64) = (self.rows[..first].iter().sum(), self.rows[last + 1..].iter().sum());
        self.rows = [below].into_iter().chain(inside).chain([above]).collect();
        self.edges = self.edges[first - 1..=last].to_vec();
    }

    /// The bins, neighbours merged until each has k rows.
    pub(super) fn finish(mut self, k: f64) -> Histogram {
        self.trim_empty_bins();
        let mut bins: Vec<(usize, usize, f64)> = Vec::new();
        let outside = self.rows.len() - 1;
        for bin in 0..=outside {
            let rows = self.rows[bin];
            if (bin == 0 || bin == outside) && rows <= 0.0 {
                continue;
            }
            match bins.last_mut() {
                Some(last) if last.2 < k => *last = (last.0, bin, last.2 + rows),
                _ => bins.push((bin, bin, rows)),
            }
        }
        if bins.len() > 1
            && let Some(last) = bins.pop_if(|last| last.2 < k)
            && let Some(left) = bins.last_mut()
        {
            *left = (left.0, last.1, left.2 + last.2);
        }
        let ends = (bins.first().map(|bin| bin.0), bins.last().map(|bin| bin.1));
        let mut found: Vec<Bin> = Vec::new();
        for (first, last, rows) in bins.into_iter().filter(|bin| bin.2 >= k) {
            let open_low = first == 0 || Some(first) == ends.0 && self.open.0;
            let open_high = last == outside || Some(last) == ends.1 && self.open.1;
            let from = (!open_low).then(|| self.edges[first - 1]);
            let to = (!open_high).then(|| self.edges[last]);
            found.push(Bin { label: self.bin_label(from, to), rows });
        }
        if self.missing >= k {
            found.push(Bin { label: "missing".into(), rows: self.missing });
        }
        Histogram { bins: found, ordered: true }
    }

    /// What lies from one edge up to another, or beyond. Of whole numbers the last one is named, of others the edge.
    fn bin_label(&self, from: Option<f64>, to: Option<f64>) -> String {
        let to = to.map(|to| if self.kind == Kind::Whole { to - 1.0 } else { to });
        let name = |edge: f64| self.step.edge_name(edge);
        match (from, to) {
            (Some(from), Some(to)) if from >= to => name(from),
            (Some(from), Some(to)) => format!("{} to {}", name(from), name(to)),
            (None, Some(to)) => format!("until {}", name(to)),
            (Some(from), None) => format!("from {}", name(from)),
            (None, None) => "any value".into(),
        }
    }
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
    /// Rows by label.
    pub rows: BTreeMap<String, f64>,
    /// Rows without a value.
    pub missing: f64,
}

impl Categories {
    /// The commonest labels, the others together; what is rarer than k is not named.
    pub(super) fn finish(self, k: f64) -> Histogram {
        let mut shown: Vec<(&String, f64)> =
            self.rows.iter().map(|(label, rows)| (label, *rows)).filter(|(_, rows)| *rows >= k).collect();
        shown.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        shown.truncate(CATEGORIES);
        let rest = self.rows.values().sum::<f64>() - shown.iter().map(|(_, rows)| rows).sum::<f64>();
        let mut bins: Vec<Bin> = shown.into_iter().map(|(label, rows)| Bin { label: label.clone(), rows }).collect();
        if rest >= k {
            let others = self.rows.len() - bins.len();
            let label = if others == 1 { "one other value".into() } else { format!("{others} other values") };
            bins.push(Bin { label, rows: rest });
        }
        if self.missing >= k {
            bins.push(Bin { label: "missing".into(), rows: self.missing });
        }
        Histogram { bins, ordered: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(min: f64, max: f64, kind: Kind, rows: impl IntoIterator<Item = (f64, f64)>) -> OrdinalBins {
        let mut line = OrdinalBins::new(min, max, kind);
        rows.into_iter().for_each(|(at, rows)| line.add_rows(at, at, rows));
        line
    }

    fn labels(found: &Histogram) -> Vec<&str> {
        found.bins.iter().map(|bin| bin.label.as_str()).collect()
    }

    fn rows(found: &Histogram) -> Vec<f64> {
        found.bins.iter().map(|bin| bin.rows).collect()
    }

    fn day(text: &str) -> f64 {
        Period::parse(text).unwrap().start as f64
    }

    #[test]
    fn ranges_are_spread_over_what_they_cover() {
        let mut line = OrdinalBins::new(0.0, 23.0, Kind::Number);
        line.add_rows(0.0, 24.0, 240.0);
        let found = line.finish(5.0);
        assert_eq!(found.bins.len(), 24);
        assert!(found.bins.iter().all(|bin| (bin.rows - 10.0).abs() < 1e-9), "{found:?}");
        assert_eq!(found.bins[3].label, "3 to 4");
    }

    #[test]
    fn whole_numbers_are_not_cut_in_two() {
        let of = |from: i32, to: i32| line(from.into(), to.into(), Kind::Whole, (from..=to).map(|n| (n.into(), 10.0)));
        assert_eq!(labels(&of(1, 9).finish(15.0)), ["1 to 2", "3 to 4", "5 to 6", "7 to 9"]);
        assert_eq!(labels(&of(1, 3).finish(5.0)), ["1", "2", "3"]);
        assert_eq!(labels(&of(20, 119).finish(30.0))[..2], ["20 to 24", "25 to 29"]);
        let mut line = OrdinalBins::new(0.0, 8.0, Kind::Whole);
        line.add_rows(0.0, 4.0, 40.0);
        line.add_rows(4.0, 8.0, 40.0);
        assert_eq!(labels(&line.finish(5.0)), ["0", "1", "2", "3", "4", "5", "6", "7"], "as published, 8 is not");
    }

    #[test]
    fn small_bins_are_merged_and_few_rows_are_not_shown() {
        let found = line(0.0, 24.0, Kind::Number, [(3.0, 2.0), (9.0, 4.0)]).finish(5.0);
        assert_eq!((labels(&found), rows(&found)), (vec!["3 to 10"], vec![6.0]));
        assert_eq!(line(0.0, 24.0, Kind::Number, [(3.0, 2.0)]).finish(5.0).bins, []);
    }

    #[test]
    fn open_ends_stay_open() {
        let mut line = OrdinalBins::new(10.0, 20.0, Kind::Whole);
        line.add_rows(10.0, 20.0, 100.0);
        line.add_rows(20.0, f64::NAN, 50.0);
        let found = line.finish(5.0);
        assert_eq!((labels(&found)[0], labels(&found)[10]), ("10", "from 20"));
    }

    #[test]
    fn edges_are_the_decimals_that_they_are_named() {
        let found = line(0.0, 0.99, Kind::Number, (0..100).map(|n| (f64::from(n) / 100.0, 1.0))).finish(4.0);
        assert_eq!(labels(&found)[..3], ["0 to 0.05", "0.05 to 0.1", "0.1 to 0.15"]);
        assert_eq!(rows(&found), [5.0; 20]);
        let found = line(-1e-7, 1e-7, Kind::Number, [(-1e-7, 9.0), (1e-8, 9.0)]).finish(5.0);
        assert_eq!(labels(&found), ["-0.0000001 to -0.00000009", "-0.00000009 to 0.00000002"]);
    }

    #[test]
    fn dates_tile() {
        let mut line = OrdinalBins::new(day("1975-06-01"), day("2035"), Kind::Time);
        line.add_rows(day("1975-06-01"), day("2035"), 511.0);
        let found = line.finish(5.0);
        let expected = ["1975 to 1980", "1980 to 1985", "1985 to 1990", "1990 to 1995", "1995 to 2000", "2000 to 2005"];
        assert_eq!(labels(&found)[..6], expected);
        assert!((rows(&found).iter().sum::<f64>() - 511.0).abs() < 1e-6);
    }

    #[test]
    fn months_days_and_hours() {
        let days = |from: &str, days: i32, rows: f64| {
            let from = day(from);
            (0..days).map(move |n| (from + f64::from(n), rows))
        };
        let weeks = line(day("2023-11-15"), day("2024-02-29"), Kind::Time, days("2023-11-15", 107, 10.0)).finish(5.0);
        assert_eq!(labels(&weeks)[..2], ["2023-11-09 to 2023-11-16", "2023-11-16 to 2023-11-23"]);
        let months = line(day("2023-01-15"), day("2024-12-31"), Kind::Time, days("2023-01-15", 717, 1.0)).finish(5.0);
        assert_eq!(labels(&months)[..2], ["2023-01 to 2023-02", "2023-02 to 2023-03"]);
        assert_eq!(rows(&months)[..2], [17.0, 28.0]);
        let hours = [8.25, 9.0, 9.5, 18.0].map(|hour| (hour / 24.0, 10.0));
        let found = line(8.25 / 24.0, 18.0 / 24.0, Kind::Clock, hours).finish(5.0);
        assert_eq!(labels(&found), ["08:00 to 09:00", "09:00 to 10:00", "10:00 to 19:00"]);
    }

    #[test]
    fn rare_values_are_not_named() {
        let rows = [("common", 90.0), ("secret", 1.0), ("rare", 9.0)].map(|(label, rows)| (label.to_owned(), rows));
        let found = Categories { rows: rows.into(), missing: 9.0 }.finish(10.0);
        assert_eq!(labels(&found), ["common", "2 other values"]);
    }

    proptest! {
        #[test]
        fn no_bin_is_small(
            values in prop::collection::vec(-1e3..1e5_f64, 1..300),
            k in 2..20_u32,
            kind in prop::sample::select(vec![Kind::Number, Kind::Whole, Kind::Time]),
        ) {
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
            let found = line(min, max, kind, values.iter().map(|&value| (value, 1.0))).finish(f64::from(k));
            prop_assert!(found.bins.iter().all(|bin| bin.rows >= f64::from(k)));
            let kept: f64 = rows(&found).iter().sum();
            prop_assert!(kept == values.len() as f64 || values.len() < k as usize);
        }
    }
}
