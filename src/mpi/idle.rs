//! How a process waits: it polls, and gives up its core between polls where others need it.

use std::time::{Duration, Instant};

/// Idle polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 64;

/// Idle polls after which a process gives up its core once, although it has one of its own.
const POLLS_PER_YIELD: u32 = 4096;

/// A wait that may end by a deadline.
#[derive(Debug)]
pub(super) struct Idle {
    polls: u32,
    since: Option<Instant>,
    polls_per_yield: u32,
    deadline: Duration,
}

impl Idle {
    /// Waits of at most `deadline` each, where processes outnumber cores if `oversubscribed`.
    pub(super) fn new(oversubscribed: bool, deadline: Duration) -> Idle {
        Idle {
            polls: 0,
            since: None,
            polls_per_yield: if oversubscribed { 1 } else { POLLS_PER_YIELD },
            deadline,
        }
    }

    /// Something has happened: the next wait starts.
    #[inline]
    pub(super) fn ends(&mut self) {
        (self.polls, self.since) = (0, None);
    }

    /// To be called after each poll at which nothing has happened. True if the deadline has passed.
    #[inline]
    pub(super) fn has_lasted(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(self.polls_per_yield) {
            std::thread::yield_now();
        }
        if !self.polls.is_multiple_of(POLLS_PER_LOOK) {
            return false;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        since.elapsed() > self.deadline
    }
}
