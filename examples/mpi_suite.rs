//! Runs many schedules in one launch of processes, and verifies each: `tests/mpi.sh` starts it
//! under every MPI library. One start of `mpirun` costs more than hundreds of small runs.
//!
//! ```text
//! mpirun -n 7 mpi_suite [N]
//! mpirun -n 2 mpi_suite FAULT
//! ```
//!
//! Every registered algorithm runs on 1, 2, 3, 4 and 7 of the processes, on awkward sizes, with
//! element types and operators in turn, eagerly and as rendezvous; then random programs of several
//! ports and many spans; then rank programs. With `N`, only each `N`-th case runs, and more than
//! two processes leave out what two of them do as well: runs of 1 and 2 ranks, and most of the
//! library's own operators. Process 0 prints what was done. With the name of a fault, a rank
//! program has it, which ends the processes.

#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/support/plans.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use the rest")]
mod plans;
#[path = "../tests/support/random.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod random;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use oneport::mpi::World;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::{
    Bidirectional, Clock, Element, ElementType, Endpoint, Op, Operator, Place, Run, ScopeOptions,
    Team, Unidirectional,
};
use oneport::{
    Collective, CostModel, Error, ErrorKind, Kind, Layout, Order, Ports, Request, Schedule, Span,
    with_element_type,
};
use plans::{Plan, Shape, initial_buffers, ports};
use random::Random;

/// Numbers of ranks.
const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// Elements of the vector or of a block; the last one passes from one protocol of the libraries to
/// another.
const SIZES: [usize; 5] = [0, 1, 5, 1000, 70_001];

/// Processes of the launch that runs what more of them leave out.
const PAIR: usize = 2;

/// Number of random programs.
const PROGRAMS: usize = 60;

fn main() -> ExitCode {
    match suite() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn suite() -> oneport::Result<()> {
    let argument = std::env::args().nth(1);
    let mut world = World::join()?;
    let thin = match argument.as_deref().map(str::parse) {
        None => 1,
        Some(Ok(thin)) => thin,
        Some(Err(_)) => return faulty_program(&mut world, &argument.unwrap_or_default()),
    };
    let start = Instant::now();
    let say = |text: String| {
        if world.rank() == 0 {
            println!("{text}");
        }
    };
    let processes = world
        .processes()
        .ok_or_else(|| wrong("no processes".into()))?;
    say(format!(
        "{processes} ({} interface, {})",
        processes.interface, processes.library
    ));
    let (runs, refused) = registered(&mut world, thin)?;
    let programs = random_programs(&mut world, thin)?;
    let known = own_operators(&mut world, thin)?;
    blocking_messages(&mut world)?;
    wrong_results(&mut world)?;
    disagreements(&mut world)?;
    endless_deadlines(&mut world)?;
    rank_programs(&mut world)?;
    if world.rank() == 0 {
        println!(
            "{runs} runs of {} algorithms verified ({refused} requests refused by their planners), {programs} random programs right, {known} operators of the library verified, in {:.1} s",
            registry::all().len(),
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Runs each `thin`-th case of the registered algorithms. Returns the numbers of runs and of
/// requests that planners refused.
fn registered(world: &mut World, thin: usize) -> oneport::Result<(usize, usize)> {
    let (mut case, mut runs, mut refused) = (0, 0, 0);
    let size = world.size();
    let is_left_out = |ranks: usize| thin > 1 && size > PAIR && ranks <= PAIR;
    for ranks in RANKS.into_iter().filter(|&p| p <= size) {
        for algorithm in registry::all() {
            for elements in SIZES {
                case += 1;
                if !usize::is_multiple_of(case, thin) || is_left_out(ranks) {
                    continue;
                }
                match algorithm.plan(&request(algorithm, ranks, elements, case)) {
                    Err(_) => refused += 1,
                    Ok(schedule) => {
                        runs += 1;
                        run(world, &schedule, algorithm.commutative_only, case)
                            .map_err(|e| in_words(&e, algorithm, ranks, elements))?;
                    }
                }
            }
        }
    }
    Ok((runs, refused))
}

/// Case `case` of an algorithm: roots, segments, block sizes and ports differ from case to case.
fn request(algorithm: &Algorithm, ranks: usize, elements: usize, case: usize) -> Request {
    let kind = algorithm.collective;
    let mut request = Request::new(kind, ranks, elements)
        .keep_order(kind.reduces() && !algorithm.commutative_only);
    let rooted = [Kind::Broadcast, Kind::Reduce, Kind::Gather, Kind::Scatter];
    if rooted.contains(&kind) {
        request = request.root(case % ranks);
    }
    if algorithm.segmented {
        request = request.segment_count((1 + case % 7).min(elements.max(1)));
    }
    if kind.has_blocks() && case.is_multiple_of(2) {
        let mut random = Random::new(case as u64);
        let count = if kind.has_block_pairs() {
            ranks * ranks
        } else {
            ranks
        };
        let blocks = (0..count).map(|_| random.below(2 * elements / ranks + 2));
        request = request.blocks(blocks.collect::<Vec<_>>());
    }
    let mut ports = request.get_ports();
    if !algorithm.ports.allow(ports) || case.is_multiple_of(3) && algorithm.ports.allow(Ports::UNI)
    {
        ports = Ports::UNI;
    }
    if case.is_multiple_of(5) {
        ports = ports.with_k(2);
    }
    request.ports(ports)
}

/// Runs `schedule` with the element type and the operator of case `case`.
fn run(world: &mut World, schedule: &Schedule, commutes: bool, case: usize) -> oneport::Result<()> {
    let types = ElementType::ALL;
    let dtype = types[case % types.len()];
    let usable: Vec<Op> = dtype
        .operators()
        .filter(|op| op.commutes() || !commutes)
        .collect();
    let op = usable[case / types.len() % usable.len()];
    with_element_type!(dtype, T => run_as::<T>(world, schedule, op, case))
}

fn run_as<T: Element>(
    world: &mut World,
    schedule: &Schedule,
    op: Op,
    case: usize,
) -> oneport::Result<()> {
    let operator = if schedule.collective().kind().reduces() {
        Operator::<T>::try_from(op)?
    } else {
        Operator::none()
    };
    let proof = schedule.check();
    for eager in [true, false] {
        let run = Run::new(schedule).op(&operator).verified();
        let outcome = run.repetitions(2).eager(eager).on(world)?;
        if let Some(mismatch) = outcome.mismatch {
            return Err(wrong(format!("case {case}, eager {eager}: {mismatch}")));
        }
        if proof.is_correct() && !(outcome.is_verified() && outcome.model_time.is_finite()) {
            return Err(wrong(format!("case {case}, eager {eager}: not verified")));
        }
    }
    Ok(())
}

/// Has the library reduce with every operator and element type that it knows, or on more than two
/// processes with each `thin`-th. Returns their number.
fn own_operators(world: &mut World, thin: usize) -> oneport::Result<usize> {
    let schedule = Request::allreduce(world.size(), 100).plan("linear")?;
    let thin = if world.size() > PAIR { thin } else { 1 };
    let (mut case, mut known) = (0, 0);
    for &dtype in ElementType::ALL {
        for op in dtype.operators().filter(|&op| op != Op::AFFINE) {
            case += 1;
            if !usize::is_multiple_of(case, thin) {
                continue;
            }
            known += with_element_type!(dtype, T => {
                let run = Run::<T>::new(&schedule).op(op).verified().by_library();
                match run.on(world) {
                    Ok(outcome) if outcome.is_verified() => 1,
                    // With AVX2, Open MPI's sums of short integers saturate.
                    Ok(_) if op == Op::SUM && dtype.bytes() <= 2 => 0,
                    Ok(_) => return Err(wrong(format!("the library's {op} of {dtype}"))),
                    Err(error) if ["f16", "bf16"].contains(&dtype.name()) && error.is_usage() => 0,
                    Err(error) => return Err(error),
                }
            });
        }
    }
    Ok(known)
}

/// The first wrong element is that of threads on all processes, whichever of them has it.
fn wrong_results(world: &mut World) -> oneport::Result<()> {
    let schedule = Request::allreduce(world.size(), 7).plan("recursive-doubling")?;
    // The order of operands matters, which it denies. Few ranks combine in the right one.
    let last = Operator::new("last", true, |_, b: i64| b + 1);
    let run = Run::new(&schedule).op(&last).verified().repetitions(2);
    let found = run.on(world)?.mismatch;
    let expected = run.on(&mut Team::new(world.size())?)?.mismatch;
    if found != expected || found.is_none() && world.size() > 3 {
        return Err(wrong(format!(
            "mismatch {found:?}, on threads {expected:?}"
        )));
    }
    Ok(())
}

/// Broadcasts by the library's blocking messages, which refuse programs that combine.
fn blocking_messages(world: &mut World) -> oneport::Result<()> {
    let broadcast = Request::broadcast(world.size(), 1000).plan("binomial")?;
    let run = Run::<i32>::new(&broadcast)
        .verified()
        .by_blocking_messages();
    let outcome = run.on(world)?;
    if !outcome.is_verified() || outcome.function != Some("MPI_Send and MPI_Recv") {
        return Err(wrong("a broadcast by blocking messages".into()));
    }
    let reduce = Request::reduce(world.size(), 1000).plan("binomial")?;
    let run = Run::<i32>::new(&reduce).op(Op::SUM).by_blocking_messages();
    match run.on(world) {
        Err(error) if error.is_usage() => Ok(()),
        Ok(_) if world.size() == 1 => Ok(()),
        other => Err(wrong(format!(
            "a reduction by blocking messages: {other:?}"
        ))),
    }
}

/// Runs that differ in process 1: all processes are told in what.
fn disagreements(world: &mut World) -> oneport::Result<()> {
    if world.size() < 2 {
        return Ok(());
    }
    let schedule = Request::reduce(world.size(), 10).plan("binomial")?;
    let differs = world.rank() == 1;
    let own = |differs: bool, commutes: bool| {
        if differs {
            Operator::<u64>::new("own", commutes, |_, b| b)
        } else {
            Operator::<u64>::new("own", commutes, |a, _| a)
        }
    };
    let inputs = vec![vec![7; 10]; world.size()];
    let run = Run::new(&schedule).op(own(false, false)).verified();
    let unverified = Run::new(&schedule).op(own(false, false));
    let runs = [
        (run.clone().op(own(true, false)), "test values give digest"),
        (run.clone().op(own(false, true)), "own, which commutes"),
        (run.clone().op(Op::SUM), "process 1 combines by sum"),
        (
            unverified,
            "process 1 does not verify its results, process 0 verifies its results",
        ),
        (
            run.clone().inputs(&inputs),
            "process 1 has inputs of its own, process 0 has test data",
        ),
        (run.clone().repetitions(2), "process 1 runs 2 repetitions"),
    ];
    for (other, words) in runs {
        let mine = if differs { &other } else { &run };
        match mine.on(world) {
            Err(error) if error.is_usage() && error.to_string().contains(words) => (),
            found => return Err(wrong(format!("not '{words}': {found:?}"))),
        }
    }
    if !run.on(world)?.is_verified() {
        return Err(wrong("a run after runs in which processes differ".into()));
    }
    Ok(())
}

/// Deadlines that no clock reaches.
fn endless_deadlines(world: &mut World) -> oneport::Result<()> {
    let schedule = Request::broadcast(world.size(), 10).plan("binomial")?;
    let run = Run::<u8>::new(&schedule).verified().deadline(Duration::MAX);
    for run in [run.clone(), run.clone().eager(false), run.by_library()] {
        if !run.on(world)?.is_verified() {
            return Err(wrong("a run without a deadline".into()));
        }
    }
    Ok(())
}

/// Runs random programs of several ports, whose messages have many spans. Returns their number.
fn random_programs(world: &mut World, thin: usize) -> oneport::Result<usize> {
    if world.size() < 2 {
        return Ok(0);
    }
    let mut random = Random::new(7);
    for number in 0..PROGRAMS / thin {
        let shape = Shape {
            ranks: 2 + random.below(world.size() - 1),
            ports: ports(&mut random),
            len: 1 + random.below(3000),
            operations: 1 + random.below(60),
            parts: 5,
        };
        let plan = Plan::random(&mut random, shape);
        let operator = Operator::<u64>::new("rotate", false, rotate);
        let inputs = initial_buffers(shape.ranks, shape.len);
        let expected = plan.outcome(inputs.clone(), rotate);
        for eager in [true, false] {
            let schedule = plan.schedule();
            let run = Run::new(&schedule).op(&operator).inputs(&inputs);
            let outcome = run.eager(eager).on(world)?;
            let own = world.rank();
            let right = own >= shape.ranks || outcome.outputs[own] == expected[own];
            let verdict = if right {
                Ok(())
            } else {
                Err(wrong(format!("random program {number}, eager {eager}")))
            };
            world.agree(verdict)?;
        }
    }
    Ok(PROGRAMS / thin)
}

/// An operator that shows the order and the number of its operands.
/// Rank programs: their data, and their model clock compared with their recorded steps.
fn rank_programs(world: &mut World) -> oneport::Result<()> {
    let (p, me) = (world.size(), world.rank());
    // From a message in its head to one that libraries send by rendezvous, and none.
    for len in [0, 1, 100, 128, 129, 5000, 70_001] {
        let mut options = ScopeOptions::new(Operator::<u64>::named("sum")?);
        options.cost = CostModel::new(3.7, 0.21).gamma(0.13).gamma_copy(0.07);
        options.record = true;
        // A ring in which every rank sends, then receives; then a reduction in a chain whose
        // messages have two spans; then copies.
        let ring = |e: &mut Endpoint<u64, Bidirectional>| {
            let (me, p) = (e.rank(), e.ranks());
            for k in 0..p - 1 {
                let block = |k: usize| Span::new((me + 2 * p - k) % p * len, len);
                let (next, before) = ((me + 1) % p, (me + p - 1) % p);
                e.exchange(next, block(k), before, block(k + 1))?;
            }
            let halves = [0..len / 2, (len / 2 + 1).min(len)..len];
            if me + 1 < p {
                e.recv_combine(me + 1, halves.clone(), Order::MineFirst)?;
            }
            if me > 0 {
                e.open_send(me - 1, halves)?.wait()?;
            }
            e.barrier()?;
            if p > 1 {
                e.copy(0..len, len..2 * len)?;
            }
            e.model_time()
        };
        let mut buffer = vec![0u64; len * p];
        buffer[me * len..][..len].fill(me as u64 + 1);
        let outcome = world.scope(&mut buffer, &options, ring)?;
        let expected = |i: usize| {
            let block = if i / len == 1 { 0 } else { i / len };
            match (block, i % len == len / 2) {
                // Each rank has combined the block 0 of all ranks that follow.
                (0, false) => (p - me) as u64,
                _ => block as u64 + 1,
            }
        };
        let wrong_at = buffer.iter().enumerate().find(|&(i, &v)| v != expected(i));
        if let Some((i, value)) = wrong_at {
            return Err(wrong(format!(
                "{value} at {i} of a rank program, {len} a block"
            )));
        }
        let layout = Layout {
            len: len * p,
            input: Span::new(0, len * p).into(),
            output: None.into(),
        };
        let schedule = outcome.schedule(&Collective::Allreduce, &vec![layout; p])?;
        let simulated = schedule.simulate(&options.cost)?.rank_times();
        if outcome.rank_times != simulated || outcome.results != [simulated[me]] {
            return Err(wrong(format!(
                "{:?} is not {simulated:?}",
                outcome.rank_times
            )));
        }
    }
    refused_programs(world)
}

/// Options that differ, or that processes do not have: nothing runs, and the world stays usable.
fn refused_programs(world: &mut World) -> oneport::Result<()> {
    let mut options = ScopeOptions::<u64> {
        record: world.rank() == 1,
        ..ScopeOptions::default()
    };
    let differ = match world.size() {
        1 => "",
        _ => "process 1 records its steps, process 0 records no steps",
    };
    let mut refused = |options: &ScopeOptions<u64>, words: &str| {
        let program = |_: &mut Endpoint<u64, Unidirectional>| Ok(());
        match world.scope(&mut [0], options, program) {
            Err(error) if error.is_usage() && error.to_string().contains(words) => Ok(()),
            Ok(_) if words.is_empty() => Ok(()),
            found => Err(wrong(format!("not '{words}': {found:?}"))),
        }
    };
    refused(&options, differ)?;
    options.record = false;
    options.clock = Clock::Paced;
    refused(&options, "the paced clock is for ranks that are threads")?;
    options.clock = Clock::Native;
    refused(&options, "")
}

/// A rank program with a fault, which ends all processes.
fn faulty_program(world: &mut World, fault: &str) -> oneport::Result<()> {
    let options = ScopeOptions::<u64> {
        deadline: Duration::from_secs(1),
        ..ScopeOptions::default()
    };
    let program = |e: &mut Endpoint<u64, Unidirectional>| {
        let (me, peer) = (e.rank(), 1 - e.rank());
        match (fault, me) {
            ("deadline", 0) => e.recv(peer, 0..4),
            ("length", 0) => e.send(peer, 0..4),
            ("length", _) => e.recv(peer, 0..3),
            ("head-on", _) => {
                e.send(peer, 0..4)?;
                e.recv(peer, 4..8)
            }
            ("usage", 1) => e.send(peer, 8..9),
            ("panic", 1) => panic!("enough"),
            _ => e.recv(peer, 0..4),
        }
    };
    world.scope(&mut [0; 8], &options, program).map(drop)
}

fn rotate(a: u64, b: u64) -> u64 {
    a.rotate_left(7).wrapping_mul(3).wrapping_add(b)
}

fn wrong(message: String) -> Error {
    ErrorKind::Wrong(message).into()
}

fn in_words(error: &Error, algorithm: &Algorithm, ranks: usize, elements: usize) -> Error {
    let kind = algorithm.collective.name();
    wrong(format!(
        "{kind} {}, {ranks} ranks, {elements} elements: {error}",
        algorithm.name()
    ))
}
