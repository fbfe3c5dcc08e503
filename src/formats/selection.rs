//! Selection files: which algorithm MPI libraries use for which sizes.
//!
//! ```text
//! Open MPI, tuned: COUNT { COLLECTIVE COUNT { COMM_SIZE COUNT { BYTES ALGORITHM FANINOUT SEGMENT } } }
//!                  whole numbers, "#" begins a comment; the rule with the largest BYTES that is at
//!                  most the message's holds, the first is for 0
//! Open MPI >= 6:   {"rule_file_version": 3, "module": "tuned", "collectives": {NAME: [{"comm_size_min",
//!                  "comm_size_max", "rules": [{"msg_size_min", "msg_size_max", "alg", "seg_size"}]}]}}
//! Intel MPI:       I_MPI_ADJUST_<NAME>="<ID>:<FROM>-<TO>@<P>-<P>[;...]", in the environment
//! ```
//!
//! Sources: Open MPI's `docs/tuning-apps/collectives/tuned.rst` and
//! `ompi/mca/coll/tuned/coll_tuned_dynamic_file.c` (whose parser wants other names than the
//! published schema), versions 4 to 6; the reference of Intel MPI 2019 on the `I_MPI_ADJUST`
//! family.
//!
//! A file has rules only for algorithms that the library has. The tables below say which of them
//! corresponds to which algorithm here. Libraries count the size of a message differently for each
//! collective, see [`Library`].

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Written;
use crate::error::{Error, Result};
use crate::schedule::collective::Kind;

/// A library, and the form of its file.
///
/// Sizes in the file are those that the library compares: for broadcast, reduce, allreduce and
/// scatter the bytes that one rank passes, for reduce_scatter those of the whole vector, for
/// allgather, alltoall, gather and scan these times the number of ranks (Intel MPI: one rank's
/// bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Open MPI's classic file, for all versions.
    OpenMpi,
    /// Open MPI's JSON file, from version 6 on.
    OpenMpiJson,
    /// A file to be sourced by a shell, for Intel MPI.
    Intel,
}

/// The time of one algorithm for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
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
pub struct Table {
    /// The collective.
    pub collective: Kind,
    /// Number of ranks.
    pub ranks: usize,
    /// Times, by increasing size.
    pub rows: Vec<Timed>,
    /// Where the times come from: one line for readers of the file.
    pub origin: String,
}

/// A collective of a library, and its algorithms: number, name, and the algorithm here.
struct Family {
    kind: Kind,
    /// Number in Open MPI's classic file.
    id: u32,
    name: &'static str,
    /// Whether sizes are multiplied by the number of ranks.
    of_all: bool,
    algorithms: &'static [(u32, &'static str, &'static str)],
}

const OPEN_MPI: [Family; 8] = [
    Family {
        kind: Kind::Broadcast,
        id: 7,
        name: "bcast",
        of_all: false,
        algorithms: &[
            (1, "basic_linear", "linear"),
            (3, "pipeline", "chain"),
            (5, "binary_tree", "binary"),
            (6, "binomial", "binomial"),
            (8, "scatter_allgather", "van-de-geijn"),
            (9, "scatter_allgather_ring", "van-de-geijn-ring"),
        ],
    },
    Family {
        kind: Kind::Reduce,
        id: 11,
        name: "reduce",
        of_all: false,
        algorithms: &[
            (1, "linear", "linear"),
            (3, "pipeline", "chain"),
            (4, "binary", "binary"),
            (5, "binomial", "binomial"),
            (7, "rabenseifner", "butterfly"),
        ],
    },
    Family {
        kind: Kind::Allreduce,
        id: 2,
        name: "allreduce",
        of_all: false,
        algorithms: &[
            (3, "recursive_doubling", "recursive-doubling"),
            (4, "ring", "ring"),
            (6, "rabenseifner", "rabenseifner"),
        ],
    },
    Family {
        kind: Kind::Allgather,
        id: 0,
        name: "allgather",
        of_all: true,
        algorithms: &[
            (1, "linear", "linear"),
            (2, "bruck", "bruck"),
            (3, "recursive_doubling", "recursive-doubling"),
            (4, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::ReduceScatter,
        id: 12,
        name: "reduce_scatter",
        of_all: false,
        algorithms: &[
            (2, "recursive_halving", "recursive-halving"),
            (3, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::Alltoall,
        id: 3,
        name: "alltoall",
        of_all: true,
        algorithms: &[(2, "pairwise", "pairwise"), (3, "modified_bruck", "bruck")],
    },
    Family {
        kind: Kind::Gather,
        id: 9,
        name: "gather",
        of_all: true,
        algorithms: &[(1, "basic_linear", "linear"), (2, "binomial", "oblivious")],
    },
    Family {
        kind: Kind::Scatter,
        id: 15,
        name: "scatter",
        of_all: false,
        algorithms: &[(1, "basic_linear", "linear"), (2, "binomial", "oblivious")],
    },
];

const INTEL: [Family; 8] = [
    Family {
        kind: Kind::Broadcast,
        id: 0,
        name: "BCAST",
        of_all: false,
        algorithms: &[
            (1, "binomial", "binomial"),
            (2, "recursive doubling", "van-de-geijn"),
            (3, "ring", "van-de-geijn-ring"),
        ],
    },
    Family {
        kind: Kind::Reduce,
        id: 0,
        name: "REDUCE",
        of_all: false,
        algorithms: &[
            (2, "binomial", "binomial"),
            (5, "Rabenseifner's", "butterfly"),
        ],
    },
    Family {
        kind: Kind::Allreduce,
        id: 0,
        name: "ALLREDUCE",
        of_all: false,
        algorithms: &[
            (1, "recursive doubling", "recursive-doubling"),
            (2, "Rabenseifner's", "rabenseifner"),
            (8, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::Allgather,
        id: 0,
        name: "ALLGATHER",
        of_all: false,
        algorithms: &[
            (1, "recursive doubling", "recursive-doubling"),
            (2, "Bruck's", "bruck"),
            (3, "ring", "ring"),
        ],
    },
    Family {
        kind: Kind::ReduceScatter,
        id: 0,
        name: "REDUCE_SCATTER",
        of_all: false,
        algorithms: &[(1, "recursive halving", "recursive-halving")],
    },
    Family {
        kind: Kind::Alltoall,
        id: 0,
        name: "ALLTOALL",
        of_all: false,
        algorithms: &[
            (1, "Bruck's", "bruck"),
            (3, "pair wise exchange", "pairwise"),
        ],
    },
    Family {
        kind: Kind::Gather,
        id: 0,
        name: "GATHER",
        of_all: false,
        algorithms: &[(1, "binomial", "oblivious")],
    },
    Family {
        kind: Kind::Scatter,
        id: 0,
        name: "SCATTER",
        of_all: false,
        algorithms: &[(1, "binomial", "oblivious")],
    },
];

impl Library {
    fn families(self) -> &'static [Family] {
        match self {
            Library::OpenMpi | Library::OpenMpiJson => &OPEN_MPI,
            Library::Intel => &INTEL,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Library::OpenMpi | Library::OpenMpiJson => "Open MPI",
            Library::Intel => "Intel MPI",
        }
    }
}

/// A rule of a file.
struct Rule<'a> {
    /// The smallest size, in the library's terms.
    from: u64,
    /// Number and name in the library.
    id: u32,
    name: &'static str,
    row: &'a Timed,
}

/// Writes the file of a library: for each size the fastest of the algorithms that it has. Linear in
/// the number of rows.
///
/// # Errors
/// When the library has no file for the collective, or none of the algorithms.
pub fn write(library: Library, table: &Table) -> Result<Written> {
    let kind = table.collective.name();
    let Some(family) = library
        .families()
        .iter()
        .find(|f| f.kind == table.collective)
    else {
        return Err(Error::usage(format!(
            "{} has no selection rules for {kind} here",
            library.name()
        )));
    };
    let known = |row: &&Timed| family.algorithms.iter().any(|a| a.2 == row.algorithm);
    let mut rules: Vec<Rule> = Vec::new();
    let mut missing = Vec::new();
    for rows in table.rows.chunk_by(|a, b| a.bytes == b.bytes) {
        let mapped = rows.iter().filter(known);
        let Some(row) = mapped.min_by(|a, b| a.time.total_cmp(&b.time)) else {
            missing.push(rows[0].bytes.to_string());
            continue;
        };
        let Some(&(id, name, _)) = family.algorithms.iter().find(|a| a.2 == row.algorithm) else {
            continue;
        };
        let factor = if family.of_all { table.ranks as u64 } else { 1 };
        let last = rules.last();
        if last.is_some_and(|rule| rule.id == id && segment(rule.row) == segment(row)) {
            continue;
        }
        let from = match last {
            None => 0,
            Some(_) => row.bytes.saturating_mul(factor),
        };
        rules.push(Rule {
            from,
            id,
            name,
            row,
        });
    }
    if rules.is_empty() {
        let names: Vec<_> = family.algorithms.iter().map(|a| a.2).collect();
        return Err(Error::usage(format!(
            "{} has none of these algorithms for {kind}: measure {}",
            library.name(),
            names.join(", ")
        )));
    }
    let mut notes = vec![format!("times: {}", table.origin)];
    if !missing.is_empty() {
        notes.push(format!(
            "{} has none of the algorithms for {} bytes: the rule before holds there",
            library.name(),
            missing.join(", ")
        ));
    }
    let text = match library {
        Library::OpenMpi => open_mpi(family, table, &rules),
        Library::OpenMpiJson => open_mpi_json(family, table, &rules),
        Library::Intel => intel(family, table, &rules),
    };
    Ok(Written { text, notes })
}

/// Bytes of a segment, 0 for none: one that holds all is none.
fn segment(row: &Timed) -> u64 {
    row.segment.filter(|&s| s < row.bytes).unwrap_or(0)
}

/// What a rule stands for, in a comment.
fn described(rule: &Rule) -> String {
    let segment = match segment(rule.row) {
        0 => String::new(),
        bytes => format!(" in segments of {bytes}"),
    };
    let Timed {
        bytes, algorithm, ..
    } = rule.row;
    format!(
        "from {} bytes: {}{segment}, best of --bytes {bytes} ({algorithm})",
        rule.from, rule.name
    )
}

fn open_mpi(family: &Family, table: &Table, rules: &[Rule]) -> String {
    let mut text = format!(
        "# {} over {} ranks; times: {}\n# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca \
         coll_tuned_dynamic_rules_filename FILE\n",
        family.name,
        table.ranks,
        line(&table.origin)
    );
    let _ = writeln!(text, "1 # collectives\n{} # {}", family.id, family.name);
    let _ = writeln!(
        text,
        "1 # communicator sizes\n{} # ranks\n{} # rules",
        table.ranks,
        rules.len()
    );
    for rule in rules {
        let _ = writeln!(
            text,
            "# {}\n{} {} 0 {}",
            described(rule),
            rule.from,
            rule.id,
            segment(rule.row)
        );
    }
    text
}

/// The text in one line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn open_mpi_json(family: &Family, table: &Table, rules: &[Rule]) -> String {
    let next = rules
        .iter()
        .skip(1)
        .map(|rule| json!(rule.from.saturating_sub(1)));
    let ends = next.chain([json!("inf")]);
    let rules = rules.iter().zip(ends).map(|(rule, end)| {
        json!({"msg_size_min": rule.from, "msg_size_max": end, "alg": rule.name, "seg_size": segment(rule.row)})
    });
    let rules: Vec<Value> = rules.collect();
    let sizes = json!([{
        "comm_size_min": table.ranks, "comm_size_max": table.ranks,
        "comm_rank_distribution": "any", "rules": rules
    }]);
    let file =
        json!({"rule_file_version": 3, "module": "tuned", "collectives": {family.name: sizes}});
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

fn intel(family: &Family, table: &Table, rules: &[Rule]) -> String {
    let p = table.ranks;
    let mut text = format!(
        "# {} over {p} ranks; times: {}\n",
        family.name,
        line(&table.origin)
    );
    for rule in rules {
        let _ = writeln!(text, "# {}", described(rule));
    }
    let next = rules.iter().skip(1).map(|rule| rule.from.saturating_sub(1));
    // The largest size of a message.
    let ends = next.chain([i32::MAX as u64]);
    let one = |(rule, end): (&Rule, u64)| format!("{}:{}-{end}@{p}-{p}", rule.id, rule.from);
    let all: Vec<String> = rules.iter().zip(ends).map(one).collect();
    let _ = writeln!(
        text,
        "export I_MPI_ADJUST_{}=\"{}\"",
        family.name,
        all.join(";")
    );
    text
}
