//! Mutants of correct schedules: no run of a wrong one is verified.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

use std::any::Any;
use std::collections::BTreeMap;
use std::time::Duration;

use oneport::check::{FindingKind, Options};
use oneport::plan::registry;
use oneport::run::{Element, Located, Op, Operator, Run, Team, TeamOptions, Workers};
use oneport::{CostModel, Ports, Request, Schedule};

use super::{Complex, named};
use crate::mutants;
use crate::support::alone::shared;
use crate::support::cases::cases;
use crate::support::random::Random;

/// Number of mutants by result.
#[derive(Debug, Default)]
struct Counts {
    mutants: usize,
    wrong: usize,
    /// Wrong mutants whose run failed.
    errors: usize,
    /// Wrong mutants whose run gave wrong data.
    mismatches: usize,
    /// Wrong mutants whose run gave correct data, by the reason and the first finding of `check`.
    undetected: BTreeMap<(&'static str, FindingKind), usize>,
}

/// Number of wrong mutants to run: `ONEPORT_MUTANTS`, or 1500, in long tests 5000.
fn target() -> usize {
    let target = std::env::var("ONEPORT_MUTANTS").ok();
    target.map_or(cases(1500, 5000), |n| {
        n.parse().expect("ONEPORT_MUTANTS is a number")
    })
}

#[test]
fn no_mutant_is_verified() {
    let _shared = shared();
    let target = target();
    let mut random = Random::new(target as u64);
    let mut counts = Counts::default();
    let mut teams = Teams::default();
    let algorithms: Vec<_> = registry::all().iter().collect();
    while counts.wrong < target {
        let algorithm = algorithms[random.below(algorithms.len())];
        let (p, q) = (2 + random.below(5), 1 + random.below(3));
        let elements = 1 + random.below(24);
        let request = Request::new(algorithm.collective, p, elements)
            .segment_count(q.min(elements))
            .ports([Ports::UNI, Ports::BI][random.below(2)])
            .root(random.below(p))
            .keep_order(random.below(2) == 0);
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
                algorithm.name()
            );
            match random.below(8) {
                0 => run_mutant::<u8>(&mutant, &name, &mut random, &mut teams, &mut counts),
                1 => run_mutant::<i32>(&mutant, &name, &mut random, &mut teams, &mut counts),
                2 => run_mutant::<i64>(&mutant, &name, &mut random, &mut teams, &mut counts),
                3 => run_mutant::<u64>(&mutant, &name, &mut random, &mut teams, &mut counts),
                4 => run_mutant::<f32>(&mutant, &name, &mut random, &mut teams, &mut counts),
                5 => {
                    run_mutant::<Located<i32>>(&mutant, &name, &mut random, &mut teams, &mut counts)
                }
                6 => run_mutant::<Complex>(&mutant, &name, &mut random, &mut teams, &mut counts),
                _ => run_mutant::<f64>(&mutant, &name, &mut random, &mut teams, &mut counts),
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.mismatches > counts.wrong / 5, "{counts:?}");
}

/// Teams by number of ranks and by whether they are multiplexed, used again after every failure.
#[derive(Debug, Default)]
struct Teams(BTreeMap<(usize, bool), Team>);

impl Teams {
    fn of(&mut self, p: usize, multiplexed: bool) -> &mut Team {
        self.0.entry((p, multiplexed)).or_insert_with(|| {
            let options = TeamOptions {
                workers: if multiplexed {
                    Workers::Cores
                } else {
                    Workers::Ranks
                },
                ..TeamOptions::default()
            };
            Team::with(p, &options).unwrap()
        })
    }
}

fn run_mutant<T: Element>(
    mutant: &Schedule,
    name: &str,
    random: &mut Random,
    teams: &mut Teams,
    counts: &mut Counts,
) {
    counts.mutants += 1;
    let built_in = Op::ALL.into_iter().map(Operator::<T>::try_from);
    let mut operators: Vec<Operator<T>> = built_in.filter_map(Result::ok).collect();
    let own = Complex::sum();
    operators.extend((&own as &dyn Any).downcast_ref().cloned());
    let reduces = mutant.collective().kind().reduces();
    let operator = if reduces {
        operators[random.below(operators.len())].clone()
    } else {
        Operator::none()
    };
    let options = Options {
        keep_order: !operator.commutes(),
        ..Options::default()
    };
    let report = mutant.check_with(&options);
    let run = Run::new(mutant).op(&operator).verified();
    let run = run.repetitions(2).eager(random.below(2) == 0);
    let run = run.trace(random.below(8) == 0);
    // One that completes must not fail because the machine is busy.
    let completes = mutant.simulate(&CostModel::new(1.0, 1.0)).is_ok();
    let run = run.deadline(Duration::from_millis(if completes { 60_000 } else { 20 }));
    // Mostly multiplexed: a deadlock of threads lasts until the deadline, but a single worker
    // detects it at once.
    let multiplexed = random.below(4) != 0;
    let result = run.on(teams.of(mutant.ranks(), multiplexed));
    let context = || format!("{name}, {}, {report}", named(&operator));
    if report.is_correct() {
        assert!(result.unwrap().is_verified(), "{}", context());
        return;
    }
    counts.wrong += 1;
    match result {
        Err(_) => counts.errors += 1,
        Ok(outcome) if !outcome.is_verified() => counts.mismatches += 1,
        Ok(_) => {
            // Only a proof detects contributions to which the operator is insensitive, and effects
            // that the rules leave undefined.
            let kind = report.errors[0].kind;
            let sensitive = ["sum", "prod", "affine", "none"];
            let insensitive = !sensitive.contains(&operator.name());
            let undefined = [FindingKind::Overlap, FindingKind::SelfMessage].contains(&kind);
            assert!(
                insensitive || undefined,
                "verified: {}\n{}",
                context(),
                mutant.to_json()
            );
            let name = if insensitive {
                "insensitive operator"
            } else {
                "undefined effect"
            };
            *counts.undetected.entry((name, kind)).or_default() += 1;
        }
    }
}
