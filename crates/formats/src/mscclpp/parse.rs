//! The elements of a plan, with their numbers in range.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::blocks::Buffers;
use crate::msccl::gcd;
use oneport::error::{Error, Result};
use oneport::internal::json_object;
use oneport::machine::Ports;
use oneport::schedule::collective::{Holders, Kind};

#[derive(Serialize, Deserialize)]
pub(super) struct PlanFile {
    #[serde(default)]
    pub(super) name: String,
    pub(super) collective: String,
    #[serde(default)]
    pub(super) protocol: String,
    pub(super) inplace: bool,
    /// Of plans that oneport writes: the ports of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ports: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ported: Option<usize>,
    pub(super) gpus: Vec<Gpu>,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Gpu {
    pub(super) id: usize,
    pub(super) input_chunks: usize,
    pub(super) output_chunks: usize,
    pub(super) scratch_chunks: usize,
    pub(super) threadblocks: Vec<ThreadBlock>,
    #[serde(default)]
    pub(super) channels: Vec<Channel>,
    #[serde(default)]
    pub(super) remote_buffers: Vec<RemoteBuffer>,
    #[serde(default)]
    pub(super) semaphores: Vec<Semaphore>,
    #[serde(skip)]
    pub(super) tables: GpuTables,
}

/// What ids of a GPU mean, so that each is looked up at once.
#[derive(Default)]
pub(super) struct GpuTables {
    /// By type, and channel: its peer, and its number among those of this type to this peer.
    peers: [Vec<(usize, usize)>; 4],
    /// By switch channel: the number of the channel, and of the group of ranks in it.
    switches: Vec<(usize, usize)>,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct ThreadBlock {
    pub(super) id: usize,
    pub(super) ops: Vec<Op>,
    #[serde(default)]
    pub(super) channels: Vec<BlockChannels>,
    #[serde(default)]
    pub(super) remote_buffer_refs: Vec<BlockBuffers>,
    /// By type: the channels, and the remote buffers.
    #[serde(skip)]
    pub(super) ids: [[Vec<usize>; 4]; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChannelType {
    Memory,
    Port,
    Switch,
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum BufferType {
    #[serde(rename = "i")]
    Input,
    #[serde(rename = "o")]
    Output,
    #[serde(rename = "s")]
    Scratch,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Channel {
    pub(super) channel_type: ChannelType,
    #[serde(default)]
    pub(super) connected_to: Vec<usize>,
    #[serde(alias = "buff", skip_serializing_if = "Option::is_none")]
    pub(super) buffer_type: Option<BufferType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rank_groups: Vec<RankGroup>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RankGroup {
    ranks: Vec<usize>,
}

#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct RemoteBuffer {
    pub(super) rank: usize,
    #[serde(rename = "type")]
    pub(super) buffer: BufferType,
    #[serde(default)]
    pub(super) access_channel_types: Vec<ChannelType>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Semaphore {
    pub(super) init_value: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BlockChannels {
    pub(super) channel_type: ChannelType,
    pub(super) channel_ids: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BlockBuffers {
    pub(super) access_channel_type: ChannelType,
    pub(super) remote_buffer_ids: Vec<usize>,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Op {
    pub(super) name: OpName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) src_buff: Vec<Operand>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dst_buff: Vec<Operand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) channel_type: Option<ChannelType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) channel_ids: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) barrier_id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) num_threadblocks: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) semaphore_ids: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tbg_info: Option<BlockGroup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) iter_context: Option<Iterations>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ops: Vec<Op>,
    /// Of plans that oneport writes: the number of the step, of a message at its sender and at its
    /// receiver, their ports if not 0, and whether the received operand comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) n: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) port: Vec<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) theirs_first: bool,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Operand {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) buffer: Option<BufferType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) buffer_id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) switch_channel_id: Option<usize>,
    pub(super) index: usize,
    pub(super) size: usize,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct BlockGroup {
    tb_id: usize,
    tbg_size: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Iterations {
    pub(super) num_chunks: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OpName {
    #[default]
    Nop,
    Barrier,
    Put,
    /// With a signal, and with a flush, too.
    Pws,
    Pwsf,
    Get,
    Copy,
    Signal,
    Wait,
    Flush,
    /// Reduce; `r` before it reads remote memory, `s` behind it sends the result.
    Re,
    Res,
    Rre,
    Rres,
    /// Put packets; `r` before it reads packets.
    Ppkt,
    Rppkt,
    /// Reduce packets; `c` keeps a copy as packets, `s` sends the result as packets.
    Respkt,
    Repkt,
    Recpkt,
    Recspkt,
    /// Copy into packets, and out of them.
    Cpkt,
    Upkt,
    /// A switch reduces, and stores.
    Glres,
    Gstore,
    Gstorepkt,
    Rlxsignal,
    Rlxwait,
    Pipeline,
    SemAcquire,
    SemRelease,
    /// No operation: a GPU has done all of its own.
    #[serde(skip)]
    End,
}

impl OpName {
    /// Whether its first source, its other sources, and its destinations are packets.
    pub(super) fn packets(self) -> [bool; 3] {
        use OpName::{Cpkt, Gstorepkt, Ppkt, Recpkt, Recspkt, Repkt, Respkt, Rppkt, Upkt};
        match self {
            Ppkt | Cpkt => [false, false, true],
            Rppkt | Gstorepkt => [true, true, true],
            Upkt => [true, true, false],
            Respkt | Repkt | Recpkt | Recspkt => [false, true, true],
            _ => [false; 3],
        }
    }

    pub(super) fn reduces(self) -> bool {
        use OpName::{Re, Recpkt, Recspkt, Repkt, Res, Respkt, Rre, Rres};
        matches!(
            self,
            Re | Res | Rre | Rres | Respkt | Repkt | Recpkt | Recspkt
        )
    }
}

/// A plan whose references lead somewhere.
pub(super) struct Plan {
    pub(super) name: String,
    /// `None` if the collective is not known.
    pub(super) buffers: Option<Buffers>,
    pub(super) gpus: Vec<Gpu>,
    /// Elements of a chunk at least, so that parts of thread blocks and of pipelines are whole.
    pub(super) parts: usize,
    /// The ports of the schedule from which oneport wrote the plan.
    pub(super) ports: Option<Ports>,
    pub(super) has_packets: bool,
}

/// An operation in a file, for errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct OpAt {
    pub(super) gpu: usize,
    pub(super) block: usize,
    pub(super) op: usize,
}

impl std::fmt::Display for OpAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OpAt { gpu, block, op } = self;
        write!(f, "gpu {gpu}, thread block {block}, op {op}")
    }
}

/// A part of a buffer of a rank, in parts of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: usize,
    /// Input, output, scratch, packets in scratch.
    pub(super) buffer: usize,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// The buffer of packets in scratch.
pub(super) const PACKETS: usize = 3;

/// Parts of a chunk that are read.
const MAX_PARTS: usize = 1 << 12;

impl Plan {
    pub(super) fn parse(text: &str) -> Result<Plan> {
        let file: PlanFile = json_object("MSCCL++ plan", "name, collective and gpus", text)?;
        let ranks = file.gpus.len();
        if ranks == 0 {
            return Err(Error::malformed("a plan has one gpu at least"));
        }
        let (mut file, mut parts) = (file, 1);
        for gpu in &mut file.gpus {
            gpu.fill_tables();
        }
        for (rank, gpu) in file.gpus.iter().enumerate() {
            if gpu.id != rank {
                let id = gpu.id;
                return Err(Error::malformed(format!(
                    "gpu id {id} where {rank} is due: they are numbered in order"
                )));
            }
            gpu.ensure_in_range(ranks)?;
            for (block, tb) in gpu.threadblocks.iter().enumerate() {
                if tb.id != block {
                    let id = tb.id;
                    return Err(Error::malformed(format!(
                        "gpu {rank}: thread block id {id} where {block} is due: they are numbered in order"
                    )));
                }
                for (op, of) in tb.ops.iter().enumerate() {
                    let at = OpAt {
                        gpu: rank,
                        block,
                        op,
                    };
                    for of in std::iter::once(of).chain(&of.ops) {
                        parts = of.more_parts(parts, at)?;
                    }
                }
            }
        }
        let k = file.ported.unwrap_or(1);
        let ports = file.ports.as_deref().map(|name| {
            let ports = Ports::named(name).map(|ports| ports.with_k(k));
            ports
                .filter(|ports| ports.validate().is_ok())
                .ok_or_else(|| {
                    let names = Ports::NAMES.join(", ");
                    Error::malformed(format!(
                        "\"ports\": {name:?}, \"ported\": {k}: ports are {names}, at least one and at most {}",
                        Ports::MAX_K
                    ))
                })
        });
        let ports = ports.transpose()?;
        let blocks = file.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
        let ops = blocks.flat_map(|tb| &tb.ops);
        let mut ops = ops.flat_map(|op| std::iter::once(op).chain(&op.ops));
        let plan = Plan {
            has_packets: ops.any(|op| op.name.packets() != [false; 3]),
            buffers: buffers(&file)?,
            ports,
            name: file.name,
            gpus: file.gpus,
            parts,
        };
        // All places are numbers that fit, then.
        plan.starts()?;
        Ok(plan)
    }

    /// The place of an operand of an operation on its thread block, and whose it is; of a switch,
    /// those of all its ranks. `packets`: whether it is packets.
    fn places(&self, at: OpAt, op: &Op, operand: &Operand, packets: bool) -> Result<Vec<Place>> {
        let gpu = &self.gpus[at.gpu];
        let tb = &gpu.threadblocks[at.block];
        let missing = |what: &str, id: usize| {
            Error::malformed(format!("{at} ({:?}): there is no {what} {id}", op.name))
        };
        let (buffer, ranks) = if let Some(id) = operand.switch_channel_id {
            let channel = tb.channel(ChannelType::Switch, id);
            let group = channel.and_then(|channel| gpu.switch(channel));
            let (buffer, ranks) = group.ok_or_else(|| missing("switch_channel_id", id))?;
            (buffer, ranks.to_vec())
        } else if let Some(id) = operand.buffer_id {
            let kind = op.channel_type.unwrap_or(ChannelType::None);
            let found = tb.ids[1][kind as usize].get(id);
            let remote = found.and_then(|&id| gpu.remote_buffers.get(id));
            let remote = remote.ok_or_else(|| missing("buffer_id", id))?;
            (remote.buffer, vec![remote.rank])
        } else if let Some(buffer) = operand.buffer {
            (buffer, vec![at.gpu])
        } else {
            let what = "an operand has a type, a buffer_id or a switch_channel_id";
            return Err(Error::malformed(format!("{at} ({:?}): {what}", op.name)));
        };
        let place = |rank: usize| {
            let has = self.gpus[rank].sizes()[buffer as usize];
            let end = operand.index.checked_add(operand.size);
            if end.is_none_or(|end| end > self.size(rank, buffer)) {
                let letter = ["i", "o", "s"][buffer as usize];
                return Err(Error::malformed(format!(
                    "{at} ({:?}): {} chunks from {} on leave the {has} of buffer {letter} of gpu {rank}",
                    op.name, operand.size, operand.index
                )));
            }
            Ok(Place {
                rank,
                buffer: match buffer {
                    BufferType::Scratch if packets => PACKETS,
                    _ => buffer as usize,
                },
                start: operand.index * self.parts,
                len: operand.size * self.parts,
            })
        };
        ranks.into_iter().map(place).collect()
    }

    /// Chunks of a buffer of a rank, with those that the collective gives it.
    fn size(&self, rank: usize, buffer: BufferType) -> usize {
        let has = self.gpus[rank].sizes()[buffer as usize];
        let regions = self.buffers.as_ref().map(|b| b.regions(rank, None));
        match (regions, buffer) {
            (Some([input, _]), BufferType::Input) => has.max(input),
            (Some([_, output]), BufferType::Output) => has.max(output),
            _ => has,
        }
    }

    /// The output of a rank; `None` if the collective is not known.
    pub(super) fn output(&self, rank: usize) -> Option<Place> {
        let [_, output] = self.buffers.as_ref()?.regions(rank, None);
        Some(Place {
            rank,
            buffer: BufferType::Output as usize,
            start: 0,
            len: output * self.parts,
        })
    }

    /// The places of the sources and of the destinations of an operation, in the window of an
    /// iteration of a pipeline.
    pub(super) fn operands(
        &self,
        at: OpAt,
        op: &Op,
        window: Option<(usize, usize)>,
    ) -> Result<[Vec<Vec<Place>>; 2]> {
        let packets = op.name.packets();
        let of = |operands: &[Operand], packets: [bool; 2]| {
            let operands = operands.iter().enumerate();
            let places = operands.map(|(i, operand)| {
                let mut places = self.places(at, op, operand, packets[i.min(1)])?;
                for place in &mut places {
                    if let Some(BlockGroup { tb_id, tbg_size }) = op.tbg_info {
                        place.len /= tbg_size;
                        place.start += tb_id * place.len;
                    }
                    if let Some((from, to)) = window {
                        let end = place.start + place.len;
                        place.start = end.min(place.start.saturating_add(from));
                        place.len = (end - place.start).min(to - from);
                    }
                }
                Ok(places)
            });
            places.collect::<Result<Vec<_>>>()
        };
        // The first destination of a reduction is no packet.
        let first = packets[2] && !op.name.reduces();
        let src = of(&op.src_buff, [packets[0], packets[1]])?;
        let dst = of(&op.dst_buff, [first, packets[2]])?;
        op.ensure_shape(at, &src, &dst)?;
        let mut dst = dst;
        if op.name == OpName::Gstorepkt {
            // The packets that it reads stay as they are.
            dst[0].retain(|place| *place != src[0][0]);
        }
        Ok([src, dst])
    }

    pub(super) fn op(&self, at: OpAt) -> &Op {
        &self.gpus[at.gpu].threadblocks[at.block].ops[at.op]
    }

    /// The channels that an operation uses, by thread: type and number among those of the type of
    /// its GPU.
    pub(super) fn channels(&self, at: OpAt, op: &Op) -> Result<Vec<(ChannelType, usize)>> {
        let kind = op.channel_type.unwrap_or(ChannelType::None);
        let gpu = &self.gpus[at.gpu];
        let tb = &gpu.threadblocks[at.block];
        let ids = op.channel_ids.iter().map(|&id| {
            let channel = tb
                .channel(kind, id)
                .filter(|&c| gpu.peer(kind, c).is_some());
            let missing =
                || Error::malformed(format!("{at} ({:?}): there is no channel {id}", op.name));
            Ok((kind, channel.ok_or_else(missing)?))
        });
        ids.collect()
    }
}

impl Gpu {
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.input_chunks, self.output_chunks, self.scratch_chunks]
    }

    /// The peer of a channel, and its number among the channels of this type to this peer.
    pub(super) fn peer(&self, kind: ChannelType, channel: usize) -> Option<(usize, usize)> {
        self.tables.peers[kind as usize].get(channel).copied()
    }

    fn switch(&self, channel: usize) -> Option<(BufferType, &[usize])> {
        let &(channel, group) = self.tables.switches.get(channel)?;
        let channel = &self.channels[channel];
        Some((channel.buffer_type?, &channel.rank_groups[group].ranks))
    }

    fn fill_tables(&mut self) {
        let mut next: HashMap<(ChannelType, usize), usize> = HashMap::new();
        for (number, channel) in self.channels.iter().enumerate() {
            let kind = channel.channel_type;
            if kind == ChannelType::Switch {
                let groups = (0..channel.rank_groups.len()).map(|group| (number, group));
                self.tables.switches.extend(groups);
            }
            for &peer in &channel.connected_to {
                let next = next.entry((kind, peer)).or_default();
                self.tables.peers[kind as usize].push((peer, *next));
                *next += 1;
            }
        }
        for tb in &mut self.threadblocks {
            for of in &tb.channels {
                tb.ids[0][of.channel_type as usize].extend(&of.channel_ids);
            }
            for of in &tb.remote_buffer_refs {
                tb.ids[1][of.access_channel_type as usize].extend(&of.remote_buffer_ids);
            }
        }
    }

    fn ensure_in_range(&self, ranks: usize) -> Result<()> {
        let groups = self.channels.iter().flat_map(|c| &c.rank_groups);
        let connected = self.channels.iter().flat_map(|c| &c.connected_to);
        let all = connected.chain(groups.flat_map(|g| &g.ranks));
        let all = all.chain(self.remote_buffers.iter().map(|b| &b.rank));
        let (mut all, id) = (all.copied(), self.id);
        match all.find(|&rank| rank >= ranks) {
            Some(rank) => Err(Error::malformed(format!(
                "gpu {id}: a channel or remote buffer leads to gpu {rank}, but there are {ranks}"
            ))),
            None => Ok(()),
        }
    }
}

impl ThreadBlock {
    fn channel(&self, kind: ChannelType, id: usize) -> Option<usize> {
        self.ids[0][kind as usize].get(id).copied()
    }
}

impl Op {
    pub(super) fn of(name: OpName) -> Op {
        Op {
            name,
            ..Op::default()
        }
    }

    /// Whether a proxy does it, not the thread block.
    pub(super) fn is_on_port(&self) -> bool {
        self.channel_type == Some(ChannelType::Port)
    }

    /// The least common multiple of `parts` and of what this operation divides chunks into.
    fn more_parts(&self, parts: usize, at: OpAt) -> Result<usize> {
        let group = self.tbg_info.map_or(1, |group| group.tbg_size);
        let halves = 1 + usize::from(self.name == OpName::Pipeline);
        if self.tbg_info.is_some_and(|g| g.tb_id >= g.tbg_size) {
            return Err(Error::malformed(format!(
                "{at}: tb_id is not below tbg_size"
            )));
        }
        let nested = |op: &Op| op.name == OpName::Pipeline || !op.ops.is_empty();
        if self.ops.iter().any(nested) || self.name != OpName::Pipeline && !self.ops.is_empty() {
            return Err(Error::malformed(format!(
                "{at}: only a pipeline has ops, without pipelines"
            )));
        }
        let mut all = parts;
        for n in [group, halves] {
            all = (all / gcd(all, n)).saturating_mul(n);
        }
        if all <= MAX_PARTS {
            return Ok(all);
        }
        Err(Error::malformed(format!(
            "{at}: chunks of more than {MAX_PARTS} parts for groups of thread blocks"
        )))
    }

    /// Refuses operands of another number, place or size than the operation has.
    fn ensure_shape(&self, at: OpAt, src: &[Vec<Place>], dst: &[Vec<Place>]) -> Result<()> {
        use OpName::{
            Copy, Cpkt, Get, Glres, Gstore, Gstorepkt, Ppkt, Put, Pws, Pwsf, Re, Recpkt, Recspkt,
            Repkt, Res, Respkt, Rppkt, Rre, Rres, Upkt,
        };
        let is_own = |p: &Vec<Place>| matches!(p[..], [place] if place.rank == at.gpu);
        let is_remote = |p: &Vec<Place>| matches!(p[..], [place] if place.rank != at.gpu);
        // So many of the first are own memory, the others remote.
        let own = |p: &[Vec<Place>], n: usize| {
            let n = n.min(p.len());
            p[..n].iter().all(is_own) && p[n..].iter().all(is_remote)
        };
        let all = usize::MAX;
        let (n, m) = (src.len(), dst.len());
        let fits = match self.name {
            Put | Pws | Pwsf | Ppkt => n == m && own(src, all) && own(dst, 0),
            Rppkt => n == 1 && own(src, all) && own(dst, 0),
            Get => n == m && own(src, 0) && own(dst, all),
            Copy | Cpkt | Upkt => (n, m) == (1, 1) && own(src, all) && own(dst, all),
            Re | Repkt => n > 0 && m == 1 && own(src, all) && own(dst, all),
            Res | Respkt => n > 0 && m > 0 && own(src, all) && own(dst, 1),
            Rre | Rres => n > 0 && m > 0 && own(src, 1) && own(dst, 1),
            Recpkt | Recspkt => n > 0 && m > 1 && own(src, all) && own(dst, 2),
            Glres => (n, m) == (1, 1),
            Gstore | Gstorepkt => (n, m) == (1, 1) && own(src, all),
            _ => (n, m) == (0, 0),
        };
        let lens = |p: &[Vec<Place>]| -> Vec<usize> { p.iter().flatten().map(|p| p.len).collect() };
        let (sizes, others) = (lens(src), lens(dst));
        let equal = match self.name {
            Put | Pws | Pwsf | Ppkt | Get => sizes == others,
            _ => sizes
                .iter()
                .chain(&others)
                .all(|len| Some(len) == sizes.first()),
        };
        if fits && equal {
            return Ok(());
        }
        Err(Error::malformed(format!(
            "{at} ({:?}): its {n} sources and {m} destinations are not those of this operation: their number, whether \
             they are remote, or their sizes",
            self.name
        )))
    }
}

/// The collective's buffers; `None` for one that is not known.
fn buffers(file: &PlanFile) -> Result<Option<Buffers>> {
    let name = &file.collective;
    let known = |kind: &Kind| {
        let row = kind.row();
        let named = row
            .msccl
            .is_some_and(|msccl| msccl == name || kind.name() == name);
        named && [row.input.0, row.output.0] == [Holders::Every; 2]
    };
    let Some(kind) = Kind::ALL.into_iter().find(known) else {
        return Ok(None);
    };
    let ranks = file.gpus.len();
    let block = file.gpus.iter().map(|g| g.input_chunks).max().unwrap_or(0);
    let largest = file
        .gpus
        .iter()
        .map(|g| g.input_chunks.max(g.output_chunks))
        .max();
    let chunks = match kind {
        Kind::Allgather => block.saturating_mul(ranks).max(largest.unwrap_or(0)),
        _ => largest.unwrap_or(0),
    };
    if kind.has_blocks() && !chunks.is_multiple_of(ranks) {
        return Err(Error::malformed(format!(
            "{chunks} chunks are no blocks of equal size for {ranks} ranks"
        )));
    }
    Ok(Some(Buffers {
        kind,
        in_place: file.inplace,
        chunks,
        ranks,
    }))
}
