//! The node that reads parts of a release from their first row to their last.
//!
//! Its input are the columns of the files, then the numbers of the folder and of the part that a file belongs to; the
//! files of a part come in their order, one part after the other. It emits the key of every class that begins, and how
//! many rows stood before one that they should follow.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::{Error, Result};
use crate::plan::{unary_plan, unary_properties};
use crate::published::exact::{KEY, byte_key};

/// The key of a class in a folder; null where rows are out of order.
pub(super) const CLASS: &str = "class";
/// The number of the part.
pub(super) const PART: &str = "part";
/// Rows that are out of order.
pub(super) const DISORDERED: &str = "disordered";

/// What is emitted.
pub(super) fn order_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(CLASS, KEY, true),
        Field::new(PART, DataType::UInt32, false),
        Field::new(DISORDERED, DataType::UInt64, false),
    ]))
}

/// Reads parts in their order.
#[derive(Debug)]
pub(super) struct OrderExec {
    input: Arc<dyn ExecutionPlan>,
    class_columns: Vec<String>,
    properties: Arc<PlanProperties>,
}

impl OrderExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, class_columns: Vec<String>) -> Self {
        let properties = unary_properties(&input, order_schema(), EmissionType::Incremental);
        Self { input, class_columns, properties }
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> DataFusionResult<Self> {
        Ok(Self::new(input, self.class_columns.clone()))
    }

    pub(super) fn class_columns(&self) -> &[String] {
        &self.class_columns
    }
}

impl DisplayAs for OrderExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderExec: class=[{}]", self.class_columns.join(", "))
    }
}

impl ExecutionPlan for OrderExec {
    unary_plan!("OrderExec");

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let mut reader = Reader { class_columns: self.class_columns.clone(), ..Reader::default() };
        let emitted = rows.map(move |batch| reader.read_batch(&batch?).map_err(Error::into_datafusion));
        Ok(Box::pin(RecordBatchStreamAdapter::new(order_schema(), emitted)))
    }
}

/// What was read of the parts of a partition.
#[derive(Default)]
struct Reader {
    class_columns: Vec<String>,
    /// The part that is being read.
    part: u32,
    before: Before,
}

impl Reader {
    /// Reads the next rows, which are of one file.
    fn read_batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let width = batch.num_columns().saturating_sub(2);
        let numbers = &batch.columns()[width..];
        let first = |column: usize| numbers[column].as_primitive::<UInt32Type>().values().first().copied();
        let (Some(folder), Some(part)) = (first(0), first(1)) else {
            return Ok(RecordBatch::new_empty(order_schema()));
        };
        if self.part != part {
            (self.part, self.before) = (part, Before::default());
        }
        let places: Vec<usize> = (0..width).collect();
        let (classes, disordered) = self.before.add_batch(&batch.project(&places)?, &self.class_columns)?;
        let mut keys: Vec<Option<i128>> = Vec::with_capacity(classes.len() + 1);
        let mut bytes = Vec::new();
        for class in &classes {
            bytes.clear();
            bytes.extend(folder.to_le_bytes());
            bytes.extend_from_slice(class.as_ref());
            keys.push(Some(byte_key(&bytes)));
        }
        let mut counts = vec![0; keys.len()];
        if disordered > 0 {
            keys.push(None);
            counts.push(disordered);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Decimal128Array::from(keys).with_data_type(KEY)),
            Arc::new(UInt32Array::from(vec![part; counts.len()])),
            Arc::new(UInt64Array::from(counts)),
        ];
        Ok(RecordBatch::try_new(order_schema(), columns)?)
    }
}

/// What was read of a part.
#[derive(Default)]
struct Before {
    order: Option<Order>,
    row: Option<OwnedRow>,
    class: Option<OwnedRow>,
}

/// How rows are compared.
struct Order {
    class: RowConverter,
    whole: RowConverter,
    class_places: Vec<usize>,
    places: Vec<usize>,
}

impl Order {
    fn new(schema: &Schema, class_columns: &[String]) -> Result<Self> {
        // Columns that are folder names are the same in all rows of a file.
        let class_places: Vec<usize> = class_columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let rest = (0..schema.fields().len()).filter(|place| !class_places.contains(place));
        let places: Vec<usize> = class_places.iter().copied().chain(rest).collect();
        let converter = |places: &[usize]| {
            RowConverter::new(places.iter().map(|&at| SortField::new(schema.field(at).data_type().clone())).collect())
        };
        Ok(Self { class: converter(&class_places)?, whole: converter(&places)?, class_places, places })
    }

    fn convert_rows(converter: &RowConverter, batch: &RecordBatch, places: &[usize]) -> Result<Option<Rows>> {
        let columns: Vec<ArrayRef> = places.iter().map(|&place| Arc::clone(batch.column(place))).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        Ok(Some(converter.convert_columns(&columns)?))
    }
}

impl Before {
    /// Reads the next rows of a part, and returns the classes that begin in them, and how many are out of order.
    fn add_batch(&mut self, batch: &RecordBatch, class_columns: &[String]) -> Result<(Vec<OwnedRow>, u64)> {
        let mut disordered = 0;
        let order = match self.order.take() {
            Some(order) => order,
            None => Order::new(&batch.schema(), class_columns)?,
        };
        if let Some(rows) = Order::convert_rows(&order.whole, batch, &order.places)? {
            let count = rows.num_rows();
            let behind = |before: &OwnedRow| count > 0 && rows.row(0) < before.row();
            disordered += u64::from(self.row.as_ref().is_some_and(behind));
            disordered += (1..count).filter(|&at| rows.row(at) < rows.row(at - 1)).count() as u64;
            self.row = count.checked_sub(1).map(|last| rows.row(last).owned()).or(self.row.take());
        }
        let mut new = Vec::new();
        if let Some(classes) = Order::convert_rows(&order.class, batch, &order.class_places)? {
            for at in 0..classes.num_rows() {
                let class = classes.row(at);
                let known = match at {
                    0 => self.class.as_ref().is_some_and(|before| before.row() == class),
                    _ => classes.row(at - 1) == class,
                };
                if !known {
                    new.push(class.owned());
                }
            }
            let last = classes.num_rows().checked_sub(1);
            self.class = last.map(|last| classes.row(last).owned()).or(self.class.take());
        }
        self.order = Some(order);
        Ok((new, disordered))
    }
}
