//! Tests of uni-greedy: the schedule, the greedy iterator and the states give the makespan by
//! definition.

use oneport::internal::pipeline::uni_greedy::{Greedy, best_uni_greedy, makespan};
use oneport::plan::segments::Method;
use oneport::plan::{Request, Segments};
use oneport::{CostModel, Kind, Ports};

use super::closed_form;

fn request(p: usize, sizes: &[usize], alpha: f64, beta: f64, gamma: f64) -> Request {
    Request::reduce(p, 0)
        .segments(Segments::of_sizes(sizes.to_vec()).unwrap())
        .ports(Ports::UNI)
        .cost(CostModel::new(alpha, beta).gamma(gamma))
}

fn simulated(kind: Kind, request: &Request) -> f64 {
    super::executed(&request.clone().collective(kind), "uni-greedy")
}

/// The makespan by definition: find the two smallest states by sorting.
fn oracle(p: usize, costs: &[(f64, f64)]) -> f64 {
    let mut states = vec![0.0f64; p];
    for &(tc, tp) in costs {
        let mut holders = std::mem::take(&mut states);
        while holders.len() > 1 {
            holders.sort_by(f64::total_cmp);
            let t = holders[1];
            holders.drain(..2);
            states.push(t + tc);
            holders.push(t + tc + tp);
        }
        states.append(&mut holders);
    }
    states.into_iter().fold(0.0, f64::max)
}

#[test]
fn figure_3() {
    // One element per segment, so transfer_time = 2 and combine_time = 1.
    let r = request(15, &[1; 5], 1.0, 1.0, 1.0);
    assert_eq!(simulated(Kind::Reduce, &r), 39.0);
    assert_eq!(closed_form(&r, "uni-greedy"), Some(39.0));
    assert_eq!(simulated(Kind::Broadcast, &r), 28.0);
}

#[test]
fn schedule_stream_states_and_definition_agree() {
    let segmentations: [&[usize]; 6] = [
        &[1],
        &[4, 4, 2],
        &[5, 3, 2],
        &[1, 0, 7, 7, 7, 2],
        &[0],
        &[3; 12],
    ];
    for p in 1..=40 {
        for sizes in segmentations {
            for (alpha, beta, gamma) in [
                (10.0, 1.0, 0.0),
                (1.0, 1.0, 1.0),
                (0.0, 2.0, 3.0),
                (0.0, 0.0, 1.0),
            ] {
                let r = request(p, sizes, alpha, beta, gamma).root(p / 2);
                let of = |&s: &usize| (r.transfer_time(s), r.combine_time(s));
                let costs: Vec<_> = sizes.iter().map(of).filter(|_| p > 1).collect();
                let expected = oracle(p, &costs);
                assert_eq!(
                    closed_form(&r, "uni-greedy"),
                    Some(expected),
                    "p={p} {sizes:?}"
                );
                assert_eq!(simulated(Kind::Reduce, &r), expected, "p={p} {sizes:?}");
                let mut greedy = Greedy::new(p);
                for (tc, tp) in costs {
                    greedy.next_segment(tc, tp);
                    assert_eq!(greedy.by_ref().count(), p - 1);
                }
                assert_eq!(greedy.time(), expected);
            }
        }
    }
}

#[test]
fn jumps_are_exact_for_whole_numbers_and_within_rounding_otherwise() {
    for p in [2, 3, 5, 8, 15, 24, 33, 64, 100, 1000] {
        for (tc, tp) in [
            (1.0, 0.0),
            (2.0, 1.0),
            (11.0, 1.0),
            (17.0, 7.0),
            (3.0, 8.0),
            (0.1, 0.0),
            (0.3, 0.1),
            (1.7, 2.9),
        ] {
            let mut greedy = Greedy::new(p);
            for q in 1..=200 {
                greedy.next_segment(tc, tp);
                while greedy.next().is_some() {}
                let fast = makespan(p, vec![(tc, tp); q]);
                if tc.fract() == 0.0 {
                    assert_eq!(fast, greedy.time(), "p={p} q={q} {tc} {tp}");
                } else {
                    assert!(
                        (fast / greedy.time() - 1.0).abs() < 1e-12,
                        "p={p} q={q} {tc} {tp}"
                    );
                }
            }
        }
    }
}

#[test]
fn few_ranks_and_dead_links() {
    assert_eq!(makespan(0, [(1.0, 1.0)]), 0.0);
    assert_eq!(makespan(1, [(1.0, 1.0)]), 0.0);
    assert_eq!(
        makespan(2, [(f64::INFINITY, 1.0), (1.0, 1.0)]),
        f64::INFINITY
    );
    assert_eq!(makespan(1_000_000, [(1.0, 1.0)]), 40.0);
    let mut none = Greedy::new(0);
    none.next_segment(1.0, 1.0);
    assert_eq!(none.next(), None);
}

#[test]
fn long_vectors_are_searched() {
    let m = 10_000_000;
    let costs = |s: usize| (1000.0 + s as f64, 0.0);
    let found = best_uni_greedy(64, m, usize::MAX, costs).unwrap();
    assert_eq!(found.method, Method::Search);
    let time = |s: usize| {
        let rest = (m % s > 0).then(|| costs(m % s));
        makespan(64, std::iter::repeat_n(costs(s), m / s).chain(rest))
    };
    let least = found.time.value();
    assert_eq!(time(found.segments.sizes()[0]), least);
    for s in (1..60).map(|i| 200 * i) {
        assert!(least <= time(s) * 1.0001, "{found:?}, {s}: {}", time(s));
    }
}
