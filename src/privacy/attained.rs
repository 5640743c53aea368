//! How well a release protects one sensitive column, whatever its policy asks for: the parameters with which each of the
//! usual rules would just hold. Classes are added one by one.

use serde::{Deserialize, Serialize};

use super::l_diversity::{entropy, ranked};
use super::t_closeness::Distance;
use super::{Histogram, alpha_k, beta_likeness, delta_disclosure, k_e};
use crate::domain::{Sensitive, SensitiveShape};

/// The weakest class by every rule.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attained {
    classes: u64,
    distinct: usize,
    entropy: f64,
    /// Largest r_1 / (r_l + r_(l+1) + ...) for l = 1, 2, ..., as far as every class has that many values.
    ratios: Vec<f64>,
    alpha: f64,
    /// Range and variance of the class with the least of each, when the column holds numbers.
    numbers: Option<(f64, f64)>,
    table: Option<Table>,
}

/// What compares with the whole table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Table {
    t: f64,
    tree: Option<f64>,
    beta: f64,
    /// Whether some class has a value that the enhanced form allows with no beta.
    unbounded: bool,
    delta: f64,
}

/// The parameters with which each rule just holds for one sensitive column; see [`Attained`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Distinct l-diversity, and p-sensitivity: fewest different values of any class.
    pub l: u64,
    /// Entropy l-diversity: e to the smallest entropy.
    pub entropy_l: f64,
    /// Recursive (c, l)-diversity with the l above: it holds for every c above this.
    pub c: f64,
    /// (alpha, k): the largest share of one value in a class.
    pub alpha: f64,
    /// Least difference of the largest and the smallest number of a class; see [`k_e`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<f64>,
    /// Least variance of the numbers of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// t-closeness: ordered distance for numbers, dates and times, else equal distance.
    pub t: Option<f64>,
    /// t-closeness by the hierarchy of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_hierarchical: Option<f64>,
    /// Basic beta-likeness.
    pub beta: Option<f64>,
    /// Enhanced beta-likeness: the basic beta; none when some value exceeds -ln of its share, so that no beta will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_enhanced: Option<f64>,
    /// delta-disclosure: it holds for every delta above this.
    pub delta: Option<f64>,
}

impl Attained {
    /// Adds a class with this histogram.
    pub fn add(&mut self, histogram: Histogram<'_>, column: &Sensitive) {
        if histogram.is_empty() {
            return;
        }
        let counts = ranked(histogram);
        let first = self.classes == 0;
        self.classes += 1;
        if first {
            (self.distinct, self.entropy) = (counts.len(), entropy(histogram));
            self.ratios = vec![0.0; counts.len()];
        }
        self.distinct = self.distinct.min(counts.len());
        self.entropy = self.entropy.min(entropy(histogram));
        self.ratios.truncate(counts.len());
        let mut tail: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        for (rank, ratio) in self.ratios.iter_mut().enumerate() {
            *ratio = ratio.max(f64::from(counts[0]) / tail);
            tail -= f64::from(counts[rank]);
        }
        self.alpha = self.alpha.max(alpha_k::largest_share(histogram));
        if matches!(column.shape, SensitiveShape::Number { .. }) {
            let (range, variance) = (k_e::range(histogram, column).0, k_e::variance(histogram, column));
            let least = self.numbers.get_or_insert((range, variance));
            *least = (least.0.min(range), least.1.min(variance));
        }
        if let Some(shares) = &column.shares {
            let of = |distance: Distance| distance.measure(histogram, column);
            let plain = match column.shape {
                SensitiveShape::Number { .. } => Distance::Ordered,
                _ => Distance::Equal,
            };
            let table = self.table.get_or_insert_default();
            table.t = table.t.max(of(plain).unwrap_or(0.0));
            table.tree = of(Distance::Hierarchical).map(|tree| table.tree.unwrap_or(0.0).max(tree));
            table.beta = table.beta.max(beta_likeness::beta(histogram, shares));
            table.unbounded |= !beta_likeness::bounded(histogram, shares);
            table.delta = table.delta.max(delta_disclosure::delta(histogram, shares));
        }
    }

    /// Adds the classes of another part of the table, compared with the same whole.
    pub fn merge(&mut self, other: Self) {
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
        self.table = self.table.zip(other.table).map(|(mine, theirs)| Table {
            t: mine.t.max(theirs.t),
            tree: mine.tree.zip(theirs.tree).map(|(mine, theirs)| mine.max(theirs)),
            beta: mine.beta.max(theirs.beta),
            unbounded: mine.unbounded || theirs.unbounded,
            delta: mine.delta.max(theirs.delta),
        });
    }

    /// The figures; none without classes.
    pub fn figures(&self) -> Option<Figures> {
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
    use super::*;
    use crate::method::fixtures;
    use crate::privacy::beta_likeness::{BetaLikeness, Likeness};
    use crate::privacy::l_diversity::Diversity;
    use crate::privacy::{GroupView, SensitiveRule, alpha_k::AlphaK, t_closeness::TCloseness};
    use proptest::prelude::*;

    #[test]
    fn loukides_g3_figures_of_table_2_1() {
        let table = fixtures::table_3_1();
        let column = &table.sensitive[0];
        let mut attained = Attained::default();
        assert_eq!(attained.figures(), None);
        attained.add(&GroupView::new(&table, &[4, 5, 6, 7]).histogram(column), column);
        let figures = attained.figures().unwrap();
        assert_eq!((figures.l, figures.alpha, figures.c), (3, 0.5, 2.0));
        // r_1 / (r_2 + r_3) = 2 / (1 + 1) with l = 2; the group of one value brings l down to 1.
        attained.add(&GroupView::new(&table, &[0, 1, 2, 3]).histogram(column), column);
        let figures = attained.figures().unwrap();
        assert_eq!((figures.l, figures.alpha, figures.c, figures.entropy_l), (1, 1.0, 1.0, 1.0));
        assert_eq!((figures.range, figures.variance), (Some(0.0), Some(0.0)));
    }

    /// Section 2.6: a range of 40 and a variance of 355.55, although 40 is known with a chance of 2/3.
    #[test]
    fn loukides_range_and_variance_see_no_frequencies() {
        let column = fixtures::income(&[0.0, 40.0], &[]);
        let mut attained = Attained::default();
        attained.add(&[(0, 1), (1, 2)], &column);
        let figures = attained.figures().unwrap();
        assert_eq!(figures.range, Some(40.0));
        assert!((figures.variance.unwrap() - 355.555).abs() < 1e-2);
        assert!((figures.alpha - 2.0 / 3.0).abs() < 1e-12);
    }

    /// Three of four have the value 1: it may not be certain anywhere, whatever beta is.
    #[test]
    fn no_enhanced_beta_where_a_common_value_is_certain() {
        let column = fixtures::income(&[1.0, 1.0, 1.0, 2.0], &[]);
        let mut attained = Attained::default();
        attained.add(&[(0, 1), (1, 1)], &column);
        let figures = attained.figures().unwrap();
        assert_eq!((figures.beta, figures.beta_enhanced), (Some(1.0), Some(1.0)));
        let mut certain = Attained::default();
        certain.add(&[(0, 2)], &column);
        certain.merge(attained);
        let figures = certain.figures().unwrap();
        assert_eq!((figures.beta, figures.beta_enhanced), (Some(1.0), None));
        assert!(!serde_json::to_string(&figures).unwrap().contains("beta_enhanced"));
    }

    proptest! {
        #[test]
        fn every_class_meets_the_rules_at_the_figures(table in fixtures::tables(), size in 1..9_usize) {
            prop_assume!(!table.sensitive.is_empty() && table.rows() > 0);
            let column = &table.sensitive[0];
            let rows: Vec<u32> = (0..table.rows() as u32).collect();
            let mut attained = Attained::default();
            rows.chunks(size).for_each(|group| attained.add(&GroupView::new(&table, group).histogram(column), column));
            let parts = rows.chunks(size).map(|group| {
                let mut part = Attained::default();
                part.add(&GroupView::new(&table, group).histogram(column), column);
                part
            });
            let mut merged = Attained::default();
            parts.rev().for_each(|part| merged.merge(part));
            prop_assert_eq!(&merged, &attained);
            let figures = attained.figures().unwrap();
            let enhanced = |beta| BetaLikeness { column: "s".into(), beta, kind: Likeness::Enhanced };
            if figures.beta_enhanced.is_none() && figures.beta.is_some() {
                let allows = |group| enhanced(f64::MAX).allows(&GroupView::new(&table, group).histogram(column), column);
                prop_assert!(!rows.chunks(size).all(allows), "some beta would do");
            }
            for group in rows.chunks(size) {
                let histogram = GroupView::new(&table, group).histogram(column);
                let l = figures.l as usize;
                let c = figures.c * (1.0 + 1e-9) + 1e-9;
                let kinds = [Diversity::Distinct { l }, Diversity::Entropy { l: figures.entropy_l }, Diversity::Recursive { c, l }];
                prop_assert!(kinds.iter().all(|kind| kind.holds(&histogram)));
                let alpha = AlphaK { column: "s".into(), alpha: figures.alpha };
                prop_assert!(alpha.allows(&histogram, column));
                let tree = figures.t_hierarchical.is_some();
                let t = if tree { figures.t_hierarchical } else { figures.t };
                let close = TCloseness { column: "s".into(), t: t.unwrap(), distance: None };
                prop_assert!(close.allows(&histogram, column));
                prop_assert!(figures.beta_enhanced.is_none_or(|beta| enhanced(beta).allows(&histogram, column)));
            }
        }
    }
}
