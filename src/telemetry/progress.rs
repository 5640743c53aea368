//! Progress on a terminal: a line for the phase with rows, rate and time left, and one for the whole run; silence
//! elsewhere.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::engine::phase::{PHASES, Phase, rows_read};

/// All bars of the process. They are hidden if standard error is not a terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Steps of the bar of the whole run.
const STEPS: u64 = 1000;

/// A line for work of unknown length.
const SPINNER: &str = "{msg:18} {spinner} {elapsed}";

/// How often bars move.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Does something with standard error while no bar is in the way.
pub(crate) fn above_bars<T>(work: impl FnOnce() -> T) -> T {
    BARS.suspend(work)
}

/// Shows what a run is doing.
pub(crate) struct Progress {
    overall: ProgressBar,
    phase: Mutex<Option<Watched>>,
}

/// The bar of a phase.
struct Watched {
    bar: ProgressBar,
    /// Ends the task that moves the bar.
    task: tokio::task::AbortHandle,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            BARS.set_draw_target(ProgressDrawTarget::hidden());
        }
        let overall = BARS.add(ProgressBar::new(STEPS));
        overall.set_style(bar_style("{msg:18} {wide_bar} {percent} %, {elapsed} so far, {left}"));
        overall.set_message("all");
        Self { overall, phase: Mutex::default() }
    }

    /// Starts a phase of `rows` rows (0 if unknown), run by a plan whose metrics report progress.
    pub(crate) fn begin_phase(&self, phase: Phase, plan: Option<&Arc<dyn ExecutionPlan>>, rows: u64) {
        let name = if phase == Phase::Group { "group and write" } else { phase.name() };
        let done: Done = if phase == Phase::Group { |plan| Phase::Group.rows_done(plan) } else { rows_read };
        self.watch_plan(
            name,
            plan.map(|plan| (Arc::clone(plan), done)),
            rows,
            run_steps(phase, 0.0)..run_steps(phase, 1.0),
        );
    }

    /// Begins a scan of `rows` rows (0: not known), which is a part of the whole.
    pub(crate) fn begin_scan(&self, name: &'static str, plan: &Arc<dyn ExecutionPlan>, rows: u64, part: Range<f64>) {
        let step = |share: f64| (share * STEPS as f64).round() as u64;
        self.watch_plan(name, Some((Arc::clone(plan), rows_read)), rows, step(part.start)..step(part.end));
    }

    fn watch_plan(
        &self,
        name: &'static str,
        plan: Option<(Arc<dyn ExecutionPlan>, Done)>,
        rows: u64,
        part: Range<u64>,
    ) {
        self.leave_phase();
        if BARS.is_hidden() {
            return;
        }
        self.overall.set_position(part.start);
        let plan = plan.filter(|_| rows > 0);
        let bar = if plan.is_some() { ProgressBar::new(rows) } else { ProgressBar::new_spinner() };
        let bar = BARS.insert_before(&self.overall, bar);
        bar.set_style(bar_style(if plan.is_some() {
            "{msg:18} {wide_bar} {human_pos} of {human_len} rows, {rate}, {left}"
        } else {
            SPINNER
        }));
        bar.set_message(name);
        let overall = self.overall.clone();
        let watch = {
            let bar = bar.clone();
            async move {
                loop {
                    if let Some((plan, done)) = &plan {
                        let done = done(plan).min(rows);
                        bar.set_position(done);
                        let share = done as f64 / rows as f64;
                        overall.set_position(part.start + ((part.end - part.start) as f64 * share).round() as u64);
                    }
                    bar.tick();
                    overall.tick();
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        };
        let task = tokio::spawn(watch).abort_handle();
        if let Ok(mut current) = self.phase.lock() {
            *current = Some(Watched { bar, task });
        }
    }

    fn leave_phase(&self) {
        let last = self.phase.lock().ok().and_then(|mut phase| phase.take());
        if let Some(Watched { bar, task }) = last {
            task.abort();
            bar.finish_and_clear();
            BARS.remove(&bar);
        }
    }

    /// Takes all bars away.
    pub(crate) fn end_bars(&self) {
        self.leave_phase();
        self.overall.finish_and_clear();
        BARS.remove(&self.overall);
    }
}

/// Whatever way the work has ended.
impl Drop for Progress {
    fn drop(&mut self) {
        self.end_bars();
    }
}

fn bar_style(form: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar());
    let style = style.with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
        // A bar that cannot be drawn is not a reason to stop.
        let _ = write!(text, "{:.0} thousand rows/s", state.per_sec() / 1e3);
    });
    style.with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
        // Before anything is done, nobody knows.
        let _ = match state.pos() {
            0 => write!(text, "? left"),
            _ => write!(text, "{:#} left", HumanDuration(state.eta())),
        };
    })
}

/// The usual share of a phase in the time of a run.
fn phase_share(phase: Phase) -> f64 {
    match phase {
        Phase::Plan | Phase::Commit => 0.01,
        Phase::Survey => 0.15,
        Phase::Group => 0.7,
        Phase::Verify => 0.13,
    }
}

/// How far the whole run is when so much of a phase is done.
fn run_steps(phase: Phase, done: f64) -> u64 {
    let before: f64 = PHASES.into_iter().take_while(|earlier| *earlier != phase).map(phase_share).sum();
    ((before + phase_share(phase) * done.clamp(0.0, 1.0)) * STEPS as f64).round() as u64
}

/// Returns the rows that a plan has processed.
type Done = fn(&Arc<dyn ExecutionPlan>) -> u64;

/// Shows that work is in progress, for as long as it takes.
pub(crate) async fn show_waiting<T>(name: &'static str, quiet: bool, work: impl Future<Output = T>) -> T {
    if quiet || BARS.is_hidden() {
        return work.await;
    }
    let bar = BARS.add(ProgressBar::new_spinner());
    bar.set_style(bar_style(SPINNER));
    bar.set_message(name);
    bar.enable_steady_tick(POLL_INTERVAL);
    // Also if the work is cancelled.
    let shown = Shown(bar);
    let done = work.await;
    drop(shown);
    done
}

/// A bar that goes when it is dropped.
struct Shown(ProgressBar);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        BARS.remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_one_another_without_a_gap() {
        assert_eq!(run_steps(Phase::Plan, 0.0), 0);
        for pair in PHASES.windows(2) {
            assert_eq!(run_steps(pair[0], 1.0), run_steps(pair[1], 0.0));
            assert!(run_steps(pair[0], 0.5) <= run_steps(pair[0], 2.0));
        }
        assert_eq!(run_steps(Phase::Commit, 1.0), STEPS);
    }
}
