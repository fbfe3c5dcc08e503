//! The formula that holds if and only if there is a schedule of a number of rounds.
//!
//! `known[t][v][f]` says that rank `v` has fact `f` after `t` steps; `messages` says who sends to
//! whom, of items also what. A fact is known only if it was, if it arrives, or if it is the
//! combination of two that are known.

use std::collections::BTreeMap;

use oneport::internal::budget::memory::LITERAL_BYTES;
use oneport::{Error, Result};

use crate::cnf::{Cnf, Literal};
use crate::facts::Facts;
use crate::problem::Problem;
use crate::second_round;

/// A message of a step; `fact` is `None` if it carries all that its sender knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) step: usize,
    /// The round of the step.
    pub(crate) round: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) fact: Option<usize>,
}

/// A formula, and what its variables say.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) cnf: Cnf,
    pub(crate) messages: Vec<(Message, Literal)>,
}

/// Bytes that the formula and the solver's copy of it take, about. With 60 for a literal this is
/// 0.9 to 1.7 times the peak of the process in the first 4 s of allgathers and alltoalls of 8 to 24
/// ranks (49 to 227 MiB); clauses learnt later come on top.
///
/// # Errors
/// States the estimate if it is more than `max_bytes`.
pub(crate) fn ensure_fits(problem: &Problem, steps: usize, max_bytes: u128) -> Result<()> {
    let pairs = problem.pairs().len() as u128;
    let (facts, merges) = Facts::counts(problem);
    let (p, count, merges) = (problem.ranks as u128, facts as u128, merges as u128);
    let of_ports = match problem.items {
        Some(_) => (4 + 12 * problem.ports.k() as u128) * pairs * count,
        None => 2 * pairs * p,
    };
    let of_step = u128::from(LITERAL_BYTES) * (12 * pairs * count + 8 * p * merges + of_ports);
    let bytes = of_step.saturating_mul(steps as u128);
    if bytes > max_bytes {
        return Err(Error::usage(format!(
            "the formula for {p} ranks, {facts} facts and {steps} step{} needs about {} MiB, more than \
             {} MiB: take fewer ranks or items",
            if steps == 1 { "" } else { "s" },
            bytes >> 20,
            max_bytes >> 20
        )));
    }
    Ok(())
}

/// Encodes the problem for steps of these numbers of rounds; `None` if it is told to stop.
pub(crate) fn encode(
    problem: &Problem,
    facts: &Facts,
    rounds: &[usize],
    stop: &dyn Fn() -> bool,
) -> Option<Encoded> {
    let (p, steps) = (problem.ranks, rounds.len());
    let mut cnf = Cnf::default();
    let table = |cnf: &mut Cnf| -> Vec<Vec<Literal>> {
        let row = |cnf: &mut Cnf| (0..facts.count).map(|_| cnf.variable()).collect();
        (0..p).map(|_| row(cnf)).collect()
    };
    let known: Vec<_> = (0..=steps).map(|_| table(&mut cnf)).collect();
    let of = |step: usize| known[step].iter().flatten();
    for (&first, &starts) in of(0).zip(facts.start.iter().flatten()) {
        cnf.clause([if starts { first } else { -first }]);
    }
    for (&last, _) in of(steps).zip(facts.need.iter().flatten()).filter(|x| *x.1) {
        cnf.clause([last]);
    }
    let mut encoded = Encoded {
        cnf,
        messages: Vec::new(),
    };
    for (step, &times) in rounds.iter().enumerate() {
        let first = encoded.messages.len();
        add_messages(problem, facts, step, times, &mut encoded);
        let (cnf, messages) = (&mut encoded.cnf, &encoded.messages[first..]);
        let (before, after) = (&known[step], &known[step + 1]);
        for rank in 0..p {
            if stop() {
                return None;
            }
            let arriving: Vec<_> = messages.iter().filter(|m| m.0.to == rank).collect();
            add_knowledge(problem, facts, cnf, rank, before, after, &arriving);
        }
    }
    break_symmetry(problem, facts, steps, &mut encoded, stop);
    (!stop()).then_some(encoded)
}

/// The formula that divides the messages of a step among its rounds, and by message the literals
/// that say so. It always holds: a bipartite multigraph has a colouring in which the edges at each
/// vertex, and those between two vertices, are divided evenly (de Werra 1971).
pub(crate) fn rounds_of(
    problem: &Problem,
    sent: &[Message],
    times: usize,
) -> (Cnf, Vec<Vec<Literal>>) {
    let mut cnf = Cnf::default();
    let row = |_: &Message| (0..times).map(|_| cnf.variable()).collect();
    let literals: Vec<Vec<Literal>> = sent.iter().map(row).collect();
    for row in &literals {
        cnf.clause(row.iter().copied());
    }
    for round in 0..times {
        let mut at_most = |most: usize, is_one: &dyn Fn(&Message) -> bool| {
            let these = sent.iter().zip(&literals).filter(|(m, _)| is_one(m));
            cnf.at_most(most, &these.map(|(_, row)| row[round]).collect::<Vec<_>>());
        };
        for rank in 0..problem.ranks {
            at_most(problem.ports.k(), &|m| m.from == rank);
            at_most(problem.ports.k(), &|m| m.to == rank);
        }
        for (from, to) in problem.pairs() {
            at_most(problem.link(from, to), &|m| (m.from, m.to) == (from, to));
        }
    }
    (cnf, literals)
}

/// The variables of the messages of a step, and the limits of ports, links and calls.
fn add_messages(
    problem: &Problem,
    facts: &Facts,
    step: usize,
    times: usize,
    encoded: &mut Encoded,
) {
    let (cnf, all) = (&mut encoded.cnf, &mut encoded.messages);
    let first = all.len();
    let k = problem.ports.k() * times;
    let mut calls = BTreeMap::new();
    let pairs = problem.pairs();
    for &(from, to) in &pairs {
        let facts: Vec<Option<usize>> = match problem.items {
            None => vec![None],
            Some(_) => (0..facts.count).map(Some).collect(),
        };
        let literals: Vec<_> = facts.iter().map(|_| cnf.variable()).collect();
        if problem.links.is_some() {
            cnf.at_most(problem.link(from, to) * times, &literals);
        }
        if problem.ports.has_calls() {
            let ends = (from.min(to), from.max(to));
            let call = *calls.entry(ends).or_insert_with(|| cnf.variable());
            literals
                .iter()
                .for_each(|&literal| cnf.clause([-literal, call]));
        }
        let message = |fact| Message {
            step,
            round: 0,
            from,
            to,
            fact,
        };
        all.extend(facts.into_iter().map(message).zip(literals));
    }
    for rank in 0..problem.ranks {
        if problem.ports.has_calls() {
            let own = calls.iter().filter(|((a, b), _)| [a, b].contains(&&rank));
            cnf.at_most(1, &own.map(|call| *call.1).collect::<Vec<_>>());
        }
        let directions: &[[bool; 2]] = if problem.ports.can_exchange() {
            &[[true, false], [false, true]]
        } else {
            &[[true, true]]
        };
        for [out, arriving] in directions {
            let ends = |from, to| *out && from == rank || *arriving && to == rank;
            let pairs = pairs.iter().filter(|pair| ends(pair.0, pair.1));
            let room: usize = pairs.map(|pair| problem.link(pair.0, pair.1)).sum();
            // A counter of all messages that the links limit anyhow would swamp the solver.
            if problem.links.is_none() || room > problem.ports.k() {
                let own = all[first..].iter().filter(|m| ends(m.0.from, m.0.to));
                cnf.at_most(k, &own.map(|m| m.1).collect::<Vec<_>>());
            }
        }
    }
}

/// What a rank knows after a step in which these messages may arrive.
fn add_knowledge(
    problem: &Problem,
    facts: &Facts,
    cnf: &mut Cnf,
    rank: usize,
    before: &[Vec<Literal>],
    after: &[Vec<Literal>],
    arriving: &[&(Message, Literal)],
) {
    let one_arrives = problem.ports.k() == 1 && problem.items.is_none();
    let mut merged: Vec<Vec<Literal>> = vec![Vec::new(); facts.count];
    for &[whole, left, right] in &facts.merges {
        let merge = cnf.variable();
        cnf.clause([-merge, after[rank][left]]);
        cnf.clause([-merge, after[rank][right]]);
        merged[whole].push(merge);
    }
    for fact in 0..facts.count {
        let (was, is) = (before[rank][fact], after[rank][fact]);
        let mut reasons = vec![-is, was];
        cnf.clause([-was, is]);
        for &&(
            Message {
                from,
                fact: carried,
                ..
            },
            message,
        ) in arriving
        {
            let there = before[from][fact];
            match carried {
                Some(carried) if carried != fact => continue,
                Some(_) => {
                    cnf.clause([-message, there]);
                    cnf.clause([-message, is]);
                    cnf.clause([-message, -was]);
                    reasons.push(message);
                }
                None => {
                    cnf.clause([-message, -there, is]);
                    if one_arrives {
                        cnf.clause([-is, -message, there, was]);
                        reasons.push(message);
                    } else {
                        let brings = cnf.variable();
                        cnf.clause([-brings, message]);
                        cnf.clause([-brings, there]);
                        reasons.push(brings);
                    }
                }
            }
        }
        reasons.append(&mut merged[fact]);
        cnf.clause(reasons);
    }
}

/// Excludes schedules that others with as few rounds stand for, on a complete graph.
fn break_symmetry(
    problem: &Problem,
    facts: &Facts,
    steps: usize,
    encoded: &mut Encoded,
    stop: &dyn Fn() -> bool,
) {
    use oneport::Kind::{Allgather, Allreduce, Alltoall, Barrier, Broadcast};
    let p = problem.ranks;
    if problem.links.is_some() || problem.steps.is_some() || p < 2 || steps == 0 {
        return;
    }
    let (cnf, messages) = (&mut encoded.cnf, &encoded.messages);
    // Messages are in order of step, sender, receiver and fact.
    let forms = problem.items.map_or(1, |_| facts.count);
    let sent = |step: usize, from: usize, to: usize, fact: Option<usize>| {
        let pair = (step * p + from) * (p - 1) + to - usize::from(to > from);
        let found = messages.get(pair * forms + fact.unwrap_or(0));
        found.filter(|_| from != to).map(|m| m.1)
    };
    match (problem.collective.kind(), problem.items) {
        (Allgather | Allreduce | Alltoall | Barrier, None)
            if !problem.ports.can_relay()
                && (problem.ports.can_exchange() || problem.ports.k() == 1) =>
        {
            // More messages do no harm, and the ranks are alike.
            for i in 0..p / 2 {
                cnf.clause(sent(0, 2 * i, 2 * i + 1, None));
            }
            if problem.ports.can_exchange() {
                return;
            }
            for step in 0..steps {
                let mut idle = Vec::new();
                for rank in 0..p {
                    let own = messages
                        .iter()
                        .filter(|(m, _)| m.step == step && (m.from == rank || m.to == rank));
                    let mut busy: Vec<_> = own.map(|m| m.1).collect();
                    if p % 2 == 1 {
                        idle.push(cnf.variable());
                        busy.extend(idle.last());
                    }
                    cnf.clause(busy);
                }
                cnf.at_most(1, &idle);
            }
            if steps > 1 && p <= second_round::MAX_RANKS {
                let mut cases = Vec::new();
                for matching in second_round::representatives(p) {
                    let case = cnf.variable();
                    for (from, to) in matching {
                        cnf.clause([-case].into_iter().chain(sent(1, from, to, None)));
                    }
                    cases.push(case);
                }
                cnf.clause(cases);
            }
        }
        (Broadcast, Some(items)) if problem.ports.k() == 1 => {
            // The root sends its items in order, the first of them to the next rank.
            let root = problem.collective.root().unwrap_or(0);
            cnf.clause(sent(0, root, (root + 1) % p, Some(0)));
            let others = || (0..p).filter(move |&to| to != root);
            for (item, step) in (1..items).flat_map(|i| (0..steps).map(move |s| (i, s))) {
                if stop() {
                    return;
                }
                let earlier = (0..step).flat_map(|step| others().map(move |to| (step, to)));
                let earlier: Vec<_> = earlier
                    .filter_map(|(step, to)| sent(step, root, to, Some(item - 1)))
                    .collect();
                for message in others().filter_map(|to| sent(step, root, to, Some(item))) {
                    cnf.clause([-message].into_iter().chain(earlier.iter().copied()));
                }
            }
        }
        _ => {}
    }
}
