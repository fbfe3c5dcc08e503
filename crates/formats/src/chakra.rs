//! Chakra execution traces: what each rank sends, receives and computes, for ASTRA-sim.
//!
//! ```text
//! trace = metadata { node }               one file for each rank, each part behind its length
//! metadata = GlobalMetadata { version }
//! node  = Node { id, name, type, ctrl_deps, data_deps, duration_micros, attr }
//! type  = COMP_NODE | COMM_SEND_NODE | COMM_RECV_NODE       and others, which are refused
//! attr  = is_cpu_op, comm_size, comm_src, comm_dst, comm_tag
//! ```
//!
//! Protocol buffers, as `schema/protobuf/et_def.proto` of <https://github.com/mlcommons/chakra> at
//! commit 21585d8 (2025) defines them; attributes have the types of ASTRA-sim's own traces
//! (<https://github.com/astra-sim/astra-sim> at 518bd51).
//!
//! A rank of ASTRA-sim has one send in flight, one computation, and any number of receives. On its
//! analytical network, congestion-aware and `FullyConnected`, a message arrives after the latency
//! and its size over the bandwidth, cut to whole nanoseconds; then its send is done. Nobody waits
//! for a receiver, and receivers take any number of messages at once. So its times are those of the
//! model where every message is taken as it comes: that is decided when a trace is written.
//!
//! It stops where a message keeps its link for less than a nanosecond: such costs are refused, but
//! for a beta of 0, where a message keeps its link for the last nanosecond of alpha.

use prost::{Message, Oneof};

use crate::goal::{GoalOp, OpKind, RankGraph, schedule_of_graphs};
use crate::{WrittenFolder, computation, ensure_own_ports, events, tags};
use oneport::error::{Error, Result};
use oneport::internal::numbers::{bytes, truncated};
use oneport::machine::CostModel;
use oneport::rules::{End, Event, LocalOrder, OrderScratch};
use oneport::schedule::{Schedule, Step};
use oneport::simulate::Simulation;

#[derive(Clone, PartialEq, Message)]
struct GlobalMetadata {
    #[prost(string, tag = "1")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct TraceNode {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    attr: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "AttributeValue", tags = "7, 9, 11, 13, 27")]
    value: Option<AttributeValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum AttributeValue {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(bool, tag = "27")]
    Bool(bool),
}

const METADATA: i32 = 1;
const COMP: i32 = 4;
const SEND: i32 = 5;
const RECV: i32 = 6;

/// The version of Chakra whose definitions these are.
const VERSION: &str = "0.0.4";

/// How a schedule is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ChakraOptions {
    /// The costs.
    pub cost: CostModel,
    /// Seconds of one time unit of the costs.
    pub second: f64,
}

const COMMAND: &str = "AstraSim_Analytical_Congestion_Aware --workload-configuration=trace \
    --network-configuration=network.yml --system-configuration=SYSTEM.json \
    --remote-memory-configuration=MEMORY.json";

/// Writes a schedule: `trace.RANK.et` for each rank, and `network.yml`, the analytical network with
/// the costs. Time and memory are linear in the number of steps, as those of simulating it, and in
/// the number of messages that wait for each other.
///
/// # Errors
/// Several ports of a kind (a rank has one send in flight), messages without elements, late ranks,
/// overlap, shared ports, costs in pieces or that differ between links, messages that keep a link
/// for less than a nanosecond, and a schedule that the model cannot time.
pub fn write(schedule: &Schedule, options: &ChakraOptions) -> Result<WrittenFolder> {
    ensure_own_ports(schedule, "Chakra")?;
    let cost = &*schedule.collective().kind().costs(&options.cost);
    let empty = |s: &Step| s.peer().is_some() && s.is_empty();
    let why = if schedule.ports().k() > 1 {
        "a rank has one send in flight, these have several ports (take --ported 1)"
    } else if schedule.programs().iter().flatten().any(empty) {
        "a message has one byte at least (choose sizes that leave none empty)"
    } else if cost.links().is_some() || cost.size_pieces().is_some() {
        "its network has one latency and one bandwidth (give alpha and beta)"
    } else if cost.overlaps() || (0..schedule.ranks()).any(|rank| cost.arrival(rank) > 0.0) {
        "ranks start together there, and here computation and communication take turns"
    } else {
        ""
    };
    if !why.is_empty() {
        return Err(Error::usage(format!("ASTRA-sim: {why}")));
    }
    let network = Network::of(schedule, cost, options.second * 1e9)?;
    let simulation = schedule.simulate(&options.cost)?;
    let (mut files, mut same, mut rounded) = (Vec::new(), network.has_times, false);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for (rank, tags) in tags(schedule).iter().enumerate() {
        let program = &schedule.programs()[rank];
        order.analyse(program, schedule.ports(), false, &mut scratch)?;
        let mut trace = Trace::new(schedule, rank, options);
        for (i, (step, &tag)) in program.iter().zip(tags).enumerate() {
            for (event, before) in events(i, step, &order) {
                match step.peer() {
                    Some(peer) if !event.is_computed() => {
                        trace.transfer(event, (peer, tag), &before, &simulation);
                    }
                    _ => trace.compute(event, &before, &simulation),
                }
            }
        }
        same &= trace.is_same;
        rounded |= trace.is_rounded;
        files.push((format!("trace.{rank}.et"), trace.file));
    }
    let Network {
        bandwidth, latency, ..
    } = network;
    let network = format!(
        "topology: [ FullyConnected ]\nnpus_count: [ {} ]\nbandwidth: [ {bandwidth:?} ]  # 2^30 bytes/s\n\
         latency: [ {latency:?} ]  # ns\n",
        schedule.ranks(),
    );
    files.push(("network.yml".into(), network.into_bytes()));
    let mut notes = Vec::new();
    if rounded {
        notes.push("times of computations are rounded to whole microseconds".into());
    }
    notes.push(if same && !rounded {
        "ASTRA-sim computes the model's time, but that it cuts messages to whole nanoseconds".into()
    } else {
        "ASTRA-sim may compute another time than the model: there no sender waits for its receiver, and a \
         rank receives several messages at once"
            .into()
    });
    let command = COMMAND.into();
    Ok(WrittenFolder {
        files,
        command,
        notes,
    })
}

/// A network that takes as long for a message as the model.
struct Network {
    /// In 2^30 bytes a second, and nanoseconds.
    bandwidth: f64,
    latency: f64,
    /// Whether all messages take as long as in the model.
    has_times: bool,
}

impl Network {
    /// With costs in units of `ns` nanoseconds.
    fn of(schedule: &Schedule, cost: &CostModel, ns: f64) -> Result<Network> {
        const GIB: f64 = (1u64 << 30) as f64;
        let sends = schedule.programs().iter().flatten().filter(|s| s.is_send());
        let sizes = || {
            sends
                .clone()
                .map(|s| bytes(s.len(), schedule.element_bytes()) as f64)
        };
        let shortest = sizes().reduce(f64::min).unwrap_or(1.0);
        let longest = sizes().fold(shortest, f64::max);
        let latency = (cost.rates().alpha + cost.latency_between(0, 0)) * ns;
        let (bandwidth, latency) = match cost.rates().beta * ns {
            0.0 => (shortest * 1e9 / GIB, latency - 1.0),
            beta => (1e9 / beta / GIB, latency),
        };
        if shortest / (bandwidth * GIB / 1e9) < 1.0 || latency < 0.0 {
            return Err(Error::usage(
                "ASTRA-sim: a message keeps its link for a nanosecond at least (take more bytes, or greater costs)",
            ));
        }
        let has_times = cost.rates().beta > 0.0 || longest < 2.0 * shortest;
        Ok(Network {
            bandwidth,
            latency,
            has_times,
        })
    }
}

/// The trace of one rank, as it grows.
struct Trace<'a> {
    schedule: &'a Schedule,
    rank: usize,
    options: &'a ChakraOptions,
    file: Vec<u8>,
    next: u64,
    /// By event: the nodes after which it is done.
    ends: Vec<Vec<u64>>,
    /// By event: when it is done in the model.
    done: Vec<f64>,
    /// Whether all is done when it is in the model, if all before it is.
    is_same: bool,
    is_rounded: bool,
}

impl Trace<'_> {
    fn new<'a>(schedule: &'a Schedule, rank: usize, options: &'a ChakraOptions) -> Trace<'a> {
        let version = VERSION.into();
        let events = 2 * schedule.programs()[rank].len();
        Trace {
            schedule,
            rank,
            options,
            file: GlobalMetadata { version }.encode_length_delimited_to_vec(),
            next: 0,
            ends: vec![Vec::new(); events],
            done: vec![0.0; events],
            is_same: true,
            is_rounded: false,
        }
    }

    /// Adds a transfer to or from rank `peer`, behind what is `before` it.
    fn transfer(
        &mut self,
        event: Event,
        (peer, tag): (usize, usize),
        before: &[Event],
        simulation: &Simulation,
    ) {
        let i = event.step();
        let step = &self.schedule.programs()[self.rank][i];
        let (deps, ready) = self.after(before);
        let (mut sent, mut done) = (0.0, 0.0);
        if let Some(node) = simulation.prepared().node(self.rank, event) {
            sent = simulation.finish_at(node, End::Sender);
            done = simulation.finish_at(node, End::Receiver);
            if step.is_send() {
                self.is_same &= equal(simulation.start_at(node, End::Sender), ready);
            }
        }
        let (kind, end) = if step.is_send() {
            (SEND, "comm_dst")
        } else {
            self.is_same &= equal(done, ready.max(sent));
            (RECV, "comm_src")
        };
        let int32 = |n: usize| AttributeValue::Int32(i32::try_from(n).unwrap_or(i32::MAX));
        let size = bytes(step.len(), self.schedule.element_bytes());
        let size = AttributeValue::Int64(i64::try_from(size).unwrap_or(i64::MAX));
        let attr = vec![
            Attribute::of("is_cpu_op", AttributeValue::Bool(false)),
            Attribute::of("comm_size", size),
            Attribute::of(end, int32(peer)),
            Attribute::of("comm_tag", int32(tag)),
        ];
        self.done[event.index()] = if step.is_send() { sent } else { done };
        self.node(
            event,
            TraceNode {
                kind,
                attr,
                ..TraceNode::of(i, step, deps)
            },
        );
    }

    /// Adds a computation behind what is `before` it, if it takes time.
    fn compute(&mut self, event: Event, before: &[Event], simulation: &Simulation) {
        let i = event.step();
        let step = &self.schedule.programs()[self.rank][i];
        let (deps, ready) = self.after(before);
        let (cost, element_bytes) = (&self.options.cost, self.schedule.element_bytes());
        let time = computation(cost, self.rank, step, element_bytes);
        let node = simulation.prepared().node(self.rank, event);
        let done = node.map_or(ready, |node| simulation.finish(node));
        self.is_same &= equal(done, ready + time);
        self.done[event.index()] = done;
        if time == 0.0 {
            // ASTRA-sim takes a nanosecond for no time.
            self.ends[event.index()] = deps;
            return;
        }
        let micros = time * self.options.second * 1e6;
        self.is_rounded |= (micros - micros.round()).abs() > 1e-9 * micros;
        let node = TraceNode {
            kind: COMP,
            duration_micros: truncated(micros.round()) as u64,
            attr: vec![Attribute::of("is_cpu_op", AttributeValue::Bool(false))],
            ..TraceNode::of(i, step, deps)
        };
        self.node(event, node);
    }

    /// The nodes that these events wait for, and when all of them are done in the model.
    fn after(&self, events: &[Event]) -> (Vec<u64>, f64) {
        let indices = || events.iter().map(|event| event.index());
        let mut nodes: Vec<u64> = indices()
            .flat_map(|i| self.ends[i].iter().copied())
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        (nodes, indices().map(|i| self.done[i]).fold(0.0, f64::max))
    }

    fn node(&mut self, event: Event, node: TraceNode) {
        let id = self.next;
        self.next += 1;
        self.ends[event.index()] = vec![id];
        self.file
            .extend(TraceNode { id, ..node }.encode_length_delimited_to_vec());
    }
}

/// Whether two model times are the same, but for rounding.
fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

impl Attribute {
    fn of(name: &str, value: AttributeValue) -> Attribute {
        let (name, value) = (name.into(), Some(value));
        Attribute { name, value }
    }
}

impl TraceNode {
    fn of(i: usize, step: &Step, data_deps: Vec<u64>) -> TraceNode {
        let name = format!("step {i}: {}", step.name());
        TraceNode {
            name,
            data_deps,
            ..TraceNode::default()
        }
    }

    /// The operation, with its bytes or its time in nanoseconds, or why it is none.
    fn op(&self, ranks: usize) -> Result<(OpKind, usize), String> {
        let (tag, nic) = (Some(self.number("comm_tag").unwrap_or(0)), 0);
        let peer = |name: &str| {
            let peer = self.number(name).filter(|&peer| peer < ranks);
            peer.ok_or_else(|| format!("its {name} is none of {ranks} ranks"))
        };
        let size = self.number("comm_size").filter(|&size| size > 0);
        let size = size.ok_or("it has no comm_size");
        Ok(match self.kind {
            SEND => (
                OpKind::Send {
                    to: peer("comm_dst")?,
                    tag,
                    nic,
                },
                size?,
            ),
            RECV => (
                OpKind::Recv {
                    from: peer("comm_src")?,
                    tag,
                    nic,
                },
                size?,
            ),
            COMP => {
                let micros = usize::try_from(self.duration_micros).ok();
                let time = micros.and_then(|n| n.checked_mul(1000));
                (OpKind::Calc, time.ok_or("its duration is too long")?)
            }
            METADATA => (OpKind::Calc, 0),
            _ => return Err("only sends, receives and computations are read".into()),
        })
    }

    /// The value of an attribute that is a whole number.
    fn number(&self, name: &str) -> Option<usize> {
        let attribute = self.attr.iter().find(|attribute| attribute.name == name)?;
        match attribute.value.as_ref()? {
            AttributeValue::Int32(n) => usize::try_from(*n).ok(),
            AttributeValue::Int64(n) => usize::try_from(*n).ok(),
            AttributeValue::Uint32(n) => usize::try_from(*n).ok(),
            AttributeValue::Uint64(n) => usize::try_from(*n).ok(),
            AttributeValue::Bool(_) => None,
        }
    }
}

/// Reads the traces of all ranks, in their order, as [`goal`](crate::goal::read()) reads a file of
/// another tool: they have no data, but sizes, tags and what waits for what. A computation of `n`
/// microseconds copies `1000 n` elements, so that it takes its time with `gamma_copy` 1 ns.
///
/// # Errors
/// Names rank and node: a text that is no trace, a node that is neither a send, a receive nor a
/// computation, a dependency on a node that is not there, or on itself; and what GOAL's reader
/// refuses.
pub fn read(traces: &[Vec<u8>]) -> Result<Schedule> {
    let graphs = traces
        .iter()
        .enumerate()
        .map(|(rank, trace)| graph(rank, trace, traces.len()));
    let graphs: Vec<RankGraph> = graphs.collect::<Result<_>>()?;
    schedule_of_graphs(&graphs, |rank, node| format!("rank {rank}, node {node}"))
}

fn graph(rank: usize, mut trace: &[u8], ranks: usize) -> Result<RankGraph<'static>> {
    let malformed = |what: String| Error::malformed(format!("rank {rank}: {what}"));
    let no_trace = |e: prost::DecodeError| malformed(format!("no Chakra trace: {e}"));
    GlobalMetadata::decode_length_delimited(&mut trace).map_err(no_trace)?;
    let (mut graph, mut places) = (RankGraph::default(), std::collections::HashMap::new());
    let mut waits = Vec::new();
    while !trace.is_empty() {
        let node = TraceNode::decode_length_delimited(&mut trace).map_err(|e| {
            let nodes = graph.ops.len();
            malformed(format!(
                "no Chakra trace behind its first {nodes} nodes: {e}"
            ))
        })?;
        let id = node.id;
        let at = |what: &str| malformed(format!("node {id}: {what}"));
        let (kind, size) = node.op(ranks).map_err(|what| at(&what))?;
        let place = graph.ops.len();
        if places.insert(id, place).is_some() {
            return Err(at("it is there twice"));
        }
        let line = usize::try_from(id).unwrap_or(usize::MAX);
        graph.ops.push(GoalOp { kind, size, line });
        let deps = node.ctrl_deps.iter().chain(&node.data_deps);
        waits.extend(deps.map(|&dep| (place, id, dep)));
    }
    // By operation: the send behind which those are that wait for it.
    let mut behind: Vec<Option<usize>> = vec![None; graph.ops.len()];
    for (place, id, dep) in waits {
        let Some(&before) = places.get(&dep) else {
            let what = format!("node {id}: it waits for node {dep}, which is not there");
            return Err(malformed(what));
        };
        let receives = |i: usize| matches!(graph.ops[i].kind, OpKind::Recv { .. });
        let sent = matches!(graph.ops[before].kind, OpKind::Send { .. }).then_some(before);
        // A message comes whatever its receive waits for: sends hold up what waits for the receive.
        if receives(place) {
            behind[place] = behind[place].max(sent.or(behind[before]));
        } else {
            let more = behind[before].filter(|&send| send != place);
            graph.requires.extend(more.map(|send| (place, send, 0)));
        }
        if sent.is_none() || !receives(place) {
            graph.requires.push((place, before, 0));
        }
    }
    Ok(graph)
}
