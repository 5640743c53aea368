//! Where data lives: a local path or an object-store URL, as a store and a prefix in it.

use std::path::Path as LocalPath;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::{Path, PathPart};
use url::Url;

use crate::error::{Error, Result};
use crate::job::local_path;

/// A place in an object store; the local file system is one.
#[derive(Debug, Clone)]
pub struct Location {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// Address of the store itself, for DataFusion's registry.
    pub root: Url,
    /// The place in the store.
    pub prefix: Path,
    /// The address as people write it.
    pub name: String,
}

impl Location {
    /// Opens a location; a relative path starts at `base`. Credentials come from the environment, never from the job.
    pub fn open(base: &LocalPath, location: &str) -> Result<Self> {
        if let Some(path) = local_path(base, location) {
            let path = std::path::absolute(&path)?;
            let bad =
                |error: object_store::path::Error| Error::Job(format!("`{location}` is not a usable path: {error}"));
            return Ok(Self {
                store: Arc::new(LocalFileSystem::new().with_automatic_cleanup(true)),
                root: Url::parse("file:///").map_err(|error| Error::Internal(error.to_string()))?,
                prefix: Path::from_absolute_path(&path).map_err(bad)?,
                name: location.to_owned(),
            });
        }
        let url = Url::parse(location).map_err(|error| Error::Job(format!("`{location}` is not a URL: {error}")))?;
        // Stores take their options by lower-case names: aws_region, google_service_account, azure_storage_...
        let options = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let (store, prefix) = object_store::parse_url_opts(&url, options)
            .map_err(|error| Error::Job(format!("`{location}` cannot be opened: {error}")))?;
        let mut root = url.clone();
        root.set_path("");
        Ok(Self { store: Arc::from(store), root, prefix, name: location.to_owned() })
    }

    /// A place below this one. What is encoded in the name stays so.
    pub fn at(&self, name: &str) -> Path {
        let part = |part| PathPart::parse(part).unwrap_or_else(|_| PathPart::from(part));
        name.split('/').fold(self.prefix.clone(), |path, name| path.join(part(name)))
    }

    /// The URL of a path in this store, as DataFusion names it.
    pub fn url(&self, path: &Path) -> String {
        let mut url = self.root.clone();
        url.set_path(&path.as_ref().replace('%', "%25"));
        url.into()
    }
}
