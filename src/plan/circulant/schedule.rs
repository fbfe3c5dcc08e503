//! Round-optimal broadcast schedules on circulant graphs: each rank computes its own in `O(log p)`
//! time, without communication.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules". The construction here differs: receive and send schedules take a number of steps
//!   linear in `q`.
//! - Symbols: `p` ranks, `q = ceil(log2 p)` rounds in a phase, `skip[q] = p`,
//!   `skip[k] = ceil(skip[k+1] / 2)`.
//!
//! In round `k` of every phase rank `r` sends to `r + skip[k]` and receives from `r - skip[k]`,
//! modulo `p`. The schedules say which block: non-negative numbers are blocks of the current phase,
//! negative ones are blocks of the phase before. They satisfy four conditions:
//! 1. `send[r][k] == recv[(r + skip[k]) mod p][k]`.
//! 2. Over one phase every rank except the root receives its *base block* (non-negative) and
//!    `q - 1` different blocks of the phase before: all of `-1..=-q` except `baseblock(r) - q`.
//! 3. Every rank except the root sends only blocks that it received in an earlier round, or its
//!    base block of the phase before.
//! 4. The root, rank 0, sends block `k` in round `k`.
//!
//! Example, `p = 5`, skips 1, 2, 3, 5: the base blocks of ranks 1 to 4 are 0, 1, 2, 0 (rank 4 is
//! `3 + 1`: the smallest skip counts, which is `skip[0]`).

/// Maximum number of ranks of a circulant graph, chosen so that `2 p` does not overflow.
pub const MAX_RANKS: usize = 1 << (usize::BITS - 3);

/// A circulant graph: its skips, and the schedules along them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circulant {
    skips: Vec<usize>,
}

impl Circulant {
    /// The graph over `p` ranks, in `O(log p)` time and memory.
    pub fn new(p: usize) -> Circulant {
        assert!(p > 0, "a circulant graph needs a rank");
        assert!(p <= MAX_RANKS, "{p} ranks are more than {MAX_RANKS}");
        let mut skips = vec![p];
        let mut s = p;
        while s > 1 {
            s = s.div_ceil(2);
            skips.push(s);
        }
        skips.reverse();
        Circulant { skips }
    }

    /// Number of ranks, `p`.
    pub fn ranks(&self) -> usize {
        self.skips[self.rounds()]
    }

    /// Number of rounds in a phase, `q = ceil(log2 p)`.
    pub fn rounds(&self) -> usize {
        self.skips.len() - 1
    }

    /// The skips, from `skip[0] = 1` to `skip[q] = p`.
    pub fn skips(&self) -> &[usize] {
        &self.skips
    }

    /// The block that rank `r` receives in the current phase: the index of the smallest skip in the
    /// greedy decomposition of `r` into skips. `q` for rank 0. Takes `O(q)` time.
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

    /// The receive schedule of rank `r`: `recv[k]` for each round `k` of a phase. This method and
    /// the next three take `O(q)` time.
    pub fn recv_schedule(&self, r: usize) -> Vec<i64> {
        let mut recv = vec![0; self.rounds()];
        self.recv_into(r, &mut recv);
        recv.into_iter().map(i64::from).collect()
    }

    /// The send schedule of rank `r`: `send[k]` for each round `k` of a phase.
    pub fn send_schedule(&self, r: usize) -> Vec<i64> {
        let mut send = vec![0; self.rounds()];
        self.send_into(r, &mut send);
        send.into_iter().map(i64::from).collect()
    }

    /// As [`Circulant::recv_schedule`], into the caller's memory. A byte holds every block number,
    /// since `q < 64`.
    pub fn recv_into(&self, r: usize, recv: &mut [i8]) {
        assert_eq!(recv.len(), self.rounds(), "one place a round");
        ReceiveSearch::new(self, r).run(recv);
    }

    /// As [`Circulant::send_schedule`], into the caller's memory.
    pub fn send_into(&self, r: usize, send: &mut [i8]) {
        let (q, p, skip) = (self.rounds(), self.ranks(), &self.skips);
        assert_eq!(send.len(), q, "one place a round");
        let b = self.baseblock(r);
        if r == 0 {
            for (k, place) in send.iter_mut().enumerate() {
                *place = block(k);
            }
            return;
        }
        send[0] = block(b) - block(q);
        // [0, high) is the part of the ranks that still shares block v; `low` is rank r in that
        // part.
        let (mut v, mut low, mut high) = (block(b), r, p);
        for k in (1..q).rev() {
            let sure = if low < skip[k] {
                let sure = low + skip[k] < high || high < skip[k - 1] || (k == 1 && b > 0);
                high = high.min(skip[k]);
                sure
            } else {
                v = block(k) - block(q);
                high -= skip[k];
                let sure = low > skip[k] || low <= high || k == 1 || high < skip[k - 1];
                low -= skip[k];
                sure
            };
            send[k] = if sure {
                v
            } else {
                // Rare (at most four times per rank): compute the receiver's schedule up to this
                // round.
                let receiver = (r + skip[k]) % p;
                let mut recv = [0; usize::BITS as usize];
                ReceiveSearch::new(self, receiver).run(&mut recv[..=k]);
                recv[k]
            };
        }
    }
}

pub(crate) fn block(k: usize) -> i8 {
    i8::try_from(k).expect("phases are shorter than 64 rounds")
}

/// The search for a receive schedule: a depth-first walk over sums of skips, greatest skips first.
///
/// For round `k` it stops at a sum that is a rank at least `skip[k]` behind the target and farther
/// than those of earlier rounds. The last skip taken on the way determines the block that arrives
/// in round `k`. That skip is then removed, since every block arrives once.
struct ReceiveSearch<'a> {
    skips: &'a [usize],
    base: i8,
    /// The rank plus `p`, so that differences stay positive.
    target: usize,
    /// Skips not yet removed, as a bit mask.
    live: u64,
    path: [u8; 2 * usize::BITS as usize],
    depth: usize,
    /// Sum of the skips taken.
    position: usize,
}

impl ReceiveSearch<'_> {
    fn new(graph: &Circulant, r: usize) -> ReceiveSearch<'_> {
        let q = graph.rounds();
        let base = graph.baseblock(r);
        ReceiveSearch {
            skips: graph.skips(),
            base: block(base),
            target: r + graph.ranks(),
            live: (u64::MAX >> (63 - q)) & !(1 << base),
            path: [0; 2 * usize::BITS as usize],
            depth: 0,
            position: 0,
        }
    }

    /// Finds the blocks of the first `recv.len()` rounds.
    fn run(mut self, recv: &mut [i8]) {
        let q = self.skips.len() - 1;
        let mut last = 2 * self.skips[q];
        let mut candidate = self.next(q + 1);
        let mut k = 0;
        while k < recv.len() {
            let (near, far) = (self.target - self.skips[k], self.target - self.skips[k + 1]);
            let (mut e, mut found);
            if let Some(next) = candidate {
                e = next;
                found = self.position + self.skips[e];
                if found > near || found >= last {
                    candidate = self.next(e);
                    continue;
                }
                if found <= far {
                    // Descend with the same skip: a sum may contain it twice, since the target is
                    // r + p.
                    #[expect(clippy::cast_possible_truncation, reason = "fewer skips than bits")]
                    let skip = e as u8;
                    self.path[self.depth] = skip;
                    self.depth += 1;
                    self.position = found;
                    continue;
                }
            } else {
                (e, found) = self.climb();
            }
            while self.position > far {
                (e, found) = self.climb();
            }
            recv[k] = if e == q {
                self.base
            } else {
                block(e) - block(q)
            };
            last = found;
            self.live &= !(1 << e);
            candidate = self.next(e);
            k += 1;
        }
    }

    /// The greatest live skip below `e`.
    fn next(&self, e: usize) -> Option<usize> {
        let below = self.live & !(u64::MAX << e);
        (below != 0).then(|| 63 - below.leading_zeros() as usize)
    }

    /// Pops the last skip taken. Returns it, and the sum that included it.
    fn climb(&mut self) -> (usize, usize) {
        self.depth -= 1;
        let e = usize::from(self.path[self.depth]);
        let found = self.position;
        self.position -= self.skips[e];
        (e, found)
    }
}
