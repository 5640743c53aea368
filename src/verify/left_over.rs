//! Source rows that no published row has covered so far, on disk.
//!
//! Published rows are looked up a part at a time. A source row that none of a part covers may be covered by one of the next,
//! so it is written to a spill file and read again then. What is left in the end is covered by none. The files are raw data
//! and lie where DataFusion spills to.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, SpillFile};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};

use crate::error::Result;

/// How a source row stands to the published rows of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// One covers it.
    Covered,
    /// Some have its unchanged values, and none covers it.
    Bare,
    /// None has its unchanged values: a row without its like has been found missing by then.
    Unknown,
}

/// What a pass over the source rows has found.
#[derive(Default)]
pub(crate) struct Passed {
    /// Source rows that each published row covers.
    pub(crate) covered: Vec<u64>,
    /// Published rows for which there is none.
    pub(crate) short: u64,
    /// Source rows that nothing covers, once the last published row was looked up.
    pub(crate) bare: u64,
    /// Those of them that wait for the next pass.
    pub(crate) left: Vec<Arc<dyn SpillFile>>,
}

/// Where source rows are spilled to, and whether they are: those that the last published rows do not cover are counted.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    manager: SpillManager,
    last: bool,
}

impl Shelf {
    /// A place for rows of a schema.
    pub(crate) fn new(runtime: Arc<RuntimeEnv>, rows: &Schema) -> Self {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        Self { manager: SpillManager::new(runtime, metrics, with_known(rows)), last: false }
    }

    /// The same for a pass that may be the last.
    pub(crate) fn for_pass(&self, last: bool) -> Self {
        Self { manager: self.manager.clone(), last }
    }
}

/// The columns of rows that wait: whether their unchanged values have been seen, and their own.
fn with_known(rows: &Schema) -> SchemaRef {
    let known = Arc::new(Field::new("known", DataType::Boolean, false));
    Arc::new(Schema::new([known].into_iter().chain(rows.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// Parts the columns of rows that have waited.
pub(crate) fn split_known(rows: &RecordBatch) -> Result<(BooleanArray, RecordBatch)> {
    let others: Vec<usize> = (1..rows.num_columns()).collect();
    Ok((rows.column(0).as_boolean().clone(), rows.project(&others)?))
}

/// Rows of one task that are left.
pub(crate) struct Kept {
    shelf: Shelf,
    /// Rows that are not on disk yet.
    waiting: Vec<RecordBatch>,
    files: Vec<Arc<dyn SpillFile>>,
    bare: u64,
}

/// Rows of a spill file.
const FILE_ROWS: usize = 1 << 16;

impl Kept {
    pub(crate) fn new(shelf: Shelf) -> Self {
        Self { shelf, waiting: Vec::new(), files: Vec::new(), bare: 0 }
    }

    /// Reads rows that have waited.
    pub(crate) fn read_spilled(&self, file: Arc<dyn SpillFile>) -> Result<SendableRecordBatchStream> {
        Ok(self.shelf.manager.read_spill_as_stream(file, None)?)
    }

    /// Keeps the rows of a batch that nothing covers.
    pub(crate) fn keep_uncovered(
        &mut self,
        rows: &RecordBatch,
        known: Option<&BooleanArray>,
        standing: &[Standing],
    ) -> Result<()> {
        let seen = |row: usize| standing[row] == Standing::Bare || known.is_some_and(|known| known.value(row));
        let left = |row: usize| standing[row] != Standing::Covered;
        if self.shelf.last {
            self.bare += (0..standing.len()).filter(|&row| left(row) && seen(row)).count() as u64;
            return Ok(());
        }
        let remaining: BooleanArray = (0..standing.len()).map(|row| Some(left(row))).collect();
        if remaining.true_count() == 0 {
            return Ok(());
        }
        let known: ArrayRef = Arc::new((0..standing.len()).map(|row| Some(seen(row))).collect::<BooleanArray>());
        let columns = [known].into_iter().chain(rows.columns().iter().cloned()).collect();
        let waiting = RecordBatch::try_new(Arc::clone(self.shelf.manager.schema()), columns)?;
        self.waiting.push(filter_record_batch(&waiting, &remaining)?);
        if self.waiting.iter().map(RecordBatch::num_rows).sum::<usize>() >= FILE_ROWS {
            self.spill_rows()?;
        }
        Ok(())
    }

    fn spill_rows(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let file = self.shelf.manager.spill_record_batch_and_finish(&waiting, "verify")?;
        self.files.extend(file);
        Ok(())
    }

    /// What was kept beside how many rows each published row covers.
    pub(crate) fn finish(mut self, covered: Vec<u64>) -> Result<Passed> {
        self.spill_rows()?;
        Ok(Passed { covered, bare: self.bare, left: self.files, ..Passed::default() })
    }
}
