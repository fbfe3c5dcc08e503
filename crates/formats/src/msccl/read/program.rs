//! The steps of one rank, made from those of its thread blocks.

use std::collections::HashMap;

use super::order::Part;
use super::{Gpu, Line, Memory, What, at, times};
use crate::sum;
use oneport::error::Result;
use oneport::schedule::{Order, Span, Spans, Step};

/// The program of one rank, as it grows.
pub(super) struct Program<'f> {
    pub(super) text: &'f str,
    pub(super) gpu: &'f Gpu,
    pub(super) memory: Memory,
    /// Elements of a chunk.
    pub(super) chunk: usize,
    pub(super) ports: Vec<Option<(usize, usize)>>,
    pub(super) steps: Vec<Step>,
    /// By thread block and step: a place of its own, for its message or for the sum that an `rrs`
    /// sends on.
    pub(super) places: HashMap<(usize, usize), Span>,
    /// Thread block, number and kind of the last step, if oneport numbered it.
    pub(super) last: Option<(usize, usize, What)>,
}

impl Program<'_> {
    /// Adds a step of a thread block, or a half of it. Lines with the same number are parts of one
    /// step.
    pub(super) fn add(&mut self, (block, step): (usize, usize), part: Part) -> Result<()> {
        let of = &self.gpu.blocks[block];
        let line = of.lines[step];
        let (uses_src, uses_dst) = line.what.uses();
        let place = |used: bool, at| used.then(|| self.span(at, &line)).transpose();
        let (src, dst) = (place(uses_src, line.src)?, place(uses_dst, line.dst)?);
        if let (Some(src), Some(dst)) = (src, dst)
            && src != dst
            && src.overlaps(dst)
        {
            return Err(at(self.text, line.pos, "source and destination overlap"));
        }
        // Steps that become several are not parts of one.
        let several = part != Part::Whole || line.what.receives() && uses_src && src != dst;
        let number = line.n.filter(|_| !several).map(|n| (block, n, line.what));
        if number.is_some() && number == self.last {
            self.extend(src, dst);
            return Ok(());
        }
        self.last = number;
        let (send, from) = (of.send.unwrap_or_default(), of.recv.unwrap_or_default());
        let (out, into) = self.ports[block].unwrap_or((line.port, line.port));
        let empty = Span::new(0, 0);
        let (src, mut dst) = (src.unwrap_or(empty), dst.unwrap_or(empty));
        let sum_apart = line.what == What::RecvReduceSend;
        let place = match self.places.get(&(block, step)) {
            Some(&place) => place,
            None if sum_apart || part == Part::Arrived => {
                let place = self.own_place(line.count)?;
                self.places.insert((block, step), place);
                place
            }
            None => empty,
        };
        if sum_apart {
            dst = place;
        }
        // The operand of this rank onto the message, once that is stored.
        let onto_message = match line.order {
            Order::MineFirst => Order::TheirsFirst,
            Order::TheirsFirst => Order::MineFirst,
        };
        match part {
            Part::Whole | Part::Received => {}
            Part::Arrived => {
                self.steps.push(Step::recv(from, place).on_port(into));
                return Ok(());
            }
            Part::Taken => {
                match line.what {
                    What::Recv | What::RecvCopySend => self.steps.push(Step::copy(place, dst)),
                    What::RecvReduceSend => {
                        self.steps.push(Step::combine(src, place, onto_message));
                    }
                    _ => {
                        if src != dst {
                            self.steps.push(Step::copy(src, dst));
                        }
                        self.steps.push(Step::combine(place, dst, line.order));
                    }
                }
                return Ok(());
            }
            Part::Sent => {
                self.steps.push(Step::send(send, dst).on_port(out));
                return Ok(());
            }
        }
        let recv = || Step::recv(from, dst).on_port(into);
        match line.what {
            What::Nop => {}
            What::Send => self.steps.push(Step::send(send, src).on_port(out)),
            What::Recv | What::RecvCopySend => self.steps.push(recv()),
            What::Copy => self.steps.push(Step::copy(src, dst)),
            What::Reduce => self.steps.push(Step::combine(src, dst, line.order)),
            What::RecvReduceCopy | What::RecvReduceCopySend if src == dst => {
                let combine = Step::recv_combine(from, dst, line.order);
                self.steps.push(combine.on_port(into));
            }
            What::RecvReduceCopy | What::RecvReduceCopySend | What::RecvReduceSend => {
                let combine = Step::combine(src, dst, onto_message);
                self.steps.extend([recv(), combine]);
            }
        }
        Ok(())
    }

    /// Chunks behind all others.
    fn own_place(&mut self, count: usize) -> Result<Span> {
        let start = times(self.memory.len, self.chunk)?;
        self.memory.len = sum(self.memory.len, count, "the buffer of a rank")?;
        Ok(Span::new(start, times(count, self.chunk)?))
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
    pub(super) fn finish(self) -> Result<(usize, Vec<Step>)> {
        Ok((times(self.memory.len, self.chunk)?, self.steps))
    }
}
