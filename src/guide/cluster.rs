//! Distributed execution on Ballista.
//!
//! Built with the feature `cluster`, the same job runs on a [Ballista](https://datafusion.apache.org/ballista/) cluster and
//! publishes the same rows:
//!
//! ```bash
//! throng scheduler &
//! throng executor --memory-limit 4GB --concurrency 2 &
//! throng run job.toml --cluster df://localhost:50050 --partitions 32
//! ```
//!
//! A program hands the cluster to the run:
//!
//! ```
//! # #[cfg(feature = "cluster")] {
//! use throng::{Cluster, RunOptions};
//!
//! let cluster: Cluster = "df://localhost:50050".parse().expect("the address of a scheduler");
//! let options = RunOptions::default().with_cluster(cluster);
//! # drop(options);
//! # }
//! ```
//!
//! Executors survey, shuffle, group, order and write their own files, then read them back and judge their classes, order and
//! losses; the driver merges the verdicts and commits (`throng verify job.toml --cluster` does the same later). The work of a lost executor is
//! repeated by others, a task that ran twice adds nothing, and a cluster that cannot continue ends the run with exit code 75
//! and the previous release in place. `throng plan --cluster` shows the stages.
//!
//! - The published rows are those of one machine if key and `--cell-rows` (or `--memory-limit`, which cells are sized by) are
//!   the same.
//! - Of a series ([`again`](super::again)), the driver merges the ledger and makes the classes within its own limits; executors
//!   judge what readers will see.
//! - Executors take credentials from their own environment.
//! - Shuffle and spill files are raw data, in `--work-dir`.
//! - Ballista neither encrypts nor authenticates: keep a cluster within a network that you trust.
//!
//! `deploy/cluster` has manifests, sizes and figures.
