//! Dependency loss of a release of any size, added up row by row.
//!
//! Definition 8 takes the distance of an instance to the nearest published row, whoever's it is. A row that covers the
//! instance is as far away as its values are general, so of the distinct published combinations on the columns of the
//! dependency, the least general one that covers the instance decides ([`Nearest`]). That takes the rows of the whole
//! table, and is known where it is one cell.
//!
//! Of a table in several cells only a bound from above is known: the rows that *hold* an instance cover it too, and it has
//! lost at most the least of their distances. The bound is 1 to 3 times the loss on the thesis' data and may rank methods
//! differently.
//!
//! Of many instances those with the smallest hashes are kept, at most [`KEPT`] of each dependency: an even sample that
//! is the same for any order of rows, cells and partitions. Fewer are all kept, and the bound is exact.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Dependencies, Instances, Kind, Value};
use crate::model::{Grouping, Table, keep_smallest, wire};

/// Most instances kept of a dependency.
pub const KEPT: usize = 1 << 15;

/// The instances of one dependency, and what each has lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preserved {
    /// Least distance by hash of the instance.
    #[serde(with = "wire::pairs_of_bits")]
    least: BTreeMap<u64, f64>,
    /// Whether instances were passed over.
    sampled: bool,
    /// Distances to the nearest rows of the whole table; `None` once parts of it have been put together.
    nearest: Option<Nearest>,
}

/// Steps of a distance of 1.
const STEPS: f64 = (1_u64 << 40) as f64;

/// Distances of the instances to the nearest published rows of all (definition 8), added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Nearest {
    /// In whole [`STEPS`], so that the sum does not depend on the order of the instances.
    distances: u64,
    instances: u64,
}

/// Most comparisons of instances with published combinations, for one dependency.
const COMPARISONS: u64 = 1 << 31;

/// What a group publishes on the columns of a dependency: the values on its axes, and how general they are.
struct Combination {
    values: Vec<Value>,
    distance: f64,
}

impl Nearest {
    /// Compares every instance with the published combinations, from the least general on; `None` if that is too much work.
    /// `own` are the distances to the rows that hold the instances, which cannot be exceeded.
    fn of_kind(kind: &Kind, mut published: Vec<(Vec<u64>, Combination)>, own: &[f64]) -> Option<Self> {
        published.sort_by(|(plain, one), (other_plain, other)| {
            plain.cmp(other_plain).then(one.distance.total_cmp(&other.distance))
        });
        let mut by_plain: HashMap<&[u64], &[(Vec<u64>, Combination)]> = HashMap::new();
        for equal in published.chunk_by(|one, other| one.0 == other.0) {
            by_plain.insert(&equal[0].0, equal);
        }
        let (mut nearest, mut compared) = (Self::default(), 0_u64);
        for (instance, &own) in own.iter().enumerate() {
            let mut least = own;
            let codes = kind.codes(instance);
            for (_, combination) in by_plain.get(kind.plain_values(instance)).copied().unwrap_or_default() {
                compared += 1;
                if combination.distance >= least {
                    break;
                }
                if combination.values.iter().zip(codes).all(|(value, &code)| value.covers(code)) {
                    least = combination.distance;
                    break;
                }
            }
            if compared > COMPARISONS {
                return None;
            }
            nearest.distances += (least * STEPS).round() as u64;
            nearest.instances += 1;
        }
        Some(nearest)
    }
}

impl Preserved {
    /// What the groups of a table preserve of every dependency. `withheld` axes are published as their top, whatever
    /// the groups cover.
    pub fn of_grouping(
        dependencies: &Dependencies,
        table: &Table,
        grouping: &Grouping,
        withheld: &[bool],
    ) -> Vec<Self> {
        let instances = Instances::new(&dependencies.list, table);
        let mut least: Vec<f64> = vec![1.0; instances.len()];
        let mut published: Vec<Vec<(Vec<u64>, Combination)>> = instances.kinds.iter().map(|_| Vec::new()).collect();
        for rows in grouping.iter() {
            let values = dependencies.published_values(table, &table.cover(rows));
            let cost = |a: usize| if withheld.get(a) == Some(&true) { 1.0 } else { values[a].cost };
            for (kind, published) in instances.kinds.iter().zip(&mut published) {
                let distance = kind.axes.iter().map(|&a| cost(a)).sum::<f64>() / kind.width() as f64;
                let value = |&a: &usize| if withheld.get(a) == Some(&true) { Value::top() } else { values[a].clone() };
                let combination = || Combination { values: kind.axes.iter().map(value).collect(), distance };
                published.extend(kind.plain_values_of(table, rows).into_iter().map(|plain| (plain, combination())));
                for &row in rows {
                    let instance = kind.first + kind.of_row[row as usize] as usize;
                    least[instance] = least[instance].min(distance);
                }
            }
        }
        let of_kind = |(kind, published): (&Kind, Vec<(Vec<u64>, Combination)>)| {
            let nearest = Nearest::of_kind(kind, published, &least[kind.first..][..kind.count]);
            let mut preserved = Self { nearest, ..Self::default() };
            for instance in 0..kind.count {
                let codes = kind.codes(instance).iter().map(|&code| u64::from(code));
                let values = codes.chain(kind.plain_values(instance).iter().copied());
                preserved.add_instance(values.fold(0x5EED, mix_hash), least[kind.first + instance]);
            }
            preserved.shrink_sample();
            preserved
        };
        instances.kinds.iter().zip(published).map(of_kind).collect()
    }

    pub(crate) fn add_instance(&mut self, instance: u64, distance: f64) {
        self.least.entry(instance).and_modify(|least| *least = least.min(distance)).or_insert(distance);
    }

    fn shrink_sample(&mut self) {
        self.sampled |= keep_smallest(&mut self.least, KEPT).is_some();
    }

    /// Adds what another part of the table has preserved.
    pub fn merge(&mut self, other: &Self) {
        self.nearest = match (self.least.is_empty(), other.least.is_empty()) {
            (true, _) => other.nearest,
            (_, true) => self.nearest,
            (false, false) => None,
        };
        other.least.iter().for_each(|(&instance, &distance)| self.add_instance(instance, distance));
        self.sampled |= other.sampled;
        self.shrink_sample();
    }

    /// Mean loss of an instance by definition 8, in `[0, 1]`: the dependency loss over the number of instances; `None` without
    /// any, or if the table was looked at in parts.
    pub fn loss(&self) -> Option<f64> {
        let nearest = self.nearest.filter(|nearest| nearest.instances > 0)?;
        Some(nearest.distances as f64 / STEPS / nearest.instances as f64)
    }

    /// A bound on the mean loss of an instance from above, by the rows that hold it; `None` without instances.
    pub fn loss_bound(&self) -> Option<f64> {
        // In the order of the hashes, so that the sum is always the same.
        (!self.least.is_empty()).then(|| self.least.values().sum::<f64>() / self.least.len() as f64)
    }

    /// Share of instances that some row publishes without loss; `None` without any.
    pub fn complete_share(&self) -> Option<f64> {
        let complete = self.least.values().filter(|least| **least <= 0.0).count();
        (!self.least.is_empty()).then(|| complete as f64 / self.least.len() as f64)
    }

    /// Instances looked at: all, or an even sample.
    pub fn instances(&self) -> usize {
        self.least.len()
    }

    /// Whether only a sample of the instances was looked at.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }
}

/// A hash of a sequence of numbers, one by one.
fn mix_hash(hash: u64, value: u64) -> u64 {
    let mut mixed = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^= mixed >> 32;
    mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}
