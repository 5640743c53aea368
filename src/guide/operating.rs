//! Running in production.
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
//! - **Identity.** A run that has been released is not repeated, so a scheduler may retry at will. Give it
//!   the date as `--run-id`, or leave it to be derived from policy, input and version.
//! - **Nightly runs.** A sink takes the release of one run. The next is rejected with exit code 7, unless the job says
//!   that releases are independent of each other; read [`again`](super::again) before you say so.
//! - **Memory.** `--memory-limit` bounds it; beyond it, the run spills. Spill files are raw data: they are kept in a folder
//!   that only the user can read, in `--spill-dir`, and are removed when the run ends or the next one starts.
//! - **Credentials** come from the environment, never from the job file.
//!
//! # Exit codes
//!
//! | exit code | meaning | who acts |
//! |---|---|---|
//! | 0 | done, or already done | nobody |
//! | 1 | an internal error: please report it | us |
//! | 2 | wrong usage | whoever wrote the call |
//! | 3 | the job file, or a hierarchy it names, is wrong | whoever wrote the job |
//! | 4 | the input cannot be used, or a location cannot be read or written | whoever delivers the data |
//! | 5 | a privacy rule cannot be met, or a release violates one | the privacy officer |
//! | 6 | memory or disk is too small | whoever runs the machine |
//! | 7 | a conflict in the sink | whoever chose the sink or run id |
//! | 75 | a transient failure: try again | the scheduler |
//! | 130 | interrupted; nothing was published | nobody |
//!
//! The same from a program:
//!
//! ```
//! use throng::{Error, ErrorKind};
//!
//! assert!(Error::new(ErrorKind::Retry, "the store timed out").is_retryable());
//! assert!(!Error::new(ErrorKind::Privacy, "k cannot be met").is_retryable());
//! ```
//!
//! # Logs, metrics, traces
//!
//! - **Results** go to standard output, everything else to standard error. `--json` makes the result of `run`, `check`,
//!   `verify`, `releases`, `rollback` and `gc` one JSON document; a failure is `{ "error", "exit_code", "message" }`.
//! - **Logs**: `-v` logs the phases (plan, survey, group, verify, commit) with rows and seconds, `-vv` more, `-q` only
//!   errors; `--log-format json` writes one object per line; `THRONG_LOG=throng=debug` sets levels by module. Lines of other
//!   crates below warnings hold plans and statistics, and are never written.
//! - **Metrics**: `--metrics-file run.prom` writes rows, groups, losses, seconds by phase, spilled bytes, peak memory and the
//!   outcome for Prometheus, atomically, also when a run fails (`throng_run_success 0`). A file that cannot be written is a
//!   warning.
//! - **Traces**: with the feature `otel`, every phase is a span, exported by OTLP over gRPC when
//!   `OTEL_EXPORTER_OTLP_ENDPOINT` (or another of the usual `OTEL_*` variables) names a collector.
//! - Every flag can be a variable: `--memory-limit` is `THRONG_MEMORY_LIMIT`. `NO_COLOR` and `COLUMNS` are respected.
//! - Ctrl-C and SIGTERM end a run cleanly: exit code 130, nothing published, staged and spilled files removed.
//!
//! `deploy/` holds a container file, a Kubernetes CronJob, a cluster, an Airflow DAG and a Terraform module.
//!
//! # Troubleshooting
//!
//! `THRONG_LOG=throng=debug` says more, on standard error. Logs, errors, manifests and reports never hold a value of
//! the data, so they can be passed on. Hierarchy files do.
