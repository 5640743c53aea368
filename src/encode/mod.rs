//! Arrow columns to codes: the way from a batch of real values to the [`Table`](crate::model::Table) that the
//! grouping methods see.
//!
//! A [`ColumnEncoder`] belongs to one quasi-identifier. It is made from the column's policy and from what the survey found,
//! and turns values into order-preserving codes: positions on a line for numbers and points in time, leaf numbers for
//! values with a hierarchy, places in a sorted word list for text without one.

pub(crate) mod column_stats;
mod dictionary;
mod exact;
mod hashes;
mod memory;
mod nulls;
mod position;
mod quasi;
mod reference;
mod sensitive;

pub(crate) use column_stats::ColumnStats;
pub(crate) use dictionary::{Dictionary, map_text, to_text};
pub(crate) use exact::{Distinct, day_numbers, decimal_digits, stored_digits};
pub(crate) use hashes::class_hashes;
pub(crate) use hashes::row_hashes;
pub(crate) use memory::{batch_size, compact_batch};
pub(crate) use nulls::{rows_present, without_nulls};
pub(crate) use position::{is_whole, to_ordinals};
pub(crate) use quasi::{ColumnEncoder, MAX_CODES};
pub(crate) use reference::Reference;
pub(crate) use sensitive::{SensitiveDomain, encode_sensitive};
