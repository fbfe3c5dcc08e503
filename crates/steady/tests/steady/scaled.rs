//! Tests of costs of all magnitudes: throughputs scale exactly with the costs, and platforms with
//! mixed magnitudes are solved.

use oneport::Ports;
use oneport_steady::{
    Edge, Fraction, Operation, Platform, SolveMethod, best_single, flow_bound, solve,
};

use super::cases::cases;
use super::{Random, brute, fraction};

fn power(exponent: i32) -> Fraction {
    fraction(&format!("1e{exponent}"))
}

/// A random platform of 2 to 5 nodes: a tree from node 0 or a ring, and further edges; sometimes
/// with times of combining, sometimes with few targets.
fn random_platform(random: &mut Random, cost: &dyn Fn(&mut Random) -> Fraction) -> Platform {
    let n = 2 + random.below(4);
    let mut pairs: Vec<(usize, usize)> = match random.below(3) {
        0 => (1..n).map(|v| (random.below(v), v)).collect(),
        _ => (0..n).map(|v| (v, (v + 1) % n)).collect(),
    };
    for _ in 0..random.below(2 * n) {
        let (a, b) = (random.below(n), random.below(n));
        if a != b && !pairs.contains(&(a, b)) && pairs.len() < 10 {
            pairs.push((a, b));
        }
    }
    let edges = pairs.into_iter();
    let edges = edges.map(|(a, b)| Edge::new(a, b, cost(random))).collect();
    let targets = (1..n).filter(|&v| v == n - 1 || random.below(2) == 0);
    let targets: Vec<usize> = targets.collect();
    let targets = (random.below(3) == 0).then_some(targets);
    let platform = Platform::new(n, 0, targets, edges).unwrap();
    if random.below(2) == 0 {
        return platform;
    }
    let time = |random: &mut Random| match random.below(3) {
        0 => Fraction::ZERO,
        _ => cost(random),
    };
    let compute = (0..n).map(|_| time(random)).collect();
    let overlap = random.below(2) == 0;
    platform
        .with_compute(compute)
        .unwrap()
        .with_overlap(overlap)
}

/// Random costs: 1/3 to 6, times ten to the power of one of `magnitudes`.
fn cost_of(magnitudes: &'static [i32]) -> impl Fn(&mut Random) -> Fraction {
    move |random| {
        let part = Fraction::from(1 + random.below(6)) / Fraction::from(1 + random.below(3));
        part * power(magnitudes[random.below(magnitudes.len())])
    }
}

/// Magnitudes that the costs of one platform have.
const MAGNITUDES: [&[i32]; 7] = [
    &[0],
    &[0, 6],
    &[0, 9, -9],
    &[
        -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ],
    &[6],
    &[0, -20],
    &[-60, 0, 60],
];

fn with_scaled_costs(platform: &Platform, factor: &Fraction) -> Platform {
    let compute = platform.compute().iter().map(|c| c * factor).collect();
    let scaled = platform.with_costs(|_, e| &e.cost * factor).unwrap();
    scaled.with_compute(compute).unwrap()
}

#[test]
fn throughputs_scale_exactly() {
    let mut random = Random(16);
    for round in 0..cases(35, 126) {
        let platform = random_platform(&mut random, &cost_of(MAGNITUDES[round % 7]));
        let factor = match round % 10 {
            0 => fraction("355/113"),
            _ => power(random.below(19) as i32 - 9),
        };
        let scaled = with_scaled_costs(&platform, &factor);
        for ports in [Ports::BI, Ports::UNI] {
            for operation in Operation::ALL {
                // Scans on more nodes take too long to search.
                if operation == Operation::Scan && platform.nodes() > 3 {
                    continue;
                }
                let what = || {
                    let name = operation.name();
                    format!("{factor} times {name} {ports:?} {}", platform.to_json())
                };
                let of =
                    |platform: &Platform| solve(platform, operation, ports, SolveMethod::Ports);
                let (solution, other) = match (of(&platform), of(&scaled)) {
                    (Ok(solution), Ok(other)) => (solution, other),
                    (Err(error), Err(other)) => {
                        assert!(error.to_string().contains("reach"), "{error}: {}", what());
                        assert_eq!(error, other);
                        continue;
                    }
                    (one, other) => panic!("{:?} {:?}: {}", one.err(), other.err(), what()),
                };
                let same = |a: &Fraction, b: &Fraction| assert_eq!(*a, b * &factor, "{}", what());
                same(&solution.throughput, &other.throughput);
                assert_eq!(solution.routes.len(), other.routes.len(), "{}", what());
                assert_eq!(solution.slots, other.slots, "{}", what());
                let single = |of| best_single(of).unwrap().throughput;
                same(&single(&solution), &single(&other));
                if operation == Operation::Multicast {
                    let bound = |of| flow_bound(of, ports).unwrap();
                    same(&bound(&platform), &bound(&scaled));
                }
            }
        }
    }
}

/// Both methods, the polynomial program, bounds and brute force agree.
#[test]
fn platforms_with_mixed_magnitudes_are_solved() {
    let mut random = Random(61);
    for round in 0..cases(35, 126) {
        let platform = random_platform(&mut random, &cost_of(MAGNITUDES[round % 7]));
        assert_methods_agree(&platform, round % 3 == 0);
    }
}

/// The solver finds exact numbers from remainders modulo primes, of which costs may be multiples.
#[test]
fn platforms_with_costs_that_are_multiples_of_primes_are_solved() {
    let mut random = Random(2305);
    for round in 0..cases(12, 40) {
        let primes = [(1u64 << 61) - 1, (1 << 61) - 31];
        let cost = |random: &mut Random| {
            let mut number = Fraction::from(1 + random.below(3));
            for prime in primes {
                match random.below(3) {
                    0 => number *= Fraction::from(prime),
                    1 => number /= Fraction::from(prime),
                    _ => {}
                }
            }
            number
        };
        assert_methods_agree(&random_platform(&mut random, &cost), round % 3 == 0);
    }
}

/// Asserts that all ways to compute a throughput agree.
fn assert_methods_agree(platform: &Platform, all: bool) {
    let n = platform.nodes();
    for ports in [Ports::BI, Ports::UNI] {
        for operation in Operation::ALL {
            if operation == Operation::Scan && n > 3 {
                continue;
            }
            let what = || format!("{} {ports:?} {}", operation.name(), platform.to_json());
            let solution = match solve(platform, operation, ports, SolveMethod::Ports) {
                Ok(solution) => solution,
                Err(error) => {
                    assert!(error.to_string().contains("reach"), "{error}: {}", what());
                    continue;
                }
            };
            let found = &solution.throughput;
            for (by, throughput) in solution.recomputed(all) {
                assert_eq!(throughput.as_ref(), Ok(found), "{by}, {}", what());
            }
            if let Some((below, above)) = solution.bounds().unwrap() {
                assert!(below <= *found && *found <= above, "{}", what());
            }
            let expected = match operation {
                Operation::Broadcast => brute::throughput(&platform.with_source(0).unwrap(), ports),
                Operation::Multicast => brute::throughput(platform, ports),
                Operation::Reduce if n <= 3 => brute::reduction(platform, ports, false),
                Operation::ReduceOrdered if n <= 3 => brute::reduction(platform, ports, true),
                _ => continue,
            };
            assert_eq!(*found, expected, "{}", what());
        }
    }
}

/// On these platforms, the last improvements are tiny compared with the throughput.
#[test]
fn large_platforms_with_mixed_magnitudes_are_solved() {
    for seed in 0..cases(1, 3) {
        let platform = oneport_steady::generate("random:20:90", seed).unwrap();
        let mut random = Random(seed);
        let costs: Vec<Fraction> = (0..90).map(|_| power([0, 6][random.below(2)])).collect();
        let platform = platform.with_costs(|i, e| &e.cost * &costs[i]).unwrap();
        let scaled = with_scaled_costs(&platform, &power(-7));
        for ports in [Ports::BI, Ports::UNI] {
            for operation in [Operation::Broadcast, Operation::Scatter] {
                let of = |p| solve(p, operation, ports, SolveMethod::Ports).unwrap();
                let solution = of(&platform);
                assert!(solution.certificate.is_some());
                assert_eq!(solution.throughput, of(&scaled).throughput * power(-7));
                for (by, throughput) in solution.recomputed(false) {
                    assert_eq!(throughput.as_ref(), Ok(&solution.throughput), "{by}");
                }
            }
        }
    }
}

/// Rank 0 receives nothing in a scan, so the platform needs no path back to it.
#[test]
fn scans_need_no_path_back() {
    let edges = [(0, 1), (1, 2)].map(|(a, b)| Edge::new(a, b, fraction("2")));
    let platform = Platform::new(3, 0, None, edges.to_vec()).unwrap();
    for ports in [Ports::BI, Ports::UNI] {
        let solution = solve(&platform, Operation::Scan, ports, SolveMethod::Ports).unwrap();
        let expected = if ports == Ports::BI { "1/2" } else { "1/4" };
        assert_eq!(solution.throughput, fraction(expected));
        let single = best_single(&solution).unwrap();
        assert_eq!(single.throughput, solution.throughput);
    }
    let edges = vec![
        Edge::new(1, 0, fraction("2")),
        Edge::new(1, 2, fraction("2")),
    ];
    let platform = Platform::new(3, 0, None, edges).unwrap();
    let error = solve(&platform, Operation::Scan, Ports::BI, SolveMethod::Ports).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("node 1 cannot be reached from node 0")
    );
}
