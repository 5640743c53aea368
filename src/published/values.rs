//! What the keys of a sensitive column mean: how far values lie apart, what range each would reveal, and how often each
//! is published in the whole table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit, i256};

use super::exact::{Keys, NULL, Ranks, byte_key, float_of, wide_number};
use crate::binding::SensitiveColumn;
use crate::hierarchy::{Hierarchy, LevelTree};
use crate::policy::{RangeOf, Ranges, Values as Listed};

/// A sensitive column as rules see it.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) shape: Shape,
    ranges: Ranges,
    /// The range of every listed text, by key.
    words: HashMap<i128, Arc<[i128]>>,
    /// The whole published table, when a rule compares classes with it.
    pub(crate) table: Option<Arc<Table>>,
}

/// How values relate.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Numbers and points in time, and how long their domain is.
    Line(Unit, f64),
    /// Values with a hierarchy.
    Tree(Arc<Forest>),
    /// Categories without one: how many there are.
    Set(u64),
}

/// What a key of a line counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unit {
    /// Floating-point numbers in their order.
    Float,
    /// Whole numbers, this many to a unit.
    Whole(f64),
    /// Ranks of whole numbers, this many to a unit.
    Ranked(Arc<Ranks>, f64),
}

impl Unit {
    /// The unit of a type: points in time are counted in days.
    pub(crate) fn of_type(data_type: &DataType) -> Self {
        const DAY: f64 = 86_400.0;
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::Second => 1.0,
            TimeUnit::Millisecond => 1e3,
            TimeUnit::Microsecond => 1e6,
            TimeUnit::Nanosecond => 1e9,
        };
        match data_type {
            DataType::Dictionary(_, values) => Self::of_type(values),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Date64 => Self::Whole(DAY * 1e3),
            DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
                Self::Whole(DAY * per_second(unit))
            }
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => Self::Whole(10_f64.powi(i32::from(*scale))),
            _ => Self::Whole(1.0),
        }
    }

    /// The same for keys that are ranks.
    fn with_ranks(self, ranks: Option<&Arc<Ranks>>) -> Self {
        match (self, ranks) {
            (Self::Whole(unit), Some(ranks)) => Self::Ranked(Arc::clone(ranks), unit),
            (unit, _) => unit,
        }
    }

    /// Where a key lies; null lies nowhere.
    pub(crate) fn position(&self, key: i128) -> f64 {
        match self {
            _ if key == NULL => f64::NAN,
            Self::Float => float_of(key as i64),
            Self::Whole(unit) => key as f64 / unit,
            Self::Ranked(ranks, unit) => ranks.rank_digits(key).map_or(f64::NAN, |digits| wide_number(digits) / unit),
        }
    }

    /// Where a wide decimal lies.
    pub(crate) fn position_wide(&self, digits: i256) -> f64 {
        self.between_wide(i256::ZERO, digits)
    }

    /// How far wide decimals lie apart.
    pub(crate) fn between_wide(&self, low: i256, high: i256) -> f64 {
        match self {
            Self::Whole(unit) | Self::Ranked(_, unit) => wide_number(high.wrapping_sub(low)) / unit,
            Self::Float => f64::NAN,
        }
    }

    /// How far the second key lies behind the first: the difference is taken before it is rounded.
    pub(crate) fn distance_between(&self, low: i128, high: i128) -> f64 {
        match self {
            Self::Float => self.position(high) - self.position(low),
            Self::Whole(unit) => high.saturating_sub(low) as f64 / unit,
            Self::Ranked(ranks, _) => match (ranks.rank_digits(low), ranks.rank_digits(high)) {
                (Some(low), Some(high)) => self.between_wide(low, high),
                _ => f64::NAN,
            },
        }
    }
}

impl Values {
    /// The values of a column, of which the published ones lie so far apart, or are so many, and have these ranks if they
    /// need any.
    pub(crate) fn new(
        column: &SensitiveColumn,
        width: f64,
        distinct: u64,
        table: Option<Arc<Table>>,
        ranks: Option<&Arc<Ranks>>,
    ) -> Self {
        let shape = match Keys::of_column(column, ranks) {
            Keys::Line | Keys::Ranks(_) => {
                let width = column.domain.map_or(width, |[min, max]| max - min);
                Shape::Line(Unit::of_type(&column.data_type).with_ranks(ranks), width)
            }
            Keys::Leaves(_) | Keys::Bytes => match &column.hierarchy {
                Some(hierarchy) if matches!(hierarchy.as_ref(), Hierarchy::Levels(_)) => {
                    Shape::Tree(Arc::new(Forest::of_hierarchy(hierarchy)))
                }
                _ => Shape::Set(distinct),
            },
        };
        let mut words = HashMap::new();
        if let (Ranges::Listed(listed), Shape::Set(_)) = (&column.ranges, &shape) {
            for entry in listed {
                let (Listed::Listed(values), RangeOf::Listed(range)) = (&entry.values, &entry.range) else { continue };
                let range: BTreeSet<i128> = range.iter().map(|word| byte_key(word.as_bytes())).collect();
                let range: Arc<[i128]> = range.into_iter().collect();
                for value in values {
                    words.entry(byte_key(value.as_bytes())).or_insert_with(|| Arc::clone(&range));
                }
            }
        }
        Self { shape, ranges: column.ranges.clone(), words, table }
    }

    /// How close two values are: 1 for equal ones, 0 for the two ends of the domain.
    pub(crate) fn closeness(&self, u: i128, v: i128) -> f64 {
        let (low, high) = (u.min(v), u.max(v));
        if low == high {
            return 1.0;
        }
        if high == NULL {
            return 0.0;
        }
        let apart = match &self.shape {
            Shape::Line(unit, width) => match unit.distance_between(low, high) {
                apart if apart.is_nan() => 1.0,
                apart if *width > 0.0 => (apart / width).clamp(0.0, 1.0),
                _ => 0.0,
            },
            Shape::Tree(forest) => forest.loss(low, high),
            Shape::Set(values) => 1.0 / values.saturating_sub(1).max(1) as f64,
        };
        1.0 - apart
    }

    /// The share of the domain that the values of a class span: 1 minus its S-diversity.
    pub(crate) fn spread(&self, histogram: &[(i128, u64)]) -> f64 {
        let (Some(&(low, _)), Some(&(high, _))) = (histogram.first(), histogram.last()) else { return 0.0 };
        match &self.shape {
            Shape::Set(values) => (histogram.len() as f64 - 1.0) / values.saturating_sub(1).max(1) as f64,
            _ => 1.0 - self.closeness(low, high),
        }
    }

    /// Whether `x` lies in the range that the disclosure of `u` would reveal.
    fn is_near(&self, u: i128, x: i128) -> bool {
        if u == x {
            return true;
        }
        match (&self.ranges, &self.shape) {
            (Ranges::Interval(length), Shape::Line(unit, _)) if u != NULL && x != NULL => match unit {
                Unit::Float => {
                    let (at, other) = (unit.position(u), unit.position(x));
                    (at - length / 2.0..=at + length / 2.0).contains(&other)
                }
                Unit::Whole(_) | Unit::Ranked(..) => 2.0 * unit.distance_between(u.min(x), u.max(x)) <= *length,
            },
            (Ranges::Listed(listed), Shape::Line(unit, _)) => {
                let (at, other) = (unit.position(u), unit.position(x));
                let found = listed.iter().find_map(|entry| match (&entry.values, &entry.range) {
                    (Listed::Between([low, high]), RangeOf::Between(range)) if (*low..=*high).contains(&at) => {
                        Some(*range)
                    }
                    _ => None,
                });
                found.is_some_and(|[from, to]| (from..=to).contains(&other))
            }
            (Ranges::Level(level), Shape::Tree(forest)) => {
                forest.span_at_level(u, *level as usize).is_some_and(|(lo, hi)| (lo..=hi).contains(&x))
            }
            (Ranges::Listed(listed), Shape::Tree(forest)) => {
                let Some(name) = forest.leaf_name(u) else { return false };
                let found = listed.iter().find_map(|entry| match (&entry.values, &entry.range) {
                    (Listed::Listed(values), RangeOf::Node(node)) if values.iter().any(|value| value == name) => {
                        forest.span_of(node)
                    }
                    _ => None,
                });
                found.is_some_and(|(lo, hi)| (lo..=hi).contains(&x))
            }
            _ => self.words.get(&u).is_some_and(|range| range.binary_search(&x).is_ok()),
        }
    }

    /// The values of a class that lie in the range of one of them, that one included.
    pub(crate) fn in_range<'a>(
        &'a self,
        histogram: &'a [(i128, u64)],
        at: usize,
    ) -> impl Iterator<Item = (i128, u64)> + 'a {
        let u = histogram[at].0;
        // Listed words lie anywhere; all other ranges are intervals around the value.
        let anywhere = if self.words.contains_key(&u) { histogram } else { &[] };
        let (below, above) = if anywhere.is_empty() { histogram.split_at(at) } else { (&[][..], &[][..]) };
        let near = move |entry: &&(i128, u64)| self.is_near(u, entry.0);
        let around = below.iter().rev().take_while(near).chain(above.iter().take_while(near));
        around.chain(anywhere.iter().filter(near)).copied()
    }
}

/// How often every value of a column is published.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    keys: Vec<i128>,
    counts: Vec<u64>,
    /// Rows with a key before each; one longer than the keys.
    below: Vec<i128>,
    /// Sums of the rows up to and with each key, over the keys before each; one longer than the keys.
    sums: Vec<i128>,
}

impl Table {
    pub(crate) fn new(counted: BTreeMap<i128, u64>) -> Self {
        let (keys, counts): (Vec<i128>, Vec<u64>) = counted.into_iter().unzip();
        let (mut below, mut sums) = (vec![0], vec![0]);
        let (mut rows, mut sum) = (0, 0);
        for count in &counts {
            rows += i128::from(*count);
            sum += rows;
            below.push(rows);
            sums.push(sum);
        }
        Self { keys, counts, below, sums }
    }

    /// All rows.
    pub(crate) fn rows(&self) -> i128 {
        self.below[self.keys.len()]
    }

    /// Different values.
    pub(crate) fn values(&self) -> usize {
        self.keys.len()
    }

    /// The place of a key: of the first that is not before it.
    pub(crate) fn key_place(&self, key: i128) -> usize {
        self.keys.partition_point(|other| *other < key)
    }

    /// Rows with a key.
    pub(crate) fn rows_with_key(&self, key: i128) -> i128 {
        let place = self.key_place(key);
        if self.keys.get(place) == Some(&key) { i128::from(self.counts[place]) } else { 0 }
    }

    /// Rows with a key from `lo` to `hi`, both included.
    pub(crate) fn rows_between(&self, lo: i128, hi: i128) -> i128 {
        self.below[self.key_place(hi + 1)] - self.below[self.key_place(lo)]
    }

    /// Sum over the places `from..until` of how far `rows` times the rows up to and with each are from `level`.
    pub(crate) fn distance_to_level(&self, from: usize, until: usize, rows: i128, level: i128) -> i128 {
        let middle = from + self.below[from + 1..=until].partition_point(|up_to| up_to * rows < level);
        let under = (middle - from) as i128 * level - (self.sums[middle] - self.sums[from]) * rows;
        let over = (self.sums[until] - self.sums[middle]) * rows - (until - middle) as i128 * level;
        under + over
    }
}

/// The inner nodes of a hierarchy over the numbers of its leaves, below a root that also holds what the hierarchy does not
/// know.
#[derive(Debug)]
pub(crate) struct Forest {
    hierarchy: Arc<Hierarchy>,
    /// First and last leaf, parent and depth of every node; the root is the first.
    pub(crate) nodes: Vec<Node>,
    /// The deepest node above every leaf.
    above: Vec<u32>,
    /// Steps from a leaf to the hierarchy's own root.
    levels: u32,
    leaves: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
    pub(crate) parent: u32,
    pub(crate) depth: u32,
}

impl Forest {
    fn of_hierarchy(hierarchy: &Arc<Hierarchy>) -> Self {
        let Hierarchy::Levels(levels) = hierarchy.as_ref() else {
            let (nodes, above) = (vec![Node { lo: 0, hi: NULL - 1, parent: 0, depth: 0 }], Vec::new());
            return Self { hierarchy: Arc::clone(hierarchy), nodes, above, levels: 1, leaves: 0 };
        };
        let leaves = levels.leaves().len();
        // Outer nodes first. What stands for one value, or for the same values as another node, is not a node of its own.
        let spans: BTreeSet<(u32, std::cmp::Reverse<u32>)> = (0..leaves as u32)
            .flat_map(|leaf| levels.parents(leaf).iter().map(|node| levels.node_span(*node)))
            .filter(|(lo, hi)| lo < hi)
            .map(|(lo, hi)| (lo, std::cmp::Reverse(hi)))
            .collect();
        let mut nodes = vec![Node { lo: 0, hi: leaves as i128 + 1, parent: 0, depth: 0 }];
        let mut above = vec![0; leaves + 2];
        let mut open: Vec<u32> = vec![0];
        for (lo, std::cmp::Reverse(hi)) in spans {
            while open.last().is_some_and(|&last| nodes[last as usize].hi < i128::from(lo)) {
                open.pop();
            }
            let index = nodes.len() as u32;
            let parent = open.last().copied().unwrap_or(0);
            nodes.push(Node { lo: i128::from(lo), hi: i128::from(hi), parent, depth: open.len() as u32 });
            above[lo as usize..=hi as usize].fill(index);
            open.push(index);
        }
        let levels = nodes.iter().map(|node| node.depth).max().unwrap_or(0).max(1);
        Self { hierarchy: Arc::clone(hierarchy), nodes, above, levels, leaves }
    }

    fn tree(&self) -> Option<&LevelTree> {
        match self.hierarchy.as_ref() {
            Hierarchy::Levels(levels) => Some(levels),
            _ => None,
        }
    }

    /// The deepest node above a leaf.
    pub(crate) fn node_above(&self, leaf: i128) -> u32 {
        self.above.get(leaf as usize).copied().unwrap_or(0)
    }

    /// Steps from a leaf up to a node, as a share of the steps to the root.
    pub(crate) fn node_height(&self, node: u32) -> f64 {
        let level = self.levels - self.nodes[node as usize].depth.saturating_sub(1);
        let height = self.tree().map_or(1, LevelTree::height);
        f64::from(level) / height as f64
    }

    /// What publishing the closest common ancestor of two leaves would lose.
    fn loss(&self, lo: i128, hi: i128) -> f64 {
        let mut node = &self.nodes[self.node_above(lo) as usize];
        while node.hi < hi {
            node = &self.nodes[node.parent as usize];
        }
        let known = node.depth > 0;
        if known { (node.hi - node.lo) as f64 / (self.leaves.max(2) - 1) as f64 } else { 1.0 }
    }

    fn span_at_level(&self, leaf: i128, level: usize) -> Option<(i128, i128)> {
        let known = (leaf as usize) < self.leaves;
        let (lo, hi) = self.tree().filter(|_| known)?.span_at_level(leaf as u32, level);
        Some((i128::from(lo), i128::from(hi)))
    }

    fn leaf_name(&self, leaf: i128) -> Option<&str> {
        let known = (leaf as usize) < self.leaves;
        Some(self.tree().filter(|_| known)?.leaf_label(leaf as u32))
    }

    /// First and last leaf below a node of the hierarchy.
    pub(crate) fn span_of(&self, node: &str) -> Option<(i128, i128)> {
        let (lo, hi) = self.tree()?.span_of(node)?;
        Some((i128::from(lo), i128::from(hi)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_sums_of_gaps() {
        let table = Table::new([(-3, 1), (5, 4), (6, 3), (9, 2), (NULL, 7)].into());
        let up_to = [1, 5, 8, 10, 17];
        for rows in [1, 3, 10] {
            for level in [0, 5, 17, 60, 170] {
                for from in 0..5 {
                    for until in from..=5 {
                        let plain: i128 = up_to[from..until].iter().map(|all: &i128| (all * rows - level).abs()).sum();
                        assert_eq!(table.distance_to_level(from, until, rows, level), plain);
                    }
                }
            }
        }
        assert_eq!(
            (table.rows(), table.rows_with_key(6), table.rows_with_key(7), table.rows_between(0, 9)),
            (17, 3, 0, 9)
        );
    }

    #[test]
    fn forests_count_levels_from_the_top() {
        let levels = LevelTree::from_csv("flu;infection;lung;*\ncold;infection;lung;*\nburn;skin;outside;*\n").unwrap();
        let forest = Forest::of_hierarchy(&Arc::new(Hierarchy::Levels(levels)));
        let of = |a: i128, b: i128| {
            let mut node = forest.node_above(a);
            while forest.nodes[node as usize].hi < b {
                node = forest.nodes[node as usize].parent;
            }
            forest.node_height(node)
        };
        // `lung` holds the same values as `infection`, so it is not a level of its own.
        assert_eq!((forest.levels, of(0, 1), of(0, 2), of(0, 4)), (2, 1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0));
        assert_eq!((forest.loss(0, 1), forest.loss(1, 2), forest.loss(2, 3)), (0.5, 1.0, 1.0));
    }
}
