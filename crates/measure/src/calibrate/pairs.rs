//! What pairs of ranks cost, as matrices, and as the levels of several hosts.

use super::super::fit::median;
use super::fits::{Fits, Line};
use oneport::machine::{Level, Links};

/// All pairs of ranks.
pub(super) fn pairs_of(ranks: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..ranks).flat_map(move |i| (i + 1..ranks).map(move |j| [i, j]))
}

/// The first pair of ranks on one host, of the hosts by rank.
pub(super) fn pair_of_one_host(hosts: &[String]) -> Option<[usize; 2]> {
    pairs_of(hosts.len()).find(|&[i, j]| hosts[i] == hosts[j])
}

/// Arranges the pairs' lines as matrices; a rank has no link to itself.
pub(super) fn matrices(ranks: usize, lines: &[([usize; 2], Line)], fits: &Fits) -> Links {
    let mut links = Links {
        alpha: vec![vec![None; ranks]; ranks],
        beta: vec![vec![None; ranks]; ranks],
        gamma: vec![fits.gamma; ranks],
        gamma_copy: vec![fits.gamma_copy; ranks],
    };
    for &([i, j], (alpha, beta)) in lines {
        for (from, to) in [(i, j), (j, i)] {
            links.alpha[from][to] = Some(alpha);
            links.beta[from][to] = Some(beta);
        }
    }
    links
}

/// The levels of ranks on these hosts, by rank: the medians of the pairs' lines on one host and on
/// two. None without pairs of both classes.
pub(super) fn levels(hosts: &[String], lines: &[([usize; 2], Line)]) -> Vec<Level> {
    let level = |on_one_host: bool, groups| {
        let class = lines
            .iter()
            .filter(|&&([i, j], _)| (hosts[i] == hosts[j]) == on_one_host);
        let (mut alphas, mut betas): (Vec<f64>, Vec<f64>) = class.map(|&(_, line)| line).unzip();
        (!alphas.is_empty()).then(|| Level {
            groups,
            alpha: median(&mut alphas),
            beta: median(&mut betas),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &str) -> Vec<String> {
        names.split(' ').map(String::from).collect()
    }

    #[test]
    fn levels_are_the_medians_of_pairs_on_one_host_and_on_two() {
        let of = hosts("b a b a a");
        // Pairs on one host: 0-2, 1-3, 1-4, 3-4.
        let line = |[i, j]: [usize; 2]| match of[i] == of[j] {
            true => ((10 * i + j) as f64, 0.25),
            false => ((100 * (i + j)) as f64, (i + j) as f64),
        };
        let lines: Vec<_> = pairs_of(5).map(|pair| (pair, line(pair))).collect();
        let expected = [
            Level {
                groups: Some(vec![vec![0, 2], vec![1, 3, 4]]),
                alpha: 13.5,
                beta: 0.25,
            },
            // The sums of the ranks are 1, 3, 4, 3, 5, 6.
            Level {
                groups: None,
                alpha: 350.0,
                beta: 3.5,
            },
        ];
        assert_eq!(levels(&of, &lines), expected);
        // One pair of each class is enough.
        let few = [lines[0], lines[1]];
        let costs = levels(&of, &few).into_iter().map(|l| (l.alpha, l.beta));
        assert_eq!(costs.collect::<Vec<_>>(), [line([0, 2]), line([0, 1])]);
        assert_eq!(pair_of_one_host(&of), Some([0, 2]));
    }

    #[test]
    fn one_class_of_pairs_has_no_levels() {
        for names in ["a a a", "a b c"] {
            let lines: Vec<_> = pairs_of(3).map(|pair| (pair, (1.0, 2.0))).collect();
            assert_eq!(levels(&hosts(names), &lines), []);
        }
        assert_eq!(pair_of_one_host(&hosts("a b c")), None);
    }
}
