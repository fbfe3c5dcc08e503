//! Memory for copies of messages whose senders do not wait for their receivers.

use std::cell::UnsafeCell;

use crate::run::tuning::CACHE_LINE_BYTES as LINE;

/// One cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct SlotLine(UnsafeCell<[u8; LINE]>);

const _: () = assert!(align_of::<SlotLine>() == LINE);

/// Slots for messages, each a range of cache lines that starts at a line number. A lane (one
/// direction between two ranks) has one slot.
#[derive(Debug)]
pub(crate) struct Slots(Box<[SlotLine]>);

// SAFETY: a slot belongs to one lane. The lane's sender writes it while the lane is free, and the
// lane's receiver reads it between `BORROWED` and `DONE`. The lane's state hands the slot over in
// the same way as the lane's own fields.
unsafe impl Sync for Slots {}

impl Slots {
    pub(crate) fn new(lines: u32) -> Slots {
        let line = |_| SlotLine(UnsafeCell::new([0; LINE]));
        Slots((0..lines).map(line).collect())
    }

    /// Number of cache lines that `bytes` bytes occupy.
    pub(crate) fn lines(bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(LINE)).unwrap_or(u32::MAX)
    }

    /// Number of bytes in `lines` cache lines.
    pub(crate) fn bytes(lines: u32) -> usize {
        lines as usize * LINE
    }

    /// Pointer to line `line`, and the number of bytes from there to the end.
    #[inline]
    pub(super) fn room(&self, line: u32) -> (*mut u8, usize) {
        let rest = &self.0[line as usize..];
        // The pointer is derived from the whole rest of the slice, so it may access all of it.
        (
            rest.as_ptr().cast::<u8>().cast_mut(),
            std::mem::size_of_val(rest),
        )
    }
}
