//! Uni-greedy reduction: the fastest unidirectional reduction among all in which every rank reduces
//! the segments in order.
//!
//! - Source: Lowery & Langou, algorithm 1, theorem 5.
//! - Ports: unidirectional, one-ported.
//! - Symbols: `p` ranks, `q` segments, the `i`-th of `s_i` elements, `tc = alpha + beta s_i`,
//!   `tp = gamma s_i`.
//! - Rounds and time: no closed form ([`makespan`] evaluates the time).
//! - Volume: `(p - 1) m`.
//! - Restrictions: the operator must commute.
//!
//! The state of a rank is the time at which it finished its last task. While more than one rank
//! still holds a segment, the two holders with the smallest states are paired. Their transfer
//! starts at the larger of the two states, `t`. One of them sends (never the root) and is free at
//! `t + tc`; the other receives and is free at `t + tc + tp`. Ties do not change the makespan. Here
//! the smaller rank of a pair receives, and of equal states the one that entered the queues first
//! is taken first, so that all ranks can compute the same schedule.
//!
//! No heap is needed. Within a segment `t` never decreases, so receivers return in sorted order. So
//! do senders, whose states are those of the next segment. Two queues give constant time for each
//! transfer.
//!
//! Example, `p = 3`, two segments, `tc = 2`, `tp = 1` (makespan 11):
//!
//! | segment | transfer | starts | sender free | receiver free |
//! |---|---|---|---|---|
//! | 0 | 1→0 | 0 | 2 | 3 |
//! | 0 | 2→0 | 3 | 5 | 6 |
//! | 1 | 2→1 | 5 | 7 | 8 |
//! | 1 | 1→0 | 8 | 10 | 11 |

mod best_segment;

use crate::error::Result;
use crate::plan::build::reduction::Reduction;
use crate::plan::registry::row;
use crate::plan::registry::{Algorithm, BestSegment, ClosedForm, Planner, PortModels};
use crate::plan::{Request, Transfer};
use crate::schedule::Schedule;
use crate::schedule::collective::Kind;

pub use best_segment::best_uni_greedy;

pub(in crate::plan) const REDUCE: Algorithm = Algorithm {
    ports: PortModels::Uni,
    commutative_only: true,
    segmented: true,
    transfers: row::for_each_segment,
    source: "Lowery & Langou, algorithm 1",
    rounds: "no closed form; the fewest of all that reduce segments in order",
    volume: "(p-1) m",
    planner: Planner::Reduction(reduction),
    closed_form: ClosedForm::Of(time),
    best_segment: BestSegment::Own(best_segment::best),
    ..row::new("uni-greedy", Kind::Reduce, plan)
};

pub(in crate::plan) const ALLREDUCE: Algorithm =
    row::allreduce(REDUCE, "twice those of the reduction");

/// Plans the reduction.
///
/// # Errors
/// When the request is inconsistent.
pub fn plan(request: &Request) -> Result<Schedule> {
    reduction(request)?.materialize()
}

/// Plans the reduction as a compact list of transfers, without storing its steps.
pub(in crate::plan) fn reduction(request: &Request) -> Result<Reduction> {
    // The registry admits only commuting operators here, so ranks may be rotated to any root. For a
    // reversed broadcast operand order has no meaning.
    let request = Request {
        keep_order: false,
        ..request.clone()
    };
    Reduction::new(&request, transfers(&request).map(|t| [t]))
}

/// Time of the schedule; `None` if costs differ from rank to rank or computation overlaps.
pub fn time(request: &Request) -> Option<f64> {
    request
        .closed_forms_hold()
        .then(|| makespan(request.ranks, costs(request)))
}

/// All transfers of the reduction, in the order of their starts within each segment.
///
/// A rank can reduce without a stored schedule: every rank computes the same sequence and carries
/// out the transfers that name it.
pub fn transfers(request: &Request) -> impl Iterator<Item = Transfer> + use<> {
    let mut greedy = Greedy::new(request.ranks);
    let mut costs = costs(request).collect::<Vec<_>>().into_iter();
    std::iter::from_fn(move || {
        loop {
            if let Some(transfer) = greedy.next() {
                return Some(transfer);
            }
            let (transfer_time, combine_time) = costs.next()?;
            greedy.next_segment(transfer_time, combine_time);
        }
    })
}

/// `(tc, tp)` of every segment. Empty for a single rank, which has no link to take costs from.
pub(super) fn costs(request: &Request) -> impl Iterator<Item = (f64, f64)> {
    let sizes = request.segments.sizes();
    let sizes = if request.ranks < 2 { &[] } else { sizes };
    sizes
        .iter()
        .map(|&s| (request.transfer_time(s), request.combine_time(s)))
}

/// Computes the greedy schedule step by step: an iterator over the transfers of the current
/// segment.
///
/// ```
/// use oneport::plan::pipeline::uni_greedy::Greedy;
/// let mut greedy = Greedy::new(3);
/// let mut pairs = Vec::new();
/// for (transfer_time, combine_time) in [(2.0, 1.0), (2.0, 1.0)] {
///     greedy.next_segment(transfer_time, combine_time);
///     pairs.extend(greedy.by_ref().map(|t| (t.segment, t.from, t.to)));
/// }
/// assert_eq!(pairs, [(0, 1, 0), (0, 2, 0), (1, 2, 1), (1, 1, 0)]);
/// assert_eq!(greedy.time(), 11.0);
/// ```
#[derive(Debug, Clone)]
pub struct Greedy {
    /// Holders that have not taken part in the current segment, sorted. Entries before
    /// `first_waiting` have been consumed.
    waiting: Vec<State>,
    first_waiting: usize,
    /// Holders that have received, sorted. Entries before `first_combined` have been consumed.
    combined: Vec<State>,
    first_combined: usize,
    /// Ranks that have finished the current segment, sorted.
    done: Vec<State>,
    segments: usize,
    transfer_time: f64,
    combine_time: f64,
    time: f64,
}

/// A rank and the time from which it is free.
#[derive(Debug, Clone, Copy)]
struct State {
    free: f64,
    rank: usize,
}

impl Greedy {
    /// Starts before the first segment with `ranks` free ranks. Rank 0 is the root.
    pub fn new(ranks: usize) -> Greedy {
        Greedy {
            waiting: Vec::with_capacity(ranks),
            first_waiting: 0,
            combined: Vec::with_capacity(ranks),
            first_combined: 0,
            done: (0..ranks).map(|rank| State { free: 0.0, rank }).collect(),
            segments: 0,
            transfer_time: 0.0,
            combine_time: 0.0,
            time: 0.0,
        }
    }

    /// Moves on to the next segment. Its message takes `transfer_time` and its combination
    /// `combine_time`.
    pub fn next_segment(&mut self, transfer_time: f64, combine_time: f64) {
        while self.next().is_some() {}
        std::mem::swap(&mut self.waiting, &mut self.done);
        self.done.clear();
        self.combined.clear();
        (self.first_waiting, self.first_combined) = (0, 0);
        (self.transfer_time, self.combine_time) = (transfer_time, combine_time);
        self.segments += 1;
    }

    /// The time at which the transfers yielded so far, and their combinations, have finished.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Removes the holder with the smallest state from the queues.
    fn pop_smallest(&mut self) -> Option<State> {
        let waiting = self.waiting.get(self.first_waiting).copied();
        let combined = self.combined.get(self.first_combined).copied();
        if waiting.is_some_and(|w| combined.is_none_or(|c| w.free <= c.free)) {
            self.first_waiting += 1;
            waiting
        } else {
            self.first_combined += usize::from(combined.is_some());
            combined
        }
    }
}

impl Iterator for Greedy {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        let a = self.pop_smallest()?;
        let Some(b) = self.pop_smallest() else {
            self.done.push(a); // only the root is left: the segment is reduced
            return None;
        };
        let sent = b.free + self.transfer_time;
        let combined = sent + self.combine_time;
        let (from, to) = (a.rank.max(b.rank), a.rank.min(b.rank));
        self.done.push(State {
            free: sent,
            rank: from,
        });
        self.combined.push(State {
            free: combined,
            rank: to,
        });
        self.time = self.time.max(combined);
        Some(Transfer::new(self.segments - 1, from, to))
    }
}

/// The makespan over segments with these `(tc, tp)`, computed without a schedule: see [`States`].
///
/// ```
/// use oneport::plan::pipeline::uni_greedy::makespan;
/// assert_eq!(makespan(15, [(2.0, 1.0); 5]), 39.0);
/// ```
pub fn makespan(ranks: usize, costs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let mut states = States::new(ranks);
    let mut costs = costs.into_iter().peekable();
    while let Some(cost) = costs.next() {
        let mut count = 1;
        while costs.next_if_eq(&cost).is_some() {
            count += 1;
        }
        states.reduce(cost.0, cost.1, count);
    }
    states.time()
}

/// The states of all ranks between two segments, without the ranks' names. The makespan depends on
/// nothing else.
///
/// Equal states are kept as one run and are paired in bulk, so a segment costs about as many
/// operations as there are different states (some dozens for a thousand ranks). Over equal segments
/// the states, relative to the smallest, become periodic after a transient. Once they repeat,
/// [`States::reduce`] skips whole periods. Both are exact for whole-number costs. For other costs,
/// states that differ only by rounding count as equal. A segment never enlarges a difference (the
/// step is monotone, lemma 4 of the paper, and adding a constant to all states adds it to the
/// result), so the error stays of the size of rounding errors.
#[derive(Debug, Clone)]
pub struct States {
    /// The smallest state. The runs are relative to it.
    base: f64,
    runs: Vec<Run>,
    done: Vec<Run>,
    combined: Vec<Run>,
    /// The earlier pattern that the current one is compared with to detect a period.
    earlier: Vec<Run>,
}

/// This many ranks with the same state.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    free: f64,
    count: usize,
}

/// If costs are not whole numbers, states with a smaller relative difference count as equal.
const ROUNDING: f64 = 1e-14;

impl States {
    /// Starts with `ranks` free ranks.
    pub fn new(ranks: usize) -> States {
        let mut states = States {
            base: 0.0,
            runs: Vec::new(),
            done: Vec::new(),
            combined: Vec::new(),
            earlier: Vec::new(),
        };
        states.reset(ranks);
        states
    }

    /// Restarts with `ranks` free ranks.
    pub fn reset(&mut self, ranks: usize) {
        self.base = 0.0;
        self.runs.clear();
        self.runs.extend((ranks > 0).then_some(Run {
            free: 0.0,
            count: ranks,
        }));
    }

    /// The time at which the last rank, the root, is free: the makespan so far.
    pub fn time(&self) -> f64 {
        self.base + self.runs.last().map_or(0.0, |r| r.free)
    }

    /// Reduces `count` segments of equal cost.
    pub fn reduce(&mut self, transfer_time: f64, combine_time: f64, count: usize) {
        if self
            .runs
            .first()
            .is_none_or(|r| r.count < 2 && self.runs.len() == 1)
        {
            return; // fewer than two ranks
        }
        if !(transfer_time.is_finite() && combine_time.is_finite() && self.base.is_finite()) {
            self.base = f64::INFINITY;
            return;
        }
        let exact = transfer_time.fract() == 0.0 && combine_time.fract() == 0.0;
        let tolerance = if exact { 0.0 } else { ROUNDING };
        // Brent's cycle detection: compare with the pattern after 0, 1, 3, 7, .. segments.
        let (mut earlier_base, mut earlier_at, mut power) = (self.base, 0, 1);
        self.earlier.clone_from(&self.runs);
        let mut at = 0;
        while at < count {
            self.segment(transfer_time, combine_time, tolerance);
            at += 1;
            if self.repeats(tolerance) {
                let period = at - earlier_at;
                let periods = (count - at) / period;
                let jump = periods as f64 * (self.base - earlier_base);
                self.base += jump;
                for _ in at + periods * period..count {
                    self.segment(transfer_time, combine_time, tolerance);
                }
                return;
            }
            if at - earlier_at == power {
                self.earlier.clone_from(&self.runs);
                (earlier_base, earlier_at, power) = (self.base, at, 2 * power);
            }
        }
    }

    /// Whether the current pattern equals the earlier one.
    fn repeats(&self, tolerance: f64) -> bool {
        let bound = tolerance * self.runs.last().map_or(0.0, |r| r.free);
        self.runs.len() == self.earlier.len()
            && self
                .runs
                .iter()
                .zip(&self.earlier)
                .all(|(a, b)| a.count == b.count && (a.free - b.free).abs() <= bound)
    }

    /// Reduces one segment.
    fn segment(&mut self, transfer_time: f64, combine_time: f64, tolerance: f64) {
        self.done.clear();
        self.combined.clear();
        let (mut w, mut c) = (0, 0);
        // A holder that found no partner among those with the same state.
        let mut single: Option<f64> = None;
        loop {
            let free = match (self.runs.get(w), self.combined.get(c)) {
                (Some(a), Some(b)) => a.free.min(b.free),
                (Some(a), None) | (None, Some(a)) => a.free,
                (None, None) => break,
            };
            let mut holders = 0;
            if let Some(run) = self.runs.get(w).filter(|r| r.free == free) {
                holders += run.count;
                w += 1;
            }
            if let Some(run) = self.combined.get(c).filter(|r| r.free == free) {
                holders += run.count;
                c += 1;
            }
            holders += usize::from(single.is_some());
            single = (holders % 2 == 1).then_some(free);
            let pairs = holders / 2;
            if pairs > 0 {
                let sent = free + transfer_time;
                // Runs that have already been consumed must not grow.
                push(&mut self.done, 0, sent, pairs, tolerance);
                push(&mut self.combined, c, sent + combine_time, pairs, tolerance);
            }
        }
        let root = single.expect("one holder is left of a segment");
        push(&mut self.done, 0, root, 1, tolerance);
        let first = self.done[0].free;
        for run in &mut self.done {
            run.free -= first;
        }
        self.base += first;
        std::mem::swap(&mut self.runs, &mut self.done);
    }
}

/// Appends a run to a sorted list. Merges it with the last run if their states are equal or, from
/// index `live` on, differ only by rounding.
fn push(runs: &mut Vec<Run>, live: usize, free: f64, count: usize, tolerance: f64) {
    match runs[live..].last_mut() {
        Some(last) if free - last.free <= tolerance * free => last.count += count,
        _ => runs.push(Run { free, count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Segments, registry};
    use crate::{CostModel, Kind, Ports};

    fn request(p: usize, sizes: &[usize], alpha: f64, beta: f64, gamma: f64) -> Request {
        let mut r = Request::new(p, 0);
        r.segments = Segments::of_sizes(sizes.to_vec()).unwrap();
        r.ports = Ports::UNI;
        r.cost = CostModel::new(alpha, beta).gamma(gamma);
        r
    }

    fn simulated(kind: Kind, request: &Request) -> f64 {
        let schedule = registry::find(kind, "uni-greedy")
            .unwrap()
            .plan(request)
            .unwrap();
        schedule
            .simulate(&request.cost, request.element_bytes)
            .unwrap()
            .time()
    }

    /// The makespan by definition: find the two smallest states by sorting.
    fn oracle(p: usize, costs: &[(f64, f64)]) -> f64 {
        let mut states = vec![0.0f64; p];
        for &(tc, tp) in costs {
            let mut holders = std::mem::take(&mut states);
            while holders.len() > 1 {
                holders.sort_by(f64::total_cmp);
                let t = holders[1];
                holders.drain(..2);
                states.push(t + tc);
                holders.push(t + tc + tp);
            }
            states.append(&mut holders);
        }
        states.into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn figure_3() {
        // One element per segment, so transfer_time = 2 and combine_time = 1.
        let r = request(15, &[1; 5], 1.0, 1.0, 1.0);
        assert_eq!(simulated(Kind::Reduce, &r), 39.0);
        assert_eq!(time(&r), Some(39.0));
        assert_eq!(simulated(Kind::Broadcast, &r), 28.0);
    }

    #[test]
    fn schedule_stream_states_and_definition_agree() {
        let segmentations: [&[usize]; 6] = [
            &[1],
            &[4, 4, 2],
            &[5, 3, 2],
            &[1, 0, 7, 7, 7, 2],
            &[0],
            &[3; 12],
        ];
        for p in 1..=40 {
            for sizes in segmentations {
                for (alpha, beta, gamma) in [
                    (10.0, 1.0, 0.0),
                    (1.0, 1.0, 1.0),
                    (0.0, 2.0, 3.0),
                    (0.0, 0.0, 1.0),
                ] {
                    let mut r = request(p, sizes, alpha, beta, gamma);
                    r.root = p / 2;
                    let costs: Vec<_> = costs(&r).collect();
                    let expected = oracle(p, &costs);
                    assert_eq!(time(&r), Some(expected), "p={p} {sizes:?}");
                    assert_eq!(simulated(Kind::Reduce, &r), expected, "p={p} {sizes:?}");
                    let mut greedy = Greedy::new(p);
                    for (tc, tp) in costs {
                        greedy.next_segment(tc, tp);
                        assert_eq!(greedy.by_ref().count(), p - 1);
                    }
                    assert_eq!(greedy.time(), expected);
                }
            }
        }
    }

    #[test]
    fn jumps_are_exact_for_whole_numbers_and_within_rounding_otherwise() {
        for p in [2, 3, 5, 8, 15, 24, 33, 64, 100, 1000] {
            for (tc, tp) in [
                (1.0, 0.0),
                (2.0, 1.0),
                (11.0, 1.0),
                (17.0, 7.0),
                (3.0, 8.0),
                (0.1, 0.0),
                (0.3, 0.1),
                (1.7, 2.9),
            ] {
                let mut greedy = Greedy::new(p);
                for q in 1..=200 {
                    greedy.next_segment(tc, tp);
                    while greedy.next().is_some() {}
                    let fast = makespan(p, vec![(tc, tp); q]);
                    if tc.fract() == 0.0 {
                        assert_eq!(fast, greedy.time(), "p={p} q={q} {tc} {tp}");
                    } else {
                        assert!(
                            (fast / greedy.time() - 1.0).abs() < 1e-12,
                            "p={p} q={q} {tc} {tp}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn few_ranks_and_dead_links() {
        assert_eq!(makespan(0, [(1.0, 1.0)]), 0.0);
        assert_eq!(makespan(1, [(1.0, 1.0)]), 0.0);
        assert_eq!(
            makespan(2, [(f64::INFINITY, 1.0), (1.0, 1.0)]),
            f64::INFINITY
        );
        assert_eq!(makespan(1_000_000, [(1.0, 1.0)]), 40.0);
        let mut none = Greedy::new(0);
        none.next_segment(1.0, 1.0);
        assert_eq!(none.next(), None);
    }
}
