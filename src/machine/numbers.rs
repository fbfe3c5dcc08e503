//! The limits of costs, and numbers of bytes.

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
