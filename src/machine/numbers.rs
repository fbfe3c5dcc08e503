//! The limits of costs, numbers of bytes, and the named conversions between types of numbers: those
//! that a type does not make without loss.

// Indices are as wide as the numbers in files and messages.
const _: () = assert!(usize::BITS == u64::BITS);

/// Upper limit of every cost, in any unit. It keeps all times, over all possible sizes and
/// schedules, and the values computed from them finite.
const MAX_COST: f64 = 1e100;

/// Returns the reason if the number is not a valid cost.
pub fn refuses_cost(cost: f64) -> Option<&'static str> {
    if !(cost.is_finite() && cost >= 0.0) {
        Some("a cost is finite and not negative")
    } else if cost > MAX_COST {
        Some("too large, a cost is at most 1e100")
    } else {
        None
    }
}

/// Bytes of `elements` elements; saturates, far above the size of any memory.
#[inline]
pub fn bytes(elements: usize, element_bytes: u64) -> u64 {
    (elements as u64).saturating_mul(element_bytes)
}

/// Converts a number of bytes; exact up to 2^53.
#[inline]
pub(super) fn float(bytes: u64) -> f64 {
    bytes as f64
}

/// The number as an index or a length.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both have 64 bits")]
pub const fn index(n: u64) -> usize {
    n as usize
}

/// The number of a rank, a step or a node, of which no schedule has 2^32: where they are first
/// numbered, more are refused. It is one instruction, for inner loops.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "asserted, and refused before"
)]
pub fn id(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "{n} needs more than 32 bits");
    n as u32
}

/// The number of something that is in memory, which holds fewer than 2^63, to compute differences.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "asserted")]
pub fn signed(n: usize) -> i64 {
    debug_assert!(i64::try_from(n).is_ok(), "{n} is not a size");
    n as i64
}

/// Rounds towards zero. Numbers out of range become the nearest one in range, and NaN becomes 0.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what it does is said above"
)]
pub fn truncated(x: f64) -> usize {
    x as usize
}

/// As [`truncated`], with a sign.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "as above")]
pub fn truncated_i64(x: f64) -> i64 {
    x as i64
}
