//! What every element of every buffer holds at a time, by executing the steps one after another on
//! lists of inputs: an evaluator of its own, without runs and without the checker.

use oneport::rules::Event;
use oneport::simulate::Simulation;
use oneport::{Order, Schedule, Span, Step};

/// The inputs combined in an element: rank and index of each.
pub(crate) type Inputs = Vec<(usize, usize)>;

/// By rank and position: what the buffers hold when everything has ended that ends by `time`.
pub(crate) fn held_at(schedule: &Schedule, simulation: &Simulation, time: f64) -> Vec<Vec<Inputs>> {
    let mut buffers: Vec<Vec<Inputs>> = Vec::new();
    for (rank, layout) in schedule.layout().iter().enumerate() {
        let mut buffer = vec![Inputs::new(); layout.len];
        for (index, position) in positions(&layout.input).into_iter().enumerate() {
            buffer[position] = vec![(rank, index)];
        }
        buffers.push(buffer);
    }
    for (rank, step) in ended(schedule, simulation, time) {
        execute(schedule, rank, step, &mut buffers);
    }
    buffers
}

/// The steps that write and end by `time`, each after what it waits for.
fn ended(schedule: &Schedule, simulation: &Simulation, time: f64) -> Vec<(usize, usize)> {
    let mut ended = Vec::new();
    for (rank, program) in schedule.programs().iter().enumerate() {
        for (i, step) in program.iter().enumerate() {
            let event = if step.computes() {
                Event::computed(i)
            } else {
                Event::transferred(i)
            };
            let node = simulation
                .prepared()
                .node(rank, event)
                .expect("a step has an end");
            if !step.is_send() && simulation.finish(node) <= time {
                ended.push((node, rank, i));
            }
        }
    }
    // Nodes are numbered so that each comes after what it waits for.
    ended.sort_unstable();
    ended.into_iter().map(|(_, rank, i)| (rank, i)).collect()
}

fn execute(schedule: &Schedule, rank: usize, i: usize, buffers: &mut [Vec<Inputs>]) {
    let step = &schedule.programs()[rank][i];
    let (source, spans) = match step.peer() {
        Some(from) => (from, sent(schedule, rank, i, from)),
        None => (rank, step.reads()),
    };
    let message = positions(spans)
        .into_iter()
        .map(|at| buffers[source][at].clone());
    let message: Vec<Inputs> = message.collect();
    for (at, theirs) in positions(step.writes()).into_iter().zip(message) {
        let mine = &mut buffers[rank][at];
        match step {
            Step::RecvCombine { order, .. } | Step::Combine { order, .. } => match order {
                Order::MineFirst => mine.extend(theirs),
                Order::TheirsFirst => *mine = [theirs, std::mem::take(mine)].concat(),
            },
            _ => *mine = theirs,
        }
    }
}

/// The spans of the send that meets a receive: the n-th from `from` meets the n-th receive from it.
fn sent(schedule: &Schedule, rank: usize, i: usize, from: usize) -> &[Span] {
    let receives = |s: &&Step| !s.is_send() && s.peer() == Some(from);
    let nth = schedule.programs()[rank][..i]
        .iter()
        .filter(receives)
        .count();
    let sends = |s: &&Step| s.is_send() && s.peer() == Some(rank);
    let send = schedule.programs()[from].iter().filter(sends).nth(nth);
    send.expect("a partner").reads()
}

fn positions(spans: &[Span]) -> Vec<usize> {
    spans.iter().flat_map(|s| s.offset..s.end()).collect()
}
