//! The order in which rows are published: by what is published of them, and by nothing else.
//!
//! Rows leave the operator cell by cell and group by group, and that order reveals how groups were made. So before they are
//! written they are brought into the order of their published values: first the columns of their class, then all others.
//! Classes are dealt out to the parts of a release by a hash of their published values, and there are as many parts as the
//! number of rows asks for ([`PublishedOrder::part_count`]), so file borders reveal no more than that.
//!
//! ```text
//! WriteExec                 expand: records to rows, those of a class sorted by their other columns
//!   SortExec  key           by DataFusion, which spills by itself
//!     RepartitionExec       Hash(part): every class in one part
//!       CollapseExec        runs of rows of one class to a record each
//!         AnonymizeExec
//! ```
//!
//! The sort sees a **record** for a run of rows and not every row, and rows of a class mostly come in one run: it costs a
//! fraction of a sort of the rows. The key of a record is its class in a form whose bytes compare as the values do
//! ([`datafusion::arrow::row`]). A run that is too long to be held in memory beside its likes goes row by row; the keys of
//! such rows hold their other columns too.

pub(crate) mod collapse;
mod expand;

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryLimit, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use datafusion::prelude::SessionConfig;
use serde::{Deserialize, Serialize};

pub(crate) use collapse::CollapseExec;
pub(crate) use expand::{Expander, Tables};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::faults::Fault;
use crate::policy::qit_width;

/// The columns that rows are published in the order of: plain data, which can be sent to where rows are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedOrder {
    /// Columns whose values name folders.
    partition_by: Vec<String>,
    /// Columns that make up a class.
    class: Vec<String>,
    /// Whether the rows are two tables side by side.
    two_tables: bool,
    /// Whether measures must travel with the rows, because these are written by another process.
    with_measures: bool,
    /// Rows of a batch.
    batch_rows: usize,
    /// Rows that a class holds at least, and mostly not many more.
    k: usize,
}

impl PublishedOrder {
    /// The order of a release.
    pub(crate) fn new(
        bound_policy: &BoundPolicy,
        partition_by: &[String],
        with_measures: bool,
        batch_rows: usize,
    ) -> Self {
        Self {
            partition_by: partition_by.to_vec(),
            class: bound_policy.class_columns(),
            two_tables: bound_policy.form().is_two_tables(),
            with_measures,
            batch_rows,
            k: bound_policy.policy.privacy.k as usize,
        }
    }

    /// Rows of a run that is held in memory with others of its class; longer ones go row by row.
    fn max_run_rows(&self) -> usize {
        (4 * self.k).max(64)
    }

    /// How the records are sorted: as many in a batch as hold about the rows of one, in memory of their own. Of a pool that
    /// it shares with cells, which cannot spill, a sort would leave them nothing.
    pub(crate) fn record_context(&self, context: &TaskContext, partitions: usize) -> Arc<TaskContext> {
        let rows = context.runtime_env();
        let config = context.session_config().clone().with_extension(Arc::new(RowRuntime(Arc::clone(&rows))));
        let records = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => {
                let least = if limit >= 2 * MIN_RECORD_MEMORY { MIN_RECORD_MEMORY } else { 0 };
                let share = (limit / RECORD_SHARE / partitions.max(1)).max(least);
                let memory_pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(share));
                Arc::new(RuntimeEnv { memory_pool, ..rows.as_ref().clone() })
            }
            _ => Arc::clone(&rows),
        };
        let batch_rows = (self.batch_rows / self.k.max(1)).max(16);
        with_settings(context, config.with_batch_size(batch_rows), records)
    }

    /// How the rows are read that records are made of: as if there were no sort above.
    fn row_context(&self, context: &TaskContext) -> Arc<TaskContext> {
        let config = context.session_config();
        let runtime =
            config.get_extension::<RowRuntime>().map_or_else(|| context.runtime_env(), |rows| Arc::clone(&rows.0));
        with_settings(context, config.clone().with_batch_size(self.batch_rows), runtime)
    }

    /// The number of parts that a table of so many rows is published in: one for every batch, up to one for every
    /// partition. It does not follow the partitions of the scan, which tell how many files the source has and how large
    /// these are.
    pub(crate) fn part_count(&self, rows: u64, partitions: usize) -> usize {
        let batches = usize::try_from(rows.div_ceil(self.batch_rows.max(1) as u64)).unwrap_or(usize::MAX);
        batches.clamp(1, partitions.max(1))
    }

    /// Brings the rows of a plan into this order in so many parts, as records for [`Expander`].
    pub(crate) fn arrange_rows(&self, rows: Arc<dyn ExecutionPlan>, parts: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let collapsed: Arc<dyn ExecutionPlan> = Arc::new(CollapseExec::try_new(rows, self.clone())?);
        let column = |name: &str| -> Result<Arc<dyn PhysicalExpr>> {
            Ok(Arc::new(Column::new_with_schema(name, &collapsed.schema())?))
        };
        let (key, part) = (column(KEY)?, column(PART)?);
        let exchanged: Arc<dyn ExecutionPlan> = match (collapsed.output_partitioning().partition_count(), parts) {
            (0 | 1, 1) => collapsed,
            _ => Arc::new(RepartitionExec::try_new(collapsed, Partitioning::Hash(vec![part], parts))?),
        };
        if Fault::ClassOrder.is_planted() {
            return Ok(exchanged);
        }
        let order = LexOrdering::new([PhysicalSortExpr::new_default(key)]);
        let order = order.ok_or_else(|| Error::internal("records have no key"))?;
        Ok(Arc::new(SortExec::new(order, exchanged).with_preserve_partitioning(true)))
    }
}

/// The part of the memory limit that records are sorted in, beside what rows are grouped in.
const RECORD_SHARE: usize = 4;

/// What a partition has to sort records in unless the limit is very small: with less, merging many short runs takes minutes.
const MIN_RECORD_MEMORY: usize = 64 << 20;

/// Where the rows below a sort of records are worked on.
struct RowRuntime(Arc<RuntimeEnv>);

fn with_settings(context: &TaskContext, config: SessionConfig, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        runtime,
    ))
}

/// Columns of a record. The key: what orders it.
const KEY: &str = "key";
/// How many bytes of the key are the class; any others are the other columns of a single row.
const CLASS_BYTES: &str = "class_bytes";
/// By which records are dealt out to partitions.
const PART: &str = "part";
/// The rows, one column for every table.
const ROWS: [&str; 2] = ["rows", "more_rows"];
/// Measures, in a record that has no rows.
const MEASURES: &str = "measures";

/// How rows of a schema become records, and records rows.
#[derive(Debug)]
struct Layout {
    /// Schema of the rows.
    rows: SchemaRef,
    /// Schema of the records.
    records: SchemaRef,
    /// Places of the columns of the key: what names folders, then the class.
    key: Vec<usize>,
    /// How many of them, from the first, name folders, or identify classes where nothing does.
    part: usize,
    /// The tables that the rows are, with the places of the columns that are not in the key.
    tables: Vec<TableLayout>,
    key_bytes: RowConverter,
    max_run_rows: usize,
}

/// One of the tables.
#[derive(Debug)]
struct TableLayout {
    /// Places of its columns in the rows, in their order.
    columns: Vec<usize>,
    /// Places of those that are not in the key.
    rest: Vec<usize>,
    /// The same as the fields of a struct.
    fields: Fields,
    rest_bytes: RowConverter,
}

impl Layout {
    fn new(rows: &SchemaRef, order: &PublishedOrder) -> Result<Self> {
        let class = order.class.iter().filter(|name| !order.partition_by.contains(name));
        let key = order.partition_by.iter().chain(class).map(|name| Ok(rows.index_of(name)?));
        let key = key.collect::<Result<Vec<usize>>>()?;
        // Rows of a folder stay in one partition, so that it has few files.
        let part = if order.partition_by.is_empty() { key.len() } else { order.partition_by.len() };
        let tables = if order.two_tables {
            let width = qit_width(rows)?;
            vec![(0..width).collect(), (width - 1..rows.fields().len()).collect()]
        } else {
            vec![(0..rows.fields().len()).collect::<Vec<_>>()]
        };
        let tables = tables.into_iter().map(|columns| TableLayout::new(rows, columns, &key));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let key_bytes = row_converter(key.iter().map(|&column| rows.field(column).data_type()))?;
        let mut fields = vec![
            Field::new(KEY, DataType::Binary, false),
            Field::new(CLASS_BYTES, DataType::UInt32, false),
            Field::new(PART, DataType::UInt64, false),
        ];
        fields.extend(tables.iter().zip(ROWS).map(|(table, name)| Field::new(name, table.list_type(), false)));
        fields.push(Field::new(MEASURES, DataType::Utf8, true));
        let (rows, records, max_run_rows) = (Arc::clone(rows), Arc::new(Schema::new(fields)), order.max_run_rows());
        Ok(Self { rows, records, key, part, tables, key_bytes, max_run_rows })
    }
}

impl TableLayout {
    fn new(rows: &SchemaRef, columns: Vec<usize>, key: &[usize]) -> Result<Self> {
        let rest: Vec<usize> = columns.iter().copied().filter(|column| !key.contains(column)).collect();
        let mut fields: Vec<Field> = rest.iter().map(|&column| rows.field(column).clone()).collect();
        if fields.is_empty() {
            // A list must be of something to have a length.
            fields.push(Field::new("row", DataType::Boolean, true));
        }
        let rest_bytes = row_converter(fields.iter().map(Field::data_type))?;
        Ok(Self { columns, rest, fields: fields.into(), rest_bytes })
    }

    fn item_field(&self) -> Arc<Field> {
        Arc::new(Field::new_list_field(DataType::Struct(self.fields.clone()), false))
    }

    fn list_type(&self) -> DataType {
        DataType::List(self.item_field())
    }
}

/// Turns values into bytes that compare as the values do: ascending, nulls first.
fn row_converter<'a>(types: impl Iterator<Item = &'a DataType>) -> Result<RowConverter> {
    Ok(RowConverter::new(types.map(|data_type| SortField::new(data_type.clone())).collect())?)
}

/// The bytes of some columns, row by row; empty where there are no columns.
fn bytes_of(converter: &RowConverter, columns: &[ArrayRef], rows: usize) -> Result<Vec<Box<[u8]>>> {
    if columns.is_empty() {
        return Ok(vec![Box::default(); rows]);
    }
    Ok(converter.convert_columns(columns)?.iter().map(|row| row.data().into()).collect())
}

#[cfg(test)]
mod tests;
