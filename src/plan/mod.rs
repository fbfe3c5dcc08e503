//! Planners turn a [`Request`] into a [`Schedule`](crate::Schedule): one file and one row per
//! algorithm.
//!
//! A planner works on *virtual* ranks with the root at 0. Round by round, it states which segment
//! moves from which rank to which; `build::reduction` turns that into programs over real ranks and
//! spans.
//!
//! # What all planners have in common
//!
//! The header of a planner's file gives its source, the algorithm, and of ports, rounds, model
//! time, volume, scratch and restrictions what its row in the registry does not state. `plan`
//! stores the schedule of a request, `reduction` or `programs` generate it on demand, and `time` is
//! the closed form of its model time: a formula, or an evaluator of the plan. Callers use them
//! through the [`registry`]: [`Request::plan`], [`Algorithm::planned`] and
//! [`Algorithm::closed_form`].
//!
//! - *Shapes*, for `p` ranks and `m` elements: the buffer of a rank holds the vector (broadcast,
//!   multicast, reduce, allreduce, scan, reduce_scatter), its own vector followed by the result
//!   (exscan), all blocks in rank order (allgather), its own blocks followed by those received from
//!   the other ranks (alltoall), or its own block followed by all blocks of its subtree (gather,
//!   scatter; a leaf has its own block only). In a gossip it holds the inputs of all ranks, in rank
//!   order. A rank outside a multicast has no buffer. Scratch comes last.
//! - *Units*: spans and segments in elements, volumes in elements sent by all ranks together, times
//!   in the unit of the request's cost model. A message of `n` elements has `n` times
//!   [`Request::element_bytes`] bytes.
//! - *Errors*: the schedule is not valid ([`Schedule::new`](crate::Schedule::new)). Requests that
//!   are not ([`Request::validate`]), and ports, operators and links that an algorithm does not
//!   support, are refused before a planner sees them, by [`Algorithm::accepts`].
//! - *Time of planning*: `O(s + p log p)` for a schedule of `s` steps and spans, unless the header
//!   has a line *Cost of planning*. Streamed planners compute each step when it is asked for.
//! - *`time`* is `None` where the form does not hold. [`Algorithm::closed_form`] never asks for it
//!   where links differ or computation overlaps communication. It takes `O(p + q)` for `q`
//!   segments, or at most the time of planning where it evaluates the plan.
//!
//! This file has the list of all planners: their modules, by family, and the rows of their
//! algorithms. What reads the list is in the [`registry`].
//!
//! [`Algorithm::planned`]: registry::Algorithm::planned
//! [`Algorithm::closed_form`]: registry::Algorithm::closed_form
//! [`Algorithm::accepts`]: registry::Algorithm::accepts

pub(crate) mod build;
pub mod choose {
    //! The choice of the fastest algorithm.

    pub use super::space::evaluate::Choice;
    pub use super::space::found::LeftOut;
    pub use super::space::search::{choose, with_best_segments};
}
pub mod distribution;
mod prelude;
pub mod refusal;
pub mod registry;
mod request;
pub mod segments;
mod split;

#[doc(hidden)]
pub mod space {
    //! What a request leaves open, and the search for the fastest way to do what it asks.
    //!
    //! - `search.rs`: the search, and how a model time is found, call by call.
    //! - `given.rs`: requests as they are given.
    //! - `open.rs`: `Space`, with the uses of ports and the roots that an algorithm leaves open.
    //! - `variant.rs`: `Variant`, its time and what bounds it.
    //! - `evaluate.rs`: `Evaluator`, what a search minimizes, with `Settled` and `Choice`.
    //! - `found.rs`: what a search says of a variant: `Method`, `Time`, `LeftOut`.

    pub(super) mod evaluate;
    pub(super) mod found;
    mod given;
    pub(super) mod open;
    pub(super) mod search;
    pub(super) mod variant;

    pub use self::evaluate::{Evaluator, Model, Offer, Settled};
    pub use self::found::{Method, Time, is_better};
    pub use self::open::{SegmentChoice, Space, Variants};
    pub use self::search::{Ranking, best_first, fastest_first, fastest_variant, settled_variant};
    pub use self::variant::Variant;
}

pub(crate) mod tree {
    //! Planners that reduce along trees, and the allreduces built from them.

    pub(crate) mod arrival_tree;
    pub(crate) mod binary;
    pub(crate) mod bine;
    pub(crate) mod binomial;
    pub(crate) mod dual_root;
    pub(crate) mod kary;
    pub(crate) mod knomial;
    pub(crate) mod linear;
    pub(crate) mod multi_tree;
    pub(crate) mod optimal_binary;
    pub(crate) mod ordered;
    pub(crate) mod postal;
    pub(crate) mod split_binary;
    pub(crate) mod two_tree;
    pub(crate) mod unordered;
}

pub(crate) mod pipeline {
    //! Pipelined planners: the vector travels in segments.

    pub(crate) mod bi_greedy;
    pub(crate) mod chain;
    pub mod out_of_order;
    pub(crate) mod scan;
    pub mod uni_greedy;
}

pub(crate) mod exchange {
    //! Planners that work in rounds: in each round a rank sends at most one message and receives at
    //! most one.

    pub(crate) mod all_pairs;
    pub(crate) mod barrier;
    pub(crate) mod birkhoff;
    pub(crate) mod bruck;
    pub(crate) mod bruck_alltoall;
    pub(crate) mod butterfly;
    mod by_distance;
    pub(crate) mod composed;
    pub(crate) mod doubling_allgather;
    pub(crate) mod doubling_allreduce;
    pub(crate) mod doubling_exscan;
    pub(crate) mod doubling_scan;
    pub(crate) mod edge_colouring;
    mod few_odd;
    pub(crate) mod few_scan;
    pub(crate) mod fibonacci;
    pub(crate) mod fibonacci_census;
    pub(crate) mod gossip;
    pub(crate) mod halving;
    pub(crate) mod linear;
    pub(crate) mod list_scheduling;
    pub(crate) mod neighbor_exchange;
    pub(crate) mod pairwise;
    pub(crate) mod pat;
    pub(crate) mod pipelined_ring;
    pub(crate) mod rabenseifner;
    pub(crate) mod recursive_multiplying;
    pub(crate) mod ring;
    pub(crate) mod segmented_ring;
    pub(crate) mod sparbit;
    pub(crate) mod straggler;
    pub(crate) mod swing;
    pub(crate) mod synthesized;
    pub(crate) mod van_de_geijn;
}

pub(crate) mod circulant {
    //! Planners on circulant graphs, in which rank `r` sends to `r + skip` and receives from `r -
    //! skip`, modulo `p`, for `ceil(log2 p)` values of `skip`.

    pub(crate) mod allgather;
    pub mod allgatherv;
    pub(crate) mod census;
    pub(crate) mod n_blocks;
    mod phases;
    pub(crate) mod reduce_scatter_gather;
    pub mod schedule;
    pub mod table;
    pub mod tables;
}

pub(crate) mod gather {
    //! Irregular gather and scatter: planners of trees for blocks of different sizes.
    //!
    //! Rank `i` holds `m_i` bytes; at the end the root holds all blocks in rank order. A scatter is
    //! the reverse and costs the same. Every planner here makes a [`GatherTree`] for a
    //! [`GatherProblem`]; the tree computes its completion time and makes the schedules.
    //!
    //! The functions that make trees take a problem of `p` blocks and return a tree over its ranks.
    //! Sizes are in bytes, times in the unit of the problem's costs. A function without *Errors*
    //! always succeeds; it returns a `Result` because the registry has one type for all of them.
    //!
    //! Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives" and
    //! "Practical, Linear-time, Fully Distributed Algorithms for Irregular Gather and Scatter".
    //!
    //! The examples `gather_classes` (classes of trees against each other, and against padding all
    //! blocks to the largest) and `gather_guidelines` (performance guidelines, in the model and
    //! measured) print results and show them in their own documentation.

    pub mod binary;
    pub mod binomial;
    pub(in crate::plan) mod decreasing;
    pub mod degrading;
    pub(in crate::plan) mod earliest;
    pub mod heterogeneous;
    pub mod linear;
    pub mod noncontiguous;
    pub mod optimal;
    pub mod ported;
    mod problem;
    pub mod rank_ordered;
    mod row;
    mod subsets;
    pub(in crate::plan) mod ternary;
    mod tree;
    mod tree_costs;
    pub mod two_groups;
    pub mod weakly_ordered;

    pub use self::problem::GatherProblem;
    use self::problem::{ensure_few, fastest};
    pub use self::tree::{Child, GatherTree};
    pub(in crate::plan) use self::tree_costs::TreeCosts;
}

pub(crate) mod nodes {
    //! Planners for machines with [nodes](crate::CostModel::nodes), whose links within a node cost
    //! something else than those between nodes.

    pub(crate) mod compose;
    mod embed;
    mod phases;
}

#[doc(hidden)]
pub use self::build::reduction::Transfer;
use self::registry::Row;
use self::registry::row::{broadcast, multicast};
pub use self::request::Request;
pub use self::split::Segments;
pub(crate) use self::split::{consecutive, cut_from_the_end, evenly};

/// The rows of all algorithms, by collective. Among equal times the chooser takes the first.
const ALGORITHMS: &[Row] = &[
    tree::binomial::REDUCE,
    tree::bine::REDUCE,
    tree::knomial::REDUCE,
    tree::linear::REDUCE,
    tree::ordered::REDUCE,
    tree::binary::REDUCE,
    tree::two_tree::REDUCE,
    pipeline::chain::REDUCE,
    tree::kary::REDUCE,
    tree::multi_tree::REDUCE,
    tree::split_binary::REDUCE,
    pipeline::uni_greedy::REDUCE,
    pipeline::out_of_order::REDUCE,
    pipeline::bi_greedy::REDUCE,
    exchange::butterfly::REDUCE,
    circulant::n_blocks::REDUCE,
    circulant::reduce_scatter_gather::REDUCE,
    exchange::van_de_geijn::REDUCE,
    exchange::van_de_geijn::RING_REDUCE,
    exchange::composed::REDUCE,
    tree::postal::REDUCE,
    tree::arrival_tree::REDUCE,
    tree::unordered::REDUCE,
    tree::optimal_binary::REDUCE,
    broadcast(tree::binomial::REDUCE),
    broadcast(tree::bine::REDUCE),
    broadcast(tree::knomial::REDUCE),
    broadcast(tree::linear::REDUCE),
    tree::ordered::BROADCAST,
    broadcast(tree::binary::REDUCE),
    broadcast(tree::two_tree::REDUCE),
    pipeline::chain::BROADCAST,
    tree::kary::BROADCAST,
    tree::multi_tree::BROADCAST,
    tree::split_binary::BROADCAST,
    broadcast(pipeline::uni_greedy::REDUCE),
    broadcast(pipeline::out_of_order::REDUCE),
    broadcast(pipeline::bi_greedy::REDUCE),
    exchange::butterfly::BROADCAST,
    circulant::n_blocks::BROADCAST,
    broadcast(circulant::reduce_scatter_gather::REDUCE),
    broadcast(exchange::van_de_geijn::REDUCE),
    exchange::van_de_geijn::RING_BROADCAST,
    broadcast(tree::postal::REDUCE),
    broadcast(tree::arrival_tree::REDUCE),
    tree::unordered::BROADCAST,
    tree::optimal_binary::BROADCAST,
    multicast(&broadcast(tree::binomial::REDUCE)),
    multicast(&broadcast(tree::linear::REDUCE)),
    multicast(&broadcast(tree::binary::REDUCE)),
    multicast(&pipeline::chain::BROADCAST),
    multicast(&broadcast(pipeline::uni_greedy::REDUCE)),
    multicast(&broadcast(pipeline::bi_greedy::REDUCE)),
    multicast(&circulant::n_blocks::BROADCAST),
    multicast(&exchange::butterfly::BROADCAST),
    multicast(&tree::unordered::BROADCAST),
    circulant::census::ALLREDUCE,
    circulant::allgather::ALLREDUCE,
    circulant::n_blocks::ALLREDUCE,
    exchange::doubling_allreduce::ALLREDUCE,
    exchange::recursive_multiplying::ALLREDUCE,
    exchange::rabenseifner::ALLREDUCE,
    exchange::swing::ALLREDUCE,
    exchange::swing::WHOLE_ALLREDUCE,
    exchange::bruck::ALLREDUCE,
    exchange::fibonacci_census::ALLREDUCE,
    exchange::fibonacci::ALLREDUCE,
    exchange::composed::ALLREDUCE,
    exchange::ring::ALLREDUCE,
    exchange::segmented_ring::ALLREDUCE,
    exchange::all_pairs::ONE_SHOT,
    exchange::all_pairs::TWO_SHOT,
    tree::binomial::ALLREDUCE,
    tree::linear::ALLREDUCE,
    tree::binary::ALLREDUCE,
    tree::split_binary::ALLREDUCE,
    tree::two_tree::ALLREDUCE,
    pipeline::chain::ALLREDUCE,
    pipeline::uni_greedy::ALLREDUCE,
    pipeline::out_of_order::ALLREDUCE,
    tree::dual_root::ALLREDUCE,
    exchange::gossip::ALLREDUCE,
    exchange::straggler::ALLREDUCE,
    circulant::allgather::ALLGATHER,
    circulant::allgatherv::ALLGATHER,
    exchange::doubling_allgather::ALLGATHER,
    exchange::bruck::ALLGATHER,
    exchange::fibonacci::ALLGATHER,
    exchange::sparbit::ALLGATHER,
    exchange::swing::ALLGATHER,
    exchange::pat::ALLGATHER,
    exchange::neighbor_exchange::ALLGATHER,
    exchange::ring::ALLGATHER,
    exchange::pipelined_ring::ALLGATHER,
    exchange::all_pairs::ALLGATHER,
    exchange::linear::ALLGATHER,
    exchange::synthesized::ALLGATHER,
    circulant::allgather::REDUCE_SCATTER,
    circulant::allgatherv::REDUCE_SCATTER,
    exchange::halving::REDUCE_SCATTER,
    exchange::bruck::REDUCE_SCATTER,
    exchange::swing::REDUCE_SCATTER,
    exchange::pat::REDUCE_SCATTER,
    exchange::fibonacci::REDUCE_SCATTER,
    exchange::ring::REDUCE_SCATTER,
    exchange::all_pairs::REDUCE_SCATTER,
    exchange::linear::REDUCE_SCATTER,
    exchange::synthesized::REDUCE_SCATTER,
    exchange::pairwise::ALLTOALL,
    exchange::bruck_alltoall::ALLTOALL,
    exchange::edge_colouring::ALLTOALL,
    exchange::list_scheduling::ALLTOALL,
    exchange::birkhoff::ALLTOALL,
    exchange::gossip::ALLTOALL,
    exchange::barrier::DISSEMINATION,
    exchange::barrier::FIBONACCI,
    exchange::barrier::SYNTHESIZED,
    exchange::barrier::TREE,
    exchange::doubling_scan::SCAN,
    pipeline::scan::SCAN,
    exchange::gossip::SCAN,
    exchange::few_scan::SCAN,
    exchange::doubling_exscan::DOUBLING,
    exchange::doubling_exscan::SHIFTED,
    exchange::doubling_exscan::ONE_TWO_THREE,
    pipeline::scan::EXSCAN,
    exchange::gossip::EXSCAN,
    exchange::few_scan::EXSCAN,
    gather::linear::GATHER,
    gather::binomial::OBLIVIOUS_GATHER,
    gather::binomial::BEST_ROOT_GATHER,
    gather::binomial::ADAPTIVE_GATHER,
    gather::binary::GATHER,
    gather::optimal::GATHER,
    gather::rank_ordered::GATHER,
    gather::weakly_ordered::GATHER,
    gather::two_groups::GATHER,
    gather::degrading::GATHER,
    gather::ported::ADAPTIVE_GATHER,
    gather::ported::GATHER,
    gather::noncontiguous::GATHER,
    gather::decreasing::GATHER,
    gather::ported::KNOMIAL_GATHER,
    gather::ternary::GATHER,
    gather::linear::SCATTER,
    gather::binomial::OBLIVIOUS_SCATTER,
    gather::binomial::BEST_ROOT_SCATTER,
    gather::binomial::ADAPTIVE_SCATTER,
    gather::binary::SCATTER,
    gather::optimal::SCATTER,
    gather::rank_ordered::SCATTER,
    gather::weakly_ordered::SCATTER,
    gather::two_groups::SCATTER,
    gather::degrading::SCATTER,
    gather::ported::ADAPTIVE_SCATTER,
    gather::ported::SCATTER,
    gather::noncontiguous::SCATTER,
    gather::decreasing::SCATTER,
    gather::ported::KNOMIAL_SCATTER,
    gather::ternary::SCATTER,
];

/// The rows of the algorithms for machines with nodes. They are candidates only there.
const COMPOSITIONS: &[Row] = &nodes::compose::ROWS;
