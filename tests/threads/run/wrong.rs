//! Runs of wrong schedules and operators are errors, and the team stays usable.

use std::time::Duration;

use oneport::machine::Eager;
use oneport::run::{Clock, Element, Operator, Run, Team, inputs};
use oneport::{CostModel, ErrorKind, Order, Ports, Request, Schedule, Span, Step};

use super::{exchange, multiplexed, run_and_compare, two_ranks};
use crate::support::alone::shared;

/// The error of a run that fails before its deadline, however busy the machine is.
fn failing_run(team: &mut Team, schedule: &Schedule, ports: Option<Ports>) -> ErrorKind {
    failing_run_with(team, schedule, ports, Duration::from_secs(60))
}

fn failing_run_with(
    team: &mut Team,
    schedule: &Schedule,
    ports: Option<Ports>,
    deadline: Duration,
) -> ErrorKind {
    let operator = Operator::<i64>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let mut run = Run::new(schedule).op(&operator).inputs(&data);
    run = run.deadline(deadline);
    if let Some(ports) = ports {
        run = run.ports(ports);
    }
    let error = run.on(team).unwrap_err();
    // The team stays usable.
    let good = exchange(Ports::BI);
    run_and_compare::<i64>(team, &good, "sum", "after a failure");
    error.kind().clone()
}

#[test]
fn wrong_schedules_are_errors_and_the_team_stays_usable() {
    let _shared = shared();
    wrong_schedules(&mut Team::new(2).unwrap());
}

#[test]
fn multiplexed_wrong_schedules_are_errors_too() {
    let _shared = shared();
    for cores in [1, 2] {
        wrong_schedules(&mut multiplexed(2, cores));
    }
}

fn wrong_schedules(team: &mut Team) {
    let half = |r: usize| Span::new(r * 20, 20);

    // Both ranks send first through their only port.
    let kind = failing_run(team, &exchange(Ports::UNI), None);
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

    // A schedule for two ports per rank, run by ranks with one port.
    let kind = failing_run(team, &exchange(Ports::BI), Some(Ports::UNI));
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

    // Both ranks receive first.
    let wait = two_ranks(
        Ports::UNI,
        [
            vec![Step::recv(1, half(1)), Step::send(1, half(0))],
            vec![Step::recv(0, half(0)), Step::send(0, half(1))],
        ],
    );
    let kind = failing_run_with(team, &wait, None, Duration::from_millis(200));
    assert!(
        matches!(
            kind,
            ErrorKind::Deadline {
                step: 0,
                port: 0,
                what: "recv",
                ..
            }
        ),
        "{kind:?}"
    );

    // The partner has no step for this transfer.
    let unmatched = two_ranks(Ports::UNI, [vec![Step::send(1, half(0))], vec![]]);
    let kind = failing_run(team, &unmatched, None);
    assert!(
        matches!(
            kind,
            ErrorKind::PartnerLeft {
                rank: 0,
                step: 0,
                peer: 1,
                port: 0
            }
        ),
        "{kind:?}"
    );

    // Send and receive have different lengths.
    let lengths = two_ranks(
        Ports::UNI,
        [
            vec![Step::send(1, half(0))],
            vec![Step::recv(0, Span::new(0, 19))],
        ],
    );
    let kind = failing_run(team, &lengths, None);
    assert!(
        matches!(
            kind,
            ErrorKind::Length {
                rank: 1,
                step: 0,
                peer: 0,
                port: 0,
                expected: 19,
                found: 20
            }
        ),
        "{kind:?}"
    );
}

#[test]
fn schedules_for_elements_of_another_size_are_refused() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let schedule = exchange(Ports::BI).with_element_bytes(4);
    let failed = failing_run(&mut team, &schedule, None);
    let ErrorKind::Usage(text) = failed else {
        panic!("{failed:?}");
    };
    assert!(text.contains("for elements of 4 bytes"), "{text}");
    run_and_compare::<u32>(&mut team, &schedule, "sum", "elements of 4 bytes");
}

/// An element type of one's own, of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Money {
    cents: i64,
    owner: u64,
}

impl Element for Money {
    fn test_value(bits: u64) -> Money {
        Money {
            cents: (bits & 0xffff) as i64,
            owner: 0,
        }
    }
}

/// The clock of a run is the simulator's for elements of any size, also where the schedule says
/// nothing of it, native and paced, with and without eager messages.
#[test]
fn the_model_clock_counts_the_bytes_of_the_schedule() {
    let _shared = shared();
    let mut team = Team::new(3).unwrap();
    let add = Operator::new("add", true, |a: Money, b| Money {
        cents: a.cents + b.cents,
        ..a
    });
    for bytes in [1, 16] {
        let mut b = Schedule::reduce(3, 2);
        for rank in [1, 2] {
            b.transfer_combine(rank, 0, 0..2, Order::MineFirst);
        }
        b.element_bytes(bytes);
        let schedule = b.build().unwrap();
        let line = CostModel::new(10.0, 1.0);
        for cost in [line.clone(), line.latency(3.0).eager(Eager::UpTo(7))] {
            let time = schedule.simulate(&cost).unwrap().makespan();
            for clock in [Clock::Native, Clock::Paced] {
                let run = Run::new(&schedule).op(&add).verified().clock(clock);
                let outcome = run.cost(cost.clone()).on(&mut team).unwrap();
                assert!(outcome.is_verified());
                assert_eq!(outcome.model_time, time, "{bytes} bytes, {clock:?}");
            }
        }
    }
}

#[test]
fn a_panicking_operator_ends_only_its_run() {
    let _shared = shared();
    let panicking = |mut team: Team, elements: usize| {
        let p = team.ranks();
        let schedule = Request::reduce(p, elements).plan("binomial").unwrap();
        let bad = Operator::<i64>::new("bad", true, |_, _| panic!("no such sum"));
        let data = vec![vec![1i64; elements]; p];
        let error = Run::new(&schedule)
            .op(&bad)
            .inputs(&data)
            .on(&mut team)
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Panicked { message, .. } if message == "no such sum"),
            "{error}"
        );
        // The right output is computed by the operator, too.
        let verified = Run::new(&schedule).op(&bad).verified().on(&mut team);
        let error = verified.unwrap_err().to_string();
        assert!(error.contains("no such sum (while the right"), "{error}");
        run_and_compare::<i64>(&mut team, &schedule, "sum", "after a panic");
    };
    for (p, elements) in [(2, 10), (2, 100_000), (8, 1000)] {
        panicking(Team::new(p).unwrap(), elements);
        panicking(multiplexed(p, 2), elements);
    }
}
