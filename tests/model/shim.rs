//! What the crate's sources are written with, on loom: atomics, and parking_lot's lock and condition variable.

use std::time::Instant;

use loom::sync::atomic::{self, Ordering};

/// An atomic whose accesses all take turns.
///
/// To find out which other orders to try, loom 0.7 compares a store with the last access to the same atomic only. A thread that
/// loads and then stores therefore hides an earlier load by another thread, and the order in which that load comes last is never
/// tried. Taking turns by a relaxed read-modify-write orders nothing for the program, but has loom try all orders of accesses.
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

            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.on_turn().load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.on_turn().store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.on_turn().swap(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.on_turn()
                    .compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicUsize, usize);

impl AtomicUsize {
    pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        self.on_turn().fetch_add(value, order)
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

pub(crate) use loom::sync::atomic::fence;

/// No fence at all, for a canary.
pub(crate) fn no_fence(_: Ordering) {}

/// A word whose accesses are checked like a cell's. What a guess returns must not matter, so it returns nothing.
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
