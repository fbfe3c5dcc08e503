//! Rank programs with faults: they panic, leave, return errors, sleep, forget what they opened,
//! name wrong peers and spans.

use std::time::Duration;

use oneport::run::{
    Bidirectional, Clock, Endpoint, PortModel, ScopeOptions, Team, Unidirectional, Workers,
};
use oneport::{Error, ErrorKind, Order, Span, Step};

use super::{
    PATIENT, SHORT, Value, assert_proper, costs, count, fuse, is_burnt, is_refused, join, oracle,
    panicking, plan, run_cases, sleeping, starts, team,
};
use crate::support::plans::{self, Plan, put_fault};
use crate::support::random::Random;

/// Faulty runs in the life of one team.
const RUNS: usize = 6;
/// What rank programs panic with on purpose.
const ENOUGH: &str = "enough";

#[test]
fn rank_programs() {
    run_cases("programs::rank_programs", |random| {
        let mut team = team(random, Workers::Ranks);
        for _ in 0..RUNS {
            match random.below(4) {
                0 => faulty::<u64, Unidirectional>(random, &mut team),
                1 => faulty::<u64, Bidirectional>(random, &mut team),
                2 => faulty::<u8, Unidirectional>(random, &mut team),
                _ => faulty::<u8, Bidirectional>(random, &mut team),
            }
            super::verify(random, &mut team);
            verify(random, &mut team);
        }
    });
}

/// Right rank programs, compared with what they must end with.
pub(super) fn verify(random: &mut Random, team: &mut Team) {
    if random.one_in(2) {
        right::<u64, Unidirectional>(random, team);
    } else {
        right::<u8, Bidirectional>(random, team);
    }
}

fn right<T: Value, P: Model>(random: &mut Random, team: &mut Team) {
    let plan = plan(random, team, P::PORTS, 1);
    let mut buffers: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let wanted = plan.outcome(buffers.clone(), T::join);
    let mut options = scope_options::<T>(random);
    options.record = true;
    team.set_deadline(PATIENT);
    let outcome = team
        .scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
            perform(e, &plan.programs[e.rank()], None)
        })
        .unwrap();
    assert_eq!(buffers, wanted);
    let schedule = plan.schedule();
    let recorded = outcome
        .schedule(schedule.collective().clone(), schedule.layout().to_vec())
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

/// What the two port models do differently.
trait Model: PortModel {
    /// Sends through a port that is open while the program does something else.
    fn send_openly<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error>
    where
        Self: Sized;
}

impl Model for Unidirectional {
    fn send_openly<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error> {
        e.open_send(to, span)?.wait()
    }
}

impl Model for Bidirectional {
    fn send_openly<T: Value>(
        e: &mut Endpoint<'_, T, Self>,
        to: usize,
        span: Span,
    ) -> Result<(), Error> {
        let (mut out, into) = e.split();
        let open = out.open_send(to, span)?;
        // What is being sent may be looked at.
        let sum = into.data().iter().fold(T::default(), |a, &b| a.join(b));
        std::hint::black_box(sum);
        open.wait()
    }
}

/// What one rank does wrong, at one step of its program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Panic,
    /// With a payload that is no text.
    PanicWithANumber,
    /// While a send is open, which the partner may be reading.
    PanicWhileSending,
    ReturnAnError,
    Sleep(Duration),
    /// Forgets the guard of the step's send and goes on.
    Forget,
    ForgetAndLeave,
    ForgetAndPanic,
    /// Drops the guard of the step's send at once, which waits for it.
    Drop,
    /// Sends openly, as the port model allows.
    SendOpenly,
    /// Talks to a rank that is none, and returns what that brings, or goes on.
    WrongPeer {
        ignored: bool,
    },
    /// Names a span that is none.
    WrongSpan {
        ignored: bool,
    },
    /// A local step between spans that overlap or differ in length.
    WrongLocal {
        ignored: bool,
    },
    /// Waits for all others, who do not come.
    Barrier,
    /// A message that nobody expects, or one that nobody sends.
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
            9 => Fault::SendOpenly,
            10 => Fault::WrongPeer { ignored: flag },
            11 => Fault::WrongSpan { ignored: flag },
            12 => Fault::WrongLocal { ignored: flag },
            13 => Fault::Barrier,
            _ => Fault::Unmatched { sends: flag },
        }
    }

    /// What a run with this fault alone comes to.
    fn verdict(self) -> Verdict {
        match self {
            Fault::Drop
            | Fault::SendOpenly
            | Fault::WrongPeer { ignored: true }
            | Fault::WrongSpan { ignored: true }
            | Fault::WrongLocal { ignored: true } => Verdict::Right,
            Fault::Sleep(nap) if nap < SHORT => Verdict::Right,
            // The send may end all the same, and nothing need be done after it.
            Fault::Sleep(_) | Fault::Forget | Fault::ForgetAndLeave => Verdict::Either,
            _ => Verdict::Fails,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Right,
    Either,
    Fails,
}

/// What the program does after a fault.
enum Then {
    /// The step as planned.
    Step,
    /// The fault was in place of the step.
    Skip,
    Leave,
}

fn faulty<T: Value, P: Model>(random: &mut Random, team: &mut Team) {
    let plan = plan(random, team, P::PORTS, 1);
    match random.below(6) {
        0 | 1 => wrong_programs::<T, P>(random, team, &plan),
        2 => bad_operator::<T, P>(random, team, &plan),
        _ => faults::<T, P>(random, team, &plan),
    }
}

/// One or two ranks do something that no schedule could say.
fn faults<T: Value, P: Model>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let p = team.ranks();
    let mut at: Vec<Option<(usize, Fault)>> = vec![None; p];
    let mut verdict = Verdict::Right;
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
        // They may meet after all.
        verdict = Verdict::Either;
    }
    let mut buffers: Vec<Vec<T>> = starts(p, plan.len);
    let wanted = plan.outcome(buffers.clone(), T::join);
    let options = scope_options::<T>(random);
    team.set_deadline(if verdict == Verdict::Right {
        PATIENT
    } else {
        SHORT
    });
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        let rank = e.rank();
        perform(e, &plan.programs[rank], at[rank])
    });
    let result = count(result);
    assert!(buffers.iter().all(|b| b.len() == plan.len));
    let what = || format!("{at:?} {options:?} {}", plan.schedule().to_json());
    match (&result, verdict) {
        (Ok(_), Verdict::Fails) => panic!("this cannot succeed: {}", what()),
        (Err(error), Verdict::Right) => panic!("{error}: {}", what()),
        (Ok(_), _) => {
            // Who leaves does not do what it should.
            let left = at
                .iter()
                .flatten()
                .any(|f| matches!(f.1, Fault::ForgetAndLeave | Fault::Unmatched { .. }));
            assert!(left || buffers == wanted, "wrong data: {}", what());
        }
        (Err(error), _) => assert_known(error, what),
    }
}

/// Whether this is an error that one of the faults leads to.
fn assert_known(error: &Error, what: impl Fn() -> String) {
    match error.kind() {
        ErrorKind::Panicked { message, .. } => {
            let known = [ENOUGH, "(no message)"].contains(&message.as_str());
            assert!(known, "{error}: {}", what());
        }
        ErrorKind::System(_) => panic!("{error}: {}", what()),
        _ => assert!(!error.to_string().is_empty()),
    }
}

/// Steps that a schedule could say, but not a right one.
fn wrong_programs<T: Value, P: Model>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let mut programs = plan.programs.clone();
    let names: Vec<_> = (0..1 + random.below(2))
        .map(|_| put_fault(random, &mut programs, plan.len, true))
        .collect();
    let schedule = plans::schedule(P::PORTS, plan.len, programs);
    let mut buffers: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let options = scope_options::<T>(random);
    let wanted = if is_refused(&schedule) {
        None
    } else {
        oracle::execute(&schedule, options.cost.overlap, T::join, buffers.clone())
    };
    // With two ports, a receive holds up the sends behind it, which a schedule's would not.
    let must = wanted.is_some() && !P::PORTS.is_bidirectional();
    team.set_deadline(if must { PATIENT } else { SHORT });
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        perform(e, &schedule.programs()[e.rank()], None)
    });
    let what = || format!("{names:?} {options:?} {}", schedule.to_json());
    match (count(result), wanted) {
        (Ok(_), Some((wanted, _))) => assert!(buffers == wanted, "wrong data: {}", what()),
        (Ok(_), None) => panic!("this cannot complete: {}", what()),
        (Err(error), _) => {
            assert!(!must, "{error}: {}", what());
            if !error.is_usage() {
                assert_proper(&error, schedule.programs());
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
    let mut buffers: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let wanted = plan.outcome(buffers.clone(), T::join);
    team.set_deadline(if panics { PATIENT } else { SHORT });
    let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<'_, T, P>| {
        perform(e, &plan.programs[e.rank()], None)
    });
    match count(result) {
        Ok(_) => assert_eq!(buffers, wanted),
        Err(error) if panics => assert!(is_burnt(&error), "{error}"),
        Err(error) => assert_proper(&error, &plan.programs),
    }
}

/// Does the steps one after another, and the fault before the step that it names.
fn perform<T: Value, P: Model>(
    e: &mut Endpoint<'_, T, P>,
    steps: &[Step],
    fault: Option<(usize, Fault)>,
) -> Result<(), Error> {
    for i in 0..=steps.len() {
        let step = steps.get(i);
        let then = match fault {
            Some((at, fault)) if at == i => commit(e, fault, step)?,
            _ => Then::Step,
        };
        match (then, step) {
            (Then::Step, Some(step)) => take(e, step)?,
            (Then::Leave, _) => return Ok(()),
            (Then::Step | Then::Skip, _) => {}
        }
    }
    Ok(())
}

fn take<T: Value, P: Model>(e: &mut Endpoint<'_, T, P>, step: &Step) -> Result<(), Error> {
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

/// Does something wrong before `step`, or in its place.
fn commit<T: Value, P: Model>(
    e: &mut Endpoint<'_, T, P>,
    fault: Fault,
    step: Option<&Step>,
) -> Result<Then, Error> {
    let (me, p, len) = (e.rank(), e.ranks(), e.data().len());
    let next = (me + 1) % p;
    // The send that the step is, or one that nobody expects.
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
        Fault::Panic => panic!("{ENOUGH}"),
        Fault::PanicWithANumber => std::panic::panic_any(42),
        Fault::PanicWhileSending => {
            let _open = e.open_send(any.0, any.1)?;
            panic!("{ENOUGH}");
        }
        Fault::ReturnAnError => Err(Team::new(0).expect_err("no rank")),
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
            panic!("{ENOUGH}");
        }
        Fault::Drop | Fault::SendOpenly => match send {
            Some((to, span)) => {
                if fault == Fault::Drop {
                    drop(e.open_send(to, span)?);
                } else {
                    P::send_openly(e, to, span)?;
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
