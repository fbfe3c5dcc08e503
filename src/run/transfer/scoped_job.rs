//! Running a borrowed closure on threads that outlive the borrow.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::run::tuning::LOOK_INTERVAL;

/// A borrowed closure, as sent to one of the team's threads.
#[derive(Clone, Copy)]
pub(crate) struct ScopedJob(&'static (dyn Fn(usize) + Sync));

impl std::fmt::Debug for ScopedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScopedJob")
    }
}

impl ScopedJob {
    /// Runs the closure as thread `rank`. It must not unwind: [`run_on_all`] waits for one report
    /// from each thread.
    pub(crate) fn run(self, rank: usize) {
        (self.0)(rank);
    }
}

/// Runs `f` on every thread, and waits until all of them have reported that they are done with it.
///
/// Each thread receives jobs on its channel, runs them, and sends one report for each. Threads that
/// have ended are not waited for. While it waits, it calls `look` now and then, which must not
/// unwind. Returns the number of threads that ran `f`.
pub(crate) fn run_on_all(
    threads: &[Sender<ScopedJob>],
    reports: &Receiver<()>,
    f: &(dyn Fn(usize) + Sync),
    look: Option<&dyn Fn()>,
) -> usize {
    // SAFETY: only the lifetime changes. Every job sent below is reported before this function
    // returns, a thread is done with its job before it reports, and a disconnected report channel
    // means that no thread is left that could run a job. So `f` outlives every use of the
    // transmuted reference.
    let scoped_job = ScopedJob(unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f)
    });
    let sent = threads
        .iter()
        .filter(|t| t.send(scoped_job).is_ok())
        .count();
    let report = || {
        let Some(look) = look else {
            return reports.recv().is_ok();
        };
        loop {
            match reports.recv_timeout(LOOK_INTERVAL) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) => look(),
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    };
    (0..sent).take_while(|_| report()).count()
}
