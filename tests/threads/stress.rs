//! Stress tests: random programs, correct and faulty, on teams that are used again after every
//! failure. Each run ends with the correct data or an error, and no thread outlives a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use oneport::run::{Bidirectional, Endpoint, Operator, Run, ScopeOptions, Team, Unidirectional};
use oneport::{CostModel, Error, ErrorKind, Order, Ports, Schedule, Span, Spans, Step};

use crate::support::alone::alone;
use crate::support::plans::{
    Plan, Shape, has_transfers, initial_buffer, initial_buffers, ports, schedule,
};
use crate::support::random::Random;
use crate::support::watch::Watch;

const LONG_DEADLINE: Duration = Duration::from_secs(30);
const SHORT_DEADLINE: Duration = Duration::from_millis(150);

/// Aborts a test of this file that hangs.
fn watch(test: &str) -> Watch {
    Watch::new(format!("cargo test --test threads stress::{test}"))
}

fn run(
    team: &mut Team,
    schedule: &Schedule,
    operator: &Operator<u64>,
    deadline: Duration,
) -> Result<Vec<Vec<u64>>, Error> {
    let inputs = initial_buffers(schedule.ranks(), schedule.layout()[0].len);
    let run = Run::new(schedule).op(operator).inputs(&inputs);
    let cost = CostModel::new(1000.0, 0.1).overlap(schedule.steps().is_multiple_of(2));
    let run = run.cost(cost).repetitions(2).deadline(deadline);
    run.on(team).map(|outcome| outcome.outputs)
}

#[test]
fn random_schedules_succeed_and_faulty_ones_fail() {
    let _alone = alone();
    let _watch = watch("random_schedules_succeed_and_faulty_ones_fail");
    let affine = Operator::<u64>::named("affine").unwrap();
    let mut random = Random::new(1);
    let until = Instant::now() + Duration::from_secs(4);
    for round in 0..12 {
        let p = if round < 4 { 2 } else { 2 + random.below(15) };
        let mut team = Team::new(p).unwrap();
        for _ in 0..12 {
            if Instant::now() > until {
                return;
            }
            let len = [8, 100, 1000, 20_000][random.below(4)];
            let ports = ports(&mut random);
            let steps = 1 + random.below(12 * p);
            let shape = Shape {
                ranks: p,
                ports,
                len,
                operations: steps,
                parts: 3,
            };
            let plan = Plan::random(&mut random, shape);
            let good = plan.schedule();
            let buffers = plan.outcome(initial_buffers(p, len), |a, b| affine.apply(a, b));
            assert_eq!(
                run(&mut team, &good, &affine, LONG_DEADLINE).unwrap(),
                buffers
            );

            let mut programs = plan.programs;
            match random.below(3) {
                // One side of a transfer is missing.
                0 if has_transfers(&programs) => loop {
                    let program = &mut programs[random.below(p)];
                    let i = random.below(program.len().max(1));
                    if program.get(i).is_some_and(|s| s.peer().is_some()) {
                        program.remove(i);
                        let bad = schedule(plan.ports, len, programs);
                        run(&mut team, &bad, &affine, SHORT_DEADLINE).unwrap_err();
                        break;
                    }
                },
                // One rank does nothing.
                1 => {
                    let idle = random.below(p);
                    let isolated = programs[idle].iter().all(|s| s.peer().is_none());
                    programs[idle].clear();
                    let bad = schedule(plan.ports, len, programs);
                    let deadline = if isolated {
                        LONG_DEADLINE
                    } else {
                        SHORT_DEADLINE
                    };
                    assert_eq!(run(&mut team, &bad, &affine, deadline).is_ok(), isolated);
                }
                // The operator panics somewhere.
                _ => {
                    let fuse = Arc::new(AtomicUsize::new(random.below(200)));
                    let burning = fuse.clone();
                    let bad = Operator::<u64>::new("fuse", false, move |a, b| {
                        assert!(burning.fetch_sub(1, Relaxed) != 0, "burnt down");
                        a ^ b
                    });
                    if let Err(error) = run(&mut team, &good, &bad, LONG_DEADLINE) {
                        let ErrorKind::Panicked { message, .. } = error.kind() else {
                            panic!("{error}");
                        };
                        assert_eq!(message, "burnt down");
                    }
                }
            }
        }
    }
}

/// Passes rank 0's elements around the ring. Rank 0 sends first and the others receive first, since
/// each rank has one port.
fn ring(e: &mut Endpoint<u64, Unidirectional>, rounds: usize, len: usize) -> Result<(), Error> {
    let (me, p) = (e.rank(), e.ranks());
    let (next, last) = ((me + 1) % p, (me + p - 1) % p);
    for _ in 0..rounds {
        if me == 0 {
            e.send(next, 0..len)?;
            e.recv(last, len..2 * len)?;
        } else {
            e.recv(last, len..2 * len)?;
            e.copy(len..2 * len, 0..len)?;
            e.send(next, 0..len)?;
        }
    }
    Ok(())
}

#[test]
fn failing_rank_programs_leave_the_team_usable() {
    let _alone = alone();
    let _watch = watch("failing_rank_programs_leave_the_team_usable");
    let mut options = ScopeOptions::new(Operator::<u64>::named("sum").unwrap());
    let mut random = Random::new(2);
    let until = Instant::now() + Duration::from_secs(2);
    for _ in 0..8 {
        let p = 2 + random.below(15);
        let mut team = Team::new(p).unwrap();
        for _ in 0..6 {
            if Instant::now() > until {
                return;
            }
            let len = [1, 50, 20_000][random.below(3)];
            let mut buffers: Vec<_> = (0..p).map(|r| vec![r as u64; 2 * len]).collect();
            let (bad, rounds, fault) = (random.below(p), random.below(4), random.below(4));
            options.deadline = SHORT_DEADLINE;
            let result = team.scope(&mut buffers, &options, |e| {
                ring(e, rounds, len)?;
                if e.rank() != bad {
                    return ring(e, 1, len);
                }
                match fault {
                    0 => panic!("enough"),
                    // Panics during a send, while the partner may be reading the span.
                    1 => {
                        let _open = e.open_send((bad + 1) % p, 0..len)?;
                        panic!("enough");
                    }
                    2 => e.send(p, 0..1),
                    // Returns too early.
                    _ => Ok(()),
                }
            });
            result.unwrap_err();
            options.deadline = LONG_DEADLINE;
            buffers[0].fill(77);
            team.scope(&mut buffers, &options, |e| ring(e, 3, len))
                .unwrap();
            assert!(buffers.iter().flatten().all(|&x| x == 77));
        }
    }
}

/// A partner that answers at once must not be mistaken for one that sends at the same time, which
/// would be an error with one port.
#[test]
fn an_immediate_answer_is_not_a_port_conflict() {
    let _alone = alone();
    const ROUNDS: usize = 400;
    for p in [2, 8, 16] {
        let mut team = Team::new(p).unwrap();
        let mut buffers = vec![vec![0u64; 4]; p];
        let options = ScopeOptions::new(Operator::<u64>::named("sum").unwrap());
        team.scope(
            &mut buffers,
            &options,
            |e: &mut Endpoint<u64, Unidirectional>| {
                let (me, peer) = (e.rank(), e.rank() ^ 1);
                if peer >= e.ranks() {
                    return Ok(());
                }
                for _ in 0..ROUNDS / p {
                    if me < peer {
                        e.send(peer, 0..2)?;
                        e.recv(peer, 2..4)?;
                    } else {
                        e.recv(peer, 2..4)?;
                        e.send(peer, 0..2)?;
                    }
                }
                Ok(())
            },
        )
        .unwrap();

        let mut programs = vec![Vec::new(); p];
        for round in 0..2 * ROUNDS / p {
            for low in (0..p - 1).step_by(2) {
                let (from, to) = [(low, low + 1), (low + 1, low)][round % 2];
                programs[from].push(Step::send(to, Span::new(0, 2)));
                programs[to].push(Step::recv(from, Span::new(2, 2)));
            }
        }
        let schedule = schedule(Ports::UNI, 4, programs);
        let sum = Operator::<u64>::named("sum").unwrap();
        run(&mut team, &schedule, &sum, LONG_DEADLINE).unwrap();
    }
}

#[test]
fn two_ports_may_send_to_one_partner_at_once() {
    let _alone = alone();
    let sum = Operator::<u64>::named("sum").unwrap();
    let mut team = Team::new(2).unwrap();
    for (a, b) in [(0, 1), (1, 0)] {
        let half = |n: usize| Span::new(n * 50, 50);
        let programs = vec![
            vec![
                Step::send(1, half(0)).on_port(0),
                Step::send(1, half(1)).on_port(1),
            ],
            vec![
                Step::recv(0, half(1)).on_port(a),
                Step::recv(0, half(0)).on_port(b),
            ],
        ];
        let schedule = schedule(Ports::BI.with_k(2), 100, programs);
        let outputs = run(&mut team, &schedule, &sum, LONG_DEADLINE).unwrap();
        let sent = initial_buffer(0, 100);
        assert_eq!(outputs[1], [&sent[50..], &sent[..50]].concat());
    }
}

/// The operator may panic after the rank's program has returned, because a bidirectional send may
/// then still be in flight.
#[test]
fn an_operator_that_panics_after_the_program_is_an_error() {
    let _alone = alone();
    let _watch = watch("an_operator_that_panics_after_the_program_is_an_error");
    let mut team = Team::new(2).unwrap();
    let len = 100_000;
    for _ in 0..5 {
        let bad = Operator::<u64>::new("bad", true, |_, _| panic!("no such sum"));
        let mut buffers = vec![vec![1u64; len]; 2];
        let body = |e: &mut Endpoint<u64, Bidirectional>| match e.rank() {
            0 => e.send(1, 0..len),
            _ => e.recv_combine(0, 0..len, Order::MineFirst),
        };
        let error = team.scope(&mut buffers, &ScopeOptions::new(bad), body);
        let error = error.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Panicked { .. }),
            "{error}"
        );
    }
}

/// A payload that panics when it is dropped.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn a_panic_that_panics_when_dropped() {
    let _alone = alone();
    let options = ScopeOptions::new(Operator::<u64>::named("sum").unwrap());
    let mut team = Team::new(3).unwrap();
    let mut buffers = vec![vec![0u64; 4]; 3];
    for _ in 0..2 {
        let error = team
            .scope(
                &mut buffers,
                &options,
                |e: &mut Endpoint<u64, Unidirectional>| -> Result<(), Error> {
                    if e.rank() == 1 {
                        std::panic::panic_any(PanicsWhenDropped);
                    }
                    e.barrier()
                },
            )
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Panicked { rank: 1, .. }),
            "{error}"
        );
    }
    team.scope(&mut buffers, &options, |e| ring(e, 3, 2))
        .unwrap();
}

/// Overlapping spans are wrong, but two threads must not copy a long message into them even then:
/// that would be a data race.
#[test]
fn overlapping_spans_are_copied_by_one_thread() {
    let _alone = alone();
    let sum = Operator::<u64>::named("sum").unwrap();
    let mut team = Team::new(2).unwrap();
    let len = 60_000;
    let halves: Spans = [Span::new(0, len / 2), Span::new(10, len / 2)]
        .into_iter()
        .collect();
    let programs = vec![
        vec![Step::send(1, Span::new(0, len))],
        vec![Step::recv(0, halves)],
    ];
    let schedule = schedule(Ports::UNI, len, programs);
    let outputs = run(&mut team, &schedule, &sum, LONG_DEADLINE).unwrap();
    // The second span overwrites the first.
    assert_eq!(
        outputs[1][10..len / 2 + 10],
        initial_buffer(0, len)[len / 2..]
    );
}

#[test]
fn a_deadline_may_be_unlimited_and_does_not_count_pacing() {
    let _alone = alone();
    let sum = Operator::<u64>::named("sum").unwrap();
    let mut team = Team::new(3).unwrap();
    let shape = Shape {
        ranks: 3,
        ports: Ports::BI,
        len: 100,
        operations: 50,
        parts: 3,
    };
    let good = Plan::random(&mut Random::new(5), shape).schedule();
    let inputs = initial_buffers(3, 100);
    for clock in [oneport::run::Clock::Native, oneport::run::Clock::Paced] {
        Run::new(&good)
            .op(&sum)
            .inputs(&inputs)
            .clock(clock)
            .deadline(Duration::MAX)
            .on(&mut team)
            .unwrap();
    }
    // Pacing may take longer than the deadline.
    let mut options = ScopeOptions::new(sum);
    options.deadline = Duration::from_secs(1);
    options.clock = oneport::run::Clock::Paced;
    options.cost = CostModel::new(600e6, 0.0);
    let mut buffers = vec![vec![0u64; 4]; 3];
    team.scope(&mut buffers, &options, |e| ring(e, 1, 2))
        .unwrap();
}
