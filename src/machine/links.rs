//! Costs that differ between pairs of ranks.

use serde::{Deserialize, Serialize};

use super::delays::Eager;
use super::levels::{self, Level};
use crate::error::{Error, json_object};

/// Per-pair and per-rank costs of a heterogeneous platform of `p` ranks; `None` means that there is
/// no link. A message of `n > 0` bytes takes `alpha[from][to] + beta[from][to] * n`.
///
/// In files an object with these fields, or with the levels of a machine in place of `alpha` and
/// `beta`, the innermost first. Two ranks have the costs of the first level that has both in one
/// group; a level without groups is one of all ranks (whose number has to be given if no level has
/// groups, see [`Links::for_ranks`]):
///
/// ```
/// use oneport::machine::Links;
/// let links = Links::from_json(r#"{"levels": [
///     {"groups": [[0, 1], [2, 3]], "alpha": 300, "beta": 0.1},
///     {"alpha": 2000, "beta": 0.4}]}"#)?;
/// assert_eq!(links.alpha[0], [Some(300.0), Some(300.0), Some(2000.0), Some(2000.0)]);
/// # Ok::<(), oneport::Error>(())
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "LinksFile")]
pub struct Links {
    /// `alpha[from][to]`, `p` by `p`.
    pub alpha: Vec<Vec<Option<f64>>>,
    /// `beta[from][to]`, `p` by `p`.
    pub beta: Vec<Vec<Option<f64>>>,
    /// `gamma[rank]`: `p` numbers, or none if combining is free.
    pub gamma: Vec<f64>,
    /// `gamma_copy[rank]`: `p` numbers, or none if copies are free.
    pub gamma_copy: Vec<f64>,
    /// `latency[from][to]`, `p` by `p`, or none if there is no latency. In files also one number
    /// for all pairs, or a field of each level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<Vec<f64>>,
    /// Which messages do not wait for their receivers.
    #[serde(skip_serializing_if = "is_default")]
    pub eager: Eager,
}

fn is_default(eager: &Eager) -> bool {
    *eager == Eager::None
}

/// A time, or a time per byte.
#[cfg(feature = "schemars")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "its schema is used")]
struct Cost(#[schemars(range(min = 0.0, max = 1e100))] f64);

/// Latency in files: one number, or one for each pair.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "latency is a number, or a matrix of numbers")]
enum LatencyFile {
    All(#[cfg_attr(feature = "schemars", schemars(with = "Cost"))] f64),
    Pairs(#[cfg_attr(feature = "schemars", schemars(with = "Vec<Vec<Cost>>"))] Vec<Vec<f64>>),
}

/// Matrices with a row a sender and a column a receiver, null where there is no link; or the levels
/// of a machine, the innermost first: two ranks have the costs of the first level that has both in
/// one group, and a level without groups is one of all ranks. A message of n bytes takes
/// alpha + beta * n.
#[cfg_attr(
    feature = "schemars",
    derive(schemars::JsonSchema),
    schemars(extend("anyOf" = [{ "required": ["alpha", "beta"] }, { "required": ["levels"] }]))
)]
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinksFile {
    /// Start-up times.
    #[cfg_attr(
        feature = "schemars",
        schemars(with = "Option<Vec<Vec<Option<Cost>>>>")
    )]
    alpha: Option<Vec<Vec<Option<f64>>>>,
    /// Times per byte.
    #[cfg_attr(
        feature = "schemars",
        schemars(with = "Option<Vec<Vec<Option<Cost>>>>")
    )]
    beta: Option<Vec<Vec<Option<f64>>>>,
    levels: Option<Vec<Level>>,
    /// Time per byte combined, by rank.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<Cost>"))]
    gamma: Vec<f64>,
    /// Time per byte copied, by rank.
    #[serde(default)]
    #[cfg_attr(feature = "schemars", schemars(with = "Vec<Cost>"))]
    gamma_copy: Vec<f64>,
    /// Part of the start-up time that keeps no port: one number, or by pair.
    latency: Option<LatencyFile>,
    #[serde(default)]
    eager: Eager,
}

impl TryFrom<LinksFile> for Links {
    type Error = String;

    fn try_from(written: LinksFile) -> Result<Links, String> {
        written.links(None)
    }
}

impl LinksFile {
    /// The costs, of this many ranks if they are those of levels none of which names a rank.
    fn links(self, ranks: Option<usize>) -> Result<Links, String> {
        let written = self;
        let links = match (written.alpha, written.beta, written.levels) {
            (None, None, Some(levels)) => levels::expand(&levels, ranks)?,
            (Some(alpha), Some(beta), None) => Links {
                alpha,
                beta,
                ..Links::default()
            },
            (_, _, Some(_)) => return Err("levels replace alpha and beta".into()),
            (None, _, None) => return Err("missing field `alpha`, or `levels`".into()),
            (_, None, None) => return Err("missing field `beta`".into()),
        };
        let latency = match written.latency {
            None => links.latency,
            Some(_) if !links.latency.is_empty() => {
                return Err("latency: the levels have theirs".into());
            }
            Some(LatencyFile::All(latency)) => {
                let ranks = links.alpha.len();
                vec![vec![latency; ranks]; ranks]
            }
            Some(LatencyFile::Pairs(latency)) => latency,
        };
        Ok(Links {
            alpha: links.alpha,
            beta: links.beta,
            gamma: written.gamma,
            gamma_copy: written.gamma_copy,
            latency,
            eager: written.eager,
        })
    }
}

impl Links {
    /// Reads the JSON form; the numbers are checked by
    /// [`CostModel::heterogeneous`](super::CostModel::heterogeneous).
    ///
    /// # Errors
    /// When the text is not such an object, or levels leave a rank out, contradict each other or
    /// describe more than 4096 ranks.
    pub fn from_json(text: &str) -> crate::Result<Links> {
        Links::for_ranks(text, None)
    }

    /// As [`Links::from_json`], of `ranks` ranks if levels without groups do not say how many there
    /// are.
    ///
    /// ```
    /// use oneport::machine::Links;
    /// let links = Links::for_ranks(r#"{"levels": [{"alpha": 300, "beta": 0.1}]}"#, Some(4))?;
    /// assert_eq!(links.alpha, vec![vec![Some(300.0); 4]; 4]);
    /// # Ok::<(), oneport::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Links::from_json`].
    pub fn for_ranks(text: &str, ranks: Option<usize>) -> crate::Result<Links> {
        let written: LinksFile = json_object("not a cost file", "alpha and beta", text)?;
        let links = written.links(ranks);
        links.map_err(|why| Error::malformed(format!("not a cost file: {why}")))
    }
}

/// A heterogeneous platform.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinkPlatform {
    pub(super) links: Links,
    /// `(alpha, beta)` from rank `a` to rank `b` at `a * ranks + b`; alpha is infinite without a
    /// link.
    pairs: Vec<(f64, f64)>,
    ranks: usize,
    /// The latency from rank `a` to rank `b` at `a * ranks + b`; none if all are 0.
    latencies: Vec<f64>,
    /// The maxima of alpha and of beta over all links between different ranks.
    pub(super) slowest: (f64, f64),
}

impl LinkPlatform {
    pub(super) fn new(links: Links) -> LinkPlatform {
        let mut platform = LinkPlatform {
            pairs: Vec::with_capacity(links.alpha.len() * links.alpha.len()),
            ranks: links.alpha.len(),
            latencies: Vec::new(),
            slowest: (0.0, 0.0),
            links,
        };
        let latencies = || platform.links.latency.iter().flatten().copied();
        if latencies().any(|latency| latency > 0.0) {
            platform.latencies = latencies().collect();
        }
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

    pub(super) fn has_latencies(&self) -> bool {
        !self.latencies.is_empty()
    }

    /// The latency of a link; the platform must have some.
    #[inline]
    pub(super) fn latency(&self, from: usize, to: usize) -> f64 {
        let place = from * self.ranks + to;
        self.latencies.get(place).copied().unwrap_or(0.0)
    }

    pub(super) fn forget_latencies(&mut self) {
        self.latencies.clear();
        self.links.latency.clear();
    }

    /// The same platform with beta 0.
    pub(super) fn start_up_alone(&self) -> LinkPlatform {
        let mut links = self.links.clone();
        for beta in links.beta.iter_mut().flatten().flatten() {
            *beta = 0.0;
        }
        LinkPlatform::new(links)
    }

    #[inline]
    pub(super) fn pair(&self, from: usize, to: usize) -> (f64, f64) {
        if from >= self.ranks || to >= self.ranks {
            return (f64::INFINITY, 0.0);
        }
        self.pairs[from * self.ranks + to]
    }
}
