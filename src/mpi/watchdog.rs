//! The deadline of calls into the MPI library that may never return.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::binding::Mpi;
use crate::error::{Error, Result};

/// How often the watchdog looks.
const PERIOD: Duration = Duration::from_millis(50);

/// A thread that ends all processes when a call takes too long.
#[derive(Debug)]
pub(super) struct Watchdog {
    shared: Arc<WatchState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// When the call that is watched has to return, and what it does.
    watched: Mutex<Option<(Instant, String)>>,
    ends: AtomicBool,
}

impl Watchdog {
    /// Starts the thread. `name` is how its message calls this process.
    pub(super) fn new(mpi: &'static Mpi, name: String) -> Result<Watchdog> {
        let shared = Arc::new(WatchState::default());
        let theirs = Arc::clone(&shared);
        let watch = move || {
            while !theirs.ends.load(Ordering::Acquire) {
                std::thread::park_timeout(PERIOD);
                let watched = theirs.watched.lock();
                if let Some((due, what)) = &*watched
                    && Instant::now() > *due
                {
                    mpi.end_job(&format!("{name} waits too long in {what}"));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("watchdog".into())
            .spawn(watch)
            .map_err(|e| Error::system(format!("cannot start the watchdog: {e}")))?;
        Ok(Watchdog {
            shared,
            thread: Some(thread),
        })
    }

    /// Calls `f`, which does `what`, and ends all processes unless it returns within `deadline`.
    pub(super) fn watch<R>(&self, what: &str, deadline: Duration, f: impl FnOnce() -> R) -> R {
        self.arm(what, deadline);
        let result = f();
        self.disarm();
        result
    }

    /// Aborts the job, naming `what`, unless [`Watchdog::disarm`] is called within `deadline`.
    pub(super) fn arm(&self, what: &str, deadline: Duration) {
        // A deadline that no clock reaches never passes.
        let due = Instant::now().checked_add(deadline);
        *self.shared.watched.lock() = due.map(|due| (due, what.to_owned()));
    }

    /// What was watched has ended.
    pub(super) fn disarm(&self) {
        *self.shared.watched.lock() = None;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
