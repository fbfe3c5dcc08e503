//! The problem of an irregular gather: blocks, costs, root; and random problems for tests.

use super::GatherTree;
use crate::error::{Error, Result};
use crate::machine::{CostModel, Ports, bytes};
use crate::plan::Request;

/// An irregular gather of `p` blocks: their sizes in bytes, the costs of messages and copies, and
/// the root.
#[derive(Debug, Clone)]
pub struct GatherProblem {
    sizes: Vec<u64>,
    cost: CostModel,
    root: Option<usize>,
    ported: usize,
}

impl GatherProblem {
    /// Blocks of `sizes` bytes, one per rank, to be gathered at `root`, or at the best root if
    /// `None`.
    ///
    /// # Errors
    /// When there are no ranks, `root` is not a rank, the sizes add up to more than 2^60, or the
    /// costs are invalid or do not cover all ranks.
    pub fn new(sizes: Vec<u64>, cost: CostModel, root: Option<usize>) -> Result<GatherProblem> {
        let p = sizes.len();
        if p == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
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
        Ok(GatherProblem {
            sizes,
            cost,
            root,
            ported: 1,
        })
    }

    /// The gather that `request` describes: its blocks, each element with the request's number of
    /// bytes, its costs, ports and root.
    ///
    /// # Errors
    /// As [`Request::validate`] and [`GatherProblem::new`].
    pub fn of(request: &Request) -> Result<GatherProblem> {
        request.validate()?;
        let blocks = request.block_sizes();
        let bytes = |&n: &usize| bytes(n, request.element_bytes);
        let root = (!request.root_free).then_some(request.root);
        let sizes = blocks.iter().map(bytes).collect();
        GatherProblem::new(sizes, request.cost.clone(), root)?.with_ports(request.ports.k())
    }

    /// The same problem with `ported` ports per rank, for the planners that use several.
    ///
    /// # Errors
    /// When `ported` is 0 or more than [`Ports::MAX_K`].
    pub fn with_ports(mut self, ported: usize) -> Result<GatherProblem> {
        Ports::BI.with_k(ported).validate()?;
        self.ported = ported;
        Ok(self)
    }

    /// The same problem with another root, or a free one if `None`.
    ///
    /// # Errors
    /// When `root` is not a rank.
    pub fn with_root(mut self, root: Option<usize>) -> Result<GatherProblem> {
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

    /// The costs of messages and copies.
    pub fn cost(&self) -> &CostModel {
        &self.cost
    }

    /// The root, or `None` if the planner may choose it.
    pub fn root(&self) -> Option<usize> {
        self.root
    }

    /// Number of ports per rank.
    pub fn ported(&self) -> usize {
        self.ported
    }

    /// The completion time of `tree` for these blocks: see [`GatherTree::time`].
    ///
    /// # Panics
    /// When the tree has not as many ranks as the problem.
    pub fn time(&self, tree: &GatherTree) -> f64 {
        tree.time(&self.sizes, &self.cost)
    }

    /// The fastest of `trees`; the first one of several equally fast.
    pub(super) fn fastest(
        &self,
        trees: impl IntoIterator<Item = GatherTree>,
    ) -> Option<GatherTree> {
        let timed = trees.into_iter().map(|tree| (self.time(&tree), tree));
        timed
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .map(|(_, tree)| tree)
    }
}

#[cfg(test)]
pub(in crate::plan) mod testing {
    //! Random problems, and the properties that every tree must have.

    use super::*;
    use crate::machine::Ports;
    use crate::random::Generator;

    /// Random numbers, and random problems made of them.
    pub(crate) struct Random(Generator);

    impl Random {
        pub(crate) fn new(seed: u64) -> Random {
            Random(Generator::new(seed))
        }

        /// A random number of `0..n`.
        pub(crate) fn below(&mut self, n: u64) -> u64 {
            self.0.below(n as usize) as u64
        }

        /// Sizes of several kinds: all positive or some empty, even or very uneven.
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

        /// Blocks of up to `max_ranks` ranks. Copies cost no more than messages, so that the
        /// `O(p^2)` programs apply.
        pub(crate) fn problem(&mut self, root_given: bool, max_ranks: u64) -> GatherProblem {
            let p = 1 + self.below(max_ranks) as usize;
            let beta = self.below(4);
            let alpha = [0, 1, 5, 100, 1000][self.below(5) as usize];
            let copy = self.below(beta + 1);
            let cost = CostModel::new(alpha as f64, beta as f64).gamma_copy(copy as f64);
            let root = self.below(p as u64) as usize;
            GatherProblem::new(self.sizes(p), cost, root_given.then_some(root)).unwrap()
        }
    }

    /// Checks that the tree's schedules are correct and take its time, on both kinds of ports.
    pub(crate) fn prove(problem: &GatherProblem, tree: &GatherTree) {
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
                let report = schedule.check();
                assert!(
                    report.is_correct(),
                    "{problem:?} {tree:?}: {:?}",
                    report.errors
                );
                let simulated = schedule.simulate(&problem.cost).unwrap().makespan();
                assert_eq!(simulated, time, "{problem:?} {tree:?}");
            }
        }
    }
}
