//! What a run took: seconds by phase, bytes spilled, peak memory. Kept while it runs, so that there is something to report
//! of a failed run too.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use datafusion::physical_plan::ExecutionPlan;
use serde::Serialize;

use crate::engine::phase::{Phase, spilled_bytes};

/// Listens to the phases of a run.
pub(crate) struct Tally {
    started: Instant,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
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

impl Tally {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), heard: Mutex::default() }
    }

    /// A phase begins, or goes on with another plan.
    pub(crate) fn begin(&self, phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        let Ok(mut heard) = self.heard.lock() else { return };
        if heard.phases.last().is_none_or(|(last, _)| *last != phase) {
            heard.phases.push((phase, Instant::now()));
        }
        heard.plans.extend(plan.map(Arc::clone));
        if phase == Phase::Group {
            heard.rows = Some(rows).filter(|rows| *rows > 0);
        }
    }

    /// What it has taken until now.
    pub(crate) fn effort(&self) -> ResourceUsage {
        let mut effort = ResourceUsage {
            seconds: self.started.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory(),
            ..ResourceUsage::default()
        };
        let Ok(heard) = self.heard.lock() else { return effort };
        for (at, (phase, began)) in heard.phases.iter().enumerate() {
            let ended = heard.phases.get(at + 1).map_or_else(Instant::now, |(_, next)| *next);
            effort.phases.insert(phase.name().to_owned(), (ended - *began).as_secs_f64().into());
        }
        effort.spilled_bytes = heard.plans.iter().map(spilled_bytes).sum();
        effort.rows_read = heard.rows;
        effort
    }
}

/// Peak resident memory of this process.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
