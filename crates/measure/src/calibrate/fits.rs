//! Curves fitted to the measured times of messages, combinations and copies.

use super::super::fit::{self, Curve, Measured, median};
use super::super::probe::{Probe, Work};
use oneport::error::{Error, Result};
use oneport::machine::Pieces;

/// Local combining gets a cost of its own if it takes this many times as long as combining while
/// receiving.
const LOCAL_COMBINE_RATIO: f64 = 1.05;

/// Alpha and beta.
pub(super) type Line = (f64, f64);

/// The measured points and the curves fitted to them.
#[derive(Debug)]
pub(super) struct Fits {
    pub(super) message: Vec<Measured>,
    pub(super) combine: Vec<Measured>,
    pub(super) combine_own: Vec<Measured>,
    pub(super) copy: Vec<Measured>,
    pub(super) line: Line,
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
        let (line, line_error) = meaningful_line(&message)?;
        let transfer = fit::curve(&message, false).ok_or_else(too_few)?;
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
        let combining_own = fit::curve(&combine_own, true)
            .filter(|own| own.count() > 1 || own.first_line().1 > LOCAL_COMBINE_RATIO * gamma);
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
    pub(super) fn copy_error(&self) -> f64 {
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

    pub(super) fn pieces(&self) -> Option<Pieces> {
        let several = |curve: &Curve| (curve.count() > 1).then(|| curve.pieces());
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

pub(super) fn messages(probes: &[Probe]) -> Vec<Measured> {
    let messages = probes.iter().filter(|p| p.work == Work::Message);
    messages.map(|p| Measured::new(p.bytes, p.time())).collect()
}

/// Fits the time per byte, and a curve if it fits better.
fn rate(points: &[Measured]) -> (f64, Option<Curve>) {
    let line = fit::line(points, true);
    let rate = line.map_or(0.0, |line| line.first_line().1.max(0.0));
    (rate, fit::curve(points, true).filter(|c| c.count() > 1))
}

/// Fits the line through the times of messages; an error if its parameters are not positive.
pub(super) fn meaningful_line(message: &[Measured]) -> Result<(Line, fit::FitError)> {
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
