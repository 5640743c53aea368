//! The DataFusion session of a run: partitions, memory limit, spill folder.
//!
//! Spill files are raw data. They are kept in a folder of their own that only its owner can read, and are removed at the
//! end; what a killed run has left there is removed when the next one starts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::{Error, Result, io_reason};
use crate::extension::AnonymizeQueryPlanner;
use crate::source::DropColumnStatistics;
use crate::source::ranges::FinerRanges;
use crate::write::unique_name;

/// Limits of a run.
///
/// ```
/// use throng::SessionOptions;
///
/// let (session, _spill) = SessionOptions::default().with_memory_limit(1 << 30).with_partitions(2).open()?;
/// assert_eq!(session.state().config().target_partitions(), 2);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Memory limit of the operators, in bytes. Unlimited by default.
    pub memory_limit: Option<usize>,
    /// Folder to spill to. Defaults to the system's temporary folder.
    pub spill_dir: Option<PathBuf>,
    /// Limit of spilled bytes. Defaults to DataFusion's own.
    pub spill_limit: Option<u64>,
    /// Partitions of the plan. Defaults to one per core.
    pub partitions: Option<usize>,
    /// Rows per batch. Defaults to DataFusion's own.
    pub batch_rows: Option<usize>,
}

/// The spill folder of a run, removed when it ends.
#[derive(Debug)]
pub struct SpillFolder {
    path: PathBuf,
    /// Held while the folder is in use.
    _lock: File,
}

/// How the names of spill folders begin.
const PREFIX: &str = "throng-spill-";

/// The file in a spill folder that its owner holds a lock on.
const LOCK: &str = "lock";

/// How long a folder may be without a lock before it counts as abandoned.
const NEWLY_MADE: Duration = Duration::from_secs(60);

/// Consumers named in an out-of-memory error.
const NAMED_CONSUMERS: usize = 3;

impl SessionOptions {
    /// The same with a memory limit, in bytes.
    #[must_use]
    pub fn with_memory_limit(self, bytes: usize) -> Self {
        Self { memory_limit: Some(bytes), ..self }
    }

    /// The same with another folder to spill to.
    #[must_use]
    pub fn with_spill_dir(self, folder: impl Into<PathBuf>) -> Self {
        Self { spill_dir: Some(folder.into()), ..self }
    }

    /// The same with so many partitions.
    #[must_use]
    pub fn with_partitions(self, partitions: usize) -> Self {
        Self { partitions: Some(partitions), ..self }
    }

    /// Opens a session within these limits, and its spill folder, which is removed when it is dropped.
    pub fn open(&self) -> Result<(SessionContext, SpillFolder)> {
        self.open_with(Ok)
    }

    /// The same with more settings.
    pub(crate) fn open_with(
        &self,
        configure: impl FnOnce(SessionConfig) -> Result<SessionConfig>,
    ) -> Result<(SessionContext, SpillFolder)> {
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
        let config = self.limit_config(configure(SessionConfig::new())?);
        let mut rules = PhysicalOptimizer::new().rules;
        rules.insert(0, Arc::new(DropColumnStatistics));
        rules.push(Arc::new(FinerRanges));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::new(runtime.build()?))
            .with_default_features()
            .with_query_planner(Arc::new(AnonymizeQueryPlanner::default()))
            .with_physical_optimizer_rules(rules)
            .build();
        Ok((SessionContext::new_with_state(state), folder))
    }

    /// A session for plans of this process beside one whose plans are made for others: the same memory, spill folder and
    /// stores.
    pub(crate) fn open_beside(&self, session: &SessionContext) -> SessionContext {
        let config = self.limit_config(SessionConfig::new());
        let state = SessionStateBuilder::new_from_existing(session.state()).with_config(config).build();
        SessionContext::new_with_state(state)
    }

    /// Settings with the limits of the run.
    fn limit_config(&self, mut config: SessionConfig) -> SessionConfig {
        if let Some(partitions) = self.partitions {
            config = config.with_target_partitions(partitions);
        }
        if let Some(limit) = self.memory_limit {
            // Every sort sets memory aside to merge what it has spilled; two of each partition must leave some for cells.
            let share = limit / (8 * config.target_partitions().max(1));
            let reserve = &mut config.options_mut().execution.sort_spill_reservation_bytes;
            *reserve = share.clamp(1 << 20, (*reserve).max(1 << 20));
        }
        if let Some(rows) = self.batch_rows {
            config = config.with_batch_size(rows);
        }
        config
    }
}

impl SpillFolder {
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder in `parent` and removes abandoned ones.
    pub fn create(parent: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let why = io_reason(&error);
            Error::resources(format!(
                "cannot create a spill folder in {}: {why}; choose another with --spill-dir",
                parent.display()
            ))
        };
        fs::create_dir_all(parent).map_err(failed)?;
        remove_abandoned(parent);
        let path = parent.join(format!("{PREFIX}{}", unique_name()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(failed)?;
        let lock = File::create(path.join(LOCK)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        // If this fails, the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes abandoned spill folders. A folder's owner holds a lock in it, which the system releases
/// however the process ends; a process id would mean nothing in a container.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            continue;
        }
        let abandoned = match File::open(entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // A folder without a lock is one that is just being made, unless it has been so for long.
            Err(_) => entry
                .metadata()
                .and_then(|folder| folder.modified())
                .is_ok_and(|made| made.elapsed().is_ok_and(|age| age > NEWLY_MADE)),
        };
        if abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_living_stay_and_those_of_the_dead_go() {
        let parent = tempfile::tempdir().unwrap();
        let alive = SpillFolder::create(parent.path()).unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("spilled"), "raw rows").unwrap();
        let next = SpillFolder::create(parent.path()).unwrap();
        assert!(alive.path.exists() && next.path.exists());
        assert!(!dead.exists());
        drop((alive, next));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
