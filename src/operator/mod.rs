//! The DataFusion operator: a logical node, and the plan that does the work.
//!
//! ```text
//! AnonymizeExec                      one cell in memory at a time
//!   SortExec  cell                   inserted by DataFusion, because AnonymizeExec declares its input's order
//!     RepartitionExec  Hash(cell)    likewise, because it declares its input's distribution
//!       ProjectionExec  *, assign_cell(quasi...) AS cell
//!         <input>
//!   <survey: quasi-identifiers and sensitive columns of the same input>
//! ```
//!
//! A policy with a window has a node of its own, over rows that need not end: see `windows`. How a session comes to plan these
//! nodes is in `extension`.
//!
//! The survey runs when the plan is first polled, unless it is known already; `EXPLAIN` therefore reads nothing.
//! Filters, limits and projections above the node never reach below it: they would change the groups.

pub(crate) mod assign_cell;
pub(crate) mod cell;
mod exec;
mod extent;
mod labels;
mod logical;
mod measure;
mod members;
pub(crate) mod memory;
mod params;
mod planted;
pub(crate) mod policies;
mod stream;
#[cfg(test)]
mod tests;

#[cfg(feature = "cluster")]
pub(crate) use assign_cell::ASSIGN_CELL;
pub(crate) use cell::publish_together;
pub(crate) use exec::AnonymizeExec;
pub(crate) use logical::Anonymize;
pub(crate) use logical::survey_plan;
pub(crate) use memory::{cell_rows, fitting_partitions};
pub(crate) use params::AnonymizeParams;
pub use policies::{PolicyRegistry, register_policy};

/// Name of the column that carries the cell through exchange and sort. It never leaves the operator.
pub(crate) const CELL_COLUMN: &str = "__throng_cell";
