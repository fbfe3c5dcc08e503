//! Tests of `Run::verified` on wrong schedules: some that careless test data would accept, and
//! (`verify/mutants.rs`) thousands of mutants of correct schedules.

use std::time::Duration;

use oneport::run::{
    Element, ElementType, Endpoint, Op, Operator, Outcome, Run, ScopeOptions, Team, TeamOptions,
    Workers,
};
use oneport::{Collective, Kind, Order, Ports, Request, Schedule, Span, Step};

use crate::support::alone::shared;
use crate::support::sample::Sample;

mod mutants;

/// A schedule of `p` ranks with buffers of `len` elements. `layout` gives the input and the output
/// span of each rank.
fn schedule(
    p: usize,
    len: usize,
    collective: Collective,
    layout: impl Fn(usize) -> (Option<Span>, Option<Span>),
    steps: &[(usize, Step)],
) -> Schedule {
    let mut b = Schedule::builder(p, Ports::BI, collective);
    for rank in 0..p {
        let (input, output) = layout(rank);
        b.layout(rank, len, input, output);
    }
    for (rank, step) in steps {
        b.step(*rank, step.clone());
    }
    b.build().unwrap()
}

fn broadcast(p: usize, n: usize, steps: &[(usize, Step)]) -> Schedule {
    let all = Span::new(0, n);
    let layout = |rank| ((rank == 0).then_some(all), Some(all));
    schedule(p, n, Collective::Broadcast { root: 0 }, layout, steps)
}

fn reduce(p: usize, n: usize, steps: &[(usize, Step)]) -> Schedule {
    let all = Span::new(0, n);
    let layout = |rank| (Some(all), (rank == 0).then_some(all));
    schedule(p, n, Collective::Reduce { root: 0 }, layout, steps)
}

/// Calls `run` with a team and the eagerness of every mode.
fn each_mode(p: usize, mut run: impl FnMut(&mut Team, bool, &str)) {
    for workers in [Workers::Ranks, Workers::Cores] {
        let options = TeamOptions {
            workers,
            ..TeamOptions::default()
        };
        let mut team = Team::with(p, &options).unwrap();
        for eager in [true, false] {
            run(&mut team, eager, &format!("{workers:?}, eager: {eager}"));
        }
    }
}

fn assert_wrong<T: Element>(schedule: &Schedule, operator: &Operator<T>, what: &str) {
    assert!(!schedule.check().is_correct(), "{what}");
    each_mode(schedule.ranks(), |team, eager, mode| {
        let run = Run::new(schedule).op(operator).verified().eager(eager);
        let run = run.repetitions(3).deadline(Duration::from_secs(60));
        let outcome = run.on(team).unwrap();
        let name = format!("{what}, {}, {mode}", named(operator));
        assert!(!outcome.is_verified(), "{name}");
        let mismatch = outcome.mismatch.unwrap();
        assert_eq!(outcome.compared, 3 + usize::from(outcome.eager), "{name}");
        assert_eq!(mismatch.repetition, 0, "{name}");
    });
}

macro_rules! for_all_types {
    ($f:ident($($argument:expr)?)) => {
        for &dtype in ElementType::ALL {
            oneport::with_element_type!(dtype, T => $f::<T>($($argument)?));
        }
        $f::<Complex>($($argument)?);
    };
}

/// A type of our own, with padding between its fields.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Complex {
    re: i8,
    im: i64,
}

impl Element for Complex {
    fn test_value(bits: u64) -> Self {
        Complex {
            re: bits as i8,
            im: bits as i64 >> 8,
        }
    }
}

impl Complex {
    fn sum() -> Operator<Complex> {
        Operator::new("sum", true, |a: Complex, b: Complex| Complex {
            re: a.re.wrapping_add(b.re),
            im: a.im.wrapping_add(b.im),
        })
    }
}

/// The type and the operator of a run.
fn named<T: Element>(operator: &Operator<T>) -> String {
    format!("{} {}", std::any::type_name::<T>(), operator.name())
}

#[test]
fn missing_messages_and_contributions_are_detected() {
    let _shared = shared();
    fn with<T: Element>() {
        let nothing = broadcast(2, 1, &[]);
        assert_wrong(&nothing, &Operator::<T>::none(), "no rank sends");
        for name in Op::ALL.map(Op::name) {
            let Ok(operator) = Operator::<T>::named(name) else {
                continue;
            };
            assert_wrong(&nothing, &operator, "no rank sends");
            // Rank 0 overwrites its own contribution with that of rank 1.
            let overwritten = reduce(
                2,
                64,
                &[
                    (1, Step::send(0, Span::new(0, 64))),
                    (0, Step::recv(1, Span::new(0, 64))),
                ],
            );
            assert_wrong(&overwritten, &operator, "rank 0's contribution is missing");
        }
    }
    for_all_types!(with());
}

/// A reduction over 3 ranks in which the root combines messages from `senders`, in this order.
fn reduce_from(senders: &[usize], n: usize) -> Schedule {
    let all = Span::new(0, n);
    let mut steps = Vec::new();
    for &rank in senders {
        steps.push((rank, Step::send(0, all)));
        steps.push((0, Step::recv_combine(rank, all, Order::MineFirst)));
    }
    reduce(3, n, &steps)
}

#[test]
fn wrong_contributions_never_give_the_expected_result() {
    let _shared = shared();
    let mut sample = Sample::each(3);
    fn with<T: Element>(sample: &mut Sample) {
        for name in Op::ALL.map(Op::name) {
            let Ok(operator) = Operator::<T>::named(name) else {
                continue;
            };
            for senders in [[1, 1].as_slice(), &[2, 2], &[1], &[2]] {
                if !sample.takes() {
                    continue;
                }
                assert_wrong(&reduce_from(senders, 128), &operator, "wrong ranks");
            }
            // One 16-bit float has so few values that chance may hide a multiple.
            let few_values = size_of::<T>() == 2;
            let elements = if few_values { 64 } else { 1 };
            if ["sum", "prod", "affine"].contains(&name) {
                for senders in [
                    [1, 1, 1].as_slice(),
                    &[1, 2, 2, 2],
                    &[1, 1, 1, 2],
                    &[1, 2, 1, 2],
                ] {
                    if !sample.takes() {
                        continue;
                    }
                    assert_wrong(
                        &reduce_from(senders, elements),
                        &operator,
                        "wrong multiples",
                    );
                }
            }
        }
        // The contributions are shifted against each other, so that the sums of indices agree.
        let (low, high) = (Span::new(0, 8), Span::new(2, 8));
        let middle = Span::new(1, 8);
        let layout = |rank| {
            let all = Span::new(0, 10);
            (Some(all), (rank == 0).then_some(all))
        };
        let steps = [
            (1, Step::send(0, low)),
            (0, Step::recv_combine(1, middle, Order::MineFirst)),
            (2, Step::send(0, high)),
            (0, Step::recv_combine(2, middle, Order::MineFirst)),
        ];
        let shifted = schedule(3, 10, Collective::Reduce { root: 0 }, layout, &steps);
        if let Ok(sum) = Operator::<T>::named("sum") {
            assert_wrong(&shifted, &sum, "shifted");
        }
    }
    for_all_types!(with(&mut sample));
}

#[test]
fn swapped_parts_are_detected() {
    let _shared = shared();
    fn with<T: Element>() {
        let n = (64 << 10) / size_of::<T>();
        let (a, b) = (Span::new(0, n / 2), Span::new(n / 2, n / 2));
        let mut steps = Vec::new();
        for rank in 1..8 {
            steps.push((0, Step::send(rank, [a, b].as_slice())));
            steps.push((rank, Step::recv(0, [b, a].as_slice())));
        }
        assert_wrong(&broadcast(8, n, &steps), &Operator::<T>::none(), "halves");
    }
    for_all_types!(with());
}

#[test]
fn a_combination_in_a_broadcast_is_detected() {
    let _shared = shared();
    fn with<T: Element>() {
        let all = Span::new(0, 16);
        let scratch = Span::new(16, 16);
        let layout = |rank| ((rank == 0).then_some(all), Some(all));
        let steps = [
            (0, Step::send(1, all)),
            (1, Step::recv(0, all)),
            (1, Step::copy(all, scratch)),
            (1, Step::combine(scratch, all, Order::MineFirst)),
        ];
        let combined = schedule(2, 32, Collective::Broadcast { root: 0 }, layout, &steps);
        assert_wrong(&combined, &Operator::<T>::none(), "combined");
    }
    for_all_types!(with());
}

#[test]
fn every_repetition_has_its_own_data_and_is_compared() {
    let _shared = shared();
    // Runs with different numbers of repetitions end with different data.
    let correct = broadcast(
        2,
        4,
        &[
            (0, Step::send(1, Span::new(0, 4))),
            (1, Step::recv(0, Span::new(0, 4))),
        ],
    );
    let mut team = Team::new(2).unwrap();
    let none = Operator::<u64>::none();
    let last = |repetitions| {
        let outcome: Outcome<u64> = Run::new(&correct)
            .op(&none)
            .verified()
            .repetitions(repetitions)
            .on(&mut team)
            .unwrap();
        assert!(outcome.is_verified());
        assert_eq!(outcome.compared, repetitions + usize::from(outcome.eager));
        outcome.outputs[1].clone()
    };
    let outputs: Vec<_> = [2, 3, 4, 5, 6].map(last).to_vec();
    for (i, a) in outputs.iter().enumerate() {
        assert!(outputs[i + 1..].iter().all(|b| a != b), "{outputs:?}");
    }
    // A result that is wrong in one repetition only, which is not the last.
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let once = Operator::<u64>::new("sum but once", true, move |a: u64, b| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The oracle calls the operator first: one element in each of the 10 repetitions.
        a.wrapping_add(b) ^ u64::from(call == 10 + 3)
    });
    let sum = reduce(
        2,
        1,
        &[
            (1, Step::send(0, Span::new(0, 1))),
            (0, Step::recv_combine(1, Span::new(0, 1), Order::MineFirst)),
        ],
    );
    let outcome = Run::new(&sum)
        .op(&once)
        .verified()
        .repetitions(10)
        .eager(false)
        .on(&mut team)
        .unwrap();
    assert!(!outcome.is_verified());
    let mismatch = outcome.mismatch.unwrap();
    assert_eq!(
        (mismatch.repetition, mismatch.rank, mismatch.index),
        (3, 0, 0)
    );
    let text = mismatch.to_string();
    assert!(text.starts_with("rank 0, output element 0") && text.contains("Schedule::check"));
    let values = format!("{mismatch:#}");
    assert!(text.starts_with(&values) && values.ends_with("(repetition 3)"));
}

#[test]
fn a_type_of_the_callers_own_is_verified() {
    let _shared = shared();
    // Messages of every regime: none, one element, slots, both partners copy, past the caches.
    for n in [0, 1, 3, 1000, 100_000] {
        for (kind, algorithm) in [
            ("reduce", "binomial"),
            ("allreduce", "ring"),
            ("alltoall", "pairwise"),
        ] {
            let request = Request::new(kind.parse::<Kind>().unwrap(), 3, n);
            let schedule = request.plan(algorithm).unwrap();
            each_mode(3, |team, eager, mode| {
                let run = Run::new(&schedule)
                    .op(Complex::sum())
                    .verified()
                    .eager(eager);
                let outcome = run.repetitions(3).on(team).unwrap();
                assert!(outcome.is_verified(), "{kind}, {n} elements, {mode}");
            });
        }
    }
}

/// An element of `8 * N` bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wide<const N: usize>([u64; N]);

impl<const N: usize> Element for Wide<N> {
    fn test_value(bits: u64) -> Self {
        Wide([bits; N])
    }
}

/// Runs a broadcast and an allreduce with elements of `8 * N` bytes, verified, and moves and
/// combines one in rank programs, on stacks of `stack_bytes` bytes.
fn run_wide<const N: usize>(stack_bytes: usize) -> oneport::Result<()> {
    let sum = Operator::<Wide<N>>::new("sum", true, |a, b| {
        Wide(std::array::from_fn(|i| a.0[i].wrapping_add(b.0[i])))
    });
    for workers in [Workers::Ranks, Workers::Cores] {
        let options = TeamOptions {
            stack_bytes,
            workers,
            ..TeamOptions::default()
        };
        let mut team = Team::with(3, &options)?;
        for request in [Request::broadcast(3, 3), Request::allreduce(3, 3)] {
            let schedule = request.plan("binomial")?;
            for eager in [false, true] {
                let run = Run::new(&schedule).op(&sum).verified().eager(eager);
                assert!(run.repetitions(2).on(&mut team)?.is_verified());
            }
        }
        // Combining without an operator is found, and what it spoils is told.
        let wrong = reduce(2, 3, &[]);
        let mut pair = Team::with(2, &options)?;
        let outcome = Run::new(&wrong).op(&sum).verified().on(&mut pair)?;
        assert!(outcome.mismatch.is_some());
    }
    let options = TeamOptions {
        stack_bytes,
        ..TeamOptions::default()
    };
    let mut buffers = vec![vec![Wide([1; N]); 2]; 2];
    let scope = ScopeOptions::new(sum);
    let mut team = Team::with(2, &options)?;
    team.scope(&mut buffers, &scope, |e: &mut Endpoint<Wide<N>>| {
        match e.rank() {
            0 => e.recv_combine(1, 0..2, Order::MineFirst)?,
            _ => e.send(0, 0..2)?,
        }
        Ok(())
    })?;
    assert_eq!(buffers[0][1].0[N - 1], 2);
    Ok(())
}

#[test]
fn long_elements_fit_into_the_stacks_of_ranks_or_are_refused() {
    let _shared = shared();
    let default = TeamOptions::default().stack_bytes;
    // 1, 16 and 64 KiB.
    run_wide::<128>(default).unwrap();
    run_wide::<2048>(default).unwrap();
    run_wide::<8192>(1 << 20).unwrap();
    let error = run_wide::<8192>(default).unwrap_err();
    assert!(error.is_usage(), "{error}");
    for part in ["elements of 65536 bytes", "1048576", "262144"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn inputs_of_the_caller_are_verified_too() {
    let _shared = shared();
    let mut team = Team::new(4).unwrap();
    let schedule = Request::reduce(4, 10).plan("binomial").unwrap();
    let inputs: Vec<Vec<i64>> = (0..4).map(|rank| vec![rank; 10]).collect();
    let run = Run::new(&schedule).op(Op::SUM).inputs(&inputs);
    let outcome = run.on(&mut team).unwrap();
    assert_eq!(outcome.outputs[0], [6; 10]);
    assert!(!outcome.is_verified());
    let outcome = run.clone().verified().repetitions(3).on(&mut team).unwrap();
    assert!(outcome.is_verified() && outcome.wall.count() == 3);
    // Not associative: the tree combines in another order than the sequential computation.
    let wrong = Operator::new("wrong", true, |_, b: i64| b + 1);
    let outcome = run.op(wrong).verified().on(&mut team).unwrap();
    let mismatch = outcome.mismatch.expect("another order");
    assert_eq!((mismatch.rank, mismatch.index), (0, 0));
}

#[test]
fn only_collectives_that_combine_need_an_operator() {
    let _shared = shared();
    let mut team = Team::new(3).unwrap();
    let schedule = Request::broadcast(3, 5).plan("binomial").unwrap();
    let outcome = Run::<u8>::new(&schedule).verified().on(&mut team).unwrap();
    assert!(outcome.is_verified());
    let schedule = Request::scan(3, 5).plan("recursive-doubling").unwrap();
    let error = Run::<u8>::new(&schedule).on(&mut team).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("scan needs an operator"));
    let error = Run::<f32>::new(&schedule)
        .op(Op::BXOR)
        .on(&mut team)
        .unwrap_err();
    assert_eq!(error.to_string(), "f32 has no operator 'bxor'");
}

/// Test data whose sums and products show the order of combining: of every reduction, each rank has
/// the bits of the schedule's own tree, and those of another tree are noticed.
#[test]
fn outputs_have_the_bits_of_the_trees_of_the_schedule() {
    let _shared = shared();
    fn with<T: Element>(op: Op) {
        let planned = |kind: Kind, name: &str| Request::new(kind, 6, 30).plan(name).unwrap();
        let same = [
            planned(Kind::Allreduce, "recursive-doubling"),
            planned(Kind::Allreduce, "rabenseifner"),
        ];
        let others = [
            planned(Kind::Allreduce, "ring"),
            planned(Kind::Allreduce, "one-shot"),
            planned(Kind::Allreduce, "chain"),
        ];
        each_mode(6, |team, eager, mode| {
            let mut run = |schedule, trees_of| {
                let run = Run::<T>::new(schedule).op(op).verified().eager(eager);
                run.repetitions(3).in_trees_of(trees_of).on(team).unwrap()
            };
            for schedule in same.iter().chain(&others) {
                assert!(run(schedule, schedule).is_verified(), "{op} {mode}");
            }
            let [a, b] = &same;
            assert!(
                run(a, b).is_verified() && run(b, a).is_verified(),
                "{op} {mode}"
            );
            for other in &others {
                for outcome in [run(a, other), run(other, a)] {
                    let mismatch = outcome.mismatch.expect("other bits");
                    assert_ne!(mismatch.expected, mismatch.found, "{op} {mode}");
                }
            }
        });
    }
    for op in [Op::SUM, Op::PROD] {
        with::<f32>(op);
        with::<f64>(op);
        with::<oneport::run::f16>(op);
        with::<oneport::run::bf16>(op);
    }
}

/// A verified run compares bits where the order of combining decides them, and there alone.
#[test]
fn verified_runs_of_float_sums_compare_bits() {
    let _shared = shared();
    fn compared<T: Element>(team: &mut Team, schedule: &Schedule, op: Op) -> usize {
        let run = Run::<T>::new(schedule).op(op).verified().repetitions(2);
        let outcome = run.clone().on(team).unwrap();
        assert!(outcome.is_verified());
        let given = vec![vec![T::test_value(0); 20]; 5];
        let exact = run.clone().exact_alone().on(team).unwrap();
        let given = run.inputs(&given).on(team).unwrap();
        assert_eq!([exact.compared_bits, given.compared_bits], [0, 0]);
        outcome.compared_bits
    }
    each_mode(5, |team, _, mode| {
        for kind in [Kind::Allreduce, Kind::Scan, Kind::ReduceScatter] {
            let name = if kind == Kind::Scan { "chain" } else { "ring" };
            let schedule = Request::new(kind, 5, 20).plan(name).unwrap();
            assert!(compared::<f32>(team, &schedule, Op::SUM) > 0, "{mode}");
            assert!(compared::<f64>(team, &schedule, Op::PROD) > 0, "{mode}");
            assert_eq!(compared::<f32>(team, &schedule, Op::MAX), 0, "{mode}");
            assert_eq!(compared::<u32>(team, &schedule, Op::SUM), 0, "{mode}");
        }
    });
}
