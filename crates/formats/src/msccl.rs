//! MSCCL XML: algorithms for GPUs as thread blocks that send, receive, copy and reduce chunks.
//!
//! ```text
//! <algo name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes>
//!   <gpu id i_chunks o_chunks s_chunks>                     one for each rank
//!     <copy i_off o_off/>                                   before all, in place: to itself
//!     <tb id send recv chan>                                at most one peer each way, -1: none
//!       <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
//! type   = s | r | rcs | rrs | rrc | rrcs                   send, receive, reduce, copy
//!        | cpy | re | nop                                  local: copy, reduce, nothing
//! srcbuf = i | o | s                                        input, output, scratch
//! coll   = broadcast | reduce | allreduce | gather | scatter | allgather
//!        | reducescatter (or reduce_scatter) | alltoall
//! ```
//!
//! The steps of a thread block run in order, the thread blocks at once. A step waits for step
//! `deps` of thread block `depid`, and for what the `nop`s before it wait for. The n-th send on a
//! channel meets the n-th receive. There is no version; these are the attributes that
//! `src/misc/msccl/msccl_parser.cc` of <https://github.com/Azure/msccl-executor-nccl> requires, and
//! `msccl/language/ir.py` of <https://github.com/microsoft/msccl-tools> at commit 030a750 (2023)
//! writes but for the last three of `algo`.
//!
//! MSCCL has chunks of equal size, no root, no operand order and no messages out of several places.
//! Written files have attributes of their own, which other readers ignore, so that they are
//! [read](read()) back with the same order, ports and times: `root`, `ports` and `ported` of
//! `algo`, and of each step `n` (its number in the program of the rank; the parts of one message
//! share it), `port`, and `order` where the received operand comes first.

pub(crate) mod place;
mod read;

use std::collections::HashMap;
use std::fmt::Write as _;

use self::place::{Placed, Region, place};
pub(crate) use self::read::schedule_name;
pub use self::read::{ReadOptions, read};
use super::{Written, ensure_own_ports};
use oneport::error::{Error, Result};
use oneport::internal::Matching;
use oneport::rules::{Event, LocalOrder, OrderScratch};
use oneport::schedule::collective::Holders;
use oneport::schedule::{Layout, Order, Schedule, Span, Step, total_len};

/// The largest `cnt` that the executor takes.
const MAX_COUNT: usize = 71;
/// Thread blocks of one rank that may send, or receive, on one channel.
const MAX_BLOCKS_OF_CHANNEL: usize = 32;
/// What the executor takes: steps of a thread block, and XML nodes of a rank.
const MAX_STEPS: usize = 256;
const MAX_NODES: usize = 1024;

/// Writes a schedule as an algorithm named `name`, out of place: the input is not changed. What the
/// schedule computes in place of its input is first copied.
///
/// One thread block a peer and direction, and one for local steps. Steps wait for earlier steps as
/// rules 1 and 2 of [`oneport::rules`] say, so that the order on the ports is kept; rule 3 does not
/// bind GPUs. Chunks are as large as the parts of the buffers allow.
///
/// Time and memory are linear in the number of steps, of their spans, and of chunks in messages
/// over 71.
///
/// # Errors
/// A multicast or a scan, blocks of unequal size, messages without elements, shared ports, and a
/// schedule with unmatched messages or an undefined collective.
pub fn write(schedule: &Schedule, name: &str) -> Result<Written> {
    ensure_own_ports(schedule, "MSCCL")?;
    let (coll, chunks_per_loop) = collective(schedule, "MSCCL")?;
    let placed = place(schedule)?;
    let chunk = placed.iter().map(|p| p.chunk).fold(0, gcd).max(1);
    let per_loop = chunks_per_loop / chunk;
    let blocks = blocks(schedule, &placed, chunk)?;
    let mut notes = notes(&blocks);
    if schedule.collective().kind().reduces() {
        notes.push("MSCCL combines in any order: for operators that commute".into());
    }
    let channels = blocks.iter().flatten().map(|b| b.channel + 1).max();
    let ranks = schedule.ranks();
    let mut text = format!(
        "<algo name=\"{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{per_loop}\" ngpus=\"{ranks}\" \
         coll=\"{coll}\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\"",
        escaped(name),
        channels.unwrap_or(1),
    );
    if let Some(root) = schedule.collective().root() {
        let _ = write!(text, " root=\"{root}\"");
    }
    let (ports, k) = (schedule.ports().name(), schedule.ports().k());
    let _ = writeln!(text, " ports=\"{ports}\" ported=\"{k}\">");
    for (rank, (placed, blocks)) in placed.iter().zip(&blocks).enumerate() {
        let [i, o, s] = [placed.input, placed.output, placed.scratch].map(|n| n / chunk);
        let _ = writeln!(
            text,
            " <gpu id=\"{rank}\" i_chunks=\"{i}\" o_chunks=\"{o}\" s_chunks=\"{s}\">"
        );
        for (id, block) in blocks.iter().enumerate() {
            block.write(&mut text, id);
        }
        text.push_str(" </gpu>\n");
    }
    text.push_str("</algo>\n");
    Ok(Written { text, notes })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

pub(crate) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The name of the collective, and the number of elements that are `nchunksperloop` chunks.
/// `format` is the one that is written, for errors.
pub(crate) fn collective(schedule: &Schedule, format: &str) -> Result<(&'static str, usize)> {
    let kind = schedule.collective().kind();
    let name = kind.row().msccl.ok_or_else(|| {
        Error::usage(format!(
            "{format} has no {}: its collectives are broadcast, reduce, allreduce, gather, scatter, allgather, \
             reducescatter and alltoall",
            kind.name()
        ))
    })?;
    let lengths = |region: fn(&Layout) -> &[Span]| -> Vec<usize> {
        let layouts = schedule.layout().iter();
        layouts.map(|l| total_len(region(l))).collect()
    };
    let (inputs, outputs) = (lengths(|l| &l.input), lengths(|l| &l.output));
    let equal = |lengths: &[usize]| match lengths.iter().find(|&&n| n != lengths[0]) {
        Some(other) => Err(Error::usage(format!(
            "{format} has blocks of equal size only, here ranks have {} and {other} elements (choose a size that the \
             number of ranks divides, or pad the blocks)",
            lengths[0]
        ))),
        None => Ok(()),
    };
    if kind.has_blocks() {
        if kind.row().input.0 == Holders::Every {
            equal(&inputs)?;
        }
        if kind.row().output.0 == Holders::Every {
            equal(&outputs)?;
        }
        if kind.has_block_pairs() {
            let layouts = schedule.layout().iter();
            let blocks = layouts.filter(|l| l.input.len() == schedule.ranks());
            let lengths = blocks.flat_map(|l| l.input.iter().map(|s| s.len));
            equal(&lengths.collect::<Vec<_>>())?;
        }
    }
    Ok((name, inputs.into_iter().chain(outputs).max().unwrap_or(0)))
}

/// A thread block: steps in order, with one peer at most.
struct ThreadBlock {
    send: Option<usize>,
    recv: Option<usize>,
    channel: usize,
    steps: Vec<ThreadStep>,
}

/// A step of a thread block, in chunks.
struct ThreadStep {
    what: &'static str,
    /// Buffer and first chunk that is read, and that is written.
    src: (char, usize),
    dst: (char, usize),
    count: usize,
    /// Thread block and step that it waits for.
    waits: Option<(usize, usize)>,
    /// Whether another step waits for it.
    awaited: bool,
    /// Number in the program, port, and whether the received operand comes first.
    origin: Option<(usize, usize, bool)>,
}

impl ThreadStep {
    /// A part of step `i` of a program.
    fn of(i: usize, step: &Step, (src, dst, count): (ChunkAt, ChunkAt, usize)) -> ThreadStep {
        let theirs_first = match step {
            Step::RecvCombine { order, .. } | Step::Combine { order, .. } => {
                *order == Order::TheirsFirst
            }
            _ => false,
        };
        let (what, src, dst) = match step {
            Step::Send { .. } => ("s", src, dst),
            Step::Recv { .. } => ("r", src, dst),
            // The executor combines the message with what it reads at `src` of this rank.
            Step::RecvCombine { .. } => ("rrc", dst, dst),
            Step::Copy { .. } => ("cpy", src, dst),
            Step::Combine { .. } => ("re", src, dst),
        };
        ThreadStep {
            what,
            src,
            dst,
            count,
            waits: None,
            awaited: false,
            origin: Some((i, step.port().unwrap_or(0), theirs_first)),
        }
    }

    /// Waits only.
    fn nop(waits: Option<(usize, usize)>) -> ThreadStep {
        ThreadStep {
            what: "nop",
            src: ('i', 0),
            dst: ('o', 0),
            count: 0,
            waits,
            awaited: false,
            origin: None,
        }
    }
}

impl ThreadBlock {
    fn write(&self, text: &mut String, id: usize) {
        let or_none = |n: Option<usize>| n.map_or("-1".to_string(), |n| n.to_string());
        let (send, recv, channel) = (or_none(self.send), or_none(self.recv), self.channel);
        let _ = writeln!(
            text,
            "  <tb id=\"{id}\" send=\"{send}\" recv=\"{recv}\" chan=\"{channel}\">"
        );
        for (s, line) in self.steps.iter().enumerate() {
            let (what, src, dst, count) = (line.what, line.src, line.dst, line.count);
            let (depid, deps) = line.waits.unzip();
            let (depid, deps) = (or_none(depid), or_none(deps));
            let _ = write!(
                text,
                "   <step s=\"{s}\" type=\"{what}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{count}\" \
                 depid=\"{depid}\" deps=\"{deps}\" hasdep=\"{}\"",
                src.0,
                src.1,
                dst.0,
                dst.1,
                u8::from(line.awaited)
            );
            if let Some((n, port, theirs_first)) = line.origin {
                let _ = write!(text, " n=\"{n}\"");
                if port > 0 {
                    let _ = write!(text, " port=\"{port}\"");
                }
                if theirs_first {
                    text.push_str(" order=\"theirs_first\"");
                }
            }
            text.push_str("/>\n");
        }
        text.push_str("  </tb>\n");
    }
}

fn blocks(schedule: &Schedule, placed: &[Placed], chunk: usize) -> Result<Vec<Vec<ThreadBlock>>> {
    let programs: Vec<&[Step]> = placed.iter().map(|p| &*p.program).collect();
    let mates = mates(schedule, &programs, "MSCCL")?;
    let channels = channels(&programs);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    let mut all = Vec::with_capacity(programs.len());
    for (rank, program) in programs.iter().enumerate() {
        // Rules 1 and 2: with overlap, computation holds up nothing but what needs its result.
        order.analyse(program, schedule.ports(), true, &mut scratch)?;
        let mut blocks: Vec<ThreadBlock> = Vec::new();
        let mut found: HashMap<(bool, Option<usize>), usize> = HashMap::new();
        // By step: the thread block and step at which it is done.
        let mut done: Vec<(usize, usize)> = Vec::with_capacity(program.len());
        for (i, step) in program.iter().enumerate() {
            let (sends, peer) = (step.is_send(), step.peer());
            let channel = match peer {
                Some(peer) if sends => channels[&(rank, peer)],
                Some(peer) => channels[&(peer, rank)],
                None => 0,
            };
            let id = *found.entry((sends, peer)).or_insert(blocks.len());
            if id == blocks.len() {
                blocks.push(ThreadBlock {
                    send: peer.filter(|_| sends),
                    recv: peer.filter(|_| !sends),
                    channel,
                    steps: Vec::new(),
                });
            }
            let waits = order.before_start(i).iter().map(|e: &Event| done[e.step()]);
            let mut waits: Vec<_> = waits.filter(|w| w.0 != id).collect();
            waits.sort_unstable();
            waits.dedup();
            for &(block, step) in &waits {
                blocks[block].steps[step].awaited = true;
            }
            let last = waits.pop();
            let steps = &mut blocks[id].steps;
            steps.extend(waits.into_iter().map(Some).map(ThreadStep::nop));
            let mate = mates[rank][i].map(|(peer, step)| (&placed[peer], &programs[peer][step]));
            let first = steps.len();
            let parts = parts(step, &placed[rank], mate, chunk, MAX_COUNT).into_iter();
            steps.extend(parts.map(|part| ThreadStep::of(i, step, part)));
            match steps.get_mut(first) {
                Some(line) => line.waits = last,
                // A wrong local step, with no source for what others wait for.
                None if total_len(step.writes()) > 0 => steps.push(ThreadStep::nop(last)),
                None => {}
            }
            done.push((id, steps.len().saturating_sub(1)));
        }
        all.push(blocks);
    }
    Ok(all)
}

/// The rank and step at the other end of a transfer.
pub(crate) type Mate = Option<(usize, usize)>;

/// By rank and step.
pub(crate) fn mates(
    schedule: &Schedule,
    programs: &[&[Step]],
    format: &str,
) -> Result<Vec<Vec<Mate>>> {
    let mut wrong = None;
    let matching = Matching::new(schedule, |mismatch| wrong = wrong.or(Some(mismatch)))?;
    if wrong.is_some() {
        let what = "its messages do not match (run `check` for the list)";
        return Err(Error::wrong(what));
    }
    // The placed programs may have one copy more at the start.
    let extra = |rank: usize| programs[rank].len() - schedule.programs()[rank].len();
    let mut all = Vec::with_capacity(programs.len());
    for (rank, program) in schedule.programs().iter().enumerate() {
        let mut of_rank = vec![None; extra(rank)];
        for (i, step) in program.iter().enumerate() {
            if step.is_empty() {
                return Err(Error::usage(format!(
                    "{format} has no steps without chunks: rank {rank}, step {i} ({}) is one (choose a size that all \
                     segments and blocks divide)",
                    step.name()
                )));
            }
            of_rank.push(step.peer().and_then(|peer| {
                let partner = matching.partner((rank, i), peer)?;
                Some((peer, partner + extra(peer)))
            }));
        }
        all.push(of_rank);
    }
    Ok(all)
}

/// By sender and receiver: the channel of their messages, the first that has room at both.
fn channels(programs: &[&[Step]]) -> HashMap<(usize, usize), usize> {
    let mut channels = HashMap::new();
    // By rank and direction: the number of thread blocks on each channel.
    let mut used: Vec<[Vec<usize>; 2]> = vec![Default::default(); programs.len()];
    for (from, program) in programs.iter().enumerate() {
        for step in *program {
            let Step::Send { to, .. } = *step else {
                continue;
            };
            channels.entry((from, to)).or_insert_with(|| {
                let count = |rank: usize, way: usize, c: usize| {
                    used[rank][way].get(c).copied().unwrap_or(0)
                };
                let room = |&c: &usize| {
                    count(from, 0, c) < MAX_BLOCKS_OF_CHANNEL
                        && count(to, 1, c) < MAX_BLOCKS_OF_CHANNEL
                };
                let channel = (0..).find(room).unwrap_or(0);
                for (rank, way) in [(from, 0), (to, 1)] {
                    let counts = &mut used[rank][way];
                    counts.resize(counts.len().max(channel + 1), 0);
                    counts[channel] += 1;
                }
                channel
            });
        }
    }
    channels
}

/// A buffer and a chunk in it.
pub(crate) type ChunkAt = (char, usize);

/// The parts of a step that are contiguous on both sides, in chunks: source, destination, number,
/// which is `most` at most.
pub(crate) fn parts(
    step: &Step,
    mine: &Placed,
    mate: Option<(&Placed, &Step)>,
    chunk: usize,
    most: usize,
) -> Vec<(ChunkAt, ChunkAt, usize)> {
    let (src, dst) = match (step, mate) {
        (Step::Send { spans, .. }, Some((theirs, mate))) => {
            ((mine, &**spans), (theirs, mate.writes()))
        }
        (_, Some((theirs, mate))) => ((theirs, mate.reads()), (mine, step.writes())),
        _ => ((mine, step.reads()), (mine, step.writes())),
    };
    let runs = |(placed, spans): (&Placed, &[Span])| {
        let regions = spans.iter().flat_map(|&span| placed.regions(span));
        regions.collect::<Vec<Region>>().into_iter()
    };
    let (mut src, mut dst) = (runs(src), runs(dst));
    let (mut a, mut b) = (src.next(), dst.next());
    let mut parts: Vec<(ChunkAt, ChunkAt, usize)> = Vec::new();
    while let (Some(x), Some(y)) = (&mut a, &mut b) {
        let len = x.len.min(y.len);
        let (from, to) = ((x.buffer, x.offset / chunk), (y.buffer, y.offset / chunk));
        let follows = |at: ChunkAt, next: ChunkAt, n: usize| at.0 == next.0 && at.1 + n == next.1;
        match parts.last_mut() {
            Some((f, t, n)) if follows(*f, from, *n) && follows(*t, to, *n) => *n += len / chunk,
            _ => parts.push((from, to, len / chunk)),
        }
        x.take(len);
        y.take(len);
        if x.len == 0 {
            a = src.next();
        }
        if y.len == 0 {
            b = dst.next();
        }
    }
    let pieces = |(from, to, count): (ChunkAt, ChunkAt, usize)| {
        (0..count).step_by(most).map(move |at| {
            let [from, to] = [from, to].map(|(buffer, first)| (buffer, first + at));
            (from, to, most.min(count - at))
        })
    };
    parts.into_iter().flat_map(pieces).collect()
}

/// What the executor would not take, or would do otherwise.
fn notes(blocks: &[Vec<ThreadBlock>]) -> Vec<String> {
    let mut notes = Vec::new();
    let nodes =
        |blocks: &Vec<ThreadBlock>| 2 + blocks.iter().map(|b| 1 + b.steps.len()).sum::<usize>();
    let most_nodes = blocks.iter().map(nodes).max().unwrap_or(0);
    if most_nodes > MAX_NODES {
        notes.push(format!(
            "the file has {most_nodes} XML nodes for a rank, MSCCL's executor takes {MAX_NODES}: take fewer segments or ranks"
        ));
    }
    let steps = blocks.iter().flatten().map(|b| b.steps.len());
    let most_steps = steps.max().unwrap_or(0);
    if most_steps > MAX_STEPS {
        notes.push(format!(
            "a thread block has {most_steps} steps, MSCCL's executor takes {MAX_STEPS}: take fewer segments or ranks"
        ));
    }
    let numbers = |block: &ThreadBlock| {
        let steps = block.steps.iter();
        let mut numbers: Vec<_> = steps.filter_map(|l| Some(l.origin?.0)).collect();
        let lines = numbers.len();
        numbers.dedup();
        lines - numbers.len()
    };
    let more: usize = blocks.iter().flatten().map(numbers).sum();
    if more > 0 {
        notes.push(format!(
            "{more} steps are parts of messages and copies that lie in several places: MSCCL moves contiguous chunks"
        ));
    }
    notes
}
