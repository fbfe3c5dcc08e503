//! The limits of planning, choosing, timing and storing, each once: its unit, what it does, and
//! what was measured. Constants of threads and messages are in `run/tuning.rs`.

/// Memory, in bytes.
pub mod memory {
    /// A step while a schedule is planned, proved or timed; 55 to 105 were measured.
    pub const STEP_BYTES: u64 = 200;

    /// A step beside its schedule: its dependences and times, measured.
    pub const TIMED_STEP_BYTES: u64 = 160;

    /// A step as text, estimated.
    pub const WRITTEN_STEP_BYTES: u64 = 300;

    /// A step while a picture or a trace is made: its times, its text while the text grows, and the
    /// finished text; 1600 were measured for traces, without what a growing text leaves behind.
    pub const DRAWN_STEP_BYTES: u64 = 2400;

    /// A rank while a schedule is timed that is not stored, estimated.
    pub const STREAMED_RANK_BYTES: u64 = 1000;

    /// What a schedule and its proof take for each transfer: 1.2 kB were measured for a
    /// reduce_scatter by recursive halving over 600 ranks.
    pub const PROVED_TRANSFER_BYTES: u64 = 8 << 10;

    /// A rank of a run: stack pages, queues and pair cells.
    pub const RUN_RANK_BYTES: u64 = 32 << 10;

    /// Alpha, beta and latency of a pair of ranks, as they are read and in the model.
    pub const COST_PAIR_BYTES: u64 = 64;

    /// Start and end of a repetition over MPI: a process's own, and those of all that are gathered.
    #[cfg(feature = "mpi")]
    pub(crate) const WALL_BYTES: u64 = 2 * 16;

    /// A line of MSCCL, 170 bytes of text, with what is known of it: 530 for steps that are one
    /// line, 320 for further lines of a step, measured as the peak of the address space.
    pub const MSCCL_LINE_BYTES: u64 = 700;

    /// A literal of a formula, with what a solver keeps of it: the estimate is 0.9 to 1.7 times the
    /// peak of the process in the first 4 s of allgathers and alltoalls of 8 to 24 ranks (49 to 227
    /// MiB); clauses learnt later come on top.
    pub const LITERAL_BYTES: u64 = 60;

    /// A rank of a builder in Python: its layout here, as a text, and as dicts and lists.
    pub const PYTHON_RANK_BYTES: u64 = 1024;

    /// The vectors of all ranks together, so that no sum overflows.
    pub const MAX_VECTOR_BYTES: u64 = 1 << 60;
}

/// Sizes of schedules.
pub mod size {
    /// Transfers: each has two steps, and steps have 32-bit numbers.
    pub const MAX_TRANSFERS: usize = 1 << 30;

    /// Elements of a vector: far more than any memory holds, and a few such vectors do not
    /// overflow.
    pub const MAX_ELEMENTS: usize = 1 << 60;

    /// Steps of a schedule that a command plans, or times while several algorithms compete.
    pub const MAX_STEPS: u64 = 200_000_000;

    /// Segments of a vector.
    pub const MAX_SEGMENTS: usize = 1 << 26;

    /// Steps of a periodic schedule that is written out.
    pub const MAX_UNROLLED_STEPS: usize = 50_000_000;
}

/// Sizes of files and pages, in bytes.
pub mod files {
    /// An input file: the largest schedule that can be planned is shorter.
    pub const MAX_INPUT_BYTES: u64 = 4 << 30;

    /// What steps through schedules on a page that compares algorithms.
    pub const MAX_PLAYERS_BYTES: usize = 2_000_000;

    /// What steps through schedules on a page of many files.
    pub const MAX_PLAYERS_OF_FILES_BYTES: usize = 20_000_000;
}

/// What is quick enough to be done without asking whether it is needed.
pub mod quick {
    /// Transfers of a schedule.
    pub const MAX_TRANSFERS: usize = 1 << 14;

    /// Transfers of a schedule that is stored to be simulated, although it can be streamed.
    pub const MAX_STORED: usize = 1 << 19;

    /// Steps of a schedule that is timed beside others.
    pub const MAX_STEPS: u64 = 1 << 16;

    /// Steps that are looked at to find where wrong data come from: a few hundredths of a second.
    pub const MAX_TRACED_STEPS: usize = 20_000_000;

    /// Contributions of all values that are followed for that, which can double with each step: 16
    /// MB.
    pub const MAX_TRACED_PARTS: usize = 1_000_000;

    /// Steps of a schedule whose messages are measured for a lower bound: about 0.1 s.
    pub const MAX_SCANNED_STEPS: usize = 1 << 22;

    /// Tables that planning fills, in bytes.
    pub const MAX_TABLE_BYTES: u64 = 1 << 26;

    /// Ranks of a native estimate, which executes every step of every rank.
    pub const MAX_ESTIMATED_RANKS: usize = 64;
}

/// How far a search goes.
pub mod search {
    /// Whether a candidate for a part of a composition is planned to be timed: a ring among many
    /// ranks, for example, takes too long.
    pub(crate) fn is_short(ranks: usize, transfers: usize) -> bool {
        transfers <= (1 << 18).max(64 * ranks)
    }

    /// Schedules that a search for the best segments plans, roughly.
    pub const SCHEDULES: u64 = 16;

    /// Segments of the schedules of that search, roughly.
    pub const SEGMENTS: usize = 64;

    /// Seconds for planning and simulating a step, with few cores; 25 to 100 ns were measured.
    pub const STEP_SECONDS: f64 = 60e-9;

    /// Uses of the ports that are compared.
    pub const MAX_USES: u64 = 32;

    /// Steps, and bytes of tables, each counted as a step, of the schedules that are planned to
    /// compare uses of ports: among thousands of ranks (hundreds, of what sends
    /// from each rank to each) only the preferred use is timed.
    pub const MAX_WORK_OF_USES: u64 = 1 << 17;

    /// Bytes of tables, and steps, of the schedules that are planned to compare roots. Where the
    /// planner takes a root by itself, a step counts as [`TABLE_BYTES_OF_STEP`] bytes, and all may
    /// take a second or two; elsewhere as one byte, and all may take a minute before the request is
    /// refused.
    pub const MAX_WORK_OF_ROOTS: u64 = 1 << 30;

    /// Bytes of tables that take as long as a step.
    pub const TABLE_BYTES_OF_STEP: u64 = 64;

    /// Transfers, times the tries to choose them, of all plans of an algorithm that only chooses
    /// its parts by the arrivals of ranks: some seconds.
    pub const MAX_WORK_OF_ARRIVALS: usize = 1 << 20;

    /// Transfers of one simulation in a search for segments, where each rank sends each segment
    /// once: an allreduce makes twice as many, and a ring as many times as there are ranks.
    pub const MAX_SIMULATED: usize = 1 << 19;

    /// Transfers of all simulations of such a search, counted so.
    pub const MAX_SIMULATED_IN_ALL: usize = 3 << 20;

    /// Doublings of the number of segments without a gain after which such a search ends.
    pub const MAX_WORSE: usize = 3;

    /// Part of the transfers of such a search that a short one may simulate, where what it begins
    /// with is good: for neighbours of what was found, and for the other direction of ports.
    pub const SHORT_SHARE: usize = 8;

    /// Segments that such a search considers.
    pub const MAX_SEGMENTS: usize = 1 << 22;

    /// Transfers of all schedules where all splits of a vector are compared: some milliseconds.
    pub const MAX_EXHAUSTIVE: usize = 1 << 16;

    /// Steps of all simulations of a search for unequal segments of an algorithm: some seconds.
    pub const MAX_UNEQUAL_STEPS: u64 = 1 << 25;

    /// Steps of a schedule of packets that is timed.
    pub const MAX_STEPS_OF_PACKETS: usize = 2_000_000;

    /// Steps of a schedule that is measured to find the best segments.
    pub const MAX_STEPS_MEASURED: usize = 1 << 22;

    /// Simulations of a search for unequal segments.
    pub const MAX_UNEQUAL_TRIALS: u64 = 4000;

    /// Elements of a vector of which all unequal segments are compared.
    pub(crate) const ALL_COMPOSITIONS: usize = 16;

    /// Ranks of a gossip, each of whose `p` ranks gets `p` vectors.
    pub(crate) const MAX_GOSSIP: usize = 256;

    /// Spans of all messages of allgathers that are compared to find the best parts of unequal
    /// blocks: about a second.
    pub(crate) const MAX_SPANS_OF_PARTS: usize = 1 << 25;
}

/// How far the search of uni-greedy for the best segments goes.
pub(crate) mod uni_greedy {
    /// Elements of a vector of which all sizes are compared.
    pub(crate) const ALL_SIZES: usize = 1 << 17;

    /// Elements of a vector of which all balanced splits are compared, too: bounds exclude
    /// few of them.
    pub(crate) const ALL_COUNTS: usize = 1 << 10;

    /// Sizes that are compared around the best one of a longer vector.
    pub(crate) const REFINED_SIZES: usize = 1 << 9;
}

/// How far the searches of out-of-order go, for plans and for the best segments.
pub(crate) mod out_of_order {
    /// Limits on the number of plans tried besides uni-greedy's, and on the elementary steps they
    /// may take. One step takes one or two nanoseconds.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Effort {
        pub(crate) attempts: usize,
        /// The first plan is abandoned after this many steps.
        pub(crate) first: u64,
        /// Further plans are tried only if they will probably end before this many steps in total.
        pub(crate) all: u64,
    }

    impl Effort {
        pub(crate) const FULL: Effort = Effort {
            attempts: 24,
            first: 600_000_000,
            all: 200_000_000,
        };
        /// Enough to compare segmentations.
        pub(crate) const QUICK: Effort = Effort {
            attempts: 4,
            first: 100_000_000,
            all: 20_000_000,
        };
    }

    /// Limits of a search for the best segments.
    pub(crate) struct Limits {
        /// Of the transfers of a reduction that is planned for the comparison.
        pub(crate) transfers: usize,
        /// Of the elementary steps of all plans together.
        pub(crate) steps: u64,
    }

    /// About 0.2 s.
    pub(crate) const LIMITS: Limits = Limits {
        transfers: 1 << 20,
        steps: 100_000_000,
    };

    /// About 20 ms: the search for the second phase of an allreduce is a part of its plan.
    pub(crate) const LIMITS_OF_PHASE: Limits = Limits {
        transfers: 1 << 15,
        steps: 10_000_000,
    };

    /// Bytes of the schedule of that phase.
    pub(crate) const MAX_BYTES_OF_PHASE: u64 =
        2 * super::memory::STEP_BYTES * LIMITS_OF_PHASE.transfers as u64;

    /// Elements of a vector of which all splits are compared.
    pub(crate) const ALL_SPLITS: usize = 64;

    /// Transfers of all plans of such a comparison: about 0.2 s.
    pub(crate) const MAX_COMPARED: usize = 1 << 14;
}

/// How far the searches for the best trees go, by numbers of ranks and what is tried.
pub(crate) mod trees {
    /// Ranks for which trees of one port are the best of all, which take `O(3^p)` time.
    pub(crate) const EXACT: usize = 12;

    /// Ranks for which the best of all are found on demand.
    pub(crate) const MAX_EXACT: usize = 16;

    /// As [`EXACT`], with several ports.
    pub(crate) const EXACT_PORTED: usize = 10;

    /// As [`MAX_EXACT`], with several ports.
    pub(crate) const MAX_EXACT_PORTED: usize = 15;

    /// Ranks for which the best shares of the root's ports are searched.
    pub(crate) const MAX_SHARED: usize = 24;

    /// Messages that are tried on a port in that search: some 10 ms.
    pub(crate) const MAX_TRIED: usize = 200_000;

    /// Ranks of a dynamic program over ranges in `O(p^2)`: 4 GiB of times.
    pub(crate) const MAX_QUADRATIC: usize = 1 << 15;

    /// Ranks of one in `O(p^3)`: it takes seconds.
    pub(crate) const MAX_CUBIC: usize = 2500;

    /// Ranks of one for links that differ.
    pub(crate) const MAX_LINKED: usize = 256;

    /// Ranks of one for links that differ whose trees have a largest number of children: half a
    /// second.
    pub(crate) const MAX_LINKED_COMPARED: usize = 128;

    /// Bytes of what such a program keeps.
    pub(crate) const MAX_KEPT_BYTES: usize = 4 << 30;

    /// Limits between small and large blocks that are tried.
    pub(crate) const MAX_THRESHOLDS: usize = 64;

    /// Table entries that the search for an order of the ranks fills in all tries together,
    /// roughly.
    pub(crate) const MAX_ORDER_ENTRIES: usize = 1 << 17;

    /// Orders of the ranks that are tried.
    pub(crate) const MAX_ORDERS: usize = 24;

    /// Messages that are compared for the greedy trees to all free roots together, roughly: about a
    /// second.
    pub(crate) const MAX_GREEDY_WORK: usize = 1 << 28;
}
