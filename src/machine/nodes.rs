//! The nodes of a machine whose links differ by level, and the costs among some of its ranks.

use super::{CostModel, Links};
use crate::error::Result;

/// The levels of a machine, from the innermost to the outermost one, which all ranks share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// By level but the outermost, by rank: its group.
    groups: Vec<Vec<usize>>,
}

impl Levels {
    /// Number of levels, at least 2.
    pub fn count(&self) -> usize {
        self.groups.len() + 1
    }

    /// The innermost level that has both ranks in one group, counted from 0.
    pub fn of(&self, a: usize, b: usize) -> usize {
        let shared = self.groups.iter().position(|of| of[a] == of[b]);
        shared.unwrap_or(self.groups.len())
    }
}

/// Parts of a heterogeneous model.
impl CostModel {
    /// The levels of ranks `0..ranks`, as the costs show them: those of [`nodes`](Self::nodes), and
    /// of nodes within nodes. `None` if there are no nodes.
    ///
    /// Takes as long as finding the nodes, once for each level.
    pub fn levels(&self, ranks: usize) -> Option<Levels> {
        // From the outermost level to the innermost one.
        let mut groups = Vec::new();
        let mut nodes = self.nodes(ranks);
        while let Some(found) = nodes {
            let mut of = vec![0; ranks];
            for (number, node) in found.iter().enumerate() {
                node.iter().for_each(|&rank| of[rank] = number);
            }
            groups.push(of);
            let within: Vec<_> = found.iter().map(|node| self.nodes_among(node)).collect();
            nodes = within.iter().any(Option::is_some).then(|| {
                let finer = within.into_iter().zip(found);
                finer
                    .flat_map(|(within, node)| within.unwrap_or(vec![node]))
                    .collect()
            });
        }
        groups.reverse();
        (!groups.is_empty()).then_some(Levels { groups })
    }

    /// The nodes of these ranks alone.
    fn nodes_among(&self, ranks: &[usize]) -> Option<Vec<Vec<usize>>> {
        let nodes = self.among(ranks).ok()?.nodes(ranks.len())?;
        let named = |node: Vec<usize>| node.into_iter().map(|at| ranks[at]).collect();
        Some(nodes.into_iter().map(named).collect())
    }

    /// The nodes of ranks `0..ranks`, as the costs show them: all links between different nodes
    /// cost the same, and there is no finer partition of which that is true. Of a machine of
    /// several levels these are the groups within the outermost one. Nodes are in the order of
    /// their first ranks, the ranks of each in ascending order.
    ///
    /// `None` if links do not differ in this way: the model is homogeneous, or every rank is a node
    /// of its own, or there is only one node.
    ///
    /// Takes `O(l p^2)` time for `p` ranks, where rank 0 has links of `l` different costs.
    ///
    /// ```
    /// use oneport::machine::Links;
    /// use oneport::CostModel;
    /// let links = Links::from_json(r#"{"levels": [
    ///     {"groups": [[0, 2], [1, 3]], "alpha": 300, "beta": 0.1},
    ///     {"alpha": 2000, "beta": 0.4}]}"#)?;
    /// let cost = CostModel::heterogeneous(links)?;
    /// assert_eq!(cost.nodes(4), Some(vec![vec![0, 2], vec![1, 3]]));
    /// # Ok::<(), oneport::Error>(())
    /// ```
    pub fn nodes(&self, ranks: usize) -> Option<Vec<Vec<usize>>> {
        let platform = self.platform()?;
        // Links between nodes cost what some link of rank 0 costs.
        let mut tried = Vec::new();
        for other in 1..ranks {
            let far = platform.pair(0, other);
            if far.0.is_infinite() || tried.contains(&far) {
                continue;
            }
            tried.push(far);
            let near = |a, b| platform.pair(a, b) != far || platform.pair(b, a) != far;
            let nodes = components(ranks, near);
            if (2..ranks).contains(&nodes.len()) {
                return Some(nodes);
            }
        }
        None
    }

    /// The model of these ranks alone, numbered in this order: homogeneous if their costs are the
    /// same. The model must describe them. Takes `O(n^2)` time for `n` ranks.
    ///
    /// # Errors
    /// None in practice: the links have already been validated.
    #[doc(hidden)]
    pub fn among(&self, ranks: &[usize]) -> Result<CostModel> {
        let Some(platform) = self.platform() else {
            return Ok(self.clone().without_arrivals());
        };
        let links = &platform.links;
        let rates = |all: &[f64]| -> Vec<f64> {
            let of = ranks.iter().filter_map(|&rank| all.get(rank).copied());
            of.collect()
        };
        let (gamma, gamma_copy) = (rates(&links.gamma), rates(&links.gamma_copy));
        let pairs_of = |a: usize| ranks.iter().map(move |&b| (a, b)).filter(|(a, b)| a != b);
        let costs = |(a, b)| (platform.pair(a, b), self.latency_between(a, b));
        let mut pairs = ranks.iter().flat_map(|&a| pairs_of(a)).map(costs);
        let ((alpha, beta), latency) = pairs.next().unwrap_or_default();
        let same = |rates: &[f64]| rates.iter().all(|rate| *rate == rates[0]);
        if alpha.is_finite()
            && same(&gamma)
            && same(&gamma_copy)
            && pairs.all(|x| x == ((alpha, beta), latency))
        {
            let first = |rates: &[f64]| rates.first().copied().unwrap_or(0.0);
            let cost = CostModel::new(alpha, beta).gamma(first(&gamma));
            let cost = cost.gamma_copy(first(&gamma_copy)).overlap(self.overlap);
            return Ok(cost.latency(latency).eager(self.sends_eagerly()));
        }
        fn matrix<T: Copy>(of: &[Vec<T>], ranks: &[usize]) -> Vec<Vec<T>> {
            let row = |&a: &usize| ranks.iter().map(|&b| of[a][b]).collect();
            ranks.iter().map(row).collect()
        }
        let links = Links {
            alpha: matrix(&links.alpha, ranks),
            beta: matrix(&links.beta, ranks),
            gamma,
            gamma_copy,
            latency: if links.latency.is_empty() {
                Vec::new()
            } else {
                matrix(&links.latency, ranks)
            },
            ..Links::default()
        };
        Ok(self.clone().with_links(links))
    }
}

/// The connected components of the graph of these ranks in which pairs that are `near` have an
/// edge. Both in ascending order.
fn components(ranks: usize, near: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut rest: Vec<usize> = (0..ranks).collect();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let others = rest.split_off(1);
        let (mut component, mut at) = (std::mem::replace(&mut rest, others), 0);
        while let Some(&from) = component.get(at) {
            let (reached, left) = rest.into_iter().partition(|&to| near(from, to));
            let reached: Vec<usize> = reached;
            component.extend(reached);
            rest = left;
            at += 1;
        }
        component.sort_unstable();
        all.push(component);
    }
    all
}
