//! Formats of other tools: schedules are written for them, and theirs are read.
//!
//! One file a format, which begins with the format's grammar, its version and where it is defined;
//! writing and reading stand side by side. What a format cannot express is refused, with the reason
//! and what can be done. GOAL files from other tools do not say which data a message carries: they
//! are read as a multicast without targets, which is timed and checked for deadlocks, with no
//! result to prove. Readers take linear time and memory, whatever they are given.
//!
//! | format | written | read | for |
//! |---|---|---|---|
//! | [`goal`] | yes | yes | LogGOPSim and the simulators that take its files |
//! | [`msccl`] | yes | yes | MSCCL's executor for GPUs and its tools |
//! | [`mscclpp`] | yes | yes | MSCCL++ and what runs its execution plans: SGLang, torch |
//! | [`teccl`] | | yes | TE-CCL: flows of chunks, epoch by epoch |
//! | [`chakra`] | yes | yes | ASTRA-sim, which replays execution traces |
//! | [`simgrid`] | yes | | SimGrid: contention in networks |
//! | [`dot`] | yes | | Graphviz |
//! | [`selection`] | yes | | Open MPI, MPICH, Intel MPI: which algorithm for which sizes |
//! | [`tree`] | | yes | trees of gathers and scatters, such as a paper's figures |
//!
//! ```
//! use oneport_formats::goal;
//! use oneport::{CostModel, Request};
//!
//! let schedule = Request::broadcast(8, 64).plan("binomial")?;
//! let written = goal::write(&schedule, &goal::GoalOptions::new(CostModel::new(10.0, 1.0)))?;
//! let read = goal::read(&written.text)?;
//! assert_eq!(read, schedule);
//! # Ok::<(), oneport::Error>(())
//! ```

#![forbid(unsafe_code)]

mod blocks;

pub mod chakra;
pub mod dot;
pub mod goal;
pub mod msccl;
pub mod mscclpp;
pub mod selection;
pub mod simgrid;
pub mod teccl;
pub mod tree;

use std::collections::HashMap;

use oneport::error::{Error, Result};
use oneport::internal::numbers::bytes;
use oneport::machine::CostModel;
use oneport::rules::{Event, LocalOrder};
use oneport::schedule::{Schedule, Step};

/// The text of a file, and what its reader should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The content of the file.
    pub text: String,
    /// Remarks: what a tool makes of the file that the model does not say.
    pub notes: Vec<String>,
}

/// The files of a folder, and what their reader should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFolder {
    /// The files with their names.
    pub files: Vec<(String, Vec<u8>)>,
    /// The command that runs the tool in the folder.
    pub command: String,
    /// Remarks: what a tool makes of the files that the model does not say.
    pub notes: Vec<String>,
}

/// Reads a schedule of another form, recognised by its content: [`goal`], or [`msccl`],
/// [`mscclpp`] or [`teccl`], to which `options` apply, or a [`tree`]. `None` for other texts, such
/// as schedules in JSON. The reader's errors are returned.
pub fn read(text: &str, options: &msccl::ReadOptions) -> Result<Option<Schedule>> {
    let start = text.trim_start();
    if start.starts_with('<') {
        return msccl::read(text, options).map(Some);
    }
    if has_key(start, "gpus") {
        return mscclpp::read(text, options).map(Some);
    }
    if teccl::is_flows(start) {
        return teccl::read(text, options).map(Some);
    }
    if tree::is_tree(text) {
        return tree::read(text).map(Some);
    }
    let mut goal = ["num_ranks", "//", "/*"].into_iter();
    if goal.any(|s| start.starts_with(s)) {
        goal::read(text).map(Some)
    } else {
        Ok(None)
    }
}

/// Whether a text is a JSON object with this key.
fn has_key(text: &str, key: &str) -> bool {
    if !text.starts_with('{') || !text.contains(&format!("\"{key}\"")) {
        return false;
    }
    let object: Result<HashMap<String, serde::de::IgnoredAny>, _> = serde_json::from_str(text);
    object.is_ok_and(|object| object.contains_key(key))
}

/// Refuses a schedule with shared ports for a format that has no such thing.
fn ensure_own_ports(schedule: &Schedule, format: &str) -> Result<()> {
    match schedule.shared_ports() {
        [] => Ok(()),
        [first, ..] => Err(Error::usage(format!(
            "{format} has no order of the transfers of several ranks, which the shared port {:?} states",
            first.name
        ))),
    }
}

/// By rank and step: the number of a message among those of its pair of ranks.
fn tags(schedule: &Schedule) -> Vec<Vec<usize>> {
    let mut next: HashMap<(usize, usize, bool), usize> = HashMap::new();
    let ranks = schedule.programs().iter().enumerate();
    let of_rank = |(rank, program): (usize, &Vec<Step>)| {
        let number = |step: &Step| {
            let peer = step.peer().unwrap_or(rank);
            let next = next.entry((rank, peer, step.is_send())).or_default();
            *next += 1;
            *next - 1
        };
        program.iter().map(number).collect()
    };
    ranks.map(of_rank).collect()
}

/// The transfer of step `i` and its computation, as far as it has these, each with what it waits
/// for.
fn events(i: usize, step: &Step, order: &LocalOrder) -> impl Iterator<Item = (Event, Vec<Event>)> {
    let start = order.before_start(i).to_vec();
    let transferred = Event::transferred(i);
    let computed = Event::computed(i);
    let events = match step.peer() {
        Some(_) => {
            let before = [&[transferred], order.before_compute(i)].concat();
            let compute = step.computes().then_some((computed, before));
            [Some((transferred, start)), compute]
        }
        None => [Some((computed, start)), None],
    };
    events.into_iter().flatten()
}

/// Time of the local part of a step.
fn computation(cost: &CostModel, rank: usize, step: &Step, element_bytes: u64) -> f64 {
    let n = bytes(step.len(), element_bytes);
    match step {
        Step::Send { .. } | Step::Recv { .. } => 0.0,
        Step::RecvCombine { .. } => cost.combine(rank, n),
        Step::Copy { .. } => cost.copy(rank, n),
        Step::Combine { .. } => cost.combine_local(rank, n),
    }
}

/// An error in line `line` of a text, counted from 1.
fn at_line(line: usize, what: impl std::fmt::Display) -> Error {
    Error::malformed(format!("line {line}: {what}"))
}

/// `a + b`, or an error that names what overflows.
fn sum(a: usize, b: usize, what: &str) -> Result<usize> {
    a.checked_add(b)
        .ok_or_else(|| Error::malformed(format!("{what} exceeds 2^64 elements")))
}
