//! Reads MSCCL XML: thread blocks become programs.

mod order;
mod program;

use std::collections::HashMap;

use roxmltree::{Document, Node};

use self::program::Program;
use crate::error::{Error, Result};
use crate::formats::sum;
use crate::machine::Ports;
use crate::schedule::collective::{Collective, Kind};
use crate::schedule::{Layout, Order, Schedule, Span, Spans};

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
/// Buffers follow one another: input, output, scratch; in place, input and output share memory as
/// in NCCL. `rcs`, `rrs` and `rrcs` become several steps. Dependences between steps that access
/// different chunks are kept by the order on the ports only.
///
/// The root of a rooted collective is the only rank with input (broadcast, scatter) or output
/// (reduce, gather), unless file or options name it.
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

/// An error at byte `pos` of the text. Lines are counted here, because counting them for every
/// element takes quadratic time.
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
        let order = order::order(self)?;
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
                sums: HashMap::new(),
                last: None,
            };
            for &(block, step, part) in order {
                program.add((block, step), part)?;
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
