//! Tests of the out-of-order planner and of its lower bounds.

use oneport::internal::pipeline::out_of_order::{lower_bound, out_of_order};
use oneport::internal::pipeline::uni_greedy;
use oneport::machine::Links;
use oneport::plan::choose::with_best_segments;
use oneport::plan::{Request, Segments, Transfer, registry};
use oneport::random::Generator;
use oneport::{CostModel, Kind, Ports};

/// The closed form of the time.
fn time(request: &Request) -> Option<f64> {
    super::closed_form(request, "out-of-order")
}

/// The makespan of a plan, computed independently of the planner from sets of contributions and the
/// rules of time.
fn makespan(p: usize, plan: &[Transfer], transfer_time: &[f64], combine_time: &[f64]) -> f64 {
    let q = transfer_time.len();
    let mut holds: Vec<Vec<Option<u128>>> = (0..p).map(|rank| vec![Some(1 << rank); q]).collect();
    let mut free_at = vec![0.0f64; p];
    let mut last_start = 0.0;
    for t in plan {
        let (from, to, segment) = (t.from as usize, t.to as usize, t.segment as usize);
        assert!(from != 0 && from != to, "{t:?}");
        let sent = holds[from][segment]
            .take()
            .expect("a rank sends a segment once");
        let held = holds[to][segment].expect("a rank receives nothing of what it has sent");
        assert_eq!(sent & held, 0, "{t:?} counts a contribution twice");
        holds[to][segment] = Some(sent | held);
        let start = free_at[from].max(free_at[to]);
        assert!(
            start >= last_start,
            "{t:?} is not listed by its starting time"
        );
        last_start = start;
        free_at[from] = start + transfer_time[segment];
        free_at[to] = start + transfer_time[segment] + combine_time[segment];
    }
    let all = Some(u128::MAX >> (128 - p));
    assert!(
        holds[0].iter().all(|held| *held == all),
        "the root lacks contributions"
    );
    assert!(
        holds[1..].iter().flatten().all(Option::is_none),
        "a rank has not sent a segment"
    );
    free_at.into_iter().fold(0.0, f64::max)
}

fn equal(q: usize, tc: f64, tp: f64) -> (Vec<f64>, Vec<f64>) {
    (vec![tc; q], vec![tp; q])
}

fn planned(p: usize, (transfer_time, combine_time): &(Vec<f64>, Vec<f64>)) -> f64 {
    let planned = makespan(
        p,
        &out_of_order(p, transfer_time, combine_time),
        transfer_time,
        combine_time,
    );
    assert!(
        planned <= greedy(p, &(transfer_time.clone(), combine_time.clone())),
        "slower than uni-greedy"
    );
    assert!(
        planned >= lower_bound(p, transfer_time, combine_time),
        "the bound is wrong"
    );
    planned
}

fn greedy(p: usize, (transfer_time, combine_time): &(Vec<f64>, Vec<f64>)) -> f64 {
    uni_greedy::makespan(
        p,
        transfer_time
            .iter()
            .copied()
            .zip(combine_time.iter().copied()),
    )
}

/// The simulated time of a reduction or broadcast, after checking that the schedule is correct.
fn executed(kind: Kind, request: &Request) -> f64 {
    let request = request.clone().collective(kind);
    let schedule = request.plan("out-of-order").unwrap();
    let report = schedule.check();
    assert!(report.is_correct(), "{request:?}: {:?}", report.errors);
    super::executed(&request, "out-of-order")
}

fn request(p: usize, sizes: &[usize], alpha: f64, beta: f64, gamma: f64) -> Request {
    Request::reduce(p, 0)
        .segments(Segments::of_sizes(sizes.to_vec()).unwrap())
        .ports(Ports::UNI)
        .cost(CostModel::new(alpha, beta).gamma(gamma))
}

#[test]
fn executed_times_match_the_plan_and_never_exceed_uni_greedy() {
    let mut random = Generator::new(3);
    let mut any = |n: usize| random.below(n);
    for case in 0..250 {
        let (p, q) = (1 + any(if case % 20 == 0 { 70 } else { 20 }), 1 + any(16));
        let size = any(7);
        let sizes: Vec<usize> = match case % 3 {
            0 => vec![size; q],
            1 => (1..=q)
                .map(|i| if i < q { size + 1 } else { size })
                .collect(),
            _ => (0..q).map(|_| any(7)).collect(),
        };
        // Whole numbers, so that sums are equal in whatever order they are computed.
        let whole = |n: usize| u32::try_from(n).map(f64::from).unwrap();
        let (alpha, beta, gamma) = (whole(any(12)), whole(any(3)), whole(any(4)));
        let mut r = request(p, &sizes, alpha, beta, gamma)
            .root(any(p))
            .element_bytes(1 + any(2) as u64);
        let reduced = executed(Kind::Reduce, &r);
        assert_eq!(Some(reduced), time(&r), "{r:?}");
        assert!(reduced <= uni_greedy::time(&r).unwrap(), "{r:?}");
        let of = |&s: &usize| (r.transfer_time(s), r.combine_time(s));
        let all = sizes.iter().map(of).filter(|_| p > 1);
        let (transfer_time, combine_time): (Vec<_>, Vec<_>) = all.unzip();
        assert!(
            reduced >= lower_bound(p, &transfer_time, &combine_time),
            "{r:?}"
        );
        let cast = executed(Kind::Broadcast, &r);
        let free = r.get_cost().clone().gamma(0.0);
        r = r.cost(free);
        assert_eq!(Some(cast), time(&r), "{r:?}");
        assert!(cast <= uni_greedy::time(&r).unwrap(), "{r:?}");
    }
}

#[test]
fn executed_times_of_fractional_costs_match_the_plan() {
    for p in [2, 3, 4, 7, 16, 33] {
        for sizes in [vec![3; 9], vec![4, 1, 0, 2, 2, 7]] {
            let mut r = request(p, &sizes, 0.7, 0.13, 0.37).root(p - 1);
            assert_eq!(Some(executed(Kind::Reduce, &r)), time(&r), "{r:?}");
            // In reverse the same times are summed in another order.
            let cast = executed(Kind::Broadcast, &r);
            let free = r.get_cost().clone().gamma(0.0);
            r = r.cost(free);
            let planned = time(&r).unwrap();
            assert!((cast / planned - 1.0).abs() < 1e-12, "{r:?}");
        }
    }
}

#[test]
fn empty_vectors_and_few_ranks() {
    for (p, sizes, expected) in [
        (1, vec![4, 4], 0.0),
        (1, vec![0], 0.0),
        (2, vec![0], 0.0),
        (7, vec![0, 0, 0], 0.0),
        (2, vec![4, 4], 2.0 * 11.0),
    ] {
        let r = request(p, &sizes, 3.0, 1.0, 1.0);
        assert_eq!(executed(Kind::Reduce, &r), expected, "p={p} {sizes:?}");
    }
    assert!(
        request(0, &[1], 1.0, 1.0, 0.0)
            .plan("out-of-order")
            .is_err()
    );
}

#[test]
fn the_table_of_the_example() {
    for (p, q, tc, tp, uni, expected, bound) in [
        (15, 5, 2.0, 1.0, 39.0, 33.0, 31.0),
        (15, 50, 2.0, 1.0, 278.0, 243.0, 241.0),
        (16, 50, 2.0, 1.0, 281.0, 259.0, 242.0),
        (16, 64, 1.0, 0.0, 132.0, 123.0, 123.0),
        (16, 64, 1.0, 1.0, 213.0, 198.0, 186.0),
        (32, 64, 1.0, 2.0, 330.0, 263.0, 260.0),
        (64, 64, 2.0, 1.0, 420.0, 334.0, 329.0),
    ] {
        let times = equal(q, tc, tp);
        assert_eq!(greedy(p, &times), uni, "uni-greedy, p={p} q={q}");
        assert_eq!(planned(p, &times), expected, "p={p} q={q} ({tc},{tp})");
        assert_eq!(
            lower_bound(p, &times.0, &times.1),
            bound,
            "bound, p={p} q={q}"
        );
    }
}

#[test]
fn the_example_of_the_documentation() {
    let expected: [&[[u32; 3]]; 5] = [
        &[[1, 2, 2], [3, 0, 2]],
        &[[1, 3, 1], [2, 0, 2]],
        &[[2, 1, 0], [3, 0, 1]],
        &[[3, 1, 0], [2, 0, 1]],
        &[[1, 0, 0]],
    ];
    let mut transfers = out_of_order(4, &[1.0; 3], &[0.0; 3]).into_iter();
    for round in expected {
        let mut planned: Vec<_> = transfers.by_ref().take(round.len()).collect();
        planned.sort_by_key(|t| t.to == 0);
        assert_eq!(
            planned
                .iter()
                .map(|t| [t.from, t.to, t.segment])
                .collect::<Vec<_>>(),
            {
                let mut round = round.to_vec();
                round.sort_by_key(|t| t[1] == 0);
                round
            }
        );
    }
    assert_eq!(greedy(4, &equal(3, 1.0, 0.0)), 6.0);
}

/// The module's number of rounds without computation.
fn rounds(p: usize, q: usize) -> u64 {
    if p < 2 || q == 0 {
        return 0;
    }
    let (levels, p, q) = (u64::from(p.ilog2()), p as u64, q as u64);
    if p.is_multiple_of(2) {
        (2 * q + levels) - (q - 1 + (1 << levels)) / (p / 2)
    } else {
        2 * q - 1 + levels
    }
}

#[test]
fn reaches_the_lower_bound_without_computation() {
    let cases = (2..=40).flat_map(|p| (1..=64).map(move |q| (p, q)));
    for (p, q) in cases.chain([(64, 256), (128, 64), (127, 32)]) {
        assert_eq!(
            planned(p, &equal(q, 1.0, 0.0)),
            rounds(p, q) as f64,
            "p={p} q={q}"
        );
    }
}

#[test]
fn the_two_bounds_agree_without_computation() {
    for p in 1..=70 {
        for q in 0..=70 {
            let (transfer_time, combine_time) = equal(q, 1.0, 0.0);
            assert_eq!(
                lower_bound(p, &transfer_time, &combine_time),
                rounds(p, q) as f64,
                "p={p} q={q}"
            );
        }
    }
    assert_eq!([1, 2, 3].map(|p| rounds(p, 7)), [0, 7, 14]);
}

#[test]
fn faster_than_uni_greedy_with_many_segments() {
    for (tc, tp) in [(2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (3.0, 1.0), (10.0, 1.0)] {
        // p = 4 and 5 are left out: they are the exceptions listed in the module's documentation.
        for p in [3, 6, 7, 8, 12, 15, 16, 25, 32] {
            let times = equal(32, tc, tp);
            assert!(planned(p, &times) < greedy(p, &times), "p={p} ({tc},{tp})");
        }
    }
    for p in [15, 16] {
        let times = equal(50, 2.0, 1.0);
        assert!(planned(p, &times) < greedy(p, &times), "p={p}");
    }
}

#[test]
fn four_ranks_need_three_rounds_for_two_segments() {
    for q in 1..=200 {
        let (transfer_time, combine_time) = equal(q, 1.0, 0.0);
        let run = (3 * q / 2 + 1) as f64;
        assert_eq!(run, rounds(4, q) as f64, "q={q}");
        assert_eq!(planned(4, &(transfer_time, combine_time)), run, "q={q}");
    }
}

#[test]
fn broadcasts_of_unit_segments_take_the_fewest_rounds() {
    for (p, q) in [(1, 3), (2, 5), (3, 4), (4, 9), (6, 12), (15, 5), (33, 40)] {
        let request = Request::broadcast(p, q).segment_elems(1).ports(Ports::UNI);
        let schedule = request.plan("out-of-order").unwrap();
        assert!(schedule.check().is_correct(), "p={p} q={q}");
        let time = schedule.simulate(&CostModel::new(0.0, 1.0)).unwrap();
        assert_eq!(time.makespan(), rounds(p, q) as f64, "p={p} q={q}");
    }
}

#[test]
fn degenerate_input_gives_a_plan_or_none() {
    assert!(out_of_order(0, &[1.0], &[0.0]).is_empty());
    assert!(out_of_order(1, &[1.0], &[0.0]).is_empty());
    assert!(out_of_order(5, &[], &[]).is_empty());
    assert_eq!(lower_bound(1, &[1.0], &[1.0]), 0.0);
    for (tc, tp) in [
        (0.0, 0.0),
        (0.0, 1.0),
        (1e-300, 1e300),
        (f64::MAX, f64::MAX),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (-1.0, 1.0),
    ] {
        assert_eq!(out_of_order(6, &[tc; 4], &[tp; 4]).len(), 20, "({tc},{tp})");
    }
    planned(7, &equal(3, 0.0, 0.0));
    planned(7, &equal(3, 0.0, 1.0));
}

#[test]
fn many_ranks_and_many_segments_end_in_time() {
    for (p, q) in [(50_000, 2), (12, 30_000)] {
        let (transfer_time, combine_time) = equal(q, 2.0, 1.0);
        assert_eq!(
            out_of_order(p, &transfer_time, &combine_time).len(),
            q * (p - 1)
        );
    }
}

#[test]
fn same_input_same_plan() {
    let (transfer_time, combine_time) = equal(9, 1.0, 0.37);
    assert_eq!(
        out_of_order(13, &transfer_time, &combine_time),
        out_of_order(13, &transfer_time, &combine_time)
    );
}

#[test]
fn never_slower_than_uni_greedy_with_its_best_size() {
    for kind in [Kind::Reduce, Kind::Broadcast] {
        let [out_of_order, greedy] =
            ["out-of-order", "uni-greedy"].map(|name| registry::find(kind, name).unwrap());
        for (p, m, alpha, gamma) in [
            (2, 40, 10.0, 1.0),
            (5, 300, 3.0, 0.0),
            (16, 1000, 20.0, 1.0),
            (17, 5000, 100.0, 0.5),
            (64, 4000, 0.0, 1.0),
            (100, 20_000, 1000.0, 1.0),
        ] {
            let mut r = Request::new(kind, p, m)
                .ports(Ports::UNI)
                .cost(CostModel::new(alpha, 1.0).gamma(gamma));
            let found = with_best_segments(&out_of_order, &r).unwrap();
            let reference = with_best_segments(&greedy, &r).unwrap();
            assert!(
                found.time <= reference.time,
                "{found:?}, {reference:?}, {r:?}"
            );
            r = r.segments(found.request.get_segments().clone());
            assert_eq!(out_of_order.time(&r).unwrap(), found.time);
        }
    }
}

/// Both phases are planned as without overlap, which then only lets steps start earlier.
#[test]
fn overlap_makes_no_allreduce_slower() {
    let allreduce = registry::find(Kind::Allreduce, "out-of-order").unwrap();
    let mut faster = 0;
    for (p, m, alpha, beta, gamma) in [
        (3, 4097, 10.0, 0.1, 5.0),
        (4, 20_000, 10.0, 0.0, 0.2),
        (8, 4097, 1000.0, 0.0, 1.0),
        (9, 64, 0.0, 3.0, 0.2),
    ] {
        for ports in [Ports::UNI, Ports::BI, Ports::BI.with_k(2)] {
            let cost = CostModel::new(alpha, beta).gamma(gamma);
            let request = Request::allreduce(p, m).ports(ports).cost(cost.clone());
            let time = |request: &Request| with_best_segments(&allreduce, request).unwrap().time;
            let without = time(&request);
            let overlapping = time(&request.clone().cost(cost.overlap(true)));
            assert!(
                overlapping <= without,
                "{overlapping} > {without}: {request:?}"
            );
            faster += usize::from(overlapping < without);
        }
    }
    assert!(faster > 0);
}

#[test]
fn overlap_and_missing_links() {
    let out_of_order = registry::find(Kind::Reduce, "out-of-order").unwrap();
    let mut r = Request::reduce(3, 20)
        .ports(Ports::UNI)
        .cost(CostModel::new(5.0, 1.0).gamma(1.0).overlap(true));
    let found = with_best_segments(&out_of_order, &r).unwrap();
    r = r.segments(found.request.get_segments().clone());
    assert_eq!(out_of_order.time(&r).unwrap(), found.time);
    let links = vec![
        vec![Some(0.0), None, Some(1.0)],
        vec![Some(1.0); 3],
        vec![Some(1.0); 3],
    ];
    r = r.cost(
        CostModel::heterogeneous(Links {
            alpha: links.clone(),
            beta: links,
            gamma: vec![],
            gamma_copy: vec![],
            ..Links::default()
        })
        .unwrap(),
    );
    assert!(with_best_segments(&out_of_order, &r).is_ok());
}
