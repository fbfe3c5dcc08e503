//! Schedules of some ranks as a part of a schedule of all ranks.

use crate::plan::prelude::*;

/// Where a rank has the input of a phase in its buffer, and where it wants the output. Elements of
/// both may be the same.
#[derive(Debug, Clone, Default)]
pub(super) struct PhasePlace {
    pub(super) input: Spans,
    pub(super) output: Spans,
}

/// Ranks that perform a collective among themselves.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) members: Vec<usize>,
    /// The number of the root among the members.
    pub(super) root: usize,
    /// Elements of the block of each member, or of the vector alone.
    pub(super) sizes: Vec<usize>,
    /// By member: where its data is.
    pub(super) places: Vec<PhasePlace>,
}

/// A schedule made of phases, each a schedule of some of the ranks.
#[derive(Debug)]
pub(super) struct Embedding {
    ports: Ports,
    collective: Collective,
    layout: Vec<Layout>,
    programs: Vec<Vec<Step>>,
    /// By rank: the number of elements that phases need after those of the layout.
    scratch: Vec<usize>,
}

impl Embedding {
    pub(super) fn new(ports: Ports, collective: Collective, layout: Vec<Layout>) -> Embedding {
        Embedding {
            ports,
            collective,
            programs: vec![Vec::new(); layout.len()],
            scratch: vec![0; layout.len()],
            layout,
        }
    }

    /// Appends a part of a phase, the schedule of this group.
    pub(super) fn append(&mut self, group: &Group, schedule: Schedule) -> Result<()> {
        let Group {
            members, places, ..
        } = group;
        let layouts = schedule.layout().to_vec();
        let programs = schedule.into_programs();
        for (((&rank, place), layout), program) in
            members.iter().zip(places).zip(&layouts).zip(programs)
        {
            let (map, copies) = Map::new(layout, place, self.layout[rank].len)?;
            self.scratch[rank] = self.scratch[rank].max(map.scratch);
            let moved = program.into_iter();
            let moved = moved.filter_map(|step| map.moved(step, members));
            self.programs[rank].extend(copies.into_iter().chain(moved));
        }
        Ok(())
    }

    /// The schedule of all phases.
    pub(super) fn build(mut self) -> Result<Schedule> {
        for (layout, scratch) in self.layout.iter_mut().zip(&self.scratch) {
            layout.len = layout.len.saturating_add(*scratch);
        }
        Schedule::new(self.ports, self.collective, self.layout, self.programs)
    }
}

/// Elements `0..len` of a phase's buffer that are at `offset + 0..len` in the buffer of the rank.
#[derive(Debug, Clone, Copy)]
struct PhaseRun {
    phase: Span,
    offset: usize,
}

/// Where the elements of a phase's buffer are in the buffer of the rank.
#[derive(Debug)]
struct Map {
    /// In ascending order, of all elements.
    runs: Vec<PhaseRun>,
    /// Number of elements that are neither input nor output.
    scratch: usize,
}

impl Map {
    /// The map of a phase with this layout, and copies to make before. Scratch of the phase is
    /// after `len` elements.
    fn new(layout: &Layout, place: &PhasePlace, len: usize) -> Result<(Map, Vec<Step>)> {
        let mut runs = paired(&layout.output, &place.output)?;
        runs.sort_unstable_by_key(|run| run.phase.offset);
        // Where the phase returns what it gets, it has it where it returns it.
        let (mut inputs, mut copies) = (Vec::new(), Vec::new());
        for input in paired(&layout.input, &place.input)? {
            for part in parts(&runs, input.phase) {
                let from = input.offset + (part.phase.offset - input.phase.offset);
                match part.offset {
                    None => inputs.push(PhaseRun {
                        phase: part.phase,
                        offset: from,
                    }),
                    Some(to) if to == from => {}
                    Some(to) => {
                        let len = part.phase.len;
                        copies.push(Step::copy(Span::new(from, len), Span::new(to, len)));
                    }
                }
            }
        }
        runs.extend(inputs);
        runs.sort_unstable_by_key(|run| run.phase.offset);
        let whole = Span::new(0, layout.len);
        let mut end = len;
        let all = parts(&runs, whole).into_iter().map(|part| {
            let offset = part.offset.unwrap_or_else(|| {
                let offset = end;
                end = end.saturating_add(part.phase.len);
                offset
            });
            PhaseRun {
                phase: part.phase,
                offset,
            }
        });
        let runs = all.collect();
        let scratch = end - len;
        Ok((Map { runs, scratch }, copies))
    }

    fn spans(&self, spans: &[Span]) -> Spans {
        let mut moved = Spans::new();
        for part in spans.iter().flat_map(|&span| parts(&self.runs, span)) {
            let Some(offset) = part.offset else { continue };
            moved.append(Span::new(offset, part.phase.len));
        }
        moved
    }

    /// The step over the rank's buffer, with its peer among `members`; `None` for a copy of what is
    /// where it is to be.
    fn moved(&self, mut step: Step, members: &[usize]) -> Option<Step> {
        for spans in step.spans_mut() {
            *spans = self.spans(spans);
        }
        let Step::Copy { src, dst } = step else {
            return Some(step.with_peer(|peer| members[peer]));
        };
        let (mut from, mut to) = (Spans::new(), Spans::new());
        for run in paired(&src, &dst).ok()? {
            if run.phase.offset != run.offset {
                from.push(run.phase);
                to.push(Span::new(run.offset, run.phase.len));
            }
        }
        (!from.is_empty()).then_some(Step::Copy { src: from, dst: to })
    }
}

/// The elements of `phase`, which are packed in this order in `real`.
fn paired(phase: &Spans, real: &Spans) -> Result<Vec<PhaseRun>> {
    let (expected, given) = (total_len(phase), total_len(real));
    if expected != given {
        return Err(Error::malformed(format!(
            "a phase has {expected} elements where there are {given}"
        )));
    }
    let mut runs = Vec::new();
    let mut real = real.iter().copied();
    let mut rest = Span::new(0, 0);
    for &span in phase {
        let mut at = span.offset;
        while at < span.end() {
            if rest.len == 0 {
                match real.next() {
                    Some(next) => rest = next,
                    None => break,
                }
                continue;
            }
            let len = rest.len.min(span.end() - at);
            runs.push(PhaseRun {
                phase: Span::new(at, len),
                offset: rest.offset,
            });
            at += len;
            rest = Span::new(rest.offset + len, rest.len - len);
        }
    }
    Ok(runs)
}

/// A part of a phase's buffer.
struct PhasePart {
    phase: Span,
    /// Where it is in the buffer of the rank, if that is known.
    offset: Option<usize>,
}

/// The span, split where the runs begin and end. Takes `O(log r)` time for `r` runs, and constant
/// time for each part.
fn parts(runs: &[PhaseRun], span: Span) -> Vec<PhasePart> {
    let mut parts = Vec::new();
    let mut at = span.offset;
    let mut next = runs.partition_point(|run| run.phase.end() <= at);
    while at < span.end() {
        let run = runs.get(next);
        let (end, offset) = match run {
            Some(run) if run.phase.offset <= at => {
                next += 1;
                (run.phase.end(), Some(run.offset + (at - run.phase.offset)))
            }
            Some(run) => (run.phase.offset, None),
            None => (span.end(), None),
        };
        let end = end.min(span.end());
        parts.push(PhasePart {
            phase: Span::from(at..end),
            offset,
        });
        at = end;
    }
    parts
}
