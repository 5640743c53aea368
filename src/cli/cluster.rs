//! `throng scheduler` and `throng executor`: the roles of a cluster.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;

use crate::arguments::parse_size;
use crate::cluster::{Executor, Scheduler, scheduler};
use crate::error::Result;
use crate::storage::Timeout;

/// Run the scheduler of a cluster
///
/// It hands out the work of `throng run --cluster` to executors. It answers /healthz and /readyz on its port. Nothing
/// between the parts of a cluster is encrypted or authenticated: keep its ports within a network that you trust.
///
/// Example: throng scheduler --bind 0.0.0.0 --advertise scheduler.data.svc
#[derive(Debug, Args)]
pub(crate) struct SchedulerArguments {
    /// Address to listen at
    #[arg(long, env = "THRONG_BIND", value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port for drivers and executors; the next port reports the progress of jobs to drivers
    #[arg(long, env = "THRONG_PORT", value_name = "PORT", default_value_t = scheduler::PORT, value_parser = clap::value_parser!(u16).range(1..65535))]
    port: u16,
    /// Host name by which executors reach it
    #[arg(long, env = "THRONG_ADVERTISE", value_name = "HOST", default_value = "localhost")]
    advertise: String,
    /// Timeout after which the work of a silent executor is given to others; longer than its --heartbeat
    #[arg(long, env = "THRONG_EXECUTOR_TIMEOUT", value_name = "TIME", default_value = "20s")]
    executor_timeout: Timeout,
    /// Timeout after which the job of a silent driver is cancelled
    #[arg(long, env = "THRONG_DRIVER_TIMEOUT", value_name = "TIME", default_value = "60s")]
    driver_timeout: Timeout,
    /// Number of executors that must have registered before /readyz succeeds
    #[arg(long, env = "THRONG_MIN_EXECUTORS", value_name = "N", default_value_t = 1)]
    min_executors: usize,
}

/// Run an executor of a cluster
///
/// It takes tasks from a scheduler: it reads, shuffles, groups and writes. Credentials of object stores come from its own
/// environment. It answers /healthz and /readyz on its health port. On SIGTERM it takes no more tasks, and ends when those
/// that it has are done.
///
/// Example: throng executor --scheduler scheduler.data.svc --memory-limit 6GB --concurrency 4 --work-dir /scratch
#[derive(Debug, Args)]
pub(crate) struct ExecutorArguments {
    /// Host of the scheduler
    #[arg(long, env = "THRONG_SCHEDULER", value_name = "HOST", default_value = "localhost")]
    scheduler: String,
    /// Port of the scheduler
    #[arg(long, env = "THRONG_SCHEDULER_PORT", value_name = "PORT", default_value_t = scheduler::PORT)]
    scheduler_port: u16,
    /// Address to listen at
    #[arg(long, env = "THRONG_BIND", value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port from which other executors and drivers fetch data
    #[arg(long, env = "THRONG_PORT", value_name = "PORT", default_value_t = 50061)]
    port: u16,
    /// Port on which the scheduler submits tasks
    #[arg(long, env = "THRONG_TASK_PORT", value_name = "PORT", default_value_t = 50062)]
    task_port: u16,
    /// Port that answers /healthz and /readyz
    #[arg(long, env = "THRONG_HEALTH_PORT", value_name = "PORT", default_value_t = 50063)]
    health_port: u16,
    /// Host name by which others reach it. Defaults to the address that the scheduler sees
    #[arg(long, env = "THRONG_ADVERTISE", value_name = "HOST")]
    advertise: Option<String>,
    /// Folder for shuffle and spill files, which hold raw data. Defaults to the system's temporary folder
    #[arg(long, env = "THRONG_WORK_DIR", value_name = "FOLDER")]
    work_dir: Option<PathBuf>,
    /// Memory limit of all its tasks, which share it evenly. Defaults to 70 % of the machine or container
    #[arg(long, env = "THRONG_MEMORY_LIMIT", value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<ByteSize>,
    /// Limit of disk space for spill files, for example 100GB
    #[arg(long, env = "THRONG_SPILL_LIMIT", value_name = "SIZE", value_parser = parse_size)]
    spill_limit: Option<ByteSize>,
    /// Number of concurrent tasks. Defaults to one per core
    #[arg(long, env = "THRONG_CONCURRENCY", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Interval of its heartbeats to the scheduler
    #[arg(long, env = "THRONG_HEARTBEAT", value_name = "TIME", default_value = "5s")]
    heartbeat: Timeout,
    /// How long to wait for the scheduler at startup
    #[arg(long, env = "THRONG_SCHEDULER_PATIENCE", value_name = "TIME", default_value = "60s")]
    patience: Timeout,
}

/// Runs a scheduler until the process receives a signal to stop.
pub(crate) async fn run_scheduler(arguments: SchedulerArguments) -> Result<()> {
    let scheduler = Scheduler {
        bind: arguments.bind,
        port: arguments.port,
        advertise: arguments.advertise,
        executor_timeout: arguments.executor_timeout.0,
        driver_timeout: arguments.driver_timeout.0,
        min_executors: arguments.min_executors,
    };
    tokio::select! {
        ended = scheduler.run_until_stopped() => ended,
        () = super::run::wait_for_stop() => {
            tracing::info!("scheduler stopped");
            Ok(())
        }
    }
}

/// Runs an executor until the process receives a signal to stop.
pub(crate) async fn run_executor(arguments: ExecutorArguments) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let executor = Executor {
        scheduler: arguments.scheduler,
        scheduler_port: arguments.scheduler_port,
        bind: arguments.bind,
        port: arguments.port,
        task_port: arguments.task_port,
        health_port: arguments.health_port,
        advertise: arguments.advertise,
        work_dir: arguments.work_dir.unwrap_or_else(std::env::temp_dir),
        memory_limit: arguments.memory_limit.map(|size| size.0),
        spill_limit: arguments.spill_limit.map(|size| size.0),
        concurrency: arguments.concurrency.map_or(cores, usize::from),
        heartbeat: arguments.heartbeat.0,
        timeouts: arguments.patience.0.max(Duration::from_secs(1)),
    };
    executor.run_until_stopped().await
}
