//! How much a release loses, how well it protects, how risky it is: one file per family.
//!
//! Measures are accumulators that can be merged, so that cells, partitions and machines can each add up their share.
//! The result is the same to the last bit for any order of adding and merging, because sums of fractions are kept in
//! fixed point ([`Sum`]) and everything else is a count or a maximum.
//!
//! Group measures ([`Groups`]) take losses and disclosures from outside, since the exact ones are known only when
//! values are recoded. Class measures ([`loss::Classes`]) come from counting equal rows of the published files.

pub mod cells;
pub mod classification;
pub mod dependency;
pub mod generalisation;
pub mod information;
pub mod interval;
pub mod loss;
pub mod people;
#[cfg(test)]
mod printed;
pub mod protection;
pub mod risk;
pub mod wilcoxon;
mod wire;
pub mod workload;

pub use cells::Cells;
pub use generalisation::Generalisation;
pub use information::Information;
pub use loss::{Classes, Loss};
pub use people::People;
pub use protection::Protection;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use workload::Workload;

/// A sum of fractions that does not depend on the order of its terms: whole multiples of 2^-60.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum(i128);

/// Steps of a [`Sum`] per unit: 2^60.
const STEPS: f64 = (1_u64 << 60) as f64;

impl Sum {
    /// Adds a fraction (a few units at most) `times` over.
    pub fn add(&mut self, fraction: f64, times: u64) {
        self.0 += (fraction * STEPS).round() as i128 * i128::from(times);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// The sum.
    pub fn value(self) -> f64 {
        self.0 as f64 / STEPS
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        wire::halves::serialize(&(self.0 as u128), to)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        wire::halves::deserialize(from).map(|number| Self(number as i128))
    }
}

/// Loss and protection of published groups, added group by group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// What the groups lose.
    pub loss: Loss,
    /// How well they protect.
    pub protection: Protection,
    /// Sizes of the cells that they were made from.
    pub cells: Cells,
    /// Their sizes in people, when rows tell whose they are.
    pub people: Option<People>,
    /// How far values have moved up.
    pub generalisation: Generalisation,
    /// What is left of the frequencies of values, when asked for.
    pub information: Option<Information>,
    /// Answers of queries, when asked for.
    pub workload: Option<Workload>,
    /// How well they preserve each dependency of the policy.
    pub dependencies: Vec<dependency::Preserved>,
}

impl Groups {
    /// No groups yet, of so many quasi-identifiers and sensitive columns.
    pub fn new(quasi: usize, sensitive: usize) -> Self {
        Self {
            loss: Loss::new(quasi),
            protection: Protection::new(sensitive),
            cells: Cells::default(),
            people: None,
            generalisation: Generalisation::default(),
            information: None,
            workload: None,
            dependencies: Vec::new(),
        }
    }

    /// Adds a group: its rows, its loss per quasi-identifier, its spread (1 minus S-diversity) and its range
    /// diversity per sensitive column.
    pub fn add_group(&mut self, rows: u64, losses: &[f64], spreads: &[f64], disclosures: &[f64]) {
        self.loss.add_group(rows, losses);
        self.protection.add_group(rows, mean(losses), spreads, disclosures);
    }

    /// Adds the groups of another accumulator.
    pub fn merge(&mut self, other: &Self) {
        self.loss.merge(&other.loss);
        self.protection.merge(&other.protection);
        self.cells.merge(other.cells);
        if let Some(people) = &other.people {
            self.people.get_or_insert_default().merge(people);
        }
        self.generalisation.merge(&other.generalisation);
        merge_or_take(&mut self.information, other.information.as_ref(), Information::merge);
        merge_or_take(&mut self.workload, other.workload.as_ref(), Workload::merge);
        self.dependencies.resize_with(self.dependencies.len().max(other.dependencies.len()), Default::default);
        self.dependencies.iter_mut().zip(&other.dependencies).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}

fn merge_or_take<T: Clone>(mine: &mut Option<T>, other: Option<&T>, merge: impl Fn(&mut T, &T)) {
    match (mine, other) {
        (Some(mine), Some(other)) => merge(mine, other),
        (mine @ None, Some(other)) => *mine = Some(other.clone()),
        (_, None) => {}
    }
}

/// The mean of some numbers; 0 of none.
pub(crate) fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Group = (u64, Vec<f64>, Vec<f64>, Vec<f64>);

    fn group() -> impl Strategy<Value = Group> {
        let share = || 0.0..=1.0_f64;
        let shares = |n| prop::collection::vec(share(), n);
        (1..50_u64, shares(3), shares(2), shares(2))
    }

    proptest! {
        #[test]
        fn order_and_merging_do_not_change_a_bit(groups in prop::collection::vec(group(), 0..60), cut in 0..60_usize) {
            let sum = |groups: &[Group]| {
                let mut sum = Groups::new(3, 2);
                groups.iter().for_each(|(rows, losses, spreads, rds)| sum.add_group(*rows, losses, spreads, rds));
                sum
            };
            let (head, tail) = groups.split_at(cut.min(groups.len()));
            let mut merged = sum(tail);
            merged.merge(&sum(head));
            let whole = sum(&groups);
            prop_assert_eq!(&merged, &whole);
            let sent: Groups = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
            prop_assert_eq!(&sent, &whole);
            prop_assert_eq!(merged.loss.um().map(f64::to_bits), whole.loss.um().map(f64::to_bits));
            let plain = groups.iter().map(|group| mean(&group.1)).sum::<f64>() / groups.len() as f64;
            prop_assert!(groups.is_empty() || (whole.loss.um().unwrap() - plain).abs() < 1e-12);
        }
    }
}
