//! Late ranks, latency and eager sends against published figures and closed forms.
//! `rules.rs` compares them with an evaluator of its own.

use oneport::machine::{Eager, Links, TransferCost};
use oneport::plan::choose;
use oneport::plan::registry::{self, MadeFor};
use oneport::run::{Clock, Endpoint, Op, Run, ScopeOptions, Team};
use oneport::simulate::stream;
use oneport::{CostModel, Kind, Ports, Request};

use crate::support::cases::cases;
use crate::support::random::Random;

/// Messages that take 1 and have this latency.
fn unit(latency: f64) -> CostModel {
    CostModel::new(1.0, 0.0).latency(latency)
}

fn makespan(request: &Request, algorithm: &str) -> f64 {
    let schedule = request.plan(algorithm).unwrap();
    schedule.simulate(request.get_cost()).unwrap().makespan()
}

/// LogP (Culler et al. 1993), P = 8, L = 6, o = 2, g = 4: ranks are informed at these times.
#[test]
fn logp_broadcast() {
    // alpha = max(o, g), and the latency is what is left of L + 2 o.
    let cost = CostModel::new(4.0, 0.0).latency(6.0).eager(Eager::All);
    let request = Request::broadcast(8, 1).cost(cost.clone());
    let schedule = request.plan("postal").unwrap();
    let simulation = schedule.simulate(&cost).unwrap();
    let mut times = vec![0.0];
    for rank in 1..8 {
        let event = oneport::rules::Event::transferred(0);
        let node = simulation.prepared().node(rank, event).unwrap();
        times.push(simulation.finish(node));
    }
    times.sort_by(f64::total_cmp);
    assert_eq!(times, [0.0, 10.0, 14.0, 18.0, 20.0, 22.0, 24.0, 24.0]);
}

/// The postal model (Bar-Noy, Kipnis 1994): the least time of a broadcast to n ranks, which is also
/// that of a reduction.
#[test]
fn postal_trees() {
    let cases = [
        (2.5, [6.0, 7.5, 8.0, 9.5, 12.5, 18.0]),
        (2.0, [5.0, 7.0, 7.0, 8.0, 11.0, 16.0]),
        (3.0, [7.0, 9.0, 9.0, 11.0, 14.0, 20.0]),
        (4.0, [9.0, 10.0, 11.0, 13.0, 17.0, 24.0]),
        (1.0, [3.0, 4.0, 4.0, 5.0, 7.0, 10.0]),
    ];
    for (lambda, times) in cases {
        for (p, time) in [8, 14, 16, 32, 100, 1024].into_iter().zip(times) {
            let cost = unit(lambda - 1.0).eager(Eager::All);
            for request in [Request::broadcast(p, 1), Request::reduce(p, 1)] {
                let request = request.cost(cost.clone());
                assert_eq!(makespan(&request, "postal"), time, "{request:?}");
                assert_eq!(makespan(&request.keep_order(true), "postal"), time);
            }
            let waits = Request::broadcast(p, 1).cost(unit(lambda - 1.0));
            assert_eq!(makespan(&waits, "postal"), time + lambda - 1.0);
        }
    }
}

/// The least time of all trees along which `cost` lets `p` ranks broadcast or reduce, by trying
/// every order of messages. Only neighbours merge if `in_order`.
fn least(request: &Request, in_order: bool) -> f64 {
    let cost = request.get_cost();
    let transfer = cost.transfer_cost(0, 1, 1);
    let arrive = |rank| (rank, cost.arrival(rank));
    let parts: Vec<_> = (0..request.ranks()).map(arrive).collect();
    let root = request.get_root();
    match request.get_collective() {
        Kind::Broadcast => {
            let late = parts.iter().filter(|part| part.0 != root);
            let late: Vec<f64> = late.map(|part| part.1).collect();
            least_broadcast(transfer, &[parts[root].1], &late, 0.0)
        }
        _ => least_reduction(transfer, cost.combine(0, 1), root, &parts, in_order),
    }
}

/// The rank that has a partial result, and when.
type Part = (usize, f64);

fn least_broadcast(transfer: TransferCost, from: &[f64], to: &[f64], end: f64) -> f64 {
    if to.is_empty() {
        return from.iter().copied().fold(end, f64::max);
    }
    let mut least = f64::INFINITY;
    for s in 0..from.len() {
        for d in 0..to.len() {
            let [sent, received] = transfer.ends(from[s], to[d]);
            let (mut from, mut to) = (from.to_vec(), to.to_vec());
            from[s] = sent;
            from.push(received);
            to.remove(d);
            least = least.min(least_broadcast(transfer, &from, &to, end.max(received)));
        }
    }
    least
}

fn least_reduction(
    transfer: TransferCost,
    combine: f64,
    root: usize,
    parts: &[Part],
    in_order: bool,
) -> f64 {
    if let [one] = parts {
        return one.1;
    }
    let mut least = f64::INFINITY;
    for from in 0..parts.len() {
        for to in 0..parts.len() {
            if from == to || parts[from].0 == root || in_order && from.abs_diff(to) > 1 {
                continue;
            }
            let ready = transfer.ends(parts[from].1, parts[to].1)[1] + combine;
            let mut left = parts.to_vec();
            left[to].1 = ready;
            left.remove(from);
            least = least.min(least_reduction(transfer, combine, root, &left, in_order));
        }
    }
    least
}

/// Random requests of few ranks, with latency or late ranks.
fn few(random: &mut Random, latency: bool) -> Request {
    let p = 1 + random.below(6);
    let reduces = random.one_in(2);
    let whole = |n: usize| n as f64 / 2.0;
    let mut cost = unit(if latency { whole(random.below(7)) } else { 0.0 });
    if reduces {
        cost = cost.gamma(whole(random.below(3)));
    }
    if random.one_in(2) {
        cost = cost.eager(Eager::All);
    }
    if !latency || !reduces {
        cost = cost.arrivals((0..p).map(|_| whole(random.below(8))).collect());
    }
    let request = if reduces {
        Request::reduce(p, 1)
    } else {
        Request::broadcast(p, 1)
    };
    let order = reduces && random.one_in(2);
    request.root(random.below(p)).keep_order(order).cost(cost)
}

/// No tree takes less, found by trying all.
#[test]
fn trees_for_late_ranks_and_latency_are_best() {
    let mut random = Random::new(11);
    for _ in 0..cases(300, 3000) {
        let late = few(&mut random, false);
        let time = least(&late, late.get_keep_order());
        assert_eq!(makespan(&late, "arrival-tree"), time, "{late:?}");
        // Latency: a broadcast may have late ranks, too.
        let far = few(&mut random, true);
        let reduces = far.get_collective().reduces();
        let name = if reduces { "postal" } else { "arrival-tree" };
        let time = least(&far, far.get_keep_order());
        assert_eq!(makespan(&far, name), time, "{far:?}");
        let planned = far.plan(name).unwrap();
        assert!(planned.check().is_correct());
        assert!(planned.check().keeps_order || !far.get_keep_order());
    }
}

/// Order and root cost a postal reduction nothing, unless receivers are kept while senders hear of
/// them.
#[test]
fn postal_reductions_in_rank_order_take_the_time_of_any_order() {
    let mut random = Random::new(29);
    for case in 0..cases(60, 600) {
        let p = [2, 3, 7, 40, 333][case % 5] + random.below(3);
        let quarter = |n: usize| n as f64 / 4.0;
        let cost = CostModel::new(quarter(1 + random.below(9)), 0.0);
        let cost = cost.latency(quarter(random.below(40)));
        let cost = if random.one_in(2) {
            cost.eager(Eager::All)
        } else {
            cost
        };
        let any = Request::reduce(p, 1).cost(cost.gamma(quarter(random.below(5))));
        let time = makespan(&any, "postal");
        for root in [0, 1, p / 2, random.below(p), p - 1] {
            let ordered = any.clone().root(root).keep_order(true);
            let in_order = makespan(&ordered, "postal");
            let waits = any.get_cost().sends_eagerly() == Eager::None;
            let is_more = waits && any.get_cost().latency_between(0, 1) > 0.0;
            assert!(
                in_order == time || is_more && in_order > time,
                "{ordered:?}"
            );
            let forwarded = time + any.get_cost().transfer_cost(0, 1, 1).ends(0.0, 0.0)[1];
            assert!(in_order <= forwarded, "{ordered:?}: {in_order} {time}");
        }
    }
}

/// Golumbic 1976: `ceil(log2 sum 2^a)` for arrivals `a` in units of a message.
#[test]
fn reductions_with_late_ranks() {
    let late = |arrivals: &[f64], root| {
        let cost = unit(0.0).arrivals(arrivals.to_vec());
        Request::reduce(arrivals.len(), 1).root(root).cost(cost)
    };
    let one_late = |by: f64| [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, by];
    for (arrivals, time) in [
        (one_late(0.0), 3.0),
        (one_late(1.0), 4.0),
        (one_late(2.0), 4.0),
        (one_late(3.0), 4.0),
        (one_late(5.0), 6.0),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8.0),
        ([0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0], 5.0),
    ] {
        for root in [0, 7] {
            assert_eq!(makespan(&late(&arrivals, root), "arrival-tree"), time);
        }
    }
    let mut random = Random::new(3);
    for p in [1, 2, 17, 200, 1024, 3000] {
        let arrivals: Vec<f64> = (0..p).map(|_| random.below(12) as f64).collect();
        let sum: f64 = arrivals.iter().map(|a| a.exp2()).sum();
        let request = late(&arrivals, p / 2);
        assert_eq!(makespan(&request, "arrival-tree"), sum.log2().ceil());
        let in_order = makespan(&request.keep_order(true), "arrival-tree");
        assert!(in_order >= sum.log2().ceil() && in_order <= sum.log2().ceil() + 1.0);
    }
}

/// StragglAR (arXiv 2505.23523): `p + log2 p - 2` messages of a share after the last arrival.
#[test]
fn allreduce_with_one_late_rank() {
    for p in [2usize, 4, 8, 16, 32, 64, 256] {
        for late in [0, p / 3, p - 1] {
            let shares = p - 1;
            let mut arrivals = vec![0.0; p];
            arrivals[late] = 10.0 * shares as f64;
            let cost = CostModel::new(0.0, 1.0).arrivals(arrivals);
            let request = Request::allreduce(p, shares).cost(cost.clone());
            let after = makespan(&request, "straggler") - cost.last_arrival();
            let rounds = p + p.ilog2() as usize - 2;
            assert_eq!(after, rounds as f64, "{p} ranks");
            assert!(request.plan("straggler").unwrap().check().is_correct());
        }
    }
}

/// Algorithms for late ranks and latency are chosen there, and are no candidates elsewhere.
#[test]
fn rows_are_candidates_of_the_machines_that_they_are_made_for() {
    let best = |request: Request| choose::choose(&request).unwrap().algorithm.name();
    let late = |by: f64| CostModel::new(1.0, 1.0).arrivals([[0.0; 7].as_slice(), &[by]].concat());
    assert_eq!(
        best(Request::allreduce(8, 7000).cost(late(1e6))),
        "straggler"
    );
    let arrivals = (0..13).map(|rank| f64::from(rank * 5 % 13));
    let staggered = CostModel::new(3.0, 0.0).arrivals(arrivals.collect());
    for request in [Request::broadcast(13, 1), Request::reduce(13, 1)] {
        assert_eq!(
            best(request.root(6).cost(staggered.clone())),
            "arrival-tree"
        );
    }
    for request in [Request::broadcast(14, 1), Request::reduce(14, 1)] {
        assert_eq!(best(request.cost(unit(3.0).eager(Eager::All))), "postal");
    }
    for kind in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
        let ideal = CostModel::new(1.0, 1.0);
        let all = registry::candidates(kind, &ideal, 8);
        assert!(all.into_iter().all(|a| a.made_for == MadeFor::AnyMachine));
    }
}

/// A row whose plan depends on the arrivals is as fast as its plan for ranks that arrive together.
#[test]
fn plans_for_late_ranks_are_no_worse_than_those_without() {
    let mut random = Random::new(31);
    let mut faster = 0;
    for case in 0..cases(12, 100) {
        let p = 3 + random.below(6);
        let ports = [Ports::UNI, Ports::BI, Ports::UNI.with_k(2)][case % 3];
        let together = CostModel::new(random.below(8) as f64, 1.0).gamma(random.below(2) as f64);
        let together = together.latency((random.below(3) * 4) as f64);
        let arrivals = (0..p)
            .map(|_| (random.below(3) * random.below(20)) as f64)
            .collect();
        let late = together.clone().arrivals(arrivals);
        for algorithm in registry::all().iter().filter(|a| a.for_arrivals) {
            let request = Request::new(algorithm.collective, p, 1 + random.below(9)).ports(ports);
            let request = request.root(random.below(p));
            if algorithm.accepts(&request).is_err() {
                continue;
            }
            let time = |cost: &CostModel| {
                let schedule = algorithm.plan(&request.clone().cost(cost.clone())).unwrap();
                schedule.simulate(&late).unwrap().makespan()
            };
            let [anew, before] = [&late, &together].map(time);
            assert!(
                anew <= before,
                "{} {request:?}: {anew} {before}",
                algorithm.name()
            );
            faster += usize::from(anew < before);
        }
    }
    assert!(faster > 0);
}

/// Plans for unidirectional ports are compared by their times on the ports that perform them, where
/// both directions can be used at once.
#[test]
fn plans_for_late_ranks_are_compared_on_the_ports_that_perform_them() {
    for (name, p, late) in [("gossip", 9, [0, 15]), ("composed", 7, [2, 70])] {
        let request = Request::allreduce(p, 64).ports(Ports::BI);
        let together = CostModel::new(1.0, 1.0);
        let mut arrivals = vec![0.0; p];
        arrivals[late[0]] = late[1] as f64;
        let cost = together.clone().arrivals(arrivals);
        let [anew, before] = [&cost, &together].map(|known| {
            let schedule = request.clone().cost(known.clone()).plan(name).unwrap();
            schedule.simulate(&cost).unwrap().makespan()
        });
        assert!(anew <= before, "{name}: {anew} {before}");
    }
}

/// A binomial reduction whose late rank is its deepest takes `max a + log2 p`.
#[test]
fn binomial_reduction_with_a_late_rank() {
    for (p, rounds) in [(2, 1.0), (8, 3.0), (32, 5.0)] {
        let schedule = Request::reduce(p, 1).plan("binomial").unwrap();
        for late in [1.0, 2.5, 40.0] {
            let mut arrivals = vec![0.0; p];
            arrivals[p - 1] = late;
            let cost = CostModel::new(1.0, 0.0).arrivals(arrivals);
            assert_eq!(schedule.simulate(&cost).unwrap().makespan(), late + rounds);
        }
    }
}

/// Ranks that all arrive at the same time take the time of today and that; one rank, too.
#[test]
fn equal_arrivals_shift_time() {
    let cost = CostModel::new(3.0, 1.0).gamma(2.0);
    for p in [1, 2, 5, 8] {
        let schedule = Request::allreduce(p, 16).plan("ring").unwrap();
        let ideal = schedule.simulate(&cost).unwrap().makespan();
        let late = cost.clone().arrivals(vec![7.0; p]);
        assert_eq!(schedule.simulate(&late).unwrap().makespan(), ideal + 7.0);
        let streamed = stream(&schedule, &late, 1, |_| ()).unwrap();
        assert_eq!(streamed.time, ideal + 7.0);
        let outcome = Run::<u64>::new(&schedule).op(Op::SUM).cost(late.clone());
        let outcome = outcome.on(&mut Team::new(p).unwrap()).unwrap();
        assert_eq!(
            outcome.model_time,
            schedule.simulate(&late).unwrap().makespan()
        );
    }
}

#[test]
fn bad_delays_are_named() {
    let schedule = Request::reduce(4, 1).plan("binomial").unwrap();
    let eager = CostModel::new(1.0, 1.0).eager(Eager::All);
    let paced = ScopeOptions {
        clock: Clock::Paced,
        cost: eager,
        ..ScopeOptions::default()
    };
    let mut buffers = vec![vec![0u64]; 4];
    let program = |_: &mut Endpoint<u64>| Ok(());
    let refused = Team::new(4).unwrap().scope(&mut buffers, &paced, program);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("leave eager sends out"), "{refused}");
    let error = |cost: CostModel| schedule.simulate(&cost).unwrap_err().to_string();
    let cost = || CostModel::new(1.0, 1.0);
    for (cost, what) in [
        (cost().latency(-1.0), "latency is -1.0"),
        (cost().latency(f64::NAN), "latency is NaN"),
        (
            cost().arrivals(vec![0.0, f64::INFINITY, 0.0, 0.0]),
            "arrival of rank 1 is inf",
        ),
        (
            cost().arrivals(vec![1.0; 3]),
            "arrivals are those of 3 ranks, but there are 4",
        ),
    ] {
        let error = error(cost);
        assert!(error.contains(what), "{error}");
    }
}

/// Processes of a run compare their cost models by what these show for debugging, so every part of
/// a model has to show.
#[test]
fn every_part_of_a_cost_model_shows() {
    let linear = || CostModel::new(1.0, 2.0);
    let links = |latency: f64, gamma: f64| {
        CostModel::heterogeneous(Links {
            alpha: vec![vec![Some(1.0); 3]; 3],
            beta: vec![vec![Some(2.0); 3]; 3],
            gamma: vec![gamma; 3],
            latency: vec![vec![0.0; 3], vec![0.0, 0.0, latency], vec![0.0; 3]],
            ..Links::default()
        })
        .unwrap()
    };
    let models = [
        linear(),
        CostModel::new(1.5, 2.0),
        CostModel::new(1.0, 2.5),
        linear().gamma(0.5),
        linear().gamma_copy(0.5),
        linear().overlap(true),
        linear().latency(3.0),
        linear().eager(Eager::All),
        linear().eager(Eager::UpTo(7)),
        linear().eager(Eager::UpTo(8)),
        linear().arrivals(vec![0.0, 4.0, 9.0]),
        linear().arrivals(vec![4.0, 0.0, 9.0]),
        links(0.0, 0.0),
        links(0.0, 1.0),
        links(6.0, 0.0),
        links(7.0, 0.0),
    ];
    for (i, one) in models.iter().enumerate() {
        for (j, other) in models.iter().enumerate() {
            assert_eq!(
                i == j,
                format!("{one:?}") == format!("{other:?}"),
                "{one:?}"
            );
        }
    }
}
