//! Throng anonymises large tables: every row leaves in a throng of at least k.
//!
//! It splits a dataset by medians into cells, groups the rows of every cell so that each group holds at least k of them
//! (or k people, where a row is not a person) and meets its other privacy rules, generalises the quasi-identifiers of each
//! group, and writes verified Parquet.
//! It runs as a batch job around a DataFusion operator ([`release`], the `throng` command) or as that operator inside
//! somebody else's plan ([`operator`]).
//!
//! The rooms; each uses those before it only:
//!
//! | module | what it does |
//! |---|---|
//! | [`error`] | failures by who can mend them, and problems of a policy |
//! | [`secret`] | the key of a run, all randomness that comes from it, pseudonyms |
//! | [`storage`] | object stores, locations, uploads, credentials |
//! | [`policy`] | the job file: source, sink, columns, rules, method; [`policy::Policy`] is the part an embedder needs |
//! | [`binding`] | a policy laid over the columns of a table |
//! | [`source`] | what is read: Parquet, CSV, SQL, Delta, public tables |
//! | [`encode`] | Arrow columns to codes |
//! | [`survey`] | pass 1: domains, a sample, tuned parameters, the tree of cells |
//! | [`recode`] | groups to published columns, identifiers to pseudonyms |
//! | [`operator`] | the DataFusion node, its planner, DataFrame and SQL |
//! | [`codec`] | plans as bytes, for other processes |
//! | [`mod@write`] | published order, Parquet files |
//! | [`published`] | published values, read back exactly |
//! | [`verify`] | what was published, read back and judged by a way of its own |
//! | [`audit`] | attacks on published files |
//! | [`series`] | releases over time: the private ledger, cohorts that stay, come and leave |
//! | [`release`] | a run from start to end: stage, verify, commit |
//! | [`explore`] | what an unknown dataset looks like, a job for it, trials of settings |
//! | [`report`] | a release as one page |
//! | [`generate`] | a synthetic census |
//!
//! The mathematics, free of DataFusion, is in [`throng_core`].
//!
//! Guides, from the first job to the threat model, are in [`guide`].
//!
//! # Example
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use throng::operator::{AnonymizeExt, register};
//! use throng::policy::{Column, HierarchySpec, LDiversity, Policy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = SessionContext::new();
//! register(&context)?;
//! let people = context.sql("SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?;
//! let policy = Policy::builder(5)
//!     .column("age", Column::quasi().with_hierarchy(HierarchySpec::widths([5.0, 10.0, 20.0])))
//!     .column("ward", Column::sensitive())
//!     .rule(LDiversity::distinct("ward", 3))
//!     .build()?;
//! let released = people.anonymize(&policy)?.collect().await?;
//! let rows: usize = released.iter().map(|batch| batch.num_rows()).sum();
//! assert_eq!(rows, 60);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | the operator, SQL, and whole runs on local files |
//! | `aws`, `azure`, `gcp` | object stores |
//! | `delta` | Delta Lake as source and sink |
//! | `cluster` | Ballista: the same job on many machines |
//! | `cli` | the `throng` command |
//! | `otel` | OpenTelemetry export for the command |

#[cfg(feature = "cli")]
mod arguments;
pub mod audit;
pub mod binding;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod codec;
pub mod encode;
pub mod error;
pub mod explore;
pub mod generate;
pub mod guide;
pub mod ledger;
pub mod operator;
mod plan;
pub mod policy;
pub mod published;
pub mod recode;
pub mod release;
pub mod report;
pub mod secret;
pub mod series;
pub mod source;
pub mod storage;
pub mod survey;
#[cfg(feature = "cli")]
pub mod telemetry;
#[cfg(feature = "cli")]
mod terminal;
pub mod verify;
pub mod write;

pub use error::{Error, ErrorKind, Result};

use throng_core::{
    attack, auto, bound, dependency, faults, grouping, hierarchy, measure, methods, model, permutation, privacy, simd,
};
