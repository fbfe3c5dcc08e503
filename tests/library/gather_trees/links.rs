//! Optimal trees for links that differ in cost: they take the times of the paper's equations.

use oneport::internal::gather::{
    GatherProblem, GatherTree, binary, heterogeneous, noncontiguous, optimal, rank_ordered,
    weakly_ordered,
};
use oneport::machine::Links;
use oneport::{CostModel, Kind, Ports, Request, Result};

use super::{Classes, Random, prove};

fn links(random: &mut Random, p: usize, missing: u64) -> CostModel {
    let mut matrix = |top: u64| -> Vec<Vec<Option<f64>>> {
        (0..p)
            .map(|_| (0..p).map(|_| Some(random.below(top) as f64)).collect())
            .collect()
    };
    let (mut alpha, mut beta) = (matrix(50), matrix(6));
    for i in 0..p {
        for j in 0..p {
            // Neighbours are always linked.
            if i.abs_diff(j) > 1 && random.below(100) < missing {
                (alpha[i][j], beta[i][j]) = (None, None);
            }
        }
    }
    CostModel::heterogeneous(Links {
        alpha,
        beta,
        gamma: (0..p).map(|_| random.below(4) as f64).collect(),
        gamma_copy: (0..p).map(|_| random.below(4) as f64).collect(),
        ..Links::default()
    })
    .unwrap()
}

/// Times by range and root.
type Times = Vec<Vec<Vec<f64>>>;

/// The time at which `r`, ready at `ready`, has received `[a, b]` from its best root.
fn received(
    problem: &GatherProblem,
    times: &Times,
    ready: f64,
    [a, b]: [usize; 2],
    r: usize,
) -> f64 {
    let size = problem.sizes()[a..=b].iter().sum();
    let from = |s: usize| ready.max(times[a][b][s]) + problem.cost().transfer(s, r, size);
    (a..=b).map(from).fold(f64::INFINITY, f64::min)
}

/// The least time of trees over each range rooted at each of its ranks, if `best` computes that of
/// a range from those within it.
fn by_ranges(
    problem: &GatherProblem,
    best: fn(&GatherProblem, &Times, [usize; 3], f64) -> f64,
) -> Vec<f64> {
    let p = problem.ranks();
    let mut times = vec![vec![vec![0.0; p]; p]; p];
    for j in 0..p {
        for i in (0..j).rev() {
            for r in i..=j {
                let copy = problem.cost().copy(r, problem.sizes()[r]);
                times[i][j][r] = best(problem, &times, [i, j, r], copy);
            }
        }
    }
    times[0][p - 1].clone()
}

/// The equations of adjacent trees.
fn adjacent(problem: &GatherProblem, times: &Times, [i, j, r]: [usize; 3], copy: f64) -> f64 {
    let received = |ready, range| received(problem, times, ready, range, r);
    let after = (r..j).map(|k| {
        if k == i {
            received(copy, [k + 1, j])
        } else {
            received(times[i][k][r], [k + 1, j])
        }
    });
    let before = (i..r).map(|k| {
        if k + 1 == j {
            received(0.0, [i, k]) + copy
        } else {
            received(times[k + 1][j][r], [i, k])
        }
    });
    after.chain(before).fold(f64::INFINITY, f64::min)
}

/// The equations of trees with at most two children, received in rank order.
fn with_two_children(
    problem: &GatherProblem,
    times: &Times,
    [i, j, r]: [usize; 3],
    copy: f64,
) -> f64 {
    let received = |ready, range| received(problem, times, ready, range, r);
    let (a, b, start, end) = match r {
        r if r == i => (i + 1, j, copy, 0.0),
        r if r == j => (i, j - 1, 0.0, copy),
        r => return received(received(0.0, [i, r - 1]) + copy, [r + 1, j]),
    };
    let two = (a..b).map(|k| received(received(start, [a, k]), [k + 1, b]));
    two.fold(received(start, [a, b]), f64::min) + end
}

/// The least time at which `r` has received `at..=j` in rank order, its own block among them, in at
/// most `left` messages.
fn in_rank_order(
    (problem, times): (&GatherProblem, &Times),
    (at, j, r): (usize, usize, usize),
    (copy, left): (f64, usize),
    ready: f64,
) -> f64 {
    let rest = |at, left, ready| in_rank_order((problem, times), (at, j, r), (copy, left), ready);
    match at {
        at if at > j => ready,
        at if at == r => rest(at + 1, left, ready + copy),
        _ if left == 0 => f64::INFINITY,
        at => {
            let last = if at < r { r - 1 } else { j };
            let parts = (at..=last).map(|end| {
                rest(
                    end + 1,
                    left - 1,
                    received(problem, times, ready, [at, end], r),
                )
            });
            parts.fold(f64::INFINITY, f64::min)
        }
    }
}

/// Definition 3: all ranges in rank order.
fn rank_ordered(problem: &GatherProblem, times: &Times, [i, j, r]: [usize; 3], copy: f64) -> f64 {
    in_rank_order((problem, times), (i, j, r), (copy, usize::MAX), 0.0)
}

fn with_three_children(
    problem: &GatherProblem,
    times: &Times,
    [i, j, r]: [usize; 3],
    copy: f64,
) -> f64 {
    in_rank_order((problem, times), (i, j, r), (copy, 3), 0.0)
}

/// The example of the planner's header.
#[test]
fn a_rank_near_all_others_receives_three_messages() {
    let alpha = |to: usize| Some(if to == 0 { 1.0 } else { 10.0 });
    let cost = CostModel::heterogeneous(Links {
        alpha: (0..4).map(|_| (0..4).map(alpha).collect()).collect(),
        beta: vec![vec![Some(0.0); 4]; 4],
        ..Links::default()
    });
    let request = Request::new(Kind::Gather, 4, 1).cost(cost.unwrap());
    assert_eq!(request.time("ternary").unwrap(), 3.0);
    assert_eq!(request.time("binary").unwrap(), 11.0);
}

#[test]
fn ternary_trees_take_the_time_of_the_equations() {
    let mut random = Random::new(47);
    let mut better = 0;
    for round in 0..60 {
        let p = 2 + random.below(8) as usize;
        let cost = links(&mut random, p, if round % 3 == 0 { 30 } else { 0 });
        let sizes = random.sizes(p);
        let problem = GatherProblem::new(sizes.clone(), cost.clone(), None).unwrap();
        let times = by_ranges(&problem, with_three_children);
        let of_two = by_ranges(&problem, with_two_children);
        for root in 0..p {
            let blocks = sizes.iter().map(|&s| s as usize).collect();
            let request = Request::new(Kind::Gather, p, 1).blocks(Some(blocks));
            let request = request.root(root).cost(cost.clone());
            match request.plan("ternary") {
                Ok(schedule) => {
                    let time = schedule.simulate(&cost).unwrap().makespan();
                    assert_eq!(time, times[root], "{problem:?}");
                    assert!(schedule.check().is_correct());
                    better += usize::from(time < of_two[root]);
                }
                Err(_) => assert_eq!(times[root], f64::INFINITY, "{problem:?}"),
            }
        }
    }
    assert!(better > 20, "{better}");
}

#[test]
fn trees_take_the_times_of_the_equations() {
    let mut random = Random::new(41);
    for round in 0..300 {
        let p = 1 + random.below(11) as usize;
        let cost = links(&mut random, p, if round % 3 == 0 { 30 } else { 0 });
        let problem = GatherProblem::new(random.sizes(p), cost, None).unwrap();
        for (times, plan) in [
            (
                by_ranges(&problem, adjacent),
                heterogeneous::tree as super::Plan,
            ),
            (
                by_ranges(&problem, with_two_children),
                heterogeneous::binary,
            ),
            (by_ranges(&problem, rank_ordered), rank_ordered::tree),
        ] {
            for root in (0..p).map(Some).chain([None]) {
                let best = times.iter().copied().fold(f64::INFINITY, f64::min);
                let time = root.map_or(best, |root| times[root]);
                let problem = problem.clone().with_root(root).unwrap();
                let Ok(tree) = plan(&problem) else {
                    assert_eq!(time, f64::INFINITY, "{problem:?}");
                    continue;
                };
                assert_eq!(problem.time(&tree), time, "{problem:?}");
                assert!(tree.is_weakly_ordered());
                if round % 20 == 0 && round % 3 != 0 {
                    prove_gather(&problem, &tree);
                }
            }
        }
    }
}

/// As [`prove`], for the gather only: a scatter takes the links in the opposite direction.
fn prove_gather(problem: &GatherProblem, tree: &GatherTree) {
    let blocks: Vec<usize> = problem.sizes().iter().map(|&s| s as usize).collect();
    let schedule = tree.gather(&blocks, Ports::UNI).unwrap();
    let simulated = schedule.simulate(problem.cost()).unwrap().makespan();
    assert_eq!(simulated, problem.time(tree));
}

#[test]
fn equal_links_give_the_homogeneous_optimum() {
    let mut random = Random::new(42);
    for _ in 0..100 {
        let p = 1 + random.below(14) as usize;
        let (alpha, beta, gamma) = (random.below(30), random.below(4), random.below(4));
        let [alpha, beta, gamma] = [alpha, beta, gamma].map(|c| c as f64);
        let sizes = random.sizes(p);
        let equal = CostModel::heterogeneous(Links {
            alpha: vec![vec![Some(alpha); p]; p],
            beta: vec![vec![Some(beta); p]; p],
            gamma: Vec::new(),
            gamma_copy: vec![gamma; p],
            ..Links::default()
        });
        let plain = CostModel::new(alpha, beta).gamma_copy(gamma);
        for root in [None, Some(p / 2)] {
            let on =
                |cost: &CostModel| GatherProblem::new(sizes.clone(), cost.clone(), root).unwrap();
            let (one, other) = (on(equal.as_ref().unwrap()), on(&plain));
            let time = |tree: Result<GatherTree>| other.time(&tree.unwrap());
            assert_eq!(time(heterogeneous::tree(&one)), time(optimal::tree(&other)));
            assert_eq!(
                time(heterogeneous::binary(&one)),
                time(binary::tree(&other))
            );
            prove(&other, &heterogeneous::tree(&one).unwrap());
        }
    }
}

/// Proposition 2, literally: the least time of trees over `set` to `r`, whose last message has the
/// data of a part that `allowed` accepts. Sets are lists of ranks in order.
fn of_sets(problem: &GatherProblem, set: &[usize], r: usize, allowed: fn(&[usize]) -> bool) -> f64 {
    if set == [r] {
        return 0.0;
    }
    let mut best = f64::INFINITY;
    for chosen in 1..1usize << set.len() {
        let (part, rest): (Vec<usize>, Vec<usize>) = set
            .iter()
            .partition(|&&x| chosen >> set.iter().position(|&y| y == x).unwrap() & 1 == 1);
        if part.contains(&r) || !allowed(&part) {
            continue;
        }
        let own = problem.cost().copy(r, problem.sizes()[r]);
        let before = if rest == [r] {
            own
        } else {
            of_sets(problem, &rest, r, allowed)
        };
        let size = part.iter().map(|&x| problem.sizes()[x]).sum();
        for &x in &part {
            let sent = before.max(of_sets(problem, &part, x, allowed));
            best = best.min(sent + problem.cost().transfer(x, r, size));
        }
    }
    best
}

#[test]
fn trees_of_sets_and_of_ranges_are_the_best_of_their_class() {
    let mut random = Random::new(43);
    let any = |_: &[usize]| true;
    let consecutive = |part: &[usize]| part[part.len() - 1] - part[0] + 1 == part.len();
    let (mut unconnected, mut below_ordered) = (0, 0);
    for round in 0..120 {
        let p = 1 + random.below(5) as usize;
        let mut cost = links(&mut random, p, 0);
        if round % 3 == 0 {
            // Without the links between neighbours, too.
            let mut links = cost.links().unwrap().clone();
            for i in 0..p {
                for j in 0..p {
                    if random.below(2) == 0 {
                        (links.alpha[i][j], links.beta[i][j]) = (None, None);
                    }
                }
            }
            cost = CostModel::heterogeneous(links).unwrap();
        }
        let problem = GatherProblem::new(random.sizes(p), cost, None).unwrap();
        let all: Vec<usize> = (0..p).collect();
        for (plan, allowed) in [
            (
                noncontiguous::tree as super::Plan,
                any as fn(&[usize]) -> bool,
            ),
            (weakly_ordered::tree, consecutive),
        ] {
            let times: Vec<f64> = (0..p)
                .map(|r| of_sets(&problem, &all, r, allowed))
                .collect();
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            for root in (0..p).map(Some).chain([None]) {
                let problem = problem.clone().with_root(root).unwrap();
                let time = root.map_or(least, |root| times[root]);
                let Ok(tree) = plan(&problem) else {
                    assert_eq!(time, f64::INFINITY, "{problem:?}");
                    unconnected += 1;
                    continue;
                };
                assert_eq!(problem.time(&tree), time, "{problem:?} {tree:?}");
                prove_gather(&problem, &tree);
                let ordered = optimal::tree(&problem).map(|tree| problem.time(&tree));
                below_ordered += usize::from(ordered.is_ok_and(|ordered| time < ordered));
            }
        }
    }
    assert!(
        unconnected > 20 && below_ordered > 20,
        "{unconnected} {below_ordered}"
    );
}

#[test]
fn sparse_links_of_many_ranks_have_unordered_trees() {
    // A ring whose ranks are numbered in steps of 5: no two neighbours are linked.
    let p = 17;
    let linked = |i: usize, j: usize| (i + 5) % p == j || (j + 5) % p == i;
    let row = |i: usize| (0..p).map(move |j| linked(i, j).then_some(3.0));
    let alpha: Vec<Vec<_>> = (0..p).map(|i| row(i).collect()).collect();
    let beta = alpha.clone();
    let cost = CostModel::heterogeneous(Links {
        alpha,
        beta,
        ..Links::default()
    });
    let problem = GatherProblem::new(vec![2; p], cost.unwrap(), Some(0)).unwrap();
    assert!(optimal::tree(&problem).is_err());
    let tree = noncontiguous::tree(&problem).unwrap();
    prove_gather(&problem, &tree);
    // Two chains of 8 ranks: the blocks of one end travel over 8 links.
    assert!(problem.time(&tree).is_finite());
}
