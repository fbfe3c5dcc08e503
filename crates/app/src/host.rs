//! What surrounds a command: the system, for a process of its own, or a program that calls it as a
//! function, keeps files in memory for it and takes what it says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oneport::run::{Element, Run};

use crate::ask::{Row, Value, Values};
use crate::stored::{Progress, StoredSchedule};

/// What a command finds and leaves in the memory of the program that calls it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// By name: `-` is standard input, others begin with [`MARK`].
    pub(crate) files: BTreeMap<String, String>,
    /// By name, as files: schedules that need not be read.
    pub(crate) schedules: BTreeMap<String, Arc<StoredSchedule>>,
    /// The command line that pages and pictures name, if it is not that of the arguments.
    pub(crate) command: Option<String>,
    /// Remarks that a process would print on standard error.
    pub(crate) notes: Vec<String>,
    /// What a command prints without `--json`, if it has that option and printed JSON.
    pub(crate) text: String,
    /// How far long work is.
    pub(crate) progress: Option<Arc<Progress>>,
    /// Ends long work.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Memory {
    /// Keeps files that options are given with their content, under the names of the options.
    pub(crate) fn keep(&mut self, rows: &[Row], values: &Values) {
        for (name, value) in values {
            let row = rows.iter().find(|row| row.is_called(name));
            let name = format!("{MARK}{}>", row.map_or(&**name, |row| row.name));
            match value {
                Value::Content(text) => drop(self.files.insert(name, text.clone())),
                Value::Schedule(stored) => drop(self.schedules.insert(name, Arc::clone(stored))),
                _ => {}
            }
        }
    }
}

/// The names of files in memory begin like this.
const MARK: char = '<';

/// The arguments of a command, and the memory of its caller if it is called as a function.
#[derive(Debug, Default)]
struct Host {
    arguments: Vec<OsString>,
    memory: Option<Memory>,
    /// What standard input and pipes had, which can be read once.
    once: BTreeMap<PathBuf, String>,
}

// One for each thread: several threads of a program may call commands at the same time.
thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

/// Begins a command; [`end`] returns the memory.
pub(crate) fn begin(arguments: Vec<OsString>, memory: Option<Memory>) {
    HOST.set(Host {
        arguments,
        memory,
        once: BTreeMap::new(),
    });
}

/// Ends the command of this thread.
pub(crate) fn end() -> Memory {
    HOST.take().memory.unwrap_or_default()
}

/// The arguments of the command, without its name.
pub(crate) fn arguments() -> Vec<OsString> {
    HOST.with_borrow(|host| host.arguments.clone())
}

/// Does something with the memory of the caller, if there is one.
fn in_memory<R>(act: impl FnOnce(&mut Memory) -> R) -> Option<R> {
    HOST.with_borrow_mut(|host| host.memory.as_mut().map(act))
}

/// Whether the command is called as a function.
pub(crate) fn is_called() -> bool {
    in_memory(|_| ()).is_some()
}

/// The command line that the caller's pages and pictures name.
pub(crate) fn command() -> Option<String> {
    in_memory(|memory| memory.command.clone()).flatten()
}

/// How far long work is, for a caller that wants to know.
pub(crate) fn progress() -> Option<Arc<Progress>> {
    in_memory(|memory| memory.progress.clone()).flatten()
}

/// Keeps what the command prints without `--json`, for a caller, who gets both.
pub(crate) fn keep_text<E>(text: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
    if !is_called() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    text(&mut bytes)?;
    in_memory(|memory| memory.text += &String::from_utf8_lossy(&bytes));
    Ok(())
}

/// Whether a path names a file in the caller's memory, which may not be there yet.
pub(crate) fn holds(path: &Path) -> bool {
    is_called() && path.to_string_lossy().starts_with(MARK)
}

/// Whether a schedule that was read from there has no file that a reader could look for.
pub(crate) fn is_unnamed(file: &str) -> bool {
    file == "standard input" || file.starts_with(MARK)
}

/// Keeps what a file had that can be read once.
pub(crate) fn keep(path: &Path, text: &str) {
    HOST.with_borrow_mut(|host| host.once.insert(path.to_owned(), text.to_owned()));
}

/// A file in the caller's memory, or what was [kept](keep) of another.
pub(crate) fn read(path: &Path) -> Option<String> {
    if let Some(text) = HOST.with_borrow(|host| host.once.get(path).cloned()) {
        return Some(text);
    }
    if let Some(stored) = schedule(path) {
        return Some(stored.schedule.to_json());
    }
    in_memory(|memory| memory.files.get(&*path.to_string_lossy()).cloned()).flatten()
}

/// A schedule in the caller's memory.
pub(crate) fn schedule(path: &Path) -> Option<Arc<StoredSchedule>> {
    in_memory(|memory| memory.schedules.get(&*path.to_string_lossy()).cloned()).flatten()
}

/// Keeps a file in the caller's memory, which [holds] it.
pub(crate) fn write(path: &Path, content: &[u8]) {
    let content = String::from_utf8_lossy(content).into_owned();
    let name = path.to_string_lossy().into_owned();
    in_memory(|memory| memory.files.insert(name, content));
}

/// Keeps a remark for the caller; `false` if there is none.
pub(crate) fn note(message: &str) -> bool {
    in_memory(|memory| memory.notes.push(message.to_owned())).is_some()
}

/// The flag by which the caller ends long work.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    in_memory(|memory| Arc::clone(&memory.stop))
}

/// The run, which the caller can end.
pub(crate) fn stoppable<T: Element>(run: Run<'_, T>) -> Run<'_, T> {
    match stop() {
        Some(stop) => run.stop(stop),
        None => run,
    }
}

/// The end of the work of a thread that `flag` stops, without a message.
pub(crate) fn end_if(flag: Option<&AtomicBool>) {
    if flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        std::panic::resume_unwind(Box::new("stopped"));
    }
}
