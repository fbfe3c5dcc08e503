//! A validated planning task: a collective, its vector, the machine and the candidate algorithms.

mod choice;
mod evaluation;
mod family;
mod selection;
mod vector;

use anyhow::{Result, bail, ensure};
use oneport::internal::budget::memory::MAX_VECTOR_BYTES;
use oneport::internal::budget::quick;
use oneport::internal::budget::size::MAX_STEPS;
use oneport::plan::registry::{Algorithm, Planned};
use oneport::plan::space::{SegmentChoice, Variant};
use oneport::{CostModel, Error, ErrorKind, Kind, Ports, Request, Schedule};
use oneport_measure::estimate::CoreModel;

pub(crate) use self::choice::left_out_texts;
pub(crate) use self::family::take_measured_tree;
pub(crate) use self::selection::algorithms;
use crate::args::Common;
use crate::bits::ShownBits;
use crate::blocks::Listed;
use crate::caller::Caller;
use crate::forms::{AlgorithmNames, Root};
use crate::nodes::NodePorts;
use crate::units::Unit;

const DEFAULT_RANKS: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct PlanTask {
    /// The request, with the vector in one segment.
    pub(crate) request: Request,
    pub(crate) segments: SegmentChoice,
    pub(crate) algorithms: Vec<Algorithm>,
    /// Whether there are several algorithms to choose from, or rules choose.
    pub(crate) auto: bool,
    /// Whether the candidates were named: then each of them must apply.
    pub(crate) named: bool,
    pub(crate) rule: Option<AppliedRule>,
    pub(crate) unit: Unit,
    /// Whether the order of combining decides the bits of the results.
    sums_floats: bool,
    /// Core model of a native run on a machine with a profile. If present, the choice is by
    /// estimated native time instead of model time.
    pub(crate) core_model: Option<CoreModel>,
    /// The nodes, if their ports are limited.
    pub(crate) node_ports: Option<NodePorts>,
    /// Set if only times are needed, so that streamed schedules need not fit into memory.
    pub(crate) timed_only: Option<Timing>,
    pub(crate) caller: Caller,
}

/// A selection rule that chose the algorithm.
#[derive(Debug, Clone)]
pub(crate) struct AppliedRule {
    /// The rule in words.
    pub(crate) why: String,
    /// Whether it chose the segments, too.
    pub(crate) segments: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Only the chosen one, however long it takes.
    Chosen,
    /// Those of all algorithms, so none may take very long.
    All,
}

impl PlanTask {
    pub(crate) fn new(args: &Common, kind: Kind, caller: &Caller) -> Result<PlanTask> {
        let mut chosen = [args.clone()];
        Common::take_one_tree(&mut chosen, caller)?;
        let [args] = &chosen;
        let listed = args.blocks.listed(kind)?;
        let given = args.ranks()?.or(listed.as_ref().map(|s| s.ranks(kind)));
        let (cost, unit) = args.machine.cost(given)?;
        let ranks = ranks(args, &cost, kind, listed.as_ref())?;
        let cost = args.delays.apply(cost, ranks)?;
        let (root, root_free) = match args.root {
            None => (0, false),
            Some(Root::Rank(root)) => (root, false),
            // If the planner treats all roots alike, root 0 avoids forwarding.
            Some(Root::Free) => (0, true),
        };
        ensure!(
            root < ranks,
            "root {root} is not one of {ranks} ranks (numbered from 0)"
        );
        let vector = &args.vector;
        let blocks = args
            .blocks
            .elements(kind, ranks, listed.as_ref(), |what, bytes| {
                vector.elements(what, bytes)
            })?;
        let given = if kind.has_data() {
            (blocks.clone()).map(|b| Request::new(kind, ranks, 0).blocks(b).elements())
        } else {
            let name = kind.name();
            ensure!(
                vector.bytes.is_none(),
                "{name} has no data: leave --bytes out"
            );
            Some(1)
        };
        if let Some(dtype) = vector.dtype {
            vector.ensure_combines(kind, dtype)?;
        }
        let (whole, segments) = vector.segments(given)?;
        let held = footprint(kind, ranks, whole.elements(), blocks.as_deref());
        let bytes = held.saturating_mul(u128::from(vector.element_bytes()));
        ensure!(
            bytes <= u128::from(MAX_VECTOR_BYTES),
            "{ranks} ranks hold {bytes} bytes together, more than this program's limit of 2^60 bytes"
        );
        let node_ports = args.nodes.of(ranks, &cost)?;
        let request = Request::new(kind, ranks, 0)
            .root(root)
            .free_root(root_free)
            .targets((!args.targets.is_empty()).then(|| args.targets.clone()))
            .blocks(blocks)
            .ports(args.machine.ports(Ports::BI)?)
            .segments(whole)
            .keep_order(kind.reduces() && args.vector.keep_order())
            .same_bits(kind.reduces() && args.vector.same_bits())
            .cost(cost)
            .element_bytes(args.vector.element_bytes());
        // What is wrong with it would be the refusal of every algorithm.
        request.validate()?;
        let algorithms = algorithms(kind, &args.algorithm, &request)?;
        let asked = args.asked();
        let mut task = PlanTask {
            segments,
            auto: algorithms.len() != 1 || asked.are_several(),
            named: !asked.is_open(),
            node_ports,
            sums_floats: kind.reduces() && vector.dtype.is_some() && ShownBits::matter(vector),
            ..PlanTask::among(algorithms, request, unit, caller)
        };
        if let Some(file) = &args.rules {
            selection::apply(&mut task, args, kind, file)?;
        }
        Ok(task)
    }

    /// The task to plan `request`, which has one segment, with the fastest of all candidates.
    pub(crate) fn of_candidates(request: Request, unit: Unit, caller: &Caller) -> Result<PlanTask> {
        let all = algorithms(request.get_collective(), &AlgorithmNames::Auto, &request)?;
        Ok(PlanTask::among(all, request, unit, caller))
    }

    /// The task to plan `request`, which has one segment, with the fastest of these algorithms.
    fn among(
        algorithms: Vec<Algorithm>,
        request: Request,
        unit: Unit,
        caller: &Caller,
    ) -> PlanTask {
        PlanTask {
            request,
            segments: SegmentChoice::Best,
            algorithms,
            auto: true,
            named: false,
            rule: None,
            unit,
            sums_floats: false,
            core_model: None,
            node_ports: None,
            timed_only: None,
            caller: caller.clone(),
        }
    }

    /// Whether the schedule of a variant, once it is chosen, is timed without being stored. It is
    /// stored with per-pair costs, since these may have levels, whose traffic is counted; where
    /// nodes share ports; where both directions of a port may run at once, which its programs use
    /// one at a time; and if it is short and the only one, since more can be said of it then.
    fn streams(&self, variant: &Variant) -> bool {
        let is_short = variant.transfers() <= quick::MAX_STORED;
        let is_stored = is_short && self.timed_only == Some(Timing::Chosen);
        !is_stored && self.streams_if_long(variant)
    }

    /// Whether [`streams`](Self::streams) holds with segments enough.
    fn streams_if_long(&self, variant: &Variant) -> bool {
        let planning_row = variant.algorithm.planning_row(&variant.request);
        let may = match self.timed_only {
            None => false,
            Some(Timing::Chosen) => planning_row.is_streamed(),
            Some(Timing::All) => planning_row.bytes_per_transfer().is_some(),
        };
        let shares = self.node_ports.is_some() || !variant.times_as_used();
        may && !shares && variant.request.get_cost().links().is_none()
    }

    /// The schedule of a variant to take the time that is shown: streamed, or stored.
    pub(crate) fn to_time(&self, variant: &Variant) -> oneport::Result<Planned> {
        if self.streams(variant) {
            variant.planned()
        } else {
            self.plan(variant).map(Planned::Stored)
        }
    }

    /// The schedule of a variant, with the ports that nodes share: streamed if it can be.
    pub(crate) fn planned(&self, variant: &Variant) -> oneport::Result<Planned> {
        let Some(ports) = &self.node_ports else {
            return variant.planned();
        };
        variant.planned_with(|planned| {
            let schedule = ports.share(planned.materialize()?, variant.request.get_cost())?;
            Ok(Planned::Stored(schedule))
        })
    }

    /// As [`planned`](Self::planned), and stored.
    pub(crate) fn plan(&self, variant: &Variant) -> oneport::Result<Schedule> {
        let schedule = self.planned(variant)?.materialize()?;
        schedule.with_name(variant.algorithm.name())
    }
}

/// How many steps its schedule has, at most.
pub(crate) fn steps(variant: &Variant) -> u64 {
    (variant.transfers() as u64).saturating_mul(2)
}

/// How many transfers, and computations beside them, are timed of the schedule.
pub(crate) fn bar_length(variant: &Variant) -> u64 {
    (variant.transfers() as u64) << u32::from(variant.request.get_cost().overlaps())
}

/// Returns the number of ranks: the given one, the one that the costs describe, or the default.
fn ranks(args: &Common, cost: &CostModel, kind: Kind, sizes: Option<&Listed>) -> Result<usize> {
    let described = cost.links().map(|l| l.alpha.len());
    let given = args.ranks()?;
    let ranks = match (given.or(sizes.map(|s| s.ranks(kind))), described) {
        (Some(p), Some(n)) if p != n => match (given, sizes) {
            (None, Some(sizes)) if !sizes.fit(kind, n) => bail!(
                "the costs describe {n} ranks, there are {} block sizes",
                sizes.len()
            ),
            (None, Some(_)) => n,
            _ => bail!("the costs describe {n} ranks, not {p} (-p)"),
        },
        (p, n) => p.or(n).unwrap_or(DEFAULT_RANKS),
    };
    if let Some(sizes) = sizes.filter(|sizes| !sizes.fit(kind, ranks)) {
        bail!("{} block sizes for {ranks} ranks (-p)", sizes.len());
    }
    ensure!(ranks != 0, "a collective needs at least one rank (-p 0)");
    if ranks as u64 > MAX_STEPS {
        bail!("{ranks} ranks are more than this program's limit of {MAX_STEPS}");
    }
    Ok(ranks)
}

/// Approximate number of elements that all ranks hold together.
pub(crate) fn footprint(
    kind: Kind,
    ranks: usize,
    elements: usize,
    blocks: Option<&[usize]>,
) -> u128 {
    let (p, m) = (ranks as u128, elements as u128);
    let all = match blocks {
        Some(blocks) if blocks.len() > ranks => {
            // A block for each pair of ranks, at both.
            return 2 * blocks.iter().map(|&b| b as u128).sum::<u128>();
        }
        Some(blocks) => blocks.iter().map(|&b| b as u128).sum(),
        None if kind.is_sized_by_block() => p * m,
        None => m,
    };
    if !kind.has_blocks() {
        p * m
    } else if kind.has_root() {
        2 * all
    } else {
        p * all
    }
}

fn usage(message: String) -> Error {
    ErrorKind::Usage(message).into()
}
