//! Rows of the source among the rows of a public table. Both come to a cell as they are, so everybody of the source is there
//! twice: once as a member, once as one of the public.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::row::{RowConverter, Rows, SortField};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::model::Table;

/// Takes one public row out for every member with the same quasi-identifiers: what stays are the people of the public
/// table, with a mark on those who are in the source. `order` is the batch row of every table row.
///
/// Values are compared as they are: different ones can have the same code, and a public person who gave way to somebody
/// else would be missing among those who can be hidden behind. A member without such a row is not among the public, and
/// the chances would be wrong.
pub(super) fn without_doubles(
    table: Table,
    order: Vec<u32>,
    rows: &RecordBatch,
    bound_policy: &BoundPolicy,
) -> Result<(Table, Vec<u32>)> {
    let columns: Vec<ArrayRef> = bound_policy.quasi.iter().map(|quasi| rows.column(quasi.index).clone()).collect();
    let values = exact_values(&columns)?;
    pair_off(table, order, &values)
}

/// Rows whose bytes are equal exactly when all their values are.
fn exact_values(columns: &[ArrayRef]) -> Result<Rows> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(columns)?)
}

fn pair_off(table: Table, order: Vec<u32>, values: &Rows) -> Result<(Table, Vec<u32>)> {
    let value = |row: u32| values.row(order[row as usize] as usize);
    let mut doubles: HashMap<_, u32> = HashMap::new();
    let rows = 0..table.rows() as u32;
    rows.clone().filter(|&row| table.is_member(row)).for_each(|row| *doubles.entry(value(row)).or_default() += 1);
    let stays = |row: &u32| {
        if table.is_member(*row) {
            return true;
        }
        match doubles.get_mut(&value(*row)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        }
    };
    let staying: Vec<u32> = rows.filter(stays).collect();
    let unmatched: u64 = doubles.values().map(|&left| u64::from(left)).sum();
    if unmatched > 0 {
        return Err(Error::input(format!(
            "at least {unmatched} rows of the source have quasi-identifiers that the public table does not hold (often \
             enough); privacy.presence.public must hold everybody who is in the source, with the same values"
        )));
    }
    let pick = |values: &[u32]| staying.iter().map(|&row| values[row as usize]).collect();
    let mut kept = Table::new(
        std::sync::Arc::clone(&table.axes),
        staying.iter().flat_map(|&row| table.row(row).iter().copied()).collect(),
    );
    kept.members = table.members.as_ref().map(|members| staying.iter().map(|&row| members[row as usize]).collect());
    kept.persons = table.persons.as_deref().map(pick);
    kept.sensitive = table.sensitive.clone();
    kept.sensitive.iter_mut().for_each(|sensitive| sensitive.codes = pick(&sensitive.codes));
    Ok((kept, pick(&order)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int64Array};

    use super::*;
    use crate::model::{Axis, Code, Shape};

    fn table(rows: &[(Code, bool)]) -> Table {
        let mut table = Table::new([Axis::new("x", Shape::Line { span: 9 })], rows.iter().map(|row| row.0).collect());
        table.members = Some(rows.iter().map(|row| row.1).collect());
        table
    }

    fn whole(values: &[i64]) -> Rows {
        exact_values(&[Arc::new(Int64Array::from(values.to_vec())) as ArrayRef]).unwrap()
    }

    #[test]
    fn every_member_takes_the_place_of_one_public_row() {
        let given = table(&[(3, false), (3, true), (4, false), (3, false), (4, true), (5, false)]);
        let (kept, order) = pair_off(given, vec![5, 4, 3, 2, 1, 0], &whole(&[5, 4, 3, 4, 3, 3])).unwrap();
        assert_eq!(kept.codes, [3, 3, 4, 5]);
        assert_eq!(kept.members, Some(vec![true, false, true, false]));
        assert_eq!(order, [4, 2, 1, 0]);
    }

    #[test]
    fn members_who_are_not_public_are_refused() {
        let given = table(&[(3, false), (3, true), (3, true), (4, true)]);
        let error = pair_off(given, vec![0, 1, 2, 3], &whole(&[3, 3, 3, 4])).unwrap_err();
        assert!(error.to_string().starts_with("at least 2 rows of the source"), "{error}");
    }

    /// Values that lie close together have one code.
    #[test]
    fn people_with_the_same_code_are_told_apart_by_their_values() {
        let given = || table(&[(3, false), (3, false), (3, true)]);
        let values = [9_007_199_254_740_993, 9_007_199_254_740_992, 9_007_199_254_740_992];
        let (kept, order) = pair_off(given(), vec![0, 1, 2], &whole(&values)).unwrap();
        assert_eq!((kept.members, order), (Some(vec![false, true]), vec![0, 2]));
        let values = [9_007_199_254_740_993, 9_007_199_254_740_993, 9_007_199_254_740_992];
        assert!(pair_off(given(), vec![0, 1, 2], &whole(&values)).is_err(), "the member is nobody of the public table");
        let floats =
            exact_values(&[Arc::new(Float64Array::from(vec![0.1, 0.1 + 1e-17, f64::NAN])) as ArrayRef]).unwrap();
        assert!(pair_off(given(), vec![0, 1, 2], &floats).is_err());
    }
}
