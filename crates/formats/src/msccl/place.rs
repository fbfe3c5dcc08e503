//! The memory of an MSCCL algorithm: what of a rank's buffer is input, output and scratch.

use oneport::error::{Error, Result};
use oneport::schedule::{Layout, Schedule, Span, Spans, Step, total_len};

/// A rank's program over three buffers, which follow one another: input, output, scratch. The input
/// is not written.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) scratch: usize,
    pub(crate) program: Vec<Step>,
    /// Number of elements that divides the offset and length of every span.
    pub(crate) chunk: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    /// `i`, `o` or `s`.
    pub(crate) buffer: char,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Region {
    pub(crate) fn take(&mut self, len: usize) {
        self.offset += len;
        self.len -= len;
    }
}

impl Placed {
    /// The regions that a span of the program covers, in order.
    pub(crate) fn regions(&self, span: Span) -> impl Iterator<Item = Region> {
        let mut start = 0;
        let buffers = [('i', self.input), ('o', self.output), ('s', self.scratch)];
        buffers.into_iter().filter_map(move |(buffer, size)| {
            let (from, to) = (span.offset.max(start), span.end().min(start + size));
            let offset = from.saturating_sub(start);
            start += size;
            (from < to).then(|| Region {
                buffer,
                offset,
                len: to - from,
            })
        })
    }
}

/// Places the buffers of all ranks.
///
/// Output elements stay output. Input elements stay input if no step writes them. Others are
/// scratch. What is input and also something else is copied there first.
pub(crate) fn place(schedule: &Schedule) -> Result<Vec<Placed>> {
    let ranks = schedule.layout().iter().zip(schedule.programs());
    let placed = ranks.enumerate().map(|(rank, (layout, program))| {
        for (what, spans) in [("input", &layout.input), ("output", &layout.output)] {
            let mut sorted: Vec<Span> = spans.iter().copied().filter(|s| s.len > 0).collect();
            sorted.sort_unstable();
            if sorted.windows(2).any(|w| w[0].overlaps(w[1])) {
                return Err(Error::malformed(format!(
                    "rank {rank}: its {what} spans overlap"
                )));
            }
        }
        Ok(of_rank(layout, program))
    });
    placed.collect()
}

/// Where the part of a buffer from one cut to the next is placed.
#[derive(Debug, Clone, Copy, Default)]
struct PlacedPart {
    len: usize,
    used: bool,
    written: bool,
    /// Offsets in the input and in the output, if it is in them.
    input: Option<usize>,
    output: Option<usize>,
    /// Offset in the three buffers together.
    at: usize,
}

struct PlacedParts {
    /// Ascending offsets; part `n` lies between cuts `n` and `n + 1`.
    cuts: Vec<usize>,
    parts: Vec<PlacedPart>,
}

impl PlacedParts {
    /// The parts between the ends of all spans, and what each of them is; not yet where.
    fn cut(layout: &Layout, program: &[Step]) -> PlacedParts {
        let of_steps = program
            .iter()
            .flat_map(|s| s.reads().iter().chain(s.writes()));
        let spans = || of_steps.clone().chain(&layout.input).chain(&layout.output);
        let spans = spans().filter(|s| s.len > 0);
        let mut cuts: Vec<usize> = spans.flat_map(|s| [s.offset, s.end()]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let part = |w: &[usize]| PlacedPart {
            len: w[1] - w[0],
            ..PlacedPart::default()
        };
        let mut parts = PlacedParts {
            parts: cuts.windows(2).map(part).collect(),
            cuts,
        };
        parts.visit(&layout.input, |part, offset| part.input = Some(offset));
        parts.visit(&layout.output, |part, offset| part.output = Some(offset));
        for step in program {
            parts.visit(step.reads(), |part, _| part.used = true);
            parts.visit(step.writes(), |part, _| {
                (part.used, part.written) = (true, true)
            });
        }
        parts
    }

    fn of(&self, span: Span) -> std::ops::Range<usize> {
        if span.len == 0 {
            return 0..0;
        }
        let at = |offset| self.cuts.partition_point(|&c| c < offset);
        at(span.offset)..at(span.end())
    }

    /// Visits the parts of the spans, with their offsets in the spans together.
    fn visit(&mut self, spans: &[Span], mut act: impl FnMut(&mut PlacedPart, usize)) {
        let mut offset = 0;
        for &span in spans {
            let range = self.of(span);
            for part in &mut self.parts[range] {
                act(part, offset);
                offset += part.len;
            }
        }
    }

    /// The spans at their new places, neighbours joined.
    fn moved(&self, spans: &[Span]) -> Spans {
        let mut moved = Spans::new();
        for part in spans.iter().flat_map(|&s| &self.parts[self.of(s)]) {
            moved.append(Span::new(part.at, part.len));
        }
        moved
    }
}

fn of_rank(layout: &Layout, program: &[Step]) -> Placed {
    let mut parts = PlacedParts::cut(layout, program);
    let [input, output] = [&layout.input, &layout.output].map(|spans| total_len(spans));
    let mut scratch = 0;
    // What is copied at the start, as (from, to, length).
    let mut copied = Vec::new();
    for part in &mut parts.parts {
        part.at = match (part.input, part.output) {
            (_, Some(offset)) => input + offset,
            (Some(offset), None) if !part.written => offset,
            _ if !part.used => continue,
            _ => {
                scratch += part.len;
                input + output + scratch - part.len
            }
        };
        if let Some(from) = part.input.filter(|&from| from != part.at) {
            copied.push((from, part.at, part.len));
        }
    }
    let placed = |p: &&PlacedPart| p.used || p.input.is_some() || p.output.is_some();
    let lengths = parts.parts.iter().filter(placed).map(|p| p.len);
    let chunk = lengths.fold(0, super::gcd);
    let mut moved: Vec<Step> = Vec::with_capacity(program.len() + 1);
    if !copied.is_empty() {
        let src = copied.iter().map(|c| Span::new(c.0, c.2));
        let dst = copied.iter().map(|c| Span::new(c.1, c.2));
        moved.push(Step::copy(src.collect::<Spans>(), dst.collect::<Spans>()));
    }
    moved.extend(program.iter().map(|step| {
        let mut step = step.clone();
        match &mut step {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => {
                *spans = parts.moved(spans);
            }
            Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
                (*src, *dst) = (parts.moved(src), parts.moved(dst));
            }
        }
        step
    }));
    Placed {
        input,
        output,
        scratch,
        program: moved,
        chunk,
    }
}
