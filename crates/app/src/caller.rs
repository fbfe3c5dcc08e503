//! Who asks: where what a command says goes while it works, and what it writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use oneport::run::{Element, Run};

/// What shows a person how far a command is, and how lines look there.
pub trait Terminal: Debug + Send + Sync {
    /// Shows a remark or an error, after a label such as `note`, at once.
    fn say(&self, label: &str, message: &str);

    /// Something that shows how far long work is. The form is that of the crate `indicatif`.
    fn bar(&self, form: &str) -> Box<dyn Bar>;

    /// A flag that is set when a signal asks for the end.
    fn stop(&self) -> Result<Arc<AtomicBool>>;

    /// Columns of a line, if there is a limit.
    fn columns(&self) -> Option<u16>;

    /// Whether lines may have colours.
    fn is_coloured(&self) -> bool;

    /// Whether a person reads the output, and no file or program.
    fn is_screen(&self) -> bool;
}

/// Shows how far long work is.
pub trait Bar: Debug + Send + Sync {
    /// Shows the progress so far.
    fn show(&self, progress: &Progress);

    /// The work is done.
    fn finish(&self);
}

/// How far long work is.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) done: AtomicU64,
    pub(crate) of: AtomicU64,
    name: Mutex<String>,
    /// Whether work tells a program: parts of it do not.
    pub(crate) told: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Units of work that are done, of how many (0: not known), and what is in work.
    pub fn get(&self) -> (u64, u64, String) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.done), of(&self.of), locked(&self.name).clone())
    }

    pub(crate) fn rename(&self, name: &str) {
        let mut own = locked(&self.name);
        if *own != name {
            name.clone_into(&mut own);
        }
    }

    pub(crate) fn follow(&self, other: &Progress) {
        let (done, of, name) = other.get();
        self.done.store(done, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
        self.rename(&name);
    }
}

/// Who asks a command: a person at a terminal, or a program.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The command line that pages, pictures and tables name as the one that made them.
    pub command: Arc<str>,
    /// Where a person sees what is said; `None` of a program, which has it in the answer.
    pub terminal: Option<Arc<dyn Terminal>>,
    /// Where a program sees how far long work is.
    pub progress: Option<Arc<Progress>>,
    /// Ends long work of a program: a search returns what it has found so far, all else unwinds the
    /// thread that asked, without a message.
    pub stop: Arc<AtomicBool>,
    heard: Arc<Heard>,
}

/// What a program has of a command.
#[derive(Debug, Default)]
struct Heard {
    notes: Mutex<Vec<String>>,
    /// What has been remarked.
    said: Mutex<BTreeSet<String>>,
    files: Mutex<BTreeMap<String, String>>,
    /// Whether another process of a launch speaks for this one.
    is_silent: AtomicBool,
}

/// The names of files in memory begin like this.
const MARK: char = '<';

impl Caller {
    pub(crate) fn is_program(&self) -> bool {
        self.terminal.is_none()
    }

    /// From now on this process says nothing and writes no files.
    pub(crate) fn silence(&self) {
        self.heard.is_silent.store(true, Ordering::Relaxed);
    }

    /// Whether another process of a launch speaks for this one.
    pub fn is_silent(&self) -> bool {
        self.heard.is_silent.load(Ordering::Relaxed)
    }

    /// Makes a remark, once, however many points of a sweep have it.
    pub fn note(&self, message: impl AsRef<str>) {
        let message = message.as_ref();
        if locked(&self.heard.said).insert(message.to_owned()) {
            self.say("note", message);
        }
    }

    pub(crate) fn notes(&self, messages: impl IntoIterator<Item = impl AsRef<str>>) {
        messages.into_iter().for_each(|message| self.note(message));
    }

    /// Says a line after a label such as `error`, so that it does not disturb the output.
    pub fn say(&self, label: &str, message: &str) {
        match &self.terminal {
            None => locked(&self.heard.notes).push(message.to_owned()),
            Some(terminal) if !self.is_silent() => terminal.say(label, message),
            Some(_) => {}
        }
    }

    /// The flag that ends long work.
    pub(crate) fn stop(&self) -> Result<Arc<AtomicBool>> {
        match &self.terminal {
            Some(terminal) => terminal.stop(),
            None => Ok(Arc::clone(&self.stop)),
        }
    }

    /// The run, which a program can end.
    pub(crate) fn stoppable<'a, T: Element>(&self, run: Run<'a, T>) -> Run<'a, T> {
        if self.is_program() {
            run.stop(Arc::clone(&self.stop))
        } else {
            run
        }
    }

    /// Columns of a line, if there is a limit.
    pub(crate) fn room(&self) -> Option<u16> {
        self.terminal.as_ref()?.columns()
    }

    /// Columns for text; 100 where there is no limit. Wider lines than 120 are hard to read.
    pub(crate) fn columns(&self) -> u16 {
        self.room().map_or(100, |room| room.clamp(60, 120))
    }

    /// Whether a path names a file in memory, which may not be there yet.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.is_program() && path.to_string_lossy().starts_with(MARK)
    }

    /// A file in memory.
    pub(crate) fn held(&self, path: &Path) -> Option<String> {
        locked(&self.heard.files)
            .get(&*path.to_string_lossy())
            .cloned()
    }

    /// Keeps a file in memory.
    pub(crate) fn keep(&self, path: &Path, content: &[u8]) {
        let content = String::from_utf8_lossy(content).into_owned();
        locked(&self.heard.files).insert(path.to_string_lossy().into_owned(), content);
    }

    /// What has been said since this was asked for, and the files in memory, which stay there.
    pub(crate) fn heard(&self) -> (Vec<String>, BTreeMap<String, String>) {
        let notes = std::mem::take(&mut *locked(&self.heard.notes));
        locked(&self.heard.said).clear();
        (notes, locked(&self.heard.files).clone())
    }
}
