//! The first failure of a run, which ends it for all ranks.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicBool, Mutex, Ordering};
use crate::error::Error;
use crate::run::failure::with_chain;

/// Whether a run is aborted, and why.
#[derive(Debug, Default)]
pub(super) struct Abort {
    aborted: CachePadded<AtomicBool>,
    /// The first failure, and whether it is only a consequence of another rank's failure.
    failure: Mutex<Option<(Error, bool)>>,
    /// What ranks waited for when the run was aborted: the errors that their deadlines would have
    /// been.
    waits: Mutex<Vec<Error>>,
}

impl Abort {
    /// Aborts the run with `error`, unless there is a failure already. `follows` says that `error`
    /// is only a consequence of another rank's failure: that rank's own error takes precedence,
    /// even if it comes later.
    pub(super) fn fail(&self, error: Error, follows: bool) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|known| known.1 && !follows) {
            *failure = Some((error, follows));
        } else {
            self.waited(error);
        }
        drop(failure);
        self.aborted.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Notes what a rank waited for.
    pub(super) fn waited(&self, error: Error) {
        self.waits.lock().push(error);
    }

    /// Returns the failure, if there was one, and forgets it. A deadline says what else waited.
    /// Call while no rank is inside a run.
    pub(super) fn take(&self) -> Option<Error> {
        self.aborted.store(false, Ordering::Relaxed);
        let waits = std::mem::take(&mut *self.waits.lock());
        let (error, _) = self.failure.lock().take()?;
        Some(with_chain(error, &waits))
    }
}
