//! What all executors of one rank's program can do, and how they reach the other ranks.

use std::time::Instant;

use super::carrier::Carrier;
use crate::error::Error;
use crate::run::failure::Failure;
use crate::run::transfer::RankMemory;
use crate::run::wait::TeamState;

/// How a rank's executor reaches the other ranks.
pub(crate) trait Peers {
    /// Tells `rank` that polling may make progress.
    fn wake(&self, rank: usize);

    /// Whether `rank` has finished run `run`.
    fn has_left(&self, rank: usize, run: u64) -> bool;
}

impl Peers for TeamState {
    #[inline]
    fn wake(&self, rank: usize) {
        TeamState::wake(self, rank);
    }

    fn has_left(&self, rank: usize, run: u64) -> bool {
        TeamState::has_left(self, rank, run)
    }
}

/// A rank's program during a run: executors differ in what their transfers wait for.
pub(crate) trait RankExecutor<'r> {
    fn rank(&self) -> usize;

    /// Runs the program on a thread of its own, from its beginning, among the ranks of a team.
    /// `start` is model time 0 of a paced clock; `run` numbers the repetitions of the team's life.
    fn run(
        &mut self,
        memory: &mut RankMemory<'_, 'r>,
        state: &TeamState,
        start: Instant,
        run: u64,
    ) -> Result<(), Failure>;

    /// Makes as much progress as possible.
    fn poll(&mut self, carrier: &mut impl Carrier<'r>, peers: &impl Peers) -> Result<(), Failure>;

    fn is_done(&self) -> bool;

    /// The step being performed, for errors.
    fn step(&self) -> usize;

    /// Whether a receiver asks this rank to copy a part of its message.
    fn wants_help(&self, memory: &RankMemory<'_, 'r>) -> bool;

    /// Checks for partners that will never come: they have left, or they need the port that this
    /// rank holds. True if a transfer made progress meanwhile.
    fn check_partners(
        &mut self,
        memory: &mut RankMemory<'_, 'r>,
        peers: &impl Peers,
        run: u64,
    ) -> Result<bool, Failure>;

    /// The error of a rank whose deadline has passed.
    fn timeout_error(&self) -> Error;
}
