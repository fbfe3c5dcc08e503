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
use super::{Rule, Table, described, line, segment};
use oneport::schedule::collective::Kind;

/// What MPICH does without a file: `TEST ? NODE : NODE`, or an algorithm and its parameters.
const AUTOMATIC: [(&str, &str); 44] = [
    (
        "bcast",
        "comm_type=inter ? inter_remote_send_local_bcast : comm_size<=7 ? intra_binomial : \
         avg_msg_size<=12288 ? intra_binomial : comm_size=pow2 ? avg_msg_size<=524288 ? \
         intra_scatter_recursive_doubling_allgather : intra_scatter_ring_allgather : \
         intra_scatter_ring_allgather",
    ),
    (
        "allreduce",
        "comm_type=inter ? inter_reduce_exchange_bcast : avg_msg_size<=8 ? \
         intra_recursive_doubling : is_op_built_in=no ? intra_recursive_doubling : count<pow2 ? \
         intra_recursive_doubling : intra_reduce_scatter_allgather",
    ),
    (
        "allgather",
        "comm_type=inter ? inter_local_gather_remote_bcast : comm_size=pow2 ? \
         total_msg_size<=524287 ? intra_recursive_doubling : intra_ring : \
         total_msg_size<=81919 ? intra_brucks : intra_ring",
    ),
    (
        "allgatherv",
        "comm_type=inter ? inter_remote_gather_local_bcast : comm_size=pow2 ? \
         total_msg_size<=524287 ? intra_recursive_doubling : intra_ring : \
         total_msg_size<=81919 ? intra_brucks : intra_ring",
    ),
    (
        "reduce",
        "comm_type=inter ? inter_local_reduce_remote_send : avg_msg_size<=2048 ? intra_binomial : \
         is_op_built_in=no ? intra_binomial : count<pow2 ? intra_binomial : \
         intra_reduce_scatter_gather",
    ),
    (
        "reduce_scatter",
        "comm_type=inter ? inter_remote_reduce_local_scatter : is_commutative=yes ? \
         total_msg_size<=524287 ? intra_recursive_halving : intra_pairwise : \
         is_block_regular=no ? intra_recursive_doubling : comm_size=pow2 ? intra_noncommutative : \
         intra_recursive_doubling",
    ),
    (
        "reduce_scatter_block",
        "comm_type=inter ? inter_remote_reduce_local_scatter : is_commutative=yes ? \
         total_msg_size<=524287 ? intra_recursive_halving : intra_pairwise : \
         comm_size=pow2 ? intra_noncommutative : intra_recursive_doubling",
    ),
    (
        "gather",
        "comm_type=inter ? total_msg_size<=2047 ? inter_local_gather_remote_send : inter_linear : \
         intra_binomial",
    ),
    (
        "scatter",
        "comm_type=inter ? total_msg_size<=2047 ? inter_remote_send_local_scatter : inter_linear : \
         intra_binomial",
    ),
    ("gatherv", "allcomm_linear"),
    ("scatterv", "allcomm_linear"),
    (
        "scan",
        "is_node_consecutive=yes ? intra_smp : intra_recursive_doubling",
    ),
    ("exscan", "intra_recursive_doubling"),
    (
        "barrier",
        "comm_type=inter ? inter_bcast : comm_hierarchy=parent ? intra_smp : \
         intra_k_dissemination k=2",
    ),
    (
        "alltoall",
        "comm_type=inter ? inter_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_pairwise_sendrecv_replace : avg_msg_size<=256 ? comm_size<=7 ? intra_scattered : \
         intra_brucks : avg_msg_size<=32768 ? intra_scattered : intra_pairwise",
    ),
    (
        "alltoallv",
        "comm_type=inter ? inter_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_pairwise_sendrecv_replace : intra_scattered",
    ),
    (
        "alltoallw",
        "comm_type=inter ? inter_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_pairwise_sendrecv_replace : intra_scattered",
    ),
    ("neighbor_allgather", "allcomm_nb"),
    ("neighbor_allgatherv", "allcomm_nb"),
    ("neighbor_alltoall", "allcomm_nb"),
    ("neighbor_alltoallv", "allcomm_nb"),
    ("neighbor_alltoallw", "allcomm_nb"),
    (
        "ibarrier",
        "comm_type=inter ? inter_sched_bcast : intra_sched_recursive_doubling",
    ),
    (
        "iallreduce",
        "comm_type=inter ? inter_sched_remote_reduce_local_bcast : avg_msg_size<=2048 ? \
         intra_sched_recursive_doubling : is_op_built_in=no ? intra_sched_recursive_doubling : \
         count<pow2 ? intra_sched_recursive_doubling : intra_sched_reduce_scatter_allgather",
    ),
    (
        "iallgather",
        "comm_type=inter ? inter_sched_local_gather_remote_bcast : comm_size=pow2 ? \
         total_msg_size<=524287 ? intra_sched_recursive_doubling : intra_sched_ring : \
         total_msg_size<=81919 ? intra_sched_brucks : intra_sched_ring",
    ),
    (
        "iallgatherv",
        "comm_type=inter ? inter_sched_remote_gather_local_bcast : comm_size=pow2 ? \
         total_msg_size<=524287 ? intra_sched_recursive_doubling : intra_sched_ring : \
         total_msg_size<=81919 ? intra_sched_brucks : intra_sched_ring",
    ),
    (
        "ibcast",
        "comm_type=inter ? inter_sched_flat : comm_hierarchy=parent ? intra_sched_smp : \
         comm_size<=7 ? intra_sched_binomial : avg_msg_size<=12287 ? intra_sched_binomial : \
         comm_size=pow2 ? avg_msg_size<=524287 ? \
         intra_sched_scatter_recursive_doubling_allgather : intra_sched_scatter_ring_allgather : \
         intra_sched_scatter_ring_allgather",
    ),
    (
        "ireduce",
        "comm_type=inter ? inter_sched_local_reduce_remote_send : comm_hierarchy=parent ? \
         is_commutative=yes ? intra_sched_smp : intra_sched_binomial : avg_msg_size<=2048 ? \
         intra_sched_binomial : is_op_built_in=no ? intra_sched_binomial : count<pow2 ? \
         intra_sched_binomial : intra_sched_reduce_scatter_gather",
    ),
    (
        "ireduce_scatter",
        "comm_type=inter ? inter_sched_remote_reduce_local_scatterv : is_commutative=yes ? \
         total_msg_size<=524287 ? intra_sched_recursive_halving : intra_sched_pairwise : \
         is_block_regular=no ? intra_sched_recursive_doubling : comm_size=pow2 ? \
         intra_sched_noncommutative : intra_sched_recursive_doubling",
    ),
    (
        "ireduce_scatter_block",
        "comm_type=inter ? inter_sched_remote_reduce_local_scatterv : is_commutative=yes ? \
         total_msg_size<=524287 ? intra_sched_recursive_halving : intra_sched_pairwise : \
         comm_size=pow2 ? intra_sched_noncommutative : intra_sched_recursive_doubling",
    ),
    (
        "igather",
        "comm_type=inter ? total_msg_size<=2047 ? inter_sched_short : inter_sched_long : \
         intra_sched_binomial",
    ),
    (
        "iscatter",
        "comm_type=inter ? total_msg_size<=2047 ? inter_sched_remote_send_local_scatter : \
         inter_sched_linear : intra_sched_binomial",
    ),
    ("igatherv", "allcomm_sched_linear"),
    ("iscatterv", "allcomm_sched_linear"),
    (
        "iscan",
        "comm_hierarchy=parent ? intra_sched_smp : intra_sched_recursive_doubling",
    ),
    ("iexscan", "intra_sched_recursive_doubling"),
    (
        "ialltoall",
        "comm_type=inter ? inter_sched_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_sched_inplace : avg_msg_size<=2048 ? comm_size<=7 ? intra_sched_permuted_sendrecv : \
         intra_sched_brucks : avg_msg_size<=32768 ? intra_sched_permuted_sendrecv : \
         intra_sched_pairwise",
    ),
    (
        "ialltoallv",
        "comm_type=inter ? inter_sched_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_sched_inplace : intra_sched_blocked",
    ),
    (
        "ialltoallw",
        "comm_type=inter ? inter_sched_pairwise_exchange : is_sendbuf_inplace=yes ? \
         intra_sched_inplace : intra_sched_blocked",
    ),
    ("ineighbor_allgather", "allcomm_sched_linear"),
    ("ineighbor_allgatherv", "allcomm_sched_linear"),
    ("ineighbor_alltoall", "allcomm_sched_linear"),
    ("ineighbor_alltoallv", "allcomm_sched_linear"),
    ("ineighbor_alltoallw", "allcomm_sched_linear"),
];

/// A decision.
#[derive(Debug, Clone)]
enum Node {
    /// The words of an algorithm: its name, and parameters.
    Algorithm(Vec<String>),
    Test {
        test: String,
        yes: Box<Node>,
        no: Box<Node>,
    },
    Comment(String, Box<Node>),
}

impl Node {
    fn test(test: String, yes: Node, no: Node) -> Node {
        let (yes, no) = (Box::new(yes), Box::new(no));
        Node::Test { test, yes, no }
    }

    /// Reads `TEST ? NODE : NODE` or an algorithm, where `auto` stands for the node `auto`.
    fn parse(text: &str, auto: Option<&Node>) -> Node {
        fn node(words: &mut Peekable<SplitWhitespace>, auto: Option<&Node>) -> Node {
            let mut head = Vec::new();
            while let Some(word) = words.next_if(|word| !matches!(*word, "?" | ":")) {
                head.push(word.to_string());
            }
            if words.next_if_eq(&"?").is_some() {
                let yes = node(words, auto);
                words.next();
                return Node::test(head.concat(), yes, node(words, auto));
            }
            match auto {
                Some(auto) if head == ["auto"] => auto.clone(),
                _ => Node::Algorithm(head),
            }
        }
        node(&mut text.split_whitespace().peekable(), auto)
    }

    /// Writes the object of a node of the collective `name`.
    fn write(&self, name: &str, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        match self {
            Node::Comment(text, node) => {
                // The text may hold anything.
                let _ = write!(out, "/* {} */ ", text.replace("*/", "* /"));
                node.write(name, depth, out);
            }
            Node::Algorithm(words) => {
                let (first, rest) = name.split_at(1);
                let parameters: Vec<_> = words[1..]
                    .iter()
                    .map(|w| format!("\"{w}\": {{}}"))
                    .collect();
                let _ = write!(
                    out,
                    "{{\"algorithm=MPIR_{}{rest}_{}\": {{{}}}}}",
                    first.to_uppercase(),
                    words[0],
                    parameters.join(", ")
                );
            }
            Node::Test { test, yes, no } => {
                // Tests of one name stand in one object: MPICH's reader nests at most 32 deep.
                let otherwise = otherwise(test);
                let (mut test, mut yes, mut no) = (test, yes, no);
                out.push_str("{\n");
                loop {
                    let _ = write!(out, "{indent}  \"{test}\": ");
                    yes.write(name, depth + 1, out);
                    out.push_str(",\n");
                    match &**no {
                        Node::Test {
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
pub(super) fn write(family: &Family, table: &Table, rules: &[Rule]) -> String {
    let mut text = format!(
        "/* {} over {} ranks; times: {}\n   MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE \
         MPIR_CVAR_DEVICE_COLLECTIVES=none mpiexec ... */\n{{\n",
        family.name,
        table.ranks,
        line(&table.origin.to_string()).replace("*/", "* /")
    );
    for (index, (name, automatic)) in AUTOMATIC.iter().enumerate() {
        let mut node = Node::parse(automatic, None);
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
fn ruled(automatic: Node, family: &Family, table: &Table, rules: &[Rule]) -> Node {
    // Tests of the communicator come first: MPICH decides them once.
    let (test, other, automatic) = match automatic {
        Node::Test { test, yes, no } if test == "comm_type=inter" => (test, yes, no),
        node => return node,
    };
    let size = match family.kind {
        Kind::Allgather | Kind::ReduceScatter => "total_msg_size",
        _ => "avg_msg_size",
    };
    let [fewer, ranks] = [table.ranks.saturating_sub(1), table.ranks];
    let mut ruled: Option<Node> = None;
    for (index, rule) in rules.iter().enumerate().rev() {
        let expression = rule
            .name
            .replace("SEGMENT", &segment(rule.row).to_string())
            .replace("PEERS", &fewer.max(1).to_string());
        let node = Node::parse(&expression, Some(&automatic));
        let node = Node::Comment(described(rule, &rule.row.algorithm), Box::new(node));
        ruled = Some(match ruled {
            None => node,
            Some(longer) => {
                let end = rules[index + 1].from.saturating_sub(1);
                Node::test(format!("{size}<={end}"), node, longer)
            }
        });
    }
    let these = ruled.unwrap_or_else(|| (*automatic).clone());
    let or_more = Node::test(format!("comm_size<={ranks}"), these, (*automatic).clone());
    let by_ranks = Node::test(format!("comm_size<={fewer}"), *automatic, or_more);
    Node::test(test, *other, by_ranks)
}
