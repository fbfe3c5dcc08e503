//! How one rank sleeps until another has something for it, without a wake-up being lost.
//!
//! | sleeper | waker |
//! |---|---|
//! | 1. announces that it will sleep | 1. hands something over |
//! | 2. fence | 2. fence |
//! | 3. looks once more for what it waits for | 3. looks whether the sleeper has announced itself |
//! | 4. sleeps until the announcement is withdrawn | 4. if so, withdraws the announcement and rings |
//!
//! One of the two fences comes first. If it is the sleeper's, the waker sees the announcement; if
//! it is the waker's, the sleeper sees what was handed over. Steps 4 hold a lock, so the bell
//! cannot ring between the sleeper's look at the announcement and its sleep. `tests/model` checks
//! this file.

use std::time::Instant;

use super::sync::{AtomicBool, Condvar, Mutex, Ordering, fence};

/// One rank's bell: it alone sleeps by it, anybody rings it.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    announced: AtomicBool,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Parker {
    /// Sleeper: says that it will sleep. What it waits for must be looked for once more before
    /// [`Parker::sleep`].
    pub(crate) fn prepare(&self) {
        self.announced.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Sleeper: what it waits for has come, it will not sleep.
    pub(crate) fn cancel(&self) {
        self.announced.store(false, Ordering::Relaxed);
    }

    /// Sleeper: sleeps until the bell rings, `until` has come, or `over` is true when it looks.
    pub(crate) fn sleep(&self, until: Instant, over: impl Fn() -> bool) {
        let mut guard = self.lock.lock();
        while self.announced.load(Ordering::Relaxed) && !over() {
            if self.rung.wait_until(&mut guard, until).timed_out() {
                break;
            }
        }
        self.announced.store(false, Ordering::Relaxed);
    }

    /// Waker, after handing something over: orders that before the look of [`Parker::ring`].
    #[inline]
    pub(crate) fn order() {
        fence(Ordering::SeqCst);
    }

    /// Waker, after [`Parker::order`]: wakes the sleeper if it has announced itself. Without `order`
    /// it may sleep on.
    #[inline]
    pub(crate) fn unpark(&self) {
        if self.announced.load(Ordering::Relaxed) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        let _guard = self.lock.lock();
        self.announced.store(false, Ordering::Relaxed);
        self.rung.notify_one();
    }
}
