//! How well a release preserves functional dependencies (Gorla, 2019).
//!
//! A dependency X -> Y has *instances*: the distinct values on X and Y together ([`Instances`]). An instance is
//! preserved as far as some published row is close to it; values are as far apart as the entropy that generalising one
//! to the other gives away ([`Penalty`], [`Value`]). Dependency loss adds up what every instance has lost ([`instance_loss`],
//! over all published rows as the thesis has it; [`Preserved`], cell by cell, for releases of any size).
//!
//! Where the thesis' text and its formulas part, the formulas are built:
//! - the triangle inequality of proposition 1 does not hold (two leaves are 1 apart, each may be near their parent), so
//!   nothing here prunes by it;
//! - definition 7 asks that two rows are comparable on every column, formula (4.3) does not: [`Guard`] chooses.
//!   Definition 7 is the one reported, (4.3) the one that steers the methods;
//! - a group may grow beyond k when left-over rows join it, so `|c| / k` is at most 1.
//!
//! Numbers without a hierarchy, which the thesis does not have, are ranges of codes: the penalty of a range is that of a
//! node above all its values.

mod instances;
pub(crate) mod loss;
mod penalty;
mod preserved;
#[cfg(test)]
mod tests;

pub use instances::{Instances, Kind};
pub use loss::{Guard, instance_loss, instance_utility, preserved_share};
pub use penalty::{Penalty, Value};
pub use preserved::Preserved;

use crate::model::{Cover, Dependency, Table};

/// The dependencies of a policy, and what generalising each quasi-identifier costs.
#[derive(Debug, Clone, Default)]
pub struct Dependencies {
    /// The dependencies.
    pub list: Vec<Dependency>,
    /// Penalty of every axis, from the frequencies of the original values.
    pub penalties: Vec<Penalty>,
}

impl Dependencies {
    /// Dependencies over axes whose codes occur with these frequencies.
    pub fn new(list: Vec<Dependency>, frequencies: &[Vec<u64>]) -> Self {
        Self { list, penalties: frequencies.iter().map(|counts| Penalty::new(counts)).collect() }
    }

    /// Dependencies over the axes of a table that holds every original row.
    pub fn of_table(list: Vec<Dependency>, table: &Table) -> Self {
        let mut frequencies: Vec<Vec<u64>> = vec![Vec::new(); table.axes.len()];
        for row in 0..table.rows() as u32 {
            for (counts, &code) in frequencies.iter_mut().zip(table.row(row)) {
                count_code(counts, code, 1);
            }
        }
        Self::new(list, &frequencies)
    }

    /// What a cover publishes on every axis.
    pub fn published_values(&self, table: &Table, cover: &Cover) -> Vec<Value> {
        let axes = table.axes.iter().zip(&self.penalties).enumerate();
        axes.map(|(a, (axis, penalty))| penalty.published_value(axis, cover, a)).collect()
    }
}

/// Adds rows to the count of a code.
pub fn count_code(counts: &mut Vec<u64>, code: crate::model::Code, rows: u64) {
    let at = usize::from(code);
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += rows;
}
