//! The checker's report and its errors.

use std::fmt;

use serde::{Serialize, Serializer};

use super::bits::{Bits, OutputTrees};
use crate::schedule::Step;

/// The result of [`Schedule::check`](crate::Schedule::check).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The errors, at most [`Options::max_errors`](super::Options::max_errors) of them.
    pub errors: Vec<Finding>,
    /// Number of errors beyond these.
    pub more: usize,
    /// Whether the schedule is correct and combines all operands in rank order, so that it is also
    /// valid for operators that do not commute.
    pub keeps_order: bool,
    /// What a correct schedule does needlessly, at most [`Options::max_errors`](super::Options):
    /// [`FindingKind::HeldAlready`], [`FindingKind::Unused`], [`FindingKind::CombinedTwice`].
    pub notes: Vec<Finding>,
    /// Number of notes beyond these.
    pub more_notes: usize,
    pub(super) bits: Option<Bits>,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// The kind of error.
    pub kind: FindingKind,
    /// The rank that has the error; `None` if the ranks together do not fit the collective.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// The step, an index into the rank's program; of a wrong output the last one that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The rank at the other end of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<usize>,
    /// The port that the step names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<usize>,
    /// The first wrong element of the rank's output (an index into the output, in its order).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<usize>,
    /// Number of wrong elements from that one on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<usize>,
    /// Position of that element in the rank's buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// The rank of the first step after which a wrong output is wrong where it stands, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_rank: Option<usize>,
    /// That step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_step: Option<usize>,
    /// The correct value, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The actual value, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The steps that wait for each other, if there is a cycle; the last waits for the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<Waiting>,
    /// The whole finding in one sentence.
    pub message: String,
}

/// Kinds of errors, and of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Spans that a step writes overlap each other or spans that it reads, or the spans of a region
    /// overlap.
    Overlap,
    /// Source and destination of a local step differ in length.
    LocalLength,
    /// A rank sends to itself, or receives from itself.
    SelfMessage,
    /// A step names a port that the rank does not have.
    Port,
    /// A step is listed on a shared port that it does not use, or crosses the border of a node
    /// other than through exactly one of its ports.
    SharedPort,
    /// The input and output regions do not fit the collective.
    Layout,
    /// A send without a receive, or a receive without a send.
    Unmatched,
    /// Sender and receiver disagree on the length of a message.
    MessageLength,
    /// Steps wait for each other in a cycle.
    Deadlock,
    /// Steps wait for each other only because they share a port.
    TwoPorts,
    /// An output element does not hold exactly the contributions that it must hold.
    Contributions,
    /// An output element holds the right contributions, but not in rank order.
    OperandOrder,
    /// The schedule is for another task than the one that is asked for.
    Task,
    /// More steps or elements than can be numbered.
    TooLarge,
    /// A note: a step writes what stands there already.
    HeldAlready,
    /// A note: there is no output whose contents could be proved.
    Nothing,
    /// A note: no step reads what a step writes, and no output holds it.
    Unused,
    /// A note: a step of a reduction to one result combines what another step has combined.
    CombinedTwice,
}

/// One link of a cycle: a step that waits for another step, of its rank or before it on a shared
/// port. The matching step of its peer is part of the next link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Waiting {
    /// The rank.
    pub rank: usize,
    /// The step that waits.
    pub step: usize,
    /// The waiting step in words, e.g. `recv from 3`.
    pub what: String,
    /// The rank at the other end of the waiting step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<usize>,
    /// The step that it waits for.
    pub waits_for_step: usize,
    /// The rank of that step, if it waits on a shared port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for_rank: Option<usize>,
    /// The name of that port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_port: Option<String>,
    /// That step in words.
    pub waits_for: String,
}

impl Report {
    /// Whether there are no errors: the schedule is proved.
    pub fn is_correct(&self) -> bool {
        self.errors.is_empty() && self.more == 0
    }

    /// Which number comes out on which rank and at which place, if the schedule is a correct
    /// reduction. It matters where the order of combining decides the bits: for sums and products
    /// of floats.
    pub fn bits(&self) -> Option<&Bits> {
        self.bits.as_ref().filter(|_| self.is_correct())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_correct() {
            f.write_str(if self.keeps_order {
                "correct"
            } else {
                "correct for operators that commute: operands are not combined in rank order"
            })?;
            for note in &self.notes {
                write!(f, "\n  note: {note}")?;
            }
            match self.more_notes {
                0 => {}
                1 => f.write_str("\n  and 1 more note")?,
                n => write!(f, "\n  and {n} more notes")?,
            }
            return Ok(());
        }
        let n = self.errors.len() + self.more;
        write!(f, "{n} error{}", if n == 1 { "" } else { "s" })?;
        for e in &self.errors {
            write!(f, "\n  {e}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}

/// The JSON form of a [`Report`].
#[derive(Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct ReportForm<'a> {
    /// Whether there is no error.
    ok: bool,
    errors: &'a [Finding],
    /// Number of errors beyond these.
    more: usize,
    /// Whether it is also valid for operators that do not commute.
    keeps_order: bool,
    /// What a correct schedule does needlessly.
    notes: &'a [Finding],
    /// Number of notes beyond these.
    more_notes: usize,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        ReportForm {
            ok: self.is_correct(),
            errors: &self.errors,
            more: self.more,
            keeps_order: self.keeps_order,
            notes: &self.notes,
            more_notes: self.more_notes,
        }
        .serialize(s)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Report {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Report".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ReportForm::json_schema(generator)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Finding {
    /// A finding with only a kind and a message.
    #[doc(hidden)]
    pub fn of(kind: FindingKind, message: String) -> Finding {
        Finding {
            kind,
            rank: None,
            step: None,
            peer: None,
            port: None,
            element: None,
            elements: None,
            position: None,
            origin_rank: None,
            origin_step: None,
            expected: None,
            found: None,
            cycle: Vec::new(),
            message,
        }
    }
    pub(super) fn at(
        kind: FindingKind,
        rank: usize,
        index: usize,
        step: &Step,
        message: String,
    ) -> Finding {
        Finding {
            rank: Some(rank),
            step: Some(index),
            peer: step.peer(),
            port: step.port(),
            ..Finding::of(kind, message)
        }
    }
}

/// What the proof says of a schedule in which it has found no error.
#[derive(Debug)]
pub(super) struct Proof<'s> {
    /// All operands are combined in rank order.
    pub(super) in_order: bool,
    pub(super) bits: Option<Bits>,
    pub(super) trees: OutputTrees<'s>,
}

/// Collects findings up to a limit; further findings are counted without building their messages.
#[derive(Debug)]
pub(super) struct Findings {
    errors: Vec<Finding>,
    more: usize,
    max_errors: usize,
    notes: Vec<Finding>,
    more_notes: usize,
}

impl Findings {
    pub(super) fn new(max_errors: usize) -> Findings {
        Findings {
            errors: Vec::new(),
            more: 0,
            max_errors,
            notes: Vec::new(),
            more_notes: 0,
        }
    }

    pub(super) fn push(&mut self, finding: impl FnOnce() -> Finding) {
        if self.errors.len() < self.max_errors {
            self.errors.push(finding());
        } else {
            self.more += 1;
        }
    }

    /// As [`push`](Self::push), for a note: dropped if there are errors.
    pub(super) fn note(&mut self, note: impl FnOnce() -> Finding) {
        if !self.is_empty() {
        } else if self.notes.len() < self.max_errors {
            self.notes.push(note());
        } else {
            self.more_notes += 1;
        }
    }

    /// Whether there is no error yet.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.more == 0
    }

    /// Counts a finding without building its message.
    pub(super) fn count(&mut self) {
        self.more += 1;
    }

    /// Whether further findings are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= self.max_errors
    }

    /// The report: of a proof that found no error, with what it says of a correct schedule.
    pub(super) fn report(self, proof: Option<Proof<'_>>) -> Report {
        let proof = proof.filter(|_| self.is_empty());
        let keeps_order = proof.as_ref().is_some_and(|proof| proof.in_order);
        Report {
            errors: self.errors,
            more: self.more,
            keeps_order,
            notes: self.notes,
            more_notes: self.more_notes,
            bits: proof.and_then(|proof| proof.bits),
        }
    }
}
