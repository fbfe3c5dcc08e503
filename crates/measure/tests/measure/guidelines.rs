//! Tests of the guidelines: in the model, and measured on threads.

use crate::support::sample::Sample;
use oneport::machine::{CostModel, Ports};
use oneport::plan::registry;
use oneport::run::Clock;
use oneport_measure::guidelines::{Comparison, Evaluation, Setting, all, evaluate};

fn model(ports: Ports, cost: CostModel, ranks: &[usize], sizes: &[u64]) -> Evaluation {
    evaluate(&Setting::new(ports, cost), ranks, sizes, |_, _| {}).unwrap()
}

/// Each guideline for each number of ranks and size; a fifth of the cases meets every pair of these
/// with one cost at least, and every cost with six of them.
#[test]
fn guidelines_hold_in_the_model() {
    let mut sample = Sample::each(5);
    for (ports, max) in [(Ports::BI, 4096), (Ports::UNI, 64)] {
        for (alpha, gamma) in [(1000.0, 0.0), (1000.0, 0.1), (0.0, 0.5), (10.0, 1.0)] {
            for (ranks, bytes) in [1, 2, 5, 6]
                .into_iter()
                .flat_map(|p| [0, 1, 33, max].map(|m| (p, m)))
            {
                if !sample.takes() {
                    continue;
                }
                let cost = CostModel::new(alpha, 0.1).gamma(gamma);
                let report = model(ports, cost, &[ranks], &[bytes]);
                // Where messages cost nothing to start, halves may be faster in two calls by
                // different algorithms, if blocks of the whole are not equal.
                let in_halves = |r: &Comparison| {
                    ports == Ports::UNI
                        && alpha == 0.0
                        && r.guideline.name == "allreduce(m) <= 2 allreduce(m/2)"
                        && !r.bytes.is_multiple_of(r.ranks as u64)
                        && r.excess() < 0.01
                };
                let violated = report.rows.iter();
                let violated = violated.filter(|r| !r.holds && !in_halves(r));
                let violated: Vec<_> = violated.collect();
                assert!(
                    violated.is_empty(),
                    "{ports:?} alpha {alpha}: {violated:#?}"
                );
                assert!(report.rows.len() >= 10);
            }
        }
    }
}

#[test]
fn every_guideline_is_evaluated_or_unavailable() {
    let report = model(Ports::BI, CostModel::new(10.0, 1.0), &[4], &[100]);
    for guideline in all() {
        let rows = report.rows.iter();
        let rows = rows.filter(|r| r.guideline.name == guideline.name).count();
        let lacks = report.unavailable.iter();
        let lacks = lacks.filter(|u| u.guideline == guideline.name).count();
        assert_eq!((rows, lacks), (1 - lacks, lacks), "{}", guideline.name);
        let calls = guideline.left.iter().chain(guideline.right);
        let registered = calls.clone().all(|c| registry::of(c.kind).next().is_some());
        assert_eq!(rows == 1, registered, "{}", guideline.name);
    }
    let names: std::collections::HashSet<_> = all().map(|g| g.name).collect();
    assert_eq!(names.len(), all().count());
}

#[test]
fn times_are_sums_over_the_calls() {
    // Two ranks exchange one message: `alpha + beta m`, and `gamma m` if it is combined.
    let cost = CostModel::new(10.0, 1.0).gamma(0.5);
    let report = model(Ports::UNI, cost, &[2], &[100]);
    let row = |name| {
        report
            .rows
            .iter()
            .find(|r| r.guideline.name == name)
            .unwrap()
    };
    for (name, left, right) in [
        ("broadcast(m) <= broadcast(2m)", 110.0, 210.0),
        ("broadcast(m) <= 2 broadcast(m/2)", 110.0, 120.0),
        ("reduce <= binomial", 160.0, 160.0),
        ("broadcast <= reduce", 110.0, 160.0),
        ("reduce, gamma = 0 <= broadcast", 110.0, 110.0),
    ] {
        let row = row(name);
        assert_eq!((row.left, row.right), (left, right), "{name}: {row:?}");
        assert!(row.holds);
    }
    assert_eq!(row("broadcast <= reduce").excess(), 110.0 / 160.0 - 1.0);
}

#[test]
fn a_violation_is_one_beyond_the_tolerance() {
    let cost = CostModel::new(0.0, 0.1).gamma(0.5);
    let judged = |tolerance| {
        let setting = Setting {
            tolerance,
            ..Setting::new(Ports::UNI, cost.clone())
        };
        let report = evaluate(&setting, &[5, 6], &[33], |_, _| {}).unwrap();
        for row in &report.rows {
            assert_eq!(row.holds, row.excess() <= tolerance + 1e-9, "{row:?}");
        }
        report.holds()
    };
    // Halves by different algorithms are faster by less than 1%.
    assert_eq!([0.0, 0.01].map(judged), [false, true]);
}

#[test]
fn measured_times_are_compared_on_request() {
    let setting = Setting {
        clock: Some(Clock::Native),
        measured_tolerance: 1e9,
        ..Setting::new(Ports::BI, CostModel::new(200.0, 0.05))
    };
    let mut last = (0, 0);
    let report = evaluate(&setting, &[2], &[4096], |done, of| last = (done, of)).unwrap();
    assert!(last.1 > 0 && last.0 == last.1);
    assert!(report.holds());
    let measured: Vec<_> = report.rows.iter().filter(|r| r.clock.is_some()).collect();
    // Computation is free in three guidelines: these exist in the model only.
    assert_eq!(2 * measured.len() + 3, report.rows.len());
    assert!(measured.iter().all(|r| r.left > 0.0 && r.right > 0.0));
}
