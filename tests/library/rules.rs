//! Compares the simulator and the executor with a slow, literal evaluation of the rules of time.
//!
//! That evaluation (`rules/naive.rs`) shares no code with the library's analysis. Costs are
//! integers, so all sums are exact and times must agree bit for bit.

use oneport::machine::{Eager, Links};
use oneport::rules::{End, Event, LocalOrder, NodeKind, OrderScratch};
use oneport::run::{Clock, Operator, Run, Team, TeamOptions, Workers, inputs};
use oneport::schedule::{Direction, SharedPort};
use oneport::simulate::explain::{Link, WaitReason};
use oneport::simulate::{Prepared, Simulation, stream};
use oneport::{
    Collective, CostModel, ErrorKind, Layout, Order, Ports, Schedule, Span, Spans, Step,
};

use self::naive::{Delays, Naive, Times, Verdict, elements, intersect, is_local, written};
use crate::support::cases::cases;
use crate::support::random::Random;

mod naive;

/// A random integer time below `n`.
fn time(random: &mut Random, n: usize) -> f64 {
    f64::from(u32::try_from(random.below(n)).unwrap())
}

const BUFFER: usize = 14;

/// Random disjoint spans of `len` elements in total, in any order; some may be empty. Lists of more
/// than eight take other paths in the analyses than shorter ones.
fn spans(random: &mut Random, len: usize) -> Spans {
    let parts = match random.below(20) {
        0..14 => 1,
        14..17 => 2 + random.below(2),
        _ => 9 + random.below(4),
    };
    let mut cuts: Vec<usize> = (1..parts).map(|_| random.below(len + 1)).collect();
    cuts.sort_unstable();
    cuts.insert(0, 0);
    cuts.push(len);
    let mut free = BUFFER - len;
    let mut at = 0;
    let mut spans: Vec<Span> = cuts
        .windows(2)
        .map(|w| {
            let gap = random.below(free + 1);
            (free, at) = (free - gap, at + gap);
            let span = Span::new(at, w[1] - w[0]);
            at += span.len;
            span
        })
        .collect();
    if random.chance(30) {
        spans.reverse();
    }
    spans.into_iter().collect()
}

/// A random schedule. All steps are drawn in one global order, and every program and the list of
/// every shared port is a subsequence of it, so the schedule completes. Some schedules then have
/// adjacent steps swapped, and many of those deadlock.
fn schedule(random: &mut Random) -> Schedule {
    let p = 1 + random.below(6);
    let k = 1 + random.below(3);
    let ports = random.pick(&Ports::KINDS).with_k(k);
    let mut programs: Vec<Vec<Step>> = vec![Vec::new(); p];
    // With few different lengths, swapped steps often still match. Short messages rarely conflict,
    // so many steps can run at the same time.
    let max_len = 1 + random.below(5);
    let order = [Order::MineFirst, Order::TheirsFirst];
    // Both ends of all transfers.
    let mut ends = Vec::new();
    for _ in 0..random.below(40) {
        let me = random.below(p);
        let len = if random.chance(10) {
            0
        } else {
            1 + random.below(max_len)
        };
        let kind = random.below(10);
        if kind < 8 && p > 1 {
            let peer = (me + 1 + random.below(p - 1)) % p;
            let send = Step::send(peer, spans(random, len)).on_port(random.below(k));
            let into = spans(random, len);
            let recv = if kind < 4 {
                Step::recv(me, into)
            } else {
                Step::recv_combine(me, into, order[random.below(2)])
            };
            ends.push([(me, programs[me].len()), (peer, programs[peer].len())]);
            programs[me].push(send);
            programs[peer].push(recv.on_port(random.below(k)));
        } else {
            let (src, dst) = (spans(random, len), spans(random, len));
            programs[me].push(if kind.is_multiple_of(2) {
                Step::copy(src, dst)
            } else {
                Step::combine(src, dst, order[random.below(2)])
            });
        }
    }
    if random.chance(40) {
        for _ in 0..1 + random.below(8) {
            let rank = random.below(p);
            if programs[rank].len() > 1 {
                let i = random.below(programs[rank].len() - 1);
                programs[rank].swap(i, i + 1);
            }
        }
    }
    let everything = Layout {
        len: BUFFER,
        input: Span::new(0, BUFFER).into(),
        output: Span::new(0, BUFFER).into(),
    };
    let lists = random.below(8).saturating_sub(4);
    let shared = (0..lists).map(|_| shared_port(random, &ends, &programs));
    let shared = shared.collect();
    // What is right does not matter here, only how long messages take.
    let collective = if random.chance(20) {
        Collective::Barrier
    } else {
        Collective::Allreduce
    };
    let schedule = Schedule::new(ports, collective, vec![everything; p], programs);
    schedule.unwrap().with_shared_ports(shared).unwrap()
}

/// A port that some of these transfers share, each listed by one of its ends. Which ranks it
/// belongs to does not matter to time.
fn shared_port(
    random: &mut Random,
    ends: &[[(usize, usize); 2]],
    programs: &[Vec<Step>],
) -> SharedPort {
    let chance = 10 + random.below(80);
    let mut steps = Vec::new();
    for ends in ends {
        let (rank, step) = ends[random.below(2)];
        if random.chance(chance) && !is_local(&programs[rank][step]) {
            steps.push((rank, step));
        }
    }
    if steps.len() > 1 && random.chance(15) {
        let i = random.below(steps.len() - 1);
        steps.swap(i, i + 1);
    }
    SharedPort {
        name: "shared".into(),
        ranks: Vec::new(),
        direction: Direction::Both,
        steps,
    }
}

/// Random integer costs, some of them 0, in half of the cases different for every link and rank;
/// in half of the cases with delays.
fn cost(random: &mut Random, p: usize) -> (CostModel, Delays) {
    let overlap = random.chance(50);
    let mut delays = Delays {
        arrivals: vec![0.0; p],
        latency: vec![vec![0.0; p]; p],
        eager: None,
    };
    if random.chance(25) {
        delays.arrivals.fill_with(|| time(random, 40));
    }
    let mut eager = Eager::None;
    if random.chance(25) {
        (eager, delays.eager) = if random.chance(50) {
            (Eager::All, Some(u64::MAX))
        } else {
            (Eager::UpTo(8), Some(8))
        };
    }
    let late = delays.arrivals.clone();
    if random.chance(50) {
        let latency = if random.chance(25) {
            time(random, 30)
        } else {
            0.0
        };
        delays.latency.iter_mut().for_each(|row| row.fill(latency));
        let cost = CostModel::new(time(random, 20), time(random, 5))
            .gamma(time(random, 4))
            .gamma_copy(time(random, 3))
            .overlap(overlap)
            .latency(latency);
        return (cost.eager(eager).arrivals(late), delays);
    }
    if random.chance(25) {
        let rows = delays.latency.iter_mut();
        rows.flatten()
            .for_each(|latency| *latency = time(random, 30));
    }
    let mut square = |n| -> Vec<Vec<Option<f64>>> {
        let mut row = |_| (0..p).map(|_| Some(time(random, n))).collect();
        (0..p).map(&mut row).collect()
    };
    let (alpha, beta) = (square(20), square(5));
    let gamma = (0..p).map(|_| time(random, 4)).collect();
    let gamma_copy = (0..p).map(|_| time(random, 3)).collect();
    let cost = CostModel::heterogeneous(Links {
        alpha,
        beta,
        gamma,
        gamma_copy,
        latency: delays.latency.clone(),
        eager,
    });
    (cost.unwrap().overlap(overlap).arrivals(late), delays)
}

/// The end of the last step of every rank.
fn rank_times(times: &[Vec<Times>], delays: &Delays) -> Vec<f64> {
    let ends = |t: &Times| [t.transfer, t.compute].map(|part| part.map_or(0.0, |p| p.1));
    let ranks = times.iter().zip(&delays.arrivals);
    ranks
        .map(|(rank, &arrival)| rank.iter().flat_map(ends).fold(arrival, f64::max))
        .collect()
}

#[test]
fn simulator_follows_the_rules() {
    let mut random = Random::new(1);
    let (mut done, mut stuck, mut unmatched, mut needs_overlap) = (0, 0, 0, 0);
    for case in 0..cases(6000, 20_000) {
        let schedule = schedule(&mut random);
        let (cost, delays) = cost(&mut random, schedule.ranks());
        let element_bytes = [1, 4, 8][random.below(3)];
        let schedule = schedule.with_element_bytes(element_bytes);
        let what = || format!("case {case}: {cost:?}\n{}", schedule.to_json());
        let prepared = Prepared::new(&schedule, cost.overlaps());
        let times = match Naive::evaluate(&schedule, &cost, &delays, element_bytes) {
            Verdict::Done(times) => times,
            verdict => {
                let error = prepared.map(|_| ()).expect_err(&what()).to_string();
                if verdict == Verdict::Stuck {
                    assert!(error.contains("deadlock"), "{error}: {}", what());
                    stuck += 1;
                } else {
                    unmatched += 1;
                }
                continue;
            }
        };
        done += 1;
        let prepared = prepared.unwrap_or_else(|e| panic!("{e}: {}", what()));
        let simulation = prepared.simulate(&cost).unwrap();
        let expected = rank_times(&times, &delays);
        assert_eq!(simulation.rank_times(), expected, "{}", what());
        let makespan = expected.iter().copied().fold(0.0, f64::max);
        assert_eq!(simulation.makespan(), makespan, "{}", what());
        let streamed = stream(&schedule, &cost, element_bytes, |_| ()).unwrap();
        assert_eq!(streamed.rank_times, expected, "{}", what());
        assert_eq!(streamed.rounds, schedule.stats().unwrap().rounds);
        let timed = schedule.timed(&cost, |_| ()).unwrap();
        assert_eq!((timed.time, timed.rounds), (makespan, streamed.rounds));
        if Prepared::new(&schedule, false).is_err() {
            // Rounds are those of the computation that overlaps.
            let unit = CostModel::new(1.0, 0.0).overlap(true);
            let rounds = prepared.simulate(&unit).unwrap().makespan();
            assert_eq!(streamed.rounds as f64, rounds, "{}", what());
            needs_overlap += 1;
        }
        for (rank, times) in times.iter().enumerate() {
            for (i, t) in times.iter().enumerate() {
                for (event, part) in [
                    (Event::transferred(i), t.transfer),
                    (Event::computed(i), t.compute),
                ] {
                    let node = prepared.node(rank, event);
                    let sends = !event.is_computed() && schedule.programs()[rank][i].is_send();
                    let end = if sends { End::Sender } else { End::Receiver };
                    let times = |n| (simulation.start_at(n, end), simulation.finish_at(n, end));
                    let found = node.map(times);
                    assert_eq!(found, part, "rank {rank}, step {i}: {}", what());
                }
            }
        }
        let chain = simulation.explain(&schedule, None);
        assert!(
            chain_end(&chain) == makespan || chain.is_empty() && makespan == cost.last_arrival()
        );
        assert_true_reasons(&schedule, &cost, &delays, &times, &chain, &what);
        if !schedule.programs()[0].is_empty() {
            let step = (0, Some(random.below(schedule.programs()[0].len())));
            let chain = simulation.explain(&schedule, Some(step));
            assert_true_reasons(&schedule, &cost, &delays, &times, &chain, &what);
        }
        assert_pieces_add_up(&simulation, &delays, makespan, &what);
        let busy = simulation.port_busy(&schedule);
        for (rank, program) in schedule.programs().iter().enumerate() {
            let sum: f64 = times[rank]
                .iter()
                .filter_map(|t| t.transfer)
                .map(|(a, b)| b - a)
                .sum();
            assert_eq!(busy[rank].iter().sum::<f64>(), sum, "{}", what());
            assert!(!program.is_empty() || sum == 0.0);
        }
    }
    assert!(
        done > 3000 && stuck > 150 && unmatched > 150 && needs_overlap > 20,
        "{done} {stuck} {unmatched} {needs_overlap}"
    );
}

/// When the first link of a chain, the last in time, ends.
fn chain_end(chain: &[Link]) -> f64 {
    chain.first().map_or(0.0, |link| link.end)
}

/// Holds the links of a chain against the rules: each starts when the rules say, the next one is
/// what it waits for, and the reason is a rule by which it waits.
fn assert_true_reasons(
    schedule: &Schedule,
    cost: &CostModel,
    delays: &Delays,
    times: &[Vec<Times>],
    chain: &[Link],
    what: &dyn Fn() -> String,
) {
    let step = |link: &Link| &schedule.programs()[link.rank][link.step];
    let latency = |link: &Link| match *step(link) {
        Step::Send { to, .. } if !step(link).is_empty() => delays.latency[link.rank][to],
        Step::Recv { from, .. } | Step::RecvCombine { from, .. } if !step(link).is_empty() => {
            delays.latency[from][link.rank]
        }
        _ => 0.0,
    };
    let bytes = |link: &Link| match schedule.collective() {
        Collective::Barrier => 0,
        _ => step(link).len() as u64 * schedule.element_bytes(),
    };
    for (i, link) in chain.iter().enumerate() {
        let at = || format!("link {i} of {chain:?}: {}", what());
        let part = &times[link.rank][link.step];
        let part = if link.computes {
            part.compute
        } else {
            part.transfer
        };
        assert_eq!(part, Some((link.start, link.end)), "{}", at());
        let next = chain.get(i + 1);
        assert_eq!(
            next.is_none(),
            link.reason == WaitReason::Arrival,
            "{}",
            at()
        );
        let before = chain[..i].last();
        let is_heard_of = |end: &Link| !step(end).is_send() && !link.computes;
        // How long word of it, and the message, are on their way.
        let gap = match (link.reason, before.map(|link| link.reason)) {
            (WaitReason::Partner, _) => latency(link),
            (_, Some(WaitReason::Partner)) if !is_heard_of(link) => 0.0,
            _ if is_heard_of(link) && delays.eager.is_none_or(|limit| bytes(link) > limit) => {
                2.0 * latency(link)
            }
            _ => 0.0,
        };
        assert_eq!(link.start, link.ready + gap, "{}", at());
        let Some(next) = next else {
            assert_eq!(link.ready, delays.arrivals[link.rank], "{}", at());
            continue;
        };
        let (own, other) = (step(link), step(next));
        let (reads, writes) = (naive::read(own), written(own));
        let same_rank = link.rank == next.rank && link.step >= next.step;
        let is_true = match link.reason {
            WaitReason::Partner => {
                assert_eq!(link.ready, next.ready, "{}", at());
                own.is_send() != other.is_send() && link.rank != next.rank
                    || step(link).peer() == Some(link.rank)
            }
            _ if link.ready != next.end => false,
            WaitReason::Data if link.step == next.step => link.computes && !next.computes,
            WaitReason::Data => same_rank && intersect(&reads, &written(other)),
            WaitReason::Overwrites => {
                same_rank && intersect(&writes, &[naive::read(other), written(other)].concat())
            }
            WaitReason::Port => same_rank && naive::same_port(schedule.ports(), own, other),
            WaitReason::Computation => {
                same_rank && !cost.overlaps() && (link.computes || next.computes)
            }
            WaitReason::SharedPort => schedule.shared_ports().iter().any(|port| {
                let of = |link: &Link| port.steps.iter().position(|&s| s == (link.rank, link.step));
                of(next).zip(of(link)).is_some_and(|(a, b)| a + 1 == b)
            }),
            _ => false,
        };
        assert!(is_true, "{}", at());
    }
}

/// The pieces of a critical path follow each other without a gap but for latency, from the arrival
/// of a rank to the makespan.
fn assert_pieces_add_up(
    simulation: &Simulation,
    delays: &Delays,
    makespan: f64,
    what: &dyn Fn() -> String,
) {
    let (prepared, mut time) = (simulation.prepared(), 0.0);
    for (i, (node, end)) in simulation.critical_ends().into_iter().enumerate() {
        let work = prepared.nodes()[node];
        let (from, to) = (work.from as usize, work.to as usize);
        let latency = match work.kind {
            NodeKind::Transfer if work.elements > 0 => delays.latency[from][to],
            _ => 0.0,
        };
        let (start, finish) = (
            simulation.start_at(node, end),
            simulation.finish_at(node, end),
        );
        let from_here = |time: f64| [0.0, 1.0, 2.0].map(|n| time + n * latency).contains(&start);
        let is_next = match i {
            0 => from_here(delays.arrivals[from]) || from_here(delays.arrivals[to]),
            _ => from_here(time),
        };
        assert!(is_next, "node {node}: {time} {start}: {}", what());
        time = finish;
    }
    let last = delays.arrivals.iter().copied().fold(time, f64::max);
    assert_eq!(last, makespan, "{}", what());
    assert!(time == makespan || time == 0.0, "{}", what());
}

#[test]
fn executor_follows_the_rules() {
    let mut random = Random::new(2);
    let mut teams: Vec<Team> = (1..=6).map(|p| Team::new(p).unwrap()).collect();
    let operator = Operator::<i32>::named("sum").unwrap();
    for case in 0..cases(1200, 4000) {
        // Unless a schedule says otherwise, the clock counts elements.
        let element_bytes = [1, 4][case % 2];
        let schedule = schedule(&mut random).with_element_bytes(element_bytes);
        let (cost, delays) = cost(&mut random, schedule.ranks());
        // The effect of a local step whose source and target intersect is undefined.
        let overlaps_itself =
            |s: &Step| is_local(s) && intersect(&elements(s.reads()), &written(s));
        if schedule.programs().iter().flatten().any(overlaps_itself) {
            continue;
        }
        let Verdict::Done(times) = Naive::evaluate(&schedule, &cost, &delays, element_bytes) else {
            continue;
        };
        let data = inputs(schedule.collective(), schedule.layout(), &operator);
        let what = format!("case {case}: {cost:?}\n{}", schedule.to_json());
        let team = &mut teams[schedule.ranks() - 1];
        let mut run = |clock, eager| {
            let outcome = Run::new(&schedule)
                .op(&operator)
                .inputs(&data)
                .cost(cost.clone())
                .clock(clock)
                .eager(eager)
                .on(team);
            let outcome = outcome.unwrap_or_else(|e| panic!("{e}: {what}"));
            let waits = !schedule.shared_ports().is_empty() || clock == Clock::Paced;
            assert_eq!(outcome.eager, eager && !waits, "{what}");
            assert_eq!(outcome.rank_times, rank_times(&times, &delays), "{what}");
            outcome.outputs
        };
        let outputs = run(Clock::Native, true);
        assert_eq!(outputs, run(Clock::Native, false), "{what}");
        if case % 4 == 0 || delays.eager.is_some() {
            assert_eq!(outputs, run(Clock::Paced, true), "{what}");
        }
    }
}

/// For each step the earlier ones that it waits for, directly or not, as bits.
fn all_waits(steps: usize, waits: impl Fn(usize, usize) -> bool) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    for step in 0..steps {
        let direct = (0..step).filter(|&earlier| waits(step, earlier));
        all.push(direct.fold(0, |bits, earlier| bits | 1 << earlier | all[earlier]));
    }
    all
}

/// Between transfers of no data rule 1 is the only one: the static analysis, which keeps but a few
/// earlier steps, against the rule for each pair of steps.
#[test]
fn a_step_waits_for_all_that_hold_its_port() {
    let mut random = Random::new(4);
    let (mut order, mut scratch) = (LocalOrder::default(), OrderScratch::default());
    for _ in 0..cases(5000, 50_000) {
        let ports = random.pick(&Ports::KINDS).with_k(1 + random.below(3));
        let partners = 1 + random.below(3);
        let program = (0..random.below(30)).map(|_| {
            let (peer, nothing) = (1 + random.below(partners), Span::new(0, 0));
            let step = if random.chance(50) {
                Step::send(peer, nothing)
            } else {
                Step::recv(peer, nothing)
            };
            step.on_port(random.below(ports.k()))
        });
        let program: Vec<Step> = program.collect();
        let overlap = random.chance(50);
        order
            .analyse(&program, ports, overlap, &mut scratch)
            .unwrap();
        let found = all_waits(program.len(), |step, earlier| {
            order
                .before_start(step)
                .contains(&Event::transferred(earlier))
        });
        let expected = all_waits(program.len(), |step, earlier| {
            naive::same_port(ports, &program[earlier], &program[step])
        });
        assert_eq!(found, expected, "{ports:?} {program:?}");
    }
}

/// The schedule's ports let rank 0 open both its transfers, of which the first ends only after the
/// second: a run where the ranks have other ports allows it if rule 1 does. The executor opens
/// lists in their order.
#[test]
fn ranks_hold_no_more_ports_than_they_have() {
    let operator = Operator::<i32>::named("sum").unwrap();
    let mut team = Team::new(3).unwrap();
    let transfer = |sends: bool, peer: usize, at: usize| {
        let span = Span::new(at, 1);
        if sends {
            Step::send(peer, span)
        } else {
            Step::recv(peer, span)
        }
    };
    let (mut allowed, mut refused) = (0, 0);
    let ends = |k: usize| (0..k).flat_map(|port| [(port, true), (port, false)]);
    for k in 1..=3 {
        let lists: Vec<_> = ends(k).collect();
        for (i, &first) in lists.iter().enumerate() {
            for (&second, second_peer) in lists[i + 1..].iter().flat_map(|s| [(s, 1), (s, 2)]) {
                let mut programs = vec![Vec::new(); 3];
                let own = [(first, 1), (second, second_peer)];
                for (at, ((port, sends), peer)) in own.into_iter().enumerate() {
                    programs[0].push(transfer(sends, peer, at).on_port(port));
                }
                programs[second_peer].push(transfer(!second.1, 0, 0));
                if second_peer == 2 {
                    programs[2].push(transfer(true, 1, 0));
                    programs[1].push(transfer(false, 2, 0));
                } else if first.1 == second.1 {
                    // The first message between two ranks arrives first.
                    continue;
                }
                programs[1].push(transfer(!first.1, 0, 0));
                let everything = Layout {
                    len: 2,
                    input: Span::new(0, 2).into(),
                    output: Span::new(0, 2).into(),
                };
                let collective = Collective::Allreduce;
                let ports = Ports::BI.with_k(k);
                let schedule = Schedule::new(ports, collective, vec![everything; 3], programs);
                let schedule = schedule.unwrap();
                let [a, b] = &schedule.programs()[0][..] else {
                    unreachable!("two steps")
                };
                let data = inputs(schedule.collective(), schedule.layout(), &operator);
                for ports in Ports::KINDS.map(|ports| ports.with_k(k)) {
                    let run = Run::new(&schedule).op(&operator).inputs(&data);
                    let run = run.ports(ports).eager(false).on(&mut team);
                    let what = format!("{ports:?} {a:?} {b:?}: {run:?}");
                    if naive::same_port(ports, a, b) {
                        let kind = run.unwrap_err().kind().clone();
                        let busy = ErrorKind::PortBusy {
                            rank: 0,
                            port: second.0,
                            step: 1,
                        };
                        assert_eq!(kind, busy, "{what}");
                        refused += 1;
                    } else {
                        assert!(run.is_ok(), "{what}");
                        allowed += 1;
                    }
                }
            }
        }
    }
    assert!(allowed > 50 && refused > 10, "{allowed}, {refused}");
}

/// A long message stays in the sender's buffer until the receiver has taken it. Random
/// later steps overwrite it.
#[test]
fn lent_messages_are_not_overwritten_before_they_are_taken() {
    let mut random = Random::new(3);
    let mut teams = [Workers::Ranks, Workers::Cores].map(|workers| -> Vec<Team> {
        let options = TeamOptions {
            workers,
            ..TeamOptions::default()
        };
        (1..=6).map(|p| Team::with(p, &options).unwrap()).collect()
    });
    let operator = Operator::<i32>::named("sum").unwrap();
    let mut eager_runs = [0; 2];
    for case in 0..cases(200, 600) {
        let schedule = enlarged(&schedule(&mut random), [40, 700, 4000][random.below(3)]);
        let overlaps_itself =
            |s: &Step| is_local(s) && intersect(&elements(s.reads()), &written(s));
        if schedule.programs().iter().flatten().any(overlaps_itself)
            || Prepared::new(&schedule, false).is_err()
        {
            continue;
        }
        let data = inputs(schedule.collective(), schedule.layout(), &operator);
        let what = format!("case {case}:\n{}", schedule.to_json());
        let [eager, multiplexed, rendezvous] =
            [(0, true), (1, true), (0, false)].map(|(which, eager)| {
                let team = &mut teams[which][schedule.ranks() - 1];
                let outcome = Run::new(&schedule)
                    .op(&operator)
                    .inputs(&data)
                    .eager(eager)
                    .repetitions(3)
                    .on(team);
                let outcome = outcome.unwrap_or_else(|e| panic!("{e}: {what}"));
                eager_runs[which] += usize::from(outcome.eager && outcome.oversubscribed);
                (outcome.outputs, outcome.model_time)
            });
        assert_eq!(eager, rendezvous, "{what}");
        assert_eq!(multiplexed, rendezvous, "{what}");
    }
    let core_per_rank = std::thread::available_parallelism().is_ok_and(|n| n.get() >= 6);
    assert!(
        core_per_rank || eager_runs.iter().all(|&n| n > 15),
        "{eager_runs:?}"
    );
}

/// The schedule with every element replaced by `factor` elements.
fn enlarged(schedule: &Schedule, factor: usize) -> Schedule {
    let all = |spans: &Spans| -> Spans {
        let larger = |s: &Span| Span::new(factor * s.offset, factor * s.len);
        spans.iter().map(larger).collect()
    };
    let step = |step: &Step| {
        let mut step = step.clone();
        match &mut step {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => *spans = all(spans),
            Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
                (*src, *dst) = (all(src), all(dst));
            }
        }
        step
    };
    let programs = schedule.programs().iter();
    let programs = programs.map(|p| p.iter().map(step).collect()).collect();
    let layout = schedule.layout().iter().map(|l| Layout {
        len: factor * l.len,
        input: all(&l.input),
        output: all(&l.output),
    });
    let (ports, layout) = (schedule.ports(), layout.collect());
    Schedule::new(ports, schedule.collective().clone(), layout, programs).unwrap()
}
