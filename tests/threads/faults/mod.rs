//! Tests of faulty runs in every mode, each followed by a correct run on the same team.
//!
//! A case uses one team for several schedules or rank programs with faults, drawn from one seed. A
//! faulty run must end in time, with the data that an independent interpreter computes or with an
//! error that describes it. The correct run after it must give the correct data, because a fault
//! must have no effect on later runs.
//!
//! `ONEPORT_FAULTS=N` runs N cases of each kind instead of a few. `ONEPORT_FAULTS_SEED=S` runs the
//! case that a failure names. `tests/sanitize.sh` runs these tests under sanitizers.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod programs;
mod schedules;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use oneport::plan::registry;
use oneport::run::{
    Clock, Element, Operator, Run, Team, TeamOptions, Workers, inputs, oracle as expected_outputs,
};
use oneport::{CostModel, Error, ErrorKind, Ports, Request, Schedule, Step};

use crate::oracle;
use crate::support::alone::{alone, is_team_thread};
use crate::support::plans::{self, Plan, Shape, ports};
use crate::support::random::Random;
use crate::support::watch::{Watch, number};

/// For runs that must complete, even on a busy machine.
const LONG_DEADLINE: Duration = Duration::from_secs(60);
/// For runs that may never complete.
const SHORT_DEADLINE: Duration = Duration::from_millis(25);

/// Message of the panics that operators cause on purpose.
const OPERATOR_PANIC: &str = "burnt down";

/// Runs `case` with every seed. Unless there are few seeds, faulty runs must have ended in at least
/// three ways: with data, at a deadline, and with a panic.
fn run_cases(test: &str, case: impl Fn(&mut Random)) {
    const DEFAULT_CASES: u64 = 30;
    let _alone = alone();
    silence_ranks();
    let seeds = seeds(DEFAULT_CASES);
    let enough = seeds.end - seeds.start >= DEFAULT_CASES;
    for seed in seeds {
        let command =
            format!("ONEPORT_FAULTS_SEED={seed} cargo test --test threads faults::{test}");
        let _watch = Watch::new(command);
        case(&mut Random::new(seed));
    }
    let ends = std::mem::take(&mut *ENDS.lock().unwrap());
    println!("{test}: faulty runs ended in {ends:?}");
    let seen = |end| ends.contains_key(end);
    assert!(!enough || ["data", "Deadline", "Panicked"].into_iter().all(seen));
}

/// Number of faulty runs that ended in each way.
static ENDS: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

/// Counts how a faulty run ended.
fn count<R>(result: Result<R, Error>) -> Result<R, Error> {
    let end = match &result {
        Ok(_) => "data",
        Err(error) => match error.kind() {
            ErrorKind::Usage(_) | ErrorKind::Malformed(_) => "Usage",
            ErrorKind::Wrong(_) => "Wrong",
            ErrorKind::PortBusy { .. } => "PortBusy",
            ErrorKind::Deadline { .. } => "Deadline",
            ErrorKind::Length { .. } => "Length",
            ErrorKind::Panicked { .. } => "Panicked",
            ErrorKind::PartnerLeft { .. } => "PartnerLeft",
            _ => "another error",
        },
    };
    *ENDS.lock().unwrap().entry(end).or_default() += 1;
    result
}

fn seeds(default_cases: u64) -> Range<u64> {
    match number("ONEPORT_FAULTS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ONEPORT_FAULTS").unwrap_or(default_cases),
    }
}

/// Suppresses the messages of ranks, which panic here on purpose.
fn silence_ranks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            if !thread.name().is_some_and(is_team_thread) {
                print(panic);
            }
        }));
    });
}

/// An element type with an operator that is neither commutative nor associative, so that any other
/// order of operands changes the result.
trait Value: Element {
    fn of(number: u64) -> Self;
    fn join(self, right: Self) -> Self;
}

impl Value for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn join(self, right: Self) -> Self {
        self.wrapping_mul(3).wrapping_add(right.rotate_left(7))
    }
}

impl Value for u8 {
    fn of(number: u64) -> Self {
        (number ^ number >> 8).wrapping_mul(29) as u8
    }

    fn join(self, right: Self) -> Self {
        self.wrapping_mul(3).wrapping_add(right.rotate_left(3))
    }
}

/// The initial buffers of all ranks.
fn initial_buffers<T: Value>(ranks: usize, len: usize) -> Vec<Vec<T>> {
    let buffers = plans::initial_buffers(ranks, len).into_iter();
    let values = |buffer: Vec<u64>| buffer.into_iter().map(T::of).collect();
    buffers.map(values).collect()
}

fn join<T: Value>() -> Operator<T> {
    Operator::new("join", false, T::join)
}

/// Panics at the `fuse`-th combination.
fn panicking<T: Value>(fuse: u64) -> Operator<T> {
    let fuse = Arc::new(AtomicU64::new(fuse));
    Operator::new("fuse", false, move |a: T, b| {
        assert!(fuse.fetch_sub(1, Relaxed) != 0, "{OPERATOR_PANIC}");
        a.join(b)
    })
}

/// Sleeps at the `fuse`-th combination.
fn sleeping<T: Value>(fuse: u64, nap: Duration) -> Operator<T> {
    let fuse = Arc::new(AtomicU64::new(fuse));
    Operator::new("nap", false, move |a: T, b| {
        if fuse.fetch_sub(1, Relaxed) == 0 {
            std::thread::sleep(nap);
        }
        a.join(b)
    })
}

/// The number of a combination: one of the first 20, or one of all `n`.
fn fuse(random: &mut Random, n: usize) -> u64 {
    let max = if random.one_in(2) { n.min(20) } else { n };
    random.below(max + 1) as u64
}

/// A team with random options.
fn team(random: &mut Random, workers: Workers) -> Team {
    let p = if random.one_in(3) {
        2
    } else {
        2 + random.below(11)
    };
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    // On one core, no two ranks run at the same time.
    let one = cores.first().filter(|_| random.one_in(4));
    let options = TeamOptions {
        cores: one.map(|core| vec![core.id]),
        share_copies: !random.one_in(4),
        workers,
        ..TeamOptions::default()
    };
    Team::with(p, &options).unwrap()
}

/// Random programs for this team, with fewer operations if buffers are long.
fn plan(random: &mut Random, team: &Team, ports: Ports, parts: usize) -> Plan {
    let p = team.ranks();
    let len = match random.below(8) {
        0 => 2,
        1 if p == 2 => 40_000,
        1 | 2 => 6000,
        3..=5 => 100,
        _ => 8,
    };
    let max_operations = if len > 1000 { 3 * p } else { 12 * p };
    let shape = Shape {
        ranks: p,
        ports,
        len,
        operations: 1 + random.below(max_operations),
        parts,
    };
    Plan::random(random, shape)
}

/// Random options of a run: native or paced, eager or rendezvous, traced or not. `time` is the time
/// of the schedule with the interpreter's costs, if it completes. The second result is the factor
/// by which these options scale that time.
fn options<T>(
    random: &mut Random,
    team: &Team,
    overlap: bool,
    time: Option<f64>,
) -> (Settings, f64) {
    const PACED_NS: f64 = 2e6;
    let paced = team.workers() == Workers::Ranks && random.one_in(5);
    let mut scale = 1.0;
    if paced {
        // Scaling by powers of two keeps sums exact.
        while time.is_some_and(|t| t > 0.0 && 2.0 * scale * t <= PACED_NS) {
            scale *= 2.0;
        }
    }
    let options = Settings {
        clock: if paced { Clock::Paced } else { Clock::Native },
        cost: costs::<T>(scale).overlap(overlap),
        repetitions: 1 + random.below(3),
        warmup: random.below(2),
        trace: random.one_in(4),
        eager: !random.one_in(3),
        deadline: LONG_DEADLINE,
    };
    (options, scale)
}

/// The settings of a run, for the messages of failures.
#[derive(Debug)]
struct Settings {
    clock: Clock,
    cost: CostModel,
    repetitions: usize,
    warmup: usize,
    trace: bool,
    eager: bool,
    deadline: Duration,
}

impl Settings {
    fn run<'r, T: Element>(
        &self,
        schedule: &'r Schedule,
        data: &'r [Vec<T>],
        operator: &Operator<T>,
    ) -> Run<'r, T> {
        Run::new(schedule)
            .op(operator)
            .inputs(data)
            .clock(self.clock)
            .cost(self.cost.clone())
            .repetitions(self.repetitions)
            .warmup(self.warmup)
            .trace(self.trace)
            .eager(self.eager)
            .deadline(self.deadline)
    }
}

/// The interpreter's costs times `scale`, per byte instead of per element.
fn costs<T>(scale: f64) -> CostModel {
    let [alpha, beta, gamma, gamma_copy] = oracle::COSTS;
    let bytes = size_of::<T>() as f64 / scale;
    CostModel::new(alpha * scale, beta / bytes)
        .gamma(gamma / bytes)
        .gamma_copy(gamma_copy / bytes)
}

/// Checks the results of a correct run.
fn verify(random: &mut Random, team: &mut Team) {
    if random.one_in(3) {
        registered_algorithm(random, team);
    } else if random.one_in(2) {
        correct_plan::<u8>(random, team);
    } else {
        correct_plan::<u64>(random, team);
    }
    if team.workers() == Workers::Ranks && random.one_in(3) {
        programs::verify(random, team);
    }
}

fn correct_plan<T: Value>(random: &mut Random, team: &mut Team) {
    let ports = ports(random);
    let plan = plan(random, team, ports, 3);
    let schedule = plan.schedule().with_element_bytes(size_of::<T>() as u64);
    let overlap = random.one_in(2);
    let data: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let time = schedule
        .simulate(&costs::<T>(1.0).overlap(overlap))
        .unwrap()
        .makespan();
    let (options, scale) = options::<T>(random, team, overlap, Some(time));
    let outcome = options.run(&schedule, &data, &join()).on(team).unwrap();
    assert_eq!(outcome.outputs, plan.outcome(data, T::join), "{options:?}");
    assert_eq!(outcome.model_time, scale * time, "{options:?}");
    assert_eq!(outcome.wall.count(), options.repetitions as u64);
    assert_eq!(outcome.step_times.is_some(), options.trace);
}

fn registered_algorithm(random: &mut Random, team: &mut Team) {
    let algorithm = loop {
        let algorithm = &registry::all()[random.below(registry::all().len())];
        let elements = [0, 1, 7, 100, 3000][random.below(5)];
        let request = Request::new(algorithm.collective, team.ranks(), elements)
            .segment_count(1 + random.below(4))
            .root(random.below(team.ranks()))
            .ports(ports(random))
            .keep_order(!algorithm.commutative_only);
        if algorithm.accepts(&request).is_ok()
            && let Ok(schedule) = algorithm.plan(&request)
        {
            break (algorithm, request.get_keep_order(), schedule);
        }
    };
    let (algorithm, keep_order, schedule) = algorithm;
    let name = if keep_order { "affine" } else { "sum" };
    let operator = Operator::<u64>::named(name).unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let expected =
        expected_outputs(schedule.collective(), schedule.layout(), &operator, &data).unwrap();
    let time = oracle::time(&schedule, false);
    let (options, _) = options::<u64>(random, team, false, time);
    let outcome = options.run(&schedule, &data, &operator).on(team).unwrap();
    assert_eq!(
        outcome.outputs,
        expected,
        "{} {options:?}",
        algorithm.name()
    );
}

/// Checks that `error` is one that a run of these programs may end with.
fn assert_run_error(error: &Error, programs: &[Vec<Step>]) {
    assert!(!error.to_string().is_empty());
    let exists = |rank: usize, step: usize| {
        assert!(step <= programs[rank].len(), "{error}");
    };
    match *error.kind() {
        ErrorKind::Wrong(_) => {}
        ErrorKind::PortBusy { rank, step, .. } => exists(rank, step),
        ErrorKind::Deadline {
            rank, step, peer, ..
        }
        | ErrorKind::Length {
            rank, step, peer, ..
        }
        | ErrorKind::PartnerLeft {
            rank, step, peer, ..
        } => {
            exists(rank, step);
            assert!(peer < programs.len(), "{error}");
        }
        _ => panic!("a run must not end with this error: {error}"),
    }
}

/// Whether `error` is the panic of an operator, on the rank itself or on a partner that helped it.
fn is_operator_panic(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Panicked { message, .. } => {
            message == OPERATOR_PANIC || message.starts_with("the operator panicked on rank")
        }
        _ => false,
    }
}

/// Whether the schedule has a step that is refused before anything runs.
fn is_refused(schedule: &Schedule) -> bool {
    let programs = schedule.programs().iter().enumerate();
    programs
        .flat_map(|(rank, program)| program.iter().map(move |step| (rank, step)))
        .any(|(rank, step)| {
            let local = step.peer().is_none();
            let overlaps = || {
                step.reads()
                    .iter()
                    .any(|r| step.writes().iter().any(|w| r.overlaps(*w)))
            };
            step.peer() == Some(rank) || (local && overlaps())
        })
}
