//! What comes before what in a plan: operations as nodes of a graph.

use std::collections::{BTreeMap, HashMap};

use super::parse::{ChannelType, Op, OpAt, OpName, PACKETS, Place, Plan};
use crate::blocks::{Access, Edge, HappensBefore, in_cycle, longest_paths};
use oneport::error::{Error, Result};
use oneport::internal::Grouped;
use oneport::internal::numbers::id;

/// Messages that the operations of switches may become, and writes of packets that others may read,
/// beside 64 for each operation: as many as fit into some 200 MB.
const MAX_SWITCHED: usize = 1 << 20;

/// A part of an operation that happens at once: all of it, or what one thread does.
pub(super) struct PlanNode {
    pub(super) at: OpAt,
    pub(super) name: OpName,
    pub(super) src: Vec<Vec<Place>>,
    pub(super) dst: Vec<Vec<Place>>,
}

pub(super) struct PlanGraph<'p> {
    pub(super) plan: &'p Plan,
    pub(super) nodes: Vec<PlanNode>,
    /// By node: equal for the nodes of a thread block that wait for all of its threads, else a
    /// number of its own.
    chain: Vec<u32>,
    /// By node: the node at which all threads of its block meet next, or itself.
    joined: Vec<u32>,
    /// Edges that order memory; those of relaxed signals, which order time; and those of threads of
    /// a block, which do not run ahead of each other for long.
    edges: Vec<Edge>,
    relaxed: Vec<Edge>,
    time: Vec<Edge>,
    counters: BTreeMap<CounterId, Counter>,
    /// By GPU: its end, if its output is known.
    ends: Vec<Option<u32>>,
    /// Whether the plan says which step of a schedule each operation is.
    pub(super) numbered: bool,
    switched: usize,
}

/// What is counted: the signals of a channel, from a rank to another, and a semaphore of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CounterId {
    Signals(usize, usize, ChannelType, usize),
    Semaphore(usize, usize),
}

/// Additions to a counter, and subtractions, which wait until it is positive; in the order of each
/// thread block.
#[derive(Default)]
struct Counter {
    initial: usize,
    adds: Vec<Counted>,
    takes: Vec<Counted>,
}

#[derive(Clone, Copy)]
struct Counted {
    block: (usize, usize),
    node: u32,
    relaxed: bool,
}

/// What of a thread block later operations may have to wait for.
#[derive(Default)]
struct BlockState {
    /// The last node that waited for all threads, and the nodes since then.
    sync: Option<u32>,
    open: Vec<u32>,
    /// By thread: its last node.
    lanes: HashMap<usize, u32>,
    /// The nodes of the last operation that the thread block waited for.
    last: Vec<u32>,
    /// By port channel: its last transfer or signal.
    transfers: HashMap<usize, u32>,
}

impl<'p> PlanGraph<'p> {
    pub(super) fn new(plan: &'p Plan) -> Result<PlanGraph<'p>> {
        let mut graph = PlanGraph {
            plan,
            nodes: Vec::new(),
            chain: Vec::new(),
            joined: Vec::new(),
            edges: Vec::new(),
            relaxed: Vec::new(),
            time: Vec::new(),
            counters: BTreeMap::new(),
            ends: Vec::new(),
            numbered: false,
            switched: 0,
        };
        let mut blocks = 0;
        for (rank, gpu) in plan.gpus.iter().enumerate() {
            // By barrier: by how many thread blocks, the node of each time, and its last round.
            let mut barriers: HashMap<usize, Barrier> = HashMap::new();
            let mut last: Vec<u32> = Vec::new();
            for (id, semaphore) in gpu.semaphores.iter().enumerate() {
                let id = CounterId::Semaphore(rank, id);
                graph.counters.entry(id).or_default().initial = semaphore.init_value;
            }
            for (block, tb) in gpu.threadblocks.iter().enumerate() {
                let mut state = BlockState::default();
                for (op, of) in tb.ops.iter().enumerate() {
                    let at = OpAt {
                        gpu: rank,
                        block,
                        op,
                    };
                    if of.name != OpName::Pipeline {
                        graph.add(at, of, None, blocks, &mut state, &mut barriers)?;
                        continue;
                    }
                    let chunks = of.iter_context.as_ref().map_or(1, |i| i.num_chunks);
                    let half = chunks.saturating_mul(plan.parts / 2);
                    for window in [(0, half), (half, half.saturating_mul(2))] {
                        for of in &of.ops {
                            let window = Some(window);
                            graph.add(at, of, window, blocks, &mut state, &mut barriers)?;
                        }
                    }
                }
                for barrier in barriers.values_mut() {
                    barrier.round = 0;
                }
                last.extend(state.sync.into_iter().chain(state.open));
                blocks += 1;
            }
            graph.end(rank, last)?;
            for (id, barrier) in barriers {
                barrier.ensure_complete(rank, id)?;
            }
        }
        graph.count()?;
        graph.match_packets()?;
        graph.numbered = graph.nodes.iter().all(|node| {
            let is_number = |&n: &usize| n < u32::MAX as usize;
            if node.name == OpName::End || node.src.is_empty() && node.dst.is_empty() {
                return true;
            }
            let n = &plan.op(node.at).n;
            match node.name {
                OpName::Copy | OpName::Re => n.len() == 1 && n.iter().all(is_number),
                OpName::Put | OpName::Rre => n.len() == 2 && n.iter().all(is_number),
                _ => false,
            }
        });
        Ok(graph)
    }

    fn node(&mut self, at: OpAt, name: OpName, operands: [Vec<Vec<Place>>; 2]) -> Result<u32> {
        let me = u32::try_from(self.nodes.len());
        let me = me.map_err(|_| Error::malformed("more than 2^32 operations"))?;
        let [src, dst] = operands;
        self.nodes.push(PlanNode { at, name, src, dst });
        // The numbers of thread blocks are the even ones.
        self.chain.push(2 * me + 1);
        self.joined.push(me);
        Ok(me)
    }

    /// The end of a GPU, behind the `last` nodes of its thread blocks: who uses the result reads
    /// the output.
    fn end(&mut self, gpu: usize, last: Vec<u32>) -> Result<()> {
        let Some(output) = self.plan.output(gpu) else {
            self.ends.push(None);
            return Ok(());
        };
        let (block, op) = (0, 0);
        let at = OpAt { gpu, block, op };
        let me = self.node(at, OpName::End, [vec![vec![output]], Vec::new()])?;
        self.edges.extend(last.into_iter().map(|last| (me, last)));
        self.ends.push(Some(me));
        Ok(())
    }

    /// Adds an operation of the thread block with number `block` among all.
    fn add(
        &mut self,
        at: OpAt,
        op: &Op,
        window: Option<(usize, usize)>,
        block: u32,
        state: &mut BlockState,
        barriers: &mut HashMap<usize, Barrier>,
    ) -> Result<()> {
        let name = op.name;
        let operands = self.plan.operands(at, op, window)?;
        match name {
            OpName::Nop => {
                let me = self.node(at, name, operands)?;
                self.chain[me as usize] = 2 * block;
                self.synchronise(me, state);
            }
            OpName::Barrier => {
                let missing = || Error::malformed(format!("{at}: a barrier without barrier_id"));
                let id = op.barrier_id.ok_or_else(missing)?;
                let blocks = op.num_threadblocks.unwrap_or(0);
                let barrier = barriers
                    .entry(id)
                    .or_insert_with(|| Barrier::of(at, blocks));
                if barrier.blocks != blocks {
                    return Err(Error::wrong(format!(
                        "{at} (Barrier): barrier {id} waits for {blocks} thread blocks here, for {} in {}",
                        barrier.blocks, barrier.at
                    )));
                }
                let round = barrier.round;
                barrier.round += 1;
                if barrier.rounds.len() == round {
                    let me = self.node(at, name, operands)?;
                    barrier.rounds.push((me, 0));
                }
                let (me, arrived) = &mut barrier.rounds[round];
                *arrived += 1;
                self.synchronise(*me, state);
            }
            OpName::Signal
            | OpName::Rlxsignal
            | OpName::Wait
            | OpName::Rlxwait
            | OpName::Flush
            | OpName::SemAcquire
            | OpName::SemRelease => self.add_control(at, op, state)?,
            OpName::Put | OpName::Pws | OpName::Pwsf | OpName::Ppkt | OpName::Rppkt
                if op.is_on_port() =>
            {
                self.add_transfers(at, op, operands, state)?;
            }
            _ => {
                let messages: usize = operands.iter().flatten().map(Vec::len).sum();
                self.switched += messages;
                if self.switched > MAX_SWITCHED + 64 * self.nodes.len() {
                    let max = MAX_SWITCHED;
                    return Err(Error::malformed(format!(
                        "{at}: the operations of switches become more than {max} messages"
                    )));
                }
                let me = self.node(at, name, operands)?;
                self.edges.extend(state.sync.map(|sync| (me, sync)));
                self.block_until(me, state);
            }
        }
        Ok(())
    }

    /// A node at which all threads of a thread block meet.
    fn synchronise(&mut self, me: u32, state: &mut BlockState) {
        for &open in &state.open {
            self.joined[open as usize] = me;
        }
        let before = state.sync.into_iter().chain(state.open.drain(..));
        self.edges.extend(before.map(|before| (me, before)));
        self.time.extend(state.last.iter().map(|&last| (me, last)));
        (state.sync, state.last) = (Some(me), vec![me]);
        state.lanes.clear();
    }

    /// The thread block goes on when the node is done.
    fn block_until(&mut self, me: u32, state: &mut BlockState) {
        self.time.extend(state.last.iter().map(|&last| (me, last)));
        state.last = vec![me];
        state.open.push(me);
    }

    /// What precedes a node of one thread.
    fn after_lane(&mut self, me: u32, lane: usize, state: &BlockState) {
        let before = state.lanes.get(&lane).copied().or(state.sync);
        self.edges.extend(before.map(|before| (me, before)));
        self.time.extend(state.last.iter().map(|&last| (me, last)));
    }

    /// Signals, waits and flushes, each channel or semaphore by a thread of its own.
    fn add_control(&mut self, at: OpAt, op: &Op, state: &mut BlockState) -> Result<()> {
        use OpName::{Flush, Rlxsignal, Rlxwait, SemAcquire, SemRelease, Signal};
        let name = op.name;
        let (channels, semaphores) = match name {
            SemAcquire | SemRelease => (Vec::new(), &op.semaphore_ids[..]),
            _ => (self.plan.channels(at, op)?, &[][..]),
        };
        let semaphores = semaphores.iter().map(|&id| {
            if id < self.plan.gpus[at.gpu].semaphores.len() {
                Ok((CounterId::Semaphore(at.gpu, id), None))
            } else {
                let what = format!("{at} ({name:?}): there is no semaphore {id}");
                Err(Error::malformed(what))
            }
        });
        let semaphores: Vec<_> = semaphores.collect::<Result<_>>()?;
        let signals = channels.into_iter().map(|(kind, channel)| {
            let sends = matches!(name, Signal | Rlxsignal);
            let port = (kind == ChannelType::Port).then_some(channel);
            (self.signals(at.gpu, kind, channel, sends), port)
        });
        let all: Vec<_> = signals.chain(semaphores).collect();
        // All threads start this operation at once, and the next one waits for all.
        let mut done = Vec::new();
        for (lane, (counter, port)) in all.into_iter().enumerate() {
            let me = self.node(at, name, Default::default())?;
            self.after_lane(me, lane, state);
            let counted = Counted {
                block: (at.gpu, at.block),
                node: me,
                // A proxy knows no relaxed signals.
                relaxed: matches!(name, Rlxsignal | Rlxwait) && port.is_none(),
            };
            let transfer = port.and_then(|channel| state.transfers.get(&channel).copied());
            match name {
                Signal | Rlxsignal | SemRelease => {
                    self.edges.extend(transfer.map(|transfer| (me, transfer)));
                    self.counters.entry(counter).or_default().adds.push(counted);
                    if let Some(channel) = port {
                        // The proxy signals; the thread goes on.
                        state.transfers.insert(channel, me);
                        continue;
                    }
                }
                Flush => self.edges.extend(transfer.map(|transfer| (me, transfer))),
                _ => self
                    .counters
                    .entry(counter)
                    .or_default()
                    .takes
                    .push(counted),
            }
            state.lanes.insert(lane, me);
            done.push(me);
        }
        if !done.is_empty() {
            state.open.extend(&done);
            state.last = done;
        }
        Ok(())
    }

    /// The counter of a channel's signals: those that it sends, or those of its twin.
    fn signals(&self, rank: usize, kind: ChannelType, channel: usize, sends: bool) -> CounterId {
        let found = self.plan.gpus[rank].peer(kind, channel);
        let (peer, number) = found.unwrap_or((rank, channel));
        let (from, to) = if sends { (rank, peer) } else { (peer, rank) };
        CounterId::Signals(from, to, kind, number)
    }

    /// Transfers on port channels: a proxy does them after the thread has asked for them.
    fn add_transfers(
        &mut self,
        at: OpAt,
        op: &Op,
        [src, dst]: [Vec<Vec<Place>>; 2],
        state: &mut BlockState,
    ) -> Result<()> {
        let channels = self.plan.channels(at, op)?;
        if channels.len() != dst.len() {
            return Err(Error::malformed(format!(
                "{at} ({:?}): {} channels for {} destinations",
                op.name,
                channels.len(),
                dst.len()
            )));
        }
        for (lane, ((kind, channel), to)) in channels.into_iter().zip(dst).enumerate() {
            let from = src[lane.min(src.len() - 1)].clone();
            let peer = self.plan.gpus[at.gpu].peer(kind, channel);
            if peer.map(|peer| peer.0) != Some(to[0].rank) {
                let what = "the channel and the remote buffer are those of different ranks";
                return Err(Error::malformed(format!("{at} ({:?}): {what}", op.name)));
            }
            let me = self.node(at, op.name, [vec![from], vec![to]])?;
            self.after_lane(me, lane, state);
            let before = state.transfers.insert(channel, me);
            self.edges.extend(before.map(|before| (me, before)));
            if op.name == OpName::Rppkt {
                // The thread block reads the packets itself before.
                self.block_until(me, state);
            }
            if matches!(op.name, OpName::Pws | OpName::Pwsf) {
                let signal = self.node(at, OpName::Signal, Default::default())?;
                self.edges.push((signal, me));
                state.transfers.insert(channel, signal);
                let id = self.signals(at.gpu, kind, channel, true);
                self.counters.entry(id).or_default().adds.push(Counted {
                    block: (at.gpu, at.block),
                    node: signal,
                    relaxed: false,
                });
                if op.name == OpName::Pwsf {
                    state.lanes.insert(lane, signal);
                    self.block_until(signal, state);
                }
            }
        }
        Ok(())
    }

    /// Adds the edges from signals to waits. A wait is ordered behind a signal without which there
    /// cannot be enough of them.
    fn count(&mut self) -> Result<()> {
        for counter in std::mem::take(&mut self.counters).into_values() {
            let all = counter.adds.len();
            if let Some(late) = counter.takes.get(counter.initial.saturating_add(all)) {
                let PlanNode { at, name, .. } = &self.nodes[late.node as usize];
                return Err(Error::wrong(format!(
                    "{at} ({name:?}) waits forever: {} waits for {all} signals",
                    counter.takes.len()
                )));
            }
            // By thread block that adds: its additions.
            let mut adding: BTreeMap<(usize, usize), Vec<Counted>> = BTreeMap::new();
            for &add in &counter.adds {
                adding.entry(add.block).or_default().push(add);
            }
            let most = adding.values().map(Vec::len).max().unwrap_or(0);
            // By thread block that takes: how often it has.
            let mut taken: HashMap<(usize, usize), usize> = HashMap::new();
            for take in counter.takes {
                let taken = taken.entry(take.block).or_default();
                *taken += 1;
                let needed = taken.saturating_sub(counter.initial);
                if needed + most <= all {
                    continue;
                }
                for adds in adding.values() {
                    let spare = all - adds.len();
                    let least = needed.saturating_sub(spare);
                    if let Some(add) = adds[..least].last() {
                        let relaxed = take.relaxed || add.relaxed;
                        let edges = if relaxed {
                            &mut self.relaxed
                        } else {
                            &mut self.edges
                        };
                        edges.push((take.node, add.node));
                        // The end of a GPU orders memory, whatever its threads do.
                        let end = self.ends[take.block.0].filter(|_| !add.relaxed);
                        self.edges.extend(end.map(|end| (end, add.node)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the edges from who writes packets to who reads them.
    fn match_packets(&mut self) -> Result<()> {
        let mut written: Vec<BTreeMap<usize, (usize, u32)>> =
            vec![BTreeMap::new(); self.plan.gpus.len()];
        let places = |places: &[Vec<Place>]| -> Vec<Place> {
            let packets = places
                .iter()
                .flatten()
                .filter(|p| p.buffer == PACKETS && p.len > 0);
            packets.copied().collect()
        };
        for (node, me) in self.nodes.iter().zip(0..) {
            for Place {
                rank, start, len, ..
            } in places(&node.dst)
            {
                let before = written[rank].range(..start + len).next_back();
                if let Some((_, &(_, other))) = before.filter(|(_, (end, _))| *end > start) {
                    return Err(self.race(
                        other,
                        me,
                        "packets with the same flag are written twice",
                    ));
                }
                written[rank].insert(start, (start + len, me));
            }
        }
        let mut edges = Vec::new();
        for (node, me) in self.nodes.iter().zip(0..) {
            for Place {
                rank, start, len, ..
            } in places(&node.src)
            {
                let mut from = start;
                while from < start + len {
                    let writer = written[rank].range(..=from).next_back();
                    let Some((_, &(end, writer))) = writer.filter(|(_, (end, _))| *end > from)
                    else {
                        let PlanNode { at, name, .. } = node;
                        return Err(Error::wrong(format!(
                            "{at} ({name:?}) waits forever: nothing writes chunk {} of the packets that it reads",
                            from / self.plan.parts
                        )));
                    };
                    edges.push((me, writer));
                    if edges.len() > MAX_SWITCHED + 64 * self.nodes.len() {
                        let what = "operations read the packets of too many others";
                        return Err(Error::malformed(what));
                    }
                    from = end;
                }
            }
        }
        self.edges.extend(edges);
        Ok(())
    }

    /// The nodes in an order in which each comes after those before it: early messages first.
    pub(super) fn order(&self) -> Result<Vec<u32>> {
        let edges = self.edges.iter().chain(&self.relaxed).chain(&self.time);
        let edges: Vec<Edge> = edges.copied().collect();
        let sends = |i: usize| self.nodes[i].messages() > 0;
        let paths = longest_paths(self.nodes.len(), &edges, |i| usize::from(sends(i)));
        let paths = paths.map_err(|in_degree| {
            let PlanNode { at, name, .. } = &self.nodes[in_cycle(&edges, &in_degree)];
            Error::wrong(format!(
                "{at} ({name:?}) and others wait for each other in a cycle"
            ))
        })?;
        let mut order: Vec<u32> = (0..id(self.nodes.len())).collect();
        order.sort_by_key(|&i| {
            let (messages, depth) = paths[i as usize];
            (messages, sends(i as usize), depth)
        });
        Ok(order)
    }

    /// Refuses accesses of a GPU's memory that may come before it starts, while it still runs what
    /// comes before the plan. Packets wait for their place by themselves.
    pub(super) fn ensure_started(&self, order: &[u32]) -> Result<()> {
        if self.plan.buffers.is_none() {
            return Ok(());
        }
        let edges = self.edges.iter().chain(&self.relaxed).copied();
        let before = Grouped::new(self.nodes.len(), edges);
        for first in (0..self.plan.gpus.len()).step_by(64) {
            // By node: which of 64 GPUs have started before.
            let bit = |gpu: usize| {
                gpu.checked_sub(first)
                    .map_or(0, |i| 1u64.checked_shl(id(i)).unwrap_or(0))
            };
            let mut started = vec![0u64; self.nodes.len()];
            for &i in order {
                let node = &self.nodes[i as usize];
                let before = before.of(i as usize).iter();
                let known = before.fold(bit(node.at.gpu), |all, &i| all | started[i as usize]);
                started[i as usize] = known;
                let places = node.src.iter().chain(&node.dst).flatten();
                let mut remote = places.filter(|p| p.buffer != PACKETS && p.len > 0);
                if let Some(place) = remote.find(|place| bit(place.rank) & !known != 0) {
                    return Err(Error::wrong(format!(
                        "race: {} ({:?}) accesses memory of gpu {}, which may not have started: nothing of it was \
                         waited for",
                        node.at, node.name, place.rank
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn ensure_no_races(&self) -> Result<()> {
        // Nodes access the memory of all ranks.
        let mut accesses: Vec<Vec<Access>> = Vec::new();
        accesses.resize_with(self.plan.gpus.len(), Vec::new);
        let starts = self.plan.starts()?;
        let start = |place: &Place| starts[place.rank][place.buffer] + place.start;
        for (node, me) in self.nodes.iter().zip(0..) {
            // A copy of a chunk onto itself, in place, changes nothing.
            let changes =
                node.name != OpName::Copy || start(&node.src[0][0]) != start(&node.dst[0][0]);
            for (places, writes) in [(&node.src, false), (&node.dst, changes)] {
                for place in places.iter().flatten().filter(|place| place.len > 0) {
                    let start = start(place);
                    accesses[place.rank].push(Access {
                        node: me,
                        range: start..start + place.len,
                        writes,
                        number: self.number(node, place.rank),
                    });
                }
            }
        }
        let graph = HappensBefore::new(&self.edges, self.chain.clone(), self.joined.clone());
        let of_rank = |rank: usize, of_rank: &mut Vec<Access>| of_rank.append(&mut accesses[rank]);
        let why = "at least one writes a chunk that both access, and neither comes after the other";
        graph.ensure_ordered(self.plan.gpus.len(), of_rank, |a, b| self.race(a, b, why))
    }

    /// The number of the step that an operation is at a rank.
    pub(super) fn number(&self, node: &PlanNode, rank: usize) -> Option<u32> {
        if !self.numbered {
            return None;
        }
        if node.name == OpName::End {
            return Some(u32::MAX);
        }
        let sends = (rank == node.at.gpu) == (node.name == OpName::Put);
        Some(match self.plan.op(node.at).n[..] {
            [send, receive] => id(if sends { send } else { receive }),
            ref n => id(n[0]),
        })
    }

    fn race(&self, a: u32, b: u32, why: &str) -> Error {
        let [a, b] = [a, b].map(|i| &self.nodes[i as usize]);
        let is_end = |node: &PlanNode| node.name == OpName::End;
        Error::wrong(match [a, b] {
            [node, end] | [end, node] if is_end(end) => format!(
                "race: {} ({:?}) writes output of gpu {}, which may end before: no thread block of it waits for this",
                node.at, node.name, end.at.gpu
            ),
            _ => format!(
                "race: {} ({:?}) and {} ({:?}): {why}",
                a.at, a.name, b.at, b.name
            ),
        })
    }
}

impl PlanNode {
    /// Messages that it sends or receives.
    pub(super) fn messages(&self) -> usize {
        let places = self.src.iter().chain(&self.dst).flatten();
        places
            .filter(|place| place.rank != self.at.gpu && place.len > 0)
            .count()
    }
}

/// A barrier of a GPU.
struct Barrier {
    at: OpAt,
    blocks: usize,
    /// By round: its node, and how many thread blocks come.
    rounds: Vec<(u32, usize)>,
    /// The next round of the thread block that is looked at.
    round: usize,
}

impl Barrier {
    fn of(at: OpAt, blocks: usize) -> Barrier {
        Barrier {
            at,
            blocks,
            rounds: Vec::new(),
            round: 0,
        }
    }

    fn ensure_complete(&self, gpu: usize, id: usize) -> Result<()> {
        let (at, blocks) = (self.at, self.blocks);
        match self.rounds.iter().find(|(_, come)| *come != blocks) {
            Some((_, come)) => Err(Error::wrong(format!(
                "{at} (Barrier) waits forever: {come} thread blocks of gpu {gpu} come to barrier {id}, which waits for \
                 {blocks}"
            ))),
            None => Ok(()),
        }
    }
}
