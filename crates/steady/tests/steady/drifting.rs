//! Tests of guarantees under drifting costs against all extreme drifts.

use oneport::Ports;
use oneport::simulate::Prepared;
use oneport_steady::{
    Edge, Fraction, Operation, Platform, SolveMethod, generate, parse_fraction, solve,
};

use super::cases::cases;
use super::{Random, brute, random_platform};

/// The platform with the maximum cost of every edge `e` whose bit in `up` is set, and the nominal
/// cost of the others.
fn drifted(platform: &Platform, up: usize) -> Platform {
    let cost = |e: usize, edge: &Edge| match &edge.drift {
        Some(drift) if up >> e & 1 == 1 => &edge.cost * (Fraction::ONE + drift),
        _ => edge.cost.clone(),
    };
    platform.with_costs(cost).unwrap()
}

fn with_drifts(platform: &Platform, random: &mut Random) -> Platform {
    let mut edges = platform.edges().to_vec();
    for e in &mut edges {
        e.drift = Some(Fraction::from(random.below(4)) / Fraction::from(4usize));
    }
    Platform::new(platform.nodes(), platform.source(), None, edges).unwrap()
}

/// A guarantee is the minimum throughput, over all extreme costs, of a schedule that keeps its
/// slots. The best guarantee is the minimum of the optimal throughputs over all extreme costs.
#[test]
fn guarantees_are_minima_over_all_extremes() {
    let mut random = Random(5);
    for _ in 0..cases(5, 12) {
        let platform = with_drifts(&random_platform(&mut random), &mut random);
        let edges = platform.edges().len();
        if edges > 7 {
            continue;
        }
        for ports in [Ports::BI, Ports::UNI] {
            let solution =
                solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
            let robust = solution.robustness(&Fraction::ZERO).unwrap();
            assert!(robust.guaranteed <= robust.best_guaranteed);
            assert!(robust.best_guaranteed <= solution.throughput);
            let (mut min_kept, mut min_best, mut min_robust) = (None, None, None);
            for up in 0..1usize << edges {
                let now = drifted(&platform, up);
                // Each slot is stretched until its slowest transfer ends.
                let rate = |of: &oneport_steady::Solution| {
                    let lengths = of.slots.iter().map(|slot| {
                        let stretch = slot
                            .edges
                            .iter()
                            .map(|&e| &now.edges()[e].cost / &of.platform().edges()[e].cost);
                        &slot.share * stretch.max().unwrap()
                    });
                    &of.throughput / lengths.fold(Fraction::ZERO, |s, l| s + l)
                };
                let update_min = |old: &mut Option<Fraction>, new: Fraction| {
                    *old = Some(old.take().map_or(new.clone(), |o| o.min(new)));
                };
                update_min(&mut min_kept, rate(&solution));
                update_min(&mut min_robust, rate(&robust.best));
                update_min(&mut min_best, brute::throughput(&now, ports));
            }
            assert_eq!(min_kept.unwrap(), robust.guaranteed);
            assert_eq!(min_best.unwrap(), robust.best_guaranteed);
            assert_eq!(min_robust.unwrap(), robust.best_guaranteed);
        }
    }
}

/// Schedules simulated under extreme costs reach their guaranteed throughput.
#[test]
fn schedules_keep_their_guarantee() {
    let mut random = Random(17);
    for name in ["fig3", "ring:4", "clustered:2x3", "random:6:14"] {
        let platform = with_drifts(&generate(name, 2).unwrap(), &mut random);
        for ports in [Ports::BI, Ports::UNI] {
            let solution =
                solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
            let robust = solution.robustness(&Fraction::ZERO).unwrap();
            for (solution, guaranteed) in [
                (&solution, &robust.guaranteed),
                (&robust.best, &robust.best_guaranteed),
            ] {
                let periodic = solution.periodic(None, None).unwrap();
                let n = 40 * periodic.operations();
                let schedule = periodic.schedule(n).unwrap();
                let prepared = Prepared::new(&schedule, false).unwrap();
                for up in [
                    usize::MAX,
                    0,
                    0x5555_5555,
                    0x3333_3333,
                    random.below(1 << 20),
                ] {
                    let now = drifted(&platform, up);
                    let cost = now.cost_model(periodic.elements(), 1.0).unwrap();
                    let time = prepared.simulate(&cost).unwrap().makespan();
                    let start = 3.0 * periodic.time_bound(1).to_f64();
                    let rate = n as f64 / (time - start);
                    assert!(
                        rate >= guaranteed.to_f64() * (1.0 - 1e-9),
                        "{name} {ports:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn equal_drifts_scale_the_throughput() {
    for (name, ports) in ["clustered:2x3", "fig3"]
        .into_iter()
        .flat_map(|name| [Ports::BI, Ports::UNI].map(|ports| (name, ports)))
    {
        let platform = generate(name, 1).unwrap();
        let solution = solve(&platform, Operation::Broadcast, ports, SolveMethod::Ports).unwrap();
        let robust = solution
            .robustness(&parse_fraction("1/4").unwrap())
            .unwrap();
        let expected = &solution.throughput * parse_fraction("4/5").unwrap();
        assert_eq!(robust.guaranteed, expected);
        assert_eq!(robust.best_guaranteed, expected);
    }
}
