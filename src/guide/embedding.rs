//! Anonymising inside another program.
//!
//! The operator works in any DataFusion session. `register` teaches a session to plan it; after that it is one call
//! on a DataFrame, or a relation in SQL.
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
//! // In SQL, where what stands above it never changes the groups.
//! let query = "SELECT count(*) AS n FROM anonymize((SELECT * FROM people), k => 5, quasi => ['age'], sensitive => ['ward'])";
//! assert_eq!(context.sql(query).await?.collect().await?[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! What the program gets are grouped rows. Reading back, verifying and committing are those of a release
//! ([`crate::release`]); a program that publishes by itself is responsible for them. More suppression than the policy
//! allows fails the query when its last row has been read, so collect before you publish.
//!
//! `EXPLAIN` reads no data; `EXPLAIN ANALYZE` shows cells, rows of the smallest and of the largest, groups, suppressed rows
//! and times of the operator.
