//! Compositions of two algorithms for machines with nodes: `hier`, by one leader of each node, and
//! `lane`, by all ranks of the nodes side by side.
//!
//! - Source: hier: folklore, "smp" of MPICH, "han" of Open MPI. lane: Träff, Hunold, "Decomposing
//!   MPI Collectives for Exploiting Multi-lane Communication" (2020).
//! - Ports: those of the algorithms of the phases.
//! - Symbols: `N` nodes of `n` ranks each, `m` elements in the vector or in all blocks together.
//! - Rounds, scratch: those of the phases.
//! - Time: at most the sum of the times of the phases; less where some ranks are ready early. There
//!   is no closed form for all parts.
//! - Volume between nodes: hier `(N-1) m` for broadcast and reduce, through one rank of each node;
//!   lane the same, but `m/n` through each rank. Allreduce: `2 (N-1) m`, if its part between nodes
//!   is of optimal volume.
//! - Restrictions: costs with [nodes](crate::CostModel::nodes); for lanes and alltoall, of the same
//!   number of ranks. The request's segments only give the size of the vector: each phase takes its
//!   own.
//! - Operand order: kept if each node has consecutive ranks and the parts keep it.
//! - Cost of planning: that of timing all algorithms of a phase that are candidates.
//!
//! The phases, where *within* stands for those within all nodes at once:
//!
//! | collective | hier | lane |
//! |---|---|---|
//! | broadcast | broadcast between leaders, broadcast within | scatter in the root's node, broadcast in each lane, allgather within |
//! | reduce | reduce within, reduce between leaders | reduce_scatter within, reduce in each lane, gather in the root's node |
//! | allreduce | reduce within, allreduce between leaders, broadcast within | reduce_scatter within, allreduce in each lane, allgather within |
//! | allgather | gather within, allgather between leaders, broadcast within | allgather in each lane, allgather within |
//! | reduce_scatter | reduce within, reduce_scatter between leaders, scatter within | reduce_scatter within, reduce_scatter in each lane |
//! | gather | gather within, gather between leaders | - |
//! | scatter | scatter between leaders, scatter within | - |
//! | alltoall | gather within, alltoall between leaders, scatter within | alltoall within, alltoall in each lane |
//!
//! A phase is planned as a collective of its own, for the costs among its ranks. Its schedule
//! becomes a part of the whole by numbering its ranks and elements anew; where its input or output
//! is in several pieces, its messages have several spans, and nothing is copied. On a machine of
//! more than two levels the algorithm of a phase may be a composition again.
//!
//! Example, broadcast, `N = n = 2`, nodes 0, 1 and 2, 3: hier 0→2; 0→1, 2→3. lane 0→1 (second
//! half); 0→2, 1→3 (halves); 0↔1, 2↔3 (halves).

use super::embed::{Embedding, Group};
use super::phases::NodeRequest;
use crate::plan::choose::{Choice, with_best_segments};
use crate::plan::prelude::*;
use crate::plan::registry::{Composition, Nodes, Scope, Shape};
use crate::plan::space::{Model, Space, best_first};

use Kind::{Allgather, Allreduce, Alltoall, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
use Scope::{Between, Within};

/// The rows of both shapes, by collective.
pub(in crate::plan) const ROWS: [Row; 14] = [
    hier(Broadcast, &[(Between, Broadcast), (Within, Broadcast)]),
    lane(
        Broadcast,
        &[(Within, Scatter), (Between, Broadcast), (Within, Allgather)],
    ),
    hier(Reduce, &[(Within, Reduce), (Between, Reduce)]),
    lane(
        Reduce,
        &[(Within, ReduceScatter), (Between, Reduce), (Within, Gather)],
    ),
    hier(
        Allreduce,
        &[(Within, Reduce), (Between, Allreduce), (Within, Broadcast)],
    ),
    lane(
        Allreduce,
        &[
            (Within, ReduceScatter),
            (Between, Allreduce),
            (Within, Allgather),
        ],
    ),
    hier(
        Allgather,
        &[(Within, Gather), (Between, Allgather), (Within, Broadcast)],
    ),
    lane(Allgather, &[(Between, Allgather), (Within, Allgather)]),
    hier(
        ReduceScatter,
        &[
            (Within, Reduce),
            (Between, ReduceScatter),
            (Within, Scatter),
        ],
    ),
    lane(
        ReduceScatter,
        &[(Within, ReduceScatter), (Between, ReduceScatter)],
    ),
    Row {
        nodes: Nodes::Equal,
        ..hier(
            Alltoall,
            &[(Within, Gather), (Between, Alltoall), (Within, Scatter)],
        )
    },
    lane(Alltoall, &[(Within, Alltoall), (Between, Alltoall)]),
    hier(Gather, &[(Within, Gather), (Between, Gather)]),
    hier(Scatter, &[(Between, Scatter), (Within, Scatter)]),
];

const fn hier(collective: Kind, phases: &'static [(Scope, Kind)]) -> Row {
    Row {
        nodes: Nodes::Some,
        source: "folklore; MPICH (smp), Open MPI (han)",
        ..composition("hier", collective, Shape::Leaders, phases)
    }
}

const fn lane(collective: Kind, phases: &'static [(Scope, Kind)]) -> Row {
    Row {
        nodes: Nodes::Equal,
        source: "Träff, Hunold 2020",
        ..composition("lane", collective, Shape::Lanes, phases)
    }
}

const fn composition(
    name: &'static str,
    collective: Kind,
    shape: Shape,
    phases: &'static [(Scope, Kind)],
) -> Row {
    let planner = Planner::Composed(Composition {
        shape,
        phases,
        plan,
    });
    Row {
        transfers: match collective {
            Alltoall => row::for_each_pair_twice,
            _ => row::logarithmic_twice,
        },
        planning_work: 16,
        one_size_a_rank: collective.has_block_pairs(),
        rounds: "those of its phases",
        volume: "those of its phases",
        ..row::planned_by(name, collective, planner)
    }
}

fn plan(algorithm: &Algorithm, composition: &Composition, request: &Request) -> Result<Schedule> {
    let machine = NodeRequest::new(request, composition.shape)?;
    let (collective, layout) = machine.layout()?;
    let mut all = Embedding::new(request.ports, collective, layout);
    for group in phases(algorithm, composition, &machine, request)?
        .iter()
        .flatten()
    {
        all.append(&group.ranks, group.choice.plan()?)?;
    }
    all.build()
}

/// Ranks that perform a collective among themselves, and how.
struct Chosen {
    ranks: Group,
    choice: Choice,
}

/// By phase: its groups of at least two ranks that have data.
fn phases(
    algorithm: &Algorithm,
    composition: &Composition,
    machine: &NodeRequest<'_>,
    request: &Request,
) -> Result<Vec<Vec<Chosen>>> {
    // Most groups of a phase are alike.
    let mut known: Vec<Choice> = Vec::new();
    let mut all = Vec::new();
    for (phase, &(scope, kind)) in composition.phases.iter().enumerate() {
        let mut groups = machine.groups(scope, kind)?;
        groups.retain(|group| group.members.len() > 1 && group.sizes.iter().any(|&n| n > 0));
        known.clear();
        let mut chosen = Vec::new();
        for ranks in groups {
            let part = part(request, kind, &ranks)?;
            let same = known.iter().find(|choice| is_same(&choice.request, &part));
            let choice = match same {
                Some(choice) => choice.clone(),
                None => choose_part(algorithm.part(phase), &part)?,
            };
            if same.is_none() {
                known.push(choice.clone());
            }
            chosen.push(Chosen { ranks, choice });
        }
        all.push(chosen);
    }
    Ok(all)
}

/// Whether two requests differ at most in their segments.
fn is_same(a: &Request, b: &Request) -> bool {
    a.elements() == b.elements() && a.clone().segments(b.segments.clone()) == *b
}

/// The request for the collective of a group.
fn part(request: &Request, kind: Kind, group: &Group) -> Result<Request> {
    let (ranks, sizes) = (group.members.len(), &group.sizes);
    let sum = || {
        sizes
            .iter()
            .fold(0usize, |sum, &size| sum.saturating_add(size))
    };
    let (elements, is_equal) = match kind {
        ReduceScatter => (sum(), *sizes == evenly(sum(), ranks)),
        _ => {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            (largest, sizes.iter().all(|&size| size == largest))
        }
    };
    let sizes = (kind.has_blocks() && !is_equal).then(|| sizes.clone());
    Ok(Request::new(kind, ranks, elements)
        .root(group.root)
        .blocks(sizes)
        .ports(request.ports)
        .keep_order(request.keep_order)
        .same_bits(request.same_bits)
        .cost(request.cost.among(&group.members)?)
        .element_bytes(request.element_bytes))
}

/// The given algorithm, or the candidate with the smallest model time; with its best segments.
fn choose_part(algorithm: Option<&Algorithm>, request: &Request) -> Result<Choice> {
    if let Some(algorithm) = algorithm {
        return Ok(with_best_segments(algorithm, request)?);
    }
    let mut space = Space::of(request).of_short()?;
    for algorithm in &mut space.algorithms {
        if let Ok(resolved) = algorithm.resolved(request) {
            *algorithm = resolved;
        }
    }
    best_first(&space, &Model).fastest(Some(request.kind))
}

impl Algorithm {
    /// A composition with the algorithms that its phases take for this request, which its name
    /// tells: `hier(binomial,chain)`. A phase in which groups of ranks take different ones remains
    /// open. Other algorithms are returned as they are.
    pub fn resolved(&self, request: &Request) -> Result<Algorithm> {
        let Planner::Composed(composition) = self.planner else {
            return Ok(self.clone());
        };
        self.accepts(request)?;
        let machine = NodeRequest::new(request, composition.shape)?;
        let mut parts = Vec::new();
        for groups in phases(self, &composition, &machine, request)? {
            let mut of_groups = groups.iter().map(|group| &group.choice.algorithm);
            let first = of_groups.next();
            parts.push(
                first
                    .filter(|first| of_groups.all(|a| a == *first))
                    .cloned(),
            );
        }
        Ok(self.with_parts(parts))
    }
}
