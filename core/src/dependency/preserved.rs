//! Dependency loss of a release of any size, added up row by row.
//!
//! A row holds an instance, and publishes something at a distance from it; the instance has lost the least of these
//! distances. Such rows cover their instance, so both readings of distance agree. A row made of *other* instances may
//! by chance lie nearer: [`instance_loss`](super::instance_loss) looks at all of them, which takes groups times instances, and is never
//! above what is found here.
//!
//! Of many instances those with the smallest hashes are kept, at most [`KEPT`] of each dependency: an even sample that
//! is the same for any order of rows, cells and partitions. Fewer are all kept, and the loss is exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Dependencies, Instances};
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
        for rows in grouping.iter() {
            let values = dependencies.published_values(table, &table.cover(rows));
            let cost = |a: usize| if withheld.get(a) == Some(&true) { 1.0 } else { values[a].cost };
            for kind in &instances.kinds {
                let distance = kind.axes.iter().map(|&a| cost(a)).sum::<f64>() / kind.width() as f64;
                for &row in rows {
                    let instance = kind.first + kind.of_row[row as usize] as usize;
                    least[instance] = least[instance].min(distance);
                }
            }
        }
        let of_kind = |kind: &super::Kind| {
            let mut preserved = Self::default();
            for instance in 0..kind.count {
                let codes = kind.codes(instance).iter().map(|&code| u64::from(code));
                let values = codes.chain(kind.plain_values(instance).iter().copied());
                preserved.add_instance(values.fold(0x5EED, mix_hash), least[kind.first + instance]);
            }
            preserved.shrink_sample();
            preserved
        };
        instances.kinds.iter().map(of_kind).collect()
    }

    pub(crate) fn add_instance(&mut self, instance: u64, distance: f64) {
        self.least.entry(instance).and_modify(|least| *least = least.min(distance)).or_insert(distance);
    }

    fn shrink_sample(&mut self) {
        self.sampled |= keep_smallest(&mut self.least, KEPT).is_some();
    }

    /// Adds what another part of the table has preserved.
    pub fn merge(&mut self, other: &Self) {
        other.least.iter().for_each(|(&instance, &distance)| self.add_instance(instance, distance));
        self.sampled |= other.sampled;
        self.shrink_sample();
    }

    /// Mean loss of an instance, in `[0, 1]`: the dependency loss over the number of instances; `None` without any.
    pub fn loss(&self) -> Option<f64> {
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
