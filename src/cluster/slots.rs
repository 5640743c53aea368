//! Task slots of the executors.
//!
//! Ballista frees the slot of a task when the task ends, if it still knows the task. When an executor is lost, stages
//! that others work on are rolled back, their tasks are cancelled and forgotten, and their slots are never freed: an
//! executor of one task then stays idle for ever. So before tasks are assigned, slots that no task occupies are
//! freed here. All of this happens in the one loop of the scheduler, one event after the other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::protobuf::task_status::Status;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{BallistaCluster, BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::execution_stage::ExecutionStage;
use ballista_scheduler::state::task_manager::JobInfoCache;
use tokio::sync::Mutex;

/// The state of a cluster that tracks its slots.
struct Slots {
    inner: Arc<dyn ClusterState>,
    /// Slots that are taken, by executor.
    taken: Mutex<HashMap<String, u32>>,
}

/// Wraps a cluster to track its slots.
pub(super) fn track_slots(cluster: &BallistaCluster) -> BallistaCluster {
    let slots = Slots { inner: cluster.cluster_state(), taken: Mutex::default() };
    BallistaCluster::new(Arc::new(slots), cluster.job_state())
}

/// Slots of tasks that run, by executor.
async fn running_slots(jobs: &HashMap<JobId, JobInfoCache>) -> HashMap<String, u32> {
    let mut running = HashMap::new();
    for job in jobs.values() {
        let graph = job.execution_graph.read().await;
        for stage in graph.stages().values() {
            let ExecutionStage::Running(stage) = stage else { continue };
            for task in &stage.task_infos {
                if let Status::Running(by) = &task.task_status {
                    *running.entry(by.executor_id.clone()).or_default() += task.vcores_consumed;
                }
            }
        }
    }
    running
}

/// Slots to free so that only running tasks occupy any.
fn leaked_slots(taken: &HashMap<String, u32>, running: &HashMap<String, u32>) -> Vec<ExecutorSlot> {
    let idle = |(executor, taken): (&String, &u32)| {
        let idle = taken.saturating_sub(running.get(executor).copied().unwrap_or_default());
        (idle > 0).then(|| (executor.clone(), idle))
    };
    taken.iter().filter_map(idle).collect()
}

/// Frees slots; returns those that were occupied.
fn give_back(taken: &mut HashMap<String, u32>, slots: Vec<ExecutorSlot>) -> Vec<ExecutorSlot> {
    slots
        .into_iter()
        .filter_map(|(executor, number)| {
            let taken = taken.get_mut(&executor)?;
            let known = number.min(*taken);
            *taken -= known;
            (known > 0).then_some((executor, known))
        })
        .collect()
}

#[async_trait]
impl ClusterState for Slots {
    async fn init(&self) -> Result<()> {
        self.inner.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        let mut taken = self.taken.lock().await;
        let idle = leaked_slots(&taken, &running_slots(&active_jobs).await);
        if !idle.is_empty() {
            tracing::info!(?idle, "freed the slots of cancelled tasks");
            self.inner.unbind_tasks(give_back(&mut taken, idle)).await?;
        }
        let bound = self.inner.bind_schedulable_tasks(distribution, active_jobs, executors).await?;
        for (executor, task) in &bound {
            *taken.entry(executor.clone()).or_default() += task.vcores_consumed;
        }
        Ok(bound)
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        let mut taken = self.taken.lock().await;
        self.inner.unbind_tasks(give_back(&mut taken, executor_slots)).await
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> Result<()> {
        self.taken.lock().await.remove(&metadata.id);
        self.inner.register_executor(metadata, spec).await
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.inner.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.inner.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.inner.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.inner.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        self.taken.lock().await.remove(executor_id);
        self.inner.remove_executor(executor_id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.inner.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.inner.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.inner.cluster_state_events().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account<const N: usize>(slots: [(&str, u32); N]) -> HashMap<String, u32> {
        slots.into_iter().map(|(executor, slots)| (executor.to_owned(), slots)).collect()
    }

    #[test]
    fn only_tasks_that_run_take_room() {
        let taken = account([("a", 2), ("b", 1), ("c", 1)]);
        let mut idle = leaked_slots(&taken, &account([("a", 1), ("b", 1)]));
        idle.sort();
        assert_eq!(idle, [("a".to_owned(), 1), ("c".to_owned(), 1)]);
    }

    #[test]
    fn no_more_is_given_back_than_was_taken() {
        let mut taken = account([("a", 1)]);
        let twice = vec![("a".to_owned(), 1), ("a".to_owned(), 1), ("b".to_owned(), 1)];
        assert_eq!(give_back(&mut taken, twice), [("a".to_owned(), 1)]);
        assert_eq!(taken, account([("a", 0)]));
    }
}
