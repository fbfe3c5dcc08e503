//! Memory for messages that do not wait for their receivers.

use std::cell::UnsafeCell;

/// Bytes of a line.
const LINE: usize = 64;

/// A line of cache.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line(UnsafeCell<[u8; LINE]>);

/// Room for a message of each direction between two ranks, at numbered lines.
#[derive(Debug)]
pub(crate) struct Slots(Box<[Line]>);

// SAFETY: a slot is written by the sender of its lane while the lane is free, and read by its
// receiver between `BORROWED` and `DONE`: the lane's state hands it over like the lane's own
// fields.
unsafe impl Sync for Slots {}

impl Slots {
    /// So many lines.
    pub(crate) fn new(lines: u32) -> Slots {
        let line = |_| Line(UnsafeCell::new([0; LINE]));
        Slots((0..lines).map(line).collect())
    }

    /// Lines that `bytes` take.
    pub(crate) fn lines(bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(LINE)).unwrap_or(u32::MAX)
    }

    /// Bytes of so many lines.
    pub(crate) fn bytes(lines: u32) -> usize {
        lines as usize * LINE
    }

    /// Where line `line` stands, and how many bytes there are from there on.
    #[inline]
    pub(super) fn room(&self, line: u32) -> (*mut u8, usize) {
        let rest = &self.0[line as usize..];
        // The pointer comes from the whole rest, so it may reach into all of it.
        (
            rest.as_ptr().cast::<u8>().cast_mut(),
            std::mem::size_of_val(rest),
        )
    }
}
