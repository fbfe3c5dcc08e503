//! The forms in which options take values: how a text is read, and what stands for it in help.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;
use oneport::internal::split_outside;
use oneport::run::{Clock, ElementType, Op};
use oneport::{Error, Kind, Ports};

use crate::ask::{Form, Named, forms};
use crate::ranges::{Ranges, parse_counts, parse_sizes};
use crate::units::{
    TimeArg, parse_budget, parse_core, parse_count, parse_deadline, parse_rate, parse_size,
    parse_time, parse_tolerance, with_similar,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Rank(usize),
    Free,
}

/// Which algorithms an option names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum AlgorithmNames {
    /// `auto`: the fastest.
    #[default]
    Auto,
    /// `all` of the collective.
    All,
    These(Vec<String>),
}

impl AlgorithmNames {
    /// Whether none is named: those that do not apply are then left out.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, AlgorithmNames::These(_))
    }

    /// Those that are named.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            AlgorithmNames::Auto | AlgorithmNames::All => &[],
            AlgorithmNames::These(names) => names,
        }
    }

    /// Whether several algorithms may be meant.
    pub(crate) fn are_several(&self) -> bool {
        self.is_open() || self.names().len() > 1
    }
}

/// As it is written.
impl fmt::Display for AlgorithmNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlgorithmNames::Auto => f.write_str("auto"),
            AlgorithmNames::All => f.write_str("all"),
            AlgorithmNames::These(names) => f.write_str(&names.join(",")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentCount {
    Count(usize),
    /// As many segments, of such sizes, as a search finds best.
    Unequal,
}

/// Help of the options for ports of a rank.
macro_rules! ports_help {
    () => {
        "Ports of a rank: uni (one for both directions), bi (one out, one in) or telephone (both \
         directions, but one partner at a time)"
    };
}
pub(crate) use ports_help;

pub(crate) const PORTS: [Named<Ports>; Ports::KINDS.len()] = {
    let mut named = [("", "", Ports::UNI); Ports::KINDS.len()];
    let mut at = 0;
    while at < named.len() {
        named[at] = (Ports::NAMES[at], "", Ports::KINDS[at]);
        at += 1;
    }
    named
};

pub(crate) const CLOCKS: [Named<Clock>; 2] =
    [("native", "", Clock::Native), ("paced", "", Clock::Paced)];

forms! {
    /// One collective.
    KindName: Kind = "COLLECTIVE", by parse_kind;
    /// Numbers of ranks.
    Ranks: Ranges = "P", by parse_ranks, Wholes;
    /// Names of algorithms, `auto` or `all`.
    AlgorithmList: AlgorithmNames = "NAME,...|auto", by parse_algorithms;
    /// A rank, or `free`.
    RootName: Root = "RANK|free", by parse_root, Whole;
    /// A rank.
    RankNumber: usize = "RANK", by parse_plain, Whole;
    /// A number of bytes.
    Size: u64 = "SIZE", by parse_size, Whole;
    /// Several of them.
    Sizes: Ranges = "SIZE", by parse_sizes, Wholes;
    /// A whole number.
    Count: usize = "COUNT", by parse_count, Whole;
    /// Where random numbers start from.
    Seed: u64 = "N", by parse_plain, Whole;
    /// A time, or a number of time units.
    Time: TimeArg = "TIME", by parse_time, Number;
    /// A time per byte, or a bandwidth.
    Rate: TimeArg = "TIME", by parse_rate, Number;
    /// How long something may take.
    Budget: Duration = "TIME", by parse_budget, Number;
    /// After how long something is given up.
    Deadline: Duration = "TIME", by parse_deadline, Number;
    /// A part of something, in percent.
    Tolerance: f64 = "PERCENT", by parse_tolerance, Number;
    /// Numbers of cores, and ranges of them.
    Core: RangeInclusive<usize> = "CORE,CORE,...", by parse_core, Whole;
    /// The size of a segment.
    Segment: u64 = "SIZE", by parse_segment, Whole;
    /// A number of segments, or `unequal`.
    SegmentCounts: SegmentCount = "COUNT|unequal", by parse_segments, Whole;
    /// Kinds of ports.
    PortNames: Ports = Ports::USAGE, of PORTS;
    /// Clocks.
    ClockName: Clock = "CLOCK", of CLOCKS;
}

/// An element type.
#[derive(Debug)]
pub(crate) struct TypeName;

impl Form for TypeName {
    type Value = ElementType;
    const NAME: &'static str = "TYPE";

    fn parse(text: &str) -> Result<ElementType, String> {
        text.parse().map_err(|error: Error| error.to_string())
    }

    fn names() -> Vec<(&'static str, &'static str)> {
        ElementType::ALL.iter().map(|t| (t.name(), "")).collect()
    }
}

/// An operator.
#[derive(Debug)]
pub(crate) struct OpName;

impl Form for OpName {
    type Value = Op;
    const NAME: &'static str = "OP";

    fn parse(text: &str) -> Result<Op, String> {
        text.parse().map_err(|error: Error| error.to_string())
    }

    fn names() -> Vec<(&'static str, &'static str)> {
        Op::ALL.iter().map(|op| (op.name(), "")).collect()
    }
}

/// Parses names of algorithms; which there are is known with the collective.
fn parse_algorithms(text: &str) -> Result<AlgorithmNames, String> {
    Ok(match text {
        "auto" => AlgorithmNames::Auto,
        "all" => AlgorithmNames::All,
        names => {
            let names = split_outside(names, ',').into_iter();
            AlgorithmNames::These(names.map(str::to_string).collect())
        }
    })
}

/// Parses numbers of ranks. `-np 8`, as launchers have it, arrives here as the value `p` of `-n`.
pub(crate) fn parse_ranks(text: &str) -> Result<Ranges, String> {
    match text {
        "p" => Err("write the number of ranks as -p 8 or -n 8".into()),
        _ => parse_counts(text),
    }
}

/// Parses a collective's name, or that of its function in MPI, such as `bcast`; the error suggests
/// a similar name.
pub(crate) fn parse_kind(text: &str) -> Result<Kind, String> {
    let lower = text.to_ascii_lowercase();
    let function = format!("mpi_{}", lower.strip_prefix("mpi_").unwrap_or(&lower));
    let is_function = |kind: &&Kind| {
        let mut functions = kind.row().mpi.iter();
        functions.any(|name| name.eq_ignore_ascii_case(&function))
    };
    if let Some(kind) = Kind::ALL.iter().find(is_function) {
        return Ok(*kind);
    }
    text.parse::<Kind>().map_err(|error| {
        let names = Kind::ALL.iter().map(|k| k.name());
        with_similar(&error.to_string(), text, names)
    })
}

fn parse_plain<N: TryFrom<u128>>(text: &str) -> Result<N, String> {
    let number: u128 = text
        .parse()
        .map_err(|_| format!("'{text}' is not a whole number from 0"))?;
    N::try_from(number).map_err(|_| format!("{text} is too large"))
}

fn parse_segments(text: &str) -> Result<SegmentCount, String> {
    if text == "unequal" {
        return Ok(SegmentCount::Unequal);
    }
    let several = || several_segments(text, "--segments 8", parse_counts);
    parse_count(text)
        .map(SegmentCount::Count)
        .map_err(|error| several().unwrap_or_else(|| format!("{error}, or 'unequal'")))
}

fn parse_segment(text: &str) -> Result<u64, String> {
    let several = |error| several_segments(text, "--segment 32KiB", parse_sizes).unwrap_or(error);
    parse_size(text).map_err(several)
}

/// The error about several values where there is one, if these are such.
fn several_segments(
    text: &str,
    one: &str,
    parse: impl Fn(&str) -> Result<Ranges, String>,
) -> Option<String> {
    parse(text).ok().map(|_| {
        format!(
            "'{text}' is more than one value: give one, such as {one}, or none for the best; \
             `oneport tune` measures several"
        )
    })
}

pub(crate) fn parse_root(text: &str) -> Result<Root, String> {
    if text == "free" {
        return Ok(Root::Free);
    }
    text.parse()
        .map(Root::Rank)
        .map_err(|_| format!("'{text}' is neither a rank (a number from 0) nor 'free'"))
}
