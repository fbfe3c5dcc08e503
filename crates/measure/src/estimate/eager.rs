//! Eager execution in an estimate: senders do not wait for their receivers.

use std::collections::{HashMap, HashSet};

use super::copy_costs::{CopyCosts, CopyMode};
use super::{Programs, Ranks};
use oneport::error::Result;
use oneport::internal::max_time;
use oneport::internal::{self, Sequence, own_event};
use oneport::machine::Ports;
use oneport::schedule::{Span, Step};
use oneport::simulate::Prepared;

/// Ranks that do not wait for their receivers.
pub(super) struct Eager {
    actions: Vec<Vec<Action>>,
    next: Vec<usize>,
    /// By rank: its core.
    cores: Vec<usize>,
    /// By node: its sender and the first span that the sender sends.
    sent: Vec<(usize, Span)>,
    /// The data that each core has taken: core, sender and span.
    cached: HashSet<(usize, usize, Span)>,
    /// By node: the time when its message is ready.
    put: Vec<f64>,
    /// By node: the time when its message has been taken.
    taken: Vec<f64>,
}

struct Action {
    kind: Kind,
    /// Nodes whose messages must have been taken before this action.
    after: Vec<usize>,
    time: f64,
}

enum Kind {
    /// Offers the message of a node.
    Put(usize),
    /// Takes the message of a node; the number is the time if a rank of this core has taken the
    /// same data before.
    Take(usize, f64),
    Local,
}

impl Eager {
    pub(super) fn new(
        prepared: &Prepared,
        programs: &Programs<'_>,
        copy_costs: &CopyCosts<'_>,
        ports: Ports,
    ) -> Result<Eager> {
        let simulation = prepared.simulate(copy_costs.cost)?;
        let mut sent = vec![(0, Span::new(0, 0)); prepared.nodes().len()];
        let actions = programs.iter().enumerate().map(|(rank, (steps, order))| {
            let peer = |i: usize| steps[i].peer().unwrap_or(rank);
            let copied = copy_costs.core_model.copied;
            let sequence = Sequence::new(rank, steps, order, &simulation, ports, copied, peer);
            let sequence = sequence.unwrap_or_default();
            let mut last = HashMap::new();
            let node = |i: usize| prepared.node(rank, own_event(i, &steps[i])).unwrap_or(0);
            let action = |(k, action): (usize, &internal::Action)| {
                let i = action.step as usize;
                let (step, own) = (&steps[i], node(i));
                let mut after: Vec<usize> = sequence
                    .before(k)
                    .iter()
                    .map(|&s| node(s as usize))
                    .collect();
                let (kind, time) = match step {
                    Step::Send { to, .. } => {
                        after.extend(last.insert(*to, own));
                        sent[own] = (
                            rank,
                            step.reads().first().copied().unwrap_or(Span::new(0, 0)),
                        );
                        (Kind::Put(own), copy_costs.put(rank, step, action.copied))
                    }
                    Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                        let fresh = copy_costs.fresh[own];
                        let cached_time =
                            copy_costs.take(*from, rank, step, CopyMode::Cached, fresh);
                        (
                            Kind::Take(own, cached_time),
                            copy_costs.take(*from, rank, step, CopyMode::Receiver, fresh),
                        )
                    }
                    _ => (Kind::Local, copy_costs.local(rank, step)),
                };
                Action { kind, after, time }
            };
            sequence.actions().iter().enumerate().map(action).collect()
        });
        let actions = actions.collect();
        Ok(Eager {
            actions,
            cores: (0..programs.len()).map(|r| copy_costs.core(r)).collect(),
            sent,
            cached: HashSet::new(),
            next: vec![0; programs.len()],
            put: vec![f64::INFINITY; prepared.nodes().len()],
            taken: vec![f64::INFINITY; prepared.nodes().len()],
        })
    }
}

impl Ranks for Eager {
    fn progress(&mut self, rank: usize, now: &mut f64) -> bool {
        let before = self.next[rank];
        while let Some(action) = self.actions[rank].get(self.next[rank]) {
            let free = action.after.iter().map(|&node| self.taken[node]);
            let free = free.fold(0.0, max_time);
            let (ready, done) = match action.kind {
                Kind::Put(node) => (free, Some(&mut self.put[node])),
                Kind::Take(node, _) => {
                    (max_time(free, self.put[node]), Some(&mut self.taken[node]))
                }
                Kind::Local => (free, None),
            };
            if ready > *now {
                break;
            }
            *now += match action.kind {
                Kind::Take(node, cached_time) => {
                    let (from, span) = self.sent[node];
                    let first = self.cached.insert((self.cores[rank], from, span));
                    if first { action.time } else { cached_time }
                }
                _ => action.time,
            };
            if let Some(done) = done {
                *done = *now;
            }
            self.next[rank] += 1;
        }
        self.next[rank] > before
    }

    fn is_done(&self, rank: usize) -> bool {
        self.next[rank] == self.actions[rank].len()
    }
}
