//! Irregular gather and scatter: trees for blocks of different sizes.
//!
//! Rank `i` holds `m_i` bytes; the root ends with all blocks in rank order. A scatter is the
//! reverse and costs the same. Every planner here makes a [`GatherTree`] for a [`Problem`]; the
//! tree knows its completion time and makes the schedules.
//!
//! Source: Träff, "On Optimal Trees for Irregular Gather and Scatter Collectives" and "Practical,
//! Linear-time, Fully Distributed Algorithms for Irregular Gather and Scatter".
//!
//! # Classes of trees
//!
//! `cargo run --release --example gather_classes` compares them (in seconds). Random blocks of 0 to
//! 100, `beta = 1`, root free; 60, 30, 15, 7 and 7 instances for `p` from 8 to 12. In how many
//! other classes beat the best adjacent tree: by how much in the mean of these, by how much at
//! most. (2-ported trees: free copies only.)
//!
//! | p | alpha | gamma_copy | rank-ordered | weakly ordered | non-ordered | 2-ported, non-ordered |
//! |---|---|---|---|---|---|---|
//! | 8 | 1 | 0 | 13%: 0.35%, 0.52% | 22%: 0.37%, 0.58% | 38%: 0.38%, 0.84% | 100%: 49.48%, 50.00% |
//! | 8 | 20 | 0 | 7%: 3.45%, 6.06% | 23%: 3.36%, 6.34% | 37%: 3.62%, 10.82% | 100%: 47.18%, 49.86% |
//! | 8 | 20 | 1 | 0% | 8%: 3.06%, 6.78% | 20%: 3.86%, 6.92% | - |
//! | 9 | 1 | 0 | 17%: 0.30%, 0.44% | 27%: 0.39%, 0.59% | 67%: 0.40%, 1.09% | 100%: 49.65%, 50.15% |
//! | 9 | 20 | 0 | 13%: 1.73%, 3.23% | 33%: 2.81%, 6.85% | 70%: 3.76%, 6.85% | 100%: 48.50%, 50.00% |
//! | 9 | 20 | 1 | 0% | 13%: 2.52%, 3.81% | 23%: 2.96%, 5.57% | - |
//! | 10 | 1 | 0 | 13%: 0.32%, 0.38% | 33%: 0.28%, 0.38% | 60%: 0.25%, 0.38% | 100%: 49.80%, 50.00% |
//! | 10 | 20 | 0 | 0% | 33%: 2.99%, 5.63% | 80%: 3.39%, 5.63% | 100%: 48.96%, 50.00% |
//! | 10 | 20 | 1 | 0% | 33%: 2.47%, 3.81% | 47%: 2.55%, 3.81% | - |
//! | 11 | 1 | 0 | 0% | 29%: 0.21%, 0.22% | 57%: 0.27%, 0.43% | 100%: 49.83%, 50.11% |
//! | 11 | 20 | 0 | 14%: 1.61%, 1.61% | 29%: 1.62%, 1.93% | 57%: 3.00%, 4.25% | 100%: 48.79%, 49.92% |
//! | 11 | 20 | 1 | 0% | 14%: 0.43%, 0.43% | 57%: 1.88%, 3.24% | - |
//! | 12 | 1 | 0 | 0% | 29%: 0.22%, 0.26% | 100%: 0.23%, 0.38% | 100%: 49.98%, 50.09% |
//! | 12 | 20 | 0 | 14%: 2.90%, 2.90% | 29%: 3.07%, 3.24% | 100%: 3.92%, 6.77% | 100%: 49.93%, 51.45% |
//! | 12 | 20 | 1 | 0% | 29%: 2.08%, 2.98% | 86%: 2.40%, 3.35% | - |
//!
//! # Against padding
//!
//! What a gather of unequal blocks must not lose to: agreeing on the largest block (an allreduce of
//! one number) and gathering as if all had its size. `p = 256`, `b = 1000`, `rho = 5`, root 128,
//! `alpha = 100`, `beta = gamma_copy = 1`: model times over those of padding. `linear` alone loses,
//! where all blocks are equal and latency counts. `oneport guidelines` checks the same in the model
//! and measured.
//!
//! | distribution | padded | linear | oblivious | adaptive | degrading | two | optimal | weakly-ordered | unordered |
//! |---|---|---|---|---|---|---|---|---|---|
//! | same | 257608 | 1.093 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 | 0.997 |
//! | random | 512584 | 0.538 | 0.539 | 0.525 | 0.497 | 0.504 | 0.490 | 0.490 | 0.490 |
//! | random-decreasing | 512584 | 0.538 | 0.826 | 0.739 | 0.490 | 0.494 | 0.490 | 0.490 | 0.490 |
//! | random-increasing | 512584 | 0.538 | 0.555 | 0.555 | 0.494 | 0.496 | 0.490 | 0.490 | 0.490 |
//! | bucket | 385096 | 0.724 | 0.692 | 0.683 | 0.665 | 0.669 | 0.660 | 0.660 | 0.660 |
//! | spikes | 1281608 | 0.235 | 0.247 | 0.227 | 0.219 | 0.430 | 0.215 | 0.215 | 0.215 |
//! | decreasing | 513864 | 0.550 | 0.834 | 0.751 | 0.503 | 0.507 | 0.502 | 0.502 | 0.502 |
//! | increasing | 513864 | 0.550 | 0.564 | 0.564 | 0.506 | 0.507 | 0.502 | 0.502 | 0.502 |
//! | alternating | 385608 | 0.730 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 | 0.666 |
//! | skewed | 13108808 | 0.021 | 0.129 | 0.039 | 0.020 | 0.039 | 0.020 | 0.020 | 0.020 |
//! | two-blocks | 32769608 | 0.008 | 0.031 | 0.012 | 0.008 | 0.016 | 0.008 | 0.008 | 0.008 |
//!
//! # Guidelines
//!
//! `cargo run --release --example gather_guidelines` prints, over all distributions, (1) what
//! irregular gathers of equal blocks take over a gather made for equal blocks, which must not be
//! less; (2) what they take over padding, which must not be more. In the model and, in brackets,
//! measured: the fastest repetition at the model's pace (`-- native` for flat out). 8 ranks, root
//! 4, `rho = 5`, `alpha` = 1 ms, `beta` = 50 ns a byte, free copies. (1) holds, with equality for
//! all but `linear`. (2) holds for oblivious, adaptive and optimal trees everywhere; `linear`
//! violates it where latency counts.
//!
//! | distribution | b | other side | linear | oblivious | adaptive | optimal |
//! |---|---|---|---|---|---|---|
//! | (1) same | 100 | 3.04 ms (3.04) | 2.318 (2.317) | 1.000 (1.000) | 1.000 (1.000) | 1.000 (1.001) |
//! | (1) same | 10000 | 6.50 ms (6.50) | 1.615 (1.615) | 1.000 (1.000) | 1.000 (1.000) | 1.000 (1.001) |
//! | (2) same | 100 | 6.04 ms (6.06) | 1.166 (1.160) | 0.503 (0.501) | 0.503 (0.501) | 0.503 (0.501) |
//! | (2) same | 10000 | 9.50 ms (9.53) | 1.105 (1.101) | 0.684 (0.682) | 0.684 (0.682) | 0.684 (0.683) |
//! | (2) random | 100 | 6.07 ms (6.10) | 1.162 (1.156) | 0.503 (0.500) | 0.502 (0.500) | 0.502 (0.500) |
//! | (2) random | 10000 | 12.80 ms (12.83) | 0.929 (0.927) | 0.626 (0.624) | 0.617 (0.615) | 0.617 (0.616) |
//! | (2) random-decreasing | 100 | 6.07 ms (6.09) | 1.161 (1.156) | 0.505 (0.502) | 0.504 (0.502) | 0.504 (0.502) |
//! | (2) random-decreasing | 10000 | 12.80 ms (12.82) | 0.920 (0.918) | 0.717 (0.716) | 0.683 (0.683) | 0.683 (0.682) |
//! | (2) random-increasing | 100 | 6.07 ms (6.10) | 1.161 (1.155) | 0.502 (0.500) | 0.502 (0.500) | 0.502 (0.500) |
//! | (2) random-increasing | 10000 | 12.80 ms (12.83) | 0.906 (0.903) | 0.602 (0.600) | 0.602 (0.600) | 0.602 (0.600) |
//! | (2) bucket | 100 | 6.05 ms (6.08) | 1.164 (1.158) | 0.503 (0.500) | 0.503 (0.500) | 0.503 (0.501) |
//! | (2) bucket | 10000 | 11.15 ms (11.17) | 1.004 (1.001) | 0.651 (0.649) | 0.645 (0.644) | 0.645 (0.644) |
//! | (2) spikes | 100 | 6.00 ms (6.03) | 1.167 (1.161) | 0.500 (0.498) | 0.500 (0.498) | 0.500 (0.498) |
//! | (2) spikes | 10000 | 6.00 ms (6.03) | 1.167 (1.161) | 0.500 (0.498) | 0.500 (0.498) | 0.500 (0.498) |
//! | (2) decreasing | 100 | 6.07 ms (6.10) | 1.160 (1.154) | 0.504 (0.502) | 0.503 (0.501) | 0.503 (0.501) |
//! | (2) decreasing | 10000 | 13.00 ms (13.02) | 0.846 (0.844) | 0.702 (0.700) | 0.654 (0.653) | 0.596 (0.595) |
//! | (2) increasing | 100 | 6.07 ms (6.10) | 1.160 (1.153) | 0.501 (0.498) | 0.501 (0.498) | 0.501 (0.498) |
//! | (2) increasing | 10000 | 13.00 ms (13.04) | 0.837 (0.834) | 0.538 (0.537) | 0.538 (0.537) | 0.538 (0.537) |
//! | (2) alternating | 100 | 6.05 ms (6.08) | 1.162 (1.156) | 0.502 (0.499) | 0.501 (0.499) | 0.501 (0.499) |
//! | (2) alternating | 10000 | 11.25 ms (11.28) | 0.911 (0.909) | 0.600 (0.599) | 0.556 (0.555) | 0.556 (0.555) |
//! | (2) skewed | 100 | 6.06 ms (6.08) | 1.161 (1.156) | 0.505 (0.502) | 0.505 (0.502) | 0.505 (0.503) |
//! | (2) skewed | 10000 | 11.60 ms (11.62) | 0.879 (0.877) | 0.741 (0.739) | 0.741 (0.739) | 0.603 (0.603) |
//! | (2) two-blocks | 100 | 6.14 ms (6.17) | 0.332 (0.330) | 0.498 (0.496) | 0.332 (0.331) | 0.332 (0.330) |
//! | (2) two-blocks | 10000 | 20.00 ms (20.03) | 0.300 (0.299) | 0.450 (0.449) | 0.300 (0.300) | 0.300 (0.299) |

pub mod binary;
pub mod binomial;
pub mod degrading;
pub mod heterogeneous;
pub mod linear;
pub mod noncontiguous;
pub mod optimal;
pub mod ported;
pub mod rank_ordered;
mod row;
mod tree;
pub mod two_groups;
pub mod weakly_ordered;

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
    /// When there is no rank, the root is none, the sizes add up to more than 2^60, or the costs
    /// are no times or do not describe all ranks.
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

    impl Random {
        /// Blocks of up to `most` ranks, with costs for which there are programs in `O(p^2)`:
        /// copies no dearer than messages.
        pub(crate) fn problem(&mut self, root_given: bool, most: u64) -> Problem {
            let p = 1 + self.below(most) as usize;
            let beta = self.below(4);
            let alpha = [0, 1, 5, 100, 1000][self.below(5) as usize];
            let copy = self.below(beta + 1);
            let cost = CostModel::new(alpha as f64, beta as f64).gamma_copy(copy as f64);
            let root = self.below(p as u64) as usize;
            Problem::new(self.sizes(p), cost, root_given.then_some(root)).unwrap()
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
