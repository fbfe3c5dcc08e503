//! Tests of every registered algorithm over many sizes and roots: its schedules are correct and
//! take the time of its closed form.

use std::borrow::Cow;

use oneport::check::Options;
use oneport::machine::{Piece, Pieces};
use oneport::plan::{Segments, registry};
use oneport::run::{Operator, Run, Team, inputs, oracle};
use oneport::{CostModel, Kind, Ports, Request, Schedule};

use crate::support::cases::is_long;
use crate::support::ranks::rank_counts;
use crate::support::sample::Sample;

#[test]
fn model_times_equal_the_closed_forms() {
    let inapplicable = assert_closed_forms(&CostModel::new(10.0, 2.0).gamma(3.0));
    assert_eq!(inapplicable, [""; 0]);
}

#[test]
fn closed_forms_distinguish_received_from_local_operands() {
    let line = |beta| {
        vec![Piece {
            from: 0,
            alpha: 0.0,
            beta,
        }]
    };
    let pieces = Pieces {
        combine: line(3.0),
        combine_local: line(7.0),
        ..Pieces::default()
    };
    let inapplicable = assert_closed_forms(&CostModel::new(10.0, 2.0).pieces(pieces).unwrap());
    assert_eq!(inapplicable, ["circulant-rsg"]);
}

/// A collective that combines nothing, and in which no root has a block of its own to copy, has
/// nothing that could overlap communication.
#[test]
fn overlap_changes_nothing_where_nothing_computes() {
    let cost = CostModel::new(10.0, 2.0).gamma(3.0);
    let computes = |kind: Kind| kind.reduces() || [Kind::Gather, Kind::Scatter].contains(&kind);
    let mut compared = 0;
    for algorithm in registry::all().iter().filter(|a| !computes(a.collective)) {
        for p in [1, 2, 5, 6, 8, 13] {
            for ports in [Ports::UNI, Ports::BI]
                .into_iter()
                .flat_map(|p| [p, p.with_k(3)])
            {
                let request = Request::new(algorithm.collective, p, 25).ports(ports);
                let time = |cost: &CostModel| {
                    let schedule = algorithm.plan(&request.clone().cost(cost.clone())).ok()?;
                    Some(schedule.simulate(cost).unwrap().makespan())
                };
                let name = algorithm.name();
                let Some(without) = time(&cost) else {
                    continue;
                };
                let overlapping = time(&cost.clone().overlap(true));
                assert_eq!(overlapping, Some(without), "{name}, {p} ranks, {ports:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// Asserts that closed forms equal simulated times. Returns the algorithms whose rows have a closed
/// form that does not apply to these costs.
fn assert_closed_forms(cost: &CostModel) -> Vec<Cow<'static, str>> {
    let mut inapplicable = Vec::new();
    let (mut compared, mut sample) = (0, Sample::each(3));
    for algorithm in registry::all() {
        let before = compared;
        for p in rank_counts().into_iter().chain([31, 63, 64, 70]) {
            for (q, s) in [(1, 4), (2, 3), (3, 8), (5, 2), (8, 8), (16, 1)] {
                for ports in [Ports::UNI, Ports::BI] {
                    let mut request = Request::new(algorithm.collective, p, q * s)
                        .segment_elems(s)
                        .ports(ports)
                        .root(p / 2)
                        .cost(cost.clone());
                    if !algorithm.ports.allow(ports) || !sample.takes() {
                        continue;
                    }
                    let schedule = algorithm.plan(&request).unwrap();
                    if !algorithm.collective.reduces() {
                        request = request.cost(cost.clone().gamma(0.0));
                    }
                    let time = schedule.simulate(request.get_cost()).unwrap().makespan();
                    if let Some(closed) = algorithm.closed_form(&request) {
                        assert_eq!(
                            time,
                            closed,
                            "{} {} p={p} q={q} s={s} {ports:?}",
                            algorithm.name(),
                            algorithm.collective.name()
                        );
                        compared += 1;
                    }
                }
            }
        }
        if compared == before && algorithm.has_closed_form() {
            inapplicable.push(algorithm.name());
        }
    }
    assert!(compared > 500, "only {compared} closed forms compared");
    inapplicable
}

/// Whoever asks for a closed form need not know for which requests it holds.
#[test]
fn closed_forms_answer_only_what_they_cover() {
    let (mut covered, mut refused) = (0, 0);
    for algorithm in registry::all() {
        for p in [1, 2, 3, 5, 8, 9] {
            for (q, s) in [(1, 4), (3, 5), (4, 1)] {
                for k in [1, 2, 3] {
                    for ports in Ports::KINDS {
                        for (keep_order, root) in [(false, p / 2), (true, 0), (true, p - 1)] {
                            let overlap = (q + k + p) % 3 == 0;
                            let free = (q + k + root) % 5 == 0;
                            let mut request = Request::new(algorithm.collective, p, q * s)
                                .segment_elems(s)
                                .ports(ports.with_k(k))
                                .root(root)
                                .free_root(free)
                                .keep_order(keep_order)
                                .cost(CostModel::new(10.0, 2.0).gamma(3.0).overlap(overlap));
                            if algorithm.accepts(&request).is_err() {
                                continue;
                            }
                            let Some(closed) = algorithm.closed_form(&request) else {
                                refused += 1;
                                continue;
                            };
                            let schedule = algorithm.plan(&request).unwrap();
                            if !algorithm.collective.reduces() {
                                let cost = request.get_cost().clone().gamma(0.0);
                                request = request.cost(cost);
                            }
                            let time = schedule.simulate(request.get_cost()).unwrap().makespan();
                            assert_eq!(time, closed, "{} {request:?}", algorithm.name());
                            assert_eq!(algorithm.time(&request).unwrap(), closed);
                            covered += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(covered > 10_000 && refused > 5000, "{covered}, {refused}");
}

#[test]
fn every_schedule_passes_the_checker() {
    let (mut checked, mut sample) = (0, Sample::each(5));
    for algorithm in registry::all() {
        for p in rank_counts() {
            for sizes in [
                vec![0],
                vec![1],
                vec![p / 2],
                vec![3, 3, 2],
                vec![5, 1, 0, 4, 2, 7, 1],
                vec![2 * p + 1; 2],
            ] {
                let segments = Segments::of_sizes(sizes.clone()).unwrap();
                let mut request = Request::new(algorithm.collective, p, segments.elements())
                    .segments(segments)
                    .cost(CostModel::new(2.0, 1.0).gamma(1.0));
                for ports in [Ports::UNI, Ports::BI] {
                    request = request.ports(ports);
                    if !algorithm.ports.allow(ports) {
                        continue;
                    }
                    let roots: Vec<usize> = match p {
                        _ if !rooted(algorithm.collective) => vec![p / 2],
                        0..=9 if is_long() || p <= 5 => (0..p).collect(),
                        _ => vec![0, 1, p / 2, p - 1],
                    };
                    for root in roots {
                        request = request.root(root);
                        for keep_order in [false, true] {
                            if keep_order && !algorithm.collective.reduces() {
                                continue;
                            }
                            request = request.keep_order(keep_order);
                            if algorithm.accepts(&request).is_err() || !sample.takes() {
                                continue;
                            }
                            let schedule = algorithm.plan(&request).unwrap();
                            for overlap in [false, true] {
                                let options = Options {
                                    keep_order,
                                    overlap,
                                    ..Options::default()
                                };
                                let report = schedule.check_with(&options);
                                assert!(
                                    report.is_correct(),
                                    "{} {} p={p} root={root} {ports:?} segments {sizes:?}, order {keep_order}, overlap {overlap}: {:?}",
                                    algorithm.name(),
                                    algorithm.collective.name(),
                                    report.errors
                                );
                                checked += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 5000, "only {checked} schedules checked");
}

/// Whether the collective has a root.
fn rooted(kind: Kind) -> bool {
    use Kind::{Broadcast, Gather, Multicast, Reduce, Scatter};
    matches!(kind, Broadcast | Reduce | Gather | Scatter | Multicast)
}

/// Block sizes: equal, all empty, all but one empty, one huge, different. Where every pair of ranks
/// has a block also those of a scatter, of a gather, of a permutation, many empty ones, one huge
/// one, and all different.
fn irregular(p: usize, kind: Kind) -> Vec<Vec<usize>> {
    let mut sizes = irregular_by_rank(p);
    if kind.has_block_pairs() {
        let pairs = |size: &dyn Fn(usize, usize) -> usize| -> Vec<usize> {
            (0..p * p).map(|i| size(i / p, i % p)).collect()
        };
        sizes.extend([
            pairs(&|from, to| if from == p / 2 { 1 + to } else { 0 }),
            pairs(&|from, to| if to == p / 2 { 1 + from } else { 0 }),
            pairs(&|from, to| 5 * usize::from((3 * from + 1) % p == to)),
            pairs(&|from, to| {
                if (from * to + from) % 3 == 1 {
                    2 + to
                } else {
                    0
                }
            }),
            pairs(&|from, to| if (from, to) == (0, p - 1) { 100 } else { 1 }),
            pairs(&|from, to| (from * from * 7 + to * 11 + from * to * 3) % 23),
        ]);
    }
    sizes
}

fn irregular_by_rank(p: usize) -> Vec<Vec<usize>> {
    let huge = |at: usize| (0..p).map(|r| if r == at { 100 } else { r % 3 }).collect();
    vec![
        vec![3; p],
        vec![0; p],
        (0..p).map(|r| usize::from(r == p / 2) * 7).collect(),
        huge(0),
        huge(p - 1),
        (0..p).map(|r| (r * 7 + 3) % (p + 2)).collect(),
    ]
}

#[test]
fn schedules_with_irregular_blocks_are_correct() {
    let (mut ran, mut sample) = (0, Sample::each(9));
    for p in rank_counts() {
        let mut team = Team::new(p).unwrap();
        for algorithm in registry::all().iter().filter(|a| a.collective.has_blocks()) {
            for (which, blocks) in irregular(p, algorithm.collective).into_iter().enumerate() {
                let elements = match algorithm.collective {
                    Kind::ReduceScatter => blocks.iter().sum(),
                    _ => blocks.iter().copied().max().unwrap(),
                };
                let mut request = Request::new(algorithm.collective, p, elements)
                    .segment_count(1 + which)
                    .blocks(blocks)
                    .root((p * which) / 6 % p)
                    .cost(CostModel::new(10.0, 2.0).gamma(3.0).gamma_copy(1.0));
                for ports in [Ports::UNI, Ports::BI] {
                    request = request.ports(ports);
                    if algorithm.accepts(&request).is_err() || !sample.takes() {
                        continue;
                    }
                    let name = format!(
                        "{} {} p={p} {ports:?} {:?}",
                        algorithm.name(),
                        algorithm.collective.name(),
                        request.get_blocks()
                    );
                    let schedule = algorithm.plan(&request).unwrap();
                    let report = schedule.check();
                    assert!(report.is_correct(), "{name}: {:?}", report.errors);
                    assert_delivers(&schedule, &request, &mut team, &name);
                    ran += 1;
                }
            }
        }
    }
    assert!(ran > 200, "only {ran} schedules run");
}

/// Asserts that a run delivers the oracle's results, and that its model clock shows the simulator's
/// time.
pub(crate) fn assert_delivers(schedule: &Schedule, request: &Request, team: &mut Team, name: &str) {
    let sum = Operator::<u64>::named("sum").unwrap();
    let data = inputs(schedule.collective(), schedule.layout(), &sum);
    let outcome = Run::new(schedule)
        .op(&sum)
        .inputs(&data)
        .cost(request.get_cost().clone())
        .on(team)
        .unwrap();
    let expected = oracle(schedule.collective(), schedule.layout(), &sum, &data).unwrap();
    assert_eq!(outcome.outputs, expected, "{name}");
    let time = schedule.simulate(request.get_cost()).unwrap();
    assert_eq!(outcome.model_time, time.makespan(), "{name}");
}

/// Found by its name, an algorithm for unidirectional ports is planned for a bidirectional one,
/// too, and takes at most as long there. In comparisons of all it is left out.
#[test]
fn algorithms_for_one_way_are_planned_for_two_by_name() {
    let mut planned = 0;
    for listed in registry::all().iter().filter(|a| !a.ports.allow(Ports::BI)) {
        let (kind, name) = (listed.collective, listed.name());
        let named = registry::find(kind, &name).unwrap();
        for p in [2, 3, 5, 8, 13] {
            let request = |ports| {
                let cost = CostModel::new(3.0, 1.0).gamma(0.5);
                Request::new(kind, p, 12)
                    .segment_elems(4)
                    .ports(ports)
                    .cost(cost)
            };
            let both = request(Ports::BI);
            assert!(listed.accepts(&both).is_err(), "{name}");
            let schedule = named.plan(&both).unwrap();
            assert_eq!(schedule.ports(), Ports::BI);
            assert!(schedule.check().is_correct(), "{name} {p}");
            let time = named.time(&both).unwrap();
            assert_eq!(time, schedule.simulate(both.get_cost()).unwrap().makespan());
            assert!(
                time <= named.time(&request(Ports::UNI)).unwrap(),
                "{name} {p}"
            );
            planned += 1;
        }
    }
    assert!(planned > 20, "{planned}");
}
