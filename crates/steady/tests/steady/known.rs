//! Known throughputs, and schedules within their time bounds.

use oneport::Ports;
use oneport_steady::{
    Edge, Fraction, Operation, Platform, SolveMethod, best_single, generate, solve,
};

fn throughput(name: &str, operation: Operation, ports: Ports, method: SolveMethod) -> String {
    let platform = generate(name, 0).unwrap();
    let solution = solve(&platform, operation, ports, method).unwrap();
    solution.throughput.to_string()
}

#[test]
fn known_throughputs() {
    let of = |name: &str, operation, ports| throughput(name, operation, ports, SolveMethod::Ports);
    use Operation::{Broadcast, Reduce};
    assert_eq!(of("fig3", Broadcast, Ports::BI), "1");
    assert_eq!(of("fig3", Broadcast, Ports::UNI), "2/3");
    assert_eq!(of("ring:3", Broadcast, Ports::BI), "1");
    assert_eq!(of("ring:3", Broadcast, Ports::UNI), "1/2");
    let complete = [(3, "1/2"), (4, "2/3"), (5, "1/2"), (6, "3/5"), (8, "4/7")];
    for (n, expected) in complete {
        let name = format!("complete:{n}");
        assert_eq!(of(&name, Reduce, Ports::UNI), expected, "{name}");
    }
}

/// Schedules pass the checker and take no longer than their time bound.
#[test]
fn schedules() {
    let names = [
        "fig3",
        "ring:3",
        "complete:4",
        "grid:2x3",
        "star:4",
        "clustered:2x3",
        "random:6:12",
    ];
    for name in names {
        for ports in [Ports::BI, Ports::UNI] {
            for operation in Operation::ALL {
                let platform = generate(name, 3).unwrap();
                let Ok(solution) = solve(&platform, operation, ports, SolveMethod::Ports) else {
                    continue;
                };
                let periodic = solution.periodic(None, None).unwrap();
                assert!(periodic.throughput() <= solution.throughput);
                let case = format!("{name} {} {ports:?}", operation.name());
                for n in [1, periodic.operations(), 3 * periodic.operations() + 1] {
                    let schedule = periodic.schedule(n).unwrap();
                    let report = schedule.check();
                    assert!(report.is_correct(), "{case}: {:?}", report.errors);
                    let cost = periodic.cost(1.0).unwrap();
                    let time = schedule.simulate(&cost).unwrap().makespan();
                    let bound = periodic.time_bound(n).to_f64();
                    assert!(time <= bound * (1.0 + 1e-9), "{case}: {time} > {bound}");
                    assert!(
                        n as f64 / time <= solution.throughput.to_f64() * (1.0 + 1e-9),
                        "{case}"
                    );
                }
            }
        }
    }
}

/// On complete graphs a chain is the best tree, and a star from each root the best allgather. On a
/// ring each root's message goes both ways; each port then passes on as many.
#[test]
fn single_trees_of_complete_graphs_and_rings() {
    let best = |name: &str, operation, ports| {
        let platform = generate(name, 0).unwrap();
        let solution = solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
        let best = best_single(&solution).unwrap();
        (best.throughput.to_string(), best.is_optimal)
    };
    for n in [3, 4, 9, 10, 12, 16, 20, 32] {
        let complete = format!("complete:{n}");
        let broadcast = |ports| best(&complete, Operation::Broadcast, ports);
        assert_eq!(broadcast(Ports::BI), ("1".into(), true), "{complete}");
        assert_eq!(broadcast(Ports::UNI), ("1/2".into(), true), "{complete}");
        let multicast = best(&complete, Operation::Multicast, Ports::BI);
        assert_eq!(multicast.0, "1", "{complete}");
    }
    for (graph, n) in [("complete", 4), ("complete", 6), ("complete", 12)]
        .into_iter()
        .chain([
            ("ring", 3),
            ("ring", 4),
            ("ring", 6),
            ("ring", 8),
            ("ring", 12),
            ("ring", 30),
        ])
    {
        let name = format!("{graph}:{n}");
        let allgather = best(&name, Operation::Allgather, Ports::BI);
        assert_eq!(allgather, (format!("1/{}", n - 1), true), "{name}");
    }
}

/// All messages around a cycle through all nodes keep each port busy with all but one: on a grid
/// with an even number of nodes nothing is faster. Without such a cycle other trees are found.
#[test]
fn single_trees_around_a_cycle() {
    for (name, nodes) in [("grid:2x3", 6), ("grid:4x5", 20), ("grid:6x6", 36)] {
        let platform = generate(name, 0).unwrap();
        let solution = solve(
            &platform,
            Operation::Allgather,
            Ports::BI,
            SolveMethod::Ports,
        );
        let best = best_single(&solution.unwrap()).unwrap();
        assert_eq!(
            best.throughput.to_string(),
            format!("1/{}", nodes - 1),
            "{name}"
        );
        assert!(best.is_optimal, "{name}");
    }
    // A cheap cycle of 5 nodes beside dear links.
    let edges =
        (0..5).flat_map(|v| [((v + 1) % 5, 1), ((v + 2) % 5, 9)].map(move |(to, c)| (v, to, c)));
    let edges = edges
        .map(|(v, to, cost)| Edge::new(v, to, Fraction::from(cost)))
        .collect();
    let platform = Platform::new(5, 0, None, edges).unwrap();
    let solution = solve(
        &platform,
        Operation::Allgather,
        Ports::BI,
        SolveMethod::Ports,
    );
    let best = best_single(&solution.unwrap()).unwrap();
    assert!(best.throughput >= Fraction::ONE / Fraction::from(4));
    let grid = generate("grid:3x3", 0).unwrap();
    let solution = solve(&grid, Operation::Allgather, Ports::BI, SolveMethod::Ports).unwrap();
    assert!(best_single(&solution).unwrap().throughput <= solution.throughput);
}

/// Moore and Quinn, Desprez: only some nodes send. On a complete graph every node receives a
/// message of each other source, so `k` sources among more nodes take `k` units, all nodes `n - 1`.
#[test]
fn allgathers_and_alltoalls_from_some_sources() {
    let complete = generate("complete:6", 0).unwrap();
    for (sources, operation, time) in [
        (vec![2], Operation::Allgather, 1),
        (vec![0, 3, 5], Operation::Allgather, 3),
        ((0..6).collect(), Operation::Allgather, 5),
        // A source sends a message to each of the other nodes.
        (vec![1], Operation::Alltoall, 5),
        (vec![1, 4], Operation::Alltoall, 5),
    ] {
        let platform = complete.clone().with_sources(sources.clone()).unwrap();
        assert_eq!(Platform::parse(&platform.to_json()).unwrap(), platform);
        let solution = solve(&platform, operation, Ports::BI, SolveMethod::Ports).unwrap();
        let expected = Fraction::ONE / Fraction::from(time);
        assert_eq!(solution.throughput, expected, "{sources:?} {operation:?}");
        assert!(solution.certificate.is_some());
        let periodic = solution.periodic(None, None).unwrap();
        let schedule = periodic.schedule(40).unwrap();
        assert!(schedule.check().is_correct(), "{sources:?} {operation:?}");
        let time = schedule
            .simulate(&periodic.cost(1.0).unwrap())
            .unwrap()
            .makespan();
        assert!(time >= 40.0 / solution.throughput.to_f64());
    }
    // From one source it is a broadcast.
    let clustered = generate("clustered:3x3", 5).unwrap();
    for source in 0..9 {
        let from = |operation, platform: &Platform| {
            solve(platform, operation, Ports::UNI, SolveMethod::Ports)
                .unwrap()
                .throughput
        };
        let one = clustered.clone().with_sources(vec![source]).unwrap();
        let broadcast = from(
            Operation::Broadcast,
            &clustered.with_source(source).unwrap(),
        );
        assert_eq!(from(Operation::Allgather, &one), broadcast);
        let scatter = from(Operation::Scatter, &clustered.with_source(source).unwrap());
        assert_eq!(from(Operation::Alltoall, &one), scatter);
    }
    for (sources, error) in [
        (vec![], "no source"),
        (vec![6], "not one of"),
        (vec![1, 1], "twice"),
    ] {
        let refused = complete.clone().with_sources(sources).unwrap_err();
        assert!(refused.to_string().contains(error), "{refused}");
    }
}

/// The NP-completeness proof's platform: the source sends to sets, with cost 1/B each, and these to
/// their elements. One message needs a cover, so the throughput is B over the least number of sets.
#[test]
fn multicasts_find_the_least_set_cover() {
    let mut state = 5u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for (elements, count) in [(6, 5), (9, 7), (11, 8), (14, 10)] {
        let mut sets: Vec<Vec<usize>> = vec![Vec::new(); count];
        for element in 0..elements {
            for _ in 0..2 {
                let set = random(count);
                if !sets[set].contains(&element) {
                    sets[set].push(element);
                }
            }
        }
        let covers = |chosen: &usize| {
            let has = |e: usize| (0..count).any(|s| chosen >> s & 1 == 1 && sets[s].contains(&e));
            (0..elements).all(has)
        };
        let least = (1..1usize << count)
            .filter(covers)
            .map(|c| c.count_ones())
            .min()
            .unwrap();
        let dear = Fraction::ONE / Fraction::from(2);
        let cheap = Fraction::ONE / Fraction::from(100);
        let mut edges: Vec<Edge> = (0..count)
            .map(|s| Edge::new(0, 1 + s, dear.clone()))
            .collect();
        for (s, set) in sets.iter().enumerate() {
            let to = set
                .iter()
                .map(|e| Edge::new(1 + s, 1 + count + e, cheap.clone()));
            edges.extend(to);
        }
        let targets = (1 + count..1 + count + elements).collect();
        let platform = Platform::new(1 + count + elements, 0, Some(targets), edges).unwrap();
        let solution = solve(
            &platform,
            Operation::Multicast,
            Ports::BI,
            SolveMethod::Ports,
        )
        .unwrap();
        let expected = Fraction::from(2) / Fraction::from(least as usize);
        assert_eq!(solution.throughput, expected, "{sets:?}");
        assert!(
            solution.is_optimal && solution.certificate.is_some(),
            "{elements}"
        );
    }
}

/// Few trees: one is the best single tree, more are no slower, and enough of them reach the
/// optimum.
#[test]
fn few_trees_lie_between_one_and_all() {
    let mut between = 0;
    for (name, seed) in [
        ("random:6:14", 0),
        ("random:7:22", 0),
        ("random:7:22", 3),
        ("grid:2x3", 0),
    ] {
        for operation in [
            Operation::Broadcast,
            Operation::Scatter,
            Operation::Allgather,
        ] {
            for ports in [Ports::BI, Ports::UNI] {
                let platform = generate(name, seed).unwrap();
                let Ok(all) = solve(&platform, operation, ports, SolveMethod::Ports) else {
                    continue;
                };
                // Theorem 4.
                assert!(all.routes.len() <= 2 * all.platform().edges().len());
                let single = best_single(&all).unwrap().throughput;
                let mut before = Fraction::ZERO;
                for count in [1, 2, 3, 4, all.routes.len()] {
                    let what = format!("{name} {operation:?} {ports:?} {count}");
                    let few = all.with_few_routes(count).unwrap();
                    assert!(few.routes.len() <= count, "{what}");
                    assert!(few.throughput >= before, "{what}");
                    assert!(
                        few.throughput >= single && few.throughput <= all.throughput,
                        "{what}"
                    );
                    assert!(
                        count > 1 || few.throughput == single || all.routes.len() == 1,
                        "{what}"
                    );
                    between +=
                        usize::from(few.throughput > single && few.throughput < all.throughput);
                    before = few.throughput.clone();
                    // The slots are those of these routes.
                    let periodic = few.periodic(None, None).unwrap();
                    let schedule = periodic.schedule(20).unwrap();
                    assert!(schedule.check().is_correct(), "{what}");
                }
                assert_eq!(before, all.throughput);
            }
        }
    }
    assert!(between > 5, "{between}");
}

/// A period that one operation of the best tree fits into.
#[test]
fn an_operation_fits_into_a_short_period() {
    for (name, longest) in [("complete:12", 3), ("complete:16", 12)] {
        let platform = generate(name, 0).unwrap();
        let solve = solve(
            &platform,
            Operation::Broadcast,
            Ports::BI,
            SolveMethod::Ports,
        );
        let periodic = solve
            .unwrap()
            .periodic(Some(&longest.into()), None)
            .unwrap();
        assert_eq!(periodic.throughput().to_string(), "1", "{name}");
    }
}

#[test]
fn drift_and_single_trees() {
    let platform = generate("fig3", 0).unwrap();
    for (ports, single) in [(Ports::BI, "1"), (Ports::UNI, "2/3")] {
        let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
        let best = best_single(&solution).unwrap();
        assert_eq!(best.throughput.to_string(), single);
        assert!(best.is_optimal);
    }
}
