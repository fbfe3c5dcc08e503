//! How one rank waits for others: it spins, yields its core, sleeps.

use std::time::{Duration, Instant};

use super::state::TeamState;
use crate::error::Error;
use crate::run::failure::Failure;
use crate::run::tuning::{
    NAP_ALONE, NAP_OVERSUBSCRIBED, PACED_YIELDS, POLLS_PER_CHECK, SPINS, SPINS_PER_POLL, yields,
};

/// Why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another rank failed.
    Aborted,
    /// The deadline passed.
    Deadline,
}

/// How one rank waits: the longer it has waited, the more of its core it gives up.
///
/// 1. Spin, if ranks do not outnumber cores: the partner is running on another core.
/// 2. Yield, at once if ranks outnumber cores: the partner may need this core.
/// 3. Sleep, after some hundred yields without progress, so that an idle team does not load the
///    machine; or at once where another process keeps the core busy
///    ([`Contention`](super::contention::Contention)).
#[derive(Debug)]
pub(crate) struct Waiter<'c> {
    state: &'c TeamState,
    pub(super) rank: usize,
    spins: u32,
    yields: u32,
    deadline: Duration,
    polls: u32,
    since: Option<Instant>,
    prepared: bool,
}

impl<'c> Waiter<'c> {
    pub(crate) fn new(state: &'c TeamState, rank: usize, deadline: Duration, paced: bool) -> Self {
        let oversubscribed = state.oversubscribed;
        Waiter {
            state,
            rank,
            spins: if oversubscribed || paced { 0 } else { SPINS },
            yields: if paced {
                PACED_YIELDS
            } else {
                yields(state.rank_states.len())
            },
            deadline,
            polls: 0,
            since: None,
            prepared: false,
        }
    }

    /// To be called after progress: the next wait starts from the beginning.
    #[inline]
    pub(crate) fn progressed(&mut self) {
        if self.polls != 0 {
            self.polls = 0;
            self.since = None;
            if self.prepared {
                self.prepared = false;
                self.state.rank_states[self.rank].parker.cancel();
            }
        }
    }

    /// Waits a little, at most until `until`. The caller polls again after each call.
    #[inline]
    pub(crate) fn pause(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        self.polls += 1;
        if self.polls <= self.spins {
            std::hint::spin_loop();
            return if self.state.is_aborted() {
                Err(Stop::Aborted)
            } else {
                Ok(())
            };
        }
        self.pause_longer(until)
    }

    /// Spins briefly, if this is the stage for it, until `has_progress` says that polling would
    /// make progress.
    #[inline]
    pub(crate) fn spin(&mut self, has_progress: impl Fn() -> bool) {
        if self.polls < self.spins {
            for _ in 0..SPINS_PER_POLL {
                if has_progress() {
                    break;
                }
                self.polls += 1;
                std::hint::spin_loop();
            }
        }
    }

    /// The failure of a wait that ended early. `error` is that of a deadline: where another rank
    /// failed, it says what this one waited for, if it had waited for long.
    #[cold]
    pub(crate) fn failure(&self, stop: Stop, error: impl FnOnce() -> Error) -> Failure {
        match stop {
            Stop::Deadline => return Failure::Own(error()),
            Stop::Aborted if self.since.is_some() => self.state.waited(error()),
            Stop::Aborted => {}
        }
        Failure::Aborted
    }

    /// Whether it is time to check for rarer causes of waiting, such as a partner that has left.
    #[inline]
    pub(crate) fn long(&self) -> bool {
        self.polls > self.spins && (self.polls.is_multiple_of(POLLS_PER_CHECK) || self.prepared)
    }

    #[cold]
    fn pause_longer(&mut self, until: Option<Instant>) -> Result<(), Stop> {
        if self.state.is_aborted() {
            return Err(Stop::Aborted);
        }
        if self.polls <= self.spins + self.yields && self.state.try_yield(self.rank) {
            return Ok(());
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        // `None` is a deadline beyond the range of `Instant`, which never passes.
        let last = since.checked_add(self.deadline);
        if last.is_some_and(|last| now >= last) {
            let paced_until = self.state.pace.until();
            if paced_until <= since {
                return Err(Stop::Deadline);
            }
            // Other ranks slept to keep their pace: count the deadline anew from the end of their
            // sleep.
            self.since = Some(paced_until);
            return Ok(());
        }
        let parker = &self.state.rank_states[self.rank].parker;
        if !self.prepared {
            // The caller polls once more before the next call sleeps.
            self.prepared = true;
            parker.prepare();
            return Ok(());
        }
        let nap = if self.state.oversubscribed {
            NAP_OVERSUBSCRIBED
        } else {
            NAP_ALONE
        };
        let wake_at = [last, until]
            .into_iter()
            .flatten()
            .fold(now + nap, Instant::min);
        self.state.before_sleep(self.rank);
        parker.sleep(wake_at, || self.state.is_aborted());
        self.prepared = false;
        Ok(())
    }
}
