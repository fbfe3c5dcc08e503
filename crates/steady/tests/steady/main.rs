//! Tests of steady-state throughput: against brute force, between methods, and by checking,
//! simulating and running periodic schedules.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod brute;
#[path = "../../../../tests/support/cases.rs"]
mod cases;
mod certificate;
mod combining;
mod drifting;
mod fractions;
mod known;
mod platform;
mod scaled;
mod series;

use oneport::run::{Operator, Run, Team, inputs, oracle};
use oneport::{Ports, Schedule};
use oneport_steady::{
    Edge, Fraction, Operation, Platform, SolveMethod, best_packets, best_single, flow_bound,
    generate, parse_fraction, solve,
};

use cases::cases;

fn fraction(text: &str) -> Fraction {
    parse_fraction(text).unwrap()
}

fn sum(values: impl IntoIterator<Item = Fraction>) -> Fraction {
    values.into_iter().fold(Fraction::ZERO, |s, v| s + v)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// A random platform of 2 to 6 nodes: a tree and further edges, costs with denominators up to 3.
fn random_platform(random: &mut Random) -> Platform {
    let n = 2 + random.below(5);
    let mut pairs: Vec<(usize, usize)> = (1..n).map(|v| (random.below(v), v)).collect();
    for _ in 0..random.below(2 * n) {
        let (a, b) = (random.below(n), random.below(n));
        if a != b && !pairs.contains(&(a, b)) && pairs.len() < 11 {
            pairs.push((a, b));
        }
    }
    let cost = |random: &mut Random| {
        Fraction::from(1 + random.below(6)) / Fraction::from(1 + random.below(3))
    };
    let edges = pairs
        .into_iter()
        .map(|(a, b)| Edge::new(a, b, cost(random)));
    let edges: Vec<Edge> = edges.collect();
    Platform::new(n, 0, None, edges).unwrap()
}

/// Asserts that the routes and slots satisfy every equation and have the claimed throughput.
fn assert_equations(solution: &oneport_steady::Solution) {
    let platform = solution.platform();
    let total = sum(solution.routes.iter().map(|(_, x)| x.clone()));
    assert_eq!(total, solution.throughput);
    assert!(sum(solution.slots.iter().map(|s| s.share.clone())) <= Fraction::ONE);
    let mut loads = vec![Fraction::ZERO; platform.edges().len()];
    for (route, rate) in &solution.routes {
        assert!(*rate > Fraction::ZERO);
        for (e, m) in route.loads() {
            loads[e] += &platform.edges()[e].cost * rate * Fraction::from(m);
        }
    }
    for (e, load) in loads.iter().enumerate() {
        let busy = solution.slots.iter().filter(|s| s.edges.contains(&e));
        assert_eq!(*load, sum(busy.map(|s| s.share.clone())));
    }
    for slot in &solution.slots {
        assert!(slot.share > Fraction::ZERO);
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for &e in &slot.edges {
            outs.push(platform.edges()[e].src);
            let into = if solution.ports.can_relay() {
                &mut ins
            } else {
                &mut outs
            };
            into.push(platform.edges()[e].dst);
        }
        for ports in [&mut outs, &mut ins] {
            let all = ports.len();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), all, "a port is used twice in a slot");
        }
    }
}

#[test]
fn throughput_of_random_platforms_matches_brute_force() {
    let mut random = Random(2024);
    for round in 0..cases(60, 220) {
        let platform = random_platform(&mut random);
        for ports in [Ports::BI, Ports::UNI] {
            let expected = brute::throughput(&platform, ports);
            for method in [SolveMethod::Ports, SolveMethod::Matchings] {
                let solution = solve(&platform, Operation::Broadcast, ports, method).unwrap();
                assert_eq!(
                    solution.throughput.to_string(),
                    expected.to_string(),
                    "round {round}, {ports:?}, {method:?}: {}",
                    platform.to_json()
                );
                assert!(solution.certificate.is_some() && solution.is_optimal);
                assert_equations(&solution);
            }
            let bound = flow_bound(&platform, ports).unwrap();
            assert!(bound >= expected);
            assert!(bound == expected || !ports.can_relay());
        }
    }
}

#[test]
fn multicasts_lie_between_their_bounds() {
    let mut random = Random(77);
    for _ in 0..cases(15, 40) {
        let all = random_platform(&mut random);
        let n = all.nodes();
        let targets: Vec<usize> = (1..n)
            .filter(|&v| v == n - 1 || random.below(2) == 0)
            .collect();
        let platform = Platform::new(n, 0, Some(targets), all.edges().to_vec()).unwrap();
        for ports in [Ports::BI, Ports::UNI] {
            let solution =
                solve(&platform, Operation::Multicast, ports, SolveMethod::Ports).unwrap();
            let (below, above) = solution.bounds().unwrap().unwrap();
            assert!(below <= solution.throughput && solution.throughput <= above);
            assert_equations(&solution);
            let other = solve(
                &platform,
                Operation::Multicast,
                ports,
                SolveMethod::Matchings,
            )
            .unwrap();
            assert_eq!(other.throughput, solution.throughput);
        }
    }
}

#[test]
fn long_messages_are_cut_into_packets() {
    let mut edges = generate("fig3", 0).unwrap().edges().to_vec();
    for e in &mut edges {
        e.latency = fraction("1/100");
    }
    let platform = Platform::new(3, 0, None, edges).unwrap();
    let best = best_packets(&platform, Operation::Broadcast, Ports::BI, &fraction("10")).unwrap();
    // Several packets, but far from the maximum, and a time close to what the source needs to send
    // the message once.
    assert!(best.count > 4 && best.count < 1000);
    assert!(best.time > 10.0 && best.time < 12.0, "{}", best.time);
}

/// `q` packets take `(q + 2) (1/10 + 10/q)` on a chain of three links: 13.03 for 14, and 13.05 for
/// 16, which is the best power of two.
#[test]
fn the_best_number_of_packets_is_best() {
    let link = |v| Edge {
        latency: fraction("1/10"),
        ..Edge::new(v, v + 1, fraction("1"))
    };
    let platform = Platform::new(4, 0, None, (0..3).map(link).collect()).unwrap();
    let best = best_packets(&platform, Operation::Broadcast, Ports::BI, &fraction("10")).unwrap();
    assert_eq!((best.count, best.is_best), (14, true));
    let expected = 16.0 * (0.1 + 10.0 / 14.0);
    assert!((best.time - expected).abs() < 1e-9, "{}", best.time);
    let least = (1..100).map(|q| f64::from(q + 2) * (0.1 + 10.0 / f64::from(q)));
    assert!(least.fold(f64::INFINITY, f64::min) > best.time - 1e-9);
}

/// Each inner rank of a scan receives and sends.
#[test]
fn scans_reach_what_their_ranks_have_to_send_and_receive() {
    for name in ["complete:4", "complete:8", "ring:4", "ring:6"] {
        let platform = generate(name, 0).unwrap();
        let scan = solve(&platform, Operation::Scan, Ports::UNI, SolveMethod::Ports).unwrap();
        let half = fraction("1/2");
        assert_eq!(scan.bounds().unwrap(), Some((half.clone(), half)), "{name}");
        assert!(scan.is_optimal, "{name}");
    }
}

/// Where none fits, it says so; where none was found, it does not say that none fits.
#[test]
fn only_a_proof_says_that_no_operation_fits() {
    let platform = generate("complete:4", 0).unwrap();
    let solved = |operation, ports| solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
    let error = |operation, ports, longest: &str, elements| {
        let solution = solved(operation, ports);
        let periodic = solution.periodic(Some(&fraction(longest)), elements);
        periodic.unwrap_err().to_string()
    };
    let proved = error(Operation::Broadcast, Ports::BI, "1/2", None);
    assert!(
        proved.contains("no operation fits into a period of 1/2"),
        "{proved}"
    );
    // The best tree takes 2, many take 3/2.
    let proved = error(Operation::Broadcast, Ports::UNI, "7/4", None);
    assert!(proved.contains("no operation fits"), "{proved}");
    let scatter = generate("random:5:9", 3).unwrap();
    let solution = solve(&scatter, Operation::Scatter, Ports::BI, SolveMethod::Ports).unwrap();
    let single = best_single(&solution).unwrap();
    if single.throughput < solution.throughput {
        let between = fraction("2") / (&single.throughput + &solution.throughput);
        let error = solution.periodic(Some(&between), None).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no operation was found that fits"),
            "{error}"
        );
    }
}

#[test]
fn the_throughput_of_the_papers_example_is_reproduced() {
    let platform = generate("fig3", 0).unwrap();
    for (ports, expected) in [(Ports::BI, "1"), (Ports::UNI, "2/3")] {
        let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
        assert_eq!(solution.throughput.to_string(), expected);
        assert_equations(&solution);
        let all: Vec<&str> = vec![expected];
        assert_eq!(solution.routes.len(), all.len());
    }
}

#[test]
fn complete_graphs_and_triangles_have_the_known_throughput() {
    let of = |name: &str, operation, ports| {
        let platform = generate(name, 0).unwrap();
        let solution = solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
        assert_equations(&solution);
        solution.throughput.to_string()
    };
    assert_eq!(of("ring:3", Operation::Broadcast, Ports::BI), "1");
    assert_eq!(of("ring:3", Operation::Broadcast, Ports::UNI), "1/2");
    for (n, expected) in [(3, "1/2"), (4, "2/3"), (5, "1/2"), (6, "3/5"), (8, "4/7")] {
        assert_eq!(
            of(&format!("complete:{n}"), Operation::Reduce, Ports::UNI),
            expected
        );
    }
}

/// Checks a periodic schedule, compares its simulated time with the bound, and runs it on data.
fn check_simulate_and_run(name: &str, operation: Operation, ports: Ports) {
    let platform = generate(name, 1).unwrap();
    let solution = solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
    let periodic = solution.periodic(None, None).unwrap();
    let n = 3 * periodic.operations() + 1;
    let schedule = periodic.schedule(n).unwrap();
    let what = format!("{name} {} {ports:?}", operation.name());
    let report = schedule.check();
    assert!(report.is_correct(), "{what}: {:?}", report.errors);
    let cost = periodic.cost(1.0).unwrap();
    let time = schedule.simulate(&cost).unwrap().makespan();
    let bound = periodic.time_bound(n).to_f64();
    assert!(time <= bound * (1.0 + 1e-9), "{what}: {time} > {bound}");
    let operator = Operator::<u8>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &operator);
    let mut team = Team::new(schedule.ranks()).unwrap();
    let outcome = Run::new(&schedule)
        .op(&operator)
        .inputs(&data)
        .cost(cost)
        .on(&mut team)
        .unwrap();
    let expected = oracle(schedule.collective(), schedule.layout(), &operator, &data).unwrap();
    assert_eq!(outcome.outputs, expected, "{what}");
    assert_eq!(outcome.model_time, time, "{what}");
}

#[test]
fn periodic_schedules_are_correct_and_keep_their_bound() {
    for ports in [Ports::BI, Ports::UNI] {
        for name in ["fig3", "ring:3", "grid:2x3", "clustered:2x3"] {
            check_simulate_and_run(name, Operation::Broadcast, ports);
        }
        for n in 3..=8 {
            check_simulate_and_run(&format!("complete:{n}"), Operation::Reduce, ports);
        }
        for operation in Operation::ALL {
            check_simulate_and_run("ring:5", operation, ports);
        }
    }
}

/// N operations take at most N / rate plus a constant that does not grow with N.
#[test]
fn time_is_bounded_by_the_rate_plus_a_constant() {
    let cases = [
        ("fig3", 4000),
        ("ring:3", 4000),
        ("complete:5", 2000),
        ("tree:7", 4000),
        ("grid:2x3", 2000),
        ("clustered:2x4", 3000),
        ("random:10:30", 3000),
    ];
    for (name, max_operations) in cases {
        let platform = generate(name, 5).unwrap();
        for ports in [Ports::BI, Ports::UNI] {
            let solution =
                solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
            let periodic = solution.periodic(None, None).unwrap();
            let cost = periodic.cost(1.0).unwrap();
            let (rate, best) = (periodic.throughput().to_f64(), solution.throughput.to_f64());
            let constant = periodic.period().to_f64() * periodic.lag() as f64;
            let mut counts = vec![1, 10, 100, 1000, max_operations];
            counts.push(5 * periodic.operations());
            for n in counts.into_iter().filter(|&n| n <= max_operations) {
                let schedule = periodic.schedule(n).unwrap();
                let time = schedule.simulate(&cost).unwrap().makespan();
                let what = format!("{name} {ports:?}, {n}: {time}");
                assert!(time >= n as f64 / best * (1.0 - 1e-9), "{what}");
                assert!(time <= n as f64 / rate + constant, "{what}");
            }
        }
    }
}

#[test]
fn short_periods_give_correct_schedules() {
    let platform = generate("random:12:40", 3).unwrap();
    for ports in [Ports::BI, Ports::UNI] {
        let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
        for max_period in ["60", "200"] {
            let max_period = fraction(max_period);
            let periodic = solution.periodic(Some(&max_period), Some(60)).unwrap();
            assert!(periodic.throughput() <= solution.throughput);
            assert!(periodic.loss() >= Fraction::ZERO);
            assert!(*periodic.period() <= max_period);
            let schedule: Schedule = periodic.schedule(2 * periodic.operations()).unwrap();
            assert!(schedule.check().is_correct());
        }
        let error = solution
            .periodic(Some(&fraction("1/1000")), None)
            .unwrap_err();
        assert!(error.is_usage());
    }
}

/// No single tree is better than the best one, which is found but for a few.
#[test]
fn single_trees_against_all() {
    let mut random = Random(7);
    let (mut all, mut missed) = (0, Vec::new());
    for round in 0..cases(150, 1000) {
        let platform = random_platform(&mut random);
        let n = platform.nodes();
        for ports in [Ports::BI, Ports::UNI] {
            let some: Vec<usize> = (1..n).filter(|v| v % 2 == 1).collect();
            let edges = platform.edges().to_vec();
            let to_some = Platform::new(n, 0, Some(some), edges).unwrap();
            let everywhere: Vec<usize> = (0..n).collect();
            for (operation, platform, sources) in [
                (Operation::Broadcast, &platform, &[0][..]),
                (Operation::Multicast, &to_some, &[0]),
                (Operation::Allgather, &platform, &everywhere),
            ] {
                let is_many = operation == Operation::Allgather;
                if is_many && (n > 4 || ports != Ports::BI) {
                    continue;
                }
                let Ok(solution) = solve(platform, operation, ports, SolveMethod::Ports) else {
                    assert!(is_many);
                    continue;
                };
                let found = best_single(&solution).unwrap();
                let best = brute::single(platform, ports, sources);
                let what = format!("{round} {operation:?} {ports:?}: {}", found.throughput);
                assert!(found.throughput <= best, "{what} > {best}");
                assert!(
                    found.throughput == best || !found.is_optimal,
                    "{what} < {best}"
                );
                all += 1;
                missed.extend((found.throughput < best).then(|| format!("{what} < {best}")));
            }
        }
    }
    assert!(
        missed.len() * 50 <= all,
        "{} of {all}: {missed:#?}",
        missed.len()
    );
}

/// No period exceeds its maximum, for any number of elements. Where an operation of the best single
/// tree fits into the maximum, the throughput is at least about that of the tree.
#[test]
fn periods_do_not_exceed_their_maximum() {
    let mut random = Random(63);
    for round in 0..25 {
        let platform = random_platform(&mut random);
        for ports in [Ports::BI, Ports::UNI] {
            let solution =
                solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
            let single = best_single(&solution).unwrap().throughput;
            for part in ["1", "5/4", "7/2", "19/2"] {
                let max_period = fraction(part) / &single;
                for elements in [None, Some(5), Some(840)] {
                    let what = format!("{round} {ports:?} {part} {elements:?}");
                    let periodic = match solution.periodic(Some(&max_period), elements) {
                        Ok(periodic) => periodic,
                        Err(error) => {
                            // An operation cut to whole elements may take a little longer.
                            let tight = elements.is_some() && part == "1";
                            assert!(error.is_usage(), "{what}: {error}");
                            assert!(tight || elements == Some(5), "{what}: {error}");
                            continue;
                        }
                    };
                    assert!(*periodic.period() <= max_period, "{what}");
                    if elements != Some(5) {
                        let part = periodic.throughput().to_f64() / single.to_f64();
                        assert!(part >= 0.99, "{what}: {part}");
                    }
                    let schedule = periodic.schedule(2 * periodic.operations()).unwrap();
                    assert!(schedule.check().is_correct());
                }
            }
        }
    }
}

/// All methods give the same throughput for operations whose throughput is proved.
#[test]
fn methods_agree() {
    for ports in [Ports::BI, Ports::UNI] {
        for operation in Operation::ALL {
            let platform = generate("random:6:16", 4).unwrap();
            let Ok(solution) = solve(&platform, operation, ports, SolveMethod::Ports) else {
                continue;
            };
            let others = solution.recomputed(true);
            let is_flow = matches!(operation, Operation::Broadcast | Operation::Reduce);
            let expected = match solution.certificate {
                Some(_) => 1 + usize::from(is_flow && ports.can_relay()),
                None => 0,
            };
            assert_eq!(others.len(), expected, "{}", operation.name());
            let same = |t: &oneport::Result<Fraction>| t.as_ref() == Ok(&solution.throughput);
            assert!(others.iter().all(|(_, t)| same(t)));
        }
    }
    // The polynomial program is fast on larger platforms as well.
    let platform = generate("random:40:160", 1).unwrap();
    let solution = solve(&platform, Operation::Reduce, Ports::BI, SolveMethod::Ports);
    if let Ok(solution) = solution {
        assert_eq!(solution.recomputed(false)[0].1, Ok(solution.throughput));
    }
}
