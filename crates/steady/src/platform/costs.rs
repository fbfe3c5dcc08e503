//! A platform from the costs of messages between ranks.

use super::{Edge, Platform};
use crate::fraction::{Fraction, parse_fraction};
use oneport::error::{Error, Result};
use oneport::machine::CostModel;

impl Platform {
    /// The platform whose link times are those of `cost` for messages of `bytes` bytes: a node for
    /// each of `ranks` ranks, an edge for each link, node 0 the source and all others targets.
    /// Times keep three significant digits: measured ones have no more, and the period of a
    /// schedule grows with the digits. Takes time quadratic in the ranks.
    ///
    /// # Errors
    /// `cost` is for fewer ranks, a message takes no time, or as [`Platform::new`].
    pub fn of_costs(cost: &CostModel, ranks: usize, bytes: u64) -> Result<Platform> {
        cost.covers(ranks)?;
        let pairs = (0..ranks).flat_map(|src| (0..ranks).map(move |dst| (src, dst)));
        let edges = pairs
            .filter(|&(src, dst)| src != dst && cost.transfer(src, dst, bytes).is_finite())
            .map(|(src, dst)| {
                Ok(Edge::new(
                    src,
                    dst,
                    rounded(cost.transfer(src, dst, bytes))?,
                ))
            })
            .collect::<Result<_>>()?;
        let platform = Platform::new(ranks, 0, None, edges)?.with_overlap(cost.overlaps());
        let combination = cost.rates().gamma * bytes as f64;
        if combination > 0.0 {
            return platform.with_compute(vec![rounded(combination)?; ranks]);
        }
        Ok(platform)
    }
}

/// `time` with three significant digits.
fn rounded(time: f64) -> Result<Fraction> {
    let digits = format!("{time:.2e}");
    parse_fraction(&digits).ok_or_else(|| Error::usage(format!("{time} is no time of a message")))
}
