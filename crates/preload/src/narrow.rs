//! Calls with counts of 64 bits for a library that has counts of 32 only.

use std::ffi::{c_int, c_void};

use crate::library::Word;

/// `MPI_ERR_COUNT`, of all interfaces.
pub(crate) const ERR_COUNT: c_int = 2;

/// An argument of a function.
pub(crate) trait Argument: Copy {
    type Narrow;

    /// The root, if this is one.
    fn root(self) -> Option<c_int> {
        None
    }

    /// The argument of the function with counts of 32 bits, if they have room for it; lists have
    /// `numbers` of them.
    ///
    /// # Safety
    /// Lists have as many numbers.
    unsafe fn narrow(self, numbers: usize) -> Option<Self::Narrow>;
}

/// What is passed in place of an argument.
pub(crate) trait Passed {
    type As;

    fn get(&self) -> Self::As;
}

/// Counts or displacements.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<c_int>);

impl Passed for Numbers {
    type As = *const c_int;

    fn get(&self) -> *const c_int {
        self.0.as_ptr()
    }
}

macro_rules! same {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            type Narrow = $type;

            unsafe fn narrow(self, _: usize) -> Option<$type> {
                Some(self)
            }
        }

        impl Passed for $type {
            type As = $type;

            fn get(&self) -> $type {
                *self
            }
        }
    )*};
}

same!(*const c_void, *mut c_void, Word);

impl Passed for c_int {
    type As = c_int;

    fn get(&self) -> c_int {
        *self
    }
}

impl Argument for c_int {
    type Narrow = c_int;

    fn root(self) -> Option<c_int> {
        Some(self)
    }

    unsafe fn narrow(self, _: usize) -> Option<c_int> {
        Some(self)
    }
}

impl Argument for i64 {
    type Narrow = c_int;

    unsafe fn narrow(self, _: usize) -> Option<c_int> {
        c_int::try_from(self).ok()
    }
}

macro_rules! lists {
    ($($type:ty),*) => {$(
        impl Argument for *const $type {
            type Narrow = Numbers;

            unsafe fn narrow(self, numbers: usize) -> Option<Numbers> {
                if numbers == 0 || self.is_null() {
                    return Some(Numbers(Vec::new()));
                }
                // SAFETY: guaranteed by the caller.
                let all = unsafe { std::slice::from_raw_parts(self, numbers) };
                let narrow = all.iter().map(|&n| c_int::try_from(n).ok());
                narrow.collect::<Option<_>>().map(Numbers)
            }
        }
    )*};
}

lists!(i64, isize);
