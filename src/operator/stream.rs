//! The stream of one partition. It
//! - gathers batches, which come sorted by cell, until a cell is complete;
//! - reserves every byte that it holds, and says which setting to raise when the pool refuses;
//! - hands the cell to a blocking thread, so that the runtime stays responsive;
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

use super::memory::WORKING_FACTOR;
use super::{Blueprint, cell};
use crate::encode::{batch_size, compact};
use crate::error::{Error, Result};
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
    /// Rows of the smallest and of the largest cell of all partitions, told by the last one to end: gauges are added up.
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
pub(super) struct Tally {
    /// Measures by partition; none before its first group.
    measures: Vec<Option<Measures>>,
    /// Partitions that have not ended yet.
    open: usize,
    /// Whether the partitions are all there are: then the last one to end judges the result.
    whole: bool,
}

impl Tally {
    pub(super) fn new(partitions: usize, whole: bool) -> Self {
        Self { measures: vec![None; partitions], open: partitions, whole }
    }

    /// What one partition has published.
    pub(super) fn of(&self, partition: usize) -> Option<&Measures> {
        self.measures.get(partition)?.as_ref()
    }

    /// What all of them have published.
    pub(super) fn sum(&self) -> Option<Measures> {
        let mut parts = self.measures.iter().flatten();
        let mut sum = parts.next()?.clone();
        parts.for_each(|part| sum.merge(part));
        Some(sum)
    }
}

/// One partition's work.
pub(super) struct CellStream {
    input: SendableRecordBatchStream,
    blueprint: Arc<Blueprint>,
    /// Where the measures of finished cells are added up.
    tally: Arc<Mutex<Tally>>,
    partition: usize,
    metrics: Metrics,
    reservation: MemoryReservation,
    batch_rows: usize,
    /// The cell that is being gathered, and its batches.
    open: Option<(u32, Vec<RecordBatch>)>,
    /// Bytes of the open cell.
    held: usize,
    /// What was reserved before the first batch: kept until the end.
    floor: usize,
    /// Complete cells that wait for their turn.
    complete: VecDeque<(u32, Vec<RecordBatch>)>,
    /// Published rows that wait to be taken.
    ready: Option<(RecordBatch, usize)>,
    ended: bool,
}

impl CellStream {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        blueprint: Arc<Blueprint>,
        (tally, partition): (Arc<Mutex<Tally>>, usize),
        metrics: Metrics,
        reservation: MemoryReservation,
        batch_rows: usize,
    ) -> Self {
        let floor = reservation.size();
        Self {
            input,
            blueprint,
            tally,
            partition,
            metrics,
            reservation,
            batch_rows,
            open: None,
            held: 0,
            floor,
            complete: VecDeque::new(),
            ready: None,
            ended: false,
        }
    }

    /// The published rows as a stream.
    pub(super) fn into_stream(self) -> impl Stream<Item = DataFusionResult<RecordBatch>> {
        stream::try_unfold(self, |mut state| async move {
            let next = state.next().await.map_err(Error::into_datafusion)?;
            Ok(next.map(|batch| (batch, state)))
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((rows, from)) = self.ready.take() {
                let length = self.batch_rows.min(rows.num_rows() - from);
                let batch = rows.slice(from, length);
                if from + length < rows.num_rows() {
                    self.ready = Some((rows, from + length));
                } else {
                    self.release();
                }
                self.metrics.baseline.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if let Some((cell, batches)) = self.complete.pop_front() {
                self.work(cell, batches).await?;
            } else if self.ended {
                self.metrics.baseline.done();
                self.end()?;
                return Ok(None);
            } else if let Some(batch) = self.input.next().await {
                self.gather(batch?)?;
            } else {
                self.ended = true;
                self.complete.extend(self.open.take());
            }
        }
    }

    /// Adds a batch to the open cell, and closes cells that it goes beyond.
    fn gather(&mut self, batch: RecordBatch) -> Result<()> {
        let cells = batch.columns().last().ok_or_else(|| Error::Internal("a batch without a cell column".into()))?;
        let cells = cells.as_primitive::<UInt32Type>().values().clone();
        let width = batch.num_columns() - 1;
        let rows = batch.project(&(0..width).collect::<Vec<_>>())?;
        let mut from = 0;
        for run in cells.chunk_by(|a, b| a == b) {
            let part = compact(&rows.slice(from, run.len()))?;
            from += run.len();
            self.reserve(batch_size(&part))?;
            match &mut self.open {
                Some((cell, batches)) if *cell == run[0] => batches.push(part),
                _ => {
                    let closed = self.open.replace((run[0], vec![part]));
                    self.complete.extend(closed);
                }
            }
        }
        Ok(())
    }

    /// Anonymises a complete cell on a blocking thread.
    async fn work(&mut self, cell: u32, batches: Vec<RecordBatch>) -> Result<()> {
        let blueprint = Arc::clone(&self.blueprint);
        let task = SpawnedTask::spawn_blocking(move || {
            let schema =
                batches.first().map(RecordBatch::schema).unwrap_or_else(|| Arc::clone(&blueprint.treatment.input));
            let rows = concat_batches(&schema, &batches)?;
            drop(batches);
            cell::anonymise(&blueprint, cell, &rows)
        });
        let done = task.join().await.map_err(|error| Error::Internal(format!("grouping a cell failed: {error}")))??;
        self.metrics.cells.add(1);
        self.metrics.groups.add(done.measures.loss.groups() as usize);
        self.metrics.suppressed.add(done.measures.loss.suppressed() as usize);
        self.metrics.encoding.add_duration(done.encoding);
        self.metrics.grouping.add_duration(done.grouping);
        self.metrics.recoding.add_duration(done.recoding);
        self.metrics.baseline.elapsed_compute().add_duration(done.encoding + done.grouping + done.recoding);
        let mut tally = self.tally.lock().map_err(|_| Error::Internal("measures are poisoned".into()))?;
        match tally.measures.get_mut(self.partition) {
            Some(Some(sum)) => sum.merge(&done.measures),
            Some(none) => *none = Some(done.measures),
            None => return Err(Error::Internal(format!("there is no partition {}", self.partition))),
        }
        drop(tally);
        if done.rows.num_rows() > 0 {
            self.ready = Some((done.rows, 0));
        } else {
            self.release();
        }
        Ok(())
    }

    /// The last partition to end sees what all of them have published.
    fn end(&self) -> Result<()> {
        let mut tally = self.tally.lock().map_err(|_| Error::Internal("measures are poisoned".into()))?;
        tally.open = tally.open.saturating_sub(1);
        match tally.sum() {
            Some(measures) if tally.open == 0 => {
                self.metrics.smallest_cell.set(measures.cells.smallest as usize);
                self.metrics.largest_cell.set(measures.cells.largest as usize);
                if tally.whole { self.blueprint.refuse(&measures) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.held += bytes * WORKING_FACTOR;
        let wanted = self.held.max(self.floor);
        self.reservation.try_resize(wanted).map_err(|error| {
            Error::Resources(format!(
                "a cell needs {} of working memory, which the memory limit does not leave; raise --memory-limit, or \
                 lower --cell-rows or --partitions ({})",
                bytesize::ByteSize(self.held as u64),
                error.strip_backtrace()
            ))
        })
    }

    /// Gives back what finished cells have held.
    fn release(&mut self) {
        let waiting =
            self.complete.iter().chain(&self.open).flat_map(|(_, batches)| batches).map(batch_size).sum::<usize>();
        self.held = waiting * WORKING_FACTOR;
        self.reservation.resize(self.held.max(self.floor));
    }
}
