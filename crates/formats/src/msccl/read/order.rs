//! The order of a rank's program: one in which every step comes after those that it waits for, and
//! in which the model does not deadlock if there is such an order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Block, File, Line, What, at};
use oneport::error::{Error, Result};
use oneport::internal::grouped;

/// A step of a thread block, or a part of one that becomes several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Whole,
    /// Its message is received, to be sent on.
    Received,
    /// Its message is received into a place of its own.
    Arrived,
    /// The message is taken from that place.
    Taken,
    Sent,
}

/// Which steps receive into a place of their own first, from where local steps take the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    None,
    Reductions,
    All,
}

impl Apart {
    fn holds(self, what: What) -> bool {
        use What::{RecvReduceCopy, RecvReduceCopySend, RecvReduceSend};
        match self {
            Apart::None => false,
            Apart::Reductions => {
                matches!(what, RecvReduceCopy | RecvReduceCopySend | RecvReduceSend)
            }
            Apart::All => what.receives(),
        }
    }
}

/// By rank: its steps as (thread block, step, part), in the order of its program.
pub(super) type Orders = Vec<Vec<(usize, usize, Part)>>;

/// Orders the nodes of a rank: the messages on the longest chain before a node; local steps, sends,
/// receives; then any number. Local steps come as early as they may, because in the model they wait
/// for the messages before them.
type Key = (usize, u8, usize);

/// `(a, b)`: node `a` comes after node `b`.
type Edge = (u32, u32);

/// An order in which the model does not deadlock, with messages in places of their own: a receive
/// then waits for earlier messages of its thread block only, and reductions before it need not wait
/// for each other's messages. `None` if there is none, which [`Graph::order`] refuses.
///
/// # Errors
/// As [`Graph::of_file`].
pub(super) fn order_apart(file: &File) -> Result<Option<Orders>> {
    for apart in [Apart::Reductions, Apart::All] {
        let graph = Graph::new(file, apart)?;
        if let Some(keys) = graph.order_of_messages() {
            return Ok(Some(graph.sorted(keys)));
        }
    }
    Ok(None)
}

pub(super) struct Node<'f> {
    pub(super) rank: usize,
    pub(super) block: usize,
    pub(super) step: usize,
    pub(super) part: Part,
    pub(super) line: &'f Line,
}

impl Node<'_> {
    fn sends(&self) -> bool {
        matches!(self.part, Part::Whole | Part::Sent) && self.line.what.sends()
    }

    fn receives(&self) -> bool {
        !matches!(self.part, Part::Taken | Part::Sent) && self.line.what.receives()
    }

    /// The turn of nodes that could start at once: local steps, sends, receives.
    fn turn(&self) -> u8 {
        match (self.receives(), self.sends()) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }
}

/// All steps of all ranks, and what each comes after.
pub(super) struct Graph<'f> {
    pub(super) file: &'f File<'f>,
    /// By rank, thread block, step and part.
    pub(super) nodes: Vec<Node<'f>>,
    edges: Vec<Edge>,
    /// The nodes that send and receive each message.
    messages: Vec<(u32, u32)>,
    /// Whether some rank sends to another on two channels.
    parallel: bool,
}

impl<'f> Graph<'f> {
    /// All steps as they are in the file.
    ///
    /// # Errors
    /// When steps wait for steps that are not there, or messages do not match.
    pub(super) fn of_file(file: &'f File<'f>) -> Result<Graph<'f>> {
        Graph::new(file, Apart::None)
    }

    /// Finds the order of every rank's steps, and whether the file gives it. Time is `n log n` in
    /// the number of steps.
    ///
    /// # Errors
    /// When steps wait for each other.
    pub(super) fn order(&self) -> Result<(Orders, bool)> {
        if let Some(numbers) = self.numbers() {
            let keys = self.numbered(numbers)?;
            return Ok((self.sorted(keys), true));
        }
        let keys = match self.order_of_messages() {
            Some(keys) => keys,
            None => self.buffered_order()?,
        };
        Ok((self.sorted(keys), false))
    }

    fn new(file: &'f File<'f>, apart: Apart) -> Result<Graph<'f>> {
        let mut graph = Graph {
            file,
            nodes: Vec::new(),
            edges: Vec::new(),
            messages: Vec::new(),
            parallel: false,
        };
        for (rank, gpu) in file.gpus.iter().enumerate() {
            // By thread block and step: its last node.
            let mut last: Vec<Vec<u32>> = Vec::with_capacity(gpu.blocks.len());
            let first = graph.nodes.len();
            for (b, block) in gpu.blocks.iter().enumerate() {
                last.push(graph.add_block(rank, b, block, apart)?);
            }
            for i in first..graph.nodes.len() {
                let Node {
                    block,
                    step,
                    part,
                    line,
                    ..
                } = graph.nodes[i];
                let waits = !matches!(part, Part::Arrived | Part::Sent);
                let Some((other, at_step)) = line.waits.filter(|_| waits) else {
                    continue;
                };
                let found = last.get(other).and_then(|steps| steps.get(at_step));
                let Some(&found) = found.filter(|_| other != block || at_step < step) else {
                    let what = format!(
                        "it waits for step {at_step} of thread block {other}, which is not there or not before it"
                    );
                    return Err(at(file.text, line.pos, what));
                };
                graph.edges.push((i as u32, found));
            }
        }
        graph.match_messages()?;
        Ok(graph)
    }

    /// Adds the steps of a thread block; returns the last node of each.
    fn add_block(
        &mut self,
        rank: usize,
        block: usize,
        of: &'f Block,
        apart: Apart,
    ) -> Result<Vec<u32>> {
        let mut last = Vec::with_capacity(of.lines.len());
        // The last node, and the last that receives: all others, and all that receive, come after
        // it.
        let (mut before, mut received) = (None, None);
        for (step, line) in of.lines.iter().enumerate() {
            let parts: &[Part] = match (apart.holds(line.what), line.what.sends()) {
                (true, true) => &[Part::Arrived, Part::Taken, Part::Sent],
                (true, false) => &[Part::Arrived, Part::Taken],
                (false, true) if line.what.receives() => &[Part::Received, Part::Sent],
                (false, _) => &[Part::Whole],
            };
            for &part in parts {
                let Ok(me) = u32::try_from(self.nodes.len()) else {
                    return Err(Error::malformed("more than 2^32 steps"));
                };
                let node = Node {
                    rank,
                    block,
                    step,
                    part,
                    line,
                };
                if part != Part::Arrived {
                    self.edges
                        .extend(before.replace(me).map(|before| (me, before)));
                }
                if part == Part::Taken || node.receives() && apart != Apart::None {
                    self.edges.extend(received.map(|received| (me, received)));
                }
                if node.receives() {
                    received = Some(me);
                }
                self.nodes.push(node);
            }
            last.push(self.nodes.len() as u32 - 1);
        }
        Ok(last)
    }

    /// The n-th send on a channel meets the n-th receive.
    fn match_messages(&mut self) -> Result<()> {
        // By sender, receiver and channel: the nodes that send, and that receive.
        let mut ends: BTreeMap<(usize, usize, usize), [Vec<u32>; 2]> = BTreeMap::new();
        for (node, me) in self.nodes.iter().zip(0..) {
            let block = &self.file.gpus[node.rank].blocks[node.block];
            if let Some(to) = block.send.filter(|_| node.sends()) {
                ends.entry((node.rank, to, block.channel)).or_default()[0].push(me);
            }
            if let Some(from) = block.recv.filter(|_| node.receives()) {
                ends.entry((from, node.rank, block.channel)).or_default()[1].push(me);
            }
        }
        let mut pairs = BTreeSet::new();
        for ((from, to, channel), [sends, receives]) in ends {
            if sends.len() != receives.len() {
                return Err(Error::malformed(format!(
                    "rank {from} sends {} messages to rank {to} on channel {channel}, which receives {}",
                    sends.len(),
                    receives.len()
                )));
            }
            for (send, receive) in sends.into_iter().zip(receives) {
                let [sent, received] = [send, receive].map(|i| self.nodes[i as usize].line);
                if sent.count != received.count {
                    let what = format!(
                        "receives {} chunks, but rank {from} sends {}",
                        received.count, sent.count
                    );
                    return Err(at(self.file.text, received.pos, what));
                }
                self.messages.push((send, receive));
            }
            self.parallel |= !pairs.insert((from, to));
        }
        Ok(())
    }

    /// By rank: its steps by their keys.
    fn sorted(&self, keys: Vec<Key>) -> Orders {
        let mut ranks: Vec<Vec<(Key, usize, usize, Part)>> = vec![Vec::new(); self.file.gpus.len()];
        for (node, key) in self.nodes.iter().zip(keys) {
            if node.line.what != What::Nop {
                ranks[node.rank].push((key, node.block, node.step, node.part));
            }
        }
        let sorted = ranks.into_iter().map(|mut nodes| {
            nodes.sort_unstable();
            let steps = nodes.into_iter().map(|(_, b, s, part)| (b, s, part));
            steps.collect()
        });
        sorted.collect()
    }

    /// The edges, and each receive after its send.
    pub(super) fn all_edges(&self, more: &[Edge]) -> Vec<Edge> {
        let messages = self.messages.iter().map(|&(send, receive)| (receive, send));
        self.edges
            .iter()
            .copied()
            .chain(messages)
            .chain(more.iter().copied())
            .collect()
    }

    /// The numbers that oneport wrote, if all steps have one; a nop has that of the step after it.
    fn numbers(&self) -> Option<Vec<usize>> {
        let mut next = 0;
        let numbers = self.nodes.iter().rev().map(|node| {
            next = match node.line.what {
                What::Nop => next,
                _ => node.line.n?,
            };
            Some(next)
        });
        let mut numbers: Vec<usize> = numbers.collect::<Option<_>>()?;
        numbers.reverse();
        Some(numbers)
    }

    /// The keys of numbered steps, after a check that each comes after those it waits for.
    fn numbered(&self, numbers: Vec<usize>) -> Result<Vec<Key>> {
        let early = |&&(a, b): &&Edge| numbers[a as usize] < numbers[b as usize];
        if let Some(&(a, _)) = self.edges.iter().find(early) {
            let pos = self.nodes[a as usize].line.pos;
            return Err(at(
                self.file.text,
                pos,
                "n: this step comes before one that it waits for",
            ));
        }
        self.levels(&[])?;
        Ok(numbers.into_iter().map(|n| (n, 0, 0)).collect())
    }

    /// Keys of an order of all messages of all ranks, in which each comes after what its sender and
    /// its receiver do before it: the model does not deadlock in it, unless receives combine as
    /// they are, whose combinations wait for all messages before them. `None` if there is none.
    fn order_of_messages(&self) -> Option<Vec<Key>> {
        // Events: the messages, then the other nodes.
        let count = self.messages.len();
        let mut events: Vec<u32> = (0..self.nodes.len()).map(|i| (count + i) as u32).collect();
        for (&(send, receive), event) in self.messages.iter().zip(0..) {
            events[send as usize] = event;
            events[receive as usize] = event;
        }
        let event = |node: u32| events[node as usize];
        let edges: Vec<Edge> = self
            .edges
            .iter()
            .map(|&(a, b)| (event(a), event(b)))
            .collect();
        let is_message = |event: usize| event < count;
        let levels = levels(count + events.len(), &edges, |e| usize::from(is_message(e))).ok()?;
        let key = |(&event, node): (&u32, &Node)| {
            let event = event as usize;
            let (messages, all) = levels[event];
            (
                messages,
                node.turn(),
                if is_message(event) { event } else { all },
            )
        };
        Some(events.iter().zip(&self.nodes).map(key).collect())
    }

    /// Keys of an order in which messages are under way while their receivers do other things.
    fn buffered_order(&self) -> Result<Vec<Key>> {
        let mut keys = self.levels(&[])?;
        let mut more = Vec::new();
        if self.parallel {
            // Messages between two ranks are matched in order, whatever their channel.
            more = self.in_order_of_sends(&keys);
            keys = self.levels(&more).map_err(|_| {
                Error::malformed(
                    "messages between two ranks cross on different channels: in the model they are received in the \
                     order in which they are sent",
                )
            })?;
        }
        self.delay_sends(&mut keys, &more);
        Ok(keys)
    }

    /// Keys, each greater than those of all nodes that its node comes after.
    fn levels(&self, more: &[Edge]) -> Result<Vec<Key>> {
        let turn = |i: usize| self.nodes[i].turn();
        match levels(self.nodes.len(), &self.all_edges(more), |i| {
            usize::from(turn(i) > 0)
        }) {
            Ok(levels) => {
                let keys = levels.into_iter().enumerate();
                Ok(keys
                    .map(|(i, (messages, all))| (messages, turn(i), all))
                    .collect())
            }
            Err(missing) => Err(self.cycle(&missing)),
        }
    }

    /// For ranks that send to another on several channels: sends and receives in one order.
    fn in_order_of_sends(&self, keys: &[Key]) -> Vec<Edge> {
        let mut messages: Vec<(usize, usize, Key, u32, u32)> =
            Vec::with_capacity(self.messages.len());
        for &(send, receive) in &self.messages {
            let [from, to] = [send, receive].map(|i| self.nodes[i as usize].rank);
            messages.push((from, to, keys[send as usize], send, receive));
        }
        messages.sort_unstable();
        let pairs = messages
            .windows(2)
            .filter(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1));
        pairs
            .flat_map(|w| [(w[1].3, w[0].3), (w[1].4, w[0].4)])
            .collect()
    }

    /// Moves sends behind as much as may come before them, up to the level of their receives: local
    /// steps that need not wait for them then do not.
    fn delay_sends(&self, keys: &mut [Key], more: &[Edge]) {
        let edges = self.all_edges(more);
        let (ends, then) = grouped(keys.len(), edges.iter().map(|&(a, b)| (b, a)));
        let mut order: Vec<usize> = (0..keys.len())
            .filter(|&i| self.nodes[i].turn() == 1)
            .collect();
        order.sort_by_key(|&i| std::cmp::Reverse(keys[i]));
        for i in order {
            let start = if i == 0 { 0 } else { ends[i - 1] as usize };
            let latest = then[start..ends[i] as usize].iter().map(|&t| {
                let (level, turn, _) = keys[t as usize];
                level - usize::from(turn < 2)
            });
            keys[i].0 = latest
                .min()
                .map_or(keys[i].0, |latest| latest.max(keys[i].0));
        }
    }

    /// The error that steps wait for each other, at one of them. `missing` is positive for all
    /// nodes that never start.
    fn cycle(&self, missing: &[u32]) -> Error {
        let mut waits: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for (a, b) in self.all_edges(&[]) {
            if missing[b as usize] > 0 {
                waits[a as usize] = Some(b as usize);
            }
        }
        // From any node that waits, a walk along what it waits for ends in the cycle.
        let mut node = missing.iter().position(|&m| m > 0).unwrap_or(0);
        for _ in 0..self.nodes.len() {
            node = waits[node].unwrap_or(node);
        }
        let Node { rank, line, .. } = self.nodes[node];
        let what = format!("rank {rank}: this step and others wait for each other in a cycle");
        at(self.file.text, line.pos, what)
    }
}

/// By node: the largest sum of the weights of nodes before it, and the largest number of them. With
/// a cycle the error has, by node, how many it still waits for.
pub(super) fn levels(
    n: usize,
    edges: &[Edge],
    weight: impl Fn(usize) -> usize,
) -> Result<Vec<(usize, usize)>, Vec<u32>> {
    let mut missing = vec![0u32; n];
    edges.iter().for_each(|&(a, _)| missing[a as usize] += 1);
    let (ends, then) = grouped(n, edges.iter().map(|&(a, b)| (b, a)));
    let mut levels = vec![(0, 0); n];
    let mut free: Vec<usize> = (0..n).filter(|&i| missing[i] == 0).collect();
    let mut done = 0;
    while let Some(i) = free.pop() {
        done += 1;
        let (sum, count) = (levels[i].0 + weight(i), levels[i].1 + 1);
        let start = if i == 0 { 0 } else { ends[i - 1] as usize };
        for &t in &then[start..ends[i] as usize] {
            let t = t as usize;
            levels[t] = (levels[t].0.max(sum), levels[t].1.max(count));
            missing[t] -= 1;
            if missing[t] == 0 {
                free.push(t);
            }
        }
    }
    if done == n { Ok(levels) } else { Err(missing) }
}
