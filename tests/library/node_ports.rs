//! Tests of nodes with few ports, which their ranks share: orders, reversal, times, and runs.

use oneport::plan::registry;
use oneport::rules::Event;
use oneport::run::{Clock, Run, Team, TeamOptions, Workers};
use oneport::simulate::{Prepared, Simulation};
use oneport::{CostModel, Kind, Ports, Request, Schedule};

use crate::support::random::Random;

/// A transfer of a rank: its step, and when it takes place.
struct Crossing {
    rank: usize,
    step: usize,
    peer: usize,
    sends: bool,
    start: f64,
    end: f64,
}

/// The transfers of all ranks whose partners are in other nodes.
fn crossings(schedule: &Schedule, times: &Simulation, node_of: &[usize]) -> Vec<Crossing> {
    let mut all = Vec::new();
    for (rank, program) in schedule.programs().iter().enumerate() {
        for (step, s) in program.iter().enumerate() {
            let Some(peer) = s.peer().filter(|&peer| node_of[peer] != node_of[rank]) else {
                continue;
            };
            let node = times
                .prepared()
                .node(rank, Event::transferred(step))
                .unwrap();
            let (start, end) = (times.start(node), times.finish(node));
            all.push(Crossing {
                rank,
                step,
                peer,
                sends: s.is_send(),
                start,
                end,
            });
        }
    }
    all
}

/// Random nodes of `p` ranks, and the node of each rank.
fn random_nodes(random: &mut Random, p: usize) -> (Vec<Vec<usize>>, Vec<usize>) {
    let count = 1 + random.below(p);
    let node_of: Vec<usize> = (0..p).map(|_| random.below(count)).collect();
    let members = |node| (0..p).filter(|&rank| node_of[rank] == node).collect();
    ((0..count).map(members).collect(), node_of)
}

/// Ports of nodes are never overcommitted, never idle while a transfer could start on them, and
/// without effect if there are as many as the ranks have.
#[test]
fn nodes_with_few_ports_serve_first_who_can_start_first() {
    let mut random = Random::new(5);
    let (mut slower, mut waited) = (0, 0);
    for algorithm in registry::all() {
        for case in 0..4 {
            let p = 2 + random.below(12);
            let ports = [Ports::UNI, Ports::BI, Ports::BI.with_k(2)][random.below(3)];
            let request = Request::new(algorithm.collective, p, 4 * p).ports(ports);
            if algorithm.accepts(&request).is_err() {
                continue;
            }
            let Ok(plain) = algorithm.plan(&request) else {
                continue;
            };
            let plain = plain.with_element_bytes(4);
            let (nodes, node_of) = random_nodes(&mut random, p);
            let k = 1 + random.below(3);
            let cost = CostModel::new(7.0, 2.0).gamma(random.below(2) as f64);
            let what = format!(
                "{} {} p={p} k={k} {nodes:?} {case}",
                algorithm.collective.name(),
                algorithm.name()
            );
            let shared = plain
                .clone()
                .with_node_ports(&nodes, k, &cost)
                .expect(&what);
            let report = shared.check();
            assert!(report.is_correct(), "{what}: {report}");
            let times = shared.simulate(&cost).unwrap();
            let timed = shared.timed(&cost, |_| ()).unwrap();
            let stats = shared.stats().unwrap();
            assert_eq!(timed.rank_times, times.rank_times(), "{what}");
            let counts = (timed.rounds, timed.messages, timed.elements);
            assert_eq!(
                counts,
                (stats.rounds, stats.messages, stats.elements),
                "{what}"
            );
            let alone = plain.simulate(&cost).unwrap();
            assert!(times.makespan() >= alone.makespan(), "{what}");
            slower += usize::from(times.makespan() > alone.makespan());
            let all = crossings(&shared, &times, &node_of);
            // How many transfers pass the ports of a node that serve this direction.
            let busy = |node: usize, sends: bool, at: f64| {
                let same = |c: &&Crossing| !ports.can_relay() || c.sends == sends;
                let of_node = all.iter().filter(|c| node_of[c.rank] == node).filter(same);
                of_node.filter(|c| c.start <= at && at < c.end).count()
            };
            let unlimited = Prepared::new(&plain, false).unwrap();
            for c in &all {
                assert!(busy(node_of[c.rank], c.sends, c.start) <= k, "{what}");
                let ready = ready(&plain, &unlimited, &times, c);
                let ends = all
                    .iter()
                    .map(|c| c.end)
                    .filter(|&end| end > ready && end < c.start);
                for at in ends.chain((ready < c.start).then_some(ready)) {
                    let mine = busy(node_of[c.rank], c.sends, at);
                    let theirs = busy(node_of[c.peer], !c.sends, at);
                    assert!(
                        mine == k || theirs == k,
                        "{what}: rank {} step {} at {at}",
                        c.rank,
                        c.step
                    );
                    waited += 1;
                }
            }
            let as_many = 12 * ports.k();
            let free = plain.with_node_ports(&nodes, as_many, &cost).unwrap();
            let free = free.simulate(&cost).unwrap();
            assert_eq!(free.rank_times(), alone.rank_times(), "{what}");
        }
    }
    assert!(slower > 50 && waited > 1000, "{slower} {waited}");
}

/// When a transfer could start for all but the ports of nodes.
fn ready(plain: &Schedule, unlimited: &Prepared, times: &Simulation, c: &Crossing) -> f64 {
    let transfer = unlimited.node(c.rank, Event::transferred(c.step)).unwrap();
    let mut ready = 0f64;
    for (rank, program) in plain.programs().iter().enumerate() {
        for i in 0..program.len() {
            for event in [Event::transferred(i), Event::computed(i)] {
                if let Some(node) = unlimited.node(rank, event)
                    && unlimited.waits(transfer).any(|wait| wait == node)
                {
                    let node = times.prepared().node(rank, event).unwrap();
                    ready = ready.max(times.finish(node));
                }
            }
        }
    }
    ready
}

#[test]
fn reversal_keeps_shared_ports() {
    let nodes = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]];
    let cost = CostModel::new(3.0, 1.0);
    for kind in [Kind::Broadcast, Kind::Scatter, Kind::Allgather] {
        for algorithm in registry::of(kind) {
            let request = Request::new(kind, 8, 16);
            let Ok(plain) = algorithm.plan(&request) else {
                continue;
            };
            let shared = plain.clone().with_node_ports(&nodes, 1, &cost).unwrap();
            let reversed = shared.reversed().unwrap();
            let report = reversed.check();
            assert_eq!(
                report.is_correct(),
                plain.reversed().unwrap().check().is_correct(),
                "{}: {report}",
                algorithm.name()
            );
            let again = reversed.reversed().unwrap();
            assert_eq!(again.shared_ports(), shared.shared_ports());
        }
    }
}

#[test]
fn nodes_that_make_no_sense_are_refused() {
    let schedule = Request::broadcast(4, 4).plan("binomial").unwrap();
    let cost = CostModel::new(1.0, 1.0);
    for (nodes, k, why) in [
        (
            vec![vec![0, 1]],
            0,
            "a node needs 1 to 4096 ports of each kind, not 0",
        ),
        (
            vec![vec![0, 1]],
            5000,
            "a node needs 1 to 4096 ports of each kind, not 5000",
        ),
        (
            vec![vec![0, 1], vec![2, 1]],
            1,
            "nodes: rank 1 is in two of them",
        ),
        (vec![vec![0, 4]], 1, "nodes: rank 4 is not one of 4 ranks"),
    ] {
        let error = schedule
            .clone()
            .with_node_ports(&nodes, k, &cost)
            .unwrap_err();
        assert!(error.is_usage());
        assert_eq!(error.to_string(), why);
    }
}

/// Overlap is a property of costs: what it allows must not deadlock without it.
#[test]
fn orders_found_under_overlap_are_free_of_deadlock() {
    let cost = CostModel::new(3.0, 1.0).gamma(1.0).overlap(true);
    for p in 4..=8 {
        for algorithm in registry::of(Kind::Allreduce) {
            let request = Request::allreduce(p, 8).cost(cost.clone());
            let Ok(plain) = algorithm.plan(&request) else {
                continue;
            };
            for elements in [0, 1] {
                let nodes = [(0..p / 2).collect(), (p / 2..p).collect::<Vec<_>>()];
                let sized = plain.clone().with_element_bytes(elements);
                let shared = sized.with_node_ports(&nodes, 1, &cost);
                let shared = shared.unwrap();
                let report = shared.check();
                assert!(
                    report.is_correct(),
                    "{} {p}: {:?}",
                    algorithm.name(),
                    report.errors
                );
                let timed = shared.timed(&cost, |_| ()).unwrap();
                assert_eq!(timed.time, shared.simulate(&cost).unwrap().makespan());
            }
        }
    }
}

/// The nodes of `n` ranks each, of consecutive ranks or dealt in turn.
fn equal_nodes(nodes: usize, n: usize, in_turn: bool) -> Vec<Vec<usize>> {
    let members = |node| {
        (0..n).map(move |i| {
            if in_turn {
                node + i * nodes
            } else {
                node * n + i
            }
        })
    };
    (0..nodes).map(|node| members(node).collect()).collect()
}

/// Model times of flat algorithms where the ranks of a node share one port of each kind.
#[test]
fn flat_algorithms_take_their_closed_forms_with_one_port_a_node() {
    let cost = CostModel::new(5.0, 1.0);
    let times = |kind, name: &str, nodes: &[Vec<usize>]| {
        let p = nodes.concat().len();
        let plain = Request::new(kind, p, 8).plan(name).unwrap();
        let shared = plain.with_node_ports(nodes, 1, &cost).unwrap();
        assert!(shared.check().is_correct());
        shared.simulate(&cost).unwrap().makespan() / 13.0
    };
    for nodes in [2usize, 3, 4, 8] {
        for n in [1usize, 2, 3, 4, 8] {
            let p = nodes * n;
            let [blocks, in_turn] = [false, true].map(|in_turn| equal_nodes(nodes, n, in_turn));
            // Along the ring, one message a round leaves a node of consecutive ranks, but all
            // messages of ranks that are dealt in turn.
            let ring = |nodes: &_| times(Kind::Allgather, "ring", nodes);
            assert_eq!(ring(&blocks), (p - 1) as f64, "{nodes} x {n}");
            assert_eq!(ring(&in_turn), (n * (p - 1)) as f64, "{nodes} x {n}");
            // Each node sends every message that is not for itself through one port. Which of them
            // comes first can leave the port idle, but not for long.
            let load = (n * (p - n)) as f64;
            for order in [&blocks, &in_turn] {
                let found = times(Kind::Alltoall, "pairwise", order);
                let bounds = load..=load * 9.0 / 8.0 + 1.0;
                assert!(bounds.contains(&found), "{nodes} x {n}: {found}, {load}");
            }
            // The first rank of each node has the vector before others of the node; dealt in turn,
            // all ranks of node 0 have it first and then send it to log2(nodes) nodes each.
            if nodes.is_power_of_two() && n.is_power_of_two() {
                let binomial = |nodes: &_| times(Kind::Broadcast, "binomial", nodes);
                let log2 = |n: usize| f64::from(n.ilog2());
                assert_eq!(binomial(&blocks), log2(p), "{nodes} x {n}");
                let serial = log2(n) + n as f64 * log2(nodes);
                assert_eq!(binomial(&in_turn), serial, "{nodes} x {n}");
            }
        }
    }
}

/// Ranks take their turns: in the model clock, and in wall-clock.
#[test]
fn runs_on_threads_keep_the_order_of_shared_ports() {
    let nodes = [vec![0, 1, 2], vec![3, 4, 5]];
    let cost = CostModel::new(200.0, 1.0);
    let workers = [Workers::Ranks, Workers::Cores];
    for ports in [Ports::UNI, Ports::BI] {
        let plain = Request::alltoall(6, 32)
            .ports(ports)
            .plan("pairwise")
            .unwrap();
        let schedule = plain.with_node_ports(&nodes, 1, &cost).unwrap();
        let expected = schedule.simulate(&cost).unwrap().rank_times();
        for workers in workers {
            let options = TeamOptions {
                workers,
                ..TeamOptions::default()
            };
            let mut team = Team::with(6, &options).unwrap();
            for clock in [Clock::Native, Clock::Paced] {
                if (workers, clock) == (Workers::Cores, Clock::Paced) {
                    continue;
                }
                let run = Run::<u8>::new(&schedule).cost(cost.clone()).clock(clock);
                let outcome = run
                    .verified()
                    .repetitions(20)
                    .trace(true)
                    .on(&mut team)
                    .unwrap();
                assert!(outcome.is_verified() && !outcome.eager);
                assert_eq!(outcome.rank_times, expected);
                let times = outcome.step_times.unwrap();
                for port in schedule.shared_ports() {
                    for pair in port.steps.windows(2) {
                        let [(_, end), (start, _)] = [pair[0], pair[1]].map(|(r, i)| times[r][i]);
                        assert!(start >= end, "{}: {pair:?} {start} {end}", port.name);
                    }
                }
            }
        }
    }
}
