//! The synchronization primitives of runs, in one place: all that several ranks may write goes
//! through them. `tests/model` compiles the sources of transfers, the parker, the inbox and the
//! barrier against loom's primitives instead. In builds with debug assertions they can record who
//! writes which cache line (`recorded`), for `tests/threads/lines.rs`.

use std::ptr;

#[cfg(not(debug_assertions))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use std::sync::atomic::{Ordering, fence};

/// A flag by which a caller ends a run: no rank writes it.
pub(crate) type StopFlag = std::sync::Arc<std::sync::atomic::AtomicBool>;

pub(crate) use std::hint::spin_loop;
pub(crate) use std::thread::yield_now;

#[cfg(not(debug_assertions))]
pub(crate) use parking_lot::{Condvar, Mutex};

#[cfg(debug_assertions)]
pub(crate) use recorded::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(debug_assertions)]
pub(crate) use recorded::{Condvar, Mutex};

/// [`std::cell::UnsafeCell`] with the access functions of loom's.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        #[cfg(debug_assertions)]
        recorded::reads(self);
        f(self.0.get())
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        recorded::writes(self);
        f(self.0.get())
    }
}

/// A pointer that a protocol hands over like the contents of an [`UnsafeCell`], but that the other
/// side may also read earlier, as a guess. It is stored as a pointer, so the side that gets it may
/// access what it points to.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Word(AtomicPtr<()>);

impl Word {
    pub(crate) fn new() -> Self {
        Word(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn set(&self, value: *mut ()) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn get(&self) -> *mut () {
        self.0.load(Ordering::Relaxed)
    }

    /// Possibly the pointer that `get` would return. It may be used for a prefetch only.
    #[inline(always)]
    pub(crate) fn guess(&self) -> *mut () {
        self.get()
    }
}

#[cfg(debug_assertions)]
#[doc(hidden)]
pub(crate) mod recorded;
