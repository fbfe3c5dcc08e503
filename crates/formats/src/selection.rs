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
//!
//! Where no algorithm beats the library's own choice, and at sizes below the smallest and above the
//! largest, the library decides as it does without a file: algorithm 0 in Open MPI's classic file,
//! no rule in its JSON and in Intel MPI's variable, the tests of no file in MPICH's.

mod launch;
mod mpich;
mod tables;

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

pub use launch::{chooses, ensure_obeyed};

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
    /// ranks, are what MPICH does without a file, but for its device's collectives: see
    /// [`Library::device_variables`].
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
    /// Whether it is less than that of the library's own choice, as far as that is known. A rule
    /// names no other algorithm.
    pub beats_library: bool,
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
    /// What makes measured times doubtful, for readers of the file.
    pub doubts: Option<String>,
}

impl SelectionTable {
    /// Where the times come from and what makes them doubtful, in one line.
    fn source(&self) -> String {
        let doubts = self.doubts.iter();
        let doubts: String = doubts
            .map(|doubts| format!("; DOUBTFUL: {doubts}"))
            .collect();
        format!("{}{doubts}", self.origin).replace(['\n', '\r'], " ")
    }
}

impl Library {
    /// Whether the library that calls itself `version` reads this file.
    ///
    /// # Errors
    /// If it is another library, or a version that does not.
    pub fn ensure_reads(self, version: &str) -> Result<()> {
        let (name, first) = match self {
            Library::OpenMpi => ("Open MPI", None),
            Library::OpenMpiJson => ("Open MPI", Some((6, 0))),
            Library::Intel => ("Intel", None),
            Library::Mpich => ("MPICH", Some((4, 1))),
        };
        let library = self.summary().0;
        if !version.starts_with(name) {
            let what = format!("a file of rules for {library}, but the library is {version}");
            return Err(Error::usage(what));
        }
        // Such as `v5.0.11` and `4.0.2`.
        let numbers = version.split_whitespace().find_map(|word| {
            let mut parts = word.trim_start_matches('v').split('.');
            let mut next = || parts.next()?.parse::<u32>().ok();
            Some((next()?, next()?))
        });
        match (first, numbers) {
            (Some(first), Some(numbers)) if numbers < first => Err(Error::usage(format!(
                "{library} reads such a file of rules from version {}.{} on, but the library is {version}",
                first.0, first.1
            ))),
            _ => Ok(()),
        }
    }

    /// The variables that have to be 0 for the library to obey rules for `collective`. MPICH's
    /// device has collectives of its own, to which the rules do not apply.
    pub fn device_variables(self, collective: Kind) -> Vec<String> {
        let family = Family::find(MPICH, collective).filter(|_| self == Library::Mpich);
        let name = family.map(|family| family.name.to_uppercase());
        // The rules of a reduce_scatter are for both of MPI's functions.
        let block = (collective == Kind::ReduceScatter).then_some("_BLOCK");
        let names = name.iter().flat_map(|name| {
            let ends = [Some(""), block].into_iter().flatten();
            ends.map(move |end| format!("MPIR_CVAR_{name}{end}_DEVICE_COLLECTIVE"))
        });
        names.collect()
    }

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
                "MPICH obeys the rules where its device's collectives are switched off, as the first \
                 lines of the file say",
            ),
        }
    }
}

/// What holds from a size on.
struct SelectionRule<'a> {
    /// The smallest size, in the library's terms.
    from: u64,
    choice: Option<NamedChoice<'a>>,
}

/// An algorithm of the library; where there is none, the library decides.
struct NamedChoice<'a> {
    /// Number and name in the library.
    id: u32,
    name: &'static str,
    row: &'a TimedChoice,
}

impl NamedChoice<'_> {
    fn is_same(&self, other: &NamedChoice) -> bool {
        self.name == other.name && segment(self.row) == segment(other.row)
    }
}

/// The rules with an algorithm, each with the last size that it is for, `max` if there is none.
fn named<'a, 'r>(
    rules: &'a [SelectionRule<'r>],
    max: u64,
) -> impl Iterator<Item = (u64, u64, &'a NamedChoice<'r>)> {
    rules.iter().enumerate().filter_map(move |(index, rule)| {
        let end = rules.get(index + 1);
        let end = end.map_or(max, |next| next.from.saturating_sub(1));
        Some((rule.from, end, rule.choice.as_ref()?))
    })
}

/// Adds what holds from a size on, unless it holds already.
fn add<'a>(rules: &mut Vec<SelectionRule<'a>>, from: u64, choice: Option<NamedChoice<'a>>) {
    rules.pop_if(|rule| rule.from == from);
    let same = match (rules.last().map(|rule| &rule.choice), &choice) {
        (Some(Some(before)), Some(choice)) => before.is_same(choice),
        (Some(None), None) => true,
        _ => false,
    };
    if !same {
        rules.push(SelectionRule { from, choice });
    }
}

/// Writes the file of a library: for each size the fastest of the algorithms that it has, if that
/// beats the library's own choice; none if that is nowhere so. Linear in the number of rows.
///
/// # Errors
/// When the library has no file for the collective, or none of the algorithms.
pub fn write(library: Library, table: &SelectionTable) -> Result<Option<Written>> {
    let kind = table.collective.name();
    let (library_name, algorithms, max_size) = library.summary();
    let Some(family) = Family::find(algorithms, table.collective) else {
        let what = format!("{library_name} has no selection rules for {kind} here");
        return Err(Error::usage(what));
    };
    let family = &family;
    let factor = if family.of_all { table.ranks as u64 } else { 1 };
    let mut rules = vec![SelectionRule {
        from: 0,
        choice: None,
    }];
    let (mut missing, mut beyond, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_known = false;
    for rows in table.rows.chunk_by(|a, b| a.bytes == b.bytes) {
        let bytes = rows[0].bytes;
        let from = bytes.saturating_mul(factor);
        if from > max_size {
            beyond.push(bytes.to_string());
            continue;
        }
        let mapped = rows.iter().filter_map(|row| {
            let found = family.algorithms.iter().find(|a| a.2 == row.algorithm)?;
            let &(id, name, _) = found;
            Some(NamedChoice { id, name, row })
        });
        let best = mapped.min_by(|a, b| a.row.time.total_cmp(&b.row.time));
        is_known |= best.is_some();
        match &best {
            None => missing.push(bytes.to_string()),
            Some(best) if !best.row.beats_library => own.push(bytes.to_string()),
            Some(_) => {}
        }
        add(&mut rules, from, best.filter(|best| best.row.beats_library));
        // What was not measured is left to the library.
        if from < max_size && rows.last() == table.rows.last() {
            add(&mut rules, from + 1, None);
        }
    }
    if !is_known {
        let names: Vec<_> = family.algorithms.iter().map(|a| a.2).collect();
        return Err(Error::usage(if beyond.is_empty() {
            format!(
                "{library_name} has none of these algorithms for {kind}: measure {}",
                names.join(", ")
            )
        } else {
            format!("{library_name} compares sizes up to {max_size} bytes")
        }));
    }
    if named(&rules, max_size).next().is_none() {
        return Ok(None);
    }
    let notes = notes(library, table, [own, missing, beyond]);
    let rules = &rules[..];
    let text = match library {
        Library::OpenMpi => open_mpi(family, table, rules),
        Library::OpenMpiJson => open_mpi_json(family, table, rules),
        Library::Intel => intel(family, table, rules),
        Library::Mpich => mpich::write(family, table, rules),
    };
    Ok(Some(Written { text, notes }))
}

/// What a reader of the rules should know: where times come from, and at which sizes no rule
/// stands, because the library's own choice is as fast, because it lacks the algorithms, or because
/// it compares no sizes that large.
fn notes(
    library: Library,
    table: &SelectionTable,
    [own, missing, beyond]: [Vec<String>; 3],
) -> Vec<String> {
    let (library_name, _, max_size) = library.summary();
    let mut notes = vec![format!("times: {}", table.origin)];
    if !own.is_empty() {
        notes.push(format!(
            "{library_name} decides for itself at {} bytes: none of its algorithms beats its own \
             choice there",
            own.join(", ")
        ));
    }
    if let Origin::Modelled(_) = table.origin {
        notes.push(format!(
            "whether {library_name}'s own choice is faster than these rules is not known: it is \
             measured over MPI alone"
        ));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        notes.push(format!(
            "{library_name} has none of the algorithms for {missing} bytes: it decides for itself there"
        ));
    }
    if !beyond.is_empty() {
        let beyond = beyond.join(", ");
        notes.push(format!(
            "{library_name} compares sizes up to {max_size}: there is no rule for {beyond} bytes"
        ));
    }
    notes.extend(library.note().map(String::from));
    notes
}

/// Bytes of a segment, 0 for none: one that holds all is none.
fn segment(row: &TimedChoice) -> u64 {
    row.segment.filter(|&s| s < row.bytes).unwrap_or(0)
}

/// What a rule stands for, in a comment; its algorithm is called `name`.
fn described(from: u64, choice: &NamedChoice, name: &str) -> String {
    let segment = match segment(choice.row) {
        0 => String::new(),
        bytes => format!(" in segments of {bytes}"),
    };
    let (bytes, algorithm) = (choice.row.bytes, &choice.row.algorithm);
    format!("from {from} bytes: {name}{segment}, best of --bytes {bytes} ({algorithm})")
}

/// The fan-out of all rules for Open MPI. Of the algorithms in them only the allgather `bruck` of
/// version 6 has one, and never ends with 0.
const FAN_OUT: u32 = 2;

fn open_mpi(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let (name, ranks, source) = (family.name, table.ranks, table.source());
    let mut text = format!(
        "# {name} over {ranks} ranks; times: {source}\n# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca \
         coll_tuned_dynamic_rules_filename FILE --mca coll_tuned_priority 100\n1 # collectives\n{} # \
         {name}\n1 # communicator sizes\n{ranks} # ranks\n{} # rules\n",
        family.id,
        rules.len()
    );
    for SelectionRule { from, choice } in rules {
        let _ = match choice {
            Some(choice) => writeln!(
                text,
                "# {}\n{from} {} {FAN_OUT} {}",
                described(*from, choice, choice.name),
                choice.id,
                segment(choice.row)
            ),
            None => writeln!(text, "# from {from} bytes: Open MPI decides\n{from} 0 0 0"),
        };
    }
    text
}

fn open_mpi_json(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let rules = named(rules, u64::MAX).map(|(from, end, choice)| {
        let end = match end {
            u64::MAX => json!("inf"),
            end => json!(end),
        };
        json!({"msg_size_min": from, "msg_size_max": end, "alg": choice.name,
               "faninout": FAN_OUT, "seg_size": segment(choice.row),
               "comment": described(from, choice, choice.name)})
    });
    let rules: Vec<Value> = rules.collect();
    let sizes = json!([{
        "comm_size_min": table.ranks, "comm_size_max": table.ranks,
        "comm_rank_distribution": "any", "rules": rules
    }]);
    let file = json!({"rule_file_version": 3, "module": "tuned",
        "comment": format!("times: {}", table.source()),
        "collectives": {family.name: sizes}});
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

fn intel(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let (name, ranks, source) = (family.name, table.ranks, table.source());
    let mut text = format!("# {name} over {ranks} ranks; times: {source}\n");
    let mut values = Vec::new();
    for (from, end, choice) in named(rules, Library::Intel.summary().2) {
        let _ = writeln!(text, "# {}", described(from, choice, choice.name));
        values.push(format!("{}:{from}-{end}", choice.id));
    }
    text += "# Intel MPI decides at all other sizes\n";
    let values = values.join(";");
    let _ = writeln!(text, "export I_MPI_ADJUST_{name}=\"{values}\"");
    text
}
