//! The DataFusion session of a run: partitions, memory limit, spill folder.
//!
//! Spill files are raw data. They lie in a folder of their own that only its owner can read, and are removed at the
//! end; what a killed run has left there goes when the next one starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::{Error, Result};
use crate::operator::AnonymizeQueryPlanner;

/// Limits of a run.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Most memory for operators, in bytes; no limit when absent.
    pub memory_limit: Option<usize>,
    /// Where to spill; the system's folder for temporary files when absent.
    pub spill_dir: Option<PathBuf>,
    /// Most bytes to spill; DataFusion's default when absent.
    pub spill_limit: Option<u64>,
    /// Partitions of the plan; one per core when absent.
    pub partitions: Option<usize>,
    /// Rows per batch; DataFusion's default when absent.
    pub batch_rows: Option<usize>,
}

/// The spill folder of a run, removed when it ends.
#[derive(Debug)]
pub struct SpillFolder {
    path: PathBuf,
}

/// Consumers named in an out-of-memory error.
const NAMED_CONSUMERS: usize = 3;

impl SessionOptions {
    /// A session within these limits, and its spill folder, which goes when it is dropped.
    pub fn open(&self) -> Result<(SessionContext, SpillFolder)> {
        let parent = self.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        let folder = SpillFolder::create(&parent)?;
        let mut disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![folder.path.clone()]));
        if let Some(limit) = self.spill_limit {
            disk = disk.with_max_temp_directory_size(limit);
        }
        let mut runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk);
        if let Some(limit) = self.memory_limit {
            let consumers = std::num::NonZeroUsize::MIN.saturating_add(NAMED_CONSUMERS - 1);
            runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(FairSpillPool::new(limit), consumers)));
        }
        let mut config = SessionConfig::new();
        if let Some(partitions) = self.partitions {
            config = config.with_target_partitions(partitions);
        }
        if let Some(rows) = self.batch_rows {
            config = config.with_batch_size(rows);
        }
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::new(runtime.build()?))
            .with_default_features()
            .with_query_planner(Arc::new(AnonymizeQueryPlanner))
            .build();
        Ok((SessionContext::new_with_state(state), folder))
    }
}

impl SpillFolder {
    fn create(parent: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::Resources(format!("the spill folder in {} cannot be made: {error}", parent.display()))
        };
        fs::create_dir_all(parent).map_err(failed)?;
        remove_abandoned(parent);
        let path = parent.join(format!("throng-spill-{}", std::process::id()));
        // A second session of this process takes a folder of its own.
        let path = (0..).map(|n| path.with_extension(n.to_string())).find(|path| !path.exists()).unwrap_or(path);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(failed)?;
        Ok(Self { path })
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        // Nothing sensible is left to do when this fails; the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes spill folders whose process is gone.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("throng-spill-"));
        let Some(process) = owner.and_then(|owner| owner.split('.').next()).and_then(|pid| pid.parse::<u32>().ok())
        else {
            continue;
        };
        if !Path::new("/proc").join(process.to_string()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
