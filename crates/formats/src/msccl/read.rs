//! Reads MSCCL XML: thread blocks become programs.

mod file;
mod order;
mod program;
mod races;

use roxmltree::Document;

use self::file::{Gpu, GpuBlock, MscclFile, at};
use self::order::{Buffered, LineGraph, Orders};
use self::program::GrowingProgram;
use crate::sum;
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::schedule::collective::{Collective, Extent, Holders};
use oneport::schedule::{Layout, Schedule, Span, Spans};
use oneport::simulate::Prepared;

/// How an algorithm is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Number of elements of a chunk.
    pub chunk: usize,
    /// Number of ports of each kind; without it as many as the busiest rank has thread blocks that
    /// send, or that receive. With fewer ports, thread blocks share them.
    pub ported: Option<usize>,
    /// The root of a rooted collective, if the file does not tell.
    pub root: Option<usize>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let (ported, root) = (None, None);
        ReadOptions {
            chunk: 1,
            ported,
            root,
        }
    }
}

/// Reads an algorithm as a schedule for bidirectional ports, or for those that
/// [`write`](super::write()) noted, under the name of the algorithm.
///
/// Every thread block has a port of its own for each direction, unless
/// [`ported`](ReadOptions::ported) gives fewer. Each step of a rank comes after those it waits for,
/// and a receive after its send. Buffers follow one another: input, output, scratch; in place,
/// input and output share memory as in NCCL. `rcs`, `rrs` and `rrcs` become several steps.
/// Dependences between steps that access different chunks are kept by the order on the ports only.
///
/// MSCCL's messages are buffered, those of the model are not. If steps would therefore wait for
/// each other, messages (of reductions, or else all) are received into places of their own, and
/// local steps take them from there.
///
/// The root of a rooted collective is the only rank with input (broadcast, scatter) or output
/// (reduce, gather), unless file or options name it.
///
/// Time is `n log n` in the number `n` of steps, memory linear in the length of the text.
///
/// # Errors
/// When the text is not XML, an element or attribute is unknown, missing or out of range, thread
/// blocks wait for each other, sizes do not fit the collective, or the root is not known. When two
/// steps in different thread blocks of a rank access the same chunk, one of them writes it, and
/// neither the order of thread blocks nor dependences and messages put one before the other: the
/// result would depend on which is faster.
pub fn read(text: &str, options: &ReadOptions) -> Result<Schedule> {
    file::ensure_few_attributes(text)?;
    let document = Document::parse(text).map_err(|e| Error::malformed(format!("not XML: {e}")))?;
    let file = MscclFile::parse(&document)?;
    // It takes more memory than all that follows.
    drop(document);
    let schedule = file.schedule(options)?;
    (file.schedule_name().into_iter()).try_fold(schedule, Schedule::with_name)
}

/// Where the buffers of a rank lie in one buffer, in chunks.
struct BufferStarts {
    /// First chunk of input, output, scratch.
    starts: [usize; 3],
    /// Chunks that there may be: those of the collective, and the scratch.
    sizes: [usize; 3],
    len: usize,
}

impl MscclFile<'_> {
    /// The algorithm's name, as far as a schedule can have it, without the words that `export` puts
    /// before it.
    fn schedule_name(&self) -> Option<String> {
        const MAX_CHARS: usize = 100;
        let before = format!("oneport {} ", self.kind.name());
        let name = self.name.strip_prefix(&before).unwrap_or(&self.name);
        let shown = name.trim().chars().filter(|c| !c.is_control());
        let name: String = shown.take(MAX_CHARS).collect();
        Some(name.trim().to_string()).filter(|name| !name.is_empty())
    }

    fn schedule(&self, options: &ReadOptions) -> Result<Schedule> {
        let p = self.gpus.len();
        if self.kind.has_blocks() && !self.chunks.is_multiple_of(p) {
            return Err(Error::malformed(format!(
                "nchunksperloop=\"{}\" chunks are no blocks of equal size for {p} ranks",
                self.chunks
            )));
        }
        if options.chunk == 0 {
            return Err(Error::usage("a chunk has one element at least"));
        }
        let busiest = |g: &Gpu| {
            let count =
                |peer: fn(&GpuBlock) -> Option<usize>| g.blocks.iter().filter_map(peer).count();
            count(|b| b.send).max(count(|b| b.recv))
        };
        let needed = self.gpus.iter().map(busiest).max().unwrap_or(0).max(1);
        let ports = match (options.ported, self.ports) {
            (Some(k), ports) => ports.unwrap_or(Ports::BI).with_k(k),
            (None, Some(ports)) => ports,
            (None, None) => Ports::BI.with_k(needed),
        };
        ports.validate()?;
        let graph = LineGraph::new(self, Buffered::None)?;
        let (order, given) = graph.order()?;
        let schedule = self.in_order(&order, ports, options)?;
        let root = schedule.collective().root();
        let memory = |rank| self.memory(rank, root);
        races::ensure_none(&graph, memory)?;
        drop(graph);
        if given || Prepared::new(&schedule, false).is_ok() {
            return Ok(schedule);
        }
        for buffered in [Buffered::Reductions, Buffered::All] {
            if let Some(order) = LineGraph::new(self, buffered)?.order_of_messages() {
                return self.in_order(&order, ports, options);
            }
        }
        Ok(schedule)
    }

    /// The schedule with the steps of each rank in the given order.
    fn in_order(&self, order: &Orders, ports: Ports, options: &ReadOptions) -> Result<Schedule> {
        let collective = self.collective(options)?;
        let root = collective.root();
        let kept = self.ports.is_some_and(|own| own.k() <= ports.k());
        let (mut layout, mut programs) = (Vec::new(), Vec::new());
        for (rank, (gpu, order)) in self.gpus.iter().zip(order).enumerate() {
            let memory = self.memory(rank, root)?;
            let numbers = gpu.port_numbers(ports.k(), kept);
            let mut program = GrowingProgram::new(self.text, gpu, memory, options.chunk, numbers);
            order.iter().try_for_each(|&node| program.add(node))?;
            let (len, steps) = program.finish()?;
            layout.push(self.layout(rank, root, len, options.chunk)?);
            programs.push(steps);
        }
        Schedule::new(ports, collective, layout, programs)
    }

    fn collective(&self, options: &ReadOptions) -> Result<Collective> {
        let by = |region: usize| {
            let gpus = self.gpus.iter().enumerate();
            let mut with = gpus.filter(|(_, g)| g.sizes[region] > 0);
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
        let row = self.kind.row();
        let ends = [row.input.0, row.output.0];
        let region = ends.iter().position(|&holders| holders == Holders::Root);
        Ok(self.kind.with_root(region.map_or(Ok(0), by)?))
    }

    /// Chunks of the input and output of a rank.
    fn regions(&self, rank: usize, root: Option<usize>) -> (usize, usize) {
        let (all, block) = (self.chunks, self.chunks / self.gpus.len());
        let at_root = |n: usize| if root == Some(rank) { n } else { 0 };
        let of = |(holders, part)| match (holders, part) {
            (Holders::Root, _) => at_root(all),
            (_, Extent::Block) => block,
            _ => all,
        };
        (of(self.kind.row().input), of(self.kind.row().output))
    }

    fn memory(&self, rank: usize, root: Option<usize>) -> Result<BufferStarts> {
        let gpu = &self.gpus[rank];
        let (input, output) = self.regions(rank, root);
        for (what, has, may) in [("i", gpu.sizes[0], input), ("o", gpu.sizes[1], output)] {
            // Buffers that a rank lacks are scratch of its own in some algorithms in place.
            if has > may && !self.in_place {
                let (kind, chunks) = (self.kind.name(), self.chunks);
                let what = format!(
                    "rank {rank} has {what}_chunks=\"{has}\", but {kind} of {chunks} chunks leaves it {may}"
                );
                return Err(at(self.text, gpu.pos, what));
            }
        }
        let (size_i, size_o) = (input.max(gpu.sizes[0]), output.max(gpu.sizes[1]));
        let block = self.chunks / self.gpus.len();
        let what = "the buffer of a rank";
        let own = block
            .checked_mul(rank)
            .ok_or_else(|| Error::malformed(what))?;
        let row = self.kind.row();
        let (start_i, start_o, end) = match (row.input.1, row.output.1) {
            _ if !self.in_place => (0, size_i, sum(size_i, size_o, what)?),
            (Extent::Block, _) if output > 0 => (own, 0, size_o.max(sum(own, size_i, what)?)),
            (_, Extent::Block) if input > 0 => (0, own, size_i.max(sum(own, size_o, what)?)),
            _ => (0, 0, size_i.max(size_o)),
        };
        let scratch = gpu.sizes[2];
        Ok(BufferStarts {
            starts: [start_i, start_o, end],
            sizes: [size_i, size_o, scratch],
            len: sum(end, scratch, what)?,
        })
    }

    fn layout(&self, rank: usize, root: Option<usize>, len: usize, chunk: usize) -> Result<Layout> {
        let memory = self.memory(rank, root)?;
        let (input, output) = self.regions(rank, root);
        let span = |start: usize, n: usize| -> Result<Spans> {
            let span = Span::new(times(start, chunk)?, times(n, chunk)?);
            Ok(Some(span).filter(|s| s.len > 0).into())
        };
        Ok(Layout {
            len,
            input: span(memory.starts[0], input)?,
            output: span(memory.starts[1], output)?,
        })
    }
}

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
        let number = |b: &GpuBlock| {
            let ports = (sending % k, receiving % k);
            sending += usize::from(b.send.is_some());
            receiving += usize::from(b.recv.is_some());
            (!kept).then_some(ports)
        };
        self.blocks.iter().map(number).collect()
    }
}
