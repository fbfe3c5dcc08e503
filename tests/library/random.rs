//! Property tests of the checker: it accepts random correct schedules, agrees with an independent
//! interpreter on random programs, and handles damaged text without a panic.

#![allow(
    clippy::print_stdout,
    reason = "measured times, shown with --nocapture"
)]

use oneport::check::{FindingKind, Options};
use oneport::plan::Segments;
use oneport::random::Generator;
use oneport::{Collective, CostModel, Error, Order, Ports, Schedule, Span, Step};
use proptest::prelude::*;

use crate::oracle::{self, Operator, Outcome};
use crate::support::cases::cases;
use crate::support::random::Random;

/// A reduction in which, segment by segment, random ranks send their partial results to others that
/// still hold one. With `in_order`, only neighbours among the holders combine, and rank 0 forwards
/// the result to the root.
pub(crate) fn reduction(
    p: usize,
    root: usize,
    sizes: &[usize],
    ports: Ports,
    in_order: bool,
    draws: &[u32],
) -> Schedule {
    let m: usize = sizes.iter().sum();
    let vector = Span::new(0, m);
    let mut b = Schedule::builder(p, ports, Collective::Reduce { root });
    for r in 0..p {
        b.layout(r, m, [vector], (r == root).then_some(vector));
    }
    let mut draws = draws.iter().cycle().map(|&d| d as usize);
    let mut draw = |n: usize| draws.next().unwrap_or(0) % n;
    let end = if in_order { 0 } else { root };
    for span in Segments::of_sizes(sizes.to_vec()).unwrap().spans() {
        let mut holders: Vec<usize> = (0..p).collect();
        while holders.len() > 1 {
            let (from, to) = if in_order {
                let i = draw(holders.len() - 1);
                // Either of the two may send, except the lowest rank, which collects the result.
                if i > 0 && draw(2) == 0 {
                    (holders[i], holders[i + 1])
                } else {
                    (holders[i + 1], holders[i])
                }
            } else {
                let senders: Vec<usize> = holders.iter().copied().filter(|&r| r != end).collect();
                let from = senders[draw(senders.len())];
                let others: Vec<usize> = holders.iter().copied().filter(|&r| r != from).collect();
                (from, others[draw(others.len())])
            };
            holders.retain(|&r| r != from);
            b.transfer_combine(from, to, span, Order::by_rank(to, from));
        }
    }
    if end != root {
        b.transfer(end, root, vector);
    }
    b.build().unwrap()
}

/// Asserts that the checker, the interpreter and the simulator accept the schedule.
fn assert_accepted(
    schedule: &Schedule,
    in_order: bool,
    overlap: bool,
) -> Result<(), TestCaseError> {
    let options = Options {
        keep_order: in_order,
        overlap,
        ..Options::default()
    };
    let report = schedule.check_with(&options);
    prop_assert!(report.is_correct(), "{report}\n{}", schedule.to_json());
    let operator = if in_order {
        Operator::Affine
    } else {
        Operator::Sum
    };
    prop_assert_eq!(oracle::run(schedule, overlap, operator, 7), Outcome::Right);
    let affine = oracle::run(schedule, overlap, Operator::Affine, 7) == Outcome::Right;
    prop_assert_eq!(
        simulated(schedule, overlap),
        oracle::time(schedule, overlap)
    );
    // Not `in_order`: empty vectors always keep the order.
    prop_assert_eq!(report.keeps_order, affine);
    Ok(())
}

/// The model time, if the schedule completes.
fn simulated(schedule: &Schedule, overlap: bool) -> Option<f64> {
    let [alpha, beta, gamma, gamma_copy] = oracle::COSTS;
    let cost = CostModel::new(alpha, beta)
        .gamma(gamma)
        .gamma_copy(gamma_copy)
        .overlap(overlap);
    Some(schedule.simulate(&cost).ok()?.makespan())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(1000, 3000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_reductions_and_broadcasts_are_accepted(
        (p, root) in (1usize..12).prop_flat_map(|p| (Just(p), 0..p)),
        sizes in prop::collection::vec(0usize..4, 1..6),
        draws in prop::collection::vec(any::<u32>(), 64),
        bidirectional: bool,
        in_order: bool,
        overlap: bool,
    ) {
        let ports = if bidirectional { Ports::BI } else { Ports::UNI };
        let reduce = reduction(p, root, &sizes, ports, in_order, &draws);
        assert_accepted(&reduce, in_order, overlap)?;
        assert_accepted(&reduce.reversed().unwrap(), true, overlap)?;
    }

    /// The programs are random transfers and local steps, some of them swapped.
    #[test]
    fn checker_and_interpreter_agree_on_random_programs(
        operations in prop::collection::vec(
            (0u8..6, 0usize..3, 1usize..3, 0usize..4, 0usize..3, 0usize..4),
            0..10,
        ),
        swaps in prop::collection::vec((0usize..3, 0usize..6), 0..4),
        unmatched_send in prop::option::weighted(0.1, (0usize..3, 0usize..3)),
        bidirectional: bool,
        k in 1usize..3,
        empty_regions: bool,
        overlap: bool,
    ) {
        let ports = if bidirectional { Ports::BI } else { Ports::UNI }.with_k(k);
        let region: oneport::Spans = if empty_regions {
            [].into_iter().collect()
        } else {
            Span::new(0, 2).into()
        };
        let layout = vec![oneport::Layout { len: 6, input: region.clone(), output: region }; 3];
        let mut programs = vec![Vec::new(); 3];
        for (kind, me, distance, offset, len, other) in operations {
            let (span, src) = (Span::new(offset, len), Span::new(other, len));
            let peer = (me + distance) % 3;
            let order = if other % 2 == 0 { Order::MineFirst } else { Order::TheirsFirst };
            if kind < 4 {
                programs[peer].push(Step::send(me, src).on_port(offset % k));
            }
            programs[me].push(match kind {
                0 | 1 => Step::recv(peer, span),
                2 | 3 => Step::recv_combine(peer, span, order),
                4 => Step::copy(src, span),
                _ => Step::combine(src, span, order),
            }.on_port(other / 2 % k));
        }
        for (rank, i) in swaps {
            if i + 1 < programs[rank].len() {
                programs[rank].swap(i, i + 1);
            }
        }
        if let Some((rank, peer)) = unmatched_send {
            programs[rank].insert(0, Step::send(peer, Span::new(0, 1)));
        }
        let schedule = Schedule::new(ports, Collective::Scan, layout, programs).unwrap();
        let options = Options { keep_order: true, overlap, max_errors: usize::MAX };
        let report = schedule.check_with(&options);
        let outcome = oracle::run(&schedule, overlap, Operator::Affine, 3);
        let undefined = [FindingKind::Overlap, FindingKind::SelfMessage];
        if !report.errors.iter().any(|e| undefined.contains(&e.kind)) {
            let right = outcome == Outcome::Right;
            prop_assert_eq!(report.is_correct(), right, "{}\n{}", report, schedule.to_json());
        }
        // The simulator has a time exactly for schedules that complete.
        let (found, expected) = (simulated(&schedule, overlap), oracle::time(&schedule, overlap));
        prop_assert_eq!(found, expected, "{}\n{}", report, schedule.to_json());
        let stuck = report.errors.iter().any(|e| {
            use FindingKind::{Deadlock, MessageLength, TwoPorts, Unmatched};
            [Deadlock, MessageLength, TwoPorts, Unmatched].contains(&e.kind)
        });
        prop_assert_eq!(stuck, outcome == Outcome::Stuck, "{}", report);
    }

    /// A schedule that can still be read can be checked, simulated and reversed.
    #[test]
    fn damaged_text_is_read_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12), 1..4),
    ) {
        let mut b = Schedule::builder(3, Ports::BI, Collective::Allreduce);
        for r in 0..3 {
            b.layout(r, 8, [Span::new(0, 4)], [Span::new(0, 4)]);
        }
        b.transfer_combine(2, 1, Span::new(0, 4), Order::MineFirst);
        b.transfer_combine(1, 0, Span::new(0, 4), Order::MineFirst);
        b.step(1, Step::copy(Span::new(0, 2), Span::new(4, 2)));
        b.transfer(0, 1, Span::new(0, 4)).transfer(1, 2, Span::new(0, 4));
        let mut text = b.build().unwrap().to_json();
        for (at, edit) in edits {
            let at = at.index(text.len());
            // Most edits replace digits, because the text then often remains readable.
            let number = text[at..].find(|c: char| c.is_ascii_digit()).map(|i| at + i);
            match (edit, number) {
                (0, _) => text.truncate(at),
                (1, _) => text.replace_range(at..=at, ""),
                (2, _) => text.insert(at, ['[', '}', ',', '"', '-'][at % 5]),
                (3, Some(n)) => text.replace_range(n..=n, "18446744073709551615"),
                (4, Some(n)) => text.replace_range(n..=n, "9223372036854775808"),
                (5, Some(n)) => text.replace_range(n..=n, "18446744073709551616"),
                (e, Some(n)) => text.replace_range(n..=n, &(e - 6).to_string()),
                _ => {}
            }
            if text.is_empty() {
                break;
            }
        }
        match Schedule::from_json(&text) {
            Err(e) => prop_assert!(e.is_usage() && !e.to_string().is_empty()),
            Ok(s) => {
                let report = s.check();
                prop_assert!(!report.to_string().is_empty());
                let _ = s.stats();
                let _ = s.reversed();
                if let Ok(simulation) = s.simulate(&CostModel::new(1.0, 1.0).gamma(1.0)) {
                    prop_assert!(simulation.makespan() >= 0.0);
                } else {
                    prop_assert!(!report.is_correct());
                }
            }
        }
    }
}

#[test]
fn reductions_of_a_thousand_ranks_are_accepted() {
    let mut random = Random::new(1);
    let draws: Vec<u32> = (0..100_000).map(|_| random.below(1 << 30) as u32).collect();
    for in_order in [false, true] {
        let start = std::time::Instant::now();
        let s = reduction(1024, 5, &[1 << 20; 64], Ports::BI, in_order, &draws);
        let planned = start.elapsed();
        let report = s.check();
        assert!(report.is_correct(), "{report}");
        assert_eq!(report.keeps_order, in_order);
        println!(
            "{} steps: planned in {planned:?}, checked {:?}",
            s.steps(),
            start.elapsed() - planned
        );
    }
}

#[test]
fn messages_are_short_and_have_no_control_characters() {
    let shown = |message: &str| Error::malformed(message).to_string();
    assert_eq!(shown("plain, with \u{e9}"), "plain, with \u{e9}");
    assert_eq!(shown("a\u{1b}[31mb\u{7}\nc"), "a\\u{1b}[31mb\\u{7}\\nc");
    let long = format!(
        "unknown field `{}`, expected one of a, b",
        "x".repeat(1 << 20)
    );
    let cut = format!("unknown field `{}... expected one of a, b", "x".repeat(199));
    assert_eq!(shown(&long), cut);
    let words = "word \u{7} ".repeat(1 << 16);
    assert!(shown(&words).len() < 4 * 4_000);
}

#[test]
fn the_generator_is_the_documented_one() {
    // First numbers for seed 0, as published with the algorithm.
    let mut g = Generator::new(0);
    assert_eq!(g.next_u64(), 0xe220_a839_7b1d_cdaf);
    assert_eq!(g.next_u64(), 0x6e78_9e6a_a1b9_65f4);
}
