//! The threads that do the work, and what a process must not touch after it was forked.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;
use throng::{Error, ErrorKind, Result};
use tokio::runtime::Runtime;

use crate::errors::to_exception;

/// How often signals are looked at and progress is reported while Python waits.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The runtime, and the process that its threads belong to.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The thread that imported the module: Python runs handlers of signals there alone.
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

pub(crate) fn remember_main_thread() {
    MAIN_THREAD.get_or_init(|| std::thread::current().id());
}

/// Returns the runtime of this process. One that was forked gets its own: threads do not survive a fork.
pub(crate) fn runtime() -> Result<Arc<Runtime>> {
    let mut held = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = held.as_ref()
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    // Dropping the parent's would wait for threads that are not here.
    std::mem::forget(held.take());
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("throng").build();
    let runtime =
        built.map_err(|error| Error::new(ErrorKind::Resources, format!("threads cannot be started: {error}")))?;
    let runtime = Arc::new(runtime);
    *held = Some((process, Arc::clone(&runtime)));
    Ok(runtime)
}

/// What only the process that made it may drop: a forked one must not remove the spill folder of its parent.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    process: u32,
    value: ManuallyDrop<T>,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), value: ManuallyDrop::new(value) }
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.is_own() {
            #[expect(unsafe_code, reason = "it is dropped here alone, and never used again")]
            let () = unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Runs the handlers of signals that have arrived, if this is the thread for it.
pub(crate) fn check_signals() -> PyResult<()> {
    if MAIN_THREAD.get() != Some(&std::thread::current().id()) {
        return Ok(());
    }
    Python::attach(|py| py.check_signals())
}

/// Starts a future and waits for it without holding the interpreter. A signal whose handler raises, such as Ctrl-C, ends the wait
/// and drops the future.
pub(crate) fn wait_for<F, T, E>(py: Python<'_>, start: impl FnOnce() -> F + Send) -> PyResult<T>
where
    F: Future<Output = Result<T, E>>,
    T: Send,
    E: Into<Error>,
{
    let runtime = runtime().map_err(to_exception)?;
    py.detach(|| runtime.block_on(async { watch_signals(start()).await?.map_err(to_exception) }))
}

/// Polls a future and looks at signals meanwhile; an error is what a handler has raised.
pub(crate) async fn watch_signals<T>(future: impl Future<Output = T>) -> PyResult<T> {
    watch(future, check_signals).await
}

/// Polls a future and calls `tick` again and again until it ends or `tick` fails.
pub(crate) async fn watch<T>(future: impl Future<Output = T>, mut tick: impl FnMut() -> PyResult<()>) -> PyResult<T> {
    let mut future = std::pin::pin!(future);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        tokio::select! {
            biased;
            done = &mut future => return Ok(done),
            _ = ticks.tick() => tick()?,
        }
    }
}
