//! Tests of rank programs written by hand: their data, their model clock compared with that of the
//! recorded schedule, and errors on misuse.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use oneport::run::{
    Bidirectional, Clock, Endpoint, Operator, Run, ScopeOptions, Team, Unidirectional,
};
use oneport::{Collective, CostModel, Error, ErrorKind, Layout, Order, Schedule, Span, Spans};
use proptest::prelude::*;

use crate::support::alone::shared;

fn options(overlap: bool) -> ScopeOptions<i64> {
    let mut options = ScopeOptions::new(Operator::named("sum").unwrap());
    options.cost = CostModel::new(3.7, 0.21)
        .gamma(0.13)
        .gamma_copy(0.07)
        .overlap(overlap);
    options.record = true;
    options
}

fn layouts(p: usize, len: usize) -> Vec<Layout> {
    let layout = Layout {
        len,
        input: Span::new(0, len).into(),
        output: Span::new(0, 0).into(),
    };
    vec![layout; p]
}

#[test]
fn a_ring_that_sends_first_matches_its_recorded_schedule() {
    let _shared = shared();
    for p in [2, 3, 5, 8] {
        let mut team = Team::new(p).unwrap();
        for overlap in [false, true] {
            let mut buffers: Vec<Vec<i64>> = (0..p).map(|r| vec![r as i64; 10 * p]).collect();
            let outcome = team
                .scope(&mut buffers, &options(overlap), |e: &mut Endpoint<i64>| {
                    let (r, p) = (e.rank(), e.ranks());
                    for k in 0..p - 1 {
                        let (sent, received) = ((r + p - k) % p, (r + 2 * p - k - 1) % p);
                        e.send((r + 1) % p, 10 * sent..10 * sent + 10)?;
                        e.recv((r + p - 1) % p, 10 * received..10 * received + 10)?;
                    }
                    Ok(())
                })
                .unwrap();
            for b in &buffers {
                assert!(b.chunks(10).enumerate().all(|(i, c)| c == [i as i64; 10]));
            }
            let times = outcome.rank_times.clone();
            let schedule = outcome
                .schedule(&Collective::Allgather, &layouts(p, 10 * p))
                .unwrap();
            assert_eq!(
                times,
                schedule
                    .simulate(&options(overlap).cost)
                    .unwrap()
                    .rank_times()
            );
        }
    }
}

/// One message of many spans, in any order: short ones, and those that both partners copy.
#[test]
fn messages_of_several_spans_match_their_recorded_schedule() {
    let _shared = shared();
    let mut team = Team::new(3).unwrap();
    for len in [0, 1, 3, 1000] {
        let all = 24 * len;
        // Every second of 24 parts, from the last one to the first.
        let parts = |odd: usize| -> Spans {
            let part = |i: usize| Span::new((2 * i + odd) * len, len);
            (0..12).rev().map(part).collect()
        };
        for overlap in [false, true] {
            let mut buffers: Vec<Vec<i64>> =
                (0..3i64).map(|r| (r..r + all as i64).collect()).collect();
            let before = buffers.clone();
            let program = |e: &mut Endpoint<i64, Bidirectional>| {
                let (next, last) = ((e.rank() + 1) % 3, (e.rank() + 2) % 3);
                let open = e.send(next, parts(0));
                open.and(e.recv(last, parts(1)))?;
                e.send(last, parts(1))?;
                e.recv_combine(next, parts(0), Order::MineFirst)?;
                let (mut out, mut into) = e.split();
                let open = out.open_send(next, [0..len, 2 * len..3 * len])?;
                into.recv(last, [len..2 * len, 3 * len..4 * len])?;
                open.wait()?;
                e.copy([8 * len..9 * len, 10 * len..11 * len], 2 * len..4 * len)
            };
            let outcome = team
                .scope(&mut buffers, &options(overlap), program)
                .unwrap();
            let times = outcome.rank_times.clone();
            let schedule = outcome
                .schedule(&Collective::Allreduce, &layouts(3, all))
                .unwrap();
            let simulated = schedule.simulate(&options(overlap).cost).unwrap();
            assert_eq!(times, simulated.rank_times());
            for (rank, buffer) in buffers.iter().enumerate().filter(|_| len > 0) {
                // The message came back: the even parts of the rank before, to add to its own.
                let (own, last) = (&before[rank], &before[(rank + 2) % 3]);
                assert_eq!(buffer[5 * len], last[4 * len], "part 5 of rank {rank}");
                assert_eq!(buffer[4 * len], 2 * own[4 * len], "part 4 of rank {rank}");
            }
        }
    }
}

/// What each pair of ranks does in one round of a random program.
#[derive(Debug, Clone, Copy)]
enum Action {
    Send,
    Combine,
    Exchange,
    Local,
}

fn action() -> impl Strategy<Value = (Action, usize, usize, usize)> {
    (
        prop_oneof![
            Just(Action::Send),
            Just(Action::Combine),
            Just(Action::Exchange),
            Just(Action::Local)
        ],
        1..4usize,
        0..12usize,
        1..8usize,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn the_model_clock_of_a_program_matches_its_recorded_schedule(
        actions in proptest::collection::vec(action(), 1..25),
        overlap: bool,
    ) {
        let _shared = shared();
        let p = 4;
        let mut team = Team::new(p).unwrap();
        let run = |team: &mut Team| {
            let mut buffers = vec![vec![1i64; 24]; p];
            let outcome = team
                .scope(
                    &mut buffers,
                    &options(overlap),
                    |e: &mut Endpoint<i64, Bidirectional>| {
                        for &(action, distance, offset, len) in &actions {
                            // Partners at an exclusive-or distance: every rank has one.
                            let (me, peer) = (e.rank(), e.rank() ^ distance);
                            let (a, b) = (offset..offset + len, 23 - offset - len..23 - offset);
                            let overlaps = Span::from(a.clone()).overlaps(b.clone().into());
                            let order = Order::MineFirst;
                            match action {
                                Action::Send if me < peer => e.send(peer, a)?,
                                Action::Send => e.recv(peer, b)?,
                                Action::Combine if me < peer => e.recv_combine(peer, a, order)?,
                                Action::Combine => e.send(peer, b)?,
                                Action::Exchange if overlaps => {}
                                Action::Exchange => {
                                    e.send(peer, a)?;
                                    e.recv(peer, b)?;
                                }
                                Action::Local if overlaps => {}
                                Action::Local if distance == 1 => e.copy(a, b)?,
                                Action::Local => e.combine(a, b, order)?,
                            }
                        }
                        Ok(())
                    },
                )
                .unwrap();
            (outcome, buffers)
        };
        let (outcome, buffers) = run(&mut team);
        let (again, same) = run(&mut team);
        prop_assert_eq!(&outcome.rank_times, &again.rank_times);
        prop_assert_eq!(buffers, same);
        let times = outcome.rank_times.clone();
        let schedule = outcome.schedule(&Collective::Allreduce, &layouts(p, 24)).unwrap();
        prop_assert_eq!(times, schedule.simulate(&options(overlap).cost).unwrap().rank_times());
    }
}

/// Runs a program that must fail before its deadline, and returns the kind of its error.
fn fails(
    team: &mut Team,
    body: impl Fn(&mut Endpoint<i64, Unidirectional>) -> Result<(), Error> + Sync,
) -> ErrorKind {
    // However busy the machine is, and however long it takes to print a backtrace.
    fails_with(team, Duration::from_secs(60), body)
}

/// Runs a program that must fail, at its deadline at the latest.
fn fails_with(
    team: &mut Team,
    deadline: Duration,
    body: impl Fn(&mut Endpoint<i64, Unidirectional>) -> Result<(), Error> + Sync,
) -> ErrorKind {
    let mut buffers = vec![vec![0i64; 100]; team.ranks()];
    let mut options = ScopeOptions::new(Operator::named("sum").unwrap());
    options.deadline = deadline;
    let error = team.scope(&mut buffers, &options, body);
    let error = error.map(drop).unwrap_err();
    // The team stays usable.
    let next = team
        .scope(
            &mut buffers,
            &ScopeOptions::new(Operator::named("sum").unwrap()),
            |e: &mut Endpoint<i64, Unidirectional>| {
                e.barrier()?;
                Ok(e.rank())
            },
        )
        .unwrap();
    assert_eq!(next.results, (0..team.ranks()).collect::<Vec<_>>());
    error.kind().clone()
}

/// A deadline says what its partner waited for: round a cycle, or to the rank that did not wait.
#[test]
fn a_deadline_tells_who_waited_for_whom() {
    let _shared = shared();
    let mut team = Team::new(4).unwrap();
    let soon = Duration::from_millis(300);
    let chain = |kind: ErrorKind| match kind {
        ErrorKind::Deadline { rank, chain, .. } => (rank, chain),
        other => panic!("{other:?}"),
    };
    // Each waits for the next one.
    let cycle = fails_with(&mut team, soon, |e| e.recv((e.rank() + 1) % 4, 0..50));
    let (first, found) = chain(cycle);
    let link = |i: usize| {
        format!(
            "; rank {}, step 0 for rank {} (recv)",
            (first + i) % 4,
            (first + i + 1) % 4
        )
    };
    assert_eq!(found, link(1) + &link(2) + &link(3) + ": a cycle");
    // Rank 0 is busy; the others wait for the one before.
    let busy = fails_with(&mut team, soon, |e| match e.rank() {
        0 => {
            std::thread::sleep(3 * soon);
            e.send(1, 0..50)
        }
        rank => e.recv(rank - 1, 0..50),
    });
    let (first, found) = chain(busy);
    let links = (1..first)
        .rev()
        .map(|rank| format!("; rank {rank}, step 0 for rank {} (recv)", rank - 1));
    assert_eq!(
        found,
        links.collect::<String>() + "; rank 0 waits for no other"
    );
}

#[test]
fn misuse_is_an_error_and_the_team_stays_usable() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let kind = fails(&mut team, |e| {
        let peer = 1 - e.rank();
        e.send(peer, 0..50)?;
        e.recv(peer, 50..100)
    });
    assert!(
        matches!(
            kind,
            ErrorKind::PortBusy {
                port: 0,
                step: 1,
                ..
            }
        ),
        "{kind:?}"
    );

    let soon = Duration::from_millis(200);
    let kind = fails_with(&mut team, soon, |e| e.recv(1 - e.rank(), 0..50));
    assert!(
        matches!(
            kind,
            ErrorKind::Deadline {
                step: 0,
                what: "recv",
                ..
            }
        ),
        "{kind:?}"
    );

    let kind = fails(&mut team, |e| {
        if e.rank() == 0 {
            e.send(1, 0..50)
        } else {
            Ok(())
        }
    });
    assert!(
        matches!(
            kind,
            ErrorKind::PartnerLeft {
                rank: 0,
                step: 0,
                peer: 1,
                ..
            }
        ),
        "{kind:?}"
    );

    let kind = fails(&mut team, |e| {
        if e.rank() == 0 {
            std::mem::forget(e.open_send(1, 0..50)?);
            e.send(1, 50..60)
        } else {
            e.recv(0, 0..50)?;
            e.recv(0, 50..60)
        }
    });
    assert!(
        matches!(
            kind,
            ErrorKind::PortBusy {
                rank: 0,
                port: 0,
                step: 1
            }
        ),
        "{kind:?}"
    );

    let kind = fails(&mut team, |e| {
        if e.rank() == 0 {
            let _open = e.open_send(1, 0..50)?;
            panic!("enough");
        }
        e.barrier()
    });
    assert!(
        matches!(&kind, ErrorKind::Panicked { rank: 0, step: 1, message } if message == "enough"),
        "{kind:?}"
    );

    // Bad usage names the step that the operation would have been.
    let refused = |team: &mut Team, misuse: fn(&mut Endpoint<i64, Unidirectional>) -> _| {
        let kind = fails(team, |e| {
            if e.rank() == 1 {
                return e.recv(0, 0..50);
            }
            e.send(1, 0..50)?;
            misuse(e)
        });
        let ErrorKind::Usage(text) = kind else {
            panic!("{kind:?}");
        };
        text
    };
    assert_eq!(
        refused(&mut team, |e| e.send(7, 0..1)),
        "rank 0, step 1: peer 7 is not another of 2 ranks"
    );
    assert_eq!(
        refused(&mut team, |e| e.send(1, 90..101)),
        "rank 0, step 1: span [90, 11] leaves the buffer of 100 elements"
    );
    assert_eq!(
        refused(&mut team, |e| e.copy(0..2, 1..3)),
        "rank 0, step 1: source [0, 2] and destination [1, 2] overlap or differ in length"
    );
}

/// Whoever combines, the step that is named is the one whose data were being combined, as in a run
/// of the recorded schedule.
#[test]
fn a_panic_names_the_step_that_combined() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let picky = || {
        Operator::<i64>::new("picky", true, |a, b| {
            assert!(a + b < 10, "too much");
            a + b
        })
    };
    let mut panics_at = |program: fn(&mut Endpoint<i64>) -> oneport::Result<()>| {
        let options = ScopeOptions::new(picky());
        let mut buffers = vec![vec![1, 1, 1, 1], vec![2, 2, 30, 30]];
        let error = team.scope(&mut buffers, &options, program).unwrap_err();
        let ErrorKind::Panicked { rank, step, .. } = *error.kind() else {
            panic!("{error}");
        };
        (rank, step)
    };
    let twice = |e: &mut Endpoint<i64>| {
        for half in [0..2, 2..4] {
            match e.rank() {
                0 => e.recv_combine(1, half, Order::MineFirst)?,
                _ => e.send(0, half)?,
            }
        }
        Ok(())
    };
    assert_eq!(panics_at(twice), (0, 1));
    let locally = |e: &mut Endpoint<i64>| match e.rank() {
        0 => e.send(1, 0..2),
        _ => {
            e.recv(0, 0..2)?;
            e.combine(2..3, 0..1, Order::MineFirst)?;
            e.copy(0..1, 1..2)
        }
    };
    assert_eq!(panics_at(locally), (1, 1));
    // Its own panic between two steps is in the next one.
    let between = |e: &mut Endpoint<i64>| {
        if e.rank() == 0 {
            e.copy(0..1, 1..2)?;
            panic!("enough");
        }
        e.barrier()
    };
    assert_eq!(panics_at(between), (0, 1));

    let mut b = Schedule::reduce(2, 4);
    for half in [0..2, 2..4] {
        b.transfer_combine(1, 0, half, Order::MineFirst);
    }
    let schedule = b.build().unwrap();
    let inputs = [vec![1, 1, 1, 1], vec![2, 2, 30, 30]];
    let run = Run::new(&schedule).op(picky()).inputs(&inputs);
    let error = run.on(&mut team).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Panicked {
                rank: 0,
                step: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_failed_endpoint_stays_failed() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let kind = fails(&mut team, |e| {
        if e.rank() == 0 {
            let first = e.send(1, 0..50);
            let second = e.data_mut().map(drop);
            assert!(first.is_err() && second.is_err());
            return first;
        }
        e.recv(0, 0..49)
    });
    assert!(
        matches!(
            kind,
            ErrorKind::Length {
                expected: 49,
                found: 50,
                ..
            }
        ),
        "{kind:?}"
    );
}

#[test]
fn paced_programs_take_at_least_their_model_time() {
    let _shared = shared();
    let mut team = Team::new(3).unwrap();
    let mut options = options(false);
    options.cost = CostModel::new(3e6, 0.0);
    options.clock = Clock::Paced;
    let start = std::time::Instant::now();
    let outcome = team
        .scope(
            &mut vec![vec![0i64; 8]; 3],
            &options,
            |e: &mut Endpoint<i64, Unidirectional>| match e.rank() {
                0 => e.send(1, 0..8),
                1 => {
                    e.recv(0, 0..8)?;
                    e.send(2, 0..8)
                }
                _ => e.recv(1, 0..8),
            },
        )
        .unwrap();
    assert_eq!(outcome.model_time(), 6e6);
    assert!(start.elapsed() >= Duration::from_millis(6));
}

/// The receive fails whichever side combines, even if the sender's program catches the panic and
/// continues. Wrong data never counts as received.
#[test]
fn an_operator_that_panics_on_the_sender_fails_the_receive() {
    let _shared = shared();
    let len = 1 << 16;
    let mut team = Team::new(2).unwrap();
    for round in 0..20u64 {
        // Panics only on the sender's thread, which helps to combine.
        let operator = Operator::<u64>::new("picky", true, |a, b| {
            let sender = std::thread::current().name() == Some("rank 0");
            assert!(!sender, "not here");
            a + b
        });
        let options = ScopeOptions::new(operator);
        let mut buffers = vec![vec![round; len], vec![1; len]];
        let result = team.scope(&mut buffers, &options, |e: &mut Endpoint<u64>| {
            if e.rank() == 0 {
                let send = std::panic::AssertUnwindSafe(|| {
                    e.send(1, 0..len)?;
                    e.model_time().map(|_| ())
                });
                // The program hides the panic.
                if let Ok(sent) = std::panic::catch_unwind(send) {
                    sent?;
                }
                Ok(())
            } else {
                e.recv_combine(0, 0..len, Order::MineFirst)
            }
        });
        match result {
            // The receiver combined everything before the sender could help.
            Ok(_) => assert!(buffers[1].iter().all(|&x| x == round + 1)),
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::Panicked {
                        rank: 1,
                        step: 0,
                        ..
                    }
                ),
                "{error}"
            ),
        }
    }
}

#[test]
fn the_buffer_can_be_read_while_the_other_port_sends() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let mut buffers = vec![vec![7i64; 100]; 2];
    team.scope(&mut buffers, &options(false), |e: &mut Endpoint<i64>| {
        let peer = 1 - e.rank();
        let (mut out, mut into) = e.split();
        let data = into.data();
        let open = out.open_send(peer, 0..50)?;
        assert_eq!(data[99], 7);
        drop(data);
        into.recv(peer, 50..100)?;
        let data = into.data();
        open.wait()?;
        assert_eq!(data[99], 7);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_barrier_names_the_missing_rank() {
    let _shared = shared();
    // All ranks but one arrive within the deadline.
    for (p, late, deadline_ms) in [(2, 0, 200), (2, 1, 200), (9, 4, 3000)] {
        let mut team = Team::new(p).unwrap();
        let failed = AtomicBool::new(false);
        let kind = fails_with(&mut team, Duration::from_millis(deadline_ms), |e| {
            while e.rank() == late && !failed.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            e.barrier().inspect_err(|_| failed.store(true, Relaxed))
        });
        assert!(
            matches!(
                kind,
                ErrorKind::Deadline { rank, step: 0, peer, what: "barrier", .. }
                    if rank != late && peer == late
            ),
            "{kind:?}"
        );
    }
}

#[test]
fn a_barrier_fails_at_once_when_a_rank_has_left() {
    let _shared = shared();
    for p in [2, 3, 9] {
        let mut team = Team::new(p).unwrap();
        for left in [p - 1, 0, 1] {
            // A barrier that waited for its deadline would report that instead.
            let kind = fails(&mut team, |e| {
                e.barrier()?;
                if e.rank() == left {
                    return Ok(());
                }
                e.barrier()
            });
            assert!(
                matches!(
                    kind,
                    ErrorKind::PartnerLeft { rank, step: 0, peer, .. }
                        if rank != left && peer == left
                ),
                "{kind:?}"
            );
        }
    }
}
