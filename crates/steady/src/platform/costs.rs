//! A platform from the costs of messages between ranks.

use super::{Edge, Platform};
use crate::fraction::{Fraction, parse_fraction};
use oneport::error::{Error, Result};
use oneport::machine::CostModel;

impl Platform {
    /// The platform on which a message of `bytes` bytes takes what it takes in `cost`, in its unit:
    /// a node for each of `ranks` ranks, an edge for each link, node 0 the source and all others
    /// targets. Times keep three significant digits: measured ones have no more, and the period of
    /// a schedule grows with the digits. Takes time quadratic in the ranks.
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

#[cfg(test)]
mod tests {
    use super::*;
    use oneport::machine::Links;

    #[test]
    fn edges_cost_what_messages_take() {
        let levels = r#"{"levels": [{"groups": [[0, 1], [2, 3]], "alpha": 100, "beta": 0.5},
            {"groups": [[0, 1, 2, 3]], "alpha": 1000.4, "beta": 2}]}"#;
        let cost = CostModel::heterogeneous(Links::from_json(levels).unwrap()).unwrap();
        let platform = Platform::of_costs(&cost, 4, 1000).unwrap();
        assert_eq!((platform.nodes(), platform.edges().len()), (4, 12));
        for edge in platform.edges() {
            let near = edge.src / 2 == edge.dst / 2;
            assert_eq!(edge.cost, Fraction::from(if near { 600 } else { 3000 }));
        }
        assert!(Platform::of_costs(&cost, 4, 0).is_err(), "takes no time");
        assert!(
            Platform::of_costs(&cost, 5, 8).is_err(),
            "no costs of rank 4"
        );
        assert!(!platform.computes());
    }
}
