//! What the benches share: CPU time and peak memory of this process, as the system counts them.

#[allow(dead_code, clippy::expect_used, clippy::panic, reason = "a bench, and not every one needs the census")]
pub mod census;
#[allow(dead_code, clippy::expect_used, reason = "a bench, and not every one needs skewed rows")]
pub mod skew;

use std::time::{Duration, Instant};

/// CPU time of all threads so far.
pub fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, counted behind the command name in brackets, in ticks of 10 ms.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Most memory that this process has held, in bytes.
#[allow(dead_code, reason = "not every bench measures memory")]
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Lets the system count the most memory anew. Linux does, others are not asked.
#[allow(dead_code, reason = "not every bench measures memory")]
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// CPU and wall time of one call.
#[allow(dead_code, reason = "not every bench uses it")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (cpu, wall) = (cpu_time(), Instant::now());
    let done = work();
    (done, cpu_time() - cpu, wall.elapsed())
}
