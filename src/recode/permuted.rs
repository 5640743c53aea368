//! Groups to one table in which values have changed places: every slice of columns is permuted on its own inside its group,
//! and the group has a number. Values are as they were, or raised group by group ([`Raised`]).
//!
//! Permutations and numbers are drawn from the secret key of the run, so that nobody can try out which rows would have led
//! to a published group. Groups stand in the order of their numbers, and the rows of a group in one that follows from what is
//! published of them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{take, take_record_batch};

use super::Groups;
use crate::binding::BoundPolicy;
use crate::encode::{ColumnEncoder, row_hashes};
use crate::error::Result;
use crate::faults::Fault;
use crate::methods::combined::Raised;
use crate::permutation::Slices;
use crate::policy::Role;
use crate::secret::{Purpose, SecretRng};

/// Publishes the groups of a cell under their numbers. Also says what each group loses on every quasi-identifier, which is
/// nothing where none is raised.
pub(crate) fn publish_permuted(
    bound_policy: &BoundPolicy,
    slices: &Slices,
    cell: u32,
    rows: &RecordBatch,
    groups: &Groups<'_>,
    numbers: &[u64],
    raised: Option<(&[ColumnEncoder], &Raised)>,
) -> Result<(RecordBatch, Vec<Vec<f64>>)> {
    let kept = groups.rows();
    let mut losses = vec![vec![0.0; groups.grouping.len()]; bound_policy.quasi.len()];
    let mut columns: Vec<Vec<ArrayRef>> = Vec::with_capacity(rows.num_columns());
    let mut axes = 0..bound_policy.quasi.len();
    for (column, role) in rows.columns().iter().zip(&bound_policy.roles) {
        columns.push(match (role, raised) {
            (Role::Identifier, _) => Vec::new(),
            (Role::Quasi, Some((encoders, raised))) => {
                let Some(axis) = axes.next() else { continue };
                let (published, lost) = raise_column(&encoders[axis], axis, column, groups, raised)?;
                losses[axis] = lost;
                published
            }
            _ => vec![take(column, kept, None)?],
        });
    }
    let sizes = group_sizes(groups);
    let mut permutation = bound_policy.key.rng(Purpose::Permutation, cell.into());
    let arranged = arrange_slices(columns, slices, &sizes, &mut permutation)?;
    let mut published: Vec<ArrayRef> = arranged.into_iter().flatten().collect();
    let of_rows = numbers.iter().zip(&sizes).flat_map(|(&number, &size)| std::iter::repeat_n(number, size));
    published.push(Arc::new(UInt64Array::from_iter_values(of_rows)));
    let published = RecordBatch::try_new(Arc::clone(&bound_policy.output), published)?;
    Ok((order_by_number(&published, numbers, &sizes)?, losses))
}

/// Published rows of every group.
pub(super) fn group_sizes(groups: &Groups<'_>) -> Vec<usize> {
    groups.grouping.iter().map(|rows| groups.table.members_of(rows).count()).collect()
}

/// The numbers of the groups of a cell: drawn at random, so that they say nothing of how groups were made. Among 64 bits no
/// two groups of a release share one.
pub(crate) fn group_numbers(bound_policy: &BoundPolicy, cell: u32, groups: &Groups<'_>) -> Vec<u64> {
    let mut rng = bound_policy.key.rng(Purpose::GroupNumbers, cell.into());
    let number = |group| if Fault::CountedGroups.is_planted() { group } else { rng.next_u64() };
    (0..groups.grouping.len() as u64).map(number).collect()
}

/// Brings groups, which stand one after another as they were made, into the order of their numbers.
pub(super) fn order_by_number(rows: &RecordBatch, numbers: &[u64], sizes: &[usize]) -> Result<RecordBatch> {
    let ends = sizes.iter().scan(0, |end, &size| {
        *end += size as u32;
        Some(*end)
    });
    let mut ranges: Vec<_> = numbers.iter().zip(sizes).zip(ends).collect();
    ranges.sort_unstable_by_key(|((number, _), _)| **number);
    let order = ranges.into_iter().flat_map(|((_, &size), end)| end - size as u32..end);
    Ok(take_record_batch(rows, &UInt32Array::from_iter_values(order))?)
}

/// Permutes every slice inside its group and brings the rows of a group into an order that reveals nothing. Columns stand as
/// in the input, group after group; one that is not published is empty.
pub(super) fn arrange_slices(
    columns: Vec<Vec<ArrayRef>>,
    slices: &Slices,
    sizes: &[usize],
    rng: &mut SecretRng,
) -> Result<Vec<Vec<ArrayRef>>> {
    let rows: usize = sizes.iter().sum();
    let hashes = |columns: &[Vec<ArrayRef>]| -> Result<Vec<u64>> {
        let flat: Vec<ArrayRef> = columns.iter().flatten().cloned().collect();
        Ok(row_hashes(&flat, rows, 0)?)
    };
    let content = hashes(&columns)?;
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); columns.len()];
    let mut start = 0;
    for &size in sizes {
        let shuffle = |rows: &mut [u32]| {
            if !Fault::NoPermutation.is_planted() {
                rng.shuffle(rows)
            }
        };
        let moved = slices.permute_rows(&content[start..start + size], shuffle);
        for (places, moved) in places.iter_mut().zip(moved) {
            places.extend(moved.iter().map(|row| start as u32 + row));
        }
        start += size;
    }
    let moved = columns.into_iter().zip(places).map(|(arrays, places)| {
        let places = UInt32Array::from(places);
        arrays.iter().map(|array| Ok(take(array, &places, None)?)).collect::<Result<Vec<_>>>()
    });
    let moved = moved.collect::<Result<Vec<_>>>()?;
    let content = hashes(&moved)?;
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let mut start = 0;
    for &size in sizes {
        order[start..start + size].sort_by_key(|&row| content[row as usize]);
        start += size;
    }
    let order = UInt32Array::from(order);
    let sorted = moved.iter().map(|arrays| arrays.iter().map(|array| Ok(take(array, &order, None)?)).collect());
    sorted.collect()
}

/// One quasi-identifier, raised inside every group, in the order of the published rows; and what each group loses on it.
fn raise_column(
    encoder: &ColumnEncoder,
    axis: usize,
    original: &ArrayRef,
    groups: &Groups<'_>,
    raised: &Raised,
) -> Result<(Vec<ArrayRef>, Vec<f64>)> {
    let parts = Groups::new(groups.table, &raised.parts[axis], groups.order);
    let published = super::publish_column(encoder, axis, original, &parts)?;
    let mut place = vec![0_u32; original.len()];
    (0..).zip(parts.rows().values()).for_each(|(at, &row)| place[row as usize] = at);
    let places: UInt32Array = groups.rows().values().iter().map(|&row| Some(place[row as usize])).collect();
    let raised_rows = published.columns.iter().map(|column| Ok(take(&parts.expand_groups(column)?, &places, None)?));
    let columns = raised_rows.collect::<Result<_>>()?;
    let mut lost = vec![0.0; groups.grouping.len()];
    for ((rows, &group), loss) in raised.parts[axis].iter().zip(&raised.group_of[axis]).zip(published.losses) {
        lost[group as usize] += loss * groups.table.members_of(rows).count() as f64;
    }
    lost.iter_mut().zip(group_sizes(groups)).for_each(|(lost, size)| *lost /= size.max(1) as f64);
    Ok((columns, lost))
}
