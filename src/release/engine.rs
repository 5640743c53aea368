//! Where the two passes of a run are executed: in this process, or by others.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionState;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::policy::Job;
use crate::storage::StoreOptions;
use crate::survey::{Survey, collect_survey};
use crate::verify::PlanExecutor;
pub(crate) use crate::verify::Watch;

/// Executes the plans of a run.
#[async_trait]
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Whether the partitions of a plan run in other processes: what a node keeps in memory stays there, and everything
    /// that is to be known must come back as rows.
    fn is_remote(&self) -> bool;

    /// Number of attempts at a pass that fails for a transient reason, such as the loss of a process.
    fn max_attempts(&self) -> usize {
        1
    }

    /// The settings that plans for this engine are made with, for a job that reads and writes these places.
    fn configure(&self, config: SessionConfig, _places: &[StoreLocation]) -> Result<SessionConfig> {
        Ok(config)
    }

    /// Surveys the rows of a plan, whose columns are the quasi-identifiers, then the sensitive ones.
    async fn run_survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        bound_policy: Arc<BoundPolicy>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey>;

    /// Executes a plan over `rows` rows and returns what it emits. The name is the one that a cluster shows.
    async fn collect_rows(
        &self,
        name: &str,
        plan: Arc<dyn ExecutionPlan>,
        rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>>;

    /// Waits until abandoned work has been cancelled.
    async fn wait_for_cancellations(&self) {}

    /// How the plans of both passes are cut into stages, as text; `None` if they run unchanged.
    fn explain_stages(
        &self,
        _survey: Arc<dyn ExecutionPlan>,
        _write: Arc<dyn ExecutionPlan>,
        _bound_policy: &Arc<BoundPolicy>,
        _context: &SessionContext,
    ) -> Result<Option<String>> {
        Ok(None)
    }
}

/// Executes the plans of a verification where a run has its work done.
pub(crate) struct Verifier<'a> {
    /// The engine.
    pub(crate) engine: &'a dyn Engine,
    /// Rows that are verified.
    pub(crate) rows: u64,
    /// Called with every plan.
    pub(crate) watch: &'a Watch<'a>,
}

#[async_trait]
impl PlanExecutor for Verifier<'_> {
    async fn execute_plan(&self, plan: Arc<dyn ExecutionPlan>, state: SessionState) -> Result<Vec<RecordBatch>> {
        let context = SessionContext::new_with_state(state);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.engine.collect_rows("verify", Arc::clone(&plan), self.rows, &context, self.watch).await {
                Err(why) if why.is_retryable() && tries < self.engine.max_attempts() => {
                    tracing::warn!("retrying: {why}")
                }
                done => return done,
            }
        }
    }
}

/// A place that a job reads or writes, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StoreLocation {
    /// Its address.
    pub url: String,
    /// How its store is reached.
    pub options: StoreOptions,
}

impl StoreLocation {
    /// The places of a job.
    pub(crate) fn of_job(job: &Job) -> Vec<Self> {
        let sources = job.source.located_sources();
        let sources = sources.into_iter().map(|(_, spec)| (spec.location().to_owned(), spec.options.clone()));
        let public = job.privacy.presence.as_ref().map(|rule| (rule.public.clone(), job.source.options.clone()));
        let sink = (job.sink.url.clone(), job.sink.options.clone());
        sources.chain(public).chain([sink]).map(|(url, options)| Self { url, options }).collect()
    }
}

/// This process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Local;

#[async_trait]
impl Engine for Local {
    fn is_remote(&self) -> bool {
        false
    }

    async fn run_survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        bound_policy: Arc<BoundPolicy>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey> {
        watch(&plan);
        collect_survey(plan, context.task_ctx(), bound_policy, cell_rows).await
    }

    async fn collect_rows(
        &self,
        _name: &str,
        plan: Arc<dyn ExecutionPlan>,
        _rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>> {
        watch(&plan);
        Ok(collect(plan, context.task_ctx()).await?)
    }
}
