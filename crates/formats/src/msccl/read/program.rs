//! The steps of one rank, made from the lines of its thread blocks.

use std::collections::HashMap;

use super::file::{Gpu, GpuLine, StepKind, at};
use super::order::{LinePart, NodeId};
use crate::blocks::{BufferStarts, extend, times};
use crate::sum;
use oneport::error::Result;
use oneport::schedule::{Order, Span, Step};

pub(super) struct GrowingProgram<'f> {
    text: &'f str,
    gpu: &'f Gpu,
    memory: &'f BufferStarts,
    /// Chunks of its buffer that are in use, with buffers of lines.
    len: usize,
    /// Elements of a chunk.
    chunk: usize,
    /// By thread block: the ports it sends and receives through; `None` for those that the file
    /// gives.
    ports: Vec<Option<(usize, usize)>>,
    steps: Vec<Step>,
    /// By thread block and line: the buffer for its message, or for the sum that an `rrs` sends on.
    buffers: HashMap<(usize, usize), Span>,
    /// Thread block, number and kind of the last line, if oneport numbered it.
    last: Option<(usize, usize, StepKind)>,
}

impl<'f> GrowingProgram<'f> {
    pub(super) fn new(
        text: &'f str,
        gpu: &'f Gpu,
        memory: &'f BufferStarts,
        chunk: usize,
        ports: Vec<Option<(usize, usize)>>,
    ) -> GrowingProgram<'f> {
        GrowingProgram {
            text,
            gpu,
            memory,
            len: memory.len,
            chunk,
            ports,
            steps: Vec::new(),
            buffers: HashMap::new(),
            last: None,
        }
    }

    /// Adds the steps of a node. Lines with the same number are parts of one step.
    pub(super) fn add(&mut self, (block, step, part): NodeId) -> Result<()> {
        let of = &self.gpu.blocks[block];
        let line = of.lines[step];
        let kind = line.kind;
        let operand = |used: bool, at| used.then(|| self.span(at, &line)).transpose();
        let (src, dst) = (
            operand(kind.reads, line.src)?,
            operand(kind.writes, line.dst)?,
        );
        if let (Some(src), Some(dst)) = (src, dst)
            && src != dst
            && src.overlaps(dst)
        {
            return Err(at(self.text, line.pos, "source and destination overlap"));
        }
        // Lines that become several steps are not parts of one.
        let several = part != LinePart::Whole || kind.receives && kind.reads && src != dst;
        let number = line.n.filter(|_| !several).map(|n| (block, n, line.kind));
        let is_more = number.is_some() && number == self.last;
        self.last = number;
        let keeps = kind.reads && !kind.writes && kind.receives;
        let buffer = if keeps || part == LinePart::Buffer {
            self.own_buffer((block, step), line.count)?
        } else {
            self.buffers.get(&(block, step)).copied().unwrap_or(EMPTY)
        };
        let (src, dst) = (src.unwrap_or(EMPTY), dst.unwrap_or(buffer));
        let (out, into) = self.ports[block].unwrap_or((line.port, line.port));
        let send = |span| Step::send(of.send.unwrap_or_default(), span).on_port(out);
        let from = of.recv.unwrap_or_default();
        let recv = |span| Step::recv(from, span).on_port(into);
        // Where the message is stored first, and this rank's operand is combined with it.
        let onto_message = match line.order {
            Order::MineFirst => Order::TheirsFirst,
            Order::TheirsFirst => Order::MineFirst,
        };
        let steps = match part {
            LinePart::Send => [Some(send(dst)), None],
            LinePart::Buffer => [Some(recv(buffer)), None],
            LinePart::Unpack if !kind.reads => [Some(Step::copy(buffer, dst)), None],
            LinePart::Unpack if !kind.writes => {
                [Some(Step::combine(src, buffer, onto_message)), None]
            }
            LinePart::Unpack => [
                (src != dst).then(|| Step::copy(src, dst)),
                Some(Step::combine(buffer, dst, line.order)),
            ],
            _ if kind == StepKind::NOP || kind == StepKind::COPY && src == dst => [None, None],
            _ if kind == StepKind::COPY => [Some(Step::copy(src, dst)), None],
            _ if kind == StepKind::REDUCE => [Some(Step::combine(src, dst, line.order)), None],
            _ if !kind.receives => [Some(send(src)), None],
            _ if !kind.reads => [Some(recv(dst)), None],
            _ if src != dst => [Some(recv(dst)), Some(Step::combine(src, dst, onto_message))],
            _ => {
                let combine = Step::recv_combine(from, dst, line.order);
                [Some(combine.on_port(into)), None]
            }
        };
        for step in steps.into_iter().flatten() {
            let last = self.steps.last_mut().filter(|_| is_more);
            if !last.is_some_and(|last| extend(last, &step)) {
                self.steps.push(step);
            }
        }
        Ok(())
    }

    /// The buffer of a line alone, of `count` chunks behind all others.
    fn own_buffer(&mut self, line: (usize, usize), count: usize) -> Result<Span> {
        if let Some(&buffer) = self.buffers.get(&line) {
            return Ok(buffer);
        }
        let start = times(self.len, self.chunk)?;
        self.len = sum(self.len, count, "the buffer of a rank")?;
        let buffer = Span::new(start, times(count, self.chunk)?);
        self.buffers.insert(line, buffer);
        Ok(buffer)
    }

    /// The elements that the chunks of a line cover from `offset` of a buffer on.
    fn span(&self, (buffer, offset): (usize, usize), line: &GpuLine) -> Result<Span> {
        let size = self.memory.sizes[buffer];
        if offset.checked_add(line.count).is_none_or(|end| end > size) {
            let what = format!(
                "{} chunks from {offset} on leave the {size} of buffer {}",
                line.count,
                ["i", "o", "s"][buffer]
            );
            return Err(at(self.text, line.pos, what));
        }
        let start = times(self.memory.starts[buffer] + offset, self.chunk)?;
        Ok(Span::new(start, times(line.count, self.chunk)?))
    }

    pub(super) fn finish(self) -> Result<(usize, Vec<Step>)> {
        Ok((times(self.len, self.chunk)?, self.steps))
    }
}

const EMPTY: Span = Span { offset: 0, len: 0 };
