//! Attacks on releases from outside: with the published files, the manifest, the program and a register of
//! quasi-identifiers, which is what the adversary of the threat model has.
//!
//! Nothing here calls the crate. Releases are made by the command line and read by the Parquet reader alone, so that the
//! attacks can be shown on any version: `THRONG_UNDER_TEST=/path/to/throng cargo test --test it adversary:: --
//! --nocapture` prints what each recovers. All were seen to succeed on a version that ordered rows by an unkeyed hash.

mod adult;
mod differencing;
mod growth;
mod hash_order;
mod linked;
mod numbers;
mod order;
mod presence_counts;
pub mod publication;
mod reenact;
mod statistics;
mod ties;
pub mod values;
