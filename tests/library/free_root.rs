//! Tests of free roots: no fixed root is better than the one that a planner takes.

use std::collections::BTreeMap;

use oneport::machine::{Eager, Links};
use oneport::plan::choose::with_best_segments;
use oneport::plan::registry::{self, Algorithm};
use oneport::{CostModel, Kind, Ports, Request};

use crate::support::cases::cases;
use crate::support::random::Random;

/// The kinds of requests that are compared.
const VARIANTS: usize = 6;

/// A random request with a root; `variant` chooses among equal and unequal blocks, links that cost
/// the same or not, operands in any order or in rank order, and copies with and without cost.
fn request(random: &mut Random, kind: Kind, variant: usize) -> Request {
    let p = 1 + random.below(13);
    let sizes: Vec<usize> = (0..p)
        .map(|_| random.below(3) * random.below([3, 30, 3000][p % 3]))
        .collect();
    let mut request = Request::new(kind, p, sizes.iter().copied().max().unwrap_or(0));
    if kind.has_blocks() && variant.is_multiple_of(2) {
        request = request.blocks(sizes);
    }
    let mut cost = CostModel::new(random.below(200) as f64, random.below(3) as f64);
    if variant >= 4 {
        let mut matrix = |top: usize| -> Vec<Vec<Option<f64>>> {
            let mut link = |_| Some(1.0 + random.below(top) as f64);
            (0..p).map(|_| (0..p).map(&mut link).collect()).collect()
        };
        let links = Links {
            alpha: matrix(200),
            beta: matrix(5),
            gamma: (0..p).map(|r| (r % 3) as f64).collect(),
            gamma_copy: vec![],
            ..Links::default()
        };
        cost = CostModel::heterogeneous(links).unwrap();
    } else if variant >= 2 {
        cost = cost.gamma(1.0).gamma_copy(random.below(2) as f64);
    }
    let ports = [Ports::UNI, Ports::BI, Ports::BI.with_k(2)][random.below(3)];
    let request = request.cost(cost).ports(ports);
    request.keep_order(variant % 4 == 3)
}

/// The model time of the algorithm's schedule, if it accepts the request.
fn time(algorithm: &Algorithm, request: &Request) -> Option<f64> {
    algorithm.accepts(request).ok()?;
    let schedule = algorithm.plan(request).unwrap();
    let root = schedule.collective().root().unwrap();
    assert!(root < request.ranks() && (request.get_free_root() || root == request.get_root()));
    Some(schedule.simulate(request.get_cost()).unwrap().makespan())
}

#[test]
fn no_fixed_root_is_better_than_a_free_one() {
    let rooted = [Kind::Broadcast, Kind::Reduce, Kind::Gather, Kind::Scatter];
    let mut random = Random::new(19);
    let mut worse = BTreeMap::new();
    let mut compared = 0;
    for round in 0..cases(2, 20) * VARIANTS {
        let variant = round % VARIANTS;
        for kind in rooted {
            let fixed = request(&mut random, kind, variant);
            for algorithm in registry::of(kind) {
                let free = fixed.clone().free_root(true);
                let free = free.root(random.below(fixed.ranks()));
                let Some(taken) = time(algorithm, &free) else {
                    continue;
                };
                for root in 0..fixed.ranks() {
                    let best = time(algorithm, &fixed.clone().root(root)).unwrap();
                    compared += 1;
                    if taken > best * (1.0 + 1e-12) {
                        let seen = worse.entry((kind.name(), algorithm.name(), variant));
                        let factor = seen.or_insert(1.0f64);
                        *factor = factor.max(taken / best);
                    }
                }
            }
        }
    }
    assert!(compared > cases(1500, 3000));
    assert!(worse.is_empty(), "{worse:#?}");
}

/// A collective with a late rank takes no longer with a free root than with root 0.
#[test]
fn a_late_rank_changes_the_best_root() {
    let cost = CostModel::new(1.0, 1.0).arrivals(vec![0.0, 0.0, 20.0]);
    let gather = Request::gather(3, 2).cost(cost).free_root(true);
    assert_eq!(gather.time("rank-ordered").unwrap(), 23.0);
    assert_eq!(gather.time("optimal").unwrap(), 23.0);
}

/// Where computation overlaps communication, ranks arrive late, or messages have latency or do not
/// wait, no planner knows which root is best.
#[test]
fn overlap_and_delays_change_the_best_root() {
    let sizes = vec![2, 5, 2, 1, 0, 1, 1, 2, 17, 0, 1, 2, 0];
    let cost = CostModel::new(11.0, 0.0).gamma_copy(1.0).overlap(true);
    let gather = Request::gather(13, 17).blocks(sizes).cost(cost);
    let optimal = registry::find(Kind::Gather, "optimal").unwrap();
    let best = |request: &Request| with_best_segments(&optimal, request).unwrap().time;
    let fixed = (0..13).map(|root| best(&gather.clone().root(root)));
    let fixed = fixed.fold(f64::INFINITY, f64::min);
    assert_eq!(best(&gather.clone().free_root(true)), fixed);

    let mut random = Random::new(23);
    for round in 0..cases(32, 64) {
        let kind = [Kind::Broadcast, Kind::Reduce, Kind::Gather, Kind::Scatter][round % 4];
        let request = request(&mut random, kind, round % VARIANTS);
        let machine = request.get_cost().clone();
        let arrivals = (0..request.ranks()).map(|_| (random.below(4) * 50) as f64);
        let machine = match round / 4 % 4 {
            0 => machine.overlap(true),
            1 => machine.arrivals(arrivals.collect()),
            2 => machine.latency(30.0),
            _ => machine.latency(7.0).eager(Eager::All),
        };
        let request = request.cost(machine).segment_count(5);
        for algorithm in registry::of(kind).filter(|a| a.accepts(&request).is_ok()) {
            let time = |request: Request| algorithm.time(&request).unwrap();
            let free = time(request.clone().free_root(true));
            for root in 0..request.ranks() {
                let best = time(request.clone().root(root));
                assert!(
                    free <= best * (1.0 + 1e-12),
                    "{} {request:?}: {free}, root {root}: {best}",
                    algorithm.name()
                );
            }
        }
    }
}
