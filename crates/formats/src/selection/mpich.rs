//! MPICH's file of selection rules, and what MPICH does without one.
//!
//! ```text
//! FILE = { "collective=NAME": NODE, ... }     every collective: MPICH ends where it finds none
//! NODE = { TEST: NODE, ..., OTHERWISE: NODE } the first test that holds, in the order of the file
//!      | { "algorithm=MPIR_Name_algorithm": { "PARAMETER=VALUE": {}, ... } }
//! TEST = "comm_type=inter", "comm_size<=4", "avg_msg_size<=1024", "is_commutative=no" ...
//! ```
//!
//! `OTHERWISE` has the name of the tests before it, as in `comm_size=any` or `is_commutative=yes`.
//! Comments are `/* */`. Source: MPICH's `src/mpi/coll/src/csel.c` and
//! `src/mpi/coll/coll_algorithms.txt`, versions 4.1 to 5.0.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::SplitWhitespace;

use super::tables::Family;
use super::{Library, SelectionRule, SelectionTable, described, segment};
use oneport::schedule::collective::Kind;

/// What MPICH does without a file, by collective: `NAME: NODE;`, where a node is
/// `TEST ? NODE : NODE` or an algorithm with its parameters.
const AUTOMATIC: &str = include_str!("mpich.txt");

#[derive(Debug, Clone)]
enum Decision {
    /// The words of an algorithm: its name, and parameters.
    Algorithm(Vec<String>),
    Test {
        test: String,
        yes: Box<Decision>,
        no: Box<Decision>,
    },
    Comment(String, Box<Decision>),
}

impl Decision {
    fn test(test: String, yes: Decision, no: Decision) -> Decision {
        let (yes, no) = (Box::new(yes), Box::new(no));
        Decision::Test { test, yes, no }
    }

    /// Reads `TEST ? NODE : NODE` or an algorithm, where `auto` stands for the node `auto`.
    fn parse(text: &str, auto: Option<&Decision>) -> Decision {
        fn node(words: &mut Peekable<SplitWhitespace>, auto: Option<&Decision>) -> Decision {
            let mut head = Vec::new();
            while let Some(word) = words.next_if(|word| !matches!(*word, "?" | ":")) {
                head.push(word.to_string());
            }
            if words.next_if_eq(&"?").is_some() {
                let yes = node(words, auto);
                words.next();
                return Decision::test(head.concat(), yes, node(words, auto));
            }
            match auto {
                Some(auto) if head == ["auto"] => auto.clone(),
                _ => Decision::Algorithm(head),
            }
        }
        node(&mut text.split_whitespace().peekable(), auto)
    }

    /// Writes the object of a node of the collective `name`.
    fn write(&self, name: &str, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        match self {
            Decision::Comment(text, node) => {
                // The text may hold anything.
                let _ = write!(out, "/* {} */ ", text.replace("*/", "* /"));
                node.write(name, depth, out);
            }
            Decision::Algorithm(words) => {
                let (first, rest) = name.split_at(1);
                let parameters = words[1..].iter().map(|w| format!("\"{w}\": {{}}"));
                let parameters: Vec<_> = parameters.collect();
                let _ = write!(
                    out,
                    "{{\"algorithm=MPIR_{}{rest}_{}\": {{{}}}}}",
                    first.to_uppercase(),
                    words[0],
                    parameters.join(", ")
                );
            }
            Decision::Test { test, yes, no } => {
                // Tests of one name stand in one object: MPICH's reader nests at most 32 deep.
                let otherwise = otherwise(test);
                let (mut test, mut yes, mut no) = (test, yes, no);
                out.push_str("{\n");
                loop {
                    let _ = write!(out, "{indent}  \"{test}\": ");
                    yes.write(name, depth + 1, out);
                    out.push_str(",\n");
                    match &**no {
                        Decision::Test {
                            test: t,
                            yes: y,
                            no: n,
                        } if self::otherwise(t) == otherwise => {
                            (test, yes, no) = (t, y, n);
                        }
                        _ => break,
                    }
                }
                let _ = write!(out, "{indent}  \"{otherwise}\": ");
                no.write(name, depth + 1, out);
                let _ = write!(out, "\n{indent}}}");
            }
        }
    }
}

/// The key for what `test` does not hold for.
fn otherwise(test: &str) -> String {
    let name = test.split(['<', '=']).next().unwrap_or(test);
    match test.rsplit('=').next() {
        Some("yes") => format!("{name}=no"),
        Some("no") => format!("{name}=yes"),
        Some("inter") => format!("{name}=intra"),
        _ => format!("{name}=any"),
    }
}

/// Writes the file: the rules for `table.ranks` ranks, and for all else what MPICH does without it.
pub(super) fn write(family: &Family, table: &SelectionTable, rules: &[SelectionRule]) -> String {
    let mut text = format!(
        "/* {} over {} ranks; times: {}\n   MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE \
         MPIR_CVAR_DEVICE_COLLECTIVES=percoll {}=0 mpiexec ... */\n{{\n",
        family.name,
        table.ranks,
        table.source().replace("*/", "* /"),
        Library::Mpich.device_variables(family.kind).join("=0 ")
    );
    let automatic = AUTOMATIC.split_terminator(";\n");
    let automatic = automatic.filter_map(|entry| entry.split_once(": "));
    for (index, (name, automatic)) in automatic.enumerate() {
        let mut node = Decision::parse(automatic, None);
        if name.strip_suffix("_block").unwrap_or(name) == family.name {
            node = ruled(node, family, table, rules);
        }
        let comma = if index > 0 { ",\n" } else { "" };
        let _ = write!(text, "{comma}  \"collective={name}\": ");
        node.write(name, 1, &mut text);
    }
    text.push_str("\n}\n");
    // MPICH reads the file as a string that ends where its last page does.
    if text.len().is_multiple_of(4096) {
        text.push('\n');
    }
    text
}

/// `automatic`, but for the rules.
fn ruled(
    automatic: Decision,
    family: &Family,
    table: &SelectionTable,
    rules: &[SelectionRule],
) -> Decision {
    // Tests of the communicator come first: MPICH decides them once.
    let (test, other, automatic) = match automatic {
        Decision::Test { test, yes, no } if test == "comm_type=inter" => (test, yes, no),
        node => return node,
    };
    let size = match family.kind {
        Kind::Allgather | Kind::ReduceScatter => "total_msg_size",
        _ => "avg_msg_size",
    };
    let [fewer, ranks] = [table.ranks.saturating_sub(1), table.ranks];
    let mut ruled: Option<Decision> = None;
    for (index, rule) in rules.iter().enumerate().rev() {
        let node = match &rule.choice {
            None => (*automatic).clone(),
            Some(choice) => {
                let segment = segment(choice.row).to_string();
                let named = choice.name.replace("SEGMENT", &segment);
                let expression = named.replace("PEERS", &fewer.max(1).to_string());
                let node = Decision::parse(&expression, Some(&automatic));
                let comment = described(rule.from, choice, &choice.row.algorithm);
                Decision::Comment(comment, Box::new(node))
            }
        };
        ruled = Some(match ruled {
            None => node,
            Some(longer) => {
                let end = rules[index + 1].from.saturating_sub(1);
                Decision::test(format!("{size}<={end}"), node, longer)
            }
        });
    }
    let these = ruled.unwrap_or_else(|| (*automatic).clone());
    let or_more = Decision::test(format!("comm_size<={ranks}"), these, (*automatic).clone());
    let by_ranks = Decision::test(format!("comm_size<={fewer}"), *automatic, or_more);
    Decision::test(test, *other, by_ranks)
}
