//! Things that ranks share and that the first to need them makes.

use std::ptr::null_mut;

use super::sync::{AtomicPtr, Ordering};

/// A value that is made when first asked for, by whoever asks first.
///
/// Unlike [`std::sync::OnceLock`] it is one word, and nobody waits: two threads that ask at the
/// same moment may both make a value, and one of them is thrown away. Being compiled with the
/// crate, it is also understood by sanitizers.
#[derive(Debug)]
pub(crate) struct Lazy<T>(AtomicPtr<T>);

// SAFETY: it owns a `T` as a box does.
unsafe impl<T: Send> Send for Lazy<T> {}

// SAFETY: it gives shared references to its `T` to all threads, and may drop it on another thread
// than the one that made it.
unsafe impl<T: Send + Sync> Sync for Lazy<T> {}

impl<T> Lazy<T> {
    pub(crate) fn new() -> Self {
        Lazy(AtomicPtr::new(null_mut()))
    }

    /// The value; `make` makes it if nobody has.
    #[inline]
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        let mut value = self.0.load(Ordering::Acquire);
        if value.is_null() {
            value = self.fill(make());
        }
        // SAFETY: once stored, the box stays until `self` is dropped; acquired, its contents are
        // seen.
        unsafe { &*value }
    }

    #[cold]
    fn fill(&self, value: T) -> *mut T {
        let new = Box::into_raw(Box::new(value));
        match self
            .0
            .compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => new,
            Err(first) => {
                // SAFETY: made above, and stored nowhere.
                drop(unsafe { Box::from_raw(new) });
                first
            }
        }
    }
}

impl<T> Drop for Lazy<T> {
    fn drop(&mut self) {
        let value = self.0.load(Ordering::Acquire);
        if !value.is_null() {
            // SAFETY: stored by `fill`, and nobody has a reference any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}
