//! Reads MSCCL XML: thread blocks become programs.

mod file;
mod order;
mod program;

use roxmltree::Document;

use self::file::{Gpu, GpuBlock, MscclFile, at};
use self::order::{Buffered, LineGraph, Orders};
use self::program::GrowingProgram;
use crate::blocks::{BufferStarts, Buffers};
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::schedule::Schedule;
use oneport::schedule::collective::{Collective, Holders};
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

impl ReadOptions {
    pub(crate) fn ensure_chunks(&self) -> Result<()> {
        if self.chunk > 0 {
            return Ok(());
        }
        Err(Error::usage("a chunk has one element at least"))
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
    let name = schedule_name(&file.name, &format!("oneport {} ", file.kind.name()));
    name.into_iter().try_fold(schedule, Schedule::with_name)
}

/// The name of an algorithm, as far as a schedule can have it, without the words that `export` puts
/// `before` it.
pub(crate) fn schedule_name(name: &str, before: &str) -> Option<String> {
    const MAX_CHARS: usize = 100;
    let name = name.strip_prefix(before).unwrap_or(name);
    let shown = name.trim().chars().filter(|c| !c.is_control());
    let name: String = shown.take(MAX_CHARS).collect();
    Some(name.trim().to_string()).filter(|name| !name.is_empty())
}

impl MscclFile<'_> {
    fn schedule(&self, options: &ReadOptions) -> Result<Schedule> {
        let p = self.gpus.len();
        if self.kind.has_blocks() && !self.chunks.is_multiple_of(p) {
            return Err(Error::malformed(format!(
                "nchunksperloop=\"{}\" chunks are no blocks of equal size for {p} ranks",
                self.chunks
            )));
        }
        options.ensure_chunks()?;
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
        graph.ensure_no_races(&self.memory(schedule.collective().root())?)?;
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
        let buffers = self.buffers();
        let (mut layout, mut programs) = (Vec::new(), Vec::new());
        for (rank, memory) in self.memory(root)?.iter().enumerate() {
            let (gpu, order) = (&self.gpus[rank], &order[rank]);
            let numbers = gpu.port_numbers(ports.k(), kept);
            let mut program = GrowingProgram::new(self.text, gpu, memory, options.chunk, numbers);
            order.iter().try_for_each(|&node| program.add(node))?;
            let (len, steps) = program.finish()?;
            layout.push(buffers.layout(rank, root, memory, len, options.chunk)?);
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

    /// Where the buffers of the ranks lie.
    fn memory(&self, root: Option<usize>) -> Result<Vec<BufferStarts>> {
        let buffers = self.buffers();
        let gpus = self.gpus.iter().enumerate();
        let of_rank = |(rank, gpu): (usize, &Gpu)| {
            let found = buffers.of_rank(rank, root, gpu.sizes);
            let found = found.map_err(|error| at(self.text, gpu.pos, error))?;
            let [input, output, _] = found.starts;
            let moves = |&&(i, o): &&(usize, usize)| i.checked_add(input) != o.checked_add(output);
            match gpu.copies.iter().find(moves) {
                None => Ok(found),
                Some((i, o)) => {
                    let what = format!(
                        "<copy> of chunk {i} to another place, chunk {o}: a step of a thread block has an order"
                    );
                    Err(at(self.text, gpu.pos, what))
                }
            }
        };
        gpus.map(of_rank).collect()
    }

    fn buffers(&self) -> Buffers {
        Buffers {
            kind: self.kind,
            in_place: self.in_place,
            chunks: self.chunks,
            ranks: self.gpus.len(),
        }
    }
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
