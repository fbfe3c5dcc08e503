//! When a transfer or computation ends, under several cost models at a time.

use crate::machine::{CostModel, Linear};
use crate::rules::{Node, NodeKind, Times, max_time};

/// A cost model, prepared for repeated evaluation.
pub(super) struct Model<'a> {
    pub(super) cost: &'a CostModel,
    /// The four numbers of a linear homogeneous model.
    line: Option<Linear>,
    element_bytes: u64,
    /// Whether a transfer starts and ends at both ends at once.
    ideal: bool,
}

impl<'a> From<(&'a CostModel, u64)> for Model<'a> {
    fn from((cost, element_bytes): (&'a CostModel, u64)) -> Self {
        Model {
            cost,
            line: cost.linear(),
            element_bytes,
            ideal: cost.is_ideal(),
        }
    }
}

impl Model<'_> {
    #[inline]
    fn time(&self, node: &Node) -> f64 {
        match &self.line {
            Some(line) => node.time_by(line, self.element_bytes),
            None => node.time(self.cost, self.element_bytes),
        }
    }

    /// When a transfer ends at its sender and its receiver, which may start it at these times.
    #[inline]
    fn ends(&self, node: &Node, sender: f64, receiver: f64) -> [f64; 2] {
        if self.ideal {
            return [max_time(sender, receiver) + self.time(node); 2];
        }
        let cost = node.transfer_cost(self.cost, self.element_bytes);
        cost.ends(sender, receiver)
    }
}

/// The time when the computation `node` ends if it starts at `time`.
#[inline]
pub(super) fn end<const N: usize>(
    models: &[Model<'_>; N],
    node: &Node,
    time: Times<N>,
) -> Times<N> {
    debug_assert!(node.kind != NodeKind::Transfer, "a transfer has two ends");
    std::array::from_fn(|i| time[i] + models[i].time(node))
}

/// The times when a transfer ends here, at the rank that sends it or receives it, and at the other
/// one, which may start it at these times.
#[inline]
pub(super) fn ends<const N: usize>(
    models: &[Model<'_>; N],
    node: &Node,
    sends: bool,
    mine: &Times<N>,
    other: &Times<N>,
) -> [Times<N>; 2] {
    let mut ends = [[0.0; N]; 2];
    for (i, model) in models.iter().enumerate() {
        [ends[0][i], ends[1][i]] = if sends {
            model.ends(node, mine[i], other[i])
        } else {
            let [sender, receiver] = model.ends(node, other[i], mine[i]);
            [receiver, sender]
        };
    }
    ends
}

/// The time under each model from which `rank` takes part.
#[inline]
pub(super) fn arrival<const N: usize>(models: &[Model<'_>; N], rank: usize) -> Times<N> {
    std::array::from_fn(|i| models[i].cost.arrival(rank))
}
