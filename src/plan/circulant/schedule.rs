//! Round-optimal broadcast schedules on circulant graphs, `O(log p)` time a rank, without communication.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast schedules"; here with a construction of receive and
//! send schedules in a number of steps linear in `q`.
//! Symbols: `p` ranks, `q = ceil(log2 p)` rounds a phase, `skip[k]` with `skip[q] = p`, `skip[k] = ceil(skip[k+1] / 2)`.
//!
//! In round `k` of every phase rank `r` sends to `r + skip[k]` and receives from `r - skip[k]` (modulo `p`). The schedules say which block:
//! non-negative numbers are blocks of the current phase, negative ones of the phase before. They satisfy four conditions:
//! 1. `send[r][k] == recv[(r + skip[k]) mod p][k]`;
//! 2. over one phase a rank but the root receives its *base block* (non-negative) and `q - 1` different blocks of the phase before:
//!    all of `-1..=-q` but `baseblock(r) - q`;
//! 3. a rank but the root sends only blocks that it received in an earlier round, or its base block of the phase before;
//! 4. the root, rank 0, sends block `k` in round `k`.
//!
//! `p = 5`, skips 1, 2, 3, 5: base blocks of ranks 1..4: 0, 1, 2, 2 (rank 4 is `3 + 1`: the greatest skip counts).

/// The skips of a circulant graph, and the schedules along them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circulant {
    skips: Vec<usize>,
}

impl Circulant {
    /// The graph over `p` ranks.
    ///
    /// # Panics
    /// When `p` is 0.
    pub fn new(p: usize) -> Circulant {
        assert!(p > 0, "a circulant graph needs a rank");
        let mut skips = vec![p];
        let mut s = p;
        while s > 1 {
            s = s.div_ceil(2);
            skips.push(s);
        }
        skips.reverse();
        Circulant { skips }
    }

    /// `p`, the number of ranks.
    pub fn ranks(&self) -> usize {
        self.skips[self.rounds()]
    }

    /// `q = ceil(log2 p)`, the rounds of a phase.
    pub fn rounds(&self) -> usize {
        self.skips.len() - 1
    }

    /// `skip[0]`, 1, up to `skip[q]`, which is `p`.
    pub fn skips(&self) -> &[usize] {
        &self.skips
    }

    /// The block that rank `r` receives in the current phase: the smallest skip of the greedy decomposition of `r` into skips. `q` for rank 0.
    ///
    /// # Panics
    /// When `r` is not a rank, here and in the other methods.
    pub fn baseblock(&self, r: usize) -> usize {
        assert!(r < self.ranks(), "rank {r} of {}", self.ranks());
        let mut rest = r;
        for k in (0..self.rounds()).rev() {
            if rest >= self.skips[k] {
                rest -= self.skips[k];
                if rest == 0 {
                    return k;
                }
            }
        }
        self.rounds()
    }

    /// `recv[k]` for each round `k` of a phase.
    pub fn recv_schedule(&self, r: usize) -> Vec<i64> {
        Search::new(self, r).run()
    }

    /// `send[k]` for each round `k` of a phase.
    pub fn send_schedule(&self, r: usize) -> Vec<i64> {
        let (q, p, skip) = (self.rounds(), self.ranks(), &self.skips);
        let b = self.baseblock(r);
        if r == 0 {
            return (0..q).map(signed).collect();
        }
        let mut send = vec![signed(b) - signed(q); q];
        // The rank in the part of the ranks, [0, high), that still shares its block.
        let (mut v, mut low, mut high) = (signed(b), r, p);
        for k in (1..q).rev() {
            let sure = if low < skip[k] {
                let sure = low + skip[k] < high || high < skip[k - 1] || (k == 1 && b > 0);
                high = high.min(skip[k]);
                sure
            } else {
                v = signed(k) - signed(q);
                high -= skip[k];
                let sure = low > skip[k] || low <= high || k == 1 || high < skip[k - 1];
                low -= skip[k];
                sure
            };
            send[k] = if sure {
                v
            } else {
                // Rare (at most four a rank): ask the receiver's schedule.
                self.recv_schedule((r + skip[k]) % p)[k]
            };
        }
        send
    }
}

fn signed(k: usize) -> i64 {
    i64::try_from(k).unwrap_or(i64::MAX)
}

/// The search for a receive schedule: a walk over sums of skips, greatest skips first, down and up again.
///
/// For round `k` it stops at a sum that is a rank at least `skip[k]` behind and farther than those of earlier rounds. The last skip taken on the
/// way there tells which block arrives in round `k`; it is unlinked, since every block arrives once.
struct Search<'a> {
    skips: &'a [usize],
    base: usize,
    /// The rank, one turn further, so that differences stay positive.
    target: usize,
    /// Skips still live, from the greatest on, as a doubly linked list over `0..=q + 1` with `q + 1` as both ends.
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Skips taken, and their sum.
    path: Vec<usize>,
    position: usize,
}

impl Search<'_> {
    fn new(graph: &Circulant, r: usize) -> Search<'_> {
        let q = graph.rounds();
        let end = q + 1;
        // After k comes k - 1; after 0 comes the end, and after the end q.
        let next = (0..=end).map(|k| k.checked_sub(1).unwrap_or(end)).collect();
        let previous = (0..=end)
            .map(|k| if k == end { 0 } else { k + 1 })
            .collect();
        let base = graph.baseblock(r);
        let mut search = Search {
            skips: graph.skips(),
            base,
            target: r + graph.ranks(),
            next,
            previous,
            path: Vec::with_capacity(q),
            position: 0,
        };
        search.unlink(base);
        search
    }

    fn run(mut self) -> Vec<i64> {
        let q = self.skips.len() - 1;
        let end = q + 1;
        let mut recv = Vec::with_capacity(q);
        let mut last = 2 * self.skips[q];
        let mut e = self.next[end];
        while recv.len() < q {
            let k = recv.len();
            let mut found;
            if e == end {
                (e, found) = self.climb();
            } else {
                found = self.position + self.skips[e];
                if found > self.target - self.skips[k] || found >= last {
                    e = self.next[e];
                    continue;
                }
                if found <= self.target - self.skips[k + 1] {
                    // Descend with the same skip: it may be taken twice, once a turn.
                    self.path.push(e);
                    self.position = found;
                    continue;
                }
            }
            while self.position > self.target - self.skips[k + 1] {
                (e, found) = self.climb();
            }
            recv.push(if e == q {
                signed(self.base)
            } else {
                signed(e) - signed(q)
            });
            last = found;
            self.unlink(e);
            e = self.next[e];
        }
        recv
    }

    /// Gives the last skip back: the skip, and the sum with it.
    fn climb(&mut self) -> (usize, usize) {
        let e = self.path.pop().expect("the search stays below its start");
        let found = self.position;
        self.position -= self.skips[e];
        (e, found)
    }

    fn unlink(&mut self, e: usize) {
        let (before, after) = (self.previous[e], self.next[e]);
        self.next[before] = after;
        self.previous[after] = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four conditions of the module's documentation.
    fn assert_conditions(graph: &Circulant, ranks: impl Iterator<Item = usize>) {
        let (p, q) = (graph.ranks(), graph.rounds());
        assert_eq!(
            graph.send_schedule(0),
            (0..q).map(signed).collect::<Vec<_>>()
        );
        for r in ranks {
            let (recv, send) = (graph.recv_schedule(r), graph.send_schedule(r));
            assert_eq!((recv.len(), send.len()), (q, q));
            for (k, block) in send.iter().enumerate() {
                let receiver = (r + graph.skips()[k]) % p;
                let received = graph.recv_schedule(receiver)[k];
                assert_eq!(*block, received, "p={p} r={r} k={k}");
            }
            if r == 0 {
                continue;
            }
            let b = signed(graph.baseblock(r));
            let mut found = recv.clone();
            found.sort_unstable();
            let mut expected: Vec<i64> = (-signed(q)..0).filter(|&v| v != b - signed(q)).collect();
            expected.push(b);
            assert_eq!(found, expected, "p={p} r={r}");
            for (k, block) in send.iter().enumerate() {
                let known = recv[..k].contains(block) || *block == b - signed(q);
                assert!(known, "p={p} r={r} k={k}");
            }
        }
    }

    #[test]
    fn the_four_conditions_hold() {
        for p in 1..=600 {
            assert_conditions(&Circulant::new(p), 0..p);
        }
        for p in [4_095, 4_096, 4_097, 1_000_003, (1 << 40) + 12_345] {
            assert_conditions(&Circulant::new(p), (0..200).map(|i| i * (p / 200) + i % 7));
        }
    }

    /// The paper's receive schedule (Algorithms 3 and 4), ranges looked through rank by rank.
    fn paper_recv_schedule(graph: &Circulant, r: usize) -> Vec<i64> {
        let (p, q, skip) = (graph.ranks(), graph.rounds(), graph.skips());
        // The greatest base block among ranks first..=last behind r that is not known yet; the root has none.
        let fresh = |first: usize, last: usize, known: &[usize]| {
            let behind = (last..=first).map(|d| (r + 2 * p - d) % p);
            let blocks = behind.filter(|&v| v != 0).map(|v| graph.baseblock(v));
            blocks.filter(|b| !known.contains(b)).max()
        };
        let mut known = if r == 0 {
            vec![]
        } else {
            vec![graph.baseblock(r)]
        };
        let mut recv = Vec::new();
        for i in 0..q {
            if (skip[i]..skip[i + 1]).contains(&r) {
                recv.push(signed(graph.baseblock(r)));
                continue;
            }
            let block = if i + 1 < q {
                let sum = skip[..=i].iter().sum();
                fresh(skip[i + 1] - 1, skip[i], &known).or_else(|| fresh(sum, skip[i + 1], &known))
            } else {
                (0..q).find(|b| !known.contains(b))
            };
            let block = block.expect("a new block for every round");
            known.push(block);
            recv.push(signed(block) - signed(q));
        }
        recv
    }

    #[test]
    fn schedules_are_the_papers() {
        for p in 1..=140 {
            let graph = Circulant::new(p);
            for r in 0..p {
                let expected = paper_recv_schedule(&graph, r);
                assert_eq!(graph.recv_schedule(r), expected, "p={p} r={r}");
            }
        }
    }

    #[test]
    fn skips_of_nine() {
        let graph = Circulant::new(9);
        assert_eq!(graph.skips(), [1, 2, 3, 5, 9]);
        let base: Vec<usize> = (0..9).map(|r| graph.baseblock(r)).collect();
        assert_eq!(base, [4, 0, 1, 2, 0, 3, 0, 1, 2]);
    }

    #[test]
    fn one_rank_has_no_rounds() {
        let graph = Circulant::new(1);
        assert_eq!((graph.ranks(), graph.rounds()), (1, 0));
        assert!(graph.recv_schedule(0).is_empty() && graph.send_schedule(0).is_empty());
    }
}
