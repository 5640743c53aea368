//! How executors reach the object stores of a job. The addresses and options of its places travel with the settings of
//! the session; credentials do not: every executor takes them from its own environment, as the driver does.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use ballista_core::extension::SessionConfigExt;
use ballista_core::utils::default_session_builder;
use datafusion::common::config_err;
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;

use super::codec::ClusterCodec;
use crate::engine::StoreLocation;
use crate::error::{Error, Result};
use crate::storage::{Stores, local_path};

/// The places of a job, as a setting.
#[derive(Debug, Clone, Default)]
pub(super) struct StoreConfigs {
    /// As JSON.
    text: String,
}

/// The name of the setting.
const KEY: &str = "places";

impl ConfigExtension for StoreConfigs {
    const PREFIX: &'static str = "throng";
}

impl ExtensionOptions for StoreConfigs {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> DataFusionResult<()> {
        if key != KEY {
            return config_err!("there is no setting `throng.{key}`");
        }
        value.clone_into(&mut self.text);
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let description = "places that a job reads and writes";
        vec![ConfigEntry { key: format!("{}.{KEY}", Self::PREFIX), value: Some(self.text.clone()), description }]
    }
}

impl StoreConfigs {
    /// The places of a job. Local ones need no options.
    pub(super) fn new(places: &[StoreLocation]) -> Result<Self> {
        let far: Vec<&StoreLocation> =
            places.iter().filter(|place| local_path(Path::new(""), &place.url).is_none()).collect();
        let text = serde_json::to_string(&far).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self { text })
    }

    fn list_locations(&self) -> Result<Vec<StoreLocation>> {
        if self.text.is_empty() {
            return Ok(Vec::new());
        }
        let bad = |error| Error::internal(format!("the places of a job cannot be read: {error}"));
        serde_json::from_str(&self.text).map_err(bad)
    }
}

/// The default settings of a session.
pub(super) fn default_settings() -> SessionConfig {
    let mut config = SessionConfig::new_with_ballista()
        .with_ballista_physical_extension_codec(Arc::new(ClusterCodec::default()))
        .with_ballista_grpc_client_max_message_size(super::MAX_MESSAGE_BYTES);
    // Text as one machine reads it. Ballista would have it copied value by value; its shuffle can send views, too.
    config.options_mut().execution.parquet.schema_force_view_types = true;
    config.options_mut().extensions.insert(StoreConfigs::default());
    config
}

/// What a session runs in on an executor: the stores of its job, and a folder to spill to.
pub(super) fn executor_runtime(
    config: &SessionConfig,
    folder: &Path,
    spill_limit: Option<u64>,
) -> Result<Arc<RuntimeEnv>> {
    let mut disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![folder.to_owned()]));
    if let Some(limit) = spill_limit {
        disk = disk.with_max_temp_directory_size(limit);
    }
    let runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc()?;
    register_stores(config, &runtime)?;
    Ok(runtime)
}

/// What plans are read in on the scheduler. It opens no file, but a plan is only read where its stores are known.
pub(super) fn scheduler_session(config: SessionConfig) -> DataFusionResult<SessionState> {
    let state = default_session_builder(config)?;
    register_stores(state.config(), state.runtime_env()).map_err(Error::into_datafusion)?;
    Ok(state)
}

/// Makes the stores of a job known.
fn register_stores(config: &SessionConfig, runtime: &RuntimeEnv) -> Result<()> {
    let places = config.options().extensions.get::<StoreConfigs>().map(StoreConfigs::list_locations).transpose()?;
    for place in places.unwrap_or_default() {
        let location = Stores::default().open(Path::new("/"), &place.url, &place.options)?;
        runtime.register_object_store(&location.root, location.store);
    }
    Ok(())
}
