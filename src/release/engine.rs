//! Where the two passes of a run are worked off: in this process, or by others.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::Result;
use crate::job::{Job, StoreOptions, Treatment};
use crate::survey::{Survey, survey};

/// Gets a plan whose metrics tell how far the work is.
pub type Watch<'a> = dyn Fn(&Arc<dyn ExecutionPlan>) + Send + Sync + 'a;

/// Works off the plans of a run.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// Whether the partitions of a plan run in other processes: what a node keeps in memory stays there, and everything
    /// that is to be known must come back as rows.
    fn is_remote(&self) -> bool;

    /// How often a pass is worked off that fails for a reason which may pass, as the loss of a process does.
    fn tries(&self) -> usize {
        1
    }

    /// The settings that plans for this engine are made with, for a job that reads and writes these places.
    fn configure(&self, config: SessionConfig, _places: &[Place]) -> Result<SessionConfig> {
        Ok(config)
    }

    /// Surveys the rows of a plan, whose columns are the quasi-identifiers, then the sensitive ones.
    async fn survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        treatment: Arc<Treatment>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey>;

    /// Works off a plan over so many rows, and returns what it emits.
    async fn collect(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>>;

    /// Waits until work that was given up has been called off.
    async fn settle(&self) {}

    /// How the plans of both passes are cut into stages, as text; none when they run as they are.
    fn explain(
        &self,
        _survey: Arc<dyn ExecutionPlan>,
        _write: Arc<dyn ExecutionPlan>,
        _treatment: &Arc<Treatment>,
        _context: &SessionContext,
    ) -> Result<Option<String>> {
        Ok(None)
    }
}

/// A place that a job reads or writes, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// Its address.
    pub url: String,
    /// How its store is reached.
    pub options: StoreOptions,
}

impl Place {
    /// The places of a job.
    pub(super) fn all(job: &Job) -> Vec<Self> {
        let sources = job.source.located();
        let sources = sources.into_iter().map(|(_, spec)| (spec.location().to_owned(), spec.options.clone()));
        let public = job.privacy.presence.as_ref().map(|rule| (rule.public.clone(), job.source.options.clone()));
        let sink = (job.sink.url.clone(), job.sink.options.clone());
        sources.chain(public).chain([sink]).map(|(url, options)| Self { url, options }).collect()
    }
}

/// This process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

#[async_trait]
impl Engine for Local {
    fn is_remote(&self) -> bool {
        false
    }

    async fn survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        treatment: Arc<Treatment>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey> {
        watch(&plan);
        survey(plan, context.task_ctx(), treatment, cell_rows).await
    }

    async fn collect(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>> {
        watch(&plan);
        Ok(collect(plan, context.task_ctx()).await?)
    }
}
