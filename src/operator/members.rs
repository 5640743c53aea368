//! Rows of the source among the rows of a public table. Both come to a cell as they are, so everybody of the source is there
//! twice: once as a member, once as one of the public.

use std::collections::HashMap;

use crate::domain::{Code, Table};
use crate::error::{Error, Result};

/// Takes one public row out for every member with the same quasi-identifiers: what stays are the people of the public
/// table, with a mark on those who are in the source. `order` is the batch row of every table row.
///
/// A member without such a row is not among the public, and the chances would be wrong.
pub(super) fn without_doubles(table: Table, order: Vec<u32>) -> Result<(Table, Vec<u32>)> {
    let mut doubles: HashMap<&[Code], u32> = HashMap::new();
    let rows = 0..table.rows() as u32;
    rows.clone().filter(|&row| table.is_member(row)).for_each(|row| *doubles.entry(table.row(row)).or_default() += 1);
    let stays = |row: &u32| {
        if table.is_member(*row) {
            return true;
        }
        match doubles.get_mut(table.row(*row)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        }
    };
    let staying: Vec<u32> = rows.filter(stays).collect();
    let strangers: u64 = doubles.values().map(|&left| u64::from(left)).sum();
    if strangers > 0 {
        return Err(Error::Input(format!(
            "{strangers} rows of the source, or more, have quasi-identifiers that the public table does not hold (often \
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
    use super::*;
    use crate::domain::{Axis, Shape};

    fn table(rows: &[(Code, bool)]) -> Table {
        let mut table = Table::new([Axis::new("x", Shape::Line { span: 9 })], rows.iter().map(|row| row.0).collect());
        table.members = Some(rows.iter().map(|row| row.1).collect());
        table
    }

    #[test]
    fn every_member_takes_the_place_of_one_public_row() {
        let given = table(&[(3, false), (3, true), (4, false), (3, false), (4, true), (5, false)]);
        let (kept, order) = without_doubles(given, vec![10, 11, 12, 13, 14, 15]).unwrap();
        assert_eq!(kept.codes, [3, 3, 4, 5]);
        assert_eq!(kept.members, Some(vec![true, false, true, false]));
        assert_eq!(order, [11, 13, 14, 15]);
    }

    #[test]
    fn members_who_are_not_public_are_refused() {
        let given = table(&[(3, false), (3, true), (3, true), (4, true)]);
        let error = without_doubles(given, vec![0, 1, 2, 3]).unwrap_err();
        assert!(error.to_string().starts_with("2 rows of the source"), "{error}");
    }
}
