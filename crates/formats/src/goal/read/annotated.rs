//! Files that oneport wrote: the steps stand in comments.

use serde::Deserialize;

use super::parse::{GoalOp, OpKind, RankGraph, shortened};
use crate::{at_line, events};
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::rules::{Event, LocalOrder, OrderScratch};
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Schedule, Step};

/// The first comment of a written file.
#[derive(Deserialize)]
pub(super) struct Head {
    #[serde(default)]
    name: Option<String>,
    ports: String,
    ported: usize,
    overlap: bool,
    #[serde(default)]
    timed: bool,
    collective: Collective,
}

/// The schedule of a file whose comments hold its steps. The operations must be those of the steps.
pub(super) fn schedule(head: Head, ranks: &[RankGraph]) -> Result<Schedule> {
    let ports = Ports::named(&head.ports);
    let unknown = || Error::malformed(format!("no port model {}", head.ports));
    let ports = ports.ok_or_else(unknown)?.with_k(head.ported);
    let mut programs = Vec::with_capacity(ranks.len());
    let mut layout = Vec::with_capacity(ranks.len());
    let mut messages = Vec::new();
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, graph) in ranks.iter().enumerate() {
        let Some(((first, _, line), steps)) = graph.comments.split_first() else {
            return Err(Error::malformed(format!(
                "rank {rank}: the comment with its layout is missing"
            )));
        };
        let json = |text: &str, line: usize, e: serde_json::Error| {
            let what = format!("{} is no comment of oneport: {e}", shortened(text));
            at_line(line, what)
        };
        layout.push(serde_json::from_str::<Layout>(first).map_err(|e| json(first, *line, e))?);
        let mut program: Vec<Step> = Vec::with_capacity(steps.len());
        // A rank that is late begins with a computation of no step.
        let own = steps.first().map_or(graph.ops.len(), |step| step.1);
        let late = own == 1 && graph.ops[0].kind == OpKind::Calc;
        let mut ops = usize::from(late);
        // By event of the program: the operation that it ends.
        let mut ends = Vec::with_capacity(2 * steps.len());
        for &(text, before, line) in steps {
            let step = serde_json::from_str(text).map_err(|e| json(text, line, e))?;
            let count = same_ops(&step, &graph.ops[before..], &mut messages)
                .filter(|_| before == ops)
                .ok_or_else(|| at_line(line, DIFFERS))?;
            ends.extend([ops, ops + count - 1]);
            ops += count;
            program.push(step);
        }
        if let Some(op) = graph.ops.get(ops) {
            return Err(at_line(op.line, DIFFERS));
        }
        order
            .analyse(&program, ports, head.overlap, &mut scratch)
            .map_err(|e| Error::malformed(format!("rank {rank}: {e}")))?;
        same_requirements(graph, &program, &order, &ends, late)?;
        programs.push(program);
    }
    if !head.timed {
        same_sizes(&messages)?;
    }
    let schedule = Schedule::new(ports, head.collective, layout, programs)?;
    (head.name.into_iter()).try_fold(schedule, Schedule::with_name)
}

const DIFFERS: &str = "the operations are not those of the step in the comment (remove all JSON comments to \
                       read the graph alone)";

/// A message: its elements by its step, its bytes by its operation, and its line.
type MessageSize = (usize, usize, usize);

/// Checks the sizes of a file's messages: elements have the same size in all of it, or all messages
/// one byte, in the uniform form.
fn same_sizes(messages: &[MessageSize]) -> Result<()> {
    let telling = messages.iter().find(|m| m.0 != 1);
    let uniform = telling.is_some_and(|m| m.1 == 1);
    let first = messages.iter().find(|m| m.0 > 0);
    let size = first.map_or(0, |&(elements, bytes, _)| bytes / elements);
    let fits = |&&(elements, bytes, _): &&MessageSize| {
        if uniform {
            bytes == 1
        } else {
            elements.checked_mul(size) == Some(bytes)
        }
    };
    let wrong = messages.iter().find(|m| !fits(m));
    wrong.map_or(Ok(()), |message| Err(at_line(message.2, DIFFERS)))
}

/// The number of operations of a step, if these start with them. Notes its message.
fn same_ops(step: &Step, ops: &[GoalOp], messages: &mut Vec<MessageSize>) -> Option<usize> {
    let (sends, peer, nic) = match ops.first()?.kind {
        OpKind::Calc => return step.peer().is_none().then_some(1),
        OpKind::Send { to, nic, .. } => (true, to, nic),
        OpKind::Recv { from, nic, .. } => (false, from, nic),
    };
    if (step.is_send(), step.peer(), step.port()) != (sends, Some(peer), Some(nic)) {
        return None;
    }
    messages.push((step.len(), ops[0].size, ops[0].line));
    if step.computes() {
        (ops.get(1)?.kind == OpKind::Calc).then_some(2)
    } else {
        Some(1)
    }
}

/// Compares the requirements in the file with those of the program.
fn same_requirements(
    graph: &RankGraph,
    program: &[Step],
    order: &LocalOrder,
    ends: &[usize],
    late: bool,
) -> Result<()> {
    let mut expected = Vec::new();
    for (i, step) in program.iter().enumerate() {
        for (event, before) in events(i, step, order) {
            let op = |event: &Event| ends[event.index()];
            expected.extend((late && before.is_empty()).then_some((op(&event), 0)));
            expected.extend(before.iter().map(|other| (op(&event), op(other))));
        }
    }
    let mut found: Vec<(usize, usize)> = graph.requires.iter().map(|&(a, b, _)| (a, b)).collect();
    expected.sort_unstable();
    found.sort_unstable();
    if expected == found {
        return Ok(());
    }
    let known = |r: &&(usize, usize, usize)| expected.binary_search(&(r.0, r.1)).is_err();
    let line = match graph.requires.iter().find(known) {
        Some(&(_, _, line)) => line,
        None => graph.comments.first().map_or(0, |c| c.2),
    };
    Err(at_line(
        line,
        "the requirements are not those of the steps in the comments (remove all JSON comments to read the \
         graph alone)",
    ))
}
