//! The bound P: how surely the sensitive range of a group's members may be inferred (Loukides, chapter 5).
//!
//! Every sensitive value u has a range SR(u) whose disclosure would hurt as much as that of u itself. In a group of
//! `|G|` rows where value x occurs f(x) times,
//!
//! - pc(u, x) = 1 - distance of u and x as a share of the domain: [`Sensitive::closeness`] (def. 5.1.2);
//! - dc(u) = f(u) * sum of f(x) * pc(u, x) over the values x in SR(u), / `|G|`: [`disclosure_confidence`] (def. 5.1.3);
//! - rd(G) = sum of dc(u) over the values u of the group, / `|G|`: [`range_diversity`] (def. 5.1.4), in `[1/|G|, 1]`.
//!
//! The same as a mean over ordered pairs of rows: rd = N / `|G|`^2, where N counts each pair (t, t') with t' in SR(t)
//! by its closeness. N grows by one [`affinity`] per member when a row joins, which is what [`GroupDiversity`] (any group) and
//! [`Forecast`] (every candidate of a growing group at once) keep.

use std::sync::Arc;

use super::{RuleRecord, SensitiveRule, Setting, is_within_bound};
use crate::model::{Sensitive, SensitiveShape};

/// Bounds the range diversity of every group on one sensitive column. Without ranges it bounds value disclosure.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeDiversity {
    /// The sensitive column.
    pub column: String,
    /// P, in `[0, 1]`.
    pub bound: f64,
}

impl RangeDiversity {
    /// Fewest rows of any group that can meet the bound: range diversity is never below 1 / rows. `None` if no group
    /// can.
    pub fn fewest_rows(&self) -> Option<usize> {
        (self.bound > 0.0).then(|| (1.0 / self.bound - 1e-9).ceil().max(1.0) as usize)
    }
}

impl SensitiveRule for RangeDiversity {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        RuleRecord::on_column("range-diversity", &self.column).with_parameter("p", self.bound)
    }

    fn breach(&self) -> String {
        format!("disclose a range of `{}` more surely than p = {}", self.column, self.bound)
    }

    fn allows_histogram(&self, histogram: &[(u32, u32)], column: &Sensitive) -> bool {
        is_within_bound(range_diversity(histogram, column), self.bound)
    }

    fn excess(&self, histogram: &[(u32, u32)], column: &Sensitive) -> Option<f64> {
        Some(range_diversity(histogram, column) - self.bound)
    }

    fn ready(&self, _setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        Arc::new(self.clone())
    }
}

/// dc: how surely the range of value `u` is disclosed in a group with this histogram of `(code, count)`, ascending by
/// code; 0 when the group does not hold the value.
pub fn disclosure_confidence(u: u32, histogram: &[(u32, u32)], sensitive: &Sensitive) -> f64 {
    weight_in_range(u, histogram, sensitive) / count_rows(histogram)
}

/// rd: range diversity of a group with this histogram of `(code, count)`, ascending by code; 0 of no rows.
pub fn range_diversity(histogram: &[(u32, u32)], sensitive: &Sensitive) -> f64 {
    let summed = if histogram.len() < LONG { None } else { pairs_by_sums(histogram, sensitive) };
    let each = || histogram.iter().map(|&(u, _)| weight_in_range(u, histogram, sensitive)).sum();
    let pairs: f64 = summed.unwrap_or_else(each);
    if histogram.is_empty() { 0.0 } else { pairs / (count_rows(histogram) * count_rows(histogram)) }
}

/// Values from which on pairs of numbers are summed in one pass: looking at all values in the range of each of them takes the
/// longer the more rows there are.
const LONG: usize = 256;

/// N of numbers, in time that grows linearly: closeness falls linearly with distance, so sums of counts and of counted
/// positions on both sides of a value are enough. `None` where it does not.
fn pairs_by_sums(histogram: &[(u32, u32)], sensitive: &Sensitive) -> Option<f64> {
    let SensitiveShape::Number { at, min, max } = &sensitive.shape else { return None };
    let is_number = |code: u32| sensitive.null != Some(code) && at.get(code as usize).is_some_and(|at| at.is_finite());
    let numbers: Vec<(u32, u32)> = histogram.iter().copied().filter(|&(code, _)| is_number(code)).collect();
    let (first, last) = (at[numbers.first()?.0 as usize], at[numbers.last()?.0 as usize]);
    let width = max - min;
    if !(width > 0.0 && width.is_finite() && last - first <= width) {
        return None;
    }
    let position = |code: u32| (at[code as usize] - first) / width;
    let (mut counts, mut sums) = (vec![0.0], vec![0.0]);
    let (mut count, mut sum) = (0.0, 0.0);
    for &(code, rows) in &numbers {
        count += f64::from(rows);
        sum += f64::from(rows) * position(code);
        counts.push(count);
        sums.push(sum);
    }
    let mut pairs = 0.0;
    for (place, &(code, rows)) in numbers.iter().enumerate() {
        let (lo, hi) = sensitive.ranges.get(code as usize).copied().unwrap_or((code, code));
        let from = numbers.partition_point(|&(x, _)| x < lo);
        let to = numbers.partition_point(|&(x, _)| x <= hi).max(from);
        let middle = place.clamp(from, to);
        let here = position(code);
        let below = counts[middle] - counts[from];
        let above = counts[to] - counts[middle];
        let apart = below * here - (sums[middle] - sums[from]) + (sums[to] - sums[middle]) - above * here;
        pairs += f64::from(rows) * (below + above - apart);
    }
    // Whatever is no number is close to itself only.
    let others = histogram.iter().filter(|&&(code, _)| !is_number(code));
    let alone = others.filter(|&&(code, _)| sensitive.in_range(code, code));
    Some(pairs + alone.map(|&(_, rows)| f64::from(rows) * f64::from(rows)).sum::<f64>())
}

/// f(u) * sum of f(x) * pc(u, x) over the values x in the range of u.
fn weight_in_range(u: u32, histogram: &[(u32, u32)], sensitive: &Sensitive) -> f64 {
    let Ok(own) = histogram.binary_search_by_key(&u, |&(code, _)| code) else { return 0.0 };
    let (lo, hi) = sensitive.ranges.get(u as usize).copied().unwrap_or((u, u));
    let first = histogram.partition_point(|&(x, _)| x < lo);
    let near = histogram[first..].iter().take_while(|&&(x, _)| x <= hi);
    let near: f64 = near.map(|&(x, count)| f64::from(count) * sensitive.closeness(u, x)).sum();
    f64::from(histogram[own].1) * near
}

fn count_rows(histogram: &[(u32, u32)]) -> f64 {
    histogram.iter().map(|&(_, count)| f64::from(count)).sum()
}

/// What two different rows with these values add to N: their closeness, once for each that has the other in its range.
pub fn affinity(u: u32, v: u32, sensitive: &Sensitive) -> f64 {
    let ranges = u8::from(sensitive.in_range(u, v)) + u8::from(sensitive.in_range(v, u));
    if ranges == 0 { 0.0 } else { f64::from(ranges) * sensitive.closeness(u, v) }
}

/// Range diversity of a group that grows row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupDiversity {
    rows: u64,
    pairs: f64,
    counts: Vec<(u32, u32)>,
}

impl GroupDiversity {
    /// The diversity of some codes.
    pub fn from_codes(codes: impl IntoIterator<Item = u32>, sensitive: &Sensitive) -> Self {
        let mut diversity = Self::default();
        for code in codes {
            diversity.add_code(code, sensitive);
        }
        diversity
    }

    /// Range diversity now; 0 of no rows.
    pub fn score(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.pairs / (self.rows * self.rows) as f64 }
    }

    /// Range diversity if a row with this code joined.
    pub fn score_with(&self, code: u32, sensitive: &Sensitive) -> f64 {
        let rows = self.rows + 1;
        (self.pairs + self.gain(code, sensitive)) / (rows * rows) as f64
    }

    /// The least that range diversity could be after one more row, whatever its code.
    pub fn least_with_any(&self) -> f64 {
        let rows = self.rows + 1;
        (self.pairs + 1.0) / (rows * rows) as f64
    }

    /// A row joins.
    pub fn add_code(&mut self, code: u32, sensitive: &Sensitive) {
        self.pairs += self.gain(code, sensitive);
        self.rows += 1;
        match self.counts.binary_search_by_key(&code, |&(code, _)| code) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (code, 1)),
        }
    }

    fn gain(&self, code: u32, sensitive: &Sensitive) -> f64 {
        1.0 + self.counts.iter().map(|&(x, count)| f64::from(count) * affinity(code, x, sensitive)).sum::<f64>()
    }
}

/// Range diversity of a growing group with each of a fixed list of candidates added, in constant time per candidate.
#[derive(Debug, Clone)]
pub struct Forecast<'a> {
    sensitive: &'a Sensitive,
    /// Distinct codes of the candidates.
    palette: Vec<u32>,
    /// Place of each candidate's code in the palette.
    local: Vec<u32>,
    /// What a row with each code of the palette would add to N.
    gain: Vec<f64>,
    rows: u64,
    pairs: f64,
}

impl<'a> Forecast<'a> {
    /// A forecast over some candidate rows of the column, with no member yet.
    pub fn new(sensitive: &'a Sensitive, candidates: &[u32]) -> Self {
        let mut palette: Vec<u32> = candidates.iter().map(|&row| sensitive.codes[row as usize]).collect();
        palette.sort_unstable();
        palette.dedup();
        let local = candidates
            .iter()
            .map(|&row| palette.partition_point(|&code| code < sensitive.codes[row as usize]) as u32)
            .collect();
        let gain = vec![1.0; palette.len()];
        Self { sensitive, palette, local, gain, rows: 0, pairs: 0.0 }
    }

    /// Starts again without members.
    pub fn clear(&mut self) {
        self.gain.fill(1.0);
        (self.rows, self.pairs) = (0, 0.0);
    }

    /// Range diversity with one more candidate.
    pub fn score_with(&self, candidate: usize) -> f64 {
        let rows = self.rows + 1;
        (self.pairs + self.gain[self.local[candidate] as usize]) / (rows * rows) as f64
    }

    /// A candidate joins.
    pub fn add_candidate(&mut self, candidate: usize) {
        let joined = self.local[candidate] as usize;
        self.pairs += self.gain[joined];
        self.rows += 1;
        for (gain, &code) in self.gain.iter_mut().zip(&self.palette) {
            *gain += affinity(code, self.palette[joined], self.sensitive);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use crate::model::{SensitiveShape, Tree};
    use crate::privacy::{GroupView, Rule};

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    fn code(income: &Sensitive, value: f64) -> u32 {
        let SensitiveShape::Number { at, .. } = &income.shape else { panic!("income is a number") };
        at.iter().position(|&v| v == value).unwrap() as u32
    }

    fn rd(income: &Sensitive, values: &[f64]) -> f64 {
        GroupDiversity::from_codes(values.iter().map(|&value| code(income, value)), income).score()
    }

    #[test]
    fn loukides_g7_pairwise_contribution() {
        let income = fixtures::income(&[1.0, 4.0, 90.0], &[]);
        assert!(near(income.closeness(0, 1), 0.9697));
        assert!(near(income.closeness(0, 2), 0.1010));
        let tree = Sensitive {
            shape: SensitiveShape::Tree(Tree::new(100, [(0, 4, 4.0 / 99.0)])),
            ..fixtures::income(&[1.0], &[])
        };
        assert!(near(tree.closeness(1, 4), 0.9596));
    }

    #[test]
    fn loukides_g8_range_diversity_of_table_5_1() {
        // The first example group: t7, t3, t4, t5, t9, t10.
        let income = fixtures::income(&[0.0, 22.0, 23.0, 24.0, 25.0, 26.0], &[(0.0, 4.0), (10.0, 30.0)]);
        let histogram: Vec<(u32, u32)> = (0..6).map(|code| (code, 1)).collect();
        assert!(near(disclosure_confidence(1, &histogram, &income), 0.8165));
        assert!(near(range_diversity(&histogram, &income), 0.7110));
        // The second one: t1, t2, t6, t8, t11, t12.
        let policy = [(0.0, 4.0), (5.0, 9.0), (80.0, 99.0)];
        let income = fixtures::income(&[1.0, 4.0, 9.0, 9.0, 90.0, 90.0], &policy);
        assert!(near(rd(&income, &[1.0, 4.0, 9.0, 9.0, 90.0, 90.0]), 0.3316));
        let income = fixtures::income(&[1.0, 4.0, 9.0, 90.0], &[(0.0, 9.0), (80.0, 99.0)]);
        assert!(near(rd(&income, &[1.0, 4.0, 9.0, 90.0]), 0.6048));
        // Three of the four incomes are low: what is disclosed positively, with a chance of 3/4.
        let (first, last) = income.ranges[0];
        assert_eq!(income.codes.iter().filter(|code| (first..=last).contains(code)).count(), 3);
    }

    #[test]
    fn sums_over_many_numbers_are_those_over_all_pairs() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut at: Vec<f64> = (0..400).map(|_| f64::from(rng.u32(0..90_000)) / 7.0).collect();
        at.sort_by(f64::total_cmp);
        at.push(f64::NAN);
        // Some ranges do not hold their own value, some hold what is no number.
        let range = |rng: &mut fastrand::Rng, code: u32| {
            (code.saturating_sub(rng.u32(0..40)), code + rng.u32(0..60) + u32::from(code.is_multiple_of(50)) * 20)
        };
        let mut ranges: Vec<(u32, u32)> = (0..402).map(|code| range(&mut rng, code)).collect();
        ranges[7] = (20, 30);
        ranges[300] = (100, 140);
        let shape = SensitiveShape::Number { min: at[0], max: at[399], at };
        let column = Sensitive { name: "x".into(), codes: Vec::new(), shape, null: Some(401), ranges, shares: None };
        let histogram: Vec<(u32, u32)> =
            (0..402).filter(|code| code % 9 > 0).map(|code| (code, rng.u32(1..9))).collect();
        let pairs: f64 = histogram.iter().map(|&(u, _)| weight_in_range(u, &histogram, &column)).sum();
        let summed = pairs_by_sums(&histogram, &column).unwrap();
        assert!((summed / pairs - 1.0).abs() < 1e-12, "{summed} {pairs}");
        // A domain that was declared narrower cuts distances off.
        let SensitiveShape::Number { at, min, .. } = column.shape.clone() else { unreachable!() };
        let narrow = Sensitive { shape: SensitiveShape::Number { max: min + 9.0, min, at }, ..column };
        assert_eq!(pairs_by_sums(&histogram, &narrow), None);
    }

    /// Section 5.1: who is known to be in t2's range. Erratum E4: the printed chances of 2/6 and, once the two highest
    /// incomes are ruled out, 2/4 are those of [0, 4]; the printed range [0, 9] would give 4/6.
    #[test]
    fn loukides_erratum_e4_chances_of_a_range() {
        let incomes = [1.0, 4.0, 9.0, 9.0, 90.0, 90.0];
        let chance = |policy: &[(f64, f64)], rows: usize| {
            let income = fixtures::income(&incomes, policy);
            let (first, last) = income.ranges[code(&income, 4.0) as usize];
            let inside = income.codes[..rows].iter().filter(|code| (first..=last).contains(code));
            inside.count() as f64 / rows as f64
        };
        let printed = [(0.0, 9.0), (80.0, 99.0)];
        let meant = [(0.0, 4.0), (5.0, 9.0), (80.0, 99.0)];
        assert_eq!((chance(&meant, 6), chance(&meant, 4), chance(&printed, 6)), (2.0 / 6.0, 2.0 / 4.0, 4.0 / 6.0));
    }

    /// Range diversity is 1/rows at least. Two groups that publish the same are one to a reader: with ranges that part the
    /// domain they are no worse together than the worse of them, with one-sided ranges they may be.
    #[test]
    fn loukides_bounds_of_range_diversity_and_of_unions() {
        let mut rng = fastrand::Rng::with_seed(3);
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let parted = fixtures::income(&values, &[(0.0, 6.0), (7.0, 11.0), (12.0, 19.0)]);
        let mut one_sided = fixtures::income(&values, &[]);
        one_sided.ranges = (0..20_u32).map(|u| (u - u.min(3) * (u % 2), (u + 9 * (u % 3)).min(19))).collect();
        let mut worse = [0, 0];
        for _ in 0..4000 {
            let mut group = || (0..rng.usize(2..7)).map(|_| rng.u32(0..20)).collect::<Vec<_>>();
            let (one, two) = (group(), group());
            for (income, worse) in [&parted, &one_sided].into_iter().zip(&mut worse) {
                let rd = |codes: &[u32]| GroupDiversity::from_codes(codes.iter().copied(), income).score();
                assert!(rd(&one) >= 1.0 / one.len() as f64 - 1e-12);
                *worse += usize::from(rd(&[one.clone(), two.clone()].concat()) > rd(&one).max(rd(&two)) + 1e-12);
            }
        }
        assert!(worse[0] == 0 && worse[1] > 0, "{worse:?}");
    }

    #[test]
    fn incremental_tallies_equal_the_definition_even_for_one_sided_ranges() {
        let mut rng = fastrand::Rng::with_seed(7);
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let mut income = fixtures::income(&values, &[]);
        income.ranges = (0..20_u32).map(|u| (rng.u32(0..=u), rng.u32(u..20))).collect();
        income.codes = (0..200).map(|_| rng.u32(0..20)).collect();
        let candidates: Vec<u32> = (0..200).collect();
        let mut forecast = Forecast::new(&income, &candidates);
        forecast.add_candidate(3);
        forecast.clear();
        let mut diversity = GroupDiversity::default();
        let mut counts = [0_u32; 20];
        for row in 0..200 {
            let code = income.codes[row];
            counts[code as usize] += 1;
            let histogram: Vec<(u32, u32)> = (0..20).zip(counts).filter(|&(_, count)| count > 0).collect();
            let expected = range_diversity(&histogram, &income);
            assert!((diversity.score_with(code, &income) - expected).abs() < 1e-12);
            assert!(diversity.least_with_any() <= diversity.score_with(code, &income));
            assert!((forecast.score_with(row) - expected).abs() < 1e-12);
            diversity.add_code(code, &income);
            forecast.add_candidate(row);
            assert!((diversity.score() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_missing_column_fails_and_small_bounds_need_large_groups() {
        let table = fixtures::table_5_1();
        let rule = |column: &str, bound| RangeDiversity { column: column.into(), bound };
        assert!(rule("income", 0.5).is_met_by(&GroupView::new(&table, &[0, 2])));
        assert!(!rule("income", 0.5).is_met_by(&GroupView::new(&table, &[0, 1])));
        assert!(!rule("wage", 1.0).is_met_by(&GroupView::new(&table, &[0, 2])));
        assert_eq!(rule("income", 0.5).fewest_rows(), Some(2));
        assert_eq!(rule("income", 0.3).fewest_rows(), Some(4));
        assert_eq!(rule("income", 0.0).fewest_rows(), None);
    }
}
