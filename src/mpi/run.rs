//! Running a schedule on the processes of a launch.

use std::cell::RefCell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::binding::{Communicator, OwnCollective, Requests};
use super::ends::{ends, max_scratch, open_early};
use super::facts::facts;
use super::process::{OwnProcess, Process};
use super::world::World;
use crate::error::{Error, Result};
use crate::run::engine::{
    Eager, Failure, Job, Off, Performer, Program, Reports, RunContext, RunData, ThreadReport,
    repeat,
};
use crate::run::system::ensure_memory;
use crate::run::tuning::MAX_RECORDS;
use crate::run::{
    Clock, Element, ElementType, Mismatch, Operator, Outcome, Place, Processes, Run, Workers,
};
use crate::schedule::{Schedule, total_len};
use crate::simulate::Simulation;

/// All that a process prepares for a run before it meets the others.
struct Prepared<'s, T> {
    program: Program<'s>,
    data: RunData<'s, T>,
    simulation: Option<Simulation>,
    eager: Option<Eager>,
    /// Of the ranks of the schedule only.
    requests: Option<Requests<T>>,
    repetitions: usize,
}

/// Runs on the first processes of the world; the others wait. All processes describe the same run.
/// Only the process's own inputs are read, and only its own output is in [`Outcome::outputs`]. Of
/// the rest of the outcome, [`Outcome::pinned`], [`Outcome::oversubscribed`] and the warnings are
/// about the process's own host.
///
/// If a process has a run that differs from the others', or whose parts do not fit together, all
/// return an error. A failure during the run, such as a passed deadline, ends all processes with a
/// message.
impl Place for World {
    fn run<T: Element>(&mut self, run: &Run<'_, T>) -> Result<Outcome<T>> {
        let prepared = run.operator().and_then(|operator| {
            let (by, all) = (run.options.by, &self.all);
            let own = (by != Performer::Schedule)
                .then(|| all.own_collective(run.schedule, &operator, by));
            let own = own.transpose()?;
            let schedule = own.as_ref().map_or(run.schedule, |own| &own.schedule);
            let repetitions = self.accepts(run, schedule, &operator)?;
            self.ensure_memory(run, schedule, repetitions)?;
            Ok((operator, own, repetitions))
        });
        self.all.set_deadline(run.options.deadline);
        let (operator, own, repetitions) = self.agree(prepared)?;
        let schedule = own.as_ref().map_or(run.schedule, |own| &own.schedule);
        self.run_on(run, schedule, &operator, own.as_ref(), repetitions)
    }

    fn max_ranks(&self) -> usize {
        self.size()
    }

    fn processes(&self) -> Option<Processes> {
        let (library, version, interface) = (self.library(), self.version(), self.abi());
        let hosts = self.hosts().to_vec();
        Some(Processes::new(
            library,
            version,
            interface.to_string(),
            hosts,
        ))
    }

    fn max(&mut self, value: u64) -> Result<u64> {
        let [max] = self.all.max([value])?;
        Ok(max)
    }
}

impl World {
    fn run_on<T: Element>(
        &mut self,
        run: &Run<'_, T>,
        schedule: &Schedule,
        operator: &Operator<T>,
        library: Option<&OwnCollective>,
        repetitions: usize,
    ) -> Result<Outcome<T>> {
        let prepared = self.prepare(run, schedule, operator, repetitions);
        let mut prepared = self.agree(prepared)?;
        let facts = facts(&run.options, schedule, operator, &prepared.data);
        self.ensure_same(&facts)?;
        let ranks = schedule.ranks();
        let requests = prepared.requests.take();
        let own = self.run_own(run, schedule, operator, &prepared, requests, library)?;
        let (walls, wrong) = own.unwrap_or_default();
        let walls = self.all_walls(ranks, prepared.repetitions, &walls)?;
        let mismatch = self.first_mismatch(&prepared.data, wrong.1.as_ref())?;
        let one_host = self.hosts().len() == 1;
        let reports: Reports<T> = Reports {
            ranks: Vec::new(),
            walls,
        };
        let wall = reports.wall_times(run.options.warmup, one_host)?;
        let mut outputs = vec![Vec::new(); ranks];
        if let Some(output) = outputs.get_mut(self.rank()) {
            *output = wrong.0;
        }
        let simulation = prepared.simulation.as_ref();
        Ok(Outcome {
            outputs,
            model_time: simulation.map_or(f64::NAN, Simulation::makespan),
            rank_times: simulation.map_or_else(Vec::new, Simulation::rank_times),
            wall,
            pinned: self.bound(),
            oversubscribed: self.oversubscribed(),
            workers: Workers::Ranks,
            eager: prepared.eager.is_some(),
            warnings: self.warnings(schedule),
            mismatch,
            compared: if prepared.data.is_verified() {
                prepared.repetitions
            } else {
                0
            },
            step_times: None,
            function: library.map(|own| own.name),
        })
    }

    /// Prepares a run, without the other processes.
    fn prepare<'s, T: Element>(
        &self,
        run: &'s Run<'_, T>,
        schedule: &'s Schedule,
        operator: &'s Operator<T>,
        repetitions: usize,
    ) -> Result<Prepared<'s, T>> {
        let options = &run.options;
        // The nodes' own ports set the pace; the model time is the simulator's.
        let program = Program::new(schedule, options.cost.overlaps())?.without_turns();
        // A schedule that does not complete is left to the run, which reports the error.
        let simulation = schedule
            .simulate_bytes(&options.cost, size_of::<T>() as u64)
            .ok();
        let rank = self.rank();
        let own = rank < schedule.ranks();
        let eager = simulation.as_ref().filter(|_| options.eager && own);
        let eager = eager.filter(|_| options.ports.is_none_or(|p| p == schedule.ports()));
        let eager = eager.and_then(|simulation| {
            let steps = &schedule.programs()[rank];
            let early = |sequence: &mut _| open_early(sequence, steps, simulation, rank);
            Eager::of_rank(rank, &program, simulation, schedule.ports(), early)
        });
        let requests: Option<Result<_>> = own.then(|| {
            let sequence = eager.as_ref().map(|eager| eager.sequence(rank));
            let (ends, elements) = ends(schedule, rank, sequence, self.max_tag)?;
            Ok(Requests::new(ends, vec![T::test_value(0); elements]))
        });
        Ok(Prepared {
            data: run.data(schedule, operator, repetitions)?,
            program,
            simulation,
            eager,
            requests: requests.transpose()?,
            repetitions,
        })
    }

    /// Refuses what does not fit together. Returns the number of all repetitions.
    fn accepts<T: Element>(
        &self,
        run: &Run<'_, T>,
        schedule: &Schedule,
        operator: &Operator<T>,
    ) -> Result<usize> {
        let options = &run.options;
        options.cost.validate()?;
        options.cost.covers(schedule.ranks())?;
        schedule.ensure_links(&options.cost)?;
        if schedule.ranks() > self.size() {
            return Err(Error::usage(format!(
                "a schedule of {} ranks for {} processes",
                schedule.ranks(),
                self.size()
            )));
        }
        if ElementType::of::<T>().is_none() {
            return Err(Error::usage(format!(
                "{}: only the element types of this crate can leave a process",
                std::any::type_name::<T>()
            )));
        }
        if options.clock == Clock::Paced {
            return Err(Error::usage(
                "the paced clock is for ranks that are threads: over MPI the network sets the pace",
            ));
        }
        if options.trace {
            return Err(Error::usage("runs over MPI are not recorded yet"));
        }
        options.validate()?;
        if operator.name().is_empty() {
            return Err(Error::usage("an operator without a name"));
        }
        let all = options.repetitions.checked_add(options.warmup);
        let records = all.and_then(|all| all.checked_mul(schedule.ranks()));
        match (all, records) {
            (Some(all), Some(records)) if records <= MAX_RECORDS => Ok(all),
            _ => Err(Error::usage(format!(
                "{} repetitions after {} that are not counted are too many to be recorded",
                options.repetitions, options.warmup
            ))),
        }
    }

    /// Refuses a run for which this host's memory does not suffice. Its processes share that, so
    /// all of them are counted; none has allocated anything for the run before all have asked.
    fn ensure_memory<T: Element>(
        &self,
        run: &Run<'_, T>,
        schedule: &Schedule,
        repetitions: usize,
    ) -> Result<()> {
        /// Dependences and times of a step, measured.
        const BYTES_PER_STEP: u128 = 160;
        /// Start and end of a repetition: a process's own, and those of all that are gathered.
        const BYTES_PER_WALL: u128 = 2 * 16;
        let outputs = schedule.layout().iter().map(|l| total_len(&l.output));
        // The right output of one rank at a time is computed, beside what it is computed from.
        let right = match run.is_verified() {
            true => 2 * outputs.max().unwrap_or(0) as u128,
            false => 0,
        };
        let elements = self.ranks_on_host().iter().map(|&rank| {
            let Some(layout) = schedule.layout().get(rank) else {
                return right;
            };
            let own = layout.len as u128 + total_len(&layout.output) as u128;
            max_scratch(&schedule.programs()[rank]) as u128 + own.max(right)
        });
        let data = elements.sum::<u128>() * size_of::<T>() as u128;
        let each = schedule.steps() as u128 * BYTES_PER_STEP
            + (repetitions * self.size()) as u128 * BYTES_PER_WALL;
        let (own, host) = (self.ranks_on_host().len(), &self.host_names()[self.rank()]);
        let what = format!("the run, with {own} processes on host {host},");
        ensure_memory(&what, data + each * own as u128)
    }

    /// Runs the rank of this process: the times of its repetitions, its last output, and its first
    /// wrong output. `None` if this process is not among the ranks; it has waited for them then.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn run_own<T: Element>(
        &mut self,
        run: &Run<'_, T>,
        schedule: &Schedule,
        operator: &Operator<T>,
        prepared: &Prepared<'_, T>,
        requests: Option<Requests<T>>,
        library: Option<&OwnCollective>,
    ) -> Result<Option<(Vec<u64>, (Vec<T>, Option<(usize, Vec<T>)>))>> {
        let (rank, ranks, options) = (self.rank(), schedule.ranks(), &run.options);
        self.first(ranks)?;
        let Some(requests) = requests else {
            self.all.await_signal(0)?;
            return Ok(None);
        };
        let communicator = match &self.part {
            Some(part) if part.ranks == ranks => &part.communicator,
            _ => &self.all,
        };
        let context = RunContext {
            operator,
            cost: &options.cost,
            ports: schedule.ports(),
            enforced: options.ports.unwrap_or(schedule.ports()),
            deadline: options.deadline,
            paced: false,
            share_copies: false,
            streams_from: usize::MAX,
        };
        let epoch = Instant::now();
        let job = Job {
            schedule,
            program: &prepared.program,
            data: &prepared.data,
            context: &context,
            eager: prepared.eager.as_ref(),
            clocked: 0,
            repetitions: prepared.repetitions,
            first_run: 1,
            epoch,
        };
        let (mut reports, walls) = self.carry_out(communicator, &job, requests, library);
        let zero = since_1970(epoch);
        let walls = walls
            .iter()
            .flat_map(|&(entry, exit)| [zero + entry, zero + exit]);
        let walls = walls.collect();
        if rank == 0 {
            for aside in ranks..self.size() {
                self.all.signal(aside)?;
            }
        }
        let report = reports
            .pop()
            .ok_or_else(|| Error::system("a rank without a report"))?;
        Ok(Some((walls, (report.output, report.wrong))))
    }

    /// Carries out `job` for the rank of this process, or has the library do it.
    fn carry_out<T: Element>(
        &self,
        communicator: &Communicator,
        job: &Job<'_, T>,
        requests: Requests<T>,
        library: Option<&OwnCollective>,
    ) -> ThreadReport<T> {
        let own = self.rank()..self.rank() + 1;
        let deadline = job.context.deadline;
        let result = match library {
            None => {
                let process = Process {
                    communicator,
                    requests: RefCell::new(requests),
                    steps: &job.schedule.programs()[self.rank()],
                    oversubscribed: self.oversubscribed(),
                    deadline,
                };
                repeat::<T, Off>(job, own, &process)
            }
            Some(library) => {
                let process = OwnProcess {
                    communicator,
                    watchdog: &self.watchdog,
                    own: library,
                    deadline,
                };
                repeat::<T, Off>(job, own, &process)
            }
        };
        match result {
            Ok(report) => report,
            // The others wait in the library, where only its end reaches them.
            Err(Failure::Own(error)) => communicator.fail(&error),
            Err(Failure::Aborted) => communicator.fail(&Error::system("the run was aborted")),
        }
    }

    /// By rank: start and end of its repetitions. `mine` are this process's, if it has a rank.
    fn all_walls(
        &mut self,
        ranks: usize,
        repetitions: usize,
        mine: &[u64],
    ) -> Result<Vec<Vec<(u64, u64)>>> {
        let mut mine = mine.to_vec();
        mine.resize(2 * repetitions, 0);
        let all = self.all.gather_to_all(&mine)?;
        let of_rank = |walls: &[u64]| walls.chunks(2).map(|wall| (wall[0], wall[1])).collect();
        Ok(all
            .chunks(2 * repetitions)
            .take(ranks)
            .map(of_rank)
            .collect())
    }

    /// The first wrong element of all ranks. `wrong` is this rank's first wrong output, if any.
    fn first_mismatch<T: Element>(
        &mut self,
        data: &RunData<'_, T>,
        wrong: Option<&(usize, Vec<T>)>,
    ) -> Result<Option<Mismatch<T>>> {
        let (rank, size) = (self.rank(), self.size() as u64);
        let key = wrong.map_or(0, |wrong| u64::MAX - (wrong.0 as u64 * size + rank as u64));
        let [first] = self.all.max([key])?;
        if first == 0 {
            return Ok(None);
        }
        let order = u64::MAX - first;
        let (repetition, owner) = ((order / size) as usize, (order % size) as usize);
        let own = wrong.filter(|_| owner == rank);
        let own = own
            .map(|wrong| data.mismatch(rank, wrong))
            .transpose()?
            .flatten();
        let mut index = [own.map_or(0, |m| m.index as u64)];
        let mut values = own.map_or([T::test_value(0); 2], |m| [m.expected, m.found]);
        self.all.broadcast(owner, &mut index)?;
        self.all.broadcast(owner, &mut values)?;
        Ok(Some(Mismatch {
            repetition,
            rank: owner,
            index: index[0] as usize,
            expected: values[0],
            found: values[1],
        }))
    }

    fn warnings(&self, schedule: &Schedule) -> Vec<String> {
        let mut warnings = Vec::new();
        if !schedule.shared_ports().is_empty() {
            warnings.push(
                "over MPI no transfer waits for its turn on a shared port: wall-clock has the order that comes about, model time that of the schedule"
                    .to_string(),
            );
        }
        if self.oversubscribed() {
            warnings.push(format!(
                "{} processes on {} cores of one host: wall-clock includes waiting for a core",
                self.hosts()
                    .iter()
                    .map(|host| host.processes)
                    .max()
                    .unwrap_or(0),
                self.cores()
            ));
        }
        warnings
    }
}

/// `time` in nanoseconds since 1970: one clock for all processes of a host.
fn since_1970(time: Instant) -> u64 {
    /// The best of so many readings of both clocks.
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
