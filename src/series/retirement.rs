//! Which cohorts leave tonight.
//!
//! Cohorts whose share of stale rows is due are few on an ordinary night, and may be all of them on a bad one. So their members
//! are sorted by cohort, which spills, and looked at cohort after cohort. Of every member two sets of values are asked: what
//! was published of it, which the files of earlier releases tell by the digest of its content, and what the source holds now.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, FixedSizeBinaryBuilder, Int64Array, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::logical_expr::{Expr, JoinType, ident};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;
use throng_core::series::retire::{Fate, Judge, Member, Presence, Retirement};

use super::key::{DIGEST_BYTES, Purpose};
use super::night::{Night, SUBJECT_COLUMN, kind};
use crate::binding::SensitiveColumn;
use crate::encode::{SensitiveDomain, encode_sensitive};
use crate::error::{Error, Result};
use crate::model::{Axis, Shape, Table};
use crate::policy::SeriesMode;
use crate::privacy::{GroupView, Rules};
use crate::survey;

/// A file of the release before, with the release in which its rows were first published.
pub(crate) struct OldFile {
    /// Path below the sink.
    pub(crate) path: String,
    pub(crate) born: u64,
    /// Its rows, in the session of the night.
    pub(crate) rows: DataFrame,
}

/// What leaves tonight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving {
    /// The files that hold rows of it.
    pub(crate) files: Vec<String>,
    pub(crate) classes: u64,
}

/// What the table `fates` says of a cohort that leaves.
const SPLIT: i64 = 1;
const DISSOLVED: i64 = 2;

impl Night<'_> {
    /// Decides which cohorts leave: the tables `candidates`, `fresh` and `fates`.
    pub(crate) async fn retire_cohorts(&self, files: &[OldFile]) -> Result<Leaving> {
        let due = match self.setting.series.mode {
            SeriesMode::Snapshot => format!(
                "stale > 0 AND CAST(stale AS DOUBLE) >= {:?} * CAST(size AS DOUBLE)",
                self.setting.series.retire_at
            ),
            SeriesMode::Append => "FALSE".to_owned(),
        };
        let stale = self.merged.of_kind(kind::CHANGED) + self.merged.of_kind(kind::GONE);
        let due = if stale == 0 { "FALSE".to_owned() } else { due };
        let candidates = format!(
            "SELECT cohort FROM (SELECT cohort, COUNT(*) AS size, SUM(CASE WHEN kind = {live} THEN 0 ELSE 1 END) AS stale \
             FROM merged WHERE kind IN ({live}, {changed}, {gone}) GROUP BY cohort) WHERE {due}",
            live = kind::LIVE,
            changed = kind::CHANGED,
            gone = kind::GONE
        );
        self.scratch.keep_rows("candidates", self.scratch.sql(&candidates).await?).await?;
        let found = self.scratch.query_numbers("SELECT COUNT(*) FROM candidates").await?[0];
        self.pick_fresh(found).await?;
        if found == 0 {
            self.scratch.hold_rows("fates", Fates::default().finish()?)?;
            return Ok(Leaving::default());
        }
        self.read_published(files, found).await?;
        let fates = self.decide_all(found).await?;
        let classes = fates.count;
        self.scratch.hold_rows("fates", fates.finish()?)?;
        let mut leaving = Leaving { classes, ..Leaving::default() };
        for file in files {
            if self.holds_any(file, "fates", classes).await? {
                leaving.files.push(file.path.clone());
            }
        }
        Ok(leaving)
    }

    /// Whether a file holds rows of the cohorts in a table.
    async fn holds_any(&self, file: &OldFile, table: &str, size: u64) -> Result<bool> {
        let cohort = self.digest_expr(Purpose::Cohort(file.born), &self.setting.bound_policy.class_columns());
        let cohorts = file.rows.clone().select(vec![cohort.alias("held")])?;
        let wanted = self.scratch.joining(size).table(table).await?;
        let found = wanted.join(cohorts, JoinType::RightSemi, &["cohort"], &["held"], None)?;
        let found = found.limit(0, Some(1))?.collect().await?;
        Ok(found.iter().any(|batch| batch.num_rows() > 0))
    }

    /// The sensitive columns that a rule guards.
    fn guarded_columns(&self) -> Vec<&SensitiveColumn> {
        let bound_policy = &self.setting.bound_policy;
        bound_policy.sensitive.iter().filter(|column| bound_policy.policy.privacy.guards_column(&column.name)).collect()
    }

    /// What was published of members of candidates, by the digest of their content: the table `shown`.
    async fn read_published(&self, files: &[OldFile], candidates: u64) -> Result<()> {
        let mut all: Option<DataFrame> = None;
        for file in files {
            if !self.holds_any(file, "candidates", candidates).await? {
                continue;
            }
            let cohort = self.digest_expr(Purpose::Cohort(file.born), &self.setting.bound_policy.class_columns());
            let mut columns = vec![
                cohort.alias("held"),
                self.digest_expr(Purpose::Content, &self.content_columns()).alias("content"),
            ];
            columns.extend(
                self.guarded_columns()
                    .iter()
                    .enumerate()
                    .map(|(at, column)| ident(&column.name).alias(published_column(at))),
            );
            let rows = file.rows.clone().select(columns)?;
            let due = self.scratch.joining(candidates).table("candidates").await?;
            let rows = due.join(rows, JoinType::RightSemi, &["cohort"], &["held"], None)?;
            all = Some(match all {
                None => rows,
                Some(others) => others.union(rows)?,
            });
        }
        let Some(all) = all else { return Err(unmatched_error()) };
        let values = (0..self.guarded_columns().len()).map(|at| ident(published_column(at)));
        let columns: Vec<Expr> = std::iter::once(ident("content")).chain(values).collect();
        self.scratch.keep_rows("shown", all.select(columns)?.distinct()?).await
    }

    /// Decides cohort after cohort.
    async fn decide_all(&self, candidates: u64) -> Result<Fates> {
        let guarded = self.guarded_columns();
        let mut values = vec![ident(SUBJECT_COLUMN).alias("who")];
        values.extend(guarded.iter().enumerate().map(|(at, column)| ident(&column.name).alias(current_column(at))));
        self.scratch.define_view("fresh_values", self.scratch.table("fresh").await?.select(values)?)?;
        let columns = |name: fn(usize) -> String, table: &str| -> String {
            (0..guarded.len()).map(|at| format!(", {table}.{}", name(at))).collect()
        };
        let members = format!(
            "SELECT m.cohort, m.history, m.kind, m.revised, s.content IS NULL AS lost{shown}{now} FROM \
             (SELECT x.* FROM candidates c RIGHT SEMI JOIN merged x ON x.cohort = c.cohort) m LEFT JOIN shown s ON m.content = s.content \
             LEFT JOIN fresh_values f ON m.subject = f.who WHERE m.kind IN ({live}, {changed}, {gone}) ORDER BY m.cohort",
            shown = columns(published_column, "s"),
            now = columns(current_column, "f"),
            live = kind::LIVE,
            changed = kind::CHANGED,
            gone = kind::GONE
        );
        // Each of them has k rows at least, and seldom many more.
        let rows = candidates * 4 * u64::from(self.setting.bound_policy.policy.privacy.k);
        let mut stream = self.scratch.joining(rows).sql(&members).await?.execute_stream().await?;
        let schema = stream.schema();
        let mut fates = Fates::default();
        let mut open: Vec<RecordBatch> = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            let mut from = 0;
            for end in cohort_borders(&batch) {
                let run = batch.slice(from, end - from);
                if open.first().is_some_and(|first| cohort_of(first) != cohort_of(&run)) {
                    self.decide_cohort(&concat_batches(&schema, &std::mem::take(&mut open))?, &mut fates)?;
                }
                open.push(run);
                from = end;
            }
        }
        if !open.is_empty() {
            self.decide_cohort(&concat_batches(&schema, &open)?, &mut fates)?;
        }
        Ok(fates)
    }

    /// Decides what becomes of one cohort.
    fn decide_cohort(&self, rows: &RecordBatch, fates: &mut Fates) -> Result<()> {
        if rows.column(4).as_boolean().true_count() > 0 {
            return Err(unmatched_error());
        }
        let histories = rows.column(1).as_fixed_size_binary();
        let mut numbers = std::collections::BTreeMap::new();
        let (kinds, revised) = (rows.column(2).as_primitive::<Int64Type>(), rows.column(3).as_boolean());
        let member = |row: usize| {
            let next = numbers.len() as u32;
            Member {
                history: *numbers.entry(histories.value(row).to_vec()).or_insert(next),
                presence: match kinds.value(row) {
                    kind::LIVE => Presence::Live,
                    kind::CHANGED => Presence::Changed,
                    _ => Presence::Gone,
                },
                revised: revised.value(row),
            }
        };
        let members: Vec<Member> = (0..rows.num_rows()).map(member).collect();
        let guarded = self.guarded_columns();
        let (shown, now) = rows.columns()[5..].split_at(guarded.len());
        let bound_policy = &self.setting.bound_policy;
        let judge = ByRules {
            rules: survey::build_rules(bound_policy, &bound_policy.resolve_slices(&[])),
            published: judged_table(rows.num_rows(), &guarded, shown)?,
            current: judged_table(rows.num_rows(), &guarded, now)?,
        };
        let series = self.setting.series;
        let retirement = Retirement { retire_at: series.retire_at, dissolve: series.dissolve };
        match retirement.decide_fate(&members, &judge) {
            Fate::Keep => Ok(()),
            Fate::Split => fates.add_fate(cohort_of(rows), SPLIT),
            Fate::Dissolve => fates.add_fate(cohort_of(rows), DISSOLVED),
        }
    }

    /// Those who come back, in the order of the cohort that they come from.
    pub(crate) async fn returning_rows(&self) -> Result<DataFrame> {
        let back = format!(
            "SELECT m.subject AS __throng_who, m.cohort AS __throng_unit FROM merged m LEFT SEMI JOIN \
             (SELECT cohort FROM fates WHERE fate = {SPLIT}) d ON m.cohort = d.cohort WHERE m.kind IN ({live}, {changed})",
            live = kind::LIVE,
            changed = kind::CHANGED
        );
        let back = self.scratch.sql(&back).await?;
        let fresh = self.scratch.table("fresh").await?;
        let names: Vec<String> = fresh.schema().fields().iter().map(|field| field.name().clone()).collect();
        let rows = fresh.join(back, JoinType::Inner, &[SUBJECT_COLUMN], &["__throng_who"], None)?;
        let columns: Vec<Expr> = names.iter().map(ident).chain([ident("__throng_unit")]).collect();
        Ok(rows.select(columns)?.sort_by(vec![ident("__throng_unit")])?)
    }

    /// The rows of an old file whose cohorts stay.
    pub(crate) async fn staying_rows(&self, file: &OldFile, leaving: &Leaving) -> Result<DataFrame> {
        let names: Vec<String> = file.rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        let cohort = self.digest_expr(Purpose::Cohort(file.born), &self.setting.bound_policy.class_columns());
        let columns: Vec<Expr> = names.iter().map(ident).chain([cohort.alias("__throng_cohort")]).collect();
        let rows = file.rows.clone().select(columns)?;
        let fates = self.scratch.joining(leaving.classes).table("fates").await?;
        let rows = fates.join(rows, JoinType::RightAnti, &["cohort"], &["__throng_cohort"], None)?;
        Ok(rows.select(names.iter().map(ident).collect::<Vec<_>>())?)
    }
}

/// The name of a guarded column as it was published, and as it is now.
fn published_column(at: usize) -> String {
    format!("published_{at}")
}

fn current_column(at: usize) -> String {
    format!("current_{at}")
}

/// What to say when the ledger knows of rows that no file holds.
fn unmatched_error() -> Error {
    Error::conflict(
        "the ledger of the series knows of rows that the newest release does not hold; restore series.state and the sink \
         from backups of one moment, or begin a new series in an empty sink and an empty state",
    )
}

/// The ends of the runs of one cohort.
fn cohort_borders(batch: &RecordBatch) -> Vec<usize> {
    let cohorts = batch.column(0).as_fixed_size_binary();
    let is_end = |row: &usize| *row == batch.num_rows() || cohorts.value(*row - 1) != cohorts.value(*row);
    (1..=batch.num_rows()).filter(is_end).collect()
}

fn cohort_of(rows: &RecordBatch) -> &[u8] {
    rows.column(0).as_fixed_size_binary().value(0)
}

/// Asks the rules of the policy.
struct ByRules {
    rules: Rules,
    published: Table,
    current: Table,
}

impl Judge for ByRules {
    fn accepts_published(&self, members: &[u32]) -> bool {
        self.rules.are_met_by(&GroupView::new(&self.published, members))
    }

    fn accepts_current(&self, members: &[u32]) -> bool {
        self.rules.are_met_by(&GroupView::new(&self.current, members))
    }
}

/// Rows with nothing but their guarded values: rules of a series ask for nothing else.
fn judged_table(rows: usize, guarded: &[&SensitiveColumn], values: &[ArrayRef]) -> Result<Table> {
    let mut table = Table::new([Axis::new("", Shape::Line { span: 0 })], vec![0; rows]);
    for (column, values) in guarded.iter().zip(values) {
        let domain = SensitiveDomain { min: 0.0, max: 0.0, distinct: 0, reference: None };
        table.sensitive.push(encode_sensitive(column, &domain, values)?);
    }
    Ok(table)
}

/// The cohorts that leave.
#[derive(Default)]
struct Fates {
    cohorts: Vec<u8>,
    fates: Vec<i64>,
    count: u64,
}

impl Fates {
    fn add_fate(&mut self, cohort: &[u8], fate: i64) -> Result<()> {
        self.cohorts.extend_from_slice(cohort);
        self.fates.push(fate);
        self.count += 1;
        Ok(())
    }

    fn finish(self) -> Result<RecordBatch> {
        let mut cohorts = FixedSizeBinaryBuilder::with_capacity(self.fates.len(), DIGEST_BYTES);
        for cohort in self.cohorts.chunks_exact(DIGEST_BYTES as usize) {
            cohorts.append_value(cohort)?;
        }
        let schema = Schema::new(vec![
            Field::new("cohort", DataType::FixedSizeBinary(DIGEST_BYTES), false),
            Field::new("fate", DataType::Int64, false),
        ]);
        let columns: Vec<ArrayRef> = vec![Arc::new(cohorts.finish()), Arc::new(Int64Array::from(self.fates))];
        Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
    }
}
