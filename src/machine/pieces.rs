//! Piecewise linear costs: a cost as a function of the size, one line per range of sizes.

use serde::{Deserialize, Serialize};

use super::{float, refuses_cost};
use crate::error::{Error, Result};

/// Piecewise linear costs. An empty list means that one line is valid for all sizes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// Costs of messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<Piece>,
    /// Costs of combining.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combine: Vec<Piece>,
    /// Costs of combining data that a rank holds into data that it has sent before; if empty,
    /// `combine` applies. In shared memory this is more expensive: the partner's core also holds
    /// the cache lines and gives them up one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combine_local: Vec<Piece>,
    /// Costs of local copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<Piece>,
}

/// One line: `n` bytes take `alpha + beta * n`, for `n` from `from` to the start of the next piece.
/// `alpha` may be negative, because a line that starts at a later size may have a negative value
/// at 0.
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
    /// Whether all lists are empty.
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

    /// Checks that each list begins at 0 and is increasing, that all costs are finite, that no time
    /// is negative or less than that of a smaller size, and that no cost exceeds 1e100. Takes time
    /// linear in the number of pieces.
    ///
    /// # Errors
    /// Names the first piece that fails.
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
                // Lines that meet may differ by rounding, but no time may be below 0.
                let here = piece.at(piece.from);
                let slack = 1e-9 * piece.alpha.abs().max(here.abs());
                let min_time = before.map_or(0.0, |b| b.at(piece.from) - slack);
                if here < min_time.max(0.0) {
                    return bad("times must not be negative, nor become less with size");
                }
            }
        }
        Ok(())
    }
}

impl Piece {
    /// Time of `bytes` bytes, a size in this piece's range.
    #[inline]
    pub(super) fn at(&self, bytes: u64) -> f64 {
        self.alpha + self.beta * float(bytes)
    }
}

/// The piece whose range contains `bytes`; `None` if there are no pieces.
#[inline]
pub(super) fn holding(pieces: &[Piece], bytes: u64) -> Option<&Piece> {
    pieces.iter().rfind(|p| p.from <= bytes)
}

/// The minimal time per byte over all sizes of at least one byte. On each piece it is attained at
/// one of the ends, or at infinity.
pub(super) fn min_rate(pieces: &[Piece]) -> f64 {
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

/// Lines `(alpha, beta)`, neither negative, that no size of at least one byte takes less than. A
/// line with the slope of a piece is lowest at an end of a piece.
pub(super) fn lines_below(pieces: &[Piece]) -> Vec<(f64, f64)> {
    let last = pieces.last().map_or(0.0, |p| p.beta);
    let below = |beta: f64| {
        let ends = pieces.iter().enumerate().flat_map(|(i, p)| {
            let next = pieces.get(i + 1).map(|next| next.from);
            let ends = [Some(p.from.max(1)), next].into_iter().flatten();
            ends.map(move |n| p.at(n) - beta * float(n))
        });
        (ends.fold(f64::INFINITY, f64::min), beta)
    };
    let slopes = pieces.iter().map(|p| p.beta).chain([min_rate(pieces)]);
    let lines = slopes.filter(|&beta| beta <= last).map(below);
    lines.filter(|&(alpha, _)| alpha >= 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{CostModel, Links};
    use crate::plan::{Segments, registry};
    use crate::{Kind, Request};

    fn piece(from: u64, alpha: f64, beta: f64) -> Piece {
        Piece { from, alpha, beta }
    }

    /// Start-up times that rise while the time per byte falls, then a higher time per byte again.
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
    fn min_rates_are_attained_lower_bounds() {
        let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
        let (alpha, beta, gamma) = cost.min_rates();
        assert_eq!((alpha, beta, gamma), (10.0, 1.11, 0.25));
        for n in 1..5000 {
            assert!(cost.transfer(0, 1, n) >= alpha.max(beta * float(n) * (1.0 - 1e-12)));
            assert!(cost.combine(0, n) >= gamma * float(n));
        }
        let lines = cost.lines_below();
        assert!(lines.contains(&(11.0, 1.0)), "{lines:?}");
        for (alpha, beta) in lines {
            for n in 1..5000 {
                let below = (alpha + beta * float(n)) * (1.0 - 1e-12);
                assert!(cost.transfer(0, 1, n) >= below);
            }
        }
        assert_eq!(
            CostModel::new(3.0, 2.0).gamma(1.0).min_rates(),
            (3.0, 2.0, 1.0)
        );
    }

    #[test]
    fn times_are_never_negative() {
        // Far below 0, and below 0 by an amount that looks like rounding.
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
        assert!(linear.linear().is_some());
        assert_eq!(linear, CostModel::new(1.0, 1.0));
    }

    #[test]
    fn setting_a_rate_sets_it_for_every_rank_of_a_platform() {
        let square = vec![vec![Some(1.0); 3]; 3];
        let cost = CostModel::heterogeneous(Links {
            alpha: square.clone(),
            beta: square,
            gamma: vec![1.0, 2.0, 3.0],
            gamma_copy: Vec::new(),
        });
        let cost = cost.unwrap().gamma(5.0).gamma_copy(7.0);
        for rank in 0..3 {
            assert_eq!((cost.combine(rank, 2), cost.copy(rank, 2)), (10.0, 14.0));
        }
        assert_eq!(cost.transfer(0, 1, 2), 3.0);
    }

    #[test]
    fn every_algorithm_is_timed_in_pieces() {
        let cost = CostModel::new(1.0, 1.0).pieces(pieces()).unwrap();
        for algorithm in registry::all() {
            for (p, m, segment) in [(4, 960, 960), (7, 960, 40), (8, 2000, 500), (2, 30, 7)] {
                let mut request = Request::new(algorithm.collective, p, m).cost(cost.clone());
                if algorithm.segmented {
                    request = request.segments(Segments::of_size(m, segment).unwrap());
                }
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let schedule = algorithm.plan(&request).unwrap();
                let time = schedule.simulate(&cost).unwrap().makespan();
                let mut closed = request.clone();
                if !algorithm.collective.reduces() {
                    closed = closed.cost(cost.clone().gamma(0.0));
                }
                if let Some(closed) = algorithm.closed_form(&closed) {
                    let off = (closed / time - 1.0).abs();
                    assert!(off < 1e-9, "{} {p} {m} {closed} {time}", algorithm.name());
                }
                let bound = schedule.lower_bound(&cost).largest;
                assert!(bound <= time * (1.0 + 1e-9), "{} {p} {m}", algorithm.name());
            }
        }
        // Where no closed form exists, the best segment is searched for.
        let mut request = Request::broadcast(6, 3000).cost(cost);
        let chain = registry::find(Kind::Broadcast, "chain").unwrap();
        let best = crate::plan::segments::best_segment(&chain, &request).unwrap();
        for segment in (10..3000).step_by(37) {
            request = request.segments(Segments::of_size(3000, segment).unwrap());
            let time = chain.time(&request).unwrap();
            assert!(best.time <= time * 1.02, "{segment}: {time} {}", best.time);
        }
    }
}
