//! How well a release protects one sensitive column, whatever its policy asks for: the parameters with which each of the
//! usual rules would just hold.

use serde::{Deserialize, Serialize};

use super::rules::{
    class_distance, histogram_entropy, largest_share, likeness_gains, max_log_ratio, number_range, number_variance,
    ranked_counts,
};
use crate::privacy::t_closeness::Distance;
use crate::privacy::{Figures, is_within_bound};
use crate::published::key_counts::rows_of;
use crate::published::values::{Shape, Values};

/// The weakest class by every rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<u64>", try_from = "Vec<u64>")]
pub(super) struct Weakest {
    classes: u64,
    distinct: usize,
    entropy: f64,
    /// Largest r_1 / (r_l + r_(l+1) + ...) for l = 1, 2, ..., as far as every class has that many values.
    ratios: Vec<f64>,
    alpha: f64,
    /// Range and variance of the class with the least of each, when the column holds numbers.
    numbers: Option<(f64, f64)>,
    table: Option<Compared>,
}

/// What compares with the whole table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Compared {
    t: f64,
    tree: Option<f64>,
    beta: f64,
    /// Whether some class has a value that the enhanced form allows with no beta.
    unbounded: bool,
    delta: f64,
}

/// To the last bit: eleven words, then the ratios.
impl From<Weakest> for Vec<u64> {
    fn from(weakest: Weakest) -> Self {
        let (range, variance) = weakest.numbers.unwrap_or_default();
        let table = weakest.table.unwrap_or_default();
        let flags = [weakest.numbers.is_some(), weakest.table.is_some(), table.tree.is_some(), table.unbounded];
        let flags = flags.iter().rev().fold(0, |all, &flag| all << 1 | u64::from(flag));
        let mut words = vec![weakest.classes, weakest.distinct as u64, flags];
        let tree = table.tree.unwrap_or_default();
        let numbers = [weakest.entropy, weakest.alpha, range, variance, table.t, tree, table.beta, table.delta];
        words.extend(numbers.into_iter().chain(weakest.ratios).map(f64::to_bits));
        words
    }
}

impl TryFrom<Vec<u64>> for Weakest {
    type Error = &'static str;

    fn try_from(words: Vec<u64>) -> Result<Self, Self::Error> {
        let Some((&[classes, distinct, flags], rest)) = words.split_first_chunk() else { return Err("too short") };
        let numbers: Vec<f64> = rest.iter().map(|&bits| f64::from_bits(bits)).collect();
        let Some((&[entropy, alpha, range, variance, t, tree, beta, delta], ratios)) = numbers.split_first_chunk()
        else {
            return Err("too short");
        };
        let flag = |at: u32| flags >> at & 1 == 1;
        let table = Compared { t, tree: flag(2).then_some(tree), beta, unbounded: flag(3), delta };
        Ok(Self {
            classes,
            distinct: distinct as usize,
            entropy,
            ratios: ratios.to_vec(),
            alpha,
            numbers: flag(0).then_some((range, variance)),
            table: flag(1).then_some(table),
        })
    }
}

impl Compared {
    fn worse_of(self, other: Self) -> Self {
        Self {
            t: self.t.max(other.t),
            tree: self.tree.zip(other.tree).map(|(mine, theirs)| mine.max(theirs)),
            beta: self.beta.max(other.beta),
            unbounded: self.unbounded || other.unbounded,
            delta: self.delta.max(other.delta),
        }
    }
}

impl Weakest {
    /// Adds a class.
    pub(super) fn add_class(&mut self, histogram: &[(i128, u64)], values: &Values) {
        let counts = ranked_counts(histogram);
        let Some(&most) = counts.first() else { return };
        let mut tail = rows_of(histogram);
        let mut ratios = Vec::with_capacity(counts.len());
        for count in &counts {
            ratios.push(most as f64 / tail as f64);
            tail -= count;
        }
        let numbers = matches!(values.shape, Shape::Line(..));
        let table = values.table.as_deref().map(|table| {
            let of = |kind| class_distance(kind, histogram, values);
            let plain = if numbers { Distance::Ordered } else { Distance::Equal };
            Compared {
                t: of(plain).unwrap_or(0.0),
                tree: of(Distance::Hierarchical),
                beta: likeness_gains(histogram, table).map(|(gain, _)| gain).fold(0.0, f64::max),
                unbounded: likeness_gains(histogram, table).any(|(gain, share)| !is_within_bound(gain, -share.ln())),
                delta: max_log_ratio(histogram, table),
            }
        });
        self.merge(Self {
            classes: 1,
            distinct: counts.len(),
            entropy: histogram_entropy(histogram),
            ratios,
            alpha: largest_share(histogram),
            numbers: numbers.then(|| (number_range(histogram, values).0, number_variance(histogram, values))),
            table,
        });
    }

    /// Adds the classes of another part of the table.
    pub(super) fn merge(&mut self, other: Self) {
        if self.classes == 0 || other.classes == 0 {
            if self.classes == 0 {
                *self = other;
            }
            return;
        }
        self.classes += other.classes;
        self.distinct = self.distinct.min(other.distinct);
        self.entropy = self.entropy.min(other.entropy);
        self.ratios.truncate(other.ratios.len());
        self.ratios.iter_mut().zip(other.ratios).for_each(|(mine, theirs)| *mine = mine.max(theirs));
        self.alpha = self.alpha.max(other.alpha);
        let less = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.min(b.1));
        self.numbers = self.numbers.zip(other.numbers).map(|(mine, theirs)| less(mine, theirs));
        self.table = self.table.zip(other.table).map(|(mine, theirs)| mine.worse_of(theirs));
    }

    /// The figures; `None` without classes.
    pub(super) fn figures(&self) -> Option<Figures> {
        (self.classes > 0).then(|| Figures {
            l: self.distinct as u64,
            entropy_l: self.entropy.exp(),
            c: self.ratios.last().copied().unwrap_or(0.0),
            alpha: self.alpha,
            range: self.numbers.map(|(range, _)| range),
            variance: self.numbers.map(|(_, variance)| variance),
            t: self.table.map(|table| table.t),
            t_hierarchical: self.table.and_then(|table| table.tree),
            beta: self.table.map(|table| table.beta),
            beta_enhanced: self.table.filter(|table| !table.unbounded).map(|table| table.beta),
            delta: self.table.map(|table| table.delta),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::binding::SensitiveColumn;
    use crate::policy::Ranges;
    use crate::privacy::l_diversity::Diversity;
    use crate::published::values::Table;

    /// Numbers, and how often each is published in the whole table.
    fn numbers(table: &[(i128, u64)]) -> Values {
        let column = SensitiveColumn {
            index: 0,
            name: "s".into(),
            data_type: DataType::Int64,
            hierarchy: None,
            domain: None,
            ranges: Ranges::Identity,
            compared: true,
        };
        Values::new(&column, 100.0, 0, Some(Arc::new(Table::new(table.iter().copied().collect()))), None)
    }

    fn figures(classes: &[&[(i128, u64)]], values: &Values) -> Figures {
        let mut weakest = Weakest::default();
        classes.iter().for_each(|class| weakest.add_class(class, values));
        weakest.figures().unwrap()
    }

    #[test]
    fn loukides_g3_figures_of_table_2_1() {
        assert_eq!(Weakest::default().figures(), None);
        let values = numbers(&[(1, 2), (2, 1), (3, 1), (4, 4)]);
        let class: &[(i128, u64)] = &[(1, 2), (2, 1), (3, 1)];
        let one = figures(&[class], &values);
        assert_eq!((one.l, one.alpha, one.c), (3, 0.5, 2.0));
        // r_1 / (r_2 + r_3) = 2 / (1 + 1) with l = 2; the group of one value brings l down to 1.
        let both = figures(&[class, &[(4, 4)]], &values);
        assert_eq!((both.l, both.alpha, both.c, both.entropy_l), (1, 1.0, 1.0, 1.0));
        assert_eq!((both.range, both.variance), (Some(0.0), Some(0.0)));
    }

    /// Section 2.6: a range of 40 and a variance of 355.55, although 40 is known with a chance of 2/3.
    #[test]
    fn loukides_range_and_variance_see_no_frequencies() {
        let found = figures(&[&[(0, 1), (40, 2)]], &numbers(&[(0, 1), (40, 2)]));
        assert_eq!(found.range, Some(40.0));
        assert!((found.variance.unwrap() - 355.555).abs() < 1e-2 && (found.alpha - 2.0 / 3.0).abs() < 1e-12);
    }

    /// Three of four have the value 1: it may not be certain anywhere, whatever beta is.
    #[test]
    fn no_enhanced_beta_where_a_common_value_is_certain() {
        let values = numbers(&[(1, 3), (2, 1)]);
        let halves: &[(i128, u64)] = &[(1, 1), (2, 1)];
        let mixed = figures(&[halves], &values);
        assert_eq!((mixed.beta, mixed.beta_enhanced), (Some(1.0), Some(1.0)));
        let certain = figures(&[&[(1, 2)], halves], &values);
        assert_eq!((certain.beta, certain.beta_enhanced), (Some(1.0), None));
        assert!(!serde_json::to_string(&certain).unwrap().contains("beta_enhanced"));
    }

    proptest! {
        /// Parts merge to the whole, and every class meets the rules at the figures.
        #[test]
        fn every_class_meets_the_rules_at_the_figures(rows in prop::collection::vec(0..6_i128, 1..60), size in 1..9_usize) {
            let count = |rows: &[i128]| -> Vec<(i128, u64)> {
                let mut counts = std::collections::BTreeMap::new();
                rows.iter().for_each(|row| *counts.entry(*row).or_insert(0) += 1);
                counts.into_iter().collect()
            };
            let values = numbers(&count(&rows));
            let classes: Vec<Vec<(i128, u64)>> = rows.chunks(size).map(count).collect();
            let (mut whole, mut merged) = (Weakest::default(), Weakest::default());
            classes.iter().for_each(|class| whole.add_class(class, &values));
            for class in classes.iter().rev() {
                let mut part = Weakest::default();
                part.add_class(class, &values);
                merged.merge(part);
            }
            prop_assert_eq!(&merged, &whole);
            let found = whole.figures().unwrap();
            for class in &classes {
                let codes: Vec<(u32, u32)> = class.iter().map(|&(key, rows)| (key as u32, rows as u32)).collect();
                let (l, c) = (found.l as usize, found.c * (1.0 + 1e-9) + 1e-9);
                let kinds = [Diversity::Distinct { l }, Diversity::Entropy { l: found.entropy_l }, Diversity::Recursive { c, l }];
                prop_assert!(kinds.iter().all(|kind| kind.is_met_by(&codes)));
                prop_assert!(is_within_bound(largest_share(class), found.alpha));
                prop_assert!(class_distance(Distance::Ordered, class, &values).unwrap() <= found.t.unwrap());
            }
        }
    }

    #[test]
    fn figures_are_sent_to_the_last_bit() {
        let table = Compared { t: 0.1 + 0.2, tree: Some(1.0 / 3.0), beta: f64::INFINITY, unbounded: true, delta: 7.0 };
        let mut weakest = Weakest {
            classes: 3,
            distinct: 2,
            entropy: 0.7,
            ratios: vec![1.0 / 7.0, f64::INFINITY],
            alpha: 0.9,
            numbers: Some((1e300, -0.0)),
            table: Some(table),
        };
        for (numbers, tree) in [(true, true), (false, true), (true, false)] {
            weakest.numbers = weakest.numbers.filter(|_| numbers);
            weakest.table = weakest.table.map(|table| Compared { tree: table.tree.filter(|_| tree), ..table });
            let sent = serde_json::to_vec(&weakest).unwrap();
            assert_eq!(serde_json::from_slice::<Weakest>(&sent).unwrap(), weakest);
        }
        assert!(serde_json::from_str::<Weakest>("[1, 2, 0, 4]").is_err());
    }
}
