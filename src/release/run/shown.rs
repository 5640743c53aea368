//! Published files of a series as a night sees them: with the digests by which the ledger knows their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::logical_expr::ident;
use datafusion::prelude::DataFrame;

use crate::agreement::files;
use crate::error::Result;
use crate::ledger::manifest::OutputFile;
use crate::series::key::Purpose;
use crate::series::night::Night;
use crate::storage::Location;

/// Files as rows in the session of a night.
pub(super) async fn open_files(night: &Night<'_>, sink: &Location, files: &[OutputFile]) -> Result<DataFrame> {
    let output = &night.setting.bound_policy.output;
    let rows = files::open_published(night.scratch.context(), sink, files, Some(output)).await?;
    night.as_published(rows)
}

/// What files show of every row: its cohort, its content, and the columns that rules guard.
pub(super) async fn read_shown(
    night: &Night<'_>,
    sink: &Location,
    files: &[OutputFile],
    born: &BTreeMap<String, u64>,
) -> Result<DataFrame> {
    let bound_policy = &night.setting.bound_policy;
    let guarded =
        bound_policy.sensitive.iter().filter(|column| bound_policy.policy.privacy.guards_column(&column.name));
    let guarded: Vec<String> = guarded.map(|column| column.name.clone()).collect();
    with_cohorts(night, sink, files, born, &guarded).await
}

/// Some columns of published rows, with the digests of their cohort and of their content.
pub(super) async fn with_cohorts(
    night: &Night<'_>,
    sink: &Location,
    files: &[OutputFile],
    born: &BTreeMap<String, u64>,
    names: &[String],
) -> Result<DataFrame> {
    let bound_policy = &night.setting.bound_policy;
    let of = |rows: DataFrame, born: u64| -> Result<DataFrame> {
        let mut columns = vec![
            night.digest_expr(Purpose::Cohort(born), &bound_policy.class_columns()).alias("__throng_cohort"),
            night.digest_expr(Purpose::Content, &night.content_columns()).alias("__throng_content"),
        ];
        columns.extend(names.iter().map(ident));
        Ok(rows.select(columns)?)
    };
    let nights: BTreeSet<u64> = files.iter().filter_map(|file| born.get(&file.path)).copied().collect();
    let mut all: Option<DataFrame> = None;
    for night_of in nights {
        let of_night: Vec<OutputFile> =
            files.iter().filter(|file| born.get(&file.path) == Some(&night_of)).cloned().collect();
        let rows = of(open_files(night, sink, &of_night).await?, night_of)?;
        all = Some(match all {
            None => rows,
            Some(others) => others.union(rows)?,
        });
    }
    match all {
        Some(all) => Ok(all),
        None => {
            let nothing = RecordBatch::new_empty(Arc::clone(&bound_policy.output));
            of(night.scratch.context().read_batch(nothing)?, 0)
        }
    }
}
