//! The registry's rows of gather and scatter trees.

use super::{
    GatherTree, Problem, binary, binomial, degrading, linear, noncontiguous, optimal, ported,
    rank_ordered, two_groups, weakly_ordered,
};
use crate::collective::Kind;
use crate::error::Result;
use crate::plan::Request;
use crate::plan::registry::{Algorithm, Planner, PortModels};
use crate::schedule::Schedule;

/// Makes a tree for a problem.
type Planned = fn(&Problem) -> Result<GatherTree>;

fn gather(request: &Request, tree: Planned) -> Result<Schedule> {
    let tree = tree(&Problem::of(request)?)?;
    tree.gather(&request.block_sizes(), request.ports)
}

/// Along links the other way: a scatter's messages go where a gather's come from.
fn scatter(request: &Request, tree: Planned) -> Result<Schedule> {
    let request = Request {
        cost: request.cost.clone().reversed_links()?,
        ..request.clone()
    };
    let tree = tree(&Problem::of(&request)?)?;
    tree.scatter(&request.block_sizes(), request.ports)
}

/// The time of the tree, where it is that of the schedule: copies overlap nothing, links are the
/// same in both directions.
fn time(request: &Request, tree: Planned) -> Option<f64> {
    if !request.closed_forms_hold() {
        return None;
    }
    let problem = Problem::of(request).ok()?;
    Some(problem.time(&tree(&problem).ok()?))
}

/// No tables.
fn none(_ranks: usize) -> u64 {
    0
}

/// A number for each pair of ranks.
fn for_each_pair(ranks: usize) -> u64 {
    const BYTES: u64 = 6;
    (ranks as u64).saturating_pow(2).saturating_mul(BYTES)
}

/// A row for the gather and one for the scatter by the same tree.
macro_rules! rows {
    ($($gather:ident, $scatter:ident: $name:literal, $tree:expr, $tables:expr, $source:literal, $rounds:literal, $volume:literal, $restrictions:literal;)*) => {$(
        pub(in crate::plan) const $gather: Algorithm = Algorithm {
            name: $name,
            collective: Kind::Gather,
            ports: PortModels::Both,
            commutative_only: false,
            // The only restriction that any of them has.
            uniform_links_only: !$restrictions.is_empty(),
            regular_only: false,
            segmented: false,
            transfers: |p, _| p,
            tables: $tables,
            source: $source,
            rounds: $rounds,
            volume: $volume,
            restrictions: $restrictions,
            planner: Planner::Direct(|request| gather(request, $tree)),
            time: Some(|request| time(request, $tree)),
        };
        pub(in crate::plan) const $scatter: Algorithm = Algorithm {
            collective: Kind::Scatter,
            planner: Planner::Direct(|request| scatter(request, $tree)),
            ..$gather
        };
    )*};
}

rows! {
    LINEAR, SCATTER_LINEAR: "linear", linear::tree, none, "folklore", "p-1", "sum of all blocks but the root's", "";
    OBLIVIOUS, SCATTER_OBLIVIOUS: "oblivious", binomial::oblivious, none, "folklore; Träff, optimal gather trees, section 5.1",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    OBLIVIOUS_BEST_ROOT, SCATTER_OBLIVIOUS_BEST_ROOT: "oblivious-best-root", binomial::oblivious_best_root, none, "oneport",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    ADAPTIVE, SCATTER_ADAPTIVE: "adaptive", binomial::adaptive, none, "Träff, adaptive gather trees, Lemmas 1 and 2",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    BINARY, SCATTER_BINARY: "binary", binary::tree, for_each_pair, "Träff, optimal gather trees, Fig. 7; O(p^2) by oneport",
        "those of the best binary tree in rank order", "those of that tree", "";
    OPTIMAL, SCATTER_OPTIMAL: "optimal", optimal::tree, for_each_pair, "Träff, optimal gather trees, Fig. 5 and 6; O(p^2) by oneport",
        "those of the best tree whose received ranges touch", "those of that tree", "";
    RANK_ORDERED, SCATTER_RANK_ORDERED: "rank-ordered", rank_ordered::tree, for_each_pair, "Träff, optimal gather trees, Definition 3; O(p^2) by oneport",
        "those of the best tree in rank order", "those of that tree", "links that cost the same";
    WEAKLY_ORDERED, SCATTER_WEAKLY_ORDERED: "weakly-ordered", weakly_ordered::tree, for_each_pair, "Träff, optimal gather trees, after Definition 3; oneport",
        "those of the best tree of consecutive ranks (p <= 12), or one at least as good as optimal and rank-ordered", "those of that tree", "";
    TWO, SCATTER_TWO: "two", two_groups::tree, none, "Träff, optimal gather trees, section 5.2",
        "ceil(log2 p)+1 at most", "at most ceil(log2 p)+1 times each block", "";
    DEGRADING, SCATTER_DEGRADING: "degrading", degrading::tree, none, "Träff, adaptive gather trees, section 3",
        "ceil(log2 p) to p-1", "at most that of adaptive", "";
    PORTED_ADAPTIVE, SCATTER_PORTED_ADAPTIVE: "ported-adaptive", ported::adaptive, none, "Träff, adaptive gather trees, after Theorem 1",
        "ceil(log_{k+1} p)", "at most ceil(log_{k+1} p) times each block", "";
    PORTED, SCATTER_PORTED: "ported", ported::tree, for_each_pair, "oneport",
        "those of the best tree (p <= 10, free copies), or one at least as good as ported-adaptive", "those of that tree", "";
    UNORDERED, SCATTER_UNORDERED: "unordered", noncontiguous::tree, for_each_pair, "Träff, optimal gather trees, Proposition 2; oneport",
        "those of the best of all trees (p <= 12), or one at least as good as optimal", "those of that tree", "";
}
