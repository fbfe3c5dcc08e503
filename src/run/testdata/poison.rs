//! The values that fill a buffer outside its input, so that elements never written show.

use super::values::{FEW, Purpose};

/// A value of `width` bits that no test value has, and that spoils what it is combined with.
pub(crate) fn poison_integer(purpose: Purpose, bits: u64, width: u32, signed: bool) -> u64 {
    let mask = u64::MAX >> (64 - width);
    let top = 1 << (width - 1);
    let sign = if signed { top } else { 0 };
    // Above all test values for maxima.
    let above = mask - bits % ((1 << (width - 4)) - FEW);
    match purpose {
        Purpose::Any | Purpose::Inexact => top + 1 + bits % (FEW - 1),
        // A sum of `n` odd values has the parity of `n`. Poison is even, so a sum in which poison
        // replaces a value has the other parity.
        Purpose::Sum => (bits & mask & !1).max(2),
        // Even, and so are all multiples.
        Purpose::Product => bits & mask & !1,
        Purpose::Max => above ^ sign,
        Purpose::Min => (mask - above) ^ sign,
        Purpose::Or => mask & !(1 << (bits % u64::from(width))),
        Purpose::And => 1 << (bits % u64::from(width)),
        // Wrong where no rank decides.
        Purpose::LogicalAnd => 0,
        Purpose::LogicalOr | Purpose::LogicalXor => mask,
        Purpose::Affine => bits & !(1 << 32),
    }
}

/// A float that no test value has, and that spoils what it is combined with.
pub(crate) fn poison_float(purpose: Purpose, bits: u64) -> f64 {
    // Not NaN here: a comparison with NaN keeps the other operand.
    let large = 4096.0 * f64::from(1 + (bits & 0xff) as u16);
    match purpose {
        Purpose::Max => large,
        Purpose::Min => -large,
        _ => f64::NAN,
    }
}
