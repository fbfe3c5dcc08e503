//! Tests of all formats: written files are read back, broken ones refused.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a test tells one story"
)]

mod chakra;
mod dot;
mod goal;
mod msccl;
mod msccl_buffered;
mod msccl_races;
mod mscclpp;
mod selection;
mod simgrid;
mod teccl;
mod tree;

use std::io::Write;
use std::path::PathBuf;

use oneport::plan::{Segments, registry};
use oneport::schedule::Schedule;
use oneport::{CostModel, Ports, Request};

/// The checkout of another tool, if the environment says where it is.
fn checkout(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        // Past the test harness, which would keep it to itself.
        let skipped = "is not set: nothing was compared with that tool";
        let _ = writeln!(std::io::stderr(), "SKIPPED: {variable} {skipped}");
    }
    path
}

/// Schedules of all registered algorithms over a grid of ranks, roots, ports and segments, each
/// with a name.
fn grid() -> Vec<(String, Schedule)> {
    let mut schedules = Vec::new();
    for algorithm in registry::all() {
        for (p, root) in [(1, 0), (2, 1), (3, 0), (5, 4), (8, 0), (9, 3), (12, 0)] {
            let others = Ports::KINDS.into_iter().filter(|ports| *ports != Ports::BI);
            let others = others.map(|ports| (ports, 2));
            for (ports, segments) in [(Ports::BI, 1), (Ports::BI, 3)].into_iter().chain(others) {
                let elements = 2 * p * segments;
                let mut request = Request::new(algorithm.collective, p, elements).ports(ports);
                if request.clone().root(root).plan(&algorithm.name()).is_ok() {
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
                let (kind, name) = (algorithm.collective.name(), algorithm.name());
                let ports = ports.name();
                schedules.push((
                    format!("{kind} {name} p={p} {ports} q={segments}"),
                    schedule.with_element_bytes(4),
                ));
            }
        }
    }
    assert!(schedules.len() > 500, "{}", schedules.len());
    schedules
}

/// No other format says in which order several ranks use a port.
#[test]
fn shared_ports_are_refused() {
    use oneport_formats::{chakra, goal, msccl, mscclpp, simgrid};

    let cost = CostModel::new(1000.0, 1.0);
    let request = Request::allreduce(4, 4);
    let plain = request.plan("recursive-doubling").unwrap();
    let nodes = [vec![0, 1], vec![2, 3]];
    let shared = plain.clone().with_node_ports(&nodes, 1, &cost).unwrap();
    let (second, network) = (1e-6, simgrid::Network::Crossbar);
    let written = |schedule: &Schedule| {
        let cost = || cost.clone();
        let simgrid_options = simgrid::SimgridOptions {
            network,
            cost: cost(),
            second,
        };
        let chakra_options = chakra::ChakraOptions {
            cost: cost(),
            second,
        };
        [
            goal::write(schedule, &goal::GoalOptions::new(cost())).map(drop),
            msccl::write(schedule, "name").map(drop),
            mscclpp::write(schedule, "name").map(drop),
            simgrid::write(schedule, &simgrid_options).map(drop),
            chakra::write(schedule, &chakra_options).map(drop),
        ]
    };
    assert!(written(&plain).iter().all(Result::is_ok));
    let formats = ["GOAL", "MSCCL", "MSCCL++", "SimGrid", "Chakra"];
    for (format, refused) in formats.iter().zip(written(&shared)) {
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!(
                "{format} has no order of the transfers of several ranks, which the shared port \"node 0 out\" states"
            )
        );
    }
}
