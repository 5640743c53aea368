//! The same job on many machines: Apache DataFusion Ballista executes the two passes of a run.
//!
//! ```text
//! driver     opens, merges the survey and the verdict, commits      throng run job.toml --cluster df://host:50050
//! scheduler  cuts plans into stages, hands out tasks                throng scheduler
//! executor   surveys, shuffles, groups, writes its own files, and
//!            counts and judges the classes of those that it is given throng executor
//! ```
//!
//! Each pass is one plan that is sent to the scheduler. The survey has one stage: every task emits its mergeable state,
//! a few rows. Pass 2 has two: scan and shuffle by cell, then sort, group and write, where every task emits one row per
//! file and its measures. The files are then read back and judged by plans of their own (`crate::verify`), whose tasks emit
//! one row each: how many classes break each rule, how many rows are out of order. Checksums, presence and the chase of
//! dependencies stay with the driver. No stage gathers the table in one task. What is published is decided by the driver alone: it
//! lists the files that the tasks have reported and removes all others, so a task that ran twice adds nothing.
//!
//! [`driver`] is the engine that a run uses; [`codec`] puts our nodes on the wire, [`survey`] and [`guard`] are nodes of
//! such plans; [`store_config`] sends executors the options of object stores; [`client`] talks to the scheduler and
//! [`progress`] watches it; [`scheduler`] and [`executor`] are the two roles, and `slots` corrects its slot count.

pub(crate) mod client;
pub(crate) mod codec;
pub(crate) mod driver;
pub(crate) mod executor;
pub(crate) mod guard;
pub(crate) mod progress;
pub(crate) mod scheduler;
mod slots;
pub(crate) mod store_config;
pub(crate) mod survey;

pub use driver::Cluster;
pub(crate) use executor::Executor;
pub(crate) use scheduler::Scheduler;

/// Maximum size of a message in the cluster. Plans carry hierarchies and dictionaries of columns, and must fit.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
