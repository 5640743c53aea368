//! What a run took: seconds by phase, bytes spilled, peak memory. Kept while it runs, so that there is something to report
//! of a failed run too.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use datafusion::physical_plan::ExecutionPlan;
use serde::Serialize;

use crate::engine::phase::{Phase, spilled_bytes};

/// Listens to the phases of a run.
pub(crate) struct RunStats {
    started: Instant,
    observed: Mutex<Observed>,
}

#[derive(Default)]
struct Observed {
    phases: Vec<(Phase, Instant)>,
    plans: Vec<Arc<dyn ExecutionPlan>>,
    rows: Option<u64>,
}

/// What a run took.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ResourceUsage {
    /// Seconds of the whole run.
    pub(crate) seconds: f64,
    /// Seconds by phase, of those that began.
    pub(crate) phases: serde_json::Map<String, serde_json::Value>,
    /// Bytes spilled to disk.
    pub(crate) spilled_bytes: u64,
    /// Peak memory of the process, if the system reports it.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// Rows that the survey has counted.
    #[serde(skip)]
    pub(crate) rows_read: Option<u64>,
}

impl RunStats {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), observed: Mutex::default() }
    }

    /// A phase begins, or goes on with another plan.
    pub(crate) fn begin_phase(&self, phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        let Ok(mut observed) = self.observed.lock() else { return };
        if observed.phases.last().is_none_or(|(last, _)| *last != phase) {
            observed.phases.push((phase, Instant::now()));
        }
        observed.plans.extend(plan.map(Arc::clone));
        if phase == Phase::Group {
            observed.rows = Some(rows).filter(|rows| *rows > 0);
        }
    }

    /// What it has taken until now.
    pub(crate) fn resource_usage(&self) -> ResourceUsage {
        let mut effort = ResourceUsage {
            seconds: self.started.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory(),
            ..ResourceUsage::default()
        };
        let Ok(observed) = self.observed.lock() else { return effort };
        for (at, (phase, began)) in observed.phases.iter().enumerate() {
            let ended = observed.phases.get(at + 1).map_or_else(Instant::now, |(_, next)| *next);
            effort.phases.insert(phase.name().to_owned(), (ended - *began).as_secs_f64().into());
        }
        effort.spilled_bytes = observed.plans.iter().map(spilled_bytes).sum();
        effort.rows_read = observed.rows;
        effort
    }
}

/// Peak resident memory of this process.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
