//! How far long work is, for whoever asked for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::caller::{Bar, Caller, Progress};

/// How far a piece of long work is. The working thread shows it: a separate thread might fail to
/// start under the system's limits.
#[derive(Debug)]
pub(crate) struct WorkBar {
    now: Progress,
    caller: Caller,
    /// What a person sees.
    bar: Option<Box<dyn Bar>>,
    /// What a program sees, unless it sees other work of which this is a part.
    told: Option<Arc<Progress>>,
}

impl WorkBar {
    /// Begins work of `length` units, which is shown in a form in the syntax of the crate
    /// `indicatif`.
    pub(crate) fn new(caller: &Caller, length: u64, form: &str) -> WorkBar {
        let told = caller.progress.clone();
        let terminal = caller.terminal.as_ref().filter(|_| !caller.is_silent());
        let now = Progress::default();
        now.of.store(length, Ordering::Relaxed);
        WorkBar {
            now,
            caller: caller.clone(),
            bar: terminal.map(|terminal| terminal.bar(form)),
            told: told.filter(|told| !told.told.swap(true, Ordering::Relaxed)),
        }
    }

    pub(crate) fn add(&self, more: u64) {
        self.now.done.fetch_add(more, Ordering::Relaxed);
        self.show();
    }

    pub(crate) fn set<N: TryInto<u64>>(&self, done: N, of: N) {
        let [done, of] = [done, of].map(|n| n.try_into().unwrap_or(u64::MAX));
        self.now.of.store(of, Ordering::Relaxed);
        self.now.done.store(done, Ordering::Relaxed);
        self.show();
    }

    /// Begins a part of the work with the given name and length; other parts may still go on.
    pub(crate) fn begin(&self, name: &str, length: u64) {
        self.now.of.fetch_add(length, Ordering::Relaxed);
        self.name(name);
    }

    pub(crate) fn name(&self, name: &str) {
        self.now.rename(name);
        self.show();
    }

    pub(crate) fn finish(&self) {
        self.bar.iter().for_each(|bar| bar.finish());
    }

    fn show(&self) {
        if self.caller.is_program() && self.caller.stop.load(Ordering::Relaxed) {
            // The end of the thread, without a message.
            std::panic::resume_unwind(Box::new("stopped"));
        }
        self.told.iter().for_each(|told| told.follow(&self.now));
        self.bar.iter().for_each(|bar| bar.show(&self.now));
    }
}

impl Drop for WorkBar {
    fn drop(&mut self) {
        if let Some(told) = &self.told {
            told.told.store(false, Ordering::Relaxed);
        }
    }
}
