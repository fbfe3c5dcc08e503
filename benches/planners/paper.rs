//! The paper's own construction of circulant schedules, in `O(log^3 p)` time per rank: the
//! reference for `oneport::internal::circulant::schedule`.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//! schedules", Algorithms 3 to 5, with these corrections:
//! - Algorithm 3 (blocks of a range): rank 0 contributes nothing. A range that passes the last rank
//!   is split in two. When a home range lacks a block (only small ones do), the search goes on in
//!   the home ranges below it.
//! - Algorithm 4 (receive schedule): the set of known blocks starts with the base block (empty at
//!   the root), and the loop ends at `k - 1`.
//! - Algorithm 5 (send schedule): round `i` computes `i + 1` rounds of the receive schedule of rank
//!   `(r + skip[i]) mod p`.
//!
//! In each round the receive schedule takes the greatest new base block among the ranks that become
//! reachable. The base blocks of a range of ranks follow from the *home ranges*
//! `skip[k] .. skip[k+1]`: the base block of `skip[k]` is `k`, and those of the following ranks
//! repeat the base blocks of ranks 1, 2, ...
//!
//! Example, `p = 20`, skips 1, 2, 3, 5, 10, 20: ranks 6 to 9 repeat ranks 1 to 4, so their base
//! blocks are 0, 1, 2, 0.

use oneport::internal::circulant::schedule::Circulant;

/// `recv[k]` for each round `k`, in `O(log^2 p)` time.
///
/// # Panics
/// When `r` is not a rank of the graph.
pub(crate) fn recv_schedule(graph: &Circulant, r: usize) -> Vec<i8> {
    first_receives(graph, r, graph.rounds())
}

/// `send[k]` for each round `k`, in `O(log^3 p)` time.
///
/// # Panics
/// When `r` is not a rank of the graph.
pub(crate) fn send_schedule(graph: &Circulant, r: usize) -> Vec<i8> {
    (0..graph.rounds())
        .map(|i| first_receives(graph, (r + graph.skips()[i]) % graph.ranks(), i + 1)[i])
        .collect()
}

/// Algorithm 4: the first `k` rounds of the receive schedule of rank `r`.
fn first_receives(graph: &Circulant, r: usize, k: usize) -> Vec<i8> {
    let (q, skip) = (graph.rounds(), graph.skips());
    let base = graph.baseblock(r);
    let mut known: u64 = if r == 0 { 0 } else { 1 << base };
    let mut reached = 0;
    let mut recv = Vec::with_capacity(k);
    for i in 0..k {
        reached += skip[i];
        if (skip[i]..skip[i + 1]).contains(&r) {
            recv.push(block(base));
            continue;
        }
        let mut new = if i + 1 < q {
            behind(graph, r, skip[i + 1] - 1, skip[i]) & !known
        } else {
            ((1 << q) - 1) & !known
        };
        if new == 0 {
            new = behind(graph, r, reached, skip[i + 1]) & !known;
        }
        let greatest = new.ilog2();
        known |= 1 << greatest;
        recv.push(block(greatest as usize) - block(q));
    }
    recv
}

/// Base blocks, as a bit mask, of the ranks that are `far` to `near` behind `r`, modulo `p`.
fn behind(graph: &Circulant, r: usize, far: usize, near: usize) -> u64 {
    let p = graph.ranks();
    let (a, b) = ((r + p - far) % p, (r + p - near) % p);
    if a <= b {
        range_blocks(graph, a, b)
    } else {
        range_blocks(graph, a, p - 1) | range_blocks(graph, 0, b)
    }
}

/// Algorithm 3: base blocks, as a bit mask, of ranks `a ..= b`, in `O(log p)` time.
pub(crate) fn range_blocks(graph: &Circulant, a: usize, b: usize) -> u64 {
    let skip = graph.skips();
    let (mut a, mut b) = (a.max(1), b);
    let mut k = graph.rounds();
    loop {
        if a > b {
            return 0;
        }
        while skip[k] > b {
            k -= 1;
        }
        if a <= skip[k] {
            break;
        }
        // The whole range lies in the home range of k, after its first rank: repeat from rank 1.
        (a, b) = (a - skip[k], b - skip[k]);
    }
    let mut blocks = 1 << k | first_blocks(graph, b - skip[k]);
    // The home ranges below: after a few whole ones no block is missing.
    while k > 0 && a < skip[k] && blocks & ((1 << k) - 1) != (1 << k) - 1 {
        let end = skip[k] - 1;
        k -= 1;
        if a > skip[k] {
            return blocks | range_blocks(graph, a - skip[k], end - skip[k]);
        }
        blocks |= 1 << k | first_blocks(graph, end - skip[k]);
    }
    blocks
}

/// Base blocks of ranks `1 ..= b`: one for each skip up to `b`.
fn first_blocks(graph: &Circulant, b: usize) -> u64 {
    (1 << graph.skips().partition_point(|&s| s <= b)) - 1
}

/// Converts a block number or a number of rounds, which is less than 64.
fn block(k: usize) -> i8 {
    i8::try_from(k).expect("phases are shorter than 64 rounds")
}
