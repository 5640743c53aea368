//! Running it every night.
//!
//! # One run
//!
//! ```sh
//! throng generate --rows 2000 people.parquet
//! throng profile people.parquet --write job.toml
//! throng run job.toml --run-id 2026-11-16 --memory-limit 1GB
//! throng verify job.toml
//! throng releases release
//! throng gc release --dry-run
//! ```
//!
//! - **Identity.** A run that has been released is not done again, so a scheduler may retry without thought. Give it
//!   the date as `--run-id`, or let it be made of policy, input and version.
//! - **Memory.** `--memory-limit` bounds it; beyond, the run spills. Spill files are raw data: they lie in a folder
//!   that only the user can read, in `--spill-dir`, and go when the run ends or the next one starts.
//! - **Credentials** come from the environment, never from the job file.
//!
//! # Exit codes
//!
//! | code | who acts | how |
//! |---|---|---|
//! | 0 | nobody | done, or done before |
//! | 2, 3 | whoever wrote the job | usage, job file or hierarchy |
//! | 4 | whoever delivers the data | unreadable, changed schema, unknown values |
//! | 5 | the privacy officer | a rule cannot be met, or a release does not hold |
//! | 6 | whoever runs the machine | memory or disk |
//! | 7 | whoever chose the sink or run id | something is in the way |
//! | 75 | the scheduler | try again |
//!
//! The same from a program:
//!
//! ```
//! use throng::error::Error;
//!
//! let retry = |error: &Error| error.exit_code() == 75;
//! assert!(retry(&Error::Retry("the store timed out".into())));
//! assert!(!retry(&Error::Privacy("k cannot be met".into())));
//! ```
//!
//! # More than one machine
//!
//! Built with the feature `cluster`, the same job runs on a Ballista cluster of `throng scheduler` and `throng executor`:
//! `throng run job.toml --cluster df://scheduler:50050`. Identity, verification and commit stay with the driver, so a
//! scheduler may retry as before, and the published rows are those of one machine if `--cell-rows` (or `--memory-limit`,
//! which cells are sized by) is the same. Executors take credentials from their own environment. Shuffle and spill files
//! are raw data in `--work-dir`; nothing between the parts is encrypted or authenticated, so keep them in a network that
//! you trust. `deploy/cluster` has manifests and sizes.
//!
//! # Readers
//!
//! Readers follow `_latest` in the sink, which changes in one step. An earlier release stays where it was, and
//! `throng rollback` makes it the newest again. Files of a release never change; whoever reads them reads what was
//! verified. `throng verify <sink>` says so at any time, without policy or source.
//!
//! # When something looks wrong
//!
//! `THRONG_LOG=throng=debug` says more, on standard error. Logs, errors, manifests and reports never hold a value of
//! the data, so they can be passed on. Hierarchy files do.
