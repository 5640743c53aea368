//! The stream of windows. It
//! - drops rows of subjects that came before, and rows whose nulls are to be dropped, and counts both;
//! - gathers rows until the book says that the window is ripe;
//! - reserves every byte that it holds, and says which setting to change if the pool denies it;
//! - hands the window to a blocking thread, which is cancelled when the stream is dropped;
//! - keeps the rows that wait, and cuts the published ones into batches of the session's size.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time};
use futures::{Stream, StreamExt, stream};

use super::Plan;
use super::book::Book;
use super::repeats::Repeats;
use crate::encode::{batch_size, compact_batch, without_nulls};
use crate::error::{Error, Result};
use crate::grouping::cancel::{CancelOnDrop, run_cancellable};
use crate::grouping::entry::Tuned;
use crate::operator::AnonymizeParams;
use crate::operator::cell::{Windowed, anonymise_window};
use crate::operator::memory::WORKING_FACTOR;
use crate::policy::Nulls;
use crate::survey::{build_rules, window::survey_window};

/// What `EXPLAIN ANALYZE` shows.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    baseline: BaselineMetrics,
    windows: Count,
    groups: Count,
    suppressed: Count,
    repeated: Count,
    /// Rows that wait now.
    waiting: Gauge,
    grouping: Time,
}

impl Metrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(set, partition),
            windows: MetricBuilder::new(set).counter("windows", partition),
            groups: MetricBuilder::new(set).counter("groups", partition),
            suppressed: MetricBuilder::new(set).counter("suppressed_rows", partition),
            repeated: MetricBuilder::new(set).counter("repeated_rows", partition),
            waiting: MetricBuilder::new(set).gauge("waiting_rows", partition),
            grouping: MetricBuilder::new(set).subset_time("window_time", partition),
        }
    }
}

/// What has become of the rows so far.
#[derive(Debug, Default)]
struct Counts {
    published: u64,
    suppressed: u64,
}

/// The state of the stream.
pub(super) struct WindowStream {
    input: SendableRecordBatchStream,
    plan: Arc<Plan>,
    metrics: Metrics,
    reservation: MemoryReservation,
    batch_rows: usize,
    book: Book,
    started: Instant,
    repeats: Option<Repeats>,
    /// What the first window has found by trying.
    tuned: Option<Tuned>,
    /// The rows of the open window: those that wait, then the fresh ones.
    held: Vec<RecordBatch>,
    held_bytes: usize,
    /// Rows that came with the last batch and do not fit into the open window.
    parked: Option<RecordBatch>,
    /// Published rows that wait to be taken, and how many of them were.
    ready: Option<(RecordBatch, usize)>,
    counts: Counts,
    ended: bool,
    /// Cancels the work on a window when the stream is dropped.
    waiting: CancelOnDrop,
}

impl WindowStream {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        plan: Arc<Plan>,
        metrics: Metrics,
        reservation: MemoryReservation,
        batch_rows: usize,
    ) -> Self {
        Self {
            book: Book::new(plan.window.row_count(), plan.time, plan.window.max_wait),
            input,
            plan,
            metrics,
            reservation,
            batch_rows,
            started: Instant::now(),
            repeats: None,
            tuned: None,
            held: Vec::new(),
            held_bytes: 0,
            parked: None,
            ready: None,
            counts: Counts::default(),
            ended: false,
            waiting: CancelOnDrop::default(),
        }
    }

    /// The published rows as a stream.
    pub(super) fn into_stream(self) -> impl Stream<Item = DataFusionResult<RecordBatch>> {
        stream::try_unfold(self, |mut state| async move {
            let next = state.next_batch().await.map_err(Error::into_datafusion)?;
            Ok(next.map(|batch| (batch, state)))
        })
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.take_published() {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.parked.take() {
                self.gather_rows(batch)?;
            }
            let is_last = self.ended && self.parked.is_none();
            if self.book.is_ripe(self.now()) || is_last && !self.book.is_empty() {
                self.close_window(is_last).await?;
            } else if is_last {
                self.metrics.baseline.done();
                return Ok(None);
            } else if self.parked.is_none() {
                self.read_batch().await?;
            }
        }
    }

    /// The next of the published rows.
    fn take_published(&mut self) -> Option<RecordBatch> {
        let (rows, from) = self.ready.take()?;
        let length = self.batch_rows.min(rows.num_rows() - from);
        if length == 0 {
            return None;
        }
        self.ready = Some((rows.clone(), from + length));
        self.metrics.baseline.record_output(length);
        Some(rows.slice(from, length))
    }

    /// Waits for the next batch, or for the time of the open window to be over.
    async fn read_batch(&mut self) -> Result<()> {
        let deadline = self.book.close_by().map(|deadline| tokio::time::Instant::from_std(self.started + deadline));
        let batch = match deadline {
            Some(deadline) => tokio::select! {
                batch = self.input.next() => batch,
                () = tokio::time::sleep_until(deadline) => return Ok(()),
            },
            None => self.input.next().await,
        };
        match batch.transpose()? {
            None => self.ended = true,
            Some(batch) => {
                let batch = self.without_dropped(batch)?;
                self.gather_rows(batch)?;
            }
        }
        Ok(())
    }

    /// The rows of a batch that may be published.
    fn without_dropped(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let (mut batch, plan) = (batch, Arc::clone(&self.plan));
        if !plan.subject.is_empty() {
            let repeats = match &mut self.repeats {
                Some(repeats) => repeats,
                none => {
                    let key = &plan.plain.key;
                    none.insert(Repeats::new(&plan.subject, &batch, key, plan.window.remembered())?)
                }
            };
            let (new, repeated) = repeats.filter_new(&batch)?;
            self.metrics.repeated.add(repeated as usize);
            batch = new;
        }
        let dropping = plan.plain.quasi.iter().filter(|quasi| quasi.nulls == Nulls::Drop);
        let (batch, dropped) = without_nulls(&batch, dropping.map(|quasi| batch.column(quasi.index)), None)?;
        self.count_suppressed(dropped);
        Ok(batch)
    }

    fn count_suppressed(&mut self, rows: u64) {
        self.counts.suppressed += rows;
        self.metrics.suppressed.add(rows as usize);
    }

    /// Takes rows into the open window; those that do not fit are parked.
    fn gather_rows(&mut self, batch: RecordBatch) -> Result<()> {
        let taken = self.book.admit_rows(batch.num_rows(), self.started.elapsed());
        if taken > 0 {
            let part = compact_batch(&batch.slice(0, taken))?;
            self.held_bytes += batch_size(&part);
            self.held.push(part);
        }
        if taken < batch.num_rows() {
            self.parked = Some(batch.slice(taken, batch.num_rows() - taken));
        }
        self.reserve_memory()
    }

    /// Reserves memory for what is held.
    fn reserve_memory(&mut self) -> Result<()> {
        let remembered = self.repeats.as_ref().map_or(0, Repeats::held_bytes);
        let parked = self.parked.as_ref().map_or(0, batch_size);
        let wanted = self.held_bytes * WORKING_FACTOR + remembered + parked;
        self.reservation.try_resize(wanted).map_err(|error| {
            Error::resources(format!(
                "a window of {} rows, with {} that wait, needs {} of memory, more than the memory limit leaves; raise the \
                 limit, or lower window.rows or window.remember ({})",
                self.plan.window.row_count(),
                self.book.waiting_rows(),
                bytesize::ByteSize(wanted as u64),
                error.strip_backtrace()
            ))
        })
    }

    /// Makes classes of the open window, and opens the next one with the rows that wait.
    async fn close_window(&mut self, is_last: bool) -> Result<()> {
        let due = self.book.due_rows(is_last);
        let (number, tuned, held) = (self.book.window_number(), self.tuned, std::mem::take(&mut self.held));
        let (plan, flag) = (Arc::clone(&self.plan), self.waiting.flag());
        let task = SpawnedTask::spawn_blocking(move || {
            let rows = concat_batches(&plan.plain.input, &held)?;
            drop(held);
            let done = run_cancellable(flag, || group_window(&plan, number, &rows, &due, tuned))?;
            Ok::<_, Error>((rows, done))
        });
        let timer = self.metrics.grouping.timer();
        let (rows, done) =
            task.await.map_err(|error| Error::internal(format!("grouping a window failed: {error}")))??;
        timer.done();
        self.tuned = self.tuned.or(done.tuned);
        self.metrics.windows.add(1);
        self.metrics.groups.add(done.groups);
        self.counts.published += done.rows.num_rows() as u64;
        let remainder = self.book.close_window(&done.left, is_last, self.started.elapsed());
        self.count_suppressed(remainder.suppressed);
        self.metrics.waiting.set(remainder.waiting.len());
        if !remainder.waiting.is_empty() {
            let waiting = compact_batch(&take_record_batch(&rows, &UInt32Array::from(remainder.waiting))?)?;
            self.held.push(waiting);
        }
        drop(rows);
        let published = batch_size(&done.rows);
        self.held_bytes = self.held.iter().map(batch_size).sum::<usize>() + published.div_ceil(WORKING_FACTOR);
        self.reserve_memory()?;
        self.held_bytes = self.held.iter().map(batch_size).sum();
        self.ready = Some((done.rows, 0));
        self.refuse_loss_of_rows(is_last)
    }

    /// Fails if more rows were suppressed than the policy allows. The first window alone says little about the share.
    fn refuse_loss_of_rows(&self, is_last: bool) -> Result<()> {
        let Counts { published, suppressed } = self.counts;
        let (all, allowed) = (published + suppressed, self.plan.plain.policy.privacy.max_suppression);
        let is_early = all < self.plan.window.row_count() as u64 && !is_last;
        if suppressed == 0 || is_early || suppressed as f64 <= allowed * all as f64 {
            return Ok(());
        }
        Err(Error::privacy(format!(
            "{suppressed} of {all} rows ({:.2} %) found no class in their windows, and privacy.max-suppression allows {:.2} \
             %; raise window.rows or window.max-wait, relax a rule, or allow more suppression",
            suppressed as f64 * 100.0 / all as f64,
            allowed * 100.0
        )))
    }
}

/// What a window has become.
struct Grouped {
    rows: RecordBatch,
    groups: usize,
    left: Vec<u32>,
    tuned: Option<Tuned>,
}

/// Makes classes of the rows of a window.
fn group_window(plan: &Plan, number: u64, rows: &RecordBatch, due: &[bool], tuned: Option<Tuned>) -> Result<Grouped> {
    let bound_policy = &plan.demanding;
    if rows.num_rows() < bound_policy.policy.privacy.k as usize {
        let left = (0..rows.num_rows() as u32).collect();
        return Ok(Grouped { rows: RecordBatch::new_empty(Arc::clone(&bound_policy.output)), groups: 0, left, tuned });
    }
    let quasi = bound_policy.quasi.iter().map(|column| column.index);
    let read: Vec<usize> = quasi.chain(bound_policy.sensitive.iter().map(|column| column.index)).collect();
    let survey = survey_window(bound_policy, &rows.project(&read)?, plan.known.as_ref(), tuned)?;
    let tuned = Some(survey.tuned);
    let params = AnonymizeParams::new(Arc::clone(bound_policy), survey)?;
    let plain = build_rules(&plan.plain, &params.slices);
    // The number of a window stands where that of a cell stands: every window makes its choices from numbers of its own.
    let Windowed { rows, groups, left } = anonymise_window(&params, number as u32, rows, due, &plain)?;
    Ok(Grouped { rows, groups, left, tuned })
}
