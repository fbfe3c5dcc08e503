//! Schedules for some of a rank's ports as schedules for all of them, and the uses of ports that
//! algorithms are planned for: see `plan/space/space.rs`.

use super::{DynScheduleSource, Planned, PortModels};
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Step};
use crate::simulate::bounds::LowerBounds;
use crate::simulate::{self, Timed};

impl PortModels {
    /// Whether algorithms are planned for these very ports.
    pub(in crate::plan) fn has(self, ports: Ports) -> bool {
        match self {
            // For calls algorithms are planned as for one direction at a time.
            _ if ports.has_calls() => false,
            PortModels::Uni => !ports.can_relay(),
            PortModels::Bi => ports.can_relay(),
            PortModels::Both | PortModels::Each => true,
        }
    }

    /// Whether there is a use of `ports`.
    pub(in crate::plan) fn can_use(self, ports: Ports) -> bool {
        self.uses(ports).next().is_some()
    }

    /// The preferred use of `ports`; themselves if there is none.
    pub(in crate::plan) fn preferred(self, ports: Ports) -> Ports {
        self.uses(ports).next().unwrap_or(ports)
    }

    /// The uses of `ports` as they are, in pairs, and for one direction at a time, the preferred
    /// one first.
    pub(in crate::plan) fn uses(self, ports: Ports) -> impl Iterator<Item = Ports> {
        let k = ports.k();
        let others = if !ports.can_exchange() {
            (k > 1).then(|| Ports::BI.with_k(k / 2))
        } else {
            // For algorithms for both see `one_way`.
            (ports.has_calls() || self == PortModels::Uni).then(|| Ports::UNI.with_k(k))
        };
        // An odd port is in no pair.
        let prefers_pairs = self == PortModels::Both && k.is_multiple_of(2);
        let uses = if prefers_pairs {
            [others, Some(ports)]
        } else {
            [Some(ports), others]
        };
        let uses = uses.into_iter().flatten();
        uses.filter(move |&used| self.has(used))
    }
}

/// Programs for some of the ports, for pairs of them, or for one direction of each at a time.
pub(in crate::plan) struct OnPorts {
    pub(in crate::plan) planned: Planned,
    pub(in crate::plan) ports: Ports,
}

impl DynScheduleSource for OnPorts {
    fn collective(&self) -> Collective {
        self.planned.collective()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        self.planned.layouts()
    }

    fn any_transfer(&self, holds: &dyn Fn(bool, usize) -> bool) -> bool {
        let own = self.planned.ports();
        let holds = |sends, port| holds(sends, number(self.ports, own, sends, port));
        self.planned.programs().any_transfer(&holds)
    }

    fn timed_within(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        limit: f64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Timed>> {
        let own = self.planned.ports();
        if self.ports.can_exchange() && !own.can_exchange() {
            // Both directions of a port run at once where the programs let them.
            let schedule = self.materialize()?;
            return simulate::stream_within(&schedule, cost, element_bytes, limit, watch);
        }
        self.planned.timed_within(cost, limit, watch)
    }

    fn lower_bound(&self, ports: Ports, cost: &CostModel, element_bytes: u64) -> LowerBounds {
        self.planned
            .programs()
            .lower_bound(ports, cost, element_bytes)
    }

    fn materialize(&self) -> Result<Schedule> {
        on_ports(self.planned.store()?, self.ports)
    }
}

/// The schedule with its ports as some of these, or with a pair of these for each of its ports.
fn on_ports(schedule: Schedule, ports: Ports) -> Result<Schedule> {
    let (own, collective) = (schedule.ports(), schedule.collective().clone());
    let layout = schedule.layout().to_vec();
    let on_port = |step: Step| {
        let port = number(ports, own, step.is_send(), step.port().unwrap_or(0));
        step.on_port(port)
    };
    let programs = schedule.into_programs().into_iter();
    let programs = programs.map(|steps| steps.into_iter().map(on_port).collect());
    Schedule::new(ports, collective, layout, programs.collect())
}

/// The port among `ports` that takes the place of number `port` of a schedule's `own` ones.
fn number(ports: Ports, own: Ports, sends: bool, port: usize) -> usize {
    if own.can_relay() && !ports.can_relay() {
        own.list(sends, port)
    } else {
        port
    }
}
