//! Fewest rounds on graphs that are known: published, or computed here in another way.

use oneport::{Collective, CostModel, Ports};
use oneport_synthesis::{Links, Options, Problem, synthesize};

const BROADCAST: Collective = Collective::Broadcast { root: 0 };

/// An undirected graph.
type Edges = [(usize, usize)];

fn links(p: usize, edges: &Edges) -> Links {
    let mut links = vec![vec![0; p]; p];
    for &(a, b) in edges {
        links[a][b] += 1;
        links[b][a] += 1;
    }
    links
}

/// Whether there is a schedule in this many rounds.
fn has(problem: &Problem, rounds: usize) -> bool {
    let options = Options {
        rounds: Some(rounds),
        ..Options::default()
    };
    let answer = synthesize(problem, &options).unwrap();
    assert!(answer.upper.is_some() || answer.lower > rounds);
    if let Some(schedule) = &answer.schedule {
        let found = schedule.simulate(&CostModel::new(1.0, 0.0)).unwrap();
        assert!(found.makespan() <= rounds as f64, "{problem:?}");
    }
    answer.upper.is_some()
}

/// The proved fewest rounds of a broadcast in whole messages.
fn broadcast(p: usize, edges: &Edges, root: usize) -> usize {
    let problem = Problem::new(Collective::Broadcast { root }, p).links(links(p, edges));
    let answer = synthesize(&problem, &Options::default()).unwrap();
    assert!(answer.is_optimal() && answer.schedule.unwrap().check().is_correct());
    answer.lower
}

/// The links of a DGX-1: two quads of GPUs, each with a ring of double links and single diagonals.
fn dgx_1() -> Links {
    let single = [
        (0, 1),
        (0, 2),
        (1, 3),
        (4, 5),
        (4, 6),
        (5, 7),
        (2, 6),
        (3, 7),
    ];
    let double = [
        (0, 3),
        (0, 4),
        (1, 2),
        (1, 5),
        (2, 3),
        (4, 7),
        (5, 6),
        (6, 7),
    ];
    links(8, &[&single[..], &double, &double].concat())
}

/// The allgathers of Cai and others, "Synthesizing optimal collective algorithms" (2021).
#[test]
fn sccl_on_a_dgx_1() {
    let problem = |chunks: usize, steps: usize| {
        Problem::new(Collective::Allgather, 8)
            .ports(Ports::BI.with_k(6))
            .links(dgx_1())
            .items(chunks)
            .steps(steps)
    };
    assert!(dgx_1().iter().all(|row| row.iter().sum::<usize>() == 6));
    for (chunks, steps, rounds, exists) in [
        (1, 2, 2, true),
        (2, 2, 3, true),
        (3, 2, 4, false),
        (6, 3, 7, true),
        // Nothing in two steps takes less time for each chunk than 3/2, nothing in three than 7/6.
        (4, 2, 5, false),
        (5, 2, 7, false),
        (6, 2, 8, false),
        (7, 3, 8, false),
    ] {
        let found = has(&problem(chunks, steps), rounds);
        assert_eq!(found, exists, "{chunks}, {steps}, {rounds}");
    }
    let ring = Problem::new(Collective::Allgather, 4)
        .links(links(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]))
        .ports(Ports::BI.with_k(2))
        .items(1);
    assert!(!has(&ring, 1) && has(&ring, 2));
}

#[test]
fn a_rank_out_of_reach_is_named() {
    let problem = Problem::new(BROADCAST, 3).links(links(3, &[(0, 1)]));
    let error = synthesize(&problem, &Options::default()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("no way from rank 0 to rank 2"), "{error}");
}

/// A rank sends first to the child whose subtree takes longest (Slater, Cockayne, Hedetniemi 1981).
fn broadcast_in_a_tree(children: &[Vec<usize>], rank: usize) -> usize {
    let times = children[rank].iter();
    let mut times: Vec<_> = times.map(|&c| broadcast_in_a_tree(children, c)).collect();
    times.sort_unstable_by(|a, b| b.cmp(a));
    let sent = times.iter().enumerate().map(|(i, time)| i + 1 + time);
    sent.max().unwrap_or(0)
}

#[test]
fn trees_take_the_rounds_of_the_linear_algorithm() {
    let mut state = 1u64;
    for p in (2..=14).flat_map(|p| [p; 8]) {
        let mut children = vec![Vec::new(); p];
        let mut edges = Vec::new();
        for rank in 1..p {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let parent = (state >> 33) as usize % rank;
            children[parent].push(rank);
            edges.push((parent, rank));
        }
        let expected = broadcast_in_a_tree(&children, 0);
        assert_eq!(broadcast(p, &edges, 0), expected, "{edges:?}");
    }
}

/// Whether the graph broadcasts from every rank in the fewest rounds that any graph takes.
fn broadcasts(p: usize, edges: &Edges) -> bool {
    let rounds = p.next_power_of_two().ilog2() as usize;
    let problem = |root| Problem::new(Collective::Broadcast { root }, p).links(links(p, edges));
    (0..p).all(|root| has(&problem(root), rounds))
}

/// Edges of a least graph on 1, 2, ... ranks that [`broadcasts`] (OEIS A007192).
const LEAST: [usize; 16] = [0, 1, 2, 4, 5, 6, 8, 12, 10, 12, 13, 15, 18, 21, 24, 32];

#[test]
fn minimum_broadcast_graphs() {
    let pairs = |text: &str| -> Vec<(usize, usize)> {
        let ranks = |edge: &str| {
            edge.split_once('-')
                .map(|(a, b)| [a, b].map(|r| r.parse().unwrap()))
        };
        text.split_whitespace()
            .filter_map(ranks)
            .map(|[a, b]| (a, b))
            .collect()
    };
    let cube = |p: usize| -> Vec<(usize, usize)> {
        let bits = |rank: usize| (0..p.ilog2()).map(move |bit| (rank, rank ^ 1 << bit));
        (0..p).flat_map(bits).filter(|(a, b)| a < b).collect()
    };
    let ring = |p: usize| (0..p).map(|rank| (rank, (rank + 1) % p)).collect();
    let graphs: Vec<Vec<(usize, usize)>> = vec![
        Vec::new(),
        cube(2),
        pairs("0-1 1-2"),
        cube(4),
        ring(5),
        ring(6),
        pairs("0-2 0-3 0-6 1-3 1-4 2-5 4-5 4-6"),
        cube(8),
        pairs("0-1 0-3 1-5 1-6 1-7 2-4 2-5 3-7 4-7 7-8"),
        pairs("0-4 0-7 1-2 1-5 2-8 3-4 3-8 4-8 5-7 5-9 6-8 6-9"),
        pairs("0-1 0-2 1-3 1-6 2-4 3-8 4-7 4-10 5-6 5-9 6-10 7-8 7-9"),
        pairs("0-4 0-6 1-5 1-8 1-10 2-10 2-11 3-5 3-6 3-7 4-8 4-11 6-9 7-11 9-10"),
        pairs("0-5 0-7 1-6 1-11 1-12 2-5 2-8 3-5 3-6 3-10 4-9 4-11 5-11 6-7 7-8 8-9 9-10 9-12"),
        pairs(
            "0-3 0-9 0-11 1-2 1-9 1-12 2-3 2-5 3-8 4-5 4-6 4-12 5-11 6-7 6-8 7-10 7-13 8-10 9-10 11-13 12-13",
        ),
        pairs(
            "0-5 0-6 0-10 0-13 1-3 1-7 1-11 1-14 2-4 2-8 2-9 2-12 3-12 3-13 4-13 4-14 5-12 5-14 6-9 6-11 7-9 7-10 8-10 8-11",
        ),
        cube(16),
    ];
    for (i, (edges, least)) in graphs.iter().zip(LEAST).enumerate() {
        let p = i + 1;
        assert_eq!(edges.len(), least, "p = {p}");
        assert!(broadcasts(p, edges), "p = {p}");
        for left_out in 0..edges.len() {
            let mut fewer = edges.clone();
            fewer.remove(left_out);
            assert!(
                !is_connected(p, &fewer) || !broadcasts(p, &fewer),
                "p = {p}"
            );
        }
    }
}

fn is_connected(p: usize, edges: &Edges) -> bool {
    let mut reached = 1u32;
    for _ in 0..p {
        for &(a, b) in edges {
            if reached & (1 << a | 1 << b) != 0 {
                reached |= 1 << a | 1 << b;
            }
        }
    }
    reached.count_ones() as usize == p
}

/// No graph with one edge less broadcasts in as few rounds: all of them, but for their numbering.
#[test]
fn no_graph_with_fewer_edges_broadcasts() {
    for p in 4..=7 {
        let all: Vec<_> = (0..p)
            .flat_map(|a| (a + 1..p).map(move |b| (a, b)))
            .collect();
        let mut tried = 0;
        for chosen in 0u32..1 << all.len() {
            if chosen.count_ones() as usize + 1 != LEAST[p - 1] {
                continue;
            }
            let edges = all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
            let edges: Vec<_> = edges.map(|(_, edge)| *edge).collect();
            let degree = |rank| {
                edges
                    .iter()
                    .filter(|(a, b)| *a == rank || *b == rank)
                    .count()
            };
            // Some numbering has the degrees in order.
            if (1..p).all(|rank| degree(rank - 1) >= degree(rank)) && is_connected(p, &edges) {
                assert!(!broadcasts(p, &edges), "{edges:?}");
                tried += 1;
            }
        }
        assert!(tried > 0);
    }
}
