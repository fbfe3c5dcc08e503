//! Teams: pinned threads, one a rank or one a core, living across runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::placement::Placement;
use super::transfer::{ScopedJob, run_on_all};
use super::wait::{TeamState, ask_for_precise_timers};
use crate::error::{Error, Result};
use crate::system::Gate;

/// How a team is set up: see [`Team::with`].
#[derive(Debug, Clone)]
pub struct TeamOptions {
    /// Cores to pin to, round-robin; by default all cores of this process, but no more than its
    /// CPU quota pays for. A core that is named twice has two places in the round: `[0, 0, 1,
    /// 1]` puts neighbours on the same core.
    pub cores: Option<Vec<usize>>,
    /// Stack of each thread.
    pub stack_bytes: usize,
    /// How long a rank waits for a partner before the run ends in an error.
    pub deadline: Duration,
    /// Whether both partners of a transfer copy parts of a long message, where every rank has a
    /// core of its own.
    pub share_copies: bool,
    /// Who does the ranks' work.
    pub workers: Workers,
}

/// Who does the work of a team's ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workers {
    /// A thread for each rank.
    #[default]
    Ranks,
    /// A thread for each core, which takes turns at its ranks' programs: *folded* runs. The same
    /// steps move the same bytes under the same rules, with the same model clock, but no rank
    /// ever waits for a core, and far more ranks fit. For schedules under the native
    /// clock only: rank programs written by hand, and the paced clock, need a thread for each rank.
    Cores,
}

impl Default for TeamOptions {
    fn default() -> Self {
        TeamOptions {
            cores: None,
            stack_bytes: 256 << 10,
            deadline: Duration::from_secs(10),
            share_copies: true,
            workers: Workers::Ranks,
        }
    }
}

/// `p` ranks, each a pinned thread, or [folded](Workers::Cores) onto one thread a core. Threads
/// start once and serve any number of runs; between runs they sleep.
///
/// # Example
/// ```
/// use oneport::run::{Operator, RunOptions, Team, inputs, oracle};
/// use oneport::{Kind, Request, plan::registry};
///
/// let mut team = Team::new(4)?;
/// let schedule = registry::find(Kind::Reduce, "binomial")?.plan(&Request::new(4, 1000))?;
/// let sum = Operator::<f32>::named("sum")?;
/// let data = inputs(schedule.collective(), schedule.layout(), &sum);
/// let outcome = team.run(&schedule, &data, &sum, &RunOptions::default())?;
/// assert_eq!(outcome.outputs, oracle(schedule.collective(), schedule.layout(), &sum, &data)?);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug)]
pub struct Team {
    jobs: Vec<Sender<ScopedJob>>,
    reports: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
    ranks: usize,
    pub(super) workers: Workers,
    pub(super) state: TeamState,
    pub(super) deadline: Duration,
    pub(super) share_copies: bool,
    pub(super) cores: usize,
    /// Cores that threads are pinned to beyond what the CPU quota pays for.
    pub(super) unpaid_cores: usize,
    pub(super) pinned: bool,
    pub(super) runs: u64,
}

impl Team {
    /// A team of `ranks` threads with [`TeamOptions::default`].
    ///
    /// # Errors
    /// As [`Team::with`].
    pub fn new(ranks: usize) -> Result<Team> {
        Team::with(ranks, &TeamOptions::default())
    }

    /// A team of `ranks` ranks. With a thread for each, rank `r` is pinned to core `r mod n` of the
    /// `n` cores named.
    ///
    /// # Errors
    /// When there is no rank, there would be more threads than [`Team::most_ranks`], a core does
    /// not exist, or the system refuses a thread.
    pub fn with(ranks: usize, options: &TeamOptions) -> Result<Team> {
        if ranks == 0 {
            return Err(Error::usage("a team needs at least one rank (-p 0)"));
        }
        let most = Team::max_ranks();
        if ranks > most && options.workers == Workers::Ranks {
            return Err(Error::usage(format!(
                "{ranks} ranks are more threads than the {most} that this system can hold: fold them onto one worker a core"
            )));
        }
        let placement = Placement::here(ranks, options.workers, options.cores.as_deref())?;
        let threads = placement.threads();
        let mut team = Team {
            jobs: Vec::with_capacity(threads),
            reports: bounded(0).1,
            threads: Vec::with_capacity(threads),
            ranks,
            workers: options.workers,
            state: TeamState::new(&placement.core_of, placement.cores, placement.ids()),
            deadline: options.deadline,
            share_copies: options.share_copies && ranks <= placement.cores,
            cores: placement.cores,
            unpaid_cores: placement.in_use() - placement.cores,
            pinned: false,
            runs: 0,
        };
        let (report, reports) = unbounded();
        let (ready, started) = unbounded();
        team.reports = reports;
        let mut gate = Gate::new();
        for rank in 0..threads {
            let pass = gate.wait(options.stack_bytes).map_err(|e| {
                Error::usage(format!("cannot start thread {rank} of {threads}: {e}"))
            })?;
            let (sender, jobs) = bounded::<ScopedJob>(1);
            let (report, ready) = (report.clone(), ready.clone());
            let core = placement.pins.get(rank).copied();
            let thread = std::thread::Builder::new()
                .name(match options.workers {
                    Workers::Ranks => format!("rank {rank}"),
                    Workers::Cores => format!("worker {rank}"),
                })
                .stack_size(options.stack_bytes)
                .spawn(move || {
                    // `set_for_current` says whether the kernel agreed.
                    let pinned = core.is_some_and(core_affinity::set_for_current);
                    ask_for_precise_timers();
                    let _ = ready.send(pinned);
                    drop(pass);
                    for scoped_job in jobs {
                        // Errands catch what ranks throw; what they throw back (a panic's payload
                        // may panic when dropped) must not end the thread,
                        // for which the others would wait.
                        if let Err(payload) =
                            catch_unwind(AssertUnwindSafe(|| scoped_job.run(rank)))
                        {
                            std::mem::forget(payload);
                        }
                        let _ = report.send(());
                    }
                })
                .map_err(|e| {
                    Error::system(format!("cannot start thread {rank} of {threads}: {e}"))
                })?;
            team.jobs.push(sender);
            team.threads.push(thread);
        }
        team.pinned = started
            .iter()
            .take(threads)
            .fold(true, |all, one| all & one);
        Ok(team)
    }

    /// The greatest team with a thread for each rank that this system can hold.
    ///
    /// Each thread takes four mappings of memory (a stack, a signal stack and their guard pages),
    /// and one that cannot get its own would abort the process; a fifth is left for everything
    /// else.
    pub fn max_ranks() -> usize {
        const MAPPINGS_A_THREAD: usize = 5;
        std::fs::read_to_string("/proc/sys/vm/max_map_count")
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .map_or(8192, |mappings| mappings / MAPPINGS_A_THREAD)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Who does the ranks' work.
    pub fn workers(&self) -> Workers {
        self.workers
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Cores that a team of `ranks` ranks with these options would share: see [`Team::cores`].
    ///
    /// # Errors
    /// When a named core does not exist.
    pub fn cores_for(ranks: usize, options: &TeamOptions) -> Result<usize> {
        let placement = Placement::here(ranks, options.workers, options.cores.as_deref())?;
        Ok(placement.cores)
    }

    /// Cores that the ranks share: different ones with a rank on them, and no more than the CPU
    /// quota of this process grants.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Whether every thread is pinned to its core.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Whether ranks outnumber cores.
    pub fn oversubscribed(&self) -> bool {
        self.ranks > self.cores
    }

    /// Sets how long a rank waits for a partner before a run ends in an error.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Lends `f` to all threads until all have returned from it. `f` must not unwind.
    pub(super) fn run_on_all(&self, f: &(dyn Fn(usize) + Sync)) {
        run_on_all(&self.jobs, &self.reports, f);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // Closed channels end the threads' loops.
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

pub(super) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}
