//! Tests that a streamed schedule takes the simulated time of the materialized schedule, bit for
//! bit. This includes circulant planners, which stream without materializing a schedule.

use oneport::plan::registry::Algorithm;
use oneport::plan::{Segments, registry};
use oneport::schedule::ScheduleSource;
use oneport::simulate::{Prepared, Timed, stream};
use oneport::{Collective, CostModel, Kind, Order, Ports, Request, Schedule, Span, Step};

use crate::hand;
use crate::support::cases::cases;
use crate::support::random::Random;
use crate::support::ranks::rank_counts;
use crate::support::sample::Sample;

/// Costs whose sums are inexact, so that only the same additions in the same order give the same
/// bits.
fn cost(overlap: bool) -> CostModel {
    CostModel::new(0.1, 0.7)
        .gamma(0.3)
        .gamma_copy(0.9)
        .overlap(overlap)
}

/// The time of a planned schedule, streamed if the algorithm can.
fn timed(algorithm: &Algorithm, request: &Request) -> Timed {
    let planned = algorithm.planned(request).unwrap();
    planned.timed(request.get_cost(), |_| ()).unwrap()
}

/// Asserts that streaming and simulating agree. Returns whether the schedule completes.
fn compare(schedule: &Schedule, name: &str) -> bool {
    let schedule = &schedule.clone().with_element_bytes(3);
    let mut completes = true;
    for overlap in [false, true] {
        let cost = cost(overlap);
        let streamed = stream(schedule, &cost, 3, |_| ());
        let Ok(prepared) = Prepared::new(schedule, overlap) else {
            assert!(streamed.is_err(), "{name}, overlap {overlap}: {streamed:?}");
            completes = false;
            continue;
        };
        let streamed = match streamed {
            Ok(streamed) => streamed,
            // A stream counts rounds without overlap, so the schedule must also complete without.
            Err(_) if Prepared::new(schedule, false).is_err() => continue,
            Err(error) => panic!("{name}, overlap {overlap}: {error}"),
        };
        let simulated = prepared.simulate(&cost).unwrap();
        assert_eq!(
            streamed.time.to_bits(),
            simulated.makespan().to_bits(),
            "{name}, overlap {overlap}"
        );
        assert_eq!(streamed.rank_times, simulated.rank_times(), "{name}");
        let stats = schedule.stats().unwrap();
        let counts = (streamed.rounds, streamed.messages, streamed.elements);
        assert_eq!(
            counts,
            (stats.rounds, stats.messages, stats.elements),
            "{name}"
        );
    }
    completes
}

#[test]
fn streams_of_every_algorithm_take_the_simulated_time() {
    let mut sample = Sample::each(3);
    for algorithm in registry::all() {
        for p in rank_counts().into_iter().chain([64]) {
            for sizes in [vec![0], vec![5], vec![3, 3, 2], vec![5, 1, 0, 4, 2, 7, 1]] {
                for ports in [Ports::UNI, Ports::BI] {
                    let segments = Segments::of_sizes(sizes.clone()).unwrap();
                    let request = Request::new(algorithm.collective, p, segments.elements())
                        .segments(segments)
                        .root(p / 2)
                        .ports(ports);
                    if algorithm.accepts(&request).is_err() || !sample.takes() {
                        continue;
                    }
                    let schedule = algorithm.plan(&request).unwrap();
                    let name = format!("{} {} p={p} {sizes:?}", algorithm.name(), ports.name());
                    assert!(compare(&schedule, &name));
                }
            }
        }
    }
}

/// The times of two ranks, where they are those of all, against those of a simulation of all.
#[test]
fn planned_programs_take_the_time_of_the_stored_schedule() {
    let ports = Ports::KINDS;
    let ks = cases(vec![1, 3], vec![1, 2, 3]).into_iter();
    let ports: Vec<_> = ks.map(|k| ports.map(|ports| ports.with_k(k))).collect();
    let mut sample = Sample::each(11);
    for algorithm in registry::all() {
        for (p, ports) in rank_counts()
            .into_iter()
            .flat_map(|p| ports.iter().flatten().map(move |&ports| (p, ports)))
        {
            let sizes = [(5, 1), (6 * p, 3), (0, 1), (2 * p, 1)];
            for (elements, segments) in sizes {
                for overlap in [false, true] {
                    let request = Request::new(algorithm.collective, p, elements)
                        .segment_count(segments)
                        .ports(ports)
                        .cost(cost(overlap))
                        .element_bytes(3);
                    let request = match algorithm.collective {
                        // Blocks that do not differ.
                        Kind::Alltoall if segments > 1 => request.blocks(vec![7; p * p]),
                        _ => request,
                    };
                    if algorithm.accepts(&request).is_err() || !sample.takes() {
                        continue;
                    }
                    let schedule = algorithm.plan(&request).unwrap();
                    let simulated = schedule.timed(request.get_cost(), |_| ()).unwrap();
                    let name = format!("{} {request:?}", algorithm.name());
                    assert_eq!(timed(algorithm, &request), simulated, "{name}");
                }
            }
        }
    }
}

/// A simulation of all ranks would take minutes, and stored messages gigabytes.
#[test]
fn ranks_that_all_do_the_same_are_timed_by_two_of_them() {
    let p = 1 << 14;
    for kind in [Kind::Alltoall, Kind::Allgather, Kind::ReduceScatter] {
        for (ports, rounds) in [(Ports::BI, 1.0), (Ports::UNI, 2.0)] {
            let elements = if kind == Kind::ReduceScatter { p } else { 1 };
            let request = Request::new(kind, p, elements)
                .ports(ports)
                .cost(CostModel::new(1.0, 2.0));
            for algorithm in registry::of(kind).filter(|a| {
                let whole = ["pairwise", "edge-colouring", "list-scheduling", "ring"];
                whole.contains(&&*a.name()) || ["all-pairs", "swing", "pat"].contains(&&*a.name())
            }) {
                let timed = timed(algorithm, &request);
                assert_eq!(timed.elements, p * (p - 1), "{}", algorithm.name());
                let least = rounds * 2.0 * (p - 1) as f64;
                assert!(timed.time > least, "{}", algorithm.name());
            }
        }
    }
}

#[test]
fn streams_of_hand_written_schedules_take_the_simulated_time() {
    for p in 2..=9 {
        for (name, schedule) in hand::all(p) {
            compare(&schedule, &name);
        }
    }
}

/// A random schedule. It is built transfer by transfer, so that it completes; then `moves` steps
/// change their places, after which some schedules deadlock.
fn random_schedule(random: &mut Random, moves: usize) -> Schedule {
    let p = 1 + random.below(6);
    let k = 1 + random.below(3);
    let ports = [Ports::UNI, Ports::BI][random.below(2)].with_k(k);
    let len = 12;
    let mut b = Schedule::builder(p, ports, Collective::Allgather);
    let mut programs = vec![Vec::new(); p];
    for _ in 0..random.below(40) {
        let span = |random: &mut Random, size: usize| Span::new(random.below(len - size + 1), size);
        let (from, to, size) = (random.below(p), random.below(p), random.below(4));
        let (source, target) = (span(random, size), span(random, size));
        let order = Order::MineFirst;
        match random.below(6) {
            0 => programs[from].push(Step::copy(source, target)),
            1 => programs[from].push(Step::combine(source, target, order)),
            kind => {
                if from == to && !ports.can_relay() && k == 1 {
                    continue;
                }
                let receive = if kind < 4 {
                    Step::recv(from, target)
                } else {
                    Step::recv_combine(from, target, order)
                };
                programs[from].push(Step::send(to, source).on_port(random.below(k)));
                programs[to].push(receive.on_port(random.below(k)));
            }
        }
    }
    for _ in 0..moves {
        let program = &mut programs[random.below(p)];
        if !program.is_empty() {
            let step = program.remove(random.below(program.len()));
            program.insert(random.below(program.len() + 1), step);
        }
    }
    for (r, program) in programs.into_iter().enumerate() {
        b.layout(r, len, [], []);
        for step in program {
            b.step(r, step);
        }
    }
    b.build().unwrap()
}

#[test]
fn streams_of_random_schedules_take_the_simulated_time() {
    let mut random = Random::new(1);
    let (mut completed, mut stuck) = (0, 0);
    for i in 0..cases(6000, 20_000) {
        let schedule = random_schedule(&mut random, i % 4);
        if compare(&schedule, &schedule.to_json()) {
            completed += 1;
        } else {
            stuck += 1;
        }
    }
    assert!(completed > 1500 && stuck > 300, "{completed}, {stuck}");
}

#[test]
fn windows_grow_for_many_waiting_sends() {
    // All sends of a rank precede its receives, so the windows of the stream must grow.
    let (p, n) = (5, 300);
    let mut b = Schedule::builder(p, Ports::BI, Collective::Allgather);
    for r in 0..p {
        b.layout(r, 2 * n, [], []);
        for i in 0..n {
            b.step(r, Step::send((r + 1) % p, Span::new(i, 1)));
        }
        for i in 0..n {
            b.step(r, Step::recv((r + p - 1) % p, Span::new(n + i, 1)));
        }
    }
    assert!(compare(&b.build().unwrap(), "sends first"));
}

#[test]
fn wrong_programs_are_errors() {
    let schedule = |programs: [Vec<Step>; 2]| {
        let mut b = Schedule::builder(2, Ports::BI, Collective::Allgather);
        for (r, program) in programs.into_iter().enumerate() {
            b.layout(r, 4, [], []);
            for step in program {
                b.step(r, step);
            }
        }
        b.build().unwrap()
    };
    let span = Span::new(0, 2);
    let message = |programs| {
        let error = stream(&schedule(programs), &cost(false), 1, |_| ()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        error.to_string()
    };
    let send = || Step::send(1, span);
    assert!(message([vec![send()], vec![]]).contains("no matching receive"));
    assert!(message([vec![], vec![Step::recv(0, span)]]).contains("no matching send"));
    assert!(message([vec![send()], vec![Step::recv(0, Span::new(0, 3))]]).contains("expects 3"));
    assert!(message([vec![send().on_port(1)], vec![Step::recv(0, span)]]).contains("port 1"));
    let waits = |peer| vec![Step::recv(peer, span), Step::send(peer, span)];
    assert!(message([waits(1), waits(0)]).contains("deadlock"));
}

/// A source with one step that a [`Schedule`] would refuse.
struct InvalidSource(Step);

impl ScheduleSource for InvalidSource {
    type Program<'a> = std::iter::Once<Step>;

    fn ranks(&self) -> usize {
        1
    }

    fn ports(&self) -> Ports {
        Ports::BI
    }

    fn collective(&self) -> Collective {
        Collective::Allreduce
    }

    fn layout_of(&self, _: usize) -> oneport::Layout {
        oneport::Layout::default()
    }

    fn program_of(&self, _: usize) -> Self::Program<'_> {
        std::iter::once(self.0.clone())
    }
}

#[test]
fn steps_out_of_bounds_are_errors() {
    for step in [
        Step::send(1, Span::new(0, 0)),
        Step::send(0, Span::new(0, 1)),
        Step::recv(0, Span::new(usize::MAX, 2)),
    ] {
        assert!(stream(&InvalidSource(step), &cost(false), 1, |_| ()).is_err());
    }
}

#[test]
fn missing_links_are_errors() {
    let square = vec![vec![None; 2]; 2];
    let cost = CostModel::heterogeneous(oneport::machine::Links {
        alpha: square.clone(),
        beta: square,
        gamma: vec![],
        gamma_copy: vec![],
        ..oneport::machine::Links::default()
    })
    .unwrap();
    let schedule = Request::broadcast(2, 3).plan("binomial").unwrap();
    let error = stream(&schedule, &cost, 1, |_| ()).unwrap_err();
    assert!(error.to_string().contains("no link"), "{error}");
}

#[test]
fn circulant_streams_take_the_simulated_time() {
    for kind in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
        let algorithm = registry::find(kind, "circulant").unwrap();
        assert!(algorithm.is_streamed());
        for p in (1..=cases(34, 80)).chain([127, 128, 129, 300]) {
            for n in [1, 2, 5, 16] {
                let mut request = Request::new(algorithm.collective, p, 7 * n - 3)
                    .segment_count(n)
                    .root(p / 3);
                for overlap in [false, true] {
                    request = request.cost(cost(overlap));
                    let timed = timed(&algorithm, &request);
                    let schedule = algorithm.plan(&request).unwrap();
                    let simulated = schedule.simulate(request.get_cost()).unwrap();
                    let name = format!("{} p={p} n={n}", kind.name());
                    assert_eq!(
                        timed.time.to_bits(),
                        simulated.makespan().to_bits(),
                        "{name}"
                    );
                    assert_eq!(timed.rank_times, simulated.rank_times(), "{name}");
                    assert_eq!(timed.rounds, schedule.stats().unwrap().rounds, "{name}");
                }
            }
        }
    }
}

/// `n` blocks and `p` ranks take exactly `n - 1 + ceil(log2 p)` rounds.
#[test]
fn circulant_streams_take_the_optimal_number_of_rounds() {
    for kind in [Kind::Broadcast, Kind::Reduce] {
        let algorithm = registry::find(kind, "circulant").unwrap();
        for p in (1..=300usize).step_by(cases(7, 1)) {
            for n in [1, 2, 3, 5, 8, 16] {
                let request = Request::new(algorithm.collective, p, n)
                    .segment_elems(1)
                    .root(p * n / 17)
                    .cost(CostModel::new(4.0, 1.0).gamma(2.0));
                let timed = timed(&algorithm, &request);
                let q = p.next_power_of_two().trailing_zeros() as usize;
                let rounds = if p == 1 { 0 } else { n - 1 + q };
                assert_eq!(timed.rounds, rounds, "p={p} n={n}");
                assert_eq!(timed.messages, (p - 1) * n);
                let closed = algorithm.closed_form(&request);
                let gamma = if kind == Kind::Reduce { 2.0 } else { 0.0 };
                let expected = rounds as f64 * (5.0 + gamma);
                assert_eq!((timed.time, closed), (expected, Some(expected)));
            }
        }
    }
}
