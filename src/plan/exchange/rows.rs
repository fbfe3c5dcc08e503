//! The registry's rows of exchanges.

use super::{
    bruck, bruck_alltoall, butterfly, doubling_allgather, doubling_allreduce, doubling_scan,
    halving, linear, pairwise, rabenseifner, ring, van_de_geijn,
};
use crate::collective::Kind;
use crate::plan::registry::row::{
    broadcast, for_each_pair, for_each_pair_twice, logarithmic_twice, parts_of_halves,
    reduce_scatter, row,
};
use crate::plan::registry::{Algorithm, Planner};

pub(in crate::plan) const BUTTERFLY: Algorithm = Algorithm {
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 1 more (bi); about 3 floor(log2 p) (uni)",
    volume: "(p-1) m + floor(log2 p)/2 m",
    time: Some(butterfly::time),
    ..row("butterfly", Kind::Reduce, butterfly::plan)
};

pub(in crate::plan) const RING: Algorithm = Algorithm {
    transfers: for_each_pair,
    source: "folklore",
    rounds: "p-1 (bi), 2(p-1) (uni, p even)",
    volume: "(p-1) m",
    planner: Planner::Streamed(ring::allgather_programs),
    time: Some(ring::time),
    ..row("ring", Kind::Allgather, ring::plan)
};

pub(in crate::plan) const LINEAR: Algorithm = Algorithm {
    transfers: |p, _| p.saturating_mul(2),
    source: "folklore",
    rounds: "2(p-1)",
    volume: "p m - m_0",
    time: Some(linear::time),
    ..row("linear", Kind::Allgather, linear::plan)
};

pub(in crate::plan) const RING_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: for_each_pair_twice,
    rounds: "2(p-1) (bi), 4(p-1) (uni; p odd: more)",
    volume: "2(p-1) m",
    planner: Planner::Streamed(ring::allreduce_programs),
    time: Some(ring::allreduce_time),
    ..RING
};

pub(in crate::plan) const DOUBLING_ALLGATHER: Algorithm = Algorithm {
    source: "folklore",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); twice that (uni)",
    volume: "(p-1) m",
    time: Some(doubling_allgather::time),
    ..row(
        "recursive-doubling",
        Kind::Allgather,
        doubling_allgather::plan,
    )
};

pub(in crate::plan) const DOUBLING_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    volume: "n floor(log2 p) m + 2(p-n) m, n = 2^floor(log2 p)",
    planner: Planner::Direct(doubling_allreduce::plan),
    time: Some(doubling_allreduce::time),
    ..DOUBLING_ALLGATHER
};

pub(in crate::plan) const RABENSEIFNER: Algorithm = Algorithm {
    transfers: logarithmic_twice,
    source: "Rabenseifner 2004",
    rounds: "2 floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "2(p-1) m",
    time: Some(rabenseifner::time),
    ..row("rabenseifner", Kind::Allreduce, rabenseifner::plan)
};

pub(in crate::plan) const HALVING: Algorithm = Algorithm {
    transfers: parts_of_halves,
    source: "folklore; blocks chosen so that operands stay in order",
    rounds: "floor(log2 p), if p is not a power of two 2 more (bi); about twice that (uni)",
    volume: "(n-1) m + (p-n)(1+1/p) m, n = 2^floor(log2 p)",
    // Each rank remembers when the blocks of its messages were last used.
    tables: |p| (p as u64).saturating_mul(p as u64).saturating_mul(32),
    planner: Planner::Streamed(halving::programs),
    time: Some(halving::time),
    ..row("recursive-halving", Kind::ReduceScatter, halving::plan)
};

pub(in crate::plan) const BRUCK: Algorithm = Algorithm {
    source: "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "(p-1) m",
    time: Some(bruck::time),
    ..row("bruck", Kind::Allgather, bruck::plan)
};

pub(in crate::plan) const BRUCK_ALLREDUCE: Algorithm = Algorithm {
    collective: Kind::Allreduce,
    commutative_only: true,
    transfers: logarithmic_twice,
    source: "Bruck et al. 1997, there and back",
    rounds: "2 ceil(log2 p) (bi), 4 ceil(log2 p) (uni; p not a power of two: more)",
    volume: "2(p-1) m",
    planner: Planner::Direct(bruck::allreduce),
    time: Some(bruck::allreduce_time),
    ..BRUCK
};

pub(in crate::plan) const BRUCK_ALLTOALL: Algorithm = Algorithm {
    collective: Kind::Alltoall,
    // Each message has many spans: what they take to hold counts.
    transfers: for_each_pair,
    volume: "about p ceil(log2 p)/2 m",
    // Each rank remembers when each block was last used.
    tables: |p| (p as u64).saturating_mul(p as u64).saturating_mul(80),
    planner: Planner::Streamed(bruck_alltoall::programs),
    time: Some(bruck_alltoall::time),
    ..BRUCK
};

pub(in crate::plan) const PAIRWISE: Algorithm = Algorithm {
    transfers: for_each_pair,
    source: "folklore; on one port, a 1-factorisation (Lucas 1883)",
    rounds: "p-1 (bi), 2(p-1) (uni; p odd: 2p)",
    volume: "(p-1) m",
    planner: Planner::Streamed(pairwise::programs),
    time: Some(pairwise::time),
    ..row("pairwise", Kind::Alltoall, pairwise::plan)
};

pub(in crate::plan) const VAN_DE_GEIJN: Algorithm = Algorithm {
    commutative_only: true,
    transfers: logarithmic_twice,
    source: "van de Geijn et al. 1994 (scatter, allgather; Bruck's here), backwards for reduce",
    rounds: "2 ceil(log2 p) (bi), about 3 ceil(log2 p) (uni)",
    volume: "(p-1) m + about ceil(log2 p)/2 m",
    time: Some(van_de_geijn::time),
    ..row("van-de-geijn", Kind::Reduce, van_de_geijn::plan)
};

pub(in crate::plan) const VAN_DE_GEIJN_RING: Algorithm = Algorithm {
    name: "van-de-geijn-ring",
    transfers: |p, _| for_each_pair(p, 1).saturating_add(p),
    source: "van de Geijn et al. 1994 (scatter, ring allgather), backwards for reduce",
    rounds: "p-1+ceil(log2 p) (bi), about 2(p-1)+ceil(log2 p) (uni)",
    planner: Planner::Streamed(van_de_geijn::ring_programs),
    time: Some(van_de_geijn::time_ring),
    ..VAN_DE_GEIJN
};

pub(in crate::plan) const DOUBLING_SCAN: Algorithm = Algorithm {
    collective: Kind::Scan,
    source: "Hillis, Steele 1986",
    rounds: "ceil(log2 p) (bi), 2 ceil(log2 p)-1 (uni)",
    volume: "(ceil(log2 p) p - 2^ceil(log2 p) + 1) m",
    planner: Planner::Direct(doubling_scan::plan),
    time: Some(doubling_scan::time),
    ..DOUBLING_ALLGATHER
};

pub(in crate::plan) const BUTTERFLY_BROADCAST: Algorithm = Algorithm {
    planner: Planner::ReverseOf(butterfly::plan_for_broadcast),
    ..broadcast(BUTTERFLY)
};

pub(in crate::plan) const VAN_DE_GEIJN_BROADCAST: Algorithm = Algorithm {
    planner: Planner::ReverseOf(van_de_geijn::plan_for_broadcast),
    ..broadcast(VAN_DE_GEIJN)
};

pub(in crate::plan) const VAN_DE_GEIJN_RING_BROADCAST: Algorithm = Algorithm {
    collective: Kind::Broadcast,
    commutative_only: false,
    planner: Planner::Streamed(van_de_geijn::ring_broadcast_programs),
    ..VAN_DE_GEIJN_RING
};

// Not reversed allgathers: on one port, combining can wait until a rank has sent, too.

pub(in crate::plan) const BRUCK_REDUCE_SCATTER: Algorithm = Algorithm {
    planner: Planner::Direct(bruck::reduce_scatter),
    ..reduce_scatter(BRUCK, bruck::reduce_scatter_time)
};

pub(in crate::plan) const LINEAR_REDUCE_SCATTER: Algorithm = Algorithm {
    planner: Planner::Direct(linear::reduce_scatter),
    ..reduce_scatter(LINEAR, linear::reduce_scatter_time)
};

pub(in crate::plan) const RING_REDUCE_SCATTER: Algorithm = Algorithm {
    collective: Kind::ReduceScatter,
    commutative_only: true,
    planner: Planner::Streamed(ring::reduce_scatter_programs),
    time: Some(ring::reduce_scatter_time),
    ..RING
};
