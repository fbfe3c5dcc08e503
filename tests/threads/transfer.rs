//! Tests of copying and combining: every length and alignment, with and without streaming stores.

use oneport::run::{Endpoint, Operator, Run, ScopeOptions, Team, TeamOptions};
use oneport::{Order, Ports, Span, Step};

use crate::support::alone::shared;
use crate::support::plans::schedule;

/// A team of two ranks that copies all messages with streaming stores, or none.
fn team(streams: bool) -> Team {
    let mut options = TeamOptions::default();
    options.tuning.cache_bytes = Some(if streams { 0 } else { usize::MAX });
    options.tuning.min_stream_bytes = 1;
    Team::with(2, &options).unwrap()
}

#[test]
fn every_length_and_alignment_arrives() {
    let _shared = shared();
    const LEN: usize = 2000;
    let sent: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    for streams in [false, true] {
        let mut buffers = vec![sent.clone(), vec![0; LEN]];
        let options = ScopeOptions::new(Operator::none());
        let body = |e: &mut Endpoint<u8>| {
            for bytes in (0..300).chain([1024, 1500]) {
                for (from, to) in [(0, 0), (1, 0), (0, 3), (17, 40), (63, 64)] {
                    if e.rank() == 0 {
                        e.send(1, from..from + bytes)?;
                        continue;
                    }
                    e.data_mut()?.fill(0xff);
                    e.recv(0, to..to + bytes)?;
                    let mut expected = [0xff; LEN];
                    expected[to..to + bytes].copy_from_slice(&sent[from..from + bytes]);
                    assert!(e.data() == expected, "{bytes} bytes from {from} to {to}");
                }
            }
            Ok(())
        };
        team(streams).scope(&mut buffers, &options, body).unwrap();
    }
}

#[test]
fn messages_in_pieces_arrive() {
    let _shared = shared();
    const LEN: usize = 1000;
    let sum = Operator::<u8>::named("sum").unwrap();
    // Pieces of 0 to 39 elements, one element apart.
    let short = (0..40).map(|len| Span::new(1 + len * (len + 1) / 2, len));
    let initial: Vec<Vec<u8>> = [3, 7]
        .map(|step| (0..LEN).map(|i| (step * i) as u8).collect())
        .into();
    for streams in [false, true] {
        let mut team = team(streams);
        for spans in [
            vec![Span::new(3, 900)],
            vec![Span::new(5, 77), Span::new(100, 640)],
            short.clone().collect(),
        ] {
            let total = spans.iter().map(|s| s.len).sum();
            let whole = vec![Span::new(7, total)];
            for (from, to) in [(&spans, &spans), (&whole, &spans), (&spans, &whole)] {
                let programs = vec![
                    vec![Step::send(1, &from[..]); 2],
                    vec![
                        Step::recv(0, &to[..]),
                        Step::recv_combine(0, &to[..], Order::MineFirst),
                    ],
                ];
                let schedule = schedule(Ports::UNI, LEN, programs);
                let mut expected = initial[1].clone();
                let indices = |spans: &[Span]| -> Vec<usize> {
                    spans.iter().flat_map(|s| s.offset..s.end()).collect()
                };
                for (i, j) in indices(from).into_iter().zip(indices(to)) {
                    expected[j] = initial[0][i].wrapping_mul(2);
                }
                for eager in [false, true] {
                    let run = Run::new(&schedule).op(&sum).inputs(&initial).eager(eager);
                    let outcome = run.on(&mut team).unwrap();
                    assert!(outcome.outputs[1] == expected, "{from:?} to {to:?}");
                }
            }
        }
    }
}

/// Long combinations use the widest vectors that the machine has, single elements do not.
#[test]
fn long_and_single_combinations_agree() {
    let _shared = shared();
    let mut team = Team::new(1).unwrap();
    for n in [0, 1, 63, 64, 65, 1000, 1003] {
        for name in ["sum", "prod", "min"] {
            let operator = Operator::<f32>::named(name).unwrap();
            let theirs = (0..n).map(|i| i as f32 * 0.37 - 5.0);
            let mine = (0..n).map(|i| 11.0 - i as f32 * 0.11);
            let mut buffers = vec![theirs.clone().chain(mine.clone()).collect::<Vec<_>>()];
            let options = ScopeOptions::new(operator.clone());
            let body = |e: &mut Endpoint<f32>| e.combine(0..n, n..2 * n, Order::MineFirst);
            team.scope(&mut buffers, &options, body).unwrap();
            let expected = mine
                .zip(theirs)
                .map(|(a, b)| operator.apply(a, b).to_bits());
            assert!(
                expected.eq(buffers[0][n..].iter().map(|x| x.to_bits())),
                "{name} of {n}"
            );
        }
    }
}
