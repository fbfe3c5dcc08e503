//! Unidirectional ports in pairs: one port of a pair sends and the other receives, as the two of a
//! bidirectional port do.
//!
//! A schedule for `k` bidirectional ports is thus one for `2k` unidirectional ports, and takes the
//! same time: a port list becomes a port of the same number. This is how algorithms for
//! bidirectional ports are planned for several unidirectional ones, of which an odd one remains
//! idle; and, if their number is even, also those for both models whose ranks send about as much as
//! they receive. All ports are busy at once, and nobody has to receive first.

use super::{Algorithm, DynScheduleSource, Planned, PortModels};
use crate::error::Result;
use crate::machine::{CostModel, Ports};
use crate::plan::Request;
use crate::schedule::collective::Collective;
use crate::schedule::{Layout, Schedule, Step};
use crate::simulate::Timed;

impl PortModels {
    /// The bidirectional ports as which these are used, if they are used in pairs.
    pub(super) fn pairs(self, ports: Ports) -> Option<Ports> {
        let Ports::Unidirectional { k } = ports else {
            return None;
        };
        let in_pairs = match self {
            PortModels::Bi => true,
            PortModels::Both => k.is_multiple_of(2),
            PortModels::Uni | PortModels::Each => false,
        };
        (in_pairs && k >= 2).then_some(Ports::Bidirectional { k: k / 2 })
    }
}

impl Algorithm {
    /// The request for bidirectional ports, if this algorithm uses those of `request` in pairs.
    pub(in crate::plan) fn in_pairs(&self, request: &Request) -> Option<Request> {
        let ports = self.ports.pairs(request.ports)?;
        Some(request.clone().ports(ports))
    }
}

/// Programs for bidirectional ports, for pairs of unidirectional ones.
pub(super) struct InPairs {
    pub(super) planned: Planned,
    pub(super) ports: Ports,
}

impl DynScheduleSource for InPairs {
    fn collective(&self) -> Collective {
        self.planned.collective()
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn layouts(&self) -> Box<dyn Iterator<Item = Layout> + '_> {
        self.planned.layouts()
    }

    /// Every message is received through a second port.
    fn uses_several_ports(&self) -> bool {
        let timed = self.planned.timed(&CostModel::new(0.0, 0.0), 1, |_| ());
        timed.is_ok_and(|timed| timed.messages > 0)
    }

    fn timed(
        &self,
        cost: &CostModel,
        element_bytes: u64,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Timed> {
        self.planned.timed(cost, element_bytes, watch)
    }

    fn materialize(&self) -> Result<Schedule> {
        in_pairs(self.planned.store()?, self.ports)
    }
}

/// The schedule with each port list as one of these ports.
pub(super) fn in_pairs(schedule: Schedule, pairs: Ports) -> Result<Schedule> {
    let (ports, collective) = (schedule.ports(), schedule.collective().clone());
    let on_own_list = |step: &Step| {
        let list = step.port().map(|port| ports.list(step.is_send(), port));
        list.map_or_else(|| step.clone(), |list| step.clone().on_port(list))
    };
    let programs = schedule.programs().iter();
    let programs = programs.map(|steps| steps.iter().map(on_own_list).collect());
    let programs = programs.collect();
    Schedule::new(pairs, collective, schedule.layout().to_vec(), programs)
}

#[cfg(test)]
mod tests {
    use crate::plan::registry;
    use crate::{CostModel, Kind, Ports, Request};

    #[test]
    fn pairs_of_ports_take_the_time_of_bidirectional_ones() {
        let cost = CostModel::new(10.0, 1.0).gamma(0.5);
        for name in ["bruck", "circulant-blocks"] {
            let algorithm = registry::find(Kind::Allgather, name).unwrap();
            for (p, k) in [(9, 1), (16, 2), (27, 1)] {
                let request = Request::allgather(p, 12).cost(cost.clone());
                let [pairs, whole] = [
                    request.clone().ports(Ports::UNI.with_k(2 * k)),
                    request.ports(Ports::BI.with_k(k)),
                ]
                .map(|request| {
                    let planned = algorithm.planned(&request).unwrap();
                    let schedule = algorithm.plan(&request).unwrap();
                    assert!(schedule.check().is_correct());
                    let time = schedule.simulate(&cost).unwrap().makespan();
                    assert_eq!(planned.timed(&cost, 1, |_| ()).unwrap().time, time);
                    assert_eq!(planned.materialize().unwrap(), schedule);
                    time
                });
                assert_eq!(pairs, whole, "{name} p={p} k={k}");
            }
        }
    }

    #[test]
    fn an_odd_port_is_in_no_pair() {
        let request = |k| Request::allgather(9, 12).ports(Ports::UNI.with_k(k));
        assert!(request(1).plan("circulant-blocks").is_err());
        let uses_third = |name: &str| {
            let schedule = request(3).plan(name).unwrap();
            let mut steps = schedule.programs().iter().flatten();
            assert_eq!(schedule.ports(), Ports::UNI.with_k(3));
            steps.any(|step| step.port() == Some(2))
        };
        assert!(!uses_third("circulant-blocks") && uses_third("bruck"));
    }
}
