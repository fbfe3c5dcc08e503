//! What a search says of a variant: how its segments were found ([`Method`]), its time or an upper
//! bound of that ([`Time`]), and what was not compared ([`LeftOut`]).

use std::fmt;

/// How segments were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The whole vector is the only segment: it has one element at most, there is one rank, or the
    /// row knows that parts gain nothing. In a [`BestSizes`], also that the algorithm does not
    /// split it.
    ///
    /// [`BestSizes`]: crate::plan::segments::BestSizes
    Whole,
    /// By the closed form, near its optimum: its integer neighbours, and a few more.
    ClosedForm,
    /// All sizes were compared, and all numbers of segments (by uni-greedy of more than 2^10
    /// elements those near the best size).
    Exhaustive,
    /// A search compared some of them.
    Search,
    /// A formula or a search compared some of them, and left out others that exceed its limits:
    /// schedules that take too long to simulate or too much memory, more than 2^22 segments. These
    /// may be better.
    LimitedSearch,
}

/// What is known of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Time {
    /// The time itself, as executed.
    Exact(f64),
    /// An upper bound, where the schedule takes too long to simulate: the time of a vector rounded
    /// up to whole segments, on a tree rounded up to a full one, or of ports used in one direction
    /// at a time.
    AtMost(f64),
}

impl Time {
    /// The time, or the upper bound.
    pub fn value(self) -> f64 {
        let (Time::Exact(time) | Time::AtMost(time)) = self;
        // An empty sum is -0: no time has that sign.
        time + 0.0
    }

    /// Whether it is an upper bound.
    pub fn is_upper_bound(self) -> bool {
        matches!(self, Time::AtMost(_))
    }
}

/// Whether a time is smaller than another one by more than rounding errors.
pub fn is_better(time: f64, other: f64) -> bool {
    time < other * (1.0 - ROUNDING)
}

/// The largest time that differs from this one by no more than rounding errors.
pub(in crate::plan) fn with_rounding(time: f64) -> f64 {
    time / (1.0 - ROUNDING)
}

const ROUNDING: f64 = 1e-12;

/// What a search did not compare because it would take too long or too much memory, and may be
/// better.
///
/// [`Request::plan_best`], [`Request::plan`] and [`Request::time`], the methods of [`Algorithm`],
/// and [`best_unequal`](crate::plan::segments::best_unequal), where it is not about segments, have
/// no place for it.
///
/// That a search compares some segments only is its `Method`, and no news: those that it does not
/// come to may be better, such as some of which an upper bound alone is known. Nobody says it of
/// what planners search for by themselves:
/// - parts of `hier`, `lane`, `composed` and `gossip`: what the searches for these left out, and
///   algorithms whose schedules are too long to compare (`budget::search::is_short`; not of
///   `gossip`);
/// - broadcasts of multicasts, and those that the allreduces of split-binary and out-of-order
///   compare: uses of the ports, and segments that take too long to plan;
/// - plans of out-of-order beyond the effort of its search, which may end with that of uni-greedy;
/// - segments on ports that nodes share, which are searched for as if these shared none;
/// - trees beyond those that a search proves to be the best: those of gathers and scatters, and of
///   the reductions and broadcasts `unordered`. The pages of the planners name them.
///
/// [`Request::plan_best`]: crate::Request::plan_best
/// [`Request::plan`]: crate::Request::plan
/// [`Request::time`]: crate::Request::time
/// [`Algorithm`]: crate::plan::registry::Algorithm
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// Segments beyond the limits of time and memory.
    Segments,
    /// The time of a schedule that takes too long to simulate: an upper bound is known. It is the
    /// chosen schedule ([`Choice::is_upper_bound`](crate::plan::choose::Choice::is_upper_bound)),
    /// or that of another root or use of the ports, with which the algorithm may take less time
    /// than with the chosen one.
    Time,
    /// The order of float sums that gives all ranks the same bits, of a long schedule.
    Order,
    /// Uses of the ports other than those that were compared.
    Ports,
    /// Roots other than the one that the planner takes.
    Roots {
        /// Number of ranks.
        ranks: usize,
    },
    /// Something of other algorithms, which may be faster than the chosen one.
    Algorithms {
        /// Number of these algorithms.
        count: usize,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Segments => f.write_str(
                "better segments: the search left out sizes that take too much time or memory",
            ),
            LeftOut::Time => f.write_str("a smaller time: its schedule takes too long to simulate"),
            LeftOut::Order => f.write_str(
                "a smaller time with the same bits on all ranks: simulating both takes too long",
            ),
            LeftOut::Ports => f.write_str(
                "a better use of its ports: planning for each takes too much time or memory",
            ),
            LeftOut::Roots { ranks } => write!(
                f,
                "a better root: planning for each takes too long for {ranks} ranks"
            ),
            LeftOut::Algorithms { count } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(
                    f,
                    "a faster alternative: {count} other algorithm{plural} took too much time or memory to search whole"
                )
            }
        }
    }
}
