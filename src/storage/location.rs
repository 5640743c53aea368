//! Where data lives: a local path or an object-store URL, as a store and a prefix in it.

use std::path::Path as LocalPath;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::{Path, PathPart};
use url::Url;

use super::stores::{Service, Stores};
use crate::error::Result;
use crate::storage::StoreOptions;

/// A location in an object store; the local file system counts as one.
#[derive(Debug, Clone)]
pub struct Location {
    /// The store.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Address of the store itself, for DataFusion's registry.
    pub(crate) root: Url,
    /// The place in the store.
    pub(crate) prefix: Path,
    /// The address as written in the job.
    pub(crate) name: String,
    /// How the store is reached.
    pub(crate) service: Service,
}

impl Location {
    /// Opens a location; a relative path starts at `base`. Credentials come from the environment, never from the job.
    pub fn open(base: &LocalPath, location: &str) -> Result<Self> {
        Stores::default().open(base, location, &StoreOptions::default())
    }

    /// Returns a path below this location. What is encoded in the name stays so.
    pub fn at(&self, name: &str) -> Path {
        let part = |part| PathPart::parse(part).unwrap_or_else(|_| PathPart::from(part));
        name.split('/').fold(self.prefix.clone(), |path, name| path.join(part(name)))
    }

    /// Returns the URL of a path in this store, as DataFusion names it.
    pub(crate) fn url(&self, path: &Path) -> String {
        let mut url = self.root.clone();
        url.set_path(&path.as_ref().replace('%', "%25"));
        url.into()
    }
}
