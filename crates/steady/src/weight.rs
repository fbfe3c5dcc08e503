//! Number types of edge weights in the graph algorithms: floating-point numbers for the search,
//! whole numbers for the proof.

use std::ops::{Add, Sub};

use dashu_int::IBig;

/// A weight; the default is zero.
pub(super) trait Weight:
    Clone + PartialOrd + Default + Add<Output = Self> + Sub<Output = Self>
{
}

impl Weight for f64 {}
impl Weight for i64 {}
impl Weight for IBig {}

/// A weight that can be halved exactly wherever an algorithm halves it.
pub(super) trait Whole: Weight {
    fn half(self) -> Self;
}

impl Whole for i64 {
    fn half(self) -> Self {
        self >> 1
    }
}

impl Whole for IBig {
    fn half(self) -> Self {
        self >> 1
    }
}

/// Returns the smaller of two weights.
pub(super) fn min<W: Weight>(a: W, b: W) -> W {
    if b < a { b } else { a }
}
