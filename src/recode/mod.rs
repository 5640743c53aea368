//! Groups to published columns: every row of a group gets the same generalised value, taken from the original values
//! of the group (never from codes), and the loss of that value is measured exactly.
//!
//! Values are made once per group and then repeated by index, so nothing is allocated or formatted per row.

pub(crate) mod anatomy;
mod categories;
pub(crate) mod identifiers;
mod line;
pub(crate) mod permuted;
mod steps;
mod withheld;

pub(crate) use identifiers::{replace_columns, replace_identifiers};

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray, StringViewBuilder, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::encode::ColumnEncoder;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::hierarchy::Hierarchy;
pub(crate) use crate::hierarchy::TOP;
use crate::model::{Grouping, Table};
use crate::policy::Publish;
use steps::Steps;

/// The groups of a cell over the batch that holds its original rows.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    /// The encoded cell.
    pub table: &'a Table,
    /// Its groups, as rows of the table.
    pub grouping: &'a Grouping,
    /// Batch row of every table row.
    pub order: &'a [u32],
    /// Batch row of every published row.
    rows: UInt32Array,
    /// Group of every published row.
    group_of_row: UInt32Array,
}

/// One quasi-identifier, published.
#[derive(Debug)]
pub(crate) struct Published {
    /// One or two columns, a value for every group.
    pub columns: Vec<ArrayRef>,
    /// Loss of every group.
    pub losses: Vec<f64>,
}

impl<'a> Groups<'a> {
    /// Groups of `table`, whose row r is row `order[r]` of the batch. Rows stand group by group, as these were made.
    pub(crate) fn new(table: &'a Table, grouping: &'a Grouping, order: &'a [u32]) -> Self {
        let published = |rows: &[u32]| rows.iter().filter(|&&row| table.is_member(row)).count();
        let repeated =
            (0_u32..).zip(grouping.iter()).flat_map(|(group, rows)| std::iter::repeat_n(group, published(rows)));
        let group_of_row = UInt32Array::from_iter_values(repeated);
        let members = grouping.rows().iter().filter(|&&row| table.is_member(row));
        let rows = members.map(|&row| order[row as usize]).collect();
        Self { table, grouping, order, rows, group_of_row }
    }

    /// Batch rows in published order.
    pub(crate) fn rows(&self) -> &UInt32Array {
        &self.rows
    }

    /// Brings the published rows into an order that follows from hashes of what is published: by that of the class of
    /// their group, then by that of their other columns. Groups of one class mingle, so that nothing shows how rows were
    /// grouped, and rows of a class stay together.
    pub(crate) fn order_by_content(&mut self, class_of_group: &[u64], rest_of_row: &[u64]) {
        let mut groups: Vec<u32> = (0..self.grouping.len() as u32).collect();
        groups.sort_unstable_by_key(|&group| class_of_group[group as usize]);
        let mut placed: Vec<(u64, u32, u32)> = Vec::with_capacity(self.rows.len());
        for class in groups.chunk_by(|&a, &b| class_of_group[a as usize] == class_of_group[b as usize]) {
            let first = placed.len();
            for &group in class {
                let rows = self.table.members_of(self.grouping.group(group as usize));
                let rows = rows.map(|row| self.order[row as usize]);
                placed.extend(rows.map(|row| (rest_of_row[row as usize], row, group)));
            }
            placed[first..].sort_unstable_by_key(|&(rest, ..)| rest);
        }
        self.rows = placed.iter().map(|&(_, row, _)| row).collect();
        let stale = |group: u32| (group + 1) % self.grouping.len() as u32;
        let label = |&(.., group): &(u64, u32, u32)| if Fault::StaleLabel.is_planted() { stale(group) } else { group };
        self.group_of_row = placed.iter().map(label).collect();
    }

    /// Batch rows of every group: what it publishes must cover all of them.
    fn batch_rows(&self) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone> {
        self.grouping.iter().map(|rows| rows.iter().map(|&row| self.order[row as usize] as usize))
    }

    /// Repeats one value per group for every row of the group.
    pub(crate) fn expand_groups(&self, per_group: &dyn datafusion::arrow::array::Array) -> Result<ArrayRef> {
        Ok(take(per_group, &self.group_of_row, None)?)
    }
}

/// Publishes one quasi-identifier: `axis` is its place among the axes, `original` its column of the batch.
pub(crate) fn publish_column(
    encoder: &ColumnEncoder,
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
) -> Result<Published> {
    let (per_group, losses) = match (encoder.column().publish, encoder.hierarchy()) {
        _ if encoder.column().withheld => withheld::publish_tops(encoder, groups)?,
        (Publish::Centroid, _) if encoder.column().is_ordinal() => line::publish_centroids(encoder, original, groups)?,
        (Publish::Centroid, _) => categories::publish_commonest(axis, original, groups)?,
        (_, None) if encoder.column().is_ordinal() => line::publish_ranges(encoder, original, groups)?,
        (_, None) => categories::publish_sets(encoder, axis, original, groups)?,
        (_, Some(Hierarchy::Levels(levels))) => categories::publish_nodes(encoder, levels, axis, groups)?,
        (_, Some(Hierarchy::Mask(mask))) => categories::publish_masks(encoder, mask, axis, original, groups)?,
        (_, Some(Hierarchy::Ladder(ladder))) => steps::labels_of(encoder, original, groups, &Steps::Ladder(ladder))?,
        (_, Some(Hierarchy::Calendar(calendar))) => {
            steps::labels_of(encoder, original, groups, &Steps::Calendar(calendar))?
        }
    };
    Ok(Published { columns: per_group, losses })
}

/// The values of a column as text. A value without a text form is an error that does not quote it.
struct ValueText<'a>(ArrayFormatter<'a>);

impl<'a> ValueText<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self> {
        const STRICT: FormatOptions<'static> = FormatOptions::new().with_display_error(false);
        Ok(Self(ArrayFormatter::try_new(array.as_ref(), &STRICT)?))
    }

    fn text_of(&self, row: usize) -> Result<String> {
        let text = self.0.value(row).try_to_string();
        text.map_err(|_| Error::input("a value is out of the range of its type and has no text form"))
    }
}

/// Labels, one per group; none is null.
fn label_array<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    values.for_each(|value| builder.append_option(value));
    let array: StringViewArray = builder.finish();
    Arc::new(array)
}
