//! Rows to records: every run of rows of one class becomes one.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanArray, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
    UInt64Array, new_empty_array,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::{filter, is_not_null, partition, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use super::{Layout, PublishedOrder, TableLayout};
use crate::encode::compact_batch;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::measure::Groups;
use crate::operator::AnonymizeExec;
use crate::plan::{unary_plan, unary_properties};

/// Turns runs of rows of one class into records. Measures of the anonymising node below, which must not lie beyond an
/// exchange, may follow as the last record.
#[derive(Debug)]
pub(crate) struct CollapseExec {
    input: Arc<dyn ExecutionPlan>,
    order: PublishedOrder,
    layout: Arc<Layout>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl CollapseExec {
    /// Collapses the rows of a plan.
    pub(crate) fn try_new(input: Arc<dyn ExecutionPlan>, order: PublishedOrder) -> Result<Self> {
        let layout = Arc::new(Layout::new(&input.schema(), &order)?);
        let properties = unary_properties(&input, Arc::clone(&layout.records), EmissionType::Incremental);
        Ok(Self { input, order, layout, metrics: ExecutionPlanMetricsSet::new(), properties })
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Self::try_new(input, self.order.clone()).map_err(Error::into_datafusion)
    }

    /// The order that the records are for.
    #[cfg(feature = "cluster")]
    pub(crate) fn order(&self) -> &PublishedOrder {
        &self.order
    }
}

impl DisplayAs for CollapseExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollapseExec: class=[{}]", self.order.class.join(", "))
    }
}

impl ExecutionPlan for CollapseExec {
    unary_plan!("CollapseExec");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, self.order.row_context(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (layout, schema) = (Arc::clone(&self.layout), Arc::clone(&self.layout.records));
        let records = rows.map(move |batch| {
            let _timer = metrics.elapsed_compute().timer();
            layout.collapse_rows(&batch?).map_err(Error::into_datafusion)
        });
        let (below, layout) = (Arc::clone(&self.input), Arc::clone(&self.layout));
        let with_measures = self.order.with_measures;
        let measures = stream::once(async move {
            let measures = if with_measures { measures_of(&below, partition) } else { None };
            measures.map(|measures| layout.measures_record(&measures).map_err(Error::into_datafusion))
        });
        let stream = records.chain(measures.filter_map(std::future::ready));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Measures of one partition of the anonymising node below.
fn measures_of(plan: &Arc<dyn ExecutionPlan>, partition: usize) -> Option<Groups> {
    match plan.downcast_ref::<AnonymizeExec>() {
        Some(node) => node.measures_of(partition),
        None => plan.children().into_iter().find_map(|child| measures_of(child, partition)),
    }
}

impl Layout {
    /// The records of a batch of rows.
    fn collapse_rows(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let rows = RecordBatch::try_new(Arc::clone(&self.rows), compact_batch(rows)?.columns().to_vec())?;
        let key: Vec<ArrayRef> = self.key.iter().map(|&column| Arc::clone(rows.column(column))).collect();
        let runs = equal_runs(&key, rows.num_rows())?;
        let heads = UInt32Array::from_iter_values(runs.iter().map(|run| run.start as u32));
        let head = |columns: &[ArrayRef]| -> Result<Vec<ArrayRef>> {
            columns.iter().map(|column| Ok(take(column, &heads, None)?)).collect()
        };
        let classes = super::bytes_of(&self.key_bytes, &head(&key)?, runs.len())?;
        let parts = if self.part == key.len() {
            classes.iter().map(|class| class_part(class)).collect::<Vec<_>>()
        } else {
            let folders = key[..self.part].iter().map(|column| column.data_type());
            let folders = super::bytes_of(&super::row_converter(folders)?, &head(&key[..self.part])?, runs.len())?;
            folders.iter().map(|folder| class_part(folder)).collect()
        };
        let rest = match self.tables.as_slice() {
            [table] if runs.iter().any(|run| run.len() > self.max_run_rows) => Some(table.row_bytes(&rows)?),
            _ => None,
        };
        let mut records = Records::default();
        for ((run, class), part) in runs.iter().zip(&classes).zip(parts) {
            match &rest {
                Some(rest) if run.len() > self.max_run_rows => {
                    let part_of = |row: usize| if Fault::SpreadClass.is_planted() { row as u64 } else { part };
                    run.clone().for_each(|row| records.add_record(row..row + 1, class, &rest[row], part_of(row)));
                }
                _ => records.add_record(run.clone(), class, &[], part),
            }
        }
        let tables =
            self.tables.iter().enumerate().map(|(number, table)| table.record_lists(&rows, number, &records.rows));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let measures = StringArray::new_null(records.rows.len());
        records.finish(&self.records, tables, measures)
    }

    /// The record that carries measures.
    fn measures_record(&self, measures: &Groups) -> Result<RecordBatch> {
        let text = serde_json::to_string(measures).map_err(|error| Error::internal(error.to_string()))?;
        let mut records = Records::default();
        records.add_record(0..0, &[], &[], 0);
        let nothing = RecordBatch::new_empty(Arc::clone(&self.rows));
        let tables =
            self.tables.iter().enumerate().map(|(number, table)| table.record_lists(&nothing, number, &records.rows));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        records.finish(&self.records, tables, StringArray::from(vec![text]))
    }
}

/// Ranges of rows with equal values in all columns.
fn equal_runs(key: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
    match (key, rows) {
        (_, 0) => Ok(Vec::new()),
        ([], _) => Ok(std::iter::once(0..rows).collect()),
        _ => Ok(partition(key)?.ranges()),
    }
}

/// A number that every record of a class has, and mostly no other.
fn class_part(class: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(class).as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Records in the making.
#[derive(Default)]
struct Records {
    /// Rows of every record.
    rows: Vec<Range<usize>>,
    keys: BinaryBuilder,
    class_bytes: Vec<u32>,
    parts: Vec<u64>,
    key: Vec<u8>,
}

impl Records {
    fn add_record(&mut self, rows: Range<usize>, class: &[u8], rest: &[u8], part: u64) {
        self.rows.push(rows);
        self.key.clear();
        self.key.extend_from_slice(class);
        self.key.extend_from_slice(rest);
        self.keys.append_value(&self.key);
        self.class_bytes.push(class.len() as u32);
        self.parts.push(part);
    }

    fn finish(mut self, schema: &SchemaRef, tables: Vec<ArrayRef>, measures: StringArray) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.keys.finish()),
            Arc::new(UInt32Array::from(self.class_bytes)),
            Arc::new(UInt64Array::from(self.parts)),
        ];
        columns.extend(tables);
        columns.push(Arc::new(measures));
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

impl TableLayout {
    /// The columns that are not in the key.
    pub(super) fn rest_of(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        if self.rest.is_empty() {
            return vec![Arc::new(BooleanArray::new_null(rows.num_rows()))];
        }
        self.rest.iter().map(|&column| Arc::clone(rows.column(column))).collect()
    }

    /// The bytes of those columns, row by row.
    fn row_bytes(&self, rows: &RecordBatch) -> Result<Vec<Box<[u8]>>> {
        super::bytes_of(&self.rest_bytes, &self.rest_of(rows), rows.num_rows())
    }

    /// A list of rows for every record. The second of two tables has fewer rows than the first: those without a count are
    /// none.
    fn record_lists(&self, rows: &RecordBatch, number: usize, records: &[Range<usize>]) -> Result<ArrayRef> {
        let mut columns = self.rest_of(rows);
        let mut offsets: Vec<i32> = Vec::with_capacity(records.len() + 1);
        offsets.push(0);
        if number == 0 {
            offsets.extend(records.iter().map(|record| record.end as i32));
        } else {
            let counts = rows.column(rows.num_columns() - 1);
            let counted = is_not_null(counts)?;
            for column in &mut columns {
                *column = filter(column, &counted)?;
            }
            let mut end = 0;
            offsets.extend(records.iter().map(|record| {
                end += counted.slice(record.start, record.len()).true_count() as i32;
                end
            }));
        }
        let values: ArrayRef = match columns.first().map_or(0, |column| column.len()) {
            0 => new_empty_array(self.item_field().data_type()),
            _ => Arc::new(StructArray::try_new(self.fields.clone(), columns, None)?),
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(ListArray::try_new(self.item_field(), offsets, values, None)?))
    }
}
