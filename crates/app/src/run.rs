//! `oneport run`: runs a schedule with real data, on threads or over MPI.

mod job;
mod limits;
mod report;
mod sweep;

use std::ops::RangeInclusive;

use oneport::run::Workers;

use self::job::RunJob;
pub(crate) use self::limits::memory_of_schedule;
pub(crate) use self::report::{LibraryTimes, WallSummary};
use self::sweep::RunTable;
use crate::prelude::*;
use crate::sweep::{Findings as _, SweepArgs};

options! {
    /// Run a schedule on pinned threads with real data, and verify the result.
    #[derive(Debug, Clone)]
    #[examples = "\
Examples:
  oneport run reduce -p 2 --bytes 64KiB --dtype f32 --repetitions 20
  oneport run broadcast -p 4 --bytes 1MiB --segments 8 -a chain
  oneport run reduce -p 4 --bytes 1KiB --clock paced --alpha 100us --beta 10ns
  oneport run reduce -p 2 --bytes 1MiB --segments 16 -a chain --trace run.svg
  oneport run broadcast -p 100000 --bytes 8 --workers cores
  oneport run allreduce -p 2 --bytes 8..4MiB --dtype f32 --csv before.csv
  oneport run broadcast -p 2,4 --bytes 8..64KiB -o run.html         a page with plots

Every rank is a thread, pinned round-robin to the cores. With --workers cores there is one thread per core, which runs the programs of its ranks \
in turn: the same steps, checks and model time, but no rank waits for a core, and far more ranks fit. The schedule is proved as check does, and every repetition, each with other data, is compared with what a sequential \
computation gives: verified means that both are right. \
Without --dtype elements are bytes (u8), or of the first type that --op combines. The model time is the time of the same run in the cost \
model, carried along with the messages: what simulate says. With --clock paced the run takes that long in real time, as \
on a slower network; costs written without a unit are then nanoseconds. With --arrivals ranks really start late, and the \
wall-clock counts from the arrival of the last one; --latency and --eager change the model time, and a paced run keeps to all of it.

Algorithm and segments, where options leave them open, are chosen for the machine that runs: on the native clock and without costs (--alpha, --costs, --profile \
and their like) by an estimate of the time on these cores with built-in costs of shared memory, over MPI by those of messages; the line 'chosen for' says so. \
A profile (oneport calibrate) has the costs of this machine. The model time is by the default costs of simulate in either case, if no option gives others.

With --inputs rewritten each rank has just written what it sends, and the receiver reads it from another core's cache or from memory. \
With --inputs kept nothing is written between the timed repetitions, so caches are warm: figures to set beside those of the OSU \
micro-benchmarks or nccl-tests. The untimed repetitions before them (at least one) are then verified instead; a reduction that combines into \
its inputs goes on with its own results.

Several sizes (those of a range twice the one before) or numbers of ranks make a table; p99 takes 100 repetitions. algbw is the size over the median, busbw what a link carries of it: for \
reduce_scatter, allgather, alltoall, gather and scatter (p-1)/p of it, for allreduce twice that. The size is that of all blocks where each \
rank has one. The interval holds the median with 95% confidence; with --baseline a size is faster or slower where the intervals \
do not touch."]
    pub(crate) struct RunArgs {
        common: Common = Group,

        /// Number of timed repetitions
        repetitions: usize = Count {
            default: Some("10"), hidden_aliases: &["iters", "iterations", "reps"],
            heading: Some("Run"),
        },

        /// Number of repetitions before them that are not timed
        warmup: usize = Count { default: Some("1"), heading: Some("Run") },

        inputs: InputArgs = Group { heading: Some("Run") },

        /// Neither prove the schedule nor compare the results with a sequential computation
        no_verify: bool = Switch { heading: Some("Run") },

        /// Run flat out, or at the pace of the cost model
        clock: Clock = ClockName { default: Some("native"), heading: Some("Run") },

        /// A thread for each rank, or one for each core, which runs the programs of its ranks in
        /// turn (a multiplexed run)
        workers: Workers = WorkersName { default: Some("ranks"), heading: Some("Run") },

        /// Run ranks as threads, or as the processes that mpirun or srun started [default: mpi if
        /// they did]
        engine: Option<Engine> = Engine { heading: Some("Run") },

        /// Over MPI: measure the library's own collective, too, interleaved with the schedule
        library: bool = Switch { heading: Some("Run") },

        /// Let every sender wait for its receiver: without it, senders of native runs (of short
        /// messages, where every rank has a core) go on and wait only before they overwrite what
        /// they have sent, and a repetition before the others carries the model clock
        rendezvous: bool = Switch { heading: Some("Run"), only_in_long_help: true },

        /// How long a rank waits for a partner before the run ends in an error
        deadline: Duration = Deadline {
            default: Some("10s"), takes_dashes: true, heading: Some("Run"),
        },

        /// Write the distribution of the wall-clock times, in nanoseconds, in HdrHistogram's text
        /// form
        histogram: Option<PathBuf> = Output { heading: Some("Run"), only_in_long_help: true },

        /// Cores to pin the ranks to, in turn, such as 0,2,4 or 0-3; one that is named twice gets
        /// two ranks a turn [default: all, but no more than the CPU quota pays for]
        cores: Vec<RangeInclusive<usize>> = Core { is_list: true, heading: Some("Run") },

        /// Which cores get neighbouring ranks, by the machine's caches; the second hardware threads
        /// of cores come last [default: compact]
        placement: Option<CoreChoice> = CoreChoice {
            conflicts: &["cores"], heading: Some("Run"), only_in_long_help: true,
        },

        /// Record when every transfer and computation of the last repetition took place, and write
        /// it to this file: a Gantt chart (.svg), or a trace for Perfetto (.json). All transfers
        /// are rendezvous then
        trace: Option<PathBuf> = Output { heading: Some("Run") },

        /// Write the table to this file, as CSV, whatever it holds
        csv: Option<PathBuf> = Output { heading: Some("Run") },

        /// Compare with the table that an earlier run wrote as CSV
        baseline: Option<Source> = File { heading: Some("Run") },

        sweep: SweepArgs = Group,
    }
}

choices! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum CoreChoice {
        /// Those that share a last-level cache.
        Compact = "compact",
        /// Those of different packages and caches.
        Spread = "spread",
        /// Ranks that exchange many bytes share a last-level cache.
        Schedule = "schedule",
    }
}

forms! {
    /// Who runs the programs of ranks.
    WorkersName: Workers = "WORKERS", of [("ranks", "", Workers::Ranks), ("cores", "", Workers::Cores)];
}

impl Command for RunArgs {
    fn json_forms() -> JsonForms {
        JsonForms::new()
            .of(|(done, args): (&'static report::Ran, _)| done.json(args))
            .of(|table: &'static RunTable| table.answered(false))
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn answer(&self, site: &mut Site) -> Result<Answer> {
        if self.is_table() {
            return self.table(site);
        }
        let done = site.perform(RunJob::new(self, site))?;
        done.answer(self, &site.caller)
    }
}

impl RunArgs {
    /// Whether a table of several runs is wanted.
    fn is_table(&self) -> bool {
        let given = [&self.common.vector.bytes, &self.common.ranks];
        let several = given.into_iter().flatten().any(Ranges::are_several);
        several || self.sweep.writes() || self.csv.is_some() || self.baseline.is_some()
    }

    /// Fails if a file cannot be written.
    fn writable(&self, site: &Site) -> Result<()> {
        let others = [
            ("--csv", self.csv.as_deref()),
            ("--histogram", self.histogram.as_deref()),
        ];
        let trace = self.trace.as_deref().map(|path| ("--trace", path));
        self.sweep.writable(&site.caller, &others, trace)
    }

    /// Where the ranks run.
    fn place(&self) -> Engine {
        self.engine.unwrap_or(Engine::Threads)
    }

    fn mode(&self) -> &'static str {
        match self.place() {
            Engine::Mpi => "processes",
            Engine::Threads if self.workers == Workers::Cores => "folded",
            Engine::Threads => "threads",
        }
    }
}
