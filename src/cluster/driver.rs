//! The engine of a run that is executed by a cluster.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_scheduler::planner::{DefaultDistributedPlanner, DistributedPlanner};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use tokio::sync::OnceCell;
use url::Url;

use super::client::Client;
use super::guard::guard_stages;
use super::progress::RemoteExec;
use super::store_config::{StoreConfigs, default_settings};
use super::survey::SurveyExec;
use crate::binding::BoundPolicy;
use crate::engine::phase::known_rows;
use crate::engine::{Engine, StoreLocation, Watch};
use crate::error::{Error, Result};
use crate::release::RunOptions;
use crate::survey::{Merged, Survey, first_ceiling, merge_pieces};

/// Default number of partitions of a plan: enough to keep a few executors busy to the end.
const PARTITIONS: usize = 16;

/// A cluster by the address of its scheduler.
///
/// ```
/// use throng::{Cluster, RunOptions};
///
/// let cluster: Cluster = "df://scheduler:50050".parse()?;
/// let options = RunOptions::default().with_cluster(cluster);
/// # drop(options);
/// assert!("http://scheduler".parse::<Cluster>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    host: String,
    port: u16,
    /// Where the scheduler reports the progress of jobs.
    progress_port: u16,
    client: Arc<OnceCell<Client>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({self})")
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

/// Parses `df://host:port`; the port defaults to 50050.
impl FromStr for Cluster {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "must be the address of a scheduler such as df://scheduler:50050".to_owned();
        let url = Url::parse(text).map_err(|_| bad())?;
        let host = url.host_str().filter(|_| url.scheme() == "df" && url.path().trim_matches('/').is_empty());
        let (host, port) = (host.ok_or_else(bad)?.to_owned(), url.port().unwrap_or(super::scheduler::PORT));
        let progress_port = super::scheduler::progress_port(port);
        Ok(Self { host, port, progress_port, client: Arc::default() })
    }
}

impl RunOptions {
    /// The same with the work done by a cluster.
    #[must_use]
    pub fn with_cluster(self, cluster: Cluster) -> Self {
        Self { engine: Some(Arc::new(cluster)), ..self }
    }
}

impl Cluster {
    async fn connect_client(&self) -> Result<&Client> {
        self.client.get_or_try_init(|| Client::connect(&self.host, self.port)).await
    }

    async fn execute_plan(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        (name, rows): (&str, u64),
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>> {
        let job = self.connect_client().await?.submit_plan(guard_stages(plan)?, name, context).await?;
        let remote = Arc::new(RemoteExec::new());
        watch(&(Arc::clone(&remote) as Arc<dyn ExecutionPlan>));
        let id = job.id().to_owned();
        tokio::select! {
            rows = job.collect_rows() => rows,
            () = remote.follow_job(&self.host, self.progress_port, &id, rows) => {
                Err(Error::internal("the progress of a job has ended"))
            }
        }
    }

    fn explain_stages(name: &str, plan: Arc<dyn ExecutionPlan>, context: &SessionContext) -> Result<String> {
        let job = JobId::from(name.to_owned());
        let options = context.copied_config();
        let stages = DefaultDistributedPlanner::new().plan_query_stages(&job, guard_stages(plan)?, options.options());
        let stages = stages.map_err(|error| Error::internal(error.to_string()))?;
        let mut text = String::new();
        for stage in stages {
            let tasks = stage.children().first().map_or(0, |input| input.output_partitioning().partition_count());
            text += &format!("{name}, stage {}: {tasks} tasks\n", stage.stage_id());
            let plan: &dyn ExecutionPlan = stage.as_ref();
            displayable(plan).indent(false).to_string().lines().for_each(|line| text += &format!("  {line}\n"));
        }
        Ok(text)
    }
}

#[async_trait]
impl Engine for Cluster {
    fn is_remote(&self) -> bool {
        true
    }

    /// A scheduler that has never answered is not asked again.
    fn max_attempts(&self) -> usize {
        1 + usize::from(self.client.initialized())
    }

    fn configure(&self, _config: SessionConfig, places: &[StoreLocation]) -> Result<SessionConfig> {
        // One partition per task: memory is assigned per task, and a lost task then loses one partition.
        let one = (BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1);
        let mut config = default_settings().with_target_partitions(PARTITIONS).set_usize(one.0, one.1);
        config.options_mut().extensions.insert(StoreConfigs::new(places)?);
        Ok(config)
    }

    async fn run_survey(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &SessionContext,
        bound_policy: Arc<BoundPolicy>,
        cell_rows: usize,
        watch: &Watch<'_>,
    ) -> Result<Survey> {
        let (schema, rows) = (plan.schema(), known_rows(&plan));
        let mut ceiling = first_ceiling(rows);
        loop {
            let survey = Arc::new(SurveyExec::new(Arc::clone(&plan), Arc::clone(&bound_policy), ceiling));
            let batches = self.execute_plan(survey, ("survey", rows), context, watch).await?;
            let pieces = batches.iter().flat_map(|batch| batch.column(0).as_binary::<i32>().iter().flatten());
            match merge_pieces(Arc::clone(&bound_policy), Arc::clone(&schema), pieces, cell_rows).await? {
                Merged::Survey(survey) => return Ok(*survey),
                Merged::Short(higher) => {
                    tracing::info!("many rows are equal: repeating the survey with a larger sample");
                    ceiling = higher;
                }
            }
        }
    }

    async fn collect_rows(
        &self,
        name: &str,
        plan: Arc<dyn ExecutionPlan>,
        rows: u64,
        context: &SessionContext,
        watch: &Watch<'_>,
    ) -> Result<Vec<RecordBatch>> {
        self.execute_plan(plan, (name, rows), context, watch).await
    }

    fn explain_stages(
        &self,
        survey: Arc<dyn ExecutionPlan>,
        write: Arc<dyn ExecutionPlan>,
        bound_policy: &Arc<BoundPolicy>,
        context: &SessionContext,
    ) -> Result<Option<String>> {
        let survey = Arc::new(SurveyExec::new(survey, Arc::clone(bound_policy), u64::MAX));
        let text = Self::explain_stages("survey", survey, context)? + &Self::explain_stages("group", write, context)?;
        Ok(Some(format!("cluster: {self}\n{text}")))
    }

    async fn wait_for_cancellations(&self) {
        if let Some(client) = self.client.get() {
            client.wait_for_cancellations().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let cluster: Cluster = "df://scheduler.data:50050".parse().unwrap();
        assert_eq!(cluster.to_string(), "df://scheduler.data:50050");
        assert_eq!("df://10.0.0.1".parse::<Cluster>().unwrap().to_string(), "df://10.0.0.1:50050");
        for bad in ["scheduler:50050", "http://scheduler:50050", "df://", "df://a:50050/job"] {
            assert!(bad.parse::<Cluster>().is_err(), "{bad}");
        }
    }
}
