//! Rendezvous execution in an estimate: sender and receiver wait for each other at every message.

use super::copy_costs::{CopyCosts, CopyMode};
use super::{Programs, Ranks};
use oneport::internal::own_event;
use oneport::machine::Ports;
use oneport::rules::Event;
use oneport::schedule::Step;
use oneport::simulate::Prepared;

/// Ranks that wait for each other at every message.
pub(super) struct Rendezvous<'a> {
    prepared: &'a Prepared,
    programs: &'a Programs<'a>,
    copy_costs: &'a CopyCosts<'a>,
    /// By rank: the steps of each port list; the last list holds the local steps.
    lists: Vec<Vec<List>>,
    /// By rank and event: whether it has happened, as far as the rank knows.
    happened: Vec<Vec<bool>>,
    unfinished_steps: Vec<usize>,
    /// By rank: the time until which it copies or combines.
    busy: Vec<f64>,
    /// By node: the time when its message is offered, and the time when it has been taken.
    offered: Vec<f64>,
    taken: Vec<f64>,
}

#[derive(Default)]
struct List {
    steps: Vec<usize>,
    next: usize,
    open: bool,
}

impl<'a> Rendezvous<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        programs: &'a Programs<'a>,
        copy_costs: &'a CopyCosts<'a>,
        ports: Ports,
    ) -> Rendezvous<'a> {
        let lists = programs.iter().map(|(steps, _)| {
            let mut lists: Vec<List> = (0..=ports.lists()).map(|_| List::default()).collect();
            for (i, step) in steps.iter().enumerate() {
                let list = step.port().map(|port| ports.list(step.is_send(), port));
                lists[list.unwrap_or(ports.lists())].steps.push(i);
            }
            lists
        });
        Rendezvous {
            prepared,
            programs,
            copy_costs,
            lists: lists.collect(),
            happened: programs
                .iter()
                .map(|p| vec![false; 2 * p.0.len()])
                .collect(),
            unfinished_steps: programs.iter().map(|p| p.0.len()).collect(),
            busy: vec![0.0; programs.len()],
            offered: vec![f64::INFINITY; prepared.nodes().len()],
            taken: vec![f64::INFINITY; prepared.nodes().len()],
        }
    }

    /// Tries to progress one step in a list of `rank`; returns whether it did.
    fn advance(&mut self, rank: usize, list: usize, now: &mut f64) -> bool {
        let (steps, order) = &self.programs[rank];
        let List { next, open, .. } = self.lists[rank][list];
        let Some(&i) = self.lists[rank][list].steps.get(next) else {
            return false;
        };
        let step = &steps[i];
        let happened = |events: &[Event]| events.iter().all(|e| self.happened[rank][e.index()]);
        if !open && !happened(order.before_start(i)) {
            return false;
        }
        let node = self.prepared.node(rank, own_event(i, step)).unwrap_or(0);
        match step {
            Step::Send { .. } if !open => {
                self.offered[node] = *now;
                self.lists[rank][list].open = true;
                return true;
            }
            Step::Send { .. } if self.taken[node] > *now => return false,
            Step::Send { .. } => {}
            Step::Recv { from, .. } | Step::RecvCombine { from, .. } => {
                if self.offered[node] > *now {
                    return false;
                }
                // An idle sender with a core of its own helps to copy.
                let helped = self.copy_costs.core_model.cores >= self.programs.len()
                    && self.busy[*from] <= *now;
                let how = if helped {
                    CopyMode::Shared
                } else {
                    CopyMode::Receiver
                };
                let fresh = self.copy_costs.fresh[node];
                *now += self.copy_costs.take(*from, rank, step, how, fresh);
                self.taken[node] = *now;
                self.busy[rank] = *now;
                if helped {
                    self.busy[*from] = *now;
                }
            }
            _ => {
                *now += self.copy_costs.local(rank, step);
                self.busy[rank] = *now;
            }
        }
        let events = &mut self.happened[rank];
        events[Event::transferred(i).index()] = true;
        events[Event::computed(i).index()] = true;
        let list = &mut self.lists[rank][list];
        list.open = false;
        list.next += 1;
        self.unfinished_steps[rank] -= 1;
        true
    }
}

impl Ranks for Rendezvous<'_> {
    fn progress(&mut self, rank: usize, now: &mut f64) -> bool {
        let mut progressed = false;
        for list in 0..self.lists[rank].len() {
            while self.advance(rank, list, now) {
                progressed = true;
            }
        }
        progressed
    }

    fn is_done(&self, rank: usize) -> bool {
        self.unfinished_steps[rank] == 0
    }
}
