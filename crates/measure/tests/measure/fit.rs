//! Tests of the fits, on synthetic times with noise and outliers.

use oneport::random::Generator;
use oneport_measure::fit::{AtZero, Measured, curve, line, median, quantile};

/// 0 and 16 B to 16 MiB, in steps of about the square root of two.
fn sizes() -> Vec<u64> {
    let steps = (4..24).flat_map(|k| [1u64 << k, 3 << (k - 1)]);
    [0].into_iter().chain(steps).chain([1 << 24]).collect()
}

fn measured(time: impl Fn(f64) -> f64) -> Vec<Measured> {
    sizes()
        .into_iter()
        .map(|n| Measured::new(n, time(n as f64)))
        .collect()
}

/// Reproducible noise between -1 and 1.
fn noise(i: usize) -> f64 {
    2.0 * Generator::new(i as u64).unit() - 1.0
}

fn near(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} is not near {b}");
}

#[test]
fn exact_lines_are_recovered() {
    for (alpha, beta) in [(100.0, 0.5), (1.0, 1.0), (5000.0, 0.01), (0.5, 20.0)] {
        let points = measured(|n| alpha + beta * n);
        for fit in [
            line(&points, AtZero::Fitted),
            curve(&points, AtZero::Fitted),
        ] {
            let fit = fit.unwrap();
            assert_eq!(fit.count(), 1);
            let found = fit.first_line();
            near(found.0, alpha, 1e-6);
            near(found.1, beta, 1e-6);
            assert!(fit.error(&points).worst < 1e-6);
        }
    }
    let points: Vec<_> = measured(|n| 0.25 * n).split_off(1);
    assert_eq!(line(&points, AtZero::Nothing).unwrap().first_line().0, 0.0);
    near(
        line(&points, AtZero::Nothing).unwrap().first_line().1,
        0.25,
        1e-9,
    );
}

#[test]
fn outliers_do_not_bend_the_line() {
    let mut points = measured(|n| 200.0 + 0.05 * n);
    for (i, p) in points.iter_mut().enumerate() {
        *p = Measured::new(p.bytes, p.time * (1.0 + 0.02 * noise(i)));
    }
    for i in [3, 10, 17, 25, 33, 40] {
        points[i] = Measured::new(points[i].bytes, points[i].time * (2.0 + i as f64));
    }
    for i in [8, 30] {
        points[i] = Measured::new(points[i].bytes, points[i].time / 3.0);
    }
    let (alpha, beta) = line(&points, AtZero::Fitted).unwrap().first_line();
    near(alpha, 200.0, 0.03);
    near(beta, 0.05, 0.03);
}

#[test]
fn noise_alone_makes_no_pieces() {
    for seed in 0..20 {
        let mut points = measured(|n| 200.0 + 0.05 * n);
        for (i, p) in points.iter_mut().enumerate() {
            *p = Measured::new(p.bytes, p.time * (1.0 + 0.1 * noise(100 * seed + i)));
        }
        assert_eq!(
            curve(&points, AtZero::Fitted).unwrap().count(),
            1,
            "seed {seed}"
        );
    }
}

#[test]
fn two_pieces_are_found_where_they_meet() {
    // A byte beyond 64 KiB costs a fifth of one below.
    let meet = 65536.0;
    let points = measured(|n| 300.0 + 0.1 * n.min(meet) + 0.02 * (n - meet).max(0.0));
    let fit = curve(&points, AtZero::Fitted).unwrap();
    let pieces = fit.pieces();
    assert_eq!(pieces.len(), 2, "{pieces:?}");
    assert_eq!((pieces[0].from, pieces[1].from), (0, 65536));
    near(pieces[0].alpha, 300.0, 1e-6);
    near(pieces[0].beta, 0.1, 1e-6);
    near(pieces[1].beta, 0.02, 1e-6);
    assert!(fit.error(&points).worst < 1e-6);
    assert!(line(&points, AtZero::Fitted).unwrap().error(&points).median > 0.05);
    // The same with noise and a few outliers.
    let mut noisy = points.clone();
    for (i, p) in noisy.iter_mut().enumerate() {
        let off = if i % 11 == 5 { 3.0 } else { 1.0 };
        *p = Measured::new(p.bytes, p.time * off * (1.0 + 0.03 * noise(i)));
    }
    let fit = curve(&noisy, AtZero::Fitted).unwrap();
    assert!(fit.error(&points).median < 0.03);
    assert!(fit.error(&points).worst < 0.2);
}

#[test]
fn a_bend_that_needs_two_knots_is_found() {
    // Four times as slow between 128 and 512 KiB: a knot at only one end of this range improves
    // the fit little.
    let time = |n: f64| n + 3.0 * (n.min(524_288.0) - 131_072.0).max(0.0);
    let points: Vec<Measured> = (10..=24)
        .map(|e| Measured::new(1 << e, time(f64::from(1 << e))))
        .collect();
    let curve = curve(&points, AtZero::Nothing).unwrap();
    assert!(curve.error(&points).worst < 0.01);
}

#[test]
fn curves_never_fall_nor_go_below_zero() {
    for seed in 0..50 {
        let points: Vec<_> = sizes()
            .into_iter()
            .enumerate()
            .map(|(i, n)| Measured::new(n, 100.0 * (1.5 + noise(seed * 977 + i))))
            .collect();
        let at_zero = if seed % 2 == 0 {
            AtZero::Nothing
        } else {
            AtZero::Fitted
        };
        let fit = curve(&points, at_zero).unwrap();
        let pieces = oneport::machine::Pieces {
            transfer: fit.pieces(),
            ..Default::default()
        };
        pieces.validate().unwrap();
    }
}

#[test]
fn too_few_points_give_no_fit() {
    assert_eq!(line(&[], AtZero::Fitted), None);
    assert_eq!(curve(&[Measured::new(4, 1.0)], AtZero::Fitted), None);
    assert_eq!(curve(&[Measured::new(4, 1.0); 3], AtZero::Fitted), None);
    assert!(
        line(
            &[Measured::new(4, 1.0), Measured::new(8, 2.0)],
            AtZero::Fitted
        )
        .is_some()
    );
}

#[test]
fn quantiles() {
    assert_eq!(median(&mut []), 0.0);
    assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&mut [4.0, 1.0]), 2.5);
    assert_eq!(quantile(&mut [5.0, 1.0, 2.0, 3.0, 4.0], 0.25), 2.0);
}

/// The caches hold all but the largest message: it gets a piece of its own.
#[test]
fn the_largest_size_gets_its_piece() {
    for slower in [1.6, 2.5, 6.0] {
        let time = |n: u64| {
            let n = n as f64;
            300.0 + 0.05 * n.min(16e6) + 0.05 * slower * (n - 16e6).max(0.0)
        };
        let sizes = (2..=24).map(|k| 1u64 << k).chain([32_000_000]);
        let points: Vec<_> = sizes.map(|n| Measured::new(n, time(n))).collect();
        let fitted = curve(&points, AtZero::Fitted).unwrap();
        let error = fitted.error(&points);
        assert!(error.worst < 0.15, "{slower}: {error:?} {fitted:?}");
    }
}
