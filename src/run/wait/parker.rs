//! How one rank sleeps until another rank has something for it, such that no wake-up is lost.
//!
//! | sleeper | waker |
//! |---|---|
//! | 1. announces that it will sleep (`prepare`) | 1. hands something over |
//! | 2. fence (`prepare`) | 2. fence (`order`) |
//! | 3. polls once more for what it waits for | 3. looks for the announcement (`unpark`) |
//! | 4. sleeps while it is announced (`sleep`) | 4. if there is one: withdraws it, notifies |
//!
//! One of the two fences comes first in their total order. If it is the sleeper's, the waker sees
//! the announcement in its step 3. If it is the waker's, the sleeper sees in its step 3 what was
//! handed over. Both steps 4 hold the lock, so the waker cannot notify between the sleeper's last
//! look at the announcement and its sleep. `tests/model` checks this file.

use std::time::Instant;

use super::sync::{AtomicBool, Condvar, Mutex, Ordering, fence};

/// The place where one rank sleeps: only that rank sleeps here, and any rank may wake it.
#[derive(Debug, Default)]
pub(crate) struct Parker {
    announced: AtomicBool,
    lock: Mutex<()>,
    wakeup: Condvar,
}

impl Parker {
    /// Sleeper: announces that it will sleep. It must poll once more before [`Parker::sleep`].
    pub(crate) fn prepare(&self) {
        self.announced.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Sleeper: withdraws the announcement, because what it waits for has come.
    pub(crate) fn cancel(&self) {
        self.announced.store(false, Ordering::Relaxed);
    }

    /// Sleeper: sleeps until it is woken, until `until`, or until `over` is true when it looks.
    pub(crate) fn sleep(&self, until: Instant, over: impl Fn() -> bool) {
        let mut guard = self.lock.lock();
        while self.announced.load(Ordering::Relaxed) && !over() {
            if self.wakeup.wait_until(&mut guard, until).timed_out() {
                break;
            }
        }
        self.announced.store(false, Ordering::Relaxed);
    }

    /// Waker, after handing something over: orders that before the look of [`Parker::unpark`].
    #[inline]
    pub(crate) fn order() {
        fence(Ordering::SeqCst);
    }

    /// Waker, after [`Parker::order`]: wakes the sleeper if it has announced itself. Without
    /// `order` the sleeper may miss this wake-up.
    #[inline]
    pub(crate) fn unpark(&self) {
        if self.announced.load(Ordering::Relaxed) {
            self.unpark_announced();
        }
    }

    #[cold]
    fn unpark_announced(&self) {
        let _guard = self.lock.lock();
        self.announced.store(false, Ordering::Relaxed);
        self.wakeup.notify_one();
    }
}
