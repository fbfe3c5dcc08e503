//! Tests of test data: inputs show every contribution, and poison spoils what it is combined with.

use std::collections::HashSet;

use oneport::run::{
    Element, ElementType, Op, Operator, Outcome, Run, Team, TeamOptions, Workers, inputs,
};
use oneport::{Collective, Layout, Ports, Schedule, Span};

use crate::support::alone::shared;

/// What combines with `operator`, or moves elements where that is none.
fn collective<T: Element>(operator: &Operator<T>) -> Collective {
    match operator.op() {
        Some(_) => Collective::Allreduce,
        None => Collective::Allgather,
    }
}

/// The operators of a type, none among them.
fn operators<T: Element>() -> Vec<Operator<T>> {
    let built_in = Op::ALL.into_iter().filter_map(|op| op.try_into().ok());
    built_in.chain([Operator::none()]).collect()
}

/// The inputs of `n` elements of `ranks`, which are some of `p` ranks.
fn values<T: Element>(op: &Operator<T>, p: usize, ranks: &[usize], n: usize) -> Vec<Vec<T>> {
    let layout = |rank| {
        let len = if ranks.contains(&rank) { n } else { 0 };
        Layout {
            len,
            input: Span::new(0, len).into(),
            output: Span::new(0, 0).into(),
        }
    };
    let layouts: Vec<_> = (0..p).map(layout).collect();
    let mut all = inputs(&collective(op), &layouts, op);
    ranks
        .iter()
        .map(|&rank| std::mem::take(&mut all[rank]))
        .collect()
}

/// What the ranks of `team` have after `repetitions` repetitions in which no rank does anything,
/// where `layout` gives the buffer of each rank.
fn untouched<T: Element>(
    team: &mut Team,
    op: &Operator<T>,
    layout: impl Fn(usize) -> Layout,
    repetitions: usize,
) -> Vec<Vec<T>> {
    let (p, collective) = (team.ranks(), collective(op));
    let layouts = (0..p).map(layout).collect();
    let schedule = Schedule::new(Ports::BI, collective, layouts, vec![Vec::new(); p]).unwrap();
    let run = Run::new(&schedule).op(op).verified().eager(false);
    let outcome: Outcome<T> = run.repetitions(repetitions).on(team).unwrap();
    outcome.outputs
}

/// A team whose ranks have one thread for each core.
fn team(ranks: usize) -> Team {
    let options = TeamOptions {
        workers: Workers::Cores,
        ..TeamOptions::default()
    };
    Team::with(ranks, &options).unwrap()
}

/// 300 values of poison: those of 20 ranks after 1 to 15 repetitions.
fn poison<T: Element>(team: &mut Team, op: &Operator<T>) -> Vec<T> {
    let outputs = if op.op().is_some() { 1 } else { team.ranks() };
    let layout = |_| Layout {
        len: 1 + outputs,
        input: Span::new(0, 1).into(),
        output: Span::new(1, outputs).into(),
    };
    let all = (1..=15).flat_map(|repetitions| untouched(team, op, layout, repetitions));
    all.map(|output| output[0]).collect()
}

/// Checks that no test value is one of `identities`, NaN, or poison.
fn check_values<T: Element + PartialOrd>(identities: &[T]) {
    let mut team = team(20);
    for op in operators::<T>() {
        // A logical takes one bit of each value.
        if ["land", "lor", "lxor"].contains(&op.name()) {
            continue;
        }
        let poison = poison(&mut team, &op);
        for p in [1, 2, 3, 8, 100, 1000] {
            let ranks = [0, 1, p - 1];
            let ranks = if p < 3 { &ranks[..p] } else { &ranks };
            for value in values(&op, p, ranks, 2000).concat() {
                assert!(!identities.contains(&value), "{op:?} p={p} {value:?}");
                assert!(value.partial_cmp(&value).is_some(), "{op:?} {value:?}");
                assert!(!poison.contains(&value), "{op:?} p={p} {value:?}");
            }
        }
        // Poison changes between repetitions. (For NaN this holds trivially: it is never equal to
        // anything.)
        assert!(poison.iter().any(|value| *value != poison[0]), "{op:?}");
    }
}

#[test]
fn no_value_is_an_identity_or_poison() {
    let _shared = shared();
    check_values::<u8>(&[0, 1, u8::MAX]);
    check_values::<i8>(&[0, 1, -1]);
    check_values::<u16>(&[0, 1, u16::MAX]);
    check_values::<i16>(&[0, 1, -1]);
    check_values::<u32>(&[0, 1, u32::MAX]);
    check_values::<i32>(&[0, 1, -1, i32::MIN, i32::MAX]);
    check_values::<i64>(&[0, 1, -1, i64::MIN, i64::MAX]);
    check_values::<u64>(&[0, 1, u64::MAX]);
    {
        use oneport::run::{bf16, f16};
        check_values::<f16>(&[f16::ZERO, f16::ONE, f16::INFINITY, f16::NEG_INFINITY]);
        check_values::<bf16>(&[bf16::ZERO, bf16::ONE, bf16::INFINITY, bf16::NEG_INFINITY]);
    }
    check_values::<f32>(&[0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY]);
    check_values::<f64>(&[0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
}

fn check_poison<T: Element>() {
    let mut team = team(20);
    for op in operators::<T>() {
        if op.op().is_none() {
            let two = values(&op, 5, &[1, 2], 500);
            let pairs = two[0].iter().zip(&two[1]);
            let spoiled = pairs.filter(|&(&a, &b)| ![a, b].contains(&op.apply(a, b)));
            assert!(spoiled.count() > 480);
            continue;
        }
        let poison = poison(&mut team, &op);
        let inputs = values(&op, 5, &[2], poison.len()).remove(0);
        let mut spoiled = 0;
        for (&value, &poison) in inputs.iter().zip(&poison) {
            let results = [op.apply(value, poison), op.apply(poison, value)];
            spoiled += usize::from(!results.contains(&value));
        }
        // The zero that decides a logical and absorbs everything.
        let decided = match op.name() {
            "land" => inputs.len() / 5,
            _ => 0,
        };
        assert!(spoiled + decided >= inputs.len(), "{op:?}: {spoiled}");
    }
}

#[test]
fn poison_spoils_what_it_is_combined_with() {
    let _shared = shared();
    for &dtype in ElementType::ALL {
        oneport::with_element_type!(dtype, T => check_poison::<T>());
    }
}

/// Checks that the result of combining 6 ranks reveals each faulty contribution in some of 400
/// elements: one that is missing, counted twice or three times, or replaced by another rank's.
fn check_visible<T: Element>(name: &str) {
    let op = Operator::<T>::named(name).unwrap();
    let idempotent = [
        "min", "max", "minloc", "maxloc", "band", "bor", "land", "lor",
    ];
    let forgives = idempotent.contains(&name);
    let one_bit = name == "lxor";
    const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];
    let n = 400;
    let inputs = values(&op, ALL.len(), &ALL, n);
    let combine = |ranks: &[usize]| -> Vec<T> {
        let one = |i: usize| {
            let values = ranks.iter().map(|&r| inputs[r][i]);
            values.reduce(|a, b| op.apply(a, b))
        };
        (0..n).filter_map(one).collect()
    };
    let right = combine(&ALL);
    let shows = |ranks: &[usize]| {
        let wrong = combine(ranks);
        right.iter().zip(wrong).filter(|&(&a, b)| a != b).count()
    };
    for rank in ALL {
        let peers: Vec<usize> = ALL.into_iter().filter(|&r| r != rank).collect();
        let context = format!("{name} {} rank {rank}", std::any::type_name::<T>());
        assert!(shows(&peers) > n / 20, "{context} missing");
        let instead = [&peers[..], &[(rank + 1) % ALL.len()]].concat();
        assert!(shows(&instead) > n / 20, "{context} replaced");
        if !forgives {
            let twice = [&ALL[..], &[rank]].concat();
            let min = if one_bit { n / 2 } else { n * 9 / 10 };
            assert!(shows(&twice) > min, "{context} twice");
        }
        if !forgives && !["bxor", "lxor"].contains(&name) {
            let thrice = [&ALL[..], &[rank, rank]].concat();
            assert!(shows(&thrice) > n / 2, "{context} three times");
        }
    }
}

#[test]
fn results_show_every_contribution() {
    let _shared = shared();
    for &dtype in ElementType::ALL {
        for op in dtype.operators() {
            oneport::with_element_type!(dtype, T => check_visible::<T>(op.name()));
        }
    }
}

#[test]
fn values_have_no_period_and_differ_between_ranks_and_repetitions() {
    let _shared = shared();
    let none = Operator::<u8>::none();
    let bytes = values(&none, 8, &[0], 1 << 16).remove(0);
    for shift in (1..5000).chain([8192, 1 << 15]) {
        let same = bytes[shift..].iter().zip(&bytes).filter(|(a, b)| a == b);
        let (same, all) = (same.count(), bytes.len() - shift);
        assert!(same < all / 100, "{same} of {all} repeat after {shift}");
    }
    let mut seen = HashSet::new();
    let mut team = team(20);
    let own = |rank| Span::new(100 * rank, 100);
    for repetitions in 1..=20 {
        let layout = |rank| Layout {
            len: 2000,
            input: own(rank).into(),
            output: Span::new(0, 2000).into(),
        };
        let outputs = untouched(&mut team, &Operator::<u64>::none(), layout, repetitions);
        for (rank, output) in outputs.iter().enumerate() {
            for value in &output[own(rank).offset..own(rank).end()] {
                assert!(seen.insert(*value), "{repetitions}, rank {rank}: {value}");
            }
        }
    }
}

#[test]
fn parts_of_an_input_are_those_of_the_whole() {
    let _shared = shared();
    let none = Operator::<u8>::none();
    let whole = values(&none, 1, &[0], 50);
    let mut team = Team::new(1).unwrap();
    for first in 0..20 {
        let parts = [Span::new(0, first), Span::new(first + 1, 50 - first)];
        let layout = |_| Layout {
            len: 51,
            input: parts.into_iter().collect(),
            output: parts.into_iter().collect(),
        };
        assert_eq!(untouched(&mut team, &none, layout, 1), whole);
    }
}

#[test]
fn float_results_do_not_depend_on_the_order() {
    let _shared = shared();
    for name in ["sum", "prod", "min", "max"] {
        for p in [2, 7, 64, 500, 3000] {
            let op = Operator::<f32>::named(name).unwrap();
            let all: Vec<usize> = (0..p).collect();
            let inputs = values(&op, p, &all, 50);
            for i in 0..50 {
                let v: Vec<f32> = inputs.iter().map(|input| input[i]).collect();
                let combine = |order: &mut dyn Iterator<Item = f32>| {
                    order.reduce(|a, b| op.apply(a, b)).unwrap()
                };
                let forwards = combine(&mut v.iter().copied());
                let backwards = combine(&mut v.iter().rev().copied());
                let mut sorted = v.clone();
                sorted.sort_by(|a, b| b.abs().total_cmp(&a.abs()).then(b.total_cmp(a)));
                let by_size = combine(&mut sorted.iter().copied());
                assert_eq!([forwards, forwards], [backwards, by_size], "{name} p={p}");
                assert!(forwards.is_finite() && forwards != 0.0, "{name} p={p}");
                let exact = v.iter().map(|&x| f64::from(x)).sum::<f64>();
                assert!(name != "sum" || f64::from(forwards) == exact);
            }
        }
    }
}

#[test]
fn affine_is_associative_and_does_not_commute() {
    let _shared = shared();
    let op = Operator::<u64>::named("affine").unwrap();
    for w in values(&op, 50, &[1], 50)[0].windows(3) {
        let (a, b, c) = (w[0], w[1], w[2]);
        assert_eq!(op.apply(op.apply(a, b), c), op.apply(a, op.apply(b, c)));
        assert_ne!(op.apply(a, b), op.apply(b, a));
    }
}
