//! What pairs of ranks cost, as matrices, and as the levels of several hosts.

use super::super::fit::median;
use super::fits::{Fits, Line};
use oneport::error::Result;
use oneport::machine::{Level, Links};

/// How often a pair is measured at most.
const MAX_ATTEMPTS: usize = 3;

pub(super) fn pairs_of(ranks: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..ranks).flat_map(move |i| (i + 1..ranks).map(move |j| [i, j]))
}

/// The first pair of ranks on one host, of the hosts by rank.
pub(super) fn pair_of_one_host(hosts: &[String]) -> Option<[usize; 2]> {
    pairs_of(hosts.len()).find(|&[i, j]| hosts[i] == hosts[j])
}

/// A pair of ranks, and the line of its messages.
pub(super) type PairLine = ([usize; 2], Line);

/// The lines of `pairs`, the first of which is known. A pair that was disturbed so much that its
/// line has no meaning is measured again, a few times.
pub(super) fn lines(
    pairs: &[[usize; 2]],
    fits: &Fits,
    mut line: impl FnMut([usize; 2]) -> Result<Line>,
) -> Result<Vec<PairLine>> {
    let mut lines = vec![(pairs[0], fits.line)];
    for &pair in &pairs[1..] {
        let mut measured = line(pair);
        for _ in 1..MAX_ATTEMPTS {
            measured = measured.or_else(|_| line(pair));
        }
        lines.push((pair, measured?));
    }
    Ok(lines)
}

/// Arranges the pairs' lines as matrices; a rank has no link to itself.
pub(super) fn matrices(ranks: usize, lines: &[PairLine], fits: &Fits) -> Links {
    let mut links = Links {
        alpha: vec![vec![None; ranks]; ranks],
        beta: vec![vec![None; ranks]; ranks],
        gamma: vec![fits.gamma; ranks],
        gamma_copy: vec![fits.gamma_copy; ranks],
        ..Links::default()
    };
    if lines.iter().any(|(_, line)| line.latency > 0.0) {
        links.latency = vec![vec![0.0; ranks]; ranks];
    }
    for &([i, j], line) in lines {
        for (from, to) in [(i, j), (j, i)] {
            links.alpha[from][to] = Some(line.alpha);
            links.beta[from][to] = Some(line.beta);
            if let Some(latency) = links.latency.get_mut(from) {
                latency[to] = line.latency;
            }
        }
    }
    links
}

/// The levels of ranks on these hosts, by rank: the medians of the pairs' lines on one host and on
/// two. None without pairs of both classes.
pub(super) fn levels(hosts: &[String], lines: &[PairLine]) -> Vec<Level> {
    let level = |on_one_host: bool, groups| {
        let class = || {
            let in_class = |&&([i, j], _): &&PairLine| (hosts[i] == hosts[j]) == on_one_host;
            lines.iter().filter(in_class).map(|(_, line)| line)
        };
        let of = |part: fn(&Line) -> f64| median(&mut class().map(part).collect::<Vec<_>>());
        class().next().is_some().then(|| Level {
            groups,
            alpha: of(|line| line.alpha),
            beta: of(|line| line.beta),
            latency: of(|line| line.latency),
        })
    };
    let near = level(true, Some(ranks_by_host(hosts)));
    let both = near.zip(level(false, None));
    both.map_or_else(Vec::new, |(near, far)| vec![near, far])
}

/// The ranks of each host, in the order of their first ranks.
fn ranks_by_host(hosts: &[String]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (rank, host) in hosts.iter().enumerate() {
        match groups.iter_mut().find(|group| hosts[group[0]] == *host) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}
