//! Costs that differ between pairs of ranks.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Per-pair and per-rank costs of a heterogeneous platform of `p` ranks; `None` means that there is
/// no link. A message of `n > 0` bytes takes `alpha[from][to] + beta[from][to] * n`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// `alpha[from][to]`, `p` by `p`.
    pub alpha: Vec<Vec<Option<f64>>>,
    /// `beta[from][to]`, `p` by `p`.
    pub beta: Vec<Vec<Option<f64>>>,
    /// `gamma[rank]`: `p` numbers, or none if combining is free.
    #[serde(default)]
    pub gamma: Vec<f64>,
    /// `gamma_copy[rank]`: `p` numbers, or none if copies are free.
    #[serde(default)]
    pub gamma_copy: Vec<f64>,
}

impl Links {
    /// Reads the JSON form, an object with these fields; the numbers are checked by
    /// [`CostModel::heterogeneous`](super::CostModel::heterogeneous).
    ///
    /// # Errors
    /// When the text is not such an object.
    pub fn from_json(text: &str) -> Result<Links> {
        serde_json::from_str(text).map_err(|e| Error::json("not a cost file", &e))
    }
}

/// A heterogeneous platform.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Platform {
    pub(super) links: Links,
    /// `(alpha, beta)` from rank `a` to rank `b` at `a * ranks + b`; alpha is infinite without a
    /// link.
    pairs: Vec<(f64, f64)>,
    /// The maxima of alpha and of beta over all links between different ranks.
    pub(super) slowest: (f64, f64),
}

impl Platform {
    pub(super) fn new(links: Links) -> Platform {
        let mut platform = Platform {
            pairs: Vec::with_capacity(links.alpha.len() * links.alpha.len()),
            slowest: (0.0, 0.0),
            links,
        };
        let Links { alpha, beta, .. } = &platform.links;
        for (from, rows) in alpha.iter().zip(beta).enumerate() {
            for (to, link) in rows.0.iter().zip(rows.1).enumerate() {
                let (&Some(alpha), &Some(beta)) = link else {
                    platform.pairs.push((f64::INFINITY, 0.0));
                    continue;
                };
                platform.pairs.push((alpha, beta));
                if from != to {
                    let (a, b) = platform.slowest;
                    platform.slowest = (a.max(alpha), b.max(beta));
                }
            }
        }
        platform
    }

    #[inline]
    pub(super) fn pair(&self, from: usize, to: usize) -> (f64, f64) {
        let ranks = self.links.alpha.len();
        if from >= ranks || to >= ranks {
            return (f64::INFINITY, 0.0);
        }
        self.pairs[from * ranks + to]
    }
}
