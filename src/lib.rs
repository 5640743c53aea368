//! Throng anonymises large tables of people: every row leaves in a throng of at least k.
//!
//! It groups rows that are alike, generalises the columns that could point at a person (age, postcode, occupation) as far
//! as the rules require and no further, and leaves the values worth studying unchanged. Tables may be larger than memory:
//! the work is a DataFusion operator that sorts and spills, on all cores or on a cluster.
//!
//! There are two ways to use it as a library:
//!
//! 1. **The operator** in a DataFusion session: [`AnonymizeExt::anonymize`] on a DataFrame, `anonymize(...)` in SQL, or an
//!    [`AnonymizedTable`] in a catalog. What comes out are anonymised rows, inside a plan of your own.
//! 2. **A whole [`Run`]** from a source to a sink: files on local disks or object stores that are written, read back,
//!    verified by code that shares nothing with the grouping, and made visible in one atomic step.
//!
//! Both take a [`Policy`]: what each column is, what every published class must satisfy, and how rows are grouped. The
//! `throng` command (feature `cli`) does the second from a job file, with attacks, reports and trials around it.
//!
//! # Example
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use throng::{AnonymizeExt, Column, HierarchySpec, LDiversity, Policy, register};
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
//! # What is where
//!
//! | | |
//! |---|---|
//! | [`Policy`], [`PolicyBuilder`], [`Column`], [`HierarchySpec`], [`MethodSpec`] | a policy from typed parts |
//! | [`columns`], [`rules`] | what else can be said of columns and classes |
//! | [`register`], [`AnonymizeExt`], [`AnonymizeSessionExt`], [`AnonymizedTable`] | the operator in a session |
//! | [`planning`] | sessions that bring a planner of their own, plans that travel |
//! | [`Job`], [`Run`], [`RunOptions`], [`Outcome`], [`Manifest`] | whole runs |
//! | [`releases`] | what lies in a sink: listing, verifying, rolling back, and object stores of your own |
//! | [`Error`], [`ErrorKind`] | failures by who can mend them |
//! | [`guide`] | a page each about job files, hierarchies, rules, methods, operations, embedding, the threat model |
//!
//! The mathematics (methods, measures, rules, attacks), free of DataFusion, is the crate [`throng_core`].
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
//!
//! # Where next
//!
//! [`guide::embedding`] for programs, [`guide::first_job`] for the command, [`guide::choosing`] for k and the rules, and
//! [`guide::threats`] before anything is published.

#![warn(unreachable_pub)]
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports, reason = "the command line alone uses it"))]

mod agreement;
#[cfg(feature = "cli")]
mod arguments;
mod audit;
mod binding;
#[cfg(feature = "cli")]
mod bindings;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cluster")]
mod cluster;
mod codec;
mod encode;
mod engine;
mod error;
#[cfg(feature = "cli")]
mod explore;
mod extension;
#[cfg(feature = "cli")]
mod generate;
pub mod guide;
mod ledger;
mod operator;
mod plan;
mod policy;
mod published;
mod reading;
mod recode;
mod release;
#[cfg(feature = "cli")]
mod report;
mod secret;
mod series;
mod source;
mod storage;
mod survey;
#[cfg(feature = "cli")]
mod telemetry;
#[cfg(feature = "cli")]
mod terminal;
mod verify;
mod windows;
mod write;

#[cfg(feature = "cluster")]
pub use cluster::Cluster;
pub use engine::SessionOptions;
pub use error::{Error, ErrorKind, Problem, Result, Severity};
pub use extension::{AnonymizeExt, AnonymizeSessionExt, AnonymizedTable, register};
pub use operator::register_policy;
pub use policy::{
    Column, Form, HierarchySpec, Job, LDiversity, MethodOption, MethodSpec, Policy, PolicyBuilder, Role, Window, check,
};
pub use release::{Manifest, Outcome, Run, RunOptions};
pub use throng_core::auto::Effort;

/// What can be said of a column beside its role.
pub mod columns {
    pub use crate::policy::{
        CalendarUnit, Constant, Encoding, IdentifierAction, Nulls, Pseudonym, Publish, Side, SliceSpec, Unknown,
    };
    pub use throng_core::hierarchy::InlineTree;
}

/// What every published class must satisfy beside k, and what is measured of it.
///
/// ```
/// use throng::rules::{Distance, TCloseness};
/// use throng::{Column, LDiversity, Policy};
///
/// let closeness = TCloseness { column: "income".into(), t: 0.2, distance: Some(Distance::Ordered) };
/// let policy = Policy::builder(10)
///     .column("age", Column::quasi())
///     .columns(["diagnosis", "income"], Column::sensitive())
///     .rule(LDiversity::distinct("diagnosis", 3))
///     .rule(closeness)
///     .build()?;
/// assert_eq!(policy.rules().len(), 2);
/// # Ok::<(), throng::Error>(())
/// ```
pub mod rules {
    pub use crate::policy::{
        Dependency, Diversity, Inference, ListedRange, MeasureSpec, Presence, PrivacyRule, Queries, RangeDiversity,
        RangeOf, Ranges, Values,
    };
    pub use throng_core::privacy::alpha_k::AlphaK;
    pub use throng_core::privacy::beta_likeness::{BetaLikeness, Likeness};
    pub use throng_core::privacy::delta_disclosure::DeltaDisclosure;
    pub use throng_core::privacy::guarding::Guarding;
    pub use throng_core::privacy::k_e::KE;
    pub use throng_core::privacy::p_sensitive::PSensitive;
    pub use throng_core::privacy::t_closeness::{Distance, TCloseness};
}

/// For programs that compose sessions by hand, or send plans to other processes.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::physical_planner::DefaultPhysicalPlanner;
/// use throng::planning::{AnonymizePlanner, AnonymizeQueryPlanner};
///
/// // A host that owns its planner adds one more extension; others take the planner as a whole.
/// let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AnonymizePlanner)]);
/// let state = SessionStateBuilder::new().with_default_features();
/// let state = state.with_query_planner(Arc::new(AnonymizeQueryPlanner::wrapping(None))).build();
/// # drop((planner, state));
/// ```
pub mod planning {
    pub use crate::codec::AnonymizeCodec;
    pub use crate::extension::{AnonymizePlanner, AnonymizeQueryPlanner};
    pub use crate::operator::PolicyRegistry;
}

/// What lies in a sink, and how it is reached.
///
/// ```
/// use std::path::Path;
///
/// use throng::releases::{Location, latest_run, releases};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), throng::Error> {
/// # let folder = tempfile::tempdir()?;
/// let sink = Location::open(folder.path(), "published")?;
/// assert_eq!(releases(&sink).await?.len(), 0);
/// assert_eq!(latest_run(&sink).await?, None);
/// # Ok(())
/// # }
/// ```
pub mod releases {
    pub use crate::agreement::verify_release;
    pub use crate::audit::PopulationRisk;
    pub use crate::engine::{Phase, SpillFolder};
    pub use crate::ledger::manifest::{DependencyScore, Inferred, InputTable};
    pub use crate::policy::SeriesMode;
    pub use crate::release::{
        CellRows, ClassCounts, OutputFile, PeopleCounts, QueryScores, ReleaseCheck, Scores, SeriesCounts,
        SeriesRelease, Verification, collect_garbage, latest_run, releases, rollback,
    };
    pub use crate::storage::{Location, StoreOptions, Stores, Timeout};
    pub use crate::verify::Finding;
}

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod internals;

use throng_core::{
    attack, auto, bound, dependency, faults, grouping, hierarchy, measure, methods, model, permutation, privacy, simd,
};
