//! Transfers of messages between the ranks' buffers: the one module of `run` that works with raw
//! pointers.
//!
//! All other modules pass spans and slices.
//!
//! # A message from `send` to `recv`
//!
//! 1. The sender's step may start. [`RankMemory::open_send`] packs what the receiver needs into a
//!    *parcel*: the model time at which the send may start, the number of elements, and a message
//!    of a few bytes itself, of a longer one the address. The spans cannot be written until the
//!    answer.
//! 2. It offers the parcel: the fields are written to the lane of the [`Wire`], and the lane's
//!    state is stored as `INLINE` or `BORROWED`. The receiver is woken if it sleeps.
//! 3. The receiver's step may start, and polls the lane by [`RankMemory::receive`], which takes the
//!    parcel by a load (`INLINE`) or by the exchange to `TAKEN`. No parcel: it does something else,
//!    or waits, and polls again.
//! 4. It compares lengths. Others than the step's: `REFUSED`, and an error that names both.
//! 5. It copies or combines the bytes from the sender's memory into its own spans. A long message
//!    is opened as `SHARED`: the sender, which polls by [`RankMemory::poll_send`], claims pieces
//!    from its end and helps.
//! 6. It computes the two model times at which the transfer ends ([`Due::ends`]), stores the
//!    sender's one in the lane, and the state `DONE`. Its own step has ended.
//! 7. The sender reads `DONE` and its time: its step has ended, and its spans may be written again.
//!
//! A sender that does not wait ([`RankMemory::send_spans`]) goes on after 2, and looks for 7 before
//! it writes the spans or sends on the lane again. It helps if it has nothing else to do
//! ([`RankMemory::asked`]).
//!
//! | file | content |
//! |---|---|
//! | `protocol` | the states of a transfer: which side may touch what when, and why that is safe |
//! | `memory` | a rank's buffer while transfers are open: what may be written, local steps |
//! | `send` | sends out of the buffer |
//! | `receive` | receives into the buffer |
//! | `in_flight` | sends without an answer; messages in memory whose sender did not wait |
//! | `packed` | a message as a sequence of spans |
//! | `copy` | copying bytes |
//! | `shared` | long messages that both partners copy |
//! | `elements` | what is left of the element type where bytes are moved |
//! | `kernels` | combining element by element |
//! | `slots` | memory for messages whose senders do not wait |
//! | `scoped_job` | running a borrowed closure on the team's threads |
//! | `lazy` | shared values that are made on first use |
#![allow(unsafe_code)]

mod copy;
mod elements;
mod in_flight;
mod kernels;
mod lazy;
mod memory;
mod packed;
mod protocol;
mod receive;
mod scoped_job;
mod send;
mod shared;
mod slots;

pub(crate) use copy::fetch_lanes;
pub(crate) use elements::{Buffer, Combiner, Elements};
#[cfg(feature = "mpi")]
pub(crate) use elements::{Opaque, combine_memory};
pub(crate) use in_flight::SendSpans;
pub(crate) use kernels::combine_each;
pub(crate) use lazy::Lazy;
pub(crate) use memory::{Copying, RankMemory};
pub(crate) use packed::{RecvOp, any_overlap};
pub(crate) use protocol::{Lane, Sent, Wire};

pub(crate) use receive::{Due, Received};
pub(crate) use scoped_job::{ScopedJob, run_on_all};
pub(crate) use slots::Slots;

use super::sync;
use super::tuning::CACHE_LINE_BYTES;

// Both lanes between two ranks are on one cache line, so the line travels to the receiver with a
// message and comes back with the reply.
const _: () = assert!(2 * size_of::<Lane>() <= CACHE_LINE_BYTES);
const _: () = assert!(size_of::<protocol::SharedPieces>() == CACHE_LINE_BYTES);
const _: () = assert!(size_of::<Wire>() == 4 * CACHE_LINE_BYTES);
// What `copy_short` copies at most.
const _: () = assert!(protocol::INLINE_BYTES <= 16);
