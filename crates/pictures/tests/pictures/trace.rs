//! Tests of traces: they agree with the simulator.

use oneport::plan::{Request, registry};
use oneport::schedule::collective::Kind;
use oneport::{CostModel, Ports, Schedule, Span};
use oneport_pictures::{Trace, Unit, What};

fn planned(kind: Kind, name: &str, p: usize, q: usize, ports: Ports) -> Schedule {
    let request = Request::new(kind, p, q).segment_count(q).ports(ports);
    request.plan(name).unwrap()
}

#[test]
fn model_trace_agrees_with_the_simulator() {
    let cost = CostModel::new(1.0, 1.0).gamma(1.0);
    for algorithm in registry::all() {
        for p in [1, 2, 5, 8] {
            let request = Request::new(algorithm.collective, p, 12)
                .segment_count(3)
                .cost(cost.clone());
            let Ok(schedule) = algorithm.plan(&request) else {
                continue;
            };
            let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
            let simulation = schedule.simulate(&cost).unwrap();
            assert_eq!(trace.end(), simulation.makespan(), "{}", algorithm.name());
            let mut busy = vec![vec![0.0; schedule.ports().lists()]; p];
            for a in &trace.activities {
                if let Some(list) = trace.list(a) {
                    busy[a.rank][list] += a.time();
                }
            }
            assert_eq!(
                busy,
                simulation.port_busy(&schedule),
                "{}",
                algorithm.name()
            );
            let computing = schedule.programs().iter().flatten();
            let parts = computing
                .map(|s| usize::from(s.peer().is_some()) + usize::from(s.computes()))
                .sum::<usize>();
            assert_eq!(trace.activities.len(), parts);
            assert!(trace.compute_lanes().1 <= 1);
        }
    }
}

#[test]
fn both_ends_of_a_transfer_show_one_segment() {
    let schedule = planned(Kind::Reduce, "chain", 4, 5, Ports::UNI);
    let trace = Trace::model(&schedule, &CostModel::new(1.0, 1.0), Unit::Plain).unwrap();
    assert_eq!(trace.segments.len(), 5);
    for a in trace.activities.iter().filter(|a| a.what == What::Send) {
        let b = trace.activities.iter().find(|b| {
            b.what == What::Receive
                && (Some(b.rank), b.peer) == (a.peer, Some(a.rank))
                && b.segment == a.segment
        });
        let b = b.expect("a receive");
        assert_eq!((a.start, a.end, a.bytes), (b.start, b.end, b.bytes));
    }
}

#[test]
fn overlapping_computations_get_lanes_of_their_own() {
    let schedule = planned(Kind::Reduce, "chain", 3, 3, Ports::BI);
    let cost = CostModel::new(1.0, 0.0).gamma(3.0).overlap(true);
    let trace = Trace::model(&schedule, &cost, Unit::Plain).unwrap();
    let (lanes, max_lanes) = trace.compute_lanes();
    assert!(max_lanes > 1);
    let all: Vec<_> = trace.activities.iter().zip(lanes).collect();
    for (i, (a, lane)) in all.iter().enumerate() {
        assert_eq!(lane.is_some(), a.what == What::Combine);
        for (b, other) in &all[..i] {
            let same = a.rank == b.rank && lane.is_some() && lane == other;
            assert!(!same || a.end <= b.start || b.end <= a.start);
        }
    }
}

#[test]
fn a_wall_trace_starts_transfers_when_both_ends_are_open() {
    let mut b = Schedule::builder(2, Ports::BI, oneport::Collective::Broadcast { root: 0 });
    let span = Span::new(0, 4);
    b.layout(0, 4, [span], Some(span));
    b.layout(1, 4, None, Some(span));
    b.transfer(0, 1, span);
    let schedule = b.build().unwrap().with_element_bytes(8);
    let step_times = [vec![(10, 160)], vec![(90, 150)]];
    let trace = Trace::wall(&schedule, &step_times).unwrap();
    let times: Vec<_> = trace
        .activities
        .iter()
        .map(|a| (a.what, a.start, a.end, a.bytes))
        .collect();
    assert_eq!(
        times,
        [
            (What::Send, 90.0, 160.0, 32),
            (What::Receive, 90.0, 150.0, 32)
        ]
    );
}
