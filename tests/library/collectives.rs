//! The table of collectives, against naive statements of what each of them is.

use oneport::check::FindingKind;
use oneport::plan::registry;
use oneport::run::{Operator, inputs, oracle};
use oneport::schedule::collective::Expected;
use oneport::{Collective, CostModel, Kind, Layout, Ports, Request, Schedule, Span, Step};

/// By rank and element of its output: the ranks whose inputs are combined there, and the index in
/// these; of `p` ranks with vectors of `2 p` elements or blocks of 2.
fn naive(kind: Kind, p: usize, root: usize) -> Vec<Vec<(Vec<usize>, usize)>> {
    let all: Vec<usize> = (0..p).collect();
    let vector = |ranks: Vec<usize>| (0..2 * p).map(|e| (ranks.clone(), e)).collect();
    let block_of = |ranks: Vec<usize>, r: usize| vec![(ranks.clone(), 2 * r), (ranks, 2 * r + 1)];
    let blocks = |size: usize, at: usize| -> Vec<(Vec<usize>, usize)> {
        let of = |s| (0..size).map(move |e| (vec![s], at + e));
        (0..p).flat_map(of).collect()
    };
    let of = |r: usize| match kind.name() {
        "broadcast" => vector(vec![root]),
        "multicast" if r.is_multiple_of(2) => vector(vec![root]),
        "reduce" if r == root => vector(all.clone()),
        "allreduce" => vector(all.clone()),
        "scan" => vector((0..=r).collect()),
        "exscan" if r > 0 => vector((0..r).collect()),
        "gather" if r == root => blocks(2, 0),
        "allgather" => blocks(2, 0),
        "barrier" => blocks(1, 0),
        "scatter" => block_of(vec![root], r),
        "reduce_scatter" => block_of(all.clone(), r),
        "alltoall" => blocks(2, 2 * r),
        _ => Vec::new(),
    };
    all.iter().map(|&r| of(r)).collect()
}

/// Number of elements of the input of each rank, by the same sizes.
fn naive_inputs(kind: Kind, p: usize, root: usize) -> Vec<usize> {
    let of = |r: usize| match kind.name() {
        "broadcast" | "multicast" | "scatter" if r != root => 0,
        "gather" | "allgather" => 2,
        "barrier" => 1,
        _ => 2 * p,
    };
    (0..p).map(of).collect()
}

#[test]
fn outputs_are_what_each_collective_promises() {
    for kind in Kind::ALL {
        for (p, root) in [(1, 0), (2, 1), (5, 3), (6, 0)] {
            let collective = match kind {
                kind if kind.has_targets() => {
                    let targets = (0..p).step_by(2).collect();
                    kind.with_root(root).with_targets(targets)
                }
                kind => kind.with_root(root),
            };
            assert_eq!(collective.kind(), kind);
            let outputs = naive(kind, p, root);
            let layout = |(input, output): (usize, &Vec<_>)| Layout {
                len: input + output.len(),
                input: Span::new(0, input).into(),
                output: Span::new(input, output.len()).into(),
            };
            let sizes = naive_inputs(kind, p, root).into_iter().zip(&outputs);
            let layouts: Vec<Layout> = sizes.map(layout).collect();
            for (rank, output) in outputs.iter().enumerate() {
                let expected = collective.expected_output(&layouts, rank).unwrap();
                let of = |part: &Expected| {
                    let (ranks, from) = (part.ranks.clone(), part.offset);
                    let element = move |e| (ranks.clone().collect(), from + e);
                    (0..part.len).map(element).collect::<Vec<_>>()
                };
                let expected: Vec<_> = expected.iter().flat_map(of).collect();
                assert_eq!(&expected, output, "{kind} p={p} rank {rank}");
            }
        }
    }
}

/// Input and output of the constructors' buffers are as long as the collective has them.
#[test]
fn buffers_have_what_each_collective_needs() {
    let constructors: [fn(usize, usize) -> oneport::schedule::Builder; 10] = [
        Schedule::broadcast,
        Schedule::reduce,
        Schedule::allreduce,
        Schedule::gather,
        Schedule::scatter,
        Schedule::allgather,
        Schedule::reduce_scatter,
        Schedule::alltoall,
        Schedule::scan,
        Schedule::exscan,
    ];
    for start in constructors {
        for (p, root) in [(1, 0), (2, 1), (5, 3)] {
            let named = start(p, 2).build().unwrap().collective().kind();
            let by_block = ["gather", "scatter", "allgather", "alltoall"].contains(&named.name());
            assert_eq!(named.is_sized_by_block(), by_block);
            let mut b = start(p, if by_block { 2 } else { 2 * p });
            let schedule = b.root(root).clone().build().unwrap();
            let (inputs, outputs) = (naive_inputs(named, p, root), naive(named, p, root));
            for (rank, layout) in schedule.layout().iter().enumerate() {
                let lens = [&layout.input, &layout.output].map(|s| oneport::schedule::total_len(s));
                assert_eq!(lens, [inputs[rank], outputs[rank].len()], "{named} {rank}");
            }
        }
    }
}

#[test]
fn names_and_reverses_are_those_that_are_known() {
    let facts = |kind: Kind| {
        let row = kind.row();
        let reverse = row.reverse.map_or("-", Kind::name);
        format!(
            "{kind} <-> {reverse}, {}, {}, {:.3}, {}",
            row.mpi.join("/"),
            row.msccl.unwrap_or("-"),
            kind.bus_share(4),
            ["", "reduces"][usize::from(kind.reduces())]
        )
    };
    let known = [
        "broadcast <-> reduce, MPI_Bcast, broadcast, 1.000, ",
        "reduce <-> broadcast, MPI_Reduce, reduce, 1.000, reduces",
        "allreduce <-> -, MPI_Allreduce, allreduce, 1.500, reduces",
        "gather <-> scatter, MPI_Gather/MPI_Gatherv, gather, 0.750, ",
        "scatter <-> gather, MPI_Scatter/MPI_Scatterv, scatter, 0.750, ",
        "allgather <-> reduce_scatter, MPI_Allgather/MPI_Allgatherv, allgather, 0.750, ",
        "reduce_scatter <-> allgather, MPI_Reduce_scatter_block/MPI_Reduce_scatter, reducescatter, \
         0.750, reduces",
        "alltoall <-> -, MPI_Alltoall/MPI_Alltoallv, alltoall, 0.750, ",
        "multicast <-> -, , -, 1.000, ",
        "scan <-> -, MPI_Scan, -, 1.000, reduces",
        "exscan <-> -, MPI_Exscan, -, 1.000, reduces",
        "barrier <-> -, MPI_Barrier, -, 1.000, ",
    ];
    assert_eq!(Kind::ALL.map(facts), known);
}

#[test]
fn tokens_of_a_barrier_cost_alpha_alone() {
    let cost = CostModel::new(2.0, 3.0).gamma(5.0).gamma_copy(7.0);
    let mut b = Schedule::builder(2, Ports::BI, Collective::Barrier);
    for rank in 0..2 {
        b.layout(rank, 3, [Span::new(2, 1)], [Span::new(0, 2)]);
        b.step(rank, Step::copy(Span::new(2, 1), Span::new(rank, 1)));
        b.step(rank, Step::send(1 - rank, Span::new(rank, 1)));
        b.step(rank, Step::recv(1 - rank, Span::new(1 - rank, 1)));
    }
    let schedule = b.build().unwrap();
    assert_eq!(schedule.check().errors, []);
    assert_eq!(schedule.simulate(&cost).unwrap().makespan(), 2.0);
}

/// A schedule in which rank 0 sends its two elements to rank 1; rank 2 takes no part and has no
/// output.
fn two_of_three(collective: Collective) -> Schedule {
    let both = || [Span::new(0, 2)];
    let mut b = Schedule::builder(3, Ports::BI, collective);
    b.layout(0, 2, both(), both());
    b.layout(1, 2, [], both());
    b.transfer(0, 1, both());
    b.build().unwrap()
}

#[test]
fn a_broadcast_is_for_every_rank_and_a_multicast_for_some() {
    let sum = Operator::<u64>::named("sum").unwrap();
    let data = |s: &Schedule| inputs(s.collective(), s.layout(), &sum);
    let whole = vec![Expected {
        len: 2,
        ranks: 0..1,
        offset: 0,
    }];

    let broadcast = two_of_three(Collective::Broadcast { root: 0 });
    let (collective, layout) = (broadcast.collective(), broadcast.layout());
    for rank in 0..2 {
        assert_eq!(collective.expected_output(layout, rank).unwrap(), whole);
    }
    let why = "broadcast: rank 2 has 0 output elements, expected 2";
    assert_eq!(
        collective
            .expected_output(layout, 2)
            .unwrap_err()
            .to_string(),
        why
    );
    let report = broadcast.check();
    let found: Vec<_> = report.errors.iter().map(|e| (e.kind, e.rank)).collect();
    assert_eq!(found, [(FindingKind::Layout, Some(2))]);
    assert_eq!(report.errors[0].message, why);
    let expected = oracle(collective, layout, &sum, &data(&broadcast));
    assert_eq!(expected.unwrap_err().to_string(), why);

    let targets = vec![0, 1];
    let multicast = two_of_three(Collective::Multicast { root: 0, targets });
    let (collective, layout) = (multicast.collective(), multicast.layout());
    let expected = [whole.clone(), whole, Vec::new()];
    for (rank, content) in expected.iter().enumerate() {
        assert_eq!(
            collective.expected_output(layout, rank).as_ref(),
            Ok(content)
        );
    }
    assert!(multicast.check().is_correct());
    let data = data(&multicast);
    let expected = oracle(collective, layout, &sum, &data).unwrap();
    assert_eq!(expected, [data[0].clone(), data[0].clone(), Vec::new()]);
}

/// Whoever is neither root nor target has neither a buffer nor a step.
#[test]
fn a_multicast_is_a_broadcast_among_its_ranks() {
    let cost = CostModel::new(7.0, 2.0);
    let mut planned = 0;
    for (p, root) in (1..=5usize).flat_map(|p| (0..p).map(move |root| (p, root))) {
        for set in 1u32..1 << p {
            let targets: Vec<usize> = (0..p).filter(|rank| set >> rank & 1 == 1).collect();
            let takes_part = |rank: &usize| *rank == root || targets.contains(rank);
            let members: Vec<usize> = (0..p).filter(takes_part).collect();
            let request = Request::multicast(p, 6).root(root).targets(targets.clone());
            for algorithm in registry::of(Kind::Multicast) {
                let is_bi = algorithm.ports.allow(Ports::BI);
                let ports = if is_bi { Ports::BI } else { Ports::UNI };
                let request = request.clone().ports(ports);
                let schedule = algorithm.plan(&request.clone().cost(cost.clone())).unwrap();
                assert_eq!(schedule.check().errors, []);
                assert_eq!(Request::like(&schedule).unwrap(), request);
                for rank in (0..p).filter(|rank| !takes_part(rank)) {
                    assert_eq!(schedule.layout()[rank], Layout::default());
                    assert_eq!(schedule.programs()[rank], []);
                }
                let own_root = members.iter().position(|&rank| rank == root).unwrap();
                let broadcast = Request::broadcast(members.len(), 6)
                    .root(own_root)
                    .ports(ports);
                let broadcast = broadcast.plan(&algorithm.name()).unwrap();
                let time = |schedule: &Schedule| schedule.simulate(&cost).unwrap().makespan();
                assert_eq!(
                    time(&schedule),
                    time(&broadcast),
                    "{} {targets:?}",
                    algorithm.name()
                );
                planned += 1;
            }
        }
    }
    assert!(planned > 1000, "{planned}");
    let refused = |request: Request| request.plan("linear").unwrap_err().to_string();
    let to = |targets: &[usize]| Request::multicast(4, 1).targets(targets.to_vec());
    assert_eq!(
        refused(to(&[1, 4])),
        "multicast: target 4 is not one of 4 ranks"
    );
    assert_eq!(refused(to(&[1, 2, 1])), "target 1 is named twice");
    assert_eq!(
        refused(to(&[])),
        "a multicast without targets asks for nothing"
    );
    let broadcast = to(&[1]).collective(Kind::Broadcast);
    assert_eq!(refused(broadcast), "a broadcast has no targets");
    // The best root of one target is the target itself.
    let free = to(&[2]).free_root(true).plan("linear").unwrap();
    assert_eq!((free.collective().root(), free.steps()), (Some(2), 0));
    // Without targets they are all ranks.
    let all = Request::multicast(3, 1).plan("linear").unwrap();
    assert_eq!(all, to_all(3));
}

fn to_all(p: usize) -> Schedule {
    let targets: Vec<usize> = (0..p).collect();
    Request::multicast(p, 1)
        .targets(targets)
        .plan("linear")
        .unwrap()
}

#[test]
fn ranks_that_do_not_exist_are_refused() {
    let layout = vec![Layout::default(); 3];
    let broadcast = Collective::Broadcast { root: 0 };
    let why = broadcast
        .expected_output(&layout, 3)
        .unwrap_err()
        .to_string();
    assert_eq!(why, "broadcast: rank 3 is not one of 3 ranks");
    let (root, targets) = (3, vec![0, 4]);
    for (collective, what) in [
        (Collective::Broadcast { root }, "root 3"),
        (Collective::Reduce { root }, "root 3"),
        (Collective::Gather { root }, "root 3"),
        (Collective::Scatter { root }, "root 3"),
        (
            Collective::Multicast {
                root,
                targets: vec![0],
            },
            "root 3",
        ),
        (Collective::Multicast { root: 0, targets }, "target 4"),
    ] {
        let why = format!("{}: {what} is not one of 3 ranks", collective.kind().name());
        let refusal = collective.expected_output(&layout, 0).unwrap_err();
        assert_eq!(refusal.to_string(), why);
        let programs = vec![Vec::new(); 3];
        let schedule = Schedule::new(Ports::BI, collective, layout.clone(), programs);
        assert_eq!(schedule.unwrap_err().to_string(), why);
    }
}

/// The request that a plan answers is the one that it was planned for.
#[test]
fn requests_like_a_schedule_plan_it_again() {
    let uneven = |n: usize| (0..n).map(|i| 1 + i * i % 7).collect::<Vec<_>>();
    let mut compared = 0;
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.has_targets()) {
        for p in [1, 2, 5] {
            let ports = if p == 2 { Ports::UNI } else { Ports::BI };
            let equal = if kind.has_data() {
                Request::new(kind, p, 2 * p + 1)
            } else {
                Request::barrier(p)
            };
            let equal = equal.ports(ports).element_bytes(4);
            let root = kind.with_root(p - 1).root().unwrap_or(0);
            let mut requests = vec![equal.root(root)];
            let counts = [p, p * p];
            for &n in
                &counts[..usize::from(kind.has_blocks()) + usize::from(kind.has_block_pairs())]
            {
                let sizes = uneven(n);
                let elements = if kind.is_sized_by_block() {
                    sizes.iter().copied().max().unwrap()
                } else {
                    sizes.iter().sum()
                };
                let request = Request::new(kind, p, elements).ports(ports).root(root);
                requests.push(request.blocks((p > 1).then_some(sizes)));
            }
            for request in requests {
                for algorithm in registry::of(kind).filter(|a| a.accepts(&request).is_ok()) {
                    let schedule = algorithm.plan(&request).unwrap();
                    let like = Request::like(&schedule).unwrap();
                    assert_eq!(like, request, "{} {kind} p={p}", algorithm.name());
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn what_cannot_be_requested_says_why() {
    let targets = Vec::new();
    let mut b = Schedule::builder(2, Ports::BI, Collective::Multicast { root: 0, targets });
    b.layout(0, 1, [Span::new(0, 1)], []);
    let error = Request::like(&b.build().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a multicast without targets asks for nothing"
    );
    let mut b = Schedule::builder(2, Ports::BI, Collective::Allreduce);
    b.layout(0, 1, [Span::new(0, 1)], [Span::new(0, 1)]);
    b.layout(1, 2, [Span::new(0, 2)], [Span::new(0, 2)]);
    let error = Request::like(&b.build().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("rank 1 has 2 input elements"),
        "{error}"
    );
}
