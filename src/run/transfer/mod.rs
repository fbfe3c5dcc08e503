//! Transfers: the one module that owns pointers. Everyone else passes spans and slices.
//!
//! `protocol` says when either side of a transfer may touch what, and why that is safe; `memory` moves the bytes;
//! `errand` lends a closure to the team's threads for as long as a call lasts; `lazy` makes shared things when first needed.
#![allow(unsafe_code)]

mod errand;
mod lazy;
mod memory;
mod protocol;

pub(crate) use errand::{Errand, lend};
pub(crate) use lazy::Lazy;
pub(crate) use memory::{Intake, Lent, RankMemory, Received, any_overlap};
pub(crate) use protocol::{Sent, Wire};

use super::sync;
