//! From an address to a store: the ones that were handed over first, then the local file system, then the clouds.

use std::fmt;
use std::path::{Component, Path as LocalPath, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

use super::cloud;
use super::location::Location;
use crate::error::{Error, Result};
use crate::storage::{StoreOptions, local_path};

/// Object stores by address. An embedding program registers its own with [`with`](Self::with); all
/// others are opened with the credentials of the environment.
///
/// ```
/// use std::sync::Arc;
///
/// use object_store::memory::InMemory;
/// use throng::RunOptions;
/// use throng::releases::Stores;
///
/// let stores = Stores::default().with("s3://lake", Arc::new(InMemory::new()))?;
/// let options = RunOptions::default().with_stores(stores);
/// # drop(options);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stores {
    given: Vec<(Url, Arc<dyn ObjectStore>)>,
}

/// How a store is reached, described for people and without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// What it is.
    pub kind: String,
    /// Its settings by name.
    pub settings: Vec<(&'static str, String)>,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.settings.iter().try_for_each(|(name, value)| write!(f, ", {name} {value}"))
    }
}

impl Stores {
    /// Registers a store for all addresses with the scheme and bucket of `url`.
    pub fn with(mut self, url: &str, store: Arc<dyn ObjectStore>) -> Result<Self> {
        self.given.push((store_root(&parse_url(url)?)?, store));
        Ok(self)
    }

    /// Opens a location; a relative path starts at `base`. Credentials come from the environment, never from the job.
    pub fn open(&self, base: &LocalPath, location: &str, options: &StoreOptions) -> Result<Location> {
        let (root, prefix) = match local_path(base, location) {
            Some(path) => {
                let path = absolute_path(&path)?;
                let bad = |error: object_store::path::Error| {
                    Error::job(format!("`{location}` is not a usable path: {error}"))
                };
                (parse_url("file:///")?, Path::from_absolute_path(&path).map_err(bad)?)
            }
            None => {
                let url = parse_url(location)?;
                let (_, prefix) = store_scheme(&url)?;
                (store_root(&url)?, prefix)
            }
        };
        let (store, service) = match self.given.iter().find(|(url, _)| *url == root) {
            Some((_, store)) => (Arc::clone(store), named_service("a store of the embedding program")),
            None if root.scheme() == "file" => {
                (Arc::new(LocalFileSystem::new().with_automatic_cleanup(true)) as _, named_service("local files"))
            }
            None => {
                let url = parse_url(location)?;
                let opened = cloud::open_store(&store_scheme(&url)?.0, &url, options);
                opened.map_err(|error| error.context(format!("`{location}` cannot be opened")))?
            }
        };
        Ok(Location { store, root, prefix, name: location.to_owned(), service })
    }
}

/// An absolute path without `..`, which addresses of stores cannot hold.
fn absolute_path(path: &LocalPath) -> std::io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    Ok(plain)
}

fn named_service(kind: &str) -> Service {
    Service { kind: kind.to_owned(), settings: Vec::new() }
}

fn parse_url(location: &str) -> Result<Url> {
    Url::parse(location).map_err(|error| Error::job(format!("`{location}` is not a URL: {error}")))
}

fn store_scheme(url: &Url) -> Result<(ObjectStoreScheme, Path)> {
    ObjectStoreScheme::parse(url).map_err(|error| Error::job(error.to_string()))
}

/// The address of a store itself. DataFusion distinguishes stores by scheme and host alone, so a container that is
/// written as a user (`abfss://container@account...`) becomes a part of the host.
fn store_root(url: &Url) -> Result<Url> {
    let mut root = url.clone();
    root.set_path("");
    if !url.username().is_empty() {
        let host = format!("{}.{}", url.username(), url.host_str().unwrap_or_default());
        let bad = || Error::job(format!("`{url}` is not the address of a store"));
        root.set_username("").map_err(|()| bad())?;
        root.set_host(Some(&host)).map_err(|_| bad())?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn open(stores: &Stores, location: &str) -> Location {
        stores.open(LocalPath::new("/jobs"), location, &StoreOptions::default()).unwrap()
    }

    #[test]
    fn stores_that_were_handed_over_are_used() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let stores = Stores::default().with("s3://lake", Arc::clone(&store)).unwrap();
        let place = open(&stores, "s3://lake/raw/people/");
        assert!(Arc::ptr_eq(&place.store, &store));
        assert_eq!((place.prefix.as_ref(), place.root.as_str()), ("raw/people", "s3://lake"));
        let local = open(&stores, "data");
        assert_eq!((local.prefix.as_ref(), local.service.to_string().as_str()), ("jobs/data", "local files"));
        assert_eq!(open(&stores, "../data/./raw").prefix.as_ref(), "data/raw");
    }

    #[test]
    fn two_containers_of_one_account_are_two_stores() {
        let [raw, out] = ["raw", "out"].map(|name| format!("abfss://{name}@acme.dfs.core.windows.net/census/"));
        let stores = Stores::default()
            .with(&raw, Arc::new(InMemory::new()))
            .and_then(|stores| stores.with(&out, Arc::new(InMemory::new())))
            .unwrap();
        let (raw, out) = (open(&stores, &raw), open(&stores, &out));
        assert_ne!(raw.root.host_str(), out.root.host_str());
        assert!(!Arc::ptr_eq(&raw.store, &out.store));
        assert_eq!(raw.prefix.as_ref(), "census");
    }
}
