//! The programs of a plan's ranks: remote accesses become messages.

use std::collections::HashMap;

use super::graph::{PlanGraph, PlanNode};
use super::parse::{OpName, Place, Plan};
use crate::blocks::{BufferStarts, extend, times};
use crate::msccl::{ReadOptions, schedule_name};
use crate::sum;
use oneport::error::{Error, Result};
use oneport::machine::Ports;
use oneport::schedule::collective::Collective;
use oneport::schedule::{Layout, Order, Schedule, Span, Step};

impl Plan {
    /// By rank: the first part of input, output, scratch and packets, if there are any, and the
    /// end.
    pub(super) fn starts(&self) -> Result<Vec<[usize; 5]>> {
        let memory = self.memory()?.into_iter().zip(&self.gpus);
        let of_rank = memory.map(|(memory, gpu)| {
            let [i, o, s] = memory.starts;
            let packets = memory.len;
            let scratch = if self.has_packets { gpu.sizes()[2] } else { 0 };
            let end = sum(packets, scratch, "the buffer of a rank")?;
            let starts = [i, o, s, packets, end].map(|chunk| times(chunk, self.parts));
            let [i, o, s, packets, end] = starts;
            Ok([i?, o?, s?, packets?, end?])
        });
        of_rank.collect()
    }

    fn memory(&self) -> Result<Vec<BufferStarts>> {
        let gpus = self.gpus.iter().enumerate();
        let of_rank = gpus.map(|(rank, gpu)| match &self.buffers {
            Some(buffers) => buffers.of_rank(rank, None, gpu.sizes()),
            None => BufferStarts::in_turn(gpu.sizes()),
        });
        of_rank.collect()
    }
}

pub(super) struct Programs<'p> {
    graph: &'p PlanGraph<'p>,
    /// Elements of a part of a chunk.
    part: usize,
    starts: Vec<[usize; 5]>,
    /// By rank, with the numbers that the plan gives them.
    steps: Vec<Vec<(Option<u32>, Step)>>,
    /// By rank: parts of its buffer that are in use, with places for what a switch reduces.
    len: Vec<usize>,
    ported: Option<usize>,
    /// Whether ports are those of the plan.
    kept: bool,
    /// By rank and direction: the ports of thread blocks.
    ports: Vec<[HashMap<(usize, usize), usize>; 2]>,
}

impl<'p> Programs<'p> {
    pub(super) fn new(graph: &'p PlanGraph<'p>, options: &ReadOptions) -> Result<Programs<'p>> {
        options.ensure_chunks()?;
        let (starts, ranks) = (graph.plan.starts()?, graph.plan.gpus.len());
        Ok(Programs {
            graph,
            part: options.chunk,
            len: starts.iter().map(|starts| starts[4]).collect(),
            starts,
            steps: vec![Vec::new(); ranks],
            ported: options.ported,
            kept: graph.numbered
                && (graph.plan.ports)
                    .is_some_and(|own| options.ported.is_none_or(|k| own.k() <= k)),
            ports: vec![Default::default(); ranks],
        })
    }

    /// The schedule with the nodes in the given order.
    pub(super) fn schedule(mut self, order: &[u32]) -> Result<Schedule> {
        let plan = self.graph.plan;
        for &i in order {
            self.add(&self.graph.nodes[i as usize])?;
        }
        let used = self.ports.iter().flatten().map(HashMap::len).max();
        let own = plan.ports.filter(|_| self.kept);
        let k = self.ported.or(own.map(Ports::k)).or(used);
        let ports = plan.ports.unwrap_or(Ports::BI);
        let ports = ports.with_k(k.unwrap_or(1).max(1));
        ports.validate()?;
        let mut layout = Vec::with_capacity(self.len.len());
        for (rank, (memory, &len)) in plan.memory()?.iter().zip(&self.len).enumerate() {
            let len = times(len, self.part)?;
            let chunk = times(plan.parts, self.part)?;
            layout.push(match &plan.buffers {
                Some(buffers) => buffers.layout(rank, None, memory, len, chunk)?,
                None => Layout {
                    len,
                    ..Layout::default()
                },
            });
        }
        let collective = match &plan.buffers {
            Some(buffers) => buffers.kind.with_root(0),
            // No result is known that could be proved.
            None => Collective::Multicast {
                root: 0,
                targets: Vec::new(),
            },
        };
        let programs = self.steps.into_iter().enumerate().map(merged);
        let programs = programs.collect::<Result<_>>()?;
        let schedule = Schedule::new(ports, collective, layout, programs)?;
        let kind = plan
            .buffers
            .as_ref()
            .map_or("", |buffers| buffers.kind.name());
        let name = schedule_name(&plan.name, &format!("oneport {kind} "));
        name.into_iter().try_fold(schedule, Schedule::with_name)
    }

    /// Adds the steps of a node, at all ranks.
    fn add(&mut self, node: &PlanNode) -> Result<()> {
        let (src, dst) = (&node.src, &node.dst);
        let firsts = |operands: &[Vec<Place>]| operands.iter().map(|places| places[0]).collect();
        let (sources, into, targets): (Vec<Place>, Place, Vec<Place>) = match node.name {
            OpName::Glres => (src[0].clone(), self.own_place(node)?, dst[0].clone()),
            name if name.reduces() => (firsts(src), dst[0][0], firsts(&dst[1..])),
            _ => {
                for (i, places) in dst.iter().enumerate() {
                    let from = src[i.min(src.len() - 1)][0];
                    for &to in places {
                        self.transfer(node, from, to)?;
                    }
                }
                return Ok(());
            }
        };
        // What is combined in its place need not be copied, what this rank has need not be sent.
        let is_kept = |from: &Place| match into.buffer {
            OWN => from.rank == into.rank,
            _ => *from == into,
        };
        let kept = sources.iter().position(is_kept).unwrap_or(0);
        let Some(&first) = sources.get(kept) else {
            return Ok(());
        };
        self.transfer(node, first, into)?;
        for (_, &from) in sources.iter().enumerate().filter(|&(i, _)| i != kept) {
            self.combine(node, from, into)?;
        }
        targets
            .iter()
            .try_for_each(|&to| self.transfer(node, into, to))
    }

    /// A place for the sum that a switch makes.
    fn own_place(&mut self, node: &PlanNode) -> Result<Place> {
        let (rank, len) = (
            node.at.gpu,
            node.src[0].first().map_or(0, |place| place.len),
        );
        let start = self.len[rank];
        self.len[rank] = sum(start, len, "the buffer of a rank")?;
        Ok(Place {
            rank,
            buffer: OWN,
            start,
            len,
        })
    }

    /// Copies from a place to another, by a message if they are those of two ranks.
    fn transfer(&mut self, node: &PlanNode, from: Place, to: Place) -> Result<()> {
        let step = |from, to| Step::copy(from, to);
        self.step(node, from, to, step, Step::recv)
    }

    /// Combines what is at a place with what is at another, and stores it there.
    fn combine(&mut self, node: &PlanNode, from: Place, to: Place) -> Result<()> {
        let order = if self.graph.plan.op(node.at).theirs_first {
            Order::TheirsFirst
        } else {
            Order::MineFirst
        };
        let step = |from, to| Step::combine(from, to, order);
        let recv = |peer, to| Step::recv_combine(peer, to, order);
        self.step(node, from, to, step, recv)
    }

    fn step(
        &mut self,
        node: &PlanNode,
        from: Place,
        to: Place,
        local: impl FnOnce(Span, Span) -> Step,
        recv: impl FnOnce(usize, Span) -> Step,
    ) -> Result<()> {
        let (src, dst) = (self.span(from)?, self.span(to)?);
        if src.len == 0 || from.rank == to.rank && src == dst {
            return Ok(());
        }
        if from.rank == to.rank {
            if src.overlaps(dst) {
                let (at, name) = (node.at, node.name);
                return Err(Error::malformed(format!(
                    "{at} ({name:?}): source and destination overlap"
                )));
            }
            let number = self.graph.number(node, from.rank);
            self.steps[from.rank].push((number, local(src, dst)));
            return Ok(());
        }
        let [out, into] = [(from.rank, 0), (to.rank, 1)].map(|(rank, way)| {
            if self.kept {
                let given = self.graph.plan.op(node.at).port.get(way);
                return given.copied().unwrap_or(0);
            }
            let ports = &mut self.ports[rank][way];
            let next = ports.len();
            let port = *ports.entry((node.at.gpu, node.at.block)).or_insert(next);
            port % self.ported.map_or(usize::MAX, |k| k.max(1))
        });
        let [sent, received] = [from.rank, to.rank].map(|rank| self.graph.number(node, rank));
        let send = Step::send(to.rank, src).on_port(out);
        let receive = recv(from.rank, dst).on_port(into);
        self.steps[from.rank].push((sent, send));
        self.steps[to.rank].push((received, receive));
        Ok(())
    }

    fn span(&self, place: Place) -> Result<Span> {
        let start = match place.buffer {
            OWN => 0,
            buffer => self.starts[place.rank][buffer],
        };
        let start = times(sum(start, place.start, "the buffer of a rank")?, self.part)?;
        Ok(Span::new(start, times(place.len, self.part)?))
    }
}

/// The program of a rank, in the order of the numbers of its steps. Those with the same number are
/// parts of one step.
fn merged((rank, mut steps): (usize, Vec<(Option<u32>, Step)>)) -> Result<Vec<Step>> {
    steps.sort_by_key(|&(number, _)| number);
    let mut program: Vec<Step> = Vec::with_capacity(steps.len());
    let mut last = None;
    for (number, step) in steps {
        if number.is_none() || number != last {
            last = number;
            program.push(step);
            continue;
        }
        if !program.last_mut().is_some_and(|whole| extend(whole, &step)) {
            return Err(Error::malformed(format!(
                "gpu {rank}: operations with n {} are parts of different steps",
                number.unwrap_or(0)
            )));
        }
    }
    Ok(program)
}

/// The buffer of places beyond those of the plan.
const OWN: usize = 4;
