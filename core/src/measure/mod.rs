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
pub mod frontier;
pub mod generalisation;
pub mod information;
pub mod interval;
pub mod loss;
pub mod people;
pub mod placement;
#[cfg(test)]
mod printed;
pub mod protection;
pub mod published;
pub mod risk;
pub mod wilcoxon;
pub mod workload;

pub use cells::Cells;
use frontier::Frontier;
pub use generalisation::Generalisation;
pub use information::Information;
pub use loss::{Classes, Loss};
pub use people::People;
pub use placement::Placement;
pub use protection::Protection;
use published::{ColumnLoss, Extent};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use workload::Workload;

/// A sum of fractions that does not depend on the order of its terms: whole multiples of 2^-60.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum(i128);

/// Steps of a [`Sum`] per unit: 2^60.
const STEPS: f64 = (1_u64 << 60) as f64;

impl Sum {
    /// Adds a fraction (a few units at most) `times` over.
    pub fn add_fraction(&mut self, fraction: f64, times: u64) {
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
        crate::model::wire::halves::serialize(&(self.0 as u128), to)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::model::wire::halves::deserialize(from).map(|number| Self(number as i128))
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
    /// Their sizes in people, if rows say whose they are.
    pub people: Option<People>,
    /// How far values have moved up.
    pub generalisation: Generalisation,
    /// What is left of the frequencies of values, when asked for.
    pub information: Option<Information>,
    /// Answers of queries, when asked for.
    pub workload: Option<Workload>,
    /// How well they preserve each dependency of the policy.
    pub dependencies: Vec<crate::dependency::Preserved>,
    /// How the rows came into their groups.
    pub placement: Placement,
    /// The same losses as covers that wait for the published domain.
    pub published: Published,
}

/// Losses of every column that wait for the domain of the published rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Of the quasi-identifiers: what is lost.
    pub quasi: Vec<ColumnLoss>,
    /// Of the sensitive columns: what their groups spread over.
    pub sensitive: Vec<ColumnLoss>,
    /// The groups that may be the worst: losses by public domains together, then what is covered of each column.
    pub worst: Frontier,
    /// Of every sensitive column, the groups that may disclose most: see [`Disclosure`].
    pub disclosures: Vec<Frontier>,
    /// Whether range diversity is measured by a domain that nobody has declared.
    pub ranges_by_domain: bool,
    /// Whether even the number of suppressed rows is a secret, because being in the source is one.
    pub hides_counts: bool,
}

/// Range diversity of a group without its domain: `pairs - apart / width of the domain`, where `pairs` is the share of
/// pairs of rows that lie in one sensitive range, and `apart` how far apart they are on average over all pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disclosure {
    /// Share of pairs in one range.
    pub pairs: f64,
    /// How far apart they are.
    pub apart: f64,
}

/// What some rows of a group are published as on one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Place of the column among the quasi-identifiers.
    pub column: usize,
    /// What is covered.
    pub extent: Extent,
    /// The share of the group that these rows are.
    pub part: f64,
}

/// Losses that may leave with a release: of published rows against a domain that these rows show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReleasedLosses {
    /// Mean loss of a value, those of suppressed rows being lost.
    pub gcp: Option<f64>,
    /// Mean loss of a group.
    pub um: Option<f64>,
    /// Loss of the worst group.
    pub wgu: Option<f64>,
    /// The loss of every published value, added up.
    pub ncp: Option<f64>,
    /// Mean loss of a published value, by column.
    pub by_column: Vec<Option<f64>>,
    /// Mean S-diversity of a group.
    pub mpm: Option<f64>,
    /// Range diversity of the worst group.
    pub wgp: Option<f64>,
}

impl Groups {
    /// Creates an empty accumulator for numbers of quasi-identifiers and sensitive columns.
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
            placement: Placement::default(),
            published: Published {
                quasi: vec![ColumnLoss::default(); quasi],
                sensitive: vec![ColumnLoss::default(); sensitive],
                worst: Frontier::default(),
                disclosures: vec![Frontier::default(); sensitive],
                ranges_by_domain: false,
                hides_counts: false,
            },
        }
    }

    /// Whether every row of the source is published, and that may be known: then what is reported about the source is about
    /// published rows.
    pub fn is_whole(&self) -> bool {
        self.shown_suppressed() == Some(0)
    }

    /// How many rows were suppressed; `None` if that is a secret.
    pub fn shown_suppressed(&self) -> Option<u64> {
        (!self.published.hides_counts).then(|| self.loss.suppressed())
    }

    /// The losses that may leave with a release. While every row is published they are those that the groups were made
    /// by; else shares of the published domain, in which suppressed rows count as lost where their number may be known. The
    /// worst group is then found on a [`Frontier`], and omitted where that was discarded.
    pub fn released_losses(&self) -> ReleasedLosses {
        let loss = &self.loss;
        if self.is_whole() {
            return ReleasedLosses {
                gcp: loss.gcp(),
                um: loss.um(),
                wgu: loss.wgu(),
                ncp: Some(loss.ncp()),
                by_column: loss.by_column().into_iter().map(Some).collect(),
                mpm: self.protection.mpm(),
                wgp: self.protection.wgp(),
            };
        }
        let (rows, columns) = (loss.rows() as f64, self.published.quasi.len() as f64);
        let suppressed = self.shown_suppressed().unwrap_or(0) as f64;
        let sums: Vec<Option<(f64, f64)>> = self.published.quasi.iter().map(ColumnLoss::sums).collect();
        let total = |pick: fn((f64, f64)) -> f64| sums.iter().map(|sum| sum.map(pick)).sum::<Option<f64>>();
        let ncp = total(|(_, by_row)| by_row);
        let values = (rows + suppressed) * columns;
        let per_group = |columns: f64, sum: Option<f64>| {
            let terms = loss.groups() as f64 * columns;
            sum.filter(|_| terms > 0.0).map(|sum| sum / terms)
        };
        let spread = self.published.sensitive.iter().map(|column| Some(column.sums()?.0)).sum::<Option<f64>>();
        ReleasedLosses {
            gcp: ncp.filter(|_| values > 0.0).map(|ncp| (ncp + suppressed * columns) / values),
            um: per_group(columns, total(|(by_group, _)| by_group)),
            wgu: self.worst_loss().filter(|_| columns > 0.0),
            ncp,
            by_column: sums.iter().map(|sum| sum.map(|(_, by_row)| by_row / rows.max(1.0))).collect(),
            mpm: per_group(self.published.sensitive.len() as f64, spread).map(|spread| 1.0 - spread),
            wgp: self.worst_disclosure(),
        }
    }

    /// The largest mean loss of any group in the published domain.
    fn worst_loss(&self) -> Option<f64> {
        let columns = self.published.quasi.len() as f64;
        let per_unit = self.published.quasi.iter().map(ColumnLoss::share_per_unit).collect::<Option<Vec<f64>>>()?;
        let weights: Vec<f64> = [1.0].into_iter().chain(per_unit).map(|weight| weight / columns).collect();
        self.published.worst.largest_weighted_sum(&weights)
    }

    /// The largest range diversity of any group in the published domain.
    fn worst_disclosure(&self) -> Option<f64> {
        let columns = self.published.sensitive.iter().zip(&self.published.disclosures);
        let worst = columns.map(|(column, groups)| groups.largest_weighted_sum(&[1.0, column.share_per_unit()?]));
        worst.collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
    }

    /// Adds what a group covers on every quasi-identifier to the groups that may be the worst.
    pub fn add_covers(&mut self, covers: impl IntoIterator<Item = Coverage>) {
        let mut point = vec![0.0; self.published.quasi.len() + 1];
        for Coverage { column, extent, part } in covers {
            match extent {
                Extent::Share(share) => point[0] += share * part,
                Extent::Width(width) => point[column + 1] += width * part,
                Extent::Values(values) => point[column + 1] += f64::from(values.saturating_sub(1)) * part,
                // Neither grows in step with the domain.
                Extent::Interval(..) | Extent::Keys(..) => self.published.worst.give_up(),
            }
        }
        self.published.worst.add_point(&point);
    }

    /// Adds what a group discloses of a sensitive column.
    pub fn add_disclosure(&mut self, column: usize, disclosure: Disclosure) {
        self.published.disclosures[column].add_point(&[disclosure.pairs, -disclosure.apart]);
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
        self.published.quasi.iter_mut().zip(&other.published.quasi).for_each(|(mine, theirs)| mine.merge(theirs));
        self.published
            .sensitive
            .iter_mut()
            .zip(&other.published.sensitive)
            .for_each(|(mine, theirs)| mine.merge(theirs));
        self.placement.merge(&other.placement);
        self.published.worst.merge(&other.published.worst);
        let theirs = &other.published.disclosures;
        self.published.disclosures.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
        self.published.ranges_by_domain |= other.published.ranges_by_domain;
        self.published.hides_counts |= other.published.hides_counts;
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

    /// Two groups over ages 20 to 60 and a hierarchy; the source reaches to 100, where the one suppressed row lies.
    #[test]
    fn releases_with_suppressed_rows_are_measured_by_what_they_publish() {
        let mut groups = Groups::new(2, 1);
        [20.0, 60.0].into_iter().for_each(|age| groups.published.quasi[0].domain.add_position(age));
        [0.0, 10.0].into_iter().for_each(|pay| groups.published.sensitive[0].domain.add_position(pay));
        for (rows, width, node, range) in [(4, 10.0, 0.5, 5.0), (6, 20.0, 0.0, 10.0)] {
            groups.add_group(rows, &[width / 80.0, node], &[range / 100.0], &[0.9]);
            let extents = [Extent::Width(width), Extent::Share(node)];
            for (column, extent) in extents.into_iter().enumerate() {
                groups.published.quasi[column].add_extent(extent, 1.0, rows);
            }
            groups.add_covers((0..2).map(|column| Coverage { column, extent: extents[column], part: 1.0 }));
            groups.published.sensitive[0].add_extent(Extent::Width(range), 1.0, rows);
            groups.add_disclosure(0, Disclosure { pairs: 1.0, apart: range / 2.0 });
        }
        let whole = groups.released_losses();
        assert_eq!((whole.um, whole.wgu, whole.wgp), (Some(0.21875), Some(0.3125), Some(0.9)));
        groups.loss.add_suppressed(1);
        let released = groups.released_losses();
        assert_eq!(released.by_column, [Some((4.0 * 0.25 + 6.0 * 0.5) / 10.0), Some(0.2)]);
        assert_eq!((released.um, released.wgu), (Some((0.75 + 0.5) / 4.0), Some(0.375)));
        assert_eq!((released.ncp, released.gcp), (Some(6.0), Some(8.0 / 22.0)));
        assert_eq!((released.mpm, released.wgp), (Some(0.25), Some(0.75)));
        groups.published.hides_counts = true;
        assert_eq!(groups.released_losses().gcp, Some(6.0 / 20.0), "as many rows as are published");
        groups.published.worst.give_up();
        assert_eq!(groups.released_losses().wgu, None);
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
