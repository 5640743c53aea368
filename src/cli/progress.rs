//! Progress bars by phase, on a terminal; silence elsewhere.

use std::fmt;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::release::Phase;

/// Shows what a run is doing.
pub(super) struct Progress {
    bar: Mutex<Option<Watched>>,
    shown: bool,
}

struct Watched {
    bar: ProgressBar,
    /// Ends the task that moves the bar.
    task: Option<tokio::task::AbortHandle>,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self { bar: Mutex::default(), shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Begins a phase of `rows` rows (0: not known), done by a plan whose metrics tell how far it is.
    pub(super) fn begin(&self, phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        self.end();
        if !self.shown {
            return;
        }
        let name = match phase {
            Phase::Survey => "survey",
            Phase::Group => "group and write",
            Phase::Verify => "verify",
            Phase::Commit => "commit",
        };
        let bar = if rows > 0 && plan.is_some() { ProgressBar::new(rows) } else { ProgressBar::new_spinner() };
        let form = if rows > 0 && plan.is_some() {
            "{msg:16} {bar:30} {human_pos} of {human_len} rows, {rate}, {eta} left"
        } else {
            "{msg:16} {spinner} {human_pos} rows, {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
                // A bar that cannot be drawn is no reason to stop.
                let _ = write!(text, "{:.0} thousand rows/s", state.per_sec() / 1e3);
            };
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_message(name);
        let task = plan.map(|plan| {
            let (plan, bar) = (Arc::clone(plan), bar.clone());
            let watch = async move {
                loop {
                    bar.set_position(rows_so_far(&plan));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::spawn(watch).abort_handle()
        });
        if let Ok(mut current) = self.bar.lock() {
            *current = Some(Watched { bar, task });
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        let last = self.bar.lock().ok().and_then(|mut bar| bar.take());
        if let Some(Watched { bar, task }) = last {
            task.inspect(|task| task.abort());
            bar.finish_and_clear();
        }
    }
}

/// Rows that the top of the plan has put out; of a node without metrics, those of its input.
fn rows_so_far(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    match plan.metrics().and_then(|metrics| metrics.output_rows()) {
        Some(rows) => rows as u64,
        None => plan.children().first().map_or(0, |child| rows_so_far(child)),
    }
}
