//! Piecewise linear costs: a cost as a function of the size, one line per range of sizes.

use serde::{Deserialize, Serialize};

use super::{float, refuses_cost};
use crate::error::{Error, Result};

/// Piecewise linear costs. An empty list means that one line is valid for all sizes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
