//! What all ranks share during a run, of a schedule as well as of rank programs.

use std::time::Duration;

use super::exec::Clock;
use super::operator::Operator;
use super::team::Team;
use super::wait::{TeamState, Waiter};
use crate::machine::{CostModel, Ports};

/// What all ranks share during a run.
#[derive(Debug)]
pub(crate) struct RunContext<'r, T> {
    pub(crate) operator: &'r Operator<T>,
    pub(crate) cost: &'r CostModel,
    /// Port model of the steps.
    pub(crate) ports: Ports,
    /// Ports that the ranks really have.
    pub(crate) enforced: Ports,
    /// How long a rank waits for a partner.
    pub(crate) deadline: Duration,
    pub(crate) paced: bool,
    /// Whether both partners of a transfer copy parts of a long message.
    pub(crate) share_copies: bool,
    /// Length in bytes from which on messages are copied with streaming stores.
    pub(crate) streams_from: usize,
}

impl<'r, T> RunContext<'r, T> {
    /// The context of a run on `team`, whose ranks have the ports that their steps use and buffers
    /// of `buffer_bytes` bytes together.
    pub(super) fn new(
        team: &'r Team,
        operator: &'r Operator<T>,
        cost: &'r CostModel,
        ports: Ports,
        clock: Clock,
        deadline: Duration,
        buffer_bytes: usize,
    ) -> Self {
        RunContext {
            operator,
            cost,
            ports,
            enforced: ports,
            deadline,
            paced: clock == Clock::Paced,
            share_copies: team.share_copies,
            streams_from: team.tuning.streams_from(buffer_bytes),
        }
    }

    /// How `rank` waits for its partners, of whom `state` knows.
    pub(crate) fn waiter<'s>(&self, state: &'s TeamState, rank: usize) -> Waiter<'s> {
        Waiter::new(state, rank, self.deadline, self.paced)
    }
}
