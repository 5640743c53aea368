//! Attacks on releases from outside: with the published files, the manifest, the program and a register of
//! quasi-identifiers, which is what the adversary of the threat model has.
//!
//! Releases are made by the command line and read by the Parquet reader alone, so that the attacks can be shown on any
//! version: `THRONG_UNDER_TEST=/path/to/throng cargo test --test it adversary:: -- --nocapture` prints what each recovers.
//! Only `positions` calls the crate, to watch the operator. README.md has the figures.

mod adult;
mod differencing;
mod figures;
mod growth;
mod hash_order;
mod linked;
mod numbers;
mod order;
mod positions;
mod presence_counts;
pub mod publication;
mod reenact;
mod statistics;
mod ties;
mod twins;
pub mod values;
