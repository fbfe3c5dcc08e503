//! Transfers: the one module that owns pointers. Everyone else passes spans and slices.
//!
//! `protocol` says when either side of a transfer may touch what, and why that is safe; `memory`
//! takes messages out of one buffer and into another: `packed` walks along their spans, `copy`
//! moves the bytes, `shared` divides long ones between both partners, `kernels` combines;
//! `errand` lends a closure to the team's threads for as long as a call lasts; `lazy` makes shared
//! things when first needed.
#![allow(unsafe_code)]

mod copy;
mod kernels;
mod lazy;
mod memory;
mod packed;
mod protocol;
mod scoped_job;
mod shared;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use copy::streams_from;
pub(crate) use kernels::combine_each;
pub(crate) use lazy::Lazy;
pub(crate) use memory::{Due, RankMemory, Received, SendSpans};
pub(crate) use packed::{RecvOp, any_overlap};
pub(crate) use protocol::{INLINE_BYTES, Lane, Sent, Wire};
pub(crate) use scoped_job::{ScopedJob, run_on_all};
pub(crate) use slots::Slots;

use super::sync;
