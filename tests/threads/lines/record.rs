//! The cache lines that the threads of a team use during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use crossbeam_utils::CachePadded;
use oneport::internal::recorded::{self, CACHE_LINE_BYTES, RecordedAccess};
use oneport::run::Team;

/// Bytes between values that never disturb each other: some processors fetch lines in pairs.
pub(super) const LINE_BYTES: usize = align_of::<CachePadded<u8>>();

/// Lines that more than two threads use, and that some of them write.
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "wait/barrier.rs",
        writes: |run, _| 9 * run.meetings,
        why: "a counter of at most eight children, or the generation: once each at a barrier",
    },
    Exception {
        file: "wait/meeting.rs",
        writes: |run, line| {
            let looks_for_sleep = line.is_used_by("wait/parker.rs");
            run.meetings.max(run.threads) * u64::from(!looks_for_sleep)
        },
        why: "a thread says that it is at a barrier, or the first that it has left",
    },
    Exception {
        file: "wait/state.rs",
        writes: |run, line| run.repetitions * u64::from(!line.is_used_by("wait/parker.rs")),
        why: "a rank says that it has finished; whoever sends to it looks elsewhere if it sleeps",
    },
    Exception {
        file: "wait/parker.rs",
        writes: |run, line| 2 * run.threads * line.by_owner("wait/parker.rs"),
        why: "a thread that announces its sleep sleeps, or others wake it",
    },
    Exception {
        file: "wait/inbox.rs",
        writes: |run, line| run.messages * u64::from(line.values.len() <= 2),
        why: "multiplexed: a message for a rank of another worker, in its list or its entry there",
    },
    Exception {
        file: "exec/multiplexed.rs",
        writes: |run, _| run.repetitions * run.ranks,
        why: "multiplexed: a rank has finished",
    },
    Exception {
        file: "exec/program.rs",
        writes: |run, _| 2 * run.repetitions,
        why: "a grant of a shared port: by its rank, for the next",
    },
    Exception {
        file: "exec/runner.rs",
        writes: |run, _| run.repetitions,
        why: "rank 0 says when a paced repetition starts",
    },
    Exception {
        file: "exec/repeat.rs",
        writes: |run, _| 2 * run.threads,
        why: "a thread reports at the end of the run",
    },
    Exception {
        file: "testdata/run_data.rs",
        writes: |_, line| 2 * line.values.len() as u64,
        why: "a rank leaves its output behind at the end of the run",
    },
    Exception {
        file: "run/scope.rs",
        writes: |run, _| 2 * run.threads,
        why: "a thread takes its buffer, and reports at the end of the run",
    },
    Exception {
        file: "transfer/lazy.rs",
        writes: |run, _| (LINE_BYTES / size_of::<usize>()) as u64 * run.threads,
        why: "the first message between two ranks of a scope makes their wire",
    },
    Exception {
        file: "transfer/copy.rs",
        writes: |run, _| 2 * run.repetitions * u64::from(run.shares_copies),
        why: "two blocks meet there, which the receiver and both senders copy",
    },
];

/// A reason for lines that more than two threads use and that some of them write.
pub(super) struct Exception {
    /// The file that writes the line.
    pub(super) file: &'static str,
    /// How often it may write one line during a run.
    pub(super) writes: fn(&Facts, &Line) -> u64,
    pub(super) why: &'static str,
}

/// The numbers of a run.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) ranks: u64,
    pub(super) threads: u64,
    pub(super) repetitions: u64,
    /// Barriers of all threads.
    pub(super) meetings: u64,
    /// In all repetitions.
    pub(super) messages: u64,
    /// Whether both partners copy long messages.
    pub(super) shares_copies: bool,
}

/// A cache line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// By thread and file: how often it is written. Zero if it is only read.
    uses: BTreeMap<(usize, &'static str), u64>,
    /// The places that write it.
    written_at: BTreeSet<(u32, &'static str)>,
    /// The values on it that are written.
    values: BTreeSet<usize>,
    /// The thread that writes the state before it: here others look whether that thread sleeps.
    owner: Option<usize>,
}

impl Line {
    fn threads(&self) -> usize {
        let threads: BTreeSet<_> = self.uses.keys().map(|&(thread, _)| thread).collect();
        threads.len()
    }

    /// Threads and files that write it, and how often.
    fn writing(&self) -> impl Iterator<Item = (usize, &'static str, u64)> {
        let uses = self.uses.iter().filter(|&(_, &writes)| writes > 0);
        uses.map(|(&(thread, file), &writes)| (thread, file, writes))
    }

    fn writers(&self) -> usize {
        let threads: BTreeSet<_> = self.writing().map(|(thread, ..)| thread).collect();
        threads.len()
    }

    /// By file: how often it writes this line.
    fn writes(&self) -> BTreeMap<&'static str, u64> {
        let mut writes = BTreeMap::new();
        for (_, file, n) in self.writing() {
            *writes.entry(file).or_default() += n;
        }
        writes
    }

    /// The thread that writes the state of its rank here.
    fn state_of(&self) -> Option<usize> {
        let states = ["wait/meeting.rs", "wait/state.rs"];
        let is_state = |at: &str| states.iter().any(|s| at.ends_with(s));
        self.writing()
            .find(|(_, at, _)| is_state(at))
            .map(|(thread, ..)| thread)
    }

    /// How often the owner writes it in `file`.
    fn by_owner(&self, file: &str) -> u64 {
        let by_owner = self
            .writing()
            .filter(|(thread, at, _)| self.owner == Some(*thread) && at.ends_with(file));
        by_owner.map(|(.., writes)| writes).sum()
    }

    fn is_used_by(&self, file: &str) -> bool {
        self.uses.keys().any(|(_, at)| at.ends_with(file))
    }

    /// Whether it is used by more than two threads and written by one of them.
    fn is_shared(&self) -> bool {
        self.threads() > 2 && self.writers() > 0
    }
}

/// What the threads of a team did during a run.
pub(super) struct Record {
    name: String,
    facts: Facts,
    /// By thread.
    threads: Vec<Vec<RecordedAccess>>,
}

impl Record {
    /// Records what the threads of `team` do while `run` runs.
    pub(super) fn of(team: &mut Team, name: &str, run: impl FnOnce(&mut Team) -> Facts) -> Record {
        let mut facts = None;
        let threads = recorded::record(team, |team| facts = Some(run(team)));
        Record {
            name: name.into(),
            facts: facts.unwrap(),
            threads,
        }
    }

    /// The lines of `bytes` bytes with an access that `counts`.
    fn lines(&self, bytes: usize, counts: impl Fn(&RecordedAccess) -> bool) -> Vec<Line> {
        let mut lines: BTreeMap<usize, Line> = BTreeMap::new();
        for (thread, accesses) in self.threads.iter().enumerate() {
            for access in accesses.iter().filter(|a| a.bytes > 0 && counts(a)) {
                let file = access.place.file();
                // What lies between the first and the last line belongs to nobody else.
                let (first, end) = (access.address, access.address + access.bytes);
                for line in BTreeSet::from([first / bytes, (end - 1) / bytes]) {
                    let line = lines.entry(line).or_default();
                    *line.uses.entry((thread, file)).or_default() += access.writes;
                    if access.writes > 0 {
                        line.written_at.insert((access.place.line(), file));
                        line.values.insert(access.address);
                    }
                }
            }
        }
        let owner =
            |(&at, line): (&usize, &Line)| Some((at + LINE_BYTES / bytes, line.state_of()?));
        let owners: BTreeMap<usize, usize> = lines.iter().filter_map(owner).collect();
        for (at, line) in &mut lines {
            line.owner = owners.get(at).copied();
        }
        lines.into_values().collect()
    }

    /// All lines. The bytes of messages need not be as far apart as other values: their lines are
    /// only compared as the machine divides them.
    fn all_lines(&self) -> [Vec<Line>; 2] {
        let is_message = |a: &RecordedAccess| a.place.file().ends_with("transfer/copy.rs");
        [
            self.lines(LINE_BYTES, |a| !is_message(a)),
            self.lines(CACHE_LINE_BYTES, |_| true),
        ]
    }

    /// What is wrong with lines that several threads use, unless one of `exceptions` allows it.
    pub(super) fn findings(&self, exceptions: &[Exception]) -> Vec<String> {
        let mut findings = BTreeSet::new();
        for line in self.all_lines().iter().flatten().filter(|l| l.is_shared()) {
            for (file, writes) in line.writes() {
                let exception = exceptions.iter().find(|e| file.ends_with(e.file));
                let limit = exception.map_or(0, |e| (e.writes)(&self.facts, line));
                if writes > limit {
                    findings.insert(format!(
                        "{}: {} of {} threads use a line with {} values, written at {:?}: {} writes in {file}, {limit} are allowed",
                        self.name,
                        line.threads(),
                        self.facts.threads,
                        line.values.len(),
                        line.written_at,
                        writes,
                    ));
                }
            }
        }
        findings.into_iter().collect()
    }

    /// Prints the lines, and fails if there are findings.
    #[expect(clippy::print_stdout, reason = "the tests' report")]
    pub(super) fn check(&self) {
        println!("{self}");
        let by_transfers = |a: &&RecordedAccess| a.place.file().ends_with("transfer/protocol.rs");
        let accesses = self.threads.iter().flatten().filter(by_transfers);
        let writes: u64 = accesses.map(|a| a.writes).sum();
        assert!(
            writes >= 2 * self.facts.messages,
            "no message without writes"
        );
        let findings = self.findings(EXCEPTIONS);
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts {
            ranks,
            threads,
            repetitions,
            messages,
            ..
        } = self.facts;
        writeln!(
            f,
            "{}: {ranks} ranks, {threads} threads, {repetitions} repetitions, {messages} messages",
            self.name
        )?;
        let [lines, whole] = self.all_lines();
        let is_message = |l: &&Line| l.writes().keys().any(|at| at.ends_with("transfer/copy.rs"));
        let mut files: BTreeMap<&str, Row> = BTreeMap::new();
        for line in lines.iter().chain(whole.iter().filter(is_message)) {
            for (file, writes) in line.writes() {
                let row = files.entry(file).or_default();
                row.lines += 1;
                row.writes += writes;
                row.max_writes = row.max_writes.max(writes);
                row.writers = row.writers.max(line.writers());
                row.threads = row.threads.max(line.threads());
            }
        }
        for (file, row) in files {
            let short = file
                .rsplit_once("src/run/")
                .map_or(file, |(_, short)| short);
            let exception = EXCEPTIONS.iter().find(|e| file.ends_with(e.file));
            let why = exception.filter(|_| row.threads > 2).map_or("", |e| e.why);
            writeln!(
                f,
                "  {short:20} {:7.2} writes a message; {:6} lines, at most {:2} threads write and {:2} use one, {:5} times  {why}",
                row.writes as f64 / messages.max(1) as f64,
                row.lines,
                row.writers,
                row.threads,
                row.max_writes,
            )?;
        }
        Ok(())
    }
}

/// The lines that a file writes: their number, all writes, and the largest numbers of one line.
#[derive(Debug, Default)]
struct Row {
    lines: u64,
    writes: u64,
    max_writes: u64,
    writers: usize,
    threads: usize,
}
