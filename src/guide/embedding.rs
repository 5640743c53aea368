//! Embedding Throng in another program.
//!
//! The operator works in any DataFusion session. `register` adds it to a session; after that it is one call
//! on a DataFrame, or a relation in SQL.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use throng::{AnonymizeExt, Column, HierarchySpec, Policy, register, register_policy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = SessionContext::new();
//! register(&context)?;
//! context.sql("CREATE VIEW people AS SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?.collect().await?;
//!
//! // On a DataFrame.
//! let policy = Policy::builder(5)
//!     .column("age", Column::quasi().with_hierarchy(HierarchySpec::widths([5.0, 10.0, 20.0])))
//!     .column("ward", Column::sensitive())
//!     .build()?;
//! let released = context.table("people").await?.anonymize(&policy)?;
//! assert_eq!(released.clone().count().await?, 60);
//!
//! // In SQL by its name: queries open no policy files, unless the program allows a folder of them.
//! register_policy(&context, "wards", policy)?;
//! let released = context.sql("SELECT * FROM anonymize((SELECT * FROM people), 'wards')").await?;
//! assert_eq!(released.count().await?, 60);
//!
//! // Or written out. What stands above it never changes the groups.
//! let query = "SELECT count(*) AS n FROM anonymize((SELECT * FROM people), k => 5, quasi => ['age'], sensitive => ['ward'])";
//! assert_eq!(context.sql(query).await?.collect().await?[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! A policy is checked when it is made and cannot be changed afterwards; identifiers are replaced on every way into the
//! operator. Whoever may write queries for your program may name the policies that it has registered, and nothing else of
//! its machine: [`PolicyRegistry::allow_files_below`](crate::planning::PolicyRegistry::allow_files_below) opens a folder.
//!
//! # Beside other extensions
//!
//! A session that is built step by step takes Throng as one step. It wraps the query planner that the session has, in
//! whatever order extensions are added, so federation, tracing and Delta tables work beside it:
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//! use throng::{AnonymizeSessionExt, Column, Policy, register_policy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let state = SessionStateBuilder::new().with_default_features().with_anonymize().build();
//! let context = SessionContext::new_with_state(state);
//! register_policy(&context, "tens", Policy::builder(10).column("age", Column::quasi()).build()?)?;
//! # Ok(())
//! # }
//! ```
//!
//! # The key of a session
//!
//! Grouping makes random choices from a secret key. If every query drew its own, somebody could ask for the same view again
//! and again and intersect the answers: people who share a group in one of them rarely do in the next. So a session has one
//! key for every policy, drawn when the policy is first used and forgotten with the session. The same rows under the same
//! policy give the same groups, by SQL, by a view over it, or by a DataFrame. Another session gives other groups; a
//! policy with `method.key-env` gives the same in all of them.
//!
//! This does not cover rows that differ: `anonymize((SELECT ... WHERE age < 50), ...)` and the same with 51 are two releases
//! of nearly the same people. Let those whom you do not trust with the table query a view over `anonymize`, not call it
//! themselves; what stands above the view never changes its groups. A table that changes under a view is a new release
//! each time it is read.
//!
//! # Responsibilities of the program
//!
//! The program receives grouped rows. Reading back, verifying and committing are left to a release
//! ([`Run`](crate::Run)); a program that publishes by itself is responsible for them. More suppression than the policy
//! allows fails the query when its last row has been read, so collect before you publish.
//!
//! `EXPLAIN` reads no data and shows no statistics of the columns below the operator; `EXPLAIN ANALYZE` shows cells, rows of the smallest and of the largest, groups, suppressed rows
//! and times of the operator, which count all rows: it is for those who may read the table.
