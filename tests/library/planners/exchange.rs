//! Algorithms that work in rounds.

use oneport::check::FindingKind;
use oneport::plan::{Request, choose};
use oneport::random::Generator;
use oneport::simulate::bounds::lower_bound;
use oneport::{Collective, CostModel, Kind, Ports, Schedule, Step};

use super::{closed_form, executed, pair_sizes};

#[test]
fn dissemination_takes_the_fewest_rounds_and_messages_cost_alpha() {
    let cost = CostModel::new(10.0, 3.0);
    for p in 2..=70 {
        for k in 1..=3 {
            let ports = Ports::BI.with_k(k);
            let request = Request::barrier(p).ports(ports).element_bytes(8);
            let schedule = request.plan("dissemination").unwrap();
            let time = schedule.simulate(&cost).unwrap().makespan();
            let bound = schedule.lower_bound(&cost);
            assert_eq!((time, bound.latency), (bound.largest, time), "{p} {k}");
            let rounds = (1..).find(|&q| (k + 1).pow(q) >= p).unwrap();
            assert_eq!(time, 10.0 * f64::from(rounds));
            assert_eq!(schedule.stats().unwrap().elements, 0);
        }
    }
}

/// Whoever misses one token may leave too early, and the checker says so.
#[test]
fn a_message_left_out_is_found() {
    for p in 2..=9 {
        for name in ["dissemination", "tree"] {
            let schedule = Request::barrier(p).plan(name).unwrap();
            assert!(schedule.check().is_correct());
            let (ports, layout) = (schedule.ports(), schedule.layout().to_vec());
            let programs = schedule.programs().to_vec();
            for from in 0..p {
                let Some(at) = programs[from].iter().position(Step::is_send) else {
                    continue;
                };
                let mut left = programs.clone();
                let to = left[from].remove(at).peer().unwrap();
                let receives = |s: &Step| !s.is_send() && s.peer() == Some(from);
                let at = left[to].iter().position(receives).unwrap();
                left[to].remove(at);
                let wrong = Schedule::new(ports, Collective::Barrier, layout.clone(), left);
                let report = wrong.unwrap().check();
                assert!(!report.is_correct(), "{name} {p} {from}");
            }
        }
    }
}

#[test]
fn a_barrier_without_tokens_is_refused() {
    let mut b = Schedule::builder(2, Ports::BI, Collective::Barrier);
    b.layout(0, 0, [], []).layout(1, 0, [], []);
    let report = b.build().unwrap().check();
    assert_eq!(report.errors[0].kind, FindingKind::Layout);
}

/// The times for `p` ranks with blocks of one element, if a message costs only `alpha`, and if
/// it costs only `beta`.
fn times_of_fibonacci(p: usize) -> [f64; 2] {
    let request = Request::allgather(p, 1).ports(Ports::UNI);
    let schedule = request.plan("fibonacci").unwrap();
    [(1.0, 0.0), (0.0, 1.0)].map(|(alpha, beta)| {
        let cost = CostModel::new(alpha, beta);
        schedule.simulate(&cost).unwrap().makespan()
    })
}

#[test]
fn rounds_of_fibonacci_are_fibonacci_numbers_and_the_volume_is_optimal() {
    let ranks = [6, 8, 10, 16, 26, 32, 34, 64, 100, 128, 256, 1024];
    let rounds = ranks.map(|p| times_of_fibonacci(p)[0]);
    let expected = [5, 6, 6, 7, 8, 9, 9, 10, 11, 12, 13, 16];
    assert_eq!(rounds, expected.map(f64::from));
    for p in (2..=300).step_by(2) {
        let [rounds, volume] = times_of_fibonacci(p);
        assert_eq!(volume, 2.0 * (p as f64 - 1.0), "p={p}");
        let one = CostModel::new(1.0, 0.0);
        let bound = lower_bound(Kind::Allgather, Ports::UNI, p, 1, 1, &one).latency;
        assert!(
            (bound..=bound + 1.0).contains(&rounds),
            "p={p}: {rounds}, {bound}"
        );
    }
}

#[test]
fn an_odd_rank_costs_at_most_two_rounds() {
    for p in (3..=301).step_by(2) {
        let [rounds, volume] = times_of_fibonacci(p);
        let expected = match p {
            5 => 5.0,
            9 => 6.0,
            _ => times_of_fibonacci(p - 1)[0] + 2.0,
        };
        assert_eq!(rounds, expected, "p={p}");
        // A message with the last pair has a block more.
        let bound = 2.62 * p as f64 + rounds;
        assert!(volume < bound, "p={p}: {volume}");
    }
}

/// Rounds that a solver found, where a message costs only `alpha`; the volume is optimal.
#[test]
fn few_odd_ranks_take_the_rounds_of_one_more() {
    let cost = CostModel::new(1.0, 0.0);
    let rounds = [(5, 5.0), (9, 6.0), (11, 7.0), (13, 7.0), (15, 7.0)];
    let more = [(17, 8.0), (19, 8.0), (27, 9.0), (29, 9.0)];
    for (p, rounds) in rounds.into_iter().chain(more) {
        for kind in [Kind::Allgather, Kind::ReduceScatter, Kind::Barrier] {
            let elements = if kind == Kind::Barrier { 0 } else { p };
            let request = Request::new(kind, p, elements).ports(Ports::UNI);
            let schedule = request.cost(cost.clone()).plan("synthesized").unwrap();
            assert!(schedule.check().is_correct(), "{kind} {p}");
            let found = schedule.simulate(&cost).unwrap();
            assert_eq!(found.makespan(), rounds, "{kind} {p}");
            let sent = |step: &Step| if step.is_send() { step.len() } else { 0 };
            let volume: usize = schedule.programs().iter().flatten().map(sent).sum();
            let blocks = if kind == Kind::Allgather { p } else { 1 };
            assert_eq!(volume, p * (p - 1) * blocks, "{kind} {p}");
        }
        let allreduce = Request::allreduce(p, 1)
            .ports(Ports::UNI)
            .cost(cost.clone());
        assert_eq!(
            choose::choose(&allreduce).unwrap().time,
            rounds,
            "allreduce {p}"
        );
    }
    // Others are those of pairs.
    let request = Request::allgather(21, 1).ports(Ports::UNI);
    assert_eq!(
        request.plan("synthesized").unwrap(),
        request.plan("fibonacci").unwrap()
    );
}

/// Rounds that a solver found; each message is as long as the vector.
#[test]
fn scans_of_few_ranks_take_the_fewest_rounds_known() {
    let rounds = [3, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6];
    for (p, rounds) in (5..).zip(rounds) {
        for kind in [Kind::Scan, Kind::Exscan] {
            let request = Request::new(kind, p, 3).ports(Ports::UNI);
            let schedule = request.plan("synthesized").unwrap();
            assert!(schedule.check().is_correct(), "{kind} {p}");
            for (cost, time) in [
                (CostModel::new(1.0, 0.0), rounds),
                (CostModel::new(0.0, 1.0), 3 * rounds),
            ] {
                let found = schedule.simulate(&cost).unwrap().makespan();
                assert_eq!(found, f64::from(time), "{kind} {p}");
                let choice = choose::choose(&request.clone().cost(cost)).unwrap();
                assert!(
                    choice.time <= f64::from(time),
                    "{kind} {p}: {}",
                    choice.time
                );
            }
        }
    }
    // Others are those of recursive doubling.
    for p in [4, 17] {
        let request = Request::new(Kind::Scan, p, 1).ports(Ports::UNI);
        assert_eq!(
            request.plan("synthesized").unwrap(),
            request.plan("recursive-doubling").unwrap()
        );
    }
}

/// Where a message costs only `alpha`.
#[test]
fn a_gossip_takes_the_rounds_of_an_allgather() {
    let cost = CostModel::new(1.0, 0.0);
    for (ports, expected) in [
        (Ports::UNI, [(5, 5.0), (6, 5.0), (9, 6.0), (10, 6.0)]),
        (
            Ports::BI.with_k(2),
            [(3, 1.0), (9, 2.0), (10, 3.0), (27, 3.0)],
        ),
    ] {
        for (p, rounds) in expected {
            for kind in [Kind::Alltoall, Kind::Allreduce, Kind::Scan, Kind::Exscan] {
                let request = Request::new(kind, p, 3).ports(ports).cost(cost.clone());
                let schedule = request.plan("gossip").unwrap();
                assert!(schedule.check().is_correct(), "{kind} {p}");
                let time = schedule.simulate(&cost).unwrap().makespan();
                let uni_only = [Kind::Alltoall, Kind::Allreduce].contains(&kind);
                if uni_only && ports.can_relay() {
                    // Each port is used for one direction at a time.
                    let uni = request.clone().ports(Ports::UNI.with_k(ports.k()));
                    assert!(time >= rounds && time <= uni.time("gossip").unwrap());
                    continue;
                }
                assert_eq!(time, rounds, "{kind} {ports:?} {p}");
                let best = choose::choose(&request).unwrap();
                assert!(best.time <= rounds);
            }
        }
    }
    let many = Request::scan(257, 1).plan("gossip");
    assert!(many.unwrap_err().to_string().contains("at most 256 ranks"));
}

/// The time of all messages through the busiest port, and of the longest message.
fn busiest(request: &Request) -> (f64, f64) {
    let p = request.ranks();
    let (mut sent, mut received) = (vec![0.0; p], vec![0.0; p]);
    let mut longest = 0.0f64;
    for (i, &size) in request.get_blocks().unwrap().iter().enumerate() {
        let (from, to) = (i / p, i % p);
        if from != to && size > 0 {
            let time = request.transfer_time(size);
            sent[from] += time;
            received[to] += time;
            longest = longest.max(time);
        }
    }
    let both = sent.iter().zip(&received);
    let busiest = both.map(|(s, r)| {
        if request.get_ports().can_relay() {
            f64::max(*s, *r)
        } else {
            s + r
        }
    });
    (busiest.fold(0.0, f64::max), longest)
}

#[test]
fn times_of_list_scheduling_are_those_of_the_schedule_and_at_most_twice_the_least() {
    let cost = CostModel::new(10.0, 2.0);
    for p in 1..=14 {
        for sizes in pair_sizes(p) {
            for ports in [
                Ports::BI,
                Ports::UNI,
                Ports::BI.with_k(2),
                Ports::UNI.with_k(3),
            ] {
                let request = Request::alltoall(p, 4).blocks(sizes.clone());
                let request = request.ports(ports).cost(cost.clone());
                let time = executed(&request, "list-scheduling");
                assert_eq!(
                    closed_form(&request, "list-scheduling"),
                    Some(time),
                    "{ports:?} {sizes:?}"
                );
                if ports.k() == 1 {
                    let (least, longest) = busiest(&request);
                    assert!(time >= least && time <= (2.0 * least - longest).max(least));
                }
            }
        }
    }
}

/// Random blocks, with start-up times from none to about that of a block: the mean excess over
/// the busiest port is below 3%, the largest, of four ranks, below 30%.
#[test]
fn random_blocks_by_list_scheduling_take_little_more_than_the_busiest_port() {
    let mut random = Generator::new(5);
    let (mut sum, mut worst, mut all) = (0.0, 0.0f64, 0);
    for p in [4, 7, 12, 16, 24] {
        for alpha in [0.0, 100.0, 1000.0] {
            for _ in 0..4 {
                let sizes: Vec<usize> = (0..p * p).map(|_| random.below(1000)).collect();
                for ports in [Ports::BI, Ports::UNI] {
                    let request = Request::alltoall(p, 1000).blocks(sizes.clone());
                    let request = request.ports(ports).cost(CostModel::new(alpha, 1.0));
                    let excess = closed_form(&request, "list-scheduling").unwrap()
                        / busiest(&request).0
                        - 1.0;
                    sum += excess;
                    worst = worst.max(excess);
                    all += 1;
                }
            }
        }
    }
    let mean = sum / f64::from(all);
    assert!(mean < 0.03 && worst < 0.3, "mean {mean}, worst {worst}");
}

#[test]
fn every_root_of_a_butterfly_takes_the_same_time() {
    for p in [1, 2, 6, 8, 13] {
        let mut request = Request::reduce(p, 48).cost(CostModel::new(10.0, 1.0).gamma(0.5));
        for root in 0..p {
            request = request.root(root);
            assert_eq!(
                Some(executed(&request, "butterfly")),
                closed_form(&request, "butterfly"),
                "p={p} root={root}"
            );
        }
    }
}

#[test]
fn parts_of_a_ring_pay_where_computation_overlaps() {
    let cost = CostModel::new(1.0, 1.0).gamma(1.0).overlap(true);
    let time = |q| {
        let request = Request::allreduce(8, 8 * 120)
            .segment_count(q)
            .cost(cost.clone());
        executed(&request, "segmented-ring")
    };
    assert!(time(4) < time(1));
}

#[test]
fn rounds_of_the_fibonacci_census_are_within_one_of_the_bound_for_even_p() {
    let cost = CostModel::new(1.0, 0.0);
    let time = |p| {
        let request = Request::allreduce(p, 1).ports(Ports::UNI);
        closed_form(&request.cost(cost.clone()), "fibonacci-census").unwrap()
    };
    for p in (2..=200).chain([1000, 1001]) {
        let rounds = time(p);
        let bound = lower_bound(Kind::Allreduce, Ports::UNI, p, 1, 1, &cost).latency;
        let more = if p % 2 == 0 { 1.0 } else { 3.0 };
        assert!(
            (bound..=bound + more).contains(&rounds),
            "p={p}: {rounds}, {bound}"
        );
    }
    let rounds = [10, 64, 256, 1024].map(time);
    // A reduction and a broadcast take 8, 12, 16 and 20.
    assert_eq!(rounds, [6.0, 10.0, 13.0, 16.0]);
}

#[test]
fn messages_of_the_swing_allreduce_have_at_most_two_spans() {
    for p in 1..140 {
        let schedule = Request::allreduce(p, 5 * p + 3).plan("swing").unwrap();
        for step in schedule.programs().iter().flatten() {
            assert!(step.reads().len() <= 2, "p={p}: {step:?}");
        }
    }
}

#[test]
fn rounds_and_messages_of_pat_are_those_of_the_source() {
    const MAX_BLOCKS: usize = 8;
    let request = |p| Request::allgather(p, 1).cost(CostModel::new(1.0, 0.0));
    for p in (1..10).map(|d| 1usize << d) {
        let trees = MAX_BLOCKS.min(p / 2);
        let rounds = trees.ilog2() as usize + p / trees - 1;
        assert_eq!(executed(&request(p), "pat"), rounds as f64, "p={p}");
    }
    for p in 1..200 {
        let schedule = request(p).plan("pat").unwrap();
        for step in schedule.programs().iter().flatten() {
            let blocks: usize = step.reads().iter().map(|span| span.len).sum();
            assert!(blocks <= MAX_BLOCKS, "p={p}: {step:?}");
        }
    }
}

/// Block sizes: equal ones, and irregular ones some of which are empty.
fn block_sizes(ranks: usize) -> impl Iterator<Item = Vec<usize>> {
    let size = |r: usize, seed: usize| (r * r * seed + 3 * r + seed) % 5 / 2;
    let irregular = move |seed| (0..ranks).map(|r| size(r, seed)).collect();
    let equal = [0, 2].map(|size| vec![size; ranks]);
    equal.into_iter().chain((1..8).map(irregular))
}

/// On unidirectional ports the ranks of a round alternate between sending and receiving first. So a
/// round takes two messages, or three along an odd cycle, whichever of the messages are empty.
#[test]
fn rounds_of_unidirectional_ranks_take_up_to_three_messages() {
    let cost = CostModel::new(1.0, 0.0);
    let alltoalls = ["pairwise", "bruck"];
    let allgathers = [
        "ring",
        "neighbor-exchange",
        "swing",
        "pat",
        "sparbit",
        "bruck",
    ];
    let reduce_scatters = ["ring", "recursive-halving", "swing", "pat", "bruck"];
    let rows = [
        (Kind::Alltoall, &alltoalls[..]),
        (Kind::Allgather, &allgathers),
        (Kind::ReduceScatter, &reduce_scatters),
    ];
    for (kind, names) in rows {
        for (name, p) in names
            .iter()
            .flat_map(|name| (2..=20).map(move |p| (name, p)))
        {
            let blocks = |ports, sizes: Vec<usize>| {
                let elements = if kind == Kind::ReduceScatter {
                    sizes.iter().sum()
                } else {
                    2
                };
                let request = Request::new(kind, p, elements).blocks(sizes);
                request.ports(ports).cost(cost.clone())
            };
            let rounds = executed(&blocks(Ports::BI, vec![1; p]), name);
            let messages = if p.is_power_of_two() { 2.0 } else { 3.0 };
            let pairs = pair_sizes(p).filter(|_| kind == Kind::Alltoall);
            for sizes in block_sizes(p).chain(pairs) {
                let request = blocks(Ports::UNI, sizes);
                let schedule = request.plan(name).unwrap();
                assert!(schedule.check().is_correct(), "{name} {request:?}");
                let time = schedule.simulate(&cost).unwrap().makespan();
                assert!(time <= messages * rounds, "{name} {time} {request:?}");
            }
        }
    }
}

#[test]
fn blocks_of_an_allgather_are_sent_once_to_every_rank() {
    for name in [
        "ring",
        "neighbor-exchange",
        "swing",
        "pat",
        "sparbit",
        "bruck",
    ] {
        for p in (1..130).chain([240, 255, 256]) {
            let schedule = Request::allgather(p, 1).plan(name).unwrap();
            let volume = schedule.stats().unwrap().elements;
            assert!(
                volume == p * (p - 1) || (name == "swing" && !p.is_power_of_two()),
                "{name} {p}"
            );
        }
    }
}

#[test]
fn partners_of_swing_are_those_of_the_paper() {
    let schedule = Request::allgather(32, 1).plan("swing").unwrap();
    let sends = schedule.programs()[0].iter().filter(|step| step.is_send());
    let partners: Vec<_> = sends.filter_map(Step::peer).collect();
    // 1, -1, 3, -5, 11, from far to near.
    assert_eq!(partners, [11, 27, 3, 31, 1]);
}

/// The figures of Träff, arXiv 2507.04785.
#[test]
fn the_123_doubling_takes_rounds_of_four_thirds_of_the_ranks() {
    let cost = CostModel::new(1.0, 0.0);
    for p in (3..70).chain([100, 1000]) {
        let request = Request::exscan(p, 1).cost(cost.clone());
        let schedule = request.plan("123-doubling").unwrap();
        let report = schedule.check();
        assert!(report.is_correct() && report.keeps_order, "p={p}");
        let rounds = (4 * (p - 1)).div_ceil(3).next_power_of_two().ilog2();
        assert_eq!(
            executed(&request, "123-doubling"),
            f64::from(rounds),
            "p={p}"
        );
        // The last rank sends nothing: it combines all that it receives but the first.
        let last = schedule.programs()[p - 1].iter();
        let combinations = last.filter(|step| step.computes()).count();
        assert_eq!(combinations as u32, rounds - 1, "p={p}");
    }
}

#[test]
fn an_exclusive_scan_takes_the_fewest_rounds_and_then_the_fewest_combinations() {
    let time = |p, name, cost: CostModel| closed_form(&Request::exscan(p, 1).cost(cost), name);
    for p in 2..200usize {
        let rounds = p.next_power_of_two().ilog2();
        // Every choice of inclusive rounds is a binary number: the contributions collected.
        let least = (p - 1..1 << rounds).map(|n: usize| n.count_ones()).min();
        let combinations = (rounds + least.unwrap()).saturating_sub(2);
        let expected = [
            (CostModel::new(1.0, 0.0), rounds),
            (CostModel::new(0.0, 0.0).gamma(1.0), combinations),
        ];
        for (cost, count) in expected {
            let found = time(p, "recursive-doubling", cost);
            assert_eq!(found, Some(f64::from(count)), "p={p}");
        }
        let shifted = time(p, "shifted-doubling", CostModel::new(1.0, 0.0));
        let rounds = 1 + (p - 1).next_power_of_two().ilog2();
        assert_eq!(shifted, Some(f64::from(rounds)), "p={p}");
    }
}

/// Of an alltoall of blocks of 12 elements, whose rounds do not depend on each other.
#[test]
fn last_rounds_are_split_where_that_takes_less_time() {
    let time = |k, p, alpha| {
        let request = Request::alltoall(p, 12).ports(Ports::BI.with_k(k));
        executed(&request.cost(CostModel::new(alpha, 1.0)), "pairwise")
    };
    // Of 5 rounds through 3 ports the last two: 2 messages of 4 elements instead of one of 12.
    assert_eq!(time(3, 6, 1.0), 13.0 + 2.0 * 5.0);
    assert_eq!(time(3, 6, 4.0), 2.0 * 16.0);
    // Halves for ports that have nothing to do need no more messages one after another.
    assert_eq!(time(4, 3, 100.0), 106.0);
    assert_eq!(time(3, 7, 1.0), 2.0 * 13.0);
    assert_eq!(time(1, 6, 1.0), 5.0 * 13.0);
}

/// Sizes by destination are those of as many equal rows.
#[test]
fn alltoall_buffers_by_destination_are_those_of_equal_rows() {
    for p in 1..=9 {
        let row: Vec<usize> = (0..p).map(|to| to * to % 4).collect();
        let layout = |sizes: Vec<usize>| {
            let schedule = Request::alltoall(p, 3).blocks(sizes).plan("pairwise");
            schedule.unwrap().layout().to_vec()
        };
        assert_eq!(layout(row.clone()), layout(row.repeat(p)));
    }
}

/// Of one rank that has all data a pipelined ring is a chain; of equal blocks a ring.
#[test]
fn pipelined_rings_are_chains_of_one_block_and_rings_of_equal_blocks() {
    let cost = CostModel::new(10.0, 2.0);
    let time = |blocks: Vec<usize>, parts: usize| {
        let request = Request::new(Kind::Allgather, blocks.len(), 12).blocks(Some(blocks));
        let request = request.segment_count(parts).cost(cost.clone());
        let schedule = request.plan("pipelined-ring").unwrap();
        assert!(schedule.check().is_correct());
        schedule.simulate(&cost).unwrap().makespan()
    };
    for p in 2..12usize {
        for parts in [1, 2, 3, 4, 6, 12] {
            let part = 10.0 + 2.0 * (12 / parts) as f64;
            let mut one = vec![0; p];
            one[p / 2] = 12;
            assert_eq!(
                time(one, parts),
                (p + parts - 2) as f64 * part,
                "{p} {parts}"
            );
            let equal = ((p - 1) * parts) as f64 * part;
            assert_eq!(time(vec![12; p], parts), equal, "{p} {parts}");
        }
    }
}

/// The instance of section 3.2 of the n-block paper: block `r` is `(r mod 3) m/p`, which holds up
/// an unsegmented ring at each of its largest blocks.
#[test]
fn a_pipelined_ring_does_not_wait_for_large_blocks() {
    let (p, m) = (20, 400_000);
    let blocks: Vec<usize> = (0..p).map(|r| r % 3 * (m / p)).collect();
    let all: usize = blocks.iter().sum();
    let cost = CostModel::new(1.0, 0.001);
    let time = |name: &str, parts: usize| {
        let request = Request::new(Kind::Allgather, p, 2 * m / p).blocks(Some(blocks.clone()));
        request
            .segment_count(parts)
            .cost(cost.clone())
            .time(name)
            .unwrap()
    };
    // As a chain of all blocks with its best segment.
    let chain = ((p - 2) as f64).sqrt() + (all as f64 * 0.001).sqrt();
    let best = (1..60).map(|parts| time("pipelined-ring", parts));
    let best = best.fold(f64::INFINITY, f64::min);
    assert!(best < 1.1 * chain * chain, "{best} {chain}");
    assert!(1.3 * best < time("ring", 1), "{best}");
}
