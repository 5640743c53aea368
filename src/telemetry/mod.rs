//! What a process reports while it runs: logs, spans, metrics and progress bars. Counts and durations,
//! never a value of the data.

pub(crate) mod allocator;
pub(crate) mod logging;
pub(crate) mod metrics;
#[cfg(feature = "otel")]
mod otel;
pub(crate) mod progress;
pub(crate) mod run_stats;
