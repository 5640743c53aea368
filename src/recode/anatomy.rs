//! Groups to the two tables of the form `anatomy`, which the operator emits side by side.
//!
//! A row of the result carries two things that have nothing to do with each other but their group: on the left one row
//! of the quasi-identifier table (exact quasi-identifiers, kept columns), on the right one row of the sensitive table (a
//! combination of sensitive values and how often the group holds it), as long as there are any.
//!
//! Order must not reveal what the separation hides. So the rows of a group stand in an order that follows from the left
//! columns alone on the left, and from the right columns alone on the right; that of the grouping, which knows both, is
//! forgotten. Groups stand in the order of their numbers, which are random.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Builder, UInt64Builder};
use datafusion::arrow::compute::take;

use super::Groups;
use super::permuted::{arrange_slices, group_sizes, order_by_number};
use crate::binding::BoundPolicy;
use crate::encode::row_hashes;
use crate::error::Result;
use crate::permutation::Slices;
use crate::policy::Role;
use crate::secret::Purpose;

/// Publishes the groups of a cell under their numbers. In the form that permutes, the slices of the left side change places
/// inside their group.
pub(crate) fn publish_anatomy(
    bound_policy: &BoundPolicy,
    slices: &Slices,
    cell: u32,
    rows: &RecordBatch,
    groups: &Groups<'_>,
    group_numbers: &[u64],
) -> Result<RecordBatch> {
    let of = |roles: &[Role]| -> Vec<ArrayRef> {
        let columns = rows.columns().iter().zip(&bound_policy.roles);
        columns.filter(|(_, role)| roles.contains(role)).map(|(column, _)| Arc::clone(column)).collect()
    };
    let (exact, sensitive) = (of(&[Role::Quasi, Role::Kept]), of(&[Role::Sensitive]));
    let left_keys = row_hashes(&exact, rows.num_rows(), 0)?;
    let right_keys = row_hashes(&sensitive, rows.num_rows(), 0)?;

    let published = groups.grouping.rows().len();
    let (mut left, mut right) = (UInt32Builder::with_capacity(published), UInt32Builder::with_capacity(published));
    let (mut numbers, mut counts) = (UInt64Builder::with_capacity(published), UInt64Builder::with_capacity(published));
    for (members, &number) in groups.batch_rows().zip(group_numbers) {
        let mut ordered: Vec<(u64, u32)> = members.map(|row| (left_keys[row], row as u32)).collect();
        ordered.sort_unstable();
        // One row of each combination of sensitive values, and how often it occurs.
        let mut values: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
        for &(_, row) in &ordered {
            values.entry(right_keys[row as usize]).or_insert((row, 0)).1 += 1;
        }
        let mut values = values.into_values();
        for (_, row) in ordered {
            left.append_value(row);
            numbers.append_value(number);
            let value = values.next();
            right.append_option(value.map(|(row, _)| row));
            counts.append_option(value.map(|(_, count)| count));
        }
    }
    let taken = |columns: &[ArrayRef], indices: &mut UInt32Builder| {
        let indices = indices.finish();
        columns.iter().map(|column| take(column, &indices, None)).collect::<Result<Vec<_>, _>>()
    };
    let mut columns = taken(&exact, &mut left)?;
    if bound_policy.form().is_permuted() {
        // The left columns stand one after another here, and as in the input there.
        let mut exact = columns.into_iter();
        let of_role = |role: &Role| match role {
            Role::Quasi | Role::Kept => exact.by_ref().take(1).collect(),
            _ => Vec::new(),
        };
        let by_input = bound_policy.roles.iter().map(of_role).collect();
        let mut rng = bound_policy.key.rng(Purpose::Permutation, cell.into());
        columns = arrange_slices(by_input, slices, &group_sizes(groups), &mut rng)?.into_iter().flatten().collect();
    }
    columns.push(Arc::new(numbers.finish()));
    columns.extend(taken(&sensitive, &mut right)?);
    columns.push(Arc::new(counts.finish()));
    let published = RecordBatch::try_new(Arc::clone(&bound_policy.output), columns)?;
    order_by_number(&published, group_numbers, &group_sizes(groups))
}
