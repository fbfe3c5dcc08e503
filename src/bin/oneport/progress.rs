//! Progress of long work, on standard error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less shows no progress.
const PATIENCE: Duration = Duration::from_millis(300);

/// A progress bar that shows up only when the work takes long, and only on a terminal. It is drawn
/// by who works, not by a thread of its own, which might not start under the system's limits.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

impl Progress {
    /// `template` is what the bar shows, in the form of the crate `indicatif`.
    pub(crate) fn new(length: u64, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress {
            bar,
            start: Instant::now(),
            shown: AtomicBool::new(false),
        }
    }

    /// So much more has been done.
    pub(crate) fn add(&self, more: u64) {
        if self.bar.position() == 0 {
            // What came before says nothing about the time that is left.
            self.bar.reset_eta();
        }
        self.bar.inc(more);
        self.show();
    }

    /// Begins a part of the work, `length` long and called `name`.
    pub(crate) fn begin(&self, name: &'static str, length: u64) {
        self.bar.set_length(length);
        self.bar.set_position(0);
        self.name(name);
    }

    /// What is being done now.
    pub(crate) fn name(&self, name: &'static str) {
        self.bar.set_message(name);
        self.show();
    }

    /// Removes it from the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        if self.start.elapsed() >= PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.tick();
        }
    }
}
