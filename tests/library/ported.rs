//! Tests of every registered algorithm on ranks with several ports: schedules are correct, take the
//! time of their closed forms, and each collective has rows that use all ports.

use oneport::check::Options;
use oneport::plan::choose;
use oneport::plan::registry::{self, Algorithm, PortModels};
use oneport::run::Team;
use oneport::simulate::bounds::lower_bound;
use oneport::{CostModel, Kind, Ports, Request, Schedule};

use super::registry::assert_delivers;
use crate::support::cases::cases;
use crate::support::random::Random;
use crate::support::ranks::rank_counts;
use crate::support::sample::Sample;

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
    if request.get_collective().reduces() {
        cost
    } else {
        cost.gamma(0.0)
    }
}

#[test]
fn schedules_are_correct_and_take_their_closed_forms() {
    let (mut checked, mut compared, mut sample) = (0, 0, Sample::each(3));
    for algorithm in rows() {
        for p in cases(vec![1, 2, 4, 5, 9, 16, 27], rank_counts()) {
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
                        if algorithm.accepts(&request).is_err() || !sample.takes() {
                            continue;
                        }
                        let name = format!("{} {request:?}", algorithm.name());
                        let planned = algorithm.planned(&request).unwrap();
                        let cost = effective(&request);
                        let streamed = planned.timed(&cost, |_| ()).unwrap().time;
                        let several = planned.uses_several_ports();
                        let schedule = planned.materialize().unwrap();
                        let options = Options {
                            keep_order: request.get_keep_order(),
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
    assert!(checked > 1000 && compared > 500, "{checked}, {compared}");
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
                let name = format!("{} {request:?}", algorithm.name());
                assert_delivers(&schedule, &request, &mut team, &name);
                ran += 1;
            }
        }
    }
    assert!(ran > 100, "only {ran} schedules run");
}

/// Elements of a vector of `p` parts of `q` elements, or of a block of `q` elements.
fn elements_of(kind: Kind, p: usize, q: usize) -> usize {
    match kind {
        Kind::Allgather | Kind::Alltoall => q,
        _ => p * q,
    }
}

/// The smallest time of all rows, in `q` segments.
fn best_time(kind: Kind, p: usize, q: usize, ports: Ports, cost: &CostModel) -> f64 {
    let elements = elements_of(kind, p, q);
    let request = Request::new(kind, p, elements)
        .segment_count(q)
        .ports(ports)
        .cost(cost.clone());
    let time = |a: &Algorithm| {
        let planned = a.planned(&request).ok()?;
        Some(planned.timed(cost, |_| ()).unwrap().time)
    };
    // Rows whose planning is a search have one port.
    registry::of(kind)
        .filter(|a| a.planning_work == 1)
        .filter_map(time)
        .fold(f64::INFINITY, f64::min)
}

/// For each collective how far the best rows are from the lower bounds at most: in rounds for one
/// segment, and in volume for `32 k` segments. The bound of the volume is that of one port, over
/// `k`.
#[test]
fn each_collective_comes_close_to_its_bounds_through_all_ports() {
    let (few, many) = (CostModel::new(1.0, 0.0), CostModel::new(0.0, 1.0));
    let mut wrong = Vec::new();
    for (ports, kind, max_rounds, max_volume) in [
        (Ports::BI, Kind::Broadcast, 1.0, 1.13),
        (Ports::BI, Kind::Reduce, 1.0, 1.13),
        (Ports::BI, Kind::Allgather, 1.0, 1.0),
        (Ports::BI, Kind::ReduceScatter, 1.0, 1.0),
        (Ports::BI, Kind::Allreduce, 1.0, 1.0),
        (Ports::BI, Kind::Alltoall, 1.0, 1.0),
        (Ports::UNI, Kind::Broadcast, 1.0, 2.0),
        (Ports::UNI, Kind::Reduce, 1.0, 2.0),
        (Ports::UNI, Kind::Allgather, 2.0, 1.0),
        (Ports::UNI, Kind::ReduceScatter, 2.0, 1.0),
        (Ports::UNI, Kind::Allreduce, 2.0, 1.0),
        (Ports::UNI, Kind::Alltoall, 2.67, 1.0),
    ] {
        let (mut rounds, mut volume) = ((0.0, 0, 0), (0.0, 0, 0));
        for k in 1..=4 {
            for p in [3, 4, 5, 8, 9, 27] {
                let bound = |ports: Ports, q, cost| {
                    lower_bound(kind, ports, p, elements_of(kind, p, q), 1, cost).largest
                };
                let time = |q, cost| best_time(kind, p, q, ports.with_k(k), cost);
                let worst = |a: (f64, usize, usize), b: f64| if b > a.0 { (b, p, k) } else { a };
                rounds = worst(rounds, time(1, &few) / bound(ports.with_k(k), 1, &few));
                let q = 32 * k;
                volume = worst(volume, time(q, &many) * k as f64 / bound(ports, q, &many));
            }
        }
        if rounds.0 > max_rounds || volume.0 > max_volume {
            wrong.push(format!(
                "{ports:?} {kind}: rounds {rounds:?}, volume {volume:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "ratio, p and k:\n{}", wrong.join("\n"));
}

/// Every way to give a rank ports refuses numbers that no rank can have.
#[test]
fn ports_that_no_rank_can_have_are_refused() {
    let cost = CostModel::new(1.0, 1.0);
    for k in [0, Ports::MAX_K + 1, 1 << 40, 1 << 63, usize::MAX] {
        for ports in [Ports::UNI.with_k(k), Ports::BI.with_k(k)] {
            for a in registry::all() {
                let request = Request::new(a.collective, 4, 10).ports(ports);
                assert!(a.plan(&request).unwrap_err().is_usage(), "{}", a.name());
                assert!(a.planned(&request).is_err(), "{}", a.name());
            }
            let request = Request::reduce(4, 10).ports(ports);
            assert!(request.plan_best(&cost).is_err());
            let mut b = Schedule::broadcast(2, 4);
            let schedule = b.clone().build().unwrap();
            b.ports(ports);
            for refused in [b.build(), schedule.with_ports(ports)] {
                let error = refused.unwrap_err();
                assert!(error.is_usage(), "{error}");
                assert!(error.to_string().contains(&format!("not {k}")), "{error}");
            }
        }
    }
}

/// Ports may stay idle, so that more of them never take longer.
#[test]
fn more_ports_never_take_longer() {
    let (mut worse, mut compared) = (Vec::new(), 0);
    let kinds = Kind::ALL.into_iter();
    for kind in kinds.filter(|&kind| registry::of(kind).next().is_some()) {
        for p in cases(vec![2, 5, 8], (2..=16).collect()) {
            for (m, gamma) in [(1, 0.0), (40_000, 0.5)] {
                let cost = CostModel::new(1000.0, 1.0).gamma(gamma);
                let choice = |ports: Ports| {
                    let request = Request::new(kind, p, m).ports(ports).cost(cost.clone());
                    choose::choose(&request).unwrap()
                };
                for ports in [Ports::UNI, Ports::BI] {
                    let mut before = choice(ports).time;
                    for k in 2..=6 {
                        let ports = ports.with_k(k);
                        let now = choice(ports);
                        let schedule = now.algorithm.plan(&now.request).unwrap();
                        let time = schedule.simulate(&effective(&now.request)).unwrap();
                        assert_eq!((schedule.ports(), time.makespan()), (ports, now.time));
                        if now.time > before {
                            let name = now.algorithm.name();
                            worse.push(format!("{kind} {name} p={p} m={m} {ports:?}"));
                        }
                        before = now.time;
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(worse.is_empty(), "{compared}: {}", worse.join("\n"));
}

#[test]
fn pairs_of_ports_take_the_time_of_bidirectional_ones() {
    let cost = CostModel::new(10.0, 1.0).gamma(0.5);
    for name in ["bruck", "circulant-blocks"] {
        let algorithm = registry::find(Kind::Allgather, name).unwrap();
        for (p, k) in [(9, 1), (16, 2), (27, 1)] {
            let request = Request::allgather(p, 12).cost(cost.clone());
            let [pairs, whole] = [
                request.clone().ports(Ports::UNI.with_k(2 * k)),
                request.ports(Ports::BI.with_k(k)),
            ]
            .map(|request| {
                let planned = algorithm.planned(&request).unwrap();
                let schedule = algorithm.plan(&request).unwrap();
                assert!(schedule.check().is_correct());
                let time = schedule.simulate(&cost).unwrap().makespan();
                assert_eq!(planned.timed(&cost, |_| ()).unwrap().time, time);
                assert_eq!(planned.materialize().unwrap(), schedule);
                time
            });
            assert_eq!(pairs, whole, "{name} p={p} k={k}");
        }
    }
}

#[test]
fn an_odd_port_is_in_no_pair() {
    let request = |k| Request::allgather(4, 12).ports(Ports::UNI.with_k(k));
    assert!(request(1).plan("circulant-blocks").is_err());
    let uses_third = |name: &str| {
        let schedule = request(3).plan(name).unwrap();
        let mut steps = schedule.programs().iter().flatten();
        assert_eq!(schedule.ports(), Ports::UNI.with_k(3));
        steps.any(|step| step.port() == Some(2))
    };
    assert!(!uses_third("circulant-blocks") && uses_third("all-pairs"));
}

/// An algorithm that has the schedules of another one uses ports as that does.
#[test]
fn equal_schedules_use_the_same_ports() {
    let cost = CostModel::new(0.0, 1.0).gamma(2.0).overlap(true);
    for k in 1..5 {
        let scan = Request::scan(33, 5000).ports(Ports::UNI.with_k(k));
        let scan = scan.cost(cost.clone());
        let time = |name: &str| scan.time(name).unwrap();
        assert_eq!(time("synthesized"), time("recursive-doubling"), "{k} ports");
    }
}

#[test]
fn rows_say_whether_they_depend_on_the_number_of_ports() {
    // A gossip is the best allgather for the ports.
    for algorithm in registry::all().iter().filter(|a| a.name() != "gossip") {
        let kind = algorithm.collective;
        let ports = if algorithm.ports.allow(Ports::BI) {
            Ports::BI
        } else {
            Ports::UNI
        };
        let differ = [5, 12].into_iter().any(|p| {
            let sizes: Vec<usize> = (0..p).map(|r| 3 * r % 7).collect();
            let elements = if kind.reduces() && kind.has_blocks() {
                sizes.iter().sum()
            } else {
                30
            };
            let irregular = kind.has_blocks();
            let request = Request::new(kind, p, elements)
                .segment_count(4)
                .blocks(irregular.then_some(sizes));
            let plan = |k| {
                let request = request.clone().ports(ports.with_k(k));
                algorithm.plan(&request).unwrap().programs().to_vec()
            };
            let one = plan(1);
            (2..=4).any(|k| plan(k) != one)
        });
        assert_eq!(differ, algorithm.k_ported, "{kind} {}", algorithm.name());
    }
}

/// A random request of few ranks with `k` ports of each kind.
fn few_ranks(random: &mut Random, k: usize) -> Request {
    let planned: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|&kind| registry::of(kind).next().is_some())
        .collect();
    let kind = planned[random.below(planned.len())];
    let p = 2 + random.below(7);
    let m = [1, 2, 7, 60, 64, 700, 1000][random.below(7)];
    let mut cost = CostModel::new([0.0, 1.0, 10.0, 100.0][random.below(4)], 1.0);
    if random.one_in(2) {
        cost = cost.gamma([0.5, 1.0][random.below(2)]);
    }
    cost = cost.overlap(random.below(6) == 0);
    if random.below(3) == 0 {
        cost = cost.latency([0.0, 1.0, 7.0][random.below(3)]);
        cost = cost.arrivals((0..p).map(|_| random.below(20) as f64).collect());
    }
    let mut request = Request::new(kind, p, m).cost(cost).root(random.below(p));
    if kind.has_blocks() && random.one_in(2) {
        let blocks = if kind == Kind::Alltoall { p * p } else { p };
        let sizes = (0..blocks).map(|_| [0, 1, 5, 30, 300][random.below(5)]);
        request = request.blocks(Some(sizes.collect()));
    }
    if kind.with_root(0).root().is_some() && random.below(4) == 0 {
        request = request.free_root(true);
    }
    request
        .keep_order(kind.reduces() && random.one_in(2))
        .ports(Ports::BI.with_k(k))
}

/// What unidirectional ports can do, as many bidirectional ones can do.
#[test]
fn bidirectional_ports_are_at_least_as_fast_as_as_many_unidirectional_ones() {
    let best = |request: &Request| choose::choose(request).unwrap();
    let mut random = Random::new(37);
    let found_before = [
        Request::reduce(4, 60)
            .root(3)
            .keep_order(true)
            .cost(CostModel::new(10.0, 1.0)),
        Request::alltoall(2, 0)
            .blocks(vec![0, 700, 0, 0])
            .cost(CostModel::new(1.0, 1.0)),
    ];
    let found_before = found_before.map(|request| request.ports(Ports::BI.with_k(3)));
    // One port for each direction, and late ranks.
    let mut arrivals = vec![0.0; 9];
    arrivals[0] = 15.0;
    let late = CostModel::new(10.0, 0.5).gamma(0.5).latency(7.0);
    let late = Request::reduce_scatter(9, 1).cost(late.arrivals(arrivals));
    let found_before = found_before.into_iter().chain([late]);
    let drawn = (0..cases(60, 4000)).map(|case| few_ranks(&mut random, 1 + case % 4));
    let mut in_one_direction = 0;
    for request in found_before.chain(drawn) {
        let uni = Ports::UNI.with_k(request.get_ports().k());
        let [one, both] =
            [uni, request.get_ports()].map(|ports| best(&request.clone().ports(ports)));
        assert!(
            both.time <= one.time * (1.0 + 1e-12),
            "{}: {}, {}: {} for {request:?}",
            one.algorithm.name(),
            one.time,
            both.algorithm.name(),
            both.time
        );
        let cost = request.get_cost();
        let schedule = both.algorithm.plan(&both.request).unwrap();
        assert!(
            schedule
                .check_with(&Options {
                    overlap: cost.overlaps(),
                    ..Options::default()
                })
                .is_correct()
        );
        assert_eq!(
            schedule.simulate(cost).unwrap().makespan(),
            both.time,
            "{request:?}"
        );
        in_one_direction += usize::from(both.algorithm.ports == PortModels::Uni);
    }
    assert!(in_one_direction > 2, "{in_one_direction}");
}
