//! The form `anatomy` as a release: two datasets beside each other, `qit/` and `st/` in the folder of the run.
//!
//! - `qit/`: one row per person, quasi-identifiers and kept columns as they are, and the number of the group;
//! - `st/`: one row per group and combination of sensitive values, with its count.
//!
//! The operator emits both side by side; here they are parted on the way to their files, and read back and checked
//! against each other, against the rules and against the source.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{HashMap, JoinType};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::functions_nested::expr_fn::array_repeat;
use datafusion::logical_expr::{cast, ident, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};

use super::location::Location;
use super::manifest::OutputFile;
use super::verify::{self, Finding};
use crate::error::{Error, Result};
use crate::job::{COUNT, Form, GROUP, Role, Treatment};

/// Folder of the quasi-identifier table below that of the run.
pub(super) const QIT: &str = "qit";
/// Folder of the sensitive table below that of the run.
pub(super) const ST: &str = "st";

/// Columns of the quasi-identifier table, the group included, when rows of this schema are both tables side by side.
pub(super) fn width(schema: &SchemaRef) -> Result<usize> {
    let group = schema.index_of(GROUP).map_err(|_| Error::Internal("two tables without a group column".into()))?;
    Ok(group + 1)
}

/// Parts rows that are both tables side by side. The two streams must be read at the same time as the future is driven;
/// an error ends the first with it.
pub(super) fn part(
    mut rows: SendableRecordBatchStream,
) -> Result<(impl Future<Output = ()>, SendableRecordBatchStream, SendableRecordBatchStream)> {
    let schema = rows.schema();
    let width = width(&schema)?;
    let left: Vec<usize> = (0..width).collect();
    let right: Vec<usize> = (width - 1..schema.fields().len()).collect();
    let (mut to_left, from_left) = mpsc::channel::<DataFusionResult<RecordBatch>>(1);
    let (mut to_right, from_right) = mpsc::channel::<DataFusionResult<RecordBatch>>(1);
    let stream = |columns: &[usize], rows| -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::new(schema.project(columns)?), rows)))
    };
    let (qit, st) = (stream(&left, from_left)?, stream(&right, from_right)?);
    let pump = async move {
        while let Some(batch) = rows.next().await {
            let parts = batch.and_then(|batch| Ok((batch.project(&left)?, counted(&batch.project(&right)?)?)));
            let (mine, theirs) = match parts {
                Ok((mine, theirs)) => (Ok(mine), Some(theirs)),
                Err(error) => (Err(error), None),
            };
            let failed = mine.is_err();
            // A writer that has failed no longer listens, and says why itself.
            let sent = to_left.send(mine).await.is_ok();
            let sent = sent
                && match theirs {
                    Some(theirs) if theirs.num_rows() > 0 => to_right.send(Ok(theirs)).await.is_ok(),
                    _ => true,
                };
            if failed || !sent {
                break;
            }
        }
    };
    Ok((pump, qit, st))
}

/// The rows that hold a row of the sensitive table.
fn counted(rows: &RecordBatch) -> DataFusionResult<RecordBatch> {
    let counts = rows.column(rows.num_columns() - 1);
    Ok(filter_record_batch(rows, &is_not_null(counts)?)?)
}

/// The two tables of a release.
#[derive(Debug)]
pub(super) struct Tables {
    /// Quasi-identifiers and kept columns.
    pub(super) qit: DataFrame,
    st: DataFrame,
}

impl Tables {
    /// Opens the published files; none for releases of one table. A table that has lost all its files is an error.
    pub(super) async fn of(
        context: &SessionContext,
        sink: &Location,
        files: &[OutputFile],
        form: Form,
    ) -> Result<Option<Self>> {
        if !form.is_two_tables() {
            return Ok(None);
        }
        let of = |table: &str| -> Vec<OutputFile> {
            let inside = |file: &&OutputFile| file.path.rsplit('/').nth(1) == Some(table);
            files.iter().filter(inside).cloned().collect()
        };
        let (qit, st) = (of(QIT), of(ST));
        if qit.is_empty() || st.is_empty() {
            return Err(Error::Privacy(format!("of the tables `{QIT}` and `{ST}` of the release, one has no files")));
        }
        let qit = verify::open(context, sink, &qit, None).await?;
        let st = verify::open(context, sink, &st, None).await?;
        Ok(Some(Self { qit, st }))
    }

    /// The quasi-identifiers, as they are.
    pub(super) fn quasi(&self) -> &DataFrame {
        &self.qit
    }

    /// The sensitive table with a row for every published row: what a reader can know of the rows of a group.
    pub(super) fn rows(&self) -> Result<DataFrame> {
        let mut columns: Vec<_> = self.st.schema().fields().iter().map(|field| ident(field.name())).collect();
        columns.pop();
        columns.push(array_repeat(lit(1), ident(COUNT)).alias(COUNT));
        Ok(self.st.clone().select(columns)?.unnest_columns(&[COUNT])?.drop_columns(&[COUNT])?)
    }

    /// Groups that are not equally large in both tables.
    pub(super) async fn check_links(&self) -> Result<Vec<Finding>> {
        let left = self.qit.clone().aggregate(vec![ident(GROUP)], vec![count(lit(1)).alias("left_rows")])?;
        let right = self
            .st
            .clone()
            .aggregate(vec![ident(GROUP).alias("other")], vec![sum(ident(COUNT)).alias("right_rows")])?;
        let pairs = left.join(right, JoinType::Full, &[GROUP], &["other"], None)?;
        let same = cast(ident("left_rows"), DataType::UInt64).eq(ident("right_rows"));
        let off = pairs.filter(same.is_not_true())?.count().await? as u64;
        let message = format!("{off} groups do not hold as many sensitive values as rows");
        Ok((off > 0).then(|| Finding::new("groups", off, message)).into_iter().collect())
    }

    /// Compares both tables with the rows they were made from: nothing has changed, nothing was lost or added.
    pub(super) async fn check_source(
        &self,
        source: &DataFrame,
        treatment: &Treatment,
        suppressed: u64,
    ) -> Result<Vec<Finding>> {
        let names = |roles: &[Role]| -> Vec<String> {
            let fields = treatment.input.fields().iter().zip(&treatment.roles);
            fields.filter(|(_, role)| roles.contains(role)).map(|(field, _)| field.name().clone()).collect()
        };
        let mut findings = Vec::new();
        let tables = [(&self.qit, names(&[Role::Quasi, Role::Kept])), (&self.rows()?, names(&[Role::Sensitive]))];
        for (published, columns) in tables {
            let before = verify::content(source, &columns).await?;
            let after = verify::content(published, &columns).await?;
            findings.extend(compare(&before, &after, suppressed));
        }
        Ok(findings)
    }
}

fn compare(before: &HashMap<(u64, u64), u64>, after: &HashMap<(u64, u64), u64>, suppressed: u64) -> Vec<Finding> {
    let short = |these: &HashMap<_, u64>, those: &HashMap<_, u64>| -> u64 {
        these.iter().map(|(row, count)| count.saturating_sub(*those.get(row).unwrap_or(&0))).sum()
    };
    let (missing, invented) = (short(before, after), short(after, before));
    let mut findings = Vec::new();
    if missing > suppressed {
        let lost = missing - suppressed;
        findings.push(Finding::new("truthful", lost, format!("{lost} rows of the source were lost or changed")));
    }
    if invented > 0 {
        let message = format!("{invented} published rows are not in the source as they stand");
        findings.push(Finding::new("truthful", invented, message));
    }
    findings
}
