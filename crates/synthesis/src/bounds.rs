//! Lower bounds of the number of rounds that formulas give, and ranks that cannot be reached.

use oneport::internal::numbers::truncated;
use oneport::plan::choose;
use oneport::schedule::collective::{Extent, Holders};
use oneport::{CostModel, Error, Request, Result, Schedule};

use crate::facts::Facts;
use crate::problem::Problem;

/// The best row of the registry for messages that take a round whatever they carry, with its
/// rounds.
pub(crate) fn best_row(problem: &Problem) -> Option<(Schedule, usize)> {
    let kind = problem.collective.kind();
    // A vector has an element for each block.
    let elements = if kind.has_blocks() && !kind.is_sized_by_block() {
        problem.ranks
    } else {
        usize::from(kind.has_data())
    };
    let request = Request::new(kind, problem.ranks, elements);
    let cost = CostModel::new(1.0, 0.0);
    let request = request.ports(problem.ports).cost(cost.clone());
    let request = request.root(problem.collective.root().unwrap_or(0));
    let request = request.same_bits(problem.same_bits);
    let request = request.targets(problem.collective.targets().map(<[usize]>::to_vec));
    let choice = choose::choose(&request).ok()?;
    let schedule = choice.plan().ok()?;
    let makespan = schedule.simulate(&cost).ok()?.makespan();
    Some((schedule, truncated(makespan.round())))
}

/// The largest lower bound; 0 if nothing has to be sent.
///
/// # Errors
/// Names a rank that another one's input cannot reach.
pub(crate) fn lower(problem: &Problem, facts: &Facts, row: Option<&Schedule>) -> Result<usize> {
    let p = problem.ranks;
    let mut bound = 0;
    // In a round a rank hears of what k others have heard, so of `(k+1)^t` ranks in `t` rounds; and
    // one input reaches as many.
    let k = problem.ports.k();
    let steps = |n: usize| {
        let growth = std::iter::successors(Some(1usize), |n| Some(n.saturating_mul(k + 1)));
        growth.take_while(|&reached| reached < n).count()
    };
    let mut reached = vec![1; p];
    for rank in 0..p {
        let mut sources = facts.sources(rank);
        sources.retain(|&source| source != rank);
        bound = bound.max(steps(sources.len() + 1));
        let distances = distances(problem, rank);
        for source in sources {
            reached[source] += 1;
            let Some(distance) = distances[source] else {
                return Err(Error::usage(format!(
                    "the graph is not connected: there is no way from rank {source} to rank {rank}"
                )));
            };
            bound = bound.max(distance);
        }
    }
    let widest = reached.into_iter().max().unwrap_or(1);
    bound = bound.max(steps(widest));
    if problem.items.is_some() && facts.merges.is_empty() {
        bound = bound.max(by_counting(problem, facts, steps(widest)));
    }
    if let Some(schedule) = row {
        let known = schedule.lower_bound(&CostModel::new(1.0, 0.0)).largest;
        bound = bound.max(truncated((known - 1e-6).ceil()));
    }
    Ok(bound)
}

/// Items that must leave or reach a rank, over the messages that its ports and links allow.
fn by_counting(problem: &Problem, facts: &Facts, steps: usize) -> usize {
    let (p, k) = (problem.ranks, problem.ports.k());
    let capacity = |rank: usize, out: bool| {
        let link = |other| {
            if out {
                problem.link(rank, other)
            } else {
                problem.link(other, rank)
            }
        };
        let links: usize = (0..p).map(link).sum();
        k.min(links).max(1)
    };
    let row = problem.collective.kind().row();
    let is_for_all =
        [row.input, row.output] == [Holders::Root, Holders::Every].map(|h| (h, Extent::Whole));
    let (mut bound, mut all) = (0, 0);
    for rank in 0..p {
        let lacks = |fact: &usize| facts.need[rank][*fact] && !facts.start[rank][*fact];
        let missing = (0..facts.count).filter(lacks).count();
        let sought = |fact: &usize| {
            let elsewhere = |other: usize| other != rank && facts.need[other][*fact];
            facts.start[rank][*fact] && (0..p).any(elsewhere)
        };
        let sent = (0..facts.count).filter(sought).count();
        all += missing;
        bound = bound.max(missing.div_ceil(capacity(rank, false)));
        let first_sent = sent.div_ceil(capacity(rank, true));
        // The last of these to leave has yet to spread if all ranks need it.
        let spreads = is_for_all && sent > 0;
        bound = bound.max(if spreads && problem.steps.is_none() {
            first_sent - 1 + steps
        } else {
            first_sent
        });
    }
    let k = problem.ports.k();
    let in_a_round = if problem.ports.can_relay() {
        p * k
    } else if problem.ports.can_exchange() {
        (p - p % 2).max(k)
    } else {
        (p * k / 2).max(1)
    };
    // Only ranks that have something send, and each message makes at most one more of them.
    let has_some = |rank: &usize| facts.start[*rank].iter().any(|&has| has);
    let mut senders = (0..p).filter(has_some).count();
    let (mut rounds, mut arrived) = (0, 0);
    while arrived < all {
        arrived += in_a_round.min(k * senders);
        senders = p.min((k + 1) * senders);
        rounds += 1;
    }
    bound.max(rounds)
}

/// By rank: the number of links from it to `rank`.
fn distances(problem: &Problem, rank: usize) -> Vec<Option<usize>> {
    let mut distances = vec![None; problem.ranks];
    distances[rank] = Some(0);
    let mut queue = vec![(rank, 0)];
    let mut at = 0;
    while let Some(&(to, distance)) = queue.get(at) {
        for (from, known) in distances.iter_mut().enumerate() {
            if known.is_none() && problem.link(from, to) > 0 {
                *known = Some(distance + 1);
                queue.push((from, distance + 1));
            }
        }
        at += 1;
    }
    distances
}
