//! The cost model: times of transfers, combinations and copies, and the ports of a rank.
//!
//! Sizes are in bytes, costs in time units and time units per byte. All functions take constant
//! time (that of a search through the pieces, if a model has them), unless they say otherwise.

mod delays;
mod levels;
mod linear;
mod links;
mod nodes;
pub(crate) mod numbers;
mod pieces;
mod ports;

use std::sync::Arc;

use delays::Delays;
pub use delays::{Eager, TransferCost};
pub use levels::Level;
pub use linear::Linear;
use links::LinkPlatform;
pub use links::Links;
pub use nodes::Levels;
pub(crate) use numbers::bytes;
use numbers::{float, refuses_cost};
pub use pieces::{Piece, Pieces};
pub use ports::Ports;

use crate::error::{Error, Result};

/// Times of transfers and computations, linear in bytes.
///
/// A message of `n > 0` bytes takes `alpha + beta * n`, and an empty message takes no time.
/// Combining takes `gamma * n`, a local copy `gamma_copy * n`. The caller chooses the unit:
/// nanoseconds for calibrated costs, otherwise the unit of the paper at hand.
///
/// ```
/// use oneport::CostModel;
/// let cost = CostModel::new(10.0, 1.0).gamma(0.5);
/// assert_eq!(cost.transfer(0, 1, 4), 14.0);
/// assert_eq!(cost.transfer(0, 1, 0), 0.0);
/// assert_eq!(cost.combine(1, 4), 2.0);
/// assert_eq!(cost.linear().map(|linear| linear.beta), Some(1.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    costs: Costs,
    overlap: bool,
    /// None in an ideal model.
    delays: Option<Arc<Delays>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Costs {
    /// The same for all ranks, linear in the size.
    Linear(Linear),
    /// The same for all ranks, linear in ranges of sizes where there are pieces.
    Pieces(Linear, Arc<Pieces>),
    /// Different between ranks.
    Links(Arc<LinkPlatform>),
}

/// What the times of a model follow from.
#[derive(Debug, Clone, Copy)]
pub enum CostClass<'a> {
    /// Four numbers for all ranks and sizes.
    Linear(Linear),
    /// Lines for all ranks, by ranges of sizes.
    Pieces(&'a Pieces),
    /// Numbers of each pair of ranks.
    Links(&'a Links),
}

/// When ranks and messages start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// All ranks are there at time 0, latency is 0 and every transfer is a rendezvous.
    Ideal,
    /// Not so.
    Delayed,
}

impl Default for CostModel {
    /// Everything is free.
    fn default() -> Self {
        CostModel::new(0.0, 0.0)
    }
}

impl CostModel {
    /// A homogeneous model without computation costs.
    pub fn new(alpha: f64, beta: f64) -> Self {
        CostModel {
            costs: Costs::Linear(Linear {
                alpha,
                beta,
                ..Linear::default()
            }),
            overlap: false,
            delays: None,
        }
    }

    /// The same model with time `gamma` per byte combined, for all sizes and ranks.
    #[must_use]
    pub fn gamma(self, gamma: f64) -> Self {
        self.with_rate(
            gamma,
            |linear| &mut linear.gamma,
            |links| &mut links.gamma,
            |pieces| {
                pieces.combine.clear();
                pieces.combine_local.clear();
            },
        )
    }

    /// The same model with time `gamma_copy` per byte copied locally, for all sizes and ranks.
    #[must_use]
    pub fn gamma_copy(self, gamma_copy: f64) -> Self {
        self.with_rate(
            gamma_copy,
            |linear| &mut linear.gamma_copy,
            |links| &mut links.gamma_copy,
            |pieces| pieces.copy.clear(),
        )
    }

    fn with_rate(
        mut self,
        rate: f64,
        of_all: fn(&mut Linear) -> &mut f64,
        of_ranks: fn(&mut Links) -> &mut Vec<f64>,
        drop_pieces: fn(&mut Pieces),
    ) -> Self {
        match &mut self.costs {
            Costs::Linear(linear) => *of_all(linear) = rate,
            Costs::Pieces(linear, pieces) => {
                *of_all(linear) = rate;
                drop_pieces(Arc::make_mut(pieces));
                if pieces.is_empty() {
                    self.costs = Costs::Linear(*linear);
                }
            }
            Costs::Links(platform) => {
                let links = &mut Arc::make_mut(platform).links;
                let ranks = links.alpha.len();
                *of_ranks(links) = vec![rate; ranks];
            }
        }
        self
    }

    /// The same model with piecewise linear costs. Where a list of `pieces` is empty, alpha and
    /// beta, gamma, or gamma_copy remain valid.
    ///
    /// # Errors
    /// As [`Pieces::validate`]; also if the model is heterogeneous.
    pub fn pieces(mut self, pieces: Pieces) -> Result<Self> {
        pieces.validate()?;
        let (Costs::Linear(linear) | Costs::Pieces(linear, _)) = self.costs else {
            return Err(Error::usage(
                "costs of each pair of ranks have no pieces of sizes",
            ));
        };
        self.costs = if pieces.is_empty() {
            Costs::Linear(linear)
        } else {
            Costs::Pieces(linear, Arc::new(pieces))
        };
        Ok(self)
    }

    /// The same model with overlap of communication and computation allowed or not.
    #[must_use]
    pub fn overlap(mut self, overlap: bool) -> Self {
        self.overlap = overlap;
        self
    }

    /// A heterogeneous model, in `O(p^2)` time and memory.
    ///
    /// # Errors
    /// When a matrix is not square, the shapes differ, or a cost is negative, not finite or greater
    /// than 1e100.
    pub fn heterogeneous(links: Links) -> Result<Self> {
        let p = links.alpha.len();
        fn square<T>(m: &[Vec<T>], p: usize) -> bool {
            m.len() == p && m.iter().all(|row| row.len() == p)
        }
        if !square(&links.alpha, p) || !square(&links.beta, p) {
            return Err(Error::malformed(format!(
                "cost file: alpha and beta must both be {p} x {p} matrices"
            )));
        }
        for (name, v) in [("gamma", &links.gamma), ("gamma_copy", &links.gamma_copy)] {
            if !v.is_empty() && v.len() != p {
                return Err(Error::malformed(format!(
                    "cost file: {name} has {} entries for {p} ranks",
                    v.len()
                )));
            }
        }
        if !links.latency.is_empty() && !square(&links.latency, p) {
            return Err(Error::malformed(format!(
                "cost file: latency must be a {p} x {p} matrix"
            )));
        }
        let pairs = links.alpha.iter().chain(&links.beta).flatten().flatten();
        let latencies = links.latency.iter().flatten();
        let mut costs = pairs
            .chain(&links.gamma)
            .chain(&links.gamma_copy)
            .chain(latencies);
        if let Some((bad, why)) = costs.find_map(|&c| Some((c, refuses_cost(c)?))) {
            return Err(Error::malformed(format!(
                "cost file: {bad:?} is not a time: {why}"
            )));
        }
        let eager = links.eager;
        let model = CostModel {
            costs: Costs::Links(Arc::new(LinkPlatform::new(links))),
            overlap: false,
            delays: None,
        };
        Ok(model.eager(eager))
    }

    /// The same model with the costs from `a` to `b` and from `b` to `a` exchanged, and without
    /// arrivals.
    ///
    /// # Errors
    /// None in practice: the links have already been validated.
    pub(crate) fn reversed_links(self) -> Result<Self> {
        fn transposed<T: Copy>(m: &[Vec<T>]) -> Vec<Vec<T>> {
            let column = |to: usize| m.iter().map(|row| row[to]).collect();
            (0..m.len()).map(column).collect()
        }
        let Some(links) = self.links() else {
            return Ok(self.without_arrivals());
        };
        let links = Links {
            alpha: transposed(&links.alpha),
            beta: transposed(&links.beta),
            latency: transposed(&links.latency),
            ..links.clone()
        };
        Ok(self.with_links(links))
    }

    /// The same model with these links, valid ones, and without arrivals.
    fn with_links(self, links: Links) -> Self {
        let costs = Costs::Links(Arc::new(LinkPlatform::new(links)));
        CostModel { costs, ..self }.without_arrivals()
    }

    /// The same model with messages that take their start-up time alone, that of one byte but for
    /// beta, and with local steps that take no time.
    pub(crate) fn start_up_alone(&self) -> CostModel {
        let costs = match &self.costs {
            Costs::Linear(linear) => Costs::Linear(Linear {
                beta: 0.0,
                ..*linear
            }),
            Costs::Pieces(linear, pieces) => Costs::Linear(Linear {
                alpha: pieces
                    .transfer
                    .first()
                    .map_or(linear.alpha, |first| first.alpha),
                beta: 0.0,
                ..*linear
            }),
            Costs::Links(platform) => Costs::Links(Arc::new(platform.start_up_alone())),
        };
        let model = CostModel {
            costs,
            ..self.clone()
        };
        model.gamma(0.0).gamma_copy(0.0).eager_tokens()
    }

    /// Checks that alpha, beta, gamma, gamma_copy, latency and arrivals are finite, not negative
    /// and at most 1e100. Links and pieces have been checked when the model was made.
    ///
    /// # Errors
    /// Names the first cost that is not.
    pub fn validate(&self) -> Result<()> {
        let linear = self.rates();
        for (name, value) in [
            ("alpha", linear.alpha),
            ("beta", linear.beta),
            ("gamma", linear.gamma),
            ("gamma-copy", linear.gamma_copy),
        ] {
            if let Some(why) = refuses_cost(value) {
                return Err(Error::usage(format!("{name} is {value:?}: {why}")));
            }
        }
        self.validate_delays()
    }

    /// Checks that the model describes at least `ranks` ranks. A homogeneous model describes any
    /// number; arrivals are those of exactly so many.
    ///
    /// # Errors
    /// When a heterogeneous model describes fewer ranks, or there are arrivals of another number.
    #[doc(hidden)]
    pub fn covers(&self, ranks: usize) -> Result<()> {
        self.covers_arrivals(ranks)?;
        match self.links() {
            Some(links) if links.alpha.len() < ranks => Err(Error::usage(format!(
                "the costs describe {} ranks, {ranks} are needed",
                links.alpha.len()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether there is a link from rank `from` to rank `to`.
    pub(crate) fn linked(&self, from: usize, to: usize) -> bool {
        self.platform()
            .is_none_or(|p| p.pair(from, to).0.is_finite())
    }

    /// Per-pair costs, if this model is heterogeneous.
    pub fn links(&self) -> Option<&Links> {
        self.platform().map(|p| &p.links)
    }

    fn platform(&self) -> Option<&LinkPlatform> {
        match &self.costs {
            Costs::Links(platform) => Some(platform),
            _ => None,
        }
    }

    /// Time of a message of `bytes` bytes with the maximal alpha and the maximal beta: an upper
    /// bound for every existing link.
    pub(crate) fn slowest_transfer(&self, bytes: u64) -> f64 {
        match self.platform() {
            None => self.transfer(0, 0, bytes),
            Some(_) if bytes == 0 => 0.0,
            Some(p) => p.slowest.0 + p.slowest.1 * float(bytes),
        }
    }

    /// Piecewise linear costs, if this model has them.
    pub fn size_pieces(&self) -> Option<&Pieces> {
        match &self.costs {
            Costs::Pieces(_, pieces) => Some(pieces),
            _ => None,
        }
    }

    /// Which kind of machine this is, for those who treat kinds differently: a `match` names all of
    /// them. Whether computation may overlap is asked apart, by [`overlaps`](Self::overlaps).
    pub fn class(&self) -> (CostClass<'_>, Machine) {
        let class = match &self.costs {
            Costs::Linear(linear) => CostClass::Linear(*linear),
            Costs::Pieces(_, pieces) => CostClass::Pieces(pieces),
            Costs::Links(platform) => CostClass::Links(&platform.links),
        };
        let machine = if self.is_ideal() {
            Machine::Ideal
        } else {
            Machine::Delayed
        };
        (class, machine)
    }

    /// The costs, if four numbers describe them: not if ranks arrive late, messages have latency or
    /// are sent eagerly.
    #[inline]
    pub fn linear(&self) -> Option<Linear> {
        match self.costs {
            Costs::Linear(linear) if self.is_ideal() => Some(linear),
            _ => None,
        }
    }

    /// The linear costs that the model was made with: those of all sizes, or of the kinds of costs
    /// that have no [pieces](Self::size_pieces). All 0 for a heterogeneous model.
    #[inline]
    pub fn rates(&self) -> Linear {
        match self.costs {
            Costs::Linear(linear) | Costs::Pieces(linear, _) => linear,
            Costs::Links(_) => Linear::default(),
        }
    }

    /// Whether computation may overlap communication (see [`crate::rules`], rule 3).
    #[inline]
    pub fn overlaps(&self) -> bool {
        self.overlap
    }

    /// Lower bounds `(alpha, beta, gamma)` on the costs of a homogeneous model: the largest values
    /// such that no message of at least one byte takes less than `alpha` or less than `beta` per
    /// byte, and no combination less than `gamma` per byte. Ignores the links of a heterogeneous
    /// model.
    #[doc(hidden)]
    pub fn min_rates(&self) -> (f64, f64, f64) {
        let linear = self.rates();
        let Some(pieces) = self.size_pieces() else {
            return (linear.alpha, linear.beta, linear.gamma);
        };
        let (alpha, beta) = match pieces.transfer.first() {
            Some(first) => (first.alpha, pieces::min_rate(&pieces.transfer)),
            None => (linear.alpha, linear.beta),
        };
        let gamma = if pieces.combine.is_empty() {
            linear.gamma
        } else {
            pieces::min_rate(&pieces.combine)
        };
        let local = if pieces.combine_local.is_empty() {
            gamma
        } else {
            pieces::min_rate(&pieces.combine_local)
        };
        (alpha, beta, gamma.min(local))
    }

    /// Lower bound of the time per byte that rank `rank` takes to copy.
    pub(crate) fn min_copy_rate(&self, rank: usize) -> f64 {
        match &self.costs {
            Costs::Links(platform) => {
                let rates = &platform.links.gamma_copy;
                rates.get(rank).copied().unwrap_or(0.0)
            }
            Costs::Pieces(_, pieces) if !pieces.copy.is_empty() => pieces::min_rate(&pieces.copy),
            Costs::Linear(linear) | Costs::Pieces(linear, _) => linear.gamma_copy,
        }
    }

    /// Lines `(alpha, beta)` that no message of at least one byte takes less than, for the costs of
    /// a homogeneous model. Ignores the links of a heterogeneous model.
    #[doc(hidden)]
    pub fn lines_below(&self) -> Vec<(f64, f64)> {
        match self.size_pieces() {
            Some(pieces) if !pieces.transfer.is_empty() => pieces::lines_below(&pieces.transfer),
            _ => vec![(self.rates().alpha, self.rates().beta)],
        }
    }

    /// Time of a message of `bytes` bytes; infinite if there is no link, or one of the ranks is not
    /// described by the model.
    #[inline]
    pub fn transfer(&self, from: usize, to: usize, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        match &self.costs {
            Costs::Linear(linear) => linear.alpha + linear.beta * float(bytes),
            Costs::Links(platform) => {
                let (alpha, beta) = platform.pair(from, to);
                alpha + beta * float(bytes)
            }
            Costs::Pieces(linear, pieces) => {
                in_pieces(&pieces.transfer, bytes, (linear.alpha, linear.beta))
            }
        }
    }

    /// Time that rank `rank` needs to combine `bytes` received bytes; 0 if a heterogeneous model
    /// does not describe the rank.
    #[inline]
    pub fn combine(&self, rank: usize, bytes: u64) -> f64 {
        self.rate(rank, |l| l.gamma, |l| &l.gamma, |p| &p.combine, bytes)
    }

    /// Time that rank `rank` needs to combine `bytes` bytes it already holds: as
    /// [`combine`](Self::combine), unless the model has pieces for local combinations.
    #[inline]
    pub fn combine_local(&self, rank: usize, bytes: u64) -> f64 {
        match &self.costs {
            Costs::Pieces(linear, pieces) if bytes > 0 && !pieces.combine_local.is_empty() => {
                in_pieces(&pieces.combine_local, bytes, (0.0, linear.gamma))
            }
            _ => self.combine(rank, bytes),
        }
    }

    /// Time that rank `rank` needs to copy `bytes` bytes locally; 0 if a heterogeneous model does
    /// not describe the rank.
    #[inline]
    pub fn copy(&self, rank: usize, bytes: u64) -> f64 {
        self.rate(
            rank,
            |l| l.gamma_copy,
            |l| &l.gamma_copy,
            |p| &p.copy,
            bytes,
        )
    }

    #[inline]
    fn rate(
        &self,
        rank: usize,
        of_all: fn(&Linear) -> f64,
        of_ranks: fn(&Links) -> &Vec<f64>,
        of_sizes: fn(&Pieces) -> &Vec<Piece>,
        bytes: u64,
    ) -> f64 {
        match &self.costs {
            Costs::Linear(linear) => of_all(linear) * float(bytes),
            Costs::Links(platform) => {
                let rate = of_ranks(&platform.links).get(rank).copied();
                rate.unwrap_or(0.0) * float(bytes)
            }
            Costs::Pieces(..) if bytes == 0 => 0.0,
            Costs::Pieces(linear, pieces) => {
                in_pieces(of_sizes(pieces), bytes, (0.0, of_all(linear)))
            }
        }
    }
}

/// The time given by `pieces`, or by `line` if there are none. Not inlined, to keep the loops over
/// linear costs or one platform short.
#[inline(never)]
fn in_pieces(pieces: &[Piece], bytes: u64, line: (f64, f64)) -> f64 {
    match pieces::holding(pieces, bytes) {
        Some(piece) => piece.at(bytes),
        None => line.0 + line.1 * float(bytes),
    }
}
