//! A store that fails at one chosen call, before or after the call has taken effect.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server says that it has failed.
    Error,
    /// No answer comes in time.
    TimeOut,
    /// The server is too busy, and has been so for all retries.
    Throttle,
    /// The connection ends in the middle of an answer.
    Cut,
    /// The answer takes its time, and is right.
    Slow,
}

/// Whether the store has done what was asked when things go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

/// Every way to fail. A server that is busy does nothing, and a slow one does all.
pub const WAYS: [(Fault, When); 8] = [
    (Fault::Error, When::Before),
    (Fault::Error, When::After),
    (Fault::TimeOut, When::Before),
    (Fault::TimeOut, When::After),
    (Fault::Throttle, When::Before),
    (Fault::Cut, When::Before),
    (Fault::Cut, When::After),
    (Fault::Slow, When::Before),
];

/// How long a slow answer takes, and how long a timeout is waited for.
const WHILE: Duration = Duration::from_millis(5);

impl Fault {
    fn error(self) -> Error {
        use std::io::{Error as IoError, ErrorKind};
        let source = match self {
            Self::Error => "500 Internal Server Error".into(),
            Self::Throttle => "503 Slow Down, after 10 retries".into(),
            Self::TimeOut => IoError::new(ErrorKind::TimedOut, "operation timed out").into(),
            Self::Cut | Self::Slow => IoError::new(ErrorKind::ConnectionReset, "connection reset by peer").into(),
        };
        Error::Generic { store: "faulty", source }
    }
}

/// The calls of a store so far, and the one that fails.
#[derive(Debug, Default)]
pub struct Calls {
    count: AtomicUsize,
    names: Mutex<Vec<String>>,
    /// Kind of the calls that are counted down to the fault, all when empty; their number; what happens.
    fault: Option<(&'static str, usize, Fault, When)>,
    fired: AtomicBool,
    uploads: AtomicIsize,
}

impl Calls {
    /// What was called, in order.
    pub fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }

    /// Whether the fault has come.
    pub fn fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }

    /// Uploads that were begun and neither completed nor aborted.
    pub fn unfinished_uploads(&self) -> isize {
        self.uploads.load(Ordering::SeqCst)
    }

    /// Counts a call; what shall go wrong with it.
    fn call(&self, name: &str, path: &str) -> Option<(Fault, When)> {
        self.names.lock().unwrap().push(format!("{name} {path}"));
        let (kind, at, fault, when) = self.fault?;
        if !name.starts_with(kind) {
            return None;
        }
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        (at == number).then(|| {
            self.fired.store(true, Ordering::SeqCst);
            (fault, when)
        })
    }

    /// Does what was asked, or not, and fails, or not.
    async fn around<T>(&self, name: &str, path: &str, real: impl Future<Output = Result<T>>) -> Result<T> {
        let Some((fault, when)) = self.call(name, path) else { return real.await };
        if matches!(fault, Fault::Slow | Fault::TimeOut) {
            tokio::time::sleep(WHILE).await;
        }
        if fault == Fault::Slow {
            return real.await;
        }
        if when == When::After {
            real.await?;
        }
        Err(fault.error())
    }
}

/// A store that counts calls and fails at one of them.
#[derive(Debug, Clone)]
pub struct Faulty {
    inner: Arc<dyn ObjectStore>,
    pub calls: Arc<Calls>,
}

impl Faulty {
    /// A store that only counts.
    pub fn counting(inner: &Arc<dyn ObjectStore>) -> Self {
        Self { inner: Arc::clone(inner), calls: Arc::default() }
    }

    /// A store that fails at a call.
    pub fn at(inner: &Arc<dyn ObjectStore>, call: usize, fault: Fault, when: When) -> Self {
        Self::at_kind(inner, "", call, fault, when)
    }

    /// A store that fails at a call among those of one kind.
    pub fn at_kind(inner: &Arc<dyn ObjectStore>, kind: &'static str, call: usize, fault: Fault, when: When) -> Self {
        let calls = Calls { fault: Some((kind, call, fault, when)), ..Calls::default() };
        Self { inner: Arc::clone(inner), calls: Arc::new(calls) }
    }

    /// Half of a stream, and then the fault: the connection was cut on the way.
    fn half<T: Send + 'static>(all: Vec<Result<T>>, fault: Fault) -> BoxStream<'static, Result<T>> {
        let half = all.len() / 2;
        futures::stream::iter(all.into_iter().take(half)).chain(futures::stream::iter([Err(fault.error())])).boxed()
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faulty {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.calls.around("put", path.as_ref(), self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        // Nobody can abort an upload that they have no name of: it is not begun when beginning it fails.
        let upload = match self.calls.call("begin upload", path.as_ref()) {
            Some((fault, _)) if fault != Fault::Slow => return Err(fault.error()),
            _ => self.inner.put_multipart_opts(path, options).await?,
        };
        self.calls.uploads.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(FaultyUpload { upload, path: path.clone(), calls: Arc::clone(&self.calls), open: true }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let name = if options.head { "head" } else { "get" };
        let real = self.inner.get_opts(path, options);
        let Some((fault, when)) = self.calls.call(name, path.as_ref()) else { return real.await };
        match (fault, when) {
            (Fault::Slow, _) => {
                tokio::time::sleep(WHILE).await;
                real.await
            }
            (Fault::Cut, When::After) if name == "get" => {
                let found = real.await?;
                let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
                let bytes = found.bytes().await?;
                let halves = vec![Ok(bytes.slice(..bytes.len() / 2)), Ok(bytes.slice(bytes.len() / 2..))];
                let payload = GetResultPayload::Stream(Self::half(halves, fault));
                Ok(GetResult { payload, meta, range, attributes })
            }
            _ => Err(fault.error()),
        }
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.calls.around("get ranges", path.as_ref(), self.inner.get_ranges(path, ranges)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        paths
            .then(move |path| {
                let this = this.clone();
                async move {
                    let path = path?;
                    let one = futures::stream::iter([Ok(path.clone())]).boxed();
                    let real = this.inner.delete_stream(one).try_collect::<Vec<_>>().map(|done| done.map(|_| path));
                    this.calls.around("delete", "", real).await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let this = self.clone();
        let prefix = prefix.cloned();
        let listed = async move {
            let found = this.inner.list(prefix.as_ref()).collect::<Vec<_>>();
            match this.calls.call("list", prefix.as_ref().map_or("", Path::as_ref)) {
                None => futures::stream::iter(found.await).boxed(),
                Some((Fault::Slow, _)) => {
                    tokio::time::sleep(WHILE).await;
                    futures::stream::iter(found.await).boxed()
                }
                Some((fault, When::After)) => Self::half(found.await, fault),
                Some((fault, When::Before)) => Self::half(Vec::new(), fault),
            }
        };
        futures::stream::once(listed).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let name = prefix.map_or("", Path::as_ref);
        self.calls.around("list folder", name, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.calls.around("copy", from.as_ref(), self.inner.copy_opts(from, to, options)).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    upload: Box<dyn MultipartUpload>,
    path: Path,
    calls: Arc<Calls>,
    open: bool,
}

impl FaultyUpload {
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.calls.uploads.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let real = self.upload.put_part(data);
        let (calls, path) = (Arc::clone(&self.calls), self.path.clone());
        async move { calls.around("put part", path.as_ref(), real).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let calls = Arc::clone(&self.calls);
        let path = self.path.clone();
        calls
            .around("complete upload", path.as_ref(), async {
                let done = self.upload.complete().await?;
                self.close();
                Ok(done)
            })
            .await
    }

    async fn abort(&mut self) -> Result<()> {
        let calls = Arc::clone(&self.calls);
        let path = self.path.clone();
        // An upload that is complete, though nobody has heard of it, cannot be aborted any more.
        let open = self.open;
        calls
            .around("abort upload", path.as_ref(), async {
                if open {
                    self.upload.abort().await?;
                }
                self.close();
                Ok(())
            })
            .await
    }
}
