//! Schedules for some of a rank's ports as schedules for all of them, and the uses of ports that
//! algorithms are planned for: see `plan/space/open.rs`.

use super::PortModels;
use crate::error::Result;
use crate::machine::Ports;
use crate::schedule::{Schedule, Step};

impl PortModels {
    /// Whether algorithms are planned for these very ports.
    pub(in crate::plan) fn has(self, ports: Ports) -> bool {
        match self {
            // Where a transfer waits for more than its list, as for calls, algorithms are planned
            // as for one direction at a time.
            _ if !ports.waits_by_list() => false,
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
        let others = if !ports.waits_by_list() {
            Some(Ports::UNI.with_k(k))
        } else if !ports.can_exchange() {
            (k > 1).then(|| Ports::BI.with_k(k / 2))
        } else {
            // For algorithms for both see `one_way`.
            (self == PortModels::Uni).then(|| Ports::UNI.with_k(k))
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

/// The schedule for `ports`, of which it uses some, pairs, or one direction of each at a time.
pub(super) fn schedule_on_ports(schedule: Schedule, ports: Ports) -> Result<Schedule> {
    let (own, collective) = (schedule.ports(), schedule.collective().clone());
    if own == ports {
        return Ok(schedule);
    }
    let layout = schedule.layout().to_vec();
    let programs = schedule.into_programs().into_iter();
    let on_ports = |step| on_ports(step, own, ports);
    let programs = programs.map(|steps| steps.into_iter().map(on_ports).collect());
    Schedule::new(ports, collective, layout, programs.collect())
}

/// The step of a program for `own` ports on the port among `ports` that takes the place of its own.
pub(super) fn on_ports(step: Step, own: Ports, ports: Ports) -> Step {
    match step.port() {
        Some(port) if own.can_relay() && !ports.can_relay() => {
            let list = own.list(step.is_send(), port);
            step.on_port(list)
        }
        _ => step,
    }
}
