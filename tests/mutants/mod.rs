//! Mutants of a schedule, in which one step or both steps of one transfer are dropped, duplicated,
//! moved, resized, redirected or replaced.

use oneport::{Order, Ports, Schedule, Span, Step};

use crate::oracle;
use crate::support::random::Random;

/// The name of the mutation, the mutated rank and step, and the programs of all ranks.
pub(crate) type Mutant = (&'static str, usize, usize, Vec<Vec<Step>>);

/// All mutants of all steps.
pub(crate) fn mutants(schedule: &Schedule, random: &mut Random) -> Vec<Mutant> {
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
                    replace("reverse", Step::recv(other, spans).on_port(port));
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
                    replace("reverse", Step::copy(dst, src));
                }
                Step::Combine { src, dst, order } => {
                    replace("store", Step::copy(src.clone(), dst.clone()));
                    replace(
                        "flip order",
                        Step::combine(src.clone(), dst.clone(), flip(order)),
                    );
                    replace("reverse", Step::combine(dst, src, order));
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

/// Mutants of both steps of a transfer: sends and receives still match, so the checker has to
/// follow the data to find the error.
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

/// The step with one span resized or shifted, or with its spans reversed.
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
