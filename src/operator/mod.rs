//! The DataFusion operator: a logical node, its planner, and the plan that does the work.
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
//! The survey runs when the plan is first polled, unless it is known already; `EXPLAIN` therefore reads nothing.
//! Filters, limits and projections above the node never reach below it: they would change the groups.

mod assign_cell;
mod blueprint;
mod cell;
mod codec;
mod dataframe;
mod exec;
mod identifiers;
mod labels;
mod logical;
mod members;
mod memory;
mod planner;
mod sql;
mod stream;
#[cfg(test)]
mod tests;

#[cfg(feature = "cluster")]
pub(crate) use assign_cell::ASSIGN_CELL;
pub use blueprint::Blueprint;
pub use codec::AnonymizeCodec;
#[cfg(feature = "cluster")]
pub(crate) use codec::{decode_treatment, encode_treatment};
pub use dataframe::{AnonymizeExt, register};
pub use exec::AnonymizeExec;
pub(crate) use identifiers::treat;
pub use logical::Anonymize;
pub(crate) use logical::survey_plan;
pub use memory::{cell_rows, fitting_partitions};
pub use planner::{AnonymizePlanner, AnonymizeQueryPlanner};
pub use sql::AnonymizeRelation;

/// Name of the column that carries the cell through exchange and sort. It never leaves the operator.
pub const CELL_COLUMN: &str = "__throng_cell";
