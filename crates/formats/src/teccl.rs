//! TE-CCL's schedules: chunks that flow over links, epoch by epoch.
//!
//! ```text
//! {"1-Epoch_Duration": SECONDS, "3-Epochs_Required": N, "4-Collective_Finish_Time": SECONDS,
//!  "7-Flows": ["Chunk N from GPU traveled over HOP", ..],
//!  "8-Chunk paths": {DEMAND: PATHS, ..}, ..}
//! DEMAND = "Demand at GPU for chunk N from GPU met by epoch N"
//! PATHS  = [HOP, ..]                       one path of the whole chunk
//!        | [[[EPOCH, HOP], ..], ..]        several, each of a part of the chunk
//! HOP    = "GPU->GPU [with volume PART] in epoch N [via switches SWITCH [-> ..]]"
//! ```
//!
//! There is no version; this is what `teccl/solvers` of <https://github.com/microsoft/TE-CCL> at
//! commit c128bf2 (2024) writes; `6-Flows` and `7-chunk paths` are older names. The file has no
//! topology: [`claim`] judges its epochs by capacities and latencies of links that others give.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;

use crate::blocks::{Buffers, times};
use crate::msccl::{ReadOptions, gcd};
use crate::{has_key, sum};
use oneport::error::{Error, Result};
use oneport::internal::json_object;
use oneport::internal::numbers::truncated;
use oneport::machine::{CostModel, Ports};
use oneport::schedule::collective::Kind;
use oneport::schedule::{Schedule, Span, Step};

#[derive(Deserialize)]
struct FlowFile {
    #[serde(rename = "1-Epoch_Duration")]
    epoch_time: f64,
    #[serde(rename = "3-Epochs_Required")]
    epochs: usize,
    #[serde(rename = "4-Collective_Finish_Time")]
    finish_time: f64,
    #[serde(rename = "7-Flows", alias = "6-Flows")]
    flows: Vec<String>,
    #[serde(rename = "8-Chunk paths", alias = "7-chunk paths")]
    paths: BTreeMap<String, Vec<PathText>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PathText {
    Hop(String),
    Path(Vec<(usize, String)>),
}

/// A part of a chunk that goes from a GPU to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Hop<'t> {
    epoch: usize,
    from: usize,
    to: usize,
    /// In millionths of a chunk.
    volume: usize,
    /// What the links lead to at either end: a switch, or the other GPU.
    links: [usize; 2],
    text: &'t str,
}

/// A chunk of one GPU that another one must get.
struct Demand<'t> {
    text: &'t str,
    from: usize,
    chunk: usize,
    to: usize,
    /// The last epoch before it is there.
    met: usize,
    paths: Vec<Vec<Hop<'t>>>,
}

/// Volumes are whole numbers of this: TE-CCL rounds them to six digits.
const WHOLE: usize = 1_000_000;

/// Reads the flows of an allgather or alltoall as a schedule for bidirectional ports.
///
/// Ranks are the GPUs in the order of their numbers, without switches. A rank has a port for each
/// of its links, unless [`ported`](ReadOptions::ported) gives fewer, so that a link carries one
/// message at a time; messages are in the order of epochs. Where chunks are divided,
/// [`chunk`](ReadOptions::chunk) is the number of elements of a part. An allgather is in place; an
/// alltoall copies its own blocks and relays through scratch.
///
/// # Errors
/// [Malformed](oneport::error::ErrorKind::Malformed): other texts, and demands of no such
/// collective. [Wrong](oneport::error::ErrorKind::Wrong), with the demand or the flow and its
/// epoch: a path that does not lead there, or goes on before its chunk has come; claimed epochs and
/// times that are not those of the flows; parts that are no whole chunk.
pub fn read(text: &str, options: &ReadOptions) -> Result<Schedule> {
    options.ensure_chunks()?;
    let file: FlowFile = json_object("TE-CCL schedule", FIELDS, text)?;
    let demands = file.demands()?;
    file.ensure_as_claimed(&demands)?;
    demands.iter().try_for_each(Demand::ensure_causal)?;
    ensure_waits(&demands)?;
    let schedule = Blocks::new(&demands)?.schedule(&demands, options)?;
    schedule.with_name(format!("TE-CCL, {} epochs", file.epochs))
}

/// Whether a text has such flows.
pub(crate) fn is_flows(text: &str) -> bool {
    has_key(text, "3-Epochs_Required")
}

/// What a file claims, beside links with capacities.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The time that it claims to take, in units of the costs.
    pub time: f64,
    /// The first flow that these links do not carry in its epochs, if there is one: why.
    pub late: Option<String>,
}

/// What the file of a schedule that was [read](read()) claims, with messages of these costs in
/// units of `second` seconds, and blocks of `block` bytes; `None` for other texts.
///
/// A link carries the flows of an epoch one after the other, those first that are needed first, and
/// not before it is done with those of earlier epochs. What a switch copies crosses the link to it
/// once. A flow is late if it is not there when the next flow of its chunk starts, or at the end of
/// the epoch by which the demand is met.
///
/// # Errors
/// As [`read()`].
pub fn claim(text: &str, block: u64, cost: &CostModel, second: f64) -> Result<Option<Claim>> {
    if !is_flows(text.trim_start()) {
        return Ok(None);
    }
    let file: FlowFile = json_object("TE-CCL schedule", FIELDS, text)?;
    let demands = file.demands()?;
    let blocks = Blocks::new(&demands)?;
    let count = blocks.block / blocks.parts;
    // By epoch, link and part of a chunk: its targets, with the epoch at whose start it is needed.
    let mut flows: BTreeMap<_, BTreeMap<&Hop, usize>> = BTreeMap::new();
    for (number, demand) in demands.iter().enumerate() {
        for (path, (start, _)) in demand.paths.iter().zip(demand.cut()) {
            let next = path.iter().skip(1).map(|hop| hop.epoch);
            let needed = next.chain([demand.met + 1]);
            for (hop, needed) in path.iter().zip(needed) {
                let chunk = (demand.from, demand.chunk, blocks.number(number), start);
                let targets = flows.entry((hop.epoch, (hop.from, hop.links[0]), chunk));
                let earliest = targets.or_default().entry(hop).or_insert(needed);
                *earliest = needed.min(*earliest);
            }
        }
    }
    let mut flows: Vec<_> = flows.into_iter().collect();
    flows.sort_by_key(|((epoch, ..), targets)| (*epoch, targets.values().min().copied()));
    let epoch_time = file.epoch_time / second;
    // By GPU, what its link leads to, and whether it sends: since when the link is free.
    let mut free: HashMap<(usize, usize, bool), f64> = HashMap::new();
    let mut late = None;
    for ((epoch, (from, link), chunk), targets) in flows {
        let out = free.get(&(from, link, true)).copied().unwrap_or(0.0);
        let start = out.max(epoch as f64 * epoch_time);
        let mut done = start;
        for (hop, needed) in targets {
            let into = free.entry((hop.to, hop.links[1], false)).or_insert(0.0);
            let bytes = u128::from(block) * hop.volume as u128 / (WHOLE * count) as u128;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).max(1);
            let [source, target] = [blocks.ranks[&from], blocks.rank(hop)?];
            let time = cost.transfer(source, target, bytes);
            *into = into.max(start) + time;
            done = done.max(start + time);
            let (there, end) = (
                *into + cost.latency_between(source, target),
                needed as f64 * epoch_time,
            );
            if late.is_none() && there > end * (1.0 + 1e-9) {
                let (text, [there, end]) = (hop.text, [there, end].map(|time| time * second));
                let (source, chunk, ..) = chunk;
                late = Some(format!(
                    "\"Chunk {chunk} from {source} traveled over {text}\" is there at {there:.3e} s, needed at \
                     {end:.3e} s"
                ));
            }
        }
        free.insert((from, link, true), done);
    }
    let time = file.finish_time / second;
    Ok(Some(Claim { time, late }))
}

fn wrong(what: String) -> Result<()> {
    Err(Error::wrong(what))
}

impl FlowFile {
    fn demands(&self) -> Result<Vec<Demand<'_>>> {
        let demands = self.paths.iter().map(|(text, paths)| demand(text, paths));
        demands.collect()
    }

    /// Refuses flows, epochs or a time that are not those of the paths.
    fn ensure_as_claimed(&self, demands: &[Demand]) -> Result<()> {
        let hops = |demand| Demand::hops(demand).map(move |hop| flow(demand, hop));
        let flows: BTreeSet<String> = demands.iter().flat_map(hops).collect();
        let claimed: BTreeSet<String> = self.flows.iter().cloned().collect();
        if let Some(flow) = flows.symmetric_difference(&claimed).next() {
            return wrong(format!(
                "flow {flow:?} is in the paths or in the flows, not in both"
            ));
        }
        let (all, one, time) = (self.epochs, self.epoch_time, self.finish_time);
        if let Some(late) = demands.iter().find(|demand| demand.met >= all) {
            return wrong(format!("{:?} is behind the {all} epochs", late.text));
        }
        if one <= 0.0 {
            return wrong(format!("an epoch takes {one:e} s"));
        }
        if (time - all as f64 * one).abs() <= 1e-9 * time {
            Ok(())
        } else {
            wrong(format!("{all} epochs of {one:e} s are not {time:e} s"))
        }
    }
}

fn flow(demand: &Demand, hop: &Hop) -> String {
    let Demand { chunk, from, .. } = demand;
    format!("Chunk {chunk} from {from} traveled over {}", hop.text)
}

impl Demand<'_> {
    fn hops(&self) -> impl Iterator<Item = &Hop<'_>> {
        self.paths.iter().flatten()
    }

    /// Refuses paths that do not lead to the GPU, that go on before the chunk has come, or that do
    /// not bring all of it in time.
    fn ensure_causal(&self) -> Result<()> {
        let wrong = |what: String| wrong(format!("{:?}: {what}", self.text));
        for path in &self.paths {
            let Some(last) = path.last().filter(|last| last.to == self.to) else {
                return wrong(format!("a path does not end at GPU {}", self.to));
            };
            let (mut at, mut since) = (self.from, None);
            for hop in path {
                let why = if hop.from != at {
                    &format!("starts at another GPU than {at}")
                } else if since.is_some_and(|since| hop.epoch <= since) {
                    "starts before the chunk is there"
                } else if hop.volume != last.volume {
                    "is not all of its path"
                } else if hop.epoch > self.met {
                    "is later"
                } else {
                    (at, since) = (hop.to, Some(hop.epoch));
                    continue;
                };
                return wrong(format!("flow {:?} {why}", hop.text));
            }
        }
        // Each part is rounded, and the last one is what the others leave.
        let mut volumes = self.paths.iter().map(|path| path[0].volume as u64);
        let volume: u64 = volumes.clone().sum();
        let others = volume - volumes.next_back().unwrap_or(0);
        let whole = WHOLE as u64;
        if volume.abs_diff(whole) > self.paths.len() as u64 || others >= whole {
            let part = volume as f64 / whole as f64;
            return wrong(format!("the paths bring {part} of the chunk"));
        }
        Ok(())
    }

    /// By path: where its part of the chunk begins and ends, in millionths.
    fn cut(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut next = 0;
        self.paths.iter().enumerate().map(move |(i, path)| {
            let start = next;
            next += path[0].volume;
            let is_last = i + 1 == self.paths.len();
            (start, if is_last { WHOLE } else { next })
        })
    }
}

/// Refuses flows from a GPU up to the epoch by which it gets the chunk, where the file tells, and
/// flows that take fewer or more epochs than others over the same link.
fn ensure_waits(demands: &[Demand]) -> Result<()> {
    let key = |demand: &Demand, gpu| (demand.from, demand.chunk, gpu);
    // By chunk and GPU: the epoch by which it is there; by link: the epochs after its own that a
    // flow takes there.
    let (mut met, mut transit) = (HashMap::new(), HashMap::new());
    for demand in demands {
        if met.insert(key(demand, demand.to), demand.met).is_some() {
            return Err(Error::malformed(format!(
                "{:?} is there twice",
                demand.text
            )));
        }
    }
    for demand in demands {
        if let [path] = &demand.paths[..] {
            let last = &path[path.len() - 1];
            let epochs = demand.met - last.epoch;
            let other = *transit
                .entry((last.from, last.to, last.links))
                .or_insert(epochs);
            if other != epochs {
                let flow = flow(demand, last);
                return wrong(format!(
                    "flow {flow:?} is there {epochs} epochs later, and another one over this link {other}"
                ));
            }
        }
        for hop in demand.hops() {
            let epoch = met.get(&key(demand, hop.from));
            if let Some(epoch) = epoch.filter(|&&epoch| hop.epoch <= epoch) {
                let (flow, gpu) = (flow(demand, hop), hop.from);
                return wrong(format!(
                    "flow {flow:?}: GPU {gpu} gets the chunk by the end of epoch {epoch}"
                ));
            }
        }
    }
    Ok(())
}

/// The blocks of the collective, in parts of chunks.
struct Blocks {
    kind: Kind,
    /// By GPU: its rank.
    ranks: BTreeMap<usize, usize>,
    /// By source and, of an alltoall, target: the numbers of the chunks.
    chunks: BTreeMap<(usize, usize), BTreeSet<usize>>,
    /// Parts of a chunk, and of a block.
    parts: usize,
    block: usize,
}

impl Blocks {
    fn new(demands: &[Demand]) -> Result<Blocks> {
        let gpus: BTreeSet<usize> = demands.iter().flat_map(|d| [d.from, d.to]).collect();
        let p = gpus.len();
        let mut receivers: HashMap<(usize, usize), usize> = HashMap::new();
        let mut part = WHOLE;
        for demand in demands {
            *receivers.entry((demand.from, demand.chunk)).or_default() += 1;
            for path in demand.cut() {
                part = gcd(gcd(part, path.0), path.1);
            }
        }
        let all = |n: usize| receivers.values().all(|&count| count == n);
        let kind = match (all(p.saturating_sub(1)), all(1)) {
            (true, _) => Kind::Allgather,
            (_, true) => Kind::Alltoall,
            _ => return Err(Error::malformed(NO_COLLECTIVE)),
        };
        let mut blocks = Blocks {
            kind,
            ranks: gpus.into_iter().zip(0..).collect(),
            chunks: BTreeMap::new(),
            parts: WHOLE / part,
            block: 0,
        };
        for demand in demands {
            let block = blocks.of(demand);
            blocks.chunks.entry(block).or_default().insert(demand.chunk);
        }
        let count = blocks.chunks.values().next().map_or(0, BTreeSet::len);
        let equal = blocks.chunks.values().all(|chunks| chunks.len() == count);
        let targets = if kind == Kind::Allgather { 1 } else { p - 1 };
        if !equal || blocks.chunks.len() != p * targets || p < 2 {
            return Err(Error::malformed(NO_COLLECTIVE));
        }
        blocks.block = times(count, blocks.parts)?;
        Ok(blocks)
    }

    fn of(&self, demand: &Demand) -> (usize, usize) {
        match self.kind {
            Kind::Allgather => (demand.from, demand.from),
            _ => (demand.from, demand.to),
        }
    }

    /// The number of a demand among those whose flows it does not share: those of an allgather
    /// share flows.
    fn number(&self, demand: usize) -> usize {
        match self.kind {
            Kind::Allgather => 0,
            _ => demand,
        }
    }

    /// The rank that a flow leads to.
    fn rank(&self, hop: &Hop) -> Result<usize> {
        let unknown = || {
            let what = format!("flow {:?}: no demand names GPU {}", hop.text, hop.to);
            Error::malformed(what)
        };
        self.ranks.get(&hop.to).copied().ok_or_else(unknown)
    }

    fn schedule(&self, demands: &[Demand], options: &ReadOptions) -> Result<Schedule> {
        let p = self.ranks.len();
        let in_place = self.kind == Kind::Allgather;
        let buffers = Buffers {
            kind: self.kind,
            in_place,
            chunks: times(p, self.block)?,
            ranks: p,
        };
        let memory = (0..p).map(|rank| buffers.of_rank(rank, None, [0; 3]));
        let memory: Vec<_> = memory.collect::<Result<_>>()?;
        let mut len: Vec<usize> = memory.iter().map(|memory| memory.len).collect();
        let mut messages = BTreeSet::new();
        for (number, demand) in demands.iter().enumerate() {
            let [source, target] = [demand.from, demand.to].map(|gpu| self.ranks[&gpu]);
            let chunks = &self.chunks[&self.of(demand)];
            let chunk = chunks.range(..demand.chunk).count() * self.parts;
            for (path, (start, end)) in demand.paths.iter().zip(demand.cut()) {
                let [start, size] = [start, end - start].map(|n| n * self.parts / WHOLE);
                let offset = chunk + start;
                let block = if in_place { 0 } else { target * self.block };
                let mut at = memory[source].starts[0] + block + offset;
                for hop in path {
                    let rank = self.rank(hop)?;
                    let to = if in_place || hop.to == demand.to {
                        memory[rank].starts[1] + source * self.block + offset
                    } else {
                        len[rank] = sum(len[rank], size, "the buffer of a rank")?;
                        len[rank] - size
                    };
                    let number = self.number(number);
                    messages.insert((hop.epoch, number, hop, [at, to], size));
                    at = to;
                }
            }
        }
        let mut programs: Vec<Vec<Step>> = vec![Vec::new(); p];
        let span = |at: usize, size: usize| -> Result<Span> {
            let [at, size] = [at, size].map(|parts| times(parts, options.chunk));
            Ok(Span::new(at?, size?))
        };
        if !in_place {
            for (rank, program) in programs.iter_mut().enumerate() {
                let own = [0, 1].map(|buffer| memory[rank].starts[buffer] + rank * self.block);
                let [from, to] = own.map(|at| span(at, self.block));
                program.push(Step::copy(from?, to?));
            }
        }
        // By rank and direction: the ports of its links.
        let mut ports: Vec<[HashMap<usize, usize>; 2]> = vec![Default::default(); p];
        let given = options.ported.map_or(usize::MAX, |k| k.max(1));
        for &(_, _, hop, [from, to], size) in &messages {
            let ranks = [hop.from, hop.to].map(|gpu| self.ranks[&gpu]);
            let [out, into] = [0, 1].map(|way| {
                let ports = &mut ports[ranks[way]][way];
                let next = ports.len();
                *ports.entry(hop.links[way]).or_insert(next) % given
            });
            let [source, target] = ranks;
            programs[source].push(Step::send(target, span(from, size)?).on_port(out));
            programs[target].push(Step::recv(source, span(to, size)?).on_port(into));
        }
        let needed = ports.iter().flatten().map(HashMap::len).max().unwrap_or(1);
        let ports = Ports::BI.with_k(options.ported.unwrap_or(needed));
        ports.validate()?;
        let layout = memory.iter().enumerate().map(|(rank, memory)| {
            let len = times(len[rank], options.chunk)?;
            buffers.layout(rank, None, memory, len, options.chunk)
        });
        let layout = layout.collect::<Result<_>>()?;
        Schedule::new(ports, self.kind.with_root(0), layout, programs)
    }
}

const FIELDS: &str = "7-Flows and 8-Chunk paths";
const NO_COLLECTIVE: &str =
    "TE-CCL schedule: its demands are those of no allgather and no alltoall of equal blocks";

fn demand<'t>(text: &'t str, paths: &'t [PathText]) -> Result<Demand<'t>> {
    let malformed =
        |text: &str| Error::malformed(format!("TE-CCL schedule: {text:?} is none of its texts"));
    let words: Vec<&str> = text.split(' ').collect();
    let number = |i: usize| words.get(i).and_then(|word| word.parse::<usize>().ok());
    let [to, chunk, from, met] = [2, 5, 7, 11].map(|i| number(i).unwrap_or(usize::MAX));
    let expected = format!("Demand at {to} for chunk {chunk} from {from} met by epoch {met}");
    if text != expected || from == to {
        return Err(malformed(text));
    }
    let hop_of = |text| hop(text).ok_or_else(|| malformed(text));
    let mut found: Vec<Vec<Hop>> = Vec::new();
    for part in paths {
        match part {
            PathText::Hop(text) if found.is_empty() => found.push(vec![hop_of(text)?]),
            PathText::Hop(text) => found[0].push(hop_of(text)?),
            PathText::Path(hops) => {
                let hops = hops.iter().map(|(epoch, text)| {
                    let hop = hop(text).filter(|hop| hop.epoch == *epoch);
                    hop.ok_or_else(|| malformed(text))
                });
                found.push(hops.collect::<Result<_>>()?);
            }
        }
    }
    Ok(Demand {
        text,
        from,
        chunk,
        to,
        met,
        paths: found,
    })
}

fn hop(text: &str) -> Option<Hop<'_>> {
    let words: Vec<&str> = text.split(' ').collect();
    let (ends, rest) = words.split_first()?;
    let (from, to) = ends.split_once("->")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    let (volume, rest) = match rest {
        ["with", "volume", volume, rest @ ..] => (volume.parse::<f64>().ok()?, rest),
        _ => (1.0, rest),
    };
    let ["in", "epoch", epoch, rest @ ..] = rest else {
        return None;
    };
    let links = match rest {
        [] => [to, from],
        ["via", "switches", switches @ ..] => {
            let switches = switches.concat();
            let numbers = switches.split("->").map(|switch| switch.parse().ok());
            let numbers: Vec<usize> = numbers.collect::<Option<_>>()?;
            [*numbers.first()?, *numbers.last()?]
        }
        _ => return None,
    };
    let volume = (volume * WHOLE as f64).round();
    let fits = (1.0..=WHOLE as f64).contains(&volume) && from != to;
    let epoch = epoch.parse().ok()?;
    fits.then_some(Hop {
        epoch,
        from,
        to,
        volume: truncated(volume),
        links,
        text,
    })
}
