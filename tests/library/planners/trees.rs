//! Trees and pipelines.

use std::collections::HashSet;

use oneport::check::Options;
use oneport::machine::Links;
use oneport::plan::{Request, Segments};
use oneport::random::Generator;
use oneport::{CostModel, Kind, Ports, Schedule, Step};

use super::{closed_form, executed};

/// The minimum time of all ordered trees over `i..=j` rooted at `r`, by brute force.
fn min_time(cost: &CostModel, gamma: f64, i: usize, j: usize, r: usize) -> f64 {
    if i == j {
        return 0.0;
    }
    let mut best = f64::INFINITY;
    for k in i..j {
        let (mine, other) = if r <= k {
            ((i, k), (k + 1, j))
        } else {
            ((k + 1, j), (i, k))
        };
        for s in other.0..=other.1 {
            let mine = min_time(cost, gamma, mine.0, mine.1, r);
            let ready = mine.max(min_time(cost, gamma, other.0, other.1, s));
            best = best.min(ready + cost.transfer(s, r, 4) + gamma * cost.combine(r, 4));
        }
    }
    best
}

#[test]
fn the_best_tree_on_a_platform() {
    for p in 1..=6usize {
        let entry = |i: usize, j: usize, f: usize| Some(((i * 7 + j * 11 + f * i * j) % 13) as f64);
        // With the links as they are, and in the opposite direction.
        let [cost, turned] = [false, true].map(|turn| {
            let entry = |i: usize, j: usize, f: usize| {
                if !turn {
                    entry(i, j, f)
                } else {
                    entry(j, i, f)
                }
            };
            let row = |i: usize, f: usize| (0..p).map(|j| entry(i, j, f)).collect();
            let matrix = |f: usize| (0..p).map(|i| row(i, f)).collect();
            let links = Links {
                alpha: matrix(3),
                beta: matrix(5),
                gamma: (0..p).map(|r| (r % 3) as f64).collect(),
                gamma_copy: Vec::new(),
                ..Links::default()
            };
            CostModel::heterogeneous(links).unwrap()
        });
        let mut request = Request::reduce(p, 4).cost(cost.clone()).keep_order(true);
        let mut times = Vec::new();
        for root in 0..p {
            request = request.root(root);
            let schedule = request.plan("ordered").unwrap();
            let options = Options {
                keep_order: true,
                ..Options::default()
            };
            assert!(schedule.check_with(&options).is_correct());
            let time = schedule.simulate(&cost).unwrap().makespan();
            assert_eq!(time, min_time(&cost, 1.0, 0, p - 1, root), "{p} {root}");
            times.push(time);
            let schedule = request
                .clone()
                .collective(Kind::Broadcast)
                .plan("ordered")
                .unwrap();
            assert!(schedule.check().is_correct());
            let time = schedule.simulate(&cost).unwrap().makespan();
            assert_eq!(time, min_time(&turned, 0.0, 0, p - 1, root), "{p} {root}");
        }
        request = request.free_root(true);
        let schedule = request.plan("ordered").unwrap();
        let time = schedule.simulate(&cost).unwrap().makespan();
        assert_eq!(time, times.into_iter().fold(f64::INFINITY, f64::min));
    }
}

#[test]
fn time_of_a_chain_with_a_smaller_last_segment() {
    for p in 1..=9 {
        for (m, s) in [(7, 3), (10, 4), (9, 8), (11, 2), (5, 5), (3, 2)] {
            for (alpha, beta, gamma) in [
                (2.0, 1.0, 3.0),
                (0.0, 5.0, 1.0),
                (7.0, 0.0, 2.0),
                (1.0, 1.0, 0.0),
            ] {
                for ports in [Ports::UNI, Ports::BI] {
                    let r = Request::reduce(p, m)
                        .segment_elems(s)
                        .ports(ports)
                        .cost(CostModel::new(alpha, beta).gamma(gamma));
                    let executed = executed(&r, "chain");
                    assert_eq!(
                        closed_form(&r, "chain"),
                        Some(executed),
                        "p={p} m={m} s={s} {ports:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn figure_8_of_bi_greedy_has_makespan_24() {
    let request = Request::reduce(16, 5)
        .segment_elems(1)
        .cost(CostModel::new(2.0, 0.0).gamma(1.0));
    assert_eq!(executed(&request, "bi-greedy"), 24.0);
}

#[test]
fn rounds_of_bi_greedy_are_executed_as_planned() {
    for p in (2..=128).step_by(3) {
        for q in [1, 2, 9, 32] {
            for gamma in [0.0, 1.0, 5.0] {
                let request = Request::reduce(p, 2 * q)
                    .segment_elems(2)
                    .cost(CostModel::new(2.0, 1.0).gamma(gamma));
                assert_eq!(
                    Some(executed(&request, "bi-greedy")),
                    closed_form(&request, "bi-greedy"),
                    "p={p} q={q}"
                );
            }
        }
    }
}

#[test]
fn executed_times_of_two_trees() {
    for p in (2..=64).chain([100, 127, 128, 129, 256, 512]) {
        for q in [1, 2, 3, 8, 21] {
            for gamma in [0.0, 1.0, 7.0] {
                let request = |p: usize| {
                    Request::reduce(p, 2 * q)
                        .segment_elems(2)
                        .cost(CostModel::new(2.0, 1.0).gamma(gamma))
                };
                let executed = executed(&request(p), "two-tree");
                let time = |p| closed_form(&request(p), "two-tree");
                let bound = time(p.next_power_of_two()).unwrap();
                assert!(executed <= bound, "p={p} q={q}: {executed} > {bound}");
                assert_eq!(time(p).unwrap_or(executed), executed, "p={p} q={q}");
            }
        }
    }
}

#[test]
fn binary_trees_of_any_number_of_ranks_stay_within_the_time_of_the_next_full_tree() {
    for p in 2..=130 {
        for q in [1, 2, 5] {
            for ports in [Ports::UNI, Ports::BI] {
                let request = |p: usize| {
                    Request::reduce(p, 4 * q)
                        .segment_elems(4)
                        .ports(ports)
                        .cost(CostModel::new(2.0, 1.0).gamma(1.0))
                };
                let executed = executed(&request(p), "binary");
                let full = (p + 1usize).next_power_of_two() - 1;
                let bound = closed_form(&request(full), "binary").unwrap();
                assert!(
                    executed <= bound,
                    "p={p} q={q} {ports:?}: {executed} > {bound}"
                );
            }
        }
    }
}

#[test]
fn full_dual_trees_take_the_longest() {
    let rounds = |p: usize, q: usize| {
        let request = Request::allreduce(p, q)
            .segment_count(q)
            .cost(CostModel::new(1.0, 0.0));
        (
            executed(&request, "dual-root"),
            closed_form(&request, "dual-root"),
        )
    };
    for p in 2..=130usize {
        let full = (p + 2).next_power_of_two() - 2;
        for q in [1, 2, 3, 7] {
            let (executed, bound) = (rounds(p, q).0, rounds(full, q).1.unwrap());
            assert!(executed <= bound, "p={p} q={q}: {executed} > {bound}");
        }
    }
}

/// The trees of a reduction wait for each other's combinations only.
#[test]
fn multi_tree_reductions_without_computation_take_as_long_as_broadcasts() {
    for p in 1..20 {
        for k in 1..5 {
            let request = Request::broadcast(p, 11)
                .segment_count(11)
                .ports(Ports::BI.with_k(k))
                .cost(CostModel::new(3.0, 2.0));
            let reduce = request.clone().collective(Kind::Reduce);
            let time = closed_form(&request, "multi-tree");
            assert_eq!(Some(executed(&reduce, "multi-tree")), time, "p={p} k={k}");
        }
    }
}

#[test]
fn rounds_of_multi_trees_are_close_to_the_least_possible() {
    for (p, k, q, least, rounds) in [
        (4, 1, 5, 6, 7),
        (27, 2, 40, 23, 24),
        (64, 3, 30, 13, 14),
        (125, 4, 100, 28, 29),
        (729, 8, 80, 13, 14),
    ] {
        let request = Request::broadcast(p, q)
            .segment_count(q)
            .ports(Ports::BI.with_k(k))
            .cost(CostModel::new(1.0, 0.0));
        let steps = (1..).find(|&i| (k + 1usize).pow(i) >= p).unwrap() as usize;
        assert_eq!(steps + (q - 1).div_ceil(k), least);
        let time = executed(&request, "multi-tree");
        assert_eq!(time, f64::from(rounds), "p={p} k={k} q={q}");
    }
}

#[test]
fn the_conjectured_number_of_rounds_of_bi_greedy_is_reached() {
    let rounds = |p, q| {
        let request = Request::reduce(p, q)
            .segment_count(q)
            .cost(CostModel::new(1.0, 0.0));
        closed_form(&request, "bi-greedy").unwrap() as usize
    };
    for p in 2..=128usize {
        let latency = p.next_power_of_two().trailing_zeros() as usize;
        for q in 1..=32 {
            assert_eq!(rounds(p, q), latency + q - 1, "p={p} q={q}");
        }
    }
    for (p, q) in [(1000, 7), (1023, 3), (1025, 10)] {
        assert_eq!(rounds(p, q), p.ilog2() as usize + q, "p={p} q={q}");
    }
}

/// The ranks to which a rank sends, in order.
fn receivers(schedule: &Schedule, rank: usize) -> Vec<usize> {
    let sends = schedule.programs()[rank].iter().filter(|s| s.is_send());
    sends.filter_map(Step::peer).collect()
}

#[test]
fn distances_of_bine_trees_are_those_of_the_paper() {
    let of = |p: usize| Request::broadcast(p, 1).plan("bine").unwrap();
    let eight = of(8);
    assert_eq!(receivers(&eight, 0), [3, 7, 1]);
    assert_eq!(receivers(&eight, 3), [4, 2]);
    assert_eq!(receivers(&eight, 4), [5]);
    assert_eq!(receivers(&eight, 7), [6]);
    // 1, 1, 3, 5, 11, 21, 43: (2^(k+1) ± 1)/3 instead of 2^(k-1).
    let distances: Vec<usize> = receivers(&of(128), 0)
        .into_iter()
        .map(|to| to.min(128 - to))
        .collect();
    assert_eq!(distances, [43, 21, 11, 5, 3, 1, 1]);
}

#[test]
fn bi_greedy_of_four_ranks_and_two_segments() {
    let request = Request::reduce(4, 2).segment_count(2);
    let schedule = request.plan("bi-greedy").unwrap();
    // By rank: whether it sends, the other rank, and the segment.
    let steps = |rank: usize| -> Vec<(bool, usize, usize)> {
        let step = |s: &Step| match s {
            Step::Send { to, spans, .. } => (true, *to, spans[0].offset),
            Step::RecvCombine { from, spans, .. } => (false, *from, spans[0].offset),
            other => panic!("{other:?}"),
        };
        schedule.programs()[rank].iter().map(step).collect()
    };
    assert_eq!(steps(0), [(false, 2, 0), (false, 1, 0), (false, 2, 1)]);
    assert_eq!(steps(1), [(true, 2, 1), (false, 3, 0), (true, 0, 0)]);
    assert_eq!(
        steps(2),
        [(true, 0, 0), (false, 1, 1), (false, 3, 1), (true, 0, 1)]
    );
    assert_eq!(steps(3), [(true, 1, 0), (true, 2, 1)]);
}

#[test]
fn two_trees_bring_the_first_segment_in_about_two_rounds_a_level() {
    for p in 2..=300usize {
        let levels = f64::from(p.next_power_of_two().trailing_zeros());
        let request = Request::reduce(p, 1).cost(CostModel::new(1.0, 0.0));
        let rounds = executed(&request, "two-tree");
        let most = 2.0 * levels - 1.0;
        let all = rounds == most || !p.is_power_of_two();
        assert!(rounds <= most && all, "p={p}: {rounds}");
    }
}

/// By segment of a multi-tree broadcast: who sends it to whom, and through which port.
fn multi_trees(p: usize, k: usize, q: usize) -> Vec<Vec<[usize; 3]>> {
    let ports = Ports::BI.with_k(k);
    let request = Request::broadcast(p, q).segment_count(q).ports(ports);
    let schedule = request.plan("multi-tree").unwrap();
    let mut trees = vec![Vec::new(); q];
    for (from, program) in schedule.programs().iter().enumerate() {
        for step in program.iter().filter(|step| step.is_send()) {
            let edge = [from, step.peer().unwrap(), step.port().unwrap()];
            step.reads().iter().for_each(|s| trees[s.offset].push(edge));
        }
    }
    trees
}

#[test]
fn multi_trees_have_ports_of_their_own_and_the_depth_of_complete_trees() {
    let (mut deeper, mut all) = (0, 0);
    for p in (2..70).chain([121, 122, 341, 342]) {
        for k in 2..9 {
            // No row of fewer ports is as fast: all of them are used.
            let trees = multi_trees(p, k, k);
            // The number of levels of a complete `k`-ary tree of the ranks but the root.
            let (mut held, mut width, mut levels) = (0, 1, 0);
            while held < p - 1 {
                (held, width, levels) = (held + width, width * k, levels + 1);
            }
            let mut used = HashSet::new();
            for tree in &trees {
                assert_eq!(tree.len(), p - 1, "p={p} k={k}");
                let mut parent = vec![0; p];
                for &[from, to, port] in tree {
                    used.insert((from, port, tree.as_ptr()));
                    parent[to] = from;
                }
                let depth = |&rank: &usize| {
                    let up = std::iter::successors(Some(rank), |&r| (r > 0).then(|| parent[r]));
                    up.count() - 1
                };
                let deepest = (1..p).map(|rank| depth(&rank)).max().unwrap();
                let max = if p > k { 1 } else { 3 };
                assert!(deepest <= levels + max, "p={p} k={k}: {deepest} levels");
                deeper += usize::from(deepest > levels);
                all += 1;
            }
            let ports: HashSet<_> = used.iter().map(|(rank, port, _)| (rank, port)).collect();
            assert_eq!(ports.len(), used.len(), "p={p} k={k}: a port of two trees");
        }
    }
    assert!(50 * deeper < all, "{deeper} of {all} trees are deeper");
}

/// The example of the planner's header.
#[test]
fn two_multi_trees_of_five_ranks() {
    let edges = |tree: &Vec<[usize; 3]>| -> Vec<_> {
        let mut edges: Vec<_> = tree.iter().map(|&[from, to, _]| (from, to)).collect();
        edges.sort_unstable();
        edges
    };
    let trees = multi_trees(5, 2, 2);
    assert_eq!(edges(&trees[0]), [(0, 1), (1, 2), (1, 3), (3, 4)]);
    assert_eq!(edges(&trees[1]), [(0, 2), (2, 1), (2, 4), (4, 3)]);
}

/// The least time of a broadcast of 8 bytes: of all orders in which ranks that have the data send
/// it to others. `next` says when each rank that has it can send next.
fn least_broadcast(cost: &CostModel, next: &mut Vec<f64>) -> f64 {
    let p = next.len();
    if next.iter().all(|time| time.is_finite()) {
        return next.iter().copied().fold(0.0, f64::max);
    }
    let mut least = f64::INFINITY;
    for from in (0..p).filter(|&r| next[r].is_finite()).collect::<Vec<_>>() {
        for to in (0..p)
            .filter(|&r| next[r].is_infinite())
            .collect::<Vec<_>>()
        {
            let end = next[from] + cost.transfer(from, to, 8);
            if end.is_finite() {
                let before = (next[from], next[to]);
                (next[from], next[to]) = (end, end);
                least = least.min(least_broadcast(cost, next));
                (next[from], next[to]) = before;
            }
        }
    }
    least
}

/// The least time of a reduction of 8 bytes over `i..=j` to `r` in which every rank receives at
/// most two ranges, the lower one first.
fn least_binary(cost: &CostModel, (i, j, r): (usize, usize, usize)) -> f64 {
    let received = |ready: f64, a: usize, b: usize| {
        let from = |s: usize| {
            let sent = ready.max(least_binary(cost, (a, b, s)));
            sent + cost.transfer(s, r, 8) + cost.combine(r, 8)
        };
        (a..=b).map(from).fold(f64::INFINITY, f64::min)
    };
    if i == j {
        return 0.0;
    }
    let (a, b) = match r {
        r if r == i => (i + 1, j),
        r if r == j => (i, j - 1),
        r => return received(received(0.0, i, r - 1), r + 1, j),
    };
    let two = (a..b).map(|k| received(received(0.0, a, k), k + 1, b));
    two.fold(received(0.0, a, b), f64::min)
}

#[test]
fn the_best_binary_tree_of_uneven_links() {
    let mut random = Generator::new(6);
    for round in 0..40 {
        let p = 1 + round % 6;
        let mut entries = |top: usize| {
            (0..p)
                .map(|_| Some(random.below(top) as f64))
                .collect::<Vec<_>>()
        };
        let (alpha, beta): (Vec<_>, Vec<_>) = (0..p).map(|_| (entries(50), entries(6))).unzip();
        let gamma: Vec<f64> = entries(4).into_iter().flatten().collect();
        let turn = |rows: &Vec<Vec<Option<f64>>>| {
            let column = |j: usize| rows.iter().map(|row| row[j]).collect();
            (0..p).map(column).collect::<Vec<Vec<_>>>()
        };
        let platform = |alpha, beta, gamma| {
            let links = Links {
                alpha,
                beta,
                gamma,
                ..Links::default()
            };
            CostModel::heterogeneous(links).unwrap()
        };
        // A broadcast is a reduction backwards, with free combinations.
        let turned = platform(turn(&alpha), turn(&beta), vec![0.0; p]);
        let cost = platform(alpha, beta, gamma);
        let least = |cost: &CostModel, root| least_binary(cost, (0, p - 1, root));
        let makespan = |schedule: &Schedule| schedule.simulate(&cost).unwrap().makespan();
        for root in 0..p {
            let reduce = Request::reduce(p, 8).root(root).cost(cost.clone());
            let schedule = reduce.plan("optimal-binary").unwrap();
            assert!(schedule.check().is_correct());
            assert_eq!(makespan(&schedule), least(&cost, root), "{cost:?}");
            let broadcast = Request::broadcast(p, 8).root(root).cost(cost.clone());
            let schedule = broadcast.plan("optimal-binary").unwrap();
            assert!(schedule.check().is_correct());
            assert_eq!(makespan(&schedule), least(&turned, root), "{cost:?}");
        }
        let free = Request::reduce(p, 8).free_root(true).cost(cost.clone());
        let best = (0..p)
            .map(|r| least(&cost, r))
            .fold(f64::INFINITY, f64::min);
        assert_eq!(makespan(&free.plan("optimal-binary").unwrap()), best);
    }
}

#[test]
fn the_fastest_broadcast_on_uneven_and_sparse_links() {
    let mut random = Generator::new(5);
    let mut unconnected = 0;
    for round in 0..60 {
        let p = 1 + round % 5;
        // As in the comparison of atomic broadcasts: alpha 100 to 2000, beta 0; then sparse ones.
        let (beta, missing) = [(0, 0), (30, 0), (0, 50)][round % 3];
        let mut alpha = vec![vec![None; p]; p];
        let mut of_beta = alpha.clone();
        for i in 0..p {
            for j in 0..p {
                if random.below(100) < missing {
                    continue;
                }
                alpha[i][j] = Some((100 + random.below(1901)) as f64);
                of_beta[i][j] = Some(random.below(beta + 1) as f64);
            }
        }
        let cost = CostModel::heterogeneous(Links {
            alpha,
            beta: of_beta,
            ..Links::default()
        })
        .unwrap();
        let least = |root: usize| {
            let mut next = vec![f64::INFINITY; p];
            next[root] = 0.0;
            least_broadcast(&cost, &mut next)
        };
        let reversed = Request::reduce(p, 8).cost(transposed(&cost));
        for root in 0..p {
            let request = Request::broadcast(p, 8).cost(cost.clone()).root(root);
            let Ok(schedule) = request.plan("unordered") else {
                assert_eq!(least(root), f64::INFINITY);
                unconnected += 1;
                continue;
            };
            assert!(schedule.check().is_correct());
            assert_eq!(makespan(&schedule, &cost), least(root), "{cost:?} {root}");
            // The reduction over the same links backwards takes as long.
            let reduced = reversed.clone().root(root).plan("unordered").unwrap();
            assert!(reduced.check().is_correct());
            assert_eq!(makespan(&reduced, reversed.get_cost()), least(root));
        }
        let free = Request::broadcast(p, 8).cost(cost.clone()).free_root(true);
        if let Ok(schedule) = free.plan("unordered") {
            let best = (0..p).map(least).fold(f64::INFINITY, f64::min);
            assert_eq!(makespan(&schedule, &cost), best);
        }
    }
    assert!(unconnected > 5);
}

fn makespan(schedule: &Schedule, cost: &CostModel) -> f64 {
    schedule.simulate(cost).unwrap().makespan()
}

/// The same costs with the links in the opposite direction.
fn transposed(cost: &CostModel) -> CostModel {
    let turned = |m: &[Vec<Option<f64>>]| -> Vec<Vec<Option<f64>>> {
        (0..m.len())
            .map(|i| m.iter().map(|row| row[i]).collect())
            .collect()
    };
    let links = cost.links().unwrap();
    CostModel::heterogeneous(Links {
        alpha: turned(&links.alpha),
        beta: turned(&links.beta),
        ..links.clone()
    })
    .unwrap()
}

#[test]
fn broadcasts_among_many_ranks_send_what_ends_first() {
    // Equal links: a binomial tree. Combining takes time, too.
    for p in [13usize, 16, 33] {
        let links = Links {
            alpha: vec![vec![Some(1.0); p]; p],
            beta: vec![vec![Some(0.0); p]; p],
            gamma: vec![1.0; p],
            ..Links::default()
        };
        let cost = CostModel::heterogeneous(links).unwrap();
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        let broadcast = Request::broadcast(p, 1).cost(cost.clone()).root(4);
        assert_eq!(
            makespan(&broadcast.plan("unordered").unwrap(), &cost),
            rounds
        );
        let reduce = Request::reduce(p, 1).cost(cost.clone()).root(4);
        let schedule = reduce.plan("unordered").unwrap();
        assert!(schedule.check().is_correct());
        assert_eq!(makespan(&schedule, &cost), 2.0 * rounds);
        assert!(reduce.keep_order(true).plan("unordered").is_err());
    }
    // A star whose centre is not the root, and a rank that nothing reaches.
    let p = 15;
    let row = |i: usize| (0..p).map(move |j| ((i == 0) != (j == 0)).then_some(1.0));
    let alpha: Vec<Vec<_>> = (0..p).map(|i| row(i).collect()).collect();
    let beta = alpha.clone();
    let star = Links {
        alpha,
        beta,
        ..Links::default()
    };
    let cost = CostModel::heterogeneous(star.clone()).unwrap();
    let request = Request::broadcast(p, 1).cost(cost.clone()).root(3);
    let schedule = request.plan("unordered").unwrap();
    assert!(schedule.check().is_correct());
    assert_eq!(makespan(&schedule, &cost), 14.0 * 2.0);
    let free = request.clone().free_root(true).plan("unordered").unwrap();
    assert_eq!(makespan(&free, &cost), 14.0 * 2.0);
    let mut cut = star;
    cut.alpha[0][7] = None;
    cut.beta[0][7] = None;
    let refused = request
        .cost(CostModel::heterogeneous(cut).unwrap())
        .plan("unordered");
    assert!(refused.unwrap_err().to_string().contains("do not connect"));
}

/// Broadcasts and reductions send the start of the vector first, whichever is the other one
/// backwards, and however unequal their segments are.
#[test]
fn the_start_of_the_vector_is_sent_first() {
    let sizes = [vec![2; 6], vec![3, 3, 3, 3, 3, 2], vec![1, 3, 2, 3, 1, 1]];
    for name in ["chain", "binary", "kary", "multi-tree", "split-binary"] {
        for sizes in &sizes {
            let elements = sizes.iter().sum();
            let segments = Segments::of_sizes(sizes.clone()).unwrap();
            let both = [
                Request::broadcast(7, elements),
                Request::reduce(7, elements),
            ];
            for request in both {
                assert_sent_in_order(&request.segments(segments.clone()), name);
            }
        }
    }
}

/// An allreduce sends equal segments from the first to the last in both of its parts.
#[test]
fn both_parts_of_an_allreduce_send_the_first_segment_first() {
    for name in ["chain", "binary"] {
        assert_sent_in_order(&Request::allreduce(7, 12).segment_count(6), name);
    }
}

/// Every rank sends to each other one by ascending position. Messages of more than 3 elements, the
/// halves that split-binary exchanges, are no segments.
fn assert_sent_in_order(request: &Request, name: &str) {
    let schedule = request.plan(name).unwrap();
    assert!(schedule.check().is_correct(), "{name}");
    let sends = |steps: &[Step], peer: usize| -> Vec<usize> {
        let to_peer = steps
            .iter()
            .filter(|s| s.is_send() && s.peer() == Some(peer));
        let segments = to_peer.filter(|s| s.len() <= 3);
        segments.map(|s| s.reads()[0].offset).collect()
    };
    let programs = schedule.programs();
    let sent = programs
        .iter()
        .flat_map(|steps| (0..7).map(|peer| sends(steps, peer)));
    let sent: Vec<_> = sent.filter(|offsets| offsets.len() > 1).collect();
    assert!(
        !sent.is_empty() && sent.iter().all(|o| o.is_sorted()),
        "{name}: {request:?}: {sent:?}"
    );
}
