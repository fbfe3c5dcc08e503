//! Gossip, then each rank for itself: every rank gets the inputs of all ranks, and takes or
//! combines what it needs. For short vectors: an alltoall or allreduce on unidirectional ports, a
//! scan on several ports.
//!
//! | collective | after the gossip |
//! |---|---|
//! | alltoall | nothing: a rank's blocks are among the inputs |
//! | scan, exscan | a rank combines the vectors of the ranks before it |
//! | allreduce | a rank combines all vectors |
//!
//! - Source: folklore; gossips of unidirectional ranks: Entringer, Slater, "Gossips and telegraphs"
//!   (1979); Even, Monien 1989.
//! - Ports: uni- or bidirectional, `k`-ported; alltoall and allreduce unidirectional, because
//!   [Bruck's](super::bruck_alltoall) and the [census](crate::plan::circulant::census) take the
//!   fewest rounds on bidirectional ones.
//! - Symbols: `p` ranks, `m` elements in a vector, or in the blocks of one rank.
//! - Rounds: those of the best allgather of `m` elements for each rank.
//! - Time: alltoall that of the allgather; scan and allreduce at most `(p-1) gamma m` more, exscan
//!   at most `(p-2) gamma m` more. There is no closed form.
//! - Volume: `p (p-1) m`.
//! - Restrictions: at most 256 ranks, because each holds the inputs of all.
//! - Buffers: the inputs of all ranks in rank order, among which its own and its output are.
//! - Cost of planning: that of timing all allgathers.
//! - Order: a rank of an allreduce begins with its own vector; for the same bits on all ranks, with
//!   that of rank 0, in as many combinations.
//!
//! Example, scan, `p = 3`: the vectors `v0`, `v1` and `v2` are gathered everywhere; rank 1 combines
//! `v0` and `v1`, rank 2 all three.

use crate::budget::search::MAX_GOSSIP;
use crate::plan::choose;
use crate::plan::prelude::*;

pub(in crate::plan) const ALLTOALL: Row = Row {
    ports: PortModels::Uni,
    ..gossip(Kind::Alltoall, alltoall)
};

pub(in crate::plan) const SCAN: Row =
    gossip(Kind::Scan, |request| scan(request, Collective::Scan, 0));

pub(in crate::plan) const EXSCAN: Row =
    gossip(Kind::Exscan, |request| scan(request, Collective::Exscan, 1));

pub(in crate::plan) const ALLREDUCE: Row = Row {
    ports: PortModels::Uni,
    ranks_agree: |p, _| p <= 2,
    has_common_order: |_| true,
    ..gossip(Kind::Allreduce, |request| {
        scan(request, Collective::Allreduce, 0)
    })
};

/// The allreduce on all ports, for requests of the same bits: in place of a
/// [census](crate::plan::circulant::census).
pub(in crate::plan) const IN_COMMON_ORDER: Row = Row {
    ports: PortModels::Each,
    ..ALLREDUCE
};

/// The last rank gets all that the others have: a vector, or a block for each rank.
fn min_received(request: &Request) -> usize {
    let p = request.ranks;
    let held = match (&request.blocks, request.kind) {
        (Some(_), _) => 0,
        (None, Kind::Alltoall) => p.saturating_mul(request.elements()),
        (None, _) => request.elements(),
    };
    p.saturating_sub(1).saturating_mul(held)
}

const fn gossip(collective: Kind, plan: fn(&Request) -> Result<Schedule>) -> Row {
    Row {
        max_ranks: Some(MAX_GOSSIP),
        min_received,
        for_arrivals: true,
        transfers: row::for_each_pair,
        planning_work: 16,
        source: "folklore; Entringer, Slater 1979; Even, Monien 1989",
        rounds: "those of the best allgather, of all that a rank has",
        volume: "p(p-1) m",
        ..row::new("gossip", collective, plan)
    }
}

/// The fastest allgather of blocks of `elements` elements, or of these sizes.
fn allgather(request: &Request, elements: usize, blocks: Option<Vec<usize>>) -> Result<Schedule> {
    let gather = Request::allgather(request.ranks, elements)
        .blocks(blocks)
        .ports(request.ports)
        .cost(request.cost.clone())
        .element_bytes(request.element_bytes);
    choose::choose(&gather)?.plan()
}

pub(crate) fn alltoall(request: &Request) -> Result<Schedule> {
    let p = request.ranks;
    let sizes = match &request.blocks {
        Some(sizes) => sizes,
        None => &vec![request.elements(); p],
    };
    // By rank: its blocks, in one row for all ranks if they are alike.
    let rows: Vec<Vec<Span>> = sizes.chunks(p).map(consecutive).collect();
    let held = |row: &Vec<Span>| row.last().map_or(0, |block| block.end());
    let inputs: Vec<usize> = rows.iter().map(held).collect();
    let largest = inputs.iter().copied().max().unwrap_or(0);
    let starts = consecutive(&match inputs.len() {
        1 => vec![largest; p],
        _ => inputs.clone(),
    });
    let gathered = allgather(request, largest, (inputs.len() > 1).then_some(inputs))?;
    let block = |from: usize, to: usize| {
        let block = rows[from.min(rows.len() - 1)][to];
        Span::new(starts[from].offset + block.offset, block.len)
    };
    let layout = |(rank, gathered): (usize, &Layout)| Layout {
        len: gathered.len,
        input: (0..p).map(|to| block(rank, to)).collect(),
        output: (0..p).map(|from| block(from, rank)).collect(),
    };
    let layout = gathered.layout().iter().enumerate().map(layout).collect();
    let ports = gathered.ports();
    Schedule::new(
        ports,
        Collective::Alltoall,
        layout,
        gathered.into_programs(),
    )
}

/// Plans a scan in which a rank has what is of the ranks up to `before` ranks before it, or an
/// allreduce, in which it has what is of all.
fn scan(request: &Request, collective: Collective, before: usize) -> Result<Schedule> {
    let m = request.elements();
    let gathered = allgather(request, m, None)?;
    let vector = |rank: usize| Span::new(rank * m, m);
    let is_scan = collective != Collective::Allreduce;
    let mut b = Schedule::builder(request.ranks, gathered.ports(), collective);
    for (r, layout) in gathered.layout().iter().enumerate() {
        let output = r.checked_sub(before).map(vector);
        b.layout(r, layout.len, [vector(r)], output);
    }
    for (r, program) in gathered.into_programs().into_iter().enumerate() {
        for step in program {
            b.step(r, step);
        }
        let Some(last) = r.checked_sub(before).filter(|_| m > 0) else {
            continue;
        };
        let mut lower = 0..last;
        let higher = if is_scan { 0..0 } else { r + 1..request.ranks };
        // In one order on all ranks, the sum of the lower ones grows from rank 0 on.
        if request.same_bits && !is_scan && last > 0 {
            for other in 1..last {
                let step = Step::combine(vector(other), vector(0), Order::MineFirst);
                b.step(r, step);
            }
            lower = 0..1;
        }
        for other in lower.rev().chain(higher) {
            let order = Order::by_rank(last, other);
            b.step(r, Step::combine(vector(other), vector(last), order));
        }
    }
    b.build()
}
