//! Every registered algorithm, over many sizes and roots: it plans, is right, and takes its closed form.

use oneport::check::{Options, check};
use oneport::plan::{Segments, registry};
use oneport::simulate::Prepared;
use oneport::{CostModel, Ports, Request};

#[test]
fn model_times_equal_the_closed_forms() {
    let mut compared = 0;
    for algorithm in registry::all() {
        for p in 1..=70 {
            for (q, s) in [(1, 4), (2, 3), (3, 8), (5, 2), (8, 8), (16, 1)] {
                for ports in [Ports::UNI, Ports::BI] {
                    let mut request = Request::new(p, q * s);
                    request.segments = Segments::of_size(q * s, s).unwrap();
                    request.ports = ports;
                    request.root = p / 2;
                    request.cost = CostModel::new(10.0, 2.0).gamma(3.0);
                    if !algorithm.ports.allow(ports) {
                        continue;
                    }
                    let schedule = algorithm.plan(&request).unwrap();
                    if algorithm.collective == oneport::Kind::Broadcast {
                        request.cost.gamma = 0.0;
                    }
                    let time = Prepared::new(&schedule, false)
                        .unwrap()
                        .simulate(&request.cost, 1)
                        .time();
                    if let Some(closed) = algorithm.time.and_then(|t| t(&request)) {
                        assert_eq!(
                            time,
                            closed,
                            "{} {} p={p} q={q} s={s} {ports:?}",
                            algorithm.name,
                            algorithm.collective.name()
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 500, "only {compared} closed forms compared");
}

#[test]
fn every_schedule_is_proved() {
    let mut proved = 0;
    for algorithm in registry::all() {
        for p in (1..=17).chain([31, 32, 33, 64]) {
            for sizes in [
                vec![0],
                vec![1],
                vec![p / 2],
                vec![3, 3, 2],
                vec![5, 1, 0, 4, 2, 7, 1],
                vec![2 * p + 1; 2],
            ] {
                let segments = Segments::of_sizes(sizes.clone()).unwrap();
                let mut request = Request::new(p, segments.elements());
                request.segments = segments;
                request.cost = CostModel::new(2.0, 1.0).gamma(1.0);
                for ports in [Ports::UNI, Ports::BI] {
                    request.ports = ports;
                    if !algorithm.ports.allow(ports) {
                        continue;
                    }
                    let roots: Vec<usize> = if p <= 9 {
                        (0..p).collect()
                    } else {
                        vec![0, 1, p / 2, p - 1]
                    };
                    for root in roots {
                        request.root = root;
                        for keep_order in [false, true] {
                            request.keep_order = keep_order;
                            if algorithm.accepts(&request).is_err() {
                                continue;
                            }
                            let schedule = algorithm.plan(&request).unwrap();
                            for overlap in [false, true] {
                                let options = Options {
                                    keep_order,
                                    overlap,
                                    ..Options::default()
                                };
                                let report = check(&schedule, &options);
                                assert!(
                                    report.ok(),
                                    "{} {} p={p} root={root} {ports:?} segments {sizes:?}, order {keep_order}, overlap {overlap}: {:?}",
                                    algorithm.name,
                                    algorithm.collective.name(),
                                    report.errors
                                );
                                proved += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(proved > 5000, "only {proved} schedules proved");
}
