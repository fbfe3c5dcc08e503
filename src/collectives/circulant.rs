//! Collectives on circulant graphs: each rank takes its own steps from the planners, which make
//! them in `O(log p)` time for one rank.
//!
//! - Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//!   schedules", Algorithms 6, 7 and 9, forwards and backwards.
//! - Ports: bidirectional, one-ported.
//! - Symbols: `p` ranks, `L = ceil(log2 p)`, `n` blocks.

use super::request;
use crate::error::{Error, Result};
use crate::plan::Request;
use crate::plan::circulant::schedule::{Circulant, MAX_RANKS};
use crate::plan::circulant::{allgather as allgather_rounds, allgatherv as parts, n_blocks};
use crate::run::{Bidirectional, Element, Endpoint};
use crate::schedule::collective::Kind;
use crate::schedule::reverse::reversed_step;
use crate::schedule::{ScheduleSource, Span, Step};

/// The schedule of one rank of a circulant graph: which block it receives, and sends, in each round
/// of a phase. Non-negative numbers are blocks of the current phase, negative ones are blocks of
/// the phase before. Rank 0 is the root.
///
/// # Source
/// Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast schedules".
///
/// # Example
/// ```
/// use oneport::collectives::RankSchedule;
/// let five = RankSchedule::of(4, 5)?;
/// assert_eq!((five.skips, five.baseblock), (vec![1, 2, 3, 5], 0));
/// assert_eq!((five.recv, five.send), (vec![-1, -2, 0], vec![-3, -1, -1]));
/// // Microseconds, however many ranks there are.
/// assert_eq!(RankSchedule::of(12_345, 1_000_000_007)?.recv.len(), 30);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankSchedule {
    /// The distances of the partners: in round `k` the rank sends to the one `skips[k]` after it
    /// and receives from the one `skips[k]` before it. The last one, `p`, is no distance.
    pub skips: Vec<usize>,
    /// The block that the rank receives in the current phase; the root has the number of rounds.
    pub baseblock: usize,
    /// By round: the block that it receives.
    pub recv: Vec<i64>,
    /// By round: the block that it sends.
    pub send: Vec<i64>,
}

impl RankSchedule {
    /// The schedule of `rank` among `ranks` ranks, in `O(log p)` time.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if `rank` is not one of them, or they are more
    /// than 2^61.
    pub fn of(rank: usize, ranks: usize) -> Result<RankSchedule> {
        if rank >= ranks || ranks > MAX_RANKS {
            return Err(Error::usage(format!(
                "the schedule of rank {rank} of {ranks}: there are 1 to {MAX_RANKS}, numbered from 0"
            )));
        }
        let graph = Circulant::new(ranks);
        Ok(RankSchedule {
            baseblock: graph.baseblock(rank),
            recv: graph.recv_schedule(rank),
            send: graph.send_schedule(rank),
            skips: graph.skips().to_vec(),
        })
    }
}

/// Sends the `vector` of `root` to all ranks, in `blocks` blocks whose sizes differ by at most one,
/// or one for each element if there are fewer. Returns the number of rounds.
///
/// # Complexity
/// `L + n - 1` rounds, the fewest that there are (Theorem 2); time `(L + n - 1)(alpha + beta s)`
/// for `n` blocks of `s` elements. Each rank receives every block once; no scratch. It computes its
/// own schedule in `O(log p)` time.
///
/// # Errors
/// See [`collectives`](crate::collectives).
pub fn broadcast<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    root: usize,
    vector: impl Into<Span>,
    blocks: usize,
) -> Result<usize> {
    in_blocks(endpoint, Kind::Broadcast, root, vector.into(), blocks)
}

/// Reduces the `vector`s of all ranks to `root`, in `blocks` blocks. Those of the other ranks are
/// overwritten. Returns the number of rounds.
///
/// # Complexity
/// As [`broadcast`], which it runs backwards; `gamma s` more in each round.
///
/// # Errors
/// See [`collectives`](crate::collectives). The operator has to commute.
pub fn reduce<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    root: usize,
    vector: impl Into<Span>,
    blocks: usize,
) -> Result<usize> {
    in_blocks(endpoint, Kind::Reduce, root, vector.into(), blocks)
}

/// Reduces the `vector`s of all ranks to all of them, in `blocks` blocks: a [`reduce`] to rank 0,
/// then a [`broadcast`]. Returns the number of rounds.
///
/// Of long vectors, [`reduce_scatter`] and then [`allgather`] over as many equal blocks as ranks
/// send each element at most twice.
///
/// # Complexity
/// `2(L + n - 1)` rounds.
///
/// # Errors
/// See [`collectives`](crate::collectives). The operator has to commute.
pub fn allreduce<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    vector: impl Into<Span>,
    blocks: usize,
) -> Result<usize> {
    in_blocks(endpoint, Kind::Allreduce, 0, vector.into(), blocks)
}

fn in_blocks<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    kind: Kind,
    root: usize,
    vector: Span,
    blocks: usize,
) -> Result<usize> {
    let asked = Request::new(kind, endpoint.ranks(), vector.len).root(root);
    let asked = request(asked.segment_count(blocks), endpoint)?;
    let all = n_blocks::NBlocks::new(&asked);
    for step in all.program_of(endpoint.rank()) {
        endpoint.perform(step, vector.offset)?;
    }
    Ok(all.rounds())
}

/// Gathers the blocks of all ranks at all of them. From `offset` on, the buffer has room for the
/// blocks in rank order, of `sizes[rank]` elements each; a rank's own is in place. Returns the
/// number of rounds.
///
/// # Complexity
/// `L` rounds, the fewest that there are (Algorithm 7); time `L alpha + (p-1) beta s` for blocks of
/// `s` elements each. No scratch.
///
/// # Errors
/// See [`collectives`](crate::collectives).
pub fn allgather<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    offset: usize,
    sizes: &[usize],
) -> Result<usize> {
    over_blocks(endpoint, Kind::Allgather, offset, sizes, None)
}

/// Reduces the vectors of all ranks, and leaves block `rank` of the result at each rank. The vector
/// lies at `offset`, and its blocks have the `sizes` in rank order; the others are overwritten.
/// Returns the number of rounds.
///
/// # Complexity
/// As [`allgather`], which it runs backwards; `(p-1) gamma s` more.
///
/// # Errors
/// See [`collectives`](crate::collectives). The operator has to commute.
pub fn reduce_scatter<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    offset: usize,
    sizes: &[usize],
) -> Result<usize> {
    over_blocks(endpoint, Kind::ReduceScatter, offset, sizes, None)
}

/// As [`allgather`], for blocks of very different sizes: each is cut into `parts` parts.
///
/// # Complexity
/// `L + n - 1` rounds for `n` parts; time at most about `(L + n - 1)(alpha + beta m / n)` for `m`
/// elements in all blocks together (Algorithm 9 and Theorem 3). A rank computes the receive
/// schedules of all `p` roots, in `O(p log p)` time; each round takes `O(p)`.
///
/// # Errors
/// See [`collectives`](crate::collectives).
pub fn allgatherv<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    offset: usize,
    sizes: &[usize],
    parts: usize,
) -> Result<usize> {
    over_blocks(endpoint, Kind::Allgather, offset, sizes, Some(parts))
}

/// As [`reduce_scatter`], for blocks of very different sizes: each is cut into `parts` parts.
///
/// # Complexity
/// As [`allgatherv`], which it runs backwards.
///
/// # Errors
/// See [`collectives`](crate::collectives). The operator has to commute.
pub fn reduce_scatterv<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    offset: usize,
    sizes: &[usize],
    parts: usize,
) -> Result<usize> {
    over_blocks(endpoint, Kind::ReduceScatter, offset, sizes, Some(parts))
}

/// The allgather of blocks, whole or in parts, or the reduce-scatter that runs it backwards.
fn over_blocks<T: Element>(
    endpoint: &mut Endpoint<'_, T, Bidirectional>,
    kind: Kind,
    offset: usize,
    sizes: &[usize],
    in_parts: Option<usize>,
) -> Result<usize> {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let asked = Request::new(kind, endpoint.ranks(), largest).blocks(sizes.to_vec());
    let asked = request(asked.segment_count(in_parts.unwrap_or(1)), endpoint)?;
    let me = endpoint.rank();
    let (forwards, rounds): (Vec<Step>, usize) = match in_parts {
        None => {
            let rounds = allgather_rounds::BlockRounds::new(asked.block_spans());
            (rounds.steps_of(me).collect(), rounds.count())
        }
        Some(_) => {
            let all = parts::Allgatherv::new(&asked)?;
            (all.program_of(me).collect(), all.rounds())
        }
    };
    if kind == Kind::Allgather {
        forwards
            .into_iter()
            .try_for_each(|step| endpoint.perform(step, offset))?;
    } else {
        let backwards = forwards.into_iter().rev();
        backwards
            .map(|step| reversed_step(me, step, true))
            .try_for_each(|step| endpoint.perform(step, offset))?;
    }
    Ok(rounds)
}
