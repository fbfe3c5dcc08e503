//! DOT, the graphs of Graphviz: who sends to whom, as a tree or round by round.
//!
//! ```text
//! graph     = "digraph" ID "{" { statement ";" } "}"
//! statement = ID [attributes] | ID "->" ID [attributes] | "{" { statement ";" } "}" | ID "=" ID
//! attributes = "[" ID "=" ID { "," ID "=" ID } "]"
//! ```
//!
//! The language is that of <https://graphviz.org/doc/info/lang.html>, of which this is what is
//! written. It has no version; `dot` 2.42 draws both graphs. A drawing cannot be read back.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use oneport::error::Result;
use oneport::internal::numbers::truncated;
use oneport::machine::CostModel;
use oneport::rules::Event;
use oneport::schedule::{Schedule, Step};

use crate::Written;

/// Which graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotGraph {
    /// The graph of ranks: an edge for each pair that exchanges messages, with their number and
    /// their mean number of elements. For most algorithms a tree; the root has two circles.
    Tree,
    /// The graph of ranks over rounds: a row of ranks a round, an edge with the number of elements
    /// for each message, and a dotted one where a rank waits for its next message.
    Rounds,
}

/// Writes a graph of a schedule. Time is that of sorting its messages, of rounds also that of
/// simulating it.
///
/// # Errors
/// Rounds need a schedule that the model can time.
pub fn write(schedule: &Schedule, graph: DotGraph) -> Result<Written> {
    let text = match graph {
        DotGraph::Tree => tree(schedule),
        DotGraph::Rounds => rounds(schedule)?,
    };
    let notes = Vec::new();
    Ok(Written { text, notes })
}

fn tree(schedule: &Schedule) -> String {
    let mut edges: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for (from, program) in schedule.programs().iter().enumerate() {
        for step in program {
            if let Step::Send { to, .. } = step {
                let edge = edges.entry((from, *to)).or_default();
                edge.0 += 1;
                edge.1 = edge.1.saturating_add(step.len());
            }
        }
    }
    let mut text = format!("digraph {} {{\n", schedule.collective().kind().name());
    for rank in 0..schedule.ranks() {
        let root = if schedule.collective().root() == Some(rank) {
            " [shape=doublecircle]"
        } else {
            ""
        };
        let _ = writeln!(text, "  {rank}{root};");
    }
    for ((from, to), (messages, elements)) in edges {
        let mean = elements / messages;
        let _ = writeln!(text, "  {from} -> {to} [label=\"{messages} x {mean}\"];");
    }
    text.push_str("}\n");
    text
}

/// The sends that are not empty, by round: round, sender, and the step. A message's round is the
/// number of messages on the longest chain that ends with it.
pub fn messages_by_round(schedule: &Schedule) -> Result<Vec<(u64, usize, &Step)>> {
    let simulation = schedule.simulate(&CostModel::new(1.0, 0.0))?;
    let mut messages = Vec::new();
    for (from, program) in schedule.programs().iter().enumerate() {
        for (i, step) in program.iter().enumerate() {
            if step.is_send()
                && !step.is_empty()
                && let Some(node) = simulation.prepared().node(from, Event::transferred(i))
            {
                let round = truncated(simulation.finish(node)) as u64;
                messages.push((round, from, step));
            }
        }
    }
    messages.sort_by_key(|m| m.0);
    Ok(messages)
}

fn rounds(schedule: &Schedule) -> Result<String> {
    let messages = messages_by_round(schedule)?;
    // By rank: the rounds that it has a node for.
    let mut of_rank: Vec<Vec<u64>> = vec![Vec::new(); schedule.ranks()];
    for &(round, from, step) in &messages {
        of_rank[from].push(round - 1);
        of_rank[step.peer().unwrap_or(from)].push(round);
    }
    let mut rows: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (rank, rounds) in of_rank.iter_mut().enumerate() {
        rounds.sort_unstable();
        rounds.dedup();
        for &round in rounds.iter() {
            rows.entry(round).or_default().push(rank);
        }
    }
    let name = schedule.collective().kind().name();
    let mut text = format!("digraph {name} {{\n  edge [fontsize=10];\n");
    for (round, ranks) in &rows {
        let label = match round {
            0 => "start".to_string(),
            _ => format!("round {round}"),
        };
        let _ = write!(
            text,
            "  {{ rank=same; round{round} [shape=plaintext, label=\"{label}\"];"
        );
        for rank in ranks {
            let _ = write!(text, " r{rank}_{round} [label=\"{rank}\"];");
        }
        text.push_str(" }\n");
    }
    let rounds: Vec<String> = rows.keys().map(|round| format!("round{round}")).collect();
    if rounds.len() > 1 {
        let _ = writeln!(text, "  {} [style=invis];", rounds.join(" -> "));
    }
    for (rank, rounds) in of_rank.iter().enumerate() {
        for pair in rounds.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let _ = writeln!(
                text,
                "  r{rank}_{from} -> r{rank}_{to} [style=dotted, arrowhead=none];"
            );
        }
    }
    for (round, from, step) in messages {
        let (to, elements, before) = (step.peer().unwrap_or(from), step.len(), round - 1);
        let _ = writeln!(
            text,
            "  r{from}_{before} -> r{to}_{round} [label=\"{elements}\"];"
        );
    }
    text.push_str("}\n");
    Ok(text)
}
