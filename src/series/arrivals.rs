//! Rows without an identity: the files that they came in are remembered instead.
//!
//! A series that only appends, of rows that no column tells apart, reads every file of its source once. With each version of the
//! ledger lie two more private tables:
//!
//! - `consumed`: every file that was read, by the keyed digest of its path, the keyed digest of its size and version tag, the name
//!   that people may see, and the release that has read it;
//! - `waiting`: rows that were read and not published yet, as they are. They are the only raw rows that a state ever holds, and
//!   leave it when they are published or suppressed.
//!
//! Both are part of an immutable version, and so come into force together with the release. A row gets the identity by which
//! the ledger knows it when it is read: a keyed digest of what is read of it, of the release that meets it, and of its place among
//! rows that are alike. The same rows get the same identities, in whatever files and order they lie. A night that is tried again
//! finds the same files new.
//!
//! A file that was changed after it was read, or is gone, ends the run: nobody knows which of its rows were published, and a file
//! that was renamed would be published twice.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, FixedSizeBinaryBuilder, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, cast as cast_to, ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use super::key::{DIGEST_BYTES, LedgerKey, Purpose, SUBJECT_BYTES};
use super::night::{Night, SUBJECT_COLUMN, state};
use super::scratch::Scratch;
use super::state::{State, Stored};
use crate::error::{Error, Result};
use crate::source::InputFile;

/// The names of the tables in a version of the ledger.
pub(crate) const CONSUMED: &str = "consumed";
pub(crate) const WAITING: &str = "waiting";

/// The identity of a row that has none yet.
pub(crate) fn null_subject() -> Expr {
    lit(ScalarValue::FixedSizeBinary(SUBJECT_BYTES, None))
}

/// The files of a source beside those that were read before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals {
    /// The new ones, by their places among the files of the source.
    pub(crate) new: Vec<usize>,
    /// Those that were read before.
    pub(crate) old: Vec<usize>,
    consumed: Vec<Consumed>,
}

/// A file that was read.
#[derive(Debug, Clone)]
struct Consumed {
    path: Vec<u8>,
    tag: Vec<u8>,
    name: String,
    release: i64,
}

impl Arrivals {
    /// Tells new files from old ones, and refuses what has happened to old ones.
    pub(crate) async fn find(
        state: &State,
        ledger: Option<&Stored>,
        files: &[InputFile],
        context: &SessionContext,
    ) -> Result<Self> {
        let mut consumed = match ledger {
            Some(stored) => read_consumed(state.read_part(context, stored, &stored.version.consumed).await?).await?,
            None => Vec::new(),
        };
        let key = state.key();
        let known: HashMap<&[u8], &Consumed> = consumed.iter().map(|file| (file.path.as_slice(), file)).collect();
        let (mut new, mut old, mut changed, mut fresh) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let release = ledger.map_or(0, |stored| stored.version.number) as i64 + 1;
        for (at, file) in files.iter().enumerate() {
            let path = key.digest_text(Purpose::Path, &file.path);
            let tag = key.digest_text(Purpose::Tag, &file.tag);
            match known.get(path.as_slice()) {
                None => {
                    new.push(at);
                    fresh.push(Consumed { path, tag, name: file.name.clone(), release });
                }
                Some(before) if before.tag == tag => old.push(at),
                Some(before) => changed.push((*before).clone()),
            }
        }
        if let Some(first) = changed.first() {
            return Err(changed_files(first, changed.len()));
        }
        if old.len() < consumed.len() {
            let there: std::collections::HashSet<Vec<u8>> =
                old.iter().map(|at| key.digest_text(Purpose::Path, &files[*at].path)).collect();
            let gone: Vec<&Consumed> = consumed.iter().filter(|file| !there.contains(&file.path)).collect();
            if let Some(first) = gone.first() {
                return Err(gone_files(first, gone.len()));
            }
        }
        consumed.extend(fresh);
        Ok(Self { new, old, consumed })
    }

    /// The files that will have been read by the next release.
    pub(crate) fn consumed_files(&self, context: &SessionContext) -> Result<DataFrame> {
        let digests = |bytes: i32, of: fn(&Consumed) -> &[u8]| -> Result<ArrayRef> {
            let mut built = FixedSizeBinaryBuilder::with_capacity(self.consumed.len(), bytes);
            for file in &self.consumed {
                built.append_value(of(file))?;
            }
            Ok(Arc::new(built.finish()))
        };
        let names = StringArray::from_iter_values(self.consumed.iter().map(|file| file.name.as_str()));
        let releases = Int64Array::from_iter_values(self.consumed.iter().map(|file| file.release));
        let columns: [(&str, ArrayRef); 4] = [
            ("path", digests(DIGEST_BYTES, |file| file.path.as_slice())?),
            ("tag", digests(DIGEST_BYTES, |file| file.tag.as_slice())?),
            ("name", Arc::new(names)),
            ("release", Arc::new(releases)),
        ];
        Ok(context.read_batch(RecordBatch::try_from_iter(columns)?)?)
    }
}

async fn read_consumed(rows: Option<DataFrame>) -> Result<Vec<Consumed>> {
    let Some(rows) = rows else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for batch in rows.collect().await? {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| unreadable(name));
        let (paths, tags) = (column("path")?, column("tag")?);
        let (paths, tags) = (paths.as_fixed_size_binary_opt(), tags.as_fixed_size_binary_opt());
        let (Some(paths), Some(tags)) = (paths, tags) else { return Err(unreadable("path")) };
        let names = cast(column("name")?, &DataType::Utf8)?;
        let names = names.as_string::<i32>();
        let releases = column("release")?.as_primitive_opt::<Int64Type>().ok_or_else(|| unreadable("release"))?;
        found.extend((0..batch.num_rows()).map(|row| Consumed {
            path: paths.value(row).to_vec(),
            tag: tags.value(row).to_vec(),
            name: names.value(row).to_owned(),
            release: releases.value(row),
        }));
    }
    Ok(found)
}

fn unreadable(column: &str) -> Error {
    Error::conflict(format!(
        "the list of files that the series has read lacks its column `{column}`; restore series.state from its backup"
    ))
}

/// The other files beside one that is named, and the verb.
fn others_and_verb(count: usize) -> String {
    match count {
        1 => " is".to_owned(),
        2 => " and another file are".to_owned(),
        count => format!(" and {} other files are", count - 1),
    }
}

fn changed_files(first: &Consumed, count: usize) -> Error {
    Error::conflict(format!(
        "`{}`{} not as release {} of the series has read it, and nobody knows which of its rows were published; put it back \
         as it was, and bring new rows in files with new names",
        first.name,
        others_and_verb(count),
        first.release
    ))
}

fn gone_files(first: &Consumed, count: usize) -> Error {
    Error::input(format!(
        "`{}`{} gone, which release {} of the series has read; put it back: without [series] subject, files stay where they \
         were read, because under another name their rows would be published twice",
        first.name,
        others_and_verb(count),
        first.release
    ))
}

impl Night<'_> {
    /// The rows that wait after tonight, as they are, with their identities.
    pub(crate) async fn waiting_rows(&self) -> Result<DataFrame> {
        let waiting = format!(
            "SELECT subject FROM tomorrow WHERE state = {} AND since + {} > {}",
            state::WAITING,
            self.setting.series.max_wait,
            self.setting.number
        );
        self.of_subjects(self.scratch.sql(&waiting).await?)
    }
}

/// Gives every new row an identity, and puts it beside those that have waited: the table `arrived`, and a plan of all of them.
pub(crate) async fn keep_arrivals(
    scratch: &Scratch,
    key: &LedgerKey,
    number: u64,
    new: LogicalPlan,
    waiting: Option<DataFrame>,
    schema: &Schema,
) -> Result<LogicalPlan> {
    let session = || scratch.context().state();
    let names: Vec<String> =
        schema.fields().iter().map(|field| field.name().clone()).filter(|name| name != SUBJECT_COLUMN).collect();
    let read = || names.iter().map(ident).collect::<Vec<Expr>>();
    let digest = key.digest(Purpose::Row).call(read()).alias("__throng_row");
    let rows = DataFrame::new(session(), new).select(read().into_iter().chain([digest]).collect::<Vec<_>>())?;
    scratch.define_view("arriving", rows)?;
    // Rows that are alike may change places.
    let placed = "SELECT *, CAST(ROW_NUMBER() OVER (PARTITION BY \"__throng_row\") AS BIGINT) AS \"__throng_place\" FROM arriving";
    let placed = scratch.sql(placed).await?;
    let subject = key.digest(Purpose::Arrival(number)).call(vec![ident("__throng_row"), ident("__throng_place")]);
    let named = |name: &String| {
        if name == SUBJECT_COLUMN { subject.clone().alias(SUBJECT_COLUMN) } else { ident(name) }
    };
    let columns = schema.fields().iter().map(|field| named(field.name())).collect::<Vec<_>>();
    scratch.keep_rows("arrived", placed.select(columns)?).await?;
    let mut all = scratch.table("arrived").await?;
    if let Some(waiting) = waiting {
        let waiting = DataFrame::new(session(), waiting.into_unoptimized_plan());
        for field in schema.fields() {
            if waiting.schema().field_with_unqualified_name(field.name()).is_err() {
                return Err(Error::conflict(format!(
                    "the rows that wait in the state of the series lack the column `{}`; restore series.state from its backup",
                    field.name()
                )));
            }
        }
        let columns = schema.fields().iter();
        let columns = columns.map(|field| cast_to(ident(field.name()), field.data_type().clone()).alias(field.name()));
        all = all.union(waiting.select(columns.collect::<Vec<_>>())?)?;
    }
    Ok(all.into_unoptimized_plan())
}
