//! The figures of Lowery & Langou's tables as printed, to be shown beside what the rules of time
//! execute; and what is said of two algorithms whose executed time has a closed form for some `p`
//! only: about what the two-tree algorithm takes, and what the dual-root one takes at most.
//!
//! Symbols: `p` ranks, `m` elements in `q` segments of `s`, `L = ceil(log2 p)`, `N = ceil(log2(p +
//! 1))`; alpha a message, beta and gamma an element. Table I is unidirectional, table III
//! bidirectional, both for `p > 3`; table II gives the least that each algorithm can take in each
//! of the three terms, unidirectional. Their unidirectional times are upper bounds of the executed
//! ones.

use crate::collective::Kind;
use crate::plan::Request;

/// What a table prints for one algorithm and one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The table.
    pub table: &'static str,
    /// The time for the request's segments (the largest size standing for all).
    pub time: f64,
    /// The best segment size: any positive number, not clamped to the vector. `None` where the
    /// table has none, or its formula is undefined.
    pub best_segment: Option<f64>,
    /// The time at the best segment size.
    pub best_time: Option<f64>,
    /// The best segment size clamped to `1..=m`, and the formula's time there, with `m / s`
    /// segments.
    pub clamped: (f64, f64),
    /// Table II's row.
    pub terms: Option<Terms>,
    /// What is known to be wrong with the printed formula.
    pub erratum: Option<&'static str>,
}

/// The least time that messages' start-up, transfer and computation can take, each on its own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Terms {
    pub latency: f64,
    pub bandwidth: f64,
    pub computation: f64,
}

/// What the tables print for the algorithm of this name, under the request's port model.
///
/// `None` for algorithms and collectives that they do not cover, for `p <= 3`, for an empty vector,
/// and where costs differ from rank to rank. A broadcast is a reduction without computation. Names
/// are the registry's; `pipeline` is `chain`.
///
/// ```
/// use oneport::plan::segmentation::published;
/// use oneport::{CostModel, Kind, Ports, Request};
/// let mut request = Request::new(64, 1000);
/// request.ports = Ports::UNI;
/// request.cost = CostModel::new(10.0, 1.0);
/// let chain = published(Kind::Reduce, "chain", &request).unwrap();
/// assert_eq!(chain.table, "Table I");
/// assert_eq!(chain.time, 63.0 * 1010.0);
/// assert_eq!(chain.best_segment, Some((20_000.0f64 / 61.0).sqrt()));
/// ```
pub fn published(kind: Kind, algorithm: &str, request: &Request) -> Option<Published> {
    if (kind, algorithm) == (Kind::Allreduce, "dual-root") {
        return dual_root(request);
    }
    let x = Symbols::new(kind, request)?;
    let Symbols { p, m, l, n, .. } = x;
    if request.ports.is_bidirectional() {
        match algorithm {
            "binomial" => Some(x.whole("Table III", l)),
            "chain" | "pipeline" => Some(x.rounds("Table III", p - 2.0, 1.0)),
            "binary" => Some(Published {
                // As printed: 2 (N + q - 1) rounds; the best size and its time follow from 2 (N + q
                // - 2).
                time: x.time(2.0 * (n - 1.0), 2.0, x.s),
                erratum: Some(
                    "the printed time, 2(N+q-1) rounds, contradicts the printed best time, which follows from 2(N+q-2)",
                ),
                ..x.rounds("Table III", 2.0 * (n - 2.0), 2.0)
            }),
            "bi-greedy" | "circulant" => Some(x.rounds("Table III", l - 1.0, 1.0)),
            // 2 L + 2 k rounds with k segments for each tree.
            "two-tree" => Some(x.rounds("about; Sanders, Speck, Träff 2009", 2.0 * l, 1.0)),
            "butterfly" if kind == Kind::Reduce => {
                let share = (p - 1.0) / p * m;
                let time = 2.0 * l * x.alpha + 2.0 * share * x.beta + share * x.gamma;
                Some(Published {
                    time,
                    clamped: (m, time),
                    erratum: (!request.ranks.is_power_of_two())
                        .then_some("only a lower bound where p is not a power of two"),
                    ..x.whole("Table III", l)
                })
            }
            _ => None,
        }
    } else {
        let terms = |alpha: f64, units: f64| {
            Some(Terms {
                latency: alpha * x.alpha,
                bandwidth: units * x.beta,
                computation: units * x.gamma,
            })
        };
        match algorithm {
            "binomial" => Some(Published {
                terms: terms(l, l * m),
                ..x.whole("Table I", l)
            }),
            "chain" | "pipeline" => Some(Published {
                terms: terms(p - 1.0, p + 2.0 * m - 3.0),
                ..x.rounds("Table I", p - 3.0, 2.0)
            }),
            "binary" => Some(Published {
                terms: terms(2.0 * (n - 1.0), 2.0 * (n + 2.0 * m - 3.0)),
                ..x.rounds("Table I", 2.0 * (n - 3.0), 4.0)
            }),
            _ => None,
        }
    }
}

/// The dual-root allreduce over two trees of `h` levels that are full, or fuller than the
/// request's: `(4 h - 3) tc + (2 h - 1) tp + 3 (q - 1)(tc + tp)`, at best `O(log p + sqrt(m log p)) +
/// 3 (beta + gamma) m`.
fn dual_root(request: &Request) -> Option<Published> {
    if request.ranks <= 3 || request.elements() == 0 || !request.ports.is_bidirectional() {
        return None;
    }
    let x = Symbols::of(request, true)?;
    let h = f64::from(ceil_log2(request.ranks.saturating_add(2)) - 1);
    let (starts, combined) = (4.0 * h - 6.0, 2.0 * h - 4.0);
    // (starts + 3 m / s) alpha + slope s + whole
    let slope = starts * x.beta + combined * x.gamma;
    let whole = 3.0 * x.m * (x.beta + x.gamma);
    let time = |s: f64, q: f64| {
        (starts + 3.0 * q) * x.alpha + slope * s + 3.0 * q * s * (x.beta + x.gamma)
    };
    let best = (3.0 * x.m * x.alpha / slope).sqrt();
    let defined = best.is_finite();
    let s = if defined { best.clamp(1.0, x.m) } else { x.m };
    Some(Published {
        time: time(x.s, (x.m / x.s).ceil()),
        best_segment: defined.then_some(best),
        best_time: defined
            .then(|| starts * x.alpha + 2.0 * (3.0 * x.m * x.alpha * slope).sqrt() + whole),
        clamped: (s, time(s, x.m / s)),
        ..x.whole("at most; Träff 2021", 0.0)
    })
}

/// Table II's bounds of any unidirectional reduction, as printed.
///
/// Its bandwidth term `2 beta m` is right for odd `p` only: see [`crate::bounds`] for the corrected
/// one.
pub fn published_bounds(request: &Request) -> Option<Terms> {
    let x = Symbols::new(Kind::Reduce, request)?;
    (!request.ports.is_bidirectional()).then_some(Terms {
        latency: x.l * x.alpha,
        bandwidth: 2.0 * x.m * x.beta,
        computation: (x.p - 1.0) / x.p * x.m * x.gamma,
    })
}

/// The tables' symbols, as numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbols {
    pub(super) p: f64,
    pub(super) m: f64,
    /// Size of the largest segment.
    pub(super) s: f64,
    pub(super) l: f64,
    pub(super) n: f64,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) gamma: f64,
}

impl Symbols {
    fn new(kind: Kind, request: &Request) -> Option<Symbols> {
        (request.ranks > 3 && request.elements() > 0)
            .then(|| Symbols::any(kind, request))
            .flatten()
    }

    /// Without the tables' conditions on `p` and `m`.
    pub(super) fn any(kind: Kind, request: &Request) -> Option<Symbols> {
        matches!(kind, Kind::Reduce | Kind::Broadcast)
            .then(|| Symbols::of(request, kind.reduces()))
            .flatten()
    }

    /// Those of any collective; `reduces` says whether it combines.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn of(request: &Request, reduces: bool) -> Option<Symbols> {
        if !request.cost.is_linear() {
            return None;
        }
        let (p, bytes) = (request.ranks, request.element_bytes as f64);
        let gamma = if reduces { request.cost.gamma } else { 0.0 };
        let largest = request.segments.sizes().iter().max().copied().unwrap_or(0);
        Some(Symbols {
            p: p as f64,
            m: request.elements() as f64,
            s: largest as f64,
            l: f64::from(ceil_log2(p)),
            n: f64::from(ceil_log2(p.saturating_add(1))),
            alpha: request.cost.alpha,
            beta: request.cost.beta * bytes,
            gamma: gamma * bytes,
        })
    }

    /// `(fixed + per_segment m / s)` rounds of one segment.
    fn time(&self, fixed: f64, per_segment: f64, s: f64) -> f64 {
        (fixed + per_segment * (self.m / s).ceil()) * self.round(s)
    }

    fn round(&self, s: f64) -> f64 {
        self.alpha + self.beta * s + self.gamma * s
    }

    /// An algorithm that does not split the vector.
    fn whole(&self, table: &'static str, rounds: f64) -> Published {
        let time = rounds * self.round(self.m);
        Published {
            table,
            time,
            best_segment: None,
            best_time: None,
            clamped: (self.m, time),
            terms: None,
            erratum: None,
        }
    }

    /// An algorithm of `fixed + per_segment q` rounds. The best of `(f + c m / s)(alpha + b s)` is
    /// at `s = sqrt(c m alpha / (f b))`: `(sqrt(f alpha) + sqrt(c m b))^2`.
    fn rounds(&self, table: &'static str, fixed: f64, per_segment: f64) -> Published {
        let unit = self.beta + self.gamma;
        let best = (per_segment * self.m * self.alpha / (fixed * unit)).sqrt();
        let defined = fixed > 0.0 && best.is_finite();
        let s = if defined {
            best.clamp(1.0, self.m)
        } else {
            self.m
        };
        let root = (fixed * self.alpha).sqrt() + (per_segment * self.m * unit).sqrt();
        Published {
            time: self.time(fixed, per_segment, self.s),
            best_segment: defined.then_some(best),
            best_time: defined.then_some(root * root),
            clamped: (s, (fixed + per_segment * self.m / s) * self.round(s)),
            ..self.whole(table, 0.0)
        }
    }
}

fn ceil_log2(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Segments;
    use crate::{CostModel, Ports};

    fn request(p: usize, m: usize, s: usize, ports: Ports) -> Request {
        let mut r = Request::new(p, m);
        r.segments = Segments::of_size(m, s).unwrap();
        r.ports = ports;
        r.cost = CostModel::new(50.0, 3.0).gamma(2.0);
        r
    }

    #[test]
    fn printed_formulas() {
        let (p, m, s, q) = (31, 1000, 10, 100.0);
        let round = 50.0 + 5.0 * 10.0;
        let time = |ports, name| {
            published(Kind::Reduce, name, &request(p, m, s, ports))
                .unwrap()
                .time
        };
        assert_eq!(time(Ports::UNI, "binomial"), 5.0 * 5050.0);
        assert_eq!(time(Ports::UNI, "chain"), (30.0 + 2.0 * (q - 1.0)) * round);
        assert_eq!(
            time(Ports::UNI, "binary"),
            (2.0 * 4.0 + 4.0 * (q - 1.0)) * round
        );
        assert_eq!(time(Ports::BI, "chain"), (29.0 + q) * round);
        assert_eq!(time(Ports::BI, "binary"), 2.0 * (4.0 + q) * round);
        assert_eq!(time(Ports::BI, "bi-greedy"), (4.0 + q) * round);
        let butterfly = request(32, 64, 64, Ports::BI);
        let butterfly = published(Kind::Reduce, "butterfly", &butterfly).unwrap();
        assert_eq!(butterfly.time, 10.0 * 50.0 + 2.0 * 62.0 * 3.0 + 62.0 * 2.0);
        assert_eq!(butterfly.erratum, None);
    }

    #[test]
    fn best_times_are_the_least_of_the_formulas() {
        for ports in [Ports::UNI, Ports::BI] {
            for name in ["chain", "binary", "bi-greedy", "two-tree"] {
                let Some(at) = published(Kind::Reduce, name, &request(100, 100_000, 1, ports))
                else {
                    continue;
                };
                let (s, t) = at.clamped;
                assert_eq!(at.best_segment, Some(s));
                assert!((at.best_time.unwrap() / t - 1.0).abs() < 1e-12);
                for other in [0.9 * s, 1.1 * s] {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a size"
                    )]
                    let r = request(100, 100_000, other as usize, ports);
                    assert!(
                        published(Kind::Reduce, name, &r).unwrap().time > t * 0.999,
                        "{name}"
                    );
                }
            }
        }
    }

    /// Beside the executed time, for all the `p` that closed forms are tested for: never less; two
    /// rounds less than "about" for powers of two, and the same for two full trees.
    #[test]
    fn what_two_trees_and_two_roots_take() {
        for p in 4..=70usize {
            for n in [1, 2, 3, 5, 8, 16] {
                let r = request(p, 4 * n, 4, Ports::BI);
                for (kind, name) in [
                    (Kind::Reduce, "two-tree"),
                    (Kind::Broadcast, "two-tree"),
                    (Kind::Allreduce, "dual-root"),
                ] {
                    let algorithm = crate::plan::registry::find(kind, name).unwrap();
                    let print = published(kind, name, &r).unwrap();
                    let executed = crate::plan::segmentation::executed_time(algorithm, &r).unwrap();
                    assert!(
                        executed <= print.time,
                        "{name} p={p} n={n}: {executed}, {print:?}"
                    );
                    let gamma = if kind.reduces() { 2.0 } else { 0.0 };
                    let round = 50.0 + 4.0 * (3.0 + gamma);
                    if name == "dual-root" && (p + 2).is_power_of_two() {
                        assert_eq!(executed, print.time, "p={p} n={n}");
                    } else if name == "two-tree" && p.is_power_of_two() {
                        assert_eq!(executed, print.time - 2.0 * round, "p={p} n={n}");
                    }
                }
            }
        }
    }

    #[test]
    fn terms_and_limits() {
        let r = request(7, 100, 10, Ports::UNI);
        let binary = published(Kind::Reduce, "binary", &r).unwrap();
        assert_eq!((binary.best_segment, binary.best_time), (None, None));
        assert_eq!(binary.terms.unwrap().bandwidth, 2.0 * 200.0 * 3.0);
        assert_eq!(published_bounds(&r).unwrap().bandwidth, 600.0);
        assert_eq!(published(Kind::Reduce, "uni-greedy", &r), None);
        assert_eq!(published(Kind::Allreduce, "chain", &r), None);
        assert_eq!(
            published(Kind::Reduce, "chain", &request(3, 100, 10, Ports::UNI)),
            None
        );
        let free = published(Kind::Broadcast, "binomial", &r).unwrap();
        assert_eq!(free.time, 3.0 * 350.0);
    }
}
