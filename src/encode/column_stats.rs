//! What must be known of a column before its values can be coded.

use serde::{Deserialize, Serialize};

/// Statistics of one quasi-identifier, as the encoder needs them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ColumnStats {
    /// Numbers and points in time.
    Line {
        /// Smallest position.
        min: f64,
        /// Largest position.
        max: f64,
        /// Whether all positions are whole numbers.
        whole: bool,
        /// Rows without a value.
        nulls: u64,
        /// Whether more than one value occurs: different ones may share a position.
        varied: bool,
        /// Borders of a column whose intervals follow its quantiles, after a number that is none; else empty.
        quantiles: Vec<f64>,
    },
    /// Text in a hierarchy of levels.
    Leaves {
        /// Rows whose value the hierarchy does not know.
        unknown: u64,
        /// Rows without a value.
        nulls: u64,
        /// Whether more than one leaf occurs.
        varied: bool,
    },
    /// Text without one: all its values, or an even sample of them.
    Words {
        /// Sorted values.
        words: Vec<String>,
        /// Number of distinct values: exact when `words` holds all of them.
        distinct: u64,
        /// Rows without a value.
        nulls: u64,
    },
}
