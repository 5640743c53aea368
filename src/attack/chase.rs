//! The chase: with functional dependencies that everybody knows, a reader can undo generalisations.
//!
//! When two published rows have the same known values on the left of a dependency, their values on the right are the
//! same too, so each right side lies in all that the release says of any of them. What is learnt of one row may complete
//! the left side of another dependency, so this goes on until nothing more is learnt:
//!
//! 1. Every row is narrowed down by what is known so far ([`Knowledge::refine`]).
//! 2. From rows whose left side is known exactly, the meet of their right sides is gathered ([`Knowledge::learn`]).
//! 3. Both are repeated with what was gathered, until it stays the same.
//!
//! The rows of a class then no longer look alike, and classes are counted anew. A left side of quasi-identifiers alone
//! is the same throughout a class and cannot split it; one with a column that is published as it is can. Gorla's table
//! R'' is such a case: the diagnosis tells the medication that was generalised to hide the people.
//!
//! A meet is a set intersection, so the order of rows makes no difference. Where rows contradict one another the
//! dependency does not hold and nothing is concluded. Rows are looked at one at a time: memory holds one entry per known
//! left side, and between rounds only those that tell something.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::domain::{Attribute, Dependency};

/// What a reader knows of one value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Known {
    /// Nothing: the top.
    Anything,
    /// There is no value.
    Null,
    /// A position between two, both included.
    Between(u64, u64),
    /// One of some values, by their hashes, ascending.
    OneOf(Arc<[u64]>),
    /// Text that begins so; `whole`: that is all of it.
    Begins {
        /// The beginning (or the end, backwards).
        text: Arc<str>,
        /// Whether nothing follows.
        whole: bool,
    },
    /// A stand-in that says nothing certain of the value, but tells published rows apart.
    Shown(u64),
    /// No value fits: rows contradict one another.
    Nothing,
}

impl Known {
    /// One of the given texts.
    pub fn one_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hashes: Vec<u64> = texts.into_iter().map(|text| hash_of(&text)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self::OneOf(hashes.into())
    }

    /// A number that stands for the value, when it is known exactly.
    fn exactly(&self) -> Option<u64> {
        match self {
            Self::Null => Some(0x6E75_6C6C),
            Self::Between(lo, hi) if lo == hi => Some(hash_of(lo)),
            Self::OneOf(values) if values.len() == 1 => Some(values[0]),
            Self::Begins { text, whole: true } => Some(hash_of(text)),
            _ => None,
        }
    }

    /// What is known when both are true.
    pub fn meet(&self, other: &Self) -> Self {
        use Known::{Anything, Begins, Between, Nothing, OneOf};
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Anything, known) | (known, Anything) => known.clone(),
            (Between(a, b), Between(c, d)) if a.max(c) <= b.min(d) => Between(*a.max(c), *b.min(d)),
            (OneOf(a), OneOf(b)) => {
                let both: Vec<u64> = a.iter().copied().filter(|value| b.binary_search(value).is_ok()).collect();
                if both.is_empty() { Nothing } else { OneOf(both.into()) }
            }
            (Begins { text: a, whole: false }, longer @ Begins { text: b, .. })
            | (longer @ Begins { text: b, .. }, Begins { text: a, whole: false })
                if b.starts_with(a.as_ref()) =>
            {
                longer.clone()
            }
            _ => Nothing,
        }
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A published row as the chase sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is known of every quasi-identifier.
    pub known: Vec<Known>,
    /// Hashes of the columns that are published as they are and that a dependency names.
    pub plain: Vec<u64>,
}

/// What is known of the right sides, by left side.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    rules: Arc<[Rule]>,
    told: Vec<HashMap<u128, Told>>,
}

/// A dependency with quasi-identifiers on its right side: the others are published as they are.
#[derive(Debug, PartialEq)]
struct Rule {
    from: Vec<Attribute>,
    to: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Told {
    /// What is known of each quasi-identifier on the right.
    values: Vec<Known>,
    /// What the first row publishes there.
    published: u64,
    /// Whether another row publishes something else.
    differ: bool,
}

impl Told {
    fn meet(&mut self, values: &[Known]) {
        self.values.iter_mut().zip(values).for_each(|(mine, theirs)| *mine = mine.meet(theirs));
    }

    /// Whether it says more than some row does itself.
    fn tells(&self) -> bool {
        self.differ || hash_of(&self.values) != self.published
    }
}

/// Bytes that one known left side takes, about.
const ENTRY_BYTES: usize = 192;

impl Knowledge {
    /// Nothing known yet.
    pub fn new(dependencies: &[Dependency]) -> Self {
        let rule = |dependency: &Dependency| {
            let quasi = |attribute: &Attribute| if let Attribute::Quasi(at) = attribute { Some(*at) } else { None };
            Rule { from: dependency.from.clone(), to: dependency.to.iter().filter_map(quasi).collect() }
        };
        let rules: Arc<[Rule]> = dependencies.iter().map(rule).filter(|rule| !rule.to.is_empty()).collect();
        Self { told: vec![HashMap::new(); rules.len()], rules }
    }

    /// The same dependencies, and nothing known.
    pub fn emptied(&self) -> Self {
        Self { rules: Arc::clone(&self.rules), told: vec![HashMap::new(); self.rules.len()] }
    }

    /// Narrows a row down by everything that is known.
    pub fn refine(&self, row: &mut Row) {
        let mut narrowed = true;
        while narrowed {
            narrowed = false;
            for (rule, told) in self.rules.iter().zip(&self.told) {
                let Some(told) = key(rule, row).and_then(|key| told.get(&key)) else { continue };
                for (&at, value) in rule.to.iter().zip(&told.values) {
                    let both = row.known[at].meet(value);
                    if both != Known::Nothing && both != row.known[at] {
                        row.known[at] = both;
                        narrowed = true;
                    }
                }
            }
        }
    }

    /// Gathers what a row tells, as it is published and as it has been narrowed down.
    pub fn learn(&mut self, published: &Row, refined: &Row) {
        for (rule, told) in self.rules.iter().zip(&mut self.told) {
            let Some(key) = key(rule, refined) else { continue };
            let of = |row: &Row| -> Vec<Known> { rule.to.iter().map(|&at| row.known[at].clone()).collect() };
            let (shown, values) = (hash_of(&of(published)), of(refined));
            match told.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(Told { values, published: shown, differ: false }),
                Entry::Occupied(mut entry) => {
                    let told = entry.get_mut();
                    told.differ |= told.published != shown;
                    told.meet(&values);
                }
            }
        }
    }

    /// Adds what was gathered from other rows.
    pub fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.told.iter_mut().zip(other.told) {
            for (key, other) in theirs {
                match mine.entry(key) {
                    Entry::Vacant(entry) => _ = entry.insert(other),
                    Entry::Occupied(mut entry) => {
                        let told = entry.get_mut();
                        told.differ |= other.differ || told.published != other.published;
                        told.meet(&other.values);
                    }
                }
            }
        }
    }

    /// Forgets left sides that tell nothing beyond what their rows publish, once all rows have been seen.
    pub fn distil(&mut self) {
        for told in &mut self.told {
            told.retain(|_, told| told.tells());
            // Which row came first is no knowledge.
            told.values_mut().for_each(|told| (told.published, told.differ) = (0, true));
        }
    }

    /// Bytes held, about.
    pub fn size(&self) -> usize {
        self.told.iter().map(|told| told.capacity() * ENTRY_BYTES).sum()
    }

    /// Quasi-identifiers of which the chase knows more than the release says, by a left side that can differ within a
    /// class.
    pub fn splitting(&self) -> Vec<usize> {
        let by_plain = |rule: &Rule| rule.from.iter().any(|attribute| matches!(attribute, Attribute::Plain(_)));
        let telling = self.rules.iter().zip(&self.told).filter(|(rule, told)| by_plain(rule) && !told.is_empty());
        let mut columns: Vec<usize> = telling.flat_map(|(rule, _)| rule.to.iter().copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// A fingerprint of what is known of the quasi-identifiers of a row: equal ones are one class to the reader.
    pub fn class(row: &Row) -> u128 {
        fingerprint(row.known.iter().map(hash_of))
    }
}

/// A fingerprint of the left side, when every value of it is known exactly.
fn key(rule: &Rule, row: &Row) -> Option<u128> {
    let mut values = Vec::with_capacity(rule.from.len());
    for attribute in &rule.from {
        values.push(match attribute {
            Attribute::Quasi(at) => row.known[*at].exactly()?,
            Attribute::Plain(at) => row.plain[*at],
        });
    }
    Some(fingerprint(values.into_iter()))
}

fn fingerprint(values: impl Iterator<Item = u64> + Clone) -> u128 {
    let part = |seed: u64| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        values.clone().for_each(|value| value.hash(&mut hasher));
        hasher.finish()
    };
    (u128::from(part(1)) << 64) | u128::from(part(2))
}

/// The chase over rows that are all at hand: what is known in the end, and every row narrowed down by it.
pub fn chase(dependencies: &[Dependency], rows: &[Row]) -> (Knowledge, Vec<Row>) {
    let mut knowledge = Knowledge::new(dependencies);
    loop {
        let mut next = knowledge.emptied();
        let mut refined = rows.to_vec();
        for (published, row) in rows.iter().zip(&mut refined) {
            knowledge.refine(row);
            next.learn(published, row);
        }
        next.distil();
        if next == knowledge {
            return (knowledge, refined);
        }
        knowledge = next;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::method::fixtures;

    /// The example of the thesis as published by some groups.
    fn published(groups: &[&[u32]]) -> Vec<Row> {
        let (table, dependencies) = fixtures::gorla();
        let mut rows = Vec::new();
        for group in groups {
            let cover = table.cover(group);
            let known = |a: usize| {
                let crate::domain::Shape::Tree(tree) = &table.axes[a].shape else { panic!("trees only") };
                match tree.ancestor(cover.lo[a], cover.hi[a]) {
                    None => Known::Between(u64::from(cover.lo[a]), u64::from(cover.lo[a])),
                    Some(0) => Known::Anything,
                    Some(node) => {
                        let node = &tree.nodes()[node as usize];
                        Known::Between(u64::from(node.lo), u64::from(node.hi))
                    }
                }
            };
            let known: Vec<Known> = (0..3).map(known).collect();
            rows.extend(
                group.iter().map(|&row| Row { known: known.clone(), plain: vec![table.plain[0][row as usize]] }),
            );
        }
        assert_eq!(dependencies.list.len(), 2);
        rows
    }

    fn sizes(rows: &[Row]) -> Vec<usize> {
        let mut classes: BTreeMap<u128, usize> = BTreeMap::new();
        rows.iter().for_each(|row| *classes.entry(Knowledge::class(row)).or_default() += 1);
        let mut sizes: Vec<usize> = classes.into_values().collect();
        sizes.sort_unstable();
        sizes
    }

    /// The thesis' ideal table falls apart, the one it rejects does not.
    #[test]
    fn gorla_section_5_r2_does_not_survive_the_chase() {
        let (_, dependencies) = fixtures::gorla();
        let r2 = published(&[&[0, 1], &[2, 5], &[3, 4], &[6, 7]]);
        assert_eq!(sizes(&r2), [2, 2, 2, 2]);
        let (knowledge, chased) = chase(&dependencies.list, &r2);
        assert_eq!(sizes(&chased), [1, 1, 1, 1, 2, 2]);
        assert_eq!(knowledge.splitting(), [2], "the diagnosis tells the medication");
        let r1 = published(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]);
        let (knowledge, chased) = chase(&dependencies.list, &r1);
        assert_eq!(sizes(&chased), [2, 2, 2, 2]);
        assert!(knowledge.splitting().is_empty());
    }

    #[test]
    fn what_is_learnt_completes_other_left_sides() {
        use Attribute::{Plain, Quasi};
        let dependencies = [
            Dependency { from: vec![Quasi(0)], to: vec![Quasi(1)] },
            Dependency { from: vec![Plain(0)], to: vec![Quasi(0)] },
        ];
        let row = |a: Known, b: Known, plain: u64| Row { known: vec![a, b], plain: vec![plain] };
        let at = |value: u64| Known::Between(value, value);
        let rows =
            [row(at(1), Known::Anything, 7), row(Known::Anything, Known::Between(0, 9), 7), row(at(1), at(4), 8)];
        let (_, chased) = chase(&dependencies, &rows);
        assert!(chased.iter().all(|row| row.known == [at(1), at(4)]), "{chased:?}");
    }

    #[test]
    fn overlapping_values_meet() {
        let dependencies = [Dependency { from: vec![Attribute::Plain(0)], to: vec![Attribute::Quasi(0)] }];
        let meet = |a: Known, b: Known| {
            let rows = [a, b].map(|known| Row { known: vec![known], plain: vec![1] });
            let (_, chased) = chase(&dependencies, &rows);
            chased[0].known[0].clone()
        };
        assert_eq!(meet(Known::Between(1, 5), Known::Between(4, 9)), Known::Between(4, 5));
        assert_eq!(meet(Known::one_of(["a", "b"]), Known::one_of(["b", "c"])), Known::one_of(["b"]));
        let begins = |text: &str, whole| Known::Begins { text: text.into(), whole };
        assert_eq!(meet(begins("1", false), begins("12", false)), begins("12", false));
        assert_eq!(meet(begins("12", true), begins("1", false)), begins("12", true));
        assert_eq!(meet(Known::Null, Known::Anything), Known::Null);
        // Contradictions teach nothing.
        assert_eq!(meet(Known::Between(1, 2), Known::Between(4, 9)), Known::Between(1, 2));
        assert_eq!(meet(begins("12", true), begins("13", false)), begins("12", true));
        assert_eq!(meet(Known::Shown(1), Known::Shown(2)), Known::Shown(1));
    }

    /// Rows of two quasi-identifiers and a plain column in which three dependencies hold, generalised at random.
    fn truthful() -> impl Strategy<Value = (Vec<[u64; 2]>, Vec<Row>)> {
        let row = (0..6_u64, any::<[bool; 2]>(), 0..3_u64, 0..3_u64);
        prop::collection::vec(row, 1..40).prop_map(|rows| {
            let publish = |value: u64, ground: bool, below: u64, above: u64| {
                if ground {
                    Known::Between(value, value)
                } else {
                    Known::Between(value.saturating_sub(below), value + above)
                }
            };
            rows.into_iter()
                .map(|(plain, ground, below, above)| {
                    let truth = [plain / 2, plain / 3];
                    let known =
                        vec![publish(truth[0], ground[0], below, above), publish(truth[1], ground[1], above, below)];
                    (truth, Row { known, plain: vec![plain] })
                })
                .unzip()
        })
    }

    proptest! {
        #[test]
        fn the_chase_is_sound_and_the_same_in_any_order((truth, rows) in truthful(), seed in any::<u64>()) {
            use Attribute::{Plain, Quasi};
            let dependencies = [
                Dependency { from: vec![Plain(0)], to: vec![Quasi(0), Quasi(1)] },
                Dependency { from: vec![Plain(0), Quasi(0)], to: vec![Quasi(1)] },
            ];
            let (knowledge, chased) = chase(&dependencies, &rows);
            for ((truth, before), after) in truth.iter().zip(&rows).zip(&chased) {
                for (a, &value) in truth.iter().enumerate() {
                    let exact = Known::Between(value, value);
                    prop_assert_eq!(after.known[a].meet(&exact), exact, "the true value is never ruled out");
                    prop_assert_eq!(after.known[a].meet(&before.known[a]), after.known[a].clone(), "nothing widens");
                }
            }
            let mut order: Vec<usize> = (0..rows.len()).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut order);
            let shuffled: Vec<Row> = order.iter().map(|&at| rows[at].clone()).collect();
            let (other, others) = chase(&dependencies, &shuffled);
            prop_assert_eq!(&knowledge, &other);
            prop_assert!(order.iter().zip(&others).all(|(&at, row)| chased[at] == *row));
            // Parts gathered apart are the same as all at once.
            let (mut left, mut right) = (knowledge.emptied(), knowledge.emptied());
            for (at, (published, refined)) in rows.iter().zip(&chased).enumerate() {
                if at % 2 == 0 { left.learn(published, refined) } else { right.learn(published, refined) }
            }
            left.merge(right);
            left.distil();
            prop_assert_eq!(left, knowledge);
        }

        #[test]
        fn left_sides_of_quasi_identifiers_split_no_class(groups in prop::collection::vec((0..4_u64, 0..4_u64, any::<bool>(), 2..5_usize), 1..12)) {
            let dependencies = [Dependency { from: vec![Attribute::Quasi(0)], to: vec![Attribute::Quasi(1)] }];
            let mut rows = Vec::new();
            for (a, b, ground, size) in groups {
                let right = if ground { Known::Between(a, a) } else { Known::Between(a.min(b), a.max(b)) };
                let row = Row { known: vec![Known::Between(a, a), right], plain: Vec::new() };
                rows.extend(std::iter::repeat_n(row, size));
            }
            let (_, chased) = chase(&dependencies, &rows);
            prop_assert!(sizes(&chased)[0] >= sizes(&rows)[0]);
        }
    }
}
