//! Records, sorted by key, back to rows: those of a class in the order of their other columns.
//!
//! The rows of a class may come in several records, and these in several batches; the last class of a batch is held until
//! it is known to be complete. Of a class whose rows come one by one, in order, only what came before them as runs is held.
//! Rows leave in batches of one size, however many records they came in: files are cut between batches, and where they are
//! cut must not reveal how often a class came.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, StructArray, UInt32Array};
use datafusion::arrow::compute::{cast, concat, concat_batches, filter_record_batch, is_null, take};
use datafusion::arrow::datatypes::{SchemaRef, UInt32Type};
use datafusion::arrow::row::Rows;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};

use super::{Layout, PublishedOrder, TableLayout};
use crate::error::{Error, Result};
use crate::faults::Fault;

/// Turns records back into rows.
pub(crate) struct Expander {
    layout: Layout,
    /// The class that may have more rows.
    open: Option<OpenClass>,
    /// Rows of every table that do not fill a batch yet.
    partial: Vec<Vec<RecordBatch>>,
    /// Measures that came with the records.
    measures: Arc<Mutex<Vec<String>>>,
    /// For what is held of the open class.
    reservation: MemoryReservation,
    batch_rows: usize,
}

/// The rows of every table, batch by batch.
type Expanded = Vec<Vec<RecordBatch>>;

/// The tables of a release in their published order, and what came with them.
pub(crate) struct Tables<F> {
    /// Must be driven while the tables are read.
    pub(crate) pump: F,
    /// The rows of each table.
    pub(crate) streams: Vec<SendableRecordBatchStream>,
    /// Measures that came with the records, once all have been read.
    pub(crate) measures: Arc<Mutex<Vec<String>>>,
}

/// A class that may have more rows.
struct OpenClass {
    class: Vec<u8>,
    /// Rows of each table that came in runs, not sorted yet.
    runs: Vec<Vec<ArrayRef>>,
    /// The same once rows come one by one.
    sorted: Option<SortedRows>,
}

/// Rows in their order, the first of which have been published.
struct SortedRows {
    rows: ArrayRef,
    bytes: Rows,
    from: usize,
}

impl Expander {
    /// Turns records of rows of a schema back into them.
    pub(crate) fn try_new(
        rows: &SchemaRef,
        order: &PublishedOrder,
        reservation: MemoryReservation,
        batch_rows: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, order)?;
        let partial = vec![Vec::new(); layout.tables.len()];
        Ok(Self { layout, open: None, partial, measures: Arc::default(), reservation, batch_rows })
    }

    /// The tables that sorted records hold. An error ends the first of them.
    pub(crate) fn read_tables(
        mut self,
        mut records: SendableRecordBatchStream,
    ) -> Result<Tables<impl Future<Output = ()>>> {
        let (mut senders, mut streams) = (Vec::new(), Vec::<SendableRecordBatchStream>::new());
        for table in &self.layout.tables {
            let (sender, receiver) = mpsc::channel::<DataFusionResult<RecordBatch>>(1);
            senders.push(sender);
            let schema = Arc::new(self.layout.rows.project(&table.columns)?);
            streams.push(Box::pin(RecordBatchStreamAdapter::new(schema, receiver)));
        }
        let measures = Arc::clone(&self.measures);
        let pump = async move {
            loop {
                let next = records.next().await;
                let ended = next.is_none();
                let expanded = match next {
                    Some(Ok(records)) => self.expand_records(&records),
                    Some(Err(error)) => Err(error.into()),
                    None => self.finish(),
                };
                let expanded = match expanded {
                    Ok(expanded) => expanded,
                    Err(error) => {
                        // A writer that has failed no longer listens, and says why itself.
                        if let Some(first) = senders.first_mut() {
                            first.send(Err(error.into_datafusion())).await.ok();
                        }
                        return;
                    }
                };
                for (sender, batches) in senders.iter_mut().zip(expanded) {
                    for batch in batches {
                        if sender.send(Ok(batch)).await.is_err() {
                            return;
                        }
                    }
                }
                if ended {
                    return;
                }
            }
        };
        Ok(Tables { pump, streams, measures })
    }

    /// The rows that are known to be complete after some more records.
    fn expand_records(&mut self, records: &RecordBatch) -> Result<Expanded> {
        let records = &self.without_measures(records)?;
        let keys = records.column(0).as_binary::<i32>();
        let class_bytes = records.column(1).as_primitive::<UInt32Type>();
        let mut expanded = vec![Vec::new(); self.layout.tables.len()];
        let mut classes = class_ranges(keys, class_bytes);
        let class_of = |record: usize| &keys.value(record)[..class_bytes.value(record) as usize];
        if let Some(open) = &self.open {
            match classes.first().cloned() {
                Some(first) if open.class == class_of(first.start) => {
                    self.extend_class(records, first, &mut expanded)?;
                    classes.remove(0);
                }
                _ => {}
            }
            if !classes.is_empty() {
                self.close_class(&mut expanded)?;
            }
        }
        let Some(last) = classes.pop() else {
            self.reserve_memory()?;
            return Ok(expanded);
        };
        if let (Some(first), Some(end)) = (classes.first(), classes.last()) {
            let whole = first.start..end.end;
            let heads: Vec<&[u8]> = classes.iter().map(|class| class_of(class.start)).collect();
            for (number, table) in self.layout.tables.iter().enumerate() {
                let lists = records.column(3 + number).as_list::<i32>();
                let offsets = lists.value_offsets();
                let start = offsets[whole.start] as usize;
                let lengths: Vec<usize> =
                    classes.iter().map(|class| (offsets[class.end] - offsets[class.start]) as usize).collect();
                let rows = lists.values().slice(start, lengths.iter().sum());
                let batch = self.layout.rows_of(table, &heads, &lengths, &rows)?;
                cut_batches(&mut self.partial[number], batch, self.batch_rows, &mut expanded[number])?;
            }
        }
        let runs = vec![Vec::new(); self.layout.tables.len()];
        self.open = Some(OpenClass { class: class_of(last.start).to_vec(), runs, sorted: None });
        self.extend_class(records, last, &mut expanded)?;
        self.reserve_memory()?;
        Ok(expanded)
    }

    /// The rows that are left when there are no more records.
    fn finish(&mut self) -> Result<Expanded> {
        let mut expanded = vec![Vec::new(); self.layout.tables.len()];
        self.close_class(&mut expanded)?;
        for (partial, batches) in self.partial.iter().zip(&mut expanded) {
            if let Some(first) = partial.first() {
                batches.push(concat_batches(&first.schema(), partial)?);
            }
        }
        self.reservation.resize(0);
        Ok(expanded)
    }

    /// Adds records to the open class. Once its rows come one by one, those are complete up to the last of them.
    fn extend_class(&mut self, records: &RecordBatch, range: Range<usize>, expanded: &mut Expanded) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let keys = records.column(0).as_binary::<i32>();
        let class_bytes = open.class.len();
        let single = range.clone().find(|&record| keys.value(record).len() > class_bytes).unwrap_or(range.end);
        for (number, runs) in open.runs.iter_mut().enumerate() {
            let rows = rows_in(records, number, range.start..single);
            if !rows.is_empty() {
                runs.push(rows);
            }
        }
        if single == range.end {
            return Ok(());
        }
        let Some((table, runs)) = self.layout.tables.first().zip(open.runs.first_mut()) else { return Ok(()) };
        let sorted = match &mut open.sorted {
            Some(sorted) => sorted,
            none => none.insert(table.sort_runs(std::mem::take(runs))?),
        };
        let last = &keys.value(range.end - 1)[class_bytes..];
        let before = sorted.take_until(last);
        let singles = rows_in(records, 0, single..range.end);
        let rows = concat(&[before.as_ref(), singles.as_ref()])?;
        let batch = self.layout.rows_of(table, &[&open.class], &[rows.len()], &rows)?;
        cut_batches(&mut self.partial[0], batch, self.batch_rows, &mut expanded[0])
    }

    /// Publishes what is left of the open class.
    fn close_class(&mut self, expanded: &mut Expanded) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        for (number, (table, runs)) in self.layout.tables.iter().zip(open.runs).enumerate() {
            let rows = match &open.sorted {
                Some(sorted) if number == 0 => sorted.remaining_rows(),
                _ if runs.is_empty() => continue,
                _ => concat(&runs.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
            };
            let batch = self.layout.rows_of(table, &[&open.class], &[rows.len()], &rows)?;
            cut_batches(&mut self.partial[number], batch, self.batch_rows, &mut expanded[number])?;
        }
        Ok(())
    }

    /// The records that have rows. Measures of the others are noted.
    fn without_measures(&self, records: &RecordBatch) -> Result<RecordBatch> {
        let texts = records.column(records.num_columns() - 1).as_string::<i32>();
        if texts.null_count() == texts.len() {
            return Ok(records.clone());
        }
        let mut measures = self.measures.lock().map_err(|_| Error::internal("measures are poisoned"))?;
        measures.extend(texts.iter().flatten().map(str::to_owned));
        Ok(filter_record_batch(records, &is_null(texts)?)?)
    }

    fn reserve_memory(&mut self) -> Result<()> {
        let held = self.open.as_ref().map_or(0, OpenClass::held_bytes);
        self.reservation.try_resize(held).map_err(|error| {
            Error::resources(format!(
                "the rows of one class need {} while they are ordered, more than the memory limit leaves; raise \
                 --memory-limit ({})",
                bytesize::ByteSize(held as u64),
                error.strip_backtrace()
            ))
        })
    }
}

impl OpenClass {
    fn held_bytes(&self) -> usize {
        // Runs are parts of batches, which hold them together with others.
        let size =
            |rows: &ArrayRef| rows.to_data().get_slice_memory_size().unwrap_or_else(|_| rows.get_array_memory_size());
        let runs = self.runs.iter().flatten().map(size).sum::<usize>();
        runs + self.sorted.as_ref().map_or(0, |sorted| size(&sorted.rows) + sorted.bytes.size())
    }
}

impl SortedRows {
    /// The rows up to some bytes that have not been published yet.
    fn take_until(&mut self, last: &[u8]) -> ArrayRef {
        let from = self.from;
        let (mut low, mut high) = (from, self.rows.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.bytes.row(middle).data() <= last { low = middle + 1 } else { high = middle }
        }
        self.from = low;
        self.rows.slice(from, low - from)
    }

    /// All rows that have not been published yet.
    fn remaining_rows(&self) -> ArrayRef {
        self.rows.slice(self.from, self.rows.len() - self.from)
    }
}

/// Adds rows to those that do not fill a batch yet, and cuts off the batches that they fill.
fn cut_batches(
    partial: &mut Vec<RecordBatch>,
    rows: RecordBatch,
    batch_rows: usize,
    batches: &mut Vec<RecordBatch>,
) -> Result<()> {
    let held: usize = partial.iter().map(RecordBatch::num_rows).sum();
    let mut from = 0;
    if held > 0 {
        from = rows.num_rows().min(batch_rows - held);
        partial.push(rows.slice(0, from));
        if held + from < batch_rows {
            return Ok(());
        }
        batches.push(concat_batches(&rows.schema(), partial.iter())?);
        partial.clear();
    }
    while rows.num_rows() - from >= batch_rows {
        batches.push(rows.slice(from, batch_rows));
        from += batch_rows;
    }
    if from < rows.num_rows() {
        partial.push(rows.slice(from, rows.num_rows() - from));
    }
    Ok(())
}

/// Ranges of records of one class.
fn class_ranges(keys: &BinaryArray, class_bytes: &UInt32Array) -> Vec<Range<usize>> {
    let class = |record: usize| &keys.value(record)[..class_bytes.value(record) as usize];
    let mut classes: Vec<Range<usize>> = Vec::new();
    for record in 0..keys.len() {
        match classes.last_mut() {
            Some(last) if class(last.start) == class(record) => last.end = record + 1,
            _ => classes.push(record..record + 1),
        }
    }
    classes
}

/// The rows of one table in some records.
fn rows_in(records: &RecordBatch, table: usize, range: Range<usize>) -> ArrayRef {
    let lists = records.column(3 + table).as_list::<i32>();
    let offsets = lists.value_offsets();
    let (from, to) = (offsets[range.start] as usize, offsets[range.end] as usize);
    lists.values().slice(from, to - from)
}

impl TableLayout {
    /// All rows of a class that came in runs, in their order.
    fn sort_runs(&self, runs: Vec<ArrayRef>) -> Result<SortedRows> {
        let runs: Vec<&dyn Array> = runs.iter().map(AsRef::as_ref).collect();
        let rows = match runs.as_slice() {
            [] => datafusion::arrow::array::new_empty_array(self.item_field().data_type()),
            runs => concat(runs)?,
        };
        let order = self.order_inside(rows.as_struct(), &[rows.len()])?;
        let rows = match order {
            Some(order) => take(&rows, &order, None)?,
            None => rows,
        };
        let bytes = self.rest_bytes.convert_columns(rows.as_struct().columns())?;
        Ok(SortedRows { rows, bytes, from: 0 })
    }

    /// The order of rows inside classes, given the sizes of the classes; `None` if they already stand in
    /// it.
    fn order_inside(&self, rows: &StructArray, lengths: &[usize]) -> Result<Option<UInt32Array>> {
        if self.rest.is_empty() || Fault::GroupingOrder.is_planted() {
            return Ok(None);
        }
        let bytes = self.rest_bytes.convert_columns(rows.columns())?;
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let mut from = 0;
        for &length in lengths {
            order[from..from + length].sort_unstable_by(|&a, &b| bytes.row(a as usize).cmp(&bytes.row(b as usize)));
            from += length;
        }
        let sorted = order.iter().zip(0..).all(|(&row, place)| row == place);
        Ok((!sorted).then(|| UInt32Array::from(order)))
    }
}

impl Layout {
    /// The rows of classes of these sizes, one class after the other.
    fn rows_of(
        &self,
        table: &TableLayout,
        classes: &[&[u8]],
        lengths: &[usize],
        rows: &ArrayRef,
    ) -> Result<RecordBatch> {
        let rows = rows.as_struct();
        let order = table.order_inside(rows, lengths)?;
        let parser = self.key_bytes.parser();
        let key = self.key_bytes.convert_rows(classes.iter().map(|class| parser.parse(class)))?;
        let class_of_row = lengths.iter().zip(0_u32..).flat_map(|(&length, class)| std::iter::repeat_n(class, length));
        let class_of_row = UInt32Array::from_iter_values(class_of_row);
        let schema = Arc::new(self.rows.project(&table.columns)?);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(table.columns.len());
        for (&column, field) in table.columns.iter().zip(schema.fields()) {
            let in_rest = table.rest.iter().position(|other| *other == column);
            columns.push(match (in_rest, self.key.iter().position(|other| *other == column)) {
                (Some(place), _) => match &order {
                    Some(order) => take(rows.column(place), order, None)?,
                    None => Arc::clone(rows.column(place)),
                },
                (None, Some(place)) => {
                    let values = &key[place];
                    // Dictionaries come back as their values.
                    let values = if values.data_type() == field.data_type() {
                        Arc::clone(values)
                    } else {
                        cast(values, field.data_type())?
                    };
                    take(&values, &class_of_row, None)?
                }
                (None, None) => return Err(Error::internal(format!("column `{}` is in no record", field.name()))),
            });
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
