//! The order of a rank's program: every step comes after those that it waits for, and the model
//! does not deadlock if there is such an order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::file::{GpuBlock, GpuLine, MscclFile, StepKind, at};
use crate::blocks::{Access, BufferStarts, Edge, HappensBefore, in_cycle, longest_paths};
use oneport::error::{Error, Result};
use oneport::internal::Grouped;
use oneport::internal::numbers::id;

/// What of a line a node of the graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinePart {
    Whole,
    /// The receive of a line that also sends.
    Receive,
    /// A buffered receive: the message is stored in a buffer of its own.
    Buffer,
    /// The local step that takes a message from its buffer.
    Unpack,
    /// The send of a line that also receives.
    Send,
}

/// Which lines receive into a buffer, from where local steps take the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffered {
    None,
    Reductions,
    All,
}

impl Buffered {
    fn parts(self, kind: StepKind) -> &'static [LinePart] {
        let is_buffered = match self {
            Buffered::None => false,
            Buffered::Reductions => kind.reduces && kind.receives,
            Buffered::All => kind.receives,
        };
        match (is_buffered, kind.receives, kind.sends) {
            (true, _, true) => &[LinePart::Buffer, LinePart::Unpack, LinePart::Send],
            (true, _, false) => &[LinePart::Buffer, LinePart::Unpack],
            (false, true, true) => &[LinePart::Receive, LinePart::Send],
            (false, ..) => &[LinePart::Whole],
        }
    }
}

/// Thread block, line and part.
pub(super) type NodeId = (usize, usize, LinePart);

/// By rank: its nodes, in the order of its program.
pub(super) type Orders = Vec<Vec<NodeId>>;

/// Orders the nodes of a rank: the messages on the longest path to a node; its class; then any
/// number. Local steps come as early as they may, because in the model they wait for the messages
/// before them.
type Key = (usize, Class, usize);

/// Nodes that could start at once do so in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Local,
    Send,
    Receive,
}

pub(super) struct LineNode<'f> {
    pub(super) rank: usize,
    pub(super) block: usize,
    pub(super) step: usize,
    pub(super) part: LinePart,
    pub(super) line: &'f GpuLine,
}

impl LineNode<'_> {
    fn class(&self) -> Class {
        let kind = self.line.kind;
        match self.part {
            LinePart::Receive | LinePart::Buffer => Class::Receive,
            LinePart::Whole if kind.receives => Class::Receive,
            LinePart::Send => Class::Send,
            LinePart::Whole if kind.sends => Class::Send,
            LinePart::Whole | LinePart::Unpack => Class::Local,
        }
    }
}

pub(super) struct LineGraph<'f> {
    pub(super) file: &'f MscclFile<'f>,
    /// By rank, thread block, line and part.
    pub(super) nodes: Vec<LineNode<'f>>,
    edges: Vec<Edge>,
    /// The nodes that send and receive each message.
    messages: Vec<(u32, u32)>,
    /// Whether some rank sends to another on two channels.
    parallel: bool,
}

impl<'f> LineGraph<'f> {
    /// Refuses steps that wait for steps that are not there, and messages that do not match.
    pub(super) fn new(file: &'f MscclFile<'f>, buffered: Buffered) -> Result<LineGraph<'f>> {
        let mut graph = LineGraph {
            file,
            nodes: Vec::new(),
            edges: Vec::new(),
            messages: Vec::new(),
            parallel: false,
        };
        for (rank, gpu) in file.gpus.iter().enumerate() {
            let first = graph.nodes.len();
            // By thread block and line: its last node.
            let last = gpu.blocks.iter().enumerate();
            let last = last.map(|(b, block)| graph.add_block(rank, b, block, buffered));
            let last: Vec<Vec<u32>> = last.collect::<Result<_>>()?;
            graph.add_dependences(first, &last)?;
        }
        graph.match_messages()?;
        Ok(graph)
    }

    /// Adds the lines of a thread block; returns the last node of each.
    fn add_block(
        &mut self,
        rank: usize,
        block: usize,
        of: &'f GpuBlock,
        buffered: Buffered,
    ) -> Result<Vec<u32>> {
        let mut last = Vec::with_capacity(of.lines.len());
        // The last node precedes all but buffered receives, the last receive all further receives.
        let (mut before, mut received) = (None, None);
        for (step, line) in of.lines.iter().enumerate() {
            for &part in buffered.parts(line.kind) {
                let Ok(me) = u32::try_from(self.nodes.len()) else {
                    return Err(Error::malformed("more than 2^32 steps"));
                };
                let node = LineNode {
                    rank,
                    block,
                    step,
                    part,
                    line,
                };
                let receives = node.class() == Class::Receive;
                if part != LinePart::Buffer {
                    self.edges.extend(before.replace(me).map(|b| (me, b)));
                }
                if part == LinePart::Unpack || receives && buffered != Buffered::None {
                    self.edges.extend(received.map(|r| (me, r)));
                }
                if receives {
                    received = Some(me);
                }
                self.nodes.push(node);
            }
            last.push(id(self.nodes.len()) - 1);
        }
        Ok(last)
    }

    /// Adds what the lines of the rank whose nodes begin with `first` wait for (`depid`, `deps`).
    /// `last` has the last node of each line.
    fn add_dependences(&mut self, first: usize, last: &[Vec<u32>]) -> Result<()> {
        for (node, me) in self.nodes[first..].iter().zip(id(first)..) {
            let Some((block, step)) = node.line.waits else {
                continue;
            };
            if matches!(node.part, LinePart::Buffer | LinePart::Send) {
                continue;
            }
            let found = last.get(block).and_then(|lines| lines.get(step));
            let Some(&found) = found.filter(|_| block != node.block || step < node.step) else {
                let what = format!(
                    "it waits for step {step} of thread block {block}, which is not there or not before it"
                );
                return Err(at(self.file.text, node.line.pos, what));
            };
            self.edges.push((me, found));
        }
        Ok(())
    }

    /// Matches the n-th send on a channel with the n-th receive.
    fn match_messages(&mut self) -> Result<()> {
        // By sender, receiver and channel: the nodes that send, and that receive.
        let mut ends: BTreeMap<(usize, usize, usize), [Vec<u32>; 2]> = BTreeMap::new();
        for (node, me) in self.nodes.iter().zip(0..) {
            let block = &self.file.gpus[node.rank].blocks[node.block];
            match (node.class(), block.send, block.recv) {
                (Class::Send, Some(to), _) => {
                    ends.entry((node.rank, to, block.channel)).or_default()[0].push(me);
                }
                (Class::Receive, _, Some(from)) => {
                    ends.entry((from, node.rank, block.channel)).or_default()[1].push(me);
                }
                _ => {}
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

    /// The edges, and each receive after its send.
    pub(super) fn all_edges(&self, more: &[Edge]) -> Vec<Edge> {
        let messages = self.messages.iter().map(|&(send, receive)| (receive, send));
        let edges = self.edges.iter().copied().chain(messages);
        edges.chain(more.iter().copied()).collect()
    }

    /// Finds the order of every rank's steps, and whether the file gives it. Time is `n log n` in
    /// the number of steps. Refuses steps that wait for each other.
    pub(super) fn order(&self) -> Result<(Orders, bool)> {
        if let Some(numbers) = self.numbers() {
            return Ok((self.sorted(&self.keys_of_numbers(numbers)?), true));
        }
        let keys = match self.keys_of_messages() {
            Some(keys) => keys,
            None => self.keys_of_sends()?,
        };
        Ok((self.sorted(&keys), false))
    }

    /// An order in which the model does not deadlock, if there is one. With buffered receives, a
    /// receive waits for earlier messages of its thread block only.
    pub(super) fn order_of_messages(&self) -> Option<Orders> {
        self.keys_of_messages().map(|keys| self.sorted(&keys))
    }

    fn sorted(&self, keys: &[Key]) -> Orders {
        let mut ranks: Vec<Vec<(Key, NodeId)>> = vec![Vec::new(); self.file.gpus.len()];
        for (node, &key) in self.nodes.iter().zip(keys) {
            if node.line.kind != StepKind::NOP {
                ranks[node.rank].push((key, (node.block, node.step, node.part)));
            }
        }
        let sorted = ranks.into_iter().map(|mut nodes| {
            nodes.sort_unstable();
            nodes.into_iter().map(|(_, id)| id).collect()
        });
        sorted.collect()
    }

    /// The numbers that oneport wrote, if all steps have one; a nop has that of the step after it.
    fn numbers(&self) -> Option<Vec<usize>> {
        let mut next = 0;
        let numbers = self.nodes.iter().rev().map(|node| {
            next = match node.line.kind {
                StepKind::NOP => next,
                _ => node.line.n?,
            };
            Some(next)
        });
        let mut numbers: Vec<usize> = numbers.collect::<Option<_>>()?;
        numbers.reverse();
        Some(numbers)
    }

    /// The numbers as keys, after a check that they are a topological order.
    fn keys_of_numbers(&self, numbers: Vec<usize>) -> Result<Vec<Key>> {
        let early = |&&(a, b): &&Edge| numbers[a as usize] < numbers[b as usize];
        if let Some(&(a, _)) = self.edges.iter().find(early) {
            return Err(at(
                self.file.text,
                self.nodes[a as usize].line.pos,
                "n: this step comes before one that it waits for",
            ));
        }
        self.topological_keys(&[])?;
        Ok(numbers.into_iter().map(|n| (n, Class::Local, 0)).collect())
    }

    /// Topological keys over all messages. Programs in this order cannot deadlock, except through
    /// combining receives, which wait for every earlier message. `None` if there are none.
    fn keys_of_messages(&self) -> Option<Vec<Key>> {
        // The two ends of a message are one event. Events: the messages, then the nodes.
        let messages = self.messages.len();
        let nodes = messages..messages + self.nodes.len();
        let mut events: Vec<u32> = nodes.map(id).collect();
        for (&(send, receive), event) in self.messages.iter().zip(0..) {
            events[send as usize] = event;
            events[receive as usize] = event;
        }
        let event = |node: u32| events[node as usize];
        let edges = self.edges.iter().map(|&(a, b)| (event(a), event(b)));
        let edges: Vec<Edge> = edges.collect();
        let is_message = |event: usize| event < messages;
        let count = messages + events.len();
        let paths = longest_paths(count, &edges, |event| usize::from(is_message(event))).ok()?;
        let keys = events.iter().zip(&self.nodes).map(|(&event, node)| {
            let event = event as usize;
            let (messages, depth) = paths[event];
            let tie = if is_message(event) { event } else { depth };
            (messages, node.class(), tie)
        });
        Some(keys.collect())
    }

    /// Topological keys for messages that are under way while their receivers do other things.
    fn keys_of_sends(&self) -> Result<Vec<Key>> {
        let mut keys = self.topological_keys(&[])?;
        let mut more = Vec::new();
        if self.parallel {
            // Messages between two ranks are matched in order, whatever their channel.
            more = self.edges_in_order_of_sends(&keys);
            keys = self
                .topological_keys(&more)
                .map_err(|_| Error::malformed(CROSSED))?;
        }
        self.delay_sends(&mut keys, &more);
        Ok(keys)
    }

    /// Keys, each greater than those of the node's predecessors.
    fn topological_keys(&self, more: &[Edge]) -> Result<Vec<Key>> {
        let class = |i: usize| self.nodes[i].class();
        let weight = |i| usize::from(class(i) != Class::Local);
        let paths = longest_paths(self.nodes.len(), &self.all_edges(more), weight);
        let paths = paths.map_err(|in_degree| self.cycle(&in_degree))?;
        let keys = paths.into_iter().enumerate();
        Ok(keys
            .map(|(i, (messages, depth))| (messages, class(i), depth))
            .collect())
    }

    /// For ranks that send to another on several channels: sends and receives in one order.
    fn edges_in_order_of_sends(&self, keys: &[Key]) -> Vec<Edge> {
        let messages = self.messages.iter().map(|&(send, receive)| {
            let [from, to] = [send, receive].map(|i| self.nodes[i as usize].rank);
            (from, to, keys[send as usize], send, receive)
        });
        let mut messages: Vec<(usize, usize, Key, u32, u32)> = messages.collect();
        messages.sort_unstable();
        let neighbours = messages.windows(2);
        let pairs = neighbours.filter(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1));
        pairs
            .flat_map(|w| [(w[1].3, w[0].3), (w[1].4, w[0].4)])
            .collect()
    }

    /// Delays each send to its receive's level, so that local steps run first.
    fn delay_sends(&self, keys: &mut [Key], more: &[Edge]) {
        let edges = self.all_edges(more);
        let successors = Grouped::new(keys.len(), edges.iter().map(|&(a, b)| (b, a)));
        let sends = (0..keys.len()).filter(|&i| self.nodes[i].class() == Class::Send);
        let mut sends: Vec<usize> = sends.collect();
        sends.sort_by_key(|&i| Reverse(keys[i]));
        for i in sends {
            let latest = successors.of(i).iter().map(|&next| {
                let (messages, class, _) = keys[next as usize];
                messages - usize::from(class != Class::Receive)
            });
            if let Some(latest) = latest.min() {
                keys[i].0 = keys[i].0.max(latest);
            }
        }
    }

    /// The error that steps wait for each other, at one of them. `in_degree` is positive for all
    /// nodes that never get ready.
    fn cycle(&self, in_degree: &[u32]) -> Error {
        let LineNode { rank, line, .. } = self.nodes[in_cycle(&self.all_edges(&[]), in_degree)];
        let what = format!("rank {rank}: this step and others wait for each other in a cycle");
        Error::wrong(at(self.file.text, line.pos, what).to_string())
    }

    /// Refuses a file with a race. A step reads and writes while it runs, and is done when its
    /// message is under way: `s` and `rrs` read `src`, `r` and `rcs` write `dst`, `rrc`, `rrcs`,
    /// `cpy` and `re` do both. `hasdep` adds no order: it tells the executor which steps to
    /// announce, and a wait for a step that is not announced lasts longer, never shorter. Room in a
    /// channel adds none, either: a send may never have to wait for it.
    pub(super) fn ensure_no_races(&self, memory: &[BufferStarts]) -> Result<()> {
        let blocks = self
            .nodes
            .chunk_by(|a, b| (a.rank, a.block) == (b.rank, b.block));
        let chain = (0..)
            .zip(blocks)
            .flat_map(|(chain, nodes)| vec![chain; nodes.len()]);
        let itself = (0..id(self.nodes.len())).collect();
        let graph = HappensBefore::new(&self.all_edges(&[]), chain.collect(), itself);
        let mut nodes = self.nodes.iter().zip(0..).peekable();
        let accesses = |rank: usize, accesses: &mut Vec<Access>| {
            let several = self.file.gpus[rank].blocks.len() > 1;
            while let Some((node, i)) = nodes.next_if(|(node, _)| node.rank == rank) {
                let kind = node.line.kind;
                let place = |(buffer, at): (usize, usize)| memory[rank].starts[buffer] + at;
                // In place some algorithms copy a chunk onto itself, which changes nothing.
                let changes =
                    kind != StepKind::COPY || place(node.line.src) != place(node.line.dst);
                let uses = [
                    (kind.reads, node.line.src, false),
                    (kind.writes, node.line.dst, changes),
                ];
                let is_used = |used: bool| used && several && node.part != LinePart::Send;
                for (_, at, writes) in uses.into_iter().filter(|u| is_used(u.0)) {
                    let start = place(at);
                    accesses.push(Access {
                        node: i,
                        range: start..start + node.line.count,
                        writes,
                        number: None,
                    });
                }
            }
        };
        graph.ensure_ordered(memory.len(), accesses, |a, b| self.race(a, b))
    }

    fn race(&self, a: u32, b: u32) -> Error {
        let [a, b] = [a, b].map(|i| &self.nodes[i as usize]);
        let what = format!(
            "rank {}: step {} of thread block {} and step {} of thread block {} access the same chunk, at least one \
             writes it, and neither comes after the other: let one wait for the other (depid and deps)",
            b.rank, a.step, a.block, b.step, b.block
        );
        Error::wrong(at(self.file.text, b.line.pos, what).to_string())
    }
}

const CROSSED: &str = "messages between two ranks cross on different channels: in the model they are \
                       received in the order in which they are sent";
