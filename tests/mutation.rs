//! Mutation tests of the checker: correct schedules are broken step by step, and an independent interpreter decides
//! whether that changes the outcome. The checker must object exactly then.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod hand;
mod oracle;

use std::collections::BTreeMap;

use oneport::check::{FindingKind, Options, check};
use oneport::plan::{Segments, registry};
use oneport::simulate::Prepared;
use oneport::{Order, Ports, Request, Schedule, Span, Step};
use oracle::{Operator, Outcome, Random};

/// Mutants tried of each schedule; more are sampled.
const MOST_MUTANTS: usize = 300;

#[derive(Debug, Default)]
struct Counts {
    schedules: usize,
    mutants: usize,
    verdicts: usize,
    caught: usize,
    equivalent: usize,
    /// Right results from steps whose effect the rules leave open or forbid.
    strict: BTreeMap<FindingKind, usize>,
    /// Caught, by what was done and by what was reported first.
    by_mutation: BTreeMap<&'static str, usize>,
    by_kind: BTreeMap<FindingKind, usize>,
}

#[test]
fn registered_algorithms() {
    let mut counts = Counts::default();
    for algorithm in registry::all() {
        for (p, q) in [(2, 3), (3, 1), (5, 3), (8, 2)] {
            for ports in [Ports::UNI, Ports::BI] {
                if !algorithm.ports.allow(ports) {
                    continue;
                }
                let mut request = Request::new(p, 2 * q + 1);
                request.segments = Segments::of_count(2 * q + 1, q).unwrap();
                request.ports = ports;
                request.root = p / 2;
                request.keep_order = !algorithm.commutative_only;
                let schedule = algorithm.plan(&request).or_else(|_| {
                    request.keep_order = false;
                    algorithm.plan(&request)
                });
                // Some algorithms are for some numbers of ranks only.
                let Ok(schedule) = schedule else { continue };
                let name = format!(
                    "{} {} p={p} q={q} {}",
                    algorithm.name,
                    algorithm.collective.name(),
                    ports.name()
                );
                mutate_all(&name, &schedule, request.keep_order, &mut counts);
            }
        }
    }
    counts.summarise("registered", 20, 1000);
}

#[test]
fn hand_written_schedules() {
    let mut counts = Counts::default();
    for p in [1, 2, 3, 4, 6] {
        for (name, schedule) in hand::all(p) {
            // Its operands go round the ring, starting anywhere.
            let in_order = !name.starts_with("ring reduce_scatter");
            mutate_all(&name, &schedule, in_order, &mut counts);
        }
    }
    counts.summarise("hand-written", 100, 3000);
}

impl Counts {
    fn summarise(&self, what: &str, schedules: usize, caught: usize) {
        println!(
            "{what}: {} schedules, {} mutants, {} verdicts: {} caught, {} change nothing, strictly refused {:?}\n  caught by mutation: {:?}\n  first finding: {:?}",
            self.schedules,
            self.mutants,
            self.verdicts,
            self.caught,
            self.equivalent,
            self.strict,
            self.by_mutation,
            self.by_kind
        );
        assert!(self.schedules >= schedules, "{} schedules", self.schedules);
        assert!(self.caught >= caught, "{} caught", self.caught);
    }
}

fn mutate_all(name: &str, schedule: &Schedule, in_order: bool, counts: &mut Counts) {
    for overlap in [false, true] {
        let options = Options {
            keep_order: in_order,
            overlap,
            ..Options::default()
        };
        let report = check(schedule, &options);
        assert!(report.ok(), "{name}: {report}");
        let sum = oracle::run(schedule, overlap, Operator::Sum, 1);
        assert_eq!(sum, Outcome::Right, "{name}");
        let affine = oracle::run(schedule, overlap, Operator::Affine, 1);
        assert_eq!(report.keeps_order, affine == Outcome::Right, "{name}");
    }
    counts.schedules += 1;
    let mut random = Random(name.len() as u64 + counts.schedules as u64);
    let mut mutants = mutants(schedule, &mut random);
    while mutants.len() > MOST_MUTANTS {
        mutants.swap_remove(random.below(mutants.len()));
    }
    for (mutation, rank, index, programs) in mutants {
        let mutant = Schedule::new(
            schedule.ports(),
            schedule.collective().clone(),
            schedule.layout().to_vec(),
            programs,
        );
        let Ok(mutant) = mutant else { continue };
        let ports = mutant.ports();
        let mutant = if mutation == "one port for both" {
            mutant.with_ports(Ports::UNI).unwrap()
        } else {
            assert_eq!(ports, schedule.ports());
            mutant
        };
        counts.mutants += 1;
        let overlap = random.below(4) == 0;
        for operator in [Operator::Sum, Operator::Affine] {
            let keep_order = operator == Operator::Affine;
            let options = Options {
                keep_order,
                overlap,
                ..Options::default()
            };
            let report = check(&mutant, &options);
            let outcome = oracle::run(&mutant, overlap, operator, random.next());
            let context = || {
                format!(
                    "{name}: {mutation} at rank {rank} step {index}, {options:?}: {outcome:?}, {report}\n{}",
                    mutant.to_json()
                )
            };
            counts.verdicts += 1;
            // The simulator sees the same rules.
            if outcome != Outcome::Stuck {
                assert!(Prepared::new(&mutant, overlap).is_ok(), "{}", context());
            }
            match (outcome, report.ok()) {
                (Outcome::Right, true) => counts.equivalent += 1,
                (Outcome::Right, false) => {
                    // Steps that write an element twice or read what they write, and messages to oneself, have no
                    // defined effect; the interpreter's happens to be the right one.
                    let kind = report.errors[0].kind;
                    let strict = [FindingKind::Overlap, FindingKind::SelfMessage];
                    assert!(strict.contains(&kind), "{}", context());
                    *counts.strict.entry(kind).or_default() += 1;
                }
                (_, true) => panic!("not caught: {}", context()),
                (_, false) => {
                    counts.caught += 1;
                    *counts.by_mutation.entry(mutation).or_default() += 1;
                    *counts.by_kind.entry(report.errors[0].kind).or_default() += 1;
                    for e in &report.errors {
                        assert!(!e.message.is_empty() && e.to_string() == e.message);
                    }
                }
            }
            if report.keeps_order {
                let affine = oracle::run(&mutant, overlap, Operator::Affine, random.next());
                assert_eq!(affine, Outcome::Right, "{}", context());
            }
        }
    }
}

type Mutant = (&'static str, usize, usize, Vec<Vec<Step>>);

/// Every mutant of every step.
fn mutants(schedule: &Schedule, random: &mut Random) -> Vec<Mutant> {
    let (p, programs) = (schedule.ranks(), schedule.programs());
    let mut mutants: Vec<Mutant> = Vec::new();
    for rank in 0..p {
        for index in 0..programs[rank].len() {
            let mut add = |what, change: &dyn Fn(&mut Vec<Step>)| {
                let mut programs = programs.to_vec();
                change(&mut programs[rank]);
                mutants.push((what, rank, index, programs));
            };
            let step = &programs[rank][index];
            add("drop", &|program| drop(program.remove(index)));
            add("duplicate", &|program| program.insert(index, step.clone()));
            if index + 1 < programs[rank].len() {
                add("swap", &|program| program.swap(index, index + 1));
            }
            let mut replace = |what, new: Step| add(what, &|program| program[index] = new.clone());
            for (what, changed) in span_changes(step, random) {
                replace(what, changed);
            }
            let other = random.below(p);
            match step.clone() {
                Step::Send { spans, port, .. } => {
                    replace("redirect", Step::send(other, spans.clone()).on_port(port));
                    replace("turn round", Step::recv(other, spans).on_port(port));
                }
                Step::Recv { from, spans, port } => {
                    replace("redirect", Step::recv(other, spans.clone()).on_port(port));
                    let combined = Step::recv_combine(from, spans, Order::MineFirst);
                    replace("combine", combined.on_port(port));
                }
                Step::RecvCombine {
                    from,
                    spans,
                    order,
                    port,
                } => {
                    let redirected = Step::recv_combine(other, spans.clone(), order);
                    replace("redirect", redirected.on_port(port));
                    replace("store", Step::recv(from, spans.clone()).on_port(port));
                    let flipped = Step::recv_combine(from, spans, flip(order));
                    replace("flip order", flipped.on_port(port));
                }
                Step::Copy { src, dst } => {
                    replace(
                        "combine",
                        Step::combine(src.clone(), dst.clone(), Order::MineFirst),
                    );
                    replace("turn round", Step::copy(dst, src));
                }
                Step::Combine { src, dst, order } => {
                    replace("store", Step::copy(src.clone(), dst.clone()));
                    replace(
                        "flip order",
                        Step::combine(src.clone(), dst.clone(), flip(order)),
                    );
                    replace("turn round", Step::combine(dst, src, order));
                }
            }
            if let Some(port) = step.port() {
                replace("port", step.clone().on_port(1 - port.min(1)));
            }
        }
    }
    pair_mutants(schedule, random, &mut mutants);
    if schedule.ports() == Ports::BI {
        mutants.push(("one port for both", 0, 0, programs.to_vec()));
    }
    mutants
}

/// Mutants of both ends of a transfer together: everything still matches, so they must be found by following the data.
fn pair_mutants(schedule: &Schedule, random: &mut Random, mutants: &mut Vec<Mutant>) {
    let programs = schedule.programs();
    for rank in 0..schedule.ranks() {
        for index in 0..programs[rank].len() {
            let (Some(from), false) = (
                programs[rank][index].peer(),
                programs[rank][index].is_send(),
            ) else {
                continue;
            };
            let Some(send) = oracle::partner(programs, rank, index) else {
                continue;
            };
            let mut add = |what, change: &dyn Fn(&mut Vec<Step>, usize)| {
                let mut programs = programs.to_vec();
                change(&mut programs[from], send);
                change(&mut programs[rank], index);
                mutants.push((what, rank, index, programs));
            };
            add("drop transfer", &|program, i| drop(program.remove(i)));
            add("duplicate transfer", &|program, i| {
                program.insert(i, program[i].clone())
            });
            add("transfer last", &|program, i| {
                let step = program.remove(i);
                program.push(step);
            });
            add("transfer first", &|program, i| {
                let step = program.remove(i);
                program.insert(0, step);
            });
            let other = random.below(programs[rank].len());
            add("transfer elsewhere", &|program, i| {
                let step = program.remove(i);
                program.insert(other.min(program.len()), step);
            });
            let resized = |change: fn(Span) -> Option<Span>| {
                move |program: &mut Vec<Step>, i: usize| match &mut program[i] {
                    Step::Send { spans, .. }
                    | Step::Recv { spans, .. }
                    | Step::RecvCombine { spans, .. } => {
                        if let Some(s) = spans.first_mut() {
                            *s = change(*s).unwrap_or(*s);
                        }
                    }
                    _ => {}
                }
            };
            add(
                "shrink transfer",
                &resized(|s| Some(Span::new(s.offset, s.len.checked_sub(1)?))),
            );
            add(
                "grow transfer",
                &resized(|s| Some(Span::new(s.offset, s.len + 1))),
            );
            add(
                "shift transfer",
                &resized(|s| Some(Span::new(s.offset + 1, s.len))),
            );
            add(
                "shift transfer down",
                &resized(|s| Some(Span::new(s.offset.checked_sub(1)?, s.len))),
            );
        }
    }
}

fn flip(order: Order) -> Order {
    match order {
        Order::MineFirst => Order::TheirsFirst,
        Order::TheirsFirst => Order::MineFirst,
    }
}

/// The step with one span resized or shifted, or its spans in another order.
fn span_changes(step: &Step, random: &mut Random) -> Vec<(&'static str, Step)> {
    let mut changes = Vec::new();
    let lists = match step {
        Step::Copy { .. } | Step::Combine { .. } => 2,
        _ => 1,
    };
    for list in 0..lists {
        let spans_of = |step: &mut Step, change: &dyn Fn(&mut oneport::Spans)| match step {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => {
                change(spans);
            }
            Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
                change(if list == 0 { src } else { dst });
            }
        };
        let mut count = 0;
        let mut copy = step.clone();
        match &mut copy {
            Step::Send { spans, .. }
            | Step::Recv { spans, .. }
            | Step::RecvCombine { spans, .. } => {
                count = spans.len();
            }
            Step::Copy { src, dst } | Step::Combine { src, dst, .. } => {
                count += if list == 0 { src.len() } else { dst.len() };
            }
        }
        if count == 0 {
            continue;
        }
        let which = random.below(count);
        let mut change = |what, edit: &dyn Fn(Span) -> Option<Span>| {
            let mut step = step.clone();
            let done = std::cell::Cell::new(false);
            spans_of(&mut step, &|spans| {
                if let Some(new) = edit(spans[which]) {
                    spans[which] = new;
                    done.set(true);
                }
            });
            if done.get() {
                changes.push((what, step));
            }
        };
        change("shrink", &|s| {
            Some(Span::new(s.offset, s.len.checked_sub(1)?))
        });
        change("grow", &|s| Some(Span::new(s.offset, s.len + 1)));
        change("shift down", &|s| {
            Some(Span::new(s.offset.checked_sub(1)?, s.len))
        });
        change("shift up", &|s| Some(Span::new(s.offset + 1, s.len)));
        if count > 1 {
            let mut step = step.clone();
            spans_of(&mut step, &|spans| spans.reverse());
            changes.push(("reverse spans", step));
        }
    }
    changes
}
