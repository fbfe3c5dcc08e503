//! Tests of the calibration, on synthetic times.

use super::warnings::MAX_ERROR;
use super::*;
use oneport::machine::CostModel;

/// Probes whose times follow the given model.
fn probes(model: impl Fn(Work, f64) -> f64) -> Vec<Probe> {
    let mut probes = Vec::new();
    for work in Work::ALL {
        for bytes in Effort::new(false).sizes() {
            if work.measures(bytes) {
                let mut probe = Probe::new(work, bytes, Pair::ALONE).unwrap();
                let time = model(work, bytes as f64);
                probe.medians = vec![time, 1.05 * time, time, 1.3 * time, time];
                probes.push(probe);
            }
        }
    }
    probes
}

fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
}

#[test]
fn the_parameters_of_synthetic_times_are_recovered() {
    let probes = probes(|work, n| match work {
        Work::Message => 2.0 * (150.0 + 0.04 * n),
        Work::Combine => 2.0 * (150.0 + 0.05 * n),
        Work::Exchange => 190.0 + 0.06 * n,
        Work::CombineOwn => 190.0 + 0.07 * n,
        Work::Copy => 70.0 + 0.025 * n,
    });
    let fits = Fits::of(&probes).unwrap();
    near(fits.line.0, 150.0);
    near(fits.line.1, 0.04);
    near(fits.gamma, 0.01);
    near(fits.gamma_copy, 0.025);
    assert_eq!(fits.pieces(), None);
    assert!(fits.error.worst < 1e-6);
    assert!(noise(&probes) < 0.01);
    assert!(
        quality_warnings(&probes, 0.0, &fits, true, false)
            .unwrap()
            .is_empty()
    );
    let warnings = quality_warnings(&probes, 0.2, &fits, false, false).unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let refusal = quality_warnings(&probes, 3.5, &fits, true, false).unwrap_err();
    assert!(refusal.to_string().contains("refused"), "{refusal}");
    let warnings = quality_warnings(&probes, 3.5, &fits, true, true).unwrap();
    assert!(warnings[0].contains("differ by 350%"), "{warnings:?}");
}

#[test]
fn pieces_are_fitted_where_one_line_is_not_enough() {
    let long = |n: f64| (n - 1_048_576.0).max(0.0);
    let probes = probes(|work, n| match work {
        Work::Message => 2.0 * (200.0 + 0.01 * n + 0.06 * long(n)),
        Work::Combine => 2.0 * (200.0 + 0.01 * n + 0.06 * long(n)),
        Work::Exchange => 190.0 + 0.06 * n,
        Work::CombineOwn => 190.0 + 0.08 * n,
        Work::Copy => 70.0 + 0.02 * n + 0.05 * long(n),
    });
    let fits = Fits::of(&probes).unwrap();
    let pieces = fits.pieces().unwrap();
    assert_eq!(pieces.transfer.len(), 2);
    assert_eq!(pieces.transfer[1].from, 1_048_576);
    assert_eq!(pieces.copy.len(), 2);
    assert!(pieces.combine.is_empty());
    assert_eq!(pieces.combine_local.len(), 1);
    let cost = CostModel::default().pieces(pieces).unwrap();
    near(cost.combine_local(0, 1000), 20.0);
    assert_eq!(fits.gamma, 0.0);
    let warnings = quality_warnings(&probes, 0.0, &fits, true, false).unwrap();
    assert!(warnings[0].contains("gamma is 0"), "{warnings:?}");
}

#[test]
fn a_meaningless_copying_rate_causes_a_warning() {
    // Every other size is slow.
    let odd = |n: f64| n.log2().floor() % 2.0;
    let probes = probes(|work, n| match work {
        Work::Message | Work::Combine => 2.0 * (150.0 + 0.04 * n),
        Work::Exchange | Work::CombineOwn => 150.0 + 0.06 * n,
        Work::Copy => 70.0 + 0.02 * n * (1.0 + 20.0 * odd(n)),
    });
    let fits = Fits::of(&probes).unwrap();
    assert!(fits.copy_error() > MAX_ERROR, "{}", fits.copy_error());
    let warnings = quality_warnings(&probes, 0.0, &fits, true, false).unwrap();
    assert!(
        warnings.iter().any(|w| w.contains("gamma_copy")),
        "{warnings:?}"
    );
}

#[test]
fn meaningless_measurements_are_refused() {
    for (times, says) in [
        ((|_, n| 1000.0 - 1e-5 * n) as fn(Work, f64) -> f64, "beta"),
        (|_, n| 1e-3 + 1e-9 * n * n, "refused"),
    ] {
        let probes = probes(times);
        let fitted = Fits::of(&probes);
        let judged = fitted.and_then(|fits| quality_warnings(&probes, 0.0, &fits, true, false));
        let error = judged.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.exit_code(), 1);
    }
}

#[test]
fn two_different_cores_are_required() {
    for (cores, says) in [(vec![0], "1 core named"), (vec![0, 1, 0], "twice")] {
        let options = Calibration {
            cores: Some(cores),
            ..Calibration::default()
        };
        let error = calibrate(&options, |_, _| {}).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn every_pair_of_ranks_has_its_line() {
    let fits = Fits::of(&probes(|_, n| 1000.0 + 0.1 * n)).unwrap();
    let others: Vec<_> = pairs_of(4).filter(|pair| *pair != [0, 2]).collect();
    assert_eq!(others, [[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]]);
    let mut measured = Vec::new();
    let lines = lines([0, 2], &others, &fits, |pair| {
        measured.push(pair);
        // Each is disturbed at first.
        match measured.iter().filter(|of| **of == pair).count() {
            1 => Err(Error::system("disturbed")),
            _ => Ok((pair[0] as f64, 10.0 * pair[1] as f64)),
        }
    });
    let links = matrices(4, &lines.unwrap(), &fits);
    assert_eq!(measured.len(), 2 * others.len());
    assert_eq!(links.alpha[0][2], Some(fits.line.0));
    for [i, j] in others {
        for (from, to) in [(i, j), (j, i)] {
            assert_eq!(links.alpha[from][to], Some(i as f64));
            assert_eq!(links.beta[from][to], Some(10.0 * j as f64));
        }
    }
}

#[test]
fn calibration_needs_two_ranks() {
    let mut team = oneport::run::Team::new(2).unwrap();
    for ranks in [0, 1] {
        let hosts = vec!["here".to_string(); ranks];
        let error = calibrate_on(&mut team, &hosts, &Calibration::default(), |_, _| {});
        let error = error.unwrap_err();
        let expected = format!("there are {ranks}");
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}
