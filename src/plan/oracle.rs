//! A naive oracle for the planners' tests: moves contributions through a schedule and looks at what every rank ends with.

use std::collections::{HashMap, VecDeque};

use super::registry;
use super::{Request, Segments};
use crate::collective::Kind;
use crate::cost::{CostModel, Ports};
use crate::schedule::{Order, Schedule, Span, Spans, Step};
use crate::simulate::Prepared;

/// One element: the ranks that contributed to it, in the order in which they were combined.
type Element = Vec<usize>;

/// Runs `schedule` on symbols; every rank's buffer at the end. Messages are buffered: rule 2 makes that the same.
fn contributions(schedule: &Schedule) -> Vec<Vec<Element>> {
    let mut buffers: Vec<Vec<Element>> = Vec::new();
    for (rank, layout) in schedule.layout().iter().enumerate() {
        let mut buffer = vec![Vec::new(); layout.len];
        for i in indices(&layout.input) {
            buffer[i] = vec![rank];
        }
        buffers.push(buffer);
    }
    let mut mail: HashMap<(usize, usize), VecDeque<Vec<Element>>> = HashMap::new();
    let mut next = vec![0; schedule.ranks()];
    loop {
        let mut moved = false;
        for (rank, program) in schedule.programs().iter().enumerate() {
            while let Some(step) = program.get(next[rank]) {
                let buffer = &mut buffers[rank];
                match step {
                    Step::Send { to, spans, .. } => {
                        let message = indices(spans).map(|i| buffer[i].clone()).collect();
                        mail.entry((rank, *to)).or_default().push_back(message);
                    }
                    Step::Recv { from, spans, .. } | Step::RecvCombine { from, spans, .. } => {
                        let Some(message) =
                            mail.get_mut(&(*from, rank)).and_then(VecDeque::pop_front)
                        else {
                            break;
                        };
                        let order = match step {
                            Step::RecvCombine { order, .. } => Some(*order),
                            _ => None,
                        };
                        for (i, theirs) in indices(spans).zip(message) {
                            merge(&mut buffer[i], theirs, order);
                        }
                    }
                    Step::Copy { src, dst } => {
                        let values: Vec<_> = indices(src).map(|i| buffer[i].clone()).collect();
                        for (i, value) in indices(dst).zip(values) {
                            merge(&mut buffer[i], value, None);
                        }
                    }
                    Step::Combine { src, dst, order } => {
                        let values: Vec<_> = indices(src).map(|i| buffer[i].clone()).collect();
                        for (i, value) in indices(dst).zip(values) {
                            merge(&mut buffer[i], value, Some(*order));
                        }
                    }
                }
                next[rank] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for (rank, program) in schedule.programs().iter().enumerate() {
        assert_eq!(next[rank], program.len(), "rank {rank} is stuck");
    }
    buffers
}

fn indices(spans: &Spans) -> impl Iterator<Item = usize> {
    spans.iter().flat_map(|s: &Span| s.offset..s.end())
}

fn merge(mine: &mut Element, theirs: Element, order: Option<Order>) {
    match order {
        None => *mine = theirs,
        Some(Order::MineFirst) => mine.extend(theirs),
        Some(Order::TheirsFirst) => {
            let mine_last = std::mem::replace(mine, theirs);
            mine.extend(mine_last);
        }
    }
}

/// Asserts that `schedule` completes and keeps its promises; operands in any order unless `keep_order`.
pub(crate) fn assert_right(schedule: &Schedule, keep_order: bool, what: &str) {
    Prepared::new(schedule, false).unwrap_or_else(|e| panic!("{what}: {e}"));
    Prepared::new(schedule, true).unwrap_or_else(|e| panic!("{what}, overlapping: {e}"));
    let buffers = contributions(schedule);
    for (rank, layout) in schedule.layout().iter().enumerate() {
        let promises = schedule
            .collective()
            .promises(schedule.layout(), rank)
            .unwrap();
        let mut outputs = indices(&layout.output);
        for promise in promises {
            for (i, element) in outputs.by_ref().take(promise.len).enumerate() {
                let mut found = buffers[rank][element].clone();
                if !keep_order {
                    found.sort_unstable();
                }
                let expected: Element = promise.ranks.clone().collect();
                assert_eq!(found, expected, "{what}: rank {rank}, element {i}");
            }
        }
    }
}

#[test]
fn every_registered_reduction_and_broadcast_is_right() {
    for algorithm in registry::all() {
        if !matches!(algorithm.collective, Kind::Reduce | Kind::Broadcast) {
            continue;
        }
        for p in (1..=18).chain([31, 32, 33]) {
            for segments in [
                vec![0],
                vec![1],
                vec![3, 3, 2],
                vec![16, 16],
                vec![5, 1, 1, 4, 2, 7, 1],
                vec![p; 3],
            ] {
                for ports in [Ports::UNI, Ports::BI] {
                    for keep_order in [false, true] {
                        if !algorithm.ports.allow(ports)
                            || (keep_order && algorithm.commutative_only)
                        {
                            continue;
                        }
                        let segments = Segments::of_sizes(segments.clone()).unwrap();
                        let mut request = Request::new(p, segments.elements());
                        request.segments = segments;
                        request.ports = ports;
                        request.keep_order = keep_order;
                        request.cost = CostModel::new(2.0, 1.0).gamma(1.0);
                        let roots = if p < 10 {
                            (0..p).collect()
                        } else {
                            vec![0, p / 2, p - 1]
                        };
                        for root in roots {
                            request.root = root;
                            let what = format!(
                                "{} {} {request:?}",
                                algorithm.name,
                                algorithm.collective.name()
                            );
                            let schedule = algorithm.plan(&request).unwrap();
                            assert_right(&schedule, keep_order, &what);
                        }
                    }
                }
            }
        }
    }
}
