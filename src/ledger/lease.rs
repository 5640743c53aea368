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
        Self::take_renewed(sink, folder, RENEWAL).await
    }

    /// The same with another time between renewals.
    async fn take_renewed(sink: &Location, folder: &Path, interval: Duration) -> Result<Self> {
        let (store, path) = (Arc::clone(&sink.store), folder.clone().join(LEASE));
        store.put(&path, PutPayload::new()).await?;
        let renewal = {
            let (store, path) = (Arc::clone(&store), path.clone());
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(interval).await;
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

#[cfg(test)]
mod tests {
    use std::path::Path as LocalPath;

    use object_store::memory::InMemory;

    use super::*;
    use crate::storage::{StoreOptions, Stores};

    fn sink() -> Location {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let stores = Stores::default().with("s3://lake", store).unwrap();
        stores.open(LocalPath::new("."), "s3://lake/out", &StoreOptions::default()).unwrap()
    }

    async fn written(sink: &Location) -> Option<jiff::Timestamp> {
        let found = sink.store.head(&lease_of(sink, "data/a")).await.ok()?;
        jiff::Timestamp::from_nanosecond(found.last_modified.timestamp_nanos_opt()?.into()).ok()
    }

    const INTERVAL: Duration = Duration::from_millis(40);

    /// Waits until a lease is newer than it was, for at most a while.
    async fn is_renewed(sink: &Location, before: Option<jiff::Timestamp>) -> bool {
        for _ in 0..100 {
            tokio::time::sleep(INTERVAL / 4).await;
            if written(sink).await > before {
                return true;
            }
        }
        false
    }

    #[tokio::test]
    async fn a_lease_is_renewed_until_it_is_given_back() {
        let sink = sink();
        assert!(!is_leased(&sink, "data/a").await.unwrap());
        let lease = Lease::take_renewed(&sink, &sink.at("data/a"), INTERVAL).await.unwrap();
        assert!(is_leased(&sink, "data/a").await.unwrap() && !is_leased(&sink, "data/b").await.unwrap());
        let first = written(&sink).await;
        assert!(first.is_some() && is_renewed(&sink, first).await);
        lease.release_lease().await;
        tokio::time::sleep(3 * INTERVAL).await;
        assert!(!is_leased(&sink, "data/a").await.unwrap(), "nobody renews it any more");
    }

    /// What `gc` has taken must stay away, or a run would commit files that are gone.
    #[tokio::test]
    async fn a_lease_that_was_taken_away_does_not_come_back() {
        let sink = sink();
        let lease = Lease::take_renewed(&sink, &sink.at("data/a"), INTERVAL).await.unwrap();
        sink.store.delete(&lease_of(&sink, "data/a")).await.unwrap();
        tokio::time::sleep(3 * INTERVAL).await;
        assert!(!is_leased(&sink, "data/a").await.unwrap());
        lease.release_lease().await;
    }

    /// A run that dies leaves its lease where it is, and it grows old.
    #[tokio::test]
    async fn a_dropped_lease_stays_and_is_not_renewed() {
        let sink = sink();
        drop(Lease::take_renewed(&sink, &sink.at("data/a"), INTERVAL).await.unwrap());
        let first = written(&sink).await;
        tokio::time::sleep(3 * INTERVAL).await;
        assert!(first.is_some() && written(&sink).await == first);
    }
}
