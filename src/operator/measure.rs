//! What a cell publishes, measured while its original rows are at hand.
//!
//! Groups are measured twice: against the domains that they were made with, which is what the rules of the policy ask for
//! and what a release without suppressed rows reports; and as covers that wait for the domain of the published rows
//! ([`ColumnLoss`](crate::measure::published::ColumnLoss)), which is what a release with suppressed rows reports. Neither
//! sees more of a suppressed row than its existence.

use datafusion::arrow::array::RecordBatch;

use super::AnonymizeParams;
use super::extent::{QuasiExtents, SensitiveExtents};
use crate::dependency::Preserved;
use crate::error::Result;
use crate::faults::Fault;
use crate::measure::frontier::MAX_FREE_COLUMNS;
use crate::measure::protection::s_diversity;
use crate::measure::{Coverage, Groups as Measures};
use crate::methods::combined::Raised;
use crate::model::{Cover, SensitiveShape, Table};
use crate::policy::Ranges;
use crate::privacy::GroupView;
use crate::privacy::range_diversity::range_diversity;
use crate::recode::Groups;

/// Measures the groups of a cell: `batch` holds its original rows, `losses` what every group loses per quasi-identifier.
pub(super) fn measure_groups(
    params: &AnonymizeParams,
    batch: &RecordBatch,
    table: &Table,
    groups: &Groups<'_>,
    losses: &[Vec<f64>],
    raised: Option<&Raised>,
) -> Result<Measures> {
    let mut measures = params.empty_measures();
    let bound_policy = &params.bound_policy;
    let withheld: Vec<bool> = bound_policy.quasi.iter().map(|quasi| quasi.withheld).collect();
    // What a reader sees of a group: everything is possible on an axis that is withheld.
    let show = |rows: &[u32], cover: &mut Cover| {
        cover.clear();
        rows.iter().for_each(|&row| cover.add_row(&table.axes, table.row(row)));
        (0..withheld.len()).filter(|&a| withheld[a]).for_each(|a| cover.widen_axis(&table.axes, a));
    };
    let quasi = quasi_extents(params, batch, groups, &mut measures)?;
    let mut coverage = Vec::with_capacity(quasi.len());
    let mut sensitive = sensitive_extents(params, table, &mut measures);
    let (mut cover, mut histogram) = (Cover::empty(table.axes.len()), Vec::new());
    let mut of_group = vec![0.0; losses.len()];
    let (mut spreads, mut disclosures) = (Vec::new(), Vec::new());
    for (group, rows) in groups.grouping.iter().enumerate() {
        losses.iter().zip(&mut of_group).for_each(|(axis, loss)| *loss = axis[group]);
        spreads.clear();
        disclosures.clear();
        let view = GroupView::new(table, rows);
        let published = view.members() as u64;
        if published == 0 {
            continue;
        }
        for (index, column) in sensitive.iter_mut().enumerate() {
            view.histogram_into(column.codes, &mut histogram);
            let (spread, disclosed) = measure_sensitive(column, &histogram, (index, published), &mut measures);
            spreads.push(spread);
            disclosures.push(disclosed);
        }
        measures.add_group(published, &of_group, &spreads, &disclosures);
        show(rows, &mut cover);
        coverage.clear();
        if bound_policy.form().is_numbered() {
            measures.generalisation.add_rows(&table.axes, published);
        } else {
            measures.generalisation.add_group(&table.axes, &cover, published);
            coverage.extend(quasi.iter().enumerate().map(|(column, extents)| {
                let extent = extents.cover_extent(&cover, rows);
                measures.published.quasi[column].add_extent(extent, 1.0, published);
                Coverage { column, extent, part: 1.0 }
            }));
        }
        for (axis, part) in raised.into_iter().flat_map(|raised| parts_of(raised, group)) {
            coverage.push(measure_part(table, &quasi[axis], (axis, part), published, &mut measures));
        }
        measures.add_covers(coverage.iter().copied());
        if let Some(workload) = &mut measures.workload {
            workload.add_group(&params.queries, &table.axes, &cover, published);
        }
    }
    add_domains(&sensitive, params, batch, groups, &mut measures)?;
    let shown = groups.grouping.iter().map(|rows| {
        show(rows, &mut cover);
        (rows, cover.clone())
    });
    measure_cell(params, table, groups, shown, &mut measures);
    if !params.dependencies.list.is_empty() {
        measures.dependencies = Preserved::of_grouping(&params.dependencies, table, groups.grouping, &withheld);
    }
    Ok(measures)
}

/// Measures what a cell as a whole has lost: its suppressed rows, answers of queries and information. `shown` are its groups,
/// and what a reader sees of each.
fn measure_cell<'a>(
    params: &AnonymizeParams,
    table: &Table,
    groups: &Groups<'_>,
    shown: impl Iterator<Item = (&'a [u32], Cover)>,
    measures: &mut Measures,
) {
    let suppressed = GroupView::new(table, &groups.grouping.left_over).members();
    let suppressed = suppressed.saturating_sub(usize::from(Fault::UncountedSuppression.is_planted()));
    measures.loss.add_suppressed(suppressed as u64);
    if let Some(workload) = &mut measures.workload {
        workload.add_table(&params.queries, table);
    }
    if let Some(information) = &mut measures.information {
        information.add_cell(table, shown);
    }
}

/// Reads the extents of every quasi-identifier, and adds what is published of it to its domain.
fn quasi_extents<'a>(
    params: &'a AnonymizeParams,
    batch: &'a RecordBatch,
    groups: &'a Groups<'a>,
    measures: &mut Measures,
) -> Result<Vec<QuasiExtents<'a>>> {
    let mut quasi = Vec::with_capacity(params.encoders.len());
    for (axis, encoder) in params.encoders.iter().enumerate() {
        let extents = QuasiExtents::new(encoder, axis, batch, groups)?;
        extents.add_domain(&mut measures.published.quasi[axis].domain);
        quasi.push(extents);
    }
    if quasi.iter().filter(|extents| extents.is_free()).count() > MAX_FREE_COLUMNS {
        measures.published.worst.give_up();
    }
    Ok(quasi)
}

/// The sensitive columns of a cell, ready to take in the values of its groups.
fn sensitive_extents<'a>(
    params: &'a AnonymizeParams,
    table: &'a Table,
    measures: &mut Measures,
) -> Vec<SensitiveExtents<'a>> {
    let columns = params.bound_policy.sensitive.iter().zip(&table.sensitive);
    measures.published.ranges_by_domain = columns.clone().any(|(column, codes)| {
        let public = column.domain.is_some() || matches!(codes.shape, SensitiveShape::Tree(_));
        !public && column.ranges != Ranges::Identity
    });
    columns.map(|(column, codes)| SensitiveExtents::new(column, codes)).collect()
}

/// Adds what is published of every sensitive column to its domain.
fn add_domains(
    sensitive: &[SensitiveExtents<'_>],
    params: &AnonymizeParams,
    batch: &RecordBatch,
    groups: &Groups<'_>,
    measures: &mut Measures,
) -> Result<()> {
    let columns = params.bound_policy.sensitive.iter().zip(&mut measures.published.sensitive);
    for (extents, (column, published)) in sensitive.iter().zip(columns) {
        extents.add_values(batch.column(column.index), groups, &mut published.domain)?;
    }
    Ok(())
}

/// Measures the values of a sensitive column in a group of so many published rows: how little they spread, and what a reader
/// learns of their ranges.
fn measure_sensitive(
    column: &mut SensitiveExtents<'_>,
    histogram: &[(u32, u32)],
    (index, published): (usize, u64),
    measures: &mut Measures,
) -> (f64, f64) {
    column.add_group(histogram, published, &mut measures.published.sensitive[index]);
    let disclosed = range_diversity(histogram, column.codes);
    measures.add_disclosure(index, column.group_disclosure(histogram, disclosed));
    (1.0 - s_diversity(histogram, column.codes), disclosed)
}

/// Measures a part of a group of so many published rows that is raised on an axis by itself.
fn measure_part(
    table: &Table,
    extents: &QuasiExtents<'_>,
    (axis, part): (usize, &[u32]),
    published: u64,
    measures: &mut Measures,
) -> Coverage {
    let of_part = table.members_of(part).count() as u64;
    let cover = table.cover(part);
    measures.generalisation.add_values(&table.axes, axis, &cover, of_part);
    let (extent, share) = (extents.cover_extent(&cover, part), of_part as f64 / published as f64);
    measures.published.quasi[axis].add_extent(extent, share, of_part);
    Coverage { column: axis, extent, part: share }
}

/// The parts of a group on every axis; parts stand in the order of their groups.
fn parts_of(raised: &Raised, group: usize) -> impl Iterator<Item = (usize, &[u32])> {
    raised.parts.iter().zip(&raised.group_of).enumerate().flat_map(move |(axis, (parts, group_of))| {
        let first = group_of.partition_point(|&of| (of as usize) < group);
        let last = group_of.partition_point(|&of| of as usize <= group);
        (first..last).map(move |part| (axis, parts.group(part)))
    })
}
