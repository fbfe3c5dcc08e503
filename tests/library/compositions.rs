//! Tests of compositions on machines with nodes: schedules are correct by the checker and by the
//! interpreter of `oracle`, run with real data in their model time, and take the sum of the closed
//! forms of their phases where these wait for each other.

use std::borrow::Cow;

use oneport::check::Options;
use oneport::machine::Links;
use oneport::plan::registry::{self, Algorithm};
use oneport::run::{Op, Run, Team};
use oneport::{CostModel, Kind, Ports, Request};
use oneport_measure::Profile;

use crate::oracle::{self, Outcome};
use crate::support::cases::cases;
use crate::support::sample::Sample;

const KINDS: [Kind; 8] = [
    Kind::Broadcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Allgather,
    Kind::ReduceScatter,
    Kind::Alltoall,
    Kind::Gather,
    Kind::Scatter,
];

/// Costs of the links within nodes and between them: alpha and beta.
const COSTS: [(f64, f64); 2] = [(3.0, 0.5), (20.0, 2.0)];

/// Costs of a machine with these nodes.
fn machine(nodes: &[Vec<usize>], costs: [(f64, f64); 2]) -> CostModel {
    let [near, far] = costs;
    levels(&format!(
        r#"{{"groups": {nodes:?}, "alpha": {}, "beta": {}}}, {{"alpha": {}, "beta": {}}}"#,
        near.0, near.1, far.0, far.1
    ))
}

fn levels(levels: &str) -> CostModel {
    let links = Links::from_json(&format!(r#"{{"levels": [{levels}]}}"#)).unwrap();
    CostModel::heterogeneous(links).unwrap()
}

/// Nodes of `n` consecutive ranks each.
fn consecutive(nodes: usize, n: usize) -> Vec<Vec<usize>> {
    (0..nodes).map(|d| (d * n..(d + 1) * n).collect()).collect()
}

/// Nodes whose ranks are `nodes` apart.
fn strided(nodes: usize, n: usize) -> Vec<Vec<usize>> {
    let node = |d| (0..n).map(|i| i * nodes + d).collect();
    (0..nodes).map(node).collect()
}

/// Plans, proves and runs the request. Returns its model time; `None` if the algorithm refuses it.
fn verify(algorithm: &Algorithm, request: &Request, team: Option<&mut Team>) -> Option<f64> {
    algorithm.accepts(request).ok()?;
    let name = format!(
        "{} {} p={} m={} {:?} root {} order {} blocks {:?} nodes {:?}",
        algorithm.name(),
        request.get_collective(),
        request.ranks(),
        request.elements(),
        request.get_ports(),
        request.get_root(),
        request.get_keep_order(),
        request.get_blocks(),
        request.get_cost().nodes(request.ranks())
    );
    let schedule = match algorithm.plan(request) {
        Ok(schedule) => schedule,
        // A part of this name may refuse its phase; where the parts are chosen, there is one.
        Err(error) => {
            assert!(algorithm.name().contains('('), "{name}: {error}");
            assert!(error.is_usage(), "{name}: {error}");
            return None;
        }
    };
    let keep_order = request.get_keep_order() && request.get_collective().reduces();
    let options = Options {
        keep_order,
        ..Options::default()
    };
    let report = schedule.check_with(&options);
    assert!(report.is_correct(), "{name}: {:?}", report.errors);
    let operator = if keep_order {
        oracle::Operator::Affine
    } else {
        oracle::Operator::Sum
    };
    assert_eq!(
        oracle::run(&schedule, false, operator, 7),
        Outcome::Right,
        "{name}"
    );
    let cost = request.get_cost();
    let time = schedule.simulate(cost).unwrap().makespan();
    if let Some(team) = team {
        let run = Run::<u8>::new(&schedule).op(Op::SUM).verified();
        let outcome = run.cost(cost.clone()).on(team).unwrap();
        assert!(outcome.is_verified(), "{name}");
        assert_eq!(outcome.model_time.to_bits(), time.to_bits(), "{name}");
    }
    Some(time)
}

#[test]
fn compositions_are_correct_on_all_machines() {
    let machines = [
        consecutive(3, 2),
        consecutive(2, 5),
        consecutive(4, 4),
        strided(3, 4),
        vec![vec![2], vec![0, 1, 5], vec![3, 4]],
        vec![vec![0, 1, 2], vec![3], vec![4, 5]],
        vec![vec![1, 0], vec![5, 2], vec![3, 4]],
    ];
    let (mut verified, mut refused, mut sample) = (0, 0, Sample::each(5));
    for nodes in machines {
        let p = nodes.concat().len();
        let mut team = Team::new(p).unwrap();
        let cost = machine(&nodes, COSTS).gamma(0.25).gamma_copy(0.125);
        for algorithm in KINDS.into_iter().flat_map(registry::compositions) {
            for (i, m) in [0, 7, 2 * p, 45].into_iter().enumerate() {
                for ports in [Ports::UNI, Ports::BI, Ports::BI.with_k(2)] {
                    for keep_order in [false, true] {
                        if !sample.takes() {
                            continue;
                        }
                        let blocks = (0..p).map(|r| (r * 7 + 3 * i) % (p + 2));
                        let blocks: Option<Vec<usize>> = (i % 2 == 1).then(|| blocks.collect());
                        let blocks = blocks.filter(|_| algorithm.collective.has_blocks());
                        let m = match (&blocks, algorithm.collective) {
                            (Some(blocks), Kind::ReduceScatter) => blocks.iter().sum(),
                            (Some(blocks), _) => blocks.iter().copied().max().unwrap(),
                            (None, _) => m,
                        };
                        let request = Request::new(algorithm.collective, p, m)
                            .blocks(blocks)
                            .root((i * 5) % p)
                            .ports(ports)
                            .keep_order(keep_order)
                            .cost(cost.clone());
                        match verify(algorithm, &request, Some(&mut team)) {
                            Some(_) => verified += 1,
                            None => refused += 1,
                        }
                    }
                }
            }
        }
    }
    assert!(verified > 200, "only {verified} verified");
    assert!(refused > 20, "{refused} refused");
}

/// Every registered algorithm is right as a part of every composition that has it.
#[test]
fn every_pair_of_algorithms_composes() {
    let mut verified = 0;
    let parts: Vec<_> = registry::all().iter().map(Algorithm::name).collect();
    for nodes in [consecutive(3, 4), strided(4, 2)] {
        let p = nodes.concat().len();
        let cost = machine(&nodes, COSTS).gamma(0.25);
        for row in KINDS.into_iter().flat_map(registry::compositions) {
            let kind = row.collective;
            let named = |parts: String| registry::find(kind, &format!("{}({parts})", row.name()));
            let known = |part: &&Cow<'static, str>, at: usize| {
                let part = match at {
                    0 => format!("{part},auto"),
                    _ => format!("auto,{part}"),
                };
                named(part).is_ok()
            };
            let mut known: [Vec<_>; 2] =
                [0, 1].map(|at| parts.iter().filter(|part| known(part, at)).collect());
            known.iter_mut().for_each(|names| {
                names.sort_unstable();
                names.dedup();
            });
            let [between, within] = known;
            assert!(!between.is_empty() && !within.is_empty());
            let pairs = within.len().max(between.len());
            // Every algorithm of both scopes, and every pair once in a while.
            for i in 0..cases(1, 2) * pairs {
                let (a, b) = (
                    between[i % between.len()],
                    within[(i + i / pairs) % within.len()],
                );
                let algorithm = named(format!("{a},{b}")).unwrap();
                for ports in [Ports::UNI, Ports::BI] {
                    let request = Request::new(kind, p, 3 * p + 1)
                        .root(p / 2)
                        .ports(ports)
                        .cost(cost.clone());
                    verified += usize::from(verify(&algorithm, &request, None).is_some());
                }
            }
        }
    }
    assert!(verified > 250, "only {verified} verified");
}

/// The time of `name` for the request on `nodes` times `n` ranks.
fn time(kind: Kind, name: &str, (nodes, n): (usize, usize), m: usize, ports: Ports) -> f64 {
    let request = Request::new(kind, nodes * n, m)
        .ports(ports)
        .cost(machine(&consecutive(nodes, n), COSTS).gamma(0.25));
    let algorithm = registry::find(kind, name).unwrap();
    verify(&algorithm, &request, None).unwrap()
}

#[test]
fn times_are_the_sums_of_the_closed_forms_of_the_phases() {
    let log2 = |n: usize| f64::from(n.ilog2());
    for (nodes, n) in [(2, 2), (4, 2), (2, 8), (8, 4), (16, 4)] {
        let (all, p, blocks) = (nodes as f64, nodes * n, 3);
        let m = nodes * n * blocks;
        let [near, far] = COSTS.map(|(alpha, beta)| move |m: usize| alpha + beta * m as f64);
        let combine = |m: usize| 0.25 * m as f64;
        let times = |name: &str, kind, m| time(kind, name, (nodes, n), m, Ports::BI);
        let tree = |m: usize| log2(nodes) * far(m) + log2(n) * near(m);
        let combined = |m: usize| (log2(nodes) + log2(n)) * combine(m);
        let binomial = "hier(binomial,binomial)";
        assert_eq!(times(binomial, Kind::Broadcast, m), tree(m));
        assert_eq!(times(binomial, Kind::Reduce, m), tree(m) + combined(m));
        // A binomial reduction and broadcast within, recursive doubling between.
        let doubling = log2(nodes) * (far(m) + combine(m));
        let within = 2.0 * log2(n) * near(m) + log2(n) * combine(m);
        assert_eq!(
            times("hier(recursive-doubling,binomial)", Kind::Allreduce, m),
            doubling + within
        );
        // A binomial tree of blocks of b takes log2(p) alpha + (p-1) beta b.
        let gathered = |n: usize, b: usize, (alpha, beta): (f64, f64)| {
            log2(n) * alpha + ((n - 1) * b) as f64 * beta
        };
        let leaders = gathered(n, blocks, COSTS[0]) + gathered(nodes, n * blocks, COSTS[1]);
        for kind in [Kind::Gather, Kind::Scatter] {
            assert_eq!(times("hier(oblivious,oblivious)", kind, blocks), leaders);
        }
        // Each lane has a part of m/n; a ring does not care which data comes first.
        let part = m / n;
        let ring = |m: usize| (n - 1) as f64 * near(m);
        let lanes = log2(nodes) * (far(part) + combine(part));
        let both = 2.0 * ring(part) + (n - 1) as f64 * combine(part);
        assert_eq!(
            times("lane(recursive-doubling,ring)", Kind::Allreduce, m),
            lanes + both
        );
        assert_eq!(
            times("lane(binomial,linear+ring)", Kind::Broadcast, m),
            2.0 * ring(part) + log2(nodes) * far(part)
        );
        // Allgather of blocks of 3: those of the lane, then those of all nodes.
        let lane = (all - 1.0) * far(blocks);
        assert_eq!(
            times("lane(ring,ring)", Kind::Allgather, blocks),
            lane + ring(nodes * blocks)
        );
        assert_eq!(
            times("lane(ring,ring)", Kind::ReduceScatter, m),
            lane + (all - 1.0) * combine(blocks)
                + ring(nodes * blocks)
                + (n - 1) as f64 * combine(nodes * blocks)
        );
        // Alltoall of blocks of 3: those for a lane, then those for a node.
        assert_eq!(
            times("lane(pairwise,pairwise)", Kind::Alltoall, blocks),
            ring(nodes * blocks) + (all - 1.0) * far(n * blocks)
        );
        // All blocks of a node to its leader, one block of a node to each other one, and back.
        assert_eq!(
            times("hier(pairwise,linear)", Kind::Alltoall, blocks),
            2.0 * ring(p * blocks) + (all - 1.0) * far(n * n * blocks)
        );
    }
}

#[test]
fn parts_are_chosen_by_model_time_and_named() {
    for (kind, m) in KINDS.into_iter().flat_map(|kind| [(kind, 8), (kind, 4000)]) {
        let cost = machine(&consecutive(4, 4), COSTS).gamma(0.25);
        let request = Request::new(kind, 16, m).cost(cost);
        for row in registry::compositions(kind) {
            let chosen = verify(row, &request, None).unwrap();
            let resolved = row.resolved(&request).unwrap();
            let name = resolved.name();
            assert!(
                name.starts_with(&*row.name()) && !name.contains("auto"),
                "{name}"
            );
            assert_eq!(
                verify(&resolved, &request, None),
                Some(chosen),
                "{}",
                resolved.name()
            );
            assert_eq!(registry::find(kind, &name).unwrap(), resolved);
            for part in ["binomial", "ring", "linear", "pairwise"] {
                let name = format!("{}({part},auto)", row.name());
                let Ok(other) = registry::find(kind, &name) else {
                    continue;
                };
                // What is chosen is the best phase by phase, and phases may overlap.
                let time = verify(&other, &request, None).unwrap();
                assert!(
                    chosen <= 1.25 * time,
                    "{chosen} {} {name} {time}",
                    resolved.name()
                );
            }
        }
    }
}

#[test]
fn machines_of_three_levels_are_composed_twice() {
    let cost = levels(
        r#"{"groups": [[0, 1], [2, 3], [4, 5], [6, 7]], "alpha": 1, "beta": 0.25},
           {"groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "alpha": 5, "beta": 1},
           {"alpha": 50, "beta": 4}"#,
    );
    let name = "hier(binomial,hier(binomial,binomial))";
    let request = Request::broadcast(8, 10).root(5).cost(cost.clone());
    let algorithm = registry::find(Kind::Broadcast, name).unwrap();
    assert_eq!(verify(&algorithm, &request, None), Some(90.0 + 15.0 + 3.5));
    for row in KINDS.into_iter().flat_map(registry::compositions) {
        let request = Request::new(row.collective, 8, 24)
            .root(3)
            .cost(cost.clone());
        verify(row, &request, None).unwrap();
    }
}

#[test]
fn what_has_no_nodes_is_refused() {
    let refusal = |request: &Request, name: &str| {
        let algorithm = registry::find(request.get_collective(), name).unwrap();
        assert_eq!(
            algorithm.plan(request).unwrap_err().to_string(),
            algorithm.accepts(request).unwrap_err().to_string()
        );
        algorithm.plan(request).unwrap_err().to_string()
    };
    let request = Request::reduce(6, 10);
    for name in ["hier", "lane", "hier(binomial,chain)"] {
        let expected =
            format!("{name} reduce needs costs with levels, which show the nodes of the machine");
        assert_eq!(refusal(&request, name), expected);
    }
    assert_eq!(
        registry::candidates(Kind::Reduce, request.get_cost(), 6).count(),
        registry::of(Kind::Reduce)
            .filter(|a| a.is_made_for(request.get_cost()))
            .count()
    );
    let unequal = machine(&[vec![0, 1, 2], vec![3], vec![4, 5]], COSTS);
    let request = request.cost(unequal);
    assert_eq!(
        refusal(&request, "lane"),
        "lane reduce needs nodes of one size, and these have 1 to 3 ranks"
    );
    let strided = request
        .cost(machine(&strided(2, 3), COSTS))
        .keep_order(true);
    assert_eq!(
        refusal(&strided, "lane"),
        "lane reduce keeps the order of operands only where each node has consecutive ranks"
    );
}

#[test]
fn unknown_parts_are_refused() {
    for (name, why) in [
        ("hier(binomial)", "hier(binomial): give two algorithms"),
        ("hier(binomial,chain,linear)", "give two algorithms"),
        (
            "hier(nothing,chain)",
            "unknown algorithm 'nothing' for allreduce: choose one of",
        ),
        (
            "hier(auto,nothing)",
            "unknown algorithm 'nothing' for reduce: choose one of",
        ),
        ("hier(auto,)", "unknown algorithm '' for reduce"),
        (
            "hier(auto,binomial+ring)",
            "unknown algorithm 'ring' for broadcast",
        ),
        (
            "hier(auto,chain+chain+chain)",
            "hier allreduce has phases of reduce and broadcast: give one algorithm for all of \
             them or one for each, not 3",
        ),
        ("hier", ""),
        ("hier(auto, chain + chain)", ""),
        (
            "tree(binomial,chain)",
            "unknown algorithm 'tree(binomial,chain)' for allreduce",
        ),
        (
            "hier(hier(hier(hier(hier(a,b),b),b),b),b)",
            "at most 4 compositions",
        ),
        ("hier((((((((,", "unknown algorithm 'hier((((((((,'"),
        ("hier())", "give two algorithms"),
    ] {
        let found = registry::find(Kind::Allreduce, name);
        match (found, why) {
            (Ok(_), "") => {}
            (Ok(found), _) => panic!("{name} is {}", found.name()),
            (Err(error), _) => {
                assert!(
                    !why.is_empty() && error.to_string().contains(why),
                    "{name}: {error}"
                );
            }
        }
    }
}

#[test]
fn profiles_with_levels_plan_what_the_same_levels_as_a_cost_file_plan() {
    let levels =
        r#"[{"groups": [[0, 3], [1, 2]], "alpha": 3, "beta": 0.5}, {"alpha": 20, "beta": 2}]"#;
    let file = Links::from_json(&format!(
        r#"{{"levels": {levels}, "gamma": [0.25, 0.25, 0.25, 0.25], "gamma_copy": [1, 1, 1, 1]}}"#
    ));
    let of_file = CostModel::heterogeneous(file.unwrap()).unwrap();
    let profile = Profile::from_json(&format!(
        r#"{{"alpha": 7, "beta": 9, "gamma": 0.25, "gamma_copy": 1, "levels": {levels},
            "pieces": {{"transfer": [{{"from": 0, "alpha": 1, "beta": 1}}]}}}}"#
    ));
    let of_profile = profile.unwrap().cost().unwrap();
    let mut planned = Vec::new();
    let every = |kind: Kind| registry::candidates(kind, &of_profile, 4);
    for algorithm in Kind::ALL.into_iter().flat_map(every) {
        let [ours, theirs] = [&of_profile, &of_file].map(|cost| {
            let request = Request::new(algorithm.collective, 4, 24).cost(cost.clone());
            let schedule = algorithm.plan(&request)?;
            let time = schedule.simulate(cost)?.makespan();
            Ok::<_, oneport::Error>((schedule.to_json(), time))
        });
        assert_eq!(
            ours,
            theirs,
            "{} {}",
            algorithm.name(),
            algorithm.collective
        );
        planned.extend(ours.is_ok().then_some(algorithm.name()));
    }
    for name in ["hier", "lane"] {
        assert!(
            planned.iter().any(|found| found == name),
            "{name} is not among {planned:?}"
        );
    }
    assert!(planned.len() > registry::all().len() / 2);
}
