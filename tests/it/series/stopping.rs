//! A store at one of whose writes the whole process stops for ever, as by `kill -9`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

use super::world::World;

/// Whether the write that the process is killed at has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Before,
    After,
}

/// Counts writes, and stops at one.
#[derive(Debug, Clone)]
struct Stopping {
    inner: Arc<dyn ObjectStore>,
    at: usize,
    stop: Stop,
    writes: Arc<AtomicUsize>,
    reached: Arc<Notify>,
}

impl Stopping {
    /// Does a write, unless the process is killed at it.
    async fn write<T>(&self, real: impl Future<Output = Result<T>>) -> Result<T> {
        if self.writes.fetch_add(1, Ordering::SeqCst) != self.at {
            return real.await;
        }
        if self.stop == Stop::After {
            let _ = real.await;
        }
        self.reached.notify_one();
        futures::future::pending().await
    }
}

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopping {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Stopping {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.write(self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let delete = move |path: Result<Path>| {
            let this = this.clone();
            async move {
                let path = path?;
                let one = futures::stream::iter([Ok(path.clone())]).boxed();
                let real = async { this.inner.delete_stream(one).try_collect::<Vec<_>>().await.map(|_| path) };
                this.write(real).await
            }
        };
        paths.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Runs a job in a process of its own, as it were, and kills it at a write; false when the run has ended before.
pub fn killed(world: &World, run: &str, at: usize, stop: Stop) -> bool {
    let reached = Arc::new(Notify::new());
    let store =
        Stopping { inner: Arc::clone(&world.store), at, stop, writes: Arc::default(), reached: Arc::clone(&reached) };
    let (world, run) = (world.through(Arc::new(store)), run.to_owned());
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let was_killed = runtime.block_on(async move {
            let work = tokio::spawn(async move { world.run(&run).await });
            tokio::select! {
                () = reached.notified() => true,
                ended = work => {
                    let _ = ended.unwrap().unwrap();
                    false
                }
            }
        });
        runtime.shutdown_background();
        was_killed
    });
    process.join().unwrap()
}
