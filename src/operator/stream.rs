//! The stream of one partition. It
//! - gathers batches, which come sorted by cell, until a cell is complete;
//! - reserves every byte that it holds, and says which setting to raise if the pool denies it;
//! - hands the cell to a blocking thread, so that the runtime stays responsive, and gathers the next one meanwhile where
//!   the memory limit has ample room;
//! - counts rows, groups, suppressed rows and times;
//! - cuts the published rows into batches of the session's size.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time};
use futures::{Stream, StreamExt, stream};

use super::AnonymizeParams;
use super::cell::{self, Cell};
use super::memory::WORKING_FACTOR;
use crate::encode::{batch_size, compact_batch};
use crate::error::{Error, Result};
use crate::grouping::cancel::{CancelOnDrop, run_cancellable};
use crate::measure::Groups as Measures;

/// What `EXPLAIN ANALYZE` shows of a partition.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    baseline: BaselineMetrics,
    cells: Count,
    groups: Count,
    suppressed: Count,
    /// Cuts of the tree of cells.
    pub(super) splits: Gauge,
    /// Rows of the smallest and of the largest cell of all partitions, reported by the last one to end: gauges are summed.
    smallest_cell: Gauge,
    largest_cell: Gauge,
    encoding: Time,
    grouping: Time,
    recoding: Time,
}

impl Metrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let time = |name: &'static str| MetricBuilder::new(set).subset_time(name, partition);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            cells: MetricBuilder::new(set).counter("cells", partition),
            groups: MetricBuilder::new(set).counter("groups", partition),
            suppressed: MetricBuilder::new(set).counter("suppressed_rows", partition),
            splits: MetricBuilder::new(set).gauge("splits", partition),
            smallest_cell: MetricBuilder::new(set).gauge("smallest_cell", partition),
            largest_cell: MetricBuilder::new(set).gauge("largest_cell", partition),
            encoding: time("encode_time"),
            grouping: time("group_time"),
            recoding: time("recode_time"),
        }
    }
}

/// What all partitions have published so far.
#[derive(Debug)]
pub(super) struct MeasureAccumulator {
    /// Measures by partition; none before its first group.
    measures: Vec<Option<Measures>>,
    /// Partitions that have not ended yet.
    open: usize,
    /// Whether the partitions are all there are: then the last one to end judges the result.
    whole: bool,
}

impl MeasureAccumulator {
    pub(super) fn new(partitions: usize, whole: bool) -> Self {
        Self { measures: vec![None; partitions], open: partitions, whole }
    }

    /// What one partition has published.
    pub(super) fn of_partition(&self, partition: usize) -> Option<&Measures> {
        self.measures.get(partition)?.as_ref()
    }

    /// What all of them have published.
    pub(super) fn sum_measures(&self) -> Option<Measures> {
        let mut parts = self.measures.iter().flatten();
        let mut sum = parts.next()?.clone();
        parts.for_each(|part| sum.merge(part));
        Some(sum)
    }
}

/// One partition's work.
pub(super) struct CellStream {
    input: SendableRecordBatchStream,
    params: Arc<AnonymizeParams>,
    /// Where the measures of finished cells are added up.
    accumulator: Arc<Mutex<MeasureAccumulator>>,
    partition: usize,
    metrics: Metrics,
    reservation: MemoryReservation,
    batch_rows: usize,
    /// Whether the next cell is gathered while one is processed or taken.
    ahead: bool,
    /// What was reserved before the first batch: kept until the end.
    floor: usize,
    /// The cell that is being gathered.
    open: Option<Gathered>,
    /// Complete cells that wait for their turn.
    complete: VecDeque<Gathered>,
    /// A batch that there was no memory for while a cell was processed.
    parked: Option<RecordBatch>,
    /// The cell that is being processed, and the bytes of its rows.
    working: Option<(SpawnedTask<Result<Cell>>, usize)>,
    /// Published rows that wait to be taken, how many of them were, and the bytes of the rows that they were made of.
    ready: Option<(RecordBatch, usize, usize)>,
    ended: bool,
    /// Cancels the work on a cell when the stream is dropped.
    waiting: CancelOnDrop,
}

/// The rows of a cell, as far as they have come.
struct Gathered {
    cell: u32,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

impl CellStream {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        params: Arc<AnonymizeParams>,
        (accumulator, partition): (Arc<Mutex<MeasureAccumulator>>, usize),
        metrics: Metrics,
        (reservation, ahead): (MemoryReservation, bool),
        batch_rows: usize,
    ) -> Self {
        let floor = reservation.size();
        Self {
            input,
            params,
            accumulator,
            partition,
            metrics,
            reservation,
            batch_rows,
            ahead,
            floor,
            open: None,
            complete: VecDeque::new(),
            parked: None,
            working: None,
            ready: None,
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

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.working.is_none() && (self.ahead || self.ready.is_none()) {
                self.working = self.complete.pop_front().map(|cell| self.start_cell(cell));
            }
            if let Some(batch) = self.take_published() {
                return Ok(Some(batch));
            }
            // One cell ahead is enough.
            let gathers = self.working.is_none() || (self.ahead && self.complete.is_empty() && self.parked.is_none());
            match &mut self.working {
                Some((task, _)) => tokio::select! {
                    done = task => self.finish_cell(done.map_err(|error| join_error(&error))??)?,
                    batch = self.input.next(), if gathers && !self.ended => self.collect_batch(batch.transpose()?)?,
                },
                None if self.ended && self.parked.is_none() => {
                    self.metrics.baseline.done();
                    self.end_partition()?;
                    return Ok(None);
                }
                None => {
                    let batch = match self.parked.take() {
                        Some(batch) => Some(batch),
                        None => self.input.next().await.transpose()?,
                    };
                    self.collect_batch(batch)?;
                }
            }
        }
    }

    /// The next of the published rows.
    fn take_published(&mut self) -> Option<RecordBatch> {
        let (rows, from, bytes) = self.ready.take()?;
        let length = self.batch_rows.min(rows.num_rows() - from);
        let batch = rows.slice(from, length);
        if from + length < rows.num_rows() {
            self.ready = Some((rows, from + length, bytes));
        } else {
            self.release_memory();
        }
        self.metrics.baseline.record_output(length);
        Some(batch)
    }

    /// Adds a batch to the open cell, and closes cells that it goes beyond; without a batch, all of them.
    fn collect_batch(&mut self, batch: Option<RecordBatch>) -> Result<()> {
        let Some(batch) = batch else {
            self.ended = true;
            self.complete.extend(self.open.take());
            return Ok(());
        };
        let cells = batch.columns().last().ok_or_else(|| Error::internal("a batch has no cell column"))?;
        let cells = cells.as_primitive::<UInt32Type>().values().clone();
        let rows = batch.project(&(0..batch.num_columns() - 1).collect::<Vec<_>>())?;
        let mut from = 0;
        let mut parts = Vec::new();
        for run in cells.chunk_by(|a, b| a == b) {
            let part = compact_batch(&rows.slice(from, run.len()))?;
            from += run.len();
            let cell = self.params.labels.cell_of(run[0]);
            let cell = cell.ok_or_else(|| Error::internal(format!("no cell has the label {}", run[0])))?;
            parts.push((cell, batch_size(&part), part));
        }
        if let Err(error) = self.reserve_memory(parts.iter().map(|(_, bytes, _)| bytes).sum()) {
            // What is being processed will be freed.
            if self.working.is_none() && self.ready.is_none() {
                return Err(error);
            }
            self.parked = Some(batch);
            return Ok(());
        }
        for (cell, bytes, part) in parts {
            match &mut self.open {
                Some(open) if open.cell == cell => {
                    open.batches.push(part);
                    open.bytes += bytes;
                }
                _ => {
                    let closed = self.open.replace(Gathered { cell, batches: vec![part], bytes });
                    self.complete.extend(closed);
                }
            }
        }
        Ok(())
    }

    /// Anonymises a complete cell on a blocking thread.
    fn start_cell(&self, Gathered { cell, batches, bytes }: Gathered) -> (SpawnedTask<Result<Cell>>, usize) {
        let (params, flag) = (Arc::clone(&self.params), self.waiting.flag());
        let task = SpawnedTask::spawn_blocking(move || {
            let schema =
                batches.first().map(RecordBatch::schema).unwrap_or_else(|| Arc::clone(&params.bound_policy.input));
            let rows = concat_batches(&schema, &batches)?;
            drop(batches);
            run_cancellable(flag, || cell::anonymise_cell(&params, cell, &rows))
        });
        (task, bytes)
    }

    /// Takes over what a cell has become.
    fn finish_cell(&mut self, done: Cell) -> Result<()> {
        let bytes = self.working.take().map_or(0, |(_, bytes)| bytes);
        self.metrics.cells.add(1);
        self.metrics.groups.add(done.measures.loss.groups() as usize);
        self.metrics.suppressed.add(done.measures.loss.suppressed() as usize);
        self.metrics.encoding.add_duration(done.encoding);
        self.metrics.grouping.add_duration(done.grouping);
        self.metrics.recoding.add_duration(done.recoding);
        self.metrics.baseline.elapsed_compute().add_duration(done.encoding + done.grouping + done.recoding);
        let mut accumulator = self.accumulator.lock().map_err(|_| Error::internal("measures are poisoned"))?;
        match accumulator.measures.get_mut(self.partition) {
            Some(Some(sum)) => sum.merge(&done.measures),
            Some(none) => *none = Some(done.measures),
            None => return Err(Error::internal(format!("there is no partition {}", self.partition))),
        }
        drop(accumulator);
        if done.rows.num_rows() > 0 {
            self.ready = Some((done.rows, 0, bytes));
        } else {
            self.release_memory();
        }
        Ok(())
    }

    /// The last partition to end sees what all of them have published.
    fn end_partition(&self) -> Result<()> {
        let mut accumulator = self.accumulator.lock().map_err(|_| Error::internal("measures are poisoned"))?;
        accumulator.open = accumulator.open.saturating_sub(1);
        match accumulator.sum_measures() {
            Some(measures) if accumulator.open == 0 => {
                self.metrics.smallest_cell.set(measures.cells.smallest as usize);
                self.metrics.largest_cell.set(measures.cells.largest as usize);
                if accumulator.whole { self.params.ensure_within_limits(&measures) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Bytes of all rows that are held.
    fn held_bytes(&self) -> usize {
        let gathered = self.complete.iter().chain(&self.open).map(|cell| cell.bytes).sum::<usize>();
        let working = self.working.as_ref().map_or(0, |(_, bytes)| *bytes);
        gathered + working + self.ready.as_ref().map_or(0, |(_, _, bytes)| *bytes)
    }

    /// Reserves memory for what is held, and for more.
    fn reserve_memory(&mut self, more: usize) -> Result<()> {
        let wanted = (self.held_bytes() + more) * WORKING_FACTOR;
        self.reservation.try_resize(wanted.max(self.floor)).map_err(|error| {
            Error::resources(format!(
                "a cell needs {} of working memory, more than the memory limit leaves; raise --memory-limit, or \
                 lower --cell-rows or --partitions ({})",
                bytesize::ByteSize(wanted as u64),
                error.strip_backtrace()
            ))
        })
    }

    /// Frees what finished cells have held.
    fn release_memory(&mut self) {
        self.reservation.resize((self.held_bytes() * WORKING_FACTOR).max(self.floor));
    }
}

fn join_error(error: &tokio::task::JoinError) -> Error {
    Error::internal(format!("grouping a cell failed: {error}"))
}
