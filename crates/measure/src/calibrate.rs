//! Calibration: measures this machine and fits alpha, beta, gamma and gamma_copy.
//!
//! # What is measured
//!
//! Every measurement is a [`Run`](oneport::run::Run), like a run of a collective. Before
//! each repetition every rank writes its own input anew. A message is therefore read from the cache
//! of the core that wrote it (or from memory, if it is large), not from a cache that earlier
//! repetitions warmed. The time is that of the slower rank, measured from a common barrier. A
//! calibration under ideal conditions would predict times that no run reaches;
//! [`Calibration::keep_inputs`] measures for runs with these conditions.
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
//! - Latency, if asked for: bursts of messages up to 64 KiB show how long each keeps its sender
//!   busy; half a ping-pong takes longer by the latency.
//! - Copying: both ranks copy locally, minus the time of a run without a step.
//!
//! The sizes are measured interleaved, so that a disturbance affects all of them instead of one. A
//! batch consists of as many repetitions as fit its time slice and yields their median. The time of
//! a size is the lower quartile of its batches.
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
//! - The median error of the model exceeds 25%, unless it is taken by force.
//! - Samples of one size differ by more than 300% in the median, unless they are taken by force.
//!
//! Other programs that keep all cores busy are seen at once. A first look at messages, as quick as
//! a quick calibration, tells noise and misfit before all else is measured; where it does, a second
//! look decides.

mod fits;
mod pairs;
mod warnings;

use fits::{Fits, meaningful_line};
use pairs::{PairLine, levels, lines, matrices, pair_of_one_host, pairs_of};
pub use warnings::load_warning;
use warnings::{
    ensure_calm, ensure_idle_cores, noise, quality_warnings, running_beside, setup_warnings,
};

use super::fit::Measured;
use super::probe::{Pair, Probe, ProbeEffort, Work, measure, team_of_two};
use super::profile::{self, Machine, Point, Profile};
use oneport::error::{Error, Result};
use oneport::internal::numbers::truncated;
use oneport::machine::{Eager, Level};
use oneport::run::{Place, allowed_cores};

/// Options of a calibration.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// Cores to use, of which the first two are measured. By default all cores of this process.
    pub cores: Option<Vec<usize>>,
    /// Also measure each pair of cores.
    pub pairs: bool,
    /// Also measure the latency, the part of a message's start-up time that keeps no port, and
    /// which messages do not wait for their receivers.
    pub latency: bool,
    /// Use fewer sizes and less time: about two seconds instead of fifteen.
    pub quick: bool,
    /// Leave the buffers as they are between repetitions, as
    /// [`Run::keep_inputs`](oneport::run::Run::keep_inputs).
    pub keep_inputs: bool,
    /// Take measurements that are noisy, and a model that does not fit, with a warning.
    pub force: bool,
}

/// Measures this machine and fits the cost model's parameters, in nanoseconds and nanoseconds per
/// byte.
///
/// `progress` is called with the number of finished measurements and their total.
///
/// ```no_run
/// use oneport_measure::{Calibration, calibrate};
/// let profile = calibrate(&Calibration::default(), |_, _| {})?;
/// println!("alpha {} ns, beta {} ns/byte", profile.alpha, profile.beta);
/// # Ok::<(), oneport::Error>(())
/// ```
///
/// # Errors
/// - [`ErrorKind::Usage`](oneport::ErrorKind::Usage) if cores do not exist or are listed twice.
/// - [`ErrorKind::System`](oneport::ErrorKind::System) if there are fewer than two cores, or if the
///   measurements are meaningless; the message gives the reason.
pub fn calibrate(options: &Calibration, progress: impl FnMut(usize, usize)) -> Result<Profile> {
    let mut cores = two_or_more(options.cores.clone())?;
    if !options.pairs {
        cores.truncate(2);
    }
    let mut is_idle = takes_any_machine(options);
    let keep = options.keep_inputs;
    let pairs: Vec<_> = pairs_of(cores.len()).collect();
    let names = |[i, j]: [usize; 2]| format!("cores {} and {}", cores[i], cores[j]);
    let on_cores = |[i, j]: [usize; 2], works: &[Work], effort, progress: Part<'_>| {
        let mut team = team_of_two(&[cores[i], cores[j]])?;
        if !std::mem::replace(&mut is_idle, true) {
            ensure_idle_cores(running_beside())?;
        }
        let mut probes = probes_of(works, effort, Pair::ALONE)?;
        measure(&mut team, &mut probes, effort, keep, progress)?;
        Ok((probes, team.pinned()))
    };
    let (mut profile, _) = measured(&pairs, cores.len(), names, on_cores, options, progress)?;
    let mut shared = [Probe::new(Work::Message, 8, Pair::ALONE)?];
    let mut team = team_of_two(&cores[..1])?;
    measure(
        &mut team,
        &mut shared,
        ProbeEffort::new(options.quick),
        keep,
        |_, _| {},
    )?;
    profile.shared_alpha = Some(shared[0].time());
    profile.cores = cores;
    Ok(profile)
}

/// Measures the ranks of a place that exists, such as the processes of an MPI world, whose hosts
/// are given by rank. The first rank and the first one on another host are measured at all sizes,
/// or the first two if there is only one host. If asked for, every pair is measured. Ranks on
/// several hosts have [`Profile::levels`], the medians over the measured pairs on one host and over
/// those on two; without the other pairs, one pair on one host is measured as well.
///
/// [`Profile::cores`] are the ranks. All processes must call it alike; all get the same figures.
///
/// # Errors
/// As [`calibrate`]; also if cores are given, or there are fewer than two ranks.
pub fn calibrate_on(
    place: &mut impl Place,
    hosts: &[String],
    options: &Calibration,
    progress: impl FnMut(usize, usize),
) -> Result<Profile> {
    let ranks = hosts.len();
    if options.cores.is_some() {
        return Err(Error::usage("ranks that exist have their cores already"));
    }
    if ranks < 2 {
        return Err(Error::usage(format!(
            "calibration sends messages between two ranks, of which there are {ranks}"
        )));
    }
    let other = hosts.iter().position(|host| *host != hosts[0]);
    let first = [0, other.unwrap_or(1)];
    let others: Vec<_> = if options.pairs {
        pairs_of(ranks).collect()
    } else {
        pair_of_one_host(hosts).into_iter().collect()
    };
    let others = others.into_iter().filter(|pair| *pair != first);
    let pairs: Vec<_> = [first].into_iter().chain(others).collect();
    if !takes_any_machine(options) {
        ensure_idle_cores(running_beside_all(place)?)?;
    }
    let names = |[i, j]: [usize; 2]| format!("ranks {i} and {j}");
    let in_place = |ends, works: &[Work], effort, progress: Part<'_>| {
        let mut probes = probes_of(works, effort, Pair { ranks, ends })?;
        measure(place, &mut probes, effort, options.keep_inputs, progress)?;
        Ok((probes, true))
    };
    let (mut profile, lines) = measured(&pairs, ranks, names, in_place, options, progress)?;
    profile.levels = levels(hosts, &lines);
    if !profile.levels.is_empty()
        && let Err(error) = Level::ranks(&profile.levels)
    {
        profile.levels.clear();
        profile.warnings.push(format!("no levels: {error}"));
    }
    profile.hosts = hosts.to_vec();
    profile.cores = (0..ranks).collect();
    Ok(profile)
}

/// Whether busy cores are no reason to refuse.
fn takes_any_machine(options: &Calibration) -> bool {
    options.quick || options.force
}

/// How many tasks run beside the ranks of `place`, if the system reports them. Ranks look at the
/// same time, and some may see others look: the least that one sees counts.
fn running_beside_all(place: &mut impl Place) -> Result<Option<f64>> {
    const PARTS: f64 = 1000.0;
    // From here on no rank works for another one that has not come yet.
    place.max(0)?;
    let seen = running_beside().map_or(0, |running| truncated(PARTS * running) as u64);
    let least = u64::MAX - place.max(u64::MAX - seen)?;
    Ok((least > 0).then_some(least as f64 / PARTS))
}

/// The progress of one measurement: the number of finished batches and their total.
type Part<'p> = &'p mut dyn FnMut(usize, usize);

/// The probes of a pair, and whether its ranks were pinned.
type Probed = (Vec<Probe>, bool);

/// Measures `pairs` of `ranks` ranks or cores by `measure_pair`: the first one at all sizes, for
/// the profile, and the line of each.
fn measured(
    pairs: &[[usize; 2]],
    ranks: usize,
    names: impl Fn([usize; 2]) -> String,
    mut measure_pair: impl FnMut([usize; 2], &[Work], ProbeEffort, Part<'_>) -> Result<Probed>,
    options: &Calibration,
    mut progress: impl FnMut(usize, usize),
) -> Result<(Profile, Vec<PairLine>)> {
    let effort = ProbeEffort::new(options.quick);
    let steps = |effort: ProbeEffort| effort.batches * effort.sizes().len();
    let all_steps = steps(effort) + (pairs.len() - 1) * steps(OF_PAIR);
    let mut warnings = setup_warnings(options.quick);
    let with_bursts = |works: &[Work]| {
        let bursts = options.latency.then_some(Work::Burst);
        works.iter().copied().chain(bursts).collect::<Vec<_>>()
    };
    if !options.quick && !options.force {
        ensure_calm(|| {
            let measured = measure_pair(pairs[0], &[Work::Message], OF_PAIR, &mut |_, _| {});
            Ok(measured?.0)
        })?;
    }
    let works = with_bursts(&Work::ALL);
    let (probes, pinned) = measure_pair(pairs[0], &works, effort, &mut |done, of| {
        progress(steps(effort) * done / of.max(1), all_steps);
    })?;
    let fits = Fits::of(&probes)?;
    let noise = noise(&probes);
    warnings.extend(quality_warnings(
        &probes,
        noise,
        &fits,
        pinned,
        options.force,
    )?);
    let mut profile = Profile {
        machine: Machine::this(),
        date: profile::now(),
        inputs: if options.keep_inputs {
            "kept"
        } else {
            "rewritten"
        }
        .to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        alpha: fits.line.alpha,
        beta: fits.line.beta,
        latency: fits.line.latency,
        latency_error: fits.latency.map_or(0.0, |l| l.spread / l.time),
        eager: fits.latency.map_or(Eager::None, |l| Eager::UpTo(l.eager)),
        gamma: fits.gamma,
        gamma_copy: fits.gamma_copy,
        noise,
        pieces: fits.pieces(),
        warnings,
        ..Profile::from_json(r#"{"alpha": 0, "beta": 0}"#)?
    };
    profile.fill_points(&fits)?;
    let mut done = steps(effort);
    let lines = lines(pairs, &fits, |pair| {
        let works = with_bursts(&[Work::Message]);
        let measured = measure_pair(pair, &works, OF_PAIR, &mut |part, of| {
            progress(done + steps(OF_PAIR) * part / of.max(1), all_steps);
        });
        done += steps(OF_PAIR);
        let line = measured.and_then(|(probes, _)| Ok(meaningful_line(&probes)?.0));
        line.map_err(|e| Error::system(format!("{}: {e}", names(pair))))
    })?;
    profile.pairs = options.pairs.then(|| matrices(ranks, &lines, &fits));
    progress(all_steps, all_steps);
    Ok((profile, lines))
}

/// A probe of each of these operations and every size.
fn probes_of(works: &[Work], effort: ProbeEffort, pair: Pair) -> Result<Vec<Probe>> {
    let sizes = effort.sizes();
    let probe = |&work: &Work| {
        let measured = sizes.iter().filter(move |&&bytes| work.measures(bytes));
        measured.map(move |&bytes| Probe::new(work, bytes, pair))
    };
    works.iter().flat_map(probe).collect()
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
    let available = allowed_cores();
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
            0 => self.latency + first,
            n => self.latency + cost.transfer(0, 1, n),
        };
        let points = |measured: &[Measured], predicted: &dyn Fn(&Measured) -> f64| {
            let point = |m: &Measured| Point {
                bytes: m.bytes,
                time: m.scale,
                predicted: predicted(m),
                residual: (predicted(m) - m.scale) / m.scale,
            };
            measured.iter().map(point).collect()
        };
        self.points = points(&fits.message, &|m| message(m.bytes));
        self.combine_points = points(&fits.combine, &|m| {
            message(m.bytes) + cost.combine(1, m.bytes)
        });
        self.combine_local_points = points(&fits.combine_own, &|m| {
            m.scale - m.time + cost.combine_local(1, m.bytes)
        });
        self.copy_points = points(&fits.copy, &|m| cost.copy(0, m.bytes));
        (self.fit_error, self.fit_error_worst) = (fits.error.median, fits.error.worst);
        (self.line_error, self.line_error_worst) = (fits.line_error.median, fits.line_error.worst);
        Ok(())
    }
}

/// The effort for pairs other than the first.
const OF_PAIR: ProbeEffort = ProbeEffort::QUICK;
