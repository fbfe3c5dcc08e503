//! Progress bar of a sweep, on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use oneport_measure::tune::Progress;

use crate::output;
use crate::units::show_bytes;

/// A bar over the time budget; hidden if standard error is not a terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(budget: Duration) -> Bar {
        let millis = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let target = match output::is_silent() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        };
        let bar = ProgressBar::with_draw_target(Some(millis), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
            bar.set_style(style);
        }
        Bar(bar)
    }

    pub(super) fn show(&self, progress: &Progress<'_>) {
        if self.0.is_hidden() {
            return;
        }
        self.0
            .set_position(u64::try_from(progress.spent.as_millis()).unwrap_or(u64::MAX));
        self.0.set_message(format!(
            "{} of {} searched, {} measured, at most {} left: {} {}, segment {}",
            progress.done,
            progress.points,
            progress.measured,
            time_left(progress),
            show_bytes(progress.bytes),
            progress.algorithm,
            show_bytes(progress.segment),
        ));
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

fn time_left(progress: &Progress<'_>) -> String {
    let seconds = progress.budget.saturating_sub(progress.spent).as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}
