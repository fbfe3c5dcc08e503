//! Property tests of planned and hand-built schedules: the checker accepts them, runs report the
//! simulated model times bit for bit, and their outputs equal the oracle's.

use std::cell::RefCell;
use std::collections::BTreeMap;

use oneport::check::Options;
use oneport::machine::Links;
use oneport::plan::{Segments, registry};
use oneport::run::{Element, ElementType, Operator, Run, Team, inputs, oracle};
use oneport::{Collective, CostModel, Layout, Ports, Request, Schedule, Span};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

use self::built::{Built, ProgramBuilder};
use crate::support::cases::cases;
use crate::support::random::Random;
use crate::support::ranks::rank_counts;
use crate::support::sample::Sample;

mod built;

/// Teams by number of ranks, reused because starting threads takes longer than most runs.
#[derive(Default)]
struct Teams(RefCell<BTreeMap<usize, Team>>);

impl Teams {
    /// Checks, simulates and runs `schedule` with an operator of `dtype`.
    fn verify(
        &self,
        schedule: &Schedule,
        cost: &CostModel,
        dtype: ElementType,
        operator: &str,
    ) -> TestCaseResult {
        oneport::with_element_type!(dtype, T => self.verify_as::<T>(schedule, cost, operator))
    }

    fn verify_as<T: Element>(
        &self,
        schedule: &Schedule,
        cost: &CostModel,
        operator: &str,
    ) -> TestCaseResult {
        let operator = Operator::<T>::named(operator).unwrap();
        let options = Options {
            keep_order: schedule.collective().kind().reduces() && !operator.commutes(),
            overlap: cost.overlaps(),
            ..Options::default()
        };
        let report = schedule.check_with(&options);
        prop_assert!(report.is_correct(), "{report}");
        let simulation = schedule.simulate(cost).unwrap();
        let mut teams = self.0.borrow_mut();
        let team = teams
            .entry(schedule.ranks())
            .or_insert_with(|| Team::new(schedule.ranks()).unwrap());
        let data = inputs(schedule.collective(), schedule.layout(), &operator);
        let expected = oracle(schedule.collective(), schedule.layout(), &operator, &data).unwrap();
        for eager in [true, false] {
            let outcome = Run::new(schedule)
                .op(&operator)
                .inputs(&data)
                .cost(cost.clone())
                .eager(eager)
                .on(team);
            prop_assert!(outcome.is_ok(), "{:?}", outcome.err());
            let outcome = outcome.unwrap();
            prop_assert_eq!(&outcome.outputs, &expected);
            let bits = |times: &[f64]| times.iter().map(|t| t.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&outcome.rank_times), bits(&simulation.rank_times()));
            prop_assert_eq!(
                outcome.model_time.to_bits(),
                simulation.makespan().to_bits()
            );
        }
        Ok(())
    }
}

/// Every element type with every operator that it supports.
fn operators() -> Vec<(ElementType, &'static str)> {
    let types = ElementType::ALL.iter();
    types
        .flat_map(|&t| t.operators().map(move |op| (t, op.name())))
        .collect()
}

/// Random costs whose sums are inexact, so that only the same additions in the same order give the
/// same bits.
fn costs(random: &mut Random, ranks: usize) -> CostModel {
    let overlap = random.chance(30);
    if random.chance(60) {
        return CostModel::new(time(random), time(random))
            .gamma(time(random))
            .gamma_copy(time(random))
            .overlap(overlap);
    }
    let mut square = || -> Vec<Vec<Option<f64>>> {
        let mut row = |_| (0..ranks).map(|_| Some(time(random))).collect();
        (0..ranks).map(&mut row).collect()
    };
    let (alpha, beta) = (square(), square());
    let gamma = (0..ranks).map(|_| time(random)).collect();
    let gamma_copy = (0..ranks).map(|_| time(random)).collect();
    CostModel::heterogeneous(Links {
        alpha,
        beta,
        gamma,
        gamma_copy,
        ..Links::default()
    })
    .unwrap()
    .overlap(overlap)
}

#[derive(Debug, Clone)]
struct Case {
    ranks: usize,
    root: usize,
    sizes: Vec<usize>,
    ports: Ports,
    operator: usize,
    seed: u64,
}

fn requests() -> impl Strategy<Value = Case> {
    let ranks = prop::sample::select(rank_counts());
    ranks.prop_flat_map(|p| {
        let sizes = prop_oneof![
            // One segment, equal segments, arbitrary segments.
            prop_oneof![Just(0), Just(1), 0..=p, 0usize..200, Just(4001)].prop_map(|m| vec![m]),
            (0usize..300, 1usize..9)
                .prop_map(|(m, q)| Segments::of_count(m, q).unwrap().sizes().to_vec()),
            prop::collection::vec(0usize..20, 1..8),
        ];
        let ports = [&Ports::KINDS[..], &[Ports::BI.with_k(2)]].concat();
        let ports = prop::sample::select(ports);
        (Just(p), 0..p, sizes, ports, any::<usize>(), any::<u64>()).prop_map(
            |(ranks, root, sizes, ports, operator, seed)| Case {
                ranks,
                root,
                sizes,
                ports,
                operator,
                seed,
            },
        )
    })
}

#[test]
fn random_requests_give_correct_schedules() {
    let (teams, operators) = (Teams::default(), operators());
    let config = ProptestConfig {
        cases: cases(20, 150),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&requests(), |case| {
            let (dtype, name) = operators[case.operator % operators.len()];
            let mut request = Request::reduce(case.ranks, 0)
                .root(case.root)
                .segments(Segments::of_sizes(case.sizes.clone()).unwrap())
                .ports(case.ports)
                .keep_order(name == "affine")
                .element_bytes(dtype.bytes());
            let mut random = Random::new(case.seed);
            for algorithm in registry::all() {
                request = request
                    .collective(algorithm.collective)
                    .cost(costs(&mut random, case.ranks));
                if algorithm.accepts(&request).is_err() {
                    continue;
                }
                let schedule = algorithm.plan(&request).unwrap();
                teams
                    .verify(&schedule, request.get_cost(), dtype, name)
                    .map_err(|e| {
                        let collective = algorithm.collective.name();
                        TestCaseError::fail(format!(
                            "{} {collective} {dtype:?} {name}: {e}",
                            algorithm.name()
                        ))
                    })?;
            }
            Ok(())
        })
        .unwrap();
}

/// Covers every algorithm and number of ranks with the sizes at which planners tend to fail; roots
/// are random, and element types and operators rotate.
#[test]
fn every_algorithm_is_correct_at_critical_sizes() {
    let (teams, operators) = (Teams::default(), operators());
    let mut random = Random::new(5);
    let mut rotation = 0;
    // Large teams take long.
    let mut sample = Sample::each(5);
    for p in rank_counts() {
        let sizes = [(2 * p + 1, 3), (997, 6), (0, 3), (1, 2), (p / 2, 4)];
        // Small vectors are nothing special for large teams.
        let few = match p {
            0..=5 => sizes.len(),
            6..=17 => cases(2, sizes.len()),
            _ => cases(1, 2),
        };
        let sizes = &sizes[..few];
        for algorithm in registry::all() {
            for &(elements, segments) in sizes {
                for ports in [Ports::UNI, Ports::BI] {
                    rotation += 1;
                    let (dtype, name) = operators[rotation % operators.len()];
                    let request = Request::new(algorithm.collective, p, elements)
                        .segment_count(segments)
                        .root(random.below(p))
                        .ports(ports)
                        .keep_order(name == "affine")
                        .cost(costs(&mut random, p));
                    if algorithm.accepts(&request).is_err() || p > 5 && !sample.takes() {
                        continue;
                    }
                    let schedule = algorithm.plan(&request).unwrap();
                    let result = teams.verify(&schedule, request.get_cost(), dtype, name);
                    result.unwrap_or_else(|e| {
                        panic!("{} {request:?} {dtype:?} {name}: {e}", algorithm.name())
                    });
                }
            }
        }
    }
}

/// Schedules as a user might build them, over random trees and through random ports.
#[test]
fn hand_built_schedules_are_correct() {
    let (teams, operators) = (Teams::default(), operators());
    let config = ProptestConfig {
        cases: cases(120, 400),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(
            &(1usize..=12, any::<usize>(), any::<u64>()),
            |(p, operator, seed)| {
                let mut random = Random::new(seed);
                let built = Built::new(&mut random, p);
                let (dtype, name) = operators[operator % operators.len()];
                for (what, in_order, schedule) in built.all(&mut random) {
                    let cost = costs(&mut random, p);
                    let (dtype, name) = match (in_order, name) {
                        (false, "affine") => (dtype, "sum"),
                        (_, name) => (dtype, name),
                    };
                    let result = teams.verify(&schedule, &cost, dtype, name);
                    result.map_err(|e| {
                        let text = schedule.to_json();
                        TestCaseError::fail(format!(
                            "{what} {dtype:?} {name} {cost:?}: {e}\n{text}"
                        ))
                    })?;
                }
                Ok(())
            },
        )
        .unwrap();
}

/// Both partners copy a long message together. Here several messages are in flight at once, and
/// sender and receiver may use different port numbers.
#[test]
fn long_messages_through_several_ports_are_correct() {
    let (teams, mut random) = (Teams::default(), Random::new(11));
    for (k, ports) in [
        (1, Ports::BI),
        (2, Ports::BI),
        (3, Ports::BI),
        (3, Ports::UNI),
    ] {
        let (p, m, parts) = (2, 120_000, 6);
        let mut programs = ProgramBuilder {
            ports: ports.with_k(k),
            steps: vec![Vec::new(); p],
        };
        let part = |from: usize, i: usize| Span::new(from * m + i * (m / parts), m / parts);
        let pairs = (0..p * parts).map(|i| (i % p, i / p)).collect();
        for (from, i) in random.shuffled(pairs) {
            let span = part(from, i);
            programs.transfer(&mut random, from, 1 - from, (span, span), None);
        }
        let layout = |r: usize| Layout {
            len: p * m,
            input: Span::new(r * m, m).into(),
            output: Span::new(0, p * m).into(),
        };
        let schedule = programs.build(Collective::Allgather, vec![layout(0), layout(1)]);
        for _ in 0..5 {
            let cost = costs(&mut random, p);
            let result = teams.verify(&schedule, &cost, ElementType::F64, "sum");
            result.unwrap_or_else(|e| panic!("{k} {ports:?}: {e}"));
        }
    }
}

/// A random time that is not a short binary fraction, or sometimes 0.
fn time(random: &mut Random) -> f64 {
    if random.chance(10) {
        return 0.0;
    }
    f64::from(u32::try_from(random.below(10_000)).unwrap()) / 97.0
}
