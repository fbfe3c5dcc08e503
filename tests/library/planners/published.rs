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

/// Table II, for p = 20 ranks, 100 elements, alpha = 10, beta = gamma = 1: N = 5.
#[test]
fn terms_of_the_standard_algorithms() {
    let terms = |name: &str, ports| {
        let cost = CostModel::new(10.0, 1.0).gamma(2.0);
        let request = request(20, 100, 7, ports).cost(cost);
        published(Kind::Reduce, name, &request).unwrap().terms
    };
    assert_eq!(terms("binomial", Ports::UNI), Some([50.0, 500.0, 1000.0]));
    assert_eq!(terms("chain", Ports::UNI), Some([190.0, 217.0, 434.0]));
    assert_eq!(terms("binary", Ports::UNI), Some([80.0, 404.0, 808.0]));
    assert_eq!(terms("chain", Ports::BI), None);
    assert_eq!(terms("bi-greedy", Ports::BI), None);
}

/// Lemmas 1 and 2: `ceil(log2 p) alpha + beta sum` and, for a given root, the penalty.
#[test]
fn bounds_of_adaptive_trees_and_their_penalty() {
    let bound = |sizes: &[usize], root: Option<usize>| {
        let request = Request::new(Kind::Gather, sizes.len(), 1).blocks(Some(sizes.to_vec()));
        let request = request.root(root.unwrap_or(0)).free_root(root.is_none());
        let request = request.cost(CostModel::new(10.0, 2.0));
        let bound = published(Kind::Gather, "adaptive", &request).unwrap();
        let algorithm = registry::find(Kind::Gather, "adaptive").unwrap();
        let time = algorithm.time(&request).unwrap();
        assert!(time <= bound.time, "{sizes:?} {root:?}: {time}, {bound:?}");
        (bound.time, bound.penalty.unwrap())
    };
    // Figure 2: root 9 receives 1, 5, 0 and 16 of {0..7}, whose root 3 gathers 11 before.
    let figure = [1, 0, 2, 3, 4, 2, 0, 0, 1, 7, 5];
    assert_eq!(
        bound(&figure, Some(9)),
        (40.0 + 2.0 * 18.0 + 2.0 * 3.0, 6.0)
    );
    // A neighbour with all data, which its root gathers from another rank.
    assert_eq!(
        bound(&[0, 0, 8, 8], Some(0)),
        (20.0 + 2.0 * 16.0 + 2.0 * 8.0, 16.0)
    );
    let mut random = oneport::random::Generator::new(3);
    for p in 4..40usize {
        let sizes: Vec<usize> = (0..p).map(|_| random.below(20)).collect();
        if sizes.iter().all(|&size| size == 0) {
            continue;
        }
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        let all: usize = sizes.iter().sum();
        let root = random.below(p);
        let (time, penalty) = bound(&sizes, Some(root));
        assert_eq!(
            time - penalty,
            rounds * 10.0 + 2.0 * (all - sizes[root]) as f64
        );
        let (_, penalty) = bound(&sizes, None);
        assert_eq!(penalty, 0.0);
    }
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
