//! The dynamic programs of trees in rank order: the fast ones find what those that try every option
//! do.

use oneport::CostModel;
use oneport::internal::gather::optimal::{self, DynamicProgram, time_by};
use oneport::internal::gather::{GatherProblem, GatherTree, binary, rank_ordered, weakly_ordered};

use super::{Classes, Plan, Random, for_cubic_programs, prove};

/// The trees of the `O(p^2)` and of the `O(p^3)` program, which take the same time.
fn both(problem: &GatherProblem, plan: Plan) -> [GatherTree; 2] {
    let cubic = for_cubic_programs(problem);
    assert_eq!(DynamicProgram::of(&cubic), DynamicProgram::Cubic);
    let trees = [problem, &cubic].map(|problem| plan(problem).unwrap());
    let [fast, published] = [0, 1].map(|i| problem.time(&trees[i]));
    assert_eq!(fast, published, "{problem:?}");
    trees
}

/// The time of the best adjacent tree.
fn adjacent_time(problem: &GatherProblem) -> f64 {
    let trees = both(problem, optimal::tree);
    let time = problem.time(&trees[0]);
    for (tree, method) in trees
        .iter()
        .zip([DynamicProgram::Quadratic, DynamicProgram::Cubic])
    {
        assert!(tree.is_adjacent());
        assert_eq!(time_by(problem, method).unwrap(), time, "{problem:?}");
    }
    time
}

#[test]
fn the_fast_program_of_adjacent_trees_equals_the_published_one() {
    let mut random = Random::new(11);
    for round in 0..12_000 {
        // Include large problems, with several groups of columns.
        let most = match round {
            r if r % 1500 == 0 => 400,
            r if r % 50 == 0 => 70,
            _ => 13,
        };
        let problem = random.problem(round % 2 == 0, most);
        adjacent_time(&problem);
        if round % 100 == 0 {
            prove(&problem, &optimal::tree(&problem).unwrap());
        }
    }
}

#[test]
fn the_fast_programs_of_rank_ordered_and_binary_trees_equal_those_that_try_all() {
    for (seed, plan) in [(31, rank_ordered::tree as Plan), (21, binary::tree as Plan)] {
        let mut random = Random::new(seed);
        for round in 0..6000 {
            let most = if round % 50 == 0 { 50 } else { 12 };
            let problem = random.problem(round % 2 == 0, most);
            let trees = both(&problem, plan);
            assert!(trees[0].is_rank_ordered());
            if seed == 21 {
                let children = |r| trees[0].children(r).len();
                assert!((0..problem.ranks()).all(|r| children(r) <= 2));
            }
            if round % 60 == 0 {
                trees.iter().for_each(|tree| prove(&problem, tree));
            }
        }
    }
}

#[test]
fn empty_blocks_with_a_copy_cost() {
    for (alpha, sizes, optimum) in [
        (5.0, vec![1, 1, 3, 0, 1, 0, 1, 3, 0, 0], 24.0),
        (1000.0, vec![0, 8, 6, 56, 0, 0, 2, 0, 0, 0, 86, 0], 3098.0),
    ] {
        let cost = CostModel::new(alpha, 1.0).gamma_copy(1.0);
        let problem = GatherProblem::new(sizes, cost, None).unwrap();
        assert_eq!(adjacent_time(&problem), optimum);
    }
}

#[test]
fn expensive_copies() {
    let cost = CostModel::new(1.0, 1.0).gamma_copy(3.0);
    let problem = GatherProblem::new(vec![5, 1, 4, 2], cost, None).unwrap();
    assert_eq!(DynamicProgram::of(&problem), DynamicProgram::Cubic);
    prove(&problem, &optimal::tree(&problem).unwrap());
    assert!(time_by(&problem, DynamicProgram::Quadratic).is_err());
}

#[test]
fn adjacent_is_not_weakly_ordered() {
    let cost = CostModel::new(5.0, 1.0);
    let problem = GatherProblem::new(vec![10, 10, 2, 50], cost, None).unwrap();
    assert_eq!(adjacent_time(&problem), 37.0);
}

#[test]
fn neither_ordered_class_contains_the_other() {
    let time = |sizes: &[u64], alpha: f64, gamma: f64, root| {
        let cost = CostModel::new(alpha, 1.0).gamma_copy(gamma);
        let problem = GatherProblem::new(sizes.to_vec(), cost, root).unwrap();
        let rank_ordered = rank_ordered::tree(&problem).unwrap();
        (
            problem.time(&optimal::tree(&problem).unwrap()),
            problem.time(&rank_ordered),
        )
    };
    assert_eq!(time(&[10, 10, 2, 50], 5.0, 0.0, None), (37.0, 32.0));
    let partition = [21, 31, 31, 31, 41, 41, 41, 61, 61, 131, 240, 250];
    assert_eq!(time(&partition, 1.0, 1.0, None), (983.0, 986.0));
}

/// The minimum time, over all divisions of all ranges for all roots.
fn by_all_divisions(problem: &GatherProblem) -> f64 {
    let (p, sizes, cost) = (problem.ranks(), problem.sizes(), problem.cost());
    let mut times = vec![0.0f64; p * p];
    for i in (0..p).rev() {
        for j in i + 1..p {
            let given = problem.root().filter(|_| (i, j) == (0, p - 1));
            let mut best = f64::INFINITY;
            for r in given.map_or(i..=j, |r| r..=r) {
                // Bit b is a cut before rank i + 1 + b; the cuts next to the root are always
                // made.
                for cuts in 0..1usize << (j - i) {
                    let cut = |k: usize| {
                        k == j + 1 || k == r || k == r + 1 || cuts >> (k - i - 1) & 1 == 1
                    };
                    let mut parts = Vec::new();
                    let mut first = i;
                    for k in (i + 1..=j + 1).filter(|&k| cut(k)) {
                        if first != r {
                            parts.push((times[first * p + k - 1], first, k - 1));
                        }
                        first = k;
                    }
                    parts.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let time = parts
                        .iter()
                        .fold(cost.copy(r, sizes[r]), |t, &(ready, a, b)| {
                            match sizes[a..=b].iter().sum() {
                                0 => t,
                                size => t.max(ready) + cost.transfer(a, r, size),
                            }
                        });
                    best = best.min(time);
                }
            }
            times[i * p + j] = best;
        }
    }
    times[p - 1]
}

#[test]
fn the_search_of_weakly_ordered_trees_finds_the_best_division() {
    let mut random = Random::new(91);
    for round in 0..300 {
        let mut problem = random.problem(round % 2 == 0, 8);
        if round % 3 == 0 {
            let cost = problem.cost().clone().gamma_copy(5.0);
            problem = GatherProblem::new(problem.sizes().to_vec(), cost, problem.root()).unwrap();
        }
        let tree = weakly_ordered::exact(&problem).unwrap();
        assert!(tree.is_weakly_ordered());
        assert_eq!(
            problem.time(&tree),
            by_all_divisions(&problem),
            "{problem:?}"
        );
    }
}
