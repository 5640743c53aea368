//! Throng from end to end, by capability. One binary, because linking DataFusion takes longer than running the tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests, outside of any #[test] function, may fail as tests do"
)]

mod adult;
mod bad_input;
mod commands;
mod determinism;
mod explain;
mod invariants;
mod pipelines;
mod presence;
mod readings;
mod stopping;
mod support;
mod tables;
mod tamper;
