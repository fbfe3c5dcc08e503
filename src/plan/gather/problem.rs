//! The problem of an irregular gather: blocks, costs, root.

use super::GatherTree;
use crate::machine::bytes;
use crate::plan::prelude::*;

/// Refuses more than `max` ranks.
pub(super) fn ensure_few(ranks: usize, max: usize, what: &str) -> Result<()> {
    if ranks <= max {
        return Ok(());
    }
    Err(Error::too_large(format!(
        "{ranks} ranks are more than the {max} for which {what}"
    )))
}

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
    pub fn new(sizes: Vec<u64>, cost: CostModel, root: Option<usize>) -> Result<GatherProblem> {
        let p = sizes.len();
        if p == 0 {
            return Err(Error::usage("a collective needs at least one rank"));
        }
        let sum = sizes
            .iter()
            .try_fold(0u64, |a, &b| a.checked_add(b).filter(|&s| s <= 1 << 60));
        if sum.is_none() {
            return Err(Error::usage("the blocks add up to more than 2^60 bytes"));
        }
        cost.validate()?;
        cost.covers(p)?;
        let problem = GatherProblem {
            sizes,
            cost,
            root: None,
            ported: 1,
        };
        problem.with_root(root)
    }

    /// The gather that `request` describes: its blocks, each element with the request's number of
    /// bytes, its costs, ports and root.
    pub fn of(request: &Request) -> Result<GatherProblem> {
        request.validate()?;
        let blocks = request.block_sizes();
        let bytes = |&n: &usize| bytes(n, request.element_bytes);
        let sizes = blocks.iter().map(bytes).collect();
        GatherProblem::new(sizes, request.cost.clone(), request.given_root())?
            .with_ports(request.ports.k())
    }

    /// The same problem with `ported` ports per rank, for the planners that use several.
    pub fn with_ports(mut self, ported: usize) -> Result<GatherProblem> {
        Ports::BI.with_k(ported).validate()?;
        self.ported = ported;
        Ok(self)
    }

    /// The same problem with another root, or a free one if `None`.
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
    pub fn time(&self, tree: &GatherTree) -> f64 {
        tree.time(&self.sizes, &self.cost)
    }

    /// The fastest of `trees`; the first one of several equally fast.
    pub(super) fn fastest(
        &self,
        trees: impl IntoIterator<Item = GatherTree>,
    ) -> Option<GatherTree> {
        let timed = trees.into_iter().map(|tree| (self.time(&tree), tree));
        fastest(timed).map(|(_, tree)| tree)
    }
}

/// The first of those with the smallest time.
pub(super) fn fastest<T>(timed: impl Iterator<Item = (f64, T)>) -> Option<(f64, T)> {
    timed.reduce(|best, next| if next.0 < best.0 { next } else { best })
}
