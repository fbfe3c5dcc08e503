//! The choice among all algorithms: bounds leave out none that would have been the fastest.

use oneport::machine::{Eager, Links, Piece, Pieces};
use oneport::plan::choose::{Choice, LeftOut, choose, with_best_segments};
use oneport::plan::refusal::Refusal;
use oneport::plan::registry::{self, Algorithm};
use oneport::plan::space::{
    Evaluator, Model, Offer, SegmentChoice, Settled, Space, Variant, best_first,
};
use oneport::random::Generator;
use oneport::{CostModel, ErrorKind, Kind, Ports, Request};

use crate::support::cases::cases;

/// The model time, of which all algorithms are put off.
struct PutOff;

impl Evaluator for PutOff {
    fn settle(&self, variant: Variant, segments: &SegmentChoice) -> Result<Settled, Refusal> {
        Model.settle(variant, segments)
    }

    fn time(&self, variant: &Variant, limit: f64) -> Result<Option<f64>, Refusal> {
        Model.time(variant, limit)
    }

    fn each(
        &self,
        space: &Space<'_>,
        _: &(dyn Fn(&Algorithm, &Self) -> Result<Offer, Refusal> + Sync),
    ) -> Vec<Result<Offer, Refusal>> {
        let offer = |algorithm: &Algorithm| {
            algorithm.accepts(&space.request)?;
            let open = Variant::of(algorithm, &space.request);
            Ok(Offer::PutOff(open.min_time()))
        };
        space.algorithms.iter().map(offer).collect()
    }
}

/// Whether times differ by no more than rounding errors.
fn are_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.max(b)
}

/// All algorithms for a request, fastest first.
fn ranked(request: &Request) -> Vec<Choice> {
    let all = registry::of(request.get_collective());
    let timed = all.filter_map(|algorithm| with_best_segments(algorithm, request).ok());
    let choices: Vec<Choice> = timed.collect();
    let least = choices.iter().map(|choice| choice.time);
    let least = least.fold(f64::INFINITY, f64::min);
    let (mut first, mut others): (Vec<Choice>, Vec<Choice>) = choices
        .into_iter()
        .partition(|choice| are_equal(choice.time, least));
    others.sort_by(|a, b| a.time.total_cmp(&b.time));
    first.extend(others);
    first
}

/// Small sizes and costs, so that many times are equal, some of them up to rounding; all candidates
/// are put off.
#[test]
fn choices_by_bounds_are_those_of_all_times() {
    let mut random = Generator::new(12);
    let (mut ties, mut rounded) = (0, 0);
    for _ in 0..cases(500, 2000) {
        let kind = Kind::ALL[random.below(Kind::ALL.len())];
        let most = [9, 25][usize::from(random.below(8) == 0)];
        let p = 1 + random.below(most);
        let elements = [0, 1, 2, 7, p, 3 * p][random.below(6)];
        let ports = [Ports::UNI, Ports::BI][random.below(2)].with_k(1 + random.below(3));
        let unit = [1.0, 0.1][random.below(2)];
        let mut cost = |most| random.below(most) as f64 * unit;
        let cost = CostModel::new(cost(4), cost(3)).gamma(cost(2));
        let request = Request::new(kind, p, elements).ports(ports);
        let request = request.cost(cost.overlap(random.below(4) == 0));
        let all = ranked(&request);
        for choice in &all {
            let (algorithm, time) = (&choice.algorithm, choice.time);
            let name = format!("{} {request:?}", algorithm.name());
            let bound = choice.min_time();
            assert!(bound <= time || are_equal(bound, time), "{name}");
            let within = choice.time_within(time).unwrap();
            assert_eq!(within, Some(time), "{name}");
        }
        let request = &request;
        let put_off = best_first(&Space::of(request), &PutOff);
        let equal = all.iter();
        let equal = equal.filter(|choice| are_equal(choice.time, all[0].time));
        let times: Vec<f64> = equal.map(|choice| choice.time).collect();
        ties += usize::from(times.len() > 1);
        rounded += usize::from(times.iter().any(|time| *time != times[0]));
        let of = |choice: Choice| {
            let Variant {
                algorithm, request, ..
            } = choice.variant;
            (algorithm.name().into_owned(), choice.time, request)
        };
        let expected = all.into_iter().next().map(of);
        assert_eq!(put_off.fastest(None).ok().map(of), expected, "{request:?}");
        assert_eq!(choose(request).ok().map(of), expected, "{request:?}");
    }
    assert!(ties > cases(90, 400), "{ties} ties");
    assert!(rounded > 0, "no times that differ by rounding errors");
}

/// The lower bounds hold for given segments, too, also where blocks have fewer elements than the
/// vector has segments.
#[test]
fn bounds_hold_for_given_segments() {
    let mut compared = 0;
    for algorithm in registry::all() {
        for (p, m) in [(2, 12), (2, 30), (3, 30)] {
            for ports in [Ports::UNI, Ports::BI] {
                for (count, overlap) in [(1, false), (5, true), (m, false), (m, true)] {
                    let cost = CostModel::new(8.0, 1.0).overlap(overlap);
                    let request = Request::new(algorithm.collective, p, m).ports(ports);
                    let request = request.cost(cost).segment_count(count);
                    let Ok(time) = algorithm.time(&request) else {
                        continue;
                    };
                    let bound = Variant::of(algorithm, &request).min_time();
                    let name = format!("{} {request:?}", algorithm.name());
                    assert!(bound <= time || are_equal(bound, time), "{name}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// A choice says what the search left out because it would take too long.
#[test]
fn choices_say_what_the_search_left_out() {
    let left_out = |name: &str, request: Request| {
        let algorithm = registry::find(request.get_collective(), name).unwrap();
        let choice = with_best_segments(&algorithm, &request).unwrap();
        choice.variant.left_out
    };
    let long = Request::broadcast(5, 720_720).cost(CostModel::new(1e-4, 1.0));
    assert_eq!(left_out("two-tree", long.clone()), [LeftOut::Segments]);
    let short = long.cost(CostModel::new(1e6, 1.0));
    assert_eq!(left_out("two-tree", short), []);
    let cost = CostModel::new(10.0, 1.0).overlap(true);
    let many = Request::reduce(3000, 1024)
        .cost(cost.clone())
        .free_root(true);
    let expected = [LeftOut::Ports, LeftOut::Roots { ranks: 3000 }];
    assert_eq!(left_out("binomial", many), expected);
    let few = Request::reduce(30, 1024).cost(cost).free_root(true);
    assert_eq!(left_out("binomial", few), []);
}

/// Costs with these alpha and beta between each two of the ranks.
fn links(ranks: usize, cost: impl Fn(usize, usize) -> (f64, f64)) -> CostModel {
    let matrix = |part: fn((f64, f64)) -> f64| {
        let row = |from| (0..ranks).map(|to| Some(part(cost(from, to)))).collect();
        (0..ranks).map(row).collect()
    };
    let links = Links {
        alpha: matrix(|(alpha, _)| alpha),
        beta: matrix(|(_, beta)| beta),
        ..Links::default()
    };
    CostModel::heterogeneous(links).unwrap()
}

/// Of many ranks whose links differ, the tree of `unordered` is planned to some roots.
#[test]
fn trees_to_some_of_the_roots_are_said_to_be_that() {
    for (ranks, expected) in [(128, None), (129, Some(LeftOut::Roots { ranks: 129 }))] {
        let cost = links(ranks, |from, to| {
            (5.0, 1.0 + ((from * 7 + to * 11) % 13) as f64)
        });
        let request = Request::reduce(ranks, 10).cost(cost).free_root(true);
        let algorithm = registry::find(Kind::Reduce, "unordered").unwrap();
        let choice = with_best_segments(&algorithm, &request).unwrap();
        assert_eq!(choice.left_out, Vec::from_iter(expected), "{ranks}");
    }
}

/// Algorithms that are refused for the size of the request may be faster than the chosen one.
#[test]
fn a_choice_counts_what_was_refused_for_its_size() {
    let blocks: Vec<usize> = (0..600).map(|rank| rank % 7).collect();
    let request = Request::gather(600, 0)
        .blocks(blocks)
        .cost(CostModel::new(10.0, 1.0));
    assert_eq!(choose(&request).unwrap().left_out, []);
    let free = request.free_root(true);
    let candidates = registry::candidates(Kind::Gather, free.get_cost(), 600);
    let too_long = candidates.filter(|algorithm| {
        let refused = algorithm.accepts(&free).err();
        let refused = refused.or_else(|| with_best_segments(algorithm, &free).err());
        refused.is_some_and(|refusal| refusal.reason.is_of_size())
    });
    let count = too_long.count();
    assert!(count > 0);
    let choice = choose(&free).unwrap();
    assert_eq!(choice.left_out, [LeftOut::Algorithms { count }]);
}

/// Limits of ranks are limits of the time that planning takes: what is refused for them counts,
/// unless a bound shows that it is slower.
#[test]
fn a_choice_counts_what_is_planned_for_fewer_ranks() {
    let counts = |request: Request| {
        let left_out = choose(&request).unwrap().left_out.clone();
        left_out.contains(&LeftOut::Algorithms { count: 1 })
    };
    for (ranks, counted) in [(128, false), (129, true)] {
        let cost = links(ranks, |from, to| {
            (1.0 + ((from * 5 + to * 3) % 7) as f64, 1.0)
        });
        let request = Request::reduce(ranks, 10).cost(cost);
        assert_eq!(counts(request), counted, "{ranks}");
    }
    // The gossip, which has fewer rounds and moves more.
    for (ranks, alpha, counted) in [(257, 1e6, true), (257, 1.0, false), (256, 1e6, false)] {
        let request = Request::scan(ranks, 1).ports(Ports::UNI);
        let request = request.cost(CostModel::new(alpha, 1.0));
        assert_eq!(counts(request), counted, "{ranks} {alpha}");
    }
}

/// Trees that take `O(p^3)` to plan where copies cost more than messages.
#[test]
fn a_choice_counts_what_its_planner_refuses_for_its_size() {
    let gather = |ranks: usize| {
        let blocks: Vec<usize> = (0..ranks).map(|rank| rank % 7).collect();
        Request::gather(ranks, 0)
            .blocks(blocks)
            .cost(CostModel::new(1000.0, 1.0).gamma_copy(2.0))
    };
    let request = gather(2501);
    let refused = registry::candidates(Kind::Gather, request.get_cost(), 2501)
        .filter_map(|algorithm| algorithm.plan(&request).err())
        .filter(|error| matches!(error.kind(), ErrorKind::TooLarge(_)));
    let count = refused.count();
    assert!(count > 0);
    let choice = choose(&request).unwrap();
    assert_eq!(choice.left_out, [LeftOut::Algorithms { count }]);
}

/// Where the memory is small, fewer segments are tried, and the variant says so.
#[test]
fn segments_that_do_not_fit_into_memory_are_left_out() {
    let blocks = (0..20).map(|rank| if rank == 0 { 2000 } else { 10 });
    let blocks = blocks.collect::<Vec<_>>();
    let cost = CostModel::new(10.0, 1.0);
    for (name, request) in [
        ("two-tree", Request::broadcast(20, 10_000)),
        // Searches of their own.
        ("circulant-blocks", Request::allgather(20, 0).blocks(blocks)),
        ("out-of-order", Request::reduce(20, 500).ports(Ports::UNI)),
        (
            "out-of-order",
            Request::allreduce(20, 500).ports(Ports::UNI),
        ),
    ] {
        let algorithm = registry::find(request.get_collective(), name).unwrap();
        let request = request.cost(cost.clone());
        let chosen = |max_transfers: usize| {
            let variant = Variant::of(&algorithm, &request);
            let settled = SegmentChoice::Best.settle(variant, max_transfers).unwrap();
            (settled.variant, settled.time.unwrap().value())
        };
        let count = |variant: &Variant| variant.request.get_segments().count();
        let (best, time) = chosen(usize::MAX);
        assert_eq!(best.left_out, [], "{name}");
        assert!(count(&best) > 2, "{name}");
        let max = best.transfers() / 2;
        let (limited, limited_time) = chosen(max);
        assert_eq!(limited.left_out, [LeftOut::Segments], "{name}");
        assert!(limited.transfers() <= max, "{name}");
        assert!(limited_time > time, "{name}");
        assert_eq!(count(&chosen(0).0), 1, "{name}");
    }
}

/// Unequal segments are simulated: of schedules that are too long for that the equal ones remain,
/// and none has more transfers than the memory holds, as none of equal segments has.
#[test]
fn unequal_segments_are_tried_within_the_limits() {
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    let chosen = |ranks, elements, max_transfers| {
        let request = Request::broadcast(ranks, elements).cost(CostModel::new(1.0, 1.0));
        [SegmentChoice::Best, SegmentChoice::BestUnequal].map(|segments| {
            let variant = Variant::of(&chain, &request);
            segments.settle(variant, max_transfers).unwrap()
        })
    };
    let count = |settled: &Settled| settled.variant.request.get_segments().count();
    let [equal, unequal] = chosen(5000, 20_000, usize::MAX);
    assert_eq!(count(&equal), 10_000);
    assert_eq!(unequal.variant.request, equal.variant.request);
    assert_eq!(unequal.time, equal.time);
    assert_eq!(unequal.variant.left_out, [LeftOut::Segments]);
    let [best, _] = chosen(20, 20, usize::MAX);
    assert_eq!((count(&best), &best.variant.left_out[..]), (20, &[][..]));
    for (max_transfers, segments) in [(0, 1), (20, 1), (100, 5)] {
        let [equal, unequal] = chosen(20, 20, max_transfers);
        assert_eq!(count(&equal), segments);
        assert!(count(&unequal) <= segments);
        assert!(unequal.time.unwrap().value() <= equal.time.unwrap().value());
        for found in [equal, unequal] {
            assert_eq!(found.variant.left_out, [LeftOut::Segments]);
        }
    }
}

/// An empty sum is -0, which a table would show.
#[test]
fn the_time_of_one_rank_has_no_sign() {
    let requests = Kind::ALL.map(|kind| Request::new(kind, 1, 10));
    let mut times = 0;
    for request in requests {
        for algorithm in registry::of(request.get_collective()) {
            if let Ok(time) = algorithm.time(&request) {
                assert_eq!(time.to_bits(), 0, "{algorithm} {request:?}");
                times += 1;
            }
        }
    }
    assert!(times > 100, "{times}");
}

/// A simulation ends where it shows that it takes longer, by its computations, too.
#[test]
fn no_time_is_larger_than_its_limit() {
    let cost = CostModel::new(1.0, 0.0).gamma(100.0).latency(1.0);
    for cost in [cost.clone(), cost.arrivals(vec![500.0, 0.0])] {
        let request = Request::reduce(2, 1).ports(Ports::UNI).cost(cost);
        let binomial = registry::find(Kind::Reduce, "binomial").unwrap();
        let within = |limit| Variant::of(&binomial, &request).time_within(limit).unwrap();
        let schedule = request.plan("binomial").unwrap();
        let time = schedule.simulate(request.get_cost()).unwrap().makespan();
        assert!(time > 100.0);
        assert_eq!(within(f64::INFINITY), Some(time));
        assert_eq!(within(time), Some(time));
        // The computation begins before this.
        assert_eq!(within(time - 1.0), None);
    }
}

/// In the order of the ranks, one reduce_scatter alone may be a phase of "composed", which is too
/// long among many ranks.
#[test]
fn compositions_of_phases_that_are_too_long_are_refused_for_their_size() {
    let request = |ranks| {
        Request::reduce(ranks, 3000)
            .ports(Ports::UNI)
            .keep_order(true)
    };
    assert!(request(500).plan("composed").is_ok());
    let many = request(1500);
    for error in [
        many.plan("composed").unwrap_err(),
        many.time("composed").unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::TooLarge(_)), "{error}");
        let message = error.to_string();
        let expected = "the reduce_scatter of 1500 ranks by recursive-halving is too long";
        assert!(message.contains(expected), "{message}");
    }
}

/// Given segments are timed for all roots as long as that does not take too long, whatever a search
/// for segments would take.
#[test]
fn roots_are_compared_for_given_segments() {
    // The last of the chain from rank 1 is rank 0, which arrives late.
    let (late, alpha, beta, m) = (1e6, 10.0, 1.0, 1000);
    let cost = CostModel::new(alpha, beta).arrivals([vec![late], vec![0.0; 99]].concat());
    for count in [1, 2] {
        let request = Request::broadcast(100, m)
            .free_root(true)
            .cost(cost.clone());
        let request = request.segment_count(count);
        let message = alpha + beta * (m / count) as f64;
        let time = request.time("chain").unwrap();
        assert_eq!(time, late + count as f64 * message, "{count}");
    }
}

/// Segments that a search found are timed for all uses of the ports that the search compared.
#[test]
fn found_segments_do_not_take_longer_when_they_are_given() {
    for (name, ports) in [("kary", Ports::BI), ("chain", Ports::UNI)] {
        let cost = CostModel::new(0.0, 3.0).latency(5.0);
        let request = Request::broadcast(47, 1500)
            .ports(ports.with_k(5))
            .cost(cost);
        let algorithm = registry::find(Kind::Broadcast, name).unwrap();
        let choice = with_best_segments(&algorithm, &request).unwrap();
        let time = choice.request.time(name).unwrap();
        assert!(time <= choice.time * (1.0 + 1e-12), "{time} {choice:?}");
    }
}

/// Of short vectors all numbers of segments are compared, or one segment is the best. Where longer
/// messages cost more than several short ones, or messages have latency, it is not.
#[test]
fn no_number_of_segments_is_better_than_those_of_a_search() {
    let step = |from, alpha| Piece {
        from,
        alpha,
        beta: 0.0,
    };
    let steps = Pieces {
        transfer: vec![step(0, 1.0), step(8, 101.0)],
        ..Pieces::default()
    };
    let costs = [
        CostModel::new(1.0, 0.0).pieces(steps).unwrap(),
        CostModel::new(0.0, 1.0).latency(2.0),
        CostModel::new(0.0, 1.0).latency(2.0).eager(Eager::All),
        CostModel::new(1.0, 1.0).gamma(1.0).overlap(true),
    ];
    let mut compared = 0;
    for algorithm in registry::all().iter().filter(|row| row.segmented) {
        for (p, cost) in [4, 5]
            .into_iter()
            .flat_map(|p| costs.iter().map(move |c| (p, c)))
        {
            for ports in [Ports::UNI, Ports::BI] {
                let request = Request::new(algorithm.collective, p, 8).ports(ports);
                let request = request.cost(cost.clone());
                let Ok(choice) = with_best_segments(algorithm, &request) else {
                    continue;
                };
                for count in 1..=8 {
                    let given = request.clone().segment_count(count);
                    let time = algorithm.time(&given).unwrap();
                    let name = format!("{} {given:?}", algorithm.name());
                    assert!(choice.time <= time * (1.0 + 1e-9), "{name}: {choice:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// A search takes but the size of the vector from the segments of a request.
#[test]
fn segments_of_a_request_do_not_change_what_is_searched() {
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    let cost = CostModel::new(10.0, 1.0);
    let few = Request::broadcast(16, 100).ports(Ports::UNI.with_k(5));
    let few = few.cost(cost.clone().latency(5.0));
    // Of more steps than can be counted, were it not split anew.
    let many = Request::broadcast(1 << 12, 1 << 20).cost(cost);
    for (request, count) in [(few, 70), (many, 1 << 20)] {
        let of = |request: &Request| {
            let choice = with_best_segments(&chain, request).unwrap();
            let Choice { variant, time, .. } = choice;
            let segments = variant.request.get_segments().clone();
            (time, segments, variant.left_out, variant.segments_found)
        };
        assert_eq!(of(&request.clone().segment_count(count)), of(&request));
    }
}

/// Rows without a closed form, whose simulations end early, among enough ranks to be put off.
#[test]
fn choices_among_many_ranks_are_those_of_all_times() {
    for kind in [Kind::Reduce, Kind::Allreduce, Kind::Allgather] {
        for ports in [Ports::BI, Ports::UNI] {
            for elements in [3, 1000] {
                let request = Request::new(kind, 150, elements).ports(ports);
                let request = request.cost(CostModel::new(10.0, 1.0).gamma(0.5));
                let best = &ranked(&request)[0];
                let choice = choose(&request).unwrap();
                assert_eq!(choice.algorithm.name(), best.algorithm.name());
                assert_eq!(choice.time, best.time);
            }
        }
    }
}

/// The formulas take segments of one element, which are too many of a long vector: a search takes
/// no more than there are in a schedule that can be planned, and says so.
#[test]
fn no_search_takes_more_segments_than_can_be_planned() {
    let cost = CostModel::new(0.0, 1.0);
    for (name, request) in [
        ("chain", Request::broadcast(512, 1 << 30)),
        ("circulant", Request::broadcast(512, 1 << 30)),
        (
            "uni-greedy",
            Request::reduce(512, 1 << 23).ports(Ports::UNI),
        ),
        ("uni-greedy", Request::reduce(8, 1 << 40).ports(Ports::UNI)),
    ] {
        let algorithm = registry::find(request.get_collective(), name).unwrap();
        let best = with_best_segments(&algorithm, &request.cost(cost.clone())).unwrap();
        algorithm.accepts(&best.request).unwrap();
        let count = best.request.get_segments().count();
        let ranks = best.request.ranks();
        assert!(count > 1 << 12, "{name} {ranks}: {count}");
        assert_eq!(best.left_out, [LeftOut::Segments], "{name} {ranks}");
    }
}
