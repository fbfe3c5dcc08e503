//! Optimal adjacent gather trees.
//!
//! - Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives", Fig. 5 and 6;
//!   the `O(p^2)` algorithm is our own.
//! - Symbols: `p` ranks, blocks `m_i`, `S[i,j] = m_i + ... + m_j`, `comm(m) = alpha + beta m`,
//!   `comm(0) = 0`; `gamma` is the cost per byte of a local copy; `C[i,j]` is the time of the best
//!   tree over the ranks `i..=j`.
//! - Class: optimal among the trees in which every range that a rank receives is adjacent to the
//!   ranks it already holds.
//! - Time: `O(p^2)` for linear costs with `gamma <= beta`, otherwise `O(p^3)`; on a heterogeneous
//!   platform see [`super::heterogeneous`].
//! - Memory: 8 bytes per range, and 1/64 of that for the sliding minima.
//!
//! `C[i,i] = 0`, and for `i < j` it is the minimum of
//!
//! - root `i`: `max(gamma m_i, C[i+1,j]) + comm(S[i+1,j])`,
//! - root `j`: `C[i,j-1] + comm(S[i,j-1]) + gamma m_j`,
//! - root in `[i,k]`, `i < k < j`: `max(C[i,k], C[k+1,j]) + comm(S[k+1,j])`,
//! - root in `[k+1,j]`, `i <= k < j - 1`: `max(C[i,k], C[k+1,j]) + comm(S[i,k])`.
//!
//! With a given root `r`, a range that contains `r` is rooted there.
//!
//! Example, `p = 3`, `m = 1, 2, 3`, `alpha = 1`, `beta = 1`, `gamma = 0`, free root: 1→0 takes 3,
//! or 0→1 takes 2; then 1→2 makes it `2 + 4 = 6`. But 1→2 first, then 0→2, takes `3 + 2 = 5`.
//!
//! # Why O(p²) is right
//!
//! Let `0 <= gamma <= beta` and `alpha >= 0`. Sizes are arbitrary; blocks may be empty.
//!
//! **Left removal.** `C[i+1,j] <= C[i,j]` for `i < j`. The proof is by induction on the length, by
//! cases of the best option for `[i,j]`:
//!
//! - Root `i`: it has received `[i+1,j]`, so `C[i+1,j]` is part of its time.
//! - Root `j`: `C[i,j-1] >= C[i+1,j-1]`, and the message is no shorter (for `j = i + 1` there is
//!   nothing to show).
//! - Root in `[k+1,j]`: for `k = i` the time is at least `C[i+1,j]`; otherwise
//!   `C[i+1,k] <= C[i,k]`.
//! - Root in `[i,k]`: for `k > i + 1`, `C[i+1,k] <= C[i,k]`. For `k = i + 1` let `i + 1` be the
//!   root of `[i+1,j]`: `max(gamma m_{i+1}, C[i+2,j]) + comm(S[i+2,j])`. Here
//!   `gamma m_{i+1} <= C[i,i+1]`, whichever of the two ranks is the root, since a message of
//!   `m_{i+1}` takes at least `beta m_{i+1}`.
//!
//! **Right removal**, `C[i,k] <= C[i,j]` for `k < j`, holds as well, except where `m_k > 0` and
//! `m_{k+1} = ... = m_j = 0`: an *exceptional* pair `(k,j)`. In that case `k` may be the root,
//! receive an empty block, copy its own block meanwhile, and receive `[i,k-1]` last. Without the
//! empty block its copy would come after all messages (the published convention: the last rank as
//! root copies after its first receive). For exceptional pairs `C[i,k] <= C[i,j] + alpha`. Both
//! inequalities are proved by induction on the length of `[i,j]`, for `i < k` (`C[i,i] = 0`). First
//! for a pair that is not exceptional:
//!
//! 1. Root `i`: `C[i+1,k] <= C[i+1,j]` (or `i + 1 = k`, where it is 0), and the message is no
//!    shorter.
//! 2. Root `j`: if `(k,j-1)` is not exceptional, or `k = j - 1`, then `C[i,k] <= C[i,j-1]`.
//!    Otherwise let `k` be the root: `C[i,k-1] + comm(S[i,k-1]) + gamma m_k`. Here
//!    `C[i,k-1] <= C[i,j-1]`, because `m_k > 0` makes `(k-1,j-1)` not exceptional, and the rest is
//!    at most `comm(S[i,k])`, which is part of the time.
//! 3. Root in `[i,l]`: for `l < k`, `C[l+1,k] <= C[l+1,j]`. For `l >= k` the time is at least
//!    `C[i,l] + comm(S[l+1,j])`, which suffices if `(k,l)` is not exceptional or `l = k`. If
//!    `(k,l)` is exceptional, then `S[l+1,j] > 0`, the message takes at least `alpha`, and
//!    `C[i,k] <= C[i,l] + alpha`.
//! 4. Root in `[l+1,j]`: for `l + 1 < k`, `C[l+1,k] <= C[l+1,j]`. For `l >= k` as in 3: the message
//!    carries `m_k`, or `(k,l)` is not exceptional. For `l + 1 = k` the time is
//!    `T = max(C[i,k-1], C[k,j]) + comm(S[i,k-1])`.
//!    - If `m_k = 0`, let `k` be the root: `C[i,k-1] + comm(S[i,k-1])`.
//!    - If `m_k > 0`, some other block of `[k,j]` is not empty, so `C[k,j] >= alpha + gamma m_k`:
//!      either rank `k` is the root, copies, and receives a message, or its block is sent. Let
//!      `q < k` be the last rank before `k` with `m_q > 0`. (If there is none, `k` is the root,
//!      copies and receives nothing: `gamma m_k`.) Let `k` be the root, receive the empty blocks
//!      between them, then `q`, then `[i,q-1]`, and copy before `q` or right after it. This takes
//!      at most `max(C[i,q-1], alpha + beta m_q + gamma m_k) + comm(S[i,q-1])`. With the first
//!      argument it is at most `C[i,k-1] + comm(S[i,k-1])`, because `(q-1,k-1)` is not exceptional.
//!      With the second it is at most `2 alpha + beta S[i,k-1] + gamma m_k <= T`. (For `q = i`
//!      nothing is left to receive after it: `alpha + beta m_q + gamma m_k <= T`.)
//!
//! For an exceptional pair with `C[i,j] + alpha` the same cases suffice: in 2 to 4 the induction is
//! used with `+ alpha` on one argument of the maximum, and in the last case `C[k,j] >= gamma m_k`
//! is enough.
//!
//! So `B_k = C[k+1,j]` never rises with `k`. `A_k = C[i,k]` never falls along the `k` with
//! `m_k > 0`, nor along those with `m_k = 0`: two *classes*, or one if no block is empty.
//! `U_k = comm(S[i,k])` never falls, and `V_k = comm(S[k+1,j])` never rises.
//!
//! **The best split.** For `i < k < j - 1` the two options of `k` are `max(A_k, B_k) + U_k` and
//! `max(A_k, B_k) + V_k`. Within a class let the *crossover* `x` be the first `k` with
//! `A_k >= B_k`.
//!
//! - Before `x` the option `B_k + V_k` is best at the last `k` before `x`. The option `B_k + U_k`
//!   is `C[k+1,j] + beta P[k+1]` less `beta P[i]`, plus `alpha`, with `P` the prefix sums: the
//!   minimum over a window of values that belong to column `j`.
//! - From `x` on the option `A_k + U_k` is best at `x`. The option `A_k + V_k` is
//!   `C[i,k] - beta P[k+1]`, plus `beta P[j+1] + alpha`: the minimum over a window of values of row
//!   `i`.
//!
//! When `i` goes down, `A_k` rises (left removal), so `x` goes down, and new `k` enter at the low
//! end of the column's window. When `j` goes up, new `k` enter at the high end of the row's window.
//! As `B_k` rises from one column to the next of the same kind (right removal), `x` goes up among
//! the columns `j` with `m_j > 0`, and among those with `m_j = 0`; each of the two kinds has its
//! own windows. So every `k` enters a window once and leaves it once: `O(1)` amortised time per
//! entry.
//!
//! `comm(0) = 0` breaks these sums where `S[i,k] = 0` or `S[k+1,j] = 0`: they are then too large by
//! `alpha`, never too small, and a `k` with such a sum may hide others only if its true time is no
//! more than theirs. If `S[i,k] = 0`, the true time is `C[k+1,j]`. The option in which rank `i`,
//! alone and empty, is received takes `C[i+1,j]`, which is the same, by left removal and because an
//! empty block in front costs nothing. If `S[k+1,j] = 0`, the true time is `C[i,k]`. The option in
//! which rank `j`, alone and empty, is received takes `C[i,j-1] <= C[i,k]`, as empty blocks at the
//! end cost nothing. Both options are considered for every range.
//!
//! **Given root** `r`. Let `D[i,j]` be the time of ranges that contain it. The same two removals
//! hold by the same cases. For splits `k >= r` the option is
//! `max(D[i,k], C[k+1,j]) + comm(S[k+1,j])`: before `D[i,k] >= C[k+1,j]` the last `k` is best, from
//! there on a window of row `i`. For `k < r` it is `max(C[i,k], D[k+1,j]) + comm(S[i,k])`: from
//! `C[i,k] >= D[k+1,j]` on the first `k` is best, before it a window of column `j`.
//!
//! With `gamma > beta` left removal fails for two ranks already: sending a block may be cheaper
//! than copying it.

mod cubic;
mod quadratic;
pub(super) mod table;

use super::{GatherProblem, GatherTree, ensure_few};
use crate::budget::trees::{MAX_CUBIC, MAX_LINKED, MAX_QUADRATIC};
use crate::error::{Error, Result};
use crate::plan::gather::row::{table_of_pairs, tree_rows};

tree_rows!(
    GATHER, SCATTER: "optimal", tree {
        best_root: crate::plan::registry::BestRoot::Own,
        max_ranks_with_links: Some(MAX_LINKED),
        tables: table_of_pairs,
        source: "Träff, optimal gather trees, Fig. 5 and 6; O(p^2) by oneport",
        rounds: "those of the best tree whose received ranges touch",
        volume: "those of that tree",
    }
);

/// The dynamic program that computes the best tree, by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicProgram {
    /// `O(p^2)`: for linear costs with `gamma_copy <= beta`.
    Quadratic,
    /// `O(p^3)`: for any costs that are the same for all ranks.
    Cubic,
}

impl DynamicProgram {
    /// The fastest one that is correct for `problem`.
    pub fn of(problem: &GatherProblem) -> DynamicProgram {
        let cost = problem.cost();
        if cost.linear().is_some_and(|c| c.gamma_copy <= c.beta) {
            DynamicProgram::Quadratic
        } else {
            DynamicProgram::Cubic
        }
    }

    /// As [`DynamicProgram::of`], for the best tree of another class.
    pub(super) fn for_class(problem: &GatherProblem, class: &str) -> Result<DynamicProgram> {
        let (p, method) = (problem.ranks(), DynamicProgram::of(problem));
        let max = match method {
            DynamicProgram::Quadratic => MAX_QUADRATIC,
            DynamicProgram::Cubic => MAX_CUBIC,
        };
        let what = format!("optimal {class} trees are computed with these costs");
        ensure_few(p, max, &what)?;
        Ok(method)
    }
}

/// The best adjacent tree, by the fastest method that is correct for the costs. See the
/// [module documentation](self) for time and memory.
pub fn tree(problem: &GatherProblem) -> Result<GatherTree> {
    if problem.cost().links().is_some() {
        return super::heterogeneous::tree(problem);
    }
    tree_by(problem, DynamicProgram::of(problem))
}

pub(crate) fn tree_by(problem: &GatherProblem, method: DynamicProgram) -> Result<GatherTree> {
    Ok(fill_table(problem, method)?.tree())
}

/// The completion time of the best adjacent tree, computed by `method`.
pub fn time_by(problem: &GatherProblem, method: DynamicProgram) -> Result<f64> {
    Ok(fill_table(problem, method)?.at(0, problem.ranks() - 1))
}

fn fill_table(problem: &GatherProblem, method: DynamicProgram) -> Result<table::RangeTimes<'_>> {
    let p = problem.ranks();
    let (max, name, why) = match method {
        DynamicProgram::Quadratic => (MAX_QUADRATIC, "O(p^2)", ""),
        DynamicProgram::Cubic => (
            MAX_CUBIC,
            "O(p^3)",
            " (gamma_copy > beta and piecewise costs need it)",
        ),
    };
    ensure_few(p, max, &format!("the {name} algorithm is used{why}"))?;
    if problem.cost().links().is_some() {
        return Err(Error::usage("the links' costs differ"));
    }
    Ok(match method {
        DynamicProgram::Quadratic if DynamicProgram::of(problem) == DynamicProgram::Cubic => {
            return Err(Error::usage(
                "the O(p^2) algorithm needs linear costs with gamma_copy <= beta",
            ));
        }
        DynamicProgram::Quadratic => quadratic::fill(problem, problem.root()),
        DynamicProgram::Cubic => cubic::fill(problem, problem.root()),
    })
}
