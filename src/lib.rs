//! Throng anonymises large tables: every row leaves in a throng of at least k.
//!
//! It splits a dataset by medians into cells, groups the rows of every cell so that each group holds at least k people
//! and meets its other privacy rules, generalises the quasi-identifiers of each group, and writes verified Parquet.
//! It runs as a batch job around a DataFusion operator ([`release`], the `throng` command) or as that operator inside
//! somebody else's plan ([`operator`]).
//!
//! The rooms, in the way of the data:
//!
//! | module | what it does |
//! |---|---|
//! | [`job`] | the job file: source, sink, columns, rules, method; [`job::Policy`] is the part an embedder needs |
//! | [`hierarchy`] | how values generalise: trees, ladders, calendars, masks |
//! | [`survey`] | pass 1: domains, a sample, tuned parameters, the tree of cells |
//! | [`encode`] | Arrow columns to codes |
//! | [`domain`] | codes, axes, covers: what the algorithms see |
//! | [`partition`] | median splits: cells and subspaces |
//! | [`method`] | grouping methods, behind one trait |
//! | [`privacy`] | rules, behind one trait |
//! | [`permutation`] | published forms that permute instead of generalising |
//! | [`recode`] | groups to published columns |
//! | [`measure`] | information loss, protection, risk |
//! | [`operator`] | the DataFusion node, its planner, DataFrame and SQL |
//! | [`release`] | stage, verify, commit |
//! | [`attack`] | what an adversary could do with a release |
//! | [`report`] | a release as one page |
//! | [`profile`] | what an unknown dataset looks like, and a job for it |
//! | [`generate`] | a synthetic census |
//!
//! Guides, from the first job to the threat model, are in [`guide`].
//!
//! # Example
//!
//! ```
//! use std::path::Path;
//!
//! use datafusion::prelude::SessionContext;
//! use throng::job::Policy;
//! use throng::operator::{AnonymizeExt, register};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = SessionContext::new();
//! register(&context)?;
//! let people = context.sql("SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?;
//! let policy = Policy::from_table(
//!     toml::toml! {
//!         privacy.k = 5
//!         columns.age.role = "quasi"
//!         columns.ward.role = "sensitive"
//!     },
//!     Path::new("."),
//! )?;
//! let released = people.anonymize(&policy)?.collect().await?;
//! let rows: usize = released.iter().map(|batch| batch.num_rows()).sum();
//! assert_eq!(rows, 60);
//! # Ok(())
//! # }
//! ```

pub mod attack;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod domain;
pub mod encode;
pub mod error;
pub mod generate;
pub mod guide;
pub mod hierarchy;
pub mod job;
pub mod measure;
pub mod method;
pub mod operator;
pub mod partition;
pub mod permutation;
pub mod privacy;
pub mod profile;
pub mod recode;
pub mod release;
pub mod report;
pub mod survey;
mod wide;
