//! This process: its library, the files it was given, and what it keeps for each communicator.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, anyhow};
use oneport::Schedule;
use oneport::internal::calls::{Datatype, Group, Intracommunicator, Moved, Part};
use oneport::internal::numbers::index;
use parking_lot::Mutex;
use self_cell::self_cell;

use crate::choice::{Choices, Element, Shape};
use crate::library::{Library, Word};
use crate::report::Report;

/// The longest wait of a call, in seconds; without it, calls wait as those of the library do.
const DEADLINE: &str = "ONEPORT_DEADLINE";

/// Shapes that a communicator remembers; the first one is forgotten for another.
const MAX_SHAPES: usize = 64;
/// Bytes of the longest buffer that a communicator keeps between calls.
const MAX_KEPT_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) library: &'static Library,
    pub(crate) choices: Choices,
    /// If one is wanted.
    pub(crate) report: Option<Mutex<Report>>,
    rank: usize,
    deadline: Duration,
    communicators: Mutex<Communicators>,
}

#[derive(Debug, Default)]
struct Communicators {
    /// By handle: the number of the communicator.
    numbers: HashMap<Word, u64>,
    /// In the order in which they were made, which is the same on all processes.
    all: BTreeMap<u64, Arc<Mutex<Communicator>>>,
    made: u64,
    /// Of the attribute that tells when a communicator is freed.
    keyval: Option<c_int>,
}

/// What is kept for one communicator of the program.
#[derive(Debug)]
pub(crate) struct Communicator {
    group: OnAnyThread<Group>,
    served: HashMap<Shape, Arc<Mutex<Choice>>>,
    order: VecDeque<Shape>,
    buffer: Vec<u128>,
}

/// What serves the calls of a shape.
#[derive(Debug)]
pub(crate) enum Choice {
    /// A schedule of this name.
    Schedule(String, OnAnyThread<Planned>),
    /// The library, for this reason.
    Library(String),
}

self_cell! {
    /// A schedule, and this process's part in it.
    pub(crate) struct Planned {
        owner: Schedule,
        #[not_covariant]
        dependent: Part,
    }

    impl { Debug }
}

/// A value of the MPI library that threads use one after another.
#[derive(Debug)]
pub(crate) struct OnAnyThread<T>(pub(crate) T);

// SAFETY: such values are used under a lock, by one thread at a time, and only inside a call of the
// program: with MPI_THREAD_MULTIPLE the library takes calls from any thread, and otherwise the
// program itself makes its calls from the thread, or in the order, that the library takes.
unsafe impl<T> Send for OnAnyThread<T> {}

static PROCESS: OnceLock<Option<Process>> = OnceLock::new();

/// This process, once the program has initialized MPI by a function of this crate.
pub(crate) fn process() -> Option<&'static Process> {
    PROCESS.get()?.as_ref()
}

/// Sets this process up: all processes of the launch call it, after the library is initialized.
pub(crate) fn start(library: &'static Library) {
    let found = Process::new(library);
    let _ = PROCESS.set(found);
}

impl Process {
    fn new(library: &'static Library) -> Option<Process> {
        let given = Choices::of_environment().and_then(|choices| Ok((choices, deadline()?)));
        // Zero for an error.
        let digest = given
            .as_ref()
            .map_or(0, |(choices, _)| choices.digest() | 1);
        let world = Group::of(library.own, library.own.world(), Duration::MAX);
        let world = world.and_then(|world| Ok((world.gather(digest)?, world.rank())));
        let (digests, rank) = match world {
            Ok(found) => found,
            Err(error) => library.own.end_job(&error.to_string()),
        };
        // One process speaks; the others are ended by it.
        let first_wrong = digests.iter().position(|&digest| digest == 0);
        let differs = digests.iter().position(|&digest| digest != digests[0]);
        match (given, first_wrong.or(differs.map(|_| 0))) {
            (Err(error), Some(speaker)) if speaker == rank => {
                library.own.end_job(&format!("{error:#}"))
            }
            (Ok(_), Some(speaker)) if speaker == rank => {
                let other = differs.unwrap_or_default();
                library.own.end_job(&format!(
                    "process {other} has other rules or schedules than process 0"
                ))
            }
            (_, Some(_)) => loop {
                std::thread::park();
            },
            (Ok((choices, deadline)), None) => Some(Process {
                library,
                choices,
                report: Report::of_environment().map(Mutex::new),
                rank,
                deadline,
                communicators: Mutex::default(),
            }),
            (Err(_), None) => None,
        }
    }

    /// Reports, and frees what was kept: before the library ends.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut self.communicators.lock().all);
        // In the order in which they were made: freeing is collective.
        all.into_values().for_each(drop);
        if let Some(report) = self.report.as_ref().filter(|_| self.rank == 0) {
            report.lock().write();
        }
    }

    /// What is kept for a communicator, if it was made before.
    pub(crate) fn known(&self, handle: Word) -> Option<Arc<Mutex<Communicator>>> {
        let communicators = self.communicators.lock();
        let number = communicators.numbers.get(&handle)?;
        communicators.all.get(number).map(Arc::clone)
    }

    /// What is kept for a communicator from now on, which has all of its processes call this.
    pub(crate) fn communicator(&self, handle: Word) -> Option<Arc<Mutex<Communicator>>> {
        let mut communicators = self.communicators.lock();
        let keyval = match communicators.keyval {
            Some(keyval) => keyval,
            None => {
                let mut keyval: c_int = 0;
                // SAFETY: two functions of the standard's types, and the address of an integer.
                let code = unsafe {
                    (self.library.functions.comm_create_keyval)(
                        not_copied,
                        forget,
                        &raw mut keyval,
                        null_mut(),
                    )
                };
                if code != 0 {
                    return None;
                }
                *communicators.keyval.insert(keyval)
            }
        };
        // While a duplicate is made, other threads may use other communicators.
        drop(communicators);
        // SAFETY: the program passes an intracommunicator, which exists during the call.
        let of = unsafe { Intracommunicator::new(handle) };
        // Where it cannot be duplicated, the library's error handler speaks in its own call.
        let group = Group::of(self.library.own, of, self.deadline).ok()?;
        let made = Arc::new(Mutex::new(Communicator {
            group: OnAnyThread(group),
            served: HashMap::new(),
            order: VecDeque::new(),
            buffer: Vec::new(),
        }));
        let mut communicators = self.communicators.lock();
        communicators.made += 1;
        let number = communicators.made;
        communicators.numbers.insert(handle, number);
        communicators.all.insert(number, Arc::clone(&made));
        drop(communicators);
        // SAFETY: the communicator exists, and the attribute is a number.
        let code = unsafe {
            (self.library.functions.comm_set_attr)(
                handle,
                keyval,
                std::ptr::without_provenance_mut(index(number)),
            )
        };
        if code != 0 {
            self.library.own.end_job("MPI_Comm_set_attr failed");
        }
        Some(made)
    }

    fn forget(&self, number: u64) {
        let mut communicators = self.communicators.lock();
        communicators.numbers.retain(|_, other| *other != number);
        let freed = communicators.all.remove(&number);
        // Its duplicate is freed without the lock.
        drop(communicators);
        drop(freed);
    }
}

/// A duplicate of a communicator has a duplicate of its own.
unsafe extern "C" fn not_copied(
    _: Word,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library passes the address of an integer.
    unsafe { *flag = 0 };
    0
}

/// Called by the library when a communicator is freed.
unsafe extern "C" fn forget(_: Word, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
    if let Some(process) = process() {
        process.forget(value.addr() as u64);
    }
    0
}

fn deadline() -> Result<Duration> {
    let given = std::env::var(DEADLINE).ok().filter(|text| !text.is_empty());
    let Some(text) = given else {
        return Ok(Duration::MAX);
    };
    let seconds = text.trim_end_matches('s').parse::<f64>().ok();
    let seconds = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| anyhow!("{DEADLINE}: '{text}' is not a number of seconds"))
}

impl Communicator {
    /// Its processes.
    pub(crate) fn group(&self) -> &Group {
        &self.group.0
    }

    /// What serves the calls of a shape: found at its first call.
    pub(crate) fn choice(&mut self, process: &Process, shape: &Shape) -> Arc<Mutex<Choice>> {
        if let Some(known) = self.served.get(shape) {
            return Arc::clone(known);
        }
        let found = Arc::new(Mutex::new(self.plan(process, shape)));
        if self.order.len() >= MAX_SHAPES
            && let Some(first) = self.order.pop_front()
        {
            self.served.remove(&first);
        }
        self.order.push_back(shape.clone());
        self.served.insert(shape.clone(), Arc::clone(&found));
        found
    }

    fn plan(&self, process: &Process, shape: &Shape) -> Choice {
        let group = self.group();
        let (element, moved) = match shape.element {
            Element::Byte => (None, Moved::Bytes),
            Element::Item(datatype, bytes) => {
                let element = process.library.own.element_type(datatype);
                // SAFETY: a named datatype exists as long as the library.
                let datatype = unsafe { Datatype::new(datatype) };
                (element, Moved::Elements(datatype, bytes))
            }
        };
        let planned = || -> Result<Choice> {
            let (name, schedule) = process.choices.schedule(shape, group.size(), element)?;
            let part = Planned::try_new(schedule, |schedule| group.part(schedule, moved));
            Ok(Choice::Schedule(name, OnAnyThread(part?)))
        };
        planned().unwrap_or_else(|why| Choice::Library(format!("{why:#}")))
    }

    /// Memory for a buffer of `bytes` bytes, aligned for any element.
    pub(crate) fn take_buffer(&mut self, bytes: usize) -> Vec<u128> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let words = bytes.div_ceil(size_of::<u128>());
        if buffer.len() < words {
            buffer.resize(words, 0);
        }
        buffer
    }

    pub(crate) fn keep_buffer(&mut self, buffer: Vec<u128>) {
        if buffer.len() * size_of::<u128>() <= MAX_KEPT_BYTES {
            self.buffer = buffer;
        }
    }
}

/// The bytes of such memory.
pub(crate) fn bytes_of(buffer: &mut [u128]) -> &mut [u8] {
    let (at, bytes) = (buffer.as_mut_ptr().cast(), size_of_val(buffer));
    // SAFETY: the same memory, of which every byte is initialized.
    unsafe { std::slice::from_raw_parts_mut(at, bytes) }
}
