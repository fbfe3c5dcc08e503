//! Files of other tools: messages and requirements, without data.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::parse::{GoalOp, OpKind, RankGraph, Tag};
use crate::sum;
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Schedule, Span, Spans, Step};

/// The schedule of the graphs of all ranks; `at` names an operation of a rank by its line.
pub(crate) fn schedule(
    ranks: &[RankGraph],
    at: impl Fn(usize, usize) -> String,
) -> Result<Schedule> {
    let wrong = |rank, line, what: &str| Error::malformed(format!("{}: {what}", at(rank, line)));
    let nic = |op: &GoalOp| match op.kind {
        OpKind::Send { nic, .. } | OpKind::Recv { nic, .. } => nic,
        OpKind::Calc => 0,
    };
    let ops = ranks.iter().flat_map(|r| &r.ops);
    let Some(k) = ops.map(nic).max().unwrap_or(0).checked_add(1) else {
        return Err(Error::malformed("the number of nics is too large"));
    };
    let orders = ranks.iter().enumerate();
    let orders = orders.map(|(rank, graph)| sorted(graph, |line, what| wrong(rank, line, what)));
    let orders: Vec<Vec<usize>> = orders.collect::<Result<_>>()?;
    let ordered = || {
        let blocks = ranks.iter().zip(&orders).enumerate();
        blocks.flat_map(|(rank, (graph, order))| order.iter().map(move |&op| (rank, graph.ops[op])))
    };
    let peer = |op: GoalOp| match op.kind {
        OpKind::Send { to, .. } => Some(to),
        OpKind::Recv { from, .. } => Some(from),
        OpKind::Calc => None,
    };
    let n = ranks.len();
    let stray = |(rank, op): (usize, GoalOp)| Some((rank, op, peer(op).filter(|&p| p >= n)?));
    if let Some((rank, op, peer)) = ordered().find_map(stray) {
        let what = format!("rank {peer} is none of {n} ranks");
        return Err(wrong(rank, op.line, &what));
    }
    same_tags(ordered(), ordered(), wrong)?;
    let (mut layout, mut programs) = (Vec::new(), Vec::new());
    for (graph, order) in ranks.iter().zip(&orders) {
        let (len, program) = program(graph, order)?;
        layout.push(Layout {
            len,
            ..Layout::default()
        });
        programs.push(program);
    }
    let (root, targets) = (0, Vec::new());
    let collective = Collective::Multicast { root, targets };
    Schedule::new(Ports::BI.with_k(k), collective, layout, programs)
}

/// The operations of a rank such that each comes after those that it requires, else in the order of
/// the file.
fn sorted(graph: &RankGraph, error: impl FnOnce(usize, &str) -> Error) -> Result<Vec<usize>> {
    let n = graph.ops.len();
    let mut in_degree = vec![0usize; n];
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); n];
    for &(a, b, _) in &graph.requires {
        in_degree[a] += 1;
        successors[b].push(a);
    }
    let ready = (0..n).filter(|&i| in_degree[i] == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.map(Reverse).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse(op)) = ready.pop() {
        order.push(op);
        for &next in &successors[op] {
            in_degree[next] -= 1;
            if in_degree[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    match in_degree.iter().position(|&degree| degree > 0) {
        Some(stuck) => {
            let what = "the requirements of this operation lead back to it, or to others that wait for themselves";
            Err(error(graph.ops[stuck].line, what))
        }
        None => Ok(order),
    }
}

/// The steps of one rank, its operations taken in `order`, and the length of its buffer.
///
/// Every message has elements of its own. A send that requires a receive reads what that receives;
/// a receive that requires a send writes an element that that reads. On one port the last
/// requirement implies the earlier ones.
fn program(graph: &RankGraph, order: &[usize]) -> Result<(usize, Vec<Step>)> {
    let ops = &graph.ops;
    let mut place = vec![0; ops.len()];
    for (at, &op) in order.iter().enumerate() {
        place[op] = at;
    }
    let mut required: Vec<Vec<usize>> = vec![Vec::new(); ops.len()];
    for &(a, b, _) in &graph.requires {
        required[a].push(b);
    }
    let overflow = "the buffer of a rank";
    let calcs = ops.iter().filter(|op| op.kind == OpKind::Calc);
    let copied = calcs.map(|op| op.size).max().unwrap_or(0);
    let mut len = sum(copied, copied, overflow)?;
    // By operation: an element that it alone accesses until another requires it.
    let mut own = vec![Span::new(0, 0); ops.len()];
    let mut steps = Vec::with_capacity(ops.len());
    // Operations before this place are done before any step that follows now.
    let mut barrier = 0;
    for (at, &i) in order.iter().enumerate() {
        let op = ops[i];
        let (to, from, nic) = match op.kind {
            OpKind::Calc => {
                barrier = at;
                let span = |offset| Some(Span::new(offset, op.size)).filter(|s| s.len > 0);
                steps.push(Step::copy(span(0), span(copied)));
                continue;
            }
            OpKind::Send { to, nic, .. } => (Some(to), 0, nic),
            OpKind::Recv { from, nic, .. } => (None, from, nic),
        };
        let other = match last_required(ops, &required[i], &place, barrier, to.is_some(), nic) {
            Required::None => None,
            Required::Last(b) if op.size > 0 && own[b].len > 0 => Some(own[b]),
            Required::Last(_) | Required::Barrier => {
                steps.push(Step::copy(Spans::new(), Spans::new()));
                barrier = at;
                None
            }
        };
        let rest = Span::new(len, op.size - usize::from(other.is_some()));
        len = sum(len, rest.len, overflow)?;
        let spans: Spans = other
            .into_iter()
            .chain(Some(rest).filter(|s| s.len > 0))
            .collect();
        own[i] = spans.last().map_or(rest, |s| Span::new(s.end() - 1, 1));
        steps.push(match to {
            Some(to) => Step::send(to, spans).on_port(nic),
            None => Step::recv(from, spans).on_port(nic),
        });
    }
    Ok((len, steps))
}

/// OpKind a message waits for beside its port.
enum Required {
    None,
    /// One operation in the other direction, which implies the others.
    Last(usize),
    /// Operations on several ports.
    Barrier,
}

/// The requirements of a message that are not before the last barrier, in the program's order.
fn last_required(
    ops: &[GoalOp],
    required: &[usize],
    place: &[usize],
    barrier: usize,
    sends: bool,
    nic: usize,
) -> Required {
    let mut last: Option<(usize, usize)> = None;
    for &b in required.iter().filter(|&&b| place[b] >= barrier) {
        let (b_sends, b_nic) = match ops[b].kind {
            // It is a barrier itself.
            OpKind::Calc => continue,
            OpKind::Send { nic, .. } => (true, nic),
            OpKind::Recv { nic, .. } => (false, nic),
        };
        last = match last {
            _ if b_sends == sends && b_nic == nic => continue,
            _ if b_sends == sends => return Required::Barrier,
            Some((_, other)) if other != b_nic => return Required::Barrier,
            Some((l, nic)) if place[l] > place[b] => Some((l, nic)),
            _ => Some((b, b_nic)),
        };
    }
    last.map_or(Required::None, |(b, _)| Required::Last(b))
}

/// Refuses tags that pair messages in another order than they are sent. Both are all operations, by
/// rank and in order.
fn same_tags(
    sends: impl Iterator<Item = (usize, GoalOp)>,
    receives: impl Iterator<Item = (usize, GoalOp)>,
    error: impl Fn(usize, usize, &str) -> Error,
) -> Result<()> {
    let mut sent: HashMap<(usize, usize), VecDeque<Tag>> = HashMap::new();
    for (rank, op) in sends {
        if let OpKind::Send { to, tag, .. } = op.kind {
            sent.entry((rank, to)).or_default().push_back(tag);
        }
    }
    for (rank, op) in receives {
        let OpKind::Recv { from, tag, .. } = op.kind else {
            continue;
        };
        let other = sent.get_mut(&(from, rank)).and_then(VecDeque::pop_front);
        if let (Some(tag), Some(Some(other))) = (tag, other)
            && tag != other
        {
            let what = format!(
                "a receive from rank {from} with tag {tag}, where rank {from} sends tag {other}: in the model \
                 messages between two ranks are received in the order in which they are sent"
            );
            return Err(error(rank, op.line, &what));
        }
    }
    Ok(())
}
