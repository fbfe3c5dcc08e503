//! What is left of the element type where bytes are moved: its size, and how values are combined.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;

use super::protocol::INLINE_BYTES;
use crate::run::element::{Element, ElementType};
use crate::run::operator::Operator;
use crate::schedule::Order;

/// An element type, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elements {
    id: TypeId,
    /// Bytes of one element, at least 1.
    pub(crate) bytes: usize,
    /// The alignment that combining needs.
    pub(super) align: usize,
    /// The longest message that travels in its lane, in bytes. Lanes are read as initialized words,
    /// so it is 0 for types that may have padding: see [`Element`].
    pub(crate) max_inline_bytes: usize,
}

impl Elements {
    pub(crate) fn of<T: Element>() -> Elements {
        const {
            assert!(size_of::<T>() > 0, "an element has at least one byte");
            assert!(
                align_of::<T>() <= 8,
                "elements are aligned to at most 8 bytes"
            );
        }
        let is_plain = ElementType::of::<T>().is_some();
        Elements {
            id: TypeId::of::<T>(),
            bytes: size_of::<T>(),
            align: align_of::<T>(),
            max_inline_bytes: if is_plain { INLINE_BYTES } else { 0 },
        }
    }

    /// Elements of `bytes` bytes, at least 1, of a type that only an [`Opaque`] operator knows.
    #[cfg(feature = "mpi")]
    pub(crate) fn opaque(bytes: usize) -> Elements {
        Elements {
            id: TypeId::of::<Opaque<'static>>(),
            bytes,
            align: 1,
            max_inline_bytes: INLINE_BYTES,
        }
    }

    /// Whether every byte of an element is initialized.
    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.max_inline_bytes > 0
    }
}

/// A rank's buffer, whose element type is a value.
#[derive(Debug)]
pub(crate) struct Buffer<'b> {
    pub(super) base: *mut u8,
    pub(super) len: usize,
    pub(super) elements: Elements,
    borrowed: PhantomData<&'b mut [u8]>,
}

impl<'b> Buffer<'b> {
    pub(crate) fn of<T: Element>(buffer: &'b mut [T]) -> Self {
        Buffer {
            base: buffer.as_mut_ptr().cast(),
            len: buffer.len(),
            elements: Elements::of::<T>(),
            borrowed: PhantomData,
        }
    }

    /// A buffer of `len` opaque elements of `bytes` bytes.
    #[cfg(feature = "mpi")]
    pub(crate) fn opaque(buffer: &'b mut [u8], len: usize, bytes: usize) -> Self {
        assert_eq!(Some(buffer.len()), len.checked_mul(bytes), "whole elements");
        Buffer {
            base: buffer.as_mut_ptr(),
            len,
            elements: Elements::opaque(bytes),
            borrowed: PhantomData,
        }
    }

    /// Bytes of one element.
    #[cfg(feature = "mpi")]
    pub(crate) fn element_bytes(&self) -> usize {
        self.elements.bytes
    }
}

/// An operator that commutes, on elements of a type that only `combine` knows: it combines those of
/// the second slice into those of the first.
#[cfg(feature = "mpi")]
pub(crate) struct Opaque<'o> {
    /// Bytes of one element, at least 1.
    pub(crate) bytes: usize,
    pub(crate) combine: &'o (dyn Fn(&mut [u8], &[u8]) + Sync),
}

/// Combines elements of type `T`, as bytes of memory: those of `other` into those of `acc`. False,
/// and nothing is combined, if either lies where there can be none.
///
/// # Panics
/// When `T` is not of this crate: not any bytes may be a value.
#[cfg(feature = "mpi")]
pub(crate) fn combine_memory<T: Element>(
    operator: &Operator<T>,
    acc: &mut [u8],
    other: &[u8],
) -> bool {
    assert!(ElementType::of::<T>().is_some(), "any bytes are a value");
    // SAFETY: any bytes are a value of a type of this crate, which has no padding.
    let (unaligned, acc, rest) = unsafe { acc.align_to_mut::<T>() };
    // SAFETY: as above.
    let (theirs, other, their_rest) = unsafe { other.align_to::<T>() };
    let is_whole = [&*unaligned, rest, theirs, their_rest].map(<[u8]>::is_empty) == [true; 4];
    if is_whole {
        operator.combine(acc, other, Order::MineFirst);
    }
    is_whole
}

#[cfg(feature = "mpi")]
impl CombineBytes for Opaque<'_> {
    unsafe fn combine_bytes(&self, acc: *mut u8, other: *const u8, n: usize, _: Order) {
        let bytes = n * self.bytes;
        // SAFETY: `n` elements that nobody else touches: initialized bytes of the buffer.
        let acc = unsafe { std::slice::from_raw_parts_mut(acc, bytes) };
        // SAFETY: `n` elements that nobody writes, and that do not overlap `acc`.
        let other = unsafe { std::slice::from_raw_parts(other, bytes) };
        (self.combine)(acc, other);
    }
}

/// An operator, whose element type is a value.
#[derive(Clone, Copy)]
pub(crate) struct Combiner<'o> {
    operator: &'o (dyn CombineBytes + Sync),
    pub(crate) elements: Elements,
}

impl fmt::Debug for Combiner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Combiner").field(&self.elements).finish()
    }
}

impl<'o> Combiner<'o> {
    pub(crate) fn of<T: Element>(operator: &'o Operator<T>) -> Self {
        Combiner {
            operator,
            elements: Elements::of::<T>(),
        }
    }

    /// An operator on opaque `elements`.
    #[cfg(feature = "mpi")]
    pub(crate) fn opaque(operator: &'o Opaque<'o>) -> Self {
        Combiner {
            operator,
            elements: Elements::opaque(operator.bytes),
        }
    }

    /// That of elements of `bytes` bytes, none of which is ever moved or combined.
    pub(crate) fn without_data(bytes: usize) -> Self {
        Combiner {
            operator: &(),
            elements: Elements {
                id: TypeId::of::<()>(),
                bytes,
                align: 1,
                max_inline_bytes: INLINE_BYTES,
            },
        }
    }

    /// Combines `n` elements at `other` into those at `acc`, in one call of the operator.
    ///
    /// # Safety
    /// `acc` and `other` hold `n` values of the type `elements`, aligned for it. Nobody else may
    /// touch `acc` or write `other` meanwhile, and the two must not overlap.
    ///
    /// # Panics
    /// When the operator is for elements of another type.
    #[inline]
    pub(super) unsafe fn combine(
        self,
        elements: Elements,
        acc: *mut u8,
        other: *const u8,
        n: usize,
        order: Order,
    ) {
        assert!(
            self.elements.id == elements.id,
            "the operator's element type"
        );
        // SAFETY: guaranteed by the caller; the type is that of the operator, as just checked.
        unsafe { self.operator.combine_bytes(acc, other, n, order) };
    }
}

/// A run without data combines nothing.
impl CombineBytes for () {
    unsafe fn combine_bytes(&self, _: *mut u8, _: *const u8, _: usize, _: Order) {}
}

/// An operator without its type.
trait CombineBytes {
    /// Combines `n` elements at `other` into those at `acc`.
    ///
    /// # Safety
    /// As [`Combiner::combine`], for values of the operator's type.
    unsafe fn combine_bytes(&self, acc: *mut u8, other: *const u8, n: usize, order: Order);
}

impl<T: Element> CombineBytes for Operator<T> {
    unsafe fn combine_bytes(&self, acc: *mut u8, other: *const u8, n: usize, order: Order) {
        // SAFETY: `n` aligned values of this type that nobody else touches.
        let acc = unsafe { std::slice::from_raw_parts_mut(acc.cast::<T>(), n) };
        // SAFETY: `n` aligned values of this type that nobody writes, and that do not overlap
        // `acc`.
        let other = unsafe { std::slice::from_raw_parts(other.cast::<T>(), n) };
        self.combine(acc, other, order);
    }
}
