//! Classes of gather trees: no class beats a larger one, and the trees of the papers' examples.

use oneport::internal::gather::{
    GatherProblem, GatherTree, binomial, degrading, linear, noncontiguous, optimal, ported,
    rank_ordered, two_groups, weakly_ordered,
};
use oneport::{CostModel, Request};

use super::{Classes, Random, prove};

#[test]
fn the_partition_instance() {
    let sizes = vec![21, 31, 31, 31, 41, 41, 41, 61, 61, 131, 240, 250];
    let cost = CostModel::new(1.0, 1.0).gamma_copy(1.0);
    let problem = GatherProblem::new(sizes, cost, None).unwrap();
    let best = noncontiguous::exact(&problem).unwrap();
    assert_eq!(problem.time(&best), 982.0);
    assert!(!best.is_weakly_ordered());
    prove(&problem, &best);
    let adjacent = optimal::tree(&problem).unwrap();
    assert_eq!(problem.time(&adjacent), 983.0);
}

#[test]
fn no_class_beats_a_larger_one() {
    let mut random = Random::new(81);
    for round in 0..200 {
        let p = 1 + random.below(9) as usize;
        let cost = CostModel::new(random.below(30) as f64, 1.0).gamma_copy(random.below(3) as f64);
        let root = (round % 2 == 0).then_some(p / 2);
        let problem = GatherProblem::new(random.sizes(p), cost, root).unwrap();
        let all = noncontiguous::exact(&problem).unwrap();
        let weak = weakly_ordered::exact(&problem).unwrap();
        assert!(weak.is_weakly_ordered());
        prove(&problem, &all);
        prove(&problem, &weak);
        let time = |tree: &GatherTree| problem.time(tree);
        assert!(time(&all) <= time(&weak));
        for ordered in [
            optimal::tree(&problem).unwrap(),
            rank_ordered::tree(&problem).unwrap(),
        ] {
            assert!(time(&weak) <= time(&ordered), "{problem:?}");
        }
    }
}

#[test]
fn heuristics_are_never_worse_than_ordered_trees() {
    let mut random = Random::new(82);
    for p in [13, 17, 30, 64] {
        for root in [None, Some(p / 2)] {
            let cost = CostModel::new(random.below(30) as f64, 1.0).gamma_copy(1.0);
            let problem = GatherProblem::new(random.sizes(p), cost, root).unwrap();
            let found = noncontiguous::tree(&problem).unwrap();
            prove(&problem, &found);
            let ordered = optimal::tree(&problem).unwrap();
            assert!(problem.time(&found) <= problem.time(&ordered));
            let weak = weakly_ordered::tree(&problem).unwrap();
            prove(&problem, &weak);
            assert!(problem.time(&weak) <= problem.time(&ordered));
        }
    }
}

#[test]
fn too_many_ranks_for_all_trees_are_refused() {
    let problem = GatherProblem::new(vec![1; 17], CostModel::new(1.0, 1.0), None).unwrap();
    assert!(
        noncontiguous::exact(&problem)
            .unwrap_err()
            .to_string()
            .contains("16")
    );
}

#[test]
fn the_adaptive_tree_of_the_paper() {
    // Figure 2, by gather time (free copies) and by data (Proposition 1).
    for gamma_copy in [0.0, 1.0] {
        let sizes = vec![1, 0, 2, 3, 4, 2, 0, 0, 1, 7, 5];
        let cost = CostModel::new(1.0, 1.0).gamma_copy(gamma_copy);
        let problem = GatherProblem::new(sizes, cost, Some(9)).unwrap();
        let tree = binomial::adaptive(&problem).unwrap();
        let of = |r: usize| tree.children(r).iter().map(|c| c.rank).collect::<Vec<_>>();
        assert_eq!(of(9), [8, 10, 3]);
        assert_eq!(of(3), [2, 0, 4]);
        assert_eq!(of(4), [5, 7]);
        assert_eq!((of(0), of(7)), (vec![1], vec![6]));
        prove(&problem, &tree);
    }
}

#[test]
fn schedules_of_binomial_trees_take_their_time() {
    let mut random = Random::new(1);
    for p in 1..=40 {
        for _ in 0..6 {
            let cost = CostModel::new(random.below(20) as f64, random.below(4) as f64)
                .gamma_copy(random.below(4) as f64);
            let root = random.below(p as u64) as usize;
            for root in [None, Some(root)] {
                let problem = GatherProblem::new(random.sizes(p), cost.clone(), root).unwrap();
                for tree in [
                    linear::tree(&problem).unwrap(),
                    binomial::oblivious(&problem).unwrap(),
                    binomial::adaptive(&problem).unwrap(),
                ] {
                    prove(&problem, &tree);
                }
            }
        }
    }
}

/// The time of the schedule with the best root that an algorithm finds.
fn best_time(problem: &GatherProblem, name: &str) -> f64 {
    let blocks: Vec<usize> = problem.sizes().iter().map(|&s| s as usize).collect();
    let request = Request::gather(problem.ranks(), 0)
        .blocks(blocks)
        .cost(problem.cost().clone())
        .free_root(true);
    let schedule = request.plan(name).unwrap();
    schedule.simulate(problem.cost()).unwrap().makespan()
}

#[test]
fn the_best_root_is_the_best_of_all() {
    let mut random = Random::new(2);
    for p in 1..=33 {
        let cost = CostModel::new(7.0, 2.0).gamma_copy(random.below(3) as f64);
        let problem = GatherProblem::new(random.sizes(p), cost, None).unwrap();
        for (name, plan) in [
            ("linear", linear::tree as super::Plan),
            ("oblivious-best-root", binomial::oblivious),
        ] {
            let rooted = |root| {
                let problem = problem.clone().with_root(Some(root)).unwrap();
                problem.time(&plan(&problem).unwrap())
            };
            let best = (0..p).map(rooted).fold(f64::INFINITY, f64::min);
            assert_eq!(best_time(&problem, name), best, "{name} {problem:?}");
        }
        let oblivious = problem.time(&binomial::oblivious(&problem).unwrap());
        assert!(best_time(&problem, "oblivious-best-root") <= oblivious);
    }
}

#[test]
fn the_exact_ported_tree_is_best_and_the_adaptive_one_short() {
    let mut random = Random::new(71);
    for round in 0..150 {
        let p = 1 + random.below(8) as usize;
        let k = 1 + random.below(3) as usize;
        let cost = CostModel::new(random.below(20) as f64, random.below(3) as f64);
        let root = (round % 2 == 0).then_some(p / 2);
        let problem = GatherProblem::new(random.sizes(p), cost, root).unwrap();
        let problem = problem.with_ports(k).unwrap();
        let best = ported::exact(&problem).unwrap();
        prove(&problem, &best);
        let adaptive = ported::adaptive(&problem).unwrap();
        prove(&problem, &adaptive);
        assert!(problem.time(&best) <= problem.time(&adaptive));
        if k == 1 {
            let one = noncontiguous::exact(&problem).unwrap();
            assert_eq!(problem.time(&best), problem.time(&one));
            if problem.root().is_some() {
                assert_eq!(adaptive, binomial::adaptive(&problem).unwrap());
            }
        }
    }
    for p in 1..200 {
        for k in 1..6 {
            let cost = CostModel::new(1.0, 0.0);
            let problem =
                GatherProblem::new(vec![1; p], cost.gamma_copy(1.0), Some(p / 2)).unwrap();
            let problem = problem.with_ports(k).unwrap();
            let time = problem.time(&ported::adaptive(&problem).unwrap());
            let mut reach = 1;
            let mut rounds = 0.0;
            while reach < p {
                reach *= k + 1;
                rounds += 1.0;
            }
            assert_eq!(time, if p == 1 { 0.0 } else { rounds + 1.0 });
            prove(&problem, &ported::tree(&problem).unwrap());
        }
    }
}

#[test]
fn too_many_ranks_for_all_ported_trees_are_refused() {
    let cost = CostModel::new(1.0, 1.0);
    let problem = GatherProblem::new(vec![1; 16], cost.clone(), None).unwrap();
    assert!(
        ported::exact(&problem)
            .unwrap_err()
            .to_string()
            .contains("15")
    );
    let problem = GatherProblem::new(vec![1; 6], cost.gamma_copy(1.0), None).unwrap();
    assert!(ported::exact(&problem).is_err());
}

#[test]
fn one_large_block_is_gathered_optimally() {
    for p in 2..40u32 {
        for (x, alpha) in [(1u64, 1u64), (3, 10), (7, 100)] {
            let others = u64::from(p) - 1;
            let latency = u64::from(u64::BITS - (others - 1).leading_zeros()) * alpha;
            let y = latency + others * x;
            for at in [0, p as usize / 2, p as usize - 1] {
                let mut sizes = vec![x; p as usize];
                sizes[at] = y;
                let cost = CostModel::new(alpha as f64, 1.0).gamma_copy(1.0);
                for root in [None, Some(at)] {
                    let problem = GatherProblem::new(sizes.clone(), cost.clone(), root).unwrap();
                    let tree = two_groups::tree(&problem).unwrap();
                    assert_eq!(problem.time(&tree), (alpha + others * x + y) as f64);
                    if at == 0 {
                        // The last rank as root would copy after its messages in such trees.
                        let best = optimal::tree(&problem).unwrap();
                        assert_eq!(problem.time(&best), problem.time(&tree));
                    }
                    prove(&problem, &tree);
                }
            }
        }
    }
}

#[test]
fn schedules_of_two_groups_take_their_time() {
    let mut random = Random::new(51);
    for p in 1..=30 {
        for root in [None, Some(p / 3)] {
            let cost = CostModel::new(random.below(20) as f64, 1.0).gamma_copy(1.0);
            let problem = GatherProblem::new(random.sizes(p), cost, root).unwrap();
            prove(&problem, &two_groups::tree(&problem).unwrap());
        }
    }
}

#[test]
fn degrading_trees_are_between_linear_and_adaptive() {
    let mut random = Random::new(61);
    for p in 1..=30 {
        for root in [None, Some(p / 2)] {
            let cost = CostModel::new(random.below(20) as f64, 1.0).gamma_copy(1.0);
            let problem = GatherProblem::new(random.sizes(p), cost, root).unwrap();
            let best = degrading::tree(&problem).unwrap();
            prove(&problem, &best);
            let adaptive = binomial::adaptive(&problem).unwrap();
            let all = degrading::with_threshold(&problem, &adaptive, u64::MAX);
            assert!(problem.time(&best) <= problem.time(&adaptive));
            assert!(problem.time(&all) <= problem.time(&adaptive));
            let none = degrading::with_threshold(&problem, &adaptive, 0);
            prove(&problem, &none);
            let fixed = problem.with_root(Some(none.root())).unwrap();
            let linear = linear::tree(&fixed).unwrap();
            assert!(fixed.time(&none) <= fixed.time(&linear));
        }
    }
}
