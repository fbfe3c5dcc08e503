//! Lending a closure to threads that outlive it.

use crossbeam_channel::{Receiver, Sender};

/// A closure on loan to one of the team's threads.
#[derive(Clone, Copy)]
pub(crate) struct ScopedJob(&'static (dyn Fn(usize) + Sync));

impl std::fmt::Debug for ScopedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Errand")
    }
}

impl ScopedJob {
    /// Runs it as `rank`. It must not unwind: [`lend`] waits for one report from each thread.
    pub(crate) fn run(self, rank: usize) {
        (self.0)(rank);
    }
}

/// Has every thread run `f`, and waits until all have reported that they are done with it.
///
/// Each thread receives errands on its channel, runs them, and sends one report each. Threads that
/// are gone are not waited for; returns how many ran `f`.
pub(crate) fn run_on_all(
    threads: &[Sender<ScopedJob>],
    reports: &Receiver<()>,
    f: &(dyn Fn(usize) + Sync),
) -> usize {
    // SAFETY: only the lifetime changes. Every errand sent below is reported on before this
    // function returns, a thread drops its errand before it reports, and a disconnected report
    // channel means that no thread is left that could run one.
    let scoped_job = ScopedJob(unsafe {
        std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f)
    });
    let sent = threads
        .iter()
        .filter(|t| t.send(scoped_job).is_ok())
        .count();
    (0..sent).take_while(|_| reports.recv().is_ok()).count()
}
