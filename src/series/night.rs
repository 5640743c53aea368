//! A night begins: the rows of today beside the ledger of yesterday.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, ident, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};

use super::arrivals::{keep_arrivals, null_subject};
use super::key::{LedgerKey, Purpose};
use super::merge::Merged;
use super::scratch::Scratch;
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::policy::{Column, Constant, Job, Policy, Privacy, Role, Series};
use crate::recode::replace_columns;

/// Name of the column that holds the digest of the subject while rows are grouped. It is never published.
pub(crate) const SUBJECT_COLUMN: &str = "__throng_subject";

/// What a night works with.
pub(crate) struct Setting<'a> {
    /// The session of the run.
    pub(crate) session: &'a SessionContext,
    /// The folder for raw data.
    pub(crate) spill: &'a Path,
    pub(crate) job: &'a Job,
    pub(crate) series: &'a Series,
    /// The folder of the job file.
    pub(crate) base: &'a Path,
    pub(crate) key: LedgerKey,
    /// Number of the release that is being made.
    pub(crate) number: u64,
    /// What is published of the source.
    pub(crate) bound_policy: Arc<BoundPolicy>,
    /// Most memory for operators.
    pub(crate) memory_limit: Option<usize>,
    /// Rows of a cell.
    pub(crate) cell_rows: usize,
}

/// What a ledger says of a subject.
pub(crate) mod state {
    /// Published, and in the source as it was published.
    pub(crate) const LIVE: i64 = 1;
    /// Published, and not in the source, or with other values.
    pub(crate) const STALE: i64 = 2;
    /// Published before, and never again.
    pub(crate) const WITHHELD: i64 = 3;
    /// Not published yet.
    pub(crate) const WAITING: i64 = 4;
}

/// What a subject is tonight.
pub(crate) mod kind {
    /// In the source, and never published.
    pub(crate) const NEW: i64 = 0;
    /// Has waited, and is not in the source any more.
    pub(crate) const LAPSED: i64 = 1;
    /// Published, and in the source as it was published.
    pub(crate) const LIVE: i64 = 2;
    /// Published, and in the source with other values.
    pub(crate) const CHANGED: i64 = 3;
    /// Published, and not in the source.
    pub(crate) const GONE: i64 = 4;
    /// In the source, and never published again.
    pub(crate) const WITHHELD: i64 = 5;
    /// Not in the source, and never published again.
    pub(crate) const ABSENT: i64 = 6;
}

/// A night of a series.
pub(crate) struct Night<'a> {
    pub(crate) setting: Setting<'a>,
    pub(crate) scratch: Scratch,
    /// What happens to the rows while they are grouped, with the digest of the subject beside them.
    pub(crate) private: BoundPolicy,
    /// These rows.
    rows: LogicalPlan,
    /// Rows of the source that must not be published again.
    pub(crate) forgotten: u64,
    /// What the subjects of the table `merged` are.
    pub(crate) merged: Merged,
}

impl<'a> Night<'a> {
    /// Merges the rows of today with the ledger of yesterday.
    pub(crate) async fn begin(
        setting: Setting<'a>,
        scanned: &LogicalPlan,
        ledger: DataFrame,
        forgotten: Option<DataFrame>,
    ) -> Result<Self> {
        let scratch = Scratch::create(setting.session, setting.spill)?;
        let (rows, private) = private_rows(&setting, scanned)?;
        Self { setting, scratch, private, rows, forgotten: 0, merged: Merged::default() }
            .merge_ledger(ledger, forgotten)
            .await
    }

    /// Merges the rows of new files, which have no identity yet, and those that have waited with the ledger of yesterday.
    pub(crate) async fn begin_with_arrivals(
        setting: Setting<'a>,
        new: &LogicalPlan,
        waiting: Option<DataFrame>,
        ledger: DataFrame,
    ) -> Result<Self> {
        let scratch = Scratch::create(setting.session, setting.spill)?;
        let (rows, private) = private_rows(&setting, new)?;
        let rows = keep_arrivals(&scratch, &setting.key, setting.number, rows, waiting, private.input.as_ref()).await?;
        Self { setting, scratch, private, rows, forgotten: 0, merged: Merged::default() }
            .merge_ledger(ledger, None)
            .await
    }

    async fn merge_ledger(self, ledger: DataFrame, forgotten: Option<DataFrame>) -> Result<Self> {
        let mut night = self;
        let is_known = forgotten.is_some();
        night.scratch.define_view("everybody", night.digest_rows()?)?;
        if let Some(forgotten) = forgotten {
            night.scratch.define_view("forgotten", forgotten)?;
            let counted = "SELECT COUNT(*) FROM everybody e LEFT SEMI JOIN forgotten f ON e.subject = f.subject";
            night.forgotten = night.scratch.query_numbers(counted).await?[0];
        }
        let others = "SELECT * FROM everybody e LEFT ANTI JOIN forgotten f ON e.subject = f.subject";
        let today = if is_known { others } else { "SELECT * FROM everybody" };
        let today = night.scratch.sql(today).await?;
        night.merged = night.merge_subjects(today, ledger).await?;
        Ok(night)
    }

    /// Digests of every row of the source.
    fn digest_rows(&self) -> Result<DataFrame> {
        let columns = vec![
            ident(SUBJECT_COLUMN).alias("subject"),
            self.digest_expr(Purpose::Quasi, &self.private.quasi_names()).alias("quasi"),
            self.digest_expr(Purpose::Content, &self.content_columns()).alias("content"),
        ];
        Ok(self.source_rows().select(columns)?)
    }

    /// The rows of the source with the digest of their subject, in the session of the night.
    pub(crate) fn source_rows(&self) -> DataFrame {
        DataFrame::new(self.scratch.context().state(), self.rows.clone())
    }

    /// The rows of the source of some subjects.
    pub(crate) fn of_subjects(&self, subjects: DataFrame) -> Result<DataFrame> {
        Ok(self.source_rows().join(subjects, JoinType::LeftSemi, &[SUBJECT_COLUMN], &["subject"], None)?)
    }

    /// The published columns that are as the source has them.
    pub(crate) fn content_columns(&self) -> Vec<String> {
        let fields = self.setting.bound_policy.input.fields().iter().zip(&self.setting.bound_policy.roles);
        let unchanged = fields.filter(|(_, role)| matches!(role, Role::Sensitive | Role::Kept));
        unchanged.map(|(field, _)| field.name().clone()).collect()
    }

    /// A digest of some columns.
    pub(crate) fn digest_expr(&self, purpose: Purpose, columns: &[String]) -> Expr {
        let named = columns.iter().map(ident);
        // A function has one argument at least.
        let arguments = if columns.is_empty() { vec![lit(true)] } else { named.collect() };
        self.setting.key.digest(purpose).call(arguments)
    }

    /// Picks the rows out of the source that are new, or of cohorts that may come back: the table `fresh`.
    pub(crate) async fn pick_fresh(&self, candidates: u64) -> Result<()> {
        let new = format!("SELECT subject FROM merged WHERE kind = {}", kind::NEW);
        let wanted = if candidates == 0 {
            self.scratch.sql(&new).await?
        } else {
            let returning = format!(
                "{new} UNION ALL SELECT m.subject FROM candidates c RIGHT SEMI JOIN merged m ON m.cohort = c.cohort WHERE \
                 m.kind IN ({live}, {changed})",
                live = kind::LIVE,
                changed = kind::CHANGED
            );
            self.scratch.joining(candidates).sql(&returning).await?
        };
        self.scratch.keep_rows("wanted", wanted).await?;
        let wanted = self.scratch.query_numbers("SELECT COUNT(*) FROM wanted").await?[0];
        if wanted == self.merged.all() && self.forgotten == 0 {
            // Everybody is: there is no need of a copy.
            return self.scratch.define_view("fresh", self.source_rows());
        }
        let joining = self.scratch.joining(wanted);
        let source = DataFrame::new(joining.state(), self.rows.clone());
        let wanted = joining.table("wanted").await?;
        let fresh = wanted.join(source, JoinType::RightSemi, &["subject"], &[SUBJECT_COLUMN], None)?;
        self.scratch.keep_rows("fresh", fresh).await
    }
}

/// The rows of the source with their identifiers replaced and the digest of their subject beside them, without columns that
/// nobody reads; and what happens to them.
fn private_rows(setting: &Setting<'_>, scanned: &LogicalPlan) -> Result<(LogicalPlan, BoundPolicy)> {
    for name in &setting.series.subject {
        if scanned.schema().field_with_unqualified_name(name).is_err() {
            return Err(Error::job(format!("series.subject: the source has no column `{name}`")));
        }
    }
    let subject: Vec<Expr> = setting.series.subject.iter().map(ident).collect();
    let subject = if subject.is_empty() { null_subject() } else { setting.key.digest(Purpose::Subject).call(subject) };
    let subject = subject.alias(SUBJECT_COLUMN);
    let columns: Vec<Expr> = scanned.schema().iter().map(Expr::from).chain([subject]).collect();
    let tagged = LogicalPlanBuilder::from(scanned.clone()).project(columns)?.build()?;
    let policy = Arc::new(private_policy(setting, scanned.schema().as_arrow(), |_| {})?);
    // The policy of the job has been checked against the source, and differs by what is added here alone.
    let rows = replace_columns(tagged, &policy)?;
    let key = setting.bound_policy.key.clone();
    let schema = Arc::new(rows.schema().as_arrow().clone());
    let bound = BoundPolicy::bind_schema(Arc::clone(&policy), schema, key)?;
    let read = (0..bound.roles.len()).filter(|index| bound.reads_column(*index));
    let read = read.map(|index| ident(bound.input.field(index).name())).collect::<Vec<_>>();
    let rows = LogicalPlanBuilder::from(rows).project(read)?.build()?;
    let schema = Arc::new(rows.schema().as_arrow().clone());
    Ok((rows, BoundPolicy::bind_schema(policy, schema, bound.key)?))
}

/// The policy by which new rows are grouped: that of the job with the subject beside the rows. Rows that find no group wait
/// and are counted, and a night may be so small that all rows have one value.
pub(crate) fn private_policy(
    setting: &Setting<'_>,
    schema: &Schema,
    vary: impl FnOnce(&mut Privacy),
) -> Result<Policy> {
    let mut job = setting.job.clone();
    let default = job.defaults.as_ref().and_then(|defaults| defaults.role);
    for field in schema.fields() {
        let Some(role) = job.columns.get(field.name()).map(|column| column.role).or(default) else { continue };
        let column = job.columns.entry(field.name().clone()).or_insert_with(|| Column::new(role));
        if role == Role::Quasi {
            column.constant = Some(Constant::Allow);
        }
    }
    job.columns.insert(SUBJECT_COLUMN.to_owned(), Column::new(Role::Kept));
    job.privacy.max_suppression = 1.0;
    vary(&mut job.privacy);
    Policy::of_checked(&job, setting.base)
}

/// The ledger as if nothing had happened before a release: who has left by then is unknown, and the history of all others
/// begins with the cohort that they were in. Nobody was published with other values before that.
pub(crate) fn reset_history(ledger: DataFrame, first: u64) -> Result<DataFrame> {
    if first <= 1 {
        return Ok(ledger);
    }
    let is_old = || ident("moved").lt(lit(first as i64));
    let has_left = ident("state").eq(lit(state::WITHHELD)).and(is_old());
    let kept = ledger.filter(has_left.is_not_true())?;
    let history = when(is_old(), ident("cohort")).otherwise(ident("history"))?;
    let revised = ident("revised").and(is_old().is_not_true());
    let columns = kept.schema().fields().iter().map(|field| match field.name().as_str() {
        "history" => history.clone().alias("history"),
        "revised" => revised.clone().alias("revised"),
        name => ident(name),
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(kept.select(columns)?)
}
