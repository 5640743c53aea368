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

pub(crate) mod assign_cell;
mod cell;
mod dataframe;
mod exec;
mod extent;
mod labels;
mod logical;
mod measure;
mod members;
mod memory;
mod params;
mod planner;
mod planted;
pub(crate) mod policies;
mod sql;
mod stream;
mod table;
#[cfg(test)]
mod tests;

#[cfg(feature = "cluster")]
pub(crate) use assign_cell::ASSIGN_CELL;
pub(crate) use cell::publish_together;
pub use dataframe::{AnonymizeExt, AnonymizeSessionExt, register};
pub(crate) use exec::AnonymizeExec;
pub(crate) use logical::Anonymize;
pub(crate) use logical::survey_plan;
pub(crate) use memory::{cell_rows, fitting_partitions};
pub(crate) use params::AnonymizeParams;
pub use planner::{AnonymizePlanner, AnonymizeQueryPlanner};
pub use policies::{PolicyRegistry, register_policy};
pub use table::AnonymizedTable;

/// Name of the column that carries the cell through exchange and sort. It never leaves the operator.
pub(crate) const CELL_COLUMN: &str = "__throng_cell";
