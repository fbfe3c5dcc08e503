//! Refuses profiles that mean nothing.

use anyhow::Result;
use oneport::ErrorKind;
use oneport_measure::{Point, Profile};

use crate::units::show_bytes;

/// Refuses a profile whose model is off by half where it was measured.
pub(crate) fn refuse_far_off(profile: &Profile) -> Result<()> {
    /// Largest part of a measured time by which the model may be off.
    const FAR_OFF: f64 = 0.5;
    let points = [
        ("a message", &profile.points),
        ("a message that is combined", &profile.combine_points),
    ];
    let points = points
        .iter()
        .flat_map(|(what, points)| points.iter().map(move |point| (what, point)));
    let off = |(_, point): &(_, &Point)| point.residual.abs();
    let worst = points.max_by(|a, b| off(a).total_cmp(&off(b)));
    let Some((what, point)) = worst.filter(|worst| off(worst) > FAR_OFF) else {
        return Ok(());
    };
    let reason = format!(
        "calibration refused: the model is off by {:.0}% for {what} of {}: stop what else is running and try again, or take the profile all the same with --force",
        100.0 * point.residual.abs(),
        show_bytes(point.bytes)
    );
    Err(oneport::Error::from(ErrorKind::System(reason)).into())
}
