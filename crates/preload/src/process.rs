//! This process: its library, the files it was given, and what it keeps for each communicator.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, anyhow};
use oneport::internal::calls::{
    Combine, Datatype, Group, Intracommunicator, Moved, Part, Reduction,
};
use oneport::internal::numbers::index;
use oneport::{Kind, Schedule};
use parking_lot::Mutex;
use self_cell::self_cell;

use crate::call::{Arguments, Call};
use crate::choice::{Choices, Element, RULES, SCHEDULES, Shape};
use crate::describe::Described;
use crate::library::{Form, Library, Word};
use crate::memory::Side;
use crate::pieces::Pieces;
use crate::report::{REPORT, Report};

/// The longest wait of a call, in seconds; without it, calls wait as those of the library do.
const DEADLINE: &str = "ONEPORT_DEADLINE";

/// What is read of the environment.
const VARIABLES: [&str; 4] = [RULES, SCHEDULES, REPORT, DEADLINE];
/// What the command and the tests of MPI libraries read, which start programs with this library.
const OF_OTHERS: [&str; 3] = ["ONEPORT_MPI_LIB", "ONEPORT_MPI", "ONEPORT_MPI_NTH"];

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
    /// The number of communicators that the program has freed.
    freed: AtomicU64,
}

thread_local! {
    /// The communicator of the last call of this thread, since the next is often on the same one:
    /// its handle, how many had been freed, and what is kept for it. No lock is taken to find it,
    /// which would take longer than all else that is looked up in a call.
    static LAST: Cell<(Word, u64, *const Kept)> = const { Cell::new((0, 0, null())) };
}

#[derive(Debug, Default)]
struct Communicators {
    /// By handle: the number of the communicator.
    numbers: HashMap<Word, u64>,
    /// In the order in which they were made, which is the same on all processes.
    all: BTreeMap<u64, Box<Kept>>,
    made: u64,
    /// Of the attribute that tells when a communicator is freed.
    keyval: Option<c_int>,
}

/// What is kept for one communicator of the program.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) communicator: OneAtATime<RefCell<Communicator>>,
}

/// What a call on a communicator uses.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) group: Group,
    /// In the order of their first calls.
    pub(crate) served: VecDeque<Served>,
    /// The last call that was described.
    pub(crate) last: Option<Last>,
    pub(crate) buffer: KeptBuffer,
    /// Calls in which no process knows the sizes of all blocks.
    pub(crate) irregular: Calls,
}

/// A call, and what serves it.
#[derive(Debug)]
pub(crate) struct Last {
    kind: Kind,
    arguments: Arguments,
    pub(crate) described: Described,
    /// Of the input and the output: by which of the arguments it lies where it does, if calls with
    /// the same arguments but other addresses are the same calls elsewhere.
    places: Option<[usize; 2]>,
    /// Where its data are, if a schedule serves it.
    pub(crate) pieces: Pieces,
    /// Which of [`Communicator::served`] has the shape.
    pub(crate) found: usize,
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
    Schedule(Arc<str>, Planned),
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

/// What belongs to one communicator, and has values of the MPI library in it.
#[derive(Debug)]
pub(crate) struct OneAtATime<T>(pub(crate) T);

// SAFETY: such values are used only inside a collective call of the program on their communicator.
// The standard has a program make these one after another, whichever threads they are on: no two
// threads use one value at the same time. With MPI_THREAD_MULTIPLE the library takes calls from any
// thread, and otherwise the program itself makes its calls from the thread that the library takes.
unsafe impl<T> Send for OneAtATime<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OneAtATime<T> {}

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

/// Names that are likely to be meant for this library, which does not know them.
fn unknown_variables() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| {
        let mut known = VARIABLES.iter().chain(&OF_OTHERS);
        name.to_ascii_uppercase().starts_with("ONEPORT_") && !known.any(|known| known == name)
    })
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
            (Ok((choices, deadline)), None) => {
                for name in unknown_variables().filter(|_| rank == 0) {
                    let known = VARIABLES.join(", ");
                    eprintln!("note: {name} has no effect: liboneport_mpi.so reads {known}");
                }
                for kind in choices.named_twice().filter(|_| rank == 0) {
                    eprintln!("note: {kind}: {SCHEDULES} serves where no rule of {RULES} fits");
                }
                Some(Process {
                    library,
                    choices,
                    report,
                    samples: !wanted.contains(&0),
                    rank,
                    deadline,
                    communicators: Mutex::default(),
                    freed: AtomicU64::new(0),
                })
            }
            (Err(_), None) => None,
        }
    }

    /// Reports, and frees what was kept: before the library ends.
    pub(crate) fn end(&self) {
        self.freed.fetch_add(1, Ordering::Release);
        let all = std::mem::take(&mut self.communicators.lock().all);
        // In the order in which they were made: freeing is collective.
        all.into_values().for_each(drop);
        if let Some(report) = self.report.as_ref().filter(|_| self.rank == 0) {
            report.lock().write();
        }
    }

    /// What is kept for a communicator of a call, if it was made before.
    pub(crate) fn known(&self, handle: Word) -> Option<&Kept> {
        self.last(handle).or_else(|| {
            let communicators = self.communicators.lock();
            let number = communicators.numbers.get(&handle)?;
            let kept = &raw const **communicators.all.get(number)?;
            LAST.set((handle, self.freed.load(Ordering::Acquire), kept));
            // Not by `last`: another thread may have freed another communicator since.
            // SAFETY: as there; the lock has kept it until now.
            Some(unsafe { &*kept })
        })
    }

    /// The same, if it is that of the last call of this thread.
    #[inline]
    pub(crate) fn last(&self, handle: Word) -> Option<&Kept> {
        let (last, then, kept) = LAST.get();
        let is_last = last == handle && then == self.freed.load(Ordering::Acquire);
        if !is_last {
            return None;
        }
        // SAFETY: null, or it was there when so many had been freed, and the program does not free
        // the communicator of a call before the call ends.
        unsafe { kept.as_ref() }
    }

    /// Whether calls of a collective that are as the last one need no look at anything else: they
    /// may be served, and no report counts them.
    #[inline]
    pub(crate) fn repeats(&self, kind: Kind) -> bool {
        self.report.is_none() && self.choices.serve(kind)
    }

    /// Counts a call; whether it is passed on to the library, so that the report has its time.
    pub(crate) fn is_sample(&self, calls: &mut Calls) -> bool {
        calls.0 += 1;
        self.samples && calls.0.is_multiple_of(CALLS_PER_SAMPLE)
    }

    /// What is kept for a communicator from now on, which has all of its processes call this.
    pub(crate) fn communicator(&self, handle: Word) -> Option<&Kept> {
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
        let made = Box::new(Kept {
            rank: group.rank(),
            ranks: group.size(),
            communicator: OneAtATime(RefCell::new(Communicator {
                group,
                served: VecDeque::new(),
                last: None,
                buffer: KeptBuffer::default(),
                irregular: Calls::default(),
            })),
        });
        let mut communicators = self.communicators.lock();
        communicators.made += 1;
        let number = communicators.made;
        communicators.numbers.insert(handle, number);
        communicators.all.insert(number, made);
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
        self.known(handle)
    }

    fn forget(&self, number: u64) {
        let mut communicators = self.communicators.lock();
        communicators.numbers.retain(|_, other| *other != number);
        let freed = communicators.all.remove(&number);
        self.freed.fetch_add(1, Ordering::Release);
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
    /// Whether the last call was the same but for the addresses of data. It is this one then.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, call: &Call, library: &Library) -> bool {
        let Some(last) = &mut self.last else {
            return false;
        };
        let is_same = last.kind == call.kind && call.arguments.are_like(&last.arguments, library);
        let Some([from, to]) = last.places.filter(|_| is_same) else {
            return false;
        };
        if let Some(input) = &mut last.described.input {
            input.at = call.arguments.place(from);
        }
        if let Some(output) = &mut last.described.output {
            output.at = call.arguments.place(to);
        }
        true
    }

    /// Keeps a call as the last one. False, and it is not, if the library refuses it, or it has an
    /// operator of the program's own.
    pub(crate) fn begins(&mut self, process: &Process, call: &Call, described: Described) -> bool {
        let Some(found) = self.find(process, &described.shape) else {
            return false;
        };
        // The program may free a datatype, and have another one of the same handle then.
        let is_lasting = described
            .sides()
            .all(|side| side.datatype.form != Form::Derived);
        let place = |side: &Option<Side>| {
            side.as_ref()
                .map_or(Some(0), |side| call.arguments.which(side.at))
        };
        let places = place(&described.input).zip(place(&described.output));
        let pieces = match &self.served[found].choice {
            Choice::Schedule(_, planned) => {
                planned.with_dependent(|_, part| Pieces::of(&described, part.layout()))
            }
            Choice::Library(_) => Pieces::default(),
        };
        self.last = Some(Last {
            kind: call.kind,
            arguments: call.arguments,
            described,
            pieces,
            places: places.filter(|_| is_lasting).map(|(from, to)| [from, to]),
            found,
        });
        true
    }

    /// Whether the library has no objection to what moves and is combined.
    pub(crate) fn moves(&self, process: &Process, element: Element) -> bool {
        moved(process.library, &self.group, element).is_some()
    }

    /// Which of [`Communicator::served`] has this shape: found at its first call.
    fn find(&mut self, process: &Process, shape: &Shape) -> Option<usize> {
        let mut served = self.served.iter();
        if let Some(known) = served.position(|served| served.shape == *shape) {
            return Some(known);
        }
        let moved = moved(process.library, &self.group, shape.element)?;
        let choice = self.plan(process, shape, moved);
        if self.served.len() >= MAX_SHAPES {
            self.served.pop_front();
        }
        self.served.push_back(Served {
            shape: shape.clone(),
            choice,
            calls: Calls::default(),
        });
        Some(self.served.len() - 1)
    }

    fn plan(&self, process: &Process, shape: &Shape, moved: Moved) -> Choice {
        let group = &self.group;
        let element = match shape.element {
            Element::Byte => None,
            Element::Item(datatype, ..) => process.library.own.element_type(datatype),
        };
        let planned = || -> Result<(Choice, u64)> {
            let chosen = process.choices.schedule(shape, group.size(), element)?;
            let (name, schedule, digest) = chosen;
            let part = Planned::try_new(schedule, |schedule| group.part(schedule, moved));
            Ok((Choice::Schedule(name.into(), part?), digest))
        };
        let (choice, digest) = planned().unwrap_or_else(|why| {
            let why = format!("the library: {why:#}").into();
            (Choice::Library(why), 0)
        });
        if !process.choices.has_files(shape.kind) {
            return choice;
        }
        // A file may be another one on another host, or not be there.
        match group.gather(digest) {
            Ok(digests) => {
                if let Some(other) = digests.iter().position(|&digest| digest != digests[0]) {
                    self.differs(process, shape, other);
                }
            }
            Err(error) => process.library.own.end_job(&error.to_string()),
        }
        choice
    }

    /// Ends the job: process 0 speaks, and the others are ended by it.
    fn differs(&self, process: &Process, shape: &Shape, other: usize) -> ! {
        if self.group.rank() == 0 {
            process.library.own.end_job(&format!(
                "process {other} has another schedule for {} on {} processes than process 0, or one of them has none",
                shape.kind,
                self.group.size()
            ));
        }
        loop {
            std::thread::park();
        }
    }
}

/// What moves and is combined; `None` if the library refuses it, or does it alone. All processes of
/// the group call it.
fn moved(library: &'static Library, group: &Group, element: Element) -> Option<Moved> {
    let Element::Item(datatype, bytes, operator) = element else {
        return Some(Moved::Bytes);
    };
    let by_library = move |acc: &mut [u8], other: &[u8]| {
        let (from, into) = (other.as_ptr().cast(), acc.as_mut_ptr().cast());
        let n = c_int::try_from(acc.len() / bytes).unwrap_or_else(|_| {
            library
                .own
                .end_job("more items than MPI_Reduce_local counts")
        });
        // SAFETY: `n` items of the datatype on either side, which do not overlap.
        let code = unsafe { (library.functions.reduce_local)(from, into, n, datatype, operator) };
        if code != 0 {
            library
                .own
                .end_job("MPI_Reduce_local failed in a call of this program");
        }
    };
    let combine: Box<Combine> = match library.own.reduction(datatype, operator) {
        Reduction::Refused => return None,
        // An error of the call that combines would be one of another function, on the world.
        Reduction::Library if !group.reduces(datatype, operator) => return None,
        Reduction::Library => Box::new(by_library),
        Reduction::Own(own) => Box::new(move |acc, other| {
            if !own(acc, other) {
                by_library(acc, other);
            }
        }),
    };
    // SAFETY: a named datatype exists as long as the library.
    let datatype = unsafe { Datatype::new(datatype) };
    Some(Moved::Elements(datatype, bytes, combine))
}

impl KeptBuffer {
    /// Memory of at least `bytes` bytes, aligned for any element.
    pub(crate) fn bytes(&mut self, bytes: usize) -> &mut [u8] {
        let words = bytes.div_ceil(size_of::<u128>());
        if self.0.len() < words {
            // The system's pages, untouched: what no step uses takes no time.
            self.0 = vec![0; words];
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
