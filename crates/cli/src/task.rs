//! A validated planning task: a collective, its vector, the machine and the candidate algorithms.

mod candidates;
mod selection;
mod vector;

use std::cell::Cell;

use anyhow::{Result, bail, ensure};
use oneport::internal::budget::memory::{
    MAX_VECTOR_BYTES, SEARCHED_TRANSFER_BYTES, STEP_BYTES, STREAMED_RANK_BYTES,
};
use oneport::internal::budget::size::MAX_STEPS;
use oneport::plan::Segments;
use oneport::plan::choose::{self, Choice, Ranking};
use oneport::plan::refusal::{Reason, Refusal, describe};
use oneport::plan::registry::Algorithm;
use oneport::plan::segments::{self, Method};
use oneport::{CostModel, Error, ErrorKind, Kind, Ports, Request, Schedule};
use oneport_measure::estimate::{self, CoreModel};

use self::candidates::best_unequal;
pub(crate) use self::selection::{algorithms, names_several};
use crate::args::{Common, Root};
use crate::blocks::Listed;
use crate::memory::{LARGE_SCHEDULE, available_memory, fits_memory};
use crate::nodes::NodePorts;
use crate::output;
use crate::progress::WorkBar;
use crate::units::Unit;

const DEFAULT_RANKS: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct PlanTask {
    /// The request, with the vector in one segment.
    pub(crate) request: Request,
    pub(crate) segments: SegmentChoice,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) auto: bool,
    /// Whether the candidates were named: then each of them must apply.
    pub(crate) named: bool,
    pub(crate) root_free: bool,
    /// The selection rule that chose algorithm and segments, if one did.
    pub(crate) rule: Option<String>,
    pub(crate) unit: Unit,
    /// Core model of a native run on a machine with a profile. If present, the choice is by
    /// estimated native time instead of model time.
    pub(crate) core_model: Option<CoreModel>,
    /// The nodes, if their ports are limited.
    pub(crate) node_ports: Option<NodePorts>,
    /// Set if only times are needed, so that streamed schedules need not fit into memory.
    pub(crate) timed_only: Option<Timing>,
    /// How many schedules share the memory, because they are planned at the same time.
    pub(crate) at_once: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum SegmentChoice {
    /// Those of the best size for the cost model.
    Best,
    /// The best ones found for the cost model, of unequal sizes, too.
    BestUnequal,
    Given(Segments),
    Rule(Segments),
}

impl SegmentChoice {
    pub(crate) fn known(&self) -> Option<&Segments> {
        match self {
            SegmentChoice::Given(segments) | SegmentChoice::Rule(segments) => Some(segments),
            SegmentChoice::Best | SegmentChoice::BestUnequal => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Only the chosen one, however long it takes.
    Chosen,
    /// Those of all algorithms, so none may take very long.
    All,
}

impl PlanTask {
    pub(crate) fn new(args: &Common, kind: Kind) -> Result<PlanTask> {
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
        let given = match kind.has_data() {
            true => blocks.as_deref().map(|b| largest(kind, b)),
            false if vector.bytes.is_some() => {
                bail!("{} has no data: leave --bytes out", kind.name())
            }
            false => Some(1),
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
            .cost(cost)
            .element_bytes(args.vector.element_bytes());
        let algorithms = algorithms(kind, &args.algorithm, &request)?;
        let mut task = PlanTask {
            segments,
            auto: algorithms.len() != 1 || names_several(&args.algorithm),
            named: !matches!(&*args.algorithm, "auto" | "all"),
            root_free,
            node_ports,
            ..PlanTask::among(algorithms, request, unit)
        };
        if let Some(path) = &args.rules {
            selection::apply(&mut task, args, kind, path)?;
        }
        Ok(task)
    }

    /// The task to plan `request`, which has one segment, with the fastest algorithm.
    pub(crate) fn fastest(request: Request, unit: Unit) -> Result<PlanTask> {
        let all = algorithms(request.get_collective(), "auto", &request)?;
        Ok(PlanTask::among(all, request, unit))
    }

    /// The task to plan `request`, which has one segment, with the fastest of these algorithms.
    fn among(algorithms: Vec<Algorithm>, request: Request, unit: Unit) -> PlanTask {
        PlanTask {
            request,
            segments: SegmentChoice::Best,
            algorithms,
            auto: true,
            named: false,
            root_free: false,
            rule: None,
            unit,
            core_model: None,
            node_ports: None,
            timed_only: None,
            at_once: 1,
        }
    }

    /// Returns the segmented request for `algorithm`. A refusal if the algorithm does not accept it
    /// or it is too large.
    pub(crate) fn request_for(&self, algorithm: &Algorithm) -> Result<Request, Refusal> {
        let missed = Cell::new(false);
        let rooted = |request| self.rooted(algorithm, request, &missed);
        let on_ports = |request| self.timed(algorithm, rooted(request)?);
        let request = match algorithm.at_best_ports(&self.request, on_ports, time_of)? {
            Some(choice) => choice.request,
            None => rooted(self.request.clone())?,
        };
        // Among many candidates the note would be about algorithms that were not asked for.
        if !self.auto && missed.get() {
            output::note(&format!(
                "{} may have a better root: planning for each takes too long for {} ranks",
                algorithm.name(),
                self.request.ranks()
            ));
        }
        Ok(request)
    }

    /// As [`request_for`](Self::request_for), for a request whose ports are used as it says. Sets
    /// `missed` if there may be a better root.
    fn rooted(
        &self,
        algorithm: &Algorithm,
        mut free: Request,
        missed: &Cell<bool>,
    ) -> Result<Request, Refusal> {
        let by_request = self.node_ports.is_none();
        // Where links cost the same and all ranks arrive together, the same segments are best for
        // all roots.
        let cost = self.request.get_cost();
        let known = !by_request && cost.links().is_none() && cost.last_arrival() == 0.0;
        let segmented = |request| match known {
            true => Ok(request),
            false => self.segmented(algorithm, request),
        };
        if known {
            free = self.segmented(algorithm, free)?;
        }
        let at_root = |request| self.timed(algorithm, segmented(request)?);
        let best = algorithm.at_best_root(&free, by_request, at_root, time_of)?;
        if algorithm.may_miss_best_root(&free, by_request) {
            missed.set(true);
        }
        match best {
            Some(choice) => Ok(choice.request),
            None => segmented(free),
        }
    }

    fn segmented(&self, algorithm: &Algorithm, mut request: Request) -> Result<Request, Refusal> {
        algorithm.accepts(&request)?;
        if algorithm.segmented {
            let segments = match self.segments.known() {
                Some(segments) => segments.clone(),
                None => self.best_segments(algorithm, &request)?,
            };
            request = request.segments(segments);
        }
        self.ensure_fits_memory(algorithm, &request)?;
        if algorithm.segmented && matches!(self.segments, SegmentChoice::BestUnequal) {
            let segments = best_unequal(algorithm, &request)?;
            request = request.segments(segments);
        }
        Ok(request)
    }

    /// Whether the schedule of `algorithm` is timed without being stored. With per-pair costs it is
    /// stored, so that an error can name a missing link, and where nodes share ports.
    pub(crate) fn streams(&self, algorithm: &Algorithm) -> bool {
        let may = match self.timed_only {
            None => false,
            Some(Timing::Chosen) => algorithm.is_streamed(),
            Some(Timing::All) => {
                let planned_as = algorithm.planned_as(&self.request);
                planned_as.bytes_per_transfer().is_some()
            }
        };
        let shares = self.node_ports.is_some();
        may && !shares && self.request.get_cost().links().is_none()
    }

    pub(crate) fn plan(
        &self,
        algorithm: &Algorithm,
        request: &Request,
    ) -> oneport::Result<Schedule> {
        let schedule = algorithm.plan(request)?;
        match &self.node_ports {
            Some(ports) => ports.share(schedule, request.get_cost()),
            None => Ok(schedule),
        }
    }

    fn best_segments(&self, algorithm: &Algorithm, request: &Request) -> Result<Segments, Refusal> {
        // The search needs at least the memory of one segment.
        self.ensure_fits_memory(algorithm, request)?;
        let bytes_per_transfer = algorithm
            .bytes_per_transfer()
            .unwrap_or(SEARCHED_TRANSFER_BYTES);
        let share = available_memory().map(|bytes| bytes / self.at_once as u64);
        let max = share.and_then(|bytes| bytes.checked_div(bytes_per_transfer));
        let max = max.map_or(usize::MAX, |max| max.try_into().unwrap_or(usize::MAX));
        let failed = |error| algorithm.refusal(request, Reason::Planner(error));
        let best = segments::best_segment_within(algorithm, request, max).map_err(failed)?;
        // Among many candidates the note would be about algorithms that were not asked for.
        if best.method == Method::LimitedSearch && !self.auto {
            output::note(&format!(
                "{} may have better segments: the search left out sizes that take too long to simulate",
                algorithm.name()
            ));
        }
        Ok(best.segments)
    }

    fn ensure_fits_memory(&self, algorithm: &Algorithm, request: &Request) -> Result<(), Refusal> {
        let (ranks, segments) = (request.ranks(), request.get_segments().count());
        let steps = steps(algorithm, ranks, segments);
        let streams = self.streams(algorithm);
        if steps > MAX_STEPS && !(streams && self.timed_only == Some(Timing::Chosen)) {
            let reason = Reason::TooLong {
                ranks,
                segments,
                steps,
                max_steps: MAX_STEPS,
            };
            return Err(algorithm.refusal(request, reason));
        }
        let what = describe(&algorithm.name(), ranks, segments, steps);
        let [ranks, segments] = [ranks, segments].map(|n| n as u128);
        let mut bytes = ranks * u128::from(STREAMED_RANK_BYTES) + segments * 64;
        let planned_as = algorithm.planned_as(request);
        let bytes_per_step = match planned_as.bytes_per_transfer() {
            Some(bytes_per_transfer) if streams => bytes_per_transfer / 2,
            _ => STEP_BYTES,
        };
        bytes += u128::from(steps) * u128::from(bytes_per_step);
        bytes += u128::from((algorithm.tables)(request.ranks()));
        fits_memory(&what, bytes * self.at_once as u128, LARGE_SCHEDULE)
            .map_err(|message| algorithm.refusal(request, Reason::Memory(message)))
    }

    /// Returns the algorithm with the smallest model time (for a native run on known cores, the
    /// smallest estimate) and its request.
    pub(crate) fn choose(&self) -> Result<(Algorithm, Request)> {
        if let Some(core_model) = self.on_cores() {
            let ranking =
                estimate::choose_native_among(&self.algorithms, &self.request, core_model);
            // On any error, the choice by model time reports it.
            let applies = |ranking: &Ranking| !self.named || ranking.refusals.is_empty();
            if let Some(Ok(choice)) = ranking.ok().filter(applies).map(Ranking::best) {
                return Ok((choice.algorithm, choice.request));
            }
        }
        if let [one] = &self.algorithms[..] {
            return Ok((one.clone(), self.request_for(one).map_err(Error::from)?));
        }
        let segmented = self.segmenting();
        if segmented.len() < self.algorithms.len() {
            let task = PlanTask {
                algorithms: segmented,
                ..self.clone()
            };
            return task.choose();
        }
        let progress = &WorkBar::new(0, "choosing the fastest: timing {msg}");
        let ranking: Ranking = choose::rank(self.side_by_side(|share, algorithm| {
            progress.name(&algorithm.name());
            self.offer(share, algorithm, progress)
        }));
        progress.finish();
        if let Some(refusal) = ranking.refusals.first().filter(|_| self.named) {
            return Err(Error::from(refusal.clone()).into());
        }
        match ranking.best() {
            Ok(choice) => Ok((choice.algorithm, choice.request)),
            Err(refusals) => Err(choose::none_applies(None, &refusals).into()),
        }
    }
}

pub(crate) fn steps(algorithm: &Algorithm, ranks: usize, segments: usize) -> u64 {
    ((algorithm.transfers)(ranks, segments) as u64).saturating_mul(2)
}

/// How many transfers, and computations beside them, are timed of the schedule.
pub(crate) fn bar_length(algorithm: &Algorithm, request: &Request) -> u64 {
    // Each transfer consists of two steps.
    let steps = steps(algorithm, request.ranks(), request.get_segments().count());
    (steps / 2) << u32::from(request.get_cost().overlaps())
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

/// Returns the size that is segmented: the largest block, or the vector of a reduce_scatter.
fn largest(kind: Kind, blocks: &[usize]) -> usize {
    match kind.is_sized_by_block() {
        true => blocks.iter().copied().max().unwrap_or(0),
        false => blocks.iter().fold(0, |sum, &b| sum.saturating_add(b)),
    }
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
    match kind.with_root(0).root() {
        Some(_) if kind.has_blocks() => 2 * all,
        _ if kind.has_blocks() => p * all,
        _ => p * m,
    }
}

pub(crate) fn model_time(algorithm: &Algorithm, request: &Request) -> oneport::Result<f64> {
    let time = algorithm.time(request)?;
    if time.is_finite() {
        return Ok(time);
    }
    // A message without a link is the more useful error.
    algorithm.plan(request)?.ensure_links(request.get_cost())?;
    finite(time)
}

pub(crate) fn finite(time: f64) -> oneport::Result<f64> {
    if time.is_finite() {
        return Ok(time);
    }
    Err(usage("the model time is too large to be computed".into()))
}

fn usage(message: String) -> Error {
    ErrorKind::Usage(message).into()
}

fn time_of(choice: &Choice) -> f64 {
    choice.time
}
