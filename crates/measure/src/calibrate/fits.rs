//! Curves fitted to the measured times of messages, combinations and copies.

use super::super::fit::{self, AtZero, Curve, Measured, median};
use super::super::probe::{BURST, Probe, Work};
use oneport::error::{Error, Result};
use oneport::machine::Pieces;

/// Local combining gets a cost of its own if it takes this many times as long as combining while
/// receiving.
const LOCAL_COMBINE_RATIO: f64 = 1.05;

/// A smaller share of a short message's time is no latency that can be told.
const MIN_LATENCY_SHARE: f64 = 0.1;
/// Sizes whose messages have the latency that is stated.
const LATENCY_BYTES: u64 = 1 << 10;

/// What a message takes: `latency + alpha + beta*n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) latency: f64,
}

/// The latency of short messages, by how much it differs in the median over their sizes, and up to
/// which size senders do not wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latency {
    pub(super) time: f64,
    pub(super) spread: f64,
    pub(super) eager: u64,
}

/// The measured points and the curves fitted to them.
#[derive(Debug)]
pub(super) struct Fits {
    pub(super) message: Vec<Measured>,
    pub(super) combine: Vec<Measured>,
    pub(super) combine_own: Vec<Measured>,
    pub(super) copy: Vec<Measured>,
    pub(super) line: Line,
    /// If bursts were measured.
    pub(super) latency: Option<Latency>,
    pub(super) line_error: fit::FitError,
    pub(super) transfer: Curve,
    pub(super) error: fit::FitError,
    pub(super) gamma: f64,
    pub(super) combining: Option<Curve>,
    pub(super) combining_own: Option<Curve>,
    pub(super) gamma_copy: f64,
    pub(super) copying: Option<Curve>,
}

impl Fits {
    pub(super) fn of(probes: &[Probe]) -> Result<Fits> {
        let times = |work: Work| {
            let probes = probes.iter().filter(move |p| p.work == work);
            probes.map(|p| (p.bytes, p.time()))
        };
        let message = messages(probes);
        let (line, line_error) = meaningful_line(probes)?;
        let transfer = fit::curve(&message, AtZero::Fitted).ok_or_else(too_few)?;
        let error = transfer.error(&message);
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
        let combining_own = fit::curve(&combine_own, AtZero::Nothing)
            .filter(|own| own.count() > 1 || own.first_line().1 > LOCAL_COMBINE_RATIO * gamma);
        let (gamma_copy, copying) = rate(&copy);
        Ok(Fits {
            message,
            combine,
            combine_own,
            copy,
            line,
            latency: latency(probes)?,
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
    pub(super) fn copy_error(&self) -> f64 {
        let predicted = |bytes: u64| match &self.copying {
            Some(curve) => curve.at(bytes),
            None => self.gamma_copy * bytes as f64,
        };
        let off = |m: &Measured| (predicted(m.bytes) / m.time - 1.0).abs();
        if self.copy.is_empty() {
            1.0
        } else {
            median(&mut self.copy.iter().map(off).collect::<Vec<_>>())
        }
    }

    pub(super) fn pieces(&self) -> Option<Pieces> {
        let several = |curve: &Curve| (curve.count() > 1).then(|| curve.pieces());
        let list = |curve: &Option<Curve>| curve.as_ref().and_then(several).unwrap_or_default();
        let mut transfer = several(&self.transfer).unwrap_or_default();
        for piece in &mut transfer {
            piece.alpha -= self.line.latency;
        }
        let pieces = Pieces {
            transfer,
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

fn messages(probes: &[Probe]) -> Vec<Measured> {
    let messages = probes.iter().filter(|p| p.work == Work::Message);
    messages.map(|p| Measured::new(p.bytes, p.time())).collect()
}

/// How far the best curve is off the times of messages, if there are enough to fit one.
pub(super) fn fit_of_messages(probes: &[Probe]) -> Option<fit::FitError> {
    let messages = messages(probes);
    Some(fit::curve(&messages, AtZero::Fitted)?.error(&messages))
}

/// Fits the time per byte, and a curve if it fits better.
fn rate(points: &[Measured]) -> (f64, Option<Curve>) {
    let line = fit::line(points, AtZero::Nothing);
    let rate = line.map_or(0.0, |line| line.first_line().1.max(0.0));
    (
        rate,
        fit::curve(points, AtZero::Nothing).filter(|c| c.count() > 1),
    )
}

/// The latency that bursts show, if there are any: half a ping-pong, which is `latency + busy`,
/// less the time that a message keeps its sender busy. A burst of `k` messages and the reply take
/// `(k+1)*busy + 2*latency`.
///
/// # Errors
/// If it cannot be told from the noise.
fn latency(probes: &[Probe]) -> Result<Option<Latency>> {
    let bursts = probes.iter().filter(|p| p.work == Work::Burst);
    let half = |bytes| messages(probes).into_iter().find(|m| m.bytes == bytes);
    let of = |burst: &Probe| {
        let half = half(burst.bytes)?.time;
        let busy = (burst.time() - 2.0 * half) / (BURST - 1) as f64;
        Some((burst.bytes, half - busy, half))
    };
    let all: Vec<_> = bursts.filter_map(of).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let short = || all.iter().filter(|one| one.0 <= LATENCY_BYTES);
    let of_short = |part: &dyn Fn(f64, f64) -> f64| {
        median(&mut short().map(|one| part(one.1, one.2)).collect::<Vec<_>>())
    };
    let time = of_short(&|latency, _| latency);
    let half = of_short(&|_, half| half);
    let spread = of_short(&|latency, _| (latency - time).abs());
    if !(time > MIN_LATENCY_SHARE * half && spread < time / 2.0) {
        return Err(Error::system(format!(
            "calibration refused: of {half:.0} ns the latency comes out as {time:.0} ns, {spread:.0} ns more or less by size: there is none here, or the machine is busy (calibrate without --latency)"
        )));
    }
    let eager = all.iter().take_while(|one| one.1 >= time / 2.0).last();
    let eager = eager.map_or(0, |one| one.0);
    Ok(Some(Latency {
        time,
        spread,
        eager,
    }))
}

/// Fits the line through the times of messages, less their latency if bursts were measured; an
/// error if its parameters are not positive.
pub(super) fn meaningful_line(probes: &[Probe]) -> Result<(Line, fit::FitError)> {
    let message = &messages(probes);
    let line = fit::line(message, AtZero::Fitted).ok_or_else(too_few)?;
    let latency = latency(probes)?.map_or(0.0, |latency| latency.time);
    let (alpha, beta) = line.first_line();
    let alpha = alpha - latency;
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
    let one = Line {
        alpha,
        beta,
        latency,
    };
    Ok((one, line.error(message)))
}

fn too_few() -> Error {
    Error::system("calibration refused: too few measurements to fit")
}
