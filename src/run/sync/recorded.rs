//! The primitives of builds with debug assertions: while [`record`] asks for it, they record which
//! bytes a thread reads and writes, and at which place of the code. They are as large as those that
//! they stand for, so the same values share a cache line. What the standard library, parking_lot
//! and crossbeam-channel do inside is not recorded; a lock counts as one write when it is taken and
//! one when it is released.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{self, Ordering};
use std::time::{Duration, Instant};

use crate::run::Team;
use crate::run::placement::Workers;
use crate::run::wait::TeamState;

/// That a thread reads or writes some bytes at one place of the code.
#[derive(Debug, Clone, Copy)]
pub struct RecordedAccess {
    /// Where the bytes start.
    pub address: usize,
    /// How many they are.
    pub bytes: usize,
    /// The code that reads or writes them.
    pub place: &'static Location<'static>,
    /// How often it writes them. An exchange that fails counts, since it needs the line as a write
    /// does.
    pub writes: u64,
}

/// By address and place.
type Log = HashMap<(usize, *const Location<'static>), RecordedAccess>;

/// Whether any thread has ever recorded something: most runs never look at their thread's log.
static RECORDS: atomic::AtomicBool = atomic::AtomicBool::new(false);

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// What each thread of `team` reads and writes while `run` runs.
pub fn record(team: &mut Team, run: impl FnOnce(&mut Team)) -> Vec<Vec<RecordedAccess>> {
    RECORDS.store(true, Ordering::Relaxed);
    team.run_on_all(&|_| LOG.set(Some(Log::new())));
    run(team);
    let threads = parking_lot::Mutex::new(vec![Vec::new(); team.threads()]);
    team.run_on_all(&|thread| {
        let log = LOG.take().into_iter().flatten();
        threads.lock()[thread] = log.map(|(_, access)| access).collect();
    });
    threads.into_inner()
}

/// Calls `touch` on each thread of `team` with its number.
pub fn on_all(team: &Team, touch: impl Fn(usize) + Sync) {
    team.run_on_all(&touch);
}

/// A team of `ranks` ranks on `threads` threads that runs as on `cores` cores, which this machine
/// need not have: therefore its ranks yield instead of spinning, and never block.
///
/// # Panics
/// If the threads cannot be started.
pub fn team(ranks: usize, threads: usize, cores: usize) -> Team {
    let mut team = Team::new(threads).expect("a team starts");
    let core_of: Vec<usize> = (0..threads).collect();
    team.state = TeamState::new(&core_of, 1, Vec::new());
    for core in &mut team.state.contention.cores {
        core.patience = Duration::MAX;
    }
    team.share_copies = cores == ranks;
    if threads < ranks {
        team.workers = Workers::Cores;
    }
    (team.ranks, team.cores) = (ranks, cores);
    team
}

#[inline]
fn note(address: usize, bytes: usize, place: &'static Location<'static>, writes: bool) {
    if RECORDS.load(Ordering::Relaxed) {
        log(address, bytes, place, writes);
    }
}

#[cold]
fn log(address: usize, bytes: usize, place: &'static Location<'static>, writes: bool) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        let access = log
            .entry((address, std::ptr::from_ref(place)))
            .or_insert(RecordedAccess {
                address,
                bytes,
                place,
                writes: 0,
            });
        access.bytes = access.bytes.max(bytes);
        access.writes += u64::from(writes);
    });
}

/// The calling thread reads `value`.
#[track_caller]
pub(crate) fn reads<T>(value: *const T) {
    note(value.addr(), size_of::<T>(), Location::caller(), false);
}

/// The calling thread writes `value`.
#[track_caller]
pub(crate) fn writes<T>(value: *const T) {
    wrote(value.cast(), size_of::<T>());
}

/// The calling thread writes `bytes` bytes from `start` on.
#[track_caller]
pub(crate) fn wrote(start: *const u8, bytes: usize) {
    note(start.addr(), bytes, Location::caller(), true);
}

macro_rules! atomic {
    ($name:ident$(<$parameter:ident>)?, $value:ty) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name$(<$parameter>)?(atomic::$name$(<$parameter>)?);

        #[allow(dead_code, reason = "not every type needs all of them")]
        impl$(<$parameter>)? $name$(<$parameter>)? {
            pub fn new(value: $value) -> Self {
                $name(atomic::$name::new(value))
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                reads(self);
                self.0.load(order)
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                writes(self);
                self.0.store(value, order);
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                writes(self);
                self.0.swap(value, order)
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                writes(self);
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
}

macro_rules! number {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        #[allow(dead_code, reason = "not every type needs it")]
        impl $name {
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                writes(self);
                self.0.fetch_add(value, order)
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicPtr<T>, *mut T);
number!(AtomicU32, u32);
number!(AtomicU64, u64);
number!(AtomicUsize, usize);

#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

#[derive(Debug)]
pub struct Guard<'m, T> {
    /// Dropped after the release is recorded.
    held: parking_lot::MutexGuard<'m, T>,
    place: &'static Location<'static>,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }

    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T> {
        writes(self);
        Guard {
            held: self.0.lock(),
            place: Location::caller(),
        }
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let lock = parking_lot::MutexGuard::mutex(&self.held);
        let address = std::ptr::from_ref(lock).addr();
        note(address, size_of_val(lock), self.place, true);
    }
}

#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// Releases the lock and takes it again.
    #[track_caller]
    pub fn wait_until<T>(
        &self,
        guard: &mut Guard<'_, T>,
        until: Instant,
    ) -> parking_lot::WaitTimeoutResult {
        writes(self);
        writes(parking_lot::MutexGuard::mutex(&guard.held));
        self.0.wait_until(&mut guard.held, until)
    }

    #[track_caller]
    pub fn notify_one(&self) {
        writes(self);
        self.0.notify_one();
    }
}
