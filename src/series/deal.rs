//! Digests dealt out by their first bits, so that what belongs together is sorted in memory and read in order.
//!
//! A table of all subjects is too large to be sorted as a whole, and sorting it by the usual way costs more than all else that
//! a night does. Digests are spread evenly, so their first bits deal them out to buckets of one size: files of records of one
//! width in the private folder of the run. Bucket after bucket is then read, sorted and forgotten.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::scratch::{Scratch, unwritable_file};
use crate::error::{Error, Result, io_reason};
use crate::plan::join_parts;

/// Number of buckets: a power of two, at most 256.
const BUCKETS: usize = 128;

/// Bytes that a task gathers for a bucket before it writes them.
const GATHERED: usize = 16 << 10;

/// Records dealt out, to be read in the order of their first digest.
pub(crate) struct Dealt {
    folder: PathBuf,
    /// Bytes of a record.
    width: usize,
    /// Rows without a first digest, which are left out.
    pub(crate) nulls: u64,
    reservation: MemoryReservation,
    next: usize,
    /// The records of the bucket that is being read, and their order.
    bucket: Vec<u8>,
    order: Vec<(u64, u32)>,
    at: usize,
}

impl Dealt {
    /// Deals out rows whose columns are digests.
    pub(crate) async fn deal(scratch: &Scratch, name: &str, rows: DataFrame) -> Result<Self> {
        let folder = scratch.folder().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| unwritable_file(&folder, &error))?;
        let files = (0..BUCKETS).map(|number| {
            let path = bucket_path(&folder, number);
            File::create(&path).map(Mutex::new).map_err(|error| unwritable_file(&path, &error))
        });
        let files = Arc::new(files.collect::<Result<Vec<_>>>()?);
        let streams = rows.execute_stream_partitioned().await?;
        let parts = streams.into_iter().map(|mut stream| {
            let mut dealer = Dealer { files: Arc::clone(&files), folder: folder.clone(), ..Dealer::default() };
            async move {
                while let Some(batch) = stream.try_next().await? {
                    dealer.deal_rows(&batch)?;
                }
                dealer.finish()
            }
        });
        let (mut width, mut nulls) = (0, 0);
        join_parts("dealing out digests", parts.collect::<Vec<_>>(), |part: (usize, u64)| {
            width = width.max(part.0);
            nulls += part.1;
            Ok(())
        })
        .await?;
        let pool = Arc::clone(&scratch.context().runtime_env().memory_pool);
        let reservation = MemoryConsumer::new("a bucket of digests").register(&pool);
        let (bucket, order) = (Vec::new(), Vec::new());
        Ok(Self { folder, width, nulls, reservation, next: 0, bucket, order, at: 0 })
    }

    /// The next record; none after the last one.
    pub(crate) fn peek(&mut self) -> Result<Option<&[u8]>> {
        while self.at == self.order.len() {
            if self.next == BUCKETS {
                return Ok(None);
            }
            self.read_bucket()?;
        }
        let (_, record) = self.order[self.at];
        Ok(Some(record_of(&self.bucket, record, self.width)))
    }

    /// Goes on to the record after the next one.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    fn read_bucket(&mut self) -> Result<()> {
        let path = bucket_path(&self.folder, self.next);
        (self.next, self.at) = (self.next + 1, 0);
        self.order.clear();
        let unreadable = |error: std::io::Error| {
            Error::resources(format!("{} cannot be read: {}", path.display(), io_reason(&error)))
        };
        let size = std::fs::metadata(&path).map_err(unreadable)?.len() as usize;
        let records = size.checked_div(self.width).unwrap_or(0);
        self.reservation.try_resize(size + records * size_of::<(u64, u32)>())?;
        self.bucket = std::fs::read(&path).map_err(unreadable)?;
        // What has been read is not needed again.
        let _ = std::fs::remove_file(&path);
        let first = |record: u32| {
            let start = record_of(&self.bucket, record, self.width).first_chunk::<8>();
            start.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        self.order.extend((0..records as u32).map(|record| (first(record), record)));
        let (bucket, width) = (&self.bucket, self.width);
        self.order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| record_of(bucket, a.1, width).cmp(record_of(bucket, b.1, width)))
        });
        Ok(())
    }
}

fn record_of(bucket: &[u8], record: u32, width: usize) -> &[u8] {
    &bucket[record as usize * width..][..width]
}

fn bucket_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("bucket-{number:03}"))
}

/// What one partition gathers for every bucket.
#[derive(Default)]
struct Dealer {
    files: Arc<Vec<Mutex<File>>>,
    folder: PathBuf,
    gathered: Vec<Vec<u8>>,
    width: usize,
    nulls: u64,
}

impl Dealer {
    fn deal_rows(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = rows.columns().iter().map(|column| column.as_fixed_size_binary_opt());
        let columns: Option<Vec<&FixedSizeBinaryArray>> = columns.collect();
        let columns = columns.filter(|columns| !columns.is_empty());
        let columns = columns.ok_or_else(|| Error::internal("what is dealt out is not digests"))?;
        self.width = columns.iter().map(|column| column.value_length() as usize).sum();
        self.gathered.resize_with(BUCKETS, Vec::new);
        for row in 0..rows.num_rows() {
            if columns[0].is_null(row) {
                self.nulls += 1;
                continue;
            }
            let number = usize::from(columns[0].value(row)[0]) * BUCKETS / 256;
            let bucket = &mut self.gathered[number];
            columns.iter().for_each(|column| bucket.extend_from_slice(column.value(row)));
            if bucket.len() >= GATHERED {
                self.write_bucket(number)?;
            }
        }
        Ok(())
    }

    fn write_bucket(&mut self, number: usize) -> Result<()> {
        let written = match self.files[number].lock() {
            Ok(mut file) => file.write_all(&self.gathered[number]),
            Err(_) => return Err(Error::internal("another part of the run has failed")),
        };
        self.gathered[number].clear();
        written.map_err(|error| unwritable_file(&bucket_path(&self.folder, number), &error))
    }

    fn finish(mut self) -> Result<(usize, u64)> {
        for number in 0..self.gathered.len() {
            self.write_bucket(number)?;
        }
        Ok((self.width, self.nulls))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryBuilder};
    use datafusion::prelude::SessionContext;

    use super::*;

    /// Digests of numbers, every seventh of them null, with the number itself beside them.
    fn rows(numbers: std::ops::Range<u64>) -> RecordBatch {
        let (mut digests, mut values) = (FixedSizeBinaryBuilder::new(32), FixedSizeBinaryBuilder::new(8));
        for number in numbers {
            match number % 7 {
                0 => digests.append_null(),
                _ => digests.append_value(blake3::hash(&number.to_le_bytes()).as_bytes()).unwrap(),
            }
            values.append_value(number.to_le_bytes()).unwrap();
        }
        let columns: [(&str, ArrayRef); 2] = [("who", Arc::new(digests.finish())), ("what", Arc::new(values.finish()))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    #[tokio::test]
    async fn what_was_dealt_out_comes_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionContext::new();
        let scratch = Scratch::create(&session, folder.path()).unwrap();
        let batches = vec![rows(0..5000), rows(4000..9000)];
        let mut dealt = Dealt::deal(&scratch, "dealt", session.read_batches(batches).unwrap()).await.unwrap();
        let mut found: Vec<Vec<u8>> = Vec::new();
        while let Some(record) = dealt.peek().unwrap() {
            found.push(record.to_vec());
            dealt.advance();
        }
        let record = |number: u64| [blake3::hash(&number.to_le_bytes()).as_bytes(), &number.to_le_bytes()[..]].concat();
        let numbers = (0..5000_u64).chain(4000..9000);
        let mut expected: Vec<Vec<u8>> = numbers.clone().filter(|number| number % 7 > 0).map(record).collect();
        expected.sort();
        assert!(found == expected, "{} of {}", found.len(), expected.len());
        assert_eq!(dealt.nulls, numbers.filter(|number| number % 7 == 0).count() as u64);
        assert!(dealt.peek().unwrap().is_none(), "it stays at its end");
    }

    #[tokio::test]
    async fn nothing_is_dealt_out_of_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionContext::new();
        let scratch = Scratch::create(&session, folder.path()).unwrap();
        let nothing = session.read_batch(rows(0..0)).unwrap();
        assert!(Dealt::deal(&scratch, "dealt", nothing).await.unwrap().peek().unwrap().is_none());
    }
}
