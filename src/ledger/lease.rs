//! Leases, which protect the files of an active run from `gc`.
//!
//! A run puts a lease into its folder before the first file, renews it every minute and removes it once the release is
//! committed and `_latest` points to it. `gc` leaves a folder alone whose lease is fresh. Of one that has not been renewed
//! for ten minutes it takes the lease first, then looks for the manifest once more, and removes files only if there is
//! none. A run that was suspended for so long finds its lease gone right after it has written its manifest, and takes the
//! manifest back: either `gc` saw the manifest, or the run sees that `gc` was there.
//!
//! A lease in the folder of a committed release says that its run has died before it could point to it.

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use tokio::task::JoinHandle;

use crate::error::Result;
use crate::storage::Location;

/// Name of the lease in the folder of a run. Readers of Parquet folders ignore names that begin so.
pub(crate) const LEASE: &str = "_lease";

/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(60);

/// How long a lease holds that is not renewed.
pub(crate) const EXPIRY: Duration = Duration::from_secs(600);

/// The lease of a folder, renewed as long as it is held.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Arc<dyn ObjectStore>,
    path: Path,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Creates a lease in a folder.
    pub(crate) async fn create_in(sink: &Location, folder: &Path) -> Result<Self> {
        let (store, path) = (Arc::clone(&sink.store), folder.clone().join(LEASE));
        store.put(&path, PutPayload::new()).await?;
        let renewal = {
            let (store, path) = (Arc::clone(&store), path.clone());
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(RENEWAL).await;
                    // One that `gc` has taken must stay away.
                    match store.head(&path).await {
                        Err(object_store::Error::NotFound { .. }) => return,
                        _ => {
                            if let Err(error) = store.put(&path, PutPayload::new()).await {
                                tracing::warn!(%error, "the lease of the staged files could not be renewed");
                            }
                        }
                    }
                }
            })
        };
        Ok(Self { store, path, renewal })
    }

    /// Removes the lease. Best effort: a leftover expires.
    pub(crate) async fn release_lease(self) {
        self.renewal.abort();
        match self.store.delete(&self.path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(%error, "the lease of a release could not be removed"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Path of the lease of a folder, which is named below the sink.
pub(crate) fn lease_of(sink: &Location, data: &str) -> Path {
    sink.at(data).join(LEASE)
}

/// Whether a folder has a lease, fresh or not.
pub(crate) async fn is_leased(sink: &Location, data: &str) -> Result<bool> {
    match sink.store.head(&lease_of(sink, data)).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
