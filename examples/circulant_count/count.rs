//! Counts the schedules that satisfy the four conditions of circulant schedules, for small numbers
//! of ranks.
//!
//! Source: an open question in Träff, "(Poly)logarithmic time construction of round-optimal n-block
//! broadcast schedules", section 4, whose Table 5 shows two of the nine schedules for `p = 9`. No
//! rank needs what the root receives, so schedules that differ only in what is sent to the root
//! count once.
//!
//! By conditions 1 and 4 the receive schedules of ranks `1..p` determine everything. By condition 2
//! each of them is a permutation of `q` known blocks, called an order here. By condition 3 the
//! block that rank `r` receives in round `k` must be among those that rank `r - skip[k]` received
//! before: a constraint between the orders of two ranks.
//!
//! The search removes orders that are compatible with no order of some other rank, until nothing
//! changes. Then it tries the orders of one rank in turn. Groups of ranks that no open constraint
//! connects are counted separately, and their counts are multiplied.
//!
//! There is one schedule for each `p` up to 8, for every power of two up to 64, and for every
//! number just below such a power. The others:
//!
//! | p | +0 | +1 | +2 | +3 | +4 | +5 | +6 | +7 |
//! |---|---|---|---|---|---|---|---|---|
//! | 9.. | 9 | 3 | 4 | 3 | 2 | 1 | 1 | 1 |
//! | 17.. | 288 | 1071 | 870 | 196 | 460 | 96 | 66 | 39 |
//! | 25.. | 24 | 20 | 22 | 7 | 6 | 2 | 1 | 1 |
//! | 33.. | 67690737 | 15767652 | 38798976 | 96944121 | 8560800 | 16538880 | 10954016 | 1856984 |
//! | 41.. | 3999240 | 6447728 | 2575200 | 373252 | 330528 | 43296 | 18959 | 9668 |
//! | 49.. | 77952 | 34432 | 28768 | 16464 | 10560 | 5280 | 2718 | 643 |
//! | 57.. | 780 | 246 | 196 | 44 | 15 | 3 | 1 | 1 |
//!
//! Each of these takes milliseconds. From 65 on there are too many to count this way in a few
//! minutes, except for numbers somewhat below a power of two.
//! `cargo run --release --example circulant_count` prints the counts.

use std::time::Instant;

use oneport::internal::circulant::schedule::Circulant;

/// Maximum number of ranks: all permutations of a rank's blocks are listed, at most seven blocks.
pub(crate) const MAX_RANKS: usize = 128;

/// Number of different schedules over `p` ranks that satisfy the four conditions. `None` if
/// `deadline` passes first, or if there are 2^127 or more.
///
/// # Panics
/// When `p` is 0 or more than [`MAX_RANKS`].
pub(crate) fn count(p: usize, deadline: Option<Instant>) -> Option<u128> {
    assert!(
        (1..=MAX_RANKS).contains(&p),
        "1 to {MAX_RANKS} ranks, not {p}"
    );
    let problem = Problem::new(p);
    let mut domains = problem.domains();
    if !problem.prune(&mut domains, 0..problem.edges.len()) {
        return Some(0);
    }
    let ranks: Vec<usize> = (1..p).collect();
    problem.count(&domains, &ranks, deadline)
}

/// The order in which a rank receives its blocks: `received[k]` is the block of round `k`, and
/// `has[k]` are the blocks held before that round. Both are bit masks in which bit `q + block`
/// stands for `block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    received: [u16; 7],
    has: [u16; 7],
}

/// A constraint: in round `k` rank `to` receives a block that rank `from` holds.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    k: usize,
}

struct Problem {
    graph: Circulant,
    edges: Vec<Edge>,
    /// By rank: indices of its edges.
    edges_of_rank: Vec<Vec<usize>>,
}

/// By rank: the orders that are still possible. The root's entry is empty.
type Domains = Vec<Vec<Order>>;

impl Problem {
    fn new(p: usize) -> Problem {
        let graph = Circulant::new(p);
        let mut problem = Problem {
            edges: Vec::new(),
            edges_of_rank: vec![Vec::new(); p],
            graph,
        };
        for k in 0..problem.graph.rounds() {
            let skip = problem.graph.skips()[k];
            for from in 1..p {
                let to = (from + skip) % p;
                if to != 0 {
                    problem.edges_of_rank[from].push(problem.edges.len());
                    problem.edges_of_rank[to].push(problem.edges.len());
                    problem.edges.push(Edge { from, to, k });
                }
            }
        }
        problem
    }

    /// All orders that conditions 2 and 4 allow.
    fn domains(&self) -> Domains {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let mut domains = vec![Vec::new()];
        for r in 1..p {
            let base = self.graph.baseblock(r);
            // The base block comes from the current phase, all others from the phase before.
            let number = |v| if v == base { q + base } else { v };
            let mut blocks: Vec<usize> = (0..q).map(number).collect();
            let mut orders = Vec::new();
            permutations(&mut blocks, 0, &mut |order| {
                let mut found = Order {
                    received: [0; 7],
                    has: [0; 7],
                };
                let mut has = 1u16 << base;
                for (k, &v) in order.iter().enumerate() {
                    // Condition 4: block k comes from the root in round k.
                    if self.graph.skips()[k] == r && v != q + k {
                        return;
                    }
                    found.has[k] = has;
                    found.received[k] = 1 << v;
                    has |= 1 << v;
                }
                orders.push(found);
            });
            domains.push(orders);
        }
        domains
    }

    /// Removes orders that have no compatible partner under some constraint, starting with the
    /// constraints `first`. Returns false if a rank has no order left.
    fn prune(&self, domains: &mut Domains, first: impl Iterator<Item = usize>) -> bool {
        let mut waiting: Vec<usize> = first.collect();
        let mut queued = vec![false; self.edges.len()];
        for &e in &waiting {
            queued[e] = true;
        }
        while let Some(e) = waiting.pop() {
            queued[e] = false;
            let Edge { from, to, k } = self.edges[e];
            let some = domains[from].iter().fold(0, |all, o| all | o.has[k]);
            let wanted = domains[to].iter().fold(0, |all, o| all | o.received[k]);
            let before = [from, to].map(|r| domains[r].len());
            domains[to].retain(|o| o.received[k] & some != 0);
            domains[from].retain(|o| o.has[k] & wanted != 0);
            for (r, before) in [from, to].into_iter().zip(before) {
                if domains[r].is_empty() {
                    return false;
                }
                if domains[r].len() < before {
                    for &e in &self.edges_of_rank[r] {
                        if !std::mem::replace(&mut queued[e], true) {
                            waiting.push(e);
                        }
                    }
                }
            }
        }
        true
    }

    /// Counts the combinations for `ranks` in domains that have already been pruned.
    fn count(&self, domains: &Domains, ranks: &[usize], deadline: Option<Instant>) -> Option<u128> {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return None;
        }
        let mut product = 1u128;
        for component in self.components(domains, ranks) {
            // Fixing the rank with the fewest orders needs the fewest trials.
            let rank = component
                .iter()
                .copied()
                .min_by_key(|&r| domains[r].len())?;
            if component.len() == 1 {
                product = product.checked_mul(domains[rank].len() as u128)?;
                continue;
            }
            let mut sum = 0u128;
            for &order in &domains[rank] {
                let mut trial = domains.clone();
                trial[rank] = vec![order];
                if self.prune(&mut trial, self.edges_of_rank[rank].iter().copied()) {
                    sum = sum.checked_add(self.count(&trial, &component, deadline)?)?;
                }
            }
            product = product.checked_mul(sum)?;
        }
        Some(product)
    }

    /// The ranks among `ranks` that have more than one order, grouped by the constraints that can
    /// still be violated.
    fn components(&self, domains: &Domains, ranks: &[usize]) -> Vec<Vec<usize>> {
        let mut free = vec![false; domains.len()];
        for &r in ranks {
            free[r] = domains[r].len() > 1;
        }
        let mut components = Vec::new();
        for &start in ranks {
            if !std::mem::take(&mut free[start]) {
                continue;
            }
            let mut component = vec![start];
            let mut next = 0;
            while let Some(&r) = component.get(next) {
                next += 1;
                for &e in &self.edges_of_rank[r] {
                    let Edge { from, to, k } = self.edges[e];
                    let other = if from == r { to } else { from };
                    if !free[other] {
                        continue;
                    }
                    let always = domains[from].iter().fold(u16::MAX, |all, o| all & o.has[k]);
                    let wanted = domains[to].iter().fold(0, |all, o| all | o.received[k]);
                    if wanted & !always != 0 {
                        free[other] = false;
                        component.push(other);
                    }
                }
            }
            components.push(component);
        }
        components
    }
}

/// Calls `visit` with every permutation of `items` that keeps the first `fixed` in place.
fn permutations(items: &mut [usize], fixed: usize, visit: &mut impl FnMut(&[usize])) {
    if fixed == items.len() {
        visit(items);
        return;
    }
    for i in fixed..items.len() {
        items.swap(fixed, i);
        permutations(items, fixed + 1, visit);
        items.swap(fixed, i);
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::prove::violations;
    use super::*;
    use oneport::internal::circulant::tables::Tables;

    /// Tries all orders of rank 1, then of rank 2, and so on, and checks the four conditions.
    fn brute_force(p: usize) -> u128 {
        let problem = Problem::new(p);
        let domains = problem.domains();
        let (graph, q) = (&problem.graph, problem.graph.rounds());
        let mut tables = Tables::new(graph);
        fn go(
            problem: &Problem,
            domains: &Domains,
            chosen: &mut Vec<Order>,
            done: &mut impl FnMut(&[Order]),
        ) {
            let r = chosen.len() + 1;
            if r == problem.graph.ranks() {
                return done(chosen);
            }
            for &order in &domains[r] {
                chosen.push(order);
                let holds = |&e: &usize| {
                    let Edge { from, to, k } = problem.edges[e];
                    from.max(to) > r || chosen[to - 1].received[k] & chosen[from - 1].has[k] != 0
                };
                if problem.edges_of_rank[r].iter().all(holds) {
                    go(problem, domains, chosen, done);
                }
                chosen.pop();
            }
        }
        let mut count = 0;
        go(&problem, &domains, &mut Vec::new(), &mut |chosen| {
            count += 1;
            for (r, order) in (1..).zip(chosen) {
                for k in 0..q {
                    let block = order.received[k].trailing_zeros() as usize;
                    tables.recv[r * q + k] = block as i8 - q as i8;
                }
            }
            for r in 0..p {
                for k in 0..q {
                    let to = (r + graph.skips()[k]) % p;
                    tables.send[r * q + k] = tables.recv[to * q + k];
                }
            }
            // Only messages to the root may violate a condition, and only the third one.
            for v in violations(graph, &tables) {
                let to = v.round.map(|k| (v.rank + graph.skips()[k]) % p);
                assert_eq!((v.condition, to), (3, Some(0)), "{v}");
            }
        });
        count
    }

    /// The paper's Table 5 shows two schedules for 9 ranks, which differ at rank 8. Both are
    /// counted.
    #[test]
    fn both_of_the_papers_schedules_of_nine_ranks_are_counted() {
        let problem = Problem::new(9);
        let mut domains = problem.domains();
        assert!(problem.prune(&mut domains, 0..problem.edges.len()));
        for received in [[-3i8, -4, -1, 2], [-3, -1, -4, 2]] {
            let wanted = received.map(|block| 1u16 << (4 + block));
            assert!(domains[8].iter().any(|o| o.received[..4] == wanted));
        }
    }

    #[test]
    fn counts_equal_brute_force() {
        for p in 1..=13 {
            assert_eq!(count(p, None), Some(brute_force(p)), "p={p}");
        }
    }

    #[test]
    fn one_schedule_for_powers_of_two_and_just_below() {
        for p in [1, 2, 4, 8, 15, 16, 31, 32, 63, 64] {
            assert_eq!(count(p, None), Some(1), "p={p}");
        }
        assert_eq!(count(9, None), Some(9));
    }
}
