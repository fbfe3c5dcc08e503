//! The schedule that a solution describes, without what no rank needs.

use oneport::{Collective, Layout, Order, Result, Schedule, Span, Spans, Step};

use crate::encode::Message;
use crate::facts::Facts;
use crate::problem::Problem;

/// Why a rank knows a fact.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Input,
    /// The message with this number.
    Message(usize),
    /// Two other facts.
    Merge(usize, usize),
}

/// What becomes known by the messages, and which facts of a message are needed.
struct Knowledge<'a> {
    messages: &'a [Message],
    /// By rank, by fact.
    origins: Vec<Vec<Option<Origin>>>,
    /// By rank, by fact: whether it is needed and has been looked at.
    needed: Vec<Vec<bool>>,
    /// By message: the facts of it that are needed.
    carried: Vec<Vec<usize>>,
}

impl<'a> Knowledge<'a> {
    /// Runs the messages, in order of their steps.
    fn new(facts: &Facts, messages: &'a [Message]) -> Knowledge<'a> {
        let input = |&holds: &bool| holds.then_some(Origin::Input);
        let row = |row: &Vec<bool>| row.iter().map(input).collect();
        let mut origins: Vec<Vec<Option<Origin>>> = facts.start.iter().map(row).collect();
        let mut at = 0;
        while let Some(first) = messages.get(at) {
            let before = origins.clone();
            while let Some(m) = messages.get(at).filter(|m| m.step == first.step) {
                for fact in 0..facts.count {
                    let brings = m.fact.is_none_or(|carried| carried == fact);
                    if brings && before[m.from][fact].is_some() {
                        origins[m.to][fact].get_or_insert(Origin::Message(at));
                    }
                }
                at += 1;
            }
            for known in &mut origins {
                for &[whole, left, right] in &facts.merges {
                    if known[left].is_some() && known[right].is_some() {
                        known[whole].get_or_insert(Origin::Merge(left, right));
                    }
                }
            }
        }
        Knowledge {
            messages,
            needed: vec![vec![false; facts.count]; origins.len()],
            carried: vec![Vec::new(); messages.len()],
            origins,
        }
    }

    /// Marks a fact that a rank needs, and those that it comes from.
    fn need(&mut self, rank: usize, fact: usize) {
        if std::mem::replace(&mut self.needed[rank][fact], true) {
            return;
        }
        match self.origins[rank][fact] {
            Some(Origin::Message(at)) => {
                self.carried[at].push(fact);
                self.need(self.messages[at].from, fact);
            }
            Some(Origin::Merge(left, right)) => {
                self.need(rank, left);
                self.need(rank, right);
            }
            Some(Origin::Input) | None => {}
        }
    }
}

/// Builds the schedule of these messages, run backwards if it is to combine, and says how many
/// rounds it takes.
pub(crate) fn schedule(
    problem: &Problem,
    facts: &Facts,
    mut messages: Vec<Message>,
    backwards: Option<Collective>,
) -> Result<(Schedule, usize)> {
    messages.sort_by_key(|m| (m.step, m.round, m.from, m.to, m.fact));
    let mut known = Knowledge::new(facts, &messages);
    for rank in 0..problem.ranks {
        for fact in (0..facts.count).filter(|&fact| facts.need[rank][fact]) {
            known.need(rank, fact);
        }
    }
    let Knowledge {
        origins, carried, ..
    } = known;
    let mut sent: Vec<(Message, Vec<usize>)> = messages.into_iter().zip(carried).collect();
    sent.retain(|(_, facts)| !facts.is_empty());
    sent.iter_mut().for_each(|(_, facts)| facts.sort_unstable());
    let mut builder = Programs::new(problem, facts, origins);
    let mut used = 0;
    if backwards.is_some() {
        sent.reverse();
        for (message, _) in &mut sent {
            (message.from, message.to) = (message.to, message.from);
        }
    }
    let at_once = |a: &Message, b: &Message| (a.step, a.round) == (b.step, b.round);
    for round in sent.chunk_by(|a, b| at_once(&a.0, &b.0)) {
        builder.round(round, backwards.is_some());
        used += 1;
    }
    Ok((builder.finish(backwards)?, used))
}

fn joined(spans: impl IntoIterator<Item = Span>) -> Spans {
    let mut all = Spans::new();
    spans.into_iter().for_each(|span| all.append(span));
    all
}

/// The programs of all ranks while they are written.
struct Programs<'a> {
    problem: &'a Problem,
    facts: &'a Facts,
    origins: Vec<Vec<Option<Origin>>>,
    programs: Vec<Vec<Step>>,
    /// By rank, by fact: where a partial result lies.
    places: Vec<Vec<Option<usize>>>,
    lengths: Vec<usize>,
}

impl<'a> Programs<'a> {
    fn new(problem: &'a Problem, facts: &'a Facts, origins: Vec<Vec<Option<Origin>>>) -> Self {
        let p = problem.ranks;
        let place = |rank: usize, fact: usize| {
            if facts.merges.is_empty() {
                Some(fact * facts.unit)
            } else {
                facts.start[rank][fact].then_some(0)
            }
        };
        let row = |rank| (0..facts.count).map(|fact| place(rank, fact)).collect();
        Programs {
            problem,
            facts,
            origins,
            programs: vec![Vec::new(); p],
            places: (0..p).map(row).collect(),
            lengths: if facts.merges.is_empty() {
                vec![facts.count * facts.unit; p]
            } else {
                vec![1; p]
            },
        }
    }

    /// Where the fact lies at the rank, in a new place if it has none.
    fn place(&mut self, rank: usize, fact: usize) -> (Span, bool) {
        let is_new = self.places[rank][fact].is_none();
        let place = *self.places[rank][fact].get_or_insert_with(|| {
            self.lengths[rank] += 1;
            self.lengths[rank] - 1
        });
        (Span::new(place, self.facts.unit), is_new)
    }

    /// As [`Programs::place`]; a partial result is combined if it has not been.
    fn made(&mut self, rank: usize, fact: usize) -> Span {
        let (place, is_new) = self.place(rank, fact);
        if is_new && let Some(Origin::Merge(left, right)) = self.origins[rank][fact] {
            let [left, right] = [left, right].map(|part| self.made(rank, part));
            let program = &mut self.programs[rank];
            program.push(Step::copy(left, place));
            program.push(Step::combine(right, place, Order::MineFirst));
        }
        place
    }

    /// Appends the messages of a round. What they carry is combined before the first of them, what
    /// arrives after the last: a local step between two messages would hold up the second. So it
    /// arrives in scratch memory, unless its rank does nothing else.
    fn round(&mut self, sent: &[(Message, Vec<usize>)], combines: bool) {
        let ends = |rank: usize| {
            let own = sent.iter().filter(|(m, _)| [m.from, m.to].contains(&rank));
            own.count()
        };
        let mut scratch = vec![self.facts.count; self.problem.ranks];
        let ports = self.problem.ports;
        // By rank, and by list of one port: messages so far.
        let mut used = vec![[0, 0]; self.problem.ranks];
        let mut port = |rank: usize, sends: bool| {
            let used = &mut used[rank][ports.list(sends, 0)];
            *used += 1;
            (*used - 1) % ports.k()
        };
        let (mut received, mut combined) = (Vec::new(), Vec::new());
        let carried = |(message, facts): &(Message, Vec<usize>)| {
            joined(facts.iter().map(|&fact| self.made(message.from, fact)))
        };
        let carried: Vec<Spans> = sent.iter().map(carried).collect();
        for ((message, facts), spans) in sent.iter().zip(carried) {
            let Message { from, to, .. } = *message;
            let send = Step::send(to, spans).on_port(port(from, true));
            self.programs[from].push(send);
            let spans = joined(facts.iter().map(|&fact| self.place(to, fact).0));
            let (order, len) = (Order::by_rank(to, from), facts.len());
            let (recv, combine) = if !combines {
                (Step::recv(from, spans), None)
            } else if ends(to) == 1 {
                (Step::recv_combine(from, spans, order), None)
            } else {
                let arrived = Span::new(scratch[to], len);
                scratch[to] += len;
                self.lengths[to] = self.lengths[to].max(scratch[to]);
                (
                    Step::recv(from, arrived),
                    Some(Step::combine(arrived, spans, order)),
                )
            };
            received.push((to, recv.on_port(port(to, false))));
            combined.extend(combine.map(|combine| (to, combine)));
        }
        for (rank, step) in received.into_iter().chain(combined) {
            self.programs[rank].push(step);
        }
    }

    /// Combines what outputs need, lays the buffers out, and builds.
    fn finish(mut self, backwards: Option<Collective>) -> Result<Schedule> {
        let (p, unit) = (self.problem.ranks, self.facts.unit);
        let combines = self.problem.collective.kind().reduces();
        let mut layout = Vec::new();
        for rank in 0..p {
            let of = |holds: &[Vec<bool>]| -> Vec<usize> {
                let facts = 0..self.facts.count;
                facts.filter(|&fact| holds[rank][fact]).collect()
            };
            let (start, need) = (of(&self.facts.start), of(&self.facts.need));
            let input = joined(start.iter().map(|&fact| self.place(rank, fact).0));
            let output = if unit > 1 {
                // An alltoall of whole inputs: a block of each.
                joined((0..p).map(|from| Span::new(from * unit + rank, 1)))
            } else if combines && self.facts.merges.is_empty() && p > 1 {
                joined(self.combined(rank, &need))
            } else {
                joined(need.iter().map(|&fact| self.made(rank, fact)))
            };
            layout.push(Layout {
                len: self.lengths[rank],
                input,
                output,
            });
        }
        if backwards.is_some() {
            for Layout { input, output, .. } in &mut layout {
                std::mem::swap(input, output);
            }
        }
        let collective = backwards.unwrap_or(self.problem.collective.clone());
        Schedule::new(self.problem.ports, collective, layout, self.programs)
    }

    /// Combines these inputs, in rank order, into that of the rank or the one before it; in one
    /// tree of all ranks into the first.
    fn combined(&mut self, rank: usize, inputs: &[usize]) -> Option<Span> {
        let last = if self.problem.same_bits { 0 } else { rank };
        let own = inputs
            .iter()
            .copied()
            .filter(|&input| input <= last)
            .max()?;
        let program = &mut self.programs[rank];
        let span = |input: usize| Span::new(input, 1);
        let lower = inputs.iter().rev().filter(|&&input| input < own);
        let lower = lower.map(|&input| (input, Order::TheirsFirst));
        let higher = inputs.iter().filter(|&&input| input > own);
        let higher = higher.map(|&input| (input, Order::MineFirst));
        for (input, order) in lower.chain(higher) {
            program.push(Step::combine(span(input), span(own), order));
        }
        Some(span(own))
    }
}
