//! Arborescences, against brute force and their cuts.

use crate::arborescence::arborescence;
use oneport::random::Generator;

/// Tries every choice of one incoming edge per node that is an arborescence.
fn brute(nodes: usize, edges: &[(usize, usize)], weights: &[i64]) -> Option<i64> {
    let into = |v: usize| (0..edges.len()).filter(move |&e| edges[e].1 == v);
    let mut best = None;
    let mut stack = vec![(1, Vec::<usize>::new())];
    while let Some((v, taken)) = stack.pop() {
        if v < nodes {
            stack.extend(into(v).map(|e| {
                let mut taken = taken.clone();
                taken.push(e);
                (v + 1, taken)
            }));
            continue;
        }
        let reaches = (1..nodes).all(|v| {
            let mut u = v;
            for _ in 0..nodes {
                if u != 0 {
                    u = edges[taken[u - 1]].0;
                }
            }
            u == 0
        });
        let cost: i64 = taken.iter().map(|&e| weights[e]).sum();
        if reaches && best.is_none_or(|b| cost < b) {
            best = Some(cost);
        }
    }
    best
}

#[test]
fn arborescences_are_minimal_and_proved() {
    let mut generator = Generator::new(99);
    let mut random = |n: usize| generator.below(n);
    for _ in 0..400 {
        let n = 2 + random(5);
        let mut edges = Vec::new();
        for a in 0..n {
            for b in 0..n {
                if a != b && random(3) > 0 {
                    edges.push((a, b));
                }
            }
        }
        let weights: Vec<i64> = edges.iter().map(|_| random(10) as i64).collect();
        let found = arborescence(n, 0, &edges, &weights);
        let cost = found
            .as_ref()
            .map(|f| f.edges.iter().flatten().map(|&e| weights[e]).sum());
        assert_eq!(cost, brute(n, &edges, &weights));
        let Some(found) = found else { continue };
        assert_eq!(
            found.cuts.iter().map(|(_, w)| w).sum::<i64>(),
            cost.unwrap()
        );
        for (i, (from, to)) in edges.iter().enumerate() {
            let pays = found
                .cuts
                .iter()
                .filter(|(s, _)| s.contains(to) && !s.contains(from));
            assert!(pays.map(|(_, w)| w).sum::<i64>() <= weights[i]);
        }
    }
}
