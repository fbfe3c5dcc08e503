//! Memory of messages that open requests access.

use crate::schedule::{Span, total_len};

/// Memory of messages, aligned for any element. It is accessed by address only, because open
/// requests hold addresses of other parts of it.
#[derive(Debug)]
pub(super) struct Scratch {
    start: *mut u128,
    words: usize,
    element_bytes: usize,
}

impl Scratch {
    /// Room for `elements` elements of such a size.
    pub(super) fn new(elements: usize, element_bytes: usize) -> Scratch {
        let words = (elements * element_bytes).div_ceil(size_of::<u128>());
        let start = Box::into_raw(vec![0u128; words].into_boxed_slice()).cast();
        Scratch {
            start,
            words,
            element_bytes,
        }
    }

    /// The memory of a message of `spans`, from element `offset` on. No open request may access it.
    pub(super) fn message(&mut self, offset: usize, spans: &[Span]) -> &mut [u8] {
        self.bytes(
            offset * self.element_bytes,
            total_len(spans) * self.element_bytes,
        )
    }

    /// `len` bytes from byte `offset` on. No open request may access them.
    pub(super) fn bytes(&mut self, offset: usize, len: usize) -> &mut [u8] {
        assert!(
            offset + len <= self.words * size_of::<u128>(),
            "scratch memory for every message"
        );
        let start = self.start.cast::<u8>().wrapping_add(offset);
        // SAFETY: in bounds, as just checked, and initialized. Messages that exist at the same time
        // are apart (`ends`), no open request accesses this one, and the borrow of `self` keeps
        // others here from it.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Makes room for `elements` elements. No open request may access the memory.
    pub(super) fn grow(&mut self, elements: usize) {
        if elements * self.element_bytes > self.words * size_of::<u128>() {
            *self = Scratch::new(elements, self.element_bytes);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(self.start, self.words);
        // SAFETY: `new` made the box; its owners drop it when all requests have ended, or end the
        // process.
        drop(unsafe { Box::from_raw(all) });
    }
}
