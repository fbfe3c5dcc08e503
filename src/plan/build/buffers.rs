//! Builders of schedules whose ranks have their buffers already.

use crate::error::{Error, Result};
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Builder, Schedule, Span};

/// A builder for `collective` without steps, and the vector: every rank's buffer holds it, and
/// `scratch` elements after it.
pub(in crate::plan) fn over_vector(
    request: &Request,
    collective: Collective,
    scratch: usize,
) -> (Builder, Span) {
    let vector = Span::new(0, request.elements());
    let own = vec![vector; request.ranks];
    (over_blocks(request, collective, &own, scratch), vector)
}

/// A builder for `collective` without steps: every rank's buffer holds all blocks, or the vector
/// that is split into them, and `scratch` elements after that.
pub(in crate::plan) fn over_blocks(
    request: &Request,
    collective: Collective,
    blocks: &[Span],
    scratch: usize,
) -> Builder {
    let whole = Span::new(0, blocks.last().map_or(0, |b| b.end()));
    let mut b = Schedule::builder(request.ranks, request.ports, collective.clone());
    for (r, &block) in blocks.iter().enumerate() {
        b.lay_out_as(r, collective.layout(r, whole.len + scratch, whole, block));
    }
    b
}

/// Number of elements of as many vectors of `m` elements as there are `areas`.
pub(in crate::plan) fn elements_of(areas: usize, m: usize) -> Result<usize> {
    m.checked_mul(areas).ok_or_else(|| {
        Error::too_large(format!(
            "a vector of {m} elements leaves no room for {} as long as it",
            areas - 1
        ))
    })
}
