//! What a DataFusion session gets: the planner of the anonymising nodes, `anonymize` in SQL and over tables, and methods of
//! DataFrames.

mod dataframe;
mod planner;
mod sql;
mod table;

pub use dataframe::{AnonymizeExt, AnonymizeSessionExt, register};
pub use planner::{AnonymizePlanner, AnonymizeQueryPlanner};
pub use table::AnonymizedTable;
