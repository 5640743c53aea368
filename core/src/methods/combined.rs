//! `combined`: partition, then per bucket raise as little as it takes that the *permuted* bucket has delta-presence (Toth,
//! algorithm 6).
//!
//! 1. A method partitions the public rows into buckets.
//! 2. For every bucket the nodes of its lattice are tried, ascending by the sum of levels, then from the first attribute
//!    on: raise the original values to the node, and ask [`judge_bucket`] what a reader of the permuted columns would
//!    believe of everybody in the bucket.
//! 3. The first node at which everybody is within the bounds is published, each column permuted on its own.
//!
//! No node is skipped because another passed or failed: raising a column of a permuted bucket can break the bounds that
//! held before. The quick test by single values comes first, and finds for each column the levels at which it cannot be
//! published; where counting is too much work the node is taken to fail, and after two such nodes the others of the same sum.
//! Levels at which a bucket has one value per attribute are its top: there the chance of all is members / rows. A bucket
//! that fails at its top fails for good, and [`Failure`] says what then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attack::{Bounds, Bucket, Verdict, judge_bucket};
use crate::grouping::Method;
use crate::grouping::cancel::checkpoint;
use crate::grouping::entry::{Entry, Form, needs_presence};
use crate::grouping::options::{Key, Kind};
use crate::methods;
use crate::methods::mondrian::Mondrian;
use crate::model::{Axis, Code, Grouping, Levels, Table, published_ends};
use crate::privacy::{GroupView, Rules};

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new(
    "combined",
    "Groups of another method, generalised as little as permuting their columns allows within `presence`.",
    |setting| {
        let partition = match setting.options.text(&PARTITION) {
            Some(name) if name != ENTRY.name => methods::find_method(name).map(|entry| (entry.make)(setting)),
            _ => None,
        };
        let bounds = setting.presence.clone().unwrap_or_else(|| Bounds::new(0.0, 1.0));
        let failure = match setting.options.text(&FAILURE) {
            Some("merge") => Failure::Merge,
            _ => Failure::RaiseK,
        };
        let partition = partition.unwrap_or_else(|| Arc::new(Mondrian { strict: true }));
        Arc::new(Combined { raising: Raising::new(bounds), partition, failure })
    },
)
.options(&[PARTITION, FAILURE])
.form(Form::Combined)
.check(needs_presence);

const PARTITION: Key = Key::new(
    "partition",
    "How rows are grouped before anything is generalised. Defaults to `mondrian`.",
    Kind::Word(&[
        ("mondrian", "Median splits, strict."),
        ("mpalm", "Splits that keep the share of members within `presence`."),
        ("l-mondrian", "Median splits with diverse parts."),
        ("top-down", "Halves by two rows far apart."),
    ]),
);

const FAILURE: Key = Key::new(
    "failure",
    "What happens when a group cannot be published at any level. Defaults to `raise-k`.",
    Kind::Word(&[
        ("raise-k", "Rows are grouped again with the least larger k at which every group can, if one is near."),
        ("merge", "The group is merged with its nearest."),
    ]),
);

/// States that the count of one node may hold in a job.
const BUDGET: usize = 1 << 12;
/// Nodes of one sum of levels at which counting may be too much work; the others of that sum are taken to be so too.
const MAX_UNCOUNTED: usize = 2;
/// Nodes that are tried for one group; after them its top is published.
const MAX_NODES: usize = 1 << 12;
/// How many larger k are tried.
const MORE_K: usize = 64;

/// What happens to a bucket for which no node works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failure {
    /// It stays with its neighbour in the order of the partition, and both are tried as one.
    #[default]
    Merge,
    /// It is left out.
    Suppress,
    /// Rows are partitioned again with the next k.
    RaiseK,
}

/// A bucket with the node that it is published at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its public rows.
    pub rows: Vec<u32>,
    /// Level per axis.
    pub node: Vec<u8>,
}

/// The result for a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Combination {
    /// Buckets within the bounds.
    pub buckets: Vec<Published>,
    /// Public rows of buckets for which no node works.
    pub failed: Vec<u32>,
}

/// Finds the first node at which a permuted bucket is within the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raising {
    /// What everybody's chance must lie between.
    pub bounds: Bounds,
    /// How many public people must fit what is published of a bucket.
    pub people: usize,
    /// States that the count of one node may hold.
    pub budget: usize,
}

/// Groups as they are published: on every axis its parts, of rows that are raised to one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// Parts of all groups, per axis.
    pub parts: Vec<Grouping>,
    /// The group of every part, per axis.
    pub group_of: Vec<Vec<u32>>,
}

/// Partition, raise, permute.
#[derive(Debug)]
pub struct Combined {
    /// How buckets are raised.
    pub raising: Raising,
    /// How rows are partitioned.
    pub partition: Arc<dyn Method>,
    /// What happens to buckets for which no node works.
    pub failure: Failure,
}

impl Raising {
    /// With what a job may spend on a node.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, people: 0, budget: BUDGET }
    }

    /// Asks for public people who fit what is published of a bucket.
    #[must_use]
    pub fn with_people(self, people: usize) -> Self {
        Self { people, ..self }
    }

    /// The first node at which a bucket is within the bounds.
    pub fn find_node(&self, table: &Table, levels: &[Levels], rows: &[u32]) -> Option<Vec<u8>> {
        let top = top_node(table, levels, rows);
        let mut allowed: Vec<Vec<u8>> = Vec::with_capacity(top.len());
        for (axis, &height) in top.iter().enumerate() {
            let mut codes: Vec<Code> = rows.iter().map(|&row| table.row(row)[axis]).collect();
            codes.sort_unstable();
            let fits = |level: &u8| {
                lie_apart(&table.axes[axis], &levels[axis], &codes, *level)
                    && !bucket_column(table, &levels[axis], axis, rows, *level).surely_breaks(&self.bounds)
            };
            allowed.push((0..=height).filter(fits).collect());
        }
        if allowed.iter().any(Vec::is_empty) {
            return None;
        }
        let ends = |end: fn(&[u8]) -> Option<&u8>| {
            allowed.iter().map(|of| end(of).map_or(0, |&of| u32::from(of))).sum::<u32>()
        };
        let (least, most) = (ends(<[u8]>::first), ends(<[u8]>::last));
        let mut attempts = MAX_NODES;
        let mut node = Vec::with_capacity(top.len());
        for sum in least..=most {
            let mut uncounted = 0;
            let mut test = |node: &[u8]| {
                if uncounted == MAX_UNCOUNTED {
                    return false;
                }
                attempts = attempts.saturating_sub(1);
                let verdict = if attempts == 0 { Verdict::Within } else { self.judge_node(table, levels, rows, node) };
                uncounted += usize::from(verdict == Verdict::Uncounted);
                verdict == Verdict::Within
            };
            if of_sum(&allowed, sum, &mut node, &mut test) {
                return Some(if attempts == 0 { top } else { node });
            }
        }
        None
    }

    fn judge_node(&self, table: &Table, levels: &[Levels], rows: &[u32], node: &[u8]) -> Verdict {
        checkpoint();
        let bucket = permuted_bucket(table, levels, rows, node);
        let lonely = self.people > 0 && count_fitting(table, levels, rows, node) < self.people;
        if lonely || bucket.surely_breaks(&self.bounds) {
            Verdict::Breaks
        } else {
            judge_bucket(&bucket, &self.bounds, self.budget)
        }
    }

    /// Raises every group to its node, or to its top when it has none.
    pub fn raise_groups(&self, table: &Table, grouping: &Grouping) -> Raised {
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let width = levels.len();
        let mut raised = Raised { parts: vec![Grouping::default(); width], group_of: vec![Vec::new(); width] };
        for (group, rows) in (0..).zip(grouping.iter()) {
            let published = GroupView::new(table, rows).members() > 0;
            let node = if published { self.find_node(table, &levels, rows) } else { None };
            let node = node.unwrap_or_else(|| top_node(table, &levels, rows));
            for axis in 0..width {
                let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for &row in rows {
                    parts.entry(levels[axis].raise_code(table.row(row)[axis], node[axis])).or_default().push(row);
                }
                for part in parts.values() {
                    raised.parts[axis].push(part);
                    raised.group_of[axis].push(group);
                }
            }
        }
        raised
    }
}

/// Nodes of the allowed levels with this sum, from the first axis on, until one passes; it is left in `node`.
fn of_sum(allowed: &[Vec<u8>], sum: u32, node: &mut Vec<u8>, test: &mut impl FnMut(&[u8]) -> bool) -> bool {
    let Some(levels) = allowed.get(node.len()) else { return sum == 0 && test(node) };
    for &level in levels.iter().filter(|level| u32::from(**level) <= sum) {
        node.push(level);
        if of_sum(allowed, sum - u32::from(level), node, test) {
            return true;
        }
        node.pop();
    }
    false
}

/// Whether what a level publishes of these codes, which ascend, says whom each value covers. Beside others, it does not of
/// everything: null with values, all values together where there are nulls, a value that is in no hierarchy.
fn lie_apart(axis: &Axis, levels: &Levels, codes: &[Code], level: u8) -> bool {
    let mut parts = codes.chunk_by(|&a, &b| levels.raise_code(a, level) == levels.raise_code(b, level));
    let mut reached = None;
    parts.all(|part| {
        let (first, last) = published_ends(axis, part);
        let apart = reached.is_none_or(|reached| reached < first);
        reached = Some(last);
        apart
    })
}

/// How many public people fit what a node publishes of a bucket: on every axis, the value of some member.
fn count_fitting(table: &Table, levels: &[Levels], rows: &[u32], node: &[u8]) -> usize {
    let mut fitting = rows.to_vec();
    for (axis, (levels, &level)) in levels.iter().zip(node).enumerate() {
        let raised = |row: u32| levels.raise_code(table.row(row)[axis], level);
        let published: BTreeSet<u32> = table.members_of(rows).map(raised).collect();
        fitting.retain(|&row| published.contains(&raised(row)));
    }
    fitting.len()
}

/// One column of a bucket at a level.
fn bucket_column(table: &Table, levels: &Levels, axis: usize, rows: &[u32], level: u8) -> Bucket {
    let raised = |row: u32| [levels.raise_code(table.row(row)[axis], level)];
    let public: Vec<[u32; 1]> = rows.iter().map(|&row| raised(row)).collect();
    let released: Vec<[u32; 1]> = table.members_of(rows).map(raised).collect();
    Bucket::new(&public, &released)
}

impl Combined {
    /// Buckets and nodes for a table; `rules` are those of the partition.
    pub fn combine_table(&self, table: &Table, rules: &Rules) -> Combination {
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let partition = self.partition.group(table, rules, 0);
        let mut found = Combination { failed: partition.left_over.clone(), ..Combination::default() };
        let mut carried: Vec<u32> = Vec::new();
        for rows in partition.iter() {
            let mut rows = [std::mem::take(&mut carried).as_slice(), rows].concat();
            rows.sort_unstable();
            match (self.raising.find_node(table, &levels, &rows), self.failure) {
                (Some(node), _) => found.buckets.push(Published { rows, node }),
                (None, Failure::Merge) => carried = rows,
                (None, _) => found.failed.extend(rows),
            }
        }
        // What is carried beyond the last bucket goes back into those before, from the last on.
        while !carried.is_empty() {
            let Some(last) = found.buckets.pop() else {
                found.failed.append(&mut carried);
                break;
            };
            carried.extend(last.rows);
            carried.sort_unstable();
            if let Some(node) = self.raising.find_node(table, &levels, &carried) {
                found.buckets.push(Published { rows: std::mem::take(&mut carried), node });
            }
        }
        found
    }

    /// The smallest k, up to `most`, at which every bucket has a node; `None` if there is none.
    pub fn least_k(&self, table: &Table, most: usize) -> Option<(usize, Combination)> {
        let (raising, partition) = (self.raising.clone(), Arc::clone(&self.partition));
        let strict = Self { raising, partition, failure: Failure::Suppress };
        (1..=most).find_map(|k| {
            let found = strict.combine_table(table, &Rules::k(k));
            found.failed.is_empty().then_some((k, found))
        })
    }
}

impl Method for Combined {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    /// Only the partition: what its groups are raised to is found when they are published. A group can be published at some
    /// level when it can at its top, where everybody's chance is the share of members. What cannot, settling merges.
    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        let others = rules.others.iter().filter(|rule| !rule.guards_the_absent()).cloned();
        let mut plain = Rules { k: rules.k, others: others.collect() };
        let first = self.partition.group(cell, &plain, seed);
        if cell.members.is_none() || self.failure != Failure::RaiseK {
            return first;
        }
        let passes = |grouping: &Grouping| {
            let fits = |rows: &[u32]| {
                let view = GroupView::new(cell, rows);
                self.raising.bounds.allow_counts(view.members() as u64, rows.len() as u64)
            };
            grouping.left_over.is_empty() && grouping.iter().all(fits)
        };
        if passes(&first) {
            return first;
        }
        let larger = (rules.k + 1..=rules.k + MORE_K).map(|k| {
            plain.k = k;
            self.partition.group(cell, &plain, seed)
        });
        larger.into_iter().find(passes).unwrap_or(first)
    }
}

/// The lowest levels at which a bucket has one value per attribute.
fn top_node(table: &Table, levels: &[Levels], rows: &[u32]) -> Vec<u8> {
    let single = |axis: usize, level: u8| {
        let mut raised = rows.iter().map(|&row| levels[axis].raise_code(table.row(row)[axis], level));
        let first = raised.next();
        raised.all(|value| Some(value) == first)
    };
    (0..levels.len())
        .map(|axis| (0..levels[axis].height()).find(|&level| single(axis, level)).unwrap_or(levels[axis].height()))
        .collect()
}

/// A bucket as it is read when its rows are raised to a node and every column is permuted on its own.
pub fn permuted_bucket(table: &Table, levels: &[Levels], rows: &[u32], node: &[u8]) -> Bucket {
    let raised = |row: &u32| -> Vec<u32> {
        table
            .row(*row)
            .iter()
            .zip(levels)
            .zip(node)
            .map(|((&code, levels), &level)| levels.raise_code(code, level))
            .collect()
    };
    let public: Vec<Vec<u32>> = rows.iter().map(raised).collect();
    let released: Vec<Vec<u32>> = rows.iter().filter(|&&row| table.is_member(row)).map(raised).collect();
    Bucket::new(&public, &released)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attack::Fraction;
    use crate::attack::worlds::enumerate_worlds;
    use crate::grouping::fixtures;
    use crate::grouping::mpalm::{Mpalm, Reading};
    use crate::model::{NULL_ON_LINE, Region, Shape, Tree};

    fn combined(min: f64, max: f64) -> Combined {
        let raising = Raising::new(Bounds::new(min, max));
        Combined { raising, partition: Arc::new(Mondrian { strict: true }), failure: Failure::Suppress }
    }

    #[test]
    fn toth_figs_5_2_to_5_4_publish_z1_a0() {
        let table = fixtures::p1_t1();
        let found = combined(0.1, 0.9).combine_table(&table, &Rules::k(4));
        assert_eq!(found.buckets, [Published { rows: (0..10).collect(), node: vec![1, 0] }]);
        assert!(found.failed.is_empty());
    }

    /// Seen failing: a bucket was published at a node that two of its four people fit.
    #[test]
    fn a_node_is_raised_until_enough_people_fit() {
        let mut table =
            Table::new([Axis::new("x", Shape::Tree(Tree::new(4, [(0, 1, 0.3), (2, 3, 0.3)])))], vec![0, 1, 2, 3]);
        table.members = Some(vec![true, true, false, false]);
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let raising = Raising::new(Bounds::new(0.0, 1.0));
        let node = |people: usize| raising.clone().with_people(people).find_node(&table, &levels, &[0, 1, 2, 3]);
        assert_eq!([0, 2, 3, 4, 5].map(node), [Some(vec![0]), Some(vec![0]), Some(vec![2]), Some(vec![2]), None]);
    }

    #[test]
    fn toth_figs_5_5_to_5_8_xor_publishes_both_columns() {
        let mut table = fixtures::xor();
        let found = combined(0.5, 0.5).combine_table(&table, &Rules::k(4));
        // Two members are fewer than k, so nothing is cut, and nothing is published by the partition itself.
        assert_eq!(found.buckets, [Published { rows: vec![0, 1, 2, 3], node: vec![0, 0] }]);
        // MPALM can publish one of them only: its buckets are smaller, 2² + 2² on public rows against 4².
        let mpalm = Mpalm { bounds: Bounds::new(0.5, 0.5), reading: Reading::Multiway };
        let rules =
            Rules { k: 1, others: vec![std::sync::Arc::new(crate::privacy::presence::Presence::new(0.5, 0.5))] };
        assert_eq!(mpalm.group(&table, &rules, 0).iter().map(|group| group.len().pow(2)).sum::<usize>(), 8);
        table.members = None;
        assert_eq!(combined(0.5, 0.5).combine_table(&table, &Rules::k(4)).failed.len(), 4, "nobody to hide among");
    }

    /// The bounds hold at the fine node and break at the coarser one.
    #[test]
    fn toth_presence_is_not_monotone_under_permutation() {
        let axes =
            [Axis::new("a", Shape::Tree(Tree::new(3, [(0, 1, 0.5)]))), Axis::new("b", Shape::Tree(Tree::new(2, [])))];
        let mut table = Table::new(axes, vec![2, 0, 0, 1, 2, 1, 1, 1, 0, 0]);
        table.members = Some(vec![false, false, true, false, true]);
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let at = |node: &[u8]| enumerate_worlds(&permuted_bucket(&table, &levels, &[0, 1, 2, 3, 4], node)).unwrap().1;
        let half = Fraction::from((1, 2));
        assert_eq!(at(&[0, 0]), [half.clone(), half.clone(), half.clone(), Fraction::zero(), half]);
        let third = Fraction::from((1, 3));
        assert_eq!(at(&[1, 0]), [Fraction::from((2, 3)), third.clone(), third.clone(), third.clone(), third]);
        let both = combined(0.0, 0.5).raising;
        assert_eq!(both.judge_node(&table, &levels, &[0, 1, 2, 3, 4], &[0, 0]), Verdict::Within);
        assert_eq!(both.judge_node(&table, &levels, &[0, 1, 2, 3, 4], &[1, 0]), Verdict::Breaks);
    }

    /// One axis, two members among twice as many people, a code and its number of people for each.
    fn half_of_each(axis: Axis, codes: [Code; 2]) -> Table {
        let mut table = Table::new([axis], vec![codes[0], codes[0], codes[1], codes[1]]);
        table.members = Some(vec![true, false, true, false]);
        table
    }

    fn node_of(table: &Table) -> Option<Vec<u8>> {
        let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
        let rows: Vec<u32> = (0..table.rows() as u32).collect();
        combined(0.0, 0.78).raising.find_node(table, &levels, &rows)
    }

    /// Everybody's chance is one half at the level of all values, but what that publishes covers those with nulls, too.
    #[test]
    fn all_values_together_are_not_published_beside_null() {
        let table = |null| {
            let mut axis = Axis::new("step", Shape::Tree(Tree::new(3, [(0, 1, 1.0)])));
            axis.null = null;
            let mut table = Table::new([axis], vec![0, 1, 2, 2]);
            table.members = Some(vec![true, false, true, false]);
            table
        };
        assert_eq!(node_of(&table(Some(2))), Some(vec![2]));
        assert_eq!(node_of(&table(None)), Some(vec![1]), "the third is a value like others");
    }

    /// What is no number shares the code of null, and is published as everything.
    #[test]
    fn numbers_are_not_published_beside_what_is_none() {
        let table = |shared| {
            let mut axis = Axis::new("line", Shape::Line { span: 9 });
            (axis.null, axis.shared_null) = (Some(NULL_ON_LINE), shared);
            half_of_each(axis, [3, NULL_ON_LINE])
        };
        assert_eq!(node_of(&table(false)), Some(vec![0]));
        assert_eq!(node_of(&table(true)), Some(vec![1]));
    }

    /// The values of a code on a border may be of both nodes, and are published as what is above these.
    #[test]
    fn codes_on_a_border_are_not_published_beside_others() {
        let tree = |exact| {
            let mut axis = Axis::new("step", Shape::Tree(Tree::new(8, [(0, 3, 0.4), (4, 7, 0.4)])));
            axis.exact = exact;
            axis
        };
        assert_eq!(node_of(&half_of_each(tree(true), [3, 6])), Some(vec![0]));
        assert_eq!(node_of(&half_of_each(tree(false), [3, 6])), Some(vec![2]));
        assert_eq!(node_of(&half_of_each(tree(false), [2, 6])), Some(vec![0]));
    }

    proptest! {
        /// By definition: nobody's value is covered by two published values of a column of a group.
        #[test]
        fn everybody_fits_one_value_of_a_column(
            codes in prop::collection::vec(0..5 as Code, 4..24), flags in any::<u16>(), (nulls, max) in (any::<bool>(), 0.5..0.9)
        ) {
            let tree = Tree::new(5, [(0, 3, 1.0), (0, 1, 0.3), (2, 3, 0.3)]);
            let axes = ["a", "b"].map(|name| {
                let mut axis = Axis::new(name, Shape::Tree(tree.clone()));
                axis.null = nulls.then_some(4);
                axis
            });
            let rows = codes.len() / 2;
            let mut table = Table::new(axes, codes[..rows * 2].to_vec());
            table.members = Some((0..rows).map(|row| flags >> row & 1 == 1).collect());
            let mut grouping = Grouping::default();
            grouping.push(&(0..rows as u32).collect::<Vec<_>>());
            let raised = combined(0.0, max).raising.raise_groups(&table, &grouping);
            for (axis, parts) in raised.parts.iter().enumerate() {
                let regions: Vec<Region> = parts.iter().map(|part| Region::from_cover(&table.axes, &table.cover(part))).collect();
                for code in 0..5 {
                    let fitting = regions.iter().filter(|region| region.holds_code(axis, code)).count();
                    prop_assert!(fitting <= 1, "code {code} of axis {axis} fits {fitting} values");
                }
            }
        }

        #[test]
        fn published_buckets_are_present_by_trying_every_subset(codes in prop::collection::vec(0..4_u16, 2..28), flags in any::<u16>(), merge in any::<bool>()) {
            let rows = codes.len() / 2;
            let axes = ["a", "b"].map(|name| Axis::new(name, Shape::Tree(Tree::new(4, [(0, 1, 0.5), (2, 3, 0.5)]))));
            let mut table = Table::new(axes, codes[..rows * 2].to_vec());
            table.members = Some((0..rows).map(|row| flags >> row & 1 == 1).collect());
            let failure = if merge { Failure::Merge } else { Failure::Suppress };
            let method = Combined { failure, ..combined(0.1, 0.8) };
            let found = method.combine_table(&table, &Rules::k(2));
            let levels: Vec<Levels> = table.axes.iter().map(Levels::from_axis).collect();
            let mut all: Vec<u32> = found.failed.clone();
            for bucket in &found.buckets {
                let (_, shares) = enumerate_worlds(&permuted_bucket(&table, &levels, &bucket.rows, &bucket.node)).unwrap();
                prop_assert!(shares.iter().all(|share| method.raising.bounds.contains_fraction(share)));
                all.extend(&bucket.rows);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows as u32).collect::<Vec<_>>());
            let whole = found.failed.len() == rows || found.failed.is_empty();
            prop_assert!(!merge || whole, "merging ends with all or nothing");
        }
    }

    /// A11 of the spec: AG of P1 at <Z1, A0> is one level for each of the eight members, and permuting costs nothing; DM of
    /// the XOR table is 2² + 2² by MPALM and 4² here, on public rows.
    #[test]
    fn toth_a11_amount_of_generalisation_by_hand() {
        let table = fixtures::p1_t1();
        let mut grouping = Grouping::default();
        grouping.push(&(0..10).collect::<Vec<_>>());
        let raised = combined(0.1, 0.9).raising.raise_groups(&table, &grouping);
        let mut sums = crate::measure::Generalisation::default();
        for (axis, parts) in raised.parts.iter().enumerate() {
            for rows in parts.iter() {
                sums.add_values(&table.axes, axis, &table.cover(rows), table.members_of(rows).count() as u64);
            }
        }
        assert_eq!((raised.parts[0].len(), raised.parts[1].len(), sums.distortion()), (1, 2, 8));
        assert_eq!(raised.group_of, [vec![0], vec![0, 0]]);
    }

    #[test]
    fn a_partition_is_made_again_with_the_least_k_that_works() {
        let table = fixtures::p1_t1();
        let raise_k = |failure| Combined { failure, ..combined(0.1, 0.9) };
        let presence = Arc::new(crate::privacy::presence::Presence::new(0.1, 0.9));
        let rules = Rules { k: 1, others: vec![presence] };
        let fits =
            |grouping: &Grouping| grouping.iter().all(|rows| rules.others[0].is_met_by(&GroupView::new(&table, rows)));
        assert!(!fits(&raise_k(Failure::Merge).group(&table, &rules, 0)), "left to settling");
        assert!(fits(&raise_k(Failure::RaiseK).group(&table, &rules, 0)));
    }

    #[test]
    fn the_least_k_is_found() {
        let table = fixtures::p1_t1();
        let (k, found) = combined(0.1, 0.9).least_k(&table, 10).unwrap();
        assert!(
            found.failed.is_empty() && !combined(0.1, 0.9).combine_table(&table, &Rules::k(k - 1)).failed.is_empty()
        );
        assert_eq!(combined(0.1, 0.79).least_k(&table, 10), None);
    }
}
