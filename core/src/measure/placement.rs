//! How rows came into their published groups: by the method, by its handling of left-over rows, or by the repair that
//! makes groups meet the rules.
//!
//! A method whose parameters admit no group leaves every row over, and the repair then cuts them at medians. What is
//! published meets all rules, and is the work of another method; this is where that shows.

use serde::{Deserialize, Serialize};

use crate::model::Grouping;

/// Published rows by what put them into their group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// In a group that the method had built of them.
    pub method: u64,
    /// Left over first, then assigned to a group by the method.
    pub left_over: u64,
    /// Left over by the method and placed by the repair, or in a group that the repair has merged or cut.
    pub repair: u64,
}

/// The groups of a method before repair: what [`Placement`] compares with.
#[derive(Debug, Clone)]
pub struct BuiltGroups {
    /// The group of every row; none for rows left over.
    group_of: Vec<Option<u32>>,
    sizes: Vec<u32>,
    assigned: Vec<bool>,
    refused: Vec<u32>,
}

impl BuiltGroups {
    /// Remembers the groups of a table with so many rows.
    pub fn new(grouping: &Grouping, rows: usize) -> Self {
        let (mut group_of, mut assigned) = (vec![None; rows], vec![false; rows]);
        let mut sizes = Vec::with_capacity(grouping.len());
        for (number, group) in (0..).zip(grouping.iter()) {
            group.iter().for_each(|&row| group_of[row as usize] = Some(number));
            sizes.push(group.len() as u32);
        }
        grouping.assigned.iter().for_each(|&row| assigned[row as usize] = true);
        Self { group_of, sizes, assigned, refused: grouping.refused.clone() }
    }

    /// The rows that the method suppresses.
    pub fn refused(&self) -> &[u32] {
        &self.refused
    }
}

impl Placement {
    /// Counts the rows of the groups that repair has made of others.
    pub fn of_groups(built: &BuiltGroups, repaired: &Grouping) -> Self {
        let mut placement = Self::default();
        for group in repaired.iter() {
            let number = |row: u32| built.group_of[row as usize];
            let first = group.iter().find_map(|&row| number(row));
            let of_first = group.iter().filter(|&&row| number(row).is_some() && number(row) == first).count();
            let of_any = group.iter().filter(|&&row| number(row).is_some()).count();
            let whole = first.is_some_and(|first| built.sizes[first as usize] as usize == of_first);
            // A whole group of the method, and of no other; more rows may have joined it.
            let kept = whole && of_any == of_first;
            for &row in group {
                match number(row) {
                    Some(_) if kept && built.assigned[row as usize] => placement.left_over += 1,
                    Some(_) if kept => placement.method += 1,
                    _ => placement.repair += 1,
                }
            }
        }
        placement
    }

    /// Adds the rows of another part of the table.
    pub fn merge(&mut self, other: &Self) {
        self.method += other.method;
        self.left_over += other.left_over;
        self.repair += other.repair;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouping(groups: &[&[u32]]) -> Grouping {
        let mut grouping = Grouping::default();
        groups.iter().for_each(|group| grouping.push(group));
        grouping
    }

    #[test]
    fn rows_are_counted_by_what_placed_them() {
        let mut built = grouping(&[&[0, 1, 2], &[3, 4], &[5, 6, 7, 8]]);
        (built.assigned, built.left_over) = (vec![2], vec![9, 10]);
        let built = BuiltGroups::new(&built, 11);
        let count = |groups: &[&[u32]]| {
            let placement = Placement::of_groups(&built, &grouping(groups));
            (placement.method, placement.left_over, placement.repair)
        };
        assert_eq!(count(&[&[0, 1, 2], &[3, 4], &[5, 6, 7, 8]]), (8, 1, 0), "as they were built");
        assert_eq!(count(&[&[0, 1, 2, 9], &[3, 4], &[5, 6, 7, 8]]), (8, 1, 1), "one more has joined");
        assert_eq!(count(&[&[0, 1, 2, 3, 4], &[5, 6, 7, 8]]), (4, 0, 5), "two were merged");
        assert_eq!(count(&[&[0, 1, 2], &[3, 4], &[5, 6], &[7, 8]]), (4, 1, 4), "one was cut");
        assert_eq!(count(&[&[9, 10]]), (0, 0, 2), "the method had left them over");
        let mut both = Placement { method: 1, left_over: 2, repair: 3 };
        both.merge(&Placement { method: 10, left_over: 20, repair: 30 });
        assert_eq!(both, Placement { method: 11, left_over: 22, repair: 33 });
    }
}
