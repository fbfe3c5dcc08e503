//! Collectives on circulant graphs.

use oneport::internal::circulant::allgatherv::Allgatherv;
use oneport::internal::circulant::schedule::Circulant;
use oneport::internal::circulant::tables::Tables;
use oneport::plan::{Request, Segments};
use oneport::schedule::ScheduleSource;
use oneport::{CostModel, Kind, Span, Step};

use super::{closed_form, executed};

fn request(p: usize, n: usize, root: usize) -> Request {
    Request::broadcast(p, 3 * n - 1).segment_count(n).root(root)
}

/// Every rank except the root receives every block once, and ranks send only blocks they hold.
#[test]
fn every_block_arrives_once() {
    for p in 1..100 {
        for n in [1, 2, 3, 7, 20] {
            let root = p / 3;
            let all = request(p, n, root).plan("circulant").unwrap();
            let blocks = request(p, n, root).get_segments().spans();
            let mut steps = 0;
            for rank in 0..p {
                let mut held: Vec<Span> = Vec::new();
                for step in &all.programs()[rank] {
                    steps += 1;
                    match step {
                        Step::Recv { spans, .. } => {
                            assert!(!held.contains(&spans[0]), "p={p} n={n} rank {rank}");
                            held.push(spans[0]);
                        }
                        Step::Send { spans, to, .. } => {
                            assert!(*to != root && (rank == root || held.contains(&spans[0])));
                        }
                        _ => panic!("{step:?}"),
                    }
                }
                held.sort_unstable();
                assert_eq!(held, if rank == root { vec![] } else { blocks.clone() });
            }
            assert_eq!(steps, 2 * (p - 1) * n);
        }
    }
}

#[test]
fn reductions_are_broadcasts_reversed() {
    for p in 1..40 {
        for n in [1, 2, 5, 9] {
            let request = request(p, n, p / 2);
            let reduce = request
                .clone()
                .collective(Kind::Reduce)
                .plan("circulant")
                .unwrap();
            let broadcast = request.plan("circulant").unwrap();
            assert_eq!(reduce.reversed().unwrap(), broadcast);
            // The order of the operands may differ.
            assert_eq!(broadcast.reversed().unwrap(), reduce);
        }
    }
}

/// An allreduce is the reduction to rank 0 followed by the broadcast, whatever the request's
/// root.
#[test]
fn an_allreduce_is_a_reduction_then_a_broadcast() {
    for p in 1..40 {
        for n in [1, 2, 5, 9] {
            let [allreduce, reduce, broadcast] = [
                (Kind::Allreduce, p / 2),
                (Kind::Reduce, 0),
                (Kind::Broadcast, 0),
            ]
            .map(|(kind, root)| {
                let request = request(p, n, root).collective(kind);
                request.plan("circulant").unwrap()
            });
            for rank in 0..p {
                let [both, first, second] =
                    [&allreduce, &reduce, &broadcast].map(|s| &s.programs()[rank]);
                assert!(
                    both.iter().eq(first.iter().chain(second)),
                    "p={p} n={n} rank {rank}"
                );
                let layout = &allreduce.layout()[rank];
                assert_eq!(layout.input, reduce.layout()[rank].input);
                assert_eq!(layout.output, broadcast.layout()[rank].output);
            }
        }
    }
}

#[test]
fn a_reduction_of_three_ranks_and_two_segments() {
    let request = Request::reduce(3, 2).segments(Segments::of_size(2, 1).unwrap());
    let schedule = request.plan("circulant").unwrap();
    let sends: Vec<Vec<_>> = schedule
        .programs()
        .iter()
        .map(|program| {
            let sends = program.iter().filter(|s| s.is_send());
            sends.map(|s| (s.peer(), s.reads()[0].offset)).collect()
        })
        .collect();
    let (one, two) = (
        vec![(Some(2), 0), (Some(0), 1)],
        vec![(Some(0), 1), (Some(0), 0)],
    );
    assert_eq!(sends, [vec![], one, two]);
}

#[test]
fn a_broadcast_of_three_ranks_and_two_segments() {
    let request = Request::broadcast(3, 2).segments(Segments::of_size(2, 1).unwrap());
    let schedule = request.plan("circulant").unwrap();
    let sends: Vec<Vec<_>> = schedule
        .programs()
        .iter()
        .map(|program| {
            let sends = program.iter().filter(|s| s.is_send());
            sends.map(|s| (s.peer(), s.reads()[0].offset)).collect()
        })
        .collect();
    let root = vec![(Some(2), 0), (Some(1), 1), (Some(2), 1)];
    assert_eq!(sends, [root, vec![], vec![(Some(1), 0)]]);
}

#[test]
fn schedules_passed_in_are_used_as_they_are() {
    let request = Request::allgather(6, 4).blocks(vec![4, 0, 1, 3, 2, 4]);
    let tables = Tables::new(&Circulant::new(6)).recv;
    let with = |recv: &[i8]| Allgatherv::with_schedules(&request, recv.to_vec());
    let right = with(&tables).unwrap().materialize().unwrap();
    assert_eq!(right, request.plan("circulant-blocks").unwrap());
    assert!(with(&tables[1..]).is_err());
    // A part that never comes is reported; numbers out of range do not panic.
    for place in (3..18).filter(|&place| tables[place] >= 0) {
        for block in [-1, i8::MIN] {
            let mut wrong = tables.clone();
            wrong[place] = block;
            let schedule = with(&wrong).unwrap().materialize().unwrap();
            let report = schedule.check();
            assert!(!report.is_correct(), "{place} {block}");
        }
        assert!(with(&[i8::MAX; 18]).unwrap().materialize().is_ok());
    }
}

#[test]
fn time_of_reduce_scatter_and_gather_is_the_closed_form_for_every_root() {
    for p in 1..40 {
        let mut request = Request::reduce(p, 3 * p).cost(CostModel::new(10.0, 2.0).gamma(3.0));
        for root in [0, p / 3, p - 1] {
            request = request.root(root);
            let time = closed_form(&request, "circulant-rsg");
            assert_eq!(
                Some(executed(&request, "circulant-rsg")),
                time,
                "p={p} root={root}"
            );
        }
    }
}
