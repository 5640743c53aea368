//! What a group covers on a column, without reference to the domain of the source: see [`Extent`].

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;

use crate::binding::SensitiveColumn;
use crate::encode::{ColumnEncoder, row_hashes, to_ordinals};
use crate::error::Result;
use crate::hierarchy::Hierarchy;
use crate::measure::Disclosure;
use crate::measure::published::{ColumnLoss, Extent, PublishedDomain};
use crate::model::{Cover, MAX_SET_VALUES, Sensitive, SensitiveShape, Shape};
use crate::policy::Publish;
use crate::privacy::Histogram;
use crate::recode::Groups;

/// One quasi-identifier of a cell.
pub(super) struct QuasiExtents<'a> {
    encoder: &'a ColumnEncoder,
    axis: usize,
    groups: &'a Groups<'a>,
    original: &'a ArrayRef,
    /// Positions of the rows of the batch on a line whose codes do not determine them.
    positions: Option<Vec<f64>>,
}

impl<'a> QuasiExtents<'a> {
    pub(super) fn new(
        encoder: &'a ColumnEncoder,
        axis: usize,
        batch: &'a RecordBatch,
        groups: &'a Groups<'a>,
    ) -> Result<Self> {
        let original = batch.column(encoder.column().index);
        let inexact = encoder.ordinal_ends().is_some() && !encoder.axis().exact;
        let positions = if inexact { Some(to_ordinals(original)?) } else { None };
        Ok(Self { encoder, axis, groups, original, positions })
    }

    /// Whether what is covered is a share of a domain that only published rows show.
    pub(super) fn is_free(&self) -> bool {
        let levels = matches!(self.encoder.hierarchy(), Some(Hierarchy::Levels(_)));
        !levels && !self.encoder.column().withheld
    }

    /// Adds what published rows, and those of a public table, show of the domain.
    pub(super) fn add_domain(&self, domain: &mut PublishedDomain) {
        let (table, grouping) = (self.groups.table, self.groups.grouping);
        if let Some([low, high]) = self.encoder.column().domain {
            domain.add_position(low);
            domain.add_position(high);
        }
        let public = grouping.left_over.iter().copied().filter(|&row| !table.is_member(row));
        let shown = grouping.rows().iter().copied().chain(public);
        let null = self.encoder.axis().null;
        if self.encoder.ordinal_ends().is_some() {
            let ends = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), row| {
                let position = self.position(row);
                // Comparing with NaN is false.
                (if position < min { position } else { min }, if position > max { position } else { max })
            });
            if ends.0 <= ends.1 {
                domain.add_position(ends.0);
                domain.add_position(ends.1);
            }
            return;
        }
        let counts_null = self.encoder.axis().is_set();
        if self.encoder.dictionary().is_some() {
            let mut seen = vec![false; usize::from(u16::MAX) + 1];
            shown.for_each(|row| seen[usize::from(table.row(row)[self.axis])] = true);
            let codes = (0..=u16::MAX).filter(|&code| seen[usize::from(code)] && (counts_null || null != Some(code)));
            codes.for_each(|code| domain.add_value(u64::from(code)));
        }
    }

    /// Where a row lies on a line; NaN when it has no value.
    fn position(&self, row: u32) -> f64 {
        match (&self.positions, self.encoder.ordinal_ends()) {
            (Some(positions), _) => positions[self.groups.order[row as usize] as usize],
            (None, Some((min, _))) => {
                let code = self.groups.table.row(row)[self.axis];
                // Codes of an exact line are steps of one.
                if self.encoder.axis().null == Some(code) { f64::NAN } else { min + f64::from(code) }
            }
            (None, None) => f64::NAN,
        }
    }

    /// What some rows with this cover are published as.
    pub(super) fn cover_extent(&self, cover: &Cover, rows: &[u32]) -> Extent {
        let (axis, a) = (self.encoder.axis(), self.axis);
        let (lo, hi) = (cover.lo[a], cover.hi[a]);
        if self.encoder.column().withheld {
            return Extent::Share(1.0);
        }
        if axis.null == Some(hi) {
            // Nulls alone are published as null; with values, or as numbers that are none, they are the top.
            let missing = |&row: &u32| self.original.is_null(self.groups.order[row as usize] as usize);
            return Extent::Share(if lo == hi && rows.iter().all(missing) { 0.0 } else { 1.0 });
        }
        if self.encoder.ordinal_ends().is_some() {
            return self.row_range(rows);
        }
        match (&axis.shape, self.encoder.dictionary()) {
            (Shape::Set { .. }, _) if cover.count_distinct(a) > MAX_SET_VALUES => Extent::Share(1.0),
            (Shape::Set { .. }, _) => Extent::Values(cover.count_distinct(a)),
            (Shape::Tree(tree), Some(_)) => tree.common_ancestor(lo, hi).map_or(Extent::Share(0.0), |node| {
                let node = &tree.nodes()[node as usize];
                Extent::Keys(u64::from(node.lo), u64::from(node.hi))
            }),
            _ => Extent::Share(axis.loss(lo, hi, cover.count_distinct(a))),
        }
    }

    /// The range of some rows on a line, or the interval of its hierarchy that holds it.
    fn row_range(&self, rows: &[u32]) -> Extent {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for position in rows.iter().map(|&row| self.position(row)) {
            if position.is_nan() {
                return Extent::Share(1.0);
            }
            (min, max) = (min.min(position), max.max(position));
        }
        let interval = match self.encoder.hierarchy() {
            _ if min >= max => return Extent::Share(0.0),
            _ if self.encoder.column().publish == Publish::Centroid => return Extent::Width(max - min),
            Some(Hierarchy::Ladder(ladder)) => {
                ladder.cover_numbers(min, max).map(|bucket| (bucket.lower, bucket.upper))
            }
            Some(Hierarchy::Calendar(calendar)) => {
                calendar.cover_moments(min, max).map(|period| (period.start as f64, period.end as f64))
            }
            _ => return Extent::Width(max - min),
        };
        interval.map_or(Extent::Share(1.0), |(lower, upper)| Extent::Interval(lower, upper))
    }
}

/// One sensitive column of a cell.
pub(super) struct SensitiveExtents<'a> {
    pub(super) codes: &'a Sensitive,
    /// Whether the job or a hierarchy says what the domain is.
    public: bool,
}

impl<'a> SensitiveExtents<'a> {
    pub(super) fn new(column: &SensitiveColumn, codes: &'a Sensitive) -> Self {
        let public = column.domain.is_some() || matches!(codes.shape, SensitiveShape::Tree(_));
        Self { codes, public }
    }

    /// Adds what a group with this histogram spreads over, and what it shows of the domain.
    pub(super) fn add_group(&self, histogram: Histogram<'_>, rows: u64, loss: &mut ColumnLoss) {
        let (Some(&(lo, _)), Some(&(hi, _))) = (histogram.first(), histogram.last()) else { return };
        let values = histogram.len() as u32;
        let extent = match &self.codes.shape {
            _ if self.public => Extent::Share(self.codes.spread(lo, hi, values)),
            SensitiveShape::Number { at, .. } => {
                let known = histogram.iter().filter(|(code, _)| self.codes.null != Some(*code));
                known.filter_map(|(code, _)| at.get(*code as usize)).for_each(|&at| loss.domain.add_position(at));
                match (at.get(lo as usize), at.get(hi as usize)) {
                    _ if lo == hi => Extent::Share(0.0),
                    (Some(lower), Some(upper)) => Extent::Width(upper - lower),
                    // With nulls.
                    _ => Extent::Share(1.0),
                }
            }
            _ if values == 1 => Extent::Share(0.0),
            _ => Extent::Values(values),
        };
        loss.add_extent(extent, 1.0, rows);
    }

    /// What a group with this histogram and range diversity discloses, without the domain.
    pub(super) fn group_disclosure(&self, histogram: Histogram<'_>, range_diversity: f64) -> Disclosure {
        if self.public || self.codes.ranges.is_empty() {
            return Disclosure { pairs: range_diversity, apart: 0.0 };
        }
        let rows: f64 = histogram.iter().map(|&(_, count)| f64::from(count)).sum();
        let mut found = Disclosure::default();
        for &(u, count) in histogram {
            let (lo, hi) = self.codes.ranges.get(u as usize).copied().unwrap_or((u, u));
            let first = histogram.partition_point(|&(x, _)| x < lo);
            for &(x, other) in histogram[first..].iter().take_while(|&&(x, _)| x <= hi) {
                let pairs = f64::from(count) * f64::from(other) / (rows * rows);
                let apart = match &self.codes.shape {
                    _ if u == x => 0.0,
                    // Null is as far from any value as the domain is wide.
                    _ if self.codes.null.is_some_and(|null| null == u || null == x) => continue,
                    SensitiveShape::Number { at, .. } => (at[u as usize] - at[x as usize]).abs(),
                    _ => 1.0,
                };
                found.pairs += pairs;
                found.apart += pairs * apart;
            }
        }
        found
    }

    /// Adds the different published values of a column whose values are identified by their hash.
    pub(super) fn add_values(
        &self,
        original: &ArrayRef,
        groups: &Groups<'_>,
        domain: &mut PublishedDomain,
    ) -> Result<()> {
        if !matches!(self.codes.shape, SensitiveShape::Set { .. }) {
            return Ok(());
        }
        let mut first: Vec<Option<u32>> = Vec::new();
        for row in groups.table.members_of(groups.grouping.rows()) {
            let code = self.codes.codes[row as usize] as usize;
            if first.len() <= code {
                first.resize(code + 1, None);
            }
            first[code].get_or_insert(groups.order[row as usize]);
        }
        let rows: UInt32Array = first.into_iter().flatten().map(Some).collect();
        let values = take(original, &rows, None)?;
        let hashes = row_hashes(std::slice::from_ref(&values), rows.len(), 0)?;
        hashes.into_iter().for_each(|hash| domain.add_value(hash));
        Ok(())
    }
}
