//! How an algorithm is planned, and the result: a stored schedule, or programs that are streamed.

use super::composition::Composition;
use super::ports::{on_ports, schedule_on_ports};
use super::{Reduction, Row};
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{DynScheduleSource, Layout, Schedule, Step};
use crate::simulate::bounds::{LowerBounds, lower_bound_of_programs};
use crate::simulate::{self, Timed};

/// How an algorithm is planned.
///
/// Some planners take times themselves:
/// - `Composed`, and the rows `composed` and `gossip`, search for their parts among algorithms
///   ([`best_first`](crate::plan::space::best_first)), and for the segments of parts that are
///   named;
/// - a multicast takes the fastest use of ports of its broadcast;
/// - the allreduces of split-binary and out-of-order compare broadcasts;
/// - planners of gathers and scatters take the fastest of several trees (`GatherProblem::fastest`),
///   and plan twice where copies overlap communication.
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
        /// The port model. The programs may be for another one: for some of these ports, for pairs
        /// of them, or for one direction of each at a time.
        ports: Ports,
    },
}

impl Planned {
    /// The collective that it performs.
    pub fn collective(&self) -> Collective {
        self.programs().collective()
    }

    /// The port model.
    pub fn ports(&self) -> Ports {
        match self {
            Planned::Stored(schedule) => schedule.ports(),
            Planned::Streamed { ports, .. } => *ports,
        }
    }

    /// The buffers of all ranks, in rank order; lengths in elements.
    pub fn layouts(&self) -> impl Iterator<Item = Layout> {
        let programs = self.programs();
        (0..programs.ranks()).map(|rank| programs.layout_of(rank))
    }

    /// Whether a step uses a port other than the first of its kind. Takes at most time linear in
    /// the number of steps.
    pub fn uses_several_ports(&self) -> bool {
        let (ports, programs) = (self.ports(), self.programs());
        let own = programs.ports();
        let is_other =
            |step: Step| step.port().is_some() && on_ports(step, own, ports).port() > Some(0);
        ports.k() > 1 && (0..programs.ranks()).any(|rank| programs.program_of(rank).any(is_other))
    }

    /// Times it under `cost`, as [`simulate::stream`], with its errors.
    pub fn timed(&self, cost: &CostModel, mut watch: impl FnMut(u64)) -> Result<Timed> {
        let timed = self.timed_within(cost, f64::INFINITY, &mut watch)?;
        Ok(timed.expect("no time is larger than infinity"))
    }

    /// As [`timed`](Self::timed); `None` if the time is larger than `limit`, mostly as soon as that
    /// turns out.
    pub(in crate::plan) fn timed_within(
        &self,
        cost: &CostModel,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>> {
        let (programs, bytes) = (self.programs(), self.element_bytes());
        if !self.ports().times_as(programs.ports()) {
            // As both directions of a port run at once where the programs let them.
            let schedule = self.store()?;
            return simulate::stream_within(&schedule, cost, bytes, limit, watch);
        }
        simulate::stream_within(programs, cost, bytes, limit, watch)
    }

    /// Lower bounds of its time under `cost`: see [`Schedule::lower_bound`].
    #[doc(hidden)]
    pub fn lower_bound(&self, cost: &CostModel) -> LowerBounds {
        lower_bound_of_programs(self.programs(), self.ports(), cost, self.element_bytes())
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
            Planned::Streamed { .. } => self.store(),
        }
    }

    fn store(&self) -> Result<Schedule> {
        let schedule = self.programs().materialize()?;
        let schedule = schedule_on_ports(schedule, self.ports())?;
        Ok(schedule.with_element_bytes(self.element_bytes()))
    }

    fn programs(&self) -> &dyn DynScheduleSource {
        match self {
            Planned::Stored(schedule) => schedule,
            Planned::Streamed { programs, .. } => programs.as_ref(),
        }
    }

    /// The same on these ports, of which it uses some, pairs, or one direction at a time.
    pub(in crate::plan) fn on_ports(self, ports: Ports) -> Result<Planned> {
        match self {
            Planned::Stored(schedule) => {
                let element_bytes = schedule.element_bytes();
                let schedule = schedule_on_ports(schedule, ports)?;
                Ok(Planned::Stored(schedule.with_element_bytes(element_bytes)))
            }
            Planned::Streamed {
                programs,
                element_bytes,
                ..
            } => Ok(Planned::Streamed {
                programs,
                element_bytes,
                ports,
            }),
        }
    }
}
