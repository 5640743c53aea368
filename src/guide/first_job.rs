//! A release in five minutes.
//!
//! All you need is Parquet. If you have none at hand, make some:
//!
//! ```sh
//! throng generate --rows 2000 --files 2 people
//! ```
//!
//! # 1. Look at it, and draft a job
//!
//! ```sh
//! throng profile people/ --write job.toml
//! ```
//!
//! prints every column with a guess of its role, and how many rows are unique in their quasi-identifiers as
//! they stand. `job.toml` is a complete job; hierarchies lie beside it, in `hierarchies/`. They list the values of
//! their columns, so treat them like the data.
//!
//! Read the job before you run it. Four roles decide everything:
//!
//! | role | meaning | published |
//! |---|---|---|
//! | `identifier` | points at one person on its own | not at all |
//! | `quasi` | could be known from elsewhere, and points at one person together with others | coarsely |
//! | `sensitive` | what the release is for, and what nobody may link to a person | unchanged, guarded by rules |
//! | `kept` | neither | unchanged |
//!
//! A wrong guess towards `quasi` costs detail. A wrong guess towards `kept` or `sensitive` costs privacy: those are
//! the lines to read twice.
//!
//! # 2. Run it
//!
//! ```sh
//! throng check job.toml
//! throng run job.toml
//! ```
//!
//! groups the rows, writes them, reads them back, counts every class, and only then makes the release visible in the
//! folder that `sink.url` names. Running it again does nothing: the same rows under the same policy are the same
//! release.
//!
//! # 3. Show it to those who approve it
//!
//! ```sh
//! throng report job.toml -o report.html
//! ```
//!
//! writes one page that needs no network: the verdict, the treatment of every column, the sizes of classes, the remaining
//! risk, and the provenance.
//!
//! # The same from a program
//!
//! A policy from typed parts, a job that says where rows come from and go to, and a run:
//!
//! ```
//! use std::path::Path;
//!
//! use throng::{Column, HierarchySpec, LDiversity, Outcome, Policy, Role, Run, RunOptions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let census = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/census.parquet");
//! let sink = tempfile::tempdir()?;
//! let policy = Policy::builder(10)
//!     .column("age", Column::quasi())
//!     .column("postcode", Column::quasi().with_hierarchy(HierarchySpec::mask_right()))
//!     .column("diagnosis", Column::sensitive())
//!     .other_columns(Role::Identifier)
//!     .rule(LDiversity::distinct("diagnosis", 3))
//!     .build()?;
//! let job = policy.to_job(census, sink.path().to_string_lossy());
//! let run = Run::new(job, Path::new("."), RunOptions::default())?;
//! let Outcome::Released(manifest, _) = run.execute(&|_, _, _| ()).await? else { panic!("released before") };
//! assert!(manifest.verification.classes.smallest >= 10);
//!
//! // What was published is checked again, against the rules and the source.
//! let check = run.verify_latest(None).await?;
//! assert!(check.findings.is_empty());
//! # Ok(())
//! # }
//! ```
