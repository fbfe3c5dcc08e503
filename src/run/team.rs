//! Teams: pinned threads, one per rank or one per core, that live across runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::context::both_copy;
use super::overrides::Tuning;
use super::placement::{Placement, Workers};
use super::transfer::{Copying, ScopedJob, run_on_all};
use super::tuning::{
    DEFAULT_MAX_THREADS, ELEMENTS_ON_STACK, MAPPINGS_PER_THREAD, MIN_STACK_BYTES, STACK_BYTES,
};
use super::wait::{TeamState, ask_for_precise_timers};
use crate::error::{Error, Result};
use crate::run::system::Gate;

/// Options of [`Team::with`].
#[derive(Debug, Clone)]
pub struct TeamOptions {
    /// Cores to pin the threads to, round-robin, by the system's numbers. By default these are all
    /// cores of this process in the [compact order](super::CoreOrder), but no more than its CPU
    /// quota grants. A core may be named more than
    /// once: `[0, 0, 1, 1]` puts neighbouring ranks on the same core. Where the system does not
    /// report its cores, and for an empty list, threads are not pinned.
    pub cores: Option<Vec<usize>>,
    /// Stack size of each thread in bytes, 256 KiB by default. Rank programs and operators of the
    /// user run on it. Runs refuse elements of more than a sixteenth of it.
    pub stack_bytes: usize,
    /// Whether both partners of a transfer copy parts of a long message (32 KiB or more), where
    /// every rank has a core of its own; true by default. It changes wall-clock times only.
    pub share_copies: bool,
    /// Whether each rank or each core has a thread; each rank by default.
    pub workers: Workers,
    /// Constants of the machine, such as those of a profile.
    pub tuning: Tuning,
}

impl Default for TeamOptions {
    fn default() -> Self {
        TeamOptions {
            cores: None,
            stack_bytes: STACK_BYTES,
            share_copies: true,
            workers: Workers::Ranks,
            tuning: Tuning::default(),
        }
    }
}

/// `p` ranks, each with a pinned thread of its own, or [multiplexed](Workers::Cores) on one thread
/// per core. Threads start once and serve any number of runs, one at a time; between runs they
/// sleep. Dropping the team ends them. A team can be used again after a run that failed.
///
/// # Example
/// ```
/// use oneport::run::{Op, Run, Team};
/// use oneport::Request;
///
/// let mut team = Team::new(4)?;
/// let schedule = Request::reduce(4, 1000).plan("binomial")?;
/// let outcome = Run::<f32>::new(&schedule).op(Op::SUM).verified().on(&mut team)?;
/// assert!(outcome.is_verified());
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug)]
pub struct Team {
    jobs: Vec<Sender<ScopedJob>>,
    reports: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
    pub(super) ranks: usize,
    pub(super) workers: Workers,
    pub(super) state: TeamState,
    pub(super) share_copies: bool,
    pub(super) tuning: Tuning,
    pub(super) cores: usize,
    /// Cores that threads are pinned to in excess of the CPU quota.
    pub(super) unpaid_cores: usize,
    pub(super) pinned: bool,
    /// Stack size of each thread.
    stack_bytes: usize,
    pub(super) runs: u64,
}

impl Team {
    /// A team of `ranks` ranks [`with`](Team::with) [`TeamOptions::default`].
    pub fn new(ranks: usize) -> Result<Team> {
        Team::with(ranks, &TeamOptions::default())
    }

    /// A team of `ranks` ranks. With a thread per rank, rank `r` is pinned to core number `r mod n`
    /// of the `n` cores in [`TeamOptions::cores`], counted from 0. With a thread per core there are
    /// as many threads as distinct cores, but no more than ranks, or than the CPU quota grants.
    ///
    /// Starts the threads, and waits until all of them run. Memory, mostly address space, is that
    /// of a stack per thread.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if `ranks` is 0, there would be more threads
    /// than [`Team::max_ranks`], a core is not available to this process, or the process's own
    /// limits leave no room for a thread; [`ErrorKind::System`](crate::ErrorKind::System) if the
    /// system refuses a thread.
    pub fn with(ranks: usize, options: &TeamOptions) -> Result<Team> {
        if ranks == 0 {
            return Err(Error::usage("a team needs at least one rank"));
        }
        let max = Team::max_ranks();
        if ranks > max && options.workers == Workers::Ranks {
            return Err(Error::usage(format!(
                "{ranks} ranks are more threads than the {max} that this system can hold: run them on one worker per core"
            )));
        }
        let placement = Placement::here(ranks, options.workers, options.cores.as_deref())?;
        let threads = placement.threads();
        let (report, reports) = unbounded();
        let mut team = Team {
            jobs: Vec::with_capacity(threads),
            reports,
            threads: Vec::with_capacity(threads),
            ranks,
            workers: options.workers,
            state: TeamState::new(&placement.core_of, placement.cores, placement.ids()),
            share_copies: options.share_copies && both_copy(ranks, placement.cores),
            tuning: options.tuning,
            cores: placement.cores,
            unpaid_cores: placement.in_use() - placement.cores,
            pinned: false,
            stack_bytes: options.stack_bytes,
            runs: 0,
        };
        team.pinned = team.start_threads(&placement, options.stack_bytes, &report)?;
        Ok(team)
    }

    /// Starts a thread for each core of `placement`, which reports its jobs on `report`. Returns
    /// whether all threads are pinned.
    fn start_threads(
        &mut self,
        placement: &Placement,
        stack_bytes: usize,
        report: &Sender<()>,
    ) -> Result<bool> {
        let threads = placement.threads();
        let (ready, started) = unbounded();
        let mut gate = Gate::new();
        for thread in 0..threads {
            let pass = gate.wait(stack_bytes).map_err(|e| {
                Error::usage(format!("cannot start thread {thread} of {threads}: {e}"))
            })?;
            let (sender, jobs) = bounded::<ScopedJob>(1);
            let (report, ready) = (report.clone(), ready.clone());
            let core = placement.pins.get(thread).copied();
            let handle = std::thread::Builder::new()
                .name(match self.workers {
                    Workers::Ranks => format!("rank {thread}"),
                    Workers::Cores => format!("worker {thread}"),
                })
                .stack_size(stack_bytes)
                .spawn(move || {
                    // `set_for_current` says whether the kernel agreed.
                    let pinned = core.is_some_and(core_affinity::set_for_current);
                    ask_for_precise_timers();
                    let _ = ready.send(pinned);
                    drop(pass);
                    serve(thread, &jobs, &report);
                })
                .map_err(|e| {
                    Error::system(format!("cannot start thread {thread} of {threads}: {e}"))
                })?;
            self.jobs.push(sender);
            self.threads.push(handle);
        }
        let pinned = started.iter().take(threads);
        Ok(pinned.fold(true, |all, one| all & one))
    }

    /// The largest number of ranks that a team with a thread per rank can have on this system.
    ///
    /// The system limits the memory mappings of a process, and a thread that cannot get its own
    /// would abort the process. Each thread counts five mappings; where the system does not report
    /// its limit, 8192 threads are allowed. Reads a file of the system.
    pub fn max_ranks() -> usize {
        std::fs::read_to_string("/proc/sys/vm/max_map_count")
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .map_or(DEFAULT_MAX_THREADS, |mappings| {
                mappings / MAPPINGS_PER_THREAD
            })
    }

    /// Refuses elements too large for the threads' stacks to hold those that
    /// operators and test data keep there.
    pub(super) fn accepts_elements(&self, bytes: usize) -> Result<()> {
        let stack_bytes = self.stack_bytes.max(MIN_STACK_BYTES);
        if bytes <= stack_bytes / ELEMENTS_ON_STACK {
            return Ok(());
        }
        Err(Error::usage(format!(
            "elements of {bytes} bytes need threads with stacks of {} bytes, this team has stacks of {stack_bytes} bytes: set TeamOptions::stack_bytes",
            bytes.saturating_mul(ELEMENTS_ON_STACK),
        )))
    }

    /// How messages are copied in a run whose buffers have `buffer_bytes` bytes together.
    pub(super) fn copying(&self, buffer_bytes: usize) -> Copying {
        Copying {
            shared: self.share_copies,
            streams_from: self.tuning.streams_from(buffer_bytes),
        }
    }

    /// Number of ranks, at least 1.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Whether each rank or each core has a thread.
    pub fn workers(&self) -> Workers {
        self.workers
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Number of cores that a team of `ranks` ranks with these options would share, without
    /// starting it: see [`Team::cores`]. Linear in the number of threads.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if a named core is not available to this
    /// process.
    pub fn cores_for(ranks: usize, options: &TeamOptions) -> Result<usize> {
        // Ranks beyond all cores share these.
        let listed = options.cores.as_ref().map_or(0, Vec::len);
        let counted = ranks.min(Team::max_ranks().max(listed));
        let placement = Placement::here(counted, options.workers, options.cores.as_deref())?;
        Ok(placement.cores)
    }

    /// Number of cores that the ranks share: distinct cores with a rank on them, but no more than
    /// the CPU quota of this process grants.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Whether every thread is pinned to its core.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Whether ranks outnumber cores, so that wall-clock times include waiting for a core.
    pub fn oversubscribed(&self) -> bool {
        self.ranks > self.cores
    }

    /// Runs `f` on all threads, and returns when all of them have returned from it. `f` must not
    /// unwind.
    pub(super) fn run_on_all(&self, f: &(dyn Fn(usize) + Sync)) {
        run_on_all(&self.jobs, &self.reports, f, None);
    }

    /// As [`run_on_all`](Team::run_on_all); if somebody sets `stop`, the ranks fail at their next
    /// wait.
    pub(super) fn run_until(&self, stop: Option<&AtomicBool>, f: &(dyn Fn(usize) + Sync)) {
        let Some(stop) = stop else {
            return self.run_on_all(f);
        };
        let look = || {
            if stop.load(Ordering::Relaxed) && !self.state.is_aborted() {
                self.state.fail(Error::system("the run was stopped"));
            }
        };
        run_on_all(&self.jobs, &self.reports, f, Some(&look));
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // The threads' loops end when their channels are closed.
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs the jobs of thread `thread` until their channel is closed.
fn serve(thread: usize, jobs: &Receiver<ScopedJob>, report: &Sender<()>) {
    for scoped_job in jobs {
        // Jobs catch the panics of ranks, but dropping a panic's payload may panic again. That must
        // not end the thread, because the others would wait for its report.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| scoped_job.run(thread))) {
            std::mem::forget(payload);
        }
        let _ = report.send(());
    }
}
