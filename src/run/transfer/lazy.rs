//! Values shared by all ranks that are made on first use.

use std::ptr::null_mut;

use super::sync::{AtomicPtr, Ordering};

/// A value that the first caller of [`Lazy::get`] makes.
///
/// Unlike [`std::sync::OnceLock`] it is one word and never blocks: two threads that call `get` at
/// the same moment may both make a value, and one of the two is dropped. It is compiled with the
/// crate, so sanitizers see its synchronization.
#[derive(Debug)]
pub(crate) struct Lazy<T>(AtomicPtr<T>);

// SAFETY: it owns a `T`, as a `Box<T>` does.
unsafe impl<T: Send> Send for Lazy<T> {}

// SAFETY: it gives shared references to its `T` to all threads (`T: Sync`), and may drop the `T` on
// another thread than the one that made it (`T: Send`).
unsafe impl<T: Send + Sync> Sync for Lazy<T> {}

impl<T> Lazy<T> {
    pub(crate) fn new() -> Self {
        Lazy(AtomicPtr::new(null_mut()))
    }

    /// The value. If there is none yet, `make` makes it.
    #[inline]
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        let mut value = self.0.load(Ordering::Acquire);
        if value.is_null() {
            value = self.fill(make());
        }
        // SAFETY: once stored, the box stays allocated until `self` is dropped. The acquire load
        // (here or in `fill`) makes its contents visible.
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
                // SAFETY: `new` comes from `Box::into_raw` above, and was stored nowhere.
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
            // SAFETY: `fill` stored a pointer from `Box::into_raw`, and `&mut self` proves that no
            // reference to the value is left.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}
