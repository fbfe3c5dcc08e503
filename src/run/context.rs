//! What all ranks share during a run, of a schedule as well as of rank programs.

use std::ops::Range;
use std::time::Duration;

use super::exec::Clock;
use super::transfer::{Combiner, Copying};
use super::tuning::MAX_MODEL_WAIT;
use super::wait::{TeamState, Waiter, nanoseconds};
use crate::error::{Error, Result};
use crate::machine::{CostModel, Eager, Ports};

/// What all ranks share during a run.
#[derive(Debug)]
pub(crate) struct RunContext<'r> {
    pub(crate) combiner: Combiner<'r>,
    pub(crate) cost: &'r CostModel,
    /// Bytes of an element in the cost model; in memory it has those of the combiner.
    pub(crate) element_bytes: u64,
    /// Port model of the steps.
    pub(crate) ports: Ports,
    /// Ports that the ranks really have.
    pub(crate) enforced: Ports,
    /// How long a rank waits for a partner.
    pub(crate) deadline: Duration,
    pub(crate) paced: bool,
    pub(crate) copying: Copying,
}

/// Whether both partners can copy parts of a message: each of `ranks` ranks has one of the `cores`.
pub(crate) fn both_copy(ranks: usize, cores: usize) -> bool {
    ranks <= cores
}

#[cfg(feature = "mpi")]
impl Copying {
    /// One partner copies all messages, through the caches.
    pub(crate) const PLAIN: Copying = Copying {
        shared: false,
        streams_from: usize::MAX,
    };
}

/// Refuses eager sends of rank programs under the paced clock, where their senders wait for their
/// receivers.
pub(crate) fn clock_fits(clock: Clock, cost: &CostModel) -> Result<()> {
    match (clock, cost.sends_eagerly()) {
        (Clock::Native, _) | (_, Eager::None) => Ok(()),
        _ => Err(Error::usage(
            "under the paced clock the senders of rank programs wait for their receivers: leave eager sends out",
        )),
    }
}

/// Refuses a repetition that would wait until `time` of the cost model, which `what` names, if that
/// is longer than anybody waits.
pub(crate) fn ensure_ends(what: &str, time: f64) -> Result<()> {
    if time <= MAX_MODEL_WAIT.as_nanos() as f64 {
        return Ok(());
    }
    let hours = MAX_MODEL_WAIT.as_secs() / 3600;
    Err(Error::usage(format!(
        "{what} {time:e} ns after the start, more than the {hours} hours that a run waits"
    )))
}

impl<'r> RunContext<'r> {
    /// The context of a run whose ranks have the ports that their steps use, and whose elements
    /// cost what they have in memory.
    pub(crate) fn new(
        combiner: Combiner<'r>,
        cost: &'r CostModel,
        ports: Ports,
        clock: Clock,
        deadline: Duration,
        copying: Copying,
    ) -> Self {
        RunContext {
            element_bytes: combiner.elements.bytes as u64,
            combiner,
            cost,
            ports,
            enforced: ports,
            deadline,
            paced: clock == Clock::Paced,
            copying,
        }
    }

    /// How long after the common start the thread or process of `own` enters a repetition, if that
    /// start is to be a point of time. Ranks that keep the pace of the model enter at once.
    pub(crate) fn late(&self, own: Range<usize>) -> Option<Duration> {
        if self.paced || self.cost.last_arrival() <= 0.0 {
            return self.paced.then_some(Duration::ZERO);
        }
        let arrivals = own.map(|rank| self.cost.arrival(rank));
        Some(nanoseconds(arrivals.fold(0.0, f64::max)))
    }

    /// How `rank` waits for its partners, of whom `state` knows.
    pub(crate) fn waiter<'s>(&self, state: &'s TeamState, rank: usize) -> Waiter<'s> {
        Waiter::new(state, rank, self.deadline, self.paced)
    }
}
