//! Why a step starts no earlier: what it waits for, back to the start.

use super::Simulation;
use crate::rules::{End, Event};
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
    /// When it starts there.
    pub start: f64,
    /// When it ends there.
    pub end: f64,
    /// Why it starts no earlier.
    pub reason: Reason,
}

/// Why a step starts no earlier. All but the first wait for the next link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
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

impl Simulation {
    /// The chain of reasons, backwards, why a rank finishes no earlier, or one of its steps, or, by
    /// default, the whole schedule, which must be the simulated one. Empty if there is no such
    /// step. Linear in the number of steps and of their waits.
    pub fn explain(&self, schedule: &Schedule, of: Option<(usize, Option<usize>)>) -> Vec<Link> {
        let prepared = self.prepared();
        let mut steps = vec![[0, 0]; prepared.nodes().len()];
        let mut last: Option<NodeEnd> = None;
        for (rank, program) in schedule.programs().iter().enumerate() {
            for (i, step) in program.iter().enumerate() {
                let end = if step.is_send() {
                    End::Sender
                } else {
                    End::Receiver
                };
                for event in [Event::transferred(i), Event::computed(i)] {
                    let Some(node) = prepared.node(rank, event) else {
                        continue;
                    };
                    match event.is_computed() {
                        true => steps[node] = [i, i],
                        false => steps[node][end as usize] = i,
                    }
                    let asked = of.is_none_or(|(r, s)| r == rank && s.is_none_or(|s| s == i));
                    let finish = self.finish_at(node, end);
                    if asked && last.is_none_or(|(n, e)| finish >= self.finish_at(n, e)) {
                        last = Some((node, end));
                    }
                }
            }
        }
        let mut chain = Vec::new();
        while let Some((node, end)) = last {
            let link = |end: End, reason| {
                let n = &prepared.nodes()[node];
                Link {
                    rank: [n.from, n.to][end as usize] as usize,
                    step: steps[node][end as usize],
                    computes: n.kind != super::NodeKind::Transfer,
                    start: self.start_at(node, end),
                    end: self.finish_at(node, end),
                    reason,
                }
            };
            let (side, wait) = self.binding(node, end);
            if side != end && link(side, Reason::Partner).rank != link(end, Reason::Partner).rank {
                chain.push(link(end, Reason::Partner));
            }
            let mut own = link(side, Reason::Arrival);
            if let Some((other, other_end)) = wait {
                let n = &prepared.nodes()[other];
                let rank = [n.from, n.to][other_end as usize] as usize;
                let step = steps[other][other_end as usize];
                own.reason = match rank == own.rank {
                    false => Reason::SharedPort,
                    true => {
                        let other_computes = n.kind != super::NodeKind::Transfer;
                        between(schedule, own, step, other_computes)
                    }
                };
            }
            chain.push(own);
            last = wait;
        }
        chain
    }
}

/// Why the step of `own` waits for step `other` of its rank.
fn between(schedule: &Schedule, own: Link, other: usize, other_computes: bool) -> Reason {
    let program = &schedule.programs()[own.rank];
    let (step, before) = (&program[own.step], &program[other]);
    let meet = |a: &[Span], b: &[Span]| a.iter().any(|x| b.iter().any(|y| x.overlaps(*y)));
    let port = |step: &Step| {
        schedule
            .ports()
            .list(step.is_send(), step.port().unwrap_or(0))
    };
    let combines = matches!(step, Step::RecvCombine { .. } | Step::Combine { .. });
    let reads = if combines {
        step.writes()
    } else {
        step.reads()
    };
    match () {
        () if own.step == other || meet(step.reads(), before.writes()) => Reason::Data,
        () if meet(reads, before.writes()) => Reason::Data,
        () if meet(step.writes(), before.reads()) || meet(step.writes(), before.writes()) => {
            Reason::Overwrites
        }
        () if own.computes || other_computes || port(step) != port(before) => Reason::Computation,
        () => Reason::Port,
    }
}
