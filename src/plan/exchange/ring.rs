//! Ring exchanges: allgather, reduce-scatter (its rounds backwards), and allreduce (one after the other).
//!
//! Source: folklore. Ports: both. Symbols: `p` ranks, `m` elements in all blocks together, `b = m/p` where they are equal.
//! Rounds: `p-1` (bidirectional), twice as many for allreduce. On unidirectional ranks those at even positions send first: `2(p-1)` for even `p`.
//! Volume: `(p-1) m`, allreduce `2(p-1) m`. Time for equal blocks: `(p-1)(alpha + beta b)`, twice that on unidirectional ranks with even `p`; the
//! reduce-scatter takes `(p-1) gamma b` more, and so does the allreduce than two allgathers.
//! Restrictions: operators must commute. Scratch: on unidirectional ranks, one block to reduce-scatter.
//!
//! In round `k` rank `r` sends block `r-k` to `r+1` and receives block `r-k-1` from `r-1`, all modulo `p`. Blocks arrive where they belong;
//! nothing is moved locally. Empty blocks are not sent. The reduce-scatter runs the rounds backwards and leaves block `r` at rank `r`;
//! on one port, who receives first combines after sending, so that nobody waits for a combination.
//!
//! `p = 3`: 0→1 block 0, 1→2 block 1, 2→0 block 2; then 0→1 block 2, 1→2 block 0, 2→0 block 1.

use super::rounds::{self, Message, equal_size};
use super::there_and_back;
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::{Schedule, Span};

/// Plans the allgather.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    there_and_back::allgather(request, |blocks| allgather(0, blocks))
}

/// Plans the reduce-scatter.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn reduce_scatter(request: &Request) -> Result<Schedule> {
    there_and_back::reduce_scatter(request, |blocks| allgather(0, blocks))
}

/// Plans the allreduce; the segments of the request are ignored but for their sum.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn allreduce(request: &Request) -> Result<Schedule> {
    there_and_back::allreduce(request, |blocks| allgather(0, blocks))
}

/// The rounds in which position `v` of the ring, which is rank `v + first`, sends its block `v` around.
pub(super) fn allgather(
    first: usize,
    blocks: Vec<Span>,
) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let p = blocks.len();
    let rank = move |v: usize| (v + first) % p;
    (0..p - 1).map(move |k| {
        let message = |v: usize| Message::new(rank(v), rank(v + 1), blocks[(v + p - k) % p]);
        (0..p).map(message).collect()
    })
}

/// The executed time of the allgather, when the blocks are equal and, on unidirectional ranks, `p` is even.
pub fn time(request: &Request) -> Option<f64> {
    let size = equal_size(request, &request.concatenated())?;
    Some(rounds_of(request)? * rounds::time_of_round(request, size))
}

/// The executed time of the reduce-scatter, likewise.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    let size = equal_size(request, &request.scattered())?;
    Some(
        rounds_of(request)?
            * (rounds::time_of_round(request, size) + rounds::time_of_combining(request, size)),
    )
}

/// The executed time of the allreduce, when the blocks are equal and, on unidirectional ranks, `p` is even.
pub fn allreduce_time(request: &Request) -> Option<f64> {
    let (p, m) = (request.ranks, request.elements());
    if !request.closed_forms_hold() || p == 0 || !m.is_multiple_of(p) {
        return None;
    }
    let message = rounds::time_of_round(request, m / p);
    Some(rounds_of(request)? * (2.0 * message + rounds::time_of_combining(request, m / p)))
}

/// `p - 1`, where all of them take the same time.
pub(super) fn rounds_of(request: &Request) -> Option<f64> {
    let p = request.ranks;
    if p > 1 && !p.is_multiple_of(2) && !request.ports.is_bidirectional() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let rounds = p.checked_sub(1)? as f64;
    Some(rounds)
}
