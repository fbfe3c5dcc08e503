//! Number types of edge weights in the graph algorithms: floating-point numbers for the search,
//! whole numbers for the proof.

use std::ops::{Add, Shr, Sub};

/// A weight; the default is zero.
pub(super) trait Weight:
    Clone + PartialOrd + Default + Add<Output = Self> + Sub<Output = Self>
{
}

impl<W: Clone + PartialOrd + Default + Add<Output = W> + Sub<Output = W>> Weight for W {}

/// A weight that is halved by a shift, exactly wherever an algorithm does so.
pub(super) trait Whole: Weight + Shr<usize, Output = Self> {}

impl<W: Weight + Shr<usize, Output = W>> Whole for W {}

/// Returns the least of the weights.
pub(super) fn least<W: Weight>(weights: impl IntoIterator<Item = W>) -> Option<W> {
    let lesser = |a, b| if b < a { b } else { a };
    weights.into_iter().reduce(lesser)
}
