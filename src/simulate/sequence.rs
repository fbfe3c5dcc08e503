//! The steps of ranks that wait for nobody but for messages.

use super::{Simulation, max_time};
use crate::cost::{Ports, bytes};
use crate::schedule::{Event, LocalOrder, Span, Step};

/// The longest messages that a sender need not wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Longest {
    /// Of those that are copied, in bytes.
    pub(crate) copied: u64,
    /// Of those that stay where they are, in bytes: a schedule with a longer one has everybody
    /// wait.
    pub(crate) borrowed: u64,
}

/// The order in which a rank does its steps, one after another.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    actions: Vec<Action>,
    /// Sends whose messages must have been taken, one act after another.
    waits: Vec<u32>,
}

/// One step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub(crate) step: u32,
    /// Of a send: whether its message is copied, because what it sends is overwritten soon.
    pub(crate) copied: bool,
    /// End of its part of [`Sequence::waits`].
    waits: u32,
}

impl Sequence {
    /// The steps of `rank`.
    ///
    /// By model time: a message is offered as soon as what it sends is there, the messages before
    /// it through the same port have been offered, and the last one on its lane, which `lane`
    /// numbers for a step, has been taken; it is taken when its transfer ends. So every step waits
    /// only for what comes before it in that order of time, ties broken as the schedule's graph
    /// is ordered, and the ranks cannot wait for each other in a cycle.
    ///
    /// What is sent stays where it is until it has been taken: who overwrites it waits for that, as
    /// the rules of time have it, unless the message is so short that it had better be copied.
    pub(crate) fn new(
        rank: usize,
        steps: &[Step],
        order: &LocalOrder,
        simulation: &Simulation<'_>,
        ports: Ports,
        copied: u64,
        lane: impl Fn(usize) -> usize,
    ) -> Option<Sequence> {
        let mut sequence = Sequence::default();
        for step in in_time(rank, steps, order, simulation, ports, &lane)? {
            sequence.actions.push(Action {
                step,
                copied: false,
                waits: 0,
            });
        }
        sequence.keep(steps, simulation.element_bytes, copied, lane);
        Some(sequence)
    }

    /// The steps, in order.
    pub(crate) fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Sends whose messages must have been taken before act `i` begins.
    pub(crate) fn before(&self, i: usize) -> &[u32] {
        let start = i.checked_sub(1).map_or(0, |last| self.actions[last].waits);
        &self.waits[start as usize..self.actions[i].waits as usize]
    }

    /// Sees to it that nothing is overwritten that has not been taken.
    fn keep(
        &mut self,
        steps: &[Step],
        element_bytes: u64,
        copied: u64,
        lane: impl Fn(usize) -> usize,
    ) {
        let mut borrowed = Sent::default();
        let mut ended = Vec::new();
        // On each lane the last message, which nobody knows to have been taken.
        let mut last = std::collections::HashMap::new();
        let mut act_of = vec![0; steps.len()];
        for k in 0..self.actions.len() {
            let i = self.actions[k].step;
            let step = &steps[i as usize];
            act_of[i as usize] = k;
            for span in step.writes() {
                borrowed.overwritten(*span, &mut ended);
            }
            ended.sort_unstable();
            ended.dedup();
            for send in ended.drain(..) {
                let sent = &steps[send as usize];
                if bytes(sent.len(), element_bytes) <= copied {
                    self.actions[act_of[send as usize]].copied = true;
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

/// What has been sent, by where it stands.
#[derive(Debug, Default)]
struct Sent {
    /// Offset, end, and step of each, ascending.
    spans: Vec<(usize, usize, u32)>,
    longest: usize,
}

impl Sent {
    fn add(&mut self, span: Span, step: u32) {
        let entry = (span.offset, span.end(), step);
        let at = self.spans.partition_point(|other| *other < entry);
        self.spans.insert(at, entry);
        self.longest = self.longest.max(span.len);
    }

    /// Forgets all that `span` touches; `steps` gets who sent it.
    fn overwritten(&mut self, span: Span, steps: &mut Vec<u32>) {
        if span.len == 0 {
            return;
        }
        let from = span.offset.saturating_sub(self.longest);
        let from = self.spans.partition_point(|s| s.0 < from);
        let to = self.spans.partition_point(|s| s.0 < span.end());
        let touched = |s: &(usize, usize, u32)| s.1 > span.offset && s.1 > s.0;
        let before = steps.len();
        steps.extend(
            self.spans[from..to]
                .iter()
                .filter(|s| touched(s))
                .map(|s| s.2),
        );
        if steps.len() > before {
            let mut at = 0;
            self.spans.retain(|s| {
                let inside = (from..to).contains(&at);
                at += 1;
                !(inside && touched(s))
            });
        }
    }
}

/// The numbers of the steps, in the order of [`Sequence::new`].
fn in_time(
    rank: usize,
    steps: &[Step],
    order: &LocalOrder,
    simulation: &Simulation<'_>,
    ports: Ports,
    lane: impl Fn(usize) -> usize,
) -> Option<Vec<u32>> {
    let prepared = simulation.prepared;
    let end = |event| Some(simulation.finish(prepared.node(rank, event)?));
    // When the last message of each lane is taken, and when that of each port list is offered.
    let mut taken: Vec<(usize, f64)> = Vec::new();
    let mut offered = vec![0.0; ports.lists()];
    let mut keys = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate() {
        let own = own_event(i, step);
        let mut ready = 0.0;
        for &event in order.before_start(i) {
            // What was sent before needs only have been offered.
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

/// The event of step `i` that others wait for.
pub(super) fn own_event(i: usize, step: &Step) -> Event {
    match step {
        Step::Copy { .. } | Step::Combine { .. } => Event::computed(i),
        _ => Event::transferred(i),
    }
}
