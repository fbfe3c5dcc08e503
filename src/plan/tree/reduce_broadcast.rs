//! Allreduce as a reduction to rank 0, followed by a broadcast from rank 0.
//!
//! - Source: folklore.
//! - Ports and symbols: those of the reduction.
//! - Rounds and volume: twice those of the reduction.
//! - Time: the reduction's time, plus its time without computation. The phases do not overlap: when
//!   the reduction ends, the root has received everything and all other ranks have finished their
//!   part.
//! - Restrictions and scratch: those of the reduction. The request's root is ignored.
//! - Operand order: kept if the reduction keeps it. With root 0 the result needs no forwarding.
//!
//! The broadcast is a reduction planned for free computation and then reversed.
//!
//! Example, binomial, `p = 3`: 1→0; 2→0; 0→2; 0→1.

use crate::error::Result;
use crate::plan::Request;
use crate::schedule::Schedule;
use crate::schedule::collective::Collective;

/// Plans the allreduce over what `reduction` plans.
///
/// # Errors
/// As `reduction`.
pub(crate) fn plan(
    request: &Request,
    reduction: fn(&Request) -> Result<Schedule>,
) -> Result<Schedule> {
    request.validate()?;
    let request = request.clone().root(0);
    let up = reduction(&request)?;
    // Without computation other trees may be better.
    let down = reduction(&request.without_computation())?.into_reversed()?;
    in_sequence(Collective::Allreduce, up, down)
}

/// The `collective` that runs `first` and then `second` over the same buffers: the input is that of
/// the first, the output that of the second.
///
/// # Errors
/// As [`Schedule::new`].
pub(in crate::plan) fn in_sequence(
    collective: Collective,
    first: Schedule,
    second: Schedule,
) -> Result<Schedule> {
    let mut b = Schedule::builder(first.ranks(), first.ports(), collective);
    for (r, (first, second)) in first.layout().iter().zip(second.layout()).enumerate() {
        let len = first.len.max(second.len);
        b.layout(r, len, first.input.clone(), second.output.clone());
    }
    for schedule in [first, second] {
        for (r, program) in schedule.into_programs().into_iter().enumerate() {
            for step in program {
                b.step(r, step);
            }
        }
    }
    b.build()
}
