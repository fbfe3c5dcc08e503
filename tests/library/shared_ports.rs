//! Tests of ports that several ranks share: files, findings of the checker, reversal, and nodes
//! with few ports. `rules.rs` compares their times with an evaluator of its own.

use oneport::check::FindingKind;
use oneport::plan::registry;
use oneport::rules::Event;
use oneport::run::{Clock, Run, Team, TeamOptions, Workers};
use oneport::schedule::{Direction, SharedPort};
use oneport::simulate::{Prepared, Simulation, stream};
use oneport::{Collective, CostModel, Kind, Ports, Request, Schedule, Span, Step};

use crate::support::random::Random;

/// A port of node 0 and 1.
fn port(name: &str, direction: Direction, steps: &[(usize, usize)]) -> SharedPort {
    SharedPort {
        name: name.into(),
        ranks: vec![0, 1],
        direction,
        steps: steps.to_vec(),
    }
}

/// A broadcast of 4 elements from rank 0 to 1 and 2, and from 1 to 3. Ranks 0 and 1 are a node.
fn broadcast(ports: Vec<SharedPort>) -> oneport::Result<Schedule> {
    let mut b = Schedule::broadcast(4, 4);
    b.transfer(0, 1, 0..4)
        .transfer(0, 2, 0..4)
        .transfer(1, 3, 0..4);
    b.build()?.with_shared_ports(ports)
}

/// Every message takes 10.
fn time(schedule: &Schedule) -> f64 {
    let cost = CostModel::new(6.0, 1.0);
    let time = schedule.simulate(&cost).unwrap().makespan();
    assert_eq!(stream(schedule, &cost, 1, |_| ()).unwrap().time, time);
    time
}

#[test]
fn listed_transfers_follow_each_other() {
    assert_eq!(time(&broadcast(vec![]).unwrap()), 20.0);
    for steps in [[(0, 1), (1, 1)], [(1, 1), (0, 1)]] {
        let schedule = broadcast(vec![port("out", Direction::Out, &steps)]).unwrap();
        assert_eq!(time(&schedule), 30.0);
        assert!(schedule.check().is_correct());
        assert_eq!(schedule.stats().unwrap().rounds, 3);
        let text = schedule.to_json();
        assert_eq!(Schedule::from_json(&text).unwrap(), schedule, "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap()["shared_ports"][0]["direction"],
            "out"
        );
    }
    // Two ports suffice, and a list of receives does as well.
    let two = [
        port("a", Direction::Out, &[(0, 1)]),
        port("b", Direction::Out, &[(1, 1)]),
    ];
    let two = broadcast(two.to_vec()).unwrap();
    assert!(two.check().is_correct());
    assert_eq!(time(&two), 20.0);
    let entering = SharedPort {
        ranks: vec![3, 2],
        ..port("in", Direction::In, &[(3, 0), (2, 0)])
    };
    let entering = broadcast(vec![entering]).unwrap();
    assert!(entering.check().is_correct());
    assert_eq!(time(&entering), 30.0);
}

#[test]
fn lists_of_what_does_not_exist_are_refused() {
    let mut b = Schedule::broadcast(2, 4);
    b.transfer(0, 1, 0..2);
    b.step(1, oneport::Step::copy(0..2, 2..4));
    let schedule = b.build().unwrap();
    for (ranks, steps, why) in [
        (vec![0, 2], vec![], "rank 2 is not one of 2 ranks"),
        (vec![1, 1], vec![], "rank 1 is named twice"),
        (vec![], vec![(0, 1)], "step 1 of rank 0 does not exist"),
        (vec![], vec![(2, 0)], "step 0 of rank 2 does not exist"),
        (vec![], vec![(1, 1)], "step 1 of rank 1 is no transfer"),
        (
            vec![],
            vec![(1, 0), (0, 0), (1, 0)],
            "step 0 of rank 1 is listed twice",
        ),
    ] {
        let port = SharedPort {
            ranks,
            steps,
            ..port("x", Direction::Both, &[])
        };
        let text = serde_json::to_string(&port).unwrap();
        let error = schedule.clone().with_shared_ports(vec![port]).unwrap_err();
        assert_eq!(error.to_string(), format!("shared port \"x\": {why}"));
        let whole = schedule
            .to_json()
            .replace(" ] }\n", &format!(" ], \"shared_ports\": [{text}] }}"));
        assert_eq!(
            Schedule::from_json(&whole).unwrap_err().to_string(),
            error.to_string()
        );
    }
}

#[test]
fn the_checker_proves_that_lists_are_whole() {
    let out = |steps: &[(usize, usize)]| port("out", Direction::Out, steps);
    let second = |steps: &[(usize, usize)]| port("second", Direction::Out, steps);
    let both = &[(0, 1), (1, 1)][..];
    for (ports, expected) in [
        (
            vec![out(&[(0, 1)])],
            "rank 1, step 1 (send to 3): leaves its node through none of its ports (out) instead of one",
        ),
        (
            vec![out(both), second(&[(1, 1)])],
            "rank 1, step 1 (send to 3): leaves its node through 2 of its ports (out, second) instead of one",
        ),
        (
            vec![out(&[(0, 0), (0, 1), (1, 1)])],
            "rank 0, step 0 (send to 1): is listed on shared port \"out\", but the message stays within its node",
        ),
        (
            vec![out(both), second(&[(2, 0)])],
            "rank 2, step 0 (recv from 0): is listed on shared port \"second\", but rank 2 is not of its node",
        ),
        (
            vec![out(both), port("in", Direction::In, &[(1, 1)])],
            "rank 1, step 1 (send to 3): is listed on shared port \"in\", but the message leaves its node",
        ),
    ] {
        let report = broadcast(ports).unwrap().check();
        let messages: Vec<_> = report.errors.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [expected]);
        assert_eq!(report.errors[0].kind, FindingKind::SharedPort);
    }
    // Ports for both directions, named by ranks in another order, are ports of the same node.
    let other = SharedPort {
        ranks: vec![1, 0],
        ..port("b", Direction::Both, &[(1, 1)])
    };
    let ports = vec![port("a", Direction::Both, &[(0, 1)]), other];
    assert!(broadcast(ports).unwrap().check().is_correct());
}

#[test]
fn the_checker_names_cycles_through_shared_ports() {
    // Rank 1 gets the vector through rank 2, after rank 0 has used the port.
    let mut b = Schedule::broadcast(4, 4);
    b.transfer(0, 2, 0..4)
        .transfer(2, 1, 0..4)
        .transfer(1, 3, 0..4);
    let ports = vec![port("uplink", Direction::Out, &[(1, 1), (0, 0)])];
    let schedule = b.build().unwrap().with_shared_ports(ports).unwrap();
    let report = schedule.check();
    assert_eq!(report.errors.len(), 1);
    let error = &report.errors[0];
    assert_eq!(error.kind, FindingKind::Deadlock);
    assert_eq!(
        error.message,
        "deadlock: rank 0 step 0 (send to 2) waits for rank 1's step 1 (send to 3) on \"uplink\"; \
         rank 1 step 1 (send to 3) waits for its step 0 (recv from 2); \
         rank 2 step 1 (send to 1) waits for its step 0 (recv from 0)"
    );
    let cycle = &error.cycle[0];
    let shared = cycle.shared_port.as_deref();
    assert_eq!((cycle.waits_for_rank, shared), (Some(1), Some("uplink")));
    let cost = CostModel::new(1.0, 1.0);
    for error in [
        schedule.simulate(&cost).map(|_| ()),
        stream(&schedule, &cost, 1, |_| ()).map(|_| ()),
    ] {
        assert!(error.unwrap_err().to_string().contains("deadlock"));
    }
}

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
            let (nodes, node_of) = random_nodes(&mut random, p);
            let k = 1 + random.below(3);
            let cost = CostModel::new(7.0, 2.0).gamma(random.below(2) as f64);
            let what = format!(
                "{} {} p={p} k={k} {nodes:?} {case}",
                algorithm.collective.name(),
                algorithm.name
            );
            let shared = plain
                .clone()
                .with_node_ports(&nodes, k, &cost, 4)
                .expect(&what);
            let report = shared.check();
            assert!(report.is_correct(), "{what}: {report}");
            let times = shared.simulate_bytes(&cost, 4).unwrap();
            let alone = plain.simulate_bytes(&cost, 4).unwrap();
            assert!(times.makespan() >= alone.makespan(), "{what}");
            slower += usize::from(times.makespan() > alone.makespan());
            let all = crossings(&shared, &times, &node_of);
            // How many transfers pass the ports of a node that serve this direction.
            let busy = |node: usize, sends: bool, at: f64| {
                let same = |c: &&Crossing| !ports.is_bidirectional() || c.sends == sends;
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
            let free = plain.with_node_ports(&nodes, as_many, &cost, 4).unwrap();
            let free = free.simulate_bytes(&cost, 4).unwrap();
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
                    && unlimited.waits(transfer).contains(&(node as u32))
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
            let shared = plain.clone().with_node_ports(&nodes, 1, &cost, 1).unwrap();
            let reversed = shared.reversed().unwrap();
            let report = reversed.check();
            assert_eq!(
                report.is_correct(),
                plain.reversed().unwrap().check().is_correct(),
                "{}: {report}",
                algorithm.name
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
            .with_node_ports(&nodes, k, &cost, 1)
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
                let shared = plain.clone().with_node_ports(&nodes, 1, &cost, elements);
                let shared = shared.unwrap();
                let report = shared.check();
                assert!(
                    report.is_correct(),
                    "{} {p}: {:?}",
                    algorithm.name,
                    report.errors
                );
                shared.simulate_bytes(&cost, elements).unwrap();
            }
        }
    }
}

/// In a cycle a rank waits for a step of another rank whose number its own program lacks.
#[test]
fn cycles_through_longer_programs_are_named() {
    let span = Span::new(0, 2);
    let mut b = Schedule::builder(7, Ports::UNI, Collective::Allreduce);
    for rank in 0..7 {
        b.layout(rank, 2, span, span);
    }
    b.transfer(5, 2, 0..1)
        .transfer(4, 6, 0..1)
        .transfer(1, 4, 1..2);
    b.step(5, Step::recv(2, Span::new(1, 1)));
    let shared = |ranks: [usize; 2], steps: &[(usize, usize)]| SharedPort {
        ranks: ranks.to_vec(),
        ..port("node", Direction::Both, steps)
    };
    let ports = vec![
        shared([1, 2], &[(1, 0), (2, 0)]),
        shared([5, 6], &[(5, 1), (6, 0)]),
    ];
    let report = b.build().unwrap().with_shared_ports(ports).unwrap().check();
    let waits = report
        .errors
        .iter()
        .any(|e| e.message.contains("wait for each other"));
    assert!(waits, "{report}");
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
        let shared = plain.with_node_ports(nodes, 1, &cost, 1).unwrap();
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
        let schedule = plain.with_node_ports(&nodes, 1, &cost, 1).unwrap();
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
