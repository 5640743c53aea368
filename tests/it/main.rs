//! Throng from end to end, by capability. One binary, because linking DataFusion takes longer than running the tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, outside of any #[test] function, may fail as tests do"
)]

mod adult;
mod adversary;
mod adversary_measures;
mod bad_input;
mod bound;
mod canary;
mod cells;
#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod compared;
#[cfg(feature = "delta")]
mod composed;
#[cfg(feature = "delta")]
mod delta;
mod dependencies;
mod determinism;
mod exact;
mod experiments;
mod explain;
mod exploring;
mod fuzz;
mod guides;
mod identifiers;
mod invariants;
mod journey;
mod layout;
mod manners;
mod memory;
mod messages;
mod methods;
mod mutations;
mod nulls;
mod observing;
mod oracle;
mod people;
mod permuted;
mod pipelines;
mod planted;
mod presence;
mod publishing_again;
mod queries;
mod readings;
mod robustness;
mod rules;
mod series;
#[path = "../../benches/support/skew.rs"]
mod skew;
mod sources;
mod stopping;
mod stores;
mod support;
mod tables;
mod tamper;
#[cfg(feature = "otel")]
mod tracing;
mod windows;
