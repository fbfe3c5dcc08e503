//! Tests of gather trees that ranks build together while each knows only its own block, and the
//! unit tests of the example `rank_programs`.

#[path = "../../examples/rank_programs/circulant.rs"]
mod circulant;

use oneport::collectives::GatherPart;
use oneport::internal::gather::{GatherProblem, GatherTree, binomial};
use oneport::plan::distribution::Distribution;
use oneport::run::{Bidirectional, Endpoint, Operator, ScopeOptions, Team};
use oneport::schedule::Layout;
use oneport::{Collective, CostModel};

use crate::support::alone::shared;
use crate::support::cases::cases;

const ALPHA: f64 = 50.0;
const CONTROL_BYTES: f64 = 24.0;

struct Found {
    parts: Vec<GatherPart>,
    time: f64,
}

fn options(alpha: f64, beta: f64) -> ScopeOptions<u64> {
    let mut options = ScopeOptions::new(Operator::named("sum").unwrap());
    options.cost = CostModel::new(alpha, beta);
    options
}

fn find(team: &mut Team, root: Option<usize>, sizes: &[usize], alpha: f64, beta: f64) -> Found {
    let mut buffers = vec![vec![0; GatherPart::CONTROL]; sizes.len()];
    let outcome = team
        .scope(
            &mut buffers,
            &options(alpha, beta),
            |e: &mut Endpoint<u64, Bidirectional>| GatherPart::find(e, root, sizes[e.rank()]),
        )
        .unwrap();
    Found {
        time: outcome.model_time(),
        parts: outcome.results,
    }
}

/// The root, and by rank those that it receives from, in order.
type Lists = (usize, Vec<Vec<usize>>);

fn found_lists(parts: &[GatherPart]) -> Lists {
    let root = parts.iter().position(|p| p.parent.is_none()).unwrap();
    let from = |part: &GatherPart| part.children.iter().map(|c| c.0).collect();
    (root, parts.iter().map(from).collect())
}

fn planned_lists(tree: &GatherTree) -> Lists {
    let from = |rank| tree.children(rank).iter().map(|c| c.rank).collect();
    (tree.root(), (0..tree.ranks()).map(from).collect())
}

fn sizes(distribution: Distribution, p: usize) -> Vec<usize> {
    distribution.sizes(p, 20, 5, p as u64).unwrap()
}

fn offline(sizes: &[usize], root: Option<usize>) -> (GatherProblem, GatherTree) {
    let bytes = sizes.iter().map(|&s| 8 * s as u64).collect();
    let problem = GatherProblem::new(bytes, CostModel::new(ALPHA, 1.0), root).unwrap();
    let tree = binomial::adaptive(&problem).unwrap();
    (problem, tree)
}

#[test]
fn the_papers_example_gives_the_planned_tree() {
    let _shared = shared();
    let sizes = [1, 0, 2, 3, 4, 2, 0, 0, 1, 7, 5];
    let mut team = Team::new(11).unwrap();
    let found = find(&mut team, Some(9), &sizes, 1.0, 0.0);
    let (_, planned) = offline(&sizes, Some(9));
    assert_eq!(found_lists(&found.parts), planned_lists(&planned));
    assert_eq!(found.parts[9].layout().output[0].len, 25);
}

#[test]
fn all_ranks_find_the_planned_tree_within_the_stated_steps() {
    let _shared = shared();
    for p in (1..=40usize).chain((41..=300).step_by(cases(37, 1))) {
        let mut team = Team::new(p).unwrap();
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        // Each p gets a few combinations of distribution and root; a few successive p get all.
        let roots = [
            None,
            Some(0),
            Some(p / 2),
            Some(p - 1),
            Some(p * 7 % 10 * p / 10 % p),
        ];
        for case in 0..if p <= 24 { 5 } else { 2 } {
            let distribution = Distribution::ALL[(p + 4 * case) % Distribution::ALL.len()];
            let root = roots[(p / 2 + case) % roots.len()];
            let sizes = sizes(distribution, p);
            // A message takes time 1, so the time is the number of messages on the critical path.
            let found = find(&mut team, root, &sizes, 1.0, 0.0);
            // Without a given root the ranks find that of Lemma 1, whatever other ones take.
            let lists = found_lists(&found.parts);
            let (_, planned) = offline(&sizes, Some(root.unwrap_or(lists.0)));
            assert_eq!(
                lists,
                planned_lists(&planned),
                "{p} {distribution:?} {root:?}"
            );
            let max_steps = if p == 1 { 0.0 } else { 2.0 * rounds - 1.0 };
            assert!(found.time <= max_steps, "{p}: {} steps", found.time);
        }
    }
}

#[test]
fn construction_and_gather_stay_within_the_bound() {
    let _shared = shared();
    for p in [2usize, 3, 5, 8, 11, 21, 32, 50] {
        let mut team = Team::new(p).unwrap();
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        for distribution in Distribution::ALL {
            for root in [0, p / 2, p - 1] {
                let sizes = sizes(distribution, p);
                let found = find(&mut team, Some(root), &sizes, ALPHA, 1.0);
                let (problem, tree) = offline(&sizes, Some(root));
                // The penalty bounds the time for which the root waits for one of its children.
                let data = tree.subtree_sizes(problem.sizes());
                let mut received = 0.0;
                let mut penalty = 0.0f64;
                for c in tree.children(root) {
                    let all = data[c.rank] as f64;
                    let own = problem.sizes()[c.rank] as f64;
                    penalty = penalty.max(all - own - received);
                    received += all;
                }
                let others = (data[root] - problem.sizes()[root]) as f64;
                let control = (2.0 * rounds - 1.0) * CONTROL_BYTES;
                let bound = 3.0 * rounds * ALPHA + others + penalty + control;
                let time = found.time + problem.time(&tree);
                assert!(time <= bound, "{p} {distribution:?} {root}: {time} {bound}");
            }
        }
    }
}

#[test]
fn real_bytes_are_gathered_and_scattered() {
    let _shared = shared();
    for p in [1usize, 2, 3, 7, 11, 16, 29] {
        let mut team = Team::new(p).unwrap();
        for distribution in Distribution::ALL {
            for root in [None, Some(p / 2)] {
                let sizes = sizes(distribution, p);
                let parts = find(&mut team, root, &sizes, ALPHA, 1.0).parts;
                let top = parts.iter().position(|p| p.parent.is_none()).unwrap();
                let value = |r: usize, i: usize| (r * 1_000_000 + i + 1) as u64;
                let block = |r: usize| (0..sizes[r]).map(move |i| value(r, i));
                let layouts: Vec<Layout> = parts.iter().map(GatherPart::layout).collect();
                let mut buffers: Vec<Vec<u64>> = (0..p)
                    .map(|r| {
                        block(r)
                            .chain(std::iter::repeat(0))
                            .take(layouts[r].len)
                            .collect()
                    })
                    .collect();
                let mut recorded = options(ALPHA, 1.0);
                recorded.record = true;
                let gather = |e: &mut Endpoint<u64, Bidirectional>| parts[e.rank()].gather(e);
                let outcome = team.scope(&mut buffers, &recorded, gather).unwrap();
                let all: Vec<u64> = (0..p).flat_map(block).collect();
                let output = |buffer: &[u64]| buffer[buffer.len() - all.len()..].to_vec();
                assert_eq!(output(&buffers[top]), all, "{p} {distribution:?} {root:?}");
                let (problem, tree) = offline(&sizes, Some(root.unwrap_or(top)));
                assert_eq!(outcome.model_time(), problem.time(&tree));
                let schedule = outcome
                    .schedule(&Collective::Gather { root: top }, &layouts)
                    .unwrap();
                assert!(schedule.check().is_correct());

                // Scatter the result again, into cleared buffers.
                for (r, buffer) in buffers.iter_mut().enumerate() {
                    if r != top {
                        buffer.fill(0);
                    } else if !parts[r].children.is_empty() {
                        buffer[..sizes[r]].fill(0);
                    }
                }
                let scatter = |e: &mut Endpoint<u64, Bidirectional>| parts[e.rank()].scatter(e);
                let outcome = team
                    .scope(&mut buffers, &options(ALPHA, 1.0), scatter)
                    .unwrap();
                for (r, buffer) in buffers.iter().enumerate() {
                    assert!(buffer[..sizes[r]].iter().copied().eq(block(r)));
                }
                assert_eq!(outcome.model_time(), problem.time(&tree));
            }
        }
    }
}
