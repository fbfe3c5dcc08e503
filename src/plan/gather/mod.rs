//! Irregular gather and scatter: trees for blocks of different sizes.
//!
//! Rank `i` holds `m_i` bytes; the root ends with all blocks in rank order. A scatter is the reverse and costs the same. Every planner here
//! makes a [`GatherTree`] for a [`Problem`]; the tree knows its completion time and makes the schedules.
//!
//! Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives" and "Practical, Linear-time, Fully Distributed
//! Algorithms for Irregular Gather and Scatter".

pub mod binary;
pub mod binomial;
pub mod degrading;
pub mod heterogeneous;
pub mod linear;
pub mod optimal;
pub mod ported;
pub mod rank_ordered;
pub(super) mod rows;
mod tree;
pub mod two;
pub mod unordered;
pub mod weakly;

pub use tree::{Child, GatherTree};

use crate::cost::{CostModel, bytes};
use crate::error::{Error, Result};
use crate::plan::Request;

/// Blocks to be gathered, and what messages and copies cost.
#[derive(Debug, Clone)]
pub struct Problem {
    sizes: Vec<u64>,
    cost: CostModel,
    root: Option<usize>,
    ported: usize,
}

impl Problem {
    /// Blocks of `sizes` bytes, one a rank, to be gathered at `root`, or wherever it is best.
    ///
    /// # Errors
    /// When there is no rank, the root is none, the sizes add up to more than 2^60, or the costs are no times or do not describe all
    /// ranks.
    pub fn new(sizes: Vec<u64>, cost: CostModel, root: Option<usize>) -> Result<Problem> {
        let p = sizes.len();
        if p == 0 {
            return Err(Error::usage("a collective needs at least one rank (-p 0)"));
        }
        if let Some(root) = root.filter(|&root| root >= p) {
            return Err(Error::usage(format!(
                "root {root} is not one of {p} ranks (numbered from 0)"
            )));
        }
        let sum = sizes
            .iter()
            .try_fold(0u64, |a, &b| a.checked_add(b).filter(|&s| s <= 1 << 60));
        if sum.is_none() {
            return Err(Error::usage("the blocks add up to more than 2^60 bytes"));
        }
        cost.validate()?;
        cost.covers(p)?;
        Ok(Problem {
            sizes,
            cost,
            root,
            ported: 1,
        })
    }

    /// The blocks of a request.
    ///
    /// # Errors
    /// When the request's parts do not fit together, or as [`Problem::new`].
    pub fn of(request: &Request) -> Result<Problem> {
        request.validate()?;
        let blocks = request.block_sizes();
        let bytes = |&n: &usize| bytes(n, request.element_bytes);
        let root = (!request.root_free).then_some(request.root);
        let sizes = blocks.iter().map(bytes).collect();
        Problem::new(sizes, request.cost.clone(), root)?.with_ports(request.ports.k())
    }

    /// The same with `ported` ports a rank, for the planners that use them.
    ///
    /// # Errors
    /// When it is 0.
    pub fn with_ports(mut self, ported: usize) -> Result<Problem> {
        if ported == 0 {
            return Err(Error::usage("a rank needs at least one port (ported is 0)"));
        }
        self.ported = ported;
        Ok(self)
    }

    /// The same with another root, `None` for the best.
    ///
    /// # Errors
    /// When it is not one of the ranks.
    pub fn with_root(mut self, root: Option<usize>) -> Result<Problem> {
        if let Some(root) = root.filter(|&root| root >= self.ranks()) {
            return Err(Error::usage(format!(
                "root {root} is not one of {} ranks (numbered from 0)",
                self.ranks()
            )));
        }
        self.root = root;
        Ok(self)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.sizes.len()
    }

    /// Bytes of each rank's block.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// What messages and copies cost.
    pub fn cost(&self) -> &CostModel {
        &self.cost
    }

    /// The root; `None` if it is free to choose.
    pub fn root(&self) -> Option<usize> {
        self.root
    }

    /// Ports of a rank.
    pub fn ported(&self) -> usize {
        self.ported
    }

    /// The completion time of `tree` for these blocks.
    pub fn time(&self, tree: &GatherTree) -> f64 {
        tree.time(&self.sizes, &self.cost)
    }

    /// The fastest of `trees`, the first of those that are equally fast.
    fn fastest(&self, trees: impl IntoIterator<Item = GatherTree>) -> Option<GatherTree> {
        let timed = trees.into_iter().map(|tree| (self.time(&tree), tree));
        timed
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .map(|(_, tree)| tree)
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! Random problems and what every tree must satisfy.

    use super::*;
    use crate::check::{Options, check};
    use crate::cost::Ports;
    use crate::simulate::Prepared;

    /// A small deterministic generator (splitmix64).
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        /// One of `0..n`.
        pub(crate) fn below(&mut self, n: u64) -> u64 {
            self.next() % n
        }

        /// Sizes of many kinds: positive, or with empty blocks, even or very uneven.
        pub(crate) fn sizes(&mut self, p: usize) -> Vec<u64> {
            let kind = self.below(5);
            let top = [2, 5, 20, 100, 1000][self.below(5) as usize];
            (0..p)
                .map(|_| match kind {
                    0 => 1 + self.below(top),
                    1 => self.below(top),
                    2 => self.below(3).min(1) * self.below(top),
                    3 => self.below(2) * (1 + self.below(top)),
                    _ => 1 + self.below(4).saturating_sub(2) * self.below(top),
                })
                .collect()
        }
    }

    /// Checks that the schedules of a tree are right and take its time, on both kinds of ports.
    pub(crate) fn prove(problem: &Problem, tree: &GatherTree) {
        let blocks: Vec<usize> = problem.sizes.iter().map(|&s| s as usize).collect();
        if let Some(root) = problem.root {
            assert_eq!(tree.root(), root);
        }
        let time = problem.time(tree);
        for ports in [Ports::UNI, Ports::BI] {
            let ports = ports.with_k(tree.ported());
            let gather = tree.gather(&blocks, ports).unwrap();
            let scatter = tree.scatter(&blocks, ports).unwrap();
            for schedule in [gather, scatter] {
                let report = check(&schedule, &Options::default());
                assert!(report.ok(), "{problem:?} {tree:?}: {:?}", report.errors);
                let prepared = Prepared::new(&schedule, false).unwrap();
                let simulated = prepared.simulate(&problem.cost, 1).time();
                assert_eq!(simulated, time, "{problem:?} {tree:?}");
            }
        }
    }
}
