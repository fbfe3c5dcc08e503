//! Selection files: which algorithm MPI libraries use for which sizes.
//!
//! ```text
//! Open MPI, tuned: COUNT { COLLECTIVE COUNT { COMM_SIZE COUNT { BYTES ALGORITHM FANINOUT SEGMENT
//!                  } } }
//!                  whole numbers, "#" begins a comment; the rule with the largest BYTES that is at
//!                  most the message's holds, the first is for 0
//! Open MPI >= 6:   {"rule_file_version": 3, "module": "tuned", "collectives": {NAME: [
//!                  {"comm_size_min", "comm_size_max", "rules": [{"msg_size_min",
//!                  "msg_size_max", "alg", "faninout", "seg_size"}]}]}}
//! Intel MPI:       I_MPI_ADJUST_<NAME>="<ID>:<FROM>-<TO>[;...]", in the environment
//! MPICH:           nested tests, see `selection/mpich.rs`
//! ```
//!
//! Sources: Open MPI's `docs/tuning-apps/collectives/tuned.rst` and
//! `ompi/mca/coll/tuned/coll_tuned_dynamic_file.c` (whose parser wants other names than the
//! published schema and skips members that it does not know), versions 4 to 6; the reference of
//! Intel MPI 2021 on the `I_MPI_ADJUST` family; MPICH's `src/mpi/coll/src/csel.c`, versions 4.1 to
//! 5.0. Files for Open MPI 5.0.11 and 6.0.0a1, MPICH 5.0.2 and Intel MPI 2021.18 were tried with
//! these libraries (`tests/mpi.sh`); Open MPI 6 is not released.
//!
//! A file has rules only for algorithms that the library has. The tables below say which of them
//! corresponds to which algorithm here. Libraries count the size of a message differently for each
//! collective, see [`Library`].

mod mpich;
mod tables;

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::Written;
use oneport::error::{Error, Result};
use oneport::schedule::collective::Kind;
use tables::{Family, INTEL, MPICH, OPEN_MPI};

/// A library, and the form of its file.
///
/// Sizes in the file are those that the library compares: for broadcast, reduce and allreduce the
/// bytes that one rank passes, for reduce_scatter those of the whole vector, for allgather,
/// alltoall, gather and scatter those of one block times the number of ranks (Intel MPI: one
/// block's bytes; MPICH: alltoall, too).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Open MPI's classic file, for all versions.
    OpenMpi,
    /// Open MPI's JSON file, from version 6 on.
    OpenMpiJson,
    /// A file to be sourced by a shell, for Intel MPI.
    Intel,
    /// MPICH's JSON file, for the versions from 4.1 to 5.0. Other collectives, and other numbers of
    /// ranks, are what MPICH does without a file.
    Mpich,
}

/// Where times come from, with the circumstances in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Measured over an MPI library.
    Measured(String),
    /// Computed in the cost model.
    Modelled(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Measured(text) => write!(f, "measured over MPI: {text}"),
            Origin::Modelled(text) => write!(f, "modelled, not measured over MPI: {text}"),
        }
    }
}

/// The time of one algorithm for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedChoice {
    /// Size of the vector or block, as `--bytes`.
    pub bytes: u64,
    /// Name of the algorithm here.
    pub algorithm: String,
    /// Bytes of a segment, where the algorithm segments.
    pub segment: Option<u64>,
    /// The time, in any unit.
    pub time: f64,
}

/// What a selection file is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionTable {
    /// The collective.
    pub collective: Kind,
    /// Number of ranks.
    pub ranks: usize,
    /// Times, by increasing size.
    pub rows: Vec<TimedChoice>,
    /// Where the times come from, for readers of the file.
    pub origin: Origin,
}

impl Library {
    /// Its name, its algorithms, and the largest size that rules can name.
    fn summary(self) -> (&'static str, &'static str, u64) {
        match self {
            Library::OpenMpi | Library::OpenMpiJson => ("Open MPI", OPEN_MPI, u64::MAX),
            Library::Intel => ("Intel MPI", INTEL, i32::MAX as u64),
            Library::Mpich => ("MPICH", MPICH, i32::MAX as u64),
        }
    }

    /// What the library makes of the file that its rules do not say.
    fn note(self) -> Option<&'static str> {
        match self {
            Library::OpenMpi => Some(
                "Open MPI applies the rules to communicators of all sizes: it reads numbers of \
                 ranks as lower bounds up to version 5, and as upper ones from 6 on",
            ),
            Library::OpenMpiJson => None,
            Library::Intel => Some(
                "Intel MPI applies the rules to communicators of all sizes: where rules name a \
                 number of ranks it ignores their sizes of messages",
            ),
            Library::Mpich => Some(
                "MPICH divides calls by nodes before it obeys the rules, unless \
                 MPIR_CVAR_DEVICE_COLLECTIVES is none",
            ),
        }
    }
}

struct SelectionRule<'a> {
    /// The smallest size, in the library's terms.
    from: u64,
    /// Number and name in the library.
    id: u32,
    name: &'static str,
    row: &'a TimedChoice,
}

/// Writes the file of a library: for each size the fastest of the algorithms that it has. Linear in
/// the number of rows.
///
/// # Errors
/// When the library has no file for the collective, or none of the algorithms.
pub fn write(library: Library, table: &SelectionTable) -> Result<Written> {
    let kind = table.collective.name();
    let (library_name, algorithms, max_size) = library.summary();
    let Some(family) = Family::find(algorithms, table.collective) else {
        let what = format!("{library_name} has no selection rules for {kind} here");
        return Err(Error::usage(what));
    };
    let family = &family;
    let mut rules: Vec<SelectionRule> = Vec::new();
    let (mut missing, mut beyond) = (Vec::new(), Vec::new());
    for rows in table.rows.chunk_by(|a, b| a.bytes == b.bytes) {
        let mapped = rows.iter().filter_map(|row| {
            let found = family.algorithms.iter().find(|a| a.2 == row.algorithm)?;
            Some((row, found))
        });
        let Some((row, &(id, name, _))) = mapped.min_by(|a, b| a.0.time.total_cmp(&b.0.time))
        else {
            missing.push(rows[0].bytes.to_string());
            continue;
        };
        let factor = if family.of_all { table.ranks as u64 } else { 1 };
        let last = rules.last();
        if last.is_some_and(|rule| rule.name == name && segment(rule.row) == segment(row)) {
            continue;
        }
        let from = last.map_or(0, |_| row.bytes.saturating_mul(factor));
        if from > max_size {
            beyond.push(row.bytes.to_string());
            continue;
        }
        rules.push(SelectionRule {
            from,
            id,
            name,
            row,
        });
    }
    if rules.is_empty() {
        let names: Vec<_> = family.algorithms.iter().map(|a| a.2).collect();
        return Err(Error::usage(format!(
            "{library_name} has none of these algorithms for {kind}: measure {}",
            names.join(", ")
        )));
    }
    let mut notes = vec![format!("times: {}", table.origin)];
    if !missing.is_empty() {
        let missing = missing.join(", ");
        notes.push(format!(
            "{library_name} has none of the algorithms for {missing} bytes: the rule before holds there"
        ));
    }
    if !beyond.is_empty() {
        let beyond = beyond.join(", ");
        notes.push(format!(
            "{library_name} compares sizes up to {max_size}: there is no rule for {beyond} bytes"
        ));
    }
    notes.extend(library.note().map(String::from));
    let text = match library {
        Library::OpenMpi => open_mpi(family, table, &rules),
        Library::OpenMpiJson => open_mpi_json(family, table, &rules),
        Library::Intel => intel(family, table, &rules),
        Library::Mpich => mpich::write(family, table, &rules),
    };
    Ok(Written { text, notes })
}

/// Bytes of a segment, 0 for none: one that holds all is none.
fn segment(row: &TimedChoice) -> u64 {
    row.segment.filter(|&s| s < row.bytes).unwrap_or(0)
}

/// What a rule stands for, in a comment; its algorithm is called `name`.
fn described(rule: &SelectionRule, name: &str) -> String {
    let segment = match segment(rule.row) {
        0 => String::new(),
        bytes => format!(" in segments of {bytes}"),
    };
    let (from, bytes, algorithm) = (rule.from, rule.row.bytes, &rule.row.algorithm);
    format!("from {from} bytes: {name}{segment}, best of --bytes {bytes} ({algorithm})")
}

/// The fan-out of all rules for Open MPI. Of the algorithms in them only the allgather `bruck` of
/// version 6 has one, and never ends with 0.
const FAN_OUT: u32 = 2;

fn open_mpi(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let (name, ranks, origin) = (family.name, table.ranks, line(&table.origin.to_string()));
    let mut text = format!(
        "# {name} over {ranks} ranks; times: {origin}\n# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca \
         coll_tuned_dynamic_rules_filename FILE --mca coll_tuned_priority 100\n1 # collectives\n{} # \
         {name}\n1 # communicator sizes\n{ranks} # ranks\n{} # rules\n",
        family.id,
        rules.len()
    );
    for rule in rules {
        let _ = writeln!(
            text,
            "# {}\n{} {} {FAN_OUT} {}",
            described(rule, rule.name),
            rule.from,
            rule.id,
            segment(rule.row)
        );
    }
    text
}

fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn open_mpi_json(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let next = rules
        .iter()
        .skip(1)
        .map(|rule| json!(rule.from.saturating_sub(1)));
    let ends = next.chain([json!("inf")]);
    let rules = rules.iter().zip(ends).map(|(rule, end)| {
        json!({"msg_size_min": rule.from, "msg_size_max": end, "alg": rule.name,
               "faninout": FAN_OUT, "seg_size": segment(rule.row),
               "comment": described(rule, rule.name)})
    });
    let rules: Vec<Value> = rules.collect();
    let sizes = json!([{
        "comm_size_min": table.ranks, "comm_size_max": table.ranks,
        "comm_rank_distribution": "any", "rules": rules
    }]);
    let file = json!({"rule_file_version": 3, "module": "tuned",
        "comment": format!("times: {}", line(&table.origin.to_string())),
        "collectives": {family.name: sizes}});
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

fn intel(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let (name, ranks, origin) = (family.name, table.ranks, line(&table.origin.to_string()));
    let mut text = format!("# {name} over {ranks} ranks; times: {origin}\n");
    for rule in rules {
        let _ = writeln!(text, "# {}", described(rule, rule.name));
    }
    let next = rules.iter().skip(1).map(|rule| rule.from.saturating_sub(1));
    let ends = next.chain([Library::Intel.summary().2]);
    let one = |(rule, end): (&SelectionRule, u64)| format!("{}:{}-{end}", rule.id, rule.from);
    let all: Vec<String> = rules.iter().zip(ends).map(one).collect();
    let _ = writeln!(text, "export I_MPI_ADJUST_{name}=\"{}\"", all.join(";"));
    text
}
