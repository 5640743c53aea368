//! The survey of a window: its own rows, in the domains that are known beforehand.
//!
//! A window is small enough to be looked at as a whole, so every value in it has a code of its own, also one that lies
//! outside of what a survey has found before: the domain is widened, for this window. What is known beforehand makes
//! losses comparable between windows, and says how often sensitive values occur.

use datafusion::arrow::array::RecordBatch;

use super::collector::{Collector, SensitiveCollector};
use super::sample::Sampler;
use super::{Survey, ensure_usable, tune_method};
use crate::binding::BoundPolicy;
use crate::encode::{ColumnEncoder, ColumnStats, Reference, SensitiveDomain};
use crate::error::{Error, Result};
use crate::grouping::entry::Tuned;
use crate::grouping::split::CellTree;
use crate::secret::Purpose;

/// Surveys the rows of a window, whose columns are the quasi-identifiers, then the sensitive ones. `tuned` is what an
/// earlier window has found by trying.
pub(crate) fn survey_window(
    bound_policy: &BoundPolicy,
    rows: &RecordBatch,
    known: Option<&Survey>,
    tuned: Option<Tuned>,
) -> Result<Survey> {
    let (quasi, others) = rows.columns().split_at(bound_policy.quasi.len());
    let mut stats = Vec::with_capacity(quasi.len());
    for (column, array) in bound_policy.quasi.iter().zip(quasi) {
        let mut collector = Collector::new(column);
        collector.add_values(column, array)?;
        stats.push(collector.finish());
    }
    let count = rows.num_rows() as u64;
    ensure_usable(count, 0, &stats, bound_policy).map_err(|error| error.context("a window"))?;
    let mut sensitive = Vec::with_capacity(others.len());
    for (column, array) in bound_policy.sensitive.iter().zip(others) {
        let mut collector = SensitiveCollector::new(column);
        collector.add_values(column, array)?;
        sensitive.push(collector.finish(column)?);
    }
    if let Some(known) = known {
        stats.iter_mut().zip(&known.stats).for_each(|(stats, known)| widen_line(stats, known));
        let pairs = sensitive.iter_mut().zip(&known.sensitive).zip(&bound_policy.sensitive);
        for ((domain, known), column) in pairs {
            widen_domain(domain, known);
            domain.reference.as_ref().map_or(Ok(()), |reference| reference.ensure_few_values(column))?;
        }
    }
    let tuned = match (tuned, known) {
        (Some(tuned), _) => tuned,
        (None, Some(known)) => known.tuned,
        (None, None) => try_out(bound_policy, &stats, &sensitive, rows)?,
    };
    Ok(Survey {
        rows: count,
        members: None,
        dropped: 0,
        stats,
        sensitive,
        tree: CellTree::single_cell(),
        tuned,
        frequencies: Vec::new(),
        slices: Vec::new(),
    })
}

/// What the policy leaves open, tried out on the rows of a window.
fn try_out(
    bound_policy: &BoundPolicy,
    stats: &[ColumnStats],
    sensitive: &[SensitiveDomain],
    rows: &RecordBatch,
) -> Result<Tuned> {
    let mut sampler = Sampler::new(rows.schema(), bound_policy.key.random_number(Purpose::Sample, 0));
    sampler.add_batch(rows)?;
    let sample = sampler.finish()?;
    let columns = bound_policy.quasi.iter().zip(stats);
    let coders = columns.map(|(column, stats)| ColumnEncoder::new(column, stats)).collect::<Result<Vec<_>>>()?;
    tune_method(bound_policy, &coders, sensitive, &sample)
}

/// A line that reaches as far as both.
fn widen_line(stats: &mut ColumnStats, known: &ColumnStats) {
    if let (
        ColumnStats::Line { min, max, whole, .. },
        ColumnStats::Line { min: known_min, max: known_max, whole: known_whole, .. },
    ) = (stats, known)
    {
        (*min, *max, *whole) = (min.min(*known_min), max.max(*known_max), *whole && *known_whole);
    }
}

/// A sensitive domain that reaches as far as both. Values that nobody knew of occur nowhere in the table that classes are
/// compared with: a rule that cannot bear them leaves their rows waiting.
fn widen_domain(domain: &mut SensitiveDomain, known: &SensitiveDomain) {
    (domain.min, domain.max) = (domain.min.min(known.min), domain.max.max(known.max));
    domain.distinct = domain.distinct.max(known.distinct);
    if let (Some(here), Some(known)) = (&domain.reference, &known.reference) {
        let new = here.counts().map(|(key, _)| (key.to_vec(), 0));
        let known = known.counts().map(|(key, count)| (key.to_vec(), count));
        // Later entries of a key replace earlier ones.
        domain.reference = Some(new.chain(known).collect::<Reference>());
    }
}

/// Refuses quasi-identifiers whose ends nobody has said, over rows that come one after another.
pub(crate) fn ensure_domains(bound_policy: &BoundPolicy, is_surveyed: bool) -> Result<()> {
    let open = bound_policy.quasi.iter().filter(|column| {
        column.is_ordinal() && column.hierarchy.is_none() && column.domain.is_none() && !column.withheld
    });
    let problems: Vec<String> = open
        .filter(|_| !is_surveyed)
        .map(|column| {
            let name = &column.name;
            let (hierarchy, bounds) = match column.data_type.is_numeric() {
                true => ("widths = [5, 10]", format!("state its bounds (columns.{name}.domain = [0, 120]), ")),
                false => ("calendar = [\"month\", \"year\"]", String::new()),
            };
            format!(
                "column `{name}`: windows publish before its smallest and largest value are known; {bounds}give it a \
                 hierarchy (columns.{name}.hierarchy.{hierarchy}), or set window.survey to what `throng survey` finds in \
                 rows that are at hand"
            )
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::job(problems.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_widens_what_was_known_and_counts_no_stranger() {
        let line =
            |min, max| ColumnStats::Line { min, max, whole: true, nulls: 0, varied: true, quantiles: Vec::new() };
        let mut stats = line(5.0, 9.0);
        widen_line(&mut stats, &line(0.0, 7.0));
        assert_eq!(stats, line(0.0, 9.0));
        let domain = |keys: &[(u8, u64)]| SensitiveDomain {
            min: 0.0,
            max: 1.0,
            distinct: keys.len() as u64,
            reference: Some(keys.iter().map(|&(key, count)| (vec![key], count)).collect()),
        };
        let mut here = domain(&[(1, 3), (9, 5)]);
        widen_domain(&mut here, &domain(&[(1, 70), (2, 30)]));
        let found: Vec<_> = here.reference.as_ref().unwrap().counts().map(|(key, count)| (key[0], count)).collect();
        assert_eq!(found, [(1, 70), (2, 30), (9, 0)]);
    }
}
