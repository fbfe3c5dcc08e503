//! The MPI library of the user's cluster, loaded at run time: the one module that calls it.
//!
//! All other modules pass spans and slices. An error is what the library says; a deadline that
//! passes ends all processes.
//!
//! # Why it is sound
//!
//! - Signatures and constants are those of the MPI standard and of the three binary interfaces that
//!   libraries have; the library itself says which one it has. Handles are words: see `functions`.
//! - One thread calls the library (`MPI_THREAD_FUNNELED`): a [`Communicator`] and what holds it
//!   stay on the thread that made them. The exception is `MPI_Abort`, after which the process ends.
//! - A span that was given to an open request is not touched before the request ends. The rules of
//!   time demand that of every executor: a step waits for all earlier steps that access its spans.
//!   The buffer outlives the requests, because [`Messages`] ends the process if it is dropped
//!   before they have ended.
//!
//! | file | content |
//! |---|---|
//! | `abi` | the constants of the three binary interfaces |
//! | `functions` | the functions that are called |
//! | `library` | finding and opening the library |
//! | `communicator` | groups of processes, and what they do together |
//! | `collective` | the library's own collectives, to compare with |
//! | `blocking` | its functions that send or receive one message, to compare with |
//! | `messages` | the transfers of one rank |
//! | `program` | the transfers of a rank program, whose messages carry the model clock |
//! | `scratch` | memory of messages |
#![allow(unsafe_code)]

mod abi;
mod blocking;
mod collective;
mod communicator;
mod functions;
mod library;
mod messages;
mod program;
mod scratch;

#[cfg(not(all(unix, target_pointer_width = "64", target_endian = "little")))]
compile_error!("the feature `mpi` needs a 64-bit little-endian Unix: handles are passed as words");

pub use abi::{Datatype, Intracommunicator};
pub(crate) use collective::OwnCollective;
pub(crate) use communicator::Communicator;
pub(crate) use library::Mpi;
pub(crate) use messages::{End, Messages, Requests};
pub(crate) use program::ProgramMessages;
