//! What the crate's sources are written with, on loom: atomics, and parking_lot's lock and
//! condition variable. Any of it can be made to fail, for a canary.

use std::cell::Cell;
use std::time::Instant;

use loom::sync::atomic::{self, Ordering};

/// A fault that a canary plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No release orders anything.
    RelaxedReleases,
    /// No acquire orders anything.
    RelaxedAcquires,
    /// There are no fences.
    NoFences,
    /// A load of a lane's state does not acquire; an exchange does.
    RelaxedLooks,
    /// The sender does not release the pieces that it has copied.
    RelaxedFinish,
    /// The receiver does not acquire them.
    RelaxedFinished,
    /// The receiver does not wait for them.
    NobodyAwaited,
    /// Both partners may claim the same pieces.
    SharedClaims,
    /// The receiver does not hear of pieces that the sender spoilt.
    SpoiltUnsaid,
    /// Spans overlap no others.
    NoOverlap,
    /// The spans of a message do not overlap.
    NoSelfOverlap,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Plants a fault in all models that this test runs. Loom runs them on the test's own thread.
pub(crate) fn plant(fault: Fault) {
    PLANTED.set(Some(fault));
}

pub(crate) fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// What is left of an ordering.
fn left_of(order: Ordering) -> Ordering {
    match order {
        Ordering::Release if is_planted(Fault::RelaxedReleases) => Ordering::Relaxed,
        Ordering::Acquire if is_planted(Fault::RelaxedAcquires) => Ordering::Relaxed,
        order => order,
    }
}

/// An atomic whose accesses all take turns.
///
/// To find out which other orders to try, loom 0.7 compares a store with the last access to the
/// same atomic only. A thread that loads and then stores therefore hides an earlier load by another
/// thread, and the order in which that load comes last is never tried. Taking turns by a relaxed
/// read-modify-write orders nothing for the program, but has loom try all orders of accesses.
macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            real: atomic::$name,
            turn: atomic::AtomicUsize,
        }

        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                $name {
                    real: atomic::$name::new(value),
                    turn: atomic::AtomicUsize::new(0),
                }
            }

            fn on_turn(&self) -> &atomic::$name {
                self.turn.fetch_add(1, Ordering::Relaxed);
                &self.real
            }

            fn load_as_written(&self, order: Ordering) -> $value {
                self.on_turn().load(left_of(order))
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.on_turn().store(value, left_of(order));
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.on_turn().swap(value, left_of(order))
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.on_turn()
                    .compare_exchange(current, new, left_of(success), left_of(failure))
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicUsize, usize);

impl AtomicBool {
    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.load_as_written(order)
    }
}

/// A lane's state.
impl AtomicU32 {
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.load_as_written(match order {
            Ordering::Acquire if is_planted(Fault::RelaxedLooks) => Ordering::Relaxed,
            order => order,
        })
    }
}

/// The pieces of a message: those claimed without an ordering, those finished with one.
impl AtomicUsize {
    pub(crate) fn load(&self, order: Ordering) -> usize {
        match order {
            Ordering::Acquire if is_planted(Fault::NobodyAwaited) => usize::MAX >> 2,
            Ordering::Acquire if is_planted(Fault::RelaxedFinished) => {
                self.load_as_written(Ordering::Relaxed)
            }
            order => self.load_as_written(order),
        }
    }

    pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        match order {
            Ordering::Relaxed if is_planted(Fault::SharedClaims) => {
                let before = self.load(order);
                self.store(before + value, order);
                before
            }
            Ordering::Release if is_planted(Fault::RelaxedFinish) => {
                self.on_turn().fetch_add(value, Ordering::Relaxed)
            }
            Ordering::Release if is_planted(Fault::SpoiltUnsaid) => {
                self.on_turn().fetch_add(value & (usize::MAX >> 2), order)
            }
            order => self.on_turn().fetch_add(value, left_of(order)),
        }
    }
}

/// A pointer, without turns: nobody stores it twice.
#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(value: *mut T) -> Self {
        AtomicPtr(atomic::AtomicPtr::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        self.0.load(left_of(order))
    }

    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0
            .compare_exchange(current, new, left_of(success), left_of(failure))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

pub(crate) struct Guard<'m, T>(Option<loom::sync::MutexGuard<'m, T>>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard(self.0.lock().ok())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

pub(crate) struct TimedOut;

impl TimedOut {
    pub(crate) fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    /// Never times out: a lost wake-up is a deadlock then.
    pub(crate) fn wait_until<T>(&self, guard: &mut Guard<'_, T>, _: Instant) -> TimedOut {
        guard.0 = guard.0.take().and_then(|g| self.0.wait(g).ok());
        TimedOut
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
}

pub(crate) fn fence(order: Ordering) {
    if !is_planted(Fault::NoFences) {
        atomic::fence(order);
    }
}

/// A word whose accesses are checked like a cell's. What a guess returns must not matter, so it
/// returns nothing.
pub(crate) struct Word(loom::cell::UnsafeCell<*mut ()>);

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Word")
    }
}

#[allow(unsafe_code)]
impl Word {
    pub(crate) fn new() -> Self {
        Word(loom::cell::UnsafeCell::new(std::ptr::null_mut()))
    }

    pub(crate) fn set(&self, value: *mut ()) {
        // SAFETY: loom reports accesses that are not ordered.
        self.0.with_mut(|p| unsafe { *p = value });
    }

    pub(crate) fn get(&self) -> *mut () {
        // SAFETY: as above.
        self.0.with(|p| unsafe { *p })
    }

    pub(crate) fn guess(&self) -> *mut () {
        std::ptr::null_mut()
    }
}
