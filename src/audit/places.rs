//! Published values of a quasi-identifier beside original ones: where both lie, so that a tree of boxes finds the classes or
//! buckets that may hold a person, and whether they do, which exact values decide.

use datafusion::arrow::array::{Array, ArrayRef};

use crate::binding::QuasiColumn;
use crate::error::Result;
use crate::published::cover::{Original, Published};

/// Published values of one quasi-identifier, and where they lie.
#[derive(Debug)]
pub(crate) struct Column {
    quasi: QuasiColumn,
    /// Where everything lies that a published value covers.
    pub(crate) extents: Vec<Extent>,
    /// What is published; `None` if values are published unchanged, and compared elsewhere.
    published: Option<Published>,
}

/// First and last place, included.
pub(crate) type Extent = (f64, f64);

/// Original values of a batch.
#[derive(Debug)]
pub(crate) struct Values {
    /// Where they lie.
    pub(crate) at: Vec<f64>,
    original: Original,
}

impl Column {
    /// Reads published values that generalise.
    pub(crate) fn read_generalised(quasi: &QuasiColumn, columns: &[ArrayRef]) -> Result<Self> {
        let published = Published::read_columns(quasi, columns)?;
        let rows = columns.first().map_or(0, |column| column.len());
        let extents = (0..rows).map(|row| published.extent(row)).collect();
        Ok(Self { quasi: quasi.clone(), extents, published: Some(published) })
    }

    /// Reads values that are published as they were: each lies where it is.
    pub(crate) fn read_plain(quasi: &QuasiColumn, column: &ArrayRef) -> Result<Self> {
        let mut found = Self { quasi: quasi.clone(), extents: Vec::new(), published: None };
        found.extents = found.read_values(column)?.at.into_iter().map(|at| (at, at)).collect();
        Ok(found)
    }

    /// Reads the original values of a batch.
    pub(crate) fn read_values(&self, column: &ArrayRef) -> Result<Values> {
        let original = Original::read_column(&self.quasi, column)?;
        let at = (0..column.len()).map(|row| original.value_place(row, &self.quasi)).collect();
        Ok(Values { at, original })
    }

    /// Whether a published value covers an original one.
    pub(crate) fn covers(&self, published: usize, values: &Values, row: usize) -> bool {
        self.published.as_ref().is_none_or(|all| all.covers(published, &values.original, row))
    }
}
