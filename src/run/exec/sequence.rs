//! The order in which a rank executes its steps when senders do not wait for receivers.

use crate::machine::{Ports, bytes};
use crate::rules::max_time;
use crate::rules::{Event, LocalOrder};
use crate::schedule::{Span, Step};
use crate::simulate::Simulation;

/// The steps of a rank in the order in which it executes them, one after another.
#[derive(Debug, Default)]
pub struct Sequence {
    actions: Vec<Action>,
    /// For all actions, one after another: the sends whose messages must have been taken.
    waits: Vec<u32>,
    /// For all actions, one after another: the receives that are opened early.
    opens: Vec<u32>,
}

/// The execution of one step.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// Its index in the program of the rank.
    pub step: u32,
    /// For a send: whether its message is copied because the sent span is overwritten soon.
    pub copied: bool,
    /// End of this action's part of [`Sequence::waits`].
    waits: u32,
    /// End of this action's part of [`Sequence::opens`].
    opens: u32,
}

impl Sequence {
    /// Orders the steps of `rank` by model time.
    ///
    /// A message is offered as soon as its data exists, the earlier messages through the same port
    /// have been offered, and the previous message on its lane (numbered by `lane` for each step)
    /// has been taken. It is taken when its transfer ends. Every step thus waits only for steps
    /// that are earlier in this order of time, with ties broken by the order of the schedule's
    /// graph, so the ranks cannot wait for each other in a cycle.
    ///
    /// Sent data stays in place until it has been taken. A step that overwrites it waits for that,
    /// as the rules of time require, unless the message is so short that copying it is better.
    pub fn new(
        rank: usize,
        steps: &[Step],
        order: &LocalOrder,
        simulation: &Simulation,
        ports: Ports,
        copied: u64,
        lane: impl Fn(usize) -> usize,
    ) -> Option<Sequence> {
        let mut sequence = Sequence::default();
        for step in steps_in_time_order(rank, steps, order, simulation, ports, &lane)? {
            sequence.actions.push(Action {
                step,
                copied: false,
                waits: 0,
                opens: 0,
            });
        }
        sequence.protect_sent_data(steps, simulation.element_bytes, copied, lane);
        Some(sequence)
    }

    /// The actions, in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The sends whose messages must have been taken before action `i` starts.
    pub fn before(&self, i: usize) -> &[u32] {
        let start = i.checked_sub(1).map_or(0, |last| self.actions[last].waits);
        &self.waits[start as usize..self.actions[i].waits as usize]
    }

    /// The receives to be opened before action `i` starts: see [`Sequence::open_early`].
    #[inline]
    pub fn opens(&self, i: usize) -> &[u32] {
        if self.opens.is_empty() {
            return &[];
        }
        let start = i.checked_sub(1).map_or(0, |last| self.actions[last].opens);
        &self.opens[start as usize..self.actions[i].opens as usize]
    }

    /// Opens receives early, but never before a send that they may answer: up to `ahead` actions
    /// before their own, after the last action that accesses their spans and after all actions that
    /// end in the model before the message starts. Those that `buffered` names are received into
    /// one of `buffers` buffers, used round-robin.
    #[cfg(feature = "mpi")]
    pub fn open_early(
        &mut self,
        steps: &[Step],
        simulation: &Simulation,
        rank: usize,
        ahead: usize,
        buffers: usize,
        buffered: impl Fn(&Step) -> bool,
    ) {
        let step_of = |k: usize| &steps[self.actions[k].step as usize];
        let prepared = simulation.prepared();
        let node_of =
            |k: usize| prepared.node(rank, own_event(self.actions[k].step as usize, step_of(k)));
        let mut opens: Vec<(usize, u32)> = Vec::new();
        let mut in_buffers = Vec::new();
        for k in 0..self.actions.len() {
            let step = step_of(k);
            if step.is_send() || step.peer().is_none() || !self.before(k).is_empty() {
                if step.peer().is_some() && !step.is_send() && buffered(step) {
                    in_buffers.push(k);
                }
                continue;
            }
            let starts = node_of(k).map_or(0.0, |node| simulation.start(node));
            let still_busy =
                |j: &usize| node_of(*j).is_none_or(|node| simulation.finish(node) > starts);
            let first = (k.saturating_sub(ahead)..k).find(still_busy).unwrap_or(k);
            let from = if buffered(step) {
                let free = in_buffers.len().checked_sub(buffers);
                in_buffers.push(k);
                free.map_or(0, |n| in_buffers[n] + 1)
            } else {
                let touches = |j: &usize| {
                    let other = step_of(*j);
                    let accesses = other.reads().iter().chain(other.writes());
                    let mut accesses =
                        accesses.flat_map(|a| step.writes().iter().map(move |b| (a, b)));
                    accesses.any(|(a, b)| a.overlaps(*b))
                };
                (first..k).rev().find(touches).map_or(0, |j| j + 1)
            };
            opens.push((from.max(first), self.actions[k].step));
        }
        opens.sort_by_key(|&(from, _)| from);
        self.opens = opens.iter().map(|&(_, step)| step).collect();
        let mut end = 0;
        for (k, action) in self.actions.iter_mut().enumerate() {
            end += opens[end..].iter().take_while(|open| open.0 <= k).count();
            action.opens = u32::try_from(end).unwrap_or(u32::MAX);
        }
    }

    /// Ensures that no message is overwritten before it has been taken.
    fn protect_sent_data(
        &mut self,
        steps: &[Step],
        element_bytes: u64,
        copied: u64,
        lane: impl Fn(usize) -> usize,
    ) {
        let mut borrowed = SentSpans::default();
        let mut ended = Vec::new();
        // By lane: the last message; it is not yet known to have been taken.
        let mut last = std::collections::HashMap::new();
        let mut action_of = vec![0; steps.len()];
        for k in 0..self.actions.len() {
            let i = self.actions[k].step;
            let step = &steps[i as usize];
            action_of[i as usize] = k;
            for span in step.writes() {
                borrowed.overwritten(*span, &mut ended);
            }
            ended.sort_unstable();
            ended.dedup();
            for send in ended.drain(..) {
                let sent = &steps[send as usize];
                if bytes(sent.len(), element_bytes) <= copied {
                    self.actions[action_of[send as usize]].copied = true;
                } else if last.get(&lane(send as usize)) == Some(&send) {
                    self.waits.push(send);
                }
            }
            self.actions[k].waits = u32::try_from(self.waits.len()).unwrap_or(u32::MAX);
            if step.is_send() {
                last.insert(lane(i as usize), i);
                step.reads().iter().for_each(|span| borrowed.add(*span, i));
            }
        }
    }
}

/// Spans of sent messages, by position in the buffer.
#[derive(Debug, Default)]
struct SentSpans {
    /// Offset, end and step of each span, ascending.
    spans: Vec<(usize, usize, u32)>,
    longest: usize,
}

impl SentSpans {
    fn add(&mut self, span: Span, step: u32) {
        let entry = (span.offset, span.end(), step);
        let at = self.spans.partition_point(|other| *other < entry);
        self.spans.insert(at, entry);
        self.longest = self.longest.max(span.len);
    }

    /// Removes all spans that overlap `span` and appends their sends to `steps`.
    fn overwritten(&mut self, span: Span, steps: &mut Vec<u32>) {
        if span.len == 0 {
            return;
        }
        let from = span.offset.saturating_sub(self.longest);
        let from = self.spans.partition_point(|s| s.0 < from);
        let to = self.spans.partition_point(|s| s.0 < span.end());
        let overlaps = |s: &(usize, usize, u32)| s.1 > span.offset && s.1 > s.0;
        let before = steps.len();
        steps.extend(
            self.spans[from..to]
                .iter()
                .filter(|s| overlaps(s))
                .map(|s| s.2),
        );
        if steps.len() > before {
            let mut at = 0;
            self.spans.retain(|s| {
                let inside = (from..to).contains(&at);
                at += 1;
                !(inside && overlaps(s))
            });
        }
    }
}

/// The indices of the steps, in the order of [`Sequence::new`].
fn steps_in_time_order(
    rank: usize,
    steps: &[Step],
    order: &LocalOrder,
    simulation: &Simulation,
    ports: Ports,
    lane: impl Fn(usize) -> usize,
) -> Option<Vec<u32>> {
    let prepared = simulation.prepared();
    let end = |event| Some(simulation.finish(prepared.node(rank, event)?));
    // By lane, the time when its last message is taken; by port list, the time when its last
    // message is offered.
    let mut taken: Vec<(usize, f64)> = Vec::new();
    let mut offered = vec![0.0; ports.lists()];
    let mut keys = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate() {
        let own = own_event(i, step);
        let mut ready = 0.0;
        for &event in order.before_start(i) {
            // An earlier send only needs to have been offered.
            if !(step.is_send() && steps[event.step()].is_send()) {
                ready = max_time(ready, end(event)?);
            }
        }
        let time = match step {
            Step::Recv { .. } | Step::RecvCombine { .. } => end(own)?,
            Step::Copy { .. } | Step::Combine { .. } => ready,
            Step::Send { port, .. } => {
                let offered = &mut offered[ports.list(true, *port)];
                let lane = lane(i);
                let at = taken.partition_point(|&(known, _)| known < lane);
                if taken.get(at).is_none_or(|&(known, _)| known != lane) {
                    taken.insert(at, (lane, 0.0));
                }
                *offered = max_time(max_time(*offered, taken[at].1), ready);
                taken[at].1 = end(own)?;
                *offered
            }
        };
        keys.push((time, prepared.node(rank, own)?, u32::try_from(i).ok()?));
    }
    keys.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    Some(keys.into_iter().map(|(_, _, i)| i).collect())
}

/// The event of step `i` that other steps wait for.
pub(crate) fn own_event(i: usize, step: &Step) -> Event {
    match step {
        Step::Copy { .. } | Step::Combine { .. } => Event::computed(i),
        _ => Event::transferred(i),
    }
}
