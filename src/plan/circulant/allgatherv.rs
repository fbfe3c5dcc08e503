//! Circulant allgather of `n` parts of each block, and its reversal reduce-scatter: for blocks of
//! very different sizes.
//!
//! Source: Träff, "(Poly)logarithmic time construction of round-optimal n-block broadcast
//! schedules", Algorithm 9 (which also needs Algorithm 6's shift by the rounds left out) and
//! Theorem 3, and the same backwards. Ports: bidirectional, one-ported. Symbols: `p` ranks, `m`
//! elements in all blocks together, `L = ceil(log2 p)`, `q` the number of segments (the paper's
//! `n`): each block is cut into `q` parts, the first ones larger by one element where they cannot
//! be equal. Rounds: `L + q - 1`. Volume: `(p-1) m`. Time when all parts are equal: `(L + q - 1)
//! alpha + (p-1)/p beta m`, the reduce-scatter `(p-1)/p gamma m` more; in any case at most `(L + q -
//! 1)(alpha + beta m / q)` or so (Theorem 3). One huge block is best cut into many parts, equal
//! ones into one. Restrictions: the reduce-scatter's operator must commute.
//!
//! Every rank is the root of a broadcast of its own block, all of them along the same edges at the
//! same time: for root `j`, rank `r` uses the schedules of rank `(r - j) mod p`. A message carries
//! one part for each root, except for the root that it goes to, and for those whose part is empty
//! or yet to come; parts that stand one after another in the vector are one span. A rank needs the
//! schedules of all ranks, which it can compute itself in `O(p log p)`, or gather from the others
//! ([`gather_schedules`](crate::distributed::circulant::gather_schedules)). Among threads,
//! computing is the faster: 18 against 71 us at 16 ranks on 2 cores. A message is sent as the list
//! of its spans and copied once; packed into one stretch of memory by the sender and unpacked by
//! the receiver, an allgather of 1 MiB takes two to three times as long there (example
//! `allgatherv_schedules`).
//!
//! `p = 3`, `q = 1`, skips 1, 2: 0→1 block 0, 1→2 block 1, 2→0 block 2; 0→2 block 0, 1→0 block 1,
//! 2→1 block 2.

use super::phases::{Phases, Round};
use super::reduce;
use super::schedule::Circulant;
use super::tables::Tables;
use crate::collective::Collective;
use crate::collective::Kind;
use crate::cost::Ports;
use crate::error::{Error, Result};
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, ClosedForm, Planner};
use crate::plan::{Request, evenly};
use crate::schedule::{Layout, Schedule, ScheduleSource, Span, Spans, Step};

pub(in crate::plan) const ALLGATHER: Algorithm = Algorithm {
    name: "circulant-blocks",
    collective: Kind::Allgather,
    commutative_only: false,
    transfers: row::parts_of_all,
    source: "Träff, irregular n-block allgather on circulant graphs",
    planner: Planner::Direct(plan),
    closed_form: ClosedForm::Of(time),
    ..reduce::REDUCE.for_another_collective()
};

pub(in crate::plan) const REDUCE_SCATTER: Algorithm =
    row::reduce_scatter(ALLGATHER, reduce_scatter_time);

/// Plans the allgather.
///
/// # Errors
/// When the request's parts do not fit together.
pub fn plan(request: &Request) -> Result<Schedule> {
    Allgatherv::new(request)?.materialize()
}

/// The programs of all ranks: the broadcasts from all roots, packed.
///
/// ```
/// use oneport::plan::circulant::allgatherv::{self, Allgatherv};
/// use oneport::plan::circulant::schedule::Circulant;
/// use oneport::{Request, schedule::ScheduleSource};
/// let mut request = Request::new(5, 100);
/// request.blocks = Some(vec![0, 100, 3, 7, 0]);
/// // What each rank knows by itself, from which an allgather makes what all need.
/// let graph = Circulant::new(5);
/// let own = |r| graph.recv_schedule(r).into_iter().map(|block| block as i8);
/// let gathered: Vec<i8> = (0..5).flat_map(own).collect();
/// let programs = Allgatherv::with_schedules(&request, gathered)?;
/// assert_eq!(programs.stored()?, allgatherv::plan(&request)?);
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Allgatherv {
    graph: Circulant,
    phases: Phases,
    ports: Ports,
    recv: Vec<i8>,
    /// Where the blocks stand.
    blocks: Vec<Span>,
    /// Parts of each root's block.
    parts: usize,
    /// Where they stand: `spans[root * parts + part]`.
    spans: Vec<Span>,
}

impl Allgatherv {
    /// With schedules computed here: `O(p log p)` time.
    ///
    /// # Errors
    /// When the request's parts do not fit together.
    pub fn new(request: &Request) -> Result<Allgatherv> {
        // Before the schedules of so many ranks are computed.
        request.validate()?;
        let recv = Tables::new(&Circulant::new(request.ranks)).recv;
        Allgatherv::with_schedules(request, recv)
    }

    /// With receive schedules from elsewhere, such as [an allgather of each rank's
    /// own](crate::distributed::circulant::gather_schedules): `recv[r * q + k]` is the block of
    /// rank `r` in round `k` of a phase of `q`. That they are right is for [`crate::check`] to say.
    ///
    /// # Errors
    /// When the request's parts do not fit together, or there is not one number for each rank and
    /// round.
    pub fn with_schedules(request: &Request, recv: Vec<i8>) -> Result<Allgatherv> {
        request.validate()?;
        let graph = Circulant::new(request.ranks);
        let (p, q) = (graph.ranks(), graph.rounds());
        if recv.len() != p * q {
            return Err(Error::usage(format!(
                "{} numbers for the receive schedules of {p} ranks over {q} rounds",
                recv.len()
            )));
        }
        let (blocks, parts) = (request.block_spans(), request.segments.count());
        let mut spans = Vec::with_capacity(p * parts);
        for block in &blocks {
            let mut offset = block.offset;
            for len in evenly(block.len, parts) {
                spans.push(Span::new(offset, len));
                offset += len;
            }
        }
        Ok(Allgatherv {
            phases: Phases::new(q, parts),
            graph,
            ports: request.ports,
            recv,
            blocks,
            parts,
            spans,
        })
    }

    /// What arrives at rank `to` in a round. The sender knows it, too: it sends what the receiver's
    /// schedules say.
    fn message(&self, round: Round, to: usize) -> Spans {
        let (p, q) = (self.graph.ranks(), self.graph.rounds());
        let mut message = Spans::new();
        for root in 0..p {
            // Counted from the root; the root itself receives nothing.
            let me = if to < root { to + p - root } else { to - root };
            if me == 0 {
                continue;
            }
            let Some(part) = round.block(self.recv[me * q + round.k]) else {
                continue;
            };
            let span = self.spans[root * self.parts + part];
            if span.len == 0 {
                continue;
            }
            match message.last_mut() {
                Some(last) if last.end() == span.offset => last.len += span.len,
                _ => message.push(span),
            }
        }
        message
    }
}

impl ScheduleSource for Allgatherv {
    type Program<'a> = Box<dyn Iterator<Item = Step> + 'a>;

    fn ranks(&self) -> usize {
        self.graph.ranks()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn collective(&self) -> Collective {
        Collective::Allgather
    }

    fn layout_of(&self, rank: usize) -> Layout {
        let whole = Span::from(0..self.blocks.last().map_or(0, |b| b.end()));
        Layout {
            len: whole.len,
            input: self.blocks[rank].into(),
            output: whole.into(),
        }
    }

    fn program_of(&self, rank: usize) -> Self::Program<'_> {
        let p = self.graph.ranks();
        Box::new((0..self.phases.rounds()).flat_map(move |i| {
            let round = self.phases.round(i);
            let skip = self.graph.skips()[round.k];
            let (to, from) = ((rank + skip) % p, (rank + p - skip) % p);
            let (sent, received) = (self.message(round, to), self.message(round, rank));
            let send = (!sent.is_empty()).then(|| Step::send(to, sent));
            let recv = (!received.is_empty()).then(|| Step::recv(from, received));
            send.into_iter().chain(recv)
        }))
    }
}

/// The executed time of the allgather, when all parts of all blocks are equal.
pub fn time(request: &Request) -> Option<f64> {
    sum_of_rounds(request, &request.block_spans(), |n| {
        request.transfer_time(n)
    })
}

/// The executed time of the reduce-scatter, when all parts of all blocks are equal.
pub fn reduce_scatter_time(request: &Request) -> Option<f64> {
    sum_of_rounds(request, &request.reduce_scatter_spans(), |n| {
        request.transfer_time(n) + request.combine_time(n)
    })
}

/// The time of all rounds, each of which takes `time` of so many elements: in every round all ranks
/// receive equally many parts.
fn sum_of_rounds(request: &Request, blocks: &[Span], time: impl Fn(usize) -> f64) -> Option<f64> {
    let parts = request.segments.count();
    let block = blocks.first()?.len;
    let equal = blocks.iter().all(|b| b.len == block) && block.is_multiple_of(parts);
    if !equal || !request.closed_forms_hold() {
        return None;
    }
    let graph = Circulant::new(request.ranks);
    let (p, q) = (graph.ranks(), graph.rounds());
    let phases = Phases::new(q, parts);
    let linear = request.cost.is_linear();
    // Under linear costs only the sum of all counts matters, which is (p - 1) parts.
    let recv = if linear {
        Vec::new()
    } else {
        Tables::new(&graph).recv
    };
    let part = block / parts;
    let mut sum = 0.0;
    for i in 0..phases.rounds() {
        let count = if linear {
            1
        } else {
            let round = phases.round(i);
            let brings = |me: &usize| round.block(recv[me * q + round.k]).is_some();
            (1..p).filter(brings).count()
        };
        sum += time(count * part);
    }
    if linear {
        // One part of each round has been counted; the others cost no start-up.
        let rest = (p - 1) * parts - phases.rounds();
        sum += time((rest + 1) * part) - time(part);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    #[test]
    fn schedules_from_elsewhere() {
        let mut request = Request::new(6, 4);
        request.blocks = Some(vec![4, 0, 1, 3, 2, 4]);
        let tables = Tables::new(&Circulant::new(6)).recv;
        let with = |recv: &[i8]| Allgatherv::with_schedules(&request, recv.to_vec());
        let right = with(&tables).unwrap().materialize().unwrap();
        assert_eq!(right, plan(&request).unwrap());
        assert!(with(&tables[1..]).is_err());
        // A part that never comes is missed; any numbers at all are taken.
        for place in (3..18).filter(|&place| tables[place] >= 0) {
            for block in [-1, i8::MIN] {
                let mut wrong = tables.clone();
                wrong[place] = block;
                let schedule = with(&wrong).unwrap().materialize().unwrap();
                let report = check::check(&schedule, &check::Options::default());
                assert!(!report.ok(), "{place} {block}");
            }
            assert!(with(&[i8::MAX; 18]).unwrap().materialize().is_ok());
        }
    }
}
