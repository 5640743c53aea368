//! t-closeness (Li et al.): the distribution of a sensitive column in a group is at most t away from that in the table.
//!
//! How far is the earth mover's distance: the least work that turns one distribution into the other, in `[0, 1]`, where
//! the way from one value to another is
//!
//! - *equal*: 1 for any two values, so the distance is half the sum of |q - p|;
//! - *ordered*: the number of values between them, over m - 1 of the m values that occur, so it is
//!   1 / (m - 1) times the sum over i of |sum over j <= i of (q_j - p_j)|; null is a value beyond the largest;
//! - *hierarchical*: the level of their closest common ancestor over the height of the tree. At every node, what its
//!   children have too much is moved to those that have too little; the rest goes on to the parent.
//!
//! A group holds few of the values, so all three are computed from the values that it holds and sums over the others.
//! Levels are counted from the root: nodes above the same leaves are one, and leaves of any depth are at the bottom.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, Needs, RESERVE, RuleRecord, SensitiveRule, Setting, is_within_bound};
use crate::faults::Fault;
use crate::hierarchy::LevelTree;
use crate::model::{Code, Sensitive, SensitiveShape, Shares, Tree};

/// t-closeness: the values of a sensitive column are distributed in every group nearly as in the whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TCloseness {
    /// The sensitive column.
    pub column: String,
    /// The largest distance of a group's distribution from that of the table.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub t: f64,
    /// How distance between values is measured. Defaults to `hierarchical` for a column with a hierarchy, `ordered` for
    /// numbers, dates and times, and `equal` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
}

/// How far sensitive values are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Any two values are equally far.
    Equal,
    /// By the number of values between them. Null is beyond the largest.
    Ordered,
    /// By the level of their closest common ancestor in the hierarchy.
    Hierarchical,
}

impl Distance {
    /// The distance that suits a column.
    pub fn for_column(column: &Sensitive) -> Self {
        match column.shape {
            SensitiveShape::Number { .. } => Self::Ordered,
            SensitiveShape::Tree(_) => Self::Hierarchical,
            SensitiveShape::Set { .. } => Self::Equal,
        }
    }

    /// Distance of a group from the table; `None` without the distribution of the table, or a tree where one is needed.
    pub fn measure_group(self, histogram: Histogram<'_>, column: &Sensitive) -> Option<f64> {
        let table = column.shares.as_deref()?;
        match (self, &column.shape) {
            (Self::Equal, _) => Some(equal_distance(histogram, table)),
            (Self::Ordered, _) => Some(ordered_distance(histogram, table)),
            (Self::Hierarchical, SensitiveShape::Tree(tree)) => Some(hierarchical_distance(histogram, table, tree)),
            (Self::Hierarchical, _) => None,
        }
    }
}

fn count_rows(histogram: Histogram<'_>) -> f64 {
    histogram.iter().map(|&(_, count)| f64::from(count)).sum()
}

/// Distance when any two values are equally far: what the group has too much of some values, it has too little of others.
pub fn equal_distance(histogram: Histogram<'_>, table: &Shares) -> f64 {
    let rows = count_rows(histogram);
    histogram.iter().map(|&(code, count)| (f64::from(count) / rows - table.share_of(code)).max(0.0)).sum()
}

/// Distance when values are ordered by their codes.
pub fn ordered_distance(histogram: Histogram<'_>, table: &Shares) -> f64 {
    let rows = count_rows(histogram);
    let (mut seen, mut from, mut work) = (0.0, 0, 0.0);
    for &(code, count) in histogram {
        work += table.distance_to_level(from, code as usize, seen / rows);
        seen += f64::from(count);
        from = code as usize;
    }
    if rows > 0.0 {
        work += table.distance_to_level(from, table.len(), seen / rows);
    }
    work / table.len().saturating_sub(1).max(1) as f64
}

/// Distance by the levels of a tree.
pub fn hierarchical_distance(histogram: Histogram<'_>, table: &Shares, tree: &Tree) -> f64 {
    /// What the children of a node that the group reaches have too much, what they have too little, and their share of
    /// the table.
    #[derive(Default)]
    struct Children {
        surplus: f64,
        lack: f64,
        share: f64,
    }
    impl Children {
        fn add_child(&mut self, extra: f64, share: f64) {
            self.surplus += extra.max(0.0);
            self.lack += (-extra).max(0.0);
            self.share += share;
        }
    }
    let rows = count_rows(histogram);
    let nodes = tree.nodes();
    // Deepest nodes first, so that a node comes after everything below it.
    let mut open: BTreeMap<(u16, u32), Children> = BTreeMap::new();
    for &(code, count) in histogram {
        let (share, above) = (table.share_of(code), tree.node_above(code as Code));
        let extra = f64::from(count) / rows - share;
        open.entry((nodes[above as usize].depth, above)).or_default().add_child(extra, share);
    }
    let mut work = 0.0;
    while let Some(((depth, index), children)) = open.pop_last() {
        let node = &nodes[index as usize];
        let share = table.share_between(u32::from(node.lo), u32::from(node.hi));
        // The group holds nothing of the other children.
        let lack = children.lack + (share - children.share).max(0.0);
        work += children.surplus.min(lack) * f64::from(tree.node_level(index)) / f64::from(tree.height());
        if depth > 0 {
            let parent = nodes[node.parent as usize].depth;
            open.entry((parent, node.parent)).or_default().add_child(children.surplus - lack, share);
        }
    }
    work
}

impl SensitiveRule for TCloseness {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        let record = RuleRecord::on_column("t-closeness", &self.column).with_parameter("t", self.t);
        match self.distance {
            None => record,
            Some(Distance::Equal) => record.with_kind("equal"),
            Some(Distance::Ordered) => record.with_kind("ordered"),
            Some(Distance::Hierarchical) => record.with_kind("hierarchical"),
        }
    }

    fn breach(&self) -> String {
        format!("hold values of `{}` distributed further from the whole table than t = {}", self.column, self.t)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool {
        let distance = self.distance.unwrap_or_else(|| Distance::for_column(column)).measure_group(histogram, column);
        distance.is_some_and(|distance| is_within_bound(distance, self.t) || Fault::AnyDistribution.is_planted())
    }

    fn excess(&self, histogram: Histogram<'_>, column: &Sensitive) -> Option<f64> {
        let distance = self.distance.unwrap_or_else(|| Distance::for_column(column)).measure_group(histogram, column);
        distance.map(|distance| distance - self.t)
    }

    fn needs(&self) -> Needs {
        Needs {
            table: true,
            order: self.distance == Some(Distance::Ordered),
            hierarchy: self.distance == Some(Distance::Hierarchical),
            ..Needs::default()
        }
    }

    fn flaws(&self, _levels: Option<&LevelTree>) -> Vec<Flaw> {
        Flaw::no_share("t", self.t).into_iter().collect()
    }

    fn survives_merging(&self) -> bool {
        true
    }

    fn ready(&self, setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        let kept = if setting.reserve { 1.0 - RESERVE } else { 1.0 };
        Arc::new(Self { t: self.t * kept, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;
    use proptest::prelude::*;

    /// Salaries 3K, 4K, ..., 11K, one each: the groups of Li et al., section 4.1.
    #[test]
    fn li_example_of_salaries() {
        let salaries: Vec<f64> = (3..=11).map(f64::from).collect();
        let column = fixtures::income(&salaries, &[]);
        let table = column.shares.as_deref().unwrap();
        let group = |salaries: [u32; 3]| salaries.map(|salary| (salary - 3, 1));
        assert!((ordered_distance(&group([3, 4, 5]), table) - 0.375).abs() < 1e-12);
        assert!((ordered_distance(&group([6, 8, 11]), table) - 1.0 / 6.0).abs() < 1e-12);
        let rule = |t| TCloseness { column: "income".into(), t, distance: None };
        assert!(
            rule(0.375).allows_histogram(&group([3, 4, 5]), &column)
                && !rule(0.37).allows_histogram(&group([3, 4, 5]), &column)
        );
    }

    /// The hierarchy of diseases of Li et al., of height 3: flu to bronchitis is 1/3, to pulmonary embolism 2/3, to stomach
    /// cancer 3/3.
    #[test]
    fn li_example_of_diseases() {
        let levels = LevelTree::from_csv(
            "flu;infection;lung;*\npneumonia;infection;lung;*\nbronchitis;infection;lung;*\noedema;vascular;lung;*\n\
             embolism;vascular;lung;*\nulcer;stomach;gut;*\ncancer;stomach;gut;*\ngastritis;stomach;gut;*\n\
             colitis;colon;gut;*\ncolon cancer;colon;gut;*\n",
        )
        .unwrap();
        // Nulls and unknown values that a column might hold make no difference.
        for more in [false, true] {
            let tree = levels.to_tree(more, more);
            for (other, expected) in [("bronchitis", 1.0 / 3.0), ("embolism", 2.0 / 3.0), ("cancer", 1.0)] {
                let mut counts = vec![0; tree.codes()];
                counts[levels.find_leaf(other).unwrap() as usize] = 1;
                let table = Shares::new(&counts);
                let work = hierarchical_distance(&[(levels.find_leaf("flu").unwrap(), 1)], &table, &tree);
                assert!((work - expected).abs() < 1e-12, "{other}: {work}");
            }
        }
    }

    /// The definitions, over all values.
    fn plain(histogram: Histogram<'_>, counts: &[u64], tree: &Tree) -> [f64; 3] {
        let (rows, total) = (count_rows(histogram), counts.iter().sum::<u64>() as f64);
        let mut extra: Vec<f64> = counts.iter().map(|&count| -(count as f64) / total).collect();
        histogram.iter().for_each(|&(code, count)| extra[code as usize] += f64::from(count) / rows);
        let equal = extra.iter().map(|extra| extra.abs()).sum::<f64>() / 2.0;
        let mut sum = 0.0;
        let ordered = extra
            .iter()
            .map(|extra| {
                sum += extra;
                f64::abs(sum)
            })
            .sum::<f64>();
        let nodes = tree.nodes();
        let height = f64::from(nodes.iter().map(|node| node.depth).max().unwrap()) + 1.0;
        let mut work = 0.0;
        for (index, node) in nodes.iter().enumerate() {
            let below = |lo: u16, hi: u16| extra[usize::from(lo)..=usize::from(hi)].iter().sum::<f64>();
            let inner =
                nodes.iter().enumerate().filter(|(other, child)| *other != index && child.parent == index as u32);
            let leaves = (node.lo..=node.hi).filter(|&code| tree.node_above(code) == index as u32);
            let children: Vec<f64> =
                inner.map(|(_, child)| below(child.lo, child.hi)).chain(leaves.map(|code| below(code, code))).collect();
            let surplus: f64 = children.iter().map(|extra| extra.max(0.0)).sum();
            let lack: f64 = children.iter().map(|extra| (-extra).max(0.0)).sum();
            work += surplus.min(lack) * (height - f64::from(node.depth)) / height;
        }
        [equal, ordered / (counts.len() - 1) as f64, work]
    }

    proptest! {
        #[test]
        fn sums_over_the_rest_equal_the_definitions(
            counts in prop::collection::vec(0..9_u64, 12), group in prop::collection::vec(0..5_u32, 12)
        ) {
            let histogram: Vec<(u32, u32)> = (0..).zip(group).filter(|(_, count)| *count > 0).collect();
            // A group is part of its table.
            let mut counts = counts;
            histogram.iter().for_each(|&(code, count)| counts[code as usize] += u64::from(count));
            prop_assume!(!histogram.is_empty());
            let tree = Tree::new(12, [(0, 5, 0.5), (1, 3, 0.2), (6, 9, 0.3), (6, 7, 0.1)]);
            let table = Shares::new(&counts);
            let found = [equal_distance(&histogram, &table), ordered_distance(&histogram, &table), hierarchical_distance(&histogram, &table, &tree)];
            for (found, expected) in found.into_iter().zip(plain(&histogram, &counts, &tree)) {
                prop_assert!((found - expected).abs() < 1e-9, "{} {}", found, expected);
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&found));
            }
        }
    }
}
