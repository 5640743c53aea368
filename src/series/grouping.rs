//! New rows among themselves, and those who come back.
//!
//! New rows go through the ordinary operator with two demands more: a class has `series.reserve` times k rows, and loses no
//! more than `series.max-loss`. What finds no such class is left over, and waits. If some of it has waited for as long as it
//! may, all that is left over is grouped once more with the demands of the policy alone, and the classes that somebody is in
//! who may wait no longer are published. What is left of a split cohort is no matter of grouping: it is one class.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, JoinType, ident};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::key::{DIGEST_BYTES, Purpose};
use super::night::{Night, SUBJECT_COLUMN, kind, private_policy};
use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::operator::{Anonymize, AnonymizeExec, AnonymizeParams, fitting_partitions, publish_together, survey_plan};
use crate::policy::Privacy;
use crate::survey::{Survey, collect_survey};

/// The tables that rows are staged in, by how their classes were made.
const BY_RULES: &str = "staged_by_rules";
const OVERDUE: &str = "staged_overdue";
const RETURNING: &str = "staged_returning";

/// What was staged, and what it loses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Staged {
    /// Published rows of tonight, and the loss of their values added up, in values of one column.
    pub(crate) rows: u64,
    loss: f64,
}

impl Staged {
    /// Mean loss of the values that are published for the first time tonight.
    pub(crate) fn mean_loss(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.loss / self.rows as f64)
    }

    fn add_rows(&mut self, rows: u64, mean: f64) {
        self.rows += rows;
        self.loss += rows as f64 * mean;
    }
}

impl Night<'_> {
    /// Makes the classes of tonight: the table `staged`, rows as they are published with subject and cohort beside them.
    pub(crate) async fn group_rows(&self) -> Result<Staged> {
        let new = self.merged.of_kind(kind::NEW);
        let wanted = self.scratch.query_numbers("SELECT COUNT(*) FROM wanted").await?[0];
        let mut staged = Staged::default();
        let mut tables = Vec::new();
        // Fewer than k rows wait without being looked at.
        let k = u64::from(self.setting.bound_policy.policy.privacy.k);
        if wanted >= k {
            let survey = self.survey_rows().await?;
            if new >= k {
                tables.extend(self.group_new(&survey, new == wanted, &mut staged).await?);
            }
            if new < wanted {
                tables.push(self.publish_returning(survey, &mut staged).await?);
            }
        }
        let cohort = self.digest_expr(Purpose::Cohort(self.setting.number), &self.setting.bound_policy.class_columns());
        let names: Vec<String> = self.private.output.fields().iter().map(|field| field.name().clone()).collect();
        let columns: Vec<Expr> = names.iter().map(ident).chain([cohort.alias("__throng_cohort")]).collect();
        let mut all: Option<DataFrame> = None;
        for rows in tables {
            let rows = rows.select(columns.clone())?;
            all = Some(match all {
                None => rows,
                Some(others) => others.union(rows)?,
            });
        }
        match all {
            Some(all) => self.scratch.define_view("staged", all)?,
            None => self.scratch.hold_rows("staged", RecordBatch::new_empty(self.staged_schema()))?,
        }
        Ok(staged)
    }

    fn staged_schema(&self) -> SchemaRef {
        let cohort = Arc::new(Field::new("__throng_cohort", DataType::FixedSizeBinary(DIGEST_BYTES), false));
        Arc::new(Schema::new(self.private.output.fields().iter().cloned().chain([cohort]).collect::<Vec<_>>()))
    }

    /// Domains and cells of the rows that are published tonight for the first time or anew.
    async fn survey_rows(&self) -> Result<Survey> {
        let fresh = self.scratch.table("fresh").await?;
        let (state, rows) = fresh.into_parts();
        let plan = DataFrame::new(state.clone(), survey_plan(&rows, &self.private)?).create_physical_plan().await?;
        collect_survey(plan, state.task_ctx(), Arc::new(self.private.clone()), self.setting.cell_rows).await
    }

    /// The demands of the policy, varied.
    fn vary_policy(&self, vary: impl FnOnce(&mut Privacy)) -> Result<Arc<BoundPolicy>> {
        let policy = Arc::new(private_policy(&self.setting, &self.private.input, vary)?);
        let input = Arc::clone(&self.private.input);
        Ok(Arc::new(BoundPolicy::bind_schema(policy, input, self.private.key.clone())?))
    }

    /// Groups new rows, which are all that is fresh or only a part of it.
    async fn group_new(&self, survey: &Survey, is_all: bool, staged: &mut Staged) -> Result<Vec<DataFrame>> {
        let series = self.setting.series;
        let fresh = self.scratch.table("fresh").await?;
        let new = if is_all {
            fresh
        } else {
            let new = format!("SELECT subject FROM merged WHERE kind = {}", kind::NEW);
            let new = self.scratch.sql(&new).await?;
            fresh.join(new, JoinType::LeftSemi, &[SUBJECT_COLUMN], &["subject"], None)?
        };
        let demanding = self.vary_policy(|privacy| {
            privacy.k = (f64::from(privacy.k) * series.reserve).ceil() as u32;
            privacy.max_loss = Some(series.max_loss);
        })?;
        self.pass_rows(BY_RULES, new.clone(), demanding, survey, staged).await?;
        let mut tables = vec![self.scratch.table(BY_RULES).await?];
        let overdue = format!(
            "SELECT m.subject AS who FROM merged m LEFT ANTI JOIN {BY_RULES} s ON m.subject = s.{SUBJECT_COLUMN} \
             WHERE m.kind = {} AND COALESCE(m.since, {number}) + {} <= {number}",
            kind::NEW,
            series.max_wait,
            number = self.setting.number
        );
        self.scratch.define_view("overdue", self.scratch.sql(&overdue).await?)?;
        if self.scratch.query_numbers("SELECT COUNT(*) FROM overdue").await?[0] > 0 {
            let done = self.scratch.sql(&format!("SELECT {SUBJECT_COLUMN} AS who FROM {BY_RULES}")).await?;
            let left = new.join(done, JoinType::LeftAnti, &[SUBJECT_COLUMN], &["who"], None)?;
            let mut best = Staged::default();
            self.pass_rows(OVERDUE, left, self.vary_policy(|_| {})?, survey, &mut best).await?;
            let rows = self.with_overdue().await?;
            let count = rows.clone().count().await? as u64;
            staged.add_rows(count, best.mean_loss().unwrap_or(0.0));
            tables.push(rows);
        }
        Ok(tables)
    }

    /// The rows of classes that somebody is in who may wait no longer.
    async fn with_overdue(&self) -> Result<DataFrame> {
        let names: Vec<String> = self.private.output.fields().iter().map(|field| field.name().clone()).collect();
        let class = self.digest_expr(Purpose::Cohort(self.setting.number), &self.setting.bound_policy.class_columns());
        let columns: Vec<Expr> = names.iter().map(ident).chain([class.alias("__throng_class")]).collect();
        let rows = self.scratch.table(OVERDUE).await?.select(columns)?;
        let overdue = self.scratch.table("overdue").await?;
        let classes = rows
            .clone()
            .join(overdue, JoinType::LeftSemi, &[SUBJECT_COLUMN], &["who"], None)?
            .select(vec![ident("__throng_class").alias("due_class")])?
            .distinct()?;
        let rows = rows.join(classes, JoinType::LeftSemi, &["__throng_class"], &["due_class"], None)?;
        Ok(rows.select(names.iter().map(ident).collect::<Vec<_>>())?)
    }

    /// Sends rows through the operator, into a private table.
    async fn pass_rows(
        &self,
        table: &str,
        rows: DataFrame,
        bound_policy: Arc<BoundPolicy>,
        survey: &Survey,
        staged: &mut Staged,
    ) -> Result<()> {
        let params = Arc::new(AnonymizeParams::new(bound_policy, survey.clone())?);
        let (state, rows) = rows.into_parts();
        let state = self.fit_partitions(state);
        let grouped = Anonymize::surveyed(rows, Arc::clone(&params))?.into_plan();
        let plan = DataFrame::new(state.clone(), grouped).create_physical_plan().await?;
        // Nobody judges how many rows are left over: they wait.
        let plan = AnonymizeExec::mark_in_part(plan)?;
        self.scratch.keep_plan(table, Arc::clone(&plan), state.task_ctx()).await?;
        let measures = AnonymizeExec::find_measures(&plan).unwrap_or_else(|| params.empty_measures());
        let (rows, columns) = (measures.loss.rows(), params.axes.len().max(1) as f64);
        let lost = measures.released_losses().ncp.unwrap_or_else(|| measures.loss.ncp());
        staged.add_rows(rows, lost / (rows.max(1) as f64 * columns));
        Ok(())
    }

    /// As many partitions as the memory limit has room for.
    fn fit_partitions(&self, mut state: SessionState) -> SessionState {
        if let Some(limit) = self.setting.memory_limit {
            let options = state.config_mut().options_mut();
            let wanted = options.execution.target_partitions;
            options.execution.target_partitions = fitting_partitions(&self.private.input, limit, wanted);
        }
        state
    }

    /// Publishes what is left of every split cohort as one class.
    async fn publish_returning(&self, survey: Survey, staged: &mut Staged) -> Result<DataFrame> {
        let params = AnonymizeParams::new(Arc::new(self.private.clone()), survey)?;
        let mut file = self.scratch.create_file(RETURNING, &self.private.output)?;
        let mut stream = self.returning_rows().await?.execute_stream().await?;
        let schema = stream.schema();
        let mut open: Vec<RecordBatch> = Vec::new();
        let mut publish = |unit: Vec<RecordBatch>| -> Result<()> {
            let rows = concat_batches(&schema, &unit)?;
            let columns: Vec<usize> = (0..rows.num_columns() - 1).collect();
            let rows =
                RecordBatch::try_new(Arc::clone(&self.private.input), rows.project(&columns)?.columns().to_vec())?;
            let (published, loss) = publish_together(&params, &rows)?;
            staged.add_rows(published.num_rows() as u64, loss);
            file.write_rows(&published)
        };
        while let Some(batch) = stream.try_next().await? {
            let mut from = 0;
            for end in unit_ends(&batch) {
                let run = batch.slice(from, end - from);
                if open.first().is_some_and(|first| unit_of(first) != unit_of(&run)) {
                    publish(std::mem::take(&mut open))?;
                }
                open.push(run);
                from = end;
            }
        }
        if !open.is_empty() {
            publish(open)?;
        }
        file.close()?;
        self.scratch.name_folder(RETURNING, &self.private.output).await?;
        self.scratch.table(RETURNING).await
    }
}

/// The ends of the runs of rows that come from one cohort, which is their last column.
fn unit_ends(batch: &RecordBatch) -> Vec<usize> {
    let units = batch.column(batch.num_columns() - 1).as_fixed_size_binary();
    let is_end = |row: &usize| *row == units.len() || units.value(*row - 1) != units.value(*row);
    (1..=units.len()).filter(is_end).collect()
}

fn unit_of(rows: &RecordBatch) -> &[u8] {
    rows.column(rows.num_columns() - 1).as_fixed_size_binary().value(0)
}
