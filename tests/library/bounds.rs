//! Tests of the lower bounds: the formulas of the tables, and no schedule is faster than its
//! bounds.

use std::collections::HashSet;

use oneport::machine::{Eager, Links};
use oneport::plan::{Segments, registry};
use oneport::random::Generator;
use oneport::simulate::Prepared;
use oneport::simulate::bounds::{LowerBounds, lower_bound};
use oneport::{
    Collective, CostModel, Kind, Layout, Order, Ports, Request, Schedule, Span, Spans, Step,
};

use crate::support::cases::{cases, is_long};

const COST: fn() -> CostModel = || CostModel::new(7.0, 3.0).gamma(2.0);

#[test]
fn symbols_of_the_tables() {
    let of = |kind, ports, p, m| {
        let b = lower_bound(kind, ports, p, m, 1, &COST());
        (b.latency, b.bandwidth, b.computation)
    };
    let (uni, bi) = (Ports::UNI, Ports::BI);
    assert_eq!(of(Kind::Broadcast, bi, 9, 8), (28.0, 24.0, 0.0));
    assert_eq!(of(Kind::Reduce, bi, 8, 8), (21.0, 24.0, 14.0));
    assert_eq!(of(Kind::Reduce, uni, 3, 6), (14.0, 36.0, 8.0)); // 2 beta m
    assert_eq!(of(Kind::Reduce, uni, 4, 6), (14.0, 27.0, 9.0)); // 3/2 beta m
    assert_eq!(of(Kind::Reduce, uni, 2, 6), (7.0, 18.0, 6.0)); // beta m
    assert_eq!(of(Kind::Gather, bi, 4, 6), (14.0, 54.0, 0.0));
    assert_eq!(of(Kind::Scatter, uni, 4, 6), (14.0, 54.0, 0.0));
    assert_eq!(of(Kind::Allgather, bi, 4, 6), (14.0, 54.0, 0.0));
    assert_eq!(of(Kind::Allgather, uni, 4, 6), (28.0, 108.0, 0.0));
    assert_eq!(of(Kind::ReduceScatter, bi, 4, 24), (14.0, 54.0, 36.0));
    assert_eq!(of(Kind::Allreduce, bi, 4, 24), (14.0, 108.0, 36.0));
    assert_eq!(of(Kind::Allreduce, uni, 4, 24), (28.0, 216.0, 36.0));
    assert_eq!(of(Kind::Alltoall, bi, 4, 6), (14.0, 54.0, 0.0));
    assert_eq!(of(Kind::Alltoall, uni, 4, 6), (28.0, 108.0, 0.0));
    assert_eq!(of(Kind::Broadcast, bi.with_k(2), 9, 8), (14.0, 12.0, 0.0));
    assert_eq!(of(Kind::Broadcast, bi.with_k(usize::MAX), 9, 8).0, 7.0);
    for kind in Kind::ALL {
        assert_eq!(of(kind, bi, 1, 8), (0.0, 0.0, 0.0));
        assert_eq!(of(kind, uni, 0, 8), (0.0, 0.0, 0.0));
        let alone = if kind.has_data() { 0.0 } else { 7.0 * 5.0 };
        assert_eq!(of(kind, uni, 8, 0), (alone, 0.0, 0.0));
    }
}

#[test]
fn no_planned_schedule_is_faster_than_its_bounds() {
    let costs = [
        (7.0, 3.0, 2.0),
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 0.0),
        (0.0, 0.0, 1.0),
        (1.0, 1.0, 1.0),
    ];
    for algorithm in registry::all() {
        for ports in Ports::KINDS {
            for p in (1..=20).filter(|p| is_long() || *p <= 6 || p % 4 == 1) {
                for (m, s) in [(0, 1), (1, 1), (5, 2), (40, 40), (40, 1), (64, 8)] {
                    for overlap in [false, true] {
                        let r = Request::new(algorithm.collective, p, m)
                            .ports(ports)
                            .segment_elems(s);
                        let Ok(schedule) = algorithm.plan(&r) else {
                            continue;
                        };
                        let schedule = schedule.with_element_bytes(4);
                        let prepared = Prepared::new(&schedule, overlap).unwrap();
                        let ideal = costs.map(|(a, b, gamma)| CostModel::new(a, b).gamma(gamma));
                        let late = [
                            (9.0, 0.0, Eager::None),
                            (0.0, 6.0, Eager::None),
                            (40.0, 6.0, Eager::All),
                            (0.0, 0.0, Eager::UpTo(8)),
                        ]
                        .map(|(late, latency, eager)| {
                            let mut arrivals = vec![0.0; p];
                            arrivals[p - 1] = late;
                            let cost = CostModel::new(7.0, 3.0).latency(latency);
                            cost.arrivals(arrivals).eager(eager)
                        });
                        for cost in ideal.into_iter().chain(late) {
                            let cost = cost.overlap(overlap);
                            let time = prepared.simulate(&cost).unwrap().makespan();
                            let bounds = schedule.lower_bound(&cost);
                            assert!(
                                bounds.largest.max(bounds.block_time) <= time * (1.0 + 1e-12),
                                "{} {p} {m} {ports:?} {cost:?}: {bounds:?}, {time}",
                                algorithm.name()
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Träff, n-block broadcast schedules, section 1: `n - 1 + ceil(log2 p)` rounds for `n` blocks,
/// which the circulant schedules take.
#[test]
fn schedules_of_whole_blocks_are_judged_by_the_rounds_of_as_many_blocks() {
    let of = |p: usize, n: usize, name: &str, kind: Kind, ports: Ports| {
        let request = Request::new(kind, p, 6 * n).segment_elems(6).ports(ports);
        let schedule = request.plan(name).unwrap().with_element_bytes(2);
        let cost = CostModel::new(10.0, 3.0);
        let time = schedule.simulate(&cost).unwrap().makespan();
        (time, schedule.lower_bound(&cost))
    };
    // The paper's platform: 20 ranks, 12 blocks, 16 rounds.
    let (time, bounds) = of(20, 12, "circulant", Kind::Broadcast, Ports::BI);
    assert_eq!((bounds.blocks, bounds.block_rounds), (12, 16));
    assert_eq!((time, bounds.block_time), (16.0 * 46.0, 16.0 * 46.0));
    for p in 2..40usize {
        for n in [1, 2, 5, 12] {
            let rounds = (n - 1 + p.next_power_of_two().trailing_zeros() as usize) as f64;
            for kind in [Kind::Broadcast, Kind::Reduce] {
                let (time, bounds) = of(p, n, "circulant", kind, Ports::BI);
                assert_eq!((time, bounds.block_time), (rounds * 46.0, rounds * 46.0));
                assert_eq!(bounds.block_rounds as f64, rounds);
                let (time, bounds) = of(p, n, "chain", kind, Ports::BI);
                assert_eq!(
                    (time, bounds.block_time),
                    ((p + n - 2) as f64 * 46.0, rounds * 46.0)
                );
            }
            // Half of the vector at once, on two ports: one round less.
            let (time, bounds) = of(p, 2 * n, "multi-tree", Kind::Broadcast, Ports::BI.with_k(2));
            assert!(bounds.block_time <= time, "{p} {n}: {bounds:?}");
        }
    }
    // A root that sends parts of the vector is judged by these.
    let (_, bounds) = of(16, 4, "van-de-geijn", Kind::Broadcast, Ports::BI);
    assert_ne!(bounds.blocks, 4);
    // Where senders do not wait, and for other collectives, there is no such bound.
    let (_, bounds) = of(16, 4, "circulant-blocks", Kind::Allgather, Ports::BI);
    assert_eq!((bounds.blocks, bounds.block_time), (0, 0.0));
}

/// Tests irregular blocks: one huge block, some or all blocks empty.
#[test]
fn no_schedule_with_irregular_blocks_is_faster_than_its_bounds() {
    let costs = [
        (7.0, 3.0, 2.0),
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 0.0),
        (0.0, 0.0, 1.0),
    ];
    let mut compared = 0;
    for p in (1..=12).chain([16, 31]) {
        let sizes: [Vec<usize>; 4] = [
            (0..p).map(|r| if r == p / 3 { 50 } else { 0 }).collect(),
            (0..p)
                .map(|r| if r == p - 1 { 200 } else { r % 3 })
                .collect(),
            (0..p).map(|r| (7 * r + 3) % (p + 2)).collect(),
            vec![0; p],
        ];
        for blocks in sizes {
            let (all, max) = (
                blocks.iter().sum(),
                blocks.iter().copied().max().unwrap_or(0),
            );
            for algorithm in registry::all().iter().filter(|a| a.collective.has_blocks()) {
                let several = [Ports::UNI.with_k(2), Ports::BI.with_k(3)];
                for ports in Ports::KINDS.into_iter().chain(several) {
                    let of_vector = algorithm.collective == Kind::ReduceScatter;
                    let r =
                        Request::new(algorithm.collective, p, if of_vector { all } else { max })
                            .blocks(blocks.clone())
                            .ports(ports)
                            .root(p / 2);
                    let Ok(schedule) = algorithm.plan(&r) else {
                        continue;
                    };
                    let schedule = schedule.with_element_bytes(4);
                    let prepared = Prepared::new(&schedule, false).unwrap();
                    for (alpha, beta, gamma) in costs {
                        // Copies that cost less than messages, or more.
                        let cost = CostModel::new(alpha, beta).gamma(gamma);
                        let cost = cost.gamma_copy(2.0 * gamma);
                        let time = prepared.simulate(&cost).unwrap().makespan();
                        let bounds = schedule.lower_bound(&cost);
                        assert!(
                            bounds.largest <= time * (1.0 + 1e-12),
                            "{} {p} {blocks:?} {ports:?}: {bounds:?}, {time}",
                            algorithm.name()
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1000);
}

/// `max_r (M - m_r) beta` for allgatherv; the sums over all partners for alltoallv.
#[test]
fn bounds_of_irregular_blocks() {
    let bounds = |kind, name, ports| {
        let mut r = Request::new(kind, 4, 9)
            .blocks(vec![2, 9, 0, 5])
            .ports(ports);
        if kind == Kind::ReduceScatter {
            r = r.segments(Segments::whole(16));
        }
        let schedule = r.plan(name).unwrap();
        let b = schedule.lower_bound(&COST());
        (b.latency, b.bandwidth, b.computation)
    };
    let (uni, bi) = (Ports::UNI, Ports::BI);
    assert_eq!(bounds(Kind::Allgather, "ring", bi), (14.0, 48.0, 0.0));
    // Three ranks that know each other's blocks: the golden ratio to the power of 3 is at least 3.
    assert_eq!(bounds(Kind::Allgather, "ring", uni), (21.0, 72.0, 0.0));
    assert_eq!(bounds(Kind::ReduceScatter, "ring", bi), (14.0, 48.0, 24.0));
    // Rank 1 receives 27, rank 2 sends 16; together all send 48.
    assert_eq!(bounds(Kind::Alltoall, "pairwise", bi), (14.0, 81.0, 0.0));
    // Rank 1 receives 27 and sends 7.
    assert_eq!(bounds(Kind::Alltoall, "pairwise", uni), (14.0, 102.0, 0.0));
    // All ranks send only to rank 1, which receives from all.
    let r = Request::alltoall(8, 5).blocks(vec![0, 5, 0, 0, 0, 0, 0, 0]);
    let schedule = r.plan("pairwise").unwrap();
    assert_eq!(schedule.lower_bound(&COST()).latency, 21.0);
}

/// An exchange between two ranks attains the bounds of an allreduce.
#[test]
fn an_exchange_of_two_ranks_attains_the_bounds() {
    let mut b = Schedule::builder(2, Ports::BI, Collective::Allreduce);
    let (mine, theirs) = (Span::new(0, 6), Span::new(6, 6));
    for rank in 0..2 {
        b.layout(rank, 12, [mine], [mine]);
        b.step(rank, Step::send(1 - rank, mine));
        b.step(rank, Step::recv(1 - rank, theirs));
        b.step(
            rank,
            Step::combine(theirs, mine, Order::by_rank(rank, 1 - rank)),
        );
    }
    let schedule = b.build().unwrap();
    let time = |cost: &CostModel| schedule.simulate(cost).unwrap().makespan();
    for cost in [CostModel::new(1.0, 0.0), CostModel::new(0.0, 1.0)] {
        assert_eq!(schedule.lower_bound(&cost).largest, time(&cost));
    }
    let regular = lower_bound(Kind::Allreduce, Ports::BI, 2, 6, 1, &COST());
    assert_eq!(schedule.lower_bound(&COST()), regular);
}

#[test]
fn irregular_blocks() {
    let layout = |blocks: &[usize], gather: bool| -> Vec<Layout> {
        let all = blocks.iter().sum();
        let own = |&n: &usize| Layout {
            len: all,
            input: [Span::new(0, n)].into_iter().collect(),
            output: [Span::new(0, if gather { all } else { 0 })]
                .into_iter()
                .collect(),
        };
        blocks.iter().map(own).collect()
    };
    let bounds = |collective, ports, layouts: &[Layout]| {
        let b = bounds_of_layouts(&collective, ports, layouts.to_vec());
        (b.latency, b.bandwidth, b.computation)
    };
    let (uni, bi) = (Ports::UNI, Ports::BI);
    // Three ranks have data, of which the root receives 8 elements.
    let to_root = layout(&[5, 4, 0, 3], false);
    let gather = Collective::Gather { root: 1 };
    assert_eq!(bounds(gather, bi, &to_root), (14.0, 24.0, 0.0));
    // The empty rank receives 12 elements; together all receive 36.
    let to_all = layout(&[5, 4, 0, 3], true);
    let allgather = Collective::Allgather;
    assert_eq!(bounds(allgather.clone(), bi, &to_all), (14.0, 36.0, 0.0));
    assert_eq!(bounds(allgather.clone(), uni, &to_all), (21.0, 54.0, 0.0));
    let empty = layout(&[0, 0], true);
    assert_eq!(bounds(allgather, bi, &empty), (0.0, 0.0, 0.0));
}

#[test]
fn slow_and_missing_links() {
    let cost = CostModel::heterogeneous(Links {
        alpha: vec![vec![Some(0.0), Some(5.0)], vec![None, Some(0.0)]],
        beta: vec![vec![Some(0.0), Some(2.0)], vec![None, Some(0.0)]],
        gamma: vec![1.0, 3.0],
        gamma_copy: vec![],
        ..Links::default()
    });
    let b = lower_bound(Kind::Reduce, Ports::BI, 2, 8, 1, &cost.unwrap());
    assert_eq!((b.latency, b.bandwidth, b.computation), (5.0, 16.0, 6.0));
    assert_eq!((b.path, b.port), (21.0, 21.0));
}

/// A broadcast whose last rank starts to receive after two messages, and a gather whose root is
/// always busy.
#[test]
fn path_and_port() {
    let cost = CostModel::new(7.0, 3.0);
    let b = lower_bound(Kind::Broadcast, Ports::BI, 8, 100, 2, &cost);
    assert_eq!((b.path, b.port), (2.0 * 13.0 + 607.0, 607.0));
    assert_eq!(b.largest, b.path);
    let b = lower_bound(Kind::Gather, Ports::UNI, 8, 100, 1, &cost);
    assert_eq!((b.path, b.port), (2.0 * 10.0 + 307.0, 7.0 + 2100.0));
    // A message takes alpha + beta m, whatever moves.
    for kind in Kind::ALL
        .into_iter()
        .filter(|k| !k.has_targets() && k.has_data())
    {
        for ports in [Ports::UNI, Ports::BI, Ports::BI.with_k(3)] {
            let one = lower_bound(kind, ports, 2, 1, 1, &cost).largest;
            assert!(one >= 8.5, "{kind:?} {one}");
        }
    }
    // The best schedule of a segmented broadcast attains the bound.
    let r = Request::broadcast(2, 30).cost(cost.clone());
    let chain = registry::find(Kind::Broadcast, "chain").unwrap();
    let time = chain.plan(&r).unwrap().simulate(&cost).unwrap().makespan();
    assert_eq!(
        lower_bound(Kind::Broadcast, Ports::BI, 2, 30, 1, &cost).largest,
        time
    );
}

/// A gather to rank 0 of two ports per rank and direction, with a step list for each rank. Rank 0
/// has its own block of `blocks[0]` at the start, where it belongs.
fn gather_in_place(blocks: &[usize], steps: &[(usize, Step)]) -> Schedule {
    let gather = Collective::Gather { root: 0 };
    let mut b = Schedule::builder(blocks.len(), Ports::BI.with_k(2), gather);
    let all: usize = blocks.iter().sum();
    for (rank, &block) in blocks.iter().enumerate() {
        let own = Span::new(0, block);
        match rank {
            0 => b.layout(0, all, [own], [Span::new(0, all)]),
            _ => b.layout(rank, all, [own], []),
        };
    }
    for (rank, step) in steps {
        b.step(*rank, step.clone());
    }
    b.build().unwrap()
}

#[test]
fn bounds_of_blocks_hold_for_split_blocks_and_blocks_in_place() {
    let send = |port, start, len| Step::send(0, Span::new(start, len)).on_port(port);
    let recv = |from, port, start, len| Step::recv(from, Span::new(start, len)).on_port(port);
    let cost = CostModel::new(4.0, 1.0).gamma_copy(1.0);
    let bound_and_time = |schedule: &Schedule| {
        assert!(schedule.check().is_correct());
        let time = schedule.simulate(&cost).unwrap().makespan();
        (schedule.lower_bound(&cost).largest, time)
    };
    // Three blocks of 90 on two ports, the third one in halves: less than two whole blocks take.
    let halves = [
        (1, send(0, 0, 90)),
        (2, send(0, 0, 90)),
        (3, send(0, 0, 45)),
        (3, send(1, 45, 45)),
        (0, recv(1, 0, 5, 90)),
        (0, recv(2, 1, 95, 90)),
        (0, recv(3, 0, 185, 45)),
        (0, recv(3, 1, 230, 45)),
    ];
    let split = gather_in_place(&[5, 90, 90, 90], &halves);
    assert_eq!(bound_and_time(&split), (4.0 + 135.0, 2.0 * 4.0 + 135.0));
    let whole = [
        (1, send(0, 0, 90)),
        (2, send(0, 0, 90)),
        (3, send(0, 0, 90)),
        (0, recv(1, 0, 5, 90)),
        (0, recv(2, 1, 95, 90)),
        (0, recv(3, 0, 185, 90)),
    ];
    let whole = gather_in_place(&[5, 90, 90, 90], &whole);
    assert_eq!(bound_and_time(&whole), (4.0 + 180.0, 2.0 * 4.0 + 180.0));
    // The scatter backwards: the same bounds.
    for (schedule, bound) in [(split, 139.0), (whole, 184.0)] {
        let scatter = schedule.into_reversed().unwrap();
        assert_eq!(bound_and_time(&scatter).0, bound);
    }
    // A root that sends its block away and receives it in its place: no copy, whatever it costs.
    let mut b = Schedule::builder(2, Ports::BI, Collective::Gather { root: 0 });
    b.layout(0, 30, [Span::new(20, 10)], [Span::new(0, 20)]);
    b.layout(1, 20, [Span::new(10, 10)], []);
    b.step(0, Step::send(1, Span::new(20, 10)));
    b.step(1, Step::recv(0, Span::new(0, 10)));
    b.step(1, Step::send(0, Span::new(0, 20)));
    b.step(0, Step::recv(1, Span::new(0, 20)));
    let away = b.build().unwrap();
    assert!(away.check().is_correct());
    let cost = CostModel::new(4.0, 1.0).gamma_copy(100.0);
    let time = away.simulate(&cost).unwrap().makespan();
    let bound = away.lower_bound(&cost).largest;
    assert_eq!((bound, time), (4.0 + 10.0 + 10.0, 2.0 * 4.0 + 30.0));
    // On two ports it comes back on the one with less to carry: that of the blocks is no longer.
    let mut b = Schedule::builder(3, Ports::BI.with_k(2), Collective::Gather { root: 0 });
    b.layout(0, 29, [Span::new(0, 3)], [Span::new(3, 26)]);
    b.layout(1, 18, [Span::new(0, 18)], []);
    b.layout(2, 8, [Span::new(3, 5)], []);
    b.step(0, Step::send(2, Span::new(0, 3)));
    b.step(0, recv(1, 0, 6, 18));
    let back = [Span::new(3, 3), Span::new(24, 5)];
    b.step(0, Step::recv(2, back).on_port(1));
    b.step(1, Step::send(0, Span::new(0, 18)));
    b.step(2, Step::recv(0, Span::new(0, 3)));
    b.step(2, Step::send(0, Span::new(0, 8)));
    let back = b.build().unwrap();
    assert!(back.check().is_correct());
    let cost = CostModel::new(1.0, 1.0).gamma_copy(10.0);
    let time = back.simulate(&cost).unwrap().makespan();
    assert_eq!((back.lower_bound(&cost).largest, time), (19.0, 19.0));
}

#[test]
fn bounds_of_gathers_in_the_paper() {
    let bound = |request: &Request, name: &str| {
        let schedule = request.plan(name).unwrap();
        let cost = request.get_cost();
        let time = schedule.simulate(cost).unwrap().makespan();
        (schedule.lower_bound(cost).largest, time)
    };
    // Lemma 2: alpha + beta m, which is optimal.
    let blocks = vec![10, 10, 10, 10, 500, 10, 10, 10, 10];
    let cost = CostModel::new(20.0, 1.0).gamma_copy(1.0);
    let gather = Request::gather(9, 500).blocks(blocks).root(4).cost(cost);
    assert_eq!(bound(&gather, "two"), (600.0, 600.0));
    let scatter = gather.collective(Kind::Scatter);
    assert_eq!(bound(&scatter, "two"), (600.0, 600.0));
    // Section 2.3 with k ports: the best partition.
    for (blocks, k, least) in [
        (vec![3, 10, 1, 1], 3, 14.0),
        (vec![9, 9, 9, 9], 2, 4.0 + 18.0),
        (vec![3, 9, 9, 9], 2, 4.0 + 18.0),
    ] {
        let request = Request::gather(4, 10)
            .blocks(blocks)
            .ports(Ports::BI.with_k(k))
            .cost(CostModel::new(4.0, 1.0));
        assert_eq!(bound(&request, "ported").0, least);
    }
    // min_j (alpha_rj + beta_rj sum) + gamma_r m_r.
    let cost = CostModel::heterogeneous(Links {
        alpha: vec![vec![Some(1.0), Some(9.0), Some(1.0)]; 3],
        beta: vec![vec![Some(2.0), Some(2.0), Some(3.0)]; 3],
        gamma_copy: vec![0.0, 2.0, 0.0],
        ..Links::default()
    });
    let request = Request::scatter(3, 4).root(1).cost(cost.unwrap());
    assert_eq!(bound(&request, "linear").0, (1.0 + 2.0 * 8.0) + 2.0 * 4.0);
}

/// Costs of links that differ by up to 100 times.
fn random_links(random: &mut Generator, p: usize) -> CostModel {
    let matrix = |random: &mut Generator| -> Vec<Vec<Option<f64>>> {
        let cost = |random: &mut Generator| 1.0 + random.below(100) as f64;
        (0..p)
            .map(|_| (0..p).map(|_| Some(cost(random))).collect())
            .collect()
    };
    let links = Links {
        alpha: matrix(random),
        beta: matrix(random),
        gamma: vec![],
        gamma_copy: vec![],
        ..Links::default()
    };
    CostModel::heterogeneous(links).unwrap()
}

#[test]
fn no_schedule_over_random_links_is_faster_than_its_bounds() {
    let mut random = Generator::new(8);
    let mut copies = Generator::new(9);
    let mut compared = 0;
    // By collective: the times of the best schedules relative to their bounds, and how many.
    let mut gaps = std::collections::BTreeMap::new();
    for round in 0..cases(30, 60) {
        let p = if round % 2 == 0 {
            8
        } else {
            2 + random.below(10)
        };
        let mut cost = random_links(&mut random, p);
        if round % 2 == 1 {
            let mut links = cost.links().unwrap().clone();
            links.gamma_copy = (0..p).map(|_| copies.below(200) as f64).collect();
            cost = CostModel::heterogeneous(links).unwrap();
        }
        let m: usize = [1, 7, 60, 1000][random.below(4)];
        let root = random.below(p);
        let ports = [
            Ports::BI,
            Ports::UNI,
            Ports::BI.with_k(2),
            Ports::UNI.with_k(2),
        ][round / 2 % 4];
        let blocks: Vec<usize> = (0..p).map(|_| random.below(4) * random.below(50)).collect();
        for kind in Kind::ALL {
            let mut best = f64::INFINITY;
            for algorithm in registry::of(kind) {
                for s in [m, m.div_ceil(3), m.div_ceil(20)] {
                    let mut r = Request::new(kind, p, m).root(root).ports(ports);
                    r = r.cost(cost.clone()).segment_elems(s);
                    if kind.has_blocks() && round % 3 == 0 {
                        let all: usize = blocks.iter().sum();
                        let max = blocks.iter().copied().max().unwrap();
                        let of_vector = kind == Kind::ReduceScatter;
                        let whole = Segments::whole(if of_vector { all } else { max });
                        r = r.segments(whole).blocks(blocks.clone());
                    }
                    let Ok(schedule) = algorithm.plan(&r) else {
                        continue;
                    };
                    let schedule = schedule.with_element_bytes(2);
                    let time = schedule.simulate(&cost).unwrap().makespan();
                    let bounds = schedule.lower_bound(&cost);
                    assert!(
                        bounds.largest <= time * (1.0 + 1e-12),
                        "{} {} {p} {ports:?}: {bounds:?}, {time}",
                        kind.name(),
                        algorithm.name()
                    );
                    compared += 1;
                    if bounds.largest > 0.0 {
                        best = best.min(time / bounds.largest);
                    }
                }
            }
            if p == 8 && ports == Ports::BI && best.is_finite() {
                let (sum, n) = gaps.entry(kind.name()).or_insert((0.0, 0.0));
                (*sum, *n) = (*sum + best, *n + 1.0);
            }
        }
    }
    assert!(compared > cases(5000, 10_000));
    let gap = |kind: Kind| gaps[kind.name()].0 / gaps[kind.name()].1;
    // With the least alpha and the least beta of all links these were about 9 and 4.
    assert!(gap(Kind::Broadcast) < 3.5 && gap(Kind::Gather) < 3.2);
}

fn chain_reduce(p: usize, q: usize) -> Schedule {
    let mut b = Schedule::builder(p, Ports::BI, Collective::Reduce { root: 0 });
    for r in 0..p {
        let out = (r == 0).then_some(Span::new(0, q));
        b.layout(r, q, [Span::new(0, q)], out);
        for s in 0..q {
            let span = Span::new(s, 1);
            if r + 1 < p {
                b.step(r, Step::recv_combine(r + 1, span, Order::MineFirst));
            }
            if r > 0 {
                b.step(r, Step::send(r - 1, span));
            }
        }
    }
    b.build().unwrap()
}

#[test]
fn chain_takes_its_closed_form() {
    for p in 2..12usize {
        for q in 1..9usize {
            let s = chain_reduce(p, q);
            let cost = CostModel::new(1.0, 1.0).gamma(1.0);
            let time = s.simulate(&cost).unwrap().makespan();
            let expected = (p + q - 2) as f64 * 3.0;
            assert_eq!(time, expected, "p={p} q={q}");
            assert_eq!(s.stats().unwrap().segments_held, 1);
        }
    }
}

/// The least number of messages until each rank knows the data that it needs, by trying all orders
/// of messages: knowledge is a set of ranks by rank, and a message adds all that its sender knows.
fn least_messages(needs: &[u32]) -> usize {
    let p = needs.len();
    let start: Vec<u32> = (0..p).map(|rank| 1 << rank).collect();
    let done = |known: &[u32]| {
        known
            .iter()
            .zip(needs)
            .all(|(known, needs)| needs & !known == 0)
    };
    let (mut seen, mut now) = (HashSet::from([start.clone()]), vec![start]);
    for messages in 0.. {
        if now.iter().any(|known| done(known)) {
            return messages;
        }
        let mut next = Vec::new();
        for known in now {
            for (from, to) in (0..p).flat_map(|from| (0..p).map(move |to| (from, to))) {
                let mut known = known.clone();
                known[to] |= known[from];
                if seen.insert(known.clone()) {
                    next.push(known);
                }
            }
        }
        now = next;
    }
    unreachable!("every message may be sent")
}

/// The bounds of whatever schedule has these layouts.
fn bounds_of_layouts(collective: &Collective, ports: Ports, layouts: Vec<Layout>) -> LowerBounds {
    let programs = vec![Vec::new(); layouts.len()];
    let schedule = Schedule::new(ports, collective.clone(), layouts, programs).unwrap();
    schedule.lower_bound(&COST())
}

/// The bound of messages of an allgather or a reduce_scatter with these sizes of blocks.
fn bound_of_messages(collective: &Collective, blocks: &[usize]) -> usize {
    let len = blocks.iter().sum::<usize>();
    let all = Spans::from(Span::new(0, len));
    let layouts = blocks.iter().enumerate().map(|(rank, &block)| {
        let own = Spans::from(Span::new(blocks[..rank].iter().sum(), block));
        let (input, output) = match collective {
            Collective::Allgather => (own, all.clone()),
            _ => (all.clone(), own),
        };
        Layout { len, input, output }
    });
    bounds_of_layouts(collective, Ports::BI, layouts.collect()).messages
}

#[test]
fn as_many_messages_are_needed_as_the_best_order_has() {
    for p in 2..=4usize {
        let all = (1 << p) - 1;
        let every = least_messages(&vec![all; p]);
        assert_eq!(every, 2 * (p - 1));
        for kind in [
            Kind::Allreduce,
            Kind::Allgather,
            Kind::Alltoall,
            Kind::Barrier,
        ] {
            let bound = lower_bound(kind, Ports::BI, p, 8, 1, &COST()).messages;
            assert_eq!(bound, every, "{kind} on {p} ranks");
        }
        // The ranks of a set have blocks that are not empty.
        for set in 1..=all {
            let in_set = |rank: usize| set & (1 << rank) != 0;
            let blocks: Vec<usize> = (0..p).map(|rank| usize::from(in_set(rank))).collect();
            let needs: Vec<u32> = (0..p)
                .map(|rank| if in_set(rank) { all } else { 0 })
                .collect();
            let gathered = bound_of_messages(&Collective::Allgather, &blocks);
            assert_eq!(gathered, least_messages(&vec![set; p]), "{blocks:?}");
            let scattered = bound_of_messages(&Collective::ReduceScatter, &blocks);
            assert_eq!(scattered, least_messages(&needs), "{blocks:?}");
        }
        for elements in 1..=p {
            let bound = lower_bound(Kind::ReduceScatter, Ports::BI, p, elements, 1, &COST());
            let needs: Vec<u32> = (0..p).map(|r| if r < elements { all } else { 0 }).collect();
            assert_eq!(
                bound.messages,
                least_messages(&needs),
                "{elements} elements"
            );
        }
        for (kind, needs) in [
            (Kind::Broadcast, vec![1; p]),
            (Kind::Scan, (0..p).map(|rank| (2 << rank) - 1).collect()),
            (Kind::Exscan, (0..p).map(|rank| (1 << rank) - 1).collect()),
        ] {
            let bound = lower_bound(kind, Ports::BI, p, 8, 1, &COST()).messages;
            assert!(bound <= least_messages(&needs), "{kind} on {p} ranks");
        }
    }
    // Blocks of pairs: rank 0 sends to rank 1 alone, which sends nothing.
    let mut b = Schedule::builder(3, Ports::BI, Collective::Alltoall);
    for rank in 0..3 {
        let spans =
            |other| [0, 1, 2].map(|to| Span::new(to, usize::from(rank != to && to == other)));
        let input = if rank == 0 { spans(1) } else { spans(3) };
        let output = Span::new(3, usize::from(rank == 1));
        b.layout(rank, 4, input, output);
    }
    assert_eq!(b.build().unwrap().lower_bound(&COST()).messages, 1);
}
