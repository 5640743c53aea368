//! An S3 server in this process: the protocol, signatures and listings of a real one, on loopback.
//!
//! The file store behind it looks at a condition and writes in two steps, and two writers can come between; so this
//! server takes one conditional write after another. It can be made to answer that it is too busy.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::service::S3ServiceBuilder;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::sync::{Mutex, oneshot};

/// The one who may come in.
pub const KEY_ID: &str = "AKIATHRONG";
/// What they say at the door.
pub const SECRET: &str = "nightly-secret-of-the-tests";
/// The only bucket.
pub const BUCKET: &str = "lake";

/// A running server; it ends with this.
pub struct Server {
    pub endpoint: String,
    root: TempDir,
    busy: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// Starts a server with an empty bucket.
    pub fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(BUCKET)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (busy, asked) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let inner = FileSystem::new(root.path()).unwrap();
        let files = Files { inner, writing: Mutex::default(), busy: Arc::clone(&busy), asked: Arc::clone(&asked) };
        let (stop, stopped) = oneshot::channel();
        thread::spawn(move || serve(listener, files, stopped));
        Self { endpoint, root, busy, asked, _stop: stop }
    }

    /// A client.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        let builder = AmazonS3Builder::new()
            .with_endpoint(&self.endpoint)
            .with_allow_http(true)
            .with_bucket_name(BUCKET)
            .with_access_key_id(KEY_ID)
            .with_secret_access_key(SECRET);
        Arc::new(builder.build().unwrap())
    }

    /// Answers the next requests that it is too busy.
    pub fn be_busy(&self, requests: usize) {
        self.busy.store(requests, Ordering::SeqCst);
    }

    /// Requests that were answered, busy ones too.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Uploads that were begun and neither completed nor aborted, and their parts.
    pub fn unfinished_uploads(&self) -> usize {
        let names = std::fs::read_dir(self.root.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".upload")).count()
    }

    /// Where the objects of the bucket lie.
    pub fn bucket(&self) -> PathBuf {
        self.root.path().join(BUCKET)
    }
}

fn serve(listener: TcpListener, files: Files, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let accept = async {
            loop {
                let Ok((socket, _)) = listener.accept().await else { continue };
                let service = service.clone();
                tokio::spawn(async move {
                    // A client may hang up at any time.
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await;
                });
            }
        };
        tokio::select! {
            () = accept => {}
            _ = stopped => {}
        }
    });
}

/// The file store, with one conditional write at a time.
struct Files {
    inner: FileSystem,
    writing: Mutex<()>,
    busy: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Files {
    fn answer(&self) -> S3Result<()> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Err(s3_error!(SlowDown, "please come back later")),
            Err(_) => Ok(()),
        }
    }
}

/// Calls of the file store, answered unless the server is busy.
macro_rules! pass_on {
    ($($name:ident: $input:ty => $output:ty),* $(,)?) => {
        #[async_trait::async_trait]
        impl S3 for Files {
            $(async fn $name(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                self.answer()?;
                let _one_at_a_time = self.writing.lock().await;
                self.inner.$name(request).await
            })*
        }
    };
}

pass_on! {
    get_object: GetObjectInput => GetObjectOutput,
    head_object: HeadObjectInput => HeadObjectOutput,
    put_object: PutObjectInput => PutObjectOutput,
    copy_object: CopyObjectInput => CopyObjectOutput,
    delete_object: DeleteObjectInput => DeleteObjectOutput,
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput,
    list_objects_v2: ListObjectsV2Input => ListObjectsV2Output,
    create_multipart_upload: CreateMultipartUploadInput => CreateMultipartUploadOutput,
    upload_part: UploadPartInput => UploadPartOutput,
    complete_multipart_upload: CompleteMultipartUploadInput => CompleteMultipartUploadOutput,
    abort_multipart_upload: AbortMultipartUploadInput => AbortMultipartUploadOutput,
}
