//! Tests of circulant code outside the library: the paper's own construction in `benches`, the
//! count of all schedules and the check of their conditions in `examples`, which bring their unit
//! tests.

#[path = "../../examples/check_circulant/main.rs"]
#[expect(dead_code, reason = "its `main` is not called")]
mod check;
#[path = "../../examples/circulant_count/count.rs"]
mod count;
#[path = "../../benches/planners/paper.rs"]
mod paper;

use check::prove::{check_rank, violations};
use clap::Parser;
use oneport::internal::circulant::schedule::{Circulant, MAX_RANKS};
use oneport::internal::circulant::tables::Tables;
use serde_json::Value;

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

#[test]
fn the_four_conditions_hold() {
    let mut tables = Tables::default();
    for p in 1..=3000 {
        let graph = Circulant::new(p);
        tables.construct(&graph);
        assert_eq!(violations(&graph, &tables).next(), None, "p={p}");
    }
    for p in [4_095, 4_096, 4_097, 1_000_003, (1 << 40) + 12_345] {
        let graph = Circulant::new(p);
        for r in (0..200).map(|i| i * (p / 200) + i % 7) {
            assert_eq!(check_rank(&graph, r), None);
        }
    }
}

#[test]
fn the_maximum_number_of_ranks() {
    for p in [MAX_RANKS, MAX_RANKS - 1, MAX_RANKS / 2 + 1] {
        let graph = Circulant::new(p);
        for r in [0, 1, 12_345, p / 3, p - 1] {
            assert_eq!(check_rank(&graph, r), None);
        }
    }
}

/// What the example prints for these arguments.
fn checked(arguments: &str) -> Result<String, clap::Error> {
    let arguments = arguments.split_whitespace();
    let args = check::Args::try_parse_from(std::iter::once("check_circulant").chain(arguments))?;
    let mut out = Vec::new();
    check::run(&args, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_example_checks_what_its_arguments_say() {
    let json = |arguments: &str| -> Value {
        serde_json::from_str(&checked(&format!("{arguments} --json")).unwrap()).unwrap()
    };
    let all = json("--ranks 2..=64");
    assert_eq!(
        (&all["ok"], &all["errors"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(
        (&all["graphs"], &all["schedules"]),
        (&63.into(), &2079.into())
    );
    let sampled = json("--sample 20 --up-to 1e12 --threads 1");
    assert_eq!(
        (&sampled["ok"], &sampled["graphs"]),
        (&true.into(), &20.into())
    );
    for arguments in ["--max-errors 3 -p 2..=4", "--most-errors 3 -p 2..5"] {
        assert_eq!(json(arguments)["schedules"], 9);
    }
    let text = checked("--ranks 1").unwrap();
    assert!(text.contains("all four conditions hold"), "{text}");
    for wrong in [
        "--ranks 0",
        "--ranks 5..=4",
        "--ranks 2^62",
        "--sample 3 --up-to 1e30",
        "--sample 0",
        "--up-to 2^40",
        "--ranks 5 --sample 3",
        "--ranks many",
        "-a ring",
    ] {
        assert!(checked(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn skips_of_nine() {
    let graph = Circulant::new(9);
    assert_eq!(graph.skips(), [1, 2, 3, 5, 9]);
    let base: Vec<usize> = (0..9).map(|r| graph.baseblock(r)).collect();
    assert_eq!(base, [4, 0, 1, 2, 0, 3, 0, 1, 2]);
}

#[test]
fn one_rank_has_no_rounds() {
    let graph = Circulant::new(1);
    assert_eq!((graph.ranks(), graph.rounds()), (1, 0));
    assert!(graph.recv_schedule(0).is_empty() && graph.send_schedule(0).is_empty());
}

/// Base blocks as Algorithm 2 computes them, of ranks 0 to `p - 1`; that of the root is `q`.
fn base_blocks(p: usize, skips: &[usize]) -> Vec<usize> {
    let of = |rank: usize| {
        let mut rest = rank;
        for (k, &skip) in skips.iter().enumerate().rev() {
            if skip == rest {
                return k;
            }
            rest -= if skip < rest { skip } else { 0 };
        }
        skips.len()
    };
    (0..p).map(of).collect()
}

/// The least and the greatest number of different blocks in a cyclic range of this size.
fn different_blocks(blocks: &[usize], size: usize) -> (usize, usize) {
    let p = blocks.len();
    let count = |start: usize| {
        let range: std::collections::BTreeSet<usize> =
            (start..start + size).map(|rank| blocks[rank % p]).collect();
        range.len()
    };
    let counts = (0..p).map(count);
    counts.fold((usize::MAX, 0), |(least, most), n| {
        (least.min(n), most.max(n))
    })
}

/// Lemma 2: any range of `skips[k]` ranks has at least `k` different base blocks, and one of
/// `1 + skips[0] + .. + skips[k-1]` ranks `k + 1`. In cyclic ranges the root counts as a block of
/// its own: of 5 ranks, 4 and 0 have the blocks 0 and nothing.
#[test]
fn ranges_of_ranks_have_as_many_base_blocks_as_lemma_2_says() {
    for p in 2..=200usize {
        // Algorithm 1.
        let mut skips = Vec::new();
        let mut half = p;
        while half > 1 {
            half = half.div_ceil(2);
            skips.insert(0, half);
        }
        assert_eq!(skips, Circulant::new(p).skips()[..skips.len()]);
        let blocks = base_blocks(p, &skips);
        let mut sum = 1;
        for (k, &skip) in skips.iter().enumerate() {
            assert!(different_blocks(&blocks, skip).0 >= k, "{p} {k}");
            if sum <= p {
                assert!(different_blocks(&blocks, sum).0 > k, "{p} {k}");
            }
            sum += skip;
            if p.is_power_of_two() {
                assert_eq!(different_blocks(&blocks, 1 << k), (k + 1, k + 1), "{p} {k}");
            }
        }
    }
}
