//! Gossip of few ranks, an odd number of them, on unidirectional ports in rounds that a SAT solver
//! found: as many as one rank more would need.
//!
//! - Source: oneport (`oneport synthesize`); for the numbers of rounds Krumme, Cybenko,
//!   Venkataraman, "Gossiping in minimal time" (1992).
//! - Symbols: `p` ranks, `m` elements in all blocks together.
//! - Rounds: 5, 6, 7, 7, 7, 8, 8, 9, 9 for `p` = 5, 9, 11, 13, 15, 17, 19, 27, 29; otherwise it is
//!   [fibonacci](super::fibonacci). Whether 21, 23 and 25 ranks have 8 rounds is open.
//! - Scratch: none; a rank never sends and receives in the same round.
//!
//! A message carries what its receiver lacks. But for 5 and 9, the search was for schedules that
//! are their own reversal: `a` sends to `b` in round `t` if and only if `s(b)` sends to `s(a)` in
//! round `t` from the end, where `s` swaps ranks in pairs and leaves one. That makes 15 ranks,
//! whose plain formula was open after minutes, a matter of one.
//!
//! Example, `p = 5`: 0→1, 2→3; 3→1, 4→0; 1→0, 4→3; 0→3, 4→1; 1→2, 3→4.

use super::{few_odd, fibonacci};
use crate::plan::prelude::*;

pub(in crate::plan) const ALLGATHER: Row = Row {
    ports: PortModels::Uni,
    source: "oneport; Krumme, Cybenko, Venkataraman 1992",
    rounds: "those of p+1 ranks for p = 5, 9, 11, 13, 15, 17, 19, 27, 29; else those of fibonacci",
    same_as: |request| (!is_known(request)).then_some(&fibonacci::ALLGATHER),
    ..row::new("synthesized", Kind::Allgather, plan)
};

pub(in crate::plan) const REDUCE_SCATTER: Row = Row {
    same_as: |request| (!is_known(request)).then_some(&fibonacci::REDUCE_SCATTER),
    ..ALLGATHER.also(Kind::ReduceScatter)
};

fn is_known(request: &Request) -> bool {
    few_odd::of(request.ranks).is_some()
}

pub(super) fn plan(request: &Request) -> Result<Schedule> {
    compose::plan(request, |blocks| {
        few_odd::known(&blocks).unwrap_or_default()
    })
}
