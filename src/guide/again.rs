//! Publishing again: the same people in more than one release.
//!
//! Every release keeps k and the rules by itself. Several releases of the same people do not: a reader who knows somebody's
//! quasi-identifiers finds the class of that person in each release, and only values that all of these classes hold can be
//! theirs. The value of a single newcomer between two releases of a table follows by subtraction.
//!
//! # What a sink allows
//!
//! - **One release.** Without further settings, a sink takes the release of one run. Running the same job on the same input
//!   again does nothing; another run is refused with exit code 7, before any work is done.
//! - **Independent releases.** `releases = "independent"` in `[sink]` lets a sink take as many as are made. Set it where no
//!   people are in two releases (each day's visitors, each year's applicants), or where the owner has decided to accept
//!   the risk. The manifest (`earlier_releases`), the summary and the report of each release then say how many were
//!   there before it.
//!
//! ```toml
//! [sink]
//! url = "s3://lake/published/visitors/"
//! releases = "independent"
//! ```
//!
//! Two sinks are two publications just like two releases in one: the guard only knows one sink. Nor does it know what was
//! published by other means.
//!
//! # What releases reveal together
//!
//! `throng attack --series` measures it. It compares all releases of the job's sink, or folders of Parquet that `--release`
//! names, whoever wrote them, as seen by somebody who knows everybody's quasi-identifiers and who was in which
//! release, but no sensitive value:
//!
//! ```text
//! throng attack nightly.toml --series --subject person_id --public monday.parquet --public tuesday.parquet
//! throng attack nightly.toml --series --subject person_id --public people.parquet --present-column monday --present-column tuesday
//! ```
//!
//! `--public` is given once for each release, as who was there and with which quasi-identifiers (the sources of these nights
//! will do), or once for all, with a boolean column for each release. For every sensitive column and after every release it prints:
//!
//! | figure | meaning |
//! |---|---|
//! | one value | share of people of whom a single value is left |
//! | fewer than l | share of people who may have fewer values than the l-diversity of the job promises; two without such a rule |
//! | fewer than k rows | share of people of whom a release has left fewer than k rows with a value that they may have |
//! | found by subtraction | people who came or went between two releases that held everybody, so that their values are the difference |
//!
//! `throng report out --series attack.json` draws these figures, which `--json` prints, as curves over releases.
//!
//! `--json` lists people by the number of values and rows that are left. The attack keeps one entry per person in memory. It
//! reads releases of the form `generalise`, and it is a lower bound: whoever fits several classes may be in any of them to this
//! reader, and kept columns and what is known of others' values are not used. On eight nights of a generated census (8,000 people,
//! 0.6 % coming and going, k = 10, l = 3 on the diagnosis, the income kept, effort `fast`) it finds fewer than three diagnoses for
//! 6 % of people; a reader who knows the class that each person was in (here, from a kept person number) has fewer for 43 %.
//!
//! # When the same people must be published again
//!
//! - Publish a table once, and give everybody the same release.
//! - If it must be published again, withdraw the older release, and assume that somebody has kept it.
//!
//! # From a program
//!
//! The same run again does nothing, another one is refused:
//!
//! ```
//! use std::path::Path;
//!
//! use throng::{Column, ErrorKind, Outcome, Policy, Role, Run, RunOptions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), throng::Error> {
//! # let folder = tempfile::tempdir()?;
//! # let sink = folder.path().to_string_lossy();
//! let census = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/data/census.parquet");
//! let policy = Policy::builder(10).column("age", Column::quasi()).other_columns(Role::Identifier).build()?;
//! let run = |id: &str| Run::new(policy.to_job(census, &*sink), Path::new("."), RunOptions::default().with_run_id(id));
//! assert!(matches!(run("monday")?.execute(&|_, _, _| ()).await?, Outcome::Released(..)));
//! assert!(matches!(run("monday")?.execute(&|_, _, _| ()).await?, Outcome::AlreadyDone(_)));
//! let refused = run("tuesday")?.execute(&|_, _, _| ()).await.unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Conflict);
//! # Ok(())
//! # }
//! ```
