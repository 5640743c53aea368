//! Today beside yesterday: every subject of the source and of the ledger, and what it is tonight.
//!
//! The ledger is sorted by subject, and read once from its start to its end; the rows of today are dealt out and sorted bucket by
//! bucket ([`Dealt`]). Two rows of one subject stand side by side there, so they are noticed on the way.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Int64Array, PrimitiveArray, RecordBatch, UInt32Array,
    new_null_array,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::deal::Dealt;
use super::key::{DIGEST_BYTES, SUBJECT_BYTES};
use super::night::{Night, kind, state};
use super::scratch::{Scratch, ScratchFile};
use super::state::{ledger_schema, unsorted_error};
use crate::error::{Error, Result};
use crate::policy::SeriesMode;

/// Rows that are written at once.
const ROWS: usize = 8192;

/// Columns of the ledger beside the subject that the table holds as they are.
const KEPT: [&str; 8] = ["cohort", "history", "quasi", "content", "state", "since", "revised", "moved"];

/// What was found on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Merged {
    /// Rows of the source whose subject is null.
    nulls: u64,
    /// Rows of the source whose subject another row has.
    repeated: u64,
    /// Subjects by what they are tonight.
    kinds: [u64; 7],
}

impl Merged {
    /// Subjects that are something tonight.
    pub(crate) fn of_kind(&self, kind: i64) -> u64 {
        self.kinds[kind as usize]
    }

    /// All subjects of the source and of the ledger.
    pub(crate) fn all(&self) -> u64 {
        self.kinds.iter().sum()
    }
}

impl Night<'_> {
    /// Merges rows of today, as subject and digests, with the ledger: the table `merged`, in the order of subjects.
    pub(crate) async fn merge_subjects(&self, today: DataFrame, ledger: DataFrame) -> Result<Merged> {
        let today = Dealt::deal(&self.scratch, "today", today).await?;
        let schema = merged_schema();
        let file = self.scratch.create_file("merged", &schema)?;
        let appends = self.setting.series.mode == SeriesMode::Append;
        let mut merge = Merge { today, file, appends, found: Merged::default(), open: Open::default() };
        let columns = ["subject"].into_iter().chain(KEPT).collect::<Vec<_>>();
        let mut stream = Scratch::stream_in_order(ledger.select_columns(&columns)?).await?;
        let mut last = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            merge.add_ledger(&batch, &mut last)?;
        }
        let found = merge.finish()?;
        self.scratch.name_folder("merged", &schema).await?;
        self.ensure_unique(&found)?;
        Ok(found)
    }

    /// Rejects a source whose subject columns do not identify its subjects.
    fn ensure_unique(&self, found: &Merged) -> Result<()> {
        let columns = self.setting.series.subject.join("`, `");
        if found.nulls > 0 {
            return Err(Error::input(format!(
                "{} rows of the source do not say whose they are: `{columns}` is null; leave them out in source.sql, or name \
                 other columns as series.subject",
                found.nulls
            )));
        }
        if found.repeated > 0 {
            return Err(Error::input(format!(
                "{} rows of the source are of a subject that another row is of; a series has one row for each: name columns \
                 as series.subject that tell subjects apart (now `{columns}`)",
                found.repeated
            )));
        }
        Ok(())
    }
}

/// Subject, digests of the row of today where they are others, the columns of the ledger, and what the subject is.
fn merged_schema() -> SchemaRef {
    let ledger = ledger_schema();
    let digest = |name: &str| Arc::new(Field::new(name, DataType::FixedSizeBinary(DIGEST_BYTES), true));
    let mut fields = vec![Arc::new(ledger.field(0).clone()), digest("new_quasi"), digest("new_content")];
    fields.extend(ledger.fields().iter().skip(1).cloned());
    fields.push(Arc::new(Field::new("kind", DataType::Int64, false)));
    Arc::new(Schema::new(fields))
}

/// Rows that are not written yet.
#[derive(Default)]
struct Open {
    subjects: Vec<u8>,
    quasi: Vec<u8>,
    content: Vec<u8>,
    /// Whether the row of today is told.
    is_new: Vec<bool>,
    /// The row of the ledger, in the batch that is being merged.
    known: Vec<Option<u32>>,
    kinds: Vec<i64>,
}

struct Merge {
    today: Dealt,
    file: ScratchFile,
    appends: bool,
    found: Merged,
    open: Open,
}

/// The parts of a record of today.
fn parts_of(record: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (subject, digests) = record.split_at(SUBJECT_BYTES as usize);
    let (quasi, content) = digests.split_at(DIGEST_BYTES as usize);
    (subject, quasi, content)
}

impl Merge {
    /// Merges rows of the ledger, which come in order.
    fn add_ledger(&mut self, ledger: &RecordBatch, last: &mut Vec<u8>) -> Result<()> {
        let subjects = ledger.column(0).as_fixed_size_binary();
        for row in 0..ledger.num_rows() {
            let subject = subjects.value(row);
            if subject <= last.as_slice() {
                return Err(unsorted_error());
            }
            last.clear();
            last.extend_from_slice(subject);
            self.add_newcomers(Some(subject), Some(ledger))?;
            let is_there = match self.today.peek()? {
                Some(record) if parts_of(record).0 == subject => {
                    let (_, quasi, content) = parts_of(record);
                    let kind = kind_of_present(ledger, row, quasi, content, self.appends);
                    self.open.push(subject, (kind != kind::LIVE).then_some((quasi, content)), Some(row as u32), kind);
                    true
                }
                _ => false,
            };
            if is_there {
                self.today.advance();
                self.skip_repeated()?;
            } else {
                let kind = kind_of_absent(ledger, row, self.appends);
                self.open.push(subject, None, Some(row as u32), kind);
            }
            if self.open.kinds.len() >= ROWS {
                self.write_open(Some(ledger))?;
            }
        }
        self.write_open(Some(ledger))
    }

    /// Adds subjects of today that the ledger does not know, up to one that it knows.
    fn add_newcomers(&mut self, before: Option<&[u8]>, ledger: Option<&RecordBatch>) -> Result<()> {
        loop {
            match self.today.peek()? {
                Some(record) if before.is_none_or(|before| parts_of(record).0 < before) => {
                    let (subject, quasi, content) = parts_of(record);
                    self.open.push(subject, Some((quasi, content)), None, kind::NEW);
                }
                _ => return Ok(()),
            }
            self.today.advance();
            self.skip_repeated()?;
            if self.open.kinds.len() >= ROWS {
                self.write_open(ledger)?;
            }
        }
    }

    /// Skips records of the subject that was added last.
    fn skip_repeated(&mut self) -> Result<()> {
        let from = self.open.subjects.len() - SUBJECT_BYTES as usize;
        while self.today.peek()?.is_some_and(|record| parts_of(record).0 == &self.open.subjects[from..]) {
            self.today.advance();
            self.found.repeated += 1;
        }
        Ok(())
    }

    fn write_open(&mut self, ledger: Option<&RecordBatch>) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        let rows = open.kinds.len();
        if rows == 0 {
            return Ok(());
        }
        open.kinds.iter().for_each(|kind| self.found.kinds[*kind as usize] += 1);
        let nulls = NullBuffer::from(open.is_new);
        let mut columns: Vec<ArrayRef> = vec![
            digests(SUBJECT_BYTES, open.subjects, None)?,
            digests(DIGEST_BYTES, open.quasi, Some(nulls.clone()))?,
            digests(DIGEST_BYTES, open.content, Some(nulls))?,
        ];
        let known = UInt32Array::from(open.known);
        for (at, field) in ledger_schema().fields().iter().enumerate().skip(1) {
            columns.push(match ledger {
                Some(ledger) => take(ledger.column(at), &known, None)?,
                None => new_null_array(field.data_type(), rows),
            });
        }
        columns.push(Arc::new(Int64Array::from(open.kinds)));
        self.file.write_rows(&RecordBatch::try_new(merged_schema(), columns)?)
    }

    fn finish(mut self) -> Result<Merged> {
        self.add_newcomers(None, None)?;
        self.write_open(None)?;
        self.file.close()?;
        Ok(Merged { nulls: self.today.nulls, ..self.found })
    }
}

impl Open {
    fn push(&mut self, subject: &[u8], new: Option<(&[u8], &[u8])>, known: Option<u32>, kind: i64) {
        self.subjects.extend_from_slice(subject);
        let none = [0_u8; DIGEST_BYTES as usize];
        let (quasi, content) = new.unwrap_or((&none, &none));
        self.quasi.extend_from_slice(quasi);
        self.content.extend_from_slice(content);
        self.is_new.push(new.is_some());
        self.known.push(known);
        self.kinds.push(kind);
    }
}

fn digests(bytes: i32, values: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(Arc::new(FixedSizeBinaryArray::try_new(bytes, Buffer::from_vec(values), nulls)?))
}

/// A column of the merged table.
pub(super) fn merged_column<'a>(merged: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    merged.column_by_name(name).ok_or_else(|| Error::internal("a column of the merged table is missing"))
}

/// A column of the ledger by its name.
fn column<'a>(ledger: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    ledger.column_by_name(name)
}

fn state_of(ledger: &RecordBatch, row: usize) -> i64 {
    let states: Option<&PrimitiveArray<Int64Type>> = column(ledger, "state").and_then(|it| it.as_primitive_opt());
    states.map_or(0, |states| states.value(row))
}

/// What a subject of the ledger is that is in the source with these digests.
fn kind_of_present(ledger: &RecordBatch, row: usize, quasi: &[u8], content: &[u8], appends: bool) -> i64 {
    let is_same = |name: &str, now: &[u8]| {
        let was = column(ledger, name).and_then(|it| it.as_fixed_size_binary_opt());
        was.is_some_and(|was| was.is_valid(row) && was.value(row) == now)
    };
    match state_of(ledger, row) {
        state::WAITING => kind::NEW,
        state::WITHHELD => kind::WITHHELD,
        // A row stays as it was published, whatever the source holds later.
        _ if appends || is_same("quasi", quasi) && is_same("content", content) => kind::LIVE,
        _ => kind::CHANGED,
    }
}

/// What a subject of the ledger is that is not in the source.
fn kind_of_absent(ledger: &RecordBatch, row: usize, appends: bool) -> i64 {
    match state_of(ledger, row) {
        state::WAITING => kind::LAPSED,
        state::WITHHELD => kind::ABSENT,
        _ if appends => kind::LIVE,
        _ => kind::GONE,
    }
}
