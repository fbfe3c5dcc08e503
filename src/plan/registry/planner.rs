//! How an algorithm is planned, and the result: a stored schedule, or programs that are streamed.

use super::composition::Composition;
use super::{DynScheduleSource, Reduction, Row};
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule};
use crate::simulate::Timed;
use crate::simulate::bounds::LowerBounds;

#[derive(Debug, Clone, Copy)]
pub(in crate::plan) enum Planner {
    /// The function plans the schedule itself.
    Direct(fn(&Request) -> Result<Schedule>),
    /// The schedule is the reversal of the function's schedule for gamma = 0.
    ReverseOf(fn(&Request) -> Result<Schedule>),
    /// The function returns programs that are streamed. They can be stored, or timed without
    /// storing them.
    Streamed(fn(&Request) -> Result<Box<dyn DynScheduleSource>>),
    /// The function plans a reduction. Its transfers are stored compactly, and not as steps if only
    /// times are needed.
    Reduction(fn(&Request) -> Reduction),
    /// A broadcast: the reversal of the function's reduction for gamma = 0.
    BroadcastOf(fn(&Request) -> Reduction),
    /// An allreduce: the first function's reduction, followed by the reversal of the second one's
    /// reduction for gamma = 0.
    AllreduceOf([fn(&Request) -> Reduction; 2]),
    /// A multicast: the broadcast of this row among the root and the targets.
    MulticastBy(&'static Row),
    /// Phases within nodes and between them, each by an algorithm of its own.
    Composed(Composition),
}

/// The result of planning a request: see [`Algorithm::planned`](super::Algorithm::planned).
#[allow(missing_debug_implementations, reason = "may be any programs")]
pub enum Planned {
    /// A stored schedule.
    Stored(Schedule),
    /// Programs that need not be stored.
    Streamed {
        /// The programs.
        programs: Box<dyn DynScheduleSource>,
        /// As [`Schedule::element_bytes`].
        element_bytes: u64,
    },
}

impl Planned {
    /// The collective that it performs.
    pub fn collective(&self) -> Collective {
        self.programs().collective()
    }

    /// The port model.
    pub fn ports(&self) -> Ports {
        self.programs().ports()
    }

    /// The buffers of all ranks, in rank order; lengths in elements.
    pub fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        self.programs().layouts()
    }

    /// Whether a step uses a port other than the first of its kind. Takes at most time linear in
    /// the number of steps.
    pub fn uses_several_ports(&self) -> bool {
        self.ports().k() > 1 && self.programs().any_transfer(&|_, port| port > 0)
    }

    /// Times it under `cost`, as [`simulate::stream`](crate::simulate::stream), with its errors.
    pub fn timed(&self, cost: &CostModel, mut watch: impl FnMut(u64)) -> Result<Timed> {
        let timed = self.timed_within(cost, f64::INFINITY, &mut watch)?;
        Ok(timed.expect("no time is larger than infinity"))
    }

    /// As [`timed`](Self::timed); `None` as soon as the time turns out to be larger than `limit`.
    pub(in crate::plan) fn timed_within(
        &self,
        cost: &CostModel,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>> {
        self.programs()
            .timed_within(cost, self.element_bytes(), limit, watch)
    }

    /// Lower bounds of its time under `cost`: see [`Schedule::lower_bound`].
    #[doc(hidden)]
    pub fn lower_bound(&self, cost: &CostModel) -> LowerBounds {
        let programs = self.programs();
        programs.lower_bound(programs.ports(), cost, self.element_bytes())
    }

    fn element_bytes(&self) -> u64 {
        match self {
            Planned::Stored(schedule) => schedule.element_bytes(),
            Planned::Streamed { element_bytes, .. } => *element_bytes,
        }
    }

    /// Stores it as a schedule, in time and memory linear in the number of steps and spans.
    pub fn materialize(self) -> Result<Schedule> {
        match self {
            Planned::Stored(schedule) => Ok(schedule),
            Planned::Streamed {
                programs,
                element_bytes,
            } => Ok(programs.materialize()?.with_element_bytes(element_bytes)),
        }
    }

    /// As [`materialize`](Self::materialize), of a copy.
    pub(super) fn store(&self) -> Result<Schedule> {
        self.programs().materialize()
    }

    pub(super) fn programs(&self) -> &dyn DynScheduleSource {
        match self {
            Planned::Stored(schedule) => schedule,
            Planned::Streamed { programs, .. } => programs.as_ref(),
        }
    }
}
