//! The builder of schedules: buffers that it lays out, and spans that it takes.

use oneport::check::{Finding, FindingKind};
use oneport::schedule::Builder;
use oneport::{Collective, Order, Ports, Schedule, Spans, Step};

type Constructor = fn(usize, usize) -> Builder;

const CONSTRUCTORS: [Constructor; 9] = [
    Schedule::broadcast,
    Schedule::reduce,
    Schedule::allreduce,
    Schedule::scan,
    Schedule::gather,
    Schedule::scatter,
    Schedule::allgather,
    Schedule::reduce_scatter,
    Schedule::alltoall,
];

#[test]
fn laid_out_buffers_fit_their_collective() {
    for start in CONSTRUCTORS {
        for (p, m) in [(1, 3), (4, 0), (5, 2)] {
            for root in [0, p - 1] {
                let mut b = start(p, m);
                let schedule = b.root(root).clone().build().unwrap();
                let kind = schedule.collective().kind();
                for rank in 0..p {
                    let expected = schedule.collective();
                    let expected = expected.expected_output(schedule.layout(), rank);
                    assert!(expected.is_ok(), "{kind:?} p={p} m={m}: {expected:?}");
                }
                let errors = schedule.check().errors;
                let laid_out = |e: &Finding| e.kind != FindingKind::Layout;
                assert!(
                    errors.iter().all(laid_out),
                    "{kind:?} p={p} m={m}: {errors:?}"
                );
                let has_root = schedule.collective().root();
                assert!(has_root.is_none_or(|r| r == root), "{kind:?}");
            }
        }
        let error = start(3, 4).root(3).clone().build().err();
        let has_root = start(3, 4).build().unwrap().collective().root().is_some();
        assert_eq!(error.is_some(), has_root, "root 3 of 3 ranks");
        // Lengths saturate, and what lies beyond every memory is not laid out twice.
        let _ = start(3, usize::MAX).build();
    }
}

#[test]
fn a_reversed_range_is_refused() {
    let mut b = Schedule::broadcast(2, 4);
    #[expect(clippy::reversed_empty_ranges, reason = "the mistake")]
    b.transfer(0, 1, 3..1);
    let error = b.build().unwrap_err().to_string();
    assert!(
        error.starts_with("rank 0, step 0 (send): span [3, "),
        "{error}"
    );
    let ends = "leaves the buffer of 4 elements: as a range, 3..1, it ends before it starts";
    assert!(error.ends_with(ends), "{error}");
}

/// A forgotten `child < p` is an error that names the rank, whichever method is given it.
#[test]
fn ranks_that_do_not_exist_are_errors_of_build() {
    type Mistake = fn(&mut Builder) -> &mut Builder;
    let mistakes: [(Mistake, &str); 4] = [
        (|b| b.transfer(0, 7, 0..4), "a transfer from 0 to 7: rank 7"),
        (
            |b| b.transfer_combine(3, 0, 0..4, Order::MineFirst),
            "a transfer from 3 to 0: rank 3",
        ),
        (|b| b.step(5, Step::send(1, 0..4)), "a step (send): rank 5"),
        (|b| b.layout(9, 4, 0..4, 0..4), "a layout: rank 9"),
    ];
    for (mistake, expected) in mistakes {
        let mut b = Schedule::broadcast(3, 4);
        mistake(&mut b);
        // The first mistake is the one that is told.
        b.transfer(8, 9, 0..4).transfer(0, 1, 3..9);
        let error = b.build().unwrap_err();
        assert!(error.is_usage(), "{error}");
        let expected = format!("{expected} is not one of 3 ranks (numbered from 0)");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn ranges_and_lists_of_them_are_spans() {
    let both = Spans::from([0..1, 3..4]);
    let mut b = Schedule::builder(2, Ports::UNI, Collective::Broadcast { root: 1 });
    b.layout(1, 4, both.clone(), both.clone());
    b.layout(0, 4, [], both);
    b.transfer(1, 0, [0..1, 3..4]);
    assert!(b.build().unwrap().check().is_correct());
}
