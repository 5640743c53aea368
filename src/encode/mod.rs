//! Arrow columns to codes: the way from a batch of real values to the [`Table`](crate::model::Table) that the
//! grouping methods see.
//!
//! A [`ColumnEncoder`] belongs to one quasi-identifier. It is made from the column's policy and from what the survey found,
//! and turns values into order-preserving codes: positions on a line for numbers and points in time, leaf numbers for
//! values with a hierarchy, places in a sorted word list for text without one.

mod exact;
pub(crate) mod facts;
mod hashes;
mod memory;
mod nulls;
mod position;
mod quasi;
mod reference;
mod sensitive;
mod words;

pub use crate::binding::{is_number, is_time};
pub use exact::{Distinct, days, digits, stored_digits};
pub use facts::ColumnStats;
pub use hashes::{CLASS_SEEDS, class_hashes, row_hashes};
pub use memory::{batch_size, compact};
pub use nulls::{present, without_nulls};
pub use position::{is_whole, positions};
pub use quasi::{ColumnEncoder, MAX_CODES};
pub use reference::{MAX_VALUES, Reference};
pub use sensitive::{SensitiveDomain, encode_sensitive};
pub use words::{Words, map_text, text};
