//! [`Request`]: the problem to plan, in fluent form. How its time is found: the header of
//! `plan/space/search.rs`.

use std::borrow::Cow;

use super::{Segments, consecutive, cut_from_the_end, evenly};
use crate::budget::size::{MAX_ELEMENTS, MAX_TRANSFERS};
use crate::error::{Error, Result};
use crate::machine::{CostClass, CostModel, Machine, Ports, bytes};
use crate::rules::max_time;
use crate::schedule::collective::{Collective, Kind, Totals};
use crate::schedule::{Schedule, Span};

/// The problem to plan: a collective, its ranks and root, ports, sizes and costs.
///
/// A constructor names the collective, the number of ranks and the number of elements: of the
/// vector of a broadcast, reduce, allreduce, reduce_scatter or scan, or of one rank's block of a
/// gather, scatter, allgather or alltoall. All else has a default: bidirectional one-ported ranks,
/// root 0, one segment, equal blocks, a commuting operator, elements of one byte
/// ([`element_bytes`](Request::element_bytes): set it to have times of the data that are run) and
/// messages of unit cost.
///
/// ```
/// use oneport::{CostModel, Ports, Request};
/// let request = Request::reduce(6, 1000).root(2).ports(Ports::UNI);
/// let schedule = request.clone().segment_elems(100).plan("uni-greedy")?;
/// assert!(schedule.check().is_correct());
///
/// // The fastest algorithm of a machine, with its best segments.
/// let machine = CostModel::new(1000.0, 0.5);
/// let best = request.plan_best(&machine)?;
/// assert!(best.simulate(&machine)?.makespan() <= schedule.simulate(&machine)?.makespan());
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// A method with the name of a property sets it, and `get_` before the name reads it; the numbers
/// of ranks and elements, which have no such method, are read by their names. A value that is not
/// valid is reported when the request is planned. Times are in the unit of the cost model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub(in crate::plan) kind: Kind,
    pub(in crate::plan) ranks: usize,
    pub(in crate::plan) root: usize,
    pub(in crate::plan) root_free: bool,
    /// Of a collective with targets; `None`: all ranks.
    pub(in crate::plan) targets: Option<Vec<usize>>,
    pub(in crate::plan) ports: Ports,
    pub(in crate::plan) segments: Segments,
    pub(in crate::plan) blocks: Option<Vec<usize>>,
    pub(in crate::plan) keep_order: bool,
    pub(in crate::plan) same_bits: bool,
    pub(in crate::plan) cost: CostModel,
    pub(in crate::plan) element_bytes: u64,
    /// The first value that a method refused.
    invalid: Option<Error>,
}

/// The methods that set a property and that read it.
macro_rules! properties {
    ($($(#[$doc:meta])* $set:ident $get:ident $field:ident: $type:ty;)*) => {
        impl Request {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $set(mut self, $set: $type) -> Request {
                    self.$field = $set;
                    self
                }

                #[doc = concat!("What [`Request::", stringify!($set), "`] has set.")]
                pub fn $get(&self) -> $type {
                    self.$field
                }
            )*
        }
    };
}

properties! {
    /// The same problem for another collective. One without targets is refused if the request has
    /// some: see [`targets`](Request::targets).
    collective get_collective kind: Kind;
    /// The root, for collectives that have one.
    root get_root root: usize;
    /// Whether the planner may choose a better root; the schedule's collective names the chosen
    /// one.
    free_root get_free_root root_free: bool;
    /// Whether operands must be combined in rank order (the operator does not commute).
    keep_order get_keep_order keep_order: bool;
    /// Whether all ranks must get the same bits of a sum of floats, as MPI asks of an allreduce:
    /// each element is combined in one tree for all of them.
    same_bits get_same_bits same_bits: bool;
    /// Bytes of one element, to compute times.
    element_bytes get_element_bytes element_bytes: u64;
}

macro_rules! constructors {
    ($($name:ident $kind:ident $what:literal,)*) => {
        /// One constructor a collective: see [`Request`] for the defaults.
        impl Request {
            $(
                #[doc = concat!("A request for ", $what, ".")]
                pub fn $name(ranks: usize, elements: usize) -> Request {
                    Request::new(Kind::$kind, ranks, elements)
                }
            )*
        }
    };
}

constructors! {
    broadcast Broadcast "a broadcast of a vector of `elements` elements",
    reduce Reduce "a reduction of vectors of `elements` elements",
    allreduce Allreduce "an allreduce of vectors of `elements` elements",
    gather Gather "a gather of blocks of `elements` elements",
    scatter Scatter "a scatter of blocks of `elements` elements",
    allgather Allgather "an allgather of blocks of `elements` elements",
    reduce_scatter ReduceScatter "a reduce-scatter of vectors of `elements` elements",
    alltoall Alltoall "an alltoall of blocks of `elements` elements",
    scan Scan "a scan of vectors of `elements` elements",
    exscan Exscan "an exclusive scan of vectors of `elements` elements",
    multicast Multicast "a multicast of a vector of `elements` elements, to all ranks or to its \
        [`targets`](Request::targets)",
}

impl Request {
    /// A request for a barrier. It has no data: its tokens are neither counted nor segmented.
    pub fn barrier(ranks: usize) -> Request {
        Request::new(Kind::Barrier, ranks, 0)
    }
}

impl Request {
    /// The request that `schedule` answers: its collective and root, ranks, ports, sizes, and bytes
    /// of an element. Costs, segments and the order of operands are the defaults.
    ///
    /// ```
    /// use oneport::{Request, Schedule};
    /// let mut b = Schedule::broadcast(3, 4);
    /// b.transfer(0, 1, 0..4);
    /// b.transfer(0, 2, 0..4);
    /// assert_eq!(Request::like(&b.build()?)?, Request::broadcast(3, 4));
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// The layouts do not fit the collective, or it is a multicast without targets.
    pub fn like(schedule: &Schedule) -> Result<Request> {
        let (kind, p) = (schedule.collective().kind(), schedule.ranks());
        let targets = schedule.collective().targets();
        if targets.is_some_and(<[usize]>::is_empty) {
            return Err(without_targets(kind));
        }
        let sizes = Totals::new(schedule.collective(), schedule.layout()).sizes()?;
        let (elements, equal) = if !kind.has_data() {
            (0, sizes.clone())
        } else if kind.is_sized_by_block() {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            (largest, vec![largest; p])
        } else {
            let sum = sizes.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
            (sum, evenly(sum, sizes.len()))
        };
        let request = Request::new(kind, p, elements)
            .root(schedule.collective().root().unwrap_or(0))
            .targets(targets.map(<[usize]>::to_vec))
            .ports(schedule.ports())
            .element_bytes(schedule.element_bytes());
        Ok(if sizes == equal {
            request
        } else {
            request.blocks(sizes)
        })
    }
}

fn without_targets(kind: Kind) -> Error {
    Error::usage(format!("a {kind} without targets asks for nothing"))
}

impl Request {
    /// A request for the collective `kind`: see [`Request`] for `elements` and the defaults.
    pub fn new(kind: Kind, ranks: usize, elements: usize) -> Request {
        Request {
            kind,
            ranks,
            root: 0,
            root_free: false,
            targets: None,
            ports: Ports::BI,
            segments: Segments::whole(elements),
            blocks: None,
            keep_order: false,
            same_bits: false,
            cost: CostModel::new(1.0, 1.0),
            element_bytes: 1,
            invalid: None,
        }
    }

    /// The ranks that get the result of a collective with targets, as a multicast; `None`: all
    /// ranks. Their order does not matter.
    #[must_use]
    pub fn targets(mut self, targets: impl Into<Option<Vec<usize>>>) -> Request {
        self.targets = targets.into();
        self.targets
            .iter_mut()
            .for_each(|ranks| ranks.sort_unstable());
        self
    }

    /// The port model. An algorithm leaves ports idle where that takes less time.
    #[must_use]
    pub fn ports(mut self, ports: Ports) -> Request {
        self.ports = ports;
        self
    }

    /// How the vector is split, or one rank's block (the largest, if they differ), and with it the
    /// number of elements. Algorithms that move blocks split each block into the same number of
    /// parts.
    #[must_use]
    pub fn segments(mut self, segments: Segments) -> Request {
        self.segments = segments;
        self
    }

    /// Segments of `elements` elements, the last one possibly smaller: [`Segments::of_size`].
    #[must_use]
    pub fn segment_elems(self, elements: usize) -> Request {
        let segments = Segments::of_size(self.elements(), elements);
        self.try_segments(segments)
    }

    /// `count` segments, or one per element if there are fewer elements: [`Segments::of_count`].
    #[must_use]
    pub fn segment_count(self, count: usize) -> Request {
        let segments = Segments::of_count(self.elements(), count);
        self.try_segments(segments)
    }

    fn try_segments(mut self, segments: Result<Segments>) -> Request {
        match segments {
            Ok(segments) => self.segments = segments,
            Err(error) => self.invalid = self.invalid.or(Some(error)),
        }
        self
    }

    /// Elements of each rank's block, for collectives that have blocks. `None` means equal blocks,
    /// or, for reduce_scatter, blocks as equal as possible. An alltoall takes `p` sizes, of the
    /// blocks that every rank has for each rank, or `p^2`: of the blocks of rank 0 for each rank,
    /// then of those of rank 1, and so on.
    ///
    /// They replace the number of elements, unless there are several segments of it: it is that of
    /// the largest block, of a reduce_scatter that of all blocks together.
    #[must_use]
    pub fn blocks(mut self, elements: impl Into<Option<Vec<usize>>>) -> Request {
        self.blocks = elements.into();
        if let Some(blocks) = self.blocks.as_ref().filter(|_| self.segments.count() == 1) {
            let elements = if self.kind.is_sized_by_block() {
                blocks.iter().copied().max().unwrap_or(0)
            } else {
                blocks.iter().fold(0usize, |sum, &n| sum.saturating_add(n))
            };
            self.segments = Segments::whole(elements);
        }
        self
    }

    /// The cost model in which times are computed, and by which ports, a free root and segments are
    /// chosen; some planners depend on it, too. Without it alpha and beta are 1.
    #[must_use]
    pub fn cost(mut self, cost: CostModel) -> Request {
        self.cost = cost;
        self
    }
}

/// What has been set: see the methods without `get_`.
#[allow(missing_docs, reason = "the methods that set it say it")]
impl Request {
    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Number of elements of the vector, or of one rank's block: see [`Request::segments`].
    pub fn elements(&self) -> usize {
        self.segments.elements()
    }

    pub fn get_targets(&self) -> Option<&[usize]> {
        self.targets.as_deref()
    }

    pub fn get_ports(&self) -> Ports {
        self.ports
    }

    pub fn get_segments(&self) -> &Segments {
        &self.segments
    }

    pub fn get_blocks(&self) -> Option<&[usize]> {
        self.blocks.as_deref()
    }

    pub fn get_cost(&self) -> &CostModel {
        &self.cost
    }
}

impl Request {
    /// Checks the request alone, without an algorithm, in `O(p + q)` time for `q` segments.
    ///
    /// # Errors
    /// Names the condition that fails: a value was refused when it was set; there is no rank, or
    /// more than 2^30; the root or a target is not one of the ranks, a target is named twice, or
    /// the collective has none; a rank has no port; there is not one block
    /// size per rank; the vector or the blocks together have more than 2^60 elements; a cost is not
    /// valid; or the cost model describes too few ranks.
    pub fn validate(&self) -> Result<()> {
        if let Some(error) = &self.invalid {
            return Err(error.clone());
        }
        if self.ranks == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
        }
        if self.ranks > MAX_TRANSFERS {
            return Err(Error::usage(format!(
                "{} ranks are more than the 2^30 that can be planned for",
                self.ranks
            )));
        }
        if self.root >= self.ranks {
            return Err(Error::usage(format!(
                "root {} is not one of {} ranks (numbered from 0)",
                self.root, self.ranks
            )));
        }
        if let Some(targets) = &self.targets {
            if !self.kind.has_targets() {
                return Err(Error::usage(format!("a {} has no targets", self.kind)));
            }
            if targets.is_empty() {
                return Err(without_targets(self.kind));
            }
            self.performed(self.root).fits_ranks(self.ranks)?;
            if let Some(pair) = targets.windows(2).find(|pair| pair[0] == pair[1]) {
                let twice = pair[0];
                return Err(Error::usage(format!("target {twice} is named twice")));
            }
        }
        self.ports.validate()?;
        if let Some(blocks) = &self.blocks {
            let pairs = self.kind.has_block_pairs() && {
                // Their number may be larger than any length.
                self.ranks.checked_mul(self.ranks) == Some(blocks.len())
            };
            if blocks.len() != self.ranks && !pairs {
                return Err(Error::usage(format!(
                    "{} block sizes for {} ranks",
                    blocks.len(),
                    self.ranks
                )));
            }
            let sum = blocks.iter().try_fold(0usize, |a, &b| a.checked_add(b));
            if sum.is_none_or(|sum| sum > MAX_ELEMENTS) {
                return Err(Error::usage(
                    "the blocks have more than the 2^60 elements that can be planned for",
                ));
            }
        }
        if self.elements() > MAX_ELEMENTS {
            return Err(Error::usage(format!(
                "{} elements are more than the 2^60 that can be planned for",
                self.elements()
            )));
        }
        self.cost.validate()?;
        self.cost.covers(self.ranks)
    }

    /// The span of each rank's block among all blocks in rank order: in the output of a gather or
    /// allgather, the root's input of a scatter, and in the vector of all other collectives, with
    /// the given sizes, or with sizes that differ by at most one, larger blocks first.
    pub(crate) fn block_spans(&self) -> Vec<Span> {
        match &self.blocks {
            Some(sizes) => consecutive(sizes),
            None if self.kind.is_sized_by_block() => consecutive(&self.block_sizes()),
            None => consecutive(&evenly(self.elements(), self.ranks)),
        }
    }

    /// The collective with this root.
    pub(in crate::plan) fn performed(&self, root: usize) -> Collective {
        let collective = self.kind.with_root(root);
        if !self.kind.has_targets() {
            return collective;
        }
        let targets = self.targets.clone();
        collective.with_targets(targets.unwrap_or_else(|| (0..self.ranks).collect()))
    }

    /// The root, unless it is free.
    pub(in crate::plan) fn given_root(&self) -> Option<usize> {
        (!self.root_free).then_some(self.root)
    }

    /// Number of elements of each rank's block of a gather, scatter or allgather.
    pub(crate) fn block_sizes(&self) -> Vec<usize> {
        match &self.blocks {
            Some(sizes) => sizes.clone(),
            None => vec![self.elements(); self.ranks],
        }
    }

    /// The same request with the vector in one segment.
    pub(in crate::plan) fn whole(&self) -> Cow<'_, Request> {
        if self.segments.count() == 1 {
            return Cow::Borrowed(self);
        }
        let whole = Segments::whole(self.elements());
        Cow::Owned(self.clone().segments(whole))
    }

    /// The same request for free computation.
    pub(crate) fn without_computation(&self) -> Request {
        Request {
            cost: self.cost.clone().gamma(0.0),
            ..self.clone()
        }
    }

    /// The spans of the segments in the order in which a reduction takes them. A broadcast is
    /// planned as one and run backwards.
    pub(crate) fn reduced_segments(&self) -> Vec<Span> {
        let mut spans = self.segments.spans();
        if self.kind == Kind::Broadcast {
            cut_from_the_end(&mut spans);
        }
        spans
    }

    /// Time of a message of `elements` elements; on a heterogeneous platform, an upper bound for
    /// all links.
    #[doc(hidden)]
    pub fn transfer_time(&self, elements: usize) -> f64 {
        self.cost
            .slowest_transfer(bytes(elements, self.element_bytes))
    }

    /// The second value if a rank can send to one partner and receive from another at once, else
    /// the first one.
    pub(crate) fn by_ports<T>(&self, one_way: T, relayed: T) -> T {
        if self.ports.can_relay() {
            relayed
        } else {
            one_way
        }
    }

    /// Number and size of the segments, if closed forms over equal segments are valid: equal sizes,
    /// a homogeneous model, and no computation that overlaps communication.
    pub(crate) fn equal_segments(&self) -> Option<(usize, usize)> {
        let sizes = self.segments.sizes();
        let equal = sizes.iter().all(|&s| s == sizes[0]);
        (equal && self.closed_forms_hold()).then(|| (sizes.len(), sizes[0]))
    }

    /// Whether rank 0 forwards the result to the root: a reduction that keeps the order of the
    /// ranks ends at rank 0 where the planner does not say otherwise.
    pub(in crate::plan) fn is_forwarded(&self) -> bool {
        self.kind == Kind::Reduce && self.keep_order && self.root != 0
    }

    /// Whether all links cost the same, and the machine is ideal.
    pub(in crate::plan) fn has_uniform_costs(&self) -> bool {
        match self.cost.class() {
            (CostClass::Linear(_) | CostClass::Pieces(_), Machine::Ideal) => true,
            (CostClass::Links(_), _) | (_, Machine::Delayed) => false,
        }
    }

    /// Whether the cost model is one that closed forms are stated for: homogeneous and ideal, and
    /// no computation overlaps communication.
    pub(crate) fn closed_forms_hold(&self) -> bool {
        let overlaps = self.cost.overlaps() && self.kind.computes();
        self.has_uniform_costs() && !overlaps
    }

    /// Time to combine `elements` elements; on a heterogeneous platform, at the slowest rank.
    #[doc(hidden)]
    pub fn combine_time(&self, elements: usize) -> f64 {
        let bytes = bytes(elements, self.element_bytes);
        let ranks = self.cost.links().map_or(1, |l| l.gamma.len());
        (0..ranks).fold(0.0, |t, rank| max_time(t, self.cost.combine(rank, bytes)))
    }

    /// Time to combine `elements` elements that a rank already holds; on a heterogeneous platform,
    /// at the slowest rank.
    pub(crate) fn local_combine_time(&self, elements: usize) -> f64 {
        let bytes = bytes(elements, self.element_bytes);
        let ranks = self.cost.links().map_or(1, |l| l.gamma.len());
        (0..ranks).fold(0.0, |t, rank| {
            max_time(t, self.cost.combine_local(rank, bytes))
        })
    }
}
