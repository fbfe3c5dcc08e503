//! Costs that depend on the size piece by piece.

use serde::{Deserialize, Serialize};

use super::{float, refuses_cost};
use crate::error::{Error, Result};

/// Costs that are one line for small sizes and others for larger ones; an empty list where one line
/// does for all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// Of messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<Piece>,
    /// Of combining.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combine: Vec<Piece>,
    /// Of combining what a rank holds into what it has sent before; as other combining where there
    /// are none. In shared memory this is dearer: the partner's core has the lines, too, and
    /// gives them up one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combine_local: Vec<Piece>,
    /// Of local copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<Piece>,
}

/// `n` bytes take `alpha + beta * n`, for `n` from `from` up to where the next piece begins.
/// `alpha` may be negative: it is the time at 0 of a line that does not reach so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// First size, in bytes.
    pub from: u64,
    /// Time at size 0.
    pub alpha: f64,
    /// Time per byte.
    pub beta: f64,
}

impl Pieces {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        let Pieces {
            transfer,
            combine,
            combine_local,
            copy,
        } = self;
        [transfer, combine, combine_local, copy]
            .iter()
            .all(|list| list.is_empty())
    }

    /// Checks that each list begins at 0 and goes up, that no time is negative or less than that of
    /// a smaller size, and no cost more than 1e100.
    ///
    /// # Errors
    /// Names the first piece for which this is not so.
    pub fn validate(&self) -> Result<()> {
        for (name, pieces) in [
            ("transfer", &self.transfer),
            ("combine", &self.combine),
            ("combine_local", &self.combine_local),
            ("copy", &self.copy),
        ] {
            for (i, piece) in pieces.iter().enumerate() {
                let bad = |what: &str| Err(Error::malformed(format!("{name} piece {i}: {what}")));
                let before = i.checked_sub(1).map(|i| pieces[i]);
                if !(piece.alpha.is_finite() && piece.beta.is_finite() && piece.beta >= 0.0) {
                    return bad("alpha and beta must be finite, and beta not negative");
                }
                if let Some(why) = refuses_cost(piece.alpha.abs().max(piece.beta)) {
                    return bad(why);
                }
                if before.map_or(piece.from != 0, |b| b.from >= piece.from) {
                    return bad("pieces must begin at 0 and go up");
                }
                // Lines that meet may differ by rounding, but never below 0.
                let here = piece.at(piece.from);
                let slack = 1e-9 * piece.alpha.abs().max(here.abs());
                let least = before.map_or(0.0, |b| b.at(piece.from) - slack);
                if here < least.max(0.0) {
                    return bad("times must not be negative, nor become less with size");
                }
            }
        }
        Ok(())
    }
}

impl Piece {
    /// Time of `bytes` bytes, which this piece holds.
    #[inline]
    pub(super) fn at(&self, bytes: u64) -> f64 {
        self.alpha + self.beta * float(bytes)
    }
}

/// The piece that holds `bytes` bytes; `None` of no pieces.
#[inline]
pub(super) fn holding(pieces: &[Piece], bytes: u64) -> Option<&Piece> {
    pieces.iter().rfind(|p| p.from <= bytes)
}

/// The least time per byte over all sizes of at least a byte. On each piece it is at one of its
/// ends, or at infinity.
pub(super) fn least_rate(pieces: &[Piece]) -> f64 {
    let last = pieces.last().map_or(0.0, |p| p.beta);
    let ends = pieces.iter().enumerate().flat_map(|(i, p)| {
        let next = pieces.get(i + 1).map(|next| next.from);
        [Some(p.from.max(1)), next]
            .into_iter()
            .flatten()
            .map(move |n| p.at(n) / float(n))
    });
    ends.fold(last, f64::min).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::lower_bound_of;
    use crate::cost::CostModel;
    use crate::plan::{Segments, registry};
    use crate::simulate::Prepared;
    use crate::{Kind, Request};

    fn piece(from: u64, alpha: f64, beta: f64) -> Piece {
        Piece { from, alpha, beta }
    }

    /// Dearer and dearer starts, cheaper and cheaper bytes, then dear bytes again.
    fn pieces() -> Pieces {
        Pieces {
            transfer: vec![
                piece(0, 10.0, 2.0),
                piece(100, 110.0, 1.0),
                piece(1000, -890.0, 2.0),
            ],
            combine: vec![piece(0, 0.0, 1.0), piece(100, 75.0, 0.25)],
            combine_local: Vec::new(),
            copy: Vec::new(),
        }
    }

    #[test]
    fn least_rates_are_reached_and_not_passed() {
        let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
        let (alpha, beta, gamma) = cost.least_rates();
        assert_eq!((alpha, beta, gamma), (10.0, 1.11, 0.25));
        for n in 1..5000 {
            assert!(cost.transfer(0, 1, n) >= alpha.max(beta * float(n) * (1.0 - 1e-12)));
            assert!(cost.combine(0, n) >= gamma * float(n));
        }
        assert_eq!(
            CostModel::new(3.0, 2.0).gamma(1.0).least_rates(),
            (3.0, 2.0, 1.0)
        );
    }

    #[test]
    fn times_are_never_negative() {
        // Far below 0, and below 0 by what looks like rounding.
        for second in [piece(1000, -1e308, 0.1), piece(1000, -1e15 - 1e3, 1e12)] {
            for first in [piece(0, 10.0, 2.0), piece(0, 0.0, 0.0)] {
                let pieces = Pieces {
                    transfer: vec![first, second],
                    ..Pieces::default()
                };
                assert!(pieces.validate().is_err());
            }
        }
    }

    #[test]
    fn setting_a_rate_replaces_its_pieces() {
        let cost = CostModel::new(1.0, 1.0)
            .pieces(pieces())
            .unwrap()
            .gamma(0.0);
        assert_eq!(cost.combine(0, 500), 0.0);
        assert_eq!(cost.transfer(0, 1, 50), 110.0);
        assert_eq!(cost.copy(0, 50), 0.0);
        let linear = CostModel::new(1.0, 1.0).pieces(Pieces::default()).unwrap();
        assert!(linear.is_linear());
        assert_eq!(linear, CostModel::new(1.0, 1.0));
    }

    #[test]
    fn every_algorithm_is_timed_in_pieces() {
        let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
        for algorithm in registry::all() {
            for (p, m, segment) in [(4, 960, 960), (7, 960, 40), (8, 2000, 500), (2, 30, 7)] {
                let mut request = Request::new(p, m);
                request.cost = cost.clone();
                if algorithm.segmented {
                    request.segments = Segments::of_size(m, segment).unwrap();
                }
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let schedule = algorithm.plan(&request).unwrap();
                let time = Prepared::new(&schedule, false)
                    .unwrap()
                    .simulate(&cost, 1)
                    .time();
                let mut closed = request.clone();
                if !algorithm.collective.reduces() {
                    closed.cost = closed.cost.gamma(0.0);
                }
                if let Some(closed) = algorithm.closed_form(&closed) {
                    let off = (closed / time - 1.0).abs();
                    assert!(off < 1e-9, "{} {p} {m} {closed} {time}", algorithm.name);
                }
                let bound = lower_bound_of(&schedule, &cost, 1).largest;
                assert!(bound <= time * (1.0 + 1e-9), "{} {p} {m}", algorithm.name);
            }
        }
        // The best segment is looked for where no closed form gives it.
        let mut request = Request::new(6, 3000);
        request.cost = cost;
        let chain = registry::find(Kind::Broadcast, "chain").unwrap();
        let best = crate::plan::segmentation::best_segment(chain, &request).unwrap();
        for segment in (10..3000).step_by(37) {
            request.segments = Segments::of_size(3000, segment).unwrap();
            let time = crate::plan::segmentation::executed_time(chain, &request).unwrap();
            assert!(best.time <= time * 1.02, "{segment}: {time} {}", best.time);
        }
    }
}
