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

/// A deadline with what its partner waited for, and so on, of what others waited for when it
/// passed; other errors as they are.
pub(super) fn with_chain(error: Error, waits: &[Error]) -> Error {
    /// Longer chains are shown by their ends.
    const MAX_LINKS: usize = 8;
    let wait = |error: &Error| match *error.kind() {
        ErrorKind::Deadline {
            rank,
            step,
            peer,
            port,
            what,
            ..
        } => Some((
            TransferAt {
                rank,
                step,
                peer,
                port,
            },
            what,
        )),
        _ => None,
    };
    let Some((first, what)) = wait(&error) else {
        return error;
    };
    let of = |rank: usize| {
        waits
            .iter()
            .filter_map(wait)
            .find(|(at, _)| at.rank == rank)
    };
    let (mut seen, mut rank, mut links) = (vec![first.rank], first.peer, Vec::new());
    let end = loop {
        if seen.contains(&rank) {
            break ": a cycle".to_string();
        }
        seen.push(rank);
        match of(rank) {
            Some((at, "barrier")) => {
                break format!("; rank {rank}, step {} is at a barrier", at.step);
            }
            Some((TransferAt { step, peer, .. }, what)) => {
                links.push(format!(
                    "; rank {rank}, step {step} for rank {peer} ({what})"
                ));
                rank = peer;
            }
            None if waits.is_empty() => break String::new(),
            None => break format!("; rank {rank} waits for no other"),
        }
    };
    if links.len() > MAX_LINKS {
        let middle = MAX_LINKS / 2..links.len() - MAX_LINKS / 2;
        links.splice(middle, ["; ..".to_string()]);
    }
    let TransferAt {
        rank,
        step,
        peer,
        port,
    } = first;
    let chain = links.concat() + &end;
    ErrorKind::Deadline {
        rank,
        step,
        peer,
        port,
        what,
        chain,
    }
    .into()
}
