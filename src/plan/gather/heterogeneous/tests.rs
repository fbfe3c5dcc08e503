//! Tests of the optimal trees for links that differ: the table satisfies the equations.

use super::super::testing::{Random, prove};
use super::super::{binary as homogeneous_binary, optimal};
use super::*;
use crate::machine::Links;

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
    })
    .unwrap()
}

/// Evaluates the equations directly.
fn evaluate_directly(program: &mut Program<'_>) {
    let p = program.platform.ranks();
    for j in 0..p {
        for i in (0..j).rev() {
            for r in i..=j {
                let last = program.last(i, j, r);
                let (range, from) = (last.range, last.from);
                let copy = program.platform.copy[r];
                let message = program.platform.message(from, r, range);
                let other = program.at(range.0, range.1, from);
                let time = if range == (i + 1, j) {
                    max_time(if r == i { copy } else { f64::NAN }, other) + message
                } else if range == (i, j - 1) {
                    other + message + copy
                } else if range.0 == i {
                    max_time(program.at(range.1 + 1, j, r), other) + message
                } else {
                    max_time(program.at(i, range.0 - 1, r), other) + message
                };
                *program.cell(i, j, r) = time;
            }
        }
    }
}

#[test]
fn the_table_satisfies_the_equations() {
    let mut random = Random::new(41);
    for round in 0..300 {
        let p = 1 + random.below(11) as usize;
        let cost = links(&mut random, p, if round % 3 == 0 { 30 } else { 0 });
        let problem = GatherProblem::new(random.sizes(p), cost, None).unwrap();
        let platform = Platform::of(&problem).unwrap();
        let mut fast = Program::new(&platform).unwrap();
        fast.fill().unwrap();
        let mut slow = Program::new(&platform).unwrap();
        evaluate_directly(&mut slow);
        assert_eq!(fast.cells, slow.cells, "{problem:?}");
        let mut binary = Program::new(&platform).unwrap();
        binary.fill_binary();
        for root in (0..p).map(Some).chain([None]) {
            let problem = problem.clone().with_root(root).unwrap();
            for (program, plan) in [
                (&fast, tree as fn(&GatherProblem) -> Result<GatherTree>),
                (&binary, super::binary),
            ] {
                let Ok(tree) = plan(&problem) else { continue };
                let time = program.at(0, p - 1, tree.root());
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
    let schedule = tree.gather(&blocks, crate::Ports::UNI).unwrap();
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
        });
        let plain = CostModel::new(alpha, beta).gamma_copy(gamma);
        for root in [None, Some(p / 2)] {
            let on =
                |cost: &CostModel| GatherProblem::new(sizes.clone(), cost.clone(), root).unwrap();
            let (one, other) = (on(equal.as_ref().unwrap()), on(&plain));
            let time = |tree: Result<GatherTree>| other.time(&tree.unwrap());
            assert_eq!(time(tree(&one)), time(optimal::tree(&other)));
            assert_eq!(time(binary(&one)), time(homogeneous_binary::tree(&other)));
            prove(&other, &tree(&one).unwrap());
        }
    }
}
