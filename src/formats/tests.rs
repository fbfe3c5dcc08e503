//! What the tests of several formats share.

use crate::plan::{Segments, registry};
use crate::schedule::Schedule;
use crate::{Ports, Request};

/// Schedules of all registered algorithms over a grid of ranks, roots, ports and segments, each
/// with a name.
pub(super) fn grid() -> Vec<(String, Schedule)> {
    let mut schedules = Vec::new();
    for algorithm in registry::all() {
        for (p, root) in [(1, 0), (2, 1), (3, 0), (5, 4), (8, 0), (9, 3), (12, 0)] {
            for (ports, segments) in [(Ports::BI, 1), (Ports::BI, 3), (Ports::UNI, 2)] {
                let elements = 2 * p * segments;
                let mut request = Request::new(algorithm.collective, p, elements).ports(ports);
                if request.clone().root(root).plan(algorithm.name).is_ok() {
                    request = request.root(root);
                }
                if algorithm.segmented {
                    let segments = Segments::of_size(elements, elements.div_ceil(segments));
                    request = request.segments(segments.unwrap());
                } else if segments > 1 && ports == Ports::BI {
                    continue;
                }
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let Ok(schedule) = algorithm.plan(&request) else {
                    continue;
                };
                let (kind, name) = (algorithm.collective.name(), algorithm.name);
                let ports = ports.name();
                schedules.push((
                    format!("{kind} {name} p={p} {ports} q={segments}"),
                    schedule,
                ));
            }
        }
    }
    assert!(schedules.len() > 500, "{}", schedules.len());
    schedules
}
