//! The synchronization primitives of the crate's sources, implemented with loom: atomics, fences,
//! and parking_lot's lock and condition variable. A canary can plant a [`Fault`] in them.

use std::cell::Cell;
use std::time::Instant;

use loom::sync::atomic::{self, Ordering};

/// A fault that a canary plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every release is relaxed.
    RelaxedReleases,
    /// Every acquire is relaxed.
    RelaxedAcquires,
    /// Fences do nothing.
    NoFences,
    /// Loads of a lane's state are relaxed; exchanges still acquire.
    RelaxedStateLoads,
    /// The sender counts the pieces that it has finished with a relaxed increment.
    RelaxedFinish,
    /// The receiver loads the number of finished pieces with a relaxed load.
    RelaxedFinishedLoad,
    /// The receiver does not wait for the sender's pieces.
    NoWaitForPieces,
    /// Both partners can claim the same pieces.
    SharedClaims,
    /// The receiver does not see that the sender poisoned its pieces.
    PoisonLost,
    /// The guards find no overlap between two lists of spans.
    NoOverlap,
    /// The guards find no overlap within one list of spans.
    NoSelfOverlap,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Plants a fault in all models that this test runs. A thread-local suffices, because loom runs all
/// threads of a model on the test's own thread.
pub(crate) fn plant(fault: Fault) {
    PLANTED.set(Some(fault));
}

pub(crate) fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// The ordering that remains of `order` with the planted fault.
fn weakened(order: Ordering) -> Ordering {
    match order {
        Ordering::Release if is_planted(Fault::RelaxedReleases) => Ordering::Relaxed,
        Ordering::Acquire if is_planted(Fault::RelaxedAcquires) => Ordering::Relaxed,
        order => order,
    }
}

/// Defines an atomic for which loom tries all orders of accesses.
///
/// To decide which other orders to try, loom 0.7 compares a store only with the last access to the
/// same atomic. If a thread loads and then stores, its load hides an earlier load by another
/// thread, and loom never tries the order in which that other load comes last. So every access is
/// preceded by a relaxed read-modify-write of a counter, which orders nothing for the program but
/// makes loom try all orders of accesses.
macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            real: atomic::$name,
            accesses: atomic::AtomicUsize,
        }

        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                $name {
                    real: atomic::$name::new(value),
                    accesses: atomic::AtomicUsize::new(0),
                }
            }

            fn next_access(&self) -> &atomic::$name {
                self.accesses.fetch_add(1, Ordering::Relaxed);
                &self.real
            }

            fn load_real(&self, order: Ordering) -> $value {
                self.next_access().load(weakened(order))
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.next_access().store(value, weakened(order));
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.next_access().swap(value, weakened(order))
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.next_access().compare_exchange(
                    current,
                    new,
                    weakened(success),
                    weakened(failure),
                )
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicUsize, usize);

impl AtomicBool {
    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.load_real(order)
    }
}

/// The sources use this type only for the state of a lane.
impl AtomicU32 {
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.load_real(match order {
            Ordering::Acquire if is_planted(Fault::RelaxedStateLoads) => Ordering::Relaxed,
            order => order,
        })
    }
}

/// Some faults concern one of the two counters of a message's pieces. The ordering tells which
/// counter is accessed: claims are relaxed, the count of finished pieces is released and acquired.
impl AtomicUsize {
    pub(crate) fn load(&self, order: Ordering) -> usize {
        match order {
            Ordering::Acquire if is_planted(Fault::NoWaitForPieces) => usize::MAX >> 2,
            Ordering::Acquire if is_planted(Fault::RelaxedFinishedLoad) => {
                self.load_real(Ordering::Relaxed)
            }
            order => self.load_real(order),
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
                self.next_access().fetch_add(value, Ordering::Relaxed)
            }
            Ordering::Release if is_planted(Fault::PoisonLost) => self
                .next_access()
                .fetch_add(value & (usize::MAX >> 2), order),
            order => self.next_access().fetch_add(value, weakened(order)),
        }
    }
}

/// A pointer that is stored at most once, so loom tries all orders without a counter of accesses.
#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(value: *mut T) -> Self {
        AtomicPtr(atomic::AtomicPtr::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        self.0.load(weakened(order))
    }

    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0
            .compare_exchange(current, new, weakened(success), weakened(failure))
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
    /// Never times out, so that a lost wake-up is a deadlock, which loom reports.
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

/// A word whose accesses are checked like those of a cell. The sources may use the result of
/// `guess` for a prefetch only, so a null pointer suffices.
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
