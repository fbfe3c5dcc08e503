//! Reads MSCCL XML: thread blocks become programs.

use std::collections::HashMap;

use roxmltree::{Document, Node};

use crate::error::{Error, Result};
use crate::formats::sum;
use crate::machine::Ports;
use crate::rules::matching::grouped;
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{Layout, Order, Schedule, Span, Spans, Step};

/// How an algorithm is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Number of elements of a chunk.
    pub chunk: usize,
    /// Number of ports of each kind; without it as many as the busiest rank has thread blocks that
    /// send, or that receive. With fewer ports, thread blocks take turns on them.
    pub ported: Option<usize>,
    /// The root of a rooted collective, if the file does not tell.
    pub root: Option<usize>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            chunk: 1,
            ported: None,
            root: None,
        }
    }
}

/// Reads an algorithm as a schedule for bidirectional ports, or for those that
/// [`write`](super::write()) noted.
///
/// Every thread block has a port of its own for each direction, unless
/// [`ported`](ReadOptions::ported) gives fewer. The program of a rank takes the steps of its thread
/// blocks in an order in which each comes after those it waits for, and a receive after its send.
/// Buffers follow one another: input, output, scratch; in place, input and output share memory as in
/// NCCL. `rcs`, `rrs` and `rrcs` become several steps. Dependences between steps that access
/// different chunks are kept by the order on the ports only.
///
/// The root of a rooted collective is the only rank with input (broadcast, scatter) or output (reduce,
/// gather), unless file or options name it.
///
/// Time is `n log n` in the number `n` of steps, memory linear in the length of the text.
///
/// # Errors
/// When the text is not XML, an element or attribute is unknown, missing or out of range, thread
/// blocks wait for each other, sizes do not fit the collective, or the root is not known.
pub fn read(text: &str, options: &ReadOptions) -> Result<Schedule> {
    let document = Document::parse(text).map_err(|e| Error::malformed(format!("not XML: {e}")))?;
    let file = File::parse(&document)?;
    file.schedule(options)
}

/// An element, with what error messages say of it.
#[derive(Clone, Copy)]
struct Element<'a, 'd>(Node<'a, 'd>);

/// An error at byte `pos` of the text. Lines are counted here, because counting them for every element
/// takes quadratic time.
fn at(text: &str, pos: usize, what: impl std::fmt::Display) -> Error {
    crate::formats::at_line(1 + text[..pos].matches('\n').count(), what)
}

impl<'a> Element<'a, '_> {
    fn error(self, what: impl std::fmt::Display) -> Error {
        let name = self.0.tag_name().name();
        let (text, pos) = (self.0.document().input_text(), self.0.range().start);
        at(text, pos, format!("<{name}>: {what}"))
    }

    fn text(self, name: &str) -> Result<&'a str> {
        let missing = || self.error(format!("the attribute {name} is missing"));
        self.0.attribute(name).ok_or_else(missing)
    }

    fn number(self, name: &str) -> Result<usize> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| self.error(format!("{name}=\"{text}\" is not a number that fits")))
    }

    /// The number, or `None` for -1 or if the attribute is missing.
    fn optional(self, name: &str) -> Result<Option<usize>> {
        match self.0.attribute(name) {
            None | Some("-1") => Ok(None),
            Some(_) => self.number(name).map(Some),
        }
    }

    fn children(self, name: &'static str) -> impl Iterator<Item = Result<Self>> {
        let elements = self.0.children().filter(|n| n.is_element()).map(Element);
        elements.map(move |child| match child.0.has_tag_name(name) {
            true => Ok(child),
            false => Err(child.error(format!("only {name} elements stand here"))),
        })
    }
}

struct File<'t> {
    text: &'t str,
    kind: Kind,
    in_place: bool,
    /// Chunks of a vector, or of all blocks together.
    chunks: usize,
    root: Option<usize>,
    /// As written by oneport.
    ports: Option<Ports>,
    gpus: Vec<Gpu>,
}

#[derive(Default)]
struct Gpu {
    /// Chunks of input, output, scratch.
    sizes: [usize; 3],
    blocks: Vec<Block>,
    /// First byte of its element.
    pos: usize,
}

struct Block {
    send: Option<usize>,
    recv: Option<usize>,
    channel: usize,
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
struct Line {
    what: What,
    src: (usize, usize),
    dst: (usize, usize),
    count: usize,
    /// Thread block and step.
    waits: Option<(usize, usize)>,
    n: Option<usize>,
    port: usize,
    order: Order,
    /// First byte of its element.
    pos: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Send,
    Recv,
    RecvCopySend,
    RecvReduceSend,
    RecvReduceCopy,
    RecvReduceCopySend,
    Copy,
    Reduce,
    Nop,
}

impl What {
    const ALL: [(&'static str, What); 9] = [
        ("s", What::Send),
        ("r", What::Recv),
        ("rcs", What::RecvCopySend),
        ("rrs", What::RecvReduceSend),
        ("rrc", What::RecvReduceCopy),
        ("rrcs", What::RecvReduceCopySend),
        ("cpy", What::Copy),
        ("re", What::Reduce),
        ("nop", What::Nop),
    ];

    fn sends(self) -> bool {
        use What::{RecvCopySend, RecvReduceCopySend, RecvReduceSend, Send};
        matches!(
            self,
            Send | RecvCopySend | RecvReduceSend | RecvReduceCopySend
        )
    }

    fn receives(self) -> bool {
        !matches!(self, What::Send | What::Copy | What::Reduce | What::Nop)
    }

    /// The turn of steps that could start at once: local steps, sends, receives.
    fn turn(self) -> u8 {
        match (self.receives(), self.sends()) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// Whether `src` and `dst` are places of this rank.
    fn uses(self) -> (bool, bool) {
        match self {
            What::Nop => (false, false),
            What::Send | What::RecvReduceSend => (true, false),
            What::Recv | What::RecvCopySend => (false, true),
            _ => (true, true),
        }
    }
}

const COLLECTIVES: [(&str, Kind); 9] = [
    ("broadcast", Kind::Broadcast),
    ("reduce", Kind::Reduce),
    ("allreduce", Kind::Allreduce),
    ("gather", Kind::Gather),
    ("scatter", Kind::Scatter),
    ("allgather", Kind::Allgather),
    ("reducescatter", Kind::ReduceScatter),
    ("reduce_scatter", Kind::ReduceScatter),
    ("alltoall", Kind::Alltoall),
];

impl<'t> File<'t> {
    fn parse(document: &Document<'t>) -> Result<File<'t>> {
        let algo = Element(document.root_element());
        if !algo.0.has_tag_name("algo") {
            return Err(algo.error("an MSCCL algorithm starts with <algo>"));
        }
        let coll = algo.text("coll")?;
        let Some(&(_, kind)) = COLLECTIVES.iter().find(|(name, _)| *name == coll) else {
            let names: Vec<_> = COLLECTIVES.iter().map(|c| c.0).collect();
            return Err(algo.error(format!("coll=\"{coll}\" is none of {}", names.join(", "))));
        };
        let ranks = algo.number("ngpus")?;
        let mut gpus: Vec<Option<Gpu>> = Vec::new();
        for gpu in algo.children("gpu") {
            let gpu = gpu?;
            let id = gpu.number("id")?;
            if id >= ranks {
                return Err(gpu.error(format!("id {id} is not one of {ranks} ranks")));
            }
            // Not by `ranks`, which may be any number. Ids may be in any order, but not far beyond
            // those that are there.
            if id >= gpus.len() {
                let count = algo.0.children().filter(Node::is_element).count();
                if id >= count {
                    return Err(gpu.error(format!("id {id}, but there are {count} ranks")));
                }
                gpus.resize_with(count, || None);
            }
            if gpus[id].replace(Gpu::parse(gpu, ranks)?).is_some() {
                return Err(gpu.error(format!("rank {id} is there twice")));
            }
        }
        if gpus.len() != ranks || ranks == 0 {
            return Err(algo.error(format!(
                "ngpus=\"{ranks}\", but there are {} ranks",
                gpus.len()
            )));
        }
        let gpus: Vec<Gpu> = gpus.into_iter().flatten().collect();
        let largest = |g: &Gpu| g.sizes[0].max(g.sizes[1]);
        let chunks = match algo.optional("nchunksperloop")? {
            Some(chunks) => chunks,
            None => gpus.iter().map(largest).max().unwrap_or(0),
        };
        let ported = algo.optional("ported")?;
        let ports = match (algo.0.attribute("ports"), ported) {
            (Some("uni"), Some(k)) => Some(Ports::UNI.with_k(k)),
            (Some("bi"), Some(k)) => Some(Ports::BI.with_k(k)),
            (None, None) => None,
            _ => {
                return Err(
                    algo.error("ports and ported belong together: \"uni\" or \"bi\", and a number")
                );
            }
        };
        Ok(File {
            text: document.input_text(),
            kind,
            in_place: algo.optional("inplace")?.unwrap_or(0) != 0,
            chunks,
            root: algo.optional("root")?,
            ports,
            gpus,
        })
    }
}

impl Gpu {
    fn parse(gpu: Element, ranks: usize) -> Result<Gpu> {
        let rank = gpu.number("id")?;
        let mut parsed = Gpu {
            sizes: [
                gpu.number("i_chunks")?,
                gpu.number("o_chunks")?,
                gpu.number("s_chunks")?,
            ],
            blocks: Vec::new(),
            pos: gpu.0.range().start,
        };
        let mut peers = std::collections::HashSet::new();
        for tb in gpu.children("tb") {
            let tb = tb?;
            let id = tb.number("id")?;
            if id != parsed.blocks.len() {
                let next = parsed.blocks.len();
                return Err(tb.error(format!(
                    "id {id} where {next} is due: thread blocks are numbered in order"
                )));
            }
            let (send, recv) = (tb.optional("send")?, tb.optional("recv")?);
            let channel = tb.optional("chan")?.unwrap_or(0);
            for (peer, sends, what) in [(send, true, "send"), (recv, false, "recv")] {
                let Some(peer) = peer else { continue };
                if peer >= ranks || peer == rank {
                    return Err(tb.error(format!(
                        "{what}=\"{peer}\" is not another one of {ranks} ranks"
                    )));
                }
                if !peers.insert((peer, sends, channel)) {
                    return Err(tb.error(format!(
                        "a second thread block with {what}=\"{peer}\" on channel {channel}: it would be open which \
                         message is which"
                    )));
                }
            }
            let mut block = Block {
                send,
                recv,
                channel,
                lines: Vec::new(),
            };
            for step in tb.children("step") {
                let line = Line::parse(step?, &block)?;
                block.lines.push(line);
            }
            parsed.blocks.push(block);
        }
        Ok(parsed)
    }
}

impl Line {
    fn parse(step: Element, block: &Block) -> Result<Line> {
        let s = step.number("s")?;
        if s != block.lines.len() {
            let next = block.lines.len();
            return Err(step.error(format!(
                "s=\"{s}\" where {next} is due: steps are numbered in order"
            )));
        }
        let name = step.text("type")?;
        let Some(&(_, what)) = What::ALL.iter().find(|(n, _)| *n == name) else {
            let names: Vec<_> = What::ALL.iter().map(|w| w.0).collect();
            return Err(step.error(format!("type=\"{name}\" is none of {}", names.join(", "))));
        };
        if what.sends() && block.send.is_none() || what.receives() && block.recv.is_none() {
            return Err(step.error(format!("{name} in a thread block without that peer")));
        }
        let buffer = |name: &str| match step.text(name)? {
            "i" => Ok(0),
            "o" => Ok(1),
            "s" => Ok(2),
            other => Err(step.error(format!("{name}=\"{other}\" is none of i, o, s"))),
        };
        let (uses_src, uses_dst) = what.uses();
        let place = |used: bool, buf: &str, off: &str| -> Result<(usize, usize)> {
            match used {
                true => Ok((buffer(buf)?, step.number(off)?)),
                false => Ok((0, 0)),
            }
        };
        let waits = match (step.optional("depid")?, step.optional("deps")?) {
            (Some(block), Some(step)) => Some((block, step)),
            (None, None) => None,
            _ => return Err(step.error("depid and deps belong together")),
        };
        let count = match what {
            What::Nop => 0,
            _ => step.number("cnt")?,
        };
        if count == 0 && what != What::Nop {
            return Err(step.error("cnt=\"0\": a step moves a chunk at least"));
        }
        Ok(Line {
            what,
            src: place(uses_src, "srcbuf", "srcoff")?,
            dst: place(uses_dst, "dstbuf", "dstoff")?,
            count,
            waits,
            n: step.optional("n")?,
            port: step.optional("port")?.unwrap_or(0),
            order: match step.0.attribute("order") {
                None | Some("mine_first") => Order::MineFirst,
                Some("theirs_first") => Order::TheirsFirst,
                Some(other) => return Err(step.error(format!("order=\"{other}\""))),
            },
            pos: step.0.range().start,
        })
    }
}

/// Where the buffers of a rank lie in one buffer, in chunks.
struct Memory {
    /// First chunk of input, output, scratch.
    starts: [usize; 3],
    /// Chunks that there may be: those of the collective, and the scratch.
    sizes: [usize; 3],
    len: usize,
}

impl File<'_> {
    fn schedule(&self, options: &ReadOptions) -> Result<Schedule> {
        let p = self.gpus.len();
        let collective = self.collective(options)?;
        let root = collective.root();
        if self.kind.has_blocks() && !self.chunks.is_multiple_of(p) {
            return Err(Error::malformed(format!(
                "nchunksperloop=\"{}\" chunks are no blocks of equal size for {p} ranks",
                self.chunks
            )));
        }
        if options.chunk == 0 {
            return Err(Error::usage("a chunk has one element at least"));
        }
        let order = self.order()?;
        let busiest = |g: &Gpu| {
            let count =
                |peer: fn(&Block) -> Option<usize>| g.blocks.iter().filter_map(peer).count();
            count(|b| b.send).max(count(|b| b.recv))
        };
        let needed = self.gpus.iter().map(busiest).max().unwrap_or(0).max(1);
        let ports = match (options.ported, self.ports) {
            (Some(k), ports) => ports.unwrap_or(Ports::BI).with_k(k),
            (None, Some(ports)) => ports,
            (None, None) => Ports::BI.with_k(needed),
        };
        if ports.k() == 0 {
            return Err(Error::usage("a rank needs at least one port"));
        }
        let kept = self.ports.is_some_and(|own| own.k() <= ports.k());
        let (mut layout, mut programs) = (Vec::with_capacity(p), Vec::with_capacity(p));
        for (rank, (gpu, order)) in self.gpus.iter().zip(&order).enumerate() {
            let memory = self.memory(rank, root)?;
            let mut program = Program {
                text: self.text,
                gpu,
                memory,
                chunk: options.chunk,
                ports: gpu.port_numbers(ports.k(), kept),
                steps: Vec::with_capacity(order.len()),
                last: None,
            };
            for &(block, line) in order {
                program.add(block, &gpu.blocks[block].lines[line])?;
            }
            let (len, steps) = program.finish()?;
            layout.push(self.layout(rank, root, len, options.chunk)?);
            programs.push(steps);
        }
        Schedule::new(ports, collective, layout, programs)
    }

    fn collective(&self, options: &ReadOptions) -> Result<Collective> {
        let by = |region: usize| {
            let mut with = self
                .gpus
                .iter()
                .enumerate()
                .filter(|(_, g)| g.sizes[region] > 0);
            match (self.root.or(options.root), with.next(), with.next()) {
                (Some(root), ..) => Ok(root),
                (None, Some((root, _)), None) => Ok(root),
                _ => Err(Error::usage(format!(
                    "MSCCL's {} has no root, and not only one rank has {}: name the root",
                    self.kind.name(),
                    ["input", "output"][region]
                ))),
            }
        };
        Ok(match self.kind {
            Kind::Broadcast => Collective::Broadcast { root: by(0)? },
            Kind::Scatter => Collective::Scatter { root: by(0)? },
            Kind::Reduce => Collective::Reduce { root: by(1)? },
            Kind::Gather => Collective::Gather { root: by(1)? },
            Kind::Allgather => Collective::Allgather,
            Kind::ReduceScatter => Collective::ReduceScatter,
            Kind::Alltoall => Collective::Alltoall,
            _ => Collective::Allreduce,
        })
    }

    /// Chunks of the input and output of a rank.
    fn regions(&self, rank: usize, root: Option<usize>) -> (usize, usize) {
        let (all, block) = (self.chunks, self.chunks / self.gpus.len());
        let at_root = |n: usize| if root == Some(rank) { n } else { 0 };
        match self.kind {
            Kind::Broadcast => (at_root(all), all),
            Kind::Reduce => (all, at_root(all)),
            Kind::Gather => (block, at_root(all)),
            Kind::Scatter => (at_root(all), block),
            Kind::Allgather => (block, all),
            Kind::ReduceScatter => (all, block),
            _ => (all, all),
        }
    }

    fn memory(&self, rank: usize, root: Option<usize>) -> Result<Memory> {
        let gpu = &self.gpus[rank];
        let (input, output) = self.regions(rank, root);
        for (what, has, may) in [("i", gpu.sizes[0], input), ("o", gpu.sizes[1], output)] {
            // Buffers that a rank lacks are scratch of its own in some algorithms in place.
            if has > may && !self.in_place {
                return Err(at(
                    self.text,
                    gpu.pos,
                    format!(
                        "rank {rank} has {what}_chunks=\"{has}\", but {} of {} chunks leaves it {may}",
                        self.kind.name(),
                        self.chunks
                    ),
                ));
            }
        }
        let (size_i, size_o) = (input.max(gpu.sizes[0]), output.max(gpu.sizes[1]));
        let block = self.chunks / self.gpus.len();
        let what = "the buffer of a rank";
        let own = block
            .checked_mul(rank)
            .ok_or_else(|| Error::malformed(what))?;
        let (start_i, start_o, end) = match (self.in_place, self.kind) {
            (false, _) => (0, size_i, sum(size_i, size_o, what)?),
            (true, Kind::Allgather | Kind::Gather) if output > 0 => {
                (own, 0, size_o.max(sum(own, size_i, what)?))
            }
            (true, Kind::ReduceScatter | Kind::Scatter) if input > 0 => {
                (0, own, size_i.max(sum(own, size_o, what)?))
            }
            (true, _) => (0, 0, size_i.max(size_o)),
        };
        let scratch = gpu.sizes[2];
        Ok(Memory {
            starts: [start_i, start_o, end],
            sizes: [size_i, size_o, scratch],
            len: sum(end, scratch, what)?,
        })
    }

    fn layout(&self, rank: usize, root: Option<usize>, len: usize, chunk: usize) -> Result<Layout> {
        let memory = self.memory(rank, root)?;
        let (input, output) = self.regions(rank, root);
        let span = |start: usize, n: usize| -> Result<Spans> {
            Ok(Some(Span::new(times(start, chunk)?, times(n, chunk)?))
                .filter(|s| s.len > 0)
                .into())
        };
        Ok(Layout {
            len,
            input: span(memory.starts[0], input)?,
            output: span(memory.starts[1], output)?,
        })
    }
}

/// `chunks * chunk`.
fn times(chunks: usize, chunk: usize) -> Result<usize> {
    chunks
        .checked_mul(chunk)
        .ok_or_else(|| Error::malformed("the buffer of a rank exceeds 2^64 elements"))
}

impl Gpu {
    /// By thread block: the numbers of the ports it sends and receives through. `None` for those
    /// that the file gives.
    fn port_numbers(&self, k: usize, kept: bool) -> Vec<Option<(usize, usize)>> {
        let (mut sending, mut receiving) = (0, 0);
        let number = |b: &Block| {
            let ports = (sending % k, receiving % k);
            sending += usize::from(b.send.is_some());
            receiving += usize::from(b.recv.is_some());
            (!kept).then_some(ports)
        };
        self.blocks.iter().map(number).collect()
    }
}

/// Orders the steps of a rank: the messages on the longest chain before a step; local steps, sends,
/// receives; then any number. Local steps come as early as they may, because in the
/// model they wait for the messages before them.
type Key = (usize, u8, usize);

/// By rank: its steps as (thread block, step), in the order of its program.
type Orders = Vec<Vec<(usize, usize)>>;

impl File<'_> {
    /// Finds the order of every rank's steps.
    fn order(&self) -> Result<Orders> {
        let graph = StepGraph::new(self)?;
        let own = graph
            .steps
            .iter()
            .all(|s| s.2.n.is_some() || s.2.what == What::Nop);
        let keys: Vec<Key> = if own {
            let numbers = graph.numbers();
            let early = |&&(a, b): &&(u32, u32)| {
                // Only within a rank: a message has another number at the other one.
                let (a, b) = (a as usize, b as usize);
                graph.steps[a].0 == graph.steps[b].0 && numbers[a] < numbers[b]
            };
            if let Some(&(a, _)) = graph.edges.iter().find(early) {
                let pos = graph.steps[a as usize].2.pos;
                return Err(at(
                    self.text,
                    pos,
                    "n: this step comes before one that it waits for",
                ));
            }
            graph.levels(&[])?;
            numbers.into_iter().map(|n| (n, 0, 0)).collect()
        } else {
            // If there is none, messages have to be under way while their receivers do other things.
            let buffered = || -> Result<Vec<Key>> {
                let keys = graph.levels(&[])?;
                if !graph.parallel {
                    return Ok(keys);
                }
                // Messages between two ranks are matched in order, whatever their channel.
                let crossing = graph.in_order_of_sends(&keys);
                graph.levels(&crossing).map_err(|_| {
                    Error::malformed(
                        "messages between two ranks cross on different channels: in the model they are received in \
                         the order in which they are sent",
                    )
                })
            };
            graph.order_of_messages().map_or_else(buffered, Ok)?
        };
        let mut ranks: Vec<Vec<(Key, usize, usize)>> = vec![Vec::new(); self.gpus.len()];
        let mut next = 0;
        for (rank, gpu) in self.gpus.iter().enumerate() {
            for (b, block) in gpu.blocks.iter().enumerate() {
                for (s, line) in block.lines.iter().enumerate() {
                    if line.what != What::Nop {
                        ranks[rank].push((keys[next], b, s));
                    }
                    next += 1;
                }
            }
        }
        let sorted = ranks.into_iter().map(|mut steps| {
            steps.sort_unstable();
            steps.into_iter().map(|(_, b, s)| (b, s)).collect()
        });
        Ok(sorted.collect())
    }
}

/// A message by its key, with the steps that send and receive it.
type Message = (Key, u32, u32);

/// All steps of all ranks, and what each comes after.
struct StepGraph<'f> {
    file: &'f File<'f>,
    /// Rank, thread block and step.
    steps: Vec<(usize, &'f Block, &'f Line)>,
    /// `(a, b)`: `a` comes after `b`.
    edges: Vec<(u32, u32)>,
    /// By message: the steps that send and receive it.
    messages: Vec<(u32, u32)>,
    /// Whether some rank sends to another on two channels.
    parallel: bool,
}

impl<'f> StepGraph<'f> {
    fn new(file: &'f File<'f>) -> Result<StepGraph<'f>> {
        let mut graph = StepGraph {
            file,
            steps: Vec::new(),
            edges: Vec::new(),
            messages: Vec::new(),
            parallel: false,
        };
        // By sender, receiver and channel: the steps that send, and that receive.
        let mut ends: HashMap<(usize, usize, usize), [Vec<u32>; 2]> = HashMap::new();
        for (rank, gpu) in file.gpus.iter().enumerate() {
            let mut first = graph.steps.len();
            let firsts: Vec<usize> = gpu
                .blocks
                .iter()
                .map(|b| {
                    first += b.lines.len();
                    first - b.lines.len()
                })
                .collect();
            if u32::try_from(first).is_err() {
                return Err(Error::malformed("more than 2^32 steps"));
            }
            for (b, block) in gpu.blocks.iter().enumerate() {
                for (s, line) in block.lines.iter().enumerate() {
                    let me = graph.steps.len() as u32;
                    graph.steps.push((rank, block, line));
                    if s > 0 {
                        graph.edges.push((me, me - 1));
                    }
                    if let Some((d, step)) = line.waits {
                        let lines = gpu.blocks.get(d).map_or(0, |b| b.lines.len());
                        if step >= lines || d == b && step >= s {
                            return Err(at(
                                file.text,
                                line.pos,
                                format!(
                                    "it waits for step {step} of thread block {d}, which is not there or not before it"
                                ),
                            ));
                        }
                        graph.edges.push((me, (firsts[d] + step) as u32));
                    }
                    if let Some(to) = block.send.filter(|_| line.what.sends()) {
                        ends.entry((rank, to, block.channel)).or_default()[0].push(me);
                    }
                    if let Some(from) = block.recv.filter(|_| line.what.receives()) {
                        ends.entry((from, rank, block.channel)).or_default()[1].push(me);
                    }
                }
            }
        }
        let mut pairs = std::collections::HashSet::new();
        for (&(from, to, channel), [sends, receives]) in &ends {
            if sends.len() != receives.len() {
                return Err(Error::malformed(format!(
                    "rank {from} sends {} messages to rank {to} on channel {channel}, which receives {}",
                    sends.len(),
                    receives.len()
                )));
            }
            for (&send, &receive) in sends.iter().zip(receives) {
                let count = |i: u32| graph.steps[i as usize].2.count;
                if count(send) != count(receive) {
                    return Err(at(
                        file.text,
                        graph.steps[receive as usize].2.pos,
                        format!(
                            "receives {} chunks, but rank {from} sends {}",
                            count(receive),
                            count(send)
                        ),
                    ));
                }
                graph.edges.push((receive, send));
                graph.messages.push((send, receive));
            }
            graph.parallel |= !pairs.insert((from, to));
        }
        Ok(graph)
    }

    /// By step: its key in an order of all messages of all ranks, in which each comes after what its
    /// sender and its receiver do before it. The model never deadlocks in it. `None` if there is none.
    fn order_of_messages(&self) -> Option<Vec<Key>> {
        let n = self.steps.len();
        // Events: the messages, then local steps. The first and the last event of every step.
        let mut events: Vec<(usize, usize)> = (0..n)
            .map(|i| self.messages.len() + i)
            .map(|e| (e, e))
            .collect();
        for (event, &(send, receive)) in self.messages.iter().enumerate() {
            events[receive as usize].0 = event;
            events[send as usize].1 = event;
        }
        for (event, (_, _, line)) in events.iter_mut().zip(&self.steps) {
            match (line.what.receives(), line.what.sends()) {
                (true, false) => event.1 = event.0,
                (false, true) => event.0 = event.1,
                _ => {}
            }
        }
        let of_rank = self
            .edges
            .iter()
            .filter(|(a, b)| self.steps[*a as usize].0 == self.steps[*b as usize].0);
        let between = of_rank.map(|&(a, b)| (events[a as usize].0, events[b as usize].1));
        let fused = events
            .iter()
            .filter(|e| e.0 != e.1)
            .map(|&(first, last)| (last, first));
        let edges: Vec<(u32, u32)> = between
            .chain(fused)
            .map(|(a, b)| (a as u32, b as u32))
            .collect();
        let count = self.messages.len() + n;
        let is_message = |event: usize| event < self.messages.len();
        let levels = levels(count, &edges, |i| usize::from(is_message(i))).ok()?;
        let key = |(&(first, _), (_, _, line)): (&(usize, usize), &(usize, &Block, &Line))| {
            let local = levels[first].1;
            (
                levels[first].0,
                line.what.turn(),
                if is_message(first) { first } else { local },
            )
        };
        Some(events.iter().zip(&self.steps).map(key).collect())
    }

    /// By step: its key, greater than those of all steps that it comes after.
    fn levels(&self, more: &[(u32, u32)]) -> Result<Vec<Key>> {
        let edges: Vec<(u32, u32)> = self.edges.iter().chain(more).copied().collect();
        let turn = |i: usize| self.steps[i].2.what.turn();
        match levels(self.steps.len(), &edges, |i| usize::from(turn(i) > 0)) {
            Ok(levels) => {
                let keys = levels.into_iter().enumerate();
                Ok(keys
                    .map(|(i, (messages, all))| (messages, turn(i), all))
                    .collect())
            }
            Err(missing) => Err(self.cycle(&missing)),
        }
    }

    /// The error that steps wait for each other, at one of them. `missing` is positive for all steps
    /// that never start.
    fn cycle(&self, missing: &[u32]) -> Error {
        let mut waits: Vec<Option<usize>> = vec![None; self.steps.len()];
        for &(a, b) in &self.edges {
            if missing[b as usize] > 0 {
                waits[a as usize] = Some(b as usize);
            }
        }
        // From any step that waits, a walk along what it waits for ends in the cycle.
        let mut at_step = missing.iter().position(|&m| m > 0).unwrap_or(0);
        for _ in 0..self.steps.len() {
            at_step = waits[at_step].unwrap_or(at_step);
        }
        let (rank, _, line) = self.steps[at_step];
        let what = format!("rank {rank}: this step and others wait for each other in a cycle");
        at(self.file.text, line.pos, what)
    }

    /// The numbers that oneport wrote; a nop has that of the step after it.
    fn numbers(&self) -> Vec<usize> {
        let mut next = 0;
        let numbers = self.steps.iter().rev().map(|(_, _, line)| {
            next = line.n.unwrap_or(next);
            next
        });
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.reverse();
        numbers
    }

    /// For ranks that send to another on several channels: each receive after that of the message
    /// sent before.
    fn in_order_of_sends(&self, keys: &[Key]) -> Vec<(u32, u32)> {
        let mut sends: HashMap<(usize, usize), Vec<Message>> = HashMap::new();
        for &(send, receive) in &self.messages {
            let (from, to) = (self.steps[send as usize].0, self.steps[receive as usize].0);
            let sends = sends.entry((from, to)).or_default();
            sends.push((keys[send as usize], send, receive));
        }
        let mut more = Vec::new();
        for messages in sends.values_mut() {
            messages.sort_unstable();
            for pair in messages.windows(2) {
                more.push((pair[1].1, pair[0].1));
                more.push((pair[1].2, pair[0].2));
            }
        }
        more
    }
}

/// By node: the largest sum of the weights of nodes before it, and the largest number of them. An edge
/// `(a, b)` says that `a` comes after `b`. With a cycle the error has, by node, how many it still waits
/// for.
fn levels(
    n: usize,
    edges: &[(u32, u32)],
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

/// The program of one rank, as it grows.
struct Program<'f> {
    text: &'f str,
    gpu: &'f Gpu,
    memory: Memory,
    /// Elements of a chunk.
    chunk: usize,
    ports: Vec<Option<(usize, usize)>>,
    steps: Vec<Step>,
    /// Thread block, number and kind of the last step, if oneport numbered it.
    last: Option<(usize, usize, What)>,
}

impl Program<'_> {
    /// Adds the steps of a line. Lines with the same number are parts of one step.
    fn add(&mut self, block: usize, line: &Line) -> Result<()> {
        let (uses_src, uses_dst) = line.what.uses();
        let src = if uses_src {
            Some(self.span(line.src, line)?)
        } else {
            None
        };
        let dst = if uses_dst {
            Some(self.span(line.dst, line)?)
        } else {
            None
        };
        if let (Some(src), Some(dst)) = (src, dst)
            && src != dst
            && src.overlaps(dst)
        {
            let what = "source and destination overlap";
            return Err(at(self.text, line.pos, what));
        }
        // Steps that become several are not parts of one.
        let fused = line.what.receives() && (line.what.sends() || uses_src && src != dst);
        let number = line.n.filter(|_| !fused).map(|n| (block, n, line.what));
        if number.is_some() && number == self.last {
            self.extend(src, dst);
            return Ok(());
        }
        self.last = number;
        let (send, recv) = (self.gpu.blocks[block].send, self.gpu.blocks[block].recv);
        let (out, into) = self.ports[block].unwrap_or((line.port, line.port));
        let send = |spans: Span| Step::send(send.unwrap_or_default(), spans).on_port(out);
        let from = recv.unwrap_or_default();
        let recv = |spans: Span| Step::recv(from, spans).on_port(into);
        let combine = |spans: Span| Step::recv_combine(from, spans, line.order).on_port(into);
        // The operand of this rank onto the message, where that has been stored.
        let onto = |message: Span| {
            let order = match line.order {
                Order::MineFirst => Order::TheirsFirst,
                Order::TheirsFirst => Order::MineFirst,
            };
            Step::combine(src.unwrap_or(message), message, order)
        };
        let empty = Span::new(0, 0);
        let (src, dst) = (src.unwrap_or(empty), dst.unwrap_or(empty));
        match line.what {
            What::Nop => {}
            What::Send => self.steps.push(send(src)),
            What::Recv => self.steps.push(recv(dst)),
            What::RecvCopySend => self.steps.extend([recv(dst), send(dst)]),
            What::Copy => self.steps.push(Step::copy(src, dst)),
            What::Reduce => self.steps.push(Step::combine(src, dst, line.order)),
            What::RecvReduceCopy | What::RecvReduceCopySend => {
                if src == dst {
                    self.steps.push(combine(dst));
                } else {
                    self.steps.extend([recv(dst), onto(dst)]);
                }
                if line.what == What::RecvReduceCopySend {
                    self.steps.push(send(dst));
                }
            }
            What::RecvReduceSend => {
                // The sum is not kept: a place of its own.
                let sum_of = Span::new(times(self.memory.len, self.chunk)?, src.len);
                self.memory.len = sum(self.memory.len, line.count, "the buffer of a rank")?;
                self.steps
                    .extend([recv(sum_of), onto(sum_of), send(sum_of)]);
            }
        }
        Ok(())
    }

    /// Appends spans to those of the last step.
    fn extend(&mut self, src: Option<Span>, dst: Option<Span>) {
        let push = |spans: &mut Spans, span: Option<Span>| match (spans.last_mut(), span) {
            (Some(last), Some(span)) if last.end() == span.offset => last.len += span.len,
            (_, Some(span)) => spans.push(span),
            (_, None) => {}
        };
        match self.steps.last_mut() {
            Some(Step::Send { spans, .. }) => push(spans, src),
            Some(Step::Recv { spans, .. } | Step::RecvCombine { spans, .. }) => push(spans, dst),
            Some(Step::Copy { src: s, dst: d } | Step::Combine { src: s, dst: d, .. }) => {
                push(s, src);
                push(d, dst);
            }
            None => {}
        }
    }

    /// The elements that `count` chunks cover from `at` on.
    fn span(&self, (buffer, offset): (usize, usize), line: &Line) -> Result<Span> {
        let size = self.memory.sizes[buffer];
        if offset.checked_add(line.count).is_none_or(|end| end > size) {
            return Err(at(
                self.text,
                line.pos,
                format!(
                    "{} chunks from {offset} on leave the {size} of buffer {}",
                    line.count,
                    ["i", "o", "s"][buffer]
                ),
            ));
        }
        let start = self.memory.starts[buffer] + offset;
        Ok(Span::new(
            times(start, self.chunk)?,
            times(line.count, self.chunk)?,
        ))
    }

    /// The length of the buffer, and the steps.
    fn finish(self) -> Result<(usize, Vec<Step>)> {
        Ok((times(self.memory.len, self.chunk)?, self.steps))
    }
}
