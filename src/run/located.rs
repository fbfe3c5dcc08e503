//! Values with their places.

/// A value with the place where it stands, such as the rank that has it: for
/// [`Op::MINLOC`](super::Op::MINLOC) and [`Op::MAXLOC`](super::Op::MAXLOC). Its layout is that of
/// MPI's pairs of a value and an `int`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub index: i32,
}

impl<T: Copy + PartialEq> Located<T> {
    /// `self` if it `wins` or, of equal values, stands first; otherwise `other`.
    pub(super) fn first_if(self, other: Self, wins: bool) -> Self {
        if wins || (self.value == other.value && self.index <= other.index) {
            self
        } else {
            other
        }
    }
}
