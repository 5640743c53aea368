//! Anonymising inside another program.
//!
//! The operator works in any DataFusion session. `register` teaches a session to plan it; after that it is one call
//! on a DataFrame, or a relation in SQL.
//!
//! ```
//! use std::path::Path;
//!
//! use datafusion::prelude::SessionContext;
//! use throng::policy::Policy;
//! use throng::operator::{AnonymizeExt, register, register_policy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = SessionContext::new();
//! register(&context)?;
//! context.sql("CREATE VIEW people AS SELECT value AS age, value % 7 AS ward FROM generate_series(20, 79)").await?.collect().await?;
//!
//! // On a DataFrame, by a policy from anywhere: here written out.
//! let policy = Policy::from_table(
//!     toml::toml! {
//!         privacy.k = 5
//!         columns.age = { role = "quasi", hierarchy = { widths = [5, 10, 20] } }
//!         columns.ward = { role = "sensitive" }
//!     },
//!     Path::new("."),
//! )?;
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
//! its machine: [`PolicyRegistry::allow_files_below`](crate::operator::PolicyRegistry::allow_files_below) opens a folder.
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
//! # What is left to the program
//!
//! What the program gets are grouped rows. Reading back, verifying and committing are those of a release
//! ([`crate::release`]); a program that publishes by itself is responsible for them. More suppression than the policy
//! allows fails the query when its last row has been read, so collect before you publish.
//!
//! `EXPLAIN` reads no data and shows no statistics of the columns below the operator; `EXPLAIN ANALYZE` shows cells, rows of the smallest and of the largest, groups, suppressed rows
//! and times of the operator, which count all rows: it is for those who may read the table.
