//! Tests of reductions with computation, scans and multicasts, against brute force or their bounds.

use oneport::check;
use oneport::run::{Clock, Operator, Run, Team, inputs, oracle};
use oneport::{Ports, Schedule};
use oneport_steady::{
    Edge, Fraction, Operation, Platform, Solution, SolveMethod, best_single, solve,
};

use super::cases::cases;
use super::{Random, brute};

/// A random strongly connected platform: a ring and further edges, with times of combining.
fn random_platform(random: &mut Random, n: usize, max_edges: usize) -> Platform {
    let mut pairs: Vec<(usize, usize)> = (0..n).map(|v| (v, (v + 1) % n)).collect();
    for _ in 0..2 * n {
        let (a, b) = (random.below(n), random.below(n));
        if a != b && !pairs.contains(&(a, b)) && pairs.len() < max_edges {
            pairs.push((a, b));
        }
    }
    let number = |random: &mut Random, min: usize| {
        Fraction::from(min + random.below(5)) / Fraction::from(1 + random.below(3))
    };
    let edges = pairs.into_iter();
    let edges = edges.map(|(a, b)| Edge::new(a, b, number(random, 1)));
    let edges: Vec<Edge> = edges.collect();
    // Some nodes combine in no time.
    let compute = (0..n).map(|_| number(random, 0)).collect();
    let root = random.below(n);
    let platform = Platform::new(n, root, None, edges).unwrap();
    platform.with_compute(compute).unwrap()
}

/// Checks, simulates and runs periodic schedules: no slower than their time bound, no faster than
/// the throughput allows.
fn assert_schedules_are_correct(solution: &Solution, ordered: bool, what: &str) {
    let platform = solution.platform();
    let periodic = solution.periodic(None, Some(6)).unwrap();
    let cost = periodic.cost(1.0).unwrap();
    assert!(periodic.lag() <= periodic.depth());
    let mut constants = Vec::new();
    for n in [1, periodic.operations() + 1, 7 * periodic.operations()] {
        let schedule: Schedule = periodic.schedule(n).unwrap();
        let options = check::Options {
            keep_order: ordered,
            overlap: platform.overlaps(),
            ..check::Options::default()
        };
        let report = schedule.check_with(&options);
        assert!(report.is_correct(), "{what}: {:?}", report.errors);
        let time = schedule.simulate(&cost).unwrap().makespan();
        let bound = periodic.time_bound(n).to_f64();
        assert!(time <= bound * (1.0 + 1e-9), "{what}: {time} > {bound}");
        let min_time = n as f64 / solution.throughput.to_f64();
        assert!(
            time >= min_time * (1.0 - 1e-9),
            "{what}: {time} < {min_time}"
        );
        constants.push(time - n as f64 / periodic.throughput().to_f64());
        if n == periodic.operations() + 1 && n < 50 {
            let name = if ordered { "affine" } else { "sum" };
            let operator = Operator::<u64>::named(name).unwrap();
            let data = inputs(schedule.collective(), schedule.layout(), &operator);
            let mut team = Team::new(schedule.ranks()).unwrap();
            let outcome = Run::new(&schedule)
                .op(&operator)
                .inputs(&data)
                .cost(cost.clone())
                .clock(Clock::Native)
                .on(&mut team)
                .unwrap();
            let expected = oracle(schedule.collective(), schedule.layout(), &operator, &data);
            assert_eq!(outcome.outputs, expected.unwrap(), "{what}");
        }
    }
    let max_constant = periodic.period().to_f64() * periodic.lag() as f64 * (1.0 + 1e-9);
    assert!(constants.iter().all(|c| *c <= max_constant), "{what}");
}

#[test]
fn reductions_with_computation_match_brute_force() {
    let mut random = Random(31);
    for round in 0..cases(20, 60) {
        let n = [2, 3, 3, 3, 4][round % 5];
        let platform = random_platform(&mut random, n, if n == 4 { 5 } else { 6 });
        for overlap in [false, true] {
            let platform = platform.clone().with_overlap(overlap);
            for ports in [Ports::BI, Ports::UNI] {
                for operation in [Operation::ReduceOrdered, Operation::Reduce] {
                    let ordered = operation == Operation::ReduceOrdered;
                    let what = format!(
                        "{round}: {ordered} {overlap} {ports:?} {}",
                        platform.to_json()
                    );
                    let expected = brute::reduction(&platform, ports, ordered);
                    let solution = solve(&platform, operation, ports, SolveMethod::Ports).unwrap();
                    assert_eq!(
                        solution.throughput.to_string(),
                        expected.to_string(),
                        "{what}"
                    );
                    assert!(solution.is_optimal && solution.certificate.is_some());
                    let single = best_single(&solution).unwrap();
                    assert!(single.throughput <= solution.throughput);
                    if round % 4 == 0 {
                        let other =
                            solve(&platform, operation, ports, SolveMethod::Matchings).unwrap();
                        assert_eq!(other.throughput, expected, "{what}");
                    }
                    assert_schedules_are_correct(&solution, ordered, &what);
                }
            }
        }
    }
}

/// If combining takes no time, reductions in rank order are no faster than in any order, and two
/// ranks reduce equally fast.
#[test]
fn rank_order_gains_nothing_with_free_combining() {
    let mut random = Random(8);
    for _ in 0..15 {
        let n = 2 + random.below(4);
        let platform = random_platform(&mut random, n, 10);
        let free = platform.with_compute(Vec::new()).unwrap();
        for ports in [Ports::BI, Ports::UNI] {
            let of = |operation| solve(&free, operation, ports, SolveMethod::Ports).unwrap();
            let (any, ordered) = (of(Operation::Reduce), of(Operation::ReduceOrdered));
            assert!(ordered.throughput <= any.throughput);
            if n == 2 {
                assert_eq!(ordered.throughput, any.throughput);
            }
            assert_schedules_are_correct(&ordered, true, &free.to_json());
        }
    }
}

/// The throughput for many contributions and a costly operator is not proved optimal.
#[test]
fn many_contributions_lie_between_their_bounds() {
    let mut random = Random(4);
    let platform = random_platform(&mut random, 11, 30);
    for ports in [Ports::BI, Ports::UNI] {
        let solution = solve(&platform, Operation::Reduce, ports, SolveMethod::Ports).unwrap();
        assert!(!solution.is_optimal && solution.certificate.is_none());
        let (below, above) = solution.bounds().unwrap().unwrap();
        assert!(below == solution.throughput && below <= above);
        assert_schedules_are_correct(&solution, false, "11 nodes");
        let ordered = solve(
            &platform,
            Operation::ReduceOrdered,
            ports,
            SolveMethod::Ports,
        )
        .unwrap();
        assert!(ordered.certificate.is_some());
        assert_schedules_are_correct(&ordered, true, "11 nodes in order");
    }
}

#[test]
fn scans_lie_between_their_bounds() {
    let mut random = Random(12);
    for round in 0..cases(10, 24) {
        let n = 2 + round % 5;
        let platform = random_platform(&mut random, n, 12);
        for overlap in [false, true] {
            let platform = platform.clone().with_overlap(overlap);
            for ports in [Ports::BI, Ports::UNI] {
                let what = format!("{overlap} {ports:?} {}", platform.to_json());
                let solution =
                    solve(&platform, Operation::Scan, ports, SolveMethod::Ports).unwrap();
                let (below, above) = solution.bounds().unwrap().unwrap();
                assert!(below == solution.throughput && below <= above, "{what}");
                let single = best_single(&solution).unwrap();
                assert_eq!(single.throughput, solution.throughput);
                assert!(n > 3 || single.is_optimal, "{what}");
                // At least the rate over the link from 0 to 1, with combining at 1.
                if n == 2 {
                    let edge = &platform.edges()[0];
                    let (cost, time) = (edge.cost.clone(), platform.compute()[1].clone());
                    let busiest = if overlap { cost.max(time) } else { cost + time };
                    assert!(below >= Fraction::ONE / busiest, "{what}");
                }
                assert_schedules_are_correct(&solution, true, &what);
            }
        }
    }
}

#[test]
fn multicasts_match_brute_force_and_have_certificates() {
    let mut random = Random(99);
    for _ in 0..cases(20, 60) {
        let all = super::random_platform(&mut random);
        let n = all.nodes();
        let targets = (1..n).filter(|&v| v == n - 1 || random.below(2) == 0);
        let targets: Vec<usize> = targets.collect();
        let platform = Platform::new(n, 0, Some(targets), all.edges().to_vec()).unwrap();
        for ports in [Ports::BI, Ports::UNI] {
            let expected = brute::throughput(&platform, ports);
            let solution =
                solve(&platform, Operation::Multicast, ports, SolveMethod::Ports).unwrap();
            assert_eq!(solution.throughput, expected, "{}", platform.to_json());
            assert!(solution.is_optimal && solution.certificate.is_some());
            let (below, above) = solution.bounds().unwrap().unwrap();
            assert!(below <= expected && expected <= above);
        }
    }
}
