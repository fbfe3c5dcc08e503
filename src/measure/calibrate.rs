//! Calibration: measures this machine and fits alpha, beta, gamma and gamma_copy.
//!
//! # What is measured
//!
//! Every measurement is a [`Team::run`](crate::run::Team::run), like a run of a collective. Before
//! each repetition every rank writes its own input anew. A message is therefore read from the cache
//! of the core that wrote it (or from memory, if it is large), not from a cache that earlier
//! repetitions warmed. The time is that of the slower rank, measured from a common barrier. A
//! calibration under ideal conditions would predict times that no run reaches.
//!
//! - Message: half of a ping-pong (rank 0 sends, then receives; rank 1 receives, then sends), 0 B
//!   to 32 MiB (quick: 16 MiB).
//! - Combining: the same ping-pong with combining receives. The cost of combining is the additional
//!   time. Reductions combine in the pass that receives, where most of the arithmetic hides behind
//!   the memory accesses; a separate combination would overestimate the cost.
//! - Combining locally: an exchange, after which each rank combines the received data into the data
//!   it sent, minus the time of the exchange alone. This fetches back the cache lines that the
//!   partner's core has read, so it costs more than the arithmetic.
//! - Sharing a core: a ping-pong of 8 bytes between two ranks on the first core.
//! - Copying: both ranks copy locally, minus the time of a run without a step.
//!
//! The sizes are measured turn by turn, so that a disturbance affects all of them instead of one. A
//! turn consists of as many repetitions as fit its time slice and yields their median. The time of
//! a size is the lower quartile of its turns.
//!
//! # What is fitted
//!
//! See [`fit`](super::fit): always one line, and pieces if one line is not good enough. `gamma` and
//! `gamma_copy` are lines through zero.
//!
//! # When a calibration is refused
//!
//! - There are fewer than two cores.
//! - A slope or start-up time is not positive.
//! - The median error of the model exceeds 25%.
//! - Samples of one size differ by more than 300% in the median.

use super::fit::{self, Curve, Measured, median};
use super::probe::{Bench, Effort, Probe, Work};
use super::profile::{self, Machine, Point, Profile};
use crate::error::{Error, Result};
use crate::machine::{Links, Pieces};

/// A fit with a larger median relative error is refused.
const MAX_ERROR: f64 = 0.25;
/// Samples of one size that differ by more than this, in the median over the sizes, are too noisy
/// to fit.
const MAX_NOISE: f64 = 3.0;
/// Noise, or change between the first and the last turn, that causes a warning.
const NOISY: f64 = 0.1;
/// Largest relative error of a point that causes no warning.
const FAR_OFF: f64 = 0.5;
/// Local combining gets a cost of its own if it takes this many times as long as combining while
/// receiving.
const LOCAL_COMBINE_RATIO: f64 = 1.05;

/// Options of a calibration.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// Cores to use, of which the first two are measured. By default all cores of this process.
    pub cores: Option<Vec<usize>>,
    /// Also measure each pair of cores.
    pub pairs: bool,
    /// Use fewer sizes and less time: about two seconds instead of fifteen.
    pub quick: bool,
}

/// Measures this machine and fits the cost model's parameters, in nanoseconds and nanoseconds per
/// byte.
///
/// `progress` is called with the number of finished measurements and their total.
///
/// ```no_run
/// use oneport::measure::{Calibration, calibrate};
/// let profile = calibrate(&Calibration::default(), |_, _| {})?;
/// println!("alpha {} ns, beta {} ns/byte", profile.alpha, profile.beta);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// - [`ErrorKind::Usage`](crate::ErrorKind::Usage) if cores do not exist or are listed twice.
/// - [`ErrorKind::System`](crate::ErrorKind::System) if there are fewer than two cores, or if the
///   measurements are meaningless; the message gives the reason.
pub fn calibrate(options: &Calibration, mut progress: impl FnMut(usize, usize)) -> Result<Profile> {
    let cores = two_or_more(options.cores.clone())?;
    let measured: Vec<usize> = if options.pairs {
        cores.clone()
    } else {
        cores[..2].to_vec()
    };
    let effort = Effort::new(options.quick);
    let others: Vec<(usize, usize)> = (0..measured.len())
        .flat_map(|i| (i + 1..measured.len()).map(move |j| (i, j)))
        .skip(1)
        .collect();
    let sizes = effort.sizes();
    let brief = Effort::new(true);
    let own_steps = effort.turns * sizes.len();
    let pair_steps = brief.turns * brief.sizes().len();
    let all_steps = own_steps + others.len() * pair_steps;

    let mut warnings = setup_warnings(options.quick);
    let mut bench = Bench::of_two(&measured[..2])?;
    let mut probes: Vec<Probe> = Vec::new();
    for work in Work::ALL {
        let wanted = sizes.iter().filter(|&&n| work.measures(n));
        for &bytes in wanted {
            probes.push(Probe::new(work, bytes)?);
        }
    }
    bench.measure_interleaved(&mut probes, effort, |done, of| {
        progress(own_steps * done / of.max(1), all_steps);
    })?;
    let fits = Fits::of(&probes)?;
    let noise = noise(&probes);
    warnings.extend(quality_warnings(
        &probes,
        noise,
        &fits,
        bench.team.pinned(),
    )?);

    let (alpha, beta) = fits.line;
    let mut profile = Profile {
        machine: Machine::this(),
        date: profile::now(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        alpha,
        beta,
        gamma: fits.gamma,
        gamma_copy: fits.gamma_copy,
        noise,
        pieces: fits.pieces(),
        warnings,
        cores: measured.clone(),
        ..Profile::from_json(r#"{"alpha": 0, "beta": 0}"#)?
    };
    drop(bench);
    let mut turns = vec![Probe::new(Work::Message, 8)?];
    Bench::of_two(&measured[..1])?.measure_interleaved(&mut turns, effort, |_, _| {})?;
    profile.shared_alpha = turns.first().map(Probe::time);
    profile.fill_points(&fits)?;
    if options.pairs {
        let mut done = own_steps;
        let mut lines = vec![(0, 1, fits.line)];
        for (i, j) in others {
            let line = one_pair(&[measured[i], measured[j]], brief, |part, of| {
                progress(done + pair_steps * part / of.max(1), all_steps);
            })?;
            done += pair_steps;
            lines.push((i, j, line));
        }
        profile.pairs = Some(matrices(measured.len(), &lines, &fits));
    }
    progress(all_steps, all_steps);
    Ok(profile)
}

/// Returns the cores to measure: at least two, all different.
fn two_or_more(wanted: Option<Vec<usize>>) -> Result<Vec<usize>> {
    if let Some(cores) = &wanted {
        if let Some(twice) = cores
            .iter()
            .enumerate()
            .find_map(|(i, c)| cores[..i].contains(c).then_some(c))
        {
            return Err(Error::usage(format!(
                "core {twice} is named twice: calibration needs different cores"
            )));
        }
        if cores.len() < 2 {
            return Err(Error::usage(format!(
                "{} core named: calibration sends messages between two",
                cores.len()
            )));
        }
    }
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    let available: Vec<usize> = ids.iter().map(|c| c.id).collect();
    if available.len() < 2 {
        return Err(Error::system(format!(
            "calibration refused: it sends messages between two cores, and this process may use {}; give alpha and beta yourself",
            available.len()
        )));
    }
    Ok(wanted.unwrap_or(available))
}

/// Alpha and beta.
type Line = (f64, f64);

/// The measured points and the curves fitted to them.
#[derive(Debug)]
struct Fits {
    message: Vec<Measured>,
    combine: Vec<Measured>,
    combine_own: Vec<Measured>,
    copy: Vec<Measured>,
    line: Line,
    line_error: fit::FitError,
    transfer: Curve,
    error: fit::FitError,
    gamma: f64,
    combining: Option<Curve>,
    combining_own: Option<Curve>,
    gamma_copy: f64,
    copying: Option<Curve>,
}

impl Fits {
    fn of(probes: &[Probe]) -> Result<Fits> {
        let times = |work: Work| {
            let probes = probes.iter().filter(move |p| p.work == work);
            probes.map(|p| (p.bytes, p.time()))
        };
        let message: Vec<Measured> = times(Work::Message)
            .map(|(n, t)| Measured::new(n, t))
            .collect();
        let (line, line_error) = meaningful_line(&message)?;
        let transfer = fit::curve(&message, false).ok_or_else(too_few)?;
        let error = transfer.error(&message);
        if error.median > MAX_ERROR {
            return Err(Error::system(format!(
                "calibration refused: the best fit is off by {:.0}% in the median, more than {:.0}%; is the machine busy?",
                100.0 * error.median,
                100.0 * MAX_ERROR
            )));
        }
        // The additional time of `work` compared with the operation that it contains.
        let additional_time = |work: Work, contained: &[Measured]| -> Vec<Measured> {
            times(work)
                .filter_map(|(bytes, whole)| {
                    let without = contained.iter().find(|m| m.bytes == bytes)?;
                    Some(Measured {
                        bytes,
                        time: whole - without.time,
                        scale: whole,
                    })
                })
                .collect()
        };
        let exchange: Vec<Measured> = times(Work::Exchange)
            .map(|(n, t)| Measured::new(n, t))
            .collect();
        let combine = additional_time(Work::Combine, &message);
        let combine_own = additional_time(Work::CombineOwn, &exchange);
        let idle = times(Work::Copy).find(|c| c.0 == 0).map_or(0.0, |c| c.1);
        let copy: Vec<Measured> = times(Work::Copy)
            .filter(|&(bytes, time)| bytes > 0 && time > idle)
            .map(|(bytes, time)| Measured::new(bytes, time - idle))
            .collect();
        let (gamma, combining) = rate(&combine);
        // Kept only if local combining is more expensive than combining while receiving.
        let combining_own = fit::curve(&combine_own, true)
            .filter(|own| own.len() > 1 || own.first_line().1 > LOCAL_COMBINE_RATIO * gamma);
        let (gamma_copy, copying) = rate(&copy);
        Ok(Fits {
            message,
            combine,
            combine_own,
            copy,
            line,
            line_error,
            transfer,
            error,
            gamma,
            combining,
            combining_own,
            gamma_copy,
            copying,
        })
    }

    /// Median relative error of `gamma_copy`, or of the pieces that replace it.
    fn copy_error(&self) -> f64 {
        let predicted = |bytes: u64| match &self.copying {
            Some(curve) => curve.at(bytes),
            None => self.gamma_copy * bytes as f64,
        };
        let off = |m: &Measured| (predicted(m.bytes) / m.time - 1.0).abs();
        match self.copy.is_empty() {
            true => 1.0,
            false => median(&mut self.copy.iter().map(off).collect::<Vec<_>>()),
        }
    }

    fn pieces(&self) -> Option<Pieces> {
        let several = |curve: &Curve| (curve.len() > 1).then(|| curve.pieces());
        let list = |curve: &Option<Curve>| curve.as_ref().and_then(several).unwrap_or_default();
        let pieces = Pieces {
            transfer: several(&self.transfer).unwrap_or_default(),
            combine: list(&self.combining),
            combine_local: self
                .combining_own
                .as_ref()
                .map_or_else(Vec::new, Curve::pieces),
            copy: list(&self.copying),
        };
        (!pieces.is_empty()).then_some(pieces)
    }
}

/// Fits the time per byte, and a curve if it fits better.
fn rate(points: &[Measured]) -> (f64, Option<Curve>) {
    let line = fit::line(points, true);
    let rate = line.map_or(0.0, |line| line.first_line().1.max(0.0));
    (rate, fit::curve(points, true).filter(|c| c.len() > 1))
}

/// Fits the line through the times of messages; an error if its parameters are not positive.
fn meaningful_line(message: &[Measured]) -> Result<(Line, fit::FitError)> {
    let line = fit::line(message, false).ok_or_else(too_few)?;
    let (alpha, beta) = line.first_line();
    for (name, value, what) in [
        ("beta", beta, "longer messages did not take longer"),
        ("alpha", alpha, "an empty message would take no time"),
    ] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::system(format!(
                "calibration refused: {name} comes out as {value:.3}: {what}; is the machine busy?"
            )));
        }
    }
    Ok(((alpha, beta), line.error(message)))
}

fn too_few() -> Error {
    Error::system("calibration refused: too few measurements to fit")
}

impl Profile {
    fn fill_points(&mut self, fits: &Fits) -> Result<()> {
        let cost = self.cost()?;
        let first = match cost.size_pieces().and_then(|p| p.transfer.first()) {
            Some(piece) => piece.alpha,
            None => self.alpha,
        };
        let message = |bytes: u64| match bytes {
            0 => first,
            n => cost.transfer(0, 1, n),
        };
        let point = |bytes: u64, time: f64, predicted: f64| Point {
            bytes,
            time,
            predicted,
            residual: (predicted - time) / time,
        };
        self.points = fits
            .message
            .iter()
            .map(|m| point(m.bytes, m.time, message(m.bytes)))
            .collect();
        self.combine_points = fits
            .combine
            .iter()
            .map(|m| {
                let predicted = message(m.bytes) + cost.combine(1, m.bytes);
                point(m.bytes, m.scale, predicted)
            })
            .collect();
        self.combine_local_points = fits
            .combine_own
            .iter()
            .map(|m| {
                let predicted = m.scale - m.time + cost.combine_local(1, m.bytes);
                point(m.bytes, m.scale, predicted)
            })
            .collect();
        self.copy_points = fits
            .copy
            .iter()
            .map(|m| point(m.bytes, m.time, cost.copy(0, m.bytes)))
            .collect();
        (self.fit_error, self.fit_error_worst) = (fits.error.median, fits.error.worst);
        (self.line_error, self.line_error_worst) = (fits.line_error.median, fits.line_error.worst);
        Ok(())
    }
}

/// Measures alpha and beta between two other cores.
fn one_pair(
    cores: &[usize; 2],
    effort: Effort,
    progress: impl FnMut(usize, usize),
) -> Result<Line> {
    let probes: Result<Vec<Probe>> = effort
        .sizes()
        .into_iter()
        .map(|n| Probe::new(Work::Message, n))
        .collect();
    let mut probes = probes?;
    Bench::of_two(cores)?.measure_interleaved(&mut probes, effort, progress)?;
    let points: Vec<Measured> = probes
        .iter()
        .map(|p| Measured::new(p.bytes, p.time()))
        .collect();
    let line = meaningful_line(&points)
        .map_err(|e| Error::system(format!("cores {} and {}: {e}", cores[0], cores[1])))?;
    Ok(line.0)
}

/// Arranges the pairs' lines as matrices; a core has no link to itself.
fn matrices(cores: usize, lines: &[(usize, usize, Line)], fits: &Fits) -> Links {
    let mut links = Links {
        alpha: vec![vec![None; cores]; cores],
        beta: vec![vec![None; cores]; cores],
        gamma: vec![fits.gamma; cores],
        gamma_copy: vec![fits.gamma_copy; cores],
    };
    for &(i, j, (alpha, beta)) in lines {
        for (from, to) in [(i, j), (j, i)] {
            links.alpha[from][to] = Some(alpha);
            links.beta[from][to] = Some(beta);
        }
    }
    links
}

/// Median noise of the probes.
fn noise(probes: &[Probe]) -> f64 {
    median(&mut probes.iter().map(Probe::noise).collect::<Vec<_>>())
}

/// Warnings that need no measurement.
fn setup_warnings(quick: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if quick {
        warnings.push("a quick calibration: fewer sizes, less time for each".to_string());
    }
    let allowed = std::thread::available_parallelism().map_or(2, usize::from);
    if allowed < 2 {
        warnings.push(
            "the system grants this process less than two cores' time: the ranks have to share it"
                .to_string(),
        );
    }
    let cores = core_affinity::get_core_ids().map_or(2, |ids| ids.len());
    let room = cores as f64 - 1.5;
    if let Some(load) = load_average().filter(|&load| load > room) {
        warnings.push(format!(
            "other programs are running (load average {load:.1} on {cores} cores): they compete for the cores that are measured"
        ));
    }
    warnings
}

/// Runnable tasks, averaged over the last minute, if the system reports them.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Warnings about the quality of the measurements.
///
/// # Errors
/// If the measurements are too noisy.
fn quality_warnings(
    probes: &[Probe],
    noise: f64,
    fits: &Fits,
    pinned: bool,
) -> Result<Vec<String>> {
    let percent = |x: f64| format!("{:.0}%", 100.0 * x);
    if noise > MAX_NOISE {
        return Err(Error::system(format!(
            "calibration refused: samples of one size differ by {} in the median: stop what else is running and try again",
            percent(noise)
        )));
    }
    let mut warnings = Vec::new();
    if !pinned {
        warnings.push("the system refused to pin the ranks: they may move between cores".into());
    }
    if noise > NOISY {
        warnings.push(format!(
            "noisy: a typical sample is {} above the fastest of its size",
            percent(noise)
        ));
    }
    let mut changes: Vec<f64> = probes
        .iter()
        .filter_map(|p| Some(p.turns.last()? / p.turns.first().filter(|&&t| t > 0.0)? - 1.0))
        .collect();
    let change = median(&mut changes);
    if change.abs() > NOISY {
        let (size, which) = (
            percent(change.abs()),
            if change > 0.0 { "slower" } else { "faster" },
        );
        warnings.push(format!(
            "the machine became {size} {which} while it was measured"
        ));
    }
    let far = fits.message.iter().map(|m| {
        let off = fits.transfer.at(m.bytes) / m.time - 1.0;
        (off, m.bytes)
    });
    if let Some((off, bytes)) = far.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))
        && off.abs() > FAR_OFF
    {
        warnings.push(format!(
            "the fit is off by {} at {bytes} bytes: look at the points",
            percent(off)
        ));
    }
    if fits.gamma == 0.0 && fits.combining.is_none() {
        warnings.push("combining took no longer than receiving: gamma is 0".into());
    }
    let off = fits.copy_error();
    if off > MAX_ERROR {
        warnings.push(format!(
            "gamma_copy is unreliable: its predictions for copies are off by {} in the median",
            percent(off)
        ));
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::CostModel;

    /// Probes whose times follow the given model.
    fn probes(model: impl Fn(Work, f64) -> f64) -> Vec<Probe> {
        let mut probes = Vec::new();
        for work in Work::ALL {
            for bytes in Effort::new(false).sizes() {
                if work.measures(bytes) {
                    let mut probe = Probe::new(work, bytes).unwrap();
                    let time = model(work, bytes as f64);
                    probe.turns = vec![time, 1.05 * time, time, 1.3 * time, time];
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
            quality_warnings(&probes, 0.0, &fits, true)
                .unwrap()
                .is_empty()
        );
        let warnings = quality_warnings(&probes, 0.2, &fits, false).unwrap();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let refusal = quality_warnings(&probes, 3.5, &fits, true).unwrap_err();
        assert!(refusal.to_string().contains("refused"), "{refusal}");
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
        let warnings = quality_warnings(&probes, 0.0, &fits, true).unwrap();
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
        let warnings = quality_warnings(&probes, 0.0, &fits, true).unwrap();
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
            let error = Fits::of(&probes(times)).unwrap_err();
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
}
