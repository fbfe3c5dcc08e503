//! A multicast: a broadcast among the root and the targets.

use super::{Algorithm, Row};
use crate::error::Result;
use crate::plan::Request;
use crate::schedule::collective::Kind;
use crate::schedule::{Layout, Schedule, Spans};

/// The schedule of `broadcast` for those that take part, for the costs among these. The other ranks
/// have neither buffers nor steps, and a root that is no target has no output.
pub(super) fn multicast(request: &Request, broadcast: &'static Row) -> Result<Schedule> {
    let (p, root) = (request.ranks, request.root);
    let collective = request.performed(root);
    let mut members = collective.targets().unwrap_or_default().to_vec();
    let is_target = members.contains(&root);
    if !is_target {
        members.insert(members.partition_point(|&rank| rank < root), root);
    }
    let own_root = members.partition_point(|&rank| rank < root);
    let among = Request::new(Kind::Broadcast, members.len(), 0)
        .root(own_root)
        .segments(request.segments.clone())
        .ports(request.ports)
        .cost(request.cost.among(&members)?)
        .element_bytes(request.element_bytes);
    let schedule = Algorithm::of(broadcast).plan(&among)?;
    let mut layout = vec![Layout::default(); p];
    let mut programs = vec![Vec::new(); p];
    for (&rank, own) in members.iter().zip(schedule.layout()) {
        layout[rank] = own.clone();
    }
    if !is_target {
        layout[root].output = Spans::new();
    }
    let ports = schedule.ports();
    for (&rank, program) in members.iter().zip(schedule.into_programs()) {
        let steps = program.into_iter();
        let steps = steps.map(|step| step.with_peer(|peer| members[peer]));
        programs[rank] = steps.collect();
    }
    Schedule::new(ports, collective, layout, programs)
}
