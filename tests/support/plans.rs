//! Random programs that complete, their results, and faults to insert into programs.

use oneport::{Collective, Layout, Order, Ports, Schedule, Span, Spans, Step};

use super::random::Random;

/// Random programs that cannot deadlock: their steps were drawn in one order for all ranks, so the
/// ranks never wait for each other in a cycle.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) ports: Ports,
    /// Length of every rank's buffer, all of which is input and output.
    pub(crate) len: usize,
    pub(crate) programs: Vec<Vec<Step>>,
    /// The effects of the steps, in the order in which the steps were drawn.
    operations: Vec<Operation>,
}

/// Stores elements of `owner`'s buffer in `me`'s buffer, or combines them into it.
#[derive(Debug, Clone)]
struct Operation {
    me: usize,
    owner: usize,
    src: Spans,
    dst: Spans,
    combine: Option<Order>,
}

/// Parameters of random programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// At least 2.
    pub(crate) ranks: usize,
    pub(crate) ports: Ports,
    /// Length of every buffer.
    pub(crate) len: usize,
    /// Number of transfers and local steps.
    pub(crate) operations: usize,
    /// Maximal number of spans of a message.
    pub(crate) parts: usize,
}

/// The initial buffer of `rank`. All elements of a run are distinct, up to 256 ranks.
pub(crate) fn initial_buffer(rank: usize, len: usize) -> Vec<u64> {
    (0..len as u64).map(|i| i << 8 | rank as u64).collect()
}

/// The initial buffers of all ranks.
pub(crate) fn initial_buffers(ranks: usize, len: usize) -> Vec<Vec<u64>> {
    (0..ranks).map(|rank| initial_buffer(rank, len)).collect()
}

/// Ports of any kind, 1 to 3 of them.
pub(crate) fn ports(random: &mut Random) -> Ports {
    let kind = random.pick(&Ports::KINDS);
    kind.with_k(*random.pick(&[1, 1, 2, 3]))
}

/// Disjoint spans with `len` elements in total, in any order, within `room` elements.
fn spans(random: &mut Random, len: usize, room: usize, parts: usize) -> Spans {
    let parts = if len < 2 {
        1
    } else {
        1 + random.below(parts.min(len))
    };
    let mut cuts: Vec<usize> = (1..parts).map(|_| random.below(len + 1)).collect();
    cuts.extend([0, len]);
    cuts.sort_unstable();
    let mut gap = room - len;
    let mut offset = 0;
    let mut spans: Vec<Span> = cuts
        .windows(2)
        .map(|c| {
            let skip = random.below(gap + 1);
            gap -= skip;
            offset += skip;
            let span = Span::new(offset, c[1] - c[0]);
            offset += span.len;
            span
        })
        .collect();
    if random.one_in(2) {
        spans.reverse();
    }
    spans.into()
}

impl Plan {
    pub(crate) fn random(random: &mut Random, shape: Shape) -> Plan {
        let Shape {
            ranks: p,
            ports,
            len,
            parts,
            ..
        } = shape;
        let mut plan = Plan {
            ports,
            len,
            programs: vec![Vec::new(); p],
            operations: Vec::with_capacity(shape.operations),
        };
        for _ in 0..shape.operations {
            let me = random.below(p);
            let peer = (me + 1 + random.below(p - 1)) % p;
            let n = match random.below(4) {
                0 => random.below(3).min(len / 2),
                1 => random.below(len / 2 + 1),
                2 => len / 2,
                _ => random.below(40.min(len / 2) + 1),
            };
            let order = *random.pick(&[Order::MineFirst, Order::TheirsFirst]);
            let combine = random.one_in(2).then_some(order);
            let operation = if random.one_in(6) {
                // Source and destination of a local step must not overlap: each has its own half.
                let src = spans(random, n, len / 2, parts);
                let dst = spans(random, n, len / 2, parts);
                let dst: Spans = dst
                    .iter()
                    .map(|s| Span::new(s.offset + len / 2, s.len))
                    .collect();
                plan.programs[me].push(match combine {
                    Some(order) => Step::combine(src.clone(), dst.clone(), order),
                    None => Step::copy(src.clone(), dst.clone()),
                });
                Operation {
                    me,
                    owner: me,
                    src,
                    dst,
                    combine,
                }
            } else {
                let src = spans(random, n, len, parts);
                let dst = spans(random, n, len, parts);
                let send = Step::send(me, src.clone());
                let receive = match combine {
                    Some(order) => Step::recv_combine(peer, dst.clone(), order),
                    None => Step::recv(peer, dst.clone()),
                };
                plan.programs[peer].push(send.on_port(random.below(ports.k())));
                plan.programs[me].push(receive.on_port(random.below(ports.k())));
                Operation {
                    me,
                    owner: peer,
                    src,
                    dst,
                    combine,
                }
            };
            plan.operations.push(operation);
        }
        plan
    }

    /// The final buffers, computed by applying the operations in order, without a schedule.
    pub(crate) fn outcome<T: Copy>(
        &self,
        mut buffers: Vec<Vec<T>>,
        combine: impl Fn(T, T) -> T,
    ) -> Vec<Vec<T>> {
        for o in &self.operations {
            let message: Vec<T> = indices(&o.src).map(|i| buffers[o.owner][i]).collect();
            for (i, theirs) in indices(&o.dst).zip(message) {
                let mine = &mut buffers[o.me][i];
                *mine = match o.combine {
                    None => theirs,
                    Some(Order::MineFirst) => combine(*mine, theirs),
                    Some(Order::TheirsFirst) => combine(theirs, *mine),
                };
            }
        }
        buffers
    }

    pub(crate) fn schedule(&self) -> Schedule {
        schedule(self.ports, self.len, self.programs.clone())
    }

    /// Total number of combinations of elements.
    pub(crate) fn combinations(&self) -> usize {
        let combined = self.operations.iter().filter(|o| o.combine.is_some());
        combined.flat_map(|o| &o.src).map(|s| s.len).sum()
    }
}

/// A schedule of these programs on buffers that are input and output as a whole.
pub(crate) fn schedule(ports: Ports, len: usize, programs: Vec<Vec<Step>>) -> Schedule {
    let layout = Layout {
        len,
        input: Span::new(0, len).into(),
        output: Span::new(0, len).into(),
    };
    let layout = vec![layout; programs.len()];
    Schedule::new(ports, Collective::Allreduce, layout, programs).unwrap()
}

fn indices(spans: &[Span]) -> impl Iterator<Item = usize> + '_ {
    spans.iter().flat_map(|s| s.offset..s.end())
}

/// Whether any step is one side of a transfer.
pub(crate) fn has_transfers(programs: &[Vec<Step>]) -> bool {
    programs.iter().flatten().any(|s| s.peer().is_some())
}

/// Inserts one fault into the programs and returns its name. A fault may be without effect. Buffers
/// have `len` elements. With `single_spans`, every message keeps its single span.
#[expect(clippy::too_many_lines, reason = "a list of faults")]
pub(crate) fn insert_fault(
    random: &mut Random,
    programs: &mut [Vec<Step>],
    len: usize,
    single_spans: bool,
) -> &'static str {
    let p = programs.len();
    let rank = random.below(p);
    if random.one_in(12) {
        // A ring in which every rank receives first.
        for (r, program) in programs.iter_mut().enumerate() {
            let span = Span::new(0, 1.min(len));
            let at = random.below(program.len() + 1);
            program.insert(at, Step::recv((r + p - 1) % p, span));
            program.insert(at + 1, Step::send((r + 1) % p, span));
        }
        return "ring";
    }
    let program = &mut programs[rank];
    if program.is_empty() {
        program.push(Step::send(
            (rank + 1) % p,
            Span::new(0, random.below(2).min(len)),
        ));
        return "unmatched";
    }
    let i = random.below(program.len());
    match random.below(if single_spans { 10 } else { 13 }) {
        0 => {
            program.remove(i);
            "dropped"
        }
        1 => {
            let step = program.remove(i);
            let j = random.below(program.len() + 1);
            program.insert(j, step);
            "moved"
        }
        2 => {
            let step = program[i].clone();
            let j = random.below(program.len() + 1);
            program.insert(j, step);
            "duplicated"
        }
        3 | 4 => {
            program[i] = resized(random, &program[i], len);
            "resized"
        }
        5 => {
            program[i] = redirected(&program[i], random.below(p));
            "redirected"
        }
        6 => {
            program.truncate(i);
            "truncated"
        }
        7 => {
            program.clear();
            "emptied"
        }
        8 => {
            program[i] = other_kind(&program[i]);
            "other kind"
        }
        9 => {
            let j = random.below(program.len());
            program.swap(i, j);
            "swapped"
        }
        10 => {
            program[i] = program[i].clone().on_port(random.below(4));
            "other port"
        }
        _ => {
            program[i] = overlapping(&program[i], len);
            "overlapping"
        }
    }
}

/// The spans that a fault changes: those of a transfer, or the destination of a local step.
fn spans_mut(step: &mut Step) -> &mut Spans {
    match step {
        Step::Send { spans, .. } | Step::Recv { spans, .. } | Step::RecvCombine { spans, .. } => {
            spans
        }
        Step::Copy { dst, .. } | Step::Combine { dst, .. } => dst,
    }
}

/// The step with one span made longer, shorter, empty, or as long as the buffer.
fn resized(random: &mut Random, step: &Step, len: usize) -> Step {
    let mut step = step.clone();
    let spans = spans_mut(&mut step);
    if spans.is_empty() {
        spans.push(Span::new(0, len));
        return step;
    }
    let i = random.below(spans.len());
    let span = &mut spans[i];
    *span = match random.below(5) {
        0 => Span::new(0, len),
        1 => Span::new(span.offset, 0),
        2 => Span::new(span.offset, span.len / 2),
        3 => Span::new(span.offset, span.len.saturating_sub(1)),
        _ => Span::new(span.offset, (span.len + 1).min(len - span.offset)),
    };
    step
}

fn redirected(step: &Step, peer: usize) -> Step {
    let mut step = step.clone();
    if let Step::Send { to: other, .. }
    | Step::Recv { from: other, .. }
    | Step::RecvCombine { from: other, .. } = &mut step
    {
        *other = peer;
    }
    step
}

/// The step turned into a related one: a send into a receive, a receive that stores into one that
/// combines or the reverse, or the operands of a combination exchanged.
fn other_kind(step: &Step) -> Step {
    match step.clone() {
        Step::Send { to, spans, port } => Step::recv(to, spans).on_port(port),
        Step::Recv { from, spans, port } => {
            Step::recv_combine(from, spans, Order::TheirsFirst).on_port(port)
        }
        Step::RecvCombine {
            from,
            spans,
            order: Order::TheirsFirst,
            port,
        } => Step::recv_combine(from, spans, Order::MineFirst).on_port(port),
        Step::RecvCombine {
            from, spans, port, ..
        } => Step::recv(from, spans).on_port(port),
        Step::Copy { src, dst } => Step::combine(src, dst, Order::MineFirst),
        Step::Combine { src, dst, .. } => Step::copy(dst, src),
    }
}

/// The step with the same number of elements in two spans, which usually overlap.
fn overlapping(step: &Step, len: usize) -> Step {
    let mut step = step.clone();
    let spans = spans_mut(&mut step);
    let n: usize = spans.iter().map(|s| s.len).sum();
    let (front, back) = (n / 2, n - n / 2);
    let offset = spans.first().map_or(0, |s| s.offset.min(len - back));
    *spans = [
        Span::new(offset, front),
        Span::new((offset + front / 2).min(len - back), back),
    ]
    .into_iter()
    .collect();
    step
}
