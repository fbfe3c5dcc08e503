//! The executor among the other ranks: waiting for them, and noticing that they will never come.

use std::time::Instant;

use super::{Phase, Poll, RendezvousExecutor};
use crate::error::Error;
use crate::run::exec::carrier::Carrier;
use crate::run::exec::executor::{Peers, RankExecutor};
use crate::run::failure::{Failure, TransferAt};
use crate::run::transfer::RankMemory;
use crate::run::wait::{Precision, TeamState, nanoseconds};

impl<'r> RankExecutor<'r> for RendezvousExecutor<'r> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn run(
        &mut self,
        memory: &mut RankMemory<'_, 'r>,
        state: &TeamState,
        start: Instant,
        run: u64,
    ) -> Result<(), Failure> {
        self.start = start;
        let mut waiter = self.context.waiter(state, self.rank);
        while !self.is_done() {
            let poll = self.progress(memory, state)?;
            if poll.progressed {
                waiter.progressed();
                continue;
            }
            let until = poll.gate.map(|t| start + nanoseconds(t));
            if let Some(until) = until
                && !poll.awaits_grant
                && self.lists.iter().all(|l| l.phase == Phase::Idle)
            {
                state.pace(self.rank, until, Precision::Sleep);
                if state.is_aborted() {
                    return Err(Failure::Aborted);
                }
                waiter.progressed();
                continue;
            }
            let paused = waiter.pause(until);
            paused.map_err(|stop| waiter.failure(stop, || self.timeout_error()))?;
            waiter.spin(|| self.has_progress(memory));
            if waiter.long() && self.check_partners(memory, state, run)? {
                waiter.progressed();
            }
        }
        if self.context.paced {
            let end = start + nanoseconds(self.times.last());
            state.pace(self.rank, end, Precision::Sharp);
        }
        state.leave(self.rank, run);
        Ok(())
    }

    fn poll(&mut self, carrier: &mut impl Carrier<'r>, peers: &impl Peers) -> Result<(), Failure> {
        while self.progress(carrier, peers)?.progressed {}
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.finished == self.program.steps.len()
    }

    fn step(&self) -> usize {
        self.at
    }

    fn wants_help(&self, memory: &RankMemory<'_, 'r>) -> bool {
        (0..self.lists.len()).any(|list| memory.send_has_progress(list))
    }

    fn check_partners(
        &mut self,
        memory: &mut RankMemory<'_, 'r>,
        peers: &impl Peers,
        run: u64,
    ) -> Result<bool, Failure> {
        let open: Vec<_> = self.open_steps().collect();
        for (list, i) in open {
            let step = &self.program.steps[i];
            let Some(peer) = step.peer() else { continue };
            let left = peers.has_left(peer, run);
            // Both partners send to each other through their only ports, so neither can receive.
            let ports = self.context.ports;
            let head_on = !ports.can_exchange()
                && ports.k() == 1
                && step.is_send()
                && self.wire(i).lane(peer, self.rank).is_offered();
            if !left && !head_on {
                continue;
            }
            // The partner may have ended this transfer before it left, or before it offered its own
            // message. Having seen the latter, this rank also sees the former, so it polls once
            // more.
            let mut poll = Poll::default();
            if self.advance(list, memory, peers, &mut poll)? {
                return Ok(true);
            }
            return Err(if left {
                TransferAt::of(self.rank, i, step).partner_left().into()
            } else {
                self.head_on(i, step, peer).into()
            });
        }
        Ok(false)
    }

    fn timeout_error(&self) -> Error {
        let (_, i) = self.open_steps().next().unwrap_or((0, self.at));
        let step = &self.program.steps[i];
        TransferAt::of(self.rank, i, step).timeout(step.name())
    }
}
