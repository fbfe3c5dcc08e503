//! Tests of collectives as functions on an endpoint: what the ranks record is what the planner of
//! the same name plans, and real bytes and model times are right.

use oneport::collectives::{
    RankSchedule, allgather, allgatherv, allreduce, broadcast, greedy_reduce, reduce,
    reduce_scatter, reduce_scatterv,
};
use oneport::internal::circulant::{schedule::Circulant, tables::Tables};
use oneport::plan::{Segments, registry};
use oneport::run::{
    Bidirectional, Endpoint, Operator, PortModel, ScopeOptions, Team, Unidirectional, inputs,
    oracle,
};
use oneport::{CostModel, Distribution, ErrorKind, Kind, Ports, Request, Result, Schedule};

use crate::support::alone::shared;
use crate::support::cases::cases;

fn options(request: &Request) -> ScopeOptions<i64> {
    let mut options = ScopeOptions::new(Operator::named("sum").unwrap());
    options.cost = request.get_cost().clone();
    options.record = true;
    options
}

fn request(kind: Kind, p: usize, m: usize, ports: Ports) -> Request {
    let cost = CostModel::new(7.3, 0.9).gamma(1.7);
    Request::new(kind, p, m)
        .ports(ports)
        .cost(cost)
        .element_bytes(8)
}

/// Runs `program` on every rank, on test data. Its recorded steps must be the planned ones, up to
/// the unused rest of the buffers, and results and times those of the plan.
fn verify<P: PortModel>(
    team: &mut Team,
    request: &Request,
    algorithm: &str,
    program: impl Fn(&mut Endpoint<'_, i64, P>) -> Result<usize> + Sync,
) -> Vec<usize> {
    let algorithm = registry::find(request.get_collective(), algorithm).unwrap();
    let planned: Schedule = algorithm.plan(request).unwrap().with_element_bytes(8);
    let (collective, layout) = (planned.collective(), planned.layout());
    let options = options(request);
    let vectors = inputs(collective, layout, &options.operator);
    let mut buffers: Vec<Vec<i64>> = Vec::new();
    for (input, l) in vectors.iter().zip(layout) {
        let mut buffer = vec![-1; l.len];
        let places = l.input.iter().flat_map(|s| s.offset..s.end());
        places
            .zip(input)
            .for_each(|(at, &value)| buffer[at] = value);
        buffers.push(buffer);
    }
    let outcome = team.scope(&mut buffers, &options, program).unwrap();
    let recorded = outcome.schedule(collective, layout).unwrap();
    assert_eq!(recorded.programs(), planned.programs(), "{request:?}");
    let results = oracle(collective, layout, &options.operator, &vectors).unwrap();
    for (rank, (buffer, l)) in buffers.iter().zip(layout).enumerate() {
        let places = l.output.iter().flat_map(|s| s.offset..s.end());
        let output: Vec<i64> = places.map(|at| buffer[at]).collect();
        assert_eq!(output, results[rank], "rank {rank}: {request:?}");
    }
    let simulated = planned.simulate(request.get_cost()).unwrap();
    assert_eq!(outcome.rank_times, simulated.rank_times(), "{request:?}");
    assert!(recorded.check().is_correct(), "{request:?}");
    outcome.results
}

/// Numbers of ranks: all small ones, then some hundreds in turn.
fn numbers_of_ranks() -> impl Iterator<Item = usize> {
    (1..=33usize).chain((34..=300).step_by(cases(53, 7)))
}

fn rounds(p: usize) -> usize {
    p.next_power_of_two().trailing_zeros() as usize
}

#[test]
fn vectors_in_blocks_follow_the_planned_schedule() {
    let _shared = shared();
    for p in numbers_of_ranks() {
        let mut team = Team::new(p).unwrap();
        for (m, n) in [(10, 1), (9, 3), (4, 7), (0, 1)] {
            let root = (p * 2 / 3).min(p - 1);
            let blocks = n.min(m).max(1);
            let last = if p == 1 { 0 } else { rounds(p) + blocks - 1 };
            let asked = |kind| request(kind, p, m, Ports::BI).segment_count(n).root(root);
            let run = |e: &mut Endpoint<i64>| broadcast(e, root, 0..m, n);
            let counts = verify(&mut team, &asked(Kind::Broadcast), "circulant", run);
            assert_eq!(counts, vec![last; p]);
            let run = |e: &mut Endpoint<i64>| reduce(e, root, 0..m, n);
            verify(&mut team, &asked(Kind::Reduce), "circulant", run);
            let run = |e: &mut Endpoint<i64>| allreduce(e, 0..m, n);
            let asked = asked(Kind::Allreduce).root(0);
            let counts = verify(&mut team, &asked, "circulant", run);
            assert_eq!(counts, vec![2 * last; p]);
        }
    }
}

#[test]
fn blocks_of_ranks_follow_the_planned_schedule() {
    let _shared = shared();
    for p in numbers_of_ranks() {
        let mut team = Team::new(p).unwrap();
        let kinds = [
            Distribution::Same,
            Distribution::Random,
            Distribution::Spikes,
        ];
        // More ranks get one of them in turn.
        for (_, distribution) in (0..).zip(kinds).filter(|(i, _)| p <= 17 || p % 3 == *i) {
            let sizes = distribution.sizes(p, 4, 5, p as u64).unwrap();
            let largest = *sizes.iter().max().unwrap();
            let asked = |kind| request(kind, p, largest, Ports::BI).blocks(sizes.clone());
            let run = |e: &mut Endpoint<i64>| allgather(e, 0, &sizes);
            let counts = verify(&mut team, &asked(Kind::Allgather), "circulant", run);
            assert_eq!(counts, vec![rounds(p); p]);
            let run = |e: &mut Endpoint<i64>| reduce_scatter(e, 0, &sizes);
            verify(&mut team, &asked(Kind::ReduceScatter), "circulant", run);
            for n in [1, 3] {
                let asked = |kind| asked(kind).segment_count(n);
                let run = |e: &mut Endpoint<i64>| allgatherv(e, 0, &sizes, n);
                let counts = verify(&mut team, &asked(Kind::Allgather), "circulant-blocks", run);
                let last = rounds(p) + n.min(largest).max(1) - 1;
                assert_eq!(counts, vec![if p == 1 { 0 } else { last }; p]);
                let run = |e: &mut Endpoint<i64>| reduce_scatterv(e, 0, &sizes, n);
                verify(
                    &mut team,
                    &asked(Kind::ReduceScatter),
                    "circulant-blocks",
                    run,
                );
            }
        }
    }
}

#[test]
fn greedy_reductions_follow_the_planned_schedule() {
    let _shared = shared();
    for p in (1..=17).chain([32, 61]) {
        let mut team = Team::new(p).unwrap();
        let segmentations: [&[usize]; 5] =
            [&[9], &[4, 4, 2], &[1, 5, 0, 3, 7, 2], &[0, 6, 0], &[3; 12]];
        for (i, sizes) in segmentations.into_iter().enumerate() {
            let asked = |ports| {
                let segments = Segments::of_sizes(sizes.to_vec()).unwrap();
                let asked = request(Kind::Reduce, p, 0, ports).segments(segments);
                asked.root(i * p / 5)
            };
            let uni = asked(Ports::UNI);
            let run = |e: &mut Endpoint<i64, Unidirectional>| greedy_reduce(e, &uni);
            let counts = verify(&mut team, &uni, "uni-greedy", run);
            // Each transfer has two ends.
            assert_eq!(counts.iter().sum::<usize>(), 2 * (p - 1) * sizes.len());
            let bi = asked(Ports::BI);
            let run = |e: &mut Endpoint<i64, Bidirectional>| greedy_reduce(e, &bi);
            verify(&mut team, &bi, "bi-greedy", run);
        }
    }
}

/// A vector behind other data, several functions in one program, and an allreduce in halves.
#[test]
fn functions_follow_each_other_anywhere_in_the_buffer() {
    let _shared = shared();
    let mut team = Team::new(5).unwrap();
    let sizes = [3, 2, 2, 2, 2];
    let mut buffers: Vec<Vec<i64>> = (0..5).map(|rank| vec![rank; 20]).collect();
    let options = ScopeOptions::new(Operator::named("sum").unwrap());
    let program = |e: &mut Endpoint<i64>| {
        reduce_scatter(e, 7, &sizes)?;
        allgather(e, 7, &sizes)?;
        broadcast(e, 4, 18..20, 2)
    };
    team.scope(&mut buffers, &options, program).unwrap();
    for (rank, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer[..7], [rank as i64; 7]);
        assert_eq!(buffer[7..18], [10; 11]);
        assert_eq!(buffer[18..], [4; 2]);
    }
}

#[test]
fn misuse_is_refused() {
    let _shared = shared();
    let mut team = Team::new(3).unwrap();
    let mut refused = |program: fn(&mut Endpoint<i64>) -> Result<usize>| {
        let operator = Operator::new("left", false, |a, _| a);
        let mut buffers = vec![vec![0; 6]; 3];
        let error = team.scope(&mut buffers, &ScopeOptions::new(operator), program);
        let error = error.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{error}");
        error.to_string()
    };
    let text = refused(|e| broadcast(e, 3, 0..6, 2));
    assert!(text.contains("root 3 is not one of 3 ranks"), "{text}");
    let text = refused(|e| broadcast(e, 0, 0..6, 0));
    assert!(text.contains("0 segments"), "{text}");
    let text = refused(|e| broadcast(e, 0, 2..7, 1));
    assert!(
        text.contains("span [2, 5] leaves the buffer of 6 elements"),
        "{text}"
    );
    let text = refused(|e| allgather(e, 0, &[3, 3]));
    assert!(text.contains("2 block sizes for 3 ranks"), "{text}");
    let text = refused(|e| reduce_scatter(e, 0, &[1, 1, 1]));
    assert!(text.contains("left does not commute"), "{text}");
    let text = refused(|e| greedy_reduce(e, &Request::reduce(4, 6)));
    assert!(text.contains("does not commute"), "{text}");
}

#[test]
fn one_rank_has_its_own_schedule() {
    for p in (1..=70).chain([1000, 1023]) {
        let (graph, tables) = (Circulant::new(p), Tables::new(&Circulant::new(p)));
        let q = graph.rounds();
        for rank in 0..p {
            let own = RankSchedule::of(rank, p).unwrap();
            let wide = |table: &[i8]| -> Vec<i64> {
                table[rank * q..][..q].iter().map(|&v| v.into()).collect()
            };
            assert_eq!(own.recv, wide(&tables.recv));
            assert_eq!(own.send, wide(&tables.send));
        }
    }
    // What one rank receives, another one sends.
    let p = 1_000_000_007;
    let own = RankSchedule::of(12_345, p).unwrap();
    for (k, &received) in own.recv.iter().enumerate() {
        let from = RankSchedule::of((12_345 + p - own.skips[k]) % p, p).unwrap();
        assert_eq!(from.send[k], received);
    }
    assert!(RankSchedule::of(5, 5).unwrap_err().is_usage());
    assert!(RankSchedule::of(0, 0).unwrap_err().is_usage());
}
