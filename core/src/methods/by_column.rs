//! `by-column`: neighbours in the order of one quasi-identifier.

use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::entry::{Entry, Remark};
use crate::grouping::options::{Key, Kind};
use crate::model::{Grouping, Table};
use crate::privacy::Rules;

/// Catalogue entry.
pub const ENTRY: Entry = Entry::new("by-column", "Neighbours in the order of one column.", |setting| {
    Arc::new(ByColumn { column: setting.options.text(&COLUMN).map(str::to_owned) })
})
.options(&[COLUMN])
.check(|setting| match (setting.options.text(&COLUMN), &setting.quasi) {
    (Some(column), Some(quasi)) if quasi.iter().all(|name| name != column) => {
        vec![Remark::error("method.column", format!("`{column}` is not a quasi-identifier"), "name one, or omit it")]
    }
    _ => Vec::new(),
});

const COLUMN: Key = Key::new("column", "The column to sort by. Defaults to the first quasi-identifier.", Kind::Column);

/// Groups of k neighbours.
#[derive(Debug, Clone)]
pub struct ByColumn {
    column: Option<String>,
}

impl Method for ByColumn {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let named = |name: &String| cell.axes.iter().position(|axis| axis.name == *name);
        let axis = self.column.as_ref().and_then(named).unwrap_or(0);
        let mut rows: Vec<u32> = (0..cell.rows() as u32).collect();
        rows.sort_by_key(|&row| (cell.row(row)[axis], row));
        let mut grouping = Grouping::with_capacity(rows.len());
        let groups = rows.chunks_exact(rules.k.max(1));
        grouping.left_over.extend_from_slice(groups.remainder());
        groups.for_each(|group| grouping.push(group));
        grouping
    }
}
