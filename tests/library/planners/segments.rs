//! Segments of a vector, equal and unequal, and the distributions of block sizes.

use std::collections::HashSet;

use oneport::internal::pipeline::uni_greedy::makespan;
use oneport::plan::choose::with_best_segments;
use oneport::plan::distribution::Distribution;
use oneport::plan::segments::{Method, best_sizes, best_unequal, compositions};
use oneport::plan::{Request, Segments, registry};
use oneport::{CostModel, Kind, Ports};

#[test]
fn of_count_gives_the_requested_count() {
    for elements in 0..60 {
        for count in 1..70 {
            let segments = Segments::of_count(elements, count).unwrap();
            assert_eq!(segments.count(), count.min(elements).max(1));
            assert_eq!(segments.elements(), elements);
            let (first, rest) = segments.sizes().split_first().unwrap();
            assert!(rest.iter().all(|s| s <= first && *s > 0));
        }
    }
    assert_eq!(Segments::of_count(10, 4).unwrap().sizes(), [3, 3, 3, 1]);
    assert_eq!(
        Segments::of_count(10, 6).unwrap().sizes(),
        [2, 2, 2, 2, 1, 1]
    );
    assert!(Segments::of_count(10, 0).is_err());
}

#[test]
fn sizes_are_those_of_the_table() {
    let sizes = |d: Distribution, p, b, rho| d.sizes(p, b, rho, 1).unwrap();
    assert_eq!(sizes(Distribution::Same, 3, 7, 5), [7, 7, 7]);
    assert_eq!(sizes(Distribution::Decreasing, 4, 5, 5), [11, 8, 6, 3]);
    assert_eq!(sizes(Distribution::Increasing, 4, 5, 5), [3, 6, 8, 11]);
    assert_eq!(sizes(Distribution::Alternating, 3, 5, 5), [7, 3, 7]);
    assert_eq!(sizes(Distribution::Skewed, 6, 5, 4), [7, 7, 7, 7, 1, 1]);
    assert_eq!(sizes(Distribution::TwoBlocks, 4, 5, 5), [10, 0, 0, 10]);
    assert_eq!(sizes(Distribution::Mod3, 5, 7, 5), [0, 7, 14, 0, 7]);
    let random = sizes(Distribution::Random, 1000, 10, 5);
    assert!(random.iter().all(|s| (1..=20).contains(s)));
    assert!((1..=20).all(|s| random.contains(&s)));
    let bucket = sizes(Distribution::Bucket, 1000, 9, 5);
    assert!(bucket.iter().all(|s| (6..=14).contains(s)));
    let spikes = sizes(Distribution::Spikes, 1000, 9, 5);
    let high = spikes.iter().filter(|&&s| s == 45).count();
    assert!(spikes.iter().all(|s| [1, 45].contains(s)) && (150..250).contains(&high));
    assert!(sizes(Distribution::RandomIncreasing, 50, 9, 5).is_sorted());
}

#[test]
fn names_are_read_in_any_spelling_and_sizes_never_overflow() {
    for d in Distribution::ALL {
        assert_eq!(d.name().parse::<Distribution>().unwrap(), d);
        assert!(d.sizes(usize::MAX / 2, usize::MAX / 2, 5, 0).is_err());
        assert!(d.sizes(0, 5, 5, 0).unwrap().is_empty());
        assert!(d.sizes(3, 5, 0, 0).is_err());
        assert_eq!(d.sizes(3, 0, 5, 0).unwrap().len(), 3);
        let pairs = d.pair_sizes(4, 10, 3, 7).unwrap();
        assert_eq!(pairs[..4], d.sizes(4, 10, 3, 7).unwrap());
        assert_eq!(pairs.len(), 16);
        assert!(d.pair_sizes(usize::MAX / 2, 1, 5, 0).is_err());
    }
    assert_eq!(
        "TwoBlocks".parse::<Distribution>().unwrap(),
        Distribution::TwoBlocks
    );
    assert!("flat".parse::<Distribution>().is_err());
}

fn greedy(p: usize, alpha: f64, gamma: f64) -> impl FnMut(&[usize]) -> f64 {
    move |sizes| {
        makespan(
            p,
            sizes.iter().map(|&s| (alpha + s as f64, gamma * s as f64)),
        )
    }
}

fn best_equal(m: usize, time: &mut impl FnMut(&[usize]) -> f64) -> f64 {
    (1..=m)
        .map(|s| time(Segments::of_size(m, s).unwrap().sizes()))
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn all_compositions() {
    assert_eq!(compositions(10).count(), 512);
    assert!(compositions(10).all(|c| c.iter().sum::<usize>() == 10));
    assert_eq!(compositions(10).collect::<HashSet<_>>().len(), 512);
    assert_eq!(compositions(0).collect::<Vec<_>>(), [Vec::<usize>::new()]);
}

/// Rows of table IV, and one that it misses: (6, 4) at p = 16, alpha = 1, gamma = 0.
#[test]
fn rows_of_table_4() {
    for (p, alpha, gamma, ratio) in [
        (6, 1.0, 1.0, 1.0408),
        (8, 0.0, 1.0, 1.0571),
        (12, 0.0, 1.0, 1.0732),
        (48, 1.0, 0.0, 1.0408),
        (768, 6.0, 1.0, 1.0341),
        (64, 20.0, 1.0, 1.0),
    ] {
        let mut time = greedy(p, alpha, gamma);
        let equal = best_equal(10, &mut time);
        let best = best_sizes(&[10], 512, &mut time);
        assert_eq!(best.method, Method::Exhaustive);
        assert!(
            (equal / best.time - ratio).abs() < 5e-5,
            "p={p} alpha={alpha}"
        );
    }
    let mut time = greedy(16, 1.0, 0.0);
    assert!(time(&[6, 4]) < time(&[3, 3, 3, 1]));
    assert_eq!(best_equal(10, &mut time), 39.0);
    assert_eq!(best_sizes(&[10], 512, &mut time).time, 38.0);
}

#[test]
fn search_finds_nine_tenths_of_the_optima() {
    let (mut found, mut all) = (0, 0);
    for p in [6, 8, 12, 16, 48, 256, 768] {
        for alpha in [0.0, 1.0, 2.0, 4.0, 6.0] {
            let mut time = greedy(p, alpha, 1.0);
            let start = (1..=10)
                .map(|s| Segments::of_size(10, s).unwrap().sizes().to_vec())
                .min_by(|a, b| time(a).total_cmp(&time(b)))
                .unwrap();
            let best = best_sizes(&start, 512, &mut time);
            let searched = best_sizes(&start, 300, &mut time);
            assert_eq!(searched.method, Method::Search);
            assert!(searched.time <= time(&start));
            assert_eq!(searched.sizes.iter().sum::<usize>(), 10);
            all += usize::from(best.time < time(&start));
            found += usize::from(searched.time == best.time && best.time < time(&start));
        }
    }
    assert!(10 * found >= 9 * all, "{found} of {all}");
}

#[test]
fn never_worse_than_equal_segments() {
    for (name, ports) in [
        ("uni-greedy", Ports::UNI),
        ("chain", Ports::UNI),
        ("chain", Ports::BI),
        ("binomial", Ports::BI),
    ] {
        for m in [0, 1, 9, 100] {
            let mut request = Request::reduce(6, m)
                .ports(ports)
                .cost(CostModel::new(5.0, 1.0).gamma(1.0));
            let algorithm = registry::find(Kind::Reduce, name).unwrap();
            let equal = with_best_segments(&algorithm, &request).unwrap();
            let best = best_unequal(&algorithm, &request, 300).unwrap();
            assert!(best.time <= equal.time, "{name} {m}");
            request = request.segments(Segments::of_sizes(best.sizes).unwrap());
            assert_eq!(algorithm.time(&request).unwrap(), best.time);
        }
    }
}

/// Segments of few elements are best where start-up times are almost free. Of 7 ranks a formula
/// gives the times of the binary tree, however many segments there are, and bounds those of 5.
#[test]
fn searches_that_end_at_their_limits_say_so() {
    for (kind, name, ranks, has_limit) in [
        (Kind::Broadcast, "two-tree", 5, true),
        (Kind::Reduce, "two-tree", 5, true),
        (Kind::Broadcast, "binary", 5, false),
        (Kind::Broadcast, "binary", 7, false),
        (Kind::Reduce, "out-of-order", 5, true),
    ] {
        let algorithm = registry::find(kind, name).unwrap();
        for (m, alpha, is_long) in [(720_720, 1e-4, true), (720, 10.0, false)] {
            let request = Request::new(kind, ranks, m).cost(CostModel::new(alpha, 1.0));
            let found = with_best_segments(&algorithm, &request).unwrap();
            let is_limited = found.segments_found == Some(Method::LimitedSearch);
            assert_eq!(is_limited, is_long && has_limit, "{name} {ranks} {m}");
        }
    }
}

/// q segments take `(rounds + q) messages (alpha + beta m / q)`, which is at least `messages
/// (sqrt(rounds alpha) + sqrt(beta m))^2`. Among 1,000 ranks the formula of the binary tree is that
/// of 1,023, an upper bound.
#[test]
fn formulas_are_searched_beyond_the_limits_of_simulations() {
    for (kind, name, p, rounds, alpha) in [
        (Kind::Allreduce, "chain", 1024, 1022.0, 1000.0),
        (Kind::Broadcast, "binary", 1000, 8.0, 1.0),
    ] {
        let (m, beta, messages) = (100_000_000, 1.0, 2.0);
        let algorithm = registry::find(kind, name).unwrap();
        let request = Request::new(kind, p, m).cost(CostModel::new(alpha, beta));
        let found = with_best_segments(&algorithm, &request).unwrap();
        assert_eq!(found.segments_found, Some(Method::Search), "{name}");
        assert!(found.transfers() > 1 << 22, "{name}");
        let least = messages * (f64::sqrt(rounds * alpha) + f64::sqrt(beta * m as f64)).powi(2);
        let ratio = found.time / least;
        assert!((1.0 - 1e-12..1.001).contains(&ratio), "{name} {ratio}");
    }
}

/// Without start-up times the formula of a chain takes segments of one element.
#[test]
fn more_segments_than_are_considered_are_said_to_be_left_out() {
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    for (m, method) in [
        (1 << 22, Method::ClosedForm),
        ((1 << 22) + 1, Method::LimitedSearch),
    ] {
        let request = Request::broadcast(5, m).cost(CostModel::new(0.0, 1.0));
        let found = with_best_segments(&chain, &request).unwrap();
        assert_eq!(found.segments_found, Some(method), "{m}");
        let count = found.request.get_segments().count();
        assert_eq!(count, m.div_ceil(m.div_ceil(1 << 22)));
    }
}

#[test]
fn searches_for_unequal_segments_say_when_their_trials_are_spent() {
    let request = Request::reduce(6, 40).cost(CostModel::new(5.0, 1.0).gamma(1.0));
    let chain = registry::find(Kind::Reduce, "chain").unwrap();
    let methods = [100, 100_000].map(|trials| best_unequal(&chain, &request, trials).unwrap());
    assert_eq!(
        methods.map(|found| found.method),
        [Method::LimitedSearch, Method::Search]
    );
}

#[test]
fn broadcasts_send_the_first_of_equal_segments_first() {
    let rows = registry::of(Kind::Broadcast).filter(|row| row.segmented);
    let mut plans = 0;
    for (row, ports) in rows.flat_map(|row| [(row, Ports::UNI), (row, Ports::BI)]) {
        let request = Request::broadcast(8, 16).segment_count(4).ports(ports);
        if let Ok(schedule) = row.plan(&request) {
            let sent = &schedule.programs()[0][0];
            assert_eq!(sent.reads()[0].offset, 0, "{}", row.name());
            plans += 1;
        }
    }
    assert!(plans > 10, "{plans}");
}
