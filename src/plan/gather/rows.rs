//! The registry's rows of gather and scatter trees.

use super::{GatherTree, Problem, binomial, linear, optimal};
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

/// The time of the tree, where it is that of the schedule: copies overlap nothing, links are the same in both directions.
fn time(request: &Request, tree: Planned) -> Option<f64> {
    if !request.closed_forms_hold() {
        return None;
    }
    let problem = Problem::of(request).ok()?;
    Some(problem.time(&tree(&problem).ok()?))
}

/// A row for the gather and one for the scatter by the same tree.
macro_rules! rows {
    ($($gather:ident, $scatter:ident: $name:literal, $tree:expr, $source:literal, $rounds:literal, $volume:literal, $restrictions:literal;)*) => {$(
        pub(in crate::plan) const $gather: Algorithm = Algorithm {
            name: $name,
            collective: Kind::Gather,
            ports: PortModels::Both,
            commutative_only: false,
            regular_only: false,
            segmented: false,
            transfers: |p, _| p,
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
    LINEAR, SCATTER_LINEAR: "linear", linear::tree, "folklore", "p-1", "sum of all blocks but the root's", "";
    OBLIVIOUS, SCATTER_OBLIVIOUS: "oblivious", binomial::oblivious, "folklore; Träff, optimal gather trees, section 5.1",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    OBLIVIOUS_BEST_ROOT, SCATTER_OBLIVIOUS_BEST_ROOT: "oblivious-best-root", binomial::oblivious_best_root, "oneport",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    ADAPTIVE, SCATTER_ADAPTIVE: "adaptive", binomial::adaptive, "Träff, adaptive gather trees, Lemmas 1 and 2",
        "ceil(log2 p)", "at most ceil(log2 p) times each block", "";
    OPTIMAL, SCATTER_OPTIMAL: "optimal", optimal::tree, "Träff, optimal gather trees, Fig. 5 and 6; O(p^2) by oneport",
        "those of the best tree whose received ranges touch", "those of that tree", "";
}
