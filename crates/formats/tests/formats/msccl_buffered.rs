//! MSCCL algorithms that need buffered messages.

use oneport::machine::CostModel;
use oneport::schedule::{Schedule, Step};
use oneport_formats::msccl::{ReadOptions, read};

/// An algorithm in place of two ranks; `steps` gives the thread blocks of a rank, each on a channel
/// of its own: type, offset in `src`, offset in `dst`.
fn algorithm(coll: &str, chunks: [usize; 2], steps: impl Fn(usize) -> String) -> Schedule {
    let [input, all] = chunks;
    let mut text = format!(
        "<algo name=\"x\" coll=\"{coll}\" ngpus=\"2\" nchannels=\"2\" nchunksperloop=\"{all}\" inplace=\"{}\">",
        usize::from(input == all)
    );
    for rank in 0..2 {
        text += &format!(
            "<gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{all}\" s_chunks=\"0\">{}</gpu>",
            steps(rank)
        );
    }
    text += "</algo>";
    read(&text, &ReadOptions::default()).unwrap()
}

fn block(id: usize, peer: usize, steps: &[(&str, usize, usize)]) -> String {
    let steps = steps.iter().enumerate().map(|(s, (what, src, dst))| {
        format!(
            "<step s=\"{s}\" type=\"{what}\" srcbuf=\"i\" srcoff=\"{src}\" dstbuf=\"o\" dstoff=\"{dst}\" cnt=\"1\" \
             depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>"
        )
    });
    let steps: String = steps.collect();
    format!("<tb id=\"{id}\" send=\"{peer}\" recv=\"{peer}\" chan=\"{id}\">{steps}</tb>")
}

fn local_steps(schedule: &Schedule) -> usize {
    let steps = schedule.programs().iter().flatten();
    steps.filter(|step| step.peer().is_none()).count()
}

/// A message may not be combined onto what is still being sent, on both sides.
#[test]
fn reductions_of_two_exchanges_receive_apart() {
    let schedule = algorithm("allreduce", [2, 2], |rank| {
        let exchange = |id| block(id, 1 - rank, &[("s", id, id), ("rrc", id, id)]);
        exchange(0) + &exchange(1)
    });
    assert!(schedule.check().is_correct(), "{:?}", schedule.check());
    assert_eq!(schedule.ports().k(), 2);
    // Two messages have places behind the vector, from where two local steps combine them.
    assert!(schedule.layout().iter().all(|layout| layout.len == 4));
    assert_eq!(local_steps(&schedule), 4);
    // Both exchanges at once, then two combinations.
    let time = schedule
        .simulate(&CostModel::new(10.0, 1.0).gamma(100.0))
        .unwrap()
        .makespan();
    assert_eq!(time, 11.0 + 200.0);
}

/// The copy waits for both sends; the partner receives the second after its own copy.
#[test]
fn copies_between_receives_receive_apart() {
    let schedule = algorithm("allgather", [2, 4], |rank| {
        let (own, other) = (2 * rank, 2 * (1 - rank));
        let steps = [
            ("s", 0, other),
            ("s", 1, other + 1),
            ("r", 0, other),
            ("cpy", 0, own),
            ("r", 0, other + 1),
            ("cpy", 1, own + 1),
        ];
        block(0, 1 - rank, &steps)
    });
    assert!(schedule.check().is_correct(), "{:?}", schedule.check());
    assert_eq!(local_steps(&schedule), 8);
}

/// Halves of a vector, reduced in one rank each, then sent back.
fn halving(rank: usize, id: usize) -> String {
    let (own, other) = (2 * id + rank, 2 * id + 1 - rank);
    let steps = [
        ("s", other, 0),
        ("rrc", own, own),
        ("s", own, 0),
        ("r", 0, other),
    ];
    block(id, 1 - rank, &steps)
}

/// What runs as it is receives in place.
#[test]
fn halvings_receive_in_place() {
    for blocks in [1, 2] {
        let schedule = algorithm("allreduce", [2 * blocks; 2], |rank| {
            (0..blocks).map(|id| halving(rank, id)).collect()
        });
        assert!(schedule.check().is_correct(), "{:?}", schedule.check());
        assert_eq!(local_steps(&schedule), 0);
        let combined = |step: &&Step| matches!(step, Step::RecvCombine { .. });
        let program = schedule.programs()[0].iter();
        assert_eq!(program.filter(combined).count(), blocks);
    }
}
