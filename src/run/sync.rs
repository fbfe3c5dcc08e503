//! What the transfer protocol, the bell and the barrier are written with, in one place, so that a
//! model checker can stand in for it: `tests/model` compiles the same sources against loom.

use std::ptr;

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence,
};

pub(crate) use std::hint::spin_loop;
pub(crate) use std::thread::yield_now;

pub(crate) use parking_lot::{Condvar, Mutex};

/// [`std::cell::UnsafeCell`] with the access functions that loom's has.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A pointer that is handed over like the contents of an [`UnsafeCell`], by something else, but at
/// which anybody may guess before that. It is stored as a pointer, so whoever gets it may access
/// what it points to.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Word(AtomicPtr<()>);

impl Word {
    /// Points to nothing.
    pub(crate) fn new() -> Self {
        Word(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: *mut ()) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> *mut () {
        self.0.load(Ordering::Relaxed)
    }

    /// What `get` may return: good for hints to the machine, and for nothing else.
    #[inline(always)]
    pub(crate) fn guess(&self) -> *mut () {
        self.get()
    }
}
