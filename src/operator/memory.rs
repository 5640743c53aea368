//! How much memory a cell needs, and how large cells may be under a limit.
//!
//! A cell cannot spill: its rows, their codes and its published rows are in memory together. So a share of the limit
//! is set aside for cells before the sort below can take it, and cells are made no larger than fits. The size of a
//! cell follows from the limit and the schema alone, never from the number of partitions: it decides the groups.

use datafusion::arrow::datatypes::{DataType, Schema};

use crate::survey::CELL_ROWS;

/// A cell needs this many times its input while it is processed: its rows, their codes, and the published rows.
pub(crate) const WORKING_FACTOR: usize = 3;

/// The part of the limit that one cell may take.
const SHARE_OF_A_CELL: usize = 6;

/// Rows of a cell under a memory limit: a power of two, at most [`CELL_ROWS`].
pub(crate) fn cell_rows(schema: &Schema, limit: Option<usize>) -> usize {
    let Some(limit) = limit else { return CELL_ROWS };
    let fitting = limit / SHARE_OF_A_CELL / (WORKING_FACTOR * row_width(schema));
    let power = 1_usize << fitting.max(1).ilog2();
    power.clamp(1 << 10, CELL_ROWS)
}

/// Memory to set aside for one cell of `rows` rows.
pub(crate) fn cell_memory(schema: &Schema, rows: usize) -> usize {
    WORKING_FACTOR * rows * row_width(schema)
}

/// The part of the limit that may go to cells which are gathered while others are worked on.
const SHARE_AHEAD: usize = 8;

/// Whether a limit has room for one more cell of `rows` rows in each partition.
pub(crate) fn fits_ahead(schema: &Schema, rows: usize, partitions: usize, limit: usize) -> bool {
    cell_memory(schema, rows).saturating_mul(partitions) <= limit / SHARE_AHEAD
}

/// Partitions that a limit has room for: half of it is for cells, the other half for exchange and sort.
pub(crate) fn fitting_partitions(schema: &Schema, limit: usize, wanted: usize) -> usize {
    let cell = cell_memory(schema, cell_rows(schema, Some(limit)));
    (limit / 2 / cell.max(1)).clamp(1, wanted)
}

/// Bytes of a row, estimated from types; text and nested values are estimated generously.
fn row_width(schema: &Schema) -> usize {
    schema.fields().iter().map(|field| type_width(field.data_type())).sum::<usize>().max(1)
}

fn type_width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean | DataType::Null => 1,
        DataType::Struct(fields) => fields.iter().map(|field| type_width(field.data_type())).sum(),
        DataType::Dictionary(keys, _) => type_width(keys) + 4,
        fixed => fixed.primitive_width().unwrap_or(32),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;

    use super::*;

    fn census() -> Schema {
        let text = |name: &str| Field::new(name, DataType::Utf8View, true);
        let mut fields: Vec<Field> = ["a", "b", "c", "d", "e", "f"].map(text).to_vec();
        fields.push(Field::new("age", DataType::Int32, false));
        Schema::new(fields)
    }

    #[test]
    fn cells_shrink_with_the_limit_only() {
        assert_eq!(cell_rows(&census(), None), CELL_ROWS);
        assert_eq!(cell_rows(&census(), Some(1 << 30)), CELL_ROWS);
        assert_eq!(cell_rows(&census(), Some(1 << 27)), 1 << 15);
        assert_eq!(cell_rows(&census(), Some(1)), 1 << 10);
    }

    #[test]
    fn few_partitions_fit_a_small_limit() {
        assert_eq!(fitting_partitions(&census(), 1 << 27, 8), 3);
        assert_eq!(fitting_partitions(&census(), 1 << 33, 8), 8);
    }

    #[test]
    fn only_a_large_limit_lets_gather_ahead() {
        let rows = cell_rows(&census(), Some(1 << 30));
        assert!(!fits_ahead(&census(), rows, 2, 1 << 30));
        assert!(fits_ahead(&census(), rows, 2, 1 << 31));
        assert!(!fits_ahead(&census(), rows, 8, 1 << 31));
    }
}
