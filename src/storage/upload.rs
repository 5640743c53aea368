//! Writes one object in parts, and never leaves parts behind.
//!
//! Parts of an upload that is neither completed nor aborted stay in the store, unseen and paid for. A future can be
//! dropped at any moment, and then there is nobody left to abort; so the upload lives in a task of its own, fed by a
//! channel. When the writer says that it is done, the task completes the upload. When a part fails, or the writer goes
//! away without a word, the task aborts it. [`Uploads::join_all`] waits for all of them.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use datafusion::parquet::arrow::async_writer::AsyncFileWriter;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, PutPayloadMut, Result};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// Bytes of a part. S3 takes parts of 5 MiB and more, all of one size but the last, and 10,000 of them.
const PART: usize = 8 << 20;

/// Parts of one object on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// The uploads of a run that have not come to an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uploads {
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Uploads {
    /// Starts to write an object; it is visible once [`Upload::complete`] has returned.
    pub(crate) fn begin_upload(&self, store: &Arc<dyn ObjectStore>, path: &Path) -> Upload {
        let (parts, received) = mpsc::channel(1);
        let (done, outcome) = oneshot::channel();
        let (store, path) = (Arc::clone(store), path.clone());
        let task = async move {
            // Nobody receives the answer if the writer is gone; then only the end matters.
            let _ = done.send(receive_parts(&store, &path, received).await);
        };
        // A task whose handle is dropped goes on: an embedding program that does not wait still aborts.
        let task = tokio::spawn(task);
        if let Ok(mut tasks) = self.tasks.lock() {
            tasks.retain(|task| !task.is_finished());
            tasks.push(task);
        }
        Upload { buffer: PutPayloadMut::new(), parts: Some(parts), outcome: Some(outcome) }
    }

    /// Waits until every upload is complete or aborted. Their writers must be gone.
    pub(crate) async fn join_all(&self) {
        let tasks = self.tasks.lock().map(|mut tasks| std::mem::take(&mut *tasks));
        futures::future::join_all(tasks.unwrap_or_default()).await;
    }
}

/// What the writer says to the task.
#[derive(Debug)]
enum Message {
    Part(PutPayload),
    Last(PutPayload),
}

/// A writer of one object.
#[derive(Debug)]
pub(crate) struct Upload {
    buffer: PutPayloadMut,
    parts: Option<mpsc::Sender<Message>>,
    outcome: Option<oneshot::Receiver<Result<()>>>,
}

impl Upload {
    async fn send_part(&mut self, message: Message) -> ParquetResult<()> {
        let Some(parts) = &self.parts else { return Err(ended_error()) };
        match parts.send(message).await {
            Ok(()) => Ok(()),
            // The task ends early only when something has failed.
            Err(_) => self.await_outcome().await.and(Err(ended_error())),
        }
    }

    async fn await_outcome(&mut self) -> ParquetResult<()> {
        match self.outcome.take() {
            Some(outcome) => match outcome.await {
                Ok(outcome) => outcome.map_err(|error| ParquetError::External(Box::new(error))),
                Err(_) => Err(ended_error()),
            },
            None => Err(ended_error()),
        }
    }
}

fn ended_error() -> ParquetError {
    ParquetError::General("the upload ended before it was complete".into())
}

impl AsyncFileWriter for Upload {
    fn write(&mut self, mut bytes: Bytes) -> BoxFuture<'_, ParquetResult<()>> {
        async move {
            while !bytes.is_empty() {
                let room = PART - self.buffer.content_length();
                self.buffer.push(bytes.split_to(room.min(bytes.len())));
                if self.buffer.content_length() == PART {
                    let part = std::mem::take(&mut self.buffer).freeze();
                    self.send_part(Message::Part(part)).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn complete(&mut self) -> BoxFuture<'_, ParquetResult<()>> {
        async move {
            let last = std::mem::take(&mut self.buffer).freeze();
            self.send_part(Message::Last(last)).await?;
            self.parts = None;
            self.await_outcome().await
        }
        .boxed()
    }
}

/// Takes parts until the last one; a small object is put at once.
async fn receive_parts(store: &Arc<dyn ObjectStore>, path: &Path, mut messages: mpsc::Receiver<Message>) -> Result<()> {
    let first = match messages.recv().await {
        None => return Ok(()),
        Some(Message::Last(payload)) => return store.put(path, payload).await.map(|_| ()),
        Some(Message::Part(part)) => part,
    };
    let mut upload = store.put_multipart(path).await?;
    let mut parts = JoinSet::new();
    let sent = send_all(&mut upload, first, &mut messages, &mut parts).await;
    let done = match sent {
        Ok(true) => upload.complete().await.map(|_| true),
        other => other,
    };
    match done {
        Ok(true) => Ok(()),
        unfinished => {
            parts.shutdown().await;
            if let Err(error) = upload.abort().await {
                tracing::warn!(%path, %error, "an upload could not be aborted; a lifecycle rule removes its parts");
            }
            unfinished.map(|_| ())
        }
    }
}

/// Sends parts as they come; says whether the last one has come and all have arrived.
async fn send_all(
    upload: &mut Box<dyn MultipartUpload>,
    first: PutPayload,
    messages: &mut mpsc::Receiver<Message>,
    parts: &mut JoinSet<Result<()>>,
) -> Result<bool> {
    parts.spawn(upload.put_part(first));
    loop {
        while parts.len() >= PARTS_AT_ONCE {
            join_parts(parts).await?;
        }
        let message = tokio::select! {
            message = messages.recv() => message,
            // A part that fails is heard of at once, not when the next one comes.
            joined = parts.join_next(), if !parts.is_empty() => {
                part_result(joined)?;
                continue;
            }
        };
        match message {
            None => return Ok(false),
            Some(Message::Part(part)) => {
                parts.spawn(upload.put_part(part));
            }
            Some(Message::Last(part)) => {
                if part.content_length() > 0 {
                    parts.spawn(upload.put_part(part));
                }
                while !parts.is_empty() {
                    join_parts(parts).await?;
                }
                return Ok(true);
            }
        }
    }
}

async fn join_parts(parts: &mut JoinSet<Result<()>>) -> Result<()> {
    part_result(parts.join_next().await)
}

fn part_result(joined: Option<std::result::Result<Result<()>, tokio::task::JoinError>>) -> Result<()> {
    match joined {
        None => Ok(()),
        Some(Ok(part)) => part,
        Some(Err(error)) => Err(object_store::Error::JoinError { source: error }),
    }
}
