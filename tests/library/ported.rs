//! Tests of every registered algorithm on ranks with several ports: schedules are correct, take the
//! time of their closed forms, and each collective has rows that use all ports.

use oneport::check::Options;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::{Operator, Run, Team, inputs, oracle};
use oneport::{CostModel, Kind, Ports, Request};

/// Collectives without a gather or a scatter: those have tests of their own.
const KINDS: [Kind; 7] = [
    Kind::Broadcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Allgather,
    Kind::ReduceScatter,
    Kind::Alltoall,
    Kind::Scan,
];

fn rows() -> impl Iterator<Item = &'static Algorithm> {
    KINDS.into_iter().flat_map(registry::of)
}

/// The costs without those of combining where the collective does not combine.
fn effective(request: &Request) -> CostModel {
    let cost = request.get_cost().clone();
    match request.kind().reduces() {
        true => cost,
        false => cost.gamma(0.0),
    }
}

#[test]
fn schedules_are_correct_and_take_their_closed_forms() {
    let (mut checked, mut compared) = (0, 0);
    for algorithm in rows() {
        for p in (1..=13).chain([16, 25, 27, 32]) {
            for ports in [2, 3, 5]
                .map(|k| [Ports::UNI.with_k(k), Ports::BI.with_k(k)])
                .concat()
            {
                for (m, segment) in [(1, 1), (4 * p, p), (5 * p + 3, 5)] {
                    for keep_order in [false, true] {
                        let request = Request::new(algorithm.collective, p, m)
                            .ports(ports)
                            .segment_elems(segment)
                            .root(p / 3)
                            .keep_order(keep_order && algorithm.collective.reduces())
                            .cost(CostModel::new(10.0, 2.0).gamma(3.0));
                        if algorithm.accepts(&request).is_err() {
                            continue;
                        }
                        let name = format!("{} {request:?}", algorithm.name);
                        let planned = algorithm.planned(&request).unwrap();
                        let cost = effective(&request);
                        let streamed = planned.timed(&cost, 1, |_| ()).unwrap().time;
                        let several = planned.uses_several_ports();
                        let schedule = planned.materialize().unwrap();
                        let options = Options {
                            keep_order: request.keeps_order(),
                            ..Options::default()
                        };
                        let report = schedule.check_with(&options);
                        assert!(report.is_correct(), "{name}: {:?}", report.errors);
                        let time = schedule.simulate(&cost).unwrap().makespan();
                        assert_eq!(streamed, time, "{name}");
                        let mut steps = schedule.programs().iter().flatten();
                        assert_eq!(several, steps.any(|s| s.port() > Some(0)), "{name}");
                        checked += 1;
                        if keep_order {
                            continue;
                        }
                        if let Some(closed) = algorithm.closed_form(&request) {
                            assert_eq!(time, closed, "{name}");
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 10_000 && compared > 5000, "{checked}, {compared}");
}

#[test]
fn rows_that_use_several_ports_deliver_irregular_blocks_and_real_data() {
    let mut ran = 0;
    for p in [1, 2, 3, 5, 8, 9, 10] {
        let mut team = Team::new(p).unwrap();
        for algorithm in rows() {
            for ports in [Ports::UNI.with_k(2), Ports::BI.with_k(3)] {
                let blocks: Vec<usize> = (0..p).map(|r| (r * 7 + 3) % (p + 2)).collect();
                let elements = match algorithm.collective {
                    Kind::ReduceScatter => blocks.iter().sum(),
                    _ => blocks.iter().copied().max().unwrap(),
                };
                let blocks = algorithm.collective.has_blocks().then_some(blocks);
                let request = Request::new(algorithm.collective, p, elements)
                    .ports(ports)
                    .segment_count(3)
                    .blocks(blocks)
                    .root(p / 2)
                    .cost(CostModel::new(10.0, 2.0).gamma(3.0));
                let Ok(schedule) = algorithm.plan(&request) else {
                    continue;
                };
                let mut steps = schedule.programs().iter().flatten();
                if !steps.any(|step| step.port() > Some(0)) {
                    continue;
                }
                let name = format!("{} {request:?}", algorithm.name);
                let sum = Operator::<u64>::named("sum").unwrap();
                let data = inputs(schedule.collective(), schedule.layout(), &sum);
                let outcome = Run::new(&schedule)
                    .op(&sum)
                    .inputs(&data)
                    .cost(request.get_cost().clone())
                    .on(&mut team)
                    .unwrap();
                let expected = oracle(schedule.collective(), schedule.layout(), &sum, &data);
                assert_eq!(outcome.outputs, expected.unwrap(), "{name}");
                let time = schedule.simulate_bytes(request.get_cost(), 8).unwrap();
                assert_eq!(outcome.model_time, time.makespan(), "{name}");
                ran += 1;
            }
        }
    }
    assert!(ran > 100, "only {ran} schedules run");
}

/// The smallest time of all rows.
fn best(kind: Kind, p: usize, elements: usize, k: usize, alpha: f64, beta: f64) -> f64 {
    let request = Request::new(kind, p, elements)
        .ports(Ports::BI.with_k(k))
        .cost(CostModel::new(alpha, beta));
    let time = |a: &Algorithm| {
        Some(
            a.plan(&request)
                .ok()?
                .simulate(request.get_cost())
                .ok()?
                .makespan(),
        )
    };
    registry::of(kind)
        .filter_map(time)
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn each_collective_uses_all_ports() {
    for (k, p, rounds) in [
        (1, 8, 3.0),
        (2, 27, 3.0),
        (3, 16, 2.0),
        (2, 20, 3.0),
        (3, 50, 3.0),
    ] {
        for kind in KINDS.into_iter().filter(|&kind| kind != Kind::Scan) {
            // An allreduce for other numbers of ranks folds some of them.
            let is_power = (k + 1usize).pow(rounds as u32) == p;
            if kind != Kind::Allreduce || is_power {
                assert_eq!(
                    best(kind, p, 2 * p, k, 1.0, 0.0),
                    rounds,
                    "{kind} p={p} k={k}"
                );
            }
        }
        let share = (p - 1).div_ceil(k) as f64;
        for (kind, elements, volume) in [
            (Kind::Allgather, 1, share),
            (Kind::Alltoall, 1, share),
            (Kind::ReduceScatter, p, share),
            (Kind::Allreduce, p, 2.0 * share),
        ] {
            assert_eq!(
                best(kind, p, elements, k, 0.0, 1.0),
                volume,
                "{kind} p={p} k={k}"
            );
        }
    }
}
