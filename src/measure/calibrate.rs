//! Calibration: measures this machine and fits alpha, beta, gamma and gamma_copy.
//!
//! # What is measured
//!
//! Every measurement is a [`Run`](crate::run::Run), like a run of a collective. Before
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

mod fits;
#[cfg(test)]
mod tests;
mod warnings;

use fits::{Fits, Line, meaningful_line};
use warnings::{quality_warnings, setup_warnings};

use super::fit::{Measured, median};
use super::probe::{Bench, Effort, Probe, Work};
use super::profile::{self, Machine, Point, Profile};
use crate::error::{Error, Result};
use crate::machine::Links;

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
    let mut measured = two_or_more(options.cores.clone())?;
    if !options.pairs {
        measured.truncate(2);
    }
    let effort = Effort::new(options.quick);
    let own_steps = effort.turns * effort.sizes().len();
    let other_pairs = measured.len() * (measured.len() - 1) / 2 - 1;
    let all_steps = own_steps + other_pairs * steps_of_pair();

    let mut warnings = setup_warnings(options.quick);
    let mut bench = Bench::of_two(&measured[..2])?;
    let mut probes = all_probes(effort)?;
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
        let links = all_pairs(&measured, &fits, |done| {
            progress(own_steps + done, all_steps);
        })?;
        profile.pairs = Some(links);
    }
    progress(all_steps, all_steps);
    Ok(profile)
}

/// A probe of every operation and size.
fn all_probes(effort: Effort) -> Result<Vec<Probe>> {
    let sizes = effort.sizes();
    let probe = |work: Work| {
        let measured = sizes.iter().filter(move |&&bytes| work.measures(bytes));
        measured.map(move |&bytes| Probe::new(work, bytes))
    };
    Work::ALL.into_iter().flat_map(probe).collect()
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

/// The effort for pairs of cores other than the first.
fn effort_of_pair() -> Effort {
    Effort::new(true)
}

/// Number of steps of the progress for such a pair.
fn steps_of_pair() -> usize {
    let effort = effort_of_pair();
    effort.turns * effort.sizes().len()
}

/// Measures alpha and beta between all pairs of cores but the first, whose line is known.
fn all_pairs(cores: &[usize], fits: &Fits, mut progress: impl FnMut(usize)) -> Result<Links> {
    let mut lines = vec![(0, 1, fits.line)];
    let mut done = 0;
    for i in 0..cores.len() {
        for j in (i + 1..cores.len()).filter(|&j| (i, j) != (0, 1)) {
            let line = one_pair(&[cores[i], cores[j]], |part, of| {
                progress(done + steps_of_pair() * part / of.max(1));
            })?;
            done += steps_of_pair();
            lines.push((i, j, line));
        }
    }
    Ok(matrices(cores.len(), &lines, fits))
}

/// Measures alpha and beta between two cores.
fn one_pair(cores: &[usize; 2], progress: impl FnMut(usize, usize)) -> Result<Line> {
    let effort = effort_of_pair();
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
