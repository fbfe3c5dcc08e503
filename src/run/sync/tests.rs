//! Which cache lines the threads of a team share during a run, and how often they write them.
//!
//! A message may only touch lines that two threads use: those of its sender and its receiver. Then
//! its cost does not depend on how many other cores the machine has. All other lines that threads
//! share are in [`EXCEPTIONS`](super::lines::EXCEPTIONS). The tests print what they find:
//! `cargo test --lib sync::tests::lines -- --nocapture`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::lines::{Facts, Record};
use super::{AtomicBool, AtomicU64, AtomicUsize};
use crate::machine::CostModel;
use crate::plan::Request;
use crate::run::wait::TeamState;
use crate::run::{Bidirectional, Clock, Endpoint, Op, Operator, Run, ScopeOptions, Team, Workers};
use crate::schedule::Schedule;

/// How ranks are mapped to threads, and which messages are eager.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cores {
    /// As where each rank has a core: short messages are eager, long ones are copied by both.
    Own,
    /// As where ranks share a core: all messages are eager.
    Shared,
    /// As many threads, each with several ranks.
    Workers(usize),
}

/// A team of `ranks` ranks whose barrier is that of as many cores as threads. Its ranks yield
/// instead of spinning, since this machine may have fewer.
fn team(ranks: usize, cores: Cores) -> Team {
    let threads = match cores {
        Cores::Workers(threads) => threads,
        _ => ranks,
    };
    let mut team = Team::new(threads).unwrap();
    let core_of: Vec<usize> = (0..threads).collect();
    team.state = TeamState::new(&core_of, 1, Vec::new());
    team.state.contention.never_block();
    team.cores = if cores == Cores::Shared { 1 } else { ranks };
    team.share_copies = cores == Cores::Own;
    if let Cores::Workers(threads) = cores {
        team.workers = Workers::Cores;
        (team.ranks, team.cores) = (ranks, threads);
    }
    team
}

/// Runs `schedule` and records it.
fn run(name: &str, schedule: &Schedule, cores: Cores, clock: Clock, eager: bool) -> Record {
    const REPETITIONS: usize = 2;
    let mut team = team(schedule.ranks(), cores);
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
            threads: team.threads() as u64,
            repetitions,
            meetings: repetitions * if clock == Clock::Paced { 3 } else { 2 },
            messages: repetitions * messages,
            shares_copies: cores == Cores::Own && !eager,
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
        (circulant.collective(crate::Kind::Reduce), "circulant"),
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

/// Runs and checks schedules of `ranks` ranks with blocks of so many elements of 8 bytes. Those of
/// up to `longest_eager` elements are eager.
fn check_all(ranks: usize, cores: Cores, blocks: &[usize], longest_eager: usize) {
    for &elements in blocks {
        for (name, schedule) in schedules(ranks, elements) {
            let eager = elements <= longest_eager;
            run(&name, &schedule, cores, Clock::Native, eager).check();
        }
    }
}

#[test]
fn lines_where_each_rank_has_a_core() {
    // Inline messages, eager ones in memory, and long ones, which both partners copy.
    check_all(16, Cores::Own, &[1, 8], 8);
    check_all(8, Cores::Own, &[5000], 8);
}

#[test]
fn lines_where_ranks_share_cores() {
    // Inline messages, copied ones, and ones that stay where they are.
    check_all(16, Cores::Shared, &[1, 100], usize::MAX);
    check_all(8, Cores::Shared, &[5000], usize::MAX);
}

#[test]
fn lines_of_many_ranks() {
    let schedule = Request::alltoall(64, 16).plan("bruck").unwrap();
    for cores in [Cores::Own, Cores::Shared] {
        let eager = cores == Cores::Shared;
        run("alltoall bruck", &schedule, cores, Clock::Native, eager).check();
    }
}

#[test]
fn lines_of_multiplexed_runs() {
    check_all(16, Cores::Workers(4), &[1, 100], usize::MAX);
}

#[test]
fn lines_of_paced_runs() {
    let schedule = Request::allgather(8, 1).plan("ring").unwrap();
    run("ring", &schedule, Cores::Own, Clock::Paced, false).check();
}

/// However late ranks are in a paced run on a busy machine.
#[test]
fn lines_of_threads_that_keep_their_pace() {
    let soon = || Instant::now() + Duration::from_millis(1);
    let found = planted(|team, me| team.state.pace(me, soon(), false));
    assert!(found.is_empty(), "{found:?}");
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
    let mut team = team(RANKS, Cores::Own);
    let record = Record::of(&mut team, "endpoints", |team| {
        let mut buffers = vec![vec![1u64; 8]; RANKS];
        let options = ScopeOptions::new(Operator::named("sum").unwrap());
        let body = |e: &mut Endpoint<'_, u64, Bidirectional>| {
            for shift in [SHIFTS; ROUNDS].concat() {
                let (to, from) = (e.rank() + shift, e.rank() + RANKS - shift);
                let (mut out, mut into) = e.split();
                let open = out.open_send(to % RANKS, 0..4)?;
                into.recv(from % RANKS, 4..8)?;
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
fn planted(touch: impl Fn(&Team, usize) + Sync) -> Vec<String> {
    let mut team = team(4, Cores::Own);
    let record = Record::of(&mut team, "planted", |team| {
        team.run_on_all(&|thread| (0..100).for_each(|_| touch(team, thread)));
        Facts {
            ranks: 4,
            threads: 4,
            repetitions: 1,
            meetings: 2,
            messages: 400,
            shares_copies: false,
        }
    });
    record.findings()
}

#[test]
fn shared_counters_are_found() {
    let counter = AtomicU64::new(0);
    let found = planted(|_, _| {
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
    let one_writes = planted(|_, me| {
        if me > 0 || flag.swap(true, Relaxed) {
            flag.load(Relaxed);
        }
    });
    let word = AtomicUsize::new(1);
    let fails = planted(|_, _| assert!(word.compare_exchange(0, 0, Relaxed, Relaxed).is_err()));
    let lock = super::Mutex::new(0);
    let locks = planted(|_, _| *lock.lock() += 1);
    assert!(!one_writes.is_empty() && !fails.is_empty() && !locks.is_empty());
    assert!(planted(|_, _| assert!(flag.load(Relaxed))).is_empty());
}

#[test]
fn false_sharing_is_found() {
    let neighbours = CachePadded::new([0; 4].map(AtomicU64::new));
    let own = planted(|_, me| neighbours[me].store(1, Relaxed));
    assert!(
        own.iter().any(|f| f.contains("a line with 4 values")),
        "{own:?}"
    );
    let pairs = planted(|_, me| neighbours[me / 2].store(1, Relaxed));
    assert!(
        pairs.iter().any(|f| f.contains("a line with 2 values")),
        "{pairs:?}"
    );
    let apart = [0; 4].map(|n| CachePadded::new(AtomicU64::new(n)));
    assert!(planted(|_, me| apart[me].store(1, Relaxed)).is_empty());
    assert!(planted(|_, me| apart[me / 2].store(1, Relaxed)).is_empty());
}

#[test]
fn exceptions_have_limits() {
    let leaves = |team: &Team, me: usize, often: bool| {
        let left = team.state.has_left(0, 1);
        if me == 0 && (often || !left) {
            team.state.leave(0, 1);
        }
    };
    assert!(planted(|team, me| leaves(team, me, false)).is_empty());
    let found = planted(|team, me| leaves(team, me, true));
    assert!(
        found.iter().any(|f| f.contains("1 are allowed")),
        "{found:?}"
    );
}
