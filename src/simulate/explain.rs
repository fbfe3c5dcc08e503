//! Why a step starts no earlier: what it waits for, back to the start.

use super::{Prepared, Simulation};
use crate::rules::{End, Event, LocalOrder, share_port};
use crate::schedule::{Schedule, Span, Step};

/// A step's transfer or computation, and why it starts no earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// The rank.
    pub rank: usize,
    /// The step, an index into the rank's program.
    pub step: usize,
    /// Whether it is a computation.
    pub computes: bool,
    /// When what it waits for is over: the rank has arrived, the next link has ended, or, of
    /// [`WaitReason::Partner`], the other end is ready.
    pub ready: f64,
    /// When it starts there: later than `ready` by the latency, once or, where the sender has to
    /// hear of the receiver first, twice.
    pub start: f64,
    /// When it ends there.
    pub end: f64,
    /// Why it starts no earlier.
    pub reason: WaitReason,
}

/// Why a step starts no earlier. All but the first wait for the next link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// It waits for nothing but its rank's arrival.
    Arrival,
    /// The other end of the transfer is ready no earlier.
    Partner,
    /// It reads what that writes.
    Data,
    /// It overwrites what that reads or writes.
    Overwrites,
    /// That keeps its port.
    Port,
    /// That keeps a port which several ranks share.
    SharedPort,
    /// One of the two is a computation, which is alone on its rank.
    Computation,
}
type NodeEnd = (usize, End);
type Binding = (End, WaitReason, Option<NodeEnd>);

/// Why each step of a simulated schedule starts no earlier: see [`Simulation::reasons`].
#[derive(Debug)]
pub struct Reasons<'a> {
    simulation: &'a Simulation,
    schedule: &'a Schedule,
    /// By node: the events of its ranks that its ends are.
    events: Vec<[Event; 2]>,
}

impl Simulation {
    /// The chain of reasons, backwards, why a rank finishes no earlier, or one of its steps, or, by
    /// default, the whole schedule, which must be the simulated one. Empty if there is no such
    /// step, or if a rank without steps arrives after all others are done. Linear in the number of
    /// steps and of their waits.
    pub fn explain(&self, schedule: &Schedule, of: Option<(usize, Option<usize>)>) -> Vec<Link> {
        let reasons = self.reasons(schedule);
        let ends = (0..reasons.events.len()).flat_map(|node| End::BOTH.map(|end| (node, end)));
        let asked = ends.filter(|&end| {
            let (rank, event) = reasons.at(end);
            of.is_none_or(|(r, s)| r == rank && s.is_none_or(|s| s == event.step()))
        });
        let finish = |(node, end): NodeEnd| self.finish_at(node, end);
        let mut last = asked.max_by(|&a, &b| {
            let order = finish(a).total_cmp(&finish(b));
            order.then_with(|| reasons.at(a).cmp(&reasons.at(b)))
        });
        last = last.filter(|&last| of.is_some() || self.is_at_the_end(last));
        let mut chain = Vec::new();
        while let Some((node, end)) = last {
            let (side, reason, wait) = reasons.binding(node, end);
            let ready = self.ready_at(node, side);
            let mut link = |end: End, reason| {
                let (rank, event) = reasons.at((node, end));
                chain.push(Link {
                    rank,
                    step: event.step(),
                    computes: event.is_computed(),
                    ready,
                    start: self.start_at(node, end),
                    end: self.finish_at(node, end),
                    reason,
                });
            };
            if reasons.at((node, side)).0 != reasons.at((node, end)).0 {
                link(end, WaitReason::Partner);
            }
            link(side, reason);
            last = wait;
        }
        chain
    }

    /// The reasons for all steps of `schedule`, which must be the simulated one. Linear in the
    /// number of steps.
    #[doc(hidden)]
    pub fn reasons<'a>(&'a self, schedule: &'a Schedule) -> Reasons<'a> {
        let mut events = vec![[Event::transferred(0); 2]; self.prepared().nodes().len()];
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                if let Some(node) = self.prepared().node(rank, Event::transferred(i)) {
                    events[node][usize::from(!step.is_send())] = Event::transferred(i);
                }
                if let Some(node) = self.prepared().node(rank, Event::computed(i)) {
                    events[node] = [Event::computed(i); 2];
                }
            }
        }
        Reasons {
            simulation: self,
            schedule,
            events,
        }
    }
}

impl Reasons<'_> {
    /// Which end of a node lets one of its ends start no earlier, why, and the end of a node that
    /// it waits for.
    pub fn binding(&self, node: usize, end: End) -> Binding {
        let (side, wait) = self.simulation.binding(node, end);
        let reason = wait.map_or(WaitReason::Arrival, |wait| self.reason((node, side), wait));
        (side, reason, wait)
    }

    /// All that might let a node start no earlier: of those that end last, the last one does.
    pub fn waits(&self, node: usize) -> impl Iterator<Item = Binding> {
        let mut sides = End::BOTH;
        sides.sort_by_key(|&side| self.at((node, side)).0);
        sides.into_iter().flat_map(move |side| {
            let waits = self.simulation.prepared().waits_at(node, side);
            waits.map(move |wait| (side, self.reason((node, side), wait), Some(wait)))
        })
    }

    /// The rank of an end of a node, and the event that it is there.
    pub fn at(&self, (node, end): NodeEnd) -> (usize, Event) {
        let n = &self.simulation.prepared().nodes()[node];
        let rank = [n.from, n.to][end as usize] as usize;
        (rank, self.events[node][end as usize])
    }

    fn reason(&self, own: NodeEnd, other: NodeEnd) -> WaitReason {
        let ((rank, own), (other_rank, other)) = (self.at(own), self.at(other));
        if rank == other_rank {
            between(self.schedule, rank, own, other)
        } else {
            WaitReason::SharedPort
        }
    }
}

impl Prepared {
    /// In what [`Prepared::reachable`] leaves: the step of its rank that a part of a step waits for
    /// and that never takes place itself, and why; `None` if the part waits for other ranks alone.
    #[doc(hidden)]
    pub fn behind(
        &self,
        schedule: &Schedule,
        rank: usize,
        of: Event,
    ) -> Option<(usize, WaitReason)> {
        let (mut order, program) = (LocalOrder::default(), &schedule.programs()[rank]);
        let analysed = order.analyse(program, self.ports, self.overlap, &mut <_>::default());
        analysed.ok()?;
        let waits = if of.is_computed() && program[of.step()].peer().is_some() {
            order.before_compute(of.step())
        } else {
            order.before_start(of.step())
        };
        let mut waits = waits.iter().copied();
        let other = waits.find(|&event| self.node(rank, event).is_none())?;
        Some((other.step(), between(schedule, rank, of, other)))
    }
}

/// Why a step of a rank, or its computation, waits for another one.
fn between(schedule: &Schedule, rank: usize, own: Event, other: Event) -> WaitReason {
    let program = &schedule.programs()[rank];
    let (step, before) = (&program[own.step()], &program[other.step()]);
    let meet = |a: &[Span], b: &[Span]| a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
    let combines = matches!(step, Step::RecvCombine { .. } | Step::Combine { .. });
    let reads = if combines {
        step.writes()
    } else {
        step.reads()
    };
    match () {
        () if own.step() == other.step() || meet(step.reads(), before.writes()) => WaitReason::Data,
        () if meet(reads, before.writes()) => WaitReason::Data,
        () if meet(step.writes(), before.reads()) || meet(step.writes(), before.writes()) => {
            WaitReason::Overwrites
        }
        () if own.is_computed() || other.is_computed() => WaitReason::Computation,
        () if share_port(schedule.ports(), before, step) => WaitReason::Port,
        () => WaitReason::SharedPort,
    }
}
