//! The checker: proves that a schedule is well formed, matches, cannot deadlock and computes its
//! collective.
//!
//! [`Schedule::check`] has four stages and reports as many independent errors of each as it can:
//!
//! 1. *Structure*: the spans of a step do not overlap, lengths agree, ports exist, the regions fit
//!    the collective, and the shared ports of a node carry all that crosses its border, each
//!    transfer once.
//! 2. *Matching*: the `n`-th send from `a` to `b` has a receive of the same length.
//! 3. *Deadlock*: by the rules of time ([`crate::rules`]) every step can start. If not, the
//!    report names the cycle, or the port that would have to carry two transfers at once.
//! 4. *Proof*: symbols move through the schedule. Element `i` of rank `r`'s input is the symbol
//!    `x_r[i]`, and an element that no step has written is *nothing*. Each element holds the
//!    ordered list of the symbols combined in it. At the end every output element must hold the
//!    content given by [`Collective::expected_output`](crate::Collective::expected_output): each
//!    contribution once, from the correct element, and in rank order if the operator does not
//!    commute.
//!
//! The proof also notes what a correct schedule does needlessly: a step that writes what stands
//! there already or what nothing uses, and a partial result of a reduction that two steps combine.
//! Of a correct reduction it says which number comes out on which rank and at which place, where
//! the order of combining decides the bits: [`Bits`].
//!
//! A stage is skipped if earlier errors make it meaningless; the proof, for example, needs a
//! schedule that completes. Runs of elements that behave alike are handled together, so the work
//! does not depend on the length of the vector.
//!
//! ```
//! use oneport::{Collective, Ports, Schedule, Span, Step};
//! let mut b = Schedule::builder(2, Ports::UNI, Collective::Alltoall);
//! for r in 0..2 {
//!     // Blocks for ranks 0 and 1, then blocks from ranks 0 and 1.
//!     b.layout(r, 4, [Span::new(0, 2)], [Span::new(2, 2)]);
//!     b.step(r, Step::copy(Span::new(r, 1), Span::new(2 + r, 1)));
//!     b.step(r, Step::send(1 - r, Span::new(1 - r, 1)));
//!     b.step(r, Step::recv(1 - r, Span::new(3 - r, 1)));
//! }
//! let schedule = b.build()?;
//! let report = schedule.check();
//! assert_eq!(
//!     report.errors[0].message,
//!     "rank 0 needs two ports at once: step 1 (send to 1) and step 2 (recv from 1) \
//!      wait for each other, but share its one port"
//! );
//! let report = schedule.with_ports(Ports::BI)?.check();
//! assert!(report.is_correct());
//! # Ok::<(), oneport::Error>(())
//! ```

pub(crate) mod bits;
mod deadlock;
mod finding;
pub(crate) mod history;
mod memory;
mod origin;
mod proof;
pub(crate) mod shapes;
mod shared_ports;
mod structure;
mod symbols;
mod waste;

pub use bits::{Bits, Difference};
pub use finding::{Finding, FindingKind, Report, Waiting};

use crate::rules::matching::{Matching, Mismatched};
use crate::rules::{Graph, Ordered};
use crate::schedule::{Schedule, Step};
use bits::OutputTrees;
use finding::{Findings, Proof};
use history::{History, Recorder};

/// The assumptions and limits of [`Schedule::check_with`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The operator does not commute: operands must be combined in rank order.
    pub keep_order: bool,
    /// Computation may overlap communication: [`CostModel::overlap`](crate::CostModel::overlap).
    pub overlap: bool,
    /// Number of errors to report in full; further errors are only counted.
    pub max_errors: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keep_order: false,
            overlap: false,
            max_errors: 20,
        }
    }
}

impl Schedule {
    /// Proves the schedule for an operator that commutes, or reports its errors: see
    /// [`check`](crate::check).
    ///
    /// Time is linear in the number of steps and of the parts of the vector that they distinguish
    /// (apart from sorting). Reductions out of rank order add the number of contributions to each
    /// distinct output.
    pub fn check(&self) -> Report {
        self.check_with(&Options::default())
    }

    /// As [`Schedule::check`], with other assumptions and limits. Errors beyond the limit are
    /// counted.
    pub fn check_with(&self, options: &Options) -> Report {
        check(self, options, None)
    }

    /// As [`Schedule::check_with`], and records what every buffer holds over the course of the
    /// schedule: of one that does not complete, up to where all that is left waits for ever. There
    /// is no history if the structure, or the length of a message, makes it meaningless.
    ///
    /// Space is that of the proof and of all runs of elements that the steps write.
    ///
    /// ```
    /// let schedule = oneport::Request::reduce(4, 10).plan("chain")?;
    /// let (report, history) = schedule.check_recorded(&Default::default());
    /// let history = history.expect("a schedule that completes");
    /// assert!(report.is_correct());
    /// // Rank 0 starts with its own contribution, and ends with all four.
    /// let held = [history.initial(0)[0], history.written(0, 0)[0]];
    /// let words = held.map(|h| history.contents()[h.content].words.as_str());
    /// assert_eq!(words, ["x0", "x0..x3"]);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn check_recorded(&self, options: &Options) -> (Report, Option<History>) {
        let mut recorder = None;
        let report = check(self, options, Some(&mut recorder));
        (report, recorder.map(Recorder::finish))
    }
}

fn check(
    schedule: &Schedule,
    options: &Options,
    recorded: Option<&mut Option<Recorder>>,
) -> Report {
    let (findings, proof) = proved(schedule, options, recorded);
    findings.report(proof)
}

/// The trees of the outputs, if the schedule is a correct reduction.
pub(crate) fn output_trees(schedule: &Schedule) -> Option<OutputTrees<'_>> {
    let (findings, proof) = proved(schedule, &Options::default(), None);
    let proof = proof.filter(|_| findings.is_empty())?;
    proof.bits.is_some().then_some(proof.trees)
}

/// Checks the schedule. `recorded` receives the recorder of the proof if the check gets that far.
/// The proof is that of a correct schedule if there are no findings.
fn proved<'s>(
    schedule: &'s Schedule,
    options: &Options,
    recorded: Option<&mut Option<Recorder>>,
) -> (Findings, Option<Proof<'s>>) {
    let mut findings = Findings::new(options.max_errors);
    let structure = structure::check(schedule, &mut findings);
    shared_ports::check(schedule, &mut findings);
    let mut unmatched = Unmatched::default();
    let matching = Matching::new(schedule, |m| {
        findings.push(|| mismatch(schedule, m));
        unmatched.add(m);
    });
    let matching = match matching {
        Ok(matching) => matching,
        Err(e) => {
            findings.push(|| Finding::of(FindingKind::TooLarge, e.to_string()));
            return (findings, None);
        }
    };
    let Some(ports) = structure.ports else {
        return (findings, None);
    };
    let graph = match Graph::new(schedule, ports, options.overlap, &matching) {
        Ok(graph) => graph,
        Err(e) => {
            findings.push(|| Finding::of(FindingKind::TooLarge, e.to_string()));
            return (findings, None);
        }
    };
    let Ordered { order, missing } = graph.order();
    let completes = order.len() == graph.nodes.len();
    if !completes {
        let stuck = deadlock::Stuck {
            schedule,
            ports,
            overlap: options.overlap,
            matching: &matching,
            graph: &graph,
            missing: &missing,
        };
        stuck.report(&mut findings);
    }
    let Unmatched { alone, unequal } = unmatched;
    if !completes || !alone.is_empty() || unequal || !structure.provable {
        if let Some(recorder) = recorded.filter(|_| structure.provable && !unequal) {
            let order = graph.order_without(&alone).order;
            let (mut ignored, recorder) = (Findings::new(0), recorder.insert(Recorder::default()));
            let recorder = Some(recorder);
            proof::prove(
                schedule,
                false,
                &matching,
                &graph,
                &order,
                &mut ignored,
                recorder,
            );
        }
        return (findings, None);
    }
    let proof = proof::prove(
        schedule,
        options.keep_order,
        &matching,
        &graph,
        &order,
        &mut findings,
        recorded.map(|recorder| recorder.insert(Recorder::default())),
    );
    (findings, Some(proof))
}

/// What does not match.
#[derive(Default)]
struct Unmatched {
    /// The transfers without a partner, by rank and step.
    alone: Vec<(usize, usize)>,
    /// Whether the ends of any disagree on the length.
    unequal: bool,
}

impl Unmatched {
    fn add(&mut self, mismatch: Mismatched) {
        match mismatch {
            Mismatched::Alone { rank, step, .. } => self.alone.push((rank, step)),
            Mismatched::Length { .. } => self.unequal = true,
        }
    }
}

fn mismatch(schedule: &Schedule, mismatch: Mismatched) -> Finding {
    match mismatch {
        Mismatched::Alone {
            rank,
            step,
            peer,
            nth,
            partners,
        } => {
            let s = &schedule.programs()[rank][step];
            let (mine, theirs, rest) = if s.is_send() {
                ("send", "receive", format!("from rank {rank}"))
            } else {
                ("receive", "send", format!("to rank {rank}"))
            };
            let has = match partners {
                0 => format!("no {theirs} {rest}"),
                1 => format!("only one {theirs} {rest}"),
                n => format!("only {n} {theirs}s {rest}"),
            };
            let message = format!(
                "rank {rank}, step {step} ({}): no partner: this is {mine} number {} between the two, and rank {peer} has {has}",
                named(s),
                nth + 1,
            );
            Finding {
                expected: Some(format!("{theirs} number {} at rank {peer}", nth + 1)),
                found: Some(format!("{partners} at rank {peer}")),
                ..Finding::at(FindingKind::Unmatched, rank, step, s, message)
            }
        }
        Mismatched::Length {
            from,
            send_step,
            sent,
            to,
            recv_step,
            expected,
        } => {
            let s = &schedule.programs()[to][recv_step];
            let message = format!(
                "rank {to}, step {recv_step} ({}): expects {}, but rank {from} sends {sent} in its step {send_step}",
                named(s),
                counted(expected, "element"),
            );
            Finding {
                expected: Some(counted(expected, "element")),
                found: Some(counted(sent, "element")),
                ..Finding::at(FindingKind::MessageLength, to, recv_step, s, message)
            }
        }
    }
}

/// A step in words: `send to 3`, `recv_combine from 2`, `copy`.
fn named(step: &Step) -> String {
    match step.peer() {
        Some(peer) if step.is_send() => format!("send to {peer}"),
        Some(peer) => format!("{} from {peer}", step.name()),
        None => step.name().to_string(),
    }
}

/// `"1 element"`, `"2 elements"`.
fn counted(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}
