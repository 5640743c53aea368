//! The ledger of tomorrow, and what there is to count tonight.
//!
//! The merged table is in the order of subjects, and so is the next version of the ledger: it is written in one pass, beside the
//! rows that were given a cohort tonight, which are dealt out and sorted as those of today were ([`Dealt`]).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder, Int64Array, RecordBatch,
    UInt32Array, new_null_array,
};
use datafusion::arrow::compute::{interleave, take};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::logical_expr::{Expr, cast, ident};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::counts::SeriesCounts;
use super::deal::Dealt;
use super::key::{DIGEST_BYTES, LedgerKey, Purpose, SUBJECT_BYTES};
use super::merge::merged_column;
use super::night::{Night, SUBJECT_COLUMN, kind, state};
use super::retirement::Leaving;
use super::scratch::{Scratch, ScratchFile};
use super::state::{LedgerRows, ledger_schema, unsorted_error};
use crate::error::{Error, Result};

/// The digest of a cohort.
type Cohort = [u8; DIGEST_BYTES as usize];

impl Night<'_> {
    /// The rows to publish for the first time or anew.
    pub(crate) async fn rows_to_publish(&self) -> Result<DataFrame> {
        self.as_published(self.scratch.table("staged").await?)
    }

    /// Rows in the columns and types of the release.
    pub(crate) fn as_published(&self, rows: DataFrame) -> Result<DataFrame> {
        let fields = self.setting.bound_policy.output.fields().iter();
        let column =
            |name: &str| rows.schema().field_with_unqualified_name(name).map(|field| field.data_type().clone());
        let mut columns: Vec<Expr> = Vec::new();
        for field in fields {
            let plain = ident(field.name());
            let is_alike = column(field.name())? == *field.data_type();
            columns.push(if is_alike { plain } else { cast(plain, field.data_type().clone()).alias(field.name()) });
        }
        Ok(rows.select(columns)?)
    }

    /// Writes the next version of the ledger from what was decided: the table `tomorrow`. Returns its file, and what became of
    /// the rows.
    pub(crate) async fn build_tomorrow(&self, leaving: &Leaving) -> Result<(LedgerRows, SeriesCounts)> {
        let placed = self.scratch.table("staged").await?;
        let placed = placed.select(vec![ident(SUBJECT_COLUMN), ident("__throng_cohort")])?;
        let schema = ledger_schema();
        let mut writer = Writer {
            key: self.setting.key.clone(),
            number: self.setting.number as i64,
            max_wait: i64::from(self.setting.series.max_wait),
            placed: Dealt::deal(&self.scratch, "placed", placed).await?,
            leaving: self.read_leaving().await?,
            file: self.scratch.create_file("tomorrow", &schema)?,
            rows: 0,
            counts: SeriesCounts {
                retired_classes: leaving.classes,
                forgotten: self.forgotten,
                ..SeriesCounts::default()
            },
        };
        let mut stream = Scratch::stream_in_order(self.scratch.table("merged").await?).await?;
        let mut last = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            writer.add_rows(&batch, &mut last)?;
        }
        if writer.placed.peek()?.is_some() {
            return Err(Error::internal("a row was given a class that nobody knows of"));
        }
        let ledger = LedgerRows { path: writer.file.path().to_owned(), rows: writer.rows };
        writer.file.close()?;
        self.scratch.name_folder("tomorrow", &schema).await?;
        Ok((ledger, writer.counts))
    }

    /// The cohorts that leave tonight.
    async fn read_leaving(&self) -> Result<HashSet<Cohort>> {
        let mut found = HashSet::new();
        for batch in self.scratch.table("fates").await?.collect().await? {
            let cohorts = batch.column(0).as_fixed_size_binary();
            found.extend(cohorts.iter().flatten().filter_map(|cohort| Cohort::try_from(cohort).ok()));
        }
        Ok(found)
    }
}

/// Writes the ledger of tomorrow.
struct Writer {
    key: LedgerKey,
    number: i64,
    max_wait: i64,
    placed: Dealt,
    leaving: HashSet<Cohort>,
    file: ScratchFile,
    rows: u64,
    counts: SeriesCounts,
}

/// What happens to the rows of a batch.
struct Moves {
    /// The rows that the ledger goes on to hold.
    rows: Vec<u32>,
    /// The cohort that each of these was given tonight, as its place among all that were given.
    placed: Vec<Option<u32>>,
    cohorts: Vec<Cohort>,
    /// Whether its cohort leaves.
    leaves: Vec<bool>,
}

impl Writer {
    fn add_rows(&mut self, merged: &RecordBatch, last: &mut Vec<u8>) -> Result<()> {
        let moves = self.find_moves(merged, last)?;
        if moves.rows.is_empty() {
            return Ok(());
        }
        self.rows += moves.rows.len() as u64;
        let rows = UInt32Array::from(moves.rows.clone());
        let numbers = |name: &str| -> Result<Int64Array> {
            Ok(take(merged_column(merged, name)?, &rows, None)?.as_primitive::<Int64Type>().clone())
        };
        let (kinds, since, moved) = (numbers("kind")?, numbers("since")?, numbers("moved")?);
        let histories = merged_column(merged, "history")?.as_fixed_size_binary();
        let is_first = |at: usize| histories.is_null(moves.rows[at] as usize);
        let all = || 0..moves.rows.len();
        let since: Int64Array = all()
            .map(|at| match (moves.placed[at], since.is_valid(at)) {
                (Some(_), _) if is_first(at) => self.number,
                (_, true) => since.value(at),
                (_, false) => self.number,
            })
            .collect::<Vec<_>>()
            .into();
        let moved: Int64Array = all()
            .map(|at| match moves.placed[at].is_some() || moves.leaves[at] {
                true => Some(self.number),
                false => moved.is_valid(at).then(|| moved.value(at)),
            })
            .collect();
        let states: Int64Array = all()
            .map(|at| next_state(kinds.value(at), moves.placed[at].is_some(), moves.leaves[at]))
            .collect::<Vec<_>>()
            .into();
        all().for_each(|at| {
            let (placed, leaves) = (moves.placed[at].is_some(), moves.leaves[at]);
            self.count_row(kinds.value(at), placed, leaves, is_first(at), since.value(at));
        });
        let columns: Vec<ArrayRef> = vec![
            take(merged_column(merged, "subject")?, &rows, None)?,
            next_cohorts(merged, &moves, &kinds)?,
            self.next_histories(merged, &moves)?,
            next_digests(merged, &moves, "quasi", "new_quasi")?,
            next_digests(merged, &moves, "content", "new_content")?,
            Arc::new(states),
            Arc::new(since),
            next_revised(merged, &moves)?,
            Arc::new(moved),
        ];
        self.file.write_rows(&RecordBatch::try_new(ledger_schema(), columns)?)
    }

    /// Looks up what was decided of every row.
    fn find_moves(&mut self, merged: &RecordBatch, last: &mut Vec<u8>) -> Result<Moves> {
        let subjects = merged_column(merged, "subject")?.as_fixed_size_binary();
        let cohorts = merged_column(merged, "cohort")?.as_fixed_size_binary();
        let kinds = merged_column(merged, "kind")?.as_primitive::<Int64Type>();
        let mut moves = Moves { rows: Vec::new(), placed: Vec::new(), cohorts: Vec::new(), leaves: Vec::new() };
        for row in 0..merged.num_rows() {
            let subject = subjects.value(row);
            if subject <= last.as_slice() {
                return Err(unsorted_error());
            }
            last.clear();
            last.extend_from_slice(subject);
            let mut placed = None;
            if let Some(record) = self.placed.peek()? {
                let (who, cohort) = record.split_at(SUBJECT_BYTES as usize);
                if who == subject {
                    placed = Some(moves.cohorts.len() as u32);
                    moves.cohorts.extend(Cohort::try_from(cohort));
                }
            }
            if placed.is_some() {
                self.placed.advance();
            }
            if kinds.value(row) == kind::LAPSED {
                continue;
            }
            let leaves = !self.leaving.is_empty() && cohorts.is_valid(row) && self.leaving.contains(cohorts.value(row));
            moves.rows.push(row as u32);
            moves.placed.push(placed);
            moves.leaves.push(leaves);
        }
        Ok(moves)
    }

    /// The digest of a history, and of what has become of it tonight.
    fn next_histories(&self, merged: &RecordBatch, moves: &Moves) -> Result<ArrayRef> {
        let histories = merged_column(merged, "history")?;
        let is_first = |row: u32| histories.is_null(row as usize);
        let placed = cohort_array(&moves.cohorts)?;
        // Of those who go on in another cohort, and of those who are in none any more.
        let (mut going, mut into, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let mut picks = Vec::with_capacity(moves.rows.len());
        for (at, &row) in moves.rows.iter().enumerate() {
            picks.push(match moves.placed[at] {
                Some(cohort) if is_first(row) => (1, cohort as usize),
                Some(cohort) => {
                    going.push(row);
                    into.push(cohort);
                    (2, going.len() - 1)
                }
                None if moves.leaves[at] => {
                    ended.push(row);
                    (3, ended.len() - 1)
                }
                None => (0, row as usize),
            });
        }
        let of = |rows: Vec<u32>| take(histories, &UInt32Array::from(rows), None);
        let (count, left) = (going.len(), ended.len());
        let into = take(&placed, &UInt32Array::from(into), None)?;
        let going = self.key.digests(Purpose::History, &[of(going)?, into], count)?;
        let ended = self.key.digests(Purpose::History, &[of(ended)?], left)?;
        Ok(interleave(&[histories.as_ref(), &placed, going.as_ref(), ended.as_ref()], &picks)?)
    }

    /// Counts what became of a row.
    fn count_row(&mut self, kind: i64, is_placed: bool, leaves: bool, is_first: bool, since: i64) {
        let counts = &mut self.counts;
        let is_overdue = since + self.max_wait <= self.number;
        let waits = kind == kind::NEW && !is_placed;
        let comes_back_not = leaves && matches!(kind, kind::LIVE | kind::CHANGED) && !is_placed;
        counts.new += u64::from(is_placed && is_first);
        counts.returned += u64::from(is_placed && !is_first);
        counts.waiting += u64::from(waits && !is_overdue);
        counts.suppressed += u64::from(waits && is_overdue);
        counts.gone += u64::from(kind == kind::GONE && !leaves);
        counts.changed += u64::from(kind == kind::CHANGED && !leaves);
        counts.retired += u64::from(leaves);
        counts.withheld += u64::from(kind == kind::WITHHELD || comes_back_not);
    }
}

fn next_state(kind: i64, is_placed: bool, leaves: bool) -> i64 {
    match kind {
        _ if is_placed => state::LIVE,
        kind::NEW => state::WAITING,
        kind::WITHHELD | kind::ABSENT => state::WITHHELD,
        _ if leaves => state::WITHHELD,
        kind::LIVE => state::LIVE,
        _ => state::STALE,
    }
}

fn cohort_array(cohorts: &[Cohort]) -> Result<FixedSizeBinaryArray> {
    let mut built = FixedSizeBinaryBuilder::with_capacity(cohorts.len(), DIGEST_BYTES);
    for cohort in cohorts {
        built.append_value(cohort)?;
    }
    Ok(built.finish())
}

/// The cohort that a row is published in; none of one that is not.
fn next_cohorts(merged: &RecordBatch, moves: &Moves, kinds: &Int64Array) -> Result<ArrayRef> {
    let before = merged_column(merged, "cohort")?;
    let (placed, none) = (cohort_array(&moves.cohorts)?, new_null_array(before.data_type(), 1));
    let pick = |(at, &row): (usize, &u32)| match (moves.placed[at], kinds.value(at)) {
        (Some(cohort), _) => (1, cohort as usize),
        (None, kind::NEW | kind::WITHHELD | kind::ABSENT) => (2, 0),
        (None, _) if moves.leaves[at] => (2, 0),
        (None, _) => (0, row as usize),
    };
    let picks: Vec<(usize, usize)> = moves.rows.iter().enumerate().map(pick).collect();
    Ok(interleave(&[before.as_ref(), &placed, none.as_ref()], &picks)?)
}

/// What was published of a row: tonight where it was given a cohort, and before otherwise. The merged table does not repeat
/// digests that are as before.
fn next_digests(merged: &RecordBatch, moves: &Moves, before: &str, now: &str) -> Result<ArrayRef> {
    let (before, now) = (merged_column(merged, before)?, merged_column(merged, now)?);
    let pick = |(at, &row): (usize, &u32)| {
        let row = row as usize;
        if moves.placed[at].is_some() && now.is_valid(row) { (1, row) } else { (0, row) }
    };
    let picks: Vec<(usize, usize)> = moves.rows.iter().enumerate().map(pick).collect();
    Ok(interleave(&[before.as_ref(), now.as_ref()], &picks)?)
}

/// Whether a row was published with other values before.
fn next_revised(merged: &RecordBatch, moves: &Moves) -> Result<ArrayRef> {
    let digests = |name: &str| Ok::<_, Error>(merged_column(merged, name)?.as_fixed_size_binary());
    let (histories, before, now) = (digests("history")?, digests("content")?, digests("new_content")?);
    let revised = merged_column(merged, "revised")?.as_boolean();
    let is_revised = |(at, &row): (usize, &u32)| {
        let row = row as usize;
        let is_other = now.is_valid(row) && before.is_valid(row) && now.value(row) != before.value(row);
        revised.is_valid(row) && revised.value(row) || moves.placed[at].is_some() && histories.is_valid(row) && is_other
    };
    let revised: Vec<bool> = moves.rows.iter().enumerate().map(is_revised).collect();
    Ok(Arc::new(BooleanArray::from(revised)))
}
