//! Tests of every registered algorithm with real bytes on real threads: the data are compared with
//! the oracle, the model clock with the simulator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use oneport::plan::registry;
use oneport::run::{
    Clock, Element, Endpoint, Op, Operator, Place, Run, ScopeOptions, Team, TeamOptions, Teams,
    Workers, inputs, oracle,
};
use oneport::{
    Collective, CostModel, ErrorKind, Kind, Order, Ports, Request, Schedule, Span, Step,
};

use crate::support::alone::shared;
use crate::support::cases::{cases, is_long};
use crate::support::ranks::rank_counts;
use crate::support::sample::Sample;

mod late;
mod wrong;

fn run_and_compare<T: Element>(team: &mut Team, schedule: &Schedule, op: &str, what: &str) {
    let operator = Operator::<T>::named(op).unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    for (overlap, eager) in [(false, true), (true, false)] {
        let cost = CostModel::new(7.3, 0.37).gamma(0.11).gamma_copy(0.05);
        let cost = cost.overlap(overlap);
        let run = Run::new(schedule).op(&operator).inputs(&data);
        let run = run.cost(cost.clone()).repetitions(2).eager(eager);
        // The last of two thousand ranks waits for all others, on a busy machine for long.
        let run = run.deadline(Duration::from_secs(300));
        let outcome = run.on(team).unwrap();
        assert!(eager || !outcome.eager);
        let expected = oracle(schedule.collective(), schedule.layout(), &operator, &data).unwrap();
        assert_eq!(outcome.outputs, expected, "{what} {op}");
        let simulation = schedule.simulate(&cost).unwrap();
        assert_eq!(outcome.rank_times, simulation.rank_times(), "{what} {op}");
        assert_eq!(
            outcome.model_time.to_bits(),
            simulation.makespan().to_bits()
        );
        assert_eq!(outcome.wall.count(), 2);
    }
}

#[test]
fn every_algorithm_runs_as_simulated() {
    let _shared = shared();
    every_algorithm(rank_counts().into_iter(), |p| Team::new(p).unwrap());
}

#[test]
fn every_algorithm_runs_multiplexed_as_simulated() {
    let _shared = shared();
    every_algorithm(
        cases(vec![1, 2, 3, 5, 8, 17], rank_counts()).into_iter(),
        |p| multiplexed(p, 2),
    );
    every_algorithm([1, 6].into_iter(), |p| multiplexed(p, 1));
}

fn every_algorithm(ranks: impl Iterator<Item = usize>, team: impl Fn(usize) -> Team) {
    let mut sample = Sample::each(3);
    for p in ranks {
        let mut team = team(p);
        for algorithm in registry::all() {
            let sizes = [
                (4, 5000, 7),
                (2, p / 2, 3),
                (0, 0, 1),
                (1, 1, 1),
                (3, 41, 4),
            ];
            // Small vectors are nothing special for large teams.
            let few = match p {
                _ if is_long() => sizes.len(),
                0..=3 => sizes.len(),
                4..=9 => 2,
                _ => 1,
            };
            for (n, elements, segments) in sizes.into_iter().take(few) {
                let mut request = Request::new(algorithm.collective, p, elements)
                    .segment_count(segments)
                    .root((n * 5) % p);
                for ports in [Ports::UNI, Ports::BI] {
                    request = request.ports(ports);
                    // Small teams, which take little time, run all cases.
                    if !algorithm.ports.allow(ports) || p > 3 && !sample.takes() {
                        continue;
                    }
                    let what = format!(
                        "{} {:?} p={p} m={elements} {ports:?}",
                        algorithm.name(),
                        algorithm.collective
                    );
                    let schedule = algorithm.plan(&request).unwrap();
                    match n {
                        0 | 1 => run_and_compare::<f32>(&mut team, &schedule, "sum", &what),
                        2 => run_and_compare::<u8>(&mut team, &schedule, "max", &what),
                        3 => run_and_compare::<i32>(&mut team, &schedule, "prod", &what),
                        _ => run_and_compare::<f64>(&mut team, &schedule, "sum", &what),
                    }
                    if !algorithm.commutative_only {
                        request = request.keep_order(true);
                        let schedule = algorithm.plan(&request).unwrap();
                        run_and_compare::<u64>(&mut team, &schedule, "affine", &what);
                        request = request.keep_order(false);
                    }
                }
            }
        }
    }
}

#[test]
fn long_vectors_are_copied_by_both_partners() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    for elements in [4096, 8192, 100_001, 1 << 20] {
        for kind in [Kind::Reduce, Kind::Broadcast] {
            let schedule = Request::new(kind, 2, elements).plan("binomial").unwrap();
            run_and_compare::<f32>(&mut team, &schedule, "sum", "long");
            run_and_compare::<f64>(&mut team, &schedule, "min", "long");
        }
    }
}

fn two_ranks(ports: Ports, programs: [Vec<Step>; 2]) -> Schedule {
    let mut b = Schedule::builder(2, ports, Collective::Allgather);
    for rank in 0..2 {
        b.layout(rank, 40, [Span::new(rank * 20, 20)], [Span::new(0, 40)]);
    }
    for (rank, steps) in programs.into_iter().enumerate() {
        for step in steps {
            b.step(rank, step);
        }
    }
    b.build().unwrap()
}

fn exchange(ports: Ports) -> Schedule {
    let half = |r: usize| Span::new(r * 20, 20);
    two_ranks(
        ports,
        [
            vec![Step::send(1, half(0)), Step::recv(1, half(1))],
            vec![Step::send(0, half(1)), Step::recv(0, half(0))],
        ],
    )
}

#[test]
fn paced_runs_take_at_least_their_model_time() {
    let _shared = shared();
    let mut team = Team::new(4).unwrap();
    let request = Request::reduce(4, 4096).segment_count(4);
    let schedule = registry::find(Kind::Reduce, "chain")
        .unwrap()
        .plan(&request)
        .unwrap();
    let operator = Operator::<f32>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let outcome = Run::new(&schedule)
        .op(&operator)
        .inputs(&data)
        .clock(Clock::Paced)
        .cost(CostModel::new(2e6, 1.0))
        .repetitions(2)
        .on(&mut team)
        .unwrap();
    let fastest = outcome.wall.min_ns() as f64;
    // The run must not be faster than the model, up to the histogram's resolution. Benches measure
    // how much slower it is.
    assert!(
        fastest >= outcome.model_time * 0.998,
        "{fastest} {}",
        outcome.model_time
    );
}

#[test]
fn two_thousand_ranks() {
    let _shared = shared();
    let mut team = Team::new(2000).unwrap();
    let schedule = Request::reduce(2000, 16).plan("binomial").unwrap();
    run_and_compare::<u64>(&mut team, &schedule, "sum", "2000 ranks");
    let schedule = Request::broadcast(2000, 16).plan("chain").unwrap();
    run_and_compare::<u64>(&mut team, &schedule, "sum", "2000 ranks");
}

#[test]
fn local_combinations_keep_the_order_of_operands() {
    let _shared = shared();
    let mut b = Schedule::builder(2, Ports::BI, Collective::Allreduce);
    let (v, scratch) = (Span::new(0, 3), Span::new(3, 3));
    for rank in 0..2 {
        b.layout(rank, 6, [v], [v]);
        b.step(rank, Step::send(1 - rank, v));
        b.step(rank, Step::recv(1 - rank, scratch));
        b.step(
            rank,
            Step::combine(scratch, v, Order::by_rank(rank, 1 - rank)),
        );
    }
    let schedule = b.build().unwrap();
    run_and_compare::<u64>(&mut Team::new(2).unwrap(), &schedule, "affine", "exchange");
}

/// A team with one worker per core, on at most `cores` cores.
fn multiplexed(ranks: usize, cores: usize) -> Team {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    let cores = ids.iter().take(cores).map(|c| c.id).collect();
    let options = TeamOptions {
        cores: Some(cores),
        workers: Workers::Cores,
        ..TeamOptions::default()
    };
    Team::with(ranks, &options).unwrap()
}

#[test]
fn long_vectors_run_multiplexed() {
    let _shared = shared();
    for (p, cores) in [(2, 2), (5, 2), (5, 1)] {
        let mut team = multiplexed(p, cores);
        for kind in [Kind::Reduce, Kind::Broadcast] {
            let schedule = Request::new(kind, p, 100_001).plan("binomial").unwrap();
            run_and_compare::<f32>(&mut team, &schedule, "sum", "multiplexed");
        }
    }
}

#[test]
fn multiplexed_teams_refuse_paced_runs_and_rank_programs() {
    let _shared = shared();
    let mut team = multiplexed(2, 1);
    let schedule = exchange(Ports::BI);
    let sum = Operator::<i64>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &sum);
    let error = Run::new(&schedule)
        .op(&sum)
        .inputs(&data)
        .clock(Clock::Paced)
        .on(&mut team)
        .unwrap_err();
    assert!(
        error.to_string().contains("thread for each rank"),
        "{error}"
    );
    let error = team
        .scope(
            &mut [vec![0i64], vec![0]],
            &ScopeOptions::new(sum),
            |_: &mut Endpoint<i64>| Ok(()),
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("thread for each rank"),
        "{error}"
    );
}

#[test]
fn a_hundred_thousand_ranks() {
    let _shared = shared();
    let p = 100_000;
    let mut team = multiplexed(p, 2);
    for kind in [Kind::Broadcast, Kind::Reduce] {
        let schedule = Request::new(kind, p, 2).plan("binomial").unwrap();
        run_and_compare::<i64>(&mut team, &schedule, "sum", "many");
    }
}

#[test]
fn ports_that_no_rank_can_have_are_refused() {
    let _shared = shared();
    let schedule = exchange(Ports::BI);
    let sum = Operator::<i64>::named("sum").unwrap();
    for mut team in [Team::new(2).unwrap(), multiplexed(2, 1)] {
        for ports in [Ports::UNI, Ports::BI] {
            for k in [0, Ports::MAX_K + 1, 1 << 40, 1 << 63, usize::MAX] {
                let run = Run::new(&schedule).op(&sum).ports(ports.with_k(k));
                let error = run.on(&mut team).unwrap_err();
                assert!(error.is_usage(), "{error}");
                assert!(error.to_string().contains(&format!("not {k}")), "{error}");
            }
        }
        let most = Run::new(&schedule).op(&sum);
        most.ports(Ports::BI.with_k(Ports::MAX_K))
            .on(&mut team)
            .unwrap();
    }
}

#[test]
fn the_largest_knobs_neither_overflow_nor_abort() {
    let _shared = shared();
    let schedule = exchange(Ports::BI);
    let sum = Operator::<i64>::named("sum").unwrap();
    for mut team in [Team::new(2).unwrap(), multiplexed(2, 1)] {
        for clock in [Clock::Native, Clock::Paced] {
            for eager in [false, true] {
                let run = Run::new(&schedule).op(&sum).deadline(Duration::MAX);
                let done = run.clock(clock).eager(eager).on(&mut team);
                let refused = clock == Clock::Paced && team.workers() == Workers::Cores;
                assert_eq!(done.is_err(), refused);
            }
        }
    }
    let options = ScopeOptions {
        deadline: Duration::MAX,
        ..ScopeOptions::new(sum)
    };
    let mut buffers = vec![vec![1i64]; 2];
    let mut team = Team::new(2).unwrap();
    let exchanged = team.scope(&mut buffers, &options, |e: &mut Endpoint<i64>| {
        match e.rank() {
            0 => e.send(1, 0..1),
            _ => e.recv(0, 0..1),
        }
    });
    exchanged.unwrap();
    for ranks in [0, 1 << 40, usize::MAX] {
        assert!(Team::new(ranks).unwrap_err().is_usage());
    }
    assert!(Team::cores_for(usize::MAX, &TeamOptions::default()).unwrap() > 0);
    for stack_bytes in [1 << 60, usize::MAX] {
        let options = TeamOptions {
            stack_bytes,
            ..TeamOptions::default()
        };
        Team::with(2, &options).unwrap_err();
    }
}

#[test]
fn repetitions_that_cannot_be_recorded_are_refused() {
    let _shared = shared();
    let schedule = exchange(Ports::BI);
    let sum = Operator::<i64>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &sum);
    for mut team in [Team::new(2).unwrap(), multiplexed(2, 1)] {
        for (warmup, repetitions) in [
            (usize::MAX, 1),
            (1, usize::MAX),
            (0, usize::MAX),
            (usize::MAX - 1, 3),
            (1 << 62, 1),
            (0, 1 << 40),
            (1 << 40, 1),
        ] {
            for eager in [false, true] {
                let error = Run::new(&schedule)
                    .op(&sum)
                    .inputs(&data)
                    .warmup(warmup)
                    .repetitions(repetitions)
                    .eager(eager)
                    .on(&mut team)
                    .unwrap_err();
                assert!(error.is_usage(), "{error}");
                assert!(error.to_string().contains("too many"), "{error}");
            }
        }
        run_and_compare::<i64>(&mut team, &schedule, "sum", "after a refusal");
    }
}

/// Options that name the first core `times` times.
fn one_core(times: usize) -> TeamOptions {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    TeamOptions {
        cores: ids.first().map(|core| vec![core.id; times]),
        ..TeamOptions::default()
    }
}

#[test]
fn a_core_named_twice_is_one_core() {
    let _shared = shared();
    let schedule = exchange(Ports::BI);
    let sum = Operator::<i64>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &sum);
    let options = one_core(2);
    assert_eq!(Team::cores_for(2, &options).unwrap(), 1);
    let mut team = Team::with(2, &options).unwrap();
    assert_eq!(team.cores(), 1);
    assert!(team.oversubscribed());
    let outcome = Run::new(&schedule)
        .op(&sum)
        .inputs(&data)
        .on(&mut team)
        .unwrap();
    assert!(outcome.oversubscribed);
    assert!(
        outcome.warnings[0].contains("2 ranks on 1 core:"),
        "{:?}",
        outcome.warnings
    );
    for _ in 0..200 {
        run_and_compare::<i64>(&mut team, &schedule, "sum", "one core");
    }
    // A multiplexed team has one worker for it.
    let options = TeamOptions {
        workers: Workers::Cores,
        ..options
    };
    let mut team = Team::with(2, &options).unwrap();
    assert_eq!(team.cores(), 1);
    run_and_compare::<i64>(&mut team, &schedule, "sum", "one worker");
}

/// In the second repetition, rank 2 computes for a long time before it receives the vector that
/// rank 0 has sent and is about to overwrite.
#[test]
fn a_deadline_names_the_awaited_rank() {
    let _shared = shared();
    const LEN: usize = 5000;
    let (v, scratch) = (Span::new(0, LEN), Span::new(LEN, LEN));
    let mut b = Schedule::builder(4, Ports::UNI, Collective::Allreduce);
    for rank in 0..4 {
        b.layout(rank, 2 * LEN, [v], [v]);
    }
    b.step(0, Step::send(2, v));
    b.step(0, Step::copy(scratch, v));
    b.step(2, Step::combine(v, scratch, Order::MineFirst));
    b.step(2, Step::recv(0, v));
    let schedule = b.build().unwrap();
    let threads = Team::with(4, &one_core(1));
    let workers = multiplexed(4, 2);
    // A single worker never waits for another one.
    let workers = (workers.cores() == 2).then_some(workers);
    for mut team in [threads.unwrap()].into_iter().chain(workers) {
        let calls = AtomicUsize::new(0);
        let slow = Operator::<i64>::new("slow", true, move |a, b| {
            if calls.fetch_add(1, Ordering::Relaxed) == LEN + LEN / 2 {
                std::thread::sleep(Duration::from_secs(2));
            }
            a + b
        });
        let data = vec![vec![1i64; LEN]; 4];
        let error = Run::new(&schedule)
            .op(&slow)
            .inputs(&data)
            .repetitions(2)
            .deadline(Duration::from_millis(500))
            .on(&mut team)
            .unwrap_err();
        assert_eq!(
            error.kind(),
            &ErrorKind::Deadline {
                rank: 0,
                step: 0,
                peer: 2,
                port: 0,
                what: "send",
                chain: String::new(),
            }
        );
    }
}

#[test]
fn teams_run_schedules_of_any_number_of_ranks() {
    let _shared = shared();
    let mut teams = Teams::default();
    for ranks in [2, 3, 3, 1, 2] {
        let mut builder = Schedule::broadcast(ranks, 5);
        for rank in 1..ranks {
            builder.transfer(0, rank, 0..5);
        }
        let schedule = builder.build().unwrap();
        let run = Run::<u32>::new(&schedule).verified();
        assert!(run.on(&mut teams).unwrap().is_verified());
        assert_eq!(teams.team(ranks).unwrap().ranks(), ranks);
    }
    assert!(teams.max_ranks() >= 3);
}

#[test]
fn kept_inputs_are_compared_before_the_timed_repetitions() {
    let _shared = shared();
    let mut team = Team::new(2).unwrap();
    let schedule = Request::reduce(2, 3).plan("binomial").unwrap();
    let inputs = [vec![1u32; 3], vec![10; 3]];
    for eager in [true, false] {
        let run = Run::new(&schedule).op(Op::SUM).repetitions(3).eager(eager);
        let run = run.keep_inputs(true).verified();
        let outcome = run.clone().inputs(&inputs).on(&mut team).unwrap();
        assert!(outcome.is_verified());
        assert_eq!(outcome.compared, 1 + usize::from(outcome.eager));
        assert_eq!(outcome.wall.count(), 3);
        // The root combines into its input once before the timed repetitions, and in each of them.
        assert_eq!(outcome.outputs[0], [1 + 4 * 10; 3]);
        assert!(run.on(&mut team).unwrap().is_verified());
    }
    let nothing = Schedule::broadcast(2, 3).build().unwrap();
    let run = Run::<u32>::new(&nothing).keep_inputs(true).verified();
    let mismatch = run.on(&mut team).unwrap().mismatch.unwrap();
    assert_eq!((mismatch.repetition, mismatch.rank), (0, 1));
}

#[test]
fn a_flag_ends_a_run() {
    for workers in [Workers::Ranks, Workers::Cores] {
        for ranks in [1, 2, 5] {
            let options = TeamOptions {
                workers,
                ..TeamOptions::default()
            };
            let mut team = Team::with(ranks, &options).unwrap();
            let schedule = Request::allreduce(ranks, 64).plan("binomial").unwrap();
            let run = Run::<u64>::new(&schedule).op(Op::SUM);
            let stop = Arc::new(AtomicBool::new(true));
            // Far longer than a look at the flag takes.
            let long = run.clone().repetitions(5_000_000).stop(stop);
            let error = long.on(&mut team).unwrap_err();
            assert!(error.to_string().contains("stopped"), "{error}");
            // The team is none the worse, and nobody has stopped this one.
            let outcome = run.verified().stop(Arc::default()).on(&mut team).unwrap();
            assert!(outcome.is_verified());
        }
    }
}
