//! `throng executor`: Ballista's executor with our codecs, object stores and limits.
//!
//! Shuffle and spill files are raw data. They lie in a folder of this process that only its owner can read, which goes at
//! its end; what a killed executor has left is removed when the next one starts in the same place.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::ExecutorHealth;
use tokio::net::TcpListener;

use super::MAX_MESSAGE_BYTES;
use super::codec::ClusterCodec;
use super::scheduler::cluster_error;
use super::store_config::{default_settings, executor_runtime};
use crate::engine::SpillFolder;
use crate::error::{Error, Result, io_reason};
use crate::write::unique_name;

/// How an executor runs.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    /// Host of the scheduler.
    pub scheduler: String,
    /// Port of the scheduler.
    pub scheduler_port: u16,
    /// Address to listen at.
    pub bind: IpAddr,
    /// Port from which other executors and drivers fetch data.
    pub port: u16,
    /// Port on which the scheduler submits tasks.
    pub task_port: u16,
    /// Port that answers `/healthz` and `/readyz`.
    pub health_port: u16,
    /// Name by which others reach it. Defaults to the address that the scheduler sees.
    pub advertise: Option<String>,
    /// Where its folder for shuffle and spill files is made.
    pub work_dir: PathBuf,
    /// Memory limit of its tasks, in bytes. Defaults to 70 % of that of the machine or container.
    pub memory_limit: Option<u64>,
    /// Limit of spilled bytes.
    pub spill_limit: Option<u64>,
    /// Number of concurrent tasks.
    pub concurrency: usize,
    /// Interval of its heartbeats to the scheduler.
    pub heartbeat: Duration,
    /// How long it waits for the scheduler at startup.
    pub timeouts: Duration,
}

impl Executor {
    /// Runs until the process receives a signal to stop, then waits for running tasks.
    pub(crate) async fn run_until_stopped(&self) -> Result<()> {
        let folder = SpillFolder::create(&self.work_dir)?;
        let health = ExecutorHealth::new();
        let probes = serve_health(SocketAddr::new(self.bind, self.health_port), health.clone());
        let config = self.process_config(folder.path().to_owned(), health);
        tracing::info!(id = config.executor_id, scheduler = %self.scheduler, tasks = self.concurrency, "executor started");
        tokio::select! {
            ended = start_executor_process(Arc::new(config)) => ended.map_err(cluster_error)?,
            ended = probes => ended?,
        }
        tracing::info!("executor stopped");
        Ok(())
    }

    fn process_config(&self, folder: PathBuf, health: ExecutorHealth) -> ExecutorProcessConfig {
        let work_dir = folder.display().to_string();
        let spill_limit = self.spill_limit;
        let host = self.advertise.clone().unwrap_or_else(|| self.bind.to_string());
        ExecutorProcessConfig {
            // Readable in logs, and a new one after a restart, because the old one's data is gone.
            executor_id: format!("{host}:{}-{}", self.port, unique_name()),
            bind_host: self.bind.to_string(),
            external_host: self.advertise.clone(),
            port: self.port,
            grpc_port: self.task_port,
            scheduler_host: self.scheduler.clone(),
            scheduler_port: self.scheduler_port,
            scheduler_connect_timeout_seconds: self.timeouts.as_secs() as u16,
            vcores: self.concurrency,
            task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
            work_dir: Some(work_dir),
            executor_heartbeat_interval_seconds: self.heartbeat.as_secs().max(1),
            memory_pool_size: self.memory_limit,
            grpc_max_decoding_message_size: MAX_MESSAGE_BYTES as u32,
            grpc_max_encoding_message_size: MAX_MESSAGE_BYTES as u32,
            override_config_producer: Some(Arc::new(default_settings)),
            override_runtime_producer: Some(Arc::new(move |config| {
                executor_runtime(config, &folder, spill_limit).map_err(Error::into_datafusion)
            })),
            override_physical_codec: Some(Arc::new(ClusterCodec::default())),
            health,
            ..ExecutorProcessConfig::default()
        }
    }
}

/// Answers probes: alive while the process runs, ready while heartbeats reach the scheduler.
async fn serve_health(address: SocketAddr, health: ExecutorHealth) -> Result<()> {
    let taken = |error: std::io::Error| {
        let why = io_reason(&error);
        Error::resources(format!("cannot listen on {address}: {why}; choose another --health-port"))
    };
    let listener = TcpListener::bind(address).await.map_err(taken)?;
    let ready = |State(health): State<ExecutorHealth>| async move {
        if health.is_ready() {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "the scheduler has not answered yet\n")
        }
    };
    let routes = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready));
    Ok(axum::serve(listener, routes.with_state(health)).await?)
}
