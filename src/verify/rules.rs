//! The rules about a sensitive column, asked of a class by how often each value occurs in it. Counts are whole numbers and
//! stay so until a score is compared with its bound.

use std::collections::BTreeMap;

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::policy::Diversity;
use crate::privacy::beta_likeness::Likeness;
use crate::privacy::t_closeness::Distance;
use crate::privacy::{SensitiveRule, is_within_bound};
use crate::published::key_counts::rows_of;
use crate::published::values::{Forest, Shape, Table, Values};

/// A rule of the job as classes are asked it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The key of its kind.
    pub(crate) name: &'static str,
    /// The sensitive column.
    pub(crate) column: String,
    /// What classes that break it do.
    pub(crate) breach: String,
    demand: Demand,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
enum Demand {
    /// Fewest different values.
    Distinct(u64),
    /// Fewest equally frequent values by entropy.
    Entropy(f64),
    /// The commonest value is less than c times as common as all from the l-th on.
    Recursive(f64, usize),
    /// Most distance from the whole table.
    Close(Option<Distance>, f64),
    /// Largest share of one value.
    Share(f64),
    /// Fewest different numbers, and least range.
    Apart(u64, f64),
    /// Bound on |ln(q / p)|.
    Factor(f64),
    /// Bound on (q - p) / p.
    Gain(f64, Likeness),
    /// Guarded nodes, and the largest share below one.
    Guard(Vec<String>, f64),
    /// Largest range diversity.
    Range(f64),
}

/// All rules of a policy about sensitive columns.
pub(crate) fn asked_rules(bound_policy: &BoundPolicy) -> Result<Vec<Asked>> {
    let privacy = &bound_policy.policy.privacy;
    let mut all: Vec<Asked> = Vec::new();
    let mut ask = |name: &'static str, rule: &dyn SensitiveRule, demand: Demand| {
        all.push(Asked { name, column: rule.column().to_owned(), breach: rule.breach(), demand });
    };
    privacy.range_diversity.iter().for_each(|rule| ask("range-diversity", rule, Demand::Range(rule.p)));
    for rule in &privacy.l_diversity {
        let demand = match rule.kind {
            Diversity::Distinct => Demand::Distinct(rule.l as u64),
            Diversity::Entropy => Demand::Entropy(rule.l),
            Diversity::Recursive => Demand::Recursive(rule.c.unwrap_or(1.0), rule.l as usize),
        };
        ask("l-diversity", rule, demand);
    }
    privacy.t_closeness.iter().for_each(|rule| ask("t-closeness", rule, Demand::Close(rule.distance, rule.t)));
    privacy.alpha_k.iter().for_each(|rule| ask("alpha-k", rule, Demand::Share(rule.alpha)));
    privacy.p_sensitive.iter().for_each(|rule| ask("p-sensitive", rule, Demand::Distinct(u64::from(rule.p))));
    privacy.k_e.iter().for_each(|rule| ask("k-e", rule, Demand::Apart(u64::from(rule.k), rule.e)));
    privacy.delta_disclosure.iter().for_each(|rule| ask("delta-disclosure", rule, Demand::Factor(rule.delta)));
    privacy.beta_likeness.iter().for_each(|rule| ask("beta-likeness", rule, Demand::Gain(rule.beta, rule.kind)));
    privacy.guarding.iter().for_each(|rule| ask("guarding", rule, Demand::Guard(rule.nodes.clone(), rule.p)));
    // A kind of rule that is not among those above must not pass unasked.
    let listed = privacy.rules().len();
    match all.len() == listed {
        true => Ok(all),
        false => Err(Error::internal(format!("{} of {listed} rules can be verified", all.len()))),
    }
}

impl Asked {
    /// Whether the rule compares classes with the whole table.
    pub(crate) fn compares(&self) -> bool {
        matches!(self.demand, Demand::Close(..) | Demand::Factor(_) | Demand::Gain(..))
    }

    /// Whether the rule needs to know how large the domain is.
    pub(crate) fn measures(&self) -> bool {
        matches!(self.demand, Demand::Range(_))
    }

    /// Whether a class meets the rule.
    pub(crate) fn allows_class(&self, histogram: &[(i128, u64)], values: &Values) -> bool {
        let table = values.table.as_deref();
        match &self.demand {
            Demand::Distinct(least) => histogram.len() as u64 >= *least,
            Demand::Entropy(l) => histogram_entropy(histogram) >= l.ln() - 1e-9,
            Demand::Recursive(c, l) => {
                let counts = ranked_counts(histogram);
                let tail: u64 = counts.iter().skip((*l).max(1) - 1).sum();
                counts.first().is_some_and(|&most| (most as f64) < c * tail as f64)
            }
            Demand::Close(kind, t) => {
                let kind = kind.unwrap_or(suiting_distance(values));
                class_distance(kind, histogram, values).is_some_and(|distance| is_within_bound(distance, *t))
            }
            Demand::Share(alpha) => is_within_bound(largest_share(histogram), *alpha),
            Demand::Apart(k, e) => {
                let (range, different) = number_range(histogram, values);
                different >= *k && range >= *e
            }
            Demand::Factor(delta) => table.is_some_and(|table| max_log_ratio(histogram, table) < *delta),
            Demand::Gain(beta, kind) => table.is_some_and(|table| {
                likeness_gains(histogram, table).all(|(gain, share)| match kind {
                    Likeness::Basic => is_within_bound(gain, *beta),
                    Likeness::Enhanced => is_within_bound(gain, beta.min(-share.ln())),
                })
            }),
            Demand::Guard(nodes, p) => {
                let Shape::Tree(forest) = &values.shape else { return false };
                nodes.iter().all(|node| {
                    forest.span_of(node).is_some_and(|span| is_within_bound(share_below(histogram, span), *p))
                })
            }
            Demand::Range(bound) => is_within_bound(range_diversity(histogram, values), *bound),
        }
    }
}

/// Counts, the largest first.
pub(crate) fn ranked_counts(histogram: &[(i128, u64)]) -> Vec<u64> {
    let mut counts: Vec<u64> = histogram.iter().map(|(_, rows)| *rows).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// Entropy in nats.
pub(crate) fn histogram_entropy(histogram: &[(i128, u64)]) -> f64 {
    let all = rows_of(histogram) as f64;
    -histogram.iter().map(|&(_, rows)| rows as f64 / all * (rows as f64 / all).ln()).sum::<f64>()
}

/// The share of the commonest value.
pub(crate) fn largest_share(histogram: &[(i128, u64)]) -> f64 {
    let most = histogram.iter().map(|(_, rows)| *rows).max().unwrap_or(0);
    most as f64 / rows_of(histogram).max(1) as f64
}

/// The numbers of a class: those that are one.
fn class_numbers<'a>(
    histogram: &'a [(i128, u64)],
    values: &Values,
) -> impl Iterator<Item = (i128, f64, u64)> + Clone + 'a {
    let unit = match &values.shape {
        Shape::Line(unit, _) => Some(unit.clone()),
        _ => None,
    };
    let of = move |&(key, rows): &(i128, u64)| Some((key, unit.as_ref()?.position(key), rows));
    histogram.iter().filter_map(of).filter(|(_, at, _)| !at.is_nan())
}

/// The largest minus the smallest number, and how many different ones there are.
pub(crate) fn number_range(histogram: &[(i128, u64)], values: &Values) -> (f64, u64) {
    let Shape::Line(unit, _) = &values.shape else { return (0.0, histogram.len() as u64) };
    let known = class_numbers(histogram, values);
    match (known.clone().next(), known.clone().last()) {
        (Some(first), Some(last)) => (unit.distance_between(first.0, last.0), known.count() as u64),
        _ => (0.0, 0),
    }
}

/// The variance of the numbers; 0 of none.
pub(crate) fn number_variance(histogram: &[(i128, u64)], values: &Values) -> f64 {
    let known = || class_numbers(histogram, values).map(|(_, at, rows)| (at, rows as f64));
    let rows: f64 = known().map(|(_, rows)| rows).sum();
    let mean = known().map(|(at, rows)| at * rows).sum::<f64>() / rows;
    if rows > 0.0 { known().map(|(at, rows)| rows * (at - mean).powi(2)).sum::<f64>() / rows } else { 0.0 }
}

/// The distance that suits a column.
fn suiting_distance(values: &Values) -> Distance {
    match values.shape {
        Shape::Line(..) => Distance::Ordered,
        Shape::Tree(_) => Distance::Hierarchical,
        Shape::Set(_) => Distance::Equal,
    }
}

/// How far the values of a class are distributed from the whole table; `None` without it, or without a tree where one is
/// needed.
pub(crate) fn class_distance(kind: Distance, histogram: &[(i128, u64)], values: &Values) -> Option<f64> {
    let table = values.table.as_deref()?;
    match (kind, &values.shape) {
        (Distance::Equal, _) => Some(equal_distance(histogram, table)),
        (Distance::Ordered, _) => Some(ordered_distance(histogram, table)),
        (Distance::Hierarchical, Shape::Tree(forest)) => Some(hierarchical_distance(histogram, table, forest)),
        (Distance::Hierarchical, _) => None,
    }
}

/// What the class has too much of a value, in units of 1 / (its rows times those of the table).
fn value_surplus(rows: u64, class: i128, of_table: i128, table: i128) -> i128 {
    i128::from(rows) * table - of_table * class
}

fn equal_distance(histogram: &[(i128, u64)], table: &Table) -> f64 {
    let (class, all) = (i128::from(rows_of(histogram)), table.rows());
    let extra: i128 =
        histogram.iter().map(|&(key, rows)| value_surplus(rows, class, table.rows_with_key(key), all).max(0)).sum();
    extra as f64 / (class as f64 * all as f64)
}

fn ordered_distance(histogram: &[(i128, u64)], table: &Table) -> f64 {
    let (class, all) = (i128::from(rows_of(histogram)), table.rows());
    let (mut seen, mut from, mut work) = (0, 0, 0);
    for &(key, rows) in histogram {
        let place = table.key_place(key);
        work += table.distance_to_level(from, place, class, seen * all);
        seen += i128::from(rows);
        from = place;
    }
    work += table.distance_to_level(from, table.values(), class, seen * all);
    work as f64 / (class as f64 * all as f64 * table.values().saturating_sub(1).max(1) as f64)
}

fn hierarchical_distance(histogram: &[(i128, u64)], table: &Table, forest: &Forest) -> f64 {
    /// What the children of a node that the class reaches have too much and too little, and their rows of the table.
    #[derive(Default)]
    struct Children {
        surplus: i128,
        lack: i128,
        rows: i128,
    }
    let (class, all) = (i128::from(rows_of(histogram)), table.rows());
    // Deepest nodes first, so that a node comes after everything below it.
    let mut open: BTreeMap<(u32, u32), Children> = BTreeMap::new();
    let add = |open: &mut BTreeMap<(u32, u32), Children>, node: u32, extra: i128, rows: i128| {
        let children = open.entry((forest.nodes[node as usize].depth, node)).or_default();
        children.surplus += extra.max(0);
        children.lack += (-extra).max(0);
        children.rows += rows;
    };
    for &(leaf, rows) in histogram {
        let of_table = table.rows_with_key(leaf);
        add(&mut open, forest.node_above(leaf), value_surplus(rows, class, of_table, all), of_table);
    }
    let mut work = 0.0;
    while let Some(((depth, index), children)) = open.pop_last() {
        let node = &forest.nodes[index as usize];
        let rows = table.rows_between(node.lo, node.hi);
        // The class holds nothing of the other children.
        let lack = children.lack + (rows - children.rows) * class;
        work += children.surplus.min(lack) as f64 * forest.node_height(index);
        if depth > 0 {
            add(&mut open, node.parent, children.surplus - lack, rows);
        }
    }
    work / (class as f64 * all as f64)
}

/// (q - p) / p and p of every value of a class.
pub(crate) fn likeness_gains<'a>(
    histogram: &'a [(i128, u64)],
    table: &'a Table,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let (class, all) = (i128::from(rows_of(histogram)), table.rows());
    histogram.iter().map(move |&(key, rows)| {
        let of_table = table.rows_with_key(key);
        let gain = value_surplus(rows, class, of_table, all) as f64 / (of_table * class) as f64;
        (gain, of_table as f64 / all as f64)
    })
}

/// The largest |ln(q / p)| of any value of a class.
pub(crate) fn max_log_ratio(histogram: &[(i128, u64)], table: &Table) -> f64 {
    let (class, all) = (i128::from(rows_of(histogram)), table.rows());
    let of = |&(key, rows): &(i128, u64)| {
        ((i128::from(rows) * all) as f64 / (table.rows_with_key(key) * class) as f64).ln().abs()
    };
    histogram.iter().map(of).fold(0.0, f64::max)
}

/// The share of a class below a node.
fn share_below(histogram: &[(i128, u64)], (lo, hi): (i128, i128)) -> f64 {
    let inside: u64 = histogram.iter().filter(|(key, _)| (lo..=hi).contains(key)).map(|(_, rows)| rows).sum();
    inside as f64 / rows_of(histogram).max(1) as f64
}

/// Range diversity: the mean closeness over ordered pairs of rows whose second lies in the range of the first.
pub(crate) fn range_diversity(histogram: &[(i128, u64)], values: &Values) -> f64 {
    let mut pairs = 0.0;
    for (at, &(u, rows)) in histogram.iter().enumerate() {
        let near: f64 = values.in_range(histogram, at).map(|(x, count)| count as f64 * values.closeness(u, x)).sum();
        pairs += rows as f64 * near;
    }
    let all = rows_of(histogram) as f64;
    if histogram.is_empty() { 0.0 } else { pairs / (all * all) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, i256};
    use proptest::prelude::*;

    use super::*;
    use crate::binding::SensitiveColumn;
    use crate::hierarchy::{Hierarchy, LevelTree};
    use crate::policy::Ranges;
    use crate::published::exact::Ranks;

    fn column(data_type: DataType, hierarchy: Option<LevelTree>, ranges: Ranges) -> SensitiveColumn {
        SensitiveColumn {
            index: 0,
            name: "s".into(),
            data_type,
            hierarchy: hierarchy.map(|levels| Arc::new(Hierarchy::Levels(levels))),
            domain: None,
            ranges,
            compared: true,
        }
    }

    fn numbers(all: &[(i128, u64)]) -> Values {
        let table = Arc::new(Table::new(all.iter().copied().collect()));
        Values::new(&column(DataType::Int64, None, Ranges::Identity), 8.0, 0, Some(table), None)
    }

    /// Salaries 3K, 4K, ..., 11K, one each: the groups of Li et al., section 4.1.
    #[test]
    fn li_example_of_salaries() {
        let values = numbers(&(3..=11).map(|salary| (salary, 1)).collect::<Vec<_>>());
        let of = |group: [i128; 3]| class_distance(Distance::Ordered, &group.map(|key| (key, 1)), &values).unwrap();
        assert!((of([3, 4, 5]) - 0.375).abs() < 1e-12 && (of([6, 8, 11]) - 1.0 / 6.0).abs() < 1e-12);
    }

    /// The hierarchy of diseases of Li et al., of height 3.
    #[test]
    fn li_example_of_diseases() {
        let levels = LevelTree::from_csv(
            "flu;infection;lung;*\npneumonia;infection;lung;*\noedema;vascular;lung;*\nembolism;vascular;lung;*\n\
             ulcer;stomach;gut;*\ncancer;stomach;gut;*\ncolitis;colon;gut;*\ncolon cancer;colon;gut;*\n",
        )
        .unwrap();
        for (other, expected) in [("pneumonia", 1.0 / 3.0), ("embolism", 2.0 / 3.0), ("cancer", 1.0)] {
            let table = Table::new([(i128::from(levels.find_leaf(other).unwrap()), 7)].into());
            let column = column(DataType::Utf8, Some(levels.clone()), Ranges::Identity);
            let values = Values::new(&column, 0.0, 0, Some(Arc::new(table)), None);
            let group = [(i128::from(levels.find_leaf("flu").unwrap()), 3)];
            let found = class_distance(Distance::Hierarchical, &group, &values).unwrap();
            assert!((found - expected).abs() < 1e-12, "{other}: {found}");
        }
    }

    /// Four codes of 18 digits that floating point cannot distinguish.
    #[test]
    fn values_beyond_floating_point_are_different() {
        let codes: Vec<(i128, u64)> = (0..4).map(|code| (123_456_789_012_345_670 + code, 10)).collect();
        let values = numbers(&codes);
        assert_eq!(class_distance(Distance::Equal, &codes[..1], &values), Some(0.75));
        assert_eq!(number_range(&codes[1..3], &values), (1.0, 2));
    }

    /// Decimals of 60 digits, the last of which differ.
    #[test]
    fn wide_decimals_are_judged_by_their_digits() {
        let huge = i256::from_string("123456789012345678901234567890123456789012345678901234567890").unwrap();
        let ranks = Arc::new(Ranks::new((0..4).map(|code| huge.wrapping_add(i256::from_i128(code * 150))).collect()));
        let codes: Vec<(i128, u64)> = (0..4).map(|code| (code, 10)).collect();
        let table = Arc::new(Table::new(codes.iter().copied().collect()));
        let column = column(DataType::Decimal256(62, 2), None, Ranges::Interval(3.0));
        let values = Values::new(&column, 6.0, 0, Some(table), Some(&ranks));
        assert_eq!(class_distance(Distance::Equal, &codes[..1], &values), Some(0.75));
        assert_eq!(number_range(&codes[1..4], &values), (3.0, 3));
        // 1.5 apart lies in an interval of 3, and 3 apart does not: each is near itself and its neighbours.
        let expected = (3.0 + 4.0 * 0.75) / 9.0;
        let found = range_diversity(&codes[..3], &values);
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    #[test]
    fn loukides_range_diversity_of_intervals() {
        let column = column(DataType::Int32, None, Ranges::Interval(4.0));
        let values = Values::new(&column, 100.0, 0, None, None);
        // 10 and 12 are in each other's range, 13 in that of 12 alone.
        let expected = (3.0 + 2.0 * 0.98 + 2.0 * 0.99) / 9.0;
        let found = range_diversity(&[(10, 1), (12, 1), (13, 1)], &values);
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    proptest! {
        #[test]
        fn distances_equal_their_definitions(
            counts in prop::collection::vec(0..9_u64, 8), group in prop::collection::vec(0..5_u64, 8)
        ) {
            let counts: Vec<u64> = counts.iter().zip(&group).map(|(all, some)| all + some).collect();
            let class: Vec<(i128, u64)> = (0..).zip(group.iter().copied()).filter(|(_, rows)| *rows > 0).collect();
            prop_assume!(!class.is_empty());
            let table: Vec<(i128, u64)> = (0..).zip(counts.iter().copied()).filter(|(_, rows)| *rows > 0).collect();
            let (all, some) = (counts.iter().sum::<u64>() as f64, group.iter().sum::<u64>() as f64);
            let extra: Vec<f64> = (0..8).map(|at| group[at] as f64 / some - counts[at] as f64 / all).collect();
            let values = numbers(&table);
            let found = class_distance(Distance::Equal, &class, &values).unwrap();
            prop_assert!((found - extra.iter().map(|extra| extra.abs()).sum::<f64>() / 2.0).abs() < 1e-9);
            let present: Vec<f64> = (0..8).filter(|at| counts[*at] > 0).map(|at| extra[at]).collect();
            let mut sum = 0.0;
            let steps: f64 = present.iter().map(|extra| { sum += extra; f64::abs(sum) }).sum();
            let found = class_distance(Distance::Ordered, &class, &values).unwrap();
            prop_assert!((found - steps / (present.len() - 1).max(1) as f64).abs() < 1e-9);
        }
    }
}
