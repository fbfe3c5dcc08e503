//! Ranks that leave their messages behind.

use std::collections::{HashMap, HashSet};

use super::takes::{How, Takes};
use super::{Programs, Ranks};
use crate::cost::Ports;
use crate::error::Result;
use crate::schedule::{Span, Step};
use crate::simulate::sequence::{self, Sequence, own_event};
use crate::simulate::{Prepared, later};

/// Ranks that do not wait for their receivers.
pub(super) struct Eager {
    acts: Vec<Vec<Act>>,
    next: Vec<usize>,
    /// By rank.
    cores: Vec<usize>,
    /// By node: what its sender sends.
    sent: Vec<(usize, Span)>,
    /// What each core has taken.
    cached: HashSet<(usize, usize, Span)>,
    /// By node: when its message stands ready.
    put: Vec<f64>,
    /// By node: when its message has been taken.
    taken: Vec<f64>,
}

struct Act {
    kind: Kind,
    /// Nodes whose messages must have been taken.
    after: Vec<usize>,
    takes: f64,
}

enum Kind {
    /// Offers the message of a node.
    Put(usize),
    /// Takes the message of a node, which takes less time if it is the second on this core to do
    /// so.
    Take(usize, f64),
    Local,
}

impl Eager {
    pub(super) fn new(
        prepared: &Prepared,
        programs: &Programs<'_>,
        takes: &Takes<'_>,
        ports: Ports,
    ) -> Result<Eager> {
        let simulation = prepared.try_simulate(takes.cost, takes.element_bytes)?;
        let mut sent = vec![(0, Span::new(0, 0)); prepared.nodes().len()];
        let acts = programs.iter().enumerate().map(|(rank, (steps, order))| {
            let peer = |i: usize| steps[i].peer().unwrap_or(rank);
            let copied = takes.crowd.copied;
            let sequence = Sequence::new(rank, steps, order, &simulation, ports, copied, peer);
            let sequence = sequence.unwrap_or_default();
            let mut last = HashMap::new();
            let node = |i: usize| prepared.node(rank, own_event(i, &steps[i])).unwrap_or(0);
            let act = |(k, act): (usize, &sequence::Act)| {
                let i = act.step as usize;
                let (step, own) = (&steps[i], node(i));
                let mut after: Vec<usize> = sequence
                    .before(k)
                    .iter()
                    .map(|&s| node(s as usize))
                    .collect();
                let (kind, takes) = match step {
                    Step::Send { to, .. } => {
                        after.extend(last.insert(*to, own));
                        sent[own] = (
                            rank,
                            step.reads().first().copied().unwrap_or(Span::new(0, 0)),
                        );
                        (Kind::Put(own), takes.put(rank, step, act.copied))
                    }
                    Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                        let fresh = takes.fresh[own];
                        let again = takes.take(*from, rank, step, How::Again, fresh);
                        (
                            Kind::Take(own, again),
                            takes.take(*from, rank, step, How::Alone, fresh),
                        )
                    }
                    _ => (Kind::Local, takes.local(rank, step)),
                };
                Act { kind, after, takes }
            };
            sequence.acts().iter().enumerate().map(act).collect()
        });
        let acts = acts.collect();
        Ok(Eager {
            acts,
            cores: (0..programs.len()).map(|r| takes.core(r)).collect(),
            sent,
            cached: HashSet::new(),
            next: vec![0; programs.len()],
            put: vec![f64::INFINITY; prepared.nodes().len()],
            taken: vec![f64::INFINITY; prepared.nodes().len()],
        })
    }
}

impl Ranks for Eager {
    fn turn(&mut self, rank: usize, now: &mut f64) -> bool {
        let before = self.next[rank];
        while let Some(act) = self.acts[rank].get(self.next[rank]) {
            let free = act.after.iter().map(|&node| self.taken[node]);
            let free = free.fold(0.0, later);
            let (ready, done) = match act.kind {
                Kind::Put(node) => (free, Some(&mut self.put[node])),
                Kind::Take(node, _) => (later(free, self.put[node]), Some(&mut self.taken[node])),
                Kind::Local => (free, None),
            };
            if ready > *now {
                break;
            }
            *now += match act.kind {
                Kind::Take(node, again) => {
                    let (from, span) = self.sent[node];
                    let first = self.cached.insert((self.cores[rank], from, span));
                    if first { act.takes } else { again }
                }
                _ => act.takes,
            };
            if let Some(done) = done {
                *done = *now;
            }
            self.next[rank] += 1;
        }
        self.next[rank] > before
    }

    fn is_done(&self, rank: usize) -> bool {
        self.next[rank] == self.acts[rank].len()
    }
}
