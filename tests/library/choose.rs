//! The choice among all algorithms: bounds leave out none that would have been the fastest.

use oneport::plan::choose::{Offer, choose, rank, with_best_segments};
use oneport::plan::registry;
use oneport::random::Generator;
use oneport::{CostModel, Kind, Ports, Request};

use crate::support::cases::cases;

/// Small sizes and costs, so that many times are equal; all candidates are deferred.
#[test]
fn choices_by_bounds_are_those_of_all_times() {
    let mut random = Generator::new(12);
    let mut ties = 0;
    for _ in 0..cases(500, 2000) {
        let kind = Kind::ALL[random.below(Kind::ALL.len())];
        let most = [9, 25][usize::from(random.below(8) == 0)];
        let p = 1 + random.below(most);
        let elements = [0, 1, 2, 7, p, 3 * p][random.below(6)];
        let ports = [Ports::UNI, Ports::BI][random.below(2)].with_k(1 + random.below(3));
        let mut cost = |most| random.below(most) as f64;
        let cost = CostModel::new(cost(4), cost(3)).gamma(cost(2));
        let request = Request::new(kind, p, elements).ports(ports);
        let request = request.cost(cost.overlap(random.below(4) == 0));
        let timed = |algorithm| with_best_segments(algorithm, &request);
        let all = rank(registry::of(kind).map(timed));
        for choice in &all.choices {
            let (algorithm, time) = (&choice.algorithm, choice.time);
            let name = format!("{} {request:?}", algorithm.name());
            assert!(algorithm.min_time(&request) <= time, "{name}");
            let within = algorithm.time_within(&choice.request, time).unwrap();
            assert_eq!(within, Some(time), "{name}");
        }
        let request = &request;
        let deferred = rank(registry::of(kind).map(|algorithm| {
            algorithm.accepts(request)?;
            Ok(Offer::Deferred {
                min_time: algorithm.min_time(request),
                evaluate: Box::new(move |limit| {
                    let choice = with_best_segments(algorithm, request)?;
                    Ok((choice.time <= limit).then_some(choice))
                }),
            })
        }));
        let equal = all.choices.iter().filter(|c| c.time == all.choices[0].time);
        ties += usize::from(equal.count() > 1);
        let of = |choice: oneport::plan::choose::Choice| {
            (choice.algorithm.name(), choice.time, choice.request)
        };
        let expected = all.best().ok().map(of);
        assert_eq!(deferred.best().ok().map(of), expected, "{request:?}");
        assert_eq!(choose(request).ok().map(of), expected, "{request:?}");
    }
    assert!(ties > cases(90, 400), "{ties} ties");
}

/// Rows without a closed form, whose simulations end early, among enough ranks to be deferred.
#[test]
fn choices_among_many_ranks_are_those_of_all_times() {
    for kind in [Kind::Reduce, Kind::Allreduce, Kind::Allgather] {
        for ports in [Ports::BI, Ports::UNI] {
            for elements in [3, 1000] {
                let request = Request::new(kind, 150, elements).ports(ports);
                let request = request.cost(CostModel::new(10.0, 1.0).gamma(0.5));
                let timed = |algorithm| with_best_segments(algorithm, &request);
                let best = rank(registry::of(kind).map(timed)).best().unwrap();
                let choice = choose(&request).unwrap();
                assert_eq!(choice.algorithm.name(), best.algorithm.name());
                assert_eq!(choice.time, best.time);
            }
        }
    }
}
