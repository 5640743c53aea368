//! Inference: a group must hide its people also from a reader who knows the dependencies.
//!
//! A dependency with quasi-identifiers and plain columns distinguishes rows of a group: a row fits a person only if the
//! person's quasi-identifiers and the row's plain columns agree with it (see [`chase`](crate::attack::chase)). Here the
//! reader is taken to know every dependency as it is in the cell, which is the most that can be learnt from any release
//! of it. Nobody but the publisher knows who of those whom a group covers is in it, so whoever occurs with the plain
//! columns of one of its rows is taken to be. The rows that fit such a person must meet k and the other rules by
//! themselves. A group that fails grows: more rows of the same kind join, so it can be repaired like any other.

use std::collections::{BTreeSet, HashMap};

use super::{GroupView, Rule, RuleRecord, Rules};
use crate::attack::chase::BitSet;
use crate::model::{Attribute, Dependency, Region, Table};

/// Most bits that are kept of who fits what in a cell: 64 MB.
const MAX_BITS: usize = 1 << 29;

/// The rules of a policy, asked of the rows of a group that fit each of its people.
#[derive(Debug, Clone)]
pub struct HiddenFromReaders {
    rules: Rules,
    /// The plain columns of every row of the cell, those in dependencies.
    plains: Vec<u32>,
    /// The plain columns that fit each profile.
    fits: Vec<BitSet>,
    /// The axes of profiles.
    axes: Vec<usize>,
    /// A row with each profile.
    first_profile: Vec<u32>,
    /// The profiles that occur with each combination of plain columns and fit it: whoever does not fit their own row
    /// misleads the reader.
    beside: Vec<Vec<u32>>,
}

impl HiddenFromReaders {
    /// The rule for a cell; `None` if no dependency can distinguish rows of a group, or so many values are in play that
    /// it cannot be said who fits what.
    pub fn new(rules: &Rules, cell: &Table, dependencies: &[Dependency]) -> Option<Self> {
        let mixed =
            |dependency: &&Dependency| !dependency.quasi_axes().is_empty() && !dependency.plain_columns().is_empty();
        let dependencies: Vec<&Dependency> = dependencies.iter().filter(mixed).collect();
        if dependencies.is_empty() {
            return None;
        }
        let mut quasi: Vec<usize> = dependencies.iter().flat_map(|dependency| dependency.quasi_axes()).collect();
        let mut plain: Vec<usize> = dependencies.iter().flat_map(|dependency| dependency.plain_columns()).collect();
        [&mut quasi, &mut plain].into_iter().for_each(|columns| {
            columns.sort_unstable();
            columns.dedup();
        });
        let rows = 0..cell.rows() as u32;
        let of_profile = |row: u32| -> Vec<u64> { quasi.iter().map(|&axis| u64::from(cell.row(row)[axis])).collect() };
        let of_plain =
            |row: u32| -> Vec<u64> { plain.iter().map(|&column| cell.plain[column][row as usize]).collect() };
        let (profiles, first_profile) = number_rows(rows.clone(), of_profile);
        let (plains, first_plain) = number_rows(rows.clone(), of_plain);
        if first_profile.len().saturating_mul(first_plain.len()) > MAX_BITS {
            return None;
        }
        // A side of a dependency for somebody with the profile of one row and the plain columns of another.
        let side = |side: &[Attribute], profile: u32, plain: u32| -> Vec<u64> {
            let value = |one: &Attribute| match one {
                Attribute::Quasi(axis) => u64::from(cell.row(profile)[*axis]),
                Attribute::Plain(column) => cell.plain[*column][plain as usize],
            };
            side.iter().map(value).collect()
        };
        let functions: Vec<HashMap<Vec<u64>, Vec<u64>>> = dependencies
            .iter()
            .map(|dependency| {
                commonest_sides(rows.clone(), |row| (side(&dependency.from, row, row), side(&dependency.to, row, row)))
            })
            .collect();
        let mut fits = Vec::with_capacity(first_profile.len());
        for &profile in &first_profile {
            let mut fitting = BitSet::with_len(first_plain.len());
            for (at, &plain) in first_plain.iter().enumerate() {
                let agrees = dependencies.iter().zip(&functions).all(|(dependency, function)| {
                    let right = function.get(&side(&dependency.from, profile, plain));
                    right.is_none_or(|right| *right == side(&dependency.to, profile, plain))
                });
                if agrees {
                    fitting.insert(at);
                }
            }
            fits.push(fitting);
        }
        let mut beside: Vec<Vec<u32>> = vec![Vec::new(); first_plain.len()];
        for (&profile, &plain) in profiles.iter().zip(&plains) {
            if fits[profile as usize].contains(plain as usize) {
                beside[plain as usize].push(profile);
            }
        }
        beside.iter_mut().for_each(|profiles| {
            profiles.sort_unstable();
            profiles.dedup();
        });
        Some(Self { rules: rules.clone(), plains, fits, axes: quasi, first_profile, beside })
    }

    /// The rows of a group that fit each of its people. Many people fit the same rows, which are returned once.
    fn fitting_rows(&self, group: &GroupView<'_>) -> Vec<Vec<u32>> {
        let mut plains: Vec<u32> = group.rows.iter().map(|&row| self.plains[row as usize]).collect();
        plains.sort_unstable();
        plains.dedup();
        let fitting = |profile: u32| -> Vec<u32> {
            let fits = &self.fits[profile as usize];
            plains.iter().copied().filter(|&plain| fits.contains(plain as usize)).collect()
        };
        let distinct: BTreeSet<Vec<u32>> = self.possible_people(group).into_iter().map(fitting).collect();
        let rows = |fitting: Vec<u32>| {
            let fits = |row: &u32| fitting.binary_search(&self.plains[*row as usize]).is_ok();
            group.rows.iter().copied().filter(fits).collect()
        };
        distinct.into_iter().map(rows).collect()
    }

    /// Whoever may be in a group.
    fn possible_people(&self, group: &GroupView<'_>) -> Vec<u32> {
        let mut plains: Vec<u32> = group.table.members_of(group.rows).map(|row| self.plains[row as usize]).collect();
        plains.sort_unstable();
        plains.dedup();
        let region = Region::from_cover(&group.table.axes, &group.cover());
        let covered = |&profile: &u32| {
            let codes = group.table.row(self.first_profile[profile as usize]);
            self.axes.iter().all(|&axis| region.holds_code(axis, codes[axis]))
        };
        let mut people: Vec<u32> =
            plains.iter().flat_map(|&plain| &self.beside[plain as usize]).copied().filter(covered).collect();
        people.sort_unstable();
        people.dedup();
        people
    }
}

/// Numbers rows by what they have, and the first row of every number.
fn number_rows(rows: impl Iterator<Item = u32>, value: impl Fn(u32) -> Vec<u64>) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: HashMap<Vec<u64>, u32> = HashMap::new();
    let (mut all, mut first) = (Vec::new(), Vec::new());
    for row in rows {
        let next = first.len() as u32;
        let at = *numbers.entry(value(row)).or_insert(next);
        if at == next {
            first.push(row);
        }
        all.push(at);
    }
    (all, first)
}

/// The commonest right side of every left side; of several, the smallest.
fn commonest_sides(
    rows: impl Iterator<Item = u32>,
    sides: impl Fn(u32) -> (Vec<u64>, Vec<u64>),
) -> HashMap<Vec<u64>, Vec<u64>> {
    let mut counted: HashMap<Vec<u64>, HashMap<Vec<u64>, u64>> = HashMap::new();
    for row in rows {
        let (left, right) = sides(row);
        *counted.entry(left).or_default().entry(right).or_default() += 1;
    }
    let most = |rights: HashMap<Vec<u64>, u64>| {
        rights.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0))).map(|(right, _)| right)
    };
    counted.into_iter().filter_map(|(left, rights)| Some((left, most(rights)?))).collect()
}

impl Rule for HiddenFromReaders {
    fn record(&self) -> RuleRecord {
        RuleRecord::new("inference")
    }

    fn is_met_by(&self, group: &GroupView<'_>) -> bool {
        self.fitting_rows(group)
            .iter()
            .all(|crowd| crowd.len() == group.rows.len() || self.rules.are_met_by(&GroupView::new(group.table, crowd)))
    }

    /// The sum over all crowds that fail.
    fn excess(&self, group: &GroupView<'_>) -> Option<f64> {
        let crowds = self.fitting_rows(group);
        Some(crowds.iter().map(|crowd| self.rules.excess(&GroupView::new(group.table, crowd))).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn gorla_section_5_r2_fails_and_r1_does_not() {
        let (table, dependencies) = fixtures::gorla();
        let rule = HiddenFromReaders::new(&Rules::k(2), &table, &dependencies.list).unwrap();
        let holds = |rows: &[u32]| rule.is_met_by(&GroupView::new(&table, rows));
        assert!(holds(&[0, 1]) && holds(&[6, 7]) && holds(&[2, 3]) && holds(&[4, 5]));
        assert!(!holds(&[2, 5]) && !holds(&[3, 4]), "the diagnosis reveals the medication");
        assert!(holds(&[2, 3, 4, 5]), "two of each");
    }

    #[test]
    fn dependencies_of_one_kind_of_columns_tell_nobody_apart() {
        let (table, dependencies) = fixtures::gorla();
        let quasi: Vec<Dependency> =
            dependencies.list.iter().filter(|dependency| dependency.plain_columns().is_empty()).cloned().collect();
        assert_eq!(quasi.len(), 1);
        assert!(HiddenFromReaders::new(&Rules::k(2), &table, &quasi).is_none());
    }
}
