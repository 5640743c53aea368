//! The ledger of tomorrow, and what there is to count tonight.

use datafusion::logical_expr::{Expr, cast, ident};
use datafusion::prelude::DataFrame;

use super::counts::SeriesCounts;
use super::key::Purpose;
use super::night::{Night, SUBJECT_COLUMN, kind, state};
use super::retirement::Leaving;
use super::state::ledger_schema;
use crate::error::Result;

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

    /// Joins what was decided: the table `tomorrow`.
    pub(crate) async fn build_tomorrow(&self) -> Result<()> {
        self.scratch.context().register_udf(self.setting.key.digest(Purpose::History));
        let placed = format!("SELECT {SUBJECT_COLUMN} AS who, __throng_cohort AS placed FROM staged");
        self.scratch.define_view("placed", self.scratch.sql(&placed).await?)?;
        let tomorrow = format!(
            "SELECT m.subject, \
             CASE WHEN s.placed IS NOT NULL THEN s.placed WHEN f.cohort IS NOT NULL OR m.kind IN ({NEW}, {WITHHELD}, \
             {ABSENT}) THEN NULL ELSE m.cohort END AS cohort, \
             CASE WHEN s.placed IS NOT NULL AND m.history IS NULL THEN s.placed \
             WHEN s.placed IS NOT NULL THEN history_digest(m.history, s.placed) \
             WHEN f.cohort IS NOT NULL THEN history_digest(m.history) ELSE m.history END AS history, \
             CASE WHEN s.placed IS NOT NULL THEN m.new_quasi ELSE m.quasi END AS quasi, \
             CASE WHEN s.placed IS NOT NULL THEN m.new_content ELSE m.content END AS content, \
             CASE WHEN s.placed IS NOT NULL THEN {IS_LIVE} WHEN m.kind = {NEW} THEN {IS_WAITING} \
             WHEN f.cohort IS NOT NULL OR m.kind IN ({WITHHELD}, {ABSENT}) THEN {IS_WITHHELD} \
             WHEN m.kind = {LIVE} THEN {IS_LIVE} ELSE {IS_STALE} END AS state, \
             CASE WHEN s.placed IS NOT NULL AND m.history IS NULL THEN {number} \
             ELSE COALESCE(m.since, {number}) END AS since, \
             COALESCE(m.revised, FALSE) OR (s.placed IS NOT NULL AND m.history IS NOT NULL AND m.content <> \
             m.new_content) AS revised, \
             CASE WHEN s.placed IS NOT NULL OR f.cohort IS NOT NULL THEN {number} ELSE m.moved END AS moved, \
             m.kind, f.fate, s.placed IS NOT NULL AS is_placed, m.history IS NULL AS is_first, \
             m.history AS old_history, m.content AS old_content \
             FROM merged m LEFT JOIN placed s ON m.subject = s.who LEFT JOIN fates f ON m.cohort = f.cohort \
             WHERE m.kind <> {LAPSED}",
            NEW = kind::NEW,
            LAPSED = kind::LAPSED,
            LIVE = kind::LIVE,
            WITHHELD = kind::WITHHELD,
            ABSENT = kind::ABSENT,
            IS_LIVE = state::LIVE,
            IS_STALE = state::STALE,
            IS_WITHHELD = state::WITHHELD,
            IS_WAITING = state::WAITING,
            number = self.setting.number
        );
        self.scratch.keep_rows("tomorrow", self.scratch.sql(&tomorrow).await?).await
    }

    /// The next version of the ledger.
    pub(crate) async fn next_ledger(&self) -> Result<DataFrame> {
        let columns = ledger_schema().fields().iter().map(|field| ident(field.name())).collect::<Vec<_>>();
        Ok(self.scratch.table("tomorrow").await?.select(columns)?)
    }

    /// What became of the rows.
    pub(crate) async fn count_rows(&self, leaving: &Leaving) -> Result<SeriesCounts> {
        let is = |condition: String| format!("SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)");
        let overdue = format!("since + {} <= {}", self.setting.series.max_wait, self.setting.number);
        let waits = format!("kind = {} AND NOT is_placed", kind::NEW);
        let left = "fate IS NOT NULL";
        let conditions = [
            "is_placed AND is_first".to_owned(),
            "is_placed AND NOT is_first".to_owned(),
            format!("{waits} AND NOT ({overdue})"),
            format!("{waits} AND {overdue}"),
            format!("kind = {} AND fate IS NULL", kind::GONE),
            format!("kind = {} AND fate IS NULL", kind::CHANGED),
            left.to_owned(),
            format!(
                "kind = {} OR ({left} AND kind IN ({}, {}) AND NOT is_placed)",
                kind::WITHHELD,
                kind::LIVE,
                kind::CHANGED
            ),
        ];
        let sums: Vec<String> = conditions.into_iter().map(is).collect();
        let found = self.scratch.query_numbers(&format!("SELECT {} FROM tomorrow", sums.join(", "))).await?;
        Ok(SeriesCounts {
            new: found[0],
            returned: found[1],
            waiting: found[2],
            suppressed: found[3],
            gone: found[4],
            changed: found[5],
            retired_classes: leaving.classes,
            retired: found[6],
            withheld: found[7],
            forgotten: self.forgotten,
        })
    }
}
