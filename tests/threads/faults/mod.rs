//! Faulty runs in every mode, each followed by a right one on the same team.
//!
//! A case is the life of one team: schedules and rank programs with faults, drawn from one seed. A
//! faulty run must end in time, with the data that an independent interpreter computes or with an
//! error that says what is wrong; the right run after it must end with the right data. Nothing may
//! be left of a fault but its error.
//!
//! `ONEPORT_FAULTS=N` runs N cases of each kind instead of a few, `ONEPORT_FAULTS_SEED=S` the one
//! that a failure names. `tests/sanitize.sh` runs them under sanitizers.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod programs;
mod schedules;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use oneport::plan::{Segments, registry};
use oneport::run::{
    Clock, Element, Operator, RunOptions, Team, TeamOptions, Workers, inputs, oracle as expected,
};
use oneport::simulate::Prepared;
use oneport::{CostModel, Error, ErrorKind, Ports, Request, Schedule, Step};

use crate::oracle;
use crate::support::alone::{alone, is_of_a_team};
use crate::support::plans::{self, Plan, Shape, ports};
use crate::support::random::Random;
use crate::support::watch::{Watch, number};

/// For runs that must complete, however busy the machine is.
const PATIENT: Duration = Duration::from_secs(60);
/// For runs that may never do.
const SHORT: Duration = Duration::from_millis(25);

/// What operators panic with on purpose.
const BURNT: &str = "burnt down";

/// Runs cases until enough have been run.
fn run_cases(test: &str, case: impl Fn(&mut Random)) {
    const FEW: u64 = 30;
    let _alone = alone();
    hush_ranks();
    let seeds = seeds(FEW);
    let many = seeds.end - seeds.start >= FEW;
    for seed in seeds {
        let once_more =
            format!("ONEPORT_FAULTS_SEED={seed} cargo test --test threads faults::{test}");
        let _watch = Watch::new(once_more);
        case(&mut Random::new(seed));
    }
    let ends = std::mem::take(&mut *ENDS.lock().unwrap());
    println!("{test}: faulty runs ended in {ends:?}");
    let seen = |end| ends.contains_key(end);
    assert!(!many || ["data", "Deadline", "Panicked"].into_iter().all(seen));
}

/// How often faulty runs ended in which way.
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

fn seeds(few: u64) -> Range<u64> {
    match number("ONEPORT_FAULTS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ONEPORT_FAULTS").unwrap_or(few),
    }
}

/// Ranks panic here on purpose: only what the tests themselves have to say is printed.
fn hush_ranks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            if !thread.name().is_some_and(is_of_a_team) {
                print(panic);
            }
        }));
    });
}

/// An element type with an operator that neither commutes nor associates: any other order of
/// operands shows.
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
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits")]
        let byte = (number ^ number >> 8).wrapping_mul(29) as u8;
        byte
    }

    fn join(self, right: Self) -> Self {
        self.wrapping_mul(3).wrapping_add(right.rotate_left(3))
    }
}

/// What every rank starts with.
fn starts<T: Value>(ranks: usize, len: usize) -> Vec<Vec<T>> {
    let buffers = plans::starts(ranks, len).into_iter();
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
        assert!(fuse.fetch_sub(1, Relaxed) != 0, "{BURNT}");
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

/// One of the first combinations, or one of all `n`.
fn fuse(random: &mut Random, n: usize) -> u64 {
    let most = if random.one_in(2) { n.min(20) } else { n };
    random.below(most + 1) as u64
}

/// A team in one of the modes that its life long stays the same.
fn team(random: &mut Random, workers: Workers) -> Team {
    let p = if random.one_in(3) {
        2
    } else {
        2 + random.below(11)
    };
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    // Ranks that share the only core there is never run at the same time.
    let one = cores.first().filter(|_| random.one_in(4));
    let options = TeamOptions {
        cores: one.map(|core| vec![core.id]),
        share_copies: !random.one_in(4),
        workers,
        ..TeamOptions::default()
    };
    Team::with(p, &options).unwrap()
}

/// Random programs for this team, short ones where many ranks have long buffers.
fn plan(random: &mut Random, team: &Team, ports: Ports, parts: usize) -> Plan {
    let p = team.ranks();
    let len = match random.below(8) {
        0 => 2,
        1 if p == 2 => 40_000,
        1 | 2 => 6000,
        3..=5 => 100,
        _ => 8,
    };
    let most = if len > 1000 { 3 * p } else { 12 * p };
    let shape = Shape {
        ranks: p,
        ports,
        len,
        operations: 1 + random.below(most),
        parts,
    };
    Plan::random(random, shape)
}

/// How a schedule is run: natively or paced, with or without rendezvous, traced or not. `time` is
/// what it takes at the costs of the interpreter, if it completes; the second result is how many
/// times as long it takes at these.
fn options<T>(
    random: &mut Random,
    team: &Team,
    overlap: bool,
    time: Option<f64>,
) -> (RunOptions, f64) {
    const PACED_NS: f64 = 2e6;
    let paced = team.workers() == Workers::Ranks && random.one_in(5);
    let mut scale = 1.0;
    if paced {
        // Powers of two keep sums exact.
        while time.is_some_and(|t| t > 0.0 && 2.0 * scale * t <= PACED_NS) {
            scale *= 2.0;
        }
    }
    let options = RunOptions {
        clock: if paced { Clock::Paced } else { Clock::Native },
        cost: costs::<T>(scale).overlap(overlap),
        repetitions: 1 + random.below(3),
        warmup: random.below(2),
        trace: random.one_in(4),
        eager: !random.one_in(3),
        ports: None,
    };
    (options, scale)
}

/// The interpreter's costs, for bytes instead of elements.
fn costs<T>(scale: f64) -> CostModel {
    let [alpha, beta, gamma, gamma_copy] = oracle::COSTS;
    let bytes = size_of::<T>() as f64 / scale;
    CostModel::new(alpha * scale, beta / bytes)
        .gamma(gamma / bytes)
        .gamma_copy(gamma_copy / bytes)
}

/// A right run, compared with what it must end with.
fn verify(random: &mut Random, team: &mut Team) {
    team.set_deadline(PATIENT);
    if random.one_in(3) {
        registered_algorithm(random, team);
    } else if random.one_in(2) {
        right_plan::<u8>(random, team);
    } else {
        right_plan::<u64>(random, team);
    }
    if team.workers() == Workers::Ranks && random.one_in(3) {
        programs::verify(random, team);
    }
}

fn right_plan<T: Value>(random: &mut Random, team: &mut Team) {
    let ports = ports(random);
    let plan = plan(random, team, ports, 3);
    let schedule = plan.schedule();
    let overlap = random.one_in(2);
    let data: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let time = Prepared::new(&schedule, overlap)
        .unwrap()
        .simulate(&costs::<T>(1.0).overlap(overlap), size_of::<T>() as u64)
        .time();
    let (options, scale) = options::<T>(random, team, overlap, Some(time));
    let outcome = team.run(&schedule, &data, &join(), &options).unwrap();
    assert_eq!(outcome.outputs, plan.outcome(data, T::join), "{options:?}");
    assert_eq!(outcome.model_time, scale * time, "{options:?}");
    assert_eq!(outcome.wall.len(), options.repetitions as u64);
    assert_eq!(outcome.step_times.is_some(), options.trace);
}

fn registered_algorithm(random: &mut Random, team: &mut Team) {
    let algorithm = loop {
        let algorithm = &registry::all()[random.below(registry::all().len())];
        let elements = [0, 1, 7, 100, 3000][random.below(5)];
        let mut request = Request::new(team.ranks(), elements);
        request.segments = Segments::of_count(elements, 1 + random.below(4)).unwrap();
        request.root = random.below(team.ranks());
        request.ports = ports(random);
        request.keep_order = !algorithm.commutative_only;
        if algorithm.accepts(&request).is_ok()
            && let Ok(schedule) = algorithm.plan(&request)
        {
            break (algorithm, request.keep_order, schedule);
        }
    };
    let (algorithm, keep_order, schedule) = algorithm;
    let name = if keep_order { "affine" } else { "sum" };
    let operator = Operator::<u64>::named(name).unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let wanted = expected(schedule.collective(), schedule.layout(), &operator, &data).unwrap();
    let time = oracle::time(&schedule, false);
    let (options, _) = options::<u64>(random, team, false, time);
    let outcome = team.run(&schedule, &data, &operator, &options).unwrap();
    assert_eq!(outcome.outputs, wanted, "{} {options:?}", algorithm.name);
}

/// Whether `error` is what a run with these programs may end in.
fn assert_proper(error: &Error, programs: &[Vec<Step>]) {
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
        _ => panic!("not what such a run may end in: {error}"),
    }
}

/// Whether `error` is the panic of an operator, of the rank itself or of the partner that helped
/// it.
fn is_burnt(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Panicked { message, .. } => {
            message == BURNT || message.starts_with("the operator panicked on rank")
        }
        _ => false,
    }
}

/// Whether a step is refused before anything runs.
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
