//! Where a command finds the cluster that does its work.

use std::sync::Arc;

use clap::Args;

use crate::cluster::Cluster;
use crate::engine::Engine;

/// Where the work is done.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// Run on a cluster, given the address of its scheduler: df://host:port. This process then opens the source, merges
    /// the results of the executors, judges them and commits; --partitions is the number of tasks and defaults to 16
    #[arg(long, env = "THRONG_CLUSTER", value_name = "ADDRESS")]
    cluster: Option<Cluster>,
}

impl ClusterArguments {
    /// The cluster, if one is named.
    pub(crate) fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.cluster.clone().map(|cluster| Arc::new(cluster) as Arc<dyn Engine>)
    }
}
