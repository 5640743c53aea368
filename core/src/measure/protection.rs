//! Protection of sensitive values: S-diversity and MPM (Loukides, chapter 3), range diversity and WGP (chapter 5), and
//! the two scores that weigh protection against loss, mr_wtd and gd.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Sum, mean};
use crate::model::{Sensitive, SensitiveShape, wire};
use crate::privacy::is_within_bound;

/// S-diversity of a group with this histogram of `(code, count)`, ascending by code: 1 minus the share of the domain
/// that its values span. Small is well protected; 1 for a single value (and for no rows).
pub fn s_diversity(histogram: &[(u32, u32)], sensitive: &Sensitive) -> f64 {
    match (histogram.first(), histogram.last()) {
        (Some(&(lo, _)), Some(&(hi, _))) => 1.0 - sensitive.spread(lo, hi, histogram.len() as u32),
        _ => 1.0,
    }
}

/// Max-range weighted tuple diversity (def. 3.2.1): `w_u` times the loss plus `1 - w_u` times the mean S-diversity. Of
/// UM and MPM it gives the mean over groups, the trade-off that TOC seeks to lower.
pub fn mr_wtd(w_u: f64, loss: f64, s_diversity: f64) -> f64 {
    w_u * loss + (1.0 - w_u) * s_diversity
}

/// Group diversity (def. 5.2.4): loss and range diversity, half and half.
pub fn group_diversity(loss: f64, range_diversity: f64) -> f64 {
    0.5 * loss + 0.5 * range_diversity
}

/// The span of sensitive values of a growing group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    ends: Option<(u32, u32)>,
    /// Distinct codes, ascending; kept for categories without a hierarchy only.
    codes: Vec<u32>,
}

impl Span {
    /// A row joins.
    pub fn add_code(&mut self, code: u32, sensitive: &Sensitive) {
        let (lo, hi) = self.ends.unwrap_or((code, code));
        self.ends = Some((lo.min(code), hi.max(code)));
        if matches!(sensitive.shape, SensitiveShape::Set { .. })
            && let Err(at) = self.codes.binary_search(&code)
        {
            self.codes.insert(at, code);
        }
    }

    /// S-diversity now.
    pub fn s_diversity(&self, sensitive: &Sensitive) -> f64 {
        self.ends.map_or(1.0, |(lo, hi)| 1.0 - sensitive.spread(lo, hi, self.codes.len() as u32))
    }

    /// S-diversity if a row with this code joined.
    pub fn s_diversity_with(&self, code: u32, sensitive: &Sensitive) -> f64 {
        let (lo, hi) = self.ends.unwrap_or((code, code));
        let distinct = self.codes.len() + usize::from(self.codes.binary_search(&code).is_err());
        1.0 - sensitive.spread(lo.min(code), hi.max(code), distinct as u32)
    }
}

/// Protection of groups, over all sensitive columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protection {
    groups: u64,
    rows: u64,
    columns: usize,
    spreads: Sum,
    disclosures: Sum,
    disclosures_by_row: Sum,
    #[serde(with = "wire::bits")]
    worst_disclosure: f64,
    #[serde(with = "wire::bits")]
    worst_gd: f64,
    /// Rows of groups by their worst range diversity, in hundredths, rounded up.
    #[serde(with = "wire::pairs")]
    by_disclosure: BTreeMap<u8, u64>,
    /// The bound above which a row counts as unprotected, and how many do.
    #[serde(with = "wire::optional_bits")]
    bound: Option<f64>,
    unprotected: u64,
}

impl Protection {
    /// Creates an empty accumulator for a number of sensitive columns.
    pub fn new(columns: usize) -> Self {
        Self {
            groups: 0,
            rows: 0,
            columns,
            spreads: Sum::default(),
            disclosures: Sum::default(),
            disclosures_by_row: Sum::default(),
            worst_disclosure: 0.0,
            worst_gd: 0.0,
            by_disclosure: BTreeMap::new(),
            bound: None,
            unprotected: 0,
        }
    }

    /// Counts the rows of groups whose range diversity is above a bound.
    pub fn with_bound(self, bound: Option<f64>) -> Self {
        Self { bound, ..self }
    }

    /// Adds a group: its rows, its mean loss, and per sensitive column its spread (1 minus S-diversity) and its range
    /// diversity.
    pub fn add_group(&mut self, rows: u64, loss: f64, spreads: &[f64], disclosures: &[f64]) {
        assert!(spreads.len() == self.columns && disclosures.len() == self.columns, "one score per sensitive column");
        self.groups += 1;
        self.rows += rows;
        spreads.iter().for_each(|&spread| self.spreads.add_fraction(spread, 1));
        for &disclosure in disclosures {
            self.disclosures.add_fraction(disclosure, 1);
            self.disclosures_by_row.add_fraction(disclosure, rows);
            self.worst_disclosure = self.worst_disclosure.max(disclosure);
        }
        self.worst_gd = self.worst_gd.max(group_diversity(loss, mean(disclosures)));
        if let Some(worst) = disclosures.iter().copied().max_by(f64::total_cmp) {
            *self.by_disclosure.entry((worst * 100.0 - 1e-9).ceil() as u8).or_default() += rows;
            self.unprotected += if self.bound.is_some_and(|bound| !is_within_bound(worst, bound)) { rows } else { 0 };
        }
    }

    /// Adds the groups of another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.groups += other.groups;
        self.rows += other.rows;
        self.spreads.merge(other.spreads);
        self.disclosures.merge(other.disclosures);
        self.disclosures_by_row.merge(other.disclosures_by_row);
        self.worst_disclosure = self.worst_disclosure.max(other.worst_disclosure);
        self.worst_gd = self.worst_gd.max(other.worst_gd);
        other.by_disclosure.iter().for_each(|(&of, &rows)| *self.by_disclosure.entry(of).or_default() += rows);
        self.bound = self.bound.or(other.bound);
        self.unprotected += other.unprotected;
    }

    /// The share of rows in groups whose range diversity is above the bound; `None` without a bound, rows or sensitive
    /// columns.
    pub fn unprotected_share(&self) -> Option<f64> {
        let counted = self.bound.is_some() && self.rows > 0 && self.columns > 0;
        counted.then(|| self.unprotected as f64 / self.rows as f64)
    }

    /// Whether a range diversity is within the bound; `None` without a bound.
    pub fn is_protected(&self, range_diversity: f64) -> Option<bool> {
        self.bound.map(|bound| is_within_bound(range_diversity, bound))
    }

    /// Range diversity of the rows: `(hundredths, rounded up; rows)`, ascending.
    pub fn by_disclosure(&self) -> impl Iterator<Item = (u8, u64)> {
        self.by_disclosure.iter().map(|(&of, &rows)| (of, rows))
    }

    /// Max-range protection measure: mean S-diversity over groups and sensitive columns; `None` without either.
    pub fn mpm(&self) -> Option<f64> {
        self.per_group(self.spreads).map(|spread| 1.0 - spread)
    }

    /// Mean range diversity over groups and sensitive columns; `None` without either.
    pub fn mean_rd(&self) -> Option<f64> {
        self.per_group(self.disclosures)
    }

    /// Mean range diversity over rows and sensitive columns: what a row can expect; `None` without either.
    pub fn mean_rd_of_a_row(&self) -> Option<f64> {
        let terms = self.rows as f64 * self.columns as f64;
        (terms > 0.0).then(|| self.disclosures_by_row.value() / terms)
    }

    /// Worst-group protection: the largest range diversity of any group; `None` without groups or sensitive columns.
    pub fn wgp(&self) -> Option<f64> {
        (self.groups > 0 && self.columns > 0).then_some(self.worst_disclosure)
    }

    /// The largest group diversity of any group; `None` without groups.
    pub fn worst_gd(&self) -> Option<f64> {
        (self.groups > 0).then_some(self.worst_gd)
    }

    fn per_group(&self, sum: Sum) -> Option<f64> {
        let terms = self.groups as f64 * self.columns as f64;
        (terms > 0.0).then(|| sum.value() / terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::model::Table;
    use crate::privacy::GroupView;

    fn mpm(table: &Table, groups: &[&[u32]]) -> f64 {
        let column = &table.sensitive[0];
        let mut protection = Protection::new(1);
        for group in groups {
            let histogram = GroupView::new(table, group).histogram(column);
            protection.add_group(group.len() as u64, 0.0, &[1.0 - s_diversity(&histogram, column)], &[0.0]);
        }
        protection.mpm().unwrap()
    }

    /// Of table 3.3 the thesis prints 1/6, having overlooked a salary of 40; the formula gives 0.
    #[test]
    fn loukides_g1_mpm_of_tables_3_2_and_3_3() {
        let table = fixtures::table_3_1();
        assert!((mpm(&table, &[&[0, 1, 2, 3], &[4, 5, 6, 7]]) - 2.0 / 3.0).abs() < 1e-12);
        assert!(mpm(&table, &[&[0, 1, 4, 5], &[2, 3, 6, 7]]).abs() < 1e-12);
    }

    #[test]
    fn loukides_tables_3_6_and_3_10_mpm() {
        let table = fixtures::table_3_5();
        assert_eq!(mpm(&table, &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]), 1.0);
        assert_eq!(mpm(&table, &[&[0, 2], &[1, 3], &[4, 6], &[5, 7]]), 0.0);
    }

    #[test]
    fn growing_spans_equal_the_definition() {
        let mut set = fixtures::income(&[1.0, 2.0, 3.0, 4.0], &[]);
        set.shape = SensitiveShape::Set { values: 5 };
        let mut span = Span::default();
        assert_eq!(span.s_diversity(&set), 1.0);
        for (code, expected) in [(3, 1.0), (0, 0.75), (3, 0.75), (2, 0.5)] {
            assert_eq!(span.s_diversity_with(code, &set), expected);
            span.add_code(code, &set);
            assert_eq!(span.s_diversity(&set), expected);
        }
        assert_eq!(s_diversity(&[(0, 1), (2, 1), (3, 2)], &set), 0.5);
    }

    #[test]
    fn loukides_share_of_unprotected_rows() {
        let mut protection = Protection::new(1).with_bound(Some(0.5));
        protection.add_group(3, 0.0, &[0.0], &[0.5]);
        protection.add_group(1, 0.0, &[0.0], &[0.711]);
        let mut other = Protection::new(1).with_bound(Some(0.5));
        other.add_group(4, 0.0, &[0.0], &[0.3316]);
        protection.merge(&other);
        assert_eq!(protection.unprotected_share(), Some(1.0 / 8.0));
        assert_eq!(protection.by_disclosure().collect::<Vec<_>>(), [(34, 4), (50, 3), (72, 1)]);
        assert_eq!(Protection::new(1).unprotected_share(), None);
    }

    #[test]
    fn worst_scores_are_maxima_over_groups() {
        let mut protection = Protection::new(2);
        assert_eq!((protection.wgp(), protection.mpm(), protection.worst_gd()), (None, None, None));
        protection.add_group(3, 0.2, &[1.0, 0.5], &[0.5, 0.25]);
        protection.add_group(1, 0.6, &[0.5, 0.0], &[0.75, 0.25]);
        assert_eq!(protection.wgp(), Some(0.75));
        assert_eq!(protection.mpm(), Some(0.5));
        assert_eq!(protection.mean_rd(), Some(1.75 / 4.0));
        assert_eq!(protection.mean_rd_of_a_row(), Some((3.0 * 0.75 + 1.0) / 8.0));
        assert_eq!(protection.worst_gd(), Some(0.3 + 0.25));
    }
}
