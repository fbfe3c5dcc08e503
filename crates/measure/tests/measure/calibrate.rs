//! Tests of the calibration, on synthetic times: its parts, whose functions are private.

use super::fits::{Fits, Line};
use super::pairs::{levels, lines, matrices, pair_of_one_host, pairs_of};
use super::warnings::{MAX_ERROR, noise, quality_warnings};
use crate::sources::probe::{Pair, Probe, ProbeEffort, Work};
use oneport::internal::sealed;
use oneport::machine::{CostModel, Level};
use oneport::run::{Clock, Place, Run, Team, WallTimes};
use oneport::{Error, Request};
use oneport_measure::{Calibration, calibrate, calibrate_on};

/// Probes whose times follow the given model.
fn probes(model: impl Fn(Work, f64) -> f64) -> Vec<Probe> {
    let mut probes = Vec::new();
    for work in Work::ALL {
        for bytes in ProbeEffort::new(false).sizes() {
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
        _ => 70.0 + 0.025 * n,
    });
    let fits = Fits::of(&probes).unwrap();
    near(fits.line.alpha, 150.0);
    near(fits.line.beta, 0.04);
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

/// Half a ping-pong takes what a message keeps its sender busy, and the latency; above 4 KiB
/// senders wait for their receivers, so that bursts take no less.
#[test]
fn bursts_tell_the_latency_from_alpha() {
    let burst_of = |busy: fn(f64) -> f64| {
        let mut probes = probes(|_, n| 2.0 * (100.0 + 0.04 * n + 60.0));
        for bytes in ProbeEffort::QUICK.sizes() {
            if Work::Burst.measures(bytes) {
                let mut probe = Probe::new(Work::Burst, bytes, Pair::ALONE).unwrap();
                let half = 160.0 + 0.04 * bytes as f64;
                probe.medians = vec![2.0 * half + 15.0 * busy(bytes as f64); 3];
                probes.push(probe);
            }
        }
        Fits::of(&probes)
    };
    let fits = burst_of(|n| 100.0 + 0.04 * n + if n > 4096.0 { 60.0 } else { 0.0 }).unwrap();
    near(fits.line.alpha, 100.0);
    near(fits.line.beta, 0.04);
    near(fits.line.latency, 60.0);
    let latency = fits.latency.unwrap();
    assert!(
        latency.spread < 1e-6 && latency.eager == 4096,
        "{latency:?}"
    );
    for none in [|n| 160.0 + 0.04 * n, |n| 150.0 + 0.04 * n] {
        let error = burst_of(none).unwrap_err().to_string();
        assert!(error.contains("the latency comes out as"), "{error}");
    }
}

#[test]
fn pieces_are_fitted_where_one_line_is_not_enough() {
    let long = |n: f64| (n - 1_048_576.0).max(0.0);
    let probes = probes(|work, n| match work {
        Work::Message => 2.0 * (200.0 + 0.01 * n + 0.06 * long(n)),
        Work::Combine => 2.0 * (200.0 + 0.01 * n + 0.06 * long(n)),
        Work::Exchange => 190.0 + 0.06 * n,
        Work::CombineOwn => 190.0 + 0.08 * n,
        _ => 70.0 + 0.02 * n + 0.05 * long(n),
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
        _ => 70.0 + 0.02 * n * (1.0 + 20.0 * odd(n)),
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
    let others = [[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]];
    let pairs: Vec<_> = [[0, 2]].into_iter().chain(others).collect();
    let mut measured = Vec::new();
    let lines = lines(&pairs, &fits, |pair| {
        measured.push(pair);
        // Each is disturbed at first.
        match measured.iter().filter(|of| **of == pair).count() {
            1 => Err(Error::system("disturbed")),
            _ => Ok(late(pair[0] as f64, 10.0 * pair[1] as f64, 0.0)),
        }
    });
    let links = matrices(4, &lines.unwrap(), &fits);
    assert_eq!(measured.len(), 2 * others.len());
    assert_eq!(links.alpha[0][2], Some(fits.line.alpha));
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

/// A team whose times are those of a fast or of a slow run.
struct Disturbed {
    team: Team,
    fast: WallTimes,
    slow: WallTimes,
    /// How often was measured.
    calls: usize,
    /// Whether a batch of a size, by their numbers, is slow.
    is_slow: fn(usize, usize) -> bool,
}

/// Measurements of a first look, of which the first of each size does not count.
fn calls_of_look() -> usize {
    (1 + ProbeEffort::QUICK.batches) * ProbeEffort::QUICK.sizes().len()
}

impl sealed::Place for Disturbed {
    fn run(&mut self, run: &sealed::AnyRun<'_>) -> oneport::Result<sealed::RunReport> {
        let (sizes, call) = (calls_of_look() / 4, self.calls % calls_of_look());
        let (batch, size) = if call < 2 * sizes {
            (0, call / 2)
        } else {
            (call / sizes - 1, call % sizes)
        };
        self.calls += 1;
        let wall = if (self.is_slow)(batch, size) {
            &self.slow
        } else {
            &self.fast
        };
        let mut outcome = self.team.run(run)?;
        outcome.wall = wall.clone();
        Ok(outcome)
    }
}

impl Place for Disturbed {
    fn max_ranks(&self) -> usize {
        self.team.max_ranks()
    }

    /// Some rank sees nothing run beside: what other tests do does not count.
    fn max(&mut self, _: u64) -> oneport::Result<u64> {
        Ok(u64::MAX)
    }
}

/// The error of a calibration of which some batches of some sizes are slow, and the number of
/// measurements. It is refused before it measures anything but messages.
fn refused_at_first(is_slow: fn(usize, usize) -> bool) -> (String, usize) {
    let schedule = Request::broadcast(2, 1).plan("linear").unwrap();
    let mut team = Team::new(2).unwrap();
    let [fast, slow] = [1e6, 5e8].map(|alpha| {
        let paced = Run::<u8>::new(&schedule).clock(Clock::Paced);
        let outcome = paced.cost(CostModel::new(alpha, 0.0)).on(&mut team);
        outcome.unwrap().wall
    });
    let mut place = Disturbed {
        team,
        fast,
        slow,
        calls: 0,
        is_slow,
    };
    let hosts = hosts("here here");
    let error = calibrate_on(&mut place, &hosts, &Calibration::default(), |_, _| {
        panic!("something is measured after the first look")
    });
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    (error.to_string(), place.calls)
}

#[test]
fn a_busy_machine_is_refused_at_the_first_look() {
    let noisy = refused_at_first(|batch, _| batch > 0);
    let misfit = refused_at_first(|_, size| size % 4 == 1);
    for ((error, calls), reason) in [
        (noisy, "samples of one size differ by"),
        (misfit, "the best fit to messages is off by"),
    ] {
        let expected = format!("calibration refused at the first look: {reason}");
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(calls, 2 * calls_of_look(), "two looks decide");
    }
}

/// Programs that keep all cores busy are seen before anything is measured.
#[test]
fn a_machine_without_idle_cores_is_refused_at_once() {
    let reported = std::fs::read_to_string("/proc/loadavg").is_ok();
    let done = std::sync::atomic::AtomicBool::new(false);
    // Of all cores, not only of those that this process may use.
    let cores = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cores = cores.lines().filter(|line| line.starts_with("cpu")).count();
    let threads = 2 * cores.max(std::thread::available_parallelism().unwrap().get());
    let error = std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let error = reported.then(|| calibrate(&Calibration::default(), |_, _| ()).err());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        error
    });
    if let Some(error) = error {
        let error = error.expect("it is refused");
        let expected = "calibration refused: other programs keep the";
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.exit_code(), 1);
    }
}

fn late(alpha: f64, beta: f64, latency: f64) -> Line {
    Line {
        alpha,
        beta,
        latency,
    }
}

fn hosts(names: &str) -> Vec<String> {
    names.split(' ').map(String::from).collect()
}

#[test]
fn levels_are_the_medians_of_pairs_on_one_host_and_on_two() {
    let of = hosts("b a b a a");
    // Pairs on one host: 0-2, 1-3, 1-4, 3-4.
    let line = |[i, j]: [usize; 2]| {
        if of[i] == of[j] {
            late((10 * i + j) as f64, 0.25, 7.0)
        } else {
            late((100 * (i + j)) as f64, (i + j) as f64, 8.0)
        }
    };
    let lines: Vec<_> = pairs_of(5).map(|pair| (pair, line(pair))).collect();
    let expected = [
        Level {
            groups: Some(vec![vec![0, 2], vec![1, 3, 4]]),
            alpha: 13.5,
            beta: 0.25,
            latency: 7.0,
        },
        // The sums of the ranks are 1, 3, 4, 3, 5, 6.
        Level {
            groups: None,
            alpha: 350.0,
            beta: 3.5,
            latency: 8.0,
        },
    ];
    assert_eq!(levels(&of, &lines), expected);
    // One pair of each class is enough.
    let few = [lines[0], lines[1]];
    let costs = levels(&of, &few)
        .into_iter()
        .map(|l| late(l.alpha, l.beta, l.latency));
    assert_eq!(costs.collect::<Vec<_>>(), [line([0, 2]), line([0, 1])]);
    assert_eq!(pair_of_one_host(&of), Some([0, 2]));
}

#[test]
fn one_class_of_pairs_has_no_levels() {
    for names in ["a a a", "a b c"] {
        let lines: Vec<_> = pairs_of(3)
            .map(|pair| (pair, late(1.0, 2.0, 0.0)))
            .collect();
        assert_eq!(levels(&hosts(names), &lines), []);
    }
    assert_eq!(pair_of_one_host(&hosts("a b c")), None);
}

#[test]
fn sizes_cover_the_range() {
    for quick in [false, true] {
        let sizes = ProbeEffort::new(quick).sizes();
        let last = if quick { 1 << 24 } else { 1 << 25 };
        assert_eq!((sizes[0], sizes[sizes.len() - 1]), (0, last));
        assert!(sizes.windows(2).all(|w| w[0] < w[1]));
        assert!(sizes.iter().all(|n| n % 4 == 0));
        let ratio = |w: &[u64]| w[0] < 8 || w[1] <= w[0] * if quick { 4 } else { 2 };
        assert!(sizes.windows(2).all(ratio), "{sizes:?}");
    }
}

#[test]
fn schedules_are_timed_as_meant() {
    let cost = CostModel::new(100.0, 1.0).gamma(0.5).gamma_copy(0.25);
    for (work, bytes, time) in [
        (Work::Message, 400, 2.0 * 500.0),
        (Work::Message, 0, 0.0),
        (Work::Combine, 400, 2.0 * 700.0),
        (Work::Exchange, 400, 500.0),
        (Work::CombineOwn, 400, 700.0),
        (Work::Copy, 400, 100.0),
        (Work::Copy, 0, 0.0),
        (Work::Burst, 400, 17.0 * 500.0),
    ] {
        let among_many = Pair {
            ranks: 5,
            ends: [3, 1],
        };
        for pair in [Pair::ALONE, among_many] {
            let schedule = work.schedule(bytes, pair).unwrap();
            let simulated = schedule
                .with_element_bytes(4)
                .simulate(&cost)
                .unwrap()
                .makespan();
            assert_eq!(simulated, time, "{work:?} {bytes} {pair:?}");
        }
    }
}
