//! The driver's side of the scheduler: submit a plan, wait for its end, fetch its rows. A job whose waiter goes away is
//! cancelled, and the data that it leaves on executors is cleaned.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ballista_core::client::BallistaClient;
use ballista_core::config::BallistaConfig;
use ballista_core::extension::{SessionConfigExt, SessionConfigHelperExt};
use ballista_core::serde::protobuf::execute_query_failure_result::Failure;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::get_job_status_result::FlightProxy;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobStatusParams, PartitionLocation, SuccessfulJob,
    execute_query_result, job_status,
};
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_endpoint};
use ballista_core::{JobId, version};
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use super::codec::ClusterCodec;
use super::{MAX_MESSAGE_BYTES, guard};
use crate::error::{Error, Result};
use crate::write::unique_name;

/// How often the scheduler is asked for the state of a job.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long the scheduler may be out of reach while a job runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attempts at fetching a partition of the result before it counts as lost, and the pause between them.
const FETCHES: (u8, u64) = (5, 500);

type Connection = SchedulerGrpcClient<Channel>;

/// A connection to the scheduler of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    connection: Connection,
    host: String,
    port: u16,
    /// Cancellations of jobs that are in flight.
    pending_cancellations: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

fn unreachable_error(host: &str, port: u16, error: impl std::fmt::Display) -> Error {
    Error::retry(format!("the scheduler at {host}:{port} cannot be reached ({error}); is `throng scheduler` running?"))
}

impl Client {
    /// Connects to a scheduler.
    pub(crate) async fn connect(host: &str, port: u16) -> Result<Self> {
        let settings = GrpcClientConfig::from(&BallistaConfig::default());
        let failed = |error: &dyn std::error::Error| unreachable_error(host, port, root_of(error));
        let endpoint = create_grpc_client_endpoint(format!("http://{host}:{port}"), Some(&settings))
            .map_err(|error| failed(&error))?;
        let channel = endpoint.connect().await.map_err(|error| failed(&error))?;
        let connection = SchedulerGrpcClient::new(channel)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { connection, host: host.to_owned(), port, pending_cancellations: Arc::default() })
    }

    /// Waits until the scheduler has been notified of every abandoned job.
    pub(crate) async fn wait_for_cancellations(&self) {
        let pending_cancellations = self
            .pending_cancellations
            .lock()
            .map(|mut pending_cancellations| std::mem::take(&mut *pending_cancellations));
        futures::future::join_all(pending_cancellations.unwrap_or_default()).await;
    }

    /// Submits a plan.
    pub(crate) async fn submit_plan(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        name: &str,
        context: &SessionContext,
    ) -> Result<Job> {
        let message = PhysicalPlanNode::try_from_physical_plan(plan, &ClusterCodec::default())?;
        let mut bytes = Vec::new();
        message.try_encode(&mut bytes)?;
        if bytes.len() > MAX_MESSAGE_BYTES {
            return Err(Error::resources(format!(
                "the plan of this job has {}, but a cluster accepts at most {}; use smaller hierarchies",
                bytesize::ByteSize(bytes.len() as u64),
                bytesize::ByteSize(MAX_MESSAGE_BYTES as u64)
            )));
        }
        tracing::debug!(bytes = bytes.len(), "submitting a plan");
        let settings = context.copied_config().with_ballista_job_name(name).to_key_value_pairs();
        let query = ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(bytes)),
            settings,
            session_id: context.session_id(),
            operation_id: unique_name(),
        };
        let mut request = tonic::Request::new(query);
        version::insert_version_header(request.metadata_mut());
        let answer = self.connection.clone().execute_query(request).await;
        let answer = answer.map_err(|status| self.rejection_error(&status))?;
        let theirs = version::version_from_metadata(answer.metadata()).map(str::to_owned);
        version::check_compatibility(Some(ballista_core::BALLISTA_VERSION), theirs.as_deref()).map_err(|why| {
            Error::input(format!(
                "the scheduler runs another version ({why}); run the same version of throng everywhere"
            ))
        })?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(accepted)) => {
                tracing::info!(job = %accepted.job_id, "submitted to the cluster: {name}");
                Ok(Job { client: self.clone(), id: accepted.job_id.into(), ended: false })
            }
            Some(execute_query_result::Result::Failure(refusal)) => Err(Error::input(format!(
                "the scheduler cannot read the plan ({}); run the same version of throng everywhere",
                refusal.failure.map_or_else(|| "it gives no reason".to_owned(), why_refused)
            ))),
            None => Err(Error::internal("the scheduler has not answered a plan")),
        }
    }

    fn rejection_error(&self, status: &tonic::Status) -> Error {
        use tonic::Code::{DeadlineExceeded, Unavailable, Unknown};
        match status.code() {
            Unavailable | DeadlineExceeded | Unknown => unreachable_error(&self.host, self.port, status.message()),
            _ => Error::input(format!("the scheduler has rejected the plan: {}", status.message())),
        }
    }
}

fn why_refused(failure: Failure) -> String {
    match failure {
        Failure::SessionNotFound(why) | Failure::PlanParsingFailure(why) | Failure::SqlParsingFailure(why) => why,
    }
}

/// The innermost cause of a failure, which says more than the transport error around it.
fn root_of(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().map_or_else(String::new, ToString::to_string)
}

/// A job on the cluster. Dropped before its end, it is cancelled.
#[derive(Debug)]
pub(crate) struct Job {
    client: Client,
    id: JobId,
    ended: bool,
}

impl Job {
    /// Its identity.
    pub(crate) fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Waits for its end, and fetches its rows.
    pub(crate) async fn collect_rows(mut self) -> Result<Vec<RecordBatch>> {
        let (done, proxy) = self.wait_for_end().await?;
        let mut batches = Vec::new();
        for location in done.partition_location {
            batches.extend(self.fetch_partition(location, proxy.as_ref()).await?);
        }
        Ok(batches)
    }

    async fn wait_for_end(&mut self) -> Result<(SuccessfulJob, Option<FlightProxy>)> {
        let mut unheard = Duration::ZERO;
        loop {
            let asked = GetJobStatusParams { job_id: self.id.clone().into() };
            match self.client.connection.get_job_status(asked).await {
                Ok(answer) => {
                    unheard = Duration::ZERO;
                    let answer = answer.into_inner();
                    match answer.status.and_then(|status| status.status) {
                        Some(job_status::Status::Successful(done)) => {
                            self.ended = true;
                            return Ok((done, answer.flight_proxy));
                        }
                        Some(job_status::Status::Failed(failed)) => {
                            self.ended = true;
                            return Err(self.classify_failure(&failed.error));
                        }
                        _ => {}
                    }
                }
                Err(status) if unheard >= PATIENCE => return Err(self.client.rejection_error(&status)),
                Err(_) => unheard += POLL_INTERVAL,
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Classifies a failure of the cluster. Messages that are not Throng's own may quote a value and are not passed on.
    fn classify_failure(&self, text: &str) -> Error {
        guard::decode_error(text).unwrap_or_else(|| {
            let id = &self.id;
            // The scheduler passes errors of executors on as text; these are how DataFusion's begin that are about memory.
            let exhausted = ["Resources exhausted", "Failed to allocate"].iter().any(|sign| text.contains(sign));
            if exhausted {
                return Error::resources(format!(
                    "an executor has too little memory for job {id}; give executors more with --memory-limit, or run the \
                     job with more --partitions"
                ));
            }
            Error::retry(format!(
                "the cluster could not finish job {id}; nothing was published, run again (the logs of the scheduler and \
                 the executors say more)"
            ))
        })
    }

    async fn fetch_partition(
        &self,
        location: PartitionLocation,
        proxy: Option<&FlightProxy>,
    ) -> Result<Vec<RecordBatch>> {
        let lost = |what: String| {
            Error::retry(format!("an executor was lost before its results were fetched ({what}); run again"))
        };
        let layout = location.layout();
        let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
            return Err(Error::internal("the scheduler does not report the location of a result"));
        };
        let (host, port) = match proxy {
            Some(FlightProxy::Local(true)) => (self.client.host.clone(), self.client.port),
            Some(FlightProxy::External(address)) => match address.rsplit_once(':') {
                Some((host, port)) => (host.to_owned(), port.parse().unwrap_or(self.client.port)),
                None => (address.clone(), self.client.port),
            },
            _ => (executor.host.clone(), executor.port as u16),
        };
        let (times, pause) = FETCHES;
        let connected = BallistaClient::try_new(&host, port, MAX_MESSAGE_BYTES, false, None, times, pause, 0, 0).await;
        let mut client = connected.map_err(|error| lost(error.to_string()))?;
        let rows = client
            .fetch_partition_proxied(
                &executor.id,
                &partition.into(),
                location.file_id,
                layout,
                &executor.host,
                executor.port as u16,
                true,
            )
            .await
            .map_err(|error| lost(error.to_string()))?;
        rows.try_collect().await.map_err(|error| lost(error.strip_backtrace()))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let (mut connection, job_id, ended) = (self.client.connection.clone(), self.id.to_string(), self.ended);
        // Without a runtime the process is about to end, and the scheduler cleans up in its own time.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let farewell = runtime.spawn(async move {
                if !ended {
                    let _ = connection.cancel_job(CancelJobParams { job_id: job_id.clone() }).await;
                }
                let _ = connection.clean_job_data(CleanJobDataParams { job_id, remove_stage_ids: Vec::new() }).await;
            });
            if let Ok(mut pending_cancellations) = self.client.pending_cancellations.lock() {
                pending_cancellations.push(farewell);
            }
        }
    }
}
