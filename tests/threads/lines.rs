//! Which cache lines the threads of a team share during a run, and how often they write them.
//!
//! A message may only touch lines that two threads use: those of its sender and its receiver. Then
//! its cost does not depend on how many other cores the machine has. All other lines that threads
//! share are in `EXCEPTIONS`. The tests print what they find:
//! `cargo test --test threads lines -- --nocapture`.

use std::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;
use oneport::internal::recorded::{self, AtomicBool, AtomicU64, AtomicUsize, Mutex};
use oneport::run::{Bidirectional, Clock, Endpoint, Op, Operator, Run, ScopeOptions, Team};
use oneport::{CostModel, Kind, Request, Schedule};

use self::record::{EXCEPTIONS, Exception, Facts, Record};
use crate::support::alone::shared;

mod record;

/// How ranks are mapped to threads, and who copies long messages.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cores {
    /// As where each rank has a core: long messages are copied by both.
    Own,
    /// As where ranks share a core: one partner copies.
    Shared,
    /// As many threads, each with several ranks.
    Workers(usize),
}

impl Cores {
    fn threads(self, ranks: usize) -> usize {
        match self {
            Cores::Workers(threads) => threads,
            _ => ranks,
        }
    }

    fn team(self, ranks: usize) -> Team {
        let cores = match self {
            Cores::Own => ranks,
            Cores::Shared => 1,
            Cores::Workers(threads) => threads,
        };
        recorded::team(ranks, self.threads(ranks), cores)
    }
}

/// Runs `schedule` and records it.
fn run(name: &str, schedule: &Schedule, cores: Cores, clock: Clock, eager: bool) -> Record {
    const REPETITIONS: usize = 2;
    let _shared = shared();
    let mut team = cores.team(schedule.ranks());
    let name = format!("{name}, {cores:?}, {clock:?}");
    Record::of(&mut team, &name, |team| {
        let run = Run::<u64>::new(schedule).op(Op::SUM).verified();
        // A rank sleeps to keep this pace, unless it is late.
        let run = run.clock(clock).cost(CostModel::new(2e6, 0.0));
        let outcome = run.repetitions(REPETITIONS).on(team).unwrap();
        assert!(outcome.is_verified());
        assert_eq!(outcome.eager, eager, "{name}");
        let repetitions = (REPETITIONS + usize::from(eager)) as u64;
        let steps = schedule.programs().iter().flatten();
        let messages = steps.filter(|step| step.is_send()).count() as u64;
        Facts {
            ranks: schedule.ranks() as u64,
            threads: cores.threads(schedule.ranks()) as u64,
            repetitions,
            meetings: repetitions * if clock == Clock::Paced { 3 } else { 2 },
            messages: repetitions * messages,
            shares_copies: cores == Cores::Own,
        }
    })
}

/// Schedules of `ranks` ranks whose messages are inline, of some hundred bytes, or long.
fn schedules(ranks: usize, elements: usize) -> Vec<(String, Schedule)> {
    let circulant = Request::broadcast(ranks, 8 * elements).segment_count(8);
    [
        (Request::allgather(ranks, elements), "ring"),
        (Request::alltoall(ranks, elements), "pairwise"),
        (Request::alltoall(ranks, elements), "bruck"),
        (Request::broadcast(ranks, elements), "binomial"),
        (circulant.clone(), "circulant"),
        (circulant.collective(Kind::Reduce), "circulant"),
    ]
    .map(|(request, algorithm)| {
        let name = format!(
            "{} {algorithm}, {elements} elements",
            request.get_collective()
        );
        (name, request.plan(algorithm).unwrap())
    })
    .into()
}

/// Runs and checks schedules of `ranks` ranks with blocks of so many elements of 8 bytes.
fn check_all(ranks: usize, cores: Cores, blocks: &[usize]) {
    for &elements in blocks {
        for (name, schedule) in schedules(ranks, elements) {
            run(&name, &schedule, cores, Clock::Native, true).check();
        }
    }
}

#[test]
fn lines_where_each_rank_has_a_core() {
    // Inline messages, ones in memory, and long ones, which both partners copy.
    check_all(16, Cores::Own, &[1, 8, 100]);
    check_all(8, Cores::Own, &[5000]);
}

#[test]
fn lines_where_ranks_share_cores() {
    // Inline messages, copied ones, and ones that stay where they are.
    check_all(16, Cores::Shared, &[1, 100]);
    check_all(8, Cores::Shared, &[5000]);
}

#[test]
fn lines_of_many_ranks() {
    // Messages of 4 and of 50 KiB.
    for (elements, cores) in [(16, Cores::Own), (200, Cores::Own), (16, Cores::Shared)] {
        let schedule = Request::alltoall(64, elements).plan("bruck").unwrap();
        run("alltoall bruck", &schedule, cores, Clock::Native, true).check();
    }
}

#[test]
fn lines_of_multiplexed_runs() {
    check_all(16, Cores::Workers(4), &[1, 100]);
}

#[test]
fn lines_of_paced_runs() {
    let schedule = Request::allgather(8, 1).plan("ring").unwrap();
    run("ring", &schedule, Cores::Own, Clock::Paced, false).check();
}

#[test]
fn lines_of_shared_ports() {
    let schedule = Request::alltoall(16, 10)
        .plan("pairwise")
        .unwrap()
        .with_element_bytes(8);
    let nodes: Vec<Vec<usize>> = (0..4).map(|n| (4 * n..4 * n + 4).collect()).collect();
    let cost = CostModel::new(1000.0, 0.1);
    let schedule = schedule.with_node_ports(&nodes, 2, &cost).unwrap();
    run("node ports", &schedule, Cores::Own, Clock::Native, false).check();
}

#[test]
fn lines_of_endpoints() {
    const RANKS: usize = 16;
    const ROUNDS: usize = 100;
    const SHIFTS: [usize; 3] = [1, 3, 8];
    let _shared = shared();
    let mut team = Cores::Own.team(RANKS);
    let record = Record::of(&mut team, "endpoints", |team| {
        // What is moved is a line away from both ends, where other memory may lie.
        let mut buffers = vec![vec![1u64; 24]; RANKS];
        let options = ScopeOptions::new(Operator::named("sum").unwrap());
        let body = |e: &mut Endpoint<'_, u64, Bidirectional>| {
            for shift in [SHIFTS; ROUNDS].concat() {
                let (to, from) = (e.rank() + shift, e.rank() + RANKS - shift);
                let (mut out, mut into) = e.split();
                let open = out.open_send(to % RANKS, 8..12)?;
                into.recv(from % RANKS, 12..16)?;
                open.wait()?;
            }
            e.barrier()
        };
        team.scope(&mut buffers, &options, body).unwrap();
        Facts {
            ranks: RANKS as u64,
            threads: RANKS as u64,
            repetitions: 1,
            meetings: 1,
            messages: (RANKS * ROUNDS * SHIFTS.len()) as u64,
            shares_copies: false,
        }
    });
    record.check();
}

/// What is found if each of four threads calls `touch` with its number a hundred times.
fn planted(touch: impl Fn(usize) + Sync) -> Vec<String> {
    planted_within(EXCEPTIONS, touch)
}

fn planted_within(exceptions: &[Exception], touch: impl Fn(usize) + Sync) -> Vec<String> {
    let _shared = shared();
    let mut team = Cores::Own.team(4);
    let record = Record::of(&mut team, "planted", |team| {
        recorded::on_all(team, |thread| (0..100).for_each(|_| touch(thread)));
        Facts {
            ranks: 4,
            threads: 4,
            repetitions: 1,
            meetings: 2,
            messages: 400,
            shares_copies: false,
        }
    });
    record.findings(exceptions)
}

#[test]
fn shared_counters_are_found() {
    let counter = AtomicU64::new(0);
    let found = planted(|_| {
        counter.fetch_add(1, Relaxed);
    });
    assert!(!found.is_empty());
    for finding in found {
        let words = "4 of 4 threads use a line with 1 values, written at ";
        assert!(
            finding.contains(words) && finding.contains("400 writes"),
            "{finding}"
        );
    }
    // One that writes suffices, and an exchange that fails, and a lock.
    let flag = AtomicBool::new(false);
    let one_writes = planted(|me| {
        if me > 0 || flag.swap(true, Relaxed) {
            flag.load(Relaxed);
        }
    });
    let word = AtomicUsize::new(1);
    let fails = planted(|_| assert!(word.compare_exchange(0, 0, Relaxed, Relaxed).is_err()));
    let lock = Mutex::new(0);
    let locks = planted(|_| *lock.lock() += 1);
    assert!(!one_writes.is_empty() && !fails.is_empty() && !locks.is_empty());
    assert!(planted(|_| assert!(flag.load(Relaxed))).is_empty());
}

#[test]
fn false_sharing_is_found() {
    let neighbours = CachePadded::new([0; 4].map(AtomicU64::new));
    let own = planted(|me| neighbours[me].store(1, Relaxed));
    assert!(
        own.iter().any(|f| f.contains("a line with 4 values")),
        "{own:?}"
    );
    let pairs = planted(|me| neighbours[me / 2].store(1, Relaxed));
    assert!(
        pairs.iter().any(|f| f.contains("a line with 2 values")),
        "{pairs:?}"
    );
    let apart = [0; 4].map(|n| CachePadded::new(AtomicU64::new(n)));
    assert!(planted(|me| apart[me].store(1, Relaxed)).is_empty());
    assert!(planted(|me| apart[me / 2].store(1, Relaxed)).is_empty());
}

#[test]
fn exceptions_have_limits() {
    let once = Exception {
        file: "threads/lines.rs",
        writes: |run, _| run.repetitions,
        why: "the first thread says something",
    };
    let findings = |often: bool| {
        let said = AtomicU64::new(0);
        planted_within(std::slice::from_ref(&once), |me| {
            if said.load(Relaxed) == 0 || often {
                let first = me == 0;
                first.then(|| said.store(1, Relaxed));
            }
        })
    };
    assert!(findings(false).is_empty());
    let found = findings(true);
    assert!(
        found.iter().any(|f| f.contains("1 are allowed")),
        "{found:?}"
    );
}
