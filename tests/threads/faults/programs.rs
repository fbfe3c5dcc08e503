//! Tests of rank programs with faults: programs that panic, return early, return errors, sleep,
//! forget open sends, or name wrong peers and spans.

use std::time::Duration;

use oneport::run::{
    Bidirectional, Clock, Endpoint, PortModel, ScopeOptions, Team, Unidirectional, Workers,
};
use oneport::{Error, ErrorKind, Order, Span, Step};

use super::{
    LONG_DEADLINE, SHORT_DEADLINE, Value, assert_run_error, costs, count, fuse, initial_buffers,
    is_operator_panic, is_refused, join, oracle, panicking, plan, run_cases, sleeping, team,
};
use crate::support::plans::{self, Plan, insert_fault};
use crate::support::random::Random;

/// Number of faulty runs per team.
const RUNS: usize = 6;
/// Message of the panics that rank programs cause on purpose.
const PROGRAM_PANIC: &str = "enough";

#[test]
fn faulty_rank_programs_leave_the_team_usable() {
    run_cases(
        "programs::faulty_rank_programs_leave_the_team_usable",
        |random| {
            let mut team = team(random, Workers::Ranks);
            for _ in 0..RUNS {
                match random.below(4) {
                    0 => faulty_run::<u64, Unidirectional>(random, &mut team),
                    1 => faulty_run::<u64, Bidirectional>(random, &mut team),
                    2 => faulty_run::<u8, Unidirectional>(random, &mut team),
                    _ => faulty_run::<u8, Bidirectional>(random, &mut team),
                }
                super::verify(random, &mut team);
                verify(random, &mut team);
            }
        },
    );
}

/// Checks the results of correct rank programs.
pub(super) fn verify(random: &mut Random, team: &mut Team) {
    if random.one_in(2) {
        correct_programs::<u64, Unidirectional>(random, team);
    } else {
        correct_programs::<u8, Bidirectional>(random, team);
    }
}

fn correct_programs<T: Value, P: Model>(random: &mut Random, team: &mut Team) {
    let plan = plan(random, team, P::PORTS, 1);
    let mut buffers: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let expected = plan.outcome(buffers.clone(), T::join);
    let mut options = scope_options::<T>(random);
    options.record = true;
    options.deadline = LONG_DEADLINE;
    let outcome = team
        .scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
            perform(e, &plan.programs[e.rank()], None)
        })
        .unwrap();
    assert_eq!(buffers, expected);
    let schedule = plan.schedule();
    let recorded = outcome
        .schedule(schedule.collective(), schedule.layout())
        .unwrap();
    assert_eq!(recorded, schedule);
}

fn scope_options<T: Value>(random: &mut Random) -> ScopeOptions<T> {
    let mut options = ScopeOptions::new(join());
    options.cost = costs::<T>(1.0).overlap(random.one_in(2));
    options.record = random.one_in(3);
    if random.one_in(5) {
        options.clock = Clock::Paced;
    }
    options
}

/// The operations that differ between the two port models.
trait Model: PortModel {
    /// Sends with a guard. Reads the buffer meanwhile, if the port model allows that.
    fn send_with_guard<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error>
    where
        Self: Sized;
}

impl Model for Unidirectional {
    fn send_with_guard<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error> {
        e.open_send(to, span)?.wait()
    }
}

impl Model for Bidirectional {
    fn send_with_guard<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error> {
        let (mut out, into) = e.split();
        let open = out.open_send(to, span)?;
        // The span may be read during the send.
        let sum = into.data().iter().fold(T::test_value(0), |a, &b| a.join(b));
        std::hint::black_box(sum);
        open.wait()
    }
}

/// A fault of one rank, at one step of its program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Panic,
    /// With a payload that is not text.
    PanicWithANumber,
    /// During a send, while the partner may be reading the span.
    PanicWhileSending,
    ReturnAnError,
    Sleep(Duration),
    /// Forgets the guard of the step's send, and continues.
    Forget,
    ForgetAndLeave,
    ForgetAndPanic,
    /// Drops the guard of the step's send at once, which waits for the send. Not a fault.
    Drop,
    /// Uses the guard as the port model allows. Not a fault.
    SendWithGuard,
    /// Names its own rank or one that does not exist. Returns the error, or ignores it.
    WrongPeer {
        ignored: bool,
    },
    /// Names a span outside the buffer.
    WrongSpan {
        ignored: bool,
    },
    /// Copies or combines between spans that overlap, differ in length, or leave the buffer.
    WrongLocal {
        ignored: bool,
    },
    /// Waits at a barrier that the other ranks do not reach.
    Barrier,
    /// Sends a message that no rank receives, or receives one that no rank sends.
    Unmatched {
        sends: bool,
    },
}

impl Fault {
    fn random(random: &mut Random) -> Fault {
        let flag = random.one_in(2);
        match random.below(15) {
            0 => Fault::Panic,
            1 => Fault::PanicWithANumber,
            2 => Fault::PanicWhileSending,
            3 => Fault::ReturnAnError,
            4 => Fault::Sleep(Duration::from_millis(*random.pick(&[1, 5, 40]))),
            5 => Fault::Forget,
            6 => Fault::ForgetAndLeave,
            7 => Fault::ForgetAndPanic,
            8 => Fault::Drop,
            9 => Fault::SendWithGuard,
            10 => Fault::WrongPeer { ignored: flag },
            11 => Fault::WrongSpan { ignored: flag },
            12 => Fault::WrongLocal { ignored: flag },
            13 => Fault::Barrier,
            _ => Fault::Unmatched { sends: flag },
        }
    }

    /// How a run with only this fault may end.
    fn verdict(self) -> Verdict {
        match self {
            Fault::Drop
            | Fault::SendWithGuard
            | Fault::WrongPeer { ignored: true }
            | Fault::WrongSpan { ignored: true }
            | Fault::WrongLocal { ignored: true } => Verdict::Succeeds,
            Fault::Sleep(nap) if nap < SHORT_DEADLINE => Verdict::Succeeds,
            // The run succeeds if the send completes and nothing later depends on the fault.
            Fault::Sleep(_) | Fault::Forget | Fault::ForgetAndLeave => Verdict::Either,
            _ => Verdict::Fails,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Succeeds,
    Either,
    Fails,
}

/// What the program does after a fault.
enum Then {
    /// Performs the step as planned.
    Step,
    /// Skips the step, because the fault replaces it.
    Skip,
    /// Returns early.
    Leave,
}

fn faulty_run<T: Value, P: Model>(random: &mut Random, team: &mut Team) {
    let plan = plan(random, team, P::PORTS, 1);
    match random.below(6) {
        0 | 1 => wrong_programs::<T, P>(random, team, &plan),
        2 => bad_operator::<T, P>(random, team, &plan),
        _ => faults::<T, P>(random, team, &plan),
    }
}

/// Programs in which one or two ranks have a fault that no schedule can express.
fn faults<T: Value, P: Model>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let p = team.ranks();
    let mut at: Vec<Option<(usize, Fault)>> = vec![None; p];
    let mut verdict = Verdict::Succeeds;
    for _ in 0..1 + random.below(2) {
        let rank = random.below(p);
        let step = random.below(plan.programs[rank].len() + 1);
        at[rank] = Some((step, Fault::random(random)));
    }
    for (_, fault) in at.iter().flatten() {
        verdict = verdict.max(fault.verdict());
    }
    let barriers = at.iter().flatten().filter(|f| f.1 == Fault::Barrier);
    let unmatched = at
        .iter()
        .flatten()
        .filter(|f| matches!(f.1, Fault::Unmatched { .. }));
    if barriers.count() == p || unmatched.count() == 2 {
        // The faults may match each other.
        verdict = Verdict::Either;
    }
    let mut buffers: Vec<Vec<T>> = initial_buffers(p, plan.len);
    let expected = plan.outcome(buffers.clone(), T::join);
    let mut options = scope_options::<T>(random);
    options.deadline = if verdict == Verdict::Succeeds {
        LONG_DEADLINE
    } else {
        SHORT_DEADLINE
    };
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        let rank = e.rank();
        perform(e, &plan.programs[rank], at[rank])
    });
    let result = count(result);
    assert!(buffers.iter().all(|b| b.len() == plan.len));
    let what = || format!("{at:?} {options:?} {}", plan.schedule().to_json());
    match (&result, verdict) {
        (Ok(_), Verdict::Fails) => panic!("this cannot succeed: {}", what()),
        (Err(error), Verdict::Succeeds) => panic!("{error}: {}", what()),
        (Ok(_), _) => {
            // A missing or an unmatched message changes the data.
            let data_may_differ = at
                .iter()
                .flatten()
                .any(|f| matches!(f.1, Fault::ForgetAndLeave | Fault::Unmatched { .. }));
            assert!(
                data_may_differ || buffers == expected,
                "wrong data: {}",
                what()
            );
        }
        (Err(error), _) => assert_fault_error(error, what),
    }
}

/// Checks that `error` is one that a fault may cause.
fn assert_fault_error(error: &Error, what: impl Fn() -> String) {
    match error.kind() {
        ErrorKind::Panicked { message, .. } => {
            let known = [PROGRAM_PANIC, "(no message)"].contains(&message.as_str());
            assert!(known, "{error}: {}", what());
        }
        ErrorKind::System(_) => panic!("{error}: {}", what()),
        _ => assert!(!error.to_string().is_empty()),
    }
}

/// Programs with faults that a schedule can express.
fn wrong_programs<T: Value, P: Model>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let mut programs = plan.programs.clone();
    let names: Vec<_> = (0..1 + random.below(2))
        .map(|_| insert_fault(random, &mut programs, plan.len, true))
        .collect();
    let schedule = plans::schedule(P::PORTS, plan.len, programs);
    let mut buffers: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let mut options = scope_options::<T>(random);
    let expected = if is_refused(&schedule) {
        None
    } else {
        oracle::execute(&schedule, options.cost.overlaps(), T::join, buffers.clone())
    };
    // With two ports, a receive delays the sends after it, unlike in a schedule.
    let must_succeed = expected.is_some() && !P::PORTS.can_relay();
    options.deadline = if must_succeed {
        LONG_DEADLINE
    } else {
        SHORT_DEADLINE
    };
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        perform(e, &schedule.programs()[e.rank()], None)
    });
    let what = || format!("{names:?} {options:?} {}", schedule.to_json());
    match (count(result), expected) {
        (Ok(_), Some((expected, _))) => assert!(buffers == expected, "wrong data: {}", what()),
        (Ok(_), None) => panic!("this cannot complete: {}", what()),
        (Err(error), _) => {
            assert!(!must_succeed, "{error}: {}", what());
            if !error.is_usage() {
                assert_run_error(&error, schedule.programs());
            }
        }
    }
}

fn bad_operator<T: Value, P: Model>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let fuse = fuse(random, plan.combinations());
    let mut options = scope_options::<T>(random);
    let panics = random.one_in(2);
    options.operator = if panics {
        panicking(fuse)
    } else {
        sleeping(fuse, Duration::from_millis(40))
    };
    let mut buffers: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let expected = plan.outcome(buffers.clone(), T::join);
    options.deadline = if panics {
        LONG_DEADLINE
    } else {
        SHORT_DEADLINE
    };
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        perform(e, &plan.programs[e.rank()], None)
    });
    match count(result) {
        Ok(_) => assert_eq!(buffers, expected),
        Err(error) if panics => assert!(is_operator_panic(&error), "{error}"),
        Err(error) => assert_run_error(&error, &plan.programs),
    }
}

/// Performs the steps in order, and the fault before its step or instead of it.
fn perform<T: Value, P: Model>(
    e: &mut Endpoint<'_, T, P>,
    steps: &[Step],
    fault: Option<(usize, Fault)>,
) -> Result<(), Error> {
    for i in 0..=steps.len() {
        let step = steps.get(i);
        let then = match fault {
            Some((at, fault)) if at == i => perform_fault(e, fault, step)?,
            _ => Then::Step,
        };
        match (then, step) {
            (Then::Step, Some(step)) => perform_step(e, step)?,
            (Then::Leave, _) => return Ok(()),
            (Then::Step | Then::Skip, _) => {}
        }
    }
    Ok(())
}

fn perform_step<T: Value, P: Model>(e: &mut Endpoint<'_, T, P>, step: &Step) -> Result<(), Error> {
    match step {
        Step::Send { to, spans, .. } => e.send(*to, spans[0]),
        Step::Recv { from, spans, .. } => e.recv(*from, spans[0]),
        Step::RecvCombine {
            from, spans, order, ..
        } => e.recv_combine(*from, spans[0], *order),
        Step::Copy { src, dst } => e.copy(src[0], dst[0]),
        Step::Combine { src, dst, order } => e.combine(src[0], dst[0], *order),
    }
}

/// Performs a fault before `step` or instead of it.
fn perform_fault<T: Value, P: Model>(
    e: &mut Endpoint<'_, T, P>,
    fault: Fault,
    step: Option<&Step>,
) -> Result<Then, Error> {
    let (me, p, len) = (e.rank(), e.ranks(), e.data().len());
    let next = (me + 1) % p;
    // The step's own send, or one that no rank expects.
    let send = match step {
        Some(Step::Send { to, spans, .. }) => Some((*to, spans[0])),
        _ => None,
    };
    let any = send.unwrap_or((next, Span::new(0, len / 2)));
    let unless_ignored = |result: Result<(), Error>, ignored: bool| {
        let error = result.expect_err("a wrong call is refused");
        assert!(error.is_usage(), "{error}");
        if ignored { Ok(Then::Step) } else { Err(error) }
    };
    match fault {
        Fault::Panic => panic!("{PROGRAM_PANIC}"),
        Fault::PanicWithANumber => std::panic::panic_any(42),
        Fault::PanicWhileSending => {
            let _open = e.open_send(any.0, any.1)?;
            panic!("{PROGRAM_PANIC}");
        }
        Fault::ReturnAnError => Err(Team::new(0).expect_err("a team needs a rank")),
        Fault::Sleep(nap) => {
            std::thread::sleep(nap);
            Ok(Then::Step)
        }
        Fault::Forget => match send {
            Some((to, span)) => {
                std::mem::forget(e.open_send(to, span)?);
                Ok(Then::Skip)
            }
            None => Ok(Then::Step),
        },
        Fault::ForgetAndLeave => {
            std::mem::forget(e.open_send(any.0, any.1)?);
            Ok(Then::Leave)
        }
        Fault::ForgetAndPanic => {
            std::mem::forget(e.open_send(any.0, any.1)?);
            panic!("{PROGRAM_PANIC}");
        }
        Fault::Drop | Fault::SendWithGuard => match send {
            Some((to, span)) => {
                if fault == Fault::Drop {
                    drop(e.open_send(to, span)?);
                } else {
                    P::send_with_guard(e, to, span)?;
                }
                Ok(Then::Skip)
            }
            None => Ok(Then::Step),
        },
        Fault::WrongPeer { ignored } => {
            let span = Span::new(0, len / 2);
            let results = [
                e.send(p, span),
                e.recv(me, span),
                e.recv_combine(usize::MAX, span, Order::TheirsFirst),
                e.open_send(me, span).map(drop),
            ];
            for result in results {
                unless_ignored(result, ignored)?;
            }
            Ok(Then::Step)
        }
        Fault::WrongSpan { ignored } => {
            let results = [
                e.send(next, Span::new(len, 1)),
                e.recv(next, Span::new(usize::MAX, 1)),
                e.recv_combine(next, Span::new(1, usize::MAX), Order::MineFirst),
                e.open_send(next, Span::new(0, len + 1)).map(drop),
            ];
            for result in results {
                unless_ignored(result, ignored)?;
            }
            Ok(Then::Step)
        }
        Fault::WrongLocal { ignored } => {
            let results = [
                e.copy(Span::new(0, 1), Span::new(0, 1)),
                e.copy(Span::new(0, 1), Span::new(1, 0)),
                e.combine(Span::new(0, len), Span::new(len, len), Order::MineFirst),
            ];
            for result in results {
                unless_ignored(result, ignored)?;
            }
            Ok(Then::Step)
        }
        Fault::Barrier => e.barrier().map(|()| Then::Step),
        Fault::Unmatched { sends: true } => e.send(next, Span::new(0, 1)).map(|()| Then::Step),
        Fault::Unmatched { sends: false } => e.recv(next, Span::new(0, 0)).map(|()| Then::Step),
    }
}
