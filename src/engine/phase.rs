//! The phases of a run. Each is a tracing span with counts and a duration, and no value of the data.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use tracing::field::Empty;
use tracing::{Span, info, info_span};

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Opening source and sink.
    Plan,
    /// Pass 1.
    Survey,
    /// Pass 2: grouping and writing.
    Group,
    /// Reading back.
    Verify,
    /// Making the release visible.
    Commit,
}

/// All phases, in their order.
pub(crate) const PHASES: [Phase; 5] = [Phase::Plan, Phase::Survey, Phase::Group, Phase::Verify, Phase::Commit];

/// A span with the fields of all phases.
macro_rules! span {
    ($name:literal) => {
        info_span!(
            $name,
            files = Empty,
            rows = Empty,
            cells = Empty,
            suppressed = Empty,
            spilled_bytes = Empty,
            classes = Empty,
            smallest_class = Empty,
            otel.status_code = Empty,
        )
    };
}

impl Phase {
    /// The name of the phase in logs, spans and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Survey => "survey",
            Self::Group => "group",
            Self::Verify => "verify",
            Self::Commit => "commit",
        }
    }

    /// Returns the rows that the plan of the phase has processed. Grouping reads every row and, after a sort, writes it: each
    /// is half the work.
    pub fn rows_done(self, plan: &Arc<dyn ExecutionPlan>) -> u64 {
        let read = rows_read(plan);
        if self != Self::Group {
            return read;
        }
        let written = plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64;
        (read + written) / 2
    }

    /// Starts the phase.
    pub(crate) fn begin(self) -> Begun {
        let span = match self {
            Self::Plan => span!("plan"),
            Self::Survey => span!("survey"),
            Self::Group => span!("group"),
            Self::Verify => span!("verify"),
            Self::Commit => span!("commit"),
        };
        Begun { phase: self, span, started: Instant::now(), done: false }
    }
}

/// A running phase. If dropped before it is done, it has failed or was stopped.
pub(crate) struct Begun {
    phase: Phase,
    span: Span,
    started: Instant,
    done: bool,
}

impl Begun {
    /// Counts something for the span.
    pub(crate) fn record_count(&self, what: &'static str, number: u64) {
        self.span.record(what, number);
    }

    /// Completes the phase and returns how long it took.
    pub(crate) fn finish_phase(mut self) -> (Phase, Duration) {
        self.done = true;
        (self.phase, self.started.elapsed())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let (phase, seconds) = (self.phase.name(), self.started.elapsed().as_secs_f64());
        if self.done {
            info!(parent: &self.span, seconds, "{phase}: done");
        } else {
            self.span.record("otel.status_code", "ERROR");
            info!(parent: &self.span, seconds, "{phase}: not done");
        }
    }
}

/// Bytes that the nodes of a plan have spilled so far.
pub(crate) fn spilled_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = plan.metrics().and_then(|metrics| metrics.spilled_bytes()).unwrap_or(0) as u64;
    plan.children().into_iter().map(spilled_bytes).sum::<u64>() + own
}

/// Rows that the inputs of a plan have output so far.
pub(crate) fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let children = plan.children();
    if children.is_empty() {
        return plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64;
    }
    children.into_iter().map(rows_read).sum()
}

/// Rows that a plan will output, if its files say so; otherwise 0.
pub(crate) fn known_rows(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    let rows = statistics.ok().and_then(|statistics| statistics.num_rows.get_value().copied());
    rows.unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn phases_have_names_of_their_own_and_end_with_their_time() {
        let names: Vec<&str> = PHASES.iter().map(|phase| phase.name()).collect();
        assert_eq!(names, ["plan", "survey", "group", "verify", "commit"]);
        let begun = Phase::Group.begin();
        std::thread::sleep(Duration::from_millis(2));
        let (phase, took) = begun.finish_phase();
        assert!(phase == Phase::Group && took >= Duration::from_millis(2));
    }

    #[tokio::test]
    async fn a_plan_knows_its_rows_before_it_has_read_any() {
        let context = SessionContext::new();
        let frame = context.sql("SELECT a FROM (VALUES (1), (2), (3), (4)) AS t(a)").await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        assert_eq!((known_rows(&plan), rows_read(&plan), spilled_bytes(&plan)), (4, 0, 0));
    }
}
