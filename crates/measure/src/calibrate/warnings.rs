//! Warnings about the conditions and the quality of a calibration.

use std::time::Duration;

use super::super::fit::{FAR_OFF, FitError, median};
use super::super::probe::Probe;
use super::fits::{Fits, fit_of_messages};
use oneport::error::{Error, Result};
use oneport::run::allowed_cores;
use oneport_pictures::svg::{bytes as show_bytes, counted};

/// A fit with a larger median relative error is refused.
pub(super) const MAX_ERROR: f64 = 0.25;
/// Samples of one size that differ by more than this, in the median over the sizes, are too noisy
/// to fit.
const MAX_NOISE: f64 = 3.0;
/// Noise, or change between the first and the last batch, that causes a warning.
const NOISY: f64 = 0.1;

/// Warnings that need no measurement.
pub(super) fn setup_warnings(quick: bool) -> Vec<String> {
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
    warnings.extend(load_warning(None));
    warnings
}

/// A warning, before anything is measured, if other programs keep busy so many cores, or those of
/// this process.
pub fn load_warning(cores: Option<usize>) -> Option<String> {
    let cores = cores.unwrap_or_else(|| allowed_cores().len()).max(1);
    let room = cores as f64 - 1.5;
    let load = load_average().filter(|&load| load > room)?;
    Some(format!(
        "other programs are running (load average {load:.1} on {}): they compete for the cores that are measured",
        counted(cores, "core")
    ))
}

/// Runnable tasks, averaged over the last minute, if the system reports them.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Refuses to measure where other programs keep as many cores busy as the system has, which a look
/// at the times alone may miss for minutes. `beside` is how many tasks of them run, if that is
/// known: the system counts all, wherever they run.
pub(super) fn ensure_idle_cores(beside: Option<f64>) -> Result<()> {
    let cores = system_cores().unwrap_or_else(|| allowed_cores().len());
    match beside {
        Some(running) if running > cores as f64 - 0.5 => Err(Error::system(format!(
            "calibration refused: other programs keep the {} busy ({running:.1} run, in the mean over a moment): stop them and try again",
            counted(cores, "core")
        ))),
        _ => Ok(()),
    }
}

/// How many cores the system has, whichever of them this process may use.
fn system_cores() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let is_core = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|n| !n.starts_with(' '))
    };
    Some(text.lines().filter(is_core).count()).filter(|&cores| cores > 0)
}

/// How many tasks run, or could, besides this one, in the mean over a fifth of a second, if the
/// system reports them.
pub(super) fn running_beside() -> Option<f64> {
    const LOOKS: u32 = 20;
    let mut sum = 0.0;
    for _ in 0..LOOKS {
        std::thread::sleep(Duration::from_millis(10));
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        let running = text.split_whitespace().nth(3)?.split('/').next()?;
        sum += running.parse::<f64>().ok()? - 1.0;
    }
    Some(sum / f64::from(LOOKS))
}

pub(super) fn noise(probes: &[Probe]) -> f64 {
    median(&mut probes.iter().map(Probe::noise).collect::<Vec<_>>())
}

/// What is wrong with measurements that are too noisy to fit.
fn too_noisy(noise: f64) -> Option<String> {
    (noise > MAX_NOISE).then(|| {
        format!(
            "samples of one size differ by {:.0}% in the median: stop what else is running and try again",
            100.0 * noise
        )
    })
}

/// Refuses a machine that is too busy at a first look: by the noise of its messages, or because no
/// curve fits them. One look may be disturbed, so a second one decides.
pub(super) fn ensure_calm(mut look: impl FnMut() -> Result<Vec<Probe>>) -> Result<()> {
    if too_busy(&look()?).is_none() {
        return Ok(());
    }
    too_busy(&look()?).map_or(Ok(()), |reason| {
        Err(Error::system(format!(
            "calibration refused at the first look: {reason}"
        )))
    })
}

fn too_busy(probes: &[Probe]) -> Option<String> {
    let far_off = |error: FitError| {
        let off = [
            (error.median, MAX_ERROR, "the median"),
            (error.worst, FAR_OFF, "one size"),
        ];
        let (off, _, at) = off.into_iter().find(|(off, max, _)| off > max)?;
        Some(format!(
            "the best fit to messages is off by {:.0}% at {at}: stop what else is running and try again",
            100.0 * off
        ))
    };
    too_noisy(noise(probes)).or_else(|| fit_of_messages(probes).and_then(far_off))
}

/// Warnings about the quality of the measurements.
///
/// # Errors
/// If the measurements are too noisy, or the model does not fit, unless they are taken by `force`.
pub(super) fn quality_warnings(
    probes: &[Probe],
    noise: f64,
    fits: &Fits,
    pinned: bool,
    force: bool,
) -> Result<Vec<String>> {
    let percent = |x: f64| format!("{:.0}%", 100.0 * x);
    let mut warnings = Vec::new();
    if fits.error.median > MAX_ERROR {
        warnings.push(format!(
            "the best fit is off by {} in the median, more than {}; is the machine busy?",
            percent(fits.error.median),
            percent(MAX_ERROR)
        ));
    }
    warnings.extend(too_noisy(noise));
    if let Some(reason) = warnings.first().filter(|_| !force) {
        return Err(Error::system(format!("calibration refused: {reason}")));
    }
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
        .filter_map(|p| Some(p.medians.last()? / p.medians.first().filter(|&&t| t > 0.0)? - 1.0))
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
            "the fit is off by {} for a message of {}, {}: look at the points",
            percent(off.abs()),
            show_bytes(bytes),
            if off < 0.0 { "too short" } else { "too long" }
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
