//! Tests of schedules with faults.

use std::time::Duration;

use oneport::run::{Team, Workers};
use oneport::{Error, Ports, Schedule};

use super::{
    LONG_DEADLINE, SHORT_DEADLINE, Settings, Value, assert_run_error, count, fuse, initial_buffers,
    is_operator_panic, is_refused, join, options, oracle, panicking, plan, run_cases, sleeping,
    team, verify,
};
use crate::support::plans::{self, Plan, insert_fault, ports};
use crate::support::random::Random;

/// Number of faulty runs per team.
const RUNS: usize = 6;

#[test]
fn faulty_schedules_leave_a_team_of_threads_usable() {
    run_cases(
        "schedules::faulty_schedules_leave_a_team_of_threads_usable",
        |random| run_case(random, Workers::Ranks),
    );
}

#[test]
fn faulty_schedules_leave_a_multiplexed_team_usable() {
    run_cases(
        "schedules::faulty_schedules_leave_a_multiplexed_team_usable",
        |random| {
            run_case(random, Workers::Cores);
        },
    );
}

fn run_case(random: &mut Random, workers: Workers) {
    let mut team = team(random, workers);
    for _ in 0..RUNS {
        if random.one_in(2) {
            faulty_run::<u64>(random, &mut team);
        } else {
            faulty_run::<u8>(random, &mut team);
        }
        verify(random, &mut team);
    }
}

fn faulty_run<T: Value>(random: &mut Random, team: &mut Team) {
    let ports = ports(random);
    let plan = plan(random, team, ports, 3);
    match random.below(8) {
        0 => panicking_operator::<T>(random, team, &plan),
        1 => slow_operator::<T>(random, team, &plan),
        2 => fewer_ports::<T>(random, team, &plan),
        3 => bad_request::<T>(random, team, &plan),
        _ => wrong_programs::<T>(random, team, &plan),
    }
}

/// Programs with one to three faults.
fn wrong_programs<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let mut programs = plan.programs.clone();
    let faults: Vec<_> = (0..1 + random.below(3))
        .map(|_| insert_fault(random, &mut programs, plan.len, false))
        .collect();
    let schedule = plans::schedule(plan.ports, plan.len, programs);
    let schedule = schedule.with_element_bytes(size_of::<T>() as u64);
    let overlap = random.one_in(2);
    let data: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let expected = if is_refused(&schedule) {
        None
    } else {
        oracle::execute(&schedule, overlap, T::join, data.clone())
    };
    let time = expected.as_ref().map(|(_, time)| *time);
    let (mut options, scale) = options::<T>(random, team, overlap, time);
    if expected.is_none() {
        options.deadline = SHORT_DEADLINE;
    }
    let what = || format!("{faults:?} {options:?} {}", schedule.to_json());
    let outcome = count(options.run(&schedule, &data, &join()).on(team));
    match (outcome, expected) {
        (Ok(outcome), Some((expected, time))) => {
            assert!(outcome.outputs == expected, "wrong data: {}", what());
            assert_eq!(outcome.model_time, scale * time, "{}", what());
        }
        (Err(error), None) => assert_run_error(&error, schedule.programs()),
        (Ok(_), None) => panic!("this cannot complete: {}", what()),
        (Err(error), Some(_)) => panic!("{error}: {}", what()),
    }
}

fn panicking_operator<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (options, _) = options::<T>(random, team, false, None);
    let bad = panicking(fuse(random, 2 * plan.combinations()));
    let data: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    match count(options.run(&plan.schedule(), &data, &bad).on(team)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => assert!(is_operator_panic(&error), "{error}"),
    }
}

/// Other ranks wait for a rank with a slow operator, possibly beyond the deadline.
fn slow_operator<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (mut options, _) = options::<T>(random, team, false, None);
    let (nap, deadline) = *random.pick(&[
        (5, LONG_DEADLINE),
        (5, SHORT_DEADLINE),
        (40, SHORT_DEADLINE),
    ]);
    let slow = sleeping(
        fuse(random, plan.combinations()),
        Duration::from_millis(nap),
    );
    let data: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let schedule = plan.schedule();
    options.deadline = deadline;
    match count(options.run(&schedule, &data, &slow).on(team)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => {
            assert!(deadline == SHORT_DEADLINE, "{error}");
            assert_run_error(&error, schedule.programs());
        }
    }
}

/// Ranks with fewer ports than the schedule uses.
fn fewer_ports<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (mut options, _) = options::<T>(random, team, false, None);
    options.deadline = SHORT_DEADLINE;
    let data: Vec<Vec<T>> = initial_buffers(team.ranks(), plan.len);
    let schedule = plan.schedule();
    let run = options.run(&schedule, &data, &join()).ports(Ports::UNI);
    match count(run.on(team)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => assert_run_error(&error, schedule.programs()),
    }
}

/// Arguments that are refused before anything runs.
fn bad_request<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (p, len) = (team.ranks(), plan.len);
    let run = |team: &mut Team, schedule: &Schedule, data: &[Vec<T>], options: &Settings| {
        let result = count(options.run(schedule, data, &join()).on(team));
        result.map(|_| ()).unwrap_err()
    };
    let mut data: Vec<Vec<T>> = initial_buffers(p, len);
    let (mut options, _) = options::<T>(random, team, false, None);
    let schedule = plan.schedule();
    let error: Error = match random.below(4) {
        0 => {
            data.pop();
            run(team, &schedule, &data, &options)
        }
        1 => {
            data[random.below(p)].push(T::test_value(0));
            run(team, &schedule, &data, &options)
        }
        2 => {
            let mut programs = plan.programs.clone();
            programs.push(Vec::new());
            let larger = plans::schedule(plan.ports, len, programs);
            run(team, &larger, &initial_buffers(p + 1, len), &options)
        }
        _ => {
            options.repetitions = 0;
            run(team, &schedule, &data, &options)
        }
    };
    assert!(error.is_usage(), "{error}");
}
