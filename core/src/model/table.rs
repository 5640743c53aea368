//! The encoded rows of one cell, and a grouping of them.

use std::sync::Arc;

use super::{Axis, Code, Cover, Sensitive};

/// Rows of one cell: codes row by row, and the sensitive columns beside them.
///
/// Rows stand in *canonical order*: sorted by a seeded hash of their content. It does not depend on how they arrived,
/// and it is a random order, so that "take a random row" means "take the next one".
#[derive(Debug, Clone)]
pub struct Table {
    /// The quasi-identifiers.
    pub axes: Arc<[Axis]>,
    /// Codes, `axes.len()` per row.
    pub codes: Vec<Code>,
    /// Sensitive columns that a rule, a method or a measure asks about.
    pub sensitive: Vec<Sensitive>,
    /// Who each row belongs to, when k counts people: equal numbers mean the same person.
    pub persons: Option<Vec<u32>>,
    /// Columns published as they are that a dependency names. Equal numbers mean equal values, in every cell.
    pub plain: Vec<Vec<u64>>,
    /// Which rows are in the private table, when the others are public rows that it must hide among: only these are
    /// published. Defaults to all of them.
    pub members: Option<Vec<bool>>,
}

impl Table {
    /// Creates a table without sensitive columns.
    pub fn new(axes: impl Into<Arc<[Axis]>>, codes: Vec<Code>) -> Self {
        let axes = axes.into();
        debug_assert_eq!(codes.len() % axes.len().max(1), 0);
        Self { axes, codes, sensitive: Vec::new(), persons: None, plain: Vec::new(), members: None }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len() / self.axes.len().max(1)
    }

    /// Codes of one row.
    pub fn row(&self, row: u32) -> &[Code] {
        let width = self.axes.len();
        &self.codes[row as usize * width..][..width]
    }

    /// Whether a row is published.
    pub fn is_member(&self, row: u32) -> bool {
        self.members.as_ref().is_none_or(|members| members[row as usize])
    }

    /// Those of some rows that are published.
    pub fn members_of<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        rows.iter().copied().filter(|&row| self.is_member(row))
    }

    /// A table of some rows of this one, in their order; a row may occur several times.
    pub fn with_rows(&self, rows: &[u32]) -> Self {
        let sensitive = self.sensitive.iter().map(|column| Sensitive {
            codes: rows.iter().map(|&row| column.codes[row as usize]).collect(),
            ..column.clone()
        });
        let plain = self.plain.iter().map(|column| rows.iter().map(|&row| column[row as usize]).collect());
        Self {
            axes: Arc::clone(&self.axes),
            codes: rows.iter().flat_map(|&row| self.row(row)).copied().collect(),
            sensitive: sensitive.collect(),
            persons: self.persons.as_ref().map(|persons| rows.iter().map(|&row| persons[row as usize]).collect()),
            plain: plain.collect(),
            members: self.members.as_ref().map(|members| rows.iter().map(|&row| members[row as usize]).collect()),
        }
    }

    /// Cover of some rows.
    pub fn cover(&self, rows: &[u32]) -> Cover {
        Cover::from_rows(&self.axes, rows.iter().map(|&row| self.row(row)))
    }
}

/// Groups of rows, flat: one index array and the ends of the groups in it; and the rows that are in no group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    rows: Vec<u32>,
    ends: Vec<u32>,
    /// Rows that no group took. After settling: the rows to suppress.
    pub left_over: Vec<u32>,
    /// Rows that the method itself suppresses, so that settling must not publish them.
    pub refused: Vec<u32>,
    /// Grouped rows that did not belong to their group when it was built: the method put them there when they were left over.
    pub assigned: Vec<u32>,
}

impl Grouping {
    /// A grouping with room for `rows` rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Adds a group.
    pub fn push(&mut self, rows: &[u32]) {
        self.rows.extend_from_slice(rows);
        self.ends.push(self.rows.len() as u32);
    }

    /// Adds the groups and left-overs of another grouping.
    pub fn append(&mut self, other: &Self) {
        let base = self.rows.len() as u32;
        self.rows.extend_from_slice(&other.rows);
        self.ends.extend(other.ends.iter().map(|end| base + end));
        self.left_over.extend_from_slice(&other.left_over);
        self.refused.extend_from_slice(&other.refused);
        self.assigned.extend_from_slice(&other.assigned);
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Rows of one group.
    pub fn group(&self, index: usize) -> &[u32] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.rows[start..self.ends[index] as usize]
    }

    /// All groups in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|index| self.group(index))
    }

    /// All grouped rows, group after group.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}
