//! Barriers: allgathers of tokens that have no bytes.
//!
//! - Source: dissemination: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization"
//!   (1988); on unidirectional ports Entringer, Slater 1979. Tree: folklore; the threads of a
//!   [`Team`](crate::run::Team) count their arrivals up a tree, too.
//! - Ports: uni- or bidirectional; dissemination `k`-ported.
//! - Symbols: `p` ranks.
//! - Rounds: dissemination `ceil(log_(k+1) p)`, which is optimal on bidirectional ports, and about
//!   twice that on unidirectional ones; fibonacci `1.44 log2 p + 1`, about, on unidirectional
//!   ports; tree `2 ceil(log2 p)`.
//! - Time: the number of rounds times alpha.
//! - Volume: none; dissemination has `p ceil(log2 p)` messages, the tree `2 (p-1)`.
//!
//! A rank may leave when all ranks have entered. So it must have heard of each of them, directly or
//! from others: it needs a token of each, as in an allgather, and the checker proves a barrier as
//! it does an allgather. Every allgather is thus a barrier, and one in the fewest rounds is best:
//! dissemination is Bruck's.
//!
//! In the tree, rank 0 collects the tokens along a binomial tree and sends all of them back.
//!
//! Example of a tree, `p = 4`: 1→0, 3→2; 2→0 (tokens 2 and 3); 0→2 (all tokens); 0→1, 2→3.

use super::{bruck, fibonacci, synthesized};
use crate::plan::prelude::*;

pub(in crate::plan) const DISSEMINATION: Row = Row {
    k_ported: true,
    source: "Hensgen, Finkel, Manber 1988",
    rounds: bruck::ALLGATHER.rounds,
    volume: "0",
    formula: ClosedForm::Of(|request| bruck::time(&tokens(request))),
    ..row::new("dissemination", Kind::Barrier, |request| {
        barrier(request, bruck::plan)
    })
};

pub(in crate::plan) const FIBONACCI: Row = Row {
    ports: PortModels::Uni,
    source: fibonacci::ALLGATHER.source,
    rounds: fibonacci::ALLGATHER.rounds,
    volume: "0",
    formula: ClosedForm::Of(|request| fibonacci::time(&tokens(request))),
    ..row::new("fibonacci", Kind::Barrier, |request| {
        barrier(request, fibonacci::plan)
    })
};

pub(in crate::plan) const SYNTHESIZED: Row = Row {
    ports: PortModels::Uni,
    source: synthesized::ALLGATHER.source,
    rounds: synthesized::ALLGATHER.rounds,
    volume: "0",
    same_as: |request| {
        let same = (synthesized::ALLGATHER.same_as)(request);
        same.map(|_| &FIBONACCI)
    },
    ..row::new("synthesized", Kind::Barrier, |request| {
        barrier(request, synthesized::plan)
    })
};

pub(in crate::plan) const TREE: Row = Row {
    transfers: |p, _| p.saturating_mul(2),
    source: "folklore",
    rounds: "2 ceil(log2 p)",
    volume: "0",
    formula: ClosedForm::Of(tree_time),
    ..row::new("tree", Kind::Barrier, |request| {
        barrier(request, |tokens| compose::plan(tokens, tree))
    })
};

fn tokens(request: &Request) -> Request {
    let cost = Kind::Barrier.costs(&request.cost).into_owned();
    Request::allgather(request.ranks, 1)
        .ports(request.ports)
        .cost(cost)
}

/// The barrier that is the allgather of tokens by `plan`.
fn barrier(request: &Request, plan: fn(&Request) -> Result<Schedule>) -> Result<Schedule> {
    let allgather = plan(&tokens(request))?;
    let (ports, layout) = (allgather.ports(), allgather.layout().to_vec());
    Schedule::new(
        ports,
        Collective::Barrier,
        layout,
        allgather.into_programs(),
    )
}

fn tree(tokens: Vec<Span>) -> impl DoubleEndedIterator<Item = Vec<Message>> {
    let p = tokens.len();
    let edges = move |distance: usize| {
        let children = (distance..p).step_by(2 * distance);
        children.map(move |child| (child, child - distance))
    };
    let distances = (0..doublings(p)).map(|i| 1usize << i);
    let up = distances.clone().map(move |distance| {
        let below = |child| Span::from(child..p.min(child + distance));
        let messages = edges(distance);
        let messages = messages.map(|(child, parent)| Message::new(child, parent, below(child)));
        messages.collect()
    });
    let down = distances.rev().map(move |distance| {
        let messages = edges(distance);
        let all = Span::new(0, p);
        let messages = messages.map(|(child, parent)| Message::new(parent, child, all));
        messages.collect()
    });
    up.chain(down)
}

fn tree_time(request: &Request) -> Option<f64> {
    let rounds = 2.0 * f64::from(doublings(request.ranks));
    let tokens = tokens(request);
    Some(rounds * tokens.transfer_time(1))
}
