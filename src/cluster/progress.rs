//! Progress of jobs. Ballista reports that a job runs, but not its progress; so our scheduler answers that
//! on a port of its own, and the driver turns the answer into the metrics that progress bars read.
//!
//! Polling proves that a driver is alive. The job of a driver that stops polling is cancelled: nobody would commit it. So is
//! a job that has long had no executor: Ballista would let it wait for ever.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use ballista_core::JobId;
use ballista_core::serde::protobuf::task_status::Status;
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::execution_stage::{ExecutionStage, TaskInfo};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{internal_err, not_impl_err};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpRequestBody, ReqwestConnector};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::error::{Error, Result};

/// The progress of the stages of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Partitions by stage: those that are done, and all.
    pub stages: BTreeMap<usize, (usize, usize)>,
    /// Tasks that are done, by executor.
    pub executors: BTreeMap<String, usize>,
    /// Executors that are there.
    #[serde(default)]
    pub alive: usize,
}

impl Progress {
    /// The part that is done.
    pub(crate) fn done_share(&self) -> f64 {
        let shares = self.stages.values().map(|&(done, all)| done as f64 / all.max(1) as f64);
        shares.sum::<f64>() / self.stages.len().max(1) as f64
    }

    fn add_stage(&mut self, stage: &ExecutionStage) {
        let (id, all, tasks): (_, _, &[TaskInfo]) = match stage {
            ExecutionStage::UnResolved(stage) => (stage.stage_id, 1, &[]),
            ExecutionStage::Resolved(stage) => (stage.stage_id, stage.partitions, &[]),
            ExecutionStage::Running(stage) => (stage.stage_id, stage.partitions, &stage.task_infos),
            ExecutionStage::Successful(stage) => (stage.stage_id, stage.partitions, &stage.task_infos),
            ExecutionStage::Failed(stage) => (stage.stage_id, stage.partitions, &[]),
        };
        let mut done = 0;
        for task in tasks {
            if let Status::Successful(by) = &task.task_status {
                done += task.global_input_partition_ids.len();
                *self.executors.entry(by.executor_id.clone()).or_default() += 1;
            }
        }
        self.stages.insert(id, (done.min(all), all));
    }
}

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// The scheduler, and when each job was asked about.
struct ProgressService {
    scheduler: Server,
    asked: Mutex<HashMap<JobId, Asked>>,
    timeouts: Timeouts,
}

/// When a scheduler was first and last asked about a job.
#[derive(Debug, Clone, Copy)]
struct Asked {
    first: Instant,
    last: Instant,
}

/// Timeouts of silent executors and drivers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Timeout of executors. A job waits twice as long for one to register.
    pub(super) executors: Duration,
    /// Timeout of drivers, after which their jobs are cancelled.
    pub(super) drivers: Duration,
}

/// How often the scheduler looks for orphaned jobs.
const ROUND: Duration = Duration::from_secs(1);

/// Answers `GET /progress/<job>` until the process ends, and cancels jobs whose drivers have been silent, or that have had
/// no executor, for too long.
pub(super) async fn serve_progress(address: SocketAddr, scheduler: Server, timeouts: Timeouts) -> Result<()> {
    let taken = |error: std::io::Error| {
        let why = crate::error::io_reason(&error);
        Error::resources(format!(
            "cannot listen on {address} to report the progress of jobs: {why}; choose another --port"
        ))
    };
    let listener = TcpListener::bind(address).await.map_err(taken)?;
    let service = Arc::new(ProgressService { scheduler, asked: Mutex::default(), timeouts });
    let routes = Router::new().route("/progress/{job}", get(report_progress)).with_state(Arc::clone(&service));
    tokio::select! {
        ended = axum::serve(listener, routes).into_future() => Ok(ended?),
        () = service.cancel_orphaned_jobs() => Ok(()),
    }
}

impl ProgressService {
    /// Never ends.
    async fn cancel_orphaned_jobs(&self) {
        let mut no_executors_since: Option<Instant> = None;
        loop {
            tokio::time::sleep(ROUND).await;
            no_executors_since = match self.count_executors().await {
                0 => no_executors_since.or(Some(Instant::now())),
                _ => None,
            };
            let mut orphaned = Vec::new();
            if let Ok(mut asked) = self.asked.lock() {
                asked.retain(|job, times| {
                    let why = self.timeouts.cancel_reason(*times, no_executors_since);
                    orphaned.extend(why.map(|why| (job.clone(), why)));
                    why.is_none()
                });
            }
            let running = self.scheduler.state.task_manager.get_running_job_cache();
            for (job, why) in orphaned.into_iter().filter(|(job, _)| running.contains_key(job)) {
                tracing::warn!(%job, "{why}: cancelling the job");
                if let Err(error) = self.scheduler.cancel_job(job).await {
                    tracing::warn!(%error, "a job cannot be cancelled");
                }
            }
        }
    }

    /// Executors that have sent a heartbeat recently.
    async fn count_executors(&self) -> usize {
        let known = self.scheduler.state.executor_manager.get_executors_state().await.unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let lately = |heartbeat: &Duration| now.saturating_sub(*heartbeat) < self.timeouts.executors;
        known.iter().filter(|(_, heartbeat, _)| heartbeat.as_ref().is_some_and(lately)).count()
    }
}

impl Timeouts {
    /// Returns why a job is to be cancelled, if it is; `no_executors_since` is when the last executor was lost.
    fn cancel_reason(&self, asked: Asked, no_executors_since: Option<Instant>) -> Option<&'static str> {
        let waits = no_executors_since.map_or(Duration::ZERO, |since| since.max(asked.first).elapsed());
        if asked.last.elapsed() >= self.drivers {
            Some("its driver is gone")
        } else if waits >= 2 * self.executors {
            Some("it has had no executor for too long")
        } else {
            None
        }
    }
}

async fn report_progress(
    State(service): State<Arc<ProgressService>>,
    Path(job): Path<String>,
) -> Result<Json<Progress>, StatusCode> {
    let job = JobId::from(job);
    let running = service.scheduler.state.task_manager.get_running_job_cache();
    let found = running.get(&job).ok_or(StatusCode::NOT_FOUND)?;
    if let Ok(mut asked) = service.asked.lock() {
        let now = Instant::now();
        asked.entry(job).or_insert(Asked { first: now, last: now }).last = now;
    }
    let mut progress = Progress { alive: service.count_executors().await, ..Progress::default() };
    let graph = found.execution_graph.read().await;
    graph.stages().values().for_each(|stage| progress.add_stage(stage));
    Ok(Json(progress))
}

/// Asks schedulers for the progress of jobs.
struct ProgressClient(HttpClient);

impl ProgressClient {
    fn new(answer_timeout: Duration) -> Result<Self> {
        let options = ClientOptions::new().with_allow_http(true).with_http1_only();
        let options = options.with_connect_timeout(answer_timeout).with_timeout(answer_timeout);
        Ok(Self(ReqwestConnector::default().connect(&options)?))
    }

    /// The progress of a job; `None` while the scheduler does not answer.
    async fn ask_progress(&self, host: &str, port: u16, job: &str) -> Option<Progress> {
        let question = Request::get(format!("http://{host}:{port}/progress/{job}"));
        let answer = self.0.execute(question.body(HttpRequestBody::empty()).ok()?).await.ok()?;
        serde_json::from_slice(&answer.into_body().bytes().await.ok()?).ok()
    }
}

/// How long an answer may take: a scheduler that accepts connections and says nothing is one that does not answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the scheduler is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Represents a job on the cluster: a plan without rows, whose metrics report its progress.
#[derive(Debug)]
pub(crate) struct RemoteExec {
    metrics: ExecutionPlanMetricsSet,
    rows: Count,
    properties: Arc<PlanProperties>,
}

impl RemoteExec {
    pub(super) fn new() -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        let rows = MetricBuilder::new(&metrics).output_rows(0);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(SchemaRef::new(Schema::empty())),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { metrics, rows, properties: Arc::new(properties) }
    }

    /// Follows a job of `rows` rows. It never ends: whoever waits for the job stops it.
    pub(super) async fn follow_job(&self, host: &str, port: u16, job: &str, rows: u64) {
        let (mut last, mut no_executors_since) = (Progress::default(), false);
        let client = ProgressClient::new(ANSWER_TIMEOUT);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let Ok(client) = &client else { continue };
            let Some(progress) = client.ask_progress(host, port, job).await else { continue };
            if progress.alive == 0 && !no_executors_since {
                tracing::warn!(job, "the cluster has no executor; the job waits for one until a timeout");
            }
            no_executors_since = progress.alive == 0;
            let done = (progress.done_share() * rows as f64) as usize;
            self.rows.add(done.saturating_sub(self.rows.value()));
            if progress != last {
                tracing::info!(job, stages = ?progress.stages, executors = ?progress.executors, "tasks done");
                last = progress;
            }
        }
    }
}

impl DisplayAs for RemoteExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteExec")
    }
}

impl ExecutionPlan for RemoteExec {
    fn name(&self) -> &str {
        "RemoteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("RemoteExec has no children") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("RemoteExec has no children") }
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> DataFusionResult<SendableRecordBatchStream> {
        not_impl_err!("RemoteExec runs elsewhere")
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn progress_is_asked_of_a_scheduler_that_answers() {
        let progress = Progress { stages: [(1, (2, 4))].into(), alive: 1, ..Progress::default() };
        let answer = progress.clone();
        let routes = Router::new().route("/progress/a", get(|| async { Json(answer) }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(axum::serve(listener, routes).into_future());
        let client = ProgressClient::new(ANSWER_TIMEOUT).unwrap();
        assert_eq!(client.ask_progress("127.0.0.1", port, "a").await, Some(progress));
        assert_eq!(client.ask_progress("127.0.0.1", port, "b").await, None, "a job that is not known");
        server.abort();
    }

    /// It accepts connections, and nobody is there.
    #[tokio::test]
    async fn a_scheduler_that_says_nothing_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let client = ProgressClient::new(Duration::from_millis(200)).unwrap();
        let started = Instant::now();
        assert_eq!(client.ask_progress("127.0.0.1", port, "a").await, None);
        assert!(started.elapsed() < ANSWER_TIMEOUT);
    }

    #[test]
    fn jobs_are_called_off_without_a_driver_or_for_long_without_executors() {
        let timeouts = Timeouts { executors: Duration::from_secs(10), drivers: Duration::from_secs(30) };
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).unwrap();
        let asked = |first, last| Asked { first: ago(first), last: ago(last) };
        assert_eq!(timeouts.cancel_reason(asked(100, 1), None), None);
        assert!(timeouts.cancel_reason(asked(100, 31), None).unwrap().contains("driver"));
        assert!(timeouts.cancel_reason(asked(100, 1), Some(ago(21))).unwrap().contains("executor"));
        assert_eq!(timeouts.cancel_reason(asked(100, 1), Some(ago(15))), None, "one may still come");
        assert_eq!(timeouts.cancel_reason(asked(5, 1), Some(ago(500))), None, "the job is new");
    }
}
