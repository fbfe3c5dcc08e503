//! Trees that probes reveal: of boxes whose trees are known, and of all schedules, whose trees are
//! proved.

use oneport::check::Bits;
use oneport::plan::registry;
use oneport::run::Teams;
use oneport::{CostModel, Kind, Ports, Request, Schedule};
use oneport_measure::bits::{SumTree, reveal, reveal_on};

use crate::support::cases::cases;
use crate::support::random::Random;

/// A random tree over ranks, as probes would reveal it but for the order of its parts.
fn random_tree(random: &mut Random, ranks: usize) -> SumTree {
    let mut names: Vec<usize> = (0..ranks).collect();
    let mut tree = Vec::new();
    while names.len() > 1 {
        let a = names.swap_remove(random.below(names.len()));
        let b = names.swap_remove(random.below(names.len()));
        tree.push([a.min(b), a.max(b)]);
        names.push(a.min(b));
    }
    tree
}

fn sum(tree: &SumTree, inputs: &[f32]) -> f32 {
    let mut parts = inputs.to_vec();
    for &[into, from] in tree {
        parts[into] += parts[from];
    }
    parts[0]
}

/// In words, of two operands first the one with the least rank.
fn words(tree: &SumTree, ranks: usize) -> String {
    let mut parts: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    for &[into, from] in tree {
        parts[into] = format!("({}+{})", parts[into], parts[from]);
    }
    parts.swap_remove(0)
}

#[test]
fn random_trees_are_revealed() {
    let mut random = Random::new(7);
    for case in 0..cases(300, 3000) {
        let ranks = 2 + case % 15;
        // By rank and element: one of a few trees.
        let trees: Vec<SumTree> = (0..3).map(|_| random_tree(&mut random, ranks)).collect();
        let outputs: Vec<Vec<usize>> = (0..ranks)
            .map(|_| (0..random.below(6)).map(|_| random.below(3)).collect())
            .collect();
        let found = reveal(ranks, 2, |inputs| {
            let output = |of: &Vec<usize>| of.iter().map(|&t| sum(&trees[t], inputs)).collect();
            Ok(outputs.iter().map(output).collect::<Vec<Vec<f32>>>())
        });
        let found = found.unwrap();
        assert!(!found.varies);
        for (runs, output) in found.outputs.iter().zip(&outputs) {
            let of_runs = runs.iter();
            let each = of_runs.flat_map(|&(len, tree)| std::iter::repeat_n(tree, len));
            let revealed: Vec<String> = each
                .map(|tree| words(found.trees[tree].as_ref().expect("a tree"), ranks))
                .collect();
            let right: Vec<String> = output.iter().map(|&t| words(&trees[t], ranks)).collect();
            assert_eq!(revealed, right);
        }
    }
}

#[test]
fn what_is_no_tree_of_sums_is_told_apart() {
    // Whatever the order, no one is lost.
    let exact = |inputs: &[f32]| Ok(vec![vec![(inputs.len() - 2) as f32]]);
    assert_eq!(reveal(4, 1, exact).unwrap().trees, [None]);
    let nothing = |_: &[f32]| Ok(vec![vec![f32::NAN]]);
    assert_eq!(reveal(3, 1, nothing).unwrap().trees, [None]);
    // Every other call begins with the last rank.
    let mut call = 0;
    let arrival = |inputs: &[f32]| {
        call += 1;
        let tree = match call % 2 {
            0 => vec![[0, 1], [0, 2]],
            _ => vec![[1, 2], [0, 1]],
        };
        Ok(vec![vec![sum(&tree, inputs)]])
    };
    assert!(reveal(3, 2, arrival).unwrap().varies);
    assert!(
        !reveal(3, 2, |x| Ok(vec![vec![x[0] + (x[1] + x[2])]]))
            .unwrap()
            .varies
    );
}

fn bits(schedule: &Schedule) -> Bits {
    let report = schedule.check();
    assert!(report.is_correct(), "{report}");
    report.bits().expect("a reduction").clone()
}

/// All reductions of all ranks, run on threads as black boxes, have the trees that are proved.
#[test]
fn probes_of_every_schedule_reveal_what_is_proved() {
    let mut teams = Teams::default();
    let (mut probed, mut several) = (0, 0);
    for p in [2, 3, 4, 5, 6, 7, 8, 12, 16] {
        for (kind, ports) in [Kind::Allreduce, Kind::Reduce, Kind::ReduceScatter]
            .into_iter()
            .flat_map(|kind| [Ports::BI, Ports::UNI].map(|ports| (kind, ports)))
        {
            let request = Request::new(kind, p, p + 2).ports(ports).element_bytes(4);
            let request = request.cost(CostModel::new(1000.0, 0.1));
            for row in registry::all().iter().filter(|row| row.collective == kind) {
                let Ok(schedule) = request.plan(&row.name()) else {
                    continue;
                };
                let found = reveal_on::<f32, _>(&mut teams, &schedule, 1, |run| run).unwrap();
                let revealed = found.schedule(schedule.collective()).unwrap();
                let revealed = bits(&revealed.expect("trees"));
                let proved = bits(&schedule);
                let what = format!("{} {}, {p} ranks", row.name(), kind.name());
                assert_eq!(revealed.everywhere, proved.everywhere, "{what}");
                assert_eq!(revealed.tree, proved.tree, "{what}");
                assert_eq!(revealed.words, proved.words, "{what}");
                assert_eq!(revealed.trees, proved.trees, "{what}");
                assert_eq!(revealed.depth, proved.depth, "{what}");
                assert_eq!(
                    revealed.same_on_all_ranks, proved.same_on_all_ranks,
                    "{what}"
                );
                probed += 1;
                several += usize::from(proved.trees > 1);
            }
        }
    }
    assert!(probed > 300 && several > 100, "{probed}, {several}");
}
