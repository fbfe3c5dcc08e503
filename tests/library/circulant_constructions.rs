//! Tests of circulant code outside the library: the paper's own construction in `benches`, and the
//! count of all schedules in `examples`, which brings its unit tests.

#[path = "../../examples/circulant_count/count.rs"]
mod count;
#[path = "../../benches/planners/paper.rs"]
mod paper;

use oneport::plan::circulant::schedule::Circulant;

#[test]
fn schedules_match_the_papers_construction() {
    let samples = [1_000, 4_095, 65_537, (1 << 40) - 1, (1 << 40) + 12_345];
    for p in (1..=140).chain(samples) {
        let graph = Circulant::new(p);
        for r in (0..140.min(p)).map(|i| i * p.div_ceil(140) % p) {
            let [mut recv, mut send] = [(); 2].map(|()| vec![0; graph.rounds()]);
            graph.recv_into(r, &mut recv);
            graph.send_into(r, &mut send);
            assert_eq!(recv, paper::recv_schedule(&graph, r), "p={p} r={r}");
            assert_eq!(send, paper::send_schedule(&graph, r), "p={p} r={r}");
        }
    }
}

#[test]
fn range_blocks_are_the_base_blocks_of_the_ranks() {
    for p in (2..=80).chain([129, 200]) {
        let graph = Circulant::new(p);
        for a in 0..p {
            let mut blocks = 0;
            for b in a..p {
                if b > 0 {
                    blocks |= 1 << graph.baseblock(b);
                }
                assert_eq!(paper::range_blocks(&graph, a, b), blocks, "p={p} {a}..={b}");
            }
        }
    }
}

#[test]
fn receive_schedule_of_rank_9_of_20() {
    assert_eq!(
        paper::recv_schedule(&Circulant::new(20), 9),
        [-3, -4, -2, 0, -1]
    );
}
