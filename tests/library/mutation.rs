//! Mutation tests of the checker: an independent interpreter runs mutants of correct schedules, and
//! the checker must refuse exactly the mutants that the interpreter finds wrong or stuck.

#![allow(clippy::print_stdout, reason = "the counts are printed")]

use std::collections::BTreeMap;

use oneport::check::{FindingKind, Options};
use oneport::plan::registry;
use oneport::simulate::Prepared;
use oneport::{Ports, Request, Schedule};

use crate::hand;
use crate::mutants::mutants;
use crate::oracle::{self, Operator, Outcome};
use crate::support::cases::cases;
use crate::support::random::Random;

/// Largest number of mutants tested per schedule; larger sets are sampled.
fn max_mutants() -> usize {
    cases(60, 300)
}

#[derive(Debug, Default)]
struct Counts {
    schedules: usize,
    mutants: usize,
    verdicts: usize,
    caught: usize,
    equivalent: usize,
    /// Mutants with a right result but a step whose effect the rules leave undefined, by finding.
    strict: BTreeMap<FindingKind, usize>,
    /// Caught mutants by mutation.
    by_mutation: BTreeMap<&'static str, usize>,
    /// Caught mutants by the kind of the first finding.
    by_kind: BTreeMap<FindingKind, usize>,
}

#[test]
fn mutants_of_registered_algorithms_are_caught() {
    let mut counts = Counts::default();
    for algorithm in registry::all() {
        for (p, q) in cases(
            vec![(2, 3), (3, 1), (5, 3)],
            vec![(2, 3), (3, 1), (5, 3), (8, 2)],
        ) {
            for ports in [Ports::UNI, Ports::BI] {
                if !algorithm.ports.allow(ports) {
                    continue;
                }
                let mut request = Request::new(algorithm.collective, p, 2 * q + 1)
                    .segment_count(q)
                    .ports(ports)
                    .root(p / 2)
                    .keep_order(!algorithm.commutative_only);
                let schedule = algorithm.plan(&request).or_else(|_| {
                    request = request.clone().keep_order(false);
                    algorithm.plan(&request)
                });
                // Some algorithms support only certain numbers of ranks.
                let Ok(schedule) = schedule else { continue };
                let name = format!(
                    "{} {} p={p} q={q} {}",
                    algorithm.name(),
                    algorithm.collective.name(),
                    ports.name()
                );
                mutate_all(&name, &schedule, request.get_keep_order(), &mut counts);
            }
        }
    }
    counts.summarise("registered", 20, 1000);
}

#[test]
fn mutants_of_hand_written_schedules_are_caught() {
    let mut counts = Counts::default();
    for p in [1, 2, 3, 4, 6] {
        for (name, schedule) in hand::all(p) {
            // It combines each block in ring order from a different start, not in rank order.
            let in_order = !name.starts_with("ring reduce_scatter");
            mutate_all(&name, &schedule, in_order, &mut counts);
        }
    }
    counts.summarise("hand-written", 100, 3000);
}

impl Counts {
    fn summarise(&self, what: &str, schedules: usize, caught: usize) {
        println!(
            "{what}: {} schedules, {} mutants, {} verdicts: {} caught, {} equivalent, refused as undefined {:?}\n  caught by mutation: {:?}\n  first finding: {:?}",
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
        let report = schedule.check_with(&options);
        assert!(report.is_correct(), "{name}: {report}");
        let sum = oracle::run(schedule, overlap, Operator::Sum, 1);
        assert_eq!(sum, Outcome::Right, "{name}");
        let affine = oracle::run(schedule, overlap, Operator::Affine, 1);
        assert_eq!(report.keeps_order, affine == Outcome::Right, "{name}");
    }
    counts.schedules += 1;
    let mut random = Random::new(name.len() as u64 + counts.schedules as u64);
    let mut mutants = mutants(schedule, &mut random);
    while mutants.len() > max_mutants() {
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
            let report = mutant.check_with(&options);
            let outcome = oracle::run(&mutant, overlap, operator, random.next());
            let context = || {
                format!(
                    "{name}: {mutation} at rank {rank} step {index}, {options:?}: {outcome:?}, {report}\n{}",
                    mutant.to_json()
                )
            };
            counts.verdicts += 1;
            // The simulator applies the same rules, so it accepts every schedule that completes.
            if outcome != Outcome::Stuck {
                assert!(Prepared::new(&mutant, overlap).is_ok(), "{}", context());
            }
            match (outcome, report.is_correct()) {
                (Outcome::Right, true) => counts.equivalent += 1,
                (Outcome::Right, false) => {
                    // The rules leave undefined the effect of a step that writes an element twice
                    // or reads an element it writes, and of a message from a rank to itself. The
                    // interpreter's choice happens to give the right result.
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
