//! Why an algorithm is not planned for a request, as data.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::machine::Ports;
use crate::schedule::collective::Kind;

/// An algorithm that is not planned for a request, and why. Its `Display` is the whole message.
///
/// ```
/// use oneport::plan::refusal::Reason;
/// use oneport::plan::registry;
/// use oneport::{Kind, Request};
/// let request = Request::reduce(8, 1).keep_order(true);
/// let refusal = registry::find(Kind::Reduce, "linear")?.accepts(&request);
/// assert!(refusal.is_ok());
/// let refusal = registry::find(Kind::Reduce, "bi-greedy")?.accepts(&request).unwrap_err();
/// assert_eq!(refusal.reason, Reason::Commutativity);
/// assert!(refusal.alternatives.contains(&"linear"));
/// # Ok::<(), oneport::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Name of the algorithm.
    pub algorithm: Cow<'static, str>,
    /// Its collective.
    pub collective: Kind,
    /// Why it is refused.
    pub reason: Reason,
    /// Names of the algorithms for the same collective and ports without the restriction. Empty if
    /// the reason is no restriction of the algorithm.
    pub alternatives: Vec<&'static str>,
}

/// Why an algorithm is not planned for a request.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names of the numbers say it")]
#[non_exhaustive]
pub enum Reason {
    /// The request is not valid for any algorithm.
    Invalid(Error),
    /// The request is for another collective.
    Collective(Kind),
    /// The schedule has more steps than can be numbered.
    TooManySteps { ranks: usize, segments: usize },
    /// It is planned for fewer ranks, perhaps only where links differ.
    TooManyRanks {
        ranks: usize,
        max: usize,
        links_differ: bool,
    },
    /// The blocks of all ranks have more elements together than can be counted.
    BlocksOverflow { ranks: usize, elements: usize },
    /// Block sizes for a collective with one vector.
    OneVector,
    /// It requires one size for all blocks of an alltoall for one rank.
    PairSizes,
    /// It requires links with equal costs.
    Links,
    /// It is not planned for these ports.
    Ports(Ports),
    /// It requires an operator that commutes.
    Commutativity,
    /// Ranks may get different bits of a sum of floats.
    Bits,
    /// It requires costs that show nodes.
    NoNodes,
    /// It requires nodes with the same number of ranks.
    NodeSizes { smallest: usize, largest: usize },
    /// It keeps the order of operands only where each node has consecutive ranks.
    NodeOrder,
    /// The schedule is longer than a limit of the caller.
    TooLong {
        ranks: usize,
        segments: usize,
        steps: u64,
        max_steps: u64,
    },
    /// A comparison would take too long to time this many steps.
    TooLongToTime { steps: u64 },
    /// The root is free, and the search for the best one would take too long.
    FreeRoot { ranks: usize },
    /// The schedule needs more memory than there is: the message.
    Memory(String),
    /// The request's costs give no finite time.
    NoFiniteTime,
    /// Planning or timing failed.
    Planner(Error),
}

impl Refusal {
    /// The message without the alternatives, for callers that list the other algorithms anyway.
    pub fn without_alternatives(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write(f, false))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, with_alternatives: bool) -> fmt::Result {
        let (name, collective) = (&self.algorithm, self.collective.name());
        let it = format!("{name} {collective}");
        f.write_str(&match &self.reason {
            Reason::Invalid(error) | Reason::Planner(error) => error.to_string(),
            Reason::Memory(message) => message.clone(),
            Reason::Collective(requested) => {
                let requested = requested.name();
                format!("{name} is an algorithm for {collective}, the request is for {requested}")
            }
            Reason::TooManySteps { ranks, segments } => format!(
                "{ranks} ranks with {segments} segments need more than the 2^31 steps that can be numbered: take larger segments"
            ),
            Reason::BlocksOverflow { ranks, elements } => {
                format!("{ranks} blocks of {elements} elements overflow")
            }
            &Reason::TooManyRanks { ranks, max, links_differ } => {
                let on = if links_differ { " where links differ" } else { "" };
                format!("{it} is planned for at most {max} ranks{on}, not {ranks}")
            }
            Reason::OneVector => format!(
                "{collective} has one vector, not a block for each rank: give its size alone"
            ),
            Reason::PairSizes => format!("{it} needs one size for all blocks of a rank"),
            Reason::Links => format!("{it} needs links that all cost the same"),
            Reason::Ports(ports) => format!("{it} is not planned for {} ports", ports.name()),
            Reason::Commutativity => format!("{it} needs an operator that commutes"),
            Reason::Bits => format!("{it} may give ranks different bits of a sum of floats"),
            Reason::NoNodes => {
                format!("{it} needs costs with levels, which show the nodes of the machine")
            }
            Reason::NodeSizes { smallest, largest } => format!(
                "{it} needs nodes of one size, and these have {smallest} to {largest} ranks"
            ),
            Reason::NodeOrder => format!(
                "{it} keeps the order of operands only where each node has consecutive ranks"
            ),
            &Reason::TooLong { ranks, segments, steps, max_steps } => format!(
                "{} is longer than this program's limit of {max_steps} steps: take fewer ranks or larger segments",
                describe(name, ranks, segments, steps)
            ),
            Reason::TooLongToTime { steps } => {
                format!("timing its {steps} steps would take too long")
            }
            Reason::FreeRoot { ranks } => format!(
                "{it} finds the best root by planning for each, which takes too long for {ranks} ranks: give a root"
            ),
            Reason::NoFiniteTime => format!("{it} has no finite time with these costs"),
        })?;
        match self.alternatives.as_slice() {
            [] if self.reason.is_restriction() => f.write_str(": no algorithm here does without"),
            [_, ..] if with_alternatives => write!(f, ": choose {}", self.alternatives.join(", ")),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal.reason {
            Reason::Invalid(error) | Reason::Planner(error) => error,
            ref reason if reason.is_of_size() => Error::too_large(refusal.to_string()),
            _ => Error::usage(refusal.to_string()),
        }
    }
}

impl Reason {
    /// Whether planning or timing it takes too long or too much memory: the algorithm is one for
    /// the request all the same, and may be the fastest.
    pub fn is_of_size(&self) -> bool {
        match self {
            Reason::Planner(error) => matches!(error.kind(), ErrorKind::TooLarge(_)),
            Reason::TooLong { .. }
            | Reason::TooLongToTime { .. }
            | Reason::TooManySteps { .. }
            | Reason::TooManyRanks { .. }
            | Reason::FreeRoot { .. }
            | Reason::Memory(_) => true,
            _ => false,
        }
    }

    /// Whether it is a restriction of the algorithm that others may not have.
    pub(crate) fn is_restriction(&self) -> bool {
        matches!(
            self,
            Reason::PairSizes
                | Reason::Links
                | Reason::Ports(_)
                | Reason::Commutativity
                | Reason::Bits
        )
    }
}

/// Describes a schedule by its algorithm and size.
#[doc(hidden)]
pub fn describe(algorithm: &str, ranks: usize, segments: usize, steps: u64) -> String {
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    format!(
        "{algorithm} with {ranks} rank{} and {segments} segment{} (about {steps} steps)",
        plural(ranks),
        plural(segments)
    )
}
