//! Progress bar for long work, on standard error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::host;
use crate::output;
use crate::stored::Progress;

const MIN_DURATION: Duration = Duration::from_millis(300);

/// A progress bar that appears only if the work takes long, and only on a terminal. The working
/// thread draws it: a separate thread might fail to start under the system's limits.
#[derive(Debug)]
pub(crate) struct WorkBar {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
    /// Ends the work, if a program calls the command.
    stop: Option<Arc<AtomicBool>>,
    /// Where that program sees how far the work is.
    told: Option<Arc<Progress>>,
}

impl WorkBar {
    /// Creates a bar of `length` units. `template` is its format, in the syntax of the crate
    /// `indicatif`.
    pub(crate) fn new(length: u64, template: &str) -> WorkBar {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        WorkBar {
            bar,
            start: Instant::now(),
            shown: AtomicBool::new(host::is_called()),
            stop: host::stop(),
            told: host::progress().filter(|told| !told.told.swap(true, Ordering::Relaxed)),
        }
    }

    pub(crate) fn add(&self, more: u64) {
        if self.bar.position() == 0 {
            // The preparation before the first unit does not count for the estimate of the
            // remaining time.
            self.bar.reset_eta();
        }
        self.bar.inc(more);
        self.show();
    }

    pub(crate) fn set<N: TryInto<u64>>(&self, done: N, of: N) {
        self.bar.set_length(of.try_into().unwrap_or(u64::MAX));
        self.bar.set_position(done.try_into().unwrap_or(u64::MAX));
        self.show();
    }

    /// Begins a part of the work with the given name and length; other parts may still go on.
    pub(crate) fn begin(&self, name: &str, length: u64) {
        self.bar.inc_length(length);
        self.name(name);
    }

    pub(crate) fn name(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.show();
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        host::end_if(self.stop.as_deref());
        if let Some(told) = &self.told {
            told.set(&self.bar);
        }
        if !output::is_silent()
            && self.start.elapsed() >= MIN_DURATION
            && !self.shown.swap(true, Ordering::Relaxed)
        {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.tick();
        }
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        if let Some(told) = &self.told {
            told.told.store(false, Ordering::Relaxed);
        }
    }
}
