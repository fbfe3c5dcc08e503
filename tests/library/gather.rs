//! Tests of irregular gather against the published tables, lower bounds and small theorems.

use oneport::internal::gather::{
    GatherProblem, GatherTree, binary, binomial, heterogeneous, linear, optimal, ported,
    rank_ordered, two_groups, weakly_ordered,
};
use oneport::machine::Links;
use oneport::plan::distribution::Distribution;
use oneport::random::Generator;
use oneport::{CostModel, Kind, Ports, Request, Result};

use crate::support::cases::is_long;

type Plan = fn(&GatherProblem) -> Result<GatherTree>;

/// One row of the published tables, as pairs of column name and value.
struct Published(Vec<(String, String)>);

impl Published {
    fn all() -> Vec<Published> {
        let text = include_str!("../data/gather-times.csv");
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row = |line: &str| {
            let named = names.iter().zip(line.split(','));
            Published(named.map(|(n, v)| (n.to_string(), v.to_string())).collect())
        };
        lines.filter(|l| !l.is_empty()).map(row).collect()
    }

    fn get(&self, name: &str) -> &str {
        &self.0.iter().find(|(n, _)| n == name).unwrap().1
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).parse().unwrap()
    }
}

/// Calls `each` on all items, one half of them on a second thread.
fn on_two_threads<T: Sync>(items: &[T], each: impl Fn(&T) + Sync) {
    let (even, odd) = (items.iter().step_by(2), items.iter().skip(1).step_by(2));
    std::thread::scope(|s| {
        s.spawn(|| even.for_each(&each));
        odd.for_each(&each);
    });
}

#[test]
fn published_times_are_reproduced() {
    const P: usize = 2000;
    let rows = Published::all();
    assert_eq!(rows.len(), 72);
    let numbered: Vec<(usize, &Published)> = rows.iter().enumerate().collect();
    on_two_threads(&numbered, |&(number, row)| {
        // A sixth of the rows by default.
        if !is_long() && (number + number / 6) % 6 > 0 {
            return;
        }
        let name = row.get("distribution");
        let sizes = name
            .parse::<Distribution>()
            .unwrap()
            .sizes(P, 1000, 5, 0)
            .unwrap();
        let sizes: Vec<u64> = sizes.iter().map(|&s| s as u64).collect();
        assert_eq!(sizes.iter().sum::<u64>() as f64, row.number("total_units"));
        let cost =
            CostModel::new(row.number("alpha"), row.number("beta")).gamma_copy(row.number("gamma"));
        let root = row.get("root").parse().ok();
        let problem = GatherProblem::new(sizes, cost, root).unwrap();
        for (column, plan) in [
            ("linear", linear::tree as Plan),
            ("binary", binary::tree),
            ("oblivious", oblivious_of_published_roots),
            ("adaptive", binomial::adaptive),
            ("optimal_corrected", optimal::tree),
        ] {
            // This evaluates the tree itself, so its root attains the published time.
            let tree = plan(&problem).unwrap();
            assert_eq!(
                problem.time(&tree),
                row.number(column),
                "{:?} {column}",
                row.0
            );
            assert!(root.is_none_or(|root| tree.root() == root));
        }
    });
}

/// The oblivious tree with the published choice of a free root: the best of `0`, `p - 1` and all
/// `2^k - 1`.
fn oblivious_of_published_roots(problem: &GatherProblem) -> Result<GatherTree> {
    let p = problem.ranks();
    let powers = (0..usize::BITS).map(|k| (1usize << k) - 1);
    let roots = powers.take_while(|&r| r < p).chain([p - 1]);
    let fixed = |root| problem.clone().with_root(Some(root)).unwrap();
    let trees = roots.map(|root| binomial::oblivious(&fixed(root)).unwrap());
    let trees = trees.filter(|tree| problem.root().is_none_or(|root| tree.root() == root));
    let by_time = |a: &GatherTree, b: &GatherTree| problem.time(a).total_cmp(&problem.time(b));
    match trees.min_by(by_time) {
        Some(tree) => Ok(tree),
        None => binomial::oblivious(problem),
    }
}

#[test]
fn the_best_oblivious_root_of_increasing_blocks_is_not_a_published_one() {
    let sizes = Distribution::Increasing.sizes(2000, 1000, 5, 0).unwrap();
    let sizes = sizes.iter().map(|&s| s as u64).collect();
    let cost = CostModel::new(100.0, 1.0).gamma_copy(1.0);
    let problem = GatherProblem::new(sizes, cost, None).unwrap();
    let time = |plan: Plan| problem.time(&plan(&problem).unwrap());
    assert_eq!(time(oblivious_of_published_roots), 2_097_228.0);
    assert_eq!(time(binomial::oblivious), 2_035_788.0);
}

#[test]
fn one_published_value_is_wrong() {
    // Increasing is the mirror image of Decreasing, so with free copies and a free root it takes no
    // longer.
    for row in Published::all() {
        let wrong = row.get("distribution") == "Increasing"
            && row.get("root") == "free"
            && row.get("gamma") == "0";
        let difference = row.number("optimal") - row.number("optimal_corrected");
        assert_eq!(difference, if wrong { 1.0 } else { 0.0 }, "{:?}", row.0);
    }
}

/// Every distribution with its block sizes for `p` ranks.
fn distributions(p: usize, b: usize) -> Vec<(Distribution, Vec<u64>)> {
    let sizes = |d: Distribution| {
        let sizes = d.sizes(p, b, 5, 7).unwrap();
        (d, sizes.iter().map(|&s| s as u64).collect())
    };
    Distribution::ALL.into_iter().map(sizes).collect()
}

const PLANS: [(&str, Plan); 8] = [
    ("linear", linear::tree),
    ("binary", binary::tree),
    ("oblivious", binomial::oblivious),
    ("adaptive", binomial::adaptive),
    ("optimal", optimal::tree),
    ("rank-ordered", rank_ordered::tree),
    ("weakly-ordered", weakly_ordered::tree),
    ("two-groups", two_groups::tree),
];

#[test]
fn no_tree_beats_the_lower_bound() {
    // The bound of section 2.3 of the paper, for a gather that sends something.
    for p in [2, 3, 7, 16, 33] {
        for (distribution, sizes) in distributions(p, 10) {
            for gamma in [0.0, 1.0, 3.0] {
                for root in [0, p / 2, p - 1] {
                    let cost = CostModel::new(20.0, 2.0).gamma_copy(gamma);
                    let problem = GatherProblem::new(sizes.clone(), cost, Some(root)).unwrap();
                    let sent = sizes.iter().sum::<u64>() - sizes[root];
                    let bound = problem.cost().transfer(0, 1, sent) + gamma * sizes[root] as f64;
                    for (name, plan) in PLANS {
                        let time = problem.time(&plan(&problem).unwrap());
                        assert!(
                            time >= bound,
                            "{name} {distribution:?} {p} {root} {time} {bound}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn no_tree_beats_the_bounds_of_heterogeneous_links_and_ports() {
    for p in [2usize, 5, 9] {
        for (distribution, sizes) in distributions(p, 10) {
            let entry = |i: usize, j: usize, f: usize| Some(((i * f + j * 5) % 17 + 1) as f64);
            let matrix = |f: usize| -> Vec<Vec<Option<f64>>> {
                let row = |i: usize| (0..p).map(|j| entry(i, j, f)).collect();
                (0..p).map(row).collect()
            };
            let gamma_copy: Vec<f64> = (0..p).map(|r| (r % 3) as f64).collect();
            let cost = CostModel::heterogeneous(Links {
                alpha: matrix(7),
                beta: matrix(3),
                gamma: Vec::new(),
                gamma_copy: gamma_copy.clone(),
                ..Links::default()
            })
            .unwrap();
            for root in 0..p {
                // min_j (alpha_jr + beta_jr sum) + gamma_r m_r, if anything is sent.
                let sent = sizes.iter().sum::<u64>() - sizes[root];
                let others = (0..p).filter(|&j| j != root);
                let min_transfer = others
                    .map(|j| cost.transfer(j, root, sent))
                    .fold(f64::INFINITY, f64::min);
                let bound = min_transfer + gamma_copy[root] * sizes[root] as f64;
                let problem = GatherProblem::new(sizes.clone(), cost.clone(), Some(root)).unwrap();
                for plan in [
                    linear::tree as Plan,
                    heterogeneous::tree,
                    heterogeneous::binary,
                ] {
                    let time = problem.time(&plan(&problem).unwrap());
                    assert!(time >= bound, "{distribution:?} {p} {root} {time} {bound}");
                }
                // alpha + beta * (largest load of a port), for the best partition of other blocks.
                for k in [2, 3] {
                    let cost = CostModel::new(9.0, 2.0);
                    let problem = GatherProblem::new(sizes.clone(), cost, Some(root)).unwrap();
                    let problem = problem.with_ports(k).unwrap();
                    let share = best_partition(&sizes, root, k);
                    let bound = problem.cost().transfer(0, 1, share);
                    let blocks: Vec<usize> = sizes.iter().map(|&s| s as usize).collect();
                    let tree = ported::tree(&problem).unwrap();
                    let schedule = tree.gather(&blocks, Ports::BI.with_k(k)).unwrap();
                    assert_eq!(schedule.lower_bound(problem.cost()).port, bound);
                    for plan in [ported::tree as Plan, ported::adaptive, ported::exact] {
                        let time = problem.time(&plan(&problem).unwrap());
                        assert!(time >= bound, "{distribution:?} {p} {root} {k}");
                    }
                }
            }
        }
    }
}

/// The smallest possible largest load when `k` ports share the blocks of all ranks but `root`.
fn best_partition(sizes: &[u64], root: usize, k: usize) -> u64 {
    let blocks: Vec<u64> = (0..sizes.len())
        .filter(|&r| r != root)
        .map(|r| sizes[r])
        .collect();
    let ways = k.pow(blocks.len() as u32);
    let largest = |way: usize| {
        let mut parts = vec![0; k];
        let mut rest = way;
        for &block in &blocks {
            parts[rest % k] += block;
            rest /= k;
        }
        parts.into_iter().max().unwrap()
    };
    (0..ways).map(largest).min().unwrap()
}

#[test]
fn adaptive_never_waits_without_a_copy_cost() {
    // Lemma 1: for some root, at most ceil(log2 p) alpha + beta m without the root's own block.
    for p in 2..70usize {
        for (distribution, sizes) in distributions(p, 100) {
            let cost = CostModel::new(30.0, 1.0);
            let problem = GatherProblem::new(sizes.clone(), cost, None).unwrap();
            let rounds = f64::from(p.next_power_of_two().trailing_zeros());
            let within = |root: &usize| {
                let fixed = problem.clone().with_root(Some(*root)).unwrap();
                let time = problem.time(&binomial::adaptive(&fixed).unwrap());
                let others = sizes.iter().sum::<u64>() - sizes[*root];
                (time <= rounds * 30.0 + others as f64).then_some(time)
            };
            let first = (0..p).find_map(|root| within(&root));
            let free = problem.time(&binomial::adaptive(&problem).unwrap());
            assert!(
                first.is_some_and(|time| free <= time),
                "{distribution:?} {p}"
            );
        }
    }
}

/// Proposition 1, literally: adjacent subcubes are paired, and the one with less data sends. The
/// time at which the root of `sizes` has everything.
fn paired_by_data(sizes: &[u64], alpha: f64, beta: f64) -> f64 {
    // Time with the own copy, data, whether it is a single rank, which sends without a copy.
    let mut cubes: Vec<(f64, u64, bool)> = sizes.iter().map(|&m| (0.0, m, true)).collect();
    while cubes.len() > 1 {
        let joined = cubes.chunks(2).map(|pair| match *pair {
            [a, b] => {
                let (to, from) = if a.1 > b.1 { (a, b) } else { (b, a) };
                let start = if to.2 { beta * to.1 as f64 } else { to.0 };
                let received = start.max(from.0) + alpha + beta * from.1 as f64;
                (
                    if from.1 > 0 { received } else { start },
                    to.1 + from.1,
                    false,
                )
            }
            _ => pair[0],
        });
        cubes = joined.collect();
    }
    cubes[0].0
}

#[test]
fn adaptive_keeps_the_bound_of_proposition_1() {
    let time = |sizes: &[u64], alpha: f64, root| {
        let cost = CostModel::new(alpha, 1.0).gamma_copy(1.0);
        let problem = GatherProblem::new(sizes.to_vec(), cost, root).unwrap();
        problem.time(&binomial::adaptive(&problem).unwrap())
    };
    let sizes = [16, 22, 80, 10, 20, 99, 28, 1, 25, 22, 60];
    assert_eq!(paired_by_data(&sizes, 10.0, 1.0), 423.0);
    assert!(time(&sizes, 10.0, None) <= 423.0);
    let sizes = [25, 25, 42, 1, 10, 17, 69, 2, 64, 10, 73, 63];
    assert_eq!(paired_by_data(&sizes, 10.0, 1.0), 431.0);
    assert!(time(&sizes, 10.0, None) <= 431.0);
    // The tree that ignores the roots' own blocks takes 518, whatever the bound of 501 says.
    assert!(time(&[20, 38, 47, 77, 78, 151], 30.0, None) <= 501.0);
    let mut random = Generator::new(7);
    for _ in 0..2000 {
        let p: usize = 1 + random.below(40);
        let sizes: Vec<u64> = (0..p).map(|_| random.below(100) as u64).collect();
        let alpha = [0.0, 1.0, 10.0, 100.0][random.below(4)];
        let paired = paired_by_data(&sizes, alpha, 1.0);
        let rounds = f64::from(p.next_power_of_two().trailing_zeros());
        assert!(
            paired <= rounds * alpha + sizes.iter().sum::<u64>() as f64,
            "{sizes:?}"
        );
        assert!(time(&sizes, alpha, None) <= paired, "{alpha} {sizes:?}");
    }
}

#[test]
fn the_best_adaptive_root_is_the_best_of_all() {
    let mut random = Generator::new(8);
    for p in 1..40 {
        let sizes: Vec<u64> = (0..p).map(|_| random.below(50) as u64).collect();
        let cost = CostModel::new(9.0, 2.0).gamma_copy(random.below(4) as f64);
        let free = GatherProblem::new(sizes, cost, None).unwrap();
        let time = |problem: &GatherProblem| free.time(&binomial::adaptive(problem).unwrap());
        let fixed = |root| free.clone().with_root(Some(root)).unwrap();
        let best = (0..p)
            .map(|root| time(&fixed(root)))
            .fold(f64::INFINITY, f64::min);
        assert_eq!(time(&free), best, "{free:?}");
    }
}

/// The makespan of the named algorithm's gather of these blocks at `root`, proved correct.
fn gathered(name: &str, blocks: &[usize], ports: Ports, root: usize, cost: &CostModel) -> f64 {
    let request = Request::new(Kind::Gather, blocks.len(), 1);
    let request = request.blocks(Some(blocks.to_vec())).root(root);
    let request = request.ports(ports).cost(cost.clone());
    let schedule = request.plan(name).unwrap();
    assert!(schedule.check().is_correct());
    schedule.simulate(cost).unwrap().makespan()
}

#[test]
fn ranks_renumbered_by_decreasing_blocks() {
    // Numbers 0..4 are ranks 1, 3, 2, 0: 5 arrives at 15, then what 0 has sent to 2.
    let cost = CostModel::new(10.0, 1.0);
    let time = gathered("decreasing", &[1, 9, 2, 5], Ports::BI, 1, &cost);
    assert_eq!(time, 15.0 + 10.0 + 3.0);
    // Blocks that decrease already: the oblivious tree of the paper, to rank 0.
    let mut random = Generator::new(11);
    for p in 1..40 {
        let mut blocks: Vec<usize> = (0..p).map(|_| random.below(50)).collect();
        blocks.sort_by_key(|&b| std::cmp::Reverse(b));
        let of = |name| gathered(name, &blocks, Ports::BI, 0, &cost);
        let at_lowest = oblivious_at_lowest(&blocks, &cost);
        assert_eq!(of("decreasing"), at_lowest, "{blocks:?}");
    }
}

/// The time of the binomial tree whose subtrees are rooted at their lowest ranks.
fn oblivious_at_lowest(blocks: &[usize], cost: &CostModel) -> f64 {
    let (mut ready, mut data) = (vec![0.0f64; blocks.len()], blocks.to_vec());
    let mut half = 1;
    while half < blocks.len() {
        for to in (0..blocks.len() - half).step_by(2 * half) {
            let from = to + half;
            if data[from] > 0 {
                ready[to] = ready[to].max(ready[from]) + cost.transfer(from, to, data[from] as u64);
            }
            data[to] += data[from];
        }
        half *= 2;
    }
    ready[0]
}

/// The optimum of multiprocessor scheduling: the least time at which `k` machines have done all
/// `jobs`, by trying each machine for each job.
fn scheduled(jobs: &[usize], machines: &mut [usize]) -> usize {
    let Some((&job, rest)) = jobs.split_first() else {
        return machines.iter().copied().max().unwrap_or(0);
    };
    let mut least = usize::MAX;
    for m in 0..machines.len() {
        machines[m] += job;
        least = least.min(scheduled(rest, machines));
        machines[m] -= job;
    }
    least
}

/// Theorem 6: with blocks sent directly, k ports are k machines. Copies take time, so that the
/// program over sets does not apply.
#[test]
fn several_ports_share_blocks_as_machines_share_jobs() {
    let fifteen = [3, 3, 2, 2, 2].repeat(3);
    let mut cases = vec![(fifteen, 2, 18)];
    let mut random = Generator::new(12);
    for _ in 0..30 {
        let jobs: Vec<usize> = (0..6 + random.below(3))
            .map(|_| 1 + random.below(30))
            .collect();
        let k = 2 + random.below(2);
        let least = scheduled(&jobs, &mut vec![0; k]);
        cases.push((jobs, k, least));
    }
    // Other trees may be better where a start-up takes time.
    for (jobs, k, least) in cases {
        let blocks: Vec<usize> = [5].into_iter().chain(jobs).collect();
        let cost = CostModel::new(0.0, 1.0).gamma_copy(1.0);
        let time = gathered("ported", &blocks, Ports::BI.with_k(k), 0, &cost);
        assert_eq!(time, (5 + least) as f64, "{blocks:?} {k}");
    }
}

#[test]
fn knomial_gathers_join_as_many_subcubes_as_there_are_ports_and_one() {
    let cost = CostModel::new(10.0, 1.0);
    for (p, k, rounds, beta) in [
        (9, 2, 2.0, 4),
        (27, 2, 3.0, 13),
        (16, 3, 2.0, 5),
        (8, 1, 3.0, 7),
    ] {
        let time = gathered("knomial", &vec![5; p], Ports::BI.with_k(k), 0, &cost);
        assert_eq!(time, rounds * 10.0 + (5 * beta) as f64, "{p} {k}");
    }
}

/// Footnote 1 of section 2: copies may overlap communication.
#[test]
fn trees_for_copies_that_overlap_are_no_slower_than_those_for_free_copies() {
    let cost = CostModel::new(5.0, 1.0).gamma_copy(1.0).overlap(true);
    let blocks = [37, 36, 17, 40, 6, 28];
    assert!(gathered("optimal", &blocks, Ports::UNI, 0, &cost) <= 142.0);
    let mut random = Generator::new(13);
    for _ in 0..40 {
        let p = 2 + random.below(7);
        let blocks: Vec<usize> = (0..p).map(|_| 1 + random.below(40)).collect();
        let root = random.below(p);
        let request = Request::new(Kind::Gather, p, 1).blocks(Some(blocks.clone()));
        let free = request.root(root).cost(CostModel::new(5.0, 1.0));
        let free = free.plan("optimal").unwrap().simulate(&cost).unwrap();
        let own = gathered("optimal", &blocks, Ports::BI, root, &cost);
        assert!(own <= free.makespan(), "{blocks:?} {root}");
    }
}

#[test]
fn mirrored_sizes_take_equal_time_with_free_copies() {
    for p in [5, 16, 41] {
        for (distribution, sizes) in distributions(p, 50) {
            let cost = CostModel::new(100.0, 1.0);
            let mirrored = sizes.iter().rev().copied().collect();
            let one = GatherProblem::new(sizes, cost.clone(), None).unwrap();
            let other = GatherProblem::new(mirrored, cost, None).unwrap();
            let time = |problem: &GatherProblem| problem.time(&optimal::tree(problem).unwrap());
            assert_eq!(time(&one), time(&other), "{distribution:?} {p}");
        }
    }
}

#[test]
fn tree_classes_take_the_stated_times() {
    let skewed = Distribution::Skewed.sizes(2000, 1000, 5, 0).unwrap();
    let sizes = skewed.iter().map(|&s| s as u64).collect();
    let cost = CostModel::new(1000.0, 1.0).gamma_copy(1.0);
    let problem = GatherProblem::new(sizes, cost, Some(1000)).unwrap();
    let time = |plan: Plan| problem.time(&plan(&problem).unwrap());
    assert_eq!(time(optimal::tree), 2_016_995.0);
    assert_eq!(time(rank_ordered::tree), 2_006_995.0);
    assert!(time(weakly_ordered::tree) <= 2_006_995.0);
}

#[test]
fn bad_input_is_refused_with_the_limit() {
    let cost = CostModel::new(1.0, 1.0);
    let problem = |sizes: Vec<u64>, root| GatherProblem::new(sizes, cost.clone(), root);
    let message = |result: Result<GatherProblem>| result.unwrap_err().to_string();
    assert!(message(problem(Vec::new(), None)).contains("rank"));
    assert!(message(problem(vec![1; 3], Some(3))).contains("root 3"));
    assert!(message(problem(vec![u64::MAX, 1], None)).contains("2^60"));
    let three = problem(vec![1; 3], None).unwrap();
    assert!(three.clone().with_ports(0).is_err());
    let many = problem(vec![1; 40_000], None).unwrap();
    let refused = optimal::tree(&many).unwrap_err().to_string();
    assert!(refused.contains("32768"), "{refused}");
    let expensive = CostModel::new(1.0, 1.0).gamma_copy(2.0);
    let many = GatherProblem::new(vec![1; 3000], expensive, None).unwrap();
    let refused = binary::tree(&many).unwrap_err().to_string();
    assert!(refused.contains("2500"), "{refused}");
}
