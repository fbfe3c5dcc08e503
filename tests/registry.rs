//! Every registered algorithm, over many sizes: it plans, and takes its closed form.

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
