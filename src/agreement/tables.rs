//! The form `anatomy` as a release: two datasets beside each other, `qit/` and `st/` in the folder of the run.
//!
//! - `qit/`: one row per person, quasi-identifiers and kept columns as they are, and the number of the group;
//! - `st/`: one row per group and combination of sensitive values, with its count.
//!
//! The operator emits both side by side, and the writer parts them. Here they are read back and checked against each
//! other, against the rules and against the source.

use datafusion::functions_nested::expr_fn::array_repeat;
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::ledger::manifest::OutputFile;
use crate::ledger::published::open_published;
use crate::policy::{COUNT, Form, QIT, ST};
use crate::storage::Location;
use crate::verify::{Finding, PlanExecutor, check_links, check_tables};

/// The two tables of a release.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Quasi-identifiers and kept columns.
    pub(crate) qit: DataFrame,
    st: DataFrame,
}

impl Tables {
    /// Opens the published files; `None` for releases of one table. A table that has lost all its files is an error.
    pub(crate) async fn open_tables(
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
            return Err(Error::privacy(format!("one of the tables `{QIT}` and `{ST}` of the release has no files")));
        }
        let qit = open_published(context, sink, &qit, None).await?;
        let st = open_published(context, sink, &st, None).await?;
        Ok(Some(Self { qit, st }))
    }

    /// The quasi-identifiers, as they are.
    pub(crate) fn quasi(&self) -> &DataFrame {
        &self.qit
    }

    /// The sensitive table with a row for every published row: what a reader can know of the rows of a group.
    pub(crate) fn rows(&self) -> Result<DataFrame> {
        let mut columns: Vec<_> = self.st.schema().fields().iter().map(|field| ident(field.name())).collect();
        columns.pop();
        columns.push(array_repeat(lit(1), ident(COUNT)).alias(COUNT));
        Ok(self.st.clone().select(columns)?.unnest_columns(&[COUNT])?.drop_columns(&[COUNT])?)
    }

    /// Whether the two tables fit together.
    pub(crate) async fn check_links(&self, plans: &dyn PlanExecutor) -> Result<Vec<Finding>> {
        check_links(plans, &self.qit, &self.st).await
    }

    /// Compares both tables with the rows they were made from: nothing has changed, nothing was lost or added.
    pub(crate) async fn check_source(
        &self,
        plans: &dyn PlanExecutor,
        source: &DataFrame,
        bound_policy: &BoundPolicy,
        suppressed: u64,
    ) -> Result<Vec<Finding>> {
        check_tables(plans, &self.qit, &self.rows()?, source, bound_policy, suppressed).await
    }
}
