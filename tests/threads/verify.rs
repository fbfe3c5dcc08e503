//! `Team::run_verified` against wrong schedules: those that are known to deceive careless test
//! data, and thousands of mutants of right ones.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

use std::collections::BTreeMap;
use std::time::Duration;

use oneport::check::{FindingKind, Options, check};
use oneport::plan::{Segments, registry};
use oneport::run::{Element, Operator, Outcome, RunOptions, Team, TeamOptions, Workers};
use oneport::{Collective, Order, Ports, Request, Schedule, Span, Step};

use crate::mutants;
use crate::support::alone::shared;
use crate::support::random::Random;

/// A schedule of `p` ranks with buffers of `len` elements; `layout` gives what part is input and
/// output.
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

/// Runs in every mode; `repetitions` of the schedule itself, which is not proved first.
fn each_mode(p: usize, repetitions: usize, mut run: impl FnMut(&mut Team, &RunOptions, &str)) {
    for workers in [Workers::Ranks, Workers::Cores] {
        let options = TeamOptions {
            workers,
            deadline: Duration::from_millis(200),
            ..TeamOptions::default()
        };
        let mut team = Team::with(p, &options).unwrap();
        for eager in [true, false] {
            let options = RunOptions {
                repetitions,
                eager,
                ..RunOptions::default()
            };
            run(&mut team, &options, &format!("{workers:?}, eager: {eager}"));
        }
    }
}

fn is_wrong<T: Element>(schedule: &Schedule, operator: &Operator<T>, what: &str) {
    assert!(!check(schedule, &Options::default()).ok(), "{what}");
    each_mode(schedule.ranks(), 3, |team, options, mode| {
        let outcome = team.run_verified(schedule, operator, options).unwrap();
        let name = format!("{what}, {} {}, {mode}", T::TYPE.name(), operator.name());
        assert!(!outcome.is_verified(), "{name}");
        let mismatch = outcome.mismatch.unwrap();
        assert_eq!(outcome.compared, 3 + usize::from(outcome.eager), "{name}");
        assert_eq!(mismatch.repetition, 0, "{name}");
    });
}

macro_rules! for_all_types {
    ($f:ident) => {
        $f::<u8>();
        $f::<i32>();
        $f::<i64>();
        $f::<u64>();
        $f::<f32>();
        $f::<f64>();
    };
}

#[test]
fn what_was_never_sent_or_heard_shows_in_a_single_element() {
    let _shared = shared();
    fn with<T: Element>() {
        let nothing = broadcast(2, 1, &[]);
        is_wrong(&nothing, &Operator::<T>::none(), "nobody sends");
        for name in Operator::<T>::NAMES {
            let Ok(operator) = Operator::<T>::named(name) else {
                continue;
            };
            is_wrong(&nothing, &operator, "nobody sends");
            // Only rank 1 gets its own contribution into the result; rank 0 overwrites its own.
            let deaf = reduce(
                2,
                64,
                &[
                    (1, Step::send(0, Span::new(0, 64))),
                    (0, Step::recv(1, Span::new(0, 64))),
                ],
            );
            is_wrong(&deaf, &operator, "rank 0 is lost");
        }
    }
    for_all_types!(with);
}

/// A reduction over 3 ranks in which the root combines what `senders` send, one after another.
fn from(senders: &[usize], n: usize) -> Schedule {
    let all = Span::new(0, n);
    let mut steps = Vec::new();
    for &rank in senders {
        steps.push((rank, Step::send(0, all)));
        steps.push((0, Step::recv_combine(rank, all, Order::MineFirst)));
    }
    reduce(3, n, &steps)
}

#[test]
fn other_contributions_that_might_add_up_to_the_same_do_not() {
    let _shared = shared();
    fn with<T: Element>() {
        for name in Operator::<T>::NAMES {
            let Ok(operator) = Operator::<T>::named(name) else {
                continue;
            };
            for senders in [[1, 1].as_slice(), &[2, 2], &[1], &[2]] {
                is_wrong(&from(senders, 128), &operator, "wrong ranks");
            }
            if ["sum", "prod", "affine"].contains(&name) {
                for senders in [
                    [1, 1, 1].as_slice(),
                    &[1, 2, 2, 2],
                    &[1, 1, 1, 2],
                    &[1, 2, 1, 2],
                ] {
                    is_wrong(&from(senders, 1), &operator, "wrong multiples");
                }
            }
        }
        // What the ranks contribute is shifted against each other, so that sums of indices agree.
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
        is_wrong(&shifted, &Operator::<T>::named("sum").unwrap(), "shifted");
    }
    for_all_types!(with);
}

#[test]
fn parts_that_changed_places_show() {
    let _shared = shared();
    fn with<T: Element>() {
        let n = (64 << 10) / size_of::<T>();
        let (a, b) = (Span::new(0, n / 2), Span::new(n / 2, n / 2));
        let mut steps = Vec::new();
        for rank in 1..8 {
            steps.push((0, Step::send(rank, [a, b].as_slice())));
            steps.push((rank, Step::recv(0, [b, a].as_slice())));
        }
        is_wrong(&broadcast(8, n, &steps), &Operator::<T>::none(), "halves");
    }
    for_all_types!(with);
}

#[test]
fn what_is_combined_where_nothing_is_to_be_combined_shows() {
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
        is_wrong(&combined, &Operator::<T>::none(), "combined");
    }
    for_all_types!(with);
}

#[test]
fn every_repetition_has_data_of_its_own_and_is_compared() {
    let _shared = shared();
    // The first repetition leaves what the second finds, if nobody clears it: nothing is sent, and
    // the operator remembers.
    let right = broadcast(
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
        let options = RunOptions {
            repetitions,
            ..RunOptions::default()
        };
        let outcome: Outcome<u64> = team.run_verified(&right, &none, &options).unwrap();
        assert!(outcome.is_verified());
        assert_eq!(outcome.compared, repetitions + usize::from(outcome.eager));
        outcome.outputs[1].clone()
    };
    let outputs: Vec<_> = [2, 3, 4, 5, 6].map(last).to_vec();
    for (i, a) in outputs.iter().enumerate() {
        assert!(outputs[i + 1..].iter().all(|b| a != b), "{outputs:?}");
    }
    // Wrong in one repetition only, which is not the last.
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let once = Operator::<u64>::new("sum but once", true, move |a: u64, b| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The oracle's calls come first: one element, one repetition each.
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
    let options = RunOptions {
        repetitions: 10,
        eager: false,
        ..RunOptions::default()
    };
    let outcome = team.run_verified(&sum, &once, &options).unwrap();
    assert!(!outcome.is_verified());
    let mismatch = outcome.mismatch.unwrap();
    assert_eq!(
        (mismatch.repetition, mismatch.rank, mismatch.index),
        (3, 0, 0)
    );
    assert!(mismatch.to_string().contains("rank 0, output element 0"));
}

/// What became of mutants.
#[derive(Debug, Default)]
struct Counts {
    mutants: usize,
    wrong: usize,
    /// Wrong ones that ended in an error, in wrong data, or in data that were right: by what
    /// `check` says of those.
    errors: usize,
    mismatches: usize,
    forgiven: BTreeMap<(&'static str, FindingKind), usize>,
}

/// Mutants to be tried: `ONEPORT_MUTANTS`, or some.
fn mutants_wanted() -> usize {
    let wanted = std::env::var("ONEPORT_MUTANTS").ok();
    wanted.map_or(5000, |n| n.parse().expect("ONEPORT_MUTANTS is a number"))
}

#[test]
fn no_mutant_is_verified() {
    let _shared = shared();
    let wanted = mutants_wanted();
    let mut random = Random::new(wanted as u64);
    let mut counts = Counts::default();
    let mut teams = Teams::default();
    let algorithms: Vec<_> = registry::all().iter().collect();
    while counts.wrong < wanted {
        let algorithm = algorithms[random.below(algorithms.len())];
        let (p, q) = (2 + random.below(5), 1 + random.below(3));
        let elements = 1 + random.below(24);
        let mut request = Request::new(p, elements);
        let Ok(segments) = Segments::of_count(elements, q.min(elements)) else {
            continue;
        };
        request.segments = segments;
        request.ports = [Ports::UNI, Ports::BI][random.below(2)];
        request.root = random.below(p);
        request.keep_order = random.below(2) == 0;
        let Ok(schedule) = algorithm.plan(&request) else {
            continue;
        };
        let mut mutants = mutants::mutants(&schedule, &mut random);
        for _ in 0..8 {
            if mutants.is_empty() {
                break;
            }
            let (what, _, _, programs) = mutants.swap_remove(random.below(mutants.len()));
            let (collective, layout) = (schedule.collective().clone(), schedule.layout().to_vec());
            let Ok(mutant) = Schedule::new(schedule.ports(), collective, layout, programs) else {
                continue;
            };
            let name = format!(
                "{} {} p={p}, {what}",
                algorithm.collective.name(),
                algorithm.name
            );
            match random.below(6) {
                0 => deceive::<u8>(&mutant, &name, &mut random, &mut teams, &mut counts),
                1 => deceive::<i32>(&mutant, &name, &mut random, &mut teams, &mut counts),
                2 => deceive::<i64>(&mutant, &name, &mut random, &mut teams, &mut counts),
                3 => deceive::<u64>(&mutant, &name, &mut random, &mut teams, &mut counts),
                4 => deceive::<f32>(&mutant, &name, &mut random, &mut teams, &mut counts),
                _ => deceive::<f64>(&mutant, &name, &mut random, &mut teams, &mut counts),
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.mismatches > counts.wrong / 5, "{counts:?}");
}

/// Teams by size and by who does the work; they go on after every failure.
#[derive(Debug, Default)]
struct Teams(BTreeMap<(usize, bool), Team>);

impl Teams {
    fn of(&mut self, p: usize, folded: bool) -> &mut Team {
        self.0.entry((p, folded)).or_insert_with(|| {
            let options = TeamOptions {
                workers: if folded {
                    Workers::Cores
                } else {
                    Workers::Ranks
                },
                deadline: Duration::from_millis(20),
                ..TeamOptions::default()
            };
            Team::with(p, &options).unwrap()
        })
    }
}

fn deceive<T: Element>(
    mutant: &Schedule,
    name: &str,
    random: &mut Random,
    teams: &mut Teams,
    counts: &mut Counts,
) {
    counts.mutants += 1;
    let operators: Vec<Operator<T>> = Operator::<T>::NAMES
        .iter()
        .filter_map(|name| Operator::named(name).ok())
        .collect();
    let reduces = mutant.collective().kind().reduces();
    let operator = match reduces {
        true => operators[random.below(operators.len())].clone(),
        false => Operator::none(),
    };
    let options = Options {
        keep_order: !operator.commutes(),
        ..Options::default()
    };
    let report = check(mutant, &options);
    let options = RunOptions {
        repetitions: 2,
        eager: random.below(2) == 0,
        trace: random.below(8) == 0,
        ..RunOptions::default()
    };
    // Waiting for what never comes takes its time.
    let folded = random.below(4) != 0;
    let result = teams
        .of(mutant.ranks(), folded)
        .run_verified(mutant, &operator, &options);
    let context = || format!("{name}, {} {}, {report}", T::TYPE.name(), operator.name());
    if report.ok() {
        // Another way to the right result; or right, but slow.
        if let Ok(outcome) = &result {
            assert!(outcome.is_verified(), "{}", context());
        }
        return;
    }
    counts.wrong += 1;
    match result {
        Err(_) => counts.errors += 1,
        Ok(outcome) if !outcome.is_verified() => counts.mismatches += 1,
        Ok(_) => {
            // What the operator forgives, and effects that the rules leave open, only a proof
            // shows.
            let kind = report.errors[0].kind;
            let forgives = ["min", "max", "band", "bor", "bxor"].contains(&operator.name());
            let open = [FindingKind::Overlap, FindingKind::SelfMessage].contains(&kind);
            assert!(
                forgives || open,
                "verified: {}\n{}",
                context(),
                mutant.to_json()
            );
            let name = if forgives {
                "forgiving operator"
            } else {
                "open effect"
            };
            *counts.forgiven.entry((name, kind)).or_default() += 1;
        }
    }
}
