//! When a transfer or computation ends, under several cost models at a time.

use crate::machine::{CostModel, Linear};
use crate::rules::{Node, Times};

/// A cost model, prepared for repeated evaluation.
pub(super) struct Model<'a> {
    pub(super) cost: &'a CostModel,
    /// The four numbers of a linear homogeneous model.
    line: Option<Linear>,
    element_bytes: u64,
}

impl<'a> From<(&'a CostModel, u64)> for Model<'a> {
    fn from((cost, element_bytes): (&'a CostModel, u64)) -> Self {
        Model {
            cost,
            line: cost.linear(),
            element_bytes,
        }
    }
}

/// The time when `node` ends if it starts at `time`.
#[inline]
pub(super) fn end<const N: usize>(
    models: &[Model<'_>; N],
    node: &Node,
    time: Times<N>,
) -> Times<N> {
    std::array::from_fn(|i| {
        let model = &models[i];
        time[i]
            + match &model.line {
                Some(line) => node.time_by(line, model.element_bytes),
                None => node.time(model.cost, model.element_bytes),
            }
    })
}
