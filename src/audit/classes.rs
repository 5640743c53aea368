//! Published rows class by class, with the values of one sensitive column. Rows are brought together and laid in order by
//! the fingerprint of their class, whatever order they were written in, so every core sees whole classes, and DataFusion
//! spills what memory does not hold.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::common::HashMap;
use datafusion::common::runtime::JoinSet;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{ident, lit};
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::fingerprint::{class, fingerprint};
use super::together::together;
use crate::encode::{SensitiveDomain, compact, encode_sensitive, row_hashes};
use crate::error::{Error, Result};
use crate::model::Sensitive;
use crate::privacy::Histogram;
use crate::treatment::SensitiveColumn;
use crate::verify::Watch;

/// Rows that are looked at together.
const CHUNK_ROWS: usize = 1 << 16;

/// Folds all classes: `add` gets how often each value occurs in a class, by codes in their order, and what the codes mean.
/// Classes come in no order, and parts of the result are merged in none.
pub(super) async fn fold_classes<T: Clone + Send + 'static>(
    rows: &DataFrame,
    class_columns: &[String],
    (column, domain): (&SensitiveColumn, &SensitiveDomain),
    first: T,
    add: impl Fn(&mut T, Histogram<'_>, &Sensitive) + Clone + Send + 'static,
    merge: impl Fn(&mut T, T),
    watch: &Watch<'_>,
) -> Result<T> {
    let mut wanted = fingerprint(class_columns);
    wanted.extend([ident(&column.name).alias("value"), lit(1_u32).alias("size")]);
    let wanted = rows.clone().select(wanted)?;
    let context = Arc::new(wanted.task_ctx());
    let plan = together(wanted.create_physical_plan().await?, &["class_a", "class_b"], true)?;
    watch(&plan);
    let mut tasks = JoinSet::new();
    for stream in execute_stream_partitioned(plan, context)? {
        let (mut part, add, column, domain) = (first.clone(), add.clone(), column.clone(), domain.clone());
        tasks.spawn(async move {
            let mut chunks = Chunks::new(stream);
            while let Some(chunk) = chunks.next().await? {
                for_each_class(&chunk, &column, &domain, |histogram, sensitive| add(&mut part, histogram, sensitive))?;
            }
            Ok::<T, Error>(part)
        });
    }
    let mut whole = first;
    while let Some(part) = tasks.join_next().await {
        merge(&mut whole, part.map_err(|error| Error::Internal(format!("reading classes failed: {error}")))??);
    }
    Ok(whole)
}

/// The classes of a chunk that holds them whole.
fn for_each_class(
    chunk: &RecordBatch,
    column: &SensitiveColumn,
    domain: &SensitiveDomain,
    mut see: impl FnMut(Histogram<'_>, &Sensitive),
) -> Result<()> {
    let sensitive = encode_sensitive(column, domain, chunk.column(2))?;
    let sizes = sizes(chunk);
    let mut histogram: Vec<(u32, u32)> = Vec::new();
    let mut from = 0;
    while from < chunk.num_rows() {
        let this = class(chunk, from);
        let until = (from + 1..chunk.num_rows()).find(|row| class(chunk, *row) != this).unwrap_or(chunk.num_rows());
        histogram.clear();
        histogram.extend((from..until).map(|row| (sensitive.codes[row], sizes[row])));
        histogram.sort_unstable_by_key(|(code, _)| *code);
        histogram.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            earlier.1 += if same { later.1 } else { 0 };
            same
        });
        see(&histogram, &sensitive);
        from = until;
    }
    Ok(())
}

fn sizes(chunk: &RecordBatch) -> &[u32] {
    chunk.column(3).as_primitive::<UInt32Type>().values()
}

/// Rows that come class by class, in chunks that end where a class does.
struct Chunks {
    stream: SendableRecordBatchStream,
    waiting: Vec<RecordBatch>,
    /// Rows that wait, and rows that make a chunk.
    rows: usize,
    enough: usize,
}

impl Chunks {
    fn new(stream: SendableRecordBatchStream) -> Self {
        Self { stream, waiting: Vec::new(), rows: 0, enough: CHUNK_ROWS }
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let batch = self.stream.try_next().await?;
            let ended = batch.is_none();
            self.rows += batch.as_ref().map_or(0, RecordBatch::num_rows);
            self.waiting.extend(batch);
            if self.rows == 0 && ended {
                return Ok(None);
            }
            if self.rows < self.enough && !ended {
                continue;
            }
            let chunk = concat_batches(&self.stream.schema(), &self.waiting)?;
            // The last class may go on.
            let cut = if ended { chunk.num_rows() } else { last_class(&chunk) };
            let rest = match cut {
                0 => squeeze(&chunk)?,
                _ => compact(&chunk.slice(cut, chunk.num_rows() - cut))?,
            };
            self.rows = rest.num_rows();
            self.enough = CHUNK_ROWS.max(2 * self.rows);
            self.waiting = vec![rest];
            if cut > 0 {
                return Ok(Some(chunk.slice(0, cut)));
            }
        }
    }
}

/// Where the last class of a chunk begins.
fn last_class(chunk: &RecordBatch) -> usize {
    let Some(last) = chunk.num_rows().checked_sub(1) else { return 0 };
    let of_last = class(chunk, last);
    (0..=last).rev().take_while(|row| class(chunk, *row) == of_last).last().unwrap_or(0)
}

/// A chunk of one class with every value once: what a class takes does not grow with its rows.
fn squeeze(chunk: &RecordBatch) -> Result<RecordBatch> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let (mut first, mut counts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let hashes = row_hashes(std::slice::from_ref(chunk.column(2)), chunk.num_rows(), 0)?;
    for ((row, hash), size) in (0..).zip(hashes).zip(sizes(chunk)) {
        let place = *places.entry(hash).or_insert_with(|| {
            first.push(row);
            counts.push(0);
            counts.len() - 1
        });
        counts[place] += size;
    }
    let kept = take_record_batch(chunk, &UInt32Array::from(first))?;
    let mut columns = kept.columns().to_vec();
    columns[3] = Arc::new(UInt32Array::from(counts)) as ArrayRef;
    compact(&RecordBatch::try_new(chunk.schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{StringViewArray, UInt64Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::*;

    fn batch(classes: &[u64], values: &[&str]) -> RecordBatch {
        let classes: ArrayRef = Arc::new(UInt64Array::from(classes.to_vec()));
        let values: ArrayRef = Arc::new(StringViewArray::from(values.to_vec()));
        let sizes: ArrayRef = Arc::new(UInt32Array::from(vec![1; values.len()]));
        let columns = [("class_a", Arc::clone(&classes)), ("class_b", classes), ("value", values), ("size", sizes)];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// Class and rows of every chunk's runs.
    async fn read(batches: Vec<RecordBatch>, enough: usize) -> Vec<Vec<(u64, u32)>> {
        let schema = batches[0].schema();
        let stream = RecordBatchStreamAdapter::new(schema, stream::iter(batches.into_iter().map(Ok)));
        let mut chunks = Chunks { enough, ..Chunks::new(Box::pin(stream)) };
        let mut found = Vec::new();
        while let Some(chunk) = chunks.next().await.unwrap() {
            let rows: Vec<usize> = (0..chunk.num_rows()).collect();
            let runs = rows.chunk_by(|&a, &b| class(&chunk, a) == class(&chunk, b));
            found.push(
                runs.map(|run| (class(&chunk, run[0]).0, run.iter().map(|&row| sizes(&chunk)[row]).sum())).collect(),
            );
            chunks.enough = enough.max(2 * chunks.rows);
        }
        found
    }

    #[tokio::test]
    async fn chunks_end_where_classes_do() {
        let batches =
            vec![batch(&[1, 1, 2], &["a", "b", "a"]), batch(&[2, 2, 3], &["a", "b", "c"]), batch(&[3], &["c"])];
        for enough in 1..8 {
            let found = read(batches.clone(), enough).await;
            assert_eq!(found.concat(), [(1, 2), (2, 3), (3, 2)], "{enough}");
        }
        assert_eq!(read(batches, 100).await.len(), 1);
    }

    #[tokio::test]
    async fn a_class_takes_no_more_than_its_values() {
        let many = vec![batch(&[7; 100], &["a", "b", "a", "a"].repeat(25)); 50];
        assert_eq!(read(many, 10).await, [[(7, 5000)]]);
        let squeezed = squeeze(&batch(&[7; 4], &["a", "b", "a", "a"])).unwrap();
        assert_eq!((squeezed.num_rows(), sizes(&squeezed)), (2, &[3, 1][..]));
        assert_eq!(squeezed.column(2).as_string_view().iter().flatten().collect::<Vec<_>>(), ["a", "b"]);
    }
}
