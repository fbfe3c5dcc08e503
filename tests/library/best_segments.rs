//! Tests of the best segments: no number and no size of segments is better than those found.

use oneport::machine::Links;
use oneport::plan::choose::{LeftOut, with_best_segments};
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::segments::Method;
use oneport::plan::{Request, Segments};
use oneport::{CostModel, Kind, Ports};

use crate::support::cases::cases;
use crate::support::random::Random;

/// Asserts that the segments found take the least time of all numbers and sizes.
fn assert_best(algorithm: &Algorithm, request: &Request) {
    let best = with_best_segments(algorithm, request).unwrap();
    let time = |segments| algorithm.time(&request.clone().segments(segments)).unwrap();
    assert_eq!(time(best.request.get_segments().clone()), best.time);
    let m = request.elements();
    let counts = (1..=m).map(|count| Segments::of_count(m, count));
    let sizes = (1..=m).map(|size| Segments::of_size(m, size));
    for segments in counts.chain(sizes).map(Result::unwrap) {
        let other = time(segments.clone());
        assert!(
            best.time <= other * (1.0 + 1e-11),
            "{} {request:?}: {best:?}, {other} with {segments:?}",
            algorithm.name()
        );
    }
}

/// Of blocks that differ by an element, among an odd number of ranks that send or receive.
#[test]
fn parts_of_unequal_blocks_are_searched_for() {
    let ring = registry::find(Kind::Allreduce, "segmented-ring").unwrap();
    for (ranks, elements) in [(5, 13), (7, 23)] {
        let request = Request::allreduce(ranks, elements).ports(Ports::UNI);
        let request = request.cost(CostModel::new(0.0, 1.0));
        assert_best(&ring, &request);
        let best = with_best_segments(&ring, &request).unwrap();
        assert!(best.request.get_segments().count() > 1);
        assert!(best.time < ring.time(&request).unwrap());
    }
}

/// Parts of blocks that differ by an element gain less than they cost to start, unless that is
/// almost free: a search among many ranks leaves them out, and says so only there.
#[test]
fn parts_that_cannot_gain_are_not_missed() {
    let ring = registry::find(Kind::Allreduce, "segmented-ring").unwrap();
    let ports = [
        Ports::UNI,
        Ports::BI,
        Ports::TELEPHONE,
        Ports::UNI.with_k(2),
    ];
    for (i, (p, m)) in (2..=9)
        .flat_map(|p| [p - 1, p + 1, 2 * p - 1, 3 * p + 1, 7 * p - 2].map(|m| (p, m)))
        .enumerate()
    {
        for alpha in [0.0, 0.1, 0.6, 1.0, 2.0] {
            let gamma = [0.0, 0.5, 3.0][i % 3];
            let request = Request::allreduce(p, m).ports(ports[i % ports.len()]);
            assert_best(
                &ring,
                &request.cost(CostModel::new(alpha, 1.0).gamma(gamma)),
            );
        }
    }
    for (ranks, ports, alpha, left_out) in [
        (100, Ports::BI, 2.0, false),
        (100, Ports::UNI, 2.0, false),
        (100, Ports::BI, 0.0, true),
        (101, Ports::UNI, 2.0, true),
    ] {
        let request = Request::allreduce(ranks, 65_536).ports(ports);
        let request = request.cost(CostModel::new(alpha, 1.0));
        let best = with_best_segments(&ring, &request).unwrap();
        assert_eq!(best.request.get_segments().count(), 1);
        let expected = Vec::from_iter(left_out.then_some(LeftOut::Segments));
        assert_eq!(best.left_out, expected, "{ranks} {ports:?} {alpha}");
    }
}

#[test]
fn no_number_of_few_elements_is_better() {
    let rows: Vec<_> = registry::all().iter().filter(|a| a.segmented).collect();
    let mut random = Random::new(7);
    let mut compared = 0;
    while compared < cases(80, 250) {
        let algorithm = rows[random.below(rows.len())];
        let (p, m) = (2 + random.below(12), 2 + random.below(59));
        let ports = [Ports::UNI, Ports::BI][random.below(2)];
        let mut cost = |max: usize| [0.0, 1.0, random.below(max) as f64 / 97.0][random.below(3)];
        let (alpha, beta, gamma) = (cost(2000), cost(500), cost(500));
        let mut machine = CostModel::new(alpha, beta).gamma(gamma);
        match random.below(8) {
            0 => machine = machine.overlap(true),
            1 => {
                let mut link = |_| Some(random.below(20) as f64);
                let mut matrix = || (0..p).map(|_| (0..p).map(&mut link).collect()).collect();
                let links = Links {
                    alpha: matrix(),
                    beta: matrix(),
                    gamma: vec![1.0; p],
                    gamma_copy: vec![],
                    ..Links::default()
                };
                machine = CostModel::heterogeneous(links).unwrap();
            }
            _ => {}
        }
        let request = Request::new(algorithm.collective, p, m)
            .root(random.below(p))
            .ports(ports.with_k(1 + random.below(3)))
            .cost(machine)
            .keep_order(random.below(4) == 0);
        if algorithm.accepts(&request).is_ok() {
            assert_best(algorithm, &request);
            compared += 1;
        }
    }
}

#[test]
fn even_segments_and_neighbours_are_found() {
    let uni = Ports::UNI;
    for (kind, name, p, m, ports, (alpha, beta, gamma), even) in [
        (
            Kind::Broadcast,
            "chain",
            9,
            60,
            uni,
            (5.639138, 1.974577, 0.0),
            None,
        ),
        (
            Kind::Broadcast,
            "split-binary",
            7,
            33,
            uni,
            (0.0, 1.0, 1.0),
            None,
        ),
        (
            Kind::Reduce,
            "circulant",
            3,
            33,
            Ports::BI,
            (1.0, 1.0, 0.0),
            None,
        ),
        (
            Kind::Reduce,
            "uni-greedy",
            8,
            60,
            uni.with_k(2),
            (1.0, 2.5662, 0.63247),
            None,
        ),
        // Faster in 28 segments of 2 or 3 elements than in any of one size.
        (
            Kind::Allreduce,
            "uni-greedy",
            13,
            60,
            uni,
            (0.275, 1.0, 2.125),
            Some(28),
        ),
    ] {
        let request = Request::new(kind, p, m)
            .ports(ports)
            .cost(CostModel::new(alpha, beta).gamma(gamma));
        let algorithm = registry::find(kind, name).unwrap();
        assert_best(&algorithm, &request);
        if let Some(count) = even {
            let best = with_best_segments(&algorithm, &request).unwrap();
            let even = Segments::of_count(m, count).unwrap();
            assert_eq!(*best.request.get_segments(), even);
        }
    }
}

fn request(p: usize, m: usize, ports: Ports) -> Request {
    Request::reduce(p, m)
        .ports(ports)
        .cost(CostModel::new(10.0, 1.0).gamma(1.0))
}

#[test]
fn uni_greedy_is_the_best_of_all_sizes() {
    let row = registry::find(Kind::Reduce, "uni-greedy").unwrap();
    for p in [2, 3, 6, 15, 16, 100] {
        for m in [1, 7, 64, 200] {
            let r = request(p, m, Ports::UNI);
            let found = with_best_segments(&row, &r).unwrap();
            let time = |segments| row.closed_form(&r.clone().segments(segments)).unwrap();
            let sizes = (1..=m).map(|s| Segments::of_size(m, s).unwrap());
            let counts = (1..=m).map(|q| Segments::of_count(m, q).unwrap());
            let best = sizes.chain(counts).map(time).fold(f64::INFINITY, f64::min);
            assert_eq!(found.time, best, "p={p} m={m}");
            assert_eq!(time(found.request.get_segments().clone()), best);
        }
    }
    let r = request(64, 65536, Ports::UNI);
    let found = with_best_segments(&row, &r).unwrap();
    let size = found.request.get_segments().sizes()[0];
    assert_eq!((size, found.time), (111, 221_011.0));
    assert_eq!(found.segments_found, Some(Method::Exhaustive));
}

#[test]
fn closed_forms_are_the_better_neighbour_as_executed() {
    for ports in [Ports::UNI, Ports::BI] {
        for algorithm in registry::all()
            .iter()
            .filter(|a| a.segmented && a.ports.allow(ports))
        {
            for p in [1, 2, 3, 4, 7, 15, 20] {
                for m in [0, 1, 2, 30, 100] {
                    let r = request(p, m, ports).collective(algorithm.collective);
                    let found = with_best_segments(algorithm, &r).unwrap();
                    let segments = found.request.get_segments().clone();
                    assert!(!found.is_upper_bound && segments.elements() == m);
                    let time = algorithm.time(&r.clone().segments(segments)).unwrap();
                    assert_eq!(time, found.time);
                    for s in [1, m.div_ceil(2), m].map(|s| s.max(1)) {
                        let segments = Segments::of_size(m, s).unwrap();
                        let time = algorithm.time(&r.clone().segments(segments)).unwrap();
                        assert!(
                            found.time <= time,
                            "{} {ports:?} p={p} m={m} s={s}: {found:?}, {time}",
                            algorithm.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn whole_vectors_and_overlap() {
    let [binomial, chain] =
        ["binomial", "chain"].map(|name| registry::find(Kind::Reduce, name).unwrap());
    let best = with_best_segments(&binomial, &request(8, 100, Ports::BI)).unwrap();
    assert_eq!(*best.request.get_segments(), Segments::whole(100));
    assert_eq!(best.segments_found, None);
    let one = with_best_segments(&chain, &request(8, 1, Ports::BI)).unwrap();
    assert_eq!(one.segments_found, Some(Method::Whole));
    let mut r = request(8, 1000, Ports::BI);
    let overlap = r.get_cost().clone().overlap(true);
    r = r.cost(overlap);
    let found = with_best_segments(&chain, &r).unwrap().segments_found;
    assert_eq!(found, Some(Method::Search));
}

/// Ports for calls free the other direction of ports that are used in one at a time, so that a
/// schedule of many segments has to be simulated there, which a search must not do.
#[test]
fn segments_of_long_schedules_on_ports_for_calls_have_an_upper_bound() {
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    // Without a start-up time, the closed form takes the smallest segments.
    let request = Request::broadcast(4, 1 << 20).cost(CostModel::new(0.0, 1.0));
    let one_way = with_best_segments(&chain, &request.clone().ports(Ports::UNI)).unwrap();
    assert_eq!(one_way.request.get_segments().count(), 1 << 20);
    assert!(!one_way.is_upper_bound);
    let calls = request.ports(Ports::TELEPHONE);
    let best = with_best_segments(&chain, &calls).unwrap();
    let segments = best.request.get_segments();
    assert_eq!(segments, one_way.request.get_segments());
    assert_eq!((best.time, best.is_upper_bound), (one_way.time, true));
    assert_eq!(best.segments_found, Some(Method::LimitedSearch));
    for left_out in [LeftOut::Time, LeftOut::Segments] {
        assert!(best.left_out.contains(&left_out), "{:?}", best.left_out);
    }
}
