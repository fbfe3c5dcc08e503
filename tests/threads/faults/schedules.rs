//! Schedules with faults.

use std::time::Duration;

use oneport::run::{RunOptions, Team, Workers};
use oneport::{Error, Ports, Schedule};

use super::{
    PATIENT, SHORT, Value, assert_proper, count, fuse, is_burnt, is_refused, join, options, oracle,
    panicking, plan, run_cases, sleeping, starts, team, verify,
};
use crate::support::plans::{self, Plan, ports, put_fault};
use crate::support::random::Random;

/// Faulty runs in the life of one team.
const RUNS: usize = 6;

#[test]
fn schedules_on_threads() {
    run_cases("schedules::schedules_on_threads", |random| {
        life(random, Workers::Ranks)
    });
}

#[test]
fn schedules_on_one_worker_a_core() {
    run_cases("schedules::schedules_on_one_worker_a_core", |random| {
        life(random, Workers::Cores);
    });
}

fn life(random: &mut Random, workers: Workers) {
    let mut team = team(random, workers);
    for _ in 0..RUNS {
        if random.one_in(2) {
            fault::<u64>(random, &mut team);
        } else {
            fault::<u8>(random, &mut team);
        }
        verify(random, &mut team);
    }
}

fn fault<T: Value>(random: &mut Random, team: &mut Team) {
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

/// One to three steps are not what they should be.
fn wrong_programs<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let mut programs = plan.programs.clone();
    let faults: Vec<_> = (0..1 + random.below(3))
        .map(|_| put_fault(random, &mut programs, plan.len, false))
        .collect();
    let schedule = plans::schedule(plan.ports, plan.len, programs);
    let overlap = random.one_in(2);
    let data: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let wanted = if is_refused(&schedule) {
        None
    } else {
        oracle::execute(&schedule, overlap, T::join, data.clone())
    };
    let time = wanted.as_ref().map(|w| w.1);
    let (options, scale) = options::<T>(random, team, overlap, time);
    let what = || format!("{faults:?} {options:?} {}", schedule.to_json());
    let deadline = if wanted.is_some() { PATIENT } else { SHORT };
    team.set_deadline(deadline);
    let outcome = count(team.run(&schedule, &data, &join(), &options));
    match (outcome, wanted) {
        (Ok(outcome), Some((wanted, time))) => {
            assert!(outcome.outputs == wanted, "wrong data: {}", what());
            assert_eq!(outcome.model_time, scale * time, "{}", what());
        }
        (Err(error), None) => assert_proper(&error, schedule.programs()),
        (Ok(_), None) => panic!("this cannot complete: {}", what()),
        (Err(error), Some(_)) => panic!("{error}: {}", what()),
    }
}

fn panicking_operator<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (options, _) = options::<T>(random, team, false, None);
    let bad = panicking(fuse(random, 2 * plan.combinations()));
    let data: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    team.set_deadline(PATIENT);
    match count(team.run(&plan.schedule(), &data, &bad, &options)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => assert!(is_burnt(&error), "{error}"),
    }
}

/// Others wait for a rank whose operator takes its time, until they have waited too long.
fn slow_operator<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (options, _) = options::<T>(random, team, false, None);
    let (nap, deadline) = *random.pick(&[(5, PATIENT), (5, SHORT), (40, SHORT)]);
    let slow = sleeping(
        fuse(random, plan.combinations()),
        Duration::from_millis(nap),
    );
    let data: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let schedule = plan.schedule();
    team.set_deadline(deadline);
    match count(team.run(&schedule, &data, &slow, &options)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => {
            assert!(deadline == SHORT, "{error}");
            assert_proper(&error, schedule.programs());
        }
    }
}

/// Ranks have fewer ports than the schedule uses.
fn fewer_ports<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (mut options, _) = options::<T>(random, team, false, None);
    options.ports = Some(Ports::UNI);
    let data: Vec<Vec<T>> = starts(team.ranks(), plan.len);
    let schedule = plan.schedule();
    team.set_deadline(SHORT);
    match count(team.run(&schedule, &data, &join(), &options)) {
        Ok(outcome) => assert_eq!(outcome.outputs, plan.outcome(data, T::join)),
        Err(error) => assert_proper(&error, schedule.programs()),
    }
}

/// Nothing runs at all.
fn bad_request<T: Value>(random: &mut Random, team: &mut Team, plan: &Plan) {
    let (p, len) = (team.ranks(), plan.len);
    let run = |team: &mut Team, schedule: &Schedule, data: &[Vec<T>], options: &RunOptions| {
        let result = count(team.run(schedule, data, &join(), options));
        result.map(|_| ()).unwrap_err()
    };
    let mut data: Vec<Vec<T>> = starts(p, len);
    let (mut options, _) = options::<T>(random, team, false, None);
    let schedule = plan.schedule();
    let error: Error = match random.below(4) {
        0 => {
            data.pop();
            run(team, &schedule, &data, &options)
        }
        1 => {
            data[random.below(p)].push(T::default());
            run(team, &schedule, &data, &options)
        }
        2 => {
            let mut programs = plan.programs.clone();
            programs.push(Vec::new());
            let larger = plans::schedule(plan.ports, len, programs);
            run(team, &larger, &starts(p + 1, len), &options)
        }
        _ => {
            options.repetitions = 0;
            run(team, &schedule, &data, &options)
        }
    };
    assert!(error.is_usage(), "{error}");
}
