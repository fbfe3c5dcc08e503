//! The formulas of the published tables, beside executed times.

use oneport::plan::segments::Published;
use oneport::plan::{Request, registry};
use oneport::{CostModel, Kind, Ports};

fn published(kind: Kind, name: &str, request: &Request) -> Option<Published> {
    registry::find(kind, name).unwrap().published(request)
}

fn request(p: usize, m: usize, s: usize, ports: Ports) -> Request {
    Request::reduce(p, m)
        .segment_elems(s)
        .ports(ports)
        .cost(CostModel::new(50.0, 3.0).gamma(2.0))
}

#[test]
fn printed_formulas() {
    let (p, m, s, q) = (31, 1000, 10, 100.0);
    let round = 50.0 + 5.0 * 10.0;
    let time = |ports, name| {
        published(Kind::Reduce, name, &request(p, m, s, ports))
            .unwrap()
            .time
    };
    assert_eq!(time(Ports::UNI, "binomial"), 5.0 * 5050.0);
    assert_eq!(time(Ports::UNI, "chain"), (30.0 + 2.0 * (q - 1.0)) * round);
    assert_eq!(
        time(Ports::UNI, "binary"),
        (2.0 * 4.0 + 4.0 * (q - 1.0)) * round
    );
    assert_eq!(time(Ports::BI, "chain"), (29.0 + q) * round);
    assert_eq!(time(Ports::BI, "binary"), 2.0 * (4.0 + q) * round);
    assert_eq!(time(Ports::BI, "bi-greedy"), (4.0 + q) * round);
    let butterfly = request(32, 64, 64, Ports::BI);
    let butterfly = published(Kind::Reduce, "butterfly", &butterfly).unwrap();
    assert_eq!(butterfly.time, 10.0 * 50.0 + 2.0 * 62.0 * 3.0 + 62.0 * 2.0);
    assert_eq!(butterfly.erratum, None);
}

#[test]
fn best_times_are_the_minima_of_the_formulas() {
    for ports in [Ports::UNI, Ports::BI] {
        for name in ["chain", "binary", "bi-greedy", "two-tree"] {
            let Some(at) = published(Kind::Reduce, name, &request(100, 100_000, 1, ports)) else {
                continue;
            };
            let (s, t) = at.clamped;
            assert_eq!(at.best_segment, Some(s));
            assert!((at.best_time.unwrap() / t - 1.0).abs() < 1e-12);
            for other in [0.9 * s, 1.1 * s] {
                let r = request(100, 100_000, other as usize, ports);
                assert!(
                    published(Kind::Reduce, name, &r).unwrap().time > t * 0.999,
                    "{name}"
                );
            }
        }
    }
}

/// Compares with the executed time, for all `p` that the closed forms are tested for. The
/// printed time is never less. It is two rounds more for two trees if `p` is a power of two,
/// and the same for two roots with two full trees.
#[test]
fn published_times_of_two_tree_and_dual_root() {
    for p in 4..=70usize {
        for n in [1, 2, 3, 5, 8, 16] {
            let r = request(p, 4 * n, 4, Ports::BI);
            for (kind, name) in [
                (Kind::Reduce, "two-tree"),
                (Kind::Broadcast, "two-tree"),
                (Kind::Allreduce, "dual-root"),
            ] {
                let algorithm = registry::find(kind, name).unwrap();
                let r = r.clone().collective(kind);
                let print = published(kind, name, &r).unwrap();
                let executed = algorithm.time(&r).unwrap();
                assert!(
                    executed <= print.time,
                    "{name} p={p} n={n}: {executed}, {print:?}"
                );
                let gamma = if kind.reduces() { 2.0 } else { 0.0 };
                let round = 50.0 + 4.0 * (3.0 + gamma);
                if name == "dual-root" && (p + 2).is_power_of_two() {
                    assert_eq!(executed, print.time, "p={p} n={n}");
                } else if name == "two-tree" && p.is_power_of_two() {
                    assert_eq!(executed, print.time - 2.0 * round, "p={p} n={n}");
                }
            }
        }
    }
}

#[test]
fn limits_of_the_tables() {
    let r = request(7, 100, 10, Ports::UNI);
    let binary = published(Kind::Reduce, "binary", &r).unwrap();
    assert_eq!((binary.best_segment, binary.best_time), (None, None));
    assert_eq!(published(Kind::Reduce, "uni-greedy", &r), None);
    assert_eq!(published(Kind::Allreduce, "chain", &r), None);
    assert_eq!(
        published(Kind::Reduce, "chain", &request(3, 100, 10, Ports::UNI)),
        None
    );
    let free = published(Kind::Broadcast, "binomial", &r).unwrap();
    assert_eq!(free.time, 3.0 * 350.0);
}
