//! The cost model: what a transfer, a combination and a copy take, and what a rank's ports allow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How many transfers a rank can take part in at once.
///
/// A *unidirectional* rank has `k` ports, each of which either sends or receives. A *bidirectional* rank has `k` ports out
/// and `k` ports in. The one-ported model is `k = 1`: [`Ports::UNI`] and [`Ports::BI`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ports {
    /// `k` ports for both directions together.
    Unidirectional {
        /// Number of ports.
        k: usize,
    },
    /// `k` ports out and `k` ports in.
    Bidirectional {
        /// Number of ports of each kind.
        k: usize,
    },
}

impl Ports {
    /// One port for both directions.
    pub const UNI: Ports = Ports::Unidirectional { k: 1 };
    /// One port out and one port in.
    pub const BI: Ports = Ports::Bidirectional { k: 1 };

    /// Ports of each kind.
    pub fn k(self) -> usize {
        match self {
            Ports::Unidirectional { k } | Ports::Bidirectional { k } => k,
        }
    }

    /// The same kind of ports, `k` of each.
    pub fn with_k(self, k: usize) -> Ports {
        match self {
            Ports::Unidirectional { .. } => Ports::Unidirectional { k },
            Ports::Bidirectional { .. } => Ports::Bidirectional { k },
        }
    }

    /// Whether sending and receiving use different ports.
    pub fn is_bidirectional(self) -> bool {
        matches!(self, Ports::Bidirectional { .. })
    }

    /// `"uni"` or `"bi"`, as in files and options.
    pub fn name(self) -> &'static str {
        if self.is_bidirectional() { "bi" } else { "uni" }
    }

    /// Number of port lists of a rank: steps in one list run one after another, lists run side by side.
    pub fn lists(self) -> usize {
        match self {
            Ports::Unidirectional { k } => k,
            Ports::Bidirectional { k } => 2 * k,
        }
    }

    /// The port list of a send (`sends`) or a receive on port number `port`.
    pub fn list(self, sends: bool, port: usize) -> usize {
        match self {
            Ports::Unidirectional { .. } => port,
            Ports::Bidirectional { .. } => 2 * port + usize::from(!sends),
        }
    }
}

/// Time of transfers and computations, linear in bytes.
///
/// A message of `n > 0` bytes takes `alpha + beta * n`, an empty one nothing; combining takes `gamma * n`, a local copy
/// `gamma_copy * n`. Units are the caller's: nanoseconds when they come from a calibration, whatever a paper uses otherwise.
///
/// ```
/// use oneport::CostModel;
/// let cost = CostModel::new(10.0, 1.0).gamma(0.5);
/// assert_eq!(cost.transfer(0, 1, 4), 14.0);
/// assert_eq!(cost.transfer(0, 1, 0), 0.0);
/// assert_eq!(cost.combine(1, 4), 2.0);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostModel {
    /// Start-up time of a message.
    pub alpha: f64,
    /// Time per byte of a message.
    pub beta: f64,
    /// Time per byte combined.
    pub gamma: f64,
    /// Time per byte copied locally.
    pub gamma_copy: f64,
    /// Whether computation may overlap communication (see [`crate::schedule`], rule 3).
    pub overlap: bool,
    links: Option<Arc<Links>>,
}

/// Per-pair and per-rank costs of a heterogeneous platform; `None` where there is no link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// `alpha[from][to]`.
    pub alpha: Vec<Vec<Option<f64>>>,
    /// `beta[from][to]`.
    pub beta: Vec<Vec<Option<f64>>>,
    /// `gamma[rank]`, zero where absent.
    #[serde(default)]
    pub gamma: Vec<f64>,
    /// `gamma_copy[rank]`, zero where absent.
    #[serde(default)]
    pub gamma_copy: Vec<f64>,
}

impl CostModel {
    /// A homogeneous model without computation costs.
    pub fn new(alpha: f64, beta: f64) -> Self {
        CostModel {
            alpha,
            beta,
            ..CostModel::default()
        }
    }

    /// The same model with time `gamma` per byte combined.
    #[must_use]
    pub fn gamma(mut self, gamma: f64) -> Self {
        self.gamma = gamma;
        self
    }

    /// The same model with time `gamma_copy` per byte copied locally.
    #[must_use]
    pub fn gamma_copy(mut self, gamma_copy: f64) -> Self {
        self.gamma_copy = gamma_copy;
        self
    }

    /// The same model with overlap of communication and computation allowed or not.
    #[must_use]
    pub fn overlap(mut self, overlap: bool) -> Self {
        self.overlap = overlap;
        self
    }

    /// A heterogeneous model.
    ///
    /// # Errors
    /// When a matrix is not square, the shapes differ, or a cost is negative or not finite.
    pub fn heterogeneous(links: Links) -> Result<Self> {
        let p = links.alpha.len();
        let square = |m: &[Vec<Option<f64>>]| m.len() == p && m.iter().all(|row| row.len() == p);
        if !square(&links.alpha) || !square(&links.beta) {
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
        let pairs = links.alpha.iter().chain(&links.beta).flatten().flatten();
        if let Some(bad) = pairs
            .chain(&links.gamma)
            .chain(&links.gamma_copy)
            .find(|c| !(c.is_finite() && **c >= 0.0))
        {
            return Err(Error::malformed(format!(
                "cost file: {bad} is not a time (finite and not negative)"
            )));
        }
        Ok(CostModel {
            links: Some(Arc::new(links)),
            ..CostModel::default()
        })
    }

    /// Checks that every cost is finite and not negative.
    ///
    /// # Errors
    /// Names the first cost that is not.
    pub fn validate(&self) -> Result<()> {
        for (name, value) in [
            ("alpha", self.alpha),
            ("beta", self.beta),
            ("gamma", self.gamma),
            ("gamma-copy", self.gamma_copy),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::usage(format!(
                    "{name} is {value}: a cost is finite and not negative"
                )));
            }
        }
        Ok(())
    }

    /// Per-pair costs, if this model is heterogeneous.
    pub fn links(&self) -> Option<&Links> {
        self.links.as_deref()
    }

    /// Time of a message of `bytes` bytes; infinite where there is no link.
    #[inline]
    pub fn transfer(&self, from: usize, to: usize, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "sizes stay far below 2^53 bytes"
        )]
        let n = bytes as f64;
        match &self.links {
            None => self.alpha + self.beta * n,
            Some(l) => match (l.alpha[from][to], l.beta[from][to]) {
                (Some(alpha), Some(beta)) => alpha + beta * n,
                _ => f64::INFINITY,
            },
        }
    }

    /// Time rank `rank` takes to combine `bytes` bytes.
    #[inline]
    pub fn combine(&self, rank: usize, bytes: u64) -> f64 {
        self.rate(rank, self.gamma, |l| &l.gamma, bytes)
    }

    /// Time rank `rank` takes to copy `bytes` bytes locally.
    #[inline]
    pub fn copy(&self, rank: usize, bytes: u64) -> f64 {
        self.rate(rank, self.gamma_copy, |l| &l.gamma_copy, bytes)
    }

    #[inline]
    fn rate(&self, rank: usize, all: f64, of: fn(&Links) -> &Vec<f64>, bytes: u64) -> f64 {
        let rate = match &self.links {
            None => all,
            Some(l) => of(l).get(rank).copied().unwrap_or(0.0),
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "sizes stay far below 2^53 bytes"
        )]
        let n = bytes as f64;
        rate * n
    }
}
