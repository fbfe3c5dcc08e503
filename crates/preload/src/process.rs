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
/// Calls of which one is passed on and timed, where a report is wanted.
const CALLS_PER_SAMPLE: u64 = 16;
/// Bytes of the longest buffer that a communicator keeps between calls.
const MAX_KEPT_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) library: &'static Library,
    pub(crate) choices: Choices,
    /// If one is wanted.
    pub(crate) report: Option<Mutex<Report>>,
    /// Whether all processes want one.
    samples: bool,
    rank: usize,
    deadline: Duration,
    communicators: Mutex<Communicators>,
}

#[derive(Debug, Default)]
struct Communicators {
    /// By handle: the number of the communicator.
    numbers: HashMap<Word, u64>,
    /// In the order in which they were made, which is the same on all processes.
    all: BTreeMap<u64, Arc<Kept>>,
    /// That of the last call, with its handle: the next call is often on the same.
    last: Option<(Word, Arc<Kept>)>,
    made: u64,
    /// Of the attribute that tells when a communicator is freed.
    keyval: Option<c_int>,
}

/// What is kept for one communicator of the program.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) communicator: Mutex<Communicator>,
}

/// What a call on a communicator uses.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) group: OnAnyThread<Group>,
    /// In the order of their first calls.
    pub(crate) served: VecDeque<Served>,
    pub(crate) buffer: KeptBuffer,
    /// Calls in which no process knows the sizes of all blocks.
    pub(crate) irregular: Calls,
}

/// Calls of a shape, and what serves them.
#[derive(Debug)]
pub(crate) struct Served {
    shape: Shape,
    pub(crate) choice: Choice,
    pub(crate) calls: Calls,
}

/// What serves the calls of a shape.
#[derive(Debug)]
pub(crate) enum Choice {
    /// A schedule of this name.
    Schedule(String, OnAnyThread<Planned>),
    /// The library, for this reason.
    Library(Arc<str>),
}

/// The number of calls of a kind on a communicator, which is the same on all of its processes.
#[derive(Debug, Default)]
pub(crate) struct Calls(u64);

/// Memory that is kept between calls.
#[derive(Debug, Default)]
pub(crate) struct KeptBuffer(Vec<u128>);

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
        let report = Report::of_environment().map(Mutex::new);
        let found = world.and_then(|world| {
            let (digests, wanted) = (
                world.gather(digest)?,
                world.gather(report.is_some().into())?,
            );
            Ok((digests, wanted, world.rank()))
        });
        let (digests, wanted, rank) = match found {
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
                report,
                samples: !wanted.contains(&0),
                rank,
                deadline,
                communicators: Mutex::default(),
            }),
            (Err(_), None) => None,
        }
    }

    /// Reports, and frees what was kept: before the library ends.
    pub(crate) fn end(&self) {
        let (all, last) = {
            let mut communicators = self.communicators.lock();
            let all = std::mem::take(&mut communicators.all);
            (all, communicators.last.take())
        };
        drop(last);
        // In the order in which they were made: freeing is collective.
        all.into_values().for_each(drop);
        if let Some(report) = self.report.as_ref().filter(|_| self.rank == 0) {
            report.lock().write();
        }
    }

    /// What is kept for a communicator, if it was made before.
    pub(crate) fn known(&self, handle: Word) -> Option<Arc<Kept>> {
        let mut communicators = self.communicators.lock();
        if let Some((last, kept)) = &communicators.last
            && *last == handle
        {
            return Some(Arc::clone(kept));
        }
        let number = communicators.numbers.get(&handle)?;
        let kept = Arc::clone(communicators.all.get(number)?);
        communicators.last = Some((handle, Arc::clone(&kept)));
        Some(kept)
    }

    /// Counts a call; whether it is passed on to the library, so that the report has its time.
    pub(crate) fn is_sample(&self, calls: &mut Calls) -> bool {
        calls.0 += 1;
        self.samples && calls.0.is_multiple_of(CALLS_PER_SAMPLE)
    }

    /// What is kept for a communicator from now on, which has all of its processes call this.
    pub(crate) fn communicator(&self, handle: Word) -> Option<Arc<Kept>> {
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
        let made = Arc::new(Kept {
            rank: group.rank(),
            ranks: group.size(),
            communicator: Mutex::new(Communicator {
                group: OnAnyThread(group),
                served: VecDeque::new(),
                buffer: KeptBuffer::default(),
                irregular: Calls::default(),
            }),
        });
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
        let freed = (communicators.all.remove(&number), communicators.last.take());
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
    /// Which of [`Communicator::served`] has this shape: found at its first call.
    pub(crate) fn find(&mut self, process: &Process, shape: &Shape) -> usize {
        if let Some(known) = self.served.iter().position(|served| served.shape == *shape) {
            return known;
        }
        let choice = self.plan(process, shape);
        if self.served.len() >= MAX_SHAPES {
            self.served.pop_front();
        }
        self.served.push_back(Served {
            shape: shape.clone(),
            choice,
            calls: Calls::default(),
        });
        self.served.len() - 1
    }

    fn plan(&self, process: &Process, shape: &Shape) -> Choice {
        let group = &self.group.0;
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
        planned().unwrap_or_else(|why| Choice::Library(format!("the library: {why:#}").into()))
    }
}

impl KeptBuffer {
    /// Memory of at least `bytes` bytes, aligned for any element.
    pub(crate) fn bytes(&mut self, bytes: usize) -> &mut [u8] {
        let words = bytes.div_ceil(size_of::<u128>());
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        let (at, bytes) = (self.0.as_mut_ptr().cast(), size_of_val(&*self.0));
        // SAFETY: the same memory, of which every byte is initialized.
        unsafe { std::slice::from_raw_parts_mut(at, bytes) }
    }

    /// To be called after each use: what is too long is not kept.
    pub(crate) fn trim(&mut self) {
        if self.0.len() * size_of::<u128>() > MAX_KEPT_BYTES {
            self.0 = Vec::new();
        }
    }
}
