//! Running a schedule on the processes of a launch.

use crate::budget::memory::{TIMED_STEP_BYTES, WALL_BYTES};
use std::cell::RefCell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::binding::{Communicator, OwnCollective, Requests};
use super::ends::{ends, max_scratch, open_early};
use super::launch;
use super::process::{OwnProcess, Process, fail};
use super::summary::summary;
use super::world::World;
use crate::error::{Error, Result};
use crate::machine::numbers;
use crate::run::engine::{
    Copying, Program, Reports, RunAhead, RunBuffers, RunPerformer, RunReport, RunSpec, RunnerJob,
    ThreadReport, cores_in_words, foreign_warning, nanoseconds, repeat, sealed,
};
use crate::run::system::ensure_memory;
use crate::run::{Clock, Place, Processes, Workers};
use crate::schedule::{Schedule, total_len};
use crate::simulate::Simulation;

/// A run that does not contradict itself.
struct Accepted {
    /// What the library does instead of the schedule, on buffers of its own.
    own: Option<OwnCollective>,
    repetitions: usize,
    /// Number of those whose buffers are filled and compared.
    filled: usize,
    /// Number of those that are not timed.
    warmup: usize,
}

/// All that a process prepares for a run before it meets the others, besides the data.
struct PreparedProcess<'s> {
    program: Program<'s>,
    simulation: Option<Simulation>,
    ahead: Option<RunAhead>,
    /// Of the ranks of the schedule only.
    requests: Option<Requests>,
}

impl sealed::Place for World {
    fn run(&mut self, run: &sealed::AnyRun<'_>) -> Result<RunReport> {
        let sealed::AnyRun(run) = *run;
        let accepted = run.spec(run.schedule()).and_then(|spec| self.accept(&spec));
        self.all.set_deadline(run.options().deadline);
        let accepted = self.agree(accepted)?;
        let own = accepted.own.as_ref();
        let schedule = own.map_or(run.schedule(), |own| &own.schedule);
        let spec = run.spec(schedule)?;
        let verified = spec.verified && own.is_none_or(OwnCollective::has_outputs);
        let prepared = self.prepare(&spec).and_then(|prepared| {
            let data = run.data(schedule, verified, accepted.filled)?;
            Ok((prepared, data))
        });
        let (prepared, data) = self.agree(prepared)?;
        let report = self.perform(&spec, &accepted, prepared, &*data)?;
        self.share_first_mismatch(&spec, &*data)?;
        Ok(report)
    }

    fn swap_library_variable(&mut self, name: &str, value: i32) -> Result<i32> {
        self.library().swap_variable(name, value)
    }
}

/// Runs on the first processes of the world; the others wait. All processes describe the same run.
/// Only the process's own inputs are read, and only its own output is in [`Outcome::outputs`]. Of
/// the rest of the outcome, [`Outcome::pinned`], [`Outcome::oversubscribed`] and the warnings are
/// about the process's own host.
///
/// If a process has a run that differs from the others', or whose parts do not fit together, all
/// return an error. A failure during the run, such as a passed deadline, ends all processes with a
/// message.
///
/// [`Outcome::outputs`]: crate::run::Outcome::outputs
/// [`Outcome::pinned`]: crate::run::Outcome::pinned
/// [`Outcome::oversubscribed`]: crate::run::Outcome::oversubscribed
impl Place for World {
    fn max_ranks(&self) -> usize {
        self.size()
    }

    fn processes(&self) -> Option<Processes> {
        let (mpi, hosts) = (self.mpi(), self.hosts().to_vec());
        let (version, interface) = (mpi.version(), mpi.interface());
        Some(Processes::new(mpi.name(), version, interface, hosts))
    }

    fn max(&mut self, value: u64) -> Result<u64> {
        let [max] = self.all.max([value])?;
        Ok(max)
    }
}

impl World {
    /// Refuses what does not fit together.
    fn accept(&self, spec: &RunSpec<'_>) -> Result<Accepted> {
        let own = match spec.options.by {
            RunPerformer::Schedule => None,
            _ => Some(self.all.own_collective(spec)?),
        };
        let schedule = own.as_ref().map_or(spec.schedule, |own| &own.schedule);
        let spec = &RunSpec { schedule, ..*spec };
        spec.validate()?;
        if schedule.ranks() > self.size() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for {} processes",
                schedule.ranks(),
                self.size()
            )));
        }
        spec.element.own()?;
        if spec.options.clock == Clock::Paced {
            return Err(Error::usage(
                "the paced clock is for ranks that are threads: over MPI the network sets the pace",
            ));
        }
        if spec.options.trace {
            return Err(Error::usage("runs over MPI are not recorded yet"));
        }
        let (filled, warmup) = spec.filled_and_warmup(0);
        let repetitions = spec.repetitions(warmup, schedule.ranks(), "processes")?;
        self.ensure_memory(spec, repetitions)?;
        Ok(Accepted {
            own,
            repetitions,
            filled: filled.min(repetitions),
            warmup,
        })
    }

    /// Prepares a run, without the other processes.
    fn prepare<'s>(&self, spec: &RunSpec<'s>) -> Result<PreparedProcess<'s>> {
        let (schedule, options) = (spec.schedule, spec.options);
        // The nodes' own ports set the pace; the model time is the simulator's.
        let program = spec.program()?.without_grants();
        // A schedule that does not complete is left to the run, which reports the error.
        let simulation = schedule.simulate(&options.cost).ok();
        let rank = self.rank();
        let own = rank < schedule.ranks();
        let runs_ahead = options.eager && own && spec.has_own_ports();
        let in_order = if options.cost.is_ideal() {
            simulation.clone()
        } else {
            let cost = options.cost.rendezvous();
            schedule.simulate(&cost).ok()
        };
        let ahead = in_order.as_ref().filter(|_| runs_ahead);
        let ahead = ahead.and_then(|simulation| {
            let steps = &schedule.programs()[rank];
            let early = |sequence: &mut _| open_early(sequence, steps, simulation, rank);
            RunAhead::of_rank(rank, &program, simulation, schedule.ports(), early)
        });
        let requests = || -> Result<Requests> {
            let sequence = ahead.as_ref().map(|ahead| ahead.sequence(rank));
            let (ends, scratch) = ends(schedule, rank, sequence, self.max_tag)?;
            Ok(self.all.requests(ends, scratch, spec.element.own()?))
        };
        let requests = own.then(requests).transpose()?;
        Ok(PreparedProcess {
            program,
            simulation,
            ahead,
            requests,
        })
    }

    /// Runs what all processes have accepted and prepared.
    fn perform(
        &mut self,
        spec: &RunSpec<'_>,
        accepted: &Accepted,
        mut prepared: PreparedProcess<'_>,
        buffers: &dyn RunBuffers,
    ) -> Result<RunReport> {
        self.ensure_same(&summary(spec, buffers))?;
        let ranks = spec.schedule.ranks();
        self.first(ranks)?;
        let walls = match prepared.requests.take() {
            Some(requests) => self.run_own(spec, accepted, &prepared, requests, buffers)?,
            // It is not among the ranks.
            None => {
                self.all.await_signal(0)?;
                Vec::new()
            }
        };
        let reports = Reports {
            ranks: Vec::new(),
            walls: self.all_walls(ranks, accepted.repetitions, walls)?,
        };
        let percent_by_others = self.percent_by_others()?;
        let mut warnings = self.warnings(spec.schedule);
        warnings.extend(percent_by_others.map(foreign_warning));
        let one_host = self.hosts().len() == 1;
        let late = spec.options.cost.last_arrival();
        let simulation = prepared.simulation.as_ref();
        Ok(RunReport {
            outputs: Vec::new(),
            mismatch: None,
            model_time: simulation.map_or(f64::NAN, Simulation::makespan),
            rank_times: simulation.map_or_else(Vec::new, Simulation::rank_times),
            wall: reports.wall_times(accepted.warmup, one_host, late)?,
            step_times: None,
            pinned: self.bound(),
            oversubscribed: self.oversubscribed(),
            workers: Workers::Ranks,
            eager: prepared.ahead.is_some(),
            warnings,
            percent_by_others,
            compared: if spec.verified { accepted.filled } else { 0 },
            compared_bits: 0,
            function: accepted.own.as_ref().map(|own| own.name),
        })
    }

    /// Refuses a run for which this host's memory does not suffice. Its processes share that, so
    /// all of them are counted; none has allocated anything for the run before all have asked.
    fn ensure_memory(&self, spec: &RunSpec<'_>, repetitions: usize) -> Result<()> {
        let schedule = spec.schedule;
        let outputs = schedule.layout().iter().map(|l| total_len(&l.output));
        // The right output of one rank at a time is computed, beside what it is computed from.
        let right = if spec.verified {
            2 * outputs.max().unwrap_or(0) as u128
        } else {
            0
        };
        let elements = self.ranks_on_host().iter().map(|&rank| {
            let Some(layout) = schedule.layout().get(rank) else {
                return right;
            };
            let own = layout.len as u128 + total_len(&layout.output) as u128;
            max_scratch(&schedule.programs()[rank]) as u128 + own.max(right)
        });
        let data = elements.sum::<u128>() * u128::from(spec.element_bytes());
        let each = schedule.steps() as u128 * u128::from(TIMED_STEP_BYTES)
            + (repetitions * self.size()) as u128 * u128::from(WALL_BYTES);
        let (own, host) = (self.ranks_on_host().len(), &self.host_names()[self.rank()]);
        let what = format!("the run, with {own} processes on host {host},");
        ensure_memory(&what, data + each * own as u128)
    }

    /// Runs the rank of this process. Returns start and end of its repetitions, one after another.
    fn run_own(
        &self,
        spec: &RunSpec<'_>,
        accepted: &Accepted,
        prepared: &PreparedProcess<'_>,
        requests: Requests,
        buffers: &dyn RunBuffers,
    ) -> Result<Vec<u64>> {
        let ranks = spec.schedule.ranks();
        let communicator = match &self.part {
            Some(part) if part.ranks == ranks => &part.communicator,
            _ => &self.all,
        };
        let late = nanoseconds(spec.options.cost.last_arrival());
        let context = spec.context(late, Copying::PLAIN);
        let epoch = Instant::now();
        let job = RunnerJob {
            program: &prepared.program,
            buffers,
            context: &context,
            ahead: prepared.ahead.as_ref(),
            clocked: 0,
            repetitions: accepted.repetitions,
            filled: accepted.filled,
            first_run: 1,
            epoch,
            trace: false,
        };
        let (_, walls) = self.carry_out(communicator, &job, requests, accepted.own.as_ref());
        if self.rank() == 0 {
            for aside in ranks..self.size() {
                self.all.signal(aside)?;
            }
        }
        let zero = since_1970(epoch);
        let walls = walls.into_iter();
        Ok(walls
            .flat_map(|(entry, exit)| [zero + entry, zero + exit])
            .collect())
    }

    /// Carries out `job` for the rank of this process, or has the library do it.
    fn carry_out(
        &self,
        communicator: &Communicator,
        job: &RunnerJob<'_>,
        requests: Requests,
        library: Option<&OwnCollective>,
    ) -> ThreadReport {
        let own = self.rank()..self.rank() + 1;
        let deadline = job.context.deadline;
        let result = match library {
            None => {
                let process = Process {
                    communicator,
                    requests: RefCell::new(requests),
                    steps: job.program.ranks[self.rank()].steps,
                    oversubscribed: self.oversubscribed(),
                    deadline,
                };
                repeat(job, own, &process)
            }
            Some(library) => {
                let process = OwnProcess {
                    communicator,
                    watchdog: &self.watchdog,
                    own: library,
                    deadline,
                };
                repeat(job, own, &process)
            }
        };
        result.unwrap_or_else(|failure| fail(communicator, failure))
    }

    /// By rank: start and end of its repetitions. `mine` are this process's, if it has a rank.
    fn all_walls(
        &mut self,
        ranks: usize,
        repetitions: usize,
        mut mine: Vec<u64>,
    ) -> Result<Vec<Vec<(u64, u64)>>> {
        mine.resize(2 * repetitions, 0);
        let all = self.all.gather_to_all(&mine)?;
        let of_rank = |walls: &[u64]| walls.chunks(2).map(|wall| (wall[0], wall[1])).collect();
        Ok(all
            .chunks(2 * repetitions)
            .take(ranks)
            .map(of_rank)
            .collect())
    }

    /// Tells all processes the first wrong element of all ranks.
    fn share_first_mismatch(&mut self, spec: &RunSpec<'_>, data: &dyn RunBuffers) -> Result<()> {
        let (rank, size) = (self.rank(), self.size() as u64);
        let wrong = data.wrong_repetition(rank);
        let key = wrong.map_or(0, |n| u64::MAX - (n as u64 * size + rank as u64));
        let [first] = self.all.max([key])?;
        if first == 0 {
            return Ok(());
        }
        let order = u64::MAX - first;
        let (repetition, owner) = (numbers::index(order / size), numbers::index(order % size));
        let element = spec.element.own()?;
        data.share_mismatch(repetition, owner, owner == rank, &mut |index, values| {
            self.all.broadcast(owner, std::slice::from_mut(index))?;
            self.all.broadcast_memory(owner, values, element)
        })
    }

    fn warnings(&self, schedule: &Schedule) -> Vec<String> {
        let mut warnings = Vec::new();
        if !schedule.shared_ports().is_empty() {
            warnings.push(
                "over MPI no transfer waits for a grant of a shared port: wall-clock has the order that comes about, model time that of the schedule"
                    .to_string(),
            );
        }
        if self.oversubscribed() {
            warnings.push(format!(
                "{} processes on {} of one host: wall-clock includes waiting for a core",
                self.hosts()
                    .iter()
                    .map(|host| host.processes)
                    .max()
                    .unwrap_or(0),
                cores_in_words(self.cores())
            ));
        } else if !self.bound() && self.ranks_on_host().len() > 1 {
            warnings.push(launch::unbound());
        }
        warnings
    }
}

/// `time` in nanoseconds since 1970: one clock for all processes of a host.
fn since_1970(time: Instant) -> u64 {
    /// The number of readings of both clocks; the best one counts.
    const READINGS: usize = 100;
    let reading = |_| {
        let before = Instant::now();
        let now = SystemTime::now();
        (before.elapsed(), before, now)
    };
    let readings = (0..READINGS).map(reading);
    let Some((gap, before, now)) = readings.min_by_key(|reading| reading.0) else {
        return 0;
    };
    let since = (before + gap / 2).saturating_duration_since(time);
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(since).as_nanos()).unwrap_or(0)
}
