//! Cancels work on a cell whose result nobody awaits any more.
//!
//! Grouping runs on a thread of its own, which cannot be stopped from outside. Whoever starts it passes a flag, the
//! loops of the methods poll it by [`checkpoint`], and cancelled work unwinds the thread. That is not a failure:
//! no message is printed, and nobody is left to take the result.

use std::cell::RefCell;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The payload with which cancelled work unwinds its thread.
#[derive(Debug)]
struct Cancelled;

/// Cancels work when it is dropped.
#[derive(Debug, Default)]
pub struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    /// The flag that work polls.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Removes the flag from the thread however the work ends, since threads are reused.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        FLAG.with(|current| current.borrow_mut().take());
    }
}

/// Runs work that ends at its next [`checkpoint`] once the flag is set.
pub fn run_cancellable<T>(flag: Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    FLAG.with(|current| current.replace(Some(flag)));
    let _reset = Reset;
    work()
}

/// Ends the work of this thread if it was cancelled.
#[inline]
pub fn checkpoint() {
    let cancelled = FLAG.with(|flag| flag.borrow().as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    if cancelled {
        // Unlike a panic, this prints nothing.
        panic::resume_unwind(Box::new(Cancelled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn work_ends_at_a_checkpoint_once_nobody_waits() {
        let waiting = CancelOnDrop::default();
        assert_eq!(run_cancellable(waiting.flag(), || (checkpoint(), 7).1), 7);
        let flag = waiting.flag();
        let mut waiting = Some(waiting);
        let mut steps = 0;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            run_cancellable(flag, || {
                for step in 0..10 {
                    steps = step;
                    if step == 3 {
                        waiting.take();
                    }
                    checkpoint();
                }
            });
        }));
        assert!(ended.is_err_and(|why| why.is::<Cancelled>()));
        assert_eq!(steps, 3);
        checkpoint();
    }
}
