//! Schedules as plans, with as much synchronisation as keeps accesses of the same chunk in order.
//!
//! Thread block and number of `nop`s before it are the time of an operation that moves data. A
//! thread block knows of each other one how many of its `nop`s are done for sure: what it waits for
//! brings it what the other one knows. So a signal, a semaphore or a `nop` is written only where
//! two accesses of a chunk are in no order yet.
//!
//! Who needs an operation is known only later, so that its signal comes late, too, behind what its
//! thread block waits for meanwhile. Therefore the plan is made again, with the signals of the time
//! before as early as they can be, until no others are needed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use super::parse::{
    BlockBuffers, BlockChannels, BufferType, Channel, ChannelType, Gpu, Op, OpName, Operand,
    PlanFile, RemoteBuffer, Semaphore, ThreadBlock,
};
use crate::blocks::{Buffers, Chunks, Edge, longest_paths};
use crate::msccl::place::{Placed, place};
use crate::msccl::{ChunkAt, Mate, collective, gcd, mates, parts};
use crate::{Written, ensure_own_ports};
use oneport::error::{Error, Result};
use oneport::internal::numbers::id;
use oneport::rules::{LocalOrder, OrderScratch};
use oneport::schedule::collective::Holders;
use oneport::schedule::{Order, Schedule, Span, Step};

/// Operations of a thread block, and its channels and remote buffers, that the executor takes, and
/// semaphores of a GPU.
const MAX_OPS: usize = 64;
const MAX_OF_BLOCK: usize = 16;
const MAX_SEMAPHORES: usize = 16;
/// What a thread block knows of others is as long as their number: some 100 MB.
const MAX_BLOCKS: usize = 1 << 12;
/// How often a plan is made before signals stay where they are needed first.
const MAX_PASSES: usize = 8;
/// Signals with early knowledge of all thread blocks, in numbers kept: some 250 MB.
const MAX_EARLY: usize = 1 << 26;

/// Writes a schedule as a plan named `name`.
///
/// A message is a remote write by its sender or, where the receiver combines it, a remote read by
/// the receiver. A rank has a thread block for each port. Buffers that overlap as in NCCL are those
/// of a plan in place; others are placed as in [MSCCL](crate::msccl::write()).
///
/// # Errors
/// Collectives other than allgather, allreduce, reduce-scatter and alltoall, blocks of unequal
/// size, steps without elements, shared ports, a schedule with unmatched messages or whose ranks
/// wait for each other, and more than 4096 thread blocks.
pub fn write(schedule: &Schedule, name: &str) -> Result<Written> {
    const FORMAT: &str = "MSCCL++";
    ensure_own_ports(schedule, FORMAT)?;
    let kind = schedule.collective().kind();
    if [kind.row().input.0, kind.row().output.0] != [Holders::Every; 2] {
        return Err(Error::usage(format!(
            "MSCCL++ has no {}: its collectives are allgather, allreduce, reducescatter and alltoall",
            kind.name()
        )));
    }
    let (coll, elements) = collective(schedule, FORMAT)?;
    let buffers = |in_place| Buffers {
        kind,
        in_place,
        chunks: elements,
        ranks: schedule.ranks(),
    };
    let unmoved = |in_place| Some((in_place, as_laid_out(schedule, &buffers(in_place))?));
    let (in_place, placed) = match [true, false].into_iter().find_map(unmoved) {
        Some(found) => found,
        None => (false, place(schedule)?),
    };
    let chunk = placed.iter().map(|p| p.chunk).fold(0, gcd).max(1);
    let made = |early: Signals, blocks: &[Growing]| -> Result<PlanWriter<'_>> {
        let mut writer = PlanWriter::new(schedule, &placed, chunk, early)?;
        for block in blocks.iter().skip(placed.len()) {
            writer.block(block.rank, block.port)?;
        }
        writer.starts()?;
        writer.events()?;
        writer.finish(&buffers(in_place))?;
        Ok(writer)
    };
    let mut writer = made(Signals::new(), &[])?;
    for pass in 1..=MAX_PASSES {
        if writer.used.len() * writer.blocks.len() > MAX_EARLY || writer.is_settled() {
            break;
        }
        let early = if pass < MAX_PASSES {
            std::mem::take(&mut writer.used)
        } else {
            Signals::new()
        };
        writer = made(early, &writer.blocks)?;
    }
    let notes = writer.notes(kind.reduces());
    let gpus = writer.gpus(&buffers(in_place), chunk);
    let file = PlanFile {
        name: name.into(),
        collective: coll.into(),
        protocol: "Simple".into(),
        inplace: in_place,
        ports: Some(schedule.ports().name().into()),
        ported: Some(schedule.ports().k()),
        gpus,
    };
    let text = serde_json::to_string(&file).map_err(|e| Error::json(FORMAT, &e))?;
    Ok(Written {
        text: text + "\n",
        notes,
    })
}

/// The programs as they are, if input and output of all ranks lie where the plan's are.
fn as_laid_out(schedule: &Schedule, buffers: &Buffers) -> Option<Vec<Placed>> {
    let lies = |spans: &[Span], start: usize, len: usize| {
        let mut end = start;
        let mut spans = spans.iter();
        spans.all(|s| s.offset == std::mem::replace(&mut end, s.end())) && end == start + len
    };
    let ranks = schedule.layout().iter().zip(schedule.programs());
    let of_rank = ranks.enumerate().map(|(rank, (layout, program))| {
        let [input, output] = buffers.regions(rank, None);
        let memory = buffers.of_rank(rank, None, [input, output, 0]).ok()?;
        let [first, second, _] = memory.starts;
        if !lies(&layout.input, first, input) || !lies(&layout.output, second, output) {
            return None;
        }
        let scratch = layout.len.checked_sub(memory.len)?;
        // In place the larger one is both.
        let [input, output] = match [input, output] {
            sizes if !buffers.in_place => sizes,
            [input, output] if input >= output => [memory.len, 0],
            _ => [0, memory.len],
        };
        let spans = program.iter();
        let spans = spans.flat_map(|s| s.reads().iter().chain(s.writes()));
        let ends = spans.flat_map(|span| [span.offset, span.len]);
        let blocks = usize::from(buffers.kind.has_blocks());
        let block = blocks * buffers.chunks / buffers.ranks;
        Some(Placed {
            input,
            output,
            scratch,
            program: program.clone(),
            chunk: ends.chain([input, output, scratch, block]).fold(0, gcd),
        })
    });
    of_rank.collect()
}

/// Operations that move data, and thread blocks that get a signal of each.
type Signals = BTreeSet<(u32, usize)>;

/// An operation that moves data: its number, thread block, and the number of `nop`s before it. The
/// first ones, with the number of a rank as node and block, are no operations: that rank starts.
#[derive(Clone, Copy, Default)]
struct Moved {
    node: u32,
    block: usize,
    phase: u32,
}

/// A signal that an operation is done, and what its thread block knew then.
type Given = (Moved, Rc<[u32]>);

/// A thread block as it grows. The first ones, by rank, are none: they have no operations, and
/// their only `nop` is done when the rank starts.
struct Growing {
    rank: usize,
    port: usize,
    /// With channels of its GPU and remote buffers by the number that operations use, of memory
    /// alone.
    of: ThreadBlock,
    /// Its `nop`s.
    phase: u32,
    /// By thread block: the `nop`s that were before the last `nop`, and before the last operation
    /// of its first thread, which signals and waits.
    synced: Vec<u32>,
    known: Vec<u32>,
}

impl Growing {
    fn new(rank: usize, port: usize) -> Growing {
        let mut started = vec![0; rank + 1];
        started[rank] = 1;
        Growing {
            rank,
            port,
            of: ThreadBlock {
                channels: vec![BlockChannels {
                    channel_type: ChannelType::Memory,
                    channel_ids: Vec::new(),
                }],
                remote_buffer_refs: vec![BlockBuffers {
                    access_channel_type: ChannelType::Memory,
                    remote_buffer_ids: Vec::new(),
                }],
                ..ThreadBlock::default()
            },
            phase: 0,
            synced: started.clone(),
            known: started,
        }
    }
}

struct PlanWriter<'s> {
    schedule: &'s Schedule,
    placed: &'s [Placed],
    chunk: usize,
    mates: Vec<Vec<Mate>>,
    blocks: Vec<Growing>,
    /// By rank and port: the thread block.
    found: HashMap<(usize, usize), usize>,
    /// With one channel to all peers of a rank.
    gpus: Vec<Gpu>,
    moved: Vec<Moved>,
    /// By rank: who accessed its memory last.
    memory: Vec<Chunks>,
    /// By two thread blocks: the channel between them at each, or the semaphore from one to the
    /// other.
    channels: HashMap<(usize, usize), usize>,
    semaphores: HashMap<(usize, usize), usize>,
    /// The signals to be given at once, those that were needed, and whether one was given late.
    early: Signals,
    used: Signals,
    is_late: bool,
    /// By two thread blocks: signals that were given and not yet waited for, with what they bring.
    given: HashMap<(usize, usize), VecDeque<Given>>,
}

impl<'s> PlanWriter<'s> {
    fn new(
        schedule: &'s Schedule,
        placed: &'s [Placed],
        chunk: usize,
        early: Signals,
    ) -> Result<PlanWriter<'s>> {
        let programs: Vec<&[Step]> = placed.iter().map(|p| &*p.program).collect();
        let ranks = placed.len();
        let mut memory = Vec::new();
        memory.resize_with(ranks, Chunks::default);
        let gpu = |(id, placed): (usize, &Placed)| Gpu {
            id,
            scratch_chunks: placed.scratch / chunk,
            channels: vec![Channel {
                channel_type: ChannelType::Memory,
                connected_to: Vec::new(),
                buffer_type: None,
                rank_groups: Vec::new(),
            }],
            ..Gpu::default()
        };
        let start = |rank: usize| Moved {
            node: id(rank),
            block: rank,
            phase: 0,
        };
        Ok(PlanWriter {
            schedule,
            placed,
            chunk,
            mates: mates(schedule, &programs, "MSCCL++")?,
            blocks: (0..ranks).map(|rank| Growing::new(rank, 0)).collect(),
            found: HashMap::new(),
            gpus: placed.iter().enumerate().map(gpu).collect(),
            moved: (0..ranks).map(start).collect(),
            memory,
            channels: HashMap::new(),
            semaphores: HashMap::new(),
            early,
            used: Signals::new(),
            is_late: false,
            given: HashMap::new(),
        })
    }

    /// Lets ranks whose memory others use at first tell them that they have started.
    fn starts(&mut self) -> Result<()> {
        for rank in 0..self.placed.len() {
            self.signal_early(id(rank))?;
        }
        Ok(())
    }

    /// Gives the signals of an operation that are to be given at once.
    fn signal_early(&mut self, node: u32) -> Result<()> {
        let targets = self.early.range((node, 0)..(node + 1, 0));
        let targets: Vec<usize> = targets.map(|&(_, target)| target).collect();
        for target in targets {
            let moved = self.moved[node as usize];
            let block = self.signal(moved, target)?;
            let known = Rc::from(&self.blocks[block].known[..]);
            let given = self.given.entry((block, target)).or_default();
            given.push_back((moved, known));
        }
        Ok(())
    }

    /// Whether all signals were given early, and each of them is needed.
    fn is_settled(&self) -> bool {
        !self.is_late && self.used == self.early
    }

    /// Adds all operations. Steps and messages come after those that they wait for on their ports
    /// and for data.
    fn events(&mut self) -> Result<()> {
        let placed = self.placed;
        let (mut local, mut scratch) = (LocalOrder::default(), OrderScratch::default());
        let mut first = vec![0];
        for placed in placed {
            first.push(first[first.len() - 1] + placed.program.len());
        }
        // A message has the number of its send.
        let event = |rank: usize, i: usize| match self.mates[rank][i] {
            Some((from, send)) if !placed[rank].program[i].is_send() => id(first[from] + send),
            _ => id(first[rank] + i),
        };
        let mut edges: Vec<Edge> = Vec::new();
        for (rank, placed) in placed.iter().enumerate() {
            // With overlap: computation holds up nothing but what needs its result.
            local.analyse(&placed.program, self.schedule.ports(), true, &mut scratch)?;
            for i in 0..placed.program.len() {
                let before = local.before_start(i).iter().chain(local.before_compute(i));
                let before = before.map(|e| (event(rank, i), event(rank, e.step())));
                edges.extend(before.filter(|(a, b)| a != b));
            }
        }
        let paths = longest_paths(first[placed.len()], &edges, |_| 0).map_err(|_| {
            Error::wrong("its ranks wait for each other (run `check` for the cycle)")
        })?;
        let all = placed.iter().enumerate();
        let all = all.flat_map(|(rank, placed)| (0..placed.program.len()).map(move |i| (rank, i)));
        let mut all: Vec<(usize, (usize, usize))> = all
            .filter(|&(rank, i)| event(rank, i) as usize == first[rank] + i)
            .map(|(rank, i)| (paths[first[rank] + i].1, (rank, i)))
            .collect();
        all.sort_unstable();
        all.into_iter()
            .try_for_each(|(_, (rank, i))| self.event(rank, i))
    }

    /// Adds a local step, or a message by its send.
    fn event(&mut self, rank: usize, i: usize) -> Result<()> {
        let placed = self.placed;
        let step = &placed[rank].program[i];
        let mate = self.mates[rank][i];
        let received = mate.map(|(to, j)| (to, j, &placed[to].program[j]));
        // Who combines a message reads it; else its sender writes.
        let reader = received.filter(|(.., step)| matches!(step, Step::RecvCombine { .. }));
        let port = |step: &Step| step.port().unwrap_or(0);
        let block = match reader {
            Some((to, _, step)) => self.block(to, port(step))?,
            None => self.block(rank, port(step))?,
        };
        let node = id(self.moved.len());
        let phase = 0;
        self.moved.push(Moved { node, block, phase });
        let (to, writes) = match received {
            Some((to, _, step)) => (to, step.writes()),
            None => (rank, step.writes()),
        };
        let before = self.before(node, (rank, step.reads()), (to, writes));
        self.order(block, &before)?;
        self.moved[node as usize].phase = self.blocks[block].phase;
        let mates = received.map(|(to, _, step)| (&placed[to], step));
        let (mut n, mut ports) = (vec![i], vec![port(step)]);
        if let Some((_, j, step)) = received {
            n.push(j);
            ports.push(port(step));
        }
        if ports.iter().all(|&port| port == 0) {
            ports.clear();
        }
        let combined = received.map_or(step, |(.., step)| step);
        let theirs_first = matches!(
            combined,
            Step::RecvCombine { order, .. } | Step::Combine { order, .. } if *order == Order::TheirsFirst
        );
        for (src, dst, size) in parts(step, &placed[rank], mates, self.chunk, usize::MAX) {
            let [src, dst] = [(rank, src), (to, dst)].map(|at| self.operand(block, at, size));
            let (name, src) = match (received, combined) {
                (Some(_), Step::RecvCombine { .. }) => (OpName::Rre, vec![dst.clone(), src]),
                (Some(_), _) => (OpName::Put, vec![src]),
                (None, Step::Combine { .. }) => (OpName::Re, vec![dst.clone(), src]),
                (None, _) => (OpName::Copy, vec![src]),
            };
            let remote = received.is_some();
            self.blocks[block].of.ops.push(Op {
                src_buff: src,
                dst_buff: vec![dst],
                channel_type: remote.then_some(ChannelType::Memory),
                n: n.clone(),
                port: ports.clone(),
                theirs_first,
                ..Op::of(name)
            });
        }
        self.signal_early(node)
    }

    /// What happens before `node`, which reads memory of one rank and writes memory of one.
    fn before(
        &mut self,
        node: u32,
        (from, reads): (usize, &[Span]),
        (to, writes): (usize, &[Span]),
    ) -> Vec<u32> {
        let mut before = Vec::new();
        for (at, spans, writes) in [(from, reads, false), (to, writes, true)] {
            let moved = &self.moved;
            let mut same = |a: u32, b: u32| moved[a as usize].block == moved[b as usize].block;
            for span in spans.iter().filter(|span| span.len > 0) {
                let range = span.offset..span.end();
                self.memory[at].access(range, writes, node, &mut same, &mut before);
            }
        }
        // The memory of another rank is not used before that has started.
        let own = self.blocks[self.moved[node as usize].block].rank;
        let others = [from, to].into_iter().filter(|&rank| rank != own);
        before.extend(others.map(id));
        before.sort_unstable();
        before.dedup();
        before.retain(|&earlier| earlier != node);
        before
    }

    /// The thread block of a rank for a port.
    fn block(&mut self, rank: usize, port: usize) -> Result<usize> {
        let next = self.blocks.len();
        let found = *self.found.entry((rank, port)).or_insert(next);
        if found == next {
            if next == MAX_BLOCKS + self.placed.len() {
                return Err(Error::usage(format!(
                    "more than {MAX_BLOCKS} thread blocks, one for each port of a rank"
                )));
            }
            self.blocks.push(Growing::new(rank, port));
        }
        Ok(found)
    }

    /// An operand of a thread block: chunks of its own rank, or of another one.
    fn operand(&mut self, block: usize, (rank, at): (usize, ChunkAt), size: usize) -> Operand {
        let buffer = match at.0 {
            'i' => BufferType::Input,
            'o' => BufferType::Output,
            _ => BufferType::Scratch,
        };
        let own = self.blocks[block].rank;
        let buffer_id = (rank != own).then(|| {
            let remote = RemoteBuffer {
                rank,
                buffer,
                access_channel_types: vec![ChannelType::Memory],
            };
            let id = number_of(&mut self.gpus[own].remote_buffers, remote);
            let refs = &mut self.blocks[block].of.remote_buffer_refs[0];
            number_of(&mut refs.remote_buffer_ids, id)
        });
        Operand {
            buffer: buffer_id.is_none().then_some(buffer),
            buffer_id,
            switch_channel_id: None,
            index: at.1,
            size,
        }
    }

    /// Orders what a thread block does next behind the nodes `before`.
    fn order(&mut self, block: usize, before: &[u32]) -> Result<()> {
        let mut waits = false;
        let mut open = Vec::new();
        for &node in before {
            let earlier = self.moved[node as usize];
            let of = &self.blocks[block];
            if earlier.block == block {
                waits |= earlier.phase == of.phase;
            } else if !knows(&of.synced, earlier) {
                waits = true;
                open.push(earlier);
            }
        }
        self.learn(block, open)?;
        if waits {
            self.nop(block);
        }
        Ok(())
    }

    /// Lets the first thread of a thread block wait until all of these are done, as far as it does
    /// not know that they are.
    fn learn(&mut self, block: usize, mut open: Vec<Moved>) -> Result<()> {
        // The last of each thread block is enough.
        open.sort_unstable_by_key(|earlier| (earlier.block, std::cmp::Reverse(earlier.phase)));
        open.dedup_by_key(|earlier| earlier.block);
        loop {
            open.retain(|&earlier| !knows(&self.blocks[block].known, earlier));
            // First those that no other one brings along.
            let brought = |&earlier: &Moved| {
                let others = open.iter().filter(|other| other.block != earlier.block);
                let mut known = others.map(|other| &self.blocks[other.block].known);
                known.any(|known| knows(known, earlier))
            };
            let next = open.iter().find(|earlier| !brought(earlier));
            let Some(&next) = next.or(open.first()) else {
                return Ok(());
            };
            self.wait_for(block, next)?;
        }
    }

    fn wait_for(&mut self, block: usize, earlier: Moved) -> Result<()> {
        let from = self.signalling(earlier)?;
        while let Some((signalled, known)) = self
            .given
            .get_mut(&(from, block))
            .and_then(VecDeque::pop_front)
        {
            self.wait(block, from, &known);
            if knows(&known, earlier) {
                self.used.insert((signalled.node, block));
                return Ok(());
            }
        }
        self.is_late = true;
        self.used.insert((earlier.node, block));
        self.signal(earlier, block)?;
        let known = self.blocks[from].known.clone();
        self.wait(block, from, &known);
        Ok(())
    }

    /// Lets a thread block wait for a signal of another one, and know what that one knew.
    fn wait(&mut self, block: usize, from: usize, known: &[u32]) {
        let wait = self.sync_op(block, from, [OpName::Wait, OpName::SemAcquire]);
        self.blocks[block].of.ops.push(wait);
        merge(&mut self.blocks[block].known, known);
    }

    /// The thread block that tells others that an operation is done, or that its rank has started.
    fn signalling(&mut self, moved: Moved) -> Result<usize> {
        let ranks = self.placed.len();
        if moved.block >= ranks {
            return Ok(moved.block);
        }
        let own = |block: &Growing| block.rank == moved.block;
        let first = self.blocks.iter().skip(ranks).position(own);
        first.map_or_else(|| self.block(moved.block, 0), |i| Ok(ranks + i))
    }

    /// Lets a thread block tell another one that an operation is done; returns it.
    fn signal(&mut self, moved: Moved, to: usize) -> Result<usize> {
        let block = self.signalling(moved)?;
        if block == moved.block && self.blocks[block].phase == moved.phase {
            self.nop(block);
        }
        let signal = self.sync_op(block, to, [OpName::Signal, OpName::SemRelease]);
        self.blocks[block].of.ops.push(signal);
        Ok(block)
    }

    /// An operation of a thread block on its channel to one of another GPU, or on the semaphore
    /// between it and one of the same GPU.
    fn sync_op(&mut self, block: usize, other: usize, names: [OpName; 2]) -> Op {
        let [own, peer] = [block, other].map(|b| self.blocks[b].rank);
        if own != peer {
            let id = self.channel(block, other);
            let channels = &mut self.blocks[block].of.channels[0];
            return Op {
                channel_type: Some(ChannelType::Memory),
                channel_ids: vec![number_of(&mut channels.channel_ids, id)],
                ..Op::of(names[0])
            };
        }
        let between = match names[1] {
            OpName::SemRelease => (block, other),
            _ => (other, block),
        };
        let semaphores = &mut self.gpus[own].semaphores;
        let id = *self.semaphores.entry(between).or_insert_with(|| {
            semaphores.push(Semaphore { init_value: 0 });
            semaphores.len() - 1
        });
        Op {
            semaphore_ids: vec![id],
            ..Op::of(names[1])
        }
    }

    fn nop(&mut self, block: usize) {
        let of = &mut self.blocks[block];
        of.of.ops.push(Op::of(OpName::Nop));
        of.phase += 1;
        let mut own = vec![0; block + 1];
        own[block] = of.phase;
        merge(&mut of.known, &own);
        of.synced.clone_from(&of.known);
    }

    /// The channel between two thread blocks, by its number at the GPU of the first.
    fn channel(&mut self, a: usize, b: usize) -> usize {
        if let Some(&found) = self.channels.get(&(a, b)) {
            return found;
        }
        for (a, b) in [(a, b), (b, a)] {
            let peers = &mut self.gpus[self.blocks[a].rank].channels[0].connected_to;
            self.channels.insert((a, b), peers.len());
            peers.push(self.blocks[b].rank);
        }
        self.channels[&(a, b)]
    }

    /// Lets every rank wait for the last writes of its output.
    fn finish(&mut self, buffers: &Buffers) -> Result<()> {
        for rank in 0..self.placed.len() {
            let output = buffers.regions(rank, None)[1];
            let sizes = buffers.regions(rank, None);
            let start = buffers.of_rank(rank, None, [sizes[0], sizes[1], 0])?.starts[1];
            let mut before = Vec::new();
            let mut never = |_: u32, _: u32| false;
            if output > 0 {
                let range = start..start + output;
                self.memory[rank].access(range, false, u32::MAX, &mut never, &mut before);
            }
            let open: Vec<Moved> = before
                .into_iter()
                .map(|node| self.moved[node as usize])
                .collect();
            let own = |block: &&Growing| block.rank == rank;
            let ends = |earlier: &Moved| {
                self.blocks[earlier.block].rank == rank
                    || self
                        .blocks
                        .iter()
                        .filter(own)
                        .any(|b| knows(&b.known, *earlier))
            };
            let open: Vec<Moved> = open.into_iter().filter(|earlier| !ends(earlier)).collect();
            if !open.is_empty() {
                let block = self.signalling(self.moved[rank])?;
                self.learn(block, open)?;
            }
        }
        // Memory is reached over connections, which channels make.
        for rank in 0..self.placed.len() {
            for i in 0..self.gpus[rank].remote_buffers.len() {
                let peer = self.gpus[rank].remote_buffers[i].rank;
                let peers = |gpu: usize| &self.gpus[gpu].channels[0].connected_to;
                if !peers(rank).contains(&peer) {
                    for (a, b) in [(rank, peer), (peer, rank)] {
                        self.gpus[a].channels[0].connected_to.push(b);
                    }
                }
            }
        }
        Ok(())
    }

    fn notes(&self, reduces: bool) -> Vec<String> {
        let of_blocks =
            |count: fn(&ThreadBlock) -> usize| self.blocks.iter().map(|b| count(&b.of)).max();
        let channels = of_blocks(|tb| tb.channels[0].channel_ids.len());
        let buffers = of_blocks(|tb| tb.remote_buffer_refs[0].remote_buffer_ids.len());
        let semaphores = self.gpus.iter().map(|gpu| gpu.semaphores.len()).max();
        let counts = [
            (
                "operations in a thread block",
                of_blocks(|tb| tb.ops.len()),
                MAX_OPS,
            ),
            ("channels of a thread block", channels, MAX_OF_BLOCK),
            ("remote buffers of a thread block", buffers, MAX_OF_BLOCK),
            ("semaphores", semaphores, MAX_SEMAPHORES),
        ];
        let over = counts.into_iter().filter_map(|(what, count, max)| {
            let count = count.filter(|&count| count > max)?;
            Some(format!(
                "MSCCL++'s executor takes {max} {what}, this plan has {count}"
            ))
        });
        let reduces =
            reduces.then(|| "MSCCL++ combines in any order: for operators that commute".into());
        over.chain(reduces).collect()
    }

    fn gpus(self, buffers: &Buffers, chunk: usize) -> Vec<Gpu> {
        let mut gpus = self.gpus;
        for gpu in &mut gpus {
            let regions = buffers.regions(gpu.id, None);
            [gpu.input_chunks, gpu.output_chunks] = regions.map(|elements| elements / chunk);
            gpu.channels
                .retain(|channel| !channel.connected_to.is_empty());
        }
        for Growing { rank, mut of, .. } in self.blocks {
            if !of.ops.is_empty() {
                of.id = gpus[rank].threadblocks.len();
                of.channels.retain(|of| !of.channel_ids.is_empty());
                of.remote_buffer_refs
                    .retain(|of| !of.remote_buffer_ids.is_empty());
                gpus[rank].threadblocks.push(of);
            }
        }
        gpus
    }
}

/// Whether who knows so many `nop`s of each thread block knows that this is done.
fn knows(known: &[u32], earlier: Moved) -> bool {
    known
        .get(earlier.block)
        .is_some_and(|&nops| nops > earlier.phase)
}

fn merge(known: &mut Vec<u32>, more: &[u32]) {
    known.resize(known.len().max(more.len()), 0);
    for (nops, &more) in known.iter_mut().zip(more) {
        *nops = more.max(*nops);
    }
}

/// The number of something in a list, to which it is added if it is not there.
fn number_of<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    let found = list.iter().position(|other| *other == item);
    found.unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}
