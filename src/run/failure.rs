//! How a rank fails: the errors of steps, for all executors and for endpoints.

use crate::error::{Error, ErrorKind};
use crate::schedule::Step;

/// Why a rank stopped early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Its own error.
    Own(Error),
    /// Another rank's.
    Aborted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Own(error)
    }
}

/// A transfer as errors name it, seen from one of its two ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferAt {
    pub(crate) rank: usize,
    pub(crate) step: usize,
    pub(crate) peer: usize,
    pub(crate) port: usize,
}

impl TransferAt {
    /// The transfer of `step`, which is step `i` of `rank`.
    pub(crate) fn of(rank: usize, i: usize, step: &Step) -> Self {
        TransferAt {
            rank,
            step: i,
            peer: step.peer().unwrap_or(rank),
            port: step.port().unwrap_or(0),
        }
    }

    /// The rank's deadline has passed in this step, a `what`.
    #[cold]
    pub(crate) fn timeout(self, what: &'static str) -> Error {
        ErrorKind::Deadline {
            rank: self.rank,
            step: self.step,
            peer: self.peer,
            port: self.port,
            what,
            chain: String::new(),
        }
        .into()
    }

    /// The partner has finished its program without this transfer.
    #[cold]
    pub(crate) fn partner_left(self) -> Error {
        ErrorKind::PartnerLeft {
            rank: self.rank,
            step: self.step,
            peer: self.peer,
            port: self.port,
        }
        .into()
    }

    /// The partner's message has `found` elements instead of `expected`.
    #[cold]
    pub(crate) fn wrong_length(self, expected: usize, found: usize) -> Error {
        ErrorKind::Length {
            rank: self.rank,
            step: self.step,
            peer: self.peer,
            port: self.port,
            expected,
            found,
        }
        .into()
    }
}

/// Step `step` of `rank` needs a port that is in use or that the rank does not have.
#[cold]
pub(crate) fn port_busy(rank: usize, port: usize, step: usize) -> Error {
    ErrorKind::PortBusy { rank, port, step }.into()
}

/// Step `step` of `rank` panicked.
#[cold]
pub(crate) fn panicked(rank: usize, step: usize, message: String) -> Error {
    ErrorKind::Panicked {
        rank,
        step,
        message,
    }
    .into()
}

/// The message of a panic, if it has one.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}
