//! `throng scheduler`: Ballista's scheduler with our codecs and settings.
//!
//! It answers `/healthz` and `/readyz` on its port, and reports progress on another. It keeps no data and no state
//! on disk: jobs that run when it stops fail, and their drivers say so.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use super::codec::ClusterCodec;
use super::progress::Timeouts;
use super::slots::track_slots;
use super::store_config::{default_settings, scheduler_session};
use super::{MAX_MESSAGE_BYTES, progress};
use crate::error::{Error, Result, io_reason};

/// The default port.
pub(crate) const PORT: u16 = 50050;

/// The port next to a scheduler's own, on which it reports progress.
pub(crate) fn progress_port(port: u16) -> u16 {
    port.saturating_add(1)
}

/// How a scheduler runs.
#[derive(Debug, Clone)]
pub(crate) struct Scheduler {
    /// Address to listen at.
    pub bind: IpAddr,
    /// Port for drivers and executors; the next port reports the progress of jobs.
    pub port: u16,
    /// Name by which executors reach it.
    pub advertise: String,
    /// Timeout after which the tasks of a silent executor are given to others.
    pub executor_timeout: Duration,
    /// Timeout after which the job of a silent driver is cancelled.
    pub driver_timeout: Duration,
    /// Number of executors that must have registered before it is ready.
    pub min_executors: usize,
}

impl Scheduler {
    /// Runs until the process receives a signal to stop.
    pub(crate) async fn run_until_stopped(&self) -> Result<()> {
        let config = Arc::new(self.scheduler_config());
        let address = SocketAddr::new(self.bind, self.port);
        let taken = |error: std::io::Error| {
            let why = io_reason(&error);
            Error::resources(format!("cannot listen on {address}: {why}; choose another --bind or --port"))
        };
        let listener = TcpListener::bind(address).await.map_err(taken)?;
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(cluster_error)?;
        let cluster = track_slots(&cluster);
        let server =
            create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await.map_err(cluster_error)?;
        let progress_address = SocketAddr::new(self.bind, progress_port(self.port));
        let timeouts = Timeouts { executors: self.executor_timeout, drivers: self.driver_timeout };
        let progress = progress::serve_progress(progress_address, server.clone(), timeouts);
        tracing::info!(%address, "scheduler listening");
        tokio::select! {
            ended = start_grpc_service_with_listener(listener, server) => ended.map_err(cluster_error),
            ended = progress => ended,
        }
    }

    fn scheduler_config(&self) -> SchedulerConfig {
        let seconds = self.executor_timeout.as_secs().max(1);
        SchedulerConfig {
            external_host: self.advertise.clone(),
            bind_host: self.bind.to_string(),
            bind_port: self.port,
            scheduling_policy: TaskSchedulingPolicy::PushStaged,
            task_distribution: TaskDistributionPolicy::RoundRobin,
            executor_timeout_seconds: seconds,
            expire_dead_executor_interval_seconds: seconds.div_ceil(3),
            no_executors_grace_period_seconds: seconds * 2,
            // Drivers clean up after their jobs; this is for those that could not.
            finished_job_data_clean_up_interval_seconds: 300,
            grpc_server_max_decoding_message_size: MAX_MESSAGE_BYTES as u32,
            grpc_server_max_encoding_message_size: MAX_MESSAGE_BYTES as u32,
            grpc_client_max_message_size: MAX_MESSAGE_BYTES as u32,
            min_ready_executors: self.min_executors,
            override_physical_codec: Some(Arc::new(ClusterCodec::default())),
            override_config_producer: Some(Arc::new(default_settings)),
            override_session_builder: Some(Arc::new(scheduler_session)),
            ..SchedulerConfig::default()
        }
    }
}

pub(crate) fn cluster_error(error: BallistaError) -> Error {
    match error {
        BallistaError::IoError(error) => error.into(),
        BallistaError::DataFusionError(error) => (*error).into(),
        BallistaError::GrpcConnectionError(text) => Error::retry(format!("{text}; is the scheduler running?")),
        other => Error::resources(other.to_string()),
    }
}
